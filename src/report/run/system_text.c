/* SPDX-License-Identifier: MIT
 * system_text.c - a watched program for people: what it used, its phases, what alerted, how the machine went. Reads
 * the document only. */
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/run/run_report.h"
#include "report/run/system_text.h"
#include "report/table.h"
#include "report/text.h"

struct writer {
    struct stream *s;
    const struct report_style *style;
    const struct run *run;
    const struct run_case *c;
};

/* ---- values with their unit ---- */

static void add_share(struct buf *b, double v)
{
    buf_add_str(b, show_percent(v).s);
}

static void add_bytes(struct buf *b, double v)
{
    fmt_bytes(b, fmax(v, 0));
}

static void add_byte_rate(struct buf *b, double v)
{
    add_bytes(b, v);
    buf_add_str(b, "/s");
}

static void add_seconds(struct buf *b, double v)
{
    fmt_duration(b, v * 1e9);
}

static void add_rate(struct buf *b, double v)
{
    buf_printf(b, "%s/s", show_number(v).s);
}

static void add_watts(struct buf *b, double v)
{
    buf_printf(b, "%.3g W", v);
}

static void add_celsius(struct buf *b, double v)
{
    buf_printf(b, "%.0f C", v);
}

static void add_hertz(struct buf *b, double v)
{
    buf_printf(b, "%.3g GHz", v / 1e9);
}

static void add_number(struct buf *b, double v)
{
    fmt_number(b, v);
}

static const struct {
    const char *unit;
    void (*add)(struct buf *, double);
} units[] = {{"1", add_share},  {"B", add_bytes}, {"B/s", add_byte_rate}, {"s", add_seconds},
             {"1/s", add_rate}, {"W", add_watts}, {"C", add_celsius},     {"Hz", add_hertz}};

static void add_value(struct buf *b, const char *unit, struct known_f64 v)
{
    if (!v.known) {
        buf_add_char(b, '-');
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!unit || strcmp(units[i].unit, unit) != 0) continue;
        units[i].add(b, v.v);
        return;
    }
    add_number(b, v.v);
}

/* ---- lines ---- */

static void time_line(struct buf *b, const struct writer *w)
{
    const struct run_watch *watch = &w->c->watch;
    if (!w->c->latency_ns.p50.known) return;
    fmt_duration(b, w->c->latency_ns.p50.value);
    if (watch->exit_code.known) buf_printf(b, ", exit code %llu", (unsigned long long)watch->exit_code.v);
    if (watch->signal.known) buf_printf(b, ", ended by signal %llu", (unsigned long long)watch->signal.v);
    if (watch->started.known && watch->started.v > 1)
        buf_printf(b, ", %llu processes seen", (unsigned long long)watch->started.v);
}

static void cpu_line(struct buf *b, const struct writer *w)
{
    const struct run_cpu *c = &w->c->cpu;
    if (!c->user_ns.known || !c->system_ns.known) return;
    fmt_duration(b, (double)c->user_ns.v);
    buf_add_str(b, " user, ");
    fmt_duration(b, (double)c->system_ns.v);
    buf_add_str(b, " system");
    if (c->utilization.known) buf_printf(b, "; %.2f processors on average", c->utilization.v);
}

static void memory_line(struct buf *b, const struct writer *w)
{
    const struct run_memory *m = &w->c->memory;
    const struct run_watch *watch = &w->c->watch;
    if (!m->rss_peak.known) return;
    buf_add_str(b, "peak ");
    fmt_bytes(b, m->rss_peak.v);
    buf_add_str(b, " in one process");
    if (!watch->tree_rss_peak.known || !watch->rss_peak_at_s.known) return;
    buf_add_str(b, "; all together ");
    fmt_bytes(b, watch->tree_rss_peak.v);
    buf_add_str(b, " after ");
    add_seconds(b, watch->rss_peak_at_s.v);
}

static void io_line(struct buf *b, const struct writer *w)
{
    const struct run_io *io = &w->c->io;
    if (!io->read_bytes.known || !io->write_bytes.known) return;
    fmt_bytes(b, io->read_bytes.v);
    buf_add_str(b, " read from storage, ");
    fmt_bytes(b, io->write_bytes.v);
    buf_add_str(b, " written");
}

