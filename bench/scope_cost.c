/* SPDX-License-Identifier: MIT
 * scope_cost.c - what a scope pair costs, as a ratio to two bare clock reads of the same batch. Each variant
 * records in its own session; sessions follow in shuffled order for several rounds. Linked once with the static
 * library's objects and once with libtare.so (VIA says which). */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <tare/tare.h>

#include "batch.h"

enum { PAIRS = 4000, ROUNDS = 10, BATCHES = 100 };

static void two_reads(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < PAIRS; i++) {
        uint64_t a = clock_tsc(), b;
        __asm__ volatile("" : : "r"(a));
        b = clock_tsc();
        __asm__ volatile("" : : "r"(b));
    }
}

static void scopes(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < PAIRS; i++) {
        TARE_SCOPE("pair");
        __asm__ volatile("" : : : "memory");
    }
}

/* What people write by hand: two calls of clock_gettime and a sum. */
static void by_hand(void *ctx)
{
    static uint64_t sum;
    (void)ctx;
    for (int i = 0; i < PAIRS; i++) {
        uint64_t start = clock_raw_ns();
        __asm__ volatile("" : : : "memory");
        sum += clock_raw_ns() - start;
    }
}

struct variant {
    const char *name;
    uint32_t mode, clock;
    double goal;
    struct series cost, reads, ratio;
};

static struct variant variants[] = {
    {.name = "aggregate, fast clock", .mode = TARE_AGGREGATE, .clock = TARE_CLOCK_FAST, .goal = 1.25},
    {.name = "event log, fast clock", .mode = TARE_EVENTS, .clock = TARE_CLOCK_FAST, .goal = 1.15},
    {.name = "aggregate + events, fast clock", .mode = 3, .clock = TARE_CLOCK_FAST, .goal = 1.5},
    {.name = "aggregate, ordered clock", .mode = TARE_AGGREGATE, .clock = TARE_CLOCK_ORDERED, .goal = NAN},
    {.name = "aggregate + events, ordered clock (default)", .mode = 3, .clock = TARE_CLOCK_ORDERED, .goal = NAN},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static void start(const struct variant *v)
{
    tare_options o = TARE_OPTIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    o.path = "scope_cost.tare";
    o.mode = v->mode;
    o.clock = v->clock;
    o.disk_bytes = UINT64_MAX;
    if (tare_start(&o, &err) == TARE_OK) return;
    fprintf(stderr, "%s\n", err.text);
    exit(3);
}

static void stop(void)
{
    tare_stop(NULL);
    unlink("scope_cost.tare");
    unlink("scope_cost.tare.old");
}

/* Lets the helper empty the rings, so that no batch meets a full one. */
static void breathe(void)
{
    nanosleep(&(struct timespec){0, 300000}, NULL);
}

static void one_session(struct variant *v)
{
    start(v);
    for (int i = 0; i < BATCHES; i++) {
        struct series a = {.n = 0}, b = {.n = 0};
        breathe();
        if (!bench_batch(&a, two_reads, NULL, PAIRS) || !bench_batch(&b, scopes, NULL, PAIRS)) continue;
        series_add(&v->reads, a.v[0]);
        series_add(&v->cost, b.v[0]);
        series_add(&v->ratio, b.v[0] / a.v[0]);
    }
    stop();
}

/* ---- two threads ---- */

static struct series both[2];

static void *worker(void *which)
{
    for (int i = 0; i < BATCHES * 2; i++) {
        bench_batch(which, scopes, NULL, PAIRS);
        breathe();
    }
    return NULL;
}

static double threads_ratio(void)
{
    static struct series one;
    for (int round = 0; round < ROUNDS; round++) {
        start(&variants[0]);
        worker(&one);
        pthread_t t[2];
        for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, worker, &both[i]);
        for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
        stop();
    }
    for (size_t i = 0; i < both[1].n; i++) series_add(&both[0], both[1].v[i]);
    return series_at(&both[0], 0.10) / series_at(&one, 0.10);
}

int main(void)
{
    static struct series off, hand;
    struct rng rng;
    rng_seed(&rng, 1);
    for (int i = 0; i < ROUNDS * BATCHES; i++) bench_batch(&off, scopes, NULL, PAIRS);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned order[VARIANTS];
        for (unsigned i = 0; i < VARIANTS; i++) order[i] = i;
        for (unsigned i = VARIANTS - 1; i > 0; i--) {
            unsigned k = (unsigned)rng_below(&rng, i + 1), swap = order[i];
            order[i] = order[k];
            order[k] = swap;
        }
        for (unsigned i = 0; i < VARIANTS; i++) one_session(&variants[order[i]]);
        for (int i = 0; i < BATCHES; i++) bench_batch(&hand, by_hand, NULL, PAIRS);
    }
    double reads = series_at(&variants[0].reads, 0.10);
    printf("two bare clock reads: p10 %.2f ns, median %.2f ns\n", reads, series_at(&variants[0].reads, 0.5));
    for (unsigned i = 0; i < VARIANTS; i++) {
        struct variant *v = &variants[i];
        char name[80];
        snprintf(name, sizeof name, "%s: %s", VIA, v->name);
        bench_say(name, series_at(&v->cost, 0.10) / series_at(&v->reads, 0.10), "x", v->goal);
        printf("%44s p10 %.2f ns, median %.2f ns, median ratio %.3f, %zu batches\n", "",
               series_at(&v->cost, 0.10), series_at(&v->cost, 0.5), series_at(&v->ratio, 0.5), v->cost.n);
    }
    bench_say("by hand: two clock_gettime and a sum", series_at(&hand, 0.10) / reads, "x", NAN);
    bench_say("disabled pair", series_at(&off, 0.10), "ns", 1.0);
    bench_say("two threads against one, aggregate", threads_ratio(), "x", 1.05);
    return 0;
}
