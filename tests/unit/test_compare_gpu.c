/* SPDX-License-Identifier: MIT
 * test_compare_gpu.c - two traces of GPUs compared: made-up steps with a known answer. The same program twice is never
 * called slower or faster, whatever the noise; a kernel that takes a tenth longer is found. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/compare/compare_gpu.h"
#include "core/mem.h"

enum { KERNELS = 40, STEPS_MOST = 400 };

static uint64_t seed;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* ---- made-up series ---- */

struct making {
    size_t steps, kernels;
    double sd;     /* of ln of each time */
    double wander; /* share of it that a step hands on to the next */
    double tail;   /* chance that a step takes three times as long */
    size_t slow;   /* this kernel .. */
    double by;     /* .. takes so many times as long; 0: none */
    double all;    /* everything takes so many times as long; 0: once */
    double own;    /* of ln of each kernel's time and the copies', the same in all steps of a run */
    double
        speeds; /* a kernel of every .. runs so much slower in half of the runs: where its memory lies, say */
    size_t of_every;
    const char *name; /* of kernels */
};

static void make(struct gpu_series *s, const struct making *m)
{
    *s = (struct gpu_series){.arena = ARENA_INIT, .path = "made.tare", .n_cards = 1};
    struct arena *a = &s->arena;
    struct gpu_series_card *c = arena_new(a, 1, sizeof *c);
    double *step = arena_new(a, m->steps, sizeof *step), *busy = arena_new(a, m->steps, sizeof *busy);
    double *idle = arena_new(a, m->steps, sizeof *idle), *zero = arena_new(a, m->steps, sizeof *zero),
           state = 0;
    s->cards = c;
    *c = (struct gpu_series_card){.found_by = "range",
                                  .n_steps = m->steps,
                                  .step_ns = step,
                                  .busy_ns = busy,
                                  .copy_ns = zero,
                                  .n_kernels = m->kernels,
                                  .kernels = arena_new(a, m->kernels, sizeof *c->kernels)};
    for (int i = 0; i < GPU_CAUSES; i++) c->idle_ns[i] = i ? zero : idle;
    for (size_t k = 0; k < m->kernels; k++) {
        double *ns = arena_new(a, m->steps, sizeof *ns);
        c->kernels[k] = (struct gpu_series_kernel){.name = arena_printf(a, "%s%zu", m->name, k),
                                                   .full = arena_printf(a, "void %s%zu()", m->name, k),
                                                   .blocks = 8,
                                                   .threads = 128,
                                                   .runs = m->steps,
                                                   .step_ns = ns,
                                                   .run_ns = ns,
                                                   .n_runs = m->steps};
        double whole_run = exp(m->own * normal());
        if (m->of_every && k % m->of_every == 0 && uniform() < 0.5) whole_run *= 1 + m->speeds;
        for (size_t i = 0; i < m->steps; i++) {
            state = m->wander * state + sqrt(1 - m->wander * m->wander) * normal();
            ns[i] = 1000 * (double)(k + 1) * exp(m->sd * state);
            if (m->tail > 0 && uniform() < m->tail) ns[i] *= 3;
            if (m->by > 0 && k == m->slow) ns[i] *= m->by;
            if (m->all > 0) ns[i] *= m->all;
            ns[i] *= whole_run;
            busy[i] += ns[i];
        }
    }
    for (size_t i = 0; i < m->steps; i++) {
        idle[i] = 20000 * exp(m->sd * normal()) * (m->all > 0 ? m->all : 1);
        step[i] = busy[i] + idle[i];
    }
}

static void compare(struct comparison *c, const struct making *base, const struct making *new_,
                    const char *limit)
{
    struct gpu_series a, b;
    struct compare_limit l;
    struct compare_gpu in = {.side = {{&a, 1}, {&b, 1}}, .rule = COMPARE_GPU_RULE_INIT};
    tare_error err = TARE_ERROR_INIT;
    make(&a, base);
    make(&b, new_);
    if (limit) {
        assert_int_equal(compare_limit_parse(&l, limit, gpu_measures, &err), TARE_OK);
        in.limits = &l;
        in.n_limits = 1;
    }
    assert_int_equal(comparison_init(c, "steps", &err), TARE_OK);
    if (compare_gpu(c, &in, &err) < 0) fail_msg("%s", err.text);
    gpu_series_release(&a);
    gpu_series_release(&b);
}

