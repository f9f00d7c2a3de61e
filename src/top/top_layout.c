/* SPDX-License-Identifier: MIT
 * top_layout.c - where the panes of `tare top` stand: from top to bottom as in the table, each with the rows it
 * wants while there are any. On a small terminal the more important ones get theirs first; processes always have
 * some. */
#include "top/top_panes.h"

static const struct pane {
    unsigned rank;  /* the lower, the sooner it gets rows */
    unsigned least; /* fewer rows than this are useless to it */
    bool live;      /* only on a terminal */
    top_want_fn *want;
    top_draw_fn *draw;
} panes[] = {
    {0, 1, false, top_want_one, top_draw_head},
    {4, 1, false, top_want_alerts, top_draw_alerts},
    {5, 1, false, top_want_program, top_draw_program},
    {2, 1, false, top_want_one, top_draw_cpu},
    {12, 1, false, top_want_cores, top_draw_cores},
    {3, 1, false, top_want_memory, top_draw_memory},
    {7, 1, false, top_want_group, top_draw_group},
    {8, 1, false, top_want_one, top_draw_pressure},
    {9, 1, false, top_want_disks, top_draw_disks},
    {10, 1, false, top_want_nets, top_draw_nets},
    {6, 1, false, top_want_gpus, top_draw_gpus},
    {11, 1, false, top_want_one, top_draw_heat},
    {13, 3, true, top_want_history, top_draw_history},
    {14, 0, false, top_want_table, top_draw_table}, /* takes what is left */
    {1, 1, true, top_want_one, top_draw_foot},
};
enum { PANES = sizeof panes / sizeof *panes, RANKS = PANES };

static unsigned wanted(const struct top_paint *p, const struct pane *pane, unsigned width)
{
    return pane->live && p->v->once ? 0 : pane->want(p, width);
}

/* Rows for each pane. Processes keep two fifths of the screen, and at least four rows of it. */
static void divide(const struct top_paint *p, unsigned rows[PANES])
{
    unsigned kept = p->s->height * 2 / 5 > 4 ? p->s->height * 2 / 5 : 4;
    unsigned left = p->s->height > kept ? p->s->height - kept : p->s->height < 3 ? p->s->height : 3;
    if (p->v->once) left = p->s->height;
    unsigned given = 0;
    for (unsigned rank = 0; rank < RANKS - 1; rank++)
        for (size_t i = 0; i < PANES; i++) {
            if (panes[i].rank != rank) continue;
            unsigned want = wanted(p, &panes[i], p->s->width);
            rows[i] = want < left ? want : left;
            if (rows[i] < panes[i].least) rows[i] = 0;
            left -= rows[i];
            given += rows[i];
        }
    for (size_t i = 0; i < PANES; i++)
        if (panes[i].rank == RANKS - 1) rows[i] = p->s->height > given ? p->s->height - given : 0;
}

void top_draw(struct top_view *v, const struct top_data *d, struct screen *s)
{
    struct top_paint p = {v, d, s};
    unsigned rows[PANES] = {0}, y = 0;
    screen_clear(s);
    divide(&p, rows);
    for (size_t i = 0; i < PANES; i++) {
        if (rows[i] > 0) panes[i].draw(&p, (struct screen_box){0, y, s->width, rows[i]});
        y += rows[i];
    }
    if (v->help) top_draw_help(&p, (struct screen_box){0, 0, s->width, s->height});
}

unsigned top_height(struct top_view *v, const struct top_data *d, unsigned width, unsigned processes)
{
    struct top_paint p = {v, d, NULL};
    unsigned n = 0;
    for (size_t i = 0; i < PANES; i++) {
        unsigned want = wanted(&p, &panes[i], width);
        bool table = panes[i].rank == RANKS - 1;
        n += table && want > processes + 1 ? processes + 1 : want;
    }
    return n;
}
