/* SPDX-License-Identifier: MIT
 * liveness.c - see liveness.h. Values that share bytes (views, results written over an input) are one block; a block
 * lives from its first step to its last reader. Bodies are weighed on their own and stand on top of what is alive
 * around them while their node runs. */
#include "model/cost/liveness.h"

#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "model/infer/op.h"

enum { NOT_OURS = UINT32_MAX, FOR_EVER = UINT32_MAX - 1 };

struct block {
    const struct infer_value *value; /* the first that has these bytes */
    uint64_t bytes;
    uint32_t first, last;
    uint32_t same; /* the block that this one became part of; its own number: none */
    bool external; /* memory of the caller or of the weights */
};

struct scope_blocks { /* one scope */
    const struct inferred *m;
    const struct infer_scope *scope;
    const struct poly_binding *dims;
    size_t n_dims;
    struct map_u64 numbers; /* value (its address) -> block */
    VEC(struct block) blocks;
    uint64_t *inner_peak, *inner_arena; /* per step: what bodies need there */
    struct liveness *out;
    tare_error *err;
};

static uint64_t key_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static struct block *block_of(struct scope_blocks *w, const struct infer_value *v)
{
    const uint64_t *at = v ? map_u64_find(&w->numbers, key_of(v)) : NULL;
    if (!at || *at >= w->blocks.n || !w->blocks.items) return NULL;
    uint32_t i = (uint32_t)*at;
    while (w->blocks.items[i].same != i) {
        w->blocks.items[i].same = w->blocks.items[w->blocks.items[i].same].same;
        i = w->blocks.items[i].same;
    }
    return &w->blocks.items[i];
}

static void join_blocks(struct block *into, struct block *b, const struct block *first)
{
    if (into == b) return;
    b->same = (uint32_t)(into - first);
    if (b->last > into->last) into->last = b->last;
    if (b->first < into->first) into->first = b->first;
}

/* ---- values ---- */

/* Everything that is told here is at most the sum: when that fits, all does. */
static bool fits_in_place(const struct scope_blocks *w, uint64_t more)
{
    return more <= (uint64_t)INT64_MAX - w->out->sum;
}

static void size_of(struct scope_blocks *w, struct block *b)
{
    int64_t bytes;
    if (poly_eval(infer_bytes(w->m->space, b->value), w->dims, w->n_dims, &bytes) && bytes >= 0 &&
        fits_in_place(w, (uint64_t)bytes)) {
        b->bytes = (uint64_t)bytes;
        return;
    }
    w->out->unknown++;
    w->out->known = false;
}

static tare_status add_block(struct scope_blocks *w, const struct infer_value *v, struct block b)
{
    if (!v || map_u64_find(&w->numbers, key_of(v))) return TARE_OK;
    b.value = v;
    b.same = (uint32_t)w->blocks.n;
    tare_status s = vec_push(&w->blocks, b, w->err);
    return s < 0 ? s : map_u64_put(&w->numbers, key_of(v), w->blocks.n - 1, w->err);
}

/* What nodes make in every run; all else that is named here comes from outside, or is made once. */
static tare_status add_blocks(struct scope_blocks *w)
{
    tare_status s = TARE_OK;
    const struct infer_scope *scope = w->scope;
    for (size_t i = 0; i < scope->n_nodes; i++) {
        const struct infer_node *n = &scope->nodes[i];
        for (size_t k = 0; s == TARE_OK && k < n->node->outputs.n; k++) {
            const struct infer_value *v = n->outputs[k];
            struct block b = {
                .first = (uint32_t)i, .last = (uint32_t)i, .external = v && (v->constant || v->folded)};
            s = add_block(w, v, b);
        }
    }
    for (size_t i = 0; s == TARE_OK && i < scope->n_values; i++)
        s = add_block(w, scope->values[i], (struct block){.external = true});
    return s;
}