static const struct comparison_metric *row_of(const struct comparison *c, const char *name)
{
    for (size_t i = 0; i < c->cases.at[0]->metrics.n; i++)
        if (strcmp(c->cases.at[0]->metrics.at[i]->metric, name) == 0) return c->cases.at[0]->metrics.at[i];
    fail_msg("no row %s", name);
    return NULL;
}

static size_t count_verdicts(const struct comparison *c, const char *verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < c->cases.at[0]->metrics.n; i++)
        n += strcmp(c->cases.at[0]->metrics.at[i]->verdict, verdict) == 0;
    return n;
}

/* ---- false alarms, and what is found ---- */

/* 100 times the same program twice, for each kind of noise: at 1 % for slower and 1 % for faster, over all rows
 * together, two are expected at the most; six come in 1 of 200 such hundreds. */
static void the_same_twice_is_no_change(void **state)
{
    static const struct making kinds[] = {
        {.steps = 60, .kernels = KERNELS, .sd = 0.05, .name = "k"},
        {.steps = 30, .kernels = KERNELS, .sd = 0.4, .name = "k"},
        {.steps = 100, .kernels = KERNELS, .sd = 0.1, .tail = 0.05, .name = "k"},
        {.steps = 200, .kernels = KERNELS, .sd = 0.1, .wander = 0.5, .name = "k"},
        {.steps = 8, .kernels = KERNELS, .sd = 0.2, .name = "k"},
        {.steps = 15, .kernels = KERNELS, .sd = 0.2, .name = "k"},
    };
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        size_t alarms = 0;
        for (uint64_t trial = 0; trial < 100; trial++) {
            struct comparison c;
            seed = 1 + trial + 1000 * kind;
            compare(&c, &kinds[kind], &kinds[kind], NULL);
            alarms += count_verdicts(&c, "regressed") + count_verdicts(&c, "improved") > 0;
            assert_string_not_equal(c.verdict, "improved");
            comparison_release(&c);
        }
        if (alarms > 5) fail_msg("noise %zu: %zu of 100 identical pairs were told apart", kind, alarms);
    }
}

static void a_slower_kernel_is_found(void **state)
{
    struct making base = {.steps = 100, .kernels = KERNELS, .sd = 0.05, .name = "k"}, slower = base;
    size_t found = 0, others = 0;
    (void)state;
    slower.slow = 12;
    slower.by = 1.1;
    for (uint64_t trial = 0; trial < 50; trial++) {
        struct comparison c;
        seed = 77 + trial;
        compare(&c, &base, &slower, NULL);
        found += strcmp(row_of(&c, "kernel.time k12")->verdict, "regressed") == 0;
        others += count_verdicts(&c, "regressed") -
                  (strcmp(row_of(&c, "kernel.time k12")->verdict, "regressed") == 0);
        double ratio = row_of(&c, "kernel.time k12")->ratio.value;
        assert_true(ratio > 1.05 && ratio < 1.15);
        comparison_release(&c);
    }
    assert_true(found >= 48);
    assert_true(others <= 2);
}

/* Steps of one run are no witness for what the host does in another; what is beyond any noise is told all the same. */
static void what_the_host_does_is_unverified(void **state)
{
    struct making base = {.steps = 100, .kernels = 3, .sd = 0.01, .name = "k"}, slower = base;
    struct comparison c;
    (void)state;
    for (int far = 0; far < 2; far++) {
        seed = 11;
        slower.slow = 2;
        slower.by = far ? 60 : 3;
        compare(&c, &base, &slower, far ? "step.time>50%" : "step.time>5%");
        assert_string_equal(row_of(&c, "step.time")->verdict, far ? "regressed" : "unverified");
        assert_string_equal(c.verdict, far ? "regressed" : "unverified");
        assert_string_equal(row_of(&c, "kernel.time k2")->verdict, "regressed");
        comparison_release(&c);
    }
}

