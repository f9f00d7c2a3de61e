/* SPDX-License-Identifier: MIT
 * memory_line.c - line tables of CPython's code objects, as the agent found them: which line an instruction is of.
 * Three formats: co_lnotab (3.9), PEP 626 (3.10), PEP 657 (3.11 on). The bytes are not trusted. */
#include "trace/memory.h"

enum { PY_3_10 = 0x030a, PY_3_11 = 0x030b };

struct table {
    const uint8_t *p, *end;
    int64_t line;
    uint64_t offset; /* where the entry under way begins, in bytes of code */
};

static uint32_t plausible(int64_t line)
{
    return line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
}

/* Pairs of (bytes, lines): the line holds from there on. */
static uint32_t line_lnotab(struct table t, uint64_t at)
{
    for (; t.end - t.p >= 2; t.p += 2) {
        t.offset += t.p[0];
        if (t.offset > at) break;
        t.line += (int8_t)t.p[1];
    }
    return plausible(t.line);
}

/* Pairs of (bytes, lines): the new line holds for those bytes; -128: none does. */
static uint32_t line_ranges(struct table t, uint64_t at)
{
    for (; t.end - t.p >= 2; t.p += 2) {
        int8_t lines = (int8_t)t.p[1];
        if (lines != -128) t.line += lines;
        t.offset += t.p[0];
        if (t.offset > at) return lines == -128 ? 0 : plausible(t.line);
    }
    return 0;
}

static uint64_t read_varint(struct table *t)
{
    uint64_t v = 0;
    for (unsigned shift = 0; t->p < t->end && shift < 60; shift += 6) {
        uint8_t b = *t->p++;
        v |= (uint64_t)(b & 63) << shift;
        if (!(b & 64)) break;
    }
    return v;
}

static int64_t read_svarint(struct table *t)
{
    uint64_t v = read_varint(t);
    return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

/* Each entry: 1 | code:4 | units - 1:3, then what the code says. Its columns are passed over by the next entry's top
 * bit, which alone is set. */
static uint32_t line_locations(struct table t, uint64_t at)
{
    while (t.p < t.end) {
        uint8_t head = *t.p++;
        unsigned code = head >> 3 & 15;
        if (code == 14 || code == 13) t.line += read_svarint(&t);
        if (code >= 10 && code <= 12) t.line += code - 10;
        t.offset += 2u * ((head & 7u) + 1u);
        if (t.offset > at) return code == 15 ? 0 : plausible(t.line);
        while (t.p < t.end && !(*t.p & 0x80)) t.p++;
    }
    return 0;
}

uint32_t memory_line(const struct memory_record *code, uint64_t offset)
{
    struct table t = {(const uint8_t *)code->text, (const uint8_t *)code->text + code->text_bytes,
                      (int64_t)code->CODE.first_line, 0};
    if (code->CODE.first_line > INT32_MAX) return 0;
    if (code->CODE.version < PY_3_10) return line_lnotab(t, offset);
    if (code->CODE.version < PY_3_11) return line_ranges(t, offset);
    return line_locations(t, offset);
}
