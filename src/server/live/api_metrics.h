/* SPDX-License-Identifier: MIT
 * api_metrics.h - what the handlers of hosts and metrics share. */
#ifndef SERVER_API_METRICS_H
#define SERVER_API_METRICS_H

#include "server/live/readings.h"
#include "server/steps.h"

/* What came with the request, as the store takes it; borrowed. */
void api_batch_of(struct store_batch *b, const struct exchange *x, const struct readings *r);

/* The host that ?host= names (and project=). False: answered. */
bool api_find_host(struct server *sv, struct store *s, struct exchange *x, int64_t *id);

#endif