/* The main graph's outputs stay to the end. Those of a body are its node's, and counted there. */
static void mark_outputs(struct scope_blocks *w)
{
    const struct infer_scope *s = w->scope;
    size_t n = s->graph ? s->graph->outputs.n : s->function->outputs.n;
    for (size_t i = 0; i < n; i++) {
        const char *name = s->graph ? s->graph->outputs.items[i].name : s->function->outputs.items[i];
        struct block *b = block_of(w, infer_value(s, name));
        if (b && s->outer) b->external = true;
        if (b) b->last = FOR_EVER;
    }
}

/* ---- readers ---- */

static void read_at(struct scope_blocks *w, const struct infer_value *v, uint32_t step)
{
    struct block *b = block_of(w, v);
    if (b && b->last < step) b->last = step;
}

/* Whatever nodes of a body read from around it is read by the node that has the body. */
static void read_bodies(struct scope_blocks *w, const struct infer_node *n, uint32_t step)
{
    for (size_t i = 0; i < n->n_bodies; i++) {
        const struct infer_scope *body = n->bodies[i];
        if (!body || body->function) continue; /* a function sees its inputs only */
        for (size_t k = 0; k < body->n_nodes; k++) {
            const struct infer_node *inner = &body->nodes[k];
            for (size_t j = 0; j < inner->node->inputs.n; j++) read_at(w, inner->inputs[j], step);
            read_bodies(w, inner, step);
        }
        for (size_t k = 0; k < body->graph->outputs.n; k++)
            read_at(w, infer_value(body, body->graph->outputs.items[k].name), step);
    }
}

static void note_readers(struct scope_blocks *w)
{
    for (size_t i = 0; i < w->scope->n_nodes; i++) {
        const struct infer_node *n = &w->scope->nodes[i];
        for (size_t k = 0; k < n->node->inputs.n; k++) read_at(w, n->inputs[k], (uint32_t)i);
        read_bodies(w, n, (uint32_t)i);
    }
}

/* ---- sharing ---- */

static bool is_plain(const struct infer_node *n)
{
    return n->n_bodies == 0 && n->node->inputs.n && n->node->outputs.n && n->outputs[0];
}

static bool has_flag(const struct infer_node *n, enum op_flags flag)
{
    const struct op_row *row = op_find_cost(n->node->domain, n->node->op);
    return row && row->flags & flag;
}

static void join_views(struct scope_blocks *w)
{
    for (size_t i = 0; i < w->scope->n_nodes; i++) {
        const struct infer_node *n = &w->scope->nodes[i];
        if (!is_plain(n) || !has_flag(n, OP_VIEW)) continue;
        struct block *from = block_of(w, n->inputs[0]), *to = block_of(w, n->outputs[0]);
        if (!from || !to || to->external) continue;
        join_blocks(from, to, w->blocks.items);
    }
}

/* Equal polynomials are counted, not added one by one: a sum of each would be kept for ever. */
static void sum_formula(struct scope_blocks *w, const struct map_u64 *counts)
{
    struct poly_space *s = w->m->space;
    const struct map_u64_slot *slot;
    w->out->sum_formula = poly_int(s, 0);
    for (size_t at = 0; (slot = map_u64_next(counts, &at));) {
        const struct poly *bytes = (const struct poly *)(uintptr_t)slot->key;
        const struct poly *all = poly_mul(s, bytes, poly_int(s, (int64_t)slot->value));
        w->out->sum_formula = poly_add(s, w->out->sum_formula, all);
    }
}

/* Comes after views were joined and before results reuse inputs: the sum is of all bytes that some node
 * writes, whoever gave them their place. */
static tare_status sum_up(struct scope_blocks *w)
{
    struct map_u64 counts = MAP_U64_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < w->blocks.n; i++) {
        struct block *b = &w->blocks.items[i];
        uint64_t *count;
        if (b->same != i || b->external) continue;
        size_of(w, b);
        w->out->sum += b->bytes;
        const struct poly *bytes = infer_bytes(w->m->space, b->value);
        if (bytes) s = map_u64_ref(&counts, key_of(bytes), &count, w->err);
        if (bytes && s == TARE_OK) ++*count;
    }
    if (s == TARE_OK) sum_formula(w, &counts);
    map_u64_release(&counts);
    return s;
}

