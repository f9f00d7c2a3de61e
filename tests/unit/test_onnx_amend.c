/* SPDX-License-Identifier: MIT
 * test_onnx_amend.c - a model file with more outputs: what stands behind it, that the file stays
 * as it was, sizes around those of pages, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "model/onnx/onnx_write.h"
#include "core/wire.h"
#include "onnx_fixture.h"

static char path[] = "/tmp/tare-amend-XXXXXX";

/* x -> Relu -> h -> Relu -> y, with a name that makes the file `pad` bytes longer. */
static void write_model(size_t pad)
{
    struct buf model = BUF_INIT, graph = BUF_INIT, node = BUF_INIT, opset = BUF_INIT, name = BUF_INIT;
    static const char *const values[] = {"x", "h", "y"};
    for (int i = 0; i < 2; i++) {
        pb_str(&node, 1, values[i]);
        pb_str(&node, 2, values[i + 1]);
        pb_str(&node, 4, "Relu");
        pb_msg(&graph, 1, &node);
    }
    for (size_t i = 0; i < pad; i++) buf_add_char(&name, 'g');
    pb_str(&graph, 2, name.data);
    struct buf in = pb_value("x", 1), out = pb_value("y", 1);
    pb_msg(&graph, 11, &in);
    pb_msg(&graph, 12, &out);
    pb_int(&model, 1, 8);
    pb_msg(&model, 7, &graph);
    pb_int(&opset, 2, 17);
    pb_msg(&model, 8, &opset);
    assert_int_equal(file_write_atomic(path, model.data, model.len, 0, NULL), TARE_OK);
    buf_release(&name);
    buf_release(&model);
}

/* The only field of a message, which must be bytes. */
static struct wire inside(struct wire w, uint32_t number)
{
    struct wire_field f = {0};
    const char *why = NULL;
    assert_int_equal(wire_next(&w, &f, &why), 1);
    assert_int_equal(f.number, number);
    assert_int_equal(f.type, WIRE_BYTES);
    assert_ptr_equal(w.at, w.end);
    return (struct wire){f.bytes, f.bytes + f.n};
}

/* After the file: graph { output { name: "h" } }, which readers of protobuf merge with the graph before it. */
static void check_amended(const struct onnx_amended *a, const struct file_view *file)
{
    const uint8_t *bytes = a->bytes;
    assert_true(a->n > file->size);
    assert_memory_equal(bytes, file->data, file->size);
    struct wire name = inside(inside(inside((struct wire){bytes + file->size, bytes + a->n}, 7), 12), 1);
    assert_int_equal(name.end - name.at, 1);
    assert_int_equal(*name.at, 'h');
}

static void outputs_are_added(void **state)
{
    (void)state;
    static const char *const names[] = {"h"};
    tare_error err = TARE_ERROR_INIT;
    long page = sysconf(_SC_PAGESIZE);
    for (long pad = 0; pad < 2 * page; pad += pad < page - 300 || pad > page + 100 ? 97 : 1) {
        struct onnx_amended a = ONNX_AMENDED_INIT;
        struct file_view before = FILE_VIEW_INIT, after = FILE_VIEW_INIT;
        write_model((size_t)pad);
        assert_int_equal(file_map(path, &before, &err), TARE_OK);
        if (onnx_amend_outputs(&a, path, names, 1, &err) < 0) fail_msg("%s", err.text);
        check_amended(&a, &before);
        onnx_amended_release(&a);
        assert_int_equal(file_map(path, &after, &err), TARE_OK);
        assert_int_equal(after.size, before.size); /* the file itself is untouched */
        assert_memory_equal(after.data, before.data, after.size);
        file_unmap(&before);
        file_unmap(&after);
    }
    assert_int_equal(mem_live_blocks(), 0);
}

static void none_added_is_the_file(void **state)
{
    (void)state;
    struct onnx_amended a = ONNX_AMENDED_INIT;
    struct file_view file = FILE_VIEW_INIT;
    write_model(10);
    assert_int_equal(file_map(path, &file, NULL), TARE_OK);
    assert_int_equal(onnx_amend_outputs(&a, path, NULL, 0, NULL), TARE_OK);
    assert_int_equal(a.n, file.size);
    assert_memory_equal(a.bytes, file.data, file.size);
    file_unmap(&file);
    onnx_amended_release(&a);
    onnx_amended_release(&a);
}

static void refused(void **state)
{
    (void)state;
    static const char *const names[] = {"h"};
    struct onnx_amended a = ONNX_AMENDED_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(onnx_amend_outputs(&a, "no/such.onnx", names, 1, &err), TARE_IO);
    assert_non_null(strstr(err.text, "no/such.onnx"));
    assert_int_equal(onnx_amend_outputs(&a, "/", names, 1, &err), TARE_INVALID);
    write_model(0);
    for (long n = 0;; n++) {
        mem_fail_after(n);
        tare_status s = onnx_amend_outputs(&a, path, names, 1, &err);
        mem_fail_after(-1);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), 0);
    }
    onnx_amended_release(&a);
    assert_int_equal(mem_live_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_added),
        cmocka_unit_test(none_added_is_the_file),
        cmocka_unit_test(refused),
    };
    int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return rc;
}
