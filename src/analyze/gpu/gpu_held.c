/* SPDX-License-Identifier: MIT
 * gpu_held.c - device memory over time, from what was taken from the driver and given back: its course, its peak, and
 * by which call and in which range the memory was taken that was held then. Frameworks take large pieces and hand out
 * parts of them: the parts are not seen here. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_work.h"

enum { POINTS_MOST = 400, HOLDERS_MOST = 50 };

struct held_event {
    uint64_t at;
    uint32_t event; /* index of gpu_work.memory */
};

struct holding {
    struct gpu_work *w;
    uint16_t card;
    VEC(struct held_event) order; /* of one card, by time */
    VEC(bool) held;               /* by index of gpu_work.memory: at the peak */
    uint64_t peak;
    size_t peak_at; /* index of order */
};

static int by_time(const void *a, const void *b)
{
    const struct held_event *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static tare_status order_events(struct holding *h)
{
    const struct gpu_work *w = h->w;
    tare_status s = TARE_OK;
    vec_clear(&h->order);
    for (uint32_t i = 0; i < w->memory.n && s == TARE_OK; i++)
        if (w->memory.items[i].card == h->card)
            s = vec_push(&h->order, ((struct held_event){w->memory.items[i].at, i}), w->err);
    if (s != TARE_OK) return s;
    return gpu_sort(h->order.items, h->order.n, sizeof *h->order.items, by_time, w->err);
}

/* What is held after an event. Given back before it was taken, as a damaged file has it: it never goes below 0. */
static uint64_t after(const struct holding *h, size_t i, uint64_t held)
{
    const struct gpu_memory_event *e = &h->w->memory.items[h->order.items[i].event];
    if (e->taken == TAKES) return held + e->bytes;
    return held > e->bytes ? held - e->bytes : 0;
}

static void find_peak(struct holding *h)
{
    uint64_t held = 0;
    for (size_t i = 0; i < h->order.n; i++) {
        held = after(h, i, held);
        if (held <= h->peak) continue;
        h->peak = held;
        h->peak_at = i;
    }
}

/* The most of each of some hundred equal pieces of the time, and what it was before where that was more than since:
 * a line drawn through the points shows every peak. */
static tare_status put_course(const struct holding *h, struct gpu_card *out)
{
    uint64_t first = h->order.items[0].at, span = h->order.items[h->order.n - 1].at - first, held = 0;
    struct gpu_memory_at *point = NULL;
    uint64_t part = UINT64_MAX;
    for (size_t i = 0; i < h->order.n; i++) {
        uint64_t at = h->order.items[i].at;
        uint64_t now = span ? (uint64_t)((double)(at - first) / (double)span * (POINTS_MOST - 1)) : 0;
        bool last = i + 1 == h->order.n;
        held = after(h, i, held);
        if (now != part || last) point = RUN_LIST_ADD(&h->w->out->arena, &out->memory);
        if (!point) return error_nomem(h->w->err, "memory over time");
        if (now != part || last || held >= point->bytes) *point = (struct gpu_memory_at){at, held};
        part = now;
    }
    return TARE_OK;
}

/* ---- who held it ---- */

static tare_status mark_held(struct holding *h)
{
    const struct gpu_work *w = h->w;
    tare_status s = vec_reserve(&h->held, w->memory.n + 1, w->err);
    if (s != TARE_OK) return s;
    memset(h->held.items, 0, w->memory.n);
    for (size_t i = 0; i <= h->peak_at; i++) {
        uint32_t event = h->order.items[i].event, taken = w->memory.items[event].taken;
        h->held.items[taken == TAKES ? event : taken] = taken == TAKES;
    }
    return TARE_OK;
}

static uint64_t step_of(const struct holding *h, uint64_t at)
{
    const struct gpu_work *w = h->w;
    uint64_t number = 0;
    for (size_t i = 0; i < w->windows.n; i++) {
        if (w->windows.items[i].card != h->card) continue;
        number++;
        if (at >= w->windows.items[i].start && at < w->windows.items[i].end) return number;
    }
    return 0;
}

static const char *text_of(const struct gpu_work *w, uint32_t name)
{
    return name < w->names.n ? w->names.items[name].text : NULL;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

struct site {
    const char *range, *call;
    uint32_t thread; /* index; MANY_THREADS: unknown */
};

static struct site site_of(const struct gpu_work *w, const struct gpu_memory_event *e)
{
    const struct gpu_host_call *call = gpu_work_call(w, e->process, e->id);
    const struct gpu_open_range *range = gpu_work_range(w, e->process, e->id);
    struct site s = {NULL, NULL, MANY_THREADS};
    if (range) s.range = text_of(w, range->name);
    if (call && call->name < w->call_names.n) s.call = text_of(w, w->call_names.items[call->name]);
    if (call) s.thread = call->thread;
    return s;
}

static struct gpu_holder *holder_of(struct gpu_work *w, struct gpu_card *out, const struct site *site)
{
    struct known_u64 thread = {0};
    if (site->thread < w->threads.n) thread = known_u64(w->threads.items[site->thread].thread);
    for (size_t i = 0; i < out->memory_holders.n; i++) {
        struct gpu_holder *x = out->memory_holders.at[i];
        if (same(x->range, site->range) && same(x->call, site->call) && x->thread.known == thread.known &&
            x->thread.v == thread.v)
            return x;
    }
    struct gpu_holder *made =
        out->memory_holders.n < RUN_LIST_MAX ? RUN_LIST_ADD(&w->out->arena, &out->memory_holders) : NULL;
    if (!made) return NULL;
    made->range = site->range ? arena_str(&w->out->arena, site->range) : NULL;
    made->call = site->call ? arena_str(&w->out->arena, site->call) : NULL;
    made->thread = thread;
    return made;
}

static int by_bytes(const void *a, const void *b)
{
    const struct gpu_holder *x = *(struct gpu_holder *const *)a, *y = *(struct gpu_holder *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->call ? x->call : "", y->call ? y->call : "");
}

/* The step is that of the largest piece; most memory is taken before the first. */
static tare_status put_holders(struct holding *h, struct gpu_card *out)
{
    struct gpu_work *w = h->w;
    uint64_t largest[HOLDERS_MOST] = {0};
    tare_status s = mark_held(h);
    for (uint32_t i = 0; i < w->memory.n && s == TARE_OK; i++) {
        const struct gpu_memory_event *e = &w->memory.items[i];
        if (!h->held.items[i] || e->card != h->card) continue;
        const struct site site = site_of(w, e);
        struct gpu_holder *x = holder_of(w, out, &site);
        if (!x) return w->out->arena.failed ? error_nomem(w->err, "holders of memory") : TARE_OK;
        gpu_grow(&x->bytes, e->bytes);
        x->pieces++;
        size_t number = 0;
        while (number < out->memory_holders.n && out->memory_holders.at[number] != x) number++;
        if (number >= HOLDERS_MOST || e->bytes <= largest[number]) continue;
        uint64_t step = step_of(h, e->at);
        largest[number] = e->bytes;
        x->step = step ? known_u64(step) : (struct known_u64){0};
    }
    if (out->memory_holders.n)
        qsort(out->memory_holders.at, out->memory_holders.n, sizeof *out->memory_holders.at, by_bytes);
    if (out->memory_holders.n > HOLDERS_MOST) out->memory_holders.n = HOLDERS_MOST;
    return s;
}

static bool is_late(const struct gpu_work *w, uint32_t process)
{
    for (size_t i = 0; i < w->late.n; i++)
        if (w->late.items[i] == process) return true;
    return false;
}

static tare_status put_card(struct holding *h, struct gpu_card *out)
{
    if (is_late(h->w, h->w->cards.items[h->card].process)) {
        run_map_textf(&h->w->out->arena, &out->unknown, "memory_peak_bytes",
                      "recording began while the program ran: what it had taken before was not seen");
        return TARE_OK;
    }
    tare_status s = order_events(h);
    h->peak = h->peak_at = 0;
    if (s != TARE_OK || !h->order.n) return s;
    find_peak(h);
    if (!h->peak) return TARE_OK;
    out->memory_peak_bytes = known_u64(h->peak & INT64_MAX);
    out->memory_peak_at_ns = known_u64(h->order.items[h->peak_at].at);
    s = put_course(h, out);
    return s == TARE_OK ? put_holders(h, out) : s;
}

tare_status gpu_work_held(struct gpu_work *w)
{
    struct holding h = {.w = w};
    tare_status s = TARE_OK;
    for (uint16_t i = 0; i < w->cards.n && i < JUDGED_CARDS_MOST && s == TARE_OK; i++) {
        h.card = i;
        s = put_card(&h, &w->cards.items[i].out);
    }
    vec_release(&h.order);
    vec_release(&h.held);
    vec_release(&w->in_range); /* it is large, and done with */
    return s;
}
