/* SPDX-License-Identifier: MIT
 * cmd_compare.c - `tare compare`: its command line, which way of comparing it asks for, and the answer that all ways
 * end with. Measures nothing itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/memory/memory_group.h"
#include "cli/command.h"
#include "cli/compare/compare_args.h"
#include "cli/html_out.h"
#include "cli/stacks_words.h"
#include "cli/output.h"
#include "core/str.h"
#include "core/unit.h"
#include "load/address.h"
#include "report/compare/comparison_report.h"

static const struct opt_choice format_words[] = {{"text", 0, "for people"},
                                                 {"json", 1, "the document"},
                                                 {"md", 2, "Markdown, for a pull request or a job summary"},
                                                 {"junit", 3, "metrics as test cases"},
                                                 {"github", 4, "annotations of a GitHub workflow"},
                                                 {NULL, 0, NULL}};

enum {
    SAVED = KIND_SAVED,
    IN_TURN = KIND_MODEL | KIND_COMMAND | KIND_SERVICE,
    KEPT = KIND_SAVED | KIND_TRACES
};
static const struct opt_kind kinds[] = {
    {KIND_SAVED, "saved runs", "saved runs are compared as they are"},
    {KIND_TRACES, "traces under --gpu, --memory or --stacks", "these are traces"},
    {KIND_MODEL, "models under --ab", "these are models, measured in turn"},
    {KIND_COMMAND, "commands under --ab", "these are commands, measured in turn"},
    {KIND_SERVICE, "services under --ab", "these are services, measured in turn"},
    {0, NULL, NULL}};

static const struct opt_usage usage = {
    .synopsis = "tare compare [options] <base> <new>\n"
                "tare compare [options] --base <run>... --new <run>...\n"
                "tare compare [options] <comparison.json>\n"
                "tare compare --gpu [options] <base.tare> <new.tare>\n"
                "tare compare --gpu [options] --base <trace>... --new <trace>...\n"
                "tare compare --memory [options] <base.tare> <new.tare>\n"
                "tare compare --stacks [options] <base.tare> <new.tare>\n"
                "tare compare --ab [options] <base> <new>\n"
                "tare compare --ab [options] http://<base> http://<new>\n"
                "tare compare --ab [options] <model.onnx> --a '<options>' --b '<options>'\n"
                "tare compare --ab-rev <base..new> [--build <line>] [options] -- <command> [args]",
    .about = "Is the new one slower? Saved runs are judged by how much runs of this machine differ anyway: "
             "three a side, or a history of eight, else the answer is unverified. A side is a run document, a "
             "folder of them, or @name (a baseline or an id in the history); a comparison that was kept is shown "
             "again. With --ab both sides are measured in turn, in pairs whose order a coin decides, so that a "
             "drift of the machine hits both alike. Measuring stops when the interval of the ratio is narrow "
             "enough or the budget is spent, never because a verdict looks decided. A side is an .onnx file, the "
             "address of a service or a command as one quoted word. Models are loaded afresh many times, laid out "
             "differently each time. With --gpu two traces are compared by their steps: which kernels take longer, how "
             "busy the GPU was, and why "
             "it was not; several a side by how much runs differ. With --memory by who held memory: which sites hold "
             "or allocate more, which have begun to grow. With --stacks by where the time of sampled threads went: "
             "which functions gained or lost share.",
    .tail = "tare compare base.json new.json\n"
            "tare compare @main new.json --fail-on 'latency.p95>5%' --format md\n"
            "tare compare --ab old.onnx new.onnx --batch 16\n"
            "tare compare --ab './old --n 5' './new --n 5' --budget 60s\n"
            "tare compare --ab http://old:8000/predict http://new:8001/predict --body body.json\n"
            "tare compare --ab model.onnx --a '--threads 1' --b '--threads 2'\n"
            "tare compare --ab model.onnx --ort libonnxruntime.so.1.20.1 --ort libonnxruntime.so.1.30.0\n"
            "tare compare --gpu base.tare new.tare --fail-on 'step.time>3%'\n"
            "tare compare --memory base.tare new.tare --fail-on 'site.peak>10%'\n"
            "tare compare --stacks base.tare new.tare\n"
            "tare compare --ab-rev main..HEAD --build make -- ./program --flag\n"
            "Exit status: 0 no regression, 1 a regression, 2 bad input, 3 could not measure, not comparable, or "
            "undecided under --strict.",
    .max_args = OPT_ANY,
    .args = OPT_ARGS_FILES,
    .kinds = kinds,
};

/* "1%" or "0.01". */
static tare_status parse_share(void *to, const char *text, tare_error *err)
{
    double v;
    if (!unit_parse(UNIT_SHARE, text, &v) || v > 1)
        return error_set(err, TARE_INVALID, "expected a share, as in 1%%");
    *(double *)to = v;
    return TARE_OK;
}

