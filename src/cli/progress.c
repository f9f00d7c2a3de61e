/* SPDX-License-Identifier: MIT
 * progress.c - see progress.h. */
#include "cli/progress.h"

#include <inttypes.h>
#include <string.h>

#include "report/text.h"

enum { REDRAW_NS = 100000000, FIRST_NS = 200000000, TIME_COLUMNS = 6, LINE_WIDTH = 100 };
#define LONG_NS UINT64_C(2000000000)  /* planned work of more than this has its bar at once */
#define LINE_NS INT64_C(10000000000) /* off a terminal: between two lines */

static void put_time(struct buf *out, double seconds)
{
    uint64_t s = seconds < 1e9 ? (uint64_t)(seconds + 0.5) : 1000000000;
    if (s >= 3600)
        buf_printf(out, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
    else if (s >= 60)
        buf_printf(out, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
    else
        buf_printf(out, "%" PRIu64 "s", s);
}

static void put_bar(struct buf *out, const struct progress_view *v, double share, unsigned cells)
{
    unsigned full = (unsigned)(share * cells);
    if (!v->utf8) buf_add_char(out, '[');
    const char *done = v->utf8 ? "\u2588" : "#", *open = v->utf8 ? "\u2591" : ".";
    for (unsigned i = 0; i < cells; i++) buf_add_str(out, i < full ? done : open);
    if (!v->utf8) buf_add_char(out, ']');
}

/* As planned, or else if the rest goes as fast as what was done since `from`; negative: nothing is known. */
static double seconds_left(const struct progress_view *v)
{
    if (v->timed) return (double)(v->total - v->done) / 1e9;
    if (v->done <= v->from || v->done == v->total) return -1;
    return (double)v->elapsed.ns / 1e9 * (double)(v->total - v->done) / (double)(v->done - v->from);
}

static double share_done(const struct progress_view *v)
{
    double share = (double)v->done / (double)v->total;
    return v->timed && share < v->share ? v->share : share;
}

static unsigned bar_cells(unsigned width)
{
    if (width >= 100) return 30;
    if (width >= 76) return 20;
    return width >= 50 ? 10 : 0;
}

static unsigned put_left(struct buf *out, double seconds)
{
    struct buf text = BUF_INIT;
    put_time(&text, seconds);
    unsigned n = (unsigned)text.len > TIME_COLUMNS ? (unsigned)text.len : TIME_COLUMNS;
    buf_printf(out, "  ETA %-*s", TIME_COLUMNS, text.failed ? "" : text.data);
    buf_release(&text);
    return n + 6;
}

/* What changes its length stands last, so that nothing else moves. On a narrow terminal the bar goes first. */
void progress_render(struct buf *out, const struct progress_view *given)
{
    struct progress_view v = *given;
    if (v.total == 0) {
        term_clean(out, v.what);
        buf_printf(out, "  %" PRIu64 "  ", v.done);
        put_time(out, (double)v.elapsed.ns / 1e9);
        return;
    }
    if (v.done > v.total) v.done = v.total;
    unsigned cells = bar_cells(v.width), used = 4 + (cells ? cells + 4 : 0);
    double left = seconds_left(&v);
    if (cells) {
        put_bar(out, &v, share_done(&v), cells);
        buf_add_str(out, "  ");
    }
    buf_printf(out, "%3.0f%%", share_done(&v) * 100);
    if (left >= 0 && used + TIME_COLUMNS + 8 < v.width) used += put_left(out, left);
    if (used + 6 >= v.width) return;
    struct buf what = BUF_INIT;
    buf_add(&what, v.what, text_clip(v.what, v.width - used - 3));
    buf_add_str(out, "  ");
    if (!what.failed) term_clean(out, what.data);
    buf_release(&what);
}

/* The clock runs from when something was last not yet done: what comes before (models that are loaded, warm-up) says
 * nothing about how fast the rest goes. */
static void count_from(struct progress *p, uint64_t done, uint64_t total, struct instant now)
{
    bool anew = !p->what[0] || (!p->timed && (total != p->total || done < p->done));
    if (anew) progress_end(p);
    if (anew || done == p->from) {
        p->start = now;
        p->from = done;
    }
    if (anew) {
        p->drawn = now;
        p->drawn.ns += FIRST_NS - REDRAW_NS; /* short work shows nothing at all */
        if (p->timed && p->term->tty && total > done + LONG_NS) p->drawn.ns -= FIRST_NS;
        p->share = 0;
    }
    if (p->timed && total && (double)done > p->share * (double)total) p->share = (double)done / (double)total;
    p->done = done;
    p->total = total;
}

static void draw(struct progress *p, struct instant now)
{
    struct buf line = BUF_INIT;
    bool tty = p->term->tty;
    p->drawn = now;
    struct progress_view v = {p->what,
                              p->done,
                              p->total,
                              instant_since(now, p->start),
                              tty ? p->term->width : LINE_WIDTH,
                              tty && p->term->utf8,
                              p->from,
                              p->timed,
                              p->share};
    progress_render(&line, &v);
    if (!line.failed) fprintf(p->to, tty ? "\r\033[K%s" : "tare: %s\n", line.data);
    fflush(p->to);
    p->visible = tty;
    buf_release(&line);
}

static void show(struct progress *p, const char *what, uint64_t done, uint64_t total)
{
    struct instant now = instant_now();
    count_from(p, done, total, now);
    snprintf(p->what, sizeof p->what, "%s", what);
    if (instant_since(now, p->drawn).ns >= (p->term->tty ? REDRAW_NS : LINE_NS)) draw(p, now);
}

void progress_at(void *progress, const char *what, uint64_t done, uint64_t total)
{
    struct progress *p = progress;
    p->timed = false;
    show(p, what, done, total);
}

void progress_time(void *progress, const char *what, uint64_t done_ns, uint64_t total_ns)
{
    struct progress *p = progress;
    if (!p->timed) progress_end(p);
    p->timed = true;
    show(p, what, done_ns, total_ns);
}

void progress_end(struct progress *p)
{
    p->what[0] = 0;
    if (!p->visible) return;
    fputs("\r\033[K", p->to);
    fflush(p->to);
    p->visible = false;
}

tare_status progress_sink_write(void *sink, const void *bytes, size_t n, tare_error *err)
{
    const struct progress_sink *s = sink;
    tare_status status = s->to.write(s->to.ctx, bytes, n, err);
    s->count->done += n;
    progress_at(&s->count->bar, s->count->what, s->count->done, s->count->total);
    return status;
}
