/* SPDX-License-Identifier: MIT
 * test_case_grid.c - lists of values become cases: all combinations, named by what varies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/case_grid.h"

static void fill(struct grid *s)
{
    assert_int_equal(grid_parse_ints(&s->batch, "1,4", NULL), TARE_OK);
    assert_int_equal(grid_parse_ints(&s->seq, "16,64,256", NULL), TARE_OK);
    assert_int_equal(grid_parse_dim(s, "heads=2,3", NULL), TARE_OK);
}
static const struct grid_subject two[] = {{NULL, "fp32", NULL}, {NULL, "int8", NULL}}, one = {0};

static void test_combinations(void **state)
{
    (void)state;
    struct grid s = GRID_INIT;
    struct grid_cases c = {0};
    fill(&s);
    assert_int_equal(grid_build(&s, two, 2, &c, NULL), TARE_OK);
    assert_int_equal(c.cases.n, 2 * 3 * 2 * 2);
    assert_string_equal(c.cases.items[0].name, "batch=1,seq=16,heads=2,variant=fp32");
    assert_string_equal(c.cases.items[1].name, "batch=4,seq=16,heads=2,variant=fp32");
    assert_string_equal(c.cases.items[6].name, "batch=1,seq=16,heads=3,variant=fp32");
    assert_string_equal(c.cases.items[23].name, "batch=4,seq=256,heads=3,variant=int8");
    assert_int_equal(c.cases.items[23].params.dims[0].value, 3);
    assert_true(c.cases.items[0].params.has_neighbours);
    grid_cases_release(&c);
    grid_release(&s);
}

static void test_nothing_asked_is_one_case(void **state)
{
    (void)state;
    struct grid s = GRID_INIT;
    struct grid_cases c = {0};
    assert_int_equal(grid_build(&s, &one, 1, &c, NULL), TARE_OK);
    assert_int_equal(c.cases.n, 1);
    assert_string_equal(c.cases.items[0].name, "default");
    assert_false(c.cases.items[0].params.has_neighbours);
    grid_cases_release(&c);
    grid_release(&s);
}

static void expect_bad(const char *text, const char *part)
{
    struct grid_ints v = {0};
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(grid_parse_ints(&v, text, &err), TARE_INVALID);
    if (!strstr(err.text, part)) fail_msg("'%s': '%s' does not say '%s'", text, err.text, part);
    vec_release(&v.values);
}

static void test_bad_lists(void **state)
{
    (void)state;
    expect_bad("", "separated by commas");
    expect_bad("1,,2", "separated by commas");
    expect_bad("1,x", "'x' is not a whole number");
    expect_bad("1.5", "not a whole number");
    expect_bad("0", "at least 1");
    expect_bad("-3", "at least 1");
    expect_bad("4,4", "4 is named twice");
    expect_bad("99999999999999999999999999", "too large");
    expect_bad("9999999999999999999", "not a whole number");
    struct grid s = GRID_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(grid_parse_dim(&s, "=3", &err), TARE_INVALID);
    assert_int_equal(grid_parse_dim(&s, "n", &err), TARE_INVALID);
    assert_int_equal(grid_parse_dim(&s, "n=1", &err), TARE_OK);
    assert_int_equal(grid_parse_dim(&s, "n=2", &err), TARE_INVALID);
    assert_int_equal(grid_parse_providers(&s, "cpu,,x", &err), TARE_INVALID);
    grid_release(&s);
}

static void test_where_inputs_are(void **state)
{
    (void)state;
    struct grid s = GRID_INIT;
    struct grid_cases c = {0};
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(grid_parse_ios(&s, "host,gpu", NULL), TARE_OK);
    assert_int_equal(grid_parse_providers(&s, "cpu,cuda", NULL), TARE_OK);
    assert_int_equal(grid_parse_ints(&s.batch, "1,8", NULL), TARE_OK);
    assert_int_equal(grid_build(&s, &one, 1, &c, NULL), TARE_OK);
    assert_int_equal(c.cases.n, 6); /* the processor keeps nothing on a GPU */
    assert_string_equal(c.cases.items[0].name, "batch=1,provider=cpu,io=host");
    assert_string_equal(c.cases.items[3].name, "batch=8,provider=cuda,io=host");
    assert_string_equal(c.cases.items[5].name, "batch=8,provider=cuda,io=gpu");
    assert_string_equal(c.cases.items[5].params.io, IO_GPU);
    grid_cases_release(&c);
    c = (struct grid_cases){0};
    assert_int_equal(grid_parse_ios(&s, "gpu", NULL), TARE_OK);
    vec_clear(&s.providers);
    assert_int_equal(grid_build(&s, &one, 1, &c, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "--provider cuda"));
    grid_cases_release(&c);
    assert_int_equal(grid_parse_ios(&s, "gpu,gpu", &err), TARE_INVALID);
    assert_int_equal(grid_parse_ios(&s, "disk", &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "'disk' is neither host nor gpu"));
    grid_release(&s);
}

static void test_a_list_replaces_an_earlier_one(void **state)
{
    (void)state;
    struct grid_ints v = {0};
    assert_int_equal(grid_parse_ints(&v, "1,2,3", NULL), TARE_OK);
    assert_int_equal(grid_parse_ints(&v, "7", NULL), TARE_OK);
    assert_int_equal(v.values.n, 1);
    assert_int_equal(v.values.items[0], 7);
    vec_release(&v.values);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct grid s = GRID_INIT;
        struct grid_cases c = {0};
        fill(&s);
        mem_fail_after(n);
        tare_status status = grid_build(&s, two, 2, &c, NULL);
        mem_fail_after(-1);
        grid_cases_release(&c);
        grid_release(&s);
        assert_int_equal(mem_live_blocks(), before);
        if (status == TARE_OK) break;
        assert_int_equal(status, TARE_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_nothing_asked_is_one_case),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_where_inputs_are),
        cmocka_unit_test(test_a_list_replaces_an_earlier_one),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
