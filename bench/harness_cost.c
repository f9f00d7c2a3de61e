/* SPDX-License-Identifier: MIT
 * harness_cost.c - does bench_run() find the same median as a minimal loop around the same function, and what does it
 * cost per run? Both take turns, in runs of 2 us, 100 us and 2 ms, so that the machine's weather hits both. */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/stats.h"

enum { TURNS = 25, MOST = 1 << 18 };
#define TURN_NS UINT64_C(200000000)

struct spinning {
    struct instance base;
    uint64_t steps;
};
static struct spinning spinning;

static tare_status spin_prepare(struct subject *s, const struct case_params *p, const struct case_record *to,
                                struct instance **out, tare_error *err)
{
    (void)p, (void)to, (void)err;
    spinning.base.subject = s;
    *out = &spinning.base;
    return TARE_OK;
}

static __attribute__((noinline)) tare_status spin_run(struct instance *i, unsigned worker,
                                                      struct subject_cost *cost, tare_error *err)
{
    uint64_t x = 1, n = ((struct spinning *)i)->steps;
    (void)worker, (void)cost, (void)err;
    for (uint64_t k = 0; k < n; k++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    __asm__ volatile("" : : "r"(x));
    return TARE_OK;
}

static void spin_finish(struct instance *i)
{
    (void)i;
}

static const struct subject_ops spin_ops = {
    .type = "spin", .prepare = spin_prepare, .run = spin_run, .finish = spin_finish};
static struct subject subject = {&spin_ops};

static double times[MOST];

/* What one writes by hand. */
static double plain_median(void)
{
    size_t n = 0;
    struct subject_cost cost;
    uint64_t until = clock_raw_ns() + TURN_NS;
    spinning.base.subject = &subject;
    for (uint64_t end = 0; n < MOST && end < until; n++) {
        uint64_t start = clock_raw_ns();
        spin_run(&spinning.base, 0, &cost, NULL);
        end = clock_raw_ns();
        times[n] = (double)(end - start);
    }
    stats_sort(times, n);
    return stats_median_sorted(times, n);
}

static double harness_median(uint64_t *self_ns)
{
    tare_error err = TARE_ERROR_INIT;
    struct run run;
    struct bench_case c = {&subject, {0}, "spin"};
    struct bench_plan plan = BENCH_PLAN_INIT;
    double median = NAN;
    plan.cases = &c;
    plan.n_cases = 1;
    plan.budget_ns = TURN_NS;
    if (run_init(&run, "bench", &err) == TARE_OK && bench_run(&run, &plan, &err) == TARE_OK) {
        median = (double)run.cases.at[0]->latency_ns.p50.value;
        *self_ns = run.cases.at[0]->self.ns_per_run.v;
    } else {
        fprintf(stderr, "%s\n", err.text);
    }
    run_release(&run);
    return median;
}

static void compare(const char *name, double value, const char *unit, double goal)
{
    printf("%-44s %9.3f %-6s goal <= %-8g %s\n", name, value, unit, goal, value <= goal ? "met" : "MISSED");
}

int main(void)
{
    static const struct {
        const char *name;
        uint64_t steps;
    } lengths[] = {{"2 us", 1200}, {"100 us", 60000}, {"2 ms", 1200000}};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        double ratio[TURNS], self[TURNS];
        char name[64];
        spinning.steps = lengths[k].steps;
        for (int i = 0; i < TURNS; i++) {
            uint64_t self_ns = 0;
            double first = i % 2 ? plain_median() : 0, ours = harness_median(&self_ns);
            ratio[i] = log(ours / (i % 2 ? first : plain_median()));
            self[i] = (double)self_ns;
        }
        stats_sort(ratio, TURNS);
        stats_sort(self, TURNS);
        snprintf(name, sizeof name, "median against a plain loop, %s", lengths[k].name);
        compare(name, 100 * expm1(fabs(stats_median_sorted(ratio, TURNS))), "% off", 1);
        snprintf(name, sizeof name, "own cost per run, %s", lengths[k].name);
        compare(name, stats_median_sorted(self, TURNS), "ns", 1000);
    }
    return 0;
}
