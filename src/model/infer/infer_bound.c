/* SPDX-License-Identifier: MIT
 * infer_bound.c - which values an integer input may take: goes over the nodes of the inferred scopes in their order,
 * keeps for each value made from the input what is known of its range, and takes the smallest limit over all uses as
 * an index. Shapes and constants are those of inference. Says less rather than more: where it cannot follow, only
 * zeros are promised. */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "model/infer/infer_engine.h"
#include "model/infer/range.h"

enum { MAX_STEPS = 4000000, LOOP_ROUNDS = 4 };

struct fact { /* about a value */
    bool set; /* else it is what inference knows */
    bool from_input;
    bool mixed;         /* other values may stand beside those from the input */
    bool constant;      /* no input has a part in it: each element is in least .. most */
    struct range range; /* of what is from the input */
    int64_t least, most;
};

struct bound_walk {
    struct fact *facts; /* by the number of the value */
    struct infer_bound *out;
    uint64_t steps_left;
    bool failed; /* too large to follow */
};

/* ---- facts ---- */

static bool is_index_type(int type)
{
    return type == ONNX_INT64 || type == ONNX_INT32 || type == ONNX_INT16 || type == ONNX_INT8 ||
           type == ONNX_UINT8 || type == ONNX_UINT16 || type == ONNX_UINT32 || type == ONNX_UINT64;
}

/* The least and the largest element, where inference knows them all. */
static struct fact constant_fact(const struct infer_value *v)
{
    const struct poly *const *at = v->ints ? v->ints : &v->every;
    size_t n = v->ints ? v->n_ints : 1;
    struct fact f = {.constant = n > 0 && (is_index_type(v->type) || v->type == ONNX_BOOL)};
    for (size_t i = 0; i < n && f.constant; i++) {
        int64_t item = 0;
        f.constant = poly_constant(at[i], &item);
        if (i == 0 || item < f.least) f.least = item;
        if (i == 0 || item > f.most) f.most = item;
    }
    return f;
}

static struct fact fact_of(const struct bound_walk *w, const struct infer_value *v)
{
    if (!v) return (struct fact){.from_input = false};
    return w->facts[v->number].set ? w->facts[v->number] : constant_fact(v);
}

static struct fact input_fact(const struct bound_walk *w, const struct infer_node *at, size_t i)
{
    return fact_of(w, i < at->node->inputs.n ? at->inputs[i] : NULL);
}

static void set_fact(struct bound_walk *w, const struct infer_value *v, struct fact f)
{
    if (!v || (!f.from_input && !f.constant && !w->facts[v->number].set)) return;
    w->facts[v->number] = f;
    w->facts[v->number].set = true;
}

static struct fact join_facts(struct fact a, struct fact b)
{
    struct fact f = {.from_input = a.from_input || b.from_input};
    if (a.from_input && b.from_input)
        f.range = range_join(a.range, b.range);
    else
        f.range = a.from_input ? a.range : b.range;
    f.mixed = a.mixed || b.mixed || a.from_input != b.from_input;
    return f;
}

/* ---- uses as an index ---- */

/* A dimension as a number; -1: not known before the model runs. */
static int64_t fixed_dim(const struct infer_value *v, size_t i)
{
    int64_t n;
    return poly_constant(v->dims[i], &n) ? n : -1;
}

static int64_t smallest_dim(const struct infer_value *v)
{
    int64_t least = fixed_dim(v, 0);
    for (size_t i = 1; i < v->rank; i++) {
        int64_t n = fixed_dim(v, i);
        if (n < least) least = n;
    }
    return least;
}

static int64_t int_attribute(const struct onnx_node *n, const char *name, int64_t otherwise)
{
    const struct onnx_attribute *a = onnx_attribute(n, name);
    return a ? a->i : otherwise;
}

/* How many rows the index chooses from; -1: not known before the model runs. */
static int64_t rows_of(const struct bound_walk *w, const struct infer_node *at, const struct op_index *use)
{
    const struct infer_value *data = at->inputs[use->data];
    int64_t axis = 0;
    if (use->how == BY_DEPTH) {
        struct fact f = fact_of(w, data);
        return f.constant && f.least > 0 ? f.least : -1;
    }
    if (!data || !data->has_rank || data->rank == 0) return -1;
    switch (use->how) {
    case BY_NOTHING: return -1;
    case BY_ALL: return smallest_dim(data); /* a tuple of unknown length: that one is safe for all */
    case BY_AXIS: axis = int_attribute(at->node, "axis", 0); break;
    case BY_GATHER_AXIS: axis = int_attribute(at->node, "gather_axis", 0); break;
    case BY_SECOND: axis = 1; break;
    case BY_LAST: axis = -1; break;
    default: break;
    }
    if (axis < 0) axis += (int64_t)data->rank;
    return axis >= 0 && axis < (int64_t)data->rank ? fixed_dim(data, (size_t)axis) : -1;
}

