/* SPDX-License-Identifier: MIT
 * tensor.h - named arrays: inputs for a model, its outputs, labels. Owned memory, C order, little-endian.
 * Never runs anything and knows no runtime. */
#ifndef SUBJECT_TENSOR_H
#define SUBJECT_TENSOR_H

#include <stdbool.h>

#include "core/buf.h"
#include "core/vec.h"
#include "model/onnx/onnx.h"

enum { TENSOR_RANK_MAX = 16 };

struct tensor {
    char *name; /* owned; "" where a file gives none */
    int type;   /* enum onnx_type */
    size_t rank;
    int64_t dims[TENSOR_RANK_MAX];
    void *data; /* owned, made by tensor_make(); 64-byte aligned; never NULL, even for 0 bytes */
    size_t bytes;
};

struct tensor_set {
    VEC(struct tensor) items;
};
#define TENSOR_SET_INIT {VEC_INIT}

void tensor_release(struct tensor *t);
void tensor_set_release(struct tensor_set *s);
struct tensor_spec {
    const char *name;
    int type;
    const int64_t *dims;
    size_t rank;
};
/* Zeroed. TARE_UNSUPPORTED for text, TARE_INVALID for a bad rank, dimension or size. */
tare_status tensor_make(struct tensor *out, const struct tensor_spec *spec, tare_error *err);
/* Hands *t over to the set; on failure *t is released. */
tare_status tensor_set_take(struct tensor_set *s, struct tensor *t, tare_error *err);
struct tensor *tensor_find(const struct tensor_set *s, const char *name); /* NULL: none */
uint64_t tensor_elements(const struct tensor *t);
/* Any numeric type as a double; of a complex number the real part. */
double tensor_value(const struct tensor *t, uint64_t i);
/* The other way: false for what has less than 8 bits, complex numbers, text and 8-bit floats. What a whole type cannot
 * hold becomes its nearest. */
bool tensor_set_value(struct tensor *t, uint64_t i, double v);
bool tensor_is_float(int type);                                                   /* of 16, 32 and 64 bits */
void tensor_shape_text(char *out, size_t size, const int64_t *dims, size_t rank); /* "[2, 128]"; -1 as "?" */

/* Bytes of an array; false when a dimension is negative, the type has no fixed size, or no memory could hold it. */
bool tensor_bytes(int type, const int64_t *dims, size_t rank, uint64_t *elements, size_t *bytes);

uint16_t tensor_to_bfloat(float f); /* to nearest, ties to even; to half: weight_to_half() */

/* Files, told apart by content: .npz (stored or deflated members), .npy, an ONNX TensorProto (.pb), or a folder of
 * .npy or of input_N.pb or output_N.pb (an ONNX test_data_set). Errors name the file, the member and the cause. */
enum tensor_role { TENSOR_INPUTS, TENSOR_OUTPUTS };
tare_status tensor_load(struct tensor_set *out, const char *path, enum tensor_role role, tare_error *err);
tare_status tensor_read_npy(struct tensor *out, const char *name, const void *bytes, size_t n,
                            tare_error *err);
/* Bytes of the whole .npy file whose first `n` these are: TENSOR_NPY_HEAD_MAX of them always suffice. */
#define TENSOR_NPY_HEAD_MAX ((size_t)(64 << 10))
tare_status tensor_npy_bytes(const char *name, const void *head, size_t n, uint64_t *bytes, tare_error *err);
tare_status tensor_read_npz(struct tensor_set *out, const char *name, const void *bytes, size_t n,
                            tare_error *err);
tare_status tensor_read_pb(struct tensor *out, const char *name, const void *bytes, size_t n,
                           tare_error *err);

/* ---- tensor_error.c: how far one array is from another that should be the same. Pure. What is no number on both sides
 * is equal; on one side it makes the distance infinite: nothing is averaged away ---- */

struct tensor_error {
    bool comparable; /* false: `why`, and the numbers are NAN */
    double rel_l2, max_abs,
        cosine;    /* |a - b| / |a|; INFINITY where no finite number tells it. cosine NAN: a or b is 0 */
    char why[160]; /* not comparable, or infinite: what is wrong. "" else */
};

/* `a` is the reference. Arrays of one kind (floating, or whole numbers and booleans) compare whatever their width. */
void tensor_error_of(struct tensor_error *out, const struct tensor *a, const struct tensor *b);

#endif
