/* SPDX-License-Identifier: MIT
 * test_subject_command.c - commands as subjects: what a run costs, how failures are told, that nothing is
 * left running. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/bench.h"
#include "core/clock.h"
#include "core/mem.h"
#include "subject/subject.h"

static struct run run;
static tare_error err;
static char folder[64];
static volatile sig_atomic_t stop;

static int set_up(void **state)
{
    (void)state;
    err = (tare_error)TARE_ERROR_INIT;
    stop = 0;
    snprintf(folder, sizeof folder, "/tmp/tare-command-XXXXXX");
    return run_init(&run, "bench", &err) < 0 || !mkdtemp(folder);
}

static int tear_down(void **state)
{
    (void)state;
    run_release(&run);
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    int removed = system(line);
    mem_fail_after(-1);
    return removed != 0 || mem_live_blocks() != 0 || waitpid(-1, NULL, WNOHANG) != -1; /* no child is left */
}

static struct command_options shell(const char *line)
{
    static char *argv[2];
    static char text[512];
    snprintf(text, sizeof text, "%s", line);
    argv[0] = text;
    return (struct command_options){.argv = argv, .shell = true};
}

/* Open, prepare, run once with what has to come before. */
static tare_status run_once(const struct command_options *o, struct subject_cost *cost)
{
    struct subject *s = NULL;
    struct instance *i = NULL;
    struct run_map params = {0};
    struct case_params p = {.workers = 1};
    struct case_record to = {&run, &params};
    tare_status status = subject_open_command(&s, o, &err);
    if (status == TARE_OK) status = s->ops->prepare(s, &p, &to, &i, &err);
    if (status == TARE_OK && s->ops->before_run) status = s->ops->before_run(i, 0, &err);
    if (status == TARE_OK) status = s->ops->run(i, 0, cost, &err);
    if (i) s->ops->finish(i);
    subject_close(s);
    return status;
}

static void must_say(tare_status got, tare_status expected, const char *text)
{
    assert_int_equal(got, expected);
    if (!strstr(err.text, text)) fail_msg("'%s' does not say '%s'", err.text, text);
}

/* ---- costs ---- */

static void test_cost(void **state)
{
    (void)state;
    struct subject_cost cost = {0};
    struct command_options o = shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    if (run_once(&o, &cost) < 0) fail_msg("%s", err.text);
    assert_true(cost.known);
    assert_true(cost.used.user_ns + cost.used.system_ns > 0);
    assert_true(cost.rss_peak > 100000);
    assert_true(cost.used.minor_faults > 0);
}

static void test_child_memory(void **state)
{
    (void)state;
    struct subject_cost small = {0}, big = {0};
    struct command_options o = shell("x=$(head -c 80000000 /dev/zero | tr '\\0' 'a'); :");
    if (run_once(&o, &big) < 0) fail_msg("%s", err.text);
    o = shell(":");
    if (run_once(&o, &small) < 0) fail_msg("%s", err.text);
    assert_true(big.rss_peak >= 80000000);
    assert_true(big.rss_peak > small.rss_peak);
}

static void test_describe(void **state)
{
    (void)state;
    char name[] = "/bin/sleep", word[] = "0";
    char *argv[] = {name, word, NULL};
    struct subject *s;
    struct command_options o = {.argv = argv, .timeout_ns = 5000000000, .prepare = "true"};
    assert_int_equal(subject_open_command(&s, &o, &err), TARE_OK);
    name[1] = 'X'; /* its own copy is kept */
    assert_int_equal(s->ops->describe(s, &run, &err), TARE_OK);
    assert_string_equal(run.subject.type, "command");
    assert_string_equal(run.subject.name, "sleep 0");
    assert_string_equal(run.subject.path, "/bin/sleep");
    const struct run_value *v = run_map_get(&run.config, "command");
    assert_true(v && v->kind == RUN_LIST && v->items.n == 2);
    assert_string_equal(v->items.at[1].value.s, "0");
    assert_true(run_map_get(&run.config, "timeout_s")->d == 5);
    assert_string_equal(run_map_get(&run.config, "prepare")->s, "true");
    subject_close(s);
    subject_close(NULL);
    o = shell("gzip -c file | wc");
    assert_int_equal(subject_open_command(&s, &o, &err), TARE_OK);
    assert_int_equal(s->ops->describe(s, &run, &err), TARE_OK);
    assert_string_equal(run.subject.name, "gzip -c file | wc");
    subject_close(s);
}

