/* SPDX-License-Identifier: MIT
 * raw_zstd.c - the zstd step of raw_samples.c, in a file of its own: programs without zstd write documents, too. */
#include <zstd.h>
#include <zstd_errors.h>

#include "core/mem.h"
#include "run/raw_samples.h"

enum { ZSTD_LEVEL = 3 };

tare_status samples_squeeze(struct samples_bytes *out, struct samples_bytes from)
{
    size_t bound = ZSTD_compressBound(from.n);
    if (!(out->p = mem_new(bound, 1))) return TARE_NOMEM;
    out->n = ZSTD_compress(out->p, bound, from.p, from.n, ZSTD_LEVEL);
    return ZSTD_isError(out->n) ? TARE_NOMEM : TARE_OK;
}

/* Check the frame's own claim about its size against the count before believing it. */
tare_status samples_inflate(struct samples_bytes *out, struct samples_bytes from, struct samples_claim claim,
                            tare_error *err)
{
    unsigned long long said = ZSTD_getFrameContentSize(from.p, from.n);
    if (said == ZSTD_CONTENTSIZE_ERROR || said == ZSTD_CONTENTSIZE_UNKNOWN || said < claim.least ||
        said > claim.most)
        return error_set(err, TARE_FORMAT, "not %zu compressed samples", claim.least);
    if (!(out->p = mem_new((size_t)said, 1))) return error_set(err, TARE_NOMEM, "out of memory");
    out->n = ZSTD_decompress(out->p, (size_t)said, from.p, from.n);
    if (ZSTD_getErrorCode(out->n) == ZSTD_error_memory_allocation)
        return error_set(err, TARE_NOMEM, "out of memory");
    if (ZSTD_isError(out->n)) return error_set(err, TARE_FORMAT, "zstd: %s", ZSTD_getErrorName(out->n));
    return TARE_OK;
}
