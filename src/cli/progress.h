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
    const char *what;
    uint64_t total; /* 0: unknown, then only what is done is shown */
    struct instant start, drawn;
    bool visible;
};

void progress_begin(struct progress *p, FILE *to, const struct term *term, const char *what, uint64_t total);
void progress_at(struct progress *p, uint64_t done); /* cheap enough to call often */
void progress_end(struct progress *p);

/* A sink that counts what passes. Several may count for one bar. */
struct progress_sink {
    struct sink to;
    struct progress *bar;
    uint64_t *done;
};
tare_status progress_sink_write(void *sink, const void *bytes, size_t n, tare_error *err);

/* A bar whose words change while the work goes on: a new one begins with each. */
struct progress_line {
    FILE *to;
    const struct term *term;
    struct progress bar;
    char what[128];
    bool begun;
};
#define PROGRESS_LINE_INIT(file, terminal) {.to = (file), .term = (terminal)}
void progress_line_at(void *line, const char *what, uint64_t done, uint64_t total); /* fits callbacks */
void progress_line_end(struct progress_line *line);

/* What is drawn, as a function of nothing else. */
struct progress_view {
    const char *what;
    uint64_t done, total;
    struct duration elapsed;
    unsigned width;
    bool utf8;
};
void progress_render(struct buf *out, const struct progress_view *v);

#endif
