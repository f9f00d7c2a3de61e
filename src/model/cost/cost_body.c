/* SPDX-License-Identifier: MIT
 * cost_body.c - costs of nodes that have bodies (If, Loop, Scan, calls of functions), and sums of costs. Never counts
 * a body that may not run as nothing. */
#include "model/cost/cost_rule.h"

#include <stddef.h>
#include <string.h>

#include "model/cost/cost.h"

static const size_t parts[COST_PARTS] = {
    offsetof(struct cost, macs),     offsetof(struct cost, int_macs),
    offsetof(struct cost, simple),   offsetof(struct cost, division),
    offsetof(struct cost, integer),  offsetof(struct cost, transcendental),
    offsetof(struct cost, read),     offsetof(struct cost, written),
    offsetof(struct cost, useful_macs),
};

static const struct poly **part(struct cost *c, size_t i)
{
    return (const struct poly **)(void *)((char *)c + parts[i]);
}

static const struct poly *part_of(const struct cost *c, size_t i)
{
    return *(const struct poly *const *)(const void *)((const char *)c + parts[i]);
}

/* ---- sums ---- */

static void note_unknown(struct cost *to, const struct cost *more)
{
    to->per_iteration = to->per_iteration || more->per_iteration;
    to->at_most = to->at_most || more->at_most;
    if (!more->known && to->known) to->why = more->why;
    to->known = to->known && more->known;
}

void cost_add(struct cost *to, const struct cost *more, struct poly_space *s)
{
    for (size_t i = 0; i < COST_PARTS; i++) {
        if (part_of(more, i)) *part(to, i) = poly_add(s, part_of(to, i), part_of(more, i));
        if (!part_of(to, i)) to->known = false;
    }
    note_unknown(to, more);
}

void cost_sum_release(struct cost_sum *sum)
{
    for (size_t i = 0; i < COST_PARTS; i++) map_u64_release(&sum->counts[i]);
}

tare_status cost_sum_add(struct cost_sum *sum, const struct cost *more, tare_error *err)
{
    uint64_t *count;
    for (size_t i = 0; i < COST_PARTS; i++) {
        if (!part_of(more, i) || poly_is(part_of(more, i), 0)) continue;
        tare_status s = map_u64_ref(&sum->counts[i], (uint64_t)(uintptr_t)part_of(more, i), &count, err);
        if (s < 0) return s;
        ++*count;
    }
    sum->per_iteration = sum->per_iteration || more->per_iteration;
    sum->at_most = sum->at_most || more->at_most;
    if (!more->known && !sum->unknown) sum->why = more->why;
    sum->unknown = sum->unknown || !more->known;
    return TARE_OK;
}

void cost_sum_take(const struct cost_sum *sum, struct poly_space *s, struct cost *out)
{
    cost_zero(out, s);
    for (size_t i = 0; i < COST_PARTS; i++) {
        const struct poly **to = part(out, i);
        const struct map_u64_slot *slot;
        for (size_t at = 0; (slot = map_u64_next(&sum->counts[i], &at));) {
            const struct poly *term = (const struct poly *)(uintptr_t)slot->key;
            *to = poly_add(s, *to, poly_mul(s, term, poly_int(s, (int64_t)slot->value)));
        }
        if (!*to) out->known = false, out->why = "the sum is too large to be told";
    }
    out->per_iteration = sum->per_iteration;
    out->at_most = sum->at_most;
    if (sum->unknown) out->known = false, out->why = sum->why;
}

/* ---- bodies ---- */

static tare_status cost_of_scope(struct cost *out, const struct inferred *m, const struct infer_scope *scope,
                                 tare_error *err)
{
    struct cost_sum sum = COST_SUM_INIT;
    struct cost one;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < scope->n_nodes; i++) {
        s = cost_of_node(&one, m, &scope->nodes[i], err);
        if (s == TARE_OK) s = cost_sum_add(&sum, &one, err);
    }
    if (s == TARE_OK) cost_sum_take(&sum, m->space, out);
    cost_sum_release(&sum);
    return s;
}

