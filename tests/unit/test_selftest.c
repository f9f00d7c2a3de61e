/* SPDX-License-Identifier: MIT
 * test_selftest.c - the summary of comparisons of a thing with itself, against values known by other means, and its
 * text form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/compare/selftest.h"
#include "core/mem.h"
#include "subject/subject.h"

static const struct paired_rule rule = PAIRED_RULE_INIT;
#define HOST "h1-0123456789abcdef"
#define NOW INT64_C(1794732695)

static bool near(double a, double b, double slack)
{
    return fabs(a - b) <= slack;
}

/* Clopper and Pearson's own: 0 of 10, 1 of 20, 10 of 10. */
static void test_share(void **state)
{
    double lo, hi;
    (void)state;
    selftest_share(0, 10, 0.95, &lo, &hi);
    assert_true(lo == 0 && near(hi, 0.30850, 1e-5));
    selftest_share(1, 20, 0.95, &lo, &hi);
    assert_true(near(lo, 0.0012651, 1e-6) && near(hi, 0.2487328, 1e-6));
    selftest_share(10, 10, 0.95, &lo, &hi);
    assert_true(near(lo, 0.69150, 1e-5) && hi == 1);
    selftest_share(50, 1000, 0.95, &lo, &hi);
    assert_true(near(lo, 0.0373354, 1e-6) && near(hi, 0.0653905, 1e-6));
}

static struct selftest two_kinds(void)
{
    struct selftest s = {.measured = "2026-11-15T08:40:00Z", .spent_s = 60, .n_kinds = 2};
    snprintf(s.kind[0].name, sizeof s.kind[0].name, "1 ms in a process");
    snprintf(s.kind[1].name, sizeof s.kind[1].name, "command of 10 ms");
    s.kind[0].unit_s = 0.001;
    s.kind[1].unit_s = 0.01;
    return s;
}

static struct selftest_trial trial(size_t kind, enum paired_verdict v, double spent_s, double error)
{
    struct selftest_trial t = {.kind = kind, .verdict = v, .spent_s = spent_s};
    t.by[PAIRED_WALL] = (struct selftest_seen){error, 10 * error, NAN};
    t.by[PAIRED_CPU] = (struct selftest_seen){error / 2, 5 * error, 0.001};
    return t;
}

static void test_sum(void **state)
{
    const double wanted = paired_error_wanted(&rule);
    struct selftest s = two_kinds();
    struct selftest_trial t[] = {trial(0, PAIRED_SAME, 4, 2 * wanted), trial(0, PAIRED_SAME, 4, 2 * wanted),
                                 trial(0, PAIRED_REGRESSED, 4, 2 * wanted),
                                 trial(1, PAIRED_INCONCLUSIVE, 1, wanted / 4),
                                 trial(1, PAIRED_IMPROVED, 9, INFINITY)};
    (void)state;
    t[3].contended = true;
    assert_int_equal(selftest_sum_up(&s, t, 5, &rule, NULL), TARE_OK);
    assert_true(s.comparisons == 5 && s.regressed == 1 && s.improved == 1 && s.inconclusive == 1);
    assert_true(s.contended == 1);
    assert_true(s.kind[0].comparisons == 3 && s.kind[0].alarms == 1 && s.kind[1].alarms == 1);
    const struct selftest_times *wall = &s.kind[0].by[PAIRED_WALL], *cpu = &s.kind[0].by[PAIRED_CPU];
    assert_true(near(wall->sd_pair, 20 * wanted, 1e-12) && isnan(wall->sd_launch));
    assert_true(near(cpu->sd_launch, 0.001, 1e-12));
    assert_true(near(wall->error_1s, 4 * wanted, 1e-12));
    assert_true(near(wall->detect_s, 16, 1e-9)); /* twice the error after 4 s: 4 times as long */
    assert_true(near(cpu->detect_s, 4, 1e-9));   /* just enough, and not less than it took */
    assert_true(near(selftest_mde(wall, 16, &rule), rule.detect, 1e-12));
    assert_true(selftest_mde(wall, 1, &rule) > selftest_mde(wall, 10, &rule));
    /* no comparison ends earlier than the shortest; one without an error says nothing */
    assert_true(near(s.kind[1].by[PAIRED_WALL].detect_s, 1, 1e-9));
}

static void test_alarming(void **state)
{
    struct selftest_trial t[40];
    struct buf text = BUF_INIT;
    struct selftest s = two_kinds();
    (void)state;
    for (size_t i = 0; i < 40; i++) t[i] = trial(i % 2, PAIRED_SAME, 1, 0.01);
    assert_int_equal(selftest_sum_up(&s, t, 40, &rule, NULL), TARE_OK);
    assert_true(s.rate_lo == 0 && near(s.rate_hi, 0.0881, 1e-4));
    assert_false(selftest_alarming(&s, &rule));
    selftest_sentence(&s, &rule, &text);
    assert_non_null(strstr(text.data, "0 of 40"));
    assert_null(strstr(text.data, "do not trust"));
    t[1].verdict = PAIRED_REGRESSED; /* one is no proof */
    assert_int_equal(selftest_sum_up(&s, t, 40, &rule, NULL), TARE_OK);
    assert_false(selftest_alarming(&s, &rule));
    for (size_t i = 0; i < 6; i++) t[i].verdict = i % 2 ? PAIRED_REGRESSED : PAIRED_IMPROVED;
    assert_int_equal(selftest_sum_up(&s, t, 40, &rule, NULL), TARE_OK);
    assert_true(selftest_alarming(&s, &rule));
    buf_clear(&text);
    selftest_sentence(&s, &rule, &text);
    assert_non_null(strstr(text.data, "6 of 40"));
    assert_non_null(strstr(text.data, "do not trust"));
    buf_release(&text);
}

