/* SPDX-License-Identifier: MIT
 * memory_tree.c - see memory_tree.h. */
#include "analyze/memory/memory_tree.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/buf.h"
#include "core/map.h"
#include "core/str.h"
#include "core/vec.h"

#define X(name, word, meaning) word,
const char *const memory_weight_words[] = {MEMORY_WEIGHT_MAP(X)};
#undef X
#define X(name, word, meaning) meaning,
const char *const memory_weight_meanings[] = {MEMORY_WEIGHT_MAP(X)};
#undef X

struct growing_tree {
    struct arena *arena;
    struct map_str frames;   /* file, name, line -> place */
    struct map_u64 of_frame; /* address of a frame -> place + 1 */
    struct map_u64 children; /* (node + 1) << 32 | frame -> node + 1 */
    struct buf key;
    VEC(struct memory_tree_frame) known;
    VEC(struct memory_tree_node) nodes;
};

/* ---- frames ---- */

static const char *words_of(const struct memory_frame_named *f, struct arena *a)
{
    if (f->name)
        return f->kind == MEMORY_SCOPE || f->kind == MEMORY_CUT ? arena_printf(a, "[%s]", f->name) : f->name;
    if (f->kind != MEMORY_NATIVE) return "unknown";
    const char *file = f->file ? str_file_name(f->file) : "";
    return arena_printf(a, "%s%s0x%" PRIx64, file, *file ? "+" : "", f->offset);
}

static tare_status place_of(struct growing_tree *t, const struct memory_frame_named *f, size_t *out,
                            tare_error *err)
{
    uint64_t *known, *place;
    tare_status s = map_u64_ref(&t->of_frame, (uint64_t)(uintptr_t)f, &known, err);
    if (s != TARE_OK || *known) {
        if (s == TARE_OK) *out = (size_t)*known - 1;
        return s;
    }
    struct memory_tree_frame fresh = {words_of(f, t->arena), f->source ? f->source : f->file, f->line};
    if (!fresh.name) return error_nomem(err, "the frames of a trace");
    t->key.len = 0;
    buf_printf(&t->key, "%s\n%s\n%" PRIu64, fresh.name, fresh.file ? fresh.file : "", f->line);
    s = buf_status(&t->key, err);
    if (s == TARE_OK) s = map_str_ref(&t->frames, t->key.data, t->key.len, &place, err);
    if (s == TARE_OK && t->frames.n > t->known.n) {
        *place = t->known.n;
        s = vec_push(&t->known, fresh, err);
    }
    if (s != TARE_OK) return s;
    *known = *place + 1;
    *out = (size_t)*place;
    return TARE_OK;
}

/* ---- nodes ---- */

static tare_status child_of(struct growing_tree *t, int64_t parent, size_t frame, int64_t *out,
                            tare_error *err)
{
    uint64_t *node;
    tare_status s = map_u64_ref(&t->children, (uint64_t)(parent + 1) << 32 | (uint32_t)frame, &node, err);
    if (s == TARE_OK && !*node) {
        struct memory_tree_node fresh = {.parent = parent, .frame = frame};
        s = vec_push(&t->nodes, fresh, err);
        if (s == TARE_OK) *node = t->nodes.n;
    }
    if (s == TARE_OK) *out = (int64_t)*node - 1;
    return s;
}

static struct memory_bytes grown(const struct memory_site *s)
{
    double rise = s->judged && s->growth.rise > 0 ? s->growth.rise : 0;
    return (struct memory_bytes){rise, 0, 0};
}

/* A site whose stack was lost is a frame of its own. */
static tare_status add_site(struct growing_tree *t, const struct memory_site *s, tare_error *err)
{
    static const struct memory_frame_named lost = {.kind = MEMORY_CUT,
                                                   .name = "the stack is not in the trace"};
    const struct memory_frame_named *stack[MEMORY_FRAMES_MOST];
    size_t n = 0, frame = 0;
    int64_t node = -1;
    for (const struct memory_frame_named *f = s->frame ? s->frame : &lost; f && n < MEMORY_FRAMES_MOST;
         f = f->caller)
        stack[n++] = f;
    while (n > 0) {
        tare_status status = place_of(t, stack[--n], &frame, err);
        if (status == TARE_OK) status = child_of(t, node, frame, &node, err);
        if (status != TARE_OK) return status;
    }
    struct memory_tree_node *at = &t->nodes.items[node];
    const struct memory_bytes self[MEMORY_WEIGHTS] = {[MEMORY_WEIGHT_PEAK] = s->at_peak,
                                                      [MEMORY_WEIGHT_END] = s->at_end,
                                                      [MEMORY_WEIGHT_GROWN] = grown(s),
                                                      [MEMORY_WEIGHT_ALLOCATED] = s->allocated,
                                                      [MEMORY_WEIGHT_CHURN] = s->churn};
    for (int w = 0; w < MEMORY_WEIGHTS; w++) memory_bytes_add(&at->self[w], self[w]);
    at->allocations += s->allocations;
    return TARE_OK;
}

/* Children come behind their parents. */
static void add_up(struct memory_tree *t)
{
    for (size_t i = 0; i < t->n_nodes; i++)
        memcpy(t->nodes[i].total, t->nodes[i].self, sizeof t->nodes[i].self);
    for (size_t i = t->n_nodes; i-- > 0;) {
        int64_t parent = t->nodes[i].parent;
        for (int w = 0; parent >= 0 && w < MEMORY_WEIGHTS; w++)
            memory_bytes_add(&t->nodes[parent].total[w], t->nodes[i].total[w]);
    }
}

static tare_status take(struct growing_tree *t, struct memory_tree *out, tare_error *err)
{
    struct memory_tree made = {.n_frames = t->known.n, .n_nodes = t->nodes.n};
    if (!made.n_nodes) return TARE_OK;
    made.frames = arena_new(t->arena, made.n_frames, sizeof *made.frames);
    made.nodes = arena_new(t->arena, made.n_nodes, sizeof *made.nodes);
    if (t->arena->failed) return error_nomem(err, "%zu paths", made.n_nodes);
    memcpy(made.frames, t->known.items, made.n_frames * sizeof *made.frames);
    memcpy(made.nodes, t->nodes.items, made.n_nodes * sizeof *made.nodes);
    add_up(&made);
    *out = made;
    return TARE_OK;
}

tare_status memory_tree(const struct memory_process *p, struct arena *a, struct memory_tree *out,
                        tare_error *err)
{
    struct growing_tree t = {.arena = a,
                             .frames = MAP_STR_INIT,
                             .of_frame = MAP_U64_INIT,
                             .children = MAP_U64_INIT,
                             .key = BUF_INIT};
    tare_status s = TARE_OK;
    *out = (struct memory_tree){0};
    for (size_t i = 0; i < p->n_sites && s == TARE_OK; i++) s = add_site(&t, &p->sites[i], err);
    if (s == TARE_OK) s = take(&t, out, err);
    map_str_release(&t.frames);
    map_u64_release(&t.of_frame);
    map_u64_release(&t.children);
    buf_release(&t.key);
    vec_release(&t.known);
    vec_release(&t.nodes);
    return s;
}
