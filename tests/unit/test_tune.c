/* SPDX-License-Identifier: MIT
 * test_tune.c - searching and confirming on made-up machines whose answer is known: how near the best it comes and with
 * how many measurements, how often it names a gain that is none, and what limits and failures do. All seeded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/tune/confirm.h"
#include "analyze/tune/line.h"
#include "analyze/tune/search.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"

static struct rng rng;

static double normal(void)
{
    return stats_normal_quantile(rng_unit(&rng) * 0.999999999 + 5e-10);
}

/* ---- machines ---- */

struct machine {
    const char *name;
    struct tune_knob knobs[6];
    size_t n;
    double (*cost)(const uint8_t *at);    /* time per unit */
    double (*limited)(const uint8_t *at); /* at most 1 is within the limit; NULL: none */
    struct tune_point base;
};

static double power2(uint8_t i)
{
    return (double)(1u << i);
}

/* batch 1..128, threads 1..8: a fixed cost per run, threads that help large batches only, caches that overflow */
static double serve(const uint8_t *at)
{
    double batch = power2(at[0]), threads = power2(at[1]), work = 0.4 * batch;
    double speed = threads / (1 + 0.08 * (threads - 1) * (8 / batch + 0.4));
    double spill = batch > 32 ? 1 + 0.1 * log2(batch / 32) : 1;
    return (1.5 + 0.15 * threads + work * spill / speed) / batch;
}
/* the same, with graph level, arena, execution mode */
static double serve_more(const uint8_t *at)
{
    static const double level[] = {1, 0.93, 0.87, 0.86};
    return serve(at) * level[at[2]] * (at[3] ? 1 : 1.04) * (at[4] ? 1.06 : 1);
}
/* workers 0..16, prefetch, pinned: loader with a step */
static double loader(const uint8_t *at)
{
    double w = at[0], fetch = 4, step = 1.1, transport = 0.3;
    double t = w == 0 ? fetch + step : fmax(fmax((fetch + transport) / w, step), 0.45 + 0.01 * w);
    return t * (1 + 0.1 / (1 + at[1])) * (at[2] ? 0.97 : 1);
}
static double loader_cpu(const uint8_t *at) /* processor bound: two cores, more workers only cost */
{
    double w = at[0];
    return w == 0 ? 2.6
                  : fmax(2.2 / fmin(w, 2), 0.9) * (1 + 0.015 * fmax(0, w - 2)) + 0.02 * at[1] +
                        (at[2] ? 0.02 : 0);
}
static double flat(const uint8_t *at)
{
    return 1 + 0.001 * at[0];
}
/* precision x provider x batch: words that interact */
static double precision(const uint8_t *at)
{
    static const double table[3][3] = {{1, 0.9, 0.55}, {0.45, 0.22, 0.5}, {0.5, 0.3, 0.35}};
    double batch = power2(at[2]);
    return table[at[1]][at[0]] * (0.2 + (at[1] ? 3 / batch : 0.4 / batch)) * (at[3] == 1 ? 0.95 : 1);
}
/* a valley along the diagonal */
static double valley(const uint8_t *at)
{
    double d = (double)at[0] - at[1], m = (double)at[0] + at[1] - 14;
    return exp(0.05 * d * d + 0.01 * m * m);
}
/* many knobs that each do a little */
static double many(const uint8_t *at)
{
    double e = 0;
    for (size_t k = 0; k < 6; k++) e += 0.03 * fabs((double)at[k] - (double)(k % 3));
    return exp(e);
}
/* one knob matters, a cliff in it */
static double cliff(const uint8_t *at)
{
    return (at[0] < 5 ? 2 - 0.2 * at[0] : 1.9 + 0.1 * at[0]) + 0.01 * at[1] + 0.005 * at[2];
}
static double two_tops(const uint8_t *at)
{
    double a = exp(-0.15 * ((at[0] - 3.0) * (at[0] - 3.0) + (at[1] - 3.0) * (at[1] - 3.0)));
    double b = exp(-0.15 * ((at[0] - 11.0) * (at[0] - 11.0) + (at[1] - 9.0) * (at[1] - 9.0)));
    return 2 - 0.7 * a - 0.9 * b;
}
static double io(const uint8_t *at) /* threads, block size, method */
{
    double depth = power2(at[0]), block = power2(at[1]) * 16e3,
           method = at[2] == 2   ? 0.8
                    : at[2] == 1 ? 1
                                 : 1.25;
    double rate = fmin(depth * block / (120e-6 + block / 900e6), 2e9);
    return method * 1e9 / rate + 0.01 * depth + 20e3 / block;
}
static double memory_of_batch(const uint8_t *at)
{
    return (0.3 + 0.05 * power2(at[0])) / 2; /* over from batch 64 on */
}

