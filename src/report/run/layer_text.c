/* SPDX-License-Identifier: MIT
 * layer_text.c - the layers of a case for people: see layer_columns.h. Reads the document only. */
#include "report/run/layer_columns.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/run/run_report.h"
#include "report/text.h"

#define COVERED_FAR 0.15 /* layers and plain runs this far apart: not what a quiet machine gives */
#define OVERHEAD_FAR 1.0 /* the profiler took as long as the run: what is left of a node is mostly its error */

static void write_more(struct stream *s, size_t n)
{
    if (n) buf_printf(&s->out, "%s%zu more%s\n", s->style.dim, n, s->style.plain);
}

static void write_heading(struct stream *s, const char *case_name)
{
    buf_printf(&s->out, "\n%slayers%s", s->style.bold, s->style.plain);
    if (*case_name) {
        buf_printf(&s->out, " %s[", s->style.dim);
        text_name(&s->out, case_name, 200);
        buf_printf(&s->out, "]%s", s->style.plain);
    }
    buf_add_char(&s->out, '\n');
}

static void write_layers(struct stream *s, const struct run_case *c, const struct layer_view *view)
{
    const struct layer_column *sort = view->sort;
    struct layer_order order;
    struct table t;
    if (!sort && !view->in_order) sort = layer_default_order(c);
    tare_status st = layer_order_make(&order, c, sort, view->top, s->err);
    if (st < 0) {
        s->status = st;
    } else {
        layer_table(&t, c, &order);
        table_end(&t, s, s->style.bold);
        write_more(s, order.left_out);
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

/* The first column is that of names under another title. A column of which no row knows anything is left out. */
static void write_sum_table(struct stream *s, const struct run_case *c, const char *title,
                            const struct layer_sums *sums)
{
    const struct layer_column *columns[LAYER_COLUMNS_MAX];
    const struct run_layer *shown[SUMS_SHOWN];
    struct layer_column named = *layer_column_find("name");
    struct table t;
    struct layer_rows rows = {c, shown, sums->items.n < SUMS_SHOWN ? sums->items.n : SUMS_SHOWN};
    size_t n = 0;
    named.title = title;
    for (size_t i = 0; i < N_SUM_COLUMNS; i++) {
        const struct layer_column *k = i ? layer_column_find(sum_columns[i]) : &named;
        if (!i || any_known(k, sums, c)) columns[n++] = k;
    }
    for (size_t i = 0; i < rows.n; i++) shown[i] = &sums->items.items[i];
    buf_add_char(&s->out, '\n');
    layer_rows_table(&t, &rows, columns, n);
    table_end(&t, s, s->style.bold);
    write_more(s, sums->items.n - rows.n);
}

/* Everything in one group says nothing. */
static void write_sums(struct stream *s, const struct run_case *c, const char *column, const char *title,
                       size_t least)
{
    struct layer_sums sums;
    if (s->status != TARE_OK) return;
    s->status = layer_sums_make(&sums, c, layer_column_find(column), s->err);
    if (s->status == TARE_OK && sums.items.n >= least) write_sum_table(s, c, title, &sums);
    vec_release(&sums.items);
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

/* "the GPU is busy 48.9 % of a run (46.1 to 51.2 %): 0.69 ms of kernels, 12.1 us of copies (5 of 175 operations, 1.5
 * MiB); 99.4 % of that is layers'; recording made runs 12 % longer" */
static void layer_gpu_text(struct buf *b, const struct run_gpu_pass *p)
{
    if (!p->known || !p->busy_share.known) return;
    buf_printf(b, "the GPU is busy %.1f %% of a run", 100 * p->busy_share.value);
    if (p->busy_share.lo.known && p->busy_share.hi.known)
        buf_printf(b, " (%.1f to %.1f %%)", 100 * p->busy_share.lo.v, 100 * p->busy_share.hi.v);
    buf_add_str(b, ": ");
    fmt_duration(b, p->kernel_ns.v);
    buf_add_str(b, " of kernels, ");
    fmt_duration(b, p->copy_ns.v);
    buf_printf(b, " of copies (%llu of %llu operations, ", (unsigned long long)p->copies.v,
               (unsigned long long)p->operations.v);
    fmt_bytes(b, (double)p->copy_bytes.v);
    buf_add_char(b, ')');
    if (p->joined.known) buf_printf(b, "; %.1f %% of its time is that of layers", 100 * p->joined.v);
    if (p->other_runs.v)
        buf_printf(b, "; %llu of %llu runs had other operations and are left out",
                   (unsigned long long)p->other_runs.v, (unsigned long long)(p->runs.v + p->other_runs.v));
    if (p->recording.known) buf_printf(b, "; recording made runs %+.1f %% longer", 100 * p->recording.v);
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

static void add_gpu_rate(struct buf *b, const struct run_estimate *e, const char *unit, const char *name)
{
    if (!e->known) return;
    if (b->len) buf_add_str(b, ", ");
    fmt_si(b, e->value, unit);
    buf_add_str(b, name);
}

/* "50.9 TFLOP/s fp32, 389 TFLOP/s tf32, .., 4.02 TB/s of memory (NVIDIA H200)" */
static void gpu_roof_text(struct buf *b, const struct run_gpu_roof *r)
{
    if (!r->known) return;
    add_gpu_rate(b, &r->fp32, "FLOP/s", " fp32");
    add_gpu_rate(b, &r->tf32, "FLOP/s", " tf32");
    add_gpu_rate(b, &r->fp16, "FLOP/s", " fp16");
    add_gpu_rate(b, &r->bf16, "FLOP/s", " bf16");
    add_gpu_rate(b, &r->int8, "OP/s", " int8");
    add_gpu_rate(b, &r->bandwidth, "B/s", " of memory");
    if (b->len && r->device) buf_printf(b, " (%s)", r->device);
}

/* One case: its layers, how they were timed and under which roof, and their sums. */
static void write_case(struct stream *s, const struct run *run, const struct run_case *c,
                       const struct layer_view *view)
{
    struct buf missing = BUF_INIT, profile = BUF_INIT, gpu = BUF_INIT, roof = BUF_INIT, gpu_roof = BUF_INIT;
    bool full = c->layers.n + 2 >= RUN_LIST_MAX; /* a document holds no more: the reason says of how many */
    const char *why = full ? run_reason(&c->unknown, "layers") : NULL;
    write_heading(s, run->cases.n > 1 ? c->name : "");
    write_layers(s, c, view);
    if (why) text_name(&missing, why, 200);
    text_note(s, &missing);
    layer_profile_text(&profile, c);
    text_note(s, &profile);
    if (c->gpu.known) layer_gpu_text(&gpu, &c->gpu.pass);
    text_note(s, &gpu);
    if (layer_is_timed(c)) layer_roof_text(&roof, &run->roof);
    if (roof.len) buf_add_str(&s->out, "this machine's peak: ");
    text_note(s, &roof);
    if (c->gpu.known && c->gpu.pass.known && layer_is_timed(c)) gpu_roof_text(&gpu_roof, &run->gpu_roof);
    if (gpu_roof.len) buf_add_str(&s->out, "this GPU's roof: ");
    text_note(s, &gpu_roof);
    write_sums(s, c, "group", "group", 2);
    write_sums(s, c, "op", "operator", 1);
}

void layer_text_write(struct stream *s, const struct run *run, const struct layer_view *view)
{
    for (size_t i = 0; i < run->cases.n && stream_poll(s) == TARE_OK; i++)
        if (run->cases.at[i]->layers.n) write_case(s, run, run->cases.at[i], view);
}
