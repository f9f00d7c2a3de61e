/* SPDX-License-Identifier: MIT
 * load_closed.c - the closed loop: each worker starts its next run when its last one is done. The only code
 * of ours between two runs is closed_loop(): it allocates nothing, locks nothing and calls nothing but the
 * clock and, after runs long enough to bear it, getrusage. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/engine.h"

enum { LANES_ROOM = 65536, LANE_LEAST = 1024 }; /* times between two emptyings, over all workers */

tare_status lanes_open(struct bench *b, tare_error *err)
{
    size_t room = LANES_ROOM / b->workers;
    if (room < LANE_LEAST) room = LANE_LEAST;
    b->lanes = mem_new(b->workers, sizeof *b->lanes);
    if (!b->lanes) return error_nomem(err, "%u workers", b->workers);
    for (unsigned i = 0; i < b->workers; i++) {
        b->lanes[i].room = room;
        b->lanes[i].at = mem_new(room, sizeof *b->lanes[i].at);
        if (!b->lanes[i].at) return error_nomem(err, "%u workers", b->workers);
        memset(b->lanes[i].at, 1, room * sizeof *b->lanes[i].at); /* in RAM before time counts */
    }
    size_t most = WARMUP_KEPT + room * b->workers;
    tare_status s = vec_reserve(&b->warm, most, err);
    if (s == TARE_OK) memset(b->warm.items, 1, most * sizeof *b->warm.items);
    return s;
}

void lanes_close(struct bench *b)
{
    for (unsigned i = 0; b->lanes && i < b->workers; i++) mem_free(b->lanes[i].at);
    mem_free(b->lanes);
    b->lanes = NULL;
    vec_release(&b->warm);
}

void usage_add(struct usage *into, const struct subject_cost *cost)
{
    into->runs++;
    procstat_add(&into->sum.used, &cost->used);
    if (cost->rss_peak > into->sum.rss_peak) into->sum.rss_peak = cost->rss_peak;
}

void usage_merge(struct usage *into, const struct usage *from)
{
    usage_add(into, &from->sum);
    into->runs += from->runs - 1;
}

/* ---- the loop ---- */

struct closed_job {
    struct instance *instance;
    const struct subject_ops *ops;
    struct lane *lanes;
    uint64_t length_ns;
    size_t room; /* runs of each worker at most */
    const struct bench_plan *plan;
    uint64_t watch_ns; /* read switches after runs as long as this */
};

/* A run that failed is an outcome, unless there is nothing left to run. */
static bool is_over(const struct closed_job *job)
{
    const struct bench_plan *p = job->plan;
    return (p->interrupted && *p->interrupted) || (p->ended && *p->ended) ||
           (job->ops->is_lost && job->ops->is_lost(job->instance));
}

/* The run that ends it all is the last one, not one of those that failed before. */
static void fail_last(struct lane *l, const tare_error *why)
{
    if (l->n_failed) l->err = *why;
    l->failed_at = 0;
}

static uint64_t count_switches(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? (uint64_t)use.ru_nivcsw : 0; /* of all threads: 0.5 us */
}

/* A subject that runs elsewhere counts its own switches: ours would say nothing about the run. */
static void closed_loop(void *ctx, unsigned worker)
{
    const struct closed_job *job = ctx;
    const struct subject_ops *ops = job->ops;
    struct lane *l = &job->lanes[worker];
    struct subject_cost cost = {0};
    tare_error unheard = TARE_ERROR_INIT;
    bool counts_switches =
        ops->runs_in_child || ops->process; /* the subject does: ours say nothing about the run */
    uint64_t (*now)(void) = bench_machine.now;
    uint64_t seen = count_switches(), end = l->began = now(), until = l->began + job->length_ns;
    while (l->n - l->n_failed < job->room && l->n < l->room) {
        tare_error *heard = l->n_failed ? &unheard : &l->err;
        if (ops->before_run && (l->failed = ops->before_run(job->instance, worker, heard)) < 0) {
            fail_last(l, heard);
            break;
        }
        cost.known = false;
        cost.wall_ns = cost.used.involuntary_switches = 0;
        uint64_t start = now();
        l->failed = ops->run(job->instance, worker, &cost, heard);
        end = now();
        if (l->failed < 0 && is_over(job)) {
            fail_last(l, heard);
            break;
        }
        struct stamp *stamp = &l->at[l->n++];
        *stamp = (struct stamp){.start = start, .ns = cost.wall_ns ? cost.wall_ns : end - start};
        if (l->failed < 0) {
            stamp->failed = true;
            if (!l->n_failed++) l->failed_at = l->n;
            if (end >= until || l->n_failed >= BENCH_HOPELESS + (l->n - l->n_failed)) break;
            continue;
        }
        stamp->switched = counts_switches && cost.used.involuntary_switches > 0;
        if (cost.known) {
            usage_add(&l->usage, &cost);
        } else if (!counts_switches && stamp->ns >= job->watch_ns) {
            uint64_t before = seen;
            stamp->switched = (seen = count_switches()) != before;
        }
        if (end >= until || (job->plan->interrupted && *job->plan->interrupted)) break;
    }
    l->ended = end;
}

