/* SPDX-License-Identifier: MIT
 * snappy.c - see snappy.h. The length as a varint, then elements: literals, and copies of 4 to 64 bytes from at most 64
 * KiB before. Greedy, by a table of the last place of each 4 bytes. */
#include "server/exports/snappy.h"

#include <stdint.h>
#include <string.h>

#include "core/wire.h"

enum { TABLE_BITS = 13, LEAST = 4, COPY_MAX = 64, BACK_MAX = 65535, INLINE_MAX = 60 };

static uint32_t load32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static void add_literal(struct buf *out, const uint8_t *at, size_t n)
{
    size_t last = n - 1;
    unsigned bytes = 0;
    if (!n) return;
    if (n > INLINE_MAX)
        for (size_t rest = last; rest; rest >>= 8) bytes++;
    buf_add_char(out, (char)((bytes ? INLINE_MAX - 1 + bytes : last) << 2));
    for (unsigned i = 0; i < bytes; i++) buf_add_char(out, (char)(last >> 8 * i));
    buf_add(out, at, n);
}

static void add_copy(struct buf *out, size_t back, size_t n)
{
    while (n) { /* a copy of less than 4 bytes is fine, too, in this form */
        size_t now = n < COPY_MAX ? n : COPY_MAX;
        buf_add_char(out, (char)((now - 1) << 2 | 2));
        buf_add_char(out, (char)back);
        buf_add_char(out, (char)(back >> 8));
        n -= now;
    }
}

void snappy_pack(struct buf *out, const void *bytes, size_t n)
{
    uint32_t table[1 << TABLE_BITS] = {0}; /* place + 1 */
    const uint8_t *in = bytes;
    size_t at = 0, literal = 0;
    wire_add_varint(out, n);
    while (at + LEAST <= n) {
        uint32_t *slot = &table[load32(in + at) * UINT32_C(0x9e3779b1) >> (32 - TABLE_BITS)];
        size_t from = *slot, length = 0;
        *slot = (uint32_t)at + 1;
        if (from && at - (from - 1) <= BACK_MAX)
            while (at + length < n && in[from - 1 + length] == in[at + length]) length++;
        if (length < LEAST) {
            at++;
            continue;
        }
        add_literal(out, in + literal, at - literal);
        add_copy(out, at - (from - 1), length);
        at += length;
        literal = at;
    }
    add_literal(out, in + literal, n - literal);
}
