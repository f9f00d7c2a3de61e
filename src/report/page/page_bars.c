/* SPDX-License-Identifier: MIT
 * page_bars.c - see page_bars.h. A first walk keeps all bars while there is room for them, and counts them by length;
 * where there is not, a second walk keeps those that the counts say are the longest. */
#include "report/page/page_bars.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_work.h"
#include "report/export/export.h"
#include "report/export/gpu_bars.h"
#include "report/export/lanes.h"

/* Sixteen classes of length for each power of two. */
enum { FINE = 16, CLASSES = 64 * FINE };

struct open_scope {
    uint64_t start;
    uint32_t lane, site; /* lane: of tasks, from 1 up; 0: none */
    uint16_t depth;
    uint8_t flags;
    bool late; /* goes on since a time that is not known */
};

struct waiting { /* a call that is not running now */
    uint64_t start, end;
    uint16_t depth;
    bool known; /* how long it ran */
};

struct task_lane {
    uint32_t at, open; /* index of the page's lane, bars that have begun */
};

struct gathering {
    struct page_bars *to;
    const struct event_source *source;
    uint64_t most, classes[CLASSES];
    unsigned least_class;     /* shorter bars are left out */
    double least_share, owed; /* of those of that class, this part is kept, evenly */
    bool counts_only;
    struct map_u64 names;    /* kind << 32 | number of it -> index + 1 */
    VEC(uint32_t) gpu_lanes; /* by number of the track */
    /* of the thread being walked */
    uint32_t lane;
    struct lanes tasks;
    VEC(struct open_scope) scopes;
    VEC(struct task_lane) task_lanes;
    VEC(struct page_bar) task_bars; /* open ones; more: the lane */
    struct map_u64 paused;          /* number of a pause -> index of `waits` + 1 */
    VEC(struct waiting) waits;
    VEC(uint32_t) unused; /* of waits */
    tare_error *err;
};

/* ---- bars ---- */

static unsigned class_of(uint64_t ns)
{
    if (ns < FINE) return (unsigned)ns;
    unsigned bits = 63 - (unsigned)__builtin_clzll(ns);
    return (bits - 3) * FINE + (unsigned)(ns >> (bits - 4) & (FINE - 1));
}

static bool is_kept(struct gathering *g, unsigned class)
{
    if (g->counts_only) return false;
    if (class != g->least_class || g->least_share >= 1) return class >= g->least_class;
    g->owed += g->least_share;
    if (g->owed < 1) return false;
    g->owed -= 1;
    return true;
}

static tare_status put(struct gathering *g, uint32_t lane, const struct page_bar *bar)
{
    unsigned class = class_of(bar->length);
    g->classes[class]++;
    g->to->seen++;
    if (bar->start + bar->length > g->to->end) g->to->end = bar->start + bar->length;
    if (!is_kept(g, class)) return TARE_OK;
    if (++g->to->kept > g->most) {
        g->counts_only = true;
        return TARE_OK;
    }
    return vec_push(&g->to->lanes.items[lane].bars, *bar, g->err);
}

static tare_status add_lane(struct gathering *g, const struct page_lane *like, uint32_t *out)
{
    *out = (uint32_t)g->to->lanes.n;
    return like->name ? vec_push(&g->to->lanes, *like, g->err) : error_nomem(g->err, "lanes");
}

/* ---- names ---- */

/* Both NVTX and tare tell marks; their names are numbered apart. */
#define OF_GPU (UINT64_C(1) << 63)

/* The number of a name; *fresh: where its text belongs, the first time. */
static tare_status name_of(struct gathering *g, enum page_bar_kind kind, uint64_t number, uint32_t *out,
                           struct page_name **fresh)
{
    uint64_t *at;
    tare_status s = map_u64_ref(&g->names, (uint64_t)kind << 32 | number, &at, g->err);
    *fresh = NULL;
    if (s != TARE_OK) return s;
    if (!*at) {
        s = vec_push(&g->to->names, ((struct page_name){.text = "", .kind = kind}), g->err);
        if (s != TARE_OK) return s;
        *at = g->to->names.n;
        *fresh = &g->to->names.items[g->to->names.n - 1];
    }
    *out = (uint32_t)*at - 1;
    return TARE_OK;
}

static tare_status site_name(struct gathering *g, enum page_bar_kind kind, uint32_t site, uint32_t *out)
{
    struct page_name *fresh;
    tare_status s = name_of(g, kind, site, out, &fresh);
    if (!fresh) return s;
    const struct trace_site *of = source_site(g->source, site);
    fresh->text = of->name;
    fresh->file = *of->file ? of->file : NULL;
    fresh->line = of->line;
    return TARE_OK;
}

