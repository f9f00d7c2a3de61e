/* SPDX-License-Identifier: MIT
 * probe_disk.c - disks: bytes, requests and times of each, from /proc/diskstats. Whole disks and what the device mapper
 * or md makes of them; partitions, loops and disks in memory are left out. The series without a label sums the disks
 * that are not made of others. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "probe/probe.h"
#include "probe/procfs.h"

enum { TEXT_BYTES = 64 << 10, NAME_BYTES = 32, DISKS_MOST = 256 };

struct disk {
    char name[NAME_BYTES];
    bool wanted, stacked;
};

struct disk_probe {
    struct probe base;
    int fd;
    bool has_block; /* /sys/block tells disks from partitions */
    char root[512];
    VEC(struct disk) disks;
    char text[TEXT_BYTES];
};

/* Columns after the name, from 0. */
enum { READS, READ_SECTORS = 2, READ_MS, WRITES, WRITE_SECTORS = 6, WRITE_MS, BUSY_MS = 9, COLUMNS };

static const struct {
    enum metric_id metric;
    int column;
    double scale;
    bool summed;
} values[] = {
    {METRIC_DISK_READ, READ_SECTORS, 512, true},  {METRIC_DISK_WRITE, WRITE_SECTORS, 512, true},
    {METRIC_DISK_READS, READS, 1, true},          {METRIC_DISK_WRITES, WRITES, 1, true},
    {METRIC_DISK_READ_TIME, READ_MS, 1e-3, true}, {METRIC_DISK_WRITE_TIME, WRITE_MS, 1e-3, true},
    {METRIC_DISK_BUSY, BUSY_MS, 1e-3, false},
};
enum { VALUES = sizeof values / sizeof *values };

/* ---- which ---- */

static bool begins_with(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* sda1 of sda, nvme0n1p2 of nvme0n1: where the kernel does not say. */
static bool part_of_another(const struct disk_probe *p, const char *name)
{
    for (size_t i = 0; i < p->disks.n; i++) {
        const char *whole = p->disks.items[i].name, *rest = name + strlen(whole);
        if (!begins_with(name, whole) || !*rest) continue;
        rest += *rest == 'p';
        if (*rest && strspn(rest, "0123456789") == strlen(rest)) return true;
    }
    return false;
}

static bool is_wanted(const struct disk_probe *p, const char *name)
{
    static const char *const unwanted[] = {"loop", "ram", "zram", "sr", "fd"};
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) {
        size_t n = strlen(unwanted[i]);
        if (begins_with(name, unwanted[i]) && name[n] >= '0' && name[n] <= '9') return false;
    }
    char path[640];
    if (!p->has_block) return !part_of_another(p, name);
    snprintf(path, sizeof path, "%s/sys/block/%s", p->root, name);
    return access(path, F_OK) == 0;
}

static struct disk *find_disk(struct disk_probe *p, const char *name, size_t n)
{
    struct disk fresh = {{0}, false, false};
    if (n >= NAME_BYTES) return NULL;
    for (size_t i = 0; i < p->disks.n; i++)
        if (strncmp(p->disks.items[i].name, name, n) == 0 && !p->disks.items[i].name[n])
            return &p->disks.items[i];
    if (p->disks.n >= DISKS_MOST) return NULL;
    memcpy(fresh.name, name, n);
    fresh.wanted = is_wanted(p, fresh.name);
    fresh.stacked = begins_with(fresh.name, "dm-") || begins_with(fresh.name, "md");
    return vec_push(&p->disks, fresh, NULL) == TARE_OK ? vec_last(&p->disks) : NULL;
}

/* ---- values ---- */

/* "   8       0 sda 1 2 3 ..."; adds to the sums of the machine. */
static void put_line(struct disk_probe *p, struct probe_put *put, const char *line, double sum[VALUES])
{
    uint64_t number, v[COLUMNS];
    const char *at = procfs_number(line, &number);
    if (!at || !(at = procfs_number(at, &number))) return;
    while (*at == ' ') at++;
    size_t n = strcspn(at, " \n");
    const struct disk *d = find_disk(p, at, n);
    if (!d || !d->wanted) return;
    at += n;
    for (int i = 0; i < COLUMNS; i++)
        if (!(at = procfs_number(at, &v[i]))) return;
    for (size_t i = 0; i < VALUES; i++) {
        double value = (double)v[values[i].column] * values[i].scale;
        probe_put(put, values[i].metric, d->name, value);
        if (!d->stacked) sum[i] += value;
    }
}

static void disk_sample(struct probe *base, struct probe_put *put)
{
    struct disk_probe *p = (struct disk_probe *)base;
    double sum[VALUES] = {0};
    if (procfs_read(p->fd, p->text, sizeof p->text) < 0) return;
    put->read_ns = clock_raw_ns();
    for (const char *line = p->text; *line;) {
        put_line(p, put, line, sum);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    for (size_t i = 0; i < VALUES; i++)
        if (values[i].summed) probe_put(put, values[i].metric, "", sum[i]);
    put->read_ns = 0;
}

/* ---- the probe ---- */

static void disk_close(struct probe *base)
{
    struct disk_probe *p = (struct disk_probe *)base;
    procfs_close(&p->fd);
    vec_release(&p->disks);
}

static tare_status disk_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct disk_probe *p = (struct disk_probe *)base;
    snprintf(p->root, sizeof p->root, "%s", at->root);
    int block = procfs_open(at->root, "/sys/block");
    p->has_block = block >= 0;
    procfs_close(&block);
    p->fd = procfs_open(at->root, "/proc/diskstats");
    if (p->fd < 0) return error_set(err, TARE_UNSUPPORTED, "/proc/diskstats: %s", strerror(errno));
    if (!p->has_block)
        buf_add_str(&base->blind, "disks and partitions are told apart by their names: no /sys/block\n");
    return TARE_OK;
}

const struct probe_ops probe_disk = {
    "disk", "bytes, requests and times of each disk",
    sizeof(struct disk_probe), disk_open, disk_sample, disk_close};
