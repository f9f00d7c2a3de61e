/* SPDX-License-Identifier: MIT
 * book.c - records into chunks of the trace. Names, lanes and launch shapes are told once and then go by number.
 * Every chunk begins with a clock pair, so that the loss of another chunk does not move its times. A chunk that could
 * not be written is counted, and all names are told again: later records must not hang on what is not in the file. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "gpu/gpu.h"
#include "trace/recorder.h"

enum { CLOCK_TRIES = 16 };
#define STEP_IS_OLD_NS UINT64_C(3000000000) /* three flushes: no record from before it comes any more */

static void begin_chunk(struct book *b)
{
    b->state = (struct gpu_state){{0}};
    b->enc = (struct enc){b->room, b->room + BOOK_ROOM, false};
}

/* A book may be opened again after it was closed: counts begin anew. */
tare_status book_open(struct book *b, const char *path, tare_error *err)
{
    *b = (struct book){0};
    b->room = mem_new(1, BOOK_ROOM);
    if (!b->room) return error_nomem(err, "a GPU trace");
    begin_chunk(b);
    tare_status s =
        appender_open(&b->to, &(struct appender_options){.path = path, .mode = MODE_GPU, .tsc = 1}, err);
    if (s != TARE_OK) mem_free(b->room);
    return s;
}

static void forget_names(struct book *b)
{
    memset(b->lane_ends, 0, sizeof b->lane_ends); /* lanes are numbered anew */
    map_str_release(&b->names);
    map_str_release(&b->lanes);
    map_str_release(&b->shapes);
    map_u64_release(&b->pointers);
    vec_clear(&b->texts);
    memset(b->call_names, 0, sizeof b->call_names);
}

/* A program that makes names as it goes must not make us grow with it. Numbers begin anew: a reader takes the latest
 * that it was told. */
void book_make_room(struct book *b)
{
    if (b->names.n + b->lanes.n + b->shapes.n > BOOK_NAMES) forget_names(b);
}

/* The chunk under way into the file. False: it is lost, and with it all names. */
static bool write_chunk(struct book *b)
{
    size_t bytes = (size_t)(b->enc.p - b->room);
    if (!bytes) return true;
    size_t at = appender_begin(&b->to);
    buf_add(&b->to.out, b->room, bytes);
    appender_end(&b->to, at, CHUNK_GPU);
    bool written = appender_write(&b->to, NULL) == TARE_OK;
    if (!written) {
        b->unwritten += b->in_chunk;
        forget_names(b);
    }
    b->in_chunk = 0;
    begin_chunk(b);
    if (b->pair.CLOCK.stamp) gpu_pack(&b->state, &b->enc, &b->pair);
    return written;
}

/* A record whose names went with a chunk that could not be written goes with them: its numbers mean nothing then. */
bool book_put(struct book *b, const struct gpu_record *r)
{
    if (!gpu_pack(&b->state, &b->enc, r) && (!write_chunk(b) || !gpu_pack(&b->state, &b->enc, r))) {
        b->unwritten++;
        return false;
    }
    b->in_chunk++;
    return true;
}

uint64_t book_text(struct book *b, const char *text)
{
    uint64_t *number, n_before = b->names.n;
    if (map_str_ref(&b->names, text, strlen(text), &number, NULL) != TARE_OK) return 0;
    if (b->names.n == n_before) return *number;
    *number = b->names.n;
    struct gpu_record r = {.kind = GPU_NAME, .text = text, .text_bytes = strlen(text)};
    r.NAME.number = *number;
    if (vec_push(&b->texts, map_str_find_key(&b->names, text, strlen(text)), NULL) != TARE_OK) return 0;
    return book_put(b, &r) ? b->names.n : 0;
}

/* Kernel names are long and come with every kernel: the place tells which it is, a comparison that it still is. */
uint64_t book_name(struct book *b, const char *text)
{
    uint64_t place = (uint64_t)(uintptr_t)text;
    uint64_t *known = text ? map_u64_find(&b->pointers, place) : NULL;
    if (known && *known <= b->texts.n && strcmp(b->texts.items[*known - 1], text) == 0) return *known;
    uint64_t number = book_text(b, text ? text : "");
    if (number) map_u64_put(&b->pointers, place, number, NULL);
    return number;
}

/* Of a LANE or a SHAPE, whose first field is the number that is looked for, by all the others. */
uint64_t book_number(struct book *b, struct map_str *m, struct gpu_record *r)
{
    uint64_t *number, n_before = m->n;
    r->v[0] = 0;
    if (map_str_ref(m, (const char *)r->v, sizeof r->v, &number, NULL) != TARE_OK) return 0;
    if (m->n == n_before) return *number;
    r->v[0] = *number = m->n; /* the map may be gone after the next line */
    return book_put(b, r) ? r->v[0] : 0;
}

