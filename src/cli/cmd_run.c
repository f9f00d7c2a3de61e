/* SPDX-License-Identifier: MIT
 * cmd_run.c - `tare run`: start a program, watch it and the machine, pass its exit code on. The program's streams are
 * its own: tare speaks on stderr only, and only beside alerts when all is over. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/watch/carbon.h"
#include "cli/command.h"
#include "cli/html_out.h"
#include "cli/report_out.h"
#include "watch/watch.h"
#include "watch/watch_places.h"
#include "report/run/run_report.h"

static const struct opt_usage usage = {
    .synopsis = "tare run [options] -- <program> [args]",
    .about = "Run a program and watch it, all that it starts, and the machine: processor time, memory, I/O, network, "
             "temperature, energy, GPUs. The program's input, output, terminal and exit code are untouched; the "
             "summary goes to stderr. Samples are written to a trace as they are taken, beside the scopes of programs "
             "that use libtare; the run document has averages, peaks, phases, alerts and findings.",
    .tail = "tare run -- python train.py\n"
            "tare run --interval 100ms --probe process,system -o train.json -- ./server\n"
            "tare run --alert 'cpu>80% for 10s' --alert 'memory>80%' --on-alert ./notify.sh -- python train.py\n"
            "tare run --alert 'process.memory.rss>4GB for 1m clear 3GB' --country FR -- ./job\n"
            "Exit status: the program's own; 128 + n when signal n ended it; 127 when it is not found, 126 when it\n"
            "cannot be executed; 2 wrong usage, 3 when tare could not watch it.",
    .min_args = 1,
    .max_args = OPT_ANY,
    .args = OPT_ARGS_FILES,
    .stop_at_arg = true,
};

static int read_args(struct cli *cli, struct watch_options *a, int argc, char **argv)
{
    const struct opt rows[] = {
        OPT_GROUP("Watching"),
        OPT_TIME_IN('i', "interval", &a->interval, 1000000, 3600000000000, "between samples"),
        OPT_STRING('p', "probe", &a->probe_names, "<names>", "only these probes (default: all that see anything here)"),
        OPT_FLAG(0, "detail", &a->detail, "also each core and each process, in the trace"),
        OPT_FLAG(0, "wait-all", &a->wait_all, "until all that the program started has ended, not only itself"),
        OPT_GROUP("Alerts"),
        OPT_LIST('a', "alert", &a->alerts, "<rule>", "tell when it holds: 'cpu>80% for 10s'"),
        OPT_FLAG(0, "no-default-alerts", &a->no_default_alerts, "only the rules given with --alert"),
        OPT_STRING(0, "on-alert", &a->on_alert, "<command>", "run it for each alert, which it gets as JSON on stdin"),
        OPT_STRING(0, "webhook", &a->webhook, "<url>", "post each alert to it as JSON (http or https)"),
        OPT_GROUP("Carbon"),
        OPT_WITH(OPT_NO_DEFAULT,
                 OPT_ROW_(DOUBLE, 0, "grid", real, &a->grid, "the grid's grams of CO2 equivalent per kWh"),
                 .min = 0, .max = 5000, .arg = "<g/kWh>"),
        OPT_STRING(0, "country", &a->country, "<code>", "the mean of a country's grid, from a small table"),
        OPT_GROUP("The answer"),
        OPT_PATH('o', "output", &a->output, "<file>", "the run document (default: a new file in --output-dir)"),
        OPT_PATH(0, "trace", &a->trace, "<file>", "the trace (default: beside the document)"),
        OPT_FLAG(0, "json", &a->json, "print the document instead of the summary, on stderr"),
        OPT_HTML(&a->html),
        OPT_FLAG('q', "quiet", &a->quiet, "print nothing but errors"),
        OPT_HISTORY_DIR(&a->history),
        OPT_FLAG(0, "no-save", &a->no_save, "keep no document and no trace, but those named; nothing in the history"),
        OPT_HISTORY(&a->history),
        OPT_FLAG(0, "no-history", &a->history.none, "keep this run out of the history"),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    a->command = argv;
    if (!rc && a->probe_names && opt_list_split(&a->probes, a->probe_names, &cli->error) != TARE_OK)
        rc = cli_fail(cli);
    return rc;
}

/* What can be known to be wrong before anything is started. */
static int check_args(struct cli *cli, const struct watch_options *a)
{
    struct alert_rule rule;
    const struct carbon_grid *grid;
    for (size_t i = 0; i < a->alerts.n; i++)
        if (alert_parse(&rule, a->alerts.items[i], &cli->error) != TARE_OK)
            return cli_usage_error(cli, "--alert %s", cli->error.text);
    if (a->probe_names && a->probes.n == 0)
        return cli_usage_error(cli, "--probe: no name in '%s'", a->probe_names);
    for (size_t i = 0; i < a->probes.n; i++) {
        if (probe_find(a->probes.items[i])) continue;
        struct buf all = BUF_INIT;
        for (size_t k = 0; probe_table[k]; k++) buf_printf(&all, "%s%s", k ? ", " : "", probe_table[k]->name);
        cli_usage_error(cli, "--probe %s: there are %s", a->probes.items[i], all.data);
        buf_release(&all);
        return CLI_USAGE;
    }
    int rc = html_out_check(cli, a->html);
    if (rc) return rc;
    if (a->grid > 0 && a->country) return cli_usage_error(cli, "--grid or --country, not both");
    if (a->country && carbon_find(&grid, a->country, &cli->error) != TARE_OK)
        return cli_usage_error(cli, "--country %s", cli->error.text);
    return 0;
}

