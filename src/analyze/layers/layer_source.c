/* SPDX-License-Identifier: MIT
 * layer_source.c - see layer_parts.h. Every node of the file is given to at most one node of the optimised graph, the
 * first that reaches it, so that counts add up. */
#include "analyze/layers/layer_parts.h"

#include <stdio.h>
#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"

enum { FORWARD_MAX = 4 };

struct mapping {
    const struct onnx_graph *source, *optimized;
    struct map_str made_by; /* value of the file -> node + 1 */
    struct map_str named;   /* name in the file -> node + 1 */
    struct map_str readers; /* value of the file -> node + 1 of the only one that reads it; 0: several do */
    struct map_str kept; /* values that the optimised graph still has -> node + 1 that makes them, 0: none */
    bool *claimed;       /* per node of the file */
    VEC(size_t) covered;
    VEC(size_t) todo;
    struct layer_cover *of;
    tare_error *err;
};

/* ---- looking up ---- */

static uint64_t find(const struct map_str *m, const char *key, size_t n)
{
    const uint64_t *at = n ? map_str_find(m, key, n) : NULL;
    return at ? *at : 0;
}

static bool has(const struct map_str *m, const char *key)
{
    return map_str_find(m, key, strlen(key)) != NULL;
}

static tare_status put(struct map_str *m, const char *key, uint64_t value, tare_error *err)
{
    return key[0] ? map_str_put(m, key, strlen(key), value, err) : TARE_OK;
}

static tare_status index_node(struct mapping *m, size_t i)
{
    const struct onnx_node *n = &m->source->nodes.items[i];
    tare_status s = put(&m->named, n->name, i + 1, m->err);
    for (size_t k = 0; s == TARE_OK && k < n->outputs.n; k++)
        s = put(&m->made_by, n->outputs.items[k], i + 1, m->err);
    for (size_t k = 0; s == TARE_OK && k < n->inputs.n; k++) {
        const char *value = n->inputs.items[k];
        s = put(&m->readers, value, has(&m->readers, value) ? 0 : i + 1, m->err);
    }
    return s;
}

/* ---- the value of the file that a node of the optimised graph makes ---- */

/* Names that fusions build around that of a node or of its value: "X_nchwc", "X_nhwc", "fused X",
 * "X/MatMulScaleFusion/", "X_token_5". What is left of them, or n 0. */
static void trim_name(const char **name, size_t *n)
{
    static const char *const tails[] = {"_nchwc",           "_nhwc",  "/MatMulScaleFusion/",
                                        "/MatMulAddFusion", "_quant", "_Quant"};
    if (*n > 6 && memcmp(*name, "fused ", 6) == 0) {
        *name += 6;
        *n -= 6;
    }
    size_t digits = *n;
    while (digits > 0 && (*name)[digits - 1] >= '0' && (*name)[digits - 1] <= '9') digits--;
    if (digits < *n && digits > 7 && memcmp(*name + digits - 7, "_token_", 7) == 0) *n = digits - 7;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        size_t len = strlen(tails[i]);
        if (*n <= len || memcmp(*name + *n - len, tails[i], len) != 0) continue;
        *n -= len;
        return;
    }
}

/* The file's node that makes what this one makes, + 1; 0: none. */
static uint64_t end_of(const struct mapping *m, const struct onnx_node *n, size_t output)
{
    uint64_t end = output < n->outputs.n
                       ? find(&m->made_by, n->outputs.items[output], strlen(n->outputs.items[output]))
                       : 0;
    if (end || output > 0) return end;
    const char *name = n->name;
    size_t len = strlen(name);
    if ((end = find(&m->named, name, len)) != 0) return end;
    trim_name(&name, &len);
    end = find(&m->made_by, name, len);
    return end ? end : find(&m->named, name, len);
}

