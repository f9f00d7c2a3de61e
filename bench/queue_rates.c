/* SPDX-License-Identifier: MIT
 * queue_rates.c - what `tare plan` simulates against queues whose answer is known: M/M/1, M/M/4 and M/D/1 at loads of
 * 0.5 to 0.99. How far off the figure is on average, and how often its 95 % interval holds the truth.
 * usage: queue_rates [SEEDS]    default 20 of each; prints a table */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "analyze/judge/queue.h"

enum { SAMPLES = 20000 };
static double exponential[SAMPLES]; /* of mean 1 ms */
static const double fixed[] = {1e6};

/* ---- exact answers, in units of the mean service time: the chance of a longer response than t ---- */

static double beyond_mm(double servers, double load, double t)
{
    double b = 1, offered = servers * load;
    for (double k = 1; k <= servers; k++) b = offered * b / (k + offered * b);
    double waits = b / (1 - load * (1 - b)),
           rate = servers * (1 - load); /* waiting: exponential of this rate */
    if (fabs(rate - 1) < 1e-9) return (1 + waits * t) * exp(-t);
    return (1 - waits) * exp(-t) + waits * (rate * exp(-t) - exp(-rate * t)) / (rate - 1);
}

static double beyond_mm1(double load, double t)
{
    return beyond_mm(1, load, t);
}

static double beyond_mm4(double load, double t)
{
    return beyond_mm(4, load, t);
}

/* Erlang's series for M/D/1 loses all digits at long waits; there the tail is exponential, with the rate that solves
 * load (exp(r) - 1) = r and the factor that goes with it. */
static double beyond_md1(double load, double t)
{
    double w = t - 1, sum = 0, r = 2 * (1 - load) / load;
    if (w < 0) return 1;
    if (w > 4) {
        for (int i = 0; i < 60; i++) r -= (load * expm1(r) - r) / (load * exp(r) - 1);
        return (1 - load) / (load * exp(r) - 1) * exp(-r * w);
    }
    for (int j = 0; j <= (int)w; j++) {
        double x = load * (j - w), term = exp(-x);
        for (int k = 1; k <= j; k++) term *= x / k;
        sum += term;
    }
    return 1 - (1 - load) * sum;
}

static double quantile_of(double (*beyond)(double load, double t), double load, double q)
{
    double lo = 0, hi = 1e6;
    for (int i = 0; i < 200; i++) {
        double mid = (lo + hi) / 2;
        if (beyond(load, mid) > 1 - q)
            lo = mid;
        else
            hi = mid;
    }
    return lo * 1e6;
}

/* ---- trials ---- */

static const struct queue {
    const char *name;
    const double *service;
    size_t n;
    uint32_t servers;
    double (*beyond)(double load, double t);
} queues[] = {
    {"M/M/1", exponential, SAMPLES, 1, beyond_mm1},
    {"M/M/4", exponential, SAMPLES, 4, beyond_mm4},
    {"M/D/1", fixed, 1, 1, beyond_md1},
};

static void try_queue(const struct queue *q, double load, double quantile, unsigned seeds)
{
    double truth = quantile_of(q->beyond, load, quantile), sum = 0, width = 0;
    unsigned held = 0, said = 0, low = 0;
    clock_t start = clock();
    for (unsigned seed = 1; seed <= seeds; seed++) {
        struct queue_load l = {q->service, q->n, load * 1000 * q->servers, quantile,
                               seed * 7919 + (uint64_t)(1e5 * load) + q->servers + q->n};
        struct queue_result r;
        if (queue_simulate(&l, q->servers, &r, NULL) != TARE_OK) exit(1);
        if (isinf(r.response_ns)) continue;
        said++;
        sum += r.response_ns / truth;
        width += (r.hi - r.lo) / 2 / r.response_ns;
        held += r.lo <= truth && truth <= r.hi;
        low += r.hi < truth;
    }
    if (!said)
        printf("%-6s %.3f p%-4g exact %8.1f ms: unknown\n", q->name, load, 100 * quantile, truth / 1e6);
    else
        printf(
            "%-6s %.3f p%-4g exact %8.1f ms, off by %+5.1f %% on average, interval +-%4.1f %% holds it in %u of %u"
            " (%u below), %.2f s each\n",
            q->name, load, 100 * quantile, truth / 1e6, 100 * (sum / said - 1), 100 * width / said, held,
            said, low, (double)(clock() - start) / CLOCKS_PER_SEC / said);
}

int main(int argc, char **argv)
{
    static const double loads[] = {0.5, 0.8, 0.9, 0.95, 0.97, 0.99, 0.998}, quantiles[] = {0.95, 0.99};
    unsigned seeds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20;
    double sum = 0;
    for (size_t i = 0; i < SAMPLES; i++) sum += exponential[i] = -log(((double)i + 0.5) / SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++) exponential[i] *= 1e6 * SAMPLES / sum;
    for (size_t k = 0; k < sizeof queues / sizeof *queues; k++)
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
            for (size_t j = 0; j < 2; j++) try_queue(&queues[k], loads[i], quantiles[j], seeds);
    return 0;
}
