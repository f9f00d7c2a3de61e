/* SPDX-License-Identifier: MIT
 * view.c - see view.h. Never recurses: a call tree may be a hundred thousand calls deep. */
#include "report/trace/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/vec.h"

struct builder {
    const struct calltree *tree;
    const struct event_source *source;
    const struct view_options *options;
    struct view view;
    VEC(struct view_row) stack; /* rows still to come, the next one last */
};

static double total_of(const struct call_node *n, bool gross)
{
    return gross ? n->gross_total_ns : n->total_ns.value;
}

double view_share(const struct view *v, const struct call_node *node, bool gross)
{
    double share = total_of(node, gross) / v->whole_ns;
    return share < 0 ? 0 : share;
}

/* The root's time, or else the sum of what is directly below it. */
static double whole(const struct calltree *tree, bool gross)
{
    double ns = tree->n_nodes ? total_of(&tree->nodes[0], gross) : NAN;
    if (ns > 0 || !tree->n_nodes) return ns;
    ns = 0;
    for (uint32_t i = tree->nodes[0].child; i; i = tree->nodes[i].next) {
        double part = total_of(&tree->nodes[i], gross);
        if (part > 0) ns += part;
    }
    return ns > 0 ? ns : NAN;
}

static bool is_shown(const struct builder *b, const struct call_node *n, uint32_t depth)
{
    const struct view_options *o = b->options;
    if (n->kind != TARE_SITE_SCOPE) return o->all_kinds && (!o->depth || depth < o->depth);
    if (o->depth && depth >= o->depth) return false;
    return o->min_share <= 0 || view_share(&b->view, n, o->gross) >= o->min_share;
}

/* ---- order ---- */

static double sort_key(const struct builder *b, const struct call_node *n)
{
    bool gross = b->options->gross;
    switch (b->options->sort) {
    case TREE_SORT_SELF: return gross ? n->gross_self_ns : n->self_ns.value;
    case TREE_SORT_COUNT: return (double)n->count;
    case TREE_SORT_MEAN: return gross ? n->gross_mean_ns : n->mean_ns.value;
    case TREE_SORT_TOTAL:
    case TREE_SORT_NAME: break;
    }
    return total_of(n, gross);
}

static const char *name_of(const struct builder *b, const struct call_node *n)
{
    return n->site < b->source->n_sites ? source_site(b->source, n->site)->name : "";
}

/* Which of two rows is shown later: largest first, unknown last; equals in the tree's own order. The stack has what is
 * shown last at its bottom. */
static int compare_rows(const void *y, const void *x, void *ctx)
{
    const struct builder *b = ctx;
    uint32_t i = ((const struct view_row *)x)->node, k = ((const struct view_row *)y)->node;
    const struct call_node *p = &b->tree->nodes[i], *q = &b->tree->nodes[k];
    if (b->options->sort == TREE_SORT_NAME) {
        int by_name = strcmp(name_of(b, p), name_of(b, q));
        if (by_name) return by_name;
    }
    double u = sort_key(b, p), v = sort_key(b, q);
    if (isnan(u) != isnan(v)) return isnan(u) ? 1 : -1;
    if (u > v || u < v) return u > v ? -1 : 1;
    return i < k ? -1 : i > k;
}

/* ---- the walk ---- */

/* Put the shown children of `node` on the stack so that the first one comes off first. */
static tare_status push_children(struct builder *b, uint32_t node, uint32_t depth, tare_error *err)
{
    size_t first = b->stack.n;
    for (uint32_t i = b->tree->nodes[node].child; i; i = b->tree->nodes[i].next) {
        struct view_row row = {i, depth, false};
        tare_status s = is_shown(b, &b->tree->nodes[i], depth) ? vec_push(&b->stack, row, err) : TARE_OK;
        if (s < 0) return s;
    }
    size_t n = b->stack.n - first;
    if (n == 0) return TARE_OK;
    struct view_row *rows = b->stack.items + first;
    qsort_r(rows, n, sizeof *rows, compare_rows, b);
    rows[0].last = true;
    return TARE_OK;
}

static tare_status walk(struct builder *b, tare_error *err)
{
    uint64_t candidates = 0;
    for (uint32_t i = 1; i < b->tree->n_nodes; i++)
        candidates += b->options->all_kinds || b->tree->nodes[i].kind == TARE_SITE_SCOPE;
    b->view.rows = mem_new(candidates, sizeof *b->view.rows);
    if (!b->view.rows) return error_nomem(err, "a call tree of %u nodes", b->tree->n_nodes);
    tare_status s = b->tree->n_nodes ? push_children(b, 0, 0, err) : TARE_OK;
    while (s == TARE_OK && b->stack.n > 0 && b->view.n < candidates) {
        struct view_row row = b->stack.items[--b->stack.n];
        b->view.rows[b->view.n++] = row;
        s = push_children(b, row.node, row.depth + 1, err);
    }
    b->view.hidden = candidates - b->view.n;
    return s;
}

tare_status view_build(struct view *out, const struct calltree *tree, const struct event_source *source,
                       const struct view_options *options, tare_error *err)
{
    struct builder b = {.tree = tree, .source = source, .options = options, .stack = VEC_INIT};
    b.view.whole_ns = whole(tree, options->gross);
    tare_status s = walk(&b, err);
    vec_release(&b.stack);
    if (s < 0)
        view_release(&b.view);
    else
        *out = b.view;
    return s;
}

