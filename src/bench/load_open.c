/* SPDX-License-Identifier: MIT
 * load_open.c - the open loop: runs start on a schedule made beforehand, whether the ones before are done or
 * not, as users do. Latency counts from the planned start, so a stall is paid for by everyone who would have
 * come during it (no coordinated omission). Workers take arrivals in order: a queue with as many servers as
 * workers. An arrival that was due and not served, or failed, is no hole in the sample: it took at least as long as it
 * waited (w->waits), and longer than any that was served, for all that is known. */
#include <math.h>
#include <string.h>

#include "bench/engine.h"

enum {
    RATE_BATCHES = 10,
    LATE_NS = 100000,
    NAP_NS = 100000000,
    HOPELESS = 10 /* so many failed and none was served: it will not work */
};
#define NOT_SERVED UINT64_MAX
#define FAILED (UINT64_C(1) << 63) /* the rest of it is the time until then */

struct open_job {
    struct instance *instance;
    struct lane *lanes;
    const struct moments *planned;
    uint64_t *latency; /* by arrival; NOT_SERVED, FAILED | ns */
    uint64_t origin, close;
    const volatile sig_atomic_t *interrupted;
    /* shared by the workers: */
    size_t next;
    uint64_t late, queued, longest_delay, served, failed;
};

static bool cut_short(const struct open_job *job)
{
    return (job->interrupted && *job->interrupted) ||
           (__atomic_load_n(&job->failed, __ATOMIC_RELAXED) >= HOPELESS &&
            __atomic_load_n(&job->served, __ATOMIC_RELAXED) == 0);
}

