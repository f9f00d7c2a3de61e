/* SPDX-License-Identifier: MIT
 * top_keys.c - what keys and the mouse do in `tare top`. One touches a process, and asks first. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "top/top.h"
#include "top/top_term.h"

const struct top_key_help top_key_helps[] = {
    {"q", "quit"},
    {"c m p i", "sort by CPU, memory, process number, I/O"},
    {"/", "filter by text: Enter keeps it, Esc drops it"},
    {"t", "tree of processes"},
    {"1", "each processor, or all together"},
    {"space", "pause"},
    {"+ -", "longer or shorter interval; replay: faster, slower"},
    {"up down", "choose a process; page up, page down"},
    {"Enter", "its threads and history; Esc leaves it"},
    {"f", "its functions (tare attach --top)"},
    {"k", "end it: asks first"},
    {"mouse", "choose, again for more; a title sorts"},
    {"left right", "replay: the moment before or after; [ ] by ten"},
    {"?", "this help"},
    {NULL, NULL},
};

struct press {
    struct top_view *v;
    struct top_data *d;
    tare_error *err;
};
typedef void action_fn(const struct press *p, int how);

static void act_sort(const struct press *p, int how)
{
    p->v->sort = (enum top_sort)how;
    p->v->scroll = 0;
    p->v->follow = false;
}

/* `how`: where in the view the flag is. Help and the filter's typing end by themselves, see top_press(). */
static void act_toggle(const struct press *p, int how)
{
    bool *flag = (bool *)((char *)p->v + how);
    *flag = !*flag;
}

/* One step out: of more of a process, of the choice of it, of the filter. */
static void act_escape(const struct press *p, int how)
{
    (void)how;
    if (p->d->chosen.details)
        top_details(p->d, false);
    else if (p->d->chosen.pid)
        top_choose(p->d, NULL);
    else
        p->v->filter[0] = 0;
}

/* Up or down one step of a scale that is easy to read. */
static void act_pace(const struct press *p, int how)
{
    static const double steps[] = {0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60};
    enum { N = sizeof steps / sizeof *steps };
    double *pace = p->d->replaying ? &p->v->speed : &p->v->interval_s;
    int at = how > 0 ? 0 : N - 1;
    while (at >= 0 && at < N && (steps[at] - *pace) * how <= 0) at += how;
    if (at >= 0 && at < N) *pace = steps[at];
}

static size_t moved(size_t at, int how, size_t by)
{
    if (how > 0) return at + by;
    return at - (at < by ? at : by);
}

static void act_wheel(const struct press *p, int how)
{
    p->v->follow = false;
    p->v->scroll = moved(p->v->scroll, how, 3); /* the drawing stops it at the end */
}

size_t top_chosen_line(const struct top_view *v, const struct top_data *d)
{
    const struct proc_row *r = top_chosen_row(d);
    size_t i = 0;
    while (r && i < v->lines.at.n && &d->rows[v->lines.at.items[i].row] != r) i++;
    return r ? i : v->lines.at.n;
}

static void choose_line(const struct press *p, size_t line)
{
    if (p->v->lines.at.n == 0) return;
    if (line >= p->v->lines.at.n) line = p->v->lines.at.n - 1;
    top_choose(p->d, &p->d->rows[p->v->lines.at.items[line].row]);
    p->v->follow = true;
}

/* By one or a page. The first step chooses from what is in sight; pages turn without a choice, too. */
static void act_move(const struct press *p, int how)
{
    struct top_view *v = p->v;
    bool page = how == 2 || how == -2;
    size_t by = page ? v->table_rows : 1, at = top_chosen_line(v, p->d);
    if (at < v->lines.at.n)
        choose_line(p, moved(at, how, by));
    else if (page)
        v->scroll = moved(v->scroll, how, by);
    else
        choose_line(p, how > 0 || v->table_rows == 0 ? v->scroll : v->scroll + v->table_rows - 1);
}

static void act_ends(const struct press *p, int how)
{
    size_t end = how < 0 ? 0 : p->v->lines.at.n;
    if (top_chosen_line(p->v, p->d) < p->v->lines.at.n)
        choose_line(p, end);
    else
        p->v->scroll = end;
}

static void act_details(const struct press *p, int how)
{
    (void)how;
    if (!p->d->chosen.pid) choose_line(p, p->v->scroll);
    top_details(p->d, !p->d->chosen.details);
}

/* What is asked of the chosen process needs it here and now. */
static bool is_here(const struct press *p)
{
    struct top_view *v = p->v;
    const char *why = NULL;
    if (p->d->replaying || p->d->remote)
        why = "that is for processes of this machine, seen now";
    else if (!p->d->chosen.pid)
        why = "no process is chosen: up and down choose one";
    else if (!top_chosen_row(p->d))
        why = "the chosen process has ended";
    if (why) snprintf(v->trouble, sizeof v->trouble, "%s", why);
    return !why;
}

static void act_ask(const struct press *p, int how)
{
    (void)how;
    p->v->asking = is_here(p);
}

