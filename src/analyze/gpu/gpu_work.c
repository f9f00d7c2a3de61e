/* SPDX-License-Identifier: MIT
 * gpu_work.c - the records of a trace into arrays: numbers of each process become indices, operations get the call
 * that launched them, ranges their parents. Sums that need no order (kernels, copies, memory) are made on the way, so
 * that an operation takes 32 bytes in memory, whatever its record held. */
#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_work.h"
#include "symbol/demangle.h"

#include <stdlib.h>
#include <string.h>

static uint64_t product(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t most = 1 << 20;
    return (a < most ? a : most) * (b < most ? b : most) * (c < most ? c : most);
}

/* ---- names, lanes, devices ---- */

/* What is known of a name beside its text, as large as the table of texts. */
static tare_status follow_names(struct gpu_work *w)
{
    tare_status s = TARE_OK;
    while (w->names.n < w->tables.names.n && s == TARE_OK) {
        struct gpu_name n = {.text = w->tables.names.items[w->names.n]};
        n.sum.min_ns = UINT64_MAX;
        s = vec_push(&w->names, n, w->err);
    }
    return s;
}

static tare_status name_index(struct gpu_work *w, const char *text, uint32_t *out)
{
    tare_status s = gpu_tables_name(&w->tables, text, out, w->err);
    return s == TARE_OK ? follow_names(w) : s;
}

static tare_status add_name(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    tare_status s = gpu_tables_add(&w->tables, process, r, w->err);
    return s == TARE_OK ? follow_names(w) : s;
}

static tare_status card_index(struct gpu_work *w, uint32_t process, uint64_t number, uint16_t *out)
{
    uint64_t *at;
    tare_status s = map_u64_ref(&w->card_numbers, gpu_key(process, number), &at, w->err);
    if (s != TARE_OK) return s;
    if (!*at) {
        struct gpu_seen_card card = {.process = process, .out = {.number = number & UINT32_MAX}};
        if (w->cards.n >= MANY_CARDS || process > UINT16_MAX)
            return error_set(w->err, TARE_FORMAT, "more GPUs than a trace can hold");
        s = vec_push(&w->cards, card, w->err);
        if (s != TARE_OK) return s;
        *at = w->cards.n;
    }
    *out = (uint16_t)(*at - 1);
    return TARE_OK;
}

static tare_status add_device(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint16_t at;
    struct arena *a = &w->out->arena;
    tare_status s = card_index(w, process, r->DEVICE.device, &at);
    if (s != TARE_OK) return s;
    struct gpu_card *d = &w->cards.items[at].out;
    uint64_t h = r->DEVICE.uuid_high, l = r->DEVICE.uuid_low;
    d->name = arena_str(a, gpu_tables_clean(&w->tables, r));
    d->uuid = arena_printf(a, "GPU-%08llx-%04llx-%04llx-%04llx-%012llx", (unsigned long long)(h >> 32),
                           (unsigned long long)(h >> 16 & 0xffff), (unsigned long long)(h & 0xffff),
                           (unsigned long long)(l >> 48), (unsigned long long)(l & 0xffffffffffff));
    d->memory_bytes = known_u64(r->DEVICE.memory & INT64_MAX);
    d->multiprocessors = known_u64(r->DEVICE.sms & UINT32_MAX);
    w->cards.items[at].warps = (uint32_t)r->DEVICE.warps;
    w->cards.items[at].capability = (uint32_t)r->DEVICE.capability;
    return TARE_OK;
}

/* In lane_cards, beside the index: kernels ran on it. */
enum { LANE_COMPUTES = 1 << 15 };

static tare_status add_lane(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint16_t at;
    tare_status s = card_index(w, process, r->LANE.device, &at);
    uint32_t told = gpu_index(&w->tables.lane_numbers, process, r->LANE.number); /* after a chunk was lost */
    if (s != TARE_OK) return s;
    if (told != GPU_NONE) at |= w->lane_cards.items[told] & LANE_COMPUTES;
    s = vec_push(&w->lane_cards, at, w->err);
    return s == TARE_OK ? gpu_tables_add(&w->tables, process, r, w->err) : s;
}

/* ---- operations ---- */

enum { LONGEST_NS = 1 << 30 }; /* times 2^20: 13 days; a longer operation is damage */

