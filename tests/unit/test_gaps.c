/* SPDX-License-Identifier: MIT
 * test_gaps.c - pooled gaps: quantiles, and intervals that go by streams and not by gaps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/mem.h"
#include "core/rng.h"
#include "load/gaps.h"

/* `streams` of 50 gaps: around 10 ms; with `own` each stream has a level of its own. */
static struct gaps made(unsigned streams, bool own)
{
    struct gaps g = {VEC_INIT, VEC_INIT, 0};
    struct gap_list l = {VEC_INIT};
    struct rng r;
    rng_seed(&r, 9);
    for (unsigned s = 0; s < streams; s++) {
        double level = own ? rng_unit(&r) * 2e6 : 0;
        for (int i = 0; i < 50; i++)
            assert_int_equal(gap_add(&l, (uint64_t)(1e7 + level + (own ? 1e4 : 2e6) * rng_unit(&r)), NULL),
                             TARE_OK);
        gaps_take(&g, &l);
        assert_int_equal(l.at.n, 0);
    }
    vec_release(&l.at);
    return g;
}

static struct interval median_of(const struct gaps *g)
{
    const double half = 0.5;
    struct interval out;
    assert_int_equal(gaps_quantiles(g, &half, 1, &out, NULL), TARE_OK);
    return out;
}

static void the_stream_is_the_unit(void **state)
{
    struct gaps alike = made(100, false), own = made(100, true);
    struct interval a = median_of(&alike), b = median_of(&own);
    assert_true(a.lo <= a.value && a.value <= a.hi && fabs(a.value - 1.1e7) < 1e5);
    assert_true(b.lo <= b.value && b.value <= b.hi);
    /* 5,000 gaps that are alike say 0.5 / sqrt(5000) of 2 ms; those of 100 streams 0.5 / sqrt(100) */
    assert_true(a.hi - a.lo < 2 * 2 * 1e6 / sqrt(5000.0) * 1.5);
    assert_true(b.hi - b.lo > 4 * (a.hi - a.lo));
    gaps_release(&alike);
    gaps_release(&own);
    (void)state;
}

static void little_is_not_known(void **state)
{
    struct gaps none = made(0, false), one = made(1, false);
    assert_true(isnan(median_of(&none).value) && isnan(median_of(&one).value));
    assert_true(isnan(gaps_share_below(&none, 1)));
    assert_true(gaps_share_below(&one, 10000000) == 0 && gaps_share_below(&one, 13000000) == 1);
    gaps_clear(&one);
    assert_int_equal(one.all.n, 0);
    gaps_release(&none);
    gaps_release(&one);
    (void)state;
}

static void without_memory(void **state)
{
    struct gaps g = {VEC_INIT, VEC_INIT, 0};
    struct gap_list l = {VEC_INIT};
    assert_int_equal(gap_add(&l, 5000000000000, NULL), TARE_OK);
    mem_fail_after(0);
    gaps_take(&g, &l);
    mem_fail_after(-1);
    assert_int_equal(g.left_out, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gap_add(&l, 100, NULL), TARE_OK);
        gaps_take(&g, &l);
    }
    const double half = 0.5;
    struct interval out;
    mem_fail_after(0);
    assert_int_equal(gaps_quantiles(&g, &half, 1, &out, NULL), TARE_NOMEM);
    mem_fail_after(-1);
    assert_true(median_of(&g).value == 100);
    vec_release(&l.at);
    gaps_release(&g);
    assert_int_equal(mem_live_blocks(), 0);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_is_the_unit),
        cmocka_unit_test(little_is_not_known),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
