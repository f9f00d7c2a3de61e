/* SPDX-License-Identifier: MIT
 * ort_session.h - one session of ONNX Runtime: made with the options asked for, its inputs and outputs described, its
 * arena and the placement of its nodes read back; and what ends one that does not come back. Knows the runtime, and
 * nothing of cases or measuring. */
#ifndef SUBJECT_ORT_SESSION_H
#define SUBJECT_ORT_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "run/run.h"
#include "subject/ort.h"
#include "subject/subject.h"
#include "subject/tensor.h"

/* ---- making one ---- */

struct ort_session_spec {
    const char *model;
    const void *bytes; /* not NULL: the model itself; `model` is then only what errors call it */
    size_t n_bytes;
    int64_t threads;      /* intra-op; inter-op is 1, or as many with `parallel` */
    int optimization;     /* -1: all */
    const char *provider; /* "cpu", "cuda", ...; NULL: cpu */
    bool no_arena, no_pattern, parallel, no_spin;
    const char *const *config; /* "key=value" */
    size_t n_config;
    const struct dim_value *fixed; /* free dimensions made constants */
    size_t n_fixed;
    struct case_records records;
};

/* Errors name the model and carry the runtime's words; a provider that cannot be used is TARE_UNSUPPORTED. */
tare_status ort_session_open(const struct ort *o, const struct ort_session_spec *spec,
                             struct ort_session **out, tare_error *err);

/* ---- what goes in and out ---- */

struct ort_io {
    const char *name;
    int kind; /* enum ort_value_kind */
    int type; /* enum onnx_type; of tensors */
    size_t rank;
    bool has_shape;
    int64_t dims[TENSOR_RANK_MAX];        /* -1: free */
    const char *symbols[TENSOR_RANK_MAX]; /* names of free dimensions; "" for none */
};

struct ort_ios {
    VEC(struct ort_io) items;
    struct arena texts; /* their names */
};

tare_status ort_inputs(const struct ort *o, const struct ort_session *s, struct ort_ios *out,
                       tare_error *err);
tare_status ort_outputs(const struct ort *o, const struct ort_session *s, struct ort_ios *out,
                        tare_error *err);
void ort_ios_release(struct ort_ios *ios);

/* A value over a tensor's data, which must outlive it. */
tare_status ort_value_over(const struct ort *o, const struct ort_memory_info *cpu, const struct tensor *t,
                           struct ort_value **out, tare_error *err);
/* A copy of a value as a tensor. TARE_UNSUPPORTED for what is no array of numbers. */
tare_status ort_value_copy(const struct ort *o, struct ort_value *v, const char *name, struct tensor *out,
                           tare_error *err);
/* Shape and type alone; false when it is no tensor. */
bool ort_value_shape(const struct ort *o, const struct ort_value *v, int *type, int64_t *dims, size_t *rank);
bool ort_value_same_shape(const struct ort *o, const struct ort_value *a, const struct ort_value *b);

/* ---- providers ---- */

/* What this library has, as a list of maps {"name", "state", "why"}; states: "usable", "absent", "untried". Appending
 * a provider is the only proof that it can be used, but loads it into this process; so none is tried for this list. */
void ort_describe_providers(const struct ort *o, struct arena *a, struct run_map *config);

/* "cuda" of "CUDAExecutionProvider"; NULL: tare does not know it. */
const char *ort_provider_short(const char *name);

/* What the runtime calls the memory of this provider's device ("Cuda"); NULL: it has none, or tare does not know it. */
const char *ort_provider_memory(const char *provider);

/* ---- after running ---- */

/* Ends the profile of a session made with `profile` and reads it. The file is deleted. */
struct ort_profile;
tare_status ort_session_profile(const struct ort *o, struct ort_session *s, struct ort_profile *out,
                                tare_error *err);

struct ort_arena_use {
    uint64_t held, most_used; /* bytes; 0: not told */
};
/* The statistics of the session's arena in the host's memory (NULL) or in that of this name ("Cuda") into *arena; false
 * when this runtime or session has none. */
struct ort_arena_of {
    const struct ort_session *session;
    const char *memory;
};
bool ort_arena_stats(const struct ort *o, const struct ort_arena_of *of, struct arena *a,
                     struct run_map *arena, struct ort_arena_use *use);
/* Nodes per provider into *placement; none when unknown. Needs 1.24 and a session made for another provider than
 * cpu. */
void ort_placement(const struct ort *o, const struct ort_session *s, struct arena *a,
                   struct run_map *placement);

/* ---- a runtime that does not come back: one thread looks ten times a second at the calls under way, and ends those
 * that outlive --timeout (without it: ten minutes, loading an hour), and runs that still go on a second after the user
 * asked to stop. A run is asked to end; what cannot be asked (loading, a kernel that never looks) ends, after that,
 * with the process, by the owner's last words ---- */

/* One caller's calls, one after another. The caller only ever adds 1 around its calls: an odd number is a call. */
struct guarded {
    _Atomic uint32_t calls;
    struct ort_run_options *run; /* how to ask it to end; NULL: it cannot be asked */
    /* the guard's own */
    uint32_t seen;
    uint64_t since_ns;
    bool asked;
    char why[96]; /* why it was asked to end; "": it was not */
};

struct ort_guard {
    const struct ort *ort;
    struct guard_options o;
    pthread_t thread;
    bool started;
    atomic_bool stop;
    pthread_mutex_t lock;
    VEC(struct guarded *) all;
};

/* Nothing to watch for: no thread, and all else does nothing. */
tare_status guard_start(struct ort_guard *g, const struct ort *ort, const struct guard_options *o,
                        tare_error *err);
void guard_stop(struct ort_guard *g); /* a zeroed one is fine */
tare_status guard_add(struct ort_guard *g, struct guarded *c, tare_error *err);
void guard_remove(struct ort_guard *g, struct guarded *c); /* one that was not added is fine */
/* A call has failed: was it asked to end? Then why, and the next one may run again. */
bool guard_ended(struct ort_guard *g, struct guarded *c, char *why, size_t size);

static inline void guard_call(struct guarded *c)
{
    uint32_t n = atomic_load_explicit(&c->calls, memory_order_relaxed);
    atomic_store_explicit(&c->calls, n + 1, memory_order_release);
}

#endif
