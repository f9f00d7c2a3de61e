/* SPDX-License-Identifier: MIT
 * gpu_series.c - see gpu_series.h. An operation belongs to the step in which it was launched where steps are ranges of
 * the host, and to that in which it started where steps are found by kernels. */
#include "analyze/gpu/gpu_series.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_work.h"
#include "symbol/demangle.h"

enum { KERNELS_MOST = 512, STEPS_MOST = 65536, RUNS_MOST = 4096 };

struct series {
    struct gpu_work *w;
    struct gpu_series *to;
    struct gpu_series_card *card;
    const struct gpu_op *ops; /* of the card, in order of their start */
    size_t n;
    const struct gpu_window *windows;
    bool by_launch;
    struct map_u64 rows; /* name -> kernel + 1 */
    VEC(struct gpu_series_kernel) kernels;
};

static double *column(struct series *s, size_t n)
{
    return arena_new(&s->to->arena, n ? n : 1, sizeof(double));
}

/* ---- which step ---- */

/* Windows are in order and do not overlap. SIZE_MAX: between steps. */
static size_t step_at(const struct series *s, uint64_t at)
{
    size_t low = 0, high = s->card->n_steps;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->windows[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->card->n_steps && s->windows[low].start <= at ? low : SIZE_MAX;
}

static size_t step_of(const struct series *s, const struct gpu_op *op)
{
    bool launched = s->by_launch && op->call != NO_CALL;
    return step_at(s, launched ? s->w->calls.items[op->call].start : op->start);
}

/* ---- kernels ---- */

static int by_time(const void *a, const void *b)
{
    const struct gpu_series_kernel *x = a, *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
    return strcmp(x->full, y->full);
}

/* The sums first: only those with the most time get columns. `blocks` holds the name's index until then. */
static tare_status sum_kernels(struct series *s)
{
    tare_status status = TARE_OK;
    for (size_t i = 0; i < s->n && status == TARE_OK; i++) {
        const struct gpu_op *op = &s->ops[i];
        uint64_t *row;
        if (op->kind == WORK_COPY || (s->card->n_steps && step_of(s, op) == SIZE_MAX)) continue;
        status = map_u64_ref(&s->rows, op->name, &row, s->w->err);
        if (status == TARE_OK && !*row) {
            struct gpu_series_kernel k = {.full = s->w->names.items[op->name].text, .blocks = op->name};
            status = vec_push(&s->kernels, k, s->w->err);
            *row = s->kernels.n;
        }
        if (status < 0) break;
        s->kernels.items[*row - 1].runs++;
        gpu_grow(&s->kernels.items[*row - 1].ns, op->end - op->start);
    }
    return status;
}

static tare_status choose_kernels(struct series *s)
{
    struct gpu_series_card *c = s->card;
    if (s->kernels.n) qsort(s->kernels.items, s->kernels.n, sizeof *s->kernels.items, by_time);
    c->n_kernels = s->kernels.n < KERNELS_MOST ? s->kernels.n : KERNELS_MOST;
    c->left_out = s->kernels.n - c->n_kernels;
    c->kernels = arena_new(&s->to->arena, c->n_kernels + 1, sizeof *c->kernels);
    if (!c->kernels) return error_nomem(s->w->err, "kernels");
    map_u64_release(&s->rows);
    s->rows = (struct map_u64)MAP_U64_INIT;
    for (size_t i = 0; i < c->n_kernels; i++) {
        struct gpu_series_kernel *k = &c->kernels[i];
        *k = s->kernels.items[i];
        const struct gpu_name *n = &s->w->names.items[k->blocks];
        tare_status status = map_u64_put(&s->rows, k->blocks, i + 1, s->w->err);
        if (status < 0) return status;
        k->full = demangle(&s->to->arena, arena_str(&s->to->arena, n->text));
        k->name = gpu_name_short(&s->to->arena, k->full);
        k->blocks = n->sum.blocks;
        k->threads = n->sum.threads;
        if (c->n_steps) k->step_ns = column(s, c->n_steps);
        k->run_ns = column(s, k->runs < RUNS_MOST ? k->runs : RUNS_MOST);
    }
    return s->to->arena.failed ? error_nomem(s->w->err, "kernels") : TARE_OK;
}

/* Single runs: every so-many-th, so that they are spread over the whole record. */
static void add_run(struct gpu_series_kernel *k, uint64_t number, uint64_t ns)
{
    uint64_t every = (k->runs + RUNS_MOST - 1) / RUNS_MOST;
    if (every && number % every == 0 && k->n_runs < RUNS_MOST)
        ((double *)(uintptr_t)k->run_ns)[k->n_runs++] = (double)ns;
}

static tare_status fill_kernels(struct series *s, double *copy_ns)
{
    struct gpu_series_card *c = s->card;
    uint64_t *seen = mem_new(c->n_kernels + 1, sizeof *seen);
    if (!seen) return error_nomem(s->w->err, "kernels");
    for (size_t i = 0; i < s->n; i++) {
        const struct gpu_op *op = &s->ops[i];
        uint64_t ns = op->end - op->start;
        size_t step = c->n_steps ? step_of(s, op) : SIZE_MAX;
        gpu_grow(op->kind == WORK_COPY ? &c->all_copy_ns : &c->all_kernel_ns, ns);
        if (c->n_steps && step == SIZE_MAX) continue;
        if (op->kind == WORK_COPY) {
            if (c->n_steps) copy_ns[step] += (double)ns;
            continue;
        }
        const uint64_t *row = map_u64_find(&s->rows, op->name);
        if (!row) continue;
        struct gpu_series_kernel *k = &c->kernels[*row - 1];
        if (c->n_steps) ((double *)(uintptr_t)k->step_ns)[step] += (double)ns;
        add_run(k, seen[*row - 1]++, ns);
    }
    mem_free(seen);
    return TARE_OK;
}

/* ---- a card ---- */

static tare_status fill_steps(struct series *s, const struct gpu_course *course, double **copy_ns)
{
    struct gpu_series_card *c = s->card;
    double *step = column(s, c->n_steps), *busy = column(s, c->n_steps), *idle[GPU_CAUSES];
    *copy_ns = column(s, c->n_steps);
    for (int k = 0; k < GPU_CAUSES; k++) idle[k] = column(s, c->n_steps);
    if (s->to->arena.failed) return error_nomem(s->w->err, "steps");
    for (size_t i = 0; i < c->n_steps; i++) {
        const struct gpu_step *from = &course->steps.items[i];
        step[i] = (double)(from->end - from->start);
        busy[i] = (double)from->busy;
        for (int k = 0; k < GPU_CAUSES; k++) idle[k][i] = (double)from->idle[k];
    }
    c->step_ns = step;
    c->busy_ns = busy;
    c->copy_ns = *copy_ns;
    for (int k = 0; k < GPU_CAUSES; k++) c->idle_ns[k] = idle[k];
    return TARE_OK;
}

static tare_status fill_card(struct series *s, const struct gpu_seen_card *from)
{
    struct gpu_series_card *c = s->card;
    struct arena *a = &s->to->arena;
    double *copy_ns = NULL;
    c->number = (uint32_t)from->out.number;
    c->rank = s->w->processes.items[from->process].rank;
    c->name = arena_str(a, from->out.name);
    c->wall_ns = from->out.wall_ns.v;
    c->all_busy_ns = from->out.busy_ns.v;
    c->busy_unknown = !from->out.busy_ns.known;
    c->n_steps = from->course.steps.n < STEPS_MOST ? from->course.steps.n : STEPS_MOST;
    if (c->n_steps) {
        c->found_by = from->out.steps.found_by;
        c->step_name = arena_str(a, from->out.steps.name);
        s->by_launch = strcmp(c->found_by, "range") == 0;
    }
    tare_status status = fill_steps(s, &from->course, &copy_ns);
    if (status == TARE_OK) status = sum_kernels(s);
    if (status == TARE_OK) status = choose_kernels(s);
    if (status == TARE_OK) status = fill_kernels(s, copy_ns);
    map_u64_release(&s->rows);
    vec_release(&s->kernels);
    return status;
}

static const struct gpu_window *first_window(const struct gpu_work *w, uint32_t card)
{
    for (size_t i = 0; i < w->windows.n; i++)
        if (w->windows.items[i].card == card) return &w->windows.items[i];
    return NULL;
}

static tare_status fill_cards(struct gpu_series *out, struct gpu_work *w)
{
    tare_status status = TARE_OK;
    out->cards = arena_new(&out->arena, w->cards.n + 1, sizeof *out->cards);
    if (!out->cards) return error_nomem(w->err, "GPUs");
    for (size_t at = 0, end; at < w->ops.n && status == TARE_OK; at = end) {
        uint32_t card = w->ops.items[at].card;
        for (end = at; end < w->ops.n && w->ops.items[end].card == card;) end++;
        struct series s = {.w = w,
                           .to = out,
                           .card = &out->cards[out->n_cards++],
                           .ops = &w->ops.items[at],
                           .n = end - at,
                           .windows = first_window(w, card)};
        status = fill_card(&s, &w->cards.items[card]);
    }
    return status;
}

tare_status gpu_series_read(struct gpu_series *out, struct trace *t, tare_error *err)
{
    struct gpu_work w = {.over_time = true};
    struct gpu_profile p;
    tare_status s = gpu_require(t, err);
    if (s == TARE_OK) s = gpu_profile_init(&p, err);
    if (s < 0) return s;
    *out = (struct gpu_series){.arena = ARENA_INIT};
    out->path = arena_str(&out->arena, trace_path(t));
    if (trace_n_processes(t)) out->begun_ms = (int64_t)(trace_process(t, 0)->start_unix_ns / 1000000);
    s = gpu_work_gather(&w, &t, 1, &p, err);
    if (s == TARE_OK) s = gpu_work_steps(&w);
    if (s == TARE_OK) s = gpu_work_courses(&w);
    if (s == TARE_OK) s = gpu_work_idle(&w);
    if (s == TARE_OK) s = fill_cards(out, &w);
    gpu_work_release(&w);
    gpu_profile_release(&p);
    if (s == TARE_OK && out->arena.failed) s = error_nomem(err, "a comparison");
    if (s < 0) gpu_series_release(out);
    return s;
}

void gpu_series_release(struct gpu_series *s)
{
    arena_release(&s->arena);
    *s = (struct gpu_series){.arena = ARENA_INIT};
}
