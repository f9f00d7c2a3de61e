/* SPDX-License-Identifier: MIT
 * rounds.c - phase 2: all warm cases take turns in rounds, each round in a new random order, until each is
 * known precisely enough or has had its budget. A drift of the machine then hits all cases alike. */
#include <math.h>

#include "bench/engine.h"
#include "bench/steady.h"

#define ROUND_NS NS_PER_S       /* a round over all cases should take about this */
#define SLICE_MOST_NS 50000000  /* but a slice no longer: what disturbs it has its place, processors change */

enum {
    SOAK_RUNS = 4, /* a slice of so many runs or more has its first one, which finds cold caches, left out */
    RUNS_PER_WORKER = 20 /* in a slice of several workers, so that their different ends do not count */
};

/* Wall time of one run: of those measured, before there are any of those that warmed up. */
uint64_t typical_ns(const struct case_work *w)
{
    if (w->spent_ns && w->samples.n) return w->spent_ns / w->samples.n + 1;
    return w->warmup_ns / (w->warmup_runs ? w->warmup_runs : 1) + 1;
}

/* A slice's share of a round, at least as long as several workers need, at most what is left of the case's budget. */
static uint64_t slice_length(const struct bench *b, const struct case_work *w, size_t active)
{
    uint64_t ns = ROUND_NS / active;
    if (ns > SLICE_MOST_NS) ns = SLICE_MOST_NS;
    if (b->workers > 1) {
        uint64_t least = typical_ns(w) * RUNS_PER_WORKER * b->workers, most = b->plan->budget_ns / 10;
        if (least > most) least = most;
        if (ns < least) ns = least;
    }
    uint64_t left = b->plan->budget_ns > w->spent_ns ? b->plan->budget_ns - w->spent_ns : 0;
    return ns < left ? ns : left; /* 0: one run more, for min_runs */
}

/* One run per worker that does not count: the cases before it left the caches cold. */
static tare_status soak_caches(struct bench *b, struct case_work *w, tare_error *err)
{
    struct times dropped = VEC_INIT;
    struct usage kept = w->usage;
    struct stretch stretch = {.runs = b->workers, .into = &dropped};
    tare_status s = closed_slice(b, w, &stretch, err);
    w->warmup_runs += dropped.n;
    w->usage = kept;
    vec_release(&dropped);
    return s;
}

/* Each slice on another processor. Not where several workers are spread by the system, nor where each run is a process
 * that the system places anew. */
static bool move_case(struct bench *b, struct case_work *w)
{
    const struct subject_ops *ops = w->instance->subject->ops;
    if (!bench_machine.move || b->workers > 1 || ops->runs_in_child || (ops->process && !w->elsewhere))
        return false;
    bool moved = bench_machine.move(b->places, w->elsewhere) >= 0;
    w->moves += moved;
    return moved;
}

/* One slice of a case, with readings of process and machine right before and after it. */
static tare_status measure_slice(struct bench *b, struct case_work *w, size_t active, tare_error *err)
{
    struct stretch stretch = {.ns = slice_length(b, w, active), .runs = w->max_runs - w->samples.n};
    struct slice slice = {.first = w->samples.n};
    struct reading before, after;
    stretch.into = &w->samples;
    stretch.switched = &w->switched;
    stretch.waits = &w->waits;
    stretch.after = &after;
    tare_status s;
    bool cold = move_case(b, w) || active > 1;
    if (cold && stretch.ns / typical_ns(w) >= SOAK_RUNS && (s = soak_caches(b, w, err)) < 0) return s;
    uint64_t started = w->runs;
    if ((s = reading_take(w->instance->subject, &before, err)) < 0) return s;
    w->elsewhere = before.pid;
    uint64_t clock = bench_machine.now();
    if ((s = closed_slice(b, w, &stretch, err)) < 0) return s;
    clock = bench_machine.now() - clock;
    slice.n = w->samples.n - slice.first;
    slice.runs = w->runs - started;
    slice.wall_ns = stretch.busy_ns;
    w->spent_ns += clock;
    disturbance_add(w, &slice, &before, &after);
    memory_slice(&w->memory, &slice, &before, &after);
    return slice.runs ? vec_push(&w->slices, slice, err) : TARE_OK;
}

static tare_status update_precision(struct bench *b, struct case_work *w, tare_error *err)
{
    struct precision p;
    double asked = b->plan->percentile > 0 ? b->plan->percentile : b->plan->tail;
    tare_status s = stopping_precision(w->samples.items, w->samples.n, asked, &p, err);
    if (s < 0) return s;
    w->half_width = p.median;
    w->median_ns = p.median_ns;
    w->looked_ns = w->spent_ns;
    w->half_width_percentile = p.percentile;
    w->next_check = stopping_next(w->samples.n);
    return TARE_OK;
}