/* ---- GPUs ---- */

static tare_status add_track(void *ctx, const struct gpu_track *t)
{
    static const enum page_lane_kind kinds[] = {
        [GPU_TRACK_STREAM] = PAGE_STREAM, [GPU_TRACK_CALLS] = PAGE_CALLS, [GPU_TRACK_RANGES] = PAGE_RANGES,
        [GPU_TRACK_MEMORY] = 0};
    struct gathering *g = ctx;
    struct page_lane lane = {.kind = kinds[t->kind], .process = t->process, .thread = t->thread};
    uint32_t at = 0;
    lane.name = arena_str(&g->to->memory, t->name);
    bool drawn = t->kind != GPU_TRACK_MEMORY; /* that has a picture of its own */
    tare_status s = drawn ? add_lane(g, &lane, &at) : TARE_OK;
    return s == TARE_OK ? vec_push(&g->gpu_lanes, at, g->err) : s;
}

static tare_status add_shape(struct gathering *g, const struct gpu_bar *b)
{
    static const struct gpu_record none = {.kind = GPU_SHAPE};
    tare_status s = TARE_OK;
    while (s == TARE_OK && g->to->shapes.n < b->shape_number)
        s = vec_push(&g->to->shapes, none, g->err);
    if (s == TARE_OK && b->shape_number) g->to->shapes.items[b->shape_number - 1] = *b->shape;
    return s;
}

static tare_status add_gpu_bar(void *ctx, const struct gpu_bar *b)
{
    static const enum page_bar_kind kinds[] = {
        [GPU_BAR_KERNEL] = PAGE_BAR_KERNEL, [GPU_BAR_COPY] = PAGE_BAR_COPY, [GPU_BAR_FILL] = PAGE_BAR_FILL,
        [GPU_BAR_GRAPH] = PAGE_BAR_GRAPH,   [GPU_BAR_CALL] = PAGE_BAR_CALL, [GPU_BAR_RANGE] = PAGE_BAR_RANGE,
        [GPU_BAR_MARK] = PAGE_BAR_MARK};
    struct gathering *g = ctx;
    struct page_bar bar = {.start = b->start, .length = b->end - b->start, .flow = b->flow};
    struct page_name *fresh;
    if (b->kind == GPU_BAR_MEMORY) return TARE_OK;
    tare_status s = name_of(g, kinds[b->kind], OF_GPU | b->name, &bar.name, &fresh);
    if (fresh) {
        fresh->text = arena_str(&g->to->memory, b->text);
        fresh->full = arena_str(&g->to->memory, b->full);
        if (b->kind == GPU_BAR_KERNEL) fresh->group = gpu_name_group(b->full ? b->full : b->text);
        if (g->to->memory.failed) return error_nomem(g->err, "names");
    }
    bar.more = b->bytes ? b->bytes : b->shape_number;
    if (s == TARE_OK) s = add_shape(g, b);
    return s == TARE_OK ? put(g, g->gpu_lanes.items[b->track], &bar) : s;
}

/* ---- calls that waited ---- */

/* The lane of the page for a lane of tasks of this thread. */
static tare_status task_lane(struct gathering *g, uint32_t lane)
{
    const struct page_lane *of = &g->to->lanes.items[g->lane];
    tare_status s = TARE_OK;
    while (s == TARE_OK && g->task_lanes.n < lane) {
        struct page_lane made = {.kind = PAGE_TASKS, .process = of->process, .thread = of->thread};
        struct task_lane t = {0, 0};
        made.name = arena_printf(&g->to->memory, "task %zu", g->task_lanes.n + 1);
        s = add_lane(g, &made, &t.at);
        if (s == TARE_OK) s = vec_push(&g->task_lanes, t, g->err);
        of = &g->to->lanes.items[g->lane];
    }
    return s;
}

static tare_status put_slice(struct gathering *g, uint32_t lane, uint32_t site, const struct waiting *w)
{
    struct page_bar bar = {.start = w->start, .length = w->end - w->start, .depth = w->depth};
    tare_status s = site_name(g, PAGE_BAR_SCOPE, site, &bar.name);
    return s == TARE_OK ? put(g, g->task_lanes.items[lane - 1].at, &bar) : s;
}

/* A whole bar begins: it is known for one now that its call goes on for the first time. */
static tare_status begin_task(struct gathering *g, const struct lane_step *step, uint16_t *depth)
{
    struct page_bar bar = {.start = step->at_ns};
    tare_status s = task_lane(g, step->lane);
    if (s == TARE_OK) s = site_name(g, PAGE_BAR_TASK, step->site, &bar.name);
    if (s != TARE_OK) return s;
    struct task_lane *lane = &g->task_lanes.items[step->lane - 1];
    *depth = (uint16_t)(lane->open < UINT16_MAX ? lane->open : UINT16_MAX);
    lane->open++;
    bar.depth = *depth;
    bar.more = step->lane; /* until it ends */
    return vec_push(&g->task_bars, bar, g->err);
}

