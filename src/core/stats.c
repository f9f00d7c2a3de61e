/* SPDX-License-Identifier: MIT
 * stats.c - see stats.h. Distributions first, then estimates. Needs libm alone; never keeps state (so
 * lgamma_r, not lgamma). */
#include "core/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

/* ---- distributions ---- */

double stats_normal_cdf(double z)
{
    return 0.5 * erfc(-z * M_SQRT1_2);
}

/* Newton on ln(cdf), which is concave: started left of the root it climbs to it without overshooting. The
 * start is left because cdf(-t) <= exp(-t^2 / 2) / 2. */
static double normal_lower_quantile(double p)
{
    double z = -sqrt(-2 * log(2 * p)), target = log(p);
    for (int i = 0; i < 60; i++) {
        double cdf = stats_normal_cdf(z), pdf = exp(-0.5 * z * z) * (M_SQRT1_2 * M_2_SQRTPI / 2);
        if (cdf <= 0 || pdf <= 0) break;
        double step = (target - log(cdf)) * cdf / pdf;
        z += step;
        if (fabs(step) <= 1e-15 * (1 + fabs(z))) break;
    }
    return z;
}

double stats_normal_quantile(double p)
{
    if (isnan(p) || p < 0 || p > 1) return NAN;
    if (p == 0) return -INFINITY;
    if (p == 1) return INFINITY;
    if (p == 0.5) return 0;
    return p < 0.5 ? normal_lower_quantile(p) : -normal_lower_quantile(1 - p);
}

static double ln_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

static double away_from_zero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* The continued fraction of the incomplete beta, evaluated forward (Lentz); for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double x, double a, double b)
{
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), f = d;
    for (int m = 1; m < 100000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        f *= c * d;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        f *= c * d;
        if (fabs(c * d - 1) < 1e-16) break;
    }
    return f;
}

/* I_x(a, b), given both x and y = 1 - x so that neither loses digits. */
static double beta_cdf_xy(double x, double y, double a, double b)
{
    if (x <= 0) return 0;
    if (y <= 0) return 1;
    double front = exp(a * log(x) + b * log(y) + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
    return 1 - front * beta_fraction(y, b, a) / b;
}

/* P(T < -t) for t >= 0 */
static double t_tail(double t, double df)
{
    double square = t * t;
    if (!(square < INFINITY)) return 0;
    return 0.5 * beta_cdf_xy(df / (df + square), square / (df + square), df / 2, 0.5);
}

double stats_t_cdf(double t, double df)
{
    if (isnan(t) || !(df > 0)) return NAN;
    return t < 0 ? t_tail(-t, df) : 1 - t_tail(t, df);
}

static double t_density(double t, double df)
{
    double scale = ln_gamma((df + 1) / 2) - ln_gamma(df / 2) - 0.5 * log(df * M_PI);
    return exp(scale - (df + 1) / 2 * log1p(t * t / df));
}

/* Newton kept inside a bracket that halves whenever Newton would leave it. */
static double t_upper_quantile(double tail, double df)
{
    double low = 0, high = 1;
    while (t_tail(high, df) > tail && high < 1e300) {
        low = high;
        high *= 2;
    }
    double t = 0.5 * (low + high);
    for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
        double excess = t_tail(t, df) - tail;
        if (excess == 0) return t;
        if (excess > 0)
            low = t;
        else
            high = t;
        double next = t + excess / t_density(t, df);
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (fabs(next - t) <= 1e-15 * t) return next;
        t = next;
    }
    return t;
}

double stats_t_quantile(double p, double df)
{
    if (isnan(p) || p < 0 || p > 1 || !(df > 0)) return NAN;
    if (p == 0) return -INFINITY;
    if (p == 1) return INFINITY;
    if (p == 0.5) return 0;
    if (df > 1e7) { /* the first term of the expansion about the normal is already exact to 1e-13 */
        double z = stats_normal_quantile(p);
        return z + (z * z * z + z) / (4 * df);
    }
    return p < 0.5 ? -t_upper_quantile(p, df) : t_upper_quantile(1 - p, df);
}

