/* SPDX-License-Identifier: MIT
 * onnx_encode.h - the bytes of protobuf that onnx_write.c and onnx_encode.c share. Little endian
 * everywhere. */
#ifndef MODEL_ONNX_ENCODE_H
#define MODEL_ONNX_ENCODE_H

#include "core/buf.h"

struct ow_attr;

unsigned encode_type_bytes(int type); /* of one element of the types that the writer stores */
void encode_bytes(struct buf *b, unsigned field, const void *bytes, size_t n);
void encode_message(struct buf *b, unsigned field,
                    struct buf *inner); /* `inner` as a message, then emptied */
void encode_fixed(struct buf *b, uint64_t v, unsigned n_bytes);
size_t encode_number(unsigned char *out, int type, double v); /* one element; returns its length, at most 8 */
void encode_attribute(struct buf *b, const struct ow_attr *a); /* as a field of a node */

#endif
