/* SPDX-License-Identifier: MIT
 * ort_profile.h - the files that ONNX Runtime's own profiler writes, read tolerantly: one event a line, names that are
 * not escaped (1.31 escapes them), lines cut off by a crash, arguments in any order, subgraphs nested in time. Also
 * takes files that another program wrote anew as proper JSON. Never trusts a line; what it cannot use it counts. Knows
 * the format from 1.8 to 1.31. */
#ifndef MODEL_ORT_PROFILE_H
#define MODEL_ORT_PROFILE_H

#include "core/buf.h"
#include "core/error.h"
#include "core/vec.h"
#include "core/arena.h"

struct ort_shape {
    int type; /* enum onnx_type */
    int64_t *dims;
    size_t rank;
};

struct ort_event {    /* one kernel of one run */
    const char *node; /* name without _kernel_time */
    const char *op, *provider;
    int64_t start_us, duration_us, thread;
    int64_t self_us; /* without events nested in it (bodies of If, Loop, Scan) */
    size_t parent;   /* index of the event around it; SIZE_MAX: none */
    uint64_t node_index, activation_bytes, parameter_bytes, output_bytes;
    struct ort_shape *outputs; /* NULL: not told */
    size_t n_outputs;
    uint32_t run; /* number of the model_run it belongs to; runs_us.n: of none that ended */
};

struct ort_profile {
    struct arena arena;
    VEC(struct ort_event) events;       /* kernels, by start */
    VEC(int64_t) runs_us;               /* durations of model_run, in order */
    int64_t load_us, initialization_us; /* -1: not told */
    uint64_t lines, unreadable;         /* lines that are no event we can use though they look like one */
    bool truncated; /* the file ends in the middle, or at the runtime's limit of a million events */
    bool fences;    /* an older runtime's _fence_ events were there (left out) */
};
#define ORT_PROFILE_INIT {.arena = ARENA_INIT, .events = VEC_INIT, .runs_us = VEC_INIT}

/* `name` is what errors call it. TARE_INVALID: no such file at all (not one event). */
tare_status ort_profile_read(struct ort_profile *out, const char *name, const void *bytes, size_t n,
                             tare_error *err);
tare_status ort_profile_load(struct ort_profile *out, const char *path, tare_error *err);
void ort_profile_release(struct ort_profile *p);

#endif
