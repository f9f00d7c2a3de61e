/* SPDX-License-Identifier: MIT
 * run_write.c - a run document as JSON text, by the rows of fields.c, and into a file. Refuses what run_read() would
 * refuse, so that what is on disk can always be read back. Never half a file, never over another. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "run/fields.h"
#include "run/raw_samples.h"
#include "run/run.h"

struct writing {
    struct json json;
    const struct run_form *form;
    size_t page_step; /* see struct fields_to */
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

/* The brace of an object or a map, as its row has it. */
static void begin_object(struct writing *w, const struct run_field *f)
{
    if (f->flags & FIELD_FLAT)
        json_object_begin_flat(&w->json);
    else
        json_object_begin(&w->json);
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

/* A number that is not plain is a struct that begins with `known`, whatever its kind: one look tells
 * whether it is null. The writer refuses what the reader would refuse, so that no document is written that
 * cannot be read again. */
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
    begin_object(w, f);
    size_t max = f->kind == FIELD_REASONS ? RUN_LIST_MAX : RUN_MAP_MAX;
    tare_status s = m->n > max ? fault(w, at, "too many keys") : TARE_OK;
    if (s == TARE_OK) s = write_items(w, m, at, RUN_MAP_DEPTH + 1);
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

/* Limits are those of the reader. A sample above INT64_MAX would not be an integer in JSON any more. */
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

/* For a page: the values themselves, and which of all they are: "all", "random", "one in 7 of all". */
static void write_page_samples(struct writing *w, const struct run_samples *raw)
{
    struct buf kept = BUF_INIT;
    if (!raw->known) return;
    json_key(&w->json, "samples_ns");
    json_array_begin(&w->json);
    for (size_t i = 0; i < raw->n; i += w->page_step) json_put_uint(&w->json, raw->ns[i]);
    json_array_end(&w->json);
    if (w->page_step > 1) buf_printf(&kept, "one in %zu of ", w->page_step);
    buf_add_str(&kept, raw->kept ? raw->kept : "all");
    if (kept.failed) w->json.out->failed = 1;
    json_kv_string(&w->json, "samples_kept", kept.data);
    buf_release(&kept);
}

/* ---- objects and lists ---- */

/* Pointer and count are copied and not cast: each list is a struct of its own type. An empty list that
 * need not be there is null: unknown, not known to be empty. */
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
    begin_object(w, f);
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
        if (f->kind == FIELD_SAMPLES && w->page_step) {
            write_page_samples(w, (const void *)(base + f->offset));
            continue;
        }
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
    json_init(&w->json, out, w->page_step ? JSON_STYLE_COMPACT : JSON_STYLE_PRETTY);
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
                         struct fields_to to, tare_error *err)
{
    struct buf text = BUF_INIT;
    struct writing w = {.form = form, .page_step = to.page_step, .err = err};
    tare_status s = write_document(&w, obj, arena, &text);
    if (s == TARE_OK) {
        buf_add(to.out, text.data, text.len);
        s = buf_status(to.out, err);
    }
    buf_release(&text);
    return s;
}

tare_status run_write(const struct run *r, struct buf *out, tare_error *err)
{
    return fields_write(&run_form, r, &r->arena, (struct fields_to){out, 0}, err);
}

tare_status run_write_page(const struct run *r, size_t samples_max, struct buf *out, tare_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < r->cases.n; i++) n += r->cases.at[i]->samples_raw.n;
    size_t step = n <= samples_max ? 1 : (n + samples_max - 1) / samples_max;
    return fields_write(&run_form, r, &r->arena, (struct fields_to){out, step}, err);
}

tare_status run_write_watched(const struct run *r, struct buf *out, tare_error *err)
{
    struct run_watched w = {.watch = r->cases.at[0]->watch};
    w.findings.at = r->findings.at;
    w.findings.n = r->findings.n;
    return fields_write(&watched_form, &w, &r->arena, (struct fields_to){out, 0}, err);
}

/* ---- files ---- */

enum { NAME_PART_MAX = 80, TRIES_MAX = 10000 };

/* A text as part of a file name: letters, digits, '.', '_' and '-'; anything else becomes one '-'. */
static void add_name_part(struct buf *to, const char *text)
{
    size_t start = to->len;
    for (const char *p = text; *p && to->len - start < NAME_PART_MAX; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     *p == '.' || *p == '_' || *p == '-';
        char c = plain ? *p : '-';
        bool first = to->len == start;
        if (first && (c == '.' || c == '-')) continue;
        if (c == '-' && to->data[to->len - 1] == '-') continue;
        buf_add_char(to, c);
        if (to->failed) return;
    }
    if (to->len == start) buf_add_str(to, "unnamed");
}

