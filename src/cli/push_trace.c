/* SPDX-License-Identifier: MIT
 * push_trace.c - a trace on its way to a server, and back: one closed file, piece by piece, so that neither end needs
 * more memory than a piece has. */
#include <stdio.h>
#include <string.h>

#include "cli/push.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "report/sink.h"
#include "trace/reader.h"

/* ---- there ---- */

struct cutting {
    struct store *to;
    struct buf piece;
    char (*hashes)[STORE_HEX_SIZE];
    size_t n;
};

static tare_status send_piece(struct cutting *c, tare_error *err)
{
    enum store_kept kept;
    if (c->n == STORE_PIECES_MAX)
        return error_set(err, TARE_FORMAT, "the trace has more than %d pieces of %d bytes", STORE_PIECES_MAX,
                         STORE_PIECE_BYTES);
    store_hash(c->piece.data, c->piece.len, c->hashes[c->n]);
    struct store_piece p = {.hash = c->hashes[c->n], .body = {c->piece.data, c->piece.len}};
    c->n++;
    tare_status s = c->to->ops->files.piece_add(c->to, &p, &kept, err);
    buf_clear(&c->piece);
    return s;
}

static tare_status cut(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct cutting *c = ctx;
    const char *at = bytes;
    tare_status s = TARE_OK;
    while (n > 0 && s == TARE_OK) {
        size_t room = STORE_PIECE_BYTES - c->piece.len, take = n < room ? n : room;
        buf_add(&c->piece, at, take);
        s = buf_status(&c->piece, err);
        at += take;
        n -= take;
        if (s == TARE_OK && c->piece.len == STORE_PIECE_BYTES) s = send_piece(c, err);
    }
    return s;
}

/* What a server may call it: letters, digits and . _ - */
static void name_of(const char *path, char out[STORE_NAME_MAX + 1])
{
    snprintf(out, STORE_NAME_MAX + 1, "%s", str_file_name(path));
    for (char *p = out; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9');
        if (!plain && (p == out || !strchr("._-", *p))) *p = '_';
    }
}

static tare_status send_pieces(struct cutting *c, struct trace *t, tare_error *err)
{
    c->hashes = mem_new(STORE_PIECES_MAX, sizeof *c->hashes);
    if (!c->hashes) return error_nomem(err, "a trace");
    tare_status s = trace_repack(t, cut, c, err);
    return s == TARE_OK && c->piece.len ? send_piece(c, err) : s;
}

tare_status push_trace(struct store *to, const char *run, const char *path, bool *added, tare_error *err)
{
    struct cutting c = {.to = to, .piece = BUF_INIT};
    struct trace *t = NULL;
    enum store_kept kept = STORE_NEW;
    char name[STORE_NAME_MAX + 1];
    tare_status s = trace_open(&t, path, err);
    if (s == TARE_OK) s = send_pieces(&c, t, err);
    if (s == TARE_OK) {
        name_of(path, name);
        struct store_upload_new u = {
            .run = run, .name = name, .hashes = (const char(*)[STORE_HEX_SIZE])c.hashes, .n = c.n};
        s = to->ops->files.upload_add(to, &u, &kept, err);
    }
    if (s == TARE_OK) *added = kept == STORE_NEW;
    trace_close(t);
    buf_release(&c.piece);
    mem_free(c.hashes);
    return s;
}

/* ---- and back ---- */

static tare_status fetch_pieces(struct store *from, const struct store_upload *u, struct sink to,
                                char (*hashes)[STORE_HEX_SIZE], tare_error *err)
{
    struct buf piece = BUF_INIT;
    tare_status s = TARE_OK;
    for (uint64_t i = 0; i < u->pieces && s == TARE_OK; i++) {
        buf_clear(&piece);
        s = from->ops->files.piece(from, u, i, &piece, err);
        if (s == TARE_OK) store_hash(piece.data, piece.len, hashes[i]);
        if (s == TARE_OK) s = to.write(to.ctx, piece.data, piece.len, err);
    }
    buf_release(&piece);
    return s;
}

tare_status push_fetch(struct store *from, const struct store_upload *u, const char *path, tare_error *err)
{
    char(*hashes)[STORE_HEX_SIZE] = mem_new(STORE_PIECES_MAX, sizeof *hashes), id[STORE_HEX_SIZE];
    struct file_out f;
    if (!hashes) return error_nomem(err, "a trace");
    tare_status s = file_out_open(&f, path, 0, err);
    if (s == TARE_OK) {
        s = fetch_pieces(from, u, sink_to_file(&f), hashes, err);
        store_upload_id((const char(*)[STORE_HEX_SIZE])hashes, (size_t)u->pieces, id);
        if (s == TARE_OK && strcmp(id, u->id) != 0)
            s = error_set(err, TARE_FORMAT, "%s: %s came with other bytes than it had", from->where, u->name);
        if (s == TARE_OK) s = file_out_commit(&f, err);
        file_out_close(&f);
    }
    mem_free(hashes);
    return s;
}
