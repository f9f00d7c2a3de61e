/* SPDX-License-Identifier: MIT
 * subject.h - what can be weighed, behind one table of functions: an ONNX model, a command, a function of this process
 * (callback.h), a Python function, a service. The harness (src/bench) knows subjects only through this
 * file.
 *
 *   subject    opened once: a model file and the runtime it will run in, or a command line
 *   instance   ready to run one case: a session with its inputs and outputs allocated
 *   run        one unit of work; the harness reads the clock before and after, so it does nothing else */
#ifndef SUBJECT_SUBJECT_H
#define SUBJECT_SUBJECT_H

#include <signal.h>

#include "load/engine.h"
#include "probe/procstat.h"
#include "run/run.h"
#include "subject/tensor.h"

struct dim_value {
    const char *name;
    int64_t value;
};

/* Files that a model's session is to leave behind; for profiled.c. NULL: not that one. */
struct case_records {
    const char *profile;   /* prefix of the profiler's file */
    const char *optimized; /* the optimised graph */
    const char *weights;   /* beside `optimized`: its larger weights; NULL: inside */
};

/* Where a model's inputs and outputs are: in host memory, so that a run copies them there and back, or in that of the
 * provider's device, where they stay. */
#define IO_HOST "host"
#define IO_GPU "gpu"

/* One configuration. 0 or NULL: not asked for, the subject chooses. */
struct case_params {
    int64_t batch, seq;           /* set the dimensions that the usual names stand for */
    int64_t threads;              /* within one run; 0: what affinity and cgroup allow */
    const char *provider;         /* "cpu", "cuda" */
    const char *io;               /* IO_HOST, IO_GPU; NULL: host */
    const char *variant;          /* name given with --variant NAME=FILE; NULL: the subject itself */
    const struct dim_value *dims; /* further dimensions by name */
    size_t n_dims;
    unsigned
        workers;   /* runs that may be under way at once, at least 1; each has its own inputs and outputs */
    uint64_t seed; /* of made-up inputs */
    double rate;   /* of a service: requests per second, open loop; 0: what the plan says */
    unsigned concurrency;               /* of a service: requests under way at once, closed loop */
    bool has_neighbours;                /* other instances live beside this one: do not spin between runs */
    bool ungrouped;                     /* runs are wanted at their own moments: none may be made ahead */
    const struct case_records *records; /* NULL: none */
};

/* What one run cost where the harness cannot see it: in another process. known = false: look at our own. */
struct subject_cost {
    bool known;
    uint64_t wall_ns; /* by the subject's own clock, whether or not known; 0: the time that run() took */
    uint64_t rss_peak;
    struct procstat used;
    struct known_u64 run_delay; /* ns that the process was ready while no processor was free */
};

/* Where prepare() says what it chose. */
struct case_record {
    struct run *run; /* its arena; its host decides how many threads there are */
    struct run_map *params;
};

/* What a process that lives on has used so far. */
struct process_state {
    struct procstat used;
    struct known_u64 rss, rss_peak;
    bool peak_reset; /* the peak counts from now on */
    pid_t pid;       /* of the other process; 0: this one */
};

int64_t case_dim(const struct case_params *p, const char *name); /* 0: not asked for */
/* Batch, sequence length and dimensions as they were asked for, into the document. */
void case_say_params(const struct case_params *p, const struct case_record *to);

struct subject;
struct instance;

