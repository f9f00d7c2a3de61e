/* SPDX-License-Identifier: MIT
 * memory_read.c - the MEMORY chunks of an opened trace, record by record: see memory.h. Each slot is a stream in the
 * order of time; the streams of a process are merged. Memory grows with the number of chunks, not of records. */
#include <stdlib.h>

#include "core/mem.h"
#include "core/vec.h"
#include "trace/loaded.h"
#include "trace/memory.h"

struct piece {
    const struct stored *stored;
    struct memory_head head;
};

/* A stream under way: its pieces, and the next record that has a time. */
struct stream {
    const struct piece *next, *end;
    uint64_t slot;
    struct scratch scratch;
    struct dec d;
    struct memory_state state;
    struct memory_record at;
    uint64_t by, told_by; /* thread of `at`, and the latest that was told of this stream */
    bool open, more;
};

struct reading {
    struct trace *t;
    bool stacks;
    trace_memory_fn *fn;
    void *ctx;
    VEC(struct piece) pieces;
    VEC(struct stream) streams;
    struct timeline_hint hint;
    int stop;
};

/* Told by whoever sampled it from outside, or by the agent in it? */
static bool is_wanted(const struct trace *t, const struct meta_chunk *m, bool stacks)
{
    bool sampled = t->processes.items[m->stored.process].info.mode & MODE_STACKS;
    return m->type == CHUNK_MEMORY && sampled == stacks;
}

static bool has_any(const struct trace *t, bool stacks)
{
    for (size_t i = 0; i < t->meta.n; i++)
        if (is_wanted(t, &t->meta.items[i], stacks)) return true;
    return false;
}

bool trace_has_memory(const struct trace *t)
{
    return has_any(t, false);
}

bool trace_has_stacks(const struct trace *t)
{
    return has_any(t, true);
}

/* ---- in which order ---- */

static int by_place(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->stored->process != y->stored->process) return x->stored->process > y->stored->process ? 1 : -1;
    if (x->head.slot != y->head.slot) return x->head.slot > y->head.slot ? 1 : -1;
    if (x->head.seq != y->head.seq) return x->head.seq > y->head.seq ? 1 : -1;
    return (x->stored->plain_bytes < y->stored->plain_bytes) -
           (x->stored->plain_bytes > y->stored->plain_bytes);
}

/* One that was archived just before a kill may still be in the live file: of two the longer. */
static void drop_twins(struct reading *r)
{
    size_t kept = 0;
    if (r->pieces.n > 1) qsort(r->pieces.items, r->pieces.n, sizeof r->pieces.items[0], by_place);
    for (size_t i = 0; i < r->pieces.n; i++) {
        const struct piece *p = &r->pieces.items[i], *last = kept ? &r->pieces.items[kept - 1] : NULL;
        if (last && last->stored->process == p->stored->process && last->head.slot == p->head.slot &&
            last->head.seq == p->head.seq)
            continue;
        r->pieces.items[kept++] = *p;
    }
    r->pieces.n = kept;
}

static tare_status find_pieces(struct reading *r, tare_error *err)
{
    struct scratch scratch = {NULL, 0, false};
    tare_status s = TARE_OK;
    for (size_t i = 0; i < r->t->meta.n && s == TARE_OK; i++) {
        const struct meta_chunk *m = &r->t->meta.items[i];
        struct piece p = {&m->stored, {0}};
        struct dec d;
        if (!is_wanted(r->t, m, r->stacks) || !stored_open(&m->stored, &scratch, &d) ||
            !memory_head(&d, &p.head))
            continue;
        s = vec_push(&r->pieces, p, err);
    }
    mem_free(scratch.bytes);
    if (s == TARE_OK) drop_twins(r);
    return s;
}

/* ---- what is told once ---- */

static void tell_piece(struct reading *r, const struct piece *p, struct scratch *scratch)
{
    struct memory_state state = {{0}};
    struct memory_record record;
    struct memory_head head;
    struct dec d;
    if (!stored_open(p->stored, scratch, &d) || !memory_head(&d, &head)) return;
    while (!r->stop && memory_unpack(&state, &d, &record))
        if (!memory_has_time(record.kind) && record.kind != MEMORY_BY)
            r->stop = r->fn(r->ctx, p->stored->process, &record);
}

