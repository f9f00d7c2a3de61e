/* SPDX-License-Identifier: MIT
 * test_paired.c - verdicts from pairs: what they say when the truth is known, how often they are wrong, what odd input
 * does. Rates are of seeded simulations, so they are the same everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/compare/paired.h"
#include "core/mem.h"
#include "core/rng.h"

static struct rng rng;

static double normal(void)
{
    return stats_normal_quantile(rng_unit(&rng) * 0.999999999 + 5e-10);
}

/* ---- noise as machines make it ---- */

static double quiet(void)
{
    return 0.03 * normal();
}

static double tailed(void) /* t with 3 degrees of freedom */
{
    double a = normal(), b = normal(), c = normal(), d = normal();
    return 0.03 * a / sqrt((b * b + c * c + d * d) / 3);
}

static double preempted(void) /* a fifth of the pairs has one side that took twice as long */
{
    double u = rng_unit(&rng), x = 0.02 * normal();
    return u < 0.1 ? x + 0.7 : u < 0.2 ? x - 0.7 : x;
}

static double wild(void)
{
    return 0.1 * normal();
}

struct world {
    double (*noise)(void);
    double launch_sd;
    size_t per_launch; /* 1: each pair is a launch */
    double truth;      /* ln ratio */
};

enum { MOST = 1024 };

/* Pairs until the rule says enough, as the engine looks. */
static void compare(const struct world *w, const struct paired_rule *r, struct paired_result *out)
{
    static double d[MOST];
    static uint32_t epoch[MOST];
    size_t n = 0, look = r->least;
    double launch = 0;
    for (;;) {
        if (n % w->per_launch == 0) launch = w->launch_sd * normal();
        d[n] = w->truth + launch + w->noise();
        epoch[n] = (uint32_t)(n / w->per_launch);
        n++;
        bool whole = n % w->per_launch == 0 && (w->per_launch == 1 || n / w->per_launch >= r->least_epochs);
        if ((n < look || !whole) && n < MOST) continue;
        struct paired_series s = {d, w->per_launch == 1 ? NULL : epoch, n};
        assert_int_equal(paired_judge(&s, r, out, NULL), TARE_OK);
        look = paired_next_look(n, r->least);
        if (paired_enough(out, r) || n == MOST) return;
    }
}

struct rates {
    double covered, regressed, improved, same;
};

static struct rates rates(const struct world *w, unsigned trials)
{
    struct paired_rule r = PAIRED_RULE_INIT;
    struct rates out = {0};
    for (unsigned i = 0; i < trials; i++) {
        struct paired_result p;
        compare(w, &r, &p);
        out.covered += p.log.lo <= w->truth && w->truth <= p.log.hi;
        out.regressed += p.verdict == PAIRED_REGRESSED;
        out.improved += p.verdict == PAIRED_IMPROVED;
        out.same += p.verdict == PAIRED_SAME;
    }
    out.covered /= trials;
    out.regressed /= trials;
    out.improved /= trials;
    out.same /= trials;
    return out;
}

static const struct world worlds[] = {
    {quiet, 0, 1, 0},     {tailed, 0, 1, 0},       {preempted, 0, 1, 0},    {quiet, 0, 3, 0},
    {quiet, 0.01, 3, 0},  {tailed, 0.01, 4, 0},    {preempted, 0.01, 4, 0}, {quiet, 0.03, 3, 0},
    {tailed, 0.03, 8, 0}, {preempted, 0.03, 6, 0}, {wild, 0, 1, 0},
};

static void intervals_cover_as_often_as_they_say(void **state)
{
    (void)state;
    rng_seed(&rng, 1);
    double all = 0;
    size_t n = sizeof worlds / sizeof *worlds;
    for (size_t i = 0; i < n; i++) {
        struct world w = worlds[i];
        w.truth = i % 2 ? log(1.05) : 0;
        double covered = rates(&w, 500).covered;
        if (covered < 0.92 || covered > 0.98)
            fail_msg("world %zu: covered %.3f", i, covered); /* +-3 sd of 500 */
        all += covered / (double)n;
    }
    if (all < 0.94 || all > 0.965) fail_msg("all worlds: covered %.4f", all);
}

