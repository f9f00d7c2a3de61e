/* SPDX-License-Identifier: MIT
 * onnx_bound.c - which values an integer input may take: walks the nodes in their order, keeps for each
 * value made from the input what is known of its range, and takes the smallest limit over all uses as an
 * index. Says less rather than more: where it cannot follow, only zeros are promised. */
#include <stdio.h>
#include <string.h>

#include "core/map.h"
#include "model/onnx/onnx_parse.h"
#include "core/mem.h"
#include "core/vec.h"
#include "model/onnx/onnx_range.h"

enum { MAX_CALLS = 16, MAX_NODES = 4000000, MAX_CONSTANT = 1024, LOOP_ROUNDS = 4 };

struct fact { /* about a named value */
    bool from_input;
    bool mixed; /* other values may stand beside those from the input */
    struct range range;
    const struct onnx_tensor *values; /* its elements are among those of this constant; NULL: not constant */
    const struct onnx_tensor *shape;  /* it has the dimensions of this constant; NULL: unknown */
    const struct onnx_attribute *literal; /* Constant by value_int or value_ints; NULL: none */
};

struct walk {
    const struct onnx_model *model;
    struct map_u64 places; /* name (its address) -> number of the fact + 1 */
    VEC(struct fact) facts;
    struct onnx_bound *out;
    uint64_t *nodes_left;
    unsigned calls;
    bool failed; /* out of memory, or too large to follow */
};

struct scope { /* the graphs around a node, innermost first */
    const struct onnx_graph *graph;
    const struct scope *up;
};

/* ---- facts ---- */

static uint64_t key_of(const char *name)
{
    return (uint64_t)(uintptr_t)name;
}

static struct fact fact_of(const struct walk *w, const struct scope *scope, const char *name)
{
    const uint64_t *place = name[0] ? map_u64_find(&w->places, key_of(name)) : NULL;
    if (place && *place && *place <= w->facts.n) return w->facts.items[*place - 1];
    for (; name[0] && scope; scope = scope->up) {
        const struct onnx_tensor *t = onnx_initializer(scope->graph, name);
        if (t) return (struct fact){.values = t, .shape = t};
    }
    return (struct fact){.from_input = false};
}

static bool is_nothing(const struct fact *f)
{
    return !f->from_input && !f->values && !f->shape && !f->literal;
}

static void set_fact(struct walk *w, const char *name, struct fact f)
{
    uint64_t *place;
    if (!name[0] || w->failed) return;
    if (is_nothing(&f)) { /* a name used again, in another branch: what was known of it is over */
        place = map_u64_find(&w->places, key_of(name));
        if (place && *place && *place <= w->facts.n) w->facts.items[*place - 1] = f;
        return;
    }
    if (map_u64_ref(&w->places, key_of(name), &place, NULL) < 0) {
        w->failed = true;
    } else if (*place) {
        w->facts.items[*place - 1] = f;
    } else if (vec_push(&w->facts, f, NULL) < 0) {
        w->failed = true;
    } else {
        *place = w->facts.n;
    }
}

static struct fact join_facts(struct fact a, struct fact b)
{
    struct fact f = {.from_input = a.from_input || b.from_input};
    if (a.from_input && b.from_input)
        f.range = range_join(a.range, b.range);
    else
        f.range = a.from_input ? a.range : b.range;
    f.mixed = a.mixed || b.mixed || a.from_input != b.from_input;
    if (a.shape == b.shape) f.shape = a.shape;
    return f;
}

/* The least and the largest element of a small integer constant. */
static bool constant_range(const struct fact *f, int64_t *least, int64_t *most)
{
    int64_t items[MAX_CONSTANT];
    const int64_t *at = items;
    size_t n = 0;
    if (f->literal && f->literal->kind == ONNX_ATTR_INTS) {
        at = f->literal->ints.items;
        n = f->literal->ints.n;
    } else if (f->literal) {
        at = &f->literal->i;
        n = 1;
    } else if (f->values && onnx_tensor_ints(f->values, items, MAX_CONSTANT, NULL) == TARE_OK) {
        n = (size_t)f->values->elements;
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || at[i] < *least) *least = at[i];
        if (i == 0 || at[i] > *most) *most = at[i];
    }
    return n > 0;
}

