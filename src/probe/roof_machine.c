/* SPDX-License-Identifier: MIT
 * roof_machine.c - see roof_machine.h. */
#include "probe/roof_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/procfs.h"

enum { CPUS_MAX = 4096, LEVELS_MAX = 8 };
#define MIB ((uint64_t)1 << 20)

/* A file of one cache of one processor; false: there is no such cache. */
static bool cache_text(const char *root, unsigned cpu, unsigned index, const char *name, char out[64])
{
    char path[120];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/%s", cpu, index, name);
    return procfs_text(root, path, out, 64);
}

static uint64_t size_of(const char *text) /* "32768K" */
{
    char *unit;
    uint64_t n = strtoull(text, &unit, 10);
    if (*unit == 'M') return n << 20;
    return *unit == 'K' ? n << 10 : n;
}

/* The largest level this processor has; its bytes if the processor is the first of those that share it, else 0. */
static unsigned last_level(const char *root, unsigned cpu, uint64_t *bytes)
{
    char text[64];
    unsigned most = 0;
    *bytes = 0;
    for (unsigned i = 0; i < LEVELS_MAX && cache_text(root, cpu, i, "level", text); i++) {
        unsigned level = (unsigned)strtoul(text, NULL, 10);
        if (level < most) continue;
        if (!cache_text(root, cpu, i, "shared_cpu_list", text)) continue;
        bool first = strtoul(text, NULL, 10) == cpu;
        most = level;
        *bytes = first && cache_text(root, cpu, i, "size", text) ? size_of(text) : 0;
    }
    return most;
}

struct known_u64 roof_cache_bytes(const char *root)
{
    uint64_t sum = 0, bytes;
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (!last_level(root, cpu, &bytes)) break;
        sum += bytes;
    }
    return sum ? known_u64(sum) : (struct known_u64){0};
}

size_t roof_working_set(struct known_u64 cache, struct known_u64 available)
{
    uint64_t caches = cache.known ? cache.v : 32 * MIB, want = 4 * caches;
    if (want < 64 * MIB) want = 64 * MIB;
    if (want > 1024 * MIB) want = 1024 * MIB;
    if (available.known && want > available.v / 8) want = available.v / 8;
    return want < 2 * caches ? 0 : (size_t)want;
}