/* CUPTI's clock beside ours, as tight as it can be had in so many tries. */
static bool read_clocks(const struct cupti *c, int tries, struct gpu_record *pair)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < tries; i++) {
        uint64_t stamp = 0, before = clock_raw_ns();
        if (c->get_timestamp(&stamp) != CUPTI_OK) return false;
        uint64_t width = clock_raw_ns() - before;
        if (width >= best) continue;
        best = width;
        *pair = (struct gpu_record){.kind = GPU_CLOCK};
        pair->CLOCK.stamp = stamp;
        pair->CLOCK.raw_ns = before + width / 2;
        pair->CLOCK.slack_ns = width - width / 2;
    }
    return true;
}

/* Stamps from before the step still come for a while: they are told from those after it by which end of it they are
 * nearer to. */
uint64_t book_stamp(const struct book *b, uint64_t stamp)
{
    const struct book_clock *c = &b->clock;
    if (!c->steps) return stamp;
    if (!c->step_from) return stamp + c->shift;
    uint64_t from = stamp > c->step_from ? stamp - c->step_from : c->step_from - stamp;
    uint64_t to = stamp > c->step_to ? stamp - c->step_to : c->step_to - stamp;
    return stamp + (from <= to ? c->shift_before : c->shift);
}

/* What the clock was moved by is taken out of all that follows, so that the trace goes on as if it had not been. */
static void note_step(struct book *b, const struct gpu_record *pair, int64_t by_ns)
{
    struct book_clock *c = &b->clock;
    c->shift_before = c->shift;
    c->shift -= (uint64_t)by_ns;
    c->step_to = pair->CLOCK.stamp;
    c->step_from = pair->CLOCK.stamp - (uint64_t)by_ns;
    c->steps++;
    book_note(b, "the clock was set %s by %.3f s: operations at that moment may be off by as much",
              by_ns > 0 ? "forward" : "back", (double)(by_ns > 0 ? by_ns : -by_ns) / 1e9);
}

/* Both clocks run on while a thread waits between two readings: a difference that the width of this look and of the one
 * before explains is none. */
static void look_for_step(struct book *b, const struct gpu_record *pair)
{
    enum { STEP_NS = 1000000 };
    int64_t ahead = (int64_t)(pair->CLOCK.stamp - pair->CLOCK.raw_ns), by = ahead - b->clock.ahead_ns;
    int64_t slack = (int64_t)pair->CLOCK.slack_ns, least = STEP_NS + slack + b->clock.slack_ns;
    if (b->clock.ahead_ns && (by > least || by < -least)) note_step(b, pair, by);
    b->clock.ahead_ns = ahead;
    b->clock.slack_ns = slack;
}

void book_watch_clock(struct book *b, const struct cupti *c)
{
    struct gpu_record pair;
    if (read_clocks(c, 1, &pair)) look_for_step(b, &pair);
}

void book_clock(struct book *b, const struct cupti *c)
{
    struct gpu_record pair;
    if (!read_clocks(c, CLOCK_TRIES, &pair)) return;
    uint64_t steps = b->clock.steps;
    look_for_step(b, &pair);
    if (steps == b->clock.steps) {
        uint64_t since = pair.CLOCK.stamp - b->clock.step_to;
        if (since > STEP_IS_OLD_NS) b->clock.step_from = 0;
    }
    pair.CLOCK.stamp += b->clock.shift;
    b->pair = pair;
    if (!b->begun) b->begun = pair.CLOCK.stamp;
    book_put(b, &b->pair);
}

void book_note(struct book *b, const char *format, ...)
{
    char text[GPU_NOTE_MOST];
    va_list ap;
    va_start(ap, format);
    struct gpu_record r = gpu_note(text, format, ap);
    va_end(ap);
    book_put(b, &r);
}

void book_note_late(struct book *b)
{
    static const char text[] =
        "recording began in a running program: memory that it took before is not in here, nor may kernels be of "
        "CUDA graphs that it made before";
    struct gpu_record r = {.kind = GPU_NOTE, .text = text, .text_bytes = sizeof text - 1};
    r.NOTE.what = GPU_NOTE_LATE;
    book_put(b, &r);
}

void book_flush(struct book *b)
{
    uint64_t sum = b->dropped + b->untimed + b->unread + b->unwritten + b->ranges_lost;
    if (sum != b->told_losses) {
        struct gpu_record r = {.kind = GPU_LOST};
        r.LOST.dropped = b->dropped;
        r.LOST.untimed = b->untimed;
        r.LOST.unread = b->unread;
        r.LOST.unwritten = b->unwritten;
        r.LOST.ranges = b->ranges_lost;
        book_put(b, &r);
        b->told_losses = sum;
    }
    if (b->in_chunk) write_chunk(b);
}

void book_close(struct book *b)
{
    book_flush(b);
    appender_close(&b->to, b->unwritten, NULL);
    forget_names(b);
    vec_release(&b->texts);
    map_u64_release(&b->devices);
    map_u64_release(&b->pools);
    mem_free(b->room);
    b->room = NULL;
}
