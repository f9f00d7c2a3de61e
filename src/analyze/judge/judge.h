/* SPDX-License-Identifier: MIT
 * judge.h - from a measured run document to findings, a recommendation and target verdicts. Pure
 * functions of the document: they can be run again on a saved one. Nothing here measures, and nothing is
 * claimed that the intervals in the document do not support: what is unknown makes a rule silent, never
 * guess. */
#ifndef ANALYZE_JUDGE_H
#define ANALYZE_JUDGE_H

#include "analyze/judge/measure.h"
#include "core/buf.h"
#include "run/run.h"

/* ---- targets: latency.p95<=100ms  throughput>=1000/s  memory.peak<=4GB  accuracy>=0.69  latency:100ms
 * ---- */

enum target_op { TARGET_LE, TARGET_GE, TARGET_LT, TARGET_GT };

struct target {
    char metric[MEASURE_NAME_SIZE]; /* of measure_table: "latency.p95" */
    enum target_op op;
    double value;  /* ns, units per second, bytes, or plain */
    char unit[24]; /* as written: "ms" */
};

/* The colon form of seed 002 reads as <= for latency and memory, >= for throughput and accuracy. Errors
 * show the place: "latency.p95<=100mz: at 'mz': not a unit of time; use ns, us, ms or s". */
tare_status target_parse(struct target *out, const char *text, tare_error *err);
/* A rate alone, "500/s" or "500texts/s": per second, and the unit as written (at least 24 bytes). */
tare_status target_parse_rate(double *per_second, char unit[24], const char *text, tare_error *err);
const char *target_op_text(enum target_op op); /* "<=" */

/* Does a rate "1000pairs/s" speak of what the case counts? "/s", samples/s, items/s and units/s fit
 * everything. For the command line, before anything is measured. */
tare_status target_check_unit(const struct target *t, const char *case_unit, tare_error *err);

/* `verdict`, `achieved`, `ratio` and `confidence` of the row; others stay as they are. */
tare_status target_judge(const struct target *t, const struct run_case *c, struct run_target *out,
                         tare_error *err);

/* By the numbers as they are, however few: what a search goes by until it is sure. Unknown ones keep nothing. */
bool target_seems_kept(const struct target *t, const struct run_case *c);

/* `latency.p95>5%`: this metric fails a comparison when it is surely worse by more than 5 %. Without a share
 * ("latency.p95") more than the minimum effect. Named ones alone then fail a comparison. */
struct compare_limit {
    char metric[MEASURE_NAME_SIZE];
    double share; /* NAN: the minimum effect */
};
/* `among`: what may be named; NULL: any measure of runs. */
tare_status compare_limit_parse(struct compare_limit *out, const char *text, const struct measure *among,
                                tare_error *err);

/* A rule that a person wrote, while it is read (alert.c reads such, too). Errors name it and show the place. */
struct rule_text {
    const char *text, *at;
    tare_error *err;
    const struct measure *measures; /* that may be named; NULL: all of measure_table */
};
tare_status rule_refuse(const struct rule_text *r, const char *at, const char *why);
void rule_skip_blanks(struct rule_text *r);

/* One run->targets row per target and case, with achieved value, ratio and verdict. When `best_only`, of
 * one case only: the one that meets the most targets (of equals, the one whose worst ratio is best). */
tare_status targets_judge(struct run *run, const struct target *targets, size_t n, bool best_only,
                          tare_error *err);
size_t targets_missed(const struct run *run); /* rows with the verdict fail */

/* ---- findings and recommendation: one row per rule in finding.c ---- */

/* docs/judgement.md lists the findings. */
tare_status findings_add(struct run *run, tare_error *err);

/* id, name, help */
#define OBJECTIVE_MAP(X)                                                                            \
    X(THROUGHPUT, "throughput", "most units per second")                                            \
    X(LATENCY, "latency", "shortest run")                                                           \
    X(MEMORY, "memory", "least memory")
enum {
#define X(id, name, help) OBJECTIVE_##id,
    OBJECTIVE_MAP(X)
#undef X
};
extern const char *const objective_names[]; /* by these numbers; ends with NULL */

struct objective {
    const char *name;
    uint64_t latency_limit_ns; /* of p95; 0: none */
};

struct recommended {
    const struct run_case *c; /* NULL: nothing to choose from */
    struct buf why;           /* one sentence with numbers */
};
#define RECOMMENDED_INIT {NULL, BUF_INIT}

/* The best case for an objective among those that do the same work as `like`, and why. Where the data cannot tell two
 * cases apart, the cheaper one. No case: `why` says so where a limit is the reason. */
tare_status recommend_for(const struct run *run, const struct objective *o, const struct run_case *like,
                          struct recommended *out, tare_error *err);
void recommended_release(struct recommended *r);

/* The same into run->recommendation (left null when there are fewer than two cases to choose from), for the work of the
 * first case; reports say it for each. */
tare_status recommend(struct run *run, const struct objective *o, tare_error *err);

#endif
