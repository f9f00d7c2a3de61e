/* SPDX-License-Identifier: MIT
 * probe_cgroup.c - the control group of the program, or ours: versions 1, 2 and both at once. In a container the path
 * of the group may not be visible; then the root of the mount, which is the container's group, is read. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe/probe.h"
#include "probe/procfs.h"

/* Where each metric may come from, the better source first. A controller that is mounted by version 1 is not in
 * version 2, whose files then tell less. */
static const struct source {
    enum metric_id metric;
    const char *controller, *file, *key; /* key NULL: the file is one number */
    double scale;
    bool seldom; /* see probe_turn() */
} sources[] = {
    {METRIC_CG_CPU, "cpuacct", "cpuacct.usage", NULL, 1e-9, false},
    {METRIC_CG_CPU, "", "cpu.stat", "usage_usec", 1e-6, false},
    {METRIC_CG_THROTTLED, "cpu", "cpu.stat", "throttled_time", 1e-9, true},
    {METRIC_CG_THROTTLED, "", "cpu.stat", "throttled_usec", 1e-6, true},
    {METRIC_CG_PERIODS_THROTTLED, "cpu", "cpu.stat", "nr_throttled", 1, true},
    {METRIC_CG_PERIODS_THROTTLED, "", "cpu.stat", "nr_throttled", 1, true},
    {METRIC_CG_MEMORY, "memory", "memory.usage_in_bytes", NULL, 1, false},
    {METRIC_CG_MEMORY, "", "memory.current", NULL, 1, false},
    {METRIC_CG_MEMORY_LIMIT, "memory", "memory.limit_in_bytes", NULL, 1, true},
    {METRIC_CG_MEMORY_LIMIT, "", "memory.max", NULL, 1, true},
    {METRIC_CG_OOM, "memory", "memory.oom_control", "oom_kill", 1, true},
    {METRIC_CG_OOM, "", "memory.events", "oom_kill", 1, true},
};
enum { SOURCES = sizeof sources / sizeof *sources };
#define NO_LIMIT 4e18 /* what version 1 says for none, about */

struct cgroup_probe {
    struct probe base;
    struct {
        int fd;
        const struct source *source;
    } open[SOURCES];
    size_t n;
    int pressure[PROBE_PRESSURES];
    double limit_above; /* the least of the groups that this one is in; INFINITY: none */
    double limit;       /* as last read */
    struct probe_turn turn;
};

/* ---- reading ---- */

static bool read_source(int fd, const struct source *s, double *out)
{
    char text[2048];
    uint64_t v;
    if (!s->key) {
        if (!procfs_whole_number(fd, out)) return false;
    } else {
        if (procfs_line(fd, text, sizeof text) <= 0 || !procfs_field(text, s->key, &v)) return false;
        *out = (double)v;
    }
    *out *= s->scale;
    return true;
}

/* Of the limit the least counts: of this group, or of one above it. */
static void cgroup_sample(struct probe *p, struct probe_put *put)
{
    static const enum metric_id pressure[] = {METRIC_CG_PRESSURE_CPU, METRIC_CG_PRESSURE_MEMORY,
                                              METRIC_CG_PRESSURE_IO};
    struct cgroup_probe *c = (struct cgroup_probe *)p;
    bool all = probe_turn(&c->turn, p->thorough, put->to->at_ns);
    if (all) c->limit = c->limit_above;
    for (size_t i = 0; i < c->n; i++) {
        double v;
        const struct source *s = c->open[i].source;
        if ((s->seldom && !all) || !read_source(c->open[i].fd, s, &v)) continue; /* "max" */
        if (s->metric != METRIC_CG_MEMORY_LIMIT)
            probe_put(put, s->metric, "", v);
        else if (v < c->limit)
            c->limit = v;
    }
    if (c->limit < NO_LIMIT) probe_put(put, METRIC_CG_MEMORY_LIMIT, "", c->limit);
    if (all) probe_put_pressure(put, c->pressure, pressure);
}

/* ---- opening ---- */

static bool find_group(struct cgroup_place *g, const struct probe_place *at, const char *controller)
{
    char process[16] = "self";
    if (at->program) snprintf(process, sizeof process, "%d", (int)at->program);
    return cgroup_find(g, at->root, process, controller);
}

/* The limits of the groups above count too. */
static double least_above(const char *root, struct cgroup_place g, const struct source *s)
{
    double least = INFINITY, v;
    while (cgroup_up(&g)) {
        int fd = procfs_open(root, "%s%s/%s", g.mount, g.path, s->file);
        if (fd >= 0 && read_source(fd, s, &v) && v < least) least = v;
        procfs_close(&fd);
    }
    return least;
}

static bool has_metric(const struct cgroup_probe *c, enum metric_id m)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->open[i].source->metric == m) return true;
    return false;
}

static void open_source(struct cgroup_probe *c, const struct probe_place *at, const struct source *s)
{
    struct cgroup_place g;
    double v;
    if (has_metric(c, s->metric) || !find_group(&g, at, s->controller)) return;
    int fd = procfs_open(at->root, "%s%s/%s", g.mount, g.path, s->file);
    if (fd < 0) return;
    if (!read_source(fd, s, &v) && s->metric != METRIC_CG_MEMORY_LIMIT) {
        close(fd);
        return;
    }
    c->open[c->n].fd = fd;
    c->open[c->n++].source = s;
    if (s->metric == METRIC_CG_MEMORY_LIMIT) c->limit_above = least_above(at->root, g, s);
}

static void cgroup_close(struct probe *p)
{
    struct cgroup_probe *c = (struct cgroup_probe *)p;
    for (size_t i = 0; i < c->n; i++) procfs_close(&c->open[i].fd);
    for (int i = 0; i < PROBE_PRESSURES; i++) procfs_close(&c->pressure[i]);
}

static void open_pressure(struct cgroup_probe *c, const struct probe_place *at)
{
    static const char *const names[PROBE_PRESSURES] = {"cpu", "memory", "io"};
    struct cgroup_place g;
    bool found = find_group(&g, at, "");
    for (int i = 0; i < PROBE_PRESSURES; i++)
        c->pressure[i] = found ? procfs_open(at->root, "%s%s/%s.pressure", g.mount, g.path, names[i]) : -1;
    if (c->pressure[0] < 0) buf_add_str(&c->base.blind, "pressure of the group: needs cgroup version 2\n");
}

static tare_status cgroup_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct cgroup_probe *c = (struct cgroup_probe *)base;
    c->limit_above = INFINITY;
    for (size_t i = 0; i < SOURCES; i++) {
        open_source(c, at, &sources[i]);
        bool last = i + 1 == SOURCES || sources[i + 1].metric != sources[i].metric;
        if (last && !has_metric(c, sources[i].metric))
            buf_printf(&base->blind, "%s: no file of the group tells it\n",
                       metric_table[sources[i].metric].name);
    }
    open_pressure(c, at);
    if (c->n) return TARE_OK;
    return error_set(err, TARE_UNSUPPORTED, "no control group is visible below %s/sys/fs/cgroup", at->root);
}

const struct probe_ops probe_cgroup = {
    "cgroup", "the control group of the program",
    sizeof(struct cgroup_probe), cgroup_open, cgroup_sample, cgroup_close};
