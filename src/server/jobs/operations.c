/* SPDX-License-Identifier: MIT
 * operations.c - see operations.h: reads the operator's file strictly. What is not understood is refused with its
 * line: a limit that was misspelt must not be a limit that does not hold. */
#include "server/jobs/operations.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/judge/judge.h"
#include "analyze/watch/alert.h"
#include "core/json_pull.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/suggest.h"

enum { FILE_MAX = 1 << 20, TEXT_MAX = 4096 };

struct reading {
    struct json_pull p;
    struct operations *out;
    tare_error *err;
};

/* A key of an object, and what reads its value, whose first token was taken already. */
struct key {
    const char *name;
    tare_status (*read)(struct reading *r, enum pull_token first, void *to);
};

static tare_status next(struct reading *r, enum pull_token *out)
{
    tare_status s = json_pull_next(&r->p, out, r->err);
    return s == TARE_OK && r->p.cut ? json_pull_error(&r->p, r->err, "longer than %d bytes", TEXT_MAX) : s;
}

#define refuse(r, ...) json_pull_error(&(r)->p, (r)->err, __VA_ARGS__)

static tare_status no_memory(struct reading *r)
{
    return error_nomem(r->err, "%s", r->out->path);
}

/* One of the keys, by name. */
static tare_status read_key(struct reading *r, const struct key *keys, unsigned *seen, void *to)
{
    struct suggest near;
    suggest_init(&near, r->p.text.data, r->p.text.len);
    for (unsigned i = 0; keys[i].name; i++) {
        suggest_offer(&near, keys[i].name);
        if (strcmp(keys[i].name, r->p.text.data) != 0) continue;
        if (*seen >> i & 1) return refuse(r, "\"%s\" is there twice", keys[i].name);
        *seen |= 1u << i;
        enum pull_token first;
        tare_status s = next(r, &first);
        return s == TARE_OK ? keys[i].read(r, first, to) : s;
    }
    const char *best = suggest_best(&near);
    return refuse(r, "\"%.60s\" is no key here%s%s%s", r->p.text.data, best ? "; did you mean \"" : "",
                  best ? best : "", best ? "\"?" : "");
}

static tare_status read_object(struct reading *r, enum pull_token first, const struct key *keys, void *to)
{
    unsigned seen = 0;
    tare_status s = first == PULL_OBJECT ? next(r, &first) : refuse(r, "expected an object");
    while (s == TARE_OK && first == PULL_KEY) {
        s = read_key(r, keys, &seen, to);
        if (s == TARE_OK) s = next(r, &first);
    }
    return s;
}

/* ---- single values ---- */

static tare_status text_of(struct reading *r, enum pull_token t, const char **out)
{
    if (t != PULL_STRING) return refuse(r, "expected a text");
    if (strlen(r->p.text.data) != r->p.text.len || !str_is_utf8(r->p.text.data, r->p.text.len))
        return refuse(r, "a text that is no UTF-8, or has a NUL");
    *out = arena_str(&r->out->arena, r->p.text.data);
    return *out ? TARE_OK : no_memory(r);
}

static tare_status number_of(struct reading *r, enum pull_token t, double *out)
{
    char *end;
    if (t != PULL_NUMBER) return refuse(r, "expected a number");
    *out = strtod(r->p.text.data, &end);
    return *end || !isfinite(*out) ? refuse(r, "expected a number") : TARE_OK;
}

static tare_status count_of(struct reading *r, enum pull_token t, uint64_t most, uint64_t *out)
{
    int64_t v;
    if (t != PULL_NUMBER || strpbrk(r->p.text.data, ".eE") || !json_pull_scaled(r->p.text.data, 0, &v) ||
        v < 1 || (uint64_t)v > most)
        return refuse(r, "expected a whole number from 1 to %llu", (unsigned long long)most);
    *out = (uint64_t)v;
    return TARE_OK;
}

static tare_status bool_of(struct reading *r, enum pull_token t, bool *out)
{
    *out = t == PULL_TRUE;
    return t == PULL_TRUE || t == PULL_FALSE ? TARE_OK : refuse(r, "expected true or false");
}

static tare_status add_word(struct reading *r, struct words *w, const char *word)
{
    if (w->n >= WORDS_MAX) return refuse(r, "more than %d words", WORDS_MAX);
    const char **grown = arena_grow(&r->out->arena, w->at, w->n, sizeof *grown);
    if (!grown) return no_memory(r);
    grown[w->n++] = word;
    w->at = grown;
    return TARE_OK;
}

