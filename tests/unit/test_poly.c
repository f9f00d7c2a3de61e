/* SPDX-License-Identifier: MIT
 * test_poly.c - polynomials of dimensions: one form, right values, nothing wrapped around. Rounded quotients, minima
 * and the rest are checked against plain arithmetic over many sizes. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "model/infer/poly.h"

static struct poly_space *space;

static int setup(void **state)
{
    (void)state;
    return poly_space_new(&space, NULL);
}

static int teardown(void **state)
{
    (void)state;
    poly_space_free(space);
    assert_int_equal(mem_live_blocks(), 0);
    return 0;
}

static const struct poly *num(int64_t v)
{
    return poly_int(space, v);
}
static const struct poly *sym(const char *name)
{
    return poly_symbol(space, name);
}
static const struct poly *add(const struct poly *a, const struct poly *b)
{
    return poly_add(space, a, b);
}
static const struct poly *mul(const struct poly *a, const struct poly *b)
{
    return poly_mul(space, a, b);
}

static void prints(const struct poly *p, const char *text)
{
    struct buf b = BUF_INIT;
    poly_print(p, &b);
    assert_string_equal(b.data, text);
    buf_release(&b);
}

static void test_one_form(void **state)
{
    (void)state;
    const struct poly *b = sym("batch"), *s = sym("seq");
    const struct poly *p = add(mul(num(12), mul(b, mul(s, s))), mul(num(4), b));
    prints(p, "12*batch*seq^2 + 4*batch");
    assert_ptr_equal(p, mul(mul(num(4), b), add(mul(num(3), mul(s, s)), num(1))));
    prints(poly_sub(space, num(2), s), "-seq + 2");
    prints(poly_sub(space, p, p), "0");
    prints(NULL, "?");
    prints(mul(add(b, s), poly_sub(space, b, s)), "batch^2 - seq^2");
    assert_ptr_equal(poly_product(space, NULL, 0), num(1));
    assert_ptr_equal(poly_product(space, (const struct poly *[]){num(0), NULL}, 2), num(0));
}

static void test_unknown_goes_through(void **state)
{
    (void)state;
    assert_null(add(NULL, num(1)));
    assert_null(mul(num(0), NULL));
    assert_null(poly_min(space, NULL, num(1)));
    assert_null(poly_bind(space, NULL, NULL, 0));
    assert_null(mul(num(INT64_MAX), num(2)));
    assert_null(add(num(INT64_MAX), num(1)));
    assert_null(poly_div_floor(space, num(1), num(0)));
    assert_int_equal(poly_space_status(space, NULL), TARE_OK);
    int64_t v;
    assert_false(poly_constant(NULL, &v));
    assert_false(poly_constant(sym("x"), &v));
    assert_true(poly_is(num(0), 0));
    assert_false(poly_is(NULL, 0));
}

static void test_too_long_is_unknown(void **state)
{
    (void)state;
    const struct poly *p = num(0), *q = num(0);
    char name[16];
    for (int i = 0; i < POLY_TERMS_MAX; i++) {
        snprintf(name, sizeof name, "d%d", i);
        p = add(p, sym(name));
        assert_non_null(p);
    }
    assert_null(add(p, sym("more")));
    assert_non_null(add(p, sym("d7")));
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "e%d", i);
        q = add(q, sym(name));
    }
    assert_null(mul(mul(q, q), q));
}

static void test_exact_quotients(void **state)
{
    (void)state;
    const struct poly *b = sym("batch"), *s = sym("seq");
    prints(poly_div_exact(space, mul(mul(b, s), num(384)), mul(b, num(12))), "32*seq");
    prints(poly_div_exact(space, mul(add(b, s), add(b, num(2))), add(b, num(2))), "batch + seq");
    assert_null(poly_div_exact(space, mul(s, num(3)), num(2)));
    assert_null(poly_div_exact(space, add(mul(b, s), num(1)), s));
    assert_null(poly_div_exact(space, s, num(0)));
    assert_ptr_equal(poly_div_exact(space, num(0), s), num(0));
    assert_null(poly_div_exact(space, num(INT64_MIN), num(-1)));
}

static void test_rounded_forms(void **state)
{
    (void)state;
    const struct poly *h = sym("h"), *two = num(2);
    prints(poly_div_floor(space, add(h, num(1)), two), "floor((h + 1)/2)");
    /* a convolution of 7 with stride 2 and padding 3: (h + 6 - 7)/2 + 1 */
    const struct poly *once = add(poly_div_floor(space, poly_sub(space, h, num(1)), two), num(1));
    assert_ptr_equal(once, poly_div_floor(space, add(h, num(1)), two));
    prints(poly_div_floor(space, add(once, num(1)), two), "floor((h + 3)/4)");
    prints(poly_div_floor(space, add(mul(h, num(6)), num(5)), num(4)), "floor(h/2) + h + 1");
}

