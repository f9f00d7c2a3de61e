/* SPDX-License-Identifier: MIT
 * test_synth.c - seeded weights, the writer of ONNX files and the table of architectures. That the files
 * are right is tests/python/test_synth.py's to say; here are the parts, the failures and the bytes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/mem.h"
#include "model/infer/infer.h"
#include "model/synth/synth.h"

/* ---- weights ---- */

static void test_half(void **state)
{
    (void)state;
    static const struct {
        float value;
        uint16_t half;
    } known[] = {
        {0.0F, 0x0000},         {-0.0F, 0x8000},           {1.0F, 0x3C00},
        {-2.0F, 0xC000},        {65504.0F, 0x7BFF},        {65519.0F, 0x7BFF},
        {65520.0F, 0x7C00},     {-1e30F, 0xFC00},          {0x1p-14F, 0x0400},
        {0x1p-15F, 0x0200},     {0x1p-24F, 0x0001},        {0x1p-25F, 0x0000},
        {0x1.8p-25F, 0x0001},   {0x1.8p-24F, 0x0002},      {0x1.ff8p-15F, 0x03FF},
        {0x1.ffcp-15F, 0x0400}, {1.0F + 0x1p-11F, 0x3C00}, {1.0F + 0x3p-11F, 0x3C02},
        {0x1.fffp0F, 0x4000},   {INFINITY, 0x7C00},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(weight_to_half(known[i].value), known[i].half);
    assert_int_equal(weight_to_half(NAN) & 0x7C00, 0x7C00);
    assert_int_not_equal(weight_to_half(NAN) & 0x3FF, 0);
}

/* These very numbers: a change here changes every model that anyone has made. */
static void test_values_are_for_ever(void **state)
{
    (void)state;
    struct weight w = {.key = weight_key(1, "encoder.weight"), .count = 4, .step = weight_step(0.02)};
    float v[4];
    weight_float(&w, 0, 4, v);
    assert_true(w.key == UINT64_C(0x7dc8d5cfb54e0002));
    static const float expected[4] = {-0x1.70a1e40000000p-7F, -0x1.46fe6e0000000p-6F, -0x1.dcde440000000p-8F,
                                      0x1.3977700000000p-7F};
    assert_memory_equal(v, expected, sizeof v);
    assert_true(weight_key(1, "a") != weight_key(2, "a") && weight_key(1, "a") != weight_key(1, "b"));
}

static void test_any_piece_at_any_time(void **state)
{
    (void)state;
    enum { ROWS = 7, COLS = 5, N = ROWS * COLS };
    struct weight w = {.key = 99, .count = N, .step = 1}, t = w;
    float all[N], piece[N], turned[N];
    uint16_t halves[N];
    t.rows = ROWS;
    t.cols = COLS;
    weight_float(&w, 0, N, all);
    weight_float(&t, 0, N, turned);
    weight_half(&w, 0, N, halves);
    for (uint64_t from = 0; from < N; from++)
        for (size_t n = 0; from + n <= N; n++) {
            weight_float(&w, from, n, piece);
            assert_memory_equal(piece, all + from, n * sizeof *piece);
            weight_float(&t, from, n, piece);
            assert_memory_equal(piece, turned + from, n * sizeof *piece);
        }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) assert_true(turned[r * COLS + c] == all[c * ROWS + r]);
    for (int i = 0; i < N; i++) assert_int_equal(halves[i], weight_to_half(all[i]));
}

static void test_int8(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float real[N];
    static uint8_t q[N], u[N];
    struct weight w = {.key = 5, .count = N, .step = weight_step(0.5)};
    w.peak = weight_peak(&w);
    float scale = weight_int8_scale(&w), worst = 0;
    int extreme = 0;
    weight_float(&w, 0, N, real);
    weight_int8(&w, 0, N, q);
    w.zero = 128;
    weight_int8(&w, 0, N, u);
    for (int i = 0; i < N; i++) {
        int v = (int8_t)q[i];
        assert_int_equal(u[i] - 128, v);
        assert_true(v >= -127 && v <= 127);
        worst = fmaxf(worst, fabsf(real[i] - (float)v * scale));
        extreme += abs(v) == 127;
    }
    assert_true(worst <= scale * 0.5001F);
    assert_true(extreme >= 1);
    struct weight none = {.count = 0};
    assert_int_equal(weight_peak(&none), 1);
}

