/* SPDX-License-Identifier: MIT
 * prom.c - see prom.h. */
#include "report/prom.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/str.h"

/* Base units of the exposition format; what is counted has none. */
static const struct {
    const char *unit, *suffix;
} units[] = {
    {"s", "_seconds"},
    {"B", "_bytes"},
    {"W", "_watts"},
    {"J", "_joules"},
    {"C", "_celsius"},
    {"Hz", "_hertz"},
    {"B/s", "_bytes_per_second"},
};

/* Gauges that may not be called .._count, which the format keeps for histograms. */
static const struct {
    enum metric_id metric;
    const char *name;
} renamed[] = {{METRIC_CPU_COUNT, "tare_cpus"}, {METRIC_PROC_COUNT, "tare_processes"}};

/* What the labels of a family are called, and whether its labelled series are given where there is a whole too. */
static const struct family {
    const char *prefix, *key;
    bool parts;
} families[] = {
    {"process.", "process", false}, {"cpu.", "cpu", true},      {"disk.", "device", true},
    {"net.", "interface", true},    {"gpu.", "gpu", true},      {"temperature", "sensor", true},
    {"energy", "domain", true},     {"cgroup.", "group", true},
};
static const struct family other = {"", "name", true};

static const struct family *family_of(enum metric_id m)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(metric_table[m].name, families[i].prefix, strlen(families[i].prefix)) == 0)
            return &families[i];
    return &other;
}

static const char *prom_label_key(enum metric_id m)
{
    return family_of(m)->key;
}

static const char *suffix_of(const char *unit)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].unit, unit) == 0) return units[i].suffix;
    return "";
}

void prom_name(enum metric_id m, char out[PROM_NAME_MAX])
{
    const struct metric *row = &metric_table[m];
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (renamed[i].metric == m) {
            snprintf(out, PROM_NAME_MAX, "%s", renamed[i].name);
            return;
        }
    int n = snprintf(out, PROM_NAME_MAX, "tare_%s%s%s", row->name, suffix_of(row->unit),
                     row->kind == METRIC_COUNTER ? "_total" : "");
    for (int i = 0; i < n && i < PROM_NAME_MAX - 1; i++)
        if (out[i] == '.') out[i] = '_';
}

/* Help texts escape backslash and newline, label values the quote as well; both are UTF-8. */
static void add_escaped(struct buf *out, const char *s, bool quoted)
{
    struct buf clean = BUF_INIT;
    str_add_utf8(&clean, s, strlen(s));
    if (clean.failed) out->failed = 1;
    for (const char *at = clean.data; *at; at++) {
        if (*at == '\\' || (quoted && *at == '"')) buf_add_char(out, '\\');
        if (*at == '\n')
            buf_add_str(out, "\\n");
        else
            buf_add_char(out, *at);
    }
    buf_release(&clean);
}

static void add_value(struct buf *out, double v)
{
    struct json j;
    if (isinf(v)) {
        buf_add_str(out, v > 0 ? "+Inf" : "-Inf");
        return;
    }
    json_init(&j, out, JSON_STYLE_COMPACT);
    json_put_double(&j, v);
}

void prom_label(struct buf *out, const char *key, const char *value)
{
    if (!value) return;
    buf_printf(out, "%c%s=\"", out->len && out->data[out->len - 1] == '"' ? ',' : '{', key);
    add_escaped(out, value, true);
    buf_add_char(out, '"');
}

void prom_value(struct buf *out, double v)
{
    buf_add_str(out, out->len && out->data[out->len - 1] == '"' ? "} " : " ");
    add_value(out, v);
    buf_add_char(out, '\n');
}

static void add_line(struct buf *out, const struct prom_host *h, const struct series *one, double v)
{
    char name[PROM_NAME_MAX];
    prom_name(one->metric, name);
    buf_add_str(out, name);
    prom_label(out, "host", h->name);
    prom_label(out, "project", h->project);
    prom_label(out, prom_label_key(one->metric), one->label[0] ? one->label : NULL);
    prom_value(out, v);
}

void prom_head(struct buf *out, const char *name, const char *help, bool counter)
{
    buf_printf(out, "# HELP %s ", name);
    add_escaped(out, help, false);
    buf_printf(out, "\n# TYPE %s %s\n", name, counter ? "counter" : "gauge");
}

/* How many series of a metric are known now, with and without a label. */
static void count_known(const struct prom_host *h, enum metric_id m, size_t n[2])
{
    const struct series_set *set = h->set;
    double v;
    n[0] = n[1] = 0;
    for (size_t i = 0; i < set->items.n; i++)
        if (set->items.items[i].metric == m && sample_get(h->now, i, &v))
            n[set->items.items[i].label[0] != 0]++;
}

/* *any: the head of the family is out. */
static void write_family(struct buf *out, const struct prom_host *h, enum metric_id m, bool *any)
{
    const struct metric *row = &metric_table[m];
    size_t known[2];
    char name[PROM_NAME_MAX];
    double v;
    count_known(h, m, known);
    if (known[0] + known[1] == 0) return;
    bool parts = known[0] == 0 || (known[1] > 0 && family_of(m)->parts);
    prom_name(m, name);
    if (!*any) prom_head(out, name, row->help, row->kind == METRIC_COUNTER);
    *any = true;
    for (size_t i = 0; i < h->set->items.n; i++) {
        const struct series *one = &h->set->items.items[i];
        if (one->metric != m || (one->label[0] != 0) != parts || !sample_get(h->now, i, &v)) continue;
        add_line(out, h, one, v);
    }
}

void prom_write_hosts(struct buf *out, const struct prom_host *hosts, size_t n)
{
    for (enum metric_id m = 0; m < METRIC_COUNT; m++) {
        bool any = false;
        for (size_t i = 0; i < n; i++) write_family(out, &hosts[i], m, &any);
    }
}

void prom_write(struct buf *out, const struct series_set *set, const struct sample *s)
{
    prom_write_hosts(out, &(struct prom_host){.set = set, .now = s}, 1);
}
