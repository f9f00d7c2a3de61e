/* SPDX-License-Identifier: MIT
 * test_top_term.c - the terminal lent to another program and taken again, on a pty. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

#include "top/top_term.h"

static bool shows_keys(int fd) /* as a shell's terminal does */
{
    struct termios t;
    assert_int_equal(tcgetattr(fd, &t), 0);
    return t.c_lflag & ECHO;
}

static void test_lend(void **state)
{
    (void)state;
    static const struct {
        const char *script, *said;
    } cases[] = {
        {"exit 0", ""},
        {"exec 0<&1; stty -a | grep -q ' echo ' || echo 'not as it was' >&2", ""},
        {"echo why >&2; echo more >&2; exit 3", "why"},
        {"exit 7", "-c: ended with exit code 7"},
        {"kill -9 $$", "-c: ended by signal 9"},
        {"kill -TERM $$", "-c: ended by signal 15"},
    };
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY), out = dup(STDOUT_FILENO);
    assert_true(slave >= 0 && out >= 0 && shows_keys(slave));
    assert_int_equal(top_term_enter(slave, slave, NULL), TARE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[100] = "?", sh[] = "/bin/sh", option[] = "-c", script[100];
        char *const argv[] = {sh, option, script, NULL};
        strcpy(script, cases[i].script);
        assert_false(shows_keys(slave));
        dup2(slave, STDOUT_FILENO);
        tare_status s = top_term_lend(argv, said, sizeof said, NULL);
        dup2(out, STDOUT_FILENO);
        assert_int_equal(s, TARE_OK);
        assert_string_equal(said, cases[i].said);
    }
    top_term_leave();
    assert_true(shows_keys(slave));
    close(out);
    close(slave);
    close(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lend)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
