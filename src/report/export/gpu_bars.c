/* SPDX-License-Identifier: MIT
 * gpu_bars.c - see gpu_bars.h. Records come in the order in which CUPTI gave them back, which is that of time only
 * within a stream or a thread, and only nearly. */
#include "report/export/gpu_bars.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_work.h"
#include "symbol/demangle.h"

enum { RECENT = 16, LANES = 8, TRACKS_MOST = 10000 };
#define WAITS UINT32_MAX /* as a thread: the track of what a rank waited for others */

struct span {
    uint64_t start, end;
};

struct track {
    struct span recent[RECENT];
    uint32_t n; /* bars so far */
};

struct name {
    const char *text, *full; /* full: NULL where it is no more than the text */
};

struct open_range {
    uint64_t start;
    uint32_t process, thread, name;
    bool open;
};

struct bars {
    const struct event_source *source;
    const struct gpu_bars_to *to;
    struct arena memory;
    struct gpu_tables tables;
    VEC(struct name) names;       /* by their indices in the tables */
    struct map_u64 open;          /* gpu_key() of a range -> index + 1 */
    struct map_u64 track_numbers; /* see track_of() */
    VEC(struct track) tracks;
    VEC(struct open_range) ranges;
    VEC(uint32_t) unused;        /* indices of ranges */
    struct map_u64 pieces, held; /* memory: place -> bytes; process and device -> bytes */
    uint64_t latest;
    tare_error *err;
};

/* ---- names ---- */

/* Demangled and shortened once, when a name is first told. */
static tare_status follow_names(struct bars *b)
{
    tare_status s = TARE_OK;
    while (b->names.n < b->tables.names.n && s == TARE_OK) {
        struct name n = {.full = demangle(&b->memory, b->tables.names.items[b->names.n])};
        n.text = b->memory.failed ? NULL : gpu_name_short(&b->memory, n.full);
        if (!n.text) return error_nomem(b->err, "names");
        if (strcmp(n.text, n.full) == 0) n.full = NULL;
        s = vec_push(&b->names, n, b->err);
    }
    return s;
}

static tare_status name_of(struct bars *b, const char *text, uint32_t *out)
{
    tare_status s = gpu_tables_name(&b->tables, text, out, b->err);
    return s == TARE_OK ? follow_names(b) : s;
}

static tare_status find_name(struct bars *b, uint32_t process, uint64_t number, uint32_t *out)
{
    *out = gpu_index(&b->tables.name_numbers, process, number);
    return *out == GPU_NONE ? name_of(b, "a name that was lost", out) : TARE_OK;
}

/* ---- tracks ---- */

static const char *track_name(struct bars *b, enum gpu_track_kind kind, uint32_t process, uint32_t number)
{
    if (kind == GPU_TRACK_CALLS) return arena_printf(&b->memory, "CUDA calls of thread %" PRIu32, number);
    if (kind == GPU_TRACK_RANGES && number == WAITS) return "waiting in collectives";
    if (kind == GPU_TRACK_RANGES) return arena_printf(&b->memory, "NVTX ranges of thread %" PRIu32, number);
    if (kind == GPU_TRACK_IDLE) return arena_printf(&b->memory, "GPU %" PRIu32 " idle, by cause", number);
    if (kind == GPU_TRACK_MEMORY) return arena_printf(&b->memory, "GPU %" PRIu32 " memory", number);
    uint32_t at = gpu_index(&b->tables.lane_numbers, process, number);
    if (at == GPU_NONE) return "GPU, a stream whose name was lost";
    const struct gpu_record *r = &b->tables.lanes.items[at];
    return arena_printf(&b->memory, "GPU %" PRIu64 " stream %" PRIu64, r->LANE.device, r->LANE.stream);
}

struct where {
    enum gpu_track_kind kind;
    uint32_t process, number; /* number: of the LANE, or of the thread */
};