static void a_faster_program_is_improved(void **state)
{
    struct making base = {.steps = 60, .kernels = 3, .sd = 0.02, .name = "k"}, faster = base;
    struct comparison c;
    (void)state;
    seed = 5;
    faster.slow = 2;
    faster.by = 0.5;
    compare(&c, &base, &faster, NULL);
    assert_string_equal(row_of(&c, "kernel.time k2")->verdict, "improved");
    assert_string_equal(row_of(&c, "kernels.time")->verdict, "improved");
    assert_string_equal(row_of(&c, "kernel.time k0")->verdict, "same");
    comparison_release(&c);
}

/* ---- what cannot be told ---- */

static void too_few_steps(void **state)
{
    struct making base = {.steps = 6, .kernels = 2, .sd = 0.01, .name = "k"}, slower = base;
    struct comparison c;
    (void)state;
    seed = 6;
    slower.by = 3;
    compare(&c, &base, &slower, NULL);
    assert_string_equal(c.verdict, "inconclusive");
    assert_string_equal(row_of(&c, "kernel.time k0")->verdict, "inconclusive");
    assert_string_equal(row_of(&c, "kernel.time k0")->why, "cannot tell: 6 to compare, 7 are needed");
    comparison_release(&c);
}

static void kernels_of_one_side(void **state)
{
    struct making base = {.steps = 20, .kernels = 2, .sd = 0.01, .name = "k"}, other = base;
    struct comparison c;
    (void)state;
    seed = 7;
    other.name = "other";
    compare(&c, &base, &other, NULL);
    assert_int_equal(c.unmatched.n, 4);
    assert_string_equal(c.unmatched.at[0]->side, "base");
    assert_memory_equal(c.unmatched.at[0]->name, "kernel k0: 1 run, ", 18);
    assert_string_equal(c.unmatched.at[2]->side, "new");
    comparison_release(&c);
}

/* Step time is worse by much more than 5 %, but only kernels were named. */
static void limits_say_what_fails(void **state)
{
    struct making base = {.steps = 60, .kernels = 2, .sd = 0.01, .name = "k"}, slower = base;
    struct comparison c;
    (void)state;
    slower.by = 1.1;
    seed = 8;
    compare(&c, &base, &slower, "kernel.time>5%");
    assert_string_equal(c.verdict, "regressed");
    assert_string_equal(row_of(&c, "step.time")->role, "advisory");
    comparison_release(&c);
    seed = 8;
    compare(&c, &base, &slower, "kernel.time>15%");
    assert_string_equal(c.verdict, "same");
    comparison_release(&c);
    tare_error err = TARE_ERROR_INIT;
    struct compare_limit l;
    assert_int_equal(compare_limit_parse(&l, "latency>5%", gpu_measures, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "there are: step.time"));
}

/* Without steps the runs of kernels are compared; sums stand there unjudged. */
static void without_steps(void **state)
{
    struct gpu_series a, b;
    struct gpu_series *sides[] = {&a, &b};
    struct making m = {.steps = 100, .kernels = 3, .sd = 0.02, .name = "k"};
    struct compare_gpu in = {.side = {{&a, 1}, {&b, 1}}, .rule = COMPARE_GPU_RULE_INIT};
    struct comparison c;
    (void)state;
    seed = 9;
    make(&a, &m);
    m.slow = 1;
    m.by = 1.2;
    make(&b, &m);
    for (int i = 0; i < 2; i++) {
        struct gpu_series_card *card = &sides[i]->cards[0];
        card->n_steps = 0;
        card->all_kernel_ns = 1000;
        for (size_t k = 0; k < card->n_kernels; k++) {
            card->kernels[k].run_ns = card->kernels[k].step_ns;
            card->kernels[k].n_runs = 100;
            card->kernels[k].step_ns = NULL;
        }
    }
    assert_int_equal(comparison_init(&c, "steps", NULL), TARE_OK);
    assert_int_equal(compare_gpu(&c, &in, NULL), TARE_OK);
    assert_string_equal(row_of(&c, "kernel.time k1")->verdict, "regressed");
    assert_string_equal(row_of(&c, "kernel.time k0")->verdict, "same");
    assert_string_equal(row_of(&c, "kernels.time")->verdict, "unverified");
    assert_string_equal(c.cases.at[0]->notes.at[0]->id, "steps.none");
    comparison_release(&c);
    gpu_series_release(&a);
    gpu_series_release(&b);
}

