/* SPDX-License-Identifier: MIT
 * cmd_report.c - `tare report`: the call tree of a trace, with the instrument's own weight taken out. */
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/trace_arg.h"
#include "report/report.h"

struct asked {
    bool gross, flat, json;
    int sort;
    uint64_t depth, tid;
    double min_percent;
};

/* ---- one thread of all ---- */

static void list_threads(struct buf *out, const struct trace *t)
{
    uint32_t n = trace_n_threads(t);
    for (uint32_t i = 0; i < n && i < 12; i++)
        buf_printf(out, "%s%" PRIu32, i ? ", " : "", trace_thread(t, i)->tid);
    if (n > 12) buf_printf(out, ", and %" PRIu32 " more", n - 12);
    if (n == 0) buf_add_str(out, "none");
}

/* The index of the thread asked for. 0, or the exit code after the user was told. */
static int find_thread(struct cli *cli, const struct trace *t, uint64_t tid, int *out)
{
    uint32_t found = 0;
    for (uint32_t i = trace_n_threads(t); i-- > 0;) {
        if (trace_thread(t, i)->tid != tid) continue;
        *out = (int)i;
        found++;
    }
    if (found > 1)
        cli_warn(cli, "%" PRIu32 " threads had the id %" PRIu64 " one after another; this is the first",
                 found, tid);
    if (found) return 0;
    struct buf all = BUF_INIT;
    list_threads(&all, t);
    error_set(&cli->error, TARE_INVALID, "%s: has no thread %" PRIu64 " (it has: %s)", trace_path(t), tid,
              all.data);
    buf_release(&all);
    return cli_fail(cli);
}

/* ---- the answer ---- */

static int answer(struct cli *cli, struct trace *t, const struct asked *a)
{
    const struct term *term = &cli->out_term;
    struct event_source source;
    struct calltree tree = CALLTREE_INIT;
    struct report_input in = {.source = &source, .tree = &tree};
    in.options = (struct report_options){
        .view = {.sort = (enum tree_sort)a->sort,
                 .gross = a->gross,
                 .depth = (uint32_t)a->depth,
                 .min_share = a->min_percent / 100},
        .flat = a->flat,
        .thread = -1,
        .style = {term_style(term, TERM_BOLD), term_style(term, TERM_DIM), term_style(term, TERM_PLAIN),
                  term->utf8},
    };
    int rc = a->tid ? find_thread(cli, t, a->tid, &in.options.thread) : 0;
    if (rc) return rc;
    event_source_of_trace(&source, t);
    if (calltree_build(&tree, t, in.options.thread, &cli->error) < 0) return cli_fail(cli);
    struct stream s;
    stream_init(&s, cli_sink(cli), &cli->error);
    (a->json ? report_trace_json : report_trace_text)(&s, &in);
    rc = cli_stream_result(cli, stream_finish(&s));
    calltree_release(&tree);
    return rc;
}

int cmd_report(struct cli *cli, int argc, char **argv)
{
    static const struct opt_choice sorts[] = {
#define X(name, text) {text, TREE_SORT_##name, NULL},
        TREE_SORT_MAP(X)
#undef X
            {NULL, 0, NULL}};
    static const struct opt_usage usage = {
        .synopsis = "tare report [options] <trace>",
        .about =
            "Print the call tree of a trace: how often each scope ran, its total and self time, the mean "
            "with its 95 % interval, percentiles, and its share. Times are net: the cost of tare itself, "
            "weighed in the running program, is taken out. Percentiles and the maximum are as read.",
        .tail = "record a trace:    TARE_TRACE=app.tare ./app",
        .min_args = 1,
        .max_args = 1,
        .args = OPT_ARGS_FILES,
    };
    struct asked a = {.sort = TREE_SORT_TOTAL};
    const struct opt rows[] = {
        OPT_FLAG(0, "gross", &a.gross, "times as read, with the cost of tare still in them"),
        OPT_FLAG(0, "flat", &a.flat, "one row per scope over all paths; recursion is counted once"),
        OPT_ENUM('s', "sort", &a.sort, sorts, "order of the rows"),
        OPT_UINT_IN('d', "depth", &a.depth, 0, UINT32_MAX, "levels of the tree to show; 0: all"),
        OPT_DOUBLE(0, "min-share", &a.min_percent, 0, 100, "leave out what takes less than this, in percent"),
        OPT_WITH(OPT_NO_DEFAULT, OPT_ROW_(UINT, 0, "thread", uint, &a.tid, "only the thread with this id"),
                 .arg = "<tid>", .lo = 1, .hi = UINT32_MAX),
        OPT_JSON(&a.json),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    struct trace *t = NULL;
    rc = trace_arg_open(cli, argv[0], &t);
    if (rc) return rc;
    rc = answer(cli, t, &a);
    trace_close(t);
    return rc;
}
