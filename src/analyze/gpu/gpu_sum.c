/* SPDX-License-Identifier: MIT
 * gpu_sum.c - the tables of the document: kernels, groups, copies, calls, ranges, each with the largest first. */
#include "analyze/gpu/gpu_sum.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_work.h"
#include "core/mem.h"
#include "symbol/demangle.h"

/* ---- kernels and groups ---- */

static int by_total(const void *a, const void *b)
{
    const struct gpu_kernel *x = *(struct gpu_kernel *const *)a, *y = *(struct gpu_kernel *const *)b;
    if (x->total_ns != y->total_ns) return x->total_ns < y->total_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static int by_group_total(const void *a, const void *b)
{
    const struct gpu_group *x = *(struct gpu_group *const *)a, *y = *(struct gpu_group *const *)b;
    if (x->total_ns != y->total_ns) return x->total_ns < y->total_ns ? 1 : -1;
    return strcmp(x->group, y->group);
}

static void add_to_group(struct gpu_profile *p, const struct gpu_kernel *k)
{
    struct gpu_group *g = NULL;
    for (size_t i = 0; i < p->groups.n && !g; i++)
        if (strcmp(p->groups.at[i]->group, k->group) == 0) g = p->groups.at[i];
    if (!g) g = RUN_LIST_ADD(&p->arena, &p->groups);
    if (!g) return;
    g->group = k->group;
    g->count += k->count;
    gpu_grow(&g->total_ns, k->total_ns);
}

enum { RUNS_MOST = 4096 };

/* Of each kernel so many runs, evenly taken over the record: one stretch of `ns` for each name. */
static tare_status spread_kernels(struct gpu_work *w)
{
    struct stretch {
        size_t first, n;
        uint64_t seen;
    } *of = mem_new(w->names.n + 1, sizeof *of);
    size_t room = 0;
    for (size_t i = 0; of && i < w->names.n; i++) {
        of[i].first = room;
        room += w->names.items[i].sum.count < RUNS_MOST ? w->names.items[i].sum.count : RUNS_MOST;
    }
    uint64_t *ns = of ? mem_new(room + 1, sizeof *ns) : NULL;
    for (size_t i = 0; ns && i < w->ops.n; i++) {
        const struct gpu_op *op = &w->ops.items[i];
        if (op->kind == WORK_COPY) continue;
        struct stretch *to = &of[op->name];
        uint64_t every = (w->names.items[op->name].sum.count + RUNS_MOST - 1) / RUNS_MOST;
        if (to->seen++ % every == 0 && to->n < RUNS_MOST) ns[to->first + to->n++] = op->end - op->start;
    }
    for (size_t i = 0; ns && i < w->names.n; i++) {
        struct gpu_kernel *k = &w->names.items[i].sum;
        struct gpu_spread spread = gpu_spread_of(ns + of[i].first, of[i].n);
        if (!spread.known) continue;
        k->p50_ns = known_u64(spread.p50);
        k->p95_ns = known_u64(spread.p95);
    }
    bool made = ns != NULL;
    mem_free(ns);
    mem_free(of);
    return made ? TARE_OK : error_nomem(w->err, "times of kernels");
}

/* Shares are of the time of all kernels together, not of wall time: streams overlap. A name without a count is one of
 * calls or copies. */
static void put_kernels(struct gpu_work *w, struct gpu_profile *p)
{
    double all = 0;
    for (size_t i = 0; i < w->names.n; i++) all += (double)w->names.items[i].sum.total_ns;
    for (size_t i = 0; i < w->names.n; i++) {
        const struct gpu_name *n = &w->names.items[i];
        if (!n->sum.count) continue;
        struct gpu_kernel *k = RUN_LIST_ADD(&p->arena, &p->kernels);
        if (!k) return;
        *k = n->sum;
        k->full = demangle(&p->arena, arena_str(&p->arena, n->text));
        k->name = gpu_name_short(&p->arena, k->full);
        k->group = gpu_name_group(k->full);
        if (all > 0) k->share = known_f64((double)k->total_ns / all);
        add_to_group(p, k);
    }
    for (size_t i = 0; i < p->groups.n && all > 0; i++)
        p->groups.at[i]->share = known_f64((double)p->groups.at[i]->total_ns / all);
    if (p->kernels.n) qsort(p->kernels.at, p->kernels.n, sizeof *p->kernels.at, by_total);
    if (p->groups.n) qsort(p->groups.at, p->groups.n, sizeof *p->groups.at, by_group_total);
}

/* ---- copies, calls ---- */

static void put_copies(struct gpu_work *w, struct gpu_profile *p)
{
    for (size_t i = 0; i < sizeof w->copies / sizeof *w->copies && w->copies[i].direction; i++) {
        struct gpu_copy *c = RUN_LIST_ADD(&p->arena, &p->copies);
        if (!c) return;
        *c = w->copies[i];
        if (c->total_ns) c->bandwidth = known_f64((double)c->bytes / (double)c->total_ns * 1e9);
    }
}

static int by_call_total(const void *a, const void *b)
{
    const struct gpu_call *x = *(struct gpu_call *const *)a, *y = *(struct gpu_call *const *)b;
    if (x->total_ns != y->total_ns) return x->total_ns < y->total_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void put_calls(struct gpu_work *w, struct gpu_profile *p)
{
    for (size_t i = 0; i < w->names.n; i++) {
        if (!w->names.items[i].calls.count) continue;
        struct gpu_call *c = RUN_LIST_ADD(&p->arena, &p->calls);
        if (!c) return;
        *c = w->names.items[i].calls;
        c->name = arena_str(&p->arena, w->names.items[i].text);
    }
    if (p->calls.n) qsort(p->calls.at, p->calls.n, sizeof *p->calls.at, by_call_total);
}

/* ---- ranges ---- */

static int by_gpu_time(const void *a, const void *b)
{
    const struct gpu_range *x = *(struct gpu_range *const *)a, *y = *(struct gpu_range *const *)b;
    if (x->gpu_ns != y->gpu_ns) return x->gpu_ns < y->gpu_ns ? 1 : -1;
    if (x->total_ns != y->total_ns) return x->total_ns < y->total_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static const char *text_of(struct gpu_work *w, struct gpu_profile *p, uint32_t name)
{
    return name < w->names.n ? arena_str(&p->arena, w->names.items[name].text) : NULL;
}

/* One row for all times that a range of this name was open; the same name in another domain is another range. No memory
 * for a row ends the loop without an error here: gpu_sum() sees it in the arena. */
static tare_status put_ranges(struct gpu_work *w, struct gpu_profile *p)
{
    struct map_u64 index = {0}; /* name and domain -> row + 1 */
    tare_status s = TARE_OK;
    for (size_t i = 0; i < w->ranges.n && s == TARE_OK; i++) {
        const struct gpu_open_range *r = &w->ranges.items[i];
        uint64_t *at;
        if (gpu_origin_is_range(w, r)) continue; /* put_origins() has it */
        s = map_u64_ref(&index, (uint64_t)r->domain << 32 | r->name, &at, w->err);
        if (s != TARE_OK) break;
        if (!*at) {
            struct gpu_range *made = RUN_LIST_ADD(&p->arena, &p->ranges);
            if (!made) break;
            made->name = text_of(w, p, r->name);
            if (!made->name) made->name = "a range whose name was lost";
            made->domain = text_of(w, p, r->domain);
            *at = p->ranges.n;
        }
        struct gpu_range *row = p->ranges.at[*at - 1];
        row->count++;
        row->open += !r->end;
        gpu_grow(&row->total_ns, r->end > r->start ? r->end - r->start : 0);
        gpu_grow(&row->gpu_ns, r->gpu_ns);
        gpu_grow(&row->operations, r->operations);
    }
    map_u64_release(&index);
    if (p->ranges.n) qsort(p->ranges.at, p->ranges.n, sizeof *p->ranges.at, by_gpu_time);
    return s;
}

/* ---- threads ---- */

static int by_thread_time(const void *a, const void *b)
{
    const struct gpu_thread *x = *(struct gpu_thread *const *)a, *y = *(struct gpu_thread *const *)b;
    if (x->gpu_ns != y->gpu_ns) return x->gpu_ns < y->gpu_ns ? 1 : -1;
    return x->thread.v < y->thread.v ? -1 : x->thread.v > y->thread.v;
}

static void put_threads(struct gpu_work *w, struct gpu_profile *p)
{
    for (size_t i = 0; i < w->threads.n; i++) {
        const struct gpu_host_thread *from = &w->threads.items[i];
        struct gpu_thread *to = from->operations ? RUN_LIST_ADD(&p->arena, &p->threads) : NULL;
        if (!to) continue;
        to->pid = w->processes.items[from->process].pid;
        if (from->thread != UINT32_MAX) to->thread = known_u64(from->thread);
        to->name = from->name;
        to->operations = from->operations;
        to->gpu_ns = from->gpu_ns;
        if (p->ranges.n) to->in_range = known_u64(from->in_range);
    }
    if (p->threads.n) qsort(p->threads.at, p->threads.n, sizeof *p->threads.at, by_thread_time);
}

/* ---- where kernels come from ---- */

static int by_origin_total(const void *a, const void *b)
{
    const struct gpu_origin *x = *(struct gpu_origin *const *)a, *y = *(struct gpu_origin *const *)b;
    if (x->total_ns != y->total_ns) return x->total_ns < y->total_ns ? 1 : -1;
    int order = strcmp(x->module ? x->module : "", y->module ? y->module : "");
    return order ? order : strcmp(x->kernel, y->kernel);
}

static void put_origins(struct gpu_work *w, struct gpu_profile *p)
{
    static const char *const phases[] = {NULL, "backward", "optimizer"};
    double all = 0;
    for (size_t i = 0; i < w->names.n; i++) all += (double)w->names.items[i].sum.total_ns;
    for (size_t i = 0; i < w->origins.n; i++) {
        const struct gpu_origin_sum *from = &w->origins.items[i];
        struct gpu_origin *to = RUN_LIST_ADD(&p->arena, &p->origins);
        if (!to) return;
        const char *full = demangle(&p->arena, text_of(w, p, from->kernel));
        to->kernel = gpu_name_short(&p->arena, full);
        to->group = gpu_name_group(full);
        if (from->module) to->module = text_of(w, p, from->module - 1);
        if (from->op) to->op = text_of(w, p, from->op - 1);
        to->phase = phases[from->phase];
        to->count = from->count;
        to->total_ns = from->total_ns;
        if (all > 0) to->share = known_f64((double)from->total_ns / all);
    }
    if (p->origins.n) qsort(p->origins.at, p->origins.n, sizeof *p->origins.at, by_origin_total);
}

/* ---- all of it ---- */

static tare_status put_devices(struct gpu_work *w, struct gpu_profile *p)
{
    for (size_t i = 0; i < w->cards.n; i++) {
        if (!w->cards.items[i].out.operations.known) continue; /* seen, not used */
        struct gpu_card *d = RUN_LIST_ADD(&p->arena, &p->devices);
        if (!d) return error_nomem(w->err, "GPUs");
        *d = w->cards.items[i].out;
        const struct gpu_seen_process *by = &w->processes.items[w->cards.items[i].process];
        d->pid = known_u64(by->pid);
        d->host = by->host;
        if (by->rank) d->rank = known_u64(by->rank - 1);
    }
    return TARE_OK;
}

static const char *command_of(struct trace *t, struct arena *a)
{
    for (uint32_t i = 0; i < trace_n_processes(t); i++)
        if (trace_process(t, i)->mode & MODE_GPU) return arena_str(a, trace_process(t, i)->command);
    return NULL;
}

/* Records come to the file about once a second: of a process that could not write its end some may be missing. */
static tare_status note_missing_ends(struct trace *t, struct gpu_profile *p, tare_error *err)
{
    for (uint32_t i = 0; i < trace_n_processes(t); i++) {
        const struct trace_process *process = trace_process(t, i);
        if (!(process->mode & MODE_GPU) || process->closed) continue;
        struct gpu_note *n = RUN_LIST_ADD(&p->arena, &p->notes);
        if (!n) return error_nomem(err, "a note");
        n->pid = process->pid;
        n->text =
            "its record has no end: it was killed, left by _exit or still runs; up to a second may be missing";
    }
    return TARE_OK;
}

/* The largest of each that a document holds: a program may give every range a name of its own. What is left out is
 * told. */
static void cut_lists(struct gpu_profile *p)
{
    size_t *const lists[] = {&p->kernels.n, &p->calls.n,   &p->ranges.n,
                             &p->origins.n, &p->threads.n, &p->notes.n};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (*lists[i] <= RUN_LIST_MAX) continue;
        p->lost.rows += *lists[i] - RUN_LIST_MAX;
        *lists[i] = RUN_LIST_MAX;
    }
}

/* The courses go over to the caller. */
static tare_status take_courses(struct gpu_work *w, struct gpu_courses *to)
{
    for (size_t i = 0; i < w->cards.n; i++) {
        struct gpu_seen_card *card = &w->cards.items[i];
        if (!card->out.operations.known) continue;
        card->course.number = (uint32_t)card->out.number;
        card->course.pid = w->processes.items[card->process].pid;
        card->course.process = card->process;
        tare_status s = vec_push(&to->cards, card->course, w->err);
        if (s != TARE_OK) return s;
        card->course = (struct gpu_course){0};
    }
    return TARE_OK;
}

void gpu_courses_release(struct gpu_courses *c)
{
    for (size_t i = 0; i < c->cards.n; i++) {
        vec_release(&c->cards.items[i].steps);
        vec_release(&c->cards.items[i].gaps);
    }
    vec_release(&c->cards);
    vec_release(&c->ranks);
    vec_release(&c->waits);
}

tare_status gpu_work_courses(struct gpu_work *w)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < w->windows.n && w->over_time && s == TARE_OK; i++) {
        const struct gpu_window *from = &w->windows.items[i];
        struct gpu_step step = {.start = from->start, .end = from->end};
        s = vec_push(&w->cards.items[from->card].course.steps, step, w->err);
    }
    return s;
}

