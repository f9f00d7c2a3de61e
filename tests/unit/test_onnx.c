/* SPDX-License-Identifier: MIT
 * test_onnx.c - the ONNX reader on models made by hand: what it finds, what it refuses and in which words. One
 * more use, for the Python tests:
 *   test_onnx --dump FILE...   print what the reader says of each file, as JSON, a line each */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/json.h"
#include "model/infer/infer.h"
#include "onnx_fixture.h"

static const int64_t table_dims[] = {100, 8};

/* ids -> Gather(table) -> out, with an If around a constant, a Constant node and metadata */
static struct buf small_model(void)
{
    struct buf g = BUF_INIT, part, inner = BUF_INIT, constant, t;
    int64_t two[] = {0, -1};
    part = pb_node("Gather", "table,ids", "rows");
    pb_str(&part, 3, "embed");
    pb_msg(&g, 1, &part);
    constant = pb_node("Constant", "", "c");
    t = pb_ints("", two, 2);
    struct buf a = BUF_INIT;
    pb_str(&a, 1, "value");
    pb_msg(&a, 5, &t);
    pb_int(&a, 20, 4);
    pb_msg(&constant, 5, &a);
    pb_msg(&g, 1, &constant);
    part = pb_node("Identity", "rows", "inner_out");
    pb_msg(&inner, 1, &part);
    pb_str(&inner, 2, "then");
    t = pb_tensor("inner_w", 10, table_dims, 2, 1600);
    pb_msg(&inner, 5, &t);
    part = pb_value("inner_out", 1);
    pb_msg(&inner, 12, &part);
    part = pb_node("If", "flag", "out");
    pb_attr_graph(&part, "then_branch", &inner);
    pb_msg(&g, 1, &part);
    pb_str(&g, 2, "main");
    t = pb_tensor("table", 1, table_dims, 2, 3200);
    pb_msg(&g, 5, &t);
    part = pb_value("ids", 7);
    pb_msg(&g, 11, &part);
    part = pb_value("table", 1);
    pb_msg(&g, 11, &part);
    part = pb_value("flag", 9);
    pb_msg(&g, 11, &part);
    part = pb_value("out", 1);
    pb_msg(&g, 12, &part);
    struct buf m = pb_model(&g), entry = BUF_INIT;
    pb_str(&entry, 1, "author");
    pb_str(&entry, 2, "me");
    pb_msg(&m, 14, &entry);
    return m;
}

static void reads_a_model(void **state)
{
    (void)state;
    struct buf bytes = small_model();
    struct onnx_model m = ONNX_MODEL_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(onnx_read(&m, "small", bytes.data, bytes.len, &err), TARE_OK);
    assert_int_equal(m.ir_version, 8);
    assert_string_equal(m.producer, "fixture");
    assert_int_equal(onnx_opset(&m, ""), 17);
    assert_int_equal(onnx_opset(&m, "com.microsoft"), 0);
    assert_int_equal(m.metadata.n, 1);
    assert_string_equal(m.metadata.items[0].value, "me");
    assert_string_equal(m.graph.name, "main");
    assert_int_equal(m.graph.inputs.n, 2); /* the table is an initializer */
    assert_string_equal(m.graph.inputs.items[1].name, "flag");
    assert_int_equal(m.graph.inputs.items[0].dims.n, 2);
    assert_string_equal(m.graph.inputs.items[0].dims.items[0].name, "batch");
    assert_int_equal(m.graph.inputs.items[0].dims.items[0].value, -1);
    assert_int_equal(m.graph.inputs.items[0].dims.items[1].value, 4);
    assert_int_equal(m.graph.nodes.n, 3);
    assert_string_equal(m.graph.nodes.items[0].name, "embed");
    assert_ptr_equal(m.graph.nodes.items[0].inputs.items[0], m.graph.initializers.items[0].name);
    const struct onnx_attribute *a = onnx_attribute(&m.graph.nodes.items[2], "then_branch");
    assert_non_null(a);
    assert_string_equal(a->g->initializers.items[0].name, "inner_w");
    assert_int_equal(m.parameters, 800 + 800);
    assert_int_equal(m.weight_type, ONNX_FLOAT);
    onnx_close(&m);
    buf_release(&bytes);
}

