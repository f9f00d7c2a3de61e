/* SPDX-License-Identifier: MIT
 * test_term.c - when there is colour, how wide text is, and that text from outside cannot steer it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/term.h"

static int open_terminal(int *other)
{
    *other = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(*other >= 0 && grantpt(*other) == 0 && unlockpt(*other) == 0);
    int fd = open(ptsname(*other), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0);
    return fd;
}

static struct term detect(int fd, struct term_env env)
{
    struct term t;
    term_detect(&t, fd, &env);
    return t;
}

static void test_detect(void **state)
{
    (void)state;
    int other, tty = open_terminal(&other), ends[2];
    struct winsize size = {.ws_col = 133, .ws_row = 40};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(ioctl(tty, TIOCSWINSZ, &size), 0);
    struct term t = detect(tty, (struct term_env){.term = "xterm", .locale = "de_DE.UTF-8"});
    assert_true(t.tty && t.color && t.utf8);
    assert_int_equal(t.width, 133);
    assert_int_equal(detect(tty, (struct term_env){.term = "xterm", .columns = "100"}).width, 100);
    assert_int_equal(detect(tty, (struct term_env){.term = "xterm", .columns = "banana"}).width, 133);
    assert_false(detect(tty, (struct term_env){.term = "dumb"}).color);
    assert_false(detect(tty, (struct term_env){0}).color);
    assert_false(detect(tty, (struct term_env){.term = "xterm", .no_color = "1"}).color);
    assert_true(detect(tty, (struct term_env){.term = "xterm", .no_color = ""}).color); /* empty: not set */
    assert_true(detect(ends[1], (struct term_env){.force_color = "1"}).color);
    assert_false(detect(ends[1], (struct term_env){.force_color = "0"}).color);
    assert_false(detect(ends[1], (struct term_env){.force_color = ""}).color);
    assert_false(detect(ends[1], (struct term_env){.force_color = "1", .no_color = "1"}).color);
    t = detect(ends[1], (struct term_env){.term = "xterm", .columns = "100"});
    assert_false(t.tty || t.color || t.utf8);
    assert_int_equal(t.width, 80);
    assert_false(detect(-1, (struct term_env){.term = "xterm"}).tty);
    close(tty);
    close(other);
    close(ends[0]);
    close(ends[1]);
}

static void test_styles(void **state)
{
    (void)state;
    struct term plain = {0}, color = {.color = true};
    for (int s = TERM_PLAIN; s <= TERM_CYAN; s++) {
        assert_string_equal(term_style(&plain, (enum term_style)s), "");
        assert_int_equal(term_columns(term_style(&color, (enum term_style)s)), 0);
        assert_true(term_style(&color, (enum term_style)s)[0] == '\033');
    }
}

static void test_columns(void **state)
{
    (void)state;
    assert_int_equal(term_columns(""), 0);
    assert_int_equal(term_columns("abc"), 3);
    assert_int_equal(term_columns("a\u00e4\u2588"), 3);
    assert_int_equal(term_columns("\033[1;31mred\033[0m"), 3);
    assert_int_equal(term_columns("\033"), 0); /* cut-off sequences end with the text */
    assert_int_equal(term_columns("\033[12"), 0);
}

static void test_cells(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct term plain = {0}, color = {.color = true};
    term_cell(&out, &plain, TERM_RED, "no", 5);
    term_cell(&out, &plain, TERM_PLAIN, "toolong", 3);
    assert_string_equal(out.data, "no   toolong");
    buf_clear(&out);
    term_cell(&out, &color, TERM_RED, "n\u00f6", 4);
    assert_string_equal(out.data, "\033[31mn\u00f6\033[0m  ");
    buf_clear(&out);
    term_clean(&out, "a\033[2Jb\nc\177\r\u00e4");
    assert_string_equal(out.data, "a?[2Jb?c??\u00e4");
    buf_clear(&out);
    term_clean(&out, "a\xc2\x9b"
                     "2J\u202eb\u2066\xff\u00e4\u6f22");
    assert_string_equal(out.data, "a?2J?b??\u00e4\u6f22");
    buf_release(&out);
}

/* The last gate of every text: our own styles pass where there is colour, nobody else's sequences ever do. */
static void test_whole_answers(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct term plain = {0}, color = {.color = true};
    static const char text[] = "\033[1mhead\033[0m\n\tx\033]0;P\a\xc2\x9b"
                               "2J\u202e\xff\ufeff\u00e4\r\033[41m";
    static const char rest[] = "\n\tx\\x1b]0;P\\x07\\x9b2J\\u202e\ufffd\\ufeff\u00e4\\x0d\\x1b[41m";
    char expected[200];
    snprintf(expected, sizeof expected, "\\x1b[1mhead\\x1b[0m%s", rest);
    term_show(&out, &plain, text, sizeof text - 1);
    assert_string_equal(out.data, expected);
    buf_clear(&out);
    snprintf(expected, sizeof expected, "\033[1mhead\033[0m%s", rest);
    term_show(&out, &color, text, sizeof text - 1);
    assert_string_equal(out.data, expected);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detect),
        cmocka_unit_test(test_styles),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_whole_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
