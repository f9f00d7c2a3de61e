/* SPDX-License-Identifier: MIT
 * layer_times.c - see layer_parts.h. Means over the same runs add up to the mean of these runs, whatever interrupted
 * them; medians of nodes would not: on a busy machine nearly every run is interrupted somewhere, each node seldom.
 * And what a profile tells of shapes and free dimensions (layers.h), so that costs are of what ran and not of a batch
 * of one. Never guesses: a dimension that shows nowhere alone is not told. */
#include "analyze/layers/layer_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/layers/layers.h"
#include "core/mem.h"
#include "core/stats.h"

enum { RUNS_LEAST = 3 };

struct timing {
    struct layer_times *t;
    const struct ort_profile *p;
    uint64_t skip;
    bool unfinished;      /* no run in the file ended: all events count as one run */
    struct map_str index; /* (parent slot, name) -> slot */
    bool *typical;        /* per run: its times are taken */
    size_t n_typical;
    tare_error *err;
};

static bool counts(const struct timing *t, const struct ort_event *e)
{
    return t->unfinished || (e->run >= t->skip && e->run < t->p->runs_us.n);
}

/* ---- the sequence of the main graph ---- */

/* The same names in the same order in every run? Names are kept once by the reader: equal ones are the same pointer. */
static tare_status find_sequence(struct timing *t)
{
    size_t runs = t->p->runs_us.n, first = 0;
    VEC(const char *) names = VEC_INIT;
    size_t *at = mem_new(runs + 1, sizeof *at);
    bool same = true;
    tare_status s = at ? TARE_OK : error_nomem(t->err, "the runs of a profile");
    for (size_t i = 0; s == TARE_OK && same && i < t->p->events.n; i++) {
        const struct ort_event *e = &t->p->events.items[i];
        if (!counts(t, e) || e->parent != SIZE_MAX) continue;
        if (names.n == 0) first = e->run;
        size_t k = at[e->run]++;
        if (e->run == first)
            s = vec_push(&names, e->node, t->err);
        else
            same = k < names.n && names.items[k] == e->node;
    }
    for (size_t r = t->skip; s == TARE_OK && same && !t->unfinished && r < runs; r++) same = at[r] == names.n;
    t->t->by_position = same && !t->unfinished && names.n > 0;
    t->t->n_main = t->t->by_position ? names.n : 0;
    mem_free(at);
    vec_release(&names);
    return s;
}

/* ---- slots ---- */

/* A name occurs once in a profile's memory, so its address is the key. The bytes of the key are compared: padding, too,
 * must be zero. */
static tare_status slot_by_name(struct timing *t, size_t event, size_t parent)
{
    const struct ort_event *e = &t->p->events.items[event];
    struct {
        size_t parent;
        const char *name;
    } key;
    uint64_t *at;
    size_t before = t->index.n;
    memset(&key, 0, sizeof key);
    key.parent = parent;
    key.name = e->node;
    tare_status s = map_str_ref(&t->index, (const char *)&key, sizeof key, &at, t->err);
    if (s == TARE_OK && t->index.n > before) {
        *at = t->t->slots.n;
        s = vec_push(&t->t->slots, ((struct layer_slot){.event = e, .parent = parent}), t->err);
    }
    if (s == TARE_OK) t->t->slot_of[event] = (size_t)*at;
    return s;
}

/* Slots 0 .. n_main - 1, from the first run that counts. */
static tare_status reserve_sequence(struct timing *t)
{
    tare_status s = TARE_OK;
    for (size_t k = 0; s == TARE_OK && k < t->t->n_main; k++)
        s = vec_push(&t->t->slots, ((struct layer_slot){.parent = SIZE_MAX}), t->err);
    return s;
}

/* Events come parents first, so the slot of the node around one is known when it comes. */
static tare_status find_slots(struct timing *t)
{
    size_t *at = mem_new(t->p->runs_us.n + 1, sizeof *at);
    tare_status s = at ? reserve_sequence(t) : error_nomem(t->err, "a profile");
    for (size_t i = 0; s == TARE_OK && i < t->p->events.n; i++) {
        const struct ort_event *e = &t->p->events.items[i];
        t->t->slot_of[i] = SIZE_MAX;
        if (!counts(t, e)) continue;
        if (e->parent == SIZE_MAX && t->t->by_position)
            t->t->slot_of[i] = at[e->run]++;
        else
            s = slot_by_name(t, i, e->parent == SIZE_MAX ? SIZE_MAX : t->t->slot_of[e->parent]);
        if (s < 0) break;
        struct layer_slot *slot = &t->t->slots.items[t->t->slot_of[i]];
        if (!slot->event) slot->event = e;
        slot->calls++;
        if (__builtin_add_overflow(slot->total_us, e->self_us, &slot->total_us)) slot->total_us = INT64_MAX;
        t->t->events++;
    }
    mem_free(at);
    return s;
}

