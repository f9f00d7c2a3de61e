/* SPDX-License-Identifier: MIT
 * roller.c - see roller.h. Gauges are summed as they are read; of counters the readings are gathered first, because a
 * rate needs them in order, some series at a time where there are too many. */
#include "server/live/roller.h"

#include <string.h>

#include "core/clock.h"
#include "core/map.h"
#include "core/mem.h"
#include "server/live/buckets.h"
#include "server/server.h"
#include "store/chunk.h"

#define MS UINT64_C(1000000)
#define PAUSE_NS (20 * MS)
#define AWAY_NS (1000 * MS) /* another has the store */
#define IDLE_NS (2000 * MS)
#define FAILED_NS (60000 * MS)
enum { GATHER_MAX = 1 << 20, MINUTES = 60, HOURS = 24, STEPS_A_SLICE = 8 };

struct rolled { /* a series */
    int64_t id;
    bool counter;
    VEC(struct buckets_point) points;
    struct bucket at[MINUTES];
};

struct roll {
    struct store *s;
    struct store_block block;
    int64_t newest; /* chunk that was read */
    struct buckets_range range;
    VEC(struct rolled *) series;
    struct map_u64 index; /* id -> number + 1 */
    size_t pass, passes, gathered;
};

static void roll_release(struct roll *r)
{
    for (size_t i = 0; i < r->series.n; i++) {
        vec_release(&r->series.items[i]->points);
        mem_free(r->series.items[i]);
    }
    vec_release(&r->series);
    map_u64_release(&r->index);
}

static tare_status note_series(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    struct roll *r = ctx;
    struct rolled *one = mem_new(1, sizeof *one);
    if (!one) return error_nomem(err, "sums of a series");
    one->id = id;
    one->counter = m->counter;
    tare_status s = vec_push(&r->series, one, err);
    if (s != TARE_OK) {
        mem_free(one);
        return s;
    }
    return map_u64_put(&r->index, (uint64_t)id, r->series.n, err);
}

/* ---- reading ---- */

static tare_status take_value(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct roll *r = ctx;
    const uint64_t *at = map_u64_find(&r->index, (uint64_t)v->metric);
    if (!at) return TARE_OK;
    struct rolled *one = r->series.items[*at - 1];
    struct buckets_point p = {v->at_ms, v->value};
    if (!one->counter) {
        if (!r->pass) buckets_fill(one->at, &r->range, false, &p, 1);
        return TARE_OK;
    }
    if (*at % r->passes != r->pass || v->at_ms >= r->range.end_ms ||
        v->at_ms < r->range.first_ms - BUCKETS_GAP_MS)
        return TARE_OK;
    r->gathered++;
    return vec_push(&one->points, p, err);
}

/* For one pass; a single series is never. */
static bool too_many(const struct roll *r)
{
    return r->gathered > GATHER_MAX && r->passes <= r->series.n;
}

/* Where the older readings are gone only those are read that came after them. */
static tare_status take_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    struct roll *r = ctx;
    if (r->block.cut && c->seq <= r->block.seq) return TARE_OK;
    if (c->seq > r->newest) r->newest = c->seq;
    if (too_many(r)) return TARE_OK; /* it is read again, in more passes */
    return chunk_read(c, take_value, r, err);
}

static tare_status read_pass(struct roll *r, tare_error *err)
{
    struct store_chunk_query q = {
        .host = r->block.host, .from_ms = r->range.first_ms - BUCKETS_GAP_MS, .to_ms = r->range.end_ms};
    r->gathered = 0;
    tare_status s = r->s->ops->chunks(r->s, &q, take_chunk, r, err);
    for (size_t i = 0; i < r->series.n && s == TARE_OK; i++) {
        struct rolled *one = r->series.items[i];
        if (!too_many(r))
            buckets_fill(one->at, &r->range, true, one->points.items, one->counter ? one->points.n : 0);
        vec_release(&one->points);
    }
    return s;
}

static tare_status read_block(struct roll *r, tare_error *err)
{
    tare_status s = TARE_OK;
    for (bool whole = false; !whole && s == TARE_OK; r->passes *= 8) {
        for (size_t i = 0; i < r->series.n; i++)
            memset(r->series.items[i]->at, 0, sizeof r->series.items[i]->at);
        whole = true;
        for (r->pass = 0; r->pass < r->passes && s == TARE_OK && whole; r->pass++) {
            s = read_pass(r, err);
            whole = !too_many(r);
        }
    }
    return s;
}

/* ---- writing ---- */

static tare_status add_row(void *ctx, const struct store_rollup *row, tare_error *err)
{
    return rollup_unpack(&row->body, ctx, err);
}

