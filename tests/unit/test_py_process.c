/* SPDX-License-Identifier: MIT
 * test_py_process.c - a CPython interpreter read from outside, from an image of one made by hand. Real ones are in
 * tests/python/test_attach.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "py_image.h"

struct reading {
    struct py_image image;
    struct py_process process;
    struct py_threads threads;
    struct py_stack stack;
};

static int set_up(void **state)
{
    struct reading *r = mem_new(1, sizeof *r);
    image_make(&r->image);
    r->process = image_process(&r->image, 0x030c);
    *state = r;
    return r ? 0 : -1;
}

static int tear_down(void **state)
{
    struct reading *r = *state;
    vec_release(&r->threads.items);
    vec_release(&r->stack.frames);
    py_release(&r->process);
    mem_free(r);
    return mem_live_blocks() == 0 ? 0 : -1;
}

static void look(struct reading *r)
{
    assert_int_equal(py_threads_read(&r->process, &r->threads, NULL), TARE_OK);
    assert_int_equal(r->threads.items.n, 1);
    assert_true(py_stack_read(&r->process, &r->threads.items.items[0], &r->stack));
}

static void frames_have_names_and_lines(void **state)
{
    struct reading *r = *state;
    for (unsigned again = 0; again < 2; again++) { /* the second look knows where to look */
        look(r);
        assert_int_equal(r->stack.doubt, 0);
        assert_int_equal(r->stack.frames.n, 2);
        assert_string_equal(r->stack.frames.items[0].code->name, "Inner.most");
        assert_string_equal(r->stack.frames.items[1].code->file, "image.py");
        assert_int_equal(py_line(&r->process, &r->stack.frames.items[0]), 20);
        assert_int_equal(py_line(&r->process, &r->stack.frames.items[1]), 10);
    }
    assert_int_equal(r->threads.items.items[0].tid, getpid());
}

static void the_holder_of_the_lock_is_known_or_unknown(void **state)
{
    struct reading *r = *state;
    look(r);
    assert_true(r->threads.gil_known && r->threads.items.items[0].holds_gil);
    image_u64(&r->image, IMAGE_LOCK + 16, 0);
    py_gil_read(&r->process, &r->threads);
    assert_false(r->threads.items.items[0].holds_gil);
    image_u64(&r->image, IMAGE_LOCK + 16, 7); /* no lock has this value: these are other bytes */
    py_gil_read(&r->process, &r->threads);
    assert_false(r->threads.gil_known);
}

struct seen {
    char text[64];
};

static void take(void *ctx, const char *name, const char *value)
{
    struct seen *s = ctx;
    snprintf(s->text, sizeof s->text, "%s = %s", name, value);
}

static void locals_are_shown(void **state)
{
    struct reading *r = *state;
    struct seen seen = {""};
    look(r);
    py_locals(&r->process, &r->stack.frames.items[0], take, &seen);
    assert_string_equal(seen.text, "number = 42");
}

static void what_is_no_frame_is_doubted(void **state)
{
    struct reading *r = *state;
    image_u64(&r->image, IMAGE_FRAME_1, IMAGE_INT); /* its code is an int */
    look(r);
    assert_true(r->stack.doubt & PY_BROKEN);
    assert_int_equal(r->stack.frames.n, 1);
    image_u64(&r->image, IMAGE_FRAME_1, IMAGE_CODE_1);
    image_u64(&r->image, IMAGE_FRAME_1 + 56, IMAGE_CODE_1 + 192 + 4096); /* an instruction beyond its end */
    look(r);
    assert_true(r->stack.doubt & PY_OUTSIDE);
}

static void a_circle_of_frames_ends(void **state)
{
    struct reading *r = *state;
    image_u64(&r->image, IMAGE_FRAME_1 + 8, IMAGE_FRAME_2);
    look(r);
    assert_true(r->stack.doubt & PY_CUT);
    assert_int_equal(r->stack.frames.n, PY_DEPTH_MOST);
}