#define ORDERED(name, n) {name, n, true, false}
#define WORDS(name, n) {name, n, false, false}
#define LOADER {ORDERED("workers", 17), ORDERED("prefetch", 6), WORDS("pin", 2)}, 3
#define SQUARE(n) {ORDERED("a", n), ORDERED("b", n)}, 2
/* clang-format off */
static const struct machine machines[] = {
    {"serving", {ORDERED("batch", 8), ORDERED("threads", 4), WORDS("level", 4)}, 3, serve, NULL, {{0}}},
    {"serving, five knobs",
     {ORDERED("batch", 8), ORDERED("threads", 4), ORDERED("level", 4), WORDS("arena", 2), WORDS("mode", 2)}, 5,
     serve_more, NULL, {{0, 3, 3, 1, 0}}},
    {"serving in 2 GB", {{"batch", 8, true, true}, ORDERED("threads", 4), ORDERED("level", 4), WORDS("arena", 2)}, 4,
     serve_more, memory_of_batch, {{0, 1, 3, 1}}},
    {"loader that waits", LOADER, loader, NULL, {{0}}},
    {"loader of the processor", LOADER, loader_cpu, NULL, {{0}}},
    {"nothing to gain", SQUARE(10), flat, NULL, {{0}}},
    {"precision and provider",
     {WORDS("precision", 3), WORDS("provider", 3), ORDERED("batch", 8), WORDS("graph", 3)}, 4, precision, NULL, {{0}}},
    {"valley", SQUARE(15), valley, NULL, {{0}}},
    {"six small knobs",
     {ORDERED("a", 4), ORDERED("b", 4), ORDERED("c", 4), ORDERED("d", 3), ORDERED("e", 3), ORDERED("f", 3)}, 6, many,
     NULL, {{3, 3, 3, 2, 2, 2}}},
    {"cliff", {ORDERED("a", 10), ORDERED("b", 5), ORDERED("c", 4)}, 3, cliff, NULL, {{0}}},
    {"two tops", SQUARE(14), two_tops, NULL, {{0}}},
    {"files", {ORDERED("depth", 8), ORDERED("block", 9), WORDS("method", 3)}, 3, io, NULL, {{0}}},
};
/* clang-format on */
enum { MACHINES = sizeof machines / sizeof *machines };

static size_t grid_of(const struct machine *m)
{
    size_t n = 1;
    for (size_t k = 0; k < m->n; k++) n *= m->knobs[k].n;
    return n;
}

static double best_of(const struct machine *m)
{
    double best = INFINITY;
    for (size_t i = 0, grid = grid_of(m); i < grid; i++) {
        struct tune_point p = {{0}};
        size_t rest = i;
        for (size_t k = 0; k < m->n; k++) {
            p.at[k] = (uint8_t)(rest % m->knobs[k].n);
            rest /= m->knobs[k].n;
        }
        if (!m->limited || m->limited(p.at) <= 1) best = fmin(best, m->cost(p.at));
    }
    return best;
}

struct found {
    double regret; /* true cost over the true best, less 1 */
    size_t measured, over;
};

