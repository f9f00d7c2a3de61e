/* SPDX-License-Identifier: MIT
 * ab_spec.c - see ab.h. */
#include "bench/ab.h"

#include <string.h>

#include <jansson.h>

#include "core/json.h"

/* ---- the fields, each once ---- */

enum spec_kind { SPEC_TEXT, SPEC_INT, SPEC_INT32, SPEC_BOOL, SPEC_SEED };

struct spec_row {
    const char *key;
    enum spec_kind kind;
    size_t offset;
};

#define ROW(key, kind, member) {key, SPEC_##kind, offsetof(struct ab_spec, member)}
static const struct spec_row rows[] = {
    ROW("path", TEXT, model.path),
    ROW("runtime", TEXT, model.runtime),
    ROW("inputs", TEXT, model.inputs),
    ROW("optimization", INT32, model.optimization),
    ROW("no_arena", BOOL, model.no_arena),
    ROW("no_pattern", BOOL, model.no_pattern),
    ROW("parallel", BOOL, model.parallel),
    ROW("fix_dims", BOOL, model.fix_dims),
    ROW("batch", INT, params.batch),
    ROW("seq", INT, params.seq),
    ROW("threads", INT, params.threads),
    ROW("provider", TEXT, params.provider),
    ROW("io", TEXT, params.io),
    ROW("seed", SEED, params.seed),
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* ---- writing ---- */

static void write_row(struct json *j, const struct spec_row *r, const struct ab_spec *s)
{
    const char *at = (const char *)s + r->offset;
    if (r->kind == SPEC_TEXT) json_kv_string(j, r->key, *(const char *const *)(const void *)at);
    if (r->kind == SPEC_INT) json_kv_int(j, r->key, *(const int64_t *)(const void *)at);
    if (r->kind == SPEC_INT32) json_kv_int(j, r->key, *(const int *)(const void *)at);
    if (r->kind == SPEC_BOOL) json_kv_bool(j, r->key, *(const bool *)at);
    if (r->kind == SPEC_SEED) json_kv_int(j, r->key, (int64_t) * (const uint64_t *)(const void *)at);
}

tare_status ab_spec_write(const struct ab_spec *s, struct buf *out, tare_error *err)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    for (size_t i = 0; i < N_ROWS; i++) write_row(&j, &rows[i], s);
    json_key(&j, "session_config");
    json_array_begin(&j);
    for (size_t i = 0; i < s->model.n_session_config; i++) json_put_string(&j, s->model.session_config[i]);
    json_array_end(&j);
    json_key(&j, "dims");
    json_array_begin(&j);
    for (size_t i = 0; i < s->params.n_dims; i++) {
        json_array_begin(&j);
        json_put_string(&j, s->params.dims[i].name);
        json_put_int(&j, s->params.dims[i].value);
        json_array_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    return json_finish(&j, err);
}

/* ---- reading ---- */

static tare_status refuse_key(const char *key, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "specification of a worker: %s is not what it should be", key);
}

static tare_status read_row(const struct spec_row *r, json_t *v, struct ab_spec *s, struct arena *a,
                            tare_error *err)
{
    char *at = (char *)s + r->offset;
    if (!v || json_is_null(v)) return TARE_OK;
    bool text = r->kind == SPEC_TEXT, yes = r->kind == SPEC_BOOL, good = json_is_integer(v);
    if (text) good = json_is_string(v);
    if (yes) good = json_is_boolean(v);
    if (!good) return refuse_key(r->key, err);
    if (text) *(const char **)(void *)at = arena_str(a, json_string_value(v));
    if (yes) *(bool *)at = json_is_true(v);
    if (r->kind == SPEC_INT) *(int64_t *)(void *)at = json_integer_value(v);
    if (r->kind == SPEC_INT32) *(int *)(void *)at = (int)json_integer_value(v);
    if (r->kind == SPEC_SEED) *(uint64_t *)(void *)at = (uint64_t)json_integer_value(v);
    return TARE_OK;
}

static tare_status read_config(json_t *list, struct ab_spec *s, struct arena *a, tare_error *err)
{
    size_t n = json_array_size(list);
    const char **items = arena_new(a, n, sizeof *items);
    for (size_t i = 0; items && i < n; i++) {
        json_t *v = json_array_get(list, i);
        if (!json_is_string(v)) return refuse_key("session_config", err);
        items[i] = arena_str(a, json_string_value(v));
    }
    s->model.session_config = items;
    s->model.n_session_config = items ? n : 0;
    return TARE_OK;
}

static tare_status read_dims(json_t *list, struct ab_spec *s, struct arena *a, tare_error *err)
{
    size_t n = json_array_size(list);
    struct dim_value *dims = arena_new(a, n, sizeof *dims);
    for (size_t i = 0; dims && i < n; i++) {
        json_t *pair = json_array_get(list, i), *name = json_array_get(pair, 0), *v = json_array_get(pair, 1);
        if (!json_is_string(name) || !json_is_integer(v)) return refuse_key("dims", err);
        dims[i] = (struct dim_value){arena_str(a, json_string_value(name)), json_integer_value(v)};
    }
    s->params.dims = dims;
    s->params.n_dims = dims ? n : 0;
    return TARE_OK;
}

static tare_status read_all(struct ab_spec *s, struct arena *a, json_t *root, tare_error *err)
{
    tare_status status = json_is_object(root) ? TARE_OK : refuse_key("it", err);
    for (size_t i = 0; status == TARE_OK && i < N_ROWS; i++)
        status = read_row(&rows[i], json_object_get(root, rows[i].key), s, a, err);
    if (status == TARE_OK) status = read_config(json_object_get(root, "session_config"), s, a, err);
    if (status == TARE_OK) status = read_dims(json_object_get(root, "dims"), s, a, err);
    if (status == TARE_OK && !s->model.path) status = refuse_key("path", err);
    if (status == TARE_OK && a->failed) status = error_nomem(err, "a specification");
    return status;
}

tare_status ab_spec_read(struct ab_spec *s, struct arena *a, const char *text, tare_error *err)
{
    json_error_t e;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    if (!root) return error_set(err, TARE_FORMAT, "specification of a worker: %s", e.text);
    *s = (struct ab_spec){.model = {.optimization = -1}};
    tare_status status = read_all(s, a, root, err);
    json_decref(root);
    if (status == TARE_OK) {
        s->params.workers = 1;
        s->params.has_neighbours = true; /* another process works while this one waits: do not spin */
    }
    return status;
}
