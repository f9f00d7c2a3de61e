/* SPDX-License-Identifier: MIT
 * test_between_runs.c - verdicts over whole runs: error rates over thousands of simulated comparisons with a known
 * spread between runs, what they can find, and what may never be a verdict. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/compare/between_runs.h"
#include "core/mem.h"
#include "core/rng.h"

enum { TRIALS = 2000, MOST = 40 };

static double normal(struct rng *r)
{
    return sqrt(-2 * log(1 - rng_unit(r))) * cos(2 * M_PI * rng_unit(r));
}

/* t with 4 degrees of freedom, scaled to the sd given: the tails of a shared machine. */
static double heavy(struct rng *r)
{
    double s = 0;
    for (int i = 0; i < 4; i++) {
        double z = normal(r);
        s += z * z;
    }
    return normal(r) / sqrt(s / 4) / sqrt(2);
}

struct setting {
    size_t a, b, past;
    double sd, effect;
    enum { PLAIN, TAILS, SPEEDS } kind; /* SPEEDS: half of the runs are three times the sd slower */
};

static double noise(struct rng *r, const struct setting *s)
{
    if (s->kind == SPEEDS) return 3 * (double)rng_below(r, 2) + 0.1 * normal(r);
    return s->kind == TAILS ? heavy(r) : normal(r);
}

static double plausible; /* of the rule; 0: none */

struct counts {
    size_t regressed, improved, same, inconclusive, unverified, covered;
};

static struct between_result compare(struct rng *r, const struct setting *s)
{
    double x[3][MOST];
    size_t n[3] = {s->a, s->b, s->past};
    struct between_rule rule = BETWEEN_RULE_INIT;
    struct between_result out;
    tare_error err = TARE_ERROR_INIT;
    rule.plausible = plausible;
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < n[k]; i++)
            x[k][i] = 16 + s->sd * noise(r, s) + (k == 1 ? log1p(s->effect) : 0);
    struct between_sides in = {{x[0], n[0]}, {x[1], n[1]}, {x[2], n[2]}, false, 0};
    assert_int_equal(between_runs(&in, &rule, &out, &err), TARE_OK);
    return out;
}

static struct counts simulate(const struct setting *s)
{
    struct counts n = {0};
    struct rng r;
    rng_seed(&r, 4711 + s->a * 7 + s->past);
    for (size_t i = 0; i < TRIALS; i++) {
        struct between_result b = compare(&r, s);
        n.regressed += strcmp(b.verdict, "regressed") == 0;
        n.improved += strcmp(b.verdict, "improved") == 0;
        n.same += strcmp(b.verdict, "same") == 0;
        n.inconclusive += strcmp(b.verdict, "inconclusive") == 0;
        n.unverified += strcmp(b.verdict, "unverified") == 0;
        n.covered += b.lo <= log1p(s->effect) && log1p(s->effect) <= b.hi;
    }
    return n;
}

static void test_false_alarms_of_runs(void **state)
{
    (void)state;
    const double sds[] = {0.01, 0.03, 0.09};
    for (size_t runs = 3; runs <= 5; runs++)
        for (int k = 0; k < 6; k++) {
            struct setting s = {runs, runs, 0, sds[k % 3], 0, k >= 3 ? TAILS : PLAIN};
            struct counts n = simulate(&s);
            if (n.regressed > TRIALS / 50 || n.improved > TRIALS / 50)
                fail_msg("%zu runs, sd %g: %zu regressed, %zu improved", runs, s.sd, n.regressed, n.improved);
            if (s.kind == PLAIN && n.covered < TRIALS * 93 / 100)
                fail_msg("%zu runs: %zu covered", runs, n.covered);
        }
    struct setting uneven = {3, 12, 0, 0.05, 0, PLAIN};
    assert_true(simulate(&uneven).regressed <= TRIALS / 50);
}

static void test_false_alarms_of_the_past(void **state)
{
    (void)state;
    const size_t pasts[] = {8, 9, 12, 16, 20, 30};
    for (size_t i = 0; i < sizeof pasts / sizeof *pasts; i++)
        for (int k = 0; k < 4; k++) {
            struct setting s = {1, 1, pasts[i], k % 2 ? 0.02 : 0.09, 0, k >= 2 ? TAILS : PLAIN};
            struct counts n = simulate(&s);
            if (n.regressed > TRIALS / 50)
                fail_msg("past %zu, sd %g: %zu regressed", pasts[i], s.sd, n.regressed);
            assert_int_equal(n.unverified, 0);
        }
}

/* The median of the differences alone is blind to half of them: 10 of 100 there. */
static void test_a_machine_of_two_speeds(void **state)
{
    (void)state;
    for (size_t past = 8; past <= 32; past += 8) {
        struct setting s = {1, 1, past, 0.03, 0, SPEEDS};
        struct counts n = simulate(&s);
        if (n.regressed > TRIALS / 50) fail_msg("past %zu: %zu regressed", past, n.regressed);
    }
}