static bool is_sane(struct gpu_work *w, uint32_t process, uint64_t start, uint64_t duration)
{
    if (start <= INT64_MAX / 2 && duration >> 20 < LONGEST_NS) return true;
    w->processes.items[process].absurd++;
    return false;
}

/* The lane leads to the card, and the first kernel on it makes it a stream that computes. */
static tare_status add_op(struct gpu_work *w, uint32_t process, uint64_t lane, struct gpu_op op)
{
    uint32_t at = gpu_index(&w->tables.lane_numbers, process, lane);
    uint16_t *told = at == GPU_NONE ? NULL : &w->lane_cards.items[at], card = 0;
    tare_status s = told ? TARE_OK : card_index(w, process, 0, &card); /* its LANE was lost */
    if (s != TARE_OK) return s;
    if (told) card = *told & MANY_CARDS;
    op.call = NO_CALL;
    op.card = card & MANY_CARDS;
    if (told && op.kind != WORK_COPY && !(*told & LANE_COMPUTES)) {
        *told |= LANE_COMPUTES;
        w->cards.items[card].streams++;
    }
    return vec_push(&w->ops, op, w->err);
}

static void sum_kernel(struct gpu_work *w, struct gpu_name *n, uint32_t shape, uint64_t ns)
{
    n->sum.count++;
    gpu_grow(&n->sum.total_ns, ns);
    if (ns < n->sum.min_ns) n->sum.min_ns = ns;
    if (ns > n->sum.max_ns) n->sum.max_ns = ns;
    if (shape == GPU_NONE || ns < n->longest_shape_ns) return;
    const struct gpu_record *s = &w->tables.shapes.items[shape];
    n->longest_shape_ns = ns;
    n->sum.blocks = product(s->SHAPE.grid_x, s->SHAPE.grid_y, s->SHAPE.grid_z);
    n->sum.threads = product(s->SHAPE.block_x, s->SHAPE.block_y, s->SHAPE.block_z) & UINT32_MAX;
    n->sum.registers = s->SHAPE.registers & UINT32_MAX;
    n->sum.shared_bytes = (s->SHAPE.shared_static & UINT32_MAX) + (s->SHAPE.shared_dynamic & UINT32_MAX);
}

/* A kernel whose name was lost still kept the GPU busy, so it counts, under a name that says so. What kind of work a
 * name means is found out once, not for each of its many kernels. */
static tare_status add_kernel(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint32_t name = gpu_index(&w->tables.name_numbers, process, r->KERNEL.name);
    if (!is_sane(w, process, r->KERNEL.start, r->KERNEL.duration)) return TARE_OK;
    if (name == GPU_NONE) {
        tare_status s = name_index(w, "a kernel whose name was lost", &name);
        if (s != TARE_OK) return s;
    }
    struct gpu_name *n = &w->names.items[name];
    uint32_t shape = gpu_index(&w->tables.shape_numbers, process, r->KERNEL.shape);
    sum_kernel(w, n, shape, r->KERNEL.duration);
    if (!n->kind) {
        bool talks = strcmp(gpu_name_group(n->text), GPU_GROUP_COMMUNICATION) == 0;
        n->kind = talks ? WORK_COMMUNICATION : WORK_COMPUTE;
    }
    struct gpu_op op = {r->KERNEL.start, r->KERNEL.start + r->KERNEL.duration, .name = name,
                        .id = (uint32_t)r->KERNEL.id, .kind = n->kind & WORK_ALL};
    op.shape = shape < MANY_SHAPES ? (shape + 1) & MANY_SHAPES : 0;
    return add_op(w, process, r->KERNEL.lane, op);
}

/* Adds it to the row of its kind, and tells which that is. */
static tare_status sum_copy(struct gpu_work *w, const struct gpu_copy *kind, uint64_t bytes, uint64_t ns)
{
    enum { MOST = sizeof w->copies / sizeof *w->copies };
    uint32_t i = 0;
    while (i < MOST - 1 && w->copies[i].direction &&
           (w->copies[i].direction != kind->direction || w->copies[i].host_memory != kind->host_memory))
        i++;
    w->copies[i].direction = kind->direction;
    w->copies[i].host_memory = kind->host_memory;
    w->copies[i].count++;
    gpu_grow(&w->copies[i].bytes, bytes);
    gpu_grow(&w->copies[i].total_ns, ns);
    return vec_push(&w->copied, ((struct gpu_copied){bytes, i}), w->err);
}

