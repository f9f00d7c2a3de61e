/* SPDX-License-Identifier: MIT
 * sampler_thread.c - see sampler.h: the thread, who watches, and forks. Two locks: `probing` is held while
 * probes are read, `state` for everything else and never for long, so that a block of code begins and ends
 * without waiting for a disk or a driver. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "sampler.h"

#define WAIT_NS UINT64_C(1000000000)
#define INTERVAL_LEAST_S 0.001
#define RATE_LEAST_NS UINT64_C(50000000)

static struct {
    pthread_mutex_t state, probing;
    pthread_cond_t wake, done;
    bool handles_forks;

    /* of `probing` */
    struct sampler_slot slots[SAMPLER_PROBE_COUNT];

    /* of `state` */
    pthread_t thread;
    pid_t pid;             /* whose thread it is; 0: none */
    uintptr_t generation;  /* of the thread: an older one ends */
    uint64_t asleep_until; /* UINT64_MAX: nobody watches; 0: it works */
    struct watch *watches;
    unsigned poked;                 /* probes that somebody waits for */
    uint64_t due_ns[SAMPLER_PACES]; /* 0: at once */
    uint64_t read_ns[SAMPLER_PROBE_COUNT];
    uint64_t turns, samples; /* turns: every reading, for those who wait */
    double cpu_s;
    struct sampler_now last;
    double middle[QUANTITY_COUNT]; /* between earlier and now */
    uint64_t middle_ns[QUANTITY_COUNT];
} sampler = {.state = PTHREAD_MUTEX_INITIALIZER, .probing = PTHREAD_MUTEX_INITIALIZER};

/* ---- time: condition variables wait on CLOCK_MONOTONIC, samples are stamped by CLOCK_MONOTONIC_RAW ---- */

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int wait_until(pthread_cond_t *c, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / UINT64_C(1000000000)),
                         .tv_nsec = (long)(ns % UINT64_C(1000000000))};
    return pthread_cond_timedwait(c, &sampler.state, &t);
}

static void init_conditions(void)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler.wake, &a);
    pthread_cond_init(&sampler.done, &a);
    pthread_condattr_destroy(&a);
}

/* ---- reading the probes ---- */

static void open_slot(struct sampler_slot *s, const char *name)
{
    const struct probe_place here = {.root = "", .program = getpid()};
    tare_error err = TARE_ERROR_INIT;
    s->tried = true;
    s->open = probes_open(&s->probes, &name, 1, &here, &err) == TARE_OK;
    if (!s->open) snprintf(s->why, sizeof s->why, "%.*s", (int)sizeof s->why - 1, err.text);
}

/* The probes of `wanted`, a bit each. A probe that fails now is unknown now. */
static void read_probes(struct moment *m, unsigned wanted)
{
    unsigned got = 0;
    for (int i = 0; i < SAMPLER_PROBE_COUNT; i++) {
        struct sampler_slot *s = &sampler.slots[i];
        if (!(wanted >> i & 1)) continue;
        bool is_probe = i != SAMPLER_self && i != SAMPLER_sharing;
        s->probes.thorough = i == SAMPLER_process && wanted >> SAMPLER_sharing & 1;
        if (!s->tried && is_probe) open_slot(s, sampler_probe_names[i]);
        if (!s->open || probes_sample(&s->probes, NULL) == TARE_OK) got |= 1U << i;
        m->at_ns[i] = s->open ? s->probes.now.at_ns : clock_raw_ns();
    }
    moment_take(m, sampler.slots, got);
}

/* ---- who watches what ---- */

static double interval_of(const struct watch *w, enum sampler_pace p)
{
    return w->demand.interval_s[p] > INTERVAL_LEAST_S ? w->demand.interval_s[p] : INTERVAL_LEAST_S;
}

static unsigned of_pace(unsigned wants, enum sampler_pace p)
{
    unsigned out = 0;
    for (int i = 0; i < SAMPLER_PROBE_COUNT; i++)
        if (sampler_probe_pace[i] == p) out |= wants & 1U << i;
    return out;
}

/* The union of what is watched, each pace at the shortest interval that anybody asked for. */
static struct sampler_demand demand_now(void)
{
    struct sampler_demand d = {.wants = 0, .interval_s = {INFINITY, INFINITY, INFINITY}};
    for (const struct watch *w = sampler.watches; w; w = w->next) {
        d.wants |= w->demand.wants;
        for (int p = 0; p < SAMPLER_PACES; p++)
            if (of_pace(w->demand.wants, p)) d.interval_s[p] = fmin(d.interval_s[p], interval_of(w, p));
    }
    return d;
}

