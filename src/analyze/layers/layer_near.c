/* SPDX-License-Identifier: MIT
 * layer_near.c - see layer_parts.h. Nodes are taken in the file's order, so one that reads what comes later learns
 * nothing from it. Never overrides what a name says. */
#include "analyze/layers/layer_parts.h"

#include <string.h>

#include "analyze/layers/layers.h"
#include "core/map.h"
#include "core/mem.h"

#define WEIGHT UINT64_MAX /* in made_by: no node, an initializer */

struct neighbours {
    const struct onnx_graph *g;
    struct map_str made_by; /* value -> node, or WEIGHT; inputs of the graph are not in it */
    const char **group;     /* per node */
    bool *constant;         /* per node: made of weights only */
};

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0) return true;
    return false;
}

/* A matrix product: multiplying by the table of embeddings is what the head of a language model does. */
static const char *weight_says(const struct onnx_node *n, const char *group)
{
    bool product = strstr(n->op, "MatMul") || strstr(n->op, "Gemm");
    return group && product && strcmp(group, "embedding") == 0 ? "head" : group;
}

/* What the weights it reads tell, themselves or through a Transpose of them. *any: does it read one? */
static const char *by_weights(const struct neighbours *l, const struct onnx_node *n, bool *any)
{
    const char *group = NULL;
    *any = false;
    for (size_t k = 0; k < n->inputs.n; k++) {
        const char *value = n->inputs.items[k];
        const uint64_t *at = map_str_find(&l->made_by, value, strlen(value));
        bool weight = at && *at == WEIGHT, made = at && !weight && l->constant[*at];
        *any = *any || weight || made;
        if (!group && weight && strchr(value, '.')) group = layers_group_told(value, n->op);
        if (!group && made) group = l->group[*at];
    }
    return weight_says(n, group);
}

/* The one group of all nodes that made what it reads in every run. What follows a norm or a head is something else. */
static const char *by_makers(const struct neighbours *l, const struct onnx_node *n)
{
    static const char *const lenders[] = {"attention", "mlp", "embedding"};
    static const char *const of_first[] = {"Reshape", "Expand", "Slice"}; /* the others say how, not what */
    const char *common = NULL;
    size_t operands = is_one_of(n->op, of_first, sizeof of_first / sizeof *of_first) ? 1 : SIZE_MAX;
    for (size_t k = 0; k < n->inputs.n && k < operands; k++) {
        const uint64_t *at = map_str_find(&l->made_by, n->inputs.items[k], strlen(n->inputs.items[k]));
        if (!at || *at == WEIGHT || l->constant[*at]) continue;
        const char *group = l->group[*at];
        if (!group || (common && strcmp(common, group) != 0)) return NULL;
        common = group;
    }
    return common && is_one_of(common, lenders, sizeof lenders / sizeof *lenders) ? common : NULL;
}

/* A product with weights of its own may well begin the next block: only their names tell. */
static const char *by_edges(const struct neighbours *l, const struct onnx_node *n)
{
    bool weights, product = strstr(n->op, "MatMul") || strstr(n->op, "Gemm") || strstr(n->op, "Conv");
    const char *group = by_weights(l, n, &weights);
    return group || (weights && product) ? group : by_makers(l, n);
}

static bool is_constant(const struct neighbours *l, const struct onnx_node *n)
{
    for (size_t k = 0; k < n->inputs.n; k++) {
        const char *value = n->inputs.items[k];
        const uint64_t *at = map_str_find(&l->made_by, value, strlen(value));
        if (value[0] && (!at || (*at != WEIGHT && !l->constant[*at]))) return false;
    }
    return true;
}

static tare_status group_node(struct neighbours *l, size_t i, tare_error *err)
{
    const struct onnx_node *n = &l->g->nodes.items[i];
    const char *first = n->outputs.n ? n->outputs.items[0] : "";
    tare_status s = TARE_OK;
    l->constant[i] = is_constant(l, n);
    l->group[i] = layers_group_told(n->name[0] ? n->name : first, n->op);
    if (!l->group[i]) l->group[i] = by_edges(l, n);
    for (size_t k = 0; s == TARE_OK && k < n->outputs.n; k++) {
        const char *value = n->outputs.items[k];
        if (value[0]) s = map_str_put(&l->made_by, value, strlen(value), i, err);
    }
    return s;
}

static tare_status group_nodes(struct neighbours *l, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < l->g->initializers.n; i++) {
        const char *name = l->g->initializers.items[i].name;
        s = map_str_put(&l->made_by, name, strlen(name), WEIGHT, err);
    }
    for (size_t i = 0; s == TARE_OK && i < l->g->nodes.n; i++) s = group_node(l, i, err);
    return s;
}

tare_status layer_near_build(struct layer_near *out, const struct onnx_graph *g, tare_error *err)
{
    struct neighbours l = {.g = g, .made_by = MAP_STR_INIT};
    *out = (struct layer_near)LAYER_NEAR_INIT;
    if (!g) return TARE_OK;
    l.group = mem_new(g->nodes.n, sizeof *l.group);
    l.constant = mem_new(g->nodes.n, sizeof *l.constant);
    tare_status s =
        l.group && l.constant ? group_nodes(&l, err) : error_nomem(err, "groups of %zu nodes", g->nodes.n);
    map_str_release(&l.made_by);
    mem_free(l.constant);
    *out = (struct layer_near){l.group, g->nodes.n};
    if (s < 0) layer_near_release(out);
    return s;
}

void layer_near_release(struct layer_near *n)
{
    mem_free(n->group);
    *n = (struct layer_near)LAYER_NEAR_INIT;
}

const char *layer_near_group(const struct layer_near *n, size_t node)
{
    return node < n->n ? n->group[node] : NULL;
}
