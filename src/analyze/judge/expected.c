/* SPDX-License-Identifier: MIT
 * expected.c - JSON lines of labels or reference outputs, see accuracy.h. The bytes come from outside:
 * every line is checked, and the error names it. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "analyze/judge/accuracy.h"
#include "core/mem.h"
#include "core/vec.h"

#define LINE_MAX_BYTES ((size_t)16 << 20)

struct lines {
    VEC(int64_t) labels;
    VEC(double) values;
    VEC(json_t *) texts;
    bool any; /* JSON of every kind */
    size_t rows, columns, number;
    const char *name;
    tare_error *err;
};

void expected_release(struct expected *e)
{
    mem_free(e->labels);
    mem_free(e->values);
    for (size_t i = 0; e->texts && i < e->rows; i++) json_decref(e->texts[i]);
    mem_free(e->texts);
    *e = (struct expected)EXPECTED_INIT;
}

static tare_status refuse(const struct lines *l, const char *why)
{
    return error_set(l->err, TARE_FORMAT, "%s: line %zu: %s", l->name, l->number, why);
}

static tare_status add_label(struct lines *l, const json_t *v)
{
    if (l->rows && !l->labels.n) return refuse(l, "has a label where the lines before have outputs");
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return refuse(l, "the label is not a whole number from 0 on");
    l->rows++;
    return vec_push(&l->labels, (int64_t)json_integer_value(v), l->err);
}

/* Lists within lists, in order. */
static tare_status add_value(struct lines *l, const json_t *v)
{
    tare_status s = TARE_OK;
    if (l->any && json_is_array(v)) {
        for (size_t i = 0; s == TARE_OK && i < json_array_size(v); i++)
            s = add_value(l, json_array_get(v, i));
        return s;
    }
    if (!json_is_number(v)) return refuse(l, "an expected output is not a number");
    return vec_push(&l->values, json_number_value(v), l->err);
}

static bool is_numbers(const json_t *v)
{
    bool all = json_is_array(v) && json_array_size(v);
    if (!json_is_array(v)) return json_is_number(v);
    for (size_t i = 0; all && i < json_array_size(v); i++) all = is_numbers(json_array_get(v, i));
    return all;
}

static tare_status add_text(struct lines *l, json_t *v)
{
    if (l->rows && !l->texts.n) return refuse(l, "has a text where the lines before have labels or numbers");
    tare_status s = vec_push(&l->texts, v, l->err);
    if (s < 0) return s;
    json_incref(v);
    l->columns = 1;
    l->rows++;
    return vec_push(&l->values, 1.0, l->err);
}

static tare_status add_outputs(struct lines *l, json_t *v)
{
    size_t before = l->values.n;
    if (l->any && !is_numbers(v)) return add_text(l, v);
    if (l->labels.n) return refuse(l, "has outputs where the lines before have labels");
    if (l->texts.n) return refuse(l, "has numbers where the lines before have texts");
    tare_status s = json_is_array(v) ? TARE_OK : add_value(l, v);
    for (size_t i = 0; s == TARE_OK && i < json_array_size(v); i++) s = add_value(l, json_array_get(v, i));
    if (s < 0) return s;
    size_t n = l->values.n - before;
    if (n == 0) return refuse(l, "the list of expected outputs is empty");
    if (l->rows && n != l->columns) return refuse(l, "has another number of outputs than the lines before");
    l->columns = n;
    l->rows++;
    return TARE_OK;
}

/* A key that comes twice is refused: nobody can say which of the two answers was meant. */
static tare_status read_line(struct lines *l, const char *text, size_t n)
{
    json_error_t why;
    if (n > LINE_MAX_BYTES) return refuse(l, "is longer than 16 MiB");
    errno = 0; /* jansson takes a refused allocation for a syntax error of the text, at some places */
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!root && errno == ENOMEM) return error_nomem(l->err, "%s", l->name);
    if (!root) return refuse(l, why.text);
    json_t *label = json_object_get(root, "label"), *outputs = json_object_get(root, "expected");
    tare_status s = TARE_OK;
    if (label)
        s = add_label(l, label);
    else if (outputs)
        s = add_outputs(l, outputs);
    else
        s = refuse(l, "expected an object with \"label\" or \"expected\"");
    json_decref(root);
    return s;
}

static bool is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!memchr(" \t\r", s[i], 3)) return false;
    return true;
}

static tare_status read_all(struct lines *l, struct expected *out, const void *bytes, size_t n)
{
    const char *at = bytes, *end = at + n;
    tare_status s = TARE_OK;
    while (s == TARE_OK && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        l->number++;
        if (!is_blank(at, len)) s = read_line(l, at, len);
        at += len + 1;
    }
    if (s == TARE_OK && l->rows == 0)
        s = error_set(l->err, TARE_FORMAT, "%s: holds no expected answers", l->name);
    struct expected read = {.labels = l->labels.items,
                            .values = l->values.items,
                            .rows = l->texts.n ? l->texts.n : l->rows,
                            .columns = l->columns,
                            .texts = l->texts.items};
    if (s == TARE_OK)
        *out = read;
    else
        expected_release(&read);
    return s;
}

tare_status expected_read_jsonl(struct expected *out, const char *name, const void *bytes, size_t n,
                                tare_error *err)
{
    struct lines l = {.name = name, .err = err};
    return read_all(&l, out, bytes, n);
}

tare_status expected_read_any(struct expected *out, const struct expected_text *text, tare_error *err)
{
    struct lines l = {.name = text->name, .err = err, .any = true};
    return read_all(&l, out, text->bytes, text->n);
}
