/* SPDX-License-Identifier: MIT
 * search.c - what to measure next: see search.h. */
#include "analyze/tune/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/tune/surface.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"
#include "core/vec.h"

enum { POOL_MAX = 1024 }; /* configurations that are weighed against each other for one question */

struct known {
    struct tune_point at;
    enum tune_outcome outcome;
    size_t n;
};

struct tune_search {
    const struct tune_space *space;
    struct tune_limits limits;
    struct surface surface;
    VEC(struct known) tried;
    struct rng rng;
    uint32_t blocks;
    size_t measured;
    size_t finalists; /* of the next settling block; 0: still exploring */
    struct tune_point *pool;
    double *scores; /* of the pool */
};

/* ---- points ---- */

static bool is_same(const struct tune_search *s, const struct tune_point *a, const struct tune_point *b)
{
    return memcmp(a->at, b->at, s->space->n) == 0;
}

static struct known *find(struct tune_search *s, const struct tune_point *p)
{
    for (size_t i = 0; i < s->tried.n; i++)
        if (is_same(s, &s->tried.items[i].at, p)) return &s->tried.items[i];
    return NULL;
}

static double predicted(const struct tune_search *s, const struct tune_point *p)
{
    double y = s->space->predict ? s->space->predict(s->space->ctx, p) : 0;
    return isfinite(y) ? y : 0;
}

static bool is_allowed(const struct tune_search *s, const struct tune_point *p)
{
    return !s->space->allowed || s->space->allowed(s->space->ctx, p);
}

/* Is `p` no better than `bad`, which was over a limit: the same but for more of what grows? */
static bool is_beyond(const struct tune_search *s, const struct tune_point *p, const struct tune_point *bad)
{
    for (size_t k = 0; k < s->space->n; k++)
        if (p->at[k] != bad->at[k] && !(s->space->knobs[k].grows && p->at[k] > bad->at[k])) return false;
    return true;
}

static bool is_ruled_out(const struct tune_search *s, const struct tune_point *p)
{
    for (size_t i = 0; i < s->tried.n; i++)
        if (s->tried.items[i].outcome != TUNE_MEASURED && is_beyond(s, p, &s->tried.items[i].at)) return true;
    return false;
}

/* How much of everything: for choosing the cheapest of equals. */
static double price(const struct tune_search *s, const struct tune_point *p)
{
    double sum = 0;
    for (size_t k = 0; k < s->space->n; k++)
        if (s->space->knobs[k].n > 1) sum += (double)p->at[k] / (double)(s->space->knobs[k].n - 1);
    return sum;
}

/* ---- making and ending ---- */

static tare_status check(const struct tune_space *space, const struct tune_limits *limits, tare_error *err)
{
    if (space->n == 0 || space->n > TUNE_KNOBS_MAX)
        return error_set(err, TARE_INVALID, "%zu knobs: 1 to %d can be searched", space->n, TUNE_KNOBS_MAX);
    for (size_t k = 0; k < space->n; k++)
        if (space->knobs[k].n == 0 || space->knobs[k].n > TUNE_VALUES_MAX ||
            space->base.at[k] >= space->knobs[k].n)
            return error_set(err, TARE_INVALID, "%s: %zu values, of which number %u is used today",
                             space->knobs[k].name, space->knobs[k].n, space->base.at[k]);
    if (space->allowed && !space->allowed(space->ctx, &space->base))
        return error_set(err, TARE_INVALID, "what is used today is not allowed by the limits of the search");
    if (limits->most < 2 || limits->most > TUNE_MEASURED_MAX)
        return error_set(err, TARE_INVALID, "%zu measurements: 2 to %d can be made", limits->most,
                         TUNE_MEASURED_MAX);
    return TARE_OK;
}

