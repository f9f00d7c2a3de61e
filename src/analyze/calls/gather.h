/* SPDX-License-Identifier: MIT
 * gather.h - sums per call path, collected from a trace's trees or, where it has none, from its events.
 * calltree.c turns them into estimates. */
#ifndef ANALYZE_GATHER_H
#define ANALYZE_GATHER_H

#include "core/hist.h"
#include "core/map.h"
#include "core/vec.h"
#include "trace/reader.h"

enum { GATHER_UNITS = 16 }; /* histograms count sixteenths of a nanosecond */
enum { GATHER_BATCHES = 32 };

/* Consecutive calls in at most GATHER_BATCHES batches; when full, neighbours are joined. */
struct batches {
    double ns[GATHER_BATCHES], open_ns;
    uint64_t size, open;
    uint32_t n;
};

struct gathered {
    uint32_t site, parent, kind, threads;
    uint64_t on, off, abandoned; /* calls as usual, weighed calls, those that never ended */
    int64_t value;
    double on_ns, off_ns;
    double inside_ns,
        skipped_ns; /* what the start-up calibration says of `on` calls, of scopes left out in `off` */
    double min_ns, max_ns;
    double se2_n2; /* sum over threads of (calls x standard error of their mean)^2 */
    bool se_known, fast_clock;
    struct hist hist;
    struct batches batches;
    VEC(double) weights; /* in-situ: ns per scope inside, one per pair */
};

struct gather {
    struct trace *t;
    int thread;                 /* -1: all */
    VEC(struct gathered) nodes; /* [0] is the root; parents come before children */
    struct map_u64 index;       /* parent << 32 | site -> node */
    double percentile_error;
};

#define GATHER_INIT {.thread = -1}

tare_status gather_trace(struct gather *g, struct trace *t, int thread, tare_error *err);
void gather_release(struct gather *g);

#endif
