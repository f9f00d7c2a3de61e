/* SPDX-License-Identifier: MIT
 * remote.c - a history that a server keeps (tare serve), over its API: runs are listed, read and added, numbers asked
 * for, baselines accepted. What else changes runs that are there is done where they are. Documents go as they are: the
 * server takes them apart. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "core/mem.h"
#include "store/remote.h"

enum { PAGE_RUNS = 1000, PAGE_SERIES = 1000, POINTS_MAX = 100000 };

struct remote_store {
    struct store base;
    struct client *client;
    struct client_reply reply;
    struct buf target;
};

static struct remote_store *remote_of(struct store *s)
{
    return (struct remote_store *)s;
}

static void remote_close(struct store *base)
{
    struct remote_store *s = remote_of(base);
    client_close(s->client);
    client_reply_release(&s->reply);
    buf_release(&s->target);
    mem_free(s);
}

/* Nothing is asked yet: whether somebody is there is seen with the first question. */
static tare_status remote_open(struct store **out, const char *where, const struct store_options *o,
                               tare_error *err)
{
    struct remote_store *s = mem_new(1, sizeof *s);
    if (!s) return error_nomem(err, "a history");
    *s = (struct remote_store){.base.ops = &store_remote, .reply = CLIENT_REPLY_INIT, .target = BUF_INIT};
    struct client_options c = {.token = o->token, .deadline_ms = o->wait_ms, .reply_max = RUN_BYTES_MAX};
    tare_status status = client_open(&s->client, where, &c, err);
    if (status != TARE_OK) {
        remote_close(&s->base);
        return status;
    }
    s->base.where = client_url(s->client);
    *out = &s->base;
    return TARE_OK;
}

/* ---- asking ---- */

/* Wrong with who asks is TARE_INVALID, with what was sent TARE_FORMAT; what may go by is TARE_BUSY or TARE_IO. */
static tare_status refused(const struct remote_store *s, tare_error *err)
{
    struct remote_page p = {.text = s->reply.body.data, .size = s->reply.body.len};
    const char *where = s->base.where;
    char detail[300];
    remote_detail(&p, detail, sizeof detail);
    switch (s->reply.status) {
    case 401:
        return error_set(err, TARE_INVALID, "%s: knows no such token (TARE_TOKEN; tare token new)", where);
    case 403: return error_set(err, TARE_INVALID, "%s: this token may not do that: %s", where, detail);
    case 404:
        return error_set(err, TARE_INVALID, "%s: %s", where, detail[0] ? detail : "is no server of tare");
    case 400:
    case 409:
    case 413:
    case 415:
    case 422: return error_set(err, TARE_FORMAT, "%s: refused (%u): %s", where, s->reply.status, detail);
    case 421: return error_set(err, TARE_INVALID, "%s: it is not called so (tare serve --allow-host)", where);
    case 429: return error_set(err, TARE_BUSY, "%s: too many requests, ask later", where);
    default: break;
    }
    if (s->reply.status >= 300 && s->reply.status < 400)
        return error_set(err, TARE_INVALID, "%s: has moved (%u): redirects are not followed", where,
                         s->reply.status);
    return error_set(err, TARE_IO, "%s: answers %u%s%s", where, s->reply.status, detail[0] ? ": " : "",
                     detail);
}

static tare_status ask(struct remote_store *s, const struct client_request *q, tare_error *err)
{
    tare_status status = buf_status(&s->target, err);
    if (status == TARE_OK) status = client_ask(s->client, q, &s->reply, err);
    if (status != TARE_OK) return status;
    bool good = s->reply.status == 200 || s->reply.status == 201 || s->reply.status == 204;
    return good ? TARE_OK : refused(s, err);
}

static tare_status get(struct remote_store *s, tare_error *err)
{
    return ask(s, &(struct client_request){.method = "GET", .target = s->target.data, .harmless = true}, err);
}

static void add_text(struct remote_store *s, const char *name, const char *value)
{
    if (!value) return;
    buf_printf(&s->target, "&%s=", name);
    client_escape(&s->target, value);
}

static struct remote_page page_of(const struct remote_store *s)
{
    return (struct remote_page){.text = s->reply.body.data, .size = s->reply.body.len};
}

/* What the reply says is wrong, with the server's name before it. */
static tare_status told(const struct remote_store *s, tare_status status, tare_error *err)
{
    if (status == TARE_FORMAT) error_wrap(err, "%s", s->base.where);
    return status;
}

/* ---- the rows of store_remote ---- */