/* Is the case done? It is when the user ends it, when it has all the runs it may keep, or, from min_runs on, when its
 * budget is spent or its intervals are narrow enough. The intervals are looked at only at next_check, each time at
 * sqrt 2 times as many runs: looked at after every run, one would sooner or later be narrow by chance, and claim more
 * than it holds. A case that was precise when its budget or its room ran out counts as precise. */
static tare_status decide_stop(struct bench *b, struct case_work *w, tare_error *err)
{
    const struct bench_plan *p = b->plan;
    uint64_t least_ns = p->budget_ns < NS_PER_S ? p->budget_ns : NS_PER_S;
    if (bench_interrupted(b))
        w->stopped = STOP_INTERRUPTED;
    else if (w->samples.n >= w->max_runs)
        w->stopped = p->max_runs && w->max_runs == p->max_runs ? STOP_MAX_RUNS : STOP_ENOUGH;
    else if (w->samples.n < w->min_runs)
        return TARE_OK;
    else if (w->spent_ns >= p->budget_ns)
        w->stopped = STOP_BUDGET;
    bool look_now = w->samples.n >= w->next_check && w->spent_ns >= least_ns;
    if (w->samples.n == 0 || (!w->stopped && !look_now)) return TARE_OK;
    tare_status s = update_precision(b, w, err);
    if (s < 0 || w->stopped == STOP_INTERRUPTED || w->stopped == STOP_MAX_RUNS) return s;
    double tail = w->half_width_percentile; /* one that is only judged must be bounded, not narrow */
    bool tail_is_known = p->percentile > 0 ? tail <= p->precision : isfinite(tail);
    if (w->half_width <= p->precision && tail_is_known) w->stopped = STOP_PRECISE;
    return TARE_OK;
}

static void shuffle_order(struct rng *rng, size_t *order, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rng_below(rng, i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

static tare_status one_round(struct bench *b, const size_t *order, size_t n, tare_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct case_work *w = &b->cases[order[i]];
        tare_error why = TARE_ERROR_INIT;
        tare_status s = w->stopped ? TARE_OK : case_turn(b, w, err);
        if (s < 0) return s;
        if (w->stopped) continue; /* its process ended after an answer */
        s = bench_interrupted(b) ? TARE_OK : case_revive(b, w, &why);
        uint64_t spent = w->spent_ns, clock = bench_machine.now();
        if (s == TARE_OK && !bench_interrupted(b)) s = measure_slice(b, w, n, &why);
        s = s < 0 ? case_failed(b, w, &why, err) : decide_stop(b, w, err);
        if (s < 0) return s;
        b->round_ns += bench_machine.now() - clock;
        b->round_spent_ns += w->spent_ns - spent;
        bench_tell(b, w, "measuring");
    }
    return TARE_OK;
}

static tare_status measure_open(struct bench *b, size_t first, size_t n, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = first; s == TARE_OK && i < first + n && !bench_interrupted(b); i++) {
        struct case_work *w = &b->cases[i];
        tare_error why = TARE_ERROR_INIT;
        if (w->stopped || (s = case_turn(b, w, err)) < 0 || w->stopped) continue;
        bench_tell(b, w, "measuring");
        s = case_revive(b, w, &why);
        if (s == TARE_OK) s = (w->instance->subject->ops->load ? requests_window : open_window)(b, w, &why);
        if (s == TARE_OK) w->stopped = bench_interrupted(b) ? STOP_INTERRUPTED : STOP_BUDGET;
        if (s == TARE_OK && w->samples.n) s = update_precision(b, w, &why);
        if (s < 0) s = case_failed(b, w, &why, err);
    }
    return s;
}

/* Cases take turns in slices, in a new random order each round: a machine that grows warm or busy
 * meanwhile then touches all of them alike. One that is done leaves, and the others go on. */
tare_status rounds_measure(struct bench *b, size_t first, size_t n, tare_error *err)
{
    if (b->plan->load == BENCH_OPEN || b->plan->cases[first].subject->ops->load)
        return measure_open(b, first, n, err);
    size_t *order = mem_new(n, sizeof *order), active;
    if (!order) return error_nomem(err, "%zu cases", n);
    active = 0;
    for (size_t i = 0; i < n; i++)
        if (!b->cases[first + i].stopped) order[active++] = first + i;
    tare_status s = TARE_OK;
    while (s == TARE_OK && active > 0) {
        shuffle_order(&b->rng, order, active);
        s = one_round(b, order, active, err);
        size_t left = 0;
        for (size_t i = 0; i < active; i++)
            if (!b->cases[order[i]].stopped) order[left++] = order[i];
        active = left;
    }
    mem_free(order);
    return s;
}
