/* SPDX-License-Identifier: MIT
 * calltree.h - the call-path tree of a trace with the instrument's own weight taken out.
 * A pure value: made from a trace by calltree_build(), or by hand in a test; reports only read it. */
#ifndef ANALYZE_CALLTREE_H
#define ANALYZE_CALLTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/interval.h"
#include "trace/reader.h"

enum call_node_flags {
    CALL_COUNT_ESTIMATED = 1, /* scaled up for calls left out by weighing, and not exactly so */
    CALL_BELOW_LIMIT = 2,     /* shorter than the weighing limit: net times are not to be trusted */
    CALL_FAST_CLOCK = 4,      /* fast clock and short: work in flight at the end may be missing */
};

struct call_node {
    uint32_t site; /* index into the trace's sites; CALL_NO_SITE for the root */
    uint32_t parent, child,
        next;      /* node indices; 0 means none (0 is the root); children by total, largest first */
    uint32_t kind; /* enum tare_site_kind: counters and marks are nodes too */
    uint32_t flags;
    uint32_t threads; /* threads that ran this path */
    uint64_t count;
    uint64_t abandoned;                                  /* calls that never reached their end */
    int64_t value;                                       /* counters: the sum */
    struct interval total_ns, self_ns, mean_ns;          /* net of the instrument */
    double gross_total_ns, gross_self_ns, gross_mean_ns; /* as read */
    double min_ns, max_ns;                               /* as read */
    double p50_ns, p95_ns, p99_ns;                       /* as read; NAN when too few calls */
};

#define CALL_NO_SITE UINT32_MAX

struct calltree {
    struct call_node *nodes; /* nodes[0] is the root: total over all threads */
    uint32_t n_nodes;
    double percentile_error;   /* relative: 0.0054 from events, 0.031 from in-place histograms */
    struct interval inside_ns; /* subtracted from each reading */
    struct interval weight_ns; /* subtracted from the parent for each scope inside it */
    uint64_t weighed_pairs;    /* on/off pairs behind weight_ns; 0: start-up calibration only */
    double weighing_limit_ns;
};

#define CALLTREE_INIT {0}

/* Build the tree of all threads (thread < 0) or of one. */
tare_status calltree_build(struct calltree *out, struct trace *t, int thread, tare_error *err);
void calltree_release(struct calltree *tree);

#endif
