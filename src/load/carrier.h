/* SPDX-License-Identifier: MIT
 * carrier.h - one connection of the load client: dialled, TLS where asked for, bytes out and in, with the kernel's own
 * time of their coming. Nothing here waits. Private to src/load. */
#ifndef LOAD_CARRIER_H
#define LOAD_CARRIER_H

#include "core/buf.h"
#include "load/address.h"
#include "load/reply.h"

struct tls;
struct tls_context;

enum carrier_state {
    CARRIER_CLOSED,
    CARRIER_DIALS,
    CARRIER_SHAKES, /* hands, of TLS */
    CARRIER_OPEN
};

struct carrier {
    int fd;
    enum carrier_state state;
    bool used;          /* it has given an answer */
    bool waits_to_send; /* epoll is asked for room to send, too */
    struct tls *tls;
    uint64_t batch; /* of events, in which it was dialled: what they say of it is of its forerunner */
    struct carrier *next, *prev; /* of the list that it is in */
    bool is_busy;                /* a request is on it: */
    bool is_drawn;               /* `span` was begun */
    uint64_t span[5];            /* LOAD_SPAN_ROOM */
    size_t request;              /* number of its outcome */
    struct buf own;              /* its bytes, where requests differ */
    const char *text;            /* its bytes */
    size_t n, sent;
    struct reply reply;
    void *reader_state;
    char why[200]; /* of the last failure, in words */
};

/* What receiving and sending give beside a number of bytes. */
enum { CARRIER_LATER = 0, CARRIER_ENDED = -1, CARRIER_BROKEN = -2 };

/* Begins; state becomes CARRIER_DIALS, or CARRIER_OPEN at once. A fault, or LOAD_NONE. */
enum load_fault carrier_dial(struct carrier *c, const struct load_address *to);
/* What happened to the dialling, once epoll says that something did; LOAD_OPEN: nothing yet. */
enum load_fault carrier_dialled(struct carrier *c, const struct load_address *to, struct tls_context *trust);
enum load_fault carrier_shake(struct carrier *c); /* likewise */
/* As much of the request as goes. > 0: bytes. CARRIER_BROKEN: *fault says how. */
long carrier_send(struct carrier *c, enum load_fault *fault);

struct carrier_bytes {
    char *room;
    size_t size;
    uint64_t unix_ns; /* when the kernel received the last of them; 0: it does not say */
};
long carrier_receive(struct carrier *c, struct carrier_bytes *b, enum load_fault *fault);
void carrier_close(struct carrier *c);

#endif
