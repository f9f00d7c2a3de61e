/* SPDX-License-Identifier: MIT
 * api_uploads.c - files of runs by HTTP: pieces come first, each by itself, so that none is lost where a connection
 * breaks and no request needs more memory than one piece; then the list of them makes a file of a run. A file of
 * another project is as absent as one that never was, and so are its pieces: what a client did not send itself it
 * cannot claim by its hash. */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/mem.h"
#include "server/route.h"
#include "server/uploads/uploads.h"

enum { WHOLE_PIECES_MAX = 4 }; /* that one reply holds */

static int64_t now_ms(void)
{
    return (int64_t)(clock_unix_ns() / 1000000);
}

/* ---- pieces ---- */

static void name_piece(struct server *sv, struct store *s, struct exchange *x)
{
    (void)sv;
    (void)s;
    static_assert(STORE_HEX_SIZE <= sizeof x->param, "a hash fits");
    if (!x->body.len)
        reply_problem(x, 422, "a piece has at least one byte");
    else
        store_hash(x->body.data, x->body.len, x->param);
}

static tare_status keep_piece(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    enum store_kept kept = STORE_NEW;
    struct store_piece p = {.project = x->project,
                            .hash = x->param,
                            .body = {x->body.data, x->body.len},
                            .heard_ms = now_ms(),
                            .quota = sv->options.uploads_max};
    tare_status status = s->ops->files.piece_add(s, &p, &kept, err);
    if (status != TARE_OK) return status;
    if (kept == STORE_CROWDED)
        reply_problem(x, 413, "files of this project would have more than %llu bytes: nothing was kept",
                      (unsigned long long)p.quota);
    else
        reply_json(x, kept == STORE_NEW ? 201 : 200);
    return TARE_OK;
}

static void answer_piece(struct server *sv, struct store *s, struct exchange *x)
{
    struct json j;
    (void)sv;
    (void)s;
    if (x->reply.status > 201) return;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "piece", x->param);
    json_kv_uint(&j, "bytes", x->body.len);
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps pieces_post = {.read = name_piece,
                                  .write = keep_piece,
                                  .written = answer_piece,
                                  .takes = "application/octet-stream",
                                  .bytes = true,
                                  .replies = "201,200,413"};

/* ---- a file ---- */

struct manifest {
    char name[STORE_NAME_MAX + 1];
    char hashes[STORE_PIECES_MAX][STORE_HEX_SIZE];
    struct store_upload_new new_;
    enum store_kept kept;
};

static tare_status read_pieces(const json_t *list, struct manifest *m, tare_error *err)
{
    size_t n = json_array_size(list);
    if (n < 1 || n > STORE_PIECES_MAX)
        return error_set(err, TARE_INVALID, "pieces: a list of 1 to %d hashes is needed", STORE_PIECES_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *hash = json_string_value(json_array_get(list, i));
        if (!hash || !store_hash_ok(hash))
            return error_set(err, TARE_INVALID, "pieces[%zu]: is no SHA-256 of 64 digits 0-9a-f", i);
        memcpy(m->hashes[i], hash, STORE_HEX_SIZE);
    }
    m->new_.n = n;
    return TARE_OK;
}

static tare_status read_manifest(json_t *body, struct manifest *m, tare_error *err)
{
    const char *name = json_string_value(json_object_get(body, "name"));
    bool others = json_object_size(body) > (json_object_get(body, "pieces") ? 2 : 1);
    if (others) return error_set(err, TARE_INVALID, "there are other words than name and pieces");
    if (!name || !store_file_name_ok(name))
        return error_set(err, TARE_INVALID, "name: letters, digits and . _ -, at most %d, the first no dot",
                         STORE_NAME_MAX);
    snprintf(m->name, sizeof m->name, "%s", name);
    return read_pieces(json_object_get(body, "pieces"), m, err);
}

