/* SPDX-License-Identifier: MIT
 * run_write.c - a run document as JSON text, by the rows of fields.c. Refuses what run_read() would refuse,
 * so that what is on disk can always be read back. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "run/fields.h"
#include "run/path.h"
#include "run/run.h"
#include "run/raw_samples.h"

struct writing {
    struct json json;
    const struct run_form *form;
    size_t n_samples; /* raw samples so far */
    tare_error *err;
};

static tare_status write_object(struct writing *w, const struct run_type *t, const void *obj,
                                const struct path *at);

static tare_status fault(struct writing *w, const struct path *at, const char *cause)
{
    char text[256];
    return error_set(w->err, TARE_INVALID, "%s: %s: %s", w->form->what, path_text(at, text, sizeof text),
                     cause);
}

/* ---- single values ---- */

static tare_status write_string(struct writing *w, const struct run_field *f, const char *s,
                                const struct path *at)
{
    char cause[160];
    if (!s && !(f->flags & FIELD_REQUIRED)) {
        json_put_null(&w->json);
        return TARE_OK;
    }
    if (!s) return fault(w, at, "must be set");
    if (!field_text_ok(f->rule, s)) {
        snprintf(cause, sizeof cause, "expected %s", f->rule->expect);
        return fault(w, at, cause);
    }
    json_put_string(&w->json, s);
    return TARE_OK;
}

static tare_status write_u64(struct writing *w, uint64_t v, const struct path *at)
{
    if (v > INT64_MAX) return fault(w, at, "above 9223372036854775807");
    json_put_uint(&w->json, v);
    return TARE_OK;
}

static tare_status write_number(struct writing *w, const struct run_field *f, const void *p,
                                const struct path *at)
{
    bool plain = f->flags & FIELD_PLAIN;
    const struct known_u64 *u = p;
    const struct known_i64 *i = p;
    const struct known_f64 *d = p;
    if (!plain && !*(const bool *)p) {
        if (f->flags & FIELD_REQUIRED) return fault(w, at, "must be known");
        json_put_null(&w->json);
        return TARE_OK;
    }
    if (f->kind == FIELD_U64) return write_u64(w, plain ? *(const uint64_t *)p : u->v, at);
    if (f->kind == FIELD_BOOL) {
        json_put_bool(&w->json, ((const struct known_bool *)p)->v);
        return TARE_OK;
    }
    if (f->kind == FIELD_I64) {
        json_put_int(&w->json, plain ? *(const int64_t *)p : i->v);
        return TARE_OK;
    }
    double v = plain ? *(const double *)p : d->v;
    const char *cause = field_number_fault(f, v);
    if (cause) return fault(w, at, cause);
    if (f->flags & FIELD_WHOLE) return write_u64(w, v < 0x1p63 ? (uint64_t)v : INT64_MAX, at);
    json_put_double(&w->json, v);
    return TARE_OK;
}

/* ---- free-form maps ---- */

static tare_status write_items(struct writing *w, const struct run_map *m, const struct path *at, int left);

static tare_status write_value(struct writing *w, const struct run_value *v, const struct path *at, int left)
{
    tare_status s;
    switch (v->kind) {
    case RUN_NULL: json_put_null(&w->json); return TARE_OK;
    case RUN_BOOL: json_put_bool(&w->json, v->yes); return TARE_OK;
    case RUN_INT: json_put_int(&w->json, v->i); return TARE_OK;
    case RUN_TEXT: json_put_string(&w->json, v->s); return TARE_OK;
    case RUN_REAL:
        if (!isfinite(v->d)) return fault(w, at, "not a finite number");
        json_put_double(&w->json, v->d);
        return TARE_OK;
    case RUN_LIST:
        json_array_begin_flat(&w->json);
        s = write_items(w, &v->items, at, left);
        if (s == TARE_OK) json_array_end(&w->json);
        return s;
    case RUN_MAP:
        json_object_begin_flat(&w->json);
        s = write_items(w, &v->items, at, left);
        if (s == TARE_OK) json_object_end(&w->json);
        return s;
    }
    return fault(w, at, "value of no known kind");
}

