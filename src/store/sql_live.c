/* SPDX-License-Identifier: MIT
 * sql_live.c - hosts, their series and the readings that they send: one small chunk per batch. */
#include <string.h>

#include "core/mem.h"
#include "store/chunk.h"
#include "store/sql.h"

enum { IDS_MAX = 1 << 18 }; /* remembered at a time */

/* ---- keeping ---- */

static tare_status hear_host(struct db_store *s, const struct store_batch *b, int64_t *host, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_HEAR_HOST, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, b->project);
    db_text(q, 2, b->host);
    db_text(q, 3, b->about);
    db_int(q, 4, b->heard_ms);
    return db_number(s, q, host, err);
}

static tare_status add_batch(struct db_store *s, const struct store_batch *b, int64_t host,
                             enum store_kept *kept, tare_error *err)
{
    struct db_stmt *q = NULL;
    int64_t same = 0;
    tare_status status = db_get(s, DB_ADD_BATCH, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, host);
    db_text(q, 2, b->id);
    db_blob(q, 3, b->hash, sizeof b->hash);
    db_int(q, 4, b->heard_ms);
    status = db_step(s, q, "adding a batch", err);
    *kept = STORE_NEW;
    if (status != TARE_OK || db_changes(s->db) > 0) return status;
    if ((status = db_get(s, DB_BATCH_HASH, &q, err)) != TARE_OK) return status;
    db_int(q, 1, host);
    db_text(q, 2, b->id);
    db_blob(q, 3, b->hash, sizeof b->hash);
    status = db_number(s, q, &same, err);
    *kept = same ? STORE_SAME : STORE_OTHER;
    return status;
}

/* 0: there is none yet. */
static tare_status look_up(struct db_store *s, int64_t host, const struct store_metric *m, int64_t *id,
                           tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_FIND_METRIC, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, host);
    db_text(q, 2, m->name);
    db_text(q, 3, m->label);
    *id = 0;
    return db_number(s, q, id, err);
}

static tare_status add_metric(struct db_store *s, int64_t host, const struct store_metric *m, int64_t *id,
                              tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_METRIC, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, host);
    db_text(q, 2, m->name);
    db_text(q, 3, m->label);
    db_text(q, 4, m->unit);
    db_int(q, 5, m->counter);
    return db_number(s, q, id, err);
}

/* Of one batch. */
struct packing {
    struct db_store *s;
    int64_t host; /* 0: not heard of yet */
    int64_t *ids; /* of its series, in the order of its readings; 0: not there yet */
    size_t n_lacking;
    struct buf key, body[2];
};

struct hour { /* of a batch */
    int64_t from_ms, to_ms;
    struct buf *body;
};

static bool begins_series(const struct store_batch *b, size_t i)
{
    return i == 0 || b->readings[i].metric != b->readings[i - 1].metric;
}

static tare_status find_host(struct packing *p, const struct store_batch *b, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(p->s, DB_FIND_HOST, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, b->project);
    db_text(q, 2, b->host);
    return db_number(p->s, q, &p->host, err);
}

/* Where the number of a series is remembered: a host sends the same series every second. */
static tare_status remembered(struct packing *p, const struct store_metric *m, uint64_t **known,
                              tare_error *err)
{
    struct map_str *ids = &p->s->metric_ids;
    buf_clear(&p->key);
    buf_add(&p->key, &p->host, sizeof p->host);
    buf_add(&p->key, m->name, strlen(m->name) + 1);
    buf_add_str(&p->key, m->label);
    tare_status status = buf_status(&p->key, err);
    if (ids->n >= IDS_MAX) map_str_release(ids);
    return status == TARE_OK ? map_str_ref(ids, p->key.data, p->key.len, known, err) : status;
}

/* The numbers of the batch's series that are there, and how many are not. */
static tare_status find_series(struct packing *p, const struct store_batch *b, tare_error *err)
{
    tare_status status = TARE_OK;
    size_t n = 0;
    for (size_t i = 0; i < b->n_readings; i++) n += begins_series(b, i);
    p->ids = mem_new(n, sizeof *p->ids);
    if (!p->ids) return error_nomem(err, "the series of a batch");
    int64_t *id = p->ids;
    for (size_t i = 0; i < b->n_readings && status == TARE_OK; i++) {
        const struct store_metric *m = &b->metrics[b->readings[i].metric];
        uint64_t *known = NULL;
        if (!begins_series(b, i)) continue;
        if (p->host) status = remembered(p, m, &known, err);
        if (known && !*known && (status = look_up(p->s, p->host, m, id, err)) == TARE_OK)
            *known = (uint64_t)*id;
        if (known) *id = (int64_t)*known;
        p->n_lacking += !*id++;
    }
    return status;
}