static void unlink_watch(struct watch *w)
{
    if (w->next) w->next->before = w->before;
    if (w->before)
        w->before->next = w->next;
    else
        sampler.watches = w->next;
    w->next = w->before = NULL;
    w->state = WATCH_DONE;
}

/* ---- what was read goes to all ---- */

static enum sampler_pace pace_of(int q)
{
    return sampler_probe_pace[sampler_probe_of((enum sampler_quantity)q)];
}

/* Three samples of each quantity are kept: now, one before it, one between the two. Rates are of the time since
 * `earlier`, which is 50 ms ago at least: the kernel counts processor time in steps of 10 ms. */
static void note_last(const struct moment *m)
{
    struct sampler_now *l = &sampler.last;
    for (int q = 0; q < QUANTITY_COUNT; q++) {
        if (isnan(m->value[q])) continue;
        l->now.value[q] = m->value[q];
        l->now_ns[q] = m->at_ns[sampler_probe_of((enum sampler_quantity)q)];
        if (l->now_ns[q] - sampler.middle_ns[q] < RATE_LEAST_NS) continue;
        l->earlier.value[q] = sampler.middle[q];
        l->earlier_ns[q] = sampler.middle_ns[q];
        sampler.middle[q] = l->now.value[q];
        sampler.middle_ns[q] = l->now_ns[q];
    }
}

/* A sample before the block, within it, or the first one after it. */
static void fold_quantity(struct watch *w, int q, double value, uint64_t at_ns)
{
    struct fold *f = &w->folds[q];
    if (at_ns <= w->begin_ns) {
        f->before = value;
        f->before_ns = at_ns;
    } else if (w->state == WATCH_CLOSING && at_ns > w->end_ns) {
        if (isnan(f->after)) f->after = value, f->after_ns = at_ns;
    } else {
        fold_add(f, value, at_ns);
        if (q == QUANTITY_RSS) course_add(&w->course, (double)(at_ns - w->begin_ns) / 1e9, value);
    }
}

/* A watch that is closing is done when a sample after its end has come at every pace that it wants. */
static void fold_moment(struct watch *w, const struct moment *m)
{
    for (int q = 0; q < QUANTITY_COUNT; q++)
        if (!isnan(m->value[q]))
            fold_quantity(w, q, m->value[q], m->at_ns[sampler_probe_of((enum sampler_quantity)q)]);
    if (w->state != WATCH_CLOSING) return;
    for (int i = 0; i < SAMPLER_PROBE_COUNT; i++)
        if (m->at_ns[i] > w->end_ns) w->left &= ~(1U << sampler_probe_pace[i]);
    if (!w->left) unlink_watch(w);
}

/* ---- the thread ---- */

/* Reads without `state`, so that blocks begin and end meanwhile; whoever began while it was read takes the moment as
 * one before or within the block, by its time. */
static void read_once(unsigned wanted)
{
    struct moment m = {.at_ns = {0}};
    pthread_mutex_unlock(&sampler.state);
    pthread_mutex_lock(&sampler.probing);
    read_probes(&m, wanted);
    pthread_mutex_unlock(&sampler.probing);
    uint64_t cpu_ns = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_lock(&sampler.state);
    note_last(&m);
    for (struct watch *w = sampler.watches, *next; w; w = next) {
        next = w->next;
        fold_moment(w, &m);
    }
    for (int i = 0; i < SAMPLER_PROBE_COUNT; i++)
        if (wanted >> i & 1) sampler.read_ns[i] = clock_raw_ns();
    sampler.cpu_s = (double)cpu_ns / 1e9;
    sampler.samples++;
    sampler.turns++;
    pthread_cond_broadcast(&sampler.done);
}

/* Which probes are to be read now, and when to look again. A turn that is missed is not made up for. */
static unsigned wanted_now(const struct sampler_demand *d, uint64_t now, uint64_t *next)
{
    unsigned wanted = sampler.poked;
    sampler.poked = 0;
    *next = UINT64_MAX;
    for (int p = 0; p < SAMPLER_PACES; p++) {
        if (!of_pace(d->wants, p)) continue;
        uint64_t interval = (uint64_t)(fmin(d->interval_s[p], 3600) * 1e9);
        if (sampler.due_ns[p] > now + interval) sampler.due_ns[p] = now + interval;
        if (sampler.due_ns[p] <= now) {
            wanted |= of_pace(d->wants, p);
            sampler.due_ns[p] =
                sampler.due_ns[p] + interval > now ? sampler.due_ns[p] + interval : now + interval;
        }
        if (sampler.due_ns[p] < *next) *next = sampler.due_ns[p];
    }
    return wanted;
}

