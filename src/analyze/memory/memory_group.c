/* SPDX-License-Identifier: MIT
 * memory_group.c - see memory_group.h. Frames are those of anybody's trace: callers may go in a circle. */
#include "analyze/memory/memory_group.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/map.h"
#include "core/str.h"
#include "core/vec.h"

#define X(name, word, help) word,
const char *const memory_by_words[] = {MEMORY_BY_MAP(X)};
#undef X

struct grouping {
    const struct memory_process *p;
    enum memory_by by;
    struct arena *arena;
    struct map_str places;   /* key -> place in `all` */
    struct map_u64 of_frame; /* address of a frame -> place + 1: callers are shared by many stacks */
    struct buf key;
    VEC(struct memory_group) all;
    VEC(size_t) last; /* of each group: the site, + 1, that it was counted for with callees */
};

/* ---- libraries ---- */

/* The name that follows `folder` in a path, up to the next slash: a package. */
static const char *package_below(const char *path, const char *folder, struct arena *a)
{
    const char *at = strstr(path, folder);
    if (!at) return NULL;
    at += strlen(folder);
    size_t n = strcspn(at, "/");
    if (n > 5 && memcmp(at + n - 5, ".libs", 5) == 0) n -= 5; /* libraries that a package brings along */
    if (n > 3 && memcmp(at + n - 3, ".py", 3) == 0) n -= 3;
    for (size_t i = 0; i < n; i++) /* _cffi_backend.cpython-311-x86_64-linux-gnu.so */
        if (strncmp(at + i, ".cpython-", 9) == 0 || strncmp(at + i, ".abi3.", 6) == 0) n = i;
    return n ? arena_str_n(a, at, n) : NULL;
}

const char *memory_library(const struct memory_frame_named *f, struct arena *a)
{
    if (!f || !f->file) return "unknown";
    const char *package = package_below(f->file, "/site-packages/", a);
    if (!package) package = package_below(f->file, "/dist-packages/", a);
    if (package) return package;
    const char *base = str_file_name(f->file);
    bool is_python = strstr(f->file, "/lib/python3") || strstr(f->file, "/lib64/python3") ||
                     f->file[0] == '<' || strncmp(base, "libpython3", 10) == 0 ||
                     strncmp(base, "python3", 7) == 0;
    if (is_python) return "python";
    return f->kind == MEMORY_PYTHON ? "program" : base;
}

/* ---- which group ---- */

static bool is_counted(enum memory_by by, const struct memory_frame_named *f)
{
    if (by == MEMORY_BY_SCOPE) return f->kind == MEMORY_SCOPE;
    return f->kind == MEMORY_PYTHON || f->kind == MEMORY_NATIVE;
}

/* `new` of C++ only hands on what its caller asks for. */
static bool hands_on(const struct memory_frame_named *f)
{
    return strncmp(f->name, "operator new", 12) == 0 || strncmp(f->name, "_Znw", 4) == 0 ||
           strncmp(f->name, "_Zna", 4) == 0;
}

static bool is_of_one_file(const struct memory_frame_named *a, const struct memory_frame_named *b)
{
    return a->file && b->file ? strcmp(a->file, b->file) == 0 : a->file == b->file;
}

/* Without a name in the library that allocates, its place stands for it, and not whoever called it from elsewhere. */
static const struct memory_frame_named *innermost_named(const struct memory_site *s)
{
    const struct memory_frame_named *named = NULL, *inner = NULL;
    int n = 0;
    for (const struct memory_frame_named *f = s->frame; f && n < MEMORY_FRAMES_MOST; f = f->caller, n++) {
        if (f->kind == MEMORY_PYTHON) return f;
        if (f->kind != MEMORY_NATIVE || (f->name && hands_on(f))) continue;
        if (!inner) inner = f;
        if (!named && f->name && is_of_one_file(f, inner)) named = f;
    }
    if (!named) named = inner;
    return named ? named : s->frame;
}

static const struct memory_frame_named *own_scope(const struct memory_site *s)
{
    int n = 0;
    const struct memory_frame_named *f = s->frame;
    while (f && f->kind != MEMORY_SCOPE && n++ < MEMORY_FRAMES_MOST) f = f->caller;
    return f && f->kind == MEMORY_SCOPE ? f : NULL;
}

