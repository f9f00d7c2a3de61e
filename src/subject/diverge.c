/* SPDX-License-Identifier: MIT
 * diverge.c - see diverge.h. Each step compares a few values of both models: the first one runs, its values are copied,
 * its session goes; then the second one. Decisions hang only on what was compared. */
#include "subject/diverge.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "subject/diverge_parts.h"

enum { AT_ONCE = 8 };
#define TOLERANCE 1e-3

struct search {
    const struct diverge_options *o;
    struct diverged *out;
    struct diverge_side a, b;
    struct common_values common;
    double tolerance;
    size_t at_once, seen;
    tare_error *err;
};

/* ---- comparing some ---- */

struct chunk {
    size_t n;
    const size_t *which; /* indices into the common values */
    const char **names[2];
    struct tensor *values[2]; /* of a, of b */
};

static tare_status chunk_make(struct chunk *c, const struct search *s, const size_t *which, size_t n)
{
    *c = (struct chunk){.n = n, .which = which};
    for (int side = 0; side < 2; side++) {
        c->names[side] = mem_new(n, sizeof(char *));
        c->values[side] = mem_new(n, sizeof(struct tensor));
        if (!c->names[side] || !c->values[side]) return error_set(s->err, TARE_NOMEM, "out of memory");
        for (size_t i = 0; i < n; i++) {
            const struct common_value *v = &s->common.items.items[which[i]];
            c->names[side][i] = side ? v->twin : v->name;
        }
    }
    return TARE_OK;
}

static void chunk_release(struct chunk *c)
{
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; c->values[side] && i < c->n; i++)
            if (c->values[side][i].data) tensor_release(&c->values[side][i]);
        mem_free(c->names[side]);
        mem_free(c->values[side]);
    }
}

static void judge_chunk(struct search *s, const struct chunk *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct common_value *v = &s->common.items.items[c->which[i]];
        const struct tensor *a = &c->values[0][i], *b = &c->values[1][i];
        bytes += a->bytes + b->bytes;
        v->state = COMMON_ODD;
        if (!a->data || !b->data) continue;
        tensor_error_of(&v->error, a, b);
        if (v->error.comparable) v->state = v->error.rel_l2 > s->tolerance ? COMMON_DIFFERS : COMMON_SAME;
    }
    if (bytes > s->out->bytes_at_once) s->out->bytes_at_once = bytes;
}

static bool is_cut(struct search *s)
{
    if (s->o->interrupted && *s->o->interrupted) s->out->cut = true;
    return s->out->cut;
}

static tare_status compare_chunk(struct search *s, const size_t *which, size_t n)
{
    struct chunk c;
    tare_status st = chunk_make(&c, s, which, n);
    if (st == TARE_OK) st = diverge_side_fetch(&s->a, c.names[0], n, c.values[0], s->err);
    if (st == TARE_OK) st = diverge_side_fetch(&s->b, c.names[1], n, c.values[1], s->err);
    if (st == TARE_OK) judge_chunk(s, &c);
    chunk_release(&c);
    s->out->sessions += 2;
    s->seen += n;
    if (s->o->progress)
        s->o->progress(s->o->ctx, "comparing values", s->seen, s->o->all ? s->common.items.n : 0);
    return st;
}

/* Those of the list that were not looked at yet, a few at a time. */
static tare_status compare_list(struct search *s, const struct common_list *list)
{
    VEC(size_t) some = VEC_INIT;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i <= list->items.n && !is_cut(s); i++) {
        bool last = i == list->items.n;
        if (some.n == s->at_once || (last && some.n)) {
            st = compare_chunk(s, some.items, some.n);
            vec_clear(&some);
        }
        if (last || st < 0) break;
        size_t k = list->items.items[i];
        bool again = s->common.items.items[k].state != COMMON_UNSEEN;
        for (size_t j = 0; !again && j < some.n; j++) again = some.items[j] == k;
        if (!again) st = vec_push(&some, k, s->err);
    }
    vec_release(&some);
    return st;
}

/* The first that differs; SIZE_MAX: none. */
static size_t first_of(const struct search *s, const struct common_list *list)
{
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < list->items.n; i++) {
        size_t k = list->items.items[i];
        if (k < first && s->common.items.items[k].state == COMMON_DIFFERS) first = k;
    }
    return first;
}

/* The first of all that were compared. */
static size_t first_seen(const struct search *s)
{
    for (size_t i = 0; i < s->common.items.n; i++)
        if (s->common.items.items[i].state == COMMON_DIFFERS) return i;
    return SIZE_MAX;
}

