/* SPDX-License-Identifier: MIT
 * wire.h - varints and strings of chunk payloads, both ways. The encoder writes into caller's memory and
 * remembers overflow; the decoder never reads past its end and remembers failure. Neither allocates. */
#ifndef TRACE_WIRE_H
#define TRACE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct enc {
    uint8_t *p, *end;
    bool full;
};

static inline void enc_bytes(struct enc *e, const void *bytes, size_t n)
{
    if (e->full || n > (size_t)(e->end - e->p)) {
        e->full = true;
        return;
    }
    memcpy(e->p, bytes, n);
    e->p += n;
}

/* Seven bits a byte, the lowest first. Without a loop, and up to 28 bits without asking how many: a processor cannot
 * guess how long the next number is, and each wrong guess costs more than all of this. Room for 10 bytes is the
 * caller's matter. Where it ends. */
static inline uint8_t *enc_put(uint8_t *p, uint64_t v)
{
    if (__builtin_expect(v < 1 << 28, 1)) {
        static const uint32_t goes_on[] = {0, 0x80, 0x8080, 0x808080};
        uint32_t x = (uint32_t)v,
                 more = (31 - (uint32_t)__builtin_clz(x | 1)) * 37 >> 8; /* bits / 7, of 0 to 27 */
        x = (x & 0x3fff) | (x & 0x0fffc000) << 2;
        x = (x & 0x007f007f) | (x & 0x3f803f80) << 1;
        x |= goes_on[more];
        memcpy(p, &x, sizeof x);
        return p + more + 1;
    }
    for (; v >> 56; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    unsigned more = (unsigned)(63 - __builtin_clzll(v | 1)) / 7; /* bytes behind this one */
    v = (v & UINT64_C(0x000000000fffffff)) | (v & UINT64_C(0x00fffffff0000000)) << 4;
    v = (v & UINT64_C(0x00003fff00003fff)) | (v & UINT64_C(0x0fffc0000fffc000)) << 2;
    v = (v & UINT64_C(0x007f007f007f007f)) | (v & UINT64_C(0x3f803f803f803f80)) << 1;
    v |= UINT64_C(0x8080808080808080) & ((UINT64_C(1) << 8 * more) - 1);
    memcpy(p, &v, sizeof v);
    return p + more + 1;
}

static inline void enc_uint(struct enc *e, uint64_t v)
{
    if (e->full || e->end - e->p < 10)
        e->full = true;
    else
        e->p = enc_put(e->p, v);
}

/* Numbers of either sign with the sign in the lowest bit, so that small ones stay short. */
static inline uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline void enc_int(struct enc *e, int64_t v)
{
    enc_uint(e, zigzag(v));
}

/* Several numbers in a row. */
#define enc_uints(e, ...) enc_uints_(e, (const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8)
static inline void enc_uints_(struct enc *e, const uint64_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++) enc_uint(e, v[i]);
}

static inline void enc_str(struct enc *e, const char *s, size_t n)
{
    enc_uint(e, n);
    enc_bytes(e, s, n);
}

struct dec {
    const uint8_t *p, *end;
    bool failed;
};

static inline uint64_t dec_uint(struct dec *d)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (d->p == d->end) break;
        uint8_t b = *d->p++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return v;
    }
    d->failed = true;
    return 0;
}

static inline int64_t dec_int(struct dec *d)
{
    return unzigzag(dec_uint(d));
}

static inline const uint8_t *dec_bytes(struct dec *d, size_t n)
{
    if (d->failed || n > (size_t)(d->end - d->p)) {
        d->failed = true;
        return NULL;
    }
    const uint8_t *at = d->p;
    d->p += n;
    return at;
}

static inline void dec_copy(struct dec *d, void *out, size_t n)
{
    const uint8_t *at = dec_bytes(d, n);
    if (at) memcpy(out, at, n);
}

/* Length into *n, bytes as result (not NUL-terminated); NULL on failure. */
static inline const char *dec_str(struct dec *d, size_t *n)
{
    uint64_t len = dec_uint(d);
    if (len > (uint64_t)(d->end - d->p)) d->failed = true;
    *n = d->failed ? 0 : (size_t)len;
    return (const char *)dec_bytes(d, *n);
}

#endif
