/* SPDX-License-Identifier: MIT
 * sse.h - server-sent events out of bytes that are cut anywhere: lines end with \n, \r\n or \r, lines of data are put
 * together, comments are counted, other fields but `event` are left out. Memory is bounded: of an event that is longer
 * the rest is dropped, and said. Pure. */
#ifndef LOAD_SSE_H
#define LOAD_SSE_H

#include <stdbool.h>

#include "core/buf.h"

enum { SSE_EVENT_MOST = 1 << 20 };

struct sse_event {
    const char *data; /* NUL-terminated; until the function returns */
    size_t n;
    const char *name; /* of an `event:` line; "" without one */
    bool cut;         /* it was longer than SSE_EVENT_MOST, or there was no memory for it */
};

struct sse {
    struct buf line, data; /* what is there of a line; of an event */
    char name[24];
    bool begun, after_cr, any_data, cut;
    unsigned comments;
};
#define SSE_INIT                         \
    {                                    \
        .line = BUF_INIT, .data = BUF_INIT \
    }

struct sse_sink {
    void (*event)(void *ctx, const struct sse_event *event);
    void *ctx;
};

void sse_release(struct sse *s);
void sse_reset(struct sse *s); /* for the next stream; keeps the memory */
/* An event is told with its empty line. What has none when the stream ends never was an event. */
void sse_feed(struct sse *s, const char *bytes, size_t n, const struct sse_sink *to);

#endif
