/* SPDX-License-Identifier: MIT
 * test_watch.c - the engine of `tare run` without its command line: exit codes, what is said and recorded, where the
 * trace and the document go. Signals, hooks and terminals are in tests/python/test_run.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mem.h"
#include "trace/samples.h"
#include "watch/watch.h"

static char said[4000];

static void hear(void *ctx, enum watch_tone tone, const char *text)
{
    size_t used = strlen(said);
    (void)ctx;
    snprintf(said + used, sizeof said - used, "%s%s\n", tone == WATCH_WARNING ? "warning: " : "", text);
}

/* A program; with a line for a shell. */
static char **command_of(const char *program, const char *line)
{
    static char words[3][100], *argv[4];
    snprintf(words[0], sizeof words[0], "%s", program);
    snprintf(words[1], sizeof words[1], "-c");
    snprintf(words[2], sizeof words[2], "%s", line ? line : "");
    for (size_t i = 0; i < 3; i++) argv[i] = i == 0 || line ? words[i] : NULL;
    return argv;
}

/* One watching from its options to its end. */
static struct watched_once {
    struct run run;
    struct watcher w;
    tare_status status;
    int exit_code;
    tare_error err;
} once;

static void watch_it(struct watch_options *o)
{
    said[0] = 0;
    o->say = hear;
    o->output_dir = "/nowhere";
    o->no_save = true;
    if (!o->interval.ns) o->interval.ns = 20000000;
    memset(&once, 0, sizeof once);
    once.w = (struct watcher)WATCHER_INIT(o);
    assert_int_equal(run_init(&once.run, "run", NULL), TARE_OK);
    once.status = places_choose(&once.w.places, o, &once.run, &once.err);
    if (once.status == TARE_OK) once.status = watch_program(&once.w, &once.run, &once.exit_code, &once.err);
}

static void let_go(void)
{
    watch_release(&once.w);
    run_release(&once.run);
    assert_int_equal(mem_live_blocks(), 0);
}

static void test_exit_codes(void **state)
{
    (void)state;
    struct watch_options o = {.command = command_of("sh", "exit 7")};
    watch_it(&o);
    assert_int_equal(once.status, TARE_OK);
    assert_int_equal(once.exit_code, 7);
    assert_true(once.w.recorded && !once.w.traced);
    assert_string_equal(once.run.subject.name, "sh -c exit 7");
    assert_int_equal(once.run.cases.at[0]->watch.exit_code.v, 7);
    assert_string_equal(said, "");
    let_go();
    o.command = command_of("sh", "kill -9 $$");
    watch_it(&o);
    assert_int_equal(once.exit_code, 128 + 9);
    assert_int_equal(once.run.cases.at[0]->watch.signal.v, 9);
    assert_false(once.run.cases.at[0]->watch.exit_code.known);
    let_go();
}

/* Nothing was run: the reason, a shell's exit code, and no trace. */
static void test_cannot_start(void **state)
{
    (void)state;
    struct watch_options o = {.command = command_of("/nowhere/at-all", NULL),
                              .trace = "/tmp/tare-test-watch-none.tare"};
    watch_it(&o);
    assert_int_equal(once.status, TARE_INVALID);
    assert_int_equal(once.exit_code, 127);
    assert_non_null(strstr(once.err.text, "/nowhere/at-all: no such command"));
    assert_false(once.w.recorded);
    assert_int_equal(access(o.trace, F_OK), -1);
    let_go();
    o.command = command_of("/tmp", NULL);
    watch_it(&o);
    assert_int_equal(once.exit_code, 126);
    assert_non_null(strstr(once.err.text, "a folder"));
    let_go();
}

static void test_alert_is_said_and_recorded(void **state)
{
    (void)state;
    const char *const probes[] = {"process"}, *const alerts[] = {"process.count>0"};
    char path[] = "/tmp/tare-test-watch-XXXXXX";
    struct samples trace = {0};
    int fd = mkstemp(path);
    close(fd);
    unlink(path);
    struct watch_options o = {.command = command_of("sh", "exec sleep 0.4"),
                              .probes = probes,
                              .n_probes = 1,
                              .alerts = alerts,
                              .n_alerts = 1};
    o.no_default_alerts = true;
    o.trace = path;
    watch_it(&o);
    assert_int_equal(once.exit_code, 0);
    assert_non_null(strstr(said, "alert: process.count>0 (process.count is 1"));
    assert_int_equal(once.run.cases.at[0]->watch.alerts.n, 1);
    assert_true(once.w.traced && once.w.samples > 2 && once.w.lost == 0);
    assert_int_equal(samples_load(&trace, path, NULL), TARE_OK);
    assert_int_equal(trace.at_ns.n, once.w.samples);
    samples_release(&trace);
    unlink(path);
    let_go();
}

static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *output, *trace, *expected; /* NULL: refused */
        bool beside;
    } cases[] = {
        {"/x/a.json", NULL, "/x/a.tare", true},   {"/x.y/a", NULL, "/x.y/a.tare", true},
        {"/x/a.json", "/y/b%c", "/y/b%c", false}, {NULL, NULL, "", true},
        {"/x/a.tare", NULL, NULL, true},          {"/x/a", "/x/a", NULL, false},
    };
    struct run run;
    assert_int_equal(run_init(&run, "run", NULL), TARE_OK);
    unsetenv("TARE_TRACE");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watch_options o = {
            .command = command_of("true", NULL), .output = cases[i].output, .trace = cases[i].trace};
        struct watch_places p;
        o.no_save = true;
        tare_status s = places_choose(&p, &o, &run, NULL);
        assert_int_equal(s, cases[i].expected ? TARE_OK : TARE_INVALID);
        if (s != TARE_OK) continue;
        assert_string_equal(p.trace, cases[i].expected);
        assert_int_equal(p.beside, cases[i].beside);
        if (cases[i].trace) assert_string_equal(p.named, "/y/b%%c"); /* as libtare reads it */
    }
    run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_cannot_start),
        cmocka_unit_test(test_alert_is_said_and_recorded),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
