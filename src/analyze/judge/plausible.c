/* SPDX-License-Identifier: MIT
 * plausible.c - see plausible.h. */
#include "analyze/judge/plausible.h"

#include <math.h>
#include <string.h>

#include "core/stats.h"

/* Medians of runs on a saturated machine had 0.26 to 0.36, their CPU time 0.01 to 0.10 (docs/comparing.md); tails vary
 * more. Loading depends on what is in the page cache: never judged so. */
static const struct {
    const char *metric;
    double sd;
} rows[] = {
    {"latency.p50", 0.4},   {"latency.mean", 0.5},    {"throughput", 0.5}, {"cpu.time", 0.25}, {"load", 0},
    {"function.own", 0.25}, {"function.total", 0.25}, {"time", 0.25}, /* of sampled stacks: as CPU time */
};
#define BYTES_SD 0.25
#define ELSE_SD 0.8
/* In CPU time of brief runs threads of a runtime that wait busily may be most: 17 times as much was seen */
#define BRIEF_CPU_SD 1.2

/* The fastest of five runs and more over the median of another bench: at most 2.71 in 7,800 pairs of five programs of
 * 0.1 ms to 0.25 s on two processors at a load of 11 to 23, where medians differed up to 13 times
 * (docs/comparing.md). */
#define FASTEST_SD 0.4

/* and wider by these: times other than CPU time where other work interrupted the runs; all of runs that took less than
 * BRIEF_NS together, of which one interruption is a part */
#define BUSY_FACTOR 2
#define BUSY_INTERRUPTED 0.25
#define BUSY_STEAL 0.02
#define BRIEF_FACTOR 1.5
#define BRIEF_NS 1e8

bool plausible_disturbed(const struct run_case *c, double *interrupted, double *steal)
{
    if (!c->cpu.known || !c->cpu.involuntary_switches.known || !c->samples.known || !c->samples.v)
        return false;
    *interrupted = (double)c->cpu.involuntary_switches.v / (double)c->samples.v;
    *steal = c->cpu.steal.known ? c->cpu.steal.v : 0;
    return true;
}

bool plausible_is_busy(double interrupted, double steal)
{
    return interrupted > BUSY_INTERRUPTED || steal > BUSY_STEAL;
}

bool plausible_is_brief(const struct run_case *c)
{
    struct run_estimate mean = {0};
    return c->samples.known && measure_named(c, "latency.mean", &mean) &&
           mean.value * run_case_runs(c) < BRIEF_NS;
}

double plausible_sd(const struct measure *m, bool busy, bool brief)
{
    double sd = ELSE_SD;
    if (m->kind == MEASURE_BYTES) return BYTES_SD;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].metric, m->name) == 0) sd = rows[i].sd;
    bool waits = strcmp(m->name, "cpu.time") != 0; /* while others have the processor */
    if (!waits && brief) return BRIEF_CPU_SD;
    if (waits && busy) sd *= BUSY_FACTOR;
    return brief ? sd * BRIEF_FACTOR : sd;
}

double plausible_fastest_sd(const struct measure *m, bool brief)
{
    if (strncmp(m->name, "latency.", 8) != 0 && strcmp(m->name, "throughput") != 0) return 0;
    return brief ? FASTEST_SD * BRIEF_FACTOR : FASTEST_SD;
}

double plausible_ratio(double sd, double min_effect, double alpha)
{
    return exp(log1p(min_effect) + stats_normal_quantile(1 - alpha) * sd * sqrt(2));
}
