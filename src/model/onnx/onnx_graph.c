/* SPDX-License-Identifier: MIT
 * onnx_graph.c - graphs, values, nodes and their attributes from their messages. A message is walked twice: once to
 * count and check, once to fill lists of exactly the right size. */
#include <string.h>

#include "core/map.h"
#include "model/onnx/onnx_parse.h"

enum {
    A_NAME = 1,
    A_F = 2,
    A_I = 3,
    A_S = 4,
    A_T = 5,
    A_G = 6,
    A_FLOATS = 7,
    A_INTS = 8,
    A_STRINGS = 9,
    A_TENSORS = 10,
    A_GRAPHS = 11,
    A_TYPE = 20,
    A_REF = 21
};

static const struct parse_field attribute_fields[PARSE_FIELDS] = {
    [A_NAME] = {.name = "name", .as = AS_BYTES},
    [A_F] = {.name = "f", .as = AS_FIXED32},
    [A_I] = {.name = "i", .as = AS_VARINT},
    [A_S] = {.name = "s", .as = AS_BYTES},
    [A_T] = {.name = "t", .as = AS_BYTES},
    [A_G] = {.name = "g", .as = AS_BYTES},
    [A_FLOATS] = {.name = "floats", .as = AS_FIXED32 | AS_BYTES},
    [A_INTS] = {.name = "ints", .as = AS_VARINT | AS_BYTES},
    [A_STRINGS] = {.name = "strings", .as = AS_BYTES},
    [A_TENSORS] = {.name = "tensors", .as = AS_BYTES},
    [A_GRAPHS] = {.name = "graphs", .as = AS_BYTES},
    [A_TYPE] = {.name = "type", .as = AS_VARINT},
    [A_REF] = {.name = "ref_attr_name", .as = AS_BYTES},
};

/* ---- attributes ---- */

static float float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}

static tare_status parse_floats(const struct parse *p, struct message m, struct onnx_attribute *a)
{
    struct message again = m;
    struct wire_field f;
    size_t n = 0;
    int got;
    while ((got = parse_next(p, &m, &f)) > 0) {
        if (f.number != A_FLOATS) continue;
        if (f.n % 4) return parse_fail(p, m.at, "floats end inside a number");
        n += f.n / 4;
    }
    if (got < 0) return (tare_status)got;
    if (parse_list(p, &a->floats, n) < 0) return TARE_NOMEM;
    while (parse_next(p, &again, &f) > 0) {
        if (f.number != A_FLOATS) continue;
        struct wire run = {f.bytes, f.bytes + f.n};
        uint64_t bits;
        const char *why;
        while (wire_packed(&run, WIRE_FIXED32, &bits, &why) > 0)
            a->floats.items[a->floats.n++] = float_of(bits);
    }
    return TARE_OK;
}

static tare_status parse_attribute_tensor(const struct parse *p, const struct place *at,
                                          const struct wire_field *f, struct onnx_attribute *a)
{
    struct place inner;
    if (a->t) return parse_fail(p, at, "has two tensors");
    tare_status s = parse_enter(p, &inner, at, "t", PARSE_NO_INDEX);
    struct onnx_tensor *t = s < 0 ? NULL : arena_new(&p->memory->arena, 1, sizeof *t);
    if (s < 0) return s;
    if (!t) return parse_nomem(p);
    a->t = t;
    return parse_tensor(p, &inner, f, t);
}

static tare_status parse_attribute_graph(const struct parse *p, const struct place *at,
                                         const struct wire_field *f, struct onnx_attribute *a)
{
    struct place inner;
    if (a->g) return parse_fail(p, at, "has two graphs");
    tare_status s = parse_enter(p, &inner, at, "g", PARSE_NO_INDEX);
    struct onnx_graph *g = s < 0 ? NULL : arena_new(&p->memory->arena, 1, sizeof *g);
    if (s < 0) return s;
    if (!g) return parse_nomem(p);
    a->g = g;
    return parse_graph(p, &inner, f, g);
}

/* A string in a list is kept up to a NUL; what is not UTF-8 is replaced. */
static tare_status add_string(const struct parse *p, const struct wire_field *f, struct onnx_attribute *a)
{
    tare_status s = parse_text(p, NULL, f, &a->strings[a->n_strings]);
    if (s == TARE_OK) a->n_strings++;
    return s;
}

