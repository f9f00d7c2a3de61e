/* SPDX-License-Identifier: MIT
 * layer_near.h - groups of nodes whose own names say nothing, by what they read: a weight called
 * "encoder.layer.3.attention.query.weight", or values that were all made in one group, as in a Gelu written out
 * directly in "/encoder/layer.3". Pure; looks at names and edges only. */
#ifndef ANALYZE_LAYER_NEAR_H
#define ANALYZE_LAYER_NEAR_H

#include "model/onnx/onnx.h"

struct layer_near {
    const char **group; /* per node, in the graph's order; a literal, or NULL: nothing tells it */
    size_t n;
};
#define LAYER_NEAR_INIT {0}

/* By the node's own name or operator, else by its weights, else by the nodes that made its operands, if these are all
 * of one group: the end of a residual, which joins two, stays what it is. `g` NULL: no nodes. */
tare_status layer_near_build(struct layer_near *out, const struct onnx_graph *g, tare_error *err);
void layer_near_release(struct layer_near *n);
const char *layer_near_group(const struct layer_near *n, size_t node); /* NULL: not told */

#endif
