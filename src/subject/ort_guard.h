/* SPDX-License-Identifier: MIT
 * ort_guard.h - a runtime that does not come back: one thread looks ten times a second at the calls under way, and ends
 * those that outlive --timeout, or that still run a second after the user asked to stop. A run is asked to end; what
 * cannot be asked (loading, a kernel that never looks) ends with the process, by the owner's last words. */
#ifndef SUBJECT_ORT_GUARD_H
#define SUBJECT_ORT_GUARD_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "core/vec.h"
#include "subject/ort.h"

struct guard_options {
    uint64_t timeout_ns;                          /* of loading, and of one run; 0: none */
    const volatile sig_atomic_t *interrupted;     /* may be NULL */
    void (*give_up)(void *ctx, const char *text); /* must not return; NULL: then nothing but runs is ended */
    void *ctx;
    const char *name; /* of the model, for that text; borrowed */
};

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
