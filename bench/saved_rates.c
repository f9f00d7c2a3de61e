/* SPDX-License-Identifier: MIT
 * saved_rates.c - how often `tare compare` of saved runs calls the same thing regressed, on a host that has one speed
 * and on one that is at times 30 % slower: made-up values of runs, judged by the product's own rule.
 * usage: saved_rates [TRIALS]    default 20,000 of each */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/between_runs.h"
#include "batch.h"
#include "core/rng.h"

enum { MOST = 30, GOAL = 2 };

static double normal(struct rng *r)
{
    return sqrt(-2 * log(1 - rng_unit(r))) * cos(2 * M_PI * rng_unit(r));
}

/* One run in `every` is of the second speed, 30 % slower; 0: none is. */
struct host {
    double sd;
    unsigned every;
};

static void runs_of(struct rng *r, const struct host *h, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 16 + h->sd * normal(r) + (h->every && !rng_below(r, h->every) ? log(1.3) : 0);
}

/* In percent; history: runs that were made before two single ones, else `side` of each. */
static double false_alarms(const struct host *h, size_t side, size_t history, unsigned trials)
{
    unsigned regressed = 0;
    struct rng r;
    rng_seed(&r, 4711);
    for (unsigned i = 0; i < trials; i++) {
        double base[MOST], new_[MOST], past[MOST];
        struct between_rule rule = BETWEEN_RULE_INIT;
        struct between_result out;
        runs_of(&r, h, base, side);
        runs_of(&r, h, new_, side);
        runs_of(&r, h, past, history);
        struct between_sides in = {{base, side}, {new_, side}, {past, history}, false, 0};
        if (between_runs(&in, &rule, &out, NULL) < 0) return NAN;
        regressed += strcmp(out.verdict, "regressed") == 0;
    }
    return 100.0 * regressed / trials;
}

static const struct {
    const char *name;
    struct host host;
} hosts[] = {
    {"one speed, sd 9 %", {0.09, 0}},       {"half slower, sd 3 %", {0.03, 2}},
    {"half slower, sd 9 %", {0.09, 2}},     {"1 in 5 slower, sd 3 %", {0.03, 5}},
    {"1 in 5 slower, sd 9 %", {0.09, 5}},   {"1 in 20 slower, sd 1 %", {0.01, 20}},
    {"1 in 20 slower, sd 3 %", {0.03, 20}}, {"1 in 20 slower, sd 9 %", {0.09, 20}},
};

int main(int argc, char **argv)
{
    static const size_t sides[] = {3, 5}, pasts[] = {8, 12, 20, 30};
    unsigned trials = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20000;
    printf(
        "saved runs of one program called regressed, the worst of 3 and 5 runs a side, and of histories of 8 to 30\n"
        "(%u comparisons each; slower: by 30 %%)\n",
        trials);
    for (size_t k = 0; k < sizeof hosts / sizeof *hosts; k++) {
        double of_sides = 0, of_pasts = 0;
        char name[96];
        for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
            of_sides = fmax(of_sides, false_alarms(&hosts[k].host, sides[i], 0, trials));
        for (size_t i = 0; i < sizeof pasts / sizeof *pasts; i++)
            of_pasts = fmax(of_pasts, false_alarms(&hosts[k].host, 1, pasts[i], trials));
        snprintf(name, sizeof name, "saved: %s, runs a side", hosts[k].name);
        bench_say(name, of_sides, "%", GOAL);
        snprintf(name, sizeof name, "saved: %s, history", hosts[k].name);
        bench_say(name, of_pasts, "%", GOAL);
    }
    return 0;
}