static const char *host_memory(uint64_t what)
{
    unsigned from = what >> 8 & 0xff, to = what >> 16 & 0xff;
    if (from == GPU_PAGEABLE || to == GPU_PAGEABLE) return "pageable";
    if (from == GPU_PINNED || to == GPU_PINNED) return "pinned";
    return NULL;
}

const char *gpu_copy_direction(uint64_t what)
{
    static const char *const directions[] = {[GPU_TO_DEVICE] = "to-device",
                                             [GPU_TO_HOST] = "to-host",
                                             [GPU_ON_DEVICE] = "on-device",
                                             [GPU_ON_HOST] = "on-host",
                                             [GPU_PEER] = "peer"};
    unsigned d = what & 0xff;
    const char *direction = d < sizeof directions / sizeof *directions ? directions[d] : NULL;
    return direction ? direction : "other";
}

/* A copy or fill: its record has start and duration first. */
static tare_status add_copied(struct gpu_work *w, uint32_t process, const struct gpu_record *r,
                              const struct gpu_copy *kind)
{
    bool copy = r->kind == GPU_COPY;
    uint64_t bytes = copy ? r->COPY.bytes : r->SET.bytes, lane = copy ? r->COPY.lane : r->SET.lane;
    struct gpu_op op = {r->v[0], r->v[0] + r->v[1], .kind = WORK_COPY};
    if (!is_sane(w, process, r->v[0], r->v[1])) return TARE_OK;
    tare_status s = sum_copy(w, kind, bytes, r->v[1]);
    op.id = (uint32_t)(copy ? r->COPY.id : r->SET.id);
    op.name = (uint32_t)w->copied.n - 1;
    return s == TARE_OK ? add_op(w, process, lane, op) : s;
}

static tare_status add_copy(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    const struct gpu_copy kind = {.direction = gpu_copy_direction(r->COPY.what),
                                  .host_memory = host_memory(r->COPY.what)};
    return add_copied(w, process, r, &kind);
}

static tare_status add_set(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    return add_copied(w, process, r, &(struct gpu_copy){.direction = "fill"});
}

static tare_status add_graph(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    struct gpu_op op = {r->GRAPH.start, r->GRAPH.start + r->GRAPH.duration, .id = (uint32_t)r->GRAPH.id,
                        .kind = WORK_COMPUTE};
    uint32_t name;
    if (!is_sane(w, process, r->GRAPH.start, r->GRAPH.duration)) return TARE_OK;
    tare_status s = name_index(w, "a CUDA graph", &name);
    if (s != TARE_OK) return s;
    struct gpu_kernel *sum = &w->names.items[name].sum;
    sum->count++;
    gpu_grow(&sum->total_ns, r->GRAPH.duration);
    if (r->GRAPH.duration < sum->min_ns) sum->min_ns = r->GRAPH.duration;
    if (r->GRAPH.duration > sum->max_ns) sum->max_ns = r->GRAPH.duration;
    op.name = name;
    return add_op(w, process, r->GRAPH.lane, op);
}

/* ---- the host ---- */

#define CALL_NS_MOST ((UINT64_C(1) << 47) - 1)

enum call_class gpu_call_class(const char *name)
{
    static const struct {
        const char *part;
        enum call_class class;
    } classes[] = {{"Launch", CALL_LAUNCH},   {"Synchronize", CALL_SYNC},  {"Memcpy", CALL_COPY},
                   {"Memset", CALL_COPY},     {"Malloc", CALL_ALLOCATE},   {"Free", CALL_ALLOCATE},
                   {"Alloc", CALL_ALLOCATE},  {"Register", CALL_ALLOCATE}, {"Load", CALL_LOAD},
                   {"Instantiate", CALL_LOAD}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strstr(name, classes[i].part)) return classes[i].class;
    return CALL_OTHER;
}

static tare_status thread_index(struct gpu_work *w, uint32_t process, uint64_t thread, uint16_t *out)
{
    uint64_t *at;
    tare_status s = map_u64_ref(&w->thread_numbers, gpu_key(process, thread), &at, w->err);
    if (s != TARE_OK) return s;
    if (!*at && w->threads.n < MANY_THREADS) {
        struct gpu_host_thread t = {.process = process, .thread = (uint32_t)thread};
        s = vec_push(&w->threads, t, w->err);
        *at = w->threads.n;
    }
    *out = (uint16_t)(*at ? *at - 1 : MANY_THREADS);
    return s;
}

