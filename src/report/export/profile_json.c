/* SPDX-License-Identifier: MIT
 * profile_json.c - see profile_json.h. Streams: beside the trees it holds one row list, never a document.
 * Judges nothing and matches nothing: which frames of two traces are the same is the viewer's business. */
#include "report/export/profile_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "core/json.h"
#include "core/mem.h"
#include "report/export/export.h"
#include "report/pack_text.h"
#include "report/trace/report.h"
#include "report/text.h"
#include "report/trace/view.h"

/* The document on its way out: JSON whose text the stream takes piece by piece. */
struct writer {
    struct stream *s;
    struct json json;
    const struct profile_input *in;
};

/* One tree of it. */
struct part {
    const struct calltree *tree;
    struct view view;
    int64_t *parent; /* per row: the row of its parent, -1: outermost */
    uint32_t frame0; /* number of the frame of the source's first site */
    bool gross;
    bool packed; /* columns as text */
};

static void put_text(struct json *j, const char *text)
{
    json_put_string_n(j, text, text_clip(text, TEXT_NAME_MAX));
}

static void kv_name_and_file(struct json *j, const struct event_source *src)
{
    json_key(j, "name");
    put_text(j, export_name(src));
    json_key(j, "file");
    put_text(j, src->path);
}

/* ---- frames: the sites of both sides, one after another ---- */

enum frame_column { FRAME_NAME, FRAME_FILE, FRAME_LINE, FRAME_COLUMNS };
static const char *const frame_keys[FRAME_COLUMNS] = {"name", "file", "line"};

static void put_sites(struct writer *w, enum frame_column column, const struct event_source *src)
{
    for (uint32_t i = 0; i < src->n_sites && stream_poll(w->s) == TARE_OK; i++) {
        const struct trace_site *site = source_site(src, i);
        if (column == FRAME_NAME)
            put_text(&w->json, site->name);
        else if (column == FRAME_FILE && *site->file)
            put_text(&w->json, site->file);
        else if (column == FRAME_LINE && site->line)
            json_put_uint(&w->json, site->line);
        else
            json_put_null(&w->json);
    }
}

static void kv_frames(struct writer *w)
{
    json_key(&w->json, "frames");
    json_object_begin(&w->json);
    for (enum frame_column k = 0; k < FRAME_COLUMNS; k++) {
        json_key(&w->json, frame_keys[k]);
        json_array_begin(&w->json);
        put_sites(w, k, w->in->of.source);
        if (w->in->base.tree) put_sites(w, k, w->in->base.source);
        json_array_end(&w->json);
    }
    json_object_end(&w->json);
}

/* ---- nodes ---- */

static int64_t whole_ns(double ns)
{
    return isfinite(ns) && fabs(ns) < 9e15 ? (int64_t)llround(ns) : PACK_UNKNOWN;
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
    return p->gross ? PACK_UNKNOWN : whole_ns(interval_half(node_at(p, row)->total_ns));
}

static int64_t get_calls(const struct part *p, size_t row)
{
    uint64_t count = node_at(p, row)->count;
    return count < (uint64_t)9e15 ? (int64_t)count : PACK_UNKNOWN;
}

static const struct node_column {
    const char *key;
    int64_t (*get)(const struct part *p, size_t row);
} node_columns[] = {
    {"parent", get_parent}, {"frame", get_frame},       {"self", get_self},
    {"total", get_total},   {"total_error", get_error}, {"calls", get_calls},
};

static void put_packed_column(struct writer *w, const struct part *p, const struct node_column *c)
{
    pack_begin(w->s, &w->json);
    for (size_t row = 0; row < p->view.n && stream_poll(w->s) == TARE_OK; row++)
        pack_add(w->s, c->get(p, row));
    pack_end(w->s);
}