/* Noise of each measurement, and what drifts from block to block. */
static struct found search(const struct machine *m, size_t most, double noise, uint64_t seed)
{
    struct tune_space space = {.knobs = m->knobs, .n = m->n, .base = m->base};
    struct tune_limits limits = {.most = most, .equal = 0.01, .seed = seed};
    struct tune_search *s;
    struct tune_block block;
    struct tune_tried *tried;
    struct found out = {0};
    size_t n, best;
    double drift = 0;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(tune_search_new(&s, &space, &limits, &err), TARE_OK);
    for (;;) {
        struct tune_answer a[TUNE_BLOCK_MAX];
        assert_int_equal(tune_search_ask(s, &block, &err), TARE_OK);
        if (block.n == 0) break;
        assert_memory_equal(block.at[0].at, m->base.at, m->n);
        drift = 0.7 * drift + 0.15 * normal();
        for (size_t i = 0; i < block.n; i++) {
            bool over = m->limited && m->limited(block.at[i].at) > 1;
            a[i] = (struct tune_answer){over ? TUNE_OVER_LIMIT : TUNE_MEASURED,
                                        m->cost(block.at[i].at) * exp(drift + noise * normal())};
            out.over += over;
        }
        out.measured += block.n;
        assert_int_equal(tune_search_tell(s, &block, a, &err), TARE_OK);
    }
    assert_int_equal(tune_search_tried(s, &tried, &n, &best, &err), TARE_OK);
    assert_true(n > 0);
    assert_int_equal(tried[best].outcome, TUNE_MEASURED);
    out.regret = m->cost(tried[best].at.at) / best_of(m) - 1;
    mem_free(tried);
    tune_search_free(s);
    return out;
}

/* The goal: within 2 % of the best of a full grid with at most a quarter of its measurements. */
static void test_search_comes_within_two_percent(void **state)
{
    (void)state;
    enum { ROUNDS = 10 };
    rng_seed(&rng, 42);
    size_t good = 0;
    for (size_t i = 0; i < MACHINES; i++) {
        double regrets[ROUNDS], most = 0;
        size_t quarter = grid_of(&machines[i]) / 4;
        if (quarter > 96) quarter = 96;
        for (size_t r = 0; r < ROUNDS; r++) {
            struct found f = search(&machines[i], quarter, 0.01, r + 1);
            assert_true(f.measured <= quarter);
            regrets[r] = f.regret;
            most = fmax(most, (double)f.measured);
        }
        stats_sort(regrets, ROUNDS);
        double median = stats_median_sorted(regrets, ROUNDS);
        print_message("%-26s grid %4zu, at most %2.0f measured: regret p50 %.2f %%, worst %.2f %%\n",
                      machines[i].name, grid_of(&machines[i]), most, 100 * median, 100 * regrets[ROUNDS - 1]);
        good += median <= 0.02;
    }
    assert_int_equal(good, MACHINES);
}

/* ---- searching, odd cases ---- */

struct asked {
    struct tune_block blocks[64];
    size_t n;
};

static void ask_all(struct tune_search *s, const struct machine *m, struct asked *out)
{
    *out = (struct asked){.n = 0};
    for (;;) {
        struct tune_answer a[TUNE_BLOCK_MAX];
        struct tune_block *b = &out->blocks[out->n];
        assert_int_equal(tune_search_ask(s, b, NULL), TARE_OK);
        if (b->n == 0) return;
        for (size_t i = 0; i < b->n; i++) a[i] = (struct tune_answer){TUNE_MEASURED, m->cost(b->at[i].at)};
        assert_int_equal(tune_search_tell(s, b, a, NULL), TARE_OK);
        out->n++;
    }
}

