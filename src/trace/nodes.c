/* SPDX-License-Identifier: MIT
 * nodes.c - the trees of a trace, node by node. */
#include <string.h>

#include "trace/loaded.h"

static void read_buckets(struct trace_node *n, struct dec *d)
{
    n->n_buckets = 0;
    uint64_t last = 0;
    for (uint64_t code; (code = dec_uint(d)) && !d->failed; last = code) {
        uint64_t count = dec_uint(d);
        if (code <= last || code > OCTAVES * SUBS) {
            d->failed = true;
            return;
        }
        unsigned octave = (unsigned)(code - 1) / SUBS, sub = (unsigned)(code - 1) % SUBS;
        uint64_t low = bucket_low(octave, sub), width = octave ? UINT64_C(1) << (octave - 1) : 1;
        n->bucket[n->n_buckets++] = (struct trace_bucket){low, low + width, count};
    }
}

static void read_pairs(struct trace_node *n, struct dec *d)
{
    uint64_t count = dec_uint(d);
    if (count > WEIGH_PAIRS) d->failed = true;
    n->n_pairs = d->failed ? 0 : (uint32_t)count;
    for (uint32_t i = 0; i < n->n_pairs; i++) {
        n->pair[i].off = (uint32_t)dec_uint(d);
        n->pair[i].on = (uint32_t)dec_uint(d);
        n->pair[i].scopes = (uint32_t)dec_uint(d);
    }
}

/* A node as fold.c wrote it. Parents come first, so a parent's number is below its child's. */
static void read_node(struct trace_node *n, uint64_t *own_site, struct dec *d)
{
    uint64_t parent = dec_uint(d);
    *own_site = dec_uint(d);
    uint64_t kind = dec_uint(d);
    n->count = dec_uint(d);
    n->total = dec_int(d);
    n->min = dec_int(d);
    n->max = dec_int(d);
    n->off_count = dec_uint(d);
    n->off_total = dec_uint(d);
    n->off_scopes = dec_uint(d);
    n->abandoned = dec_uint(d);
    n->batch_size = dec_uint(d);
    uint64_t batches = dec_uint(d);
    if (kind > TARE_SITE_MARK || batches > BATCHES_MAX || (n->number ? parent >= n->number : parent != 0))
        d->failed = true;
    if (kind == TARE_SITE_SCOPE && n->total < 0) d->failed = true;
    if (d->failed) return;
    n->parent = (uint32_t)parent;
    n->kind = (uint32_t)kind;
    n->n_batches = (uint32_t)batches;
    for (uint32_t i = 0; i < n->n_batches; i++) n->batch[i] = dec_uint(d);
    read_buckets(n, d);
    read_pairs(n, d);
}

/* The thread that last used this slot, and how many did. */
static void find_thread(const struct trace *t, struct trace_node *n)
{
    const uint64_t *at = map_u64_find(&t->slot_index, (uint64_t)n->process << 32 | n->slot);
    n->thread = at ? (int64_t)*at - 1 : -1;
    n->threads = at && t->threads.items[*at - 1].slot_threads ? t->threads.items[*at - 1].slot_threads : 1;
}

struct walk {
    struct trace *t;
    struct scratch scratch;
    struct trace_node *n; /* the one being delivered */
    trace_node_fn *fn;
    void *ctx;
};

/* Nodes up to the first one that makes no sense: those after it have no parent that could be trusted. */
static tare_status tree_chunk(struct walk *w, const struct stored *s, tare_error *err)
{
    struct trace *t = w->t;
    struct trace_node *n = w->n;
    struct dec d;
    if (!stored_open(s, &w->scratch, &d)) /* damage was counted when the trace was opened */
        return scratch_status(&w->scratch, err);
    n->process = s->process;
    n->slot = (uint32_t)dec_uint(&d);
    uint64_t number = dec_uint(&d);
    find_thread(t, n);
    for (int stopped; d.p < d.end && !d.failed; number++) {
        uint64_t own;
        n->number = (uint32_t)number;
        read_node(n, &own, &d);
        if (!d.failed && n->number && !loaded_site(t, s->process, own, &n->site)) d.failed = true;
        if (d.failed) break;
        if ((stopped = w->fn(w->ctx, n))) return (tare_status)stopped;
    }
    if (d.failed) {
        t->loss.damaged_chunks++;
        loss_note(t, "a tree of process %u makes no sense beyond node %llu",
                  t->processes.items[s->process].pub.pid, (unsigned long long)number);
    }
    return TARE_OK;
}

tare_status trace_nodes(struct trace *t, trace_node_fn *fn, void *ctx, tare_error *err)
{
    struct walk w = {.t = t, .n = mem_new(1, sizeof *w.n), .fn = fn, .ctx = ctx};
    if (!w.n) return error_nomem(err, "a trace");
    tare_status s = TARE_OK;
    for (size_t i = 0; i < t->trees.n && s == TARE_OK; i++)
        s = tree_chunk(&w, &t->trees.items[i].stored, err);
    mem_free(w.scratch.bytes);
    mem_free(w.n);
    return s;
}

/* ---- plain answers ---- */

#define ANSWER(type, name, answer)   \
    type name(const struct trace *t) \
    {                                \
        return answer;               \
    }
ANSWER(const char *, trace_path, t->path)
ANSWER(const char *, trace_id, t->id)
ANSWER(uint64_t, trace_begun_raw_ns, t->begun_raw_ns)
ANSWER(uint32_t, trace_n_sites, (uint32_t)t->sites.n)
ANSWER(uint32_t, trace_n_processes, (uint32_t)t->processes.n)
ANSWER(uint32_t, trace_n_threads, (uint32_t)t->threads.n)
ANSWER(const struct trace_loss *, trace_loss, &t->loss)
ANSWER(bool, trace_has_events, t->has_events)
ANSWER(bool, trace_has_tree, t->has_tree)

const struct trace_site *trace_site(const struct trace *t, uint32_t i)
{
    return i < t->sites.n ? &t->sites.items[i] : NULL;
}
const struct trace_process *trace_process(const struct trace *t, uint32_t i)
{
    return i < t->processes.n ? &t->processes.items[i].pub : NULL;
}
const struct trace_thread *trace_thread(const struct trace *t, uint32_t i)
{
    return i < t->threads.n ? &t->threads.items[i].pub : NULL;
}
