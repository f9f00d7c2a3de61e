/* SPDX-License-Identifier: MIT
 * gpu_missing.c - what the record should hold and does not: holes, in which another tool had CUPTI's buffers, CUDA
 * graphs that were launched and of which nothing was recorded, and records that were lost one by one. */
#include "analyze/gpu/gpu_work.h"

#define CLOCKS_NS UINT64_C(1000000) /* a hole, which begins where the last record ends, is told by another clock */

/* An operation that ran within a hole came late, but it came: a long kernel ran, and nothing was taken from us. Both
 * lists are in the order of time: what began before a hole is walked once. */
static void find_void_holes(struct gpu_work *w, const struct gpu_seen_card *c)
{
    const struct gpu_op *ops = w->ops.items + c->first_op;
    uint64_t reach = 0; /* the latest end of those before `at` */
    size_t at = 0;
    for (size_t i = 0; i < w->holes.n; i++) {
        struct gpu_hole *h = &w->holes.items[i];
        if (h->process != c->process) continue;
        for (; at < c->n_ops && ops[at].start < h->start; at++)
            if (ops[at].end > reach) reach = ops[at].end;
        bool into = reach > h->start && reach - h->start > CLOCKS_NS;
        if (into || (at < c->n_ops && ops[at].start < h->end)) h->is_void = true;
    }
}

/* One that goes on is told again, longer: of those that overlap one is left. */
static void drop_void_holes(struct gpu_work *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->cards.n; i++) find_void_holes(w, &w->cards.items[i]);
    for (size_t i = 0; i < w->holes.n; i++) {
        const struct gpu_hole h = w->holes.items[i];
        struct gpu_hole *last = kept ? &w->holes.items[kept - 1] : NULL;
        if (h.is_void) continue;
        if (last && last->process == h.process && h.start <= last->end)
            last->end = h.end > last->end ? h.end : last->end;
        else
            w->holes.items[kept++] = h;
    }
    w->holes.n = kept;
    w->out->lost.holes = kept;
    for (size_t i = 0; i < kept; i++)
        gpu_grow(&w->out->lost.hole_ns, w->holes.items[i].end - w->holes.items[i].start);
}

static uint64_t last_end(const struct gpu_work *w, uint32_t process)
{
    uint64_t end = 0;
    for (size_t i = 0; i < w->cards.n; i++) {
        const struct gpu_seen_card *c = &w->cards.items[i];
        for (size_t k = 0; c->process == process && k < c->n_ops; k++)
            if (w->ops.items[c->first_op + k].end > end) end = w->ops.items[c->first_op + k].end;
    }
    return end;
}

/* Operations without times did not run before they were launched, nor before what was ahead of them on their stream: up
 * to there all is known. Mostly that is behind all that was recorded, as a program that ends does not wait for its last
 * kernels: then nothing is in doubt. Where it is before all of it, everything is. */
static void find_cuts(struct gpu_work *w)
{
    for (size_t i = 0; i < w->untimed.n; i++) {
        const struct gpu_untimed *u = &w->untimed.items[i];
        struct gpu_seen_card *card = &w->cards.items[u->card];
        const struct gpu_host_call *launch = gpu_work_call(w, card->process, u->id);
        uint64_t from = launch && launch->start > u->from ? launch->start : u->from;
        if (card->n_ops && from <= w->ops.items[card->first_op].start) continue;
        w->processes.items[card->process].cut++;
        if (!card->cut_at || from < card->cut_at) card->cut_at = from;
    }
    for (size_t i = 0; i < w->processes.n; i++) {
        const struct gpu_seen_process *p = &w->processes.items[i];
        struct gpu_note *n = p->cut ? RUN_LIST_ADD(&w->out->arena, &w->out->notes) : NULL;
        if (!n) continue;
        n->pid = p->pid;
        n->text =
            arena_printf(&w->out->arena,
                         "cut off by the end of the record: operations %llu, which are in no sum; nor are "
                         "steps that they may reach into",
                         (unsigned long long)p->cut);
    }
}

/* The driver's call within the runtime's: the same launch. */
static bool is_nested(const struct gpu_work *w, size_t i)
{
    const struct gpu_host_call *c = &w->calls.items[i], *outer = i ? c - 1 : NULL;
    if (!outer || outer->process != c->process || outer->thread != c->thread) return false;
    return outer->id == c->id || (outer->class == CALL_LAUNCH && outer->start <= c->start &&
                                  c->start + c->duration <= outer->start + outer->duration);
}

/* Launches of graphs of which no operation has the number. Not those after the last operation, which were on their way
 * when the record ended, and not failed ones. */
static void count_lost_graphs(struct gpu_work *w)
{
    uint64_t end = 0;
    uint32_t process = UINT32_MAX;
    for (size_t i = 0; i < w->ops.n; i++)
        if (w->ops.items[i].call != NO_CALL)
            w->calls.items[w->ops.items[i].call].graph = 0; /* it has its own */
    for (size_t i = 0; i < w->calls.n; i++) {
        const struct gpu_host_call *c = &w->calls.items[i];
        if (!c->graph || is_nested(w, i)) continue;
        if (c->process != process) end = last_end(w, process = c->process);
        if (c->start >= end) continue;
        w->processes.items[c->process].lost.graphs++;
        w->out->lost.graphs++;
    }
}

static void sum_lost(struct gpu_work *w)
{
    struct gpu_lost *sum = &w->out->lost;
    for (size_t i = 0; i < w->processes.n; i++) {
        struct gpu_lost *of = &w->processes.items[i].lost;
        gpu_grow(&of->untimed, w->processes.items[i].absurd);
        gpu_grow(&sum->dropped, of->dropped);
        gpu_grow(&sum->untimed, of->untimed);
        gpu_grow(&sum->unread, of->unread);
        gpu_grow(&sum->unwritten, of->unwritten);
        gpu_grow(&sum->ranges, of->ranges);
    }
}

const char *gpu_work_doubt(const struct gpu_work *w, uint32_t process)
{
    const struct gpu_seen_process *p = &w->processes.items[process];
    const struct gpu_lost *l = &p->lost;
    const struct {
        uint64_t n;
        const char *one, *many;
    } rows[] = {
        {l->graphs, "launch of CUDA graphs was not recorded", "launches of CUDA graphs were not recorded"},
        {l->dropped, "record was dropped: CUPTI had no room", "records were dropped: CUPTI had no room"},
        {l->untimed > p->cut ? l->untimed - p->cut : 0, "record has no times", "records have no times"},
        {l->unread, "buffer could not be read to its end", "buffers could not be read to their end"},
        {l->unwritten, "record could not be written", "records could not be written"},
        {p->damaged, "piece of the file is damaged", "pieces of the file are damaged"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].n)
            return arena_printf(&w->out->arena, "%llu %s", (unsigned long long)rows[i].n,
                                rows[i].n == 1 ? rows[i].one : rows[i].many);
    return NULL;
}

void gpu_work_missing(struct gpu_work *w)
{
    sum_lost(w);
    drop_void_holes(w);
    count_lost_graphs(w);
    find_cuts(w);
}
