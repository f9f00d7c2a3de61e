/* SPDX-License-Identifier: MIT
 * ability_kernel.c - checks of what the kernel lets us see. Each tries the real call or file. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/ability.h"
#include "probe/procfs.h"

/* ---- perf events ----------------------------------------------------------------------------- */

static int try_event(uint32_t type, uint64_t config, bool kernel)
{
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.size = sizeof a;
    a.type = type;
    a.config = config;
    a.disabled = 1;
    a.exclude_kernel = !kernel;
    a.exclude_hv = 1;
    int fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) return errno;
    close(fd);
    return 0;
}

/* Which of the three it is decides what helps: permission, no counters in this machine, no such call. */
static void explain_event(const struct ability_where *where, struct ability_result *out, int error)
{
    char paranoid[32];
    bool told = ability_read(where, "/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
    switch (error) {
    case EACCES:
    case EPERM:
        ability_lack(out, ABILITY_NO,
                     "sysctl kernel.perf_event_paranoid=1, or the capability CAP_PERFMON; in a "
                     "container also allow perf_event_open",
                     "refused (perf_event_paranoid is %s)", told ? paranoid : "unknown");
        return;
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        ability_lack(out, ABILITY_NO, "measure on bare metal, or let the hypervisor pass the PMU through",
                     "the CPU shows no counters: a virtual machine without a virtual PMU");
        return;
    case ENOSYS:
        ability_lack(out, ABILITY_NO,
                     "a kernel with CONFIG_PERF_EVENTS; in a container, a profile that allows it",
                     "perf_event_open is missing in this kernel, or filtered");
        return;
    default: ability_say(out, ABILITY_NO, "perf_event_open: %s", strerror(error));
    }
}

void check_counters(const struct ability_where *where, struct ability_result *out)
{
    int error = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);
    if (error)
        explain_event(where, out, error);
    else if (try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false))
        ability_say(out, ABILITY_PARTIAL, "cycles are counted, cache misses are not");
    else if (try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true))
        ability_lack(out, ABILITY_PARTIAL, "sysctl kernel.perf_event_paranoid=1",
                     "user code only, not the kernel's share");
    else
        ability_say(out, ABILITY_YES, "cycles and cache misses, user and kernel");
}

void check_task_clock(const struct ability_where *where, struct ability_result *out)
{
    int error = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false);
    if (error)
        explain_event(where, out, error);
    else
        ability_say(out, ABILITY_YES, "perf software events work");
}

/* ---- other processes ------------------------------------------------------------------------- */

void check_ptrace(const struct ability_where *where, struct ability_result *out)
{
    char text[32];
    bool told = ability_read(where, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
    long scope = told ? strtol(text, NULL, 10) : 0;
    if (geteuid() == 0 && scope < 3)
        ability_say(out, ABILITY_YES, "any process (we are root)");
    else if (scope == 0)
        ability_say(out, ABILITY_YES, "processes of this user");
    else if (scope == 1)
        ability_lack(out, ABILITY_PARTIAL, "sysctl kernel.yama.ptrace_scope=0, or run tare as root",
                     "only programs that tare starts (ptrace_scope is 1)");
    else
        ability_lack(out, ABILITY_NO, scope == 2 ? "run tare as root" : "only a reboot lowers ptrace_scope 3",
                     "ptrace_scope is %ld", scope);
}

void check_pressure(const struct ability_where *where, struct ability_result *out)
{
    char text[160];
    if (!ability_read(where, "/proc/pressure/cpu", text, sizeof text)) {
        ability_lack(out, ABILITY_NO, "boot with psi=1", "/proc/pressure/cpu: %s", strerror(errno));
        return;
    }
    double share = 0;
    const char *avg10 = strchr(text, '=');
    if (avg10) procfs_decimal(avg10 + 1, &share);
    ability_say(out, ABILITY_YES, "some task waited for a CPU %.1f %% of the last 10 s", share);
}

/* ---- groups ---------------------------------------------------------------------------------- */

void check_cgroup(const struct ability_where *where, struct ability_result *out)
{
    char text[256];
    if (ability_read(where, "/sys/fs/cgroup/cgroup.controllers", text, sizeof text))
        ability_say(out, ABILITY_YES, "version 2 (%s)", text[0] ? text : "no controllers");
    else if (ability_read(where, "/sys/fs/cgroup/memory/memory.limit_in_bytes", text, sizeof text))
        ability_lack(out, ABILITY_PARTIAL, "boot with systemd.unified_cgroup_hierarchy=1",
                     "version 1, or both: no pressure per group");
    else
        ability_lack(out, ABILITY_NO, "mount cgroup2 at /sys/fs/cgroup",
                     "no cgroup file system at /sys/fs/cgroup");
}

/* The first line of a file of this process's group; "" where it has none. */
static bool read_in(const struct ability_where *where, const char *controller, const char *file,
                    char text[64])
{
    bool read = cgroup_own_text(where->root, controller, file, text, 64);
    text[strcspn(text, "\n")] = 0;
    return read;
}

/* Of the own group alone: what the groups above it allow is host.c's business, which has a document to put it in. */
void check_limits(const struct ability_where *where, struct ability_result *out)
{
    char cpu[64] = "", memory[64] = "";
    bool told = read_in(where, "", "cpu.max", cpu);
    told = read_in(where, "", "memory.max", memory) || told;
    if (!told) { /* version 1, or the root group, which has no limits */
        told = read_in(where, "cpu", "cpu.cfs_quota_us", cpu);
        told = read_in(where, "memory", "memory.limit_in_bytes", memory) || told;
    }
    bool cpu_limit = cpu[0] && strncmp(cpu, "max", 3) != 0 && cpu[0] != '-';
    double bytes = memory[0] && strcmp(memory, "max") != 0 ? strtod(memory, NULL) : 0;
    bool memory_limit = bytes > 0 && bytes < 9e18;
    if (!cpu_limit && !memory_limit) {
        ability_say(out, ABILITY_YES, told ? "neither CPU nor memory is limited" : "no limit found");
        return;
    }
    char size[40] = "unlimited";
    if (memory_limit) snprintf(size, sizeof size, "%.3g GiB", bytes / (1 << 30));
    ability_lack(out, ABILITY_PARTIAL,
                 "raise the limit of the container or cgroup, if the workload has none in production",
                 "CPU %s, memory %s", cpu_limit ? cpu : "unlimited", size);
}

void check_affinity(const struct ability_where *where, struct ability_result *out)
{
    cpu_set_t set;
    (void)where;
    CPU_ZERO(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        ability_say(out, ABILITY_NO, "sched_getaffinity: %s", strerror(errno));
    else if (CPU_COUNT(&set) < online)
        ability_lack(out, ABILITY_PARTIAL, "start tare without taskset, or widen the container's CPU set",
                     "%d of %ld CPUs may be used", CPU_COUNT(&set), online);
    else
        ability_say(out, ABILITY_YES, "all %ld CPUs may be used", online);
}
