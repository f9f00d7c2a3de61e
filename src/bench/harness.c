/* SPDX-License-Identifier: MIT
 * harness.c - bench_run(): phase 1 loads each case, runs it once and warms it up, one at a time; phase 2
 * (rounds.c) measures them. As many cases as fit into memory live side by side; what does not fit makes a
 * block of its own. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/engine.h"
#include "bench/record.h"
#include "bench/steady.h"
#include "core/buf.h"
#include "subject/ort_session.h"

enum {
    BLOCK_MOST = 32,
    WORKERS_MOST = 1024,
    WARMUP_RUNS = 3,
    SLOW_MIN_RUNS = 5,
    SAMPLES_LEAST = 1 << 14, /* of a case at most, unless the plan says more: over all cases a million */
    SAMPLES_MOST = 1 << 18,
    SAMPLES_ALL = 1 << 20,
    SAMPLES_CEILING = 1 << 24
};
#define MEMORY_SHARE 0.6 /* of what is available may be taken by cases that live side by side */

bool bench_interrupted(const struct bench *b)
{
    return b->plan->interrupted && *b->plan->interrupted;
}

/* ---- phase 1: load, first run, warm-up ---- */

/* Enough warm runs? `times` are all since the first. */
static tare_status is_warm(struct bench *b, struct case_work *w, const struct times *times, bool *warm,
                           tare_error *err)
{
    uint64_t tenth = b->plan->budget_ns / 10, least = tenth < NS_PER_S / 2 ? tenth : NS_PER_S / 2;
    *warm = false;
    if (times->n < WARMUP_RUNS || w->warmup_ns < least) return TARE_OK;
    if (times->n < WARMUP_LEAST && w->warmup_ns / times->n < b->plan->budget_ns / (4 * WARMUP_LEAST))
        return TARE_OK; /* too few to judge, and more are cheap */
    struct warmup_verdict v;
    tare_status s = warmup_judge(times->items, times->n, &v, err);
    if (s < 0) return s;
    w->judged = v.judged;
    w->steady = v.steady;
    *warm = !v.judged || v.steady || w->warmup_ns >= b->plan->budget_ns / 4;
    return TARE_OK;
}

/* Of very many runs the latest tell whether the end is steady; our own memory must not grow beside the
 * subject's. */
static void forget_oldest(struct times *times)
{
    if (times->n <= WARMUP_KEPT) return;
    memmove(times->items, times->items + times->n - WARMUP_KEPT, WARMUP_KEPT * sizeof *times->items);
    times->n = WARMUP_KEPT;
}

/* Runs in slices of a hundredth of the budget. The judgement is asked at counts that grow by a share
 * (stopping_next()) and not after each slice: each costs time, and asking often enough would find "steady"
 * by chance. */
static tare_status warm_until_steady(struct bench *b, struct case_work *w, tare_error *err)
{
    struct times *times = &b->warm;
    bool warm = false;
    size_t look_at = WARMUP_RUNS;
    while (!warm && !bench_interrupted(b)) {
        uint64_t before = bench_machine.now();
        size_t had = times->n;
        struct stretch slice = {.ns = b->plan->budget_ns / 100, .into = times};
        tare_status s = closed_slice(b, w, &slice, err);
        w->warmup_ns += bench_machine.now() - before;
        if (s < 0) return s;
        w->warmup_runs += times->n - had;
        forget_oldest(times);
        bench_tell(b, w, "warming up");
        if (times->n < look_at && times->n < WARMUP_KEPT) continue;
        if ((s = is_warm(b, w, times, &warm, err)) < 0) return s;
        if (w->judged) look_at = stopping_next(times->n);
    }
    return TARE_OK;
}

static tare_status warm_as_told(struct bench *b, struct case_work *w, tare_error *err)
{
    uint64_t left = (uint64_t)b->plan->warmup_runs;
    tare_status s = TARE_OK;
    while (s == TARE_OK && left > 0 && !bench_interrupted(b)) {
        uint64_t before = bench_machine.now();
        struct stretch rest = {.ns = UINT64_MAX / 2, .runs = left, .into = &b->warm};
        vec_clear(&b->warm);
        s = closed_slice(b, w, &rest, err);
        w->warmup_ns += bench_machine.now() - before;
        w->warmup_runs += b->warm.n;
        left -= b->warm.n < left ? b->warm.n : left; /* several workers end evenly: there may be some more */
    }
    return s;
}

