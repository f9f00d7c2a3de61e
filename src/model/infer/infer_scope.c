/* SPDX-License-Identifier: MIT
 * infer_scope.c - a scope before anything is inferred: every value once, by name, with what the file says of it; nodes
 * wired to their values, in an order in which they can run. Names made twice or by nobody are errors that say where. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <ctype.h>
#include <stdlib.h>

#include "core/mem.h"
#include "model/infer/infer_engine.h"

struct infer_value *scope_find(const struct infer_scope *s, const char *name)
{
    for (; s; s = s->graph ? s->outer : NULL) { /* a function sees nothing of its caller */
        const uint64_t *at = map_u64_find(s->names, (uint64_t)(uintptr_t)name);
        if (at) return s->values[*at - 1];
    }
    return NULL;
}

/* ---- free dimensions ---- */

enum { SYMBOL_TEXT_MAX = 200 };

static const struct poly *named(const struct infer_engine *e, const char *name)
{
    for (size_t i = 0; i < e->options->n_dims; i++)
        if (strcmp(e->options->dims[i].name, name) == 0) return poly_int(e->space, e->options->dims[i].value);
    return poly_symbol(e->space, name);
}

static bool is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '.') return false;
    return n > 0;
}

/* One name or number; NULL: neither. */
static const struct poly *read_part(const struct infer_engine *e, const char *s, size_t n)
{
    char text[SYMBOL_TEXT_MAX + 1];
    while (n && *s == ' ') s++, n--;
    while (n && s[n - 1] == ' ') n--;
    if (!is_name(s, n)) return NULL;
    memcpy(text, s, n);
    text[n] = 0;
    bool number = strspn(text, "0123456789") == n && n < 18;
    return number ? poly_int(e->space, strtoll(text, NULL, 10)) : named(e, text);
}

/* A sum of products: "past + 2*seq". NULL: something else. */
static const struct poly *read_terms(const struct infer_engine *e, const char *s, size_t n, char between)
{
    bool sum = between == '+';
    const struct poly *all = poly_int(e->space, sum ? 0 : 1);
    for (const char *end = s + n; all && s <= end;) {
        const char *found = memchr(s, between, (size_t)(end - s)), *stop = found ? found : end;
        size_t length = (size_t)(stop - s);
        if (sum)
            all = poly_add(e->space, all, read_terms(e, s, length, '*'));
        else
            all = poly_mul(e->space, all, read_part(e, s, length));
        s = stop + 1;
    }
    return all;
}

static const struct poly *scope_symbol(const struct infer_engine *e, const char *name)
{
    size_t n = strlen(name);
    const struct poly *whole = named(e, name), *read;
    int64_t bound;
    if (poly_constant(whole, &bound) || !strpbrk(name, "+*") || n > SYMBOL_TEXT_MAX) return whole;
    read = read_terms(e, name, n, '+');
    return read ? read : whole;
}

/* ---- values ---- */

static const char *maker_text(const struct scope_draft *m, size_t value, char *out, size_t size)
{
    uint32_t by = m->made_by[value];
    if (by == ORDER_NO_NODE) return "an input or initializer";
    return engine_node_text(m->nodes[by], out, size);
}

/* A value that is new in the scope; NULL: its name is made twice, or no memory. */
static struct infer_value *add_value(struct scope_draft *m, const char *name, uint32_t made_by)
{
    struct infer_scope *s = m->scope;
    char first[160], second[160];
    uint64_t *at;
    if (!engine_ok(m->e, map_u64_ref(s->names, (uint64_t)(uintptr_t)name, &at, m->e->err))) return NULL;
    m->made_by[s->n_values] = made_by;
    if (*at) {
        engine_error(m->e, "value '%.80s' is made twice: by %s and by %s", name,
                     maker_text(m, *at - 1, first, sizeof first),
                     maker_text(m, s->n_values, second, sizeof second));
        return NULL;
    }
    struct infer_value *v = &m->room[s->n_values];
    v->name = name;
    v->number = m->e->n_values++;
    s->values[s->n_values++] = v;
    *at = s->n_values;
    return v;
}

void scope_copy(struct infer_value *to, const struct infer_value *from)
{
    const char *name = to->name;
    size_t number = to->number;
    *to = *from;
    to->name = name;
    to->number = number;
}