/* An input that nobody needs after this node gives its bytes to the result, when it has just as many. */
static void join_in_place(struct scope_blocks *w, const struct infer_node *n, uint32_t step)
{
    struct block *to = block_of(w, n->outputs[0]);
    if (!to || to->external || to->first != step) return;
    for (size_t k = 0; k < n->node->inputs.n && k < 2; k++) {
        struct block *from = block_of(w, n->inputs[k]);
        if (!from || from == to || from->external || from->last != step || from->bytes != to->bytes) continue;
        join_blocks(from, to, w->blocks.items);
        return;
    }
}

static void reuse_input(struct scope_blocks *w)
{
    for (size_t i = 0; i < w->scope->n_nodes; i++) {
        const struct infer_node *n = &w->scope->nodes[i];
        if (is_plain(n) && has_flag(n, OP_IN_PLACE)) join_in_place(w, n, (uint32_t)i);
    }
}

/* ---- bodies ---- */

static tare_status watch_scope(const struct scope_blocks *outer, const struct infer_scope *scope,
                               struct liveness *out);

/* What bodies need stands on top of what is alive at their node's step. One whose sum would not fit beside ours is
 * unknown: no number here may wrap. */
static tare_status weigh_bodies(struct scope_blocks *w)
{
    for (size_t i = 0; i < w->scope->n_nodes; i++) {
        const struct infer_node *n = &w->scope->nodes[i];
        for (size_t k = 0; k < n->n_bodies; k++) {
            struct liveness inner = LIVENESS_INIT;
            if (!n->bodies[k]) continue;
            tare_status s = watch_scope(w, n->bodies[k], &inner);
            if (s < 0) return s;
            if (!fits_in_place(w, inner.sum)) {
                inner.sum = inner.peak = inner.arena = 0;
                inner.known = false;
                inner.unknown++;
            }
            if (inner.peak > w->inner_peak[i]) w->inner_peak[i] = inner.peak;
            if (inner.arena > w->inner_arena[i]) w->inner_arena[i] = inner.arena;
            w->out->sum += inner.sum;
            w->out->sum_formula = poly_add(w->m->space, w->out->sum_formula, inner.sum_formula);
            w->out->unknown += inner.unknown;
            w->out->known = w->out->known && inner.known;
            liveness_release(&inner);
        }
    }
    return TARE_OK;
}

/* ---- what is alive when ---- */

static bool counts_as_memory(const struct scope_blocks *w, size_t i)
{
    const struct block *b = &w->blocks.items[i];
    return b->same == i && !b->external && b->bytes;
}

static uint32_t last_of(const struct scope_blocks *w, const struct block *b)
{
    return b->last == FOR_EVER ? (uint32_t)w->scope->n_nodes - 1 : b->last;
}

/* One pass over steps: blocks are added where they begin and taken away behind their last step. The first
 * of equal peaks is named, so that the answer does not depend on the order of blocks. */
static tare_status find_peak(struct scope_blocks *w, size_t *at)
{
    size_t n = w->scope->n_nodes;
    uint64_t *change = mem_new(n + 1, sizeof *change), alive = 0; /* wraps, as sums of differences may */
    if (!change) return error_nomem(w->err, "%zu steps", n);
    for (size_t i = 0; i < w->blocks.n; i++) {
        if (!counts_as_memory(w, i)) continue;
        change[w->blocks.items[i].first] += w->blocks.items[i].bytes;
        change[last_of(w, &w->blocks.items[i]) + 1] -= w->blocks.items[i].bytes;
    }
    *at = 0;
    for (size_t i = 0; i < n; i++) {
        alive += change[i];
        if (alive + w->inner_peak[i] <= w->out->peak) continue;
        w->out->peak = alive + w->inner_peak[i];
        *at = i;
    }
    mem_free(change);
    return TARE_OK;
}

