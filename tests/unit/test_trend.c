/* SPDX-License-Identifier: MIT
 * test_trend.c - change points: found where they are, not where there are none; robust against outliers; the effect
 * with its interval; repeatable. The error rates themselves are measured by bench/trend_rates. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/compare/trend.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"

enum { N = 100 };

static void noise(double *y, size_t n, double sd, uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed);
    for (size_t i = 0; i < n; i++) {
        y[i] = -6;
        for (int k = 0; k < 12; k++) y[i] += rng_unit(&r);
        y[i] *= sd;
    }
}

static void add(double *y, size_t from, size_t to, double log_step)
{
    for (size_t i = from; i < to; i++) y[i] += log_step;
}

static struct trend find(const double *y, size_t n)
{
    struct trend_options o = TREND_OPTIONS_INIT;
    struct trend t;
    tare_error err = TARE_ERROR_INIT;
    if (trend_find(y, n, &o, &t, &err) != TARE_OK) fail_msg("%s", err.text);
    return t;
}

static void test_step_is_found(void **state)
{
    (void)state;
    double y[N];
    noise(y, N, 0.01, 1);
    add(y, 60, N, log(1.05));
    struct trend t = find(y, N);
    assert_int_equal(t.changes.n, 1);
    const struct trend_change *c = &t.changes.items[0];
    assert_in_range(c->at, 59, 61);
    assert_true(c->worse && !c->recent && c->p <= 0.005);
    assert_true(c->ratio.lo < 1.05 && 1.05 < c->ratio.hi && c->ratio.hi - c->ratio.lo < 0.02);
    assert_int_equal(t.levels.n, 2);
    assert_int_equal(t.levels.items[1].from, c->at);
    assert_int_equal(t.levels.items[1].to, N);
    assert_true(t.noise > 0.007 && t.noise < 0.013);
    trend_release(&t);
}

static void test_three_runs_at_a_new_level_can_be_seen(void **state)
{
    (void)state;
    double y[N + 3];
    noise(y, N + 3, 0.003, 2);
    add(y, N, N + 3, log(1.10));
    struct trend t = find(y, N + 3);
    assert_int_equal(t.changes.n, 1);
    assert_int_equal(t.changes.items[0].at, N);
    assert_true(t.changes.items[0].recent);
    trend_release(&t);
    t = find(y, N + 2); /* two are not enough, however far */
    assert_int_equal(t.changes.n, 0);
    trend_release(&t);
}

static void test_several_levels_and_directions(void **state)
{
    (void)state;
    double y[N];
    noise(y, N, 0.01, 3);
    add(y, 30, 70, log(1.2));
    add(y, 70, N, log(0.9));
    struct trend t = find(y, N);
    assert_int_equal(t.changes.n, 2);
    assert_in_range(t.changes.items[0].at, 29, 31);
    assert_in_range(t.changes.items[1].at, 69, 71);
    assert_true(t.changes.items[0].worse && !t.changes.items[1].worse);
    assert_false(t.creep.worse); /* the best level is the last one */
    assert_int_equal(t.creep.best, 2);
    trend_release(&t);
    struct trend_options o = TREND_OPTIONS_INIT;
    o.less_is_worse = true;
    assert_int_equal(trend_find(y, N, &o, &t, NULL), TARE_OK);
    assert_true(!t.changes.items[0].worse && t.changes.items[1].worse && t.creep.worse);
    assert_true(fabs(t.creep.ratio - 0.75) < 0.02);
    trend_release(&t);
}

/* The level before the last step is the best there was: what is said of the step and of the level are one number. */
static void test_a_step_and_the_creep_that_it_is_are_one_number(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        double y[N];
        noise(y, N, 0.01, seed);
        add(y, N / 2, N, log(1.05));
        struct trend t = find(y, N);
        if (t.changes.n == 1) assert_float_equal(t.creep.ratio, t.changes.items[0].ratio.value, 1e-12);
        trend_release(&t);
    }
}