static tare_status write_items(struct writing *w, const struct run_map *m, const struct path *at, int left)
{
    if (left == 0) return fault(w, at, "nested too deeply");
    for (size_t i = 0; i < m->n; i++) {
        const struct run_entry *e = &m->at[i];
        struct path here = {at, e->key, i};
        if (e->key && !field_key_ok(e->key)) return fault(w, at, "a key is not short printable ASCII");
        if (e->key) json_key(&w->json, e->key);
        tare_status s = write_value(w, &e->value, &here, left - 1);
        if (s < 0) return s;
    }
    return TARE_OK;
}

static tare_status write_map(struct writing *w, const struct run_field *f, const struct run_map *m,
                             const struct path *at)
{
    for (size_t i = 0; i < m->n; i++) {
        if (!m->at[i].key) return fault(w, at, "an entry has no key");
        if (f->kind == FIELD_REASONS && m->at[i].value.kind != RUN_TEXT) return fault(w, at, "not a text");
    }
    if (f->flags & FIELD_FLAT) {
        json_object_begin_flat(&w->json);
    } else {
        json_object_begin(&w->json);
    }
    tare_status s = write_items(w, m, at, RUN_MAP_DEPTH + 1);
    if (s == TARE_OK) json_object_end(&w->json);
    return s;
}

/* ---- counts and samples ---- */

static tare_status write_counts(struct writing *w, const void *p, const struct path *at)
{
    uint64_t *counts;
    size_t n;
    memcpy(&counts, p, sizeof counts);
    memcpy(&n, (const char *)p + sizeof counts, sizeof n);
    if (n > RUN_BUCKETS_MAX) return fault(w, at, "too many buckets");
    json_array_begin_flat(&w->json);
    for (size_t i = 0; i < n; i++) {
        struct path here = {at, NULL, i};
        tare_status s = write_u64(w, counts[i], &here);
        if (s < 0) return s;
    }
    json_array_end(&w->json);
    return TARE_OK;
}

static tare_status write_samples(struct writing *w, const struct run_samples *raw, const struct path *at)
{
    struct buf text = BUF_INIT;
    if (!raw->known) {
        json_put_null(&w->json);
        return TARE_OK;
    }
    w->n_samples += raw->n;
    if (raw->n > raw->cap || raw->cap > RUN_SAMPLES_MAX) return fault(w, at, "more samples than the cap");
    if (w->n_samples > RUN_SAMPLES_ALL_MAX) return fault(w, at, "too many samples in one document");
    for (size_t i = 0; i < raw->n; i++) {
        if (raw->ns[i] > INT64_MAX) return fault(w, at, "a sample is above 9223372036854775807");
    }
    tare_status s = samples_encode(raw->ns, raw->n, samples_codec(), &text, w->err);
    if (s == TARE_OK) {
        struct run_packed packed = {samples_codec(), raw->kept, raw->cap, raw->n, text.data};
        json_object_begin(&w->json);
        s = write_object(w, field_packed, &packed, at);
        if (s == TARE_OK) json_object_end(&w->json);
    }
    buf_release(&text);
    return s;
}

/* ---- objects and lists ---- */

static tare_status write_list(struct writing *w, const struct run_field *f, const void *p,
                              const struct path *at)
{
    void **items;
    size_t n;
    memcpy(&items, p, sizeof items);
    memcpy(&n, (const char *)p + sizeof items, sizeof n);
    if (n == 0 && !(f->flags & FIELD_REQUIRED)) {
        json_put_null(&w->json);
        return TARE_OK;
    }
    if (n > RUN_LIST_MAX) return fault(w, at, "too many items");
    json_array_begin(&w->json);
    for (size_t i = 0; i < n; i++) {
        struct path here = {at, NULL, i};
        json_object_begin(&w->json);
        tare_status s = write_object(w, f->type, items[i], &here);
        if (s < 0) return s;
        json_object_end(&w->json);
    }
    json_array_end(&w->json);
    return TARE_OK;
}

