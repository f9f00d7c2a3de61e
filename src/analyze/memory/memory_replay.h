/* SPDX-License-Identifier: MIT
 * memory_replay.h - the history of one process, played twice: first for the sums and the moment of the peak, then for
 * who held what at that moment and over time. So memory is needed for what is held, not for what happened. */
#ifndef ANALYZE_MEMORY_REPLAY_H
#define ANALYZE_MEMORY_REPLAY_H

#include "analyze/memory/memory_held.h"
#include "analyze/memory/memory_told.h"

struct replay_site {
    uint64_t stack;
    struct memory_bytes now;
    double most;            /* ever held */
    struct memory_rise row; /* under way */
    struct memory_site site;
};

struct memory_replay {
    uint32_t process;
    struct arena *arena;
    struct memory_told told;
    struct map_u64 site_of; /* stack -> place in `sites` */
    VEC(struct replay_site) sites;
    VEC(const char *) notes;
    struct memory_held held;
    struct map_u64 arena_at; /* Python's arenas: address -> bytes */
    struct memory_bytes now;
    /* Bytes that are mapped now: by the program itself, by Python's allocator, by a malloc that is not libc's. */
    uint64_t maps, arenas, pools;
    struct memory_process sum;
    uint64_t events, peak_event; /* counted from 1 */
    size_t moment;
    struct memory_heap before[2]; /* the last readings, the latest first */
    bool again;
};

void memory_replay_release(struct memory_replay *r);
tare_status memory_replay_record(struct memory_replay *r, const struct memory_record *what, tare_error *err);
/* The first time is over; the same records are to come once more. */
tare_status memory_replay_again(struct memory_replay *r, tare_error *err);
void memory_replay_end(struct memory_replay *r); /* the second time is over */

#endif
