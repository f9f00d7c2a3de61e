/* SPDX-License-Identifier: MIT
 * desk.c - a queue and its threads. */
#include "server/desk.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "core/clock.h"
#include "core/mem.h"

enum { DESK_THREADS_MAX = 8 };

struct desk {
    struct desk_options options;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct exchange *first, *last;
    unsigned waiting, n_threads, n_stores;
    bool stop, nudged;
    struct seat {
        struct desk *desk;
        struct store *store;
        pthread_t thread;
    } seats[DESK_THREADS_MAX];
};

/* Until there is something to do, the end has come, or `due`, where it is not 0. */
static void wait_for_more(struct desk *d, uint64_t due)
{
    while (!d->first && !d->nudged && !d->stop) {
        uint64_t now = clock_raw_ns();
        struct timespec at;
        if (!due) {
            pthread_cond_wait(&d->more, &d->lock);
            continue;
        }
        if (now >= due) return;
        clock_gettime(CLOCK_MONOTONIC, &at);
        uint64_t end = (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec + (due - now);
        at = (struct timespec){(time_t)(end / 1000000000), (long)(end % 1000000000)};
        pthread_cond_timedwait(&d->more, &d->lock, &at);
    }
}

/* False: stop. Nothing waits, but it is due, or was nudged: *out is NULL. */
static bool take(struct desk *d, uint64_t due, struct exchange **out)
{
    pthread_mutex_lock(&d->lock);
    wait_for_more(d, due);
    struct exchange *x = *out = d->first;
    bool goes_on = x || d->nudged || !d->stop;
    d->nudged = false;
    if (x && !d->options.together) {
        d->first = x->next;
        x->next = NULL;
        d->waiting--;
    } else {
        d->first = NULL;
        d->waiting = 0;
    }
    if (!d->first) d->last = NULL;
    pthread_mutex_unlock(&d->lock);
    return goes_on;
}

static void *sit(void *ctx)
{
    struct seat *seat = ctx;
    const struct desk_options *o = &seat->desk->options;
    struct exchange *x;
    uint64_t due = o->between ? clock_raw_ns() : 0;
    while (take(seat->desk, due, &x)) {
        if (x || o->together) o->work(o->ctx, seat->store, x);
        if (due && clock_raw_ns() >= due) due = clock_raw_ns() + o->between(o->ctx, seat->store);
    }
    return NULL;
}

bool desk_put(struct desk *d, struct exchange *x)
{
    pthread_mutex_lock(&d->lock);
    bool fits = d->waiting < d->options.waiting_max;
    if (fits) {
        x->next = NULL;
        *(d->last ? &d->last->next : &d->first) = x;
        d->last = x;
        d->waiting++;
    }
    pthread_mutex_unlock(&d->lock);
    if (fits) pthread_cond_signal(&d->more);
    return fits;
}

void desk_nudge(struct desk *d)
{
    pthread_mutex_lock(&d->lock);
    d->nudged = true;
    pthread_mutex_unlock(&d->lock);
    pthread_cond_signal(&d->more);
}

static tare_status start(struct desk *d, tare_error *err)
{
    sigset_t all, was;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    while (d->n_threads < d->options.threads && rc == 0) {
        rc = pthread_create(&d->seats[d->n_threads].thread, NULL, sit, &d->seats[d->n_threads]);
        if (rc == 0) d->n_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    errno = rc;
    return rc ? error_errno(err, "no thread for the store") : TARE_OK;
}

tare_status desk_open(struct desk **out, const struct desk_options *o, tare_error *err)
{
    struct desk *d = mem_new(1, sizeof *d);
    pthread_condattr_t steady;
    tare_status s = TARE_OK;
    if (!d) return error_nomem(err, "a thread of the store");
    d->options = *o;
    if (d->options.threads > DESK_THREADS_MAX) d->options.threads = DESK_THREADS_MAX;
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&d->more, &steady);
    pthread_condattr_destroy(&steady);
    for (; d->n_stores < d->options.threads && s == TARE_OK; d->n_stores += s == TARE_OK) {
        struct seat *seat = &d->seats[d->n_stores];
        seat->desk = d;
        s = store_open(&seat->store, o->store, &(struct store_options){.create = true}, err);
    }
    if (s == TARE_OK) s = start(d, err);
    if (s != TARE_OK) {
        desk_close(d);
        return s;
    }
    *out = d;
    return TARE_OK;
}

void desk_close(struct desk *d)
{
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_mutex_unlock(&d->lock);
    pthread_cond_broadcast(&d->more);
    for (unsigned i = 0; i < d->n_threads; i++) pthread_join(d->seats[i].thread, NULL);
    for (unsigned i = 0; i < d->n_stores; i++) store_close(d->seats[i].store);
    pthread_cond_destroy(&d->more);
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}
