/* SPDX-License-Identifier: MIT
 * trace_text.c - the call tree of a trace for people: a head, a table, counters and marks, and a foot that
 * says what the instrument weighed and what was lost. Never shows more digits than are known. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/trace/report.h"
#include "report/table.h"
#include "report/text.h"
#include "trace/format.h"

#define NAME_SHOWN 160    /* bytes of a name in a table */
#define COMMAND_SHOWN 240 /* bytes of a command line */
#define DRAWN_DEPTH 48    /* deeper rows say their depth instead of drawing it */
#define PROCESSES_SHOWN 8

struct writer {
    struct stream *s;
    const struct report_input *in;
    const struct calltree *shown; /* the tree, or the flat one */
    const struct calltree *flat;
    struct view view;
    uint64_t last_at_depth; /* bit d: the row above at depth d had no sibling after it */
    uint32_t notes;         /* flags seen in the rows */
    uint64_t abandoned;
};

static const struct report_style *style(const struct writer *w)
{
    return &w->s->style;
}

static struct buf *out(const struct writer *w)
{
    return &w->s->out;
}

static void begin_line(const struct writer *w, const char *key)
{
    buf_printf(out(w), "%s%-10s%s ", style(w)->dim, key, style(w)->plain);
}

static void add_clipped(struct buf *b, const char *s, size_t max)
{
    size_t n = text_clip(s, max);
    text_plain(b, s, n);
    if (s[n]) buf_add_str(b, "...");
}

/* ---- the head ---- */

/* Of processes that did not close the trace. */
static const char *const ends[] = {
    [RECORD_END_UNTOLD] = "killed, or still running",
    [RECORD_END_DISK] = "recording ended before it did",
    [RECORD_END_PAGE] = "recording ended before it did",
    [RECORD_END_KEPT] = "ended, but the archive could not take it all: its live file is needed"};

static void write_process(const struct writer *w, const struct trace_process *p, bool single)
{
    begin_line(w, single ? "command" : "process");
    if (!single) buf_printf(out(w), "%" PRIu32 " ", p->pid);
    add_clipped(out(w), *p->command ? p->command : "(unknown)", COMMAND_SHOWN);
    if (!p->closed) buf_printf(out(w), "  (%s)", ends[p->end]);
    buf_add_char(out(w), '\n');
}

static void write_processes(const struct writer *w)
{
    const struct event_source *src = w->in->source;
    for (uint32_t i = 0; i < src->n_processes && i < PROCESSES_SHOWN; i++)
        write_process(w, source_process(src, i), src->n_processes == 1);
    if (src->n_processes > PROCESSES_SHOWN) {
        begin_line(w, "");
        buf_printf(out(w), "and %" PRIu32 " more\n", src->n_processes - PROCESSES_SHOWN);
    }
}

static void write_clock(const struct writer *w)
{
    const struct event_source *src = w->in->source;
    if (src->n_processes == 0) return;
    const struct trace_process *p = source_process(src, 0);
    begin_line(w, "clock");
    buf_printf(out(w), "%s, %s", report_clock_name(p->clock),
               p->tsc ? "time-stamp counter" : "CLOCK_MONOTONIC_RAW (no trustworthy time-stamp counter)");
    if (p->tick_ns > 0) buf_printf(out(w), ", %.3g ns per tick", p->tick_ns);
    for (uint32_t i = 1; i < src->n_processes; i++) {
        const struct trace_process *q = source_process(src, i);
        if (q->clock == p->clock && q->tsc == p->tsc) continue;
        buf_add_str(out(w), "; other processes differ (see --json)");
        break;
    }
    buf_add_char(out(w), '\n');
}

