/* SPDX-License-Identifier: MIT
 * source.h - what a report needs to know of a trace, as a small table of functions: a trace fills it in
 * source.c, a test fills it by hand. Borrowed: the trace outlives it. */
#ifndef REPORT_SOURCE_H
#define REPORT_SOURCE_H

#include "analyze/gpu/gpu_sum.h"
#include "core/arena.h"
#include "trace/gpu.h"
#include "trace/reader.h"

struct event_source {
    void *ctx, *gpu_ctx,
        *events_ctx; /* events_ctx: of events(), which may be another's that looks at what passes */
    const char *path, *id;
    uint32_t n_sites, n_processes, n_threads;
    bool has_events, has_tree, has_gpu, has_samples;
    const struct trace_loss *loss;
    const struct trace_site *(*site)(const void *ctx, uint32_t i);
    const struct trace_process *(*process)(const void *ctx, uint32_t i);
    const struct trace_thread *(*thread)(const void *ctx, uint32_t i);
    /* As trace_events(): in time order, nested, streamed; a non-zero answer of `fn` stops and is returned. */
    tare_status (*events)(void *ctx, uint32_t thread, trace_event_fn *fn, void *fn_ctx, tare_error *err);
    int (*gpu)(void *ctx, trace_gpu_fn *fn, void *fn_ctx); /* as trace_gpu() */
    const struct source_wait *waits;                       /* of ranks for each other, process by process */
    size_t n_waits;
    const struct source_idle *idle; /* of each GPU */
    size_t n_idle;
};

struct source_idle { /* what gpu_sum_over_time() said of its gaps, whose times are of its own trace */
    const struct gpu_course *of;
    uint32_t process;
    int64_t shift; /* ns: added to its times */
};

struct source_wait { /* in a collective, for the rank that came last */
    uint64_t start, end;
    uint32_t process;
    const char *text;
};

void event_source_of_trace(struct event_source *out, struct trace *t);
/* Adds the gaps of GPUs, where courses were asked for them; these are borrowed. NULL: there are none, or no memory. */
struct source_idle *source_idle_of(struct event_source *out, const struct gpu_courses *c, struct arena *a);

static inline const struct trace_site *source_site(const struct event_source *s, uint32_t i)
{
    return s->site(s->ctx, i);
}
static inline const struct trace_process *source_process(const struct event_source *s, uint32_t i)
{
    return s->process(s->ctx, i);
}
static inline const struct trace_thread *source_thread(const struct event_source *s, uint32_t i)
{
    return s->thread(s->ctx, i);
}
static inline tare_status source_events(const struct event_source *s, uint32_t thread, trace_event_fn *fn,
                                        void *fn_ctx, tare_error *err)
{
    return s->events(s->events_ctx, thread, fn, fn_ctx, err);
}

#endif
