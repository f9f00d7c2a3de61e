/* SPDX-License-Identifier: MIT
 * calltree.c - gathered sums -> a tree of net times. Pure arithmetic.
 *
 * A reading of a scope holds: its own work, `inside` (the part of the two clock reads that falls between
 * them), and for each scope within it a `weight` (all that such a scope costs). Weight is taken from in-situ
 * pairs where there are enough of them on that path, else from all pairs of the trace, else from the start-up
 * calibration, which knows nothing of the program and therefore gets a wide interval. */
#include "analyze/calls/calltree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/calls/gather.h"
#include "core/mem.h"
#include "core/stats.h"

enum { PAIRS_ENOUGH = 12, CALLS_FOR_P50 = 3, CALLS_FOR_P95 = 20, CALLS_FOR_P99 = 100 };

/* What no calibration here can resolve: how a scope and the code around it overlap in the pipeline. */
#define INSIDE_FLOOR_NS 10.0
#define IN_SITU_FLOOR_NS 7.0
#define START_UP_FLOOR_NS 12.0
#define FAST_CLOCK_DOUBT_NS 500.0
#define SCALE_MAX 1e9

/* What the instrument costs where nothing more is known of a path. */
struct scope_cost {
    struct interval inside, weight;
    double left_out; /* at most, of a scope that is left out; see gather.c */
    uint64_t pairs;  /* in situ, behind weight */
};

struct build {
    const struct gather *g;
    struct calltree *tree;
    struct scope_cost all;
    struct interval *weight; /* per node */
    uint64_t *scopes;        /* per node: scopes recorded anywhere below */
    double *scale;           /* per node: calls there were per call recorded, for calls left out above */
    double *inner;           /* per node, see set_selves */
};

/* ---- weights ---- */

static struct interval widen(struct interval v, double least)
{
    if (!(v.value - v.lo >= least)) v.lo = v.value - least;
    if (!(v.hi - v.value >= least)) v.hi = v.value + least;
    return v;
}

/* The Hodges-Lehmann centre of what the pairs say one scope costs, with its interval; never narrower than what no
 * calibration resolves, and than what a left-out partner may have cost: anything from nothing to left_out. */
static tare_status in_situ(const double *w, size_t n, double left_out, struct interval *out, tare_error *err)
{
    tare_status s = stats_hodges_lehmann(w, n, 0.95, out, err);
    if (s == TARE_OK) *out = widen(*out, hypot(IN_SITU_FLOOR_NS, left_out / 2));
    return s;
}

/* The mean of what each process found when it started. */
static void cost_at_start_up(struct trace *t, struct scope_cost *w)
{
    struct interval in = {0}, all = {0};
    double n = 0;
    for (uint32_t i = 0; i < trace_n_processes(t); i++) {
        const struct trace_process *p = trace_process(t, i);
        if (!(p->inside.value > 0)) continue;
        w->left_out += p->skipped.value;
        in.value += p->inside.value, in.lo += p->inside.lo, in.hi += p->inside.hi;
        all.value += p->inside.value + p->outside.value;
        all.lo += p->inside.lo + p->outside.lo;
        all.hi += p->inside.hi + p->outside.hi;
        n++;
    }
    if (n > 0) {
        w->left_out /= n;
        in = (struct interval){in.value / n, in.lo / n, in.hi / n};
        all = (struct interval){all.value / n, all.lo / n, all.hi / n};
    }
    w->inside = widen(in, INSIDE_FLOOR_NS);
    w->weight = widen(all, START_UP_FLOOR_NS);
}

static tare_status pool_pairs(struct build *b, tare_error *err)
{
    VEC(double) pooled = VEC_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < b->g->nodes.n && s == TARE_OK; i++) {
        const struct gathered *n = &b->g->nodes.items[i];
        for (size_t k = 0; k < n->weights.n && s == TARE_OK; k++)
            s = vec_push(&pooled, n->weights.items[k], err);
    }
    b->all.pairs = pooled.n;
    if (s == TARE_OK && pooled.n >= PAIRS_ENOUGH)
        s = in_situ(pooled.items, pooled.n, b->all.left_out, &b->all.weight, err);
    vec_release(&pooled);
    return s;
}

static tare_status weigh_nodes(struct build *b, tare_error *err)
{
    cost_at_start_up(b->g->t, &b->all);
    tare_status s = pool_pairs(b, err);
    for (size_t i = 0; i < b->g->nodes.n && s == TARE_OK; i++) {
        const struct gathered *n = &b->g->nodes.items[i];
        b->weight[i] = b->all.weight;
        if (n->weights.n >= PAIRS_ENOUGH)
            s = in_situ(n->weights.items, n->weights.n, b->all.left_out, &b->weight[i], err);
    }
    return s;
}

/* ---- structure ---- */

/* Two numbers per node. `scopes`: how many scopes were recorded below it, each of which put a weight into its readings.
 * `scale`: weighed calls leave out what is inside them, so of a path below a node that ran on + off times only the
 * share on / (on + off) was recorded; the factors multiply down the tree. Parents come before children in g->nodes, so
 * one pass up and one down suffice. */
