/* SPDX-License-Identifier: MIT
 * between_runs.h - what whole runs, made at different times, say about the ratio of two sides. The spread between
 * runs of this machine judges, never the spread within one: two runs of the same program minutes apart differ by
 * far more than the interval of either. Pure functions of arrays; docs/comparing.md has the formulas. */
#ifndef ANALYZE_BETWEEN_RUNS_H
#define ANALYZE_BETWEEN_RUNS_H

#include <stdbool.h>

#include "core/error.h"
#include "core/stats.h"

enum {
    BETWEEN_RUNS_MIN = 3,   /* runs of the base that are evidence by themselves */
    BETWEEN_PAST_MIN = 8,   /* earlier runs of the same kind that are, when sides are single runs */
    BETWEEN_RUNS_MOST = 999 /* asking for more than so many is no help */
};

struct between_rule {
    double min_effect; /* a change within this counts as none: 0.02 is 2 % */
    double detect;     /* "same" means: surely less than this */
    double alpha;      /* chance of a wrong "regressed", and of a wrong "improved" */
    double level;      /* of the interval that is stated beside the verdict */
    double plausible; /* sd of one run that none is beyond, for where no spread is known; 0: no such number */
    double least_sd;  /* of one run, where others like it are known to spread so much; 0: none are */
    double plausible_bound; /* as `plausible`, of between_sides.bound */
};
#define BETWEEN_RULE_INIT {.min_effect = 0.02, .detect = 0.05, .alpha = 0.01, .level = 0.95}

/* FAR: no spread is known, but the ratio is beyond any plausible one. */
enum between_method { BETWEEN_NONE, BETWEEN_RUNS, BETWEEN_PAST, BETWEEN_FAR };

struct between_result {
    enum between_method method; /* which evidence there is; NONE: a ratio and nothing more */
    double log;                 /* mean of new less mean of base: ln of the ratio */
    double lo, hi;              /* at rule.level; infinite without evidence */
    double gate_lo, gate_hi;    /* at 1 - 2 alpha */
    double p_worse;             /* one-sided, of no change beyond min_effect; NAN without evidence */
    double sd;                  /* of one run, between runs */
    double mde;                 /* share: a change this large would have been found in 95 of 100 cases */
    size_t needed;              /* runs a side that would decide; 0: decided, or too many */
    const char *verdict;        /* "regressed", "improved", "same", "inconclusive", "unverified" */
    bool by_bound;              /* FAR, and it is the bound that is */
};

/* base, new_: ln of one value per run, at least one each. past: ln of earlier runs in time order, made on the same
 * machine of the same thing; may be empty. `more`: more is better. */
struct between_sides {
    struct stats_sample base, new_, past;
    bool more;
    /* ln of what the ratio is at least (above 0) or at most (below): the fastest run of one side over the middle of the
     * other. 0: not known. Other work delays runs, but seldom all of them: this spreads less than the middles do. */
    double bound;
};
tare_status between_runs(const struct between_sides *in, const struct between_rule *r,
                         struct between_result *out, tare_error *err);

/* The ratio from which on `plausible` alone is a verdict: exp(ln(1 + min_effect) + z(1 - alpha) plausible sqrt 2). */
double between_far(const struct between_rule *r);
double between_far_bound(const struct between_rule *r); /* the same of plausible_bound */

/* Standard deviation of one run from successive differences, which one step in the history does not move: the greater
 * of 1.4826 median |y[i+1] - y[i]| and the root of the mean square of all of them but the greatest, over sqrt 2. The
 * median alone is blind to a machine that has two speeds: it called 10 of 100 identical runs regressed. */
tare_status between_past_sd(struct stats_sample past, double *out, tare_error *err);

#endif
