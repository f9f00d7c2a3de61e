/* SPDX-License-Identifier: MIT
 * test_stats.c - the statistics kit against reference values.
 *
 * The constants were made with SciPy 1.17.1 and NumPy: ndtri, ndtr, t.ppf, t.cdf, betainc, binom.cdf/sf,
 * trim_mean with mstats.winsorize, ttest_ind(equal_var=False).confidence_interval, array_split + median;
 * ranks, signed-rank counts, Walsh averages and the autocorrelation by their definitions in Python. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"

/* standard_t(3, 25) * 0.02 + 0.01 of default_rng(20240601), to 4 places */
static const double d[25] = {0.022,  -0.0186, 0.0309,  0.0324, -0.0188, 0.0685,  0.0726,  0.0055, 0.0096,
                             0.0037, 0.0194,  -0.0011, 0.0148, 0.0573,  -0.0004, -0.0137, -0.008, 0.0161,
                             0.0269, 0.0208,  0.0195,  0.0379, 0.0907,  0.0411,  -0.0449};

static void near_to(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("got %.17g, want %.17g", got, want);
}

static void interval_near(struct interval got, double value, double lo, double hi)
{
    near_to(got.value, value, 1e-10);
    near_to(got.lo, lo, 1e-10);
    near_to(got.hi, hi, 1e-10);
}

static void normal_distribution(void **state)
{
    (void)state;
    static const double quantiles[][2] = {
        {1e-300, -37.0470962993612},  {1e-12, -7.034483825301131}, {0.001, -3.090232306167813},
        {0.025, -1.9599639845400545}, {0.3, -0.5244005127080409},  {0.9, 1.2815515655446004},
        {0.975, 1.959963984540054},   {0.99, 2.3263478740408408},  {0.99999, 4.264890793923841},
    };
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++)
        near_to(stats_normal_quantile(quantiles[i][0]), quantiles[i][1], 1e-11);
    near_to(stats_normal_cdf(-37), 5.7255712225239266e-300, 1e-11);
    near_to(stats_normal_cdf(-1.5), 0.06680720126885807, 1e-14);
    near_to(stats_normal_cdf(2.5), 0.9937903346742238, 1e-14);
    assert_true(stats_normal_quantile(0.5) == 0);
    assert_true(stats_normal_quantile(0) == -INFINITY && stats_normal_quantile(1) == INFINITY);
    assert_true(isnan(stats_normal_quantile(-0.1)) && isnan(stats_normal_quantile(NAN)));
}

static void t_distribution(void **state)
{
    (void)state;
    static const double quantiles[][3] = {
        {0.975, 1, 12.706204736174694},      {0.975, 9, 2.262157162798205}, {0.99, 2.5, 5.353111173030872},
        {0.001, 3, -10.214531852407385},     {0.6, 30, 0.2556053649519128}, {0.995, 1000, 2.580754698065951},
        {0.99, 12345.6, 2.3266499685191193}, {1e-9, 5, -98.93722464836996}, {0.975, 2e7, 1.959964103153622},
    };
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++)
        near_to(stats_t_quantile(quantiles[i][0], quantiles[i][1]), quantiles[i][2], 1e-9);
    near_to(stats_t_cdf(-2, 5), 0.050969739414929174, 1e-12);
    near_to(stats_t_cdf(0.5, 1), 0.6475836176504333, 1e-12);
    near_to(stats_t_cdf(3, 100), 0.9982960423283352, 1e-12);
    near_to(stats_t_cdf(-40, 2), 0.0003122073360923703, 1e-11);
    near_to(stats_t_cdf(1.96, 1e6), 0.9750019662073651, 1e-9);
    assert_true(stats_t_quantile(0.5, 3) == 0 && isnan(stats_t_quantile(0.9, 0)));
}

static void beta_and_binomial(void **state)
{
    (void)state;
    near_to(stats_binomial_cdf(3, 10, 0.5), 0.171875, 1e-13);
    near_to(stats_binomial_at_least(3, 10, 0.5), 0.9453125, 1e-13);
    near_to(stats_binomial_cdf(0, 59, 0.05), 0.04849452524942322, 1e-12);
    near_to(stats_binomial_cdf(400, 1000, 0.5), 1.3642320780329735e-10, 1e-9);
    near_to(stats_binomial_at_least(9982, 10000, 0.999), 0.992841838657993, 1e-9);
    near_to(stats_binomial_cdf(500100, 1e6, 0.5), 0.5796507066821627, 1e-8);
    assert_true(stats_binomial_cdf(-1, 10, 0.5) == 0 && stats_binomial_cdf(10, 10, 0.5) == 1);
    assert_true(stats_binomial_at_least(0, 10, 0.5) == 1 && stats_binomial_at_least(11, 10, 0.5) == 0);
}

