/* SPDX-License-Identifier: MIT
 * profiled.h - what only a run in ONNX Runtime can tell: the graph as it was optimised, and a pass with the runtime's
 * own profiler on. Both in a private temporary folder that is gone afterwards. Separate from measuring: nothing here
 * is a latency. */
#ifndef SUBJECT_PROFILED_H
#define SUBJECT_PROFILED_H

#include "model/onnx.h"
#include "model/ort_profile.h"
#include "subject/subject.h"

struct profiled_pass {
    struct onnx_model optimized; /* read over its own mapping; the file is deleted already */
    bool has_optimized;
    char optimized_why[200];    /* has_optimized false: why not */
    struct ort_profile profile; /* empty unless runs were asked for */
    uint64_t warmup_runs, runs;
};
#define PROFILED_PASS_INIT {.optimized = ONNX_MODEL_INIT, .profile = ORT_PROFILE_INIT}

struct profiled_options {
    struct case_params params;
    uint64_t warmup_runs, runs;               /* 0 runs: only the optimised graph */
    uint64_t budget_ns;                       /* stop early after this long; at least 3 runs */
    const volatile sig_atomic_t *interrupted; /* may be NULL */
};

/* `s` must be an ONNX subject (subject_open_onnx). */
tare_status profiled_run(struct profiled_pass *out, struct subject *s, const struct profiled_options *o,
                         struct run *run, tare_error *err);
void profiled_release(struct profiled_pass *p);

#endif
