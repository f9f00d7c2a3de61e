/* SPDX-License-Identifier: MIT
 * walk_trace.h - what both trace fuzzers do with a file: open it, look at everything, and hold the reader to its
 * promises (ordered, nested, indices in range, NUL-terminated texts). */
#ifndef FUZZ_WALK_TRACE_H
#define FUZZ_WALK_TRACE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/calls/calltree.h"
#include "analyze/gpu/gpu_sum.h"
#include "analyze/memory/memory_sum.h"
#include "core/mem.h"
#include "report/export/gpu_bars.h"
#include "report/memory/memory_export.h"
#include "report/memory/memory_report.h"
#include "report/page/bars_json.h"
#include "trace/memory.h"
#include "trace/reader.h"

struct walker {
    struct trace *t;
    uint32_t thread, depth, tracks;
    uint64_t last_ns, events;
};

#define must(ok)                                                              \
    do {                                                                      \
        if (!(ok)) {                                                          \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #ok); \
            abort();                                                          \
        }                                                                     \
    } while (0)

static int walk_event(void *ctx, const struct trace_event *e)
{
    struct walker *w = ctx;
    must(e->time_ns >= w->last_ns && e->thread == w->thread && trace_site(w->t, e->site) != NULL);
    w->last_ns = e->time_ns;
    w->events++;
    if (e->kind == TRACE_BEGIN) w->depth++;
    if (e->kind == TRACE_END) must(w->depth-- > 0);
    if (e->kind == TRACE_MARK) must(strlen(e->text) < 1024);
    return 0;
}

static int walk_node(void *ctx, const struct trace_node *n)
{
    struct walker *w = ctx;
    must(trace_process(w->t, n->process) != NULL && n->kind <= TARE_SITE_MARK);
    must(n->number == 0 || (n->parent < n->number && trace_site(w->t, n->site) != NULL));
    must(n->n_batches <= 32 && n->n_buckets <= 768 && n->n_pairs <= 512);
    must(n->thread < (int64_t)trace_n_threads(w->t));
    return 0;
}

static void walk_tree(struct trace *t)
{
    struct calltree tree = CALLTREE_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (calltree_build(&tree, t, -1, &err) != TARE_OK) return;
    for (uint32_t i = 1; i < tree.n_nodes; i++) {
        const struct call_node *c = &tree.nodes[i];
        must(c->parent < i && c->child < tree.n_nodes && c->next < tree.n_nodes &&
             trace_site(t, c->site) != NULL);
        must(isnan(c->total_ns.value) ||
             (c->total_ns.lo <= c->total_ns.value && c->total_ns.value <= c->total_ns.hi));
    }
    calltree_release(&tree);
}

static tare_status walk_track(void *ctx, const struct gpu_track *t)
{
    struct walker *w = ctx;
    must(t->number == w->tracks++ && trace_process(w->t, t->process) != NULL && t->name[0]);
    return TARE_OK;
}

static tare_status walk_bar(void *ctx, const struct gpu_bar *b)
{
    const struct walker *w = ctx;
    must(b->track < w->tracks && b->start <= b->end && b->text != NULL);
    return TARE_OK;
}

/* Whatever the records claim, the document about them is one that a reader takes. */
static void walk_gpu(struct walker *w)
{
    struct trace *t = w->t;
    struct event_source source;
    event_source_of_trace(&source, t);
    must(gpu_bars(&source, &(struct gpu_bars_to){w, walk_track, walk_bar}, NULL) == TARE_OK);
    struct gpu_profile p;
    struct buf text = BUF_INIT;
    if (gpu_sum(&t, 1, &p, NULL) != TARE_OK) return;
    must(gpu_profile_write(&p, &text, NULL) == TARE_OK);
    for (size_t i = 0; i < p.devices.n; i++) {
        const struct gpu_card *d = p.devices.at[i];
        uint64_t sum = d->busy_ns.v;
        must(d->busy_ns.v <= d->wall_ns.v && d->compute_ns.v <= d->busy_ns.v && d->copy_ns.v <= d->busy_ns.v);
        for (size_t k = 0; k < d->idle.n; k++) sum += d->idle.at[k]->ns;
        must(sum <= d->wall_ns.v + 3 * d->operations.v);
        must(!d->steps.known || (d->steps.count >= 5 && d->steps.busy.v <= 1.000001));
    }
    buf_release(&text);
    gpu_profile_release(&p);
}

