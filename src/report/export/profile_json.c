/* SPDX-License-Identifier: MIT
 * profile_json.c - see profile_json.h. Streams: beside the trees it holds one row list, never a document.
 * Judges nothing and matches nothing: which frames of two traces are the same is the viewer's business. */
#include "report/export/profile_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "core/mem.h"
#include "report/export/export.h"
#include "report/trace/report.h"
#include "report/text.h"
#include "report/trace/view.h"

/* One tree on its way out. */
struct part {
    const struct calltree *tree;
    struct view view;
    int64_t *parent; /* per row: the row of its parent, -1: outermost */
    uint32_t frame0; /* number of the frame of the source's first site */
    bool gross;
    bool packed; /* columns as text */
};

/* ---- frames: the sites of both sides, one after another ---- */

static void put_text(struct stream *s, const char *text)
{
    text_json(&s->out, text, text_clip(text, TEXT_NAME_MAX));
}

static void put_name(struct stream *s, const struct trace_site *site)
{
    put_text(s, site->name);
}

static void put_file(struct stream *s, const struct trace_site *site)
{
    if (*site->file)
        put_text(s, site->file);
    else
        buf_add_str(&s->out, "null");
}

static void put_line(struct stream *s, const struct trace_site *site)
{
    if (site->line)
        stream_add_uint(s, site->line);
    else
        buf_add_str(&s->out, "null");
}

struct frame_column {
    const char *key;
    void (*put)(struct stream *s, const struct trace_site *site);
};

static const struct frame_column frame_columns[] = {
    {"name", put_name},
    {"file", put_file},
    {"line", put_line},
};

static void put_sites(struct stream *s, const struct frame_column *c, const struct event_source *src,
                      bool first)
{
    for (uint32_t i = 0; src && i < src->n_sites; i++) {
        if (i || !first) buf_add_char(&s->out, ',');
        c->put(s, source_site(src, i));
        stream_poll(s);
    }
}

static void put_frames(struct stream *s, const struct profile_input *in)
{
    buf_add_str(&s->out, ",\n\"frames\":{");
    for (size_t k = 0; k < sizeof frame_columns / sizeof *frame_columns; k++) {
        const struct frame_column *c = &frame_columns[k];
        buf_printf(&s->out, "%s\"%s\":[", k ? ",\n" : "", c->key);
        put_sites(s, c, in->of.source, true);
        if (in->base.tree) put_sites(s, c, in->base.source, in->of.source->n_sites == 0);
        buf_add_char(&s->out, ']');
    }
    buf_add_char(&s->out, '}');
}

/* ---- nodes ---- */

#define UNKNOWN INT64_MIN

static int64_t whole_ns(double ns)
{
    return isfinite(ns) && fabs(ns) < 9e15 ? (int64_t)llround(ns) : UNKNOWN;
}

static const struct call_node *node_at(const struct part *p, size_t row)
{
    return &p->tree->nodes[p->view.rows[row].node];
}

/* Packed, a parent is so many rows above its child: small numbers make short texts. */
static int64_t get_parent(const struct part *p, size_t row)
{
    return p->packed ? (int64_t)row - p->parent[row] : p->parent[row];
}

static int64_t get_frame(const struct part *p, size_t row)
{
    return (int64_t)p->frame0 + node_at(p, row)->site;
}

static int64_t get_self(const struct part *p, size_t row)
{
    const struct call_node *n = node_at(p, row);
    return whole_ns(p->gross ? n->gross_self_ns : n->self_ns.value);
}

static int64_t get_total(const struct part *p, size_t row)
{
    const struct call_node *n = node_at(p, row);
    return whole_ns(p->gross ? n->gross_total_ns : n->total_ns.value);
}

static int64_t get_error(const struct part *p, size_t row)
{
    return p->gross ? UNKNOWN : whole_ns(interval_half(node_at(p, row)->total_ns));
}

static int64_t get_calls(const struct part *p, size_t row)
{
    uint64_t count = node_at(p, row)->count;
    return count < (uint64_t)9e15 ? (int64_t)count : UNKNOWN;
}

static const struct node_column {
    const char *key;
    int64_t (*get)(const struct part *p, size_t row);
} node_columns[] = {
    {"parent", get_parent}, {"frame", get_frame},       {"self", get_self},
    {"total", get_total},   {"total_error", get_error}, {"calls", get_calls},
};

static void put_plain(struct stream *s, int64_t v, size_t row)
{
    if (row) buf_add_char(&s->out, ',');
    if (v == UNKNOWN)
        buf_add_str(&s->out, "null");
    else
        stream_add_int(s, v);
}

/* Five bits a sign, the lowest first, a sixth where more follow; the lowest of all is minus, minus zero is
 * unknown. */
static void put_packed(struct stream *s, int64_t v)
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t rest = v < 0 ? (uint64_t)-v << 1 | 1 : (uint64_t)v << 1;
    if (v == UNKNOWN) rest = 1;
    do {
        uint64_t digit = rest & 31;
        rest >>= 5;
        buf_add_char(&s->out, signs[rest ? digit | 32 : digit]);
    } while (rest);
}