/* Under open-loop load failed runs are outcomes: one ends the warm-up, not the case. */
static tare_status warm_up(struct bench *b, struct case_work *w, tare_error *err)
{
    bench_tell(b, w, "warming up");
    vec_clear(&b->warm);
    if (w->instance->subject->ops->load) return requests_warm(b, w, err);
    tare_status s = b->plan->warmup_runs < 0 ? warm_until_steady(b, w, err) : warm_as_told(b, w, err);
    return b->plan->load == BENCH_OPEN ? TARE_OK : s;
}

/* One run; where it fails the next one is tried, unless there is nothing left to run. */
static tare_status try_first(struct bench *b, struct case_work *w, struct subject_cost *cost, tare_error *err)
{
    const struct subject_ops *ops = w->instance->subject->ops;
    tare_error inner = TARE_ERROR_INIT;
    tare_status s = ops->before_run ? ops->before_run(w->instance, 0, &inner) : TARE_OK;
    bool began = s == TARE_OK;
    uint64_t start = bench_machine.now();
    if (began) s = ops->run(w->instance, 0, cost, &inner);
    w->first_run_ns = cost->wall_ns ? cost->wall_ns : bench_machine.now() - start;
    w->runs++;
    if (s == TARE_OK || bench_interrupted(b)) return TARE_OK;
    if (!w->failure) w->failure = arena_printf(&b->run->arena, "run 1: %s", inner.text);
    if (!w->failure) return error_nomem(err, "case %s", w->what->name);
    bool over = (b->plan->ended && *b->plan->ended) || (ops->is_lost && ops->is_lost(w->instance));
    if (!began || over || ++w->n_failed >= BENCH_HOPELESS) return error_set(err, s, "%s", w->failure);
    return try_first(b, w, cost, err);
}

/* The first run stands by itself in the document; an accuracy check takes its outputs. */
static tare_status first_run(struct bench *b, struct case_work *w, tare_error *err)
{
    const struct subject_ops *ops = w->instance->subject->ops;
    struct subject_cost cost = {0};
    tare_error inner = TARE_ERROR_INIT;
    tare_status s = try_first(b, w, &cost, err);
    if (s < 0) return s;
    if (cost.known) usage_add(&w->usage, &cost);
    w->warmup_runs = 1;
    w->warmup_ns = w->first_run_ns;
    if (!b->plan->keep_outputs || !ops->outputs) return TARE_OK;
    if ((s = ops->outputs(w->instance, &b->plan->outputs[w - b->cases], &inner)) < 0)
        return error_set(err, s, "outputs: %s", inner.text);
    return TARE_OK;
}

/* A percentile that is judged gets its runs, though that takes longer than the budget; not if very much longer. */
static uint64_t runs_for_tail(const struct bench_plan *p, uint64_t tail, double run_ns)
{
    enum { BUDGETS_MOST = 3 };
    return (double)tail * run_ns <= BUDGETS_MOST * (double)p->budget_ns ? tail : 0;
}

/* How many runs at least and at most: a case keeps all its samples, so that all cases together have an upper limit;
 * of runs that take a tenth of the budget and more, few must do, unless the user asked for more. */
static void set_limits(struct bench *b, struct case_work *w)
{
    const struct bench_plan *p = b->plan;
    uint64_t cap = SAMPLES_ALL / b->n_cases, typical = w->warmup_ns / (w->warmup_runs ? w->warmup_runs : 1);
    if (cap > SAMPLES_MOST) cap = SAMPLES_MOST;
    if (cap < SAMPLES_LEAST) cap = SAMPLES_LEAST;
    w->max_runs = p->max_runs ? p->max_runs : cap;
    if (w->max_runs > SAMPLES_CEILING) w->max_runs = SAMPLES_CEILING;
    w->min_runs = p->min_runs ? p->min_runs : 1;
    bool slow = typical > p->budget_ns / 10 && !p->min_runs_firm;
    if (slow && w->min_runs > SLOW_MIN_RUNS) w->min_runs = SLOW_MIN_RUNS;
    uint64_t tail = p->tail > 0.5 ? summary_samples_needed(p->tail) : 0;
    uint64_t judged = runs_for_tail(p, tail, (double)typical);
    if (judged > w->min_runs && !p->min_runs_firm) w->min_runs = judged;
    if (w->min_runs > w->max_runs) w->min_runs = w->max_runs;
    w->next_check = tail > w->min_runs ? tail : w->min_runs;
    w->half_width = w->half_width_percentile = INFINITY;
}

