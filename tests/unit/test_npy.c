/* SPDX-License-Identifier: MIT
 * test_npy.c - .npy and .npz: orders of bytes and of axes, refusals by name, damage of every kind. The corpus of the
 * fuzzer, written by NumPy itself, serves as examples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/mem.h"
#include "subject/tensor.h"
#include "subject_fixture.h"

static const char *corpus(const char *name)
{
    static char path[PATH_MAX];
    const char *src = getenv("TARE_SRC");
    snprintf(path, sizeof path, "%s/fuzz/corpus/%s", src ? src : ".", name);
    return path;
}

static tare_status read_npy(const char *name, struct tensor *out, tare_error *err)
{
    struct file_view view;
    if (file_map(corpus(name), &view, err) < 0) fail_msg("%s", err->text);
    tare_status s = tensor_read_npy(out, name, view.data, view.size, err);
    file_unmap(&view);
    return s;
}

/* All of these hold 0 .. 11 in three rows of four. */
static void numpy_wrote_these(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int type;
    } rows[] = {{"npy/f4", ONNX_FLOAT},     {"npy/big-endian", ONNX_INT32},      {"npy/fortran", ONNX_DOUBLE},
                {"npy/half", ONNX_FLOAT16}, {"npy/complex", ONNX_COMPLEX64},     {"npy/v2", ONNX_UINT8},
                {"npy/v3", ONNX_UINT16},    {"npy/big-complex", ONNX_COMPLEX128}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor t;
        tare_error err = TARE_ERROR_INIT;
        if (read_npy(rows[i].name, &t, &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(t.type, rows[i].type);
        assert_true(t.rank == 2 && t.dims[0] == 3 && t.dims[1] == 4);
        for (uint64_t k = 0; k < 12; k++) {
            if (tensor_value(&t, k) != (double)k)
                fail_msg("%s: element %d is %g", rows[i].name, (int)k, tensor_value(&t, k));
        }
        tensor_release(&t);
    }
}

static void odd_shapes(void **state)
{
    (void)state;
    struct tensor t;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(read_npy("npy/scalar", &t, &err), TARE_OK);
    assert_true(t.rank == 0 && tensor_value(&t, 0) == 3.5);
    tensor_release(&t);
    assert_int_equal(read_npy("npy/empty", &t, &err), TARE_OK);
    assert_true(t.rank == 2 && t.dims[0] == 0 && t.bytes == 0);
    tensor_release(&t);
    assert_int_equal(read_npy("npy/python2", &t, &err), TARE_OK);
    assert_true(t.rank == 2 && t.type == ONNX_INT16);
    tensor_release(&t);
    assert_int_equal(read_npy("npy/rank16", &t, &err), TARE_OK);
    tensor_release(&t);
}

static void refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tare_status status;
        const char *says;
    } rows[] = {
        {"npy/text", TARE_UNSUPPORTED, "text"},
        {"npy/bytes", TARE_UNSUPPORTED, "text"},
        {"npy/objects", TARE_UNSUPPORTED, "Python objects"},
        {"npy/records", TARE_UNSUPPORTED, "records"},
        {"npy/dates", TARE_UNSUPPORTED, "dates"},
        {"npy/rank17", TARE_FORMAT, "16 dimensions"},
        {"npy/huge", TARE_FORMAT, "beyond any array"},
        {"npy/zero-times-huge", TARE_FORMAT, "do not make"},
        {"npy/overflow", TARE_FORMAT, "beyond any array"},
        {"npy/negative", TARE_FORMAT, "no list of sizes"},
        {"npy/twice", TARE_FORMAT, "twice"},
        {"npy/no-shape", TARE_FORMAT, "lacks"},
        {"npy/truncated", TARE_FORMAT, "45 bytes of data do not make float32 [3, 4]"},
        {"npy/trailing", TARE_FORMAT, "49 bytes"},
        {"npy/magic-only", TARE_FORMAT, "no .npy"},
        {"npy/long-header", TARE_FORMAT, "a .npy header of 1048576 bytes"},
        {"npy/version-9", TARE_FORMAT, "version 9.0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor t;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(read_npy(rows[i].name, &t, &err), rows[i].status);
        if (!strstr(err.text, rows[i].says) || !strstr(err.text, rows[i].name)) fail_msg("%s", err.text);
    }
    assert_int_equal(mem_live_blocks(), 0);
}

static void archives(void **state)
{
    (void)state;
    static const char *const good[] = {"npz/stored", "npz/deflated",    "npz/folder-comment",
                                       "npz/zip64",  "npz/zip64-local", "npz/empty-archive"};
    static const size_t members[] = {2, 2, 1, 1, 1, 0};
    for (size_t i = 0; i < 6; i++) {
        struct tensor_set set = TENSOR_SET_INIT;
        tare_error err = TARE_ERROR_INIT;
        if (tensor_load(&set, corpus(good[i]), TENSOR_INPUTS, &err) < 0)
            fail_msg("%s: %s", good[i], err.text);
        assert_int_equal(set.items.n, members[i]);
        if (members[i]) assert_true(tensor_value(&set.items.items[0], 7) == 7);
        tensor_set_release(&set);
    }
}

static void damaged_archives(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } rows[] = {
        {"npz/bad-crc", "member 'a': its checksum"},
        {"npz/bomb-size", "more than deflate can give"},
        {"npz/bomb-header", "its header makes an array of 256 bytes, the archive 4194432"},
        {"npz/bomb-many", "its compressed arrays make more than 1024 MiB"},
        {"npz/wild-offset", "not where the directory says"},
        {"npz/encrypted", "encrypted"},
        {"npz/bzip2", "compression method 12"},
        {"npz/twice", "two members"},
        {"npz/no-npy", "'x.txt' is no .npy"},
        {"npz/many-members", "ends early"},
        {"npz/wild-directory", "outside the file"},
        {"npz/truncated", "cut short"},
        {"npz/short", "shorter than any archive"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor_set set = TENSOR_SET_INIT;
        tare_error err = TARE_ERROR_INIT;
        assert_true(tensor_load(&set, corpus(rows[i].name), TENSOR_INPUTS, &err) < 0);
        if (!strstr(err.text, rows[i].says) || !strstr(err.text, rows[i].name)) fail_msg("%s", err.text);
        assert_int_equal(set.items.n, 0);
    }
    assert_int_equal(mem_live_blocks(), 0);
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    static const char *const files[] = {"npy/fortran", "npz/deflated"};
    for (size_t f = 0; f < 2; f++) {
        for (long n = 0;; n++) {
            struct tensor_set set = TENSOR_SET_INIT;
            tare_error err = TARE_ERROR_INIT;
            mem_fail_after(n);
            tare_status s = tensor_load(&set, corpus(files[f]), TENSOR_INPUTS, &err);
            mem_fail_after(-1);
            tensor_set_release(&set);
            assert_int_equal(mem_live_blocks(), 0);
            if (s == TARE_OK) break;
            assert_int_equal(s, TARE_NOMEM);
            assert_true(n < 100);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numpy_wrote_these),
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(refused_by_name),
        cmocka_unit_test(archives),
        cmocka_unit_test(damaged_archives),
        cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