/* Of the open bars of that name in that lane the innermost ends. */
static tare_status end_task(struct gathering *g, const struct lane_step *step, uint64_t flags)
{
    struct page_bar *bars = g->task_bars.items, *found = NULL;
    uint32_t name;
    tare_status s = site_name(g, PAGE_BAR_TASK, step->site, &name);
    for (size_t i = 0; i < g->task_bars.n && s == TARE_OK; i++)
        if (bars[i].more == step->lane && bars[i].name == name && (!found || bars[i].depth > found->depth))
            found = &bars[i];
    if (!found) return s;
    struct page_bar bar = *found;
    *found = bars[--g->task_bars.n];
    g->task_lanes.items[step->lane - 1].open--;
    bar.length = step->at_ns > bar.start ? step->at_ns - bar.start : 0;
    bar.more = flags;
    return put(g, g->task_lanes.items[step->lane - 1].at, &bar);
}

static tare_status keep_wait(struct gathering *g, uint32_t pause, struct waiting w)
{
    size_t at = g->unused.n ? g->unused.items[--g->unused.n] : g->waits.n;
    tare_status s = at == g->waits.n ? vec_push(&g->waits, w, g->err) : TARE_OK;
    if (s != TARE_OK) return s;
    g->waits.items[at] = w;
    return map_u64_put(&g->paused, pause, at + 1, g->err);
}

static tare_status take_wait(struct gathering *g, uint32_t pause, struct waiting *out, bool *found)
{
    uint64_t at;
    *found = map_u64_remove(&g->paused, pause, &at);
    if (!*found) return TARE_OK;
    *out = g->waits.items[at - 1];
    return vec_push(&g->unused, (uint32_t)(at - 1), g->err);
}

/* ---- scopes ---- */

static tare_status begin_scope(struct gathering *g, const struct trace_event *e, const struct lane_step *step)
{
    struct open_scope scope = {.start = e->time_ns, .lane = step->lane, .site = e->site};
    struct waiting first;
    bool found = false;
    tare_status s = TARE_OK;
    scope.late = e->flags & TRACE_LATE;
    scope.flags = e->flags & TRACE_WEIGHED ? PAGE_WEIGHED : 0;
    if (e->flags & TRACE_RESUMED) s = take_wait(g, e->pause, &first, &found);
    if (found) scope.depth = first.depth;
    if (s == TARE_OK && step->change == LANE_BEGIN) {
        s = begin_task(g, step, &scope.depth);
        first.depth = scope.depth;
        if (s == TARE_OK && found && first.known) s = put_slice(g, step->lane, e->site, &first);
    }
    return s == TARE_OK ? vec_push(&g->scopes, scope, g->err) : s;
}

static tare_status end_scope(struct gathering *g, const struct trace_event *e, const struct lane_step *step)
{
    if (!g->scopes.n) return TARE_OK;
    struct open_scope scope = g->scopes.items[--g->scopes.n];
    struct waiting ran = {scope.start, e->time_ns, scope.depth, false};
    struct page_bar bar = {.start = scope.start, .length = e->time_ns - scope.start};
    unsigned unended = e->flags & TRACE_SYNTHETIC ? PAGE_UNENDED : 0;
    bar.more = scope.flags | unended;
    tare_status s = site_name(g, PAGE_BAR_SCOPE, scope.site, &bar.name);
    bool known = !scope.late && !(e->flags & TRACE_LATE); /* how long it ran */
    ran.known = known;
    if (s == TARE_OK && known) s = put(g, g->lane, &bar);
    if (s == TARE_OK && known && scope.lane) s = put_slice(g, scope.lane, scope.site, &ran);
    if (s == TARE_OK && e->flags & TRACE_PAUSED) s = keep_wait(g, e->pause, ran);
    if (s == TARE_OK && step->change == LANE_END) s = end_task(g, step, unended);
    return s;
}

static int add_event(void *ctx, const struct trace_event *e)
{
    struct gathering *g = ctx;
    struct lane_step step;
    tare_status s = lanes_event(&g->tasks, e, &step, g->err);
    if (s != TARE_OK) return s;
    if (e->kind == TRACE_BEGIN) return begin_scope(g, e, &step);
    if (e->kind == TRACE_END) return end_scope(g, e, &step);
    if (e->kind != TRACE_MARK) return TARE_OK;
    struct page_bar bar = {.start = e->time_ns};
    s = site_name(g, PAGE_BAR_MARK, e->site, &bar.name);
    return s == TARE_OK ? put(g, g->lane, &bar) : s;
}