tare_status tune_search_new(struct tune_search **out, const struct tune_space *space,
                            const struct tune_limits *limits, tare_error *err)
{
    *out = NULL;
    tare_status status = check(space, limits, err);
    if (status < 0) return status;
    struct tune_search *s = mem_new(1, sizeof *s);
    if (!s) return error_nomem(err, "a search");
    *s = (struct tune_search){.space = space, .limits = *limits};
    rng_seed(&s->rng, limits->seed);
    status = surface_init(&s->surface, space->knobs, space->n, err);
    s->pool = mem_new(POOL_MAX, sizeof *s->pool);
    s->scores = mem_new(POOL_MAX, sizeof *s->scores);
    if (status == TARE_OK && s->pool && s->scores) {
        *out = s;
        return TARE_OK;
    }
    tune_search_free(s);
    return status < 0 ? status : error_nomem(err, "a search");
}

void tune_search_free(struct tune_search *s)
{
    if (!s) return;
    surface_release(&s->surface);
    vec_release(&s->tried);
    mem_free(s->pool);
    mem_free(s->scores);
    mem_free(s);
}

/* ---- where to look ---- */

/* The next combination in the order of counting; false: that was the last. */
static bool count_up(const struct tune_space *space, struct tune_point *p)
{
    for (size_t k = 0; k < space->n; k++) {
        if (++p->at[k] < space->knobs[k].n) return true;
        p->at[k] = 0;
    }
    return false;
}

static bool is_candidate(struct tune_search *s, const struct tune_point *p)
{
    return !find(s, p) && !is_same(s, p, &s->space->base) && is_allowed(s, p) && !is_ruled_out(s, p);
}

/* Every other value of one knob, for each knob: where the best may be improved, however large the grid is. */
static size_t add_neighbours(struct tune_search *s, const struct tune_point *of, size_t n)
{
    for (size_t k = 0; k < s->space->n; k++)
        for (size_t v = 0; v < s->space->knobs[k].n && n < POOL_MAX; v++) {
            struct tune_point p = *of;
            p.at[k] = (uint8_t)v;
            if (is_candidate(s, &p)) s->pool[n++] = p;
        }
    return n;
}

/* The whole grid where it is small, else neighbours of the best and a random part of it. */
static size_t fill_pool(struct tune_search *s, const struct tune_point *best)
{
    double grid = 1;
    size_t n = 0;
    for (size_t k = 0; k < s->space->n; k++) grid *= (double)s->space->knobs[k].n;
    if (grid <= POOL_MAX) {
        struct tune_point p = {{0}};
        do
            if (is_candidate(s, &p)) s->pool[n++] = p;
        while (count_up(s->space, &p));
        return n;
    }
    n = add_neighbours(s, best, 0);
    for (size_t tries = 0; n < POOL_MAX && tries < 4 * (size_t)POOL_MAX; tries++) {
        struct tune_point p = {{0}};
        for (size_t k = 0; k < s->space->n; k++) p.at[k] = (uint8_t)rng_below(&s->rng, s->space->knobs[k].n);
        if (is_candidate(s, &p)) s->pool[n++] = p;
    }
    return n;
}

/* ln of the cost relative to others; block shifts are out. */
static double level_of(struct tune_search *s, const struct tune_point *p)
{
    return surface_at(&s->surface, p).mean + predicted(s, p);
}

/* The best that was measured and keeps the limits; the base while there is none. */
static struct tune_point best_tried(struct tune_search *s, double *level)
{
    struct tune_point best = s->space->base;
    *level = INFINITY;
    for (size_t i = 0; i < s->tried.n; i++) {
        if (s->tried.items[i].outcome != TUNE_MEASURED) continue;
        double l = level_of(s, &s->tried.items[i].at);
        if (l < *level) {
            *level = l;
            best = s->tried.items[i].at;
        }
    }
    return best;
}

/* In ranges of knobs: 1 is another word, or from one end of the numbers to the other. */
static double distance(const struct tune_search *s, const struct tune_point *a, const struct tune_point *b)
{
    double far = 0;
    for (size_t k = 0; k < s->space->n; k++) {
        const struct tune_knob *knob = &s->space->knobs[k];
        if (a->at[k] == b->at[k]) continue;
        far += knob->ordered ? fabs((double)a->at[k] - b->at[k]) / (double)(knob->n - 1) : 1;
    }
    return far;
}

