/* SPDX-License-Identifier: MIT
 * folded.c - folded stacks, `main;step;load 1234` with self time in nanoseconds, for flame graph tools.
 * Lines without time are left out: a weight is never invented. */
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "report/export/export.h"
#include "report/text.h"

struct folder {
    struct stream *s;
    const struct export_input *in;
    struct buf path; /* the frames down to this node */
    size_t *len_at;  /* per depth: the length of path without that frame */
    size_t cap;
    uint32_t depth;
};

static int enter(struct folder *f, uint32_t node)
{
    if (f->depth == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 64;
        size_t *len_at = mem_resize(f->len_at, cap, sizeof *len_at);
        if (!len_at) return -1;
        f->len_at = len_at;
        f->cap = cap;
    }
    const char *name = source_site(f->in->source, f->in->tree->nodes[node].site)->name;
    size_t n = text_clip(name, TEXT_NAME_MAX);
    f->len_at[f->depth++] = f->path.len;
    if (f->path.len) buf_add_char(&f->path, ';');
    text_folded(&f->path, *name ? name : "(no name)", *name ? n : strlen("(no name)"));
    if (name[n]) buf_add_str(&f->path, "...");
    return f->path.failed ? -1 : 0;
}

static void leave(struct folder *f)
{
    f->path.len = f->len_at[--f->depth];
}

static void write_line(struct folder *f, const struct call_node *n)
{
    double ns = round(f->in->gross ? n->gross_self_ns : n->self_ns.value);
    if (!(ns >= 1 && ns < 9e18)) return;
    buf_add(&f->s->out, f->path.data, f->path.len);
    buf_add_char(&f->s->out, ' ');
    stream_add_uint(f->s, (uint64_t)ns);
    buf_add_char(&f->s->out, '\n');
    stream_poll(f->s);
}

static tare_status walk(struct folder *f)
{
    const struct call_node *nodes = f->in->tree->nodes;
    uint32_t i = f->in->tree->n_nodes ? nodes[0].child : 0;
    while (i && f->s->status == TARE_OK) {
        bool scope = nodes[i].kind == TARE_SITE_SCOPE;
        if (enter(f, i) < 0) return error_nomem(f->s->err, "folded stacks");
        if (scope) write_line(f, &nodes[i]);
        if (nodes[i].child) {
            i = nodes[i].child;
            continue;
        }
        leave(f);
        while (i && !nodes[i].next) {
            i = nodes[i].parent;
            if (i) leave(f);
        }
        if (i) i = nodes[i].next;
    }
    return f->s->status;
}

static tare_status folded_write(struct stream *s, const struct export_input *in)
{
    struct folder f = {.s = s, .in = in, .path = BUF_INIT};
    tare_status status = walk(&f);
    buf_release(&f.path);
    mem_free(f.len_at);
    if (status < 0 && s->status == TARE_OK) s->status = status;
    return s->status;
}

const struct export_format export_folded = {
    .name = "folded",
    .extension = ".folded",
    .help = "folded stacks with self times in ns, for flame graph tools",
    .flags = EXPORT_TREE,
    .write = folded_write,
};