static void weights_are_not_copied(void **state)
{
    (void)state;
    struct buf bytes = small_model();
    struct onnx_model m = ONNX_MODEL_INIT;
    assert_int_equal(onnx_read(&m, "small", bytes.data, bytes.len, NULL), TARE_OK);
    const struct onnx_tensor *t = onnx_initializer(&m.graph, "table");
    assert_non_null(t);
    assert_null(onnx_initializer(&m.graph, "tabl"));
    assert_true(t->raw >= (uint8_t *)bytes.data &&
                t->raw + t->raw_bytes <= (uint8_t *)bytes.data + bytes.len);
    assert_int_equal(t->raw_bytes, 3200);
    const uint8_t *p;
    uint64_t n;
    assert_int_equal(onnx_tensor_bytes(t, &p, &n, NULL), TARE_OK);
    assert_ptr_equal(p, t->raw);
    onnx_close(&m);
    buf_release(&bytes);
}

/* ---- refusals ---- */

static void expect_refusal(const void *bytes, size_t n, const char *words)
{
    struct onnx_model m = ONNX_MODEL_INIT;
    tare_error err = TARE_ERROR_INIT;
    long before = mem_live_blocks();
    assert_true(onnx_read(&m, "bad.onnx", bytes, n, &err) < 0);
    assert_int_equal(mem_live_blocks(), before);
    assert_null(m.memory);
    if (!strstr(err.text, words)) fail_msg("'%s' does not say '%s'", err.text, words);
    if (strncmp(err.text, "bad.onnx: ", 10) != 0) fail_msg("'%s' does not name the file", err.text);
}

