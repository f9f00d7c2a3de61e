/* SPDX-License-Identifier: MIT
 * infer_case.h - one node as a row of text, and what shape inference must say of its outputs. For tests of rules.
 *   inputs      "f[2,3,H]" a graph input (f h d float32/16/64, i l int32/64, u c uint8/int8, b bool, s string),
 *               "f?" without a rank, "=1,2" constant int64 of rank 1, "=#5" a scalar one, "~0.5,2" constant floats,
 *               "-" left out
 *   attributes  "axis:1 pads:[1,1] auto_pad:'VALID' scales:~2,2 dtype:1"
 *   outputs     texts of infer_shape_print() apart by '|', "*" after one whose shape hangs on data; "-" one that is
 *               not looked at; or "!text" for an error that says so */
#ifndef INFER_CASE_H
#define INFER_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/infer/infer.h"
#include "onnx_fixture.h"

struct infer_case {
    const char *op, *inputs, *attributes, *outputs;
    int opset;          /* 0: 17 */
    const char *domain; /* NULL: the standard's */
};

struct case_maker {
    struct buf graph, node;
};

static inline int case_type(char letter)
{
    static const struct {
        char letter;
        int type;
    } types[] = {{'f', ONNX_FLOAT}, {'h', ONNX_FLOAT16}, {'d', ONNX_DOUBLE},
                 {'i', ONNX_INT32}, {'l', ONNX_INT64},   {'u', ONNX_UINT8},
                 {'c', ONNX_INT8},  {'b', ONNX_BOOL},    {'s', ONNX_STRING}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].letter == letter) return types[i].type;
    fail_msg("no type '%c'", letter);
    return 0;
}

static inline void case_dims(struct buf *shape, const char *text)
{
    while (*text && *text != ']') {
        struct buf dim = BUF_INIT;
        size_t n = strcspn(text, ",]");
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        if (word[0] >= '0' && word[0] <= '9')
            pb_int(&dim, 1, strtoll(word, NULL, 10));
        else
            pb_str(&dim, 2, word);
        pb_msg(shape, 1, &dim);
        text += n + (text[n] == ',');
    }
}

static inline void case_value(struct case_maker *m, const char *name, const char *text)
{
    struct buf v = BUF_INIT, type = BUF_INIT, tensor = BUF_INIT, shape = BUF_INIT;
    pb_int(&tensor, 1, case_type(text[0]));
    if (text[1] == '[') {
        case_dims(&shape, text + 2);
        pb_msg(&tensor, 2, &shape);
    }
    pb_msg(&type, 1, &tensor);
    pb_str(&v, 1, name);
    pb_msg(&v, 2, &type);
    pb_msg(&m->graph, 11, &v);
}

/* Numbers apart by commas, as int64 or float32. */
static inline size_t case_numbers(const char *text, bool real, struct buf *out)
{
    size_t n = 0;
    for (char *end; *text && *text != ']'; text = *end == ',' ? end + 1 : end, n++) {
        float f = strtof(text, &end);
        int64_t i = strtoll(text, real ? NULL : &end, 10);
        buf_add(out, real ? (void *)&f : (void *)&i, real ? sizeof f : sizeof i);
        if (end == text) fail_msg("no number: '%s'", text);
    }
    return n;
}

static inline void case_constant(struct case_maker *m, const char *name, const char *text)
{
    bool real = text[0] == '~', scalar = text[1] == '#';
    struct buf raw = BUF_INIT, t = BUF_INIT;
    size_t n = case_numbers(text + 1 + scalar, real, &raw);
    if (!scalar) pb_int(&t, 1, (int64_t)n);
    pb_int(&t, 2, real ? ONNX_FLOAT : ONNX_INT64);
    pb_str(&t, 8, name);
    pb_bytes(&t, 9, raw.data, raw.len);
    buf_release(&raw);
    pb_msg(&m->graph, 5, &t);
}

static inline void case_input(struct case_maker *m, size_t i, const char *text)
{
    char name[16];
    snprintf(name, sizeof name, text[0] == '-' ? "" : "in%zu", i);
    if (text[0] == '=' || text[0] == '~')
        case_constant(m, name, text);
    else if (text[0] != '-')
        case_value(m, name, text);
    pb_str(&m->node, 1, name);
}

static inline void case_list(struct buf *a, const char *text, bool real)
{
    struct buf all = BUF_INIT;
    size_t n = case_numbers(text, real, &all);
    for (size_t i = 0; i < n && !real; i++) {
        int64_t v;
        memcpy(&v, all.data + i * sizeof v, sizeof v);
        pb_int(a, 8, v);
    }
    if (real) pb_bytes(a, 7, all.data, all.len);
    buf_release(&all);
    pb_int(a, 20, real ? 6 : 7);
}

