/* SPDX-License-Identifier: MIT
 * tally.h - what is counted of requests: times as histograms, promises, errors and the slowest ones exactly. Tallies of
 * hosts, routes and times add up to one without loss. Judges nothing (slo.h does). */
#ifndef ANALYZE_SLA_TALLY_H
#define ANALYZE_SLA_TALLY_H

#include "core/buf.h"
#include "core/hist.h"
#include "run/requests.h"

enum { TALLY_SLOS = 32, TALLY_LINE = 201 };

struct tally_slo {
    uint64_t threshold_ns;
    double objective;
    uint64_t within, breached;
};

struct tally_worst {
    uint64_t at_ms, latency_ns;
    char id[TALLY_LINE], failed[TALLY_LINE]; /* failed: "" did not */
};

struct tally {
    struct hist latency, first_byte;
    uint64_t errors, cancelled, lost;
    uint64_t minutes; /* of an hour: bit i, something came from minute i */
    struct tally_slo slo[TALLY_SLOS];
    struct tally_worst *worst[REQUESTS_WORST]; /* the slowest first; on the heap */
    size_t n_slo, n_worst;
};
#define TALLY_INIT                                \
    {                                             \
        .latency = HIST_INIT, .first_byte = HIST_INIT \
    }

void tally_release(struct tally *t);

/* One route of a batch that was read. TARE_INVALID: more promises than are kept. */
tare_status tally_add_route(struct tally *t, const struct requests_route *r, tare_error *err);
tare_status tally_merge(struct tally *t, const struct tally *from, tare_error *err);

static inline uint64_t tally_requests(const struct tally *t)
{
    return t->latency.count + t->errors;
}

/* Fields of the protobuf wire format; tally.c has their numbers. */
tare_status tally_encode(const struct tally *t, struct buf *out, tare_error *err);
/* Add what was encoded. The bytes may be anyone's. On failure, whose text is the cause alone, a part may be added. */
tare_status tally_decode(struct tally *t, const void *bytes, size_t n, tare_error *err);

#endif
