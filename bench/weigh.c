/* SPDX-License-Identifier: MIT
 * weigh.c - is the net time true? Two questions, with the truth measured side by side, without any scope, in
 * short blocks shuffled with the recorded ones.
 *   clock honesty  what a scope around one cache-missing load reads, in both clock modes
 *   weighing       200 trials on bodies of 500 ns and more: bias of the net mean, and how often its interval
 *                  holds the truth; for the scope itself, and for a parent of eight such scopes */
#include <unistd.h>

#include <tare/tare.h>

#include "analyze/calls/calltree.h"
#include "batch.h"
#include "bodies.h"

struct body {
    const char *name;
    void (*run)(unsigned);
    unsigned size; /* set so that one call takes TARGET_NS or more */
};

static struct body bodies[] = {
    {"multiply", body_multiply, 0}, {"chase", body_chase, 0}, {"floats", body_floats, 0}, {"mixed", body_mixed, 0}};
enum { BODIES = sizeof bodies / sizeof bodies[0], TARGET_NS = 550, CHILDREN = 8, BLOCKS = 500, CALLS = 6 };

static void plain_parent(const struct body *b)
{
    for (int i = 0; i < CHILDREN; i++) b->run(b->size);
}

static __attribute__((noinline)) void leaf(const struct body *b)
{
    TARE_SCOPE("leaf");
    b->run(b->size);
}

static __attribute__((noinline)) void parent(const struct body *b)
{
    TARE_SCOPE("parent");
    for (int i = 0; i < CHILDREN; i++) leaf(b);
}

static void choose_size(struct body *b)
{
    for (b->size = 1;; b->size += 1 + b->size / 20) {
        static struct series s;
        s.n = 0;
        for (int i = 0; i < 60; i++) {
            uint64_t start = clock_raw_ns();
            for (int k = 0; k < 20; k++) b->run(b->size);
            series_add(&s, (double)(clock_raw_ns() - start) / 20);
        }
        if (series_at(&s, 0.1) >= TARGET_NS) return;
    }
}

static void start(uint32_t clock)
{
    tare_options o = TARE_OPTIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    o.path = "weigh.tare";
    o.mode = TARE_AGGREGATE;
    o.clock = clock;
    unlink(o.path);
    if (tare_start(&o, &err) == TARE_OK) return;
    fprintf(stderr, "%s\n", err.text);
    exit(3);
}

static const struct call_node *find(const struct calltree *t, struct trace *trace, const char *name)
{
    for (uint32_t i = 1; i < t->n_nodes; i++)
        if (strcmp(trace_site(trace, t->nodes[i].site)->name, name) == 0) return &t->nodes[i];
    fprintf(stderr, "no scope '%s' in the trace\n", name);
    exit(3);
}

static struct call_node read_back(const char *name, struct calltree *weights)
{
    struct trace *trace;
    struct calltree tree = CALLTREE_INIT;
    tare_error err = TARE_ERROR_INIT;
    tare_stop(NULL);
    if (trace_open(&trace, "weigh.tare", &err) != TARE_OK || calltree_build(&tree, trace, -1, &err) != TARE_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(3);
    }
    struct call_node n = *find(&tree, trace, name);
    *weights = tree;
    weights->nodes = NULL;
    calltree_release(&tree);
    trace_close(trace);
    return n;
}

/* ---- clock honesty ---- */

static __attribute__((noinline)) void one_miss(void)
{
    TARE_SCOPE("miss");
    body_chase(1);
}

static void honesty(uint32_t clock, const char *name, double *out_ratio)
{
    static struct series truth;
    struct calltree w;
    truth.n = 0;
    start(clock);
    for (int block = 0; block < 2000; block++) {
        uint64_t begin = clock_raw_ns();
        body_chase(50);
        series_add(&truth, (double)(clock_raw_ns() - begin) / 50);
        for (int i = 0; i < 50; i++) one_miss();
    }
    struct call_node n = read_back("miss", &w);
    double t = 0;
    for (size_t i = 0; i < truth.n; i++) t += truth.v[i] / (double)truth.n;
    *out_ratio = n.mean_ns.value / t;
    printf("%-44s true %.1f ns, read %.1f ns, net %.1f ns: %.0f %% of the truth\n", name, t, n.gross_mean_ns,
           n.mean_ns.value, 100 * *out_ratio);
}

