/* SPDX-License-Identifier: MIT
 * cmd_run.c - `tare run`: start a program, watch it and the machine, pass its exit code on. The program's streams are
 * its own: tare speaks on stderr only, and only beside alerts when all is over. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "analyze/watch/carbon.h"
#include "cli/command.h"
#include "cli/html_out.h"
#include "cli/output.h"
#include "cli/push.h"
#include "cli/shell_words.h"
#include "load/address.h"
#include "report/run/run_report.h"
#include "watch/watch.h"

static const struct opt_usage usage = {
    .synopsis = "tare run [options] -- <program> [args]",
    .about = "Run a program and watch it, all that it starts, and the machine: processor time, memory, I/O, network, "
             "temperature, energy, GPUs. The program's input, output, terminal and exit code are untouched; the "
             "summary goes to stderr. Samples are written to a trace as they are taken, beside the scopes of programs "
             "that use libtare; the run document has averages, peaks, phases, alerts and findings.",
    .tail = "tare run -- python train.py\n"
            "tare run --stacks -- python train.py\n"
            "tare run --interval 100ms --probe process,system -o train.json -- ./server\n"
            "tare run --alert 'cpu>80% for 10s' --alert 'memory>80%' --on-alert ./notify.sh -- python train.py\n"
            "tare run --alert 'process.memory.rss>4GB for 1m clear 3GB' --country FR -- ./job\n"
            "tare run --bench 'http://localhost:8000/predict --body body.json --rate 50/s' -- ./server\n"
            "Exit status: the program's own (with --bench: that of tare bench); 128 + n when signal n ended it; 127\n"
            "when it is not found, 126 when it cannot be executed; 2 wrong usage, 3 when tare could not watch it.\n"
            "Under --fail, of a program that ended with 0: 1 when an alert was told, 3 with --strict when one is\n"
            "undecided.",
    .min_args = 1,
    .max_args = OPT_ANY,
    .args = OPT_ARGS_FILES,
    .stop_at_arg = true,
};

struct run_command { /* what a user asked for */
    struct cli *cli;
    struct watch_options watch;
    const char *probe_names; /* as written */
    struct opt_list probes, alerts;
    const char *bench; /* words of a `tare bench` beside it; NULL: none */
    struct arena words;
    const char *html, *name; /* name: of the subject; NULL: the command line */
    struct history_args history;
    bool json, quiet, fail, strict;
};

static bool never(const char *word)
{
    (void)word;
    return false;
}

static tare_status read_memory(void *ctx, const char *text, tare_error *err)
{
    struct memory_agent *m = ctx;
    m->on = true;
    m->all = strcmp(text, "all") == 0;
    return !text[0] || m->all ? TARE_OK : error_set(err, TARE_INVALID, "it is `all`, or nothing");
}

/* What is injected into the program: is it here, and where would it record to? */
static int check_injected(struct run_command *a)
{
    struct watch_options *o = &a->watch;
    bool kept = !o->no_save || o->trace || o->output;
    if (watch_gpu_find(&o->gpu, &a->cli->error) != TARE_OK ||
        memory_agent_find(&o->memory, &a->cli->error) != TARE_OK)
        return cli_usage_error(a->cli, "%s", a->cli->error.text);
    if (o->gpu.on && !kept)
        return cli_usage_error(a->cli, "--gpu records into a trace: with --no-save name one with --trace");
    if (o->memory.on && !kept)
        return cli_usage_error(a->cli, "--memory records into a trace: with --no-save name one with --trace");
    if (o->stacks.on && !kept)
        return cli_usage_error(a->cli, "--stacks records into a trace: with --no-save name one with --trace");
    const char *doubt = o->memory.on && o->command[0] ? memory_agent_doubt(o->command[0]) : NULL;
    if (doubt) cli_warn(a->cli, "--memory: %s %s", o->command[0], doubt);
    return 0;
}

