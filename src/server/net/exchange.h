/* SPDX-License-Identifier: MIT
 * exchange.h - one request and the reply to it: what handlers see of HTTP. A handler fills in the reply and returns, or
 * holds it and hands the exchange to another thread, which calls exchange_finish(). It never sees the socket. */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include <jansson.h>

#include "core/arena.h"
#include "core/buf.h"
#include "core/json.h"
#include "http/http_parse.h"

enum { EXCHANGE_ID_SIZE = 17, EXCHANGE_PARAM_SIZE = 65, EXCHANGE_WHO_SIZE = 16, ADDRESS_SIZE = 16 };

/* Who is at the other end: IPv6, IPv4 as ::ffff:a.b.c.d. */
struct address {
    uint8_t bytes[ADDRESS_SIZE];
};

struct reply {
    unsigned status;  /* 0: none yet */
    const char *type; /* of the body: a literal */
    const char
        *extra; /* more header lines, each with its CRLF; in the exchange's arena, or a literal; NULL: none */
    const char *
        policy; /* its Cache-Control and Content-Security-Policy, as `extra`; NULL: never kept, may do nothing */
    struct buf body;
};

struct route;
struct worker;
struct conn;

struct exchange {
    struct http_head head;
    struct buf body;
    uint64_t body_max; /* what the route takes */
    struct reply reply;
    struct arena arena; /* for the handler: gone with the reply */
    struct address peer;
    char id[EXCHANGE_ID_SIZE];       /* the request's, told in replies and logs */
    char param[EXCHANGE_PARAM_SIZE]; /* what stood for {id} in the path; of what was made, its id */
    const struct route *route;
    char who[EXCHANGE_WHO_SIZE];       /* the token's id; "": nobody that is known */
    unsigned scopes;                   /* that the client has */
    char project[EXCHANGE_PARAM_SIZE]; /* that it is bound to; "": all */
    void *work;                        /* of whoever holds it */
    /* Set: the reply comes in pieces, without length, until `last`; each is handed over by exchange_finish(). When it
     * was sent this is called on the loop's thread: whoever it is holds the exchange again, or, where the client is
     * gone or the last piece went out, must forget it. */
    void (*more)(struct exchange *x, bool held);
    bool last;
    struct exchange *next; /* in that one's queue */
    /* the loop's own */
    struct worker *worker;
    struct conn *conn;
    uint64_t began_ns; /* the body's first byte could come from here on */
    bool too_large, held;
};

/* The reply comes later, by exchange_finish() from any thread. */
void exchange_hold(struct exchange *x);
void exchange_finish(struct exchange *x);

/* ---- replies ---- */

const char *reply_reason(unsigned status); /* "Not Found" */
void reply_json(struct exchange *x, unsigned status);
/* Problem details of RFC 9457; `detail` must not tell of paths, SQL or versions. printf. */
void reply_problem(struct exchange *x, unsigned status, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));
/* What the client sent is wrong, and why; where there was no memory to look at it, 503. */
void reply_refused(struct exchange *x, unsigned status, const tare_error *err);
/* A time of the store as RFC 3339; 0: null. */
void reply_time(struct json *j, const char *key, int64_t unix_ms);
void reply_release(struct reply *r);

/* Whether the body says to be of this type, with or without parameters. */
bool exchange_has_type(const struct exchange *x, const char *type);

/* The body as JSON; TARE_INVALID names the place where it is none. */
tare_status exchange_json(const struct exchange *x, json_t **out, tare_error *err);

/* The value of a name in the query, decoded once into the arena; NULL: not there. TARE_INVALID: %-escapes that are
 * none, or a NUL. */
tare_status exchange_query(struct exchange *x, const char *name, const char **out, tare_error *err);
/* The same of a number. Not there: *out stays. TARE_INVALID: no number, or none of these. */
struct number_range {
    uint64_t least, most;
};
tare_status exchange_query_number(struct exchange *x, const char *name, struct number_range among,
                                  uint64_t *out, tare_error *err);

/* unix ms, 2026-11-16T14:00:00Z, or -6h: so long ago. */
tare_status exchange_query_time(struct exchange *x, const char *name, int64_t *unix_ms, tare_error *err);
tare_status exchange_query_length(struct exchange *x, const char *name, int64_t *ms,
                                  tare_error *err); /* 10s, 1h */

#endif
