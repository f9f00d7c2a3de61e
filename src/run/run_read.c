/* SPDX-License-Identifier: MIT
 * run_read.c - a run document from JSON text that may be hostile: every field is checked by the rows of
 * fields.c, and every refusal names the file, the place and the cause. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "core/json_tree.h"
#include "core/looks.h"
#include "run/fields.h"
#include "run/run.h"
#include "run/raw_samples.h"

struct reading {
    const struct run_form *form;
    const char *name;
    struct arena *arena;
    size_t n_samples; /* raw samples so far */
    size_t n_keys;    /* of free-form maps so far */
    bool many_keys;   /* this map has a reason for each null: as many as there are items in a list */
    tare_error *err;
};

static tare_status read_object(struct reading *in, const struct run_type *t, const struct json_node *v,
                               void *obj, const struct path *at);

__attribute__((format(printf, 3, 4))) static tare_status fault(struct reading *in, const struct path *at,
                                                               const char *format, ...)
{
    char where[256], cause[256];
    va_list ap;
    va_start(ap, format);
    vsnprintf(cause, sizeof cause, format, ap);
    va_end(ap);
    path_text(at, where, sizeof where);
    return error_set(in->err, TARE_FORMAT, "%s: %s%s%s", in->name, where, *where ? ": " : "", cause);
}

static tare_status no_memory(struct reading *in)
{
    return error_set(in->err, TARE_NOMEM, "%s: out of memory", in->name);
}

static const char *kind_of(const struct json_node *v)
{
    switch (v->kind) {
    case TREE_OBJECT: return "an object";
    case TREE_ARRAY: return "an array";
    case TREE_STRING: return "a string";
    case TREE_INTEGER:
    case TREE_REAL: return "a number";
    case TREE_TRUE:
    case TREE_FALSE: return "a boolean";
    case TREE_NULL: return "null";
    }
    return "something else";
}

static tare_status expected(struct reading *in, const struct path *at, const char *what,
                            const struct json_node *v)
{
    return fault(in, at, "expected %s, got %s", what, kind_of(v));
}

/* ---- single values ---- */

static tare_status read_string(struct reading *in, const struct run_field *f, const struct json_node *v,
                               const char **out, const struct path *at)
{
    if (v->kind != TREE_STRING) return expected(in, at, "a string", v);
    if (!field_text_ok(f->rule, v->s))
        return fault(in, at, "expected %s, got \"%.40s\"", f->rule->expect, v->s);
    *out = v->s;
    return TARE_OK;
}

/* As in JSON Schema, 5.0 and 5e0 are integers. */
static tare_status read_integer(struct reading *in, const struct json_node *v, int64_t *out,
                                const struct path *at)
{
    if (v->kind == TREE_INTEGER) {
        *out = v->i;
        return TARE_OK;
    }
    if (v->kind != TREE_REAL) return expected(in, at, "a number", v);
    double d = v->d;
    if (d != floor(d)) return fault(in, at, "expected an integer, got a fraction");
    if (d >= 0x1p63 || d < -0x1p63) return fault(in, at, "does not fit 64 bits");
    *out = (int64_t)d;
    return TARE_OK;
}

static tare_status read_count(struct reading *in, const struct json_node *v, uint64_t *out,
                              const struct path *at)
{
    int64_t i = 0;
    tare_status s = read_integer(in, v, &i, at);
    if (s < 0) return s;
    if (i < 0) return fault(in, at, "must not be negative");
    *out = (uint64_t)i;
    return TARE_OK;
}

/* Of U64 and I64: into the number itself, or into one with `known` before it. */
static tare_status read_whole(struct reading *in, const struct run_field *f, const struct json_node *v,
                              void *p, const struct path *at)
{
    bool plain = f->flags & FIELD_PLAIN;
    void *to = plain ? p : (char *)p + offsetof(struct known_u64, v);
    tare_status s = f->kind == FIELD_U64 ? read_count(in, v, to, at) : read_integer(in, v, to, at);
    if (!plain) *(bool *)p = s == TARE_OK;
    return s;
}
static_assert(offsetof(struct known_u64, v) == offsetof(struct known_i64, v), "one place for both");

static tare_status read_f64(struct reading *in, const struct run_field *f, const struct json_node *v, void *p,
                            const struct path *at)
{
    uint64_t whole = 0;
    tare_status s = f->flags & FIELD_WHOLE ? read_count(in, v, &whole, at) : TARE_OK;
    if (s < 0) return s;
    if (v->kind != TREE_INTEGER && v->kind != TREE_REAL) return expected(in, at, "a number", v);
    double d = v->kind == TREE_REAL ? v->d : (double)v->i;
    const char *cause = field_number_fault(f, d);
    if (cause) return fault(in, at, "%s", cause);
    if (f->flags & FIELD_PLAIN) {
        *(double *)p = d;
    } else {
        *(struct known_f64 *)p = known_f64(d);
    }
    return TARE_OK;
}

