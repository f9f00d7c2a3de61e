/* SPDX-License-Identifier: MIT
 * layer_parts.h - what layers.c is made of: typical times of a profile's nodes and which node of a graph they are
 * (layer_times.c), which nodes of the user's file those stand for (layer_source.c), groups by neighbours
 * (layers_group.c), and edges between layers (layer_graph.c). Pure; private to src/analyze. */
#ifndef ANALYZE_LAYER_PARTS_H
#define ANALYZE_LAYER_PARTS_H

#include "core/buf.h"
#include "core/interval.h"
#include "core/map.h"
#include "core/vec.h"
#include "model/onnx/onnx.h"
#include "model/profile/ort_profile.h"
#include "run/run.h"

/* ---- layer_times.c ---- */

/* Which events of a profile are the same node, and its own time in a typical run, the mean over the fifth of the
 * runs that is nearest to the median. Nodes are told apart by their place in a run when all runs have the same
 * sequence (names may repeat or be made up by the runtime), else by name; nodes of bodies by name within the node
 * around them. Knows no graph. */

struct layer_slot {
    const struct ort_event *event; /* its first */
    size_t parent;                 /* slot of the node around it; SIZE_MAX: of the main graph */
    uint64_t calls;                /* in all runs that count */
    int64_t total_us;              /* own, in all of them */
    double time_us;                /* own, in a typical run */
};

struct layer_times {
    VEC(struct layer_slot) slots; /* by_position: the first n_main are the sequence of the main graph */
    bool by_position;
    size_t n_main;
    size_t *slot_of;       /* per event of the profile; SIZE_MAX: does not count */
    uint64_t runs, events; /* that count */
    double median_us;      /* of whole runs that count; NAN: none ended */
};
#define LAYER_TIMES_INIT {.slots = VEC_INIT}

tare_status layer_times_build(struct layer_times *out, const struct ort_profile *p, uint64_t skip_runs,
                              tare_error *err);
void layer_times_release(struct layer_times *t);

/* ---- layer_gpu.c: the time of each slot on a GPU ---- */

struct layer_gpu_slot {
    struct interval time_ns; /* mean of a run, with the interval of the mean */
    uint64_t operations;     /* of a run */
};

struct layer_gpu {
    char why[200];                /* "": all of it is known; else `slots` is not there */
    struct layer_gpu_slot *slots; /* as those of layer_times */
    size_t n;
    uint64_t runs, other_runs;         /* without the profiler: taken, and left out because they differ */
    struct interval busy_ns;           /* something ran; mean of a run */
    struct interval outside_ns;        /* operations that no node launched */
    double kernel_ns, copy_ns;         /* some ran; means of a run */
    double kernel_sum_ns, copy_sum_ns; /* of all of them, also where they ran beside each other */
    double joined;                     /* share of the operations' time that nodes launched */
    double profiled_ratio;             /* time of operations with the profiler over that without it */
    uint64_t operations, copies;       /* of a run */
    uint64_t copy_bytes, fill_bytes;   /* copied and filled; of it, filled */
};
#define LAYER_GPU_INIT {.joined = NAN, .profiled_ratio = NAN}

struct layers_gpu;
tare_status layer_gpu_build(struct layer_gpu *out, const struct layers_gpu *in, const struct ort_profile *p,
                            const struct layer_times *times, tare_error *err);
void layer_gpu_release(struct layer_gpu *g);

/* ---- layer_times.c ---- */

/* Which node of the graph that ran each timed slot is: by its place where profile and graph have the same sequence,
 * else by name. */

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

/* ---- layer_source.c ---- */

/* Which nodes of the user's file a node of the optimised graph stands for. Fusions keep the names of the values they
 * make, so from these the file's edges are walked back until values that the optimised graph still has. */

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

/* ---- layers_group.c ---- */

/* Groups of nodes whose own names say nothing, by what they read: a weight called
 * "encoder.layer.3.attention.query.weight", or values that were all made in one group, as in a Gelu written out
 * directly in "/encoder/layer.3". */

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

/* ---- layer_graph.c ---- */

/* Fills c->graph with which of the case's layers reads what another made. of_node: per node of `g` its layer, or NULL.
 * To be called once the layers stand in the order in which they are written. */
tare_status layer_graph_record(struct run *run, struct run_case *c, const struct onnx_graph *g,
                               struct run_layer *const *of_node, tare_error *err);

#endif
