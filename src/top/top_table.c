/* SPDX-License-Identifier: MIT
 * top_table.c - the first and the last line of `tare top`, the table of processes, and the help. See top.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/text.h"
#include "top/top.h"

/* ---- first and last line ---- */

static void head_text(const struct top_paint *p, struct buf *b)
{
    const struct top_view *v = p->v;
    const struct top_data *d = p->d;
    double load = top_value(d, "load.1m", ""), running = top_value(d, "tasks.running", "");
    buf_printf(b, "tare top  %s  ", v->host);
    fmt_date(b, d->unix_ns, false);
    if (d->replaying)
        buf_printf(b, "  replay %zu of %zu, x%g", d->at + 1, d->tape.at_ns.n, v->speed);
    else if (d->remote)
        buf_printf(b, "  %s old, %s", show_time(top_remote_age_s(d->remote) * 1e9).s,
                   top_remote_where(d->remote));
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
    screen_text(p->s, screen_row(box, 0), SCREEN_TITLE, text.data);
    buf_release(&text);
}

static void ask(const struct top_paint *p, struct screen_span at)
{
    const struct proc_row *r = top_chosen_row(p->d);
    struct buf name = BUF_INIT;
    if (r) text_plain(&name, r->name, strlen(r->name));
    screen_add(p->s, &at, SCREEN_BAD, "end %d %s?  ", (int)p->d->chosen.pid, name.len ? name.data : "");
    screen_text(p->s, at, SCREEN_KEY, "y SIGTERM   K SIGKILL   any other key leaves it");
    buf_release(&name);
}

/* What the user types comes before a trouble, and both before the keys: there is one line for all of them. */
void top_draw_foot(const struct top_paint *p, struct screen_box box)
{
    static const struct top_key_help general[] = {{"q", "quit"},   {"?", "help"},    {"/", "filter"},
                                                  {"t", "tree"},   {"cmpi", "sort"}, {"space", "pause"},
                                                  {"+-", "speed"}, {"1", "cores"},   {NULL, NULL}};
    static const struct top_key_help chosen[] = {{"q", "quit"},      {"?", "help"}, {"Enter", "threads"},
                                                 {"f", "functions"}, {"k", "end"},  {"Esc", "leave"},
                                                 {"/", "filter"},    {NULL, NULL}};
    const struct top_key_help *keys = p->d->chosen.pid ? chosen : general;
    struct screen_span at = screen_row(box, 0);
    if (p->v->asking) {
        ask(p, at);
        return;
    }
    if (p->v->typing) {
        screen_add(p->s, &at, SCREEN_KEY, "filter: %s_", p->v->filter);
        return;
    }
    if (p->v->trouble[0]) {
        screen_text(p->s, at, SCREEN_BAD, p->v->trouble);
        return;
    }
    for (size_t i = 0; keys[i].keys; i++) {
        screen_add(p->s, &at, SCREEN_KEY, "%s", keys[i].keys);
        screen_add(p->s, &at, SCREEN_DIM, " %s  ", keys[i].help);
    }
}

/* ---- the table ---- */

static struct shown field_text(const struct top_field *f)
{
    struct shown t;
    switch (f->kind) {
    case TOP_COUNT: return narrow_number(f->number, 0);
    case TOP_SHARE: return narrow_percent(f->number);
    case TOP_SIZE:
    case TOP_RATE: return narrow_bytes(f->number);
    default: snprintf(t.s, sizeof t.s, "%s", f->text); return t;
    }
}

static const struct proc_row nobody = {.uid = (uid_t)-1}; /* its fields are those of the titles */

/* The cell of a column in what is left of a row, which becomes less; false: a table so wide has no such column. */
static bool take_cell(const struct top_field *f, unsigned width, struct screen_span *left,
                      struct screen_span *cell)
{
    if (!f->title || width < f->least) return false;
    unsigned taken = f->width + 1 < left->width ? f->width + 1 : left->width;
    *cell = (struct screen_span){left->x, left->y, f->width};
    left->x += taken;
    left->width -= taken;
    return true;
}

/* A row of cells, words at the left of their columns and numbers at the right; or the titles, reversed, with those that
 * order the table standing out (r NULL). What is left for the command. */
static struct screen_span draw_fields(const struct top_paint *p, struct screen_span at,
                                      const struct proc_row *r, enum screen_style plain)
{
    struct top_fields fields;
    const unsigned width = at.width;
    top_fields_of(&fields, p->v, r ? r : &nobody);
    for (size_t i = 0; i < TOP_FIELDS; i++) {
        const struct top_field *f = &fields.at[i];
        struct screen_span cell;
        enum screen_style style = plain;
        if (!take_cell(f, width, &at, &cell)) continue;
        struct shown text = field_text(f);
        if (!r) {
            style = f->sort == p->v->sort ? SCREEN_KEY : SCREEN_HEAD;
            snprintf(text.s, sizeof text.s, "%s", f->title);
        }
        if (f->kind == TOP_WORD)
            screen_text(p->s, cell, style, text.s);
        else
            screen_right(p->s, cell, style, text.s);
    }
    return at;
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
    struct buf text = BUF_INIT;
    bool chosen = r == top_chosen_row(p->d);
    enum screen_style style = chosen ? SCREEN_HEAD : SCREEN_PLAIN;
    command_text(&text, p, line);
    if (chosen) screen_fill(p->s, (struct screen_box){at.x, at.y, at.width, 1}, SCREEN_HEAD, ' ');
    at = draw_fields(p, at, r, style);
    screen_text(p->s, at, r->kernel && !chosen ? SCREEN_DIM : style, text.data);
    buf_release(&text);
}

