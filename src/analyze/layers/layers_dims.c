/* SPDX-License-Identifier: MIT
 * layers_dims.c - free dimensions of a model and what a profile tells of them, so that costs are of what ran and not of
 * a batch of one. Never guesses: a dimension that shows nowhere alone is not told. */
#include <stdio.h>
#include <string.h>

#include "analyze/layers/layers.h"

bool layers_has_dim(const struct onnx_model *m, const char *name)
{
    for (size_t i = 0; i < m->graph.inputs.n; i++) {
        const struct onnx_value *v = &m->graph.inputs.items[i];
        for (size_t d = 0; v->has_shape && d < v->dims.n; d++) {
            char label[220];
            const struct onnx_dim *dim = &v->dims.items[d];
            snprintf(label, sizeof label, "%.180s.%zu", v->name, d);
            if (dim->value < 0 && strcmp(dim->name[0] ? dim->name : label, name) == 0) return true;
        }
    }
    return false;
}

bool layers_dim_seen(const struct inspected *i, const char *name, const struct layers_shapes *seen,
                     int64_t *value)
{
    const struct poly *symbol = poly_symbol(i->shapes.space, name); /* equal ones are the same pointer */
    for (size_t k = 0; symbol && k < seen->n; k++) {
        const struct infer_value *v = infer_value(i->shapes.main, seen->items[k].value);
        if (!v || !v->has_rank || v->rank != seen->items[k].rank || v->profiled) continue;
        for (size_t d = 0; d < v->rank; d++) {
            if (v->dims[d] != symbol) continue;
            *value = seen->items[k].dims[d];
            return true;
        }
    }
    return false;
}