/* How likely it keeps the limits: by those near it that did and did not. */
static double keeps_limits(const struct tune_search *s, const struct tune_point *p)
{
    double good = 1, bad = 0;
    for (size_t i = 0; i < s->tried.n; i++) {
        const struct known *t = &s->tried.items[i];
        *(t->outcome == TUNE_MEASURED ? &good : &bad) += exp(-3 * distance(s, &t->at, p));
    }
    return good / (good + bad);
}

/* What a measurement there is expected to improve on the best, ln. */
static double hope(struct tune_search *s, const struct tune_point *p, double best)
{
    struct surface_guess g = surface_at(&s->surface, p);
    double better = best - (g.mean + predicted(s, p));
    if (!(g.sd > 0)) return fmax(better, 0);
    double z = better / g.sd, density = exp(-z * z / 2) / sqrt(2 * M_PI);
    return (better * stats_normal_cdf(z) + g.sd * density) * keeps_limits(s, p);
}

/* Appends configurations far from all that were tried or are asked, of some that chance picks: a first look at all of
 * the space, before any belief about it. */
static void spread(struct tune_search *s, struct tune_block *out, size_t room)
{
    enum { PICKS = 32 };
    size_t n = fill_pool(s, &s->space->base);
    while (out->n < room && n > 0) {
        size_t top = 0;
        double farthest = -1;
        for (size_t i = 0; i < PICKS; i++) {
            size_t pick = (size_t)rng_below(&s->rng, n);
            double far = INFINITY;
            for (size_t j = 0; j < s->tried.n; j++)
                far = fmin(far, distance(s, &s->tried.items[j].at, &s->pool[pick]));
            for (size_t j = 0; j < out->n; j++) far = fmin(far, distance(s, &out->at[j], &s->pool[pick]));
            if (far <= farthest) continue;
            farthest = far;
            top = pick;
        }
        out->at[out->n++] = s->pool[top];
        s->pool[top] = s->pool[--n];
    }
}

/* Appends what differs from the base in one knob, by one step first: it shows what each knob does, and costs about what
 * the base costs. */
static void step_out(struct tune_search *s, struct tune_block *out, size_t room)
{
    for (int step = 1; step < TUNE_VALUES_MAX && out->n < room; step++)
        for (size_t k = 0; k < s->space->n; k++)
            for (int sign = 1; sign >= -1 && out->n < room; sign -= 2) {
                struct tune_point p = s->space->base;
                int v = p.at[k] + sign * step;
                if (v < 0 || (size_t)v >= s->space->knobs[k].n) continue;
                p.at[k] = (uint8_t)v;
                if (is_candidate(s, &p)) out->at[out->n++] = p;
            }
}

/* Appends what is hoped for most; each is then believed to be as guessed, so that the next one lies elsewhere. Less
 * hope than `least` is not worth a measurement. */
static void explore(struct tune_search *s, struct tune_block *out, size_t room, double least)
{
    double best;
    struct tune_point best_at = best_tried(s, &best);
    if (!isfinite(best)) best = level_of(s, &best_at); /* nothing that keeps the limits was measured yet */
    size_t n = fill_pool(s, &best_at), before = s->surface.n;
    while (out->n < room) {
        size_t top = n;
        double most = least;
        for (size_t i = 0; i < n; i++) {
            double h = hope(s, &s->pool[i], best);
            if (h <= most) continue;
            most = h;
            top = i;
        }
        if (top == n) break;
        struct tune_point at = out->at[out->n++] = s->pool[top];
        s->pool[top] = s->pool[--n];
        surface_add(&s->surface, &(struct surface_point){at, s->blocks, surface_at(&s->surface, &at).mean});
    }
    s->surface.n = before; /* beliefs go; the next fit solves anew */
}

/* Appends what lies one step from the best and was never measured, then two, four: a surface that is smooth on the
 * whole may have an edge right there. Nothing one step away is left: nothing is asked. */