static void test_no_memory(void **state)
{
    struct selftest_trial t = trial(0, PAIRED_SAME, 1, 0.01);
    struct selftest s = two_kinds();
    struct subject *spin = NULL;
    struct instance *i = NULL;
    (void)state;
    mem_fail_after(0);
    assert_int_equal(selftest_sum_up(&s, &t, 1, &rule, NULL), TARE_NOMEM);
    mem_fail_after(0);
    assert_int_equal(subject_open_spin(&spin, 10, NULL), TARE_NOMEM);
    mem_fail_after(-1);
    assert_int_equal(subject_open_spin(&spin, 10, NULL), TARE_OK);
    mem_fail_after(0);
    assert_int_equal(spin->ops->prepare(spin, NULL, NULL, &i, NULL), TARE_NOMEM);
    mem_fail_after(-1);
    subject_close(spin);
}

/* ---- text ---- */

static struct selftest summed(void)
{
    struct selftest s = two_kinds();
    struct selftest_trial t[] = {trial(0, PAIRED_SAME, 4, 0.01), trial(1, PAIRED_REGRESSED, 4, 0.02)};
    assert_int_equal(selftest_sum_up(&s, t, 2, &rule, NULL), TARE_OK);
    return s;
}

static void test_kept(void **state)
{
    struct buf text = BUF_INIT;
    struct selftest s = summed(), back;
    (void)state;
    selftest_write(&s, HOST, NOW, &text);
    assert_true(selftest_read(&back, HOST, NOW + 60, text.data, text.len));
    assert_string_equal(back.measured, s.measured);
    assert_true(back.comparisons == 2 && back.regressed == 1 && back.n_kinds == 2);
    assert_true(near(back.rate_hi, s.rate_hi, 1e-12));
    assert_string_equal(back.kind[1].name, "command of 10 ms");
    assert_true(isnan(back.kind[0].by[PAIRED_WALL].sd_launch));
    assert_true(near(back.kind[1].by[PAIRED_CPU].detect_s, s.kind[1].by[PAIRED_CPU].detect_s, 1e-6));
    assert_false(selftest_read(&back, "h1-other", NOW, text.data, text.len));
    assert_false(selftest_read(&back, HOST, NOW - 1, text.data, text.len)); /* from the future */
    assert_false(selftest_read(&back, HOST, NOW + 31 * 86400, text.data, text.len));
    buf_release(&text);
}

/* Cut anywhere it is damaged, but for a whole last line: then a kind is missing, which cannot be seen. */
static void test_damaged(void **state)
{
    struct buf text = BUF_INIT;
    struct selftest s = summed(), back;
    (void)state;
    selftest_write(&s, HOST, NOW, &text);
    for (size_t n = 0; n < text.len; n++)
        if (n == 0 || text.data[n - 1] != '\n') assert_false(selftest_read(&back, HOST, NOW, text.data, n));
    char *all = strstr(text.data, "all ");
    assert_non_null(all);
    all[4] = '-';
    assert_false(selftest_read(&back, HOST, NOW, text.data, text.len));
    buf_release(&text);
    static const char *const bad[] = {
        "all 60 0 0 0 0 0\nkind 1 0 0.001 1 1 1 1 1 1 1 1 x\n",   /* no comparison */
        "all 60 2 2 1 0 0\nkind 1 0 0.001 1 1 1 1 1 1 1 1 x\n",   /* more alarms than comparisons */
        "all 60 2.5 0 0 0 0\nkind 1 0 0.001 1 1 1 1 1 1 1 1 x\n", /* half a comparison */
        "all 60 2 0 0 0 0\nkind 1 0 0.001 1 1 1 1 1 1 1 1e99 x\n",
        "all 60 2 0 0 0 0\nkind 1 0 0.001 1 1 1 1 1 1 1 1 x\033[31m\n",
        "all 60 2 0 0 0 0\nkind 1 0 0.001 1 1 1 1 1 1 1 1\n",
        "all 60 2 0 0 0 0\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char whole[512];
        int n = snprintf(whole, sizeof whole,
                         "tare.selftest/1\nhost " HOST "\nat 1794732695\nmeasured 2026-11-15T08:40:00Z\n%s",
                         bad[i]);
        if (selftest_read(&back, HOST, NOW, whole, (size_t)n)) fail_msg("taken: %s", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),     cmocka_unit_test(test_sum),  cmocka_unit_test(test_alarming),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_kept), cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
