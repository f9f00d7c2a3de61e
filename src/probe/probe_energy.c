/* SPDX-License-Identifier: MIT
 * probe_energy.c - energy by powercap (RAPL): joules since the probe was opened, per domain. Counters that wrap are
 * followed as long as they are read more often than they wrap. The series without a label is the packages and their
 * memory: the other domains are within a package, or around all of it, and are never added. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probe/probe.h"
#include "probe/procfs.h"

enum { DOMAINS_MOST = 64 };

struct domain {
    char label[64]; /* "package-0", "package-0/dram" */
    int fd;
    bool summed;
    double range, last; /* uJ */
    double joules;
};

struct energy_probe {
    struct probe base;
    struct domain domains[DOMAINS_MOST];
    size_t n;
};

/* ---- sampling ---- */

static bool advance(struct domain *d)
{
    double now;
    if (!procfs_whole_number(d->fd, &now)) return false;
    double used = now - d->last;
    if (used < 0) used += d->range; /* went past its end */
    if (used < 0) used = now;       /* reset, and no range is told */
    d->joules += used / 1e6;
    d->last = now;
    return true;
}

/* The sum is known only if all that belong to it are: a part of it would look like a fall. */
static void energy_sample(struct probe *base, struct probe_put *put)
{
    struct energy_probe *p = (struct energy_probe *)base;
    double sum = 0;
    bool whole = true, any = false;
    for (size_t i = 0; i < p->n; i++) {
        struct domain *d = &p->domains[i];
        bool read = advance(d);
        if (read) probe_put(put, METRIC_ENERGY, d->label, d->joules);
        if (!d->summed) continue;
        any = true;
        whole &= read;
        sum += d->joules;
    }
    if (any && whole) probe_put(put, METRIC_ENERGY, "", sum);
}

/* ---- opening ---- */

/* "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it; other control types repeat them or are no energy. */
static void open_domain(struct energy_probe *p, const char *root, const char *zone, int *denied)
{
    char name[32], parent[32] = "", folder[96], above[96];
    const char *first = strchr(zone, ':'), *second = first ? strchr(first + 1, ':') : NULL;
    struct domain d = {.fd = -1};
    snprintf(folder, sizeof folder, "/sys/class/powercap/%.64s", zone);
    if (p->n >= DOMAINS_MOST || !first || !procfs_name(root, folder, "name", name, sizeof name)) return;
    snprintf(above, sizeof above, "/sys/class/powercap/%.*s", second ? (int)(second - zone) : 0, zone);
    if (second && !procfs_name(root, above, "name", parent, sizeof parent)) return;
    snprintf(d.label, sizeof d.label, "%s%s%s", parent, second ? "/" : "", name);
    d.summed = second ? strcmp(name, "dram") == 0 : strncmp(name, "package", 7) == 0;
    d.fd = procfs_open(root, "%s/energy_uj", folder);
    if (d.fd < 0 && (errno == EACCES || errno == EPERM)) (*denied)++;
    int range = procfs_open(root, "%s/max_energy_range_uj", folder);
    if (range < 0 || !procfs_whole_number(range, &d.range)) d.range = 0;
    procfs_close(&range);
    if (d.fd >= 0 && procfs_whole_number(d.fd, &d.last))
        p->domains[p->n++] = d;
    else
        procfs_close(&d.fd);
}

static void energy_close(struct probe *base)
{
    struct energy_probe *p = (struct energy_probe *)base;
    for (size_t i = 0; i < p->n; i++) procfs_close(&p->domains[i].fd);
}

static int open_domains(struct energy_probe *p, const char *root)
{
    char path[4096];
    int denied = 0;
    snprintf(path, sizeof path, "%s/sys/class/powercap", root);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, "intel-rapl:", 11) == 0) open_domain(p, root, e->d_name, &denied);
    if (d) closedir(d);
    return denied;
}

static tare_status energy_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct energy_probe *p = (struct energy_probe *)base;
    int denied = open_domains(p, at->root);
    if (p->n && denied) buf_printf(&base->blind, "%d energy domains: only root may read them\n", denied);
    if (p->n) return TARE_OK;
    if (denied)
        return error_set(err, TARE_UNSUPPORTED,
                         "powercap is there, but only root may read it (chmod a+r "
                         "/sys/class/powercap/intel-rapl:*/energy_uj)");
    return error_set(
        err, TARE_UNSUPPORTED,
        "no powercap: hidden by the hypervisor or a container, or not supported by the processor");
}

const struct probe_ops probe_energy = {
    "energy", "joules of the processor packages",
    sizeof(struct energy_probe), energy_open, energy_sample, energy_close};