/* Sleeps until something is due, or for good while nobody watches; `wake` comes for a new watch, a poke, or the end. */
static void *sample_forever(void *generation)
{
    pthread_setname_np(pthread_self(), "tare-sampler");
    pthread_mutex_lock(&sampler.state);
    while (sampler.generation == (uintptr_t)generation) {
        uint64_t next;
        struct sampler_demand d = demand_now();
        unsigned wanted = wanted_now(&d, monotonic_ns(), &next);
        sampler.asleep_until = wanted ? 0 : next;
        if (wanted)
            read_once(wanted);
        else if (next == UINT64_MAX)
            pthread_cond_wait(&sampler.wake, &sampler.state);
        else
            wait_until(&sampler.wake, next);
    }
    pthread_mutex_unlock(&sampler.state);
    return NULL;
}

/* ---- forks: the child has the memory, not the thread ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&sampler.probing);
    pthread_mutex_lock(&sampler.state);
}

static void after_in_parent(void)
{
    pthread_mutex_unlock(&sampler.state);
    pthread_mutex_unlock(&sampler.probing);
}

/* Files in /proc are the parent's, so all is opened anew. A driver's library must not be shut down by a
 * child: it is let go of. No thread is started here: many a child only lives to become another program. See
 * sampler_resume(). */
static void after_in_child(void)
{
    for (int i = 0; i < SAMPLER_PROBE_COUNT; i++) {
        if (sampler.slots[i].open && i != SAMPLER_gpu) probes_close(&sampler.slots[i].probes);
        sampler.slots[i] = (struct sampler_slot){.open = false};
    }
    sampler.pid = 0;
    sampler.poked = 0;
    sampler.samples = 0;
    sampler.asleep_until = 0;
    memset(sampler.read_ns, 0, sizeof sampler.read_ns);
    memset(sampler.due_ns, 0, sizeof sampler.due_ns);
    init_conditions();
    after_in_parent();
}

/* ---- starting and stopping; all with `state` held, but sampler_stop ---- */