/* What a name means is found out once: the class of the call, and its own short number. */
static tare_status number_call(struct gpu_work *w, uint32_t name)
{
    struct gpu_name *n = &w->names.items[name];
    if (n->class) return TARE_OK;
    n->class = (uint8_t)(gpu_call_class(n->text) + 1);
    n->graph = strstr(n->text, "GraphLaunch") != NULL;
    n->call = MANY_CALL_NAMES + 1;
    if (w->call_names.n >= MANY_CALL_NAMES) return TARE_OK;
    n->call = (uint16_t)(w->call_names.n + 1);
    return vec_push(&w->call_names, name, w->err);
}

/* A call whose name was lost is left out: without a class it explains no gap. The masks are for bit-fields. */
static tare_status add_call(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint32_t name = gpu_index(&w->tables.name_numbers, process, r->CALL.name);
    uint64_t ns = r->CALL.duration;
    if (name == GPU_NONE || !is_sane(w, process, r->CALL.start, ns)) return TARE_OK;
    tare_status s = number_call(w, name);
    if (s != TARE_OK) return s;
    struct gpu_name *n = &w->names.items[name];
    n->calls.count++;
    gpu_grow(&n->calls.total_ns, ns);
    n->calls.failed += r->CALL.result != 0;
    if (ns > n->calls.max_ns) n->calls.max_ns = ns;
    struct gpu_host_call c = {.start = r->CALL.start,
                              .duration = (ns <= CALL_NS_MOST ? ns : CALL_NS_MOST) & CALL_NS_MOST,
                              .graph = n->graph && !r->CALL.result,
                              .class = (n->class - 1u) & 15u,
                              .name = (n->call - 1u) & MANY_CALL_NAMES,
                              .id = (uint32_t)r->CALL.id,
                              .process = (uint16_t)process};
    s = thread_index(w, process, r->CALL.thread, &c.thread);
    if (s == TARE_OK && c.thread < MANY_THREADS) w->threads.items[c.thread].calls = true;
    return s == TARE_OK ? vec_push(&w->calls, c, w->err) : s;
}

static tare_status add_thread(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint16_t at;
    tare_status s = thread_index(w, process, r->THREAD.thread, &at);
    if (s == TARE_OK && at < MANY_THREADS)
        w->threads.items[at].name = arena_str(&w->out->arena, gpu_tables_clean(&w->tables, r));
    return s;
}

static tare_status add_state(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint16_t thread;
    tare_status s = thread_index(w, process, r->HOST_STATE.thread, &thread);
    struct gpu_host_state look = {.at = r->HOST_STATE.at, .thread = thread};
    if (s != TARE_OK || r->HOST_STATE.state >= GPU_HOST_STATES) return s;
    look.state = (uint32_t)r->HOST_STATE.state;
    return vec_push(&w->states, look, w->err);
}

/* Device memory that the process has from the driver; frameworks keep it and hand out pieces of it. What is taken again
 * at the same place was given back, though that was not recorded; what is given back twice counts once. A pool of the
 * driver's own counts by its size, which is told anew when it changes; its pieces do not. */
static tare_status add_memory(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint64_t *at;
    struct gpu_memory_event e = {
        .at = r->MEMORY.at, .id = (uint32_t)r->MEMORY.id, .process = (uint16_t)process};
    if (!gpu_memory_counts(r)) return TARE_OK;
    tare_status s = card_index(w, process, r->MEMORY.device, &e.card);
    if (s == TARE_OK) s = map_u64_ref(&w->held, (uint64_t)e.card << 48 ^ r->MEMORY.address, &at, w->err);
    if (s != TARE_OK) return s;
    if (*at) {
        e.taken = (uint32_t)*at - 1;
        e.bytes = w->memory.items[e.taken].bytes;
        *at = 0;
        s = vec_push(&w->memory, e, w->err);
    }
    if (s != TARE_OK || !gpu_memory_taken(r)) return s;
    e.taken = TAKES;
    e.bytes = gpu_memory_taken(r);
    s = vec_push(&w->memory, e, w->err);
    if (s == TARE_OK) *at = w->memory.n;
    return s;
}

