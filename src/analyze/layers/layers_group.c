/* SPDX-License-Identifier: MIT
 * layers_group.c - layers into groups, by the words that exporters and architectures use in names, by what a node reads
 * where its name says nothing, or by patterns the user gave. One table of words; docs/layers.md shows it. Never looks
 * at times; neighbours never override what a name says. */
#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "analyze/layers/layer_parts.h"
#include "analyze/layers/layers.h"
#include "core/mem.h"

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0) return true;
    return false;
}

enum { PARTS_MAX = 32, PART_SIZE = 64 };

/* ---- by structure ---- */

struct word {
    const char *text, *group;
    bool whole; /* the part must be exactly this, but for digits and _ at its end */
};

/* In the order of strength: a norm inside of attention is a norm; attention inside of an encoder is attention. */
static const struct word words[] = {
    {"norm", "norm", false},
    {"ln", "norm", true},
    {"bn", "norm", true},
    {"attention", "attention", false},
    {"attn", "attention", false},
    {"mha", "attention", true},
    {"qkv", "attention", false},
    {"q_proj", "attention", true},
    {"k_proj", "attention", true},
    {"v_proj", "attention", true},
    {"o_proj", "attention", true},
    {"rotary", "attention", false},
    {"mlp", "mlp", false},
    {"ffn", "mlp", false},
    {"feed_forward", "mlp", false},
    {"feedforward", "mlp", false},
    {"intermediate", "mlp", false},
    {"experts", "mlp", false},
    {"gate_proj", "mlp", true},
    {"up_proj", "mlp", true},
    {"down_proj", "mlp", true},
    {"fc1", "mlp", true},
    {"fc2", "mlp", true},
    {"linear1", "mlp", true}, /* of PyTorch's own TransformerEncoderLayer */
    {"linear2", "mlp", true},
    {"ff", "mlp", true},
    {"densereludense", "mlp", false}, /* T5 */
    {"embed", "embedding", false},
    {"wte", "embedding", true},
    {"wpe", "embedding", true},
    {"pooler", "head", false},
    {"classifier", "head", false},
    {"lm_head", "head", false},
    {"head", "head", true},
    {"heads", "head", true},
    {"cls", "head", true},
    {"score", "head", true},
    {"qa_outputs", "head", true},
    {"fc", "head", true},
};

/* Operators that say by themselves what they are for. */
static const struct word ops[] = {
    {"Normalization", "norm", false}, {"Attention", "attention", false}, {"RotaryEmbedding", "attention", true},
    {"Gelu", "mlp", false},           {"Memcpy", "copy", false},         {"ReorderInput", "layout", true},
    {"ReorderOutput", "layout", true},
};

/* Parts of a path that only hold others. */
static const char *const holders[] = {"encoder", "decoder", "layer",       "layers",     "block",
                                      "blocks",  "model",   "transformer", "h",          "module",
                                      "bert",    "roberta", "deberta",     "distilbert", "electra",
                                      "vit",     "gpt2",    "backbone",    "base_model", "self",
                                      "output",  "dense",   "features",    "stages",     "r"};

struct path {
    char part[PARTS_MAX][PART_SIZE]; /* lower case */
    size_t n;
};

/* "/encoder/layer.3/attention/MatMul" -> encoder, layer, 3, attention; the last part is the node's own. */
static void split(struct path *p, const char *name)
{
    const char *s = name + strspn(name, "/.");
    p->n = 0;
    while (*s && p->n < PARTS_MAX) {
        size_t n = strcspn(s, "/."), keep = n < PART_SIZE - 1 ? n : PART_SIZE - 1;
        for (size_t i = 0; i < keep; i++) p->part[p->n][i] = (char)tolower((unsigned char)s[i]);
        p->part[p->n++][keep] = 0;
        s += n;
        s += strspn(s, "/.");
    }
}

/* Parts are in lower case like the words; operators are written in one way only. */
static bool fits(const struct word *w, const char *part)
{
    size_t n = strlen(w->text);
    if (!w->whole) return strstr(part, w->text) != NULL;
    return strncmp(part, w->text, n) == 0 && part[n + strspn(part + n, "_0123456789f")] == 0;
}

/* A convolution that a normalisation was fused into may be named after that, but it is none. */
static bool may_be_norm(const char *op)
{
    return !op || !(strstr(op, "Conv") || strstr(op, "MatMul") || strstr(op, "Gemm"));
}

static const char *by_words(const struct path *p, const char *op)
{
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        if (strcmp(words[w].group, "norm") == 0 && !may_be_norm(op)) continue;
        for (size_t i = 0; i < p->n; i++)
            if (fits(&words[w], p->part[i])) return words[w].group;
    }
    return NULL;
}

static const char *by_op(const char *op)
{
    for (size_t i = 0; op && i < sizeof ops / sizeof *ops; i++)
        if (fits(&ops[i], op)) return ops[i].group;
    return NULL;
}

static bool is_number(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == 0;
}

