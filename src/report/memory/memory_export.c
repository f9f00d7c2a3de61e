/* SPDX-License-Identifier: MIT
 * memory_export.c - see memory_export.h. Names may hold anything; what is written is valid in its format. */
#include "report/memory/memory_export.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/json.h"
#include "report/export/profile_json.h"
#include "report/text.h"

static uint64_t whole(double v)
{
    return v >= 0.5 && v < 9e15 ? (uint64_t)llround(v) : 0;
}

/* ---- every process has a tree ---- */

typedef tare_status tree_fn(void *ctx, const struct memory_process *p, const struct memory_tree *t);

static tare_status each_tree(struct stream *s, const struct memory_export *e, tree_fn *fn, void *ctx)
{
    tare_status status = TARE_OK;
    for (size_t i = 0; i < e->profile->n && status == TARE_OK; i++) {
        struct memory_tree t;
        status = memory_tree(&e->profile->processes[i], &e->profile->arena, &t, s->err);
        if (status == TARE_OK) status = fn(ctx, &e->profile->processes[i], &t);
    }
    return status;
}

/* The path to a node, outermost first, into `path`: how many. */
static size_t path_to(const struct memory_tree *t, size_t node, size_t path[MEMORY_FRAMES_MOST])
{
    size_t n = 0, depth = 0;
    for (int64_t i = (int64_t)node; i >= 0; i = t->nodes[i].parent) depth++;
    for (int64_t i = (int64_t)node; i >= 0; i = t->nodes[i].parent) path[depth - ++n] = t->nodes[i].frame;
    return depth;
}

/* ---- folded ---- */

struct folding {
    struct stream *s;
    enum memory_weight weight;
    bool several;
};

static tare_status fold(void *ctx, const struct memory_process *p, const struct memory_tree *t)
{
    struct folding *f = ctx;
    size_t path[MEMORY_FRAMES_MOST];
    for (size_t i = 0; i < t->n_nodes && f->s->status == TARE_OK; i++) {
        uint64_t bytes = whole(t->nodes[i].self[f->weight].sum);
        if (!bytes) continue;
        if (f->several) buf_printf(&f->s->out, "process %" PRIu32 ";", p->pid);
        size_t depth = path_to(t, i, path);
        for (size_t d = 0; d < depth; d++) {
            const struct memory_tree_frame *at = &t->frames[path[d]];
            if (d) buf_add_char(&f->s->out, ';');
            text_folded(&f->s->out, at->name, text_clip(at->name, TEXT_NAME_MAX));
            if (at->line) buf_printf(&f->s->out, ":%" PRIu64, at->line);
        }
        buf_add_char(&f->s->out, ' ');
        stream_add_uint(f->s, bytes);
        buf_add_char(&f->s->out, '\n');
        stream_poll(f->s);
    }
    return f->s->status;
}

tare_status memory_write_folded(struct stream *s, const struct memory_export *e)
{
    struct folding f = {s, e->weight, e->profile->n > 1};
    return stream_end(s, each_tree(s, e, fold, &f));
}

/* ---- speedscope: a sampled profile for each process and weight ---- */

struct scoping {
    struct stream *s;
    size_t first_frame; /* of the tree under way, in the shared table */
    bool any;
};

static tare_status scope_frames(void *ctx, const struct memory_process *p, const struct memory_tree *t)
{
    struct scoping *c = ctx;
    struct buf *b = &c->s->out;
    (void)p;
    for (size_t i = 0; i < t->n_frames; i++) {
        const struct memory_tree_frame *f = &t->frames[i];
        buf_add_str(b, c->any ? ",\n{\"name\":" : "\n{\"name\":");
        c->any = true;
        text_json(b, f->name, text_clip(f->name, TEXT_NAME_MAX));
        if (f->file) {
            buf_add_str(b, ",\"file\":");
            text_json(b, f->file, text_clip(f->file, TEXT_NAME_MAX));
        }
        if (f->line) buf_printf(b, ",\"line\":%" PRIu64, f->line);
        buf_add_char(b, '}');
        stream_poll(c->s);
    }
    return c->s->status;
}

static void scope_samples(struct scoping *c, const struct memory_tree *t, enum memory_weight w)
{
    size_t path[MEMORY_FRAMES_MOST];
    bool first = true;
    for (size_t i = 0; i < t->n_nodes && c->s->status == TARE_OK; i++) {
        if (!whole(t->nodes[i].self[w].sum)) continue;
        buf_add_str(&c->s->out, first ? "\n[" : ",\n[");
        first = false;
        size_t depth = path_to(t, i, path);
        for (size_t d = 0; d < depth; d++) {
            if (d) buf_add_char(&c->s->out, ',');
            stream_add_uint(c->s, c->first_frame + path[d]);
        }
        buf_add_char(&c->s->out, ']');
        stream_poll(c->s);
    }
}

static uint64_t scope_weights(struct scoping *c, const struct memory_tree *t, enum memory_weight w)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->n_nodes && c->s->status == TARE_OK; i++) {
        uint64_t bytes = whole(t->nodes[i].self[w].sum);
        if (!bytes) continue;
        if (sum) buf_add_char(&c->s->out, ',');
        stream_add_uint(c->s, bytes);
        sum += bytes;
        stream_poll(c->s);
    }
    return sum;
}

