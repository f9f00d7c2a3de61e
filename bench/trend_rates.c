/* SPDX-License-Identifier: MIT
 * trend_rates.c - how often `tare trend` is wrong and how soon it is right, on histories of 100 made-up runs:
 *   false   change points in histories whose level never changes
 *   found   a step, looked for after each new run, as a user would see it
 *   undone  pulses: steps that were taken back
 * usage: trend_rates [HISTORIES]    default 1000 of each kind; prints a table, seeded */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/compare/trend.h"
#include "core/rng.h"

enum { RUNS = 100, MOST_AFTER = 20, NEAR = 3 };

static double normal(struct rng *r)
{
    return sqrt(-2 * log(1 - rng_unit(r))) * cos(6.283185307179586 * rng_unit(r));
}

/* ---- kinds of noise, all with standard deviation 1 ---- */

static void make_normal(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = normal(r);
}

/* Student's t with 3 degrees of freedom: as run medians of busy machines look. */
static void make_heavy(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double a = normal(r), b = normal(r), c = normal(r);
        x[i] = normal(r) / sqrt((a * a + b * b + c * c) / 3) / sqrt(3);
    }
}

/* One run in ten was disturbed, always to the slow side. */
static void make_spikes(struct rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = (normal(r) + (rng_unit(r) < 0.1 ? 5 * rng_unit(r) : 0)) / 1.46;
}

static void make_follow(struct rng *r, double *x, size_t n, double phi)
{
    double last = normal(r);
    for (size_t i = 0; i < n; i++) x[i] = last = phi * last + sqrt(1 - phi * phi) * normal(r);
}

#define FOLLOW(percent)                                                       \
    static void make_follow_##percent(struct rng *r, double *x, size_t n) \
    {                                                                         \
        make_follow(r, x, n, percent / 100.0);                                \
    }
FOLLOW(10)
FOLLOW(20)
FOLLOW(30)
FOLLOW(50)
FOLLOW(70)

static const struct noise {
    const char *name;
    void (*make)(struct rng *r, double *x, size_t n);
} noises[] = {
    {"normal", make_normal},
    {"heavy-tailed (t, 3 degrees)", make_heavy},
    {"one in ten disturbed", make_spikes},
    {"neighbours correlated 0.1", make_follow_10},
    {"neighbours correlated 0.2", make_follow_20},
    {"neighbours correlated 0.3", make_follow_30},
    {"neighbours correlated 0.5", make_follow_50},
    {"neighbours correlated 0.7", make_follow_70},
};
enum { NOISES = sizeof noises / sizeof *noises };

/* ---- false ---- */

static size_t find(const double *y, size_t n, struct trend *t)
{
    struct trend_options o = TREND_OPTIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (trend_find(y, n, &o, t, &err) != TARE_OK) {
        fprintf(stderr, "trend_rates: %s\n", err.text);
        exit(1);
    }
    return t->changes.n;
}

static void count_false(const struct noise *noise, double sd, unsigned histories)
{
    struct rng r;
    unsigned points = 0, with = 0, said = 0;
    double smallest = 0;
    rng_seed(&r, 1);
    for (unsigned h = 0; h < histories; h++) {
        double y[RUNS];
        struct trend t;
        noise->make(&r, y, RUNS);
        for (size_t i = 0; i < RUNS; i++) y[i] *= sd;
        size_t n = find(y, RUNS, &t);
        points += (unsigned)n;
        with += n > 0;
        if (!isnan(t.smallest)) smallest += t.smallest, said++;
        trend_release(&t);
    }
    double rate = 100.0 * points / histories;
    printf("%-30s %4.1f %%  %6.2f (%.2f histories)  smallest step ", noise->name, 100 * sd, rate,
           100.0 * with / histories);
    if (said)
        printf("said %5.1f %%", 100 * smallest / said);
    else
        printf("never said");
    printf("   goal <= 1  %s\n", rate <= 1 ? "met" : "MISSED");
}

