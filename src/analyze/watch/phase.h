/* SPDX-License-Identifier: MIT
 * phase.h - the phases of a run from how it went: "load" (memory grows or storage is read), "steady" (it works),
 * "idle" (it does nothing that can be seen). docs/diagnosis.md has the rules. Pure. */
#ifndef ANALYZE_PHASE_H
#define ANALYZE_PHASE_H

#include "analyze/watch/course.h"

struct phase {
    const char *name;
    size_t from, to; /* steps of the course */
};
struct phases {
    VEC(struct phase) items; /* one after another, without gaps */
};

tare_status phases_find(struct phases *out, const struct course *c, tare_error *err);

#endif
