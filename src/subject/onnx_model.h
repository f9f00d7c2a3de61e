/* SPDX-License-Identifier: MIT
 * onnx_model.h - inside of the ONNX subject: what is known of a model file before any session, and a session ready
 * to run one case. For files of this folder that work on both: onnx_subject.c, onnx_case.c,
 * diverge_side.c. */
#ifndef SUBJECT_ONNX_MODEL_H
#define SUBJECT_ONNX_MODEL_H

#include "model/onnx/dimname.h"
#include "subject/ort_find.h"
#include "subject/ort_session.h"
#include "subject/subject.h"

struct onnx_subject {
    struct subject base;
    struct ort *ort;
    const char *found_by; /* which place of the search gave the runtime */
    const char *path;
    struct arena texts;           /* all that it copied */
    VEC(struct dim_value) limits; /* bounds of integer inputs, from the graph */
    int weight_type;              /* enum onnx_type; ONNX_UNDEFINED: unknown */
    char reader_says[200];        /* why our own reader refuses the file; "": it does not */
    const char *inputs_path;      /* NULL: inputs are made up */
    struct tensor_set files;
    VEC(const char *) config;
    int optimization;
    bool no_arena, no_pattern, parallel, fix_dims;
    struct ort_guard guard;
    struct guarded loading;
    char sha256[65]; /* "" until asked for */
    uint64_t file_bytes;
};

struct onnx_worker {
    struct tensor_set inputs;
    struct ort_value **in, **out; /* out[k] NULL: the runtime allocates it in the next run */
    bool *loose;                  /* per output: allocated anew in every run */
    bool any_loose;
    struct guarded calls;
    struct ort_io_binding *bound; /* inputs and outputs on the device; NULL: they are the host's */
};

typedef struct ort_status *ort_run_function(struct ort_session *, const struct ort_run_options *,
                                            const char *const *, const struct ort_value *const *, size_t,
                                            const char *const *, size_t, struct ort_value **);

typedef struct ort_status *ort_run_bound_function(struct ort_session *, const struct ort_run_options *,
                                                  const struct ort_io_binding *);
typedef struct ort_status *ort_wait_function(struct ort_io_binding *);

struct onnx_instance {
    struct instance base;
    const struct ort *ort;
    ort_run_function *call_run;         /* the runtime's, or an empty one while overhead is measured */
    ort_run_bound_function *call_bound; /* likewise */
    ort_wait_function *call_wait;
    struct ort_session *session;
    struct ort_ios inputs, outputs;
    const char **in_names, **out_names;
    struct onnx_worker *workers;
    unsigned n_workers;
    struct ort_memory_info *cpu, *device; /* device NULL: inputs and outputs are the host's */
    int64_t batch;                        /* 0: unknown */
    const char *memory;                   /* of the provider's device; NULL: the host's */
    bool placed;                          /* made for another provider than cpu */
    bool no_arena;
    bool overdue; /* a run had to be ended: the next would have to be, too */
};

/* ---- input.c: the dimensions that a model leaves open, made numbers: by the name the user gave, by the usual
 * names of batch and sequence length, by the files the inputs come from, else by a default that is told. Pure ---- */

struct chosen_dim {
    const char *name; /* the model's, or "INPUT.AXIS" for one without */
    int64_t value;
    enum dim_class class;
    bool asked; /* by the user, not by a file or default */
};

struct free_dims {
    VEC(struct chosen_dim) chosen; /* in the order the model has them */
    VEC(int64_t) shapes;           /* all inputs' dimensions, one after the other */
    int64_t batch, seq;            /* 0: the model has no such dimension, free or plain to see */
    struct arena texts;            /* the names */
};
#define FREE_DIMS_INIT {.chosen = VEC_INIT}

enum dim_class dim_class_of(const struct ort_io *io, size_t axis);

/* `files` is NULL, or per input NULL or the tensor that was read for it. Errors name the dimension, and list those that
 * there are. */
tare_status free_dims_resolve(struct free_dims *out, const struct ort_ios *inputs,
                              const struct case_params *p, const struct tensor *const *files,
                              tare_error *err);
void free_dims_release(struct free_dims *d);