static tare_status write_sub(struct writing *w, const struct run_field *f, const void *p,
                             const struct path *at)
{
    if (!(f->flags & FIELD_REQUIRED) && !*(const bool *)p) {
        json_put_null(&w->json);
        return TARE_OK;
    }
    if (f->flags & FIELD_FLAT) {
        json_object_begin_flat(&w->json);
    } else {
        json_object_begin(&w->json);
    }
    tare_status s = write_object(w, f->type, p, at);
    if (s == TARE_OK) json_object_end(&w->json);
    return s;
}

static tare_status write_field(struct writing *w, const struct run_field *f, const void *p,
                               const struct path *at)
{
    switch (f->kind) {
    case FIELD_STRING: return write_string(w, f, *(const char *const *)p, at);
    case FIELD_U64:
    case FIELD_I64:
    case FIELD_F64:
    case FIELD_BOOL: return write_number(w, f, p, at);
    case FIELD_OBJECT: return write_sub(w, f, p, at);
    case FIELD_LIST: return write_list(w, f, p, at);
    case FIELD_MAP:
    case FIELD_REASONS: return write_map(w, f, p, at);
    case FIELD_COUNTS: return write_counts(w, p, at);
    case FIELD_SAMPLES: return write_samples(w, p, at);
    }
    return fault(w, at, "field of no known kind");
}

/* The fields, between braces that the caller writes. */
static tare_status write_object(struct writing *w, const struct run_type *t, const void *obj,
                                const struct path *at)
{
    const char *base = obj, *cause = t->check ? t->check(obj) : NULL;
    if (cause) return fault(w, at, cause);
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct run_field *f = &t->fields[i];
        struct path here = {at, f->key, 0};
        json_key(&w->json, f->key);
        tare_status s = write_field(w, f, base + f->offset, &here);
        if (s < 0) return s;
    }
    return TARE_OK;
}

static tare_status write_document(struct writing *w, const void *obj, const struct arena *arena,
                                  struct buf *out)
{
    const struct path root = {NULL, NULL, 0};
    if (arena->failed)
        return error_set(w->err, TARE_NOMEM, "out of memory while the %s was recorded", w->form->what);
    json_init(&w->json, out, JSON_STYLE_PRETTY);
    json_object_begin(&w->json);
    json_kv_string(&w->json, "schema", w->form->schema);
    tare_status s = write_object(w, w->form->type, obj, &root);
    if (s < 0) return s;
    json_object_end(&w->json);
    s = json_finish(&w->json, w->err);
    if (s == TARE_OK && out->len > RUN_BYTES_MAX) s = fault(w, &root, "document too large");
    return s;
}

tare_status fields_write(const struct run_form *form, const void *obj, const struct arena *arena,
                         struct buf *out, tare_error *err)
{
    struct buf text = BUF_INIT;
    struct writing w = {.form = form, .err = err};
    tare_status s = write_document(&w, obj, arena, &text);
    if (s == TARE_OK) {
        buf_add(out, text.data, text.len);
        s = buf_status(out, err);
    }
    buf_release(&text);
    return s;
}

tare_status run_write(const struct run *r, struct buf *out, tare_error *err)
{
    return fields_write(&run_form, r, &r->arena, out, err);
}

tare_status run_write_watched(const struct run *r, struct buf *out, tare_error *err)
{
    struct run_watched w = {.watch = r->cases.at[0]->watch};
    w.findings.at = r->findings.at;
    w.findings.n = r->findings.n;
    return fields_write(&watched_form, &w, &r->arena, out, err);
}
