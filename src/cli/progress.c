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

/* The time left assumes that the rest goes as fast as what was done since `from`. On a narrow terminal the bar goes
 * first, then that time. */
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
    if (v.done <= v.from || v.done == v.total || text >= v.width) return;
    buf_add_str(out, "  ETA ");
    put_time(out, elapsed * (double)(v.total - v.done) / (double)(v.done - v.from));
}

/* The clock runs from when something was last not yet done: what comes before (models that are loaded, warm-up) says
 * nothing about how fast the rest goes. */
static void count_from(struct progress *p, uint64_t done, uint64_t total, struct instant now)
{
    bool anew = !p->what[0] || total != p->total || done < p->done;
    if (anew) progress_end(p);
    if (anew || done == p->from) {
        p->start = now;
        p->from = done;
    }
    if (anew) {
        p->drawn = now;
        p->drawn.ns += FIRST_NS - REDRAW_NS; /* short work shows nothing at all */
    }
    p->done = done;
    p->total = total;
}

void progress_at(void *progress, const char *what, uint64_t done, uint64_t total)
{
    struct progress *p = progress;
    struct buf line = BUF_INIT;
    if (!p->term->tty) return;
    struct instant now = instant_now();
    count_from(p, done, total, now);
    snprintf(p->what, sizeof p->what, "%s", what);
    if (instant_since(now, p->drawn).ns < REDRAW_NS) return;
    p->drawn = now;
    struct progress_view v = {p->what,        done,          total,  instant_since(now, p->start),
                              p->term->width, p->term->utf8, p->from};
    progress_render(&line, &v);
    fprintf(p->to, "\r\033[K%s", line.data);
    fflush(p->to);
    p->visible = true;
    buf_release(&line);
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