/* ---- uses as an index ---- */

enum how { BY_AXIS, BY_GATHER_AXIS, BY_FIRST, BY_SECOND, BY_LAST, BY_ALL, BY_DEPTH, BY_NOTHING };

struct index_use {
    const char *op;
    unsigned index, data; /* numbers of inputs */
    enum how how;
    const char *domain; /* NULL: any */
};

static const struct index_use index_uses[] = {
    {"Gather", 1, 0, BY_AXIS, NULL},
    {"GatherElements", 1, 0, BY_AXIS, NULL},
    {"GatherND", 1, 0, BY_ALL, NULL},
    {"Scatter", 1, 0, BY_AXIS, NULL},
    {"ScatterElements", 1, 0, BY_AXIS, NULL},
    {"ScatterND", 1, 0, BY_ALL, NULL},
    {"OneHot", 0, 1, BY_DEPTH, NULL},
    {"ArrayFeatureExtractor", 1, 0, BY_LAST, NULL},
    {"SequenceAt", 1, 0, BY_NOTHING, NULL},
    {"SoftmaxCrossEntropyLoss", 1, 0, BY_SECOND, NULL},
    {"NegativeLogLikelihoodLoss", 1, 0, BY_SECOND, NULL},
    {"RotaryEmbedding", 1, 2, BY_FIRST, "com.microsoft"},
    {"RotaryEmbedding", 3, 1, BY_FIRST, ""},
    {"EmbedLayerNormalization", 0, 2, BY_FIRST, NULL},
    {"EmbedLayerNormalization", 1, 4, BY_FIRST, NULL},
    {"EmbedLayerNormalization", 8, 3, BY_FIRST, NULL},
    {"QEmbedLayerNormalization", 0, 2, BY_FIRST, NULL},
    {"QEmbedLayerNormalization", 1, 4, BY_FIRST, NULL},
    {"GatherBlockQuantized", 1, 0, BY_GATHER_AXIS, NULL},
    {"ATen", 1, 0, BY_FIRST, NULL},
};

struct dims {
    int64_t at[8];
    size_t n;
    bool known;
};

static const struct onnx_value *annotation(const struct scope *scope, const char *name)
{
    for (; scope; scope = scope->up) {
        const struct onnx_graph *g = scope->graph;
        for (size_t i = 0; i < g->inputs.n; i++) {
            if (g->inputs.items[i].name == name) return &g->inputs.items[i];
        }
        for (size_t i = 0; i < g->values.n; i++) {
            if (g->values.items[i].name == name) return &g->values.items[i];
        }
    }
    return NULL;
}

/* The dimensions of a value, -1 for one that is not fixed. */
static struct dims dims_of(const struct walk *w, const struct scope *scope, const char *name)
{
    struct dims d = {.n = 0};
    struct fact f = fact_of(w, scope, name);
    const struct onnx_value *v = f.shape ? NULL : annotation(scope, name);
    size_t n = f.shape ? f.shape->dims.n : v && v->has_shape ? v->dims.n : SIZE_MAX;
    if (n > sizeof d.at / sizeof *d.at) return d;
    for (d.n = 0; d.n < n; d.n++) d.at[d.n] = f.shape ? f.shape->dims.items[d.n] : v->dims.items[d.n].value;
    d.known = true;
    return d;
}

static int64_t int_attribute(const struct onnx_node *n, const char *name, int64_t otherwise)
{
    const struct onnx_attribute *a = onnx_attribute(n, name);
    return a ? a->i : otherwise;
}

