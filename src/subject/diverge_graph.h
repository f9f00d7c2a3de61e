/* SPDX-License-Identifier: MIT
 * diverge_graph.h - values that two graphs have in common, and what in a graph depends on what. Pure. For diverge.c. */
#ifndef SUBJECT_DIVERGE_GRAPH_H
#define SUBJECT_DIVERGE_GRAPH_H

#include "subject/diverge_side.h"
#include "subject/tensor_error.h"

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

/* The same name, else a name that quantisation gives ("x" and "x_DequantizeLinear_Output"). Constants are left out. */
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
