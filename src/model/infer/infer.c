/* SPDX-License-Identifier: MIT
 * infer.c - see infer.h: runs the rules over a scope, node by node; calls of model-local functions; what is left
 * unknown and why. The rules are in infer_<family>.c, one row each. Never guesses. */
#include "model/infer/infer.h"

#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "model/infer/infer_engine.h"

static bool engine_run(struct infer_engine *e, const struct scope_plan *p, struct infer_scope **out);

bool engine_ok(struct infer_engine *e, tare_status s)
{
    if (s < 0 && e->status >= 0) e->status = s;
    return e->status >= 0;
}

bool engine_charge(struct infer_engine *e, size_t nodes)
{
    if (nodes > e->max_nodes - e->n_nodes) {
        if (e->options->too_large) *e->options->too_large = true;
        return engine_error(e,
                            "more than %zu nodes once all calls of functions are written out: "
                            "too many to infer",
                            e->max_nodes);
    }
    e->n_nodes += nodes;
    return true;
}

void *engine_get(struct infer_engine *e, size_t n, size_t size)
{
    void *p = arena_new(&e->memory->arena, n, size);
    if (!p) engine_nomem(e);
    return p;
}

void *engine_contents(struct infer_engine *e, size_t n, size_t size)
{
    if (n > INFER_INTS_MAX || n * size > e->contents_left) return NULL;
    e->contents_left -= n * size;
    return arena_new(&e->memory->arena, n, size);
}

void *engine_scratch(struct infer_engine *e, size_t n, size_t size)
{
    void *p = mem_new(n, size);
    if (p && vec_push(&e->scratch, p, NULL) == TARE_OK) return p;
    mem_free(p);
    engine_nomem(e);
    return NULL;
}

void engine_end_scratch(struct infer_engine *e)
{
    while (e->scratch.n) mem_free(e->scratch.items[--e->scratch.n]);
}

const char *engine_node_text(const struct onnx_node *n, char *out, size_t size)
{
    const char *made = "";
    for (size_t i = 0; i < n->outputs.n && !made[0]; i++) made = n->outputs.items[i];
    if (n->name[0])
        snprintf(out, size, "node '%.80s' (%.40s)", n->name, n->op);
    else
        snprintf(out, size, "the node (%.40s) that makes '%.80s'", n->op, made);
    return out;
}

/* ---- one node ---- */

static const struct op_row *find_row(struct infer_engine *e, const struct onnx_node *n)
{
    enum { NONE = 1 };
    uint64_t key = (uint64_t)(uintptr_t)n->op * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)(uintptr_t)n->domain,
             *at;
    if (map_u64_ref(&e->rows, key, &at, NULL) < 0) return op_find(n->domain, n->op);
    if (!*at) {
        const struct op_row *row = op_find(n->domain, n->op);
        *at = row ? (uint64_t)(uintptr_t)row : NONE;
    }
    return *at == NONE ? NULL : (const struct op_row *)(uintptr_t)*at;
}

static const struct onnx_function *find_function(const struct infer_engine *e, const struct onnx_node *n)
{
    const uint64_t *at = NULL;
    struct buf key = BUF_INIT;
    if (!e->functions.n) return NULL;
    buf_add(&key, n->domain, strlen(n->domain) + 1);
    buf_add_str(&key, n->op);
    if (!key.failed) at = map_str_find(&e->functions, key.data, key.len);
    buf_release(&key);
    return at ? &e->model->functions.items[*at - 1] : NULL;
}

static bool keep_body(struct infer_engine *e, struct infer_node *at, struct infer_scope *body)
{
    for (size_t i = 0; i < at->n_bodies; i++) {
        if (!body->graph || at->bodies[i]->graph != body->graph) continue;
        at->bodies[i] = body; /* inferred once more, with more known */
        return true;
    }
    struct infer_scope **more = engine_get(e, at->n_bodies + 1, sizeof *more);
    if (!more) return false;
    if (at->n_bodies) memcpy(more, at->bodies, at->n_bodies * sizeof *more);
    more[at->n_bodies++] = body;
    at->bodies = more;
    return true;
}

/* A function's body is a scope of the call, whose inputs and outputs it takes over. */
static bool call_function(struct infer_engine *e, struct infer_node *at, const struct onnx_function *f)
{
    struct scope_plan p = {
        NULL, f, at->scope, at, (const struct infer_value *const *)at->inputs, at->node->inputs.n};
    struct infer_scope *body = NULL;
    char text[160];
    for (const struct infer_scope *s = at->scope; s; s = s->outer)
        if (s->function == f)
            return engine_error(e, "%s: function '%.80s' calls itself",
                                          engine_node_text(at->node, text, sizeof text), f->name);
    if (!engine_run(e, &p, &body) || !keep_body(e, at, body)) return false;
    for (size_t i = 0; i < at->node->outputs.n && i < f->outputs.n; i++) {
        const struct infer_value *from = scope_find(body, f->outputs.items[i]);
        if (at->outputs[i] && from) scope_copy(at->outputs[i], from);
    }
    return true;
}

