/* SPDX-License-Identifier: MIT
 * cgroupstat.h - what the machine and the control group took away or leave over: time stolen by the
 * hypervisor, time throttled by a CPU quota, memory that may still be used. Reads /proc and /sys/fs/cgroup;
 * changes nothing. */
#ifndef PROBE_CGROUPSTAT_H
#define PROBE_CGROUPSTAT_H

#include "run/value.h"

/* `root` is put before every path, as in procstat.h. */

/* How long this process's group has been throttled, since the group began; versions 1 and 2. */
struct known_u64 cgroup_throttled_ns(const char *root);

/* CPU time of the whole machine since boot, in ticks. known false: the kernel does not tell. */
struct cpu_ticks {
    bool known;
    uint64_t steal, all;
};
struct cpu_ticks cpu_ticks_read(const char *root);

/* Memory that can still be taken without swapping: what the kernel says, or what the group's limit leaves. */
struct known_u64 memory_available(const char *root);

/* The path of a process's group ("self", "1234") in the hierarchy of a controller, "" for the root of it; the
 * controller "" is version 2. False: there is no such hierarchy. */
bool cgroup_path(const char *root, const char *process, const char *controller, char *out, size_t size);

#endif
