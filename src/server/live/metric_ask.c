/* SPDX-License-Identifier: MIT
 * metric_ask.c - see metric_ask.h. Hours that are not summed up yet, or anew, are read as they came; both ways give the
 * same numbers, so that an answer does not change when an hour is summed up. */
#include "server/live/metric_ask.h"

#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/map.h"
#include "server/route.h"
#include "store/chunk.h"

enum {
    POINTS_DEFAULT = 300,
    POINTS_MAX = 2000,
    ANSWER_MAX = 50000, /* points times series */
    READ_MAX = 4 << 20, /* readings that one question may gather */
};

struct asked_series {
    int64_t id;
    const char *label;
    struct bucket *at;
    VEC(struct buckets_point) points;
};

struct asked {
    struct exchange *x;
    struct store *s;
    const struct metric_question *q;
    int64_t host;
    const char *unit;
    bool counter;
    int64_t width_ms; /* of the sums that it is made of; 1: of readings */
    struct buckets_range range;
    VEC(struct asked_series) series;
    struct map_u64 index;  /* id -> number + 1 */
    VEC(int64_t) unsummed; /* hours that are read as they came, oldest first */
    enum store_cut cut;    /* the most that is gone of any hour */
    size_t chunks, gathered;
    struct asked_series *row_of; /* while rows are read */
};

static void asked_release(struct asked *a)
{
    for (size_t i = 0; i < a->series.n; i++) vec_release(&a->series.items[i].points);
    vec_release(&a->series);
    vec_release(&a->unsummed);
    map_u64_release(&a->index);
}

tare_status metric_question(struct exchange *x, struct metric_question *q, tare_error *err)
{
    struct number_range times = {1, INT64_C(1) << 52}, sizes = {1, POINTS_MAX};
    uint64_t to = clock_unix_ns() / 1000000, from = 0;
    *q = (struct metric_question){.points = POINTS_DEFAULT};
    tare_status s = exchange_query(x, "name", &q->name, err);
    if (s == TARE_OK) s = exchange_query(x, "label", &q->label, err);
    if (s == TARE_OK) s = exchange_query_number(x, "to", times, &to, err);
    if (s == TARE_OK) s = exchange_query_number(x, "from", times, &from, err);
    if (s == TARE_OK) s = exchange_query_number(x, "points", sizes, &q->points, err);
    if (s != TARE_OK) return s;
    q->since_ms = (int64_t)from;
    q->to_ms = (int64_t)to;
    q->from_ms = (int64_t)from;
    if (!from) q->from_ms = q->to_ms > ROLLUP_HOUR_MS ? q->to_ms - ROLLUP_HOUR_MS : 1;
    return q->from_ms < q->to_ms ? TARE_OK : error_set(err, TARE_INVALID, "from must be before to");
}

/* ---- what there is ---- */

static tare_status note_series(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    struct asked *a = ctx;
    if (a->q->label && strcmp(a->q->label, m->label) != 0) return TARE_OK;
    struct asked_series one = {.id = id, .label = arena_str(&a->x->arena, m->label)};
    a->unit = arena_str(&a->x->arena, m->unit);
    a->counter = m->counter;
    if (a->x->arena.failed) return error_nomem(err, "a series");
    tare_status s = vec_push(&a->series, one, err);
    return s == TARE_OK ? map_u64_put(&a->index, (uint64_t)id, a->series.n, err) : s;
}

static tare_status note_block(void *ctx, const struct store_block *b, tare_error *err)
{
    struct asked *a = ctx;
    if (b->cut > a->cut) a->cut = b->cut;
    return b->due_ms && !b->cut ? vec_push(&a->unsummed, b->at_ms, err) : TARE_OK;
}

/* By how long the pieces are to be, and by what is still there. */
static int64_t choose_width(const struct asked *a)
{
    int64_t step = (a->q->to_ms - a->q->from_ms) / (int64_t)a->q->points;
    if (step >= ROLLUP_HOUR_MS || a->cut == STORE_CUT_MINUTES) return ROLLUP_HOUR_MS;
    return step >= ROLLUP_MINUTE_MS || a->cut ? ROLLUP_MINUTE_MS : 1;
}

