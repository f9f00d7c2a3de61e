/* SPDX-License-Identifier: MIT
 * inspect_record.c - what inspect.h found, into the run document. What is not known stays null, with the reason. */
#include "analyze/layers/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/layers/layer_parts.h"
#include "core/mem.h"

/* field of the document, expression over struct cost *c and struct inspected *i */
#define COST_MAP(X)                                                                                \
    X(macs, c->macs)                                                                               \
    X(int_macs, c->int_macs)                                                                       \
    X(flops, cost_flops(c, inspect_shapes(i)->space))                                              \
    X(simple, c->simple)                                                                           \
    X(division, c->division)                                                                       \
    X(transcendental, c->transcendental)                                                           \
    X(integer, c->integer)                                                                         \
    X(bytes_read, c->read)                                                                         \
    X(bytes_written, c->written)                                                                   \
    X(useful_macs, c->useful_macs)

struct run_cost inspect_cost(const struct inspected *i, const struct cost *c)
{
    struct run_cost out = {
        .known = true, .complete = known_bool(c->known), .at_most = known_bool(c->at_most)};
#define X(field, value) out.field = inspect_number(i, value);
    COST_MAP(X)
#undef X
    return out;
}

/* Names of models may hold anything; keys of a document are short and printable. */
static const char *key_text(struct arena *a, const char *name)
{
    enum { SHOWN = RUN_KEY_MAX - 1 };
    size_t n = strnlen(name, SHOWN);
    const char *copy = arena_str_n(a, name, n);
    char *key = arena_new(a, n + 2, 1);
    if (!copy || !key) return NULL;
    for (size_t i = 0; i < n; i++) key[i] = copy[i] >= ' ' && copy[i] < 127 ? copy[i] : '?';
    if (n == 0) key[0] = '?';
    return key;
}

/* ---- operators ---- */

static int more_first(const void *a, const void *b)
{
    const struct map_str_entry *x = *(const struct map_str_entry *const *)a;
    const struct map_str_entry *y = *(const struct map_str_entry *const *)b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return strcmp(x->key, y->key);
}

static void put_counts(struct run *run, struct run_map *to, const struct map_str *counts)
{
    enum { KINDS_MAX = 1000 }; /* different operators that are told */
    const struct map_str_entry **order = mem_new(counts->n, sizeof *order);
    if (!order) {
        run->arena.failed = true;
        return;
    }
    for (size_t i = 0; i < counts->n; i++) order[i] = &counts->entries[i];
    qsort(order, counts->n, sizeof *order, more_first);
    for (size_t i = 0; i < counts->n && i < KINDS_MAX; i++) {
        const char *key = key_text(&run->arena, order[i]->key);
        if (key) run_map_int(&run->arena, to, key, (int64_t)order[i]->value);
    }
    mem_free(order);
}

/* ---- formulas ---- */

struct formula {
    const char *name;
    const struct poly *value;
    bool whole; /* else a lower bound */
};

static void record_formula(struct run *run, struct run_map *to, const struct formula *f, bool at_most)
{
    struct run_cost bound = {.complete = known_bool(f->whole), .at_most = known_bool(at_most)};
    struct buf text = BUF_INIT;
    if (!f->value) return;
    buf_add_str(&text, run_cost_bound(&bound));
    poly_print(f->value, &text);
    if (text.failed) {
        run->arena.failed = true;
    } else {
        run_map_text(&run->arena, to, f->name, text.data);
    }
    buf_release(&text);
}