static void finish_case(struct case_work *w)
{
    if (w->instance) w->instance->subject->ops->finish(w->instance);
    w->instance = NULL;
    vec_release(&w->samples);
    vec_release(&w->waits);
    vec_release(&w->switched);
    vec_release(&w->slices);
    vec_release(&w->requests.outcomes);
    llm_pool_release(&w->streams);
}

static struct case_work *asked_last(struct bench *b, const struct subject *subject)
{
    struct case_work *last = NULL;
    for (size_t i = 0; i < b->n_cases; i++) {
        struct case_work *w = &b->cases[i];
        if (w->turn && w->what->subject == subject && (!last || w->turn > last->turn)) last = w;
    }
    return last;
}

tare_status case_turn(struct bench *b, struct case_work *w, tare_error *err)
{
    struct subject *subject = w->what->subject;
    tare_error why = TARE_ERROR_INIT;
    tare_status s = TARE_OK;
    if (subject->ops->died && !bench_interrupted(b) && subject->ops->died(subject, &why)) {
        struct case_work *last = asked_last(b, subject);
        if (last && last->stopped != STOP_FAILED) s = case_failed(b, last, &why, err);
    }
    w->turn = ++b->turns;
    return s;
}

static void read_gpu(const struct case_work *w, struct gpu_own *out)
{
    if (w->memory.on_gpu) bench_machine.gpu(out);
}

/* Memory is read before loading and after the warm-up: what lies between is the case's share. */
static tare_status load_case(struct bench *b, size_t index, tare_error *err)
{
    struct case_work *w = &b->cases[index];
    const struct bench_case *c = w->what = &b->plan->cases[index];
    tare_error inner = TARE_ERROR_INIT;
    w->params = c->params;
    w->params.workers = b->workers;
    w->params.has_neighbours = w->params.has_neighbours || b->n_cases > 1;
    w->params.ungrouped = b->plan->load == BENCH_OPEN;
    w->began_ns = bench_machine.now();
    bench_tell(b, w, "loading");
    if (b->n_cases > 1 && !c->subject->ops->runs_in_child)
        malloc_trim(0); /* what others freed is no gift to this one */
    tare_status s = memory_before(&w->memory, c->subject, b->base_rss, err);
    if (s < 0) return s;
    w->memory.on_gpu = ort_provider_memory(w->params.provider) != NULL;
    read_gpu(w, &w->memory.gpu_before);
    uint64_t start = bench_machine.now();
    struct case_record to = {b->run, &w->params_used};
    s = c->subject->ops->prepare(c->subject, &w->params, &to, &w->instance, &inner);
    w->load_ns = bench_machine.now() - start;
    if (s < 0) return error_set(err, s, "%s", inner.text);
    if ((s = first_run(b, w, err)) < 0 || (s = warm_up(b, w, err)) < 0 ||
        (s = memory_loaded(&w->memory, c->subject, err)) < 0)
        return s;
    read_gpu(w, &w->memory.gpu_loaded);
    uint64_t peak = w->usage.sum.rss_peak;
    w->usage = (struct usage){.sum = {.rss_peak = peak}}; /* only the measured runs count, but for the peak */
    int64_t units = b->plan->per_run;
    if (units <= 0) units = c->subject->ops->units ? c->subject->ops->units(w->instance) : 1;
    w->units = (double)units;
    set_limits(b, w);
    b->ready_ns += bench_machine.now() - w->began_ns;
    b->n_ready++;
    return TARE_OK;
}

tare_status case_revive(struct bench *b, struct case_work *w, tare_error *err)
{
    const struct subject_ops *ops = w->instance->subject->ops;
    if (!ops->is_lost || !ops->is_lost(w->instance)) return TARE_OK;
    finish_case(w);
    *w = (struct case_work){.turn = w->turn};
    return load_case(b, (size_t)(w - b->cases), err);
}

/* One bad case, a batch that does not fit into memory, must not lose the others: it becomes a row with its reason. */
tare_status case_failed(struct bench *b, struct case_work *w, const tare_error *why, tare_error *err)
{
    if (bench_interrupted(b) || (b->plan->ended && *b->plan->ended))
        return error_set(err, why->status, "case %s: %s", w->what->name, why->text);
    w->failed = why->status;
    w->failure = arena_str(&b->run->arena, why->text);
    w->stopped = STOP_FAILED;
    if (!b->first_failed) b->first_failed = w;
    vec_clear(&w->samples);
    if (w->instance) w->instance->subject->ops->finish(w->instance);
    w->instance = NULL;
    return w->failure ? TARE_OK : error_nomem(err, "case %s", w->what->name);
}

