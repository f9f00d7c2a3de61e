/* SPDX-License-Identifier: MIT
 * liveness_plan.c - see liveness.h. Placed blocks are found by time through a tree over all blocks in the order of
 * their first step, which holds the last step of the placed ones below each node. */
#include "model/cost/liveness.h"

#include <stdlib.h>

#include "core/mem.h"
#include "core/vec.h"

#define COMPARISONS_MAX UINT64_C(40000000) /* a second's work; then gaps are no longer looked for */

struct planner {
    struct plan_block *blocks;
    uint32_t *by_start; /* block numbers, by first step */
    uint32_t *by_size;
    uint32_t *rank; /* of each block in by_start */
    uint32_t *tree; /* 1 + the last step of a placed block; 0: none below */
    size_t n, leaves;
    VEC(uint32_t) near; /* placed blocks alive at the same time */
    uint64_t compared;
    uint64_t *sky, *sky_all; /* height over steps: of what is below a node, and of the node's whole stretch */
    size_t sky_leaves;
};

static int by_start(const void *a, const void *b, void *ctx)
{
    const struct plan_block *x = &((const struct plan_block *)ctx)[*(const uint32_t *)a];
    const struct plan_block *y = &((const struct plan_block *)ctx)[*(const uint32_t *)b];
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Larger first; of equal ones that which lives longer, then the earlier. */
static int by_size(const void *a, const void *b, void *ctx)
{
    const struct plan_block *x = &((const struct plan_block *)ctx)[*(const uint32_t *)a];
    const struct plan_block *y = &((const struct plan_block *)ctx)[*(const uint32_t *)b];
    uint32_t long_x = x->last - x->first, long_y = y->last - y->first;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (long_x != long_y) return long_x > long_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int by_offset(const void *a, const void *b, void *ctx)
{
    const struct plan_block *x = &((const struct plan_block *)ctx)[*(const uint32_t *)a];
    const struct plan_block *y = &((const struct plan_block *)ctx)[*(const uint32_t *)b];
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* ---- placed blocks by time ---- */

static void note_placed(struct planner *p, uint32_t block)
{
    size_t at = p->leaves + p->rank[block];
    uint32_t last = p->blocks[block].last + 1;
    for (; at; at /= 2) {
        if (p->tree[at] < last) p->tree[at] = last;
    }
}

/* Those below `node` that start at or before block b ends and end at or after it starts. */
static tare_status find_near(struct planner *p, size_t node, const struct plan_block *b, tare_error *err)
{
    tare_status s = TARE_OK;
    if (p->tree[node] <= b->first) return TARE_OK; /* none placed, or all gone by then */
    size_t left = node;
    while (left < p->leaves) left *= 2;
    left -= p->leaves; /* the first block below: the earliest to start */
    if (left >= p->n || p->blocks[p->by_start[left]].first > b->last) return TARE_OK;
    p->compared++;
    if (node >= p->leaves) return vec_push(&p->near, p->by_start[left], err);
    s = find_near(p, 2 * node, b, err);
    return s < 0 ? s : find_near(p, 2 * node + 1, b, err);
}

/* The lowest gap that is wide enough among what lives at the same time. */
static tare_status place_in_gap(struct planner *p, uint32_t block, tare_error *err)
{
    struct plan_block *b = &p->blocks[block];
    uint64_t at = 0;
    vec_clear(&p->near);
    tare_status s = find_near(p, 1, b, err);
    if (s < 0) return s;
    if (p->near.n) qsort_r(p->near.items, p->near.n, sizeof *p->near.items, by_offset, p->blocks);
    for (size_t i = 0; i < p->near.n; i++) {
        const struct plan_block *other = &p->blocks[p->near.items[i]];
        if (other->offset >= at && other->offset - at >= b->bytes) break;
        if (other->offset + other->bytes > at) at = other->offset + other->bytes;
    }
    b->offset = at;
    note_placed(p, block);
    return TARE_OK;
}

/* ---- on top of all that is there ---- */

struct range {
    uint32_t first, last; /* looked for */
    uint32_t from, to;    /* of the node */
};

static uint64_t sky_over(const struct planner *p, size_t node, struct range r)
{
    if (r.last < r.from || r.first > r.to) return 0;
    if (r.first <= r.from && r.to <= r.last) return p->sky[node];
    uint32_t mid = r.from + (r.to - r.from) / 2;
    uint64_t a = sky_over(p, 2 * node, (struct range){r.first, r.last, r.from, mid});
    uint64_t b = sky_over(p, 2 * node + 1, (struct range){r.first, r.last, mid + 1, r.to});
    uint64_t whole = p->sky_all[node];
    a = a > b ? a : b;
    return a > whole ? a : whole;
}

static void sky_raise(struct planner *p, size_t node, struct range r, uint64_t height)
{
    if (r.last < r.from || r.first > r.to) return;
    if (p->sky[node] < height) p->sky[node] = height;
    if (r.first <= r.from && r.to <= r.last) {
        if (p->sky_all[node] < height) p->sky_all[node] = height;
        return;
    }
    uint32_t mid = r.from + (r.to - r.from) / 2;
    sky_raise(p, 2 * node, (struct range){r.first, r.last, r.from, mid}, height);
    sky_raise(p, 2 * node + 1, (struct range){r.first, r.last, mid + 1, r.to}, height);
}

static struct range range_of(const struct planner *p, const struct plan_block *b)
{
    return (struct range){b->first, b->last, 0, (uint32_t)p->sky_leaves - 1};
}

static tare_status place_rest_on_top(struct planner *p, size_t from, uint32_t n_steps, tare_error *err)
{
    for (p->sky_leaves = 1; p->sky_leaves < n_steps;) p->sky_leaves *= 2;
    p->sky = mem_new(2 * p->sky_leaves, sizeof *p->sky);
    p->sky_all = mem_new(2 * p->sky_leaves, sizeof *p->sky_all);
    if (!p->sky || !p->sky_all) return error_nomem(err, "%u steps", n_steps);
    for (size_t i = 0; i < p->n; i++) {
        struct plan_block *b = &p->blocks[p->by_size[i]];
        if (i >= from) b->offset = sky_over(p, 1, range_of(p, b));
        sky_raise(p, 1, range_of(p, b), b->offset + b->bytes);
    }
    return TARE_OK;
}

/* ---- all ---- */

static tare_status planner_init(struct planner *p, struct plan_block *blocks, size_t n, tare_error *err)
{
    *p = (struct planner){.blocks = blocks, .n = n, .leaves = 1};
    while (p->leaves < n) p->leaves *= 2;
    p->by_start = mem_new(n, sizeof *p->by_start);
    p->by_size = mem_new(n, sizeof *p->by_size);
    p->rank = mem_new(n, sizeof *p->rank);
    p->tree = mem_new(2 * p->leaves, sizeof *p->tree);
    if (!p->by_start || !p->by_size || !p->rank || !p->tree) return error_nomem(err, "%zu blocks", n);
    for (size_t i = 0; i < n; i++) p->by_start[i] = p->by_size[i] = (uint32_t)i;
    qsort_r(p->by_start, n, sizeof *p->by_start, by_start, blocks);
    qsort_r(p->by_size, n, sizeof *p->by_size, by_size, blocks);
    for (size_t i = 0; i < n; i++) p->rank[p->by_start[i]] = (uint32_t)i;
    return TARE_OK;
}

static void planner_release(struct planner *p)
{
    mem_free(p->by_start);
    mem_free(p->by_size);
    mem_free(p->rank);
    mem_free(p->tree);
    mem_free(p->sky);
    mem_free(p->sky_all);
    vec_release(&p->near);
}

tare_status plan_place(struct plan_block *blocks, size_t n, uint32_t n_steps, uint64_t *end, tare_error *err)
{
    struct planner p;
    size_t i = 0;
    uint64_t top = 0;
    tare_status s = planner_init(&p, blocks, n, err);
    for (; s == TARE_OK && i < n && p.compared < COMPARISONS_MAX; i++)
        s = place_in_gap(&p, p.by_size[i], err);
    if (s == TARE_OK && i < n) s = place_rest_on_top(&p, i, n_steps, err);
    planner_release(&p);
    if (s < 0) return s;
    for (i = 0; i < n; i++) {
        if (blocks[i].offset + blocks[i].bytes > top) top = blocks[i].offset + blocks[i].bytes;
    }
    *end = top;
    return TARE_OK;
}
