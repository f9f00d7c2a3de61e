/* SPDX-License-Identifier: MIT
 * whole_body.c - see whole_body.h. */
#include "load/whole_body.h"

void whole_body_open(void *ctx, void *state)
{
    (void)ctx;
    ((struct whole_body *)state)->bytes = (struct buf)BUF_INIT;
}

void whole_body_close(void *ctx, void *state)
{
    (void)ctx;
    buf_release(&((struct whole_body *)state)->bytes);
}

void whole_body_begin(void *ctx, void *state, const struct http_head *head, struct load_outcome *o)
{
    struct whole_body *b = state;
    (void)ctx;
    (void)head;
    (void)o;
    buf_clear(&b->bytes);
    b->too_long = false;
}

void whole_body_bytes(void *ctx, void *state, const struct load_piece *piece, struct load_outcome *o)
{
    struct whole_body *b = state;
    (void)ctx;
    (void)o;
    bool fits = !b->too_long && b->bytes.len + piece->n <= WHOLE_BODY_MOST;
    if (fits) buf_add(&b->bytes, piece->bytes, piece->n);
    b->too_long = !fits || b->bytes.failed;
}
