/* SPDX-License-Identifier: MIT
 * gpu_series.h - a trace as numbers per step, to be compared with those of another: how long each step took, how busy
 * the GPU was in it, why it was not, and what each kernel took. Without steps, single runs of each kernel. */
#ifndef ANALYZE_GPU_SERIES_H
#define ANALYZE_GPU_SERIES_H

#include "analyze/gpu/gpu_sum.h"
#include "core/arena.h"

struct gpu_series_kernel {
    const char *name, *full;  /* short; demangled */
    uint64_t blocks, threads; /* of the launch that took the most time; 0: unknown */
    uint64_t runs, ns;        /* in the steps; in all where there are none */
    const double *step_ns;    /* time in each step; NULL: there are no steps */
    const double *run_ns;     /* single runs in order of time, evenly taken */
    size_t n_runs;
};

struct gpu_series_card {
    uint32_t number;
    uint64_t rank;        /* of its process in the job, + 1; 0: not told */
    const char *name;     /* model; NULL: not told */
    const char *found_by; /* as gpu_steps has it; NULL: no steps */
    const char *step_name;
    size_t n_steps;
    const double *step_ns, *busy_ns, *copy_ns; /* of each step; copies and fills: the sum of their times */
    const double *idle_ns[GPU_CAUSES];
    bool busy_unknown; /* records are missing: busy and idle times, and all sums, are not those of the card */
    uint64_t wall_ns, all_busy_ns, all_copy_ns, all_kernel_ns; /* of the whole record */
    struct gpu_series_kernel *kernels;                         /* the one with the most time first */
    size_t n_kernels;
    uint64_t left_out; /* kernels beyond the most that have a row: those with the least time */
};

struct gpu_series {
    struct arena arena;
    const char *path;
    int64_t begun_ms; /* by the wall clock, since 1970; 0: not told */
    struct gpu_series_card *cards;
    size_t n_cards;
};

/* TARE_FORMAT when the trace has nothing of a GPU. Nothing to release after a failure. */
tare_status gpu_series_read(struct gpu_series *out, struct trace *t, tare_error *err);
void gpu_series_release(struct gpu_series *s);

#endif
