/* SPDX-License-Identifier: MIT
 * layer_text.c - see layer_text.h. Reads the document only. */
#include "report/run/layer_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/run/layer_sums.h"
#include "report/run/run_report.h"
#include "report/text.h"

#define COVERED_FAR 0.15 /* layers and plain runs this far apart: not what a quiet machine gives */
#define OVERHEAD_FAR 1.0 /* the profiler took as long as the run: what is left of a node is mostly its error */

struct writer {
    struct stream *s;
    const struct report_style *style;
    const struct run *run;
    const struct run_case *c;
};

static void heading(const struct writer *w, const char *title)
{
    buf_printf(&w->s->out, "\n%s%s%s", w->style->bold, title, w->style->plain);
    if (w->run->cases.n > 1 && *w->c->name) {
        buf_printf(&w->s->out, " %s[", w->style->dim);
        text_plain(&w->s->out, w->c->name, text_clip(w->c->name, 200));
        buf_printf(&w->s->out, "]%s", w->style->plain);
    }
    buf_add_char(&w->s->out, '\n');
}

static void note(const struct writer *w, const struct buf *text)
{
    if (text->failed) w->s->out.failed = 1;
    if (!text->len) return;
    buf_add_str(&w->s->out, w->style->dim);
    buf_add(&w->s->out, text->data, text->len);
    buf_printf(&w->s->out, "%s\n", w->style->plain);
}

/* ---- tables ---- */

static void write_layers(const struct writer *w, const struct layer_view *view)
{
    const struct layer_column *sort = view->sort;
    struct layer_order order;
    struct table t;
    if (!sort && !view->in_order) sort = layer_default_order(w->c);
    tare_status s = layer_order_make(&order, w->c, sort, view->top, w->s->err);
    if (s < 0) {
        w->s->status = s;
    } else {
        heading(w, "layers");
        layer_table(&t, w->c, &order);
        table_print(&t, w->s, w->style->bold, w->style->plain);
        table_release(&t);
        if (order.left_out)
            buf_printf(&w->s->out, "%s%zu more%s\n", w->style->dim, order.left_out, w->style->plain);
    }
    layer_order_release(&order);
}

/* ---- sums ---- */

enum { SUMS_SHOWN = 12 };

static const char *const sum_columns[] = {"name", "nodes",    "time_ns",   "share", "parameters",
                                          "macs", "int_macs", "mac_share", "bytes"};
enum { N_SUM_COLUMNS = sizeof sum_columns / sizeof *sum_columns };

static bool any_known(const struct layer_column *column, const struct layer_sums *sums,
                      const struct run_case *c)
{
    double v;
    for (size_t i = 0; i < sums->items.n; i++)
        if (layer_number(column, c, &sums->items.items[i], &v) && v != 0) return true;
    return false;
}

static void write_sum_table(const struct writer *w, const char *title, const struct layer_sums *sums)
{
    const struct layer_column *columns[LAYER_COLUMNS_MAX];
    const struct run_layer *shown[SUMS_SHOWN];
    struct layer_column named = *layer_column_find("name");
    struct table t;
    struct layer_rows rows = {w->c, shown, sums->items.n < SUMS_SHOWN ? sums->items.n : SUMS_SHOWN};
    size_t n = 0;
    named.title = title;
    for (size_t i = 0; i < N_SUM_COLUMNS; i++) {
        const struct layer_column *k = i ? layer_column_find(sum_columns[i]) : &named;
        if (!i || any_known(k, sums, w->c)) columns[n++] = k;
    }
    for (size_t i = 0; i < rows.n; i++) shown[i] = &sums->items.items[i];
    buf_add_char(&w->s->out, '\n');
    layer_rows_table(&t, &rows, columns, n);
    table_print(&t, w->s, w->style->bold, w->style->plain);
    table_release(&t);
    if (rows.n < sums->items.n)
        buf_printf(&w->s->out, "%s%zu more%s\n", w->style->dim, sums->items.n - rows.n, w->style->plain);
}

/* Everything in one group says nothing. */
static void write_sums(const struct writer *w, const char *column, const char *title, size_t least)
{
    struct layer_sums sums;
    tare_status s = layer_sums_make(&sums, w->c, layer_column_find(column), w->s->err);
    if (s < 0) w->s->status = s;
    if (s == TARE_OK && sums.items.n >= least) write_sum_table(w, title, &sums);
    layer_sums_release(&sums);
}

