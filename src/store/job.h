/* SPDX-License-Identifier: MIT
 * job.h - what a server was asked to run, as the store keeps it: a part of store.h. */
#ifndef STORE_JOB_H
#define STORE_JOB_H

#include <stdint.h>

#include "core/error.h"

/* What a server was asked to run. Texts may be NULL but for id, token, operation, state and request. */
struct store_job {
    const char *id, *project;
    const char *token;                        /* who asked: its id */
    const char *owner;                        /* which server runs it */
    const char *operation, *state;            /* queued, running, done, failed, timeout, cancelled, lost */
    const char *request, *record;             /* JSON; record: what came of it, NULL: nothing yet */
    int64_t created_ms, started_ms, ended_ms; /* 0: not yet */
};
struct store_job_filter { /* NULL: any */
    const char *id, *project;
    uint64_t limit; /* 0: all */
};
typedef tare_status store_job_fn(void *ctx, const struct store_job *job, tare_error *err);

#endif
