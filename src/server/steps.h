/* SPDX-License-Identifier: MIT
 * steps.h - what a route does, thread by thread: at once on a thread of the loop, with the store at hand on a reader,
 * within the writer's transaction, after its COMMIT. A step that is NULL is left out; the first that fills in the
 * reply's status ends it, but for `write`, whose reply goes out after COMMIT and not before. */
#ifndef SERVER_STEPS_H
#define SERVER_STEPS_H

#include "server/server.h"

struct query_word { /* what a query may say */
    const char *name, *about;
};

struct steps {
    /* Must not wait for anything. Where it sets x->work it has done what `read` would do: that is left out. */
    void (*now)(struct server *s, struct exchange *x);
    void (*read)(struct server *s, struct store *st, struct exchange *x);
    /* All that wait share one transaction, and are tried each by itself where it fails: it may run twice. */
    tare_status (*write)(struct server *s, struct store *st, struct exchange *x, tare_error *err);
    /* Fills in the rest of the reply. Where it leaves the status 0, it has handed x on to somebody who calls
     * steps_finish(). */
    void (*written)(struct server *s, struct store *st, struct exchange *x);
    void (*forget)(struct exchange *x); /* releases x->work */
    /* In place of `write`, on the reader's thread: the reply comes in pieces, from whoever takes it. */
    void (*take)(struct server *s, struct exchange *x);
    /* for the OpenAPI document; a test asks what it promises */
    const struct query_word *query; /* the last one has name NULL; NULL: nothing */
    const char *example;            /* of a body, or of a query: "?limit=2" */
    const char *replies;            /* its own statuses, "201,200,409"; NULL: 200 of a GET, else any 2xx */
    const char *type;               /* of its reply; NULL: application/json */
    const char *takes;              /* a type of bodies beside application/json; NULL: none */
    bool bytes;                     /* that type alone, no JSON */
    bool gzip; /* bodies may come packed so: `read` unpacks them, within the route's limit */
    bool slow; /* `read` may take seconds: on a thread of its own, where others wait */
};

void steps_begin(struct server *s, struct exchange *x); /* on a thread of the loop */
desk_fn steps_read, steps_write;                        /* the work of the readers and of the writer */

void steps_finish(struct exchange *x); /* forgets, and answers */

/* The store failed: the client learns the kind, the operator the rest. */
void steps_failed(struct server *s, struct exchange *x, const tare_error *err);

#endif
