/* SPDX-License-Identifier: MIT
 * compare_memory.h - records of memory of two sides -> a comparison document: a case a process; bytes at the peak, at
 * the end, allocated and freed at once, then each site: what it held at the peak, what it allocated, whether it grows.
 * Whole runs are judged by what they differ by where the base has three or more; single ones by what no plausible
 * noise explains, that of sampling included. Pure: opens nothing. */
#ifndef ANALYZE_COMPARE_MEMORY_H
#define ANALYZE_COMPARE_MEMORY_H

#include "analyze/compare/between_runs.h"
#include "analyze/compare/paired.h"
#include "analyze/judge/judge.h"
#include "analyze/memory/memory_group.h"
#include "core/buf.h"
#include "run/comparison.h"

struct compare_memory_run {
    const char *path;
    int64_t begun_ms; /* by the wall clock, since 1970; 0: not told */
    struct memory_profile profile;
};

struct compare_memory {
    struct compare_memory_side {
        struct compare_memory_run *runs; /* in order of time */
        size_t n;                        /* at least one */
    } side[PAIR_SIDES];
    enum memory_by by;
    /* What a site is called: the same name is the same site, whichever side or run it is of. */
    void (*name)(struct buf *b, const struct memory_group *g, enum memory_by by);
    int64_t apart_ms; /* runs of a side closer than this count as one; 0: they count */
    struct between_rule rule;
    const struct compare_limit *limits; /* of memory_measures; those named alone may fail then */
    size_t n_limits;
};

extern const struct measure memory_measures[]; /* what --fail-on may name; ends with name NULL */

/* Fills a document that comparison_init() made; it owns all that it has. */
tare_status compare_memory(struct comparison *c, const struct compare_memory *in, tare_error *err);

#endif
