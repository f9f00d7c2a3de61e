/* SPDX-License-Identifier: MIT
 * test_settings.c - tare.yaml: what is read, and what is said of what cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/settings.h"
#include "core/buf.h"
#include "core/mem.h"

static const char FULL[] = "bench:\n"
                           "  budget: 5s\n"
                           "  target: [latency.p95<=100ms, throughput>=50/s]\n"
                           "suite:\n"
                           "  - name: embeddings\n"
                           "    model: minilm.onnx\n"
                           "    batch: [1, 8, 32]\n"
                           "    target: [a<=1ms, b>=2/s]\n"
                           "  - command: ./app --flag\n"
                           "  - {command: [./app, -x], budget: 1s}\n"
                           "  - {synth: mlp, no-arena: yes, ignore-failure: false}\n";

static void expect_argv(const struct suite_entry *e, const char *const *want)
{
    size_t n = 0;
    for (; want[n]; n++) assert_string_equal(e->argv[n], want[n]);
    assert_int_equal(e->n, n);
}

static void test_full(void **state)
{
    (void)state;
    struct settings s = SETTINGS_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(settings_read(&s, "t.yaml", FULL, strlen(FULL), &err), TARE_OK);
    assert_string_equal(settings_get(&s, "bench", "budget")->value, "5s");
    assert_string_equal(settings_get(&s, "bench", "target")->value, "latency.p95<=100ms,throughput>=50/s");
    assert_int_equal(settings_get(&s, "bench", "target")->line, 3);
    assert_null(settings_get(&s, "bench", "nothing"));
    assert_null(settings_get(&s, "report", "budget"));
    assert_int_equal(s.suite.n, 4);
    assert_string_equal(s.suite.items[0].name, "embeddings");
    expect_argv(&s.suite.items[0], (const char *[]){"--batch=1,8,32", "--target=a<=1ms", "--target=b>=2/s",
                                                    "minilm.onnx", NULL});
    expect_argv(&s.suite.items[1], (const char *[]){"--shell", "--", "./app --flag", NULL});
    expect_argv(&s.suite.items[2], (const char *[]){"--budget=1s", "--", "./app", "-x", NULL});
    expect_argv(&s.suite.items[3],
                (const char *[]){"--no-arena", "--no-ignore-failure", "--synth=mlp", NULL});
    assert_int_equal(s.suite.items[3].n_options, 2);
    settings_release(&s);
}

static void expect_error(const char *text, const char *part)
{
    struct settings s = SETTINGS_INIT;
    tare_error err = TARE_ERROR_INIT;
    long before = mem_live_blocks();
    assert_int_equal(settings_read(&s, "t.yaml", text, strlen(text), &err), TARE_INVALID);
    if (!strstr(err.text, part)) fail_msg("'%s' does not say '%s'", err.text, part);
    assert_int_equal(mem_live_blocks(), before);
}

static void test_errors(void **state)
{
    (void)state;
    expect_error("bench: [1\n", "t.yaml:");
    expect_error("- a\n", "t.yaml:1: expected `bench:`");
    expect_error("bench: 7\n", "t.yaml:1: expected options");
    expect_error("bench:\n  a: {b: c}\n", "t.yaml:2: expected a value");
    expect_error("suite: x\n", "t.yaml:1: suite: expected a list");
    expect_error("suite:\n  - x\n", "t.yaml:2: suite: expected");
    expect_error("suite:\n  - name: a\n", "t.yaml:2: names nothing to measure");
    expect_error("suite:\n  - model: a\n    command: b\n", "t.yaml:3: one of model, synth and command");
    expect_error("suite:\n  - model: a\n    batch: [[1]]\n", "t.yaml:3: expected a single value");
    expect_error("bench:\n  \"a\\0b\": 1\n", "t.yaml:2: expected the name of an option");
}

/* libyaml takes minutes for each of these; a test that hangs has failed. */
static void test_bombs(void **state)
{
    (void)state;
    static const char *const units[][2] = {{"[", "t.yaml:1: nested too deeply"},
                                           {"{a: ", "t.yaml:1: nested too deeply"},
                                           {"- ", "t.yaml:1: nested too deeply"},
                                           {"[#]\n", "t.yaml:33: nested too deeply"},
                                           {"- &a 1\n", "too many anchors"},
                                           {"- 1\n", "too many settings"},
                                           {"- 1234567890123456789012345678901234567890\n", "larger than"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct buf text = BUF_INIT;
        for (int k = 0; k < 100100; k++) buf_add_str(&text, units[i][0]);
        expect_error(text.data, units[i][1]);
        buf_release(&text);
    }
}

static void test_empty_is_fine(void **state)
{
    (void)state;
    struct settings s = SETTINGS_INIT;
    assert_int_equal(settings_read(&s, "t.yaml", "bench:\n", 7, NULL), TARE_OK);
    assert_int_equal(s.items.n, 0);
    settings_release(&s);
    assert_int_equal(settings_read(&s, "t.yaml", "# nothing\n", 10, NULL), TARE_OK);
    settings_release(&s);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct settings s = SETTINGS_INIT;
        mem_fail_after(n);
        tare_status status = settings_read(&s, "t.yaml", FULL, strlen(FULL), NULL);
        mem_fail_after(-1);
        settings_release(&s);
        assert_int_equal(mem_live_blocks(), before);
        if (status == TARE_OK) break;
        assert_int_equal(status, TARE_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_empty_is_fine),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