/* First whether the run is there, for who asks: what is wrong with the body must not tell. */
static void check_manifest(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    json_t *body = NULL;
    bool there = false;
    tare_status status = run_is_there(s, x, &there, &err);
    if (status != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    if (!there) {
        reply_problem(x, 404, "there is no such run");
        return;
    }
    struct manifest *m = x->work = mem_new(1, sizeof *m);
    status = m ? exchange_json(x, &body, &err) : error_nomem(&err, "a list of pieces");
    if (status == TARE_OK) status = read_manifest(body, m, &err);
    json_decref(body);
    if (status != TARE_OK) {
        reply_refused(x, 422, &err);
        return;
    }
    m->new_.run = x->param;
    m->new_.name = m->name;
    m->new_.hashes = (const char(*)[STORE_HEX_SIZE])m->hashes;
    m->new_.now_ms = now_ms();
}

static void forget_manifest(struct exchange *x)
{
    mem_free(x->work);
}

/* A run that is not there is the client's mistake, and no failure of those that wait beside it. */
static tare_status keep_file(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    struct manifest *m = x->work;
    tare_error why = TARE_ERROR_INIT;
    (void)sv;
    tare_status status = s->ops->files.upload_add(s, &m->new_, &m->kept, &why);
    if (status == TARE_INVALID) {
        reply_problem(x, 404, "there is no such run");
        return TARE_OK;
    }
    if (status != TARE_OK) return error_set(err, status, "%s", why.text);
    reply_json(x, m->kept == STORE_NEW ? 201 : 200);
    return TARE_OK;
}

static void put_upload(struct json *j, const struct store_upload *u)
{
    json_object_begin(j);
    json_kv_string(j, "id", u->id);
    json_kv_string(j, "run", u->run);
    json_kv_string(j, "name", u->name);
    json_kv_uint(j, "bytes", u->bytes);
    json_kv_uint(j, "pieces", u->pieces);
    reply_time(j, "created", u->created_ms);
    json_object_end(j);
}

static void answer_file(struct server *sv, struct store *s, struct exchange *x)
{
    const struct manifest *m = x->work;
    struct json j;
    (void)sv;
    (void)s;
    if (x->reply.status > 201) return;
    if (m->kept == STORE_OTHER) reply_problem(x, 409, "the run has another file of this name");
    if (m->kept == STORE_CROWDED) reply_problem(x, 422, "a run has at most %d files", STORE_UPLOADS_MAX);
    if (m->kept == STORE_LACKING)
        reply_problem(x, 422,
                      "pieces[%zu] is not there, or is not the last and has not %d bytes: send it again",
                      m->new_.missing, STORE_PIECE_BYTES);
    if (x->reply.status > 201) return;
    struct store_upload u = {.id = m->new_.id,
                             .run = x->param,
                             .name = m->name,
                             .bytes = m->new_.bytes,
                             .pieces = m->new_.n,
                             .created_ms = m->new_.now_ms};
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    put_upload(&j, &u);
    json_finish(&j, NULL);
    if (x->reply.status == 201)
        x->reply.extra = arena_printf(&x->arena, "Location: /api/v1/uploads/%s\r\n", m->new_.id);
}

const struct steps uploads_post = {.now = run_id_check,
                                   .read = check_manifest,
                                   .write = keep_file,
                                   .written = answer_file,
                                   .forget = forget_manifest,
                                   .replies = "201,200,409"};

/* ---- lists ---- */

static tare_status list_upload(void *ctx, const struct store_upload *u, tare_error *err)
{
    (void)err;
    put_upload(ctx, u);
    return TARE_OK;
}

static void answer_list(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct json j;
    bool there = false;
    struct store_upload_query q = {.run = x->param, .project = x->project[0] ? x->project : NULL};
    tare_status status = run_is_there(s, x, &there, &err);
    if (status == TARE_OK && !there) {
        reply_problem(x, 404, "there is no such run");
        return;
    }
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "uploads");
    json_array_begin(&j);
    if (status == TARE_OK) status = s->ops->files.uploads(s, &q, list_upload, &j, &err);
    if (status != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps uploads_list = {.now = run_id_check, .read = answer_list};

/* ---- bytes ---- */

void upload_id_check(struct server *sv, struct exchange *x)
{
    (void)sv;
    if (!store_hash_ok(x->param)) reply_problem(x, 404, "there is no such file");
}

static tare_status note_upload(void *ctx, const struct store_upload *u, tare_error *err)
{
    struct store_upload *out = ctx;
    (void)err;
    out->number = u->number;
    out->bytes = u->bytes;
    out->pieces = u->pieces;
    return TARE_OK;
}

bool upload_find(struct server *sv, struct store *s, struct exchange *x, struct store_upload *out)
{
    tare_error err = TARE_ERROR_INIT;
    struct store_upload_query q = {.id = x->param, .project = x->project[0] ? x->project : NULL};
    *out = (struct store_upload){.id = x->param};
    if (s->ops->files.uploads(s, &q, note_upload, out, &err) != TARE_OK)
        steps_failed(sv, x, &err);
    else if (!out->number)
        reply_problem(x, 404, "there is no such file");
    return !x->reply.status;
}

static void answer_bytes(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct store_upload u;
    uint64_t piece = UINT64_MAX;
    if (exchange_query_number(x, "piece", (struct number_range){0, STORE_PIECES_MAX - 1}, &piece, &err) !=
        TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    if (!upload_find(sv, s, x, &u)) return;
    bool whole = piece == UINT64_MAX;
    if (whole && u.pieces > WHOLE_PIECES_MAX) {
        reply_problem(x, 400, "the file has %llu pieces: ask for each by piece=0, 1, ..",
                      (unsigned long long)u.pieces);
        return;
    }
    if (!whole && piece >= u.pieces) {
        reply_problem(x, 404, "the file has %llu pieces", (unsigned long long)u.pieces);
        return;
    }
    tare_status status = TARE_OK;
    for (uint64_t i = whole ? 0 : piece; i < (whole ? u.pieces : piece + 1) && status == TARE_OK; i++)
        status = s->ops->files.piece(s, &u, i, &x->reply.body, &err);
    if (status != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    x->reply.status = 200;
    x->reply.type = "application/octet-stream";
}

static const struct query_word bytes_query[] = {
    {"piece", "one piece of it, from 0 up; without it the whole, where that has at most 4 pieces"},
    {NULL, NULL},
};

const struct steps uploads_get = {
    .now = upload_id_check, .read = answer_bytes, .query = bytes_query, .type = "application/octet-stream"};
