/* SPDX-License-Identifier: MIT
 * watch_stacks.c - see watch_stacks.h. */
#include "watch/watch_stacks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "core/mem.h"

struct stacks_watch {
    struct sampler_options options;
    struct sampler_totals totals;
    pthread_t thread;
    atomic_bool stop;
    tare_status status;
    tare_error err;
};

static bool is_stopped(void *ctx)
{
    struct stacks_watch *w = ctx;
    return atomic_load_explicit(&w->stop, memory_order_relaxed);
}

static void *keep_looking(void *ctx)
{
    struct stacks_watch *w = ctx;
    w->status = sampler_run(&w->options, &w->totals, &w->err);
    return NULL;
}

/* Signals are for the thread that watches. */
tare_status stacks_watch_start(struct stacks_watch **out, const struct watch_stacks *how, pid_t pid,
                               const char *trace, tare_error *err)
{
    struct stacks_watch *w = mem_new(1, sizeof *w);
    sigset_t all, before;
    if (!w) return error_nomem(err, "a sampler");
    w->options = (struct sampler_options){.pid = pid,
                                          .trace = trace,
                                          .hz = how->hz,
                                          .budget = how->budget / 100,
                                          .patient = true,
                                          .stop = is_stopped,
                                          .stop_ctx = w};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(&w->thread, NULL, keep_looking, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why == 0) {
        *out = w;
        return TARE_OK;
    }
    mem_free(w);
    errno = why;
    return error_errno(err, "no thread for the sampler");
}

tare_status stacks_watch_end(struct stacks_watch *w, struct sampler_totals *out, tare_error *err)
{
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    *out = w->totals;
    tare_status s = w->status;
    if (s != TARE_OK) error_set(err, s, "%s", w->err.text);
    mem_free(w);
    return s;
}