static void test_what_is_there_is_found(void **state)
{
    (void)state;
    assert_true(simulate(&(struct setting){5, 5, 0, 0.01, 0.10, PLAIN}).regressed > TRIALS * 95 / 100);
    assert_true(simulate(&(struct setting){5, 5, 0, 0.01, -0.10, PLAIN}).improved > TRIALS * 95 / 100);
    assert_true(simulate(&(struct setting){1, 1, 30, 0.01, 0.15, PLAIN}).regressed > TRIALS * 95 / 100);
    assert_true(simulate(&(struct setting){5, 5, 0, 0.003, 0, PLAIN}).same > TRIALS * 95 / 100);
    assert_true(simulate(&(struct setting){3, 3, 0, 0.09, 0.05, PLAIN}).inconclusive > TRIALS * 90 / 100);
}

/* What the result says it could have seen is found in about 95 of 100 (at least 90: the spread is itself estimated). */
static void test_the_smallest_effect_holds(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 5);
    struct setting s = {8, 8, 0, 0.01, 0, PLAIN};
    double mde = 0;
    for (int i = 0; i < 200; i++) mde += compare(&r, &s).mde / 200;
    s.effect = mde;
    assert_true(mde > 0.02 && mde < 0.06);
    assert_true(simulate(&s).regressed > TRIALS * 90 / 100);
}

static void test_two_single_runs_are_never_a_verdict(void **state)
{
    (void)state;
    struct counts n = simulate(&(struct setting){1, 1, 0, 0.01, 5, PLAIN});
    assert_int_equal(n.unverified, TRIALS);
    n = simulate(&(struct setting){2, 9, 7, 0.01, 5, PLAIN});
    assert_int_equal(n.unverified, TRIALS);
    struct rng r;
    rng_seed(&r, 1);
    struct between_result b = compare(&r, &(struct setting){1, 1, 7, 0.01, 1, PLAIN});
    assert_true(isinf(b.lo) && isinf(b.hi) && isnan(b.p_worse) && isnan(b.mde) && b.needed == 0);
    assert_true(fabs(b.log - log(2)) < 0.1);
}

static struct between_result of(const double *a, const double *b, size_t n, bool more)
{
    struct between_rule rule = BETWEEN_RULE_INIT;
    struct between_result out;
    struct between_sides in = {{a, n}, {b, n}, {NULL, 0}, more, 0};
    assert_int_equal(between_runs(&in, &rule, &out, NULL), TARE_OK);
    return out;
}

/* A bound instead of a spread: no alarms on the worst machine that was measured, a verdict on what is far beyond it. */
static void test_far_is_a_verdict(void **state)
{
    (void)state;
    struct setting s = {1, 1, 0, 0.36, 0, PLAIN};
    plausible = 0.4;
    struct counts n = simulate(&s);
    if (n.regressed > TRIALS / 80 || n.improved > TRIALS / 80) fail_msg("%zu, %zu", n.regressed, n.improved);
    s.kind = TAILS;
    assert_true(simulate(&s).regressed <= TRIALS / 50);
    s = (struct setting){2, 1, 7, 0.1, 9, PLAIN};
    n = simulate(&s);
    assert_true(n.regressed >= TRIALS * 99 / 100 && n.regressed + n.unverified == TRIALS);
    s.effect = 2; /* three times: this may be noise */
    assert_true(simulate(&s).unverified > TRIALS * 95 / 100);
    plausible = 0;
}

/* Middles that a busy machine may set so far apart, and a fastest run that it does not. */
static void test_the_fastest_run_is_a_bound(void **state)
{
    (void)state;
    const double base = 0, six = log(6), sixth = -log(6);
    struct between_rule r = BETWEEN_RULE_INIT;
    r.plausible = 0.8;
    r.plausible_bound = 0.4;
    struct between_sides in = {{&base, 1}, {&six, 1}, {NULL, 0}, false, 0};
    struct between_result out;
    assert_int_equal(between_runs(&in, &r, &out, NULL), TARE_OK);
    assert_string_equal(out.verdict, "unverified");
    in.bound = log(2.71); /* the most that was seen of one program */
    assert_int_equal(between_runs(&in, &r, &out, NULL), TARE_OK);
    assert_string_equal(out.verdict, "unverified");
    in.bound = log(5);
    assert_int_equal(between_runs(&in, &r, &out, NULL), TARE_OK);
    assert_string_equal(out.verdict, "regressed");
    assert_true(out.method == BETWEEN_FAR && out.by_bound && fabs(out.log - six) < 1e-12);
    assert_true(out.gate_lo > log1p(r.min_effect) && out.lo < in.bound && out.lo > 0 && out.hi > six);
    in.new_.x = &sixth;
    in.bound = -log(5);
    assert_int_equal(between_runs(&in, &r, &out, NULL), TARE_OK);
    assert_string_equal(out.verdict, "improved");
    assert_true(out.by_bound && out.hi < 0 && out.lo < sixth);
}

