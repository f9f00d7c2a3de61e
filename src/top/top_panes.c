/* SPDX-License-Identifier: MIT
 * top_panes.c - the panes of `tare top`: how many rows each wants, how it is drawn into those it gets, and the table of
 * them at the end, which is the order on the screen. On a small terminal the more important ones get their rows first;
 * processes always have some. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "top/top.h"

/* ---- shared ---- */

enum { TITLE = 6 }; /* columns of the titles at the left */

/* How alarming a share of something limited is. */
static enum screen_style style_of_share(double share)
{
    if (share >= 0.9) return SCREEN_BAD;
    return share >= 0.75 ? SCREEN_WARN : SCREEN_PLAIN;
}

/* Of what should not be there at all. */
static enum screen_style style_of_trouble(double v)
{
    return v > 0 ? SCREEN_WARN : SCREEN_PLAIN;
}

/* The title of a pane; what is left of the row after it. */
static struct screen_span draw_title(const struct top_paint *p, struct screen_span at, const char *title)
{
    unsigned used = at.width < TITLE ? at.width : TITLE;
    screen_text(p->s, (struct screen_span){at.x, at.y, TITLE - 1}, SCREEN_TITLE, title);
    return (struct screen_span){at.x + used, at.y, at.width - used};
}

static struct shown value_text(char kind, double v)
{
    struct shown t = {"-"};
    switch (kind) {
    case 'B': return narrow_bytes(v);
    case 'P': return narrow_percent(v);
    case 'N': return narrow_number(v, 0);
    default: /* 'M' */
        if (!isnan(v)) snprintf(t.s, sizeof t.s, "%.2f ms", v * 1e3);
        return t;
    }
}

/* `text` with the quantities that it names, see derive.h: {B disk.read} in bytes, {P cpu} in percent, {N process.count}
 * as a whole number, {M disk.latency} in milliseconds; {B6 disk.read} in at least 6 columns. Unknown ones are "-". */
static void add_values(struct buf *out, const struct top_data *d, const char *label, const char *text)
{
    for (const char *next; *text; text = next) {
        const char *open = strchrnul(text, '{');
        buf_add(out, text, (size_t)(open - text));
        if (!*open) return;
        const char *space = strchr(open, ' '), *close = strchr(open, '}');
        int width = space == open + 2 ? 0 : open[2] - '0';
        char name[40];
        snprintf(name, sizeof name, "%.*s", (int)(close - space - 1), space + 1);
        buf_printf(out, "%*s", width, value_text(open[1], top_value(d, name, label)).s);
        next = close + 1;
    }
}

/* A row of a title and quantities. */
static void draw_values(const struct top_paint *p, struct screen_span at, const char *title, const char *text)
{
    struct buf values = BUF_INIT;
    add_values(&values, p->d, "", text);
    screen_text(p->s, draw_title(p, at, title), SCREEN_PLAIN, values.data);
    buf_release(&values);
}

/* Title [|||##   ] 43.2 %  detail */
struct meter {
    const char *title;
    const struct screen_part *parts;
    size_t n;
    double share;
    const char *detail;
};

static void draw_meter(const struct top_paint *p, struct screen_span at, const struct meter *m)
{
    enum { PERCENT = 8, LEAST_BAR = 16 };
    unsigned detail = at.width >= 60 ? screen_columns(m->detail) : 0;
    if (at.width < TITLE + PERCENT + 3) return;
    unsigned room = at.width - TITLE - PERCENT;
    if (detail + 2 + LEAST_BAR > room) detail = room > LEAST_BAR + 2 ? room - LEAST_BAR - 2 : 0;
    unsigned bar = detail ? room - detail - 2 : room;
    draw_title(p, at, m->title);
    screen_bar(p->s, (struct screen_span){at.x + TITLE, at.y, bar}, m->parts, m->n);
    struct screen_span percent = {at.x + TITLE + bar, at.y, PERCENT - 2};
    screen_right(p->s, percent, style_of_share(m->share), narrow_percent(m->share).s);
    screen_text(p->s, (struct screen_span){percent.x + PERCENT - 1, at.y, 1}, SCREEN_PLAIN, "%");
    screen_text(p->s, (struct screen_span){at.x + at.width - detail, at.y, detail}, SCREEN_DIM, m->detail);
}