/* Lists grow while options are read, so the pointers into them are taken only afterwards. */
static int read_args(struct run_command *a, int argc, char **argv)
{
    static const struct opt_choice graphs[] = {
        {"node", GRAPHS_NODE, "each kernel of a graph"},
        {"graph", GRAPHS_GRAPH, "one record a launch: cheaper, without its kernels"},
        {"auto", GRAPHS_AUTO, "node; graph once CUPTI costs more than 5 % of the time"},
        {NULL, 0, NULL}};
    struct watch_options *o = &a->watch;
    const struct opt rows[] = {
        OPT_GROUP("Watching"),
        OPT_TIME_IN('i', "interval", &o->interval, 1000000, 3600000000000, "between samples"),
        OPT_STRING('p', "probe", &a->probe_names, "<names>", "only these probes (default: all that see anything here)"),
        OPT_FLAG(0, "detail", &o->detail, "also each core and each process, in the trace"),
        OPT_FLAG(0, "wait-all", &o->wait_all, "until all that the program started has ended, not only itself"),
        OPT_GROUP("GPU"),
        OPT_FLAG(0, "gpu", &o->gpu.on,
                 "record each kernel, copy and launch of a CUDA program; `tare report --gpu` shows them"),
        OPT_ENUM(0, "gpu-graphs", &o->gpu.graphs, graphs, "how CUDA graphs are recorded"),
        OPT_FLAG(0, "no-gpu-calls", &o->gpu.no_calls,
                 "only kernels and copies: cheaper, without the reasons of idle time"),
        OPT_GROUP("Memory"),
        OPT_CALLBACK(0, "memory", read_memory, &o->memory, "[=all]",
                 "record who allocates and frees, sampled; =all: each allocation", .takes = never),
        OPT_UINT_IN(0, "memory-every", &o->memory.every, 1, UINT64_C(1) << 40, "bytes between samples, on average",
                 .needs = "memory"),
        OPT_GROUP("Stacks"),
        OPT_FLAG(0, "stacks", &o->stacks.on,
                 "sample where threads of Python are, of the program and of what it starts; `tare report --stacks` "
                 "shows it"),
        OPT_DOUBLE(0, "stacks-hz", &o->stacks.hz, 0.1, 10000, "looks per second, where the budget allows",
                 .needs = "stacks"),
        OPT_DOUBLE(0, "stacks-budget", &o->stacks.budget, 0.01, 100,
                 "percent of one processor that looking may take", .needs = "stacks"),
        OPT_GROUP("Load"),
        OPT_STRING(0, "bench", &a->bench, "<words>",
                 "load on the program, which is a service: an address and options of tare bench, as one quoted word; "
                 "when it is over, the program is ended",
                 .not_with = "wait-all"),
        OPT_GROUP("Alerts"),
        OPT_LIST('a', "alert", &a->alerts, "<rule>", "alert while this is true: 'cpu>80% for 10s'"),
        OPT_FLAG(0, "fail", &a->fail, "exit 1 if one of --alert was told and the program itself ended with 0",
                 .needs = "alert"),
        OPT_FLAG(0, "strict", &a->strict, "exit 3 when one of --alert is undecided: what it asks for was never known",
                 .needs = "fail"),
        OPT_FLAG(0, "no-default-alerts", &o->no_default_alerts, "only the rules given with --alert"),
        OPT_STRING(0, "on-alert", &o->on_alert, "<command>", "run it for each alert, which it gets as JSON on stdin"),
        OPT_STRING(0, "webhook", &o->webhook, "<url>", "post each alert to it as JSON (http or https)"),
        OPT_GROUP("Carbon"),
        OPT_DOUBLE(0, "grid", &o->grid, 0, 5000, "the grid's grams of CO2 equivalent per kWh",
                 .flags = OPT_NO_DEFAULT, .arg = "<g/kWh>"),
        OPT_STRING(0, "country", &o->country, "<code>", "the mean of a country's grid, from a small table",
                 .not_with = "grid"),
        OPT_GROUP("The answer"),
        OPT_NAME(&a->name),
        OPT_OUT('o', "output", &o->output, "<file>", "the run document (default: a new file in --output-dir)"),
        OPT_OUT(0, "trace", &o->trace, "<file>", "the trace (default: beside the document)"),
        OPT_FLAG(0, "json", &a->json, "print the document instead of the summary, on stderr"),
        OPT_HTML(&a->html),
        OPT_FLAG('q', "quiet", &a->quiet, "print nothing but errors"),
        OPT_HISTORY_DIR(&a->history),
        OPT_FLAG(0, "no-save", &o->no_save, "keep no document and no trace, but those named; nothing in the history"),
        OPT_HISTORY(&a->history),
        OPT_FLAG(0, "no-history", &a->history.none, "keep this run out of the history"),
        OPT_PUSH(&a->history),
        OPT_END,
    };
    int rc = cli_options(a->cli, &usage, rows, &argc, &argv);
    if (!rc && a->probe_names && opt_list_split(&a->probes, a->probe_names, &a->cli->error) != TARE_OK)
        rc = cli_fail(a->cli);
    o->command = argv;
    o->probes = (const char *const *)a->probes.items;
    o->n_probes = a->probes.n;
    o->alerts = (const char *const *)a->alerts.items;
    o->n_alerts = a->alerts.n;
    o->output_dir = a->history.output_dir;
    o->server = a->history.push || a->history.push_must ? a->history.server : NULL;
    o->token = history_token();
    a->history.quiet = a->quiet;
    return rc ? rc : check_injected(a);
}

