/* SPDX-License-Identifier: MIT
 * growth.c - see growth.h. What was taken and given back within a part does not count: a part is its least value. The
 * rises from part to part are judged, not the values: memory is given back late or never, so that values depend on all
 * before them, and a test of values takes any drift for a trend. */
#include "analyze/watch/growth.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/stats.h"

enum { RISES = GROWTH_PARTS - 1 };

#define LEVEL 0.95
/* Less than this is no growth however steadily it comes: allocators take memory in pieces of that size. */
#define RISE_LEAST 262144.0
#define RISE_SHARE 0.001 /* of what is held */
/* What the middle of the rises would make: so much of it must be there in all, in the later half, and in the last rise.
 * A saw gives back what it took, a cache that fills takes ever less, data that is built up is there at last. */
#define TYPICAL_SHARE 0.5
#define ALL_RISE 0.99    /* confidence: 1 - 2^-7 when all seven rise, 1 - 2^-6 when one does not */
#define GIVEN_SHARE 0.1 /* of what was taken since the first third */

struct parts {
    double at[GROWTH_PARTS], least[GROWTH_PARTS];
};

static struct parts parts_of(const struct growth_series *x)
{
    struct parts p;
    for (size_t b = 0; b < GROWTH_PARTS; b++) {
        size_t from = b * x->n / GROWTH_PARTS, to = (b + 1) * x->n / GROWTH_PARTS;
        p.at[b] = (x->at[from] + x->at[to - 1]) / 2;
        p.least[b] = x->value[from];
        for (size_t i = from + 1; i < to; i++) p.least[b] = fmin(p.least[b], x->value[i]);
    }
    return p;
}

static tare_status check(const struct growth_series *x, tare_error *err)
{
    if (x->n < GROWTH_SAMPLES_MIN)
        return error_set(err, TARE_INVALID, "%zu samples, at least %d are needed", x->n, GROWTH_SAMPLES_MIN);
    for (size_t i = 0; i < x->n; i++) {
        if (!isfinite(x->value[i]) || !isfinite(x->at[i]))
            return error_set(err, TARE_INVALID, "sample %zu is no number", i);
        if (i && x->at[i] <= x->at[i - 1])
            return error_set(err, TARE_INVALID, "sample %zu is not later than the one before", i);
    }
    return TARE_OK;
}

/* Without the first third, in which programs load and warm up, and without what is given back at the end: up to a tenth
 * of the samples after the greatest of all, if the last is clearly below it. Whoever ends gives back everything. */
static struct growth_series looked_at(const struct growth_series *x)
{
    size_t top = 0, from = x->n / 3;
    for (size_t i = 1; i < x->n; i++)
        if (x->value[i] >= x->value[top]) top = i;
    bool given_back = x->value[top] - x->value[x->n - 1] > GIVEN_SHARE * (x->value[top] - x->value[from]);
    size_t end = given_back && top + 1 + x->n / 10 >= x->n ? top + 1 : x->n;
    return (struct growth_series){x->at + from, x->value + from, end - from};
}

/* 1 less the chance that of RISES values without a trend as few pairwise means would be 0 or less. */
static double confidence_of(const double *rises)
{
    unsigned low = 0, fewer = 0;
    for (size_t i = 0; i < RISES; i++)
        for (size_t k = i; k < RISES; k++) low += rises[i] + rises[k] <= 0;
    for (unsigned signs = 0; signs < 1u << RISES; signs++) {
        unsigned ranks = 0;
        for (unsigned r = 0; r < RISES; r++) ranks += signs >> r & 1 ? r + 1 : 0;
        fewer += ranks <= low;
    }
    return 1 - (double)fewer / (1u << RISES);
}

static const char *verdict_of(const struct growth *g, const struct parts *p)
{
    const size_t last = GROWTH_PARTS - 1, half = GROWTH_PARTS / 2;
    double least = fmax(RISE_LEAST, RISE_SHARE * fabs(p->least[0])), span = p->at[last] - p->at[0];
    double typical = TYPICAL_SHARE * g->rate, late = p->least[last] - p->least[half], jump = 0;
    for (size_t i = 0; i < last; i++) jump = fmax(jump, p->least[i + 1] - p->least[i]);
    bool all = g->rise - jump >= least && g->rise >= typical * span; /* jump: something was loaded */
    bool to_the_end = p->least[last] - p->least[last - 1] >= typical * (p->at[last] - p->at[last - 1]);
    if (g->lo > 0 && all && late >= typical * (p->at[last] - p->at[half]) && to_the_end) return "growing";
    return g->lo <= 0 && g->hi * span < least ? "steady" : "inconclusive";
}

/* Compared are the least values of equal parts: what a program holds for a moment, or frees late, lifts the values in
 * between but not these. The rate is the robust centre of the rises from part to part. */
static tare_status judge(const struct growth_series *seen, struct growth *out, tare_error *err)
{
    double rises[RISES];
    struct interval rate;
    struct parts p = parts_of(seen);
    for (size_t i = 0; i < RISES; i++) rises[i] = (p.least[i + 1] - p.least[i]) / (p.at[i + 1] - p.at[i]);
    tare_status s = stats_hodges_lehmann(rises, RISES, LEVEL, &rate, err);
    if (s != TARE_OK) return s;
    *out = (struct growth){.from = p.at[0], .to = p.at[GROWTH_PARTS - 1]};
    out->confidence = confidence_of(rises);
    out->rate = rate.value;
    out->lo = rate.lo;
    out->hi = rate.hi;
    out->rise = p.least[GROWTH_PARTS - 1] - p.least[0];
    out->verdict = verdict_of(out, &p);
    return TARE_OK;
}

/* What begins to grow after the middle is flat in two parts of eight, and no test of seven rises calls that growth: the
 * later half is then looked at alone, where it has as many samples as a series must have. A second look is a second
 * chance to be wrong: there every part must be above the one before. */
tare_status growth_test(const struct growth_series *x, struct growth *out, tare_error *err)
{
    struct growth late = {.verdict = ""};
    tare_status s = check(x, err);
    if (s != TARE_OK) return s;
    struct growth_series seen = looked_at(x);
    size_t half = seen.n / 2;
    struct growth_series rest = {seen.at + half, seen.value + half, seen.n - half};
    if ((s = judge(&seen, out, err)) != TARE_OK) return s;
    if (strcmp(out->verdict, "growing") != 0 && rest.n >= GROWTH_SAMPLES_MIN) s = judge(&rest, &late, err);
    if (strcmp(late.verdict, "growing") == 0 && late.confidence > ALL_RISE) *out = late;
    out->samples = x->n;
    return s;
}
