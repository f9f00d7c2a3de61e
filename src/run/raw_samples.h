/* SPDX-License-Identifier: MIT
 * raw_samples.h - raw samples as text: differences of neighbours, zigzag, LEB128 varints, zstd where the program has
 * it, base64. Exact. The decoder takes hostile text: it allocates no more than the stated count allows. Private to
 * src/run. */
#ifndef RUN_RAW_SAMPLES_H
#define RUN_RAW_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/arena.h"

#define SAMPLES_ZSTD "delta-zigzag-varint+zstd+base64"
#define SAMPLES_PLAIN "delta-zigzag-varint+base64"

const char *samples_codec(void); /* the best that this program can write */

/* `codec` is one that samples_codec() may give. */
tare_status samples_encode(const uint64_t *v, size_t n, const char *codec, struct buf *text, tare_error *err);

struct samples_text {
    const char *codec, *data;
    size_t n; /* samples in it */
};
/* Exactly n values, each at most INT64_MAX, in *out (the arena's). The error text is the cause alone. */
tare_status samples_decode(struct arena *a, const struct samples_text *from, uint64_t **out, tare_error *err);

/* ---- raw_zstd.c: there in programs linked with zstd; NULL in the Python extension, which needs libc alone ---- */

struct samples_bytes {
    unsigned char *p; /* mem_free() it */
    size_t n;
};
struct samples_claim { /* how large the bytes may be */
    size_t least, most;
};
tare_status samples_squeeze(struct samples_bytes *out, struct samples_bytes from) __attribute__((weak));
tare_status samples_inflate(struct samples_bytes *out, struct samples_bytes from, struct samples_claim claim,
                            tare_error *err) __attribute__((weak));

#endif