/* A free dimension of an input of the whole model: by its name, or by the input's and the axis. */
static const struct poly *free_dim(struct infer_engine *e, const char *of, size_t axis, const char *name)
{
    char made[220];
    if (!name[0]) {
        snprintf(made, sizeof made, "%.180s.%zu", of, axis);
        name = made;
    }
    if (map_str_put(&e->symbols, name, strlen(name), 1, NULL) < 0) return NULL;
    return scope_symbol(e, name);
}

/* An input of the main graph, with what it holds in the run that is meant. */
static bool from_input(struct infer_engine *e, const struct onnx_value *said, struct infer_value *v)
{
    const struct infer_options *o = e->options;
    v->type = said->type;
    if (!said->has_shape) return true;
    if (!scope_dims(e, v, said->dims.n)) return false;
    for (size_t i = 0; i < v->rank; i++) {
        const struct onnx_dim *d = &said->dims.items[i];
        v->dims[i] = d->value >= 0 ? poly_int(e->space, d->value) : free_dim(e, v->name, i, d->name);
        if (!v->dims[i]) return engine_nomem(e);
    }
    for (size_t i = 0; i < o->n_contents; i++)
        if (strcmp(o->contents[i].name, v->name) == 0 && o->contents[i].type == v->type)
            scope_contents(e, v, &o->contents[i]);
    return e->status >= 0;
}

static bool add_sparse(struct scope_draft *m, const struct onnx_sparse *x)
{
    if (!x->values.name[0]) return true;
    struct infer_value *v = add_value(m, x->values.name, ORDER_NO_NODE);
    if (!v || !scope_dims(m->e, v, x->dims.n)) return false;
    for (size_t i = 0; i < v->rank; i++) v->dims[i] = poly_int(m->e->space, x->dims.items[i]);
    v->type = x->values.type;
    v->folded = true;
    return true;
}

/* Inputs of a body or a function are what the call hands over. */
static bool add_formal(struct scope_draft *m, const char *name, size_t i)
{
    if (!name[0]) return true;
    struct infer_value *v = add_value(m, name, ORDER_NO_NODE);
    if (!v || i >= m->plan->n_formal || !m->plan->formal[i]) return v != NULL;
    scope_copy(v, m->plan->formal[i]);
    if (m->plan->graph) { /* of a body: each iteration may hand over another */
        v->constant = NULL;
        v->folded = false;
    }
    return true;
}

static bool add_graph_input(struct scope_draft *m, const struct onnx_value *said, size_t i)
{
    if (m->plan->outer) return add_formal(m, said->name, i);
    struct infer_value *v = add_value(m, said->name, ORDER_NO_NODE);
    return v && from_input(m->e, said, v);
}

static bool add_initializer(struct scope_draft *m, const struct onnx_tensor *t)
{
    if (!t->name[0]) return true; /* nobody can use it */
    struct infer_value *v = add_value(m, t->name, ORDER_NO_NODE);
    return v && scope_constant(m->e, v, t);
}

/* Inputs and constants first, then what nodes make: an error names the earlier of two makers first. */
static bool add_values(struct scope_draft *m)
{
    const struct onnx_graph *g = m->plan->graph;
    const struct onnx_function *f = m->plan->function;
    bool ok = true;
    for (size_t i = 0; g && ok && i < g->inputs.n; i++) ok = add_graph_input(m, &g->inputs.items[i], i);
    for (size_t i = 0; g && ok && i < g->initializers.n; i++)
        ok = add_initializer(m, &g->initializers.items[i]);
    for (size_t i = 0; g && ok && i < g->sparse.n; i++) ok = add_sparse(m, &g->sparse.items[i]);
    for (size_t i = 0; f && ok && i < f->inputs.n; i++) ok = add_formal(m, f->inputs.items[i], i);
    for (uint32_t i = 0; ok && i < m->n; i++)
        for (size_t k = 0; ok && k < m->nodes[i]->outputs.n; k++) {
            const char *name = m->nodes[i]->outputs.items[k];
            ok = !name[0] || add_value(m, name, i);
        }
    return ok;
}

/* ---- what the file says of values ---- */

static void note_said(struct infer_scope *s, const struct onnx_value *x)
{
    const uint64_t *at = map_u64_find(s->names, (uint64_t)(uintptr_t)x->name);
    if (at && (x->has_shape || x->type)) s->said[*at - 1] = x;
}

