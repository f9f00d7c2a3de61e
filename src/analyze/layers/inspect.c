/* SPDX-License-Identifier: MIT
 * inspect.c - see inspect.h. Shapes are inferred with symbols first; only when these leave something unknown (two
 * different symbols meet in a broadcast) once more with numbers. Looks at no weight. */
#include "analyze/layers/inspect.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/mem.h"
#include "model/onnx/dimname.h"

const struct inferred *inspect_shapes(const struct inspected *i)
{
    return i->is_bound ? &i->bound : &i->shapes;
}

struct known_u64 inspect_number(const struct inspected *i, const struct poly *p)
{
    int64_t v;
    if (!poly_eval(p, i->dims.items, i->dims.n, &v) || v < 0) return (struct known_u64){false, 0};
    return known_u64((uint64_t)v);
}

/* ---- free dimensions, and the value each is given ---- */

struct choosing {
    struct inspected *out;
    const struct inspect_options *o;
    VEC(enum dim_class) classes; /* per dim */
    VEC(bool) given;             /* per dim: has its value */
    bool *used;                  /* per asked dimension */
};

enum { DIMS_MAX = 4096 }; /* of one model; they are looked up one by one, and real ones have a handful */

/* The five lists have one entry per dimension, at the same index; the name belongs to `names`. A failure half way
 * leaves them uneven, and the caller gives up then. */
static tare_status add_dim(struct choosing *c, const char *label, enum dim_class class, tare_error *err)
{
    struct inspected *i = c->out;
    for (size_t k = 0; k < i->dims.n; k++) {
        if (strcmp(i->dims.items[k].name, label) == 0) return TARE_OK;
    }
    if (i->dims.n == DIMS_MAX)
        return error_set(err, TARE_INVALID, "the model has more than %d free dimensions", DIMS_MAX);
    char *name = mem_strdup(label);
    if (!name) return error_set(err, TARE_NOMEM, "out of memory");
    tare_status s = vec_push(&i->names, name, err);
    if (s < 0) {
        mem_free(name);
        return s;
    }
    s = vec_push(&i->dims, ((struct poly_binding){name, 1}), err);
    if (s == TARE_OK) s = vec_push(&i->asked, false, err);
    if (s == TARE_OK) s = vec_push(&c->classes, class, err);
    return s == TARE_OK ? vec_push(&c->given, false, err) : s;
}

/* The label of a dimension without a name is the input's and the axis, as in shape inference. */
static tare_status add_dims_of(struct choosing *c, const struct onnx_value *v, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t d = 0; s == TARE_OK && v->has_shape && d < v->dims.n; d++) {
        char label[220];
        const char *name = v->dims.items[d].name;
        if (v->dims.items[d].value >= 0) continue;
        enum dim_class class = dimname_class_at(v->name, name, d, v->dims.n, v->type);
        snprintf(label, sizeof label, "%.180s.%zu", v->name, d);
        s = add_dim(c, name[0] ? name : label, class, err);
    }
    return s;
}

static void give(struct choosing *c, size_t dim, int64_t value, bool asked)
{
    if (dim >= c->given.n) return;
    c->out->dims.items[dim].value = value;
    c->out->asked.items[dim] = asked;
    c->given.items[dim] = true;
}

static void give_named(struct choosing *c, size_t k)
{
    const struct poly_binding *b = &c->o->dims[k];
    for (size_t i = 0; i < c->out->dims.n; i++) {
        if (strcmp(c->out->dims.items[i].name, b->name) != 0) continue;
        give(c, i, b->value, true);
        c->used[k] = true;
    }
}

/* "batch" and "seq" are for whatever the model calls those. */
static void give_class(struct choosing *c, size_t k)
{
    const struct poly_binding *b = &c->o->dims[k];
    enum dim_class class = DIM_OTHER;
    if (strcasecmp(b->name, "batch") == 0) class = DIM_BATCH;
    if (strcasecmp(b->name, "seq") == 0) class = DIM_SEQ;
    for (size_t i = 0; class != DIM_OTHER && i < c->classes.n; i++) {
        if (c->classes.items[i] != class || c->given.items[i]) continue;
        give(c, i, b->value, true);
        c->used[k] = true;
    }
}

static tare_status no_such_dim(const struct choosing *c, const char *name, tare_error *err)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "the model has no free dimension '%s'; its free dimensions are: ", name);
    for (size_t i = 0; i < c->out->dims.n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", c->out->dims.items[i].name);
    if (c->out->dims.n == 0) buf_add_str(&b, "none");
    tare_status s = buf_status(&b, err);
    if (s == TARE_OK) s = error_set(err, TARE_INVALID, "%s", b.data);
    buf_release(&b);
    return s;
}