/* ---- failures ---- */

static void test_exit_code(void **state)
{
    (void)state;
    struct subject_cost cost = {0};
    struct command_options o = shell("echo first line >&2; echo cannot open the thing >&2; exit 3");
    must_say(run_once(&o, &cost), TARE_DENIED, "exit code 3: first line cannot open the thing");
    assert_false(cost.known);
    o.ignore_failure = true;
    assert_int_equal(run_once(&o, &cost), TARE_OK);
    assert_true(cost.known);
}

static void test_signal(void **state)
{
    (void)state;
    struct subject_cost cost;
    struct command_options o = shell("kill -SEGV $$");
    must_say(run_once(&o, &cost), TARE_DENIED, "killed by signal 11 (Segmentation fault)");
}

static void test_much_on_stderr(void **state)
{
    (void)state;
    struct subject_cost cost;
    struct command_options o =
        shell("head -c 3000000 /dev/zero | tr '\\0' 'x' >&2; echo the end >&2; exit 1");
    must_say(run_once(&o, &cost), TARE_DENIED, "xxxthe end");
    assert_true(strlen(err.text) < sizeof err.text - 1);
}

static void test_stdout_goes_nowhere(void **state)
{
    (void)state;
    struct subject_cost cost;
    struct command_options o = shell("[ ! -t 0 ] && head -c 3000000 /dev/zero && ! read x");
    if (run_once(&o, &cost) < 0) fail_msg("%s", err.text);
}

static void test_missing(void **state)
{
    (void)state;
    struct subject_cost cost;
    char no[] = "no-such-command-of-this-name", path[] = "/no/such/command", text[96];
    char *by_name[] = {no, NULL}, *by_path[] = {path, NULL}, *plain[] = {text, NULL}, *none[] = {NULL};
    must_say(run_once(&(struct command_options){.argv = by_name}, &cost), TARE_INVALID,
             "no-such-command-of-this-name: no such command");
    must_say(run_once(&(struct command_options){.argv = by_path}, &cost), TARE_INVALID,
             "/no/such/command: no such command");
    must_say(run_once(&(struct command_options){.argv = none}, &cost), TARE_INVALID, "no command to run");
    snprintf(text, sizeof text, "%s/file", folder);
    int fd = open(text, O_CREAT | O_WRONLY, 0644);
    assert_true(fd >= 0);
    close(fd);
    must_say(run_once(&(struct command_options){.argv = plain}, &cost), TARE_INVALID, "file: not executable");
    struct command_options o = shell("true");
    char *two[] = {o.argv[0], no, NULL};
    o.argv = two;
    must_say(run_once(&o, &cost), TARE_INVALID, "a shell takes one line");
}

/* What it started must be gone too: the group is killed. */
static void test_timeout(void **state)
{
    (void)state;
    struct subject_cost cost;
    char line[256], path[96];
    snprintf(path, sizeof path, "%s/pid", folder);
    snprintf(line, sizeof line, "sleep 60 & echo $! > %s; echo waiting >&2; sleep 60", path);
    struct command_options o = shell(line);
    o.timeout_ns = 500000000;
    uint64_t start = clock_raw_ns();
    must_say(run_once(&o, &cost), TARE_DENIED, "no end after 0.5 s, killed: waiting");
    assert_true(clock_raw_ns() - start < UINT64_C(30000000000));
    FILE *f = fopen(path, "r");
    char number[32] = "";
    assert_non_null(f);
    assert_non_null(fgets(number, sizeof number, f));
    fclose(f);
    pid_t left = (pid_t)strtol(number, NULL, 10);
    assert_true(left > 1);
    bool gone = false; /* whoever inherits it takes a moment to bury it */
    for (int i = 0; i < 200 && !gone; i++) {
        char stat[64], text[256] = "";
        snprintf(stat, sizeof stat, "/proc/%d/stat", (int)left);
        FILE *p = fopen(stat, "r");
        gone = !p || !fgets(text, sizeof text, p) || strstr(text, ") Z ");
        if (p) fclose(p);
        if (!gone) usleep(10000);
    }
    assert_true(gone);
}

