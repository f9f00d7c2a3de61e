/* SPDX-License-Identifier: MIT
 * call.c - a request against its operation (operations.h): every value is of its declared type, what is not declared is
 * refused, and only single values of closed types become words of a command line. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/ulid.h"
#include "server/jobs/operations.h"

struct checking {
    struct call *out;
    const struct operation *op;
    const char **values; /* for the command line, by parameter; NULL: none */
    tare_error *err;
};

#define refuse(c, p, ...) refuse_as(c, p, __VA_ARGS__)
__attribute__((format(printf, 3, 4))) static tare_status refuse_as(struct checking *c,
                                                                   const struct parameter *p,
                                                                   const char *format, ...)
{
    char why[200];
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    return error_set(c->err, TARE_INVALID, "%s: %s", p->name, why);
}

/* ---- values ---- */

static bool is_among(const struct words *w, const json_t *v)
{
    for (size_t i = 0; json_is_string(v) && i < w->n; i++)
        if (strcmp(w->at[i], json_string_value(v)) == 0) return true;
    return false;
}

static tare_status check_number(struct checking *c, const struct parameter *p, const json_t *v)
{
    bool whole = p->kind == PARAM_INT;
    double x = json_number_value(v);
    if (!(whole ? json_is_integer(v) : json_is_number(v)) || !(x >= p->min && x <= p->max))
        return refuse(c, p, "a %snumber from %.15g to %.15g is expected", whole ? "whole " : "", p->min,
                      p->max);
    return TARE_OK;
}

static tare_status check_names(struct checking *c, const struct parameter *p, json_t *v)
{
    size_t i;
    json_t *item;
    if (!json_is_array(v) || json_array_size(v) > WORDS_MAX)
        return refuse(c, p, "a list of names is expected");
    json_array_foreach(v, i, item) if (!is_among(&p->values, item)) return refuse(
        c, p, "item %zu is none of the names that the operator allows", i);
    return TARE_OK;
}

static tare_status check_texts(struct checking *c, const struct parameter *p, json_t *v)
{
    size_t i;
    json_t *item;
    if (!json_is_array(v) || (double)json_array_size(v) > p->max)
        return refuse(c, p, "a list of at most %.0f texts is expected", p->max);
    json_array_foreach(
        v, i, item) if (!json_is_string(item) ||
                        (double)json_string_length(item) >
                            p->bytes) return refuse(c, p, "item %zu is no text of at most %.0f bytes", i,
                                                    p->bytes);
    return TARE_OK;
}

static tare_status check_value(struct checking *c, const struct parameter *p, json_t *v)
{
    switch (p->kind) {
    case PARAM_INT:
    case PARAM_NUMBER: return check_number(c, p, v);
    case PARAM_BOOL: return json_is_boolean(v) ? TARE_OK : refuse(c, p, "true or false is expected");
    case PARAM_ENUM:
        return is_among(&p->values, v) ? TARE_OK : refuse(c, p, "is none of what the operator allows");
    case PARAM_NAMES: return check_names(c, p, v);
    case PARAM_TEXTS: return check_texts(c, p, v);
    case PARAM_RUN:
        return json_is_string(v) && ulid_is_valid(json_string_value(v))
                   ? TARE_OK
                   : refuse(c, p, "the id of a run is expected");
    case PARAM_KINDS_N: break;
    }
    return refuse(c, p, "has no type");
}

/* As a word; NULL: it is none, or there is no memory (the arena remembers). */
static const char *word_of(struct arena *a, const struct parameter *p, const json_t *v)
{
    if (p->kind == PARAM_INT) return arena_printf(a, "%lld", (long long)json_integer_value(v));
    if (p->kind == PARAM_NUMBER) return arena_printf(a, "%.17g", json_number_value(v));
    if (p->kind == PARAM_BOOL) return json_is_true(v) ? "true" : "false";
    if (p->kind == PARAM_ENUM) return arena_str(a, json_string_value(v));
    if (p->kind == PARAM_RUN) return arena_printf(a, "%s.json", json_string_value(v));
    return NULL;
}

/* ---- names ---- */

/* The value at "a.b.c". */
static json_t *at_name(json_t *root, const char *name)
{
    char part[64];
    for (json_t *v = root; v;) {
        size_t n = strcspn(name, ".");
        snprintf(part, sizeof part, "%.*s", (int)n, name);
        v = json_is_object(v) ? json_object_get(v, part) : NULL;
        if (!name[n]) return v;
        name += n + 1;
    }
    return NULL;
}

/* 2: a parameter; 1: an object that holds some; 0: neither. */
static int name_kind(const struct operation *op, const char *name)
{
    size_t n = strlen(name);
    int kind = 0;
    for (size_t i = 0; i < op->n_parameters; i++) {
        const char *p = op->parameters[i].name;
        if (strcmp(p, name) == 0) return 2;
        if (strncmp(p, name, n) == 0 && p[n] == '.') kind = 1;
    }
    return kind;
}

