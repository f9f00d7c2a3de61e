/* SPDX-License-Identifier: MIT
 * probe_temperature.c - heat and clock: sensors of hwmon, thermal zones, frequency of each core. Both change slowly and
 * some sensors take long to answer, so they are asked twice a second at most and their last answer stands meanwhile. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "probe/probe.h"
#include "probe/procfs.h"

enum { AGE_NS = 500000000, SENSORS_MOST = 512, SLOW_NS = 2000000, SLOW_AGE_NS = 2000000000 };

struct sensor {
    enum metric_id metric;
    char label[64];
    int fd;
    double scale, value; /* value: NAN, the last read failed */
    uint64_t read_ns, age_ns;
};

struct temperature_probe {
    struct probe base;
    bool detail;
    VEC(struct sensor) sensors;
};

/* ---- sampling ---- */

/* A sensor that takes long holds up the others' samples: it is asked less often. */
static void ask_sensor(struct sensor *s, uint64_t now)
{
    if (s->read_ns && now - s->read_ns < s->age_ns) return;
    uint64_t begun = clock_raw_ns();
    if (procfs_whole_number(s->fd, &s->value))
        s->value *= s->scale;
    else
        s->value = NAN;
    s->age_ns = clock_raw_ns() - begun > SLOW_NS ? SLOW_AGE_NS : AGE_NS;
    s->read_ns = now;
}

static void temperature_sample(struct probe *base, struct probe_put *put)
{
    struct temperature_probe *p = (struct temperature_probe *)base;
    uint64_t now = clock_raw_ns();
    double sum = 0;
    unsigned cores = 0;
    for (size_t i = 0; i < p->sensors.n; i++) {
        struct sensor *s = &p->sensors.items[i];
        ask_sensor(s, now);
        if (isnan(s->value)) continue;
        if (s->metric == METRIC_TEMPERATURE || p->detail) probe_put(put, s->metric, s->label, s->value);
        if (s->metric == METRIC_TEMPERATURE) continue;
        sum += s->value;
        cores++;
    }
    if (cores) probe_put(put, METRIC_CPU_FREQUENCY, "", sum / cores); /* the mean of all */
}

/* ---- finding sensors ---- */

struct search {
    struct temperature_probe *p;
    const char *root;
    tare_error *err;
    tare_status status;
};

/* Two sensors of one name are told apart by a number. */
static void make_unique(const struct temperature_probe *p, struct sensor *s)
{
    char base[sizeof s->label];
    memcpy(base, s->label, sizeof base);
    for (int n = 2; n < 1000; n++) {
        bool taken = false;
        for (size_t i = 0; i < p->sensors.n; i++) taken |= strcmp(p->sensors.items[i].label, s->label) == 0;
        if (!taken) return;
        snprintf(s->label, sizeof s->label, "%.56s %d", base, n);
    }
}

static void add_sensor(struct search *f, struct sensor s)
{
    double v;
    if (s.fd < 0 || f->status != TARE_OK || f->p->sensors.n >= SENSORS_MOST ||
        !procfs_whole_number(s.fd, &v)) {
        procfs_close(&s.fd);
        return;
    }
    make_unique(f->p, &s);
    f->status = vec_push(&f->p->sensors, s, f->err);
    if (f->status != TARE_OK) procfs_close(&s.fd);
}

static int by_version(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

/* Entries of a folder that begin with `prefix`, in order of their numbers. */
static void each_entry(struct search *f, const char *folder, const char *prefix,
                       void (*fn)(struct search *, const char *folder, const char *name))
{
    char path[4096];
    struct dirent **entries = NULL;
    snprintf(path, sizeof path, "%s%s", f->root, folder);
    int n = scandir(path, &entries, NULL, by_version);
    for (int i = 0; i < n; i++) {
        if (strncmp(entries[i]->d_name, prefix, strlen(prefix)) == 0) fn(f, folder, entries[i]->d_name);
        mem_free_libc(entries[i]);
    }
    mem_free_libc(entries);
}

/* .../hwmon2/temp1_input, labelled "coretemp Package id 0" */
static void add_input(struct search *f, const char *folder, const char *name)
{
    size_t n = strlen(name);
    if (n < 6 || strcmp(name + n - 6, "_input") != 0) return;
    char chip[32], text[32], file[300];
    struct sensor s = {.metric = METRIC_TEMPERATURE, .scale = 1e-3};
    procfs_name(f->root, folder, "name", chip, sizeof chip);
    snprintf(file, sizeof file, "%.*s_label", (int)(n - 6), name);
    procfs_name(f->root, folder, file, text, sizeof text);
    if (!text[0]) snprintf(text, sizeof text, "%.*s", (int)(n - 6 < 31 ? n - 6 : 31), name);
    snprintf(s.label, sizeof s.label, "%.31s %.31s", chip[0] ? chip : "hwmon", text);
    s.fd = procfs_open(f->root, "%s/%s", folder, name);
    add_sensor(f, s);
}

static void add_chip(struct search *f, const char *folder, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    each_entry(f, path, "temp", add_input);
}

static void add_zone(struct search *f, const char *folder, const char *name)
{
    char path[600];
    struct sensor s = {.metric = METRIC_TEMPERATURE, .scale = 1e-3};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    procfs_name(f->root, path, "type", s.label, sizeof s.label);
    if (!s.label[0]) snprintf(s.label, sizeof s.label, "%.60s", name);
    s.fd = procfs_open(f->root, "%s/temp", path);
    add_sensor(f, s);
}

static void add_core(struct search *f, const char *folder, const char *name)
{
    struct sensor s = {.metric = METRIC_CPU_FREQUENCY, .scale = 1e3};
    if (name[3] < '0' || name[3] > '9') return; /* cpufreq, cpuidle */
    snprintf(s.label, sizeof s.label, "%.60s", name);
    s.fd = procfs_open(f->root, "%s/%s/cpufreq/scaling_cur_freq", folder, name);
    add_sensor(f, s);
}

/* ---- the probe ---- */

static void temperature_close(struct probe *base)
{
    struct temperature_probe *p = (struct temperature_probe *)base;
    for (size_t i = 0; i < p->sensors.n; i++) procfs_close(&p->sensors.items[i].fd);
    vec_release(&p->sensors);
}

/* Thermal zones only where there is no sensor chip: they are the same sensors under other names. */
static tare_status temperature_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct temperature_probe *p = (struct temperature_probe *)base;
    p->detail = at->detail;
    struct search f = {p, at->root, err, TARE_OK};
    each_entry(&f, "/sys/class/hwmon", "hwmon", add_chip);
    if (!p->sensors.n)
        each_entry(&f, "/sys/class/thermal", "thermal_zone", add_zone); /* else the same sensors again */
    size_t sensors = p->sensors.n;
    each_entry(&f, "/sys/devices/system/cpu", "cpu", add_core);
    if (!sensors) buf_add_str(&base->blind, "temperature: no sensor chip and no thermal zone is visible\n");
    if (p->sensors.n == sensors)
        buf_add_str(&base->blind, "frequency: no cpufreq, it is decided elsewhere and not shown\n");
    if (f.status == TARE_OK && !p->sensors.n)
        return error_set(err, TARE_UNSUPPORTED,
                         "no sensor chip, no thermal zone and no cpufreq: usual in a virtual machine");
    return f.status;
}

const struct probe_ops probe_temperature = {
    "temperature", "sensors and the clock of each core",
    sizeof(struct temperature_probe), temperature_open, temperature_sample, temperature_close};