/* How many rows the index chooses from; -1: not known before the model runs. */
static int64_t rows_of(const struct walk *w, const struct scope *scope, const struct onnx_node *n,
                       const struct index_use *use)
{
    const char *data = n->inputs.items[use->data];
    int64_t axis = 0, least, most;
    if (use->how == BY_DEPTH) {
        struct fact f = fact_of(w, scope, data);
        return constant_range(&f, &least, &most) && least > 0 ? least : -1;
    }
    struct dims d = dims_of(w, scope, data);
    if (!d.known || d.n == 0 || use->how == BY_NOTHING) return -1;
    if (use->how ==
        BY_ALL) { /* the index is a tuple of unknown length: the smallest dimension is safe for all */
        least = d.at[0];
        for (size_t i = 1; i < d.n; i++) least = d.at[i] < least ? d.at[i] : least;
        return least;
    }
    if (use->how == BY_AXIS) axis = int_attribute(n, "axis", 0);
    if (use->how == BY_GATHER_AXIS) axis = int_attribute(n, "gather_axis", 0);
    if (use->how == BY_SECOND) axis = 1;
    if (use->how == BY_LAST) axis = -1;
    if (axis < 0) axis += (int64_t)d.n;
    return axis >= 0 && axis < (int64_t)d.n ? d.at[axis] : -1;
}

static void take_limit(const struct walk *w, int64_t limit, const struct onnx_node *n, const char *what)
{
    if (limit <= 0 || (w->out->limit && limit >= w->out->limit)) return;
    const char *name = n->name[0] ? n->name : n->outputs.n ? n->outputs.items[0] : "";
    w->out->limit = limit;
    snprintf(w->out->why, sizeof w->out->why, "%.24s '%.70s' %s", n->op, name, what);
}

static void use_as_index(const struct walk *w, const struct scope *scope, const struct onnx_node *n,
                         unsigned input, const struct range *r)
{
    for (size_t i = 0; i < sizeof index_uses / sizeof *index_uses; i++) {
        const struct index_use *use = &index_uses[i];
        char what[64];
        if (use->index != input || strcmp(use->op, n->op) != 0) continue;
        if (use->data >= n->inputs.n || (use->domain && strcmp(use->domain, n->domain) != 0)) continue;
        int64_t rows = rows_of(w, scope, n, use);
        if (rows <= 0) {
            take_limit(w, 1, n, "has a size that is known only when it runs");
            continue;
        }
        if (r->lost)
            snprintf(what, sizeof what, "has %lld rows, in a way that was not followed", (long long)rows);
        else
            snprintf(what, sizeof what, "has %lld rows", (long long)rows);
        take_limit(w, range_limit(*r, rows), n, what);
    }
}

/* ---- what nodes do to a range ---- */

enum rule {
    RULE_NONE,  /* the result has nothing to do with the input's values, or cannot be followed */
    RULE_PASS,  /* elements of the inputs in the mask */
    RULE_SAME,  /* the same, and a constant keeps values and shape */
    RULE_SHAPE, /* a constant keeps its shape only */
    RULE_ADD,
    RULE_SUB,
    RULE_MUL,
    RULE_DIV,
    RULE_MOD,
    RULE_MIN,
    RULE_MAX,
    RULE_CLIP,
    RULE_NEG,
    RULE_RELU,
    RULE_SUM,
    RULE_CONSTANT
};

struct op_rule {
    const char *op;
    enum rule rule;
    unsigned inputs; /* bit i: elements of input i reach the output */
};

enum { ALL_INPUTS = -1 };

