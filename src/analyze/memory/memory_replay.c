/* SPDX-License-Identifier: MIT
 * memory_replay.c - see memory_replay.h. */
#include "analyze/memory/memory_replay.h"

#include <math.h>

/* What never held so much has no course over time: many of them may be one line that matters. */
#define KEPT_FROM 4096.0

/* Blocks of at least so many bytes pass when they live no longer than this, and a nanosecond for each byte. */
#define PASSING_FROM (UINT64_C(1) << 20)

/* A container that grows takes the next block at most so much larger than the last. */
#define STEP_MOST 2.6

void memory_replay_release(struct memory_replay *r)
{
    memory_told_release(&r->told);
    memory_held_release(&r->held);
    map_u64_release(&r->site_of);
    map_u64_release(&r->arena_at);
    vec_release(&r->sites);
    vec_release(&r->notes);
}

/* ---- sums ---- */

#define OF_MALLOC SIZE_MAX /* the site of what malloc mapped for itself */

/* The share of allocations of this size that is in the record. */
static double chance(const struct memory_replay *r, uint64_t size)
{
    return r->sum.every && size ? -expm1(-(double)size / (double)r->sum.every) : 1;
}

static struct memory_bytes weigh(uint64_t size, double p)
{
    double bytes = (double)size;
    return (struct memory_bytes){bytes / p, bytes * bytes * (1 - p) / (p * p), bytes};
}

/* Rounding of what is added and taken away again does not go below 0. */
static void add(struct memory_bytes *to, struct memory_bytes b, double sign)
{
    to->sum = fmax(0, to->sum + sign * b.sum);
    to->variance = fmax(0, to->variance + sign * b.variance);
    to->seen = fmax(0, to->seen + sign * b.seen);
}

