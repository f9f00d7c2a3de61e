/* SPDX-License-Identifier: MIT
 * onnx_weight.h - the tensors that a model file stores, one by one, and which of them are learned numbers. Looks at
 * names, types and dimensions only, never at the elements. */
#ifndef MODEL_ONNX_WEIGHT_H
#define MODEL_ONNX_WEIGHT_H

#include "model/onnx/onnx.h"

struct onnx_weight {
    const struct onnx_tensor *tensor;
    uint64_t elements; /* unpacked */
    uint64_t bytes;    /* as stored */
    int type;
    bool is_parameter; /* counts in onnx_parameters() */
};
typedef tare_status onnx_weight_seen(void *ctx, const struct onnx_weight *w, tare_error *err);

/* Initializers of all graphs and Constant nodes of more than one element, each distinct one once. Strings have no size
 * and are left out. */
tare_status onnx_weights(const struct onnx_model *m, onnx_weight_seen *each, void *ctx, tare_error *err);

#endif
