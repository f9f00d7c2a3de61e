/* SPDX-License-Identifier: MIT
 * roof_team.c - see roof_team.h. Members sleep between turns; a turn begins when all are awake, so that waking them is
 * not part of what is timed. */
#include "probe/roof_team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"

#define ALIGN_NS 200000 /* how long one waits for the others at most: they may have no processor */

struct member {
    struct roof_team *team;
    pthread_t thread;
    unsigned index;
    uint64_t start_ns, end_ns;
};

struct roof_team {
    pthread_mutex_t lock;
    pthread_cond_t turn, done;
    unsigned n, running; /* members; of these still at work in this turn */
    uint64_t turns;
    bool quit;
    roof_work_fn *work;
    void *ctx;
    atomic_uint awake;
    struct member members[];
};

/* Wait, spinning, until all are awake. */
static void align(struct roof_team *t)
{
    uint64_t until = clock_raw_ns() + ALIGN_NS;
    atomic_fetch_add(&t->awake, 1);
    while (atomic_load(&t->awake) < t->n && clock_raw_ns() < until) {
    }
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    struct roof_team *t = m->team;
    uint64_t seen = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->turns == seen && !t->quit) pthread_cond_wait(&t->turn, &t->lock);
        if (t->quit) break;
        seen = t->turns;
        pthread_mutex_unlock(&t->lock);
        align(t);
        uint64_t start = clock_raw_ns();
        t->work(t->ctx, m->index);
        uint64_t end = clock_raw_ns();
        pthread_mutex_lock(&t->lock);
        m->start_ns = start;
        m->end_ns = end;
        if (--t->running == 0) pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

tare_status roof_team_new(struct roof_team **out, unsigned threads, tare_error *err)
{
    struct roof_team *t = mem_new(1, sizeof *t + threads * sizeof t->members[0]);
    if (!t) return error_set(err, TARE_NOMEM, "out of memory for %u threads", threads);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->turn, NULL);
    pthread_cond_init(&t->done, NULL);
    for (unsigned i = 0; i < threads; i++) {
        t->members[i] = (struct member){.team = t, .index = i};
        int rc = pthread_create(&t->members[i].thread, NULL, member_main, &t->members[i]);
        if (rc) {
            roof_team_free(t);
            return error_set(err, TARE_DENIED, "cannot start thread %u of %u: %s", i + 1, threads,
                             strerror(rc));
        }
        t->n = i + 1; /* nobody reads it before the first turn */
    }
    *out = t;
    return TARE_OK;
}

void roof_team_free(struct roof_team *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->quit = true;
    pthread_cond_broadcast(&t->turn);
    pthread_mutex_unlock(&t->lock);
    for (unsigned i = 0; i < t->n; i++) pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->turn);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

uint64_t roof_team_do(struct roof_team *t, roof_work_fn *work, void *ctx)
{
    uint64_t first = UINT64_MAX, last = 0;
    pthread_mutex_lock(&t->lock);
    t->work = work;
    t->ctx = ctx;
    t->running = t->n;
    atomic_store(&t->awake, 0);
    t->turns++;
    pthread_cond_broadcast(&t->turn);
    while (t->running) pthread_cond_wait(&t->done, &t->lock);
    for (unsigned i = 0; i < t->n; i++) {
        if (t->members[i].start_ns < first) first = t->members[i].start_ns;
        if (t->members[i].end_ns > last) last = t->members[i].end_ns;
    }
    pthread_mutex_unlock(&t->lock);
    return last > first ? last - first : 1;
}

uint64_t roof_team_best(struct roof_team *t, roof_work_fn *work, void *ctx, unsigned least,
                        uint64_t budget_ns)
{
    uint64_t best = UINT64_MAX, begin = clock_raw_ns();
    for (unsigned i = 0; i < least || clock_raw_ns() - begin < budget_ns; i++) {
        uint64_t took = roof_team_do(t, work, ctx);
        if (took < best) best = took;
    }
    return best;
}
