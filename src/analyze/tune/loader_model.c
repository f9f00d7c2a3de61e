/* SPDX-License-Identifier: MIT
 * loader_model.c - rates of a data loader from the costs of its stages: see loader_model.h. */
#include "analyze/tune/loader_model.h"

#include <math.h>

enum { DEPTH_LEAST = 2, DEPTH_MOST = 16 };

static const char *const stage_names[] = {
#define X(NAME, name) #name,
    LOADER_STAGES(X)
#undef X
};

const char *loader_stage_name(enum loader_stage s)
{
    return stage_names[s];
}

const char *loader_mode_name(enum loader_mode m)
{
    return m == LOADER_THREADS ? "threads" : "processes";
}

const char *loader_limit_name(enum loader_limit l)
{
    static const char *const names[] = {
        [LOADER_LIMIT_WORKERS] = "workers", [LOADER_LIMIT_CORES] = "cores",     [LOADER_LIMIT_LOCK] = "lock",
        [LOADER_LIMIT_DISK] = "disk",       [LOADER_LIMIT_RECEIVE] = "receive", [LOADER_LIMIT_STEP] = "step",
    };
    return names[l];
}

static double known(double v)
{
    return isnan(v) ? 0 : v;
}

/* Of the stages first..last. */
static struct loader_cost sum(const struct loader_pipeline *p, int first, int last)
{
    struct loader_cost c = {0, 0};
    for (int s = first; s <= last; s++) {
        c.wall += known(p->stage[s].wall);
        c.cpu += known(p->stage[s].cpu);
    }
    return c;
}

static double per(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : INFINITY;
}

static double disk_rate(const struct loader_pipeline *p)
{
    return isnan(p->read_bytes) || isnan(p->disk_rate) ? INFINITY : per(p->disk_rate, p->read_bytes);
}

/* Where the kernel shares by session or control group first, the weight of ours is all on one processor for one thread,
 * and split for more: k threads on as many processors get k / (1 + k (1/share - 1)) of them, which is hardly more than
 * one gets on a busy machine. */
static double cores_of_group(const struct loader_pipeline *p, double own)
{
    double k = fmin(own, p->cores);
    return isnan(p->share) ? 0 : k / (1 + k * (1 / p->share - 1));
}

/* Of the processors, what as many threads get beside those of others: each an equal share, unless one thread got more
 * than that, so that others do not count by their threads. */
static double cores_for(const struct loader_pipeline *p, double workers)
{
    double own = fmax(workers, 1), all = own + known(p->others);
    if (all <= p->cores || isinf(own)) return p->cores;
    return fmax(p->cores * own / all, cores_of_group(p, own));
}

/* The rate of each limit. Without workers all stages are one after the other in one process, which is the limit of
 * workers. With workers the main process still takes over, copies and steps, one after the other: that is one limit,
 * named by what is longer of it. */
static void limits_of(const struct loader_pipeline *p, struct loader_choice c, double workers,
                      double out[LOADER_LIMIT_COUNT])
{
    bool crosses = c.mode == LOADER_PROCESSES && workers > 0;
    struct loader_cost made = sum(p, LOADER_FETCH, crosses ? LOADER_SEND : LOADER_COLLATE);
    struct loader_cost used = sum(p, crosses ? LOADER_RECEIVE : LOADER_COPY, LOADER_STEP);
    double step = known(p->stage[LOADER_STEP].wall), main_rate = per(1, used.wall);
    double locked = isnan(p->locked) ? made.cpu + used.cpu : p->locked;
    bool alone = workers == 0;
    made.wall += known(p->delayed);
    for (int l = 0; l < LOADER_LIMIT_COUNT; l++) out[l] = INFINITY;
    out[LOADER_LIMIT_WORKERS] = alone ? per(1, made.wall + used.wall) : per(workers, made.wall);
    out[LOADER_LIMIT_CORES] = per(cores_for(p, workers), made.cpu + used.cpu);
    out[LOADER_LIMIT_DISK] = disk_rate(p);
    if (c.mode == LOADER_THREADS && !alone) out[LOADER_LIMIT_LOCK] = per(1, locked);
    if (!alone) out[step * 2 >= used.wall ? LOADER_LIMIT_STEP : LOADER_LIMIT_RECEIVE] = main_rate;
}