static int check_webhook(struct cli *cli, const char *url)
{
    tare_status s = url ? hooks_check_url(url, &cli->error) : TARE_OK;
    if (s == TARE_INVALID) return cli_usage_error(cli, "--webhook %s", cli->error.text);
    if (s == TARE_OK) return 0;
    error_wrap(&cli->error, "--webhook");
    return cli_fail(cli);
}

/* Where its document goes is where ours does, unless its own words say otherwise. */
static int read_bench(struct run_command *a)
{
    char **words = NULL, **all;
    size_t n = 0;
    if (!a->bench) return 0;
    if (words_split(&a->words, a->bench, &words, &n, &a->cli->error) < 0)
        return cli_usage_error(a->cli, "--bench '%s': %s", a->bench, a->cli->error.text);
    if (n == 0 || !load_is_url(words[0]))
        return cli_usage_error(a->cli,
                               "--bench '%s': an address stands first, as in 'http://localhost:8000/predict "
                               "--rate 50/s'",
                               a->bench);
    const char *first[3] = {arena_printf(&a->words, "--output-dir=%s", a->history.output_dir)};
    size_t n_first = 1;
    if (a->watch.no_save) first[n_first++] = "--no-save";
    if (a->history.none) first[n_first++] = "--no-history";
    all = arena_new(&a->words, n + n_first + 1, sizeof *all);
    if (!all || !first[0]) {
        error_nomem(&a->cli->error, "--bench");
        return cli_fail(a->cli);
    }
    memcpy(all, first, n_first * sizeof *all);
    memcpy(all + n_first, words, n * sizeof *all);
    a->watch.load = all;
    a->watch.load_quiet = a->quiet;
    return 0;
}

/* What can be known to be wrong before anything is started. */
static int check_args(const struct run_command *a)
{
    const struct watch_options *o = &a->watch;
    struct cli *cli = a->cli;
    struct alert_rule rule;
    const struct carbon_grid *grid;
    for (size_t i = 0; i < o->n_alerts; i++)
        if (alert_parse(&rule, o->alerts[i], &cli->error) != TARE_OK)
            return cli_usage_error(cli, "--alert %s", cli->error.text);
    if (a->probe_names && o->n_probes == 0)
        return cli_usage_error(cli, "--probe: no name in '%s'", a->probe_names);
    for (size_t i = 0; i < o->n_probes; i++) {
        if (probe_find(o->probes[i])) continue;
        struct buf all = BUF_INIT;
        for (size_t k = 0; probe_table[k]; k++) buf_printf(&all, "%s%s", k ? ", " : "", probe_table[k]->name);
        cli_usage_error(cli, "--probe %s: there are %s", o->probes[i], all.data);
        buf_release(&all);
        return CLI_USAGE;
    }
    int rc = html_out_check(cli, a->html);
    if (!rc && !o->no_save)
        rc = o->output ? push_check(cli, &a->history) : output_dir_check(cli, &a->history);
    if (rc) return rc;
    if (o->country && carbon_find(&grid, o->country, &cli->error) != TARE_OK)
        return cli_usage_error(cli, "--country %s", cli->error.text);
    return check_webhook(cli, o->webhook);
}