static tare_status add_overhead(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    struct gpu_overhead o = {r->OVERHEAD.start, r->OVERHEAD.duration, (uint32_t)r->OVERHEAD.what,
                             (uint16_t)process, MANY_THREADS};
    if (!is_sane(w, process, o.start, o.ns)) return TARE_OK;
    tare_status s = thread_index(w, process, r->OVERHEAD.thread, &o.thread);
    return s == TARE_OK ? vec_push(&w->overheads, o, w->err) : s;
}

/* ---- ranges ---- */

/* Within the innermost that is open. One that was ended before those within it has stayed on the stack until now. */
static tare_status begin_range(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint64_t *top;
    tare_status s = map_u64_ref(&w->open_range, gpu_key(process, r->RANGE_BEGIN.thread), &top, w->err);
    if (s != TARE_OK) return s;
    while (*top && w->ranges.items[*top - 1].end) *top = w->ranges.items[*top - 1].parent;
    struct gpu_open_range range = {.start = r->RANGE_BEGIN.at,
                                   .name = gpu_index(&w->tables.name_numbers, process, r->RANGE_BEGIN.name),
                                   .domain =
                                       gpu_index(&w->tables.name_numbers, process, r->RANGE_BEGIN.domain),
                                   .process = process,
                                   .thread = (uint32_t)r->RANGE_BEGIN.thread,
                                   .parent = (uint32_t)*top};
    s = vec_push(&w->ranges, range, w->err);
    if (s != TARE_OK) return s;
    *top = w->ranges.n;
    return map_u64_put(&w->range_numbers, gpu_key(process, r->RANGE_BEGIN.range), w->ranges.n, w->err);
}

static tare_status end_range(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint32_t at = gpu_index(&w->range_numbers, process, r->RANGE_END.range);
    if (at == GPU_NONE) return TARE_OK; /* its begin was lost */
    struct gpu_open_range *range = &w->ranges.items[at];
    range->end = r->RANGE_END.at;
    uint64_t *top = map_u64_find(&w->open_range, gpu_key(process, range->thread));
    if (top && *top == at + 1) *top = range->parent;
    return TARE_OK;
}

static tare_status add_sequence(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint32_t at = gpu_index(&w->range_numbers, process, r->RANGE_SEQUENCE.range);
    if (at != GPU_NONE && r->RANGE_SEQUENCE.sequence < UINT32_MAX)
        w->ranges.items[at].sequence = (uint32_t)r->RANGE_SEQUENCE.sequence + 1;
    return TARE_OK;
}

static tare_status add_in_range(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    struct gpu_launched_in in = {(uint32_t)r->IN_RANGE.id, (uint32_t)r->IN_RANGE.range, (uint16_t)process};
    return vec_push(&w->in_range, in, w->err);
}

/* ---- all of it ---- */

static tare_status add_note(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    struct gpu_note *n = RUN_LIST_ADD(&w->out->arena, &w->out->notes);
    if (!n) return error_nomem(w->err, "a note");
    n->pid = w->processes.items[process].pid;
    n->text = arena_str(&w->out->arena, gpu_tables_clean(&w->tables, r));
    return r->NOTE.what == GPU_NOTE_LATE ? vec_push(&w->late, process, w->err) : TARE_OK;
}

/* A process tells what it lost in all so far: the latest counts. */
static tare_status add_lost(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    for (size_t i = 0; i < 5; i++)
        if (r->v[i] > INT64_MAX) return TARE_OK;
    struct gpu_lost *to = &w->processes.items[process].lost;
    to->dropped = r->LOST.dropped;
    to->untimed = r->LOST.untimed;
    to->unread = r->LOST.unread;
    to->unwritten = r->LOST.unwritten;
    to->ranges = r->LOST.ranges;
    return TARE_OK;
}

/* Numbers that no launcher gives are damage: then nothing is known of it. */
static tare_status add_rank(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    struct gpu_seen_process *p = &w->processes.items[process];
    const char *host = gpu_tables_clean(&w->tables, r);
    if (host[0]) p->host = arena_str(&w->out->arena, host);
    p->boot = r->RANK.boot;
    if (r->RANK.rank > UINT32_MAX || r->RANK.local_rank > UINT32_MAX || r->RANK.size > UINT32_MAX)
        return TARE_OK;
    p->rank = r->RANK.rank;
    p->local_rank = r->RANK.local_rank;
    p->size = r->RANK.size;
    return TARE_OK;
}

