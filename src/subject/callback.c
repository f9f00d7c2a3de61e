/* SPDX-License-Identifier: MIT
 * callback.c - see callback.h. Between the two clock reads of a run is nothing but the calls. */
#include "subject/callback.h"

#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/stats.h"

enum {
    TRIES = 8,            /* calls by which it is decided how many go into one sample */
    SAMPLE_NS = 10000,    /* that a sample should last: two clock reads are then under 1 % of it */
    SHORT_NS = 1000,      /* calls below this are timed several at a time */
    GROUP_MOST = 1 << 12, /* of calls that take no time at all */
    BATCHES = 15,
    BATCH_RUNS = 200
};

struct callback {
    struct subject base;
    struct callback_options o;
    struct arena texts; /* its own copies of them */
};

struct callback_lane { /* of one worker */
    unsigned tried;
    uint64_t fastest;
    uint64_t group; /* calls of one sample */
};

struct callback_instance {
    struct instance base;
    const struct callback_options *o;
    void *state;
    int64_t batch;
    bool ungrouped;
    unsigned workers;
    struct callback_lane *lanes;
};

typedef tare_status call_function(void *state, unsigned worker, struct subject_cost *cost, tare_error *err);

/* ---- one sample ---- */

static tare_status time_calls(struct callback_instance *i, unsigned worker, call_function *call,
                              struct subject_cost *cost, tare_error *err)
{
    uint64_t most = i->lanes[worker].group ? i->lanes[worker].group : 1, n = 0;
    tare_status s = TARE_OK;
    cost->wall_ns = 0;
    uint64_t start = clock_raw_ns();
    for (; n < most && s == TARE_OK; n++) s = call(i->state, worker, cost, err);
    uint64_t ns = clock_raw_ns() - start;
    if (cost->wall_ns) return s; /* told by the call */
    cost->wall_ns = (ns + n / 2) / n;
    if (!cost->wall_ns) cost->wall_ns = 1;
    return s;
}

/* The first calls, one at a time, decide how many go into one sample from then on. */
static void choose_group(struct callback_lane *l, uint64_t ns)
{
    if (!l->tried || ns < l->fastest) l->fastest = ns;
    if (++l->tried < TRIES || l->fastest >= SHORT_NS) return;
    l->group = SAMPLE_NS / (l->fastest ? l->fastest : 1);
    if (l->group > GROUP_MOST) l->group = GROUP_MOST;
}

static tare_status callback_run(struct instance *base, unsigned worker, struct subject_cost *cost,
                                tare_error *err)
{
    struct callback_instance *i = (struct callback_instance *)base;
    struct callback_lane *l = &i->lanes[worker];
    tare_status s = time_calls(i, worker, i->o->call, cost, err);
    if (l->tried < TRIES && s == TARE_OK) choose_group(l, cost->wall_ns);
    if (s < 0)
        *l = (struct callback_lane){.group = 1, .tried = TRIES}; /* which calls fail is counted one by one */
    return s;
}

static tare_status callback_before(struct instance *base, unsigned worker, tare_error *err)
{
    struct callback_instance *i = (struct callback_instance *)base;
    return i->o->before(i->state, worker, err);
}

/* What two clock reads and the calling cost, of each call. */
static uint64_t callback_overhead(struct instance *base)
{
    struct callback_instance *i = (struct callback_instance *)base;
    struct subject_cost cost = {0};
    double each[BATCHES] = {0};
    if (!i->o->nothing) return 0;
    for (int b = 0; b < BATCHES; b++) {
        for (int k = 0; k < BATCH_RUNS; k++) {
            if (time_calls(i, 0, i->o->nothing, &cost, NULL) < 0) return 0;
            each[b] += (double)cost.wall_ns / BATCH_RUNS;
        }
    }
    stats_sort(each, BATCHES);
    return (uint64_t)(stats_median_sorted(each, BATCHES) + 0.5);
}

/* ---- one case ---- */