/* "Slower, then fixed": the step and the return are both told, in every one of these histories. */
static void test_a_step_that_was_undone_is_told(void **state)
{
    static const struct {
        size_t from, to, n;
        double sd, up, after;
    } rows[] = {{40, 50, 90, 0.01, 1.2, 1}, {20, 30, 45, 0.015, 1.2, 1}, {18, 33, 45, 0.015, 1.22, 0.95}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t seed = 0; seed < 15; seed++) {
            double y[N];
            noise(y, rows[i].n, rows[i].sd, 300 + seed);
            add(y, rows[i].from, rows[i].to, log(rows[i].up));
            add(y, rows[i].to, rows[i].n, log(rows[i].after));
            struct trend t = find(y, rows[i].n);
            assert_in_range(t.changes.n, 2, 3);
            const struct trend_change *up = &t.changes.items[0], *back = up + 1;
            assert_in_range(up->at, rows[i].from, rows[i].from);
            assert_in_range(back->at, rows[i].to, rows[i].to);
            assert_true(up->worse && fabs(up->ratio.value / rows[i].up - 1) < 0.02);
            assert_true(!back->worse && fabs(back->ratio.value * rows[i].up / rows[i].after - 1) < 0.02);
            trend_release(&t);
        }
}

/* Each of several pulses is noise to the others, and the runs between two that are close are few: all are told. */
static void test_several_pulses_are_told(void **state)
{
    static const size_t rows[][7] = {{30, 6, 4, 6, 20}, {30, 6, 20, 6, 20}, {20, 6, 6, 6, 6, 6, 20}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            double y[N];
            size_t n = 0, levels = 0;
            noise(y, N, 0.01, 400 + seed);
            for (; levels < 7 && rows[i][levels]; n += rows[i][levels++])
                add(y, n, n + rows[i][levels], levels % 2 ? log(1.1) : 0);
            struct trend t = find(y, n);
            assert_in_range(t.changes.n, levels - 1, levels + 1);
            n = 0;
            for (size_t l = 0, c = 0; l + 1 < levels; l++) {
                n += rows[i][l];
                while (c < t.changes.n && t.changes.items[c].at < n) c++;
                assert_true(c < t.changes.n && t.changes.items[c].at == n);
                assert_true(t.changes.items[c].worse == (l % 2 == 0));
            }
            trend_release(&t);
        }
}

static void test_outliers_are_no_change(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        double y[N];
        noise(y, N, 0.01, 100 + seed);
        for (size_t i = 0; i < 6; i++) y[(seed * 7 + i * 15) % 97] += 2; /* more than sevenfold */
        y[98] += 1;
        y[99] += 1; /* two in a row at the end */
        struct trend t = find(y, N);
        assert_int_equal(t.changes.n, 0);
        trend_release(&t);
    }
}

static void test_small_steps_are_not_told(void **state)
{
    (void)state;
    double y[N];
    noise(y, N, 0.001, 4);
    add(y, 50, N, log(1.015));
    struct trend t = find(y, N);
    assert_int_equal(t.changes.n, 0);
    assert_true(t.smallest >= 0.02);
    trend_release(&t);
}

static void test_creep_of_many_small_steps(void **state)
{
    (void)state;
    double y[N];
    noise(y, N, 0.004, 5);
    for (size_t i = 0; i < N; i++) y[i] += log(1.15) * (double)i / N;
    struct trend t = find(y, N);
    assert_true(t.creep.worse && t.creep.ratio > 1.08);
    trend_release(&t);
}

/* A hundred histories without a change: at the stated rate more than three would be one chance in hundreds. */
static void test_stationary_histories_stay_quiet(void **state)
{
    (void)state;
    size_t found = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        double y[N];
        noise(y, N, 0.03, 1000 + seed);
        struct trend t = find(y, N);
        found += t.changes.n;
        trend_release(&t);
    }
    assert_true(found <= 3);
}

static void test_short_and_flat_histories(void **state)
{
    (void)state;
    double y[N] = {0}, one[] = {3.5};
    for (size_t n = 1; n <= 12; n++) {
        struct trend t = find(y, n);
        assert_int_equal(t.changes.n, 0);
        assert_int_equal(t.levels.n, 1);
        trend_release(&t);
    }
    struct trend t = find(one, 1);
    assert_true(t.levels.items[0].median == 3.5 && isnan(t.noise) && isnan(t.smallest));
    trend_release(&t);
    add(y, 50, N, 1); /* two values only: there is no spread to scale by */
    t = find(y, N);
    assert_int_equal(t.changes.n, 1);
    assert_int_equal(t.changes.items[0].at, 50);
    trend_release(&t);
}

