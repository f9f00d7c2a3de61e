/* SPDX-License-Identifier: MIT
 * tune_options.c - the command line of `tare tune`. */
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench_args.h"
#include "cli/shell_words.h"
#include "cli/tune/tune_args.h"
#include "core/str.h"

#define X(id, name, help) {name, OBJECTIVE_##id, help},
static const struct opt_choice objective_words[] = {OBJECTIVE_MAP(X){NULL, 0, NULL}};
#undef X

static const struct opt_kind kinds[] = {{KIND_MODEL, "models", "this is a model"},
                                        {KIND_PYTHON, "data loaders", "this is a data loader"},
                                        {0, NULL, NULL}};

static const struct opt_usage usage = {
    .synopsis = "tare tune [options] <model.onnx>\n"
                "tare tune [options] py:<file.py|module>:<make_loader> [--step py:<file.py|module>:<step>]",
    .about = "Find a better configuration of a model: batch, threads, execution mode, graph optimisation, provider, "
             "arena and memory pattern, place of inputs and outputs, and, with --accuracy, precision; or of a data "
             "loader: workers, prefetch, threads or processes, cache, pinning, and, with --batch, batch. The bound of "
             "any gain comes first. What looks best is then measured against what is used today, in pairs, and "
             "recommended only where the gain is confirmed; else the answer is to leave it as it is. Of --batch, "
             "--threads, --provider and --io the first value is what is used today, the others are tried; one value "
             "alone stays. A search that was made before goes on from what it measured.",
    .tail = "tare tune model.onnx\n"
            "tare tune model.onnx --explain\n"
            "tare tune model.onnx --latency 'p95<=50ms' --memory 4GB\n"
            "tare tune model.onnx --accuracy 'agreement>=0.99' --inputs eval.npz\n"
            "tare tune model.onnx --objective latency --threads 4,1,2 --budget 20s\n"
            "tare tune py:train.py:make_loader --step py:train.py:step\n"
            "Exit status: 0 an answer, also to leave it, 1 no configuration keeps the limits, 2 bad input, 3 could "
            "not measure.",
    .min_args = 1,
    .max_args = 1,
    .args = OPT_ARGS_FILES,
    .kinds = kinds,
};

const char *const tune_setting_names[TUNE_SETTINGS] = {
    [TUNE_BATCH] = "batch",         [TUNE_THREADS] = "threads",       [TUNE_PRECISION] = "precision",
    [TUNE_PROVIDER] = "provider",   [TUNE_IO] = "io",                 [TUNE_EXECUTION] = "execution",
    [TUNE_LEVEL] = "optimization", [TUNE_ARENA] = "arena",           [TUNE_PATTERN] = "pattern",
};

const char *const tune_loader_settings[] = {"workers", "prefetch", "mode", "cache", "pinning", "batch", NULL};

static bool is_word(const char *p, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(p, word, n) == 0;
}

static bool is_setting(unsigned kind, const char *p, size_t n)
{
    for (int s = 0; kind & KIND_MODEL && s < TUNE_SETTINGS; s++)
        if (is_word(p, n, tune_setting_names[s])) return true;
    for (const char *const *w = tune_loader_settings; kind & KIND_PYTHON && *w; w++)
        if (is_word(p, n, *w)) return true;
    return false;
}

/* The first word of the list that is no setting of such a thing, and its length; NULL: all are. */
static const char *not_a_setting(unsigned kind, const char *list, size_t *n)
{
    for (const char *p = list; p; p = p[*n] ? p + *n + 1 : NULL)
        if (!is_setting(kind, p, *n = strcspn(p, ","))) return p;
    return NULL;
}

static tare_status parse_only(void *to, const char *text, tare_error *err)
{
    size_t n = 0;
    const char *bad = not_a_setting(KIND_MODEL | KIND_PYTHON, text, &n);
    if (bad) return error_set(err, TARE_INVALID, "'%.*s' is no setting", (int)n, bad);
    *(const char **)to = text;
    return TARE_OK;
}