/* Someone who looks after every run looks often: in how many histories is a change ever told? */
static void count_watched(const struct noise *noise, double sd, unsigned histories)
{
    struct rng r;
    unsigned told = 0, looks = 0, wrong = 0;
    rng_seed(&r, 4);
    for (unsigned h = 0; h < histories; h++) {
        double y[2 * RUNS];
        bool any = false;
        noise->make(&r, y, 2 * RUNS);
        for (size_t i = 0; i < 2 * RUNS; i++) y[i] *= sd;
        for (size_t n = RUNS; n < 2 * RUNS; n++) {
            struct trend t;
            bool now = find(y + n - RUNS, RUNS, &t) > 0;
            trend_release(&t);
            looks++;
            wrong += now;
            any = any || now;
        }
        told += any;
    }
    printf("%-30s %4.1f %%  %5.1f %% of histories at some time, %.2f %% of looks\n", noise->name, 100 * sd,
           100.0 * told / histories, 100.0 * wrong / looks);
}

/* ---- found ---- */

static bool sees(const double *y, size_t n, bool up)
{
    struct trend t;
    bool seen = false;
    find(y, n, &t);
    for (size_t i = 0; i < t.changes.n; i++) {
        const struct trend_change *c = &t.changes.items[i];
        seen = seen || (c->at + NEAR >= RUNS && c->at <= RUNS + NEAR && (c->ratio.value > 1) == up);
    }
    trend_release(&t);
    return seen;
}

static void count_found(const struct noise *noise, double sd, double step, unsigned histories)
{
    unsigned after[MOST_AFTER + 1] = {0};
    struct rng r;
    rng_seed(&r, 2);
    for (unsigned h = 0; h < histories; h++) {
        double y[RUNS + MOST_AFTER];
        noise->make(&r, y, RUNS + MOST_AFTER);
        for (size_t i = 0; i < RUNS + MOST_AFTER; i++) y[i] = sd * y[i] + (i >= RUNS ? log1p(step) : 0);
        size_t k = TREND_MIN_SIDE;
        while (k <= MOST_AFTER && !sees(y, RUNS + k, true)) k++;
        for (; k <= MOST_AFTER; k++) after[k]++;
    }
    printf(
        "%-30s %4.1f %%  +%.0f %%   within 3: %3.0f %%  5: %3.0f %%  8: %3.0f %%  12: %3.0f %%  20: %3.0f %%%s\n",
        noise->name, 100 * sd, 100 * step, 100.0 * after[3] / histories, 100.0 * after[5] / histories,
        100.0 * after[8] / histories, 100.0 * after[12] / histories, 100.0 * after[20] / histories,
        10 * after[8] >= 9 * histories ? "   goal 8: >= 90 %  met" : "   goal 8: >= 90 %  MISSED");
}

/* ---- undone ---- */

enum { LEVELS_MOST = 7 };
static const struct undone {
    double sd;
    struct {
        size_t runs;
        double at;
    } levels[LEVELS_MOST + 1];
} undone[] = {
    {0.01, {{40, 1}, {10, 1.2}, {40, 1}}},
    {0.015, {{20, 1}, {10, 1.2}, {15, 1}}},
    {0.015, {{18, 1}, {15, 1.22}, {12, 0.95}}},
    {0.01, {{60, 1}, {3, 1.1}, {37, 1}}},
    {0.01, {{60, 1}, {5, 1.1}, {35, 1}}},
    {0.02, {{60, 1}, {5, 1.1}, {35, 1}}},
    {0.02, {{60, 1}, {10, 1.05}, {30, 1}}},
    {0.02, {{60, 1}, {20, 1.05}, {20, 1}}},
    {0.03, {{60, 1}, {10, 1.1}, {30, 1}}},
    {0.01, {{30, 1}, {6, 1.1}, {4, 1}, {6, 1.1}, {20, 1}}},
    {0.01, {{30, 1}, {6, 1.1}, {20, 1}, {6, 1.1}, {20, 1}}},
    {0.02, {{30, 1}, {10, 1.1}, {10, 1}, {10, 1.1}, {20, 1}}},
    {0.01, {{30, 1}, {6, 1.1}, {4, 1}, {20, 1.1}}},
    {0.01, {{20, 1}, {6, 1.1}, {6, 1}, {6, 1.1}, {6, 1}, {6, 1.1}, {20, 1}}},
};

