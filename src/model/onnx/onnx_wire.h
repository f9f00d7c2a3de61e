/* SPDX-License-Identifier: MIT
 * onnx_wire.h - the protobuf wire format over bytes in memory: fields one by one, nothing copied or
 * allocated. Every length is checked against what holds it; nothing is ever read at or after `end`. */
#ifndef MODEL_ONNX_WIRE_H
#define MODEL_ONNX_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
    const uint8_t *at, *end;
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;       /* of a number, as its bits; 0 for bytes */
    const uint8_t *bytes; /* of WIRE_BYTES, and of the fixed ones; n bytes */
    size_t n;
};

/* 1: a field; 0: the end; -1: damaged, *why says how and w->at is where. */
int wire_next(struct wire *w, struct wire_field *f, const char **why);

/* One varint: 1, or -1 and *why. */
int wire_varint(struct wire *w, uint64_t *out, const char **why);

/* The next number of a packed run whose elements have this type: 1, 0 at the end, -1 and *why. */
int wire_packed(struct wire *w, enum wire_type type, uint64_t *out, const char **why);

/* How many numbers a packed run has; (size_t)-1 when it is damaged. */
size_t wire_packed_count(const uint8_t *bytes, size_t n, enum wire_type type);

#endif
