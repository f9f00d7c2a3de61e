/* SPDX-License-Identifier: MIT
 * top_panes.c - panes of `tare top` about the machine as a whole. See top_panes.h. */
#include "top/top_panes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"

/* ---- shared ---- */

enum screen_style top_level(double share)
{
    return share >= 0.9 ? SCREEN_BAD : share >= 0.75 ? SCREEN_WARN : SCREEN_PLAIN;
}

unsigned top_draw_text(const struct top_paint *p, struct screen_span at, const char *title, const char *text)
{
    screen_text(p->s, (struct screen_span){at.x, at.y, TOP_TITLE - 1}, SCREEN_TITLE, title);
    if (at.width <= TOP_TITLE) return at.x + at.width;
    struct screen_span rest = {at.x + TOP_TITLE, at.y, at.width - TOP_TITLE};
    return rest.x + screen_text(p->s, rest, SCREEN_PLAIN, text);
}

void top_draw_meter(const struct top_paint *p, struct screen_span at, const struct top_meter *m)
{
    enum { PERCENT = 8, LEAST_BAR = 16 };
    unsigned detail = at.width >= 60 ? screen_columns(m->detail) : 0;
    if (at.width < TOP_TITLE + PERCENT + 3) return;
    unsigned room = at.width - TOP_TITLE - PERCENT;
    if (detail + 2 + LEAST_BAR > room) detail = room > LEAST_BAR + 2 ? room - LEAST_BAR - 2 : 0;
    unsigned bar = detail ? room - detail - 2 : room;
    screen_text(p->s, (struct screen_span){at.x, at.y, TOP_TITLE - 1}, SCREEN_TITLE, m->title);
    screen_bar(p->s, (struct screen_span){at.x + TOP_TITLE, at.y, bar}, m->parts, m->n);
    struct screen_span percent = {at.x + TOP_TITLE + bar, at.y, PERCENT - 2};
    screen_right(p->s, percent, top_level(m->share), top_percent(m->share).s);
    percent.x += PERCENT - 1;
    percent.width = 1;
    screen_text(p->s, percent, SCREEN_PLAIN, "%");
    struct screen_span text = {at.x + at.width - detail, at.y, detail};
    screen_text(p->s, text, SCREEN_DIM, m->detail);
}

static int by_key(const void *a, const void *b)
{
    const struct top_label *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return strcmp(x->label, y->label);
}

void top_labels_of(const struct top_data *d, enum metric_id m, const char *quantity, struct top_labels *out)
{
    out->n = 0;
    for (size_t i = 0; i < d->set->items.n && out->n < TOP_LABELS; i++) {
        const struct series *one = &d->set->items.items[i];
        double v;
        if (one->metric != m || !one->label[0] || !sample_get(d->now, i, &v)) continue;
        double key = quantity ? top_value(d, quantity, one->label) : -(double)out->n;
        out->at[out->n++] = (struct top_label){one->label, isnan(key) ? -INFINITY : key};
    }
    if (quantity && out->n > 0) qsort(out->at, out->n, sizeof *out->at, by_key);
}

unsigned top_want_one(const struct top_paint *p, unsigned width)
{
    (void)p;
    (void)width;
    return 1;
}

/* ---- processors ---- */

/* The parts of a processor's time, of all of them or of one. */
static size_t cpu_parts(const struct top_data *d, const char *label, struct screen_part parts[4])
{
    static const struct {
        const char *name;
        enum screen_style style;
        char letter;
    } rows[4] = {{"cpu.user", SCREEN_USER, '|'},
                 {"cpu.system", SCREEN_SYSTEM, '#'},
                 {"cpu.iowait", SCREEN_WAIT, 'w'},
                 {"cpu.steal", SCREEN_STOLEN, 's'}};
    double processors = *label ? 1 : top_value(d, "cpu.count", "");
    for (size_t i = 0; i < 4; i++)
        parts[i] = (struct screen_part){top_value(d, rows[i].name, label) / processors, rows[i].style,
                                        rows[i].letter};
    return 4;
}