static bool told(const struct trend *t, size_t place)
{
    for (size_t i = 0; i < t->changes.n; i++) {
        size_t at = t->changes.items[i].at;
        if (at + NEAR >= place && at <= place + NEAR) return true;
    }
    return false;
}

/* All changes within 3 runs of their places; "and no other": nothing else is told. */
static void count_undone(const struct noise *noise, const struct undone *u, unsigned histories)
{
    unsigned all = 0, alone = 0;
    struct rng r;
    rng_seed(&r, 5);
    for (unsigned h = 0; h < histories; h++) {
        double y[RUNS];
        struct trend t;
        size_t n = 0, hits = 0, changes = 0;
        for (size_t l = 0; u->levels[l].runs; l++) n += u->levels[l].runs;
        noise->make(&r, y, n);
        n = 0;
        for (size_t l = 0; u->levels[l].runs; l++)
            for (size_t i = 0; i < u->levels[l].runs; i++, n++) y[n] = u->sd * y[n] + log(u->levels[l].at);
        find(y, n, &t);
        n = 0;
        for (; u->levels[changes + 1].runs; changes++) {
            n += u->levels[changes].runs;
            hits += told(&t, n);
        }
        all += hits == changes;
        alone += hits == changes && t.changes.n == changes;
        trend_release(&t);
    }
    printf("%-30s %4.1f %% ", noise->name, 100 * u->sd);
    for (size_t l = 0; u->levels[l].runs; l++) printf(" %zu at %.2f", u->levels[l].runs, u->levels[l].at);
    printf(": all found %5.1f %%, and no other %5.1f %%\n", 100.0 * all / histories,
           100.0 * alone / histories);
}

/* Is the step that is said to be the smallest to be seen really seen, within 8 runs, 9 times in 10? */
static void count_promised(const struct noise *noise, double sd, unsigned histories)
{
    enum { AFTER = 8 };
    unsigned seen = 0, said = 0;
    struct rng r;
    rng_seed(&r, 3);
    for (unsigned h = 0; h < histories; h++) {
        double y[RUNS + AFTER];
        struct trend t;
        noise->make(&r, y, RUNS + AFTER);
        for (size_t i = 0; i < RUNS + AFTER; i++) y[i] *= sd;
        find(y, RUNS, &t);
        double step = t.smallest;
        trend_release(&t);
        if (isnan(step)) continue; /* too few runs at the level now: nothing is said */
        said++;
        for (size_t i = RUNS; i < RUNS + AFTER; i++) y[i] += log1p(step);
        bool found = false;
        for (size_t k = TREND_MIN_SIDE; k <= AFTER && !found; k++) found = sees(y, RUNS + k, true);
        seen += found;
    }
    printf("%-30s %4.1f %%  ", noise->name, 100 * sd);
    if (said)
        printf("%5.1f %%\n", 100.0 * seen / said);
    else
        printf("never said\n");
}

int main(int argc, char **argv)
{
    static const double spreads[] = {0.0035, 0.01, 0.02, 0.03};
    unsigned histories = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
    printf("false change points per 100 stationary histories of %d runs (%u histories each)\n", RUNS,
           histories);
    for (size_t i = 0; i < NOISES; i++) count_false(&noises[i], 0.03, histories);
    printf("\nwatched for %d more runs, looking at the newest %d after each (%u histories each)\n", RUNS,
           RUNS, histories / 10);
    for (size_t i = 0; i < 2; i++) count_watched(&noises[i], 0.03, histories / 10);
    printf("\na step after %d runs, looked for after each new one: share found (%u histories each)\n", RUNS,
           histories / 2);
    for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++)
        for (size_t i = 0; i < 3; i++)
            count_found(&noises[i], spreads[k], k < 2 ? 0.03 : 0.05, histories / 2);
    printf("\nsteps that were taken back (%u histories each)\n", histories / 2);
    for (size_t k = 0; k < sizeof undone / sizeof *undone; k++)
        for (size_t i = 0; i < 3; i++) count_undone(&noises[i], &undone[k], histories / 2);
    printf("\nthe step that is said to show within 8 runs, 9 times in 10: does (%u histories each)\n",
           histories / 2);
    for (size_t i = 0; i < NOISES; i++) count_promised(&noises[i], 0.02, histories / 2);
    return 0;
}
