/* SPDX-License-Identifier: MIT
 * top_view.h - what the user of `tare top` chose to see, and how the processes stand in the table under that choice.
 * top_panes.c draws it. */
#ifndef TOP_TOP_VIEW_H
#define TOP_TOP_VIEW_H

#include "top/top_data.h"
#include "core/map.h"
#include "top/screen.h"

enum top_sort { TOP_SORT_CPU, TOP_SORT_MEMORY, TOP_SORT_PID, TOP_SORT_IO, TOP_SORTS };

struct top_line { /* of the process table */
    size_t row;
    unsigned depth; /* in the tree */
};

struct top_view {
    enum top_sort sort;
    bool tree, cores, paused, help;
    bool typing; /* the filter is being typed */
    char filter[64];
    size_t scroll;
    double interval_s, speed; /* speed of a replay */
    const char *host;
    char trouble[512]; /* something that did not work: shown in the last line */
    bool once;         /* a text for a file: everything, no keys */

    struct top_lines {
        VEC(struct top_line) at;
    } lines;
    size_t matching;      /* processes that the filter lets through */
    unsigned table_rows;  /* that the table had room for in the last frame */
    struct map_u64 users; /* uid -> number in user_names */
    struct top_names {
        VEC(char *) at;
    } user_names;
};

void top_view_release(struct top_view *v);

/* Fill v->lines: filtered, sorted, as a tree if wanted. */
tare_status top_arrange(struct top_view *v, const struct top_data *d, tare_error *err);
/* A user's name, or the number; remembered. "-": unknown. */
const char *top_user(struct top_view *v, uid_t uid);

/* ---- how numbers are written here: short, at most 6 columns ---- */

struct top_text {
    char s[24];
};
struct top_text top_bytes(double bytes);   /* 1.5G; "-" for NAN */
struct top_text top_percent(double share); /* 43.2 without the sign */
struct top_text top_number(double v, int decimals);

/* ---- keys ---- */

struct top_key_help {
    const char *keys, *help;
};
extern const struct top_key_help top_key_helps[]; /* ends with NULL; top_keys.c */
/* What a key does. false: the user wants to leave. */
bool top_press(struct top_view *v, struct top_data *d, int key, tare_error *err);

/* ---- drawing ---- */

/* Everything into the screen, which has its size. */
void top_draw(struct top_view *v, const struct top_data *d, struct screen *s);
/* How many rows all of it would take, with `processes` rows of the table. */
unsigned top_height(struct top_view *v, const struct top_data *d, unsigned width, unsigned processes);

/* top_panes.c: one pane. */
struct top_paint {
    struct top_view *v;
    const struct top_data *d;
    struct screen *s;
};
typedef unsigned top_want_fn(const struct top_paint *p, unsigned width);
typedef void top_draw_fn(const struct top_paint *p, struct screen_box box);

#endif
