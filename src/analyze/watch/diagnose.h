/* SPDX-License-Identifier: MIT
 * diagnose.h - what held a watched program up, from how the run went: findings with the interval and the numbers they
 * rest on, and what to do. Rules are rows; what is unknown makes a rule silent. docs/diagnosis.md lists them. Pure. */
#ifndef ANALYZE_DIAGNOSE_H
#define ANALYZE_DIAGNOSE_H

#include "analyze/watch/course.h"
#include "run/run.h"

/* A finding that is conditions which hold at the same time; docs/diagnosis.md has the same rows (a test holds them). */
enum { DIAGNOSIS_CONDITIONS = 4 };
struct diagnosis {
    const char *id, *severity;
    double share; /* of the run for which all must hold */
    struct course_condition all[DIAGNOSIS_CONDITIONS];
    struct course_condition once; /* must hold at some time for a tenth of the run: the program uses a GPU */
    const char *title, *action;
};
extern const struct diagnosis diagnosis_table[]; /* ends with id NULL */

enum { DIAGNOSE_STEPS_MIN = 5 }; /* fewer say nothing */

/* Appends to run->findings, of case `c`. */
tare_status diagnose(struct run *run, const struct run_case *c, const struct course *course, tare_error *err);

#endif
