/* SPDX-License-Identifier: MIT
 * fuzz_onnx.c - onnx_read() on any bytes. What is read must be walkable in full: every name is a string,
 * every raw tensor lies in the input, every lookup finds what it indexes, bounds and small integers can
 * be asked for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/infer/infer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
    size_t letters; /* read, so that the compiler keeps the reading */
};

static void must(int ok)
{
    if (!ok) abort();
}

static void walk_tensor(struct input *in, const struct onnx_tensor *t)
{
    int64_t items[64];
    in->letters += strlen(t->name);
    must(t->type > ONNX_UNDEFINED && t->type < ONNX_TYPES);
    if (t->raw) must(t->raw >= in->data && t->raw + t->raw_bytes <= in->data + in->size);
    if (t->external) must(t->external[0] != '/' && strncmp(t->external, "../", 3) != 0);
    onnx_tensor_ints(t, items, 64, NULL);
}

static void walk_graph(struct input *in, const struct onnx_graph *g);

static void walk_node(struct input *in, const struct onnx_node *n)
{
    must(n->op[0] != 0);
    for (size_t i = 0; i < n->inputs.n; i++) in->letters += strlen(n->inputs.items[i]);
    for (size_t i = 0; i < n->outputs.n; i++) in->letters += strlen(n->outputs.items[i]);
    for (size_t i = 0; i < n->attributes.n; i++) {
        const struct onnx_attribute *a = &n->attributes.items[i];
        must(onnx_attribute(n, a->name) != NULL);
        for (size_t k = 0; k < a->strings.n; k++) in->letters += strlen(a->strings.items[k]);
        for (size_t k = 0; k < a->ints.n; k++) in->letters += a->ints.items[k] == 0;
        for (size_t k = 0; k < a->floats.n; k++) in->letters += a->floats.items[k] > 0;
        if (a->t) walk_tensor(in, a->t);
        if (a->g) walk_graph(in, a->g);
    }
}

static void walk_values(struct input *in, const struct onnx_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        in->letters += strlen(v[i].name) + strlen(v[i].kind);
        for (size_t k = 0; k < v[i].dims.n; k++) {
            must(v[i].dims.items[k].value >= -1);
            in->letters += strlen(v[i].dims.items[k].name);
        }
    }
}

static void walk_graph(struct input *in, const struct onnx_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) walk_node(in, &g->nodes.items[i]);
    for (size_t i = 0; i < g->initializers.n; i++) {
        walk_tensor(in, &g->initializers.items[i]);
        must(onnx_initializer(g, g->initializers.items[i].name) == &g->initializers.items[i]);
    }
    for (size_t i = 0; i < g->sparse.n; i++) walk_tensor(in, &g->sparse.items[i].values);
    walk_values(in, g->inputs.items, g->inputs.n);
    walk_values(in, g->outputs.items, g->outputs.n);
    walk_values(in, g->values.items, g->values.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct onnx_model m = ONNX_MODEL_INIT;
    struct input in = {data, size, 0};
    tare_error err = TARE_ERROR_INIT;
    if (onnx_read(&m, "fuzz", data, size, &err) < 0) {
        must(strncmp(err.text, "fuzz: ", 6) == 0 && m.memory == NULL);
        return 0;
    }
    walk_graph(&in, &m.graph);
    for (size_t i = 0; i < m.functions.n; i++) {
        for (size_t k = 0; k < m.functions.items[i].nodes.n; k++)
            walk_node(&in, &m.functions.items[i].nodes.items[k]);
    }
    struct infer_bound b[4];
    size_t n = m.graph.inputs.n < 4 ? m.graph.inputs.n : 4;
    tare_status known = infer_input_bounds(&m, b, n, &err);
    for (size_t i = 0; known == TARE_OK && i < n; i++)
        must(b[i].limit >= 0 && (b[i].limit == 0) == (b[i].why[0] == 0));
    onnx_close(&m);
    return 0;
}
