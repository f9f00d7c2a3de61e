/* SPDX-License-Identifier: MIT
 * text.c - see text.h. */
#include "load/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Is there a line for this header? `name` in any case. */
static bool has_header(const char *lines, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = lines; at && *at; at = strchr(at, '\n')) {
        if (*at == '\n') at++;
        if (strncasecmp(at, name, n) == 0 && at[n] == ':') return true;
    }
    return false;
}

static const char *method_of(const struct load_wording *w, const struct load_request *r)
{
    if (w->method) return w->method;
    return r->body.len ? "POST" : "GET";
}

static bool may_have_body(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
}

void load_write_request(const struct load_wording *w, const struct load_request *r, struct buf *out)
{
    const char *method = method_of(w, r), *more = r->headers.data;
    buf_printf(out, "%s %s HTTP/1.1\r\n", method, r->target.len ? r->target.data : w->to->target);
    if (!has_header(w->headers, "Host")) buf_printf(out, "Host: %s\r\n", w->to->authority);
    if (!has_header(w->headers, "User-Agent")) buf_add_str(out, "User-Agent: tare\r\n");
    if (!has_header(w->headers, "Accept") && !has_header(more, "Accept")) buf_add_str(out, "Accept: */*\r\n");
    if (w->headers) buf_add_str(out, w->headers);
    buf_add(out, more, r->headers.len);
    if (w->content_type && !has_header(w->headers, "Content-Type") && !has_header(more, "Content-Type"))
        buf_printf(out, "Content-Type: %s\r\n", w->content_type);
    if (r->body.len || may_have_body(method)) buf_printf(out, "Content-Length: %zu\r\n", r->body.len);
    if (w->closes) buf_add_str(out, "Connection: close\r\n");
    buf_add_str(out, "\r\n");
    buf_add(out, r->body.data, r->body.len);
}

/* RFC 9110, token. */
static bool is_name(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (!c || !strchr("!#$%&'*+-.^_`|~", c))) return false;
    }
    return n > 0;
}

static bool is_value(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) return false;
    return true;
}

tare_status load_add_header(struct buf *lines, const char *text, tare_error *err)
{
    static const char *const ours[] = {"content-length", "transfer-encoding", "connection"};
    const char *colon = strchr(text, ':'), *value = colon ? colon + 1 : NULL;
    size_t n = colon ? (size_t)(colon - text) : 0;
    if (!is_name(text, n))
        return error_set(err, TARE_INVALID, "expected 'Name: value' or 'Name: env:VARIABLE'");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strlen(ours[i]) == n && strncasecmp(text, ours[i], n) == 0)
            return error_set(err, TARE_INVALID, "%s is written by tare itself", ours[i]);
    value += strspn(value, " \t");
    if (strncmp(value, "env:", 4) == 0) {
        const char *name = value + 4;
        value = secure_getenv(name);
        if (!value)
            return error_set(err, TARE_INVALID, "%.*s: the variable %s is not set", (int)n, text, name);
    }
    if (!is_value(value))
        return error_set(err, TARE_INVALID, "%.*s: the value has a character that no header has", (int)n,
                         text);
    buf_printf(lines, "%.*s: %s\r\n", (int)n, text, value);
    return buf_status(lines, err);
}

void load_request_clear(struct load_request *r)
{
    buf_clear(&r->target);
    buf_clear(&r->headers);
    buf_clear(&r->body);
}

void load_request_release(struct load_request *r)
{
    buf_release(&r->target);
    buf_release(&r->headers);
    buf_release(&r->body);
}
