/* SPDX-License-Identifier: MIT
 * inspect.h - a whole model without running it: shapes, cost per layer and in total, parameters, memory, in numbers
 * for given dimensions and as formulas. Pure; uses src/model. */
#ifndef ANALYZE_INSPECT_H
#define ANALYZE_INSPECT_H

#include "core/vec.h"
#include "model/cost.h"
#include "model/liveness.h"
#include "run/run.h"

struct
    inspect_layer { /* a node of the main graph; bodies and functions are summed into the node that has them */
    const struct infer_node *at;
    char *name; /* the node's, or "Op_<first output>" for one without */
    struct cost cost;
    const struct poly
        *parameters; /* elements of distinct initializers it reads, counted at the first reader */
};

struct inspected {
    struct inferred shapes;
    VEC(struct inspect_layer) layers;
    struct cost total;
    struct liveness memory;
    uint64_t unknown_nodes; /* whose cost is unknown */
    VEC(struct poly_binding)
    dims;            /* every free dimension and the value it was given; names are the space's */
    VEC(bool) asked; /* per dim: by the user, else by default */
};
#define INSPECTED_INIT {.shapes = INFERRED_INIT, .layers = VEC_INIT, .memory = LIVENESS_INIT, .dims = VEC_INIT, .asked = VEC_INIT}

struct inspect_options {
    const struct poly_binding
        *dims; /* by the model's names; "batch" and "seq" also stand for the usual names */
    size_t n_dims;
    const struct infer_seen *seen; /* shapes from a profiled run; may be NULL */
    size_t n_seen;
};

/* A dimension that nobody gave is 1. Errors name a dimension that the model does not have, and list those it has. */
tare_status inspect_model(struct inspected *out, const struct onnx_model *m, const struct inspect_options *o,
                          tare_error *err);
void inspected_release(struct inspected *i);

/* Into run->subject.as_file or .optimized: totals, types, operators, memory, formulas. */
void inspect_record_static(const struct inspected *i, struct run *run, struct run_static *to);
/* One run_layer per layer into the case, costs only, and its `cost`. */
tare_status inspect_record_layers(const struct inspected *i, struct run *run, struct run_case *c,
                                  tare_error *err);

/* A total as a number for the dims in force; unknown when it cannot be told. */
struct known_u64 inspect_number(const struct inspected *i, const struct poly *p);

#endif
