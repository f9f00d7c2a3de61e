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
            if (fabs(got - truth) > HIST_ERROR * truth)
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
    assert_int_equal(h.sum, 30);
    assert_true(hist_quantile(&h, 0.25) == 0 && hist_quantile(&h, 0.26) == 10);
    hist_record_n(&h, UINT64_MAX, UINT64_MAX, NULL); /* stops at the top instead of wrapping */
    assert_true(h.count == UINT64_MAX && h.sum == UINT64_MAX);
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

/* ---- of many hosts ---- */

enum { HOSTS = 40, EACH = 1000 };

/* Latencies in ns as services have them, by kind: all alike, even, log-normal, two humps, a heavy tail. */
static uint64_t latency(struct rng *r, int kind)
{
    double u = ((double)(rng_next(r) >> 11) + 0.5) * 0x1p-53;
    double v = ((double)(rng_next(r) >> 11) + 0.5) * 0x1p-53;
    double normal = sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
    switch (kind) {
    case 0: return 2000000;
    case 1: return (uint64_t)(1e6 + u * 9e6);
    case 2: return (uint64_t)(5e6 * exp(0.8 * normal));
    case 3: return (uint64_t)((v < 0.02 ? 4e8 : 3e6) * (1 + 0.1 * u));
    default: return (uint64_t)(1e6 * pow(u, -1.2));
    }
}

static void check_quantiles(const struct hist *h, const double *sorted, size_t n)
{
    static const double qs[] = {0.5, 0.9, 0.95, 0.99, 0.999, 0.9999};
    for (size_t i = 0; i < sizeof qs / sizeof *qs; i++) {
        double truth = sorted[(size_t)ceil(qs[i] * (double)n) - 1], got = hist_quantile(h, qs[i]);
        if (fabs(got - truth) > HIST_ERROR * truth)
            fail_msg("p%g: got %.17g, truth %.17g", qs[i] * 100, got, truth);
    }
}

/* Each host's histogram goes through its bytes; the fleet's is that of all values at once, bucket by bucket. */
static void a_fleet_merges_without_loss(void **state)
{
    (void)state;
    static double sorted[HOSTS * EACH];
    for (int kind = 0; kind < 5; kind++) {
        struct hist fleet = HIST_INIT, all = HIST_INIT;
        struct rng r;
        rng_seed(&r, (uint64_t)kind + 10);
        for (int host = 0; host < HOSTS; host++) {
            struct hist one = HIST_INIT;
            struct buf bytes = BUF_INIT;
            for (int i = 0; i < EACH; i++) {
                uint64_t v = latency(&r, kind) * (host == 7 ? 10 : 1);
                sorted[host * EACH + i] = (double)v;
                assert_int_equal(hist_record(&one, v, NULL) + hist_record(&all, v, NULL), TARE_OK);
            }
            hist_encode(&one, &bytes);
            assert_int_equal(hist_decode(&fleet, bytes.data, bytes.len, NULL), TARE_OK);
            buf_release(&bytes);
            hist_release(&one);
        }
        stats_sort(sorted, HOSTS * EACH);
        check_quantiles(&fleet, sorted, HOSTS * EACH);
        assert_true(fleet.count == all.count && fleet.sum == all.sum);
        assert_true(fleet.min == all.min && fleet.max == all.max && fleet.count == HOSTS * EACH);
        for (double q = 0; q <= 1; q += 1.0 / 512)
            assert_true(hist_quantile(&fleet, q) == hist_quantile(&all, q));
        hist_release(&fleet);
        hist_release(&all);
    }
}

static void the_bytes_are_as_documented(void **state)
{
    (void)state;
    static const unsigned char expect[] = {6, 1, 12,   0, 5,
                                           0, 2, 0x94, 1, 2}; /* scale, zeros, sum, min, max, pairs */
    struct hist h = HIST_INIT, again = HIST_INIT;
    struct buf bytes = BUF_INIT;
    hist_encode(&h, &bytes);
    assert_int_equal(bytes.len, 0); /* nothing of nothing */
    hist_record_n(&h, 1, 2, NULL);  /* bucket -1 */
    hist_record_n(&h, 5, 2, NULL);  /* bucket 148: 2^(148/64) < 5 <= 2^(149/64); 148 empty ones before it */
    hist_record(&h, 0, NULL);
    hist_encode(&h, &bytes);
    assert_int_equal(bytes.len, sizeof expect);
    assert_memory_equal(bytes.data, expect, sizeof expect);
    assert_int_equal(hist_decode(&again, bytes.data, bytes.len, NULL), TARE_OK);
    assert_true(again.count == 5 && again.zeros == 1 && again.sum == 12 && again.min == 0 && again.max == 5);
    hist_release(&h);
    hist_release(&again);
    buf_release(&bytes);
}

