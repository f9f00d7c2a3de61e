/* SPDX-License-Identifier: MIT
 * pool.h - threads that start a job together and are waited for together. The caller is worker 0, so that a pool of one
 * has no thread at all. Never runs two jobs at once. Private to src/bench and its tests. */
#ifndef BENCH_POOL_H
#define BENCH_POOL_H

#include <pthread.h>
#include <stdbool.h>

#include "core/error.h"

struct pool {
    unsigned n; /* workers, the caller included */
    struct pool_member *members;
    unsigned started; /* threads that exist */
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    unsigned job_number, busy, arrived;
    bool stop;
    void (*job)(void *ctx, unsigned worker);
    void *ctx;
};

tare_status pool_open(struct pool *p, unsigned n, tare_error *err);
/* Every worker calls job(ctx, its number) at the same time; returns when all are done. */
void pool_run(struct pool *p, void (*job)(void *ctx, unsigned worker), void *ctx);
void pool_close(struct pool *p); /* a zeroed pool is fine */

#endif