static tare_status add_hole(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    struct gpu_hole h = {r->HOLE.start, r->HOLE.start + r->HOLE.duration, process, false};
    if (!is_sane(w, process, r->HOLE.start, r->HOLE.duration)) return TARE_OK;
    return vec_push(&w->holes, h, w->err);
}

static tare_status add_untimed(struct gpu_work *w, uint32_t process, const struct gpu_record *r)
{
    uint32_t lane = gpu_index(&w->tables.lane_numbers, process, r->UNTIMED.lane);
    if (lane == GPU_NONE || !is_sane(w, process, r->UNTIMED.from, 0)) return TARE_OK;
    struct gpu_untimed u = {r->UNTIMED.from, (uint32_t)r->UNTIMED.id, w->lane_cards.items[lane] & MANY_CARDS};
    return vec_push(&w->untimed, u, w->err);
}

struct gathering {
    struct gpu_work *w;
    uint32_t base; /* processes of traces before this one */
};

static int add_record(void *ctx, uint32_t process, const struct gpu_record *r)
{
    struct gathering *g = ctx;
    struct gpu_work *w = g->w;
    process += g->base;
    switch (r->kind) {
    case GPU_NAME: return add_name(w, process, r);
    case GPU_DEVICE: return add_device(w, process, r);
    case GPU_LANE: return add_lane(w, process, r);
    case GPU_SHAPE: return gpu_tables_add(&w->tables, process, r, w->err);
    case GPU_KERNEL: return add_kernel(w, process, r);
    case GPU_COPY: return add_copy(w, process, r);
    case GPU_SET: return add_set(w, process, r);
    case GPU_GRAPH: return add_graph(w, process, r);
    case GPU_CALL: return add_call(w, process, r);
    case GPU_MEMORY: return add_memory(w, process, r);
    case GPU_OVERHEAD: return add_overhead(w, process, r);
    case GPU_RANGE_BEGIN: return begin_range(w, process, r);
    case GPU_RANGE_END: return end_range(w, process, r);
    case GPU_RANGE_SEQUENCE: return add_sequence(w, process, r);
    case GPU_IN_RANGE: return add_in_range(w, process, r);
    case GPU_HOST_STATE: return add_state(w, process, r);
    case GPU_THREAD: return add_thread(w, process, r);
    case GPU_NOTE: return add_note(w, process, r);
    case GPU_RANK: return add_rank(w, process, r);
    case GPU_HOLE: return add_hole(w, process, r);
    case GPU_UNTIMED: return add_untimed(w, process, r);
    case GPU_LOST: return add_lost(w, process, r);
    default: return TARE_OK;
    }
}

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_id(const void *a, const void *b)
{
    const struct gpu_host_call *x = a, *y = b;
    return order_of(gpu_key(x->process, x->id), gpu_key(y->process, y->id));
}

static int by_launch(const void *a, const void *b)
{
    const struct gpu_launched_in *x = a, *y = b;
    return order_of(gpu_key(x->process, x->id), gpu_key(y->process, y->id));
}

static int by_start(const void *a, const void *b)
{
    const struct gpu_op *x = a, *y = b;
    return x->card == y->card ? order_of(x->start, y->start) : order_of(x->card, y->card);
}

static int by_hole(const void *a, const void *b)
{
    const struct gpu_hole *x = a, *y = b;
    return x->process == y->process ? order_of(x->start, y->start) : order_of(x->process, y->process);
}

static int by_thread(const void *a, const void *b)
{
    const struct gpu_host_state *x = a, *y = b;
    return x->thread == y->thread ? order_of(x->at, y->at) : order_of(x->thread, y->thread);
}

#define SORT(w, list, compare) gpu_sort((w)->list.items, (w)->list.n, sizeof *(w)->list.items, compare, (w)->err)
#define FIND(w, list, compare, wanted, near)                                                                   \
    gpu_find(&(struct gpu_sorted){(w)->list.items, (w)->list.n, sizeof *(w)->list.items, compare}, wanted, \
             near)

/* Every operation to the call with its number. A graph's operations share one. */
static void join_calls(struct gpu_work *w)
{
    size_t at = 0;
    for (size_t i = 0; i < w->ops.n; i++) {
        struct gpu_op *op = &w->ops.items[i];
        struct gpu_host_call wanted = {.id = op->id, .process = (uint16_t)w->cards.items[op->card].process};
        at = FIND(w, calls, by_id, &wanted, at);
        if (at == w->calls.n || by_id(&w->calls.items[at], &wanted) != 0) continue;
        op->call = (uint32_t)at;
        w->out->lost.before_launch += op->start < w->calls.items[at].start;
    }
}

