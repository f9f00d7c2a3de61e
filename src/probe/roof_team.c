/* SPDX-License-Identifier: MIT
 * roof_team.c - see roof_parts.h. Members sleep between turns; a turn begins when all are awake, so that waking them is
 * not part of what is timed. */
#include "probe/roof_parts.h"

#include <pthread.h>
#include <sched.h>
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
    bool pinned;
    uint64_t start_ns, end_ns, cpu_ns;
};

struct roof_team {
    pthread_mutex_t lock;
    pthread_cond_t turn, done;
    unsigned n, running; /* members; of these still at work in this turn */
    uint64_t turns;
    bool quit, pinned;
    cpu_set_t cpus; /* that may be used; none: not known, then nobody is pinned */
    roof_work_fn *work;
    void *ctx;
    atomic_uint awake;
    struct member members[];
};

/* Wait, spinning, until all are awake. */
static void await_all(struct roof_team *t)
{
    uint64_t until = clock_raw_ns() + ALIGN_NS;
    atomic_fetch_add(&t->awake, 1);
    while (atomic_load(&t->awake) < t->n && clock_raw_ns() < until) {
    }
}

/* Processor number `n` of a set. */
static int nth_cpu(const cpu_set_t *set, unsigned n)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set) && n-- == 0) return cpu;
    return 0;
}

/* Spread over the set, since neighbours are often halves of one core. A refusal leaves the thread where it is. */
static void place_member(struct member *m, bool pinned)
{
    const struct roof_team *t = m->team;
    unsigned cpus = (unsigned)CPU_COUNT(&t->cpus);
    cpu_set_t one;
    if (m->pinned == pinned || cpus == 0) return;
    m->pinned = pinned;
    CPU_ZERO(&one);
    CPU_SET(nth_cpu(&t->cpus, t->n < cpus ? m->index * cpus / t->n : m->index % cpus), &one);
    sched_setaffinity(0, sizeof one, pinned ? &one : &t->cpus);
}

/* The clocks are read without the lock, and told with it: whoever waits for `done` sees all of them. */
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
        bool pinned = t->pinned;
        pthread_mutex_unlock(&t->lock);
        place_member(m, pinned);
        await_all(t);
        uint64_t cpu = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID), start = clock_raw_ns();
        t->work(t->ctx, m->index);
        uint64_t end = clock_raw_ns();
        cpu = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
        pthread_mutex_lock(&t->lock);
        m->start_ns = start;
        m->end_ns = end;
        m->cpu_ns = cpu;
        if (--t->running == 0) pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* The mask of allowed processors is read before any thread is pinned: later it would be that of one thread
 * only. */
tare_status roof_team_new(struct roof_team **out, unsigned threads, tare_error *err)
{
    struct roof_team *t = mem_new(1, sizeof *t + threads * sizeof t->members[0]);
    if (!t) return error_set(err, TARE_NOMEM, "out of memory for %u threads", threads);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->turn, NULL);
    pthread_cond_init(&t->done, NULL);
    if (sched_getaffinity(0, sizeof t->cpus, &t->cpus) < 0) CPU_ZERO(&t->cpus);
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

/* One turn: all are woken, all spin until all are awake, and the last one to end wakes us. */
struct roof_turn roof_team_do(struct roof_team *t, roof_work_fn *work, void *ctx, bool pinned)
{
    uint64_t first = UINT64_MAX, last = 0;
    struct roof_turn turn = {1, 0};
    pthread_mutex_lock(&t->lock);
    t->work = work;
    t->ctx = ctx;
    t->pinned = pinned;
    t->running = t->n;
    atomic_store(&t->awake, 0);
    t->turns++;
    pthread_cond_broadcast(&t->turn);
    while (t->running) pthread_cond_wait(&t->done, &t->lock);
    for (unsigned i = 0; i < t->n; i++) {
        const struct member *m = &t->members[i];
        if (m->start_ns < first) first = m->start_ns;
        if (m->end_ns > last) last = m->end_ns;
        if (m->cpu_ns > turn.cpu_ns) turn.cpu_ns = m->cpu_ns;
    }
    pthread_mutex_unlock(&t->lock);
    if (last > first) turn.ns = last - first;
    return turn;
}

bool roof_turn_is_quiet(struct roof_turn best)
{
    return best.ns <= best.cpu_ns + best.cpu_ns / 10;
}

struct roof_turn roof_team_best(struct roof_team *t, roof_work_fn *work, void *ctx, uint64_t budget_ns)
{
    struct roof_turn best = {UINT64_MAX, 0};
    uint64_t begin = clock_raw_ns(), spent = 0;
    for (unsigned i = 0; i < 4 || spent < budget_ns || (!roof_turn_is_quiet(best) && spent < 3 * budget_ns);
         i++) {
        struct roof_turn now = roof_team_do(t, work, ctx, i / 2 % 2);
        if (now.ns < best.ns) best = now;
        spent = clock_raw_ns() - begin;
    }
    return best;
}