static void an_address_that_became_another_function_is_seen(void **state)
{
    struct reading *r = *state;
    look(r);
    image_code(&r->image, IMAGE_CODE_2, "another", 33);
    r->process.generation++;
    look(r);
    assert_string_equal(r->stack.frames.items[0].code->name, "another");
}

static void a_thread_of_another_interpreter_ends_the_list(void **state)
{
    struct reading *r = *state;
    image_u64(&r->image, IMAGE_THREAD + 16, 0x99);
    assert_int_equal(py_threads_read(&r->process, &r->threads, NULL), TARE_OK);
    assert_int_equal(r->threads.items.n, 0);
}

/* ---- what 3.13 tells of itself ---- */

static void told(uint64_t at, uint64_t value, tare_status expected)
{
    static const uint64_t of_3_13[] = {
        0x7970677562656478, 0x30d00f0, 0, 283320, 608, 632, 194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648,
        16, 7752, 0, 7768, 7760, 304, 0, 8, 16, 72, 152, 160, 232, 32, 80, 8, 0, 56, 72, 70, 208, 112, 120,
        128, 136, 68, 52, 96, 104, 200, 16, 8, 416, 24, 88, 168, 32, 24, 16, 40, 24, 16, 48, 32, 40, 24, 16,
        32, 16, 24, 40, 16, 32, 64, 32, 16, 40, 240, 200};
    uint8_t bytes[PY_OFFSETS_BYTES] = {0};
    struct py_layout l = {0};
    memcpy(bytes, of_3_13, sizeof of_3_13);
    memcpy(bytes + at * 8, &value, sizeof value);
    assert_int_equal(py_layout_told(&l, bytes, NULL), expected);
    if (expected != TARE_OK) return;
    assert_int_equal(l.thread_frame, 72);
    assert_int_equal(l.gil_holder, 8);
    assert_int_equal(l.interp_gc, 7600);
    assert_int_equal(l.code_bytecode, 200);
}

static void offsets_are_checked_before_they_are_used(void **state)
{
    (void)state;
    told(2, 0, TARE_OK);
    told(0, 1, TARE_UNSUPPORTED);         /* another cookie */
    told(1, 0x30e00f0, TARE_UNSUPPORTED); /* 3.14 */
    told(2, 1, TARE_UNSUPPORTED);         /* free-threaded */
    told(23, 4000, TARE_UNSUPPORTED);     /* a frame outside of its thread */
    told(28, 1 << 20, TARE_UNSUPPORTED);  /* frames of a megabyte */
    told(45, 16, TARE_UNSUPPORTED);       /* objects of another shape */
}

/* ---- symbols ---- */

static void symbols_of_this_program_are_found_in_its_memory(void **state)
{
    (void)state;
    struct peek self = peek_process(getpid());
    struct mappings m = {VEC_INIT};
    struct elf_loaded e;
    uint64_t at = 0, none;
    bool found = false;
    assert_int_equal(mappings_read(&m, getpid(), NULL), TARE_OK);
    for (size_t i = 0; i < m.items.n && !found; i++)
        found = !m.items.items[i].offset && strstr(m.items.items[i].path, "libc.so") &&
                elf_open(&e, &self, m.items.items[i].start) && elf_find(&e, "getppid", &at);
    mappings_release(&m);
    if (!found) skip(); /* memory may not be read here, or there is another libc */
    assert_true((pid_t(*)(void))(uintptr_t)at != NULL);
    assert_int_equal(((pid_t(*)(void))(uintptr_t)at)(), getppid());
    assert_false(elf_find(&e, "no_such_symbol_anywhere", &none));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(frames_have_names_and_lines),
        T(the_holder_of_the_lock_is_known_or_unknown),
        T(locals_are_shown),
        T(what_is_no_frame_is_doubted),
        T(a_circle_of_frames_ends),
        T(an_address_that_became_another_function_is_seen),
        T(a_thread_of_another_interpreter_ends_the_list),
        cmocka_unit_test(offsets_are_checked_before_they_are_used),
        cmocka_unit_test(symbols_of_this_program_are_found_in_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
