/* SPDX-License-Identifier: MIT
 * test_native.c - native stacks of another process: a child that waits, one that runs, one in a signal handler; merging
 * with frames of Python; names of code made at run time. Real programs are in tests/python/test_attach_native.py. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/mem.h"
#include "sample/native_inner.h"
#include "sample/thread_stack.h"

/* ---- what the child does ---- */

typedef void leaf_fn(void);
static volatile uint64_t work;

static void waits(void)
{
    for (;;) {
        pause();
        work++;
    }
}

static void spins(void)
{
    for (;;) work++;
}

static void handler(int signal)
{
    (void)signal;
    pause();
    work++;
}

static void interrupted(void)
{
    raise(SIGUSR1);
    work++;
}

__attribute__((noinline)) static void inner(leaf_fn *leaf)
{
    leaf();
    work++;
}

__attribute__((noinline)) static void outer(leaf_fn *leaf)
{
    volatile char room[20000]; /* more of the stack than is copied at once */
    room[work % sizeof room] = 1;
    inner(leaf);
    work += room[0] != 0;
}

struct child {
    pid_t pid;
    struct native_tables *tables;
    struct native_space space;
    struct stack_reading reading;
    struct native_hint hint;
};

static void start(struct child *c, leaf_fn *leaf)
{
    *c = (struct child){.pid = fork()};
    if (c->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody */
        signal(SIGUSR1, handler);
        outer(leaf);
        _exit(0);
    }
    assert_true(c->pid > 0);
}

static void end(struct child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    stack_reading_release(&c->reading);
    native_release(&c->space);
    native_tables_free(c->tables);
    assert_int_equal(mem_live_blocks(), 0);
}

static bool read_child(struct child *c, struct thread_look *look)
{
    struct stack_of of = {
        .pid = c->pid, .tid = c->pid, .space = &c->space, .hint = &c->hint, .look = look, .hold = true};
    stack_read(&c->reading, &of);
    return c->reading.has_native;
}

static int place_of(struct child *c, uintptr_t function);

/* Until it is where it stays. False: it may not be read here. */
static bool look(struct child *c, enum stack_doing doing, leaf_fn *leaf)
{
    struct thread_look look;
    struct timespec nap = {0, 10000000};
    uint64_t word;
    c->tables = native_tables_new(NULL);
    native_open(&c->space, peek_process(c->pid), c->tables);
    if (!peek_u64(&c->space.peek, (uint64_t)(uintptr_t)&word, &word)) return false;
    for (unsigned i = 0; i < 500; i++) {
        assert_true(thread_look(&look, c->pid, c->pid));
        if (look.doing == doing) break;
        nanosleep(&nap, NULL);
    }
    for (unsigned i = 0; i < 500; i++) {
        if (read_child(c, &look) && place_of(c, (uintptr_t)leaf) >= 0) return true;
        nanosleep(&nap, NULL);
        assert_true(thread_look(&look, c->pid, c->pid));
    }
    return false;
}

/* How far out the frame of a function is; -1: it is not there. */
static int place_of(struct child *c, uintptr_t function)
{
    for (size_t i = 0; i < c->reading.native.frames.n; i++) {
        const struct eh_row *row = native_row(&c->space, c->reading.native.frames.items[i].where);
        if (row && row->start == function) return (int)i;
    }
    return -1;
}

static void is_whole(struct child *c, leaf_fn *leaf)
{
    int at_leaf = place_of(c, (uintptr_t)leaf), at_inner = place_of(c, (uintptr_t)inner);
    assert_int_equal(c->reading.native.end, NATIVE_WHOLE);
    assert_true(at_leaf >= 0);
    assert_int_equal(at_inner, at_leaf + 1);
    assert_int_equal(place_of(c, (uintptr_t)outer), at_inner + 1);
    for (size_t i = 0; i < c->reading.native.frames.n; i++)
        assert_true(c->reading.native.frames.items[i].module > 0);
    assert_int_equal(c->reading.merged.frames.n, c->reading.native.frames.n);
}

static void a_thread_that_waits_is_walked(void **state)
{
    (void)state;
    struct child c;
    start(&c, waits);
    bool seen = look(&c, STACK_WAITS_SIGNAL, waits);
    if (seen) is_whole(&c, waits);
    end(&c);
    if (!seen) skip();
}

