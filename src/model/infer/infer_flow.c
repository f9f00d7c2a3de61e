/* SPDX-License-Identifier: MIT
 * infer_flow.c - rules of shape inference: If, Loop and Scan, whose bodies are inferred as scopes of their own. What
 * changes from one iteration to the next is forgotten until nothing changes any more. Never guesses a size. */
#include "model/infer/infer_engine.h"

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

/* Both branches may run: what they have in common. */
static bool if_output(struct rule_call *c, size_t i, const struct infer_value *a, const struct infer_value *b)
{
    struct infer_value both = {.name = NULL};
    bool changed = false;
    if (!value_shape_copy(c, a, &both) || !value_join(c, &both, b, &changed)) return false;
    if (changed) {
        rule_data_dependent(c, i, "its branches make different shapes");
        both.data_dependent = true;
    }
    if (same_contents(a, b)) {
        both.ints = a->ints;
        both.n_ints = a->n_ints;
    }
    rule_output_is(c, i, &both);
    return true;
}

/* The error of the branch is still there to be put behind. */
static bool cannot_run(struct rule_call *c, const char *what)
{
    c->engine->fault = true;
    return engine_ok(c->engine, error_wrap(c->engine->err, "%s", what));
}

/* At least one is there afterwards. A branch that contradicts the shapes it meets is not: exporters guard a Squeeze
 * like that, and such a branch cannot be taken. A graph that is damaged is an error all the same. */
static bool if_bodies(struct rule_call *c, struct infer_scope *bodies[2])
{
    static const char *const names[] = {"then_branch", "else_branch"};
    for (size_t i = 0; i < 2; i++) {
        const struct onnx_graph *g = body_of(c, names[i]);
        if (!g) return rule_fault(c, "no %s", names[i]);
        c->engine->fault = false;
        if (rule_body(c, g, NULL, 0, &bodies[i])) continue;
        if (!c->engine->fault) return false;
        c->engine->fault = false;
        c->engine->status = TARE_OK;
        bodies[i] = NULL;
    }
    return bodies[0] || bodies[1] || cannot_run(c, "no branch can run; the last");
}