static void raise_to(uint64_t *most, uint64_t v)
{
    uint64_t seen = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (v > seen && !__atomic_compare_exchange_n(most, &seen, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

/* Wait for the planned moment, awake often enough to hear of an interruption. False: it was cut short. */
static bool await_start(const struct open_job *job, uint64_t planned)
{
    for (uint64_t now; (now = bench_machine.now()) < planned;) {
        if (cut_short(job)) return false;
        bench_machine.pause_until(planned - now > NAP_NS ? now + NAP_NS : planned);
    }
    return true;
}

/* The error of the first run that failed stays in the lane. */
static void note_failure(struct open_job *job, struct lane *l, tare_status s, size_t i, uint64_t ns)
{
    if (job->interrupted && *job->interrupted) return; /* it is what ended the run */
    job->latency[i] = FAILED | ns;
    __atomic_add_fetch(&job->failed, 1, __ATOMIC_RELAXED);
    if (l->failed < 0) return;
    l->failed = s;
    l->failed_at = i + 1;
}

/* False: the window closed, or was cut short. A delay while a worker was free is ours or the machine's, not a queue. */
static bool serve_arrival(struct open_job *job, struct lane *l, unsigned worker, size_t i)
{
    const struct subject_ops *ops = job->instance->subject->ops;
    struct subject_cost cost = {0};
    tare_error unheard = TARE_ERROR_INIT, *err = l->failed < 0 ? &unheard : &l->err;
    uint64_t planned = job->origin + job->planned->at.items[i], free_at = bench_machine.now();
    if (free_at >= job->close || cut_short(job) || !await_start(job, planned)) return false;
    tare_status s = ops->before_run ? ops->before_run(job->instance, worker, err) : TARE_OK;
    uint64_t start = bench_machine.now();
    if (s == TARE_OK) s = ops->run(job->instance, worker, &cost, err);
    l->ended = bench_machine.now();
    if (free_at > planned)
        __atomic_add_fetch(&job->queued, 1, __ATOMIC_RELAXED);
    else if (start - planned > LATE_NS) /* a worker was free: the delay is ours or the machine's */
        __atomic_add_fetch(&job->late, 1, __ATOMIC_RELAXED);
    raise_to(&job->longest_delay, start - planned);
    uint64_t ns = cost.wall_ns ? start - planned + cost.wall_ns : l->ended - planned;
    if (s < 0) {
        note_failure(job, l, s, i, ns);
        return true;
    }
    job->latency[i] = ns;
    __atomic_add_fetch(&job->served, 1, __ATOMIC_RELAXED);
    l->n++;
    if (cost.known) usage_add(&l->usage, &cost);
    return true;
}

static void open_loop(void *ctx, unsigned worker)
{
    struct open_job *job = ctx;
    struct lane *l = &job->lanes[worker];
    for (;;) {
        size_t i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (i >= job->planned->at.n || !serve_arrival(job, l, worker, i)) break;
    }
}

/* ---- after the window ---- */

/* Rates of tenths of the window: completions in each, for the interval of the throughput. */
static tare_status add_slices(struct case_work *w, const struct open_job *job, uint64_t window,
                              tare_error *err)
{
    uint64_t done[RATE_BATCHES] = {0}, each = window / RATE_BATCHES;
    size_t first = 0;
    for (size_t i = 0; i < job->planned->at.n; i++) {
        if (job->latency[i] & FAILED) continue; /* NOT_SERVED has that bit, too */
        uint64_t when = (job->planned->at.items[i] + job->latency[i]) / (each ? each : 1);
        done[when < RATE_BATCHES ? when : RATE_BATCHES - 1]++;
    }
    for (int k = 0; k < RATE_BATCHES; k++) {
        struct slice slice = {.first = first, .n = (size_t)done[k], .wall_ns = each, .runs = done[k]};
        tare_status s = vec_push(&w->slices, slice, err);
        if (s < 0) return s;
        first += (size_t)done[k];
    }
    return TARE_OK;
}

/* So many wait at the end that p95 falls on one of them, and they are more than are just being served. */
static bool is_overloaded(uint64_t waiting, uint64_t due, unsigned workers)
{
    return waiting > workers && waiting > due / 20;
}

/* Sort the arrivals that were due until `end` into served ones and those that waited in vain. */
static tare_status take_arrivals(struct case_work *w, const struct open_job *job, uint64_t end,
                                 tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < job->planned->at.n; i++) {
        uint64_t ns = job->latency[i], planned = job->planned->at.items[i];
        if (ns == NOT_SERVED && planned > end) continue;
        struct wait wait = {ns == NOT_SERVED ? end - planned : ns & ~FAILED, w->samples.n, ns != NOT_SERVED};
        s = ns & FAILED ? vec_push(&w->waits, wait, err) : vec_push(&w->samples, ns, err);
    }
    return s;
}

/* Per second of a time in ns. */
static struct known_f64 per_second(size_t n, uint64_t ns)
{
    return known_f64(ns ? (double)n * 1e9 / (double)ns : 0);
}

/* `window`: how long until the last run had ended; `arriving`: how long there were arrivals. */
static tare_status conclude_window(struct bench *b, struct case_work *w, const struct open_job *job,
                                   tare_error *err)
{
    const struct moments *planned = job->planned;
    bool all = b->plan->max_runs && planned->at.n == b->plan->max_runs; /* the runs ended it, not the time */
    uint64_t end = all ? job->origin : job->close, arriving = b->plan->budget_ns;
    for (unsigned i = 0; i < b->workers; i++) {
        const struct lane *l = &b->lanes[i];
        if (l->n && l->ended > end) end = l->ended;
        w->runs += l->n;
        if (l->usage.runs) usage_merge(&w->usage, &l->usage);
    }
    uint64_t now = bench_machine.now();
    if (cut_short(job)) end = now > job->origin ? now : job->origin; /* perhaps before the first was due */
    uint64_t window = end - job->origin;
    if (all) arriving = planned->at.items[planned->at.n - 1] + (uint64_t)(1e9 / b->plan->rate);
    if (cut_short(job) && window < arriving) arriving = window;
    tare_status s = take_arrivals(w, job, window, err);
    if (s < 0) return s;
    size_t served = w->samples.n, due = served + w->waits.n;
    w->open = (struct run_open_loop){
        .known = true,
        .offered = per_second(due, arriving),
        .achieved = per_second(served, window),
        .due = known_u64(due),
        .served = known_u64(served),
        .failed = known_u64(job->failed),
        .queued = known_u64(job->queued),
        .late_starts = known_u64(job->late),
        .longest_delay_ns = known_u64(job->longest_delay),
        .overloaded = known_bool(is_overloaded(w->waits.n - job->failed, due, b->workers)),
    };
    w->spent_ns += window;
    return add_slices(w, job, window, err);
}

/* Failed runs are outcomes; that all failed is the end of the case. */
static tare_status judge_failures(struct bench *b, struct case_work *w, const struct open_job *job,
                                  tare_error *err)
{
    tare_error first = TARE_ERROR_INIT;
    tare_status s = job->failed ? lanes_failure(b, w, &first) : TARE_OK;
    if (s < 0 && job->served == 0) return error_set(err, s, "%s", first.text);
    if (s < 0 && !(w->failure = arena_str(&b->run->arena, first.text)))
        return error_nomem(err, "case %s", w->what->name);
    return TARE_OK;
}

/* Everything is allocated before the first arrival is due. */
static tare_status run_window(struct bench *b, struct case_work *w, const struct moments *planned,
                              uint64_t *latency, tare_error *err)
{
    for (size_t i = 0; i < planned->at.n; i++) latency[i] = NOT_SERVED;
    lanes_reset(b);
    struct open_job job = {.instance = w->instance,
                           .lanes = b->lanes,
                           .planned = planned,
                           .latency = latency,
                           .origin = bench_machine.now() + 1000000, /* time to wake the workers */
                           .interrupted = b->plan->interrupted};
    job.close = job.origin + b->plan->budget_ns;
    struct reading before, after;
    struct slice whole = {0};
    tare_status s = reading_take(w->instance->subject, &before, err);
    if (s < 0) return s;
    pool_run(&b->pool, open_loop, &job);
    if ((s = judge_failures(b, w, &job, err)) < 0) return s;
    if ((s = reading_take(w->instance->subject, &after, err)) < 0) return s;
    disturbance_add(w, &whole, &before, &after);
    memory_slice(&w->memory, &whole, &before, &after);
    return conclude_window(b, w, &job, err);
}

tare_status open_window(struct bench *b, struct case_work *w, tare_error *err)
{
    struct moments planned = {VEC_INIT};
    struct arrivals arrivals = {.kind = b->plan->arrivals,
                                .rate = b->plan->rate,
                                .window_ns = b->plan->budget_ns,
                                .seed = rng_next(&b->rng),
                                .most = b->plan->max_runs};
    tare_status s = arrivals_make(&arrivals, &planned, err);
    uint64_t *latency = NULL;
    if (s == TARE_OK && planned.at.n == 0)
        s = error_set(err, TARE_INVALID, "%g runs per second: none falls into a budget of %g s",
                      b->plan->rate, (double)b->plan->budget_ns / 1e9);
    if (s == TARE_OK && !(latency = mem_new(planned.at.n, sizeof *latency)))
        s = error_nomem(err, "%zu runs", planned.at.n);
    if (s == TARE_OK) s = vec_reserve(&w->samples, planned.at.n, err);
    if (s == TARE_OK) s = run_window(b, w, &planned, latency, err);
    mem_free(latency);
    vec_release(&planned.at);
    return s;
}