static tare_status track_of(struct bars *b, const struct where *w, uint32_t lane, uint32_t *out)
{
    uint64_t *at;
    uint64_t wanted = (uint64_t)w->process << 38 | (uint64_t)lane << 35 | (uint64_t)w->kind << 32 | w->number;
    tare_status s = map_u64_ref(&b->track_numbers, wanted, &at, b->err);
    if (s != TARE_OK) return s;
    if (!*at && b->tracks.n >= TRACKS_MOST) *at = TRACKS_MOST; /* damage: they share one */
    if (!*at) {
        struct gpu_track track = {.number = (uint32_t)b->tracks.n, .kind = w->kind, .process = w->process};
        bool of_thread = w->kind == GPU_TRACK_CALLS || w->kind == GPU_TRACK_RANGES;
        track.thread = of_thread ? w->number : 0;
        track.name = track_name(b, w->kind, w->process, w->number);
        if (!track.name) return error_nomem(b->err, "tracks");
        s = vec_push(&b->tracks, (struct track){.n = 0}, b->err);
        if (s != TARE_OK) return s;
        *at = b->tracks.n;
        s = b->to->track(b->to->ctx, &track);
    }
    *out = (uint32_t)*at - 1;
    return s;
}

/* Whether it overlaps a bar of the track in part. Only the latest are looked at: earlier ones have ended before. */
static bool fits(const struct track *t, struct span x)
{
    for (uint32_t i = 0; i < RECENT && i < t->n; i++) {
        const struct span y = t->recent[i];
        if ((y.start < x.start && x.start < y.end && y.end < x.end) ||
            (x.start < y.start && y.start < x.end && x.end < y.end))
            return false;
    }
    return true;
}

static tare_status put_bar(struct bars *b, const struct where *w, struct gpu_bar bar)
{
    struct span x = {bar.start, bar.end};
    tare_status s = TARE_OK;
    if (bar.start > INT64_MAX / 2 || bar.end < bar.start || bar.end > INT64_MAX / 2)
        return TARE_OK; /* damage */
    for (uint32_t lane = 0; lane < LANES && s == TARE_OK; lane++) {
        s = track_of(b, w, lane, &bar.track);
        if (s == TARE_OK && fits(&b->tracks.items[bar.track], x)) break;
    }
    if (s != TARE_OK) return s;
    struct track *t = &b->tracks.items[bar.track];
    t->recent[t->n++ % RECENT] = x;
    bar.text = b->names.items[bar.name].text;
    bar.full = b->names.items[bar.name].full;
    if (bar.end > b->latest) b->latest = bar.end;
    return b->to->bar(b->to->ctx, &bar);
}

/* ---- operations and calls ---- */

static uint64_t flow_of(uint32_t process, uint64_t id)
{
    return id ? gpu_key(process + 1, id) : 0;
}

static void put_shape(struct bars *b, struct gpu_bar *bar, uint32_t process, uint64_t number)
{
    uint32_t at = gpu_index(&b->tables.shape_numbers, process, number);
    if (at == GPU_NONE) return;
    bar->shape_number = at + 1;
    bar->shape = &b->tables.shapes.items[at];
}

static tare_status put_operation(struct bars *b, uint32_t process, const struct gpu_record *r)
{
    struct gpu_bar bar = {.start = r->v[0], .end = r->v[0] + r->v[1]};
    struct where w = {GPU_TRACK_STREAM, process, (uint32_t)r->v[2]};
    char text[64];
    tare_status s;
    switch (r->kind) {
    case GPU_KERNEL:
        bar.kind = GPU_BAR_KERNEL;
        bar.flow = flow_of(process, r->KERNEL.id);
        put_shape(b, &bar, process, r->KERNEL.shape);
        s = find_name(b, process, r->KERNEL.name, &bar.name);
        break;
    case GPU_COPY:
        bar.kind = GPU_BAR_COPY;
        bar.bytes = r->COPY.bytes;
        bar.flow = flow_of(process, r->COPY.id);
        snprintf(text, sizeof text, "copy %s", gpu_copy_direction(r->COPY.what));
        s = name_of(b, text, &bar.name);
        snprintf(text, sizeof text, "%" PRIu64 " bytes", r->COPY.bytes);
        bar.detail = text;
        break;
    case GPU_SET:
        bar.kind = GPU_BAR_FILL;
        bar.bytes = r->SET.bytes;
        bar.flow = flow_of(process, r->SET.id);
        s = name_of(b, "fill", &bar.name);
        break;
    default:
        bar.kind = GPU_BAR_GRAPH;
        bar.flow = flow_of(process, r->GRAPH.id);
        s = name_of(b, "a CUDA graph", &bar.name);
        break;
    }
    return s == TARE_OK ? put_bar(b, &w, bar) : s;
}