static bool has_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) return true;
    return false;
}

/* Two names, or --base and --new; neither: the sides stay empty. */
static int choose_sides(struct cli *cli, struct compare_args *a)
{
    if (a->base.n || a->new_.n)
        return !a->n && a->base.n && a->new_.n
                   ? 0
                   : cli_usage_error(
                         cli, "several runs a side: --base and --new, each once at least, and nothing else");
    if (a->n != 2) return 0;
    a->base = (struct opt_list){&a->args[0], 1, false}; /* borrowed: never released */
    a->new_ = (struct opt_list){&a->args[1], 1, false};
    a->positional = true;
    return 0;
}

/* Saved runs, or one document to show again. */
static int choose_saved(struct cli *cli, struct compare_args *a)
{
    for (int i = 0; i < a->n; i++)
        if (str_ends_with(a->args[i], ".onnx"))
            return cli_usage_error(cli, "%s is a model: --ab measures two of them in turn", a->args[i]);
    for (int i = 0; i < a->n; i++)
        if (str_ends_with(a->args[i], ".tare"))
            return cli_usage_error(
                cli,
                "%s is a trace: --gpu compares what GPUs did in two of them, --memory who held memory, --stacks "
                "where the time went",
                a->args[i]);
    int rc = choose_sides(cli, a);
    if (rc || a->base.n) return rc;
    return a->n == 1
               ? 0
               : cli_usage_error(
                     cli, "two saved runs are compared (--base and --new take several); --ab measures two "
                          "things in turn, --ab-rev two git revisions");
}

static const char *word_of_traces(const struct compare_args *a)
{
    if (a->gpu) return "gpu";
    return a->memory ? "memory" : "stacks";
}

static int choose_traces(struct cli *cli, struct compare_args *a)
{
    int rc = choose_sides(cli, a);
    if (rc || a->base.n) return rc;
    return cli_usage_error(
        cli, "--%s compares two traces: name the base and the new one (--base and --new take several)",
        word_of_traces(a));
}

/* What the two sides are, as far as words tell it. */
static int choose_way(struct cli *cli, struct compare_args *a)
{
    if (a->gpu || a->memory || a->stacks) return choose_traces(cli, a);
    if (!a->ab && !a->revisions) return choose_saved(cli, a);
    if (a->revisions && (!a->dashes || a->n < 1))
        return cli_usage_error(cli, "--ab-rev measures a command: give it after --");
    return 0;
}

static unsigned kind_of(const struct compare_args *a)
{
    if (a->gpu || a->memory || a->stacks) return KIND_TRACES;
    if (!a->ab && !a->revisions) return KIND_SAVED;
    if (a->ab && a->n && load_is_url(a->args[0])) return KIND_SERVICE;
    return a->ab && a->n && compare_is_model(a->args[0]) ? KIND_MODEL : KIND_COMMAND;
}

