/* SPDX-License-Identifier: MIT
 * care.h - what keeps a history well: is it whole, and what is too old. Part of store.h's interface. */
#ifndef STORE_CARE_H
#define STORE_CARE_H

#include "store/store.h"

struct store_health {
    char trouble[300]; /* "": whole */
    uint64_t schema, runs, bytes;
    struct known_u64 free_bytes; /* where it lies */
};

struct store_expiry {
    int64_t before_ms; /* runs from before, without a tag or a baseline's name, go; oldest first */
    uint64_t most_ns;  /* no run is begun after this long */
    uint64_t removed;  /* out */
    bool more;         /* out: there may be more to remove */
};

struct store_prune {
    uint64_t keep;      /* newest so many of each subject stay; 0: no such rule */
    int64_t older_ms;   /* created before this time goes; 0: no such rule */
    bool dry_run;       /* tell only */
    store_run_fn *gone; /* told of each once it is gone: id, created, subject; may be NULL */
    void *ctx;
    uint64_t removed, pinned; /* out: pinned would have gone but carry a tag */
};
/* Runs to which every given rule applies, but none with a tag or a baseline's name. All or nothing. */
tare_status store_prune(struct store *s, struct store_prune *p, tare_error *err);

/* Is all of it there, and does every document unpack to what its checksum says? What is wrong is in out->trouble. */
tare_status store_check(struct store *s, struct store_health *out, tare_error *err);

#endif
