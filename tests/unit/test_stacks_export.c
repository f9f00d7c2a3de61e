/* SPDX-License-Identifier: MIT
 * test_stacks_export.c - made-up stacks in the formats of other tools: a recursion, a name with bytes that mean
 * something elsewhere, a thread without Python. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/wire.h"
#include "memory_fixture.h"
#include "report/stacks/stacks_export.h"
#include "trace/reader.h"

#define MS UINT64_C(1000000)

static void look(struct memory_making *m, uint64_t stack, uint64_t ms)
{
    static uint64_t at;
    at += ms * MS;
    memory_tell(m, SAMPLE, memory_time(m, at), 1, stack, ms * MS, 0, 0, STACK_RUNS);
}

/* main calls f, which calls itself and odd;name: 4 ms and 6 ms in f, 2 ms in the odd one, 1 ms without Python. */
static void make(struct memory_making *m)
{
    memory_join_as(m, m->at.trace, MODE_STACKS);
    memory_text(m, (struct memory_record){.kind = MEMORY_THREAD, .v = {1, 101}}, "python");
    uint64_t outer = memory_python(m, 0, "a.py", "main", 1), f = memory_python(m, outer, "a.py", "f", 2),
             again = memory_python(m, f, "a.py", "f", 2),
             odd = memory_python(m, again, "b.py", "odd;name", 3);
    look(m, f, 4);
    look(m, again, 6);
    look(m, odd, 2);
    look(m, 0, 1);
    memory_end(m);
}

static struct buf written(struct memory_making *m, stacks_write_fn *write)
{
    struct stacks_profile p;
    struct trace *t = NULL;
    struct stream s;
    struct buf out = BUF_INIT;
    make(m);
    MUST(trace_open(&t, m->at.trace, NULL) == TARE_OK);
    MUST(stacks_sum(t, &(struct stacks_wish){.time = STACKS_WALL}, &p, NULL) == TARE_OK);
    stream_init(&s, sink_to_buf(&out), NULL);
    write(&s, &(struct stacks_export){.profile = &p, .name = "made \"up\"", .time = STACKS_WALL});
    MUST(stream_finish(&s) == TARE_OK);
    stacks_profile_release(&p);
    trace_close(t);
    return out;
}

static void has(const struct buf *b, const char *text)
{
    if (!memmem(b->data, b->len, text, strlen(text))) fail_msg("no '%s' in: %s", text, b->data);
}

static void folded(void **state)
{
    struct buf b = written(*state, stacks_write_folded);
    has(&b, "main (a.py:1);f (a.py:2) 4000000\n");
    has(&b, "main (a.py:1);f (a.py:2);f (a.py:2) 6000000\n");
    has(&b, ";odd\\x3bname (b.py:3) 2000000\n");
    has(&b, "(no Python) 1000000\n");
    buf_release(&b);
}

static void speedscope(void **state)
{
    struct buf b = written(*state, stacks_write_speedscope);
    has(&b, "\"name\":\"made \\\"up\\\"\"");
    has(&b, "\"wall time, sampled\"");
    has(&b, "{\"name\":\"odd;name\",\"file\":\"b.py\",\"line\":3}");
    has(&b, "\"endValue\":13000000}");
    buf_release(&b);
}

/* A function that calls itself has its time once, and so has what it is called by. */
static void prof(void **state)
{
    static const char f_by_f[] = ")\x03u\x04\0\0\0a.pyi\x02\0\0\0u\x01\0\0\0f)\x04i\x02\0\0\0i\x02\0\0\0g";
    struct buf b = written(*state, stacks_write_prof);
    assert_true(b.len > 2 && b.data[0] == '{' && b.data[b.len - 1] == '0' && b.data[b.len - 2] == '0');
    has(&b, "<sampled by tare: times are estimates, calls are samples>");
    const char *at = memmem(b.data, b.len, f_by_f, sizeof f_by_f - 1);
    assert_non_null(at); /* two looks with f called by f, once each */
    double own, total;
    memcpy(&own, at + sizeof f_by_f - 1, 8);
    memcpy(&total, at + sizeof f_by_f + 8, 8);
    assert_true(own == 0.006 && total == 0.008);
    buf_release(&b);
}

static void pprof(void **state)
{
    struct buf b = written(*state, stacks_write_pprof);
    struct wire w = {(const uint8_t *)b.data, (const uint8_t *)b.data + b.len};
    struct wire_field f;
    unsigned of[16] = {0};
    const char *why = "";
    int got;
    while ((got = wire_next(&w, &f, &why)) > 0)
        if (f.number < 16) of[f.number]++;
    assert_int_equal(got, 0);
    assert_int_equal(of[1], 2); /* samples, time */
    assert_int_equal(of[2], 4); /* paths */
    assert_int_equal(of[5], 4); /* functions */
    buf_release(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_set_up, memory_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(folded), TEST(speedscope), TEST(prof), TEST(pprof)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
