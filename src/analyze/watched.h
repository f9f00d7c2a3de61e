/* SPDX-License-Identifier: MIT
 * watched.h - the part of a run document that tells of a watched program, from its course, or all of it again from what
 * a trace kept: when tare itself was killed there is no other. Pure. */
#ifndef ANALYZE_WATCHED_H
#define ANALYZE_WATCHED_H

#include "analyze/course.h"
#include "run/run.h"

/* watch->phases. */
tare_status watched_phases(struct run *run, struct run_watch *watch, const struct course *course,
                           tare_error *err);

/* One case with metrics, phases, alerts and findings; what only the end of a program tells stays unknown. `run` is
 * fresh from run_init(). */
tare_status watched_from_samples(struct run *run, const struct samples *s, tare_error *err);

#endif
