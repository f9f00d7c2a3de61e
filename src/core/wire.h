/* SPDX-License-Identifier: MIT
 * wire.h - the protobuf wire format: reading fields one by one over bytes in memory, nothing copied or allocated;
 * writing them to a buf. Every length is checked against what holds it; nothing is ever read at or after `end`. */
#ifndef CORE_WIRE_H
#define CORE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"

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

/* The next number of a packed run whose elements have this type: 1, 0 at the end, -1 and *why. */
int wire_packed(struct wire *w, enum wire_type type, uint64_t *out, const char **why);

/* How many numbers a packed run has; (size_t)-1 when it is damaged. */
size_t wire_packed_count(const uint8_t *bytes, size_t n, enum wire_type type);

/* ---- writing; failure is the buf's ---- */

void wire_add_varint(struct buf *b, uint64_t v);
void wire_add_key(struct buf *b, uint32_t field, enum wire_type type); /* what follows is the caller's */
void wire_add_fixed(struct buf *b, uint64_t v, unsigned n_bytes);      /* little endian */
void wire_add_uint(struct buf *b, uint32_t field, uint64_t v);
void wire_add_str(struct buf *b, uint32_t field, const char *s);
/* `inner` as a message inside `b`; it is empty afterwards. */
void wire_add_message(struct buf *b, uint32_t field, struct buf *inner);

#endif
