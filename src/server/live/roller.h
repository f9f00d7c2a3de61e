/* SPDX-License-Identifier: MIT
 * roller.h - sums up the hours of hosts: minutes and the hour itself of every series, on a thread of its own that reads
 * beside the writer and then writes the rows of one hour in one short transaction. */
#ifndef SERVER_ROLLER_H
#define SERVER_ROLLER_H

#include "store/store.h"

/* The hour that is due first, if any is. *more: there was one. */
tare_status roller_step(struct store *s, int64_t now_ms, bool *more, tare_error *err);

uint64_t roller_slice(void *ctx, struct store *s); /* of struct desk_options.between; ctx: struct server */

#endif
