/* SPDX-License-Identifier: MIT
 * ab_block.c - see ab_block.h. */
#include "bench/ab_block.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/engine.h"
#include "bench/record.h"

enum { TURNS = 3, TURN_RUNS_MOST = 2000, SLICES_MOST = 40 };

struct ab_sampled {
    struct times ns;
    struct slices slices;
    uint64_t cpu_ns, wall_ns, load_ns, warmup_runs, launches;
    size_t from; /* first time of the latest block */
};

void ab_member_release(struct ab_member *m)
{
    if (m->sampled) {
        mem_free(m->sampled->ns.items);
        mem_free(m->sampled->slices.items);
    }
    mem_free(m->sampled);
    m->sampled = NULL;
}

static tare_status open_samples(struct ab_member *m, tare_error *err)
{
    if (!m->sampled) m->sampled = mem_new(1, sizeof *m->sampled);
    if (!m->sampled) return error_nomem(err, "samples");
    m->sampled->from = m->sampled->ns.n;
    m->median_ns = NAN;
    return TARE_OK;
}

static int turns_of(const struct ab_block *b)
{
    return b->turns > 0 ? b->turns : TURNS;
}

static bool is_over(const struct ab_block *b)
{
    return b->interrupted && *b->interrupted;
}

/* ---- one lane ---- */

/* An interrupt makes lanes fail, too: that is not their own failure. */
static void note_failure(const struct ab_block *b, struct ab_member *m, tare_status s, const tare_error *why)
{
    if (is_over(b)) return;
    m->failed = s;
    snprintf(m->failure, sizeof m->failure, "%s", why->text);
}

static void start(const struct ab_block *b, struct ab_member *m, struct rng *rng)
{
    tare_error why = TARE_ERROR_INIT;
    struct ab_launched up = {0};
    struct ab_layout layout = {.env_pad = (uint32_t)rng_below(rng, AB_ENV_PAD_MAX),
                               .heap_pad = AB_HEAP_STEP * (uint32_t)rng_below(rng, 256)};
    tare_status s = m->lane->ops->launch(m->lane, &layout, &why);
    if (s == TARE_OK) s = m->lane->ops->ready(m->lane, &up, &why);
    if (s < 0) {
        note_failure(b, m, s, &why);
        return;
    }
    m->sampled->load_ns += up.load_ns;
    m->sampled->warmup_runs += up.warmup_runs;
    m->sampled->launches++;
}

/* Runs are timed one by one, by the worker itself: what is asked in between is nobody's time. */
static tare_status take_turn(const struct ab_block *b, struct ab_member *m, tare_error *err)
{
    struct ab_sampled *to = m->sampled;
    struct slice slice = {.first = to->ns.n};
    uint64_t start = bench_machine.now(), end = start + b->slice_ns / (uint64_t)turns_of(b);
    uint64_t latest = start + SLICES_MOST * b->slice_ns / (uint64_t)turns_of(b),
             least = b->least_runs / (uint64_t)turns_of(b);
    const struct ab_layout none = {0};
    tare_status s = TARE_OK;
    while (s == TARE_OK && slice.n < TURN_RUNS_MOST && !is_over(b)) {
        struct pair_side one = {0};
        tare_error why = TARE_ERROR_INIT;
        tare_status ran = m->lane->ops->measure(m->lane, 1, &none, &one, &why);
        if (ran < 0) {
            note_failure(b, m, ran, &why);
            break;
        }
        s = vec_push(&to->ns, one.wall_ns, err);
        slice.wall_ns += one.wall_ns;
        to->cpu_ns += one.cpu_ns;
        slice.n++;
        uint64_t now = bench_machine.now();
        if (now >= latest || (now >= end && slice.n >= least)) break;
    }
    to->wall_ns += slice.wall_ns;
    return s == TARE_OK && slice.n ? vec_push(&to->slices, slice, err) : s;
}

static bool at_work(const struct ab_member *m)
{
    return m->failed == TARE_OK && m->sampled->launches > 0;
}

static void stop(struct ab_member *m)
{
    uint64_t peak = 0;
    m->lane->ops->stop(m->lane, &peak);
    if (peak > m->rss_peak) m->rss_peak = peak;
}

/* ---- all of them ---- */

static void shuffle(size_t *order, size_t n, struct rng *rng)
{
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t k = rng_below(rng, i), swap = order[k];
        order[k] = order[i - 1];
        order[i - 1] = swap;
    }
}

/* Loaded one after another, so that none is in the way of another's warm-up. */
static tare_status run_beside(const struct ab_block *b, struct rng *rng, size_t *order, tare_error *err)
{
    tare_status s = TARE_OK;
    shuffle(order, b->n, rng);
    for (size_t i = 0; i < b->n && !is_over(b); i++) start(b, b->at[order[i]], rng);
    for (int turn = 0; turn < turns_of(b) && s == TARE_OK && !is_over(b); turn++) {
        shuffle(order, b->n, rng);
        for (size_t i = 0; i < b->n && s == TARE_OK && !is_over(b); i++)
            if (at_work(b->at[order[i]])) s = take_turn(b, b->at[order[i]], err);
    }
    for (size_t i = 0; i < b->n; i++) stop(b->at[i]);
    return s;
}