static bool has_row(const struct comparison *c, const char *name)
{
    for (size_t i = 0; i < c->cases.at[0]->metrics.n; i++)
        if (strcmp(c->cases.at[0]->metrics.at[i]->metric, name) == 0) return true;
    return false;
}

/* Where records are missing nothing is said of sums, busy and idle times, with and without steps. Single runs of
 * kernels are compared all the same. */
static void busy_may_be_unknown(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct gpu_series a, b;
        const struct making m = {.steps = 100, .kernels = 3, .sd = 0.02, .name = "k"};
        struct compare_gpu in = {.side = {{&a, 1}, {&b, 1}}, .rule = COMPARE_GPU_RULE_INIT};
        struct comparison c;
        const bool unknown = way & 1, steps = way & 2;
        make(&a, &m);
        make(&b, &m);
        b.cards[0].busy_unknown = unknown;
        if (!steps) a.cards[0].n_steps = b.cards[0].n_steps = 0;
        assert_int_equal(comparison_init(&c, "steps", NULL), TARE_OK);
        assert_int_equal(compare_gpu(&c, &in, NULL), TARE_OK);
        assert_true(has_row(&c, "kernels.time"));
        for (size_t i = 0; i < c.cases.at[0]->metrics.n; i++) {
            const struct comparison_metric *row = c.cases.at[0]->metrics.at[i];
            bool sum = strcmp(row->metric, "step.time") != 0 && !strstr(row->metric, "kernel.time");
            assert_int_equal(row->base.known, !unknown || !sum);
            if (unknown && sum) assert_string_equal(row->verdict, "inconclusive");
        }
        assert_true(has_row(&c, "busy.time") && has_row(&c, "idle.time"));
        assert_true(row_of(&c, "kernel.time k0")->base.known);
        const size_t n = c.cases.at[0]->notes.n;
        assert_int_equal(n && strcmp(c.cases.at[0]->notes.at[n - 1]->id, "busy.unknown") == 0, unknown);
        comparison_release(&c);
        gpu_series_release(&a);
        gpu_series_release(&b);
    }
}

/* Idle in one step of five: the median step is 0, which says nothing beside a change of 50 %. */
static void what_is_in_few_steps_is_told_by_its_mean(void **state)
{
    (void)state;
    struct gpu_series a, b;
    const struct making m = {.steps = 100, .kernels = 3, .sd = 0.02, .name = "k"};
    struct compare_gpu in = {.side = {{&a, 1}, {&b, 1}}, .rule = COMPARE_GPU_RULE_INIT};
    struct comparison c;
    make(&a, &m);
    make(&b, &m);
    double before[100], after[100];
    char name[64];
    for (size_t i = 0; i < 100; i++) {
        before[i] = i % 5 ? 0 : 10000;
        after[i] = i % 5 ? 0 : 15000;
    }
    a.cards[0].idle_ns[1] = before;
    b.cards[0].idle_ns[1] = after;
    snprintf(name, sizeof name, "idle.%s", gpu_cause_name(1));
    assert_int_equal(comparison_init(&c, "steps", NULL), TARE_OK);
    assert_int_equal(compare_gpu(&c, &in, NULL), TARE_OK);
    const struct comparison_metric *row = row_of(&c, name);
    assert_true(row->base.known && fabs(row->base.value - 2000) < 1e-6);
    assert_true(row->new_.known && fabs(row->new_.value - 3000) < 1e-6);
    assert_true(fabs(row->ratio.value - 1.5) < 1e-9);
    comparison_release(&c);
    gpu_series_release(&a);
    gpu_series_release(&b);
}

