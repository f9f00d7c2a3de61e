/* SPDX-License-Identifier: MIT
 * stream.h - samples of a host as they come, to any number of viewers: server-sent events, once a second. One thread
 * with its own connection to the store, where it looks for what is new: it shows what any server on this store took.
 * A viewer that reads slowly gets the next piece when it has the one before, and is cut by the loop's deadline. */
#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include "core/error.h"

struct streams;
struct server;
tare_status streams_open(struct streams **out, struct server *s, const char *store, tare_error *err);
void streams_stop(struct streams *l);  /* every viewer is let go; those that come later at once */
void streams_close(struct streams *l); /* after the loop; NULL is fine */

#endif
