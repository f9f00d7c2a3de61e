/* SPDX-License-Identifier: MIT
 * compare_pairs.h - pairs of measurements -> a case of a comparison document: latency and CPU time judged by their
 * pairs, throughput and memory beside them, interference, and what could not be seen. Pure: measures nothing. */
#ifndef ANALYZE_COMPARE_PAIRS_H
#define ANALYZE_COMPARE_PAIRS_H

#include "analyze/compare/paired.h"
#include "analyze/judge/measure.h"
#include "run/comparison.h"

/* A ratio from its logarithm and the ends of that; an end that no number holds is unknown. */
struct run_estimate compare_ratio(double log, double lo, double hi);
tare_status compare_no_memory(tare_error *err);
/* A metric of a case with the name, unit and direction of its measure. NULL: no memory. */
struct comparison_metric *compare_add_metric(struct comparison *c, struct comparison_case *to,
                                             const struct measure *of, const char *role);

/* What pairs say, into their metric; `method` is how they were come by. */
void compare_fill_pairs(struct comparison *c, struct comparison_metric *m, const struct paired_result *p,
                        const struct paired_rule *r, const char *method);
/* A regression is taken back where the p value adjusted for all that are judged together (Holm) is not small enough. */
void compare_adjust(struct comparison_metric *m, double p, double alpha, size_t family);

struct compare_pairs {
    const char *name; /* of the case */
    const struct pair_set *set;
    const char *stopped; /* "precise", "budget", "pairs", "interrupted" */
    double spent_s;
    double units;        /* per measurement unit, for throughput; 0: no throughput */
    const char *unit;    /* "runs" */
    bool few_launches;   /* loading left no time for enough of them */
    const char *failure; /* text of a failed pair; "" */
    bool keep_samples;
};

/* Add the case with all metrics. Verdicts are those of each metric alone until compare_finish(). */
tare_status compare_pairs_add(struct comparison *c, const struct compare_pairs *in,
                              const struct paired_rule *r, tare_error *err);

/* Once all cases are in: control false alarms over all metrics that gate (Holm), then sum up. */
tare_status compare_finish(struct comparison *c, double alpha, tare_error *err);

/* Are these pairs enough? Narrow intervals for what gates; when the machine is busy and wall time would need more
 * than the `affordable` pairs that fit into the budget, CPU time alone. Never looks at the sign. */
struct compare_stop {
    bool enough;
    double launch_share; /* sd of launches / sd of pairs, of what decides; NAN: unknown */
    struct interval log; /* of it, so far: to show, never to stop by */
};
tare_status compare_pairs_enough(const struct pair_set *set, const struct paired_rule *r, uint64_t affordable,
                                 struct compare_stop *out, tare_error *err);

#endif