static tare_status give_asked(struct choosing *c, tare_error *err)
{
    for (size_t k = 0; k < c->o->n_dims; k++) {
        if (c->o->dims[k].value < 0)
            return error_set(err, TARE_INVALID, "dimension '%s' cannot be %lld", c->o->dims[k].name,
                             (long long)c->o->dims[k].value);
        give_named(c, k);
    }
    for (size_t k = 0; k < c->o->n_dims; k++) give_class(c, k);
    for (size_t k = 0; k < c->o->n_dims; k++) {
        if (!c->used[k]) return no_such_dim(c, c->o->dims[k].name, err);
    }
    return TARE_OK;
}

static bool has_cache(const struct choosing *c)
{
    for (size_t i = 0; i < c->classes.n; i++)
        if (c->classes.items[i] == DIM_PAST) return true;
    return false;
}

/* What a name in a sum comes to: that dimension, else the first of its class. */
static int64_t part_value(void *ctx, const char *name)
{
    const struct choosing *c = ctx;
    enum dim_class class = dimname_class(name);
    for (size_t i = 0; i < c->out->dims.n; i++) {
        if (strcmp(c->out->dims.items[i].name, name) == 0) return c->out->dims.items[i].value;
    }
    for (size_t i = 0; class != DIM_OTHER && i < c->out->dims.n; i++) {
        if (c->classes.items[i] == class) return c->out->dims.items[i].value;
    }
    return dimname_default(class, has_cache(c));
}

static void give_rest(struct choosing *c)
{
    bool cache = has_cache(c);
    for (size_t i = 0; i < c->classes.n; i++) {
        enum dim_class class = c->classes.items[i];
        if (!c->given.items[i] && class != DIM_TOTAL) give(c, i, dimname_default(class, cache), false);
    }
    for (size_t i = 0; i < c->given.n; i++) { /* sums, once their parts are there */
        if (!c->given.items[i]) give(c, i, dimname_total(c->out->dims.items[i].name, part_value, c), false);
    }
}

/* Fills dims, asked and names. */
static tare_status choose_dims(struct inspected *out, const struct onnx_model *m,
                               const struct inspect_options *o, tare_error *err)
{
    struct choosing c = {out, o, VEC_INIT, VEC_INIT, mem_new(o->n_dims, sizeof(bool))};
    tare_status s = c.used ? TARE_OK : error_set(err, TARE_NOMEM, "out of memory");
    for (size_t i = 0; s == TARE_OK && i < m->graph.inputs.n; i++)
        s = add_dims_of(&c, &m->graph.inputs.items[i], err);
    if (s == TARE_OK) s = give_asked(&c, err);
    if (s == TARE_OK) give_rest(&c);
    mem_free(c.used);
    vec_release(&c.classes);
    vec_release(&c.given);
    return s;
}

/* ---- layers ---- */

static char *layer_name(const struct onnx_node *n)
{
    struct buf b = BUF_INIT;
    if (n->name[0]) return mem_strdup(n->name);
    buf_printf(&b, "%s_%s", n->op, n->outputs.n ? n->outputs.items[0] : "");
    return buf_take(&b);
}

static bool is_folded(const struct infer_node *n)
{
    bool any = false;
    for (size_t i = 0; i < n->node->outputs.n; i++) {
        if (!n->outputs[i]) continue;
        if (!n->outputs[i]->folded) return false;
        any = true;
    }
    return any;
}

static bool is_constant(const struct onnx_node *n)
{
    return !n->domain[0] && strcmp(n->op, "Constant") == 0;
}

static tare_status add_layer(struct inspected *i, const struct infer_node *n, const struct cost *cost,
                             tare_error *err)
{
    struct inspect_layer l = {.at = n, .cost = *cost, .name = layer_name(n->node), .folded = is_folded(n)};
    if (!l.name) return error_nomem(err, "the name of a layer");
    tare_status s = vec_push(&i->layers, l, err);
    if (s < 0) mem_free(l.name);
    return s;
}

/* Everything that weigh_graph() adds up: it may do so twice. */
static void drop_layers(struct inspected *i)
{
    for (size_t k = 0; k < i->layers.n; k++) mem_free(i->layers.items[k].name);
    vec_clear(&i->layers);
    map_str_release(&i->ops);
    map_str_release(&i->unknown_ops);
    i->nodes = i->unknown_nodes = 0;
}