static void put_column(struct stream *s, const struct part *p, const struct node_column *c)
{
    buf_printf(&s->out, "\"%s\":%c", c->key, p->packed ? '"' : '[');
    for (size_t row = 0; row < p->view.n && s->status == TARE_OK; row++) {
        if (p->packed)
            put_packed(s, c->get(p, row));
        else
            put_plain(s, c->get(p, row), row);
        stream_poll(s);
    }
    buf_add_char(&s->out, p->packed ? '"' : ']');
}

static void put_nodes(struct stream *s, const struct part *p)
{
    buf_add_str(&s->out, "\"nodes\":{");
    for (size_t k = 0; k < sizeof node_columns / sizeof *node_columns; k++) {
        if (k) buf_add_str(&s->out, ",\n");
        put_column(s, p, &node_columns[k]);
    }
    buf_printf(&s->out, "},\"hidden\":%" PRIu64, p->view.hidden);
}

/* ---- a part: which nodes, in which order ---- */

static void part_release(struct part *p)
{
    view_release(&p->view);
    mem_free(p->parent);
}

/* Rows are in preorder: the parent of a row is the latest row one level up. */
static tare_status link_rows(struct part *p, tare_error *err)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < p->view.n; i++)
        if (p->view.rows[i].depth > deepest) deepest = p->view.rows[i].depth;
    int64_t *at = mem_new((size_t)deepest + 1, sizeof *at);
    p->parent = mem_new(p->view.n, sizeof *p->parent);
    if (!at || !p->parent) {
        mem_free(at);
        return error_nomem(err, "a profile of %zu call paths", p->view.n);
    }
    for (size_t i = 0; i < p->view.n; i++) {
        uint32_t depth = p->view.rows[i].depth;
        p->parent[i] = depth ? at[depth - 1] : -1;
        at[depth] = (int64_t)i;
    }
    mem_free(at);
    return TARE_OK;
}

/* Too many paths for a page: raise the least share until they fit. */
static tare_status part_build(struct part *p, const struct event_source *src, uint32_t nodes_max,
                              tare_error *err)
{
    struct view_options options = {.sort = TREE_SORT_TOTAL, .gross = p->gross};
    tare_status status = view_build(&p->view, p->tree, src, &options, err);
    for (double share = 1e-7; status == TARE_OK && p->view.n > nodes_max && share < 1; share *= 2) {
        view_release(&p->view);
        options.min_share = share;
        status = view_build(&p->view, p->tree, src, &options, err);
    }
    return status == TARE_OK ? link_rows(p, err) : status;
}

static tare_status put_part(struct stream *s, const struct profile_input *in, const struct profile_side *side,
                            uint32_t frame0)
{
    struct part p = {.tree = side->tree, .view = VIEW_INIT, .frame0 = frame0, .gross = in->gross};
    uint32_t most = in->nodes_max ? in->nodes_max : PROFILE_NODES_MAX;
    tare_status status = part_build(&p, side->source, most, s->err);
    p.packed = p.view.n > (in->plain_max ? in->plain_max : PROFILE_PLAIN_MAX);
    if (status == TARE_OK) put_nodes(s, &p);
    part_release(&p);
    return status == TARE_OK ? stream_poll(s) : status;
}

/* ---- threads ---- */

static tare_status put_thread(struct stream *s, const struct profile_input *in, uint32_t i, bool first)
{
    const struct trace_thread *t = source_thread(in->of.source, i);
    struct calltree tree = CALLTREE_INIT;
    tare_status status = in->thread(in->thread_ctx, i, &tree, s->err);
    if (status < 0) return status;
    struct buf name = BUF_INIT;
    export_thread_name(&name, t);
    buf_printf(&name, " (%" PRIu32 "/%" PRIu32 ")", source_process(in->of.source, t->process)->pid, t->tid);
    if (name.failed) s->out.failed = 1;
    buf_add_str(&s->out, first ? "\n{\"name\":" : ",\n{\"name\":");
    text_json(&s->out, name.data, name.len);
    buf_add_char(&s->out, ',');
    buf_release(&name);
    struct profile_side side = {in->of.source, &tree};
    status = put_part(s, in, &side, 0);
    buf_add_char(&s->out, '}');
    calltree_release(&tree);
    return status;
}

static uint32_t threads_written(const struct profile_input *in)
{
    uint32_t n = in->of.source->n_threads;
    if (!in->thread || in->base.tree || n < 2) return 0;
    return n < PROFILE_THREADS_MAX ? n : PROFILE_THREADS_MAX;
}

static tare_status put_threads(struct stream *s, const struct profile_input *in)
{
    uint32_t n = threads_written(in);
    if (!n) return TARE_OK;
    tare_status status = TARE_OK;
    buf_add_str(&s->out, ",\n\"threads\":[");
    for (uint32_t i = 0; i < n && status == TARE_OK; i++) status = put_thread(s, in, i, i == 0);
    buf_add_char(&s->out, ']');
    return status;
}