static const struct op_rule op_rules[] = {
    {"Constant", RULE_CONSTANT, 0},   {"Identity", RULE_SAME, 1},
    {"Cast", RULE_SAME, 1},           {"CastLike", RULE_SAME, 1},
    {"DequantizeLinear", RULE_SHAPE, 0}, {"Reshape", RULE_PASS, 1},
    {"Unsqueeze", RULE_PASS, 1},      {"Squeeze", RULE_PASS, 1},
    {"Flatten", RULE_PASS, 1},        {"Transpose", RULE_PASS, 1},
    {"Slice", RULE_PASS, 1},          {"Split", RULE_PASS, 1},
    {"Expand", RULE_PASS, 1},         {"Tile", RULE_PASS, 1},
    {"Pad", RULE_PASS, 1},            {"Concat", RULE_PASS, (unsigned)ALL_INPUTS},
    {"Where", RULE_PASS, 1 << 1 | 1 << 2}, {"Gather", RULE_PASS, 1},
    {"GatherElements", RULE_PASS, 1}, {"GatherND", RULE_PASS, 1},
    {"ScatterElements", RULE_PASS, 1 | 1 << 2}, {"ScatterND", RULE_PASS, 1 | 1 << 2},
    {"Compress", RULE_PASS, 1},       {"Trilu", RULE_PASS, 1},
    {"ReverseSequence", RULE_PASS, 1}, {"Unique", RULE_PASS, 1},
    {"TopK", RULE_PASS, 1},           {"ReduceMax", RULE_PASS, 1},
    {"ReduceMin", RULE_PASS, 1},      {"Floor", RULE_PASS, 1},
    {"Ceil", RULE_PASS, 1},           {"Round", RULE_PASS, 1},
    {"Dropout", RULE_PASS, 1},        {"Add", RULE_ADD, 0},
    {"Sub", RULE_SUB, 0},             {"Mul", RULE_MUL, 0},
    {"Div", RULE_DIV, 0},             {"Mod", RULE_MOD, 0},
    {"Min", RULE_MIN, (unsigned)ALL_INPUTS}, {"Max", RULE_MAX, (unsigned)ALL_INPUTS},
    {"Clip", RULE_CLIP, 1},           {"Neg", RULE_NEG, 1},
    {"Relu", RULE_RELU, 1},           {"Abs", RULE_RELU, 1},
    {"CumSum", RULE_SUM, 1},          {"ReduceSum", RULE_SUM, 1},
    {"ReduceProd", RULE_SUM, 1},
};

static const struct op_rule *rule_of(const struct onnx_node *n)
{
    static const struct op_rule none = {"", RULE_NONE, 0};
    for (size_t i = 0; i < sizeof op_rules / sizeof *op_rules; i++) {
        if (op_rules[i].op[0] == n->op[0] && strcmp(op_rules[i].op, n->op) == 0) return &op_rules[i];
    }
    return &none;
}

/* a op b, where a is from the input; b is a constant, from the input too, or anything. */
static struct range combine(enum rule rule, const struct fact *a, const struct fact *b, bool swapped)
{
    int64_t least = 0, most = 0;
    bool known = !b->from_input && constant_range(b, &least, &most) && most < INT64_MAX / 4 &&
                 least > -(INT64_MAX / 4);
    struct range r = a->range;
    if (b->from_input && (a->mixed || b->mixed))
        return range_lose(b->range.lost == RANGE_SUM ? range_sum(r) : r);
    if (b->from_input && rule == RULE_ADD) return range_add(r, b->range);
    if (b->from_input && rule == RULE_SUB) return range_add(r, range_negate(b->range));
    if (b->from_input && b->range.lost == RANGE_SUM) r = range_sum(r);
    if (rule == RULE_SUB && swapped) r = range_negate(r);
    if (rule == RULE_MOD && !swapped && known && least > 0) return range_mod(r, most);
    if (rule == RULE_DIV && !swapped && known && least > 0) return range_shrink(r);
    if (!known || rule == RULE_MOD || rule == RULE_DIV) return range_lose(r);
    if (rule == RULE_MUL) return range_scale(r, least, most);
    if (rule == RULE_SUB && !swapped) return range_shift(r, -most, -least);
    return range_shift(r, least, most);
}

static struct fact apply_binary(enum rule rule, const struct fact *a, const struct fact *b)
{
    struct fact f = {.from_input = true, .mixed = a->mixed || b->mixed};
    if (a->from_input)
        f.range = combine(rule, a, b, false);
    else
        f.range = combine(rule, b, a, true);
    return f;
}

/* Until opset 10 the limits are attributes, later inputs 1 and 2; either may be left out. */
static struct range clip(const struct walk *w, const struct scope *scope, const struct onnx_node *n,
                         struct range r)
{
    int64_t least, most;
    const struct onnx_attribute *low = onnx_attribute(n, "min"), *high = onnx_attribute(n, "max");
    struct fact min = {.from_input = false}, max = min;
    if (n->inputs.n > 1) min = fact_of(w, scope, n->inputs.items[1]);
    if (n->inputs.n > 2) max = fact_of(w, scope, n->inputs.items[2]);
    if (low && low->f > -1e15F && low->f < 1e15F) r = range_floor(r, (int64_t)low->f, (int64_t)low->f);
    if (high && high->f > -1e15F && high->f < 1e15F) r = range_cap(r, (int64_t)high->f, (int64_t)high->f);
    if (constant_range(&min, &least, &most)) r = range_floor(r, least, most);
    if (constant_range(&max, &least, &most)) r = range_cap(r, least, most);
    return r;
}