static tare_status remote_list(struct store *base, const struct store_filter *f, store_run_fn *fn, void *ctx,
                               tare_error *err)
{
    struct remote_store *s = remote_of(base);
    char before[ULID_SIZE] = "";
    uint64_t left = f->limit ? f->limit : UINT64_MAX;
    if (f->before) snprintf(before, sizeof before, "%s", f->before);
    while (left) {
        uint64_t n = left < PAGE_RUNS ? left : PAGE_RUNS;
        buf_clear(&s->target);
        buf_printf(&s->target, "/api/v1/runs?limit=%" PRIu64, n);
        add_text(s, "subject", f->subject);
        add_text(s, "host", f->host);
        add_text(s, "tag", f->tag);
        add_text(s, "id", f->id_prefix);
        add_text(s, "commit", f->commit);
        add_text(s, "before", before[0] ? before : NULL);
        if (f->since_ms > 0) buf_printf(&s->target, "&since=%" PRId64, f->since_ms);
        tare_status status = get(s, err);
        struct remote_page p = page_of(s);
        if (status == TARE_OK) status = told(s, remote_runs(&p, fn, ctx, err), err);
        if (status != TARE_OK) return status;
        if (p.rows < n) break;
        if (strcmp(p.last, before) == 0)
            return error_set(err, TARE_FORMAT, "%s: its list does not go on", s->base.where);
        left -= n;
        memcpy(before, p.last, sizeof before);
    }
    return TARE_OK;
}

static tare_status remote_body(struct store *base, const char *id, struct buf *out, tare_error *err)
{
    struct remote_store *s = remote_of(base);
    buf_clear(&s->target);
    buf_add_str(&s->target, "/api/v1/runs/");
    client_escape(&s->target, id);
    tare_status status = get(s, err);
    if (status != TARE_OK) return status;
    buf_add(out, s->reply.body.data, s->reply.body.len);
    return buf_status(out, err);
}

static tare_status remote_series_names(struct store *base, const struct store_query *q, store_name_fn *fn,
                                       void *ctx, tare_error *err)
{
    struct remote_store *s = remote_of(base);
    uint64_t left = q->limit ? q->limit : UINT64_MAX;
    int64_t after = q->after;
    while (left) {
        uint64_t n = left < PAGE_SERIES ? left : PAGE_SERIES;
        buf_clear(&s->target);
        buf_printf(&s->target, "/api/v1/series?limit=%" PRIu64 "&after=%" PRId64, n, after);
        add_text(s, "subject", q->subject);
        add_text(s, "case", q->case_name);
        add_text(s, "metric", q->metric);
        add_text(s, "host", q->host);
        add_text(s, "anchor", q->anchor);
        tare_status status = get(s, err);
        struct remote_page p = page_of(s);
        p.last_series = after;
        if (status == TARE_OK) status = told(s, remote_names(&p, fn, ctx, err), err);
        if (status != TARE_OK) return status;
        if (p.rows < n) break;
        left -= n;
        after = p.last_series;
    }
    return TARE_OK;
}

static tare_status remote_series(struct store *base, const struct store_span *span, struct store_points *out,
                                 tare_error *err)
{
    struct remote_store *s = remote_of(base);
    uint64_t last = span->last && span->last < POINTS_MAX ? span->last : POINTS_MAX;
    out->at.n = 0;
    buf_clear(&s->target);
    buf_printf(&s->target, "/api/v1/series/%" PRId64 "?last=%" PRIu64, span->series, last);
    tare_status status = get(s, err);
    struct remote_page p = page_of(s);
    if (status == TARE_OK) status = told(s, remote_points(&p, out, err), err);
    if (status == TARE_OK && span->last != last && p.rows >= last)
        status =
            error_set(err, TARE_INVALID, "%s: a series has more than %d points: ask for the last of them",
                      s->base.where, POINTS_MAX);
    return status;
}

static tare_status post(struct remote_store *s, const char *type, struct store_body body, tare_error *err)
{
    return ask(s,
               &(struct client_request){.method = "POST",
                                        .target = s->target.data,
                                        .type = type,
                                        .body = body.data,
                                        .n = body.size,
                                        .harmless = true},
               err);
}

static tare_status remote_add(struct store *base, const struct store_entry *e, bool *added, tare_error *err)
{
    struct remote_store *s = remote_of(base);
    buf_clear(&s->target);
    buf_add_str(&s->target, "/api/v1/runs");
    tare_status status = post(s, "application/json", e->body, err);
    if (status == TARE_OK && added) *added = s->reply.status == 201;
    return status;
}

/* ---- files of runs ---- */

static tare_status remote_piece_add(struct store *base, const struct store_piece *p, enum store_kept *kept,
                                    tare_error *err)
{
    struct remote_store *s = remote_of(base);
    buf_clear(&s->target);
    buf_add_str(&s->target, "/api/v1/pieces");
    tare_status status = post(s, "application/octet-stream", p->body, err);
    if (status == TARE_OK) *kept = s->reply.status == 201 ? STORE_NEW : STORE_SAME;
    return status;
}

/* Pieces that went meanwhile are 422, as is all that will never be taken: who sent them all tries once more. */
static tare_status remote_upload_add(struct store *base, struct store_upload_new *u, enum store_kept *kept,
                                     tare_error *err)
{
    struct remote_store *s = remote_of(base);
    struct buf body = BUF_INIT;
    buf_printf(&body, "{\"name\":\"%s\",\"pieces\":[", u->name);
    for (size_t i = 0; i < u->n; i++) buf_printf(&body, "%s\"%s\"", i ? "," : "", u->hashes[i]);
    buf_add_str(&body, "]}");
    buf_clear(&s->target);
    buf_printf(&s->target, "/api/v1/runs/%s/uploads", u->run);
    tare_status status = buf_status(&body, err);
    if (status == TARE_OK)
        status = post(s, "application/json", (struct store_body){body.data, body.len}, err);
    if (status == TARE_OK) *kept = s->reply.status == 201 ? STORE_NEW : STORE_SAME;
    store_upload_id(u->hashes, u->n, u->id);
    buf_release(&body);
    return status;
}

