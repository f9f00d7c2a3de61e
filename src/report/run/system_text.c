/* SPDX-License-Identifier: MIT
 * system_text.c - a watched program for people: what it used, its phases, what alerted, how the machine went. Reads
 * the document only. */
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/run/run_report.h"
#include "report/table.h"
#include "report/text.h"

/* ---- values with their unit ---- */

static bool is(const char *unit, const char *what)
{
    return strcmp(unit, what) == 0;
}

/* As wide as its column expects: three digits where values of one kind stand below each other. */
static void add_value(struct buf *b, const char *unit, struct known_f64 v)
{
    bool rate = is(unit, "B/s") || is(unit, "1/s");
    if (!v.known)
        buf_add_char(b, '-');
    else if (is(unit, "B") || is(unit, "B/s"))
        fmt_bytes(b, fmax(v.v, 0));
    else if (is(unit, "s"))
        fmt_duration(b, v.v * 1e9);
    else if (is(unit, "1"))
        buf_add_str(b, show_percent(v.v).s);
    else if (is(unit, "1/s"))
        buf_add_str(b, show_number(v.v).s);
    else if (is(unit, "W"))
        buf_printf(b, "%.3g W", v.v);
    else if (is(unit, "C"))
        buf_printf(b, "%.0f C", v.v);
    else if (is(unit, "Hz"))
        buf_printf(b, "%.3g GHz", v.v / 1e9);
    else
        fmt_number(b, v.v);
    if (v.known && rate) buf_add_str(b, "/s");
}

/* ---- lines ---- */

static void time_line(struct buf *b, const struct run_case *c)
{
    const struct run_watch *watch = &c->watch;
    if (!c->latency_ns.p50.known) return;
    fmt_duration(b, c->latency_ns.p50.value);
    if (watch->exit_code.known) buf_printf(b, ", exit code %llu", (unsigned long long)watch->exit_code.v);
    if (watch->signal.known) buf_printf(b, ", ended by signal %llu", (unsigned long long)watch->signal.v);
    if (watch->started.known && watch->started.v > 1)
        buf_printf(b, ", %llu processes seen", (unsigned long long)watch->started.v);
}

static void cpu_line(struct buf *b, const struct run_case *c)
{
    const struct run_cpu *cpu = &c->cpu;
    if (!cpu->user_ns.known || !cpu->system_ns.known) return;
    fmt_duration(b, (double)cpu->user_ns.v);
    buf_add_str(b, " user, ");
    fmt_duration(b, (double)cpu->system_ns.v);
    buf_add_str(b, " system");
    if (cpu->utilization.known) buf_printf(b, "; %.2f processors on average", cpu->utilization.v);
}

/* What all processes held together is the greatest of samples, the peak of one the kernel's own count: the sum says
 * something only where it is above that. */
static void memory_line(struct buf *b, const struct run_case *c)
{
    const struct run_memory *m = &c->memory;
    const struct run_watch *watch = &c->watch;
    if (!m->rss_peak.known) return;
    buf_add_str(b, "peak ");
    fmt_bytes(b, m->rss_peak.v);
    buf_add_str(b, " in one process");
    if (!watch->tree_rss_peak.known || !watch->rss_peak_at_s.known || watch->tree_rss_peak.v <= m->rss_peak.v)
        return;
    buf_add_str(b, "; all together ");
    fmt_bytes(b, watch->tree_rss_peak.v);
    buf_add_str(b, " after ");
    fmt_duration(b, watch->rss_peak_at_s.v * 1e9);
}

static void io_line(struct buf *b, const struct run_case *c)
{
    const struct run_io *io = &c->io;
    if (!io->read_bytes.known || !io->write_bytes.known) return;
    fmt_bytes(b, io->read_bytes.v);
    buf_add_str(b, " read from storage, ");
    fmt_bytes(b, io->write_bytes.v);
    buf_add_str(b, " written");
}

static void gpu_line(struct buf *b, const struct run_case *c)
{
    const struct run_gpu *g = &c->gpu;
    for (size_t i = 0; g->known && i < g->devices.n; i++) {
        const struct run_gpu_device *d = g->devices.at[i];
        buf_printf(b, "%sgpu%llu: ", i ? "; " : "", (unsigned long long)d->index.v);
        add_value(b, "1", d->utilization);
        buf_add_str(b, " busy");
        if (d->memory_peak.known) {
            buf_add_str(b, ", peak ");
            fmt_bytes(b, d->memory_peak.v);
        }
        if (d->power_w.known) buf_printf(b, ", %.0f W", d->power_w.v);
    }
}

static void energy_line(struct buf *b, const struct run_case *c)
{
    const struct run_energy *e = &c->energy;
    if (!e->known) return;
    if (!e->joules.known) {
        buf_printf(b, "- (%s)", e->why ? e->why : "unknown");
        return;
    }
    buf_printf(b, "%s J by %s, %s", show_number(e->joules.v).s, e->method, e->why ? e->why : "");
}

static void carbon_line(struct buf *b, const struct run_case *c)
{
    const struct run_carbon *co2 = &c->watch.carbon;
    if (!co2->known || !co2->grams.known) return;
    bool low = co2->lower_bound.known && co2->lower_bound.v;
    buf_printf(b, "%s%s g CO2 equivalent at %s g/kWh", low ? "at least " : "", show_number(co2->grams.v).s,
               show_number(co2->grid_g_per_kwh.v).s);
    if (low && co2->absent) buf_printf(b, "; without %s", co2->absent);
}

