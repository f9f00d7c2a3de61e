/* SPDX-License-Identifier: MIT
 * gpu_facts.h - what rules look at: one GPU in steady state, that is without the first steps and the loading of code.
 * gpu_facts.c makes them of operations and calls, gpu_meter.c adds what was sampled, gpu_rules.c judges. */
#ifndef ANALYZE_GPU_FACTS_H
#define ANALYZE_GPU_FACTS_H

#include "analyze/gpu/gpu_work.h"
#include "core/interval.h"
#include "trace/samples.h"

struct gpu_tally {
    double ns;
    uint64_t count;
    double bytes; /* of copies */
};

struct gpu_reading { /* of the energy counter: that was so at some time from `from` to `to` */
    uint64_t from, to;
    double joules;
};

enum { GPU_STATES_MOST = 24 };
struct gpu_group_power { /* a group of kernels, or idle time, or several groups at once */
    const char *group;
    double seconds;        /* between the readings */
    struct interval watts; /* of the whole card meanwhile */
    const char *why;       /* they are not known; NULL: they are */
};

/* Of the card's own sensors, while in steady state. NAN: not known. Shares are of the time. */
struct gpu_metered {
    double sm_active, sm_occupancy, tensor, dram; /* GPM */
    double readings;                              /* that those are means of */
    double power_capped, throttled; /* of samples under load: by the power limit; by heat or hardware */
    double clock;                   /* of the highest, under load */
    double pcie_link;               /* of the fastest, under load */
    double memory_share;            /* most memory in use, of all there is */
    double joules, joules_idle, window_ns, updates; /* between two readings of the counter */
    double per_step, per_step_error;                /* J */
    double idle_watts;
    double others;     /* most other processes on the card */
    const char *label; /* in the samples; NULL: not among them */
    struct gpu_group_power groups[GPU_STATES_MOST];
    size_t n_groups;
};

struct gpu_facts {
    const struct gpu_work *work;
    const struct gpu_seen_card *seen;
    const struct gpu_op *ops; /* all of the card */
    size_t n_ops;
    uint16_t card;
    struct gpu_card steady; /* busy and idle time, exposed copies, launches; of steady time only */
    uint64_t from, to;      /* ns of the trace */
    double wall;            /* ns */
    double steps;           /* whole ones; 0: none were found */
    struct gpu_spread step_ns;
    double
        deep; /* share of the time in which more than two operations stood in the queue; NAN: launches not seen */
    double kernel_p50, launch_calls; /* ns */
    struct gpu_tally kernels, matmul, plain_matmul, glue, layout;
    struct gpu_tally shaped,
        under;       /* kernels of known shape; of them with fewer blocks than multiprocessors */
    double empty_ns; /* of those, times the share of multiprocessors without a block */
    double occupancy_ns,
        tensor_ns; /* sums of time x estimated occupancy; of kernels on tensor cores by name */
    struct gpu_tally host_copies, pageable, on_device; /* on_device: from the card to itself */
    uint64_t to_device, to_host;
    struct gpu_tally syncs, allocations; /* times in calls: those of the thread with most of it */
    double loading_ns, own_ns,
        full_ns;   /* of such a thread, too: code; our recording; a full command buffer */
    bool complete; /* nothing was lost: a gap is a gap */
    bool onnxruntime;
    struct gpu_metered meter;
};

/* Of the operations [0, n) of one card, in order of their start. Too few to say anything: out->wall is 0. */
tare_status gpu_facts_of(struct gpu_work *w, const struct gpu_op *ops, size_t n, struct gpu_facts *out);
double gpu_facts_idle(const struct gpu_facts *f, const char *cause); /* share of the time */

#define GPU_NOTE_IS " is " /* "gpu0 is GPU-7d58ef82-..": a note of the samples */

/* gpu_meter.c: adds what was sampled; `begun_raw_ns`: the clock of the samples when the trace's time is 0. */
tare_status gpu_facts_meter(struct gpu_facts *f, const struct samples *s, uint64_t begun_raw_ns);

/* gpu_energy.c: the power of each group of operations. Readings are in order of time; none begins before the one before
 * it ended. */
tare_status gpu_energy_groups(struct gpu_facts *f, const struct gpu_reading *at, size_t n);

/* gpu_rules.c: findings of the profile, the gravest first. Pure. */
tare_status gpu_rules(struct gpu_profile *p, const struct gpu_facts *facts, size_t n, tare_error *err);

#endif