static void write_scope_of_report(const struct writer *w, struct report_span span)
{
    const struct event_source *src = w->in->source;
    struct buf *b = out(w);
    begin_line(w, "recorded");
    fmt_date(b, span.start_unix_ns, false);
    buf_add_str(b, ", ");
    fmt_duration(b, (double)(span.duration_ns > w->in->sampled_ns ? span.duration_ns : w->in->sampled_ns));
    buf_add_str(b, ", ");
    fmt_counted(b, src->n_processes, "process", "processes");
    buf_add_str(b, ", ");
    fmt_counted(b, src->n_threads, "thread", "threads");
    buf_add_char(b, '\n');
    begin_line(w, "contents");
    if (src->has_tree) buf_add_str(b, src->has_events ? "call tree and " : "call tree, no events");
    if (src->has_events) fmt_counted(b, span.events, "event", "events");
    bool scopes = src->has_tree || src->has_events;
    if (w->in->samples && scopes) buf_add_str(b, ", ");
    if (w->in->samples) fmt_counted(b, w->in->samples, "sample of probes", "samples of probes");
    if (!w->in->samples && !scopes) buf_add_str(b, "nothing");
    buf_add_char(b, '\n');
    if (w->in->options.thread < 0 || (uint32_t)w->in->options.thread >= src->n_threads) return;
    const struct trace_thread *t = source_thread(src, (uint32_t)w->in->options.thread);
    begin_line(w, "thread");
    buf_printf(b, "%" PRIu32 " ", t->tid);
    add_clipped(b, t->name, NAME_SHOWN);
    buf_add_str(b, " only\n");
}

static void write_head(const struct writer *w)
{
    begin_line(w, "trace");
    add_clipped(out(w), w->in->source->path, COMMAND_SHOWN);
    buf_add_char(out(w), '\n');
    write_processes(w);
    write_scope_of_report(w, report_span(w->in->source));
    write_clock(w);
    buf_add_char(out(w), '\n');
}

/* ---- the table ---- */

static const struct table_column net_columns[] = {
    {"count", false}, {"total", false}, {"self", false}, {"mean", false},    {"+/-", false},   {"p50", false},
    {"p95", false},   {"p99", false},   {"max", false},  {"threads", false}, {"share", false}, {"name", true},
};
static const struct table_column gross_columns[] = {
    {"count", false}, {"total", false}, {"self", false},    {"mean", false},  {"p50", false}, {"p95", false},
    {"p99", false},   {"max", false},   {"threads", false}, {"share", false}, {"name", true},
};

static void add_branches(struct writer *w, struct buf *b, const struct view_row *row)
{
    static const char *const ascii[4] = {"|  ", "   ", "|- ", "`- "};
    static const char *const lines[4] = {"│  ", "   ", "├─ ", "└─ "};
    const char *const *draw = style(w)->utf8 ? lines : ascii;
    if (row->depth == 0) return;
    if (row->depth >= DRAWN_DEPTH) {
        buf_printf(b, "(depth %" PRIu32 ") ", row->depth);
        return;
    }
    for (uint32_t d = 1; d < row->depth; d++) buf_add_str(b, draw[w->last_at_depth >> d & 1]);
    buf_add_str(b, draw[2 + row->last]);
    w->last_at_depth &= ~(UINT64_C(1) << row->depth);
    w->last_at_depth |= (uint64_t)row->last << row->depth;
}

static void add_name(struct writer *w, struct buf *b, const struct call_node *n)
{
    const struct trace_site *site = source_site(w->in->source, n->site);
    add_clipped(b, site->name, NAME_SHOWN);
    if (w->in->options.flat && *site->file) {
        buf_add_str(b, "  ");
        add_clipped(b, site->file, NAME_SHOWN);
        buf_printf(b, ":%" PRIu32, site->line);
    }
    if (n->flags & CALL_BELOW_LIMIT && !w->in->options.view.gross) buf_add_str(b, " [a]");
    if (n->flags & CALL_FAST_CLOCK) buf_add_str(b, " [b]");
    if (n->abandoned) buf_add_str(b, " [c]");
    w->notes |= n->flags;
    w->abandoned += n->abandoned;
}

static void cell_time(struct table *t, double ns)
{
    fmt_duration(table_cell(t), ns);
}

static void net_cells(const struct writer *w, struct table *t, const struct call_node *n)
{
    double limit = w->shown->weighing_limit_ns;
    fmt_interval(table_cell(t), n->total_ns, limit * (double)n->count);
    fmt_interval(table_cell(t), n->self_ns, limit * (double)n->count);
    fmt_interval(table_cell(t), n->mean_ns, limit);
    cell_time(t, interval_half(n->mean_ns));
}