static void test_same_seed_and_answers_give_the_same_questions(void **state)
{
    (void)state;
    const struct machine *m = &machines[8]; /* larger than the pool: random points are asked */
    struct tune_space space = {.knobs = m->knobs, .n = m->n, .base = m->base};
    struct tune_limits limits = {.most = 60, .equal = 0.01, .seed = 3};
    static struct asked a, b;
    struct asked *into[] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        struct tune_search *s;
        assert_int_equal(tune_search_new(&s, &space, &limits, NULL), TARE_OK);
        ask_all(s, m, into[i]);
        tune_search_free(s);
    }
    assert_int_equal(a.n, b.n);
    assert_memory_equal(&a, &b, sizeof a);
}

/* What is over a limit is asked once, and nothing that is surely beyond it is asked at all. */
static void test_limits_are_learned(void **state)
{
    (void)state;
    const struct machine *m = &machines[2];
    struct tune_space space = {.knobs = m->knobs, .n = m->n, .base = m->base};
    struct tune_limits limits = {.most = 64, .equal = 0.01, .seed = 5};
    struct tune_search *s;
    struct tune_point over[64];
    size_t n = 0;
    assert_int_equal(tune_search_new(&s, &space, &limits, NULL), TARE_OK);
    for (;;) {
        struct tune_block b;
        struct tune_answer a[TUNE_BLOCK_MAX];
        assert_int_equal(tune_search_ask(s, &b, NULL), TARE_OK);
        if (b.n == 0) break;
        size_t before = n;
        for (size_t i = 0; i < b.n; i++) {
            bool is_over = m->limited(b.at[i].at) > 1;
            for (size_t j = 0; j < before; j++)
                assert_false(b.at[i].at[0] >= over[j].at[0] &&
                             memcmp(b.at[i].at + 1, over[j].at + 1, m->n - 1) == 0);
            if (is_over) over[n++] = b.at[i];
            a[i] = (struct tune_answer){is_over ? TUNE_OVER_LIMIT : TUNE_MEASURED, m->cost(b.at[i].at)};
        }
        assert_int_equal(tune_search_tell(s, &b, a, NULL), TARE_OK);
    }
    assert_true(n > 0);
    tune_search_free(s);
}

/* Everything but the base fails: the base stays the answer. */
static void test_failures_leave_the_base(void **state)
{
    (void)state;
    const struct machine *m = &machines[0];
    struct tune_space space = {.knobs = m->knobs, .n = m->n, .base = m->base};
    struct tune_limits limits = {.most = 32, .equal = 0.01, .seed = 1};
    struct tune_search *s;
    struct tune_tried *tried;
    size_t n, best;
    assert_int_equal(tune_search_new(&s, &space, &limits, NULL), TARE_OK);
    for (;;) {
        struct tune_block b;
        struct tune_answer a[TUNE_BLOCK_MAX];
        assert_int_equal(tune_search_ask(s, &b, NULL), TARE_OK);
        if (b.n == 0) break;
        for (size_t i = 0; i < b.n; i++)
            a[i] =
                (struct tune_answer){memcmp(b.at[i].at, m->base.at, m->n) ? TUNE_FAILED : TUNE_MEASURED, 1};
        assert_int_equal(tune_search_tell(s, &b, a, NULL), TARE_OK);
    }
    assert_int_equal(tune_search_tried(s, &tried, &n, &best, NULL), TARE_OK);
    assert_memory_equal(tried[best].at.at, m->base.at, m->n);
    assert_true(n > 1 && tried[n - 1].outcome == TUNE_FAILED && isnan(tried[n - 1].ratio.value));
    mem_free(tried);
    tune_search_free(s);
}

static void test_bad_spaces_are_refused(void **state)
{
    (void)state;
    struct tune_knob knob = ORDERED("workers", 4);
    struct tune_space space = {.knobs = &knob, .n = 1, .base = {{4}}};
    struct tune_limits limits = {.most = 10};
    struct tune_search *s;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(tune_search_new(&s, &space, &limits, &err), TARE_INVALID);
    assert_string_equal(err.text, "workers: 4 values, of which number 4 is used today");
    space.base.at[0] = 0;
    limits.most = 1;
    assert_int_equal(tune_search_new(&s, &space, &limits, &err), TARE_INVALID);
    space.n = 0;
    limits.most = 10;
    assert_int_equal(tune_search_new(&s, &space, &limits, &err), TARE_INVALID);
    assert_null(s);
}