bool tune_varies(const struct tune_args *a, enum tune_setting s)
{
    size_t n = strlen(tune_setting_names[s]);
    for (const char *p = a->only; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, tune_setting_names[s], n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
    return !a->only;
}

/* clang-format off */
static struct opt *add_rows(struct tune_args *a, struct opt *to)
{
    const struct opt rows[] = {
        OPT_GROUP("What is wanted"),
        OPT_ENUM(0, "objective", &a->objective, objective_words, "what the best configuration is best at"),
        OPT_STRING(0, "latency", &a->latency, "<limit>",
                 "a limit of the time of a run, of a loader that of a batch and its step, as in p95<=50ms"),
        OPT_STRING(0, "memory", &a->memory, "<size>", "a limit of peak memory, as in 4GB"),
        OPT_STRING(0, "accuracy", &a->accuracy, "<limit>",
                 "precision may be lowered while this holds on --inputs, as in agreement>=0.99, cosine>=0.999",
                 .needs = "inputs", .only_for = KIND_MODEL),
        OPT_DOUBLE(0, "min-gain", &a->min_gain, 0.001, 10, "a smaller gain is not worth a change (share)"),
        OPT_FLAG(0, "explain", &a->explain, "the bound alone: what could be gained at most; no search"),
        OPT_GROUP("Searching"),
        OPT_TIME_IN('B', "budget", &a->budget, 1000000000, INT64_MAX / 4, "time for looking, the search and the proof"),
        OPT_CALLBACK(0, "only", parse_only, &a->only, "<setting,..>",
                 "vary these alone: batch, threads, precision, provider, io, execution, optimization, arena, pattern; "
                 "of a loader: workers, prefetch, mode, cache, pinning, batch"),
        OPT_UINT_IN(0, "max-batch", &a->max_batch, 1, 1 << 20, "the largest batch to try", .only_for = KIND_MODEL),
        OPT_UINT(0, "seed", &a->seed, "of the search and the order of measurements"),
        OPT_FLAG(0, "no-resume", &a->no_resume, "measure anew what an earlier search in --output-dir measured"),
        OPT_GROUP("The loader"),
        OPT_STRING(0, "step", &a->step, "<py:..:step>",
                 "what is done with each batch: step(batch), called some hundred times; the gain is then that of the "
                 "loop, and not of the loader alone", .only_for = KIND_PYTHON),
        OPT_GROUP("The model"),
        OPT_SWEEP(&a->setup, NULL),
        OPT_RUNTIME(&a->setup, "; for --accuracy, and for the dimensions of what is used today"),
        OPT_END,
    };
    const struct output_rows answer = {&a->name, a->also, &a->html, &a->json, &a->no_save, &a->history};
    return output_add_rows(opt_append(to, rows), &answer);
}
/* clang-format on */

/* ---- limits ---- */

static int add_target(struct cli *cli, struct tune_args *a, const char *option, const char *text)
{
    struct target *t = &a->targets[a->n_targets];
    if (target_parse(t, text, &cli->error) < 0)
        return cli_usage_error(cli, "--%s: %s", option, cli->error.text);
    a->n_targets++;
    return 0;
}

static int add_latency(struct cli *cli, struct tune_args *a)
{
    int rc = add_target(cli, a, "latency", a->latency);
    if (rc) return rc;
    const struct target *t = &a->targets[a->n_targets - 1];
    const struct measure *m = measure_find(t->metric);
    if (strncmp(t->metric, "latency.", 8) == 0 && m->quantile > 0 && t->op != TARGET_GE && t->op != TARGET_GT)
        return 0;
    return cli_usage_error(cli, "--latency %s: a percentile and its limit, as in p95<=50ms", a->latency);
}

static int add_memory(struct cli *cli, struct tune_args *a)
{
    char text[64];
    if (strlen(a->memory) > 40) return cli_usage_error(cli, "--memory %.40s..: a size, as in 4GB", a->memory);
    snprintf(text, sizeof text, "memory.peak<=%s", a->memory + strspn(a->memory, "<= "));
    return add_target(cli, a, "memory", text);
}

/* "agreement" is the word that people use of classes; the others are those of bench --metric. */
static bool find_metric(const char *name, size_t n, enum accuracy_metric *out)
{
    static const char *const names[] = {
#define X(id, text, less, labels, help) [ACCURACY_METRIC_##id] = text,
        ACCURACY_METRIC_MAP(X)
#undef X
    };
    if (n == 9 && memcmp(name, "agreement", 9) == 0) {
        *out = ACCURACY_METRIC_TOP1;
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) != n || memcmp(names[i], name, n) != 0) continue;
        *out = (enum accuracy_metric)i;
        return !accuracy_metric_row(*out)->needs_labels;
    }
    return false;
}