/* ---- bisecting ---- */

/* Up to at_once of those between the last that is the same and the first that differs, evenly spread. */
static tare_status pick_unseen(const struct search *s, const struct common_list *way, struct common_list *out)
{
    VEC(size_t) open = VEC_INIT;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < way->items.n; i++) {
        enum common_state state = s->common.items.items[way->items.items[i]].state;
        if (state == COMMON_DIFFERS) break;
        if (state == COMMON_SAME) vec_clear(&open);
        if (state == COMMON_UNSEEN) st = vec_push(&open, way->items.items[i], s->err);
    }
    size_t n = open.n < s->at_once ? open.n : s->at_once;
    for (size_t i = 0; st == TARE_OK && i < n; i++)
        st = vec_push(&out->items, open.items[(i + 1) * open.n / (n + 1)], s->err);
    vec_release(&open);
    return st;
}

/* Everything common that value `to` depends on, itself last. */
static tare_status way_to(const struct search *s, size_t to, struct common_list *out)
{
    bool *marked = mem_new(s->a.model.graph.nodes.n, sizeof *marked);
    if (!marked) return error_set(s->err, TARE_NOMEM, "out of memory");
    tare_status st = diverge_ancestors(&s->a, s->common.items.items[to].node_a, marked, s->err);
    for (size_t i = 0; st == TARE_OK && i < to; i++)
        if (marked[s->common.items.items[i].node_a]) st = vec_push(&out->items, i, s->err);
    mem_free(marked);
    return st == TARE_OK ? vec_push(&out->items, to, s->err) : st;
}

/* From a value that differs to one at or before it, on its way, before which the way is the same. */
static tare_status bisect(struct search *s, size_t from, size_t *found)
{
    struct common_list way = {VEC_INIT}, some = {VEC_INIT};
    tare_status st = way_to(s, from, &way);
    while (st == TARE_OK && !is_cut(s)) {
        vec_clear(&some.items);
        st = pick_unseen(s, &way, &some);
        if (st < 0 || !some.items.n) break;
        st = compare_list(s, &some);
    }
    *found = first_of(s, &way);
    vec_release(&some.items);
    vec_release(&way.items);
    return st;
}

/* What its node reads, and what ran just before it: when all of that is the same, it is the first. */
static tare_status look_around(struct search *s, size_t at, size_t *earlier)
{
    struct common_list around = {VEC_INIT};
    size_t from = at > s->at_once ? at - s->at_once : 0;
    tare_status st = diverge_sources(&s->a, &s->common, s->common.items.items[at].node_a, &around, s->err);
    if (st == TARE_OK) st = compare_list(s, &around);
    for (size_t i = from; st == TARE_OK && i < at && first_of(s, &around) >= at; i++)
        st = vec_push(&around.items, i, s->err);
    if (st == TARE_OK) st = compare_list(s, &around);
    *earlier = first_seen(s);
    vec_release(&around.items);
    return st;
}

static tare_status find_origin(struct search *s, size_t from)
{
    size_t at = from;
    tare_status st = TARE_OK;
    while (st == TARE_OK && !is_cut(s)) {
        size_t earlier = SIZE_MAX;
        st = bisect(s, at, &at);
        if (st == TARE_OK) st = look_around(s, at, &earlier);
        if (earlier >= at) break;
        at = earlier;
    }
    return st;
}

/* ---- where to begin ---- */

static tare_status list_outputs(struct search *s, struct common_list *out)
{
    const struct onnx_graph *g = &s->a.model.graph;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < g->outputs.n; i++) {
        uint64_t *at =
            map_str_find(&s->common.by_name, g->outputs.items[i].name, strlen(g->outputs.items[i].name));
        if (at) st = vec_push(&out->items, (size_t)*at, s->err);
    }
    return st;
}

/* The outputs; when these agree (a difference may be lost on the way), values spread over the whole. */
static tare_status find_any(struct search *s, size_t *found)
{
    struct common_list some = {VEC_INIT};
    tare_status st = list_outputs(s, &some);
    if (st == TARE_OK) st = compare_list(s, &some);
    *found = first_of(s, &some);
    size_t all = s->common.items.n;
    for (size_t i = 0; st == TARE_OK && *found == SIZE_MAX && i < s->at_once; i++)
        st = vec_push(&some.items, (i + 1) * all / (s->at_once + 1), s->err);
    if (st == TARE_OK) st = compare_list(s, &some);
    *found = first_of(s, &some);
    vec_release(&some.items);
    return st;
}