/* ---- which runs are typical ---- */

struct ranked {
    double away; /* from the median */
    size_t run;
};

static int by_distance(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->away != y->away) return x->away < y->away ? -1 : 1;
    return x->run < y->run ? -1 : x->run > y->run;
}

/* The fifth of the runs that is nearest to the median: also where half of them were interrupted. */
static tare_status choose_runs(struct timing *t)
{
    size_t n = t->unfinished ? 0 : (size_t)t->t->runs, least = n < RUNS_LEAST ? n : RUNS_LEAST;
    struct ranked *order = mem_new(n, sizeof *order);
    double *x = mem_new(n, sizeof *x);
    t->typical = mem_new(t->p->runs_us.n + 1, sizeof *t->typical);
    tare_status s = order && x && t->typical ? TARE_OK : error_nomem(t->err, "a profile");
    for (size_t i = 0; s == TARE_OK && i < n; i++) x[i] = (double)t->p->runs_us.items[t->skip + i];
    if (s == TARE_OK && n) s = stats_median(x, n, &t->t->median_us, t->err);
    for (size_t i = 0; s == TARE_OK && i < n; i++)
        order[i] = (struct ranked){fabs(x[i] - t->t->median_us), (size_t)t->skip + i};
    t->n_typical = n / 5 > least ? n / 5 : least;
    if (s == TARE_OK && n) qsort(order, n, sizeof *order, by_distance);
    while (s == TARE_OK && n && t->n_typical < n && order[t->n_typical].away <= order[t->n_typical - 1].away)
        t->n_typical++; /* equal ones are equally typical */
    for (size_t i = 0; s == TARE_OK && i < t->n_typical; i++) t->typical[order[i].run] = true;
    if (s == TARE_OK && t->unfinished) {
        t->typical[0] = true;
        t->n_typical = 1;
    }
    mem_free(order);
    mem_free(x);
    return s;
}

static void time_slots(struct timing *t)
{
    for (size_t i = 0; i < t->p->events.n; i++) {
        const struct ort_event *e = &t->p->events.items[i];
        if (t->t->slot_of[i] == SIZE_MAX || !t->typical[e->run]) continue;
        t->t->slots.items[t->t->slot_of[i]].time_us += (double)e->self_us / (double)t->n_typical;
    }
}

/* A profile in which no run ended (the program was killed) counts as one run of unknown length, of which nothing is
 * skipped. */
tare_status layer_times_build(struct layer_times *out, const struct ort_profile *p, uint64_t skip_runs,
                              tare_error *err)
{
    struct layer_times made = LAYER_TIMES_INIT;
    struct timing t = {.t = &made, .p = p, .skip = skip_runs, .index = MAP_STR_INIT, .err = err};
    t.unfinished = p->runs_us.n == 0;
    made.median_us = NAN;
    made.runs = p->runs_us.n > skip_runs ? p->runs_us.n - skip_runs : 0;
    if (t.unfinished) made.runs = 1;
    made.slot_of = mem_new(p->events.n, sizeof *made.slot_of);
    tare_status s = made.slot_of ? TARE_OK : error_nomem(err, "a profile");
    if (s == TARE_OK) s = find_sequence(&t);
    if (s == TARE_OK) s = find_slots(&t);
    if (s == TARE_OK) s = choose_runs(&t);
    if (s == TARE_OK) time_slots(&t);
    mem_free(t.typical);
    map_str_release(&t.index);
    if (s < 0) {
        layer_times_release(&made);
        return s;
    }
    *out = made;
    return TARE_OK;
}

void layer_times_release(struct layer_times *t)
{
    vec_release(&t->slots);
    mem_free(t->slot_of);
    *t = (struct layer_times)LAYER_TIMES_INIT;
}

/* ---- which node of the graph ---- */

tare_status layer_nodes_names(struct map_str *to, const struct onnx_graph *g, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; g && s == TARE_OK && i < g->nodes.n; i++) {
        const char *name = g->nodes.items[i].name;
        size_t n = strlen(name);
        if (n && !map_str_find(to, name, n)) s = map_str_put(to, name, n, i + 1, err);
    }
    return s;
}

/* The runtime writes its graph in the order it runs it; a node without a name is called Op_<number> in profiles. */
static bool is_in_order(const struct layer_times *t, const struct onnx_graph *g)
{
    if (!g || !t->by_position || t->n_main != g->nodes.n) return false;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        const struct ort_event *e = t->slots.items[i].event;
        if (strcmp(n->op, e->op) != 0 || (n->name[0] && strcmp(n->name, e->node) != 0)) return false;
    }
    return true;
}