static int check_webhook(struct watcher *w)
{
    tare_error *err = &w->cli->error;
    tare_status s = hooks_check(&w->hooks, err);
    if (s == TARE_INVALID) return cli_usage_error(w->cli, "--webhook %s", err->text);
    if (s == TARE_OK) return 0;
    error_wrap(err, "--webhook");
    return cli_fail(w->cli);
}

/* ---- the trace ---- */

/* A trace that cannot be written is a warning; one that another `tare run` is writing is not what was meant. */
static tare_status open_trace(struct watcher *w, const struct watch_places *p)
{
    tare_error err = TARE_ERROR_INIT;
    if (!p->trace[0]) return TARE_OK;
    tare_status s = samples_create(&w->writer, p->trace, w->run_id, &err);
    if (s == TARE_BUSY && (w->args->trace || w->args->output))
        return error_set(&w->cli->error, s, "%s", err.text);
    if (s != TARE_OK) cli_warn(w->cli, "no trace: %s", err.text);
    return TARE_OK;
}

static void close_trace(struct watcher *w, const struct run *run)
{
    tare_error err = TARE_ERROR_INIT;
    if (!w->writer) return;
    for (size_t i = 0; run && run->cases.n && i < run->cases.at[0]->watch.phases.n; i++) {
        const struct run_phase *p = run->cases.at[0]->watch.phases.at[i];
        samples_mark(w->writer, w->child.start_ns + (uint64_t)(p->start_s.v * 1e9), SAMPLE_PHASE, p->name,
                     NULL);
    }
    tare_status s = samples_close(w->writer, &err);
    w->writer = NULL;
    if (s != TARE_OK && w->lost == 0) cli_warn(w->cli, "the trace may lack its end: %s", err.text);
}

/* ---- the answer ---- */

static void save(struct watcher *w, const struct run *run, const struct watch_places *p)
{
    const struct watch_options *a = w->args;
    tare_error err = TARE_ERROR_INIT;
    char path[PATH_MAX];
    tare_status s = places_save(p, a, run, path, &err);
    if (s != TARE_OK) cli_warn(w->cli, "the run document is lost: %s", err.text);
    if (s == TARE_OK && *path && !a->json && !a->quiet)
        cli_note(w->cli, "kept as %s%s%s", path, run->trace ? " and " : "", run->trace ? p->trace : "");
    if (!a->no_save) history_keep(w->cli, &a->history, run);
}

static tare_status write_err(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct cli *cli = ctx;
    return fwrite(bytes, 1, n, cli->err) == n ? TARE_OK : error_errno(err, "stderr: cannot write");
}

static void show(struct watcher *w, const struct run *run)
{
    const struct run *const runs[] = {run};
    const struct term *t = &w->cli->err_term;
    struct run_report r = {
        runs, 1, {term_style(t, TERM_BOLD), term_style(t, TERM_DIM), term_style(t, TERM_PLAIN), t->utf8}};
    struct stream s;
    if (w->args->quiet) return;
    stream_init(&s, (struct sink){write_err, w->cli}, &w->cli->error);
    if (w->args->json)
        report_run_json(&s, &r);
    else
        report_run_text(&s, &r);
    stream_finish(&s); /* whoever closed stderr does not want to know */
}

