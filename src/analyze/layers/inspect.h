/* SPDX-License-Identifier: MIT
 * inspect.h - a whole model without running it: shapes, cost per layer and in total, parameters, memory, in numbers
 * for given dimensions and as formulas. Pure; uses src/model. */
#ifndef ANALYZE_INSPECT_H
#define ANALYZE_INSPECT_H

#include "core/map.h"
#include "core/vec.h"
#include "model/cost/cost.h"
#include "model/cost/liveness.h"
#include "run/run.h"

/* A node of the main graph but Constant; bodies and functions are summed into the node that has them. */
struct inspect_layer {
    const struct infer_node *at;
    char *name; /* the node's, or "Op_<first output>" for one without */
    struct cost cost;
    const struct poly *parameters; /* elements of distinct initializers, counted at the first reader */
    bool folded; /* the same in every run: a runtime computes it once, when it loads the model */
};

struct inspected {
    const struct onnx_model *model; /* must outlive this */
    struct inferred shapes;         /* free dimensions as symbols */
    struct inferred
        bound;     /* as numbers; made only when symbols left more unknown, then costs are of this one */
    bool is_bound; /* is it? Else `bound` is empty */
    VEC(struct inspect_layer) layers;
    struct cost total;   /* of the graph as it is */
    struct cost per_run; /* without nodes that are the same in every run */
    struct cost formula; /* the total with free dimensions as symbols; == total unless is_bound */
    struct liveness memory;
    const struct poly *activation;   /* memory.sum as a formula; NULL: unknown */
    bool activation_known;           /* all values are in it */
    uint64_t nodes, unknown_nodes;   /* of all scopes; whose own cost is unknown */
    struct map_str ops, unknown_ops; /* the same by operator: "com.microsoft.FusedConv" -> nodes */
    uint64_t parameters, parameter_bytes;
    uint64_t bytes_by_type[ONNX_TYPES]; /* of all tensors in the file */
    VEC(struct poly_binding) dims;      /* every free dimension and the value it was given */
    VEC(bool) asked;                    /* per dim: by the user, else by default */
    VEC(char *) names;                  /* what dims[].name points to */
};
#define INSPECTED_INIT {.shapes = INFERRED_INIT, .bound = INFERRED_INIT, .layers = VEC_INIT, .memory = LIVENESS_INIT, \
                        .ops = MAP_STR_INIT, .unknown_ops = MAP_STR_INIT, \
                        .dims = VEC_INIT, .asked = VEC_INIT, .names = VEC_INIT}

struct inspect_options {
    const struct poly_binding
        *dims; /* by the model's names; "batch" and "seq" stand for the usual names too */
    size_t n_dims;
    const struct infer_seen *seen; /* shapes from a profiled run; may be NULL */
    size_t n_seen;
    const struct onnx_tensor
        *contents; /* of inputs of that run, for numbers and not for formulas; may be NULL */
    size_t n_contents;
};

/* A dimension that nobody gave is 1, a sequence length 128 (dimname.h), the length of a cache (past) 0, and what is
 * named as a sum that sum. Errors name a dimension that the model does not have, and list those it has. */
tare_status inspect_model(struct inspected *out, const struct onnx_model *m, const struct inspect_options *o,
                          tare_error *err);
void inspected_release(struct inspected *i);

/* The shapes that numbers come from. */
const struct inferred *inspect_shapes(const struct inspected *i);

/* Into run->subject.as_file or .optimized: totals, types, operators, memory, formulas. */
void inspect_record_static(const struct inspected *i, struct run *run, struct run_static *to);
/* One run_layer per layer into the case: its costs, its group where layer_parts.h tells it; and the case's `cost`. Of
 * more than a document may hold, the dearest. */
tare_status inspect_record_layers(const struct inspected *i, struct run *run, struct run_case *c,
                                  tare_error *err);

/* A total as a number for the dims in force; unknown when it cannot be told. */
struct known_u64 inspect_number(const struct inspected *i, const struct poly *p);
struct run_cost inspect_cost(const struct inspected *i, const struct cost *c);

/* What is worth a finding in a graph, counted once so that the document holds it (graph_patterns.c): layout transposes,
 * nodes that are the same in every run, norms, activations and attention spelled out in small operators, embedding
 * tables. Counts only; finding_graph.c judges.
 * Fills `to` (run_static.patterns) with whole numbers; a key whose number cannot be told is left out:
 *   transposes, transpose_bytes                       layout changes at run time, bytes they read and write
 *   foldable_nodes, foldable_macs                     made of constants only, yet nodes of the graph
 *   layer_norm, rms_norm, gelu, attention             how often spelled out
 *   unfused_nodes, unfused_bytes                      the nodes of these spellings, bytes they read and write
 *   embedding_tables, embedding_parameters, embedding_bytes   tables that are looked up by row
 * Only the main graph is looked at. Running out of memory is remembered by the run's arena. */
void graph_patterns_record(const struct inspected *in, struct run *run, struct run_map *to);

#endif
