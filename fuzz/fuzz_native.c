/* SPDX-License-Identifier: MIT
 * fuzz_native.c - the memory of a process of any bytes, walked from any registers: an index of unwind tables,
 * entries, expressions, a stack. Each walk has an end, nothing is read beyond what is there. And names of code made at
 * run time. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "sample/native_inner.h"
#include "sample/py_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the input lies: as an index first, and as all else. */
#define BASE UINT64_C(0x10000)

struct memory {
    const uint8_t *data;
    size_t size;
};

static size_t parts(const struct peek *p, const struct peek_part *part, size_t n)
{
    const struct memory *m = p->image;
    for (size_t i = 0; i < n; i++) {
        if (part[i].at < BASE || part[i].at - BASE > m->size || part[i].bytes > m->size - (part[i].at - BASE))
            return i;
        memcpy(part[i].to, m->data + (part[i].at - BASE), part[i].bytes);
    }
    return n;
}

static void walk(struct native_space *s, const uint8_t *regs)
{
    struct native_shot shot;
    struct native_stack out = {.frames = VEC_INIT};
    struct native_hint hint = {0};
    memset(&shot, 0, sizeof shot);
    for (unsigned i = 0; i < EH_REGS; i++)
        shot.regs.v[i] = BASE + (uint64_t)(regs[2 * i] | regs[2 * i + 1] << 8);
    shot.regs.known = (1u << EH_REGS) - 1;
    for (unsigned again = 0; again < 2; again++) native_walk(s, &shot, &out, &hint);
    if (out.frames.n > NATIVE_DEPTH_MOST || out.end >= NATIVE_ENDS) abort();
    vec_release(&out.frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { REGS = 2 * EH_REGS };
    if (size < REGS + 4) return 0;
    struct native_tables *tables = native_tables_new(NULL);
    if (!tables) return 0;
    struct memory m = {data + REGS, size - REGS};
    struct native_space s;
    native_open(&s, (struct peek){getpid(), parts, &m}, tables);
    struct native_module module = {
        .start = BASE, .end = BASE + 0x10000, .bias = BASE, .path = "x", .build_id = "-"};
    module.table = BASE;
    module.table_bytes = m.size;
    s.looked_ns = clock_raw_ns();
    s.gap = UINT64_MAX;
    s.made.asked_ns = s.looked_ns;
    char *text = mem_new(1, m.size + 1);
    if (text) memcpy(text, m.data, m.size);
    if (text) perf_map_parse(&s.made, text);
    mem_free(text);
    if (vec_push(&s.modules, module, NULL) == TARE_OK) walk(&s, data);
    native_release(&s);
    native_tables_free(tables);
    return 0;
}