/* What the optimised graph still has: what its nodes make, under the file's names; its weights and inputs. */
static tare_status index_kept(struct mapping *m)
{
    const struct onnx_graph *g = m->optimized;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < g->inputs.n; i++)
        s = put(&m->kept, g->inputs.items[i].name, 0, m->err);
    for (size_t i = 0; s == TARE_OK && i < g->initializers.n; i++)
        s = put(&m->kept, g->initializers.items[i].name, 0, m->err);
    for (size_t i = 0; s == TARE_OK && i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        for (size_t k = 0; s == TARE_OK && k < n->outputs.n; k++) {
            s = put(&m->kept, n->outputs.items[k], i + 1, m->err);
            uint64_t end = end_of(m, n, k);
            if (s == TARE_OK && end && !find(&m->made_by, n->outputs.items[k], strlen(n->outputs.items[k])) &&
                m->source->nodes.items[end - 1].outputs.n)
                s = put(&m->kept, m->source->nodes.items[end - 1].outputs.items[0], i + 1, m->err);
        }
    }
    return s;
}

/* ---- walking ---- */

static tare_status claim(struct mapping *m, size_t node)
{
    if (m->claimed[node]) return TARE_OK;
    m->claimed[node] = true;
    tare_status s = vec_push(&m->covered, node, m->err);
    return s == TARE_OK ? vec_push(&m->todo, node, m->err) : s;
}

static tare_status walk_back(struct mapping *m)
{
    tare_status s = TARE_OK;
    while (s == TARE_OK && m->todo.n) {
        const struct onnx_node *n = &m->source->nodes.items[vec_pop(&m->todo)];
        for (size_t k = 0; s == TARE_OK && k < n->inputs.n; k++) {
            const char *value = n->inputs.items[k];
            uint64_t from = has(&m->kept, value) ? 0 : find(&m->made_by, value, strlen(value));
            if (from) s = claim(m, (size_t)from - 1);
        }
    }
    return s;
}

/* A node that is named after the middle of a fusion (nchwc: after its convolution) also took what follows it. */
static bool is_absorbed(const struct mapping *m, const struct onnx_node *n)
{
    static const char *const ops[] = {"Add",     "Sum",  "Relu",      "Clip",
                                      "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"};
    if (n->outputs.n != 1 || has(&m->kept, n->outputs.items[0])) return false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(n->op, ops[i]) == 0) return true;
    return false;
}

static tare_status walk_forward(struct mapping *m, size_t from)
{
    tare_status s = TARE_OK;
    for (int step = 0; s == TARE_OK && step < FORWARD_MAX; step++) {
        const struct onnx_node *n = &m->source->nodes.items[from];
        uint64_t next =
            n->outputs.n ? find(&m->readers, n->outputs.items[0], strlen(n->outputs.items[0])) : 0;
        if (!next || m->claimed[next - 1] || !is_absorbed(m, &m->source->nodes.items[next - 1])) return s;
        from = (size_t)next - 1;
        m->claimed[from] = true;
        s = vec_push(&m->covered, from, m->err);
    }
    return s;
}

/* A node without outputs is still looked up once, by its name. Where the file does not know the value, the node was
 * found by its name, which may be that of the middle of a fusion: then what follows it is covered too. */
static tare_status cover(struct mapping *m, size_t i)
{
    const struct onnx_node *n = &m->optimized->nodes.items[i];
    struct layer_cover *c = &m->of[i];
    tare_status s = TARE_OK;
    *c = (struct layer_cover){.first = m->covered.n, .anchor = SIZE_MAX};
    for (size_t k = 0; s == TARE_OK && (k < n->outputs.n || k == 0); k++) {
        uint64_t end = end_of(m, n, k);
        if (!end) continue;
        if (c->anchor == SIZE_MAX) c->anchor = (size_t)end - 1;
        bool other_value = !find(&m->made_by, n->outputs.n ? n->outputs.items[k] : "",
                                 n->outputs.n ? strlen(n->outputs.items[k]) : 0);
        s = claim(m, (size_t)end - 1);
        if (s == TARE_OK && other_value) s = walk_forward(m, (size_t)end - 1);
        if (s == TARE_OK) s = walk_back(m);
    }
    c->n = m->covered.n - c->first;
    return s;
}

