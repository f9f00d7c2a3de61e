/* SPDX-License-Identifier: MIT
 * json.c - see json.h. */
#include "core/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"

void json_init(struct json *j, struct buf *out, enum json_style style)
{
    memset(j, 0, sizeof *j);
    j->out = out;
    j->pretty = style == JSON_STYLE_PRETTY;
}

tare_status json_finish(struct json *j, tare_error *err)
{
    assert(j->done && j->depth == 0);
    if (j->pretty) buf_add_char(j->out, '\n');
    return buf_status(j->out, err);
}

static struct json_level *innermost(struct json *j)
{
    return j->depth ? &j->level[j->depth - 1] : NULL;
}

static void new_line(struct json *j)
{
    buf_add_char(j->out, '\n');
    for (unsigned i = 0; i < j->depth; i++) buf_add(j->out, "  ", 2);
}

/* What stands between the previous item of this level and the next. */
static void separate(struct json *j, struct json_level *in)
{
    if (in->any) buf_add_char(j->out, ',');
    if (j->pretty && !in->flat) {
        new_line(j);
    } else if (j->pretty && in->any) {
        buf_add_char(j->out, ' ');
    }
    in->any = true;
}

static void before_value(struct json *j)
{
    struct json_level *in = innermost(j);
    assert(!j->done);
    assert(!in || in->close == ']' || j->after_key);
    if (in && in->close == ']') separate(j, in);
    j->after_key = false;
    j->done = !in;
}

static void open_level(struct json *j, char open, char close, bool flat)
{
    struct json_level *outer = innermost(j);
    before_value(j);
    assert(j->depth < JSON_MAX_DEPTH);
    if (outer && outer->flat) flat = true;
    j->level[j->depth++] = (struct json_level){.close = close, .flat = flat};
    j->done = false;
    buf_add_char(j->out, open);
}

static void close_level(struct json *j, char close)
{
    assert(j->depth > 0 && !j->after_key);
    struct json_level in = j->level[--j->depth];
    assert(in.close == close);
    if (j->pretty && in.any && !in.flat) new_line(j);
    buf_add_char(j->out, close);
    j->done = j->depth == 0;
}

void json_object_begin(struct json *j)
{
    open_level(j, '{', '}', false);
}

void json_object_begin_flat(struct json *j)
{
    open_level(j, '{', '}', true);
}

void json_object_end(struct json *j)
{
    close_level(j, '}');
}

void json_array_begin(struct json *j)
{
    open_level(j, '[', ']', false);
}

void json_array_begin_flat(struct json *j)
{
    open_level(j, '[', ']', true);
}

void json_array_end(struct json *j)
{
    close_level(j, ']');
}

/* ---- strings ---- */

/* Characters past U+FFFF take two escapes, as UTF-16 has them. */
static void add_escaped(struct buf *out, uint32_t c)
{
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: byte, letter after the backslash */
    for (size_t i = 0; i + 1 < sizeof names; i += 2) {
        if ((unsigned char)names[i] != c) continue;
        char two[2] = {'\\', names[i + 1]};
        buf_add(out, two, 2);
        return;
    }
    if (c < 0x10000)
        buf_printf(out, "\\u%04x", c);
    else
        buf_printf(out, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
}

/* Stretches that need no escape are copied whole: nearly all text is. What is not UTF-8 becomes one U+FFFD
 * for each broken sequence, so that the output always is UTF-8. */
static void add_quoted(struct buf *out, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0, plain = 0; /* s[plain..i) is to be copied as it is */
    buf_add_char(out, '"');
    while (i < n) {
        int step = 1;
        uint32_t cp = s[i];
        bool ok = cp >= 0x20 && cp != '"' && cp != '\\' && cp != 0x7F;
        if (cp >= 0x80) {
            step = str_step(text + i, n - i);
            ok = str_decode(text + i, n - i, &cp) > 0 && !str_is_control(cp);
        }
        if (!ok) {
            buf_add(out, s + plain, i - plain);
            if (step < 0)
                buf_add_str(out, "\xEF\xBF\xBD");
            else
                add_escaped(out, cp);
            plain = i + (size_t)abs(step);
        }
        i += (size_t)abs(step);
    }
    buf_add(out, s + plain, n - plain);
    buf_add_char(out, '"');
}

void json_key(struct json *j, const char *key)
{
    struct json_level *in = innermost(j);
    assert(in && in->close == '}' && !j->after_key);
    separate(j, in);
    add_quoted(j->out, key, strlen(key));
    buf_add_str(j->out, j->pretty ? ": " : ":");
    j->after_key = true;
}

void json_put_string_n(struct json *j, const char *s, size_t n)
{
    before_value(j);
    add_quoted(j->out, s, n);
}

void json_put_string(struct json *j, const char *s)
{
    if (s) {
        json_put_string_n(j, s, strlen(s));
    } else {
        json_put_null(j);
    }
}

/* ---- numbers and constants ---- */

void json_put_int(struct json *j, int64_t v)
{
    before_value(j);
    buf_printf(j->out, "%" PRId64, v);
}

void json_put_uint(struct json *j, uint64_t v)
{
    before_value(j);
    buf_printf(j->out, "%" PRIu64, v);
}

/* 15 digits always suffice for a number that has such a short form, 17 for every number; numbers below
 * the normal range carry fewer digits, so there the search begins at one. */
static void shortest(double v, char *text, size_t size)
{
    int digits = fpclassify(v) == FP_SUBNORMAL ? 1 : 15;
    for (; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
}

/* JSON has no NaN and no infinity: null stands for both. Minus zero keeps its sign and its point, as "-0"
 * would read back as the integer 0. */
void json_put_double(struct json *j, double v)
{
    char text[64];
    if (!isfinite(v)) {
        json_put_null(j);
        return;
    }
    before_value(j);
    if (v == 0) {
        buf_add_str(j->out, signbit(v) ? "-0.0" : "0");
        return;
    }
    shortest(v, text, sizeof text);
    for (char *p = text; *p; p++) { /* the host program's locale may write another decimal point */
        if (!strchr("0123456789+-e", *p)) *p = '.';
    }
    buf_add_str(j->out, text);
}

void json_put_bool(struct json *j, bool v)
{
    before_value(j);
    buf_add_str(j->out, v ? "true" : "false");
}

void json_put_null(struct json *j)
{
    before_value(j);
    buf_add_str(j->out, "null");
}

void json_put_raw(struct json *j, const char *value)
{
    before_value(j);
    buf_add_str(j->out, value);
}

/* ---- key and value at once ---- */

#define JSON_KV(kind, type)                                          \
    void json_kv_##kind(struct json *j, const char *key, type v) \
    {                                                                \
        json_key(j, key);                                            \
        json_put_##kind(j, v);                                       \
    }
JSON_KV(string, const char *)
JSON_KV(int, int64_t)
JSON_KV(uint, uint64_t)
JSON_KV(double, double)
JSON_KV(bool, bool)

void json_kv_null(struct json *j, const char *key)
{
    json_key(j, key);
    json_put_null(j);
}
