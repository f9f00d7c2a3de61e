/* SPDX-License-Identifier: MIT
 * test_session.c - starting and stopping: options, paths, several sessions in one process, and what a scope that
 * outlives its session does. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace_fixture.h"
#include "analyze/calls/calltree.h"
#include "tare/tare.h"

#include <cmocka.h>

static struct folder here;

static tare_options options(void)
{
    tare_options o = TARE_OPTIONS_INIT;
    o.path = here.trace;
    o.memory_bytes = 8 << 20;
    o.weigh_one_in = 0;
    return o;
}

static struct trace *must_open(const char *path)
{
    struct trace *t = NULL;
    tare_error err = TARE_ERROR_INIT;
    if (trace_open(&t, path, &err) != TARE_OK) fail_msg("%s", err.text);
    return t;
}

static void start(const tare_options *o)
{
    tare_error err = TARE_ERROR_INIT;
    if (tare_start(o, &err) != TARE_OK) fail_msg("%s", err.text);
}

static void stop(void)
{
    tare_error err = TARE_ERROR_INIT;
    if (tare_stop(&err) != TARE_OK) fail_msg("%s", err.text);
}

static void work(int n)
{
    for (int i = 0; i < n; i++) {
        TARE_SCOPE("outer");
        TARE_SCOPE("inner");
        tare_count("bytes", 3);
    }
}

static uint64_t begins_in(const char *path)
{
    struct trace *t = must_open(path);
    struct seen s;
    assert_int_equal(see_events(t, &s, NULL), TARE_OK);
    assert_false(s.unordered || s.unnested);
    assert_int_equal(trace_loss(t)->dropped + trace_loss(t)->damaged_chunks + trace_loss(t)->missing_live, 0);
    trace_close(t);
    return s.begins;
}

static void refused(tare_options o, tare_status want, const char *word)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(tare_start(&o, &err), want);
    assert_non_null(strstr(err.text, word));
    assert_int_equal(tare_start(&o, NULL), want);
    assert_int_equal(tare_recording, 0);
}

static void each_bad_option_is_named(void **state)
{
    (void)state;
    tare_options o = options();
    assert_int_equal(tare_start(NULL, NULL), TARE_INVALID);
    o.size = 8, refused(o, TARE_INVALID, "TARE_OPTIONS_INIT");
    o = options(), o.path = NULL, refused(o, TARE_INVALID, "path");
    o = options(), o.path = "", refused(o, TARE_INVALID, "path");
    o = options(), o.mode = 0, refused(o, TARE_INVALID, "mode");
    o = options(), o.mode = 4, refused(o, TARE_INVALID, "mode");
    o = options(), o.mode = 7, refused(o, TARE_INVALID, "mode");
    o = options(), o.clock = 2, refused(o, TARE_INVALID, "clock");
    o = options(), o.memory_bytes = 1000, refused(o, TARE_INVALID, "memory_bytes");
    o = options(), o.memory_bytes = UINT64_MAX, refused(o, TARE_INVALID, "memory_bytes");
    o = options(), o.weigh_one_in = 2 << 20, refused(o, TARE_INVALID, "weigh_one_in");
    assert_int_equal(folder_count(&here, "t.tare"), 0);
}

static void bad_paths_are_refused(void **state)
{
    (void)state;
    tare_options o = options();
    char name[600], longest[9000];
    snprintf(name, sizeof name, "%s/no/such/folder/t.tare", here.path);
    o.path = name, refused(o, TARE_IO, "no/such");
    o.path = here.path;
    tare_error err = TARE_ERROR_INIT;
    assert_int_not_equal(tare_start(&o, &err), TARE_OK); /* a folder */
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = 0;
    o.path = longest, refused(o, TARE_INVALID, "too long");
    longest[300] = 0; /* one name too long for any file system */
    o.path = longest;
    assert_int_not_equal(tare_start(&o, &err), TARE_OK);
    snprintf(name, sizeof name, "%s/pipe", here.path);
    assert_int_equal(mkfifo(name, 0600), 0);
    o.path = name, refused(o, TARE_INVALID, "regular");
    assert_int_equal(folder_count(&here, ".live-"), 0);
    folder_empty(here.path);
}