/* "encoder_layer_11", as some name their blocks. */
static bool is_numbered_holder(const char *part)
{
    const char *last = strrchr(part, '_');
    size_t n = last ? (size_t)(last - part) : 0;
    return n >= 5 && is_number(last + 1) && memcmp(last - 5, "layer", 5) == 0;
}

static bool is_holder(const char *part)
{
    return is_number(part) || is_numbered_holder(part) ||
           is_one_of(part, holders, sizeof holders / sizeof *holders);
}

/* "/encoder/layer.3/output/dense/MatMul": what BERT and its kin call the second half of the feed-forward. */
static bool is_bert_output(const struct path *p)
{
    for (size_t i = 2; i + 1 < p->n; i++)
        if (strcmp(p->part[i], "output") == 0 && is_number(p->part[i - 1]) &&
            strncmp(p->part[i - 2], "layer", 5) == 0)
            return true;
    return false;
}

/* The first part that says something: "layer1" of a ResNet; "features.3" where there are only numbers. */
static const char *by_part(struct arena *a, const struct path *p, const char *op)
{
    for (size_t i = 0; i + 1 < p->n; i++)
        if (!is_holder(p->part[i])) return arena_str(a, p->part[i]);
    if (op && strcmp(op, "Add") == 0 && p->n > 1) return "residual";
    for (size_t i = 0; i + 1 < p->n; i++) {
        if (is_numbered_holder(p->part[i])) return arena_str(a, p->part[i]);
        if (is_number(p->part[i + 1]) && !is_number(p->part[i]))
            return arena_printf(a, "%s.%s", p->part[i], p->part[i + 1]);
    }
    return "other";
}

/* The parts of the name, and what they or the operator tell. */
static const char *told(struct path *p, const char *name, const char *op)
{
    for (const char *inner; (inner = strstr(name, " > "));) name = inner + 3; /* a node of a body */
    split(p, name);
    const char *group = by_op(op);
    if (!group) group = by_words(p, op);
    return group || !is_bert_output(p) ? group : "mlp";
}

const char *layers_group_told(const char *name, const char *op)
{
    struct path p;
    if (strcmp(name, LAYERS_OUTSIDE) == 0) return "copy";
    return strcmp(name, LAYERS_RUNTIME) == 0 ? "runtime" : told(&p, name, op);
}

const char *layers_group_of(struct arena *a, const char *name, const char *op)
{
    struct path p;
    if (strcmp(name, LAYERS_RUNTIME) == 0) return "runtime";
    if (strcmp(name, LAYERS_OUTSIDE) == 0) return "copy";
    const char *group = told(&p, name, op);
    return group ? group : by_part(a, &p, op);
}

/* ---- by neighbours, see layer_parts.h ---- */

#define WEIGHT UINT64_MAX /* in made_by: no node, an initializer */

/* Nodes are taken in the file's order, so one that reads what comes later learns nothing from it. */
struct neighbours {
    const struct onnx_graph *g;
    struct map_str made_by; /* value -> node, or WEIGHT; inputs of the graph are not in it */
    const char **group;     /* per node */
    bool *constant;         /* per node: made of weights only */
};

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

/* ---- by patterns ---- */

static bool is_group(const char *pattern)
{
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (strcasecmp(words[w].group, pattern) == 0) return true;
    return false;
}

/* "attention" is no part of the name where the part that holds it is of another group by itself: what Llama calls
 * post_attention_layernorm is a norm beside attention. The norm of "/attention/output/LayerNorm" is inside of it. */
static bool names_group(const char *pattern, const struct run_layer *l)
{
    struct path p, one = {.n = 1};
    split(&p, l->name);
    for (size_t i = 0; i < p.n; i++) {
        if (!strcasestr(p.part[i], pattern)) continue;
        memcpy(one.part[0], p.part[i], PART_SIZE);
        const char *group = by_words(&one, l->op);
        if (!group || strcasecmp(group, pattern) == 0) return true;
    }
    return false;
}

static bool pattern_fits(const char *pattern, const struct run_layer *l)
{
    if (strpbrk(pattern, "*?"))
        return fnmatch(pattern, l->name, FNM_CASEFOLD) == 0 || fnmatch(pattern, l->group, FNM_CASEFOLD) == 0;
    return strcasestr(l->group, pattern) ||
           (is_group(pattern) ? names_group(pattern, l) : strcasestr(l->name, pattern) != NULL);
}

void layers_group(struct run *run, struct run_case *c, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < c->layers.n; i++) {
        struct run_layer *l = c->layers.at[i];
        const char *group = "other";
        if (!l->group) l->group = layers_group_of(&run->arena, l->name ? l->name : "", l->op);
        if (!patterns || !l->group || !l->name) continue;
        if (strcmp(l->name, LAYERS_RUNTIME) == 0) continue;
        for (size_t k = 0; k < n; k++) {
            if (!pattern_fits(patterns[k], l)) continue;
            group = arena_str(&run->arena, patterns[k]);
            break;
        }
        l->group = group;
    }
}
