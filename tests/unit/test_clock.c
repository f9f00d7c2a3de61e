/* SPDX-License-Identifier: MIT
 * test_clock.c - clocks never run back, ticks become time by pairs, the fallback works. No absolute times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock.h"

static void spin(uint64_t ns)
{
    uint64_t start = clock_raw_ns();
    while (clock_raw_ns() - start < ns) continue;
}

static void instants_never_run_back(void **state)
{
    (void)state;
    struct instant before = instant_now();
    for (int i = 0; i < 100000; i++) {
        struct instant now = instant_now();
        assert_true(instant_since(now, before).ns >= 0);
        before = now;
    }
    struct instant a = {1000}, b = {400};
    assert_int_equal(instant_since(a, b).ns, 600);
    assert_int_equal(instant_since(b, a).ns, -600);
}

static void the_wall_clock_is_of_this_age(void **state)
{
    (void)state;
    assert_true(clock_unix_ns() > UINT64_C(1600000000) * 1000000000); /* after 2020 */
}

static void detection_says_why_not(void **state)
{
    (void)state;
    struct clock_source s;
    clock_detect(&s, true);
    assert_false(s.tsc);
    assert_true(s.why_not[0] != 0);
    clock_detect(&s, false);
    assert_int_equal(s.tsc, s.why_not[0] == 0);
}

static void ticks_grow(void **state)
{
    (void)state;
    struct clock_source s;
    clock_detect(&s, false);
    if (!s.tsc) skip();
    uint64_t before = clock_tsc();
    spin(100000);
    assert_true(clock_tsc() > before);
    if (!s.tscp) return;
    before = clock_tsc_ordered();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = clock_tsc_ordered();
        assert_true(now >= before);
        before = now;
    }
}

/* The same interval by ticks and by the kernel must agree; the clocks are compared, not judged. */
static void pairs_turn_ticks_into_time(void **state)
{
    (void)state;
    for (int force = 0; force < 2; force++) {
        struct clock_source s;
        struct clock_pair a, b, c;
        clock_detect(&s, force);
        clock_pair_take(&a, &s);
        spin(5000000);
        clock_pair_take(&b, &s);
        spin(5000000);
        clock_pair_take(&c, &s);
        double first = clock_tick_ns(&a, &b), second = clock_tick_ns(&b, &c);
        assert_true(first > 0 && second > 0);
        assert_true(first / second > 0.9 && first / second < 1.1);
        assert_true(b.unix_ns > 0 && a.reserved == 0);
        if (!s.tsc) assert_true(first == 1); /* the fallback's ticks are nanoseconds */
    }
}

static void pairs_too_close_say_nothing(void **state)
{
    (void)state;
    struct clock_pair a = {1000, 1000000, 0, 0, 0}, b = {2000, 1099999, 0, 0, 0};
    assert_true(clock_tick_ns(&a, &b) == 0);
    b.raw_ns = 1100000;
    assert_true(clock_tick_ns(&a, &b) == 100);
    b.ticks = 1000; /* a counter that stood still, or ran back */
    assert_true(clock_tick_ns(&a, &b) == 0);
    b.ticks = 999;
    assert_true(clock_tick_ns(&a, &b) == 0);
    b = (struct clock_pair){2000, 999999, 0, 0, 0};
    assert_true(clock_tick_ns(&a, &b) == 0);
}

static void costs_are_measured(void **state)
{
    (void)state;
    for (int force = 0; force < 2; force++) {
        struct clock_source s;
        struct clock_cost cost;
        memset(&cost, 0, sizeof cost);
        clock_detect(&s, force);
        clock_measure(&cost, &s);
        assert_true(cost.fast_ns > 0 && cost.ordered_ns > 0 && cost.raw_ns > 0 && cost.resolution_ns > 0);
        if (!s.tsc) assert_true(cost.fast_ns == cost.raw_ns && cost.ordered_ns == cost.raw_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instants_never_run_back),    cmocka_unit_test(the_wall_clock_is_of_this_age),
        cmocka_unit_test(detection_says_why_not),     cmocka_unit_test(ticks_grow),
        cmocka_unit_test(pairs_turn_ticks_into_time), cmocka_unit_test(pairs_too_close_say_nothing),
        cmocka_unit_test(costs_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