/* The labels of a metric that are known now, those with the greatest `quantity` first. */
struct labels {
    struct label {
        const char *label;
        double key;
    } at[256];
    size_t n;
};

static int by_key(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return strcmp(x->label, y->label);
}

static void find_labels(const struct top_data *d, enum metric_id m, const char *quantity, struct labels *out)
{
    out->n = 0;
    for (size_t i = 0; i < d->set->items.n && out->n < sizeof out->at / sizeof *out->at; i++) {
        const struct series *one = &d->set->items.items[i];
        double v;
        if (one->metric != m || !one->label[0]) continue;
        if (!sample_get(d->now, i, &v) && !derived_series(d->derived, i, &v)) continue;
        double key = quantity ? top_value(d, quantity, one->label) : -(double)out->n;
        out->at[out->n++] = (struct label){one->label, isnan(key) ? -INFINITY : key};
    }
    if (quantity && out->n > 0) qsort(out->at, out->n, sizeof *out->at, by_key);
}

/* ---- processors ---- */

enum { CPU_PARTS = 4 };

/* The parts of a processor's time, of all of them or of one. */
static void cpu_parts(const struct top_data *d, const char *label, struct screen_part parts[CPU_PARTS])
{
    static const struct {
        const char *name;
        enum screen_style style;
        char letter;
    } rows[CPU_PARTS] = {{"cpu.user.share", SCREEN_USER, '|'},
                         {"cpu.system.share", SCREEN_SYSTEM, '#'},
                         {"cpu.iowait.share", SCREEN_WAIT, 'w'},
                         {"cpu.steal.share", SCREEN_STOLEN, 's'}};
    for (size_t i = 0; i < CPU_PARTS; i++)
        parts[i] = (struct screen_part){top_value(d, rows[i].name, label), rows[i].style, rows[i].letter};
}

static void draw_cpu(const struct top_paint *p, struct screen_box box)
{
    struct screen_part parts[CPU_PARTS];
    char detail[240];
    cpu_parts(p->d, "", parts);
    snprintf(detail, sizeof detail, "user %s  system %s  iowait %s  steal %s",
             narrow_percent(parts[0].share).s, narrow_percent(parts[1].share).s,
             narrow_percent(parts[2].share).s, narrow_percent(parts[3].share).s);
    struct meter m = {"CPU", parts, CPU_PARTS, top_value(p->d, "cpu", ""), detail};
    draw_meter(p, screen_row(box, 0), &m);
}

/* fmin() would make the limit of what is unknown. */
static double at_most(double v, double limit)
{
    return v > limit ? limit : v;
}

static unsigned core_columns(unsigned width)
{
    enum { CORE_COLUMNS = 20 };
    return width < CORE_COLUMNS ? 1 : width / CORE_COLUMNS;
}

static unsigned want_cores(const struct top_paint *p)
{
    struct labels cores;
    if (!p->v->cores) return 0;
    find_labels(p->d, METRIC_CPU_BUSY, NULL, &cores);
    return (unsigned)((cores.n + core_columns(p->width) - 1) / core_columns(p->width));
}

static void draw_cores(const struct top_paint *p, struct screen_box box)
{
    enum { NAME = 6, PERCENT = 5 };
    struct labels cores;
    struct screen_part parts[CPU_PARTS];
    unsigned columns = core_columns(box.width), cell = box.width / columns;
    find_labels(p->d, METRIC_CPU_BUSY, NULL, &cores);
    if (cell < NAME + PERCENT + 4) return;
    for (size_t i = 0; i < cores.n && i / columns < box.height; i++) {
        struct screen_span at = {box.x + (unsigned)(i % columns) * cell, box.y + (unsigned)(i / columns),
                                 NAME};
        double busy = at_most(top_value(p->d, "cpu.busy", cores.at[i].label), 1); /* its ticks are coarse */
        cpu_parts(p->d, cores.at[i].label, parts);
        screen_text(p->s, at, SCREEN_DIM, cores.at[i].label);
        screen_bar(p->s, (struct screen_span){at.x + NAME, at.y, cell - NAME - PERCENT - 2}, parts,
                   CPU_PARTS);
        screen_right(p->s, (struct screen_span){at.x + cell - PERCENT - 1, at.y, PERCENT},
                     style_of_share(busy), narrow_percent(busy).s);
    }
}

