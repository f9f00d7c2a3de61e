/* SPDX-License-Identifier: MIT
 * engine_parts.h - what engine.c (when requests are due) and carry.c (how they go out and come back) share. Private to
 * src/load. */
#ifndef LOAD_ENGINE_PARTS_H
#define LOAD_ENGINE_PARTS_H

#include <stdio.h>

#include "load/carrier.h"
#include "load/engine.h"
#include "load/text.h"

struct carrier_list {
    struct carrier *first, *last;
};

struct load_engine {
    struct load_options o;
    struct load_address at;
    struct tls_context *trust; /* NULL: plain */
    struct reply_rules rules;
    struct load_wording wording;
    struct load_request made;
    struct buf fixed; /* the request, where all are the same */
    int epoll;
    VEC(struct carrier *) conns;
    struct carrier_list idle, busy,
        closed;                    /* idle: the one used last is first; busy: in the order of sending */
    VEC(struct http_head *) heads; /* that no answer needs now */
    char *room;                    /* what is received */
    unsigned n_open, most_open;    /* connections; at most */
    uint64_t batch;                /* of events */
    bool reached;                  /* a connection was made once: the address is good */
    int64_t unix_to_raw;           /* ns to add to the kernel's stamps */
    uint64_t mapped_ns;            /* when that was found */

    /* of the window */
    const struct load_window *w;
    struct load_result *r;
    VEC(struct load_outcome) due; /* of the requests from number `first` on */
    size_t first, over;           /* so many of these are over, and were counted */
    size_t next;                  /* the first that is due and not sent */
    size_t arrived;               /* of the schedule */
    size_t n_busy;
    uint64_t origin, not_before; /* closed loop: nothing is due before */
    tare_status broken;          /* the client's own failure */
    tare_error *err;
};

static inline struct load_outcome *engine_outcome(const struct load_engine *e, size_t number)
{
    return &e->due.items[number - e->first];
}

/* ---- carry.c ---- */

/* Send request `i` on an idle connection or a new one. False: all that may be open are busy. */
bool carry_begin(struct load_engine *e, size_t i);
/* Handle what happens within `wait_ns`. */
void carry_wait(struct load_engine *e, uint64_t wait_ns);
/* The request on it is given up. */
void carry_give_up(struct load_engine *e, struct carrier *c, enum load_fault fault);
void carry_close_all(struct load_engine *e);
/* An outcome is final. */
void engine_conclude(struct load_engine *e, struct load_outcome *o, const char *why, const char *glimpse);

#endif
