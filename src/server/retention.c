/* SPDX-License-Identifier: MIT
 * retention.c - what is too old goes, slice by slice on the writer's thread between its groups, so that nobody who
 * waits for a commit waits long. */
#include "core/clock.h"
#include "server/server.h"
#include "store/care.h"

#define MS UINT64_C(1000000)
#define SLICE_NS (30 * MS) /* of removing, looked at between runs; the commit comes on top */
#define PAUSE_NS (200 * MS)
#define IDLE_NS (60000 * MS)

uint64_t retention_slice(void *ctx, struct store *st)
{
    struct server *s = ctx;
    tare_error err = TARE_ERROR_INIT;
    struct store_expiry e = {.before_ms = (int64_t)(clock_unix_ns() / MS) - s->options.keep_ms,
                             .most_ns = SLICE_NS};
    if (st->ops->expire(st, &e, &err) != TARE_OK) s->options.say(s->options.say_ctx, err.text);
    return e.more ? PAUSE_NS : IDLE_NS;
}