static void test_rounded_forms_share(void **state)
{
    (void)state;
    const struct poly *h = sym("h");
    assert_ptr_equal(poly_div_floor(space, add(mul(h, num(2)), num(1)), num(4)),
                     poly_div_floor(space, h, num(2)));
    prints(poly_min(space, num(512), h), "min(512, h)");
    assert_ptr_equal(poly_min(space, num(512), h), poly_min(space, h, num(512)));
    assert_ptr_equal(poly_max(space, num(0), h), h);
    assert_ptr_equal(poly_min(space, add(h, num(2)), h), h);
    assert_ptr_equal(poly_max(space, num(3), num(7)), num(7));
    prints(poly_mod(space, h, num(8)), "-8*floor(h/8) + h");
}

static void test_broadcast(void **state)
{
    (void)state;
    const struct poly *a = sym("a"), *b = sym("b"), *two = poly_broadcast(space, a, b);
    int64_t v;
    assert_ptr_equal(poly_broadcast(space, num(1), a), a);
    assert_ptr_equal(poly_broadcast(space, a, a), a);
    assert_ptr_equal(poly_broadcast(space, a, num(5)), num(5));
    assert_ptr_equal(poly_broadcast(space, NULL, num(5)), num(5));
    assert_null(poly_broadcast(space, NULL, a));
    assert_ptr_equal(poly_broadcast(space, add(a, num(2)), b), add(a, num(2)));
    assert_ptr_equal(poly_broadcast(space, poly_min(space, num(512), a), a), a);
    prints(two, "broadcast(a, b)");
    assert_ptr_equal(poly_broadcast(space, two, b), two);
    assert_true(poly_eval(two, (struct poly_binding[]){{"a", 1}, {"b", 7}}, 2, &v) && v == 7);
    assert_true(poly_eval(two, (struct poly_binding[]){{"a", 1}, {"b", 0}}, 2, &v) && v == 0);
    assert_false(poly_eval(two, (struct poly_binding[]){{"a", 2}, {"b", 7}}, 2, &v));
}

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* Every made-up symbol against plain arithmetic, for sizes from 0 on. */
static void test_values_agree_with_arithmetic(void **state)
{
    (void)state;
    for (int64_t k = 1; k <= 6; k++) {
        for (int64_t c = -9; c <= 9; c += 3) {
            const struct poly *x = sym("x"), *p = add(mul(num(k), x), num(c));
            const struct poly *down = poly_div_floor(space, p, num(4)), *up = poly_div_ceil(space, p, num(4));
            const struct poly *back = poly_div_floor(space, p, num(-3)),
                              *nested = poly_div_floor(space, add(down, num(c)), num(3));
            const struct poly *least = poly_min(space, p, add(x, num(3))), *most = poly_max(space, p, num(5));
            const struct poly *rest = poly_mod(space, p, num(5));
            for (int64_t v = 0; v < 40; v++) {
                struct poly_binding b = {"x", v};
                int64_t y = k * v + c, got;
                assert_true(poly_eval(down, &b, 1, &got) && got == floor_div(y, 4));
                assert_true(poly_eval(up, &b, 1, &got) && got == -floor_div(-y, 4));
                assert_true(poly_eval(back, &b, 1, &got) && got == floor_div(y, -3));
                assert_true(poly_eval(nested, &b, 1, &got) && got == floor_div(floor_div(y, 4) + c, 3));
                assert_true(poly_eval(least, &b, 1, &got) && got == (y < v + 3 ? y : v + 3));
                assert_true(poly_eval(most, &b, 1, &got) && got == (y > 5 ? y : 5));
                assert_true(poly_eval(rest, &b, 1, &got) && got == ((y % 5) + 5) % 5);
                assert_ptr_equal(poly_bind(space, nested, &b, 1), num(floor_div(floor_div(y, 4) + c, 3)));
            }
        }
    }
}

