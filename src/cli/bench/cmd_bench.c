/* SPDX-License-Identifier: MIT
 * cmd_bench.c - `tare bench`: open, measure, judge, answer, keep. The run document is written whole or not at all,
 * and before the answer, so that a closed pipe loses nothing. */
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench_args.h"
#include "cli/compare/compare_args.h"
#include "cli/command.h"
#include "cli/html_out.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "core/file.h"
#include "core/mem.h"
#include "probe/host.h"
#include "report/run/run_report.h"

/* ---- measuring ---- */

/* What was measured: the document, and what it was measured of. */
struct measured {
    struct run run;
    char *model; /* its file; NULL: no model */
    int checked; /* what the accuracy makes of the exit code */
};

/* Shall the cases' outputs be compared? */
static bool wants_check(const struct bench_args *a)
{
    return a->expect || a->validate || a->variants.n;
}

static tare_status describe_run(struct cli *cli, const struct bench_args *a, struct subject *first,
                                struct run *run)
{
    tare_status s = host_read(run, "", &cli->error);
    if (s == TARE_OK) s = first->ops->describe(first, run, &cli->error);
    if (s != TARE_OK) return s;
    struct run_map *c = &run->config;
    if (a->name) run->subject.name = a->name;
    if (a->scenario) run_map_text(&run->arena, c, "scenario", a->scenario);
    if (a->entry) run_map_text(&run->arena, c, "suite_entry", a->entry);
    gitstate_describe(run);
    if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/kfd", F_OK) == 0)
        run_map_bool(&run->arena, c, "gpu_present", true);
    if (wants_check(a)) run_map_real(&run->arena, c, "max_drop", a->max_drop);
    return TARE_OK;
}

static tare_status measure_cases(struct cli *cli, const struct bench_planned *p,
                                 const struct grid_cases *cases, struct run *run, struct tensor_set *outputs)
{
    struct progress shown = PROGRESS_INIT(cli);
    struct interrupt was;
    struct bench_plan plan = p->plan;
    plan.cases = cases->cases.items;
    plan.n_cases = cases->cases.n;
    plan.keep_outputs = outputs != NULL;
    plan.outputs = outputs;
    plan.progress = (struct bench_progress){progress_time, &shown};
    interrupt_catch(&was);
    tare_status s = bench_run(run, &plan, &cli->error);
    interrupt_restore(&was);
    progress_end(&shown);
    return s;
}

/* The cases, their accuracy where it is asked for, and their layers. */
static tare_status measure_all(struct cli *cli, const struct bench_planned *p, const struct grid_cases *cases,
                               struct measured *m)
{
    const struct bench_args *a = p->args;
    bool answers = a->kind == KIND_SERVICE, check = wants_check(a) && !answers;
    size_t n = cases->cases.n;
    struct tensor_set *outputs = check ? mem_new(n, sizeof *outputs) : NULL;
    if (check && !outputs) return error_set(&cli->error, TARE_NOMEM, "out of memory");
    tare_status s = measure_cases(cli, p, cases, &m->run, outputs);
    if (s == TARE_OK && answers && a->expect)
        s = bench_answers_record(&p->service.answers, &m->run, &cli->error);
    if (s == TARE_OK && check && m->run.cases.n == n)
        m->checked = bench_check(cli, p, &(struct bench_outputs){cases->cases.items, outputs}, &m->run);
    for (size_t i = 0; check && i < n; i++) tensor_set_release(&outputs[i]);
    mem_free(outputs);
    return s == TARE_OK && a->layers ? bench_layers(cli, a, cases, &m->run) : s;
}

