/* SPDX-License-Identifier: MIT
 * desk.h - threads that may wait for a disk, so that those of the loop never do. Each has the store open for itself.
 * Exchanges are put onto a desk by any thread; its work answers them (exchange_finish) or puts them onto another. */
#ifndef SERVER_DESK_H
#define SERVER_DESK_H

#include "server/net/exchange.h"
#include "store/store.h"

/* `list`: exchanges by `next`, oldest first: one, or all that were waiting where the desk takes them together; NULL
 * where none is: it was nudged. */
typedef void desk_fn(void *ctx, struct store *s, struct exchange *list);

struct desk_options {
    const char *store;
    unsigned threads;
    unsigned waiting_max;
    bool together; /* hand over all that wait at once: group commit */
    desk_fn *work;
    /* Called now and then between two of them: when, is what it returns (ns from now). NULL: nothing to do. */
    uint64_t (*between)(void *ctx, struct store *s);
    void *ctx;
};

struct desk;
tare_status desk_open(struct desk **out, const struct desk_options *o, tare_error *err);
void desk_close(struct desk *d);                   /* when nothing waits any more; NULL is fine */
bool desk_put(struct desk *d, struct exchange *x); /* false: too many wait already */
void desk_nudge(struct desk *d);                   /* its work is called once, soon */

#endif
