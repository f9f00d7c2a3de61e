/* SPDX-License-Identifier: MIT
 * test_hist.c - exact boundaries, the promised error of quantiles, merging, growth, lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "core/hist.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"

#define ERROR_BOUND 0.00542 /* (base - 1) / (base + 1) = 0.0054152 */

/* The least integer of a bucket and the greatest of the one before, by exact integer roots in Python:
 * v = floor(2^((i + 1) / 64)) from v**64 <= 2**(i + 1). */
static double upper(int index) /* the closing edge of a bucket */
{
    return exp2((double)(index + 1) / 64);
}

static void boundaries_are_exact(void **state)
{
    (void)state;
    static const struct {
        int index;
        uint64_t last;
    } rows[] = {
        {448, UINT64_C(129)},
        {456, UINT64_C(141)},
        {463, UINT64_C(152)},
        {482, UINT64_C(186)},
        {485, UINT64_C(193)},
        {663, UINT64_C(1327)},
        {670, UINT64_C(1432)},
        {678, UINT64_C(1562)},
        {698, UINT64_C(1940)},
        {1284, UINT64_C(1106924)},
        {1317, UINT64_C(1582473)},
        {1318, UINT64_C(1599705)},
        {1320, UINT64_C(1634734)},
        {1984, UINT64_C(2170868211)},
        {2014, UINT64_C(3004285970)},
        {2037, UINT64_C(3854108391)},
        {2042, UINT64_C(4068570940)},
        {2060, UINT64_C(4944320094)},
        {2062, UINT64_C(5052586606)},
        {2064, UINT64_C(5163223846)},
        {2083, UINT64_C(6342919998)},
        {2590, UINT64_C(1538194416978)},
        {2594, UINT64_C(1606296101926)},
        {2605, UINT64_C(1809527284706)},
        {2613, UINT64_C(1973303496441)},
        {3353, UINT64_C(5968335252311937)},
        {3358, UINT64_C(6300444331942436)},
        {3363, UINT64_C(6651033680544134)},
        {3368, UINT64_C(7021131635980086)},
        {3401, UINT64_C(10037503437402964)},
        {3406, UINT64_C(10596042106471958)},
        {3432, UINT64_C(14042263271960172)},
        {3447, UINT64_C(16519276269095182)},
        {3465, UINT64_C(20075006874805929)},
        {3489, UINT64_C(26034062975139279)},
        {3511, UINT64_C(33038552538190364)},
        {3515, UINT64_C(34501294224982886)},
        {3968, UINT64_C(4661903986662671289)},
        {3992, UINT64_C(6045741489889385140)},
        {4010, UINT64_C(7347071384712461870)},
        {4015, UINT64_C(7755900482342532474)},
        {4032, UINT64_C(9323807973325342579)},
        {4036, UINT64_C(9736608218931335184)},
        {4042, UINT64_C(10390327995983639004)},
        {4080, UINT64_C(15680713402566563765)},
        {4081, UINT64_C(15851465176301844309)},
        {4094, UINT64_C(18248035989933441396)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(hist_index(rows[i].last), rows[i].index);
        assert_int_equal(hist_index(rows[i].last + 1), rows[i].index + 1);
    }
}

static void powers_of_two_close_their_bucket(void **state)
{
    (void)state;
    assert_int_equal(hist_index(0), HIST_INDEX_ZERO);
    assert_int_equal(hist_index(1), -1);
    assert_int_equal(hist_index(UINT64_MAX), HIST_INDEX_MAX);
    for (int e = 1; e < 64; e++) {
        assert_int_equal(hist_index(UINT64_C(1) << e), 64 * e - 1);
        if (e > 6) assert_int_equal(hist_index((UINT64_C(1) << e) + 1), 64 * e);
        assert_true(hist_index((UINT64_C(1) << e) - 1) <= 64 * e - 1);
        assert_true(upper(64 * e - 1) == ldexp(1, e));
    }
}

/* Long double has 64 bits of mantissa: enough to tell sides for values well under 2^50. */
static void every_value_lies_in_its_bucket(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    for (int i = 0; i < 200000; i++) {
        uint64_t v = i < 70000 ? (uint64_t)i + 1 : (rng_next(&r) >> (rng_next(&r) % 50 + 14)) + 1;
        int index = hist_index(v);
        assert_true((long double)v <= exp2l((long double)(index + 1) / 64));
        assert_true((long double)v > exp2l((long double)index / 64));
    }
}

static void index_never_falls(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 2);
    for (int i = 0; i < 200000; i++) {
        uint64_t v = rng_next(&r) >> (rng_next(&r) % 64);
        if (v < 1 || v == UINT64_MAX) continue;
        int step = hist_index(v + 1) - hist_index(v);
        assert_true(step >= 0 && (v < 93 || step <= 1));
    }
}