static void quantile_ranks(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, low, high;
        double q, level;
    } rows[] = {
        {100, 40, 61, 0.5, 0.95},     {100, 90, 100, 0.95, 0.95},   {100, 97, 101, 0.99, 0.95},
        {1000, 936, 964, 0.95, 0.95}, {1000, 983, 997, 0.99, 0.95}, {10000, 9983, 9997, 0.999, 0.95},
        {5, 0, 6, 0.5, 0.95},         {6, 1, 6, 0.5, 0.95},         {37, 28, 38, 0.9, 0.99},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t low, high;
        stats_quantile_ranks(rows[i].n, rows[i].q, rows[i].level, &low, &high);
        assert_int_equal(low, rows[i].low);
        assert_int_equal(high, rows[i].high);
    }
}

static void signed_rank_thresholds(void **state)
{
    (void)state;
    static const struct {
        size_t n, k;
        double alpha;
    } rows[] = {
        {1, 0, 0.025},    {5, 0, 0.025},    {6, 1, 0.025},     {10, 9, 0.025},
        {20, 44, 0.01},   {25, 69, 0.005},  {50, 435, 0.025},  {50, 398, 0.01},
        {51, 453, 0.025}, {80, 1134, 0.01}, {200, 8143, 0.01},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(stats_signed_rank_k(rows[i].n, rows[i].alpha), rows[i].k);
}

static void descriptions(void **state)
{
    (void)state;
    double x[25], out;
    memcpy(x, d, sizeof x);
    stats_sort(x, 25);
    near_to(stats_mean(d, 25), 0.019368, 1e-13);
    near_to(stats_stddev(d, 25), 0.03109439552931257, 1e-13);
    near_to(stats_quantile_sorted(x, 25, 0.9), 0.06402, 1e-12);
    near_to(stats_quantile_sorted(x, 25, 0.37), 0.009108, 1e-12);
    assert_true(stats_quantile_sorted(x, 25, 0) == x[0] && stats_quantile_sorted(x, 25, 1) == x[24]);
    assert_int_equal(stats_median(d, 25, &out, NULL), TARE_OK);
    near_to(out, 0.0194, 1e-14);
    assert_int_equal(stats_mad(d, 25, &out, NULL), TARE_OK);
    near_to(out, 0.0185, 1e-13);
    assert_int_equal(stats_median((double[]){4, 1, 3, 2}, 4, &out, NULL), TARE_OK);
    near_to(out, 2.5, 1e-15);
    assert_true(isnan(stats_mean(d, 0)) && isnan(stats_stddev(d, 1)) && isnan(stats_median_sorted(d, 0)));
}

static void large_offset_keeps_digits(void **state)
{
    (void)state;
    double x[1000];
    for (int i = 0; i < 1000; i++) x[i] = 1e15 + i % 2;
    near_to(stats_stddev(x, 1000), 0.500250187640829, 1e-6); /* sqrt(250 / 999) */
}

static void quantile_interval(void **state)
{
    (void)state;
    double x[1000];
    for (int i = 0; i < 1000; i++) x[i] = i + 1;
    struct interval r = stats_quantile_interval_sorted(x, 1000, 1000, 0.95, 0.95);
    assert_true(r.lo == 936 && r.hi == 964);
    r = stats_quantile_interval_sorted(x, 1000, 100, 0.95, 0.95); /* ranks 90 and 100 of 100, ten times */
    assert_true(r.lo == 900 && r.hi == 1000);
    r = stats_quantile_interval_sorted(x, 1000, 100, 0.99, 0.95);
    assert_true(r.lo == 970 && r.hi == INFINITY);
    r = stats_quantile_interval_sorted(x, 1000, 1, 0.5, 0.95);
    assert_true(r.lo == -INFINITY && r.hi == INFINITY && r.value == 500.5);
    r = stats_quantile_interval_sorted(x, 0, 1, 0.5, 0.95);
    assert_true(isnan(r.value));
}

static void hodges_lehmann(void **state)
{
    (void)state;
    struct interval r;
    assert_int_equal(stats_hodges_lehmann(d, 25, 0.98, &r, NULL), TARE_OK);
    interval_near(r, 0.01825, 0.0037, 0.03515);
    assert_int_equal(stats_hodges_lehmann(d, 25, 0.95, &r, NULL), TARE_OK);
    interval_near(r, 0.01825, 0.0062, 0.0309);
    assert_int_equal(stats_hodges_lehmann(d, 3, 0.95, &r, NULL), TARE_OK);
    assert_true(r.lo == -INFINITY && r.hi == INFINITY);
    assert_int_equal(stats_hodges_lehmann((double[]){-0.0, 0, -0.0, 0, 0, 0, 0, 0}, 8, 0.9, &r, NULL),
                     TARE_OK);
    assert_true(r.value == 0 && r.lo == 0 && r.hi == 0 && !signbit(r.value) && !signbit(r.lo));
}

/* Against all pairwise means, sorted: the bisection must find exactly those. */
static void hodges_lehmann_by_definition(void **state)
{
    (void)state;
    enum { N = 300, M = N * (N + 1) / 2 };
    static double x[N], walsh[M];
    struct rng r;
    rng_seed(&r, 11);
    for (int i = 0; i < N; i++) x[i] = floor(rng_unit(&r) * 200) / 7 - 10; /* ties, both signs */
    size_t m = 0;
    for (int i = 0; i < N; i++) {
        for (int j = i; j < N; j++) walsh[m++] = 0.5 * x[i] + 0.5 * x[j];
    }
    stats_sort(walsh, M);
    struct interval got;
    assert_int_equal(stats_hodges_lehmann(x, N, 0.98, &got, NULL), TARE_OK);
    uint64_t k = stats_signed_rank_k(N, 0.01);
    assert_true(got.lo == walsh[k - 1] && got.hi == walsh[M - k]);
    assert_true(got.value == 0.5 * walsh[M / 2 - 1] + 0.5 * walsh[M / 2]);
}

static void make_series(double *x, size_t n, double phi)
{
    uint64_t s = 12345;
    double at = 0;
    for (size_t i = 0; i < n; i++) {
        s = s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at = phi * at + ((double)(s >> 11) * 0x1p-53 - 0.5);
        x[i] = at;
    }
}

static void effective_size(void **state)
{
    (void)state;
    static double x[5000];
    static const struct {
        size_t n;
        double phi, want;
    } rows[] = {{1000, 0.9, 63.8895987733197},
                {1000, 0, 717.3601147776183},
                {777, 0.5, 339.3845918216672},
                {5000, 0.98, 83.28558293245206}};
    double got;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        make_series(x, rows[i].n, rows[i].phi);
        assert_int_equal(stats_n_eff(x, rows[i].n, &got, NULL), TARE_OK);
        near_to(got, rows[i].want, 1e-9);
    }
    for (int i = 0; i < 100; i++) x[i] = 3;
    assert_int_equal(stats_n_eff(x, 100, &got, NULL), TARE_OK);
    assert_true(got == 100);
    for (int i = 0; i < 100; i++) x[i] = i % 2; /* alternating: worth no more than n */
    assert_int_equal(stats_n_eff(x, 100, &got, NULL), TARE_OK);
    assert_true(got == 100);
}

