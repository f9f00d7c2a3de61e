/* SPDX-License-Identifier: MIT
 * progress.h - a bar with the time left, on stderr, for work of more than a moment: at most ten times a second, and
 * it leaves no trace behind when it ends. Off a terminal it is a line every ten seconds, so that a log shows life. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdio.h>

#include "cli/term.h"
#include "core/clock.h"
#include "report/sink.h"

struct progress {
    FILE *to;
    const struct term *term;
    char what[160]; /* "": not begun */
    struct instant start, drawn;
    uint64_t from, done, total; /* from: what was done at `start` */
    double share;               /* timed: the greatest so far; an estimate may grow, a bar never goes back */
    bool visible, timed;
};
#define PROGRESS_INIT(cli) {.to = (cli)->err, .term = &(cli)->err_term}

/* Cheap enough to call often, and fits callbacks. Another total, or less done than before, begin a bar anew; other
 * words do not: cases of a bench take turns within one. `total` 0: unknown, then only what is done is shown. */
void progress_at(void *progress, const char *what, uint64_t done, uint64_t total);
/* The same where done and total are ns of time: what is left of them is the time left, shown from the beginning. The
 * total may change as more becomes known; one bar for all, until progress_end(). */
void progress_time(void *progress, const char *what, uint64_t done_ns, uint64_t total_ns);
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
    bool timed;
    double share; /* timed: at least this is shown as done */
};
void progress_render(struct buf *out, const struct progress_view *v);

#endif
