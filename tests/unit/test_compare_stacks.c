/* SPDX-License-Identifier: MIT
 * test_compare_stacks.c - shares of made-up functions on two sides: what gained, what lost, what is noise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/compare/compare_stacks.h"
#include "core/rng.h"
#include "core/stats.h"

enum { FUNCTIONS = 6, RUNS_MOST = 4 };
static const char *const names[FUNCTIONS] = {"main", "parse", "encode", "send", "log", "rest"};

struct made {
    struct stacks_function functions[FUNCTIONS];
    struct compare_stacks_run run;
};

/* Looks at a program whose functions have these shares of its own time: `looks` of them at random. */
static void make(struct made *m, const double share[FUNCTIONS], unsigned looks, struct rng *rng)
{
    unsigned of[FUNCTIONS] = {0};
    for (unsigned i = 0; i < looks; i++) {
        double x = rng_unit(rng);
        int f = 0;
        while (f < FUNCTIONS - 1 && x >= share[f]) x -= share[f++];
        of[f]++;
    }
    *m = (struct made){.run.path = "a.tare"};
    for (int f = 0; f < FUNCTIONS; f++) {
        struct stacks_function *to = &m->functions[f];
        double own = of[f] / (double)looks;
        *to = (struct stacks_function){.name = names[f], .file = "/srv/a.py"};
        to->own = stats_share_interval(own, looks, 0.95);
        to->total = stats_share_interval(f ? own : 1, looks, 0.95);
    }
    m->run.profile = (struct stacks_profile){
        .functions = m->functions, .n = FUNCTIONS, .n_eff = looks, .sum_ns = looks * 1e7};
}

struct sides {
    struct made base[RUNS_MOST], new_[RUNS_MOST];
    struct compare_stacks_run b[RUNS_MOST], n[RUNS_MOST];
};

static void compare(struct comparison *c, struct sides *s, size_t n)
{
    struct compare_stacks in = {.time = "cpu",
                                .rules = {.rule = BETWEEN_RULE_INIT, .measures = stacks_measures}};
    for (size_t i = 0; i < n; i++) {
        s->b[i] = s->base[i].run;
        s->n[i] = s->new_[i].run;
    }
    in.side[PAIR_A] = (struct compare_stacks_side){s->b, n};
    in.side[PAIR_B] = (struct compare_stacks_side){s->n, n};
    assert_int_equal(comparison_init(c, "stacks", NULL), TARE_OK);
    assert_int_equal(compare_stacks(c, &in, NULL), TARE_OK);
}

static const struct comparison_metric *row(const struct comparison *c, const char *name)
{
    const struct comparison_case *all = c->cases.at[0];
    for (size_t i = 0; i < all->metrics.n; i++)
        if (strcmp(all->metrics.at[i]->metric, name) == 0) return all->metrics.at[i];
    return NULL;
}

static bool alarms(const struct comparison *c)
{
    for (size_t i = 0; i < c->cases.at[0]->metrics.n; i++) {
        const char *v = c->cases.at[0]->metrics.at[i]->verdict;
        if (strcmp(v, "regressed") == 0 || strcmp(v, "improved") == 0) return true;
    }
    return false;
}

static const double usual[FUNCTIONS] = {0.1, 0.3, 0.2, 0.05, 0.05, 0.3};

/* 60 pairs, one run a side or three: the alarms are as rare as alpha allows. */
static void the_same_program_raises_no_alarm(void **state)
{
    struct sides s;
    struct rng rng;
    unsigned wrong = 0;
    (void)state;
    rng_seed(&rng, 5);
    for (unsigned i = 0; i < 60; i++) {
        struct comparison c;
        size_t n = i % 2 ? 3 : 1;
        for (size_t k = 0; k < n; k++) {
            make(&s.base[k], usual, 400, &rng);
            make(&s.new_[k], usual, 400, &rng);
        }
        compare(&c, &s, n);
        wrong += alarms(&c);
        comparison_release(&c);
    }
    assert_true(wrong <= 3);
}

/* send has 5 % and then 25 % of the time: it gains, also by one run a side; what it is called by does not. */
static void a_function_that_gained_is_found(void **state)
{
    static const double slow[FUNCTIONS] = {0.08, 0.24, 0.16, 0.25, 0.04, 0.23};
    struct sides s;
    struct rng rng;
    unsigned found = 0;
    (void)state;
    rng_seed(&rng, 7);
    for (unsigned i = 0; i < 20; i++) {
        struct comparison c;
        size_t n = i % 2 ? 3 : 1;
        for (size_t k = 0; k < n; k++) {
            make(&s.base[k], usual, 2000, &rng);
            make(&s.new_[k], slow, 2000, &rng);
        }
        compare(&c, &s, n);
        const struct comparison_metric *m = row(&c, "function.own send (a.py)");
        assert_non_null(m);
        assert_string_equal(m->role, "advisory");
        assert_string_equal(m->unit, "%");
        found += strcmp(m->verdict, "regressed") == 0;
        m = row(&c, "function.total main (a.py)");
        assert_true(m && fabs(m->base.value - 100) < 1e-9 && strcmp(m->verdict, "regressed") != 0);
        comparison_release(&c);
    }
    assert_true(found >= 18);
}

/* One run a side, and a change that runs may differ by: no verdict, and why. What only one side has is listed. */
static void what_cannot_be_told_is_said(void **state)
{
    static const double other[FUNCTIONS] = {0.1, 0.36, 0.14, 0, 0.1, 0.3};
    struct sides s;
    struct rng rng;
    struct comparison c;
    (void)state;
    rng_seed(&rng, 9);
    make(&s.base[0], usual, 1000, &rng);
    make(&s.new_[0], other, 1000, &rng);
    compare(&c, &s, 1);
    const struct comparison_metric *m = row(&c, "function.own parse (a.py)");
    assert_non_null(m);
    assert_string_equal(m->verdict, "unverified");
    assert_true(m->why && strstr(m->why, "times as much would tell"));
    assert_null(row(&c, "function.own send (a.py)"));
    assert_true(c.unmatched.n >= 1 && strstr(c.unmatched.at[0]->name, "function.own send (a.py)"));
    comparison_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_program_raises_no_alarm),
        cmocka_unit_test(a_function_that_gained_is_found),
        cmocka_unit_test(what_cannot_be_told_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
