/* SPDX-License-Identifier: MIT
 * progress.c - see progress.h. */
#include "cli/progress.h"

#include <inttypes.h>
#include <string.h>

enum { REDRAW_NS = 100000000, FIRST_NS = 200000000, MAX_BAR = 40 };

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

static void put_bar(struct buf *out, const struct progress_view *v, unsigned cells)
{
    unsigned full = (unsigned)((double)v->done / (double)v->total * cells);
    if (!v->utf8) buf_add_char(out, '[');
    const char *done = v->utf8 ? "\u2588" : "#", *open = v->utf8 ? "\u2591" : ".";
    for (unsigned i = 0; i < cells; i++) buf_add_str(out, i < full ? done : open);
    if (!v->utf8) buf_add_char(out, ']');
}

void progress_render(struct buf *out, const struct progress_view *given)
{
    struct progress_view v = *given;
    double elapsed = (double)v.elapsed.ns / 1e9;
    if (v.total == 0) {
        term_clean(out, v.what);
        buf_printf(out, "  %" PRIu64 "  ", v.done);
        put_time(out, elapsed);
        return;
    }
    if (v.done > v.total) v.done = v.total;
    unsigned text = term_columns(v.what) + 2 + 4 + 2 + 11; /* name, gap, percent, gap, time left */
    unsigned room = v.width > text + 3 ? v.width - text - 3 : 0;
    term_clean(out, v.what);
    buf_add_str(out, "  ");
    if (room >= 10) {
        put_bar(out, &v, (room < MAX_BAR ? room : MAX_BAR) - 2);
        buf_add_str(out, "  ");
    }
    buf_printf(out, "%3.0f%%", (double)v.done / (double)v.total * 100);
    if (v.done == 0 || v.done == v.total || text >= v.width) return;
    buf_add_str(out, "  ETA ");
    put_time(out, elapsed * (double)(v.total - v.done) / (double)v.done);
}

void progress_begin(struct progress *p, FILE *to, const struct term *term, const char *what, uint64_t total)
{
    struct instant now = instant_now();
    *p = (struct progress){to, term, what, total, now, now, false};
    p->drawn.ns += FIRST_NS - REDRAW_NS; /* short work shows nothing at all */
}

void progress_at(struct progress *p, uint64_t done)
{
    if (!p->term->tty) return;
    struct instant now = instant_now();
    if (instant_since(now, p->drawn).ns < REDRAW_NS) return;
    p->drawn = now;
    struct buf line = BUF_INIT;
    struct duration elapsed = instant_since(now, p->start);
    struct progress_view v = {p->what, done, p->total, elapsed, p->term->width, p->term->utf8};
    progress_render(&line, &v);
    fprintf(p->to, "\r\033[K%s", line.data);
    fflush(p->to);
    p->visible = true;
    buf_release(&line);
}

void progress_end(struct progress *p)
{
    if (!p->visible) return;
    fputs("\r\033[K", p->to);
    fflush(p->to);
    p->visible = false;
}

tare_status progress_sink_write(void *sink, const void *bytes, size_t n, tare_error *err)
{
    struct progress_sink *c = sink;
    tare_status s = c->to.write(c->to.ctx, bytes, n, err);
    *c->done += n;
    progress_at(c->bar, *c->done);
    return s;
}

void progress_line_at(void *line, const char *what, uint64_t done, uint64_t total)
{
    struct progress_line *l = line;
    if (!l->begun || strcmp(l->what, what) != 0) {
        if (l->begun) progress_end(&l->bar);
        snprintf(l->what, sizeof l->what, "%s", what);
        progress_begin(&l->bar, l->to, l->term, l->what, total);
        l->begun = true;
    }
    l->bar.total = total;
    progress_at(&l->bar, done);
}

void progress_line_end(struct progress_line *line)
{
    if (line->begun) progress_end(&line->bar);
    line->begun = false;
}
