/* SPDX-License-Identifier: MIT
 * test_kserve.c - tensors as KServe v2 wants them, and back; what is announced and not there is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "subject/kserve.h"

static tare_status add(struct tensor_set *s, struct tensor_spec spec, const void *bytes, tare_error *err)
{
    struct tensor t = {0};
    tare_status status = tensor_make(&t, &spec, err);
    if (status < 0) return status;
    memcpy(t.data, bytes, t.bytes);
    return tensor_set_take(s, &t, err);
}

static const int64_t one[] = {1, 1}, two[] = {1, 2};
static const float numbers[] = {1.5F, -0.1F};
static const int64_t large[] = {9007199254740993, -1};

static tare_status both(struct tensor_set *s, tare_error *err)
{
    tare_status status = add(s, (struct tensor_spec){"x", ONNX_FLOAT, two, 2}, numbers, err);
    return status < 0 ? status : add(s, (struct tensor_spec){"n", ONNX_INT64, two, 2}, large, err);
}

static void as_json(void **state)
{
    struct tensor_set in = TENSOR_SET_INIT;
    struct buf body = BUF_INIT;
    size_t n_json;
    assert_int_equal(both(&in, NULL), TARE_OK);
    assert_int_equal(kserve_encode(&in, false, &body, &n_json, NULL), TARE_OK);
    assert_string_equal(
        body.data,
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1.5,-0.10000000149011612]},"
        "{\"name\":\"n\",\"shape\":[1,2],\"datatype\":\"INT64\",\"data\":[9007199254740993,-1]}]}");
    assert_int_equal(n_json, 0);
    buf_release(&body);
    tensor_set_release(&in);
    (void)state;
}

static void as_bytes(void **state)
{
    struct tensor_set in = TENSOR_SET_INIT, out = TENSOR_SET_INIT;
    struct buf body = BUF_INIT;
    size_t n_json;
    assert_int_equal(both(&in, NULL), TARE_OK);
    assert_int_equal(kserve_encode(&in, true, &body, &n_json, NULL), TARE_OK);
    assert_int_equal(body.len, n_json + 8 + 16);
    assert_memory_equal(body.data + n_json, numbers, 8);
    assert_memory_equal(body.data + n_json + 8, large, 16);
    assert_non_null(strstr(body.data, "\"parameters\":{\"binary_data_output\":true}"));
    memcpy(strstr(body.data, "\"inputs\""), "\"outputs",
           8); /* an answer has the same form; a name of its own */
    struct buf answer = BUF_INIT;
    buf_add_str(&answer,
                "{\"model_name\":\"m\",\"outputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2],"
                "\"parameters\":{\"binary_data_size\":8}}]}");
    size_t n = answer.len;
    buf_add(&answer, numbers, 8);
    assert_int_equal(kserve_decode(&(struct kserve_answer){answer.data, answer.len, n}, &out, NULL), TARE_OK);
    assert_int_equal(out.items.n, 1);
    assert_memory_equal(out.items.items[0].data, numbers, 8);
    buf_release(&body);
    buf_release(&answer);
    tensor_set_release(&in);
    tensor_set_release(&out);
    (void)state;
}

static void refused_inputs(void **state)
{
    static const uint16_t half = 0x3c00;
    static const float nan = NAN;
    struct tensor_set in = TENSOR_SET_INIT;
    struct buf body = BUF_INIT;
    size_t n_json;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(add(&in, (struct tensor_spec){"h", ONNX_FLOAT16, one, 2}, &half, NULL), TARE_OK);
    assert_int_equal(kserve_encode(&in, false, &body, &n_json, &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "input 'h': JSON of KServe has no FP16; send it in binary"));
    assert_int_equal(kserve_encode(&in, true, &body, &n_json, &err), TARE_OK);
    tensor_set_release(&in);
    in = (struct tensor_set)TENSOR_SET_INIT;
    assert_int_equal(add(&in, (struct tensor_spec){"f", ONNX_FLOAT, one, 2}, &nan, NULL), TARE_OK);
    assert_int_equal(kserve_encode(&in, false, &body, &n_json, &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no NaN"));
    tensor_set_release(&in);
    buf_release(&body);
    (void)state;
}

static tare_status decode(const char *text, struct tensor_set *out, tare_error *err)
{
    return kserve_decode(&(struct kserve_answer){text, strlen(text), 0}, out, err);
}

static void answers(void **state)
{
    struct tensor_set out = TENSOR_SET_INIT;
    assert_int_equal(
        decode(
            "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP64\",\"shape\":[2,2],\"data\":[[1,2.5],[-3,4e2]]},"
            "{\"name\":\"t\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"text\"]},"
            "{\"name\":\"n\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[9007199254740993]},"
            "{\"name\":\"b\",\"datatype\":\"BOOL\",\"shape\":[2],\"data\":[true,false]}]}",
            &out, NULL),
        TARE_OK);
    assert_int_equal(out.items.n, 3);
    assert_true(tensor_value(tensor_find(&out, "y"), 3) == 400);
    assert_int_equal(*(int64_t *)tensor_find(&out, "n")->data, 9007199254740993);
    assert_true(tensor_value(tensor_find(&out, "b"), 0) == 1);
    tensor_set_release(&out);
    (void)state;
}

static void refused_answers(void **state)
{
#define Y(rest) "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\"," rest "}]}"
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "is no JSON"},
        {"[]", "no outputs"},
        {"{\"error\":\"unknown model 'm'\"}", "the server says: unknown model 'm'"},
        {"{\"outputs\":[{}]}", "without a name"},
        {"{\"outputs\":[7]}", "without a name"},
        {"{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP7\",\"shape\":[1],\"data\":[1]}]}",
         "none of KServe"},
        {Y("\"data\":[1]"), "no shape"},
        {Y("\"shape\":[-1],\"data\":[1]"), "not of whole numbers"},
        {Y("\"shape\":[2],\"data\":[1]"), "not the numbers of its shape"},
        {Y("\"shape\":[1],\"data\":[1,2]"), "not the numbers of its shape"},
        {Y("\"shape\":[1],\"data\":[\"a\"]"), "not the numbers of its shape"},
        {Y("\"shape\":[1]"), "no data"},
        {Y("\"shape\":[1099511627776],\"data\":[1]"), "too large"},
        {Y("\"shape\":[1],\"parameters\":{\"binary_data_size\":4}"), "more bytes announced"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tensor_set out = TENSOR_SET_INIT;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(decode(bad[i].text, &out, &err), TARE_FORMAT);
        if (!strstr(err.text, bad[i].says)) fail_msg("%s: %s", bad[i].text, err.text);
        tensor_set_release(&out);
    }
    (void)state;
}

static void without_memory(void **state)
{
    for (long n = 0;; n++) {
        struct tensor_set in = TENSOR_SET_INIT, out = TENSOR_SET_INIT;
        struct buf body = BUF_INIT;
        size_t n_json;
        mem_fail_after(n);
        tare_status s = both(&in, NULL);
        if (s == TARE_OK) s = kserve_encode(&in, true, &body, &n_json, NULL);
        if (s == TARE_OK)
            s = decode("{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}",
                       &out, NULL);
        mem_fail_after(-1);
        tensor_set_release(&in);
        tensor_set_release(&out);
        buf_release(&body);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 200);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_json), cmocka_unit_test(as_bytes),        cmocka_unit_test(refused_inputs),
        cmocka_unit_test(answers), cmocka_unit_test(refused_answers), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