static tare_status words_of(struct reading *r, enum pull_token t, struct words *out)
{
    const char *word = NULL;
    tare_status s = t == PULL_ARRAY ? next(r, &t) : refuse(r, "expected a list of texts");
    while (s == TARE_OK && t != PULL_ARRAY_END) {
        s = text_of(r, t, &word);
        if (s == TARE_OK) s = add_word(r, out, word);
        if (s == TARE_OK) s = next(r, &t);
    }
    return s;
}

/* ---- a parameter ---- */

static tare_status param_type(struct reading *r, enum pull_token t, void *to)
{
    static const char *const names[] = {
#define X(name, text) text,
        PARAM_KINDS(X)
#undef X
    };
    struct parameter *p = to;
    for (unsigned i = 0; t == PULL_STRING && i < PARAM_KINDS_N; i++) {
        if (strcmp(names[i], r->p.text.data) != 0) continue;
        p->kind = (enum param_kind)i;
        return TARE_OK;
    }
    return refuse(r, "a type is int, number, bool, enum, names, run or texts");
}

static tare_status param_min(struct reading *r, enum pull_token t, void *to)
{
    return number_of(r, t, &((struct parameter *)to)->min);
}

static tare_status param_max(struct reading *r, enum pull_token t, void *to)
{
    return number_of(r, t, &((struct parameter *)to)->max);
}

static tare_status param_bytes(struct reading *r, enum pull_token t, void *to)
{
    return number_of(r, t, &((struct parameter *)to)->bytes);
}

static tare_status param_values(struct reading *r, enum pull_token t, void *to)
{
    return words_of(r, t, &((struct parameter *)to)->values);
}

static tare_status param_optional(struct reading *r, enum pull_token t, void *to)
{
    return bool_of(r, t, &((struct parameter *)to)->optional);
}

/* Kept as it stands; whether it is one of its type is seen when all of the parameter is there. */
static tare_status param_default(struct reading *r, enum pull_token t, void *to)
{
    struct parameter *p = to;
    const char *text = NULL;
    tare_status s = TARE_OK;
    if (t == PULL_STRING && (s = text_of(r, t, &text)) == TARE_OK) {
        if (text && strpbrk(text, "\"\\")) return refuse(r, "a default has no quotes");
        p->fallback = arena_printf(&r->out->arena, "\"%s\"", text);
    } else if (t == PULL_NUMBER) {
        p->fallback = arena_str(&r->out->arena, r->p.text.data);
    } else if (t == PULL_TRUE || t == PULL_FALSE) {
        p->fallback = t == PULL_TRUE ? "true" : "false";
    } else if (s == TARE_OK) {
        return refuse(r, "a default is a text, a number, true or false");
    }
    return s == TARE_OK && !p->fallback ? no_memory(r) : s;
}

static tare_status check_parameter(struct reading *r, const struct parameter *p)
{
    bool counted = p->kind == PARAM_INT || p->kind == PARAM_NUMBER;
    bool named = p->kind == PARAM_ENUM || p->kind == PARAM_NAMES;
    if (p->kind == PARAM_KINDS_N) return refuse(r, "parameter %s: \"type\" is missing", p->name);
    if (counted && !(p->min <= p->max)) return refuse(r, "parameter %s: needs min and max", p->name);
    if (p->kind == PARAM_INT && (fabs(p->min) > 0x1p53 || fabs(p->max) > 0x1p53))
        return refuse(r, "parameter %s: beyond 2^53", p->name);
    if (named && !p->values.n) return refuse(r, "parameter %s: needs its values", p->name);
    if (!named && p->values.n) return refuse(r, "parameter %s: values are for enum and names", p->name);
    if (p->kind == PARAM_TEXTS && !(p->max >= 1 && p->bytes >= 1))
        return refuse(r, "parameter %s: needs max (of texts) and bytes (of each)", p->name);
    if (p->fallback && (p->kind == PARAM_NAMES || p->kind == PARAM_RUN || p->kind == PARAM_TEXTS))
        return refuse(r, "parameter %s: only a single value has a default", p->name);
    return TARE_OK;
}

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

size_t operation_hole(const char *at)
{
    size_t n = *at == '{' ? strspn(at + 1, name_chars) : 0;
    return at[n] && at[n + 1] == '}' ? n : 0;
}