static void on_alarm(int number)
{
    (void)number;
    stop = 1;
}

static void test_interrupted(void **state)
{
    (void)state;
    struct subject_cost cost;
    struct command_options o = shell("sleep 60");
    o.interrupted = &stop;
    struct sigaction act = {.sa_handler = on_alarm}, old;
    sigaction(SIGALRM, &act, &old);
    ualarm(200000, 0);
    uint64_t start = clock_raw_ns();
    must_say(run_once(&o, &cost), TARE_DENIED, "interrupted");
    assert_true(clock_raw_ns() - start < UINT64_C(30000000000));
    sigaction(SIGALRM, &old, NULL);
}

static void test_prepare(void **state)
{
    (void)state;
    struct subject_cost cost;
    char line[128], before[160];
    snprintf(line, sizeof line, "test -e %s/made", folder);
    snprintf(before, sizeof before, "touch %s/made", folder);
    struct command_options o = shell(line);
    must_say(run_once(&o, &cost), TARE_DENIED, "exit code 1");
    o.prepare = before;
    if (run_once(&o, &cost) < 0) fail_msg("%s", err.text);
    o.prepare = "echo no way >&2; exit 9";
    must_say(run_once(&o, &cost), TARE_DENIED, "what prepares it: exit code 9: no way");
}

/* The command line ignores SIGPIPE for itself; a command must not inherit that. */
static void test_sigpipe_is_default(void **state)
{
    (void)state;
    struct subject_cost cost;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigaction(SIGPIPE, &ignore, &old);
    struct command_options o = shell("kill -PIPE $$; exit 0");
    must_say(run_once(&o, &cost), TARE_DENIED, "killed by signal 13");
    sigaction(SIGPIPE, &old, NULL);
}

/* ---- with the harness ---- */

static void test_bench(void **state)
{
    (void)state;
    struct subject *s;
    char name[] = "true";
    char *argv[] = {name, NULL};
    struct command_options o = {.argv = argv};
    assert_int_equal(subject_open_command(&s, &o, &err), TARE_OK);
    struct bench_case c = {s, {0}, "true"};
    struct bench_plan plan = BENCH_PLAN_INIT;
    plan.cases = &c;
    plan.n_cases = 1;
    plan.max_runs = 25;
    plan.concurrency = 2;
    plan.budget_ns = 300000000;
    if (bench_run(&run, &plan, &err) < 0) fail_msg("%s", err.text);
    const struct run_case *r = run.cases.at[0];
    assert_true(r->samples.v >= 1 && r->latency_ns.min.v > 0);
    assert_true(r->cpu.user_ns.v + r->cpu.system_ns.v > 0);
    subject_close(s);
}

static void test_bench_names_the_run(void **state)
{
    (void)state;
    struct subject *s;
    char line[256];
    snprintf(line, sizeof line, "echo x >> %s/n; [ $(wc -l < %s/n) -lt 5 ] || { echo full >&2; exit 7; }",
             folder, folder);
    struct command_options o = shell(line);
    assert_int_equal(subject_open_command(&s, &o, &err), TARE_OK);
    struct bench_case c = {s, {0}, "counting"};
    struct bench_plan plan = BENCH_PLAN_INIT;
    plan.cases = &c;
    plan.n_cases = 1;
    assert_int_equal(bench_run(&run, &plan, &err), TARE_DENIED);
    assert_string_equal(err.text, "case counting: run 5: exit code 7: full");
    subject_close(s);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct subject_cost cost;
    for (long n = 0;; n++) {
        struct command_options o = shell(":");
        o.prepare = ":";
        mem_fail_after(n);
        tare_status s = run_once(&o, &cost);
        mem_fail_after(-1);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_cost),
        T(test_child_memory),
        T(test_describe),
        T(test_exit_code),
        T(test_signal),
        T(test_much_on_stderr),
        T(test_stdout_goes_nowhere),
        T(test_missing),
        T(test_timeout),
        T(test_interrupted),
        T(test_prepare),
        T(test_sigpipe_is_default),
        T(test_bench),
        T(test_bench_names_the_run),
        T(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
