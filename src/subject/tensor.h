/* SPDX-License-Identifier: MIT
 * tensor.h - named arrays: inputs for a model, its outputs, labels. Owned memory, C order, little-endian. */
#ifndef SUBJECT_TENSOR_H
#define SUBJECT_TENSOR_H

#include "core/vec.h"
#include "model/onnx.h"

enum { TENSOR_RANK_MAX = 16 };

struct tensor {
    char *name; /* owned; "" where a file gives none */
    int type;   /* enum onnx_type */
    size_t rank;
    int64_t dims[TENSOR_RANK_MAX];
    void *data; /* owned; 64-byte aligned */
    size_t bytes;
};

struct tensor_set {
    VEC(struct tensor) items;
};
#define TENSOR_SET_INIT {VEC_INIT}

void tensor_release(struct tensor *t);
void tensor_set_release(struct tensor_set *s);
tare_status tensor_make(struct tensor *out, const char *name, int type, const int64_t *dims, size_t rank,
                        tare_error *err);
struct tensor *tensor_find(const struct tensor_set *s, const char *name); /* NULL: none */
uint64_t tensor_elements(const struct tensor *t);
double tensor_value(const struct tensor *t, uint64_t i); /* any numeric type as a double */

/* Files, told apart by content: .npz (stored or deflated members), .npy, an ONNX TensorProto (.pb), or a folder of
 * .npy or of input_N.pb (an ONNX test_data_set). Errors name the file, the member and the cause. */
tare_status tensor_load(struct tensor_set *out, const char *path, tare_error *err);
tare_status tensor_read_npy(struct tensor *out, const char *name, const void *bytes, size_t n,
                            tare_error *err);
tare_status tensor_read_npz(struct tensor_set *out, const char *name, const void *bytes, size_t n,
                            tare_error *err);
tare_status tensor_read_pb(struct tensor *out, const char *name, const void *bytes, size_t n,
                           tare_error *err);
tare_status tensor_save_npz(const struct tensor_set *s, const char *path,
                            tare_error *err); /* stored, atomic */

#endif