static bool add_said(struct scope_draft *m)
{
    const struct onnx_graph *g = m->plan->graph;
    if (!g || g->values.n + g->outputs.n + g->inputs.n == 0) return true;
    m->scope->said = engine_get(m->e, m->scope->n_values, sizeof(struct onnx_value *));
    if (!m->scope->said) return false;
    for (size_t i = 0; i < g->values.n; i++) note_said(m->scope, &g->values.items[i]);
    for (size_t i = 0; i < g->outputs.n; i++) note_said(m->scope, &g->outputs.items[i]);
    for (size_t i = 0; m->plan->outer && i < g->inputs.n; i++) note_said(m->scope, &g->inputs.items[i]);
    return true;
}

/* A name counts only where inputs of the model use it: others stand for sizes that no one can choose. */
static const struct poly *said_dim(const struct infer_engine *e, const struct onnx_dim *d)
{
    if (d->value >= 0) return poly_int(e->space, d->value);
    return d->name[0] && map_str_find(&e->symbols, d->name, strlen(d->name)) ? scope_symbol(e, d->name)
                                                                             : NULL;
}

static bool fill_said(struct infer_engine *e, const struct onnx_value *said, struct infer_value *v)
{
    if (!v->type) v->type = said->type;
    if (!said->has_shape || v->data_dependent) return true;
    if (!v->has_rank && !scope_dims(e, v, said->dims.n)) return false;
    if (v->rank != said->dims.n) return true; /* out of date: the rule knows better */
    for (size_t i = 0; i < v->rank; i++)
        if (!v->dims[i]) v->dims[i] = said_dim(e, &said->dims.items[i]);
    return true;
}

static bool fill_seen(struct infer_engine *e, struct infer_value *v)
{
    const uint64_t *at = map_str_find(&e->seen, v->name, strlen(v->name));
    const struct infer_seen *seen = at ? &e->options->seen[*at - 1] : NULL;
    if (!seen || (v->has_rank && v->rank != seen->rank)) return true;
    if (!v->has_rank && !scope_dims(e, v, seen->rank)) return false;
    for (size_t i = 0; i < seen->rank; i++)
        if (!v->dims[i]) v->dims[i] = poly_int(e->space, seen->dims[i]);
    if (!v->type) v->type = seen->type;
    v->profiled = true;
    return true;
}

bool scope_is_known(const struct infer_value *v)
{
    for (size_t i = 0; i < v->rank; i++)
        if (!v->dims[i]) return false;
    return v->has_rank;
}

bool scope_fill(struct infer_engine *e, const struct infer_scope *scope, struct infer_value *v)
{
    if (scope_is_known(v) && v->type) return true;
    const uint64_t *at = scope->said ? map_u64_find(scope->names, (uint64_t)(uintptr_t)v->name) : NULL;
    const struct onnx_value *said = at ? scope->said[*at - 1] : NULL;
    if (said && !fill_said(e, said, v)) return false;
    return scope_is_known(v) || scope->outer || fill_seen(e, v);
}

/* ---- nodes ---- */

/* Functions may say which versions their nodes are of. */
static int64_t version_of(const struct scope_draft *m, const char *domain)
{
    enum { LISTED_MAX = 64 };
    const struct infer_scope *s = m->scope;
    const uint64_t *version = map_u64_find(&m->e->opsets, (uint64_t)(uintptr_t)domain);
    while (s->outer && !s->function) s = s->outer;
    for (size_t i = 0; s->function && i < s->function->opsets.n && i < LISTED_MAX; i++)
        if (strcmp(s->function->opsets.items[i].domain, domain) == 0)
            return s->function->opsets.items[i].version;
    return version ? (int64_t)*version : onnx_opset(m->e->model, domain);
}

/* The node with the values it takes and makes; one that nobody makes is an error, or left out where tolerated. */
static bool wire_node(struct scope_draft *m, const struct onnx_node *n, struct infer_node *out)
{
    char text[160];
    *out = (struct infer_node){.node = n, .scope = m->scope, .opset = version_of(m, n->domain)};
    out->inputs = engine_get(m->e, n->inputs.n + n->outputs.n, sizeof *out->inputs);
    if (!out->inputs) return false;
    out->outputs = out->inputs + n->inputs.n;
    for (size_t i = 0; i < n->inputs.n; i++) {
        const char *name = n->inputs.items[i];
        if (name[0]) out->inputs[i] = scope_find(m->scope, name);
        if (!name[0] || out->inputs[i] || m->e->options->tolerant) continue;
        return engine_error(m->e, "%s: input '%.80s' is made by no node, input or initializer",
                            engine_node_text(n, text, sizeof text), name);
    }
    for (size_t i = 0; i < n->outputs.n; i++)
        if (n->outputs.items[i][0]) out->outputs[i] = scope_find(m->scope, n->outputs.items[i]);
    return true;
}

