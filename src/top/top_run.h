/* SPDX-License-Identifier: MIT
 * top_run.h - the two ways in which `tare top` runs: on a terminal until the user leaves, or once. */
#ifndef TOP_TOP_RUN_H
#define TOP_TOP_RUN_H

#include "cli/cli.h"
#include "top/top_view.h"

/* On the terminal; `iterations` 0: until the user leaves. The exit code. */
int top_live(struct cli *cli, struct top_view *v, struct top_data *d, uint64_t iterations);

enum top_form { TOP_TEXT, TOP_JSON, TOP_PROM };
/* Two moments, or the last one of a recording, as one answer. */
int top_once(struct cli *cli, struct top_view *v, struct top_data *d, enum top_form form);

/* top_json.c */
void top_json(struct buf *out, struct top_view *v, const struct top_data *d);

#endif
