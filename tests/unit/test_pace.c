/* SPDX-License-Identifier: MIT
 * test_pace.c - how often a sampler looks, for rounds of known cost: the budget holds, a dear one starves nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sample/pace.h"

static const uint64_t second = 1000000000;

struct seen {
    uint64_t rounds, used, longest;
};

/* `seconds` of rounds that cost `each`, every `nth` of them `dear` instead, and the first of all `first`. */
struct made {
    double seconds;
    uint64_t each, first, dear, nth;
};

static struct seen look(struct made m)
{
    struct pace p = {.hz = 100, .budget = 0.01};
    struct seen s = {0, 0, 0};
    for (uint64_t now = second; (double)now < (1 + m.seconds) * 1e9; s.rounds++) {
        uint64_t used = m.nth && s.rounds % m.nth == m.nth - 1 ? m.dear : m.each;
        if (s.rounds == 0 && m.first) used = m.first;
        uint64_t step = pace_step(&p, used, now);
        s.used += used;
        if (step > s.longest) s.longest = step;
        now += step;
    }
    return s;
}

static void test_cheap_is_as_asked(void **state)
{
    (void)state;
    assert_in_range(look((struct made){.seconds = 10, .each = 50000}).rounds, 999, 1001);
}

/* 1 ms a round of which 1 % allows ten a second; 50 ms, of which it allows one in five seconds. */
static void test_dear_keeps_the_budget(void **state)
{
    (void)state;
    struct seen s = look((struct made){.seconds = 100, .each = 1000000});
    assert_in_range(s.used, second * 99 / 100,
                    second * 108 / 100); /* what the first seconds may take is extra */
    s = look((struct made){.seconds = 500, .each = 50000000});
    assert_in_range(s.used, second * 48 / 10, second * 53 / 10);
}

static void test_a_long_beginning_starves_nothing(void **state)
{
    (void)state;
    struct seen s = look((struct made){.seconds = 5, .each = 100000, .first = second});
    assert_in_range(s.rounds, 490, 510);
    s = look((struct made){.seconds = 5, .each = 1000000, .first = second});
    assert_true(s.rounds > 50); /* ten a second, and those of the beginning */
    assert_true(s.longest < second / 2);
}

/* Once in a hundred rounds a hundred times as dear: seen as three, and there is no hole. */
static void test_what_is_met_once_makes_no_hole(void **state)
{
    (void)state;
    struct seen s = look((struct made){.seconds = 100, .each = 1000000, .dear = 100000000, .nth = 100});
    assert_true(s.rounds > 900);
    assert_true(s.longest < second / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cheap_is_as_asked),
        cmocka_unit_test(test_dear_keeps_the_budget),
        cmocka_unit_test(test_a_long_beginning_starves_nothing),
        cmocka_unit_test(test_what_is_met_once_makes_no_hole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
