/* SPDX-License-Identifier: MIT
 * tune_rates.c - how often a tuning is confirmed that gains nothing, and how often one that gains a quarter is found,
 * on this machine with four busy processes a core. One fixed piece of work is timed again and again; trials take their
 * pairs from neighbours in that record, with the candidate made faster by a known factor. So the noise is real and the
 * truth is known. Trials of one record overlap: the rates are of one stretch of time. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyze/tune/confirm.h"
#include "core/clock.h"
#include "core/rng.h"

enum { UNITS = 700, TRIALS = 500, BUSY_MAX = 256 };
static volatile unsigned sink;

static void work(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) sink = sink * 1664525u + 1013904223u;
}

static double cpu_s(void)
{
    return 1e-9 * (double)clock_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Rounds that take 25 ms of the processor. */
static uint64_t calibrate(void)
{
    uint64_t rounds = 1 << 20;
    double before = cpu_s();
    work(rounds);
    return (uint64_t)((double)rounds * 0.025 / (cpu_s() - before));
}

struct record {
    double wall[UNITS], cpu[UNITS];
};

static void take(struct record *r, uint64_t rounds)
{
    for (size_t i = 0; i < UNITS; i++) {
        double cpu = cpu_s();
        uint64_t t = clock_raw_ns();
        work(rounds);
        r->wall[i] = (double)(clock_raw_ns() - t);
        r->cpu[i] = cpu_s() - cpu;
    }
}

/* Pairs A B B A A B B A from `at` on. */
static enum confirm_verdict trial(const struct record *r, size_t at, double truth, size_t *pairs)
{
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    struct confirm_result said = {.next = rule.least};
    double d[64], cpu[64];
    size_t n = 0;
    while (said.next) {
        for (; n < said.next; n++) {
            size_t a = at + 2 * n + n % 2, b = at + 2 * n + !(n % 2);
            d[n] = log(r->wall[b] / truth / r->wall[a]);
            cpu[n] = log(r->cpu[b] / truth / r->cpu[a]);
        }
        if (confirm_judge(&(struct confirm_pairs){.wall = d, .cpu = cpu, .n = n}, &rule, &said, NULL) < 0)
            exit(1);
    }
    *pairs += n;
    return said.verdict;
}

static double rate(const struct record *r, double truth, struct rng *rng)
{
    size_t verdicts[CONFIRM_NOT_SHOWN + 1] = {0}, pairs = 0;
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    for (size_t i = 0; i < TRIALS; i++)
        verdicts[trial(r, (size_t)rng_below(rng, UNITS - 2 * rule.most), truth, &pairs)]++;
    double gain = (double)(verdicts[CONFIRM_CONFIRMED] + verdicts[CONFIRM_LIKELY]) / TRIALS;
    printf(
        "  a true gain of %.2f: confirmed %zu, likely %zu, no gain %zu, worse %zu, not shown %zu of %d; %.1f pairs\n",
        truth, verdicts[CONFIRM_CONFIRMED], verdicts[CONFIRM_LIKELY], verdicts[CONFIRM_NO_GAIN],
        verdicts[CONFIRM_WORSE], verdicts[CONFIRM_NOT_SHOWN], TRIALS, (double)pairs / TRIALS);
    return gain;
}

int main(void)
{
    static struct record r;
    static const double truths[] = {1, 1.05, 1.15, 1.25, 1.5};
    pid_t busy[BUSY_MAX];
    struct rng rng;
    double found[5];
    long n = 4 * sysconf(_SC_NPROCESSORS_ONLN);
    if (n > BUSY_MAX) n = BUSY_MAX;
    uint64_t rounds = calibrate();
    for (long i = 0; i < n; i++)
        if ((busy[i] = fork()) == 0)
            for (;;) work(1 << 20);
    take(&r, rounds);
    for (long i = 0; i < n; i++)
        if (busy[i] > 0) kill(busy[i], SIGKILL);
    while (wait(NULL) > 0) {
    }
    rng_seed(&rng, 1);
    printf("tune: %d units of 25 ms beside %ld busy processes\n", UNITS, n);
    for (size_t i = 0; i < 5; i++) found[i] = rate(&r, truths[i], &rng);
    printf("tune: gains named where there is none              %6.2f %%  goal <= 1   %s\n", 100 * found[0],
           found[0] <= 0.01 ? "met" : "MISSED");
    printf("tune: a true 1.25 x found with at most 20 pairs    %6.2f %%  goal >= 95  %s\n", 100 * found[3],
           found[3] >= 0.95 ? "met" : "MISSED");
    return 0;
}
