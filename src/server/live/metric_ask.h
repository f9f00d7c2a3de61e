/* SPDX-License-Identifier: MIT
 * metric_ask.h - one metric of a host over a time: from readings, and from sums over minutes or hours where pieces of
 * time are as long as those, or readings are gone. */
#ifndef SERVER_METRIC_ASK_H
#define SERVER_METRIC_ASK_H

#include "server/live/buckets.h"
#include "server/server.h"

enum { METRIC_CHUNKS_MAX = 500000 }; /* batches that one question may read */

struct metric_question {
    const char *name, *label; /* NULL: all */
    int64_t from_ms, to_ms;
    int64_t since_ms; /* as `from` was said; 0: it was not */
    uint64_t points;
};

tare_status metric_question(struct exchange *x, struct metric_question *out, tare_error *err);
void metric_answer(struct server *sv, struct store *s, struct exchange *x, int64_t host,
                   const struct metric_question *q);

#endif