/* Of Min and Max: constants among the inputs bound the result. */
static struct range extreme(const struct walk *w, const struct scope *scope, const struct onnx_node *n,
                            enum rule rule, struct range r)
{
    for (size_t i = 0; i < n->inputs.n; i++) {
        int64_t least, most;
        struct fact f = fact_of(w, scope, n->inputs.items[i]);
        if (f.from_input || !constant_range(&f, &least, &most)) continue;
        r = rule == RULE_MIN ? range_cap(r, least, most) : range_floor(r, least, most);
    }
    return r;
}

/* What comes of the elements of the inputs in the mask, put together. */
static struct fact gather_facts(const struct walk *w, const struct scope *scope, const struct onnx_node *n,
                                unsigned inputs)
{
    struct fact all = {.from_input = false};
    bool mixed = false;
    for (size_t i = 0; i < n->inputs.n; i++) {
        if (i < 32 ? !(inputs >> i & 1) : inputs != (unsigned)ALL_INPUTS) continue;
        struct fact f = fact_of(w, scope, n->inputs.items[i]);
        if (f.from_input) all = all.from_input ? join_facts(all, f) : f;
        mixed |= !f.from_input;
    }
    all.mixed |= mixed;
    all.values = all.shape = NULL;
    return all;
}

static struct fact constant_fact(const struct onnx_node *n)
{
    struct fact f = {.from_input = false};
    for (size_t i = 0; i < n->attributes.n; i++) {
        const struct onnx_attribute *a = &n->attributes.items[i];
        if (a->t) f.values = f.shape = a->t;
        if (a->kind == ONNX_ATTR_INT || a->kind == ONNX_ATTR_INTS) f.literal = a;
    }
    return f;
}

/* What is known of a node's outputs. */
static struct fact apply(const struct walk *w, const struct scope *scope, const struct onnx_node *n)
{
    const struct op_rule *r = rule_of(n);
    struct fact first =
        n->inputs.n ? fact_of(w, scope, n->inputs.items[0]) : (struct fact){.from_input = false};
    struct fact second =
        n->inputs.n > 1 ? fact_of(w, scope, n->inputs.items[1]) : (struct fact){.from_input = false};
    struct fact f = gather_facts(w, scope, n, r->inputs);
    switch (r->rule) {
    case RULE_CONSTANT: return constant_fact(n);
    case RULE_SAME: return first;
    case RULE_SHAPE: return (struct fact){.shape = first.shape};
    case RULE_PASS:
        if (!f.from_input && r->inputs == 1)
            return (struct fact){.values = first.values, .literal = first.literal};
        return f;
    case RULE_ADD:
    case RULE_SUB:
    case RULE_MUL:
    case RULE_DIV:
    case RULE_MOD:
        if (first.from_input || second.from_input) return apply_binary(r->rule, &first, &second);
        return (struct fact){.from_input = false};
    case RULE_CLIP: f.range = clip(w, scope, n, f.range); return f;
    case RULE_MIN:
    case RULE_MAX: f.range = extreme(w, scope, n, r->rule, f.range); return f;
    case RULE_NEG: f.range = range_negate(f.range); return f;
    case RULE_RELU: f.range = range_shrink(f.range); return f;
    case RULE_SUM: f.range = range_sum(f.range); return f;
    default: return (struct fact){.from_input = false};
    }
}

/* ---- graphs inside nodes ---- */

static void walk_nodes(struct walk *w, const struct scope *scope, const struct onnx_node *nodes, size_t n);

static struct fact output_of(const struct walk *w, const struct scope *scope, size_t i)
{
    const struct onnx_graph *g = scope->graph;
    return i < g->outputs.n ? fact_of(w, scope, g->outputs.items[i].name)
                            : (struct fact){.from_input = false};
}