double stats_binomial_cdf(double k, double n, double p)
{
    k = floor(k);
    if (isnan(k) || !(n >= 0) || !(p >= 0 && p <= 1)) return NAN;
    if (k < 0) return 0;
    if (k >= n) return 1;
    return beta_cdf_xy(1 - p, p, n - k, k + 1);
}

double stats_binomial_at_least(double k, double n, double p)
{
    k = ceil(k);
    if (isnan(k) || !(n >= 0) || !(p >= 0 && p <= 1)) return NAN;
    if (k <= 0) return 1;
    if (k > n) return 0;
    return beta_cdf_xy(p, 1 - p, k, n - k + 1);
}

/* How many of n samples lie below the quantile is binomial, whatever their distribution is: the ranks
 * leave at most (1 - level) / 2 on each side. Both probabilities are monotonous in the rank, hence the two
 * bisections; `good` always holds and `bad` never does. */
void stats_quantile_ranks(uint64_t n, double q, double level, uint64_t *low, uint64_t *high)
{
    double side = (1 - level) / 2;
    uint64_t good = 0, bad = n + 1; /* low: P(X <= low - 1) <= side holds at 0, fails at n + 1 */
    while (bad - good > 1) {
        uint64_t mid = good + (bad - good) / 2;
        if (stats_binomial_cdf((double)mid - 1, (double)n, q) <= side)
            good = mid;
        else
            bad = mid;
    }
    *low = good;
    good = n + 1; /* high: P(X >= high) <= side holds at n + 1, fails at 0 */
    bad = 0;
    while (good - bad > 1) {
        uint64_t mid = bad + (good - bad) / 2;
        if (stats_binomial_at_least((double)mid, (double)n, q) <= side)
            good = mid;
        else
            bad = mid;
    }
    *high = good;
}

enum { EXACT_SIGNED_RANK = 50 };

/* T+ is the sum of the ranks of the positive differences; with no effect each of the 2^n choices of signs
 * is equally likely. Up to 50 they are counted (all sums fit 64 bits), above that T+ is normal: mean
 * n(n+1)/4, variance n(n+1)(2n+1)/24. */
uint64_t stats_signed_rank_k(size_t n, double alpha)
{
    double sums = (double)n * ((double)n + 1);
    if (n > EXACT_SIGNED_RANK) {
        double k = floor(sums / 4 + stats_normal_quantile(alpha) * sqrt(sums * (2 * (double)n + 1) / 24));
        return k < 0 ? 0 : (uint64_t)k;
    }
    uint64_t ways[EXACT_SIGNED_RANK * (EXACT_SIGNED_RANK + 1) / 2 + 1] = {1}; /* subsets of 1 .. n by sum */
    size_t top = 0;
    for (size_t i = 1; i <= n; i++) {
        top += i;
        for (size_t s = top; s >= i; s--) ways[s] += ways[s - i];
    }
    double all = ldexp(1, (int)n), below = 0;
    uint64_t k = 0;
    while (k <= top && (below += (double)ways[k]) <= alpha * all) k++;
    return k;
}

