/* SPDX-License-Identifier: MIT
 * test_memory_records.c - memory records: packed and read back, from archives and from live files, merged in the order
 * of time; lines of Python functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "made_live.h"
#include "memory_fixture.h"

/* ---- packing ---- */

static void records_come_back(void **state)
{
    (void)state;
    uint8_t room[4096];
    struct enc e = {room, room + sizeof room, false};
    struct memory_state out = {{0}}, in = {{0}};
    struct memory_record r = {0}, back;
    for (int kind = 1; kind < MEMORY_KINDS; kind++) {
        r = (struct memory_record){.kind = (enum memory_kind)kind, .text = "abc", .text_bytes = 3};
        for (int i = 0; i < 12; i++)
            r.v[i] = (uint64_t)kind * 1000003u * (uint64_t)(i + 1) * (kind % 2 ? 1 : 1000000007u);
        assert_true(memory_pack(&out, &e, &r));
    }
    struct dec d = {room, e.p, false};
    for (int kind = 1; kind < MEMORY_KINDS; kind++) {
        assert_true(memory_unpack(&in, &d, &back));
        assert_int_equal(back.kind, kind);
        assert_true(back.v[0] == (uint64_t)kind * 1000003u * (kind % 2 ? 1 : 1000000007u));
        if (kind == MEMORY_START || kind == MEMORY_NAME || kind == MEMORY_CODE || kind == MEMORY_NOTE)
            assert_memory_equal(back.text, "abc", 3);
    }
    assert_false(memory_unpack(&in, &d, &back));
    assert_false(d.failed);
}

/* As a busy program has them: 50 ns apart, within 1 MiB, of one of a thousand stacks. */
static void an_allocation_and_its_free_take_few_bytes(void **state)
{
    (void)state;
    static uint8_t room[1 << 16];
    struct enc e = {room, room + sizeof room, false};
    struct memory_state s = {{0}};
    enum { PAIRS = 1000 };
    for (uint64_t i = 0; i < PAIRS; i++) {
        uint64_t at = 1731700000000u + i * 280, address = 0x5555deadb000u + i * 7919 % 65536 * 16;
        struct memory_record a = {.kind = MEMORY_ALLOC, .v = {at, address, 16 + i % 500, 1 + i * 37 % 1000}};
        struct memory_record f = {.kind = MEMORY_FREE, .v = {at + 140, address}};
        assert_true(memory_pack(&s, &e, &a) && memory_pack(&s, &e, &f));
    }
    assert_true(e.p - room <= PAIRS * 2 * 12);
}

/* Numbers of each length, as written byte by byte. */
static void a_number_has_seven_bits_a_byte(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        uint8_t room[32] = {0}, plain[16];
        struct enc e = {room, room + sizeof room, false};
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        uint64_t v = i < 128 ? (UINT64_C(1) << i / 2) - (uint64_t)(i % 2) : x >> i % 64;
        size_t n = 0;
        enc_uint(&e, v);
        for (uint64_t left = v; n == 0 || left; left >>= 7)
            plain[n++] = (uint8_t)((left & 0x7f) | (left >> 7 ? 0x80 : 0));
        assert_int_equal(e.p - room, n);
        assert_memory_equal(room, plain, n);
    }
}

static void no_room_changes_nothing(void **state)
{
    (void)state;
    uint8_t room[64];
    struct enc e = {room, room + 25, false};
    struct memory_state s = {{0}}, before = s;
    struct memory_record r = {.kind = MEMORY_ALLOC, .v = {INT64_MAX, INT64_MAX, INT64_MAX, 1}};
    assert_false(memory_pack(&s, &e, &r));
    assert_memory_equal(&s, &before, sizeof s);
    assert_ptr_equal(e.p, room);
}

