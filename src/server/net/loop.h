/* SPDX-License-Identifier: MIT
 * loop.h - sockets: threads that each have a listening socket of their own (SO_REUSEPORT), an epoll and their
 * connections. Reads requests, asks the application, writes replies in the order of the requests. Every deadline is a
 * total: none begins anew because a byte came. Knows nothing of routes, tokens or runs.
 *
 *   accept ─▶ idle ─▶ head ─▶ body ─▶ application ─▶ (held ─▶ exchange_finish() ─▶ eventfd) ─▶ write ─▶ idle
 *               ▲                                                                                      │
 *               └──────────────── what the client sent meanwhile is read now ◀─────────────────────────┘ */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include <netinet/in.h>
#include <stdatomic.h>

#include "core/error.h"
#include "server/net/exchange.h"

/* How long something may take, in milliseconds. */
struct loop_times {
    unsigned
        head; /* from the first byte of a request to the end of its head: 408; a handshake of TLS: closed */
    unsigned window;   /* of a body: in each so many ms 1 byte per ms must come: 408 */
    unsigned body;     /* a whole body: 408 */
    unsigned writing;  /* of a reply: in each so many ms 1 byte per ms must go: reset */
    unsigned idle;     /* between requests: closed */
    unsigned linger;   /* after the last reply, until the client closes */
    unsigned stopping; /* for what is under way when the loop is stopped */
};
/* clang-format off */
#define LOOP_TIMES \
    {.head = 5000, .window = 5000, .body = 30000, .writing = 10000, .idle = 60000, .linger = 2000, .stopping = 10000}
/* clang-format on */

struct tls_context;
struct loop_app {
    void *ctx;
    /* The head is there. Sets x->body_max, or answers at once: then the body is not read. */
    void (*admit)(void *ctx, struct exchange *x);
    /* The body is there, too. Answers or holds. */
    void (*handle)(void *ctx, struct exchange *x);
};

struct loop_options {
    struct sockaddr_storage at; /* port 0: any that is free */
    int listener;               /* a socket that listens there already, which the threads share; 0: none */
    unsigned threads;
    unsigned connections_max, per_address_max; /* per_address_max 0: no such limit */
    struct loop_times times;
    struct loop_app app;
    struct tls_context *tls; /* NULL: plain */
};

/* What went on so far; read by anybody at any time. */
struct loop_counts {
    atomic_ullong accepted, refused, requests, closed_by_deadline, bytes_in, bytes_out;
    atomic_ullong replies[6]; /* by the first digit of their status */
    atomic_uint connections;
};

struct loop;
tare_status loop_open(struct loop **out, const struct loop_options *o,
                      tare_error *err); /* listens and serves */
void loop_stop(struct loop *l);  /* no new connections; what is under way is finished; returns when it is */
void loop_close(struct loop *l); /* after loop_stop(); NULL is fine */
unsigned loop_port(const struct loop *l);
const struct loop_counts *loop_counts(const struct loop *l);

/* The address as text, and loopback or not. */
void address_text(const struct address *a, char out[INET6_ADDRSTRLEN]);
struct address address_of(const struct sockaddr_storage *s);
bool address_is_loopback(const struct address *a);
/* Who counts as one: clients of one network can have any number of IPv6 addresses, so the first 64 bits count. */
struct address address_group(const struct address *a);

#endif