static tare_status remote_list_uploads(struct store *base, const struct store_upload_query *q,
                                       store_upload_fn *fn, void *ctx, tare_error *err)
{
    struct remote_store *s = remote_of(base);
    if (!q->run) return error_set(err, TARE_UNSUPPORTED, "%s: lists files by their run", base->where);
    buf_clear(&s->target);
    buf_printf(&s->target, "/api/v1/runs/%s/uploads", q->run);
    tare_status status = get(s, err);
    struct remote_page p = page_of(s);
    return status == TARE_OK ? told(s, remote_uploads(&p, fn, ctx, err), err) : status;
}

static tare_status remote_piece(struct store *base, const struct store_upload *u, uint64_t number,
                                struct buf *out, tare_error *err)
{
    struct remote_store *s = remote_of(base);
    buf_clear(&s->target);
    buf_printf(&s->target, "/api/v1/uploads/%s?piece=%" PRIu64, u->id, number);
    tare_status status = get(s, err);
    if (status != TARE_OK) return status;
    buf_add(out, s->reply.body.data, s->reply.body.len);
    return buf_status(out, err);
}

static tare_status cannot(struct store *s, tare_error *err)
{
    return error_set(err, TARE_UNSUPPORTED, "%s: runs of a server are changed where it runs", s->where);
}

static tare_status remote_begin(struct store *s, tare_error *err)
{
    return cannot(s, err);
}

static tare_status remote_end(struct store *s, bool commit, tare_error *err)
{
    (void)commit;
    return cannot(s, err);
}

static tare_status remote_remove(struct store *s, const char *id, tare_error *err)
{
    (void)id;
    return cannot(s, err);
}

static tare_status remote_pin(struct store *base, const char *id, const char *name, bool on, tare_error *err)
{
    struct remote_store *s = remote_of(base);
    struct buf body = BUF_INIT;
    if (!store_name_ok(name)) return error_set(err, TARE_INVALID, "'%.80s' is no name of a baseline", name);
    buf_clear(&s->target);
    buf_add_str(&s->target, "/api/v1/baselines");
    if (!on) buf_printf(&s->target, "/%s?name=%s", id, name);
    buf_printf(&body, "{\"run\":\"%s\",\"name\":\"%s\"}", id, name);
    tare_status status = buf_status(&body, err);
    if (status == TARE_OK && on)
        status = post(s, "application/json", (struct store_body){body.data, body.len}, err);
    else if (status == TARE_OK)
        status = ask(s, &(struct client_request){.method = "DELETE", .target = s->target.data}, err);
    buf_release(&body);
    return status;
}

static tare_status remote_name(struct store *s, const char *id, const char *name, bool on, tare_error *err)
{
    (void)id, (void)name, (void)on;
    return cannot(s, err);
}

/* What a server alone asks of its own store is not here. */
static tare_status remote_list_hosts(struct store *base, const struct store_host *like, store_host_fn *fn,
                                     void *ctx, tare_error *err)
{
    struct remote_store *s = remote_of(base);
    (void)like; /* the token says whose */
    buf_clear(&s->target);
    buf_add_str(&s->target, "/api/v1/hosts");
    tare_status status = get(s, err);
    struct remote_page p = page_of(s);
    return status == TARE_OK ? told(s, remote_hosts(&p, fn, ctx, err), err) : status;
}

static tare_status remote_ask_latest(struct store *base, struct store_latest_query *q, store_latest_fn *fn,
                                     void *ctx, tare_error *err)
{
    struct remote_store *s = remote_of(base);
    buf_clear(&s->target);
    buf_printf(&s->target, "/api/v1/metrics?from=%" PRId64, q->from_ms);
    if (q->to_ms) buf_printf(&s->target, "&to=%" PRId64, q->to_ms);
    add_text(s, "host", q->host);
    tare_status status = get(s, err);
    struct remote_page p = page_of(s);
    return status == TARE_OK ? told(s, remote_latest(&p, &q->now_ms, fn, ctx, err), err) : status;
}

const struct store_ops store_remote = {
    .name = "a server",
    .plain = true,
    .open = remote_open,
    .close = remote_close,
    .begin = remote_begin,
    .end = remote_end,
    .add = remote_add,
    .remove = remote_remove,
    .tag = remote_name,
    .pin = remote_pin,
    .list = remote_list,
    .body = remote_body,
    .names = remote_series_names,
    .series = remote_series,
    .hosts = remote_list_hosts,
    .latest = remote_ask_latest,
    .files.piece_add = remote_piece_add,
    .files.upload_add = remote_upload_add,
    .files.uploads = remote_list_uploads,
    .files.piece = remote_piece,
};