/* ---- confirming ---- */

struct rates {
    size_t verdicts[CONFIRM_NOT_SHOWN + 1], pairs;
};

/* 500 trials of pairs whose noise has tails: every tenth is three times as large. */
static struct rates trials(double truth, double noise)
{
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    struct rates out = {.pairs = 0};
    for (size_t trial = 0; trial < 500; trial++) {
        double d[64];
        struct confirm_result r = {.next = rule.least};
        size_t n = 0;
        while (r.next) {
            while (n < r.next) d[n++] = -log(truth) + noise * (rng_unit(&rng) < 0.1 ? 3 : 1) * normal();
            struct confirm_pairs p = {.wall = d, .n = n};
            assert_int_equal(confirm_judge(&p, &rule, &r, NULL), TARE_OK);
        }
        assert_true(n <= rule.most);
        out.verdicts[r.verdict]++;
        out.pairs += n;
    }
    return out;
}

static void test_gains_that_are_none_are_not_named(void **state)
{
    (void)state;
    static const double noises[] = {0.03, 0.1, 0.2, 0.35};
    size_t named = 0;
    rng_seed(&rng, 7);
    for (size_t i = 0; i < 4; i++) {
        struct rates r = trials(1, noises[i]);
        named += r.verdicts[CONFIRM_CONFIRMED] + r.verdicts[CONFIRM_LIKELY];
        assert_true(r.verdicts[CONFIRM_CONFIRMED] <= 1);
    }
    assert_true(named <= 20); /* 1 % of 2,000 */
}

static void test_a_quarter_more_is_found(void **state)
{
    (void)state;
    rng_seed(&rng, 8);
    struct rates quiet = trials(1.25, 0.03), loaded = trials(1.25, 0.1);
    assert_int_equal(quiet.verdicts[CONFIRM_CONFIRMED], 500);
    assert_true(loaded.verdicts[CONFIRM_CONFIRMED] + loaded.verdicts[CONFIRM_LIKELY] >= 475);
    assert_true(trials(1 / 1.25, 0.05).verdicts[CONFIRM_WORSE] >= 475);
    assert_true(trials(1.02, 0.03).verdicts[CONFIRM_NO_GAIN] >= 475);
}

static void test_a_gain_bought_with_processor_time_is_told(void **state)
{
    (void)state;
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    struct confirm_result r;
    double wall[12], cpu[12], same[12];
    rng_seed(&rng, 9);
    for (size_t i = 0; i < 12; i++) {
        wall[i] = -0.7 + 0.02 * normal();
        cpu[i] = 0.3 + 0.02 * normal();
        same[i] = 0.02 * normal();
    }
    struct confirm_pairs p = {.wall = wall, .cpu = cpu, .n = 12};
    assert_int_equal(confirm_judge(&p, &rule, &r, NULL), TARE_OK);
    assert_int_equal(r.verdict, CONFIRM_CONFIRMED);
    assert_true(r.uses_more_cpu && r.cpu.lo > 1.2 && isnan(r.memory.value));
    assert_true(r.gain.lo > 1.9 && r.gain.hi < 2.1);
    p.cpu = same;
    assert_int_equal(confirm_judge(&p, &rule, &r, NULL), TARE_OK);
    assert_false(r.uses_more_cpu);
}

