/* SPDX-License-Identifier: MIT
 * gpu_steps.c - the steps of a program that does the same again and again: those that it names by an NVTX range, or
 * else those that the order of its kernels tells. Nothing is found where nothing repeats. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_work.h"
#include "core/stats.h"
#include "symbol/demangle.h"

enum { REPEATS_LEAST = 5, LEVELS = 4 };

struct window {
    uint64_t start, end;
};

struct steps {
    struct gpu_work *w;
    const struct gpu_op *ops; /* of one card, in order of their start */
    size_t n;
    uint32_t process;
    VEC(struct window) windows; /* the steps, one after the other */
    struct gpu_steps out;
};

/* ---- how long, and how busy ---- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Standard deviation over mean, without the shortest and longest twentieth: the first steps load code. */
static double variation(const double *sorted, size_t n)
{
    size_t cut = n / 20, m = n - 2 * cut;
    double sum = 0, squares = 0;
    for (size_t i = cut; i < n - cut; i++) sum += sorted[i];
    double mean = sum / (double)m;
    for (size_t i = cut; i < n - cut; i++) squares += (sorted[i] - mean) * (sorted[i] - mean);
    return mean > 0 ? sqrt(squares / (double)m) / mean : INFINITY;
}

static uint64_t overlap(struct window a, struct window b)
{
    uint64_t from = a.start > b.start ? a.start : b.start, to = a.end < b.end ? a.end : b.end;
    return to > from ? to - from : 0;
}

/* Busy time and operations within the steps: both are in order, so that one walk does. `until` is how far the union of
 * operations reaches. */
static void walk_operations(struct steps *s)
{
    uint64_t busy = 0, all = 0, until = 0, operations = 0;
    double least = 1;
    size_t at = 0;
    for (size_t i = 0; i < s->windows.n; i++) {
        const struct window w = s->windows.items[i];
        uint64_t within = overlap((struct window){0, until}, w);
        for (; at < s->n && s->ops[at].start < w.end; at++) {
            const struct gpu_op *op = &s->ops[at];
            operations += op->start >= w.start;
            within += overlap((struct window){op->start > until ? op->start : until, op->end}, w);
            if (op->end > until) until = op->end;
        }
        double share = (double)within / (double)(w.end - w.start);
        if (share < least) least = share;
        gpu_grow(&busy, within);
        gpu_grow(&all, w.end - w.start);
    }
    if (!s->windows.n || !all) return;
    s->out.operations = (operations + s->windows.n / 2) / s->windows.n;
    if (gpu_work_doubt(s->w, s->process)) return;
    s->out.busy = known_f64((double)busy / (double)all);
    s->out.least_busy = known_f64(least);
}

/* False: too few, or (`most` < infinity) they take too different times to be the same again. */
static bool measure(struct steps *s, double most, tare_status *status)
{
    size_t n = s->windows.n;
    double *ns = n >= REPEATS_LEAST ? mem_new(n, sizeof *ns) : NULL;
    if (!ns) {
        if (n >= REPEATS_LEAST) *status = error_nomem(s->w->err, "%zu steps", n);
        return false;
    }
    for (size_t i = 0; i < n; i++) ns[i] = (double)(s->windows.items[i].end - s->windows.items[i].start);
    struct interval middle = {NAN, NAN, NAN};
    *status = stats_median_interval(ns, n, 0.95, &middle, s->w->err);
    s->out.median_ns =
        run_estimate_of((struct interval){round(middle.value), floor(fmax(middle.lo, 0)), ceil(middle.hi)});
    qsort(ns, n, sizeof *ns, by_value);
    double varies = variation(ns, n);
    s->out.count = n;
    s->out.step_ns = (struct gpu_spread){true, (uint64_t)ns[(n - 1) / 2],
                                         (uint64_t)ns[(size_t)((double)(n - 1) * 0.95)], (uint64_t)ns[n - 1]};
    mem_free(ns);
    if (*status != TARE_OK || varies >= most) return false;
    walk_operations(s);
    s->out.known = true;
    return true;
}

