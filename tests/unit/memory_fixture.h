/* SPDX-License-Identifier: MIT
 * memory_fixture.h - made-up histories of memory: a process that allocates and frees as it is told, in a trace of its
 * own. Times are nanoseconds since it began; what is written goes to one slot at a time. */
#ifndef TESTS_MEMORY_FIXTURE_H
#define TESTS_MEMORY_FIXTURE_H

#include "trace/appender.h"
#include "trace/memory.h"
#include "trace_fixture.h"

struct memory_making {
    struct folder at;
    struct appender to;
    struct memory_state state;
    uint8_t room[1 << 16];
    struct enc e;
    uint64_t begun, seq[8], stacks;
    unsigned slot;
};

/* The chunk under way begins: of this slot. */
FIXTURE void memory_slot(struct memory_making *m, unsigned slot)
{
    m->slot = slot;
    m->state = (struct memory_state){{0}};
    m->e = (struct enc){m->room, m->room + sizeof m->room, false};
    enc_uints(&m->e, slot, ++m->seq[slot]);
}

FIXTURE void memory_put(struct memory_making *m, const struct memory_record *r)
{
    MUST(memory_pack(&m->state, &m->e, r));
}

/* Any record: its kind, its fields in order. */
#define memory_tell(m, what, ...) \
    memory_put(m, &(struct memory_record){.kind = MEMORY_##what, .text = "", .v = {__VA_ARGS__}})

FIXTURE void memory_text(struct memory_making *m, struct memory_record r, const char *text)
{
    r.text = text;
    r.text_bytes = strlen(text);
    memory_put(m, &r);
}

/* A process that joins this trace with MODE_MEMORY or MODE_STACKS. */
FIXTURE void memory_join_as(struct memory_making *m, const char *trace, unsigned mode)
{
    struct appender_options o = {.path = trace, .mode = mode, .tsc = 0}; /* ticks are nanoseconds */
    memset(m->seq, 0, sizeof m->seq);
    m->stacks = 0;
    MUST(appender_open(&m->to, &o, NULL) == TARE_OK);
    m->begun = clock_raw_ns();
    memory_slot(m, 0);
}

/* One whose memory is recorded; `every` as in START: 0 records every allocation. */
FIXTURE void memory_join(struct memory_making *m, const char *trace, uint64_t every)
{
    memory_join_as(m, trace, MODE_MEMORY);
    memory_text(m, (struct memory_record){.kind = MEMORY_START, .v = {every, 64, 4096}}, "test");
}

FIXTURE uint64_t memory_time(const struct memory_making *m, uint64_t ns)
{
    return m->begun + ns;
}

/* A frame below `parent` (0: outermost); gives its number. */
FIXTURE uint64_t memory_native(struct memory_making *m, uint64_t parent, uint64_t address, uint64_t module)
{
    memory_tell(m, STACK, ++m->stacks, parent, MEMORY_NATIVE, address, module);
    return m->stacks;
}

/* Of a Python function of its own: names 2n-1 and 2n, code n, all numbered as the stack; the line is `line`. */
FIXTURE uint64_t memory_python(struct memory_making *m, uint64_t parent, const char *file, const char *name,
                               uint64_t line)
{
    static const char table[] = {(char)(0x80 | 13 << 3 | 7), 0, 0}; /* no column, 8 units, the first line */
    uint64_t n = ++m->stacks;
    memory_text(m, (struct memory_record){.kind = MEMORY_NAME, .v = {2 * n - 1}}, file);
    memory_text(m, (struct memory_record){.kind = MEMORY_NAME, .v = {2 * n}}, name);
    struct memory_record code = {
        .kind = MEMORY_CODE, .text = table, .text_bytes = 2, .v = {n, 2 * n - 1, 2 * n, line, 0x030b}};
    memory_put(m, &code);
    memory_tell(m, STACK, n, parent, MEMORY_PYTHON, n, 0);
    return n;
}

FIXTURE void memory_alloc(struct memory_making *m, uint64_t ns, uint64_t address, uint64_t size,
                          uint64_t stack)
{
    memory_tell(m, ALLOC, memory_time(m, ns), address, size, stack);
}

FIXTURE void memory_free(struct memory_making *m, uint64_t ns, uint64_t address)
{
    memory_tell(m, FREE, memory_time(m, ns), address);
}

/* What there is goes to the file as one chunk; the next is of the same slot. */
FIXTURE void memory_write(struct memory_making *m)
{
    size_t at = appender_begin(&m->to);
    buf_add(&m->to.out, m->room, (size_t)(m->e.p - m->room));
    appender_end(&m->to, at, CHUNK_MEMORY);
    MUST(appender_write(&m->to, NULL) == TARE_OK);
    memory_slot(m, m->slot);
}

FIXTURE void memory_end(struct memory_making *m)
{
    memory_write(m);
    MUST(appender_close(&m->to, 0, NULL) == TARE_OK);
}

FIXTURE int memory_set_up(void **state)
{
    struct memory_making *m = calloc(1, sizeof *m);
    MUST(m);
    folder_new(&m->at);
    *state = m;
    return 0;
}

FIXTURE int memory_tear_down(void **state)
{
    struct memory_making *m = *state;
    folder_remove(&m->at);
    free(m);
    MUST(mem_live_blocks() == 0);
    return 0;
}

#endif
