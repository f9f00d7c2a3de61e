/* SPDX-License-Identifier: MIT
 * top.h - `tare top` without its command line: what the user chose to see, how the processes stand in the table under
 * that choice, keys, drawing, and the two ways to run it: live on a terminal, which alone writes, or once. One file
 * each: top_data.c (what is known), top_chosen.c (of one process), top_remote.c (asked of a server), top_record.c
 * (processes in recordings), top_rows.c (processes, their columns and order), top_keys.c, top_panes.c (what stands
 * where), top_details.c (more of the chosen process), top_table.c (the table, first and last line, help), top_once.c,
 * top_live.c, top_term.c (the terminal), screen.c and screen_render.c (cells, and the bytes that show them). */
#ifndef TOP_TOP_H
#define TOP_TOP_H

#include "core/fmt.h"
#include "core/map.h"
#include "report/answer.h"
#include "top/screen.h"
#include "top/top_data.h"

enum top_sort { TOP_SORT_CPU, TOP_SORT_MEMORY, TOP_SORT_PID, TOP_SORT_IO, TOP_SORTS };

struct top_line { /* of the process table */
    size_t row;
    unsigned depth; /* in the tree */
};

struct top_view {
    enum top_sort sort;
    bool tree, cores, paused, help;
    bool typing;    /* the filter is being typed */
    bool asking;    /* whether the chosen process shall end */
    bool functions; /* those of the chosen process are wanted, on the whole terminal */
    bool follow;    /* the table keeps the chosen process in sight */
    char filter[64];
    size_t scroll;
    double interval_s, speed; /* speed of a replay */
    const char *host;
    bool utf8, no_color; /* of the terminal */
    unsigned width;      /* of a text for a file */
    char trouble[512];   /* something that did not work: shown in the last line */
    bool once;           /* a text for a file: everything, no keys */

    struct top_lines {
        VEC(struct top_line) at;
    } lines;
    size_t matching; /* processes that the filter lets through */
    unsigned table_y, table_width,
        table_rows;       /* of the last frame: its titles, and room for processes below */
    struct map_u64 users; /* uid -> number in user_names */
    struct top_names {
        VEC(char *) at;
    } user_names;
};
void top_view_release(struct top_view *v);

/* ---- the two ways; `d` is opened and closed by the caller ---- */

/* On the terminal that is stdout; `iterations` 0: until the user leaves. *ended_by: a signal that asked to, or 0. */
tare_status top_live(struct top_view *v, struct top_data *d, uint64_t iterations, int *ended_by,
                     tare_error *err);

/* Two moments, or the last one of a recording, and what they came to as an answer. */
tare_status top_observe(struct top_view *v, struct top_data *d, tare_error *err);
void top_say(struct answer *a, struct top_view *v, const struct top_data *d);

/* ---- top_rows.c: processes ---- */

/* What is told of a process, in the order of the JSON; the table shows what has a title. A new column is a row in
 * top_fields_of(), and counts here. */
enum { TOP_FIELDS = 12 };
struct top_fields {
    struct top_field {
        const char *key; /* in JSON */
        enum top_kind { TOP_COUNT, TOP_SIZE, TOP_SHARE, TOP_RATE, TOP_SECONDS, TOP_WORD } kind;
        double number;      /* NAN: unknown */
        const char *text;   /* of a TOP_WORD */
        const char *title;  /* in the table; NULL: not there */
        unsigned width;     /* there */
        unsigned least;     /* shown in tables at least so wide */
        enum top_sort sort; /* whose column it is; TOP_SORTS: none's */
    } at[TOP_FIELDS];
    char state[2];
};
/* `v` NULL: without the user's name. Valid as long as the row and the view. */
void top_fields_of(struct top_fields *out, struct top_view *v, const struct proc_row *r);

/* Fill v->lines: filtered, sorted, as a tree if wanted. */
tare_status top_arrange(struct top_view *v, const struct top_data *d, tare_error *err);

/* ---- top_keys.c ---- */

struct top_key_help {
    const char *keys, *help;
};
extern const struct top_key_help top_key_helps[];                           /* ends with NULL */
size_t top_chosen_line(const struct top_view *v, const struct top_data *d); /* v->lines.at.n: in none */
/* What a key does. false: the user wants to leave. */
bool top_press(struct top_view *v, struct top_data *d, int key, tare_error *err);

/* ---- drawing ---- */

/* Everything into the screen, which has its size. */
void top_draw(struct top_view *v, const struct top_data *d, struct screen *s);
/* How many rows all of it would take, with `processes` rows of the table. */
unsigned top_height(struct top_view *v, const struct top_data *d, unsigned width, unsigned processes);

struct top_paint { /* what a pane needs to draw itself, or to say how many rows it wants */
    struct top_view *v;
    const struct top_data *d;
    struct screen *s; /* NULL: only asked for rows */
    unsigned width;
    const struct top_device *device; /* of the pane, where it is about a kind of them */
};
typedef unsigned top_want_fn(const struct top_paint *p);
typedef void top_draw_fn(const struct top_paint *p, struct screen_box box);

/* top_table.c */
top_draw_fn top_draw_head, top_draw_foot, top_draw_table, top_draw_help;
/* What clicking on the titles at `x` sorts by; TOP_SORTS: nothing. */
enum top_sort top_sort_at(unsigned x, unsigned width);

/* top_details.c */
top_want_fn top_want_details;
top_draw_fn top_draw_details;

#endif