/* Either may run: each count is the greater of the two. */
static void dearer_of(struct cost *a, const struct cost *b, struct poly_space *s)
{
    struct cost both = *a;
    for (size_t i = 0; i < COST_PARTS; i++) {
        both.at_most |= part_of(a, i) != part_of(b, i);
        *part(&both, i) = poly_max(s, part_of(a, i), part_of(b, i));
    }
    both.known = a->known && b->known;
    both.why = a->known ? b->why : a->why;
    both.at_most |= b->at_most;
    both.per_iteration = a->per_iteration || b->per_iteration;
    *a = both;
}

static tare_status cost_of_if(struct cost *out, const struct inferred *m, const struct infer_node *n,
                              tare_error *err)
{
    if (n->n_bodies == 1) return cost_of_scope(out, m, n->bodies[0], err); /* the only one that can run */
    if (n->n_bodies != 2) {
        *out = (struct cost){.why = n->why ? n->why : "a branch is missing"};
        return TARE_OK;
    }
    struct cost other;
    tare_status s = cost_of_scope(out, m, n->bodies[0], err);
    if (s == TARE_OK) s = cost_of_scope(&other, m, n->bodies[1], err);
    if (s == TARE_OK) dearer_of(out, &other, m->space);
    return s;
}

/* Where the number of trips is not known, the cost of one trip is told and marked as such: a sum that left
 * the loop out would look like a whole one. */
static tare_status cost_of_loop(struct cost *out, const struct inferred *m, const struct infer_node *n,
                                tare_error *err)
{
    if (n->n_bodies != 1) {
        *out = (struct cost){.why = n->why ? n->why : "the body is missing"};
        return TARE_OK;
    }
    tare_status s = cost_of_scope(out, m, n->bodies[0], err);
    if (s != TARE_OK) return s;
    if (!n->trips) {
        out->per_iteration = true;
        out->known = false;
        out->why = "how often the body runs is not known before it does";
        return TARE_OK;
    }
    for (size_t i = 0; i < COST_PARTS; i++) {
        *part(out, i) = poly_mul(m->space, part_of(out, i), n->trips);
        if (!part_of(out, i)) out->known = false, out->why = "the sum is too large to be told";
    }
    return TARE_OK;
}

/* A graph that an operator applies inside of itself: what it computes; nothing of it leaves the kernel. */
static tare_status add_body(struct cost *to, const struct inferred *m, const struct infer_scope *body,
                            tare_error *err)
{
    struct cost more;
    tare_status s = cost_of_scope(&more, m, body, err);
    if (s != TARE_OK) return s;
    more.read = more.written = poly_int(m->space, 0);
    cost_add(to, &more, m->space);
    return s;
}

enum cost_kind cost_kind_of(const struct infer_node *n)
{
    const struct onnx_node *node = n->node;
    if (n->n_bodies == 1 && n->bodies[0] && n->bodies[0]->function) return COST_KIND_CALL;
    if (node->domain[0]) return COST_KIND_PLAIN;
    if (strcmp(node->op, "If") == 0) return COST_KIND_IF;
    if (strcmp(node->op, "Loop") == 0 || strcmp(node->op, "Scan") == 0) return COST_KIND_LOOP;
    return COST_KIND_PLAIN;
}

tare_status cost_of_node(struct cost *out, const struct inferred *m, const struct infer_node *n,
                         tare_error *err)
{
    tare_status s = TARE_OK;
    switch (cost_kind_of(n)) {
    case COST_KIND_IF: s = cost_of_if(out, m, n, err); break;
    case COST_KIND_LOOP: s = cost_of_loop(out, m, n, err); break;
    case COST_KIND_CALL: s = cost_of_scope(out, m, n->bodies[0], err); break;
    case COST_KIND_PLAIN:
        cost_of_row(out, m->space, n);
        for (size_t i = 0; s == TARE_OK && out->macs && i < n->n_bodies; i++)
            s = add_body(out, m, n->bodies[i], err);
        break;
    }
    return s == TARE_OK ? poly_space_status(m->space, err) : s;
}