/* ---- describing ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *x, size_t n)
{
    if (n > 1) qsort(x, n, sizeof *x, ascending);
}

double *stats_doubles(const uint64_t *v, size_t n, tare_error *err)
{
    double *x = mem_new(n, sizeof *x);
    if (!x) error_nomem(err, "%zu numbers", n);
    for (size_t i = 0; x && i < n; i++) x[i] = (double)v[i];
    return x;
}

double stats_mean(const double *x, size_t n)
{
    double mean = 0;
    for (size_t i = 0; i < n; i++) mean += (x[i] - mean) / (double)(i + 1);
    return n ? mean : NAN;
}

double stats_stddev(const double *x, size_t n)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double off = x[i] - mean;
        mean += off / (double)(i + 1);
        squares += off * (x[i] - mean);
    }
    return n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
}

double stats_quantile_sorted(const double *x, size_t n, double q)
{
    if (n == 0 || isnan(q)) return NAN;
    double at = (double)(n - 1) * fmin(fmax(q, 0), 1), part = at - floor(at);
    size_t i = (size_t)at;
    if (part == 0 || i + 1 >= n) return x[i];
    return x[i] * (1 - part) + x[i + 1] * part;
}

double stats_median_sorted(const double *x, size_t n)
{
    return stats_quantile_sorted(x, n, 0.5);
}

static tare_status check_sample(const double *x, size_t n, tare_error *err)
{
    if (n == 0) return error_set(err, TARE_INVALID, "no samples");
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return error_set(err, TARE_INVALID, "sample %zu of %zu is not a finite number", i + 1, n);
    }
    return TARE_OK;
}

static tare_status check_level(double level, tare_error *err)
{
    if (level > 0 && level < 1) return TARE_OK;
    return error_set(err, TARE_INVALID, "confidence %g is not between 0 and 1", level);
}

static tare_status sorted_copy(const double *x, size_t n, double **out, tare_error *err)
{
    tare_status s = check_sample(x, n, err);
    if (s < 0) return s;
    double *copy = mem_new(n, sizeof *copy);
    if (!copy) return error_nomem(err, "%zu samples", n);
    memcpy(copy, x, n * sizeof *copy);
    stats_sort(copy, n);
    *out = copy;
    return TARE_OK;
}

tare_status stats_median(const double *x, size_t n, double *out, tare_error *err)
{
    double *copy;
    tare_status s = sorted_copy(x, n, &copy, err);
    if (s < 0) return s;
    *out = stats_median_sorted(copy, n);
    mem_free(copy);
    return TARE_OK;
}

tare_status stats_mad(const double *x, size_t n, double *out, tare_error *err)
{
    double *copy;
    tare_status s = sorted_copy(x, n, &copy, err);
    if (s < 0) return s;
    double middle = stats_median_sorted(copy, n);
    for (size_t i = 0; i < n; i++) copy[i] = fabs(copy[i] - middle);
    stats_sort(copy, n);
    *out = stats_median_sorted(copy, n);
    mem_free(copy);
    return TARE_OK;
}

/* ---- intervals ---- */

struct interval stats_quantile_interval_sorted(const double *x, size_t n, double n_eff, double q,
                                               double level)
{
    struct interval out = {stats_quantile_sorted(x, n, q), -INFINITY, INFINITY};
    if (n == 0 || !(n_eff >= 1)) return out;
    uint64_t whole = n_eff > (double)n ? n : (uint64_t)n_eff, low, high;
    stats_quantile_ranks(whole, q, level, &low, &high);
    double stretch = (double)n / (double)whole;
    double first = floor((double)low * stretch), last = ceil((double)high * stretch);
    if (low >= 1) out.lo = x[(size_t)first - 1];
    if (high <= whole) out.hi = x[(last > (double)n ? n : (size_t)last) - 1];
    return out;
}

enum { MOST_WORDS = 1 << 28 }; /* the work of one autocorrelation, in words of 64 samples */

/* Bits packed 64 to a word, one word of zeros at the end so that a shifted read stays inside. */
struct bits {
    uint64_t *words;
    size_t n, ones;
};

static size_t overlap(const struct bits *b, size_t lag) /* how many i have both bit i and bit i + lag */
{
    size_t skip = lag / 64, shift = lag % 64, words = (b->n + 63) / 64, sum = 0;
    for (size_t i = 0; i + skip < words; i++) {
        uint64_t later = b->words[i + skip] >> shift;
        if (shift) later |= b->words[i + skip + 1] << (64 - shift);
        sum += (size_t)__builtin_popcountll(b->words[i] & later);
    }
    return sum;
}

static bool bit_at(const struct bits *b, size_t i)
{
    return b->words[i / 64] >> i % 64 & 1;
}

/* 1 + 2 * (sum of autocorrelations): pairs of lags are added while their sum is positive. */
static double correlation_time(const struct bits *b)
{
    double n = (double)b->n, p = (double)b->ones / n, variance = n * p * (1 - p), sum = 0, first = 0;
    size_t head = b->ones, tail = b->ones; /* ones among the first and the last n - lag */
    if (variance <= 0) return 1;
    size_t words = b->n / 64 + 1, lags = b->n / 4;
    if (lags > MOST_WORDS / words) lags = MOST_WORDS / words;
    for (size_t lag = 1; lag < lags; lag++) {
        head -= bit_at(b, b->n - lag);
        tail -= bit_at(b, lag - 1);
        double left = n - (double)lag;
        double rho = ((double)overlap(b, lag) - p * (double)(head + tail) + left * p * p) / variance;
        if (lag % 2) {
            first = rho;
            continue;
        }
        if (first + rho <= 0) break;
        sum += first + rho;
    }
    return 1 + 2 * sum;
}

