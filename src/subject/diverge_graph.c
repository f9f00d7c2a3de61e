/* SPDX-License-Identifier: MIT
 * diverge_graph.c - see diverge_parts.h. Nodes are known by their numbers in the main graph; what bodies of If, Loop
 * and Scan read from around them counts as read by the node that has them. */
#include "subject/diverge_parts.h"

#include <string.h>

#include "core/mem.h"

/* ---- what is in both ---- */

/* What quantisers add to the name of a value when its floating form moves to another place. */
static const char *const suffixes[] = {"_DequantizeLinear_Output", "_QuantizeLinear_Input", "_dequantized",
                                       "/duplicated"};
enum { N_SUFFIXES = sizeof suffixes / sizeof *suffixes };

/* The key as the map of the side has it, so that it lives as long as the side; NULL: no node makes it. */
static const char *made_by(const struct diverge_side *s, const char *name, size_t len, size_t *node)
{
    uint64_t *at = map_str_find(&s->producers, name, len);
    if (!at) return NULL;
    *node = (size_t)*at;
    const struct onnx_node *n = &s->model.graph.nodes.items[*node];
    for (size_t k = 0; k < n->outputs.n; k++)
        if (strlen(n->outputs.items[k]) == len && memcmp(n->outputs.items[k], name, len) == 0)
            return n->outputs.items[k];
    return NULL;
}

static const char *made_with(const struct diverge_side *s, const char *name, const char *suffix,
                             struct buf *scratch, size_t *node)
{
    buf_clear(scratch);
    buf_add_str(scratch, name);
    buf_add_str(scratch, suffix);
    return scratch->failed ? NULL : made_by(s, scratch->data, scratch->len, node);
}

/* The dequantised form of an inner value: what all that reads the value gets. Beside it the plain name may be left for
 * something else: a quantiser folds Relu away and gives its name to what the Conv before it makes. */
static const char *dequantised(const struct diverge_side *s, const char *name, struct buf *scratch,
                               size_t *node)
{
    if (map_str_find(&s->outputs, name, strlen(name))) return NULL;
    return made_with(s, name, suffixes[0], scratch, node);
}

static const char *find_twin(const struct diverge_side *sides[2], const char *name, struct buf *scratch,
                             size_t *node)
{
    const struct diverge_side *b = sides[1];
    size_t len = strlen(name), other;
    const char *found = dequantised(b, name, scratch, node);
    bool quantised = dequantised(sides[0], name, scratch, &other) != NULL;
    if (found && !quantised) return found;
    if (quantised && !found) return NULL; /* its own dequantised form stands for it */
    found = made_by(b, name, len, node);
    for (size_t i = 0; !found && i < N_SUFFIXES; i++) {
        size_t tail = strlen(suffixes[i]);
        found = made_with(b, name, suffixes[i], scratch, node);
        if (!found && len > tail && memcmp(name + len - tail, suffixes[i], tail) == 0)
            found = made_by(b, name, len - tail, node);
    }
    return found;
}

static bool is_constant(const struct onnx_node *n)
{
    return strcmp(n->op, "Constant") == 0 && !*n->domain;
}

static size_t count_values(const struct diverge_side *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->producers.n; i++)
        n += !is_constant(&s->model.graph.nodes.items[s->producers.entries[i].value]);
    return n;
}

/* In run order of a, so that the first that differs is the first by index. `taken` counts what b has in common. */
tare_status common_find(struct common_values *out, const struct diverge_side *a, const struct diverge_side *b,
                        tare_error *err)
{
    const struct onnx_graph *g = &a->model.graph;
    const struct diverge_side *sides[2] = {a, b};
    struct map_str taken = MAP_STR_INIT;
    struct buf scratch = BUF_INIT;
    tare_status st = TARE_OK;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        for (size_t k = 0; st == TARE_OK && k < n->outputs.n; k++) {
            struct common_value v = {.name = n->outputs.items[k], .node_a = i};
            if (!*v.name || is_constant(n)) continue;
            v.twin = find_twin(sides, v.name, &scratch, &v.node_b);
            if (!v.twin || is_constant(&b->model.graph.nodes.items[v.node_b])) continue;
            st = map_str_put(&taken, v.twin, strlen(v.twin), 1, err);
            if (st == TARE_OK) st = map_str_put(&out->by_name, v.name, strlen(v.name), out->items.n, err);
            if (st == TARE_OK) st = vec_push(&out->items, v, err);
        }
    }
    if (st == TARE_OK) st = buf_status(&scratch, err);
    out->only_a = count_values(a) - out->items.n;
    out->only_b = count_values(b) - taken.n;
    buf_release(&scratch);
    map_str_release(&taken);
    return st;
}

void common_release(struct common_values *c)
{
    vec_release(&c->items);
    map_str_release(&c->by_name);
}

/* ---- what depends on what ---- */

struct walk {
    const struct diverge_side *side;
    const struct common_values *stop_at; /* NULL: go all the way up */
    struct common_list *found;           /* values of stop_at that were met */
    bool *marked;
    VEC(size_t) todo;
    tare_error *err;
};

static tare_status visit_input(struct walk *w, const char *name)
{
    uint64_t *node = *name ? map_str_find(&w->side->producers, name, strlen(name)) : NULL;
    if (!node) return TARE_OK;
    uint64_t *at = w->stop_at ? map_str_find(&w->stop_at->by_name, name, strlen(name)) : NULL;
    if (at && w->stop_at->items.items[*at].state != COMMON_ODD)
        return vec_push(&w->found->items, (size_t)*at, w->err);
    if (w->marked[*node]) return TARE_OK;
    w->marked[*node] = true;
    return vec_push(&w->todo, (size_t)*node, w->err);
}

/* Names that are made inside a body are not made outside: looking them up finds nothing, or one that is hidden. The
 * reader bounds the depth. */
static tare_status visit_node(struct walk *w, const struct onnx_node *n) // NOLINT(misc-no-recursion)
{
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < n->inputs.n; i++) st = visit_input(w, n->inputs.items[i]);
    for (size_t i = 0; st == TARE_OK && i < n->attributes.n; i++) {
        const struct onnx_graph *g = n->attributes.items[i].g;
        for (size_t k = 0; g && st == TARE_OK && k < g->nodes.n; k++) st = visit_node(w, &g->nodes.items[k]);
        for (size_t k = 0; g && st == TARE_OK && k < g->outputs.n; k++)
            st = visit_input(w, g->outputs.items[k].name);
    }
    return st;
}

static tare_status walk_up(struct walk *w, size_t from)
{
    tare_status st = vec_push(&w->todo, from, w->err);
    w->marked[from] = true;
    while (st == TARE_OK && w->todo.n) {
        size_t i = vec_pop(&w->todo);
        st = visit_node(w, &w->side->model.graph.nodes.items[i]);
    }
    vec_release(&w->todo);
    return st;
}

tare_status diverge_ancestors(const struct diverge_side *s, size_t from, bool *marked, tare_error *err)
{
    struct walk w = {.side = s, .marked = marked, .err = err};
    return walk_up(&w, from);
}

tare_status diverge_sources(const struct diverge_side *a, const struct common_values *c, size_t from,
                            struct common_list *out, tare_error *err)
{
    bool *marked = mem_new(a->model.graph.nodes.n, sizeof *marked);
    struct walk w = {.side = a, .stop_at = c, .found = out, .marked = marked, .err = err};
    if (!marked) return error_set(err, TARE_NOMEM, "out of memory");
    tare_status st = walk_up(&w, from);
    mem_free(marked);
    return st;
}