static void same_is_not_called_slower(void **state)
{
    (void)state;
    rng_seed(&rng, 2);
    double wrong = 0;
    size_t n = sizeof worlds / sizeof *worlds;
    for (size_t i = 0; i < n; i++) {
        struct rates r = rates(&worlds[i], 300);
        assert_true(r.regressed <= 0.01 && r.improved <= 0.01);
        wrong += r.regressed / (double)n;
        assert_true(r.same > 0.9);
    }
    assert_true(wrong <= 0.003);
}

static void five_percent_is_found(void **state)
{
    (void)state;
    rng_seed(&rng, 3);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct world w = worlds[i];
        w.truth = log(1.05);
        assert_true(rates(&w, 200).regressed >= 0.95);
        w.truth = -log(1.05);
        assert_true(rates(&w, 200).improved >= 0.95);
    }
}

/* One launch is one layout: pairs within it agree on it, and only more launches tell. */
static void launches_widen_the_interval(void **state)
{
    (void)state;
    struct paired_rule r = PAIRED_RULE_INIT;
    double d[80];
    uint32_t epoch[80];
    struct paired_result split, own;
    rng_seed(&rng, 4);
    double shift = 0;
    for (size_t i = 0; i < 80; i++) {
        if (i % 10 == 0) shift = 0.05 * normal();
        d[i] = shift + 0.005 * normal();
        epoch[i] = (uint32_t)(i / 10);
    }
    assert_int_equal(paired_judge(&(struct paired_series){d, epoch, 80}, &r, &split, NULL), TARE_OK);
    assert_int_equal(paired_judge(&(struct paired_series){d, NULL, 80}, &r, &own, NULL), TARE_OK);
    assert_int_equal(split.epochs, 8);
    assert_true(split.log.hi - split.log.lo > 2 * (own.log.hi - own.log.lo));
    assert_true(split.sd_launch > 0.02 && split.sd_launch < 0.12 && split.sd_pair < 0.01);
    assert_true(isnan(own.sd_launch));
    assert_true(split.mde > own.mde && split.needed > 80);
    assert_int_equal(split.verdict, PAIRED_INCONCLUSIVE);
}

static void without_launches_it_is_the_signed_rank_interval(void **state)
{
    (void)state;
    struct paired_rule r = PAIRED_RULE_INIT;
    struct paired_result p;
    struct interval want, gate;
    double d[33];
    rng_seed(&rng, 5);
    for (size_t i = 0; i < 33; i++) d[i] = 0.02 + tailed();
    assert_int_equal(paired_judge(&(struct paired_series){d, NULL, 33}, &r, &p, NULL), TARE_OK);
    assert_int_equal(stats_hodges_lehmann(d, 33, 0.95, &want, NULL), TARE_OK);
    assert_int_equal(stats_hodges_lehmann(d, 33, 0.98, &gate, NULL), TARE_OK);
    assert_true(p.log.value == want.value && p.log.lo == want.lo && p.log.hi == want.hi);
    assert_true(p.gate_lo == gate.lo && p.gate_hi == gate.hi);
}

/* Turned round, the same pairs must lead to the same decision to go on, and to the opposite verdict. */
static void stopping_does_not_see_the_sign(void **state)
{
    (void)state;
    struct paired_rule r = PAIRED_RULE_INIT;
    rng_seed(&rng, 6);
    for (int trial = 0; trial < 200; trial++) {
        double d[40], back[40];
        uint32_t epoch[40];
        struct paired_result p, q;
        double truth = 0.2 * rng_unit(&rng) - 0.1;
        for (size_t i = 0; i < 40; i++) {
            d[i] = truth + tailed();
            back[i] = -d[i];
            epoch[i] = (uint32_t)(i / 4);
        }
        const uint32_t *e = trial % 2 ? epoch : NULL;
        assert_int_equal(paired_judge(&(struct paired_series){d, e, 40}, &r, &p, NULL), TARE_OK);
        assert_int_equal(paired_judge(&(struct paired_series){back, e, 40}, &r, &q, NULL), TARE_OK);
        assert_int_equal(paired_enough(&p, &r), paired_enough(&q, &r));
        assert_true(fabs(p.gate_lo + q.gate_hi) < 1e-9 && fabs(p.log.value + q.log.value) < 1e-9);
        assert_int_equal(p.verdict == PAIRED_REGRESSED, q.verdict == PAIRED_IMPROVED);
    }
}