static void names_what_is_not_a_model(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n", "Git LFS pointer: fetch the real file"},
        {"PK\003\004\024\001", "zip archive (PyTorch?)"},
        {"\200\002}q", "pickle"},
        {"  {\"a\": 1}", "JSON"},
        {"\n<!DOCTYPE html><html>", "HTML"},
        {"ir_version: 8\n", "looks like text"},
        {"GGUF\003", "GGUF"},
        {"\037\213\010", "gzip"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(cases[i][0], strlen(cases[i][0]), cases[i][1]);
    expect_refusal("", 0, "empty");
    expect_refusal("\010\010", 2, "has no graph");
    expect_refusal("\072\000", 2, "has no ir_version");
}

static void refuses_every_truncation(void **state)
{
    (void)state;
    struct buf bytes = small_model();
    size_t read = 0;
    for (size_t n = 0; n < bytes.len; n++) {
        struct onnx_model m = ONNX_MODEL_INIT;
        char *exact = mem_new(n + 1, 1);
        memcpy(exact, bytes.data, n);
        read += onnx_read(&m, "cut", exact, n, NULL) == TARE_OK;
        onnx_close(&m);
        mem_free(exact);
    }
    assert_true(read <= 3); /* only the fields after the graph may be missing without being noticed */
    buf_release(&bytes);
}

/* A model whose graph is made of one part. */
static void expect_bad_part(unsigned field, struct buf part, const char *words)
{
    struct buf g = BUF_INIT;
    pb_msg(&g, field, &part);
    struct buf m = pb_model(&g);
    expect_refusal(m.data, m.len, words);
    buf_release(&m);
}

static void refuses_bad_tensors(void **state)
{
    (void)state;
    static const int64_t negative[] = {2, -3}, huge[] = {INT64_C(1) << 40, INT64_C(1) << 40},
                         large[] = {INT64_C(1) << 62}, three[] = {3};
    expect_bad_part(5, pb_tensor("w", 1, negative, 2, 0),
                    "graph.initializer[0]: 'w' has a negative dimension");
    expect_bad_part(5, pb_tensor("w", 1, huge, 2, 0), "more elements than 64 bits can count");
    expect_bad_part(5, pb_tensor("w", 1, large, 1, 0), "more elements than 64 bits can count");
    expect_bad_part(5, pb_tensor("w", 1, three, 1, 11), "has 11 bytes of raw data, its dimensions need 12");
    expect_bad_part(5, pb_tensor("w", 99, three, 1, 12), "element type 99");
    expect_bad_part(5, pb_tensor("", 1, three, 1, 12), "an initializer without a name");
    expect_bad_part(5, pb_tensor("w", 22, three, 1, 1), "has 1 bytes of raw data, its dimensions need 2");
    struct buf t = BUF_INIT;
    pb_int(&t, 1, 3);
    pb_int(&t, 2, 1);
    pb_str(&t, 8, "w");
    expect_bad_part(5, t, "'w' has no data");
}

static void refuses_bad_parts(void **state)
{
    (void)state;
    struct buf n = BUF_INIT, a = BUF_INIT;
    pb_str(&n, 1, "x");
    expect_bad_part(1, n, "graph.node[0]: a node without an operator");
    n = pb_node("Relu", "x", "y");
    pb_int(&a, 3, 1);
    pb_msg(&n, 5, &a);
    expect_bad_part(1, n, "graph.node[0].attribute[0]: an attribute without a name");
    n = pb_node("Relu", "x", "y");
    pb_int(&n, 1, 5); /* a number where a name must be */
    expect_bad_part(1, n, "graph.node[0]: input is not of the kind it must be");
    n = pb_node("Re\377lu", "x", "y");
    expect_bad_part(1, n, "not UTF-8");
    n = (struct buf)BUF_INIT;
    pb_bytes(&n, 4, "a\0b", 3);
    expect_bad_part(1, n, "NUL");
    n = (struct buf)BUF_INIT;
    pb_varint(&n, 4 << 3 | 2);
    pb_varint(&n, UINT64_MAX);
    expect_bad_part(1, n, "graph.node[0]: a length goes beyond the end");
}

static void refuses_duplicate_initializers(void **state)
{
    (void)state;
    static const int64_t one[] = {1};
    struct buf g = BUF_INIT, t;
    const char *names[] = {"a", "b", "a"};
    for (int i = 0; i < 3; i++) {
        t = pb_tensor(names[i], 1, one, 1, 4);
        pb_msg(&g, 5, &t);
    }
    struct buf m = pb_model(&g);
    expect_refusal(m.data, m.len, "graph.initializer[2]: a second initializer named 'a'");
    buf_release(&m);
}

static void refuses_depth_bombs(void **state)
{
    (void)state;
    struct buf g = BUF_INIT;
    for (int depth = 0; depth < 2000; depth++) {
        struct buf n = pb_node("If", "c", "y"), outer = BUF_INIT;
        pb_attr_graph(&n, "then_branch", &g);
        pb_msg(&outer, 1, &n);
        g = outer;
    }
    struct buf m = pb_model(&g);
    expect_refusal(m.data, m.len, "nested more than 100 levels");
    buf_release(&m);
}

static void refuses_a_huge_sparse_file(void **state)
{
    (void)state;
    char path[] = "/tmp/tare-onnx-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, INT64_C(5) << 30), 0);
    struct onnx_model m = ONNX_MODEL_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(onnx_open(&m, path, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "not a field number, at byte 0"));
    /* a good start, then 5 GB of one tensor without dimensions */
    static const uint8_t head[] = {0x08, 8,    0x3a, 0xf8, 0xff, 0xff, 0xff,
                                   0x13, 0x2a, 0xf2, 0xff, 0xff, 0xff, 0x13};
    assert_int_equal(pwrite(fd, head, sizeof head, 0), sizeof head);
    assert_int_equal(onnx_open(&m, path, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "graph.initializer[0]"));
    close(fd);
    unlink(path);
}

/* ---- elements ---- */

static void check_ints(struct buf *tensor, const int64_t *want, size_t n)
{
    struct buf g = BUF_INIT;
    struct onnx_model m = ONNX_MODEL_INIT;
    tare_error err = TARE_ERROR_INIT;
    int64_t got[16];
    pb_msg(&g, 5, tensor);
    struct buf bytes = pb_model(&g);
    if (onnx_read(&m, "ints", bytes.data, bytes.len, &err) < 0) fail_msg("%s", err.text);
    const struct onnx_tensor *t = &m.graph.initializers.items[0];
    assert_int_equal(t->elements, n);
    if (onnx_tensor_ints(t, got, 16, &err) < 0) fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++) assert_int_equal(got[i], want[i]);
    if (n) assert_int_equal(onnx_tensor_ints(t, got, n - 1, &err), TARE_INVALID);
    onnx_close(&m);
    buf_release(&bytes);
}

