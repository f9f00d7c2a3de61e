/* SPDX-License-Identifier: MIT
 * procstat.c - see procstat.h. Never allocates, so that reading it does not change what it reads. */
#include "probe/procstat.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/procfs.h"

enum { MOST_THREADS = 256 };      /* of more, migrations are not counted: it would take too long */
#define BLOCK_BYTES UINT64_C(512) /* what getrusage counts I/O in */

/* The number after `key` at the start of a line of the text. */
static struct known_u64 field_of(const char *text, const char *key)
{
    struct known_u64 out = {0};
    out.known = procfs_field(text, key, &out.v);
    return out;
}

/* ---- migrations: one file per thread ---- */

struct entry64 { /* what getdents64 writes */
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

static struct known_u64 migrations_of(const char *root, const char *thread)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/sched", thread);
    procfs_text(root, path, text, sizeof text);
    return field_of(text, "se.nr_migrations");
}

/* By getdents64, because readdir allocates. */
static struct known_u64 sum_migrations(const char *root, int folder)
{
    struct known_u64 sum = {0};
    char names[4096] __attribute__((aligned(8)));
    unsigned threads = 0;
    for (;;) {
        long n = syscall(SYS_getdents64, folder, names, sizeof names);
        if (n <= 0) return n < 0 ? (struct known_u64){0} : sum;
        for (long at = 0; at < n;) {
            const struct entry64 *e = (const void *)(names + at);
            at += e->size;
            if (!isdigit((unsigned char)e->name[0])) continue;
            if (++threads > MOST_THREADS) return (struct known_u64){0};
            struct known_u64 one = migrations_of(root, e->name); /* unknown: the thread has just ended */
            if (one.known) sum = known_u64(sum.v + one.v);
        }
    }
}

/* ---- what was used ---- */

static uint64_t time_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_usec * 1000;
}

struct procstat procstat_of_usage(const struct rusage *u)
{
    return (struct procstat){
        .user_ns = time_ns(u->ru_utime),
        .system_ns = time_ns(u->ru_stime),
        .minor_faults = (uint64_t)u->ru_minflt,
        .major_faults = (uint64_t)u->ru_majflt,
        .voluntary_switches = (uint64_t)u->ru_nvcsw,
        .involuntary_switches = (uint64_t)u->ru_nivcsw,
        .read_bytes = known_u64((uint64_t)u->ru_inblock * BLOCK_BYTES),
        .write_bytes = known_u64((uint64_t)u->ru_oublock * BLOCK_BYTES),
    };
}

struct known_u64 procstat_run_delay(const char *root, pid_t pid)
{
    char text[128], path[64];
    uint64_t run, delay;
    if (pid)
        snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    else
        snprintf(path, sizeof path, "/proc/thread-self/schedstat");
    procfs_text(root, path, text, sizeof text);
    const char *at = procfs_number(text, &run);
    return at && procfs_number(at, &delay) ? known_u64(delay) : (struct known_u64){0};
}

void procstat_read(struct procstat *out, const char *root)
{
    char text[1024];
    struct rusage use = {0};
    getrusage(RUSAGE_SELF, &use); /* cannot fail with these arguments */
    *out = procstat_of_usage(&use);
    procfs_text(root, "/proc/self/io", text, sizeof text);
    out->read_bytes = field_of(text, "read_bytes");
    out->write_bytes = field_of(text, "write_bytes");
    int folder = procfs_open(root, "/proc/self/task");
    if (folder >= 0) out->migrations = sum_migrations(root, folder);
    procfs_close(&folder);
}

static uint64_t rise(uint64_t later, uint64_t earlier)
{
    return later > earlier ? later - earlier : 0;
}

static struct known_u64 known_rise(struct known_u64 later, struct known_u64 earlier)
{
    if (!later.known || !earlier.known) return (struct known_u64){0};
    return known_u64(rise(later.v, earlier.v));
}

struct procstat procstat_since(const struct procstat *later, const struct procstat *earlier)
{
#define RISE(part) .part = rise(later->part, earlier->part),
#define KNOWN_RISE(part) .part = known_rise(later->part, earlier->part),
    return (struct procstat){PROCSTAT_NUMBERS(RISE) PROCSTAT_KNOWN(KNOWN_RISE)};
}

