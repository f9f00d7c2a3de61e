/* SPDX-License-Identifier: MIT
 * test_probe_process.c - the process probe: on real trees, whose processor time must be the kernel's own sum, and on a
 * made-up /proc for what cannot be arranged. */
#include "probe_fixture.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "probe/process_tree.h"

/* ---- /proc/PID/stat ---- */

static void names_may_hold_anything(void **state)
{
    (void)state;
    struct process_stat s;
    const char *rest =
        " S 1 7 7 0 -1 4194304 10 11 12 13 14 15 16 17 20 0 3 0 999 1000 25 18446744073709551615 1 1 0 0 0 0 0 "
        "0 0 0 0 0 17 0 0 0\n";
    char text[600], label[64];
    snprintf(text, sizeof text, "7 (a) R 2 (\n\x01\xff)%s", rest);
    assert_true(process_stat_parse(&s, text));
    procfs_label(label, sizeof label, s.name, s.name_len);
    assert_string_equal(label, "a) R 2 (???");
    assert_int_equal(s.state, 'S');
    assert_int_equal(s.parent, 1);
    assert_int_equal(s.minor, 10);
    assert_int_equal(s.child_minor, 11);
    assert_int_equal(s.major, 12);
    assert_int_equal(s.user, 14);
    assert_int_equal(s.system, 15);
    assert_int_equal(s.child_user, 16);
    assert_int_equal(s.child_system, 17);
    assert_int_equal(s.threads, 3);
    assert_int_equal(s.started, 999);
    assert_int_equal(s.rss_pages, 25);
    assert_false(s.thread || s.kernel);
    for (size_t cut = 0; cut + 10 < strlen(text); cut++) { /* cut off anywhere: no, or the same */
        char part[600];
        snprintf(part, cut + 1, "%s", text);
        if (process_stat_parse(&s, part)) assert_int_equal(s.started, 999);
    }
    snprintf(text, sizeof text, "7 (\xc3\xa9t\xc3\xa9)%s", rest);
    assert_true(process_stat_parse(&s, text));
    procfs_label(label, sizeof label, s.name, s.name_len);
    assert_string_equal(label, "\xc3\xa9t\xc3\xa9");
    assert_false(process_stat_parse(&s, ""));
    assert_false(process_stat_parse(&s, "7 (x"));
    assert_false(process_stat_parse(&s, ")("));
}

/* ---- a made-up tree ---- */

struct made_process {
    int pid, parent;
    unsigned user, child_user, started, rss;
    const char *name;
    int exit_signal;
};

static void put_process(struct made_root *r, struct made_process p)
{
    char path[64], text[400];
    snprintf(path, sizeof path, "/proc/%d/stat", p.pid);
    snprintf(
        text, sizeof text,
        "%d (%s) S %d 1 1 0 -1 0 1 0 0 0 %u 0 %u 0 20 0 1 0 %u 1000 %u 1 1 1 0 0 0 0 0 0 0 0 0 0 %d 0 0 0\n",
        p.pid, p.name ? p.name : "x", p.parent, p.user, p.child_user, p.started, p.rss,
        p.exit_signal ? p.exit_signal : 17);
    root_file(r, path, text);
}

static void remove_process(struct made_root *r, int pid)
{
    char path[200];
    snprintf(path, sizeof path, "%s/proc/%d/stat", r->path, pid);
    root_file(r, path + strlen(r->path), ""); /* what a kept-open file of an ended process gives: nothing */
    assert_int_equal(unlink(path), 0);
}

