/* SPDX-License-Identifier: MIT
 * joined.c - see joined.h. Numbers of sites, processes and threads of a later trace go on where those before it end. */
#include "report/trace/joined.h"

#include <inttypes.h>

#include "core/map.h"

/* ---- one job? ---- */

struct told {
    struct map_u64 *ranks; /* -> trace + 1 */
    uint64_t size, trace;
    bool any, twice;
    tare_status status;
};

static int take_rank(void *ctx, uint32_t process, const struct gpu_record *r)
{
    struct told *t = ctx;
    uint64_t *at;
    (void)process;
    if (r->kind != GPU_RANK || !r->RANK.rank || r->RANK.size <= 2) return 0;
    if (!t->size) t->size = r->RANK.size;
    t->status = map_u64_ref(t->ranks, r->RANK.rank, &at, NULL);
    if (t->status < 0) return 1;
    t->twice |= (*at && *at != t->trace) || t->size != r->RANK.size;
    t->any = true;
    *at = t->trace;
    return t->twice;
}

bool joined_is_job(struct trace *const *traces, size_t n)
{
    struct map_u64 ranks = MAP_U64_INIT;
    struct told t = {.ranks = &ranks, .any = true};
    for (size_t i = 0; i < n && t.any && !t.twice && t.status == TARE_OK; i++) {
        t.any = false;
        t.trace = i + 1;
        trace_gpu(traces[i], take_rank, &t);
    }
    map_u64_release(&ranks);
    return n > 1 && t.any && !t.twice && t.status == TARE_OK;
}

/* ---- the source ---- */

static const struct joined_part *part_of_site(const struct joined *j, uint32_t i)
{
    size_t k = j->n;
    while (k-- > 1 && j->parts[k].sites > i) continue;
    return &j->parts[k];
}

static const struct trace_site *site(const void *ctx, uint32_t i)
{
    const struct joined_part *p = part_of_site(ctx, i);
    return trace_site(p->t, i - p->sites);
}

static const struct trace_process *process(const void *ctx, uint32_t i)
{
    return &((const struct joined *)ctx)->processes[i];
}

static const struct trace_thread *thread(const void *ctx, uint32_t i)
{
    return &((const struct joined *)ctx)->threads[i];
}

struct passing {
    const struct joined_part *part;
    trace_event_fn *event;
    trace_gpu_fn *record;
    void *ctx;
};

static int pass_event(void *ctx, const struct trace_event *e)
{
    const struct passing *p = ctx;
    struct trace_event moved = *e;
    moved.time_ns += (uint64_t)p->part->shift;
    moved.site += p->part->sites;
    return p->event(p->ctx, &moved);
}

static tare_status events(void *ctx, uint32_t i, trace_event_fn *fn, void *fn_ctx, tare_error *err)
{
    const struct joined *j = ctx;
    size_t k = j->n;
    while (k-- > 1 && j->parts[k].threads > i) continue;
    struct passing p = {.part = &j->parts[k], .event = fn, .ctx = fn_ctx};
    return trace_events(p.part->t, i - p.part->threads, pass_event, &p, err);
}

static int pass_record(void *ctx, uint32_t process, const struct gpu_record *r)
{
    const struct passing *p = ctx;
    struct gpu_record moved = *r;
    if (gpu_has_time(r->kind)) moved.v[0] += (uint64_t)p->part->shift;
    return p->record(p->ctx, process + p->part->processes, &moved);
}

static int gpu(void *ctx, trace_gpu_fn *fn, void *fn_ctx)
{
    const struct joined *j = ctx;
    int stop = 0;
    for (size_t i = 0; i < j->n && !stop; i++) {
        struct passing p = {.part = &j->parts[i], .record = fn, .ctx = fn_ctx};
        stop = trace_gpu(p.part->t, pass_record, &p);
    }
    return stop;
}

/* ---- making it ---- */

/* All of one trace have one axis; one in which no rank worked goes by the wall clock. */
static int64_t shift_of(const struct joined_part *p, uint32_t end, const struct joined_of *of)
{
    for (size_t i = 0; i < of->courses->ranks.n; i++) {
        const struct gpu_rank_place *place = &of->courses->ranks.items[i];
        if (place->process >= p->processes && place->process < end) return place->shift;
    }
    const struct trace_process *first = trace_process(of->traces[0], 0), *own = trace_process(p->t, 0);
    return (int64_t)(own->start_unix_ns - own->start_ns - (first->start_unix_ns - first->start_ns));
}

static void add_part(struct joined *j, const struct joined_of *of, size_t i)
{
    struct event_source *s = &j->source;
    struct joined_part *p = &j->parts[i];
    const struct trace_loss *loss = trace_loss(of->traces[i]);
    *p = (struct joined_part){of->traces[i], 0, s->n_sites, s->n_processes, s->n_threads};
    s->n_sites += trace_n_sites(p->t);
    s->n_processes += trace_n_processes(p->t);
    s->n_threads += trace_n_threads(p->t);
    s->has_events |= trace_has_events(p->t);
    s->has_gpu |= trace_has_gpu(p->t);
    p->shift = shift_of(p, s->n_processes, of);
    j->loss.dropped += loss->dropped;
    j->loss.damaged_chunks += loss->damaged_chunks;
    j->loss.ended_early += loss->ended_early;
}

