/* SPDX-License-Identifier: MIT
 * test_probe_machine.c - the probes of the machine, each on a made-up /proc and /sys. */
#include "probe/procfs.h"
#include "probe_fixture.h"

/* ---- system ---- */

static void processors_and_memory(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/proc/stat",
              "cpu  100 20 30 400 50 6 7 8 0 0\ncpu0 60 20 10 200 50 6 7 8 0 0\n"
              "cpu1 40 0 20 200 0 0 0 0 0 0\nintr 1 2 3\nctxt 5\n");
    root_file(r, "/proc/meminfo",
              "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\nSwapCached: 9 kB\n"
              "Cached: 300 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\nDirty: 4 kB\n");
    root_file(r, "/proc/vmstat", "nr_free_pages 1\npswpin 3\npswpout 4\n");
    root_file(r, "/proc/loadavg", "1.05 0.18 0.12 3/80 11206\n");
    root_file(r, "/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n");
    root_open(r, "system", 0, true);
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    assert_value(r, CPU_USER, "", 120 * tick);
    assert_value(r, CPU_SYSTEM, "", 43 * tick);
    assert_value(r, CPU_BUSY, "", 163 * tick);
    assert_value(r, CPU_IOWAIT, "cpu0", 50 * tick);
    assert_value(r, CPU_STEAL, "", 8 * tick);
    assert_value(r, CPU_USER, "cpu1", 40 * tick);
    assert_value(r, CPU_COUNT, "", 2);
    assert_value(r, MEM_TOTAL, "", 1024000);
    assert_value(r, MEM_AVAILABLE, "", 409600);
    assert_value(r, MEM_CACHED, "", 307200);
    assert_value(r, SWAP_USED, "", 30 * 1024);
    assert_value(r, SWAP_OUT, "", 4 * page);
    assert_value(r, LOAD1, "", 1.05);
    assert_value(r, TASKS_RUNNING, "", 3);
    assert_value(r, PRESSURE_CPU, "", 1.5);
    assert_unknown(r, PRESSURE_IO, "");
    assert_blind(r, "system: pressure of io: /proc/pressure/io: No such file");
    root_file(r, "/proc/loadavg", "0.50 0.18 0.12 1/80 11206\n");
    root_sample(r); /* the same open files, read anew */
    assert_value(r, LOAD1, "", 0.5);
}

static void an_old_kernel_tells_less(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/proc/stat", "cpu  100 20 30 400\ncpu0 60 20 10 200\n");
    root_file(r, "/proc/meminfo", "MemTotal: 1000 kB\ngarbage\n");
    root_open(r, "system", 0, false);
    assert_false(isnan(VALUE(r, CPU_BUSY, "")));
    assert_unknown(r, CPU_STEAL, "");
    assert_unknown(r, CPU_USER, "cpu0"); /* only with detail */
    assert_unknown(r, MEM_AVAILABLE, "");
    assert_blind(r, "swap traffic");
}

/* ---- disks and networks ---- */

#define DISKSTATS                                                   \
    "   8 0 sda 10 1 200 30 40 2 80 50 0 60 70\n"                  \
    "   8 1 sda1 9 1 100 30 40 2 80 50 0 60 70\n"                  \
    " 259 0 nvme0n1 1 0 2 3 4 0 6 7 0 8 9 1 2 3 4 5 6\n"           \
    " 259 1 nvme0n1p1 1 0 2 3 4 0 6 7 0 8 9\n"                     \
    "   7 0 loop0 5 0 5 5 5 0 5 5 0 5 5\n"                         \
    " 253 0 dm-0 10 1 200 30 40 2 80 50 0 60 70\n"                 \
    " 252 0 zram0 1 1 1 1 1 1 1 1 1 1 1\n"

static void check_disks(struct made_root *r)
{
    root_open(r, "disk", 0, false);
    assert_value(r, DISK_READ, "sda", 200 * 512);
    assert_value(r, DISK_WRITE, "sda", 80 * 512);
    assert_value(r, DISK_READ_TIME, "sda", 0.03);
    assert_value(r, DISK_BUSY, "sda", 0.06);
    assert_value(r, DISK_WRITES, "nvme0n1", 4);
    assert_value(r, DISK_READ, "dm-0", 200 * 512);
    assert_value(r, DISK_READ, "", 202 * 512); /* what dm-0 did, a disk below it did */
    assert_unknown(r, DISK_READ, "sda1");
    assert_unknown(r, DISK_READ, "nvme0n1p1");
    assert_unknown(r, DISK_READ, "loop0");
    assert_unknown(r, DISK_READ, "zram0");
}

