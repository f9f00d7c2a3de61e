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
#define PIECE_WAITS_MS (24 * 3600 * INT64_C(1000)) /* for its file */
#define ID_LASTS_MS (7 * 24 * 3600 * INT64_C(1000)) /* at least */
#define SHORT_NS (20 * MS)                          /* between slices of samples, which take some milliseconds */
enum { PIECES_AT_ONCE = 2 /* of 4 MiB each */, CHUNKS_AT_ONCE = 200 };

/* The time of day, but never later than it was at the start and what went by since: a clock that is set forward while
 * the server runs must not make every run old. */
static int64_t careful_now_ms(const struct server *s)
{
    int64_t now = (int64_t)(clock_unix_ns() / MS);
    int64_t by_start = s->began_unix_ms + (int64_t)((login_clock() - s->began_boot_ns) / MS);
    return now < by_start ? now : by_start;
}

/* Runs, with their files. True: there may be more to do. */
static bool expire_runs(struct server *s, struct store *st, tare_error *err)
{
    struct store_expiry e = {.before_ms = careful_now_ms(s) - s->options.keep_ms, .most_ns = SLICE_NS};
    if (s->options.keep_ms && st->ops->expire(st, &e, err) != TARE_OK)
        s->options.say(s->options.say_ctx, err->text);
    return e.more;
}

/* Pieces whose file never came, or is gone. */
static bool sweep_pieces(struct server *s, struct store *st, tare_error *err)
{
    struct store_sweep e = {.before_ms = careful_now_ms(s) - PIECE_WAITS_MS, .most = PIECES_AT_ONCE};
    if (st->ops->files.sweep(st, &e, err) != TARE_OK) s->options.say(s->options.say_ctx, err->text);
    return e.removed == e.most;
}

/* Samples of hosts, and ids of their batches: a batch that comes again so late counts as new. */
static bool expire_samples(struct server *s, struct store *st, tare_error *err)
{
    const struct keep_samples *keep = &s->options.keep_samples;
    int64_t now = careful_now_ms(s);
    if (!keep->readings_ms) return false;
    int64_t ids = keep->readings_ms > ID_LASTS_MS ? keep->readings_ms : ID_LASTS_MS;
    struct store_rollup_expiry e = {.readings_ms = now - keep->readings_ms,
                                    .minutes_ms = keep->minutes_ms ? now - keep->minutes_ms : 0,
                                    .hours_ms = keep->hours_ms ? now - keep->hours_ms : 0,
                                    .ids_ms = now - ids,
                                    .most = CHUNKS_AT_ONCE};
    if (st->ops->rollups.expire(st, &e, err) == TARE_OK) return e.more;
    s->options.say(s->options.say_ctx, err->text);
    return false;
}

uint64_t retention_slice(void *ctx, struct store *st)
{
    struct server *s = ctx;
    tare_error err = TARE_ERROR_INIT;
    bool more = expire_runs(s, st, &err);
    if (!more) more = sweep_pieces(s, st, &err);
    bool samples = expire_samples(s, st, &err);
    if (samples && !more) return SHORT_NS;
    return more ? PAUSE_NS : IDLE_NS;
}