static void another_file_is_left_as_it_is(void **state)
{
    (void)state;
    size_t n;
    file_put(here.trace, "my thesis", 9);
    refused(options(), TARE_INVALID, "not a trace");
    uint8_t *bytes = file_get(here.trace, &n);
    assert_int_equal(n, 9);
    assert_memory_equal(bytes, "my thesis", 9);
    free(bytes);
    assert_int_equal(folder_count(&here, ".live-"), 0);
    folder_empty(here.path);
}

static void an_earlier_trace_is_kept_as_old(void **state)
{
    (void)state;
    tare_options o = options();
    char old[300];
    snprintf(old, sizeof old, "%s.old", here.trace);
    for (int k = 1; k <= 4; k++) { /* the same static sites in each session */
        start(&o);
        assert_int_equal(tare_start(&o, NULL), TARE_BUSY);
        work(10 * k);
        stop();
        assert_int_equal(begins_in(here.trace), 20 * k);
        if (k > 1) assert_int_equal(begins_in(old), 20 * (k - 1));
        assert_int_equal(folder_count(&here, ".live-"), 0);
    }
    assert_int_equal(tare_stop(NULL), TARE_OK); /* without a session */
    folder_empty(here.path);
}

static void percent_p_is_the_process(void **state)
{
    (void)state;
    tare_options o = options();
    char pattern[300], want[300];
    snprintf(pattern, sizeof pattern, "%s/a%%p-%%%%-%%x.tare", here.path);
    snprintf(want, sizeof want, "%s/a%d-%%-%%x.tare", here.path, (int)getpid());
    o.path = pattern;
    start(&o);
    work(3);
    stop();
    assert_int_equal(begins_in(want), 6);
    folder_empty(here.path);
}

static void a_relative_path_keeps_its_meaning(void **state)
{
    (void)state;
    char was[PATH_MAX];
    assert_non_null(getcwd(was, sizeof was));
    assert_int_equal(chdir(here.path), 0);
    tare_options o = options();
    o.path = "t.tare";
    start(&o);
    work(2);
    assert_int_equal(chdir("/"), 0);
    work(3);
    stop();
    assert_int_equal(chdir(was), 0);
    assert_int_equal(begins_in(here.trace), 10);
    folder_empty(here.path);
}

/* ---- scopes that outlive their session ---- */

static void scopes_open_at_stop_are_unclosed(void **state)
{
    (void)state;
    tare_options o = options();
    tare_site *outer = tare_site_new(TARE_SITE_SCOPE, "open outer", NULL, 0);
    tare_site *inner = tare_site_new(TARE_SITE_SCOPE, "open inner", NULL, 0);
    tare_scope a, b;
    start(&o);
    work(5);
    tare_begin(&a, outer);
    tare_begin(&b, inner);
    stop();
    tare_end(&b); /* after the session: nothing happens */
    tare_end(&a);
    tare_end(&a);
    struct trace *t = must_open(here.trace);
    struct seen s;
    assert_int_equal(see_events(t, &s, NULL), TARE_OK);
    assert_int_equal(s.begins, 12);
    assert_int_equal(s.ends, 12);
    assert_int_equal(s.synthetic, 2);
    assert_int_equal(trace_loss(t)->unclosed_scopes, 2);
    trace_close(t);
    folder_empty(here.path);
}

static void an_end_in_the_next_session_is_foreign(void **state)
{
    (void)state;
    tare_options o = options();
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "across", NULL, 0);
    tare_scope a;
    start(&o);
    tare_begin(&a, site);
    stop();
    start(&o);
    work(4);
    tare_end(&a);
    tare_end(&a); /* a second end is nobody's */
    stop();
    struct trace *t = must_open(here.trace);
    struct seen s;
    assert_int_equal(see_events(t, &s, NULL), TARE_OK);
    assert_int_equal(s.begins, 8);
    assert_int_equal(s.synthetic, 0);
    assert_true(trace_loss(t)->foreign_scopes >= 1);
    trace_close(t);
    folder_empty(here.path);
}

static void nothing_is_recorded_between_sessions(void **state)
{
    (void)state;
    tare_options o = options();
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "between", NULL, 0);
    tare_site *counter = tare_site_new(TARE_SITE_COUNTER, "between count", NULL, 0);
    start(&o);
    work(1);
    stop();
    for (int i = 0; i < 100; i++) { /* by hand, without looking at tare_recording */
        tare_scope s;
        tare_begin(&s, site);
        tare_site_count(counter, 1);
        tare_end(&s);
    }
    start(&o);
    work(2);
    stop();
    assert_int_equal(begins_in(here.trace), 4);
    folder_empty(here.path);
}

