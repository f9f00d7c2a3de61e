/* SPDX-License-Identifier: MIT
 * infer_flow.c - rules of shape inference: If, Loop and Scan, whose bodies are inferred as scopes of their own. What
 * changes from one iteration to the next is forgotten until nothing changes any more. Never guesses a size. */
#include "model/infer/infer_list.h"

static const struct onnx_graph *body_of(const struct rule_call *c, const char *attribute)
{
    const struct onnx_attribute *a = rule_attribute_of(c, attribute);
    return a ? a->g : NULL;
}

static const struct infer_value *body_output(const struct infer_scope *body, size_t i)
{
    const struct onnx_graph *g = body ? body->graph : NULL;
    return g && i < g->outputs.n ? infer_value(body, g->outputs.items[i].name) : NULL;
}

/* ---- If ---- */

static bool same_contents(const struct infer_value *a, const struct infer_value *b)
{
    if (!a->ints || !b->ints || a->n_ints != b->n_ints) return false;
    for (size_t i = 0; i < a->n_ints; i++)
        if (!a->ints[i] || a->ints[i] != b->ints[i]) return false;
    return true;
}

static tare_status if_output(struct rule_call *c, size_t i, const struct infer_value *a,
                             const struct infer_value *b)
{
    struct infer_value both = {.name = NULL};
    bool changed = false;
    tare_status s = value_shape_copy(c, a, &both);
    if (s == TARE_OK) s = value_join(c, &both, b, &changed);
    if (s < 0) return s;
    if (changed) {
        rule_data_dependent(c, i, "its branches make different shapes");
        both.data_dependent = true;
    }
    if (same_contents(a, b)) {
        both.ints = a->ints;
        both.n_ints = a->n_ints;
    }
    rule_output_is(c, i, &both);
    return TARE_OK;
}

/* A branch; NULL when it contradicts the shapes it meets: exporters guard a Squeeze like that, and such a branch cannot
 * be taken. A graph that is damaged is an error all the same. */
static tare_status if_body(struct rule_call *c, const struct onnx_graph *g, struct infer_scope **out)
{
    c->engine->fault = false;
    tare_status s = rule_body(c, g, NULL, 0, out);
    if (s == TARE_OK || !c->engine->fault) return s;
    c->engine->fault = false;
    *out = NULL;
    return TARE_OK;
}

/* The error of the branch stands in c->err still. */
static tare_status cannot_run(const struct rule_call *c, const char *what)
{
    c->engine->fault = true;
    return error_wrap(c->err, "%s", what);
}

/* At least one is there afterwards. */
static tare_status if_bodies(struct rule_call *c, struct infer_scope *bodies[2])
{
    static const char *const names[] = {"then_branch", "else_branch"};
    for (size_t i = 0; i < 2; i++) {
        const struct onnx_graph *g = body_of(c, names[i]);
        if (!g) return rule_fault(c, "no %s", names[i]);
        tare_status s = if_body(c, g, &bodies[i]);
        if (s < 0) return s;
    }
    return bodies[0] || bodies[1] ? TARE_OK : cannot_run(c, "no branch can run; the last");
}

tare_status shape_if(struct rule_call *c)
{
    struct infer_scope *bodies[2] = {NULL, NULL};
    int64_t condition;
    tare_status s = if_bodies(c, bodies);
    if (s < 0) return s;
    if (poly_constant(rule_int_at(c, 0, 0), &condition)) {
        if (!bodies[condition ? 0 : 1]) return cannot_run(c, "the branch that is taken cannot run");
        bodies[condition ? 1 : 0] = NULL;
    }
    struct infer_scope *taken = NULL; /* the only one there is */
    if (!bodies[0]) taken = bodies[1];
    if (!bodies[1]) taken = bodies[0];
    if (taken) {
        c->at->bodies[0] = taken;
        c->at->n_bodies = 1;
    }
    for (size_t i = 0; s == TARE_OK && i < c->node->outputs.n; i++) {
        const struct infer_value *a = body_output(taken ? taken : bodies[0], i);
        const struct infer_value *b = body_output(taken ? taken : bodies[1], i);
        if (!a || !b) return rule_fault(c, "a branch has fewer outputs than the node");
        if (taken)
            rule_output_is(c, i, a);
        else
            s = if_output(c, i, a, b);
    }
    return s;
}

