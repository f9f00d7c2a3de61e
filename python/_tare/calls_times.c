/* SPDX-License-Identifier: MIT
 * calls_times.c - times of a thread's tree, less our own cost: each call of a node has spent the cost of its
 * own events in its own time and in its parent's. Never gives a negative time: where the cost is more than
 * what was measured, nothing is left. */
#include "calls_results.h"

#include "core/mem.h"

void times_release(struct call_times *t)
{
    mem_free(t->self);
    mem_free(t->total);
    mem_free(t->whole);
    mem_free(t->nodes);
    *t = (struct call_times){0};
}

static void collect(struct call_times *t, const struct call_ctx *c)
{
    for (size_t b = 0; b < c->blocks.n; b++) {
        size_t n = b + 1 == c->blocks.n ? c->used : b ? NODES_MORE : NODES_FIRST;
        for (size_t i = 0; i < n; i++) t->nodes[c->blocks.items[b][i].number] = &c->blocks.items[b][i];
    }
}

static enum call_kind kind_of(const struct recorder *rec, const struct call_node *n)
{
    return n->func == UINT32_MAX ? CALL_PYTHON : rec->funcs.items[n->func].kind;
}

/* Gross self time first, then less the cost of the node's own events and of its children's. */
static void add_self(struct call_times *t, const struct call_ctx *c, double tick_ns)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct call_node *n = t->nodes[i];
        const double *cost = c->rec->cost[kind_of(c->rec, n)];
        double gross = ((double)n->total - (double)n->away) * tick_ns;
        t->self[i] += gross - (double)n->calls * cost[COST_INNER];
        t->whole[i] = (double)n->total * tick_ns - (double)n->calls * cost[COST_INNER];
        if (!n->parent || (n->flags & NODE_FOLDED)) continue;
        t->self[n->parent->number] -= (double)n->total * tick_ns + (double)n->calls * cost[COST_OUTER];
    }
}

static void add_totals(struct call_times *t)
{
    for (size_t i = t->n; i-- > 0;) {
        const struct call_node *n = t->nodes[i];
        bool is_root = n->func == UINT32_MAX;
        if (t->self[i] < 0 || is_root) t->self[i] = 0;
        t->total[i] += t->self[i];
        if (!(n->flags & NODE_FOLDED))
            t->whole[i] = t->total[i];
        else if (t->whole[i] < t->self[i])
            t->whole[i] = t->self[i];
        if (n->parent) t->total[n->parent->number] += t->total[i];
    }
}

/* What folded children took belongs to the callers' whole time, though not to their place in the tree. */
static void add_away(struct call_times *t, double tick_ns)
{
    for (size_t i = t->n; i-- > 0;) {
        const struct call_node *n = t->nodes[i];
        if (n->flags & NODE_FOLDED) continue;
        t->whole[i] += (double)n->away * tick_ns;
        for (const struct call_node *up = n->away ? n->parent : NULL; up; up = up->parent)
            t->whole[up->number] += (double)n->away * tick_ns;
    }
}

bool times_of(struct call_times *t, struct call_ctx *c)
{
    *t = (struct call_times){.n = c->n_nodes};
    t->self = mem_new(t->n, sizeof *t->self);
    t->total = mem_new(t->n, sizeof *t->total);
    t->whole = mem_new(t->n, sizeof *t->whole);
    t->nodes = mem_new(t->n, sizeof(struct call_node *));
    if (!t->self || !t->total || !t->whole || !t->nodes) {
        times_release(t);
        return false;
    }
    double tick_ns = recorder_tick_ns(c->rec);
    collect(t, c);
    add_self(t, c, tick_ns);
    add_totals(t);
    add_away(t, tick_ns);
    return true;
}

/* ---- what is open ---- */

static void open_stack(const struct call_stack *s, uint64_t now, bool count)
{
    uint64_t sign = count ? 1 : UINT64_MAX; /* times minus one, modulo 2^64 */
    for (struct call_entry *e = s->top; e > s->base; e--) {
        uint64_t ticks = (s->paused ? s->paused : now) - e->start;
        e->node->calls += sign;
        e->node->total += sign * ticks;
        if (e->node->flags & NODE_FOLDED) e[-1].node->away += sign * ticks;
    }
}

void calls_open(struct recorder *rec, bool count)
{
    if (count) rec->opened = calls_now();
    for (size_t i = 0; i < rec->threads.n; i++) {
        const struct call_ctx *c = rec->threads.items[i];
        open_stack(&c->stack, rec->opened, count);
        for (size_t k = 0; k < c->parked.n; k++) open_stack(&c->parked.items[k], rec->opened, count);
    }
}
