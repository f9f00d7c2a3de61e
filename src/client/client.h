/* SPDX-License-Identifier: MIT
 * client.h - questions to one server by HTTP/1.1. One connection, kept between questions and made anew where the server
 * closed it meanwhile. Every question has one deadline for all of it, connecting included, and a limit for what comes
 * back; what is wrong is told with the URL and the cause. Follows no redirects, knows no proxies, no cookies, decodes
 * nothing. For one thread.
 *
 *     struct client *c;
 *     if (client_open(&c, "http://127.0.0.1:8321", &(struct client_options){.token = token}, err) < 0) ...
 *     client_ask(c, &(struct client_request){.method = "GET", .target = "/api/v1/runs"}, &reply, err);
 *     client_reply_release(&reply);
 *     client_close(c);
 *
 * Whatever the server answers is TARE_OK and reply.status. TARE_INVALID: no such URL. TARE_IO: not reached, or the
 * connection broke, or too late. TARE_FORMAT: what came is no HTTP/1.1, or too large. TARE_UNSUPPORTED: built without
 * what it needs. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <stdbool.h>

#include "core/buf.h"
#include "core/error.h"

enum { CLIENT_DEADLINE_MS = 30000, CLIENT_REPLY_MAX = 64 << 20 };

struct client_options {
    const char
        *token; /* sent as Bearer, but never unencrypted to another machine; NULL: none. Told in no error */
    unsigned deadline_ms; /* 0: CLIENT_DEADLINE_MS */
    size_t reply_max;     /* bytes of a body; 0: CLIENT_REPLY_MAX */
};

struct client_request {
    const char *method, *target; /* target: "/path?query", behind the path of the URL */
    const char *type;            /* of the body; NULL: there is none */
    const char *headers;         /* more of them, each with its end of line; NULL: none */
    const void *body;
    size_t n;
    bool harmless; /* asking twice is as asking once: where a kept connection breaks it is sent again */
};

struct client_reply {
    unsigned status;
    struct buf body;
};
/* clang-format off */
#define CLIENT_REPLY_INIT {.body = BUF_INIT}
/* clang-format on */
void client_reply_release(struct client_reply *r);

bool client_is_url(const char *text); /* http:// or https:// stands first */

struct client;
/* Reads the URL (http:// or https://, a host, a port, a path); connects with the first question. */
tare_status client_open(struct client **out, const char *url, const struct client_options *o,
                        tare_error *err);
void client_close(struct client *c);            /* NULL is fine */
const char *client_url(const struct client *c); /* in its plain form: no / at the end */

/* *reply is emptied first. */
tare_status client_ask(struct client *c, const struct client_request *q, struct client_reply *reply,
                       tare_error *err);

/* `text` as a value of a query: all but letters, digits and -._~ as %xx. */
void client_escape(struct buf *to, const char *text);

#endif
