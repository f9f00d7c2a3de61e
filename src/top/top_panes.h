/* SPDX-License-Identifier: MIT
 * top_panes.h - the panes of `tare top`: how many rows each wants, and how it is drawn into the rows it gets. The table
 * of them is in top_layout.c. */
#ifndef TOP_TOP_PANES_H
#define TOP_TOP_PANES_H

#include "top/top_view.h"

/* top_table.c */
top_want_fn top_want_one, top_want_table;
top_draw_fn top_draw_head, top_draw_foot, top_draw_table, top_draw_help;

/* top_panes.c */
top_want_fn top_want_program, top_want_cores, top_want_memory, top_want_group, top_want_alerts,
    top_want_history;
top_draw_fn top_draw_program, top_draw_cpu, top_draw_cores, top_draw_memory, top_draw_pressure,
    top_draw_group, top_draw_heat, top_draw_alerts, top_draw_history;

/* top_devices.c */
top_want_fn top_want_disks, top_want_nets, top_want_gpus;
top_draw_fn top_draw_disks, top_draw_nets, top_draw_gpus;

/* ---- shared by the panes ---- */

enum { TOP_TITLE = 6 }; /* columns of the titles at the left */

/* The labels of a metric that are known now, those with the greatest `quantity` first. */
enum { TOP_LABELS = 256 };
struct top_labels {
    struct top_label {
        const char *label;
        double key;
    } at[TOP_LABELS];
    size_t n;
};
void top_labels_of(const struct top_data *d, enum metric_id m, const char *quantity, struct top_labels *out);

/* Title [|||##   ] 43.2 %  detail */
struct top_meter {
    const char *title;
    const struct screen_part *parts;
    size_t n;
    double share;
    const char *detail;
};
void top_draw_meter(const struct top_paint *p, struct screen_span at, const struct top_meter *m);
enum screen_style top_level(double share); /* how alarming a share of something limited is */
/* The title of a pane, then text from its side on; returns the column after it. */
unsigned top_draw_text(const struct top_paint *p, struct screen_span at, const char *title, const char *text);

#endif