static void self_line(struct buf *b, const struct run_case *c)
{
    const struct run_watch *watch = &c->watch;
    if (!watch->self_cpu_s.known) return;
    fmt_duration(b, watch->self_cpu_s.v * 1e9);
    buf_add_str(b, " of processor time");
    /* A program that ends at once has hardly any time to be a share of. */
    if (c->self.share.known && c->self.share.v <= 1)
        buf_printf(b, " (%s of one)", show_percent(c->self.share.v).s);
    buf_add_str(b, " for ");
    fmt_counted(b, watch->samples.v, "sample", "samples");
    if (watch->late.v) buf_printf(b, ", %llu late", (unsigned long long)watch->late.v);
    if (watch->lost.v) buf_printf(b, ", %llu not in the trace", (unsigned long long)watch->lost.v);
    if (watch->hooks_bad.v)
        buf_printf(b, "; failed on alerts, commands or web hooks: %llu",
                   (unsigned long long)watch->hooks_bad.v);
}

static const struct {
    const char *name;
    void (*text)(struct buf *, const struct run_case *);
} lines[] = {{"time", time_line}, {"cpu", cpu_line},       {"memory", memory_line}, {"storage", io_line},
             {"gpu", gpu_line},   {"energy", energy_line}, {"carbon", carbon_line}, {"tare", self_line}};

static void write_lines(struct stream *s, const struct run_case *c)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf value = BUF_INIT;
        lines[i].text(&value, c);
        text_line(s, lines[i].name, &value);
    }
}

/* ---- tables ---- */

static void cell(struct table *t, const char *unit, struct known_f64 v)
{
    add_value(table_cell(t), unit, v);
}

static void cell_text(struct table *t, const char *text)
{
    text_name(table_cell(t), text, 200);
}

static void write_phases(struct stream *s, const struct run_watch *watch)
{
    static const struct table_column heads[] = {{"phase", true}, {"from", false},   {"to", false},
                                                {"busy", false}, {"memory", false}, {"gpu", false}};
    struct table t;
    if (watch->phases.n) text_heading(s, "phases");
    table_init(&t, heads, 6);
    for (size_t i = 0; i < watch->phases.n; i++) {
        const struct run_phase *p = watch->phases.at[i];
        cell_text(&t, p->name);
        cell(&t, "s", p->start_s);
        cell(&t, "s", p->end_s);
        cell(&t, "", p->cpu);
        cell(&t, "B", (struct known_f64){p->rss.known, (double)p->rss.v});
        cell(&t, "1", p->gpu);
    }
    table_end(&t, s, s->style.bold);
}

/* What a person looks at first; the document has all. */
static const char *const shown[] = {
    "process.cpu",   "process.memory.rss", "process.io",       "process.ready",   "cpu",
    "cpu.iowait.share", "cpu.steal.share", "memory",           "swap",            "throttled",
    "cgroup.memory.share", "pressure.cpu", "pressure.io",      "pressure.memory", "disk.busy",
    "disk.throughput", "disk.latency",     "net",              "power",           "temperature",
    "gpu",           "gpu.memory",         "gpu.power",        "gpu.temperature", "gpu.sm.active",
};

static bool is_shown(const struct run_metric *m)
{
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (strcmp(shown[i], m->metric) == 0) return m->max.known && m->max.v > 0;
    return false;
}

static void metric_cells(struct table *t, const struct run_metric *m)
{
    bool processors = strcmp(m->metric, "process.cpu") == 0 || strcmp(m->metric, "process.ready") == 0;
    const char *unit = processors || !m->unit ? "" : m->unit;
    cell_text(t, m->metric);
    cell_text(t, m->label && *m->label ? m->label : "");
    if (m->samples.known)
        fmt_count(table_cell(t), m->samples.v);
    else
        cell_text(t, "-");
    cell(t, unit, m->mean);
    cell(t, unit, m->p50);
    cell(t, unit, m->p95);
    cell(t, unit, m->max);
    cell(t, "s", m->at_max_s);
}

/* Quantities of the program are called process.*; the others are of the machine it ran on. */
static bool of_program(const struct run_metric *m)
{
    return strncmp(m->metric, "process.", strlen("process.")) == 0;
}

static void write_metrics(struct stream *s, const struct run_watch *watch, bool program)
{
    static const struct table_column heads[] = {{"metric", true}, {"of", true},    {"readings", false},
                                                {"mean", false},  {"p50", false},  {"p95", false},
                                                {"max", false},   {"after", false}};
    struct table t;
    table_init(&t, heads, 8);
    for (size_t i = 0; i < watch->metrics.n; i++)
        if (is_shown(watch->metrics.at[i]) && of_program(watch->metrics.at[i]) == program)
            metric_cells(&t, watch->metrics.at[i]);
    if (t.n_cells) text_heading(s, program ? "the program over the run" : "the machine over the run");
    table_end(&t, s, s->style.bold);
}

static void write_alerts(struct stream *s, const struct run_watch *watch)
{
    struct buf *b = &s->out;
    if (watch->alerts.n) text_heading(s, "alerts");
    for (size_t i = 0; i < watch->alerts.n && stream_poll(s) == TARE_OK; i++) {
        const struct run_alert *a = watch->alerts.at[i];
        buf_add_str(b, "  ");
        text_name(b, a->rule, 200);
        buf_add_str(b, ": from ");
        add_value(b, "s", a->start_s);
        buf_add_str(b, a->end_s.known ? " to " : " to the end");
        if (a->end_s.known) add_value(b, "s", a->end_s);
        buf_add_char(b, '\n');
    }
}

void run_watched_text(struct stream *s, const struct run *run)
{
    for (size_t i = 0; i < run->cases.n && s->status == TARE_OK; i++) {
        const struct run_case *c = run->cases.at[i];
        if (!c->watch.known) continue;
        write_lines(s, c);
        write_phases(s, &c->watch);
        write_metrics(s, &c->watch, true);
        write_metrics(s, &c->watch, false);
        write_alerts(s, &c->watch);
        stream_poll(s);
    }
}