bool rule_body(struct rule_call *c, const struct onnx_graph *g, const struct infer_value *const *formal,
               size_t n, struct infer_scope **out)
{
    struct scope_plan p = {g, NULL, c->at->scope, c->at, formal, n};
    return engine_run(c->engine, &p, out) && keep_body(c->engine, c->at, *out);
}

/* Made of constants only: the same in every run. Bodies may take anything from around them. */
static bool is_folded(const struct infer_node *at, const struct op_row *row)
{
    if (at->n_bodies || (row && row->flags & OP_RANDOM)) return false;
    for (size_t i = 0; i < at->node->inputs.n; i++)
        if (at->inputs[i] && !at->inputs[i]->folded) return false;
    return true;
}

/* The reason that a rule did not give: the first input that is not known either. */
static const char *reason_of(struct infer_engine *e, const struct infer_node *at)
{
    char text[200] = "its shape cannot be told before running";
    for (size_t i = 0; i < at->node->inputs.n; i++) {
        if (!at->inputs[i] || scope_is_known(at->inputs[i])) continue;
        snprintf(text, sizeof text, "the shape of its input '%.120s' is not known", at->inputs[i]->name);
        break;
    }
    return arena_str(&e->memory->arena, text);
}

/* After its rule: what the file says is filled in, and every shape that is still unknown has a reason. */
static bool finish_node(struct infer_engine *e, struct infer_node *at, const struct op_row *row)
{
    bool folded = is_folded(at, row), known = true, dependent = false;
    for (size_t i = 0; i < at->node->inputs.n; i++) dependent |= at->inputs[i] && at->inputs[i]->data_dependent;
    for (size_t i = 0; i < at->node->outputs.n; i++) {
        struct infer_value *v = at->outputs[i];
        if (!v) continue;
        if (!scope_fill(e, at->scope, v)) return false;
        if (folded) v->folded = true;
        if (scope_is_known(v)) continue;
        known = false;
        if (dependent) v->data_dependent = true;
    }
    if (known) at->why = NULL;
    if (known || at->why) return true;
    at->why = reason_of(e, at);
    return at->why || engine_nomem(e);
}

/* A node is the call of a function of the model, or an operator with a rule, or unknown. */
static bool run_node(struct infer_engine *e, struct infer_node *at)
{
    const struct onnx_node *n = at->node;
    const struct onnx_function *f = find_function(e, n);
    const struct op_row *row = f ? NULL : find_row(e, n);
    struct rule_call c = {e, e->space, at, n, row, at->opset};
    if (f)
        call_function(e, at, f);
    else if (row && row->shape)
        rule_run(&c);
    else
        rule_unknown(&c, "no rule for operator %.60s%s%.60s", n->op, n->domain[0] ? " of " : "", n->domain);
    if (e->status < 0 && e->fault && e->options->tolerant) {
        e->fault = false;
        e->status = TARE_OK;
    }
    return e->status >= 0 && finish_node(e, at, row);
}

/* ---- a scope ---- */

static bool fill_inputs(struct infer_engine *e, struct infer_scope *s)
{
    for (size_t i = 0; s->outer && s->graph && i < s->graph->inputs.n; i++) {
        struct infer_value *v = scope_find(s, s->graph->inputs.items[i].name);
        if (v && !scope_fill(e, s, v)) return false;
    }
    return true;
}

static bool engine_run(struct infer_engine *e, const struct scope_plan *p, struct infer_scope **out)
{
    struct infer_scope *scope = NULL;
    if (e->depth >= ENGINE_DEPTH_MAX) {
        if (e->options->too_large) *e->options->too_large = true;
        return engine_error(e, "bodies and functions nest deeper than %d", ENGINE_DEPTH_MAX);
    }
    e->depth++;
    bool ok = scope_make(e, p, &scope) && fill_inputs(e, scope);
    for (size_t i = 0; ok && i < scope->n_nodes; i++) ok = run_node(e, &scope->nodes[i]);
    e->depth--;
    if (ok) *out = scope;
    return ok;
}

static void count_nodes(struct inferred *out, const struct infer_scope *s) /* no deeper than ENGINE_DEPTH_MAX */
{
    out->n_nodes += s->n_nodes;
    for (size_t i = 0; i < s->n_nodes; i++) {
        if (s->nodes[i].why) out->n_unknown++;
        for (size_t k = 0; k < s->nodes[i].n_bodies; k++) count_nodes(out, s->nodes[i].bodies[k]);
    }
}

/* ---- the whole model ---- */