/* The titles; at their right edge how many processes there are, and why some are not shown. */
static void draw_titles(const struct top_paint *p, struct screen_box box)
{
    enum { COMMAND = 9 };
    struct buf text = BUF_INIT;
    const struct top_view *v = p->v;
    screen_fill(p->s, (struct screen_box){box.x, box.y, box.width, 1}, SCREEN_HEAD, ' ');
    struct screen_span at = draw_fields(p, screen_row(box, 0), NULL, SCREEN_HEAD);
    screen_text(p->s, at, SCREEN_HEAD, "COMMAND");
    buf_printf(&text, "%zu%s", v->matching, v->tree ? " tree" : "");
    if (v->filter[0]) buf_printf(&text, " match '%.20s'", v->filter);
    if (p->d->denied) buf_printf(&text, ", %zu hidden", p->d->denied);
    if (at.width > COMMAND)
        screen_right(p->s, (struct screen_span){at.x + COMMAND, at.y, at.width - COMMAND}, SCREEN_HEAD,
                     text.data);
    buf_release(&text);
}

enum top_sort top_sort_at(unsigned x, unsigned width)
{
    struct top_fields fields;
    struct screen_span left = {0, 0, width}, cell;
    top_fields_of(&fields, NULL, &nobody);
    for (size_t i = 0; i < TOP_FIELDS; i++)
        if (take_cell(&fields.at[i], width, &left, &cell) && x >= cell.x && x < cell.x + cell.width)
            return fields.at[i].sort;
    return TOP_SORTS;
}

/* Turn the table as far as needed for the chosen process to be in it. */
static void show_chosen(struct top_view *v, const struct top_data *d)
{
    size_t at = top_chosen_line(v, d);
    if (at >= v->lines.at.n || v->table_rows == 0) return;
    if (at < v->scroll) v->scroll = at;
    if (at >= v->scroll + v->table_rows) v->scroll = at - v->table_rows + 1;
}

void top_draw_table(const struct top_paint *p, struct screen_box box)
{
    struct top_view *v = p->v;
    if (!p->d->rows_known) {
        screen_text(p->s, screen_row(box, 0), SCREEN_TITLE, "Procs");
        box.x += 6;
        screen_text(p->s, screen_row(box, 0), SCREEN_PLAIN,
                    p->d->remote ? "are not sent to a server" : "no processes in this recording");
        return;
    }
    draw_titles(p, box);
    v->table_y = box.y;
    v->table_width = box.width;
    v->table_rows = box.height > 1 ? box.height - 1 : 0;
    if (v->follow) show_chosen(v, p->d);
    size_t most = v->lines.at.n > v->table_rows ? v->lines.at.n - v->table_rows : 0;
    if (v->scroll > most) v->scroll = most;
    for (unsigned i = 0; i < v->table_rows && v->scroll + i < v->lines.at.n; i++)
        draw_row(p, screen_row(box, 1 + i), &v->lines.at.items[v->scroll + i]);
}

/* ---- help ---- */

/* Which panes are not there, and why: a line a probe that sees nothing. */
static void draw_blind(const struct top_paint *p, struct screen_box at)
{
    struct top_blind_line line = {.next = p->d->blind};
    unsigned n = 0;
    while (top_blind_next(&line) && n < at.height) {
        struct screen_span row = screen_row(at, n++);
        screen_add(p->s, &row, SCREEN_DIM, "not seen: %.*s: %.*s", (int)line.n_probe, line.probe,
                   (int)line.n_why, line.why);
    }
}

void top_draw_help(const struct top_paint *p, struct screen_box box)
{
    enum { WIDTH = 76, KEYS = 12 };
    struct top_blind_line line = {.next = p->d->blind};
    unsigned n = 0, blind = 0;
    while (top_key_helps[n].keys) n++;
    while (top_blind_next(&line)) blind++;
    unsigned width = box.width < WIDTH ? box.width : WIDTH, height = n + blind + 2;
    if (height > box.height) height = box.height;
    struct screen_box at = {box.x + (box.width - width) / 2, box.y + (box.height - height) / 2, width,
                            height};
    screen_fill(p->s, at, SCREEN_PLAIN, ' ');
    screen_fill(p->s, (struct screen_box){at.x, at.y, width, 1}, SCREEN_HEAD, ' ');
    screen_text(p->s, (struct screen_span){at.x + 1, at.y, width - 1}, SCREEN_HEAD,
                "keys (any key closes this)");
    for (unsigned i = 0; i + 1 < height && i < n; i++) {
        struct screen_span row = {at.x + 1, at.y + 1 + i, width > 2 ? width - 2 : 0};
        screen_add(p->s, &row, SCREEN_KEY, "%-*s", (int)KEYS, top_key_helps[i].keys);
        screen_text(p->s, row, SCREEN_PLAIN, top_key_helps[i].help);
    }
    if (n + 1 < height && width > 2)
        draw_blind(p, (struct screen_box){at.x + 1, at.y + 1 + n, width - 2, height - n - 1});
}