static tare_status look(struct asked *a, tare_error *err)
{
    const struct metric_question *q = a->q;
    struct store_metric_query series = {a->host, q->name};
    struct store_block_query blocks = {a->host, q->from_ms - q->from_ms % ROLLUP_HOUR_MS, q->to_ms};
    tare_status s = a->s->ops->metrics(a->s, &series, note_series, a, err);
    if (s == TARE_OK && a->series.n) s = a->s->ops->rollups.blocks(a->s, &blocks, note_block, a, err);
    if (s != TARE_OK || !a->series.n) return s;
    a->width_ms = choose_width(a);
    a->range = buckets_range(q->from_ms, q->to_ms, q->points, a->width_ms);
    if (a->series.n * a->range.n > ANSWER_MAX)
        return error_set(err, TARE_INVALID,
                         "%zu series of %zu points are too many: ask for fewer points, or by label=",
                         a->series.n, a->range.n);
    for (size_t i = 0; i < a->series.n; i++)
        a->series.items[i].at = arena_new(&a->x->arena, a->range.n, sizeof(struct bucket));
    return a->x->arena.failed ? error_nomem(err, "an answer") : TARE_OK;
}

/* ---- readings ---- */

static tare_status too_much(tare_error *err)
{
    return error_set(err, TARE_INVALID, "too much was sent in this time: ask for less of it");
}

static tare_status gather_value(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct asked *a = ctx;
    const uint64_t *at = map_u64_find(&a->index, (uint64_t)v->metric);
    if (!at || v->at_ms >= a->range.end_ms || v->at_ms < a->range.first_ms - BUCKETS_GAP_MS) return TARE_OK;
    if (++a->gathered > READ_MAX) return too_much(err);
    struct buckets_point p = {v->at_ms, v->value};
    return vec_push(&a->series.items[*at - 1].points, p, err);
}

static tare_status gather_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    struct asked *a = ctx;
    if (++a->chunks > METRIC_CHUNKS_MAX) return too_much(err);
    return chunk_read(c, gather_value, a, err);
}

static tare_status read_readings(struct asked *a, int64_t from_ms, int64_t to_ms, tare_error *err)
{
    struct buckets_range *r = &a->range;
    r->first_ms = from_ms > r->from_ms ? from_ms : r->from_ms;
    r->end_ms = to_ms < r->to_ms ? to_ms : r->to_ms;
    struct store_chunk_query q = {.host = a->host,
                                  .from_ms = r->first_ms - BUCKETS_GAP_MS,
                                  .to_ms = r->end_ms,
                                  .limit = METRIC_CHUNKS_MAX + 1};
    tare_status s = a->s->ops->chunks(a->s, &q, gather_chunk, a, err);
    for (size_t i = 0; i < a->series.n && s == TARE_OK; i++) {
        struct asked_series *one = &a->series.items[i];
        buckets_fill(one->at, r, a->counter, one->points.items, one->points.n);
        one->points.n = 0;
    }
    r->first_ms = r->from_ms;
    r->end_ms = r->to_ms;
    return s;
}

/* Hours that lie side by side are read as one. */
static tare_status read_unsummed(struct asked *a, tare_error *err)
{
    tare_status s = TARE_OK;
    const int64_t *at = a->unsummed.items;
    for (size_t i = 0, n; i < a->unsummed.n && s == TARE_OK; i += n) {
        for (n = 1; i + n < a->unsummed.n && at[i + n] == at[i] + (int64_t)n * ROLLUP_HOUR_MS;) n++;
        s = read_readings(a, at[i], at[i] + (int64_t)n * ROLLUP_HOUR_MS, err);
    }
    return s;
}

/* ---- sums ---- */

static bool is_unsummed(const struct asked *a, int64_t at_ms)
{
    int64_t hour = at_ms - at_ms % ROLLUP_HOUR_MS;
    size_t low = 0, high = a->unsummed.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (a->unsummed.items[middle] < hour)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->unsummed.n && a->unsummed.items[low] == hour;
}