void gpu_bar_shape(struct buf *b, const struct gpu_bar *bar)
{
    const struct gpu_record *s = bar->shape;
    if (!s) return;
    buf_printf(b, "grid %" PRIu64 "x%" PRIu64 "x%" PRIu64, s->SHAPE.grid_x, s->SHAPE.grid_y, s->SHAPE.grid_z);
    buf_printf(b, ", block %" PRIu64 "x%" PRIu64 "x%" PRIu64, s->SHAPE.block_x, s->SHAPE.block_y,
               s->SHAPE.block_z);
    buf_printf(b, ", %" PRIu64 " registers, %" PRIu64 " B shared", s->SHAPE.registers,
               s->SHAPE.shared_static + s->SHAPE.shared_dynamic);
}

/* Only calls that give the GPU something to do have arrows. */
static tare_status put_call(struct bars *b, uint32_t process, const struct gpu_record *r)
{
    struct gpu_bar bar = {.kind = GPU_BAR_CALL,
                          .start = r->CALL.start,
                          .end = r->CALL.start + r->CALL.duration,
                          .launches = true};
    struct where w = {GPU_TRACK_CALLS, process, (uint32_t)r->CALL.thread};
    tare_status s = find_name(b, process, r->CALL.name, &bar.name);
    if (s != TARE_OK) return s;
    enum call_class class = gpu_call_class(b->names.items[bar.name].text);
    if (class == CALL_LAUNCH || class == CALL_COPY) bar.flow = flow_of(process, r->CALL.id);
    return put_bar(b, &w, bar);
}

/* ---- ranges ---- */

static tare_status begin_range(struct bars *b, uint32_t process, const struct gpu_record *r)
{
    struct open_range range = {r->RANGE_BEGIN.at, process, (uint32_t)r->RANGE_BEGIN.thread, 0, true};
    if (source_process(b->source, process)->mode & MODE_IMPORTED)
        return TARE_OK; /* its thread has it as a scope */
    tare_status s = find_name(b, process, r->RANGE_BEGIN.name, &range.name);
    size_t at = b->unused.n ? b->unused.items[--b->unused.n] : b->ranges.n;
    if (s == TARE_OK && at == b->ranges.n) s = vec_push(&b->ranges, range, b->err);
    if (s != TARE_OK) return s;
    b->ranges.items[at] = range;
    return map_u64_put(&b->open, gpu_key(process, r->RANGE_BEGIN.range), at + 1, b->err);
}

static tare_status put_range(struct bars *b, struct open_range *r, uint64_t end)
{
    struct where w = {GPU_TRACK_RANGES, r->process, r->thread};
    r->open = false;
    return put_bar(b, &w, (struct gpu_bar){GPU_BAR_RANGE, .start = r->start, .end = end, .name = r->name});
}

static tare_status end_range(struct bars *b, uint32_t process, const struct gpu_record *r)
{
    uint64_t at;
    if (!map_u64_remove(&b->open, gpu_key(process, r->RANGE_END.range), &at))
        return TARE_OK; /* its begin was lost */
    tare_status s = put_range(b, &b->ranges.items[at - 1], r->RANGE_END.at);
    return s == TARE_OK ? vec_push(&b->unused, (uint32_t)(at - 1), b->err) : s;
}

static tare_status put_mark(struct bars *b, uint32_t process, const struct gpu_record *r)
{
    struct where w = {GPU_TRACK_RANGES, process, (uint32_t)r->RANGE_MARK.thread};
    struct gpu_bar bar = {GPU_BAR_MARK, .start = r->RANGE_MARK.at, .end = r->RANGE_MARK.at};
    tare_status s = find_name(b, process, r->RANGE_MARK.name, &bar.name);
    return s == TARE_OK ? put_bar(b, &w, bar) : s;
}

/* ---- memory ---- */

/* As gpu_work.c counts it: what is taken again at a place was given back, what is given back twice counts once. */
static tare_status put_memory(struct bars *b, uint32_t process, const struct gpu_record *r)
{
    const uint32_t device = (uint32_t)r->MEMORY.device;
    struct where w = {GPU_TRACK_MEMORY, process, device};
    struct gpu_bar bar = {GPU_BAR_MEMORY, .start = r->MEMORY.at, .end = r->MEMORY.at};
    char text[64];
    uint64_t *piece, *held, taken = gpu_memory_taken(r);
    if (!gpu_memory_counts(r) || r->MEMORY.device > UINT16_MAX || bar.start > INT64_MAX / 2) return TARE_OK;
    uint64_t place = (uint64_t)process << 48 ^ r->MEMORY.address;
    tare_status s = map_u64_ref(&b->pieces, place, &piece, b->err);
    if (s == TARE_OK) s = map_u64_ref(&b->held, gpu_key(process, device), &held, b->err);
    if (s != TARE_OK || (!*piece && !taken)) return s;
    *held += taken - *piece;
    *piece = taken;
    bar.bytes = *held;
    snprintf(text, sizeof text, "GPU %" PRIu32 " memory", device);
    s = name_of(b, text, &bar.name);
    if (s == TARE_OK) s = track_of(b, &w, 0, &bar.track);
    if (s != TARE_OK) return s;
    bar.text = b->names.items[bar.name].text;
    return b->to->bar(b->to->ctx, &bar);
}

