/* SPDX-License-Identifier: MIT
 * stacks_prof.c - the file of pstats: a dict written by marshal, function -> (calls, calls, own s, total s, callers).
 * The calls of a sampled profile are its samples, and all is called by an entry that says so: a reader of pstats has no
 * other place for it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/vec.h"
#include "report/stacks/stacks_export.h"
#include "report/text.h"

static void add_le(struct buf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) buf_add_char(b, (char)(v >> 8 * i));
}

static void add_int(struct buf *b, uint64_t v)
{
    buf_add_char(b, 'i');
    add_le(b, v < INT32_MAX ? v : INT32_MAX, 4);
}

static void add_seconds(struct buf *b, double ns)
{
    uint64_t bits;
    double s = ns / 1e9;
    memcpy(&bits, &s, sizeof bits);
    buf_add_char(b, 'g');
    add_le(b, bits, 8);
}

static void add_text(struct buf *b, const char *text)
{
    struct buf clean = BUF_INIT;
    text_name(&clean, text, TEXT_NAME_MAX);
    buf_add_char(b, 'u');
    add_le(b, clean.len, 4);
    buf_add(b, clean.data, clean.len);
    buf_release(&clean);
}

static void add_tuple(struct buf *b, int n)
{
    buf_add_char(b, ')');
    buf_add_char(b, (char)n);
}

static void add_key(struct buf *b, const char *file, uint64_t line, const char *name)
{
    add_tuple(b, 3);
    add_text(b, *file ? file : "~");
    add_int(b, line);
    add_text(b, name);
}

static void add_function(struct buf *b, const struct stacks_function *f)
{
    add_key(b, f->file, f->line ? f->line : f->first_line, f->name);
}

struct numbers {
    uint64_t looks;
    double own_ns, total_ns;
};
static void add_numbers(struct buf *b, const struct numbers *n)
{
    add_int(b, n->looks);
    add_int(b, n->looks);
    add_seconds(b, n->own_ns);
    add_seconds(b, n->total_ns);
}

static void add_mark(struct buf *b)
{
    add_key(b, "~", 0, "<sampled by tare: times are estimates, calls are samples>");
}

/* ---- who called whom ---- */

struct edge {
    size_t callee, caller; /* functions; SIZE_MAX: the mark */
    struct numbers of;
};
struct edges {
    VEC(struct edge) items;
};

static size_t function_of(const struct stacks_profile *p, size_t node)
{
    return node ? p->nodes[node].function : SIZE_MAX;
}

/* Further out on the same path it is counted already. */
static bool is_again(const struct stacks_profile *p, size_t node)
{
    size_t callee = p->nodes[node].function, caller = function_of(p, p->nodes[node].parent);
    for (size_t i = p->nodes[node].parent; i > 0; i = p->nodes[i].parent)
        if (p->nodes[i].function == callee && function_of(p, p->nodes[i].parent) == caller) return true;
    return false;
}

static int by_place(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->callee != y->callee) return x->callee < y->callee ? -1 : 1;
    return (x->caller > y->caller) - (x->caller < y->caller);
}

static tare_status find_edges(const struct stacks_profile *p, struct edges *to, tare_error *err)
{
    tare_status st = TARE_OK;
    for (size_t i = 1; i < p->n_nodes && st == TARE_OK; i++) {
        const struct stacks_node *n = &p->nodes[i];
        bool again = is_again(p, i);
        struct edge e = {n->function,
                         function_of(p, n->parent),
                         {again ? 0 : n->looks, n->own_ns, again ? 0 : n->total_ns}};
        st = vec_push(&to->items, e, err);
    }
    if (to->items.n < 2) return st;
    qsort(to->items.items, to->items.n, sizeof to->items.items[0], by_place);
    size_t kept = 0;
    for (size_t i = 1; i < to->items.n; i++) {
        struct edge *last = &to->items.items[kept], *one = &to->items.items[i];
        if (by_place(last, one) != 0) {
            to->items.items[++kept] = *one;
            continue;
        }
        last->of.looks += one->of.looks;
        last->of.own_ns += one->of.own_ns;
        last->of.total_ns += one->of.total_ns;
    }
    to->items.n = kept + 1;
    return st;
}

tare_status stacks_write_prof(struct stream *s, const struct stacks_export *e)
{
    const struct stacks_profile *p = e->profile;
    struct edges edges = {VEC_INIT};
    tare_status st = find_edges(p, &edges, s->err);
    size_t at = 0;
    buf_add_char(&s->out, '{');
    for (size_t i = 0; st == TARE_OK && i < p->n && stream_poll(s) == TARE_OK; i++) {
        const struct stacks_function *f = &p->functions[i];
        add_function(&s->out, f);
        add_tuple(&s->out, 5);
        add_numbers(&s->out, &(struct numbers){f->looks, f->own_ns, f->total_ns});
        buf_add_char(&s->out, '{');
        for (; at < edges.items.n && edges.items.items[at].callee == i; at++) {
            const struct edge *one = &edges.items.items[at];
            if (one->caller == SIZE_MAX)
                add_mark(&s->out);
            else
                add_function(&s->out, &p->functions[one->caller]);
            add_tuple(&s->out, 4);
            add_numbers(&s->out, &one->of);
        }
        buf_add_char(&s->out, '0');
    }
    add_mark(&s->out);
    add_tuple(&s->out, 5);
    add_numbers(&s->out, &(struct numbers){1, 0, p->sum_ns});
    buf_add_str(&s->out, "{00");
    vec_release(&edges.items);
    return stream_end(s, st);
}