/* The stage to look at: of the main process's own where that is the limit, else of those that make batches. */
static enum loader_stage longest(const struct loader_pipeline *p, enum loader_limit l, bool crosses)
{
    bool cpu = l == LOADER_LIMIT_CORES || l == LOADER_LIMIT_LOCK;
    int first = LOADER_FETCH, last = crosses ? LOADER_SEND : LOADER_COLLATE, best;
    if (l == LOADER_LIMIT_RECEIVE) first = LOADER_RECEIVE, last = LOADER_COPY;
    if (l == LOADER_LIMIT_STEP) first = last = LOADER_STEP;
    best = first;
    for (int s = first; s <= last; s++) {
        double a = cpu ? p->stage[s].cpu : p->stage[s].wall,
               b = cpu ? p->stage[best].cpu : p->stage[best].wall;
        if (known(a) > known(b)) best = s;
    }
    return (enum loader_stage)best;
}

static struct loader_rate lowest(const struct loader_pipeline *p, struct loader_choice c, double workers)
{
    double limits[LOADER_LIMIT_COUNT], next = INFINITY;
    int at = LOADER_LIMIT_STEP; /* where nothing takes time the loader is not what limits */
    limits_of(p, c, workers, limits);
    for (int l = LOADER_LIMIT_COUNT - 1; l >= 0; l--)
        if (limits[l] < limits[at]) at = l;
    for (int l = 0; l < LOADER_LIMIT_COUNT; l++)
        if (l != at && limits[l] < next) next = limits[l];
    bool crosses = c.mode == LOADER_PROCESSES && workers > 0;
    struct loader_cost all = sum(p, LOADER_FETCH, LOADER_STEP), moved = sum(p, LOADER_SEND, LOADER_RECEIVE);
    double cpu = crosses ? all.cpu : all.cpu - moved.cpu, step = p->stage[LOADER_STEP].wall,
           rate = limits[at];
    return (struct loader_rate){
        .rate = rate,
        .limit = (enum loader_limit)at,
        .room = isinf(rate) ? 1 : next / rate,
        .waiting = isnan(step) || isinf(rate) ? NAN : fmax(0, 1 - rate * step),
        .cores = isinf(rate) ? NAN : rate * cpu,
        .longest = longest(p, (enum loader_limit)at, crosses),
    };
}

static tare_status check(const struct loader_pipeline *p, tare_error *err)
{
    for (int s = 0; s < LOADER_STAGE_COUNT; s++) {
        if (!(p->stage[s].wall < 0 || isinf(p->stage[s].wall) || p->stage[s].cpu < 0 ||
              isinf(p->stage[s].cpu)))
            continue;
        return error_set(err, TARE_INVALID, "%s: %g s of time, %g s of processor time: neither can be",
                         stage_names[s], p->stage[s].wall, p->stage[s].cpu);
    }
    if (known(p->others) < 0 || isinf(p->others) || known(p->delayed) < 0 || isinf(p->delayed))
        return error_set(err, TARE_INVALID, "%g threads of others, that delay a sample by %g s, cannot be",
                         p->others, p->delayed);
    if (p->share <= 0 || p->share > 1)
        return error_set(err, TARE_INVALID, "%g of a processor for one thread cannot be", p->share);
    if (!(p->cores > 0) || !p->batch)
        return error_set(err, TARE_INVALID, "%g cores and batches of %zu: both are above 0", p->cores,
                         p->batch);
    return TARE_OK;
}

tare_status loader_predict(const struct loader_pipeline *p, struct loader_choice c, struct loader_rate *out,
                           tare_error *err)
{
    tare_status s = check(p, err);
    if (s == TARE_OK) *out = lowest(p, c, (double)c.workers);
    return s;
}

/* As few workers as reach the cap, and one more for the samples that are slower than others. Fewer where nothing is
 * gained by them: among equals none is best. */
