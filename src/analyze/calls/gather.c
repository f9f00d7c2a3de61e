/* SPDX-License-Identifier: MIT
 * gather.c - see gather.h. */
#include "analyze/calls/gather.h"

#include <math.h>
#include <string.h>

#include "core/stats.h"

struct call {
    uint32_t parent, site, kind;
};

static tare_status node_at(struct gather *g, struct call c, uint32_t *out, tare_error *err)
{
    uint64_t *at;
    tare_status s = map_u64_ref(&g->index, (uint64_t)c.parent << 32 | c.site, &at, err);
    if (s != TARE_OK) return s;
    if (!*at) {
        struct gathered fresh = {
            .site = c.site, .parent = c.parent, .kind = c.kind, .min_ns = INFINITY, .hist = HIST_INIT};
        s = vec_push(&g->nodes, fresh, err);
        if (s != TARE_OK) return s;
        *at = g->nodes.n - 1;
    }
    *out = (uint32_t)*at;
    return TARE_OK;
}

static uint64_t units(double ns)
{
    double u = ns * GATHER_UNITS + 0.5;
    if (u < 1) return 0;
    return u < 1.8e19 ? (uint64_t)u : UINT64_MAX;
}

/* Adds (calls x standard error of the mean)^2 from sums over equal batches, widened for their small number. */
static void add_error(struct gathered *to, const double *ns, uint32_t n, uint64_t size, uint64_t calls)
{
    if (n < 2 || !size) return;
    double sd = stats_stddev(ns, n) / (double)size, t = stats_t_quantile(0.975, n - 1) / stats_normal_quantile(0.975);
    double se = sd * t / sqrt(n) * (double)calls;
    to->se2_n2 += se * se;
    to->se_known = true;
}

/* ---- from trees ---- */

struct from_trees {
    struct gather *g;
    tare_error *err;
    VEC(uint32_t) here; /* number in this tree -> gathered node */
    uint32_t process, slot;
};

/* A scope left out still costs a call, and a wrong guess of the processor. Start-up knows it where nothing hides it;
 * between pieces of work it may hide in their shadow: take the middle between all of it and nothing. */
static double skip_cost(const struct trace_process *p)
{
    return p->skipped.value / 2;
}

static void add_costs(struct gathered *to, const struct trace_node *n, const struct trace_process *p)
{
    to->on += n->count;
    to->off += n->off_count;
    to->on_ns += (double)n->total * p->tick_ns;
    to->off_ns += (double)n->off_total * p->tick_ns;
    to->inside_ns += (double)n->count * p->inside.value;
    to->skipped_ns += (double)n->off_scopes * skip_cost(p);
    to->fast_clock |= p->clock == TARE_CLOCK_FAST && p->tsc;
    if (n->count && (double)n->min * p->tick_ns < to->min_ns) to->min_ns = (double)n->min * p->tick_ns;
    if (n->count && (double)n->max * p->tick_ns > to->max_ns) to->max_ns = (double)n->max * p->tick_ns;
    double batch[GATHER_BATCHES];
    for (uint32_t i = 0; i < n->n_batches; i++) batch[i] = (double)n->batch[i] * p->tick_ns;
    add_error(to, batch, n->n_batches, n->batch_size, n->count);
}

static tare_status add_readings(struct gathered *to, const struct trace_node *n, const struct trace_process *p,
                                tare_error *err)
{
    for (uint32_t i = 0; i < n->n_buckets; i++) {
        const struct trace_bucket *b = &n->bucket[i];
        double middle = b->high - b->low > 1 ? (double)b->low + (double)(b->high - b->low) / 2 : (double)b->low;
        tare_status s = hist_record_n(&to->hist, units(middle * p->tick_ns), b->count, err);
        if (s != TARE_OK) return s;
    }
    for (uint32_t i = 0; i < n->n_pairs; i++) {
        const struct trace_pair *w = &n->pair[i];
        if (!w->scopes) continue;
        double ns = ((double)w->on - (double)w->off) * p->tick_ns / w->scopes + skip_cost(p);
        tare_status s = vec_push(&to->weights, ns, err);
        if (s != TARE_OK) return s;
    }
    return TARE_OK;
}