/* When none could be measured, what the first one says. */
static tare_status all_failed(const struct bench *b, tare_error *err)
{
    const struct case_work *first = b->plan->keep_failed ? NULL : b->first_failed;
    for (size_t i = 0; i < b->n_cases; i++)
        if (b->cases[i].stopped && b->cases[i].stopped != STOP_FAILED) return TARE_OK;
    return first ? error_set(err, first->failed, "case %s: %s", first->what->name, first->failure) : TARE_OK;
}

/* ---- blocks of cases ---- */

/* May one more case be loaded beside those from `first` on? It is expected to be as big as the biggest. */
static bool has_room(struct bench *b, size_t first, size_t next, struct known_u64 available)
{
    if (next - first >= BLOCK_MOST) {
        b->split_why = arena_printf(&b->run->arena, "more than %d cases", (int)BLOCK_MOST);
        return false;
    }
    int64_t held = 0, biggest = 0;
    for (size_t i = first; i < next; i++) {
        const struct memory_track *m = &b->cases[i].memory;
        held += m->peak > 0 ? m->peak : 0;
        if (m->peak > biggest) biggest = m->peak;
    }
    if (!available.known || (double)(held + biggest) <= MEMORY_SHARE * (double)available.v) return true;
    b->split_why = "all cases at once would take more than 60 % of the available memory";
    return false;
}

static tare_status record_block(struct bench *b, size_t first, size_t end, tare_error *err)
{
    for (size_t i = first; i < end; i++) {
        struct case_work *w = &b->cases[i];
        bool is_told = w->samples.n || w->stopped == STOP_FAILED;
        tare_status s = is_told ? record_case(b, w, err) : TARE_OK;
        if (s < 0) return s;
        finish_case(w);
        w->turn = 0; /* it stands as it is recorded */
    }
    return TARE_OK;
}

static tare_status measure_block(struct bench *b, size_t first, size_t *end, tare_error *err)
{
    struct known_u64 available = bench_machine.available();
    size_t next = first;
    do {
        tare_error why = TARE_ERROR_INIT;
        b->cases[next].what = &b->plan->cases[next];
        tare_status s = case_turn(b, &b->cases[next], err);
        if (s < 0) return s;
        s = load_case(b, next, &why);
        if (s < 0 && (s = case_failed(b, &b->cases[next], &why, err)) < 0) return s;
        next++;
    } while (next < b->n_cases && !bench_interrupted(b) && has_room(b, first, next, available));
    *end = next;
    b->blocks++;
    tare_status s = rounds_measure(b, first, next - first, err);
    return s < 0 ? s : record_block(b, first, next, err);
}

static bool is_first_of_subject(const struct bench *b, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (b->plan->cases[i].subject == b->plan->cases[index].subject) return false;
    return true;
}

/* What a subject needs once for all its cases (a library's pages, thread pools) is no memory of its first
 * case: load and run that once and drop it. An error is told when it is loaded in earnest. */
static void prime_subject(struct bench *b, size_t index)
{
    const struct bench_case *c = &b->plan->cases[index];
    const struct subject_ops *ops = c->subject->ops;
    struct run_map dropped = {0};
    struct case_record to = {b->run, &dropped};
    struct case_params params = c->params;
    struct subject_cost cost = {0};
    struct instance *instance = NULL;
    tare_error unheard = TARE_ERROR_INIT;
    if (ops->runs_in_child || ops->load || !is_first_of_subject(b, index) || bench_interrupted(b)) return;
    b->cases[index].what = c;
    bench_tell(b, &b->cases[index], "loading");
    params.workers = b->workers;
    params.has_neighbours = true;
    if (ops->prepare(c->subject, &params, &to, &instance, &unheard) < 0) return;
    if (!ops->before_run || ops->before_run(instance, 0, &unheard) == TARE_OK)
        ops->run(instance, 0, &cost, &unheard);
    ops->finish(instance);
    malloc_trim(0);
}