/* ---- around it ---- */

void lanes_reset(struct bench *b)
{
    for (unsigned i = 0; i < b->workers; i++) {
        struct lane *l = &b->lanes[i];
        l->n = 0;
        l->usage = (struct usage){0};
        l->failed = TARE_OK;
        l->n_failed = 0;
        l->failed_at = 0;
        l->err.text[0] = 0;
    }
}

/* Workers mostly fail for the same cause; one error is enough. In an open loop failed_at orders them by
 * arrival; in a closed one it is 0 for all, and the earliest end decides. */
tare_status lanes_failure(struct bench *b, struct case_work *w, tare_error *err)
{
    const struct lane *first = NULL;
    for (unsigned i = 0; i < b->workers; i++) {
        const struct lane *l = &b->lanes[i];
        bool sooner = !first || l->failed_at < first->failed_at ||
                      (l->failed_at == first->failed_at && l->ended < first->ended);
        if (l->failed < 0 && sooner) first = l;
    }
    if (!first || bench_interrupted(b))
        return TARE_OK; /* a run that the interruption ended is just not there */
    uint64_t number = w->runs + (first->failed_at ? first->failed_at : first->n + 1);
    const char *text = first->err.text[0] ? first->err.text : tare_status_text(first->failed);
    if (b->workers == 1)
        return error_set(err, first->failed, "run %llu: %s", (unsigned long long)number, text);
    return error_set(err, first->failed, "run %llu of worker %zu: %s", (unsigned long long)number,
                     (size_t)(first - b->lanes), text);
}