static inline void case_attribute(struct case_maker *m, const char *text)
{
    struct buf a = BUF_INIT;
    const char *value = strchr(text, ':') + 1;
    pb_bytes(&a, 1, text, (size_t)(value - text) - 1);
    if (*value == '[' || *value == '~') {
        case_list(&a, value + 1, *value == '~');
    } else if (*value == '\'') {
        pb_bytes(&a, 4, value + 1, strcspn(value + 1, "'"));
        pb_int(&a, 20, 3);
    } else {
        pb_int(&a, 3, strtoll(value, NULL, 10));
        pb_int(&a, 20, 2);
    }
    pb_msg(&m->node, 5, &a);
}

/* Words apart by a separator; the text is copied into `room`. */
static inline size_t case_words(const char *text, const char *apart, char *room, char **words, size_t max)
{
    size_t n = 0;
    snprintf(room, 1024, "%s", text ? text : "");
    for (char *rest = room, *word; n < max && (word = strtok_r(rest, apart, &rest));) words[n++] = word;
    return n;
}

static inline struct buf case_model(const struct infer_case *k, size_t n_outputs)
{
    struct case_maker m = {BUF_INIT, BUF_INIT};
    struct buf model = BUF_INIT, opset = BUF_INIT, out = BUF_INIT;
    char room[1024], *words[32], name[16];
    size_t n = case_words(k->inputs, " ", room, words, 32);
    for (size_t i = 0; i < n; i++) case_input(&m, i, words[i]);
    for (size_t i = 0; i < n_outputs; i++) {
        snprintf(name, sizeof name, "out%zu", i);
        pb_str(&m.node, 2, name);
        pb_str(&out, 1, name);
        pb_msg(&m.graph, 12, &out);
    }
    pb_str(&m.node, 4, k->op);
    if (k->domain) pb_str(&m.node, 7, k->domain);
    n = case_words(k->attributes, " ", room, words, 32);
    for (size_t i = 0; i < n; i++) case_attribute(&m, words[i]);
    pb_msg(&m.graph, 1, &m.node);
    pb_str(&m.graph, 2, "case");
    pb_int(&model, 1, 8);
    pb_msg(&model, 7, &m.graph);
    pb_str(&opset, 1, k->domain ? k->domain : "");
    pb_int(&opset, 2, k->opset ? k->opset : k->domain ? 1 : 17);
    pb_msg(&model, 8, &opset);
    return model;
}

static inline void case_check(const struct infer_case *k, const struct inferred *r, char **words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[16];
        struct buf text = BUF_INIT;
        snprintf(name, sizeof name, "out%zu", i);
        const struct infer_value *v = infer_value(r->main, name);
        infer_shape_print(v, &text);
        if (v->data_dependent) buf_add_char(&text, '*');
        if (strcmp(words[i], "-") != 0 && strcmp(text.data, words[i]) != 0)
            fail_msg("%s %s {%s}: output %zu is %s, not %s; %s", k->op, k->inputs,
                     k->attributes ? k->attributes : "", i, text.data, words[i],
                     r->main->nodes[0].why ? r->main->nodes[0].why : "");
        buf_release(&text);
    }
}

static inline void case_run(const struct infer_case *k)
{
    char room[1024], *words[16];
    size_t n = case_words(k->outputs, "|", room, words, 16);
    struct buf bytes = case_model(k, n);
    struct onnx_model m = ONNX_MODEL_INIT;
    struct inferred r = INFERRED_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (onnx_read(&m, "case", bytes.data, bytes.len, &err) < 0) fail_msg("%s: %s", k->op, err.text);
    tare_status s = infer_model(&r, &m, NULL, &err);
    if (s < 0 && (words[0][0] != '!' || !strstr(err.text, words[0] + 1)))
        fail_msg("%s %s {%s}: %s", k->op, k->inputs, k->attributes ? k->attributes : "", err.text);
    if (s == TARE_OK && words[0][0] == '!') fail_msg("%s %s: no error, but: %s", k->op, k->inputs, words[0]);
    if (s == TARE_OK) case_check(k, &r, words, n);
    inferred_release(&r);
    onnx_close(&m);
    buf_release(&bytes);
}

#define CASES_RUN(cases) \
    for (size_t case_i = 0; case_i < sizeof(cases) / sizeof *(cases); case_i++) case_run(&(cases)[case_i])

#endif
