/* SPDX-License-Identifier: MIT
 * infer_engine.h - between the files of the engine of shape inference: its state, making scopes, running them.
 * Private to src/model/infer*.c; rules see infer_rule.h only. */
#ifndef MODEL_INFER_ENGINE_H
#define MODEL_INFER_ENGINE_H

#include "core/map.h"
#include "core/vec.h"
#include "model/infer/infer_rule.h"

enum {
    ENGINE_DEPTH_MAX = 64,
    ENGINE_NODES_MAX = 100000, /* of all scopes together, beyond what the file itself can hold */
    ENGINE_BYTES_PER_NODE = 8, /* fewer than any node in a file takes */
    ENGINE_SMALL_INTS_MAX =
        64, /* elements of tensors of narrow integers that are followed: weights are not */
    ENGINE_REALS_MAX = 64,
    ENGINE_CONTENTS_MAX = 64 << 20 /* bytes of contents that are followed, over all values that nodes make */
};

struct infer_memory {
    struct arena arena;
    VEC(struct map_u64 *) names; /* of all scopes */
};

struct infer_engine {
    const struct onnx_model *model;
    const struct infer_options *options;
    struct infer_memory *memory;
    struct poly_space *space;
    struct map_str functions; /* domain, NUL, name -> number + 1 */
    struct map_str seen;      /* name -> number + 1 */
    struct map_str symbols;   /* free dimensions that inputs of the main graph name */
    struct map_u64 opsets;    /* the model's own copy of a domain -> version */
    struct map_u64 rows;      /* of operator and domain: the row, or 1 for none */
    VEC(void *) scratch;      /* what the running rule computes with; gone after it */
    size_t n_nodes, max_nodes, n_values;
    size_t contents_left; /* bytes of contents that may still be followed */
    unsigned depth;
    tare_status status; /* the first error; nothing is inferred after it */
    bool fault;         /* it is a rule's: shapes that do not go together. If looks at it and sets it back */
    tare_error *err;
};

/* What a scope is made of: a graph, or a function and the call of it. */
struct scope_plan {
    const struct onnx_graph *graph;
    const struct onnx_function *function;
    struct infer_scope *outer;
    struct infer_node *call;
    const struct infer_value *const *formal; /* of the inputs, in order; an item may be NULL */
    size_t n_formal;
};

/* ---- what can fail returns false, and the error stays in the engine ---- */
/* Keep the status of something that can fail; false: something has. */
bool engine_ok(struct infer_engine *e, tare_status s);
/* The same of an error: false, which the analyzer sees too. */
static inline bool engine_failed(struct infer_engine *e, tare_status s)
{
    engine_ok(e, s);
    return false;
}
#define engine_error(e, ...) engine_failed(e, error_set((e)->err, TARE_INVALID, __VA_ARGS__))
#define engine_nomem(e) engine_failed(e, error_nomem((e)->err, "the shapes of a model"))
/* That many more nodes, or work and memory like it; an error when a small file blows up. */
bool engine_charge(struct infer_engine *e, size_t nodes);
/* Zeroed; NULL when out of memory, which is an error. */
void *engine_get(struct infer_engine *e, size_t n, size_t size);
/* Room for contents of a value; NULL: no memory, or so much is followed already that this is not. */
void *engine_contents(struct infer_engine *e, size_t n, size_t size);
/* The same, until the rule that runs is done. */
void *engine_scratch(struct infer_engine *e, size_t n, size_t size);
void engine_end_scratch(struct infer_engine *e);
/* "node 'x' (Conv)", or by what it makes when it has no name. */
const char *engine_node_text(const struct onnx_node *n, char *out, size_t size);

/* infer_scope.c: all values, nodes wired to them and put in order; nothing inferred yet. */
bool scope_make(struct infer_engine *e, const struct scope_plan *p, struct infer_scope **out);
/* By the model's own copy of the name, here or around; NULL: none. */
struct infer_value *scope_find(const struct infer_scope *s, const char *name);
/* infer_const.c: room for that many dimensions, all unknown. */
bool scope_dims(struct infer_engine *e, struct infer_value *v, size_t rank);
/* What a tensor in the file says of a value. */
bool scope_constant(struct infer_engine *e, struct infer_value *v, const struct onnx_tensor *t);
/* Its contents where they are small; of an input that stays one. */
void scope_contents(struct infer_engine *e, struct infer_value *v, const struct onnx_tensor *t);
/* Type, shape and contents; not the name, nor the number. */
void scope_copy(struct infer_value *to, const struct infer_value *from);
/* Are the rank and all dimensions known? */
bool scope_is_known(const struct infer_value *v);
/* Fill what is not known of a value from what the file, or a profiled run, says of it. */
bool scope_fill(struct infer_engine *e, const struct infer_scope *s, struct infer_value *v);

/* infer_order.c: numbers of the nodes, so that each comes after what it needs. */
enum { ORDER_NO_NODE = UINT32_MAX };
struct scope_draft { /* a scope in the making */
    struct infer_engine *e;
    const struct scope_plan *plan;
    struct infer_scope *scope;
    struct infer_value *room;       /* for all values that there can be */
    const struct onnx_node **nodes; /* in the order of the file */
    size_t n;
    uint32_t *made_by; /* of each value: the node, or ORDER_NO_NODE */
    uint32_t *order;   /* what order_nodes fills */
};
bool order_nodes(const struct scope_draft *m);

/* infer_function.c: the node with the attributes that stand for those of the call put in. The same pointer where
 * there are none. */
bool function_node(struct infer_engine *e, const struct onnx_node *n, const struct scope_plan *p,
                   const struct onnx_node **out);

/* ---- values of bodies and of sequences; infer_sequence.c ---- */

enum { LIST_MAX = 1024 }; /* elements that are kept one by one */

struct infer_list {
    bool optional; /* at most one, that may be a sequence itself */
    bool exact;    /* n and items are known, in their order */
    size_t n;
    const struct infer_value *items;
    struct infer_value common; /* what holds of every element there may be */
};

/* A copy in the engine's memory without contents, as another run of a body may hand over others. */
bool value_shape_copy(struct rule_call *c, const struct infer_value *from, struct infer_value *to);
/* Forget what does not hold of `other` too. *changed is set when something went. NULL holds nothing. */
bool value_join(struct rule_call *c, struct infer_value *v, const struct infer_value *other, bool *changed);
/* Output i like a value, contents included. */
void rule_output_is(struct rule_call *c, size_t output, const struct infer_value *v);

#endif
