/* SPDX-License-Identifier: MIT
 * fuzz_memory.c - the payload of a MEMORY chunk of any bytes. What unpacks must pack again to the same record, and a
 * line table of any bytes gives a line or none. */
#include <stdlib.h>

#include "trace/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static void again(const struct memory_record *r)
{
    static uint8_t room[1 << 17];
    struct memory_state out = {{0}}, in = {{0}};
    struct memory_record back;
    struct enc e = {room, room + sizeof room, false};
    must(memory_pack(&out, &e, r));
    struct dec d = {room, e.p, false};
    must(memory_unpack(&in, &d, &back) && back.kind == r->kind && d.p == d.end);
    must(memcmp(back.v, r->v, sizeof back.v) == 0 && back.text_bytes <= r->text_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_state state = {{0}};
    struct memory_head head;
    struct memory_record r;
    struct dec d = {data, data + size, false};
    if (!memory_head(&d, &head)) return 0;
    must(head.seq && head.slot < MEMORY_SLOTS_MOST);
    while (memory_unpack(&state, &d, &r)) {
        again(&r);
        if (r.kind != MEMORY_CODE) continue;
        for (uint64_t at = 0; at < 2 * r.text_bytes + 2; at += 2) memory_line(&r, at);
    }
    return 0;
}