/* ---- the writer ---- */

static tare_status to_buf(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    buf_add(ctx, bytes, n);
    return buf_status(ctx, err);
}

static tare_status refuse(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    long *left = ctx;
    (void)bytes;
    *left -= (long)n;
    return *left < 0 ? error_set(err, TARE_IO, "full") : TARE_OK;
}

static struct synth_config tiny(const struct synth_arch *a, enum synth_dtype dtype)
{
    struct synth_config c = {.dtype = dtype, .opset = 17, .seed = 3};
    if (a->takes & SYNTH_LAYERS) c.layers = 1;
    if (a->takes & SYNTH_HIDDEN) c.hidden = 16, c.heads = 2;
    if (a->takes & SYNTH_VOCAB) c.vocab = 10;
    if (a->takes & SYNTH_IMAGE) c.image = 32;
    if (a->takes & SYNTH_KV) c.kv_cache = true;
    if (a->takes & SYNTH_SIZES) c.sizes[0] = 300, c.sizes[1] = 4, c.n_sizes = 2;
    return c;
}

/* What ow_size() says is what ow_write() writes, in one file and in two. */
static void test_sizes(void **state)
{
    (void)state;
    for (const struct synth_arch *a = synth_table; a->name; a++)
        for (int d = SYNTH_FP32; d <= SYNTH_INT8; d++)
            for (int outside = 0; outside < 2; outside++) {
                struct synth_config c = tiny(a, (enum synth_dtype)d);
                struct ow w;
                struct buf file = BUF_INIT, data = BUF_INIT;
                tare_error err;
                uint64_t n_file = 0, n_data = 0;
                assert_int_equal(synth_resolve(a, &c, &err), TARE_OK);
                assert_int_equal(synth_build(&w, a, &c, &err), TARE_OK);
                struct ow_target to = {{to_buf, &file}, {to_buf, &data}, outside ? "x.data" : NULL};
                assert_int_equal(ow_size(&w, to.location, &n_file, &n_data), TARE_OK);
                assert_int_equal(ow_write(&w, &to), TARE_OK);
                assert_int_equal(file.len, n_file);
                assert_int_equal(data.len, n_data);
                assert_true(outside ? n_data > 0 : n_data == 0);
                assert_true(w.parameters > 500);
                buf_release(&file);
                buf_release(&data);
                ow_release(&w);
            }
    assert_int_equal(mem_live_blocks(), 0);
}

static int64_t bound(const struct onnx_model *m, const char *input)
{
    struct infer_bound b[8];
    size_t n = m->graph.inputs.n < 8 ? m->graph.inputs.n : 8, i = 0;
    infer_input_bounds(m, b, n, NULL);
    while (i < n && strcmp(m->graph.inputs.items[i].name, input) != 0) i++;
    assert_true(i < n);
    return b[i].limit;
}

