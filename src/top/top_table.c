/* SPDX-License-Identifier: MIT
 * top_table.c - the first and the last line of `tare top`, the table of processes, and the help. See top_panes.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "top/top_panes.h"
#include "core/str.h"
#include "report/text.h"

/* ---- numbers ---- */

struct top_text top_number(double v, int decimals)
{
    struct top_text t = {"-"};
    if (isfinite(v)) snprintf(t.s, sizeof t.s, "%.*f", decimals, v);
    return t;
}

struct top_text top_percent(double share)
{
    double percent = share * 100;
    return top_number(percent, fabs(percent) < 999.95 ? 1 : 0);
}

struct top_text top_bytes(double bytes)
{
    static const char units[] = "BKMGTPE";
    struct top_text t = {"-"};
    size_t unit = 0;
    if (!isfinite(bytes)) return t;
    while (fabs(bytes) >= 999.5 && units[unit + 1]) {
        bytes /= 1024;
        unit++;
    }
    snprintf(t.s, sizeof t.s, "%.*f%c", unit > 0 && fabs(bytes) < 99.95 ? 1 : 0, bytes, units[unit]);
    return t;
}

/* ---- first and last line ---- */

static void head_text(const struct top_paint *p, struct buf *b)
{
    const struct top_view *v = p->v;
    const struct top_data *d = p->d;
    double load = top_value(d, "load.1m", ""), running = top_value(d, "tasks.running", "");
    buf_printf(b, "tare top  %s  ", v->host);
    text_date(b, d->unix_ns, false);
    if (d->replaying)
        buf_printf(b, "  replay %zu of %zu, x%g", d->at + 1, d->tape.at_ns.n, v->speed);
    else
        buf_printf(b, "  every %gs", v->interval_s);
    if (d->record) buf_add_str(b, "  recording");
    if (v->paused) buf_add_str(b, "  PAUSED");
    if (!isnan(load)) buf_printf(b, "  load %.2f", load);
    if (!isnan(running)) buf_printf(b, "  running %.0f", running);
}

void top_draw_head(const struct top_paint *p, struct screen_box box)
{
    struct buf text = BUF_INIT;
    head_text(p, &text);
    screen_text(p->s, (struct screen_span){box.x, box.y, box.width}, SCREEN_TITLE, text.data);
    buf_release(&text);
}

void top_draw_foot(const struct top_paint *p, struct screen_box box)
{
    static const struct top_key_help keys[] = {{"q", "quit"},   {"?", "help"},    {"/", "filter"},
                                               {"t", "tree"},   {"cmpi", "sort"}, {"space", "pause"},
                                               {"+-", "speed"}, {"1", "cores"}};
    unsigned x = box.x, end = box.x + box.width;
    struct screen_span all = {box.x, box.y, box.width};
    if (p->v->typing) {
        screen_printf(p->s, all, SCREEN_KEY, "filter: %s_", p->v->filter);
        return;
    }
    if (p->v->trouble[0]) {
        screen_text(p->s, all, SCREEN_BAD, p->v->trouble);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys && x < end; i++) {
        x += screen_text(p->s, (struct screen_span){x, box.y, end - x}, SCREEN_KEY, keys[i].keys);
        x += screen_printf(p->s, (struct screen_span){x, box.y, end > x ? end - x : 0}, SCREEN_DIM, " %s  ",
                           keys[i].help);
    }
}

/* ---- the table ---- */

typedef struct top_text column_fn(const struct top_paint *p, const struct proc_row *r);

static struct top_text column_pid(const struct top_paint *p, const struct proc_row *r)
{
    (void)p;
    return top_number(r->pid, 0);
}

static struct top_text column_user(const struct top_paint *p, const struct proc_row *r)
{
    struct top_text t;
    snprintf(t.s, sizeof t.s, "%s", top_user(p->v, r->uid));
    return t;
}

static struct top_text column_cpu(const struct top_paint *p, const struct proc_row *r)
{
    (void)p;
    return top_percent(r->cpu);
}

static struct top_text column_rss(const struct top_paint *p, const struct proc_row *r)
{
    (void)p;
    return top_bytes((double)r->rss_bytes);
}

static struct top_text column_threads(const struct top_paint *p, const struct proc_row *r)
{
    (void)p;
    return top_number(r->threads, 0);
}

static struct top_text column_read(const struct top_paint *p, const struct proc_row *r)
{
    (void)p;
    return top_bytes(r->read_rate);
}

static struct top_text column_write(const struct top_paint *p, const struct proc_row *r)
{
    (void)p;
    return top_bytes(r->write_rate);
}

static const struct column {
    const char *title;
    unsigned width, least; /* shown in tables at least so wide */
    bool left;
    enum top_sort sort; /* whose column it is; TOP_SORTS: none's */
    column_fn *text;
} columns[] = {
    {"PID", 7, 0, false, TOP_SORT_PID, column_pid},      {"USER", 9, 64, true, TOP_SORTS, column_user},
    {"CPU%", 6, 0, false, TOP_SORT_CPU, column_cpu},     {"RSS", 6, 0, false, TOP_SORT_MEMORY, column_rss},
    {"THR", 4, 56, false, TOP_SORTS, column_threads},    {"READ/s", 6, 72, false, TOP_SORT_IO, column_read},
    {"WRIT/s", 6, 72, false, TOP_SORT_IO, column_write},
};