static void callback_finish(struct instance *base)
{
    struct callback_instance *i = (struct callback_instance *)base;
    if (i->o->finish && i->state) i->o->finish(i->state);
    mem_free(i->lanes);
    mem_free(i);
}

/* A lane that may not group has its tries behind it: its group stays 1. */
static tare_status callback_prepare(struct subject *base, const struct case_params *p,
                                    const struct case_record *to, struct instance **out, tare_error *err)
{
    struct callback *c = (struct callback *)base;
    struct callback_instance *i = mem_new(1, sizeof *i);
    if (!i) return error_nomem(err, "a case");
    i->base.subject = base;
    i->o = &c->o;
    i->batch = p->batch;
    i->ungrouped = p->ungrouped || c->o.before_each || c->o.tells_time;
    i->workers = p->workers ? p->workers : 1;
    i->lanes = mem_new(i->workers, sizeof *i->lanes);
    tare_status s = i->lanes ? TARE_OK : error_nomem(err, "a case");
    for (unsigned w = 0; s == TARE_OK && w < i->workers; w++)
        i->lanes[w] = (struct callback_lane){.group = 1, .tried = i->ungrouped ? TRIES : 0};
    if (s == TARE_OK && !c->o.prepare) i->state = c->o.ctx;
    if (s == TARE_OK && c->o.prepare) s = c->o.prepare(c->o.ctx, p, &i->state, err);
    if (s < 0) {
        callback_finish(&i->base);
        return s;
    }
    case_say_params(p, to);
    *out = &i->base;
    return TARE_OK;
}

uint64_t callback_group(const struct instance *base)
{
    return ((const struct callback_instance *)base)->lanes[0].group;
}

static tare_status callback_report(struct instance *base, struct run *run, struct run_case *c,
                                   tare_error *err)
{
    (void)run;
    (void)err;
    c->calls_per_sample = known_u64(callback_group(base));
    return TARE_OK;
}

static int64_t callback_units(const struct instance *base)
{
    const struct callback_instance *i = (const struct callback_instance *)base;
    if (i->o->units) return i->o->units(i->state);
    return i->batch ? i->batch : 1;
}

/* ---- the subject ---- */

static tare_status callback_describe(struct subject *base, struct run *run, tare_error *err)
{
    const struct callback_options *o = &((struct callback *)base)->o;
    struct arena *a = &run->arena;
    run->subject.type = arena_str(a, o->type);
    run->subject.name = arena_str(a, o->name);
    if (o->path) run->subject.path = arena_str(a, o->path);
    if (o->runtime) {
        run->subject.runtime.known = true;
        run->subject.runtime.name = arena_str(a, o->runtime);
        run->subject.runtime.version = o->runtime_version ? arena_str(a, o->runtime_version) : NULL;
    }
    return a->failed ? error_nomem(err, "a description") : TARE_OK;
}

static void callback_close(struct subject *base)
{
    struct callback *c = (struct callback *)base;
    arena_release(&c->texts);
    mem_free(c);
}

#define CALLBACK_OPS                                                                                         \
    .type = "callback", .reports_time = true, .describe = callback_describe, .prepare = callback_prepare,       \
    .run = callback_run, .report = callback_report, .units = callback_units, .finish = callback_finish,      \
    .close = callback_close, .overhead_ns = callback_overhead
static const struct subject_ops callback_ops = {CALLBACK_OPS};
static const struct subject_ops callback_before_ops = {CALLBACK_OPS, .before_run = callback_before};

tare_status subject_open_callback(struct subject **out, const struct callback_options *o, tare_error *err)
{
    struct callback *c = mem_new(1, sizeof *c);
    if (!c) return error_nomem(err, "a function");
    c->base.ops = o->before ? &callback_before_ops : &callback_ops;
    c->o = *o;
    const char **const places[] = {&c->o.type, &c->o.name, &c->o.path, &c->o.runtime, &c->o.runtime_version};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) *places[i] = arena_str(&c->texts, *places[i]);
    if (c->texts.failed) {
        callback_close(&c->base);
        return error_nomem(err, "a function");
    }
    *out = &c->base;
    return TARE_OK;
}
