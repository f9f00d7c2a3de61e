/* SPDX-License-Identifier: MIT
 * finish.c - the last step of opening a trace: what was read is put in order, what was written twice is dropped,
 * what was lost is summed up, and clocks are fitted. Reads no file. */
#include <stdlib.h>

#include "trace/loaded.h"

static struct interval weight_ns(const struct weight_ticks *w, double tick_ns)
{
    return (struct interval){w->p50 / 256.0 * tick_ns, w->p10 / 256.0 * tick_ns, w->p90 / 256.0 * tick_ns};
}

/* ---- order ---- */

static int by_seq(const void *a, const void *b)
{
    const struct events_chunk *x = a, *y = b;
    if (x->seq != y->seq) return x->seq > y->seq ? 1 : -1;
    return (x->n_events < y->n_events) - (x->n_events > y->n_events); /* of two the fuller first */
}

/* Chunks in order; one that was archived just before a kill may also still be in the live file. */
static void order_chunks(struct loaded_thread *thread)
{
    size_t kept = 0;
    if (thread->pauses.n > 1)
        qsort(thread->pauses.items, thread->pauses.n, sizeof thread->pauses.items[0], by_seq);
    if (thread->chunks.n > 1)
        qsort(thread->chunks.items, thread->chunks.n, sizeof thread->chunks.items[0], by_seq);
    for (size_t i = 0; i < thread->chunks.n; i++) {
        const struct events_chunk *c = &thread->chunks.items[i];
        if (kept && c->seq == thread->chunks.items[kept - 1].seq) continue;
        thread->pub.events += c->n_events;
        thread->chunks.items[kept++] = *c;
    }
    thread->chunks.n = kept;
}