static tare_status site_of(struct memory_replay *r, uint64_t stack, size_t *out, tare_error *err)
{
    const uint64_t *known = map_u64_find(&r->site_of, stack);
    tare_status s = TARE_OK;
    *out = known ? (size_t)*known : r->sites.n;
    if (known) return s;
    s = vec_reserve(&r->sites, r->sites.n + 1, err);
    if (s == TARE_OK) s = map_u64_put(&r->site_of, stack, r->sites.n, err);
    if (s == TARE_OK) r->sites.items[r->sites.n++] = (struct replay_site){.stack = stack};
    return s;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The longest row of blocks of which each is somewhat larger than the last. */
static void rises(struct replay_site *s, uint64_t size)
{
    struct memory_rise *row = &s->row;
    if (row->steps && size > row->to && (double)size <= STEP_MOST * (double)row->to)
        row->steps++;
    else
        *row = (struct memory_rise){.from = size, .steps = 1};
    row->to = size;
    if (row->steps >= s->site.rise.steps) s->site.rise = *row;
}

/* Sums over the whole time are made the first time, what is held now both times. */
static void taken(struct memory_replay *r, size_t site, uint64_t size, double p)
{
    size_t class = 0;
    struct replay_site *s = &r->sites.items[site];
    struct memory_bytes b = weigh(size, p);
    add(&s->now, b, 1);
    add(&r->now, b, 1);
    if (r->again) return;
    s->most = fmax(s->most, s->now.sum);
    add(&s->site.allocated, b, 1);
    add(&r->sum.allocated, b, 1);
    s->site.allocations += 1 / p;
    r->sum.allocations += 1 / p;
    r->sum.noted++;
    while (class < MEMORY_SIZES - 1 && size > MEMORY_SIZE_MOST(class)) class ++;
    r->sum.sizes[class] += 1 / p;
    s->site.largest = larger(s->site.largest, size);
    r->sum.largest = larger(r->sum.largest, size);
    rises(s, size);
}

static void lived(struct memory_replay *r, const struct held_block *h, double p, uint64_t now)
{
    struct memory_site *s = &r->sites.items[h->site].site;
    struct memory_bytes b = weigh(h->size, p);
    uint64_t ns = now - h->at_ns;
    size_t i = 0;
    for (uint64_t below = 1000; i < MEMORY_LIFETIMES - 1 && ns >= below; below *= 10) i++;
    r->sum.lifetimes[i] += 1 / p;
    s->lifetimes[i] += 1 / p;
    if (h->size >= PASSING_FROM && (ns <= MEMORY_CHURN_NS || ns - MEMORY_CHURN_NS <= h->size)) {
        add(&s->passing, b, 1);
        s->passed += 1 / p;
    }
    if (ns > MEMORY_CHURN_NS) return;
    add(&s->churn, b, 1);
    add(&r->sum.churn, b, 1);
    s->churned += 1 / p;
    r->sum.churned += 1 / p;
}

static void given(struct memory_replay *r, const struct held_block *h, double p, uint64_t now, bool seen)
{
    struct replay_site *s = &r->sites.items[h->site];
    struct memory_bytes b = weigh(h->size, p);
    add(&s->now, b, -1);
    add(&r->now, b, -1);
    if (!r->again && seen) lived(r, h, p, now);
}

/* ---- what happened ---- */

static tare_status allocated(struct memory_replay *r, const struct memory_record *w, tare_error *err)
{
    struct held_block b, before;
    double p = chance(r, w->ALLOC.size);
    b = (struct held_block){.at_ns = w->ALLOC.at, .size = w->ALLOC.size};
    tare_status s = site_of(r, w->ALLOC.stack, &b.site, err);
    if (s != TARE_OK) return s;
    if (memory_held_take(&r->held, w->ALLOC.address,
                         &before)) { /* its free was lost: how long it lived is unknown */
        given(r, &before, chance(r, before.size), w->ALLOC.at, false);
        r->sum.unseen_frees += !r->again;
    }
    s = memory_held_put(&r->held, w->ALLOC.address, b, err);
    if (s == TARE_OK) taken(r, b.site, b.size, p);
    return s;
}

static void freed(struct memory_replay *r, const struct memory_record *w)
{
    struct held_block b;
    if (memory_held_take(&r->held, w->FREE.address, &b)) given(r, &b, chance(r, b.size), w->FREE.at, true);
}

static uint64_t end_of(uint64_t address, uint64_t size)
{
    return address + size < address ? UINT64_MAX : address + size;
}

static tare_status unmapped(struct memory_replay *r, uint64_t address, uint64_t size, uint64_t now,
                            tare_error *err)
{
    for (bool any = true; any;) {
        struct held_range piece = {.start = address, .end = end_of(address, size)};
        tare_status s = memory_held_unmap(&r->held, &piece, &any, err);
        if (s != TARE_OK) return s;
        if (!any) break;
        if (piece.site == OF_MALLOC) {
            r->pools -= piece.end - piece.start;
            continue;
        }
        struct held_block b = {piece.at_ns, piece.end - piece.start, piece.site};
        given(r, &b, 1, now, true);
        r->maps -= b.size;
    }
    return TARE_OK;
}

/* Arenas are whole blocks of the allocator's, of one size, and never mapped over. */
static tare_status arena_of(struct memory_replay *r, const struct memory_record *w, tare_error *err)
{
    r->arenas += w->MAP.size;
    return map_u64_put(&r->arena_at, w->MAP.address, w->MAP.size, err);
}

static void arena_gone(struct memory_replay *r, uint64_t address)
{
    uint64_t size;
    if (map_u64_remove(&r->arena_at, address, &size)) r->arenas -= size;
}

/* Pages of files are the kernel's to drop, and what lies in Python's arenas or in what malloc mapped is told by ALLOC:
 * none of them counts. */
static tare_status mapped(struct memory_replay *r, const struct memory_record *w, tare_error *err)
{
    struct held_range m = {
        .start = w->MAP.address, .end = end_of(w->MAP.address, w->MAP.size), .at_ns = w->MAP.at};
    tare_status s = unmapped(r, w->MAP.address, w->MAP.size, w->MAP.at, err); /* MAP_FIXED replaces */
    arena_gone(r, w->MAP.address);
    if (s == TARE_OK && w->MAP.what & MEMORY_MAP_ARENA) return arena_of(r, w, err);
    if (s != TARE_OK || w->MAP.what & MEMORY_MAP_FILE || m.start == m.end) return s;
    if (w->MAP.what & MEMORY_MAP_MALLOC) {
        m.site = OF_MALLOC;
        r->pools += m.end - m.start;
        return memory_held_map(&r->held, m, err);
    }
    s = site_of(r, w->MAP.stack, &m.site, err);
    if (s == TARE_OK) s = memory_held_map(&r->held, m, err);
    if (s != TARE_OK) return s;
    taken(r, m.site, m.end - m.start, 1);
    r->maps += m.end - m.start;
    return TARE_OK;
}

/* ---- moments ---- */

static uint64_t moment_ns(const struct memory_process *p, size_t i)
{
    uint64_t span = p->to_ns - p->from_ns;
    return p->from_ns + span / MEMORY_MOMENTS * (i + 1) + span % MEMORY_MOMENTS * (i + 1) / MEMORY_MOMENTS;
}

double memory_moment(const struct memory_process *p, size_t i)
{
    return (double)moment_ns(p, i) / 1e9;
}

/* What is held now was held at all moments before `ns`. */
static void moments_before(struct memory_replay *r, uint64_t ns, bool all)
{
    for (; r->moment < MEMORY_MOMENTS && (all || moment_ns(&r->sum, r->moment) < ns); r->moment++) {
        r->sum.moments[r->moment] = r->now.sum;
        for (size_t i = 0; i < r->sites.n; i++)
            if (r->sites.items[i].site.series)
                r->sites.items[i].site.series[r->moment] = r->sites.items[i].now.sum;
    }
}

static void peak_now(struct memory_replay *r, uint64_t at)
{
    if (r->again && r->events == r->peak_event)
        for (size_t i = 0; i < r->sites.n; i++) r->sites.items[i].site.at_peak = r->sites.items[i].now;
    if (r->again || r->now.sum <= r->sum.peak.sum) return;
    r->sum.peak = r->now;
    r->sum.peak_ns = at;
    r->peak_event = r->events;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static uint64_t free_of(const struct memory_heap *h)
{
    return h->held > h->used ? h->held - h->used : 0;
}

/* What a program frees and takes again is free for a moment only: of three readings in a row the least counts. */
static void keep_idle(struct memory_replay *r, const struct memory_heap *now)
{
    const struct memory_heap *least = now;
    for (int i = 0; i < 2; i++) {
        if (!r->before[i].known) least = NULL;
        if (least && free_of(&r->before[i]) < free_of(least)) least = &r->before[i];
    }
    if (least && (!r->sum.idle.known || free_of(least) > free_of(&r->sum.idle))) r->sum.idle = *least;
    r->before[1] = r->before[0];
    r->before[0] = *now;
}

/* Readings are about a second apart: the greatest of them may be of long before the peak, so the nearest is kept. */
static void heap_now(struct memory_replay *r, const struct memory_record *w)
{
    uint64_t peak = r->sum.peak_ns;
    if (w->HEAP.resident == 0) return;
    struct memory_heap now = {.known = true,
                              .at_ns = w->HEAP.at,
                              .resident = w->HEAP.resident,
                              .file = w->HEAP.file,
                              .held = w->HEAP.held,
                              .used = w->HEAP.used,
                              .mapped = w->HEAP.mapped,
                              .top = w->HEAP.top,
                              .program = r->now,
                              .maps = r->maps,
                              .arenas = r->arenas,
                              .pools = r->pools};
    add(&now.program, weigh(now.maps, 1), -1);
    struct memory_heap *h = &r->sum.heap, *cached = &r->sum.cached;
    if (!h->known || apart(now.at_ns, peak) < apart(h->at_ns, peak)) *h = now;
    if (!cached->known || now.file > cached->file) *cached = now;
    keep_idle(r, &now);
}

static tare_status happened(struct memory_replay *r, const struct memory_record *w, tare_error *err)
{
    uint64_t at = w->v[0];
    tare_status s = TARE_OK;
    if (r->again) moments_before(r, at, false);
    if (!r->again && r->events == 0) r->sum.from_ns = at;
    if (!r->again) r->sum.to_ns = at;
    r->events++;
    if (w->kind == MEMORY_ALLOC) s = allocated(r, w, err);
    if (w->kind == MEMORY_FREE) freed(r, w);
    if (w->kind == MEMORY_MAP) s = mapped(r, w, err);
    if (w->kind == MEMORY_UNMAP) {
        arena_gone(r, w->UNMAP.address);
        s = unmapped(r, w->UNMAP.address, w->UNMAP.size, at, err);
    }
    if (w->kind == MEMORY_HEAP && r->again) heap_now(r, w);
    peak_now(r, at);
    return s;
}

/* ---- what is told ---- */

static tare_status told(struct memory_replay *r, const struct memory_record *w, tare_error *err)
{
    struct memory_process *p = &r->sum;
    if (w->kind == MEMORY_START) {
        p->started = true;
        p->every = w->START.every;
    } else if (w->kind == MEMORY_LOST) { /* sums so far */
        p->lost_records = larger(p->lost_records, w->LOST.records);
        p->lost_stacks = larger(p->lost_stacks, w->LOST.stacks);
        p->lost_samples = larger(p->lost_samples, w->LOST.samples);
    } else if (w->kind == MEMORY_THREAD) {
        p->threads++;
    } else if (w->kind == MEMORY_NOTE) {
        const char *text = arena_str_n(r->arena, w->text, w->text_bytes);
        return text ? vec_push(&r->notes, text, err) : error_nomem(err, "the notes of a trace");
    }
    return memory_told_add(&r->told, w, r->arena, err);
}

tare_status memory_replay_record(struct memory_replay *r, const struct memory_record *what, tare_error *err)
{
    if (what->kind == MEMORY_BY) return TARE_OK;
    if (memory_has_time(what->kind)) return happened(r, what, err);
    return r->again ? TARE_OK : told(r, what, err);
}

tare_status memory_replay_again(struct memory_replay *r, tare_error *err)
{
    memory_held_release(&r->held);
    map_u64_release(&r->arena_at);
    r->arena_at = (struct map_u64)MAP_U64_INIT;
    r->held = (struct memory_held){0};
    r->now = (struct memory_bytes){0};
    r->maps = r->arenas = r->pools = 0;
    r->events = 0;
    r->again = true;
    for (size_t i = 0; i < r->sites.n; i++) {
        struct replay_site *s = &r->sites.items[i];
        s->now = (struct memory_bytes){0};
        s->site.series = s->most < KEPT_FROM ? NULL : arena_new(r->arena, MEMORY_MOMENTS, sizeof *s->site.series);
        if (r->arena->failed) return error_nomem(err, "%d moments", MEMORY_MOMENTS);
    }
    return TARE_OK;
}

void memory_replay_end(struct memory_replay *r)
{
    moments_before(r, 0, true);
    r->sum.at_end = r->now;
    for (size_t i = 0; i < r->sites.n; i++) r->sites.items[i].site.at_end = r->sites.items[i].now;
}
