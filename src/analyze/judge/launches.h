/* SPDX-License-Identifier: MIT
 * launches.h - several whole benches of the same thing, each in a process of its own: made one document, and read
 * back one by one. Numbers of such a case are medians over its launches and their intervals are between launches:
 * what a single launch cannot know of itself. Pure; measures nothing. */
#ifndef ANALYZE_LAUNCHES_H
#define ANALYZE_LAUNCHES_H

#include "run/run.h"

#define LAUNCHES_APART_MS 30000 /* launches closer than this are not independent */

/* Take the cases of `more` over into `into`, the first launch, case by case of the same name. Findings,
 * recommendation and targets are left for judging anew. env_pad: of each launch, the first one's first; NULL: none. */
struct launches_more {
    const struct run *const *at;
    size_t n;
    const uint64_t *env_pad; /* n + 1 of them */
};
tare_status launches_pool(struct run *into, const struct launches_more *more, tare_error *err);

/* Relative spread of the launches' medians: between them, and what the intervals within them make expect.
 * NAN: unknown. */
struct launches_spread {
    double between, within;
    int64_t apart_ms; /* the least time from the start of one to the start of the next; -1: fewer than two */
};
struct launches_spread launches_spread(const struct run_case *c);

#endif