static void disks_by_the_kernel(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/proc/diskstats", DISKSTATS);
    root_file(r, "/sys/block/sda/size", "1");
    root_file(r, "/sys/block/nvme0n1/size", "1");
    root_file(r, "/sys/block/dm-0/size", "1");
    check_disks(r);
    root_file(r, "/sys/block/sdb/size", "1");
    root_file(r, "/proc/diskstats", DISKSTATS "   8 16 sdb 1 1 1 1 1 1 1 1 1 1 1\n");
    root_sample(r);
    assert_value(r, DISK_READ, "sdb", 512); /* plugged in meanwhile */
}

static void disks_by_their_names(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/proc/diskstats", DISKSTATS);
    check_disks(r);
    assert_blind(r, "told apart by their names");
    root_file(r, "/proc/diskstats", "8 0 sda 1 2\n\n8\n 8 0 \n");
    root_sample(r); /* nonsense is no value */
    assert_unknown(r, DISK_READ, "sda");
}

#define NET_DEV                                                                                   \
    "Inter-|   Receive                     |  Transmit\n"                                         \
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop\n" \
    "    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n"                                               \
    "  eth0:1000 20 1 2 0 0 0 0 3000 40 3 4 0 0 0 0\n"

static void networks(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/proc/net/dev", "no\n");
    root_file(r, "/proc/77/net/dev", NET_DEV "  odd\xff: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n");
    root_file(r, "/proc/77/net/snmp",
              "Ip: a b\nIp: 1 2\nTcp: RtoMin MaxConn RetransSegs InErrs\nTcp: 200 -1 17 0\n");
    root_open(r, "net", 77, false);
    assert_value(r, NET_RX, "eth0", 1000);
    assert_value(r, NET_TX, "eth0", 3000);
    assert_value(r, NET_TX_PACKETS, "eth0", 40);
    assert_value(r, NET_ERRORS, "eth0", 10);
    assert_value(r, NET_RX, "lo", 100);
    assert_value(r, NET_RX, "odd?", 5);
    assert_value(r, NET_RX, "", 1005);
    assert_value(r, NET_RETRANSMITS, "", 17);
}

/* ---- heat and energy ---- */