struct given {
    struct trace *const *traces;
    size_t n;
};

static tare_status judge(struct gpu_work *w, const struct given *g, struct gpu_profile *out, tare_error *err)
{
    tare_status s = gpu_work_gather(w, g->traces, g->n, out, err);
    if (s == TARE_OK) s = gpu_work_steps(w);
    if (s == TARE_OK) s = gpu_work_courses(w);
    if (s == TARE_OK) s = gpu_work_idle(w);
    if (s == TARE_OK) s = gpu_work_held(w);
    if (s == TARE_OK) s = gpu_work_ranks(w);
    if (s == TARE_OK) s = gpu_work_self(w);
    if (s == TARE_OK) s = gpu_work_judge(w, g->n == 1 ? g->traces[0] : NULL);
    if (s == TARE_OK) s = put_devices(w, out);
    if (s == TARE_OK) s = put_ranges(w, out);
    for (size_t i = 0; i < g->n && s == TARE_OK; i++) s = note_missing_ends(g->traces[i], out, err);
    if (s == TARE_OK) s = spread_kernels(w);
    put_kernels(w, out);
    put_threads(w, out);
    put_origins(w, out);
    put_copies(w, out);
    put_calls(w, out);
    cut_lists(out);
    return s;
}

tare_status gpu_require(const struct trace *t, tare_error *err)
{
    if (trace_has_gpu(t)) return TARE_OK;
    return error_set(
        err, TARE_FORMAT,
        "%s: nothing of a GPU in this trace: it was recorded without `tare run --gpu`, or the program "
        "did not use CUDA",
        trace_path(t));
}

