/* SPDX-License-Identifier: MIT
 * layer_gpu.c - see layer_parts.h: from operations of a GPU to times of nodes. Runs of the model with and without the
 * runtime's profiler launch the same operations in the same order. With it, each launch lies within the node that made
 * it, which gives operation k of a run to a node; without it, operation k has its true time. What does not repeat is
 * left out and counted; where too little repeats, nothing is told. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/layers/layer_parts.h"
#include "analyze/layers/layers.h"
#include "core/mem.h"
#include "core/stats.h"

#define SURE 0.95
#define SLACK_NS 2000 /* the profile counts whole microseconds, of start and duration */

struct gpu_run { /* the operations that were launched in it */
    size_t first, n;
    uint64_t hash; /* of their names, in order */
    bool profiled;
};

struct gpu_timing {
    const struct layers_gpu *in;
    const struct ort_profile *profile;
    const struct layer_times *times;
    struct layer_gpu *out;
    struct gpu_run *runs;
    size_t n_runs;
    uint64_t usual;    /* the hash that most runs without the profiler have */
    size_t n_plain;    /* such runs with it */
    size_t n_profiled; /* runs with the profiler and that hash */
    size_t k;          /* operations of such a run */
    size_t *slot_at;   /* of operation k; SIZE_MAX: of no node */
    double *x;         /* per slot and run of n_plain */
    tare_error *err;
};

/* ---- runs ---- */

static uint64_t hash_of(const struct layers_op *ops, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ ops[i].name) * 0x100000001b3u;
    return h ^ n;
}

/* Operations are in the order of their launches, runs in that of their starts. */
static tare_status cut_runs(struct gpu_timing *t)
{
    const struct layers_gpu *g = t->in;
    size_t at = 0;
    t->n_runs = g->windows.n;
    t->runs = mem_new(t->n_runs, sizeof *t->runs);
    if (!t->runs) return error_nomem(t->err, "runs on a GPU");
    for (size_t i = 0; i < t->n_runs; i++) {
        const struct layers_window *w = &g->windows.items[i];
        while (at < g->ops.n && g->ops.items[at].launched < w->start) at++;
        struct gpu_run *r = &t->runs[i];
        *r = (struct gpu_run){.first = at, .profiled = w->profiled};
        while (at < g->ops.n && g->ops.items[at].launched < w->end) at++;
        r->n = at - r->first;
        r->hash = hash_of(&g->ops.items[r->first], r->n);
    }
    return TARE_OK;
}

static size_t count_same(const struct gpu_timing *t, uint64_t hash, bool profiled)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_runs; i++) n += t->runs[i].hash == hash && t->runs[i].profiled == profiled;
    return n;
}

static bool is_usual(const struct gpu_timing *t, const struct gpu_run *r, bool profiled)
{
    return r->hash == t->usual && r->profiled == profiled;
}

/* At least half of the runs must be alike, and some with the profiler like these. */
static bool find_usual(struct gpu_timing *t)
{
    size_t plain = 0, of_plain = 0;
    for (size_t i = 0; i < t->n_runs; i++) {
        if (t->runs[i].profiled) continue;
        of_plain++;
        if (t->runs[i].n == 0 || count_same(t, t->runs[i].hash, false) <= plain) continue;
        t->usual = t->runs[i].hash;
        t->k = t->runs[i].n;
        plain = count_same(t, t->usual, false);
    }
    t->n_plain = plain;
    t->n_profiled = count_same(t, t->usual, true);
    t->out->runs = plain;
    t->out->other_runs = of_plain - plain;
    if (!plain && t->in->ops.n && !t->in->ops.items[t->in->ops.n - 1].launched)
        snprintf(t->out->why, sizeof t->out->why, "the calls that launch operations were not recorded");
    else if (!plain)
        snprintf(t->out->why, sizeof t->out->why, "no operation of a run was recorded");
    else if (2 * plain < of_plain)
        snprintf(t->out->why, sizeof t->out->why, "only %zu of %zu runs have the same operations on the GPU",
                 plain, of_plain);
    else if (!t->n_profiled)
        snprintf(t->out->why, sizeof t->out->why,
                 "with the runtime's profiler, runs have other operations on the GPU than without it");
    return !t->out->why[0];
}

/* ---- which node ---- */

static bool holds(const struct gpu_timing *t, size_t event, uint64_t launched)
{
    uint64_t start = t->in->events.items[event];
    int64_t us = t->profile->events.items[event].duration_us;
    return launched >= start && launched < start + (uint64_t)us * 1000 + SLACK_NS;
}

/* The innermost event around that moment: the last that began before it, or one of those around that. Events are by
 * start, those around others first. */
