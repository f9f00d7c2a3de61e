/* SPDX-License-Identifier: MIT
 * tune_options.c - the command line of `tare tune`. */
#include <string.h>
#include <unistd.h>

#include "cli/compare/shell_words.h"
#include "cli/html_out.h"
#include "cli/tune/tune_args.h"
#include "core/str.h"

#define X(id, name, help) {name, OBJECTIVE_##id, help},
static const struct opt_choice objective_words[] = {OBJECTIVE_MAP(X){NULL, 0, NULL}};
#undef X

static const struct opt_usage usage = {
    .synopsis = "tare tune [options] <model.onnx>",
    .about = "Find a better configuration of a model: batch, threads, execution mode, graph optimisation, provider, "
             "arena and memory pattern, place of inputs and outputs, and, with --accuracy, precision. The bound of "
             "any gain comes first. What looks best is then measured against what is used today, in pairs, and "
             "recommended only where the gain is confirmed; else the answer is to leave it as it is. Of --batch, "
             "--threads, --provider and --io the first value is what is used today, the others are tried; one value "
             "alone stays. A search that was made before goes on from what it measured.",
    .tail = "tare tune model.onnx\n"
            "tare tune model.onnx --explain\n"
            "tare tune model.onnx --latency 'p95<=50ms' --memory 4GB\n"
            "tare tune model.onnx --accuracy 'agreement>=0.99' --inputs eval.npz\n"
            "tare tune model.onnx --objective latency --threads 4,1,2 --budget 20s\n"
            "Exit status: 0 an answer, also to leave it, 1 no configuration keeps the limits, 2 bad input, 3 could "
            "not measure.",
    .min_args = 1,
    .max_args = 1,
    .args = OPT_ARGS_FILES,
};

const char *const tune_setting_names[TUNE_SETTINGS] = {
    [TUNE_BATCH] = "batch",         [TUNE_THREADS] = "threads",       [TUNE_PRECISION] = "precision",
    [TUNE_PROVIDER] = "provider",   [TUNE_IO] = "io",                 [TUNE_EXECUTION] = "execution",
    [TUNE_LEVEL] = "optimization", [TUNE_ARENA] = "arena",           [TUNE_PATTERN] = "pattern",
};

static tare_status parse_only(void *to, const char *text, tare_error *err)
{
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ","), s = 0;
        while (s < TUNE_SETTINGS &&
               (strlen(tune_setting_names[s]) != n || memcmp(p, tune_setting_names[s], n) != 0))
            s++;
        if (s == TUNE_SETTINGS) return error_set(err, TARE_INVALID, "'%.*s' is no setting", (int)n, p);
        p += n;
        if (!*p) break;
    }
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
#define NO_ROW(...)
#define ALSO_ROW(name, function, help, also_help) \
    OPT_OUT(0, #name, &a->also[RUN_FORMAT_##name], "<file>", also_help),

static struct opt *add_rows(struct tune_args *a, struct opt *to)
{
    const struct opt rows[] = {
        OPT_GROUP("What is wanted"),
        OPT_ENUM(0, "objective", &a->objective, objective_words, "what the best configuration is best at"),
        OPT_STRING(0, "latency", &a->latency, "<limit>", "a limit of the time of a run, as in p95<=50ms"),
        OPT_STRING(0, "memory", &a->memory, "<size>", "a limit of peak memory, as in 4GB"),
        OPT_STRING(0, "accuracy", &a->accuracy, "<limit>",
                 "precision may be lowered while this holds on --inputs, as in agreement>=0.99, cosine>=0.999",
                 .needs = "inputs"),
        OPT_DOUBLE(0, "min-gain", &a->min_gain, 0.001, 10, "a smaller gain is not worth a change (share)"),
        OPT_FLAG(0, "explain", &a->explain, "the bound alone: what could be gained at most; no search"),
        OPT_GROUP("Searching"),
        OPT_TIME_IN('B', "budget", &a->budget, 1000000000, INT64_MAX / 4, "time for the search and the proof"),
        OPT_CALLBACK(0, "only", parse_only, &a->only, "<setting,..>",
                 "vary these alone: batch, threads, precision, provider, io, execution, optimization, arena, pattern"),
        OPT_UINT_IN(0, "max-batch", &a->max_batch, 1, 1 << 20, "the largest batch to try"),
        OPT_UINT(0, "seed", &a->seed, "of the search and the order of measurements"),
        OPT_FLAG(0, "no-resume", &a->no_resume, "measure anew what an earlier search in --output-dir measured"),
        OPT_GROUP("The model"),
        OPT_SWEEP(&a->setup, NULL),
        OPT_RUNTIME(&a->setup, "; for --accuracy, and for the dimensions of what is used today"),
        OPT_GROUP("The answer"),
        OPT_NAME(&a->name),
        OPT_JSON(&a->json),
        RUN_FORMAT_MAP(NO_ROW, ALSO_ROW)
        OPT_HTML(&a->html),
        OPT_HISTORY_DIR(&a->history),
        OPT_FLAG(0, "no-save", &a->no_save, "keep no run document, and nothing in the history"),
        OPT_HISTORY(&a->history),
        OPT_FLAG(0, "no-history", &a->history.none, "keep this run out of the history"),
        OPT_END,
    };
    return opt_append(to, rows);
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

static int check_work(struct cli *cli, const struct tune_args *a)
{
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
    rc = read_limits(cli, a);
    return rc ? rc : check_work(cli, a);
}

void tune_args_release(struct tune_args *a)
{
    model_args_release(&a->setup);
    buf_release(&a->line);
}
