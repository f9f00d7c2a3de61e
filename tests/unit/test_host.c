/* SPDX-License-Identifier: MIT
 * test_host.c - the host probe on made-up machines, and on this one. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mem.h"
#include "probe/host.h"

struct machine {
    char root[64];
};

static void put(const struct machine *m, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", m->root, path);
    for (char *p = full + strlen(m->root) + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        assert_true(mkdir(full, 0777) == 0 || errno == EEXIST);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int make_machine(void **state)
{
    struct machine *m = calloc(1, sizeof *m);
    strcpy(m->root, "/tmp/test_host_XXXXXX");
    *state = m;
    return mkdtemp(m->root) ? 0 : -1;
}

static int drop_machine(void **state)
{
    struct machine *m = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", m->root);
    int rc = system(command);
    free(m);
    return rc;
}

static void read_host(struct run *r, const char *root)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(r, "doctor", &err), TARE_OK);
    if (host_read(r, root, &err) < 0) fail_msg("%s", err.text);
}

static double affinity(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

static void put_x86(const struct machine *m)
{
    put(m, "/etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 12\"\n");
    put(m, "/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Big Chip 9000\nflags\t\t: fpu sse hypervisor avx\n");
    put(m, "/proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
    put(m, "/proc/loadavg", "1.25 0.50 0.10 1/100 4242\n");
    put(m, "/sys/devices/system/cpu/online", "0-3,8\n");
    put(m, "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
    put(m, "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance\n");
}

static void test_cgroup_2(void **state)
{
    struct run r;
    put_x86(*state);
    put(*state, "/proc/self/cgroup", "0::/a/b\n");
    put(*state, "/sys/fs/cgroup/a/cpu.max", "50000 100000\n"); /* the tighter limit is the parent's */
    put(*state, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put(*state, "/sys/fs/cgroup/a/memory.max", "max\n");
    put(*state, "/sys/fs/cgroup/a/b/cpuset.cpus.effective", "0-1\n");
    read_host(&r, ((struct machine *)*state)->root);
    const struct run_host *h = &r.host;
    assert_string_equal(h->os, "Some Linux 12");
    assert_string_equal(h->cpu.model, "Big Chip 9000");
    assert_int_equal(h->cpu.cores.v, 5);
    assert_true(h->cpu.usable.v == 0.5);
    assert_int_equal(h->memory_bytes.v, 16384 * 1024);
    assert_true(h->is_virtual.known && h->is_virtual.v);
    assert_string_equal(h->governor, "performance");
    assert_true(h->load1.v == 1.25);
    assert_int_equal(h->cgroup.version.v, 2);
    assert_string_equal(h->cgroup.path, "/a/b");
    assert_true(h->cgroup.cpu_quota.v == 0.5);
    assert_string_equal(h->cgroup.cpuset, "0-1");
    assert_false(h->cgroup.memory_limit_bytes.known);
    assert_string_equal(run_reason(&h->unknown, "cgroup.memory_limit_bytes"), "no limit");
    run_release(&r);
}

static void test_cgroup_1(void **state)
{
    struct run r;
    put_x86(*state);
    put(*state, "/proc/self/cgroup", "4:memory:/job\n3:cpuset:/\n1:cpu,cpuacct:/job\n0::/\n");
    put(*state, "/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "30000\n");
    put(*state, "/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "40000\n");
    put(*state, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put(*state, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(*state, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
    put(*state, "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n");
    read_host(&r, ((struct machine *)*state)->root);
    const struct run_host *h = &r.host;
    assert_int_equal(h->cgroup.version.v, 1);
    assert_true(h->cgroup.cpu_quota.v == 0.75);
    assert_int_equal(h->cgroup.memory_limit_bytes.v, 1 << 30);
    assert_non_null(run_reason(&h->unknown, "cgroup.cpuset"));
    assert_string_equal(h->governor, "mixed");
    run_release(&r);
}

static void test_empty_machine(void **state)
{
    struct run r;
    struct buf b = BUF_INIT;
    read_host(&r, ((struct machine *)*state)->root);
    const struct run_host *h = &r.host;
    assert_null(h->os);
    assert_null(h->governor);
    assert_false(h->memory_bytes.known || h->is_virtual.known || h->load1.known || h->cgroup.version.known);
    assert_true(h->cpu.usable.v == affinity());
    r.subject.type = "host";
    r.subject.name = "x";
    assert_int_equal(run_unexplained(&r, &b, NULL), TARE_OK);
    assert_string_equal(b.data, ""); /* every null has its reason */
    run_release(&r);
    buf_release(&b);
}

static void test_arm(void **state)
{
    struct run r;
    put(*state, "/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
    put(*state, "/sys/class/dmi/id/sys_vendor", "QEMU\n");
    read_host(&r, ((struct machine *)*state)->root);
    assert_string_equal(r.host.cpu.model, "implementer 0x41 part 0xd0c");
    assert_true(r.host.is_virtual.known && r.host.is_virtual.v);
    run_release(&r);
}

static void test_bare_metal(void **state)
{
    struct run r;
    put(*state, "/proc/cpuinfo", "model name\t: Chip\nflags\t\t: fpu hypervisorish\n");
    read_host(&r, ((struct machine *)*state)->root);
    assert_true(r.host.is_virtual.known && !r.host.is_virtual.v);
    run_release(&r);
}

static void test_this_machine(void **state)
{
    (void)state;
    struct run r, again;
    struct buf b = BUF_INIT;
    struct utsname u;
    char mark[RUN_FINGERPRINT_SIZE];
    uname(&u);
    read_host(&r, "");
    assert_string_equal(r.host.hostname, u.nodename);
    assert_true(r.host.memory_bytes.known && r.host.memory_bytes.v > 1 << 20);
    assert_int_equal(r.host.cpu.cores.v, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(r.host.cpu.usable.v > 0 && r.host.cpu.usable.v <= affinity());
    r.subject.type = "host";
    r.subject.name = "x";
    assert_int_equal(run_unexplained(&r, &b, NULL), TARE_OK);
    assert_string_equal(b.data, "");
    assert_int_equal(run_write(&r, &b, NULL), TARE_OK);
    assert_int_equal(run_read(&again, "x", b.data, b.len, NULL), TARE_OK);
    run_host_fingerprint(&again.host, mark); /* survives the file */
    assert_string_equal(mark, r.host.fingerprint);
    run_release(&again);
    run_release(&r);
    buf_release(&b);
}

static void test_no_memory(void **state)
{
    (void)state;
    long n = 0, before = mem_live_blocks();
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        struct run r = {0};
        mem_fail_after(n);
        s = run_init(&r, "doctor", NULL);
        if (s == TARE_OK) s = host_read(&r, "", NULL);
        mem_fail_after(-1);
        run_release(&r);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_true(n > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cgroup_2, make_machine, drop_machine),
        cmocka_unit_test_setup_teardown(test_cgroup_1, make_machine, drop_machine),
        cmocka_unit_test_setup_teardown(test_empty_machine, make_machine, drop_machine),
        cmocka_unit_test_setup_teardown(test_arm, make_machine, drop_machine),
        cmocka_unit_test_setup_teardown(test_bare_metal, make_machine, drop_machine),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
