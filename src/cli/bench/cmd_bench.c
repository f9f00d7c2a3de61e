/* SPDX-License-Identifier: MIT
 * cmd_bench.c - `tare bench`: open, measure, judge, answer, keep. The run document is written whole or not at all,
 * and before the answer, so that a closed pipe loses nothing. */
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench_args.h"
#include "cli/compare/compare_args.h"
#include "cli/command.h"
#include "cli/html_out.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/output.h"
#include "core/file.h"
#include "core/mem.h"
#include "probe/gitstate.h"
#include "probe/host.h"
#include "report/run/run_report.h"

/* ---- measuring ---- */

static tare_status measure(struct cli *cli, struct bench_args *a, struct run *run, struct tensor_set *outputs)
{
    struct progress_line shown = PROGRESS_LINE_INIT(cli->err, &cli->err_term);
    struct interrupt was;
    a->plan.cases = a->grid.cases.items;
    a->plan.n_cases = a->grid.cases.n;
    a->plan.keep_outputs = outputs != NULL;
    a->plan.outputs = outputs;
    a->plan.progress = (struct bench_progress){progress_line_at, &shown};
    interrupt_catch(&was);
    tare_status s = bench_run(run, &a->plan, &cli->error);
    interrupt_restore(&was);
    a->plan.progress = (struct bench_progress){NULL, NULL};
    progress_line_end(&shown);
    return s;
}

/* ---- the document ---- */

/* Shall the cases' outputs be compared? */
static bool wants_check(const struct bench_args *a)
{
    return a->expect || a->validate || a->variants.n;
}

static tare_status describe(struct cli *cli, const struct bench_args *a, struct run *run)
{
    struct subject *first = a->grid.subjects.items[0].subject;
    tare_status s = host_read(run, "", &cli->error);
    if (s == TARE_OK) s = first->ops->describe(first, run, &cli->error);
    if (s != TARE_OK) return s;
    struct run_map *c = &run->config;
    if (a->scenario) run_map_text(&run->arena, c, "scenario", a->scenario);
    if (a->entry) run_map_text(&run->arena, c, "suite_entry", a->entry);
    gitstate_describe(run);
    if (wants_check(a)) run_map_real(&run->arena, c, "max_drop", a->max_drop);
    return TARE_OK;
}

static tare_status judge(struct cli *cli, const struct bench_args *a, struct run *run)
{
    struct objective o = {objective_names[a->objective], (uint64_t)a->latency_limit.ns};
    tare_status s = findings_add(run, &cli->error);
    if (s == TARE_OK) s = recommend(run, &o, &cli->error);
    if (s == TARE_OK && a->parsed.n) s = targets_judge(run, a->parsed.items, a->parsed.n, false, &cli->error);
    return s;
}

/* ---- the answer ---- */

static tare_status save(struct cli *cli, const struct bench_args *a, const struct run *run)
{
    char path[4096];
    if (a->no_save) return TARE_OK;
    tare_status s = run_save(run, a->history.output_dir, path, sizeof path, &cli->error);
    if (s == TARE_OK && !a->json) cli_note_last(cli, "kept as %s", path);
    if (s == TARE_OK || a->history.file) history_keep(cli, &a->history, run);
    return s;
}

/* A file that cannot be written fails the command, but the measurement was made: the answer is still given. */
static tare_status answer(struct cli *cli, const struct bench_args *a, const struct run *run)
{
    const struct run *const runs[] = {run};
    struct run_report r = {runs, 1, REPORT_STYLE_NONE};
    bool compared =
        a->baseline.n > 0; /* then Markdown, JUnit and JSON are the comparison's: bench_baseline() */
    tare_status s = save(cli, a, run);
    if (s == TARE_OK && a->csv) s = output_runs(cli, a->csv, &r, report_run_csv);
    if (s == TARE_OK && a->md && !compared) s = output_runs(cli, a->md, &r, report_run_md);
    if (s == TARE_OK && a->junit && !compared) s = output_runs(cli, a->junit, &r, report_run_junit);
    if (s == TARE_OK && a->html && !compared) s = html_out_runs(cli, a->html, runs, 1);
    r.style = cli_style(cli);
    if (output_is_answer(a->csv) || output_is_answer(a->md) || output_is_answer(a->junit))
        return s; /* one answer, not two in a row */
    if (compared && a->json) return s;
    tare_status shown = output_runs(cli, "-", &r, a->json ? report_run_json : report_run_text);
    return s != TARE_OK ? s : shown;
}

/* ---- one subject with its sweep ---- */

