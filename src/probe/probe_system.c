/* SPDX-License-Identifier: MIT
 * probe_system.c - the machine: processors (each, with detail), memory, swap, load, pressure. One read of each file per
 * sample, of the dear one seldom. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "probe/probe.h"
#include "probe/procfs.h"

enum { STAT, MEMINFO, VMSTAT, LOADAVG, PRESSURE, FILES = PRESSURE + PROBE_PRESSURES, TEXT_BYTES = 64 << 10 };

struct system_probe {
    struct probe base;
    int fd[FILES];
    bool detail;
    struct probe_turn swap; /* the kernel adds up all processors for it */
    double tick_s, page;
    char text[TEXT_BYTES];
};

static const struct {
    const char *path, *what;
} files[FILES] = {
    [STAT] = {"/proc/stat", "processor time"},
    [MEMINFO] = {"/proc/meminfo", "memory"},
    [VMSTAT] = {"/proc/vmstat", "swap traffic"},
    [LOADAVG] = {"/proc/loadavg", "load"},
    [PRESSURE] = {"/proc/pressure/cpu", "pressure of cpu"}, /* in the order of probe_put_pressure() */
    {"/proc/pressure/memory", "pressure of memory"},
    {"/proc/pressure/io", "pressure of io"},
};

/* ---- processors ---- */

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, TIMES };

/* One line "cpu3 1 2 3 ..." after its name: older kernels have fewer columns, and those are unknown. */
static void put_times(struct probe_put *put, const char *at, const char *label, double tick_s)
{
    uint64_t t[TIMES] = {0};
    int n = 0;
    while (n < TIMES && (at = procfs_number(at, &t[n]))) n++;
    if (n <= IDLE) return;
    double user = (double)(t[USER] + t[NICE]), system = (double)(t[SYSTEM] + t[IRQ] + t[SOFTIRQ]);
    probe_put(put, METRIC_CPU_BUSY, label, (user + system) * tick_s);
    probe_put(put, METRIC_CPU_USER, label, user * tick_s);
    probe_put(put, METRIC_CPU_SYSTEM, label, system * tick_s);
    double all = 0;
    for (int i = 0; i < n; i++) all += (double)t[i];
    probe_put(put, METRIC_CPU_ALL, label, all * tick_s);
    if (n > IOWAIT) probe_put(put, METRIC_CPU_IOWAIT, label, (double)t[IOWAIT] * tick_s);
    if (n > STEAL) probe_put(put, METRIC_CPU_STEAL, label, (double)t[STEAL] * tick_s);
}

/* The first lines of /proc/stat: the sum, then one for each processor that is online. */
static void put_cpus(struct system_probe *s, struct probe_put *put)
{
    unsigned cores = 0;
    if (procfs_line(s->fd[STAT], s->text, sizeof s->text) <= 0) return;
    for (const char *line = s->text; line && strncmp(line, "cpu", 3) == 0;) {
        size_t n = strcspn(line, " ");
        char label[16];
        procfs_label(label, sizeof label, line, n);
        cores += n > 3;
        if (n == 3)
            put_times(put, line + n, "", s->tick_s);
        else if (s->detail)
            put_times(put, line + n, label, s->tick_s);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (cores) probe_put(put, METRIC_CPU_COUNT, "", cores);
}

/* ---- memory ---- */

/* /proc/meminfo counts in KiB. A kernel that lacks a key just leaves its series out. */
static void put_memory(struct system_probe *s, struct probe_put *put)
{
    static const struct {
        const char *key;
        enum metric_id metric;
    } rows[] = {
        {"MemTotal", METRIC_MEM_TOTAL},
        {"MemAvailable", METRIC_MEM_AVAILABLE},
        {"Cached", METRIC_MEM_CACHED},
        {"Dirty", METRIC_MEM_DIRTY},
    };
    uint64_t v, total, left;
    if (procfs_line(s->fd[MEMINFO], s->text, sizeof s->text) <= 0) return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (procfs_field(s->text, rows[i].key, &v)) probe_put(put, rows[i].metric, "", (double)v * 1024);
    if (procfs_field(s->text, "SwapTotal", &total) && procfs_field(s->text, "SwapFree", &left))
        probe_put(put, METRIC_SWAP_USED, "", (double)(total > left ? total - left : 0) * 1024);
}

static void put_swap(struct system_probe *s, struct probe_put *put)
{
    uint64_t v;
    if (procfs_read(s->fd[VMSTAT], s->text, sizeof s->text) <= 0) return;
    if (procfs_field(s->text, "pswpin", &v)) probe_put(put, METRIC_SWAP_IN, "", (double)v * s->page);
    if (procfs_field(s->text, "pswpout", &v)) probe_put(put, METRIC_SWAP_OUT, "", (double)v * s->page);
}

/* "0.20 0.18 0.12 1/80 11206" */
static void put_load(struct system_probe *s, struct probe_put *put)
{
    uint64_t running;
    double load;
    if (procfs_line(s->fd[LOADAVG], s->text, sizeof s->text) <= 0) return;
    if (procfs_decimal(s->text, &load)) probe_put(put, METRIC_LOAD1, "", load);
    const char *slash = strchr(s->text, '/');
    while (slash && slash > s->text && slash[-1] >= '0' && slash[-1] <= '9') slash--;
    if (slash && procfs_number(slash, &running)) probe_put(put, METRIC_TASKS_RUNNING, "", (double)running);
}

/* ---- the probe ---- */

static void system_sample(struct probe *p, struct probe_put *put)
{
    static const enum metric_id pressure[] = {METRIC_PRESSURE_CPU, METRIC_PRESSURE_MEMORY,
                                              METRIC_PRESSURE_IO};
    struct system_probe *s = (struct system_probe *)p;
    put_cpus(s, put);
    put_memory(s, put);
    if (probe_turn(&s->swap, p->thorough, put->to->at_ns)) put_swap(s, put);
    put_load(s, put);
    probe_put_pressure(put, &s->fd[PRESSURE], pressure);
}

static void system_close(struct probe *p)
{
    struct system_probe *s = (struct system_probe *)p;
    for (int i = 0; i < FILES; i++) procfs_close(&s->fd[i]);
}

/* A kernel may have the file and refuse every read (pressure switched off). */
static bool readable(int *fd)
{
    char text[16];
    if (*fd >= 0 && procfs_line(*fd, text, sizeof text) > 0) return true;
    int saved = errno;
    procfs_close(fd);
    errno = saved;
    return false;
}

static tare_status system_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct system_probe *s = (struct system_probe *)base;
    unsigned seen = 0;
    s->detail = at->detail;
    s->tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    s->page = (double)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < FILES; i++) {
        s->fd[i] = procfs_open(at->root, "%s", files[i].path);
        if (readable(&s->fd[i]))
            seen++;
        else
            buf_printf(&base->blind, "%s: %s: %s\n", files[i].what, files[i].path, strerror(errno));
    }
    if (seen) return TARE_OK;
    return error_set(err, TARE_UNSUPPORTED, "nothing of %s/proc can be read", at->root);
}

const struct probe_ops probe_system = {
    "system", "processors, memory, swap, load and pressure of the machine",
    sizeof(struct system_probe), system_open, system_sample, system_close};