static int walk_record(void *ctx, uint32_t process, const struct memory_record *r)
{
    struct walker *w = ctx;
    bool timed = memory_has_time(r->kind);
    must(r->kind > 0 && r->kind < MEMORY_KINDS && trace_process(w->t, process) != NULL);
    must(w->depth == 0 || timed || r->kind == MEMORY_BY || process != w->thread); /* told things come first */
    if (process != w->thread) w->last_ns = 0;
    must(!timed || r->v[0] >= w->last_ns);
    if (timed) w->last_ns = r->v[0];
    w->depth = timed;
    w->thread = process;
    if (r->kind == MEMORY_CODE) memory_line(r, r->CODE.number);
    return 0;
}

static void walk_memory_exports(struct memory_profile *p)
{
    static memory_write_fn *const formats[] = {memory_write_pprof, memory_write_speedscope,
                                               memory_write_folded};
    struct memory_export e = {.profile = p, .name = "x"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct buf text = BUF_INIT;
        struct stream s;
        stream_init(&s, sink_to_buf(&text), NULL);
        formats[i](&s, &e);
        must(stream_finish(&s) == TARE_OK);
        buf_release(&text);
    }
}

/* Whatever the records claim: sums are numbers, the peak is the most that was held, and it can be printed. */
static void walk_sums(struct trace *t)
{
    struct report_style style = REPORT_STYLE_NONE;
    struct memory_profile p;
    if (memory_sum(t, &p, NULL) == TARE_OK) {
        for (size_t i = 0; i < p.n; i++) {
            const struct memory_process *m = &p.processes[i];
            must(isfinite(m->peak.sum) && isfinite(m->allocated.variance) && m->peak.sum >= m->at_end.sum);
            must(m->from_ns <= m->to_ns);
        }
        for (int json = 0; json < 2; json++) {
            struct buf text = BUF_INIT;
            struct answer a;
            answer_begin(&a, sink_to_buf(&text), json, &style, NULL);
            struct memory_report_options o = {
                .by = (enum memory_by)(json ? MEMORY_BY_LIBRARY : MEMORY_BY_LINE)};
            memory_report(&a, &p, &o);
            must(answer_end(&a) == TARE_OK);
            buf_release(&text);
        }
        walk_memory_exports(&p);
    }
    memory_profile_release(&p);
}

static void walk_memory(struct trace *t)
{
    struct walker w = {.t = t, .thread = UINT32_MAX};
    must(trace_memory(t, walk_record, &w, NULL) == TARE_OK);
    walk_sums(t);
}

static void walk_parts(struct walker *w)
{
    struct trace *t = w->t;
    tare_error err = TARE_ERROR_INIT;
    for (uint32_t i = 0; i < trace_n_sites(t); i++)
        must(strlen(trace_site(t, i)->name) + strlen(trace_site(t, i)->file) < 1 << 20);
    for (uint32_t i = 0; i < trace_n_processes(t); i++)
        must(trace_process(t, i)->command != NULL && trace_process(t, i)->tick_ns > 0);
    for (w->thread = 0; w->thread < trace_n_threads(t); w->thread++) {
        w->last_ns = w->depth = 0;
        must(trace_thread(t, w->thread)->process < trace_n_processes(t) &&
             trace_thread(t, w->thread)->name != NULL);
        tare_status s = trace_events(t, w->thread, walk_event, w, &err);
        must(s == TARE_OK && w->depth == 0);
    }
    must(trace_nodes(t, walk_node, w, &err) == TARE_OK);
}

/* The page's document: ended JSON, with all bars and with the longest few. */
static void walk_page(struct trace *t)
{
    const uint64_t most[] = {0, 20};
    for (size_t i = 0; i < 2; i++) {
        struct buf text = BUF_INIT;
        struct stream s;
        stream_init(&s, sink_to_buf(&text), NULL);
        must(bars_json_write(&s, &t, 1, most[i]) == TARE_OK && stream_finish(&s) == TARE_OK);
        must(text.len > 2 && text.data[0] == '{' && text.data[text.len - 1] == '}');
        buf_release(&text);
    }
}

/* Put the bytes where trace_open can find them: a file in memory, used again and again. */
static void walk_bytes(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[40];
    if (fd < 0) {
        fd = memfd_create("trace", MFD_CLOEXEC);
        must(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    must(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    long blocks = mem_live_blocks();
    struct walker w = {0};
    tare_error err = TARE_ERROR_INIT;
    if (trace_open(&w.t, path, &err) == TARE_OK) {
        walk_parts(&w);
        walk_tree(w.t);
        walk_gpu(&w);
        walk_memory(w.t);
        walk_page(w.t);
        trace_close(w.t);
    } else {
        must(err.text[0] != 0);
    }
    must(mem_live_blocks() == blocks);
}

#endif
