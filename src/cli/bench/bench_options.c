/* SPDX-License-Identifier: MIT
 * bench_options.c - the command line of `tare bench`: what can be asked for, and of what. */
#include <inttypes.h>
#include <string.h>

#include "cli/bench/bench_args.h"
#include "cli/html_out.h"
#include "core/file.h"
#include "load/address.h"

static const struct opt_choice arrival_words[] = {
#define X(name, word, help) {word, ARRIVALS_##name, help},
    LOAD_ARRIVALS_MAP(X)
#undef X
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

static const struct opt_kind kinds[] = {{KIND_MODEL, "models", "this is a model"},
                                        {KIND_COMMAND, "commands", "this is a command"},
                                        {KIND_PYTHON, "Python functions", "this is a Python function"},
                                        {KIND_SERVICE, "services", "this is a service"},
                                        {0, NULL, NULL}};

static const struct opt_usage usage = {
    .synopsis = "tare bench [options] <model.onnx>\ntare bench [options] py:<file.py|module>:<function>\n"
                "tare bench [options] http://<host>/<path>\n"
                "tare bench [options] -- <command> [args]\ntare bench [options]",
    .about = "Measure a model, a Python function, a service or a command: load it, warm it up until it is steady, "
             "measure until the interval is narrow or the budget is spent, and judge the result. Lists of values make "
             "a sweep: all cases are measured in rounds, in random order, so that a drift of the machine hits all "
             "alike. Without a subject the suite in tare.yaml is run, or else a built-in MiniLM.",
    .tail = "tare bench minilm.onnx --batch 1,4,8,16,32 --seq 128\n"
            "tare bench model.onnx --target 'latency.p95<=100ms' --target 'throughput>=1000/s'\n"
            "tare bench fp32.onnx --variant int8=int8.onnx --metric cosine --validate-accuracy\n"
            "tare bench model.onnx --layers\n"
            "tare bench model.onnx --layers attention,mlp,embedding\n"
            "tare bench model.onnx --memory\n"
            "tare bench py:embed.py:encode --inputs texts.txt --batch 8,16,32 --length 32,128,512\n"
            "tare bench http://localhost:8000/predict --body body.json --rate 50/s\n"
            "tare bench --budget 5s -- ./my_program --flag\n"
            "tare bench model.onnx --baseline main.json --repeat 3 --pause 30s\n"
            "Exit status: 0 good, 1 a target missed, accuracy lost or slower than the baseline, 2 bad input,\n3 could "
            "not measure.",
    .max_args = OPT_ANY,
    .args = OPT_ARGS_FILES,
    .kinds = kinds,
};

/* ---- the subject ---- */

static const char no_word[] = "";

/* The word after "--": everything from there on is a command, even if it looks like a model. NULL: no "--". */
static const char *after_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) return i + 1 < argc ? argv[i + 1] : no_word;
    return NULL;
}

int bench_python_target(struct cli *cli, const char *word, const char **out)
{
    const char *target = word + 3, *colon = strrchr(target, ':');
    if (strncmp(word, "py:", 3) != 0 || !colon || colon == target || !colon[1])
        return cli_usage_error(
            cli, "%s: expected py:FILE.py:NAME or py:MODULE:NAME, as in py:embed.py:encode", word);
    *out = target;
    return 0;
}

static int choose_python(struct cli *cli, struct bench_args *a, int n, char **args)
{
    if (n > 1) return cli_usage_error(cli, "'%s': one Python function at a time", args[1]);
    a->kind = KIND_PYTHON;
    return bench_python_target(cli, args[0], &a->python);
}