/* ---- free-form maps ---- */

static tare_status read_map(struct reading *in, const struct json_node *v, struct run_map *out,
                            const struct path *at, int left);

static tare_status read_list_value(struct reading *in, const struct json_node *v, struct run_map *out,
                                   const struct path *at, int left);

static tare_status read_value(struct reading *in, const struct json_node *v, struct run_value *out,
                              const struct path *at, int left)
{
    switch (v->kind) {
    case TREE_NULL: out->kind = RUN_NULL; return TARE_OK;
    case TREE_TRUE:
    case TREE_FALSE:
        out->kind = RUN_BOOL;
        out->yes = v->kind == TREE_TRUE;
        return TARE_OK;
    case TREE_INTEGER:
        out->kind = RUN_INT;
        out->i = v->i;
        return TARE_OK;
    case TREE_REAL:
        out->kind = RUN_REAL;
        out->d = v->d;
        return TARE_OK;
    case TREE_STRING:
        out->kind = RUN_TEXT;
        out->s = v->s;
        return TARE_OK;
    case TREE_ARRAY: out->kind = RUN_LIST; return read_list_value(in, v, &out->items, at, left);
    case TREE_OBJECT: out->kind = RUN_MAP; return read_map(in, v, &out->items, at, left);
    }
    return fault(in, at, "value of no known kind");
}

/* As arena_grow() would have it: what was read can be added to. */
static size_t room_for(size_t n)
{
    size_t cap = 2;
    while (cap < n) cap *= 2;
    return cap;
}

static tare_status read_list_value(struct reading *in, const struct json_node *v, struct run_map *out,
                                   const struct path *at, int left)
{
    if (left == 0) return fault(in, at, "nested too deeply");
    out->n = v->items.n;
    size_t i = 0;
    if (out->n > RUN_LIST_MAX)
        return fault(in, at, "%zu items, at most %d are allowed", out->n, RUN_LIST_MAX);
    out->at = arena_new(in->arena, room_for(out->n), sizeof *out->at);
    if (!out->at) return no_memory(in);
    for (const struct json_node *item = v->items.first; item; item = item->next, i++) {
        struct path here = {at, NULL, i};
        tare_status s = read_value(in, item, &out->at[i].value, &here, left - 1);
        if (s < 0) return s;
    }
    return TARE_OK;
}

/* Not through run_map_set(): the parser has refused doubled keys already, and a search per key is slow. */
static tare_status check_keys(struct reading *in, size_t n, size_t max, const struct path *at)
{
    in->n_keys += n;
    if (n > max) return fault(in, at, "%zu keys, at most %zu are allowed", n, max);
    if (in->n_keys > RUN_KEYS_ALL_MAX)
        return fault(in, at, "more than %zu keys in one document", RUN_KEYS_ALL_MAX);
    return TARE_OK;
}

/* `left` bounds the depth of what a file may nest, and check_keys() the number of keys over the whole
 * document: both keep a small hostile file from costing much. */
static tare_status read_map(struct reading *in, const struct json_node *v, struct run_map *out,
                            const struct path *at, int left)
{
    size_t i = 0;
    if (left == 0) return fault(in, at, "nested too deeply");
    out->n = v->items.n;
    tare_status s = check_keys(in, out->n, in->many_keys ? RUN_LIST_MAX : RUN_MAP_MAX, at);
    if (s < 0) return s;
    out->at = arena_new(in->arena, room_for(out->n), sizeof *out->at);
    if (!out->at) return no_memory(in);
    for (const struct json_node *item = v->items.first; item; item = item->next) {
        struct run_entry *e = &out->at[i++];
        struct path here = {at, item->key, 0};
        if (!field_key_ok(item->key))
            return fault(in, at, "a key is not 1 to %d characters of printable ASCII", RUN_KEY_MAX);
        e->key = item->key;
        s = read_value(in, item, &e->value, &here, left - 1);
        if (s < 0) return s;
    }
    return TARE_OK;
}

