/* SPDX-License-Identifier: MIT
 * timeline.c - ticks -> nanoseconds, straight lines between the (ticks, wall) pairs the recorder took. */
#include <stdlib.h>

#include "trace/loaded.h"

static int by_ticks(const void *a, const void *b)
{
    const struct clock_pair *x = a, *y = b;
    return (x->ticks > y->ticks) - (x->ticks < y->ticks);
}

/* Drop pairs that go backwards on either clock: a migrated machine, or damage. */
static void clean_pairs(struct loaded_process *p)
{
    size_t kept = 0;
    if (p->pairs.n > 1) qsort(p->pairs.items, p->pairs.n, sizeof p->pairs.items[0], by_ticks);
    for (size_t i = 0; i < p->pairs.n; i++) {
        const struct clock_pair *last = kept ? &p->pairs.items[kept - 1] : NULL, *next = &p->pairs.items[i];
        if (next->ticks > INT64_MAX || next->raw_ns > INT64_MAX) continue; /* no clock runs that long */
        if (!last || (next->ticks > last->ticks && next->raw_ns > last->raw_ns))
            p->pairs.items[kept++] = *next;
    }
    p->pairs.n = kept;
}

static double timeline_tick_ns(const struct loaded_process *p)
{
    if (!p->info.tsc) return 1;
    if (p->pairs.n < 2) return 0;
    return clock_tick_ns(&p->pairs.items[0], &p->pairs.items[p->pairs.n - 1]);
}

/* A length no clock has would turn damage into nonsense. */
static double sane_tick(double ns)
{
    return ns > 0.01 && ns < 1000 ? ns : 0;
}

/* Time 0 is when the first process began. Where there are too few pairs another process tells the length of a tick. */
void timeline_prepare(struct trace *t)
{
    double any = 0;
    t->begun_raw_ns = UINT64_MAX;
    for (size_t i = 0; i < t->processes.n; i++) {
        struct loaded_process *p = &t->processes.items[i];
        clean_pairs(p);
        if (!p->described && p->pairs.n) { /* its description is damaged: the pairs tell as much */
            p->info.tsc = p->pairs.items[0].ticks != p->pairs.items[0].raw_ns;
            p->info.begun_raw_ns = p->pairs.items[0].raw_ns;
        }
        p->pub.tick_ns = sane_tick(timeline_tick_ns(p));
        if (p->pub.tick_ns > 0 && p->info.tsc) any = p->pub.tick_ns;
        if ((p->described || p->pairs.n) && p->info.begun_raw_ns < t->begun_raw_ns)
            t->begun_raw_ns = p->info.begun_raw_ns;
    }
    if (t->begun_raw_ns > INT64_MAX) t->begun_raw_ns = 0;
    for (size_t i = 0; i < t->processes.n; i++) {
        struct trace_process *p = &t->processes.items[i].pub;
        if (p->tick_ns > 0) continue;
        p->tick_ns = any > 0 ? any : 1;
        if (!(any > 0))
            loss_note(t,
                      "process %u: too short a record to know the length of a clock tick; times are in ticks",
                      p->pid);
    }
}

/* `hint` is where the last time was found: events come in order, so the next is there or one further. */
/* Whole numbers first: after months of uptime a double holds neither clock to the nanosecond. */
uint64_t timeline_find(const struct trace *t, const struct loaded_process *p, uint64_t ticks,
                       struct timeline_hint *hint)
{
    const struct clock_pair *v = p->pairs.items;
    size_t n = p->pairs.n, i = hint->pair;
    if (!p->info.tsc) return ticks > t->begun_raw_ns ? ticks - t->begun_raw_ns : 0;
    if (!n) return 0;
    if (i >= n) i = n - 1;
    while (i > 0 && v[i].ticks > ticks) i--;
    while (i + 1 < n && v[i + 1].ticks <= ticks) i++;
    *hint = (struct timeline_hint){.first = v[i].ticks, .tick = p->pub.tick_ns, .pair = i};
    hint->since = (double)(int64_t)(v[i].raw_ns - t->begun_raw_ns);
    if (i + 1 < n) {
        hint->tick = (double)(v[i + 1].raw_ns - v[i].raw_ns) / (double)(v[i + 1].ticks - v[i].ticks);
        if (hint->since >= 0 && v[i + 1].raw_ns < INT64_MAX) hint->length = v[i + 1].ticks - v[i].ticks;
    }
    double ns = hint->since + (double)(int64_t)(ticks - v[i].ticks) * hint->tick;
    if (!(ns > 0)) return 0;
    return ns < 9e18 ? (uint64_t)ns : (uint64_t)9e18;
}

uint64_t trace_raw_time(const struct trace *t, uint64_t raw_ns)
{
    return raw_ns > t->begun_raw_ns ? raw_ns - t->begun_raw_ns : 0;
}