static tare_status add_thread(struct gathering *g, uint32_t i)
{
    const struct trace_thread *t = source_thread(g->source, i);
    struct page_lane lane = {.kind = PAGE_SCOPES, .process = t->process, .thread = t->tid};
    struct buf name = BUF_INIT;
    if (!t->events) return TARE_OK;
    export_thread_name(&name, t);
    lane.name = name.failed ? NULL : arena_str(&g->to->memory, name.data);
    buf_release(&name);
    lanes_clear(&g->tasks);
    vec_clear(&g->scopes);
    vec_clear(&g->task_lanes);
    vec_clear(&g->task_bars);
    vec_clear(&g->waits);
    vec_clear(&g->unused);
    map_u64_release(&g->paused);
    g->paused = (struct map_u64)MAP_U64_INIT;
    tare_status s = add_lane(g, &lane, &g->lane);
    if (s == TARE_OK) s = source_events(g->source, i, add_event, g, g->err);
    for (struct lane_step step; s == TARE_OK && lanes_unended(&g->tasks, &step);)
        s = end_task(g, &step, PAGE_UNENDED);
    return s;
}

/* ---- all of it ---- */

static int by_start(const void *a, const void *b)
{
    const struct page_bar *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->length != y->length) return x->length > y->length ? -1 : 1; /* what is around comes first */
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static void clear_lanes(struct page_bars *b)
{
    for (size_t i = 0; i < b->lanes.n; i++) vec_release(&b->lanes.items[i].bars);
    vec_clear(&b->lanes);
    b->seen = b->kept = 0;
}

static tare_status walk(struct gathering *g)
{
    tare_status s = TARE_OK;
    clear_lanes(g->to);
    vec_clear(&g->gpu_lanes);
    memset(g->classes, 0, sizeof g->classes);
    if (g->source->has_gpu) s = gpu_bars(g->source, &(struct gpu_bars_to){g, add_track, add_gpu_bar}, g->err);
    for (uint32_t i = 0; i < g->source->n_threads && s == TARE_OK; i++) s = add_thread(g, i);
    return s;
}

/* From the longest class down, as many as there is room for; of the last one a part. */
static void choose_least(struct gathering *g)
{
    uint64_t room = g->most;
    unsigned class = CLASSES;
    while (class > 0 && g->classes[class - 1] <= room) room -= g->classes[--class];
    if (!class) return;
    g->least_class = class - 1;
    g->least_share = (double)room / (double)g->classes[class - 1];
}

/* Lanes in order, and which bar is the call of a flow. */
static tare_status put_in_order(struct page_bars *b, tare_error *err)
{
    size_t number = 0;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < b->lanes.n && s == TARE_OK; i++) {
        struct page_lane *lane = &b->lanes.items[i];
        lane->first = number;
        number += lane->bars.n;
        s = gpu_sort(lane->bars.items, lane->bars.n, sizeof *lane->bars.items, by_start, err);
        for (size_t k = 0; lane->kind == PAGE_CALLS && k < lane->bars.n && s == TARE_OK; k++)
            if (lane->bars.items[k].flow)
                s = map_u64_put(&b->calls, lane->bars.items[k].flow, lane->first + k + 1, err);
    }
    b->kept = number;
    return s;
}

tare_status page_bars_gather(struct page_bars *out, const struct event_source *source, uint64_t most,
                             tare_error *err)
{
    struct gathering g = {.to = out, .source = source, .least_share = 1, .err = err};
    *out = (struct page_bars){.memory = ARENA_INIT, .calls = MAP_U64_INIT};
    g.most = most ? most : PAGE_BARS_MOST;
    tare_status s = walk(&g);
    if (s == TARE_OK && g.counts_only) {
        g.counts_only = false;
        choose_least(&g);
        s = walk(&g);
    }
    if (s == TARE_OK) s = put_in_order(out, err);
    map_u64_release(&g.names);
    map_u64_release(&g.paused);
    vec_release(&g.gpu_lanes);
    lanes_release(&g.tasks);
    vec_release(&g.scopes);
    vec_release(&g.task_lanes);
    vec_release(&g.task_bars);
    vec_release(&g.waits);
    vec_release(&g.unused);
    if (s != TARE_OK) page_bars_release(out);
    return s;
}

void page_bars_release(struct page_bars *b)
{
    clear_lanes(b);
    vec_release(&b->lanes);
    vec_release(&b->names);
    vec_release(&b->shapes);
    map_u64_release(&b->calls);
    arena_release(&b->memory);
}