const struct parameter *operation_parameter(const struct operation *op, const char *name, size_t n)
{
    for (size_t i = 0; i < op->n_parameters; i++)
        if (strlen(op->parameters[i].name) == n && strncmp(op->parameters[i].name, name, n) == 0)
            return &op->parameters[i];
    return NULL;
}

static bool is_parameter_name(const char *s)
{
    size_t n = strspn(s, name_chars);
    return n && !s[n] && n < 64 && s[0] != '.' && s[n - 1] != '.' && !strstr(s, "..");
}

/* "a" and "a.b" cannot both be: one is a value, and the other is within it. */
static bool is_same_or_within(const char *a, const char *b)
{
    size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    return strncmp(a, b, n) == 0 && strchr(".", a[n]) && strchr(".", b[n]);
}

static tare_status read_parameter(struct reading *r, struct operation *op)
{
    static const struct key keys[] = {{"type", param_type},         {"min", param_min},
                                      {"max", param_max},           {"bytes", param_bytes},
                                      {"values", param_values},     {"default", param_default},
                                      {"optional", param_optional}, {NULL, NULL}};
    struct parameter p = {.kind = PARAM_KINDS_N, .min = NAN, .max = NAN, .bytes = NAN};
    enum pull_token t;
    if (!is_parameter_name(r->p.text.data))
        return refuse(r, "a parameter's name has letters, digits, _ - and dots between names of objects");
    for (size_t i = 0; i < op->n_parameters; i++)
        if (is_same_or_within(op->parameters[i].name, r->p.text.data))
            return refuse(r, "parameter %s is there twice, or within another", r->p.text.data);
    if (op->n_parameters >= PARAMETERS_MAX) return refuse(r, "more than %d parameters", PARAMETERS_MAX);
    p.name = arena_str(&r->out->arena, r->p.text.data);
    struct parameter *grown = arena_grow(&r->out->arena, op->parameters, op->n_parameters, sizeof *grown);
    if (!p.name || !grown) return no_memory(r);
    tare_status s = next(r, &t);
    if (s == TARE_OK) s = read_object(r, t, keys, &p);
    if (s == TARE_OK) s = check_parameter(r, &p);
    grown[op->n_parameters++] = p;
    op->parameters = grown;
    return s;
}

/* ---- an operation ---- */

static tare_status op_parameters(struct reading *r, enum pull_token t, void *to)
{
    tare_status s = t == PULL_OBJECT ? next(r, &t) : refuse(r, "expected an object of parameters");
    while (s == TARE_OK && t == PULL_KEY) {
        s = read_parameter(r, to);
        if (s == TARE_OK) s = next(r, &t);
    }
    return s;
}

static tare_status op_argv(struct reading *r, enum pull_token t, void *to)
{
    struct operation *op = to;
    tare_status s = words_of(r, t, &op->argv);
    if (s != TARE_OK) return s;
    if (!op->argv.n || op->argv.at[0][0] != '/' || strchr(op->argv.at[0], '{'))
        return refuse(r, "argv begins with the absolute path of a program: there is no shell and no search");
    return TARE_OK;
}

static tare_status op_env(struct reading *r, enum pull_token t, void *to)
{
    struct operation *op = to;
    tare_status s = words_of(r, t, &op->env);
    for (size_t i = 0; s == TARE_OK && i < op->env.n; i++) {
        size_t n = strcspn(op->env.at[i], "=");
        if (!n || !op->env.at[i][n]) s = refuse(r, "env: '%.60s' is not NAME=value", op->env.at[i]);
    }
    return s;
}

static tare_status paths_of(struct reading *r, enum pull_token t, struct words *out)
{
    tare_status s = words_of(r, t, out);
    for (size_t i = 0; s == TARE_OK && i < out->n; i++)
        if (out->at[i][0] != '/') s = refuse(r, "'%.60s' is no absolute path", out->at[i]);
    return s;
}

static tare_status op_reads(struct reading *r, enum pull_token t, void *to)
{
    return paths_of(r, t, &((struct operation *)to)->reads);
}

static tare_status op_writes(struct reading *r, enum pull_token t, void *to)
{
    return paths_of(r, t, &((struct operation *)to)->writes);
}

static tare_status op_network(struct reading *r, enum pull_token t, void *to)
{
    return bool_of(r, t, &((struct operation *)to)->network);
}

static tare_status op_perf(struct reading *r, enum pull_token t, void *to)
{
    return bool_of(r, t, &((struct operation *)to)->perf);
}