static void count_scopes(struct build *b)
{
    const struct gather *g = b->g;
    for (size_t i = g->nodes.n; i-- > 1;) {
        const struct gathered *n = &g->nodes.items[i];
        if (n->kind == TARE_SITE_SCOPE) b->scopes[n->parent] += b->scopes[i] + n->on + n->off;
    }
    b->scale[0] = 1;
    for (size_t i = 1; i < g->nodes.n; i++) {
        const struct gathered *p = &g->nodes.items[g->nodes.items[i].parent];
        double up = b->scale[g->nodes.items[i].parent];
        b->scale[i] = g->nodes.items[i].parent && p->on ? up * (double)(p->on + p->off) / (double)p->on : up;
        if (!(b->scale[i] < SCALE_MAX)) b->scale[i] = SCALE_MAX; /* damage: keep it a number */
    }
}

static struct interval around(double value, double half)
{
    return (struct interval){value, value - half, value + half};
}

static const struct interval UNKNOWN = {NAN, NAN, NAN};

/* What is subtracted: from the sum of all readings of a path, `inside` once per call, the weight of a scope once per
 * scope recorded below it, and what left-out scopes still cost. How the interval arises: the half-widths of those two
 * costs times how often each was subtracted, added up, because one error of calibration goes the same way in every
 * call. The mean has the error of a mean (from batches of calls, which see autocorrelation) besides; these two are
 * independent of each other and are added in squares. */
static void set_times(struct build *b, uint32_t i, struct call_node *out)
{
    const struct gathered *n = &b->g->nodes.items[i];
    double calls = (double)(n->on + n->off), scopes = (double)b->scopes[i], scale = b->scale[i];
    out->gross_total_ns = (n->on_ns + n->off_ns) * scale;
    out->gross_mean_ns = calls > 0 ? (n->on_ns + n->off_ns) / calls : NAN;
    double inside = calls * (n->on ? n->inside_ns / (double)n->on : b->all.inside.value);
    double net = n->on_ns + n->off_ns - inside - scopes * b->weight[i].value - n->skipped_ns;
    double doubt = calls * interval_half(b->all.inside) + scopes * interval_half(b->weight[i]);
    out->total_ns = around(net * scale, doubt * scale);
    if (calls > 0) {
        double sys = doubt / calls, stat = n->se_known ? 1.96 * sqrt(n->se2_n2) / calls : NAN;
        out->mean_ns = around(net / calls, sqrt(sys * sys + stat * stat)); /* too few calls: no interval */
        if (out->mean_ns.value < b->tree->weighing_limit_ns) out->flags |= CALL_BELOW_LIMIT;
        if (n->fast_clock && out->gross_mean_ns < FAST_CLOCK_DOUBT_NS) out->flags |= CALL_FAST_CLOCK;
    }
}

/* Times that came as buckets of the recorder stand in the histogram with the middle of their bucket, which may lie
 * beyond the least and the greatest reading: these are exact, and the quantile is held to them. */
static double quantile_of(const struct gathered *n, double q, uint64_t calls_needed)
{
    if (!n->on || n->hist.count < calls_needed) return NAN;
    return fmin(fmax(hist_quantile(&n->hist, q) / GATHER_UNITS, n->min_ns), n->max_ns);
}

static void set_readings(const struct gathered *n, struct call_node *out)
{
    out->min_ns = n->on ? n->min_ns : NAN;
    out->max_ns = n->on ? n->max_ns : NAN;
    out->p50_ns = quantile_of(n, 0.50, CALLS_FOR_P50);
    out->p95_ns = quantile_of(n, 0.95, CALLS_FOR_P95);
    out->p99_ns = quantile_of(n, 0.99, CALLS_FOR_P99);
}

/* Only scopes are left out below weighed calls, so only their counts are scaled up; one that is then no whole number is
 * marked as estimated. Times begin as NAN: a counter, a mark or the root has none, and 0 would say that it took no
 * time. */
static void set_node(struct build *b, uint32_t i)
{
    const struct gathered *n = &b->g->nodes.items[i];
    struct call_node *out = &b->tree->nodes[i];
    out->site = n->site;
    out->parent = n->parent;
    out->kind = n->kind;
    out->threads = n->threads;
    out->abandoned = n->abandoned;
    out->value = n->value;
    double count = (double)(n->on + n->off) * (n->kind == TARE_SITE_SCOPE ? b->scale[i] : 1);
    out->count = count < 1e19 ? (uint64_t)(count + 0.5) : UINT64_MAX;
    if (fabs(count - (double)out->count) > 1e-6 * count) out->flags |= CALL_COUNT_ESTIMATED;
    out->mean_ns = out->total_ns = out->self_ns = UNKNOWN;
    out->gross_total_ns = out->gross_self_ns = out->gross_mean_ns = NAN;
    out->min_ns = out->max_ns = out->p50_ns = out->p95_ns = out->p99_ns = NAN;
    if (n->kind != TARE_SITE_SCOPE || !i) return;
    set_times(b, i, out);
    set_readings(n, out);
}

