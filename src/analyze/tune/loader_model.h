/* SPDX-License-Identifier: MIT
 * loader_model.h - how many samples a second a data loader can deliver, with how many workers, and what holds it back:
 * an operational model of what one instrumented pass measured. Every limit is a rate that nothing can exceed, so the
 * lowest of them bounds the loader, and the one that is lowest is the bottleneck. Pure; never measures. A prediction
 * plans what to measure and is never reported as a result. */
#ifndef ANALYZE_TUNE_LOADER_MODEL_H
#define ANALYZE_TUNE_LOADER_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buf.h"
#include "core/error.h"

/* In the order a sample passes them. The first four are made by a worker where there are workers. */
#define LOADER_STAGES(X)                                                                                        \
    X(FETCH, fetch) X(DECODE, decode) X(TRANSFORM, transform) X(COLLATE, collate) X(SEND, send) X(RECEIVE, receive) \
    X(COPY, copy) X(STEP, step)
enum loader_stage {
#define X(NAME, name) LOADER_##NAME,
    LOADER_STAGES(X)
#undef X
        LOADER_STAGE_COUNT
};
const char *loader_stage_name(enum loader_stage s);

enum loader_mode { LOADER_PROCESSES, LOADER_THREADS };
const char *loader_mode_name(enum loader_mode m);

struct
    loader_cost { /* seconds for one sample, of one process alone; NAN: not measured, and counted as none */
    double wall, cpu;
};

struct loader_pipeline {
    struct loader_cost stage[LOADER_STAGE_COUNT];
    double locked;      /* seconds for one sample that hold the interpreter's lock; NAN: all processor time */
    double cores;       /* that this loader may use: of affinity and cgroup */
    double others;      /* threads of others that want them all the time; NAN: none */
    double share;       /* of a processor that one busy thread got beside them; NAN: not known */
    double delayed;     /* seconds that a sample is ready and waits for a processor, beside them; NAN: none */
    double read_bytes;  /* from the disk, for one sample; NAN: not known */
    double disk_rate;   /* bytes a second; NAN: not known */
    double spread;      /* seconds by which the slowest hundredth of samples exceeds the median; NAN */
    double batch_bytes; /* of one batch; NAN: not known */
    double memory;      /* bytes that batches in queues may take; NAN: no limit */
    size_t batch;       /* samples of one */
    size_t most_workers;
};

/* What can hold a loader back. */
enum loader_limit {
    LOADER_LIMIT_WORKERS, /* too few of them: each is busy or waits for its own sample */
    LOADER_LIMIT_CORES,   /* no processor left */
    LOADER_LIMIT_LOCK,    /* the interpreter's lock */
    LOADER_LIMIT_DISK,
    LOADER_LIMIT_RECEIVE, /* the main process: taking batches over */
    LOADER_LIMIT_STEP,    /* the main process: what is done with them. Nothing to gain in the loader */
    LOADER_LIMIT_COUNT
};
const char *loader_limit_name(enum loader_limit l);

struct loader_choice {
    enum loader_mode mode;
    size_t workers; /* 0: the main process makes the batches itself */
};

struct loader_rate {
    double rate;             /* samples a second, at most */
    enum loader_limit limit; /* what holds it there */
    double room;             /* how many times the next limit is higher; infinite: there is none */
    double waiting; /* share of the time in which the step waits for data; NAN: no step was measured */
    double cores;   /* that are busy */
    enum loader_stage longest; /* of the stages that make the limit */
};

struct loader_plan {
    struct loader_choice best;
    size_t depth;               /* batches each worker prepares ahead */
    struct loader_rate now, at; /* as it is, and with the plan */
    struct loader_rate cap; /* with workers without end: nothing in the loader's settings goes beyond it */
    double bound;           /* cap / now: the gain is at most this */
};

/* TARE_INVALID: a time below 0, no batch, no core. A prediction is of this machine with what others do on it; the plan
 * and its bound are of the loader by itself, because what others give up is no gain. */
tare_status loader_predict(const struct loader_pipeline *p, struct loader_choice c, struct loader_rate *out,
                           tare_error *err);
tare_status loader_plan(const struct loader_pipeline *p, struct loader_choice now, struct loader_plan *out,
                        tare_error *err);

/* The bottleneck as a sentence with its evidence. */
void loader_explain(const struct loader_pipeline *p, struct loader_choice c, const struct loader_rate *r,
                    struct buf *out);

#endif