/* What the row has is added to `at`. */
static tare_status load_row(struct roll *r, const struct store_rollup *row, struct bucket *at,
                            tare_error *err)
{
    struct store_rollup_query q = {row->metric, row->width_ms, row->at_ms, row->at_ms + 1};
    return r->s->ops->rollups.rows(r->s, &q, add_row, at, err);
}

static tare_status put_row(struct roll *r, struct store_rollup row, const struct bucket *at, tare_error *err)
{
    struct buf body = BUF_INIT;
    rollup_pack(&body, at, ROLLUP_ENTRIES_MAX);
    row.body = (struct store_body){body.data, body.len};
    tare_status s = buf_status(&body, err);
    if (s == TARE_OK && body.len) s = r->s->ops->rollups.put(r->s, &row, err);
    buf_release(&body);
    return s;
}

static tare_status write_series(struct roll *r, struct rolled *one, tare_error *err)
{
    const struct store_block *b = &r->block;
    struct bucket hour = {0}, day[ROLLUP_ENTRIES_MAX] = {0};
    struct store_rollup minutes = {one->id, ROLLUP_MINUTE_MS, b->at_ms, {NULL, 0}};
    struct store_rollup hours = {one->id, ROLLUP_HOUR_MS, b->at_ms - b->at_ms % ROLLUP_DAY_MS, {NULL, 0}};
    tare_status s = TARE_OK;
    for (int i = 0; i < MINUTES; i++) bucket_merge(&hour, &one->at[i]);
    if (!hour.n) return TARE_OK;
    if (b->cut) s = load_row(r, &minutes, one->at, err);
    if (s == TARE_OK && b->cut < STORE_CUT_MINUTES) s = put_row(r, minutes, one->at, err);
    if (s == TARE_OK) s = load_row(r, &hours, day, err);
    struct bucket *mine = &day[b->at_ms % ROLLUP_DAY_MS / ROLLUP_HOUR_MS];
    if (!b->cut) *mine = (struct bucket){0};
    bucket_merge(mine, &hour);
    return s == TARE_OK ? put_row(r, hours, day, err) : s;
}

/* Another server may have done it meanwhile: then nothing is written. */
static tare_status write_block(struct roll *r, tare_error *err)
{
    const struct store_ops *ops = r->s->ops;
    bool same = false;
    tare_status s = ops->begin(r->s, err);
    if (s != TARE_OK) return s;
    s = ops->rollups.again(r->s, &r->block, &same, err);
    for (size_t i = 0; i < r->series.n && s == TARE_OK && same; i++)
        s = write_series(r, r->series.items[i], err);
    struct store_block done = r->block;
    if (r->newest > done.seq) done.seq = r->newest;
    if (s == TARE_OK && same) s = ops->rollups.done(r->s, &done, err);
    tare_status end = ops->end(r->s, s == TARE_OK, s == TARE_OK ? err : NULL);
    return s != TARE_OK ? s : end;
}

static tare_status roll(struct store *s, const struct store_block *block, tare_error *err)
{
    struct roll r = {.s = s, .block = *block, .index = MAP_U64_INIT, .passes = 1};
    struct store_metric_query all = {.host = block->host};
    r.range = buckets_range(block->at_ms, block->at_ms + ROLLUP_HOUR_MS, MINUTES, ROLLUP_MINUTE_MS);
    tare_status status = s->ops->metrics(s, &all, note_series, &r, err);
    if (status == TARE_OK) status = read_block(&r, err);
    if (status == TARE_OK) status = write_block(&r, err);
    roll_release(&r);
    return status;
}

tare_status roller_step(struct store *s, int64_t now_ms, bool *more, tare_error *err)
{
    struct store_block b;
    *more = false;
    tare_status status = s->ops->rollups.due(s, now_ms, &b, err);
    if (status != TARE_OK || !b.host) return status;
    *more = true;
    status = roll(s, &b, err);
    /* what is damaged must not keep others from their turn */
    if (status == TARE_FORMAT) s->ops->rollups.put_off(s, &b, now_ms + ROLLUP_DAY_MS, NULL);
    return status;
}

uint64_t roller_slice(void *ctx, struct store *s)
{
    struct server *server = ctx;
    tare_error err = TARE_ERROR_INIT;
    bool more = true;
    for (int i = 0; i < STEPS_A_SLICE && more; i++) {
        tare_status status = roller_step(s, (int64_t)(clock_unix_ns() / MS), &more, &err);
        if (status == TARE_OK) continue;
        if (status != TARE_BUSY) server->options.say(server->options.say_ctx, err.text);
        return status == TARE_BUSY ? AWAY_NS : FAILED_NS;
    }
    return more ? PAUSE_NS : IDLE_NS;
}