static int by_start(const void *a, const void *b)
{
    const struct stamp *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static tare_status append(const struct stamp *at, size_t n, const struct stretch *to, tare_error *err)
{
    struct times *into = to->into;
    tare_status s = vec_reserve(into, into->n + n, err);
    for (size_t i = 0; s == TARE_OK && i < n; i++) {
        if (at[i].failed) {
            if (to->waits) s = vec_push(to->waits, ((struct wait){at[i].ns, into->n, true}), err);
            continue;
        }
        if (to->switched && at[i].switched) s = vec_push(to->switched, (uint64_t)into->n, err);
        into->items[into->n++] = at[i].ns;
    }
    return s;
}

/* Append the lanes' times in order of start. */
static tare_status lanes_drain(struct bench *b, const struct stretch *to, tare_error *err)
{
    size_t n = 0;
    if (b->workers == 1) return append(b->lanes[0].at, b->lanes[0].n, to, err);
    for (unsigned i = 0; i < b->workers; i++) n += b->lanes[i].n;
    struct stamp *all = mem_new(n, sizeof *all);
    if (!all) return error_nomem(err, "%zu run times", n);
    for (size_t i = 0, at = 0; i < b->workers; at += b->lanes[i++].n)
        memcpy(all + at, b->lanes[i].at, b->lanes[i].n * sizeof *all);
    qsort(all, n, sizeof *all, by_start);
    tare_status s = append(all, n, to, err);
    mem_free(all);
    return s;
}

/* Workers end at different moments, so each is taken at its own rate: n / sum of (n_i / time_i). The time of runs
 * that failed is spent, too. Where
 * something is done between runs, or around them, only the runs count. But not where a subject tells the time
 * of runs side by side: they may wait for each other between runs (Python's do), and that is theirs. */
static uint64_t busy_time(const struct bench *b, bool runs_only)
{
    double rate = 0, n = 0, longest = 0;
    for (unsigned i = 0; i < b->workers; i++) {
        const struct lane *l = &b->lanes[i];
        double took = (double)(l->ended - l->began);
        if (runs_only) took = 0;
        for (size_t k = 0; runs_only && k < l->n; k++) took += (double)l->at[k].ns;
        n += (double)(l->n - l->n_failed);
        if (took > 0) rate += (double)(l->n - l->n_failed) / took;
        if (l->n && took > longest) longest = took;
    }
    return (uint64_t)((rate > 0 ? n / rate : longest) + 0.5);
}

static tare_status keep_failure(struct bench *b, struct case_work *w, const tare_error *first, bool hopeless,
                                tare_error *err)
{
    if (hopeless) return error_set(err, first->status, "%s", w->failure ? w->failure : first->text);
    if (!w->failure && !(w->failure = arena_str(&b->run->arena, first->text)))
        return error_nomem(err, "case %s", w->what->name);
    return TARE_OK;
}

/* A failed run is counted, and what the first said is kept; it ends the case when BENCH_HOPELESS more have failed than
 * were served. What ended a lane ends the case. */
static tare_status count_failures(struct bench *b, struct case_work *w, tare_error *err)
{
    tare_error first = TARE_ERROR_INIT;
    size_t failed = 0, served = 0;
    bool over = false;
    for (unsigned i = 0; i < b->workers; i++) {
        failed += b->lanes[i].n_failed;
        served += b->lanes[i].n - b->lanes[i].n_failed;
        over = over || (b->lanes[i].failed < 0 && !b->lanes[i].failed_at);
        if (b->lanes[i].n_failed && b->lanes[i].failed == TARE_OK)
            b->lanes[i].failed = b->lanes[i].err.status;
    }
    tare_status s = lanes_failure(b, w, &first);
    uint64_t all_failed = w->n_failed + failed, all_served = w->runs - w->n_failed + served;
    if (s < 0 && over) return error_set(err, s, "%s", first.text);
    return s < 0 ? keep_failure(b, w, &first, all_failed >= BENCH_HOPELESS + all_served, err) : TARE_OK;
}

/* The reading after it is taken before anything is put away: our own memory is nobody's growth. */
tare_status closed_slice(struct bench *b, struct case_work *w, struct stretch *stretch, tare_error *err)
{
    size_t room = b->lanes[0].room;
    uint64_t each = (stretch->runs + b->workers - 1) / b->workers;
    if (stretch->runs && each < room) room = (size_t)each;
    const struct subject_ops *ops = w->instance->subject->ops;
    struct closed_job job = {w->instance, ops, b->lanes, stretch->ns, room, b->plan, 0};
    uint64_t typical = typical_ns(w) * b->workers; /* side by side, each run takes longer */
    job.watch_ns = typical >= WATCH_EACH_NS ? 0 : typical + typical / 2;
    lanes_reset(b);
    pool_run(&b->pool, closed_loop, &job);
    stretch->busy_ns = busy_time(b, ops->before_run || (ops->reports_time && b->workers == 1));
    tare_status s = count_failures(b, w, err);
    if (s == TARE_OK && stretch->after) s = reading_take(w->instance->subject, stretch->after, err);
    if (s < 0 || (s = lanes_drain(b, stretch, err)) < 0) return s;
    for (unsigned i = 0; i < b->workers; i++) {
        w->runs += b->lanes[i].n;
        w->n_failed += b->lanes[i].n_failed;
        if (b->lanes[i].usage.runs) usage_merge(&w->usage, &b->lanes[i].usage);
    }
    return TARE_OK;
}

/* ---- our own cost ---- */

static tare_status run_nothing(struct instance *i, unsigned worker, struct subject_cost *cost,
                               tare_error *err)
{
    (void)i, (void)worker, (void)cost, (void)err;
    return TARE_OK;
}

uint64_t closed_self_ns(struct bench *b, bool watching)
{
    enum { BATCHES = 15, RUNS = 1000 };
    static const struct subject_ops nothing = {.type = "nothing", .run = run_nothing};
    struct subject subject = {&nothing};
    struct instance instance = {&subject};
    static const struct bench_plan plan = {0};
    struct closed_job job = {
        &instance, &nothing, b->lanes, UINT64_MAX / 2, RUNS, &plan, watching ? 0 : UINT64_MAX};
    double each[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        lanes_reset(b);
        closed_loop(&job, 0);
        each[i] = (double)(b->lanes[0].ended - b->lanes[0].began) / RUNS;
    }
    stats_sort(each, BATCHES);
    return (uint64_t)(stats_median_sorted(each, BATCHES) + 0.5);
}
