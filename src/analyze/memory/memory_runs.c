/* SPDX-License-Identifier: MIT
 * memory_runs.c - see memory_runs.h. Lines of several processes are one where they have the same name. */
#include "analyze/memory/memory_runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/memory/memory_group.h"
#include "core/buf.h"
#include "core/map.h"
#include "core/str.h"
#include "core/vec.h"

/* So many places with the most bytes, and as many with the most blocks, are told. */
enum { SITES_TOLD = 10 };

struct place {
    struct memory_group of;
    bool told;
};

struct runs_sum {
    const struct memory_runs *of;
    struct run *run;
    struct run_case *c;
    struct map_str known; /* name, file, line -> place */
    VEC(struct place) places;
    tare_error *err;
};

/* ---- whose ---- */

static bool counts(const struct memory_runs *of, const struct memory_process *p)
{
    return (p->pid == of->pid) != of->others;
}

static uint64_t whole(double n)
{
    return (uint64_t)(fmin(n, 1e18) + 0.5);
}

/* ---- sums ---- */

static struct run_alloc_stage stage_of(const struct memory_runs *of, const struct memory_profile *all,
                                       double runs)
{
    double blocks = 0, bytes = 0, kept = 0, peak = 0;
    uint64_t largest = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct memory_process *p = &all->processes[i];
        if (!counts(of, p)) continue;
        blocks += p->allocations;
        bytes += p->allocated.sum;
        kept += p->at_end.sum;
        peak = fmax(peak, p->peak.sum);
        if (p->largest > largest) largest = p->largest;
    }
    return (struct run_alloc_stage){.known = true,
                                    .blocks = known_f64(blocks / runs),
                                    .bytes = known_f64(bytes / runs),
                                    .largest = known_u64(largest),
                                    .peak = known_u64(whole(peak)),
                                    .kept = known_f64(kept / runs)};
}

static tare_status stage_within(struct trace *t, const struct memory_runs *of, struct memory_window when,
                                struct run_alloc_stage *out, tare_error *err)
{
    struct memory_profile all;
    if (!when.to_ns) return TARE_OK;
    tare_status s = memory_sum_within(t, (struct memory_windows){&when, 1}, &all, err);
    if (s == TARE_OK) *out = stage_of(of, &all, 1);
    memory_profile_release(&all);
    return s;
}

static void add_sizes(struct runs_sum *x, const struct memory_profile *all)
{
    double sizes[MEMORY_SIZES] = {0};
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; counts(x->of, &all->processes[i]) && k < MEMORY_SIZES; k++)
            sizes[k] += all->processes[i].sizes[k];
    for (size_t k = 0; k < MEMORY_SIZES; k++) {
        struct run_alloc_size *to = sizes[k] > 0 ? run_add_alloc_size(x->run, x->c) : NULL;
        if (!to) continue;
        if (k < MEMORY_SIZES - 1) to->up_to = known_u64(MEMORY_SIZE_MOST(k));
        to->blocks = sizes[k] / (double)x->of->runs.n;
    }
}

/* ---- where ---- */

static tare_status add_group(struct runs_sum *x, const struct memory_group *g)
{
    const struct memory_frame_named *f = g->own.frame;
    struct buf key = BUF_INIT;
    uint64_t *at;
    if (f)
        buf_printf(&key, "%s\n%s\n%" PRIu64 "\n%" PRIu64, f->name ? f->name : "", f->file ? f->file : "",
                   f->line, f->line || f->kind != MEMORY_NATIVE ? 0 : f->offset);
    size_t before = x->known.n;
    tare_status s = buf_status(&key, x->err);
    if (s == TARE_OK) s = map_str_ref(&x->known, key.data ? key.data : "", key.len, &at, x->err);
    buf_release(&key);
    if (s != TARE_OK) return s;
    if (x->known.n > before) {
        *at = x->places.n;
        return vec_push(&x->places, ((struct place){.of = *g}), x->err);
    }
    struct memory_site *to = &x->places.items[*at].of.own;
    memory_bytes_add(&to->allocated, g->own.allocated);
    to->allocations += g->own.allocations;
    to->churned += g->own.churned;
    if (g->own.largest > to->largest) to->largest = g->own.largest;
    return TARE_OK;
}

static tare_status add_process(struct runs_sum *x, struct memory_profile *all, const struct memory_process *p)
{
    struct memory_groups lines;
    tare_status s = memory_group(p, MEMORY_BY_LINE, &all->arena, &lines, x->err);
    for (size_t i = 0; s == TARE_OK && i < lines.n; i++)
        if (lines.all[i].own.allocations > 0) s = add_group(x, &lines.all[i]);
    return s;
}

static int by_bytes(const void *a, const void *b)
{
    const struct memory_site *x = &((const struct place *)a)->of.own, *y = &((const struct place *)b)->of.own;
    double d = y->allocated.sum - x->allocated.sum;
    return (d > 0) - (d < 0);
}