static bool has_finding(const struct run *run, const char *id)
{
    for (size_t i = 0; i < run->findings.n; i++)
        if (strcmp(run->findings.at[i]->id, id) == 0) return true;
    return false;
}

/* For the process that asked for this launch. */
static int hand_over(struct cli *cli, const struct bench_args *a, const struct run *run, bool dropped)
{
    struct buf text = BUF_INIT;
    tare_status s = run_write(run, &text, &cli->error);
    if (s == TARE_OK) s = file_write_atomic(a->launch_document, text.data, text.len, 0, &cli->error);
    buf_release(&text);
    return s < 0 ? cli_fail(cli) : dropped ? CLI_FINDING : CLI_GOOD;
}

/* Is the answer text for people? */
static bool says_text(const struct bench_args *a)
{
    return !a->json && !output_is_answer(a->csv) && !output_is_answer(a->md) && !output_is_answer(a->junit);
}

/* Judge, answer, compare: what is left once a run was measured. */
static int conclude(struct cli *cli, struct bench_args *a, struct run *run, bool dropped)
{
    if (a->launch_document) return hand_over(cli, a, run, dropped);
    tare_status s = a->anchor ? bench_anchor(cli, a, run) : TARE_OK;
    if (s == TARE_OK) s = judge(cli, a, run);
    if (s == TARE_OK) s = answer(cli, a, run);
    if (s != TARE_OK) return cli_fail(cli);
    if (a->anchor && says_text(a)) bench_anchor_show(cli, run);
    int rc = has_finding(run, "outputs.not-finite") ? CLI_FAILED
             : dropped || targets_missed(run)       ? CLI_FINDING
                                                    : CLI_GOOD;
    int compared = a->baseline.n ? bench_baseline(cli, a, run) : CLI_GOOD;
    return compared > rc ? compared : rc;
}

/* Outputs that are not numbers make the exit status 3: such a run measured something else than the model's work. */
static int bench_measured(struct cli *cli, struct bench_args *a, struct run *run)
{
    bool check = wants_check(a);
    size_t dropped = 0, n = a->grid.cases.n;
    struct tensor_set *outputs = check ? mem_new(n, sizeof *outputs) : NULL;
    tare_status s = check && !outputs ? error_set(&cli->error, TARE_NOMEM, "out of memory") : TARE_OK;
    if (s == TARE_OK) s = measure(cli, a, run, outputs);
    if (s == TARE_OK && check && run->cases.n == n) s = bench_check(cli, a, run, outputs, &dropped);
    for (size_t i = 0; check && outputs && i < n; i++) tensor_set_release(&outputs[i]);
    mem_free(outputs);
    if (s == TARE_OK && a->layers) s = bench_layers(cli, a, run);
    if (s != TARE_OK) return cli_fail(cli);
    return conclude(cli, a, run, dropped > 0);
}

static int bench_opened(struct cli *cli, struct bench_args *a)
{
    struct run run;
    if (grid_build(&a->grid, &cli->error) != TARE_OK || run_init(&run, "bench", &cli->error) != TARE_OK)
        return cli_fail(cli);
    int rc = describe(cli, a, &run) == TARE_OK ? 0 : cli_fail(cli);
    if (!rc && a->baseline.n) /* better known now than after minutes of measuring */
        rc = compare_runs_check(cli, &a->baseline, &a->history, run.subject.name);
    if (!rc) rc = bench_measured(cli, a, &run);
    run_release(&run);
    return rc;
}

static int bench_repeated(struct cli *cli, struct bench_args *a)
{
    struct run run;
    int worst = CLI_GOOD;
    if (bench_repeat(cli, a, &run, &worst) < 0) return worst == CLI_USAGE ? CLI_USAGE : cli_fail(cli);
    int rc = conclude(cli, a, &run, worst == CLI_FINDING);
    run_release(&run);
    return rc;
}

static int bench_subject(struct cli *cli, struct bench_args *a)
{
    struct bench_subjects subjects = {0};
    if (a->repeat > 1 && !a->launch_document) return bench_repeated(cli, a);
    if (a->launch_document) bench_launch_bound();
    a->plan.interrupted = &interrupted;
    tare_status s = bench_open(cli, a, &subjects);
    int rc = s == TARE_OK ? bench_opened(cli, a) : cli_fail(cli);
    bench_close(&subjects);
    return s == TARE_IO ? CLI_USAGE : rc; /* a file that cannot be read is bad input */
}