static tare_status read_map_field(struct reading *in, const struct run_field *f, const struct json_node *v,
                                  struct run_map *out, const struct path *at)
{
    if (v->kind != TREE_OBJECT) return expected(in, at, "an object", v);
    in->many_keys = f->kind == FIELD_REASONS;
    tare_status s = read_map(in, v, out, at, RUN_MAP_DEPTH + 1);
    in->many_keys = false;
    if (s < 0 || f->kind == FIELD_MAP) return s;
    for (size_t i = 0; i < out->n; i++) {
        struct path here = {at, out->at[i].key, 0};
        if (out->at[i].value.kind != RUN_TEXT) return fault(in, &here, "expected a string");
    }
    return TARE_OK;
}

/* ---- counts and samples ---- */

static tare_status read_counts(struct reading *in, const struct json_node *v, void *p, const struct path *at)
{
    if (v->kind != TREE_ARRAY) return expected(in, at, "an array", v);
    size_t n = v->items.n, i = 0;
    if (n > RUN_BUCKETS_MAX) return fault(in, at, "%zu buckets, at most %d are allowed", n, RUN_BUCKETS_MAX);
    uint64_t *counts = arena_new(in->arena, n, sizeof *counts);
    if (!counts) return no_memory(in);
    for (const struct json_node *item = v->items.first; item; item = item->next, i++) {
        struct path here = {at, NULL, i};
        tare_status s = read_count(in, item, &counts[i], &here);
        if (s < 0) return s;
    }
    memcpy(p, &counts, sizeof counts);
    memcpy((char *)p + sizeof counts, &n, sizeof n);
    return TARE_OK;
}

/* The number of samples is bounded over the whole document before any is unpacked: a few bytes can claim
 * millions. */
static tare_status read_samples(struct reading *in, const struct json_node *v, struct run_samples *raw,
                                const struct path *at)
{
    struct run_packed k = {0};
    struct path data = {at, "data", 0};
    tare_error cause = TARE_ERROR_INIT;
    if (v->kind != TREE_OBJECT) return expected(in, at, "an object", v);
    tare_status s = read_object(in, field_packed, v, &k, at);
    if (s < 0) return s;
    in->n_samples += k.count;
    if (in->n_samples > RUN_SAMPLES_ALL_MAX) return fault(in, at, "too many samples in one document");
    struct samples_text text = {k.codec, k.data, k.count};
    s = samples_decode(in->arena, &text, &raw->ns, &cause);
    if (s == TARE_NOMEM) return no_memory(in);
    if (s < 0) return fault(in, &data, "%s", cause.text);
    raw->kept = k.kept;
    raw->cap = k.cap;
    raw->n = k.count;
    raw->known = true;
    return TARE_OK;
}

/* ---- objects and lists ---- */

/* The array grows as items are read and is not made in one piece for the number claimed. Items are
 * pointers, so that one stays where it is when others are added. */
static tare_status read_list(struct reading *in, const struct run_field *f, const struct json_node *v,
                             void *p, const struct path *at)
{
    if (v->kind != TREE_ARRAY) return expected(in, at, "an array", v);
    size_t n = v->items.n, i = 0;
    if (n > RUN_LIST_MAX) return fault(in, at, "%zu items, at most %d are allowed", n, RUN_LIST_MAX);
    void **items = NULL;
    for (const struct json_node *item = v->items.first; item; item = item->next, i++) {
        struct path here = {at, NULL, i};
        if (item->kind != TREE_OBJECT) return expected(in, &here, "an object", item);
        if (!(items = arena_grow(in->arena, items, i, sizeof *items))) return no_memory(in);
        if (!(items[i] = arena_new(in->arena, 1, f->type->size))) return no_memory(in);
        tare_status s = read_object(in, f->type, item, items[i], &here);
        if (s < 0) return s;
    }
    memcpy(p, &items, sizeof items);
    memcpy((char *)p + sizeof items, &n, sizeof n);
    return TARE_OK;
}

static tare_status read_sub(struct reading *in, const struct run_field *f, const struct json_node *v, void *p,
                            const struct path *at)
{
    if (v->kind != TREE_OBJECT) return expected(in, at, "an object", v);
    if (!(f->flags & FIELD_REQUIRED)) *(bool *)p = true;
    return read_object(in, f->type, v, p, at);
}

static tare_status read_field(struct reading *in, const struct run_field *f, const struct json_node *v,
                              void *p, const struct path *at)
{
    switch (f->kind) {
    case FIELD_STRING: return read_string(in, f, v, p, at);
    case FIELD_U64:
    case FIELD_I64: return read_whole(in, f, v, p, at);
    case FIELD_F64: return read_f64(in, f, v, p, at);
    case FIELD_BOOL:
        if (v->kind != TREE_TRUE && v->kind != TREE_FALSE) return expected(in, at, "a boolean", v);
        *(struct known_bool *)p = known_bool(v->kind == TREE_TRUE);
        return TARE_OK;
    case FIELD_OBJECT: return read_sub(in, f, v, p, at);
    case FIELD_LIST: return read_list(in, f, v, p, at);
    case FIELD_MAP:
    case FIELD_REASONS: return read_map_field(in, f, v, p, at);
    case FIELD_COUNTS: return read_counts(in, v, p, at);
    case FIELD_SAMPLES: return read_samples(in, v, p, at);
    }
    return fault(in, at, "field of no known kind");
}