/* Each rank calls its card 0: rank goes to rank, whatever the order, and what has no counterpart is told. */
static void ranks_with_cards_of_one_number(void **state)
{
    struct making m = {.steps = 60, .kernels = 2, .sd = 0.02, .name = "k"};
    struct gpu_series a, b;
    struct compare_gpu in = {.side = {{&a, 1}, {&b, 1}}, .rule = COMPARE_GPU_RULE_INIT};
    struct comparison c;
    (void)state;
    seed = 12;
    make(&a, &m);
    make(&b, &m);
    struct gpu_series_card of_a[] = {a.cards[0], a.cards[0], a.cards[0]}, of_b[] = {b.cards[0], b.cards[0]};
    of_a[0].rank = 1;
    of_a[1].rank = of_a[2].rank = 2;
    of_b[0].rank = 2;
    of_b[1].rank = 3;
    a.cards = of_a;
    b.cards = of_b;
    a.n_cards = 3;
    b.n_cards = 2;
    assert_int_equal(comparison_init(&c, "steps", NULL), TARE_OK);
    assert_int_equal(compare_gpu(&c, &in, NULL), TARE_OK);
    assert_int_equal(c.cases.n, 1);
    assert_string_equal(c.cases.at[0]->name, "gpu 0 of rank 1");
    assert_int_equal(c.unmatched.n, 3);
    assert_string_equal(c.unmatched.at[0]->name, "gpu 0 of rank 0");
    assert_string_equal(c.unmatched.at[1]->name, "gpu 0 of another process of rank 1");
    assert_string_equal(c.unmatched.at[2]->name, "gpu 0 of rank 2");
    comparison_release(&c);
    b.n_cards = 1;
    b.cards[0].rank = 0; /* a program alone, beside a job */
    assert_int_equal(comparison_init(&c, "steps", NULL), TARE_OK);
    assert_int_equal(compare_gpu(&c, &in, NULL), TARE_OK);
    assert_int_equal(c.cases.n, 1);
    assert_string_equal(c.cases.at[0]->name, "gpu 0 of rank 0");
    assert_int_equal(c.unmatched.n, 2); /* two of base, none of new */
    assert_string_equal(c.unmatched.at[1]->side, "base");
    comparison_release(&c);
    b.cards[0].rank = 2;
    a.n_cards = 1; /* ranks 0 and 1, each the only one: the same card */
    assert_int_equal(comparison_init(&c, "steps", NULL), TARE_OK);
    assert_int_equal(compare_gpu(&c, &in, NULL), TARE_OK);
    assert_string_equal(c.cases.at[0]->name, "gpu 0");
    assert_int_equal(c.unmatched.n, 0);
    comparison_release(&c);
    gpu_series_release(&a);
    gpu_series_release(&b);
}

/* ---- several runs a side ---- */

enum { RUNS_MOST = 6 };

struct several {
    struct gpu_series runs[2][RUNS_MOST];
    size_t n[2];
    double spread;     /* of ln between runs */
    int64_t apart_s;   /* between the runs of a side */
    const char *limit; /* NULL: none */
};

/* The steps of a run are as quiet as can be; what runs differ by is another matter. */
static void make_several(struct several *v, const struct making *base, const struct making *new_)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < v->n[side]; i++) {
            struct gpu_series *s = &v->runs[side][i];
            struct making m = side ? *new_ : *base;
            m.all = exp(v->spread * normal());
            make(s, &m);
            s->begun_ms = 1700000000000 + (int64_t)i * v->apart_s * 1000;
        }
}

static void compare_several(struct comparison *c, struct several *v)
{
    struct compare_gpu in = {.side = {{v->runs[0], v->n[0]}, {v->runs[1], v->n[1]}},
                             .rule = COMPARE_GPU_RULE_INIT,
                             .apart_ms = 30000};
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(comparison_init(c, "traces", &err), TARE_OK);
    if (compare_gpu(c, &in, &err) < 0) fail_msg("%s", err.text);
}

static void release_several(struct several *v)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < v->n[side]; i++) gpu_series_release(&v->runs[side][i]);
}

/* The same program three times a side, its steps as quiet as can be. Its runs differ: all of it by a few percent, or
 * each kernel by itself, or some kernels have two speeds. Judged by steps, every pair would be told apart. */
