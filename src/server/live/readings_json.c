/* SPDX-License-Identifier: MIT
 * readings_json.c - a batch of samples as our own senders write it: one pass over the bytes, members in any order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/json_pull.h"
#include "server/live/readings.h"

enum { TEXT_MAX = 1024, ABOUT_MAX = 32 };
static const int64_t no_time = INT64_MIN;

struct source {
    const char *bytes;
    size_t n;
};

static tare_status take_bytes(void *ctx, void *to, size_t room, size_t *n, tare_error *err)
{
    struct source *s = ctx;
    (void)err;
    *n = s->n < room ? s->n : room;
    memcpy(to, s->bytes, *n);
    s->bytes += *n;
    s->n -= *n;
    return TARE_OK;
}

struct reading_in { /* the batch as far as it was read */
    struct readings *r;
    struct json_pull p;
    int64_t at_ms; /* of samples that have none of their own */
    size_t n;      /* samples so far, those without a value too */
};

static tare_status wrong(struct reading_in *in, const char *member, const char *wanted, tare_error *err)
{
    return json_pull_error(&in->p, err, "%s: must be %s", member, wanted);
}

static tare_status next_text(struct reading_in *in, const char *member, const char **out, tare_error *err)
{
    enum pull_token t;
    tare_status s = json_pull_next(&in->p, &t, err);
    if (s != TARE_OK) return s;
    if (t != PULL_STRING || in->p.cut) return wrong(in, member, "a text that is not that long", err);
    *out = arena_str(in->r->arena, in->p.text.data);
    return *out ? TARE_OK : error_nomem(err, "a batch");
}

static tare_status next_time(struct reading_in *in, int64_t *out, tare_error *err)
{
    enum pull_token t;
    tare_status s = json_pull_next(&in->p, &t, err);
    if (s != TARE_OK) return s;
    char *end = in->p.text.data;
    errno = 0;
    if (t == PULL_NUMBER) *out = strtoll(in->p.text.data, &end, 10);
    if (t != PULL_NUMBER || errno || *end || *out <= 0)
        return wrong(in, "at", "whole milliseconds since 1970", err);
    return TARE_OK;
}

/* ---- a sample ---- */

struct one {
    char name[STORE_NAME_MAX + 2], label[READING_LABEL_MAX + 2], unit[READING_UNIT_MAX + 2];
    bool has_unit, has_value, is_null, counter;
    int64_t at_ms;
    double value;
};

/* One byte more than is allowed is kept, so that what is too long is refused and not cut. */
static tare_status copy_text(struct reading_in *in, const char *member, char *out, size_t size,
                             tare_error *err)
{
    enum pull_token t;
    tare_status s = json_pull_next(&in->p, &t, err);
    if (s != TARE_OK) return s;
    if (t != PULL_STRING) return wrong(in, member, "a text", err);
    snprintf(out, size, "%s", in->p.text.data);
    return TARE_OK;
}

static tare_status read_number(struct reading_in *in, struct one *o, tare_error *err)
{
    enum pull_token t;
    tare_status s = json_pull_next(&in->p, &t, err);
    if (s != TARE_OK) return s;
    o->has_value = true;
    o->is_null = t == PULL_NULL;
    if (t == PULL_NUMBER) o->value = strtod(in->p.text.data, NULL);
    return t == PULL_NUMBER || t == PULL_NULL ? TARE_OK : wrong(in, "value", "a number or null", err);
}

static tare_status read_kind(struct reading_in *in, struct one *o, tare_error *err)
{
    char kind[16];
    tare_status s = copy_text(in, "kind", kind, sizeof kind, err);
    if (s != TARE_OK) return s;
    o->counter = strcmp(kind, "counter") == 0;
    return o->counter || strcmp(kind, "gauge") == 0 ? TARE_OK : wrong(in, "kind", "gauge or counter", err);
}

static tare_status skip_value(struct reading_in *in, tare_error *err)
{
    enum pull_token t;
    tare_status s = json_pull_next(&in->p, &t, err);
    return s == TARE_OK ? json_pull_skip(&in->p, t, err) : s;
}

static tare_status read_member(struct reading_in *in, struct one *o, tare_error *err)
{
    const char *key = in->p.text.data;
    if (strcmp(key, "name") == 0) return copy_text(in, "name", o->name, sizeof o->name, err);
    if (strcmp(key, "label") == 0) return copy_text(in, "label", o->label, sizeof o->label, err);
    if (strcmp(key, "value") == 0) return read_number(in, o, err);
    if (strcmp(key, "at") == 0) return next_time(in, &o->at_ms, err);
    if (strcmp(key, "kind") == 0) return read_kind(in, o, err);
    if (strcmp(key, "unit") != 0) return skip_value(in, err);
    o->has_unit = true;
    return copy_text(in, "unit", o->unit, sizeof o->unit, err);
}

static tare_status keep_sample(struct reading_in *in, const struct one *o, tare_error *err)
{
    tare_error why = TARE_ERROR_INIT;
    struct store_metric m = {o->name, o->label, o->has_unit ? o->unit : NULL, o->counter};
    if (!o->name[0]) return json_pull_error(&in->p, err, "samples[%zu]: has no name", in->n);
    if (!o->has_value) return json_pull_error(&in->p, err, "samples[%zu]: %s: has no value", in->n, o->name);
    if (o->is_null) return TARE_OK;
    tare_status s = readings_add(in->r, &m, o->at_ms, o->value, &why);
    if (s == TARE_INVALID) return json_pull_error(&in->p, err, "samples[%zu]: %s", in->n, why.text);
    return s == TARE_OK ? s : error_set(err, s, "%s", why.text);
}

