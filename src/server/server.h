/* SPDX-License-Identifier: MIT
 * server.h - `tare serve` but for its options: the loop, the routes, the tokens and the store put together.
 * docs/server.md has the design on one page. Never prints: what its operator should know goes to `say`. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "core/clock.h"
#include "server/desk.h"
#include "server/loop.h"
#include "server/rate.h"
#include "server/token.h"

#define SERVER_PORT 8321
#define SERVER_STORE "history.db" /* in the folder of the data: the same schema as any history */

struct server_options {
    const char *data; /* folder, made where it is missing; its owner's alone */
    struct sockaddr_storage at;
    unsigned threads, connections_max, per_address_max;
    double rate_per_s;        /* of each token and each address; 0: no limit */
    const char *const *hosts; /* names that Host may have beside the address itself and localhost */
    size_t n_hosts;
    void (*say)(void *ctx, const char *text);
    void *say_ctx;
};

struct server {
    struct server_options options;
    struct loop *loop;
    struct tokens *tokens;
    struct rate *rate;
    struct desk *readers, *writer;
    struct rate_limit limit, failed_auth;
    struct instant began;
    atomic_ullong commits, committed;
    char at_text[INET6_ADDRSTRLEN + 2]; /* the address as Host has it */
};

/* The folder of the data: refused where others may look into it. `make`: made, 0700, where it is missing. */
tare_status server_data_dir(const char *path, bool make, tare_error *err);
/* Where the store is within it. */
tare_status server_store_path(const char *data, struct buf *out, tare_error *err);

tare_status server_open(struct server **out, const struct server_options *o, tare_error *err);
void server_stop(struct server *s);  /* what is under way is answered */
void server_close(struct server *s); /* NULL is fine */

#endif
