/* SPDX-License-Identifier: MIT
 * layer_nodes.c - see layer_parts.h; and what a profile tells of shapes and free dimensions (layers.h), so that costs
 * are of what ran and not of a batch of one. Never guesses: a dimension that shows nowhere alone is not told. */
#include "analyze/layers/layer_parts.h"

#include <stdio.h>
#include <string.h>

#include "analyze/layers/layers.h"

tare_status layer_nodes_names(struct map_str *to, const struct onnx_graph *g, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; g && s == TARE_OK && i < g->nodes.n; i++) {
        const char *name = g->nodes.items[i].name;
        size_t n = strlen(name);
        if (n && !map_str_find(to, name, n)) s = map_str_put(to, name, n, i + 1, err);
    }
    return s;
}

/* The runtime writes its graph in the order it runs it; a node without a name is called Op_<number> in profiles. */
static bool is_in_order(const struct layer_times *t, const struct onnx_graph *g)
{
    if (!g || !t->by_position || t->n_main != g->nodes.n) return false;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        const struct ort_event *e = t->slots.items[i].event;
        if (strcmp(n->op, e->op) != 0 || (n->name[0] && strcmp(n->name, e->node) != 0)) return false;
    }
    return true;
}

tare_status layer_nodes_init(struct layer_nodes *n, const struct layer_times *t, const struct onnx_graph *g,
                             tare_error *err)
{
    n->in_order = is_in_order(t, g);
    return layer_nodes_names(&n->named, g, err);
}

void layer_nodes_release(struct layer_nodes *n)
{
    map_str_release(&n->named);
}

size_t layer_nodes_find(const struct layer_nodes *n, const struct layer_times *t, size_t slot)
{
    const struct layer_slot *s = &t->slots.items[slot];
    if (s->parent != SIZE_MAX) return SIZE_MAX;
    if (n->in_order) return slot;
    const uint64_t *at = map_str_find(&n->named, s->event->node, strlen(s->event->node));
    return at ? (size_t)*at - 1 : SIZE_MAX;
}

/* ---- shapes ---- */

struct seeing {
    struct arena *into;
    struct infer_seen *items;
    size_t n;
};

static void see_slot(struct seeing *s, const struct onnx_node *node, const struct ort_event *e)
{
    size_t told = 0;
    for (size_t k = 0; k < node->outputs.n; k++) told += node->outputs.items[k][0] != 0;
    if (told != e->n_outputs) return; /* left-out outputs may or may not be listed */
    for (size_t k = 0, at = 0; k < node->outputs.n; k++) {
        if (!node->outputs.items[k][0]) continue;
        const struct ort_shape *shape = &e->outputs[at++];
        int64_t *dims = arena_new(s->into, shape->rank ? shape->rank : 1, sizeof *dims);
        if (!dims) return;
        memcpy(dims, shape->dims, shape->rank * sizeof *dims);
        s->items[s->n++] =
            (struct infer_seen){arena_str(s->into, node->outputs.items[k]), shape->type, dims, shape->rank};
    }
}

static tare_status see_all(struct seeing *s, const struct layer_times *t, const struct onnx_graph *g,
                           tare_error *err)
{
    struct layer_nodes nodes = LAYER_NODES_INIT;
    size_t room = 0;
    tare_status st = layer_nodes_init(&nodes, t, g, err);
    for (size_t i = 0; i < g->nodes.n; i++) room += g->nodes.items[i].outputs.n;
    bool *done = st == TARE_OK ? mem_new(g->nodes.n, sizeof *done) : NULL;
    if (done) s->items = arena_new(s->into, room + 1, sizeof *s->items);
    if (st == TARE_OK && !s->items) st = error_nomem(err, "shapes");
    for (size_t k = 0; st == TARE_OK && k < t->slots.n; k++) {
        size_t node = layer_nodes_find(&nodes, t, k);
        if (node == SIZE_MAX || done[node]) continue;
        done[node] = true;
        see_slot(s, &g->nodes.items[node], t->slots.items[k].event);
    }
    mem_free(done);
    layer_nodes_release(&nodes);
    if (st == TARE_OK && s->into->failed) st = error_nomem(err, "shapes");
    return st;
}

tare_status layers_seen(const struct ort_profile *p, const struct onnx_model *graph, struct arena *into,
                        struct layers_shapes *out, tare_error *err)
{
    struct layer_times t = LAYER_TIMES_INIT;
    struct seeing s = {.into = into};
    tare_status st = layer_times_build(&t, p, 0, err);
    if (st == TARE_OK) st = see_all(&s, &t, &graph->graph, err);
    layer_times_release(&t);
    if (st < 0) return st;
    *out = (struct layers_shapes){s.items, s.n};
    return TARE_OK;
}

/* ---- free dimensions ---- */

bool layers_has_dim(const struct onnx_model *m, const char *name)
{
    for (size_t i = 0; i < m->graph.inputs.n; i++) {
        const struct onnx_value *v = &m->graph.inputs.items[i];
        for (size_t d = 0; v->has_shape && d < v->dims.n; d++) {
            char label[220];
            const struct onnx_dim *dim = &v->dims.items[d];
            snprintf(label, sizeof label, "%.180s.%zu", v->name, d);
            if (dim->value < 0 && strcmp(dim->name[0] ? dim->name : label, name) == 0) return true;
        }
    }
    return false;
}

bool layers_dim_seen(const struct inspected *i, const char *name, const struct layers_shapes *seen,
                     int64_t *value)
{
    const struct poly *symbol = poly_symbol(i->shapes.space, name); /* equal ones are the same pointer */
    for (size_t k = 0; symbol && k < seen->n; k++) {
        const struct infer_value *v = infer_value(i->shapes.main, seen->items[k].value);
        if (!v || !v->has_rank || v->rank != seen->items[k].rank || v->profiled) continue;
        for (size_t d = 0; d < v->rank; d++) {
            if (v->dims[d] != symbol) continue;
            *value = seen->items[k].dims[d];
            return true;
        }
    }
    return false;
}
