/* SPDX-License-Identifier: MIT
 * subject.h - what can be weighed, behind one table of functions: an ONNX model, a command; later an HTTP endpoint,
 * a C or Python function. The harness (src/bench) knows subjects only through this file.
 *
 *   subject    opened once: a model file and the runtime it will run in, or a command line
 *   instance   ready to run one case: a session with its inputs and outputs allocated
 *   run        one unit of work; the harness reads the clock before and after, so it does nothing else */
#ifndef SUBJECT_SUBJECT_H
#define SUBJECT_SUBJECT_H

#include "run/run.h"
#include "subject/tensor.h"

struct dim_value {
    const char *name;
    int64_t value;
};

/* One configuration. 0 or NULL: not asked for, the subject chooses. */
struct case_params {
    int64_t batch, seq;           /* set the dimensions that the usual names stand for */
    int64_t threads;              /* within one run; 0: what affinity and cgroup allow */
    const char *provider;         /* "cpu", "cuda" */
    const char *variant;          /* name given with --variant NAME=FILE; NULL: the subject itself */
    const struct dim_value *dims; /* further dimensions by name */
    size_t n_dims;
    unsigned
        workers;   /* runs that may be under way at once, at least 1; each has its own inputs and outputs */
    uint64_t seed; /* of made-up inputs */
    bool many;     /* other instances live beside this one: do not spin between runs */
};

/* What one run cost where the harness cannot see it: in another process. known = false: look at our own. */
struct subject_cost {
    bool known;
    uint64_t user_ns, system_ns, rss_peak, minor_faults, major_faults, voluntary_switches,
        involuntary_switches;
    uint64_t read_bytes, write_bytes;
};

struct subject;
struct instance;

struct subject_ops {
    const char *type; /* run->subject.type */
    /* Fill run->subject (name, path, sha256, runtime) and what belongs into run->config. */
    tare_status (*describe)(struct subject *s, struct run *run, tare_error *err);
    /* Load; the harness times it. On success *out runs until finish(). Parameters actually used (threads chosen,
     * dimensions resolved, precision of the weights) go to *params as name -> value, for the document. */
    tare_status (*prepare)(struct subject *s, const struct case_params *p, struct run *run,
                           struct run_map *params, struct instance **out, tare_error *err);
    /* One run by worker 0 .. workers-1. Allocates nothing of its own. `cost` is never NULL. */
    tare_status (*run)(struct instance *i, unsigned worker, struct subject_cost *cost, tare_error *err);
    /* After measuring: what only the subject knows (allocator statistics). May be NULL. */
    tare_status (*report)(struct instance *i, struct run *run, struct run_case *c, tare_error *err);
    /* Copies of worker 0's latest outputs. NULL: this kind has none. */
    tare_status (*outputs)(struct instance *i, struct tensor_set *out, tare_error *err);
    int64_t (*units)(const struct instance *i); /* per run by default: the batch, else 1 */
    void (*finish)(struct instance *i);
    void (*close)(struct subject *s);
};

struct subject { /* first member of each kind's own struct */
    const struct subject_ops *ops;
};
struct instance { /* likewise */
    struct subject *subject;
};

/* ---- opening ---- */

struct onnx_options {
    const char *path;
    const char *runtime;               /* libonnxruntime; NULL: found, see ort_find.h */
    const char *inputs;                /* file or folder; NULL: made up */
    const char *const *session_config; /* "key=value" entries */
    size_t n_session_config;
    int optimization; /* graph optimisation level; -1: the runtime's default (all) */
    bool no_arena;
};
tare_status subject_open_onnx(struct subject **out, const struct onnx_options *o, tare_error *err);

struct command_options {
    char *const *argv;   /* NULL-terminated */
    bool shell;          /* argv[0] is a line for /bin/sh */
    const char *prepare; /* shell line run before each run, not timed; NULL: none */
    uint64_t timeout_ns; /* 0: none */
    bool ignore_failure;
};
tare_status subject_open_command(struct subject **out, const struct command_options *o, tare_error *err);

void subject_close(struct subject *s); /* NULL is fine */

#endif