void view_release(struct view *v)
{
    mem_free(v->rows);
    *v = (struct view)VIEW_INIT;
}

uint32_t calltree_next(const struct calltree *tree, uint32_t i, uint32_t *depth)
{
    const struct call_node *nodes = tree->nodes;
    if (!tree->n_nodes) return 0;
    if (nodes[i].child) {
        ++*depth;
        return nodes[i].child;
    }
    for (; i && !nodes[i].next; i = nodes[i].parent) --*depth;
    return i ? nodes[i].next : 0;
}

/* ---- the flat view ---- */

static void estimate_add(struct interval *to, struct interval e)
{
    to->value += e.value;
    to->lo += e.lo; /* the instrument's weight errs the same way everywhere: intervals add up */
    to->hi += e.hi;
}

static void flat_first(struct call_node *to, const struct call_node *from)
{
    *to = *from;
    to->parent = to->child = to->next = 0;
    to->mean_ns = from->total_ns; /* sums over all calls until flat_means() */
    to->gross_mean_ns = from->gross_total_ns;
}

/* `inner`: a call of the same site is running around this one. */
static void flat_more(struct call_node *to, const struct call_node *from, bool inner)
{
    to->flags |= from->flags;
    to->threads = 0;
    to->count += from->count;
    to->abandoned += from->abandoned;
    to->value = (int64_t)((uint64_t)to->value + (uint64_t)from->value);
    estimate_add(&to->self_ns, from->self_ns);
    estimate_add(&to->mean_ns, from->total_ns);
    to->gross_self_ns += from->gross_self_ns;
    to->gross_mean_ns += from->gross_total_ns;
    if (!inner) {
        estimate_add(&to->total_ns, from->total_ns);
        to->gross_total_ns += from->gross_total_ns;
    }
    to->min_ns = fmin(to->min_ns, from->min_ns);
    to->max_ns = fmax(to->max_ns, from->max_ns);
    to->p50_ns = to->p95_ns = to->p99_ns = NAN;
}

struct flattener {
    const struct calltree *tree;
    struct calltree flat;
    uint32_t n_sites;
    uint32_t *slot;    /* per site: its node in flat; 0: none yet */
    uint32_t *running; /* per site: how many of the calls around us are of it */
};

static void flat_enter(struct flattener *f, uint32_t i)
{
    const struct call_node *n = &f->tree->nodes[i];
    if (n->site >= f->n_sites) return;
    bool inner = f->running[n->site]++ > 0;
    if (f->slot[n->site]) {
        flat_more(&f->flat.nodes[f->slot[n->site]], n, inner);
    } else {
        f->slot[n->site] = f->flat.n_nodes;
        flat_first(&f->flat.nodes[f->flat.n_nodes++], n);
    }
}

static void flat_walk(struct flattener *f)
{
    const struct call_node *nodes = f->tree->nodes;
    uint32_t depth = 0;
    for (uint32_t last = 0, i; (i = calltree_next(f->tree, last, &depth)); last = i) {
        for (; last != nodes[i].parent; last = nodes[last].parent) /* calls that ended in between */
            if (nodes[last].site < f->n_sites) f->running[nodes[last].site]--;
        flat_enter(f, i);
    }
}

static void flat_means(struct calltree *flat)
{
    for (uint32_t i = 1; i < flat->n_nodes; i++) {
        struct call_node *n = &flat->nodes[i];
        double count = n->count ? (double)n->count : NAN;
        n->mean_ns.value /= count;
        n->mean_ns.lo /= count;
        n->mean_ns.hi /= count;
        n->gross_mean_ns /= count;
        n->next = i + 1 < flat->n_nodes ? i + 1 : 0;
    }
    flat->nodes[0].child = flat->n_nodes > 1 ? 1 : 0;
}

/* The flat tree begins as a copy of the other, for its weights and limits, but never shares its nodes. Sites bound its
 * size: one node each, and the root. */
tare_status flat_build(struct calltree *out, const struct calltree *tree, uint32_t n_sites, tare_error *err)
{
    struct flattener f = {.tree = tree, .flat = *tree, .n_sites = n_sites};
    f.flat.nodes = mem_new((size_t)n_sites + 1, sizeof *f.flat.nodes);
    f.slot = mem_new(n_sites, sizeof *f.slot);
    f.running = mem_new(n_sites, sizeof *f.running);
    tare_status s = TARE_OK;
    if (!f.flat.nodes || !f.slot || !f.running) {
        s = error_nomem(err, "a flat view of %u sites", n_sites);
        mem_free(f.flat.nodes);
    } else {
        f.flat.n_nodes = 1;
        if (tree->n_nodes) {
            f.flat.nodes[0] = tree->nodes[0];
            flat_walk(&f);
        }
        flat_means(&f.flat);
        *out = f.flat;
    }
    mem_free(f.slot);
    mem_free(f.running);
    return s;
}

void flat_release(struct calltree *flat)
{
    mem_free(flat->nodes);
    *flat = (struct calltree)CALLTREE_INIT;
}