static void verdicts_at_their_limits(void **state)
{
    (void)state;
    struct paired_rule r = PAIRED_RULE_INIT;
    const struct {
        double lo, hi;
        enum paired_verdict want;
    } cases[] = {{log(1.0101), log(1.2), PAIRED_REGRESSED}, {log(1.0099), log(1.2), PAIRED_INCONCLUSIVE},
                 {log(1.0099), log(1.049), PAIRED_SAME},    {-log(1.2), -log(1.0101), PAIRED_IMPROVED},
                 {-log(1.049), log(1.049), PAIRED_SAME},    {-log(1.051), log(1.0), PAIRED_INCONCLUSIVE},
                 {-INFINITY, INFINITY, PAIRED_INCONCLUSIVE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(paired_decide(cases[i].lo, cases[i].hi, r.min_effect, r.detect), cases[i].want);
    assert_string_equal(paired_verdict_name(PAIRED_REGRESSED), "regressed");
    assert_string_equal(paired_verdict_name(PAIRED_INCONCLUSIVE), "inconclusive");
}

static void looks_grow_by_the_root_of_two(void **state)
{
    (void)state;
    const size_t want[] = {20, 28, 40, 56, 80, 113, 160};
    size_t n = 0;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        n = paired_next_look(n, 20);
        assert_in_range(n, want[i] - 1, want[i]);
    }
}

static void few_and_equal_pairs(void **state)
{
    (void)state;
    struct paired_rule r = PAIRED_RULE_INIT;
    struct paired_result p;
    const double one[] = {0.5}, equal[24] = {0};
    const double slower[24] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                               0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    uint32_t epoch[24];
    for (uint32_t i = 0; i < 24; i++) epoch[i] = i / 3;
    assert_int_equal(paired_judge(&(struct paired_series){one, NULL, 1}, &r, &p, NULL), TARE_OK);
    assert_int_equal(p.verdict, PAIRED_INCONCLUSIVE);
    assert_true(isinf(p.gate_lo) && isinf(p.gate_hi) && p.needed >= 20 && !paired_enough(&p, &r));
    assert_int_equal(paired_judge(&(struct paired_series){equal, epoch, 24}, &r, &p, NULL), TARE_OK);
    assert_int_equal(p.verdict, PAIRED_SAME);
    assert_true(p.gate_lo == 0 && p.gate_hi == 0 && p.p_slower == 1);
    assert_int_equal(paired_judge(&(struct paired_series){slower, epoch, 24}, &r, &p, NULL), TARE_OK);
    assert_int_equal(p.verdict, PAIRED_REGRESSED);
    assert_true(p.p_slower == 0);
    assert_int_equal(paired_judge(&(struct paired_series){equal, NULL, 0}, &r, &p, NULL), TARE_INVALID);
}

static void holm_steps_down(void **state)
{
    (void)state;
    double p[] = {0.01, NAN, 0.04, 0.03, 0.005};
    paired_holm(p, 5); /* of four: 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1 but not below the one before */
    assert_true(fabs(p[4] - 0.02) < 1e-12 && fabs(p[0] - 0.03) < 1e-12);
    assert_true(fabs(p[3] - 0.06) < 1e-12 && fabs(p[2] - 0.06) < 1e-12 && isnan(p[1]));
    double big[] = {0.9, 0.8};
    paired_holm(big, 2);
    assert_true(big[0] == 1 && big[1] == 1);
    paired_holm(big, 0);
}

/* ---- from pairs ---- */

static void fill(struct pair *at, size_t n, double cpu_share, unsigned interrupted_of_10)
{
    for (size_t i = 0; i < n; i++)
        for (int side = 0; side < PAIR_SIDES; side++)
            at[i].side[side] = (struct pair_side){.wall_ns = 1000000,
                                                  .cpu_ns = (uint64_t)(1000000 * cpu_share),
                                                  .involuntary = i % 10 < interrupted_of_10};
}

static void others(struct pair *at, size_t n, uint64_t ns)
{
    for (size_t i = 0; i < n; i++)
        for (int side = 0; side < PAIR_SIDES; side++) at[i].side[side].others = known_u64(ns);
}

static void contention_is_seen(void **state)
{
    (void)state;
    struct pair at[40] = {0};
    struct pair_set set = {.at = at, .n = 40};
    fill(at, 40, 0.99, 0);
    assert_false(paired_contention(&set).contended);
    fill(at, 40, 0.99, 3);
    assert_true(paired_contention(&set).contended);
    fill(at, 40, 0.3, 0); /* waits for a disk, alone on its machine */
    assert_false(paired_contention(&set).contended);
    fill(at, 40, 0.9, 1); /* a little of both */
    assert_true(paired_contention(&set).contended);
    fill(at, 40, 0.99, 0);
    set.pressure = known_f64(0.3);
    assert_true(paired_contention(&set).contended);
    set.pressure = known_f64(0.1);
    set.steal = known_f64(0.05);
    assert_true(paired_contention(&set).contended);
    assert_true(paired_contention(&set).cpu_bound);
    fill(at, 40, 0.2, 10);
    assert_false(paired_contention(&set).cpu_bound); /* where nothing tells what others took */
    others(at, 40, 780000);                          /* one of five that want the CPU */
    assert_true(paired_contention(&set).cpu_bound);
    others(at, 40, 300000); /* a few waits, but long ones: a clock, a network */
    assert_false(paired_contention(&set).cpu_bound);
    fill(at, 40, 0.99, 3);
    others(at, 40, 0);
    assert_true(paired_contention(&set).cpu_bound);
    for (size_t i = 0; i < 40; i++) at[i].side[PAIR_B].wall_ns += 200000; /* the new side also sleeps */
    assert_false(paired_contention(&set).cpu_bound);
}

static void pairs_without_a_value_are_left_out(void **state)
{
    (void)state;
    struct pair at[30] = {0};
    struct pair_set set = {.at = at, .n = 30, .own_launch = true};
    struct paired_rule r = PAIRED_RULE_INIT;
    struct paired_result p;
    fill(at, 30, 0, 0);
    at[3].side[PAIR_B].wall_ns = 0;
    assert_int_equal(paired_metric_judge(&set, PAIRED_WALL, &r, &p, NULL), TARE_OK);
    assert_int_equal(p.n, 29);
    assert_int_equal(paired_metric_judge(&set, PAIRED_CPU, &r, &p, NULL), TARE_OK); /* all of them 0 */
    assert_int_equal(p.n, 0);
    assert_int_equal(p.verdict, PAIRED_INCONCLUSIVE);
    assert_true(isnan(p.log.value));
}

static void memory_may_run_out(void **state)
{
    (void)state;
    struct pair at[30] = {0};
    struct pair_set set = {.at = at, .n = 30};
    struct paired_rule r = PAIRED_RULE_INIT;
    struct paired_result p;
    fill(at, 30, 1, 0);
    for (size_t i = 0; i < 30; i++) at[i].epoch = (uint32_t)(i / 3);
    long live = mem_live_blocks();
    for (long n = 0;; n++) {
        mem_fail_after(n);
        tare_status s = paired_metric_judge(&set, PAIRED_WALL, &r, &p, NULL);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), live);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 100);
    }
    double family[] = {0.01, 0.02, NAN};
    mem_fail_after(0);
    paired_holm(family, 3); /* no order: the careful way; what is unknown stays so */
    mem_fail_after(-1);
    assert_true(fabs(family[0] - 0.03) < 1e-12 && fabs(family[1] - 0.06) < 1e-12 && isnan(family[2]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_cover_as_often_as_they_say),
        cmocka_unit_test(same_is_not_called_slower),
        cmocka_unit_test(five_percent_is_found),
        cmocka_unit_test(launches_widen_the_interval),
        cmocka_unit_test(without_launches_it_is_the_signed_rank_interval),
        cmocka_unit_test(stopping_does_not_see_the_sign),
        cmocka_unit_test(verdicts_at_their_limits),
        cmocka_unit_test(looks_grow_by_the_root_of_two),
        cmocka_unit_test(few_and_equal_pairs),
        cmocka_unit_test(holm_steps_down),
        cmocka_unit_test(contention_is_seen),
        cmocka_unit_test(pairs_without_a_value_are_left_out),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
