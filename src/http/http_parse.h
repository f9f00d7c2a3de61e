/* SPDX-License-Identifier: MIT
 * http_parse.h - the one seam to the HTTP/1.1 parser: bytes in, requests out, or replies. llhttp frames messages and
 * decodes chunks, with all leniency off; this file only refuses more: limits, one good Host, no other coding, no
 * upgrade. A pure function of the bytes, however they are cut: no socket, no clock, no allocation. Nobody else
 * includes llhttp.h.
 *
 *     http_parser_init(&p, to_body, ctx);
 *     http_begin(&p, &head);                               // before each message
 *     while (n) {
 *         switch (http_parse(&p, bytes, n, &used)) { ... }  // PARSE_HEAD: decide; PARSE_END: answer, then http_begin()
 *         bytes += used, n -= used;
 *     } */
#ifndef HTTP_HTTP_PARSE_H
#define HTTP_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {                         /* beyond: refused with the status behind it */
       HTTP_URL_MAX = 4096,    /* 414 */
       HTTP_HEAD_MAX = 16384,  /* request line and headers as sent, empty lines before them included: 431 */
       HTTP_HEADERS_MAX = 100, /* 431 */
       HTTP_HOST_MAX = 255,    /* 400 */
       HTTP_CHUNK_OVERHEAD_MAX = 16384 /* of chunk lines and trailers, beside an eighth of the body: 400 */
};

enum http_method {
    METHOD_OTHER,
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_PATCH,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHODS
};
const char *http_method_name(enum http_method m);

struct http_header {
    uint16_t name, value; /* where they begin in `text` */
};

/* One message's head. All texts lie in `text`, each with its NUL; names of headers are in lower case. */
struct http_head {
    enum http_method method; /* of requests, as path, query and host */
    uint16_t status;         /* of replies */
    bool http10, keep_alive, expects_continue, chunked;
    bool until_end;                  /* of replies: the body lasts as long as the connection */
    uint64_t length;                 /* of the body; 0 where it is chunked, or lasts until the end */
    const char *path, *query, *host; /* not decoded; query: "" where there is none; host: with its port */
    unsigned n_headers;
    unsigned used;
    struct http_header headers[HTTP_HEADERS_MAX];
    char text[HTTP_HEAD_MAX + 64];
};

/* The value of a header by its name in lower case, the first one; NULL: there is none. */
const char *http_header(const struct http_head *head, const char *name);

typedef void http_body_fn(void *ctx, const char *bytes, size_t n);

struct http_parser {
    union {
        char bytes[128];
        uint64_t align;
    } machine; /* llhttp's own state */
    struct http_head *head;
    http_body_fn *to_body;
    void *ctx;
    const char *slice; /* what llhttp is looking at, and how many bytes came before it */
    uint64_t before;
    uint64_t body;                                           /* bytes of it so far */
    uint32_t method_end, url_begin, url_end;                 /* counted from the first byte of the request */
    uint16_t status;                                         /* why it was refused; 0: it was not */
    bool replies;                                            /* it reads replies */
    bool saw_version, version_done, head_done, ended, waits; /* waits: llhttp is paused */
    uint8_t n_trailer;
    char trailer[20]; /* the beginning of a trailer's name */
    const char *why;  /* a text of ours, never of the client */
};

enum http_step {
    PARSE_MORE,   /* all bytes are used, the request goes on */
    PARSE_HEAD,   /* the head is complete: decide, then call again, also where no byte is left */
    PARSE_END,    /* the request is complete; the bytes left belong to the next one */
    PARSE_REFUSED /* p->status, p->why: answer and close; nothing more can be read */
};

const char *http_library(void); /* the version of llhttp; NULL: built without it */
void http_parser_init(struct http_parser *p, http_body_fn *to_body, void *ctx);
void http_begin(struct http_parser *p, struct http_head *head);
enum http_step http_parse(struct http_parser *p, const char *bytes, size_t n, size_t *used);

/* The same for replies. Refused ones have the status 502. Replies to HEAD and CONNECT are not read: those have no body,
 * whatever their head says. */
void http_parser_init_replies(struct http_parser *p, http_body_fn *to_body, void *ctx);
/* The connection has ended: PARSE_END where that is how the reply ends, else PARSE_REFUSED. */
enum http_step http_parse_ended(struct http_parser *p);

/* name, name:port, 1.2.3.4, [::1]:80 and nothing else. */
bool http_host_ok(const char *host);

#endif