static void take_limit(const struct bound_walk *w, int64_t limit, const struct onnx_node *n, const char *what)
{
    const char *name = n->name;
    if (limit <= 0 || (w->out->limit && limit >= w->out->limit)) return;
    if (!name[0] && n->outputs.n) name = n->outputs.items[0];
    w->out->limit = limit;
    snprintf(w->out->why, sizeof w->out->why, "%.24s '%.70s' %s", n->op, name, what);
}

static void use_as_index(const struct bound_walk *w, const struct infer_node *at, const struct op_row *row,
                         unsigned input, const struct range *r)
{
    for (const struct op_index *use = row->index; use < row->index + OP_INDEX_MAX; use++) {
        char what[64];
        if (use->how == BY_NO_USE || use->index != input || use->data >= at->node->inputs.n) continue;
        int64_t rows = rows_of(w, at, use);
        if (rows <= 0) {
            take_limit(w, 1, at->node, "has a size that is known only when it runs");
            continue;
        }
        snprintf(what, sizeof what, "has %lld rows%s", (long long)rows,
                 r->lost ? ", in a way that was not followed" : "");
        take_limit(w, range_limit(*r, rows), at->node, what);
    }
}

/* ---- what nodes do to a range ---- */

/* a op b, where a is from the input; b is a constant, from the input too, or anything. */
static struct range combine_facts(enum op_follow rule, const struct fact *a, const struct fact *b,
                                  bool swapped)
{
    bool known = !b->from_input && b->constant && b->most < INT64_MAX / 4 && b->least > -(INT64_MAX / 4);
    struct range r = a->range;
    if (b->from_input && (a->mixed || b->mixed))
        return range_lose(b->range.lost == RANGE_SUM ? range_sum(r) : r);
    if (b->from_input && rule == FOLLOW_ADD) return range_add(r, b->range);
    if (b->from_input && rule == FOLLOW_SUB) return range_add(r, range_negate(b->range));
    if (b->from_input && b->range.lost == RANGE_SUM) r = range_sum(r);
    if (rule == FOLLOW_SUB && swapped) r = range_negate(r);
    if (rule == FOLLOW_MOD && !swapped && known && b->least > 0) return range_mod(r, b->most);
    if (rule == FOLLOW_DIV && !swapped && known && b->least > 0) return range_shrink(r);
    if (!known || rule == FOLLOW_MOD || rule == FOLLOW_DIV) return range_lose(r);
    if (rule == FOLLOW_MUL) return range_scale(r, b->least, b->most);
    if (rule == FOLLOW_SUB && !swapped) return range_shift(r, -b->most, -b->least);
    return range_shift(r, b->least, b->most);
}

static struct fact apply_binary(enum op_follow rule, const struct fact *a, const struct fact *b)
{
    struct fact f = {.from_input = true, .mixed = a->mixed || b->mixed};
    if (a->from_input)
        f.range = combine_facts(rule, a, b, false);
    else
        f.range = combine_facts(rule, b, a, true);
    return f;
}

/* Until opset 10 the limits are attributes, later inputs 1 and 2; either may be left out. */
static struct range clip_range(const struct bound_walk *w, const struct infer_node *at, struct range r)
{
    const struct onnx_attribute *low = onnx_attribute(at->node, "min"),
                                *high = onnx_attribute(at->node, "max");
    struct fact min = input_fact(w, at, 1), max = input_fact(w, at, 2);
    if (low && low->f > -1e15F && low->f < 1e15F) r = range_floor(r, (int64_t)low->f, (int64_t)low->f);
    if (high && high->f > -1e15F && high->f < 1e15F) r = range_cap(r, (int64_t)high->f, (int64_t)high->f);
    if (min.constant) r = range_floor(r, min.least, min.most);
    if (max.constant) r = range_cap(r, max.least, max.most);
    return r;
}

/* Of Min and Max: constants among the inputs bound the result. */
static struct range cap_by_constants(const struct bound_walk *w, const struct infer_node *at,
                                     enum op_follow rule, struct range r)
{
    for (size_t i = 0; i < at->node->inputs.n; i++) {
        struct fact f = input_fact(w, at, i);
        if (!f.constant) continue;
        r = rule == FOLLOW_MIN ? range_cap(r, f.least, f.most) : range_floor(r, f.least, f.most);
    }
    return r;
}