/* ---- weighing ---- */

struct tally {
    struct series bias, width;
    unsigned held, trials;
};

/* The truth of this trial: mean of the blocks in which nothing switched us out. */
static double run_blocks(const struct body *b, struct rng *r)
{
    double ns = 0;
    unsigned blocks = 0;
    for (int i = 0; i < BLOCKS; i++) {
        bool first = rng_next(r) & 1;
        for (int side = 0; side < 2; side++) {
            if ((side == 0) == first) {
                for (int k = 0; k < CALLS; k++) parent(b);
                continue;
            }
            long before = bench_switches();
            uint64_t begin = clock_raw_ns();
            for (int k = 0; k < CALLS; k++) plain_parent(b);
            uint64_t took = clock_raw_ns() - begin;
            if (bench_switches() != before) continue;
            ns += (double)took / CALLS;
            blocks++;
        }
    }
    return blocks ? ns / blocks : NAN;
}

static void count(struct tally *t, struct interval e, double truth)
{
    series_add(&t->bias, e.value - truth);
    series_add(&t->width, (e.hi - e.lo) / 2);
    t->held += e.lo <= truth && truth <= e.hi;
    t->trials++;
}

static void say(const char *who, const char *body, struct tally *t, double scopes)
{
    double bias = series_at(&t->bias, 0.5);
    printf("%-8s %-10s bias %+7.1f ns (%+.1f per scope), interval +/- %.1f, holds the truth in %u of %u\n",
           who, body, bias, bias / scopes, series_at(&t->width, 0.5), t->held, t->trials);
}

int main(int argc, char **argv)
{
    unsigned trials = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    double fast, ordered;
    static struct tally leaves[BODIES], parents[BODIES];
    struct rng rng;
    rng_seed(&rng, 11);
    if (bodies_init() < 0) return 3;
    bench_alone();
    honesty(TARE_CLOCK_FAST, "one cache-missing load, fast clock", &fast);
    honesty(TARE_CLOCK_ORDERED, "one cache-missing load, ordered clock", &ordered);
    bench_say("clock honesty: ordered, off by", fabs(ordered - 1) * 100, "%", 15);
    for (unsigned i = 0; i < BODIES; i++) choose_size(&bodies[i]);
    unsigned held = 0, held_parents = 0;
    double worst = 0;
    for (unsigned i = 0; i < trials; i++) {
        struct body *b = &bodies[i % BODIES];
        struct calltree w;
        start(TARE_CLOCK_ORDERED);
        double truth = run_blocks(b, &rng);
        tare_stop(NULL);
        struct call_node l = read_back("leaf", &w), p = read_back("parent", &w);
        count(&leaves[i % BODIES], l.mean_ns, truth / CHILDREN);
        count(&parents[i % BODIES], p.mean_ns, truth);
    }
    for (unsigned i = 0; i < BODIES; i++) {
        say("leaf", bodies[i].name, &leaves[i], 1);
        say("parent", bodies[i].name, &parents[i], CHILDREN);
        held += leaves[i].held;
        held_parents += parents[i].held;
        double bias = fabs(series_at(&leaves[i].bias, 0.5));
        if (bias > worst) worst = bias;
    }
    bench_say("weighing: worst median bias of a leaf", worst, "ns", 10);
    bench_say("weighing: leaf intervals that miss the truth", 100.0 * (trials - held) / trials, "%", 5);
    bench_say("weighing: parent intervals that miss the truth", 100.0 * (trials - held_parents) / trials, "%",
              5);
    unlink("weigh.tare");
    return 0;
}
