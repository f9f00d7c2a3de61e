/* SPDX-License-Identifier: MIT
 * procstat.h - what this process has used since it began: CPU time, memory, faults, switches, migrations, I/O; and what
 * the machine and the control group took away or leave over. Read before and after a piece of work, the difference is
 * the work's. Changes nothing but, where asked and permitted, the high-water mark of its own memory. `root` as in
 * procfs.h. */
#ifndef PROBE_PROCSTAT_H
#define PROBE_PROCSTAT_H

#include <sys/types.h>

#include "run/value.h"

struct rusage;

struct procstat {
    uint64_t user_ns, system_ns, minor_faults, major_faults, voluntary_switches, involuntary_switches;
    struct known_u64 migrations; /* of all threads that live now; needs a kernel with scheduler statistics */
    struct known_u64 read_bytes, write_bytes; /* that reached storage */
};
/* The same once more, for what is done to each of them. */
#define PROCSTAT_NUMBERS(X) \
    X(user_ns) X(system_ns) X(minor_faults) X(major_faults) X(voluntary_switches) X(involuntary_switches)
#define PROCSTAT_KNOWN(X) X(migrations) X(read_bytes) X(write_bytes)

void procstat_read(struct procstat *out, const char *root);
struct procstat procstat_of_usage(const struct rusage *u); /* of a process that was waited for */

/* How long the process (its first thread), also one that ended and was not waited for yet, was ready while no processor
 * was free; 0: the calling thread. */
struct known_u64 procstat_run_delay(const char *root, pid_t pid);

/* later - earlier. What either does not know stays unknown; a counter that fell (a thread ended) counts as
 * 0. */
struct procstat procstat_since(const struct procstat *later, const struct procstat *earlier);
void procstat_add(struct procstat *into, const struct procstat *more); /* what one knows, the sum knows */

/* Memory in RAM now. Kernels from 6.2 on round this by up to some dozen pages per processor. */
struct known_u64 procstat_rss(const char *root);

/* The most memory in RAM since the process began, or since the last reset that worked. */
struct known_u64 procstat_rss_peak(const char *root);
bool procstat_rss_peak_reset(const char *root); /* false: not permitted here */

/* ---- the machine and the group ---- */

/* How long this process's group has been throttled, since the group began; versions 1 and 2. */
struct known_u64 cgroup_throttled_ns(const char *root);

/* CPU time of the whole machine since boot, in ticks. known false: the kernel does not tell. */
struct cpu_ticks {
    bool known;
    uint64_t steal, all, idle; /* idle: waiting for disks too */
};
struct cpu_ticks cpu_ticks_read(const char *root);
struct known_f64 cpu_steal_share(const struct cpu_ticks *later, const struct cpu_ticks *earlier);

/* Memory that can still be taken without swapping: what the kernel says, or what the group's limit leaves. */
struct known_u64 memory_available(const char *root);

#endif