/* One knob halves the cost, one gives a tenth, two give nothing: the pick has all four. */
static void test_settings_that_do_not_help_are_dropped(void **state)
{
    (void)state;
    const struct tune_knob knobs[] = {
        {"batch", 4, true, true}, {"mode", 2, false, false}, {"arena", 2, false, false}, {"pattern", 2, false, false}};
    const struct tune_space space = {.knobs = knobs, .n = 4};
    const struct tune_limits limits = {.most = 64, .equal = 0.01, .seed = 1};
    struct tune_search *s = NULL;
    assert_int_equal(tune_search_new(&s, &space, &limits, NULL), TARE_OK);
    rng_seed(&rng, 13);
    for (unsigned i = 0; i < 32; i += 4) {
        struct tune_block block = {.n = 5};
        struct tune_answer answers[5];
        for (unsigned k = 0; k < 5; k++) {
            unsigned v = k ? i + k - 1 : 0; /* the base in each */
            block.at[k] = (struct tune_point){{v & 3, v >> 2 & 1, v >> 3 & 1, v >> 4 & 1}};
            double cost = 100 * pow(0.7, v & 3) * (v >> 2 & 1 ? 0.9 : 1) * exp(0.003 * normal());
            answers[k] = (struct tune_answer){TUNE_MEASURED, cost};
        }
        assert_int_equal(tune_search_tell(s, &block, answers, NULL), TARE_OK);
    }
    struct tune_point at = {{3, 1, 1, 1}};
    tune_search_simplify(s, &at);
    assert_memory_equal(at.at, ((uint8_t[]){3, 1, 0, 0}), 4);
    at = (struct tune_point){{0, 0, 1, 0}};
    tune_search_simplify(s, &at);
    assert_memory_equal(at.at, ((uint8_t[]){0, 0, 0, 0}), 4);
    tune_search_free(s);
}

/* The first look of a search whose measurements are dear. */
static void test_a_dear_search_begins_beside_the_base(void **state)
{
    (void)state;
    const struct tune_knob knobs[] = {
        {"batch", 7, true, true}, {"threads", 3, true, false}, {"arena", 2, false, false}};
    const struct tune_space space = {.knobs = knobs, .n = 3, .base = {{1, 2, 0}}};
    const struct tune_limits limits = {.most = 12, .equal = 0.01, .near = true, .seed = 1};
    struct tune_search *s = NULL;
    struct tune_block block;
    assert_int_equal(tune_search_new(&s, &space, &limits, NULL), TARE_OK);
    assert_int_equal(tune_search_ask(s, &block, NULL), TARE_OK);
    assert_true(block.n == 4);
    assert_memory_equal(block.at[0].at, space.base.at, 3);
    assert_memory_equal(block.at[1].at, ((uint8_t[]){2, 2, 0}), 3);
    assert_memory_equal(block.at[2].at, ((uint8_t[]){0, 2, 0}), 3);
    assert_memory_equal(block.at[3].at, ((uint8_t[]){1, 1, 0}), 3);
    tune_search_free(s);
}

/* Four launches of five pairs, each launch off by a tenth, its pairs alike: twenty pairs look sure of what four
 * launches do not show. */
static void test_launches_that_differ_widen_the_bounds(void **state)
{
    (void)state;
    static const double off[] = {-0.32, -0.30, -0.02, -0.01};
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    struct confirm_result naive, r;
    double wall[20];
    uint32_t epoch[20];
    rng_seed(&rng, 11);
    for (uint32_t i = 0; i < 20; i++) {
        epoch[i] = i / 5;
        wall[i] = off[epoch[i]] + 0.005 * normal();
    }
    struct confirm_pairs p = {.wall = wall, .cpu = wall, .memory = wall, .n = 20};
    assert_int_equal(confirm_judge(&p, &rule, &naive, NULL), TARE_OK);
    p.epoch = epoch;
    assert_int_equal(confirm_judge(&p, &rule, &r, NULL), TARE_OK);
    assert_int_equal(naive.verdict, CONFIRM_LIKELY);
    assert_int_equal(r.verdict, CONFIRM_NOT_SHOWN);
    assert_true(naive.gain.lo > 1 && r.gain.lo < 1 && r.gain.hi > naive.gain.hi);
    assert_true(r.cpu.hi > 1 && r.cpu.hi > naive.cpu.hi && r.memory.hi > naive.memory.hi);
    for (size_t i = 0; i < 20; i++) wall[i] = -0.3 + 0.005 * normal(); /* launches that do not differ */
    assert_int_equal(confirm_judge(&p, &rule, &r, NULL), TARE_OK);
    assert_int_equal(r.verdict, CONFIRM_CONFIRMED);
}

