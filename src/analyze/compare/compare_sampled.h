/* SPDX-License-Identifier: MIT
 * compare_sampled.h - rows of a comparison whose values are estimates from samples (bytes of sites, shares of
 * functions): those of each run of both sides -> a verdict. Of one run a side the noise is what runs may plausibly
 * differ by, and what samples do; of several it is what they do, and no less than samples must. */
#ifndef ANALYZE_COMPARE_SAMPLED_H
#define ANALYZE_COMPARE_SAMPLED_H

#include "analyze/compare/between_runs.h"
#include "analyze/compare/compare_saved.h"
#include "analyze/compare/paired.h"
#include "analyze/judge/judge.h"
#include "core/vec.h"
#include "run/comparison.h"

struct sampled_value { /* of one run */
    double sum, variance;
    struct interval within; /* what the samples of this run alone say */
};

struct sampled_rules {
    struct between_rule rule;
    const struct compare_limit *limits; /* those named alone may fail then */
    size_t n_limits;
    int64_t apart_ms;               /* runs of a side closer than this count as one; 0: they count */
    const struct measure *measures; /* ends with name NULL */
    bool waits;                     /* values vary with what else the machine does */
};

struct sampled_comparing {
    struct comparison *c;
    struct comparison_case *to;
    const struct sampled_rules *rules;
    struct sampled_side {
        struct compare_moment *at; /* when each run was made, in order of time; y is filled for each row */
        size_t n;
    } side[PAIR_SIDES];
    VEC(struct comparison_metric *) judged; /* of all cases, with the two p values of each */
    VEC(double) more;
    VEC(double) less;
    tare_error *err;
};

struct sampled_row {
    const char *name, *measure, *unit;
    const struct sampled_value *of[PAIR_SIDES]; /* of each run */
    bool gate;
};
/* What only one side has is listed as such; what none has is no row. */
tare_status sampled_row_add(struct sampled_comparing *k, const struct sampled_row *r);

/* "gate" or "advisory"; `rule` becomes that of the limit the user named, where there is one. */
const char *sampled_role(const struct sampled_comparing *k, const char *measure, bool gate,
                         struct between_rule *rule);

/* False alarms are held over all rows together, for more and for less (Holm). */
void sampled_rows_hold(struct sampled_comparing *k);
void sampled_rows_release(struct sampled_comparing *k);

#endif
