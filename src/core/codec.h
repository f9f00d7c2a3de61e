/* SPDX-License-Identifier: MIT
 * codec.h - packing bytes with libraries of the system that are loaded on first use: zstd, lz4, zlib. Nothing
 * needs them: where one is missing that is said. */
#ifndef CORE_CODEC_H
#define CORE_CODEC_H

#include <stddef.h>

#include "core/error.h"

struct codec;
/* "zstd", "lz4", "zlib"; NULL with the reason in err. */
const struct codec *codec_find(const char *name, tare_error *err);
size_t codec_bound(const struct codec *c,
                   size_t n); /* room that packing n bytes needs at most; 0: too many for it */
struct codec_bytes {
    const void *data;
    size_t n;
};
/* *n: the room at `to`, then what was used of it. */
tare_status codec_pack(const struct codec *c, int level, struct codec_bytes from, void *to, size_t *n);
/* Exactly n bytes must come out: more or fewer fails, as does anything that is not the codec's. */
tare_status codec_unpack(const struct codec *c, struct codec_bytes from, void *to, size_t n);

#endif
