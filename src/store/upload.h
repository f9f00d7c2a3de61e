/* SPDX-License-Identifier: MIT
 * upload.h - files that belong to a run (traces), as the store keeps them: part of store.h. A file is cut into pieces
 * of STORE_PIECE_BYTES, the last one shorter; each is kept once in a project, under the SHA-256 of its bytes. What a
 * file is called is the SHA-256 of its pieces' hashes, one after another: so the name follows from the bytes alone.
 * Pieces of no file go after a while. */
#ifndef STORE_UPLOAD_H
#define STORE_UPLOAD_H

#include "core/buf.h"
#include "store/live.h"

enum {
    STORE_PIECE_BYTES = 4 << 20,
    STORE_PIECES_MAX = 1024, /* of a file: 4 GiB */
    STORE_UPLOADS_MAX = 256, /* of a run: ranks of a job */
    STORE_HEX_SIZE = 65,     /* a hash as text */
};

struct store_piece {
    const char *project, *hash; /* project "": of none. hash: 64 digits, of the body */
    struct store_body body;
    int64_t heard_ms;
    uint64_t quota; /* bytes of all pieces of the project; 0: no such limit */
};

struct store_upload {
    int64_t number; /* out: for ops->piece(), which a server asks by `id` */
    const char *id; /* the file's hash */
    const char *run, *name;
    uint64_t bytes, pieces;
    int64_t created_ms;
};

/* What is to be kept: the pieces are there already, as pieces of the run's project. */
struct store_upload_new {
    const char *run, *name;
    const char (*hashes)[STORE_HEX_SIZE];
    size_t n;
    int64_t now_ms;
    char id[STORE_HEX_SIZE]; /* out */
    uint64_t bytes;          /* out */
    size_t missing;          /* out, of STORE_LACKING: the first piece that is not there */
};

struct store_upload_query { /* by either; project NULL: any */
    const char *run, *id, *project;
};

struct store_sweep {
    int64_t before_ms; /* pieces of no file that were heard of before go */
    uint64_t most;
    uint64_t removed; /* out */
};

struct store;
typedef tare_status store_upload_fn(void *ctx, const struct store_upload *u, tare_error *err);

/* STORE_CROWDED: more than the quota. */
typedef tare_status store_piece_add_op(struct store *s, const struct store_piece *p, enum store_kept *kept,
                                       tare_error *err);
/* STORE_OTHER: the run has another file of this name. STORE_CROWDED: it has STORE_UPLOADS_MAX. STORE_LACKING: a piece
 * is not there, or not the last one and shorter than it must be. TARE_INVALID: there is no such run. */
typedef tare_status store_upload_add_op(struct store *s, struct store_upload_new *u, enum store_kept *kept,
                                        tare_error *err);
typedef tare_status store_uploads_op(struct store *s, const struct store_upload_query *q, store_upload_fn *fn,
                                     void *ctx, tare_error *err); /* by name */
/* Adds the bytes to *out. TARE_INVALID: there is none; TARE_FORMAT: damaged. */
typedef tare_status store_piece_op(struct store *s, const struct store_upload *u, uint64_t number,
                                   struct buf *out, tare_error *err);
typedef tare_status store_sweep_op(struct store *s, struct store_sweep *e, tare_error *err);

struct store_file_ops {
    store_piece_add_op *piece_add;
    store_upload_add_op *upload_add;
    store_uploads_op *uploads;
    store_piece_op *piece;
    store_sweep_op *sweep;
};

void store_hash(const void *data, size_t n, char out[STORE_HEX_SIZE]);
bool store_hash_ok(const char *text); /* 64 digits, lower case */
/* What the file of these pieces is called. */
void store_upload_id(const char (*hashes)[STORE_HEX_SIZE], size_t n, char out[STORE_HEX_SIZE]);
/* Letters, digits and . _ - of at most STORE_NAME_MAX bytes, the first no dot. */
bool store_file_name_ok(const char *name);

#endif