static void walk_if(struct walk *w, const struct scope *scope, const struct onnx_node *n)
{
    struct fact *results = mem_new(n->outputs.n, sizeof *results);
    bool first = true;
    if (!results) {
        w->failed = true;
        return;
    }
    for (size_t i = 0; i < n->attributes.n; i++) {
        struct scope inner = {n->attributes.items[i].g, scope};
        if (!inner.graph) continue;
        walk_nodes(w, &inner, inner.graph->nodes.items, inner.graph->nodes.n);
        for (size_t k = 0; k < n->outputs.n; k++) {
            struct fact f = output_of(w, &inner, k);
            results[k] = first ? f : join_facts(results[k], f);
        }
        first = false;
    }
    for (size_t k = 0; k < n->outputs.n && !first; k++) set_fact(w, n->outputs.items[k], results[k]);
    mem_free(results);
}

/* Loop and Scan: what goes round is joined until nothing changes, or given up. `skip` inputs of the node come
 * before those of the body; of the body, the first `lead_in` inputs and `lead_out` outputs do not go round. */
struct round_trip {
    const struct onnx_graph *body;
    size_t skip, lead_in, lead_out, carried;
};

static bool go_round(struct walk *w, const struct scope *inner, const struct round_trip *t, bool give_up)
{
    bool changed = false;
    for (size_t i = 0; i < t->carried; i++) {
        const char *name = t->body->inputs.items[t->lead_in + i].name;
        struct fact before = fact_of(w, inner, name), after = output_of(w, inner, t->lead_out + i);
        struct fact both = join_facts(before, after);
        if (!both.from_input) {
            set_fact(w, name, (struct fact){.from_input = false});
            continue;
        }
        if (before.from_input && range_same(both.range, before.range)) continue;
        changed = true;
        if (give_up) both.range = range_lose(both.range);
        set_fact(w, name, both);
    }
    return changed;
}

static void walk_loop(struct walk *w, const struct scope *scope, const struct onnx_node *n,
                      struct round_trip t)
{
    struct scope inner = {t.body, scope};
    for (size_t i = t.lead_in; i < t.body->inputs.n; i++) {
        size_t from = i - t.lead_in + t.skip;
        struct fact f = {.from_input = false};
        if (from < n->inputs.n) f = fact_of(w, scope, n->inputs.items[from]);
        if (i - t.lead_in < t.carried && !f.from_input) f = (struct fact){.from_input = false};
        set_fact(w, t.body->inputs.items[i].name, f);
    }
    for (int round = 0; round <= LOOP_ROUNDS + 1; round++) {
        walk_nodes(w, &inner, t.body->nodes.items, t.body->nodes.n);
        if (!go_round(w, &inner, &t, round >= LOOP_ROUNDS - 1)) break;
    }
    for (size_t i = 0; i < n->outputs.n; i++) {
        struct fact f = output_of(w, &inner, t.lead_out + i);
        if (i < t.carried) f = join_facts(f, fact_of(w, &inner, t.body->inputs.items[t.lead_in + i].name));
        f.shape = NULL;
        set_fact(w, n->outputs.items[i], f);
    }
}

static bool walk_inner(struct walk *w, const struct scope *scope, const struct onnx_node *n)
{
    const struct onnx_attribute *body = onnx_attribute(n, "body");
    if (strcmp(n->op, "If") == 0) {
        walk_if(w, scope, n);
        return true;
    }
    if (!body || !body->g) return false;
    size_t n_in = body->g->inputs.n, n_out = body->g->outputs.n;
    struct round_trip t = {.body = body->g};
    if (strcmp(n->op, "Loop") == 0) {
        t.skip = t.lead_in = 2;
        t.lead_out = 1;
        if (n_in < 2 || n_out < 1) return false;
        t.carried = n_in - 2 < n_out - 1 ? n_in - 2 : n_out - 1;
    } else if (strcmp(n->op, "Scan") == 0) {
        int64_t scanned = int_attribute(n, "num_scan_inputs", 0);
        if (scanned < 0 || (uint64_t)scanned > n_in) return false;
        t.skip = n->inputs.n > n_in ? n->inputs.n - n_in : 0;
        t.carried = n_in - (size_t)scanned < n_out ? n_in - (size_t)scanned : n_out;
    } else {
        return false;
    }
    walk_loop(w, scope, n, t);
    return true;
}

