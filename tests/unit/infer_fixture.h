/* SPDX-License-Identifier: MIT
 * infer_fixture.h - small ONNX models for tests of shape inference, written as lines of text:
 *     opset 13                      input x float32 batch 8          output y [type dims]     said y float32 2 3
 *     ints s 2 -1                   scalar k 5       floats f 0.5    weight w 64 128
 *     node Reshape x,s y axis=1 perm=1,0 axes=1,   (one number: an int; a comma: a list)      name=here
 * Free dimensions are words, "?" one without a name. Makes bytes by onnx_fixture.h, not by the writer under test. */
#ifndef INFER_FIXTURE_H
#define INFER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/infer/infer.h"
#include "onnx_fixture.h"

struct made_model {
    struct buf bytes;
    struct onnx_model model;
    struct inferred result;
    tare_error err;
    tare_status status;
};

static inline int made_type(const char *word)
{
    for (int i = 1; i < ONNX_TYPES; i++)
        if (strcmp(onnx_type_name(i), word) == 0) return i;
    return 0;
}

/* The rest of a line as words. */
static inline size_t made_words(char *line, char **words, size_t max)
{
    char *save = NULL;
    size_t n = 0;
    for (char *w = strtok_r(line, " ", &save); w && n < max; w = strtok_r(NULL, " ", &save)) words[n++] = w;
    return n;
}

static inline struct buf made_value(char **words, size_t n)
{
    struct buf v = BUF_INIT, t = BUF_INIT, tensor = BUF_INIT, shape = BUF_INIT, dim = BUF_INIT;
    pb_str(&v, 1, words[0]);
    if (n < 2) return v;
    for (size_t i = 2; i < n; i++) {
        char *end;
        long long number = strtoll(words[i], &end, 10);
        if (!*end)
            pb_int(&dim, 1, number);
        else if (strcmp(words[i], "?") != 0)
            pb_str(&dim, 2, words[i]);
        pb_msg(&shape, 1, &dim);
    }
    pb_int(&tensor, 1, made_type(words[1]));
    pb_msg(&tensor, 2, &shape);
    pb_msg(&t, 1, &tensor);
    pb_msg(&v, 2, &t);
    return v;
}

static inline void made_attribute(struct buf *node, char *word)
{
    char *value = strchr(word, '=');
    struct buf a = BUF_INIT;
    *value++ = 0;
    if (strcmp(word, "name") == 0) {
        pb_str(node, 3, value);
        return;
    }
    if (!strchr(value, ',')) {
        pb_attr_int(node, word, strtoll(value, NULL, 10));
        return;
    }
    pb_str(&a, 1, word);
    char *save = NULL;
    for (char *w = strtok_r(value, ",", &save); w; w = strtok_r(NULL, ",", &save))
        pb_int(&a, 8, strtoll(w, NULL, 10));
    pb_int(&a, 20, 7);
    pb_msg(node, 5, &a);
}

static inline struct buf made_node(char **words, size_t n)
{
    struct buf b = pb_node(words[0], strcmp(words[1], "-") == 0 ? "" : words[1], words[2]);
    for (size_t i = 3; i < n; i++) made_attribute(&b, words[i]);
    return b;
}

static inline struct buf made_tensor(const char *kind, char **words, size_t n)
{
    int64_t ints[64];
    float floats[64];
    struct buf t = BUF_INIT;
    for (size_t i = 1; i < n; i++) ints[i - 1] = strtoll(words[i], NULL, 10);
    for (size_t i = 1; i < n; i++) floats[i - 1] = strtof(words[i], NULL);
    if (strcmp(kind, "weight") == 0) {
        size_t bytes = 4;
        for (size_t i = 0; i + 1 < n; i++) bytes *= (size_t)ints[i];
        return pb_tensor(words[0], ONNX_FLOAT, ints, n - 1, bytes);
    }
    if (strcmp(kind, "scalar") != 0) pb_int(&t, 1, (int64_t)n - 1);
    pb_int(&t, 2, strcmp(kind, "floats") == 0 ? ONNX_FLOAT : ONNX_INT64);
    pb_str(&t, 8, words[0]);
    if (strcmp(kind, "floats") == 0)
        pb_bytes(&t, 9, floats, (n - 1) * sizeof floats[0]);
    else
        pb_bytes(&t, 9, ints, (n - 1) * sizeof ints[0]);
    return t;
}

