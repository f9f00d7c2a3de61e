/* SPDX-License-Identifier: MIT
 * test_tensor.c - arrays in memory, numbers of every type, files told apart by content, the ONNX form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "../npz_write.h"
#include "model/onnx/weight.h"
#include "subject/tensor.h"
#include "subject_fixture.h"

static struct tensor make(const char *name, int type, const int64_t *dims, size_t rank)
{
    struct tensor t;
    tare_error err = TARE_ERROR_INIT;
    if (tensor_make(&t, &(struct tensor_spec){name, type, dims, rank}, &err) < 0) fail_msg("%s", err.text);
    return t;
}

static void made_aligned_zeroed_and_released(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 70; n++) {
        int64_t dims[] = {n, 3};
        struct tensor t = make("x", ONNX_INT16, dims, 2);
        assert_int_equal((uintptr_t)t.data % 64, 0);
        assert_int_equal(t.bytes, n * 6);
        assert_int_equal(tensor_elements(&t), n * 3);
        for (size_t i = 0; i < t.bytes; i++) assert_int_equal(((char *)t.data)[i], 0);
        tensor_release(&t);
        tensor_release(&t);
    }
    struct tensor scalar = make("", ONNX_DOUBLE, NULL, 0);
    assert_int_equal(scalar.bytes, 8);
    tensor_release(&scalar);
    int64_t three[] = {3};
    struct tensor packed = make("q", ONNX_INT4, three, 1);
    assert_int_equal(packed.bytes, 2);
    tensor_release(&packed);
    assert_int_equal(mem_live_blocks(), 0);
}

static void impossible_arrays_are_refused(void **state)
{
    (void)state;
    struct tensor t;
    tare_error err = TARE_ERROR_INIT;
    int64_t negative[] = {-1}, huge[] = {INT64_MAX, INT64_MAX}, many[20] = {0};
    assert_int_equal(tensor_make(&t, &(struct tensor_spec){"x", ONNX_FLOAT, negative, 1}, &err),
                     TARE_INVALID);
    assert_int_equal(tensor_make(&t, &(struct tensor_spec){"x", ONNX_FLOAT, huge, 2}, &err), TARE_INVALID);
    assert_int_equal(tensor_make(&t, &(struct tensor_spec){"x", ONNX_FLOAT, many, 20}, &err), TARE_INVALID);
    assert_int_equal(tensor_make(&t, &(struct tensor_spec){"x", ONNX_STRING, NULL, 0}, &err),
                     TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "text"));
    assert_int_equal(tensor_make(&t, &(struct tensor_spec){"x", 1234, NULL, 0}, &err), TARE_INVALID);
}

static float from_half(uint16_t h)
{
    return (float)tensor_value(&(struct tensor){.type = ONNX_FLOAT16, .data = &h, .bytes = sizeof h}, 0);
}

/* Every half: to float and back is the same; and the float lies where the bits say. */
static void halves_go_both_ways(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = from_half((uint16_t)h);
        if (isnan(f)) {
            assert_true((h & 0x7c00) == 0x7c00 && (h & 0x3ff));
            assert_true(isnan(from_half(weight_to_half(f))));
            continue;
        }
        assert_int_equal(weight_to_half(f), h);
    }
    assert_true(from_half(0x3c00) == 1 && from_half(0xc000) == -2 && from_half(1) == 0x1p-24f);
    assert_int_equal(weight_to_half(65519.996f), 0x7bff);
    assert_int_equal(weight_to_half(65520), 0x7c00);
    assert_int_equal(weight_to_half(1 + 0x1p-11f), 0x3c00); /* a tie goes to even */
    assert_int_equal(weight_to_half(1 + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(weight_to_half(0x1p-25f), 0);
    assert_int_equal(weight_to_half(0x1.8p-25f), 1);
    assert_int_equal(tensor_to_bfloat(1), 0x3f80);
    assert_int_equal(tensor_to_bfloat(1 + 0x1p-8f), 0x3f80);
    assert_int_equal(tensor_to_bfloat(1 + 3 * 0x1p-8f), 0x3f82);
    assert_true((tensor_to_bfloat(NAN) & 0x7fff) > 0x7f80);
}

static void values_of_every_type(void **state)
{
    (void)state;
    static const struct {
        int type;
        uint8_t bytes[16];
        uint64_t at;
        double want;
    } rows[] = {
        {ONNX_FLOAT, {0, 0, 0xc0, 0x3f}, 0, 1.5},
        {ONNX_DOUBLE, {0, 0, 0, 0, 0, 0, 0, 0xc0}, 0, -2},
        {ONNX_INT8, {0, 0xff}, 1, -1},
        {ONNX_UINT8, {0, 0xff}, 1, 255},
        {ONNX_INT16, {0xfe, 0xff}, 0, -2},
        {ONNX_UINT16, {0xfe, 0xff}, 0, 65534},
        {ONNX_INT32, {0xfd, 0xff, 0xff, 0xff}, 0, -3},
        {ONNX_UINT32, {0xff, 0xff, 0xff, 0xff}, 0, 4294967295.0},
        {ONNX_INT64, {0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0, -4},
        {ONNX_UINT64, {0, 0, 0, 0, 0, 0, 0, 0x80}, 0, 9223372036854775808.0},
        {ONNX_BOOL, {0, 1}, 1, 1},
        {ONNX_BFLOAT16, {0x80, 0xbf}, 0, -1},
        {ONNX_COMPLEX64, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f}, 1, 1},
        {ONNX_UINT4, {0x21}, 1, 2},
        {ONNX_INT4, {0xf1}, 1, -1},
        {ONNX_UINT2, {0xe4}, 3, 3},
        {ONNX_INT2, {0xe4}, 3, -1},
        {ONNX_FLOAT4E2M1, {0xf2}, 1, -6},
        {ONNX_FLOAT8E4M3FN, {0x38}, 0, 1},
        {ONNX_FLOAT8E4M3FN, {0x7e}, 0, 448},
        {ONNX_FLOAT8E4M3FN, {0x01}, 0, 0x1p-9},
        {ONNX_FLOAT8E4M3FNUZ, {0x40}, 0, 1},
        {ONNX_FLOAT8E5M2, {0x3c}, 0, 1},
        {ONNX_FLOAT8E5M2, {0x7b}, 0, 57344},
        {ONNX_FLOAT8E5M2FNUZ, {0x40}, 0, 1},
        {ONNX_FLOAT8E8M0, {0x80}, 0, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t dims[] = {4};
        struct tensor t = make("x", rows[i].type, dims, 1);
        memcpy(t.data, rows[i].bytes, t.bytes < 16 ? t.bytes : 16);
        double got = tensor_value(&t, rows[i].at);
        if (got != rows[i].want)
            fail_msg("row %zu (%s): %g, not %g", i, onnx_type_name(rows[i].type), got, rows[i].want);
        tensor_release(&t);
    }
    int64_t one[] = {1};
    struct tensor nan8 = make("x", ONNX_FLOAT8E4M3FNUZ, one, 1);
    *(uint8_t *)nan8.data = 0x80;
    assert_true(isnan(tensor_value(&nan8, 0)));
    tensor_release(&nan8);
}

/* ---- the ONNX form ---- */

/* What a type cannot hold becomes its nearest, not what is left of its bits. */
static void values_beyond_a_type(void **state)
{
    (void)state;
    static const struct {
        int type;
        double set, want;
    } rows[] = {{ONNX_UINT8, 300, 255},
                {ONNX_UINT8, -1, 0},
                {ONNX_INT8, 200, 127},
                {ONNX_INT8, -200, -128},
                {ONNX_UINT16, 70000, 65535},
                {ONNX_INT16, -40000, -32768},
                {ONNX_UINT32, -1, 0},
                {ONNX_UINT32, 5e9, 4294967295.0},
                {ONNX_INT32, 3e9, 2147483647},
                {ONNX_UINT64, -5, 0},
                {ONNX_UINT8, 7, 7},
                {ONNX_UINT8, (double)NAN, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t dims[] = {1};
        struct tensor t = make("x", rows[i].type, dims, 1);
        assert_true(tensor_set_value(&t, 0, rows[i].set));
        assert_true(tensor_value(&t, 0) == rows[i].want);
        tensor_release(&t);
    }
}

static void pb_typed_and_raw(void **state)
{
    (void)state;
    struct tensor t;
    tare_error err = TARE_ERROR_INIT;
    /* dims 2, int64, int64_data {5, -1} packed, name "a" */
    const uint8_t typed[] = {8,   2,   16,  7,   58,  11,  5, 255, 255, 255,
                             255, 255, 255, 255, 255, 255, 1, 66,  1,   'a'};
    assert_int_equal(tensor_read_pb(&t, "f.pb", typed, sizeof typed, &err), TARE_OK);
    assert_string_equal(t.name, "a");
    assert_int_equal(t.type, ONNX_INT64);
    assert_true(t.rank == 1 && t.dims[0] == 2 && tensor_value(&t, 0) == 5 && tensor_value(&t, 1) == -1);
    tensor_release(&t);
    const uint8_t raw[] = {8, 1, 8, 2, 16, 5, 74, 4, 1, 0, 0xff, 0xff}; /* [1, 2] int16 */
    assert_int_equal(tensor_read_pb(&t, "f.pb", raw, sizeof raw, &err), TARE_OK);
    assert_true(t.rank == 2 && t.dims[1] == 2 && tensor_value(&t, 1) == -1 && t.name[0] == 0);
    tensor_release(&t);
    for (size_t n = 0; n < sizeof typed; n++) { /* every truncation is an error or another whole tensor */
        if (tensor_read_pb(&t, "f.pb", typed, n, &err) == TARE_OK) {
            assert_true(n == 17);
            tensor_release(&t);
        } else {
            assert_non_null(strstr(err.text, "f.pb"));
        }
    }
    const uint8_t text[] = {8, 1, 16, 8, 50, 2, 'h', 'i'};
    assert_int_equal(tensor_read_pb(&t, "f.pb", text, sizeof text, &err), TARE_UNSUPPORTED);
    const uint8_t more[] = {8, 1, 16, 7, 58, 2, 5, 6};
    assert_int_equal(tensor_read_pb(&t, "f.pb", more, sizeof more, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "more numbers"));
}

/* ---- files ---- */

static void saved_and_loaded(void **state)
{
    (void)state;
    struct tensor_set set = TENSOR_SET_INIT, back = TENSOR_SET_INIT;
    tare_error err = TARE_ERROR_INIT;
    static const int types[] = {ONNX_FLOAT, ONNX_INT64, ONNX_BOOL, ONNX_FLOAT16, ONNX_UINT8, ONNX_COMPLEX128};
    for (size_t i = 0; i < 6; i++) {
        int64_t dims[] = {(int64_t)i, 3};
        char name[8];
        snprintf(name, sizeof name, "t%zu", i);
        struct tensor t = make(name, types[i], dims, 2);
        for (size_t k = 0; k < t.bytes; k++) ((uint8_t *)t.data)[k] = (uint8_t)(k % 2);
        assert_int_equal(tensor_set_take(&set, &t, &err), TARE_OK);
    }
    const char *path = in_scratch("all.npz");
    if (tensor_save_npz(&set, path, &err) < 0 || tensor_load(&back, path, TENSOR_INPUTS, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(back.items.n, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct tensor *a = &set.items.items[i], *b = tensor_find(&back, a->name);
        assert_non_null(b);
        assert_true(b->type == a->type && b->rank == 2 && b->bytes == a->bytes);
        assert_memory_equal(a->data, b->data, a->bytes);
    }
    tensor_set_release(&back);
    tensor_set_release(&set);
    assert_int_equal(mem_live_blocks(), 0);
}

static void folders_of_files(void **state)
{
    (void)state;
    struct tensor_set set = TENSOR_SET_INIT;
    tare_error err = TARE_ERROR_INIT;
    const uint8_t one[] = {8, 1, 16, 2, 74, 1, 1}, two[] = {8, 1, 16, 2, 74, 1, 2},
                  ten[] = {8, 1, 16, 2, 74, 1, 10};
    scratch_file("set/input_1.pb", two, sizeof two);
    scratch_file("set/input_0.pb", one, sizeof one);
    scratch_file("set/input_10.pb", ten, sizeof ten);
    scratch_file("set/output_0.pb", ten, sizeof ten);
    scratch_text("set/notes.txt", "not read");
    if (tensor_load(&set, in_scratch("set"), TENSOR_INPUTS, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(set.items.n, 3);
    assert_true(tensor_value(&set.items.items[0], 0) == 1 && tensor_value(&set.items.items[1], 0) == 2 &&
                tensor_value(&set.items.items[2], 0) == 10);
    tensor_set_release(&set);
    if (tensor_load(&set, in_scratch("set"), TENSOR_OUTPUTS, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(set.items.n, 1);
    assert_true(tensor_value(&set.items.items[0], 0) == 10);
    tensor_set_release(&set);

    mkdir(in_scratch("none"), 0777);
    assert_int_equal(tensor_load(&set, in_scratch("none"), TENSOR_INPUTS, &err), TARE_INVALID);
    assert_int_equal(tensor_load(&set, in_scratch("missing"), TENSOR_INPUTS, &err), TARE_IO);
    assert_non_null(strstr(err.text, "missing"));
    scratch_text("bad/input_0.pb", "hello, this is no tensor");
    assert_int_equal(tensor_load(&set, in_scratch("bad"), TENSOR_INPUTS, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "input_0.pb"));
    assert_int_equal(mem_live_blocks(), 0);
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    const uint8_t one[] = {8, 1, 16, 2, 74, 1, 1};
    scratch_file("oom/input_0.pb", one, sizeof one);
    scratch_file("oom/input_1.pb", one, sizeof one);
    for (long n = 0;; n++) {
        struct tensor_set set = TENSOR_SET_INIT;
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        tare_status s = tensor_load(&set, in_scratch("oom"), TENSOR_INPUTS, &err);
        mem_fail_after(-1);
        tensor_set_release(&set);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_aligned_zeroed_and_released),
        cmocka_unit_test(impossible_arrays_are_refused),
        cmocka_unit_test(halves_go_both_ways),
        cmocka_unit_test(values_of_every_type),
        cmocka_unit_test(values_beyond_a_type),
        cmocka_unit_test(pb_typed_and_raw),
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(folders_of_files),
        cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
