/* SPDX-License-Identifier: MIT
 * peer.h - another process that answers questions over packet sockets: started, asked, seen off, and its end explained.
 * It leads a process group of its own, so that an interruption of this one does not end it in the middle of an answer;
 * it must end when its sockets do. What the packets say is the business of the two sides. */
#ifndef SUBJECT_PEER_H
#define SUBJECT_PEER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/error.h"

enum { PEER_FD = 3, PEER_LANES_MAX = 1024 }; /* its first socket's descriptor; the others follow */

struct peer {
    const char *what; /* "its worker process": subject of error texts; borrowed */
    pid_t pid;        /* 0: none */
    int *fds;         /* ours, one per lane, until peer_stop(); NULL: none */
    unsigned n;
    pthread_mutex_t lock; /* of what follows: lanes are asked by threads */
    bool ended, killed;   /* killed: by us */
    int status;           /* of waitpid, once it has ended */
};
#define PEER_INIT(what) {what, 0, NULL, 0, PTHREAD_MUTEX_INITIALIZER, false, false, 0}

/* ---- starting any process that leads a group of its own ---- */

struct spawn_options {
    const char *exe;   /* looked for on PATH unless it has a slash */
    char *const *argv; /* NULL-terminated */
    char *const *env;
    const char *dir; /* where it runs; NULL: here */
    int out;         /* descriptor that its stdout becomes; -1: /dev/null, as its stdin is */
    const int *fds;  /* that become PEER_FD and on; all must be above those */
    unsigned n_fds;
};
int spawn_apart(pid_t *pid, const struct spawn_options *o); /* 0, or errno */

/* ---- the peer ---- */

/* `o.n_fds` is how many lanes there are; their sockets are made here. */
tare_status peer_start(struct peer *p, struct spawn_options o, tare_error *err);

/* False: it is gone; peer_died() says how. */
bool peer_say(struct peer *p, unsigned lane, const void *bytes, size_t n);

struct peer_patience {
    uint64_t timeout_ns;                      /* 0: none */
    uint64_t grace_ns;                        /* how long an answer is still waited for once interrupted */
    const volatile sig_atomic_t *interrupted; /* may be NULL */
};
/* One packet, at most `size` bytes, *got of them. */
struct peer_packet {
    void *bytes;
    size_t size, got;
};
tare_status peer_hear(struct peer *p, unsigned lane, const struct peer_patience *w, struct peer_packet *out,
                      tare_error *err);

/* It ended by itself: the reason as an error. */
tare_status peer_died(struct peer *p, tare_error *err);
bool peer_alive(struct peer *p); /* as far as was noticed */
bool peer_over(struct peer *p);  /* as the kernel knows: it has ended, or there is none */

void peer_kill(struct peer *p); /* now; it may have ended already */

/* Close the sockets, wait a moment, then kill. None is fine. No lane may be in use. */
void peer_stop(struct peer *p);

#endif