/* Three runs of the base are the yardstick of one new run. */
static void test_one_run_against_several(void **state)
{
    (void)state;
    for (size_t runs = 3; runs <= 6; runs++)
        for (int k = 0; k < 2; k++) {
            struct setting s = {runs, 1, 0, 0.03, 0, k ? TAILS : PLAIN};
            struct counts n = simulate(&s);
            if (n.regressed > TRIALS / 40 || n.improved > TRIALS / 40)
                fail_msg("%zu runs: %zu regressed, %zu improved", runs, n.regressed, n.improved);
            if (!k && n.covered < TRIALS * 93 / 100) fail_msg("%zu runs: %zu covered", runs, n.covered);
        }
    assert_true(simulate(&(struct setting){6, 1, 0, 0.01, 0.2, PLAIN}).regressed > TRIALS * 95 / 100);
}

static void test_equal_values_and_directions(void **state)
{
    (void)state;
    const double a[] = {1, 1, 1}, same[] = {1, 1, 1}, up[] = {1.2, 1.2, 1.2};
    struct between_result b = of(a, same, 3, false);
    assert_string_equal(b.verdict, "same");
    assert_true(b.lo < 0 && b.hi > 0 && isfinite(b.mde));
    assert_string_equal(of(a, up, 3, false).verdict, "regressed");
    assert_string_equal(of(a, up, 3, true).verdict, "improved");
    assert_string_equal(of(up, a, 3, true).verdict, "regressed");
    const double wild[] = {0.5, 1.0, 1.6};
    b = of(a, wild, 3, false);
    assert_string_equal(b.verdict, "inconclusive");
    assert_true(b.needed == 0 || b.needed > 3);
    const double mild[] = {0.98, 1.0, 1.03};
    b = of(a, mild, 3, false);
    assert_string_equal(b.verdict, "inconclusive");
    assert_true(b.needed > 3 && b.needed < 200);
}

static void test_a_step_in_the_past_does_not_widen(void **state)
{
    (void)state;
    struct rng r;
    double y[20], sd, stepped;
    rng_seed(&r, 3);
    for (int i = 0; i < 20; i++) y[i] = 0.01 * normal(&r);
    assert_int_equal(between_past_sd((struct stats_sample){y, 20}, &sd, NULL), TARE_OK);
    for (int i = 10; i < 20; i++) y[i] += 1;
    assert_int_equal(between_past_sd((struct stats_sample){y, 20}, &stepped, NULL), TARE_OK);
    assert_true(sd > 0.004 && sd < 0.02 && stepped < 1.5 * sd);
}

static void test_refusals_and_memory(void **state)
{
    (void)state;
    const double a[] = {1, 2, 1, 2, 1, 2, 1, 2, 1}, bad[] = {NAN}, inf[] = {INFINITY};
    struct between_rule rule = BETWEEN_RULE_INIT;
    struct between_result out;
    tare_error err = TARE_ERROR_INIT;
    struct between_sides none = {{a, 0}, {a, 1}, {NULL, 0}, false, 0};
    assert_int_equal(between_runs(&none, &rule, &out, &err), TARE_INVALID);
    struct between_sides nan_side = {{a, 1}, {bad, 1}, {NULL, 0}, false, 0};
    assert_int_equal(between_runs(&nan_side, &rule, &out, &err), TARE_INVALID);
    struct between_sides inf_side = {{inf, 1}, {a, 1}, {NULL, 0}, false, 0};
    assert_int_equal(between_runs(&inf_side, &rule, &out, &err), TARE_INVALID);
    struct between_sides past = {{a, 1}, {a, 1}, {a, 9}, false, 0};
    for (unsigned n = 0;; n++) {
        mem_fail_after(n);
        tare_status s = between_runs(&past, &rule, &out, &err);
        mem_fail_after(-1);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 10);
    }
    assert_int_equal(out.method, BETWEEN_PAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_false_alarms_of_runs),
        cmocka_unit_test(test_false_alarms_of_the_past),
        cmocka_unit_test(test_a_machine_of_two_speeds),
        cmocka_unit_test(test_what_is_there_is_found),
        cmocka_unit_test(test_the_smallest_effect_holds),
        cmocka_unit_test(test_two_single_runs_are_never_a_verdict),
        cmocka_unit_test(test_far_is_a_verdict),
        cmocka_unit_test(test_the_fastest_run_is_a_bound),
        cmocka_unit_test(test_one_run_against_several),
        cmocka_unit_test(test_equal_values_and_directions),
        cmocka_unit_test(test_a_step_in_the_past_does_not_widen),
        cmocka_unit_test(test_refusals_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
