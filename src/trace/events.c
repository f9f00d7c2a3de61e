/* SPDX-License-Identifier: MIT
 * events.c - packed chunks of a thread -> properly nested events. Gaps (dropped or damaged chunks) and scopes
 * that never ended are bridged with ends of our own making, marked TRACE_SYNTHETIC. */
#include <string.h>

#include "core/buf.h"
#include "core/str.h"
#include "trace/loaded.h"
#include "trace/pack.h"

enum { MARK_BYTES_MAX = 255, STACK_MAX = 1 << 12, LOST_SITE = UINT32_MAX };

struct play {
    struct trace *t;
    const struct loaded_process *process;
    trace_event_fn *fn;
    void *ctx;
    tare_error *err;
    struct trace_event e;
    struct timeline_hint hint;
    uint32_t depth;
    uint32_t stack[STACK_MAX]; /* sites; LOST_SITE: its begin was not recorded */
    uint64_t began[STACK_MAX]; /* as in trace_event */
    VEC(uint32_t) sites;       /* the chunk's site list */
    struct buf text;           /* of a mark, as UTF-8 */
    int stopped;               /* what fn answered */
    struct dec pauses;         /* of the chunk: what is still to come */
    struct scratch pauses_mem;
    size_t next_pauses;     /* of the thread's CHUNK_PAUSES */
    uint64_t told_at, told; /* the next event that is told of, and what; told 0: none */
    uint64_t now_told;      /* of the event being played; 0: nothing */
    struct map_u64
        waiting; /* number of a pause, twice -> when the call began; that + 1 -> when it paused << 1 | noticed late */
    tare_status status;
};

static void deliver(struct play *p, unsigned kind, unsigned flags, uint32_t site)
{
    p->e.kind = (uint8_t)kind;
    p->e.flags = (uint8_t)flags;
    p->e.site = site;
    if (!p->stopped) p->stopped = p->fn(p->ctx, &p->e);
}

/* A pause begins: from when on the call runs is kept until it goes on. */
static __attribute__((noinline)) unsigned note_pause(struct play *p, uint32_t number, bool late)
{
    uint64_t paused = p->e.time_ns << 1 | late;
    tare_status s = map_u64_put(&p->waiting, 2 * (uint64_t)number, p->e.began_ns, p->err);
    if (s == TARE_OK) s = map_u64_put(&p->waiting, 2 * (uint64_t)number + 1, paused, p->err);
    if (s != TARE_OK) p->status = s;
    return TRACE_PAUSED | (late ? TRACE_LATE : 0u);
}

/* A call goes on. One whose pause is not in the record is a call like any other. */
static __attribute__((noinline)) unsigned note_resume(struct play *p, uint32_t number, bool waited)
{
    uint64_t began, paused;
    if (!map_u64_remove(&p->waiting, 2 * (uint64_t)number, &began) ||
        !map_u64_remove(&p->waiting, 2 * (uint64_t)number + 1, &paused))
        return 0;
    p->e.pause = number;
    p->e.began_ns = waited ? began : p->e.time_ns - ((paused >> 1) - began);
    return TRACE_RESUMED | (waited ? TRACE_WAITED : 0u) | (paused & 1 ? TRACE_LATE : 0u);
}

static inline void begin(struct play *p, uint32_t site, unsigned flags)
{
    p->e.began_ns = p->e.time_ns;
    if (p->now_told) flags |= note_resume(p, (uint32_t)(p->now_told >> 1), p->now_told & 1);
    if (p->depth < STACK_MAX) {
        p->stack[p->depth] = site;
        p->began[p->depth] = p->e.began_ns;
    }
    p->depth++;
    if (site != LOST_SITE && p->depth <= STACK_MAX) deliver(p, TRACE_BEGIN, flags, site);
}

static inline void end(struct play *p, unsigned flags)
{
    if (!p->depth) return; /* its begin was lost */
    p->depth--;
    if (p->depth >= STACK_MAX || p->stack[p->depth] == LOST_SITE) return;
    p->e.began_ns = p->began[p->depth];
    if (p->now_told) {
        p->e.pause = (uint32_t)(p->now_told >> 1);
        flags |= note_pause(p, p->e.pause, p->now_told & 1);
    }
    deliver(p, TRACE_END, flags, p->stack[p->depth]);
}