/* The kind is known from words alone, before any file is opened: what is not for it is refused at once. */
static int read_args(struct cli *cli, struct compare_args *a, int argc, char **argv)
{
    static const struct opt_choice bys[] = {
#define X(name, word, help) {word, MEMORY_BY_##name, help},
        MEMORY_BY_MAP(X)
#undef X
            {NULL, 0, NULL}};
    const struct opt rows[] = {
        OPT_GROUP("What is compared"),
        OPT_FLAG(0, "ab", &a->ab, "measure two models, two commands or two services in turn", .not_with = "ab-rev"),
        OPT_FLAG(0, "gpu", &a->gpu, "compare what GPUs did in two traces of tare run --gpu or tare import",
                 .not_with = "ab ab-rev"),
        OPT_FLAG(0, "memory", &a->memory, "compare who held memory in two traces of tare run --memory",
                 .not_with = "ab ab-rev gpu"),
        OPT_ENUM(0, "by", &a->by, bys, "sites of memory summed up so", .needs = "memory"),
        OPT_FLAG(0, "stacks", &a->stacks,
                 "compare where sampled threads were in two traces of tare run --stacks or tare attach",
                 .not_with = "ab ab-rev gpu memory"),
        OPT_ENUM(0, "time", &a->time, stacks_time_choices, "which time of sampled stacks", .needs = "stacks"),
        OPT_STRING(0, "ab-rev", &a->revisions, "<base..new>", "measure a command of two git revisions in turn"),
        OPT_STRING(0, "build", &a->build, "<line>", "shell line that builds each revision", .needs = "ab-rev"),
        OPT_STRING(0, "a", &a->options[PAIR_A], "<options>", "options of the base side alone", .only_for = KIND_MODEL),
        OPT_STRING(0, "b", &a->options[PAIR_B], "<options>", "options of the new side alone", .only_for = KIND_MODEL),
        OPT_GROUP("Saved runs"),
        OPT_LIST(0, "base", &a->base, "<run>",
                 "a run of the base side: file, folder, @name or id; a trace under --gpu, --memory or --stacks",
                 .only_for = KEPT),
        OPT_LIST(0, "new", &a->new_, "<run>", "a run of the new side", .only_for = KEPT),
        OPT_LIST(0, "fail-on", &a->fail_on, "<limit>",
                 "fail only if this metric is worse by more than this (95 % sure), as in latency.p95>5%",
                 .only_for = KEPT),
        OPT_FLAG(0, "force", &a->force, "compare also what is not comparable: other machine, unit, load",
                 .only_for = SAVED),
        OPT_FLAG(0, "close-runs", &a->close_runs, "count runs less than 30 s apart separately", .only_for = KEPT),
        OPT_HISTORY(&a->history),
        OPT_SERVER(&a->history),
        OPT_FLAG(0, "no-history", &a->history.none, "judge without the history"),
        OPT_GROUP("Models"),
        OPT_SWEEP(&a->common, NULL),
        OPT_RUNTIME(&a->common, ""),
        OPT_GROUP("Commands"),
        OPT_COMMANDS(&a->call, NULL),
        OPT_GROUP("Services"),
        OPT_UINT_IN(0, "concurrency", &a->concurrency, 1, 1000, "requests under way at once", .only_for = KIND_SERVICE),
        OPT_ASKING(&a->asking),
        OPT_GROUP("Measuring and judging"),
        OPT_TIME_IN(0, "budget", &a->budget, 1000000, INT64_MAX / 4, "time for each case, launching included"),
        OPT_UINT_IN(0, "max-pairs", &a->max_pairs, 0, AB_PAIRS_MAX, "measure at most so many pairs",
                 .flags = OPT_NO_DEFAULT, .only_for = IN_TURN),
        OPT_CALLBACK(0, "min-effect", parse_share, &a->min_effect, "<share>",
                 "a change within this counts as none (default: 1%, saved runs 2%)"),
        OPT_UINT_IN(0, "seed", &a->seed, 0, INT64_MAX, "of the coin and the layouts (default: a new one)",
                 .flags = OPT_NO_DEFAULT, .only_for = IN_TURN),
        OPT_FLAG(0, "strict", &a->strict, "exit 3 when the verdict is inconclusive or unverified"),
        OPT_GROUP("The answer"),
        OPT_ENUM('f', "format", &a->format, format_words, "how to print it"),
        OPT_OUT('o', "output", &a->output, "<file>", "write to this file instead of stdout"),
        OPT_JSON(&a->json),
        OPT_HTML(&a->html),
        OPT_FLAG(0, "samples", &a->samples, "keep every pair in the document"),
        OPT_STRING(0, "output-dir", &a->history.output_dir, "<dir>", "where the document goes", .flags = OPT_DIR),
        OPT_FLAG(0, "no-save", &a->no_save, "keep no document"),
        OPT_END,
    };
    a->dashes = has_dashes(argc, argv);
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    a->args = argv;
    a->n = argc;
    rc = html_out_check(cli, a->html);
    if (!rc) rc = cli_check_kind(cli, &usage, rows, kind_of(a));
    return rc ? rc : choose_way(cli, a);
}

/* ---- the answer: the document is kept, then shown, and its verdict becomes the exit code ---- */

static tare_status save_comparison(struct cli *cli, const struct compare_args *a, const struct comparison *c)
{
    char path[4096];
    struct buf text = BUF_INIT;
    struct run_file file = {a->history.output_dir, "compare", str_file_name(c->new_.name), c->created};
    if (a->no_save) return TARE_OK;
    tare_status s = comparison_write(c, &text, &cli->error);
    if (s == TARE_OK) s = run_save_text(&file, &text, path, sizeof path, &cli->error);
    if (s == TARE_OK && !a->json && a->format != 1) cli_note_last(cli, "kept as %s", path);
    buf_release(&text);
    return s;
}

