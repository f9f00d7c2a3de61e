/* SPDX-License-Identifier: MIT
 * source.c - a trace seen as an event_source. Adapts, decides nothing. */
#include "report/trace/source.h"

static const struct trace_site *site(const void *t, uint32_t i)
{
    return trace_site(t, i);
}

static const struct trace_process *process(const void *t, uint32_t i)
{
    return trace_process(t, i);
}

static const struct trace_thread *thread(const void *t, uint32_t i)
{
    return trace_thread(t, i);
}

static tare_status events(void *t, uint32_t i, trace_event_fn *fn, void *ctx, tare_error *err)
{
    return trace_events(t, i, fn, ctx, err);
}

static int gpu(void *t, trace_gpu_fn *fn, void *ctx)
{
    return trace_gpu(t, fn, ctx);
}

void event_source_of_trace(struct event_source *out, struct trace *t)
{
    *out = (struct event_source){
        .ctx = t,
        .gpu_ctx = t,
        .events_ctx = t,
        .path = trace_path(t),
        .id = trace_id(t),
        .n_sites = trace_n_sites(t),
        .n_processes = trace_n_processes(t),
        .n_threads = trace_n_threads(t),
        .has_events = trace_has_events(t),
        .has_tree = trace_has_tree(t),
        .has_gpu = trace_has_gpu(t),
        .loss = trace_loss(t),
        .site = site,
        .process = process,
        .thread = thread,
        .events = events,
        .gpu = gpu,
    };
}

struct source_idle *source_idle_of(struct event_source *out, const struct gpu_courses *c, struct arena *a)
{
    if (!c->with_gaps) return NULL;
    struct source_idle *idle = arena_new(a, c->cards.n + 1, sizeof *idle);
    for (size_t i = 0; idle && i < c->cards.n; i++)
        idle[i] = (struct source_idle){&c->cards.items[i], c->cards.items[i].process, 0};
    out->idle = idle;
    out->n_idle = idle ? c->cards.n : 0;
    return idle;
}