/* ---- memory ---- */

static unsigned want_memory(const struct top_paint *p)
{
    return top_value(p->d, "swap.used", "") > 0 || top_value(p->d, "swap", "") > 0 ? 2 : 1;
}

static void draw_memory(const struct top_paint *p, struct screen_box box)
{
    const struct top_data *d = p->d;
    double total = top_value(d, "memory.total", ""), used = top_value(d, "memory", "");
    double cached = top_value(d, "memory.cached", "");
    struct screen_part parts[] = {{used, SCREEN_USER, '|'},
                                  {at_most(cached / total, 1 - used), SCREEN_DIM, 'c'}};
    char text[240];
    snprintf(text, sizeof text, "%s of %s  cached %s", narrow_bytes(used * total).s, narrow_bytes(total).s,
             narrow_bytes(cached).s);
    draw_meter(p, screen_row(box, 0), &(struct meter){"Mem", parts, 2, used, text});
    if (box.height > 1)
        draw_values(p, screen_row(box, 1), "Swap",
                    "{B swap.used} used  in {B swap.in}/s  out {B swap.out}/s");
}

/* ---- pressure, group, heat ---- */

/* What cannot be seen at all takes no row on a terminal: its help says why. A text for a file says it in place. */
static unsigned want_pressure(const struct top_paint *p)
{
    char why[200];
    bool any = !isnan(top_value(p->d, "pressure.cpu", "")) || !isnan(top_value(p->d, "pressure.io", ""));
    return any || p->v->once || !top_blind(p->d, "system", why, sizeof why);
}

static void draw_pressure(const struct top_paint *p, struct screen_box box)
{
    static const char *const rows[][2] = {
        {"pressure.cpu", "processor"}, {"pressure.memory", "memory"}, {"pressure.io", "I/O"}};
    struct screen_span at = draw_title(p, screen_row(box, 0), "Wait");
    char why[200];
    bool any = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double share = top_value(p->d, rows[i][0], "");
        any = any || !isnan(share);
        screen_add(p->s, &at, SCREEN_DIM, "%s ", rows[i][1]);
        screen_add(p->s, &at, style_of_share(share), "%s %%   ", narrow_percent(share).s);
    }
    if (!any && p->d->samples > 1 && top_blind(p->d, "system", why, sizeof why))
        screen_text(p->s, at, SCREEN_DIM, why);
}

static unsigned want_group(const struct top_paint *p)
{
    return !isnan(top_value(p->d, "cgroup.memory.limit", "")) || top_value(p->d, "throttled", "") > 0;
}

static void draw_group(const struct top_paint *p, struct screen_box box)
{
    draw_values(p, screen_row(box, 0), "Group",
                "memory {B cgroup.memory} of {B cgroup.memory.limit}   throttled {P throttled} %");
}

/* The clock of a processor on average; NAN: unknown. */
static double mean_clock(const struct top_data *d)
{
    struct labels cores;
    double sum = 0;
    find_labels(d, METRIC_CPU_FREQUENCY, NULL, &cores);
    for (size_t i = 0; i < cores.n; i++) sum += top_value(d, "cpu.frequency", cores.at[i].label);
    return cores.n ? sum / (double)cores.n : top_value(d, "cpu.frequency", "");
}

static unsigned want_heat(const struct top_paint *p)
{
    struct labels sensors;
    find_labels(p->d, METRIC_TEMPERATURE, NULL, &sensors);
    return p->v->once || sensors.n > 0 || !isnan(mean_clock(p->d)) || !isnan(top_value(p->d, "power", ""));
}