static void empty_says_unknown(void **state)
{
    (void)state;
    struct hist h = HIST_INIT;
    assert_true(isnan(hist_quantile(&h, 0.5)));
    assert_int_equal(h.count, 0);
    hist_release(&h);
}

static void small_integers_are_exact(void **state)
{
    (void)state;
    for (uint64_t v = 0; v <= 92; v++) {
        struct hist h = HIST_INIT;
        hist_record(&h, v, NULL);
        hist_record(&h, 1000000, NULL); /* so that clamping to max does not help */
        hist_record(&h, 0, NULL);
        hist_record(&h, 1000000, NULL);
        assert_true(hist_quantile(&h, 0.5) == (double)v);
        hist_release(&h);
    }
}

static void quantiles_keep_the_promise(void **state)
{
    (void)state;
    enum { N = 20001 };
    static double sorted[N];
    struct rng r;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct hist h = HIST_INIT;
        rng_seed(&r, seed);
        for (int i = 0; i < N; i++) {
            uint64_t v = rng_next(&r) >> (rng_next(&r) % 64);
            sorted[i] = (double)v;
            assert_int_equal(hist_record(&h, v, NULL), TARE_OK);
        }
        stats_sort(sorted, N);
        for (double q = 0; q <= 1; q += 1.0 / 512) {
            double rank = ceil(q * N), truth = sorted[rank < 1 ? 0 : (size_t)rank - 1];
            double got = hist_quantile(&h, q);
            if (fabs(got - truth) > ERROR_BOUND * truth)
                fail_msg("q %g: got %.17g, truth %.17g", q, got, truth);
        }
        assert_true(hist_quantile(&h, 0) == sorted[0] && hist_quantile(&h, 1) == sorted[N - 1]);
        assert_int_equal(h.count, N);
        hist_release(&h);
    }
}

static void totals(void **state)
{
    (void)state;
    struct hist h = HIST_INIT;
    hist_record_n(&h, 10, 3, NULL);
    hist_record_n(&h, 7, 0, NULL);
    hist_record(&h, 0, NULL);
    assert_int_equal(h.count, 4);
    assert_int_equal(h.min, 0);
    assert_int_equal(h.max, 10);
    assert_true(hist_quantile(&h, 0.25) == 0 && hist_quantile(&h, 0.26) == 10);
    hist_record_n(&h, UINT64_MAX, UINT64_MAX, NULL); /* stops at the top instead of wrapping */
    assert_true(h.count == UINT64_MAX);
    hist_release(&h);
}

static void failure_changes_nothing(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    struct hist a = HIST_INIT;
    tare_error err = TARE_ERROR_INIT;
    mem_fail_after(0);
    assert_int_equal(hist_record(&a, 100, &err), TARE_NOMEM);
    assert_true(a.count == 0 && a.min > a.max);
    mem_fail_after(1);
    assert_int_equal(hist_record(&a, 100, &err), TARE_OK);
    assert_int_equal(hist_record(&a, 100, &err), TARE_OK); /* same bucket: no memory needed */
    assert_int_equal(hist_record(&a, 0, &err), TARE_OK);
    assert_int_equal(hist_record(&a, UINT64_MAX, &err), TARE_NOMEM);
    mem_fail_after(-1);
    assert_true(a.count == 3 && a.max == 100 && hist_quantile(&a, 1) == 100);
    hist_release(&a);
    assert_int_equal(mem_live_blocks(), start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boundaries_are_exact),
        cmocka_unit_test(powers_of_two_close_their_bucket),
        cmocka_unit_test(every_value_lies_in_its_bucket),
        cmocka_unit_test(index_never_falls),
        cmocka_unit_test(empty_says_unknown),
        cmocka_unit_test(small_integers_are_exact),
        cmocka_unit_test(quantiles_keep_the_promise),
        cmocka_unit_test(totals),
        cmocka_unit_test(failure_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