/* Our own reader finds in the file what was put into it, and what its inputs may hold. */
static void test_read_back(void **state)
{
    (void)state;
    for (const struct synth_arch *a = synth_table; a->name; a++)
        for (int d = SYNTH_FP32; d <= SYNTH_INT8; d++) {
            struct synth_config c = tiny(a, (enum synth_dtype)d);
            struct ow w;
            struct buf file = BUF_INIT;
            struct onnx_model m = ONNX_MODEL_INIT;
            tare_error err;
            assert_int_equal(synth_resolve(a, &c, &err), TARE_OK);
            assert_int_equal(synth_build(&w, a, &c, &err), TARE_OK);
            assert_int_equal(ow_write(&w, &(struct ow_target){.file = {to_buf, &file}}), TARE_OK);
            if (onnx_read(&m, a->name, file.data, file.len, &err) < 0) fail_msg("%s", err.text);
            assert_int_equal(onnx_opset(&m, ""), 17);
            assert_int_equal(m.graph.nodes.n, w.nodes.n);
            assert_int_equal(m.graph.initializers.n, w.tensors.n);
            assert_int_equal(m.graph.outputs.n, w.outputs.n);
            assert_int_equal(m.parameters, w.parameters);
            for (size_t i = 0; i < m.graph.inputs.n; i++) {
                const char *name = m.graph.inputs.items[i].name;
                assert_string_equal(name, ow_name(&w, w.inputs.items[i].value));
                if (strcmp(name, "input_ids") == 0) assert_int_equal(bound(&m, name), c.vocab);
                if (strcmp(name, "token_type_ids") == 0) assert_int_equal(bound(&m, name), 2);
                if (strcmp(name, "position_ids") == 0) assert_int_equal(bound(&m, name), c.positions);
            }
            onnx_close(&m);
            buf_release(&file);
            ow_release(&w);
        }
}

/* A sink that fails at any byte ends the writing with its own words. */
static void test_failing_sink(void **state)
{
    (void)state;
    const struct synth_arch *a = synth_find("mlp");
    struct synth_config c = tiny(a, SYNTH_FP32);
    struct ow w;
    tare_error err = {0};
    uint64_t n_file, n_data;
    assert_int_equal(synth_resolve(a, &c, &err), TARE_OK);
    assert_int_equal(synth_build(&w, a, &c, &err), TARE_OK);
    for (int outside = 0; outside < 2; outside++) {
        struct ow_target to = {.location = outside ? "x.data" : NULL};
        assert_int_equal(ow_size(&w, to.location, &n_file, &n_data), TARE_OK);
        for (long room = 0; room <= (long)(n_file + n_data); room += 13) {
            long left = room, left_data = room;
            to.file = (struct ow_sink){refuse, &left};
            to.data = (struct ow_sink){refuse, &left_data};
            tare_status s = ow_write(&w, &to);
            bool fits = room >= (long)n_file && room >= (long)n_data;
            assert_int_equal(s, fits ? TARE_OK : TARE_IO);
        }
    }
    ow_release(&w);
}

/* Build and write, and say how many bytes that gave. */
static tare_status build_and_write(const struct synth_arch *a, uint64_t *bytes)
{
    struct synth_config c = tiny(a, SYNTH_INT8);
    struct ow w;
    const long plenty = 1L << 40;
    long room = plenty;
    struct ow_target to = {.file = {refuse, &room}};
    tare_error err = {0};
    assert_int_equal(synth_resolve(a, &c, &err), TARE_OK);
    tare_status s = synth_build(&w, a, &c, &err);
    if (s == TARE_OK) s = ow_write(&w, &to);
    ow_release(&w);
    *bytes = (uint64_t)(plenty - room);
    return s;
}

static void test_no_memory(void **state)
{
    (void)state;
    for (const struct synth_arch *a = synth_table; a->name; a++) {
        uint64_t whole, bytes;
        long n = 0;
        assert_int_equal(build_and_write(a, &whole), TARE_OK);
        for (tare_status s = TARE_NOMEM; s != TARE_OK; n += n < 300 ? 1 : n / 50) { /* then samples */
            mem_fail_after(n);
            s = build_and_write(a, &bytes);
            mem_fail_after(-1);
            assert_int_equal(mem_live_blocks(), 0);
            assert_int_equal(s, bytes == whole && s == TARE_OK ? TARE_OK : TARE_NOMEM);
        }
        assert_true(n > 30);
    }
}