/* ---- bodies that run again and again ---- */

enum { PASSES_MAX = 4 };

struct loop {
    const struct onnx_graph *graph;
    struct infer_value *formal; /* of the body's inputs */
    const struct infer_value **formals;
    size_t n_formal;
    size_t first_in, first_out; /* carried values among the body's inputs and outputs */
    size_t carried;
    struct infer_scope *body;
};

static tare_status loop_room(struct rule_call *c, struct loop *l)
{
    l->n_formal = l->graph->inputs.n;
    l->formal = engine_get(c->engine, l->n_formal + 1, sizeof *l->formal);
    l->formals = engine_get(c->engine, l->n_formal + 1, sizeof *l->formals);
    if (!l->formal || !l->formals) return engine_nomem(c->engine);
    for (size_t i = 0; i < l->n_formal; i++) {
        l->formal[i].name = l->graph->inputs.items[i].name;
        l->formals[i] = &l->formal[i];
    }
    if (l->first_in + l->carried > l->n_formal)
        return rule_fault(c, "the body has %zu inputs, too few for %zu carried values", l->n_formal,
                          l->carried);
    if (l->first_out + l->carried > l->graph->outputs.n)
        return rule_fault(c, "the body has %zu outputs, too few for %zu carried values", l->graph->outputs.n,
                          l->carried);
    return TARE_OK;
}

/* Another run of the body may hand over what this one made. */
static tare_status loop_widen(struct rule_call *c, struct loop *l, bool *changed)
{
    tare_status s = TARE_OK;
    *changed = false;
    for (size_t i = 0; s == TARE_OK && i < l->carried; i++)
        s = value_join(c, &l->formal[l->first_in + i], body_output(l->body, l->first_out + i), changed);
    return s;
}

static void loop_forget(struct loop *l)
{
    for (size_t i = 0; i < l->carried; i++) {
        struct infer_value *v = &l->formal[l->first_in + i];
        *v = (struct infer_value){.name = v->name, .type = v->type, .data_dependent = true};
    }
}

static tare_status loop_settle(struct rule_call *c, struct loop *l)
{
    bool changed = true;
    tare_status s = TARE_OK;
    for (unsigned pass = 1; changed && pass <= PASSES_MAX; pass++) {
        if (pass == PASSES_MAX) loop_forget(l);
        if ((s = rule_body(c, l->graph, l->formals, l->n_formal, &l->body)) < 0) return s;
        if (pass == PASSES_MAX) break;
        if ((s = loop_widen(c, l, &changed)) < 0) return s;
    }
    return s;
}

/* What comes out in the end: made by the last run, or what came in when there was none. */
static tare_status loop_carried(struct rule_call *c, struct loop *l, bool runs)
{
    for (size_t i = 0; i < l->carried; i++) {
        const struct infer_value *made = body_output(l->body, l->first_out + i);
        struct infer_value last = {.name = NULL};
        tare_status s = value_shape_copy(c, runs ? made : &l->formal[l->first_in + i], &last);
        if (s < 0) return s;
        rule_output_is(c, i, &last);
        if (!scope_is_known(&last) && !last.list)
            rule_unknown(c, "the shape of carried value %zu changes from one iteration to the next", i);
    }
    return TARE_OK;
}

