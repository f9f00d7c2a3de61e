/* SPDX-License-Identifier: MIT
 * onnx_graph.c - graphs, values, nodes and their attributes from their messages. A message is walked twice: once to
 * count and check, once to fill lists of exactly the right size. */
#include <string.h>

#include "core/map.h"
#include "model/onnx/onnx_parse.h"

/* ---- attributes ---- */

static tare_status parse_float(const struct parse *p, const struct place *at, const struct wire_field *f,
                               void *out)
{
    uint32_t bits = (uint32_t)f->value;
    (void)p, (void)at;
    memcpy(out, &bits, sizeof bits);
    return TARE_OK;
}

static tare_status parse_own_tensor(const struct parse *p, const struct place *at, const struct wire_field *f,
                                    void *out)
{
    struct onnx_tensor **to = out;
    if (*to) return parse_fail(p, at->up, "has two tensors");
    *to = arena_new(&p->memory->arena, 1, sizeof **to);
    return *to ? parse_tensor(p, at, f, *to) : parse_nomem(p);
}

static tare_status parse_own_graph(const struct parse *p, const struct place *at, const struct wire_field *f,
                                   void *out)
{
    struct onnx_graph **to = out;
    if (*to) return parse_fail(p, at->up, "has two graphs");
    *to = arena_new(&p->memory->arena, 1, sizeof **to);
    return *to ? parse_graph(p, at, f, *to) : parse_nomem(p);
}

enum { A_FIRST = 2, A_LAST = 9, A_TYPE = 20 }; /* f .. strings: in the order of enum onnx_attribute_kind */

/* Strings in a list are kept up to a NUL; what is not UTF-8 is replaced. Lists of tensors and graphs occur in no
 * operator and are not kept. */
tare_status parse_attribute(const struct parse *p, const struct place *at, const struct wire_field *f,
                            void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"name", AS_BYTES, PARSE_ONE(struct onnx_attribute, name, parse_name)},
        [2] = {"f", AS_FIXED32, PARSE_ONE(struct onnx_attribute, f, parse_float)},
        [3] = {"i", AS_VARINT, PARSE_ONE(struct onnx_attribute, i, parse_int)},
        [4] = {"s", AS_BYTES, PARSE_ONE(struct onnx_attribute, s, parse_bytes)},
        [5] = {"t", AS_BYTES, PARSE_MESSAGE(struct onnx_attribute, t, parse_own_tensor)},
        [6] = {"g", AS_BYTES, PARSE_MESSAGE(struct onnx_attribute, g, parse_own_graph)},
        [7] = {"floats", AS_FIXED32 | AS_BYTES, PARSE_NUMBERS(struct onnx_attribute, floats)},
        [8] = {"ints", AS_VARINT | AS_BYTES, PARSE_NUMBERS(struct onnx_attribute, ints)},
        [9] = {"strings", AS_BYTES, PARSE_ONE(struct onnx_attribute, strings, parse_text), .size = sizeof(char *)},
        [10] = {.name = "tensors", .as = AS_BYTES},
        [11] = {.name = "graphs", .as = AS_BYTES},
        [A_TYPE] = {"type", AS_VARINT, PARSE_ONE(struct onnx_attribute, kind, parse_enum)},
        [21] = {"ref_attr_name", AS_BYTES, PARSE_ONE(struct onnx_attribute, ref, parse_name)},
    };
    struct onnx_attribute *a = out;
    struct parse_counts counts;
    *a = (struct onnx_attribute){.name = ""};
    tare_status s = parse_fields(p, message_of(f, fields, at), a, &counts);
    if (s < 0) return s;
    /* Files of IR version 1 do not say which of the fields counts. */
    for (int i = A_FIRST; !counts.of[A_TYPE] && !a->kind && i <= A_LAST; i++)
        if (counts.of[i]) a->kind = i - A_FIRST + ONNX_ATTR_FLOAT;
    return a->name[0] ? TARE_OK : parse_fail(p, at, "an attribute without a name");
}

/* ---- nodes ---- */

/* "ai.onnx" is the long name of the domain "": one spelling from here on, so that operators are found in
 * one table. */
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
    tare_status s = parse_fields(p, message_of(f, fields, at), n, NULL);
    if (s < 0) return s;
    if (strcmp(n->domain, "ai.onnx") == 0) n->domain = "";
    return n->op[0] ? TARE_OK : parse_fail(p, at, "a node without an operator");
}

/* ---- inputs, outputs and annotated values ---- */

static const struct parse_field dim_fields[PARSE_FIELDS] = {
    [1] = {.name = "dim_value", .as = AS_VARINT},
    [2] = {.name = "dim_param", .as = AS_BYTES},
};

/* Number and name are a oneof: of several the last holds, as protobuf says. What has neither is not fixed
 * and has no name. */
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
    v->dims.items = NULL;
    v->dims.n = 0;
    v->has_shape = true;
    return parse_fields(p, message_of(f, fields, at), v, NULL);
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
        tare_status s = f.number == 1 ? parse_fields(p, message_of(&f, tensor, at), v, NULL) : TARE_OK;
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
    tare_status s = parse_fields(p, message_of(f, fields, at), v, NULL);
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

/* Open addressing, at most half full; names are interned, so that the same name is the same pointer. */
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

/* Inputs can be cleaned of initializers only after these were indexed: in the file they may come in any
 * order. */
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
    tare_status s = parse_fields(p, message_of(f, fields, at), g, NULL);
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