/* Of input i: its resolved dimensions. */
const int64_t *free_dims_of(const struct free_dims *d, const struct ort_ios *inputs, size_t i);

/* ---- input.c: tensors to feed a model with: made up so that they are valid for it, or taken from files and fitted to
 * the case. The same seed gives the same bytes. Never guesses over a mismatch: that is an error which names both sides.
 *
 * Made up, by type and name (the first row that fits):
 *   text                                refused
 *   *mask*                              ones
 *   *token_type*, *segment*             zeros
 *   *position*                          0, 1, 2, ... along the last axis, below the bound
 *   *len* of integers                   the sequence length
 *   integers with a bound in the graph  even over 0 .. bound - 1
 *   8-bit integers                      all values (images)
 *   other integers                      0 or 1: an index into anything that has two rows
 *   booleans                            even; false where there is only one (a switch)
 *   floats                              normal, mean 0, deviation 1; 8 bits and less: small finite values
 *
 * From files: names must match (arrays without a name go by their order; one array for one input needs none), types and
 * ranks be equal, every axis but the first be what model and case say. The first axis is the batch: rows are cut, or
 * taken again from the start, so that one file serves a sweep; worker w starts w batches further on. ---- */

struct input_spec {
    const struct ort_io *io;
    const int64_t *dims; /* resolved, io->rank of them */
    int64_t bound;       /* integers are below it; 0: none known */
    int64_t seq;         /* for lengths; at least 1 */
    uint64_t seed;       /* differs per worker and input */
};

tare_status input_make(struct tensor *out, const struct input_spec *spec, tare_error *err);

/* Which of `files` belongs to each input, in out[0 .. inputs->n - 1]. Every input must have one, every array a use. */
tare_status input_match(const struct ort_ios *inputs, const struct tensor_set *files,
                        const struct tensor **out, tare_error *err);
tare_status input_fit(struct tensor *out, const struct input_spec *spec, const struct tensor *file,
                      unsigned worker, tare_error *err);

/* TARE_UNSUPPORTED, with the name, for what cannot be fed: text, sequences, maps, optional values, sparse tensors. */
tare_status input_check_kind(const struct ort_io *io, tare_error *err);

/* ---- onnx_case.c ---- */

tare_status onnx_prepare(struct subject *s, const struct case_params *p, const struct case_record *to,
                         struct instance **out, tare_error *err);
void onnx_finish(struct instance *i);
int64_t onnx_thread_budget(const struct run *run); /* affinity, cgroup quota, physical cores: the least */
/* ort_session_open() under the guard's eye. */
tare_status onnx_load(struct onnx_subject *s, const struct ort_session_spec *spec, struct ort_session **out,
                      tare_error *err);
/* Session options that do not depend on the case. */
struct ort_session_spec onnx_session_spec(const struct onnx_subject *s);

/* ---- onnx_bind.c: inputs and outputs that stay on the device ---- */

/* From now on, runs of all workers keep theirs in memory of this name ("Cuda"). Inputs are copied there once, now. */
tare_status onnx_bind(struct onnx_instance *i, const char *memory, tare_error *err);
void onnx_unbind(struct onnx_instance *i, struct onnx_worker *w);
/* One run of a bound worker, until its outputs are there. */
struct ort_status *onnx_bound_run(const struct onnx_instance *i, struct onnx_worker *w);
/* After a failure: was it that outputs have another shape now? Then the run was made again with outputs allocated anew,
 * as they are in every run from now on. */
bool onnx_bound_retry(const struct onnx_instance *i, struct onnx_worker *w);
/* Worker 0's outputs as values of the host in w->out, by one more run whose outputs are bound there. */
tare_status onnx_bound_fetch(struct onnx_instance *i, tare_error *err);

/* ---- running it ---- */

tare_status onnx_run(struct instance *i, unsigned worker, struct subject_cost *cost, tare_error *err);
tare_status onnx_report(struct instance *i, struct run *run, struct run_case *c, tare_error *err);
tare_status onnx_copy_outputs(struct instance *i, struct tensor_set *out, tare_error *err);
uint64_t onnx_overhead_ns(struct instance *i);

#endif