static tare_status loop_gathered(struct rule_call *c, size_t output, const struct infer_value *each,
                                 const struct poly *trips, int64_t axis)
{
    struct rule_dims d = rule_dims_of(each);
    struct rule_dims all = rule_dims_none();
    size_t at;
    if (each && each->type) rule_type(c, output, each->type);
    if (!trips) rule_data_dependent(c, output, "how often the body runs is known only when it runs");
    if (each && each->data_dependent) rule_data_dependent(c, output, "what the body gathers hangs on data");
    if (!d.known) return TARE_OK;
    tare_status s = rule_axis(c, axis, d.n + 1, &at);
    for (size_t i = 0; s == TARE_OK && i <= d.n; i++) {
        if (i == at) rule_push(&all, trips);
        if (i < d.n) rule_push(&all, d.at[i]);
    }
    return s < 0 ? s : rule_state(c, output, &all);
}

static tare_status set_true(struct rule_call *c, struct infer_value *v)
{
    const struct poly **one = engine_get(c->engine, 1, sizeof *one);
    if (!one) return engine_nomem(c->engine);
    one[0] = poly_int(c->space, 1);
    v->ints = one;
    v->n_ints = 1;
    return TARE_OK;
}

/* ---- Loop: trip count, condition, carried values ---- */

/* The condition that comes in, or one that is not given and true; the body may say what shape it wants then. */
static tare_status loop_condition(struct rule_call *c, struct loop *l)
{
    struct infer_value *v = &l->formal[1];
    bool given = rule_has_input(c, 1);
    tare_status s = value_shape_copy(c, rule_input(c, 1), v);
    v->type = ONNX_BOOL;
    if (s == TARE_OK && !given && !l->graph->inputs.items[1].has_shape) s = scope_dims(c->engine, v, 0);
    if (s < 0 || (given && !poly_is(rule_int_at(c, 1, 0), 1))) return s;
    return set_true(c, v);
}

static tare_status loop_start(struct rule_call *c, struct loop *l)
{
    l->formal[0].type = ONNX_INT64;
    tare_status s = scope_dims(c->engine, &l->formal[0], 0);
    if (s == TARE_OK) s = loop_condition(c, l);
    for (size_t i = 0; s == TARE_OK && i < l->carried; i++)
        s = value_shape_copy(c, rule_input(c, 2 + i), &l->formal[2 + i]);
    return s;
}

/* The condition holds before the first run and, since it held before, after each: only the trip count ends it. */
static const struct poly *loop_trips(struct rule_call *c, const struct loop *l)
{
    const struct infer_value *next = body_output(l->body, 0);
    const struct poly *none = poly_int(c->space, 0);
    if (rule_has_input(c, 1) && poly_is(rule_int_at(c, 1, 0), 0)) return none;
    if (!l->formal[1].ints || !next || !next->ints || !poly_is(next->ints[0], 1)) return NULL;
    return rule_has_input(c, 0) ? poly_max(c->space, rule_int_at(c, 0, 0), none) : NULL;
}

tare_status shape_loop(struct rule_call *c)
{
    struct loop l = {.graph = body_of(c, "body"), .first_in = 2, .first_out = 1};
    l.carried = c->node->inputs.n > 2 ? c->node->inputs.n - 2 : 0;
    if (!l.graph) return rule_fault(c, "no body");
    tare_status s = loop_room(c, &l);
    if (s < 0) return s;
    if (l.n_formal < 2) return rule_fault(c, "the body has %zu inputs, it takes 2 at least", l.n_formal);
    if ((s = loop_start(c, &l)) < 0 || (s = loop_settle(c, &l)) < 0) return s;
    c->at->trips = loop_trips(c, &l);
    if ((s = loop_carried(c, &l, poly_range(c->at->trips).least >= 1)) < 0) return s;
    for (size_t i = l.carried; s == TARE_OK && i < c->node->outputs.n; i++)
        s = loop_gathered(c, i, body_output(l.body, i + 1), c->at->trips, 0);
    return s;
}