#define BENCH_ARGS_INIT                                                                            \
    {                                                                                              \
        .plan = BENCH_PLAN_INIT, .budget = {10000000000}, .concurrency = 1, .optimization = -1,    \
        .grid = GRID_INIT, .metric = ACCURACY_METRIC_COSINE, .history = HISTORY_ARGS_INIT,         \
        .max_drop = 0.01, .warmup = "auto", .repeat = 1, .anchor_budget = {20000000000}            \
    }

/* ---- without a subject: the suite, or the built-in model ---- */

static int bench_built_in(struct cli *cli, struct bench_args *a)
{
    cli_note(cli, "no subject and no suite in tare.yaml: weighing a built-in MiniLM (tare bench -h)");
    a->synth = "minilm-l6";
    if (!a->unit) a->plan.unit = "texts";
    if (!a->grid.batch.values.n && grid_parse_ints(&a->grid.batch, "1,4,8,16,32", &cli->error) != TARE_OK)
        return cli_fail(cli);
    if (!a->grid.seq.values.n && grid_parse_ints(&a->grid.seq, "128", &cli->error) != TARE_OK)
        return cli_fail(cli);
    return bench_subject(cli, a);
}

/* The entry's options, then those of the command line, which win, then what is weighed. */
static tare_status entry_words(struct cli *cli, const struct suite_entry *e, struct opt_list *words, int argc,
                               char **argv)
{
    static char name[] = "bench";
    VEC(char *) all = VEC_INIT;
    tare_status s = vec_push(&all, name, &cli->error);
    for (size_t i = 0; i < e->n_options && s == TARE_OK; i++)
        s = vec_push(&all, e->argv.items[i], &cli->error);
    for (int i = 1; i < argc && s == TARE_OK; i++) s = vec_push(&all, argv[i], &cli->error);
    for (size_t i = e->n_options; i < e->argv.n && s == TARE_OK; i++)
        s = vec_push(&all, e->argv.items[i], &cli->error);
    words->items = all.items; /* the words themselves stay the suite's and the command line's */
    words->n = all.n;
    return s;
}

static int bench_entry(struct cli *cli, const struct suite_entry *e, int argc, char **argv)
{
    struct bench_args a = BENCH_ARGS_INIT;
    struct opt_list words = OPT_LIST_INIT;
    a.entry = e->name;
    tare_status s = entry_words(cli, e, &words, argc, argv);
    int rc = s == TARE_OK ? bench_args_read(cli, &a, (int)words.n - 1, words.items) : cli_fail(cli);
    if (!rc) rc = bench_subject(cli, &a);
    if (rc == CLI_USAGE || rc == CLI_FAILED)
        cli_note(cli, "in %s:%u: suite entry %s", cli->settings.path, e->line,
                 e->name ? e->name : "without a name");
    mem_free(words.items);
    bench_args_release(&a);
    return rc;
}

/* Files in tare.yaml are named as seen from its folder. */
static tare_status enter_project(struct cli *cli)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", cli->settings.path);
    char *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = 0;
    return !slash || chdir(dir) == 0 ? TARE_OK : error_errno(&cli->error, "%s: cannot enter", dir);
}

/* All entries are run; the worst exit status counts. */
static int bench_suite(struct cli *cli, int argc, char **argv)
{
    int worst = CLI_GOOD;
    if (enter_project(cli) != TARE_OK) return cli_fail(cli);
    for (size_t i = 0; i < cli->settings.suite.n && !interrupted; i++) {
        const char *name = cli->settings.suite.items[i].name;
        cli_note(cli, "suite %zu of %zu%s%s", i + 1, cli->settings.suite.n, name ? ": " : "",
                 name ? name : "");
        int rc = bench_entry(cli, &cli->settings.suite.items[i], argc, argv);
        if (rc > worst) worst = rc;
    }
    return worst;
}

int cmd_bench(struct cli *cli, int argc, char **argv)
{
    struct bench_args a = BENCH_ARGS_INIT;
    int rc = bench_args_read(cli, &a, argc, argv);
    if (!rc) {
        bool named = a.model || a.command || a.synth;
        if (!named && a.html && cli->settings.suite.n > 1)
            rc = cli_usage_error(cli,
                                 "--html writes one page: give each of the %zu entries of the suite its own",
                                 cli->settings.suite.n);
    }
    if (!rc) {
        bool named = a.model || a.command || a.synth;
        rc = named                   ? bench_subject(cli, &a)
             : cli->settings.suite.n ? bench_suite(cli, argc, argv)
                                     : bench_built_in(cli, &a);
    }
    bench_args_release(&a);
    return rc;
}