/* Many calls of many functions are found by a hash of domain and name. */
static bool index_functions(struct infer_engine *e)
{
    struct buf key = BUF_INIT;
    for (size_t i = 0; e->status >= 0 && i < e->model->functions.n; i++) {
        const struct onnx_function *f = &e->model->functions.items[i];
        buf_clear(&key);
        buf_add(&key, f->domain, strlen(f->domain) + 1);
        buf_add_str(&key, f->name);
        if (key.failed)
            engine_nomem(e);
        else
            engine_ok(e, map_str_put(&e->functions, key.data, key.len, i + 1, e->err));
    }
    buf_release(&key);
    return e->status >= 0;
}

/* Checks the dimensions that are bound; what was seen and the versions of domains can be found by name. */
static bool index_options(struct infer_engine *e)
{
    const struct infer_options *o = e->options;
    bool ok = true;
    for (size_t i = 0; i < o->n_dims; i++)
        if (o->dims[i].value < 0)
            return engine_error(e, "dimension '%.80s' cannot be %lld",
                                          o->dims[i].name, (long long)o->dims[i].value);
    for (size_t i = 0; ok && i < o->n_seen; i++) {
        const char *name = o->seen[i].value;
        ok = engine_ok(e, map_str_put(&e->seen, name, strlen(name), i + 1, e->err));
    }
    for (size_t i = e->model->opsets.n; ok && i-- > 0;) { /* the first of a domain counts */
        const struct onnx_opset *x = &e->model->opsets.items[i];
        if (x->version < 0) continue;
        ok = engine_ok(e, map_u64_put(&e->opsets, (uint64_t)(uintptr_t)x->domain, (uint64_t)x->version, e->err));
    }
    return ok;
}

static bool engine_start(struct infer_engine *e, struct inferred *out)
{
    out->memory = e->memory = mem_new(1, sizeof *e->memory);
    if (!e->memory) return engine_nomem(e);
    if (!engine_ok(e, poly_space_new(&out->space, e->err))) return false;
    e->space = out->space;
    e->max_nodes = ENGINE_NODES_MAX + (size_t)(e->model->file_bytes / ENGINE_BYTES_PER_NODE);
    e->contents_left = ENGINE_CONTENTS_MAX;
    return index_functions(e) && index_options(e);
}

/* The engine lives only while it runs; what it made stays, or goes with it when something failed. */
tare_status infer_model(struct inferred *out, const struct onnx_model *m, const struct infer_options *o,
                        tare_error *err)
{
    static const struct infer_options nothing = {.dims = NULL};
    struct inferred made = {.model = m};
    struct infer_engine e = {.model = m, .options = o ? o : &nothing, .err = err};
    struct scope_plan p = {.graph = &m->graph};
    bool ok = engine_start(&e, &made) && engine_run(&e, &p, &made.main) &&
              engine_ok(&e, poly_space_status(made.space, err));
    map_str_release(&e.functions);
    map_str_release(&e.seen);
    map_str_release(&e.symbols);
    map_u64_release(&e.opsets);
    map_u64_release(&e.rows);
    vec_release(&e.scratch);
    if (!ok) {
        inferred_release(&made);
        if (e.status != TARE_NOMEM && m->path) error_wrap(err, "%.200s", m->path);
        return e.status;
    }
    count_nodes(&made, made.main);
    made.n_values = e.n_values;
    *out = made;
    return TARE_OK;
}

void inferred_release(struct inferred *i)
{
    if (i->memory) {
        for (size_t k = 0; k < i->memory->names.n; k++) {
            map_u64_release(i->memory->names.items[k]);
            mem_free(i->memory->names.items[k]);
        }
        vec_release(&i->memory->names);
        arena_release(&i->memory->arena);
        mem_free(i->memory);
    }
    poly_space_free(i->space);
    *i = (struct inferred)INFERRED_INIT;
}

/* ---- looking at the result ---- */

const struct infer_value *infer_value(const struct infer_scope *s, const char *name)
{
    const char *own = onnx_own_name(s->model, name);
    return own ? scope_find(s, own) : NULL;
}

const struct poly *infer_elements(struct poly_space *s, const struct infer_value *v)
{
    return v->has_rank ? poly_product(s, v->dims, v->rank) : NULL;
}

const struct poly *infer_bytes(struct poly_space *s, const struct infer_value *v)
{
    unsigned bits = onnx_type_bits(v->type);
    const struct poly *n = bits ? infer_elements(s, v) : NULL;
    if (!n) return NULL;
    if (bits % 8 == 0) return poly_mul(s, n, poly_int(s, bits / 8));
    return poly_div_ceil(s, poly_mul(s, n, poly_int(s, bits)), poly_int(s, 8));
}

void infer_shape_print(const struct infer_value *v, struct buf *out)
{
    buf_add_str(out, v->type ? onnx_type_name(v->type) : "?");
    buf_add_char(out, '[');
    if (!v->has_rank) buf_add_str(out, "...");
    for (size_t i = 0; i < v->rank; i++) {
        if (i) buf_add_char(out, ',');
        poly_print(v->dims[i], out);
    }
    buf_add_char(out, ']');
}