/* The first time also what a process needs once. Signals are blocked while the thread is made, so that it gets none. */
static tare_status start_thread(tare_error *err)
{
    sigset_t all, old;
    if (sampler.pid == getpid()) return TARE_OK;
    if (!sampler.handles_forks) {
        init_conditions();
        pthread_atfork(before_fork, after_in_parent, after_in_child);
        for (int q = 0; q < QUANTITY_COUNT; q++)
            sampler.last.now.value[q] = sampler.last.earlier.value[q] = sampler.middle[q] = NAN;
        sampler.handles_forks = true;
    }
    sampler.asleep_until = 0;
    sigfillset(&all); /* signals are the program's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&sampler.thread, NULL, sample_forever, (void *)sampler.generation);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code) return error_set(err, TARE_BUSY, "the sampling thread cannot be started: %s", strerror(code));
    sampler.pid = getpid();
    return TARE_OK;
}

void sampler_stop(void)
{
    pthread_mutex_lock(&sampler.state);
    bool mine = sampler.pid == getpid();
    pthread_t thread = sampler.thread;
    sampler.generation++;
    sampler.pid = 0;
    if (mine) pthread_cond_broadcast(&sampler.wake);
    pthread_mutex_unlock(&sampler.state);
    if (mine) pthread_join(thread, NULL);
}

void sampler_resume(void)
{
    pthread_mutex_lock(&sampler.state);
    if (sampler.watches) start_thread(NULL);
    pthread_mutex_unlock(&sampler.state);
}

/* ---- watching ---- */

/* Is the thread asleep for longer than this watch may wait? Waking it costs a switch of threads. */
static bool must_wake(const struct watch *w)
{
    double soonest = INFINITY;
    for (int p = 0; p < SAMPLER_PACES; p++)
        if (of_pace(w->demand.wants, p)) soonest = fmin(soonest, interval_of(w, p));
    return sampler.asleep_until == UINT64_MAX ||
           (sampler.asleep_until &&
            monotonic_ns() + (uint64_t)(fmin(soonest, 3600) * 1e9) < sampler.asleep_until);
}

/* The last sample from before the block is its left edge, if it is not older than two intervals. */
tare_status sampler_begin(struct watch *w, const struct sampler_demand *d, tare_error *err)
{
    pthread_mutex_lock(&sampler.state);
    tare_status s = start_thread(err);
    w->demand = *d;
    w->state = s == TARE_OK ? WATCH_OPEN : WATCH_DONE;
    w->begin_ns = clock_raw_ns();
    for (int q = 0; q < QUANTITY_COUNT; q++) {
        /* A sample of long ago is no edge of this block. */
        uint64_t at = sampler.last.now_ns[q];
        double age_s = (double)(w->begin_ns - at) / 1e9;
        bool near = at && age_s < 2 * interval_of(w, pace_of(q));
        fold_begin(&w->folds[q], near ? sampler.last.now.value[q] : NAN, near ? at : 0);
    }
    for (int p = 0; p < SAMPLER_PACES; p++)
        if (of_pace(d->wants, p)) w->left |= 1U << p;
    if (s == TARE_OK) {
        w->next = sampler.watches;
        if (w->next) w->next->before = w;
        sampler.watches = w;
        if (must_wake(w)) pthread_cond_signal(&sampler.wake);
    }
    pthread_mutex_unlock(&sampler.state);
    return s;
}

/* The watch stays in the list until a sample after its end has come: the edges of short blocks are known then. */
void sampler_end(struct watch *w)
{
    pthread_mutex_lock(&sampler.state);
    if (w->state == WATCH_OPEN) {
        w->end_ns = clock_raw_ns();
        w->state = WATCH_CLOSING;
        if (!w->left) unlink_watch(w);
    }
    pthread_mutex_unlock(&sampler.state);
}

/* Ask for a reading of `wants` and wait until `enough` says so, or a second has passed; `state` is held. */
static void poke_until(unsigned wants, bool (*enough)(const void *), const void *of)
{
    uint64_t until = monotonic_ns() + WAIT_NS;
    while (!enough(of)) {
        sampler.poked |= wants;
        pthread_cond_signal(&sampler.wake);
        if (wait_until(&sampler.done, until) == ETIMEDOUT) return;
    }
}

static bool is_done(const void *w)
{
    return ((const struct watch *)w)->state == WATCH_DONE;
}

void sampler_settle(struct watch *w, bool wait)
{
    sampler_end(w);
    pthread_mutex_lock(&sampler.state);
    if (wait && w->state == WATCH_CLOSING && sampler.pid == getpid()) poke_until(w->demand.wants, is_done, w);
    if (w->state == WATCH_CLOSING) unlink_watch(w);
    pthread_mutex_unlock(&sampler.state);
}

struct freshness {
    unsigned wants;
    uint64_t since_ns;
};

static bool is_fresh(const void *of)
{
    const struct freshness *f = of;
    for (int i = 0; i < SAMPLER_PROBE_COUNT; i++)
        if (f->wants >> i & 1 && sampler.read_ns[i] < f->since_ns) return false;
    return true;
}

tare_status sampler_look(struct sampler_now *out, const struct sampler_demand *d, double fresh_s,
                         tare_error *err)
{
    uint64_t now = clock_raw_ns(), age = (uint64_t)(fmin(fmax(fresh_s, 0), 3600) * 1e9);
    struct freshness f = {d->wants, now > age ? now - age : 1};
    pthread_mutex_lock(&sampler.state);
    tare_status s = start_thread(err);
    if (s == TARE_OK) poke_until(d->wants, is_fresh, &f);
    *out = sampler.last;
    pthread_mutex_unlock(&sampler.state);
    return s;
}

struct sampler_cost sampler_cost(void)
{
    pthread_mutex_lock(&sampler.state);
    struct sampler_cost c = {sampler.samples, sampler.cpu_s, sampler.pid == getpid(),
                             sampler.asleep_until == UINT64_MAX};
    pthread_mutex_unlock(&sampler.state);
    return c;
}

void sampler_blind(struct buf *out)
{
    pthread_mutex_lock(&sampler.probing);
    for (int i = 0; i < SAMPLER_PROBE_COUNT; i++) {
        const struct sampler_slot *s = &sampler.slots[i];
        if (s->open)
            buf_add_str(out, s->probes.blind.data);
        else if (s->tried)
            buf_printf(out, "%s\n", s->why);
    }
    pthread_mutex_unlock(&sampler.probing);
}