static void test_answer_is_repeatable(void **state)
{
    (void)state;
    double y[N];
    noise(y, N, 0.02, 6);
    add(y, 60, N, log(1.04));
    struct trend a = find(y, N), b = find(y, N);
    assert_int_equal(a.changes.n, b.changes.n);
    for (size_t i = 0; i < a.changes.n; i++) assert_true(a.changes.items[i].p == b.changes.items[i].p);
    assert_true(a.smallest == b.smallest);
    trend_release(&a);
    trend_release(&b);
}

static void test_refused(void **state)
{
    (void)state;
    struct trend_options o = TREND_OPTIONS_INIT;
    struct trend t;
    tare_error err = TARE_ERROR_INIT;
    double y[3] = {1, NAN, 2};
    assert_int_equal(trend_find(y, 0, &o, &t, &err), TARE_INVALID);
    trend_release(&t);
    assert_int_equal(trend_find(y, 3, &o, &t, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "value 2"));
    trend_release(&t);
    assert_int_equal(trend_find(y, TREND_MAX + 1, &o, &t, &err), TARE_INVALID);
    trend_release(&t);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct trend_options o = TREND_OPTIONS_INIT;
    double y[40];
    noise(y, 40, 0.01, 7);
    add(y, 20, 40, 0.2);
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct trend t;
        mem_fail_after(n);
        tare_status s = trend_find(y, 40, &o, &t, NULL);
        mem_fail_after(-1);
        trend_release(&t);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 200);
    }
}

/* ---- the interval of a shift ---- */

/* Critical values of the rank-sum table, two-sided 5 %. */
static void test_rank_sum_ranks(void **state)
{
    (void)state;
    assert_int_equal(shift_rank_k(3, 3, 0.025), 0);
    assert_int_equal(shift_rank_k(4, 4, 0.025), 1);
    assert_int_equal(shift_rank_k(5, 5, 0.025), 3);
    assert_int_equal(shift_rank_k(8, 8, 0.025), 14);
    assert_int_equal(shift_rank_k(8, 10, 0.025), 18);
    assert_int_equal(shift_rank_k(20, 20, 0.025), 128);
    assert_int_equal(shift_rank_k(10, 8, 0.025), 18);
    assert_in_range(shift_rank_k(60, 60, 0.025), 1420,
                    1432); /* beyond the counted ones: 1800 - 1.96 sqrt(36300) */
}

static void test_shift_covers_the_truth(void **state)
{
    (void)state;
    size_t held = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        double y[30];
        struct interval d;
        noise(y, 30, 1, 5000 + seed);
        assert_int_equal(
            shift_between((struct stats_sample){y, 18}, (struct stats_sample){y + 18, 12}, 0.95, &d, NULL),
            TARE_OK);
        held += d.lo <= 0 && 0 <= d.hi;
    }
    assert_in_range(held, 930, 975);
    double a[] = {1, 2, 3}, b[] = {11, 12, 13};
    struct interval d;
    assert_int_equal(shift_between((struct stats_sample){a, 3}, (struct stats_sample){b, 3}, 0.95, &d, NULL),
                     TARE_OK);
    assert_true(d.value == 10 && isinf(d.lo) && isinf(d.hi));
    assert_int_equal(shift_between((struct stats_sample){a, 0}, (struct stats_sample){b, 3}, 0.95, &d, NULL),
                     TARE_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_is_found),
        cmocka_unit_test(test_three_runs_at_a_new_level_can_be_seen),
        cmocka_unit_test(test_several_levels_and_directions),
        cmocka_unit_test(test_a_step_that_was_undone_is_told),
        cmocka_unit_test(test_several_pulses_are_told),
        cmocka_unit_test(test_outliers_are_no_change),
        cmocka_unit_test(test_small_steps_are_not_told),
        cmocka_unit_test(test_a_step_and_the_creep_that_it_is_are_one_number),
        cmocka_unit_test(test_creep_of_many_small_steps),
        cmocka_unit_test(test_stationary_histories_stay_quiet),
        cmocka_unit_test(test_short_and_flat_histories),
        cmocka_unit_test(test_answer_is_repeatable),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_rank_sum_ranks),
        cmocka_unit_test(test_shift_covers_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
