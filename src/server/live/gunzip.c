/* SPDX-License-Identifier: MIT
 * gunzip.c - see gunzip.h. */
#include "server/live/gunzip.h"

#include <stdbool.h>
#include <zlib.h>

enum { PIECE = 16384 };

/* What zlib has room for at a time; Z_STREAM_END: all is there. */
static int inflate_piece(z_stream *z, struct buf *out)
{
    unsigned char piece[PIECE];
    z->next_out = piece;
    z->avail_out = sizeof piece;
    int rc = inflate(z, Z_NO_FLUSH);
    buf_add(out, piece, sizeof piece - z->avail_out);
    return rc == Z_OK && z->avail_out == sizeof piece ? Z_BUF_ERROR : rc;
}

tare_status gunzip(struct buf *out, const void *bytes, size_t n, size_t most, tare_error *err)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (uInt)n};
    size_t before = out->len;
    int rc = Z_OK;
    if (n > UINT32_MAX) return error_set(err, TARE_INVALID, "more than 4 GiB of gzip");
    if (inflateInit2(&z, 15 + 16) != Z_OK) return error_nomem(err, "unpacking gzip");
    while (rc == Z_OK && out->len - before <= most && !out->failed) rc = inflate_piece(&z, out);
    bool rest = z.avail_in > 0;
    inflateEnd(&z);
    if (out->failed) return buf_status(out, err);
    if (out->len - before > most)
        return error_set(err, TARE_INVALID, "unpacked it has more than %zu bytes", most);
    if (rc == Z_MEM_ERROR) return error_nomem(err, "unpacking gzip");
    if (rc != Z_STREAM_END || rest)
        return error_set(err, TARE_FORMAT, "is no gzip, or damaged, or cut short");
    return TARE_OK;
}