/* ---- the head ---- */

static const char *name_of(const struct event_source *src)
{
    return src->n_processes ? source_process(src, 0)->command : src->path;
}

static void put_weight_note(struct stream *s, const struct profile_input *in)
{
    struct buf share = BUF_INIT;
    double own = report_own_share(in->of.tree);
    if (isfinite(own) && own >= 0) {
        buf_add_str(&share, " It was ");
        fmt_share(&share, own);
        buf_add_str(&share, " of what was read.");
    }
    if (share.failed) s->out.failed = 1;
    buf_add_str(&s->out, in->gross ? "\"Times are as read: the cost of tare itself is still in them."
                                   : "\"Times are net: the cost of tare itself is taken out.");
    buf_add(&s->out, share.data, share.len);
    buf_add_char(&s->out, '"');
    buf_release(&share);
}

static void put_loss_note(struct stream *s, const struct profile_side *side, const char *which)
{
    const struct trace_loss *loss = side->source->loss;
    struct buf n = BUF_INIT;
    if (loss->dropped) {
        fmt_int(&n, loss->dropped < INT64_MAX ? (int64_t)loss->dropped : INT64_MAX);
        buf_printf(&n, " events and scopes%s were dropped while recording.", which);
        if (n.failed) s->out.failed = 1;
        buf_printf(&s->out, ",\"%s\"", n.data);
    }
    if (loss->damaged_chunks)
        buf_printf(&s->out, ",\"Parts of the trace%s were damaged and are missing here.\"", which);
    buf_release(&n);
}

static void put_notes(struct stream *s, const struct profile_input *in)
{
    buf_add_str(&s->out, ",\n\"notes\":[");
    put_weight_note(s, in);
    put_loss_note(s, &in->of, "");
    if (in->base.tree) put_loss_note(s, &in->base, " of the base");
    uint32_t n = threads_written(in), all = in->of.source->n_threads;
    if (n && n < all)
        buf_printf(&s->out, ",\"%" PRIu32 " more threads are in the sum of all threads only.\"", all - n);
    buf_add_char(&s->out, ']');
}

static void put_head(struct stream *s, const struct profile_input *in)
{
    buf_add_str(&s->out, "{\"schema\":\"" PROFILE_SCHEMA "\",\"name\":");
    put_text(s, name_of(in->of.source));
    buf_add_str(&s->out, ",\"file\":");
    put_text(s, in->of.source->path);
    buf_add_str(&s->out, ",\"unit\":\"ns\"");
    put_notes(s, in);
    put_frames(s, in);
    buf_add_str(&s->out, ",\n");
}

static tare_status put_base(struct stream *s, const struct profile_input *in)
{
    buf_add_str(&s->out, ",\n\"base\":{\"name\":");
    put_text(s, name_of(in->base.source));
    buf_add_str(&s->out, ",\"file\":");
    put_text(s, in->base.source->path);
    buf_add_char(&s->out, ',');
    tare_status status = put_part(s, in, &in->base, in->of.source->n_sites);
    buf_add_char(&s->out, '}');
    return status;
}

tare_status profile_json_write(struct stream *s, const struct profile_input *in)
{
    put_head(s, in);
    tare_status status = put_part(s, in, &in->of, 0);
    if (status == TARE_OK) status = put_threads(s, in);
    if (status == TARE_OK && in->base.tree) status = put_base(s, in);
    buf_add_char(&s->out, '}');
    if (status < 0 && s->status == TARE_OK) s->status = status;
    return stream_poll(s);
}

/* ---- of traces ---- */

static tare_status thread_of_trace(void *ctx, uint32_t thread, struct calltree *out, tare_error *err)
{
    return calltree_build(out, ctx, (int)thread, err);
}

tare_status profile_json_trace(struct stream *s, struct trace *t, struct trace *base, bool gross)
{
    struct event_source of, than;
    struct calltree tree = CALLTREE_INIT, base_tree = CALLTREE_INIT;
    struct profile_input in = {
        .of = {&of, &tree}, .gross = gross, .thread = thread_of_trace, .thread_ctx = t};
    event_source_of_trace(&of, t);
    tare_status status = calltree_build(&tree, t, -1, s->err);
    if (status == TARE_OK && base) {
        event_source_of_trace(&than, base);
        in.base = (struct profile_side){&than, &base_tree};
        status = calltree_build(&base_tree, base, -1, s->err);
    }
    if (status == TARE_OK)
        status = profile_json_write(s, &in);
    else
        s->status = status;
    calltree_release(&tree);
    calltree_release(&base_tree);
    return status;
}

bool profile_json_has_scopes(const struct trace *t)
{
    for (uint32_t i = 0; i < trace_n_sites(t); i++)
        if (trace_site(t, i)->kind == TARE_SITE_SCOPE) return true;
    return false;
}
