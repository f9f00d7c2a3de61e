/* SPDX-License-Identifier: MIT
 * bench_options.c - the command line of `tare bench`: rows, presets, and what may not go together. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/compare/compare_saved.h"
#include "bench/bench.h"
#include "cli/bench/bench_args.h"
#include "cli/html_out.h"
#include "cli/compare/compare_args.h"
#include "core/unit.h"

static const struct opt_choice arrival_words[] = {
    {"poisson", BENCH_POISSON, "random gaps, as many users make"},
    {"constant", BENCH_CONSTANT, "equal gaps"},
    {NULL, 0, NULL}};

static const struct opt_choice accuracy_words[] = {
#define X(name, text, less, labels, help) {text, ACCURACY_METRIC_##name, help},
    ACCURACY_METRIC_MAP(X)
#undef X
    {NULL, 0, NULL}};

static const struct opt_choice percentile_words[] = {
    {"p50", 0, NULL}, {"p90", 90, NULL}, {"p95", 95, NULL}, {"p99", 99, NULL}, {NULL, 0, NULL}};

#define X(id, name, help) {name, OBJECTIVE_##id, help},
static const struct opt_choice objective_words[] = {OBJECTIVE_MAP(X){NULL, 0, NULL}};
#undef X

static const struct opt_usage usage = {
    .synopsis = "tare bench [options] <model.onnx>\ntare bench [options] py:<file.py|module>:<function>\n"
                "tare bench [options] -- <command> [args]\ntare bench [options]",
    .about = "Weigh a model, a Python function or a command: load it, warm it up until it is steady, measure until the "
             "interval is narrow or the budget is spent, and judge the result. Lists of values make a sweep: all cases "
             "are measured in rounds, in random order, so that a drift of the machine hits all alike. Without a "
             "subject the suite in tare.yaml is run, or else a built-in MiniLM.",
    .tail = "tare bench minilm.onnx --batch 1,4,8,16,32 --seq 128\n"
            "tare bench model.onnx --target 'latency.p95<=100ms' --target 'throughput>=1000/s'\n"
            "tare bench fp32.onnx --variant int8=int8.onnx --metric cosine --validate-accuracy\n"
            "tare bench model.onnx --layers\n"
            "tare bench model.onnx --layers attention,mlp,embedding\n"
            "tare bench py:embed.py:encode --inputs texts.txt --batch 8,16,32 --length 32,128,512\n"
            "tare bench --budget 5s -- ./my_program --flag\n"
            "tare bench model.onnx --baseline main.json --repeat 3 --pause 30s\n"
            "Exit status: 0 good, 1 a target missed, accuracy lost or slower than the baseline, 2 bad input, 3 could "
            "not measure.",
    .max_args = OPT_ANY,
    .args = OPT_ARGS_FILES,
    .stop_at_arg = false,
};

/* ---- what does not fit into one row ---- */

static int read_rate(struct cli *cli, struct bench_args *a)
{
    if (!a->rate) return 0;
    double v;
    if (!unit_parse(UNIT_FREQUENCY, a->rate, &v) || !(v > 0) || v > 1e9)
        return cli_usage_error(cli, "--rate %s: expected runs per second, as in 200/s", a->rate);
    a->plan.rate = v;
    a->plan.load = BENCH_OPEN;
    return 0;
}

static int read_warmup(struct cli *cli, struct bench_args *a)
{
    if (!a->warmup || strcmp(a->warmup, "auto") == 0) return 0;
    char *end;
    long long v = strtoll(a->warmup, &end, 10);
    if (end == a->warmup || *end || v < 0 || v > 1000000000)
        return cli_usage_error(cli, "--warmup %s: expected auto or a number of runs", a->warmup);
    a->plan.warmup_runs = v;
    return 0;
}

static int read_targets(struct cli *cli, struct bench_args *a)
{
    for (size_t i = 0; i < a->targets.n; i++) {
        struct target t;
        if (target_parse(&t, a->targets.items[i], &cli->error) != TARE_OK)
            return cli_usage_error(cli, "--target %s", cli->error.text);
        if (vec_push(&a->parsed, t, &cli->error) != TARE_OK) return cli_fail(cli);
    }
    return 0;
}