static double seconds(double ticks)
{
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

static void a_made_up_tree(struct made_root *r)
{
    put_process(r, (struct made_process){.pid = 1, .started = 1, .user = 5000, .rss = 1});
    put_process(r, (struct made_process){
                       .pid = 50, .parent = 1, .started = 5, .user = 100, .rss = 10, .name = "main"});
    put_process(r, (struct made_process){
                       .pid = 40, .parent = 60, .started = 7, .user = 30, .rss = 3}); /* after a wrap */
    put_process(r, (struct made_process){
                       .pid = 60, .parent = 50, .started = 6, .user = 20, .rss = 2, .name = "a\nb"});
    put_process(r, (struct made_process){
                       .pid = 61, .parent = 1, .started = 6, .user = 999, .rss = 99}); /* another's */
    put_process(r, (struct made_process){
                       .pid = 62, .parent = 50, .started = 6, .user = 7, .exit_signal = -1}); /* thread */
}

static void all_descendants_are_found(void **state)
{
    struct made_root *r = *state;
    a_made_up_tree(r);
    root_open(r, "process", 50, true);
    assert_value(r, PROC_COUNT, "", 3);
    assert_value(r, PROC_CPU_USER, "", seconds(150));
    assert_value(r, PROC_RSS, "", 15 * (double)sysconf(_SC_PAGESIZE));
    assert_value(r, PROC_CPU_USER, "pid 60 a?b", seconds(20));
    assert_unknown(r, PROC_PSS, "");
    assert_blind(r, "memory split by sharing (PSS, USS): /proc/50/smaps_rollup: No such file");
    assert_value(r, PROC_CPU_USER, "pid 50 main", seconds(100));
    assert_int_equal(probe_process_alive(&r->probes), 3);
}

/* A program that starts others for hours: labels stay, so there is an end of them. */
static void labels_are_bounded(void **state)
{
    struct made_root *r = *state;
    struct made_process p = {.pid = 50, .parent = 1, .started = 5, .user = 100, .rss = 10, .name = "main"};
    put_process(r, p);
    root_open(r, "process", 50, true);
    for (int i = 0; i < 2100; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        p.name = name;
        put_process(r, p);
        root_sample(r);
    }
    assert_true(r->probes.set.items.n < 4 * 2000 + 100);
    assert_true(series_has(&r->probes.set, METRIC_PROC_RSS, "pid 50 n1998"));
    assert_false(series_has(&r->probes.set, METRIC_PROC_RSS, "pid 50 n1999"));
    p.name = "main";
    put_process(r, p);
    root_sample(r);
    assert_value(r, PROC_CPU_USER, "pid 50 main", seconds(100)); /* known ones go on */
}

static void time_of_ended_children_is_counted_once(void **state)
{
    struct made_root *r = *state;
    a_made_up_tree(r);
    root_open(r, "process", 50, false);
    remove_process(r, 40); /* waited for by its parent */
    put_process(r, (struct made_process){
                       .pid = 60, .parent = 50, .started = 6, .user = 20, .child_user = 35, .rss = 2});
    root_sample(r);
    root_sample(r);
    assert_value(r, PROC_CPU_USER, "", seconds(155));
    assert_value(r, PROC_COUNT, "", 2);
    remove_process(r, 60); /* nobody waited: its parent ignores SIGCHLD */
    root_sample(r);
    assert_value(r, PROC_CPU_USER, "", seconds(155)); /* a counter never falls */
    put_process(r, (struct made_process){.pid = 50, .parent = 1, .started = 5, .user = 200, .rss = 10});
    root_sample(r);
    root_sample(r);
    double got = VALUE(r, PROC_CPU_USER, ""); /* within the rounding of the kernel's clock ticks */
    assert_true(got <= seconds(255) && got >= seconds(255 - 4));
}

static void a_number_that_is_used_again_is_another_process(void **state)
{
    struct made_root *r = *state;
    a_made_up_tree(r);
    root_open(r, "process", 50, false);
    put_process(r, (struct made_process){.pid = 40, .parent = 1, .started = 70, .user = 9000, .rss = 3});
    root_sample(r);
    assert_value(r, PROC_COUNT, "", 2);
    put_process(r, (struct made_process){.pid = 40, .parent = 60, .started = 80, .user = 1, .rss = 3});
    root_sample(r);
    assert_value(r, PROC_COUNT, "", 3);
    assert_value(r, PROC_STARTED, "", 4);
}

static void only_new_numbers_are_looked_at(void **state)
{
    struct made_root *r = *state;
    a_made_up_tree(r);
    root_file(r, "/proc/loadavg", "0 0 0 1/1 100\n");
    root_open(r, "process", 50, false);
    root_sample(r);
    put_process(r, (struct made_process){.pid = 101, .parent = 50, .started = 9});
    put_process(r,
                (struct made_process){.pid = 30, .parent = 50, .started = 9}); /* no number given out since */
    root_file(r, "/proc/loadavg", "0 0 0 1/1 103\n");
    root_sample(r);
    assert_value(r, PROC_COUNT, "", 4);
    put_process(r, (struct made_process){
                       .pid = 102, .parent = 101, .started = 9}); /* given out before it was there */
    root_sample(r);
    assert_value(r, PROC_COUNT, "", 5);
    root_file(r, "/proc/loadavg", "0 0 0 1/1 20\n"); /* wrapped: all are looked at */
    root_sample(r);
    assert_value(r, PROC_COUNT, "", 6);
}

static void io_and_memory_of_each(void **state)
{
    struct made_root *r = *state;
    a_made_up_tree(r);
    remove_process(r, 40);
    remove_process(r, 60);
    root_file(r, "/proc/50/io",
              "rchar: 1\nwchar: 1\nsyscr: 5\nsyscw: 6\nread_bytes: 4096\nwrite_bytes: 8192\n");
    root_file(r, "/proc/50/status",
              "Name: x\nVmSwap:\t 3 kB\nvoluntary_ctxt_switches: 12\nnonvoluntary_ctxt_switches: 13\n");
    root_file(r, "/proc/50/schedstat", "100 2500000000 3\n");
    root_file(r, "/proc/50/fd/0", "");
    root_file(r, "/proc/50/smaps_rollup",
              "0-1 ---p [rollup]\nRss: 9 kB\nPss: 7 kB\nPss_Dirty: 1 kB\nPrivate_Clean: 2 kB\n"
              "Private_Dirty: 3 kB\n");
    root_open(r, "process", 50, false);
    assert_value(r, PROC_READ, "", 4096);
    assert_value(r, PROC_WRITE, "", 8192);
    assert_value(r, PROC_READ_CALLS, "", 5);
    assert_value(r, PROC_SWAP, "", 3072);
    assert_value(r, PROC_SWITCH_VOLUNTARY, "", 12);
    assert_value(r, PROC_SWITCH_INVOLUNTARY, "", 13);
    assert_value(r, PROC_RUN_DELAY, "", 2.5);
    assert_value(r, PROC_PSS, "", 7168);
    assert_value(r, PROC_USS, "", 5120);
}

/* A value that was not read anew is unknown, never the one before: what each costs is limited. */
static void what_was_not_read_is_a_gap(void **state)
{
    struct made_root *r = *state;
    unsigned known = 0, gaps = 0;
    char text[200];
    a_made_up_tree(r);
    remove_process(r, 40);
    remove_process(r, 60);
    root_file(r, "/proc/50/smaps_rollup", "Pss: 0 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: 0 kB\n");
    root_file(r, "/proc/50/io", "syscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n");
    root_open(r, "process", 50, false);
    for (unsigned i = 1; i < 300; i++) {
        snprintf(text, sizeof text, "Pss: %u kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: 0 kB\n", i);
        root_file(r, "/proc/50/smaps_rollup", text);
        snprintf(text, sizeof text, "syscr: %u\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n", i);
        root_file(r, "/proc/50/io", text);
        root_sample(r);
        if (isnan(VALUE(r, PROC_PSS, "")))
            gaps++;
        else
            assert_value(r, PROC_PSS, "", i * 1024.0);
        if (!isnan(VALUE(r, PROC_READ_CALLS, ""))) assert_value(r, PROC_READ_CALLS, "", i);
        known += !isnan(VALUE(r, PROC_PSS, ""));
    }
    assert_true(known > 0 && gaps > 0);
}

static void a_process_that_is_not_there(void **state)
{
    struct made_root *r = *state;
    a_made_up_tree(r);
    assert_int_equal(root_try(r, "process", 99, false), TARE_INVALID);
    assert_non_null(strstr(r->err.text, "process 99 is not there"));
    assert_int_equal(root_try(r, "process", 0, false), TARE_UNSUPPORTED);
    assert_int_equal(root_try(r, "process", 0, true), TARE_UNSUPPORTED);
}

/* ---- real trees ---- */

static void spin_ms(unsigned ms)
{
    struct timespec t;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while ((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 < ms);
}

struct watched {
    struct probes probes;
    struct rusage before;
    unsigned reaped;
};

static void sample_real(struct watched *w)
{
    tare_error err = TARE_ERROR_INIT;
    if (probes_sample(&w->probes, &err) != TARE_OK) fail_msg("%s", err.text);
}

static void watch(struct watched *w, pid_t program)
{
    const char *name = "process";
    struct probe_place at = {.root = "", .program = program};
    assert_int_equal(probes_open(&w->probes, &name, 1, &at, NULL), TARE_OK);
}

/* Sample and reap until nothing is left; the sum of seconds must be what the kernel says. */
static void follow_to_the_end(struct watched *w, unsigned every_ms)
{
    struct rusage usage, after;
    double last = 0;
    for (pid_t pid = 0; pid >= 0;) {
        nanosleep(&(struct timespec){0, every_ms * 1000000L}, NULL);
        sample_real(w);
        double now = probes_value(&w->probes, METRIC_PROC_CPU_USER, "");
        assert_true(now >= last);
        last = now;
        while ((pid = wait4(-1, NULL, WNOHANG, &usage)) > 0) {
            probe_process_reaped(&w->probes, pid, &usage);
            w->reaped++;
        }
    }
    sample_real(w);
    getrusage(RUSAGE_CHILDREN, &after);
    double kernel = (double)(after.ru_utime.tv_sec - w->before.ru_utime.tv_sec) +
                    (double)(after.ru_utime.tv_usec - w->before.ru_utime.tv_usec) / 1e6 +
                    (double)(after.ru_stime.tv_sec - w->before.ru_stime.tv_sec) +
                    (double)(after.ru_stime.tv_usec - w->before.ru_stime.tv_usec) / 1e6;
    double got = probes_value(&w->probes, METRIC_PROC_CPU_USER, "") +
                 probes_value(&w->probes, METRIC_PROC_CPU_SYSTEM, "");
    if (fabs(got - kernel) > kernel * 0.01) fail_msg("%.4f s, the kernel says %.4f s", got, kernel);
    assert_int_equal(probe_process_alive(&w->probes), 0);
    assert_true(probes_value(&w->probes, METRIC_PROC_COUNT, "") == 0);
}

static pid_t start(struct watched *w, void (*program)(void))
{
    memset(w, 0, sizeof *w);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    getrusage(RUSAGE_CHILDREN, &w->before);
    int gate[2];
    char c;
    assert_int_equal(pipe(gate), 0);
    pid_t pid = fork();
    if (pid == 0) { /* not before it is watched */
        close(gate[1]);
        if (read(gate[0], &c, 1) < 0) _exit(1);
        close(gate[0]);
        program();
        _exit(0);
    }
    watch(w, pid);
    close(gate[0]);
    close(gate[1]);
    return pid;
}

enum { STORM = 1500, ORPHANS = STORM / 5, TREE = 300 };

static void storm(void)
{
    for (int i = 0; i < STORM; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i % 5 == 0 && fork() == 0) _exit(0); /* outlives its parent, maybe */
            for (volatile int k = 0; k < 20000; k++) continue;
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

static void a_storm_of_short_children(void **state)
{
    (void)state;
    struct watched w;
    start(&w, storm);
    follow_to_the_end(&w, 20);
    assert_int_equal(w.reaped, ORPHANS + 1); /* every orphan's end was seen */
    double started = probes_value(&w.probes, METRIC_PROC_STARTED, "");
    if (strstr(w.probes.blind.data, "processes started: a lower bound"))
        assert_true(started >= ORPHANS + 1 && started <= 1 + STORM + ORPHANS);
    else
        assert_true(started == 1 + STORM + ORPHANS); /* told by the kernel, one by one */
    probes_close(&w.probes);
}

static int seen_all[2]; /* closed by the test when it has seen them all */

static void wide(void)
{
    int hold[2];
    char c;
    if (pipe(hold) < 0) _exit(1);
    close(seen_all[1]);
    for (int i = 0; i < TREE; i++)
        if (fork() == 0) {
            close(hold[1]);
            spin_ms(1);
            _exit(read(hold[0], &c, 1) < 0); /* until the parent has ended */
        }
    if (read(seen_all[0], &c, 1) < 0) _exit(1);
}

static void a_wide_tree_that_loses_its_root(void **state)
{
    (void)state;
    struct watched w;
    assert_int_equal(pipe(seen_all), 0);
    start(&w, wide);
    double most = 0;
    for (int i = 0; i < 6000 && most < TREE + 1; i++) { /* a busy machine takes its time */
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        sample_real(&w);
        most = fmax(most, probes_value(&w.probes, METRIC_PROC_COUNT, ""));
    }
    close(seen_all[0]);
    close(seen_all[1]); /* the root goes on, however long a busy machine took to show it all */
    assert_true(most == TREE + 1);
    follow_to_the_end(&w, 20);
    assert_int_equal(w.reaped, TREE + 1);
    assert_true(probes_value(&w.probes, METRIC_PROC_STARTED, "") == TREE + 1);
    probes_close(&w.probes);
}

static void one_that_spins(void)
{
    spin_ms(200);
}

static void our_own_helpers_do_not_count(void **state)
{
    (void)state;
    struct watched w;
    start(&w, one_that_spins);
    pid_t helper = fork();
    if (helper == 0) {
        spin_ms(100);
        _exit(0);
    }
    probe_process_ignore(&w.probes, helper);
    sample_real(&w);
    assert_true(probes_value(&w.probes, METRIC_PROC_COUNT, "") <= 1);
    assert_int_equal(waitpid(helper, NULL, 0), helper);
    getrusage(RUSAGE_CHILDREN, &w.before); /* its time is not the program's */
    follow_to_the_end(&w, 20);
    assert_true(probes_value(&w.probes, METRIC_PROC_STARTED, "") == 1);
    probes_close(&w.probes);
}

static void a_helper_that_was_seen_is_forgotten(void **state)
{
    (void)state;
    struct watched w;
    start(&w, one_that_spins);
    pid_t helper = fork();
    if (helper == 0) {
        pause();
        _exit(0);
    }
    sample_real(&w);
    double seen = probes_value(&w.probes, METRIC_PROC_COUNT, "");
    probe_process_ignore(&w.probes, helper);
    assert_true((double)probe_process_alive(&w.probes) == seen - 1);
    kill(helper, SIGKILL);
    assert_int_equal(waitpid(helper, NULL, 0), helper);
    getrusage(RUSAGE_CHILDREN, &w.before);
    follow_to_the_end(&w, 20);
    assert_true(probes_value(&w.probes, METRIC_PROC_COUNT, "") == 0);
    probes_close(&w.probes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, root_set_up, root_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_may_hold_anything),
        TEST(all_descendants_are_found),
        TEST(labels_are_bounded),
        TEST(time_of_ended_children_is_counted_once),
        TEST(a_number_that_is_used_again_is_another_process),
        TEST(only_new_numbers_are_looked_at),
        TEST(io_and_memory_of_each),
        TEST(what_was_not_read_is_a_gap),
        TEST(a_process_that_is_not_there),
        cmocka_unit_test(a_storm_of_short_children),
        cmocka_unit_test(a_wide_tree_that_loses_its_root),
        cmocka_unit_test(our_own_helpers_do_not_count),
        cmocka_unit_test(a_helper_that_was_seen_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
