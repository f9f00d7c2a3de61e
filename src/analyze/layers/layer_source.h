/* SPDX-License-Identifier: MIT
 * layer_source.h - which nodes of the user's file a node of the optimised graph stands for. Fusions keep the names of
 * the values they make, so from these the file's edges are walked back until values that the optimised graph still
 * has. Pure; looks at graphs only. */
#ifndef ANALYZE_LAYER_SOURCE_H
#define ANALYZE_LAYER_SOURCE_H

#include "core/buf.h"
#include "model/onnx/onnx.h"

struct layer_cover {
    size_t first,
        n;         /* in source_map.covered: nodes of the file, last first; n 0: the runtime's own addition */
    size_t anchor; /* the node of the file it belongs to or lies beside; SIZE_MAX: none */
};

struct source_map {
    struct layer_cover *of; /* per node of the optimised graph, in its order */
    size_t n;
    size_t *covered;
    size_t n_covered;
};
#define SOURCE_MAP_INIT {0}

tare_status source_map_build(struct source_map *out, const struct onnx_graph *source,
                             const struct onnx_graph *optimized, tare_error *err);
void source_map_release(struct source_map *m);

/* What a node is called: its name, else the value it makes ("/encoder/layer.0/Add_output_0" without _output_0). */
void source_node_label(const struct onnx_node *n, struct buf *out);
/* The path that all of the covered nodes share, without a slash at the end; "" when there is none. */
void source_common_path(const struct source_map *m, const struct onnx_graph *source, size_t node,
                        struct buf *out);

#endif