struct interval stats_share_interval(double share, double n, double level)
{
    double z = stats_normal_quantile((1 + level) / 2), zz = z * z / n;
    double mid = (share + zz / 2) / (1 + zz),
           half = z / (1 + zz) * sqrt(share * (1 - share) / n + zz / (4 * n));
    return (struct interval){share, fmin(fmax(mid - half, 0), share), fmax(fmin(mid + half, 1), share)};
}

tare_status stats_n_eff(const double *x, size_t n, double *out, tare_error *err)
{
    double middle;
    tare_status s = stats_median(x, n, &middle, err);
    if (s < 0) return s;
    struct bits b = {mem_new(n / 64 + 2, sizeof(uint64_t)), n, 0};
    if (!b.words) return error_nomem(err, "%zu samples", n);
    for (size_t i = 0; i < n; i++) {
        if (x[i] > middle) continue;
        b.words[i / 64] |= UINT64_C(1) << i % 64;
        b.ones++;
    }
    double worth = (double)n / correlation_time(&b);
    *out = fmin(fmax(worth, 1), (double)n);
    mem_free(b.words);
    return TARE_OK;
}

enum { WANDER_BATCHES = 32, WANDER_LEAST_BATCHES = 10, WANDER_SIZE = 10, WANDER_FROM = 20 };
#define WANDER_PRIOR 3.0 /* weight of "independent" against the slope that is seen: with few batches that is chance */
#define WANDER_FREEDOM 5
#define WANDER_LEAST 1e-6 /* of the greatest variance: times in steps of the clock have scales that do not move */

/* Half the mean square of the steps between means of k neighbouring batches (Allan's variance); *n: how many steps. */
static double wander_at(const double *b, size_t batches, size_t k, size_t *n)
{
    double before = stats_mean(b, k), sum = 0;
    *n = batches / k - 1;
    for (size_t i = 1; i <= *n; i++) {
        double at = stats_mean(b + i * k, k);
        sum += (at - before) * (at - before);
        before = at;
    }
    return sum / (double)*n / 2;
}

/* Half the interval of the mean of all batches. Of independent times the variance of a mean falls with its length; on a
 * machine that drifts at every scale it does not fall at all, or rises, and the mean of a window says less about the
 * long run than its own scatter claims. So the fall is measured: a line through ln variance over ln length, each length
 * weighed by its steps, is followed to the whole window. Where nothing falls, a long run has moved on by several such
 * steps: three times the variance. */
static double wander_half(const double *b, size_t batches, double level)
{
    double x[8], y[8], w[8], most = 0, sw = 0, sx = 0, sy = 0, sxx = WANDER_PRIOR, sxy = -WANDER_PRIOR;
    size_t m = 0, steps;
    for (size_t k = 1; batches / k >= 4; k *= 2, m++) {
        x[m] = log((double)k);
        y[m] = wander_at(b, batches, k, &steps);
        w[m] = (double)steps;
        most = fmax(most, y[m]);
    }
    if (most == 0) return 0;
    for (size_t i = 0; i < m; i++) {
        y[i] = log(fmax(y[i], WANDER_LEAST * most));
        sw += w[i];
        sx += w[i] * x[i];
        sy += w[i] * y[i];
    }
    for (size_t i = 0; i < m; i++) {
        sxx += w[i] * (x[i] - sx / sw) * (x[i] - sx / sw);
        sxy += w[i] * (x[i] - sx / sw) * (y[i] - sy / sw);
    }
    double slope = fmin(fmax(sxy / sxx, -1), 0.5);
    double variance = exp(sy / sw + slope * (log((double)batches) - sx / sw)) * (1 + 2 * fmin(slope + 1, 1));
    return stats_t_quantile((1 + level) / 2, WANDER_FREEDOM) * sqrt(variance);
}

/* What a machine does to a time is a factor: where all batches are above 0 it is their logarithms that wander, and the
 * interval is `out`'s value divided and multiplied: that of a time never reaches 0, however wide it is. */
