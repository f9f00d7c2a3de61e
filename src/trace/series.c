/* SPDX-License-Identifier: MIT
 * series.c - series and moments of samples.h, in memory; and the table of metrics that series are of. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/map.h"
#include "trace/samples.h"

enum { KEY_BYTES = 300 };

const struct metric metric_table[METRIC_COUNT] = {
#define X(id, name, unit, kind, help) [METRIC_##id] = {name, unit, METRIC_##kind, help},
    METRIC_MAP(X)
#undef X
};

enum metric_id metric_find(const char *name)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metric_table[i].name, name) == 0) return (enum metric_id)i;
    return METRIC_COUNT;
}

static tare_status series_add(struct series_set *s, enum metric_id m, const char *label, size_t *out,
                              tare_error *err)
{
    struct series item = {m, mem_strdup(label)};
    tare_status status = item.label ? vec_push(&s->items, item, err) : error_nomem(err, "a series");
    if (status != TARE_OK) {
        mem_free(item.label);
        return status;
    }
    *out = s->items.n - 1;
    return TARE_OK;
}

/* The key of a series in the index; 0: too long for one. */
static size_t make_key(char key[KEY_BYTES], enum metric_id m, const char *label)
{
    int n = snprintf(key, KEY_BYTES, "%d/%s", (int)m, label);
    return n > 0 && n < KEY_BYTES ? (size_t)n : 0;
}

/* Labels are few at first and may become many (one for each process): they have an index, made at the
 * first of them, while series without a label are found by their number alone. */
static tare_status find_labelled(struct series_set *s, enum metric_id m, const char *label, size_t *out,
                                 tare_error *err)
{
    char key[KEY_BYTES];
    size_t n = make_key(key, m, label);
    if (!n) return error_set(err, TARE_INVALID, "a label of %zu bytes is too long", strlen(label));
    if (!s->index) s->index = mem_new(1, sizeof *s->index);
    if (!s->index) return error_nomem(err, "a series");
    uint64_t *at;
    tare_status status = map_str_ref(s->index, key, n, &at, err);
    if (status != TARE_OK) return status;
    if (!*at) { /* 0 is what a failure leaves behind too: tried again the next time */
        status = series_add(s, m, label, out, err);
        if (status != TARE_OK) return status;
        *at = s->items.n;
    }
    *out = (size_t)*at - 1;
    return TARE_OK;
}

tare_status series_find(struct series_set *s, enum metric_id m, const char *label, size_t *out,
                        tare_error *err)
{
    if ((unsigned)m >= METRIC_COUNT)
        return error_set(err, TARE_INVALID, "no metric has the number %d", (int)m);
    if (label[0]) return find_labelled(s, m, label, out, err);
    if (!s->whole[m]) {
        size_t at;
        tare_status status = series_add(s, m, "", &at, err);
        if (status != TARE_OK) return status;
        s->whole[m] = (uint32_t)at + 1;
    }
    *out = s->whole[m] - 1;
    return TARE_OK;
}

bool series_has(const struct series_set *s, enum metric_id m, const char *label)
{
    char key[KEY_BYTES];
    if ((unsigned)m >= METRIC_COUNT) return false;
    if (!label[0]) return s->whole[m] != 0;
    size_t n = make_key(key, m, label);
    const uint64_t *at = n && s->index ? map_str_find(s->index, key, n) : NULL;
    return at && *at;
}

void series_set_release(struct series_set *s)
{
    for (size_t i = 0; i < s->items.n; i++) mem_free(s->items.items[i].label);
    vec_release(&s->items);
    if (s->index) map_str_release(s->index);
    mem_free(s->index);
    *s = (struct series_set)SERIES_SET_INIT;
}

void sample_clear(struct sample *s)
{
    vec_clear(&s->values);
}

void sample_release(struct sample *s)
{
    vec_release(&s->values);
}

tare_status sample_set(struct sample *s, size_t series, double value, tare_error *err)
{
    if (series >= s->values.n) {
        tare_status status = vec_reserve(&s->values, series + 1, err);
        if (status != TARE_OK) return status;
        while (s->values.n <= series) s->values.items[s->values.n++] = NAN;
    }
    s->values.items[series] = value;
    return TARE_OK;
}

bool sample_get(const struct sample *s, size_t series, double *out)
{
    if (series >= s->values.n || isnan(s->values.items[series])) return false;
    *out = s->values.items[series];
    return true;
}
