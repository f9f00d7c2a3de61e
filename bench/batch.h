/* SPDX-License-Identifier: MIT
 * batch.h - measuring on a noisy machine: short batches, those that were preempted thrown away, the fastest tenth
 * (p10) and the median of the rest. Only ratios of numbers taken side by side in one run mean anything. */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/clock.h"
#include "core/rng.h"

enum { SERIES_MAX = 20000 };

struct series {
    double v[SERIES_MAX];
    size_t n;
};

static inline void series_add(struct series *s, double v)
{
    if (s->n < SERIES_MAX) s->v[s->n++] = v;
}

static int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double series_at(struct series *s, double q)
{
    if (!s->n) return NAN;
    qsort(s->v, s->n, sizeof s->v[0], bench_by_value);
    return s->v[(size_t)((double)(s->n - 1) * q)];
}

static inline long bench_switches(void)
{
    struct rusage r;
    getrusage(RUSAGE_THREAD, &r);
    return r.ru_nivcsw + r.ru_nvcsw;
}

/* Nobody else on our core while we measure, where the system lets us; says so where it does not. */
static inline void bench_alone(void)
{
    struct sched_param p = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &p) != 0) printf("(no real-time priority: expect more noise)\n");
}

/* Runs `body` once and adds ns per item, unless the thread was switched out meanwhile. */
static inline bool bench_batch(struct series *s, void (*body)(void *), void *ctx, unsigned items)
{
    long before = bench_switches();
    uint64_t start = clock_raw_ns();
    body(ctx);
    uint64_t ns = clock_raw_ns() - start;
    if (bench_switches() != before) return false;
    series_add(s, (double)ns / items);
    return true;
}

/* One line a machine can read: name, value, goal ("" if none), and whether it is met. */
static inline void bench_say(const char *name, double value, const char *unit, double goal)
{
    if (isnan(goal))
        printf("%-44s %9.3f %-6s\n", name, value, unit);
    else
        printf("%-44s %9.3f %-6s goal <= %-8g %s\n", name, value, unit, goal,
               value <= goal ? "met" : "MISSED");
}

#endif
