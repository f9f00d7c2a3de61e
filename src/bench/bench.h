/* SPDX-License-Identifier: MIT
 * bench.h - the harness: loads every case, warms it up until it is steady, then measures all cases in
 * rounds, each round in a new random order, so that a drift of the machine hits all alike. Fills cases of a
 * run document with what was measured; judges nothing (src/analyze does). Rules: docs/method.md. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <signal.h>

#include "bench/slo.h"
#include "load/arrivals.h"
#include "load/llm.h"
#include "subject/subject.h"

enum bench_load {
    BENCH_CLOSED, /* each worker starts its next run when its last one is done */
    BENCH_OPEN    /* runs start on a schedule; latency counts from the planned start */
};

struct bench_case {
    struct subject *subject;
    struct case_params params;
    const char *name; /* "batch=16,seq=128" */
};

/* Told what goes on; may be NULL. done and total in ns of time: what is between them is the time left, as far as it
 * is known by now, so that the total changes. */
struct bench_progress {
    void (*report)(void *ctx, const char *what, uint64_t done, uint64_t total);
    void *ctx;
};

/* Of a language model: where its reader pools, and the limits of each request. */
struct bench_streams {
    struct llm_pool *pool; /* NULL: it is none */
    const struct slo *slo;
};

/* Requests are due when those of a log were. */
struct bench_replay {
    const char *name; /* of the file */
    double speed;
    struct moments moments; /* at least one */
};

struct bench_plan {
    const struct bench_case *cases;
    size_t n_cases;
    uint64_t budget_ns; /* of measuring, per case */
    double precision;   /* stop when the interval of the median, and of the percentile, is +/- this narrow */
    double percentile;  /* 0: the median only; 0.95: p95 too */
    double
        tail; /* a percentile that is judged: not called precise with fewer runs than that needs; 0: none */
    uint64_t min_runs;   /* at least so many; default BENCH_MIN_RUNS */
    bool min_runs_firm;  /* the user's number; else 5 are enough of runs longer than a tenth of the budget */
    uint64_t max_runs;   /* 0: no limit */
    int64_t warmup_runs; /* -1: until steady */
    enum bench_load load;
    enum load_arrivals arrivals;
    const struct bench_replay *replay; /* of a service: moments that are known, for one case; NULL: made */
    double rate;                       /* open loop: runs per second */
    unsigned concurrency;              /* workers; at least 1 */
    const char *unit;                  /* "texts" */
    int64_t per_run;                   /* units in one run; 0: what the subject says */
    uint64_t seed;                     /* of the order of cases and of arrivals */
    struct bench_streams streams;
    struct bench_window_done {
        void (*tell)(void *ctx, size_t at); /* NULL: nobody */
        void *ctx;
    } window_done;     /* of a service: the window of that case is over */
    pid_t service_pid; /* of a service on this machine, whose processes are looked at; 0: none is named */
    bool keep_outputs; /* for accuracy: outputs of the first run of each case */
    struct tensor_set *outputs; /* one per case, when keep_outputs */
    bool keep_failed;           /* that all cases fail is no error: they are rows, too */
    const bool *ended;          /* set by the subject: what fails from then on ends the bench; may be NULL */
    const volatile sig_atomic_t *interrupted; /* set by a signal handler: finish with what there is */
    struct bench_progress progress;
};
/* The defaults of `tare bench`; python/tare/_bench.py has the same, and a test compares them. */
#define BENCH_BUDGET_NS 10000000000
#define BENCH_PRECISION 0.02
#define BENCH_MIN_RUNS 30
#define BENCH_PLAN_INIT                                                                            \
    {                                                                                              \
        .budget_ns = BENCH_BUDGET_NS, .precision = BENCH_PRECISION, .min_runs = BENCH_MIN_RUNS,    \
        .warmup_runs = -1, .concurrency = 1, .unit = "runs"                                        \
    }

/* Measures all cases into run->cases, in the plan's order. A case that cannot be prepared, or fails in a run, is there
 * with its `failure` and nothing else; when all fail, what the first of them said is the error. A failed run does not
 * end its case: it is counted there. */
tare_status bench_run(struct run *run, const struct bench_plan *plan, tare_error *err);

/* ---- named load patterns after the scenarios of MLPerf Inference, as a table for the command line. A preset
 * only sets fields of a plan; it proves nothing about MLPerf compliance ---- */

struct bench_preset {
    const char *name; /* "single-stream" */
    const char *help;
    enum bench_load load;
    enum load_arrivals arrivals;
    double percentile; /* that the scenario is judged by; 0: throughput */
    int64_t batch;     /* units in one query; 0: the case's own */
    bool needs_rate;
};

extern const struct bench_preset bench_presets[]; /* the last one has name NULL */

/* Set the plan's load, arrivals, percentile and concurrency. The caller sets the batch of the cases, and the
 * rate where needs_rate. Unknown names: TARE_INVALID with the names there are. */
tare_status bench_preset_apply(struct bench_plan *plan, const char *name, const struct bench_preset **out,
                               tare_error *err);

#endif