/* ---- all of it ---- */

static tare_status add_table(struct bars *b, uint32_t process, const struct gpu_record *r)
{
    tare_status s = gpu_tables_add(&b->tables, process, r, b->err);
    return s == TARE_OK ? follow_names(b) : s;
}

static int add_record(void *ctx, uint32_t process, const struct gpu_record *r)
{
    struct bars *b = ctx;
    switch (r->kind) {
    case GPU_NAME:
    case GPU_LANE:
    case GPU_SHAPE: return add_table(b, process, r);
    case GPU_KERNEL:
    case GPU_COPY:
    case GPU_SET:
    case GPU_GRAPH: return put_operation(b, process, r);
    case GPU_CALL: return put_call(b, process, r);
    case GPU_RANGE_BEGIN: return begin_range(b, process, r);
    case GPU_RANGE_END: return end_range(b, process, r);
    case GPU_RANGE_MARK: return put_mark(b, process, r);
    case GPU_MEMORY: return put_memory(b, process, r);
    default: return TARE_OK;
    }
}

/* Ranks that waited: a track of a thread that no system has. */
static tare_status put_waits(struct bars *b)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < b->source->n_waits && s == TARE_OK; i++) {
        const struct source_wait *from = &b->source->waits[i];
        struct where w = {GPU_TRACK_RANGES, from->process, WAITS};
        struct gpu_bar bar = {GPU_BAR_RANGE, .start = from->start, .end = from->end};
        s = name_of(b, from->text, &bar.name);
        if (s == TARE_OK) s = put_bar(b, &w, bar);
    }
    return s;
}

/* Times when a GPU did nothing: a track of its own below those of its streams. */
static tare_status put_idle(struct bars *b, const struct source_idle *from)
{
    const struct gpu_course *c = from->of;
    struct where w = {GPU_TRACK_IDLE, from->process, c->number};
    tare_status s = TARE_OK;
    char detail[32];
    for (size_t i = 0; i < c->gaps.n && s == TARE_OK; i++) {
        const struct gpu_gap *g = &c->gaps.items[i];
        const char *cause = g->cause < GPU_CAUSES ? gpu_cause_name(g->cause) : "not recorded";
        struct gpu_bar bar = {GPU_BAR_IDLE, .start = g->start + (uint64_t)from->shift};
        bar.end = bar.start + g->ns;
        snprintf(detail, sizeof detail, "%u %% of it", (unsigned)g->percent);
        if (g->cause < GPU_CAUSES && g->percent < 100) bar.detail = detail;
        s = name_of(b, cause, &bar.name);
        if (s == TARE_OK) s = put_bar(b, &w, bar);
    }
    return s;
}

tare_status gpu_bars(const struct event_source *source, const struct gpu_bars_to *to, tare_error *err)
{
    struct bars b = {.source = source, .to = to, .memory = ARENA_INIT, .err = err};
    tare_status s = (tare_status)source->gpu(source->gpu_ctx, add_record, &b);
    for (size_t i = 0; i < b.ranges.n && s == TARE_OK; i++) { /* never ended */
        struct open_range *r = &b.ranges.items[i];
        if (r->open) s = put_range(&b, r, b.latest > r->start ? b.latest : r->start);
    }
    if (s == TARE_OK) s = put_waits(&b);
    for (size_t i = 0; i < source->n_idle && s == TARE_OK; i++) s = put_idle(&b, &source->idle[i]);
    demangle_end();
    gpu_tables_release(&b.tables);
    map_u64_release(&b.open);
    map_u64_release(&b.track_numbers);
    map_u64_release(&b.pieces);
    map_u64_release(&b.held);
    vec_release(&b.names);
    vec_release(&b.tracks);
    vec_release(&b.ranges);
    vec_release(&b.unused);
    arena_release(&b.memory);
    return s;
}
