/* SPDX-License-Identifier: MIT
 * graph_patterns.c - see graph_patterns_record() in inspect.h. Chains are found backwards, from their last node along
 * producers, by a table of operators; the search of one chain is bounded, since the graph may be anybody's. */
#include "analyze/layers/inspect.h"

#include <string.h>

#include "core/map.h"

enum { PATH_MAX_NODES = 16, REPEAT_MAX = 6, INPUTS_MAX = 3, TRIES_MAX = 512 };

struct graph {
    const struct inspected *in;
    struct map_u64 producer; /* value -> number of its layer + 1 */
    bool *used;              /* per layer: part of a chain already counted */
};

struct sum { /* of numbers of which some may not be known: then the whole is not */
    bool unknown;
    uint64_t v;
};

static void add_known(struct sum *s, struct known_u64 v)
{
    if (!v.known || __builtin_add_overflow(s->v, v.v, &s->v)) s->unknown = true;
}

static void add_bytes(struct sum *s, const struct inspected *in, const struct cost *c)
{
    add_known(s, inspect_number(in, c->read));
    add_known(s, inspect_number(in, c->written));
}

static void record(struct run *run, struct run_map *to, const char *key, struct sum s)
{
    if (!s.unknown && s.v <= INT64_MAX) run_map_int(&run->arena, to, key, (int64_t)s.v);
}

/* Is `op` one of the words of "Add|Mul"? */
static bool is_one_of(const char *words, const char *op)
{
    size_t n = strlen(op);
    for (const char *at = words; n && at; at = strchr(at, '|')) {
        if (*at == '|') at++;
        if (strncmp(at, op, n) == 0 && (at[n] == '|' || at[n] == 0)) return true;
    }
    return false;
}

static const char *op_of(const struct inspect_layer *l)
{
    return l->at->node->op;
}

/* ---- chains ---------------------------------------------------------------------------------- */

/* Operators from the last node back to the first. A step that begins with '*' may be missing or stand up to
 * REPEAT_MAX times. In this order, for a node belongs to the first chain it fits. */
static const struct chain {
    const char *name;
    const char *steps[9];
} chains[] = {
    {"layer_norm", {"Div", "Sqrt", "Add", "ReduceMean", "*Cast", "Pow|Mul", "*Cast", "Sub", "ReduceMean"}},
    {"rms_norm", {"Div|Mul", "*Reciprocal|Div", "Sqrt", "Add", "ReduceMean", "Pow|Mul"}},
    {"gelu", {"Mul", "Add", "Erf", "Div|Mul"}},
    {"gelu", {"Mul", "Add", "Tanh", "Mul", "Add", "Mul", "Pow|Mul"}},
    {"attention",
     {"MatMul|FusedMatMul|Einsum", "*Cast|Dropout|Identity|Where|Mul|Reshape", "Softmax",
      "*Cast|Add|Sub|Mul|Div|Where|Identity|Reshape|Max", "MatMul|FusedMatMul|Einsum"}},
};
enum { N_CHAINS = sizeof chains / sizeof *chains, N_STEPS = 9 };

struct search {
    const struct graph *g;
    const struct chain *chain;
    size_t path[PATH_MAX_NODES], n;
    unsigned tries;
};

static const char *step_words(const struct search *s, size_t step)
{
    return step < N_STEPS ? s->chain->steps[step] : NULL;
}

static bool walk_on(struct search *s, size_t layer, size_t step, unsigned repeated);

/* `layer` as the next node of the path, if it fits. */
static bool take(struct search *s, size_t layer, size_t step, unsigned repeated)
{
    const char *words = step_words(s, step);
    bool optional = *words == '*';
    if (s->tries++ >= TRIES_MAX || s->n >= PATH_MAX_NODES || s->g->used[layer]) return false;
    if (!is_one_of(words + optional, op_of(&s->g->in->layers.items[layer]))) return false;
    s->path[s->n++] = layer;
    if (walk_on(s, layer, optional ? step : step + 1, optional ? repeated + 1 : 0)) return true;
    s->n--;
    return false;
}

static bool from_producers(struct search *s, size_t layer, size_t step, unsigned repeated)
{
    const struct infer_node *n = s->g->in->layers.items[layer].at;
    for (size_t i = 0; i < n->node->inputs.n && i < INPUTS_MAX; i++) {
        const uint64_t *from = n->inputs[i] ? map_u64_find(&s->g->producer, (uintptr_t)n->inputs[i]) : NULL;
        if (from && take(s, (size_t)*from - 1, step, repeated)) return true;
    }
    return false;
}

/* From `layer`, which has been taken, to the end of the chain by whatever inputs lead there. */
static bool walk_on(struct search *s, size_t layer, size_t step, unsigned repeated)
{
    const char *words = step_words(s, step);
    if (!words) return true;
    if (*words != '*') return from_producers(s, layer, step, 0);
    if (!step_words(s, step + 1) || walk_on(s, layer, step + 1, 0)) return true;
    return repeated < REPEAT_MAX && from_producers(s, layer, step, repeated);
}

/* A node that went into one chain is in no other, so the order of `chains` matters. A contraction may end one chain and
 * begin the next. */