#define LIMIT(name, most)                                                                   \
    static tare_status op_##name(struct reading *r, enum pull_token t, void *to)            \
    {                                                                                       \
        return count_of(r, t, most, &((struct operation *)to)->limits.name);                \
    }
LIMIT(timeout_s, 86400)
LIMIT(cpu_s, 864000)
LIMIT(memory_mb, 1 << 24)
LIMIT(file_mb, 1 << 24)
LIMIT(open_files, 65536)
LIMIT(processes, 4096)
#undef LIMIT

/* Every {name} of the command line is a parameter with one value. */
static tare_status check_argv(struct reading *r, const struct operation *op)
{
    for (size_t i = 1; i < op->argv.n; i++) {
        for (const char *at = op->argv.at[i]; (at = strchr(at, '{')); at++) {
            size_t n = operation_hole(at);
            const struct parameter *p = operation_parameter(op, at + 1, n);
            if (!n) continue;
            if (!p)
                return refuse(r, "operation %s: argv: '%.60s' names no parameter", op->name, op->argv.at[i]);
            if (p->kind == PARAM_TEXTS || p->kind == PARAM_NAMES || p->optional)
                return refuse(r, "operation %s: argv: %s has no single value that is always there", op->name,
                              p->name);
        }
    }
    return TARE_OK;
}

/* A default must be what a request could have given: asked of call_make() itself. */
static tare_status check_defaults(struct reading *r, const struct operation *op)
{
    for (size_t i = 0; i < op->n_parameters; i++) {
        struct parameter one = op->parameters[i];
        char word[] = "/";
        const char *argv[] = {word};
        struct operation alone = {.argv = {argv, 1}, .parameters = &one, .n_parameters = 1};
        struct call c = CALL_INIT;
        tare_error why = TARE_ERROR_INIT;
        if (!one.fallback) continue;
        tare_status s = call_make(&c, &alone, "{}", 2, &why);
        call_release(&c);
        if (s == TARE_NOMEM) return no_memory(r);
        if (s != TARE_OK) return refuse(r, "operation %s: the default of %s", op->name, why.text);
    }
    return TARE_OK;
}

static bool is_operation_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return n && !s[n] && n < 64;
}

static tare_status read_operation(struct reading *r)
{
    static const struct key keys[] = {
        {"argv", op_argv},           {"parameters", op_parameters}, {"env", op_env},
        {"reads", op_reads},         {"network", op_network},       {"perf", op_perf},
        {"timeout_s", op_timeout_s}, {"cpu_s", op_cpu_s},           {"memory_mb", op_memory_mb},
        {"file_mb", op_file_mb},     {"open_files", op_open_files}, {"processes", op_processes},
        {"writes", op_writes},       {NULL, NULL}};
    struct operation op = {
        .limits = {.timeout_s = 600, .memory_mb = 8192, .file_mb = 1024, .open_files = 4096, .processes = 64}};
    struct operations *to = r->out;
    enum pull_token t;
    if (!is_operation_name(r->p.text.data))
        return refuse(r, "an operation's name has letters, digits, _ and -");
    if (operations_find(to, r->p.text.data)) return refuse(r, "operation %s is there twice", r->p.text.data);
    if (to->n >= OPERATIONS_MAX) return refuse(r, "more than %d operations", OPERATIONS_MAX);
    op.name = arena_str(&to->arena, r->p.text.data);
    struct operation *grown = arena_grow(&to->arena, to->at, to->n, sizeof *grown);
    if (!op.name || !grown) return no_memory(r);
    tare_status s = next(r, &t);
    if (s == TARE_OK) s = read_object(r, t, keys, &op);
    if (s == TARE_OK && !op.argv.n) s = refuse(r, "operation %s: \"argv\" is missing", op.name);
    if (s == TARE_OK) s = check_argv(r, &op);
    if (s == TARE_OK) s = check_defaults(r, &op);
    if (!op.limits.cpu_s) op.limits.cpu_s = op.limits.timeout_s * 4;
    if (s != TARE_OK) return s;
    grown[to->n++] = op;
    to->at = grown;
    return TARE_OK;
}

/* ---- the file ---- */

static tare_status top_operations(struct reading *r, enum pull_token t, void *to)
{
    (void)to;
    tare_status s = t == PULL_OBJECT ? next(r, &t) : refuse(r, "expected an object of operations");
    while (s == TARE_OK && t == PULL_KEY) {
        s = read_operation(r);
        if (s == TARE_OK) s = next(r, &t);
    }
    return s;
}

