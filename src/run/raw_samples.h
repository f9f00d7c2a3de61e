/* SPDX-License-Identifier: MIT
 * raw_samples.h - raw samples as text: differences of neighbours, zigzag, LEB128 varints, zstd, base64. Exact.
 * The decoder takes hostile text: it allocates no more than the stated count allows. Private to src/run. */
#ifndef RUN_RAW_SAMPLES_H
#define RUN_RAW_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "run/arena.h"

#define SAMPLES_CODEC "delta-zigzag-varint+zstd+base64"

tare_status samples_encode(const uint64_t *v, size_t n, struct buf *text, tare_error *err);

/* Exactly n values, each at most INT64_MAX, in *out (the arena's). The error text is the cause alone. */
tare_status samples_decode(struct arena *a, const char *text, size_t n, uint64_t **out, tare_error *err);

#endif