static tare_status attribute_field(const struct parse *p, const struct place *at, const struct wire_field *f,
                                   struct onnx_attribute *a)
{
    switch (f->number) {
    case A_NAME: return parse_name(p, at, f, &a->name);
    case A_F: a->f = float_of(f->value); return TARE_OK;
    case A_I: a->i = (int64_t)f->value; return TARE_OK;
    case A_S:
        a->s = f->bytes;
        a->s_bytes = f->n;
        return TARE_OK;
    case A_T: return parse_attribute_tensor(p, at, f, a);
    case A_G: return parse_attribute_graph(p, at, f, a);
    case A_STRINGS: return add_string(p, f, a);
    case A_TYPE: a->kind = f->value > INT32_MAX ? -1 : (int)f->value; return TARE_OK;
    case A_REF: return parse_name(p, at, f, &a->ref);
    case A_TENSORS:
    case A_GRAPHS: return TARE_OK; /* lists of these occur in no operator: not kept */
    default: return TARE_OK;
    }
}

/* Files of IR version 1 do not say which of the fields counts. */
static int kind_from(const struct parse_counts *c)
{
    static const int kinds[][2] = {
        {A_F, ONNX_ATTR_FLOAT},   {A_I, ONNX_ATTR_INT},     {A_S, ONNX_ATTR_STRING},
        {A_T, ONNX_ATTR_TENSOR},  {A_G, ONNX_ATTR_GRAPH},   {A_FLOATS, ONNX_ATTR_FLOATS},
        {A_INTS, ONNX_ATTR_INTS}, {A_STRINGS, ONNX_ATTR_STRINGS},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (c->of[kinds[i][0]]) return kinds[i][1];
    }
    return ONNX_ATTR_NONE;
}

tare_status parse_attribute(const struct parse *p, const struct place *at, const struct wire_field *whole,
                            void *out)
{
    struct onnx_attribute *a = out;
    struct message m = message_of(whole, attribute_fields, at);
    struct parse_counts counts;
    struct wire_field f;
    int got;
    tare_status s = parse_count(p, m, &counts);
    if (s < 0) return s;
    *a = (struct onnx_attribute){.name = "", .kind = kind_from(&counts)};
    if (counts.of[A_INTS] && (s = parse_ints(p, m, A_INTS, &a->ints.items, &a->ints.n)) < 0) return s;
    if (counts.of[A_FLOATS] && (s = parse_floats(p, m, a)) < 0) return s;
    if (counts.of[A_STRINGS]) {
        a->strings = arena_new(&p->memory->arena, counts.of[A_STRINGS], sizeof *a->strings);
        if (!a->strings) return parse_nomem(p);
    }
    while ((got = parse_next(p, &m, &f)) > 0) {
        if ((s = attribute_field(p, at, &f, a)) < 0) return s;
    }
    if (got < 0) return (tare_status)got;
    return a->name[0] ? TARE_OK : parse_fail(p, at, "an attribute without a name");
}

/* ---- nodes ---- */

tare_status parse_node(const struct parse *p, const struct place *at, const struct wire_field *f, void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"input", AS_BYTES, PARSE_NAMES(struct onnx_node, inputs)},
        [2] = {"output", AS_BYTES, PARSE_NAMES(struct onnx_node, outputs)},
        [3] = {"name", AS_BYTES, PARSE_ONE(struct onnx_node, name, parse_name)},
        [4] = {"op_type", AS_BYTES, PARSE_ONE(struct onnx_node, op, parse_name)},
        [5] = {"attribute", AS_BYTES, PARSE_LIST(struct onnx_node, attributes, parse_attribute)},
        [6] = {.name = "doc_string", .as = AS_BYTES},
        [7] = {"domain", AS_BYTES, PARSE_ONE(struct onnx_node, domain, parse_name)},
    };
    struct onnx_node *n = out;
    *n = (struct onnx_node){.name = "", .op = "", .domain = ""};
    tare_status s = parse_fields(p, at, f, fields, n);
    if (s < 0) return s;
    if (strcmp(n->domain, "ai.onnx") == 0) n->domain = "";
    return n->op[0] ? TARE_OK : parse_fail(p, at, "a node without an operator");
}

/* ---- inputs, outputs and annotated values ---- */

