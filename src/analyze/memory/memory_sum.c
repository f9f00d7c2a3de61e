/* SPDX-License-Identifier: MIT
 * memory_sum.c - see memory_sum.h: both replays of all processes, the judge of growth, tables in order. */
#include "analyze/memory/memory_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/memory/memory_replay.h"
#include "trace/reader.h"

#define NORMAL_95 1.959963984540054

struct summing {
    struct arena *arena;
    VEC(struct memory_replay) all;
    struct memory_windows only; /* none: all of it */
    size_t at;                  /* of the second time */
    bool again;
    tare_status status;
    tare_error *err;
};

/* A quantile of the gamma distribution, by the cube root of Wilson and Hilferty. */
static double gamma_quantile(double shape, double z)
{
    double root = fmax(0, 1 - 1 / (9 * shape) + z / (3 * sqrt(shape)));
    return shape * root * root * root;
}

/* Few samples are no bell: n of them that stand for w each are a Poisson number, whose interval is that of a gamma
 * distribution with shape n + 1/2. A sum of unequal ones counts as sum^2 / variance samples of variance / sum. */
struct interval memory_interval(struct memory_bytes b)
{
    struct interval out = {b.sum, b.sum, b.sum};
    if (b.variance <= 0 || b.sum <= 0) return out;
    double scale = b.variance / b.sum, shape = b.sum / scale + 0.5;
    out.lo = fmin(b.sum, fmax(b.seen, scale * gamma_quantile(shape, -NORMAL_95)));
    out.hi = fmax(b.sum, scale * gamma_quantile(shape, NORMAL_95));
    return out;
}

void memory_bytes_add(struct memory_bytes *to, struct memory_bytes b)
{
    to->sum += b.sum;
    to->variance += b.variance;
    to->seen += b.seen;
}

bool memory_site_grows(const struct memory_site *s)
{
    return s->judged && strcmp(s->growth.verdict, "growing") == 0;
}

/* ---- the records ---- */

/* Processes come one after another, in the same order each time. */
static struct memory_replay *replay_of(struct summing *x, uint32_t process)
{
    if (x->again) {
        while (x->all.items[x->at].process != process) x->at++;
        return &x->all.items[x->at];
    }
    if (x->all.n == 0 || vec_last(&x->all)->process != process) {
        struct memory_replay r = {.process = process, .arena = x->arena};
        x->status = vec_push(&x->all, r, x->err);
    }
    return x->status == TARE_OK ? vec_last(&x->all) : NULL;
}

static bool is_within(struct memory_windows only, uint64_t ns)
{
    for (size_t i = 0; i < only.n; i++)
        if (only.at[i].from_ns <= ns && ns <= only.at[i].to_ns) return true;
    return only.n == 0;
}

static int on_record(void *ctx, uint32_t process, const struct memory_record *what)
{
    struct summing *x = ctx;
    if (memory_has_time(what->kind) && !is_within(x->only, what->v[0])) return 0;
    struct memory_replay *r = replay_of(x, process);
    if (r) x->status = memory_replay_record(r, what, x->err);
    return x->status != TARE_OK;
}

static tare_status play(struct summing *x, struct trace *t)
{
    tare_status s = trace_memory(t, on_record, x, x->err);
    return s == TARE_OK ? x->status : s;
}

static tare_status play_twice(struct summing *x, struct trace *t)
{
    tare_status s = play(x, t);
    x->again = true;
    for (size_t i = 0; i < x->all.n && s == TARE_OK; i++) s = memory_replay_again(&x->all.items[i], x->err);
    if (s == TARE_OK) s = play(x, t);
    for (size_t i = 0; i < x->all.n && s == TARE_OK; i++) memory_replay_end(&x->all.items[i]);
    return s;
}

/* ---- sites ---- */

/* What never held so much is not called growing by growth.h, however it grows. */
#define JUDGED_FROM 262144.0
/* Nor what is recorded for less: whatever is being built grows as long as that takes. */
#define JUDGED_NS UINT64_C(1000000000)

