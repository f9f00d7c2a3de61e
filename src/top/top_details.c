/* SPDX-License-Identifier: MIT
 * top_details.c - more of the process that was chosen in `tare top`: a line of what it is, its processor time and
 * memory since it was chosen, and its threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "report/text.h"
#include "top/top.h"

enum { THREADS_SHOWN = 10, LEAST_ROWS = 6 };

unsigned top_want_details(const struct top_paint *p)
{
    const struct top_chosen *c = &p->d->chosen;
    if (!c->details) return 0;
    unsigned threads = (unsigned)(c->threads.rows.n < THREADS_SHOWN ? c->threads.rows.n : THREADS_SHOWN);
    return threads + 2 > LEAST_ROWS ? threads + 2 : LEAST_ROWS;
}

static void draw_what(const struct top_paint *p, struct screen_span at)
{
    const struct proc_row *r = top_chosen_row(p->d);
    struct buf name = BUF_INIT;
    screen_add(p->s, &at, SCREEN_TITLE, "%d ", (int)p->d->chosen.pid);
    if (!r) {
        screen_text(p->s, at, SCREEN_PLAIN,
                    p->d->replaying ? "is not among those of this moment" : "has ended");
        return;
    }
    text_plain(&name, r->name, strlen(r->name));
    screen_add(p->s, &at, SCREEN_TITLE, "%s  ", name.len ? name.data : "");
    screen_add(p->s, &at, SCREEN_PLAIN, "parent %d  ", (int)r->parent);
    screen_add(p->s, &at, SCREEN_PLAIN, "user %s  system %s  ", show_time(r->user_s * 1e9).s,
               show_time(r->system_s * 1e9).s);
    screen_add(p->s, &at, SCREEN_PLAIN, "read %s/s  write %s/s", narrow_bytes(r->read_rate).s,
               narrow_bytes(r->write_rate).s);
    buf_release(&name);
}

/* Processor time is drawn of at least one processor, so that idling does not look busy. */
static void draw_plot(const struct top_paint *p, struct screen_box box, bool memory)
{
    const struct top_history *h = memory ? &p->d->chosen.memory : &p->d->chosen.cpu;
    double now = h->n ? h->y[h->n - 1] : NAN, top = top_history_greatest(h);
    struct screen_span title = screen_row(box, 0);
    if (!memory) top = fmax(top, 1);
    if (memory)
        screen_add(p->s, &title, SCREEN_DIM, "memory %s of %s", narrow_bytes(now).s, narrow_bytes(top).s);
    else
        screen_add(p->s, &title, SCREEN_DIM, "CPU %s %% of %s", narrow_percent(now).s, narrow_percent(top).s);
    screen_graph(p->s, (struct screen_box){box.x, box.y + 1, box.width, box.height - 1},
                 &(struct screen_series){h->y, h->n, top > 0 ? top : 1});
}

/* ---- threads ---- */

static int by_use(const void *a, const void *b)
{
    const struct proc_row *x = *(const struct proc_row *const *)a, *y = *(const struct proc_row *const *)b;
    double cx = isnan(x->cpu) ? -1 : x->cpu, cy = isnan(y->cpu) ? -1 : y->cpu;
    if (cx != cy) return cx < cy ? 1 : -1;
    double tx = x->user_s + x->system_s, ty = y->user_s + y->system_s;
    if (tx != ty) return tx < ty ? 1 : -1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void draw_thread(const struct top_paint *p, struct screen_span at, const struct proc_row *r)
{
    struct buf name = BUF_INIT;
    text_plain(&name, r->name, strlen(r->name));
    screen_add(p->s, &at, SCREEN_PLAIN, "%7d %c %5s %6s ", (int)r->pid, r->state, narrow_percent(r->cpu).s,
               show_time((r->user_s + r->system_s) * 1e9).s);
    screen_text(p->s, at, SCREEN_PLAIN, name.len ? name.data : "");
    buf_release(&name);
}

/* The busiest first; how many there are stands above them. */
static void draw_threads(const struct top_paint *p, struct screen_box box)
{
    const struct proc_rows *rows = &p->d->chosen.threads.rows;
    struct screen_span head = screen_row(box, 0);
    if (rows->n == 0) {
        const char *why = p->d->replaying ? "threads are not recorded" : "no threads to be seen";
        screen_text(p->s, head, SCREEN_DIM, why);
        return;
    }
    const struct proc_row **order = mem_new(rows->n, sizeof *order);
    if (!order) return; /* drawn again at the next moment */
    for (size_t i = 0; i < rows->n; i++) order[i] = &rows->items[i];
    qsort(order, rows->n, sizeof *order, by_use);
    screen_add(p->s, &head, SCREEN_DIM, "%7s   %5s %6s thread (%zu)", "TID", "CPU%", "used", rows->n);
    for (unsigned i = 0; i + 1 < box.height && i < rows->n; i++)
        draw_thread(p, screen_row(box, i + 1), order[i]);
    mem_free(order);
}

/* Both plots beside the threads where there is room for them. */
void top_draw_details(const struct top_paint *p, struct screen_box box)
{
    enum { THREADS = 40, LEAST_PLOT = 14 };
    unsigned plots = box.width >= THREADS + 2 * LEAST_PLOT ? 2 : 0;
    unsigned plot = plots ? (box.width - THREADS) / plots : 0;
    if (plot > THREADS) plot = THREADS;
    draw_what(p, screen_row(box, 0));
    if (box.height < 3) return;
    for (unsigned i = 0; i < plots; i++)
        draw_plot(p, (struct screen_box){box.x + i * plot, box.y + 1, plot - 1, box.height - 1}, i == 1);
    draw_threads(
        p, (struct screen_box){box.x + plots * plot, box.y + 1, box.width - plots * plot, box.height - 1});
}
