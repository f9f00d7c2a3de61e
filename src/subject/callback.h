/* SPDX-License-Identifier: MIT
 * callback.h - a function of this process as a subject, behind C function pointers: what the Python extension weighs
 * callables with, and any C program can. Calls too short for the clock are timed several at a time; how many is told
 * in calls_per_sample. Knows nothing of Python. */
#ifndef SUBJECT_CALLBACK_H
#define SUBJECT_CALLBACK_H

#include "subject/subject.h"

struct callback_options {
    const char *type, *name;               /* of run->subject; copied */
    const char *path;                      /* where the function stands; NULL: unknown; copied */
    const char *runtime, *runtime_version; /* NULL: none; copied */
    void *ctx;
    /* Make what a case needs; *state is handed to all others. NULL: *state is ctx. */
    tare_status (*prepare)(void *ctx, const struct case_params *p, void **state, tare_error *err);
    /* One call. */
    tare_status (*call)(void *state, unsigned worker, struct subject_cost *cost, tare_error *err);
    /* Before each run, not timed. May be NULL. */
    tare_status (*before)(void *state, unsigned worker, tare_error *err);
    bool before_each; /* `before` prepares one call: calls are never timed several at a time */
    bool tells_time;  /* likewise; `call` sets cost->wall_ns, knowing better than our clock what was work */
    /* A call that does nothing, for what the calling itself costs. May be NULL. */
    tare_status (*nothing)(void *state, unsigned worker, struct subject_cost *cost, tare_error *err);
    int64_t (*units)(const void *state); /* NULL: the batch, else 1 */
    void (*finish)(void *state);         /* may be NULL */
};

/* Calls in one sample of a case, now. */
uint64_t callback_group(const struct instance *i);

tare_status subject_open_callback(struct subject **out, const struct callback_options *o, tare_error *err);

#endif