static void row_cells(struct writer *w, struct table *t, const struct view_row *row)
{
    const struct call_node *n = &w->shown->nodes[row->node];
    bool gross = w->in->options.view.gross;
    struct buf *b = table_cell(t);
    if (n->flags & CALL_COUNT_ESTIMATED) buf_add_char(b, '~');
    fmt_count(b, n->count);
    if (gross) {
        cell_time(t, n->gross_total_ns);
        cell_time(t, n->gross_self_ns);
        cell_time(t, n->gross_mean_ns);
    } else {
        net_cells(w, t, n);
    }
    cell_time(t, n->p50_ns);
    cell_time(t, n->p95_ns);
    cell_time(t, n->p99_ns);
    cell_time(t, n->max_ns);
    b = table_cell(t);
    if (n->threads)
        fmt_count(b, n->threads);
    else
        buf_add_char(b, '-');
    fmt_share(table_cell(t), view_share(&w->view, n, gross));
    b = table_cell(t);
    add_branches(w, b, row);
    add_name(w, b, n);
}

static void write_table(struct writer *w)
{
    bool gross = w->in->options.view.gross;
    struct table t;
    if (gross)
        table_init(&t, gross_columns, sizeof gross_columns / sizeof *gross_columns);
    else
        table_init(&t, net_columns, sizeof net_columns / sizeof *net_columns);
    static const char *const spare[] = {"p99", "threads", "p50", "max", "p95", "+/-", NULL};
    t.spare = spare;
    for (size_t i = 0; i < w->view.n; i++) row_cells(w, &t, &w->view.rows[i]);
    if (!table_end(&t, w->s, style(w)->bold))
        buf_add_str(out(w), w->view.hidden ? "no scope large enough to be shown\n" : "no scopes recorded\n");
    if (!w->view.hidden) return;
    buf_add_str(out(w), style(w)->dim);
    fmt_counted(out(w), w->view.hidden, "more row", "more rows");
    buf_printf(out(w), " not shown (--depth, --min-share)%s\n", style(w)->plain);
}

/* ---- counters and marks ---- */

/* Sums come from the flat tree in either view: a counter is one row, wherever in the program it was counted. The rate
 * of a mark is how often it was set. */
static void write_counters(struct writer *w)
{
    static const struct table_column columns[] = {
        {"count", false}, {"sum", false}, {"rate", false}, {"counter or mark", true}};
    double seconds = (double)report_span(w->in->source).duration_ns / 1e9;
    struct table t;
    table_init(&t, columns, 4);
    for (uint32_t i = 1; i < w->flat->n_nodes; i++) {
        const struct call_node *n = &w->flat->nodes[i];
        if (n->kind == TARE_SITE_SCOPE) continue;
        bool counter = n->kind == TARE_SITE_COUNTER;
        fmt_count(table_cell(&t), n->count);
        if (counter)
            fmt_int(table_cell(&t), n->value);
        else
            buf_add_char(table_cell(&t), '-');
        double rate = (counter ? (double)n->value : (double)n->count) / seconds;
        fmt_number(table_cell(&t), rate);
        if (isfinite(rate)) buf_add_str(&t.text, "/s");
        add_clipped(table_cell(&t), source_site(w->in->source, n->site)->name, NAME_SHOWN);
        if (!counter) buf_add_str(&t.text, " (mark)");
    }
    if (t.n_cells) buf_add_char(out(w), '\n');
    table_end(&t, w->s, style(w)->bold);
}

/* ---- the foot ---- */

static void add_weight(struct buf *b, struct interval e)
{
    if (!fmt_interval(b, e, 0)) return;
    buf_add_str(b, " +/- ");
    fmt_duration(b, interval_half(e));
}

/* Without a calibration nothing can be subtracted, and that must be said: net times are then missing, not zero. */
static void write_weight(const struct writer *w)
{
    const struct calltree *tree = w->in->tree;
    struct buf *b = out(w);
    begin_line(w, "weight");
    if (isnan(tree->weight_ns.value)) {
        buf_add_str(b, "not known: the trace holds no calibration: no net times (use --gross)\n");
        return;
    }
    buf_add_str(b, "one scope costs ");
    add_weight(b, tree->weight_ns);
    buf_add_str(b, ", of which ");
    add_weight(b, tree->inside_ns);
    buf_add_str(b, " inside its own reading;\n");
    begin_line(w, "");
    if (tree->weighed_pairs) {
        buf_add_str(b, "found by ");
        fmt_counted(b, tree->weighed_pairs, "on/off pair", "on/off pairs");
        buf_add_str(b, " in the running program");
    } else {
        buf_add_str(b, "from the calibration at start-up: no calls were weighed in the running program");
    }
    double share = report_own_share(tree);
    bool gross = w->in->options.view.gross;
    if (gross) buf_add_str(b, "; --gross: still in the times above");
    if (!gross && share >= 0) {
        buf_add_str(b, "; taken out: ");
        fmt_share(b, share);
        buf_add_str(b, " of the time read");
    }
    buf_add_char(b, '\n');
}

