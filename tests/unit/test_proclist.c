/* SPDX-License-Identifier: MIT
 * test_proclist.c - the list of processes over a made-up /proc, and a little over this machine's own. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
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

#include "core/clock.h"
#include "core/mem.h"
#include "probe/procfs.h"
#include "probe/proclist.h"

static char root[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/tare-proclist-XXXXXX");
    if (!mkdtemp(root)) return 1;
    char proc[80];
    snprintf(proc, sizeof proc, "%s/proc", root);
    return chmod(root, 0755) || mkdir(proc, 0755);
}

static int tear_down(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", root);
    return system(line) != 0;
}

static void put(int pid, const char *name, const char *bytes, size_t n)
{
    char path[200];
    snprintf(path, sizeof path, "%s/proc/%d", root, pid);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/proc/%d/%s", root, pid, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite(bytes, 1, n, f);
    fclose(f);
}

struct made { /* a process */
    int pid, parent;
    const char *name;
    unsigned long flags, user, system, started;
};

static void put_stat(struct made m)
{
    char text[400];
    int n =
        snprintf(text, sizeof text,
                 "%d (%s) S %d 1 1 0 -1 %lu 5 6 7 8 %lu %lu 9 9 20 -5 3 0 %lu 1000000 250 1844674407370955 "
                 "1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0",
                 m.pid, m.name, m.parent, m.flags, m.user, m.system, m.started);
    put(m.pid, "stat", text, (size_t)n);
}

static const struct proc_row *find(const struct proclist *p, pid_t pid)
{
    for (size_t i = 0; i < p->rows.n; i++)
        if (p->rows.items[i].pid == pid) return &p->rows.items[i];
    return NULL;
}

static void put_io(int pid, unsigned long in, unsigned long out)
{
    char text[200];
    int n = snprintf(text, sizeof text, "rchar: 1\nwchar: 2\nread_bytes: %lu\nwrite_bytes: %lu\n", in, out);
    put(pid, "io", text, (size_t)n);
}

static void forget(int pid)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s/proc/%d'", root, pid);
    assert_int_equal(system(line), 0);
}

static const uint64_t second = 1000000000;

/* ---- parsing ---- */

static void test_parse(void **state)
{
    (void)state;
    struct process_stat st;
    assert_true(process_stat_parse(&st, "7 (a) b (c)) R 3 1 1 0 -1 4 5 6 7 8 11 12 9 9 20 0 2 0 99 1 42 5 "
                                        "1 1 0 0 0 0 0 0 0 0 0 0 17"));
    assert_int_equal(st.name_len, 8);
    assert_memory_equal(st.name, "a) b (c)", 8);
    assert_int_equal(st.state, 'R');
    assert_int_equal(st.parent, 3);
    assert_false(st.kernel || st.thread);
    assert_int_equal(st.user, 11);
    assert_int_equal(st.system, 12);
    assert_int_equal(st.threads, 2);
    assert_int_equal(st.started, 99);
    assert_int_equal(st.rss_pages, 42);
}

