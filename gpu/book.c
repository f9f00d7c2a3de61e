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

enum { CHUNK_ROOM = 256 << 10, CLOCK_TRIES = 16 };

static void begin_chunk(struct book *b)
{
    b->state = (struct gpu_state){{0}};
    b->enc = (struct enc){b->room, b->room + CHUNK_ROOM, false};
}

/* A book may be opened again after it was closed: counts begin anew. */
tare_status book_open(struct book *b, const char *path, tare_error *err)
{
    *b = (struct book){0};
    b->room = mem_new(1, CHUNK_ROOM);
    if (!b->room) return error_nomem(err, "a GPU trace");
    begin_chunk(b);
    tare_status s =
        appender_open(&b->to, &(struct appender_options){.path = path, .mode = MODE_GPU, .tsc = 1}, err);
    if (s != TARE_OK) mem_free(b->room);
    return s;
}

static void forget_names(struct book *b)
{
    map_str_release(&b->names);
    map_str_release(&b->lanes);
    map_str_release(&b->shapes);
    map_u64_release(&b->pointers);
    vec_clear(&b->texts);
    memset(b->call_names, 0, sizeof b->call_names);
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

/* CUPTI's clock beside ours, as tight as it can be had. */
void book_clock(struct book *b, const struct cupti *c)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        uint64_t stamp = 0, before = clock_raw_ns();
        if (c->get_timestamp(&stamp) != CUPTI_OK) return;
        uint64_t width = clock_raw_ns() - before;
        if (width >= best) continue;
        best = width;
        b->pair = (struct gpu_record){.kind = GPU_CLOCK};
        b->pair.CLOCK.stamp = stamp;
        b->pair.CLOCK.raw_ns = before + width / 2;
        b->pair.CLOCK.slack_ns = width - width / 2;
    }
    book_put(b, &b->pair);
}

void book_note(struct book *b, const char *format, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    struct gpu_record r = {.kind = GPU_NOTE, .text = text, .text_bytes = strlen(text)};
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
    mem_free(b->room);
    b->room = NULL;
}
