/* SPDX-License-Identifier: MIT
 * server.h - `tare serve` but for its options: the loop, the routes, the tokens and the store put together.
 * docs/server.md has the design on one page. Never prints: what its operator should know goes to `say`. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "core/clock.h"
#include "server/alerts/alarms.h"
#include "server/access/audit.h"
#include "server/desk.h"
#include "server/exports/exports.h"
#include "server/jobs/jobs.h"
#include "server/live/stream.h"
#include "server/net/loop.h"
#include "server/net/rate.h"
#include "server/access/login.h"
#include "server/access/token.h"

#define SERVER_PORT 8321
#define SERVER_STORE "history.db" /* in the folder of the data: the same schema as any history */

struct server_options {
    const char *data; /* folder, made where it is missing; its owner's alone */
    const char *db;   /* the address of a PostgreSQL database; NULL: SQLite in the folder */
    struct sockaddr_storage at;
    int listener; /* a socket that listens there already; 0: none */
    unsigned threads, connections_max, per_address_max;
    int64_t keep_ms; /* runs older than this go, but for those with a tag; 0: none */
    /* samples of hosts as they came, their minutes, their hours: gone when older; 0: never */
    struct keep_samples {
        int64_t readings_ms, minutes_ms, hours_ms;
    } keep_samples;
    uint64_t uploads_max;     /* bytes of the files of one project; 0: no limit */
    double rate_per_s;        /* of each token and each address; 0: no limit */
    const char *const *hosts; /* names that Host may have beside the address itself and localhost */
    size_t n_hosts;
    const char *const *public_badges; /* projects whose badges need no token */
    size_t n_public_badges;
    struct login_times login;
    bool encrypted;          /* browsers reach it by https only, here or at a proxy: cookies say so */
    struct tls_context *tls; /* https here; NULL: http. Its owner is the caller */
    const struct operations *operations; /* NULL: nothing is run */
    struct runner *runners;              /* operations->at_once of them */
    void (*say)(void *ctx, const char *text);
    void *say_ctx;
};

struct server {
    struct server_options options;
    struct loop *loop;
    struct tokens *tokens;
    struct logins *logins;
    struct rate *rate;
    struct notes *notes;
    struct desk *readers, *viewers, *writer;      /* viewers: for what takes long */
    struct desk *roller;                          /* nothing is put there: it sums up hours of hosts */
    struct jobs *jobs;                            /* NULL: nothing is run */
    struct alarms *alarms;                        /* NULL: there are no rules */
    struct exports *exports;                      /* NULL: samples are handed on to nobody */
    struct rate_limit limit, failed_auth, listed; /* listed: refusals in the audit */
    struct instant began;
    int64_t began_unix_ms; /* the same moment by the time of day, and by login_clock() */
    uint64_t began_boot_ns;
    struct streams *streams;
    atomic_ullong commits, committed;
    char at_text[INET6_ADDRSTRLEN + 2]; /* the address as Host has it */
};

/* Where the store is: `db`, or where that is NULL a file in the folder of the data, which is checked, and made. */
tare_status server_store(const struct server_options *o, bool make, struct buf *out, tare_error *err);

tare_status server_open(struct server **out, const struct server_options *o, tare_error *err);
void server_address(const struct server *s, struct buf *out); /* https://127.0.0.1:8321 */
/* A link by which whoever sees it first logs in, once; TARE_UNSUPPORTED: built without the pages. */
tare_status server_login_link(struct server *s, struct buf *out, tare_error *err);
uint64_t retention_slice(void *ctx, struct store *st); /* of struct desk_options.between */

void server_stop(struct server *s);  /* what is under way is answered */
void server_close(struct server *s); /* NULL is fine */

/* ---- for handlers ---- */

/* Who asks by a cookie; false: nobody. */
bool server_login(struct server *s, const struct exchange *x, struct login *out);
/* The session's text in the cookie of x. */
bool server_cookie(const struct server *s, const struct exchange *x, char out[LOGIN_TEXT_SIZE]);
void server_cookie_name(const struct server *s, char out[32]);
/* An entry of the audit for what has no transaction of its own: a refusal, a login. */
void server_note(struct server *s, const struct exchange *x);
/* 401, and 429 where one address is wrong too often. */
void server_refuse_stranger(struct server *s, struct exchange *x, const char *why);

#endif