static int measure_subjects(struct cli *cli, const struct bench_planned *p,
                            const struct bench_subjects *subjects, struct measured *m)
{
    struct grid_cases cases = {0};
    const struct bench_args *a = p->args;
    tare_status s = a->kind == KIND_SERVICE
                        ? bench_service_cases(p, subjects->opened.items[0], &cases, &cli->error)
                        : grid_build(&p->grid, subjects->named.items, subjects->named.n, &cases, &cli->error);
    if (s == TARE_OK) s = describe_run(cli, a, subjects->opened.items[0], &m->run);
    int rc = s == TARE_OK ? 0 : cli_fail(cli);
    if (!rc && a->baseline.n) /* better known now than after minutes of measuring */
        rc = compare_runs_check(cli, &a->baseline, &a->history, m->run.subject.name);
    if (!rc && a->http.find_rate)
        s = bench_find_rate(cli, p, subjects->opened.items[0], &m->run);
    else if (!rc)
        s = measure_all(cli, p, &cases, m);
    if (!rc && s != TARE_OK) rc = cli_fail(cli);
    grid_cases_release(&cases);
    return rc;
}

/* In this process. */
static int measure_here(struct cli *cli, const struct bench_planned *p, struct measured *m)
{
    struct bench_subjects subjects = {0};
    if (p->args->launch_document) bench_launch_bound();
    tare_status s = bench_model_file(cli, p, &m->model);
    if (s == TARE_OK) s = bench_open(cli, p, m->model, &subjects);
    if (s == TARE_OK) s = run_init(&m->run, "bench", &cli->error);
    int rc = s == TARE_OK ? measure_subjects(cli, p, &subjects, m) : cli_fail(cli);
    bench_close(&subjects);
    bool is_file = p->args->kind != KIND_SERVICE;    /* a name that is not known is no file */
    return s == TARE_IO && is_file ? CLI_USAGE : rc; /* a file that cannot be read is bad input */
}

/* In processes of their own. */
static int measure_launches(struct cli *cli, const struct bench_planned *p, struct measured *m)
{
    int worst = CLI_GOOD;
    if (bench_repeat(cli, p->args, &m->run, &worst) < 0)
        return worst == CLI_USAGE ? CLI_USAGE : cli_fail(cli);
    m->checked = worst;
    return bench_model_file(cli, p, &m->model) == TARE_OK ? 0 : cli_fail(cli);
}

/* ---- judging ---- */

static tare_status judge_run(struct cli *cli, const struct bench_planned *p, struct measured *m)
{
    const struct bench_args *a = p->args;
    struct objective o = {objective_names[a->objective], (uint64_t)a->latency_limit.ns};
    tare_status s = a->anchor ? bench_anchor(cli, p, m->model, &m->run) : TARE_OK;
    if (s == TARE_OK) s = findings_add(&m->run, &cli->error);
    if (s == TARE_OK && !a->http.find_rate) s = recommend(&m->run, &o, &cli->error);
    if (s == TARE_OK && p->targets.n)
        s = targets_judge(&m->run, p->targets.items, p->targets.n, false, &cli->error);
    return s;
}

static bool has_finding(const struct run *run, const char *id)
{
    for (size_t i = 0; i < run->findings.n; i++)
        if (strcmp(run->findings.at[i]->id, id) == 0) return true;
    return false;
}

static bool has_open_target(const struct run *run)
{
    for (size_t i = 0; i < run->targets.n; i++)
        if (strcmp(run->targets.at[i]->verdict, "pass") != 0) return true;
    return false;
}

/* Of --find-rate. None that was tried keeps the limits: a finding. Else an end that is not known was not measured. */
static int found_code(const struct run_rate_search *r)
{
    if (r->passed.known && r->failed.known) return CLI_GOOD;
    bool none = !r->passed.known && (r->failed.known || !r->probes.n); /* not even a request alone */
    return none && !r->limited.v ? CLI_FINDING : CLI_FAILED;
}

/* Outputs that are not numbers make it 3: such a run measured something else than the model's work. A case that failed
 * beside others that did not makes it 1. */
static int exit_code(struct cli *cli, const struct bench_args *a, const struct measured *m)
{
    if (has_finding(&m->run, "outputs.not-finite")) {
        cli_note(cli, "outputs are NaN or infinite: what was measured may not be the model's work");
        return CLI_FAILED;
    }
    if (has_finding(&m->run, "client.limited")) {
        cli_note(cli, "this client was at its limit: the numbers are its own, not the service's");
        return CLI_FAILED;
    }
    if (m->checked) return m->checked;
    if (a->http.find_rate) return found_code(&m->run.rate_search);
    if (targets_missed(&m->run) || has_finding(&m->run, "runs.failed")) return CLI_FINDING;
    return a->strict && has_open_target(&m->run) ? CLI_FAILED : CLI_GOOD;
}

