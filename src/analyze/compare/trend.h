/* SPDX-License-Identifier: MIT
 * trend.h - where the level of a history changed. A pure function of the values in time order: the same
 * history has the same answer. docs/trend.md has the rule and its measured error rates. Knows no clock, no
 * commit and no store.
 *
 * Values are logarithms, so that levels compare as ratios. One machine, one case, one metric: what was
 * measured on different machines must never be put into one call. */
#ifndef ANALYZE_TREND_H
#define ANALYZE_TREND_H

#include <stdbool.h>

#include "core/stats.h"
#include "core/vec.h"

struct trend_options {
    double min_effect;  /* smaller ones are not worth a word: 0.02 */
    double creep;       /* the level now against the best there was: 0.05 */
    bool less_is_worse; /* throughput, accuracy */
};
#define TREND_OPTIONS_INIT {.min_effect = 0.02, .creep = 0.05}

enum { TREND_MIN_SIDE = 3, TREND_RECENT = 12, TREND_MAX = 2000 };

struct trend_level { /* points from .. to - 1 */
    size_t from, to;
    double median; /* of the logarithms */
};

struct trend_change {
    size_t at; /* first point of the new level */
    double p;
    struct interval ratio; /* new level / level before it; ends may be 0 and infinite */
    bool worse, recent;    /* recent: within the last TREND_RECENT points */
};

struct trend {
    VEC(struct trend_level) levels;   /* at least one, in time order */
    VEC(struct trend_change) changes; /* one fewer */
    double noise;    /* spread of a point about its level, as a standard deviation; NAN: unknown */
    double memory;   /* correlation of neighbours, 0 and above */
    double smallest; /* step (a share) found 9 times in 10 once 8 runs are at the new level; NAN: unknown */
    struct {
        bool worse;   /* by at least options.creep */
        double ratio; /* level now / best level */
        size_t best;  /* index of that level */
    } creep;
};

/* Release also after a failure. TARE_INVALID: empty, too long, or not finite. */
tare_status trend_find(const double *y, size_t n, const struct trend_options *o, struct trend *out,
                       tare_error *err);
void trend_release(struct trend *t);

/* By how much two independent samples differ, b - a: the median of all differences between them with the rank-sum
 * interval, which holds whatever the shape of the distributions, as long as it is the same. An end that the samples are
 * too small to bound is infinite. n * m is at most 2^24. */
tare_status shift_between(struct stats_sample a, struct stats_sample b, double level, struct interval *out,
                          tare_error *err);
/* The largest k with P(U <= k - 1) <= alpha for the rank-sum statistic of n and m values; 0: none. */
uint64_t shift_rank_k(size_t n, size_t m, double alpha);

#endif
