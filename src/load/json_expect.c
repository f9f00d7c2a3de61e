/* SPDX-License-Identifier: MIT
 * json_expect.c - see json_expect.h. */
#include "load/json_expect.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_tree.h"
#include "core/mem.h"
#include "core/unit.h"
#include "load/template.h"
#include "load/whole_body.h"

enum { SHOWN = 60 };

/* ---- what is expected ---- */

static bool read_number(const char *text, double *out)
{
    bool negative = *text == '-';
    const char *at = text + negative;
    if (unit_number(&at, out) || *at) return false;
    if (negative) *out = -*out;
    return true;
}

tare_status json_expect_add(struct json_expect *e, const char *text, tare_error *err)
{
    size_t n = strcspn(text, "=<>");
    const char *value = text + n;
    struct json_expectation x = {.op = '='};
    if (*value == '<' || *value == '>') x.op = *value++;
    bool other = n && (text[n - 1] == '!' || strncmp(value, "==", 2) == 0); /* as other languages write it */
    if (n == 0 || other || (x.op != '=' && *value != '='))
        return error_set(err, TARE_INVALID,
                         "'%.100s': expected PATH, PATH=VALUE, PATH>=NUMBER or PATH<=NUMBER", text);
    bool any = !*value;
    value += !any;
    if (x.op != '=' && !read_number(value, &x.number))
        return error_set(err, TARE_INVALID, "'%.100s': '%.40s' is no number", text, value);
    x.path = mem_strndup(text, n);
    x.value = any ? NULL : mem_strdup(value);
    tare_status s =
        x.path && (any || x.value) ? vec_push(&e->all, x, err) : error_nomem(err, "an expectation");
    if (s < 0) {
        mem_free(x.path);
        mem_free(x.value);
    }
    return s;
}

void json_expect_close(struct json_expect *e)
{
    for (size_t i = 0; i < e->all.n; i++) {
        mem_free(e->all.items[i].path);
        mem_free(e->all.items[i].value);
    }
    vec_release(&e->all);
}

/* ---- what there is ---- */

static const struct json_node *item_at(const struct json_node *array, const char *word)
{
    char *end;
    unsigned long k = strtoul(word, &end, 10);
    if (*word < '0' || *word > '9' || *end) return NULL;
    const struct json_node *at = array->items.first;
    while (at && k--) at = at->next;
    return at;
}

static const struct json_node *node_at(const struct json_node *at, const char *path)
{
    char word[128];
    while (at && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof word) return NULL;
        memcpy(word, path, n);
        word[n] = 0;
        path += n + (path[n] == '.');
        const struct json_node *hint = NULL;
        if (at->kind == TREE_OBJECT)
            at = json_tree_get(at, word, &hint);
        else
            at = at->kind == TREE_ARRAY ? item_at(at, word) : NULL;
    }
    return at;
}

static double number_of(const struct json_node *v)
{
    if (v->kind == TREE_INTEGER) return (double)v->i;
    return v->kind == TREE_REAL ? v->d : NAN;
}

static bool is_equal(const struct json_node *v, const char *want)
{
    static const char *const words[] = {[TREE_NULL] = "null", [TREE_FALSE] = "false", [TREE_TRUE] = "true"};
    double number;
    if (v->kind == TREE_STRING) return strcmp(v->s, want) == 0;
    if (v->kind <= TREE_TRUE) return strcmp(words[v->kind], want) == 0;
    if (v->kind > TREE_REAL) return false;
    return read_number(want, &number) && number == number_of(v);
}

static bool holds(const struct json_expectation *x, const struct json_node *v)
{
    if (!x->value) return true;
    if (x->op == '=') return is_equal(v, x->value);
    return x->op == '>' ? number_of(v) >= x->number : number_of(v) <= x->number; /* NAN: neither */
}

static void say_difference(struct json_expect *e, const struct json_expectation *x, const struct json_node *v)
{
    struct buf shown = BUF_INIT;
    const char op[] = {x->op, '=', ' ', 0};
    if (template_fits(v)) template_add_value(&shown, v);
    snprintf(e->why, sizeof e->why, "%.60s in the answer is %.*s, not %s%.60s", x->path, SHOWN,
             shown.len ? shown.data : "something else", x->op == '=' ? "" : op, x->value);
    buf_release(&shown);
}

/* Why a text was refused is known only to who reads it slowly. */
static void say_unread(struct json_expect *e, const char *body, size_t n)
{
    json_error_t why;
    json_t *root = json_loadb(n ? body : "", n, JSON_REJECT_DUPLICATES, &why);
    snprintf(e->why, sizeof e->why, "the answer is no JSON that can be read: %.160s",
             root ? "no memory" : why.text);
    json_decref(root);
}

bool json_expect_holds(struct json_expect *e, const char *body, size_t n)
{
    struct arena memory = ARENA_INIT;
    struct json_room room = {&memory, &memory};
    const struct json_node *root = NULL;
    bool good = json_tree_read(room, body, n, &root) == TARE_OK;
    if (!good) say_unread(e, body, n);
    for (size_t i = 0; good && i < e->all.n; i++) {
        const struct json_expectation *x = &e->all.items[i];
        const struct json_node *v = node_at(root, x->path);
        good = v && holds(x, v);
        if (!v) snprintf(e->why, sizeof e->why, "the answer has no %.60s", x->path);
        if (v && !good) say_difference(e, x, v);
    }
    arena_release(&memory);
    return good;
}

/* ---- as a reader ---- */

static const char *answer_end(void *ctx, void *state, struct load_outcome *o)
{
    struct json_expect *e = ctx;
    const struct whole_body *b = state;
    if (b->too_long) snprintf(e->why, sizeof e->why, "the answer is larger than is read");
    if (!b->too_long && json_expect_holds(e, b->bytes.data, b->bytes.len)) return NULL;
    o->fault = LOAD_BODY;
    return e->why;
}

struct load_reader json_expect_reader(struct json_expect *e)
{
    return (struct load_reader){.name = "json",
                                .size = sizeof(struct whole_body),
                                .ctx = e,
                                .open = whole_body_open,
                                .close = whole_body_close,
                                .begin = whole_body_begin,
                                .bytes = whole_body_bytes,
                                .end = answer_end};
}