/* ---- the answer ---- */

/* Does a file beside the answer go to stdout in its place? One answer, not two in a row. */
static bool is_replaced(const struct bench_args *a)
{
    for (size_t i = 0; i < RUN_FORMATS; i++)
        if (output_is_answer(a->also[i])) return true;
    return false;
}

/* With --baseline the comparison is the answer in the formats that it has: see compare_baseline(). A file that cannot
 * be written fails the command, but the measurement was made: the answer is still given. */
static tare_status answer_bench(struct cli *cli, const struct bench_args *a, const struct run *run)
{
    const struct run *const runs[] = {run};
    struct run_report r = {runs, 1};
    bool compared = a->baseline.n > 0;
    tare_status s = a->no_save ? TARE_OK : output_keep(cli, &a->history, run, a->json);
    for (size_t i = 0; i < RUN_FORMATS && s == TARE_OK; i++)
        if (a->also[i] && !(compared && comparison_format_find(run_formats[i].name)))
            s = output_runs(cli, a->also[i], &r, run_formats[i].write);
    if (s == TARE_OK && a->html && !compared) s = html_out_runs(cli, a->html, runs, 1);
    if (is_replaced(a) || (compared && a->json)) return s;
    tare_status shown = output_runs(cli, "-", &r, a->json ? report_run_json : report_run_text);
    return s != TARE_OK ? s : shown;
}

/* --baseline: the run against an earlier one, after its own answer. The exit code of the comparison. */
static int compare_baseline(struct cli *cli, const struct bench_args *a, const struct run *run)
{
    struct compare_args c = {.common = MODEL_ARGS_INIT,
                             .min_effect = -1,
                             .base = a->baseline,
                             .fail_on = a->fail_on,
                             .force = a->force,
                             .strict = a->strict,
                             .history = a->history,
                             .json = a->json,
                             .html = a->html,
                             .quiet = is_replaced(a)};
    for (size_t i = 0; i < RUN_FORMATS; i++) {
        if (!a->also[i] || !comparison_format_find(run_formats[i].name)) continue;
        c.also[i].format = run_formats[i].name;
        c.also[i].path = a->also[i];
    }
    if (!c.quiet && !a->json) cli_write(cli, "\n", 1);
    return compare_with_run(cli, &c, run);
}

/* For the process that asked for this launch: the document alone. */
static int hand_over(struct cli *cli, const struct bench_args *a, const struct measured *m)
{
    struct buf text = BUF_INIT;
    tare_status s = run_write(&m->run, &text, &cli->error);
    if (s == TARE_OK) s = file_write_atomic(a->launch_document, text.data, text.len, 0, &cli->error);
    buf_release(&text);
    if (s < 0) return cli_fail(cli);
    return m->checked;
}

/* Judge, answer, compare: what is left once a run was measured. */
static int conclude_bench(struct cli *cli, const struct bench_planned *p, struct measured *m)
{
    const struct bench_args *a = p->args;
    if (a->launch_document) return hand_over(cli, a, m);
    tare_status s = judge_run(cli, p, m);
    if (s == TARE_OK) s = answer_bench(cli, a, &m->run);
    if (s != TARE_OK) return cli_fail(cli);
    if (a->anchor && !a->json && !is_replaced(a)) bench_anchor_show(cli, &m->run);
    int rc = exit_code(cli, a, m);
    int compared = a->baseline.n ? compare_baseline(cli, a, &m->run) : CLI_GOOD;
    return compared > rc ? compared : rc;
}

/* ---- one subject with its sweep ---- */

