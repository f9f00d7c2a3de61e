/* SPDX-License-Identifier: MIT
 * infer_order.c - an order in which the nodes of a scope can run: the file's own where that works, else each node right
 * after the last one it needs. Never recursive in the length of the graph. A circle is an error that names a node. */
#include <string.h>

#include "core/mem.h"
#include "model/infer/infer_engine.h"

struct node_order {
    struct infer_engine *e;
    const struct scope_draft *m;
    VEC(uint32_t) needs; /* of node i: needs[first[i]] .. needs[first[i + 1] - 1] */
    size_t *first;
};

static bool add_need(struct node_order *o, const char *name)
{
    const uint64_t *at = name[0] ? map_u64_find(o->m->scope->names, (uint64_t)(uintptr_t)name) : NULL;
    if (!at || o->m->made_by[*at - 1] == ORDER_NO_NODE) return true;
    return engine_ok(o->e, vec_push(&o->needs, o->m->made_by[*at - 1], o->e->err));
}

/* ---- what a body takes from around it ---- */

enum { WALKED_PER_NODE = 4 }; /* looking at a node in a body costs less than inferring it */

struct level { /* names that a body, or one around it, makes itself */
    struct map_u64 own;
    const struct level *up;
};

static bool is_own(const struct level *l, const char *name)
{
    for (; l; l = l->up)
        if (map_u64_find(&l->own, (uint64_t)(uintptr_t)name)) return true;
    return false;
}

static bool own_name(struct node_order *o, struct level *l, const char *name)
{
    return engine_ok(o->e, map_u64_put(&l->own, (uint64_t)(uintptr_t)name, 1, o->e->err));
}

static bool own_names(struct node_order *o, struct level *l, const struct onnx_graph *g)
{
    bool ok = true;
    for (size_t i = 0; ok && i < g->inputs.n; i++) ok = own_name(o, l, g->inputs.items[i].name);
    for (size_t i = 0; ok && i < g->initializers.n; i++) ok = own_name(o, l, g->initializers.items[i].name);
    for (size_t i = 0; ok && i < g->sparse.n; i++) ok = own_name(o, l, g->sparse.items[i].values.name);
    for (size_t i = 0; ok && i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        for (size_t k = 0; ok && k < n->outputs.n; k++) ok = own_name(o, l, n->outputs.items[k]);
    }
    return ok;
}

static bool need_of_bodies(struct node_order *o, const struct onnx_node *n, const struct level *up);

static bool need_from(struct node_order *o, const struct level *l, const char *name)
{
    return is_own(l, name) || add_need(o, name);
}

static bool need_of_body(struct node_order *o, const struct onnx_graph *g, const struct level *up)
{
    struct level l = {.own = MAP_U64_INIT, .up = up};
    bool ok = engine_charge(o->e, g->nodes.n / WALKED_PER_NODE) && own_names(o, &l, g);
    for (size_t i = 0; ok && i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        for (size_t k = 0; ok && k < n->inputs.n; k++) ok = need_from(o, &l, n->inputs.items[k]);
        ok = ok && need_of_bodies(o, n, &l);
    }
    for (size_t i = 0; ok && i < g->outputs.n; i++) ok = need_from(o, &l, g->outputs.items[i].name);
    map_u64_release(&l.own);
    return ok;
}

/* The reader bounds how deep graphs nest, so this does not go deeper than that. */
static bool need_of_bodies(struct node_order *o, const struct onnx_node *n, const struct level *up)
{
    for (size_t i = 0; i < n->attributes.n; i++)
        if (n->attributes.items[i].g && !need_of_body(o, n->attributes.items[i].g, up)) return false;
    return true;
}

static bool collect_needs(struct node_order *o)
{
    bool ok = true;
    for (size_t i = 0; ok && i < o->m->n; i++) {
        const struct onnx_node *n = o->m->nodes[i];
        o->first[i] = o->needs.n;
        for (size_t k = 0; ok && k < n->inputs.n; k++) ok = add_need(o, n->inputs.items[k]);
        ok = ok && need_of_bodies(o, n, NULL);
    }
    o->first[o->m->n] = o->needs.n;
    return ok;
}

/* ---- sorting ---- */

static bool in_order(const struct node_order *o)
{
    for (size_t i = 0; i < o->m->n; i++)
        for (size_t k = o->first[i]; k < o->first[i + 1]; k++)
            if (o->needs.items[k] >= i) return false;
    return true;
}

static bool fail_circle(const struct node_order *o, uint32_t at)
{
    char text[160];
    return engine_error(o->e, "%s: needs its own output: the graph has a cycle",
                        engine_node_text(o->m->nodes[at], text, sizeof text));
}

enum visit { VISIT_NOT, VISIT_OPEN, VISIT_DONE };

struct visits {
    unsigned char *visit;
    uint32_t *stack; /* open nodes, from the outermost */
    size_t *next;    /* of each node: the next of its needs to look at */
    size_t depth;
};

static void open_node(struct visits *w, const struct node_order *o, uint32_t n)
{
    w->visit[n] = VISIT_OPEN;
    w->next[n] = o->first[n];
    w->stack[w->depth++] = n;
}

/* Depth first: a node is put out after all it needs; an open one that is needed closes a circle. */
static bool visit_from(struct visits *w, const struct node_order *o, uint32_t from, uint32_t **out)
{
    open_node(w, o, from);
    while (w->depth) {
        uint32_t n = w->stack[w->depth - 1];
        if (w->next[n] == o->first[n + 1]) {
            w->visit[n] = VISIT_DONE;
            w->depth--;
            *(*out)++ = n;
            continue;
        }
        uint32_t needed = o->needs.items[w->next[n]++];
        if (w->visit[needed] == VISIT_OPEN) return fail_circle(o, needed);
        if (w->visit[needed] == VISIT_NOT) open_node(w, o, needed);
    }
    return true;
}

static bool sort_nodes(const struct node_order *o, uint32_t *out)
{
    size_t n = o->m->n;
    struct visits w = {mem_new(n, 1), mem_new(n, sizeof *w.stack), mem_new(n, sizeof *w.next), 0};
    bool ok = (w.visit && w.stack && w.next) || engine_nomem(o->e);
    for (uint32_t i = 0; ok && i < n; i++)
        if (w.visit[i] == VISIT_NOT) ok = visit_from(&w, o, i, &out);
    mem_free(w.visit);
    mem_free(w.stack);
    mem_free(w.next);
    return ok;
}

bool order_nodes(const struct scope_draft *m)
{
    struct node_order o = {.e = m->e, .m = m, .needs = VEC_INIT, .first = mem_new(m->n + 1, sizeof *o.first)};
    bool ok = o.first ? collect_needs(&o) : engine_nomem(m->e);
    if (ok && in_order(&o))
        for (uint32_t i = 0; i < m->n; i++) m->order[i] = i;
    else if (ok)
        ok = sort_nodes(&o, m->order);
    vec_release(&o.needs);
    mem_free(o.first);
    return ok;
}
