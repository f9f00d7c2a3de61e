/* SPDX-License-Identifier: MIT
 * raw_samples.c - see raw_samples.h. */
#include "run/raw_samples.h"

#include <string.h>

#include <zstd.h>

#include "core/mem.h"

enum { VARINT_MAX = 10, ZSTD_LEVEL = 3 };

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- differences to varints ---- */

static size_t put_varint(unsigned char *to, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) to[n++] = (unsigned char)(v | 0x80);
    to[n++] = (unsigned char)v;
    return n;
}

static size_t pack(unsigned char *to, const uint64_t *v, size_t n)
{
    size_t used = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t diff = v[i] - last;
        uint64_t sign = diff >> 63 ? UINT64_MAX : 0;
        used += put_varint(to + used, diff << 1 ^ sign);
        last = v[i];
    }
    return used;
}

/* Bytes of the varint at p, 0 when it is cut off or does not fit 64 bits. */
static size_t get_varint(const unsigned char *p, size_t left, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < left && i < VARINT_MAX; i++) {
        if (i == VARINT_MAX - 1 && p[i] > 1) return 0;
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] & 0x80) continue;
        *out = v;
        return i + 1;
    }
    return 0;
}

static tare_status unpack(uint64_t *to, size_t n, const unsigned char *p, size_t len, tare_error *err)
{
    size_t used = 0;
    uint64_t last = 0, code;
    for (size_t i = 0; i < n; i++) {
        size_t step = get_varint(p + used, len - used, &code);
        if (!step) return error_set(err, TARE_FORMAT, "damaged at sample %zu of %zu", i, n);
        used += step;
        last += code >> 1 ^ (code & 1 ? UINT64_MAX : 0);
        if (last > INT64_MAX) return error_set(err, TARE_FORMAT, "sample %zu is out of range", i);
        to[i] = last;
    }
    if (used != len) return error_set(err, TARE_FORMAT, "more bytes than its count of %zu samples", n);
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
        int pad = last && text[i + 3] == '=' ? (text[i + 2] == '=' ? 2 : 1) : 0;
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

/* ---- both ---- */

tare_status samples_encode(const uint64_t *v, size_t n, struct buf *text, tare_error *err)
{
    tare_status s = TARE_NOMEM;
    unsigned char *packed = mem_new(n, VARINT_MAX), *small = NULL;
    if (!packed) goto out;
    size_t len = pack(packed, v, n), bound = ZSTD_compressBound(len);
    if (!(small = mem_new(bound, 1))) goto out;
    size_t got = ZSTD_compress(small, bound, packed, len, ZSTD_LEVEL);
    if (ZSTD_isError(got)) goto out;
    put_base64(text, small, got);
    s = text->failed ? TARE_NOMEM : TARE_OK;
out:
    mem_free(packed);
    mem_free(small);
    return s == TARE_OK ? s : error_set(err, s, "no memory to pack %zu samples", n);
}

struct bytes {
    unsigned char *p;
    size_t n;
};

/* Check the frame's own claim about its size against the count before believing it. */
static tare_status inflate_samples(struct bytes *out, struct bytes from, size_t n, tare_error *err)
{
    unsigned long long claim = ZSTD_getFrameContentSize(from.p, from.n);
    if (claim == ZSTD_CONTENTSIZE_ERROR || claim == ZSTD_CONTENTSIZE_UNKNOWN || claim < n ||
        claim > (unsigned long long)n * VARINT_MAX)
        return error_set(err, TARE_FORMAT, "not %zu compressed samples", n);
    if (!(out->p = mem_new((size_t)claim, 1))) return error_set(err, TARE_NOMEM, "out of memory");
    out->n = ZSTD_decompress(out->p, (size_t)claim, from.p, from.n);
    if (ZSTD_isError(out->n)) return error_set(err, TARE_FORMAT, "zstd: %s", ZSTD_getErrorName(out->n));
    return TARE_OK;
}

tare_status samples_decode(struct arena *a, const char *text, size_t n, uint64_t **out, tare_error *err)
{
    size_t text_len = strlen(text);
    struct bytes small = {mem_new(text_len / 4 * 3, 1), 0}, packed = {NULL, 0};
    uint64_t *values = arena_new(a, n, sizeof *values);
    tare_status s = TARE_NOMEM;
    if (!small.p || !values) {
        error_set(err, TARE_NOMEM, "out of memory");
        goto out;
    }
    long n_small = get_base64(small.p, text, text_len);
    if (n_small < 0) {
        s = error_set(err, TARE_FORMAT, "not base64");
        goto out;
    }
    small.n = (size_t)n_small;
    if ((s = inflate_samples(&packed, small, n, err)) < 0) goto out;
    if ((s = unpack(values, n, packed.p, packed.n, err)) < 0) goto out;
    *out = values;
out:
    mem_free(packed.p);
    mem_free(small.p);
    return s;
}
