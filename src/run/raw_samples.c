/* SPDX-License-Identifier: MIT
 * raw_samples.c - see raw_samples.h. */
#include "run/raw_samples.h"

#include <string.h>

#include "core/mem.h"
#include "core/wire.h"

enum { VARINT_MAX = 10 };

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- differences to varints ---- */

static void pack(struct buf *to, const uint64_t *v, size_t n)
{
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t diff = v[i] - last;
        wire_add_varint(to, diff << 1 ^ (diff >> 63 ? UINT64_MAX : 0));
        last = v[i];
    }
}

static tare_status unpack(uint64_t *to, size_t n, const unsigned char *p, size_t len, tare_error *err)
{
    struct wire w = {p, p + len};
    const char *why;
    uint64_t last = 0, code;
    for (size_t i = 0; i < n; i++) {
        if (wire_packed(&w, WIRE_VARINT, &code, &why) <= 0)
            return error_set(err, TARE_FORMAT, "damaged at sample %zu of %zu", i, n);
        last += code >> 1 ^ (code & 1 ? UINT64_MAX : 0);
        if (last > INT64_MAX) return error_set(err, TARE_FORMAT, "sample %zu is out of range", i);
        to[i] = last;
    }
    if (w.at != w.end) return error_set(err, TARE_FORMAT, "more bytes than its count of %zu samples", n);
    return TARE_OK;
}

/* ---- base64 ---- */

static void put_base64(struct buf *out, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t bits = (uint32_t)p[i] << 16;
        if (have > 1) bits |= (uint32_t)p[i + 1] << 8;
        if (have > 2) bits |= p[i + 2];
        char four[4] = {digits64[bits >> 18], digits64[bits >> 12 & 63], digits64[bits >> 6 & 63],
                        digits64[bits & 63]};
        if (have < 3) four[3] = '=';
        if (have < 2) four[2] = '=';
        buf_add(out, four, 4);
    }
}

static int digit64(char c)
{
    const char *at = c ? strchr(digits64, c) : NULL;
    return at ? (int)(at - digits64) : -1;
}

/* Decode in place of `to`, which has room for len / 4 * 3 bytes. -1: not base64. */
static long get_base64(unsigned char *to, const char *text, size_t len)
{
    size_t used = 0;
    if (len % 4) return -1;
    for (size_t i = 0; i < len; i += 4) {
        bool last = i + 4 == len;
        int pad = last && text[i + 3] == '=';
        if (pad && text[i + 2] == '=') pad = 2;
        uint32_t bits = 0;
        for (int k = 0; k < 4; k++) {
            int d = k >= 4 - pad ? 0 : digit64(text[i + (size_t)k]);
            if (d < 0) return -1;
            bits = bits << 6 | (uint32_t)d;
        }
        for (int k = 0; k < 3 - pad; k++) to[used++] = (unsigned char)(bits >> (16 - 8 * k));
    }
    return (long)used;
}

/* ---- all steps, there and back ---- */

const char *samples_codec(void)
{
    return samples_squeeze ? SAMPLES_ZSTD : SAMPLES_PLAIN;
}

static bool is_squeezed(const char *codec)
{
    return strcmp(codec, SAMPLES_ZSTD) == 0;
}

tare_status samples_encode(const uint64_t *v, size_t n, const char *codec, struct buf *text, tare_error *err)
{
    struct buf packed = BUF_INIT;
    pack(&packed, v, n);
    struct samples_bytes small = {NULL, 0}, all = {(unsigned char *)packed.data, packed.len};
    tare_status s = packed.failed ? TARE_NOMEM : TARE_OK;
    if (s == TARE_OK && is_squeezed(codec)) s = samples_squeeze(&small, all);
    const struct samples_bytes *last = small.p ? &small : &all;
    if (s == TARE_OK) put_base64(text, last->p, last->n);
    if (text->failed) s = TARE_NOMEM;
    buf_release(&packed);
    mem_free(small.p);
    return s == TARE_OK ? s : error_set(err, s, "no memory to pack %zu samples", n);
}

static tare_status decode_into(uint64_t *values, const struct samples_text *from, struct samples_bytes *small,
                               struct samples_bytes *packed, tare_error *err)
{
    size_t text_len = strlen(from->data);
    if (!values || !(small->p = mem_new(text_len / 4 * 3, 1)))
        return error_set(err, TARE_NOMEM, "out of memory");
    long n = get_base64(small->p, from->data, text_len);
    if (n < 0) return error_set(err, TARE_FORMAT, "not base64");
    small->n = (size_t)n;
    if (!is_squeezed(from->codec)) return unpack(values, from->n, small->p, small->n, err);
    if (!samples_inflate) return error_set(err, TARE_UNSUPPORTED, "built without zstd");
    struct samples_claim claim = {from->n, from->n * VARINT_MAX};
    tare_status s = samples_inflate(packed, *small, claim, err);
    return s < 0 ? s : unpack(values, from->n, packed->p, packed->n, err);
}

tare_status samples_decode(struct arena *a, const struct samples_text *from, uint64_t **out, tare_error *err)
{
    struct samples_bytes small = {NULL, 0}, packed = {NULL, 0};
    uint64_t *values = arena_new(a, from->n, sizeof *values);
    tare_status s = decode_into(values, from, &small, &packed, err);
    if (s == TARE_OK) *out = values;
    mem_free(packed.p);
    mem_free(small.p);
    return s;
}