static tare_status refuse_strangers(struct checking *c, json_t *object, const char *inside, unsigned depth)
{
    const char *key;
    json_t *value;
    char name[160];
    json_object_foreach(object, key, value)
    {
        snprintf(name, sizeof name, "%s%s%s", inside, *inside ? "." : "", key);
        int kind = strlen(inside) + strlen(key) + 2 > sizeof name ? 0 : name_kind(c->op, name);
        if (kind == 0)
            return error_set(c->err, TARE_INVALID, "%.80s: operation %s has no such parameter", name,
                             c->op->name);
        if (kind == 1 && !json_is_object(value))
            return error_set(c->err, TARE_INVALID, "%.80s: an object is expected", name);
        tare_status s = kind == 1 && depth < 8 ? refuse_strangers(c, value, name, depth + 1) : TARE_OK;
        if (s != TARE_OK) return s;
    }
    return TARE_OK;
}

/* ---- the outcome ---- */

static bool put_in(json_t *root, const char *name, json_t *value)
{
    char part[64];
    size_t n;
    for (; root && name[n = strcspn(name, ".")]; name += n + 1) {
        snprintf(part, sizeof part, "%.*s", (int)n, name);
        json_t *inner = json_object_get(root, part);
        if (!inner && json_object_set_new(root, part, inner = json_object()) != 0) inner = NULL;
        root = inner;
    }
    return json_object_set_new(root, name, value) == 0; /* takes the value in any case */
}

static tare_status take(struct checking *c, size_t i, json_t *root, json_t *to)
{
    const struct parameter *p = &c->op->parameters[i];
    json_t *v = json_incref(at_name(root, p->name));
    if (!v && p->fallback) v = json_loads(p->fallback, JSON_DECODE_ANY, NULL);
    if (!v && p->fallback) return refuse(c, p, "is no value");
    if (!v) return p->optional ? TARE_OK : refuse(c, p, "is missing");
    tare_status s = check_value(c, p, v);
    if (s == TARE_OK) c->values[i] = word_of(&c->out->arena, p, v);
    if (s == TARE_OK && p->kind == PARAM_RUN) {
        struct words *w = &c->out->runs;
        const char **grown = arena_grow(&c->out->arena, w->at, w->n, sizeof *grown);
        if (grown) {
            grown[w->n++] = arena_str(&c->out->arena, json_string_value(v));
            w->at = grown;
        }
    }
    if (s == TARE_OK && !put_in(to, p->name, json_incref(v))) s = error_nomem(c->err, "a request");
    json_decref(v);
    return s;
}

/* A word of the template with its values. */
static char *fill(struct checking *c, const char *word)
{
    struct buf b = BUF_INIT;
    while (*word) {
        size_t n = operation_hole(word);
        const struct parameter *p = n ? operation_parameter(c->op, word + 1, n) : NULL;
        if (p)
            buf_add_str(&b, c->values[p - c->op->parameters]);
        else
            buf_add_char(&b, *word);
        word += p ? n + 2 : 1;
    }
    const char *kept = b.failed ? NULL : arena_str(&c->out->arena, b.data);
    char *out = NULL;
    memcpy(&out, &kept, sizeof out); /* argv is not const, though nobody writes to it */
    buf_release(&b);
    return out;
}

static tare_status finish(struct checking *c, json_t *checked)
{
    const struct operation *op = c->op;
    c->out->argv = arena_new(&c->out->arena, op->argv.n + 1, sizeof *c->out->argv);
    for (size_t i = 0; c->out->argv && i < op->argv.n; i++)
        if (!(c->out->argv[i] = fill(c, op->argv.at[i]))) return error_nomem(c->err, "a command line");
    char *text = json_dumps(checked, JSON_COMPACT | JSON_SORT_KEYS);
    if (text) buf_add_str(&c->out->input, text);
    mem_free_libc(text);
    if (!text || c->out->arena.failed) return error_nomem(c->err, "a request");
    return buf_status(&c->out->input, c->err);
}

tare_status call_make(struct call *out, const struct operation *op, const void *json, size_t n,
                      tare_error *err)
{
    json_error_t why;
    json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why), *checked = json_object();
    struct checking c = {.out = out, .op = op, .err = err};
    tare_status s = TARE_OK;
    c.values = arena_new(&out->arena, op->n_parameters + 1, sizeof *c.values);
    if (!c.values || !checked)
        s = error_nomem(err, "a request");
    else if (!root)
        s = error_set(err, TARE_INVALID, "the request is no JSON: line %d: %.100s", why.line, why.text);
    else if (!json_is_object(root))
        s = error_set(err, TARE_INVALID, "the request is no object");
    if (s == TARE_OK) s = refuse_strangers(&c, root, "", 0);
    for (size_t i = 0; i < op->n_parameters && s == TARE_OK; i++) s = take(&c, i, root, checked);
    if (s == TARE_OK) s = finish(&c, checked);
    json_decref(root);
    json_decref(checked);
    return s;
}

void call_release(struct call *c)
{
    arena_release(&c->arena);
    buf_release(&c->input);
    *c = (struct call)CALL_INIT;
}