tare_status layer_nodes_init(struct layer_nodes *n, const struct layer_times *t, const struct onnx_graph *g,
                             tare_error *err)
{
    n->in_order = is_in_order(t, g);
    return layer_nodes_names(&n->named, g, err);
}

void layer_nodes_release(struct layer_nodes *n)
{
    map_str_release(&n->named);
}

size_t layer_nodes_find(const struct layer_nodes *n, const struct layer_times *t, size_t slot)
{
    const struct layer_slot *s = &t->slots.items[slot];
    if (s->parent != SIZE_MAX) return SIZE_MAX;
    if (n->in_order) return slot;
    const uint64_t *at = map_str_find(&n->named, s->event->node, strlen(s->event->node));
    return at ? (size_t)*at - 1 : SIZE_MAX;
}

/* ---- shapes ---- */

struct seeing {
    struct arena *into;
    struct infer_seen *items;
    size_t n;
};

static void see_slot(struct seeing *s, const struct onnx_node *node, const struct ort_event *e)
{
    size_t told = 0;
    for (size_t k = 0; k < node->outputs.n; k++) told += node->outputs.items[k][0] != 0;
    if (told != e->n_outputs) return; /* left-out outputs may or may not be listed */
    for (size_t k = 0, at = 0; k < node->outputs.n; k++) {
        if (!node->outputs.items[k][0]) continue;
        const struct ort_shape *shape = &e->outputs[at++];
        int64_t *dims = arena_new(s->into, shape->rank ? shape->rank : 1, sizeof *dims);
        if (!dims) return;
        memcpy(dims, shape->dims, shape->rank * sizeof *dims);
        s->items[s->n++] =
            (struct infer_seen){arena_str(s->into, node->outputs.items[k]), shape->type, dims, shape->rank};
    }
}

/* The first slot of a node decides. A node adds at most one item per output, so the room is known beforehand. */
static tare_status see_all(struct seeing *s, const struct layer_times *t, const struct onnx_graph *g,
                           tare_error *err)
{
    struct layer_nodes nodes = LAYER_NODES_INIT;
    size_t room = 0;
    tare_status st = layer_nodes_init(&nodes, t, g, err);
    for (size_t i = 0; i < g->nodes.n; i++) room += g->nodes.items[i].outputs.n;
    bool *done = st == TARE_OK ? mem_new(g->nodes.n, sizeof *done) : NULL;
    if (done) s->items = arena_new(s->into, room + 1, sizeof *s->items);
    if (st == TARE_OK && !s->items) st = error_nomem(err, "shapes");
    for (size_t k = 0; st == TARE_OK && k < t->slots.n; k++) {
        size_t node = layer_nodes_find(&nodes, t, k);
        if (node == SIZE_MAX || done[node]) continue;
        done[node] = true;
        see_slot(s, &g->nodes.items[node], t->slots.items[k].event);
    }
    mem_free(done);
    layer_nodes_release(&nodes);
    if (st == TARE_OK && s->into->failed) st = error_nomem(err, "shapes");
    return st;
}

tare_status layers_seen(const struct ort_profile *p, const struct onnx_model *graph, struct arena *into,
                        struct layers_shapes *out, tare_error *err)
{
    struct layer_times t = LAYER_TIMES_INIT;
    struct seeing s = {.into = into};
    tare_status st = layer_times_build(&t, p, 0, err);
    if (st == TARE_OK) st = see_all(&s, &t, &graph->graph, err);
    layer_times_release(&t);
    if (st < 0) return st;
    *out = (struct layers_shapes){s.items, s.n};
    return TARE_OK;
}

/* ---- free dimensions ---- */

bool layers_has_dim(const struct onnx_model *m, const char *name)
{
    for (size_t i = 0; i < m->graph.inputs.n; i++) {
        const struct onnx_value *v = &m->graph.inputs.items[i];
        for (size_t d = 0; v->has_shape && d < v->dims.n; d++) {
            char label[220];
            const struct onnx_dim *dim = &v->dims.items[d];
            snprintf(label, sizeof label, "%.180s.%zu", v->name, d);
            if (dim->value < 0 && strcmp(dim->name[0] ? dim->name : label, name) == 0) return true;
        }
    }
    return false;
}

bool layers_dim_seen(const struct inspected *i, const char *name, const struct layers_shapes *seen,
                     int64_t *value)
{
    const struct poly *symbol = poly_symbol(i->shapes.space, name); /* equal ones are the same pointer */
    for (size_t k = 0; symbol && k < seen->n; k++) {
        const struct infer_value *v = infer_value(i->shapes.main, seen->items[k].value);
        if (!v || !v->has_rank || v->rank != seen->items[k].rank || v->profiled) continue;
        for (size_t d = 0; d < v->rank; d++) {
            if (v->dims[d] != symbol) continue;
            *value = seen->items[k].dims[d];
            return true;
        }
    }
    return false;
}