static void put_column(struct writer *w, const struct part *p, const struct node_column *c)
{
    json_array_begin(&w->json);
    for (size_t row = 0; row < p->view.n && stream_poll(w->s) == TARE_OK; row++) {
        int64_t v = c->get(p, row);
        if (v == PACK_UNKNOWN)
            json_put_null(&w->json);
        else
            json_put_int(&w->json, v);
    }
    json_array_end(&w->json);
}

static void kv_nodes(struct writer *w, const struct part *p)
{
    json_key(&w->json, "nodes");
    json_object_begin(&w->json);
    for (size_t k = 0; k < sizeof node_columns / sizeof *node_columns; k++) {
        json_key(&w->json, node_columns[k].key);
        (p->packed ? put_packed_column : put_column)(w, p, &node_columns[k]);
    }
    json_object_end(&w->json);
    json_kv_uint(&w->json, "hidden", p->view.hidden);
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

static tare_status kv_part(struct writer *w, const struct profile_side *side, uint32_t frame0)
{
    const struct profile_input *in = w->in;
    struct part p = {.tree = side->tree, .view = VIEW_INIT, .frame0 = frame0, .gross = in->gross};
    uint32_t most = in->nodes_max ? in->nodes_max : PROFILE_NODES_MAX;
    tare_status status = part_build(&p, side->source, most, w->s->err);
    p.packed = p.view.n > (in->plain_max ? in->plain_max : PROFILE_PLAIN_MAX);
    if (status == TARE_OK) kv_nodes(w, &p);
    part_release(&p);
    return status == TARE_OK ? stream_poll(w->s) : status;
}

/* ---- threads ---- */

/* The tree of a thread is built when its turn comes and released at once, so that there is only one in memory. */
static tare_status put_thread(struct writer *w, uint32_t i)
{
    const struct profile_input *in = w->in;
    struct calltree tree = CALLTREE_INIT;
    struct profile_side side = {in->of.source, &tree};
    struct buf name = BUF_INIT;
    tare_status status = in->thread(in->thread_ctx, i, &tree, w->s->err);
    if (status < 0) return status;
    export_thread_label(&name, side.source, source_thread(side.source, i));
    if (name.failed) w->s->out.failed = 1;
    json_object_begin(&w->json);
    json_kv_string(&w->json, "name", name.data);
    buf_release(&name);
    status = kv_part(w, &side, 0);
    json_object_end(&w->json);
    calltree_release(&tree);
    return status;
}

static uint32_t threads_written(const struct profile_input *in)
{
    uint32_t n = in->of.source->n_threads;
    if (!in->thread || in->base.tree || n < 2) return 0;
    return n < PROFILE_THREADS_MAX ? n : PROFILE_THREADS_MAX;
}

static tare_status kv_threads(struct writer *w)
{
    uint32_t n = threads_written(w->in);
    tare_status status = TARE_OK;
    if (!n) return TARE_OK;
    json_key(&w->json, "threads");
    json_array_begin(&w->json);
    for (uint32_t i = 0; i < n && status == TARE_OK; i++) status = put_thread(w, i);
    json_array_end(&w->json);
    return status;
}

/* ---- notes ---- */

/* A text that was made for it, which is emptied for the next one. */
static void put_note(struct json *j, struct buf *note)
{
    if (note->failed) j->out->failed = 1;
    json_put_string(j, note->data);
    buf_clear(note);
}

static void put_loss_notes(struct json *j, struct buf *note, const struct profile_side *side,
                           const char *which)
{
    const struct trace_loss *loss = side->source->loss;
    if (loss->dropped) {
        fmt_count(note, loss->dropped);
        buf_printf(note, " events and scopes%s were dropped while recording.", which);
        put_note(j, note);
    }
    if (loss->damaged_chunks) {
        buf_printf(note, "Parts of the trace%s were damaged and are missing here.", which);
        put_note(j, note);
    }
}

/* The share of the instrument is told for gross times too: there it says how much of them is not the program's. */
static void kv_notes(struct json *j, const struct profile_input *in)
{
    double own = report_own_share(in->of.tree);
    uint32_t n = threads_written(in), all = in->of.source->n_threads;
    struct buf note = BUF_INIT;
    json_key(j, "notes");
    json_array_begin(j);
    buf_add_str(&note, in->gross ? "Times are as read: the cost of tare itself is still in them."
                                 : "Times are net: the cost of tare itself is taken out.");
    if (isfinite(own) && own >= 0) {
        buf_add_str(&note, " It was ");
        fmt_share(&note, own);
        buf_add_str(&note, " of what was read.");
    }
    put_note(j, &note);
    put_loss_notes(j, &note, &in->of, "");
    if (in->base.tree) put_loss_notes(j, &note, &in->base, " of the base");
    if (n && n < all) {
        buf_printf(&note, "%" PRIu32 " more threads are in the sum of all threads only.", all - n);
        put_note(j, &note);
    }
    json_array_end(j);
    buf_release(&note);
}

/* ---- how it was recorded ---- */

/* Of gross times nothing was taken out: the share is there, what it comes to is not told twice. */
static void kv_measured(struct json *j, const struct profile_input *in)
{
    const struct event_source *of = in->of.source;
    double own = report_own_share(in->of.tree);
    bool known = isfinite(own) && own >= 0;
    uint64_t duration = report_span(of).duration_ns;
    json_key(j, "measured");
    json_object_begin(j);
    if (duration) json_kv_uint(j, "duration_ns", duration);
    json_kv_uint(j, "processes", of->n_processes);
    json_kv_uint(j, "threads", of->n_threads);
    if (known) json_kv_double(j, "own_share", round(own * 1e6) / 1e6);
    if (known && !in->gross)
        json_kv_uint(j, "own_ns", (uint64_t)(own * in->of.tree->nodes[0].gross_total_ns + 0.5));
    json_kv_uint(j, "lost", of->loss->dropped);
    json_object_end(j);
}

/* ---- all of it ---- */

static tare_status kv_base(struct writer *w)
{
    json_key(&w->json, "base");
    json_object_begin(&w->json);
    kv_name_and_file(&w->json, w->in->base.source);
    tare_status status = kv_part(w, &w->in->base, w->in->of.source->n_sites);
    json_object_end(&w->json);
    return status;
}

tare_status profile_json_write(struct stream *s, const struct profile_input *in)
{
    struct writer w = {.s = s, .in = in};
    json_init(&w.json, &s->out, JSON_STYLE_COMPACT);
    json_object_begin(&w.json);
    json_kv_string(&w.json, "schema", PROFILE_SCHEMA);
    kv_name_and_file(&w.json, in->of.source);
    json_kv_string(&w.json, "unit", "ns");
    kv_measured(&w.json, in);
    kv_notes(&w.json, in);
    kv_frames(&w);
    tare_status status = kv_part(&w, &in->of, 0);
    if (status == TARE_OK) status = kv_threads(&w);
    if (status == TARE_OK && in->base.tree) status = kv_base(&w);
    json_object_end(&w.json);
    return stream_end(s, status);
}

/* ---- of traces ---- */

static tare_status thread_of_trace(void *ctx, uint32_t thread, struct calltree *out, tare_error *err)
{
    return calltree_build(out, ctx, (int)thread, err);
}

tare_status profile_json_trace(struct stream *s, const struct profile_wish *w)
{
    struct event_source of, than;
    struct calltree tree = CALLTREE_INIT, base_tree = CALLTREE_INIT;
    struct profile_input in = {.of = {&of, &tree},
                               .gross = w->gross,
                               .nodes_max = w->nodes_max,
                               .thread = thread_of_trace,
                               .thread_ctx = w->of};
    event_source_of_trace(&of, w->of);
    tare_status status = calltree_build(&tree, w->of, -1, s->err);
    if (status == TARE_OK && w->base) {
        event_source_of_trace(&than, w->base);
        in.base = (struct profile_side){&than, &base_tree};
        status = calltree_build(&base_tree, w->base, -1, s->err);
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