/* "2026-11-15T02:17:21.123Z" as 20261115-021721; its form was checked when the document was written. */
static void add_stamp(struct buf *to, const char *t)
{
    buf_printf(to, "%.4s%.2s%.2s-%.2s%.2s%.2s", t, t + 5, t + 8, t + 11, t + 14, t + 17);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* `stem` plus "", "-2", "-3", ... plus ".json": the first that is free and stays free until we have it. */
static tare_status write_free_name(const char *stem, const struct buf *text, struct buf *path,
                                   tare_error *err)
{
    for (int i = 1; i <= TRIES_MAX; i++) {
        buf_clear(path);
        buf_add_str(path, stem);
        if (i > 1) buf_printf(path, "-%d", i);
        buf_add_str(path, ".json");
        tare_status s = buf_status(path, err);
        if (s < 0) return s;
        if (exists(path->data)) continue;
        s = file_write_atomic(path->data, text->data, text->len, FILE_NO_REPLACE, err);
        if (s == TARE_OK || !exists(path->data)) return s;
    }
    return error_set(err, TARE_IO, "%s.json: this name and %d more are taken", stem, TRIES_MAX - 1);
}

/* The folder is made; `stem` is to fit into `size` with a number and an ending. */
static tare_status make_stem(const struct run_file *f, size_t size, struct buf *stem, tare_error *err)
{
    tare_status s = file_make_folders(f->dir, err);
    if (s < 0) return s;
    buf_printf(stem, "%s/%s_", f->dir, f->kind);
    add_name_part(stem, f->subject);
    buf_add_char(stem, '_');
    add_stamp(stem, f->created);
    if ((s = buf_status(stem, err)) < 0) return s;
    if (size && stem->len + sizeof "-10000.json" > size)
        return error_set(err, TARE_INVALID, "%s.json: name too long", stem->data);
    return TARE_OK;
}

tare_status run_save_text(const struct run_file *f, const struct buf *text, char *path, size_t size,
                          tare_error *err)
{
    struct buf stem = BUF_INIT, name = BUF_INIT;
    tare_status s = make_stem(f, path ? size : 0, &stem, err);
    if (s == TARE_OK) s = write_free_name(stem.data, text, &name, err);
    if (s == TARE_OK && path) snprintf(path, size, "%s", name.data);
    buf_release(&name);
    buf_release(&stem);
    return s;
}

/* True: `name` with .json is free, and with `beside` it was, and is there now. */
static bool take(const struct buf *name, const char *beside)
{
    char path[4200];
    int n = snprintf(path, sizeof path, "%s.json", name->data);
    errno = n < (int)sizeof path ? EEXIST : ENAMETOOLONG;
    if (n >= (int)sizeof path || exists(path)) return false;
    snprintf(path, sizeof path, "%s%s", name->data, beside);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* Making the file beside it with O_EXCL is what claims the name: of two programs that start in the same
 * second one takes the next number. errno is take()'s and must not be touched in between. */
tare_status run_reserve(const struct run_file *f, const char *beside, char *out, size_t size, tare_error *err)
{
    struct buf stem = BUF_INIT;
    tare_status s = make_stem(f, size, &stem, err);
    size_t n = stem.len;
    for (int i = 1; s == TARE_OK && i <= TRIES_MAX; i++) {
        if (i > 1) buf_printf(&stem, "-%d", i);
        s = buf_status(&stem, err);
        if (s == TARE_OK && take(&stem, beside)) break;
        if (s == TARE_OK && errno != EEXIST) s = error_errno(err, "%s%s: cannot make it", stem.data, beside);
        if (s == TARE_OK && i == TRIES_MAX)
            s = error_set(err, TARE_IO, "%s: all such names are taken", stem.data);
        stem.len = n;
    }
    if (s == TARE_OK) snprintf(out, size, "%s", stem.data);
    buf_release(&stem);
    return s;
}

tare_status run_save(const struct run *r, const char *dir, char *path, size_t size, tare_error *err)
{
    struct buf text = BUF_INIT;
    struct run_file f = {dir, r->kind, r->subject.name, r->created};
    tare_status s = run_write(r, &text, err);
    if (s == TARE_OK) s = run_save_text(&f, &text, path, size, err);
    buf_release(&text);
    return s;
}