static int larger_first(const void *a, const void *b)
{
    const struct live_tensor *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorted by size, then by name: the same model gives the same list. A node without a name is called by its
 * first output. */
static tare_status name_alive(struct scope_blocks *w, size_t at)
{
    VEC(struct live_tensor) alive = VEC_INIT;
    tare_status s = TARE_OK;
    const struct onnx_node *n = w->scope->nodes[at].node;
    for (size_t i = 0; s == TARE_OK && i < w->blocks.n; i++) {
        const struct block *b = &w->blocks.items[i];
        if (!counts_as_memory(w, i) || b->first > at || last_of(w, b) < at) continue;
        s = vec_push(&alive, ((struct live_tensor){b->value->name, b->bytes}), w->err);
    }
    if (s < 0) {
        vec_release(&alive);
        return s;
    }
    if (alive.n) qsort(alive.items, alive.n, sizeof *alive.items, larger_first);
    w->out->peak_node = n->name[0] || !n->outputs.n ? n->name : n->outputs.items[0];
    w->out->alive = alive.items;
    w->out->n_alive = alive.n;
    return TARE_OK;
}

/* A body's own arena stands in this one as a block that lives for the step of its node only. */
static tare_status plan_arena(struct scope_blocks *w)
{
    VEC(struct plan_block) blocks = VEC_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < w->blocks.n; i++) {
        const struct block *b = &w->blocks.items[i];
        if (counts_as_memory(w, i))
            s = vec_push(&blocks, ((struct plan_block){b->first, last_of(w, b), b->bytes, 0}), w->err);
    }
    for (uint32_t i = 0; s == TARE_OK && i < w->scope->n_nodes; i++) {
        if (w->inner_arena[i])
            s = vec_push(&blocks, ((struct plan_block){i, i, w->inner_arena[i], 0}), w->err);
    }
    if (s == TARE_OK)
        s = plan_place(blocks.items, blocks.n, (uint32_t)w->scope->n_nodes, &w->out->arena, w->err);
    vec_release(&blocks);
    return s;
}

static tare_status watch_all(struct scope_blocks *w)
{
    size_t at = 0;
    tare_status s = add_blocks(w);
    if (s < 0) return s;
    note_readers(w);
    mark_outputs(w);
    join_views(w);
    s = sum_up(w);
    if (s < 0) return s;
    reuse_input(w);
    s = weigh_bodies(w);
    if (s == TARE_OK) s = find_peak(w, &at);
    if (s == TARE_OK) s = name_alive(w, at);
    return s == TARE_OK ? plan_arena(w) : s;
}

/* Calls itself through weigh_bodies(): a body is a scope of its own, with blocks of its own. A scope
 * without nodes needs nothing, and has no step that the rest could look at. */
static tare_status watch_scope(const struct scope_blocks *outer, const struct infer_scope *scope,
                               struct liveness *out)
{
    struct scope_blocks w = {outer->m, scope, outer->dims, outer->n_dims, MAP_U64_INIT,
                      VEC_INIT, NULL,  NULL,        out,           outer->err};
    tare_status s = TARE_OK;
    *out = (struct liveness){.known = true, .sum_formula = poly_int(outer->m->space, 0)};
    if (scope->n_nodes == 0) return TARE_OK;
    w.inner_peak = mem_new(scope->n_nodes, sizeof *w.inner_peak);
    w.inner_arena = mem_new(scope->n_nodes, sizeof *w.inner_arena);
    if (!w.inner_peak || !w.inner_arena) {
        s = error_nomem(w.err, "%zu nodes", scope->n_nodes);
    } else {
        s = watch_all(&w);
    }
    mem_free(w.inner_peak);
    mem_free(w.inner_arena);
    map_u64_release(&w.numbers);
    vec_release(&w.blocks);
    if (s < 0) liveness_release(out);
    return s;
}

tare_status liveness_of(struct liveness *out, const struct inferred *m, const struct poly_binding *dims,
                        size_t n, tare_error *err)
{
    const struct scope_blocks outer = {.m = m, .dims = dims, .n_dims = n, .err = err};
    struct liveness l;
    tare_status s = watch_scope(&outer, m->main, &l);
    if (s < 0) return s;
    s = poly_space_status(m->space, err);
    if (s < 0)
        liveness_release(&l);
    else
        *out = l;
    return s;
}

void liveness_release(struct liveness *l)
{
    mem_free(l->alive);
    *l = (struct liveness)LIVENESS_INIT;
}
