/* SPDX-License-Identifier: MIT
 * onnx_model.h - inside of the ONNX subject: what is known of a model file before any session, and a session ready
 * to run one case. For files of this folder that work on both: onnx_subject.c, onnx_case.c, onnx_run.c,
 * diverge_side.c. */
#ifndef SUBJECT_ONNX_MODEL_H
#define SUBJECT_ONNX_MODEL_H

#include "subject/free_dims.h"
#include "subject/input.h"
#include "subject/ort_find.h"
#include "subject/ort_session.h"
#include "subject/subject.h"

struct input_limit {
    char *input;
    int64_t limit;
};

struct onnx_subject {
    struct subject base;
    struct ort *ort;
    const char *found_by; /* which place of the search gave the runtime */
    char *path;
    VEC(struct input_limit) limits; /* bounds of integer inputs, from the graph */
    int weight_type;                /* enum onnx_type; ONNX_UNDEFINED: unknown */
    char reader_says[200];          /* why our own reader refuses the file; "": it does not */
    bool has_files;
    char *inputs_path;
    struct tensor_set files;
    VEC(char *) config;
    int optimization;
    bool no_arena, fix_dims;
    char sha256[65]; /* "" until asked for */
    uint64_t file_bytes;
};

struct onnx_worker {
    struct tensor_set inputs;
    struct ort_value **in, **out; /* out[k] NULL: the runtime allocates it in the next run */
    bool *loose;                  /* per output: allocated anew in every run */
    bool any_loose;
};

typedef struct ort_status *ort_run_function(struct ort_session *, const struct ort_run_options *,
                                            const char *const *, const struct ort_value *const *, size_t,
                                            const char *const *, size_t, struct ort_value **);

struct onnx_instance {
    struct instance base;
    const struct ort *ort;
    ort_run_function *call_run; /* the runtime's, or an empty one while overhead is measured */
    struct ort_session *session;
    struct ort_ios inputs, outputs;
    const char **in_names, **out_names;
    struct onnx_worker *workers;
    unsigned n_workers;
    struct ort_memory_info *cpu;
    int64_t batch; /* 0: unknown */
    bool placed;   /* made for another provider than cpu */
    bool no_arena;
};

/* onnx_case.c */
tare_status onnx_prepare(struct subject *s, const struct case_params *p, const struct case_record *to,
                         struct instance **out, tare_error *err);
void onnx_finish(struct instance *i);
int64_t onnx_thread_budget(const struct run *run); /* affinity, cgroup quota, physical cores: the least */
/* Session options that do not depend on the case. */
struct ort_session_spec onnx_session_spec(const struct onnx_subject *s);

/* onnx_run.c */
tare_status onnx_run(struct instance *i, unsigned worker, struct subject_cost *cost, tare_error *err);
tare_status onnx_report(struct instance *i, struct run *run, struct run_case *c, tare_error *err);
tare_status onnx_copy_outputs(struct instance *i, struct tensor_set *out, tare_error *err);
uint64_t onnx_overhead_ns(struct instance *i);

#endif