/* ---- how they were timed ---- */

/* The sum of the layers / the median that was measured before; NAN: nothing was. */
static double share_of_case(const struct run_case *c)
{
    const struct run_estimate *p50 = &c->latency_ns.p50;
    double sum = 0;
    for (size_t i = 0; i < c->layers.n; i++)
        if (c->layers.at[i]->time_ns.known) sum += c->layers.at[i]->time_ns.v;
    return c->latency_ns.known && p50->known && p50->value ? sum / p50->value : NAN;
}

/* Against both medians: that of runs beside the profiled ones is fair to the machine's drift, the case's is what the
 * user reads above. */
static void add_covered(struct buf *b, const struct run_case *c)
{
    double beside = c->profile.covered.v, whole = share_of_case(c);
    if (!c->profile.covered.known) return;
    buf_printf(b, "; layers add up to %.1f %% of the plain median", 100 * beside);
    if (!isnan(whole)) buf_printf(b, " beside them, %.1f %% of the case's", 100 * whole);
    if (fabs(beside - 1) > COVERED_FAR)
        buf_add_str(b, ": other work disturbed it, take shares as a hint");
    else if (c->profile.overhead.known && c->profile.overhead.v > OVERHEAD_FAR)
        buf_add_str(b, " only after most of the time was taken off, take shares as a hint");
}

/* "12 profiled runs, +4.1 % by the profiler (330 ns a node, taken off); layers add up to 99.7 % of the plain median
 * beside them, 102.1 % of the case's" */
static void layer_profile_text(struct buf *b, const struct run_case *c)
{
    const struct run_profile *p = &c->profile;
    if (!p->known) return;
    buf_add_str(b, "timed in a pass of its own");
    if (p->runs.known) {
        buf_add_str(b, ": ");
        fmt_counted(b, p->runs.v, "profiled run", "profiled runs");
    }
    if (p->overhead.known) buf_printf(b, ", %+.1f %% by the profiler", 100 * p->overhead.v);
    if (p->node_ns.known && p->node_ns.v) {
        buf_add_str(b, " (");
        fmt_duration(b, (double)p->node_ns.v);
        buf_add_str(b, " a node, taken off)");
    }
    add_covered(b, c);
    if (p->dropped_events.known && p->dropped_events.v) {
        buf_add_str(b, "; ");
        fmt_counted(b, p->dropped_events.v, "event", "events");
        buf_add_str(b, " could not be read");
    }
}

static void add_roof(struct buf *b, struct known_f64 v, const char *unit)
{
    if (!v.known) return;
    if (b->len) buf_add_str(b, ", ");
    fmt_si(b, v.v, unit);
}

/* "91.2 GFLOP/s, 310 GOP/s int8, 14.2 GB/s with 2 threads" */
static void layer_roof_text(struct buf *b, const struct run_roof *r)
{
    if (!r->known) return;
    add_roof(b, r->flops, "FLOP/s");
    add_roof(b, r->int_ops, "OP/s int8");
    add_roof(b, r->bandwidth, "B/s");
    if (!r->threads.known) return;
    buf_add_str(b, " with ");
    fmt_counted(b, r->threads.v, "thread", "threads");
}

void layer_text_write(struct stream *s, const struct report_style *style, const struct run *run,
                      const struct run_case *c, const struct layer_view *view)
{
    struct writer w = {s, style, run, c};
    struct buf text = BUF_INIT;
    if (!c->layers.n || s->status != TARE_OK) return;
    write_layers(&w, view);
    bool full = c->layers.n + 2 >= RUN_LIST_MAX; /* a document holds no more: the reason says of how many */
    const char *missing = full ? run_reason(&c->unknown, "layers") : NULL;
    if (missing) text_plain(&text, missing, text_clip(missing, 200));
    note(&w, &text);
    buf_clear(&text);
    layer_profile_text(&text, c);
    note(&w, &text);
    buf_clear(&text);
    if (layer_is_timed(c)) layer_roof_text(&text, &run->roof);
    if (text.len) buf_add_str(&s->out, "this machine's roof: ");
    note(&w, &text);
    buf_release(&text);
    if (s->status == TARE_OK) write_sums(&w, "group", "group", 2);
    if (s->status == TARE_OK) write_sums(&w, "op", "operator", 1);
    stream_poll(s);
}
