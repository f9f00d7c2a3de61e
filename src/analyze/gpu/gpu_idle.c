/* SPDX-License-Identifier: MIT
 * gpu_idle.c - when a GPU worked, and why it did not. Busy is the union of all operations on all streams. Every gap
 * of it ends with an operation, and that operation was launched by a call: what the launching thread did from the
 * begin of the gap to the end of that call is the cause. An operation whose call was not recorded leaves its gap
 * unknown. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_work.h"

enum cause {
    BY_SYNC,
    BY_COPY,
    BY_COMMUNICATION,
    BY_LAUNCH,
    BY_ALLOCATION,
    BY_LOADING,
    BY_RUNNING,
    BY_WAITING,
    BY_SLEEPING,
    BY_HOST,
    BY_UNKNOWN,
    CAUSES
};
static const char *const cause_names[CAUSES] = {
    "sync",    "copy",         "communication", "launch",        "allocation",
    "loading", "host-running", "host-waiting",  "host-sleeping", "host", "unknown"};
_Static_assert((int)CAUSES == (int)GPU_CAUSES, "gpu_sum.h has as many");

const char *gpu_cause_name(unsigned cause)
{
    return cause_names[cause];
}

static const enum cause host_states[GPU_HOST_STATES] = {BY_RUNNING, BY_WAITING, BY_SLEEPING};

/* An operation that waits longer for its turn, although it was launched in time, waits for something we do not see. */
enum { LAUNCH_NS = 20000, STATES_ENOUGH = 20 };

struct idle {
    struct gpu_work *w;
    const struct gpu_op *ops;
    size_t n;
    uint32_t process;
    const struct gpu_hole *holes; /* of the process, in order, apart from each other */
    size_t n_holes;
    uint64_t unrecorded;
    uint64_t cut_at; /* what is recorded behind it is not all; UINT64_MAX: it is */
    struct gpu_idle causes[CAUSES];
    uint64_t states[GPU_HOST_STATES]; /* looks at the launching thread during gaps that are the host's */
    uint64_t worked;                  /* busy time since the host was last late */
    struct gpu_course *course;        /* its steps get their part of every time */
    size_t step;                      /* the first that may reach into what comes */
    uint32_t looks[GPU_HOST_STATES];  /* of `states`, those of the gap under way */
    bool gaps;                        /* each is kept */
    tare_status status;
};

/* ---- sums over unions ---- */

static uint64_t end_of(const struct idle *d, const struct gpu_op *op)
{
    return op->end < d->cut_at ? op->end : d->cut_at;
}

/* Time in which at least one operation of these kinds ran, as far as all is known. They are in order of start. */
static uint64_t busy_ns(const struct idle *d, unsigned kinds)
{
    uint64_t sum = 0, until = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct gpu_op *op = &d->ops[i];
        if (op->start >= d->cut_at) break;
        if (!(op->kind & kinds) || op->end <= until) continue;
        sum += end_of(d, op) - (op->start > until ? op->start : until);
        until = end_of(d, op);
    }
    return sum;
}

/* ---- causes of one gap ---- */

static void add(struct idle *d, enum cause cause, uint64_t ns)
{
    struct gpu_idle *c = &d->causes[cause];
    if (!ns) return;
    c->ns += ns;
    c->gaps++;
    if (ns > c->longest_ns) c->longest_ns = ns;
}

static uint64_t overlap(uint64_t a, uint64_t b, uint64_t from, uint64_t to)
{
    uint64_t low = a > from ? a : from, high = b < to ? b : to;
    return high > low ? high - low : 0;
}

/* Calls are in order of their numbers, which is the order of their starts within a thread: those before the launching
 * call that reach into the gap are close by. */
