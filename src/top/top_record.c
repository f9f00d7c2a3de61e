/* SPDX-License-Identifier: MIT
 * top_record.c - the busiest processes of a moment as series of the recording, labelled "pid 1234 name", and rows of
 * the table made of them again. A recording that lasts keeps a bounded number of them: each label costs memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top/top_data.h"
#include "probe/probe.h"
#include "probe/procfs.h"

enum {
    RECORD_ROWS = 24,       /* processes a moment */
    RECORD_PROCESSES = 2000 /* processes a recording */
};
static const char prefix[] = "pid ";

bool top_is_process_label(const char *label)
{
    return strncmp(label, prefix, sizeof prefix - 1) == 0;
}

/* ---- there ---- */

static int by_use(const void *a, const void *b)
{
    const struct proc_row *x = *(const struct proc_row *const *)a, *y = *(const struct proc_row *const *)b;
    double cx = isnan(x->cpu) ? 0 : x->cpu, cy = isnan(y->cpu) ? 0 : y->cpu;
    if (cx != cy) return cx < cy ? 1 : -1;
    return (x->rss_bytes < y->rss_bytes) - (x->rss_bytes > y->rss_bytes);
}

/* A process that was recorded once goes on being recorded; new ones only while there is room. */
static void put_row(struct top_data *d, struct probe_put *put, const struct proc_row *r)
{
    char name[64], label[96];
    procfs_label(name, sizeof name, r->name, strlen(r->name));
    snprintf(label, sizeof label, "%s%d %s", prefix, (int)r->pid, name);
    bool known = series_has(&d->probes.set, METRIC_PROC_RSS, label);
    if (!known && d->recorded_processes >= RECORD_PROCESSES) return;
    d->recorded_processes += !known;
    const struct {
        enum metric_id metric;
        double value;
    } values[] = {
        {METRIC_PROC_CPU_USER, r->user_s},       {METRIC_PROC_CPU_SYSTEM, r->system_s},
        {METRIC_PROC_RSS, (double)r->rss_bytes}, {METRIC_PROC_THREADS, r->threads},
        {METRIC_PROC_READ, r->read_bytes},       {METRIC_PROC_WRITE, r->write_bytes},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!isnan(values[i].value)) probe_put(put, values[i].metric, label, values[i].value);
}

tare_status top_record_rows(struct top_data *d, tare_error *err)
{
    struct probe_put put = {&d->probes.set, &d->probes.now, err, TARE_OK, &d->probes.before, 0};
    VEC(const struct proc_row *) order = VEC_INIT;
    tare_status s = vec_reserve(&order, d->n_rows, err);
    for (size_t i = 0; i < d->n_rows && s == TARE_OK; i++)
        if (!isnan(d->rows[i].cpu)) order.items[order.n++] = &d->rows[i]; /* seen twice: no passer-by */
    if (s == TARE_OK && order.n > 0) qsort(order.items, order.n, sizeof *order.items, by_use);
    for (size_t i = 0; i < order.n && i < RECORD_ROWS && put.status == TARE_OK; i++)
        put_row(d, &put, order.items[i]);
    vec_release(&order);
    return s == TARE_OK ? put.status : s;
}

/* ---- and back ---- */

static double column_at(const struct top_data *d, size_t series, size_t moment)
{
    return d->tape.columns.items[series][moment];
}

/* Growth per second of a counter since the moment before. */
static double rate_at(const struct top_data *d, size_t series)
{
    if (d->at == 0) return NAN;
    double s = (double)(d->tape.at_ns.items[d->at] - d->tape.at_ns.items[d->at - 1]) / 1e9;
    double grown = column_at(d, series, d->at) - column_at(d, series, d->at - 1);
    return s > 0 && grown >= 0 ? grown / s : NAN;
}

static double plus(double a, double b) /* where either may be unknown */
{
    if (isnan(a)) return b;
    return isnan(b) ? a : a + b;
}

/* Where the values of a process go; counters have a rate beside them. */
static const struct {
    enum metric_id metric;
    size_t value, rate; /* offsets of doubles in the row; rates of the same place add up */
} fields[] = {
    {METRIC_PROC_CPU_USER, offsetof(struct proc_row, user_s), offsetof(struct proc_row, cpu)},
    {METRIC_PROC_CPU_SYSTEM, offsetof(struct proc_row, system_s), offsetof(struct proc_row, cpu)},
    {METRIC_PROC_READ, offsetof(struct proc_row, read_bytes), offsetof(struct proc_row, read_rate)},
    {METRIC_PROC_WRITE, offsetof(struct proc_row, write_bytes), offsetof(struct proc_row, write_rate)},
};

static void take_value(const struct top_data *d, struct proc_row *r, size_t series)
{
    double v = column_at(d, series, d->at);
    enum metric_id m = d->tape.set.items.items[series].metric;
    if (m == METRIC_PROC_RSS) r->rss_bytes = v > 0 && v < 0x1p63 ? (uint64_t)v : 0;
    if (m == METRIC_PROC_THREADS) r->threads = v > 0 && v < 0x1p31 ? (unsigned)v : 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].metric != m) continue;
        double *value = (double *)((char *)r + fields[i].value),
               *rate = (double *)((char *)r + fields[i].rate);
        *value = v;
        *rate = plus(*rate, rate_at(d, series));
    }
}

/* The row of a label "pid 1234 name"; a moment has few. */
static tare_status row_for(struct top_data *d, char *label, struct proc_row **out, tare_error *err)
{
    char *name;
    long pid = strtol(label + sizeof prefix - 1, &name, 10);
    if (*name == ' ') name++;
    for (size_t i = d->taped_rows.at.n; i > 0; i--)
        if (d->taped_rows.at.items[i - 1].pid == (pid_t)pid) {
            *out = &d->taped_rows.at.items[i - 1];
            return TARE_OK;
        }
    struct proc_row fresh = {
        .pid = (pid_t)pid, .uid = (uid_t)-1, .state = '?', .name = name, .command = name};
    fresh.cpu = fresh.user_s = fresh.system_s = NAN;
    fresh.read_bytes = fresh.write_bytes = fresh.read_rate = fresh.write_rate = NAN;
    tare_status s = vec_push(&d->taped_rows.at, fresh, err);
    if (s == TARE_OK) *out = vec_last(&d->taped_rows.at);
    return s;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct proc_row *)a)->pid, y = ((const struct proc_row *)b)->pid;
    return (x > y) - (x < y);
}

/* A process that has no value at this moment did not run then. `rows_known` is about the whole recording: it was made
 * with processes, even if none is there now. */
tare_status top_replay_rows(struct top_data *d, tare_error *err)
{
    tare_status s = TARE_OK;
    vec_clear(&d->taped_rows.at);
    for (size_t i = 0; i < d->tape.set.items.n && s == TARE_OK; i++) {
        char *label = d->tape.set.items.items[i].label;
        struct proc_row *row = NULL;
        if (!top_is_process_label(label)) continue;
        d->rows_known = true;
        if (isnan(column_at(d, i, d->at))) continue;
        s = row_for(d, label, &row, err);
        if (s == TARE_OK) take_value(d, row, i);
    }
    d->rows = d->taped_rows.at.items;
    d->n_rows = d->taped_rows.at.n;
    if (d->n_rows > 0) qsort(d->taped_rows.at.items, d->n_rows, sizeof *d->rows, by_pid);
    return s;
}