static tare_status add_series(struct packing *p, const struct store_batch *b, tare_error *err)
{
    tare_status status = TARE_OK;
    int64_t *id = p->ids;
    for (size_t i = 0; i < b->n_readings && status == TARE_OK && p->n_lacking; i++) {
        const struct store_metric *m = &b->metrics[b->readings[i].metric];
        uint64_t *known = NULL;
        if (!begins_series(b, i) || *id++) continue;
        if ((status = remembered(p, m, &known, err)) != TARE_OK) break;
        if (!*known) status = add_metric(p->s, p->host, m, (int64_t *)known, err);
        id[-1] = (int64_t)*known;
        p->n_lacking--;
    }
    return status;
}

/* Counted once, before any series is made: what is refused must leave nothing. */
static tare_status has_room(struct packing *p, bool *yes, tare_error *err)
{
    struct db_stmt *q = NULL;
    int64_t n = 0;
    *yes = true;
    if (!p->n_lacking) return TARE_OK;
    tare_status status = db_get(p->s, DB_COUNT_METRICS, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, p->host);
    status = db_number(p->s, q, &n, err);
    *yes = p->n_lacking <= STORE_METRICS_MAX && n <= STORE_METRICS_MAX - (int64_t)p->n_lacking;
    return status;
}

/* The readings of one hour, as they lie: by series, then by time. */
static tare_status pack(const struct packing *p, const struct store_batch *b, struct hour h, tare_error *err)
{
    const struct store_reading *at = b->readings, *end = at + b->n_readings;
    for (const int64_t *id = p->ids; at < end; id++) {
        const struct store_reading *first = at;
        size_t n = 0;
        for (uint32_t metric = at->metric; at < end && at->metric == metric; at++) {
            if (at->at_ms < h.from_ms || at->at_ms >= h.to_ms) continue;
            if (!n++) first = at;
        }
        if (n) chunk_add(h.body, *id, h.from_ms, first, n);
    }
    return buf_status(h.body, err);
}

/* Its hour is to be summed up: some time after it is over, and soon where it was. */
static tare_status touch_block(const struct packing *p, int64_t hour_ms, int64_t heard_ms, tare_error *err)
{
    struct db_stmt *q = NULL;
    int64_t over = hour_ms + ROLLUP_HOUR_MS + ROLLUP_GRACE_MS, soon = heard_ms + ROLLUP_LATE_MS;
    tare_status status = db_get(p->s, DB_TOUCH_BLOCK, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, p->host);
    db_int(q, 2, hour_ms);
    db_int(q, 3, over > soon ? over : soon);
    return db_step(p->s, q, "noting an hour of a host", err);
}

static tare_status add_chunk(const struct packing *p, int64_t from_ms, const struct buf *body,
                             int64_t heard_ms, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(p->s, DB_ADD_CHUNK, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, p->host);
    db_int(q, 2, from_ms);
    db_blob(q, 3, body->data, body->len);
    status = db_step(p->s, q, "adding readings", err);
    return status == TARE_OK ? touch_block(p, from_ms - from_ms % ROLLUP_HOUR_MS, heard_ms, err) : status;
}

/* A chunk is of one hour: the readings of a batch lie in two at most. */
static tare_status add_readings(struct packing *p, const struct store_batch *b, tare_error *err)
{
    int64_t from[2] = {INT64_MAX, 0};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < b->n_readings; i++)
        if (b->readings[i].at_ms < from[0]) from[0] = b->readings[i].at_ms;
    from[1] = from[0] - from[0] % ROLLUP_HOUR_MS + ROLLUP_HOUR_MS;
    for (int i = 0; i < 2 && status == TARE_OK; i++) {
        struct hour h = {from[i], i ? from[1] + ROLLUP_HOUR_MS : from[1], &p->body[i]};
        status = pack(p, b, h, err);
        if (status == TARE_OK && h.body->len) status = add_chunk(p, h.from_ms, h.body, b->heard_ms, err);
    }
    return status;
}