static struct loader_choice fewest(const struct loader_pipeline *p, enum loader_mode mode, double cap)
{
    struct loader_choice none = {mode, 0};
    double alone = lowest(p, none, 0).rate;
    struct loader_cost made = sum(p, LOADER_FETCH, mode == LOADER_PROCESSES ? LOADER_SEND : LOADER_COLLATE);
    double want = isinf(cap) ? 0 : ceil(cap * made.wall - 1e-9);
    if (known(p->spread) > 0) want++;
    struct loader_choice c = {mode, (size_t)fmin(fmax(want, 1), (double)p->most_workers)};
    return lowest(p, c, (double)c.workers).rate > alone ? c : none;
}

/* Little's law: what arrives while the slowest samples are made must lie ready; within the memory. */
static size_t depth_of(const struct loader_pipeline *p, struct loader_choice c, double rate)
{
    double workers = (double)c.workers, batch = (double)p->batch, depth = DEPTH_LEAST;
    if (!c.workers) return 0;
    if (isfinite(rate) && !isnan(p->spread))
        depth = fmax(depth, 1 + ceil(rate * p->spread / batch / workers));
    if (!isnan(p->memory) && p->batch_bytes > 0)
        depth = fmin(depth, floor(p->memory / (workers * p->batch_bytes)));
    return (size_t)fmin(fmax(depth, 1), DEPTH_MOST);
}

tare_status loader_plan(const struct loader_pipeline *p, struct loader_choice now, struct loader_plan *out,
                        tare_error *err)
{
    static const enum loader_mode modes[] = {LOADER_PROCESSES, LOADER_THREADS};
    struct loader_plan plan = {.best = now};
    struct loader_pipeline by_itself = *p;
    tare_status s = check(p, err);
    if (s < 0) return s;
    by_itself.others = by_itself.share = by_itself.delayed = NAN;
    p = &by_itself;
    plan.now = plan.at = plan.cap = lowest(p, now, (double)now.workers);
    for (size_t i = 0; i < 2; i++) {
        struct loader_rate cap = lowest(p, (struct loader_choice){modes[i], 1}, INFINITY);
        struct loader_choice c = fewest(p, modes[i], cap.rate);
        struct loader_rate at = lowest(p, c, (double)c.workers);
        if (cap.rate > plan.cap.rate) plan.cap = cap;
        if (at.rate > plan.at.rate * (1 + 1e-9)) plan.best = c, plan.at = at;
    }
    plan.depth = depth_of(p, plan.best, plan.at.rate);
    plan.bound = isinf(plan.now.rate) ? 1 : plan.cap.rate / plan.now.rate;
    *out = plan;
    return TARE_OK;
}

void loader_explain(const struct loader_pipeline *p, struct loader_choice c, const struct loader_rate *r,
                    struct buf *out)
{
    static const char *const advice[] = {
        [LOADER_LIMIT_WORKERS] = "more workers help",
        [LOADER_LIMIT_CORES] = "all processors are busy: workers cannot help, only less work",
        [LOADER_LIMIT_LOCK] = "threads wait for the interpreter's lock: processes, or functions that release it",
        [LOADER_LIMIT_DISK] = "the disk is at its rate: pack, compress or cache",
        [LOADER_LIMIT_RECEIVE] = "the main process cannot take batches over any faster: smaller ones, or the ring",
        [LOADER_LIMIT_STEP] = "the step is the limit: there is nothing to gain in the loader",
    };
    bool cpu = r->limit == LOADER_LIMIT_CORES || r->limit == LOADER_LIMIT_LOCK;
    struct loader_cost stage = p->stage[r->longest];
    buf_printf(out, "%s: at most %.4g samples a second with %zu %s", loader_limit_name(r->limit), r->rate,
               c.workers, c.mode == LOADER_THREADS ? "threads" : "worker processes");
    if (!isnan(r->waiting)) buf_printf(out, "; the step waits %.0f %% of the time", 100 * r->waiting);
    if (!isnan(r->cores)) buf_printf(out, "; %.2f of %.4g cores busy", r->cores, p->cores);
    buf_printf(out, "; longest: %s, %.3g ms%s a sample", loader_stage_name(r->longest),
               1e3 * known(cpu ? stage.cpu : stage.wall), cpu ? " of processor time" : "");
    if (isfinite(r->room)) buf_printf(out, "; the next limit is %.2f times as high", r->room);
    buf_printf(out, "; %s", advice[r->limit]);
}