static uint64_t calls_in_gap(struct idle *d, uint32_t launch, uint64_t from, uint64_t to, bool *drained)
{
    enum { LOOK_BACK = 200 };
    static const enum cause by_class[] = {[CALL_SYNC] = BY_SYNC,
                                          [CALL_COPY] = BY_COPY,
                                          [CALL_ALLOCATE] = BY_ALLOCATION,
                                          [CALL_LOAD] = BY_LOADING};
    const struct gpu_host_call *calls = d->w->calls.items, *own = &calls[launch];
    uint64_t sum = 0;
    for (uint32_t i = launch, n = 0; i-- > 0 && n < LOOK_BACK && calls[i].process == own->process; n++) {
        const struct gpu_host_call *c = &calls[i];
        uint64_t end = c->start + c->duration;
        if (c->thread != own->thread) continue;
        if (end <= from) break;
        if (c->class == CALL_LAUNCH || c->class == CALL_OTHER) continue;
        uint64_t ns = overlap(c->start, end, from, to);
        if (ns > to - from - sum) ns = to - from - sum; /* one call within another counts once */
        *drained |= (c->class == CALL_SYNC || c->class == CALL_COPY) && c->start <= from;
        add(d, by_class[c->class], ns);
        sum += ns;
    }
    return sum;
}

struct gap {
    uint64_t from, to;
    bool talked;
};

static void look_at_host(struct idle *d, uint32_t thread, uint64_t from, uint64_t to)
{
    uint64_t looks[GPU_HOST_STATES] = {0};
    gpu_work_looks(d->w, thread, from, to, looks);
    for (int i = 0; i < GPU_HOST_STATES; i++) {
        d->states[i] += looks[i];
        d->looks[i] = (uint32_t)looks[i];
    }
}

/* The GPU went idle at `from`, and `next` started at `to`.
 * Launched before the GPU was idle: a short gap is the launch itself, a longer one waits for what we do not see.
 * Launched later: the host was late. What it did in calls is told by them. The rest is its own code, and the launch;
 * but as far as these are no longer than the GPU's work since the host was last late, they would have been hidden
 * behind that work, had no waiting call held them up: then that call is the cause. `talked`: communication ended at
 * `from`; an operation behind or before it that waits although it was launched in time waits for other ranks. */
static void explain(struct idle *d, struct gap gap, const struct gpu_op *next)
{
    const uint64_t from = gap.from, to = gap.to;
    if (next->call == NO_CALL) {
        add(d, BY_UNKNOWN, to - from);
        return;
    }
    const struct gpu_host_call *c = &d->w->calls.items[next->call];
    bool drained = false;
    if (c->start <= from) {
        bool copying = c->class == CALL_COPY && c->start + c->duration > from;
        bool peers = gap.talked || next->kind == WORK_COMMUNICATION;
        enum cause late = peers ? BY_COMMUNICATION : BY_UNKNOWN;
        if (to - from <= LAUNCH_NS) late = BY_LAUNCH;
        add(d, copying ? BY_COPY : late, to - from);
        return;
    }
    uint64_t late = c->start < to ? c->start : to,
             in_calls = calls_in_gap(d, next->call, from, late, &drained);
    uint64_t code = late - from > in_calls ? late - from - in_calls : 0;
    uint64_t room = drained ? d->worked : 0, hidden = code < room ? code : room, way = to - late;
    uint64_t hidden_way = way < room - hidden ? way : room - hidden;
    if (c->class == CALL_COPY) hidden_way = 0;
    d->worked = 0;
    add(d, BY_SYNC, hidden + hidden_way);
    add(d, BY_HOST, code - hidden);
    if (code > hidden) look_at_host(d, c->thread, from, late);
    add(d, c->class == CALL_COPY ? BY_COPY : BY_LAUNCH, way - hidden_way);
}

/* As far as a hole of the record reaches into the gap, nothing is known of it, not even that it was one; and the rest
 * of such a gap has no cause that we saw. */
static bool has_hole(struct idle *d, struct gap gap)
{
    uint64_t within = 0;
    for (; d->n_holes && d->holes->end <= gap.from; d->holes++) d->n_holes--;
    for (size_t i = 0; i < d->n_holes && d->holes[i].start < gap.to; i++)
        within += overlap(d->holes[i].start, d->holes[i].end, gap.from, gap.to);
    if (!within) return false;
    d->unrecorded += within;
    d->worked = 0;
    add(d, BY_UNKNOWN, gap.to - gap.from - within);
    return true;
}

/* ---- steps ---- */

