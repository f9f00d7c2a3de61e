/* SPDX-License-Identifier: MIT
 * onnx_encode.h - the bytes of protobuf that onnx_write.c and onnx_encode.c share. Little endian
 * everywhere. */
#ifndef MODEL_ONNX_ENCODE_H
#define MODEL_ONNX_ENCODE_H

#include "core/buf.h"

struct ow_attr;

unsigned encode_type_bytes(int type); /* of one element of the types that the writer stores */
size_t encode_number(unsigned char *out, int type, double v); /* one element; returns its length, at most 8 */
void encode_attribute(struct buf *b, const struct ow_attr *a); /* as a field of a node */

#endif
