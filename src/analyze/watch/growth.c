/* SPDX-License-Identifier: MIT
 * growth.c - see growth.h. */
#include "analyze/watch/growth.h"

#include <math.h>
#include <stdbool.h>

#include "core/stats.h"

enum { PAIRS_MAX = GROWTH_BLOCKS_MAX * (GROWTH_BLOCKS_MAX - 1) / 2 };

#define SURE 0.95
/* What a process takes and keeps for good reasons: a steady floor may rise by so much. */
#define SLACK_BYTES 1048576.0
#define SLACK_SHARE 0.01
/* Less than this is no growth however steadily it comes: allocators take memory in pieces of that size. */
#define RISE_LEAST 262144.0

struct floors {
    double at_s[GROWTH_BLOCKS_MAX], value[GROWTH_BLOCKS_MAX];
    size_t n;
};

static struct floors floors_of(const struct growth_series *x)
{
    struct floors f = {.n = x->n / 4};
    if (f.n < GROWTH_SAMPLES_MIN / 2) f.n = GROWTH_SAMPLES_MIN / 2;
    if (f.n > GROWTH_BLOCKS_MAX) f.n = GROWTH_BLOCKS_MAX;
    for (size_t b = 0; b < f.n; b++) {
        size_t from = b * x->n / f.n, to = (b + 1) * x->n / f.n;
        f.at_s[b] = (x->at_s[from] + x->at_s[to - 1]) / 2;
        f.value[b] = x->value[from];
        for (size_t i = from + 1; i < to; i++) f.value[b] = fmin(f.value[b], x->value[i]);
    }
    return f;
}

/* ---- the test of Mann and Kendall, ties considered ---- */

static double tied_variance(const double *v, size_t n)
{
    double variance = (double)n * (double)(n - 1) * (double)(2 * n + 5);
    for (size_t i = 0; i < n; i++) {
        size_t same = 0, earlier = 0;
        for (size_t k = 0; k < n; k++) same += v[k] == v[i], earlier += k < i && v[k] == v[i];
        if (!earlier) variance -= (double)same * (double)(same - 1) * (double)(2 * same + 5);
    }
    return variance / 18;
}

double growth_trend_z(const double *v, size_t n)
{
    double s = 0, variance = tied_variance(v, n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++) s += (v[k] > v[i]) - (v[k] < v[i]);
    return s == 0 || variance <= 0 ? 0 : (s - copysign(1, s)) / sqrt(variance);
}

/* ---- the slope of Theil and Sen ---- */

/* The median of the slopes between all pairs of blocks: up to three in ten may be anything. Its interval is between the
 * two slopes whose ranks lie as far from the middle as Mann and Kendall's number reaches by chance at this level. */
static void slope_of(const struct floors *f, struct growth *out)
{
    double slopes[PAIRS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = i + 1; k < f->n; k++)
            slopes[n++] = (f->value[k] - f->value[i]) / (f->at_s[k] - f->at_s[i]);
    stats_sort(slopes, n);
    double reach = stats_normal_quantile(1 - (1 - SURE) / 2) * sqrt(tied_variance(f->value, f->n));
    double low = ((double)n - reach) / 2, high = ((double)n + reach) / 2;
    out->per_s = stats_median_sorted(slopes, n);
    out->lo = slopes[low < 0 ? 0 : (size_t)low];
    out->hi = slopes[high >= (double)n ? n - 1 : (size_t)high];
}

static tare_status check(const struct growth_series *x, tare_error *err)
{
    if (x->n < GROWTH_SAMPLES_MIN)
        return error_set(err, TARE_INVALID, "%zu samples, at least %d are needed", x->n, GROWTH_SAMPLES_MIN);
    for (size_t i = 0; i < x->n; i++) {
        if (!isfinite(x->value[i]) || !isfinite(x->at_s[i]))
            return error_set(err, TARE_INVALID, "sample %zu is no number", i);
        if (i && x->at_s[i] <= x->at_s[i - 1])
            return error_set(err, TARE_INVALID, "sample %zu is not later than the one before", i);
    }
    return TARE_OK;
}

/* Surely less than what a process may keep, for as long as the later half took. */
static bool is_steady(const struct floors *all)
{
    struct floors later = {.n = all->n - all->n / 2};
    struct growth of;
    for (size_t i = 0; i < later.n; i++) {
        later.at_s[i] = all->at_s[all->n / 2 + i];
        later.value[i] = all->value[all->n / 2 + i];
    }
    slope_of(&later, &of);
    return of.hi * (later.at_s[later.n - 1] - later.at_s[0]) <
           SLACK_BYTES + SLACK_SHARE * fabs(later.value[0]);
}

tare_status growth_test(const struct growth_series *x, struct growth *out, tare_error *err)
{
    tare_status s = check(x, err);
    if (s != TARE_OK) return s;
    struct floors f = floors_of(x);
    size_t half = f.n / 2;
    double all = stats_normal_cdf(growth_trend_z(f.value, f.n)),
           later = stats_normal_cdf(growth_trend_z(f.value + half, f.n - half));
    *out = (struct growth){.samples = x->n, .blocks = f.n, .confidence = fmin(all, later)};
    slope_of(&f, out);
    out->rise = f.value[f.n - 1] - f.value[0];
    bool rises = fmin(out->rise, f.value[f.n - 1] - f.value[half]) >= RISE_LEAST;
    if (out->confidence >= SURE && rises)
        out->verdict = "growing";
    else
        out->verdict = is_steady(&f) ? "steady" : "inconclusive";
    return TARE_OK;
}