static size_t event_at(const struct gpu_timing *t, uint64_t launched)
{
    size_t lo = 0, hi = t->in->events.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->in->events.items[mid] <= launched)
            lo = mid + 1;
        else
            hi = mid;
    }
    size_t e = lo ? lo - 1 : SIZE_MAX;
    while (e != SIZE_MAX && !holds(t, e, launched)) e = t->profile->events.items[e].parent;
    return e;
}

static size_t slot_of(const struct gpu_timing *t, const struct layers_op *op)
{
    size_t e = op->launched ? event_at(t, op->launched) : SIZE_MAX;
    return e == SIZE_MAX ? SIZE_MAX : t->times->slot_of[e];
}

/* Every run with the profiler must say the same of every operation: nodes that run one after another are microseconds
 * apart, so a doubt means that the clocks do not agree. */
static tare_status map_operations(struct gpu_timing *t)
{
    size_t doubts = 0, seen = 0;
    t->slot_at = mem_new(t->k, sizeof *t->slot_at);
    if (!t->slot_at) return error_nomem(t->err, "operations of a run");
    for (size_t i = 0; i < t->n_runs; i++) {
        const struct gpu_run *r = &t->runs[i];
        if (!is_usual(t, r, true)) continue;
        for (size_t k = 0; k < t->k; k++) {
            size_t slot = slot_of(t, &t->in->ops.items[r->first + k]);
            if (seen == 0) t->slot_at[k] = slot;
            doubts += slot != t->slot_at[k];
        }
        seen++;
    }
    if (doubts * 100 > seen * t->k)
        snprintf(t->out->why, sizeof t->out->why,
                 "runs with the profiler disagree on %zu of %zu operations: which node "
                 "launched them",
                 doubts, seen * t->k);
    return TARE_OK;
}

/* Kernels are launched by nodes, unless a graph of them is launched as one: where most of their time has no node, zero
 * for a node would be no time but a missing answer. Copies of inputs and results are of no node anyway. */
static bool finds_nodes(struct gpu_timing *t)
{
    double joined = 0, all = 0;
    for (size_t i = 0; i < t->n_runs; i++) {
        const struct gpu_run *r = &t->runs[i];
        for (size_t k = 0; is_usual(t, r, false) && k < t->k; k++) {
            const struct layers_op *op = &t->in->ops.items[r->first + k];
            if (op->copy) continue;
            all += (double)op->duration;
            if (t->slot_at[k] != SIZE_MAX) joined += (double)op->duration;
        }
    }
    if (2 * joined >= all) return true;
    snprintf(t->out->why, sizeof t->out->why,
             "only %.0f %% of the time of kernels was launched within a node", 100 * joined / all);
    return false;
}

/* ---- times ---- */

/* Mean, and the interval of the mean by Student's t. */
static struct interval mean_of(const double *x, size_t n)
{
    struct interval i = {stats_mean(x, n), NAN, NAN};
    if (n < 2) return i;
    double half = stats_t_quantile(0.5 + SURE / 2, (double)n - 1) * stats_stddev(x, n) / sqrt((double)n);
    i.lo = fmax(i.value - half, 0);
    i.hi = i.value + half;
    return i;
}