static void draw_cell(const struct top_paint *p, struct screen_span at, const struct column *c,
                      const char *text)
{
    if (c->left)
        screen_text(p->s, at, SCREEN_PLAIN, text);
    else
        screen_right(p->s, at, SCREEN_PLAIN, text);
}

/* Titles, reversed; the one that orders the table stands out. Returns where the command begins. */
static unsigned draw_titles(const struct top_paint *p, struct screen_box box)
{
    unsigned x = box.x;
    screen_fill(p->s, (struct screen_box){box.x, box.y, box.width, 1}, SCREEN_HEAD, ' ');
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const struct column *c = &columns[i];
        struct screen_span at = {x, box.y, c->width};
        enum screen_style style = c->sort == p->v->sort ? SCREEN_KEY : SCREEN_HEAD;
        if (box.width < c->least) continue;
        if (c->left)
            screen_text(p->s, at, style, c->title);
        else
            screen_right(p->s, at, style, c->title);
        x += c->width + 1;
    }
    screen_text(p->s, (struct screen_span){x, box.y, box.x + box.width - x}, SCREEN_HEAD, "COMMAND");
    return x;
}

/* The command line, its bytes escaped; what has none is shown by its name as the kernel's own are. */
static void command_text(struct buf *b, const struct top_paint *p, const struct top_line *line)
{
    const struct proc_row *r = &p->d->rows[line->row];
    unsigned depth = line->depth < 20 ? line->depth : 20;
    if (depth > 0) buf_printf(b, "%*s%s", (int)(depth - 1) * 2, "", p->s->utf8 ? "└ " : "` ");
    if (r->command[0]) {
        text_plain(b, r->command, strlen(r->command));
        return;
    }
    buf_add_char(b, '[');
    text_plain(b, r->name, strlen(r->name));
    buf_add_char(b, ']');
}

static void draw_row(const struct top_paint *p, struct screen_span at, const struct top_line *line)
{
    const struct proc_row *r = &p->d->rows[line->row];
    unsigned x = at.x;
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const struct column *c = &columns[i];
        if (at.width < c->least) continue;
        draw_cell(p, (struct screen_span){x, at.y, c->width}, c, c->text(p, r).s);
        x += c->width + 1;
    }
    command_text(&text, p, line);
    if (x < at.x + at.width)
        screen_text(p->s, (struct screen_span){x, at.y, at.x + at.width - x},
                    r->kernel ? SCREEN_DIM : SCREEN_PLAIN, text.data);
    buf_release(&text);
}

/* How many there are, and why some are not shown: at the right edge of the titles. */
static void draw_count(const struct top_paint *p, struct screen_box box, unsigned from)
{
    char text[100];
    const struct top_view *v = p->v;
    int n = snprintf(text, sizeof text, "%zu%s", v->matching, v->tree ? " tree" : "");
    if (v->filter[0]) n += snprintf(text + n, sizeof text - (size_t)n, " match '%.20s'", v->filter);
    if (p->d->denied) snprintf(text + n, sizeof text - (size_t)n, ", %zu hidden", p->d->denied);
    if (from + 9 < box.x + box.width)
        screen_right(p->s, (struct screen_span){from + 9, box.y, box.x + box.width - from - 9}, SCREEN_HEAD,
                     text);
}

unsigned top_want_table(const struct top_paint *p, unsigned width)
{
    (void)width;
    return (unsigned)(p->v->lines.at.n < SCREEN_MAX ? p->v->lines.at.n : SCREEN_MAX) + 1;
}

void top_draw_table(const struct top_paint *p, struct screen_box box)
{
    struct top_view *v = p->v;
    if (!p->d->rows_known) {
        top_draw_text(p, (struct screen_span){box.x, box.y, box.width}, "Procs",
                      "no processes in this recording");
        return;
    }
    unsigned from = draw_titles(p, box);
    draw_count(p, box, from);
    v->table_rows = box.height > 1 ? box.height - 1 : 0;
    size_t most = v->lines.at.n > v->table_rows ? v->lines.at.n - v->table_rows : 0;
    if (v->scroll > most) v->scroll = most;
    for (unsigned i = 0; i < v->table_rows && v->scroll + i < v->lines.at.n; i++)
        draw_row(p, (struct screen_span){box.x, box.y + 1 + i, box.width}, &v->lines.at.items[v->scroll + i]);
}

/* ---- help ---- */

void top_draw_help(const struct top_paint *p, struct screen_box box)
{
    unsigned n = 0;
    while (top_key_helps[n].keys) n++;
    unsigned width = box.width < 60 ? box.width : 60, height = n + 2 < box.height ? n + 2 : box.height;
    struct screen_box at = {box.x + (box.width - width) / 2, box.y + (box.height - height) / 2, width,
                            height};
    screen_fill(p->s, at, SCREEN_PLAIN, ' ');
    screen_fill(p->s, (struct screen_box){at.x, at.y, width, 1}, SCREEN_HEAD, ' ');
    screen_text(p->s, (struct screen_span){at.x + 1, at.y, width - 1}, SCREEN_HEAD,
                "keys (any key closes this)");
    for (unsigned i = 0; i + 1 < height && i < n; i++) {
        struct screen_span key = {at.x + 1, at.y + 1 + i, 14};
        screen_text(p->s, key, SCREEN_KEY, top_key_helps[i].keys);
        screen_text(p->s, (struct screen_span){key.x + 14, key.y, width > 16 ? width - 16 : 0}, SCREEN_PLAIN,
                    top_key_helps[i].help);
    }
}