static int choose_service(struct cli *cli, struct bench_args *a, int n, char **args)
{
    if (n > 1) return cli_usage_error(cli, "'%s': one service at a time", args[1]);
    a->kind = KIND_SERVICE;
    a->url = args[0];
    return 0;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* A script, a program or a command line in place of a model: what to write instead. 0: it may be a model. */
static int refuse_program(struct cli *cli, const char *subject)
{
    struct file_view file = FILE_VIEW_INIT;
    bool there = file_map(subject, &file, NULL) == TARE_OK;
    bool program =
        there && file.size > 4 && (memcmp(file.data, "#!", 2) == 0 || memcmp(file.data, "\177ELF", 4) == 0);
    file_unmap(&file);
    if (ends_in(subject, ".py") && !strchr(subject, ' '))
        return cli_usage_error(
            cli,
            "%s is a Python program, not a model. The whole of it: tare bench -- python %s; one "
            "function of it: tare bench py:%s:NAME",
            subject, subject, subject);
    if (strstr(subject, "://"))
        return cli_usage_error(cli, "%s: only http:// and https:// addresses are known", subject);
    const char *colon = strchr(subject, ':');
    if (!there && colon && colon > subject && colon[1] >= '0' && colon[1] <= '9')
        return cli_usage_error(cli, "%s: no such file; a service is http://%s", subject, subject);
    if (!there && strchr(subject, ' '))
        return cli_usage_error(cli, "'%s' is no file; a command goes after --: tare bench -- %s", subject,
                               subject);
    if (program)
        return cli_usage_error(cli, "%s is a program, not a model: tare bench -- %s", subject, subject);
    return 0;
}

/* What the words that are no options name. A command stands after "--", so that its own options stay its own. */
static int choose_subject(struct cli *cli, struct bench_args *a, const char *command, int n, char **args)
{
    a->kind = KIND_MODEL; /* also if nothing is named: the built-in one */
    if (command == no_word) return cli_usage_error(cli, "nothing after --: where is the command?");
    if (n && args[0] == command) {
        a->kind = KIND_COMMAND;
        a->command = args;
        return a->call.shell && n > 1 ? cli_usage_error(cli, "--shell takes the command as one quoted word")
                                      : 0;
    }
    if (n && strncmp(args[0], "py:", 3) == 0) return choose_python(cli, a, n, args);
    if (n && load_is_url(args[0])) return choose_service(cli, a, n, args);
    if (n > 1)
        return cli_usage_error(
            cli, "'%s': one model at a time (--variant NAME=FILE adds others; a command goes after --)",
            args[1]);
    if (n && a->synth) return cli_usage_error(cli, "--synth and %s: one thing at a time", args[0]);
    a->model = n ? args[0] : NULL;
    return n ? refuse_program(cli, args[0]) : 0;
}

bool bench_args_name_a_subject(const struct bench_args *a)
{
    return a->model || a->python || a->url || a->command || a->synth;
}

/* Parsing moves words about: the processes of --repeat get them as they were. */
static tare_status keep_words(struct bench_args *a, int argc, char **argv, tare_error *err)
{
    tare_status s = TARE_OK;
    vec_clear(&a->words);
    for (int i = 0; s == TARE_OK && i < argc; i++) s = vec_push(&a->words, argv[i], err);
    return s == TARE_OK ? vec_push(&a->words, NULL, err) : s;
}

/* clang-format off */
static struct opt *add_sweep_rows(struct bench_args *a, struct opt *to)
{
    const struct opt rows[] = {
        OPT_GROUP("The sweep"),
        OPT_SWEEP(&a->setup, "texts have --length"),
        OPT_STRING(0, "length", &a->length, "<n,..>", "words of each text (Python functions)",
                 .only_for = KIND_PYTHON, .hint = "models have --seq"),
        OPT_LIST(0, "variant", &a->variants, "<name=file>", "another file of the same model beside it",
                 .only_for = KIND_MODEL),
        OPT_END,
    };
    return opt_append(to, rows);
}

static struct opt *add_measuring_rows(struct bench_args *a, struct opt *to)
{
    const struct opt rows[] = {
        OPT_GROUP("Measuring"),
        OPT_TIME_IN(0, "budget", &a->budget, 1000000, INT64_MAX / 4, "time to measure each case (see --min-runs)"),
        OPT_DOUBLE(0, "precision", &a->precision, 0.0001, 0.5,
                 "stop when the interval is +/- this share of the value"),
        OPT_ENUM(0, "percentile", &a->percentile, percentile_words,
                 "also require this percentile to reach --precision"),
        OPT_UINT_IN(0, "min-runs", &a->min_runs, 1, 1000000,
                 "measure at least this often (default 30; 5 if a run takes over a tenth of the budget)",
                 .flags = OPT_NO_DEFAULT),
        OPT_UINT_IN(0, "max-runs", &a->max_runs, 0, 100000000, "stop after this many runs", .flags = OPT_NO_DEFAULT),
        OPT_STRING(0, "warmup", &a->warmup, "<n|auto>", "runs before measuring; auto: until steady"),
        OPT_CALLBACK(0, "concurrency", model_parse_ints, &a->concurrencies, "<n,..>",
                 "runs under way at once; several for services (default 1)"),
        OPT_STRING(0, "rate", &a->rate, "<n/s>",
                 "start runs on a schedule; latency then counts from the planned start; several for services"),
        OPT_ENUM(0, "arrivals", &a->arrivals, arrival_words, "how --rate spaces run starts",
                 .needs = "rate find-rate"),
        OPT_STRING(0, "scenario", &a->scenario, "<name>",
                 "a preset in the manner of MLPerf: single-stream, multi-stream, server, offline"),
        OPT_STRING(0, "unit", &a->unit, "<word>", "what is counted: texts, pairs, images, tokens"),
        OPT_UINT_IN(0, "per-run", &a->per_run, 0, 1000000000, "units in one run (default: the batch)",
                 .flags = OPT_NO_DEFAULT),
        OPT_UINT(0, "seed", &a->seed, "seed of generated inputs, order and arrivals"),
        OPT_UINT_IN(0, "repeat", &a->repeat, 1, 1000,
                 "repeat the whole bench in fresh processes and report the spread"),
        OPT_TIME_IN(0, "pause", &a->pause, 0, 3600000000000,
                 "minimum time between launch starts; 30s makes launches independent", .needs = "repeat",
                    .flags = OPT_NO_DEFAULT),
        OPT_FLAG(0, "memory", &a->memory, "allocations of a run: how many, how large, where; by a pass of its own",
                 .only_for = KIND_MODEL | KIND_COMMAND | KIND_PYTHON, .hint = "a service allocates elsewhere"),
        OPT_STRING(0, "launch-document", &a->launch_document, "<file>", "one of --repeat",
                 .flags = OPT_HIDDEN | OPT_NO_ENV | OPT_NO_DEFAULT),
        OPT_UINT_IN(0, "memory-pass", &a->memory_pass, 0, 1000000, "one of --memory",
                 .flags = OPT_HIDDEN | OPT_NO_ENV | OPT_NO_DEFAULT),
        OPT_END,
    };
    return opt_append(to, rows);
}

static struct opt *add_subject_rows(struct bench_args *a, struct opt *to)
{
    const struct opt rows[] = {
        OPT_GROUP("Models"),
        OPT_RUNTIME(&a->setup, "; for Python functions a text per line, a .json list or an .npy; "
                    "for services a body per line"),
        OPT_STRING(0, "synth", &a->synth, "<arch>",
                 "measure a synthetic model of this architecture (tare synth --list)",
                 .only_for = KIND_MODEL, .hint = "one thing at a time"),
        {OPT_ROW_(CALLBACK, 0, "layers", ctx, a,
                  "time and cost of each layer, by a pass of its own; patterns group them"),
         .callback = bench_layers_parse, .takes = bench_layers_takes, .arg = "[<pattern,..>]",
         .only_for = KIND_MODEL},
        OPT_GROUP("Commands"),
        OPT_COMMANDS(&a->call, "a command goes after --"),
        OPT_END,
    };
    return bench_llm_rows(a, bench_http_rows(a, opt_append(to, rows)));
}

static struct opt *add_judging_rows(struct bench_args *a, struct opt *to)
{
    const struct opt rows[] = {
        OPT_GROUP("Judging"),
        OPT_LIST(0, "target", &a->targets, "<target>",
                 "a limit, as in latency.p95<=100ms; exit 1 if missed"),
        OPT_ENUM(0, "objective", &a->objective, objective_words, "what the recommended case is best at"),
        OPT_TIME_IN(0, "latency-limit", &a->latency_limit, 0, INT64_MAX,
                 "recommend only cases whose p95 is surely within this", .flags = OPT_NO_DEFAULT),
        OPT_PATH(0, "expect", &a->expect, "<path>",
                 "labels or reference outputs of --inputs, npz or JSONL; of a service what it is to answer",
                 .only_for = KIND_MODEL | KIND_SERVICE, .not_with = "llm find-rate"),
        OPT_ENUM(0, "metric", &a->metric, accuracy_words, "how outputs are compared"),
        OPT_FLAG(0, "validate-accuracy", &a->validate, "exit 1 if a case is worse than the first by --max-drop",
                 .only_for = KIND_MODEL),
        OPT_DOUBLE(0, "max-drop", &a->max_drop, 0, 1e9, "accepted loss of accuracy"),
        OPT_GROUP("Against an earlier run"),
        OPT_LIST(0, "baseline", &a->baseline, "<run>",
                 "file, folder, @name or id in the history; exit 1 on a regression"),
        OPT_LIST(0, "fail-on", &a->fail_on, "<limit>",
                 "fail only if this metric is worse by more than this (95 % sure), as in latency.p95>5%"),
        OPT_FLAG(0, "strict", &a->strict, "exit 3 when a target or the comparison is undecided",
                 .needs = "baseline target"),
        OPT_FLAG(0, "force", &a->force, "compare also with another machine, unit or load", .needs = "baseline"),
        OPT_GROUP("Against an anchor"),
        OPT_STRING(0, "anchor", &a->anchor, "<model|command>",
                 "a frozen build to measure in turn with this one; tare trend follows the ratio",
                 .only_for = KIND_MODEL | KIND_COMMAND, .not_with = "variant rate",
                 .hint = "one model in one runtime, one run at a time"),
        OPT_STRING(0, "anchor-name", &a->anchor_name, "<name>",
                 "what the history calls it (default: the file and its hash, or the command)", .needs = "anchor"),
        OPT_TIME_IN(0, "anchor-budget", &a->anchor_budget, 1000000, INT64_MAX / 4, "time for that, each case"),
        OPT_END,
    };
    return opt_append(to, rows);
}

/* A list is a sweep over the load of a service; of anything else it is the number of workers. */
static int read_concurrency(struct cli *cli, struct bench_args *a)
{
    struct grid_ints all = {VEC_INIT};
    if (!a->concurrencies) a->concurrencies = "1";
    if (grid_parse_ints(&all, a->concurrencies, &cli->error) < 0) return cli_fail(cli);
    a->concurrency = (uint64_t)all.values.items[0];
    bool several = all.values.n > 1, is_service = a->kind == KIND_SERVICE;
    vec_release(&all.values);
    if (is_service || (!several && a->concurrency <= 1024)) return 0;
    return cli_usage_error(cli, "--concurrency %s: %s", a->concurrencies,
                           several ? "several are for services" : "at most 1024");
}

int bench_args_read(struct cli *cli, struct bench_args *a, int argc, char **argv)
{
    struct opt rows[OPT_ROWS_MAX], *end = rows;
    end = add_sweep_rows(a, end);
    end = add_measuring_rows(a, end);
    end = add_subject_rows(a, end);
    end = add_judging_rows(a, end);
    output_add_rows(end, &(struct output_rows){&a->name, a->also, &a->html, &a->json, &a->no_save, &a->history});
    const char *command = after_dashes(argc, argv);
    if (keep_words(a, argc, argv, &cli->error) < 0) return cli_fail(cli);
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (!rc && a->max_runs && a->min_runs > a->max_runs)
        rc = cli_usage_error(cli, "--min-runs %" PRIu64 " is more than --max-runs %" PRIu64, a->min_runs, a->max_runs);
    if (!rc) rc = choose_subject(cli, a, command, argc, argv);
    if (!rc) rc = read_concurrency(cli, a);
    if (!rc) rc = bench_memory_check(cli, a);
    return rc ? rc : cli_check_kind(cli, &usage, rows, a->kind);
}
/* clang-format on */

void bench_args_release(struct bench_args *a)
{
    opt_list_release(&a->variants);
    opt_list_release(&a->targets);
    opt_list_release(&a->groups);
    opt_list_release(&a->baseline);
    opt_list_release(&a->fail_on);
    asking_args_release(&a->http.asking);
    vec_release(&a->words);
    model_args_release(&a->setup);
}
