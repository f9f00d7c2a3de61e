/* SPDX-License-Identifier: MIT
 * speedscope.c - the speedscope file format: one evented profile per thread, or, from a trace without
 * events, one sampled profile of the tree's self times. Counters and marks have no place in it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "report/export/export.h"
#include "report/text.h"

struct scope {
    struct stream *s;
    const struct export_input *in;
    bool any;         /* a profile was written */
    bool open;        /* the profile of this thread has begun */
    uint64_t last_ns; /* its latest event */
    uint32_t *path;   /* sampled: the frames down to this node */
    size_t cap, depth;
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
    const struct event_source *src = c->in->source;
    const char *name = src->n_processes ? source_process(src, 0)->command : src->path;
    buf_add_str(out(c), "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":");
    text_json(out(c), name, text_clip(name, TEXT_NAME_MAX));
    buf_add_str(out(c), ",\"exporter\":\"tare " TARE_VERSION "\",\"activeProfileIndex\":0,\n");
    write_frames(c);
    buf_add_str(out(c), "\n\"profiles\":[");
}

static void begin_profile(struct scope *c, const char *type, const struct buf *name)
{
    if (name->failed) out(c)->failed = 1;
    buf_printf(out(c),
               "%s\n{\"type\":\"%s\",\"unit\":\"nanoseconds\",\"startValue\":0,\"name\":", c->any ? "," : "",
               type);
    text_json(out(c), name->data, name->len);
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
    export_thread_name(&name, t);
    buf_printf(&name, " (%" PRIu32 "/%" PRIu32 ")", source_process(src, t->process)->pid, t->tid);
    begin_profile(c, "evented", &name);
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
    struct buf name = BUF_INIT;
    buf_add_str(&name, "no scopes were recorded");
    begin_profile(c, "evented", &name);
    buf_release(&name);
    buf_add_str(out(c), ",\"events\":[],\"endValue\":0}");
    return stream_poll(c->s);
}

/* ---- the tree ---- */

static uint64_t weight_of(const struct scope *c, const struct call_node *n)
{
    double ns = round(c->in->gross ? n->gross_self_ns : n->self_ns.value);
    return n->kind == TARE_SITE_SCOPE && ns >= 1 && ns < 9e15 ? (uint64_t)ns : 0;
}

static int push(struct scope *c, uint32_t site)
{
    if (c->depth == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 64;
        uint32_t *path = mem_resize(c->path, cap, sizeof *path);
        if (!path) return -1;
        c->path = path;
        c->cap = cap;
    }
    c->path[c->depth++] = site;
    return 0;
}

static void write_sample(struct scope *c, const struct call_node *n)
{
    if (!weight_of(c, n)) return;
    buf_add_str(out(c), c->open ? ",\n[" : "\n[");
    c->open = true;
    for (size_t d = 0; d < c->depth; d++) {
        if (d) buf_add_char(out(c), ',');
        stream_add_uint(c->s, c->path[d]);
        stream_poll(c->s);
    }
    buf_add_char(out(c), ']');
}

static tare_status write_samples(struct scope *c)
{
    const struct call_node *nodes = c->in->tree->nodes;
    uint32_t i = c->in->tree->n_nodes ? nodes[0].child : 0;
    while (i && c->s->status == TARE_OK) {
        if (push(c, nodes[i].site) < 0) return error_nomem(c->s->err, "speedscope samples");
        write_sample(c, &nodes[i]);
        if (nodes[i].child) {
            i = nodes[i].child;
            continue;
        }
        c->depth--;
        while (i && !nodes[i].next) {
            i = nodes[i].parent;
            if (i) c->depth--;
        }
        if (i) i = nodes[i].next;
    }
    return c->s->status;
}

/* The weights in the order of the samples, which is the order of the walk. */
static uint64_t write_weights(struct scope *c)
{
    const struct call_node *nodes = c->in->tree->nodes;
    uint32_t i = c->in->tree->n_nodes ? nodes[0].child : 0;
    uint64_t sum = 0, n = 0;
    while (i) {
        uint64_t w = weight_of(c, &nodes[i]);
        if (w) {
            if (n++) buf_add_char(out(c), ',');
            stream_add_uint(c->s, w);
            stream_poll(c->s);
            sum += w;
        }
        if (nodes[i].child) {
            i = nodes[i].child;
            continue;
        }
        while (i && !nodes[i].next) i = nodes[i].parent;
        if (i) i = nodes[i].next;
    }
    return sum;
}

static tare_status write_tree(struct scope *c)
{
    struct buf name = BUF_INIT;
    buf_add_str(&name, c->in->gross ? "all threads, time as read" : "all threads, net of the instrument");
    begin_profile(c, "sampled", &name);
    buf_release(&name);
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
    struct scope c = {.s = s, .in = in};
    write_head(&c);
    tare_status status = in->source->has_events ? write_threads(&c) : write_tree(&c);
    buf_add_str(&s->out, "\n]}\n");
    mem_free(c.path);
    if (status < 0 && s->status == TARE_OK) s->status = status;
    return stream_poll(s);
}

const struct export_format export_speedscope = {
    .name = "speedscope",
    .extension = ".speedscope.json",
    .help = "a flame chart per thread, for speedscope",
    .flags = EXPORT_TREE_IF_NO_EVENTS,
    .write = speedscope_write,
};