static int by_start(const void *a, const void *b)
{
    const struct layers_op *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

enum covered { ALL, KERNELS, COPIES };

static bool counts_as(const struct layers_op *op, enum covered what)
{
    return what == ALL || op->copy == (what == COPIES);
}

/* Time in which at least one of them ran; `ops` are by start. */
static double covered_ns(const struct layers_op *ops, size_t n, enum covered what)
{
    uint64_t sum = 0, until = 0;
    for (size_t i = 0; i < n; i++) {
        if (!counts_as(&ops[i], what)) continue;
        uint64_t start = ops[i].start > until ? ops[i].start : until, end = ops[i].start + ops[i].duration;
        if (end <= start) continue;
        sum += end - start;
        until = end;
    }
    return (double)sum;
}

static double sum_ns(const struct gpu_timing *t, const struct gpu_run *r, enum covered what)
{
    const struct layers_op *ops = &t->in->ops.items[r->first];
    double sum = 0;
    for (size_t k = 0; k < r->n; k++)
        if (counts_as(&ops[k], what)) sum += (double)ops[k].duration;
    return sum;
}

/* The whole run: its operations by start, once. */
static tare_status time_runs(struct gpu_timing *t)
{
    struct layers_op *ops = mem_new(t->k, sizeof *ops);
    double *busy = mem_new(t->n_plain, sizeof *busy), plain = 0, profiled = 0;
    tare_status s = ops && busy ? TARE_OK : error_nomem(t->err, "runs on a GPU");
    for (size_t i = 0, n = 0; s == TARE_OK && i < t->n_runs; i++) {
        const struct gpu_run *r = &t->runs[i];
        if (is_usual(t, r, true)) profiled += sum_ns(t, r, ALL) / (double)t->n_profiled;
        if (!is_usual(t, r, false)) continue;
        plain += sum_ns(t, r, ALL) / (double)t->n_plain;
        memcpy(ops, &t->in->ops.items[r->first], t->k * sizeof *ops);
        qsort(ops, t->k, sizeof *ops, by_start);
        busy[n++] = covered_ns(ops, t->k, ALL);
        t->out->kernel_ns += covered_ns(ops, t->k, KERNELS) / (double)t->n_plain;
        t->out->copy_ns += covered_ns(ops, t->k, COPIES) / (double)t->n_plain;
        t->out->kernel_sum_ns += sum_ns(t, r, KERNELS) / (double)t->n_plain;
        t->out->copy_sum_ns += sum_ns(t, r, COPIES) / (double)t->n_plain;
    }
    if (s == TARE_OK) t->out->busy_ns = mean_of(busy, t->n_plain);
    t->out->profiled_ratio = plain > 0 ? profiled / plain : NAN;
    mem_free(ops);
    mem_free(busy);
    return s;
}

static void count_operations(struct gpu_timing *t)
{
    const struct gpu_run *r = t->runs;
    while (!is_usual(t, r, false)) r++;
    t->out->operations = t->k;
    for (size_t k = 0; k < t->k; k++) {
        const struct layers_op *op = &t->in->ops.items[r->first + k];
        if (t->slot_at[k] != SIZE_MAX) t->out->slots[t->slot_at[k]].operations++;
        if (!op->copy) continue;
        t->out->copies++;
        t->out->copy_bytes += op->bytes;
        if (op->fill) t->out->fill_bytes += op->bytes;
    }
}

/* x[slot * n_plain + run]; the last slot is that of operations that no node launched. */
static tare_status time_slots(struct gpu_timing *t)
{
    size_t n_slots = t->times->slots.n, run = 0;
    double joined = 0, all = 0;
    t->x = mem_new((n_slots + 1) * t->n_plain, sizeof *t->x);
    t->out->slots = mem_new(n_slots, sizeof *t->out->slots);
    if (!t->x || !t->out->slots) return error_nomem(t->err, "times of nodes");
    t->out->n = n_slots;
    for (size_t i = 0; i < t->n_runs; i++) {
        const struct gpu_run *r = &t->runs[i];
        if (!is_usual(t, r, false)) continue;
        for (size_t k = 0; k < t->k; k++) {
            size_t slot = t->slot_at[k] == SIZE_MAX ? n_slots : t->slot_at[k];
            double ns = (double)t->in->ops.items[r->first + k].duration;
            t->x[slot * t->n_plain + run] += ns;
            all += ns;
            if (slot < n_slots) joined += ns;
        }
        run++;
    }
    for (size_t i = 0; i < n_slots; i++)
        t->out->slots[i].time_ns = mean_of(&t->x[i * t->n_plain], t->n_plain);
    t->out->outside_ns = mean_of(&t->x[n_slots * t->n_plain], t->n_plain);
    t->out->joined = all > 0 ? joined / all : NAN;
    count_operations(t);
    return TARE_OK;
}

tare_status layer_gpu_build(struct layer_gpu *out, const struct layers_gpu *in, const struct ort_profile *p,
                            const struct layer_times *times, tare_error *err)
{
    struct layer_gpu made = LAYER_GPU_INIT;
    struct gpu_timing t = {.in = in, .profile = p, .times = times, .out = &made, .err = err};
    tare_status s = cut_runs(&t);
    if (in->lost) /* what is missing in every run alike would make all of them look whole */
        snprintf(made.why, sizeof made.why, "%llu records of the GPU are missing",
                 (unsigned long long)in->lost);
    bool alike = s == TARE_OK && !in->lost && find_usual(&t);
    if (alike) s = map_operations(&t);
    if (s == TARE_OK && alike) s = time_runs(&t);
    if (s == TARE_OK && alike && !made.why[0] && finds_nodes(&t)) s = time_slots(&t);
    mem_free(t.runs);
    mem_free(t.slot_at);
    mem_free(t.x);
    if (s < 0) {
        layer_gpu_release(&made);
        return s;
    }
    *out = made;
    return TARE_OK;
}

void layer_gpu_release(struct layer_gpu *g)
{
    mem_free(g->slots);
    *g = (struct layer_gpu)LAYER_GPU_INIT;
}
