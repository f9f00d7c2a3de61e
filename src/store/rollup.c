/* SPDX-License-Identifier: MIT
 * rollup.c - see rollup.h. Of each sum: its place and whether its weight is its number, one varint; the number; least,
 * greatest, sum and, where it is another, weight of 8 bytes, little endian. */
#include "store/rollup.h"

#include <string.h>

#include "core/wire.h"

void bucket_merge(struct bucket *into, const struct bucket *more)
{
    if (!more->n) return;
    if (!into->n || more->least < into->least) into->least = more->least;
    if (!into->n || more->greatest > into->greatest) into->greatest = more->greatest;
    into->sum += more->sum;
    into->weight += more->weight;
    into->n += more->n;
}

static void add_real(struct buf *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    wire_add_fixed(out, bits, 8);
}

void rollup_pack(struct buf *out, const struct bucket *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct bucket *b = &at[i];
        bool weighed = b->weight != (double)b->n;
        if (!b->n) continue;
        wire_add_varint(out, i << 1 | weighed);
        wire_add_varint(out, b->n);
        add_real(out, b->least);
        add_real(out, b->greatest);
        add_real(out, b->sum);
        if (weighed) add_real(out, b->weight);
    }
}

static bool take_real(struct wire *w, double *out)
{
    uint64_t bits;
    const char *why;
    if (wire_packed(w, WIRE_FIXED64, &bits, &why) <= 0) return false;
    memcpy(out, &bits, sizeof *out);
    return true;
}

/* False: damaged. */
static bool take_one(struct wire *w, uint64_t head, struct bucket *at)
{
    struct bucket b = {0};
    const char *why;
    if (head >> 1 >= ROLLUP_ENTRIES_MAX || wire_packed(w, WIRE_VARINT, &b.n, &why) <= 0 || !b.n ||
        !take_real(w, &b.least) || !take_real(w, &b.greatest) || !take_real(w, &b.sum))
        return false;
    b.weight = (double)b.n;
    if (head & 1 && !take_real(w, &b.weight)) return false;
    bucket_merge(&at[head >> 1], &b);
    return true;
}

tare_status rollup_unpack(const struct store_body *body, struct bucket *at, tare_error *err)
{
    const uint8_t *bytes = body->data;
    struct wire w = {bytes, bytes + body->size};
    const char *why;
    uint64_t head;
    int rc;
    while ((rc = wire_packed(&w, WIRE_VARINT, &head, &why)) != 0)
        if (rc < 0 || !take_one(&w, head, at))
            return error_set(err, TARE_FORMAT, "the history is damaged: a row of sums");
    return TARE_OK;
}
