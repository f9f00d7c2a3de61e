/* SPDX-License-Identifier: MIT
 * pool.c - see engine.h. A job begins when its last worker has arrived; the wait for the others is a spin,
 * because a wake-up by the kernel would let some start tens of microseconds late. */
#include <sched.h>
#include <string.h>

#include "bench/engine.h"

struct pool_member {
    struct pool *pool;
    unsigned number;
    pthread_t thread;
};

enum { SPINS_BEFORE_YIELD = 1000 };

static void start_together(struct pool *p)
{
    __atomic_add_fetch(&p->arrived, 1, __ATOMIC_ACQ_REL);
    for (unsigned spins = 0; __atomic_load_n(&p->arrived, __ATOMIC_ACQUIRE) < p->n; spins++)
        if (spins > SPINS_BEFORE_YIELD) sched_yield(); /* more workers than processors */
}

/* The number of the job, and not a flag, says that there is work: a worker that comes back late still sees
 * that it has not done this one. The job runs without the lock. */
static void *member_main(void *arg)
{
    struct pool_member *me = arg;
    struct pool *p = me->pool;
    unsigned seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stop && p->job_number == seen) pthread_cond_wait(&p->wake, &p->lock);
        if (p->stop) break;
        seen = p->job_number;
        pthread_mutex_unlock(&p->lock);
        start_together(p);
        p->job(p->ctx, me->number);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0) pthread_cond_signal(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* The calling thread is worker 0, so that n workers take n - 1 new threads, and one worker takes none. */
tare_status pool_open(struct pool *p, unsigned n, tare_error *err)
{
    memset(p, 0, sizeof *p);
    p->n = n;
    if (n < 2) return TARE_OK;
    if (!(p->members = mem_new(n, sizeof *p->members))) return error_nomem(err, "%u workers", n);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->idle, NULL);
    for (unsigned i = 1; i < n; i++) {
        struct pool_member *m = &p->members[i];
        m->pool = p;
        m->number = i;
        int code = pthread_create(&m->thread, NULL, member_main, m);
        if (code != 0) {
            pool_close(p);
            return error_set(err, TARE_UNSUPPORTED, "cannot start worker %u of %u: %s", i + 1, n,
                             strerror(code));
        }
        p->started++;
    }
    return TARE_OK;
}

/* `arrived` is set back before the number of the job goes up: nobody may count himself in for the new job
 * before that. The end is waited for in the kernel, not in a spin: late is no harm there. */
void pool_run(struct pool *p, void (*job)(void *ctx, unsigned worker), void *ctx)
{
    if (p->n < 2) {
        job(ctx, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->job = job;
    p->ctx = ctx;
    p->busy = p->n - 1;
    __atomic_store_n(&p->arrived, 0, __ATOMIC_RELEASE);
    p->job_number++;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    start_together(p);
    job(ctx, 0);
    pthread_mutex_lock(&p->lock);
    while (p->busy > 0) pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void pool_close(struct pool *p)
{
    if (!p->members) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 1; i <= p->started; i++) pthread_join(p->members[i].thread, NULL);
    pthread_cond_destroy(&p->idle);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->members);
    memset(p, 0, sizeof *p);
}