/* The innermost range that it was launched in, or GPU_NONE. `near`: where the last was found. */
static uint32_t range_of(const struct gpu_work *w, const struct gpu_op *op, size_t *near)
{
    struct gpu_launched_in wanted = {.id = op->id, .process = (uint16_t)w->cards.items[op->card].process};
    if (!w->in_range.n) return GPU_NONE;
    *near = FIND(w, in_range, by_launch, &wanted, *near);
    if (*near == w->in_range.n || by_launch(&w->in_range.items[*near], &wanted) != 0) return GPU_NONE;
    return gpu_index(&w->range_numbers, wanted.process, w->in_range.items[*near].range);
}

/* Autograd, a data loader, a server: each thread has ranges of its own, and what it launches is in no other's. Ranges
 * that only say where kernels come from are not the program's. An operation whose call is not known goes by a thread
 * that no system has. */
static tare_status count_by_thread(struct gpu_work *w, const struct gpu_op *op, uint32_t range)
{
    uint16_t thread = MANY_THREADS;
    tare_status s = TARE_OK;
    if (op->call != NO_CALL)
        thread = w->calls.items[op->call].thread;
    else
        s = thread_index(w, w->cards.items[op->card].process, UINT32_MAX, &thread);
    if (s != TARE_OK || thread >= w->threads.n) return s;
    while (range != GPU_NONE && gpu_origin_is_range(w, &w->ranges.items[range]))
        range = w->ranges.items[range].parent ? w->ranges.items[range].parent - 1 : GPU_NONE;
    struct gpu_host_thread *t = &w->threads.items[thread];
    t->operations++;
    gpu_grow(&t->gpu_ns, op->end - op->start);
    t->in_range += range != GPU_NONE;
    return TARE_OK;
}

/* Times of operations to the range they were launched in, and then to those around it: a range stands behind the one
 * that it is in, so that going backwards each has all of its own when it is added to the outer one. */
static tare_status join_ranges(struct gpu_work *w)
{
    size_t at = 0;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < w->ops.n && s == TARE_OK; i++) {
        const struct gpu_op *op = &w->ops.items[i];
        uint32_t range = range_of(w, op, &at);
        s = count_by_thread(w, op, range);
        if (range == GPU_NONE || s != TARE_OK) continue;
        gpu_grow(&w->ranges.items[range].gpu_ns, op->end - op->start);
        w->ranges.items[range].operations++;
        s = gpu_origin_add(w, op, &w->ranges.items[range]);
    }
    for (size_t i = w->ranges.n; i-- > 0;) {
        const struct gpu_open_range *r = &w->ranges.items[i];
        if (!r->parent) continue;
        gpu_grow(&w->ranges.items[r->parent - 1].gpu_ns, r->gpu_ns);
        gpu_grow(&w->ranges.items[r->parent - 1].operations, r->operations);
    }
    return s;
}

const struct gpu_host_call *gpu_work_call(const struct gpu_work *w, uint32_t process, uint32_t id)
{
    const struct gpu_host_call wanted = {.id = id, .process = (uint16_t)process};
    size_t at = FIND(w, calls, by_id, &wanted, w->calls.n / 2);
    return at < w->calls.n && by_id(&w->calls.items[at], &wanted) == 0 ? &w->calls.items[at] : NULL;
}

const struct gpu_open_range *gpu_work_range(const struct gpu_work *w, uint32_t process, uint32_t id)
{
    const struct gpu_launched_in wanted = {.id = id, .process = (uint16_t)process};
    size_t at = FIND(w, in_range, by_launch, &wanted, w->in_range.n / 2);
    if (at == w->in_range.n || by_launch(&w->in_range.items[at], &wanted) != 0) return NULL;
    uint32_t range = gpu_index(&w->range_numbers, process, w->in_range.items[at].range);
    return range == GPU_NONE ? NULL : &w->ranges.items[range];
}

static void find_cards(struct gpu_work *w)
{
    for (size_t i = w->ops.n; i-- > 0;) {
        struct gpu_seen_card *c = &w->cards.items[w->ops.items[i].card];
        c->first_op = i;
        c->n_ops++;
    }
}