/* ---- nodes of all scopes ---- */

/* Is its own cost unknown? Of a node with bodies: are these, or how often they run? */
static bool is_unknown(const struct infer_node *n, bool cost_known)
{
    switch (cost_kind_of(n)) {
    case COST_KIND_PLAIN: return !cost_known;
    case COST_KIND_LOOP: return n->n_bodies == 0 || !n->trips;
    default: return n->n_bodies == 0;
    }
}

static tare_status count_op(struct map_str *m, const struct onnx_node *n, tare_error *err)
{
    struct buf name = BUF_INIT;
    uint64_t *count;
    buf_printf(&name, "%s%s%s", n->domain, n->domain[0] ? "." : "", n->op);
    tare_status s = buf_status(&name, err);
    if (s == TARE_OK) s = map_str_ref(m, name.data, name.len, &count, err);
    if (s == TARE_OK) ++*count;
    buf_release(&name);
    return s;
}

static tare_status count_bodies(struct inspected *i, const struct infer_node *n, tare_error *err);

static tare_status count_node(struct inspected *i, const struct infer_node *n, const struct cost *cost,
                              tare_error *err)
{
    bool unknown = is_unknown(n, cost->known);
    i->nodes++;
    i->unknown_nodes += unknown;
    tare_status s = count_op(&i->ops, n->node, err);
    if (s == TARE_OK && unknown) s = count_op(&i->unknown_ops, n->node, err);
    return s == TARE_OK ? count_bodies(i, n, err) : s;
}

static tare_status count_bodies(struct inspected *i, const struct infer_node *n, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t b = 0; b < n->n_bodies; b++) {
        const struct infer_scope *body = n->bodies[b];
        for (size_t k = 0; s == TARE_OK && k < body->n_nodes; k++) {
            struct cost cost = {.known = true};
            const struct infer_node *inner = &body->nodes[k];
            if (cost_kind_of(inner) == COST_KIND_PLAIN)
                s = cost_of_node(&cost, inspect_shapes(i), inner, err);
            if (s == TARE_OK) s = count_node(i, inner, &cost, err);
        }
    }
    return s;
}

/* ---- totals ---- */

struct totals {
    struct cost_sum all, per_run;
};

static tare_status weigh_node(struct inspected *i, struct totals *t, const struct infer_node *n,
                              tare_error *err)
{
    struct cost cost;
    tare_status s = cost_of_node(&cost, inspect_shapes(i), n, err);
    if (s == TARE_OK) s = count_node(i, n, &cost, err);
    if (s == TARE_OK && is_constant(n->node)) return TARE_OK;
    if (s == TARE_OK) s = cost_sum_add(&t->all, &cost, err);
    if (s == TARE_OK && !is_folded(n)) s = cost_sum_add(&t->per_run, &cost, err);
    return s == TARE_OK ? add_layer(i, n, &cost, err) : s;
}

/* Layers and totals of the shapes in force. */
static tare_status weigh_graph(struct inspected *i, tare_error *err)
{
    const struct inferred *m = inspect_shapes(i);
    struct totals t = {COST_SUM_INIT, COST_SUM_INIT};
    tare_status s = TARE_OK;
    drop_layers(i);
    for (size_t k = 0; s == TARE_OK && k < m->main->n_nodes; k++)
        s = weigh_node(i, &t, &m->main->nodes[k], err);
    if (s == TARE_OK) {
        cost_sum_take(&t.all, m->space, &i->total);
        cost_sum_take(&t.per_run, m->space, &i->per_run);
        s = poly_space_status(m->space, err);
    }
    cost_sum_release(&t.all);
    cost_sum_release(&t.per_run);
    return s;
}

/* ---- parameters ---- */

struct owned {
    struct inspected *i;
    struct map_u64 elements; /* tensor (its address) -> elements that nobody has read yet */
};

/* Of sizes that a hostile file claims; INT64_MAX stands for "more than can be told". */
static void add_up(uint64_t *to, uint64_t more)
{
    *to = more > (uint64_t)INT64_MAX - *to ? (uint64_t)INT64_MAX : *to + more;
}

static tare_status note_weight(void *ctx, const struct onnx_weight *w, tare_error *err)
{
    struct owned *o = ctx;
    add_up(&o->i->bytes_by_type[w->type], w->bytes);
    if (!w->is_parameter) return TARE_OK;
    add_up(&o->i->parameter_bytes, w->bytes);
    return map_u64_put(&o->elements, (uint64_t)(uintptr_t)w->tensor, w->elements, err);
}