static tare_status take_row(void *ctx, const struct store_rollup *row, tare_error *err)
{
    struct asked *a = ctx;
    struct bucket sums[ROLLUP_ENTRIES_MAX] = {0};
    tare_status s = rollup_unpack(&row->body, sums, err);
    for (int i = 0; i < ROLLUP_ENTRIES_MAX && s == TARE_OK; i++) {
        int64_t at_ms = row->at_ms + i * row->width_ms;
        struct bucket *to = sums[i].n ? buckets_at(a->row_of->at, &a->range, at_ms) : NULL;
        if (to && !is_unsummed(a, at_ms)) bucket_merge(to, &sums[i]);
    }
    return s;
}

static tare_status read_sums(struct asked *a, tare_error *err)
{
    int64_t row = a->width_ms == ROLLUP_HOUR_MS ? ROLLUP_DAY_MS : ROLLUP_HOUR_MS;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < a->series.n && s == TARE_OK; i++) {
        a->row_of = &a->series.items[i];
        struct store_rollup_query q = {a->row_of->id, a->width_ms, a->range.from_ms - a->range.from_ms % row,
                                       a->range.to_ms};
        s = a->s->ops->rollups.rows(a->s, &q, take_row, a, err);
    }
    return s;
}

/* ---- the answer ---- */

static double least_of(const struct bucket *b)
{
    return b->least;
}
static double mean_of(const struct bucket *b)
{
    return b->sum / b->weight;
}
static double greatest_of(const struct bucket *b)
{
    return b->greatest;
}

/* Columns, as plots want them. */
static void write_series(struct json *j, const struct asked *a, const struct asked_series *one)
{
    static const struct {
        const char *name;
        double (*of)(const struct bucket *b);
    } columns[] = {{"min", least_of}, {"mean", mean_of}, {"max", greatest_of}};
    const struct bucket *at = one->at;
    json_object_begin(j);
    json_kv_string(j, "label", one->label);
    json_key(j, "at");
    json_array_begin(j);
    for (size_t i = 0; i < a->range.n; i++)
        if (at[i].n) json_put_int(j, a->range.from_ms + (int64_t)i * a->range.step_ms);
    json_array_end(j);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        json_key(j, columns[c].name);
        json_array_begin(j);
        for (size_t i = 0; i < a->range.n; i++)
            if (at[i].n) json_put_double(j, columns[c].of(&at[i]));
        json_array_end(j);
    }
    json_key(j, "n");
    json_array_begin(j);
    for (size_t i = 0; i < a->range.n; i++)
        if (at[i].n) json_put_uint(j, at[i].n);
    json_array_end(j);
    json_object_end(j);
}

static void write_answer(const struct asked *a)
{
    struct json j;
    reply_json(a->x, 200);
    json_init(&j, &a->x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "name", a->q->name);
    json_kv_string(&j, "unit", a->unit);
    json_kv_string(&j, "kind", a->counter ? "counter" : "gauge");
    json_kv_bool(&j, "per_second", a->counter);
    json_kv_int(&j, "from", a->range.from_ms);
    json_kv_int(&j, "to", a->range.to_ms);
    json_kv_int(&j, "step", a->range.step_ms);
    json_key(&j, "resolution");
    if (a->width_ms > 1)
        json_put_int(&j, a->width_ms);
    else
        json_put_null(&j);
    json_key(&j, "series");
    json_array_begin(&j);
    for (size_t i = 0; i < a->series.n; i++) write_series(&j, a, &a->series.items[i]);
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

void metric_answer(struct server *sv, struct store *s, struct exchange *x, int64_t host,
                   const struct metric_question *q)
{
    tare_error err = TARE_ERROR_INIT;
    struct asked a = {.x = x, .s = s, .q = q, .host = host, .index = MAP_U64_INIT};
    tare_status status = look(&a, &err);
    if (status == TARE_OK && a.series.n && a.width_ms == 1)
        status = read_readings(&a, a.range.from_ms, a.range.to_ms, &err);
    else if (status == TARE_OK && a.series.n) {
        status = read_unsummed(&a, &err);
        if (status == TARE_OK) status = read_sums(&a, &err);
    }
    if (status == TARE_INVALID)
        reply_problem(x, 422, "%s", err.text);
    else if (status != TARE_OK)
        steps_failed(sv, x, &err);
    else if (!a.series.n)
        reply_problem(x, 404, "this host has sent no such metric");
    else
        write_answer(&a);
    asked_release(&a);
}