/* A chunk says how deep the thread was when it started: after a gap, make our stack agree. */
static void resume(struct play *p, uint64_t depth)
{
    if (depth > STACK_MAX) depth = STACK_MAX;
    while (p->depth > depth) end(p, TRACE_SYNTHETIC);
    while (p->depth < depth) begin(p, LOST_SITE, 0);
}

/* ---- what the chunk's CHUNK_PAUSES tells ---- */

static void next_told(struct play *p)
{
    p->told = 0;
    if (p->pauses.p == p->pauses.end) return;
    p->told_at += dec_uint(&p->pauses);
    p->told = dec_uint(&p->pauses);
    if (p->pauses.failed) p->told = 0;
}

/* Of two with the same seq the longer comes first; one without its chunk of events is passed over. */
static void open_pauses(struct play *p, const struct loaded_thread *th, uint64_t seq)
{
    p->pauses = (struct dec){NULL, NULL, false};
    while (p->next_pauses < th->pauses.n && th->pauses.items[p->next_pauses].seq < seq) p->next_pauses++;
    if (p->next_pauses < th->pauses.n && th->pauses.items[p->next_pauses].seq == seq &&
        stored_open(&th->pauses.items[p->next_pauses].stored, &p->pauses_mem, &p->pauses)) {
        dec_uint(&p->pauses);
        dec_uint(&p->pauses);
    }
    p->told_at = 0;
    next_told(p);
}

static inline void take_told(struct play *p, uint64_t event)
{
    if (!p->told && !p->now_told) return; /* as in most traces: a hundred million times */
    p->now_told = 0;
    p->e.pause = 0;
    for (; p->told && p->told_at == event; next_told(p)) p->now_told = p->told;
}

static uint32_t site_at(struct play *p, struct dec *d, uint64_t place)
{
    if (place < p->sites.n) return p->sites.items[place];
    d->failed = true;
    return LOST_SITE;
}

/* A time of so many bytes, low byte first. */
static inline uint64_t take_bytes(struct dec *d, unsigned n)
{
    if ((size_t)(d->end - d->p) < n) {
        d->failed = true;
        return 0;
    }
    uint64_t v = 0;
    if (d->end - d->p >= 8) { /* one load instead of a loop */
        memcpy(&v, d->p, 8);
        v &= (UINT64_C(1) << (8 * n)) - 1;
    } else {
        memcpy(&v, d->p, n);
    }
    d->p += n;
    return v;
}

/* What is rarer than a plain begin or end; the operands follow the time. */
static void play_other(struct play *p, struct dec *d, unsigned op)
{
    uint64_t n;
    uint32_t site;
    const uint8_t *text;
    switch (op) {
    case OP_END_LONG: end(p, 0); break;
    case OP_END_ABANDONED: end(p, TRACE_SYNTHETIC); break;
    case OP_BEGIN_WEIGHED:
        site = site_at(p, d, dec_uint(d));
        if (!d->failed) begin(p, site, TRACE_WEIGHED);
        break;
    case OP_COUNT:
        site = site_at(p, d, dec_uint(d));
        p->e.value = dec_int(d);
        if (!d->failed && site != LOST_SITE) deliver(p, TRACE_COUNT, 0, site);
        p->e.value = 0;
        break;
    case OP_MARK:
        site = site_at(p, d, dec_uint(d));
        n = dec_uint(d);
        if (n > MARK_BYTES_MAX) d->failed = true;
        text = dec_bytes(d, (size_t)n);
        if (d->failed || site == LOST_SITE) break;
        buf_clear(&p->text);
        str_add_utf8(&p->text, (const char *)text, strnlen((const char *)text, (size_t)n));
        p->e.text = p->text.data;
        if (!p->text.failed) deliver(p, TRACE_MARK, 0, site);
        p->e.text = NULL;
        break;
    default: d->failed = true;
    }
}