/* Of a step with a hole of the record in it neither its work nor its length is known, nor of one behind its cut. */
static bool has_hole(const struct steps *s, uint64_t start, uint64_t end)
{
    uint64_t cut_at = s->w->cards.items[s->ops[0].card].cut_at;
    if (cut_at && end > cut_at) return true;
    for (size_t i = 0; i < s->w->holes.n; i++) {
        const struct gpu_hole *h = &s->w->holes.items[i];
        if (h->process == s->process && h->start < end && h->end > start) return true;
    }
    return false;
}

static tare_status add_window(struct steps *s, uint64_t start, uint64_t end)
{
    if (has_hole(s, start, end)) return TARE_OK;
    if (end <= start || (s->windows.n && start < s->windows.items[s->windows.n - 1].end)) return TARE_OK;
    return vec_push(&s->windows, ((struct window){start, end}), s->w->err);
}

/* ---- by ranges ---- */

struct range_group {
    uint64_t count, ns;
    uint32_t first; /* index of a range */
    uint8_t level;  /* how many are around it */
};

struct grouping {
    struct gpu_work *w;
    struct map_str keys; /* level, thread, domain and name -> index + 1 */
    VEC(struct range_group) groups;
    VEC(uint8_t) levels;      /* of each range: how many are around it */
    struct map_u64 outermost; /* thread -> level + 1 of the outermost that repeat there */
    struct buf key;
    bool without_numbers; /* "step 17" and "step 18" are one */
};

static tare_status group_of(struct grouping *g, const struct gpu_open_range *r, uint8_t level, uint64_t **at)
{
    const uint32_t where[] = {level, r->process, r->thread, r->domain};
    const char *name = r->name < g->w->names.n ? g->w->names.items[r->name].text : "";
    buf_clear(&g->key);
    buf_add(&g->key, where, sizeof where);
    for (const char *p = name; *p; p++) {
        bool digit = g->without_numbers && isdigit((unsigned char)*p);
        if (digit && isdigit((unsigned char)p[1])) continue;
        buf_add_char(&g->key, digit ? '#' : *p);
    }
    if (g->key.failed) return error_nomem(g->w->err, "names of ranges");
    return map_str_ref(&g->keys, g->key.data, g->key.len, at, g->w->err);
}

static tare_status add_to_group(struct grouping *g, uint32_t i, uint8_t level)
{
    const struct gpu_open_range *r = &g->w->ranges.items[i];
    uint64_t *at;
    tare_status s = group_of(g, r, level, &at);
    if (s == TARE_OK && !*at) {
        s = vec_push(&g->groups, ((struct range_group){.first = i, .level = level}), g->w->err);
        *at = g->groups.n;
    }
    if (s != TARE_OK) return s;
    g->groups.items[*at - 1].count++;
    gpu_grow(&g->groups.items[*at - 1].ns, r->end - r->start);
    return TARE_OK;
}

static tare_status find_outermost(struct grouping *g)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < g->groups.n && s == TARE_OK; i++) {
        const struct range_group *x = &g->groups.items[i];
        uint64_t *at;
        if (x->count < REPEATS_LEAST) continue;
        s = map_u64_ref(&g->outermost, g->w->ranges.items[x->first].thread, &at, g->w->err);
        if (s == TARE_OK && (!*at || *at > x->level + 1U)) *at = x->level + 1U;
    }
    return s;
}

