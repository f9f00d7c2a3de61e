/* SPDX-License-Identifier: MIT
 * repack.c - trace_repack() of reader.h. */
#include <string.h>
#include <zstd.h>

#include "core/crc.h"
#include "trace/loaded.h"

enum { LEVEL = 3 };

struct repack {
    struct trace *t;
    repack_write *write;
    void *ctx;
    tare_error *err;
    struct scratch plain;
    uint8_t *packed;
    size_t packed_cap;
    ZSTD_CCtx *zstd;
};

static tare_status write_header(struct repack *r)
{
    struct archive_header h = {.major = TRACE_MAJOR,
                               .minor = TRACE_MINOR,
                               .header_bytes = sizeof h,
                               .features = FEATURE_ZSTD,
                               .created_unix_ns = r->t->created_unix_ns};
    memcpy(h.magic, ARCHIVE_MAGIC, sizeof h.magic);
    memcpy(h.run_id, r->t->id, sizeof h.run_id);
    return r->write(r->ctx, &h, sizeof h, r->err);
}

static tare_status make_room(struct repack *r, size_t bytes)
{
    if (bytes <= r->packed_cap) return TARE_OK;
    uint8_t *p = mem_resize(r->packed, bytes, 1);
    if (!p) return error_nomem(r->err, "a chunk of %zu bytes", bytes);
    r->packed = p;
    r->packed_cap = bytes;
    return TARE_OK;
}

/* Compressed where that makes it smaller: small chunks often grow. */
static tare_status write_chunk(struct repack *r, unsigned type, uint64_t uid, const struct stored *s)
{
    struct dec d;
    if (!stored_open(s, &r->plain, &d)) /* damage was counted when the trace was opened */
        return scratch_status(&r->plain, r->err);
    size_t plain = (size_t)(d.end - d.p), bound = ZSTD_compressBound(plain);
    tare_status status = make_room(r, bound);
    if (status != TARE_OK) return status;
    size_t packed = ZSTD_compressCCtx(r->zstd, r->packed, bound, d.p, plain, LEVEL);
    bool smaller = !ZSTD_isError(packed) && packed < plain;
    struct chunk_header h = {.magic = CHUNK_MAGIC,
                             .type = (uint16_t)type,
                             .codec = smaller ? CODEC_ZSTD : CODEC_PLAIN,
                             .stored_bytes = (uint32_t)(smaller ? packed : plain),
                             .plain_bytes = (uint32_t)plain,
                             .process = uid};
    const void *bytes = smaller ? r->packed : d.p;
    h.crc = crc32c(crc32c(0, &h, sizeof h), bytes, h.stored_bytes);
    status = r->write(r->ctx, &h, sizeof h, r->err);
    return status == TARE_OK ? r->write(r->ctx, bytes, h.stored_bytes, r->err) : status;
}

/* In the order in which a reader wants them: who and what first, then trees, then events. */
static tare_status write_chunks(struct repack *r)
{
    struct trace *t = r->t;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < t->meta.n && s == TARE_OK; i++)
        s = write_chunk(r, t->meta.items[i].type, t->meta.items[i].uid, &t->meta.items[i].stored);
    for (size_t i = 0; i < t->trees.n && s == TARE_OK; i++)
        s = write_chunk(r, CHUNK_TREE, t->processes.items[t->trees.items[i].stored.process].uid,
                        &t->trees.items[i].stored);
    for (size_t i = 0; i < t->threads.n && s == TARE_OK; i++)
        for (size_t k = 0; k < t->threads.items[i].chunks.n && s == TARE_OK; k++) {
            const struct stored *stored = &t->threads.items[i].chunks.items[k].stored;
            s = write_chunk(r, CHUNK_EVENTS, t->processes.items[stored->process].uid, stored);
        }
    return s;
}

tare_status trace_repack(struct trace *t, repack_write *write, void *ctx, tare_error *err)
{
    struct repack r = {.t = t, .write = write, .ctx = ctx, .err = err, .zstd = ZSTD_createCCtx()};
    if (!r.zstd) return error_nomem(err, "the compressor");
    tare_status s = write_header(&r);
    if (s == TARE_OK) s = write_chunks(&r);
    ZSTD_freeCCtx(r.zstd);
    mem_free(r.plain.bytes);
    mem_free(r.packed);
    return s;
}