/* The interval of a correlated series must be wider than the one that believes in independence. */
static void median_interval_is_the_wider(void **state)
{
    (void)state;
    static double x[1000], sorted[1000];
    make_series(x, 1000, 0.9);
    memcpy(sorted, x, sizeof x);
    stats_sort(sorted, 1000);
    struct interval r, naive = stats_quantile_interval_sorted(sorted, 1000, 1000, 0.5, 0.95);
    assert_int_equal(stats_median_interval(x, 1000, 0.95, &r, NULL), TARE_OK);
    assert_true(r.lo < naive.lo && r.hi > naive.hi);
    for (int i = 0; i < 40; i++) sorted[i] = 7; /* a clock that steps: no width is a width */
    assert_int_equal(stats_median_interval(sorted, 40, 0.95, &r, NULL), TARE_OK);
    assert_true(r.lo == 7 && r.value == 7 && r.hi == 7);
    assert_int_equal(stats_median_interval(x, 3, 0.95, &r, NULL), TARE_OK);
    assert_true(r.lo == -INFINITY && r.hi == INFINITY);
}

/* Times whose truth is known: 0 is the long-run median of each. Besides what is new in each time there are walks that
 * forget at every scale from 5 to 3,000 times, as machines drift: `drift` is their share of the sd. How many of 200
 * windows of 500 times hold 0. The sd of ten batch medians over sqrt 10, as before, held it in 197 and 109. */
