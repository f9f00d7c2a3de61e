/* SPDX-License-Identifier: MIT
 * ort_guard.c - see ort_guard.h. */
#include "subject/ort_guard.h"

#include <stdio.h>
#include <time.h>

#include "core/clock.h"
#include "core/fmt.h"

#define LOOK_NS 100000000ull
#define GRACE_NS 1000000000ull /* after an interrupt: a run of usual length ends by itself */
#define DEAF_NS 5000000000ull  /* after it was asked to end */

/* Why this call should not go on; false: it may. */
static bool is_overdue(const struct ort_guard *g, uint64_t lasted, uint64_t stopping, char *why, size_t size)
{
    if (stopping > GRACE_NS && lasted > GRACE_NS) {
        snprintf(why, size, "interrupted");
        return true;
    }
    if (!g->o.timeout_ns || lasted <= g->o.timeout_ns) return false;
    snprintf(why, size, "takes longer than --timeout %s", show_time((double)g->o.timeout_ns).s);
    return true;
}

static void end_call(struct ort_guard *g, struct guarded *c, uint64_t lasted)
{
    if (c->run && !c->asked) {
        struct ort_status *st = g->ort->call.RunOptionsSetTerminate(c->run);
        if (st) g->ort->call.ReleaseStatus(st);
        c->asked = true;
        c->since_ns += lasted; /* from now on: how long it is deaf */
    } else if (g->o.give_up && (!c->run || lasted > DEAF_NS)) {
        char text[600];
        snprintf(text, sizeof text, "%.400s: %s: %s", g->o.name, c->run ? "a run" : "loading", c->why);
        g->o.give_up(g->o.ctx, text);
    }
}

static void look_at(struct ort_guard *g, struct guarded *c, uint64_t now, uint64_t stopping)
{
    uint32_t calls = atomic_load_explicit(&c->calls, memory_order_acquire);
    if (calls % 2 == 0 || calls != c->seen) {
        c->seen = calls;
        c->since_ns = now;
        c->asked = false;
        return;
    }
    if (c->asked || is_overdue(g, now - c->since_ns, stopping, c->why, sizeof c->why))
        end_call(g, c, now - c->since_ns);
}

static void *watch_calls(void *arg)
{
    struct ort_guard *g = arg;
    uint64_t asked_to_stop = 0;
    while (!atomic_load(&g->stop)) {
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
        uint64_t now = clock_raw_ns();
        bool stopping = g->o.interrupted && *g->o.interrupted;
        if (!stopping || !asked_to_stop) asked_to_stop = stopping ? now : 0;
        pthread_mutex_lock(&g->lock);
        for (size_t i = 0; i < g->all.n; i++)
            look_at(g, g->all.items[i], now, stopping ? now - asked_to_stop : 0);
        pthread_mutex_unlock(&g->lock);
    }
    return NULL;
}

/* The user's signals are for the thread that measures. */
tare_status guard_start(struct ort_guard *g, const struct ort *ort, const struct guard_options *o,
                        tare_error *err)
{
    sigset_t all, was;
    if (!o->timeout_ns && !o->interrupted) return TARE_OK;
    g->ort = ort;
    g->o = *o;
    pthread_mutex_init(&g->lock, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int failed = pthread_create(&g->thread, NULL, watch_calls, g);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    g->started = !failed;
    return failed ? error_set(err, TARE_DENIED, "no thread to watch the runtime with") : TARE_OK;
}

void guard_stop(struct ort_guard *g)
{
    if (!g->started) return;
    atomic_store(&g->stop, true);
    pthread_join(g->thread, NULL);
    pthread_mutex_destroy(&g->lock);
    vec_release(&g->all);
    g->started = false;
}

tare_status guard_add(struct ort_guard *g, struct guarded *c, tare_error *err)
{
    if (!g->started) return TARE_OK;
    pthread_mutex_lock(&g->lock);
    tare_status s = vec_push(&g->all, c, err);
    pthread_mutex_unlock(&g->lock);
    return s;
}

void guard_remove(struct ort_guard *g, struct guarded *c)
{
    if (!g->started) return;
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->all.n; i++)
        if (g->all.items[i] == c) g->all.items[i--] = g->all.items[--g->all.n];
    pthread_mutex_unlock(&g->lock);
}

bool guard_ended(struct ort_guard *g, struct guarded *c, char *why, size_t size)
{
    if (!g->started) return false;
    pthread_mutex_lock(&g->lock);
    bool ended = c->asked;
    snprintf(why, size, "%s", c->why);
    c->asked = false;
    pthread_mutex_unlock(&g->lock);
    struct ort_status *st = ended ? g->ort->call.RunOptionsUnsetTerminate(c->run) : NULL;
    if (st) g->ort->call.ReleaseStatus(st);
    return ended;
}