static tare_status sum(const struct given *g, struct gpu_profile *out, struct gpu_courses *courses,
                       tare_error *err)
{
    struct gpu_work w = {.over_time = courses != NULL, .courses = courses};
    tare_status s = TARE_OK;
    for (size_t i = 0; i < g->n && s == TARE_OK; i++) s = gpu_require(g->traces[i], err);
    if (s == TARE_OK) s = gpu_profile_init(out, err);
    if (s != TARE_OK) return s;
    out->trace = arena_str(&out->arena, trace_path(g->traces[0]));
    out->command = command_of(g->traces[0], &out->arena);
    s = judge(&w, g, out, err);
    if (s == TARE_OK && courses) s = take_courses(&w, courses);
    gpu_work_release(&w);
    if (s == TARE_OK && out->arena.failed) s = error_nomem(err, "a GPU profile");
    if (s != TARE_OK) gpu_profile_release(out);
    if (s != TARE_OK && courses) gpu_courses_release(courses);
    return s;
}

tare_status gpu_sum(struct trace *const *traces, size_t n, struct gpu_profile *out, tare_error *err)
{
    return sum(&(struct given){traces, n}, out, NULL, err);
}

tare_status gpu_sum_over_time(struct trace *const *traces, size_t n, struct gpu_profile *out,
                              struct gpu_courses *courses, tare_error *err)
{
    return sum(&(struct given){traces, n}, out, courses, err);
}