static void test_bounds_hold(void **state)
{
    (void)state;
    const struct poly *x = sym("x"), *p = poly_sub(space, poly_min(space, num(9), x), num(2));
    struct poly_range r = poly_range(p);
    assert_int_equal(r.least, -2);
    assert_int_equal(r.most, 7);
    assert_int_equal(poly_range(x).least, 0);
    assert_true(poly_range(x).most == INT64_MAX);
    assert_true(poly_range(NULL).least == INT64_MIN);
    assert_int_equal(poly_range(poly_div_floor(space, x, num(2))).least, 0);
}

static void test_evaluation_needs_all(void **state)
{
    (void)state;
    const struct poly *p = mul(sym("x"), sym("y")), *part;
    struct poly_binding b[] = {{"x", 3}, {"y", INT64_MAX}};
    int64_t v;
    assert_false(poly_eval(p, b, 1, &v));
    assert_false(poly_eval(p, b, 2, &v)); /* too large */
    assert_false(poly_eval(NULL, b, 2, &v));
    part = poly_bind(space, p, b, 1);
    prints(part, "3*y");
    assert_false(poly_eval(poly_div_floor(space, sym("x"), sym("z")),
                           (struct poly_binding[]){{"x", 1}, {"z", 0}}, 2, &v));
}

/* A name that looks like a made-up symbol is not it. */
static void test_names_do_not_clash(void **state)
{
    (void)state;
    const struct poly *made = poly_div_floor(space, sym("h"), num(2)), *named = sym("floor(h/2)");
    assert_ptr_not_equal(made, named);
    prints(add(made, named), "floor(h/2) + floor(h/2)");
}

/* Text that doubles with each step must not grow without end. */
static void test_growth_is_bounded(void **state)
{
    (void)state;
    const struct poly *p = sym("x");
    for (int i = 0; i < 200 && p; i++) p = poly_div_floor(space, add(mul(p, p), p), num(3));
    assert_null(p);
    assert_int_equal(poly_space_status(space, NULL), TARE_OK);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    tare_status s = TARE_NOMEM;
    for (long n = 0; s == TARE_NOMEM && n < 1000; n++) {
        struct poly_space *small = NULL;
        mem_fail_after(n);
        s = poly_space_new(&small, NULL);
        if (s == TARE_OK) {
            const struct poly *h = poly_symbol(small, "h");
            const struct poly *p =
                poly_min(small, poly_div_floor(small, h, poly_int(small, 2)), poly_symbol(small, "w"));
            s = poly_space_status(small, NULL);
            assert_true(s == TARE_NOMEM || p);
        }
        mem_fail_after(-1);
        poly_space_free(small);
    }
    assert_int_equal(s, TARE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_form, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_goes_through, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_long_is_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exact_quotients, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rounded_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rounded_forms_share, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broadcast, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_agree_with_arithmetic, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounds_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_evaluation_needs_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_do_not_clash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_growth_is_bounded, setup, teardown),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("poly", tests, NULL, NULL);
}