static const struct parse_field dim_fields[PARSE_FIELDS] = {
    [1] = {.name = "dim_value", .as = AS_VARINT},
    [2] = {.name = "dim_param", .as = AS_BYTES},
};

static tare_status parse_dim(const struct parse *p, const struct place *at, const struct wire_field *whole,
                             void *out)
{
    struct onnx_dim *d = out;
    struct message m = message_of(whole, dim_fields, at);
    struct wire_field f;
    int got;
    *d = (struct onnx_dim){-1, ""};
    while ((got = parse_next(p, &m, &f)) > 0) {
        if (f.number == 1) {
            *d = (struct onnx_dim){(int64_t)f.value, ""}; /* some exporters write -1 for "not fixed" */
            if (d->value < -1) return parse_fail(p, at, "a dimension of %lld", (long long)d->value);
            continue;
        }
        d->value = -1;
        tare_status s = parse_name(p, at, &f, &d->name);
        if (s < 0) return s;
    }
    return got < 0 ? (tare_status)got : TARE_OK;
}

static tare_status parse_shape(const struct parse *p, const struct place *at, const struct wire_field *f,
                               void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"dim", AS_BYTES, PARSE_LIST(struct onnx_value, dims, parse_dim)},
    };
    struct onnx_value *v = out;
    v->dims.n = 0;
    v->has_shape = true;
    return parse_fields(p, at, f, fields, v);
}

static tare_status parse_element_type(const struct parse *p, const struct place *at,
                                      const struct wire_field *f, void *out)
{
    (void)p, (void)at;
    *(int *)out = f->value >= ONNX_TYPES ? ONNX_UNDEFINED : (int)f->value;
    return TARE_OK;
}

/* TypeProto: which kind it is, by field number. */
static tare_status parse_type(const struct parse *p, const struct place *at, const struct wire_field *whole,
                              void *out)
{
    static const struct parse_field kinds[PARSE_FIELDS] = {
        [1] = {.name = "tensor", .as = AS_BYTES},
        [4] = {.name = "sequence", .as = AS_BYTES},
        [5] = {.name = "map", .as = AS_BYTES},
        [7] = {.name = "opaque", .as = AS_BYTES},
        [8] = {.name = "sparse tensor", .as = AS_BYTES},
        [9] = {.name = "optional", .as = AS_BYTES},
    };
    static const struct parse_field tensor[PARSE_FIELDS] = {
        [1] = {"elem_type", AS_VARINT, PARSE_ONE(struct onnx_value, type, parse_element_type)},
        [2] = {"shape", AS_BYTES, .read = parse_shape},
    };
    struct onnx_value *v = out;
    struct message m = message_of(whole, kinds, at);
    struct wire_field f;
    int got;
    while ((got = parse_next(p, &m, &f)) > 0) {
        v->kind = kinds[f.number].name;
        tare_status s = f.number == 1 ? parse_fields(p, at, &f, tensor, v) : TARE_OK;
        if (s < 0) return s;
    }
    return got < 0 ? (tare_status)got : TARE_OK;
}

static tare_status parse_value(const struct parse *p, const struct place *at, const struct wire_field *f,
                               void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"name", AS_BYTES, PARSE_ONE(struct onnx_value, name, parse_name)},
        [2] = {"type", AS_BYTES, .read = parse_type},
    };
    struct onnx_value *v = out;
    *v = (struct onnx_value){.name = "", .kind = ""};
    tare_status s = parse_fields(p, at, f, fields, v);
    if (s < 0) return s;
    return v->name[0] ? TARE_OK : parse_fail(p, at, "a value without a name");
}

/* ---- initializers by name ---- */

struct onnx_index {
    size_t mask;
    uint64_t seed;
    uint32_t slots[]; /* number of the initializer + 1, 0: free */
};

static size_t first_slot(const struct onnx_index *x, const char *name)
{
    return map_hash(x->seed, name, strlen(name)) & x->mask;
}

const struct onnx_tensor *onnx_initializer(const struct onnx_graph *g, const char *name)
{
    const struct onnx_index *x = g->index;
    if (!x) return NULL;
    for (size_t at = first_slot(x, name); x->slots[at]; at = (at + 1) & x->mask) {
        const struct onnx_tensor *t = &g->initializers.items[x->slots[at] - 1];
        if (strcmp(t->name, name) == 0) return t;
    }
    return NULL;
}

