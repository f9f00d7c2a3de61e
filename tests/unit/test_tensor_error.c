/* SPDX-License-Identifier: MIT
 * test_tensor_error.c - how far arrays are apart: known distances, what is no number, kinds and shapes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "model/onnx/weight.h"
#include "subject/tensor.h"

static struct tensor floats(const float *v, int64_t n)
{
    struct tensor t;
    assert_int_equal(tensor_make(&t, &(struct tensor_spec){"x", ONNX_FLOAT, &n, 1}, NULL), TARE_OK);
    memcpy(t.data, v, (size_t)n * sizeof *v);
    return t;
}

static struct tensor_error between(struct tensor a, struct tensor b)
{
    struct tensor_error e;
    tensor_error_of(&e, &a, &b);
    tensor_release(&a);
    tensor_release(&b);
    assert_int_equal(mem_live_blocks(), 0);
    return e;
}

#define FLOATS(...) \
    floats((const float[]){__VA_ARGS__}, (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)))

static void known_distances(void **state)
{
    (void)state;
    struct tensor_error e = between(FLOATS(3, 4), FLOATS(3, 4));
    assert_true(e.comparable && e.rel_l2 == 0 && e.max_abs == 0 && e.cosine == 1 && e.why[0] == 0);
    e = between(FLOATS(3, 4), FLOATS(0, 4)); /* |a - b| = 3, |a| = 5 */
    assert_true(fabs(e.rel_l2 - 0.6) < 1e-12 && e.max_abs == 3 && fabs(e.cosine - 0.8) < 1e-12);
    e = between(FLOATS(1, 0), FLOATS(0, 1));
    assert_true(fabs(e.rel_l2 - sqrt(2)) < 1e-12 && e.cosine == 0);
    e = between(FLOATS(0, 0), FLOATS(0, 0)); /* no direction, no difference */
    assert_true(e.rel_l2 == 0 && isnan(e.cosine));
    e = between(FLOATS(0, 0), FLOATS(0, 1e-9f)); /* nothing to relate it to */
    assert_true(isinf(e.rel_l2) && e.max_abs > 0);
}

static void what_is_no_number(void **state)
{
    (void)state;
    struct tensor_error e = between(FLOATS(NAN, 1), FLOATS(NAN, 1));
    assert_true(e.comparable && e.rel_l2 == 0);
    e = between(FLOATS(NAN, 1), FLOATS(2, 1));
    assert_true(e.comparable && isinf(e.rel_l2) && isinf(e.max_abs));
    assert_string_equal(e.why, "1 of 2 elements are no finite number on one side");
    e = between(FLOATS(INFINITY, 1), FLOATS(INFINITY, 1));
    assert_true(e.rel_l2 == 0);
    e = between(FLOATS(INFINITY, 1), FLOATS(-INFINITY, 1));
    assert_true(isinf(e.rel_l2));
    e = between(FLOATS(1, 1), FLOATS(1, INFINITY));
    assert_true(isinf(e.rel_l2));
}

static void shapes_and_kinds(void **state)
{
    (void)state;
    int64_t two = 2;
    struct tensor half, whole;
    struct tensor_error e = between(FLOATS(1, 2), FLOATS(1, 2, 3));
    assert_true(e.comparable && isinf(e.rel_l2));
    assert_string_equal(e.why, "the shapes are [2] and [3]");
    assert_int_equal(tensor_make(&half, &(struct tensor_spec){"x", ONNX_FLOAT16, &two, 1}, NULL), TARE_OK);
    ((uint16_t *)half.data)[0] = weight_to_half(1);
    ((uint16_t *)half.data)[1] = weight_to_half(2);
    e = between(FLOATS(1, 2), half); /* another width, the same numbers */
    assert_true(e.comparable && e.rel_l2 == 0);
    assert_int_equal(tensor_make(&whole, &(struct tensor_spec){"x", ONNX_INT8, &two, 1}, NULL), TARE_OK);
    e = between(FLOATS(1, 2), whole); /* quantised, its scale elsewhere */
    assert_false(e.comparable);
    assert_true(isnan(e.rel_l2));
    assert_string_equal(e.why, "float32 and int8 do not compare");
    struct tensor bits;
    assert_int_equal(tensor_make(&whole, &(struct tensor_spec){"x", ONNX_INT8, &two, 1}, NULL), TARE_OK);
    assert_int_equal(tensor_make(&bits, &(struct tensor_spec){"x", ONNX_INT2, &two, 1}, NULL), TARE_OK);
    ((int8_t *)whole.data)[1] = -1;
    ((uint8_t *)bits.data)[0] = 3 << 2;
    e = between(whole, bits); /* whole numbers of any width do */
    assert_true(e.comparable && e.rel_l2 == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_distances),
        cmocka_unit_test(what_is_no_number),
        cmocka_unit_test(shapes_and_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