static tare_status scope_process(void *ctx, const struct memory_process *p, const struct memory_tree *t)
{
    struct scoping *c = ctx;
    for (int w = 0; w < MEMORY_WEIGHTS; w++) {
        buf_printf(&c->s->out,
                   "%s\n{\"type\":\"sampled\",\"unit\":\"bytes\",\"startValue\":0,\"name\":\"process %" PRIu32
                   ": %s\",\"samples\":[",
                   c->any ? "," : "", p->pid, memory_weight_meanings[w]);
        c->any = true;
        scope_samples(c, t, (enum memory_weight)w);
        buf_add_str(&c->s->out, "],\n\"weights\":[");
        uint64_t sum = scope_weights(c, t, (enum memory_weight)w);
        buf_printf(&c->s->out, "],\"endValue\":%" PRIu64 "}", sum);
    }
    c->first_frame += t->n_frames;
    return stream_poll(c->s);
}

tare_status memory_write_speedscope(struct stream *s, const struct memory_export *e)
{
    struct scoping c = {.s = s};
    buf_add_str(&s->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":");
    text_json(&s->out, e->name, text_clip(e->name, TEXT_NAME_MAX));
    buf_add_str(&s->out, ",\"exporter\":\"tare " TARE_VERSION
                         "\",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
    tare_status status = each_tree(s, e, scope_frames, &c);
    buf_add_str(&s->out, "\n]},\n\"profiles\":[");
    c.any = false;
    if (status == TARE_OK) status = each_tree(s, e, scope_process, &c);
    buf_add_str(&s->out, "\n]}\n");
    return stream_end(s, status);
}

/* ---- the profile document ---- */

static void put_frames(struct stream *s, struct json *j, const struct memory_tree *t)
{
    static const char *const keys[] = {"name", "file", "line"};
    json_key(j, "frames");
    json_object_begin(j);
    for (int k = 0; k < 3; k++) {
        json_key(j, keys[k]);
        json_array_begin(j);
        for (size_t i = 0; i < t->n_frames && stream_poll(s) == TARE_OK; i++) {
            const struct memory_tree_frame *f = &t->frames[i];
            const char *text = k == 0 ? f->name : f->file;
            if (k == 2 && f->line)
                json_put_uint(j, f->line);
            else if (k < 2 && text)
                json_put_string_n(j, text, text_clip(text, TEXT_NAME_MAX));
            else
                json_put_null(j);
        }
        json_array_end(j);
    }
    json_object_end(j);
}

struct column {
    const struct memory_tree *t;
    const int64_t *row; /* of each node: its row; -1: it weighs nothing */
    enum memory_weight w;
};

static double get_parent(const struct column *c, size_t i)
{
    int64_t parent = c->t->nodes[i].parent;
    return parent < 0 ? -1 : (double)c->row[parent];
}
static double get_frame(const struct column *c, size_t i)
{
    return (double)c->t->nodes[i].frame;
}
static double get_self(const struct column *c, size_t i)
{
    return round(c->t->nodes[i].self[c->w].sum);
}
static double get_total(const struct column *c, size_t i)
{
    return round(c->t->nodes[i].total[c->w].sum);
}
static double get_error(const struct column *c, size_t i)
{
    return round(interval_half(memory_interval(c->t->nodes[i].total[c->w])));
}
static double get_calls(const struct column *c, size_t i)
{
    return round(c->t->nodes[i].allocations);
}

static void put_nodes(struct stream *s, struct json *j, const struct column *c)
{
    static const struct {
        const char *key;
        double (*get)(const struct column *c, size_t i);
    } columns[] = {{"parent", get_parent}, {"frame", get_frame},       {"self", get_self},
                   {"total", get_total},   {"total_error", get_error}, {"calls", get_calls}};
    json_key(j, "nodes");
    json_object_begin(j);
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        json_key(j, columns[k].key);
        json_array_begin(j);
        for (size_t i = 0; i < c->t->n_nodes && stream_poll(s) == TARE_OK; i++)
            if (c->row[i] >= 0) json_put_int(j, (int64_t)fmin(columns[k].get(c, i), 9e15));
        json_array_end(j);
    }
    json_object_end(j);
}

static void put_notes(struct json *j, const struct memory_process *p, enum memory_weight w)
{
    struct buf b = BUF_INIT;
    json_key(j, "notes");
    json_array_begin(j);
    buf_printf(&b, "Bytes that were %s%s.", w == MEMORY_WEIGHT_GROWN ? "more at the end: each path " : "",
               memory_weight_meanings[w]);
    json_put_string(j, b.data);
    if (p->every)
        json_put_string(
            j, "Sums are estimates from a sample of allocations; the error is that of the 95 % interval. "
               "Calls are allocations.");
    else
        json_put_string(j, "Every allocation was recorded. Calls are allocations.");
    json_array_end(j);
    buf_release(&b);
}

tare_status memory_write_profile(struct stream *s, const struct memory_process *p, struct arena *a,
                                 enum memory_weight weight)
{
    struct memory_tree t;
    struct json j;
    tare_status status = memory_tree(p, a, &t, s->err);
    int64_t *row = status == TARE_OK && t.n_nodes ? arena_new(a, t.n_nodes, sizeof *row) : NULL;
    if (status == TARE_OK && a->failed) status = error_nomem(s->err, "%zu paths", t.n_nodes);
    if (status != TARE_OK) return stream_end(s, status);
    int64_t n = 0;
    for (size_t i = 0; i < t.n_nodes; i++) row[i] = whole(t.nodes[i].total[weight].sum) ? n++ : -1;
    json_init(&j, &s->out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "schema", PROFILE_SCHEMA);
    json_key(&j, "name");
    struct buf name = BUF_INIT;
    buf_printf(&name, "process %" PRIu32 ": %s", p->pid, memory_weight_meanings[weight]);
    json_put_string(&j, name.data);
    buf_release(&name);
    json_kv_string(&j, "unit", "bytes");
    put_notes(&j, p, weight);
    put_frames(s, &j, &t);
    put_nodes(s, &j, &(struct column){&t, row, weight});
    json_object_end(&j);
    return stream_end(s, TARE_OK);
}
