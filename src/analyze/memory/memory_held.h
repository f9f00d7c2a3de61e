/* SPDX-License-Identifier: MIT
 * memory_held.h - what is held at a moment of a replay: blocks by address, mappings as ranges. */
#ifndef ANALYZE_MEMORY_HELD_H
#define ANALYZE_MEMORY_HELD_H

#include "core/error.h"
#include "core/map.h"
#include "core/vec.h"

struct held_block {
    uint64_t at_ns, size;
    size_t site;
};
struct held_range { /* [start, end) */
    uint64_t start, end, at_ns;
    size_t site;
};

struct memory_held {
    struct map_u64 by_address; /* -> place in `blocks` */
    VEC(struct held_block) blocks;
    VEC(size_t) spare;             /* places in `blocks` that are free */
    VEC(struct held_range) ranges; /* sorted, disjoint */
};

void memory_held_release(struct memory_held *h);
tare_status memory_held_put(struct memory_held *h, uint64_t address, struct held_block b, tare_error *err);
/* False where nothing is held there. */
bool memory_held_take(struct memory_held *h, uint64_t address, struct held_block *out);

/* Nothing of it may be held. An empty one is nothing. */
tare_status memory_held_map(struct memory_held *h, struct held_range r, tare_error *err);
/* `piece` names a range; the first piece of it that is held is taken out and becomes `piece`. *any is false when there
 * is none. Ask again until then. */
tare_status memory_held_unmap(struct memory_held *h, struct held_range *piece, bool *any, tare_error *err);

#endif
