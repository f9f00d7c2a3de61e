/* SPDX-License-Identifier: MIT
 * layer_times.c - see layer_parts.h. Means over the same runs add up to the mean of these runs, whatever interrupted
 * them; medians of nodes would not: on a busy machine nearly every run is interrupted somewhere, each node seldom. */
#include "analyze/layers/layer_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/stats.h"

enum { RUNS_LEAST = 3 };

struct timing {
    struct layer_times *t;
    const struct ort_profile *p;
    uint64_t skip;
    bool unfinished;      /* no run in the file ended: all events count as one run */
    struct map_str index; /* (parent slot, name) -> slot */
    size_t *slot_of;      /* per event; SIZE_MAX: does not count */
    bool *typical;        /* per run: its times are taken */
    size_t n_typical;
    tare_error *err;
};

static bool counts(const struct timing *t, const struct ort_event *e)
{
    return t->unfinished || (e->run >= t->skip && e->run < t->p->runs_us.n);
}

/* ---- the sequence of the main graph ---- */

/* The same names in the same order in every run? Names are kept once by the reader: equal ones are the same pointer. */
static tare_status find_sequence(struct timing *t)
{
    size_t runs = t->p->runs_us.n, first = 0;
    VEC(const char *) names = VEC_INIT;
    size_t *at = mem_new(runs + 1, sizeof *at);
    bool same = true;
    tare_status s = at ? TARE_OK : error_nomem(t->err, "the runs of a profile");
    for (size_t i = 0; s == TARE_OK && same && i < t->p->events.n; i++) {
        const struct ort_event *e = &t->p->events.items[i];
        if (!counts(t, e) || e->parent != SIZE_MAX) continue;
        if (names.n == 0) first = e->run;
        size_t k = at[e->run]++;
        if (e->run == first)
            s = vec_push(&names, e->node, t->err);
        else
            same = k < names.n && names.items[k] == e->node;
    }
    for (size_t r = t->skip; s == TARE_OK && same && !t->unfinished && r < runs; r++) same = at[r] == names.n;
    t->t->by_position = same && !t->unfinished && names.n > 0;
    t->t->n_main = t->t->by_position ? names.n : 0;
    mem_free(at);
    vec_release(&names);
    return s;
}

/* ---- slots ---- */

static tare_status slot_by_name(struct timing *t, size_t event, size_t parent)
{
    const struct ort_event *e = &t->p->events.items[event];
    struct {
        size_t parent;
        const char *name;
    } key;
    uint64_t *at;
    size_t before = t->index.n;
    memset(&key, 0, sizeof key);
    key.parent = parent;
    key.name = e->node;
    tare_status s = map_str_ref(&t->index, (const char *)&key, sizeof key, &at, t->err);
    if (s == TARE_OK && t->index.n > before) {
        *at = t->t->slots.n;
        s = vec_push(&t->t->slots, ((struct layer_slot){.event = e, .parent = parent}), t->err);
    }
    if (s == TARE_OK) t->slot_of[event] = (size_t)*at;
    return s;
}

/* Slots 0 .. n_main - 1, from the first run that counts. */
static tare_status reserve_sequence(struct timing *t)
{
    tare_status s = TARE_OK;
    for (size_t k = 0; s == TARE_OK && k < t->t->n_main; k++)
        s = vec_push(&t->t->slots, ((struct layer_slot){.parent = SIZE_MAX}), t->err);
    return s;
}

static tare_status find_slots(struct timing *t)
{
    size_t *at = mem_new(t->p->runs_us.n + 1, sizeof *at);
    tare_status s = at ? reserve_sequence(t) : error_nomem(t->err, "a profile");
    for (size_t i = 0; s == TARE_OK && i < t->p->events.n; i++) {
        const struct ort_event *e = &t->p->events.items[i];
        t->slot_of[i] = SIZE_MAX;
        if (!counts(t, e)) continue;
        if (e->parent == SIZE_MAX && t->t->by_position)
            t->slot_of[i] = at[e->run]++;
        else
            s = slot_by_name(t, i, e->parent == SIZE_MAX ? SIZE_MAX : t->slot_of[e->parent]);
        if (s < 0) break;
        struct layer_slot *slot = &t->t->slots.items[t->slot_of[i]];
        if (!slot->event) slot->event = e;
        slot->calls++;
        if (__builtin_add_overflow(slot->total_us, e->self_us, &slot->total_us)) slot->total_us = INT64_MAX;
        t->t->events++;
    }
    mem_free(at);
    return s;
}

