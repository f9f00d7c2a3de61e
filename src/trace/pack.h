/* SPDX-License-Identifier: MIT
 * pack.h - raw events of one chunk -> the payload of a CHUNK_EVENTS. About five bytes a scope:
 *
 *   payload  thread, seq, shift, depth before, depth after, n_events, first time, span, n_sites, site...
 *            (varints), then one token an event
 *   token    0ll sssss  BEGIN  1/2/3 bytes of time follow (ll = 0, 1, 2; 3: a varint); s: place in the site list,
 *                              31: a varint follows the time
 *            10ll tttt  END    ll bytes of time follow, above the four low bits t
 *            11oooooo   other  o: enum pack_op, operands as varints
 *   time     difference to the event before, in units of 2^shift ticks
 *
 * and, of a chunk with scopes that wait, the payload of a CHUNK_PAUSES:
 *
 *   payload  thread, seq, then to the end: events since the one before that is told of, number << 1 | waited */
#ifndef TRACE_PACK_H
#define TRACE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

enum pack_op {
    OP_END_LONG = 0,      /* time */
    OP_BEGIN_WEIGHED = 1, /* time, place */
    OP_COUNT = 2,         /* time, place, signed value */
    OP_MARK = 3,          /* time, place, length, bytes */
    OP_END_ABANDONED = 4  /* time */
};
enum { PACK_SHORT_SITES = 31 };

enum { PACK_SLOTS_MAX = 4096, PACK_BYTES_MAX = 256 << 10, PACK_TABLE = 8192 };
enum { PACK_PAUSES_MAX = 20 + PACK_SLOTS_MAX * 7 }; /* a gap below 2^12, a number below 2^33 */

/* Scratch memory for packing; a third of a MiB: keep it off the stack. */
struct packer {
    uint16_t order[PACK_SLOTS_MAX]; /* slots of events, by time */
    uint32_t sites[PACK_SLOTS_MAX]; /* the site list: most frequent first */
    uint16_t uses[PACK_SLOTS_MAX];
    uint32_t key[PACK_TABLE]; /* site -> place, open addressing; key 0: free */
    uint16_t place[PACK_TABLE];
    uint32_t n_events, n_sites;
    uint8_t out[PACK_BYTES_MAX];
    size_t pauses_bytes; /* of a CHUNK_PAUSES; 0: nobody waited */
    uint8_t pauses[PACK_PAUSES_MAX];
};

/* Pack the published events among `slots` slots at `e`. Returns the payload's size in p->out; 0: no events. */
size_t pack_events(struct packer *p, const struct extent *x, const struct raw_event *e, size_t slots,
                   unsigned shift);

/* How many events are published in these slots. */
uint32_t pack_count(const struct raw_event *e, size_t slots);

/* Is each event published that has a place in these slots, all of which were given away? */
bool pack_is_whole(const struct raw_event *e, size_t slots);

#endif