/* Formulas are of the shapes with symbols, also where numbers come from a second inference. */
static void record_formulas(const struct inspected *i, struct run *run, struct run_static *to)
{
    struct poly_space *s = i->shapes.space;
    const struct cost *c = &i->formula;
    const struct formula all[] = {
        {"macs", c->macs, c->known},
        {"int_macs", c->int_macs, c->known},
        {"flops", cost_flops(c, s), c->known},
        {"bytes", poly_add(s, c->read, c->written), c->known},
        {"parameters", poly_int(s, (int64_t)i->parameters), true},
        {"activation_sum", i->activation, i->activation_known},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        record_formula(run, &to->formulas, &all[k], c->at_most && strcmp(all[k].name, "parameters") != 0);
    if (!c->known)
        run_unknown(run, &to->unknown, "formulas",
                    ">= leaves out nodes whose cost is no formula; the first: %s",
                    c->why ? c->why : "its cost is not known");
    else if (c->at_most)
        run_unknown(run, &to->unknown, "formulas",
                    "<= counts the dearer branch of an If whose condition is known only with numbers");
}

/* ---- the whole ---- */

/* All or nothing: with a single value of unknown size, each of these sums would be too small. */
static void record_memory(const struct inspected *i, struct run *run, struct run_static *to)
{
    const struct liveness *m = &i->memory;
    if (!m->known) {
        static const char *const paths[] = {"activation_sum", "activation_peak", "activation_arena",
                                            "activation_peak_node"};
        for (size_t k = 0; k < sizeof paths / sizeof *paths; k++)
            run_unknown(run, &to->unknown, paths[k],
                        m->unknown == 1 ? "the size of %llu value is not known"
                                        : "the sizes of %llu values are not known",
                        (unsigned long long)m->unknown);
        return;
    }
    to->activation_sum = known_u64(m->sum);
    to->activation_peak = known_u64(m->peak);
    to->activation_arena = known_u64(m->arena);
    if (m->peak_node && m->peak) {
        to->activation_peak_node = arena_str(&run->arena, m->peak_node);
    } else {
        run_unknown(run, &to->unknown, "activation_peak_node", "no node makes a value");
    }
}

static void record_dims(const struct inspected *i, struct run *run, struct run_static *to)
{
    for (size_t k = 0; k < i->dims.n; k++) {
        const char *key = key_text(&run->arena, i->dims.items[k].name);
        if (key) run_map_int(&run->arena, &to->dims, key, i->dims.items[k].value);
    }
}

static void record_types(const struct inspected *i, struct run *run, struct run_static *to)
{
    for (int t = 0; t < ONNX_TYPES; t++) {
        if (i->bytes_by_type[t])
            run_map_int(&run->arena, &to->bytes_by_type, onnx_type_name(t), (int64_t)i->bytes_by_type[t]);
    }
}

/* A count that overflowed is null and says so. */
static void explain_cost(struct run *run, struct run_map *unknown, const char *of, const struct run_cost *c)
{
    const struct {
        const char *part;
        bool known;
    } parts[] = {
#define X(field, value) {#field, c->field.known},
        COST_MAP(X)
#undef X
    };
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        const char *path = parts[k].known ? NULL : arena_printf(&run->arena, "%s.%s", of, parts[k].part);
        if (path) run_unknown(run, unknown, path, "the sum is too large to be told");
    }
}

/* Of the first node that makes the totals lower bounds. */
static void explain_unknown(const struct inspected *i, struct run *run, struct run_map *unknown)
{
    for (size_t k = 0; k < i->layers.n; k++) {
        const struct inspect_layer *l = &i->layers.items[k];
        if (l->cost.known) continue;
        run_unknown(run, unknown, "unknown_nodes", "the first is %.80s (%.40s): %s%s", l->name,
                    l->at->node->op, l->cost.why ? l->cost.why : "its cost is not known",
                    l->cost.per_iteration ? "; one iteration of it is counted" : "");
        return;
    }
}

static struct known_u64 told(uint64_t v)
{
    return v < (uint64_t)INT64_MAX ? known_u64(v) : (struct known_u64){false, 0};
}

void inspect_record_static(const struct inspected *i, struct run *run, struct run_static *to)
{
    to->known = true;
    record_dims(i, run, to);
    to->nodes = known_u64(i->nodes);
    to->unknown_nodes = known_u64(i->unknown_nodes);
    to->parameters = told(i->parameters);
    to->parameter_bytes = told(i->parameter_bytes);
    if (!to->parameters.known || !to->parameter_bytes.known)
        run_unknown(run, &to->unknown, to->parameters.known ? "parameter_bytes" : "parameters",
                    "more than can be told");
    record_types(i, run, to);
    put_counts(run, &to->ops, &i->ops);
    put_counts(run, &to->unknown_ops, &i->unknown_ops);
    to->cost = inspect_cost(i, &i->total);
    to->cost_per_run = inspect_cost(i, &i->per_run);
    explain_cost(run, &to->unknown, "cost", &to->cost);
    explain_cost(run, &to->unknown, "cost_per_run", &to->cost_per_run);
    explain_unknown(i, run, &to->unknown);
    record_memory(i, run, to);
    record_formulas(i, run, to);
    graph_patterns_record(i, run, &to->patterns);
}

/* ---- layers ---- */

/* "float32[16,128,384]" for the dims in force; what is not known is "?". */
static void add_shape(const struct inspected *i, const struct infer_value *v, struct buf *out)
{
    buf_add_str(out, v->type == ONNX_UNDEFINED ? "?" : onnx_type_name(v->type));
    if (!v->has_rank) return;
    buf_add_char(out, '[');
    for (size_t d = 0; d < v->rank; d++) {
        struct known_u64 n = inspect_number(i, v->dims[d]);
        if (d) buf_add_char(out, ',');
        if (n.known)
            buf_printf(out, "%llu", (unsigned long long)n.v);
        else
            buf_add_char(out, '?');
    }
    buf_add_char(out, ']');
}

static void record_output(const struct inspected *i, struct run *run, struct run_layer *to,
                          const struct infer_node *n)
{
    struct buf text = BUF_INIT;
    struct poly_space *s = inspect_shapes(i)->space;
    const struct poly *bytes = poly_int(s, 0);
    for (size_t k = 0; k < n->node->outputs.n; k++)
        if (n->outputs[k]) bytes = poly_add(s, bytes, infer_bytes(s, n->outputs[k]));
    to->output_bytes = inspect_number(i, bytes);
    if (n->node->outputs.n == 0 || !n->outputs[0]) return;
    add_shape(i, n->outputs[0], &text);
    if (text.failed) run->arena.failed = true;
    to->output = text.failed ? NULL : arena_str(&run->arena, text.data);
    buf_release(&text);
}