/* One format into a file; path NULL or "-": the answer. */
static tare_status compare_write(struct cli *cli, const char *path, const struct comparison *c,
                                 const struct comparison_format *format)
{
    struct output o;
    tare_status s = output_open(cli, &o, path);
    if (s < 0) return s;
    format->write(&o.stream, c);
    return output_close(cli, &o);
}

/* The comparison, then the runs of the base, then the new ones; what they are called tells them apart. */
static tare_status write_page(struct cli *cli, const char *path, const struct comparison *c,
                              const struct compare_saved_sides *saved)
{
    struct html_out h = HTML_OUT_INIT;
    tare_status s = html_out_comparison(&h, c, &cli->error);
    static const char *const names[PAIR_SIDES] = {"base", "new"};
    size_t n = saved ? saved->side[PAIR_A].n + saved->side[PAIR_B].n : 0;
    for (int side = 0; n && side < PAIR_SIDES; side++)
        for (size_t i = 0; s == TARE_OK && i < saved->side[side].n; i++)
            s = html_out_run(&h, names[side], saved->side[side].runs[i], n, &cli->error);
    if (s == TARE_OK) s = html_out_write(cli, &h, path, c->new_.name);
    html_out_release(&h);
    return s;
}

static tare_status show_comparison(struct cli *cli, const struct compare_args *a, const struct comparison *c,
                                   const struct compare_saved_sides *saved)
{
    const char *format = a->json ? "json" : format_words[a->format].name;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < sizeof a->also / sizeof *a->also; i++)
        if (a->also[i].format)
            s = compare_write(cli, a->also[i].path, c, comparison_format_find(a->also[i].format));
    if (s == TARE_OK && a->html) s = write_page(cli, a->html, c, saved);
    tare_status shown = a->quiet ? s : compare_write(cli, a->output, c, comparison_format_find(format));
    return s < 0 ? s : shown;
}

static int exit_code(const struct compare_args *a, const char *verdict)
{
    if (strcmp(verdict, "regressed") == 0) return CLI_FINDING;
    bool open = strcmp(verdict, "inconclusive") == 0 || strcmp(verdict, "unverified") == 0;
    return open && a->strict ? CLI_FAILED : CLI_GOOD;
}

/* A limit that could not be read must be heard of, whatever else is printed and wherever to. */
static void tell_undecided(struct cli *cli, const struct compare_args *a, const struct comparison *c)
{
    for (size_t i = 0; a->fail_on.n && i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n; k++) {
            const struct comparison_metric *m = c->cases.at[i]->metrics.at[k];
            bool open = strcmp(m->verdict, "unverified") == 0 || strcmp(m->verdict, "inconclusive") == 0;
            if (open && strcmp(m->role, "gate") == 0)
                cli_note(cli, "--fail-on %s is not decided for %s%s%s", m->metric, c->cases.at[i]->name,
                         m->why ? ": " : "", m->why ? m->why : "");
        }
}

int compare_answer(struct cli *cli, const struct compare_args *a, const struct comparison *c,
                   const struct compare_saved_sides *saved)
{
    tare_status kept =
        saved ? TARE_OK : save_comparison(cli, a, c); /* saved runs tell it again at any time */
    tare_error why = cli->error;
    tare_status shown = show_comparison(
        cli, a, c, saved); /* measured is measured: a full disk does not take the answer away */
    if (kept < 0) cli->error = why;
    tell_undecided(cli, a, c);
    return kept < 0 || shown < 0 ? cli_fail(cli) : exit_code(a, c->verdict);
}

/* Given as plain arguments, both sides point into argv and are not ours to release. */
int cmd_compare(struct cli *cli, int argc, char **argv)
{
    struct compare_args a = {.common = MODEL_ARGS_INIT,
                             .by = MEMORY_BY_FUNCTION,
                             .time = STACKS_CPU,
                             .budget = {60000000000},
                             .min_effect = -1,
                             .history = HISTORY_ARGS_INIT,
                             .concurrency = 1,
                             .samples = true};
    int rc = read_args(cli, &a, argc, argv);
    if (rc)
        ; /* the user was told */
    else if (a.gpu || a.memory || a.stacks)
        rc = compare_traces(cli, &a);
    else if (a.ab || a.revisions)
        rc = compare_ab(cli, &a);
    else if (a.base.n)
        rc = compare_runs(cli, &a);
    else
        rc = compare_shown_again(cli, &a);
    if (!a.positional) {
        opt_list_release(&a.base);
        opt_list_release(&a.new_);
    }
    opt_list_release(&a.fail_on);
    model_args_release(&a.common);
    asking_args_release(&a.asking);
    return rc;
}
