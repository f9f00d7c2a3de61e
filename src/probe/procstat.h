/* SPDX-License-Identifier: MIT
 * procstat.h - what this process has used since it began: CPU time, memory, faults, switches, migrations,
 * I/O. Read before and after a piece of work, the difference is the work's. Changes nothing but, where asked
 * and permitted, the high-water mark of its own memory. */
#ifndef PROBE_PROCSTAT_H
#define PROBE_PROCSTAT_H

#include "run/value.h"

struct procstat {
    uint64_t user_ns, system_ns, minor_faults, major_faults, voluntary_switches, involuntary_switches;
    struct known_u64 migrations; /* of all threads that live now; needs a kernel with scheduler statistics */
    struct known_u64 read_bytes, write_bytes; /* that reached storage */
};

/* `root` is put before every path: "" for this machine, a folder with a made-up proc/ for tests. */
void procstat_read(struct procstat *out, const char *root);

/* later - earlier. What either does not know stays unknown; a counter that fell (a thread ended) counts as
 * 0. */
struct procstat procstat_since(const struct procstat *later, const struct procstat *earlier);

/* Memory in RAM now. Kernels from 6.2 on round this by up to some dozen pages per processor. */
struct known_u64 procstat_rss(const char *root);

/* The most memory in RAM since the process began, or since the last reset that worked. */
struct known_u64 procstat_rss_peak(const char *root);
bool procstat_rss_peak_reset(const char *root); /* false: not permitted here */

/* ---- for the other probes ---- */

/* The file root + path as text, at most size - 1 bytes; false when it cannot be read. */
bool procstat_text(const char *root, const char *path, char *text, size_t size);

/* The number after `key` at the start of a line ("VmHWM:", "throttled_usec"), skipping blanks and a colon. */
struct known_u64 procstat_field(const char *text, const char *key);

#endif
