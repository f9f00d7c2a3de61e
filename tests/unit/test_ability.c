/* SPDX-License-Identifier: MIT
 * test_ability.c - the checks against made-up /proc and /sys trees: every machine we do not have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "probe/ability.h"

static char root[256];

static int new_root(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/tare-ability-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* root + path with this text, and the folders that lead there. */
static void put(const char *path, const char *text)
{
    char full[600];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *c = full + strlen(root) + 1; (c = strchr(c, '/')); c++) {
        *c = 0;
        assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
        *c = '/';
    }
    FILE *f = fopen(full, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void expect(const char *name, enum ability_answer answer, const char *reason)
{
    struct ability_where where = {.root = root, .dir = root};
    struct ability_result r;
    for (const struct ability *a = ability_table; a->name; a++) {
        if (strcmp(a->name, name) != 0) continue;
        ability_check(a, &where, &r);
        if (r.answer != answer || !strstr(r.reason, reason))
            fail_msg("%s: %s, %s", name, ability_answer_name(r.answer), r.reason);
        return;
    }
    fail_msg("no ability is called %s", name);
}

static void test_every_row_answers(void **state)
{
    (void)state;
    struct ability_where places[] = {{.root = "", .dir = "."}, {.root = root, .dir = "/no/such/folder"}};
    for (size_t p = 0; p < 2; p++) {
        for (const struct ability *a = ability_table; a->name; a++) {
            struct ability_result r;
            assert_true(a->use[0] && a->without[0] && strlen(a->name) < 19);
            ability_check(a, &places[p], &r);
            assert_true(r.answer <= ABILITY_NO && r.reason[0]);
        }
    }
}

static void test_frequency(void **state)
{
    (void)state;
    expect("governor", ABILITY_NO, "no cpufreq");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    expect("governor", ABILITY_PARTIAL, "governor is powersave");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    expect("governor", ABILITY_YES, "performance");
    expect("boost", ABILITY_NO, "not shown");
    put("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    expect("boost", ABILITY_PARTIAL, "on");
    put("/sys/devices/system/cpu/cpufreq/boost", "0\n");
    expect("boost", ABILITY_YES, "off");
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"); /* the other way round */
    expect("boost", ABILITY_PARTIAL, "on");
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    expect("boost", ABILITY_YES, "off");
}

static void test_sensors(void **state)
{
    (void)state;
    expect("energy", ABILITY_NO, "no powercap");
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "123\n");
    expect("energy", ABILITY_YES, "powercap");
    expect("temperature", ABILITY_NO, "no thermal zone");
    put("/sys/class/thermal/thermal_zone0/temp", "45000\n");
    put("/sys/class/thermal/cooling_device0/type", "x\n");
    expect("temperature", ABILITY_YES, "1 thermal zones, 0 sensor chips");
}

static void test_groups_version_2(void **state)
{
    (void)state;
    expect("cgroup", ABILITY_NO, "no cgroup");
    put("/sys/fs/cgroup/cgroup.controllers", "cpu memory io\n");
    expect("cgroup", ABILITY_YES, "version 2 (cpu memory io)");
    put("/proc/self/cgroup", "0::/user/app\n");
    put("/sys/fs/cgroup/user/app/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/user/app/memory.max", "max\n");
    expect("limits", ABILITY_YES, "neither");
    put("/sys/fs/cgroup/user/app/memory.max", "2147483648\n");
    expect("limits", ABILITY_PARTIAL, "CPU unlimited, memory 2 GiB");
    put("/sys/fs/cgroup/user/app/cpu.max", "150000 100000\n");
    expect("limits", ABILITY_PARTIAL, "CPU 150000 100000, memory 2 GiB");
}

static void test_groups_version_1(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "3:cpu:/x\n2:memory:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "1073741824\n");
    put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    expect("cgroup", ABILITY_PARTIAL, "version 1");
    expect("limits", ABILITY_PARTIAL, "CPU unlimited, memory 1 GiB");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    expect("limits", ABILITY_YES, "neither");
}

static void test_machine(void **state)
{
    (void)state;
    put("/proc/cpuinfo", "processor : 0\nflags\t\t: fpu tsc hypervisor lahf\n");
    expect("bare metal", ABILITY_NO, "virtual machine");
    put("/sys/class/dmi/id/product_name", "Standard PC\n");
    expect("bare metal", ABILITY_NO, "virtual machine (Standard PC)");
    put("/proc/cpuinfo", "processor : 0\nflags\t\t: fpu tsc lahf\n");
    expect("bare metal", ABILITY_YES, "no sign");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    expect("huge pages", ABILITY_PARTIAL, "madvise");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    expect("huge pages", ABILITY_YES, "always");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    expect("huge pages", ABILITY_NO, "off");
    put("/proc/sys/kernel/randomize_va_space", "0\n");
    expect("address layout", ABILITY_YES, "not randomised");
}

static void test_kernel(void **state)
{
    (void)state;
    expect("pressure (PSI)", ABILITY_NO, "No such file");
    put("/proc/pressure/cpu", "some avg10=12.34 avg60=0.00 avg300=0.00 total=1\n");
    expect("pressure (PSI)", ABILITY_YES, "12.3 %");
    expect("run delay", ABILITY_NO, "schedstat");
    put("/proc/self/schedstat", "1 2 3\n");
    expect("run delay", ABILITY_YES, "readable");
    put("/proc/sys/kernel/yama/ptrace_scope", "3\n");
    expect("attach", ABILITY_NO, "ptrace_scope is 3");
    put("/proc/sys/kernel/yama/ptrace_scope", "0\n");
    expect("attach", ABILITY_YES, "");
    if (geteuid() != 0) {
        put("/proc/sys/kernel/yama/ptrace_scope", "1\n");
        expect("attach", ABILITY_PARTIAL, "only programs that tare starts");
    }
}

static void test_trace_files(void **state)
{
    (void)state;
    struct ability_where where = {.root = "", .dir = root}, gone = {.root = "", .dir = "/no/such/folder"};
    struct ability_result r = {0};
    check_trace_file(&where, &r);
    assert_true(r.answer != ABILITY_NO);
    assert_int_equal(rmdir(root), 0); /* nothing was left behind */
    assert_int_equal(mkdir(root, 0755), 0);
    check_trace_file(&gone, &r);
    assert_int_equal(r.answer, ABILITY_NO);
    assert_non_null(strstr(r.reason, "creating a file: No such file"));
    assert_true(r.remedy[0]);
}

static void test_clock(void **state)
{
    (void)state;
    struct ability_where where = {.root = "", .dir = ".", .clock_fallback = true};
    struct ability_result r = {0};
    check_cycle_clock(&where, &r);
    assert_int_equal(r.answer, ABILITY_NO);
    assert_non_null(strstr(r.reason, "TARE_CLOCK_FALLBACK"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(test_every_row_answers),
        TEST(test_frequency),
        TEST(test_sensors),
        TEST(test_groups_version_2),
        TEST(test_groups_version_1),
        TEST(test_machine),
        TEST(test_kernel),
        TEST(test_trace_files),
        TEST(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
