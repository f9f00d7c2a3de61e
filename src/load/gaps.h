/* SPDX-License-Identifier: MIT
 * gaps.h - the gaps between events of streams, pooled. The stream is the unit of evidence: fifty gaps of one stream are
 * one look at the server, so that intervals go by how streams differ. Pure. */
#ifndef LOAD_GAPS_H
#define LOAD_GAPS_H

#include "core/interval.h"
#include "core/vec.h"

#define GAP_UNIT_NS 100 /* what is kept of a gap: up to 429 s */
enum { GAPS_MOST = 1 << 24 };

struct gap_list {
    VEC(uint32_t) at; /* of one stream, in GAP_UNIT_NS */
};
tare_status gap_add(struct gap_list *l, uint64_t ns, tare_error *err);

struct gaps {
    VEC(uint32_t) all;
    VEC(size_t) ends;  /* of each stream, in `all` */
    uint64_t left_out; /* streams for which there was no room */
};
void gaps_release(struct gaps *g);
void gaps_clear(struct gaps *g);
/* One stream's; the list is empty then. */
void gaps_take(struct gaps *g, struct gap_list *stream);

/* Quantiles of all gaps, ns, each with its interval by streams; NAN: fewer than two streams, or no gaps. */
tare_status gaps_quantiles(const struct gaps *g, const double q[], size_t n, struct interval out[],
                           tare_error *err);
/* Of all gaps, those below this. */
double gaps_share_below(const struct gaps *g, uint64_t ns);

#endif