static int windows_that_hold(double drift, double *half)
{
    static double x[500];
    double walk[5] = {0};
    struct rng r;
    int held = 0;
    rng_seed(&r, 5);
    *half = 0;
    for (int window = 0; window < 200; window++) {
        for (int far = 0; far < 5; far++) /* the next window is long after this one */
            walk[far] = (rng_unit(&r) + rng_unit(&r) + rng_unit(&r) + rng_unit(&r) - 2) * sqrt(3);
        for (int i = 0; i < 500; i++) {
            double scale = 5, sum = 0;
            for (int k = 0; k < 5; k++, scale *= 5) {
                double keep = 1 - 1 / scale;
                walk[k] = keep * walk[k] + sqrt(1 - keep * keep) * (rng_unit(&r) - 0.5) * sqrt(12);
                sum += walk[k];
            }
            x[i] = sqrt(1 - drift * drift) * (rng_unit(&r) - 0.5) * sqrt(12) + drift * sum / sqrt(5);
        }
        struct interval got;
        assert_int_equal(stats_median_interval(x, 500, 0.95, &got, NULL), TARE_OK);
        held += got.lo <= 0 && 0 <= got.hi;
        *half += interval_half(got) / 200;
    }
    return held;
}

static void median_interval_holds_the_long_run(void **state)
{
    (void)state;
    double plain, drifting;
    int independent = windows_that_hold(0, &plain), alike = windows_that_hold(0.7, &drifting);
    if (independent < 190 || alike < 150) fail_msg("%d and %d of 200", independent, alike);
    assert_true(plain < 0.3 && drifting > 2 * plain); /* the price is paid only where there is a drift */
}

/* Stalls of 70 ms in times of 1.4 us, as a machine with ten others at work makes them: the median is known to a
 * factor, and is neither 0 nor as long as the stalls. */
static void an_interval_of_times_is_a_factor(void **state)
{
    (void)state;
    static double x[2000], shifted[2000];
    struct rng r;
    struct interval got, then;
    rng_seed(&r, 3);
    for (int i = 0; i < 2000; i++) x[i] = (i % 1300 < 80 ? 7e7 : 1400) * (1 + 0.1 * rng_unit(&r));
    assert_int_equal(stats_median_interval(x, 2000, 0.95, &got, NULL), TARE_OK);
    assert_true(got.lo > 100 && got.lo < 1400 && got.hi > got.value && got.hi < 20000);
    assert_true(fabs(got.hi / got.value / (got.value / got.lo) - 1) < 0.1);
    for (int i = 0; i < 2000; i++) shifted[i] = x[i] - 1e6; /* not all above 0: these are no factors */
    assert_int_equal(stats_median_interval(shifted, 2000, 0.95, &then, NULL), TARE_OK);
    assert_true(then.lo < 0 && then.hi > then.value);
}

static void bad_input_is_refused(void **state)
{
    (void)state;
    double out = 7, bad[3] = {1, NAN, 2};
    struct interval r = {7, 7, 7};
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(stats_median(bad, 3, &out, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "sample 2 of 3"));
    assert_int_equal(stats_mad(bad, 0, &out, &err), TARE_INVALID);
    bad[1] = INFINITY;
    assert_int_equal(stats_hodges_lehmann(bad, 3, 0.9, &r, &err), TARE_INVALID);
    assert_int_equal(stats_hodges_lehmann(d, 25, 1, &r, &err), TARE_INVALID);
    assert_int_equal(stats_median_interval(d, 25, NAN, &r, &err), TARE_INVALID);
    assert_true(out == 7 && r.value == 7 && r.lo == 7 && r.hi == 7);
}

static tare_status everything(tare_error *err)
{
    double out;
    struct interval r;
    tare_status s = stats_mad(d, 25, &out, err);
    if (s == TARE_OK) s = stats_median_interval(d, 25, 0.95, &r, err);
    if (s == TARE_OK) s = stats_hodges_lehmann(d, 25, 0.95, &r, err);
    return s;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    tare_error err = TARE_ERROR_INIT;
    for (long n = 0;; n++) {
        mem_fail_after(n);
        tare_status s = everything(&err);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), start);
        if (s == TARE_OK) {
            assert_true(n >= 15);
            break;
        }
        assert_int_equal(s, TARE_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_distribution),
        cmocka_unit_test(t_distribution),
        cmocka_unit_test(beta_and_binomial),
        cmocka_unit_test(quantile_ranks),
        cmocka_unit_test(signed_rank_thresholds),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(large_offset_keeps_digits),
        cmocka_unit_test(quantile_interval),
        cmocka_unit_test(hodges_lehmann),
        cmocka_unit_test(hodges_lehmann_by_definition),
        cmocka_unit_test(effective_size),
        cmocka_unit_test(median_interval_is_the_wider),
        cmocka_unit_test(median_interval_holds_the_long_run),
        cmocka_unit_test(an_interval_of_times_is_a_factor),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