static tare_status refuse_strangers(struct reading *in, const struct run_type *t, const struct json_node *v,
                                    const struct path *at)
{
    for (const struct json_node *m = v->items.first; m; m = m->next)
        if (!field_find(t, m->key)) return fault(in, at, "unknown field \"%.40s\"", m->key);
    return TARE_OK;
}

/* `obj` is zeroed. Absent and null are the same: unknown. */
static tare_status read_object(struct reading *in, const struct run_type *t, const struct json_node *v,
                               void *obj, const struct path *at)
{
    tare_status s = t->closed ? refuse_strangers(in, t, v, at) : TARE_OK;
    const struct json_node *hint = NULL; /* documents of ours are in the order of the rows */
    for (size_t i = 0; i < t->n_fields && s == TARE_OK; i++) {
        const struct run_field *f = &t->fields[i];
        struct path here = {at, f->key, 0};
        const struct json_node *item = json_tree_get(v, f->key, &hint);
        bool map = f->kind == FIELD_MAP || f->kind == FIELD_REASONS; /* empty, never null */
        if (!item && (f->flags & FIELD_REQUIRED)) return fault(in, &here, "missing");
        if (!item || (item->kind == TREE_NULL && !map && !(f->flags & FIELD_REQUIRED))) continue;
        s = read_field(in, f, item, (char *)obj + f->offset, &here);
    }
    if (s < 0) return s;
    const char *cause = t->check ? t->check(obj) : NULL;
    return cause ? fault(in, at, "%s", cause) : TARE_OK;
}

/* ---- the whole ---- */

/* "tare.run/1", or a newer minor version of it, "tare.run/1.3". */
static tare_status check_schema(struct reading *in, const struct json_node *root)
{
    const char *ours = in->form->schema;
    size_t whole = strlen(ours), stem = (size_t)(strrchr(ours, '/') - ours) + 1;
    const struct json_node *hint = NULL, *v = json_tree_get(root, "schema", &hint);
    const char *s = v && v->kind == TREE_STRING ? v->s : NULL;
    if (!v) return error_set(in->err, TARE_FORMAT, "%s: schema: missing; not a %s", in->name, in->form->what);
    if (!s) return error_set(in->err, TARE_FORMAT, "%s: schema: expected a string", in->name);
    if (strncmp(s, ours, whole) == 0) {
        const char *minor = s + whole;
        size_t digits = *minor == '.' ? strspn(minor + 1, "0123456789") : 0;
        if (*minor == 0 || (digits && minor[1 + digits] == 0)) return TARE_OK;
    }
    if (strncmp(s, ours, stem) == 0 && strtol(s + stem, NULL, 10) > 1)
        return error_set(in->err, TARE_FORMAT, "%s: schema %.40s is newer than this tare reads (%s)",
                         in->name, s, ours);
    return error_set(in->err, TARE_FORMAT, "%s: schema: expected %s, got \"%.40s\"", in->name, ours, s);
}

/* jansson has the better words: it reads again what was refused. It takes a refused allocation for a syntax error of
 * the text, at some places. */
static tare_status refuse_text(struct reading *in, const void *bytes, size_t len)
{
    json_error_t e;
    errno = 0;
    json_t *whole = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &e);
    json_decref(whole);
    if (whole)
        return error_set(in->err, TARE_FORMAT, "%s: has a NUL byte", in->name); /* behind a number: unseen */
    if (errno == ENOMEM) return no_memory(in);
    const char *other = len ? looks_like(bytes, len, LOOKS_JSON) : "the file is empty";
    if (other) return error_set(in->err, TARE_FORMAT, "%s: no %s: %s", in->name, in->form->what, other);
    return error_set(in->err, TARE_FORMAT, "%s: line %d, column %d: %s", in->name, e.line, e.column, e.text);
}

