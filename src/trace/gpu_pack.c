/* SPDX-License-Identifier: MIT
 * gpu_pack.c - GPU records to bytes and back: one loop each over the table that gpu_records.def makes. A kernel takes
 * about 12 bytes: its start and its number are told as differences, its name, its lane and its launch shape by
 * number. */
#include "trace/gpu.h"

#include <stdio.h>
#include <string.h>

#include "trace/records.h"

enum coding { HOST_TIME, GPU_TIME, HOST_ID, GPU_ID, UINT, NONE };
_Static_assert((int)UINT == RECORD_UINT && (int)NONE == RECORD_NONE, "codings of records.h");

#define F(field, coding) coding,
#define RECORD(number, name, fields) [number] = {fields NONE},
static const uint8_t codings[GPU_KINDS][12] = {
#include "trace/gpu_records.def"
};
#undef RECORD
#undef F

static bool has_text(unsigned kind)
{
    return kind == GPU_NAME || kind == GPU_DEVICE || kind == GPU_NOTE || kind == GPU_THREAD ||
           kind == GPU_RANK;
}

bool gpu_has_time(enum gpu_kind kind)
{
    return codings[kind][0] == HOST_TIME || codings[kind][0] == GPU_TIME;
}

/* The kind stands in front of the fields: it is taken back with them. */
bool gpu_pack(struct gpu_state *s, struct enc *to, const struct gpu_record *r)
{
    const uint8_t kind = (uint8_t)r->kind;
    const struct record_text text = {r->text, r->text_bytes, GPU_TEXT_MOST};
    struct enc e = *to;
    enc_bytes(&e, &kind, 1);
    if (!record_pack(s->last, &e, codings[kind], r->v, has_text(kind) ? &text : NULL)) return false;
    *to = e;
    return true;
}

bool gpu_unpack(struct gpu_state *s, struct dec *d, struct gpu_record *r)
{
    if (d->failed || d->p == d->end) return false;
    unsigned kind = *d->p++;
    if (!kind || kind >= GPU_KINDS) {
        d->failed = true;
        return false;
    }
    *r = (struct gpu_record){.kind = (enum gpu_kind)kind, .text = ""};
    record_unpack(s->last, d, codings[kind], r->v);
    if (has_text(kind)) r->text = dec_str(d, &r->text_bytes);
    return !d->failed;
}

struct gpu_record gpu_note(char room[GPU_NOTE_MOST], const char *format, va_list ap)
{
    vsnprintf(room, GPU_NOTE_MOST, format, ap);
    return (struct gpu_record){.kind = GPU_NOTE, .text = room, .text_bytes = strlen(room)};
}