/* Block after block; what was measured is kept when the user interrupts. */
static tare_status measure_all(struct bench *b, tare_error *err)
{
    tare_status s = pool_open(&b->pool, b->workers, err);
    if (s < 0 || (s = lanes_open(b, err)) < 0) return s;
    b->places = places_open("", b->plan->seed);
    b->self_ns = closed_self_ns(b, false);
    b->self_watching_ns = closed_self_ns(b, true);
    for (size_t i = 0; b->n_cases > 1 && i < b->n_cases; i++) prime_subject(b, i);
    struct process_state base;
    if ((s = process_take(b->plan->cases[0].subject, true, &base, err)) < 0)
        return error_wrap(err, "case %s", b->plan->cases[0].name); /* that was run just now */
    b->base_rss = base.rss;
    for (size_t at = 0; s == TARE_OK && at < b->n_cases && !bench_interrupted(b);)
        s = measure_block(b, at, &at, err);
    if (s == TARE_OK) s = all_failed(b, err);
    if (s == TARE_OK && b->run->cases.n == 0)
        s = error_set(err, TARE_DENIED, "interrupted before anything was measured");
    /* Others were measured and the user wants an end: keep what there is. */
    if (s < 0 && bench_interrupted(b) && b->run->cases.n > 0) s = TARE_OK;
    if (s == TARE_OK) record_plan(b);
    return s;
}

/* ---- the plan ---- */

static tare_status check_plan(const struct bench_plan *p, tare_error *err)
{
    if (p->n_cases == 0) return error_set(err, TARE_INVALID, "nothing to measure: no cases");
    if (p->budget_ns < 1000000) return error_set(err, TARE_INVALID, "a budget under 1 ms measures nothing");
    if (!(p->precision > 0)) return error_set(err, TARE_INVALID, "the precision must be above 0");
    if (!(p->percentile >= 0 && p->percentile < 1))
        return error_set(err, TARE_INVALID, "percentile %g is not between 0 and 1", p->percentile);
    if (p->concurrency > WORKERS_MOST)
        return error_set(err, TARE_INVALID, "%u workers: at most %d", p->concurrency, (int)WORKERS_MOST);
    if (p->load == BENCH_OPEN && !(p->rate > 0 && isfinite(p->rate)))
        return error_set(err, TARE_INVALID, "an open loop needs a rate above 0");
    if (p->keep_outputs && !p->outputs) return error_set(err, TARE_INVALID, "no place for outputs");
    return TARE_OK;
}

tare_status bench_run(struct run *run, const struct bench_plan *plan, tare_error *err)
{
    tare_status s = check_plan(plan, err);
    if (s < 0) return s;
    struct bench b = {.plan = plan, .run = run, .n_cases = plan->n_cases};
    b.workers = plan->concurrency ? plan->concurrency : 1;
    b.began_ns = bench_machine.now();
    rng_seed(&b.rng, plan->seed);
    b.cases = mem_new(b.n_cases, sizeof *b.cases);
    if (!b.cases) return error_nomem(err, "%zu cases", b.n_cases);
    s = measure_all(&b, err);
    for (size_t i = 0; i < b.n_cases; i++) finish_case(&b.cases[i]);
    pool_close(&b.pool);
    lanes_close(&b);
    places_close(b.places);
    mem_free(b.cases);
    return s;
}

const struct bench_preset bench_presets[] = {
    {"single-stream", "one query after the other, judged by p90", BENCH_CLOSED, ARRIVALS_POISSON, 0.90, 0, false},
    {"multi-stream", "queries of 8 units one after the other, judged by p99", BENCH_CLOSED, ARRIVALS_POISSON, 0.99,
     8, false},
    {"server", "queries at random moments at a given rate, judged by p99", BENCH_OPEN, ARRIVALS_POISSON, 0.99, 0,
     true},
    {"offline", "large batches back to back, judged by throughput", BENCH_CLOSED, ARRIVALS_POISSON, 0, 32, false},
    {NULL, NULL, BENCH_CLOSED, ARRIVALS_POISSON, 0, 0, false},
};

tare_status bench_preset_apply(struct bench_plan *plan, const char *name, const struct bench_preset **out,
                               tare_error *err)
{
    struct buf names = BUF_INIT;
    for (const struct bench_preset *p = bench_presets; p->name; p++) {
        if (strcmp(p->name, name) != 0) {
            buf_printf(&names, "%s%s", names.len ? ", " : "", p->name);
            continue;
        }
        buf_release(&names);
        plan->load = p->load;
        plan->arrivals = p->arrivals;
        plan->percentile = p->percentile;
        if (p->load == BENCH_CLOSED) plan->concurrency = 1;
        if (out) *out = p;
        return TARE_OK;
    }
    tare_status s = buf_status(&names, err);
    if (s == TARE_OK) s = error_set(err, TARE_INVALID, "no scenario '%s': choose %s", name, names.data);
    buf_release(&names);
    return s;
}