static void polish(struct tune_search *s, struct tune_block *out, size_t room)
{
    double level;
    struct tune_point best = best_tried(s, &level);
    for (int step = 1; step < TUNE_VALUES_MAX && out->n < room && (step == 1 || out->n > 1); step *= 2)
        for (size_t k = 0; k < s->space->n; k++)
            for (int sign = -1; sign <= 1 && out->n < room; sign += 2) {
                struct tune_point p = best;
                int v = best.at[k] + sign * step;
                if (!s->space->knobs[k].ordered || v < 0 || (size_t)v >= s->space->knobs[k].n) continue;
                p.at[k] = (uint8_t)v;
                if (is_candidate(s, &p)) out->at[out->n++] = p;
            }
}

/* ---- the finalists ---- */

struct placed {
    double level;
    size_t number;
};

static int by_level(const void *a, const void *b)
{
    double x = ((const struct placed *)a)->level, y = ((const struct placed *)b)->level;
    return (x > y) - (x < y);
}

/* Those that were measured and keep the limits, the best first; NULL: out of memory. */
static struct placed *placing(struct tune_search *s, size_t *n, tare_error *err)
{
    struct placed *p = mem_new(s->tried.n + 1, sizeof *p);
    *n = 0;
    if (!p) error_nomem(err, "%zu configurations", s->tried.n);
    for (size_t i = 0; p && i < s->tried.n; i++)
        if (s->tried.items[i].outcome == TUNE_MEASURED)
            p[(*n)++] = (struct placed){level_of(s, &s->tried.items[i].at), i};
    if (p) qsort(p, *n, sizeof *p, by_level);
    return p;
}

/* Is the first surely better than the second by more than counts? */
static bool is_settled(struct tune_search *s, const struct placed *p, size_t n)
{
    if (n < 2) return true;
    const struct tune_point *a = &s->tried.items[p[0].number].at, *b = &s->tried.items[p[1].number].at;
    struct surface_guess g = surface_difference(&s->surface, b, a);
    return s->tried.items[p[0].number].n >= 3 &&
           g.mean + predicted(s, b) - predicted(s, a) - 2 * g.sd > s->limits.equal;
}

/* The best few again, as often as there is room; half as many in the next block. */
static tare_status settle(struct tune_search *s, struct tune_block *out, size_t room, tare_error *err)
{
    size_t n;
    struct placed *p = placing(s, &n, err);
    if (!p) return TARE_NOMEM;
    size_t few = s->finalists < n ? s->finalists : n;
    bool over = few == 0 || is_settled(s, p, n);
    for (size_t i = 0; !over && out->n < room; i++) {
        struct tune_point at = s->tried.items[p[i % few].number].at;
        if (few == 1 && is_same(s, &at, &s->space->base)) over = true;
        out->at[out->n++] = at;
    }
    if (over) out->n = 0;
    s->finalists = s->finalists > 3 ? (s->finalists + 1) / 2 : 2;
    mem_free(p);
    return TARE_OK;
}

/* ---- ask and tell ---- */

tare_status tune_search_ask(struct tune_search *s, struct tune_block *out, tare_error *err)
{
    size_t left = s->limits.most - s->measured, room = s->limits.most / 6;
    *out = (struct tune_block){.n = 0};
    if (room < 4) room = 4;
    if (room > TUNE_BLOCK_MAX) room = TUNE_BLOCK_MAX;
    if (room > left) room = left;
    if (room < 2) return TARE_OK;
    out->at[out->n++] = s->space->base;
    surface_fit(&s->surface);
    if (s->finalists == 0) {
        if (!s->space->predict && s->measured * (s->limits.near ? 2 : 4) < s->limits.most)
            (s->limits.near ? step_out : spread)(s, out, room);
        else if (s->measured * 5 < s->limits.most * 3)
            explore(s, out, room, s->limits.equal / 4);
        surface_fit(&s->surface); /* beliefs are out again */
        if (out->n == 1 && s->measured * 5 < s->limits.most * 4) polish(s, out, room);
        if (out->n > 1) return TARE_OK;
        s->finalists = room - 1;
    }
    return settle(s, out, room, err);
}