/* One that never ended is around nothing: NCCL opens one on the thread that starts it and ends it elsewhere. */
static tare_status group_ranges(struct grouping *g, uint32_t process)
{
    const struct gpu_work *w = g->w;
    tare_status s = vec_reserve(&g->levels, w->ranges.n + 1, w->err);
    if (!g->levels.items) return s;
    for (uint32_t i = 0; i < w->ranges.n && s == TARE_OK; i++) {
        const struct gpu_open_range *r = &w->ranges.items[i];
        bool inner = r->parent && r->parent <= g->levels.n;
        uint8_t level = inner ? g->levels.items[r->parent - 1] : 0;
        if (inner && level < LEVELS && w->ranges.items[r->parent - 1].end) level++;
        if (gpu_origin_is_range(w, r)) level = LEVELS; /* the program's own lie around those */
        s = vec_push(&g->levels, level, w->err);
        if (s == TARE_OK && level < LEVELS && r->process == process && r->end > r->start)
            s = add_to_group(g, i, level);
    }
    return s == TARE_OK ? find_outermost(g) : s;
}

/* The one with the most time among those that repeat, so many levels within the outermost of their thread: the
 * program's steps may lie deeper than what a library does on a thread of its own. */
static const struct range_group *best_group(const struct grouping *g, unsigned within)
{
    const struct range_group *best = NULL;
    for (size_t i = 0; i < g->groups.n; i++) {
        const struct range_group *x = &g->groups.items[i];
        if (x->count < REPEATS_LEAST) continue;
        const uint64_t *first = map_u64_find(&g->outermost, g->w->ranges.items[x->first].thread);
        if (!first || x->level + 1U - *first != within) continue;
        if (!best || x->ns > best->ns) best = x;
    }
    return best;
}

static tare_status take_group(struct steps *s, struct grouping *g, const struct range_group *best)
{
    const struct gpu_work *w = s->w;
    const struct gpu_open_range *first = &w->ranges.items[best->first];
    uint64_t *wanted, *at;
    if (!g->levels.items) return TARE_OK;
    tare_status status = group_of(g, first, g->levels.items[best->first], &wanted);
    const uint64_t number = status == TARE_OK ? *wanted : 0;
    for (uint32_t i = best->first; i < w->ranges.n && status == TARE_OK; i++) {
        const struct gpu_open_range *r = &w->ranges.items[i];
        if (r->process != first->process || r->thread != first->thread || r->end <= r->start) continue;
        if (g->levels.items[i] >= LEVELS) continue;
        status = group_of(g, r, g->levels.items[i], &at);
        if (status == TARE_OK && *at == number) status = add_window(s, r->start, r->end);
    }
    return status;
}

static tare_status try_group(struct steps *s, struct grouping *g, const struct range_group *best)
{
    const struct gpu_work *w = s->w;
    vec_clear(&s->windows);
    tare_status status = take_group(s, g, best);
    if (status != TARE_OK || !measure(s, INFINITY, &status)) return status;
    uint32_t name = w->ranges.items[best->first].name;
    s->out.found_by = "range";
    s->out.name = name < w->names.n ? arena_str(&w->out->arena, w->names.items[name].text) : NULL;
    return status;
}

/* By their names as they are, or without numbers where that holds far more time: a library's own ranges (NCCL's) have
 * the same name again and again, and are no steps beside `step 17`. */
static struct grouping *better(struct grouping by_name[2], unsigned within, const struct range_group **best)
{
    enum { FAR_MORE = 2 };
    const struct range_group *a = best_group(&by_name[0], within), *b = best_group(&by_name[1], within);
    bool numbered = b && (!a || b->ns / FAR_MORE > a->ns);
    *best = numbered ? b : a;
    return &by_name[numbered];
}

/* The outermost that repeat. */
static tare_status by_ranges(struct steps *s)
{
    struct grouping by_name[2] = {{.w = s->w}, {.w = s->w, .without_numbers = true}};
    tare_status status = group_ranges(&by_name[0], s->process);
    if (status == TARE_OK) status = group_ranges(&by_name[1], s->process);
    for (unsigned within = 0; within < LEVELS && status == TARE_OK && !s->out.known; within++) {
        const struct range_group *best;
        struct grouping *by = better(by_name, within, &best);
        if (best) status = try_group(s, by, best);
    }
    for (int i = 0; i < 2; i++) {
        map_str_release(&by_name[i].keys);
        map_u64_release(&by_name[i].outermost);
        vec_release(&by_name[i].groups);
        vec_release(&by_name[i].levels);
        buf_release(&by_name[i].key);
    }
    return status;
}

