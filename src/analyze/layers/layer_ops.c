/* SPDX-License-Identifier: MIT
 * layer_ops.c - layers_gpu_read(), see layers.h: the operations of a trace by the time they were launched, and the
 * moments of another clock on the same axis. Knows no graph and judges nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/layers/layers.h"
#include "core/map.h"
#include "trace/gpu.h"
#include "trace/reader.h"

struct reading {
    struct layers_gpu *out;
    struct map_u64 launched; /* id of a call -> when it began */
    VEC(uint64_t) ids;       /* of each operation */
    uint32_t process;        /* the one whose records these are */
    uint64_t told_lost;      /* a process tells what it lost in all so far: the latest counts */
    bool any;
    tare_status status;
    tare_error *err;
};

enum { NOT_A_NAME = 1 << 30 }; /* names of kernels are below: directions of copies come after */

static int add_op(struct reading *r, const struct layers_op *op, uint64_t id)
{
    r->status = vec_push(&r->out->ops, *op, r->err);
    if (r->status == TARE_OK) r->status = vec_push(&r->ids, id, r->err);
    return r->status < 0;
}

static int add_kernel(struct reading *r, const struct gpu_record *k)
{
    struct layers_op op = {.start = k->KERNEL.start, .duration = k->KERNEL.duration};
    op.name = (uint32_t)k->KERNEL.name % NOT_A_NAME;
    return add_op(r, &op, k->KERNEL.id);
}

static int add_copy(struct reading *r, const struct gpu_record *c)
{
    struct layers_op op = {.start = c->COPY.start, .duration = c->COPY.duration, .copy = true};
    op.bytes = c->COPY.bytes;
    op.name = NOT_A_NAME + (uint32_t)(c->COPY.what & 0xff);
    return add_op(r, &op, c->COPY.id);
}

static int add_set(struct reading *r, const struct gpu_record *c)
{
    struct layers_op op = {.start = c->SET.start, .duration = c->SET.duration, .copy = true, .fill = true};
    op.bytes = c->SET.bytes;
    op.name = NOT_A_NAME + 256;
    return add_op(r, &op, c->SET.id);
}

/* A whole graph in one record: its kernels cannot be told apart, and so not be given to nodes. */
static int add_graph(struct reading *r, const struct gpu_record *g)
{
    struct layers_op op = {.start = g->GRAPH.start, .duration = g->GRAPH.duration};
    op.name = NOT_A_NAME + 257;
    return add_op(r, &op, g->GRAPH.id);
}

static int add_lost(struct reading *r, const struct gpu_record *l)
{
    r->told_lost = l->LOST.dropped + l->LOST.untimed + l->LOST.unread + l->LOST.unwritten;
    return 0;
}

static int add_note(struct reading *r, const struct gpu_record *n)
{
    size_t used = strlen(r->out->notes);
    snprintf(r->out->notes + used, sizeof r->out->notes - used, "%s%.*s", used ? "; " : "",
             (int)n->text_bytes, n->text);
    return 0;
}

/* Only one process writes such a trace: tare itself. */
static int take_record(void *ctx, uint32_t process, const struct gpu_record *g)
{
    struct reading *r = ctx;
    if (!r->any) r->process = process;
    r->any = true;
    if (process != r->process) return 0;
    switch (g->kind) {
    case GPU_KERNEL: return add_kernel(r, g);
    case GPU_COPY: return add_copy(r, g);
    case GPU_SET: return add_set(r, g);
    case GPU_GRAPH: return add_graph(r, g);
    case GPU_LOST: return add_lost(r, g);
    case GPU_HOLE: r->out->lost++; return 0;
    case GPU_NOTE: return add_note(r, g);
    case GPU_CALL:
        r->status = map_u64_put(&r->launched, g->CALL.id, g->CALL.start, r->err);
        return r->status < 0;
    default: return 0;
    }
}

/* One stream executes in the order of launches, which is also that of ids where two begin in the same ns. */
static int by_launch(const void *a, const void *b)
{
    const struct layers_op *x = a, *y = b;
    if (x->launched != y->launched) return x->launched < y->launched ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void join_calls(struct reading *r)
{
    for (size_t i = 0; i < r->out->ops.n; i++) {
        const uint64_t *at = map_u64_find(&r->launched, r->ids.items[i]);
        r->out->ops.items[i].launched = at ? *at : 0;
    }
    if (r->out->ops.n) qsort(r->out->ops.items, r->out->ops.n, sizeof *r->out->ops.items, by_launch);
}

static tare_status place_times(struct reading *r, const struct layers_gpu_source *from)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < from->n_windows; i++) {
        struct layers_window w = from->windows[i];
        w.start = trace_gpu_moment(from->trace, r->process, w.start);
        w.end = trace_gpu_moment(from->trace, r->process, w.end);
        s = vec_push(&r->out->windows, w, r->err);
    }
    for (size_t i = 0; s == TARE_OK && i < from->profile->events.n; i++) {
        uint64_t us = (uint64_t)from->profile->events.items[i].start_us;
        uint64_t at = trace_gpu_moment(from->trace, r->process, from->profile_start + us * 1000);
        s = vec_push(&r->out->events, at, r->err);
    }
    return s;
}

tare_status layers_gpu_read(struct layers_gpu *out, const struct layers_gpu_source *from, tare_error *err)
{
    struct layers_gpu made = LAYERS_GPU_INIT;
    struct reading r = {.out = &made, .launched = MAP_U64_INIT, .ids = VEC_INIT, .err = err};
    trace_gpu(from->trace, take_record, &r);
    made.lost += r.told_lost + trace_loss(from->trace)->damaged_chunks;
    if (r.status == TARE_OK && !made.ops.n)
        r.status = error_set(err, TARE_UNSUPPORTED, "nothing of the GPU was recorded%s%s",
                             made.notes[0] ? ": " : "", made.notes);
    if (r.status == TARE_OK && !from->profile_start)
        r.status = error_set(err, TARE_UNSUPPORTED, "the runtime does not tell when its profile began");
    if (r.status == TARE_OK) join_calls(&r);
    if (r.status == TARE_OK) r.status = place_times(&r, from);
    map_u64_release(&r.launched);
    vec_release(&r.ids);
    if (r.status < 0) {
        layers_gpu_release(&made);
        return r.status;
    }
    *out = made;
    return TARE_OK;
}

void layers_gpu_release(struct layers_gpu *g)
{
    vec_release(&g->ops);
    vec_release(&g->windows);
    vec_release(&g->events);
    *g = (struct layers_gpu)LAYERS_GPU_INIT;
}
