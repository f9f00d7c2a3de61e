/* SPDX-License-Identifier: MIT
 * procstat.c - see procstat.h. Never allocates, so that reading it does not change what it reads. */
#include "probe/procstat.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_THREADS = 256 }; /* of more, migrations are not counted: it would take too long */

bool procstat_text(const char *root, const char *path, char *text, size_t size)
{
    char full[4096];
    size_t used = 0;
    ssize_t n = 1;
    text[0] = 0;
    if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full) return false;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    while (used + 1 < size && (n = read(fd, text + used, size - 1 - used)) > 0) used += (size_t)n;
    close(fd);
    text[used] = 0;
    return n >= 0;
}

struct known_u64 procstat_field(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, len) != 0) continue;
        const char *at = line + len;
        if (*at != ' ' && *at != '\t' && *at != ':') continue; /* a longer key that begins like ours */
        while (*at == ' ' || *at == '\t' || *at == ':') at++;
        if (isdigit((unsigned char)*at)) return known_u64(strtoull(at, NULL, 10));
    }
    return (struct known_u64){0};
}

static uint64_t time_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_usec * 1000;
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
    if (snprintf(path, sizeof path, "/proc/self/task/%s/sched", thread) >= (int)sizeof path)
        return (struct known_u64){0};
    if (!procstat_text(root, path, text, sizeof text)) return (struct known_u64){0};
    return procstat_field(text, "se.nr_migrations");
}

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

static struct known_u64 read_migrations(const char *root)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/proc/self/task", root) >= (int)sizeof path)
        return (struct known_u64){0};
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return (struct known_u64){0};
    struct known_u64 sum = sum_migrations(root, folder);
    close(folder);
    return sum;
}

void procstat_read(struct procstat *out, const char *root)
{
    char text[1024];
    struct rusage use;
    memset(out, 0, sizeof *out);
    if (getrusage(RUSAGE_SELF, &use) == 0) { /* cannot fail with these arguments */
        out->user_ns = time_ns(use.ru_utime);
        out->system_ns = time_ns(use.ru_stime);
        out->minor_faults = (uint64_t)use.ru_minflt;
        out->major_faults = (uint64_t)use.ru_majflt;
        out->voluntary_switches = (uint64_t)use.ru_nvcsw;
        out->involuntary_switches = (uint64_t)use.ru_nivcsw;
    }
    if (procstat_text(root, "/proc/self/io", text, sizeof text)) {
        out->read_bytes = procstat_field(text, "read_bytes");
        out->write_bytes = procstat_field(text, "write_bytes");
    }
    out->migrations = read_migrations(root);
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
    return (struct procstat){
        .user_ns = rise(later->user_ns, earlier->user_ns),
        .system_ns = rise(later->system_ns, earlier->system_ns),
        .minor_faults = rise(later->minor_faults, earlier->minor_faults),
        .major_faults = rise(later->major_faults, earlier->major_faults),
        .voluntary_switches = rise(later->voluntary_switches, earlier->voluntary_switches),
        .involuntary_switches = rise(later->involuntary_switches, earlier->involuntary_switches),
        .migrations = known_rise(later->migrations, earlier->migrations),
        .read_bytes = known_rise(later->read_bytes, earlier->read_bytes),
        .write_bytes = known_rise(later->write_bytes, earlier->write_bytes),
    };
}

/* ---- memory ---- */

struct known_u64 procstat_rss(const char *root)
{
    char text[256], *at;
    if (!procstat_text(root, "/proc/self/statm", text, sizeof text)) return (struct known_u64){0};
    strtoull(text, &at, 10); /* the whole address space */
    if (at == text || *at != ' ') return (struct known_u64){0};
    char *end;
    uint64_t pages = strtoull(at, &end, 10);
    if (end == at) return (struct known_u64){0};
    return known_u64(pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

struct known_u64 procstat_rss_peak(const char *root)
{
    char text[8192];
    if (!procstat_text(root, "/proc/self/status", text, sizeof text)) return (struct known_u64){0};
    struct known_u64 kib = procstat_field(text, "VmHWM");
    return kib.known ? known_u64(kib.v * 1024) : kib;
}

bool procstat_rss_peak_reset(const char *root)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/proc/self/clear_refs", root) >= (int)sizeof path) return false;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool done = write(fd, "5", 1) == 1;
    close(fd);
    return done;
}