static void draw_heat(const struct top_paint *p, struct screen_box box)
{
    struct labels sensors;
    double clock = mean_clock(p->d), power = top_value(p->d, "power", "");
    struct screen_span at = draw_title(p, screen_row(box, 0), "Heat");
    char why[200];
    find_labels(p->d, METRIC_TEMPERATURE, "temperature", &sensors);
    if (!isnan(clock)) screen_add(p->s, &at, SCREEN_PLAIN, "clock %.2f GHz   ", clock / 1e9);
    if (!isnan(power)) screen_add(p->s, &at, SCREEN_PLAIN, "power %.1f W   ", power);
    for (size_t i = 0; i < sensors.n && at.width > 0; i++)
        screen_add(p->s, &at, sensors.at[i].key >= 90 ? SCREEN_BAD : SCREEN_PLAIN, "%s %.0f C   ",
                   sensors.at[i].label, sensors.at[i].key);
    if (sensors.n > 0) return;
    if (!top_blind(p->d, "temperature", why, sizeof why)) snprintf(why, sizeof why, "none recorded");
    screen_add(p->s, &at, SCREEN_DIM, "no temperatures: %s", why);
}

/* ---- disks, networks, GPUs: a row each, the busiest first; where there are none, why ---- */

static const struct top_device {
    const char *title, *probe;
    enum metric_id metric; /* whose labels they are */
    const char *order;     /* the quantity of the busiest; NULL: as they come */
    unsigned most;         /* rows at most */
    int name;              /* columns of the label */
    const char *bar;       /* a share that is drawn before the text; NULL: none */
    const char *text;      /* see add_values() */
    const char *judged;    /* the quantity by which the row is coloured */
    enum screen_style (*style)(double v);
    const char *warning; /* then also added to it */
} disks = {"Disk", "disk", METRIC_DISK_READ, "disk.throughput", 3, 10, NULL,
           " read {B6 disk.read}/s  write {B6 disk.write}/s  busy {P5 disk.busy} %  {M disk.latency}",
           "disk.busy", style_of_share, ""},
  nets = {"Net", "net", METRIC_NET_RX, "net", 3, 10, NULL,
          " in   {B6 net.rx}/s  out   {B6 net.tx}/s  errors {N net.errors}/s", "net.errors", style_of_trouble, ""},
  gpus = {"GPU", "gpu", METRIC_GPU_MEM_TOTAL, NULL, 16, 6, "gpu",
          " {P5 gpu} %  memory {B gpu.memory.used} of {B gpu.memory.total}  {N gpu.power} W  {N gpu.temperature} C",
          "gpu.throttled", style_of_trouble, "  throttled"};

static unsigned want_devices(const struct top_paint *p)
{
    struct labels all;
    find_labels(p->d, p->device->metric, p->device->order, &all);
    if (all.n == 0) return p->v->once;
    return all.n < p->device->most ? (unsigned)all.n : p->device->most;
}

/* Where there is a bar it is what is coloured by eye; the label then stays plain. */
static void draw_device(const struct top_paint *p, struct screen_span at, const char *label)
{
    const struct top_device *k = p->device;
    struct buf text = BUF_INIT;
    enum screen_style style = k->style(top_value(p->d, k->judged, label));
    unsigned bar = 0;
    if (k->bar && at.width >= 50) bar = at.width >= 80 ? 20 : 10;
    screen_add(p->s, &at, k->bar ? SCREEN_PLAIN : style, "%-*s", k->name, label);
    if (bar > 0 && bar < at.width) {
        struct screen_part part = {top_value(p->d, k->bar, label), SCREEN_USER, '|'};
        screen_bar(p->s, (struct screen_span){at.x, at.y, bar}, &part, 1);
        at.x += bar;
        at.width -= bar;
    }
    add_values(&text, p->d, label, k->text);
    if (style != SCREEN_PLAIN) buf_add_str(&text, k->warning);
    screen_text(p->s, at, style, text.data);
    buf_release(&text);
}