static void a_thread_that_runs_is_held_and_goes_on(void **state)
{
    (void)state;
    struct child c;
    struct thread_look now;
    start(&c, spins);
    bool seen = look(&c, STACK_RUNS, spins);
    if (seen) is_whole(&c, spins);
    if (seen) assert_true(c.reading.held.held > 0);
    for (unsigned i = 0; seen && i < 500 && thread_look(&now, c.pid, c.pid) && now.doing != STACK_RUNS; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    if (seen) assert_int_equal(now.doing, STACK_RUNS);
    end(&c);
    if (!seen) skip();
}

static void a_signal_handler_has_what_it_interrupted(void **state)
{
    (void)state;
    struct child c;
    start(&c, interrupted);
    bool seen = look(&c, STACK_WAITS_SIGNAL, interrupted);
    if (seen) {
        assert_true(place_of(&c, (uintptr_t)handler) >= 0);
        assert_true(place_of(&c, (uintptr_t)interrupted) > place_of(&c, (uintptr_t)handler) + 1);
        assert_int_equal(c.reading.native.end, NATIVE_WHOLE);
    }
    end(&c);
    if (!seen) skip();
}

static void a_process_that_ended_has_no_stack(void **state)
{
    (void)state;
    struct child c;
    start(&c, waits);
    bool seen = look(&c, STACK_WAITS_SIGNAL, waits);
    struct thread_look look = {.doing = STACK_WAITS, .call = -1, .sp = c.reading.shot.regs.v[EH_SP], .pc = 1};
    kill(c.pid, SIGKILL);
    waitpid(c.pid, NULL, 0);
    if (seen) assert_false(read_child(&c, &look));
    look = (struct thread_look){.doing = STACK_RUNS, .call = -1};
    assert_false(read_child(&c, &look));
    assert_int_not_equal(native_look(&c.space, NULL), TARE_OK);
    end(&c);
    if (!seen) skip();
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct child c;
    struct thread_look l;
    start(&c, waits);
    bool seen = look(&c, STACK_WAITS_SIGNAL, waits);
    for (long n = 0; seen && n < 60; n++) {
        struct stack_reading r = {.has_native = false};
        struct native_space space;
        struct native_hint hint = {0};
        native_open(&space, peek_process(c.pid), c.tables);
        assert_true(thread_look(&l, c.pid, c.pid));
        struct stack_of of = {.pid = c.pid, .tid = c.pid, .space = &space, .hint = &hint, .look = &l};
        mem_fail_after(n);
        stack_read(&r, &of);
        mem_fail_after(-1);
        if (r.has_native) assert_true(r.native.frames.n <= c.reading.native.frames.n);
        stack_reading_release(&r);
        native_release(&space);
    }
    end(&c);
    if (!seen) skip();
}

/* ---- merging ---- */

/* native: 'n' a frame, 'e' one that runs Python; python: 'p' a frame, 'c' one that C called; innermost first. */
static void merges(const char *native, enum native_end end, const char *python, const char *expected)
{
    struct native_stack n = {.frames = VEC_INIT, .end = end};
    struct py_stack p = {.frames = VEC_INIT};
    struct merged m = {.frames = VEC_INIT};
    char got[40] = "";
    for (; *native; native++) vec_push(&n.frames, ((struct native_frame){.eval = *native == 'e'}), NULL);
    for (; *python; python++) vec_push(&p.frames, ((struct py_frame){.entry = *python == 'c'}), NULL);
    assert_int_equal(native_merge(&n, &p, &m), TARE_OK);
    for (size_t i = 0; i < m.frames.n; i++) {
        struct merged_frame f = m.frames.items[i];
        got[i] = f.python ? (char)('0' + f.at) : 'n';
        if (!f.python && n.frames.items[f.at].eval) got[i] = 'e';
    }
    assert_string_equal(got, expected);
    vec_release(&n.frames);
    vec_release(&p.frames);
    vec_release(&m.frames);
}

static void python_stands_where_it_is_run(void **state)
{
    (void)state;
    merges("nnenen", NATIVE_WHOLE, "pcppc", "nn01n234n");
    merges("nn", NATIVE_WHOLE, "", "nn");
    merges("nenen", NATIVE_WHOLE, "pc", "nen01n");     /* it is about to call a function */
    merges("nen", NATIVE_WHOLE, "cpc", "n012n");       /* where the inner one runs was not seen */
    merges("nenn", NATIVE_NO_TABLES, "pcc", "n01nn2"); /* .. and where the outer one does */
    merges("nen", NATIVE_NO_TABLES, "", "nen");        /* it just began */
    merges("n", NATIVE_WHOLE, "p", "n0");
}

/* ---- code made at run time ---- */

static void names_of_made_code(void **state)
{
    (void)state;
    struct perf_map m = {.asked_ns = UINT64_MAX};
    char text[] =
        "2000 10 py::later:/x.py\n1000 20 py::first\nbad line\nffffffffffffffff 10 over\n3000 0 none\n";
    perf_map_parse(&m, text);
    assert_int_equal(m.items.n, 2);
    m.asked_ns = clock_raw_ns();
    assert_string_equal(perf_map_find(&m, getpid(), 0x101f), "py::first");
    assert_string_equal(perf_map_find(&m, getpid(), 0x2000), "py::later:/x.py");
    assert_null(perf_map_find(&m, getpid(), 0x1020));
    assert_null(perf_map_find(&m, getpid(), 0xfff));
    perf_map_release(&m);
    assert_int_equal(mem_live_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_waits_is_walked),
        cmocka_unit_test(a_thread_that_runs_is_held_and_goes_on),
        cmocka_unit_test(a_signal_handler_has_what_it_interrupted),
        cmocka_unit_test(a_process_that_ended_has_no_stack),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(python_stands_where_it_is_run),
        cmocka_unit_test(names_of_made_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