/* ---- Scan: states and slices; before opset 9 all of it once per item of a batch ---- */

struct scan {
    struct loop l;
    size_t first; /* the first state among the node's inputs */
    size_t slices;
    bool batched;
    const struct poly *batch;
};

/* A state without its batch, or a slice without the axis that is walked along too. */
static tare_status scan_formal(struct rule_call *c, struct scan *p, size_t i)
{
    struct rule_dims d;
    struct infer_value *v = &p->l.formal[i];
    bool slice = i >= p->l.carried;
    size_t axis = 0;
    v->type = rule_input_type(c, p->first + i);
    if (!rule_ranked(c, p->first + i, &d)) return TARE_OK;
    if (d.n < (size_t)p->batched + slice)
        return rule_fault(c, "input %zu has too few dimensions", p->first + i);
    if (p->batched) {
        p->batch = p->batch ? p->batch : d.at[0];
        for (size_t k = 1; k < d.n; k++) d.at[k - 1] = d.at[k];
        d.n--;
    }
    if (slice) {
        int64_t given = p->batched ? 0 : rule_int_of(c, "scan_input_axes", i - p->l.carried, 0);
        tare_status s = rule_axis(c, given, d.n, &axis);
        if (s < 0) return s;
        if ((s = rule_agree(c, c->at->trips, d.at[axis], "lengths of scanned inputs", &c->at->trips)) < 0)
            return s;
        for (size_t k = axis + 1; k < d.n; k++) d.at[k - 1] = d.at[k];
        d.n--;
    }
    tare_status s = scope_dims(c->engine, v, d.n);
    for (size_t k = 0; s == TARE_OK && k < d.n; k++) v->dims[k] = d.at[k];
    return s;
}

static tare_status prepend_batch(struct rule_call *c, size_t output, const struct poly *batch)
{
    const struct infer_value *v = rule_output(c, output);
    struct rule_dims d = rule_dims_none();
    if (!v || !v->has_rank) return TARE_OK;
    rule_push(&d, batch);
    for (size_t i = 0; i < v->rank; i++) rule_push(&d, v->dims[i]);
    return rule_state(c, output, &d);
}

static tare_status scan_outputs(struct rule_call *c, struct scan *p)
{
    tare_status s = loop_carried(c, &p->l, false);
    for (size_t i = p->l.carried; s == TARE_OK && i < c->node->outputs.n; i++) {
        int64_t axis = p->batched ? 0 : rule_int_of(c, "scan_output_axes", i - p->l.carried, 0);
        s = loop_gathered(c, i, body_output(p->l.body, i), c->at->trips, axis);
    }
    for (size_t i = 0; p->batched && s == TARE_OK && i < c->node->outputs.n; i++)
        s = prepend_batch(c, i, p->batch);
    return s;
}

tare_status shape_scan(struct rule_call *c)
{
    struct scan p = {.batched = c->opset < 9, .l = {.graph = body_of(c, "body")}};
    int64_t slices = rule_int(c, "num_scan_inputs", 0);
    p.first = p.batched ? 1 : 0;
    size_t n = c->node->inputs.n - (c->node->inputs.n > 0 ? p.first : 0);
    if (!p.l.graph) return rule_fault(c, "no body");
    if (slices < 1 || (size_t)slices > n)
        return rule_fault(c, "num_scan_inputs is %lld, of %zu inputs", (long long)slices, n);
    p.slices = (size_t)slices;
    p.l.carried = n - p.slices;
    tare_status s = loop_room(c, &p.l);
    if (s < 0) return s;
    if (p.l.n_formal != n) return rule_fault(c, "the body has %zu inputs, not %zu", p.l.n_formal, n);
    for (size_t i = 0; s == TARE_OK && i < n; i++) s = scan_formal(c, &p, i);
    if (s == TARE_OK) s = loop_settle(c, &p.l);
    return s < 0 ? s : scan_outputs(c, &p);
}