static tare_status note(struct tune_search *s, const struct tune_point *at, const struct tune_answer *a,
                        tare_error *err)
{
    struct known *t = find(s, at);
    if (!t) {
        tare_status status = vec_push(&s->tried, ((struct known){.at = *at, .outcome = a->outcome}), err);
        if (status < 0) return status;
        t = vec_last(&s->tried);
    }
    s->measured++;
    t->n++;
    if (a->outcome != TUNE_MEASURED) t->outcome = a->outcome;
    if (!(a->cost > 0) || !isfinite(a->cost) || a->outcome == TUNE_FAILED) return TARE_OK;
    s->surface.p[s->surface.n++] = (struct surface_point){*at, s->blocks, log(a->cost) - predicted(s, at)};
    return TARE_OK;
}

tare_status tune_search_tell(struct tune_search *s, const struct tune_block *block,
                             const struct tune_answer *answers, tare_error *err)
{
    if (block->n > s->limits.most - s->measured)
        return error_set(err, TARE_INVALID, "%zu answers, and %zu measurements are left", block->n,
                         s->limits.most - s->measured);
    for (size_t i = 0; i < block->n; i++) {
        tare_status status = note(s, &block->at[i], &answers[i], err);
        if (status < 0) return status;
    }
    s->blocks++;
    return TARE_OK;
}

/* ---- the answer ---- */

static void describe(struct tune_search *s, const struct known *t, struct tune_tried *out)
{
    struct surface_guess g = surface_difference(&s->surface, &t->at, &s->space->base);
    double mean = g.mean + predicted(s, &t->at) - predicted(s, &s->space->base);
    *out = (struct tune_tried){.at = t->at, .outcome = t->outcome, .n = t->n};
    out->ratio = t->outcome == TUNE_FAILED
                     ? (struct interval){NAN, NAN, NAN}
                     : (struct interval){exp(mean), exp(mean - 1.96 * g.sd), exp(mean + 1.96 * g.sd)};
}

tare_status tune_search_tried(struct tune_search *s, struct tune_tried **out, size_t *n, size_t *best,
                              tare_error *err)
{
    *n = *best = 0;
    surface_fit(&s->surface);
    size_t good;
    struct placed *p = placing(s, &good, err);
    *out = p ? mem_new(s->tried.n + 1, sizeof **out) : NULL;
    if (!*out) {
        mem_free(p);
        return error_nomem(err, "%zu configurations", s->tried.n);
    }
    for (size_t i = 0; i < good; i++) describe(s, &s->tried.items[p[i].number], &(*out)[(*n)++]);
    for (size_t i = 0; i < s->tried.n; i++)
        if (s->tried.items[i].outcome != TUNE_MEASURED) describe(s, &s->tried.items[i], &(*out)[(*n)++]);
    for (size_t i = 1; i < good && p[i].level <= p[0].level + s->limits.equal; i++)
        if (price(s, &(*out)[i].at) < price(s, &(*out)[*best].at)) *best = i;
    mem_free(p);
    return TARE_OK;
}

#define RESOLUTION_MOST 0.1 /* where nothing near was measured, the surface knows little: the caller measures it then */

/* What `p` loses against `from`, ln, less what can be told apart: below 0 nothing that is worth a setting. */
static double loss(struct tune_search *s, const struct tune_point *p, const struct tune_point *from)
{
    struct surface_guess g = surface_difference(&s->surface, p, from);
    double resolution = fmin(fmax(s->limits.equal, g.sd), RESOLUTION_MOST);
    return g.mean + predicted(s, p) - predicted(s, from) - resolution;
}

void tune_search_simplify(struct tune_search *s, struct tune_point *at)
{
    const struct tune_point from = *at;
    surface_fit(&s->surface);
    for (bool dropped = true; dropped;) {
        size_t least = s->space->n;
        double little = 0;
        for (size_t k = 0; k < s->space->n; k++) {
            struct tune_point p = *at;
            p.at[k] = s->space->base.at[k];
            if (p.at[k] == at->at[k] || !is_allowed(s, &p) || is_ruled_out(s, &p)) continue;
            double l = loss(s, &p, &from);
            if (l >= little) continue;
            little = l;
            least = k;
        }
        dropped = least < s->space->n;
        if (dropped) at->at[least] = s->space->base.at[least];
    }
}
