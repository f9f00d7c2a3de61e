/* SPDX-License-Identifier: MIT
 * place.c - see place.h. */
#include "bench/place.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "probe/procfs.h"

enum {
    PLACES_MOST = CPU_SETSIZE,
    LEAST_TICKS = 3, /* fewer since the last look say nothing about idleness */
    NODES_MOST = 64,
    STAT_ROOM = 1 << 18
};
#define IDLE_SHARE 0.8
#define WAKE_NS 2000000 /* a processor that slept runs slowly at first */

struct place {
    uint64_t idle, all; /* ticks since boot; all 0: not seen yet */
    bool is_idle;
    bool judged, fits; /* of the kind of the first one that was left */
};

struct places {
    const char *root;
    struct rng rng;
    int home; /* -1: not known yet */
    char *stat;
    struct place at[PLACES_MOST];
};

struct places *places_open(const char *root, uint64_t seed)
{
    struct places *p = mem_new(1, sizeof *p);
    if (!p) return NULL;
    p->root = root;
    p->home = -1;
    rng_seed(&p->rng, seed);
    if ((p->stat = mem_new(STAT_ROOM, 1))) return p;
    mem_free(p);
    return NULL;
}

void places_close(struct places *p)
{
    if (p) mem_free(p->stat);
    mem_free(p);
}

/* ---- which are idle ---- */

/* "cpu3 user nice system idle iowait irq .." after its name: what an idle processor waits for does not matter. */
static bool read_ticks(const char *at, uint64_t *idle, uint64_t *all)
{
    uint64_t v;
    *idle = *all = 0;
    for (int i = 0; i < 8; i++) {
        if (!(at = procfs_number(at, &v))) return i > 4;
        *all += v;
        if (i == 3 || i == 4) *idle += v;
    }
    return true;
}

/* Where too little time has passed since the last look, that one still counts. */
static void look(struct places *p)
{
    int fd = procfs_open(p->root, "/proc/stat");
    ssize_t n = procfs_read(fd, p->stat, STAT_ROOM);
    procfs_close(&fd);
    for (const char *line = n > 0 ? p->stat : NULL; line && strncmp(line, "cpu", 3) == 0;) {
        uint64_t cpu, idle, all;
        const char *rest = line[3] == ' ' ? NULL : procfs_number(line + 3, &cpu);
        struct place *at = rest && cpu < PLACES_MOST ? &p->at[cpu] : NULL;
        if (at && read_ticks(rest, &idle, &all) && (!at->all || all >= at->all + LEAST_TICKS)) {
            at->is_idle = at->all && idle >= at->idle &&
                          (double)(idle - at->idle) >= IDLE_SHARE * (double)(all - at->all);
            at->idle = idle;
            at->all = all;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
}

/* ---- which are alike ---- */

static double number_of(const struct places *p, int cpu, const char *file)
{
    double v = 0;
    int fd = procfs_open(p->root, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    if (fd < 0 || !procfs_whole_number(fd, &v)) v = 0;
    procfs_close(&fd);
    return v;
}

static int node_of(const struct places *p, int cpu)
{
    char path[PATH_MAX];
    for (int node = 0; node < NODES_MOST; node++) {
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/node%d", p->root, cpu, node);
        if (access(path, F_OK) == 0) return node;
    }
    return -1;
}

/* On another node the memory would be far away, and a small core is another machine. */
static bool fits(struct places *p, int cpu)
{
    struct place *at = &p->at[cpu];
    if (!at->judged)
        at->fits = node_of(p, cpu) == node_of(p, p->home) &&
                   number_of(p, cpu, "cpu_capacity") == number_of(p, p->home, "cpu_capacity") &&
                   number_of(p, cpu, "cpufreq/cpuinfo_max_freq") ==
                       number_of(p, p->home, "cpufreq/cpuinfo_max_freq");
    at->judged = true;
    return at->fits;
}

/* ---- moving ---- */

static int choose(struct places *p, const cpu_set_t *allowed)
{
    int found = -1;
    uint64_t n = 0;
    for (int cpu = 0; cpu < PLACES_MOST; cpu++)
        if (CPU_ISSET(cpu, allowed) && p->at[cpu].is_idle && fits(p, cpu) && rng_below(&p->rng, ++n) == 0)
            found = cpu;
    return found;
}

int places_move(struct places *p, pid_t thread)
{
    cpu_set_t allowed, one;
    if (!p || sched_getaffinity(thread, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return -1;
    if (p->home < 0) p->home = sched_getcpu();
    if (p->home < 0) return -1;
    look(p);
    int cpu = choose(p, &allowed);
    if (cpu < 0) return -1;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(thread, sizeof one, &one) != 0) return -1;
    uint64_t until = clock_raw_ns() + WAKE_NS;
    while (!thread && clock_raw_ns() < until) {
    }
    sched_setaffinity(thread, sizeof allowed, &allowed); /* it may go on from there as before */
    return cpu;
}