/* The part of a time that lies within each step: busy, or (`before`: what the causes had before this gap) idle. A gap
 * that reaches over the end of a step is shared by length, whichever cause came first in it. Times come in order. */
static void share(struct idle *d, uint64_t from, uint64_t to, const struct gpu_idle *before)
{
    struct gpu_step *steps = d->course->steps.items;
    size_t n = d->course->steps.n;
    while (d->step < n && steps[d->step].end <= from) d->step++;
    for (size_t i = d->step; i < n && steps[i].start < to; i++) {
        uint64_t ns = overlap(steps[i].start, steps[i].end, from, to);
        if (!before) steps[i].busy += ns;
        for (int c = 0; before && c < CAUSES; c++) {
            uint64_t more = d->causes[c].ns - before[c].ns;
            if (more) steps[i].idle[c] += (uint64_t)((double)more * (double)ns / (double)(to - from));
        }
    }
}

/* In this one gap the host was seen in one state more often than in the others, or never. */
static enum cause host_state(const struct idle *d)
{
    enum cause most = BY_HOST;
    uint64_t looks = 0;
    for (int i = 0; i < GPU_HOST_STATES; i++) {
        if (d->looks[i] > looks) most = host_states[i];
        if (d->looks[i] > looks) looks = d->looks[i];
    }
    return most;
}

static void keep_gap(struct idle *d, struct gap gap, const struct gpu_idle *before, bool hole)
{
    struct gpu_gap out = {.start = gap.from, .ns = gap.to - gap.from, .cause = CAUSES};
    uint64_t most = 0, all = gap.to - gap.from;
    for (unsigned c = 0; c < CAUSES && !hole; c++) {
        uint64_t ns = d->causes[c].ns - before[c].ns;
        if (ns <= most) continue;
        most = ns;
        out.cause = c == BY_HOST ? host_state(d) : c;
    }
    out.percent = (uint64_t)(100.0 * (double)most / (double)all);
    if (d->status == TARE_OK) d->status = vec_push(&d->course->gaps, out, d->w->err);
}

static void explain_and_share(struct idle *d, struct gap gap, const struct gpu_op *next)
{
    struct gpu_idle before[CAUSES];
    bool keep = d->course->steps.n || d->gaps;
    if (keep) memcpy(before, d->causes, sizeof before);
    memset(d->looks, 0, sizeof d->looks);
    bool hole = has_hole(d, gap);
    if (!hole) explain(d, gap, next);
    if (d->course->steps.n) share(d, gap.from, gap.to, before);
    if (d->gaps) keep_gap(d, gap, before, hole);
}

/* Up to where all is known: to the end of the last operation, but for a record that was cut off. */
static uint64_t explain_gaps(struct idle *d)
{
    uint64_t until = d->ops[0].start;
    bool talked = false;
    for (size_t i = 0; i < d->n; i++) {
        const struct gpu_op *op = &d->ops[i];
        if (op->start >= d->cut_at) break;
        const struct gap gap = {until, op->start, talked};
        if (op->start > until) explain_and_share(d, gap, op);
        if (op->end <= until) continue;
        talked = op->kind == WORK_COMMUNICATION;
        uint64_t from = op->start > until ? op->start : until, end = end_of(d, op);
        d->worked += end - from;
        if (d->course->steps.n) share(d, from, end, NULL);
        until = end;
    }
    return until;
}

/* Before the first operation and after the last nothing was looked at; rounding leaves a few ns. */
static void fill_steps(struct gpu_course *course)
{
    for (size_t i = 0; i < course->steps.n; i++) {
        struct gpu_step *s = &course->steps.items[i];
        uint64_t told = s->busy;
        for (int c = 0; c < CAUSES; c++) told += s->idle[c];
        if (told < s->end - s->start) s->idle[BY_UNKNOWN] += s->end - s->start - told;
    }
}