static int add_accuracy(struct cli *cli, struct tune_args *a)
{
    char text[64];
    size_t n = strcspn(a->accuracy, "<>= ");
    if (!find_metric(a->accuracy, n, &a->metric))
        return cli_usage_error(cli, "--accuracy %s: begin with agreement, cosine, equal, max-abs or rel-l2",
                               a->accuracy);
    if (strlen(a->accuracy + n) > 40)
        return cli_usage_error(cli, "--accuracy %.40s..: too long for a limit", a->accuracy);
    snprintf(text, sizeof text, "accuracy%s", a->accuracy + n);
    int rc = add_target(cli, a, "accuracy", text);
    if (rc) return rc;
    a->gate = &a->targets[a->n_targets - 1];
    bool at_most = a->gate->op == TARGET_LE || a->gate->op == TARGET_LT;
    if (at_most == accuracy_metric_row(a->metric)->less_is_better) return 0;
    return cli_usage_error(cli, "--accuracy %s: of this metric %s is better", a->accuracy,
                           at_most ? "more" : "less");
}

static int read_limits(struct cli *cli, struct tune_args *a)
{
    int rc = a->latency ? add_latency(cli, a) : 0;
    if (!rc && a->memory) rc = add_memory(cli, a);
    return !rc && a->accuracy ? add_accuracy(cli, a) : rc;
}

static int check_loader(struct cli *cli, struct tune_args *a)
{
    size_t n = 0;
    int rc = bench_python_target(cli, a->model, &a->model);
    if (!rc && a->step) rc = bench_python_target(cli, a->step, &a->step);
    if (rc) return rc;
    if (a->setup.inputs) return cli_usage_error(cli, "--inputs: a data loader reads its own");
    if (a->objective != OBJECTIVE_THROUGHPUT)
        return cli_usage_error(cli,
                               "--objective: of a data loader, throughput; limit the rest with --latency "
                               "and --memory");
    const char *bad = not_a_setting(KIND_PYTHON, a->only, &n);
    return bad ? cli_usage_error(cli, "--only: '%.*s' is no setting of a data loader", (int)n, bad) : 0;
}

static int check_work(struct cli *cli, const struct tune_args *a)
{
    size_t n = 0;
    const char *bad = not_a_setting(KIND_MODEL, a->only, &n);
    if (bad) return cli_usage_error(cli, "--only: '%.*s' is no setting of a model", (int)n, bad);
    if (a->setup.seq && strchr(a->setup.seq, ','))
        return cli_usage_error(cli, "--seq: one length is tuned for");
    for (size_t i = 0; i < a->setup.dims.n; i++)
        if (strchr(a->setup.dims.items[i], ','))
            return cli_usage_error(cli, "--dim %s: one value is tuned for", a->setup.dims.items[i]);
    if (a->setup.runtimes.n > 1) return cli_usage_error(cli, "--ort: one runtime is tuned for");
    if (access(a->model, R_OK) == 0) return 0;
    error_errno(&cli->error, "%s", a->model);
    return cli_fail_input(cli);
}

int tune_args_read(struct cli *cli, struct tune_args *a, int argc, char **argv)
{
    struct opt rows[OPT_ROWS_MAX];
    add_rows(a, rows);
    buf_add_str(&a->line, "tare tune");
    for (int i = 1; i < argc; i++) {
        buf_add_char(&a->line, ' ');
        words_quote(&a->line, argv[i]);
    }
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    a->model = argv[0];
    a->kind = strncmp(a->model, "py:", 3) == 0 ? KIND_PYTHON : KIND_MODEL;
    rc = cli_check_kind(cli, &usage, rows, a->kind);
    if (!rc) rc = read_limits(cli, a);
    if (rc) return rc;
    return a->kind == KIND_PYTHON ? check_loader(cli, a) : check_work(cli, a);
}

void tune_args_release(struct tune_args *a)
{
    model_args_release(&a->setup);
    buf_release(&a->line);
}
