/* SPDX-License-Identifier: MIT
 * environment.h - in what the surroundings of two sets of runs differ: machine, runtime, subject, load. Says what and
 * how bad; refuses nothing itself. */
#ifndef ANALYZE_ENVIRONMENT_H
#define ANALYZE_ENVIRONMENT_H

#include "run/comparison.h"

struct environment_runs {
    const struct run *const *at;
    size_t n;
};

/* A row in c->differences for each property in which the sides, or runs of one side, differ. "critical": their
 * numbers do not compare; "warn": what differs explains a change as well as the code does. */
void environment_compare(struct comparison *c, struct environment_runs base, struct environment_runs new_);

/* The same for parameters of two cases that were taken to be the same case. */
void environment_compare_case(struct comparison *c, const struct run_case *base, const struct run_case *new_);

/* The first critical one; NULL: none. */
const struct comparison_difference *environment_critical(const struct comparison *c);

#endif
