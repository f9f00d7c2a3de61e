/* SPDX-License-Identifier: MIT
 * memory_block.h - ALLOC and FREE, as nearly all records are: the bytes that the table of memory_pack.c would give,
 * with one look at the room. Here, as an allocation of another program waits for it. */
#ifndef TRACE_MEMORY_BLOCK_H
#define TRACE_MEMORY_BLOCK_H

#include "trace/memory.h"

enum { MEMORY_TIME, MEMORY_ADDRESS, MEMORY_ID }; /* of memory_state.last */
enum { MEMORY_BLOCK_MOST = 1 + 4 * 10 };         /* bytes */

static inline bool memory_has_room(const struct enc *to)
{
    return !to->full && to->end - to->p >= MEMORY_BLOCK_MOST;
}

/* v: of an ALLOC time, address, size, stack; of a FREE the first two. */
static inline __attribute__((always_inline)) void memory_pack_block(struct memory_state *s, struct enc *to,
                                                                    enum memory_kind kind, const uint64_t *v)
{
    uint8_t *p = to->p;
    *p++ = (uint8_t)kind;
    p = enc_put(p, zigzag((int64_t)(v[0] - s->last[MEMORY_TIME])));
    p = enc_put(p, zigzag((int64_t)(v[1] - s->last[MEMORY_ADDRESS])));
    s->last[MEMORY_TIME] = v[0];
    s->last[MEMORY_ADDRESS] = v[1];
    if (kind == MEMORY_ALLOC) {
        p = enc_put(p, v[2]);
        p = enc_put(p, zigzag((int64_t)(v[3] - s->last[MEMORY_ID])));
        s->last[MEMORY_ID] = v[3];
    }
    to->p = p;
}

#endif
