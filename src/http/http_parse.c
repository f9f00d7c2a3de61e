/* SPDX-License-Identifier: MIT
 * http_parse.c - llhttp and the policy around it. Each rule is a refusal: nothing is mended, nothing guessed. */
#include "http/http_parse.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#ifdef WITH_LLHTTP
#include <llhttp.h>
#endif

static const char *const method_names[METHODS] = {
    [METHOD_OTHER] = "", [METHOD_GET] = "GET", [METHOD_HEAD] = "HEAD", [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT", [METHOD_PATCH] = "PATCH", [METHOD_DELETE] = "DELETE", [METHOD_OPTIONS] = "OPTIONS",
};

const char *http_method_name(enum http_method m)
{
    return method_names[m];
}

const char *http_header(const struct http_head *head, const char *name)
{
    for (unsigned i = 0; i < head->n_headers; i++)
        if (strcmp(head->text + head->headers[i].name, name) == 0) return head->text + head->headers[i].value;
    return NULL;
}

/* ---- Host ---- */

static bool is_one_of(char c, const char *others)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr(others, c));
}

static bool is_port(const char *s)
{
    unsigned n = 0, port = 0;
    for (; s[n] >= '0' && s[n] <= '9' && n < 6; n++) port = port * 10 + (unsigned)(s[n] - '0');
    return n > 0 && n < 6 && !s[n] && port <= 65535;
}

bool http_host_ok(const char *host)
{
    size_t n = 0;
    if (strnlen(host, HTTP_HOST_MAX + 1) > HTTP_HOST_MAX) return false;
    if (host[0] == '[') {
        n = strspn(host + 1, "0123456789abcdefABCDEF:.");
        if (n < 2 || host[n + 1] != ']') return false;
        n += 2;
    } else {
        while (is_one_of(host[n], ".-_")) n++;
        if (n == 0 || host[0] == '.') return false;
    }
    return !host[n] || (host[n] == ':' && is_port(host + n + 1));
}

#ifdef WITH_LLHTTP

static_assert(sizeof(llhttp_t) <= sizeof(((struct http_parser *)0)->machine), "llhttp_t grew: widen machine");

#define TEXT_(n) #n
#define TEXT(n) TEXT_(n)

const char *http_library(void)
{
    return TEXT(LLHTTP_VERSION_MAJOR) "." TEXT(LLHTTP_VERSION_MINOR) "." TEXT(LLHTTP_VERSION_PATCH);
}

static llhttp_t *machine_of(struct http_parser *p)
{
    return (llhttp_t *)&p->machine;
}

static int refuse(struct http_parser *p, uint16_t status, const char *why)
{
    if (!p->status) {
        p->status = p->replies ? 502 : status;
        p->why = why;
    }
    return HPE_USER;
}

static uint32_t place_of(const struct http_parser *p, const char *at)
{
    return (uint32_t)(p->before + (uint64_t)(at - p->slice));
}

/* The bytes of a head were counted before they came here: `text` holds what HTTP_HEAD_MAX lets through. */
static int keep(struct http_parser *p, const char *at, size_t n, bool lower)
{
    struct http_head *h = p->head;
    if (n > sizeof h->text - 1 - h->used) return refuse(p, 431, "the head is too large");
    for (size_t i = 0; i < n; i++)
        h->text[h->used + i] = (char)(lower && at[i] >= 'A' && at[i] <= 'Z' ? at[i] - 'A' + 'a' : at[i]);
    h->used += (unsigned)n;
    return 0;
}

static int end_text(struct http_parser *p)
{
    return keep(p, "", 1, false);
}

/* ---- the request line ---- */

static int on_method(llhttp_t *m, const char *at, size_t n)
{
    struct http_parser *p = m->data;
    p->method_end = place_of(p, at + n);
    return 0;
}

static int on_method_complete(llhttp_t *m)
{
    struct http_parser *p = m->data;
    static const struct {
        uint8_t theirs;
        enum http_method ours;
    } known[] = {{HTTP_GET, METHOD_GET},        {HTTP_HEAD, METHOD_HEAD},   {HTTP_POST, METHOD_POST},
                 {HTTP_PUT, METHOD_PUT},        {HTTP_PATCH, METHOD_PATCH}, {HTTP_DELETE, METHOD_DELETE},
                 {HTTP_OPTIONS, METHOD_OPTIONS}};
    if (m->method == HTTP_CONNECT) return refuse(p, 501, "CONNECT is not served");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].theirs == m->method) p->head->method = known[i].ours;
    return 0;
}

