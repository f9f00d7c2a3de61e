/* SPDX-License-Identifier: MIT
 * chunk.c - see chunk.h. The numbers are varints of core/wire.h, values 8 bytes, little endian. */
#include "store/chunk.h"

#include <string.h>

#include "core/wire.h"

void chunk_add(struct buf *out, int64_t metric, int64_t from_ms, const struct store_reading *at, size_t n)
{
    int64_t before = from_ms;
    wire_add_varint(out, (uint64_t)metric);
    wire_add_varint(out, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &at[i].value, sizeof bits);
        wire_add_varint(out, (uint64_t)(at[i].at_ms - before));
        wire_add_fixed(out, bits, 8);
        before = at[i].at_ms;
    }
}

static tare_status damaged(const struct store_chunk *c, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "the history is damaged: chunk %lld", (long long)c->seq);
}

/* 0: nothing is left. */
static int number(struct wire *w, uint64_t most, uint64_t *out)
{
    const char *why;
    int rc = wire_packed(w, WIRE_VARINT, out, &why);
    return rc > 0 && *out > most ? -1 : rc;
}

/* A time that is damaged must not overflow when the next is added to it. */
tare_status chunk_read(const struct store_chunk *c, chunk_fn *fn, void *ctx, tare_error *err)
{
    const uint8_t *bytes = c->body.data;
    struct wire w = {bytes, bytes + c->body.size};
    tare_status s = TARE_OK;
    uint64_t metric, n, after, bits;
    const char *why;
    int rc;
    while (s == TARE_OK && (rc = number(&w, INT64_MAX, &metric)) != 0) {
        struct chunk_value v = {.metric = (int64_t)metric, .at_ms = c->from_ms};
        if (rc < 0 || number(&w, c->body.size, &n) <= 0) return damaged(c, err);
        for (uint64_t i = 0; i < n && s == TARE_OK; i++) {
            if (number(&w, STORE_CHUNK_SPAN_MS, &after) <= 0 ||
                wire_packed(&w, WIRE_FIXED64, &bits, &why) <= 0 ||
                __builtin_add_overflow(v.at_ms, (int64_t)after, &v.at_ms))
                return damaged(c, err);
            memcpy(&v.value, &bits, sizeof v.value);
            s = fn(ctx, &v, err);
        }
    }
    return s;
}