static tare_status read_sample(struct reading_in *in, tare_error *err)
{
    struct one o = {.at_ms = no_time};
    enum pull_token t;
    tare_status s;
    while ((s = json_pull_next(&in->p, &t, err)) == TARE_OK && t == PULL_KEY)
        if ((s = read_member(in, &o, err)) != TARE_OK) return s;
    if (s == TARE_OK) s = keep_sample(in, &o, err);
    in->n++;
    return s;
}

static tare_status read_samples(struct reading_in *in, tare_error *err)
{
    enum pull_token t;
    tare_status s = json_pull_next(&in->p, &t, err);
    if (s == TARE_OK && t != PULL_ARRAY) s = wrong(in, "samples", "a list", err);
    while (s == TARE_OK && (s = json_pull_next(&in->p, &t, err)) == TARE_OK && t != PULL_ARRAY_END)
        s = t == PULL_OBJECT ? read_sample(in, err) : wrong(in, "samples", "a list of objects", err);
    return s;
}

/* ---- about: texts, numbers and words, written again by us ---- */

static tare_status read_fact(struct reading_in *in, struct json *j, tare_error *err)
{
    enum pull_token t;
    json_key(j, in->p.text.data);
    tare_status s = json_pull_next(&in->p, &t, err);
    if (s != TARE_OK) return s;
    const char *text = in->p.text.data;
    if (in->p.cut) return wrong(in, "about", "an object of short texts, numbers, true, false and null", err);
    if (t == PULL_STRING && readings_text_ok(text, TEXT_MAX))
        json_put_string(j, text);
    else if (t == PULL_NUMBER)
        json_put_double(j, strtod(text, NULL));
    else if (t == PULL_TRUE || t == PULL_FALSE)
        json_put_bool(j, t == PULL_TRUE);
    else if (t == PULL_NULL)
        json_put_null(j);
    else
        return wrong(in, "about", "an object of texts, numbers, true, false and null", err);
    return TARE_OK;
}

static tare_status read_about(struct reading_in *in, tare_error *err)
{
    struct buf text = BUF_INIT;
    struct json j;
    enum pull_token t = PULL_DONE;
    size_t n = 0;
    tare_status s = json_pull_next(&in->p, &t, err);
    if (s != TARE_OK) return s;
    if (t != PULL_OBJECT) return wrong(in, "about", "an object", err);
    json_init(&j, &text, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    while ((s = json_pull_next(&in->p, &t, err)) == TARE_OK && t == PULL_KEY) {
        if (++n > ABOUT_MAX || in->p.cut)
            s = wrong(in, "about", "an object of at most 32 members with short names", err);
        else
            s = read_fact(in, &j, err);
        if (s != TARE_OK) break;
    }
    if (s == TARE_OK) {
        json_object_end(&j);
        in->r->about = arena_str(in->r->arena, text.data);
        if (text.failed || !in->r->about) s = error_nomem(err, "a batch");
    }
    buf_release(&text);
    return s;
}

/* ---- the batch ---- */

static tare_status read_batch_member(struct reading_in *in, tare_error *err)
{
    const char *key = in->p.text.data;
    if (strcmp(key, "batch") == 0) return next_text(in, "batch", &in->r->id, err);
    if (strcmp(key, "host") == 0) return next_text(in, "host", &in->r->host, err);
    if (strcmp(key, "about") == 0) return read_about(in, err);
    if (strcmp(key, "at") == 0) return next_time(in, &in->at_ms, err);
    if (strcmp(key, "samples") == 0) return read_samples(in, err);
    return skip_value(in, err);
}

static tare_status check_batch(struct reading_in *in, tare_error *err)
{
    struct readings *r = in->r;
    if (!r->id || !readings_id_ok(r->id))
        return error_set(err, TARE_INVALID,
                         "batch: must be an id of the sender: letters, digits, - and _ of at most %d bytes",
                         STORE_NAME_MAX);
    if (!r->host || !store_name_ok(r->host))
        return error_set(err, TARE_INVALID,
                         "host: must be a name: letters, digits and . _ - / of at most %d bytes",
                         STORE_NAME_MAX);
    for (size_t i = 0; i < r->at.n; i++) {
        struct store_reading *one = &r->at.items[i];
        if (one->at_ms != no_time) continue;
        if (in->at_ms == no_time)
            return error_set(err, TARE_INVALID, "%s: has no time: neither the sample nor the batch has 'at'",
                             r->metrics.items[one->metric].name);
        one->at_ms = in->at_ms;
    }
    return TARE_OK;
}

static tare_status read_all(struct reading_in *in, tare_error *err)
{
    enum pull_token t;
    tare_status s = json_pull_next(&in->p, &t, err);
    if (s == TARE_OK && t != PULL_OBJECT) return json_pull_error(&in->p, err, "a batch is an object");
    while (s == TARE_OK && (s = json_pull_next(&in->p, &t, err)) == TARE_OK && t == PULL_KEY)
        s = read_batch_member(in, err);
    if (s == TARE_OK) s = json_pull_next(&in->p, &t, err); /* nothing may follow */
    return s == TARE_OK ? check_batch(in, err) : s;
}

tare_status readings_read_json(struct readings *r, const char *bytes, size_t n, tare_error *err)
{
    struct source source = {bytes, n};
    struct reading_in in = {.r = r, .at_ms = no_time};
    tare_status s =
        json_pull_init(&in.p, (struct json_source){"the batch", take_bytes, &source}, TEXT_MAX, err);
    if (s == TARE_OK) s = read_all(&in, err);
    json_pull_release(&in.p);
    return s;
}