void top_draw_cpu(const struct top_paint *p, struct screen_box box)
{
    struct screen_part parts[4];
    char detail[160];
    size_t n = cpu_parts(p->d, "", parts);
    snprintf(detail, sizeof detail, "user %s  system %s  iowait %s  steal %s", top_percent(parts[0].share).s,
             top_percent(parts[1].share).s, top_percent(parts[2].share).s, top_percent(parts[3].share).s);
    struct top_meter m = {"CPU", parts, n, top_value(p->d, "cpu", ""), detail};
    top_draw_meter(p, (struct screen_span){box.x, box.y, box.width}, &m);
}

enum { CORE_COLUMNS = 20 };

/* fmin() would make the limit of what is unknown. */
static double at_most(double v, double limit)
{
    return v > limit ? limit : v;
}

static unsigned core_columns(unsigned width)
{
    unsigned n = width / CORE_COLUMNS;
    return n ? n : 1;
}

unsigned top_want_cores(const struct top_paint *p, unsigned width)
{
    struct top_labels cores;
    if (!p->v->cores) return 0;
    top_labels_of(p->d, METRIC_CPU_BUSY, NULL, &cores);
    return (unsigned)((cores.n + core_columns(width) - 1) / core_columns(width));
}

void top_draw_cores(const struct top_paint *p, struct screen_box box)
{
    enum { NAME = 6, PERCENT = 5 };
    struct top_labels cores;
    struct screen_part parts[4];
    unsigned columns = core_columns(box.width), cell = box.width / columns;
    top_labels_of(p->d, METRIC_CPU_BUSY, NULL, &cores);
    if (cell < NAME + PERCENT + 4) return;
    for (size_t i = 0; i < cores.n && i / columns < box.height; i++) {
        struct screen_span at = {box.x + (unsigned)(i % columns) * cell, box.y + (unsigned)(i / columns),
                                 NAME};
        double busy = at_most(top_value(p->d, "cpu.busy", cores.at[i].label), 1); /* its ticks are coarse */
        size_t n = cpu_parts(p->d, cores.at[i].label, parts);
        screen_text(p->s, at, SCREEN_DIM, cores.at[i].label);
        screen_bar(p->s, (struct screen_span){at.x + NAME, at.y, cell - NAME - PERCENT - 2}, parts, n);
        at.x += cell - PERCENT - 1;
        at.width = PERCENT;
        screen_right(p->s, at, top_level(busy), top_percent(busy).s);
    }
}

/* ---- memory ---- */

unsigned top_want_memory(const struct top_paint *p, unsigned width)
{
    (void)width;
    return top_value(p->d, "swap.used", "") > 0 || top_value(p->d, "swap", "") > 0 ? 2 : 1;
}

void top_draw_memory(const struct top_paint *p, struct screen_box box)
{
    const struct top_data *d = p->d;
    double total = top_value(d, "memory.total", ""), used = top_value(d, "memory", "");
    double cached = top_value(d, "memory.cached", "");
    struct screen_part parts[] = {{used, SCREEN_USER, '|'},
                                  {at_most(cached / total, 1 - used), SCREEN_DIM, 'c'}};
    char text[160];
    snprintf(text, sizeof text, "%s of %s  cached %s", top_bytes(used * total).s, top_bytes(total).s,
             top_bytes(cached).s);
    struct top_meter m = {"Mem", parts, 2, used, text};
    top_draw_meter(p, (struct screen_span){box.x, box.y, box.width}, &m);
    if (box.height < 2) return;
    snprintf(text, sizeof text, "%s used  in %s/s  out %s/s", top_bytes(top_value(d, "swap.used", "")).s,
             top_bytes(top_value(d, "swap.in", "")).s, top_bytes(top_value(d, "swap.out", "")).s);
    top_draw_text(p, (struct screen_span){box.x, box.y + 1, box.width}, "Swap", text);
}

