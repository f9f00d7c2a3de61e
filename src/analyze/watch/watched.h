/* SPDX-License-Identifier: MIT
 * watched.h - the part of a run document that tells of a watched program, from its course, or all of it again from what
 * a trace kept: when tare itself was killed there is no other. Pure. */
#ifndef ANALYZE_WATCHED_H
#define ANALYZE_WATCHED_H

#include "analyze/watch/course.h"
#include "run/run.h"

/* From when to when the program ran: samples begin before it and end after it. */
struct watched_span {
    uint64_t start_ns, end_ns;
};

/* watch->phases, in seconds from the span's start and not beyond its end. */
tare_status watched_phases(struct run *run, struct run_watch *watch, const struct course *course,
                           struct watched_span span, tare_error *err);

/* One case with metrics, phases, alerts and findings; what only the end of a program tells stays unknown. `run` is
 * fresh from run_init(). */
tare_status watched_from_samples(struct run *run, const struct samples *s, tare_error *err);

#endif
