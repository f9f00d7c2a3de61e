/* SPDX-License-Identifier: MIT
 * wire.c - see wire.h. */
#include "core/wire.h"

#include <string.h>

enum { MAX_VARINT = 10 };

/* One varint: 1, or -1 and *why. */
static int wire_varint(struct wire *w, uint64_t *out, const char **why)
{
    const uint8_t *p = w->at;
    uint64_t value = 0;
    for (unsigned i = 0; i < MAX_VARINT; i++) {
        if (p == w->end) {
            *why = "the data end inside a number";
            return -1;
        }
        uint8_t byte = *p++;
        if (i == MAX_VARINT - 1 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte & 0x80) continue;
        w->at = p;
        *out = value;
        return 1;
    }
    *why = "a number is longer than 64 bits";
    return -1;
}

static uint64_t little_endian(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static int take_fixed(struct wire *w, unsigned n, uint64_t *out, const char **why)
{
    if ((size_t)(w->end - w->at) < n) {
        *why = "the data end inside a number";
        return -1;
    }
    *out = little_endian(w->at, n);
    w->at += n;
    return 1;
}

static int take_bytes(struct wire *w, struct wire_field *f, const char **why)
{
    uint64_t n;
    if (wire_varint(w, &n, why) < 0) return -1;
    if (n > (uint64_t)(w->end - w->at)) {
        *why = "a length goes beyond the end of what holds it (truncated?)";
        return -1;
    }
    f->bytes = w->at;
    f->n = (size_t)n;
    w->at += n;
    return 1;
}

/* On damage w->at stays at the beginning of the field, which is the place to report. A field that is not
 * bytes gets the span of its value, too, so that a packed list and a single number can be read alike. */
int wire_next(struct wire *w, struct wire_field *f, const char **why)
{
    if (w->at == w->end) return 0;
    const uint8_t *start = w->at;
    uint64_t tag;
    int got = wire_varint(w, &tag, why);
    if (got < 0) return -1;
    *f = (struct wire_field){.number = (uint32_t)(tag >> 3)};
    if (tag > UINT32_MAX || f->number == 0) {
        *why = "not a field number";
        w->at = start;
        return -1;
    }
    const uint8_t *value = w->at;
    switch (tag & 7) {
    case WIRE_VARINT: got = wire_varint(w, &f->value, why); break;
    case WIRE_FIXED64: got = take_fixed(w, 8, &f->value, why); break;
    case WIRE_BYTES: got = take_bytes(w, f, why); break;
    case WIRE_FIXED32: got = take_fixed(w, 4, &f->value, why); break;
    default: *why = "not a kind of field that models have"; got = -1;
    }
    f->type = (enum wire_type)(tag & 7);
    if (got < 0) {
        w->at = start;
    } else if (f->type != WIRE_BYTES) {
        f->bytes = value;
        f->n = (size_t)(w->at - value);
    }
    return got;
}

int wire_packed(struct wire *w, enum wire_type type, uint64_t *out, const char **why)
{
    if (w->at == w->end) return 0;
    if (type == WIRE_VARINT) return wire_varint(w, out, why);
    return take_fixed(w, type == WIRE_FIXED64 ? 8 : 4, out, why);
}

size_t wire_packed_count(const uint8_t *bytes, size_t n, enum wire_type type)
{
    size_t size = type == WIRE_FIXED64 ? 8 : 4, count = 0;
    if (type != WIRE_VARINT) return n % size ? (size_t)-1 : n / size;
    for (size_t i = 0; i < n; i++) count += bytes[i] < 0x80;
    return n && bytes[n - 1] >= 0x80 ? (size_t)-1 : count;
}

/* ---- writing ---- */

void wire_add_varint(struct buf *b, uint64_t v)
{
    char bytes[MAX_VARINT];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    buf_add(b, bytes, n);
}

void wire_add_key(struct buf *b, uint32_t field, enum wire_type type)
{
    wire_add_varint(b, (uint64_t)field << 3 | type);
}

void wire_add_fixed(struct buf *b, uint64_t v, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++) buf_add_char(b, (char)(v >> 8 * i));
}

void wire_add_uint(struct buf *b, uint32_t field, uint64_t v)
{
    wire_add_key(b, field, WIRE_VARINT);
    wire_add_varint(b, v);
}

static void wire_add_bytes(struct buf *b, uint32_t field, const void *bytes, size_t n)
{
    wire_add_key(b, field, WIRE_BYTES);
    wire_add_varint(b, n);
    buf_add(b, bytes, n);
}

void wire_add_str(struct buf *b, uint32_t field, const char *s)
{
    wire_add_bytes(b, field, s, strlen(s));
}

void wire_add_message(struct buf *b, uint32_t field, struct buf *inner)
{
    b->failed |= inner->failed;
    wire_add_bytes(b, field, inner->data, inner->len);
    buf_clear(inner);
}