static void gpu_line(struct buf *b, const struct writer *w)
{
    const struct run_gpu *g = &w->c->gpu;
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

static void energy_line(struct buf *b, const struct writer *w)
{
    const struct run_energy *e = &w->c->energy;
    if (!e->known) return;
    if (!e->joules.known) {
        buf_printf(b, "- (%s)", e->why ? e->why : "unknown");
        return;
    }
    buf_printf(b, "%s J by %s, %s", show_number(e->joules.v).s, e->method, e->why ? e->why : "");
}

static void carbon_line(struct buf *b, const struct writer *w)
{
    const struct run_carbon *c = &w->c->watch.carbon;
    if (!c->known || !c->grams.known) return;
    bool low = c->lower_bound.known && c->lower_bound.v;
    buf_printf(b, "%s%s g CO2 equivalent at %s g/kWh", low ? "at least " : "", show_number(c->grams.v).s,
               show_number(c->grid_g_per_kwh.v).s);
    if (low && c->absent) buf_printf(b, "; without %s", c->absent);
}

static void self_line(struct buf *b, const struct writer *w)
{
    const struct run_watch *watch = &w->c->watch;
    if (!watch->self_cpu_s.known) return;
    add_seconds(b, watch->self_cpu_s.v);
    buf_add_str(b, " of processor time");
    if (w->c->self.share.known) buf_printf(b, " (%s of one)", show_percent(w->c->self.share.v).s);
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
    void (*text)(struct buf *, const struct writer *);
} lines[] = {{"time", time_line}, {"cpu", cpu_line},       {"memory", memory_line}, {"storage", io_line},
             {"gpu", gpu_line},   {"energy", energy_line}, {"carbon", carbon_line}, {"tare", self_line}};

static void write_lines(struct writer *w)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf value = BUF_INIT;
        lines[i].text(&value, w);
        run_line_text(w->s, w->style, lines[i].name, &value);
        buf_release(&value);
    }
}

/* ---- tables ---- */

static void heading(struct writer *w, const char *title)
{
    buf_printf(&w->s->out, "\n%s%s%s\n", w->style->bold, title, w->style->plain);
}

static void cell(struct table *t, const char *unit, struct known_f64 v)
{
    add_value(table_cell(t), unit, v);
}

static void cell_text(struct table *t, const char *text)
{
    struct buf *b = table_cell(t);
    text_plain(b, text, text_clip(text, 200));
}

static void write_phases(struct writer *w)
{
    static const struct table_column heads[] = {{"phase", true}, {"from", false},   {"to", false},
                                                {"busy", false}, {"memory", false}, {"gpu", false}};
    const struct run_watch *watch = &w->c->watch;
    struct table t;
    if (!watch->phases.n) return;
    heading(w, "phases");
    table_init(&t, heads, 6);
    for (size_t i = 0; i < watch->phases.n; i++) {
        const struct run_phase *p = watch->phases.at[i];
        cell_text(&t, p->name);
        cell(&t, "s", p->start_s);
        cell(&t, "s", p->end_s);
        cell(&t, NULL, p->cpu);
        cell(&t, "B", (struct known_f64){p->rss.known, (double)p->rss.v});
        cell(&t, "1", p->gpu);
    }
    table_print(&t, w->s, w->style->bold, w->style->plain);
    table_release(&t);
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
    const char *unit = processors ? NULL : m->unit;
    cell_text(t, m->metric);
    cell_text(t, m->label && *m->label ? m->label : "");
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

static void write_metrics(struct writer *w, const char *title, bool program)
{
    static const struct table_column heads[] = {{"metric", true}, {"of", true},   {"mean", false},
                                                {"p50", false},   {"p95", false}, {"max", false},
                                                {"after", false}};
    const struct run_watch *watch = &w->c->watch;
    struct table t;
    bool any = false;
    table_init(&t, heads, 7);
    for (size_t i = 0; i < watch->metrics.n; i++) {
        if (!is_shown(watch->metrics.at[i]) || of_program(watch->metrics.at[i]) != program) continue;
        any = true;
        metric_cells(&t, watch->metrics.at[i]);
    }
    if (any) {
        heading(w, title);
        table_print(&t, w->s, w->style->bold, w->style->plain);
    }
    table_release(&t);
}

static void write_alerts(struct writer *w)
{
    const struct run_watch *watch = &w->c->watch;
    struct buf *b = &w->s->out;
    if (watch->alerts.n) heading(w, "alerts");
    for (size_t i = 0; i < watch->alerts.n && w->s->status == TARE_OK; i++) {
        const struct run_alert *a = watch->alerts.at[i];
        buf_add_str(b, "  ");
        text_plain(b, a->rule, text_clip(a->rule, 200));
        buf_add_str(b, ": from ");
        add_value(b, "s", a->start_s);
        buf_add_str(b, a->end_s.known ? " to " : " to the end");
        if (a->end_s.known) add_value(b, "s", a->end_s);
        buf_add_char(b, '\n');
        stream_poll(w->s);
    }
}

void system_text_write(struct stream *s, const struct report_style *style, const struct run *run)
{
    for (size_t i = 0; i < run->cases.n && s->status == TARE_OK; i++) {
        struct writer w = {s, style, run, run->cases.at[i]};
        if (!w.c->watch.known) continue;
        write_lines(&w);
        write_phases(&w);
        write_metrics(&w, "the program over the run", true);
        write_metrics(&w, "the machine over the run", false);
        write_alerts(&w);
        stream_poll(s);
    }
}
