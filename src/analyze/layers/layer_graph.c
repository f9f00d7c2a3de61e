/* SPDX-License-Identifier: MIT
 * layer_graph.c - how the layers of a case hang together, for the picture of the model: an edge for each pair of which
 * one reads what the other made. What only the body of a Loop or an If reads counts as read by the node around it. */
#include "analyze/layers/layer_parts.h"

#include <string.h>

#include "core/mem.h"

struct edges {
    const struct onnx_graph *g;
    struct run_layer *const *of_node;
    struct map_u64 place;   /* layer (its address) -> place in the case */
    struct map_str made_by; /* value -> place of the layer that made it */
    VEC(uint64_t) from;
    VEC(uint64_t) to;
    size_t left_out;
    tare_error *err;
};

/* Places of all layers, and of what makes each value. */
static tare_status index_places(struct edges *e, const struct run_case *c)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < c->layers.n; i++)
        s = map_u64_put(&e->place, (uint64_t)(uintptr_t)c->layers.at[i], i, e->err);
    for (size_t n = 0; s == TARE_OK && n < e->g->nodes.n; n++) {
        const struct onnx_node *node = &e->g->nodes.items[n];
        const uint64_t *at = map_u64_find(&e->place, (uint64_t)(uintptr_t)e->of_node[n]);
        for (size_t k = 0; s == TARE_OK && at && k < node->outputs.n; k++) {
            const char *value = node->outputs.items[k];
            if (value[0]) s = map_str_put(&e->made_by, value, strlen(value), *at, e->err);
        }
    }
    return s;
}

/* `first`: where the edges of this reader begin; it may read one maker several times. */
static tare_status add_read(struct edges *e, const char *value, uint64_t to, size_t first)
{
    const uint64_t *from = value[0] ? map_str_find(&e->made_by, value, strlen(value)) : NULL;
    if (!from || *from == to) return TARE_OK;
    for (size_t i = first; i < e->from.n; i++)
        if (e->from.items[i] == *from) return TARE_OK;
    if (e->from.n == RUN_BUCKETS_MAX) {
        e->left_out++;
        return TARE_OK;
    }
    tare_status s = vec_push(&e->from, *from, e->err);
    return s == TARE_OK ? vec_push(&e->to, to, e->err) : s;
}

static tare_status add_reads(struct edges *e, const struct onnx_node *node, uint64_t to, size_t first)
{
    tare_status s = TARE_OK;
    for (size_t k = 0; s == TARE_OK && k < node->inputs.n; k++)
        s = add_read(e, node->inputs.items[k], to, first);
    for (size_t a = 0; s == TARE_OK && a < node->attributes.n; a++) {
        const struct onnx_graph *body = node->attributes.items[a].g;
        for (size_t k = 0; s == TARE_OK && body && k < body->nodes.n; k++)
            s = add_reads(e, &body->nodes.items[k], to, first);
    }
    return s;
}

static tare_status add_edges(struct edges *e)
{
    tare_status s = TARE_OK;
    for (size_t n = 0; s == TARE_OK && n < e->g->nodes.n; n++) {
        const uint64_t *at = map_u64_find(&e->place, (uint64_t)(uintptr_t)e->of_node[n]);
        if (at) s = add_reads(e, &e->g->nodes.items[n], *at, e->from.n);
    }
    return s;
}

/* Copied into the document's memory; nothing at all where no layer reads from another. */
static tare_status keep_edges(const struct edges *e, struct run *run, struct run_case *c)
{
    size_t n = e->from.n;
    if (n == 0) {
        run_unknown(run, &c->unknown, "graph", "no layer reads what another one made");
        return TARE_OK;
    }
    uint64_t *from = arena_new(&run->arena, n, sizeof *from), *to = arena_new(&run->arena, n, sizeof *to);
    if (!from || !to) return error_nomem(e->err, "%zu edges", n);
    memcpy(from, e->from.items, n * sizeof *from);
    memcpy(to, e->to.items, n * sizeof *to);
    c->graph = (struct run_graph){.known = true, .from = from, .n_from = n, .to = to, .n_to = n};
    if (e->left_out)
        run_unknown(run, &c->unknown, "graph", "%zu more edges than a document holds are left out",
                    e->left_out);
    return TARE_OK;
}

tare_status layer_graph_record(struct run *run, struct run_case *c, const struct onnx_graph *g,
                               struct run_layer *const *of_node, tare_error *err)
{
    struct edges e = {.g = g,
                      .of_node = of_node,
                      .place = MAP_U64_INIT,
                      .made_by = MAP_STR_INIT,
                      .from = VEC_INIT,
                      .to = VEC_INIT,
                      .err = err};
    tare_status s = index_places(&e, c);
    if (s == TARE_OK) s = add_edges(&e);
    if (s == TARE_OK) s = keep_edges(&e, run, c);
    map_u64_release(&e.place);
    map_str_release(&e.made_by);
    vec_release(&e.from);
    vec_release(&e.to);
    return s;
}
