/* SPDX-License-Identifier: MIT
 * chunk.h - readings of one host, packed: of each series its number, how many readings, and of each its milliseconds
 * since the one before (the first: since the chunk's own time) and its value. About 12 bytes a reading. */
#ifndef STORE_CHUNK_H
#define STORE_CHUNK_H

#include "store/store.h"

struct chunk_value {
    int64_t metric, at_ms;
    double value;
};

/* One series: `n` readings in order of time, none before from_ms. */
void chunk_add(struct buf *out, int64_t metric, int64_t from_ms, const struct store_reading *at, size_t n);

typedef tare_status chunk_fn(void *ctx, const struct chunk_value *v, tare_error *err);
/* Each reading in its order. TARE_FORMAT: damaged. */
tare_status chunk_read(const struct store_chunk *c, chunk_fn *fn, void *ctx, tare_error *err);

#endif