static void act_functions(const struct press *p, int how)
{
    (void)how;
    p->v->functions = is_here(p);
}

/* The answer to the question whether it shall end: other keys are no. */
static void answer_key(const struct press *p, int key)
{
    p->v->asking = false;
    int signal = key == 'y' || key == 'Y' ? SIGTERM : SIGKILL;
    if (signal == SIGKILL && key != 'K') return;
    if (top_chosen_signal(p->d, signal, p->err) < 0)
        snprintf(p->v->trouble, sizeof p->v->trouble, "%s", p->err ? p->err->text : "that failed");
    else
        snprintf(p->v->trouble, sizeof p->v->trouble, "%s sent to process %d",
                 signal == SIGTERM ? "SIGTERM" : "SIGKILL", (int)p->d->chosen.pid);
}

/* On a title: its order. On a process: it is chosen; on the chosen one: more of it. */
static void click(const struct press *p, int key)
{
    struct top_view *v = p->v;
    unsigned y = top_click_y(key), first = v->table_y + 1;
    size_t line = v->scroll + (y - first);
    if (y == v->table_y && v->table_rows > 0) {
        enum top_sort sort = top_sort_at(top_click_x(key), v->table_width);
        if (sort != TOP_SORTS) act_sort(p, (int)sort);
    } else if (y >= first && y - first < v->table_rows && line < v->lines.at.n) {
        if (line == top_chosen_line(v, p->d))
            act_details(p, 0);
        else
            choose_line(p, line);
    }
}

static void act_seek(const struct press *p, int how)
{
    long at = (long)p->d->at + how;
    if (!p->d->replaying) return;
    p->v->paused = true;
    if (top_data_seek(p->d, at > 0 ? (size_t)at : 0, p->err) < 0 && p->err)
        snprintf(p->v->trouble, sizeof p->v->trouble, "%s", p->err->text);
}

static const struct {
    int key;
    action_fn *act;
    int how;
} actions[] = {
    {'c', act_sort, TOP_SORT_CPU},
    {'m', act_sort, TOP_SORT_MEMORY},
    {'p', act_sort, TOP_SORT_PID},
    {'i', act_sort, TOP_SORT_IO},
    {'t', act_toggle, offsetof(struct top_view, tree)},
    {'1', act_toggle, offsetof(struct top_view, cores)},
    {' ', act_toggle, offsetof(struct top_view, paused)},
    {'?', act_toggle, offsetof(struct top_view, help)},
    {'h', act_toggle, offsetof(struct top_view, help)},
    {'/', act_toggle, offsetof(struct top_view, typing)},
    {TOP_KEY_ESCAPE, act_escape, 0},
    {'\r', act_details, 0},
    {'\n', act_details, 0},
    {'f', act_functions, 0},
    {'k', act_ask, 0},
    {'+', act_pace, 1},
    {'=', act_pace, 1},
    {'-', act_pace, -1},
    {TOP_KEY_UP, act_move, -1},
    {TOP_KEY_DOWN, act_move, 1},
    {TOP_KEY_PAGE_UP, act_move, -2},
    {TOP_KEY_PAGE_DOWN, act_move, 2},
    {TOP_KEY_WHEEL_UP, act_wheel, -1},
    {TOP_KEY_WHEEL_DOWN, act_wheel, 1},
    {TOP_KEY_HOME, act_ends, -1},
    {TOP_KEY_END, act_ends, 1},
    {TOP_KEY_LEFT, act_seek, -1},
    {TOP_KEY_RIGHT, act_seek, 1},
    {'[', act_seek, -10},
    {']', act_seek, 10},
};

/* ---- the filter ---- */

static void type_key(struct top_view *v, int key)
{
    size_t n = strlen(v->filter);
    if (key == '\r' || key == '\n' || key == TOP_KEY_ESCAPE) {
        v->typing = false;
        if (key == TOP_KEY_ESCAPE) v->filter[0] = 0;
    } else if (key == TOP_KEY_BACKSPACE) {
        while (n > 0 && ((unsigned char)v->filter[n - 1] >> 6) == 2) n--; /* a whole character */
        v->filter[n > 0 ? n - 1 : 0] = 0;
    } else if (key >= ' ' && key < 256 && n + 1 < sizeof v->filter) {
        v->filter[n] = (char)key;
        v->filter[n + 1] = 0;
    }
    v->scroll = 0;
}

bool top_press(struct top_view *v, struct top_data *d, int key, tare_error *err)
{
    struct press p = {v, d, err};
    v->trouble[0] = 0;
    if (v->typing) {
        type_key(v, key);
        return true;
    }
    if (v->asking) {
        answer_key(&p, key);
        return true;
    }
    if (v->help) {
        v->help = false;
        return true;
    }
    if (key == 'q' || key == 'Q') return false;
    if (key >= TOP_KEY_CLICK) click(&p, key);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (actions[i].key == key) actions[i].act(&p, actions[i].how);
    return true;
}