/* So that the looks within any time are a difference. */
static tare_status number_states(struct gpu_work *w)
{
    struct gpu_host_state end = {.at = UINT64_MAX, .thread = UINT32_MAX};
    if (!w->states.n) return TARE_OK;
    for (size_t i = 0; i < w->states.n; i++) {
        memcpy(w->states.items[i].before, end.before, sizeof end.before);
        end.before[w->states.items[i].state]++;
    }
    return vec_push(&w->states, end, w->err);
}

void gpu_work_looks(const struct gpu_work *w, uint32_t thread, uint64_t from, uint64_t to, uint64_t looks[])
{
    struct gpu_host_state first = {.at = from, .thread = thread}, last = {.at = to, .thread = thread};
    if (!w->states.n) return;
    size_t a = FIND(w, states, by_thread, &first, w->states.n), b = FIND(w, states, by_thread, &last, a);
    for (int i = 0; i < GPU_HOST_STATES; i++)
        looks[i] += w->states.items[b].before[i] - w->states.items[a].before[i];
}

static tare_status gather_trace(struct gpu_work *w, struct trace *t)
{
    struct gathering g = {w, (uint32_t)w->processes.n};
    const char *path = arena_str(&w->out->arena, trace_path(t));
    tare_status s = TARE_OK;
    for (uint32_t i = 0; i < trace_n_processes(t) && s == TARE_OK; i++) {
        const struct trace_process *from = trace_process(t, i);
        struct gpu_seen_process p = {.trace = path,
                                     .pid = from->pid,
                                     .raw_ns = from->start_raw_ns - from->start_ns,
                                     .unix_ns = from->start_unix_ns - from->start_ns};
        s = vec_push(&w->processes, p, w->err);
    }
    if (s == TARE_OK) s = (tare_status)trace_gpu(t, add_record, &g);
    for (size_t i = g.base; i < w->processes.n; i++)
        w->processes.items[i].damaged = trace_loss(t)->damaged_chunks;
    return s;
}

tare_status gpu_work_gather(struct gpu_work *w, struct trace *const *traces, size_t n,
                            struct gpu_profile *out, tare_error *err)
{
    tare_status s = TARE_OK;
    w->out = out;
    w->err = err;
    for (size_t i = 0; i < n && s == TARE_OK; i++) {
        s = gather_trace(w, traces[i]);
        if (s == TARE_FORMAT) error_wrap(err, "%s", trace_path(traces[i]));
    }
    if (s == TARE_OK) s = SORT(w, ops, by_start);
    if (s == TARE_OK) s = SORT(w, calls, by_id);
    if (s == TARE_OK) s = SORT(w, in_range, by_launch);
    if (s == TARE_OK) s = SORT(w, states, by_thread);
    if (s == TARE_OK) s = SORT(w, holes, by_hole);
    if (s == TARE_OK) s = number_states(w);
    if (s == TARE_OK) s = gpu_work_origins(w);
    if (s != TARE_OK) return s;
    find_cards(w);
    join_calls(w);
    gpu_work_missing(w);
    return join_ranges(w);
}

void gpu_work_release(struct gpu_work *w)
{
    demangle_end();
    vec_release(&w->ops);
    vec_release(&w->calls);
    vec_release(&w->states);
    vec_release(&w->names);
    vec_release(&w->ranges);
    for (size_t i = 0; i < w->cards.n; i++) {
        vec_release(&w->cards.items[i].course.steps);
        vec_release(&w->cards.items[i].course.gaps);
    }
    vec_release(&w->cards);
    vec_release(&w->processes);
    vec_release(&w->holes);
    vec_release(&w->untimed);
    vec_release(&w->threads);
    vec_release(&w->in_range);
    vec_release(&w->copied);
    vec_release(&w->call_names);
    vec_release(&w->overheads);
    vec_release(&w->memory);
    vec_release(&w->windows);
    gpu_tables_release(&w->tables);
    vec_release(&w->lane_cards);
    vec_release(&w->origins);
    vec_release(&w->late);
    map_u64_release(&w->range_numbers);
    map_u64_release(&w->card_numbers);
    map_u64_release(&w->thread_numbers);
    map_u64_release(&w->open_range);
    map_u64_release(&w->held);
    map_u64_release(&w->origin_places);
    map_u64_release(&w->origin_rows);
}