/* What is refused (too many series, the id of another batch) makes no series: nobody could take them away again. */
static tare_status keep(struct packing *p, const struct store_batch *b, enum store_kept *kept,
                        tare_error *err)
{
    bool fits = true;
    tare_status status = find_host(p, b, err);
    if (status == TARE_OK) status = find_series(p, b, err);
    if (status == TARE_OK) status = has_room(p, &fits, err);
    *kept = STORE_CROWDED;
    if (status != TARE_OK || !fits) return status;
    status = hear_host(p->s, b, &p->host, err);
    if (status == TARE_OK) status = add_batch(p->s, b, p->host, kept, err);
    if (status != TARE_OK || *kept != STORE_NEW) return status;
    status = add_series(p, b, err);
    return status == TARE_OK ? add_readings(p, b, err) : status;
}

tare_status db_batch_add(struct store *base, const struct store_batch *b, enum store_kept *kept,
                         tare_error *err)
{
    struct packing p = {.s = db_of(base), .key = BUF_INIT, .body = {BUF_INIT, BUF_INIT}};
    tare_status status = db_begin(base, err);
    if (status != TARE_OK) return status;
    status = keep(&p, b, kept, err);
    tare_status end = db_end(base, status == TARE_OK, status == TARE_OK ? err : NULL);
    mem_free(p.ids);
    buf_release(&p.key);
    buf_release(&p.body[0]);
    buf_release(&p.body[1]);
    return status != TARE_OK ? status : end;
}

/* ---- asking ---- */

tare_status db_hosts(struct store *base, const struct store_host *like, store_host_fn *fn, void *ctx,
                     tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, DB_HOSTS, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, like->project);
    db_text(q, 2, like->name);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_host h = {.id = db_int_at(q, 0),
                               .project = db_column(q, 1),
                               .name = db_column(q, 2),
                               .about = db_column(q, 3),
                               .first_ms = db_int_at(q, 4),
                               .heard_ms = db_int_at(q, 5),
                               .metrics = (uint64_t)db_int_at(q, 6)};
        if (!h.project || !h.name)
            status =
                error_set(err, TARE_FORMAT, "%s: the history is damaged: a host without a name", s->path);
        else
            status = fn(ctx, &h, err);
    }
    return db_walked(s, q, rc, status, err);
}

tare_status db_metrics(struct store *base, const struct store_metric_query *what, store_metric_fn *fn,
                       void *ctx, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, DB_METRICS, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, what->host);
    db_text(q, 2, what->name);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_metric m = {.name = db_column(q, 1),
                                 .label = db_column(q, 2),
                                 .unit = db_column(q, 3),
                                 .counter = db_int_at(q, 4) != 0};
        if (!m.name || !m.label)
            status =
                error_set(err, TARE_FORMAT, "%s: the history is damaged: a metric without a name", s->path);
        else
            status = fn(ctx, db_int_at(q, 0), &m, err);
    }
    return db_walked(s, q, rc, status, err);
}

/* A chunk begins at most STORE_CHUNK_SPAN_MS before its last reading. */
static tare_status bind_chunks(struct db_store *s, const struct store_chunk_query *what, struct db_stmt **q,
                               tare_error *err)
{
    bool by_time = what->from_ms || what->to_ms;
    int64_t limit = what->limit && what->limit < INT64_MAX ? (int64_t)what->limit : INT64_MAX;
    int64_t from = INT64_MIN;
    tare_status status = db_get(s, by_time ? DB_CHUNKS_BY_TIME : DB_CHUNKS_AFTER, q, err);
    if (status != TARE_OK) return status;
    if (what->from_ms > INT64_MIN + STORE_CHUNK_SPAN_MS) from = what->from_ms - STORE_CHUNK_SPAN_MS;
    db_int(*q, 1, by_time ? what->host : what->after);
    db_int(*q, 2, by_time ? from : what->host);
    db_int(*q, 3, by_time ? what->to_ms : limit);
    if (by_time) db_int(*q, 4, limit);
    return TARE_OK;
}

tare_status db_chunks(struct store *base, const struct store_chunk_query *what, store_chunk_fn *fn, void *ctx,
                      tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = bind_chunks(s, what, &q, err);
    if (status != TARE_OK) return status;
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_chunk c = {.seq = db_int_at(q, 0),
                                .host = db_int_at(q, 1),
                                .from_ms = db_int_at(q, 2),
                                .body = {db_blob_at(q, 3), db_bytes_at(q, 3)}};
        status = fn(ctx, &c, err);
    }
    return db_walked(s, q, rc, status, err);
}

tare_status db_chunk_newest(struct store *base, int64_t *seq, tare_error *err)
{
    struct db_stmt *q = NULL;
    tare_status status = db_get(db_of(base), DB_CHUNK_NEWEST, &q, err);
    *seq = 0;
    return status == TARE_OK ? db_number(db_of(base), q, seq, err) : status;
}
