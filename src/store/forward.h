/* SPDX-License-Identifier: MIT
 * forward.h - how far samples were handed on to other systems: part of store.h. What waits is what the store has after
 * that: there is no other spool. One server at a time hands on to each, for as long as it says so again and again. */
#ifndef STORE_FORWARD_H
#define STORE_FORWARD_H

#include <stdint.h>

#include "core/error.h"

struct store_forward {
    const char *name, *owner;
    int64_t now_ms, until_ms; /* it is the owner's until then */
    int64_t seq;              /* the last chunk that was handed on; out of take(): -1: another does it */
};

struct store;
struct store_forward_ops {
    /* The first time it begins after what the store has by then. */
    tare_status (*take)(struct store *s, struct store_forward *f, tare_error *err);
    tare_status (*note)(struct store *s, const struct store_forward *f, tare_error *err);
};

#endif