/* ---- pressure, group, heat ---- */

void top_draw_pressure(const struct top_paint *p, struct screen_box box)
{
    static const struct {
        const char *name, *title;
    } rows[] = {{"pressure.cpu", "processor"}, {"pressure.memory", "memory"}, {"pressure.io", "I/O"}};
    struct screen_span at = {box.x, box.y, box.width};
    unsigned end = box.x + box.width, x = top_draw_text(p, at, "Wait", "");
    char why[200];
    bool any = false;
    for (size_t i = 0; i < 3; i++) {
        double share = top_value(p->d, rows[i].name, "");
        any = any || !isnan(share);
        if (x >= end) break;
        x += screen_printf(p->s, (struct screen_span){x, box.y, end - x}, SCREEN_DIM, "%s ", rows[i].title);
        x += screen_printf(p->s, (struct screen_span){x, box.y, end > x ? end - x : 0}, top_level(share),
                           "%s %%   ", top_percent(share).s);
    }
    if (!any && p->d->samples > 1 && x < end && top_blind(p->d, "system", why, sizeof why))
        screen_text(p->s, (struct screen_span){x, box.y, end - x}, SCREEN_DIM, why);
}

unsigned top_want_group(const struct top_paint *p, unsigned width)
{
    (void)width;
    return !isnan(top_value(p->d, "cgroup.memory.limit", "")) || top_value(p->d, "throttled", "") > 0;
}

void top_draw_group(const struct top_paint *p, struct screen_box box)
{
    const struct top_data *d = p->d;
    char text[200];
    snprintf(text, sizeof text, "memory %s of %s   throttled %s %%",
             top_bytes(top_value(d, "cgroup.memory", "")).s,
             top_bytes(top_value(d, "cgroup.memory.limit", "")).s,
             top_percent(top_value(d, "throttled", "")).s);
    top_draw_text(p, (struct screen_span){box.x, box.y, box.width}, "Group", text);
}

/* The clock of a processor on average; NAN: unknown. */
static double mean_clock(const struct top_data *d)
{
    struct top_labels cores;
    double sum = 0;
    top_labels_of(d, METRIC_CPU_FREQUENCY, NULL, &cores);
    for (size_t i = 0; i < cores.n; i++) sum += top_value(d, "cpu.frequency", cores.at[i].label);
    return cores.n ? sum / (double)cores.n : top_value(d, "cpu.frequency", "");
}

void top_draw_heat(const struct top_paint *p, struct screen_box box)
{
    struct top_labels sensors;
    double clock = mean_clock(p->d), power = top_value(p->d, "power", "");
    struct screen_span at = {box.x, box.y, box.width};
    unsigned end = box.x + box.width, x = top_draw_text(p, at, "Heat", "");
    char why[200];
    top_labels_of(p->d, METRIC_TEMPERATURE, "temperature", &sensors);
    if (!isnan(clock) && x < end)
        x += screen_printf(p->s, (struct screen_span){x, box.y, end - x}, SCREEN_PLAIN, "clock %.2f GHz   ",
                           clock / 1e9);
    if (!isnan(power) && x < end)
        x += screen_printf(p->s, (struct screen_span){x, box.y, end - x}, SCREEN_PLAIN, "power %.1f W   ",
                           power);
    for (size_t i = 0; i < sensors.n && x < end; i++)
        x += screen_printf(p->s, (struct screen_span){x, box.y, end - x},
                           sensors.at[i].key >= 90 ? SCREEN_BAD : SCREEN_PLAIN, "%s %.0f C   ",
                           sensors.at[i].label, sensors.at[i].key);
    if (sensors.n > 0 || x >= end) return;
    if (!top_blind(p->d, "temperature", why, sizeof why)) snprintf(why, sizeof why, "none recorded");
    screen_printf(p->s, (struct screen_span){x, box.y, end - x}, SCREEN_DIM, "no temperatures: %s", why);
}

