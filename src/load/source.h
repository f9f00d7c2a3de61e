/* SPDX-License-Identifier: MIT
 * source.h - where requests come from: the same bytes each time, a line of a file, a template. */
#ifndef LOAD_SOURCE_H
#define LOAD_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

/* Cleared before each is filled. The engine adds the request line, Host, Content-Length and the user's headers. */
struct load_request {
    struct buf target;  /* path and query; empty: those of the address */
    struct buf headers; /* further ones, each ended by \r\n */
    struct buf body;
};

struct load_source {
    /* Request `number`, counted from 0 over the whole measurement; warm-up counts from `LOAD_WARM_NUMBER`. The same
     * number gives the same request. A failure ends the load. NULL: requests without a body. */
    tare_status (*fill)(void *ctx, uint64_t number, struct load_request *out, tare_error *err);
    void *ctx;
    const char *content_type; /* NULL: none */
    bool same;                /* all are as number 0: made once */
    uint64_t period;          /* they come again after so many, 1: at once; 0: each is another */
};
#define LOAD_WARM_NUMBER (UINT64_C(1) << 40)

#endif
