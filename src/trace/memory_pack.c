/* SPDX-License-Identifier: MIT
 * memory_pack.c - memory records to bytes and back; see records.h. An allocation takes 8 to 12 bytes, a free 5 to 8:
 * times and addresses are differences, a stack goes by its number. */
#include "trace/memory_block.h"
#include "trace/records.h"

enum coding { TIME, ADDRESS, ID, SPARE, UINT, NONE };
_Static_assert((int)TIME == MEMORY_TIME && (int)ADDRESS == MEMORY_ADDRESS && (int)ID == MEMORY_ID,
               "of memory_block.h");
_Static_assert((int)UINT == RECORD_UINT && (int)NONE == RECORD_NONE, "codings of records.h");

#define F(field, coding) coding,
#define RECORD(number, name, fields) [number] = {fields NONE},
static const uint8_t codings[MEMORY_KINDS][RECORD_FIELDS] = {
#include "trace/memory_records.def"
};
#undef RECORD
#undef F

/* 0: the kind has no text. */
static size_t text_most(unsigned kind)
{
    static const uint16_t most[MEMORY_KINDS] = {
        [MEMORY_START] = MEMORY_TEXT_MOST, [MEMORY_NAME] = MEMORY_TEXT_MOST, [MEMORY_THREAD] = MEMORY_TEXT_MOST,
        [MEMORY_MODULE] = MEMORY_TEXT_MOST, [MEMORY_NOTE] = MEMORY_TEXT_MOST, [MEMORY_CODE] = MEMORY_TABLE_MOST,
    };
    return most[kind];
}

bool memory_pack(struct memory_state *s, struct enc *to, const struct memory_record *r)
{
    bool block = r->kind == MEMORY_ALLOC || r->kind == MEMORY_FREE;
    if (block && memory_has_room(to)) {
        memory_pack_block(s, to, r->kind, r->v);
        return true;
    }
    const uint8_t kind = (uint8_t)r->kind;
    const struct record_text text = {r->text, r->text_bytes, text_most(kind)};
    struct enc e = *to;
    enc_bytes(&e, &kind, 1);
    if (!record_pack(s->last, &e, codings[kind], r->v, text.most ? &text : NULL)) return false;
    *to = e;
    return true;
}

bool memory_unpack(struct memory_state *s, struct dec *d, struct memory_record *r)
{
    if (d->failed || d->p == d->end) return false;
    unsigned kind = *d->p++;
    if (!kind || kind >= MEMORY_KINDS) {
        d->failed = true;
        return false;
    }
    *r = (struct memory_record){.kind = (enum memory_kind)kind, .text = ""};
    record_unpack(s->last, d, codings[kind], r->v);
    if (text_most(kind)) r->text = dec_str(d, &r->text_bytes);
    return !d->failed;
}

bool memory_head(struct dec *d, struct memory_head *out)
{
    out->slot = dec_uint(d);
    out->seq = dec_uint(d);
    if (out->slot >= MEMORY_SLOTS_MOST || !out->seq) d->failed = true;
    return !d->failed;
}