static tare_status top_schema(struct reading *r, enum pull_token t, void *to)
{
    *(bool *)to = t == PULL_STRING && strcmp(r->p.text.data, OPERATIONS_SCHEMA) == 0;
    return *(bool *)to ? TARE_OK : refuse(r, "expected \"" OPERATIONS_SCHEMA "\"");
}

#define SERVER_LIMIT(name, most)                                                    \
    static tare_status top_##name(struct reading *r, enum pull_token t, void *to)   \
    {                                                                               \
        (void)to;                                                                   \
        return count_of(r, t, most, &r->out->name);                                 \
    }
SERVER_LIMIT(at_once, RUNS_AT_ONCE_MAX)
SERVER_LIMIT(queue, 1000)
SERVER_LIMIT(per_token, 1000)
SERVER_LIMIT(wait_s, 600)
SERVER_LIMIT(uid, UINT32_MAX - 1)
#undef SERVER_LIMIT

static tare_status top_limits(struct reading *r, enum pull_token t, void *to)
{
    static const struct key keys[] = {{"at_once", top_at_once}, {"queue", top_queue}, {"per_token", top_per_token},
                                      {"wait_s", top_wait_s},   {"uid", top_uid},     {NULL, NULL}};
    return read_object(r, t, keys, to);
}

static tare_status alert_rules_of(struct reading *r, enum pull_token t, void *to)
{
    struct words *rules = &r->out->alert_rules;
    (void)to;
    tare_status s = words_of(r, t, rules);
    for (size_t i = 0; s == TARE_OK && i < rules->n; i++) {
        struct alert_rule rule;
        tare_error why = TARE_ERROR_INIT;
        alert_parse_served(&rule, rules->at[i], &why);
        bool runs = why.status == TARE_OK && strcmp(rule.when.name, ALERT_REGRESSION) == 0;
        if (why.status != TARE_OK)
            s = refuse(r, "%.300s", why.text);
        else if (runs && rule.for_ns)
            s = refuse(r, "%.160s: runs are judged as they come: no for", rule.text);
        else if (runs && rule.when.label[0] && !measure_find(rule.when.label))
            s = refuse(r, "%.160s: runs have no number %.60s", rule.text, rule.when.label);
    }
    return s;
}

static tare_status url_of(struct reading *r, enum pull_token t, const char **url)
{
    tare_status s = text_of(r, t, url);
    if (s == TARE_OK &&
        ((strncmp(*url, "http://", 7) != 0 && strncmp(*url, "https://", 8) != 0) || strpbrk(*url, "\r\n")))
        s = refuse(r, "expected a URL of the kind https://host/path");
    return s;
}

static tare_status alert_webhook_of(struct reading *r, enum pull_token t, void *to)
{
    (void)to;
    return url_of(r, t, &r->out->alert_webhook);
}

static tare_status alert_command_of(struct reading *r, enum pull_token t, void *to)
{
    (void)to;
    return text_of(r, t, &r->out->alert_command);
}

static tare_status top_alerts(struct reading *r, enum pull_token t, void *to)
{
    static const struct key keys[] = {{"rules", alert_rules_of},
                                      {"webhook", alert_webhook_of},
                                      {"command", alert_command_of},
                                      {NULL, NULL}};
    return read_object(r, t, keys, to);
}

/* ---- where samples are handed on to ---- */

static tare_status export_url(struct reading *r, enum pull_token t, void *to)
{
    return url_of(r, t, &((struct export_to *)to)->url);
}

static tare_status export_token_file(struct reading *r, enum pull_token t, void *to)
{
    return text_of(r, t, &((struct export_to *)to)->token_file);
}

static tare_status export_protocol(struct reading *r, enum pull_token t, void *to)
{
    struct export_to *e = to;
    e->prometheus = t == PULL_STRING && strcmp(r->p.text.data, "prometheus") == 0;
    if (e->prometheus || (t == PULL_STRING && strcmp(r->p.text.data, "otlp") == 0)) return TARE_OK;
    return refuse(r, "expected \"otlp\" or \"prometheus\"");
}

