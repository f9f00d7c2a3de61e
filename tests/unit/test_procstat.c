/* SPDX-License-Identifier: MIT
 * test_procstat.c - procstat and its control groups against made-up machines, and a little against this one. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "probe/procfs.h"
#include "probe/procstat.h"

static char root[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/tare-procstat-XXXXXX");
    return !mkdtemp(root);
}

static int tear_down(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", root);
    return system(line) != 0;
}

static void put(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(full, 0755);
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* ---- fields ---- */

static void test_field(void **state)
{
    (void)state;
    const char *text =
        "write_bytes_more: 9\ncancelled_write_bytes: 3\nwrite_bytes: 17\nVmHWM:\t  123 kB\nbad: x\n";
    uint64_t v;
    assert_true(procfs_field(text, "write_bytes", &v) && v == 17);
    assert_true(procfs_field(text, "VmHWM", &v) && v == 123);
    assert_false(procfs_field(text, "bad", &v));
    assert_false(procfs_field(text, "bytes", &v)); /* not in the middle of a word */
    assert_false(procfs_field("", "x", &v));
    assert_true(procfs_field("x 5", "x", &v) && v == 5);
}

/* ---- the process ---- */

static void test_made_up_process(void **state)
{
    (void)state;
    struct procstat p;
    put("/proc/self/io", "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\n");
    put("/proc/self/task/10/sched", "x (10, #threads: 2)\nse.nr_migrations   :   5\n");
    put("/proc/self/task/11/sched", "x (11, #threads: 2)\nse.nr_migrations   :   7\n");
    put("/proc/self/statm", "5000 250 10 1 0 30 0\n");
    put("/proc/self/status", "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1000 kB\n");
    put("/proc/77/schedstat", "1000 2500 3\n");
    assert_int_equal(procstat_run_delay(root, 77).v, 2500);
    assert_false(procstat_run_delay(root, 78).known);
    procstat_read(&p, root);
    assert_int_equal(p.read_bytes.v, 4096);
    assert_int_equal(p.write_bytes.v, 8192);
    assert_int_equal(p.migrations.v, 12);
    assert_int_equal(procstat_rss(root).v, 250 * sysconf(_SC_PAGESIZE));
    assert_int_equal(procstat_rss_peak(root).v, 2048 * 1024);
    assert_false(procstat_rss_peak_reset(root));
    put("/proc/self/clear_refs", "");
    assert_true(procstat_rss_peak_reset(root));
}

static void test_nothing_there(void **state)
{
    (void)state;
    struct procstat p;
    procstat_read(&p, root);
    assert_false(p.read_bytes.known || p.write_bytes.known || p.migrations.known);
    assert_false(procstat_rss(root).known);
    assert_false(procstat_rss_peak(root).known);
    assert_false(cgroup_throttled_ns(root).known);
    assert_false(cpu_ticks_read(root).known);
    assert_false(memory_available(root).known);
}

static void test_garbage(void **state)
{
    (void)state;
    put("/proc/self/statm", "many few\n");
    put("/proc/self/status", "VmHWM: lots\n");
    put("/proc/stat", "cpu  1 2 3\n");
    put("/proc/self/cgroup", "nonsense\n::\n0:\n");
    put("/proc/meminfo", "MemTotal: 1 kB\n");
    assert_false(procstat_rss(root).known);
    assert_false(procstat_rss_peak(root).known);
    assert_false(cpu_ticks_read(root).known);
    assert_false(cgroup_throttled_ns(root).known);
    assert_false(memory_available(root).known);
    put("/proc/self/statm", "12\n");
    assert_false(procstat_rss(root).known);
}

static void test_since(void **state)
{
    (void)state;
    struct procstat a = {
        .user_ns = 5, .minor_faults = 10, .migrations = known_u64(4), .read_bytes = known_u64(1)};
    struct procstat b = {.user_ns = 8, .minor_faults = 10, .migrations = known_u64(1)};
    struct procstat d = procstat_since(&b, &a);
    assert_int_equal(d.user_ns, 3);
    assert_int_equal(d.minor_faults, 0);
    assert_true(d.migrations.known && d.migrations.v == 0); /* a thread ended: not below zero */
    assert_false(d.read_bytes.known);
}

static void test_this_process(void **state)
{
    (void)state;
    struct procstat before, after;
    procstat_read(&before, "");
    enum { SIZE = 64 << 20 };
    struct known_u64 rss = procstat_rss("");
    volatile char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    for (size_t i = 0; i < SIZE; i += 4096) p[i] = 1;
    struct known_u64 more = procstat_rss("");
    procstat_read(&after, "");
    struct procstat d = procstat_since(&after, &before);
    assert_true(rss.known && more.known);
    assert_true(more.v - rss.v > SIZE / 10 * 9);
    assert_true(d.minor_faults > 0 && d.user_ns + d.system_ns > 0);
    assert_true(procstat_rss_peak("").v >= SIZE);
    munmap((void *)(uintptr_t)p, SIZE);
    if (procstat_rss_peak_reset("")) assert_true(procstat_rss_peak("").v < more.v);
}

/* ---- machine and group ---- */

static void test_ticks(void **state)
{
    (void)state;
    put("/proc/stat", "cpu  100 20 30 400 5 6 7 32 9 9\ncpu0 1 2 3\n");
    struct cpu_ticks t = cpu_ticks_read(root);
    assert_true(t.known);
    assert_int_equal(t.steal, 32);
    assert_int_equal(t.all, 600);
}

static void test_group_2(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 1234\n");
    put("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   1000000 kB\n");
    assert_int_equal(cgroup_throttled_ns(root).v, 1234000);
    assert_int_equal(memory_available(root).v, UINT64_C(1024000000));
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.current", "100\n");
    assert_int_equal(memory_available(root).v, UINT64_C(1024000000));
    put("/sys/fs/cgroup/a/b/memory.max", "50000000\n");
    put("/sys/fs/cgroup/a/b/memory.current", "20000000\n");
    assert_int_equal(memory_available(root).v, 30000000);
    put("/sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file 5000000\n"); /* files can be dropped */
    assert_int_equal(memory_available(root).v, 35000000);
    put("/sys/fs/cgroup/a/b/memory.current", "90000000\n");
    assert_int_equal(memory_available(root).v, 0);
}

static void test_group_1(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "4:memory:/m\n2:cpuacct,cpu:/c\n0::/\n");
    put("/sys/fs/cgroup/cpu/c/cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 777\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"); /* the container's mount: no /m below it */
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "400\n");
    assert_int_equal(cgroup_throttled_ns(root).v, 777);
    assert_int_equal(memory_available(root).v, 600);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_field), T(test_made_up_process), T(test_nothing_there), T(test_garbage), T(test_since),
        T(test_this_process), T(test_ticks), T(test_group_2), T(test_group_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
