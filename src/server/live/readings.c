/* SPDX-License-Identifier: MIT
 * readings.c - the rules that all readings obey, however they came. */
#include "server/live/readings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"
#include "trace/metric.h"

void readings_init(struct readings *r, struct arena *arena)
{
    *r = (struct readings){.arena = arena, .index = MAP_STR_INIT};
}

void readings_release(struct readings *r)
{
    map_str_release(&r->index);
    vec_release(&r->metrics);
    vec_release(&r->at);
}

bool readings_id_ok(const char *id)
{
    return store_name_ok(id) && !strpbrk(id, "./");
}

bool readings_text_ok(const char *text, size_t most)
{
    size_t n = strlen(text), step;
    uint32_t cp;
    for (size_t i = 0; i < n; i += step)
        if (!(step = str_decode(text + i, n - i, &cp)) || str_is_control(cp)) return false;
    return n <= most;
}

static tare_status check_metric(const struct store_metric *m, tare_error *err)
{
    if (!store_name_ok(m->name))
        return error_set(err, TARE_INVALID,
                         "'%.80s': a name has letters, digits and . _ - / and at most %d bytes", m->name,
                         STORE_NAME_MAX);
    if (!readings_text_ok(m->label, READING_LABEL_MAX))
        return error_set(err, TARE_INVALID, "%s: a label has no control characters and at most %d bytes",
                         m->name, READING_LABEL_MAX);
    if (m->unit && !readings_text_ok(m->unit, READING_UNIT_MAX))
        return error_set(err, TARE_INVALID, "%s: a unit has no control characters and at most %d bytes",
                         m->name, READING_UNIT_MAX);
    return TARE_OK;
}

/* One name, one meaning: what the table has is as the table says. */
static tare_status take_meaning(struct store_metric *m, tare_error *err)
{
    enum metric_id id = metric_find(m->name);
    if (id == METRIC_COUNT) return TARE_OK;
    const struct metric *row = &metric_table[id];
    bool counter = row->kind == METRIC_COUNTER;
    if (m->unit && strcmp(m->unit, row->unit) != 0)
        return error_set(err, TARE_INVALID, "%s: its unit is %s, not %s", m->name, row->unit, m->unit);
    if (m->counter && !counter) return error_set(err, TARE_INVALID, "%s: is a gauge", m->name);
    m->unit = row->unit;
    m->counter = counter;
    return TARE_OK;
}

static tare_status number_of(struct readings *r, const struct store_metric *m, uint32_t *out, tare_error *err)
{
    char key[STORE_NAME_MAX + READING_LABEL_MAX + 2];
    size_t name = strlen(m->name) + 1, label = strlen(m->label);
    uint64_t *at = NULL;
    memcpy(key, m->name, name);
    memcpy(key + name, m->label, label);
    tare_status s = map_str_ref(&r->index, key, name + label, &at, err);
    if (s != TARE_OK) return s;
    if (!*at) {
        struct store_metric one = {.name = arena_str(r->arena, m->name),
                                   .label = arena_str(r->arena, m->label),
                                   .unit = arena_str(r->arena, m->unit),
                                   .counter = m->counter};
        s = r->arena->failed ? error_nomem(err, "a metric") : vec_push(&r->metrics, one, err);
        *at = r->metrics.n;
    }
    *out = (uint32_t)*at - 1;
    return s;
}

tare_status readings_add(struct readings *r, const struct store_metric *given, int64_t at_ms, double value,
                         tare_error *err)
{
    struct store_metric m = *given;
    struct store_reading one = {.at_ms = at_ms, .value = value};
    tare_status s = check_metric(&m, err);
    if (s == TARE_OK) s = take_meaning(&m, err);
    if (s != TARE_OK) return s;
    if (!isfinite(value)) return error_set(err, TARE_INVALID, "%s: a value is a finite number", m.name);
    if (r->at.n == READINGS_MAX)
        return error_set(err, TARE_INVALID, "more than %d samples in one batch", READINGS_MAX);
    s = number_of(r, &m, &one.metric, err);
    return s == TARE_OK ? vec_push(&r->at, one, err) : s;
}

static int by_metric_and_time(const void *a, const void *b)
{
    const struct store_reading *x = a, *y = b;
    if (x->metric != y->metric) return x->metric < y->metric ? -1 : 1;
    return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

tare_status readings_close(struct readings *r, int64_t now_ms, tare_error *err)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    if (!r->at.n) return error_set(err, TARE_INVALID, "samples: there are none");
    for (size_t i = 0; i < r->at.n; i++) {
        int64_t at = r->at.items[i].at_ms;
        if (at < first) first = at;
        if (at > last) last = at;
    }
    if (first <= 0 || last > now_ms + READINGS_AHEAD_MS)
        return error_set(err, TARE_INVALID,
                         "at: %lld is no time in milliseconds since 1970, or more than an hour ahead of the "
                         "server's clock",
                         (long long)(first <= 0 ? first : last));
    if (last - first > STORE_CHUNK_SPAN_MS)
        return error_set(err, TARE_INVALID, "at: the samples of one batch must lie within an hour");
    qsort(r->at.items, r->at.n, sizeof *r->at.items, by_metric_and_time);
    return TARE_OK;
}
