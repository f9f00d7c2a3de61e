/* SPDX-License-Identifier: MIT
 * speedscope.c - the speedscope file format: one evented profile per thread, or, from a trace without
 * events, one sampled profile of the tree's self times. Counters and marks have no place in it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/vec.h"
#include "report/export/export.h"
#include "report/text.h"
#include "report/trace/view.h"

struct scope {
    struct stream *s;
    const struct export_input *in;
    bool any;           /* a profile was written */
    bool open;          /* the profile of this thread has begun */
    uint64_t last_ns;   /* its latest event */
    VEC(uint32_t) path; /* sampled: the frames down to this node */
};

static struct buf *out(const struct scope *c)
{
    return &c->s->out;
}

static void write_frames(struct scope *c)
{
    const struct event_source *src = c->in->source;
    buf_add_str(out(c), "\"shared\":{\"frames\":[");
    for (uint32_t i = 0; i < src->n_sites; i++) {
        const struct trace_site *site = source_site(src, i);
        buf_add_str(out(c), i ? ",\n{\"name\":" : "\n{\"name\":");
        text_json(out(c), site->name, strlen(site->name));
        if (*site->file) {
            buf_add_str(out(c), ",\"file\":");
            text_json(out(c), site->file, strlen(site->file));
            buf_printf(out(c), ",\"line\":%" PRIu32, site->line);
        }
        buf_add_char(out(c), '}');
        stream_poll(c->s);
    }
    buf_add_str(out(c), "\n]},");
}

static void write_head(struct scope *c)
{
    const char *name = export_name(c->in->source);
    buf_add_str(out(c), "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":");
    text_json(out(c), name, text_clip(name, TEXT_NAME_MAX));
    buf_add_str(out(c), ",\"exporter\":\"tare " TARE_VERSION "\",\"activeProfileIndex\":0,\n");
    write_frames(c);
    buf_add_str(out(c), "\n\"profiles\":[");
}

static void begin_profile(struct scope *c, const char *type, const char *name)
{
    buf_printf(out(c),
               "%s\n{\"type\":\"%s\",\"unit\":\"nanoseconds\",\"startValue\":0,\"name\":", c->any ? "," : "",
               type);
    text_json(out(c), name, strlen(name));
    c->any = true;
}

/* ---- events ---- */

static int write_event(void *ctx, const struct trace_event *e)
{
    struct scope *c = ctx;
    if (e->kind != TRACE_BEGIN && e->kind != TRACE_END) return 0;
    buf_add_str(out(c), c->open ? ",\n{\"type\":\"" : "\n{\"type\":\"");
    buf_add_str(out(c), e->kind == TRACE_BEGIN ? "O\",\"frame\":" : "C\",\"frame\":");
    stream_add_uint(c->s, e->site);
    buf_add_str(out(c), ",\"at\":");
    stream_add_uint(c->s, e->time_ns);
    buf_add_char(out(c), '}');
    c->open = true;
    c->last_ns = e->time_ns;
    return stream_poll(c->s);
}

static tare_status write_thread(struct scope *c, uint32_t i)
{
    const struct event_source *src = c->in->source;
    const struct trace_thread *t = source_thread(src, i);
    if (t->events == 0) return c->s->status;
    struct buf name = BUF_INIT;
    export_thread_label(&name, src, t);
    if (name.failed) out(c)->failed = 1;
    begin_profile(c, "evented", name.data);
    buf_release(&name);
    buf_add_str(out(c), ",\"events\":[");
    c->open = false;
    c->last_ns = 0;
    tare_status status = source_events(src, i, write_event, c, c->s->err);
    buf_printf(out(c), "],\"endValue\":%" PRIu64 "}", c->last_ns);
    return status < 0 ? status : stream_poll(c->s);
}

static tare_status write_threads(struct scope *c)
{
    tare_status status = TARE_OK;
    for (uint32_t i = 0; i < c->in->source->n_threads && status == TARE_OK; i++) status = write_thread(c, i);
    if (status < 0 || c->any) return status;
    begin_profile(c, "evented", "no scopes were recorded");
    buf_add_str(out(c), ",\"events\":[],\"endValue\":0}");
    return stream_poll(c->s);
}

/* ---- the tree ---- */

static uint64_t weight_of(const struct scope *c, const struct call_node *n)
{
    double ns = round(c->in->gross ? n->gross_self_ns : n->self_ns.value);
    return n->kind == TARE_SITE_SCOPE && ns >= 1 && ns < 9e15 ? (uint64_t)ns : 0;
}

static void write_sample(struct scope *c, const struct call_node *n)
{
    if (!weight_of(c, n)) return;
    buf_add_str(out(c), c->open ? ",\n[" : "\n[");
    c->open = true;
    for (size_t d = 0; d < c->path.n; d++) {
        if (d) buf_add_char(out(c), ',');
        stream_add_uint(c->s, c->path.items[d]);
        stream_poll(c->s);
    }
    buf_add_char(out(c), ']');
}

static tare_status write_samples(struct scope *c)
{
    const struct calltree *tree = c->in->tree;
    uint32_t depth = 0;
    for (uint32_t i = 0; (i = calltree_next(tree, i, &depth)) && c->s->status == TARE_OK;) {
        if (vec_reserve(&c->path, depth, c->s->err) != TARE_OK || !c->path.items) return TARE_NOMEM;
        c->path.n = depth;
        c->path.items[depth - 1] = tree->nodes[i].site;
        write_sample(c, &tree->nodes[i]);
    }
    return c->s->status;
}

/* The weights in the order of the samples, which is the order of the walk. Returns their sum. */
static uint64_t write_weights(struct scope *c)
{
    uint64_t sum = 0, n = 0;
    uint32_t depth = 0;
    for (uint32_t i = 0; (i = calltree_next(c->in->tree, i, &depth));) {
        uint64_t w = weight_of(c, &c->in->tree->nodes[i]);
        if (!w) continue;
        if (n++) buf_add_char(out(c), ',');
        stream_add_uint(c->s, w);
        stream_poll(c->s);
        sum += w;
    }
    return sum;
}

static tare_status write_tree(struct scope *c)
{
    begin_profile(c, "sampled",
                  c->in->gross ? "all threads, time as read" : "all threads, net of the instrument");
    buf_add_str(out(c), ",\"samples\":[");
    c->open = false;
    tare_status status = write_samples(c);
    if (status < 0) return status;
    buf_add_str(out(c), "],\n\"weights\":[");
    uint64_t sum = write_weights(c);
    buf_printf(out(c), "],\"endValue\":%" PRIu64 "}", sum);
    return stream_poll(c->s);
}

static tare_status speedscope_write(struct stream *s, const struct export_input *in)
{
    struct scope c = {.s = s, .in = in, .path = VEC_INIT};
    write_head(&c);
    tare_status status = in->source->has_events ? write_threads(&c) : write_tree(&c);
    buf_add_str(&s->out, "\n]}\n");
    vec_release(&c.path);
    return stream_end(s, status);
}

const struct export_format export_speedscope = {
    .name = "speedscope",
    .extension = ".speedscope.json",
    .help = "a flame chart per thread, for speedscope",
    .flags = EXPORT_TREE_IF_NO_EVENTS,
    .write = speedscope_write,
};