/* What comes of the elements of the inputs in the mask, put together. */
static struct fact gather_facts(const struct bound_walk *w, const struct infer_node *at, uint32_t inputs)
{
    struct fact all = {.from_input = false};
    bool mixed = false;
    for (size_t i = 0; i < at->node->inputs.n; i++) {
        if (i < 32 ? !(inputs >> i & 1) : inputs != OP_ALL_INPUTS) continue;
        struct fact f = input_fact(w, at, i);
        if (f.from_input) all = all.from_input ? join_facts(all, f) : f;
        mixed |= !f.from_input;
    }
    all.mixed |= mixed;
    return all;
}

/* What is known of a node's outputs. */
static struct fact apply_rule(const struct bound_walk *w, const struct infer_node *at, const struct op_row *r)
{
    struct fact first = input_fact(w, at, 0), second = input_fact(w, at, 1);
    struct fact f = gather_facts(w, at, r->from);
    switch (r->follow) {
    case FOLLOW_PASS:
        if (!f.from_input && r->from == 1 && first.constant) return first;
        return f;
    case FOLLOW_ADD:
    case FOLLOW_SUB:
    case FOLLOW_MUL:
    case FOLLOW_DIV:
    case FOLLOW_MOD:
        if (first.from_input || second.from_input) return apply_binary(r->follow, &first, &second);
        break;
    case FOLLOW_CLIP: f.range = clip_range(w, at, f.range); return f;
    case FOLLOW_MIN:
    case FOLLOW_MAX: f.range = cap_by_constants(w, at, r->follow, f.range); return f;
    case FOLLOW_NEG: f.range = range_negate(f.range); return f;
    case FOLLOW_RELU: f.range = range_shrink(f.range); return f;
    case FOLLOW_SUM: f.range = range_sum(f.range); return f;
    default: break;
    }
    return (struct fact){.from_input = false};
}

/* ---- bodies ---- */

static void walk_scope(struct bound_walk *w, const struct infer_scope *scope);

/* How many formal inputs a body has, or results. */
static size_t body_size(const struct infer_scope *body, bool result)
{
    if (body->graph) return result ? body->graph->outputs.n : body->graph->inputs.n;
    return result ? body->function->outputs.n : body->function->inputs.n;
}

/* Formal input i of a body, or its result i; NULL: it has not so many. */
static const struct infer_value *body_value(const struct infer_scope *body, bool result, size_t i)
{
    const struct onnx_graph *g = body->graph;
    if (i >= body_size(body, result)) return NULL;
    if (g) return infer_value(body, result ? g->outputs.items[i].name : g->inputs.items[i].name);
    return infer_value(body, (result ? body->function->outputs.items : body->function->inputs.items)[i]);
}

/* How bodies are tied to their node: `skip` inputs of the node come before those of the body; of the body the first
 * `lead_in` inputs and `lead_out` results do not go round, `carried` ones after them do. */
struct body_ties {
    size_t skip, lead_in, lead_out, carried;
};

/* If and functions: nothing goes round. Loop: after the trip count and the condition all. Scan: the states. false: the
 * bodies cannot be followed. */
static bool ties_of(const struct infer_node *at, struct body_ties *out)
{
    const struct onnx_graph *g = at->n_bodies ? at->bodies[0]->graph : NULL;
    *out = (struct body_ties){0};
    if (!g || strcmp(at->node->op, "If") == 0) return at->n_bodies > 0;
    size_t n_in = g->inputs.n, n_out = g->outputs.n, states = 0;
    if (strcmp(at->node->op, "Loop") == 0) {
        if (n_in < 2 || n_out < 1) return false;
        *out = (struct body_ties){.skip = 2, .lead_in = 2, .lead_out = 1};
        states = n_in - 2;
    } else if (strcmp(at->node->op, "Scan") == 0) {
        int64_t scanned = int_attribute(at->node, "num_scan_inputs", 0);
        if (scanned < 0 || (uint64_t)scanned > n_in) return false;
        out->skip = at->node->inputs.n > n_in ? at->node->inputs.n - n_in : 0;
        states = n_in - (size_t)scanned;
    } else {
        return false;
    }
    out->carried = states < n_out - out->lead_out ? states : n_out - out->lead_out;
    return true;
}