static tare_status run_alone(const struct ab_block *b, struct rng *rng, size_t *order, tare_error *err)
{
    tare_status s = TARE_OK;
    shuffle(order, b->n, rng);
    for (size_t i = 0; i < b->n && s == TARE_OK && !is_over(b); i++) {
        struct ab_member *m = b->at[order[i]];
        start(b, m, rng);
        for (int turn = 0; turn < turns_of(b) && s == TARE_OK && at_work(m) && !is_over(b); turn++)
            s = take_turn(b, m, err);
        stop(m);
    }
    return s;
}

static tare_status find_median(struct ab_member *m, tare_error *err)
{
    size_t from = m->sampled->from, n = m->sampled->ns.n - from;
    if (n == 0 || m->failed < 0) return TARE_OK;
    double *x = stats_doubles(m->sampled->ns.items + from, n, err);
    if (!x) return TARE_NOMEM;
    stats_sort(x, n);
    m->median_ns = stats_median_sorted(x, n);
    mem_free(x);
    return TARE_OK;
}

tare_status ab_block_run(const struct ab_block *b, tare_error *err)
{
    struct rng rng;
    rng_seed(&rng, b->seed);
    size_t *order = mem_new(b->n, sizeof *order);
    tare_status s = order ? TARE_OK : error_nomem(err, "a block");
    for (size_t i = 0; s == TARE_OK && i < b->n; i++) s = open_samples(b->at[i], err);
    if (s == TARE_OK) s = (b->alone ? run_alone : run_beside)(b, &rng, order, err);
    for (size_t i = 0; s == TARE_OK && i < b->n; i++) s = find_median(b->at[i], err);
    mem_free(order);
    return s;
}

double *ab_member_sorted(const struct ab_member *m, size_t *n, tare_error *err)
{
    *n = m->sampled ? m->sampled->ns.n : 0;
    if (*n == 0) return NULL;
    double *x = stats_doubles(m->sampled->ns.items, *n, err);
    if (x) stats_sort(x, *n);
    return x;
}

uint64_t ab_member_load_ns(const struct ab_member *m)
{
    return m->sampled && m->sampled->launches ? m->sampled->load_ns / m->sampled->launches : 0;
}

/* ---- documents ---- */

/* Only the sum of user and system time is known of a worker, and no disturbance. */
tare_status ab_member_record(const struct ab_member *m, struct run *run, struct run_case *c, double units,
                             tare_error *err)
{
    const struct ab_sampled *s = m->sampled;
    if (m->failed < 0 || !s || s->ns.n == 0) {
        c->failure =
            arena_str(&run->arena, m->failed < 0 ? m->failure : "interrupted before it was measured");
        run_explain_failed(run, c);
        return TARE_OK;
    }
    struct sampled sampled = {.ns = s->ns.items,
                              .n = s->ns.n,
                              .units = units,
                              .unit = "samples",
                              .slices = s->slices.items,
                              .n_slices = s->slices.n};
    tare_status status = summarise(run, c, &sampled, err);
    c->memory.known = c->cpu.known = true;
    if (m->rss_peak) c->memory.rss_peak = known_u64(m->rss_peak);
    if (s->wall_ns && s->cpu_ns) c->cpu.utilization = known_f64((double)s->cpu_ns / (double)s->wall_ns);
    if (s->launches) {
        c->load_ns = known_u64(s->load_ns / s->launches);
        c->warmup_runs = known_u64(s->warmup_runs / s->launches);
    } else {
        run_unknown(run, &c->unknown, "load_ns", "no worker process of tare loaded it");
        run_unknown(run, &c->unknown, "warmup_runs", "no worker process of tare warmed it up");
    }
    c->failed_runs = known_u64(0);
    run_unknown(run, &c->unknown, "cpu.user_ns", "of a worker process only the sum is measured");
    run_unknown(run, &c->unknown, "cpu.system_ns", "of a worker process only the sum is measured");
    run_unknown(run, &c->unknown, "first_run_ns", "a worker process tells its load and its runs alone");
    run_explain_case(run, c, RUN_BY_BENCH);
    return status;
}

/* The times of a case are of several turns, which a document does not keep: they count as one slice each tenth. */
tare_status ab_member_recall(struct ab_member *m, const struct run_case *c, tare_error *err)
{
    tare_status s = open_samples(m, err);
    const struct run_samples *of = &c->samples_raw;
    if (c->failure) {
        m->failed = TARE_DENIED;
        snprintf(m->failure, sizeof m->failure, "%s", c->failure);
    }
    struct slice slice = {0};
    for (size_t i = 0; s == TARE_OK && of->known && i < of->n; i++) {
        s = vec_push(&m->sampled->ns, of->ns[i], err);
        m->sampled->wall_ns += of->ns[i];
        slice.wall_ns += of->ns[i];
        slice.n++;
        if (s < 0 || (i + 1 < of->n && slice.n < (of->n + 9) / 10)) continue;
        s = vec_push(&m->sampled->slices, slice, err);
        slice = (struct slice){.first = i + 1};
    }
    if (s < 0) return s;
    if (c->cpu.utilization.known)
        m->sampled->cpu_ns = (uint64_t)(c->cpu.utilization.v * (double)m->sampled->wall_ns);
    if (c->memory.rss_peak.known) m->rss_peak = c->memory.rss_peak.v;
    if (c->load_ns.known && c->warmup_runs.known) {
        m->sampled->load_ns = c->load_ns.v;
        m->sampled->warmup_runs = c->warmup_runs.v;
        m->sampled->launches = 1;
    }
    return find_median(m, err);
}