static void bytes_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *why;
        size_t n;
    } rows[] = {
        {"\x06\x00\x0a\x05", "the head is cut short", 4},
        {"\x06\x00\x0a\x05\x85", "the data end inside a number", 5},
        {"\x05\x00\x0a\x05\x05\x95\x01\x02", "scale 5, not 6", 8},
        {"\x06\x00\x0a\x05\x04\x95\x01\x02", "min is above max", 8},
        {"\x06\x00\x0a\x05\x05\x95\x01", "a bucket without its count", 7},
        {"\x06\x00\x0a\x05\x05\x95\x01\x00", "a bucket without its count", 8},
        {"\x06\x00\x0a\x05\x05\xff\x7f\x02", "a bucket beyond 2^64", 8},
        {"\x06\x00\x0a\x05\x05\x96\x01\x02", "a bucket outside of min and max", 8},
        {"\x06\x00\x09\x05\x05\x95\x01\x02", "the sum is below what the counts and min make", 8},
        {"\x06\x00\x0b\x05\x05\x95\x01\x02", "the sum is above what the counts and max make", 8},
        {"\x06\x01\x0a\x05\x05\x95\x01\x02", "min is not in the lowest bucket that counts something", 8},
        {"\x06\x00\x0a\x05\x06\x95\x01\x02", "max is not in the highest bucket that counts something", 8},
        {"\x06\x00\x00\x00\x00", "sum, min or max of nothing", 5},
        {"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00", "counts that are too large", 14},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hist h = HIST_INIT;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(hist_decode(&h, rows[i].bytes, rows[i].n, &err), TARE_FORMAT);
        assert_string_equal(err.text, rows[i].why);
        assert_int_equal(h.count, 0);
        hist_release(&h);
    }
}

static void a_borrowed_array_is_checked(void **state)
{
    (void)state;
    uint64_t counts[] = {2, 0, 1};
    struct hist h = {.counts = counts, .n_counts = 3, .first = 640, .min = 1025, .max = 1050, .sum = 3100};
    assert_null(hist_fault(&h));
    assert_int_equal(h.count, 3);
    h.first = HIST_INDEX_MAX - 1;
    assert_string_equal(hist_fault(&h), "buckets outside of 1 to 2^64");
    h.first = -2;
    assert_string_equal(hist_fault(&h), "buckets outside of 1 to 2^64");
    h.first = INT32_MAX;
    assert_string_equal(hist_fault(&h), "buckets outside of 1 to 2^64");
}

static void coarse_buckets_hold_the_same(void **state)
{
    (void)state;
    struct hist h = HIST_INIT;
    struct rng r;
    rng_seed(&r, 3);
    for (int i = 0; i < 5000; i++) hist_record(&h, latency(&r, 2), NULL);
    hist_record(&h, 1, NULL);
    for (unsigned scale = 0; scale <= HIST_SCALE; scale++) {
        int first;
        size_t n;
        uint64_t total = 0, *counts = hist_coarse(&h, scale, &first, &n);
        assert_non_null(counts);
        assert_int_equal(first, -1); /* 1 closes the bucket below 0 on every scale */
        assert_int_equal(counts[0], 1);
        for (size_t i = 0; i < n; i++) total += counts[i];
        assert_int_equal(total, h.count);
        mem_free(counts);
    }
    hist_release(&h);
}

static void merging_without_memory_changes_nothing(void **state)
{
    (void)state;
    struct hist a = HIST_INIT, b = HIST_INIT;
    tare_error err = TARE_ERROR_INIT;
    hist_record(&a, 100, NULL);
    hist_record(&b, 1000000, NULL);
    mem_fail_after(0);
    assert_int_equal(hist_merge(&a, &b, &err), TARE_NOMEM);
    mem_fail_after(-1);
    assert_true(a.count == 1 && a.max == 100 && a.sum == 100);
    assert_int_equal(hist_merge(&a, &b, &err), TARE_OK);
    assert_true(a.count == 2 && a.max == 1000000 && a.sum == 1000100);
    hist_release(&a);
    hist_release(&b);
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
        cmocka_unit_test(a_fleet_merges_without_loss),
        cmocka_unit_test(the_bytes_are_as_documented),
        cmocka_unit_test(bytes_that_lie_are_refused),
        cmocka_unit_test(a_borrowed_array_is_checked),
        cmocka_unit_test(coarse_buckets_hold_the_same),
        cmocka_unit_test(merging_without_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
