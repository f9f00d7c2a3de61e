/* SPDX-License-Identifier: MIT
 * conn.h - what loop.c (threads, listening, time) and conn.c (one connection) share. Everything in here belongs to one
 * thread, but for `done`. */
#ifndef SERVER_CONN_H
#define SERVER_CONN_H

#include <pthread.h>

#include "server/net/loop.h"
#include "tls/tls.h"

enum { READ_SIZE = 65536, OUT_MAX = 1 << 18, SEND_BUFFER = 1 << 17 };

/* Each kind of deadline has one length, so that a list of each kind is in order of time by itself. */
enum timer_kind {
    TIMER_HEAD,
    TIMER_BODY,
    TIMER_WRITE,
    TIMER_IDLE,
    TIMER_LINGER,
    TIMERS,
    TIMER_NONE = TIMERS
};

struct conn {
    struct conn *prev, *next; /* of its timer's list */
    uint64_t due_ns;
    struct worker *worker;
    struct exchange *x; /* the request under way; NULL: none */
    struct buf out;     /* what the socket did not take yet */
    size_t sent;
    struct buf rest; /* what came before the reply was out */
    uint64_t mark;   /* bytes of body or reply when the timer was set */
    struct http_parser parser;
    struct address peer;
    struct tls *tls; /* NULL: plain */
    int fd;
    uint8_t timer;                       /* enum timer_kind */
    bool held, closing, lingering, gone; /* gone: the socket is closed, the held reply will find nobody */
    bool streaming;                      /* the head of a reply in pieces is out */
    bool shaking;                        /* the handshake of TLS is under way */
    bool tls_writes;                     /* TLS must write before it can read on */
    bool wants_in, wants_out;            /* what epoll looks for */
};

struct timer_list {
    struct conn *first, *last;
};

struct worker {
    struct loop *loop;
    pthread_t thread;
    int epoll, listener, wake;
    bool accepting, stopping;
    uint64_t now_ns, accept_again_ns, stop_by_ns;
    unsigned n_conns, n_held;
    struct timer_list timers[TIMERS];
    struct conn *dead;      /* to be freed at the end of the turn, by `next` */
    struct exchange *spare; /* to be used again, by `next` */
    unsigned n_spare;
    struct buf out; /* replies of the connection in hand */
    uint64_t id_base, id_next;
    time_t date_at;
    char date[32];
    pthread_mutex_t lock;
    struct exchange *done; /* held replies on their way back, newest first */
    char input[READ_SIZE];
};

struct loop {
    struct loop_options options;
    struct loop_counts counts;
    unsigned port, n_workers, n_started;
    atomic_bool stop;
    struct worker *workers;
    /* connections of each address: a small table under a lock, touched when one comes and goes */
    pthread_mutex_t lock;
    struct address_count *addresses;
    size_t n_addresses;
};

/* loop.c */
void conn_timer(struct conn *c, enum timer_kind kind); /* from now on; TIMER_NONE: no deadline */
void loop_forget_address(struct loop *l, const struct address *a);

/* conn.c */
tare_status conn_open(struct worker *w, int fd, const struct address *peer);
void conn_ready(struct conn *c, uint32_t events);
void conn_overdue(struct conn *c);
void conn_reply_now(struct exchange *x); /* of a held one */
void conn_stop(struct conn *c);          /* closes what has nothing under way */
void conn_close(struct conn *c);

#endif