/* llhttp skips any number of blanks between the parts of the line; where they begin tells. */
static int on_url(llhttp_t *m, const char *at, size_t n)
{
    struct http_parser *p = m->data;
    if (!p->url_begin) {
        p->url_begin = place_of(p, at);
        if (p->url_begin != p->method_end + 1) return refuse(p, 400, "one blank stands before the target");
    }
    p->url_end = place_of(p, at + n);
    if (p->url_end - p->url_begin > HTTP_URL_MAX) return refuse(p, 414, "the target is too long");
    return keep(p, at, n, false);
}

static int on_url_complete(llhttp_t *m)
{
    return end_text(m->data);
}

static int on_version(llhttp_t *m, const char *at, size_t n)
{
    struct http_parser *p = m->data;
    (void)n;
    if (!p->saw_version && !p->replies && place_of(p, at) != p->url_end + 1 + 5) /* " HTTP/" */
        return refuse(p, 400, "one blank stands before the version");
    p->saw_version = true;
    return 0;
}

static int on_version_complete(llhttp_t *m)
{
    struct http_parser *p = m->data;
    if (m->http_major != 1 || m->http_minor > 1) return refuse(p, 505, "only HTTP/1.0 and 1.1 are served");
    p->head->http10 = m->http_minor == 0;
    p->version_done = true;
    return 0;
}

/* ---- headers and trailers ---- */

static int on_header_field(llhttp_t *m, const char *at, size_t n)
{
    struct http_parser *p = m->data;
    struct http_head *h = p->head;
    if (p->head_done) { /* of trailers nothing is kept but what must be refused */
        for (size_t i = 0; i < n && p->n_trailer < sizeof p->trailer - 1; i++)
            p->trailer[p->n_trailer++] = at[i];
        return 0;
    }
    if (!h->n_headers || h->headers[h->n_headers - 1].value) {
        if (h->n_headers == HTTP_HEADERS_MAX) return refuse(p, 431, "too many headers");
        h->headers[h->n_headers++] = (struct http_header){(uint16_t)h->used, 0};
    }
    return keep(p, at, n, true);
}

static int on_header_field_complete(llhttp_t *m)
{
    struct http_parser *p = m->data;
    struct http_head *h = p->head;
    if (p->head_done) {
        p->trailer[p->n_trailer] = 0;
        p->n_trailer = 0;
        if (strcasecmp(p->trailer, "content-length") == 0 ||
            strcasecmp(p->trailer, "transfer-encoding") == 0 || strcasecmp(p->trailer, "host") == 0)
            return refuse(p, 400, "a trailer cannot frame the message");
        return 0;
    }
    int rc = end_text(p);
    h->headers[h->n_headers - 1].value = (uint16_t)h->used;
    return rc;
}

static int on_header_value(llhttp_t *m, const char *at, size_t n)
{
    struct http_parser *p = m->data;
    return p->head_done ? 0 : keep(p, at, n, false);
}

static int on_header_value_complete(llhttp_t *m)
{
    struct http_parser *p = m->data;
    struct http_head *h = p->head;
    if (p->head_done) return 0;
    while (h->used > h->headers[h->n_headers - 1].value && strchr(" \t", h->text[h->used - 1])) h->used--;
    return end_text(p);
}

/* ---- the policy over a whole head ---- */

/* http://authority/path: the authority takes the place of Host, as RFC 9112 3.2.2 wants. */
static int split_absolute(struct http_parser *p, char *target, size_t scheme)
{
    struct http_head *h = p->head;
    char *authority = target + scheme, *path = authority + strcspn(authority, "/?");
    size_t n = (size_t)(path - authority);
    memmove(target, authority, n); /* one byte of the scheme becomes its NUL, one the / of an empty path */
    target[n] = 0;
    h->host = target;
    if (!http_host_ok(target)) return refuse(p, 400, "the target names no good host");
    if (*path != '/') *--path = '/';
    h->path = path;
    return 0;
}

static int split_target(struct http_parser *p)
{
    struct http_head *h = p->head;
    char *target = h->text;
    int rc = 0;
    h->path = target;
    if (strchr(target, '#')) return refuse(p, 400, "a target has no fragment");
    if (strncasecmp(target, "http://", 7) == 0)
        rc = split_absolute(p, target, 7);
    else if (strncasecmp(target, "https://", 8) == 0)
        rc = split_absolute(p, target, 8);
    else if (target[0] != '/' && !(h->method == METHOD_OPTIONS && strcmp(target, "*") == 0))
        return refuse(p, 400, "the target is neither a path nor a URL");
    if (rc) return rc;
    char *query = strchr(h->text + (h->path - h->text), '?');
    h->query = query ? query + 1 : "";
    if (query) *query = 0;
    return 0;
}

