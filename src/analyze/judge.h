/* SPDX-License-Identifier: MIT
 * judge.h - from a measured run document to findings, a recommendation and target verdicts. Pure functions of the
 * document: they can be run again on a saved one. */
#ifndef ANALYZE_JUDGE_H
#define ANALYZE_JUDGE_H

#include "run/run.h"

/* ---- targets: latency.p95<=100ms  throughput>=1000/s  memory.peak<=4GB  accuracy>=0.69  latency:100ms ---- */

enum target_op { TARGET_LE, TARGET_GE, TARGET_LT, TARGET_GT };

struct target {
    char metric[48]; /* a name of the table in target.c: "latency.p95" */
    enum target_op op;
    double value;  /* ns, units per second, bytes, or plain */
    char unit[24]; /* as written: "ms" */
};

/* The colon form of seed 002 reads as <= for latency and memory, >= for throughput and accuracy. */
tare_status target_parse(struct target *out, const char *text, tare_error *err);

/* One run->targets row per target and case, with achieved value, ratio and verdict (pass, fail, inconclusive with
 * the confidence); of the best case when `best_only`. */
tare_status targets_judge(struct run *run, const struct target *targets, size_t n, bool best_only,
                          tare_error *err);

/* A metric of a case by its target name; false when unknown. For targets, recommendations, plans and reports. */
bool metric_of(const struct run_case *c, const char *name, struct run_estimate *out);

/* ---- findings and recommendation: one row per rule in finding.c ---- */

tare_status findings_add(struct run *run, tare_error *err);

struct objective {
    const char *name;          /* "throughput", "latency", "memory" */
    uint64_t latency_limit_ns; /* 0: none */
};
tare_status recommend(struct run *run, const struct objective *o, tare_error *err);

#endif
