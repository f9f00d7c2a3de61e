/* SPDX-License-Identifier: MIT
 * cmd_compare.c - `tare compare`: its command line, and which way of comparing it asks for. Measures nothing itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/compare/compare_args.h"
#include "cli/html_out.h"
#include "core/str.h"
#include "core/unit.h"

enum { SAVED = 1, IN_TURN = 2 };
static const struct opt_kind kinds[] = {
    {SAVED, "saved runs", "saved runs are compared as they are"},
    {IN_TURN, "what is measured with --ab", "this measures both sides in turn"},
    {0, NULL, NULL}};

static const struct opt_usage usage = {
    .synopsis = "tare compare [options] <base> <new>\n"
                "tare compare [options] --base <run>... --new <run>...\n"
                "tare compare [options] <comparison.json>\n"
                "tare compare --ab [options] <base> <new>\n"
                "tare compare --ab [options] <model.onnx> --a '<options>' --b '<options>'\n"
                "tare compare --ab-rev <base..new> [--build <line>] [options] -- <command> [args]",
    .about = "Is the new one slower? Saved runs are judged by how much runs of this machine differ anyway: "
             "three a side, or a history of eight, else the answer is unverified. A side is a run document, a "
             "folder of them, or @name (a baseline or an id in the history); a comparison that was kept is shown "
             "again. With --ab both sides are measured in turn, in pairs whose order a coin decides, so that a "
             "drift of the machine hits both alike. Measuring stops when the interval of the ratio is narrow "
             "enough or the budget is spent, never because a verdict looks decided. A side is an .onnx file or a "
             "command as one quoted word. Models are loaded afresh many times, laid out differently each time.",
    .tail = "tare compare base.json new.json\n"
            "tare compare @main new.json --fail-on 'latency.p95>5%' --format md\n"
            "tare compare --ab old.onnx new.onnx --batch 16\n"
            "tare compare --ab './old --n 5' './new --n 5' --budget 60s\n"
            "tare compare --ab model.onnx --a '--threads 1' --b '--threads 2'\n"
            "tare compare --ab model.onnx --ort libonnxruntime.so.1.20.1 --ort libonnxruntime.so.1.30.0\n"
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

/* Saved runs: two names, or --base and --new, or one document to show again. */
static int choose_saved(struct cli *cli, struct compare_args *a)
{
    for (int i = 0; i < a->n; i++)
        if (str_ends_with(a->args[i], ".onnx"))
            return cli_usage_error(cli, "%s is a model: --ab measures two of them in turn", a->args[i]);
    if (a->base.n || a->new_.n) {
        if (a->n || !a->base.n || !a->new_.n)
            return cli_usage_error(
                cli, "several runs a side: --base and --new, each once at least, and nothing else");
        return 0;
    }
    if (a->n < 1 || a->n > 2)
        return cli_usage_error(
            cli, "two saved runs are compared (--base and --new take several); --ab measures two "
                 "things in turn, --ab-rev two git revisions");
    if (a->n == 2) { /* borrowed: never released */
        a->base = (struct opt_list){&a->args[0], 1, false};
        a->new_ = (struct opt_list){&a->args[1], 1, false};
        a->positional = true;
    }
    return 0;
}

/* What the two sides are, as far as words tell it. */
static int choose_way(struct cli *cli, struct compare_args *a)
{
    if (!a->ab && !a->revisions) return choose_saved(cli, a);
    if (a->revisions && (!a->dashes || a->n < 1))
        return cli_usage_error(cli, "--ab-rev measures a command: give it after --");
    return 0;
}

