/* SPDX-License-Identifier: MIT
 * gpu_read.c - the GPU chunks of an opened trace, record by record, on the trace's time axis. Streams: memory use does
 * not grow with the trace. */
#include "core/mem.h"
#include "trace/gpu.h"
#include "trace/loaded.h"

bool trace_has_gpu(const struct trace *t)
{
    for (size_t i = 0; i < t->meta.n; i++)
        if (t->meta.items[i].type == CHUNK_GPU) return true;
    return false;
}

static int read_chunk(struct trace *t, const struct stored *s, struct scratch *scratch, trace_gpu_fn *fn,
                      void *ctx)
{
    const struct loaded_process *p = &t->processes.items[s->process];
    struct gpu_state state = {{0}};
    struct gpu_record r;
    struct dec d;
    struct timeline_hint hint = {0};
    int stop = 0;
    if (!stored_open(s, scratch, &d)) return 0; /* counted when the trace was opened */
    while (!stop && gpu_unpack(&state, &d, &r)) {
        if (gpu_has_time(r.kind)) r.v[0] = timeline_ns(t, p, r.v[0], &hint);
        stop = fn(ctx, s->process, &r);
    }
    return stop;
}

int trace_gpu(struct trace *t, trace_gpu_fn *fn, void *ctx)
{
    struct scratch scratch = {NULL, 0, false};
    uint64_t gone = 0;
    int stop = 0;
    for (size_t i = 0; i < t->meta.n && !stop; i++) {
        const struct stored *s = &t->meta.items[i].stored;
        if (t->meta.items[i].type != CHUNK_GPU) continue;
        stop = read_chunk(t, s, &scratch, fn, ctx);
        if (s->bytes >= t->archive.data && s->bytes < t->archive.data + t->archive.size)
            trace_let_go(t, &gone, (uint64_t)(s->bytes - t->archive.data));
    }
    mem_free(scratch.bytes);
    return stop;
}

uint64_t trace_gpu_moment(struct trace *t, uint32_t process, uint64_t unix_ns)
{
    struct timeline_hint hint = {0};
    return timeline_ns(t, &t->processes.items[process], unix_ns, &hint);
}