/* Nodes of one tree come parents first, numbered from 0: `here` maps their numbers to gathered nodes as they come. */
static tare_status add_node(struct from_trees *f, const struct trace_node *n)
{
    struct gather *g = f->g;
    uint32_t at = 0;
    if (n->process != f->process || n->slot != f->slot || n->number == 0) vec_clear(&f->here);
    f->process = n->process;
    f->slot = n->slot;
    if (n->number != f->here.n) return TARE_OK; /* the chunk before it is damaged: no place to hang it */
    tare_status s = TARE_OK;
    if (n->number) s = node_at(g, (struct call){f->here.items[n->parent], n->site, n->kind}, &at, f->err);
    if (s == TARE_OK) s = vec_push(&f->here, at, f->err);
    if (s != TARE_OK || !n->number) return s;
    struct gathered *to = &g->nodes.items[at];
    const struct trace_process *p = trace_process(g->t, n->process);
    if (n->count || n->off_count || n->abandoned) to->threads += n->threads;
    to->abandoned += n->abandoned;
    if (n->kind == TARE_SITE_SCOPE) {
        add_costs(to, n, p);
        return add_readings(to, n, p, f->err);
    }
    to->on += n->count;
    if (n->kind == TARE_SITE_COUNTER) to->value = (int64_t)((uint64_t)to->value + (uint64_t)n->total);
    return TARE_OK;
}

static int each_node(void *ctx, const struct trace_node *n)
{
    struct from_trees *f = ctx;
    if (f->g->thread >= 0 && n->thread != f->g->thread) return 0;
    return add_node(f, n);
}

static tare_status gather_trees(struct gather *g, tare_error *err)
{
    struct from_trees f = {.g = g, .err = err, .process = UINT32_MAX};
    g->percentile_error = 1.0 / 32 + 0.0054;
    tare_status s = trace_nodes(g->t, each_node, &f, err);
    vec_release(&f.here);
    return s;
}

/* ---- from events ---- */

enum { EVENT_DEPTH = 1 << 12 };

struct from_events {
    struct gather *g;
    tare_error *err;
    const struct trace_process *p;
    uint32_t depth;
    uint32_t node[EVENT_DEPTH];
};

static void batch_add(struct batches *b, double ns)
{
    if (!b->size) b->size = 1;
    b->open_ns += ns;
    if (++b->open < b->size) return;
    if (b->n == GATHER_BATCHES) {
        for (uint32_t i = 0; i < GATHER_BATCHES / 2; i++) b->ns[i] = b->ns[2 * i] + b->ns[2 * i + 1];
        b->n = GATHER_BATCHES / 2;
        b->size *= 2;
        return; /* the open batch is half full at the new size */
    }
    b->ns[b->n++] = b->open_ns;
    b->open_ns = 0;
    b->open = 0;
}

static tare_status add_call(struct from_events *f, uint32_t at, double ns)
{
    struct gathered *n = &f->g->nodes.items[at];
    n->on++;
    n->on_ns += ns;
    n->inside_ns += f->p->inside.value;
    n->fast_clock |= f->p->clock == TARE_CLOCK_FAST && f->p->tsc;
    if (ns < n->min_ns) n->min_ns = ns;
    if (ns > n->max_ns) n->max_ns = ns;
    batch_add(&n->batches, ns);
    return hist_record(&n->hist, units(ns), f->err);
}

/* The innermost open scope; 0, the root: none, or too deep to be kept. */
static uint32_t open_node(const struct from_events *f)
{
    return f->depth && f->depth <= EVENT_DEPTH ? f->node[f->depth - 1] : 0;
}

static tare_status on_begin(struct from_events *f, const struct trace_event *e)
{
    uint32_t parent = open_node(f), at;
    if (f->depth >= EVENT_DEPTH) {
        f->depth++;
        return TARE_OK;
    }
    tare_status s = node_at(f->g, (struct call){parent, e->site, TARE_SITE_SCOPE}, &at, f->err);
    if (s != TARE_OK) return s;
    f->node[f->depth++] = at;
    return TARE_OK;
}

