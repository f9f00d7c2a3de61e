/* SPDX-License-Identifier: MIT
 * whole_body.h - for readers (reader.h) that look at an answer as a whole: the bytes of one, put together. It is the
 * first member of their state; these functions stand in their table. */
#ifndef LOAD_WHOLE_BODY_H
#define LOAD_WHOLE_BODY_H

#include "core/buf.h"
#include "load/reader.h"

struct whole_body {
    struct buf bytes;
    bool too_long; /* over WHOLE_BODY_MOST, or no memory was left: not all of it is there */
};
#define WHOLE_BODY_MOST (UINT64_C(256) << 20)

void whole_body_open(void *ctx, void *state);
void whole_body_close(void *ctx, void *state);
void whole_body_begin(void *ctx, void *state, const struct http_head *head, struct load_outcome *o);
void whole_body_bytes(void *ctx, void *state, const struct load_piece *piece, struct load_outcome *o);

#endif