/* What this node, or a node inside it, is the first to read. */
static uint64_t take_parameters(struct owned *o, const struct infer_node *n)
{
    uint64_t sum = 0, more;
    for (size_t k = 0; k < n->node->inputs.n; k++) {
        const struct onnx_tensor *t = n->inputs[k] ? n->inputs[k]->constant : NULL;
        if (t && map_u64_remove(&o->elements, (uint64_t)(uintptr_t)t, &more)) add_up(&sum, more);
    }
    for (size_t b = 0; b < n->n_bodies; b++) {
        const struct infer_scope *body = n->bodies[b];
        for (size_t k = 0; k < body->n_nodes; k++) add_up(&sum, take_parameters(o, &body->nodes[k]));
    }
    return sum;
}

static tare_status count_parameters(struct inspected *i, tare_error *err)
{
    struct owned o = {i, MAP_U64_INIT};
    struct poly_space *space = inspect_shapes(i)->space;
    tare_status s = onnx_weights(i->model, note_weight, &o, err);
    for (size_t k = 0; s == TARE_OK && k < i->layers.n; k++) {
        struct inspect_layer *l = &i->layers.items[k];
        l->parameters = poly_int(space, (int64_t)take_parameters(&o, l->at));
    }
    add_up(&i->parameters, i->model->parameters);
    map_u64_release(&o.elements);
    return s == TARE_OK ? poly_space_status(space, err) : s;
}

/* ---- numbers where symbols do not do ---- */

static bool is_enough(const struct inspected *i)
{
    const struct cost *t = &i->total;
    return t->known && !t->at_most && i->shapes.n_unknown == 0 && inspect_number(i, t->macs).known &&
           inspect_number(i, t->simple).known && inspect_number(i, t->read).known &&
           inspect_number(i, t->written).known;
}

static tare_status bind(struct inspected *i, const struct inspect_options *o, tare_error *err)
{
    const struct infer_options numbers = {.dims = i->dims.items,
                                          .n_dims = i->dims.n,
                                          .seen = o->seen,
                                          .n_seen = o->n_seen,
                                          .contents = o->contents,
                                          .n_contents = o->n_contents};
    if ((i->dims.n == 0 && !o->n_contents) || is_enough(i)) return TARE_OK;
    tare_status s = infer_model(&i->bound, i->model, &numbers, err);
    if (s < 0) return s;
    i->is_bound = true;
    return weigh_graph(i, err);
}

static tare_status weigh_memory(struct inspected *i, tare_error *err)
{
    struct liveness with_symbols = LIVENESS_INIT;
    tare_status s = liveness_of(&i->memory, inspect_shapes(i), i->dims.items, i->dims.n, err);
    i->activation = i->memory.sum_formula;
    i->activation_known = i->memory.known;
    if (s < 0 || !i->is_bound) return s;
    s = liveness_of(&with_symbols, &i->shapes, i->dims.items, i->dims.n, err);
    i->activation = s == TARE_OK ? with_symbols.sum_formula : NULL;
    i->activation_known = with_symbols.known;
    liveness_release(&with_symbols);
    return s;
}

static tare_status inspect_all(struct inspected *i, const struct inspect_options *o, tare_error *err)
{
    const struct infer_options symbols = {.seen = o->seen, .n_seen = o->n_seen};
    tare_status s = choose_dims(i, i->model, o, err);
    if (s == TARE_OK) s = infer_model(&i->shapes, i->model, &symbols, err);
    if (s == TARE_OK) s = weigh_graph(i, err);
    if (s < 0) return s;
    i->formula = i->total;
    s = bind(i, o, err);
    if (s == TARE_OK) s = count_parameters(i, err);
    return s == TARE_OK ? weigh_memory(i, err) : s;
}

tare_status inspect_model(struct inspected *out, const struct onnx_model *m, const struct inspect_options *o,
                          tare_error *err)
{
    struct inspected i = INSPECTED_INIT;
    i.model = m;
    tare_status s = inspect_all(&i, o, err);
    if (s < 0) {
        inspected_release(&i);
        return s;
    }
    *out = i;
    return TARE_OK;
}

void inspected_release(struct inspected *i)
{
    drop_layers(i);
    for (size_t k = 0; k < i->names.n; k++) mem_free(i->names.items[k]);
    vec_release(&i->layers);
    vec_release(&i->names);
    vec_release(&i->dims);
    vec_release(&i->asked);
    liveness_release(&i->memory);
    inferred_release(&i->bound);
    inferred_release(&i->shapes);
}