/* Joins what the body hands to its next run to what it got; false: that is nothing new. */
static bool go_round(struct bound_walk *w, const struct infer_scope *body, const struct body_ties *t,
                     bool give_up)
{
    bool changed = false;
    for (size_t i = 0; i < t->carried; i++) {
        const struct infer_value *v = body_value(body, false, t->lead_in + i);
        struct fact before = fact_of(w, v), after = fact_of(w, body_value(body, true, t->lead_out + i));
        struct fact both = join_facts(before, after);
        if (!both.from_input) {
            set_fact(w, v, (struct fact){.from_input = false});
            continue;
        }
        if (before.from_input && range_same(both.range, before.range)) continue;
        changed = true;
        if (give_up) both.range = range_lose(both.range);
        set_fact(w, v, both);
    }
    return changed;
}

/* What goes round is joined until nothing changes, or given up. */
static void walk_body(struct bound_walk *w, const struct infer_node *at, const struct infer_scope *body,
                      const struct body_ties *t)
{
    for (size_t i = 0; t->lead_in + i < body_size(body, false); i++) {
        struct fact f = input_fact(w, at, i + t->skip);
        if (i < t->carried && !f.from_input) f = (struct fact){.from_input = false};
        set_fact(w, body_value(body, false, t->lead_in + i), f);
    }
    for (int round = 0; round <= LOOP_ROUNDS + 1; round++) {
        walk_scope(w, body);
        if (!go_round(w, body, t, round >= LOOP_ROUNDS - 1)) break;
    }
}

/* Results of all bodies, one of which runs; a carried one may also be what came in. */
static void walk_bodies(struct bound_walk *w, const struct infer_node *at, const struct body_ties *t)
{
    for (size_t k = 0; k < at->n_bodies; k++) walk_body(w, at, at->bodies[k], t);
    for (size_t i = 0; i < at->node->outputs.n; i++) {
        struct fact f = fact_of(w, body_value(at->bodies[0], true, t->lead_out + i));
        for (size_t k = 1; k < at->n_bodies; k++)
            f = join_facts(f, fact_of(w, body_value(at->bodies[k], true, i)));
        if (i < t->carried) f = join_facts(f, fact_of(w, body_value(at->bodies[0], false, t->lead_in + i)));
        set_fact(w, at->outputs[i], f);
    }
}

/* ---- the walk ---- */

/* Every node once, in an order in which they run: its uses as an index, its bodies, what it makes. */
static void walk_scope(struct bound_walk *w, const struct infer_scope *scope)
{
    struct body_ties ties;
    for (size_t i = 0; i < scope->n_nodes && !w->failed; i++) {
        const struct infer_node *at = &scope->nodes[i];
        const struct op_row *row = op_find(at->node->domain, at->node->op);
        if (!w->steps_left--) {
            w->failed = true;
            return;
        }
        for (size_t k = 0; k < at->node->inputs.n; k++) {
            struct fact in = input_fact(w, at, k);
            if (row && in.from_input) use_as_index(w, at, row, (unsigned)k, &in.range);
        }
        if (ties_of(at, &ties)) {
            walk_bodies(w, at, &ties);
            continue;
        }
        struct fact out = row ? apply_rule(w, at, row) : (struct fact){.from_input = false};
        for (size_t k = 0; k < at->node->outputs.n; k++) set_fact(w, at->outputs[k], out);
    }
}

static bool follow_input(const struct inferred *shapes, const char *input, struct infer_bound *out)
{
    struct bound_walk w = {.out = out, .steps_left = MAX_STEPS};
    struct fact whole = {.from_input = true, .range = range_input()};
    if (!(w.facts = mem_new(shapes->n_values, sizeof *w.facts))) return false;
    set_fact(&w, infer_value(shapes->main, input), whole);
    walk_scope(&w, shapes->main);
    mem_free(w.facts);
    return !w.failed;
}

/* A model that cannot be inferred, or is too large, promises zeros. */
tare_status infer_input_bounds(const struct onnx_model *m, struct infer_bound *out, size_t n, tare_error *err)
{
    bool too_large = false;
    tare_error why = TARE_ERROR_INIT;
    const struct infer_options tolerant = {.tolerant = true, .too_large = &too_large};
    struct inferred shapes = INFERRED_INIT;
    bool done = infer_model(&shapes, m, &tolerant, &why) == TARE_OK;
    if (too_large) return error_set(err, TARE_INVALID, "%s", why.text);
    for (size_t i = 0; i < n; i++) {
        const struct onnx_value *v = &m->graph.inputs.items[i];
        out[i] = (struct infer_bound){0, ""};
        if (!is_index_type(v->type) || (done && follow_input(&shapes, v->name, &out[i]))) continue;
        out[i].limit = 1;
        snprintf(out[i].why, sizeof out[i].why, "the graph is too large to follow the input through it");
    }
    inferred_release(&shapes);
    return TARE_OK;
}