static void draw_devices(const struct top_paint *p, struct screen_box box)
{
    struct labels all;
    char why[200];
    find_labels(p->d, p->device->metric, p->device->order, &all);
    struct screen_span at = draw_title(p, screen_row(box, 0), p->device->title);
    if (at.width == 0) return;
    for (size_t i = 0; i < all.n && i < box.height; i++, at.y++) draw_device(p, at, all.at[i].label);
    if (all.n > 0) return;
    if (!top_blind(p->d, p->device->probe, why, sizeof why)) snprintf(why, sizeof why, "not in the sample");
    screen_add(p->s, &at, SCREEN_DIM, "none: %s", why);
}

/* ---- the program that is watched ---- */

static unsigned want_program(const struct top_paint *p)
{
    return p->d->program || !isnan(top_value(p->d, "process.count", ""));
}

static void draw_program(const struct top_paint *p, struct screen_box box)
{
    char text[200], who[24] = "";
    double n = top_value(p->d, "process.count", ""), threads = top_value(p->d, "process.threads", "");
    bool ended = p->d->program && !(n > 0);
    if (p->d->program) snprintf(who, sizeof who, "%d: ", (int)p->d->program);
    if (ended)
        snprintf(text, sizeof text, "%shas ended", who);
    else
        snprintf(text, sizeof text,
                 "%s{N process.count} %s  {N process.threads} %s  CPU {P process.cpu} %%  memory "
                 "{B process.memory.rss}  read {B process.io.read}/s  write {B process.io.write}/s",
                 who, n == 1 ? "process" : "processes", threads == 1 ? "thread" : "threads");
    draw_values(p, screen_row(box, 0), "Prog", text);
}

/* ---- alerts ---- */

static unsigned want_alerts(const struct top_paint *p)
{
    unsigned n = 0;
    for (size_t i = 0; i < p->d->alert.n; i++) n += p->d->alert.items[i].active;
    return n;
}

static void draw_alerts(const struct top_paint *p, struct screen_box box)
{
    const struct top_data *d = p->d;
    unsigned y = 0;
    for (size_t i = 0; i < d->alert.n && y < box.height; i++) {
        const struct top_alert *a = &d->alert.items[i];
        const struct alert_rule *r = &d->rules.items.items[i];
        struct buf since = BUF_INIT;
        if (!a->active) continue;
        struct screen_span at = screen_row(box, y++);
        fmt_duration(&since, (double)(d->now->at_ns - a->since_ns));
        screen_add(p->s, &at, SCREEN_BAD, "ALERT %s, for %s%s%s", r->text, since.data, *r->action ? ": " : "",
                   r->action);
        buf_release(&since);
    }
}

/* ---- history ---- */

/* As many graphs side by side as there is room for; what has no value now takes none. */
static void draw_history(const struct top_paint *p, struct screen_box box)
{
    unsigned shown = 0, side_by_side = 2;
    if (box.width >= 60) side_by_side = box.width >= 120 ? 4 : 3;
    unsigned cell = box.width / side_by_side;
    if (cell < 8) return;
    for (size_t i = 0; i < TOP_HISTORIES && (shown + 1) * cell <= box.width; i++) {
        const struct top_history *h = &p->d->history[i];
        const struct top_history_row *row = &top_histories[i];
        double now = h->n ? h->y[h->n - 1] : NAN, top = row->top > 0 ? row->top : top_history_greatest(h);
        struct screen_box at = {box.x + shown * cell, box.y + 1, cell - 1, box.height - 1};
        struct screen_span title = {at.x, box.y, at.width};
        if (isnan(now)) continue;
        screen_add(p->s, &title, SCREEN_DIM, "%s ", row->title);
        if (row->top > 0)
            screen_add(p->s, &title, SCREEN_DIM, "%s %%", narrow_percent(now).s);
        else
            screen_add(p->s, &title, SCREEN_DIM, "%s/s of %s", narrow_bytes(now).s, narrow_bytes(top).s);
        screen_graph(p->s, at, &(struct screen_series){h->y, h->n, top});
        shown++;
    }
}

static unsigned want_history(const struct top_paint *p)
{
    return p->d->chosen.details ? 0 : 6;
}

