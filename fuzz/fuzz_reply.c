/* SPDX-License-Identifier: MIT
 * fuzz_reply.c - any bytes as replies of HTTP/1.1, up to the end of the connection. However they are cut, the same
 * replies come out; what is refused is refused. Limits hold, texts end, nothing beyond the bytes is read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "http/http_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

struct reader {
    struct http_parser p;
    struct http_head head;
    struct buf said; /* every reply as it was understood */
};

static void to_body(void *ctx, const char *bytes, size_t n)
{
    buf_add(&((struct reader *)ctx)->said, bytes, n);
}

static void say_head(struct reader *r)
{
    const struct http_head *h = &r->head;
    must(h->status >= 100 && h->status <= 999 && h->status != 101 && h->n_headers <= HTTP_HEADERS_MAX);
    must(!(h->until_end && (h->chunked || h->length || h->keep_alive)));
    buf_printf(&r->said, "\n<%u %d%d%d%d %llu>", h->status, h->http10, h->keep_alive, h->chunked,
               h->until_end, (unsigned long long)h->length);
    for (unsigned i = 0; i < h->n_headers; i++) {
        const char *name = h->text + h->headers[i].name, *value = h->text + h->headers[i].value;
        must(*name && http_header(h, name));
        must(!strpbrk(value, "\r\n"));
        buf_printf(&r->said, "%s=%s;", name, value);
    }
}

/* Whether it goes on: what follows a reply that ends the connection is not looked at. */
static int feed(struct reader *r, const char *bytes, size_t n, int *good)
{
    int again = n > 0;
    while (again) {
        size_t used = 0;
        enum http_step step = http_parse(&r->p, bytes, n, &used);
        must(used <= n);
        bytes += used;
        n -= used;
        *good = step != PARSE_REFUSED;
        must(*good || (r->p.status == 502 && r->p.why));
        if (step == PARSE_HEAD) say_head(r);
        if (step == PARSE_END) {
            buf_add_str(&r->said, "|");
            if (!r->head.keep_alive) return 0;
            http_begin(&r->p, &r->head);
        }
        if (!*good) return 0;
        again = n > 0 || step == PARSE_HEAD;
    }
    return 1;
}

/* Whether all was taken. Each piece is a block of its own size, so that a read beyond it is seen. */
static int read_all(struct reader *r, const uint8_t *data, size_t size, uint32_t cuts)
{
    int good = 1, goes_on = 1;
    r->said = (struct buf)BUF_INIT;
    http_parser_init_replies(&r->p, to_body, r);
    http_begin(&r->p, &r->head);
    for (size_t at = 0; at < size && goes_on;) {
        size_t n = size - at;
        if (cuts) {
            cuts = cuts * 1103515245u + 12345u;
            size_t most = 1 + (cuts >> 16) % 17;
            if (n > most) n = most;
        }
        char *piece = malloc(n);
        memcpy(piece, data + at, n);
        goes_on = feed(r, piece, n, &good);
        free(piece);
        at += n;
    }
    if (goes_on) buf_printf(&r->said, "%d", http_parse_ended(&r->p));
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
