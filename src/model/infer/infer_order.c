/* SPDX-License-Identifier: MIT
 * infer_order.c - an order in which the nodes of a scope can run: the file's own where that works, else each node right
 * after the last one it needs. Never recursive in the length of the graph. A circle is an error that names a node. */
#include <string.h>

#include "core/mem.h"
#include "model/infer/infer_engine.h"

struct node_order {
    struct infer_engine *e;
    const struct order_plan *plan;
    VEC(uint32_t) needs; /* of node i: needs[first[i]] .. needs[first[i + 1] - 1] */
    size_t *first;
};

static tare_status add_need(struct node_order *o, const char *name)
{
    const uint64_t *at = name[0] ? map_u64_find(o->plan->scope->names, (uint64_t)(uintptr_t)name) : NULL;
    if (!at || o->plan->made_by[*at - 1] == ORDER_NO_NODE) return TARE_OK;
    return vec_push(&o->needs, o->plan->made_by[*at - 1], o->e->err);
}

/* ---- what a body takes from around it ---- */

enum { WALKED_PER_NODE = 4 }; /* looking at a node in a body costs less than inferring it */

struct level { /* names that a body, or one around it, makes itself */
    struct map_u64 own;
    const struct level *up;
    unsigned depth;
};

static bool is_own(const struct level *l, const char *name)
{
    for (; l; l = l->up)
        if (map_u64_find(&l->own, (uint64_t)(uintptr_t)name)) return true;
    return false;
}

static tare_status own_name(struct level *l, const char *name, tare_error *err)
{
    return map_u64_put(&l->own, (uint64_t)(uintptr_t)name, 1, err);
}

static tare_status own_names(struct level *l, const struct onnx_graph *g, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < g->inputs.n; i++) s = own_name(l, g->inputs.items[i].name, err);
    for (size_t i = 0; s == TARE_OK && i < g->initializers.n; i++)
        s = own_name(l, g->initializers.items[i].name, err);
    for (size_t i = 0; s == TARE_OK && i < g->sparse.n; i++)
        s = own_name(l, g->sparse.items[i].values.name, err);
    for (size_t i = 0; s == TARE_OK && i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        for (size_t k = 0; s == TARE_OK && k < n->outputs.n; k++) s = own_name(l, n->outputs.items[k], err);
    }
    return s;
}

static tare_status need_of_bodies(struct node_order *o, const struct onnx_node *n, const struct level *up);

static tare_status need_from(struct node_order *o, const struct level *l, const char *name)
{
    return is_own(l, name) ? TARE_OK : add_need(o, name);
}

static tare_status need_of_body(struct node_order *o, const struct onnx_graph *g, const struct level *up)
{
    struct level l = {.own = MAP_U64_INIT, .up = up, .depth = up ? up->depth + 1 : 1};
    tare_status s = engine_charge(o->e, g->nodes.n / WALKED_PER_NODE);
    if (s == TARE_OK) s = own_names(&l, g, o->e->err);
    for (size_t i = 0; s == TARE_OK && i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        for (size_t k = 0; s == TARE_OK && k < n->inputs.n; k++) s = need_from(o, &l, n->inputs.items[k]);
        if (s == TARE_OK) s = need_of_bodies(o, n, &l);
    }
    for (size_t i = 0; s == TARE_OK && i < g->outputs.n; i++) s = need_from(o, &l, g->outputs.items[i].name);
    map_u64_release(&l.own);
    return s;
}

/* The reader bounds how deep graphs nest, so this does not go deeper than that. */
static tare_status need_of_bodies(struct node_order *o, const struct onnx_node *n, const struct level *up)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < n->attributes.n; i++)
        if (n->attributes.items[i].g) s = need_of_body(o, n->attributes.items[i].g, up);
    return s;
}

static tare_status collect_needs(struct node_order *o)
{
    for (size_t i = 0; i < o->plan->n; i++) {
        const struct onnx_node *n = o->plan->nodes[i];
        tare_status s = TARE_OK;
        o->first[i] = o->needs.n;
        for (size_t k = 0; s == TARE_OK && k < n->inputs.n; k++) s = add_need(o, n->inputs.items[k]);
        if (s == TARE_OK) s = need_of_bodies(o, n, NULL);
        if (s < 0) return s;
    }
    o->first[o->plan->n] = o->needs.n;
    return TARE_OK;
}

/* ---- sorting ---- */

static bool in_order(const struct node_order *o)
{
    for (size_t i = 0; i < o->plan->n; i++)
        for (size_t k = o->first[i]; k < o->first[i + 1]; k++)
            if (o->needs.items[k] >= i) return false;
    return true;
}

static tare_status fail_circle(const struct node_order *o, uint32_t at)
{
    char text[160];
    return error_set(o->e->err, TARE_INVALID, "%s: needs its own output: the graph has a cycle",
                     engine_node_text(o->plan->nodes[at], text, sizeof text));
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

static tare_status visit_from(struct visits *w, const struct node_order *o, uint32_t from, uint32_t **out)
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
    return TARE_OK;
}

static tare_status sort_nodes(const struct node_order *o, uint32_t *out)
{
    size_t n = o->plan->n;
    struct visits w = {mem_new(n, 1), mem_new(n, sizeof *w.stack), mem_new(n, sizeof *w.next), 0};
    bool room = w.visit && w.stack && w.next;
    tare_status s = room ? TARE_OK : engine_nomem(o->e);
    for (uint32_t i = 0; room && s == TARE_OK && i < n; i++)
        if (w.visit[i] == VISIT_NOT) s = visit_from(&w, o, i, &out);
    mem_free(w.visit);
    mem_free(w.stack);
    mem_free(w.next);
    return s;
}

tare_status order_nodes(struct infer_engine *e, const struct order_plan *p, uint32_t *out)
{
    struct node_order o = {.e = e, .plan = p, .needs = VEC_INIT, .first = mem_new(p->n + 1, sizeof *o.first)};
    tare_status s = o.first ? collect_needs(&o) : engine_nomem(e);
    if (s == TARE_OK && o.first && in_order(&o))
        for (uint32_t i = 0; i < p->n; i++) out[i] = i;
    else if (s == TARE_OK && o.first)
        s = sort_nodes(&o, out);
    vec_release(&o.needs);
    mem_free(o.first);
    return s;
}