/* How often a gain is named that is none, where launches differ more than pairs: by pairs alone, and by both. */
static void test_launches_do_not_make_gains(void **state)
{
    (void)state;
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    size_t naive = 0, named = 0;
    rng_seed(&rng, 12);
    for (size_t trial = 0; trial < 500; trial++) {
        double wall[20], shared = 0;
        uint32_t epoch[20];
        struct confirm_result r;
        for (uint32_t i = 0; i < 20; i++) {
            if (i % 4 == 0) shared = 0.2 * normal();
            epoch[i] = i / 4;
            wall[i] = shared + 0.01 * normal();
        }
        struct confirm_pairs p = {.wall = wall, .n = 20};
        assert_int_equal(confirm_judge(&p, &rule, &r, NULL), TARE_OK);
        naive += r.verdict == CONFIRM_CONFIRMED || r.verdict == CONFIRM_LIKELY;
        p.epoch = epoch;
        assert_int_equal(confirm_judge(&p, &rule, &r, NULL), TARE_OK);
        named += r.verdict == CONFIRM_CONFIRMED || r.verdict == CONFIRM_LIKELY;
    }
    assert_true(naive > 25); /* 5 %: what the pairs alone claim */
    assert_true(named <= 5); /* 1 % */
}

static void test_a_line_that_one_bad_point_does_not_bend(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 4, 8, 16, 32}, bent[] = {13, 16, 22, 34, 500, 106};
    struct tune_line line;
    assert_int_equal(tune_line_through(x, bent, 4, &line, NULL), TARE_OK);
    assert_true(fabs(line.base - 10) < 1e-9 && fabs(line.slope - 3) < 1e-9 && line.residual < 1e-9);
    assert_int_equal(tune_line_through(x, bent, 6, &line, NULL), TARE_OK);
    assert_true(fabs(line.base - 10) < 1e-9 && fabs(line.slope - 3) < 1e-9);
    assert_true(fabs(line.residual - 442.0 / 500) < 1e-9);
}

static void test_points_that_make_no_line_are_refused(void **state)
{
    (void)state;
    static const struct {
        double x[3], y[3];
        size_t n;
    } bad[] = {{{1}, {1}, 1},         {{1, 1, 1}, {1, 2, 3}, 3},  {{1, 2}, {1, 0}, 2},
               {{1, NAN}, {1, 2}, 2}, {{1, 2}, {1, INFINITY}, 2}, {{0}, {0}, TUNE_LINE_POINTS_MAX + 1}};
    struct tune_line line;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(tune_line_through(bad[i].x, bad[i].y, bad[i].n, &line, &err), TARE_INVALID);
        assert_non_null(strstr(err.text, "point"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_comes_within_two_percent),
        cmocka_unit_test(test_same_seed_and_answers_give_the_same_questions),
        cmocka_unit_test(test_limits_are_learned),
        cmocka_unit_test(test_failures_leave_the_base),
        cmocka_unit_test(test_bad_spaces_are_refused),
        cmocka_unit_test(test_gains_that_are_none_are_not_named),
        cmocka_unit_test(test_a_quarter_more_is_found),
        cmocka_unit_test(test_a_gain_bought_with_processor_time_is_told),
        cmocka_unit_test(test_settings_that_do_not_help_are_dropped),
        cmocka_unit_test(test_a_dear_search_begins_beside_the_base),
        cmocka_unit_test(test_launches_that_differ_widen_the_bounds),
        cmocka_unit_test(test_launches_do_not_make_gains),
        cmocka_unit_test(test_a_line_that_one_bad_point_does_not_bend),
        cmocka_unit_test(test_points_that_make_no_line_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