/* Initializer i has no name, or that of another. */
static tare_status refuse_initializer(const struct parse *p, const struct place *at,
                                      const struct onnx_graph *g, size_t i)
{
    const char *name = g->initializers.items[i].name;
    struct place inner;
    tare_status s = parse_enter(p, &inner, at, "initializer", (int64_t)i);
    if (s < 0) return s;
    if (!name[0]) return parse_fail(p, &inner, "an initializer without a name");
    return parse_fail(p, &inner, "a second initializer named '%.100s'", name);
}

static tare_status index_initializers(const struct parse *p, const struct place *at, struct onnx_graph *g)
{
    size_t n = g->initializers.n, n_slots = 4;
    if (!n) return TARE_OK;
    if (n >= UINT32_MAX / 2) return parse_nomem(p);
    while (n_slots < n * 2) n_slots *= 2;
    struct onnx_index *x = arena_new(&p->memory->arena, 1, sizeof *x + n_slots * sizeof x->slots[0]);
    if (!x) return parse_nomem(p);
    x->mask = n_slots - 1;
    x->seed = p->memory->strings.seed;
    for (size_t i = 0; i < n; i++) {
        const char *name = g->initializers.items[i].name;
        if (!name[0]) return refuse_initializer(p, at, g, i);
        size_t slot = first_slot(x, name);
        for (; x->slots[slot]; slot = (slot + 1) & x->mask) {
            if (g->initializers.items[x->slots[slot] - 1].name == name)
                return refuse_initializer(p, at, g, i);
        }
        x->slots[slot] = (uint32_t)i + 1;
    }
    g->index = x;
    return TARE_OK;
}

/* Before IR version 4 every initializer had to be listed as an input too; after, it is a default. */
static tare_status drop_initialized_inputs(const struct parse *p, struct onnx_graph *g)
{
    struct map_u64 sparse =
        MAP_U64_INIT; /* by the addresses of the names, which are the same for the same name */
    tare_status s = TARE_OK;
    size_t kept = 0;
    for (size_t i = 0; s == TARE_OK && i < g->sparse.n; i++)
        s = map_u64_put(&sparse, (uint64_t)(uintptr_t)g->sparse.items[i].values.name, 1, NULL);
    for (size_t i = 0; s == TARE_OK && i < g->inputs.n; i++) {
        const char *name = g->inputs.items[i].name;
        if (onnx_initializer(g, name) || map_u64_find(&sparse, (uint64_t)(uintptr_t)name)) continue;
        g->inputs.items[kept++] = g->inputs.items[i];
    }
    g->inputs.n = kept;
    map_u64_release(&sparse);
    return s < 0 ? parse_nomem(p) : TARE_OK;
}

tare_status parse_graph(const struct parse *p, const struct place *at, const struct wire_field *f, void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"node", AS_BYTES, PARSE_LIST(struct onnx_graph, nodes, parse_node)},
        [2] = {"name", AS_BYTES, PARSE_ONE(struct onnx_graph, name, parse_name)},
        [5] = {"initializer", AS_BYTES, PARSE_LIST(struct onnx_graph, initializers, parse_tensor)},
        [10] = {.name = "doc_string", .as = AS_BYTES},
        [11] = {"input", AS_BYTES, PARSE_LIST(struct onnx_graph, inputs, parse_value)},
        [12] = {"output", AS_BYTES, PARSE_LIST(struct onnx_graph, outputs, parse_value)},
        [13] = {"value_info", AS_BYTES, PARSE_LIST(struct onnx_graph, values, parse_value)},
        [14] = {.name = "quantization_annotation", .as = AS_BYTES},
        [15] = {"sparse_initializer", AS_BYTES, PARSE_LIST(struct onnx_graph, sparse, parse_sparse)},
    };
    struct onnx_graph *g = out;
    *g = (struct onnx_graph){.name = ""};
    tare_status s = parse_fields(p, at, f, fields, g);
    if (s == TARE_OK) s = index_initializers(p, at, g);
    return s < 0 ? s : drop_initialized_inputs(p, g);
}

const struct onnx_attribute *onnx_attribute(const struct onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->attributes.n; i++) {
        if (strcmp(n->attributes.items[i].name, name) == 0) return &n->attributes.items[i];
    }
    return NULL;
}
