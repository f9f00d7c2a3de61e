/* SPDX-License-Identifier: MIT
 * top_devices.c - panes of `tare top` about disks, networks and GPUs: a row each, the busiest first; where there are
 * none, why. See top_panes.h. */
#include <math.h>
#include <stdio.h>

#include "top/top_panes.h"

/* A kind of device: what lists them, what orders them, how one is written. */
struct kind {
    const char *title, *probe;
    enum metric_id metric;
    const char *order;
    unsigned most; /* rows it wants at most */
    void (*draw)(const struct top_paint *p, struct screen_span at, const char *label);
};

static void draw_disk(const struct top_paint *p, struct screen_span at, const char *label)
{
    const struct top_data *d = p->d;
    double busy = top_value(d, "disk.busy", label), latency = top_value(d, "disk.latency", label);
    char late[32] = "-";
    if (!isnan(latency)) snprintf(late, sizeof late, "%.2f ms", latency * 1e3);
    screen_printf(p->s, at, top_level(busy), "%-10s read %6s/s  write %6s/s  busy %5s %%  %s", label,
                  top_bytes(top_value(d, "disk.read", label)).s,
                  top_bytes(top_value(d, "disk.write", label)).s, top_percent(busy).s, late);
}

static void draw_net(const struct top_paint *p, struct screen_span at, const char *label)
{
    const struct top_data *d = p->d;
    double errors = top_value(d, "net.errors", label);
    screen_printf(p->s, at, errors > 0 ? SCREEN_WARN : SCREEN_PLAIN,
                  "%-10s in   %6s/s  out   %6s/s  errors %s/s", label,
                  top_bytes(top_value(d, "net.rx", label)).s, top_bytes(top_value(d, "net.tx", label)).s,
                  top_number(errors, 0).s);
}

static void draw_gpu(const struct top_paint *p, struct screen_span at, const char *label)
{
    const struct top_data *d = p->d;
    double util = top_value(d, "gpu", label), throttled = top_value(d, "gpu.throttled", label);
    struct screen_part part = {util, SCREEN_USER, '|'};
    unsigned x = at.x, end = at.x + at.width, bar = at.width >= 80 ? 20 : at.width >= 50 ? 10 : 0;
    x += screen_printf(p->s, at, SCREEN_PLAIN, "%-6s", label);
    if (bar) screen_bar(p->s, (struct screen_span){x, at.y, bar}, &part, 1);
    x += bar;
    screen_printf(p->s, (struct screen_span){x, at.y, end > x ? end - x : 0},
                  throttled > 0 ? SCREEN_WARN : SCREEN_PLAIN, " %5s %%  memory %s of %s  %s W  %s C%s",
                  top_percent(util).s, top_bytes(top_value(d, "gpu.memory.used", label)).s,
                  top_bytes(top_value(d, "gpu.memory.total", label)).s,
                  top_number(top_value(d, "gpu.power", label), 0).s,
                  top_number(top_value(d, "gpu.temperature", label), 0).s,
                  throttled > 0 ? "  throttled" : "");
}

static const struct kind disks = {"Disk", "disk", METRIC_DISK_READ, "disk.throughput", 3, draw_disk};
static const struct kind nets = {"Net", "net", METRIC_NET_RX, "net", 3, draw_net};
static const struct kind gpus = {"GPU", "gpu", METRIC_GPU_MEM_TOTAL, NULL, 16, draw_gpu};

static unsigned want_kind(const struct top_paint *p, const struct kind *k)
{
    struct top_labels all;
    top_labels_of(p->d, k->metric, k->order, &all);
    return all.n == 0 ? 1 : all.n < k->most ? (unsigned)all.n : k->most;
}

static void draw_kind(const struct top_paint *p, struct screen_box box, const struct kind *k)
{
    struct top_labels all;
    char why[200];
    top_labels_of(p->d, k->metric, k->order, &all);
    struct screen_span at = {box.x, box.y, box.width};
    unsigned x = top_draw_text(p, at, k->title, "");
    if (x >= box.x + box.width) return;
    at = (struct screen_span){x, box.y, box.x + box.width - x};
    for (size_t i = 0; i < all.n && i < box.height; i++, at.y++) k->draw(p, at, all.at[i].label);
    if (all.n > 0) return;
    if (!top_blind(p->d, k->probe, why, sizeof why)) snprintf(why, sizeof why, "not in the sample");
    screen_printf(p->s, at, SCREEN_DIM, "none: %s", why);
}

unsigned top_want_disks(const struct top_paint *p, unsigned width)
{
    (void)width;
    return want_kind(p, &disks);
}

unsigned top_want_nets(const struct top_paint *p, unsigned width)
{
    (void)width;
    return want_kind(p, &nets);
}

unsigned top_want_gpus(const struct top_paint *p, unsigned width)
{
    (void)width;
    return want_kind(p, &gpus);
}

void top_draw_disks(const struct top_paint *p, struct screen_box box)
{
    draw_kind(p, box, &disks);
}

void top_draw_nets(const struct top_paint *p, struct screen_box box)
{
    draw_kind(p, box, &nets);
}

void top_draw_gpus(const struct top_paint *p, struct screen_box box)
{
    draw_kind(p, box, &gpus);
}