/* Only the signs that occur in the table above are explained; w->notes and w->abandoned were collected by its rows, so
 * this comes after it. */
static void write_notes(const struct writer *w)
{
    const struct calltree *tree = w->in->tree;
    struct buf *b = out(w);
    if (tree->weighing_limit_ns > 0 && !w->in->options.view.gross) {
        begin_line(w, "limit");
        fmt_duration(b, tree->weighing_limit_ns);
        buf_add_str(b, " per call: shorter calls cannot be measured reliably\n");
    }
    if (w->notes & CALL_BELOW_LIMIT && !w->in->options.view.gross)
        buf_add_str(b, "[a]        below the weighing limit: the net times are not to be trusted\n");
    if (w->notes & CALL_FAST_CLOCK)
        buf_add_str(b, "[b]        fast clock and short: work still in flight at the end may be missing\n");
    if (w->abandoned)
        buf_add_str(b, "[c]        some calls never reached their end (longjmp, exit, or killed)\n");
    if (w->notes & CALL_COUNT_ESTIMATED)
        buf_add_str(b, "~          estimated: scaled up for calls left out to weigh the instrument\n");
}

static const struct {
    size_t offset;
    const char *one, *many, *rest;
} losses[] = {
#define LOSS(field, one, many, rest) {offsetof(struct trace_loss, field), one, many, rest}
    LOSS(dropped, "event, scope or sample", "events, scopes or samples",
         " not recorded: a buffer, the disk or a limit was full"),
    LOSS(damaged_chunks, "damaged piece", "damaged pieces", " of the file, left out"),
    LOSS(damaged_bytes, "byte", "bytes", " in damaged or torn parts of the file"),
    LOSS(unclosed_scopes, "scope", "scopes", " still open when the record of the thread ends"),
    LOSS(abandoned_scopes, "scope", "scopes", " left without an end (longjmp, or never ended)"),
    LOSS(unknown_chunks, "piece", "pieces", " written by a newer version of tare, skipped"),
    LOSS(foreign_scopes, "scope", "scopes", " ended in another thread or process than begun in"),
    LOSS(missing_live, "process", "processes", " without an end of the record, and with the live file gone"),
    LOSS(ended_early, "process", "processes", " ran on when recording had ended: what came then is not on record"),
#undef LOSS
};

/* "nothing" is said as well: silence would not tell a complete trace from one that nobody checked. */
static void write_loss(struct writer *w)
{
    const struct trace_loss *loss = w->in->source->loss;
    bool any = false;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        uint64_t n;
        memcpy(&n, (const char *)loss + losses[i].offset, sizeof n);
        if (!n) continue;
        begin_line(w, any ? "" : "lost");
        fmt_counted(out(w), n, losses[i].one, losses[i].many);
        buf_printf(out(w), "%s\n", losses[i].rest);
        any = true;
    }
    if (loss->first[0]) {
        begin_line(w, any ? "" : "lost");
        buf_add_str(out(w), "first: ");
        add_clipped(out(w), loss->first, sizeof loss->first);
        buf_add_char(out(w), '\n');
        any = true;
    }
    if (!any) {
        begin_line(w, "lost");
        buf_add_str(out(w), "nothing\n");
    }
}

/* The flat tree is built for both views, because counters are always shown by it. */
tare_status report_trace_text(struct stream *s, const struct report_input *in)
{
    struct calltree flat = CALLTREE_INIT;
    struct writer w = {.s = s, .in = in, .flat = &flat};
    tare_status status = flat_build(&flat, in->tree, in->source->n_sites, s->err);
    if (status < 0) return s->status = status;
    w.shown = in->options.flat ? &flat : in->tree;
    status = view_build(&w.view, w.shown, in->source, &in->options.view, s->err);
    if (status < 0) {
        s->status = status;
    } else {
        write_head(&w);
        write_table(&w);
        write_counters(&w);
        buf_add_char(out(&w), '\n');
        write_weight(&w);
        write_notes(&w);
        write_loss(&w);
        stream_poll(s);
    }
    view_release(&w.view);
    flat_release(&flat);
    return s->status;
}