static bool wire_nodes(struct scope_draft *m)
{
    bool ok = order_nodes(m);
    for (size_t i = 0; ok && i < m->n; i++) ok = wire_node(m, m->nodes[m->order[i]], &m->scope->nodes[i]);
    m->scope->n_nodes = m->n;
    return ok;
}

static bool check_outputs(const struct scope_draft *m)
{
    const struct onnx_graph *g = m->plan->graph;
    const struct onnx_function *f = m->plan->function;
    size_t n = g ? g->outputs.n : f->outputs.n;
    for (size_t i = 0; i < n; i++) {
        const char *name = g ? g->outputs.items[i].name : f->outputs.items[i];
        if (!name[0] || scope_find(m->scope, name)) continue;
        return engine_error(m->e, "output '%.80s' of %s '%.60s' is made by no node", name,
                            g ? "graph" : "function", g ? g->name : f->name);
    }
    return true;
}

/* ---- all of it ---- */

static size_t count_values(const struct scope_draft *m)
{
    const struct onnx_graph *g = m->plan->graph;
    size_t n = g ? g->inputs.n + g->initializers.n + g->sparse.n : m->plan->function->inputs.n;
    for (size_t i = 0; i < m->n; i++) n += m->nodes[i]->outputs.n;
    return n + 1; /* room to speak of one more, which is made twice */
}

/* In nodes: names and attributes cost less than one, but a function may have many and be called often. */
static size_t weight_of(const struct scope_draft *m, const struct onnx_node *items)
{
    enum { PER_NODE = 8 };
    const struct onnx_graph *g = m->plan->graph;
    size_t small = g ? g->inputs.n + g->initializers.n + g->sparse.n + g->values.n + g->outputs.n : 0;
    if (!g) small = m->plan->function->inputs.n + m->plan->function->outputs.n;
    for (size_t i = 0; i < m->n; i++) small += items[i].inputs.n + items[i].outputs.n + items[i].attributes.n;
    return m->n + small / PER_NODE;
}

/* The nodes in the order of the file; those of a function with the attributes of this call. */
static bool take_nodes(struct scope_draft *m)
{
    const struct onnx_graph *g = m->plan->graph;
    const struct onnx_node *items = g ? g->nodes.items : m->plan->function->nodes.items;
    m->n = g ? g->nodes.n : m->plan->function->nodes.n;
    if (!engine_charge(m->e, m->n < ORDER_NO_NODE ? weight_of(m, items) : SIZE_MAX)) return false;
    if (!(m->nodes = mem_new(m->n, sizeof *m->nodes))) return engine_nomem(m->e);
    for (size_t i = 0; i < m->n; i++) {
        m->nodes[i] = &items[i];
        if (!g && !function_node(m->e, &items[i], m->plan, &m->nodes[i])) return false;
    }
    return true;
}

/* What the scope keeps is of the engine, what only making it takes is freed by scope_make. */
static bool take_memory(struct scope_draft *m)
{
    struct infer_scope *s = m->scope;
    size_t n = count_values(m);
    s->values = engine_get(m->e, n, sizeof *s->values);
    s->nodes = engine_get(m->e, m->n, sizeof *s->nodes);
    m->room = engine_get(m->e, n, sizeof *m->room);
    m->made_by = mem_new(n, sizeof *m->made_by);
    m->order = mem_new(m->n, sizeof *m->order);
    s->names = mem_new(1, sizeof *s->names);
    bool got = s->values && s->nodes && m->room && m->made_by && m->order && s->names;
    if (got && vec_push(&m->e->memory->names, s->names, NULL) == TARE_OK) return true;
    mem_free(s->names);
    return engine_nomem(m->e);
}

bool scope_make(struct infer_engine *e, const struct scope_plan *p, struct infer_scope **out)
{
    struct scope_draft m = {.e = e, .plan = p, .scope = engine_get(e, 1, sizeof *m.scope)};
    if (!m.scope) return false;
    *m.scope = (struct infer_scope){
        .graph = p->graph, .function = p->function, .outer = p->outer, .call = p->call, .model = e->model};
    bool ok = take_nodes(&m) && take_memory(&m) && add_values(&m) && add_said(&m) && check_outputs(&m) &&
              wire_nodes(&m);
    mem_free(m.nodes);
    mem_free(m.made_by);
    mem_free(m.order);
    if (ok) *out = m.scope;
    return ok;
}