/* A preset sets the load; what the user asked for beside it stays. */
static int apply_scenario(struct cli *cli, struct bench_args *a)
{
    const struct bench_preset *p = NULL;
    if (!a->scenario) return 0;
    if (bench_preset_apply(&a->plan, a->scenario, &p, &cli->error) != TARE_OK)
        return cli_usage_error(cli, "%s", cli->error.text);
    if (p->needs_rate && !a->rate)
        return cli_usage_error(cli, "--scenario %s needs --rate, as in --rate 200/s", p->name);
    if (a->rate && !p->needs_rate) return cli_usage_error(cli, "--scenario %s has no --rate", p->name);
    a->percentile = (int)(p->percentile * 100 + 0.5);
    a->arrivals = p->arrivals;
    if (p->batch && !a->command && !a->grid.batch.values.n &&
        vec_push(&a->grid.batch.values, p->batch, &cli->error) != TARE_OK)
        return cli_fail(cli);
    return 0;
}

/* ---- the subject ---- */

static const char no_word[] = "";

/* The word after "--": everything from there on is a command, even if it looks like a model. NULL: no "--". */
static const char *after_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) return i + 1 < argc ? argv[i + 1] : no_word;
    return NULL;
}

static int choose_subject(struct cli *cli, struct bench_args *a, const char *command, int n, char **args)
{
    if (command == no_word) return cli_usage_error(cli, "nothing after --: where is the command?");
    if (n && args[0] == command) {
        a->command = args;
        if (a->synth) return cli_usage_error(cli, "--synth and a command: one thing at a time");
        if (a->expect || a->variants.n || a->validate || a->inputs || a->runtimes.n || a->layers)
            return cli_usage_error(
                cli, "--expect, --variant, --validate-accuracy, --inputs, --layers and --ort are for models");
        if (a->length) return cli_usage_error(cli, "--length is for Python functions that take texts");
        if (a->shell && n > 1) return cli_usage_error(cli, "--shell takes the command as one quoted word");
        if (a->grid.batch.values.n || a->grid.seq.values.n || a->grid.dims.n || a->grid.providers.n ||
            a->grid.threads.values.n)
            return cli_usage_error(
                cli,
                "--batch, --seq, --dim, --threads and --provider are for models; a command has no such settings");
        return 0;
    }
    if (n && bench_python_named(args[0])) return bench_python_choose(cli, a, n, args);
    if (a->length)
        return cli_usage_error(cli, "--length is for Python functions that take texts; models have --seq");
    if (a->shell || a->prepare || a->timeout.ns || a->ignore_failure)
        return cli_usage_error(
            cli, "--shell, --prepare, --timeout and --ignore-failure are for commands, which go after --");
    if (n > 1)
        return cli_usage_error(
            cli, "'%s': one model at a time (--variant NAME=FILE adds others; a command goes after --)",
            args[1]);
    if (n && a->synth) return cli_usage_error(cli, "--synth and %s: one thing at a time", args[0]);
    a->model = n ? args[0] : NULL;
    return 0;
}

static void fill_plan(struct bench_args *a)
{
    struct bench_plan *p = &a->plan;
    p->budget_ns = (uint64_t)a->budget.ns;
    p->percentile = a->percentile / 100.0;
    p->arrivals = (enum bench_arrivals)a->arrivals;
    p->concurrency = (unsigned)a->concurrency;
    p->per_run = (int64_t)a->per_run;
    bool items = a->inputs || a->grid.batch.values.n; /* of a Python function, which else counts calls */
    const char *usual = a->command ? "runs" : !a->python ? "samples" : items ? "items" : "calls";
    p->unit = a->unit ? a->unit : usual;
    a->grid.workers = p->concurrency;
    a->grid.seed = p->seed;
}

static int check_expected(struct cli *cli, const struct bench_args *a)
{
    if (!a->expect || access(a->expect, R_OK) == 0) return 0;
    return cli_usage_error(cli, "--expect %s: %s", a->expect, strerror(errno));
}

static int check_variants(struct cli *cli, const struct bench_args *a)
{
    for (size_t i = 0; i < a->variants.n; i++) {
        const char *text = a->variants.items[i], *eq = strchr(text, '=');
        if (!eq || eq == text || !eq[1])
            return cli_usage_error(cli, "--variant %s: expected NAME=FILE, as in int8=model-int8.onnx", text);
    }
    return 0;
}