/* ---- a second thread through several sessions ---- */

static pthread_barrier_t step;

static void *worker(void *unused)
{
    (void)unused;
    for (int k = 0; k < 3; k++) {
        pthread_barrier_wait(&step);
        work(7);
        pthread_barrier_wait(&step);
    }
    return NULL;
}

static void a_thread_lives_through_sessions(void **state)
{
    (void)state;
    tare_options o = options();
    pthread_t thread;
    pthread_barrier_init(&step, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, worker, NULL), 0);
    for (int k = 0; k < 3; k++) {
        start(&o);
        pthread_barrier_wait(&step);
        work(5);
        pthread_barrier_wait(&step);
        stop();
        assert_int_equal(begins_in(here.trace), 24);
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&step);
    folder_empty(here.path);
}

/* ---- several that stop a session whose file is gone ---- */

enum { STOPPERS = 6 };

static void *stopper(void *status)
{
    pthread_barrier_wait(&step);
    *(tare_status *)status = tare_stop(NULL);
    return NULL;
}

/* One of them puts it away and says what went wrong; the others have nothing to do. Two closed the same files. */
static void a_broken_session_is_stopped_once(void **state)
{
    (void)state;
    signal(SIGBUS, SIG_DFL); /* cmocka's handler would be left in place, as a program's own is */
    for (int round = 0; round < 40; round++) {
        tare_options o = options();
        pthread_t threads[STOPPERS];
        tare_status got[STOPPERS];
        int failed = 0;
        glob_t live;
        char pattern[PATH_MAX];
        start(&o);
        work(5);
        snprintf(pattern, sizeof pattern, "%s.live-*", here.trace);
        assert_int_equal(glob(pattern, 0, NULL, &live), 0);
        assert_int_equal(truncate(live.gl_pathv[0], 0), 0);
        globfree(&live);
        work(5); /* finds that its pages are gone: recording ends */
        pthread_barrier_init(&step, NULL, STOPPERS);
        for (int i = 0; i < STOPPERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, stopper, &got[i]), 0);
        for (int i = 0; i < STOPPERS; i++) pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&step);
        for (int i = 0; i < STOPPERS; i++) failed += got[i] != TARE_OK;
        assert_int_equal(failed, 1);
        folder_empty(here.path);
    }
}

/* ---- the end of the program ---- */

static void exit_closes_what_tare_start_began(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        tare_options o = options();
        if (tare_start(&o, NULL) != TARE_OK) _exit(1);
        work(4);
        exit(0); /* without tare_stop() */
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct trace *t = must_open(here.trace);
    assert_true(trace_process(t, 0)->closed);
    trace_close(t);
    assert_int_equal(begins_in(here.trace), 8);
}

/* ---- a guest ---- */

static void errno_is_the_programs(void **state)
{
    (void)state;
    struct rlimit was, tight;
    tare_options o = options();
    start(&o);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    tight = was;
    tight.rlim_cur = 64 << 10; /* the live file cannot grow from here on: its refusals are ours to bear */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    int changed = 0;
    for (uint32_t line = 1; line < 5000; line++) {
        tare_site *site = tare_site_new(TARE_SITE_SCOPE, "many", "many.c", line);
        tare_scope scope;
        errno = ENOTTY;
        tare_begin(&scope, site);
        tare_end(&scope);
        changed += errno != ENOTTY;
    }
    setrlimit(RLIMIT_FSIZE, &was);
    tare_stop(NULL);
    assert_int_equal(changed, 0);
}

static int make_folder(void **state)
{
    (void)state;
    folder_new(&here);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(&here);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_option_is_named),
        cmocka_unit_test(bad_paths_are_refused),
        cmocka_unit_test(another_file_is_left_as_it_is),
        cmocka_unit_test(an_earlier_trace_is_kept_as_old),
        cmocka_unit_test(percent_p_is_the_process),
        cmocka_unit_test(a_relative_path_keeps_its_meaning),
        cmocka_unit_test(scopes_open_at_stop_are_unclosed),
        cmocka_unit_test(an_end_in_the_next_session_is_foreign),
        cmocka_unit_test(nothing_is_recorded_between_sessions),
        cmocka_unit_test(a_thread_lives_through_sessions),
        cmocka_unit_test(a_broken_session_is_stopped_once),
        cmocka_unit_test(exit_closes_what_tare_start_began),
        cmocka_unit_test(errno_is_the_programs),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