static void test_parse_refuses(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",      "7",      "7 (",         "7 (x",
        "7 (x)", "7 (x) ", "7 )x( S 1 1", "7 (x) S 1 1 1 0 -1 4 5 6 7 8 11 12 9 9 20 0 2 0 99 1"};
    struct process_stat st;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(process_stat_parse(&st, bad[i]));
}

/* ---- scans ---- */

static void test_rows_and_rates(void **state)
{
    (void)state;
    struct proclist p;
    long hz = sysconf(_SC_CLK_TCK);
    put_stat((struct made){20, 3, "worker", 0, 100, 50, 9});
    put(20, "cmdline", "worker\0--fast\0a b\0", 18);
    put_io(20, 1000, 2000);
    put_stat((struct made){3, 1, "kthread", 0x200000, 0, 0, 1});
    assert_int_equal(proclist_open(&p, root, NULL), TARE_OK);
    assert_int_equal(proclist_scan(&p, 10 * second, NULL), TARE_OK);
    assert_int_equal(p.rows.n, 2);
    assert_int_equal(p.rows.items[0].pid, 3); /* by pid, whatever the folder's order */
    assert_true(p.rows.items[0].kernel);
    assert_string_equal(p.rows.items[0].command, "");
    const struct proc_row *r = find(&p, 20);
    assert_non_null(r);
    assert_null(find(&p, 21));
    assert_string_equal(r->command, "worker --fast a b");
    assert_int_equal(r->threads, 3);
    assert_int_equal(r->rss_bytes, 250 * (uint64_t)sysconf(_SC_PAGESIZE));
    assert_true(isnan(r->cpu) && isnan(r->read_rate)); /* seen once: no rate yet */
    assert_int_equal(r->uid, getuid());

    put_stat((struct made){20, 3, "worker", 0, 100 + (unsigned long)hz, 50 + (unsigned long)hz / 2, 9});
    put_io(20, 1000, 6000);
    assert_int_equal(proclist_scan(&p, 12 * second, NULL), TARE_OK);
    r = find(&p, 20);
    assert_true(fabs(r->cpu - 0.75) < 1e-9); /* 1.5 s of work in 2 s */
    assert_true(r->read_rate == 0 && r->write_rate == 2000);
    proclist_close(&p);
}

static void test_vanish_and_reuse(void **state)
{
    (void)state;
    struct proclist p;
    put_stat((struct made){5, 1, "old", 0, 1000, 0, 9});
    put_stat((struct made){6, 1, "other", 0, 0, 0, 9});
    put(7, "comm", "no stat yet", 11); /* it went away between the folder and the file */
    put(8, "stat", "garbage", 7);
    assert_int_equal(proclist_open(&p, root, NULL), TARE_OK);
    assert_int_equal(proclist_scan(&p, second, NULL), TARE_OK);
    assert_int_equal(p.rows.n, 2);
    forget(6);
    put_stat((struct made){5, 1, "new", 0, 3, 0, 500}); /* the number of another process */
    put(5, "cmdline", "new\0", 4);
    assert_int_equal(proclist_scan(&p, 2 * second, NULL), TARE_OK);
    assert_int_equal(p.rows.n, 1);
    assert_string_equal(p.rows.items[0].name, "new");
    assert_string_equal(p.rows.items[0].command, "new");
    assert_true(isnan(p.rows.items[0].cpu));
    forget(5);
    assert_int_equal(proclist_scan(&p, 3 * second, NULL), TARE_OK);
    assert_int_equal(p.rows.n, 0);
    proclist_close(&p);
}

static void test_threads(void **state)
{
    (void)state;
    struct proclist p;
    char path[200];
    tare_error err = TARE_ERROR_INIT;
    put_stat((struct made){5, 1, "app", 0, 0, 0, 9});
    snprintf(path, sizeof path, "%s/proc/5/task", root);
    assert_int_equal(mkdir(path, 0755), 0);
    put_stat((struct made){500, 1, "elsewhere", 0, 0, 0, 9});
    snprintf(path, sizeof path, "mv '%s/proc/500' '%s/proc/5/task/6'", root, root);
    assert_int_equal(system(path), 0);
    assert_int_equal(proclist_open_threads(&p, root, 4, &err), TARE_IO);
    assert_non_null(strstr(err.text, "/proc/4/task"));
    proclist_close(&p);
    assert_int_equal(proclist_open_threads(&p, root, 5, NULL), TARE_OK);
    assert_int_equal(proclist_scan(&p, second, NULL), TARE_OK);
    assert_int_equal(p.rows.n, 1);
    assert_int_equal(p.rows.items[0].pid, 6);
    assert_string_equal(p.rows.items[0].name, "elsewhere");
    assert_string_equal(p.rows.items[0].command, "");
    proclist_close(&p);
}

/* exec() changes the name, and with it the command line is read again. */
static void test_renamed(void **state)
{
    (void)state;
    struct proclist p;
    put_stat((struct made){5, 1, "sh", 0, 0, 0, 9});
    put(5, "cmdline", "sh\0-c\0run\0", 10);
    assert_int_equal(proclist_open(&p, root, NULL), TARE_OK);
    assert_int_equal(proclist_scan(&p, second, NULL), TARE_OK);
    put_stat((struct made){5, 1, "run", 0, 0, 0, 9});
    put(5, "cmdline", "run\0", 4);
    assert_int_equal(proclist_scan(&p, 2 * second, NULL), TARE_OK);
    assert_string_equal(p.rows.items[0].command, "run");
    proclist_close(&p);
}

static void test_odd_names(void **state)
{
    (void)state;
    struct proclist p;
    put_stat((struct made){5, 1, "a\nb) S 1\033[2J\xff", 0, 7, 0, 9});
    put(5, "cmdline", "x\ny\0\033]0;z\a\0\xff\xfe\0", 14);
    put_stat((struct made){6, 1, "", 0, 0, 0, 9});
    assert_int_equal(proclist_open(&p, root, NULL), TARE_OK);
    assert_int_equal(proclist_scan(&p, second, NULL), TARE_OK);
    assert_int_equal(p.rows.n, 2);
    assert_string_equal(p.rows.items[0].name, "a\nb) S 1\033[2J\xff"); /* as they are: escaped where shown */
    assert_string_equal(p.rows.items[0].command, "x\ny \033]0;z\a \xff\xfe");
    assert_int_equal(p.rows.items[0].ticks, 7);
    proclist_close(&p);
}

/* Processes of others under hidepid=1: there, but not to be read. */
static void test_denied(void **state)
{
    (void)state;
    char path[200];
    put_stat((struct made){5, 1, "mine", 0, 0, 0, 9});
    put_stat((struct made){6, 1, "theirs", 0, 0, 0, 9});
    put_io(5, 1, 1);
    snprintf(path, sizeof path, "%s/proc/6/stat", root);
    assert_int_equal(chmod(path, 0), 0);
    snprintf(path, sizeof path, "%s/proc/5/io", root);
    assert_int_equal(chmod(path, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        struct proclist p;
        if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(9);
        if (proclist_open(&p, root, NULL) != TARE_OK || proclist_scan(&p, second, NULL) != TARE_OK) _exit(1);
        if (p.rows.n != 1 || p.denied != 1) _exit(2);
        if (!p.rows.items[0].io_denied || !isnan(p.rows.items[0].read_bytes)) _exit(3);
        proclist_close(&p);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_no_proc(void **state)
{
    (void)state;
    struct proclist p;
    tare_error err = {0};
    assert_int_equal(proclist_open(&p, "/no/such/place", &err), TARE_IO);
    assert_non_null(strstr(err.text, "/no/such/place/proc"));
    proclist_close(&p);
}

static void test_no_memory(void **state)
{
    (void)state;
    tare_status s = TARE_NOMEM;
    for (int i = 1; i < 30; i++) put_stat((struct made){i, 1, "many", 0, 0, 0, 9});
    for (long n = 0; s != TARE_OK; n++) {
        struct proclist p;
        long live = mem_live_blocks();
        assert_true(n < 500);
        assert_int_equal(proclist_open(&p, root, NULL), TARE_OK);
        mem_fail_after(n);
        s = proclist_scan(&p, second, NULL);
        if (s == TARE_OK) s = proclist_scan(&p, 2 * second, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        proclist_close(&p);
        assert_int_equal(mem_live_blocks(), live);
    }
}

static void test_this_machine(void **state)
{
    (void)state;
    struct proclist p;
    assert_int_equal(proclist_open(&p, "", NULL), TARE_OK);
    assert_int_equal(proclist_scan(&p, clock_raw_ns(), NULL), TARE_OK);
    const struct proc_row *me = find(&p, getpid());
    assert_non_null(me);
    assert_int_equal(me->parent, getppid());
    assert_int_equal(me->uid, getuid());
    assert_non_null(strstr(me->command, "test_proclist"));
    assert_true(me->rss_bytes > 100000);
    proclist_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_refuses),
        cmocka_unit_test_setup_teardown(test_rows_and_rates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_vanish_and_reuse, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_renamed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_odd_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_denied, set_up, tear_down),
        cmocka_unit_test(test_no_proc),
        cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