/* ---- what happened ---- */

/* To the next record of the stream that has a time; each piece tells by itself whose its records are. */
static void step(struct stream *s)
{
    for (;;) {
        struct memory_head head;
        while (s->open && memory_unpack(&s->state, &s->d, &s->at)) {
            if (s->at.kind == MEMORY_BY) s->by = s->at.BY.thread;
            if (memory_has_time(s->at.kind)) return;
        }
        s->open = false;
        if (s->next == s->end) break;
        s->state = (struct memory_state){{0}};
        s->open = stored_open((s->next++)->stored, &s->scratch, &s->d) && memory_head(&s->d, &head);
    }
    s->more = false;
}

static tare_status open_streams(struct reading *r, const struct piece *from, const struct piece *end,
                                tare_error *err)
{
    tare_status status = TARE_OK;
    for (const struct piece *p = from; p < end && status == TARE_OK;) {
        struct stream s = {.next = p, .slot = p->head.slot, .more = true};
        while (p < end && p->head.slot == s.slot) p++;
        s.end = p;
        status = vec_push(&r->streams, s, err);
        if (status == TARE_OK) step(&r->streams.items[r->streams.n - 1]);
    }
    return status;
}

static void close_streams(struct reading *r)
{
    for (size_t i = 0; i < r->streams.n; i++) mem_free(r->streams.items[i].scratch.bytes);
    r->streams.n = 0;
}

static struct stream *earliest(struct reading *r)
{
    struct stream *best = NULL;
    for (size_t i = 0; i < r->streams.n; i++) {
        struct stream *s = &r->streams.items[i];
        if (s->more && (!best || s->at.v[0] < best->at.v[0])) best = s;
    }
    return best;
}

/* Whose it is, is told where it changes: the merged record has one order for all threads. */
static void merge(struct reading *r, uint32_t process)
{
    const struct loaded_process *p = &r->t->processes.items[process];
    uint64_t by = 0, last = 0; /* a counter that steps back must not turn the order round */
    for (struct stream *s; !r->stop && (s = earliest(r)); step(s)) {
        if (s->by != by) {
            struct memory_record told = {.kind = MEMORY_BY, .text = ""};
            told.BY.thread = by = s->by;
            r->stop = r->fn(r->ctx, process, &told);
        }
        uint64_t now = timeline_ns(r->t, p, s->at.v[0], &r->hint);
        s->at.v[0] = last = now > last ? now : last;
        if (!r->stop) r->stop = r->fn(r->ctx, process, &s->at);
    }
}

static tare_status read_process(struct reading *r, const struct piece *from, const struct piece *end,
                                tare_error *err)
{
    struct scratch scratch = {NULL, 0, false};
    for (const struct piece *p = from; p < end && !r->stop; p++) tell_piece(r, p, &scratch);
    mem_free(scratch.bytes);
    r->hint = (struct timeline_hint){0};
    tare_status s = r->stop ? TARE_OK : open_streams(r, from, end, err);
    if (s == TARE_OK && !r->stop) merge(r, from->stored->process);
    close_streams(r);
    return s;
}

static tare_status read_all(struct reading *all, tare_error *err)
{
    struct reading r = *all;
    tare_status s = find_pieces(&r, err);
    for (size_t i = 0, end; i < r.pieces.n && s == TARE_OK && !r.stop; i = end) {
        for (end = i;
             end < r.pieces.n && r.pieces.items[end].stored->process == r.pieces.items[i].stored->process;)
            end++;
        s = read_process(&r, &r.pieces.items[i], r.pieces.items + end, err);
    }
    vec_release(&r.pieces);
    vec_release(&r.streams);
    return s;
}

tare_status trace_memory(struct trace *t, trace_memory_fn *fn, void *ctx, tare_error *err)
{
    return read_all(&(struct reading){.t = t, .fn = fn, .ctx = ctx}, err);
}

tare_status trace_stacks(struct trace *t, trace_memory_fn *fn, void *ctx, tare_error *err)
{
    return read_all(&(struct reading){.t = t, .stacks = true, .fn = fn, .ctx = ctx}, err);
}