static int by_blocks(const void *a, const void *b)
{
    const struct memory_site *x = &((const struct place *)a)->of.own, *y = &((const struct place *)b)->of.own;
    double d = y->allocations - x->allocations;
    return (d > 0) - (d < 0);
}

static void tell_first(struct runs_sum *x, int (*order)(const void *, const void *))
{
    if (x->places.n > 1) qsort(x->places.items, x->places.n, sizeof x->places.items[0], order);
    for (size_t i = 0; i < x->places.n && i < SITES_TOLD; i++) x->places.items[i].told = true;
}

/* Of a native function the source is where its line is; without one, the library stands for it. */
static void put_site(struct runs_sum *x, struct arena *a, const struct place *p)
{
    const struct memory_site *own = &p->of.own;
    const struct memory_frame_named *f = own->frame;
    struct run_alloc_site *to = run_add_alloc_site(x->run, x->c);
    double runs = (double)x->of->runs.n;
    if (!to) return;
    to->blocks = own->allocations / runs;
    to->bytes = own->allocated.sum / runs;
    to->largest = known_u64(own->largest);
    if (own->allocations > 0) to->short_lived = known_f64(fmin(1, own->churned / own->allocations));
    if (!f) return;
    bool native = f->kind == MEMORY_NATIVE;
    const char *file = native && f->source ? f->source : f->file;
    if (f->name) to->function = arena_str(&x->run->arena, f->name);
    if (file) to->file = arena_str(&x->run->arena, file);
    if (f->line) to->line = known_u64(f->line);
    if (native && !f->name) to->offset = known_u64(f->offset <= INT64_MAX ? f->offset : INT64_MAX);
    to->library = arena_str(&x->run->arena, memory_library(f, a));
}

static tare_status add_sites(struct runs_sum *x, struct memory_profile *all)
{
    tare_status s = TARE_OK;
    uint64_t left = 0;
    for (size_t i = 0; s == TARE_OK && i < all->n; i++)
        if (counts(x->of, &all->processes[i])) s = add_process(x, all, &all->processes[i]);
    if (s != TARE_OK) return s;
    tell_first(x, by_blocks);
    tell_first(x, by_bytes);
    for (size_t i = 0; i < x->places.n; i++) {
        if (x->places.items[i].told)
            put_site(x, &all->arena, &x->places.items[i]);
        else
            left++;
    }
    if (left) x->c->allocations.other_sites = known_u64(left);
    return x->run->arena.failed ? error_nomem(x->err, "the allocations of a run") : TARE_OK;
}

/* ---- all of it ---- */

static tare_status find_counted(struct runs_sum *x, const struct memory_profile *all)
{
    struct run_allocations *to = &x->c->allocations;
    uint64_t seen = 0, lost = 0, allocating = 0;
    const char *why = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const struct memory_process *p = &all->processes[i];
        if (!counts(x->of, p)) continue;
        seen++;
        allocating += p->allocations > 0;
        lost += p->lost_records;
        if (p->n_notes && !why) why = p->notes[0];
    }
    if (!seen)
        return error_set(x->err, TARE_UNSUPPORTED,
                         "nothing was recorded: it may be statically linked, or run with other rights");
    if (!allocating && why) return error_set(x->err, TARE_UNSUPPORTED, "%s", why);
    to->processes = known_u64(allocating);
    if (lost) to->lost = known_u64(lost);
    return TARE_OK;
}

static tare_status record(struct runs_sum *x, struct trace *t)
{
    struct memory_profile all;
    struct run_allocations *to = &x->c->allocations;
    tare_status s = memory_sum_within(t, x->of->runs, &all, x->err);
    if (s == TARE_OK) s = find_counted(x, &all);
    if (s == TARE_OK) s = memory_profile_symbols(&all, x->err);
    if (s == TARE_OK) {
        to->runs = known_u64(x->of->runs.n);
        to->each = stage_of(x->of, &all, (double)x->of->runs.n);
        add_sizes(x, &all);
        s = add_sites(x, &all);
    }
    memory_profile_release(&all);
    if (s == TARE_OK) s = stage_within(t, x->of, x->of->first, &to->first, x->err);
    if (s == TARE_OK) s = stage_within(t, x->of, x->of->load, &to->load, x->err);
    return s;
}

tare_status memory_runs_record(struct trace *t, const struct memory_runs *of, struct run *run,
                               struct run_case *c, tare_error *err)
{
    struct runs_sum x = {.of = of, .run = run, .c = c, .known = MAP_STR_INIT, .err = err};
    c->allocations = (struct run_allocations){0};
    tare_status s = record(&x, t);
    c->allocations.known = s == TARE_OK;
    map_str_release(&x.known);
    vec_release(&x.places);
    return s;
}