/* ---- what is said while it runs ---- */

/* Is there room in the pipe that stderr may be? Nobody may stop the sampling by not reading. */
static bool can_speak(void)
{
    struct pollfd p = {STDERR_FILENO, POLLOUT, 0};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

static void say_to_user(void *ctx, enum watch_tone tone, const char *text)
{
    const struct run_command *a = ctx;
    if (tone == WATCH_WARNING)
        cli_warn(a->cli, "%s", text);
    else if (!a->quiet && !a->json && can_speak()) /* --json: alerts are in the document */
        cli_note(a->cli, "%s", text);
}

/* ---- the answer ---- */

static tare_status save_run(const struct run_command *a, const struct watcher *w, const struct run *run)
{
    tare_error err = TARE_ERROR_INIT;
    char path[PATH_MAX];
    tare_status s = places_save(&w->places, &a->watch, run, path, &err);
    if (s != TARE_OK) cli_warn(a->cli, "the run document is lost: %s", err.text);
    if (s == TARE_OK && *path && !a->json && !a->quiet)
        cli_note(a->cli, "kept as %s%s%s", path, run->trace ? " and " : "",
                 run->trace ? w->places.trace : "");
    struct history_args where = a->history;
    where.trace = w->traced ? w->places.trace : NULL;
    return a->watch.no_save ? TARE_OK : history_keep(a->cli, &where, run);
}

static tare_status write_err(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct cli *cli = ctx;
    struct buf shown = BUF_INIT;
    term_show(&shown, &cli->err_term, bytes, n);
    tare_status s = buf_status(&shown, err);
    if (s == TARE_OK && fwrite(shown.data, 1, shown.len, cli->err) != shown.len)
        s = error_errno(err, "stderr: cannot write");
    buf_release(&shown);
    return s;
}

static void show_run(const struct run_command *a, const struct run *run)
{
    const struct run *const runs[] = {run};
    struct run_report r = {runs, 1};
    struct stream s;
    if (a->quiet) return;
    stream_init(&s, (struct sink){write_err, a->cli}, &a->cli->error);
    s.style = cli_style(a->cli, &a->cli->err_term);
    if (a->json)
        report_run_json(&s, &r);
    else
        report_run_text(&s, &r);
    stream_finish(&s); /* whoever closed stderr does not want to know */
}

/* The run and what its trace holds. The program has run: a page that cannot be written is told, no more. */
static void write_page(const struct run_command *a, const struct watcher *w, const struct run *run)
{
    struct html_out h = HTML_OUT_INIT;
    tare_error *err = &a->cli->error;
    h.quiet = a->quiet;
    tare_status s = html_out_run(&h, NULL, run, 1, err);
    if (s == TARE_OK && w->traced) html_out_trace_file(&h, a->cli, w->places.trace);
    if (s == TARE_OK) s = html_out_write(a->cli, &h, a->html, run->subject.name);
    if (s < 0) cli_warn(a->cli, "no page: %s", err->text);
    html_out_release(&h);
}

static tare_status answer_run(const struct run_command *a, const struct watcher *w, const struct run *run)
{
    if (!w->recorded) return TARE_OK;
    show_run(a, run);
    tare_status s = save_run(a, w, run);
    if (a->html) write_page(a, w, run);
    if (a->watch.gpu.on && w->traced && !a->quiet)
        cli_note(a->cli, "what the GPUs did: tare report --gpu %s", w->places.trace);
    if (a->watch.stacks.on && w->traced && !a->quiet)
        cli_note(a->cli, "where the time went: tare report --stacks %s", w->places.trace);
    if (w->alive && !a->quiet)
        cli_note(a->cli, "%zu process%s of the program still run%s (--wait-all waits for them)", w->alive,
                 w->alive == 1 ? "" : "es", w->alive == 1 ? "s" : "");
    return s;
}

static bool is_asked(const struct run_command *a, const char *rule)
{
    for (size_t i = 0; i < a->alerts.n; i++)
        if (strcmp(rule, a->alerts.items[i]) == 0) return true;
    return false;
}

/* Rules of the user whose quantities no sample knew (no such card, a probe that is off, a program that was over before
 * the first sample) are named: that they were not told means nothing. */
static int judge_silence(const struct run_command *a, const struct watcher *w)
{
    bool open = false;
    for (size_t i = 0; i < alerts_count(w->alerts); i++) {
        const struct alert_rule *r = alerts_rule(w->alerts, i);
        if (alerts_judged(w->alerts, i) || !is_asked(a, r->text)) continue;
        if (a->strict || !a->quiet)
            cli_note(a->cli, "undecided: %s: no sample knew %s%s%s%s", r->text, *r->also.name ? "both " : "",
                     r->when.name, *r->also.name ? " and " : "", r->also.name);
        open = true;
    }
    return open && a->strict ? CLI_FAILED : CLI_GOOD;
}

/* The exit code under --fail of a program that ended well: did a rule that the user wrote hold? Those that are always
 * there are no reason to fail. */
static int judge_alerts(const struct run_command *a, const struct watcher *w, const struct run *run)
{
    if (run->cases.n == 0) return CLI_FAILED; /* nothing was recorded */
    const struct run_watch *watch = &run->cases.at[0]->watch;
    for (size_t i = 0; i < watch->alerts.n; i++)
        if (is_asked(a, watch->alerts.at[i]->rule)) return CLI_FINDING;
    return judge_silence(a, w);
}

static int watch_and_answer(const struct run_command *a, struct run *run)
{
    struct watcher w = WATCHER_INIT(&a->watch);
    tare_error *err = &a->cli->error;
    tare_status kept = TARE_OK;
    int rc = CLI_FAILED;
    if (places_choose(&w.places, &a->watch, run, err) != TARE_OK)
        rc = cli_usage_error(a->cli, "%s", err->text);
    else if (watch_program(&w, run, &rc, err) == TARE_OK)
        kept = answer_run(a, &w, run);
    else
        cli_fail(a->cli);
    if (kept != TARE_OK && rc == CLI_GOOD) rc = cli_fail(a->cli);
    if (rc == CLI_GOOD && a->fail) rc = judge_alerts(a, &w, run);
    watch_release(&w);
    return rc;
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
    struct run_command a = {.cli = cli,
                            .watch = {.interval = {100000000},
                                      .memory = {.every = MEMORY_EVERY},
                                      .stacks = {.hz = STACKS_HZ, .budget = STACKS_BUDGET}},
                            .history = HISTORY_ARGS_INIT};
    struct run run;
    a.watch.ignored_sigpipe = cli->ignored_sigpipe;
    a.watch.say = say_to_user;
    a.watch.say_ctx = &a;
    int rc = read_args(&a, argc, argv);
    if (!rc) rc = read_bench(&a);
    if (!rc) rc = check_args(&a);
    if (!rc && run_init(&run, "run", &cli->error) != TARE_OK) rc = cli_fail(cli);
    if (!rc) {
        run_describe_command(&run, (const char *const *)a.watch.command, false);
        if (a.name) run.subject.name = a.name;
        rc = watch_and_answer(&a, &run);
        run_release(&run);
    }
    opt_list_release(&a.probes);
    opt_list_release(&a.alerts);
    arena_release(&a.words);
    return rc;
}
