/* SPDX-License-Identifier: MIT
 * test_progress.c - what the bar shows, that it fits, and that it is silent off a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/progress.h"

static const char *render(struct progress_view v)
{
    static char text[1000];
    struct buf out = BUF_INIT;
    progress_render(&out, &v);
    snprintf(text, sizeof text, "%s", out.data);
    buf_release(&out);
    return text;
}

static void test_render(void **state)
{
    (void)state;
    struct duration ten = {INT64_C(10000000000)};
    assert_string_equal(render((struct progress_view){"work", 25, 100, ten, 60, false, 0, false, 0}),
                        "[##........]   25%  ETA 30s     work");
    assert_string_equal(render((struct progress_view){"work", 0, 100, ten, 46, false, 0, false, 0}),
                        "  0%  work");
    assert_string_equal(render((struct progress_view){"work", 100, 100, ten, 30, false, 0, false, 0}),
                        "100%  work");
    assert_string_equal(render((struct progress_view){"work", 500, 100, ten, 30, false, 0, false, 0}),
                        "100%  work");
    assert_string_equal(render((struct progress_view){"work", 7, 0, ten, 60, false, 0, false, 0}),
                        "work  7  10s");
    assert_string_equal(render((struct progress_view){"w", 1, 11, ten, 22, false, 0, false, 0}),
                        "  9%  ETA 1m40s ");
    assert_string_equal(render((struct progress_view){"w", 1, 1000, ten, 22, false, 0, false, 0}),
                        "  0%  ETA 2h46m ");
    assert_string_equal(
        render((struct progress_view){"a long name of work", 1, 2, ten, 30, false, 0, false, 0}),
        " 50%  ETA 10s     a long name"); /* what is long is cut, and nothing wraps */
    assert_non_null(
        strstr(render((struct progress_view){"w", 50, 100, ten, 80, true, 0, false, 0}), "\u2588\u2591"));
}

/* Planned time: what is left of the plan is the time left, from the first moment, whatever passed meanwhile. An
 * estimate that grows takes nothing back of the bar. */
static void test_render_time(void **state)
{
    (void)state;
    struct duration any = {INT64_C(123456789)};
    uint64_t s = 1000000000;
    assert_string_equal(render((struct progress_view){"w", 0, 90 * s, any, 40, false, 0, true, 0}),
                        "  0%  ETA 1m30s   w");
    assert_string_equal(render((struct progress_view){"w", 30 * s, 120 * s, any, 40, false, 0, true, 0.4}),
                        " 40%  ETA 1m30s   w");
}

static void test_fits(void **state)
{
    (void)state;
    struct duration long_time = {INT64_C(360000000000000)};
    for (unsigned width = 20; width < 200; width++) {
        for (uint64_t done = 0; done <= 50; done += 5) {
            struct progress_view v = {"what it is", done, 50, long_time, width, width % 2, 0, done % 2, 0};
            assert_true(term_columns(render(v)) < width);
        }
    }
}

static void draw(bool tty, char **text)
{
    size_t n;
    struct term t = {.tty = tty, .width = 80};
    FILE *to = open_memstream(text, &n);
    struct progress p = {.to = to, .term = &t};
    progress_at(&p, "work", 1, 100); /* too early: short work shows nothing */
    p.start.ns -= 5000000000u;       /* five seconds ago */
    p.drawn.ns = p.start.ns;
    progress_at(&p, "work", 50, 100);
    progress_at(&p, "work", 51, 100); /* too soon after the last */
    progress_end(&p);
    progress_end(&p);
    fclose(to);
}

/* A bench loads, then its cases take turns, each for less than a bar takes to appear: one bar, whose time counts from
 * when measuring began. It began anew with each case, and so never showed. */
static void test_cases_take_turns_in_one_bar(void **state)
{
    size_t n = 0;
    char *text;
    struct term t = {.tty = true, .width = 80};
    FILE *to = open_memstream(&text, &n);
    struct progress p = {.to = to, .term = &t};
    (void)state;
    progress_at(&p, "loading a", 0, 100);
    p.start.ns -= 8000000000u; /* loading took eight seconds */
    p.drawn.ns -= 8000000000u;
    progress_at(&p, "warming up b", 0, 100);
    for (int i = 1; i <= 4; i++) {
        p.start.ns -= 50000000; /* every 50 ms */
        p.drawn.ns -= 50000000;
        progress_at(&p, i % 2 ? "measuring a" : "measuring b", (uint64_t)i, 100);
    }
    p.drawn.ns -= 1000000000;
    p.start.ns -= 1800000000; /* 2 s for 5 of them */
    progress_at(&p, "measuring a", 5, 100);
    fclose(to);
    assert_non_null(strstr(text, "warming up b"));
    assert_non_null(strstr(text, "measuring b"));
    assert_non_null(strstr(text, "  5%  ETA 38s"));
    free(text);
}

/* A bench of a minute has its bar before its first model is loaded. */
static void test_long_plans_show_at_once(void **state)
{
    size_t n = 0;
    char *text;
    struct term t = {.tty = true, .width = 80};
    (void)state;
    for (int is_long = 0; is_long < 2; is_long++) {
        FILE *to = open_memstream(&text, &n);
        struct progress p = {.to = to, .term = &t};
        progress_time(&p, "loading a", 0, is_long ? 60000000000 : 1000000000);
        fclose(to);
        assert_int_equal(strstr(text, "  0%  ETA 1m00s   loading a") != NULL, is_long);
        free(text);
    }
}

static void test_terminal_only(void **state)
{
    (void)state;
    char *text;
    draw(false, &text);
    assert_string_equal(text, "");
    free(text);
    draw(true, &text);
    assert_true(strncmp(text, "\r\033[K[####", 9) == 0);
    assert_non_null(strstr(text, " 50%  ETA 5s      work\r\033[K"));
    assert_null(strstr(text, "51%"));
    assert_string_equal(text + strlen(text) - 4, "\r\033[K"); /* leaves nothing behind */
    free(text);
}

/* A log gets whole lines without controls, ten seconds apart. */
static void test_lines_in_a_log(void **state)
{
    size_t n = 0;
    char *text;
    struct term t = {.width = 80};
    FILE *to = open_memstream(&text, &n);
    struct progress p = {.to = to, .term = &t};
    (void)state;
    progress_time(&p, "work", 0, 60000000000);
    p.drawn.ns -= 9000000000;
    progress_time(&p, "work", 9000000000, 60000000000);
    p.drawn.ns -= 2000000000;
    progress_time(&p, "work", 12000000000, 60000000000);
    progress_time(&p, "work", 13000000000, 60000000000);
    progress_end(&p);
    fclose(to);
    assert_string_equal(text, "tare: [######........................]   20%  ETA 48s     work\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_render),
        cmocka_unit_test(test_render_time),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_long_plans_show_at_once),
        cmocka_unit_test(test_lines_in_a_log),
        cmocka_unit_test(test_cases_take_turns_in_one_bar),
        cmocka_unit_test(test_terminal_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