/* ---- functions of the model ---- */

static const struct onnx_function *function_of(const struct onnx_model *m, const struct onnx_node *n)
{
    for (size_t i = 0; i < m->functions.n; i++) {
        const struct onnx_function *f = &m->functions.items[i];
        if (f->name == n->op && strcmp(f->domain, n->domain) == 0) return f;
    }
    return NULL;
}

static void release(struct walk *w)
{
    map_u64_release(&w->places);
    vec_release(&w->facts);
}

static void walk_call(struct walk *w, const struct scope *scope, const struct onnx_node *n,
                      const struct onnx_function *f)
{
    struct walk inner = {.model = w->model,
                         .places = MAP_U64_INIT,
                         .out = w->out,
                         .nodes_left = w->nodes_left,
                         .calls = w->calls + 1};
    if (inner.calls > MAX_CALLS) {
        w->failed = true;
        return;
    }
    for (size_t i = 0; i < f->inputs.n && i < n->inputs.n; i++)
        set_fact(&inner, f->inputs.items[i], fact_of(w, scope, n->inputs.items[i]));
    walk_nodes(&inner, NULL, f->nodes.items, f->nodes.n);
    for (size_t i = 0; i < n->outputs.n && i < f->outputs.n; i++)
        set_fact(w, n->outputs.items[i], fact_of(&inner, NULL, f->outputs.items[i]));
    w->failed |= inner.failed;
    release(&inner);
}

/* ---- the walk ---- */

static void walk_node(struct walk *w, const struct scope *scope, const struct onnx_node *n)
{
    const struct onnx_function *f = w->model->functions.n ? function_of(w->model, n) : NULL;
    for (size_t i = 0; i < n->inputs.n; i++) {
        struct fact in = fact_of(w, scope, n->inputs.items[i]);
        if (in.from_input) use_as_index(w, scope, n, (unsigned)i, &in.range);
    }
    if (f) {
        walk_call(w, scope, n, f);
        return;
    }
    if (walk_inner(w, scope, n)) return;
    struct fact out = apply(w, scope, n);
    for (size_t i = 0; i < n->outputs.n; i++) set_fact(w, n->outputs.items[i], out);
}

static void walk_nodes(struct walk *w, const struct scope *scope, const struct onnx_node *nodes, size_t n)
{
    for (size_t i = 0; i < n && !w->failed; i++) {
        if (!*w->nodes_left) {
            w->failed = true;
            return;
        }
        --*w->nodes_left;
        walk_node(w, scope, &nodes[i]);
    }
}

static bool is_index_type(int type)
{
    return type == ONNX_INT64 || type == ONNX_INT32 || type == ONNX_INT16 || type == ONNX_INT8 ||
           type == ONNX_UINT8 || type == ONNX_UINT16 || type == ONNX_UINT32 || type == ONNX_UINT64;
}

void onnx_input_bound(const struct onnx_model *m, const char *input, struct onnx_bound *out)
{
    const struct onnx_value *v = NULL;
    uint64_t nodes_left = MAX_NODES;
    struct walk w = {.model = m, .places = MAP_U64_INIT, .out = out, .nodes_left = &nodes_left};
    struct scope scope = {&m->graph, NULL};
    *out = (struct onnx_bound){0, ""};
    for (size_t i = 0; i < m->graph.inputs.n && !v; i++) {
        if (strcmp(m->graph.inputs.items[i].name, input) == 0) v = &m->graph.inputs.items[i];
    }
    if (!v || !is_index_type(v->type)) return;
    set_fact(&w, v->name, (struct fact){.from_input = true, .range = range_input()});
    walk_nodes(&w, &scope, m->graph.nodes.items, m->graph.nodes.n);
    if (w.failed) {
        out->limit = 1;
        snprintf(out->why, sizeof out->why, "the graph is too large to follow the input through it");
    }
    release(&w);
}
