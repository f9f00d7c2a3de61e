/* SPDX-License-Identifier: MIT
 * stacks_write.c - see stacks_write.h. One stream of records, cut into chunks. */
#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "trace/appender.h"
#include "trace/stacks_write.h"

enum { ROOM = 64 << 10, RECORD_MOST = MEMORY_TABLE_MOST + 256, STACKS_MOST = 1 << 22 };

struct stacks_writer {
    struct appender to;
    struct map_str names;
    struct map_u64 frames; /* hash of a frame and its callers -> number */
    uint64_t n_frames, seq, lost;
    struct memory_state state;
    struct enc enc;
    const uint8_t *begun; /* behind the head of the chunk under way */
    uint8_t room[ROOM + RECORD_MOST];
};

static void begin_chunk(struct stacks_writer *w)
{
    w->enc = (struct enc){w->room, w->room + sizeof w->room, false};
    w->state = (struct memory_state){{0}};
    enc_uint(&w->enc, 0);
    enc_uint(&w->enc, ++w->seq);
    w->begun = w->enc.p;
}

tare_status stacks_open(struct stacks_writer **out, const char *path, pid_t pid, tare_error *err)
{
    struct stacks_writer *w = mem_new(1, sizeof *w);
    if (!w) return error_nomem(err, "a trace");
    const struct appender_options o = {.path = path, .mode = MODE_STACKS, .pid = (uint32_t)pid};
    tare_status s = appender_open(&w->to, &o, err);
    if (s != TARE_OK) {
        mem_free(w);
        return s;
    }
    begin_chunk(w);
    *out = w;
    return TARE_OK;
}

tare_status stacks_flush(struct stacks_writer *w, tare_error *err)
{
    if (w->enc.p == w->begun) return TARE_OK;
    size_t at = appender_begin(&w->to);
    buf_add(&w->to.out, w->room, (size_t)(w->enc.p - w->room));
    appender_end(&w->to, at, CHUNK_MEMORY);
    begin_chunk(w);
    return appender_write(&w->to, err);
}

void stacks_put(struct stacks_writer *w, const struct memory_record *r)
{
    if (w->enc.p - w->room > ROOM && stacks_flush(w, NULL) != TARE_OK) w->lost++;
    if (!memory_pack(&w->state, &w->enc, r)) w->lost++;
}

uint64_t stacks_name(struct stacks_writer *w, const char *text)
{
    uint64_t *number;
    size_t n = strnlen(text, MEMORY_TEXT_MOST), before = w->names.n;
    if (map_str_ref(&w->names, text, n, &number, NULL) != TARE_OK) return 0;
    if (w->names.n == before) return *number;
    *number = w->names.n;
    struct memory_record r = {.kind = MEMORY_NAME, .text = text, .text_bytes = n, .v = {w->names.n}};
    stacks_put(w, &r);
    return w->names.n;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

/* By a hash of 64 bits: two that are equal by chance would be taken for one. */
uint64_t stacks_frame(struct stacks_writer *w, const struct stacks_frame *f)
{
    uint64_t *number,
        key = mix(mix(mix(mix(UINT64_C(0x7461726573746B73), f->parent), f->kind), f->where), f->at);
    if (w->n_frames >= STACKS_MOST) return 0;
    if (map_u64_ref(&w->frames, key, &number, NULL) != TARE_OK) return 0;
    if (*number) return *number;
    *number = ++w->n_frames;
    struct memory_record r = {.kind = MEMORY_STACK, .text = ""};
    r.STACK.number = w->n_frames;
    r.STACK.parent = f->parent;
    r.STACK.kind = f->kind;
    r.STACK.where = f->where;
    r.STACK.at = f->at;
    stacks_put(w, &r);
    return w->n_frames;
}

tare_status stacks_close(struct stacks_writer *w, tare_error *err)
{
    if (!w) return TARE_OK;
    tare_status s = stacks_flush(w, err);
    tare_status closed = appender_close(&w->to, w->lost, s == TARE_OK ? err : NULL);
    map_str_release(&w->names);
    map_u64_release(&w->frames);
    mem_free(w);
    return s == TARE_OK ? closed : s;
}
