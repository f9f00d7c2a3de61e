/* SPDX-License-Identifier: MIT
 * ab_block.h - several lanes measured in turns: one block of a search for the best configuration. Each lane is loaded
 * once, then all run a little while each, again and again, in an order that a seeded coin decides, so that what the
 * machine does meanwhile hits all alike. A lane that fails keeps its reason, and the others go on. */
#ifndef BENCH_AB_BLOCK_H
#define BENCH_AB_BLOCK_H

#include "bench/ab.h"

struct ab_sampled;

/* One configuration and all that was measured of it, in this block and in those before. */
struct ab_member {
    struct ab_lane *lane; /* of this block; NULL: not part of it */
    struct ab_sampled *sampled;
    tare_status failed; /* below 0: it cannot be measured, and .. */
    char failure[AB_TEXT_MAX];
    double median_ns;  /* of a run, in the latest block; NAN: none was measured there */
    uint64_t rss_peak; /* bytes, the most of all launches; 0: not told */
};
void ab_member_release(struct ab_member *m);
/* Times of single runs, the greatest last; owned. NULL: none, or no memory. */
double *ab_member_sorted(const struct ab_member *m, size_t *n, tare_error *err);

uint64_t ab_member_load_ns(const struct ab_member *m); /* of a launch; 0: none was made */

struct ab_block {
    struct ab_member **at;
    size_t n;
    uint64_t slice_ns;   /* for each, in all its turns */
    int turns;           /* of each; 0: three. A turn has one run at least */
    uint64_t least_runs; /* of each, though that takes longer: at most forty slices */
    uint64_t seed;
    bool alone; /* only one may be loaded at a time: its turns come in a row */
    const volatile sig_atomic_t *interrupted;
};
/* TARE_NOMEM alone ends a block; an interrupt is no error, fewer are measured then. */
tare_status ab_block_run(const struct ab_block *b, tare_error *err);

/* What was measured into a case: times, throughput for `units` a run, memory, processors; or the failure. */
tare_status ab_member_record(const struct ab_member *m, struct run *run, struct run_case *c, double units,
                             tare_error *err);
/* What an earlier document says of the same case counts as measured. */
tare_status ab_member_recall(struct ab_member *m, const struct run_case *c, tare_error *err);

#endif
