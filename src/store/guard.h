/* SPDX-License-Identifier: MIT
 * guard.h - who may ask a server, and who changed what on it, as the store keeps it: part of store.h. */
#ifndef STORE_GUARD_H
#define STORE_GUARD_H

#include "store/live.h"

/* ---- who may ask a server ---- */

struct store_token {
    const char *id, *name;         /* name: what its owner calls it; may be NULL */
    const char *project;           /* what it is bound to; NULL: all */
    const char *scopes;            /* "read,ingest" */
    uint8_t hash[STORE_HASH_SIZE]; /* SHA-256 of the token: the token itself is kept nowhere */
    int64_t created_ms;
    int64_t expires_ms, revoked_ms; /* 0: never, not */
    int64_t used_ms;                /* out only; 0: never. To the minute */
};

typedef tare_status store_token_fn(void *ctx, const struct store_token *token, tare_error *err);

/* ---- audit: who changed what ---- */

/* One entry. The hash is over this one and the hash of the one before (server/audit.h). Texts may be NULL. */
struct store_audit {
    int64_t seq; /* 1, 2, 3 .. */
    int64_t at_ms;
    const char *who, *what, *about, *project, *source, *request;
    unsigned status; /* of the reply */
    uint8_t hash[STORE_HASH_SIZE];
};
typedef tare_status store_audit_fn(void *ctx, const struct store_audit *entry, tare_error *err);

struct store_audit_filter { /* all zero: all of them, oldest first */
    const char *project;
    bool newest_first;
    int64_t before; /* seq; 0: any */
    uint64_t limit; /* 0: all */
};

#endif