/* A condition that is known takes its branch; so does one whose other branch cannot run. */
bool shape_if(struct rule_call *c)
{
    struct infer_scope *bodies[2] = {NULL, NULL};
    int64_t condition;
    if (!if_bodies(c, bodies)) return false;
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
    for (size_t i = 0; i < c->node->outputs.n; i++) {
        const struct infer_value *a = body_output(taken ? taken : bodies[0], i);
        const struct infer_value *b = body_output(taken ? taken : bodies[1], i);
        if (!a || !b) return rule_fault(c, "a branch has fewer outputs than the node");
        if (taken)
            rule_output_is(c, i, a);
        else if (!if_output(c, i, a, b))
            return false;
    }
    return true;
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

/* Room for the formal inputs of the body, which must have enough of them for what is carried. */
static bool loop_room(struct rule_call *c, struct loop *l)
{
    if (!l->graph) return rule_fault(c, "no body");
    l->n_formal = l->graph->inputs.n;
    l->formal = engine_get(c->engine, l->n_formal + 1, sizeof *l->formal);
    l->formals = engine_get(c->engine, l->n_formal + 1, sizeof *l->formals);
    if (!l->formal || !l->formals) return false;
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
    return true;
}

static void loop_forget(struct loop *l)
{
    for (size_t i = 0; i < l->carried; i++) {
        struct infer_value *v = &l->formal[l->first_in + i];
        *v = (struct infer_value){.name = v->name, .type = v->type, .data_dependent = true};
    }
}

/* Runs the body until what it hands over is no news to its inputs: another run may get what this one made. What still
 * changes after some passes is forgotten. */
static bool loop_settle(struct rule_call *c, struct loop *l)
{
    bool changed = true;
    for (unsigned pass = 1; changed && pass <= PASSES_MAX; pass++) {
        if (pass == PASSES_MAX) loop_forget(l);
        if (!rule_body(c, l->graph, l->formals, l->n_formal, &l->body)) return false;
        if (pass == PASSES_MAX) break;
        changed = false;
        for (size_t i = 0; i < l->carried; i++)
            if (!value_join(c, &l->formal[l->first_in + i], body_output(l->body, l->first_out + i), &changed))
                return false;
    }
    return true;
}

/* What comes out in the end: made by the last run, or what came in when there was none. */
static bool loop_carried(struct rule_call *c, struct loop *l, bool runs)
{
    for (size_t i = 0; i < l->carried; i++) {
        const struct infer_value *made = body_output(l->body, l->first_out + i);
        struct infer_value last = {.name = NULL};
        if (!value_shape_copy(c, runs ? made : &l->formal[l->first_in + i], &last)) return false;
        rule_output_is(c, i, &last);
        if (!scope_is_known(&last) && !last.list)
            rule_unknown(c, "the shape of carried value %zu changes from one iteration to the next", i);
    }
    return true;
}

/* What each run makes, one behind the other along a new axis. */
static bool loop_gathered(struct rule_call *c, size_t output, const struct infer_value *each, int64_t axis)
{
    struct rule_dims d = rule_dims_of(each);
    size_t at;
    if (each) rule_type(c, output, each->type);
    if (!c->at->trips) rule_data_dependent(c, output, "how often the body runs is known only when it runs");
    if (each && each->data_dependent) rule_data_dependent(c, output, "what the body gathers hangs on data");
    if (!d.known) return true;
    if (!rule_axis(c, axis, d.n + 1, &at)) return false;
    rule_insert(&d, at, c->at->trips);
    return rule_state(c, output, &d);
}

/* ---- Loop: trip count, condition, carried values ---- */

/* The condition that comes in, or one that is not given and true; the body may say what shape it wants then. */
static bool loop_condition(struct rule_call *c, struct loop *l)
{
    struct infer_value *v = &l->formal[1];
    bool given = rule_has_input(c, 1);
    if (!value_shape_copy(c, rule_input(c, 1), v)) return false;
    v->type = ONNX_BOOL;
    if (!given && !l->graph->inputs.items[1].has_shape && !scope_dims(c->engine, v, 0)) return false;
    if (given && !poly_is(rule_int_at(c, 1, 0), 1)) return true;
    const struct poly **yes = engine_get(c->engine, 1, sizeof *yes);
    if (!yes) return false;
    yes[0] = rule_number(c, 1);
    v->ints = yes;
    v->n_ints = 1;
    return true;
}

static bool loop_start(struct rule_call *c, struct loop *l)
{
    l->formal[0].type = ONNX_INT64;
    if (!scope_dims(c->engine, &l->formal[0], 0) || !loop_condition(c, l)) return false;
    for (size_t i = 0; i < l->carried; i++)
        if (!value_shape_copy(c, rule_input(c, 2 + i), &l->formal[2 + i])) return false;
    return true;
}

/* The condition holds before the first run and, since it held before, after each: only the trip count ends it. */
static const struct poly *loop_trips(struct rule_call *c, const struct loop *l)
{
    const struct infer_value *next = body_output(l->body, 0);
    const struct poly *none = rule_number(c, 0);
    if (rule_has_input(c, 1) && poly_is(rule_int_at(c, 1, 0), 0)) return none;
    if (!l->formal[1].ints || !next || !next->ints || !poly_is(next->ints[0], 1)) return NULL;
    return rule_has_input(c, 0) ? poly_max(c->space, rule_int_at(c, 0, 0), none) : NULL;
}

bool shape_loop(struct rule_call *c)
{
    struct loop l = {.graph = body_of(c, "body"), .first_in = 2, .first_out = 1};
    l.carried = c->node->inputs.n > 2 ? c->node->inputs.n - 2 : 0;
    if (!loop_room(c, &l)) return false;
    if (l.n_formal < 2) return rule_fault(c, "the body has %zu inputs, it takes 2 at least", l.n_formal);
    if (!loop_start(c, &l) || !loop_settle(c, &l)) return false;
    c->at->trips = loop_trips(c, &l);
    if (!loop_carried(c, &l, poly_range(c->at->trips).least >= 1)) return false;
    for (size_t i = l.carried; i < c->node->outputs.n; i++)
        if (!loop_gathered(c, i, body_output(l.body, i + 1), 0)) return false;
    return true;
}

/* ---- Scan: states and slices; before opset 9 all of it once per item of a batch ---- */

struct scan {
    struct loop l;
    size_t first; /* the first state among the node's inputs */
    bool batched;
    const struct poly *batch;
};

/* A state without its batch, or a slice without the axis that is walked along too. */
static bool scan_formal(struct rule_call *c, struct scan *p, size_t i)
{
    struct rule_dims d;
    struct infer_value *v = &p->l.formal[i];
    bool slice = i >= p->l.carried;
    v->type = rule_input_type(c, p->first + i);
    if (!rule_ranked(c, p->first + i, &d)) return true;
    if (d.n < (size_t)p->batched + slice)
        return rule_fault(c, "input %zu has too few dimensions", p->first + i);
    if (p->batched) {
        p->batch = p->batch ? p->batch : d.at[0];
        rule_drop(&d, 0);
    }
    if (slice) {
        int64_t given = p->batched ? 0 : rule_int_of(c, "scan_input_axes", i - p->l.carried, 0);
        const struct poly **trips = &c->at->trips;
        size_t axis;
        if (!rule_axis(c, given, d.n, &axis)) return false;
        if (!rule_agree(c, *trips, d.at[axis], "lengths of scanned inputs", trips)) return false;
        rule_drop(&d, axis);
    }
    if (!scope_dims(c->engine, v, d.n)) return false;
    for (size_t k = 0; k < d.n; k++) v->dims[k] = d.at[k];
    return true;
}

static bool scan_outputs(struct rule_call *c, struct scan *p)
{
    if (!loop_carried(c, &p->l, false)) return false;
    for (size_t i = p->l.carried; i < c->node->outputs.n; i++) {
        int64_t axis = p->batched ? 0 : rule_int_of(c, "scan_output_axes", i - p->l.carried, 0);
        if (!loop_gathered(c, i, body_output(p->l.body, i), axis)) return false;
    }
    for (size_t i = 0; p->batched && i < c->node->outputs.n; i++) {
        struct rule_dims d = rule_dims_of(rule_output(c, i));
        if (d.known) rule_insert(&d, 0, p->batch);
        rule_state(c, i, &d);
    }
    return true;
}

bool shape_scan(struct rule_call *c)
{
    struct scan p = {.batched = c->opset < 9, .l = {.graph = body_of(c, "body")}};
    int64_t slices = rule_int(c, "num_scan_inputs", 0);
    p.first = p.batched ? 1 : 0;
    size_t n = c->node->inputs.n - (c->node->inputs.n > 0 ? p.first : 0);
    if (slices < 1 || (size_t)slices > n)
        return rule_fault(c, "num_scan_inputs is %lld, of %zu inputs", (long long)slices, n);
    p.l.carried = n - (size_t)slices;
    if (!loop_room(c, &p.l)) return false;
    if (p.l.n_formal != n) return rule_fault(c, "the body has %zu inputs, not %zu", p.l.n_formal, n);
    for (size_t i = 0; i < n; i++)
        if (!scan_formal(c, &p, i)) return false;
    return loop_settle(c, &p.l) && scan_outputs(c, &p);
}
