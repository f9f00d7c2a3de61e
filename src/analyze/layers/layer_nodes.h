/* SPDX-License-Identifier: MIT
 * layer_nodes.h - which node of the graph that ran each timed slot is: by its place where profile and graph have the
 * same sequence, else by name. Pure. */
#ifndef ANALYZE_LAYER_NODES_H
#define ANALYZE_LAYER_NODES_H

#include "analyze/layers/layer_times.h"
#include "core/map.h"
#include "model/onnx/onnx.h"

struct layer_nodes {
    bool in_order;        /* slot k of the main graph is node k */
    struct map_str named; /* name -> node + 1 */
};
#define LAYER_NODES_INIT {.named = MAP_STR_INIT}

/* `g` NULL: no graph, nothing will be found. */
tare_status layer_nodes_init(struct layer_nodes *n, const struct layer_times *t, const struct onnx_graph *g,
                             tare_error *err);
void layer_nodes_release(struct layer_nodes *n);

/* The node of a slot of the main graph; SIZE_MAX: unknown. */
size_t layer_nodes_find(const struct layer_nodes *n, const struct layer_times *t, size_t slot);

/* name -> node + 1 of each named node; the first of equal names. */
tare_status layer_nodes_names(struct map_str *to, const struct onnx_graph *g, tare_error *err);

#endif
