/* SPDX-License-Identifier: MIT
 * infer_function.c - attributes of nodes in a model-local function that stand for attributes of the call: put in where
 * the call has them, left away where it has not. Copies only what changes; never touches the model. */
#include <string.h>

#include "model/infer/infer_engine.h"

static bool graph_refers(const struct onnx_graph *g);

static bool node_refers(const struct onnx_node *n)
{
    for (size_t i = 0; i < n->attributes.n; i++) {
        const struct onnx_attribute *a = &n->attributes.items[i];
        if ((a->ref && a->ref[0]) || (a->g && graph_refers(a->g))) return true;
    }
    return false;
}

static bool graph_refers(const struct onnx_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (node_refers(&g->nodes.items[i])) return true;
    return false;
}

static bool copy_graph(struct infer_engine *e, const struct onnx_graph *g, const struct scope_plan *p,
                       struct onnx_graph **out);

static const struct onnx_attribute *default_of(const struct onnx_function *f, const char *name)
{
    for (size_t i = 0; i < f->defaults.n; i++)
        if (strcmp(f->defaults.items[i].name, name) == 0) return &f->defaults.items[i];
    return NULL;
}

/* false: neither the call nor the function has it, so the node is without it. */
static bool put_in(const struct onnx_attribute *a, const struct scope_plan *p, struct onnx_attribute *to)
{
    const struct onnx_attribute *given = a;
    if (a->ref && a->ref[0]) given = onnx_attribute(p->call->node, a->ref);
    if (!given) given = default_of(p->function, a->ref);
    if (!given) return false;
    *to = *given;
    to->name = a->name;
    to->ref = NULL;
    return true;
}

/* The node with its attributes put in, those of its bodies too. */
static bool copy_node(struct infer_engine *e, const struct onnx_node *n, const struct scope_plan *p,
                      struct onnx_node *out)
{
    *out = *n;
    out->attributes.n = 0;
    out->attributes.items = engine_get(e, n->attributes.n, sizeof *out->attributes.items);
    for (size_t i = 0; out->attributes.items && i < n->attributes.n; i++) {
        struct onnx_attribute *to = &out->attributes.items[out->attributes.n];
        if (!put_in(&n->attributes.items[i], p, to)) continue;
        out->attributes.n++;
        if (to->g && graph_refers(to->g) && !copy_graph(e, to->g, p, &to->g)) return false;
    }
    return out->attributes.items != NULL;
}

/* A body whose nodes refer to the call; each copy is charged, as calls may be many. */
static bool copy_graph(struct infer_engine *e, const struct onnx_graph *g, const struct scope_plan *p,
                       struct onnx_graph **out)
{
    if (!engine_charge(e, g->nodes.n)) return false;
    struct onnx_graph *made = engine_get(e, 1, sizeof *made);
    struct onnx_node *nodes = engine_get(e, g->nodes.n, sizeof *nodes);
    if (!made || !nodes) return false;
    *made = *g;
    made->nodes.items = nodes;
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!copy_node(e, &g->nodes.items[i], p, &nodes[i])) return false;
    *out = made;
    return true;
}

bool function_node(struct infer_engine *e, const struct onnx_node *n, const struct scope_plan *p,
                   const struct onnx_node **out)
{
    *out = n;
    if (!node_refers(n)) return true;
    struct onnx_node *made = engine_get(e, 1, sizeof *made);
    if (made) *out = made;
    return made && copy_node(e, n, p, made);
}