static struct buf bare_tensor(int type, int64_t n)
{
    struct buf t = BUF_INIT;
    pb_int(&t, 1, n);
    pb_int(&t, 2, type);
    pb_str(&t, 8, "t");
    return t;
}

static void reads_integers_however_they_are_stored(void **state)
{
    (void)state;
    struct buf t, run = BUF_INIT;
    t = bare_tensor(ONNX_INT64, 3); /* not packed */
    pb_int(&t, 7, 5), pb_int(&t, 7, -1), pb_int(&t, 7, INT64_MIN);
    check_ints(&t, (int64_t[]){5, -1, INT64_MIN}, 3);
    t = bare_tensor(ONNX_INT32, 3); /* packed */
    pb_varint(&run, 1), pb_varint(&run, (uint64_t)-2), pb_varint(&run, 300);
    pb_msg(&t, 5, &run);
    check_ints(&t, (int64_t[]){1, -2, 300}, 3);
    t = bare_tensor(ONNX_INT8, 2);
    pb_bytes(&t, 9, "\xff\x7f", 2);
    check_ints(&t, (int64_t[]){-1, 127}, 2);
    t = bare_tensor(ONNX_UINT8, 2);
    pb_bytes(&t, 9, "\xff\x7f", 2);
    check_ints(&t, (int64_t[]){255, 127}, 2);
    t = bare_tensor(ONNX_INT4, 3);
    pb_bytes(&t, 9, "\x8f\x07", 2);
    check_ints(&t, (int64_t[]){-1, -8, 7}, 3);
    t = bare_tensor(ONNX_UINT4, 3);
    pb_int(&t, 5, 0x8f), pb_int(&t, 5, 7);
    check_ints(&t, (int64_t[]){15, 8, 7}, 3);
    t = bare_tensor(ONNX_INT2, 5);
    pb_bytes(&t, 9, "\xe4\x02", 2);
    check_ints(&t, (int64_t[]){0, 1, -2, -1, -2}, 5);
    t = bare_tensor(ONNX_UINT32, 1);
    pb_int(&t, 11, UINT32_MAX);
    check_ints(&t, (int64_t[]){UINT32_MAX}, 1);
    t = bare_tensor(ONNX_BOOL, 2);
    pb_int(&t, 5, 1), pb_int(&t, 5, 0);
    check_ints(&t, (int64_t[]){1, 0}, 2);
    t = bare_tensor(ONNX_INT64, 0);
    check_ints(&t, NULL, 0);
}

static void refuses_what_are_no_integers(void **state)
{
    (void)state;
    struct buf bytes = small_model();
    struct onnx_model m = ONNX_MODEL_INIT;
    tare_error err = TARE_ERROR_INIT;
    int64_t got[4];
    assert_int_equal(onnx_read(&m, "small", bytes.data, bytes.len, &err), TARE_OK);
    assert_int_equal(onnx_tensor_ints(&m.graph.initializers.items[0], got, 4, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "float32"));
    onnx_close(&m);
    buf_release(&bytes);
}

/* ---- external data ---- */

