/* SPDX-License-Identifier: MIT
 * fuzz_infer.c - infer_model() on any bytes that read as a model. What is inferred must be walkable in full: every node
 * wired to values of its scope, dims and contents printable, sizes computable, unknown ones with a reason; the same
 * model with all dimensions bound must not contradict the symbolic shapes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/infer/infer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE_OF_FREE = 3, FREE_MAX = 32 };

static void must(int ok)
{
    if (!ok) abort();
}

static void walk_value(const struct inferred *m, const struct infer_value *v, struct buf *text)
{
    buf_clear(text);
    must(v->name[0] != 0 && v->type >= 0 && v->type < ONNX_TYPES);
    must(v->has_rank ? v->rank <= INFER_RANK_MAX : v->rank == 0);
    infer_shape_print(v, text);
    for (size_t i = 0; v->ints && i < v->n_ints; i++) poly_print(v->ints[i], text);
    infer_bytes(m->space, v);
}

static void walk_scope(const struct inferred *m, const struct infer_scope *s, struct buf *text)
{
    for (size_t i = 0; i < s->n_values; i++) {
        walk_value(m, s->values[i], text);
        must(infer_value(s, s->values[i]->name) == s->values[i]);
    }
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct infer_node *n = &s->nodes[i];
        must(n->scope == s);
        for (size_t k = 0; k < n->node->outputs.n; k++) {
            bool named = n->node->outputs.items[k][0] != 0;
            must(named == (n->outputs[k] != NULL));
            must(!named || n->why || n->outputs[k]->has_rank);
        }
        for (size_t k = 0; k < n->n_bodies; k++) walk_scope(m, n->bodies[k], text);
    }
}

/* Free dimensions of the inputs, each 3. */
static size_t bind_inputs(const struct onnx_graph *g, struct poly_binding *to)
{
    size_t n = 0;
    for (size_t i = 0; i < g->inputs.n; i++) {
        const struct onnx_value *v = &g->inputs.items[i];
        for (size_t k = 0; k < v->dims.n && n < FREE_MAX; k++)
            if (v->dims.items[k].value < 0 && v->dims.items[k].name[0])
                to[n++] = (struct poly_binding){v->dims.items[k].name, SIZE_OF_FREE};
    }
    return n;
}

/* A dimension that both know as a number is the same number; of sizes that came out as 0 or less nothing is said. */
static void same_shapes(const struct infer_scope *free, const struct infer_scope *bound,
                        const struct poly_binding *b, size_t n)
{
    for (size_t i = 0; i < free->n_values; i++) {
        const struct infer_value *x = free->values[i], *y = infer_value(bound, x->name);
        for (size_t k = 0; y && x->rank == y->rank && k < x->rank; k++) {
            int64_t p, q;
            if (poly_eval(x->dims[k], b, n, &p) && poly_constant(y->dims[k], &q)) must(p == q || p <= 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct onnx_model m = ONNX_MODEL_INIT;
    struct inferred free_dims = INFERRED_INIT, bound_dims = INFERRED_INIT;
    struct poly_binding b[FREE_MAX];
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (onnx_read(&m, "fuzz", data, size, &err) < 0) return 0;
    struct infer_options o = {.dims = b, .n_dims = bind_inputs(&m.graph, b)};
    tare_status s = infer_model(&free_dims, &m, NULL, &err);
    if (s < 0) must(err.text[0] != 0 && free_dims.memory == NULL);
    if (s == TARE_OK) walk_scope(&free_dims, free_dims.main, &text);
    if (s == TARE_OK && infer_model(&bound_dims, &m, &o, &err) == TARE_OK)
        same_shapes(free_dims.main, bound_dims.main, b, o.n_dims);
    inferred_release(&free_dims);
    inferred_release(&bound_dims);
    buf_release(&text);
    onnx_close(&m);
    return 0;
}
