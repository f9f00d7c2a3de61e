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
    size_t rows, columns, number;
    const char *name;
    tare_error *err;
};

void expected_release(struct expected *e)
{
    mem_free(e->labels);
    mem_free(e->values);
    *e = (struct expected)EXPECTED_INIT;
}

static tare_status refuse(const struct lines *l, const char *why)
{
    return error_set(l->err, TARE_FORMAT, "%s: line %zu: %s", l->name, l->number, why);
}

static tare_status add_label(struct lines *l, const json_t *v)
{
    if (l->values.n) return refuse(l, "has a label where the lines before have outputs");
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return refuse(l, "the label is not a whole number from 0 on");
    l->rows++;
    return vec_push(&l->labels, (int64_t)json_integer_value(v), l->err);
}

static tare_status add_value(struct lines *l, const json_t *v)
{
    if (!json_is_number(v)) return refuse(l, "an expected output is not a number");
    return vec_push(&l->values, json_number_value(v), l->err);
}

static tare_status add_outputs(struct lines *l, const json_t *v)
{
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (l->labels.n) return refuse(l, "has outputs where the lines before have labels");
    if (n == 0) return refuse(l, "the list of expected outputs is empty");
    if (l->rows && n != l->columns) return refuse(l, "has another number of outputs than the lines before");
    l->columns = n;
    l->rows++;
    for (size_t i = 0; i < n; i++) {
        tare_status s = add_value(l, json_is_array(v) ? json_array_get(v, i) : v);
        if (s < 0) return s;
    }
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

tare_status expected_read_jsonl(struct expected *out, const char *name, const void *bytes, size_t n,
                                tare_error *err)
{
    struct lines l = {.name = name, .err = err};
    const char *at = bytes, *end = at + n;
    tare_status s = TARE_OK;
    while (s == TARE_OK && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        l.number++;
        if (!is_blank(at, len)) s = read_line(&l, at, len);
        at += len + 1;
    }
    if (s == TARE_OK && l.rows == 0) s = error_set(err, TARE_FORMAT, "%s: holds no expected answers", name);
    if (s < 0) {
        vec_release(&l.labels);
        vec_release(&l.values);
        return s;
    }
    *out = (struct expected){
        .labels = l.labels.items, .values = l.values.items, .rows = l.rows, .columns = l.columns};
    return TARE_OK;
}