static int read_args(struct cli *cli, struct compare_args *a, int argc, char **argv)
{
    struct compare_texts *t = &a->common;
    const struct opt rows[] = {
        OPT_GROUP("What is compared"),
        OPT_FLAG(0, "ab", &a->ab, "measure two models or two commands in turn", .not_with = "ab-rev"),
        OPT_STRING(0, "ab-rev", &a->revisions, "<base..new>", "measure a command of two git revisions in turn"),
        OPT_STRING(0, "build", &a->build, "<line>", "shell line that builds each revision", .needs = "ab-rev"),
        OPT_STRING(0, "a", &a->options[PAIR_A], "<options>", "options of the base side alone", .only_for = IN_TURN),
        OPT_STRING(0, "b", &a->options[PAIR_B], "<options>", "options of the new side alone", .only_for = IN_TURN),
        OPT_GROUP("Saved runs"),
        OPT_LIST(0, "base", &a->base, "<run>", "a run of the base side: file, folder, @name or id",
                 .only_for = SAVED),
        OPT_LIST(0, "new", &a->new_, "<run>", "a run of the new side", .only_for = SAVED),
        OPT_LIST(0, "fail-on", &a->fail_on, "<limit>",
                 "fail only if this metric is worse by more than this (95 % sure), as in latency.p95>5%",
                 .only_for = SAVED),
        OPT_FLAG(0, "force", &a->force, "compare also what is not comparable: other machine, unit, load",
                 .only_for = SAVED),
        OPT_FLAG(0, "close-runs", &a->close_runs, "runs less than 30 s apart count each", .only_for = SAVED),
        OPT_HISTORY(&a->history),
        OPT_FLAG(0, "no-history", &a->history.none, "judge without the history"),
        OPT_GROUP("Models"),
        OPT_STRING('b', "batch", &t->batch, "<n,..>", "batch sizes; several are several cases", .only_for = IN_TURN),
        OPT_STRING('s', "seq", &t->seq, "<n,..>", "sequence lengths", .only_for = IN_TURN),
        OPT_STRING('t', "threads", &t->threads, "<n,..>", "threads within one run", .only_for = IN_TURN),
        OPT_LIST(0, "dim", &t->dims, "<name=n,..>", "any other free dimension of the model; may be repeated",
                 .only_for = IN_TURN),
        OPT_STRING(0, "provider", &t->provider, "<name>", "execution provider: cpu, cuda, ..", .only_for = IN_TURN),
        OPT_LIST(0, "ort", &t->runtimes, "<path>", "which libonnxruntime; twice: one for each side",
                 .only_for = IN_TURN),
        OPT_PATH(0, "inputs", &t->inputs, "<path>", "an .npz, an .npy, a folder of them, or an ONNX test_data_set",
                 .only_for = IN_TURN),
        OPT_WITH(OPT_NO_DEFAULT,
                 OPT_ROW_(INT, 0, "optimization", sint, &t->optimization,
                          "the runtime's graph optimisation level: 0, 1, 2, 99"),
                 .lo = -1, .hi = 99),
        OPT_LIST(0, "session-config", &t->session_config, "<key=value>", "passed to the runtime", .only_for = IN_TURN),
        OPT_FLAG(0, "no-arena", &t->no_arena, "let the runtime allocate without its arena"),
        OPT_GROUP("Commands"),
        OPT_FLAG(0, "shell", &a->shell, "commands are lines for /bin/sh", .only_for = IN_TURN),
        OPT_STRING(0, "prepare", &a->prepare, "<line>", "shell line before each run, not timed",
                 .only_for = IN_TURN),
        OPT_WITH(OPT_NO_DEFAULT, OPT_ROW_(DURATION, 0, "timeout", duration, &a->timeout, "end a run that takes longer"),
                 .hi = INT64_MAX),
        OPT_FLAG(0, "ignore-failure", &a->ignore_failure, "a non-zero exit status is no failure"),
        OPT_GROUP("Measuring and judging"),
        OPT_TIME_IN(0, "budget", &a->budget, 1000000, INT64_MAX / 4, "time for each case, launching included"),
        OPT_WITH(OPT_NO_DEFAULT, OPT_ROW_(UINT, 0, "max-pairs", uint, &a->max_pairs, "measure at most so many pairs"),
                 .hi = AB_PAIRS_MAX, .only_for = IN_TURN),
        OPT_CALLBACK(0, "min-effect", parse_share, &a->min_effect, "<share>",
                 "a change within this counts as none (default: 1%, saved runs 2%)"),
        OPT_WITH(OPT_NO_DEFAULT,
                 OPT_ROW_(UINT, 0, "seed", uint, &a->seed, "of the coin and the layouts (default: a new one)"),
                 .hi = INT64_MAX, .only_for = IN_TURN),
        OPT_FLAG(0, "strict", &a->strict, "exit 3 when the verdict is inconclusive or unverified"),
        OPT_GROUP("The answer"),
        OPT_ENUM('f', "format", &a->format, compare_format_words, "how to print it"),
        OPT_PATH('o', "output", &a->output, "<file>", "write to this file instead of stdout"),
        OPT_JSON(&a->json),
        OPT_HTML(&a->html),
        OPT_FLAG(0, "samples", &a->samples, "keep every pair in the document"),
        OPT_WITH(OPT_DIR, OPT_ROW_(STRING, 0, "output-dir", string, &a->history.output_dir, "where the document goes"),
                 .arg = "<dir>"),
        OPT_FLAG(0, "no-save", &a->no_save, "keep no document"),
        OPT_END,
    };
    a->dashes = has_dashes(argc, argv);
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    a->args = argv;
    a->n = argc;
    rc = html_out_check(cli, a->html);
    if (!rc) rc = cli_check_kind(cli, &usage, rows, a->ab || a->revisions ? IN_TURN : SAVED);
    return rc ? rc : choose_way(cli, a);
}

int cmd_compare(struct cli *cli, int argc, char **argv)
{
    struct compare_args a = {.common = COMPARE_TEXTS_INIT,
                             .budget = {60000000000},
                             .min_effect = -1,
                             .history = HISTORY_ARGS_INIT,
                             .samples = true};
    int rc = read_args(cli, &a, argc, argv);
    if (rc)
        ; /* the user was told */
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
    opt_list_release(&a.common.dims);
    opt_list_release(&a.common.runtimes);
    opt_list_release(&a.common.session_config);
    return rc;
}