/* A rate of texts against a bench of images would be found out only after minutes of measuring. */
static int check_units(struct cli *cli, const struct bench_args *a)
{
    for (size_t i = 0; i < a->parsed.n; i++)
        if (target_check_unit(&a->parsed.items[i], a->plan.unit, &cli->error) != TARE_OK)
            return cli_usage_error(cli, "--target %s: %s", a->targets.items[i], cli->error.text);
    return 0;
}

/* What cannot be read, or means nothing, is better known before minutes of measuring than after. */
static int check_baseline(struct cli *cli, const struct bench_args *a)
{
    struct compare_limit l;
    if (!a->baseline.n && (a->strict || a->force))
        return cli_usage_error(cli, "--strict and --force go with --baseline");
    if (!a->baseline.n && a->fail_on.n) /* tare.yaml may hold it for all runs */
        cli_note(cli, "--fail-on has nothing to compare with: there is no --baseline");
    for (size_t i = 0; i < a->fail_on.n; i++)
        if (compare_limit_parse(&l, a->fail_on.items[i], &cli->error) < 0)
            return cli_usage_error(cli, "--fail-on %s", cli->error.text);
    return a->baseline.n ? compare_runs_check(cli, &a->baseline, &a->history, NULL) : 0;
}

/* What rows cannot say, once all are read. */
static int settle(struct cli *cli, struct bench_args *a)
{
    int rc = check_variants(cli, a);
    if (!rc) rc = check_expected(cli, a);
    if (!rc) rc = read_rate(cli, a);
    if (!rc) rc = read_warmup(cli, a);
    if (!rc) rc = read_targets(cli, a);
    if (!rc) rc = apply_scenario(cli, a);
    if (!rc) rc = check_baseline(cli, a);
    if (rc) return rc;
    fill_plan(a);
    return check_units(cli, a);
}

/* Parsing moves words about: the processes of --repeat get them as they were. */
static tare_status keep_words(struct bench_args *a, int argc, char **argv, tare_error *err)
{
    tare_status s = TARE_OK;
    vec_clear(&a->words);
    for (int i = 0; s == TARE_OK && i < argc; i++) s = vec_push(&a->words, argv[i], err);
    return s == TARE_OK ? vec_push(&a->words, NULL, err) : s;
}

