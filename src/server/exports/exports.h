/* SPDX-License-Identifier: MIT
 * exports.h - samples of hosts handed on to other systems, by one thread: OTLP/HTTP, or Prometheus' remote write. What
 * waits is in the store, and how far it got, too: a system that is away, or a server that is killed, loses nothing that
 * is still kept. */
#ifndef SERVER_EXPORTS_H
#define SERVER_EXPORTS_H

#include "server/jobs/operations.h"

struct exports_options {
    const struct operations *operations;
    const char *store;
    void (*say)(void *ctx, const char *text);
    void *say_ctx;
};

struct exports;
tare_status exports_open(struct exports **out, const struct exports_options *o, tare_error *err);
void exports_close(struct exports *e); /* NULL is fine; may wait for a reply, some seconds */

#endif