/* ---- which runs are typical ---- */

struct ranked {
    double away; /* from the median */
    size_t run;
};

static int by_distance(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->away != y->away) return x->away < y->away ? -1 : 1;
    return x->run < y->run ? -1 : x->run > y->run;
}

/* The fifth of the runs that is nearest to the median: also where half of them were interrupted. */
static tare_status choose_runs(struct timing *t)
{
    size_t n = t->unfinished ? 0 : (size_t)t->t->runs, least = n < RUNS_LEAST ? n : RUNS_LEAST;
    struct ranked *order = mem_new(n, sizeof *order);
    double *x = mem_new(n, sizeof *x);
    t->typical = mem_new(t->p->runs_us.n + 1, sizeof *t->typical);
    tare_status s = order && x && t->typical ? TARE_OK : error_nomem(t->err, "a profile");
    for (size_t i = 0; s == TARE_OK && i < n; i++) x[i] = (double)t->p->runs_us.items[t->skip + i];
    if (s == TARE_OK && n) s = stats_median(x, n, &t->t->median_us, t->err);
    for (size_t i = 0; s == TARE_OK && i < n; i++)
        order[i] = (struct ranked){fabs(x[i] - t->t->median_us), (size_t)t->skip + i};
    t->n_typical = n / 5 > least ? n / 5 : least;
    if (s == TARE_OK && n) qsort(order, n, sizeof *order, by_distance);
    while (s == TARE_OK && n && t->n_typical < n && order[t->n_typical].away <= order[t->n_typical - 1].away)
        t->n_typical++; /* equal ones are equally typical */
    for (size_t i = 0; s == TARE_OK && i < t->n_typical; i++) t->typical[order[i].run] = true;
    if (s == TARE_OK && t->unfinished) {
        t->typical[0] = true;
        t->n_typical = 1;
    }
    mem_free(order);
    mem_free(x);
    return s;
}

static void time_slots(struct timing *t)
{
    for (size_t i = 0; i < t->p->events.n; i++) {
        const struct ort_event *e = &t->p->events.items[i];
        if (t->slot_of[i] == SIZE_MAX || !t->typical[e->run]) continue;
        t->t->slots.items[t->slot_of[i]].time_us += (double)e->self_us / (double)t->n_typical;
    }
}

tare_status layer_times_build(struct layer_times *out, const struct ort_profile *p, uint64_t skip_runs,
                              tare_error *err)
{
    struct layer_times made = LAYER_TIMES_INIT;
    struct timing t = {.t = &made, .p = p, .skip = skip_runs, .index = MAP_STR_INIT, .err = err};
    t.unfinished = p->runs_us.n == 0;
    made.median_us = NAN;
    made.runs = p->runs_us.n > skip_runs ? p->runs_us.n - skip_runs : 0;
    if (t.unfinished) made.runs = 1;
    t.slot_of = mem_new(p->events.n, sizeof *t.slot_of);
    tare_status s = t.slot_of ? TARE_OK : error_nomem(err, "a profile");
    if (s == TARE_OK) s = find_sequence(&t);
    if (s == TARE_OK) s = find_slots(&t);
    if (s == TARE_OK) s = choose_runs(&t);
    if (s == TARE_OK) time_slots(&t);
    mem_free(t.typical);
    mem_free(t.slot_of);
    map_str_release(&t.index);
    if (s < 0) {
        layer_times_release(&made);
        return s;
    }
    *out = made;
    return TARE_OK;
}

void layer_times_release(struct layer_times *t)
{
    vec_release(&t->slots);
    *t = (struct layer_times)LAYER_TIMES_INIT;
}