static int bench_subject(struct cli *cli, const struct bench_planned *p)
{
    struct measured m = {0};
    if (p->args->memory_pass) return bench_memory_pass(cli, p);
    bool launches = p->args->repeat > 1 && !p->args->launch_document;
    int rc = (launches ? measure_launches : measure_here)(cli, p, &m);
    if (!rc && p->args->memory && !p->args->launch_document && bench_memory(cli, p, &m.run) != TARE_OK)
        rc = cli_fail(cli);
    if (!rc) rc = conclude_bench(cli, p, &m);
    run_release(&m.run);
    mem_free(m.model);
    return rc;
}

#define BENCH_ARGS_INIT                                                                              \
    {                                                                                                \
        .budget = {BENCH_BUDGET_NS}, .precision = BENCH_PRECISION, .setup = MODEL_ARGS_INIT,         \
        .metric = ACCURACY_METRIC_COSINE, .history = HISTORY_ARGS_INIT, .max_drop = 0.01,            \
        .warmup = "auto", .repeat = 1, .anchor_budget = {20000000000}, .http = {.speed = 1}          \
    }

/* ---- the suite ---- */

/* The entry's options, then those of the command line, which win, then what is weighed. */
static tare_status entry_words(struct cli *cli, const struct suite_entry *e, struct opt_list *words, int argc,
                               char **argv)
{
    static char name[] = "bench";
    VEC(char *) all = VEC_INIT;
    tare_status s = vec_push(&all, name, &cli->error);
    for (size_t i = 0; i < e->n_options && s == TARE_OK; i++) s = vec_push(&all, e->argv[i], &cli->error);
    for (int i = 1; i < argc && s == TARE_OK; i++) s = vec_push(&all, argv[i], &cli->error);
    for (size_t i = e->n_options; i < e->n && s == TARE_OK; i++) s = vec_push(&all, e->argv[i], &cli->error);
    if (s == TARE_OK) s = vec_push(&all, NULL, &cli->error);
    words->items = all.items; /* the words themselves stay the suite's and the command line's */
    words->n = all.n;
    return s;
}

/* One entry as if its words had been typed; a failure is told with its place in tare.yaml. */
static int bench_entry(struct cli *cli, const struct suite_entry *e, int argc, char **argv)
{
    struct bench_args a = BENCH_ARGS_INIT;
    struct bench_planned p = {0};
    struct opt_list words = OPT_LIST_INIT;
    a.entry = e->name;
    tare_status s = entry_words(cli, e, &words, argc, argv);
    int rc = s == TARE_OK ? bench_args_read(cli, &a, (int)words.n - 1, words.items) : cli_fail(cli);
    if (!rc) rc = bench_make_plan(cli, &a, false, &p);
    if (!rc) rc = bench_subject(cli, &p);
    if (rc == CLI_USAGE || rc == CLI_FAILED)
        cli_note(cli, "in %s:%u: suite entry %s", cli->settings.path, e->line,
                 e->name ? e->name : "without a name");
    mem_free(words.items);
    bench_planned_release(&p);
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

/* Without a subject: the suite in tare.yaml, or else the built-in model. */
int cmd_bench(struct cli *cli, int argc, char **argv)
{
    struct bench_args a = BENCH_ARGS_INIT;
    struct bench_planned p = {0};
    size_t n_suite = 0;
    int rc = bench_args_read(cli, &a, argc, argv);
    bool named = bench_args_name_a_subject(&a);
    if (!named) n_suite = cli->settings.suite.n;
    if (!rc && a.html && n_suite > 1)
        rc = cli_usage_error(cli, "--html writes one page: give each of the %zu entries of the suite its own",
                             n_suite);
    if (!rc) rc = bench_make_plan(cli, &a, !named && !n_suite, &p);
    if (!rc && !named && !n_suite)
        cli_note(cli,
                 "no model named and no suite in tare.yaml: measuring a built-in MiniLM, about 2 minutes; "
                 "yours: tare bench model.onnx");
    if (!rc) rc = n_suite ? bench_suite(cli, argc, argv) : bench_subject(cli, &p);
    bench_planned_release(&p);
    bench_args_release(&a);
    return rc;
}