/* Self time is the net total less the net totals of the children, with the doubt of its own calls and scopes only: that
 * of the children is already part of what was subtracted for them. A scope that never ended has no reading: it lasted
 * at least as long as what ran inside it. So has the root. */
static void set_selves(struct build *b)
{
    struct calltree *tree = b->tree;
    uint32_t n = tree->n_nodes;
    double *inner = b->inner; /* net total of the children; their gross total is in gross_self_ns meanwhile */
    for (uint32_t i = 0; i < n; i++) inner[i] = 0, tree->nodes[i].gross_self_ns = 0;
    for (uint32_t i = n; i-- > 0;) {
        struct call_node *c = &tree->nodes[i];
        if (c->kind != TARE_SITE_SCOPE) continue;
        const struct gathered *g = &b->g->nodes.items[i];
        if (!i || !(g->on + g->off)) {
            c->total_ns = around(inner[i], 0);
            c->gross_total_ns = c->gross_self_ns;
        }
        double calls = (double)c->count, below = (double)b->scopes[i] * b->scale[i];
        double doubt = i ? calls * interval_half(b->all.inside) + below * interval_half(b->weight[i]) : 0;
        c->self_ns = around(fmax(c->total_ns.value - inner[i], 0), doubt); /* tasks overlap */
        c->gross_self_ns = fmax(c->gross_total_ns - c->gross_self_ns, 0);
        if (i) {
            inner[c->parent] += c->total_ns.value;
            tree->nodes[c->parent].gross_self_ns += c->gross_total_ns;
        }
    }
}

/* ---- children, largest first ---- */

static int by_total(const void *a, const void *b, void *ctx)
{
    const struct call_node *nodes = ctx;
    double x = nodes[*(const uint32_t *)a].gross_total_ns, y = nodes[*(const uint32_t *)b].gross_total_ns;
    return isnan(x) || isnan(y) ? isnan(y) - isnan(x) : (x > y) - (x < y); /* counters and marks come last */
}

static tare_status link_children(struct calltree *tree, tare_error *err)
{
    uint32_t n = tree->n_nodes, *order = mem_new(n, sizeof *order);
    if (!order) return error_nomem(err, "%u call paths", n);
    for (uint32_t i = 1; i < n; i++) order[i - 1] = i;
    qsort_r(order, n - 1, sizeof *order, by_total, tree->nodes);
    for (uint32_t i = 0; i + 1 < n; i++) { /* smallest first, each put before its larger siblings' place */
        struct call_node *c = &tree->nodes[order[i]];
        c->next = tree->nodes[c->parent].child;
        tree->nodes[c->parent].child = order[i];
    }
    mem_free(order);
    return TARE_OK;
}

static void describe_weight(struct build *b)
{
    struct calltree *tree = b->tree;
    const struct scope_cost *w = &b->all;
    tree->percentile_error = b->g->percentile_error;
    tree->inside_ns = w->inside;
    tree->weight_ns = w->weight;
    tree->weighed_pairs = w->pairs >= PAIRS_ENOUGH ? w->pairs : 0;
    tree->weighing_limit_ns = 5 * (w->inside.value + interval_half(w->inside));
}

/* The order matters: times need the weights, the limit that describe_weight() sets and the counts of count_scopes();
 * self times need the totals of all nodes; children are sorted by totals. */
static tare_status build(struct build *b, tare_error *err)
{
    size_t n = b->g->nodes.n;
    b->weight = mem_new(n, sizeof *b->weight);
    b->scopes = mem_new(n, sizeof *b->scopes);
    b->scale = mem_new(n, sizeof *b->scale);
    b->inner = mem_new(n, sizeof *b->inner);
    b->tree->nodes = mem_new(n, sizeof *b->tree->nodes);
    if (!b->weight || !b->scopes || !b->scale || !b->inner || !b->tree->nodes)
        return error_nomem(err, "%zu call paths", n);
    b->tree->n_nodes = (uint32_t)n;
    tare_status s = weigh_nodes(b, err);
    if (s != TARE_OK) return s;
    describe_weight(b);
    count_scopes(b);
    for (uint32_t i = 0; i < n; i++) set_node(b, i);
    set_selves(b);
    b->tree->nodes[0].site = CALL_NO_SITE;
    b->tree->nodes[0].threads = b->g->thread >= 0 ? 1 : trace_n_threads(b->g->t);
    return link_children(b->tree, err);
}

tare_status calltree_build(struct calltree *out, struct trace *t, int thread, tare_error *err)
{
    struct calltree tree = CALLTREE_INIT;
    struct gather g = GATHER_INIT;
    struct build b = {.g = &g, .tree = &tree};
    tare_status s = gather_trace(&g, t, thread, err);
    if (s == TARE_OK) s = build(&b, err);
    mem_free(b.weight);
    mem_free(b.scopes);
    mem_free(b.scale);
    mem_free(b.inner);
    gather_release(&g);
    if (s == TARE_OK)
        *out = tree;
    else
        calltree_release(&tree);
    return s;
}

void calltree_release(struct calltree *tree)
{
    mem_free(tree->nodes);
    *tree = (struct calltree)CALLTREE_INIT;
}
