/* SPDX-License-Identifier: MIT
 * test_py_wire.c - replies of the Python process, and the process behind them: what is no reply is refused, an end is
 * explained, patience has its limits, lanes do not mix. The processes here are small shell scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/clock.h"
#include "core/mem.h"
#include "subject/peer.h"
#include "subject/py_wire.h"

/* ---- bytes ---- */

static size_t put_reply(char *to, struct py_reply head, const void *rest, size_t n)
{
    memcpy(to, &head, sizeof head);
    if (n) memcpy(to + sizeof head, rest, n);
    return sizeof head + n;
}

static void replies_are_checked(void **state)
{
    (void)state;
    static uint64_t numbers[PY_TIMES_MAX];
    char bytes[256];
    struct py_reply r;
    tare_error err = TARE_ERROR_INIT;
    const uint64_t times[] = {11, 22, 33};
    size_t n = put_reply(bytes, (struct py_reply){0, 3, 5, 1}, times, sizeof times);
    assert_int_equal(py_reply_read(bytes, n, &r, numbers, &err), TARE_OK);
    assert_int_equal(numbers[2], 33);
    assert_int_equal(r.value, 5);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(py_reply_read(bytes, cut, &r, numbers, &err), TARE_FORMAT);
    n = put_reply(bytes, (struct py_reply){0, 4, 0, 0}, times, sizeof times);
    assert_int_equal(py_reply_read(bytes, n, &r, numbers, &err), TARE_FORMAT);
    n = put_reply(bytes, (struct py_reply){0, UINT32_MAX, 0, 0}, times, sizeof times);
    assert_int_equal(py_reply_read(bytes, n, &r, numbers, &err), TARE_FORMAT);
    n = put_reply(bytes, (struct py_reply){TARE_INVALID, 4, 0, 0}, "nope and more", 13);
    assert_int_equal(py_reply_read(bytes, n, &r, numbers, &err), TARE_INVALID);
    assert_string_equal(err.text, "nope");
    n = put_reply(bytes, (struct py_reply){-99, 1000, 0, 0}, "x", 1);
    assert_int_equal(py_reply_read(bytes, n, &r, numbers, &err), TARE_DENIED);
}

static void greetings_are_checked(void **state)
{
    (void)state;
    char bytes[256];
    struct py_hello h;
    tare_error err = TARE_ERROR_INIT;
    static const char texts[] = "encode\0/x/embed.py\0003.11.7";
    size_t n = put_reply(bytes, (struct py_reply){.value = PY_PROTOCOL}, texts, sizeof texts);
    assert_int_equal(py_hello_read(bytes, n, &h, &err), TARE_OK);
    assert_string_equal(h.name, "encode");
    assert_string_equal(h.path, "/x/embed.py");
    assert_string_equal(h.version, "3.11.7");
    assert_int_equal(py_hello_read(bytes, n - 1, &h, &err), TARE_FORMAT);
    n = put_reply(bytes, (struct py_reply){.value = PY_PROTOCOL + 1}, texts, sizeof texts);
    assert_int_equal(py_hello_read(bytes, n, &h, &err), TARE_UNSUPPORTED);
    n = put_reply(bytes, (struct py_reply){.status = TARE_INVALID, .n = 3}, "bad", 3);
    assert_int_equal(py_hello_read(bytes, n, &h, &err), TARE_INVALID);
    assert_string_equal(err.text, "bad");
}

static void states_have_their_words(void **state)
{
    (void)state;
    uint64_t words[PY_STATE_WORDS];
    struct process_state out;
    for (uint64_t i = 0; i < PY_STATE_WORDS; i++) words[i] = i + 100;
    words[8] = 0; /* bytes read: not known */
    py_state_read(words, &out);
    assert_int_equal(out.used.user_ns, 100);
    assert_int_equal(out.used.involuntary_switches, 105);
    assert_true(out.used.migrations.known);
    assert_int_equal(out.used.migrations.v, 107);
    assert_false(out.used.read_bytes.known);
    assert_int_equal(out.rss.v, 113);
    assert_int_equal(out.rss_peak.v, 115);
    assert_true(out.peak_reset);
}

/* ---- processes ---- */