static void runs_of_one_program_are_no_change(void **state)
{
    static const struct {
        size_t kernels, runs, of_every;
        double spread, own, speeds;
    } kinds[] = {
        {KERNELS, 3, 0, 0.03, 0, 0},      {KERNELS, 3, 0, 0.001, 0.03, 0},  {KERNELS, 3, 1, 0.001, 0, 0.05},
        {KERNELS, 3, 4, 0.001, 0, 0.05},  {KERNELS, 3, 8, 0.001, 0, 0.2},   {KERNELS, 3, 4, 0.02, 0, 0.05},
        {KERNELS, 3, 20, 0.001, 0, 0.05}, {KERNELS, 3, 20, 0.001, 0, 0.2},  {5, 3, 3, 0.001, 0, 0.05},
        {KERNELS, 4, 1, 0.001, 0, 0.05},  {KERNELS, 4, 20, 0.001, 0, 0.05},
    };
    enum { TRIALS = 200 };
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        const struct making m = {.steps = 12,
                                 .kernels = kinds[kind].kernels,
                                 .sd = 0.001,
                                 .name = "k",
                                 .own = kinds[kind].own,
                                 .speeds = kinds[kind].speeds,
                                 .of_every = kinds[kind].of_every};
        size_t alarms = 0;
        for (uint64_t trial = 0; trial < TRIALS; trial++) {
            struct several v = {
                .n = {kinds[kind].runs, kinds[kind].runs}, .spread = kinds[kind].spread, .apart_s = 60};
            struct comparison c;
            seed = 500 + trial;
            make_several(&v, &m, &m);
            compare_several(&c, &v);
            alarms += count_verdicts(&c, "regressed") + count_verdicts(&c, "improved") > 0;
            const struct comparison_metric *step = row_of(&c, "step.time");
            assert_string_equal(step->method, "runs");
            assert_true(step->ratio.lo.known && step->ratio.hi.known && step->sd_launch.known);
            comparison_release(&c);
            release_several(&v);
        }
        if (alarms > TRIALS * 5 / 100) fail_msg("kind %zu: %zu of %d were told apart", kind, alarms, TRIALS);
    }
}

/* Three runs a side find a kernel that takes half again as long, though others have two speeds. */
static void a_slower_kernel_among_two_speeds(void **state)
{
    struct making base = {.steps = 12, .kernels = KERNELS, .sd = 0.001, .name = "k", .speeds = 0.05, .of_every = 8},
                  slower = base;
    size_t found = 0;
    (void)state;
    slower.slow = 5;
    slower.by = 1.5;
    for (uint64_t trial = 0; trial < 50; trial++) {
        struct several v = {.n = {3, 3}, .spread = 0.001, .apart_s = 60};
        struct comparison c;
        seed = 700 + trial;
        make_several(&v, &base, &slower);
        compare_several(&c, &v);
        found += strcmp(row_of(&c, "kernel.time k5")->verdict, "regressed") == 0;
        comparison_release(&c);
        release_several(&v);
    }
    if (found < 48) fail_msg("%zu of 50 were found", found);
}

/* With runs enough what the host has a part in gets its verdict, too, and the ratio lies in its interval. */
static void a_slower_program_is_found_by_its_runs(void **state)
{
    struct making base = {.steps = 40, .kernels = 5, .sd = 0.01, .name = "k"}, slower = base;
    size_t found = 0, inside = 0;
    (void)state;
    slower.slow = 4;
    slower.by = 2; /* kernels of 15 us to 20 us, steps of 35 us to 40 us */
    for (uint64_t trial = 0; trial < 40; trial++) {
        struct several v = {.n = {5, 5}, .spread = 0.01, .apart_s = 60};
        struct comparison c;
        seed = 900 + trial;
        make_several(&v, &base, &slower);
        compare_several(&c, &v);
        const struct comparison_metric *step = row_of(&c, "step.time"),
                                       *kernel = row_of(&c, "kernel.time k4");
        found += strcmp(step->verdict, "regressed") == 0 && strcmp(kernel->verdict, "regressed") == 0;
        inside += kernel->ratio.lo.v <= 2 && 2 <= kernel->ratio.hi.v;
        assert_string_equal(step->role, "gate");
        assert_string_equal(row_of(&c, "kernel.time k0")->verdict[0] == 'r' ? "regressed" : "", "");
        comparison_release(&c);
        release_several(&v);
    }
    assert_true(found >= 38);
    assert_true(inside >= 34);
}