static void bytes_that_are_no_record(void **state)
{
    (void)state;
    const uint8_t unknown[] = {MEMORY_KINDS, 1, 2}, torn[] = {MEMORY_ALLOC, 0x80}, zero[] = {0};
    const struct dec all[] = {{unknown, unknown + sizeof unknown, false},
                              {torn, torn + sizeof torn, false},
                              {zero, zero + sizeof zero, false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct memory_state s = {{0}};
        struct memory_record r;
        struct dec d = all[i];
        assert_false(memory_unpack(&s, &d, &r));
        assert_true(d.failed);
    }
}

/* ---- reading ---- */

struct told {
    char text[2000];
    size_t n;
    int most; /* stop after so many; 0: never */
};

static int note(void *ctx, uint32_t process, const struct memory_record *r)
{
    static const char *const names[MEMORY_KINDS] = {
        [MEMORY_START] = "start", [MEMORY_NAME] = "name", [MEMORY_STACK] = "stack", [MEMORY_BY] = "by",
        [MEMORY_ALLOC] = "alloc", [MEMORY_FREE] = "free", [MEMORY_CODE] = "code",
    };
    struct told *t = ctx;
    uint64_t what = memory_has_time(r->kind) ? r->v[1] : r->v[0];
    t->n += (size_t)snprintf(t->text + t->n, sizeof t->text - t->n, "%u %s %llu\n", process, names[r->kind],
                             (unsigned long long)what);
    return t->most && --t->most == 0 ? 7 : 0;
}

static struct told read_trace(const char *path, int most)
{
    struct trace *t = NULL;
    struct told told = {.most = most};
    MUST(trace_open(&t, path, NULL) == TARE_OK);
    MUST(trace_has_memory(t) && trace_memory(t, note, &told, NULL) == TARE_OK);
    MUST(trace_loss(t)->damaged_chunks == 0 && trace_loss(t)->unknown_chunks == 0);
    trace_close(t);
    return told;
}

/* Two threads in two slots: what is told comes first, then what happened as it happened. */
static void some_history(struct memory_making *m)
{
    memory_join(m, m->at.trace, 0);
    memory_tell(m, BY, 1);
    memory_alloc(m, 1000, 100, 64, 1);
    memory_free(m, 5000, 100);
    memory_write(m);
    memory_tell(m, BY, 1);
    memory_alloc(m, 7000, 300, 64, 1);
    memory_write(m);
    memory_slot(m, 1);
    memory_tell(m, BY, 2);
    memory_alloc(m, 3000, 200, 64, 1);
    memory_alloc(m, 6000, 100, 64, 1);
    memory_native(m, 0, 0x1234, 0); /* after it was used */
    memory_end(m);
}

static const char history[] =
    "0 start 0\n0 stack 1\n0 by 1\n0 alloc 100\n0 by 2\n0 alloc 200\n0 by 1\n0 free 100\n"
    "0 by 2\n0 alloc 100\n0 by 1\n0 alloc 300\n";

static void threads_are_merged_in_the_order_of_time(void **state)
{
    struct memory_making *m = *state;
    some_history(m);
    assert_string_equal(read_trace(m->at.trace, 0).text, history);
    assert_string_equal(read_trace(m->at.trace, 2).text, "0 start 0\n0 stack 1\n");
    assert_string_equal(read_trace(m->at.trace, 3).text, "0 start 0\n0 stack 1\n0 by 1\n");
}

static void no_memory_is_a_status(void **state)
{
    struct memory_making *m = *state;
    some_history(m);
    struct trace *t = NULL;
    assert_int_equal(trace_open(&t, m->at.trace, NULL), TARE_OK);
    tare_status s = TARE_NOMEM;
    int failed = 0;
    for (long n = 0; s != TARE_OK; n++) {
        struct told told = {0};
        mem_fail_after(n);
        s = trace_memory(t, note, &told, NULL);
        mem_fail_after(-1);
        failed += s == TARE_NOMEM;
    }
    assert_true(failed >= 2);
    trace_close(t);
}

/* Archived and still in the live file: once; what is only in the live file counts as well. */
static void a_killed_process_loses_nothing_that_was_published(void **state)
{
    struct memory_making *m = *state;
    struct made *a = made_new(), *live = made_new();
    struct process_info p = made_info(MADE_UID);
    char path[300];
    struct memory_state s = {{0}};
    p.mode = MODE_MEMORY;
    p.tsc = 0;
    made_header(a);
    made_process(a, &p);
    struct enc *e = made_open(a);
    enc_uints(e, 0, 1);
    struct memory_record r = {.kind = MEMORY_ALLOC, .v = {MADE_RAW_NS + 10, 100, 64, 0}};
    MUST(memory_pack(&s, e, &r));
    made_chunk(a, CHUNK_MEMORY, MADE_UID, a->payload, (size_t)(e->p - a->payload));
    file_put(m->at.trace, a->bytes, a->n);

    struct live_header *h = made_live(live);
    h->process = p;
    for (uint32_t slot = 0; slot < 3; slot++) { /* 0: the same again, one longer; 1: its own; 2: never used */
        struct extent *x = made_extent(live, EXTENT_MEMORY, 200);
        struct enc to = {(uint8_t *)(x + 1), (uint8_t *)(x + 1) + 200, false};
        s = (struct memory_state){{0}};
        enc_uints(&to, slot, 1);
        x->thread = slot;
        x->seq = slot < 2;
        for (uint64_t i = 0; i < 2; i++) {
            r = (struct memory_record){.kind = MEMORY_ALLOC,
                                       .v = {MADE_RAW_NS + 10 + slot + i * 50, 100 + slot + i * 10, 64, 0}};
            MUST(memory_pack(&s, &to, &r));
        }
        x->spare[0] = (uint64_t)(to.p - (uint8_t *)(x + 1));
    }
    snprintf(path, sizeof path, "%s.live-1-0000004d", m->at.trace);
    file_put(path, live->bytes, live->n);
    assert_string_equal(read_trace(m->at.trace, 0).text,
                        "0 alloc 100\n0 alloc 101\n0 alloc 110\n0 alloc 111\n");
    made_free(a);
    made_free(live);
}

/* ---- lines ---- */

static void lines_of_python_functions(void **state)
{
    (void)state;
    /* as CPython makes them: def f(x):\n y = x + 1\n\n return (\n  y * 2) from line 10 */
    static const uint8_t lnotab[] = {0, 1, 8, 3, 4, (uint8_t)-1};
    static const uint8_t ranges[] = {8, 1, 4, 3, 2, 0x80, 2, (uint8_t)-1};
    static const uint8_t locations[] = {
        0x80 | 15 << 3, 0x80 | 11 << 3 | 3, 0, 5, 0x80 | 14 << 3 | 1, 6, 0, 1, 2, 0x80 | 2 << 3,
        0x21,           0x80 | 13 << 3 | 1, 3};
    const struct {
        uint64_t version;
        const uint8_t *table;
        size_t bytes;
        uint64_t offset;
        uint32_t line;
    } rows[] = {
        {0x0309, lnotab, sizeof lnotab, 0, 11},        {0x0309, lnotab, sizeof lnotab, 8, 14},
        {0x0309, lnotab, sizeof lnotab, 40, 13},       {0x030a, ranges, sizeof ranges, 0, 11},
        {0x030a, ranges, sizeof ranges, 10, 14},       {0x030a, ranges, sizeof ranges, 12, 0},
        {0x030a, ranges, sizeof ranges, 14, 13},       {0x030a, ranges, sizeof ranges, 99, 0},
        {0x030b, locations, sizeof locations, 0, 0},   {0x030b, locations, sizeof locations, 2, 11},
        {0x030d, locations, sizeof locations, 8, 11},  {0x030b, locations, sizeof locations, 10, 14},
        {0x030b, locations, sizeof locations, 14, 14}, {0x030b, locations, sizeof locations, 16, 13},
        {0x030b, locations, sizeof locations, 20, 0},  {0x030b, locations, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct memory_record code = {
            .kind = MEMORY_CODE, .text = (const char *)rows[i].table, .text_bytes = rows[i].bytes};
        code.CODE.first_line = 10;
        code.CODE.version = rows[i].version;
        if (memory_line(&code, rows[i].offset) != rows[i].line)
            fail_msg("row %zu: line %u", i, memory_line(&code, rows[i].offset));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(a_number_has_seven_bits_a_byte),
        cmocka_unit_test(an_allocation_and_its_free_take_few_bytes),
        cmocka_unit_test(no_room_changes_nothing),
        cmocka_unit_test(bytes_that_are_no_record),
        cmocka_unit_test_setup_teardown(threads_are_merged_in_the_order_of_time, memory_set_up, memory_tear_down),
        cmocka_unit_test_setup_teardown(no_memory_is_a_status, memory_set_up, memory_tear_down),
        cmocka_unit_test_setup_teardown(a_killed_process_loses_nothing_that_was_published, memory_set_up,
                                        memory_tear_down),
        cmocka_unit_test(lines_of_python_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
