/* SPDX-License-Identifier: MIT
 * watch_send.h - what the probes read, to a server about each second while the program runs. Whoever samples only puts
 * values into a room of fixed size; a thread of its own sends them, so no server holds up a sample. A batch goes again
 * under its id until the server has answered it: it counts once. What finds no room, or no server, is counted. */
#ifndef WATCH_WATCH_SEND_H
#define WATCH_WATCH_SEND_H

#include "core/error.h"
#include "trace/samples.h"

struct sender;

/* Connects to nobody yet. TARE_BUSY: another `tare run` sends the metrics of this host to this server. The sums of two
 * programs in one series would be those of neither. */
tare_status sender_open(struct sender **out, const char *url, const char *token, tare_error *err);
/* From now on it sends. */
tare_status sender_start(struct sender *s, tare_error *err);

/* One moment. `last`: there will be no other. Never waits; labels stay in use until the end. */
void sender_take(struct sender *s, const struct series_set *set, const struct sample *now, bool last);

struct sender_account {
    uint64_t values, lost; /* lost: not at the server, or not known to be */
    tare_error why;        /* of the first */
};
/* Sends what is left, if the server answers; waits for it a few seconds at most. */
void sender_end(struct sender *s, struct sender_account *out);

#endif