static uint64_t nodes_in(const struct infer_node *n)
{
    uint64_t sum = 1;
    for (size_t b = 0; b < n->n_bodies; b++)
        for (size_t k = 0; k < n->bodies[b]->n_nodes; k++) sum += nodes_in(&n->bodies[b]->nodes[k]);
    return sum;
}

static void record_layer(const struct inspected *i, struct run *run, struct run_case *c,
                         const struct inspect_layer *from)
{
    struct run_layer *to = run_add_layer(run, c, from->name);
    struct poly_space *s = inspect_shapes(i)->space;
    const struct cost *cost = &from->cost;
    if (!to) return;
    to->op = arena_str(&run->arena, from->at->node->op);
    to->nodes = known_u64(nodes_in(from->at));
    to->flops = inspect_number(i, cost_flops(cost, s));
    to->bytes = inspect_number(i, poly_add(s, cost->read, cost->written));
    to->macs = inspect_number(i, cost->macs);
    to->int_macs = inspect_number(i, cost->int_macs);
    to->parameters = inspect_number(i, from->parameters);
    record_output(i, run, to, from->at);
    if (to->flops.known && to->bytes.known && to->bytes.v)
        to->intensity = known_f64((double)to->flops.v / (double)to->bytes.v);
}

struct ranked {
    size_t layer;
    double work;
};

static int dearer_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->work != y->work) return x->work > y->work ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

static int in_order(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

/* Which layers go into the document, in the order of the graph. */
static struct ranked *choose_layers(const struct inspected *i, size_t n)
{
    struct ranked *all = mem_new(i->layers.n, sizeof *all);
    for (size_t k = 0; all && k < i->layers.n; k++) {
        const struct cost *c = &i->layers.items[k].cost;
        struct known_u64 macs = inspect_number(i, c->useful_macs), read = inspect_number(i, c->read);
        all[k] = (struct ranked){k, 2 * (double)macs.v + (double)read.v};
    }
    if (!all || n == i->layers.n) return all;
    qsort(all, i->layers.n, sizeof *all, dearer_first);
    qsort(all, n, sizeof *all, in_order);
    return all;
}

struct choice {
    const struct ranked *items;
    size_t n; /* the last that were added to the case, in this order */
};

/* Where names say nothing the nodes around do; layers_group() does the rest. */
static tare_status group_layers(const struct inspected *i, struct run_case *c, struct choice chosen,
                                tare_error *err)
{
    const struct onnx_graph *g = &i->model->graph;
    struct layer_near near;
    tare_status s = layer_near_build(&near, g, err);
    for (size_t k = 0; s == TARE_OK && k < chosen.n; k++) {
        const struct onnx_node *node = i->layers.items[chosen.items[k].layer].at->node;
        c->layers.at[c->layers.n - chosen.n + k]->group =
            layer_near_group(&near, (size_t)(node - g->nodes.items));
    }
    layer_near_release(&near);
    return s;
}

static tare_status join_layers(const struct inspected *i, struct run *run, struct run_case *c,
                               struct choice chosen, tare_error *err)
{
    const struct onnx_graph *g = &i->model->graph;
    struct run_layer **of_node = mem_new(g->nodes.n, sizeof(struct run_layer *));
    if (!of_node) return error_nomem(err, "a graph of %zu nodes", g->nodes.n);
    for (size_t k = 0; k < chosen.n; k++) {
        size_t node = (size_t)(i->layers.items[chosen.items[k].layer].at->node - g->nodes.items);
        if (node < g->nodes.n) of_node[node] = c->layers.at[c->layers.n - chosen.n + k];
    }
    tare_status s = layer_graph_record(run, c, g, of_node, err);
    mem_free(of_node);
    return s;
}

tare_status inspect_record_layers(const struct inspected *i, struct run *run, struct run_case *c,
                                  tare_error *err)
{
    size_t room = RUN_LIST_MAX - c->layers.n, n = i->layers.n < room ? i->layers.n : room;
    struct ranked *chosen = choose_layers(i, n);
    if (!chosen) return error_nomem(err, "%zu layers", i->layers.n);
    for (size_t k = 0; k < n; k++) record_layer(i, run, c, &i->layers.items[chosen[k].layer]);
    tare_status s = run->arena.failed ? TARE_NOMEM : group_layers(i, c, (struct choice){chosen, n}, err);
    if (s == TARE_OK) s = join_layers(i, run, c, (struct choice){chosen, n}, err);
    mem_free(chosen);
    c->cost = inspect_cost(i, &i->total);
    explain_cost(run, &c->unknown, "cost", &c->cost);
    if (n < i->layers.n)
        run_unknown(run, &c->unknown, "layers", "the graph has %zu; the %zu that cost most are here",
                    i->layers.n, n);
    return run->arena.failed ? error_nomem(err, "%zu layers", n) : s;
}