/* The lines onto a graph; returns the opset they ask for, or 17. */
static inline int64_t made_graph(struct buf *g, const char *text)
{
    static const struct {
        const char *word;
        unsigned field;
    } values[] = {{"input", 11}, {"output", 12}, {"said", 13}};
    char *all = mem_strdup(text), *save = NULL;
    int64_t opset = 17;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *words[80];
        size_t n = made_words(line, words, 80);
        struct buf part = BUF_INIT;
        if (!n) continue;
        unsigned field = 5;
        for (size_t i = 0; i < 3; i++)
            if (strcmp(words[0], values[i].word) == 0) field = values[i].field;
        if (strcmp(words[0], "opset") == 0) {
            opset = strtoll(words[1], NULL, 10);
            continue;
        }
        if (strcmp(words[0], "node") == 0) {
            part = made_node(words + 1, n - 1);
            field = 1;
        } else {
            part = field == 5 ? made_tensor(words[0], words + 1, n - 1) : made_value(words + 1, n - 1);
        }
        pb_msg(g, field, &part);
    }
    pb_str(g, 2, "g");
    mem_free(all);
    return opset;
}

/* A model over a graph that was made; more fields may be added to .bytes before made_infer(). */
static inline void made_over(struct made_model *m, struct buf *graph, int64_t opset)
{
    struct buf o = BUF_INIT;
    *m = (struct made_model){.bytes = BUF_INIT, .model = ONNX_MODEL_INIT, .result = INFERRED_INIT};
    pb_int(&m->bytes, 1, 8);
    pb_msg(&m->bytes, 7, graph);
    pb_str(&o, 1, "");
    pb_int(&o, 2, opset);
    pb_msg(&m->bytes, 8, &o);
}

static inline void made_infer(struct made_model *m, const struct infer_options *o)
{
    m->status = onnx_read(&m->model, "made", m->bytes.data, m->bytes.len, &m->err);
    if (m->status < 0) print_error("not read: %s\n", m->err.text);
    assert_int_equal(m->status, TARE_OK);
    m->status = infer_model(&m->result, &m->model, o, &m->err);
}

static inline void made(struct made_model *m, const char *text)
{
    struct buf g = BUF_INIT;
    int64_t opset = made_graph(&g, text);
    made_over(m, &g, opset);
    made_infer(m, NULL);
}

static inline void made_release(struct made_model *m)
{
    inferred_release(&m->result);
    onnx_close(&m->model);
    buf_release(&m->bytes);
}

static inline void made_expect(const struct made_model *m, const char *value, const char *shape)
{
    struct buf b = BUF_INIT;
    if (m->status < 0) print_error("not inferred: %s\n", m->err.text);
    assert_int_equal(m->status, TARE_OK);
    const struct infer_value *v = infer_value(m->result.main, value);
    assert_non_null(v);
    infer_shape_print(v, &b);
    assert_string_equal(b.data, shape);
    buf_release(&b);
}

/* One model, one value of it. */
static inline void made_gives(const char *text, const char *value, const char *shape)
{
    struct made_model m;
    made(&m, text);
    made_expect(&m, value, shape);
    made_release(&m);
}

/* The contents of a value: "2 seq 4"; "-" when they are not followed. */
static inline void made_holds(const char *text, const char *value, const char *contents)
{
    struct made_model m;
    struct buf b = BUF_INIT;
    made(&m, text);
    if (m.status < 0) print_error("not inferred: %s\n", m.err.text);
    assert_int_equal(m.status, TARE_OK);
    const struct infer_value *v = infer_value(m.result.main, value);
    assert_non_null(v);
    if (!v->ints && !v->reals) buf_add_char(&b, '-');
    for (size_t i = 0; (v->ints || v->reals) && i < v->n_ints; i++) {
        if (i) buf_add_char(&b, ' ');
        if (v->ints)
            poly_print(v->ints[i], &b);
        else
            buf_printf(&b, "%g", v->reals[i]);
    }
    assert_string_equal(b.data, contents);
    buf_release(&b);
    made_release(&m);
}

static inline void made_fails(const char *text, const char *why)
{
    struct made_model m;
    made(&m, text);
    assert_int_equal(m.status, TARE_INVALID);
    if (!strstr(m.err.text, why)) print_error("'%s' is not in '%s'\n", why, m.err.text);
    assert_non_null(strstr(m.err.text, why));
    assert_null(m.result.memory);
    made_release(&m);
}

#endif