/* ---- by the order of kernels ---- */

struct launched {
    uint32_t id, op;
};

/* A name tells the period if every k-th time it comes after equally many kernels, for some small k. */
struct period {
    uint32_t name, every; /* every: k */
    size_t length;        /* kernels */
};

struct sequence {
    struct steps *s;
    VEC(struct launched) order; /* kernels in the order of their launches */
    VEC(uint32_t) places;       /* of the name that is looked at */
};

static int by_launch(const void *a, const void *b)
{
    const struct launched *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static uint32_t name_at(const struct sequence *q, size_t i)
{
    return q->s->ops[q->order.items[i].op].name;
}

static tare_status order_kernels(struct sequence *q)
{
    const struct steps *s = q->s;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < s->n && status == TARE_OK; i++) {
        if (s->ops[i].kind == WORK_COPY) continue;
        status = vec_push(&q->order, ((struct launched){s->ops[i].id, (uint32_t)i}), s->w->err);
    }
    if (status == TARE_OK)
        status = gpu_sort(q->order.items, q->order.n, sizeof *q->order.items, by_launch, s->w->err);
    return status;
}

static tare_status find_places(struct sequence *q, uint32_t name)
{
    tare_status status = TARE_OK;
    vec_clear(&q->places);
    for (uint32_t i = 0; i < q->order.n && status == TARE_OK; i++)
        if (name_at(q, i) == name) status = vec_push(&q->places, i, q->s->w->err);
    return status;
}

/* The distance that most of the k-th next places have, if four of five do: then it is the middle one of them all. */
static size_t usual_distance(const struct sequence *q, size_t k)
{
    size_t n = q->places.n - k, votes = 0, equal = 0;
    uint32_t usual = 0;
    for (size_t i = 0; i < n; i++) { /* by majority: a candidate, then its count */
        uint32_t d = q->places.items[i + k] - q->places.items[i];
        if (!votes) usual = d;
        votes = d == usual ? votes + 1 : votes - 1;
    }
    for (size_t i = 0; i < n; i++) equal += q->places.items[i + k] - q->places.items[i] == usual;
    return equal * 5 >= n * 4 ? usual : 0;
}

/* Share of kernels that are the same one period later. */
static double agreement(const struct sequence *q, size_t period)
{
    enum { LOOKS = 20000 };
    size_t n = q->order.n - period, step = n / LOOKS + 1, same = 0, all = 0;
    for (size_t i = 0; i < n; i += step, all++) same += name_at(q, i) == name_at(q, i + period);
    return all ? (double)same / (double)all : 0;
}

static bool find_period(const struct sequence *q, uint32_t name, struct period *out)
{
    enum { EVERY_MOST = 32 };
    for (size_t k = 1; k <= EVERY_MOST && k * REPEATS_LEAST <= q->places.n; k++) {
        size_t length = usual_distance(q, k);
        if (!length) continue;
        *out = (struct period){name, (uint32_t)k, length};
        return length * REPEATS_LEAST <= q->order.n && agreement(q, length) >= 0.9;
    }
    return false;
}

struct anchor {
    uint64_t count;
    uint32_t name;
    bool optimizer;
};

