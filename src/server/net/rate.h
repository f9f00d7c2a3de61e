/* SPDX-License-Identifier: MIT
 * rate.h - how many requests a second somebody may make: token buckets in a table of fixed size, so that a flood of
 * addresses costs no memory. Who was quiet longest makes room. */
#ifndef SERVER_RATE_H
#define SERVER_RATE_H

#include "core/error.h"

struct rate_limit {
    double per_s; /* 0: no limit */
    double burst; /* so many at once */
};

struct rate;
tare_status rate_open(struct rate **out, tare_error *err);
void rate_close(struct rate *r);
/* Take one: 0, or after how many ns there will be one again. Any thread; `now_ns` does not step back. */
uint64_t rate_take(struct rate *r, const struct rate_limit *limit, const void *who, size_t n,
                   uint64_t now_ns);

#endif