/* Texts stay in the document's arena: no string is copied for itself. */
static tare_status parse(struct reading *in, struct arena *nodes, const struct fields_text *text,
                         const struct json_node **root)
{
    if (text->len > RUN_BYTES_MAX)
        return error_set(in->err, TARE_FORMAT, "%s: larger than a %s may be (%zu MiB)", in->name,
                         in->form->what, RUN_BYTES_MAX >> 20);
    tare_status s = json_tree_read((struct json_room){nodes, in->arena}, text->bytes, text->len, root);
    if (s == TARE_NOMEM) return no_memory(in);
    if (s != TARE_OK) return refuse_text(in, text->bytes, text->len);
    if ((*root)->kind == TREE_OBJECT) return TARE_OK;
    return error_set(in->err, TARE_FORMAT, "%s: expected an object, got an array", in->name);
}

tare_status fields_read(const struct run_form *form, const struct fields_text *text, void *obj,
                        struct arena *arena, tare_error *err)
{
    struct reading in = {.form = form, .name = text->name, .arena = arena, .err = err};
    const struct path root_path = {NULL, NULL, 0};
    const struct json_node *root = NULL;
    struct arena nodes = ARENA_INIT;
    tare_status s = parse(&in, &nodes, text, &root);
    if (s == TARE_OK) s = check_schema(&in, root);
    if (s == TARE_OK) s = read_object(&in, form->type, root, obj, &root_path);
    arena_release(&nodes);
    return s;
}

static struct known_f64 old_rate(const struct run_value *v)
{
    if (v && v->kind == RUN_REAL && v->d >= 0) return known_f64(v->d);
    if (v && v->kind == RUN_INT && v->i >= 0) return known_f64((double)v->i);
    return (struct known_f64){0};
}

/* What is judged of `stability`, `open_loop` and `nan_outputs` were settings and parameters in documents of 0.1.0. */
static void take_old_settings(struct run *r)
{
    const struct run_value *restless = run_map_get(&r->config, "never_steady");
    const struct run_value *open = run_map_get(&r->config, "open_loop");
    for (size_t i = 0; i < r->cases.n; i++) {
        struct run_case *c = r->cases.at[i];
        const char *key = *c->name ? c->name : "-";
        if (restless && restless->kind == RUN_MAP && run_map_get(&restless->items, key)) {
            c->stability.known = true;
            c->stability.steady = known_bool(false);
        }
        const struct run_value *bad = run_map_get(&c->params, "nan_outputs");
        if (bad && bad->kind == RUN_INT && bad->i >= 0) {
            c->nan_outputs = known_u64((uint64_t)bad->i);
            run_map_drop(&c->params, "nan_outputs");
        }
        const struct run_value *v = open && open->kind == RUN_MAP ? run_map_get(&open->items, key) : NULL;
        if (!v || v->kind != RUN_MAP) continue;
        const struct run_value *offered = run_map_get(&v->items, "offered");
        const struct run_value *achieved = run_map_get(&v->items, "achieved");
        const struct run_value *overloaded = run_map_get(&v->items, "overloaded");
        c->open_loop.known = true;
        c->open_loop.offered = old_rate(offered);
        c->open_loop.achieved = old_rate(achieved);
        if (overloaded && overloaded->kind == RUN_BOOL) c->open_loop.overloaded = known_bool(overloaded->yes);
    }
}

tare_status run_read(struct run *r, const char *name, const void *bytes, size_t len, tare_error *err)
{
    struct run fresh = {.arena = ARENA_INIT};
    struct fields_text text = {name, bytes, len};
    tare_status s = fields_read(&run_form, &text, &fresh, &fresh.arena, err);
    if (s == TARE_OK) {
        take_old_settings(&fresh);
        *r = fresh;
    } else {
        arena_release(&fresh.arena);
    }
    return s;
}

/* ---- files ---- */

/* Read rather than mapped: a file that shrinks meanwhile must be an error, not a signal. */
static tare_status read_all(int fd, const char *path, struct buf *to, tare_error *err)
{
    for (;;) {
        if (buf_reserve(to, 1 << 16) < 0) return error_set(err, TARE_NOMEM, "%s: out of memory", path);
        ssize_t n = read(fd, to->data + to->len, 1 << 16);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_errno(err, "%s: cannot read", path);
        if (n == 0) return TARE_OK;
        to->len += (size_t)n;
        if (to->len > RUN_BYTES_MAX)
            return error_set(err, TARE_FORMAT, "%s: larger than a run document may be (%zu MiB)", path,
                             RUN_BYTES_MAX >> 20);
    }
}

tare_status run_load(struct run *r, const char *path, tare_error *err)
{
    struct buf text = BUF_INIT;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return error_errno(err, "%s: cannot open", path);
    tare_status s = read_all(fd, path, &text, err);
    close(fd);
    if (s == TARE_OK) s = run_read(r, path, text.data, text.len, err);
    buf_release(&text);
    return s;
}