static const struct memory_frame_named *own_frame(enum memory_by by, const struct memory_site *s)
{
    if (by == MEMORY_BY_SCOPE) return own_scope(s);
    return by == MEMORY_BY_LIBRARY ? s->frame : innermost_named(s);
}

/* What is one group has one key. A native frame without a name is a place by itself by line, its module by function. */
static void write_key(struct grouping *g, const struct memory_frame_named *f)
{
    struct buf *b = &g->key;
    b->len = 0;
    if (!f) {
        buf_add_str(b, "?");
        return;
    }
    if (g->by == MEMORY_BY_LIBRARY) {
        buf_add_str(b, memory_library(f, g->arena));
        return;
    }
    buf_printf(b, "%d\n%s\n%s", (int)f->kind, f->file ? f->file : "", f->name ? f->name : "");
    if (g->by == MEMORY_BY_LINE) buf_printf(b, "\n%" PRIu64, f->line);
    if (g->by == MEMORY_BY_LINE && f->kind == MEMORY_NATIVE && !f->line)
        buf_printf(b, "\n%" PRIx64, f->offset);
}

static const char *name_of(const struct grouping *g, const struct memory_frame_named *f)
{
    if (g->by == MEMORY_BY_LIBRARY) return memory_library(f, g->arena);
    if (g->by != MEMORY_BY_SCOPE) return NULL;
    return f && f->name ? f->name : "outside of scopes";
}

static tare_status new_group(struct grouping *g, const struct memory_frame_named *f, tare_error *err)
{
    struct memory_group fresh = {.name = name_of(g, f), .own.frame = f};
    tare_status s = vec_push(&g->all, fresh, err);
    return s == TARE_OK ? vec_push(&g->last, 0, err) : s;
}

static tare_status place_of(struct grouping *g, const struct memory_frame_named *f, size_t *out,
                            tare_error *err)
{
    uint64_t *known, *place;
    tare_status s = map_u64_ref(&g->of_frame, (uint64_t)(uintptr_t)f, &known, err);
    if (s != TARE_OK) return s;
    if (!*known) {
        write_key(g, f);
        s = buf_status(&g->key, err);
        size_t before = g->places.n;
        if (s == TARE_OK) s = map_str_ref(&g->places, g->key.data, g->key.len, &place, err);
        if (s == TARE_OK && g->places.n > before) {
            *place = g->all.n;
            s = new_group(g, f, err);
        }
        if (s != TARE_OK) return s;
        *known = *place + 1;
    }
    *out = (size_t)*known - 1;
    return TARE_OK;
}

/* ---- sums ---- */

static tare_status add_series(struct grouping *g, struct memory_site *to, const double *series,
                              tare_error *err)
{
    if (!series) return TARE_OK;
    if (!to->series) to->series = arena_new(g->arena, MEMORY_MOMENTS, sizeof *to->series);
    if (!to->series) return error_nomem(err, "%d moments", MEMORY_MOMENTS);
    for (size_t i = 0; i < MEMORY_MOMENTS; i++) to->series[i] += series[i];
    return TARE_OK;
}

static tare_status add_own(struct grouping *g, struct memory_site *to, const struct memory_site *s,
                           tare_error *err)
{
    memory_bytes_add(&to->at_peak, s->at_peak);
    memory_bytes_add(&to->at_end, s->at_end);
    memory_bytes_add(&to->allocated, s->allocated);
    memory_bytes_add(&to->churn, s->churn);
    memory_bytes_add(&to->passing, s->passing);
    to->allocations += s->allocations;
    to->churned += s->churned;
    to->passed += s->passed;
    for (size_t i = 0; i < MEMORY_LIFETIMES; i++) to->lifetimes[i] += s->lifetimes[i];
    if (s->largest > to->largest) to->largest = s->largest;
    if (s->rise.steps > to->rise.steps) to->rise = s->rise;
    return add_series(g, to, s->series, err);
}

static void add_below(struct memory_group *to, const struct memory_site *s)
{
    memory_bytes_add(&to->peak_below, s->at_peak);
    memory_bytes_add(&to->end_below, s->at_end);
    memory_bytes_add(&to->allocated_below, s->allocated);
    memory_bytes_add(&to->churn_below, s->churn);
}