/* What updates the weights comes once a step; else the rarest tell the longest period: not a layer, but a step. */
static int by_worth(const void *a, const void *b)
{
    const struct anchor *x = a, *y = b;
    if (x->optimizer != y->optimizer) return x->optimizer ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static tare_status choose_period(struct sequence *q, struct period *best)
{
    enum { ANCHORS = 16 };
    const struct gpu_work *w = q->s->w;
    VEC(struct anchor) anchors = VEC_INIT;
    struct map_u64 counts = MAP_U64_INIT;
    tare_status status = TARE_OK;
    uint64_t *count;
    for (size_t i = 0; i < q->order.n && status == TARE_OK; i++) {
        status = map_u64_ref(&counts, name_at(q, i), &count, w->err);
        if (status == TARE_OK) ++*count;
    }
    size_t at = 0;
    for (const struct map_u64_slot *x; status == TARE_OK && (x = map_u64_next(&counts, &at));) {
        struct anchor a = {x->value, (uint32_t)x->key, false};
        a.optimizer = strcmp(gpu_name_group(w->names.items[a.name].text), "optimizer") == 0;
        if (a.count >= REPEATS_LEAST) status = vec_push(&anchors, a, w->err);
    }
    if (anchors.n) qsort(anchors.items, anchors.n, sizeof *anchors.items, by_worth);
    for (size_t i = 0; i < anchors.n && i < ANCHORS && status == TARE_OK; i++) {
        struct period p;
        if (best->length && anchors.items[0].optimizer && !anchors.items[i].optimizer) break;
        status = find_places(q, anchors.items[i].name);
        if (status == TARE_OK && find_period(q, anchors.items[i].name, &p) && p.length > best->length)
            *best = p;
    }
    map_u64_release(&counts);
    vec_release(&anchors);
    return status;
}

/* From each place to the one a period later; where the distance is another, the next place is tried. */
static tare_status take_period(struct sequence *q, const struct period *p)
{
    struct steps *s = q->s;
    tare_status status = find_places(q, p->name);
    for (size_t i = 0; status == TARE_OK && i + p->every < q->places.n;) {
        uint32_t from = q->places.items[i], to = q->places.items[i + p->every];
        bool fits = to - from == p->length;
        if (fits)
            status =
                add_window(s, s->ops[q->order.items[from].op].start, s->ops[q->order.items[to].op].start);
        i += fits ? p->every : 1;
    }
    return status;
}

static tare_status by_kernels(struct steps *s)
{
    struct sequence q = {.s = s};
    struct period best = {0};
    vec_clear(&s->windows);
    tare_status status = order_kernels(&q);
    if (status == TARE_OK) status = choose_period(&q, &best);
    if (status == TARE_OK && best.length) status = take_period(&q, &best);
    if (status == TARE_OK && best.length && measure(s, 0.3, &status)) {
        s->out.found_by = "kernels";
        s->out.name = gpu_name_short(
            &s->w->out->arena,
            demangle(&s->w->out->arena, arena_str(&s->w->out->arena, s->w->names.items[best.name].text)));
    }
    vec_release(&q.order);
    vec_release(&q.places);
    return status;
}

tare_status gpu_work_steps(struct gpu_work *w)
{
    tare_status status = TARE_OK;
    size_t cards = 0;
    for (size_t at = 0, end; at < w->ops.n && status == TARE_OK && cards < JUDGED_CARDS_MOST;
         at = end, cards++) {
        uint16_t card = w->ops.items[at].card;
        for (end = at; end < w->ops.n && w->ops.items[end].card == card;) end++;
        struct steps s = {
            .w = w, .ops = &w->ops.items[at], .n = end - at, .process = w->cards.items[card].process};
        status = by_ranges(&s);
        if (status == TARE_OK && !s.out.known) status = by_kernels(&s);
        if (s.out.known) w->cards.items[card].out.steps = s.out;
        for (size_t i = 0; s.out.known && i < s.windows.n && status == TARE_OK; i++) {
            const struct gpu_window kept = {s.windows.items[i].start, s.windows.items[i].end, card};
            status = vec_push(&w->windows, kept, w->err);
        }
        vec_release(&s.windows);
    }
    return status;
}