/* The run and what its trace holds. The program has run: a page that cannot be written is told, no more. */
static void write_page(struct watcher *w, const struct run *run, const char *trace)
{
    struct html_out h = HTML_OUT_INIT;
    tare_error *err = &w->cli->error;
    h.quiet = w->args->quiet;
    tare_status s = html_out_run(&h, NULL, run, 1, err);
    if (s == TARE_OK && *trace) html_out_trace_file(&h, w->cli, trace);
    if (s == TARE_OK) s = html_out_write(w->cli, &h, w->args->html, run->subject.name);
    if (s < 0) cli_warn(w->cli, "no page: %s", err->text);
    html_out_release(&h);
}

static void answer(struct watcher *w, struct run *run, const struct watch_places *p)
{
    tare_error err = TARE_ERROR_INIT;
    const bool traced = w->writer != NULL;
    tare_status s = record_run(run, w, &err);
    if (s == TARE_OK && w->writer) {
        if (p->beside)
            run->trace = arena_str(&run->arena, places_file(p->trace));
        else
            run_map_text(&run->arena, &run->config, "trace_path", p->trace);
    }
    close_trace(w, s == TARE_OK ? run : NULL);
    if (w->lost)
        cli_warn(w->cli, "not in the trace: %llu of all %llu samples: %s", (unsigned long long)w->lost,
                 (unsigned long long)w->samples, w->lost_why.text);
    if (w->hooks.undelivered)
        cli_warn(w->cli, "web hook: not delivered: %llu (%s)", (unsigned long long)w->hooks.undelivered,
                 w->hooks.why);
    if (s != TARE_OK) {
        cli_warn(w->cli, "no summary: %s", err.text);
        return;
    }
    show(w, run);
    save(w, run, p);
    if (w->args->html) write_page(w, run, traced ? p->trace : "");
    if (w->alive && !w->args->quiet)
        cli_note(w->cli, "%zu process%s of the program still run%s (--wait-all waits for them)", w->alive,
                 w->alive == 1 ? "" : "es", w->alive == 1 ? "s" : "");
}

/* ---- the flow ---- */

/* Nothing was run: no trace of it is left, unless it is the trace of others, which we had joined. */
static void drop_trace(struct watcher *w, const struct watch_places *p)
{
    bool own = strcmp(samples_run_id(w->writer), w->run_id) == 0;
    samples_close(w->writer, NULL);
    w->writer = NULL;
    if (own) unlink(p->trace);
}

static int watch(struct watcher *w, struct run *run, const struct watch_places *p)
{
    int rc = CLI_FAILED;
    tare_status s = watch_open(w, &w->cli->error);
    if (s == TARE_OK) s = open_trace(w, p);
    if (s == TARE_OK) {
        watch_begin(w);
        s = child_start(&w->child, w->args->command[0], &rc, &w->cli->error);
        if (s != TARE_OK && w->writer) drop_trace(w, p);
    }
    if (s != TARE_OK) {
        cli_fail(w->cli);
        return rc;
    }
    watch_until_end(w);
    answer(w, run, p);
    return child_exit_code(&w->child);
}

static int start(struct watcher *w, struct run *run, const struct watch_places *p)
{
    int rc;
    if (child_fork(&w->child, w->args->command, p->trace[0] ? p->named : NULL, &w->cli->error) == TARE_OK)
        rc = watch(w, run, p);
    else
        rc = cli_fail(w->cli);
    child_drop(&w->child);
    return rc;
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
    struct watch_options a = {.interval = {100000000}, .history = HISTORY_ARGS_INIT};
    struct watcher w = {.cli = cli, .args = &a, .course = COURSE_INIT, .probes = {.blind = BUF_INIT}};
    struct watch_places places;
    struct run run;
    int rc = read_args(cli, &a, argc, argv);
    if (!rc) rc = check_args(cli, &a);
    w.hooks = (struct hooks){.command = a.on_alert, .url = a.webhook};
    if (!rc) rc = check_webhook(&w);
    if (!rc && run_init(&run, "run", &cli->error) != TARE_OK) rc = cli_fail(cli);
    if (!rc) {
        w.run_id = run.id;
        rc = places_choose(&places, cli, &a, &run);
        if (!rc) rc = start(&w, &run, &places);
        places_leave(&places);
        watch_close(&w);
        run_release(&run);
    }
    opt_list_release(&a.probes);
    opt_list_release(&a.alerts);
    return rc;
}