static void sensors(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/sys/class/hwmon/hwmon0/name", "coretemp\n");
    root_file(r, "/sys/class/hwmon/hwmon0/temp1_input", "45500\n");
    root_file(r, "/sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n");
    root_file(r, "/sys/class/hwmon/hwmon0/temp2_input", "-3000\n");
    root_file(r, "/sys/class/hwmon/hwmon1/name", "coretemp\n");
    root_file(r, "/sys/class/hwmon/hwmon1/temp1_input", "50000\n");
    root_file(r, "/sys/class/hwmon/hwmon1/temp1_label", "Package id 0\n");
    root_file(r, "/sys/class/hwmon/hwmon2/temp1_input", "");
    root_file(r, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n");
    root_file(r, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n");
    root_file(r, "/sys/devices/system/cpu/cpufreq/boost", "1\n");
    root_open(r, "temperature", 0, false);
    assert_value(r, TEMPERATURE, "coretemp Package id 0", 45.5);
    assert_value(r, TEMPERATURE, "coretemp Package id 0 2", 50);
    assert_value(r, TEMPERATURE, "coretemp temp2", -3);
    assert_value(r, CPU_FREQUENCY, "", 2.5e9);
    assert_unknown(r, CPU_FREQUENCY, "cpu0");
    root_open(r, "temperature", 0, true);
    assert_value(r, CPU_FREQUENCY, "cpu1", 3e9);
}

static void thermal_zones_where_no_chip_is(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    root_file(r, "/sys/class/thermal/thermal_zone0/temp", "61000\n");
    root_open(r, "temperature", 0, false);
    assert_value(r, TEMPERATURE, "x86_pkg_temp", 61);
    assert_blind(r, "frequency: no cpufreq");
}

static void zone(struct made_root *r, const char *name, const char *label, const char *uj, const char *range)
{
    char path[200];
    snprintf(path, sizeof path, "/sys/class/powercap/%s/name", name);
    root_file(r, path, label);
    snprintf(path, sizeof path, "/sys/class/powercap/%s/energy_uj", name);
    root_file(r, path, uj);
    snprintf(path, sizeof path, "/sys/class/powercap/%s/max_energy_range_uj", name);
    root_file(r, path, range);
}

static void energy_follows_a_wrap(void **state)
{
    struct made_root *r = *state;
    zone(r, "intel-rapl:0", "package-0\n", "9000000\n", "10000000\n");
    zone(r, "intel-rapl:0:0", "core\n", "100\n", "10000000\n");
    zone(r, "intel-rapl:0:1", "dram\n", "5000000\n", "10000000\n");
    zone(r, "intel-rapl:1", "psys\n", "7\n", "10000000\n");
    zone(r, "intel-rapl-mmio:0", "package-0\n", "9000000\n", "10000000\n");
    root_open(r, "energy", 0, false);
    assert_value(r, ENERGY, "package-0", 0); /* since it was opened */
    zone(r, "intel-rapl:0", "package-0\n", "2000000\n", "10000000\n");
    zone(r, "intel-rapl:0:1", "dram\n", "5500000\n", "10000000\n");
    root_sample(r);
    assert_value(r, ENERGY, "package-0", 3);
    assert_value(r, ENERGY, "package-0/dram", 0.5);
    assert_value(r, ENERGY, "package-0/core", 0);
    assert_value(r, ENERGY, "", 3.5); /* neither core nor psys is added, nor the second way to the package */
    zone(r, "intel-rapl:0", "package-0\n", "gone\n", "10000000\n");
    root_sample(r);
    assert_unknown(r, ENERGY, "package-0");
    assert_unknown(r, ENERGY, "");
}

/* ---- control groups ---- */

static void group_of_version_2(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/proc/77/cgroup", "0::/job/step\n");
    root_file(r, "/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    root_file(r, "/sys/fs/cgroup/job/memory.max", "5000000\n");
    root_file(r, "/sys/fs/cgroup/job/step/memory.max", "max\n");
    root_file(r, "/sys/fs/cgroup/job/step/memory.current", "1000\n");
    root_file(r, "/sys/fs/cgroup/job/step/memory.events", "low 0\noom 2\noom_kill 1\n");
    root_file(r, "/sys/fs/cgroup/job/step/cpu.stat",
              "usage_usec 2500000\nuser_usec 1\nnr_periods 4\nnr_throttled 3\nthrottled_usec 250000\n");
    root_file(r, "/sys/fs/cgroup/job/step/io.pressure", "some avg10=0 avg60=0 avg300=0 total=10\nfull x\n");
    root_open(r, "cgroup", 77, false);
    assert_value(r, CG_CPU, "", 2.5);
    assert_value(r, CG_THROTTLED, "", 0.25);
    assert_value(r, CG_PERIODS_THROTTLED, "", 3);
    assert_value(r, CG_MEMORY, "", 1000);
    assert_value(r, CG_MEMORY_LIMIT, "", 5000000); /* of the group above */
    assert_value(r, CG_OOM, "", 1);
    assert_value(r, CG_PRESSURE_IO, "", 1e-5);
    root_file(r, "/sys/fs/cgroup/job/step/memory.max", "3000000\n");
    root_file(r, "/sys/fs/cgroup/job/step/memory.current", "2000\n");
    root_sample(r);
    assert_value(r, CG_MEMORY, "", 2000);          /* at every moment */
    assert_value(r, CG_MEMORY_LIMIT, "", 5000000); /* twice a second: as last read */
    assert_unknown(r, CG_THROTTLED, "");           /* a counter that was not asked is not told */
    r->probes.thorough = true;
    root_sample(r);
    assert_value(r, CG_MEMORY_LIMIT, "", 3000000);
    assert_value(r, CG_THROTTLED, "", 0.25);
}

static void some_things_are_asked_twice_a_second(void **state)
{
    (void)state;
    struct probe_turn t = {0};
    assert_true(probe_turn(&t, false, 1000));
    assert_false(probe_turn(&t, false, 100001000));
    assert_false(probe_turn(&t, false, 400001000));
    assert_true(probe_turn(&t, false, 500001000));
    assert_false(probe_turn(&t, false, 600001000));
    assert_true(probe_turn(&t, true, 600002000));
}

/* Lists of the kernel come by pages; what is read is the same as with calls until nothing comes. */
static void files_are_read_whole(void **state)
{
    (void)state;
    static const char *const files[] = {"/proc/crypto", "/proc/self/mountinfo", "/proc/devices",
                                        "/proc/filesystems"};
    static char got[1 << 18], expected[1 << 18];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int fd = procfs_open("", "%s", files[i]);
        if (fd < 0) continue;
        size_t n = 0;
        for (ssize_t more; (more = pread(fd, expected + n, sizeof expected - n, (off_t)n)) > 0;)
            n += (size_t)more;
        assert_int_equal(procfs_read(fd, got, sizeof got), n);
        assert_memory_equal(got, expected, n);
        procfs_close(&fd);
    }
}

static void group_of_version_1(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/proc/self/cgroup", "4:memory:/box\n2:cpu,cpuacct:/gone\n0::/\n");
    root_file(r, "/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "4096\n");
    root_file(r, "/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
    root_file(r, "/sys/fs/cgroup/memory/box/memory.oom_control",
              "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    root_file(r, "/sys/fs/cgroup/cpuacct/cpuacct.usage",
              "3000000000\n"); /* the path is hidden: the mount's root */
    root_file(r, "/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 7\nthrottled_time 2000000000\n");
    root_file(r, "/sys/fs/cgroup/unified/cpu.stat", "usage_usec 1\n");
    root_open(r, "cgroup", 0, false);
    assert_value(r, CG_CPU, "", 3);
    assert_value(r, CG_THROTTLED, "", 2);
    assert_value(r, CG_PERIODS_THROTTLED, "", 7);
    assert_value(r, CG_MEMORY, "", 4096);
    assert_unknown(r, CG_MEMORY_LIMIT, ""); /* that number is no limit */
    assert_value(r, CG_OOM, "", 5);
    assert_blind(r, "needs cgroup version 2");
}

/* ---- all ---- */

static void what_sees_nothing_says_why(void **state)
{
    struct made_root *r = *state;
    static const char *const names[] = {"cgroup", "system", "disk", "net", "temperature", "energy", "gpu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(root_try(r, names[i], 0, false), TARE_UNSUPPORTED);
        assert_non_null(strstr(r->err.text, names[i]));
    }
    assert_int_equal(root_try(r, "dsk", 0, false), TARE_INVALID);
    assert_non_null(strstr(r->err.text, "choose from process, cgroup"));
    struct probe_place at = {.root = r->path}; /* not asked for by name: no error, but told */
    assert_int_equal(probes_open(&r->probes, NULL, 0, &at, &r->err), TARE_OK);
    r->opened = true;
    assert_int_equal(r->probes.items.n, 0);
    assert_blind(r, "energy: no powercap");
    assert_blind(r, "gpu: no NVIDIA driver library");
    root_sample(r);
    assert_false(isnan(VALUE(r, SELF_CPU, "")));
}

static void costs_are_kept(void **state)
{
    struct made_root *r = *state;
    root_file(r, "/proc/net/dev", NET_DEV);
    root_open(r, "net", 0, false);
    root_sample(r);
    const struct probe *p = r->probes.items.items[0];
    assert_int_equal(r->probes.items.n, 1);
    assert_int_equal(p->samples, 2);
    assert_true(p->ns > 0 && p->ns_max <= p->ns && p->ns_max * 2 >= p->ns);
}

static void no_memory_leaks_nothing(void **state)
{
    struct made_root *r = *state;
    struct probe_place at = {.root = r->path, .detail = true};
    root_file(r, "/proc/net/dev", NET_DEV);
    root_file(r, "/proc/diskstats", DISKSTATS);
    root_file(r, "/proc/stat", "cpu  100 20 30 400\ncpu0 60 20 10 200\n");
    root_file(r, "/sys/class/thermal/thermal_zone0/temp", "61000\n");
    for (long n = 0;; n++) {
        mem_fail_after(n);
        tare_status s = probes_open(&r->probes, NULL, 0, &at, NULL);
        r->opened = s == TARE_OK;
        if (s == TARE_OK) s = probes_sample(&r->probes, NULL);
        mem_fail_after(-1);
        root_close(r);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
}

/* A task waits all the time. What is read 6 ms after the time of its sample was a share of 106 %. */
static void a_late_reading_is_no_larger_share(void **state)
{
    struct made_root *r = *state;
    struct probe_readings before = {VEC_INIT};
    struct probe_put put = {&r->probes.set, &r->probes.now, &r->err, TARE_OK, &before, 0};
    for (uint64_t k = 1; k < 20; k++) {
        uint64_t at = k * 100000000, read = at + (k % 2 ? 100000 : 6000000);
        r->probes.now.at_ns = at;
        put.read_ns = read;
        probe_put(&put, METRIC_PRESSURE_CPU, "", (double)read / 1e9);
        probe_put(&put, METRIC_DISK_READ, "sda", (double)k); /* no time: as it is */
        assert_int_equal(put.status, TARE_OK);
        if (k > 1) assert_value(r, PRESSURE_CPU, "", (double)at / 1e9);
        assert_value(r, DISK_READ, "sda", (double)k);
    }
    vec_release(&before.items);
    series_set_release(&r->probes.set);
    sample_release(&r->probes.now);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, root_set_up, root_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_late_reading_is_no_larger_share),
        TEST(processors_and_memory),
        TEST(an_old_kernel_tells_less),
        TEST(disks_by_the_kernel),
        TEST(disks_by_their_names),
        TEST(networks),
        TEST(sensors),
        TEST(energy_follows_a_wrap),
        TEST(thermal_zones_where_no_chip_is),
        TEST(group_of_version_2),
        TEST(some_things_are_asked_twice_a_second),
        TEST(files_are_read_whole),
        TEST(group_of_version_1),
        TEST(what_sees_nothing_says_why),
        TEST(costs_are_kept),
        TEST(no_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