static int by_place(const void *a, const void *b)
{
    const struct tree_chunk *x = a, *y = b;
    if (x->stored.process != y->stored.process) return x->stored.process > y->stored.process ? 1 : -1;
    if (x->slot != y->slot) return x->slot > y->slot ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

static void order_trees(struct trace *t)
{
    size_t kept = 0;
    if (t->trees.n > 1) qsort(t->trees.items, t->trees.n, sizeof t->trees.items[0], by_place);
    for (size_t i = 0; i < t->trees.n; i++)
        if (!kept || by_place(&t->trees.items[i], &t->trees.items[kept - 1]))
            t->trees.items[kept++] = t->trees.items[i];
    t->trees.n = kept;
}

/* ---- processes and threads ---- */

/* Of a record that ends before the process did what came later is not on record, and nobody could count it. */
static void finish_end(struct trace *t, struct loaded_process *p)
{
    static const char *const why[] = {
        [RECORD_END_DISK] = "the disk was nearly full, where a program can be held up",
        [RECORD_END_PAGE] = "pages of its live file were missing (the disk was full, or it was truncated)"};
    uint64_t from = p->info.begun_raw_ns, at = p->told_end.raw_ns;
    p->pub.end = (uint32_t)p->told_end.why;
    if (p->told_end.why != RECORD_END_DISK && p->told_end.why != RECORD_END_PAGE) return;
    t->loss.ended_early++;
    loss_note(t, "process %u: recording ended %.1f s after it began: %s", p->info.pid,
              at > from ? (double)(at - from) / 1e9 : 0, why[p->told_end.why]);
}

/* What others see of a process, from what was read of it; and what is missing of it goes to the losses. */
static void finish_process(struct trace *t, struct loaded_process *p)
{
    struct process_info *i = &p->info;
    if (!p->described)
        i->mode = TARE_AGGREGATE | TARE_EVENTS; /* its description is damaged: whatever is there */
    p->pub.pid = i->pid;
    p->pub.parent_pid = i->parent_pid;
    p->pub.start_unix_ns = i->begun_unix_ns;
    p->pub.start_raw_ns = i->begun_raw_ns;
    p->pub.start_ns = i->begun_raw_ns > t->begun_raw_ns ? i->begun_raw_ns - t->begun_raw_ns : 0;
    p->pub.end_ns = p->pub.start_ns;
    if (p->pairs.n) {
        uint64_t last = p->pairs.items[p->pairs.n - 1].raw_ns;
        if (last > t->begun_raw_ns + p->pub.end_ns) p->pub.end_ns = last - t->begun_raw_ns;
    }
    p->pub.mode = i->mode;
    p->pub.clock = i->clock;
    t->has_tree |= (i->mode & TARE_AGGREGATE) && t->trees.n;
    p->pub.tsc = i->tsc != 0;
    p->pub.inside = weight_ns(&i->inside, p->pub.tick_ns);
    p->pub.outside = weight_ns(&i->outside, p->pub.tick_ns);
    p->pub.skipped = weight_ns(&i->skipped, p->pub.tick_ns);
    const uint64_t *parent = i->parent_uid ? map_u64_find(&t->process_index, i->parent_uid) : NULL;
    p->parent = parent && *parent ? (int64_t)*parent - 1 : -1;
    t->loss.dropped += p->told.lost;
    t->loss.damaged_chunks += p->told.damaged;
    if (p->told.damaged)
        loss_note(t, "process %u: %llu parts of its live record made no sense", i->pid,
                  (unsigned long long)p->told.damaged);
    finish_end(t, p);
    if (p->ended) return;
    if (!(i->mode &
          (TARE_AGGREGATE | TARE_EVENTS))) { /* it only appends: there are neither events nor a live file */
        loss_note(t, "process %u did not end its record of %s: killed, still running, or out of disk", i->pid,
                  i->mode ? "the GPU, of which the last second may be missing" : "samples");
        return;
    }
    t->loss.missing_live++;
    loss_note(
        t,
        "process %u did not close the trace and its live file is gone: its last events and its tree are lost",
        i->pid);
}

/* A killed process did not say when it ended: its last event does. */
static tare_status finish_thread(struct trace *t, uint32_t index, tare_error *err)
{
    struct loaded_thread *thread = &t->threads.items[index];
    order_chunks(thread);
    thread->pub.dropped = thread->told.lost;
    t->loss.dropped += thread->told.lost;
    t->loss.abandoned_scopes += thread->told.abandoned;
    t->loss.foreign_scopes += thread->told.foreign;
    if (thread->chunks.n) {
        const struct events_chunk *last = vec_last(&thread->chunks);
        struct loaded_process *p = &t->processes.items[thread->pub.process];
        struct timeline_hint hint = {0};
        uint64_t end = timeline_ns(t, p, last->last_ticks, &hint);
        if (end > p->pub.end_ns) p->pub.end_ns = end;
        t->loss.unclosed_scopes += last->depth_after;
    }
    if (thread->slot == UINT32_MAX) return TARE_OK;
    uint64_t *latest;
    tare_status s =
        map_u64_ref(&t->slot_index, (uint64_t)thread->pub.process << 32 | thread->slot, &latest, err);
    if (s != TARE_OK) return s;
    uint32_t told = *latest ? t->threads.items[*latest - 1].slot_threads : 0;
    if (told > thread->slot_threads) thread->slot_threads = told;
    *latest = (uint64_t)index + 1;
    return TARE_OK;
}

static bool nothing_read(const struct trace *t)
{
    for (size_t i = 0; i < t->processes.n; i++)
        if (t->processes.items[i].described) return false;
    return !t->has_events && !t->trees.n;
}

tare_status trace_finish(struct trace *t, tare_error *err)
{
    if (nothing_read(t)) {
        if (t->loss.first[0])
            return error_set(err, TARE_FORMAT, "%s: nothing in it could be read: %s", t->path, t->loss.first);
        return error_set(err, TARE_FORMAT, "%s: an empty trace: nothing was recorded", t->path);
    }
    timeline_prepare(t);
    order_trees(t);
    for (size_t i = 0; i < t->processes.n; i++) finish_process(t, &t->processes.items[i]);
    tare_status s = TARE_OK;
    for (size_t i = 0; i < t->threads.n && s == TARE_OK; i++) s = finish_thread(t, (uint32_t)i, err);
    return s;
}