struct seen {
    unsigned host, coding, length, expect, authorization;
};

static int look_at_header(struct http_parser *p, const char *name, const char *value, struct seen *seen)
{
    struct http_head *h = p->head;
    if (strcmp(name, "host") == 0) {
        seen->host++;
        if (!http_host_ok(value)) return refuse(p, 400, "Host is not well-formed");
        if (!h->host) h->host = value;
    } else if (strcmp(name, "transfer-encoding") == 0) {
        seen->coding++;
        if (!*value) return refuse(p, 400, "Transfer-Encoding is empty");
        if (strcasecmp(value, "chunked") != 0)
            return refuse(p, 501, "no other coding than chunked is served");
        h->chunked = true;
    } else if (strcmp(name, "content-length") == 0) {
        seen->length++;
    } else if (strcmp(name, "authorization") == 0) {
        seen->authorization++;
    } else if (strcmp(name, "expect") == 0 && !h->http10) {
        if (strcasecmp(value, "100-continue") != 0) return refuse(p, 417, "nothing but 100-continue is met");
        h->expects_continue = true;
    }
    return 0;
}

static int check_headers(struct http_parser *p)
{
    struct http_head *h = p->head;
    struct seen seen = {0};
    for (unsigned i = 0; i < h->n_headers; i++) {
        int rc = look_at_header(p, h->text + h->headers[i].name, h->text + h->headers[i].value, &seen);
        if (rc) return rc;
    }
    if (seen.host != 1 && !p->replies)
        return refuse(p, 400, seen.host ? "Host stands there twice" : "Host is missing");
    if (seen.coding > 1 || seen.length > 1 || seen.authorization > 1)
        return refuse(p, 400, "a header that may stand there once stands there twice");
    if (seen.coding && seen.length)
        return refuse(p, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (seen.coding && h->http10) return refuse(p, 400, "HTTP/1.0 knows no Transfer-Encoding");
    return 0;
}

/* Pauses llhttp, so that whoever reads can decide before the body: PARSE_HEAD. */
static int on_headers_complete(llhttp_t *m)
{
    struct http_parser *p = m->data;
    struct http_head *h = p->head;
    if (!p->saw_version) return refuse(p, 505, "only HTTP/1.0 and 1.1 are served");
    if ((!p->replies && split_target(p)) || check_headers(p)) return -1;
    /* A blank of another kind behind the word: what two readers of one message read differently is refused. */
    if (h->chunked && !(m->flags & F_CHUNKED))
        return refuse(p, 400, "Transfer-Encoding is not just the word chunked");
    if (p->replies) {
        h->status = (uint16_t)m->status_code;
        if (h->status < 100 || h->status == 101) return refuse(p, 0, "this is no status of a reply");
        h->until_end = llhttp_message_needs_eof(m);
    }
    h->keep_alive = llhttp_should_keep_alive(m);
    h->length = h->chunked ? 0 : m->content_length;
    m->upgrade = 0; /* never: else llhttp would stop at it */
    p->head_done = true;
    return HPE_PAUSED;
}

static int on_body(llhttp_t *m, const char *at, size_t n)
{
    struct http_parser *p = m->data;
    p->body += n;
    p->to_body(p->ctx, at, n);
    return 0;
}

static int on_message_complete(llhttp_t *m)
{
    struct http_parser *p = m->data;
    p->ended = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_method = on_method,
    .on_method_complete = on_method_complete,
    .on_url = on_url,
    .on_url_complete = on_url_complete,
    .on_version = on_version,
    .on_version_complete = on_version_complete,
    .on_header_field = on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- feeding ---- */

void http_parser_init(struct http_parser *p, http_body_fn *to_body, void *ctx)
{
    *p = (struct http_parser){.to_body = to_body, .ctx = ctx};
    llhttp_init(machine_of(p), HTTP_REQUEST, &settings);
    machine_of(p)->data = p;
}

void http_parser_init_replies(struct http_parser *p, http_body_fn *to_body, void *ctx)
{
    *p = (struct http_parser){.to_body = to_body, .ctx = ctx, .replies = true};
    llhttp_init(machine_of(p), HTTP_RESPONSE, &settings);
    machine_of(p)->data = p;
}

void http_begin(struct http_parser *p, struct http_head *head)
{
    machine_of(p)->data = p; /* it may have moved */
    p->head = head;
    p->before = p->body = 0;
    p->method_end = p->url_begin = p->url_end = 0;
    p->saw_version = p->version_done = p->head_done = p->ended = false;
    p->n_trailer = 0;
    memset(head, 0, offsetof(struct http_head, headers));
    head->query = "";
}

static enum http_step refused(struct http_parser *p, uint16_t status, const char *why)
{
    refuse(p, status, why);
    return PARSE_REFUSED;
}

static enum http_step judge_failure(struct http_parser *p, llhttp_errno_t error)
{
    if (error == HPE_INVALID_VERSION && !p->version_done)
        return refused(p, 505, "only HTTP/1.0 and 1.1 are served");
    return refused(p, 400, p->replies ? "this is no reply of HTTP/1.1" : "this is no request of HTTP/1.1");
}

/* Chunk lines and trailers are not bytes of the body, and nothing else bounds them. */
static bool has_too_many_chunks(const struct http_parser *p)
{
    return p->head->chunked && p->before - p->body > HTTP_CHUNK_OVERHEAD_MAX + p->body / 8;
}

static bool is_line_end(char c)
{
    return c == '\r' || c == '\n';
}

/* What stands behind the target, as far as the n bytes of this slice reach: a line that ends there is HTTP/0.9, and
 * llhttp also reads RTSP and ICE. False: refused. */
static bool check_behind_target(struct http_parser *p, size_t n)
{
    uint64_t end = p->before + n;
    if (!p->url_begin) return true;
    if (p->url_end >= p->before && p->url_end < end && is_line_end(p->slice[p->url_end - p->before]))
        return refuse(p, 505, "only HTTP/1.0 and 1.1 are served") == 0;
    uint64_t at = (uint64_t)p->url_end + 1;
    if (at >= p->before && at < end && !strchr(" H", p->slice[at - p->before]))
        return refuse(p, 400, "only HTTP is served") == 0;
    return true;
}

enum http_step http_parse(struct http_parser *p, const char *bytes, size_t n, size_t *used)
{
    llhttp_t *m = machine_of(p);
    size_t take = n;
    *used = 0;
    if (p->status) return PARSE_REFUSED;
    if (!p->head_done && take > HTTP_HEAD_MAX - p->before) take = HTTP_HEAD_MAX - p->before;
    if (n && !take) return refused(p, 431, "the head is too large");
    if (p->waits) llhttp_resume(m);
    p->waits = false;
    bool had_head = p->head_done, saw_version = p->saw_version;
    p->slice = bytes;
    llhttp_errno_t error = llhttp_execute(m, bytes, take);
    if (!saw_version && !check_behind_target(p, take)) return PARSE_REFUSED;
    p->waits = error == HPE_PAUSED;
    *used = p->waits ? (size_t)(llhttp_get_error_pos(m) - bytes) : take;
    p->before = p->head_done && !had_head ? 0 : p->before + *used;
    if (p->status) return PARSE_REFUSED;
    if (error != HPE_OK && error != HPE_PAUSED) return judge_failure(p, error);
    if (p->head_done && has_too_many_chunks(p)) return refused(p, 400, "too much around the chunks");
    if (p->ended) return PARSE_END;
    if (p->head_done && !had_head) return PARSE_HEAD;
    return PARSE_MORE;
}

enum http_step http_parse_ended(struct http_parser *p)
{
    llhttp_t *m = machine_of(p);
    if (p->status) return PARSE_REFUSED;
    if (p->waits) llhttp_resume(m);
    p->waits = false;
    if (p->head_done && p->head->until_end) llhttp_finish(m);
    return p->ended ? PARSE_END : refused(p, 400, "it ends in the middle");
}

#else

const char *http_library(void)
{
    return NULL;
}

void http_parser_init_replies(struct http_parser *p, http_body_fn *to_body, void *ctx)
{
    http_parser_init(p, to_body, ctx);
}

enum http_step http_parse_ended(struct http_parser *p)
{
    size_t used;
    return http_parse(p, "", 0, &used);
}

void http_parser_init(struct http_parser *p, http_body_fn *to_body, void *ctx)
{
    *p = (struct http_parser){.to_body = to_body, .ctx = ctx};
}

void http_begin(struct http_parser *p, struct http_head *head)
{
    p->head = head;
}

enum http_step http_parse(struct http_parser *p, const char *bytes, size_t n, size_t *used)
{
    (void)bytes, (void)n;
    *used = 0;
    p->status = 503;
    p->why = "built without llhttp";
    return PARSE_REFUSED;
}

#endif
