/* SPDX-License-Identifier: MIT
 * top_keys.c - what the keys of `tare top` do. None of them touches a process. */
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
    {"up down", "scroll the processes; page up, page down"},
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
}

/* `how`: where in the view the flag is. Help and the filter's typing end by themselves, see top_press(). */
static void act_toggle(const struct press *p, int how)
{
    bool *flag = (bool *)((char *)p->v + how);
    *flag = !*flag;
}

static void act_drop_filter(const struct press *p, int how)
{
    (void)how;
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

static void act_scroll(const struct press *p, int how)
{
    size_t by = how == 2 || how == -2 ? p->v->table_rows : 1;
    if (how > 0)
        p->v->scroll += by; /* the drawing stops it at the end */
    else
        p->v->scroll -= p->v->scroll < by ? p->v->scroll : by;
}

static void act_ends(const struct press *p, int how)
{
    p->v->scroll = how < 0 ? 0 : p->v->lines.at.n;
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
    {TOP_KEY_ESCAPE, act_drop_filter, 0},
    {'+', act_pace, 1},
    {'=', act_pace, 1},
    {'-', act_pace, -1},
    {TOP_KEY_UP, act_scroll, -1},
    {TOP_KEY_DOWN, act_scroll, 1},
    {TOP_KEY_PAGE_UP, act_scroll, -2},
    {TOP_KEY_PAGE_DOWN, act_scroll, 2},
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
    if (v->help) {
        v->help = false;
        return true;
    }
    if (key == 'q' || key == 'Q') return false;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (actions[i].key == key) actions[i].act(&p, actions[i].how);
    return true;
}