/* Time 0 is that of the trace that begins first. */
static void begin_at_zero(struct joined *j)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < j->n; i++) least = j->parts[i].shift < least ? j->parts[i].shift : least;
    for (size_t i = 0; i < j->n; i++) j->parts[i].shift -= least;
}

/* Viewers tell processes apart by their numbers, which two machines may both have given. */
static uint32_t other_pid(const struct joined *j, uint32_t n, uint32_t pid)
{
    enum { STEP = 10000000 };
    for (uint32_t i = 0; i < n; i++)
        if (j->processes[i].pid == pid) return other_pid(j, n, pid + STEP);
    return pid;
}

static void add_tables(struct joined *j, const struct joined_part *p)
{
    for (uint32_t i = 0; i < trace_n_processes(p->t); i++) {
        struct trace_process *to = &j->processes[p->processes + i];
        *to = *trace_process(p->t, i);
        to->pid = other_pid(j, p->processes, to->pid);
    }
    for (uint32_t i = 0; i < trace_n_threads(p->t); i++) {
        struct trace_thread *to = &j->threads[p->threads + i];
        *to = *trace_thread(p->t, i);
        to->process += p->processes;
    }
}

static void name_ranks(struct joined *j, const struct joined_of *of)
{
    for (size_t i = 0; i < of->courses->ranks.n; i++) {
        struct trace_process *p = &j->processes[of->courses->ranks.items[i].process];
        const struct gpu_rank *r = of->job->ranks.at[i];
        bool slowest = of->job->slowest.known && of->job->slowest.v == i;
        const char *mark = slowest ? ", the slowest" : "";
        if (r->rank.known)
            p->command = arena_printf(&j->memory, "rank %" PRIu64 "%s: %s", r->rank.v, mark, p->command);
        else if (slowest)
            p->command = arena_printf(&j->memory, "the slowest: %s", p->command);
    }
}

static const struct joined_part *part_of_process(const struct joined *j, uint32_t i)
{
    size_t k = j->n;
    while (k-- > 1 && j->parts[k].processes > i) continue;
    return &j->parts[k];
}

static void add_waits(struct joined *j, const struct joined_of *of)
{
    const struct gpu_courses *c = of->courses;
    struct source_wait *waits = arena_new(&j->memory, c->waits.n + 1, sizeof *waits);
    const char **texts = arena_new(&j->memory, c->ranks.n + 1, sizeof *texts);
    for (size_t i = 0; texts && i < c->ranks.n; i++) {
        const struct gpu_rank *r = of->job->ranks.at[i];
        texts[i] = r->rank.known ? arena_printf(&j->memory, "waiting for rank %" PRIu64, r->rank.v)
                                 : arena_printf(&j->memory, "waiting for process %" PRIu64, r->pid);
    }
    for (size_t i = 0; waits && texts && i < c->waits.n; i++) {
        const struct gpu_wait *from = &c->waits.items[i];
        uint32_t process = c->ranks.items[from->rank].process;
        uint64_t shift = (uint64_t)part_of_process(j, process)->shift;
        waits[i] = (struct source_wait){from->start + shift, from->end + shift, process, texts[from->last]};
    }
    j->source.waits = waits;
    j->source.n_waits = c->waits.n;
}

static void move_idle(struct joined *j)
{
    for (size_t i = 0; i < j->source.n_idle; i++)
        j->idle[i].shift = part_of_process(j, j->idle[i].process)->shift;
}

tare_status joined_open(struct joined *out, const struct joined_of *of, tare_error *err)
{
    struct joined *j = out;
    *j = (struct joined){.memory = ARENA_INIT, .n = of->n};
    j->parts = arena_new(&j->memory, of->n, sizeof *j->parts);
    for (size_t i = 0; j->parts && i < of->n; i++) add_part(j, of, i);
    j->processes = arena_new(&j->memory, (size_t)j->source.n_processes + 1, sizeof *j->processes);
    j->threads = arena_new(&j->memory, (size_t)j->source.n_threads + 1, sizeof *j->threads);
    if (!j->memory.failed) {
        begin_at_zero(j);
        for (size_t i = 0; i < j->n; i++) add_tables(j, &j->parts[i]);
        name_ranks(j, of);
        add_waits(j, of);
        j->idle = source_idle_of(&j->source, of->courses, &j->memory);
        move_idle(j);
    }
    if (j->memory.failed) {
        joined_release(j);
        return error_nomem(err, "%zu traces", of->n);
    }
    j->source.ctx = j->source.gpu_ctx = j->source.events_ctx = j;
    j->source.path = trace_path(of->traces[0]);
    j->source.id = trace_id(of->traces[0]);
    j->source.loss = &j->loss;
    j->source.site = site;
    j->source.process = process;
    j->source.thread = thread;
    j->source.events = events;
    j->source.gpu = gpu;
    return TARE_OK;
}

void joined_release(struct joined *j)
{
    arena_release(&j->memory);
}
