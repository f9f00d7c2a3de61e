/* SPDX-License-Identifier: MIT
 * noise.c - see noise.h. The two kernels take turns, so that both see the same machine. */
#include "probe/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/mem.h"
#include "core/stats.h"
#include "probe/procstat.h"

enum { MAX_BATCHES = 20000, MIN_BATCHES = 20, WINDOWS = 10, LINE = 64 };
#define BATCH_NS 1000000 /* long against the clock, short against the scheduler */

struct line {
    struct line *next;
    char pad[LINE - sizeof(struct line *)];
};

struct bench {
    struct line *lines, *at;
    uint64_t chain;
    uint64_t steps[NOISE_KERNELS];
    double *ns[NOISE_KERNELS];
    bool *switched[NOISE_KERNELS];
    size_t n[NOISE_KERNELS];
};

/* ---- the kernels ----------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ (x << 17);
}

static __attribute__((noinline)) void run_cpu(struct bench *b, uint64_t steps)
{
    uint64_t x = b->chain;
    for (uint64_t i = 0; i < steps; i++) x = mix(x);
    b->chain = x;
}

static __attribute__((noinline)) void run_memory(struct bench *b, uint64_t steps)
{
    struct line *at = b->at;
    for (uint64_t i = 0; i < steps; i++) at = at->next;
    __asm__ volatile("" : "+r"(at));
    b->at = at;
}

static void (*const kernels[NOISE_KERNELS])(struct bench *, uint64_t) = {run_cpu, run_memory};
static const char *const names[NOISE_KERNELS] = {"cpu", "memory"};

/* One cycle through all lines in random order, so that no prefetcher can guess. */
static void link_lines(struct line *lines, size_t n)
{
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < n; i++) lines[i].next = &lines[i];
    for (size_t i = n - 1; i > 0; i--) {
        seed = mix(seed);
        size_t j = (size_t)(seed % i); /* never i itself: one cycle */
        struct line *t = lines[i].next;
        lines[i].next = lines[j].next;
        lines[j].next = t;
    }
}

static uint64_t time_of(struct bench *b, int k, uint64_t steps)
{
    uint64_t start = clock_raw_ns();
    kernels[k](b, steps);
    return clock_raw_ns() - start;
}

/* As many steps as take about BATCH_NS; the best of three: a disturbed one would come out too short. */
static uint64_t calibrate(struct bench *b, int k)
{
    uint64_t steps = 1000, best = UINT64_MAX;
    while (steps < UINT64_C(1) << 40 && time_of(b, k, steps) < BATCH_NS / 4) steps *= 2;
    for (int i = 0; i < 3; i++) {
        uint64_t ns = time_of(b, k, steps);
        if (ns < best) best = ns;
    }
    uint64_t fit = (uint64_t)((double)steps * BATCH_NS / (double)(best ? best : 1));
    return fit ? fit : 1;
}

/* ---- what the system says meanwhile ---------------------------------------------------------- */

struct machine_state {
    struct cpu_ticks ticks;
    uint64_t cpu_ns, at_ns; /* cpu_ns: of this thread */
};

static struct machine_state read_machine(void)
{
    return (struct machine_state){cpu_ticks_read(""), clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID), clock_raw_ns()};
}

static long involuntary(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}

/* ---- summary --------------------------------------------------------------------------------- */

/* What can be told apart when two variants take turns? Neighbouring batches are taken as A and B of a comparison of
 * equals, in the order A B B A, so that a steady drift cancels; the centre of their log ratios is 0 but for noise, and
 * the half-width of its interval is how far off it may be. A true difference of twice that is found nearly always. */
static tare_status resolve_ab(const struct noise_series *x, double *scratch, double *out, tare_error *err)
{
    struct interval centre;
    size_t pairs = x->n / 2;
    for (size_t i = 0; i < pairs; i++) {
        double d = log(x->ns[2 * i + 1] / x->ns[2 * i]);
        scratch[i] = i % 2 ? -d : d; /* A B B A: a steady drift cancels */
    }
    tare_status s = stats_hodges_lehmann(scratch, pairs, 0.95, &centre, err);
    if (s < 0) return s;
    double half = (centre.hi - centre.lo) / 2;
    *out = isfinite(half) ? expm1(2 * half) : NAN;
    return TARE_OK;
}

/* What can be told apart by two runs one after the other? The medians of ten consecutive windows are taken as ten such
 * runs. Two of them differ by chance by up to 2.77 of their deviations in 95 of 100 cases (1.96 times sqrt 2, for the
 * difference of two): less than that is no difference. */
static tare_status resolve_runs(const struct noise_series *x, double *out, tare_error *err)
{
    double medians[WINDOWS];
    for (size_t w = 0; w < WINDOWS; w++) {
        size_t from = x->n * w / WINDOWS, to = x->n * (w + 1) / WINDOWS;
        tare_status s = stats_median(x->ns + from, to - from, &medians[w], err);
        if (s < 0) return s;
        medians[w] = log(medians[w]);
    }
    double chance = expm1(2.77 * stats_stddev(medians, WINDOWS));
    if (!(chance < *out)) *out = chance; /* taking turns is never the worse way */
    return TARE_OK;
}