/* One event: its time first, whatever it is, since times are differences. See pack.h for the bits. */
static void play_token(struct play *p, struct dec *d, uint64_t *now, unsigned shift)
{
    uint8_t token = *d->p++;
    uint64_t delta, place = token & 31;
    if (!(token & 0x80)) {
        unsigned size = (token >> 5) + 1;
        delta = size < 4 ? take_bytes(d, size) : dec_uint(d);
        if (place == PACK_SHORT_SITES) place = dec_uint(d);
    } else if (!(token & 0x40)) {
        delta = take_bytes(d, token >> 4 & 3) << 4 | (token & 15);
    } else {
        delta = dec_uint(d);
    }
    if (delta > ((uint64_t)INT64_MAX >> shift) - *now) { /* no clock runs that long */
        d->failed = true;
        return;
    }
    *now += delta;
    uint64_t ns = timeline_ns(p->t, p->process, *now << shift, &p->hint);
    if (ns > p->e.time_ns)
        p->e.time_ns = ns; /* a signal handler may have filled the chunk after this one first */
    if (!(token & 0x80)) {
        uint32_t site = site_at(p, d, place);
        if (!d->failed) begin(p, site, 0);
    } else if (!(token & 0x40)) {
        if (!d->failed) end(p, 0);
    } else {
        play_other(p, d, token & 0x3f);
    }
}

static tare_status read_sites(struct play *p, struct dec *d, uint32_t process, tare_error *err)
{
    uint64_t n = dec_uint(d);
    if (n > (uint64_t)(d->end - d->p)) d->failed = true; /* a number takes at least a byte */
    if (d->failed) return TARE_OK;
    tare_status s = vec_reserve(&p->sites, (size_t)n, err);
    if (s != TARE_OK) return s;
    vec_clear(&p->sites);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t site = LOST_SITE;
        loaded_site(p->t, process, dec_uint(d), &site);
        p->sites.items[p->sites.n++] = site;
    }
    return TARE_OK;
}

/* Nonsense ends the chunk, and is counted once: the depth that the next chunk tells brings the nesting in order. */
static tare_status play_chunk(struct play *p, const struct stored *stored, struct scratch *scratch,
                              tare_error *err)
{
    struct dec d;
    if (!stored_open(stored, scratch, &d)) /* damage was counted when the trace was opened */
        return scratch_status(scratch, err);
    struct events_head h = events_head(&d);
    uint64_t now = h.first;
    if (now > (uint64_t)INT64_MAX >> (h.shift & 63)) d.failed = true;
    tare_status s = read_sites(p, &d, stored->process, err);
    if (s != TARE_OK) return s;
    if (!d.failed) resume(p, h.depth_before);
    for (uint64_t i = 0; i < h.n_events && d.p < d.end && !d.failed && !p->stopped && !p->text.failed; i++) {
        take_told(p, i);
        play_token(p, &d, &now, (unsigned)h.shift);
    }
    take_told(p, UINT64_MAX); /* ends of our own making are no pauses */
    if (d.failed) {
        p->t->loss.damaged_chunks++;
        loss_note(p->t, "a chunk of events of thread %u makes no sense", p->e.thread);
    }
    if (p->status != TARE_OK) return p->status;
    return buf_status(&p->text, err);
}

/* Scopes that are still open at the end are closed by ends marked as synthetic: whoever listens sees every
 * begin with its end. What the callback returns other than 0 stops the replay and is handed on. */
tare_status trace_events(struct trace *t, uint32_t thread, trace_event_fn *fn, void *ctx, tare_error *err)
{
    if (thread >= t->threads.n) return error_set(err, TARE_INVALID, "%s: no thread %u", t->path, thread);
    struct loaded_thread *th = &t->threads.items[thread];
    struct play *p = mem_new(1, sizeof *p);
    if (!p) return error_nomem(err, "a trace");
    p->t = t;
    p->process = &t->processes.items[th->pub.process];
    p->fn = fn;
    p->ctx = ctx;
    p->err = err;
    p->text = (struct buf)BUF_INIT;
    p->e.thread = thread;
    struct scratch scratch = {NULL, 0, false};
    tare_status s = TARE_OK;
    for (size_t i = 0; i < th->chunks.n && s == TARE_OK && !p->stopped; i++) {
        open_pauses(p, th, th->chunks.items[i].seq);
        s = play_chunk(p, &th->chunks.items[i].stored, &scratch, err);
    }
    while (s == TARE_OK && p->depth && !p->stopped) end(p, TRACE_SYNTHETIC);
    if (p->stopped && s == TARE_OK) s = (tare_status)p->stopped;
    mem_free(scratch.bytes);
    mem_free(p->pauses_mem.bytes);
    map_u64_release(&p->waiting);
    buf_release(&p->text);
    vec_release(&p->sites);
    mem_free(p);
    return s;
}
