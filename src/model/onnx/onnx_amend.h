/* SPDX-License-Identifier: MIT
 * onnx_amend.h - a model file with more graph outputs, as bytes in memory, without copying the file. Messages of
 * protobuf that stand one after the other are merged, so a second `graph` that has nothing but outputs is all that
 * must follow the file: its pages are mapped, and a few bytes stand behind them. Never writes to the file. */
#ifndef MODEL_ONNX_AMEND_H
#define MODEL_ONNX_AMEND_H

#include <stddef.h>

#include "core/error.h"

struct onnx_amended {
    const void *bytes; /* of the whole model */
    size_t n;
    size_t mapped; /* bytes of address space */
};
#define ONNX_AMENDED_INIT {NULL, 0, 0}

/* `names` are values of the main graph that are no outputs yet; their types are left to whoever reads the model.
 * TARE_UNSUPPORTED when it would be larger than a protobuf message can be (2 GiB). */
tare_status onnx_amend_outputs(struct onnx_amended *out, const char *path, const char *const *names, size_t n,
                               tare_error *err);
void onnx_amended_release(struct onnx_amended *a); /* an ONNX_AMENDED_INIT is fine */

#endif
