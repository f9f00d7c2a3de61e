/* SPDX-License-Identifier: MIT
 * folded.c - folded stacks, `main;step;load 1234` with self time in nanoseconds, for flame graph tools.
 * Lines without time are left out: a weight is never invented. */
#include <math.h>
#include <string.h>

#include "core/vec.h"
#include "report/export/export.h"
#include "report/text.h"
#include "report/trace/view.h"

struct folder {
    struct stream *s;
    const struct export_input *in;
    struct buf path;  /* the frames down to this node */
    VEC(size_t) ends; /* per depth: the length of path with that frame */
};

/* Cut the path to what is around the node, and add its own frame. */
static tare_status add_frame(struct folder *f, uint32_t node, uint32_t depth)
{
    const char *name = source_site(f->in->source, f->in->tree->nodes[node].site)->name;
    size_t n = text_clip(name, TEXT_NAME_MAX);
    if (vec_reserve(&f->ends, depth, f->s->err) != TARE_OK || !f->ends.items) return TARE_NOMEM;
    f->ends.n = depth - 1;
    f->path.len = f->ends.n ? f->ends.items[f->ends.n - 1] : 0;
    if (f->path.len) buf_add_char(&f->path, ';');
    text_folded(&f->path, *name ? name : "(no name)", *name ? n : strlen("(no name)"));
    if (name[n]) buf_add_str(&f->path, "...");
    tare_status status = buf_status(&f->path, f->s->err);
    return status < 0 ? status : vec_push(&f->ends, f->path.len, f->s->err);
}

static void write_line(struct folder *f, const struct call_node *n)
{
    double ns = round(f->in->gross ? n->gross_self_ns : n->self_ns.value);
    if (n->kind != TARE_SITE_SCOPE || !(ns >= 1 && ns < 9e18)) return;
    buf_add(&f->s->out, f->path.data, f->path.len);
    buf_add_char(&f->s->out, ' ');
    stream_add_uint(f->s, (uint64_t)ns);
    buf_add_char(&f->s->out, '\n');
    stream_poll(f->s);
}

static tare_status folded_write(struct stream *s, const struct export_input *in)
{
    struct folder f = {.s = s, .in = in, .path = BUF_INIT, .ends = VEC_INIT};
    tare_status status = TARE_OK;
    uint32_t depth = 0;
    for (uint32_t i = 0; (i = calltree_next(in->tree, i, &depth)) && s->status == TARE_OK;) {
        if ((status = add_frame(&f, i, depth)) < 0) break;
        write_line(&f, &in->tree->nodes[i]);
    }
    buf_release(&f.path);
    vec_release(&f.ends);
    return stream_end(s, status);
}

const struct export_format export_folded = {
    .name = "folded",
    .extension = ".folded",
    .help = "folded stacks with self times in ns, for flame graph tools",
    .flags = EXPORT_TREE,
    .write = folded_write,
};
