/* SPDX-License-Identifier: MIT
 * exchange.c - replies as handlers write them, and what the query says. */
#include "server/net/exchange.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/clock.h"
#include "core/fmt.h"
#include "core/json.h"
#include "core/str.h"
#include "core/unit.h"

static const struct {
    unsigned status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {303, "See Other"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *reply_reason(unsigned status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status) return reasons[i].reason;
    return "Unknown";
}

void reply_json(struct exchange *x, unsigned status)
{
    x->reply.status = status;
    x->reply.type = "application/json";
}

void reply_problem(struct exchange *x, unsigned status, const char *detail, ...)
{
    char text[600];
    struct json j;
    va_list ap;
    va_start(ap, detail);
    vsnprintf(text, sizeof text, detail, ap);
    va_end(ap);
    x->reply.status = status;
    x->reply.type = "application/problem+json";
    buf_clear(&x->reply.body);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "type", "about:blank");
    json_kv_string(&j, "title", reply_reason(status));
    json_kv_uint(&j, "status", status);
    json_kv_string(&j, "detail", text);
    json_kv_string(&j, "request", x->id);
    json_object_end(&j);
    json_finish(&j, NULL); /* where memory ran out the status alone goes out */
}

void reply_refused(struct exchange *x, unsigned status, const tare_error *err)
{
    bool memory = err->status == TARE_NOMEM;
    reply_problem(x, memory ? 503 : status, "%s", memory ? "no memory" : err->text);
}

void reply_time(struct json *j, const char *key, int64_t unix_ms)
{
    struct buf text = BUF_INIT;
    if (unix_ms > 0) fmt_date(&text, (uint64_t)unix_ms * 1000000, true);
    json_kv_string(j, key, text.len ? text.data : NULL);
    buf_release(&text);
}

void reply_release(struct reply *r)
{
    buf_release(&r->body);
    *r = (struct reply){.body = BUF_INIT};
}

/* ---- the body ---- */

bool exchange_has_type(const struct exchange *x, const char *type)
{
    const char *is = http_header(&x->head, "content-type");
    size_t n = strlen(type);
    return is && strncasecmp(is, type, n) == 0 && strchr("; ", is[n]);
}

tare_status exchange_json(const struct exchange *x, json_t **out, tare_error *err)
{
    json_error_t why;
    errno = 0; /* jansson takes a refused allocation for a syntax error of the text, at some places */
    *out = json_loadb(x->body.data, x->body.len, JSON_REJECT_DUPLICATES, &why);
    if (*out) return TARE_OK;
    if (errno == ENOMEM) return error_nomem(err, "the body");
    return error_set(err, TARE_INVALID, "the body is no JSON: line %d, column %d: %.150s", why.line,
                     why.column, why.text);
}

/* ---- the query ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* n bytes at s, + and %xx decoded, once. What is no UTF-8 goes no further: it names nothing, and not every store takes
 * it. */
static tare_status decode(struct exchange *x, const char *s, size_t n, const char **out, tare_error *err)
{
    char *text = arena_new(&x->arena, n + 1, 1);
    size_t used = 0;
    if (!text) return error_nomem(err, "a query");
    for (size_t i = 0; i < n; i++) {
        char c = s[i] == '+' ? ' ' : s[i];
        if (c == '%') {
            int hi = n - i > 2 ? hex_digit(s[i + 1]) : -1;
            int lo = n - i > 2 ? hex_digit(s[i + 2]) : -1;
            if (hi < 0 || lo < 0 || (hi | lo) == 0)
                return error_set(err, TARE_INVALID,
                                 "the query has a %% that is followed by no two hex digits, or by 00");
            c = (char)(hi * 16 + lo);
            i += 2;
        }
        text[used++] = c;
    }
    if (!str_is_utf8(text, used)) return error_set(err, TARE_INVALID, "the query is no UTF-8");
    *out = text;
    return TARE_OK;
}

tare_status exchange_query(struct exchange *x, const char *name, const char **out, tare_error *err)
{
    size_t length = strlen(name);
    *out = NULL;
    for (const char *at = x->head.query; *at;) {
        size_t n = strcspn(at, "&");
        if (n > length && strncmp(at, name, length) == 0 && at[length] == '=')
            return decode(x, at + length + 1, n - length - 1, out, err);
        at += n + (at[n] == '&');
    }
    return TARE_OK;
}

/* Digits and nothing else. */
static bool whole_number(const char *text, uint64_t *out)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return !*end && !errno;
}

tare_status exchange_query_number(struct exchange *x, const char *name, struct number_range among,
                                  uint64_t *out, tare_error *err)
{
    const char *text = NULL;
    uint64_t v;
    tare_status s = exchange_query(x, name, &text, err);
    if (s != TARE_OK || !text) return s;
    if (!whole_number(text, &v) || v < among.least || v > among.most)
        return error_set(err, TARE_INVALID, "%s is a number from %llu to %llu", name,
                         (unsigned long long)among.least, (unsigned long long)among.most);
    *out = v;
    return TARE_OK;
}

static bool length_of(const char *text, int64_t *ms)
{
    struct duration d;
    if (unit_parse_duration(text, &d, NULL) != TARE_OK || d.ns < 0) return false;
    *ms = d.ns / 1000000;
    return true;
}

static bool time_of(const char *text, int64_t *ms)
{
    uint64_t v;
    int64_t unix_s;
    if (whole_number(text, &v)) {
        *ms = (int64_t)v;
        return v <= (uint64_t)INT64_MAX / 1000000;
    }
    if (*text == '-' && length_of(text + 1, ms)) {
        *ms = (int64_t)(clock_unix_ns() / 1000000) - *ms;
        return *ms >= 0;
    }
    const char *rest = unit_date(text, "%Y-%m-%dT%H:%M:%SZ", &unix_s);
    if (!rest || *rest || unix_s < 0) return false;
    *ms = unix_s * 1000;
    return true;
}

tare_status exchange_query_time(struct exchange *x, const char *name, int64_t *unix_ms, tare_error *err)
{
    const char *text;
    int64_t v;
    tare_status s = exchange_query(x, name, &text, err);
    if (s != TARE_OK || !text) return s;
    if (!time_of(text, &v))
        return error_set(err, TARE_INVALID,
                         "%s is a time: unix ms, 2026-11-16T14:00:00Z, or -6h for so long ago", name);
    *unix_ms = v;
    return TARE_OK;
}

tare_status exchange_query_length(struct exchange *x, const char *name, int64_t *ms, tare_error *err)
{
    const char *text;
    int64_t v;
    tare_status s = exchange_query(x, name, &text, err);
    if (s != TARE_OK || !text) return s;
    if (!length_of(text, &v))
        return error_set(err, TARE_INVALID, "%s is a length of time: 10s, 5m, 1h", name);
    *ms = v;
    return TARE_OK;
}