static tare_status compare_all(struct search *s)
{
    struct common_list list = {VEC_INIT};
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < s->common.items.n; i++) st = vec_push(&list.items, i, s->err);
    if (st == TARE_OK) st = compare_list(s, &list);
    vec_release(&list.items);
    return st;
}

/* ---- the answer ---- */

static tare_status add_point(struct search *s, const struct common_value *v)
{
    struct arena *t = &s->out->texts;
    const struct onnx_node *a = &s->a.model.graph.nodes.items[v->node_a],
                           *b = &s->b.model.graph.nodes.items[v->node_b];
    struct diverge_point p = {.value = arena_str(t, v->name),
                              .twin = arena_str(t, v->twin),
                              .node_a = arena_str(t, a->name),
                              .node_b = arena_str(t, b->name),
                              .op_a = arena_str(t, a->op),
                              .op_b = arena_str(t, b->op),
                              .rel_l2 = v->error.rel_l2,
                              .max_abs = v->error.max_abs,
                              .cosine = v->error.cosine,
                              .why = v->error.why[0] ? arena_str(t, v->error.why) : NULL,
                              .differs = v->state == COMMON_DIFFERS};
    return t->failed ? error_nomem(s->err, "the answer") : vec_push(&s->out->points, p, s->err);
}

static tare_status fill_answer(struct search *s)
{
    struct diverged *out = s->out;
    tare_status st = TARE_OK;
    out->common = s->common.items.n;
    out->only_a = s->common.only_a;
    out->only_b = s->common.only_b;
    for (size_t i = 0; st == TARE_OK && i < s->common.items.n; i++) {
        const struct common_value *v = &s->common.items.items[i];
        out->skipped += v->state == COMMON_ODD;
        if (v->state == COMMON_UNSEEN || v->state == COMMON_ODD) continue;
        if (v->state == COMMON_DIFFERS && out->first == SIZE_MAX) out->first = out->points.n;
        st = add_point(s, v);
    }
    return st;
}

static tare_status search_open(struct search *s)
{
    struct onnx_options b = s->o->b;
    b.inputs = NULL; /* those of the first are used */
    tare_status st = diverge_side_open(&s->a, &s->o->a, &s->o->params, s->err);
    if (st == TARE_OK) st = diverge_side_open(&s->b, &b, &s->o->params, s->err);
    if (st == TARE_OK) st = common_find(&s->common, &s->a, &s->b, s->err);
    if (st == TARE_OK && !s->common.items.n)
        st =
            error_set(s->err, TARE_INVALID, "%s and %s have no value of the same name that could be compared",
                      s->o->a.path, s->o->b.path);
    if (st == TARE_OK) st = diverge_side_make_inputs(&s->a, &s->o->params, s->err);
    if (st == TARE_OK) s->out->sessions++;
    if (st == TARE_OK) st = diverge_side_share_inputs(&s->b, &s->a, s->err);
    return st;
}

/* A difference is searched for from where it shows back to where it begins, with a few values in memory at
 * a time. With `all` nothing needs to be searched: fill_answer() sees the first of them. */
tare_status diverge_find(struct diverged *out, const struct diverge_options *o, tare_error *err)
{
    struct search s = {.o = o,
                       .out = out,
                       .a = DIVERGE_SIDE_INIT,
                       .b = DIVERGE_SIDE_INIT,
                       .common = COMMON_VALUES_INIT,
                       .tolerance = o->tolerance >= 0 ? o->tolerance : TOLERANCE,
                       .at_once = o->at_once ? o->at_once : AT_ONCE,
                       .err = err};
    size_t found = SIZE_MAX;
    *out = (struct diverged)DIVERGED_INIT;
    tare_status st = search_open(&s);
    if (st == TARE_OK) st = o->all ? compare_all(&s) : find_any(&s, &found);
    if (st == TARE_OK && found != SIZE_MAX) st = find_origin(&s, found);
    if (st == TARE_OK) st = fill_answer(&s);
    common_release(&s.common);
    diverge_side_close(&s.b);
    diverge_side_close(&s.a);
    if (st < 0) diverged_release(out);
    return st;
}

void diverged_release(struct diverged *d)
{
    vec_release(&d->points);
    arena_release(&d->texts);
    *d = (struct diverged)DIVERGED_INIT;
}
