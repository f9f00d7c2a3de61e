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

/* The phases of a run from how it went: "load" (memory grows or storage is read), "steady" (it works), "idle" (it does
 * nothing that can be seen). docs/diagnosis.md has the rules. */
struct phase {
    const char *name;
    size_t from, to; /* steps of the course */
};
struct phases {
    VEC(struct phase) items; /* one after another, without gaps */
};

tare_status phases_find(struct phases *out, const struct course *c, tare_error *err);

/* watch->phases, in seconds from the span's start and not beyond its end. */
tare_status watched_phases(struct run *run, struct run_watch *watch, const struct course *course,
                           struct watched_span span, tare_error *err);

/* One case with metrics, phases, alerts and findings; what only the end of a program tells stays unknown. `run` is
 * fresh from run_init(). */
tare_status watched_from_samples(struct run *run, const struct samples *s, tare_error *err);

#endif