static void known_add(struct known_u64 *into, struct known_u64 more)
{
    if (more.known) *into = known_u64(into->v + more.v);
}

void procstat_add(struct procstat *into, const struct procstat *more)
{
#define ADD(part) into->part += more->part;
#define KNOWN_ADD(part) known_add(&into->part, more->part);
    PROCSTAT_NUMBERS(ADD) PROCSTAT_KNOWN(KNOWN_ADD)
}

/* ---- memory ---- */

struct known_u64 procstat_rss(const char *root)
{
    char text[256];
    uint64_t pages;
    procfs_text(root, "/proc/self/statm", text, sizeof text);
    const char *at = procfs_number(text, &pages); /* the whole address space */
    if (!at || *at != ' ' || !procfs_number(at, &pages)) return (struct known_u64){0};
    return known_u64(pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

struct known_u64 procstat_rss_peak(const char *root)
{
    char text[8192];
    procfs_text(root, "/proc/self/status", text, sizeof text);
    struct known_u64 kib = field_of(text, "VmHWM");
    return kib.known ? known_u64(kib.v * 1024) : kib;
}

bool procstat_rss_peak_reset(const char *root)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/proc/self/clear_refs", root) >= (int)sizeof path) return false;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "5", 1) == 1;
    procfs_close(&fd);
    return done;
}

/* ---- the machine and the group ---- */

struct known_u64 cgroup_throttled_ns(const char *root)
{
    char text[4096];
    if (cgroup_own_text(root, "", "cpu.stat", text, sizeof text)) {
        struct known_u64 us = field_of(text, "throttled_usec");
        if (us.known) return known_u64(us.v * 1000);
    }
    if (cgroup_own_text(root, "cpu", "cpu.stat", text, sizeof text)) return field_of(text, "throttled_time");
    return (struct known_u64){0};
}

struct cpu_ticks cpu_ticks_read(const char *root)
{
    struct cpu_ticks t = {0};
    char text[512]; /* the first line is enough */
    procfs_text(root, "/proc/stat", text, sizeof text);
    const char *at = strncmp(text, "cpu ", 4) == 0 ? text + 4 : "";
    for (int i = 0; i < 8; i++) { /* user nice system idle iowait irq softirq steal */
        if (!(at = procfs_number(at, &t.steal))) return (struct cpu_ticks){0};
        t.all += t.steal;
        if (i == 3 || i == 4) t.idle += t.steal;
    }
    t.known = true;
    return t;
}

struct known_f64 cpu_steal_share(const struct cpu_ticks *later, const struct cpu_ticks *earlier)
{
    if (!later->known || !earlier->known || later->all <= earlier->all) return (struct known_f64){0};
    return known_f64((double)(later->steal - earlier->steal) / (double)(later->all - earlier->all));
}

/* What a group's limit leaves; unknown where it has none ("max" is no number) or does not say what it uses. */
static struct known_u64 group_leaves(const char *root, const char *controller, const char *limit_name,
                                     const char *use_name)
{
    char text[64], stat[4096];
    uint64_t limit, use, cache;
    if (!cgroup_own_text(root, controller, limit_name, text, sizeof text) || !procfs_number(text, &limit) ||
        !cgroup_own_text(root, controller, use_name, text, sizeof text) || !procfs_number(text, &use))
        return (struct known_u64){0};
    const char *key = *controller ? "total_inactive_file" : "inactive_file";
    if (cgroup_own_text(root, controller, "memory.stat", stat, sizeof stat) &&
        procfs_field(stat, key, &cache) && cache < use)
        use -= cache; /* files that the kernel drops when asked */
    return known_u64(limit > use ? limit - use : 0);
}

struct known_u64 memory_available(const char *root)
{
    char text[2048];
    procfs_text(root, "/proc/meminfo", text, sizeof text);
    struct known_u64 out = field_of(text, "MemAvailable");
    out.v *= 1024;
    struct known_u64 group = group_leaves(root, "", "memory.max", "memory.current");
    if (!group.known) group = group_leaves(root, "memory", "memory.limit_in_bytes", "memory.usage_in_bytes");
    if (group.known && (!out.known || group.v < out.v)) out = group;
    return out;
}