static void count_once(struct grouping *g, size_t place, size_t site)
{
    if (g->last.items[place] == site + 1) return;
    g->last.items[place] = site + 1;
    add_below(&g->all.items[place], &g->p->sites[site]);
}

static tare_status add_site(struct grouping *g, size_t i, tare_error *err)
{
    const struct memory_site *site = &g->p->sites[i];
    size_t place;
    tare_status s = place_of(g, own_frame(g->by, site), &place, err);
    if (s == TARE_OK) s = add_own(g, &g->all.items[place].own, site, err);
    if (s != TARE_OK) return s;
    count_once(g, place, i);
    int n = 0;
    for (const struct memory_frame_named *f = site->frame; f && n < MEMORY_FRAMES_MOST; f = f->caller, n++) {
        if (!is_counted(g->by, f)) continue;
        s = place_of(g, f, &place, err);
        if (s != TARE_OK) return s;
        count_once(g, place, i);
    }
    return TARE_OK;
}

/* Stacks are groups already. */
static tare_status as_they_are(struct grouping *g, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < g->p->n_sites && s == TARE_OK; i++) {
        struct memory_group one = {.own = g->p->sites[i]};
        add_below(&one, &one.own);
        s = vec_push(&g->all, one, err);
    }
    return s;
}

/* ---- in order ---- */

static int more(double a, double b)
{
    return (a < b) - (a > b);
}

static int by_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

/* Of equals the one whose name comes first, so that two readings of a trace agree. */
static int by_name(const struct memory_group *x, const struct memory_group *y)
{
    const struct memory_frame_named *a = x->own.frame, *b = y->own.frame;
    int c = by_text(x->name, y->name);
    if (c || !a || !b) return c ? c : (a != NULL) - (b != NULL);
    c = by_text(a->file, b->file);
    if (!c) c = by_text(a->name, b->name);
    if (!c) c = (a->line > b->line) - (a->line < b->line);
    return c ? c : (a->offset > b->offset) - (a->offset < b->offset);
}

static int by_peak(const void *a, const void *b)
{
    const struct memory_group *x = a, *y = b;
    int c = more(x->own.at_peak.sum, y->own.at_peak.sum);
    if (!c) c = more(x->peak_below.sum, y->peak_below.sum);
    if (!c) c = more(x->allocated_below.sum, y->allocated_below.sum);
    return c ? c : by_name(x, y);
}

static tare_status finish(struct grouping *g, struct memory_groups *out, tare_error *err)
{
    tare_status s = TARE_OK;
    size_t n = g->all.n;
    for (size_t i = 0; i < n && s == TARE_OK && g->by != MEMORY_BY_STACK; i++)
        s = memory_site_judge(g->p, &g->all.items[i].own, err);
    struct memory_group *all = n ? arena_new(g->arena, n, sizeof *all) : NULL;
    if (s == TARE_OK && g->arena->failed) s = error_nomem(err, "%zu groups of memory", n);
    if (s != TARE_OK) return s;
    if (n) memcpy(all, g->all.items, n * sizeof *all);
    if (n > 1) qsort(all, n, sizeof *all, by_peak);
    *out = (struct memory_groups){g->by, all, n};
    return TARE_OK;
}

tare_status memory_group(const struct memory_process *p, enum memory_by by, struct arena *a,
                         struct memory_groups *out, tare_error *err)
{
    struct grouping g = {
        .p = p, .by = by, .arena = a, .places = MAP_STR_INIT, .of_frame = MAP_U64_INIT, .key = BUF_INIT};
    tare_status s = by == MEMORY_BY_STACK ? as_they_are(&g, err) : TARE_OK;
    for (size_t i = 0; i < p->n_sites && by != MEMORY_BY_STACK && s == TARE_OK; i++) s = add_site(&g, i, err);
    if (s == TARE_OK) s = finish(&g, out, err);
    map_str_release(&g.places);
    map_u64_release(&g.of_frame);
    buf_release(&g.key);
    vec_release(&g.all);
    vec_release(&g.last);
    return s;
}
