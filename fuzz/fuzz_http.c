/* SPDX-License-Identifier: MIT
 * fuzz_http.c - any bytes as requests of HTTP/1.1. However they are cut, the same requests come out: methods, targets,
 * headers and bodies; what is refused is refused. Limits hold, texts end, nothing beyond the bytes is read. The query
 * is decoded or refused, a path is at most one route, and a cookie has a session's form or is none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "server/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

struct reader {
    struct http_parser p;
    struct http_head head;
    struct buf said; /* every request as it was understood */
};

static void to_body(void *ctx, const char *bytes, size_t n)
{
    buf_add(&((struct reader *)ctx)->said, bytes, n);
}

static void say_head(struct reader *r)
{
    const struct http_head *h = &r->head;
    must(h->path && h->query && h->host && http_host_ok(h->host));
    must(h->path[0] == '/' || strcmp(h->path, "*") == 0);
    must(strlen(h->path) + strlen(h->query) <= HTTP_URL_MAX && h->n_headers <= HTTP_HEADERS_MAX);
    must(!(h->chunked && h->http10));
    buf_printf(&r->said, "\n<%s %s?%s %s %d%d%d %llu>", http_method_name(h->method), h->path, h->query,
               h->host, h->http10, h->keep_alive, h->chunked, (unsigned long long)h->length);
    char session[LOGIN_TEXT_SIZE];
    const char *cookie = http_header(h, "cookie");
    if (cookie && login_cookie(cookie, "tare_session", session))
        must(strlen(session) == LOGIN_TEXT_SIZE - 1 && strstr(cookie, session));
    for (unsigned i = 0; i < h->n_headers; i++) {
        const char *name = h->text + h->headers[i].name, *value = h->text + h->headers[i].value;
        must(*name && http_header(h, name));
        must(!strpbrk(value, "\r\n"));
        buf_printf(&r->said, "%s=%s;", name, value);
    }
}

/* A path that is found is spelled as its row is; what is decoded has no NUL and is no longer than it was. */
static void look_up(const struct http_head *h)
{
    static struct exchange x;
    const char *value = NULL;
    unsigned allowed;
    x.head.query = h->query;
    const struct route *r = route_find(h->method, h->path, x.param, &allowed);
    must(!r || (allowed & 1u << r->method) == 0);
    must(!r || strncmp(r->path, h->path, strcspn(r->path, "{")) == 0);
    must(!r || !strchr(r->path, '{') || (x.param[0] && strspn(x.param, "%/.") == 0));
    if (exchange_query(&x, "subject", &value, NULL) == TARE_OK && value)
        must(strlen(value) <= strlen(h->query));
    arena_release(&x.arena);
    x.arena = (struct arena)ARENA_INIT;
}

static int feed(struct reader *r, const char *bytes, size_t n)
{
    int again = n > 0;
    while (again) {
        size_t used = 0;
        enum http_step step = http_parse(&r->p, bytes, n, &used);
        must(used <= n);
        bytes += used;
        n -= used;
        if (step == PARSE_REFUSED) {
            must(r->p.status >= 400 && r->p.why);
            return 0;
        }
        if (step == PARSE_HEAD) {
            say_head(r);
            look_up(&r->head);
        }
        if (step == PARSE_END) {
            buf_add_str(&r->said, "|");
            http_begin(&r->p, &r->head);
        }
        again = n > 0 || step == PARSE_HEAD;
    }
    return 1;
}

/* Whether all was taken. Each piece is a block of its own size, so that a read beyond it is seen. */
static int read_all(struct reader *r, const uint8_t *data, size_t size, uint32_t cuts)
{
    int good = 1;
    r->said = (struct buf)BUF_INIT;
    http_parser_init(&r->p, to_body, r);
    http_begin(&r->p, &r->head);
    for (size_t at = 0; at < size && good;) {
        size_t n = size - at;
        if (cuts) {
            cuts = cuts * 1103515245u + 12345u;
            size_t most = 1 + (cuts >> 16) % 17;
            if (n > most) n = most;
        }
        char *piece = malloc(n);
        memcpy(piece, data + at, n);
        good = feed(r, piece, n);
        free(piece);
        at += n;
    }
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reader whole, cut;
    uint32_t seed = (uint32_t)size * 2654435761u | 1;
    if (!http_library()) return 0;
    for (size_t i = 0; i < size && i < 64; i++) seed = seed * 31 + data[i];
    int a = read_all(&whole, data, size, 0), b = read_all(&cut, data, size, seed | 1);
    must(a == b);
    /* What was refused may have given more or less of its body before; a whole one gives the same. */
    if (a)
        must(whole.said.len == cut.said.len && memcmp(whole.said.data, cut.said.data, whole.said.len) == 0);
    buf_release(&whole.said);
    buf_release(&cut.said);
    return 0;
}
