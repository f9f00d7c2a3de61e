/* SPDX-License-Identifier: MIT
 * cgroupstat.c - see cgroupstat.h. Never allocates. In a container the group's own path may not be visible
 * below /sys/fs/cgroup; then the mount's root, which is the container's group, is read. */
#include "probe/cgroupstat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/procstat.h"

/* ---- the group's files ---- */

/* Is `name` one of the comma-separated controllers of a line "5:cpu,cpuacct:/path"? */
static bool names_controller(const char *list, size_t n, const char *name)
{
    size_t len = strlen(name);
    if (len == 0) return n == 0;
    for (const char *at = list, *end = list + n; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - at) == len && memcmp(at, name, len) == 0) return true;
        at = stop + 1;
    }
    return false;
}

bool cgroup_path(const char *root, const char *process, const char *controller, char *out, size_t size)
{
    char text[4096], file[64];
    snprintf(file, sizeof file, "/proc/%s/cgroup", process);
    if (!procstat_text(root, file, text, sizeof text)) return false;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || !names_controller(list + 1, (size_t)(path - list - 1), controller)) continue;
        return snprintf(out, size, "%s", strcmp(path + 1, "/") == 0 ? "" : path + 1) < (int)size;
    }
    return false;
}

/* One file of the group: mount + group path + name, else mount + name. */
static bool group_text(const char *root, const char *controller, const char *name, char *text, size_t size)
{
    char group[2048], path[2600], mount[64];
    if (!cgroup_path(root, "self", controller, group, sizeof group)) return false;
    snprintf(mount, sizeof mount, "/sys/fs/cgroup%s%s", *controller ? "/" : "", controller);
    snprintf(path, sizeof path, "%s%s/%s", mount, group, name);
    if (procstat_text(root, path, text, size)) return true;
    snprintf(path, sizeof path, "%s/%s", mount, name);
    return procstat_text(root, path, text, size);
}

struct known_u64 cgroup_throttled_ns(const char *root)
{
    char text[4096];
    if (group_text(root, "", "cpu.stat", text, sizeof text)) {
        struct known_u64 us = procstat_field(text, "throttled_usec");
        if (us.known) return known_u64(us.v * 1000);
    }
    if (group_text(root, "cpu", "cpu.stat", text, sizeof text)) return procstat_field(text, "throttled_time");
    return (struct known_u64){0};
}

/* ---- the machine ---- */

struct cpu_ticks cpu_ticks_read(const char *root)
{
    struct cpu_ticks t = {0};
    char text[512]; /* the first line is enough */
    if (!procstat_text(root, "/proc/stat", text, sizeof text) || strncmp(text, "cpu ", 4) != 0) return t;
    char *at = text + 4, *end;
    for (int i = 0; i < 8; i++, at = end) { /* user nice system idle iowait irq softirq steal */
        t.steal = strtoull(at, &end, 10);
        if (end == at) return (struct cpu_ticks){0};
        t.all += t.steal;
    }
    t.known = true;
    return t;
}

/* ---- memory ---- */

static struct known_u64 number(const char *text)
{
    char *end;
    uint64_t v = strtoull(text, &end, 10);
    return end == text ? (struct known_u64){0} : known_u64(v); /* "max" is no number */
}

static struct known_u64 group_leaves(const char *root, const char *controller, const char *limit_name,
                                     const char *use_name)
{
    char text[64];
    if (!group_text(root, controller, limit_name, text, sizeof text)) return (struct known_u64){0};
    struct known_u64 limit = number(text);
    if (!limit.known || !group_text(root, controller, use_name, text, sizeof text))
        return (struct known_u64){0};
    struct known_u64 use = number(text), cache = {0};
    if (!use.known) return use;
    char stat[4096];
    if (group_text(root, controller, "memory.stat", stat, sizeof stat))
        cache = procstat_field(stat, *controller ? "total_inactive_file" : "inactive_file");
    use.v -= cache.known && cache.v < use.v ? cache.v : 0; /* files that the kernel drops when asked */
    return known_u64(limit.v > use.v ? limit.v - use.v : 0);
}

struct known_u64 memory_available(const char *root)
{
    char text[2048];
    struct known_u64 out = {0};
    if (procstat_text(root, "/proc/meminfo", text, sizeof text)) {
        out = procstat_field(text, "MemAvailable");
        out.v *= 1024;
    }
    struct known_u64 group = group_leaves(root, "", "memory.max", "memory.current");
    if (!group.known) group = group_leaves(root, "memory", "memory.limit_in_bytes", "memory.usage_in_bytes");
    if (group.known && (!out.known || group.v < out.v)) out = group;
    return out;
}
