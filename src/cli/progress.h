/* SPDX-License-Identifier: MIT
 * progress.h - a bar with the time left, on stderr, for work of more than a moment. Draws nothing off a
 * terminal, at most ten times a second, and leaves no trace behind when it ends. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdio.h>

#include "cli/term.h"
#include "core/clock.h"
#include "report/sink.h"

struct progress {
    FILE *to;
    const struct term *term;
    char what[128]; /* "": not begun */
    struct instant start, drawn;
    uint64_t from, done, total; /* from: what was done at `start` */
    bool visible;
};
#define PROGRESS_INIT(cli) {.to = (cli)->err, .term = &(cli)->err_term}

/* Cheap enough to call often, and fits callbacks. Another total, or less done than before, begin a bar anew; other
 * words do not: cases of a bench take turns within one. `total` 0: unknown, then only what is done is shown. */
void progress_at(void *progress, const char *what, uint64_t done, uint64_t total);
void progress_end(struct progress *p);

/* A sink that counts what passes. Several may count for one bar. */
struct progress_sink {
    struct sink to;
    struct progress_count {
        struct progress bar;
        const char *what;
        uint64_t done, total;
    } * count;
};
tare_status progress_sink_write(void *sink, const void *bytes, size_t n, tare_error *err);

/* What is drawn, as a function of nothing else. */
struct progress_view {
    const char *what;
    uint64_t done, total;
    struct duration elapsed; /* since `from` was done */
    unsigned width;
    bool utf8;
    uint64_t from;
};
void progress_render(struct buf *out, const struct progress_view *v);

#endif
