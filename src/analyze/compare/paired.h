/* SPDX-License-Identifier: MIT
 * paired.h - what pairs of measurements say about the ratio of two sides: Hodges-Lehmann centre of ln(new / base),
 * its interval, and a verdict with the smallest effect that could have been seen. Pure functions; nothing here
 * measures, and nothing here looks at the sign when it says whether to go on measuring.
 *
 * Ranks, because run times have long tails; pairs, because machines drift; launches as clusters, because one
 * launch of a program lays out its memory in one way and all its measurements share that. The interval is the
 * signed-rank one, stretched by how much more the rank sums of launches vary than independent pairs would make
 * them (quantile of t with launches - 1 degrees of freedom). Where launches differ by much more than pairs do, it
 * is a t interval over the launches' medians. */
#ifndef ANALYZE_PAIRED_H
#define ANALYZE_PAIRED_H

#include "core/error.h"
#include "core/stats.h"
#include "run/pairs.h"

struct paired_rule {
    double min_effect;   /* a change within this counts as none: 0.01 is 1 % */
    double detect;       /* one of this size should be found; "same" means: surely less than this */
    double alpha;        /* chance of a wrong "regressed", and of a wrong "improved" */
    double level;        /* of the interval that is stated beside the verdict */
    size_t least;        /* pairs before the first look */
    size_t least_epochs; /* launches before the first look, where launches hold several pairs */
};
#define PAIRED_RULE_INIT                                                                           \
    {                                                                                              \
        .min_effect = 0.01, .detect = 0.05, .alpha = 0.01, .level = 0.95, .least = 20,             \
        .least_epochs = 8                                                                          \
    }

/* The half-width of the interval at which measuring stops: narrow enough that a change of `detect` is told from
 * min_effect in 95 of 100 cases. In ln. */
double paired_width(const struct paired_rule *r);

/* The change that is called one in 95 of 100 cases when ln of the ratio has this standard error; and the error with
 * which `detect` is. */
double paired_mde(double error, const struct paired_rule *r);
double paired_error_wanted(const struct paired_rule *r);

enum paired_verdict { PAIRED_INCONCLUSIVE, PAIRED_SAME, PAIRED_REGRESSED, PAIRED_IMPROVED };
const char *paired_verdict_name(enum paired_verdict v);

/* Differences of logarithms in time order. epoch NULL: every pair is a launch of its own. */
struct paired_series {
    const double *d;
    const uint32_t *epoch; /* rising */
    size_t n;
};

struct paired_result {
    size_t n, epochs;
    struct interval log;       /* ln ratio at rule.level */
    double gate_lo, gate_hi;   /* at 1 - 2 alpha, never narrower than independent pairs allow; judges */
    double p_slower, p_faster; /* one-sided, of no change beyond min_effect */
    double sd_pair;            /* of one pair within its launch, robust */
    double sd_launch;          /* of launches beyond that; NAN: one launch, or each pair is one */
    double error;              /* standard error of log.value */
    double mde;                /* share: a change this large would have been found in 95 of 100 cases */
    uint64_t needed;           /* pairs in all with which the interval is narrow enough; 0: it is */
    enum paired_verdict verdict;
};

/* Needs 2 pairs at least for more than a value; with fewer, ends are infinite and the verdict inconclusive. */
tare_status paired_judge(const struct paired_series *s, const struct paired_rule *r,
                         struct paired_result *out, tare_error *err);

/* The verdict that the ends of a gate give, ln of (worse / better) between lo and hi; p values adjusted for several
 * metrics may take one back. */
enum paired_verdict paired_decide(double lo, double hi, double min_effect, double detect);

/* Is the gate narrow enough? Looks at the width alone. */
bool paired_enough(const struct paired_result *p, const struct paired_rule *r);

/* Look again at so many pairs: 20, 28, 40, 56, 80, .. */
size_t paired_next_look(size_t n, size_t least);

/* Holm's step-down over m one-sided p values: adjusted ones, in place, so that any of them at most alpha keeps the
 * chance of at least one false alarm at alpha. NANs are left alone and not counted. */
void paired_holm(double *p, size_t m);

/* ---- from pairs ---- */

enum paired_metric { PAIRED_WALL, PAIRED_CPU, PAIRED_METRICS };

uint64_t paired_value(const struct pair_side *s, enum paired_metric metric);
/* Of ln(b / a) of every pair where neither is 0. */
tare_status paired_metric_judge(const struct pair_set *set, enum paired_metric metric,
                                const struct paired_rule *r, struct paired_result *out, tare_error *err);

/* Was the machine busy with something else? Then CPU time is the better witness. */
struct paired_contention {
    bool contended;
    double cpu_share;   /* CPU time / wall time of all measurements */
    double interrupted; /* share of measurements during which the CPU was taken away */
    bool cpu_bound;     /* CPU time is about all that both sides need: a witness where wall time is none */
    struct known_f64 pressure, steal;
};
struct paired_contention paired_contention(const struct pair_set *set);

#endif