static uint64_t count_chain(struct graph *g, const struct chain *c, struct sum *nodes, struct sum *bytes)
{
    uint64_t found = 0;
    for (size_t i = 0; i < g->in->layers.n; i++) {
        struct search s = {.g = g, .chain = c};
        if (!take(&s, i, 0, 0)) continue;
        found++;
        for (size_t k = 0; k < s.n; k++) {
            const struct inspect_layer *l = &g->in->layers.items[s.path[k]];
            /* A contraction is work that stays when it is fused: only what lies between goes away. */
            bool stays = is_one_of("MatMul|FusedMatMul|Einsum", op_of(l));
            if (!stays) g->used[s.path[k]] = true;
            if (!stays) add_bytes(bytes, g->in, &l->cost);
            nodes->v++;
        }
    }
    return found;
}

static void record_chains(struct graph *g, struct run *run, struct run_map *to)
{
    struct sum nodes = {0}, bytes = {0};
    uint64_t same = 0;
    for (size_t c = 0; c < N_CHAINS; c++) {
        bool again = c > 0 && strcmp(chains[c].name, chains[c - 1].name) == 0;
        same = (again ? same : 0) + count_chain(g, &chains[c], &nodes, &bytes);
        record(run, to, chains[c].name, (struct sum){.v = same});
    }
    record(run, to, "unfused_nodes", nodes);
    record(run, to, "unfused_bytes", bytes);
}

/* ---- node by node ---------------------------------------------------------------------------- */

/* A node that could be folded is counted as that alone, also where it is a transpose: folding would remove it. */
static void record_nodes(const struct inspected *in, struct run *run, struct run_map *to)
{
    struct sum transposes = {0}, moved = {0}, foldable = {0}, macs = {0};
    for (size_t i = 0; i < in->layers.n; i++) {
        const struct inspect_layer *l = &in->layers.items[i];
        if (l->folded) {
            foldable.v++;
            add_known(&macs, inspect_number(in, l->cost.macs));
            add_known(&macs, inspect_number(in, l->cost.int_macs));
        } else if (is_one_of("Transpose|ReorderInput|ReorderOutput", op_of(l))) {
            transposes.v++;
            add_bytes(&moved, in, &l->cost);
        }
    }
    record(run, to, "transposes", transposes);
    record(run, to, "transpose_bytes", moved);
    record(run, to, "foldable_nodes", foldable);
    record(run, to, "foldable_macs", macs);
}

/* ---- embeddings ------------------------------------------------------------------------------ */

static const struct lookup { /* inputs [first, last] are tables */
    const char *op;
    size_t first, last;
} lookups[] = {{"Gather", 0, 0}, {"GatherBlockQuantized", 0, 0}, {"EmbedLayerNormalization", 2, 4}};

static bool by_rows(const struct onnx_node *n)
{
    for (size_t i = 0; i < n->attributes.n; i++)
        if (strcmp(n->attributes.items[i].name, "axis") == 0) return n->attributes.items[i].i == 0;
    return true;
}

struct tables {
    struct map_u64 seen;
    struct sum count, elements, bytes;
};

static tare_status add_table(struct tables *t, const struct onnx_tensor *w)
{
    uint64_t *seen, bytes;
    tare_status s = TARE_OK;
    if (!w || w->dims.n != 2 || w->dims.items[0] < 2 || w->type == ONNX_INT64) return TARE_OK;
    if ((s = map_u64_ref(&t->seen, (uintptr_t)w, &seen, NULL)) < 0 || *seen) return s;
    *seen = 1;
    t->count.v++;
    add_known(&t->elements, known_u64(w->elements));
    bool told = onnx_type_bytes(w->type, w->elements, &bytes);
    add_known(&t->bytes, told ? known_u64(bytes) : (struct known_u64){0});
    return s;
}

static tare_status add_tables(struct tables *t, const struct infer_node *n)
{
    tare_status s = TARE_OK;
    for (size_t k = 0; k < sizeof lookups / sizeof *lookups; k++) {
        if (strcmp(n->node->op, lookups[k].op) != 0 || !by_rows(n->node)) continue;
        for (size_t i = lookups[k].first; s == TARE_OK && i <= lookups[k].last && i < n->node->inputs.n; i++)
            if (n->inputs[i]) s = add_table(t, n->inputs[i]->constant);
    }
    return s;
}

static tare_status record_tables(const struct inspected *in, struct run *run, struct run_map *to)
{
    struct tables t = {.seen = MAP_U64_INIT};
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < in->layers.n; i++) s = add_tables(&t, in->layers.items[i].at);
    record(run, to, "embedding_tables", t.count);
    record(run, to, "embedding_parameters", t.elements);
    record(run, to, "embedding_bytes", t.bytes);
    map_u64_release(&t.seen);
    return s;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static tare_status find_producers(struct graph *g)
{
    for (size_t i = 0; i < g->in->layers.n; i++) {
        const struct infer_node *n = g->in->layers.items[i].at;
        for (size_t k = 0; k < n->node->outputs.n; k++) {
            if (!n->outputs[k]) continue;
            tare_status s = map_u64_put(&g->producer, (uintptr_t)n->outputs[k], i + 1, NULL);
            if (s < 0) return s;
        }
    }
    return TARE_OK;
}

void graph_patterns_record(const struct inspected *in, struct run *run, struct run_map *to)
{
    struct graph g = {.in = in, .producer = MAP_U64_INIT};
    g.used = mem_new(in->layers.n, sizeof *g.used);
    tare_status s = g.used ? find_producers(&g) : TARE_NOMEM;
    if (s == TARE_OK) {
        record_nodes(in, run, to);
        record_chains(&g, run, to);
        s = record_tables(in, run, to);
    }
    if (s < 0) run->arena.failed = true;
    map_u64_release(&g.producer);
    mem_free(g.used);
}