tare_status memory_site_judge(const struct memory_process *p, struct memory_site *s, tare_error *err)
{
    double at[MEMORY_MOMENTS], most = 0;
    struct growth_series x = {at, s->series, MEMORY_MOMENTS};
    s->judged = false;
    if (p->to_ns - p->from_ns < JUDGED_NS) return TARE_OK;
    for (size_t i = 0; s->series && i < MEMORY_MOMENTS; i++) {
        at[i] = memory_moment(p, i);
        most = fmax(most, s->series[i]);
    }
    if (most < JUDGED_FROM) return TARE_OK;
    tare_status status = growth_test(&x, &s->growth, NULL);
    s->judged = status == TARE_OK;
    return status == TARE_NOMEM ? error_nomem(err, "the judge of growth")
                                : TARE_OK; /* else too short a time */
}

static int more(double a, double b)
{
    return (a < b) - (a > b);
}

static int by_peak(const void *a, const void *b)
{
    const struct replay_site *x = a, *y = b;
    int c = more(x->site.at_peak.sum, y->site.at_peak.sum);
    if (!c) c = more(x->site.allocated.sum, y->site.allocated.sum);
    return c ? c : (x->stack > y->stack) - (x->stack < y->stack);
}

static tare_status list_sites(struct memory_replay *r, tare_error *err)
{
    size_t n = r->sites.n;
    const struct memory_frame_named *frames = memory_told_frames(&r->told, r->arena);
    r->sum.sites = n ? arena_new(r->arena, n, sizeof *r->sum.sites) : NULL;
    if (r->arena->failed) return error_nomem(err, "%zu sites", n);
    if (n > 1) qsort(r->sites.items, n, sizeof r->sites.items[0], by_peak);
    for (size_t i = 0; i < n; i++) {
        struct replay_site *s = &r->sites.items[i];
        s->site.frame = memory_told_frame(&r->told, frames, s->stack);
        tare_status status = memory_site_judge(&r->sum, &s->site, err);
        if (status != TARE_OK) return status;
        r->sum.sites[i] = s->site;
    }
    r->sum.n_sites = n;
    return TARE_OK;
}

/* ---- all of it ---- */

static tare_status finish(struct memory_replay *r, const struct trace *t, tare_error *err)
{
    struct memory_process *p = &r->sum;
    tare_status s = list_sites(r, err);
    p->pid = trace_process(t, r->process)->pid;
    p->command = arena_str(r->arena, trace_process(t, r->process)->command);
    p->closed = trace_process(t, r->process)->closed;
    p->notes = r->notes.n ? arena_new(r->arena, r->notes.n, sizeof *p->notes) : NULL;
    if (s == TARE_OK && r->arena->failed) s = error_nomem(err, "%zu notes", r->notes.n);
    if (s != TARE_OK || !p->notes) return s;
    memcpy(p->notes, r->notes.items, r->notes.n * sizeof *p->notes);
    p->n_notes = r->notes.n;
    return TARE_OK;
}

static int by_process_peak(const void *a, const void *b)
{
    const struct memory_process *x = a, *y = b;
    int c = more(x->peak.sum, y->peak.sum);
    return c ? c : (x->pid > y->pid) - (x->pid < y->pid);
}

tare_status memory_sum(struct trace *t, struct memory_profile *out, tare_error *err)
{
    return memory_sum_within(t, (struct memory_windows){NULL, 0}, out, err);
}

tare_status memory_sum_within(struct trace *t, struct memory_windows only, struct memory_profile *out,
                              tare_error *err)
{
    struct summing x = {.arena = &out->arena, .only = only, .err = err};
    *out = (struct memory_profile){.arena = ARENA_INIT};
    if (!trace_has_memory(t))
        return error_set(err, TARE_INVALID, "%s: has no record of memory: record one with tare run --memory",
                         trace_path(t));
    tare_status s = play_twice(&x, t);
    if (s == TARE_OK && x.all.n) out->processes = arena_new(&out->arena, x.all.n, sizeof *out->processes);
    if (s == TARE_OK && out->arena.failed) s = error_nomem(err, "%zu processes", x.all.n);
    for (size_t i = 0; i < x.all.n && s == TARE_OK; i++) {
        s = finish(&x.all.items[i], t, err);
        out->processes[out->n++] = x.all.items[i].sum;
    }
    if (out->n > 1) qsort(out->processes, out->n, sizeof *out->processes, by_process_peak);
    for (size_t i = 0; i < x.all.n; i++) memory_replay_release(&x.all.items[i]);
    vec_release(&x.all);
    return s;
}

void memory_profile_release(struct memory_profile *p)
{
    arena_release(&p->arena);
}