static tare_status read_export(struct reading *r)
{
    static const struct key keys[] = {{"url", export_url},
                                      {"protocol", export_protocol},
                                      {"token_file", export_token_file},
                                      {NULL, NULL}};
    struct export_to e = {.name = arena_str(&r->out->arena, r->p.text.data)};
    enum pull_token t;
    if (!e.name) return no_memory(r);
    if (!is_operation_name(e.name)) return refuse(r, "a name has letters, digits, _ and -, and at most 63 of them");
    if (r->out->n_exports == EXPORTS_MAX) return refuse(r, "more than %d of them", EXPORTS_MAX);
    tare_status s = next(r, &t);
    if (s == TARE_OK) s = read_object(r, t, keys, &e);
    if (s == TARE_OK && !e.url) s = refuse(r, "%s: \"url\" is missing", e.name);
    if (s == TARE_OK) r->out->exports[r->out->n_exports++] = e;
    return s;
}

static tare_status top_exports(struct reading *r, enum pull_token t, void *to)
{
    (void)to;
    tare_status s = t == PULL_OBJECT ? next(r, &t) : refuse(r, "expected an object of exports");
    while (s == TARE_OK && t == PULL_KEY) {
        s = read_export(r);
        if (s == TARE_OK) s = next(r, &t);
    }
    return s;
}

struct bytes {
    const char *at;
    size_t left;
};

static tare_status give_bytes(void *ctx, void *to, size_t room, size_t *n, tare_error *err)
{
    struct bytes *b = ctx;
    (void)err;
    *n = b->left < room ? b->left : room;
    if (*n) memcpy(to, b->at, *n);
    b->at += *n;
    b->left -= *n;
    return TARE_OK;
}

static tare_status read_file(struct reading *r)
{
    static const struct key keys[] = {
        {"schema", top_schema}, {"limits", top_limits}, {"operations", top_operations}, {"alerts", top_alerts},
        {"exports", top_exports}, {NULL, NULL}};
    bool schema = false;
    enum pull_token t;
    tare_status s = next(r, &t);
    if (s == TARE_OK) s = read_object(r, t, keys, &schema);
    if (s == TARE_OK) s = next(r, &t); /* what follows is an error */
    if (s == TARE_OK && !schema) s = refuse(r, "\"schema\": \"" OPERATIONS_SCHEMA "\" is missing");
    if (s == TARE_OK && r->out->arena.failed) s = no_memory(r);
    return s;
}

tare_status operations_read(struct operations *out, const char *path, const void *bytes, size_t n,
                            tare_error *err)
{
    struct bytes from = {bytes, n};
    struct reading r = {.out = out, .err = err};
    if (n > FILE_MAX) return error_set(err, TARE_INVALID, "%s: larger than 1 MiB", path);
    out->path = arena_str(&out->arena, path);
    if (!out->path) return error_nomem(err, "%s", path);
    tare_status s = json_pull_init(&r.p, (struct json_source){out->path, give_bytes, &from}, TEXT_MAX, err);
    if (s == TARE_OK) s = read_file(&r);
    json_pull_release(&r.p);
    if (s == TARE_FORMAT && err) err->status = TARE_INVALID;
    return s == TARE_FORMAT ? TARE_INVALID : s;
}

tare_status operations_open(struct operations *out, const char *path, tare_error *err)
{
    struct stat st;
    struct buf text = BUF_INIT;
    char piece[4096];
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0) {
        tare_status s = error_errno(err, "%s: cannot be read", path);
        if (fd >= 0) close(fd);
        return s;
    }
    tare_status s = TARE_OK;
    if (!S_ISREG(st.st_mode))
        s = error_set(err, TARE_INVALID, "%s: is no regular file", path);
    else if ((st.st_mode & 022) || (st.st_uid != 0 && st.st_uid != geteuid()))
        s = error_set(err, TARE_INVALID,
                      "%s: it says what this server runs, and others may write it: make it its owner's alone "
                      "(chmod go-w)",
                      path);
    while (s == TARE_OK && text.len <= FILE_MAX && (n = read(fd, piece, sizeof piece)) > 0)
        buf_add(&text, piece, (size_t)n);
    if (s == TARE_OK && n < 0) s = error_errno(err, "%s: cannot be read", path);
    if (s == TARE_OK) s = buf_status(&text, err);
    if (s == TARE_OK) s = operations_read(out, path, text.data, text.len, err);
    close(fd);
    buf_release(&text);
    return s;
}

void operations_release(struct operations *o)
{
    arena_release(&o->arena);
    *o = (struct operations)OPERATIONS_INIT;
}

const struct operation *operations_find(const struct operations *o, const char *name)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->at[i].name, name) == 0) return &o->at[i];
    return NULL;
}