/* The host's own time by what its thread was seen to do, where it was looked at often enough. */
static void split_host(struct idle *d)
{
    uint64_t looks = 0;
    struct gpu_idle host = d->causes[BY_HOST];
    for (int i = 0; i < GPU_HOST_STATES; i++) looks += d->states[i];
    if (looks < STATES_ENOUGH) return;
    d->causes[BY_HOST] = (struct gpu_idle){0};
    for (int i = 0; i < GPU_HOST_STATES; i++) {
        double share = (double)d->states[i] / (double)looks;
        struct gpu_idle *c = &d->causes[host_states[i]];
        c->ns = (uint64_t)((double)host.ns * share);
        c->gaps = (uint64_t)((double)host.gaps * share + 0.5);
        c->longest_ns = d->states[i] ? host.longest_ns : 0;
    }
}

/* ---- a device ---- */

static int by_length(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct gpu_spread gpu_spread_of(uint64_t *v, size_t n)
{
    if (!n) return (struct gpu_spread){0};
    qsort(v, n, sizeof *v, by_length);
    return (struct gpu_spread){true, v[(n - 1) / 2], v[(size_t)((double)(n - 1) * 0.95)], v[n - 1]};
}

/* How long operations took to start, and their calls: of a few thousand, evenly taken. */
static void spread_launches(const struct idle *d, struct gpu_card *out)
{
    enum { MOST = 4096 };
    uint64_t launch[MOST], call[MOST];
    size_t n = 0, step = d->n / MOST + 1;
    for (size_t i = 0; i < d->n && n < MOST; i += step) {
        const struct gpu_op *op = &d->ops[i];
        if (op->call == NO_CALL) continue;
        const struct gpu_host_call *c = &d->w->calls.items[op->call];
        if (c->class != CALL_LAUNCH) continue;
        launch[n] = op->start > c->start ? op->start - c->start : 0;
        call[n++] = c->duration;
    }
    out->launch_ns = gpu_spread_of(launch, n);
    out->call_ns = gpu_spread_of(call, n);
}

/* How many operations wait on their way when the next is launched: of a few thousand launches, evenly taken. Those that
 * had not started then stand behind the first that started later, most of them before the launched one itself: only
 * other streams can be further on. The kernels of a graph are one launch. */
static void spread_queue(const struct idle *d, struct gpu_card *out)
{
    enum { MOST = 4096, FURTHER = 256, DEEPEST = 8192 };
    uint64_t depth[MOST];
    const struct gpu_host_call *calls = d->w->calls.items;
    size_t n = 0, step = d->n / MOST + 1;
    for (size_t i = 0; i < d->n && n < MOST; i += step) {
        if (d->ops[i].call == NO_CALL || calls[d->ops[i].call].class != CALL_LAUNCH) continue;
        uint64_t at = calls[d->ops[i].call].start, waiting = 0;
        size_t first = i, end = i + FURTHER < d->n ? i + FURTHER : d->n;
        while (first && i - first < DEEPEST && d->ops[first - 1].start > at) first--;
        for (uint32_t k = (uint32_t)first, last = NO_CALL; k < end; k++) {
            const uint32_t call = d->ops[k].call;
            if (call == NO_CALL || call == last || d->ops[k].start <= at || calls[call].start >= at) continue;
            last = call;
            waiting++;
        }
        depth[n++] = waiting;
    }
    out->queue = gpu_spread_of(depth, n);
}

/* Operations ran of which nothing is known: how busy it was is not, either, and no gap is sure to be one. What was
 * recorded is the least of it. */
static void doubt(const struct idle *d, struct gpu_card *out, const char *why)
{
    const struct {
        const char *field;
        struct known_u64 *ns;
    } fields[] = {{"busy_ns", &out->busy_ns},
                  {"compute_ns", &out->compute_ns},
                  {"copy_ns", &out->copy_ns},
                  {"exposed_copy_ns", &out->exposed_copy_ns},
                  {"communication_ns", &out->communication_ns},
                  {"exposed_communication_ns", &out->exposed_communication_ns},
                  {"overlapped_communication_ns", &out->overlapped_communication_ns}};
    struct arena *a = &d->w->out->arena;
    double wall = (double)out->wall_ns.v;
    out->unrecorded_ns = known_u64(out->wall_ns.v - out->busy_ns.v);
    run_map_textf(a, &out->unknown, "busy", "%s: busy for at least %.3g %% of the time", why,
                  wall > 0 ? 100 * (double)out->busy_ns.v / wall : 0);
    run_map_text(a, &out->unknown, "idle", why);
    out->busy = (struct known_f64){0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        run_map_text(a, &out->unknown, fields[i].field, why);
        *fields[i].ns = (struct known_u64){0};
    }
}

/* Exposed is what no better work hides: copies while nothing is computed or communicated, communication while nothing
 * is computed. Each is a difference of two unions of times, so that work which overlaps counts once. */
static tare_status device_idle(struct idle *d, struct gpu_card *out)
{
    uint64_t end = 0;
    for (size_t i = 0; i < d->n; i++)
        if (d->ops[i].end > end) end = d->ops[i].end;
    uint64_t wall = end - d->ops[0].start, all = busy_ns(d, WORK_ALL), compute = busy_ns(d, WORK_COMPUTE);
    d->unrecorded += end - explain_gaps(d);
    fill_steps(d->course);
    split_host(d);
    d->course->doubt = gpu_work_doubt(d->w, d->process) != NULL;
    out->operations = known_u64(d->n);
    out->wall_ns = known_u64(wall);
    out->busy_ns = known_u64(all);
    out->compute_ns = known_u64(compute);
    out->copy_ns = known_u64(busy_ns(d, WORK_COPY));
    out->exposed_copy_ns = known_u64(all - busy_ns(d, WORK_COMPUTE | WORK_COMMUNICATION));
    uint64_t talking = busy_ns(d, WORK_COMMUNICATION),
             alone = busy_ns(d, WORK_COMPUTE | WORK_COMMUNICATION) - compute;
    out->communication_ns = known_u64(talking);
    out->exposed_communication_ns = known_u64(alone);
    out->overlapped_communication_ns = known_u64(talking - alone);
    if (d->unrecorded) out->unrecorded_ns = known_u64(d->unrecorded);
    if (wall > d->unrecorded) out->busy = known_f64((double)all / (double)(wall - d->unrecorded));
    spread_launches(d, out);
    spread_queue(d, out);
    const char *why = gpu_work_doubt(d->w, d->process);
    if (why) {
        doubt(d, out, why);
        vec_clear(&d->course->gaps);
        return d->status;
    }
    for (int i = 0; i < CAUSES && d->status == TARE_OK; i++) {
        if (!d->causes[i].ns) continue;
        struct gpu_idle *c = RUN_LIST_ADD(&d->w->out->arena, &out->idle);
        if (!c) return error_nomem(d->w->err, "idle times");
        *c = d->causes[i];
        c->cause = cause_names[i];
        c->share = known_f64((double)c->ns / (double)wall);
    }
    return d->status;
}

static void find_holes(struct idle *d)
{
    const struct gpu_work *w = d->w;
    for (size_t i = 0; i < w->holes.n; i++) {
        if (w->holes.items[i].process != d->process) continue;
        if (!d->n_holes++) d->holes = &w->holes.items[i];
    }
}

static tare_status idle_of(struct gpu_work *w, const struct gpu_op *ops, size_t n, struct gpu_course *course,
                           struct gpu_card *out)
{
    const struct gpu_seen_card *card = &w->cards.items[ops[0].card];
    struct idle d = {.w = w, .ops = ops, .n = n, .process = card->process, .course = course};
    d.cut_at = card->cut_at ? card->cut_at : UINT64_MAX;
    d.gaps = course == &card->course && w->courses && w->courses->with_gaps;
    find_holes(&d);
    return device_idle(&d, out);
}

tare_status gpu_idle_of(struct gpu_work *w, const struct gpu_op *ops, size_t n, struct gpu_card *out)
{
    struct gpu_course none = {0};
    return idle_of(w, ops, n, &none, out);
}

tare_status gpu_work_idle(struct gpu_work *w)
{
    tare_status s = TARE_OK;
    for (size_t at = 0, end; at < w->ops.n && s == TARE_OK; at = end) {
        uint16_t card = w->ops.items[at].card;
        for (end = at; end < w->ops.n && w->ops.items[end].card == card;) end++;
        struct gpu_seen_card *c = &w->cards.items[card];
        s = idle_of(w, &w->ops.items[at], end - at, &c->course, &c->out);
    }
    return s;
}