/* ---- all of them ---- */

static unsigned want_table(const struct top_paint *p)
{
    return (unsigned)(p->v->lines.at.n < SCREEN_MAX ? p->v->lines.at.n : SCREEN_MAX) + 1;
}

static const struct pane {
    unsigned rank; /* the lower, the sooner it gets rows */
    unsigned rows; /* it wants, where `want` is NULL */
    top_want_fn *want;
    top_draw_fn *draw;
    unsigned least; /* fewer rows than this are useless to it */
    bool live;      /* only on a terminal */
    const struct top_device *device;
} panes[] = {
    {0, 1, NULL, top_draw_head, 1, false, NULL},
    {4, 0, want_alerts, draw_alerts, 1, false, NULL},
    {5, 0, want_program, draw_program, 1, false, NULL},
    {2, 1, NULL, draw_cpu, 1, false, NULL},
    {12, 0, want_cores, draw_cores, 1, false, NULL},
    {3, 0, want_memory, draw_memory, 1, false, NULL},
    {7, 0, want_group, draw_group, 1, false, NULL},
    {8, 0, want_pressure, draw_pressure, 1, false, NULL},
    {9, 0, want_devices, draw_devices, 1, false, &disks},
    {10, 0, want_devices, draw_devices, 1, false, &nets},
    {6, 0, want_devices, draw_devices, 1, false, &gpus},
    {11, 0, want_heat, draw_heat, 1, false, NULL},
    {13, 0, want_history, draw_history, 3, true, NULL},
    {4, 0, top_want_details, top_draw_details, 3, true, NULL},
    {15, 0, want_table, top_draw_table, 0, false, NULL}, /* takes what is left */
    {1, 1, NULL, top_draw_foot, 1, true, NULL},
};
enum { PANES = sizeof panes / sizeof *panes, LAST_RANK = PANES - 1 };

static unsigned rows_wanted(struct top_paint *p, const struct pane *pane)
{
    if (pane->live && p->v->once) return 0;
    p->device = pane->device;
    return pane->want ? pane->want(p) : pane->rows;
}

/* Rows for each pane. Processes keep two fifths of the screen, and at least four rows of it. */
static void divide_rows(struct top_paint *p, unsigned rows[PANES])
{
    unsigned height = p->s->height, kept = height * 2 / 5 > 4 ? height * 2 / 5 : 4, given = 0;
    unsigned left = height < 3 ? height : 3;
    if (height > kept) left = height - kept;
    if (p->v->once) left = height;
    for (unsigned rank = 0; rank < LAST_RANK; rank++)
        for (size_t i = 0; i < PANES; i++) {
            if (panes[i].rank != rank) continue;
            unsigned want = rows_wanted(p, &panes[i]);
            rows[i] = want < left ? want : left;
            if (rows[i] < panes[i].least) rows[i] = 0;
            left -= rows[i];
            given += rows[i];
        }
    for (size_t i = 0; i < PANES; i++)
        if (panes[i].rank == LAST_RANK) rows[i] = height > given ? height - given : 0;
}

void top_draw(struct top_view *v, const struct top_data *d, struct screen *s)
{
    struct top_paint p = {v, d, s, s->width, NULL};
    unsigned rows[PANES] = {0}, y = 0;
    screen_clear(s);
    divide_rows(&p, rows);
    for (size_t i = 0; i < PANES; i++) {
        p.device = panes[i].device;
        if (rows[i] > 0) panes[i].draw(&p, (struct screen_box){0, y, s->width, rows[i]});
        y += rows[i];
    }
    if (v->help) top_draw_help(&p, (struct screen_box){0, 0, s->width, s->height});
}

unsigned top_height(struct top_view *v, const struct top_data *d, unsigned width, unsigned processes)
{
    struct top_paint p = {v, d, NULL, width, NULL};
    unsigned n = 0;
    for (size_t i = 0; i < PANES; i++) {
        unsigned want = rows_wanted(&p, &panes[i]);
        n += panes[i].rank == LAST_RANK && want > processes + 1 ? processes + 1 : want;
    }
    return n;
}