static struct buf external_tensor(const char *location, const char *offset, const char *length)
{
    struct buf t = bare_tensor(ONNX_INT64, 2), e = BUF_INIT;
    const char *pairs[][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    for (int i = 0; i < 3; i++) {
        if (!pairs[i][1]) continue;
        pb_str(&e, 1, pairs[i][0]);
        pb_str(&e, 2, pairs[i][1]);
        pb_msg(&t, 13, &e);
    }
    pb_int(&t, 14, 1);
    return t;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static tare_status open_with(const char *folder, struct buf tensor, struct onnx_model *m, tare_error *err)
{
    char path[200];
    struct buf g = BUF_INIT;
    pb_msg(&g, 5, &tensor);
    struct buf bytes = pb_model(&g);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    write_file(path, bytes.data, bytes.len);
    buf_release(&bytes);
    return onnx_open(m, path, err);
}

static void maps_external_data(void **state)
{
    (void)state;
    char folder[] = "/tmp/tare-onnx-XXXXXX", path[200];
    struct onnx_model m = ONNX_MODEL_INIT;
    tare_error err = TARE_ERROR_INIT;
    int64_t values[] = {1, 2, 3, -4}, got[2];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.bin", folder);
    write_file(path, values, sizeof values);
    if (open_with(folder, external_tensor("w.bin", "16", "16"), &m, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(onnx_tensor_ints(&m.graph.initializers.items[0], got, 2, &err), TARE_OK);
    assert_int_equal(got[0], 3);
    assert_int_equal(got[1], -4);
    onnx_close(&m);
    static const struct {
        const char *location, *offset, *length, *words;
    } bad[] = {
        {"w.bin", "24", NULL, "has 32 bytes, but 16 at offset 24 are needed"},
        {"w.bin", "18446744073709551600", NULL, "is not a number of bytes"},
        {"w.bin", "9223372036854775807", NULL, "are needed"},
        {"w.bin", "0", "8", "has 8 bytes of external data, its dimensions need 16"},
        {"none.bin", NULL, NULL, "'none.bin' is not beside the model"},
        {"../w.bin", NULL, NULL, "not below the model's folder"},
        {"a/../../w.bin", NULL, NULL, "not below the model's folder"},
        {"..\\w.bin", NULL, NULL, "not below the model's folder"},
        {"/etc/passwd", NULL, NULL, "not below the model's folder"},
        {".", NULL, NULL, "not a regular file"},
        {NULL, "0", NULL, "without a location"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct buf t = external_tensor(bad[i].location, bad[i].offset, bad[i].length);
        assert_true(open_with(folder, t, &m, &err) < 0);
        if (!strstr(err.text, bad[i].words)) fail_msg("'%s' does not say '%s'", err.text, bad[i].words);
        assert_non_null(strstr(err.text, "graph.initializer[0]"));
    }
    unlink(path);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    unlink(path);
    rmdir(folder);
}

/* ---- size and memory ---- */

static void reads_many_nodes_in_little_memory(void **state)
{
    (void)state;
    enum { NODES = 120000 };
    struct buf g = BUF_INIT, one;
    char in[32] = "x", out[32];
    for (int i = 0; i < NODES; i++) {
        snprintf(out, sizeof out, "layer/%d/out", i);
        one = pb_node("Relu", in, out);
        pb_msg(&g, 1, &one);
        memcpy(in, out, sizeof in);
    }
    struct buf bytes = pb_model(&g);
    struct onnx_model m = ONNX_MODEL_INIT;
    long before = mem_live_blocks();
    assert_int_equal(onnx_read(&m, "many", bytes.data, bytes.len, NULL), TARE_OK);
    assert_true(mem_live_blocks() - before < 200); /* not one per node */
    assert_int_equal(m.graph.nodes.n, NODES);
    assert_string_equal(m.graph.nodes.items[NODES - 1].outputs.items[0], out);
    assert_ptr_equal(m.graph.nodes.items[7].op, m.graph.nodes.items[8].op);
    onnx_close(&m);
    assert_int_equal(mem_live_blocks(), before);
    buf_release(&bytes);
}

static void survives_every_failing_allocation(void **state)
{
    (void)state;
    struct buf bytes = small_model();
    long before = mem_live_blocks(), n;
    for (n = 0;; n++) {
        struct onnx_model m = ONNX_MODEL_INIT;
        struct infer_bound b = {0};
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        tare_status s = onnx_read(&m, "small", bytes.data, bytes.len, &err);
        if (s == TARE_OK) infer_input_bounds(&m, &b, 1, NULL);
        mem_fail_after(-1);
        bool done = s == TARE_OK && b.limit == 100;
        if (s == TARE_OK && !done) assert_int_equal(b.limit, 1);
        if (s < 0) {
            assert_int_equal(s, TARE_NOMEM);
            assert_true(err.text[0] != 0);
        }
        onnx_close(&m);
        assert_int_equal(mem_live_blocks(), before);
        if (done) break;
    }
    assert_true(n > 5);
    buf_release(&bytes);
}

static void knows_types(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_string_equal(onnx_type_name(ONNX_BFLOAT16), "bfloat16");
    assert_string_equal(onnx_type_name(-1), "unknown");
    assert_string_equal(onnx_type_name(ONNX_TYPES), "unknown");
    assert_string_equal(onnx_type_precision(ONNX_UINT8), "int8");
    for (int t = 1; t < ONNX_TYPES; t++) {
        assert_non_null(onnx_type_name(t));
        if (t != ONNX_STRING) assert_true(onnx_type_bits(t) > 0);
    }
    assert_true(onnx_type_bytes(ONNX_INT4, 5, &bytes));
    assert_int_equal(bytes, 3);
    assert_true(onnx_type_bytes(ONNX_FLOAT6E2M3, 5, &bytes));
    assert_int_equal(bytes, 4);
    assert_false(onnx_type_bytes(ONNX_FLOAT, UINT64_MAX, &bytes));
    assert_false(onnx_type_bytes(ONNX_STRING, 1, &bytes));
}

/* ---- for the Python tests ---- */

static void dump_tensor(struct json *j, const struct onnx_tensor *t)
{
    int64_t items[64];
    json_object_begin(j);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "type", onnx_type_name(t->type));
    json_key(j, "dims");
    json_array_begin(j);
    for (size_t i = 0; i < t->dims.n; i++) json_put_int(j, t->dims.items[i]);
    json_array_end(j);
    json_key(j, "ints");
    if (onnx_tensor_ints(t, items, 64, NULL) == TARE_OK) {
        json_array_begin(j);
        for (size_t i = 0; i < t->elements; i++) json_put_int(j, items[i]);
        json_array_end(j);
    } else {
        json_put_null(j);
    }
    json_object_end(j);
}

static void dump_graph(struct json *j, const struct onnx_graph *g);

static void dump_attribute(struct json *j, const struct onnx_attribute *a)
{
    json_object_begin(j);
    json_kv_string(j, "name", a->name);
    json_kv_int(j, "kind", a->kind);
    json_kv_int(j, "i", a->i);
    json_key(j, "ints");
    json_array_begin(j);
    for (size_t i = 0; i < a->ints.n; i++) json_put_int(j, a->ints.items[i]);
    json_array_end(j);
    json_kv_int(j, "floats", (int64_t)a->floats.n);
    json_kv_int(j, "strings", (int64_t)a->strings.n);
    json_kv_int(j, "s", (int64_t)a->s_bytes);
    if (a->t) json_key(j, "t"), dump_tensor(j, a->t);
    if (a->g) json_key(j, "g"), dump_graph(j, a->g);
    json_object_end(j);
}

static void dump_names(struct json *j, const char *key, const char *const *names, size_t n)
{
    json_key(j, key);
    json_array_begin(j);
    for (size_t i = 0; i < n; i++) json_put_string(j, names[i]);
    json_array_end(j);
}

static void dump_nodes(struct json *j, const struct onnx_node *nodes, size_t n)
{
    json_key(j, "nodes");
    json_array_begin(j);
    for (size_t i = 0; i < n; i++) {
        json_object_begin(j);
        json_kv_string(j, "name", nodes[i].name);
        json_kv_string(j, "op", nodes[i].op);
        json_kv_string(j, "domain", nodes[i].domain);
        dump_names(j, "inputs", nodes[i].inputs.items, nodes[i].inputs.n);
        dump_names(j, "outputs", nodes[i].outputs.items, nodes[i].outputs.n);
        json_key(j, "attributes");
        json_array_begin(j);
        for (size_t k = 0; k < nodes[i].attributes.n; k++) dump_attribute(j, &nodes[i].attributes.items[k]);
        json_array_end(j);
        json_object_end(j);
    }
    json_array_end(j);
}

static void dump_values(struct json *j, const char *key, const struct onnx_value *v, size_t n)
{
    json_key(j, key);
    json_array_begin(j);
    for (size_t i = 0; i < n; i++) {
        json_object_begin(j);
        json_kv_string(j, "name", v[i].name);
        json_kv_string(j, "kind", v[i].kind);
        json_kv_string(j, "type", onnx_type_name(v[i].type));
        json_key(j, "dims");
        if (v[i].has_shape)
            json_array_begin(j);
        else
            json_put_null(j);
        for (size_t k = 0; k < v[i].dims.n; k++) {
            if (v[i].dims.items[k].value >= 0)
                json_put_int(j, v[i].dims.items[k].value);
            else
                json_put_string(j, v[i].dims.items[k].name);
        }
        if (v[i].has_shape) json_array_end(j);
        json_object_end(j);
    }
    json_array_end(j);
}

static void dump_graph(struct json *j, const struct onnx_graph *g)
{
    json_object_begin(j);
    json_kv_string(j, "name", g->name);
    dump_nodes(j, g->nodes.items, g->nodes.n);
    json_key(j, "initializers");
    json_array_begin(j);
    for (size_t i = 0; i < g->initializers.n; i++) dump_tensor(j, &g->initializers.items[i]);
    json_array_end(j);
    json_kv_int(j, "sparse", (int64_t)g->sparse.n);
    dump_values(j, "inputs", g->inputs.items, g->inputs.n);
    dump_values(j, "outputs", g->outputs.items, g->outputs.n);
    dump_values(j, "values", g->values.items, g->values.n);
    json_object_end(j);
}

static void dump_bounds(struct json *j, const struct onnx_model *m)
{
    struct infer_bound *bounds = mem_new(m->graph.inputs.n, sizeof *bounds);
    assert_non_null(bounds);
    infer_input_bounds(m, bounds, m->graph.inputs.n, NULL);
    json_key(j, "bounds");
    json_object_begin(j);
    for (size_t i = 0; i < m->graph.inputs.n; i++) {
        json_kv_int(j, m->graph.inputs.items[i].name, bounds[i].limit);
    }
    json_object_end(j);
    mem_free(bounds);
}

static void dump_model(struct json *j, const struct onnx_model *m)
{
    json_kv_int(j, "ir_version", m->ir_version);
    json_kv_string(j, "producer", m->producer);
    json_key(j, "opsets");
    json_object_begin(j);
    for (size_t i = 0; i < m->opsets.n; i++)
        json_kv_int(j, m->opsets.items[i].domain, m->opsets.items[i].version);
    json_object_end(j);
    json_key(j, "metadata");
    json_object_begin(j);
    for (size_t i = 0; i < m->metadata.n; i++)
        json_kv_string(j, m->metadata.items[i].key, m->metadata.items[i].value);
    json_object_end(j);
    json_key(j, "functions");
    json_array_begin(j);
    for (size_t i = 0; i < m->functions.n; i++) {
        const struct onnx_function *f = &m->functions.items[i];
        json_object_begin(j);
        json_kv_string(j, "name", f->name);
        json_kv_string(j, "domain", f->domain);
        dump_names(j, "inputs", f->inputs.items, f->inputs.n);
        dump_names(j, "outputs", f->outputs.items, f->outputs.n);
        dump_nodes(j, f->nodes.items, f->nodes.n);
        json_object_end(j);
    }
    json_array_end(j);
    json_kv_int(j, "parameters", (int64_t)m->parameters);
    json_kv_string(j, "weight_type", onnx_type_name(m->weight_type));
    dump_bounds(j, m);
    json_key(j, "graph");
    dump_graph(j, &m->graph);
}

static int dump(const char *path)
{
    struct buf out = BUF_INIT;
    struct json j;
    struct onnx_model m = ONNX_MODEL_INIT;
    tare_error err = TARE_ERROR_INIT;
    json_init(&j, &out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    if (onnx_open(&m, path, &err) < 0)
        json_kv_string(&j, "error", err.text);
    else
        dump_model(&j, &m);
    json_object_end(&j);
    tare_status s = json_finish(&j, &err);
    puts(out.data);
    buf_release(&out);
    onnx_close(&m);
    return s < 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--dump") == 0) {
        int bad = 0;
        for (int i = 2; i < argc; i++) bad |= dump(argv[i]);
        return bad;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_model),
        cmocka_unit_test(weights_are_not_copied),
        cmocka_unit_test(names_what_is_not_a_model),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(refuses_bad_tensors),
        cmocka_unit_test(refuses_bad_parts),
        cmocka_unit_test(refuses_duplicate_initializers),
        cmocka_unit_test(refuses_depth_bombs),
        cmocka_unit_test(refuses_a_huge_sparse_file),
        cmocka_unit_test(reads_integers_however_they_are_stored),
        cmocka_unit_test(refuses_what_are_no_integers),
        cmocka_unit_test(maps_external_data),
        cmocka_unit_test(reads_many_nodes_in_little_memory),
        cmocka_unit_test(survives_every_failing_allocation),
        cmocka_unit_test(knows_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
