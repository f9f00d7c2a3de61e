/* SPDX-License-Identifier: MIT
 * diverge_parts.h - what diverge.c works with: one of the two models of a comparison (diverge_side.c), and the values
 * that both graphs have, and what in a graph depends on what (diverge_graph.c). */
#ifndef SUBJECT_DIVERGE_PARTS_H
#define SUBJECT_DIVERGE_PARTS_H

#include "core/map.h"
#include "subject/onnx_model.h"
#include "subject/tensor.h"

/* ---- a side: its graph, its inputs, and inner values fetched on demand in a session of their own that is gone
 * afterwards, so that memory never holds both models ---- */

struct diverge_side {
    struct onnx_subject *subject;
    struct onnx_model model;
    struct map_str producers; /* value -> number of the node that makes it */
    struct map_str outputs;   /* names of the graph's outputs */
    struct tensor_set inputs;
    VEC(struct ort_value *) values; /* over the inputs */
    VEC(const char *) names;        /* theirs */
    VEC(const char *) config;       /* of sessions: what the user asked for, and `folder` */
    char *folder;                   /* "session.model_external..=DIR" */
    struct ort_memory_info *cpu;
    const char *provider;
    int64_t threads;
};
#define DIVERGE_SIDE_INIT                                                                                    \
    {                                                                                                        \
        .model = ONNX_MODEL_INIT, .producers = MAP_STR_INIT, .outputs = MAP_STR_INIT,                        \
        .inputs = TENSOR_SET_INIT                                                                            \
    }

tare_status diverge_side_open(struct diverge_side *s, const struct onnx_options *o,
                              const struct case_params *p, tare_error *err);
void diverge_side_close(struct diverge_side *s);

/* Inputs as for a bench of this case, from files or made up. */
tare_status diverge_side_make_inputs(struct diverge_side *s, const struct case_params *p, tare_error *err);
/* The same numbers as the other side's, by name; another width of the same kind is converted. */
tare_status diverge_side_share_inputs(struct diverge_side *s, const struct diverge_side *with,
                                      tare_error *err);

/* One run that gives these values, as copies in out[0 .. n-1]; a value that is no array of numbers leaves its place
 * with data NULL. On failure nothing is left to release. */
tare_status diverge_side_fetch(const struct diverge_side *s, const char *const *names, size_t n,
                               struct tensor *out, tare_error *err);

/* ---- both graphs ---- */

enum common_state { COMMON_UNSEEN, COMMON_SAME, COMMON_DIFFERS, COMMON_ODD /* cannot be compared */ };

struct common_value {
    const char *name, *twin; /* in a, in b; their models' */
    size_t node_a, node_b;   /* that make it */
    enum common_state state;
    struct tensor_error error;
};

struct common_values { /* in run order of a */
    VEC(struct common_value) items;
    struct map_str by_name; /* in a -> index */
    size_t only_a, only_b;
};
#define COMMON_VALUES_INIT {.items = VEC_INIT, .by_name = MAP_STR_INIT}

/* A name that quantisation gives ("x" and "x_DequantizeLinear_Output") where one model alone has it, else the same
 * name. Constants are left out. */
tare_status common_find(struct common_values *out, const struct diverge_side *a, const struct diverge_side *b,
                        tare_error *err);
void common_release(struct common_values *c);

/* marked[i] becomes true for every node of `s` on which node `from` depends, and for itself. `marked` has one place
 * per node. */
tare_status diverge_ancestors(const struct diverge_side *s, size_t from, bool *marked, tare_error *err);

/* Indices of the common values nearest above node `from`: what it reads, or what those that only one graph has read. */
struct common_list {
    VEC(size_t) items;
};
tare_status diverge_sources(const struct diverge_side *a, const struct common_values *c, size_t from,
                            struct common_list *out, tare_error *err);

#endif