int bench_args_read(struct cli *cli, struct bench_args *a, int argc, char **argv)
{
    const struct opt rows[] = {
        OPT_GROUP("The sweep"),
        OPT_CALLBACK('b', "batch", grid_parse_ints, &a->grid.batch, "<n,..>", "batch sizes"),
        OPT_CALLBACK('s', "seq", grid_parse_ints, &a->grid.seq, "<n,..>", "sequence lengths"),
        OPT_STRING(0, "length", &a->length, "<n,..>", "words of each text (Python functions)"),
        OPT_CALLBACK('t', "threads", grid_parse_ints, &a->grid.threads, "<n,..>",
                 "threads within one run (default: what this process may use)"),
        OPT_CALLBACK(0, "dim", grid_parse_dim, &a->grid, "<name=n,..>",
                 "any other free dimension of the model; may be repeated"),
        OPT_CALLBACK(0, "provider", grid_parse_providers, &a->grid, "<name,..>",
                 "execution providers: cpu, cuda, .."),
        OPT_LIST(0, "variant", &a->variants, "<name=file>", "another file of the same model beside it"),
        OPT_LIST(0, "ort", &a->runtimes, "<path>", "which libonnxruntime; several are compared"),
        OPT_GROUP("Measuring"),
        OPT_TIME_IN(0, "budget", &a->budget, 1000000, INT64_MAX / 4, "time to measure each case (see --min-runs)"),
        OPT_DOUBLE(0, "precision", &a->plan.precision, 0.0001, 0.5,
                 "stop when the interval is +/- this share of the value"),
        OPT_ENUM(0, "percentile", &a->percentile, percentile_words,
                 "which must be that narrow, beside the median"),
        OPT_UINT_IN(0, "min-runs", &a->plan.min_runs, 1, 1000000, "measure at least this often"),
        OPT_WITH(OPT_NO_DEFAULT,
                 OPT_ROW_(UINT, 0, "max-runs", uint, &a->plan.max_runs, "and at most this often"),
                 .hi = 100000000),
        OPT_STRING(0, "warmup", &a->warmup, "<n|auto>", "runs before measuring; auto: until steady"),
        OPT_UINT_IN(0, "concurrency", &a->concurrency, 1, 1024, "runs under way at once"),
        OPT_STRING(0, "rate", &a->rate, "<n/s>",
                 "start runs on a schedule; latency then counts from the planned start"),
        OPT_ENUM(0, "arrivals", &a->arrivals, arrival_words, "of --rate"),
        OPT_STRING(0, "scenario", &a->scenario, "<name>",
                 "a preset in the manner of MLPerf: single-stream, multi-stream, server, offline"),
        OPT_STRING(0, "unit", &a->unit, "<word>", "what is counted: texts, pairs, images, tokens"),
        OPT_WITH(OPT_NO_DEFAULT,
                 OPT_ROW_(UINT, 0, "per-run", uint, &a->per_run, "units in one run (default: the batch)"),
                 .hi = 1000000000),
        OPT_UINT(0, "seed", &a->plan.seed, "of made-up inputs, order and arrivals"),
        BENCH_REPEAT_ROWS(a),
        BENCH_MODEL_ROWS(a),
        BENCH_LAYERS_ROW(a),
        BENCH_COMMAND_ROWS(a),
        OPT_GROUP("Judging"),
        OPT_LIST(0, "target", &a->targets, "<target>",
                 "a limit, as in latency.p95<=100ms; exit 1 if missed"),
        OPT_ENUM(0, "objective", &a->objective, objective_words, "what the recommended case is best at"),
        OPT_WITH(OPT_NO_DEFAULT,
                 OPT_ROW_(DURATION, 0, "latency-limit", duration, &a->latency_limit,
                          "of p95, for the recommended case"),
                 .hi = INT64_MAX),
        OPT_PATH(0, "expect", &a->expect, "<path>", "labels or reference outputs, npz or JSONL"),
        OPT_ENUM(0, "metric", &a->metric, accuracy_words, "how outputs are compared"),
        OPT_FLAG(0, "validate-accuracy", &a->validate, "exit 1 if a case is worse than the first by --max-drop"),
        OPT_DOUBLE(0, "max-drop", &a->max_drop, 0, 1e9, "accepted loss of accuracy"),
        BENCH_BASELINE_ROWS(a),
        BENCH_ANCHOR_ROWS(a),
        OPT_GROUP("The answer"),
        OPT_JSON(&a->json),
        OPT_PATH(0, "csv", &a->csv, "<file>", "also as CSV; - is stdout"),
        OPT_PATH(0, "md", &a->md, "<file>", "also as Markdown"),
        OPT_PATH(0, "junit", &a->junit, "<file>", "also as JUnit XML"),
        OPT_HTML(&a->html),
        OPT_HISTORY_DIR(&a->history),
        OPT_FLAG(0, "no-save", &a->no_save, "keep no run document, and nothing in the history"),
        OPT_HISTORY(&a->history),
        OPT_FLAG(0, "no-history", &a->history.none, "keep this run out of the history"),
        OPT_END,
    };
    const char *command = after_dashes(argc, argv);
    if (keep_words(a, argc, argv, &cli->error) < 0) return cli_fail(cli);
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (!rc) rc = choose_subject(cli, a, command, argc, argv);
    if (!rc) rc = bench_anchor_check(cli, a);
    if (!rc) rc = html_out_check(cli, a->html);
    return rc ? rc : settle(cli, a);
}

void bench_args_release(struct bench_args *a)
{
    opt_list_release(&a->variants);
    opt_list_release(&a->runtimes);
    opt_list_release(&a->session_config);
    opt_list_release(&a->targets);
    opt_list_release(&a->groups);
    opt_list_release(&a->baseline);
    opt_list_release(&a->fail_on);
    vec_release(&a->words);
    vec_release(&a->parsed);
    grid_release(&a->grid);
}
