/* SPDX-License-Identifier: MIT
 * pairs.h - what an interleaved comparison records: pairs of measurements, one of each side, taken right after
 * each other in random order, and the launches (epochs) they belong to. Data only: src/bench fills it,
 * src/analyze judges it. Keeps failed pairs as counts: none disappears. */
#ifndef RUN_PAIRS_H
#define RUN_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/value.h"

enum { PAIR_A, PAIR_B, PAIR_SIDES }; /* base and new */

struct pair_side {
    uint64_t wall_ns, cpu_ns; /* of one unit: what was measured over `repeats` is divided already */
    uint64_t involuntary;     /* switches against its will during the measurement */
    uint64_t voluntary;       /* switches because it waited for something */
    struct known_u64
        others;        /* ns of the wall time that others took: no processor was free, or tare was at work */
    uint64_t rss_peak; /* bytes, where the measurement was a launch of its own; 0: not told */
    uint32_t env_pad;  /* likewise: bytes by which the environment was longer */
};

struct pair {
    struct pair_side side[PAIR_SIDES];
    uint32_t epoch; /* launch it belongs to, rising from 0 */
    bool b_first;   /* what the coin said */
};

struct pair_launch { /* of one side in one epoch */
    uint64_t load_ns, warmup_runs;
    uint64_t rss_peak;          /* bytes; 0: not told */
    uint32_t env_pad, heap_pad; /* bytes by which this launch was shifted */
};

struct pair_epoch {
    struct pair_launch side[PAIR_SIDES];
};

struct pair_set {
    struct pair *at;
    size_t n, cap;
    struct pair_epoch *epochs;
    size_t n_epochs, cap_epochs;
    bool elsewhere;   /* the work is that of processes nobody looks at: CPU time is not told */
    bool own_launch;  /* every measurement is a launch of its own (commands): epochs say nothing more */
    uint64_t repeats; /* runs in one measurement; at least 1 */
    /* what else went on while it was measured */
    struct known_f64 pressure; /* share of time that something waited for a CPU */
    struct known_f64 steal;    /* share of CPU time that the hypervisor took */
    uint64_t failed;           /* pairs that were lost */
    uint64_t retaken;          /* that were taken again: the load of others shifted between their sides */
    uint64_t failed_side[PAIR_SIDES];
};

#endif