/* ---- the program that is watched ---- */

unsigned top_want_program(const struct top_paint *p, unsigned width)
{
    (void)width;
    return p->d->program || !isnan(top_value(p->d, "process.count", ""));
}

void top_draw_program(const struct top_paint *p, struct screen_box box)
{
    const struct top_data *d = p->d;
    double alive = top_value(d, "process.count", "");
    char text[240], who[24] = "";
    if (d->program) snprintf(who, sizeof who, "%d: ", (int)d->program);
    if (d->program && !(alive > 0))
        snprintf(text, sizeof text, "%shas ended", who);
    else
        snprintf(text, sizeof text, "%s%s processes  %s threads  CPU %s %%  memory %s  read %s/s  write %s/s",
                 who, top_number(alive, 0).s, top_number(top_value(d, "process.threads", ""), 0).s,
                 top_percent(top_value(d, "process.cpu", "")).s,
                 top_bytes(top_value(d, "process.memory.rss", "")).s,
                 top_bytes(top_value(d, "process.io.read", "")).s,
                 top_bytes(top_value(d, "process.io.write", "")).s);
    top_draw_text(p, (struct screen_span){box.x, box.y, box.width}, "Prog", text);
}

/* ---- alerts ---- */

unsigned top_want_alerts(const struct top_paint *p, unsigned width)
{
    unsigned n = 0;
    (void)width;
    for (size_t i = 0; i < p->d->alert.n; i++) n += p->d->alert.items[i].active;
    return n;
}

void top_draw_alerts(const struct top_paint *p, struct screen_box box)
{
    const struct top_data *d = p->d;
    unsigned y = 0;
    for (size_t i = 0; i < d->alert.n && y < box.height; i++) {
        const struct top_alert *a = &d->alert.items[i];
        const struct alert_rule *r = &d->rules.items[i];
        struct buf since = BUF_INIT;
        struct screen_span at = {box.x, box.y + y, box.width};
        if (!a->active) continue;
        str_add_duration(&since, (double)(d->now->at_ns - a->since_ns));
        screen_printf(p->s, at, SCREEN_BAD, "ALERT %s, for %s%s%s", r->text, since.data,
                      *r->action ? ": " : "", r->action);
        buf_release(&since);
        y++;
    }
}

/* ---- history ---- */

unsigned top_want_history(const struct top_paint *p, unsigned width)
{
    (void)width;
    return p->v->once ? 0 : 6;
}

static double greatest(const struct top_history *h)
{
    double top = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->y[i] > top) top = h->y[i];
    return top;
}

void top_draw_history(const struct top_paint *p, struct screen_box box)
{
    unsigned shown = 0, cell = box.width / (box.width >= 120 ? 4 : box.width >= 60 ? 3 : 2);
    if (cell < 8) return;
    for (size_t i = 0; i < TOP_HISTORIES && (shown + 1) * cell <= box.width; i++) {
        const struct top_history *h = &p->d->history[i];
        const struct top_history_row *row = &top_histories[i];
        double now = h->n ? h->y[h->n - 1] : NAN, top = row->top > 0 ? row->top : greatest(h);
        struct screen_box at = {box.x + shown * cell, box.y + 1, cell - 1, box.height - 1};
        struct screen_span title = {at.x, box.y, at.width};
        if (isnan(now)) continue;
        if (row->top > 0)
            screen_printf(p->s, title, SCREEN_DIM, "%s %s %%", row->title, top_percent(now).s);
        else
            screen_printf(p->s, title, SCREEN_DIM, "%s %s/s of %s", row->title, top_bytes(now).s,
                          top_bytes(top).s);
        screen_graph(p->s, at, &(struct screen_series){h->y, h->n, top});
        shown++;
    }
}