static void widen(struct interval *out, double *medians, size_t batches, double level)
{
    bool factors = true;
    for (size_t i = 0; i < batches; i++) factors = factors && medians[i] > 0;
    for (size_t i = 0; factors && i < batches; i++) medians[i] = log(medians[i]);
    double half = wander_half(medians, batches, level);
    out->lo = fmin(out->lo, factors ? out->value * exp(-half) : out->value - half);
    out->hi = fmax(out->hi, factors ? out->value * exp(half) : out->value + half);
}

static tare_status batch_wander(struct stats_sample x, double level, struct interval *out, tare_error *err)
{
    double medians[WANDER_BATCHES];
    size_t batches = x.n / WANDER_SIZE,
           at = 0; /* the median of a few is no median where many are interrupted */
    if (batches < WANDER_LEAST_BATCHES) batches = WANDER_LEAST_BATCHES;
    if (batches > WANDER_BATCHES) batches = WANDER_BATCHES;
    size_t size = x.n / batches, longer = x.n % batches; /* the first ones take one more */
    tare_status s = TARE_OK;
    for (size_t i = 0; i < batches && s == TARE_OK; i++) {
        size_t count = size + (i < longer);
        s = stats_median(x.x + at, count, &medians[i], err);
        at += count;
    }
    if (s == TARE_OK) widen(out, medians, batches, level);
    return s;
}

tare_status stats_median_interval(const double *x, size_t n, double level, struct interval *out,
                                  tare_error *err)
{
    double n_eff, *sorted;
    tare_status s = check_level(level, err);
    if (s < 0 || (s = stats_n_eff(x, n, &n_eff, err)) < 0) return s;
    if ((s = sorted_copy(x, n, &sorted, err)) < 0) return s;
    struct interval found = stats_quantile_interval_sorted(sorted, n, n_eff, 0.5, level);
    mem_free(sorted);
    if (n >= WANDER_FROM && (s = batch_wander((struct stats_sample){x, n}, level, &found, err)) < 0) return s;
    *out = found;
    return TARE_OK;
}

/* ---- Hodges-Lehmann: the k-th least of all (d_i + d_j) / 2, i <= j, by bisection over the doubles ---- */

static uint64_t pairs_at_most(const double *d, size_t n, double limit)
{
    uint64_t count = 0;
    size_t j = n; /* pairs (i, i .. j-1) are within the limit; j falls as i grows */
    for (size_t i = 0; i < n; i++) {
        while (j > i && 0.5 * d[i] + 0.5 * d[j - 1] > limit) j--;
        if (j <= i) break;
        count += j - i;
    }
    return count;
}

/* Doubles in the order of their values, as integers: neighbours differ by one. */
static double double_at(uint64_t position)
{
    uint64_t bits = position >> 63 ? position ^ UINT64_C(1) << 63 : ~position;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t position_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double kth_pair_mean(const double *d, size_t n, uint64_t k)
{
    uint64_t low = position_of(d[0] == 0 ? -0.0 : d[0]), high = position_of(d[n - 1] + 0.0);
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (pairs_at_most(d, n, double_at(mid)) >= k)
            high = mid;
        else
            low = mid + 1;
    }
    return double_at(low) + 0.0; /* + 0.0: never -0 */
}

tare_status stats_hodges_lehmann(const double *d, size_t n, double level, struct interval *out,
                                 tare_error *err)
{
    double *sorted;
    tare_status s = check_level(level, err);
    if (s < 0 || (s = sorted_copy(d, n, &sorted, err)) < 0) return s;
    uint64_t pairs = (uint64_t)n * (n + 1) / 2, k = stats_signed_rank_k(n, (1 - level) / 2);
    struct interval found = {kth_pair_mean(sorted, n, (pairs + 1) / 2), -INFINITY, INFINITY};
    if (pairs % 2 == 0) found.value = 0.5 * found.value + 0.5 * kth_pair_mean(sorted, n, pairs / 2 + 1);
    if (k >= 1) {
        found.lo = kth_pair_mean(sorted, n, k);
        found.hi = kth_pair_mean(sorted, n, pairs + 1 - k);
    }
    *out = found;
    mem_free(sorted);
    return TARE_OK;
}
