/* SPDX-License-Identifier: MIT
 * infer.h - types and shapes of every value of a model, without running it: dimensions as polynomials of the free
 * ones, small integer tensors (shapes on their way through Shape, Gather, Concat, Reshape) as their contents. What
 * cannot be known before running is said to be unknown, with the reason; a shape that is stated is right.
 * Bodies of If, Loop and Scan and calls of model-local functions are scopes of their own, inferred too. */
#ifndef MODEL_INFER_H
#define MODEL_INFER_H

#include "model/onnx/onnx.h"
#include "model/infer/poly.h"

enum { INFER_RANK_MAX = 64, INFER_INTS_MAX = 4096 /* elements of integer tensors that are followed */ };

struct infer_ratio { /* p / by, not rounded yet */
    const struct poly *p;
    int64_t by;
};

struct infer_list; /* infer_list.h: what is known of the elements of a sequence or an optional */

struct infer_value {
    const char *name;
    size_t number; /* among those of all scopes */
    int type;      /* enum onnx_type; ONNX_UNDEFINED: unknown, or no tensor */
    bool has_rank; /* false: not even how many dimensions */
    size_t rank;
    const struct poly **dims; /* rank of them; NULL: unknown */
    const struct poly *
        *ints; /* contents, row by row; NULL: not followed. An item NULL: that one is unknown */
    size_t n_ints;
    const double *reals; /* contents of a small tensor of floats, n_ints of them; NULL: not all are known. A
                            tensor of floats that holds whole numbers may have ints instead */
    const struct infer_ratio *ratios; /* likewise, of quotients that depend on free dimensions */
    const struct infer_list
        *list;                /* of a sequence or an optional; NULL: a tensor, or nothing is known of it */
    const struct poly *every; /* each element is this, however many there are; NULL: not known to be so */
    const struct onnx_tensor *constant; /* the initializer or Constant it is; NULL: computed or an input */
    bool folded;                        /* the same in every run: made of constants only */
    bool data_dependent;                /* some dimension hangs on the contents of an input */
    bool profiled;                      /* shape taken from a profiled run */
};

struct infer_scope;

struct infer_node {
    const struct onnx_node *node;
    struct infer_scope *scope;    /* it stands in */
    struct infer_value **inputs;  /* as many as the node has; NULL: left out */
    struct infer_value **outputs; /* likewise */
    struct infer_scope **bodies;  /* of If (then, else, or the one that runs), Loop, Scan, a function call */
    size_t n_bodies;
    const struct poly *trips; /* Loop, Scan: how often the body runs; NULL: unknown */
    const char *why;          /* why an output's shape is unknown; NULL: all are known */
    int64_t opset;            /* version of the node's domain that applies */
};

struct infer_scope {
    const struct onnx_graph *graph;       /* NULL: a function's body */
    const struct onnx_function *function; /* NULL: a graph */
    struct infer_scope *outer;            /* NULL: the model's own graph */
    const struct infer_node *call;        /* the node whose body this is; NULL: main graph */
    struct infer_node *nodes;             /* in an order in which they can run */
    size_t n_nodes;
    struct infer_value **values; /* all that are named here; find by infer_value() */
    size_t n_values;
    struct map_u64 *names; /* the model's own copy of a name -> its number in values, + 1 */
    const struct onnx_model *model;
    const struct onnx_value *
        *said; /* what the file says of each value; an item NULL: nothing. NULL: of none */
};

struct infer_options {
    const struct poly_binding *dims; /* free dimensions made numbers before inference */
    size_t n_dims;
    /* Shapes seen in a profiled run, for values that the rules cannot know; may be NULL. */
    const struct infer_seen *seen;
    size_t n_seen;
    /* What inputs of the main graph hold in the run that is meant, by name; small ones are followed. May be NULL. */
    const struct onnx_tensor *contents;
    size_t n_contents;
    bool tolerant;   /* what contradicts its operator, or is made by nobody, is unknown instead of an error */
    bool *too_large; /* set when it failed for calls too many or too deep once written out; may be NULL */
};

struct infer_seen {
    const char *value; /* name, in the main graph */
    int type;
    const int64_t *dims;
    size_t rank;
};

struct inferred {
    const struct onnx_model *model;
    struct poly_space *space;
    struct infer_scope *main;
    size_t n_nodes, n_unknown; /* over all scopes; nodes with an output of unknown shape */
    size_t n_values;           /* that were ever made: all numbers are below */
    struct infer_memory *memory;
};
#define INFERRED_INIT {0}

/* Errors: a cycle, two producers of one name, a missing producer, bodies nested deeper than 64, functions that call
 * themselves, a negative or overflowing dimension, inputs that contradict the operator; each names node and value.
 * The model must outlive the result. */
tare_status infer_model(struct inferred *out, const struct onnx_model *m, const struct infer_options *o,
                        tare_error *err);
void inferred_release(struct inferred *i); /* an INFERRED_INIT is fine */

/* The value of that name as seen from a scope: its own, or of one around it. NULL: none. */
const struct infer_value *infer_value(const struct infer_scope *s, const char *name);
const struct poly *infer_elements(struct poly_space *s, const struct infer_value *v); /* NULL: unknown */
const struct poly *infer_bytes(struct poly_space *s, const struct infer_value *v); /* packed; NULL: unknown */
void infer_shape_print(const struct infer_value *v, struct buf *out); /* "float32[batch,128,384]" */

/* What an integer input may hold so that the model runs: found by following it, through casts, reshapes and
 * arithmetic that keeps its range, to the Gather (embedding) and like nodes that use it as an index.
 * Where the range cannot be followed, or the rows are known at run time only, the limit is 1: zeros.
 * limit 0: no bound found. `why` names the node: "Gather '/embeddings/word' has 30522 rows". */
struct infer_bound {
    int64_t limit; /* values 0 .. limit - 1 are valid */
    char why[160];
};
/* Of the first n inputs of the model's graph. TARE_INVALID: calls of functions, written out, make a model that no
 * runtime should be asked to load. */
tare_status infer_input_bounds(const struct onnx_model *m, struct infer_bound *out, size_t n,
                               tare_error *err);

#endif