/* Additions of the runtime (reordering, copies) belong to the node before them, else to the one behind. */
static void anchor_additions(struct mapping *m)
{
    for (size_t i = 0; i < m->optimized->nodes.n; i++) {
        const struct onnx_node *n = &m->optimized->nodes.items[i];
        for (size_t k = 0; m->of[i].anchor == SIZE_MAX && k < n->inputs.n; k++) {
            uint64_t from = find(&m->kept, n->inputs.items[k], strlen(n->inputs.items[k]));
            if (from) m->of[i].anchor = m->of[from - 1].anchor;
        }
    }
    for (size_t i = m->optimized->nodes.n; i-- > 0;) {
        const struct onnx_node *n = &m->optimized->nodes.items[i];
        for (size_t k = 0; m->of[i].anchor != SIZE_MAX && k < n->inputs.n; k++) {
            uint64_t from = find(&m->kept, n->inputs.items[k], strlen(n->inputs.items[k]));
            if (from && m->of[from - 1].anchor == SIZE_MAX) m->of[from - 1].anchor = m->of[i].anchor;
        }
    }
}

/* All values that the optimised graph kept must be known before the first node is covered: a walk stops at them, and
 * would else run on into the nodes of its neighbours. */
tare_status source_map_build(struct source_map *out, const struct onnx_graph *source,
                             const struct onnx_graph *optimized, tare_error *err)
{
    struct mapping m = {.source = source,
                        .optimized = optimized,
                        .made_by = MAP_STR_INIT,
                        .named = MAP_STR_INIT,
                        .readers = MAP_STR_INIT,
                        .kept = MAP_STR_INIT,
                        .err = err};
    m.claimed = mem_new(source->nodes.n, sizeof *m.claimed);
    m.of = mem_new(optimized->nodes.n, sizeof *m.of);
    tare_status s = m.claimed && m.of ? TARE_OK : error_set(err, TARE_NOMEM, "out of memory to map layers");
    for (size_t i = 0; s == TARE_OK && i < source->nodes.n; i++) s = index_node(&m, i);
    if (s == TARE_OK) s = index_kept(&m);
    for (size_t i = 0; s == TARE_OK && i < optimized->nodes.n; i++) s = cover(&m, i);
    if (s == TARE_OK) anchor_additions(&m);
    map_str_release(&m.made_by);
    map_str_release(&m.named);
    map_str_release(&m.readers);
    map_str_release(&m.kept);
    mem_free(m.claimed);
    vec_release(&m.todo);
    if (s < 0) {
        mem_free(m.of);
        vec_release(&m.covered);
        return s;
    }
    *out = (struct source_map){m.of, optimized->nodes.n, m.covered.items, m.covered.n};
    return TARE_OK;
}

void source_map_release(struct source_map *m)
{
    mem_free(m->of);
    mem_free(m->covered);
    *m = (struct source_map)SOURCE_MAP_INIT;
}

/* ---- names ---- */

void source_node_label(const struct onnx_node *n, struct buf *out)
{
    const char *value = n->outputs.n ? n->outputs.items[0] : "";
    if (n->name[0]) {
        buf_add_str(out, n->name);
        return;
    }
    const char *tail = strstr(value, "_output_");
    buf_add(out, value, tail ? (size_t)(tail - value) : strlen(value));
}

/* Cut at a slash, not at the last equal byte: "/layer.1/" and "/layer.10/" have no "/layer.1" in common. */
void source_common_path(const struct source_map *m, const struct onnx_graph *source, size_t node,
                        struct buf *out)
{
    const struct layer_cover *c = &m->of[node];
    struct buf label = BUF_INIT;
    size_t same = 0;
    buf_clear(out);
    for (size_t i = 0; i < c->n; i++) {
        buf_clear(&label);
        source_node_label(&source->nodes.items[m->covered[c->first + i]], &label);
        if (i == 0) {
            buf_add(out, label.data, label.len);
            same = label.len;
        }
        size_t k = 0;
        while (k < same && k < label.len && out->data[k] == label.data[k]) k++;
        same = k;
    }
    while (same > 0 && out->data[same - 1] != '/') same--; /* whole parts only */
    if (!out->failed && out->len) {
        out->len = same > 0 ? same - 1 : 0;
        out->data[out->len] = 0;
    }
    buf_release(&label);
}