/* resolve_runs starts from what taking turns can tell apart, since it may only raise that. resolve_ab()
 * uses `sorted` as scratch, hence the order. *out is written when everything went well. */
tare_status noise_summarise(struct noise_kernel *out, const struct noise_series *x, tare_error *err)
{
    if (x->n < MIN_BATCHES)
        return error_set(err, TARE_INVALID, "only %zu batches in the time given, %d needed", x->n,
                         MIN_BATCHES);
    struct noise_kernel k = {.name = out->name, .batches = x->n, .step_ns = out->step_ns};
    double mad = 0;
    double *sorted = mem_new(x->n, sizeof *sorted);
    if (!sorted) return error_set(err, TARE_NOMEM, "out of memory");
    tare_status s = stats_mad(x->ns, x->n, &mad, err);
    if (s < 0) goto out;
    if ((s = resolve_ab(x, sorted, &k.resolve_ab, err)) < 0) goto out;
    k.resolve_runs = k.resolve_ab;
    if ((s = resolve_runs(x, &k.resolve_runs, err)) < 0) goto out;
    memcpy(sorted, x->ns, x->n * sizeof *sorted);
    stats_sort(sorted, x->n);
    k.batch_ns = stats_median_sorted(sorted, x->n);
    k.spread = mad / k.batch_ns;
    k.tail = stats_quantile_sorted(sorted, x->n, 0.99) / k.batch_ns;
    for (size_t i = 0; i < x->n && x->switched; i++) k.switched += x->switched[i];
    k.switched /= (double)x->n;
    *out = k;
out:
    mem_free(sorted);
    return s;
}

/* ---- the measurement ------------------------------------------------------------------------- */

static void measure_batch(struct bench *b, int k)
{
    long before = involuntary();
    b->ns[k][b->n[k]] = (double)time_of(b, k, b->steps[k]);
    b->switched[k][b->n[k]] = involuntary() != before;
    b->n[k]++;
}

static void measure_all(struct bench *b, const struct noise_options *opts)
{
    uint64_t start = clock_raw_ns(), budget = (uint64_t)opts->budget.ns, spent = 0;
    for (size_t i = 0; i < MAX_BATCHES && (spent < budget || i < MIN_BATCHES); i++) {
        for (int k = 0; k < NOISE_KERNELS; k++) measure_batch(b, k);
        spent = clock_raw_ns() - start;
        if (opts->tick) opts->tick(opts->ctx, budget ? (double)spent / (double)budget : 1);
    }
}

/* All memory is taken, touched and calibrated before the first batch: a page fault inside of it would be
 * noise of our own making. */
static tare_status prepare_bench(struct bench *b, const struct noise_options *opts, tare_error *err)
{
    size_t n = opts->memory_bytes / sizeof *b->lines;
    b->chain = 88172645463325252u;
    b->lines = mem_new(n > 1 ? n : 2, sizeof *b->lines);
    bool have = b->lines;
    for (int k = 0; k < NOISE_KERNELS; k++) {
        b->ns[k] = mem_new(MAX_BATCHES, sizeof *b->ns[k]);
        b->switched[k] = mem_new(MAX_BATCHES, sizeof *b->switched[k]);
        have = have && b->ns[k] && b->switched[k];
    }
    if (!have) return error_set(err, TARE_NOMEM, "out of memory for the noise measurement");
    link_lines(b->lines, n > 1 ? n : 2);
    b->at = b->lines;
    run_memory(b, n); /* once around: what fits a cache is in it now, and stays so for the whole series */
    for (int k = 0; k < NOISE_KERNELS; k++) b->steps[k] = calibrate(b, k);
    return TARE_OK;
}

static void release_bench(struct bench *b)
{
    mem_free(b->lines);
    for (int k = 0; k < NOISE_KERNELS; k++) {
        mem_free(b->ns[k]);
        mem_free(b->switched[k]);
    }
}

/* The two kernels take turns for the whole of the budget, the system's own accounts are read before and after. */
tare_status noise_measure(struct noise *out, const struct noise_options *opts, tare_error *err)
{
    struct bench b = {0};
    struct noise result = {0};
    tare_status s = prepare_bench(&b, opts, err);
    if (s < 0) goto out;
    struct machine_state before = read_machine();
    measure_all(&b, opts);
    struct machine_state after = read_machine();
    for (int k = 0; k < NOISE_KERNELS; k++) {
        struct noise_series x = {b.ns[k], b.switched[k], b.n[k]};
        result.kernel[k].name = names[k];
        if ((s = noise_summarise(&result.kernel[k], &x, err)) < 0) goto out;
        result.kernel[k].step_ns = result.kernel[k].batch_ns / (double)b.steps[k];
    }
    struct known_f64 steal = cpu_steal_share(&after.ticks, &before.ticks);
    result.took = (struct duration){(int64_t)(after.at_ns - before.at_ns)};
    result.steal = steal.known ? steal.v : NAN;
    result.cpu_share = (double)(after.cpu_ns - before.cpu_ns) / (double)result.took.ns;
    *out = result;
out:
    release_bench(&b);
    return s;
}