struct subject_ops {
    const char *type; /* run->subject.type */
    /* Fill run->subject (name, path, sha256, runtime) and what belongs into run->config. */
    tare_status (*describe)(struct subject *s, struct run *run, tare_error *err);
    /* Load; the harness times it. On success *out runs until finish(). Parameters actually used (threads chosen,
     * dimensions resolved, precision of the weights) go to to->params as name -> value, for the document. */
    tare_status (*prepare)(struct subject *s, const struct case_params *p, const struct case_record *to,
                           struct instance **out, tare_error *err);
    /* One run by worker 0 .. workers-1. Allocates nothing of its own. `cost` is never NULL. */
    tare_status (*run)(struct instance *i, unsigned worker, struct subject_cost *cost, tare_error *err);
    /* After measuring: what only the subject knows (allocator statistics). May be NULL. */
    tare_status (*report)(struct instance *i, struct run *run, struct run_case *c, tare_error *err);
    /* Copies of worker 0's latest outputs. NULL: this kind has none. */
    tare_status (*outputs)(struct instance *i, struct tensor_set *out, tare_error *err);
    int64_t (*units)(const struct instance *i); /* per run by default; NULL: 1 */
    void (*finish)(struct instance *i);
    void (*close)(struct subject *s);
    /* What has to be done before each run and is not part of it (--prepare of a command). May be NULL. */
    tare_status (*before_run)(struct instance *i, unsigned worker, tare_error *err);
    /* What run() costs besides the work itself, measured now: ns per run, 0 when it cannot be told. May be NULL: all of
     * run() is the work. Call it between measurements; worker 0 must be idle. */
    uint64_t (*overhead_ns)(struct instance *i);
    /* State of the one other process in which all runs happen; `reset` asks it to count its peak anew, and starts a
     * fresh one where a run took it along. NULL: runs happen here, or each in a process of its own
     * (`runs_in_child`). */
    tare_status (*process)(struct subject *s, bool reset, struct process_state *out, tare_error *err);
    /* Is that process gone, and the instance with it? It can only be finished, and prepared anew. NULL: never. */
    bool (*is_lost)(struct instance *i);
    /* Has that process ended by itself since its last answer, while nothing was asked of it? Told once, with the
     * reason. No worker may be asking. NULL: never. */
    bool (*died)(struct subject *s, tare_error *why);
    /* A window of load that the subject drives itself, where runs are not the harness's to make (requests to a service,
     * whose process is elsewhere); run() then is a single one. NULL: the harness calls run(). */
    tare_status (*load)(struct instance *i, const struct load_window *w, struct load_result *out,
                        tare_error *err);
    bool runs_in_child; /* runs happen in other processes: the memory of this one says nothing about them */
    bool reports_time; /* run() tells its time in cost.wall_ns: what it does besides is not part of the run */
};

struct subject { /* first member of each kind's own struct */
    const struct subject_ops *ops;
};
struct instance { /* likewise */
    struct subject *subject;
};

/* ---- opening ---- */

struct ort_places;

/* What ends a runtime that does not come back: ort_session.h. */
struct guard_options {
    uint64_t timeout_ns;                          /* of loading, and of one run; 0: none */
    const volatile sig_atomic_t *interrupted;     /* may be NULL */
    void (*give_up)(void *ctx, const char *text); /* must not return; NULL: then nothing but runs is ended */
    void *ctx;
    const char *name; /* of the model, for that text; borrowed */
};

struct onnx_options {
    const char *path;
    const char *runtime;               /* libonnxruntime; NULL: found, see ort_find.h */
    const char *inputs;                /* file or folder; NULL: made up */
    const char *const *session_config; /* "key=value" entries */
    size_t n_session_config;
    int optimization;          /* graph optimisation level; -1: the runtime's default (all) */
    bool no_arena, no_pattern; /* without the runtime's arena; without planning its memory ahead */
    bool parallel;             /* nodes that do not wait for each other run at the same time */
    bool fix_dims;             /* free dimensions become constants before optimisation; changes the graph */
    const struct ort_places *places; /* where to look for the runtime; NULL: `runtime`, else beside us */
    struct guard_options guard;      /* what ends a runtime that does not come back; zeroed: nothing */
};
tare_status subject_open_onnx(struct subject **out, const struct onnx_options *o, tare_error *err);

/* SHA-256 of a file, in hexadecimal. */
tare_status subject_hash_file(const char *path, char out[65], tare_error *err);

struct command_options {
    char *const *argv;   /* NULL-terminated */
    bool shell;          /* argv[0] is a line for /bin/sh */
    const char *prepare; /* shell line run before each run, not timed; NULL: none */
    uint64_t timeout_ns; /* 0: none */
    bool ignore_failure;
    const volatile sig_atomic_t *interrupted; /* set by a handler: end the command that runs; may be NULL */
    char *const *env; /* its environment, read anew at each start; borrowed; NULL: ours */
    const char *dir;  /* where it runs; borrowed; NULL: here */
};
tare_status subject_open_command(struct subject **out, const struct command_options *o, tare_error *err);

struct py_options {
    const char *target;  /* "embed.py:encode", "package.module:name" */
    const char *python;  /* interpreter that has the package tare */
    const char *inputs;  /* file of items; NULL: none */
    unsigned workers;    /* runs under way at once: threads of that process; at least 1 */
    uint64_t timeout_ns; /* of one answer; 0: none */
    const volatile sig_atomic_t *interrupted; /* may be NULL */
};
tare_status subject_open_py(struct subject **out, const struct py_options *o, tare_error *err);

tare_status subject_open_http(struct subject **out, const struct load_options *o, tare_error *err);
/* Ask it again and again, until it answers as expected or the time is over; then its error is the last one. */
tare_status subject_await_http(struct subject *s, uint64_t patience_ns, tare_error *err);

/* Nothing but work, so many steps a run of some nanoseconds each: dependent steps over a small table in memory. For
 * testing a machine with a thing that is known to be the same on both sides. */
tare_status subject_open_spin(struct subject **out, uint64_t steps, tare_error *err);

void subject_close(struct subject *s); /* NULL is fine */

#endif
