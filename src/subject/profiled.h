/* SPDX-License-Identifier: MIT
 * profiled.h - what only a run in ONNX Runtime can tell: the graph as it was optimised, and a pass with the runtime's
 * own profiler on. Both in a private temporary folder that is gone afterwards. Runs without the profiler are timed
 * between those with it, in turns, so that a drift of the machine hits both alike and their difference is what the
 * profiler costs. Separate from measuring: nothing here is a case's latency. */
#ifndef SUBJECT_PROFILED_H
#define SUBJECT_PROFILED_H

#include "core/file.h"
#include "core/vec.h"
#include "model/onnx/onnx.h"
#include "model/profile/ort_profile.h"
#include "subject/subject.h"
#include "subject/tensor.h"

struct profiled_window { /* a run, by the wall clock */
    uint64_t start_ns, end_ns;
    bool profiled;
};

struct profiled_pass {
    struct onnx_model source; /* the file as it is */
    bool has_source;
    char source_why[200];       /* has_source false: why not */
    VEC(struct dim_value) dims; /* free dimensions of the inputs ("name", or "input.axis") as they were */
    struct arena texts;         /* their names */
    struct tensor_set inputs;   /* copies of those of few elements: sizes, counts, switches */
    /* Read over its own mapping; the file is deleted already, and large weights were never written: they are external
     * tensors without data. */
    struct onnx_model optimized;
    struct file_view optimized_bytes;
    bool has_optimized;
    char optimized_why[200];             /* has_optimized false: why not */
    struct ort_profile profile;          /* empty unless runs were asked for */
    uint64_t warmup_runs;                /* at the start of the profile, not among the times below */
    VEC(uint64_t) profiled_ns;           /* each run with the profiler on, by our clock */
    VEC(struct profiled_window) windows; /* of all those, as they came */
    uint64_t profile_start_ns;           /* wall clock at which the profile's times begin; 0: not told */
    VEC(uint64_t) plain_ns;              /* each run without it, taken in turns with those */
};
#define PROFILED_PASS_INIT \
    {.source = ONNX_MODEL_INIT, .inputs = TENSOR_SET_INIT, \
     .optimized = ONNX_MODEL_INIT, .optimized_bytes = FILE_VIEW_INIT, \
     .profile = ORT_PROFILE_INIT}

struct profiled_options {
    struct case_params params;
    const char *folder;                       /* where the temporary folder is made; NULL: /tmp */
    uint64_t warmup_runs, runs;               /* 0 runs: only the optimised graph */
    uint64_t budget_ns;                       /* stop early after this long; at least 3 runs */
    const volatile sig_atomic_t *interrupted; /* may be NULL */
};

/* `s` must be an ONNX subject (subject_open_onnx). Two sessions live at once when runs are asked for. */
tare_status profiled_run(struct profiled_pass *out, struct subject *s, const struct profiled_options *o,
                         struct run *run, tare_error *err);
void profiled_release(struct profiled_pass *p); /* a PROFILED_PASS_INIT is fine */

#endif
