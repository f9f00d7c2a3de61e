/* SPDX-License-Identifier: MIT
 * json.h - write JSON text onto a buf, token by token; commas, colons, quotes and indentation are the
 * writer's work. Always writes valid UTF-8 and valid JSON, whatever bytes it is given. Never reads JSON
 * (jansson does) and never allocates but through the buf, whose sticky failure json_finish() reports.
 *
 *     struct json j;
 *     json_init(&j, &out, JSON_STYLE_PRETTY);
 *     json_object_begin(&j);
 *     json_kv_string(&j, "name", "batch=16");
 *     json_key(&j, "sizes");
 *     json_array_begin(&j);
 *     json_put_int(&j, 16);
 *     json_array_end(&j);
 *     json_object_end(&j);
 *     return json_finish(&j, err);
 *
 * Values are json_put_*, because jansson, with which this shares files, has json_string and json_null.
 * A value where a key belongs, an end without its begin and the like are our own bugs: asserted. */
#ifndef CORE_JSON_H
#define CORE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

enum json_style {
    JSON_STYLE_COMPACT = 0, /* one line, no spaces: {"a":1,"b":[2,3]} */
    JSON_STYLE_PRETTY = 1   /* two spaces per level and a newline at the end */
};

#define JSON_MAX_DEPTH 64

struct json_level {
    char close; /* '}' or ']' */
    bool any;   /* something was written at this level */
    bool flat;  /* this level stays on one line */
};

struct json {
    struct buf *out;
    bool pretty;
    bool after_key; /* a key was written, its value not yet */
    bool done;      /* the one top-level value is complete */
    unsigned depth;
    struct json_level level[JSON_MAX_DEPTH];
};

void json_init(struct json *j, struct buf *out, enum json_style style);

/* All levels must be closed. Tells whether every byte found memory. */
tare_status json_finish(struct json *j, tare_error *err);

void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);

/* The same, but everything inside stays on one line when pretty: {"value": 1, "lo": 0, "hi": 2}. */
void json_object_begin_flat(struct json *j);
void json_array_begin_flat(struct json *j);

void json_key(struct json *j, const char *key);

/* What str_is_control() names is escaped, so that JSON is safe on a terminal, too; bytes that are not UTF-8 become
 * U+FFFD. NULL is written as null. */
void json_put_string(struct json *j, const char *s);
void json_put_string_n(struct json *j, const char *s, size_t n);
void json_put_int(struct json *j, int64_t v);
void json_put_uint(struct json *j, uint64_t v);
void json_put_double(struct json *j, double v); /* shortest text that reads back the same; NaN, inf: null */
void json_put_bool(struct json *j, bool v);
void json_put_null(struct json *j);
void json_put_raw(struct json *j, const char *value); /* one value that is known to be compact JSON */

/* A key and its value at once. */
void json_kv_string(struct json *j, const char *key, const char *s);
void json_kv_int(struct json *j, const char *key, int64_t v);
void json_kv_uint(struct json *j, const char *key, uint64_t v);
void json_kv_double(struct json *j, const char *key, double v);
void json_kv_bool(struct json *j, const char *key, bool v);
void json_kv_null(struct json *j, const char *key);

#endif