static void start(struct peer *p, const char *line, unsigned lanes)
{
    char shell[] = "/bin/sh", flag[] = "-c", script[200];
    snprintf(script, sizeof script, "%s", line);
    char *argv[] = {shell, flag, script, NULL};
    struct spawn_options o = {.exe = shell, .argv = argv, .env = environ, .n_fds = lanes, .out = -1};
    tare_error err = TARE_ERROR_INIT;
    *p = (struct peer)PEER_INIT("the worker");
    if (peer_start(p, o, &err) < 0) fail_msg("%s", err.text);
}

static void an_end_is_explained(void **state)
{
    (void)state;
    static const struct {
        const char *line, *why;
    } rows[] = {{"exit 7", "the worker ended early with exit code 7"},
                {"kill -9 $$", "the worker was killed by signal 9 (Killed)"}};
    for (size_t i = 0; i < 2; i++) {
        struct peer p;
        char bytes[8];
        struct peer_packet packet = {bytes, sizeof bytes, 0};
        tare_error err = TARE_ERROR_INIT;
        start(&p, rows[i].line, 2);
        assert_int_equal(peer_hear(&p, 1, &(struct peer_patience){0}, &packet, &err), TARE_DENIED);
        assert_string_equal(err.text, rows[i].why);
        assert_false(peer_alive(&p));
        assert_int_equal(peer_hear(&p, 0, &(struct peer_patience){0}, &packet, &err), TARE_DENIED);
        assert_string_equal(err.text, rows[i].why);
        peer_stop(&p);
    }
}

static void patience_ends(void **state)
{
    (void)state;
    struct peer p;
    char bytes[8];
    volatile sig_atomic_t stop = 1;
    struct peer_packet packet = {bytes, sizeof bytes, 0};
    struct peer_patience short_one = {.timeout_ns = 10000000}, interrupted = {.interrupted = &stop};
    tare_error err = TARE_ERROR_INIT;
    start(&p, "exec sleep 600", 1);
    assert_int_equal(peer_hear(&p, 0, &short_one, &packet, &err), TARE_DENIED);
    assert_string_equal(err.text, "no answer after 0.01 s");
    assert_int_equal(peer_hear(&p, 0, &interrupted, &packet, &err), TARE_DENIED);
    assert_string_equal(err.text, "interrupted");
    uint64_t before = clock_raw_ns();
    peer_kill(&p); /* at once, though it sleeps */
    assert_true(clock_raw_ns() - before < UINT64_C(60000000000));
    assert_false(peer_alive(&p));
    peer_stop(&p);
}

static void lanes_are_its_descriptors_from_3_on(void **state)
{
    (void)state;
    struct peer p;
    char bytes[32] = "";
    struct peer_packet packet = {bytes, sizeof bytes - 1, 0};
    tare_error err = TARE_ERROR_INIT;
    start(&p, "echo third >&5; echo first >&3; read x <&4", 3);
    assert_int_equal(peer_hear(&p, 0, &(struct peer_patience){0}, &packet, &err), TARE_OK);
    assert_memory_equal(bytes, "first\n", 6);
    assert_int_equal(peer_hear(&p, 2, &(struct peer_patience){0}, &packet, &err), TARE_OK);
    assert_memory_equal(bytes, "third\n", 6);
    assert_false(peer_say(&p, 3, "x", 1));
    peer_stop(&p);
}

static void no_program_is_no_process(void **state)
{
    (void)state;
    char name[] = "/nonexistent/python";
    char *argv[] = {name, NULL};
    struct spawn_options o = {.exe = name, .argv = argv, .env = environ, .n_fds = 1, .out = -1};
    struct peer p = PEER_INIT("the worker");
    tare_error err = TARE_ERROR_INIT;
    long live = mem_live_blocks();
    assert_int_equal(peer_start(&p, o, &err), TARE_IO);
    assert_non_null(strstr(err.text, "/nonexistent/python"));
    for (long n = 0; n < 2; n++) {
        mem_fail_after(n);
        assert_int_equal(peer_start(&p, o, &err), TARE_NOMEM);
        mem_fail_after(-1);
    }
    assert_int_equal(mem_live_blocks(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_checked),         cmocka_unit_test(greetings_are_checked),
        cmocka_unit_test(states_have_their_words),     cmocka_unit_test(an_end_is_explained),
        cmocka_unit_test(patience_ends),               cmocka_unit_test(lanes_are_its_descriptors_from_3_on),
        cmocka_unit_test(no_program_is_no_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