static void test_names(void **state)
{
    (void)state;
    struct ow w;
    tare_error err;
    ow_init(&w, 17, 1, &err);
    struct onnx_dim dims[] = {{-1, "batch_size"}, {4, ""}};
    ow_val x = ow_input(&w, "x", ONNX_FLOAT, 2, dims);
    size_t outer = ow_enter(&w, "encoder"), inner = ow_enter_index(&w, "layer", 3);
    ow_val a = ow_op(&w, "Relu", x), b = ow_op(&w, "Relu", a);
    ow_val k =
        ow_weight(&w, &(struct ow_spec){"weight", ONNX_FLOAT, 2, {4, 4}, OW_NORMAL, 1, 0, false, false});
    assert_string_equal(ow_name(&w, a), "/encoder/layer.3/Relu_output_0");
    assert_string_equal(ow_name(&w, b), "/encoder/layer.3/Relu_1_output_0");
    assert_string_equal(ow_name(&w, k), "encoder.layer.3.weight");
    ow_leave(&w, inner);
    assert_string_equal(ow_name(&w, ow_op(&w, "Relu", b)), "/encoder/Relu_output_0");
    ow_leave(&w, outer);
    assert_string_equal(w.scope.data, "");
    assert_int_equal(ow_ints_of(&w, 1, 2), ow_ints_of(&w, 1, 2));
    assert_int_not_equal(ow_ints_of(&w, 1), ow_scalar(&w, ONNX_INT64, 1)); /* a vector, a scalar */
    assert_int_not_equal(ow_scalar(&w, ONNX_FLOAT, 1), ow_scalar(&w, ONNX_FLOAT16, 1));
    ow_output(&w, "y", ow_port(b, ONNX_FLOAT, 2, dims));
    ow_output(&w, "z", ow_port(a, ONNX_FLOAT, 2, dims));
    assert_string_equal(ow_name(&w, b), "y");
    ow_output_first(&w);
    assert_int_equal(w.outputs.items[0].value, a);
    assert_int_equal(w.outputs.items[1].value, b);
    assert_int_equal(w.parameters, 16);
    assert_int_equal(w.status, TARE_OK);
    ow_release(&w);
}

/* ---- the table ---- */

static void refused(const char *arch, struct synth_config c, const char *why)
{
    tare_error err = {0};
    if (!c.opset) c.opset = 17;
    assert_int_equal(synth_resolve(synth_find(arch), &c, &err), TARE_INVALID);
    assert_string_equal(err.text, why);
}

static void test_refused(void **state)
{
    (void)state;
    refused("mlp", (struct synth_config){.opset = 12}, "--opset: 12 is not within 13 .. 21");
    refused("mlp", (struct synth_config){.opset = 22}, "--opset: 22 is not within 13 .. 21");
    refused("mlp", (struct synth_config){.layers = 2}, "mlp has no --layers");
    refused("mlp", (struct synth_config){.sizes = {3}, .n_sizes = 1},
            "--sizes: at least two are needed, inputs and outputs");
    refused("bert-base", (struct synth_config){.layers = 1001}, "--layers: 1001 is not within 1 .. 1000");
    refused("bert-base", (struct synth_config){.image = 32}, "bert-base has no --image");
    refused("bert-base", (struct synth_config){.kv_cache = true}, "bert-base has no --kv-cache");
    refused("bert-base", (struct synth_config){.heads = 7},
            "--hidden 768 is not a multiple of 7 heads; choose --heads");
    refused("deberta-v3-base", (struct synth_config){.positions = 9}, "deberta-v3-base has no --positions");
    refused("vit-b16", (struct synth_config){.image = 40}, "--image: 40 is not a multiple of 16");
    refused("resnet50", (struct synth_config){.head = SYNTH_HEAD_NONE}, "resnet50 has no --head");
    assert_null(synth_find("nothing"));
}

static void test_hidden_is_followed(void **state)
{
    (void)state;
    struct synth_config c = {.opset = 17, .hidden = 128};
    assert_int_equal(synth_resolve(synth_find("bert-base"), &c, NULL), TARE_OK);
    assert_int_equal(c.heads, 2);
    assert_int_equal(c.ffn, 512);
    assert_int_equal(c.layers, 12);
    assert_int_equal(c.vocab, 30522);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_values_are_for_ever),
        cmocka_unit_test(test_any_piece_at_any_time),
        cmocka_unit_test(test_int8),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_failing_sink),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hidden_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