static tare_status on_end(struct from_events *f, const struct trace_event *e)
{
    if (!f->depth || --f->depth >= EVENT_DEPTH) return TARE_OK;
    uint32_t at = f->node[f->depth];
    if (e->flags & TRACE_SYNTHETIC) {
        f->g->nodes.items[at].abandoned++;
        return TARE_OK;
    }
    if (e->flags & TRACE_PAUSED) return TARE_OK; /* the call goes on */
    return add_call(f, at, (double)(e->time_ns - e->began_ns));
}

static tare_status on_other(struct from_events *f, const struct trace_event *e)
{
    uint32_t parent = open_node(f), at;
    uint32_t kind = e->kind == TRACE_COUNT ? TARE_SITE_COUNTER : TARE_SITE_MARK;
    tare_status s = node_at(f->g, (struct call){parent, e->site, kind}, &at, f->err);
    if (s != TARE_OK) return s;
    f->g->nodes.items[at].on++;
    if (kind == TARE_SITE_COUNTER)
        f->g->nodes.items[at].value = (int64_t)((uint64_t)f->g->nodes.items[at].value + (uint64_t)e->value);
    return TARE_OK;
}

static int each_event(void *ctx, const struct trace_event *e)
{
    switch (e->kind) {
    case TRACE_BEGIN: return on_begin(ctx, e);
    case TRACE_END: return on_end(ctx, e);
    default: return on_other(ctx, e);
    }
}

/* Close one thread's books: batches become an error, and paths it ran count one thread more. */
static void end_thread(struct gather *g, const uint64_t *before, size_t n_before)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct gathered *n = &g->nodes.items[i];
        uint64_t was = i < n_before ? before[i] : 0, calls = n->on + n->abandoned - was;
        if (!calls) continue;
        n->threads++;
        if (n->kind == TARE_SITE_SCOPE) add_error(n, n->batches.ns, n->batches.n, n->batches.size, calls);
        memset(&n->batches, 0, sizeof n->batches);
    }
}

static tare_status gather_thread_events(struct gather *g, struct from_events *f, uint32_t thread, tare_error *err)
{
    size_t n = g->nodes.n;
    uint64_t *before = mem_new(n, sizeof *before);
    if (!before) return error_set(err, TARE_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) before[i] = g->nodes.items[i].on + g->nodes.items[i].abandoned;
    f->depth = 0;
    f->p = trace_process(g->t, trace_thread(g->t, thread)->process);
    tare_status s = trace_events(g->t, thread, each_event, f, err);
    if (s == TARE_OK) end_thread(g, before, n);
    mem_free(before);
    return s;
}

static tare_status gather_events(struct gather *g, tare_error *err)
{
    struct from_events *f = mem_new(1, sizeof *f);
    if (!f) return error_set(err, TARE_NOMEM, "out of memory");
    f->g = g;
    f->err = err;
    g->percentile_error = 0.0054;
    tare_status s = TARE_OK;
    for (uint32_t i = 0; i < trace_n_threads(g->t) && s == TARE_OK; i++)
        if (g->thread < 0 || g->thread == (int)i) s = gather_thread_events(g, f, i, err);
    mem_free(f);
    return s;
}

/* ---- from whichever there is: trees know every call, events only those that were not dropped ---- */

tare_status gather_trace(struct gather *g, struct trace *t, int thread, tare_error *err)
{
    g->t = t;
    g->thread = thread;
    struct gathered root = {.site = UINT32_MAX, .min_ns = INFINITY, .hist = HIST_INIT};
    tare_status s = vec_push(&g->nodes, root, err);
    if (s != TARE_OK) return s;
    return trace_has_tree(t) ? gather_trees(g, err) : gather_events(g, err);
}

void gather_release(struct gather *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        hist_release(&g->nodes.items[i].hist);
        vec_release(&g->nodes.items[i].weights);
    }
    vec_release(&g->nodes);
    map_u64_release(&g->index);
}
