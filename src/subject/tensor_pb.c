/* SPDX-License-Identifier: MIT
 * tensor_pb.c - one array as ONNX stores it (a TensorProto message): what the files of a test_data_set are. Read by the
 * model's own reader; data kept in other files and text are refused by name. */
#include <stdio.h>

#include "subject/tensor.h"

tare_status tensor_read_pb(struct tensor *out, const char *name, const void *bytes, size_t n, tare_error *err)
{
    struct onnx_model holder = ONNX_MODEL_INIT;
    struct tensor made = {0};
    char file[512]; /* what tells other files apart has tried before: say so */
    snprintf(file, sizeof file, "%.400s: no tensor in .npy, .npz or ONNX form", name);
    tare_status s = onnx_read_tensor(&holder, file, bytes, n, err);
    if (s == TARE_NOMEM) return error_set(err, s, "%s: out of memory", name);
    if (s < 0) return s;
    const struct onnx_tensor *t = holder.graph.initializers.items;
    if (t->external)
        s = error_set(err, TARE_UNSUPPORTED, "%s: its data are in another file", name);
    else if (t->type == ONNX_STRING)
        s = error_set(err, TARE_UNSUPPORTED, "%s: arrays of text are not supported", name);
    if (s < 0) goto out;
    s = tensor_make(&made, &(struct tensor_spec){t->name, t->type, t->dims.items, t->dims.n}, err);
    if (s < 0) goto out;
    s = onnx_tensor_copy(t, made.data, made.bytes, err);
    if (s == TARE_OK)
        *out = made;
    else
        tensor_release(&made);
out:
    if (s == TARE_FORMAT || s == TARE_INVALID) error_wrap(err, "%.200s", name);
    onnx_close(&holder);
    return s;
}