/* Two runs a side, or more that were made at once, are no spread between runs: steps judge. */
static void too_few_or_too_close_runs(void **state)
{
    const struct making m = {.steps = 40, .kernels = 2, .sd = 0.01, .name = "k"};
    (void)state;
    for (int close = 0; close < 2; close++) {
        struct several v = {.n = {2 + 2 * close, 2 + 2 * close}, .apart_s = close ? 10 : 60};
        struct comparison c;
        seed = 40;
        make_several(&v, &m, &m);
        compare_several(&c, &v);
        assert_int_equal(c.cases.at[0]->pairs.v, 40 * v.n[0]);
        assert_string_equal(row_of(&c, "step.time")->verdict, "unverified");
        assert_non_null(strstr(row_of(&c, "step.time")->why, "too few runs a side"));
        assert_string_equal(row_of(&c, "kernel.time k1")->verdict, "same");
        assert_string_equal(c.notes.at[0]->id, "runs.one");
        comparison_release(&c);
        release_several(&v);
    }
}

/* A kernel that one run does not have has no number there; other rows are judged. Without steps, totals are. */
static void runs_that_lack_something(void **state)
{
    const struct making m = {.steps = 40, .kernels = 3, .sd = 0.01, .name = "k"};
    struct comparison c;
    (void)state;
    for (int bare = 0; bare < 2; bare++) {
        struct several v = {.n = {3, 3}, .spread = 0.001, .apart_s = 60};
        seed = 41;
        make_several(&v, &m, &m);
        v.runs[1][1].cards[0].n_kernels = 2;
        for (int side = 0; bare && side < 2; side++)
            for (size_t i = 0; i < 3; i++) {
                v.runs[side][i].cards[0].n_steps = side && !i ? 0 : 40;
                v.runs[side][i].cards[0].wall_ns = 200000;
                v.runs[side][i].cards[0].all_busy_ns = side ? 150000 + i : 100000 + i;
            }
        compare_several(&c, &v);
        assert_string_equal(row_of(&c, "kernel.time k2")->verdict, "inconclusive");
        assert_string_equal(row_of(&c, "kernel.time k2")->why, "cannot tell: it is not in every run");
        assert_string_equal(row_of(&c, "kernel.time k1")->verdict, "same");
        if (bare) assert_string_equal(row_of(&c, "busy.time")->verdict, "regressed");
        if (bare) assert_string_equal(row_of(&c, "idle.time")->verdict, "improved");
        if (bare) assert_false(has_row(&c, "step.time"));
        comparison_release(&c);
        release_several(&v);
    }
}

static void memory_may_run_out(void **state)
{
    struct making m = {.steps = 70, .kernels = 2, .sd = 0.02, .name = "k"};
    struct gpu_series a, b;
    struct compare_gpu in = {.side = {{&a, 1}, {&b, 1}}, .rule = COMPARE_GPU_RULE_INIT};
    (void)state;
    seed = 10;
    make(&a, &m);
    make(&b, &m);
    for (long n = 0;; n++) {
        struct comparison c;
        tare_error err = TARE_ERROR_INIT;
        long before = mem_live_blocks();
        mem_fail_after(n);
        tare_status s = comparison_init(&c, "steps", &err);
        if (s == TARE_OK) {
            s = compare_gpu(&c, &in, &err);
            comparison_release(&c);
        }
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
    gpu_series_release(&a);
    gpu_series_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_twice_is_no_change), cmocka_unit_test(a_slower_kernel_is_found),
        cmocka_unit_test(what_the_host_does_is_unverified),
        cmocka_unit_test(a_faster_program_is_improved), cmocka_unit_test(too_few_steps),
        cmocka_unit_test(kernels_of_one_side), cmocka_unit_test(limits_say_what_fails),
        cmocka_unit_test(without_steps), cmocka_unit_test(busy_may_be_unknown),
        cmocka_unit_test(what_is_in_few_steps_is_told_by_its_mean),
        cmocka_unit_test(ranks_with_cards_of_one_number), cmocka_unit_test(runs_of_one_program_are_no_change),
        cmocka_unit_test(a_slower_kernel_among_two_speeds),
        cmocka_unit_test(a_slower_program_is_found_by_its_runs),
        cmocka_unit_test(too_few_or_too_close_runs),
        cmocka_unit_test(runs_that_lack_something),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
