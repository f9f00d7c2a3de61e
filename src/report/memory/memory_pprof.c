/* SPDX-License-Identifier: MIT
 * memory_pprof.c - a heap profile in the format of pprof (profile.proto), not compressed, which pprof reads too. Each
 * process is a label of its samples. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/map.h"
#include "core/wire.h"
#include "report/memory/memory_export.h"
#include "report/text.h"

/* Fields of profile.proto. */
enum {
    SAMPLE_TYPE = 1,
    SAMPLE = 2,
    LOCATION = 4,
    FUNCTION = 5,
    STRINGS = 6,
    TIME = 9,
    DURATION = 10,
    DEFAULT_TYPE = 14
};

static const struct {
    const char *type, *unit;
    int weight; /* -1: how many allocations */
} types[] = {
    {"peak_space", "bytes", MEMORY_WEIGHT_PEAK},
    {"inuse_space", "bytes", MEMORY_WEIGHT_END},
    {"alloc_objects", "count", -1},
    {"alloc_space", "bytes", MEMORY_WEIGHT_ALLOCATED},
    {"churn_space", "bytes", MEMORY_WEIGHT_CHURN},
};
enum { TYPES = sizeof types / sizeof *types };

struct pprof {
    struct stream *s;
    struct map_str strings; /* in the order of their numbers, from 1 */
    struct buf inner, values;
    uint64_t frames; /* locations, and functions, so far */
    tare_status status;
};

static uint64_t string(struct pprof *p, const char *text, size_t n)
{
    uint64_t *number = NULL;
    size_t before = p->strings.n;
    if (p->status == TARE_OK) p->status = map_str_ref(&p->strings, text, n, &number, p->s->err);
    if (p->status != TARE_OK) return 0;
    if (p->strings.n > before) *number = p->strings.n;
    return *number;
}

static uint64_t name_of(struct pprof *p, const char *text)
{
    struct buf clean = BUF_INIT;
    text_name(&clean, text, TEXT_NAME_MAX);
    uint64_t number = clean.len ? string(p, clean.data, clean.len) : 0;
    if (clean.failed && p->status == TARE_OK) p->status = buf_status(&clean, p->s->err);
    buf_release(&clean);
    return number;
}

static void write_types(struct pprof *p)
{
    for (int i = 0; i < TYPES; i++) {
        wire_add_uint(&p->inner, 1, name_of(p, types[i].type));
        wire_add_uint(&p->inner, 2, name_of(p, types[i].unit));
        wire_add_message(&p->s->out, SAMPLE_TYPE, &p->inner);
    }
    wire_add_uint(&p->s->out, DEFAULT_TYPE, name_of(p, types[0].type));
}

/* A frame is a function and a place in it. */
static void write_frame(struct pprof *p, const struct memory_tree_frame *f)
{
    uint64_t id = ++p->frames;
    wire_add_uint(&p->inner, 1, id);
    wire_add_uint(&p->inner, 2, name_of(p, f->name));
    if (f->file) wire_add_uint(&p->inner, 4, name_of(p, f->file));
    wire_add_message(&p->s->out, FUNCTION, &p->inner);
    wire_add_uint(&p->values, 1, id);
    if (f->line) wire_add_uint(&p->values, 2, f->line);
    wire_add_uint(&p->inner, 1, id);
    wire_add_message(&p->inner, 4, &p->values);
    wire_add_message(&p->s->out, LOCATION, &p->inner);
}

static uint64_t value_of(const struct memory_tree_node *n, int type)
{
    double v = types[type].weight < 0 ? n->allocations : n->self[types[type].weight].sum;
    return v >= 0.5 && v < 9e15 ? (uint64_t)llround(v) : 0;
}

static void write_sample(struct pprof *p, const struct memory_tree *t, size_t node, uint64_t first)
{
    uint64_t any = 0;
    for (int i = 0; i < TYPES; i++) any |= value_of(&t->nodes[node], i);
    if (!any) return;
    for (int64_t i = (int64_t)node; i >= 0; i = t->nodes[i].parent)
        wire_add_varint(&p->values, first + t->nodes[i].frame + 1); /* the innermost first */
    wire_add_message(&p->inner, 1, &p->values);
    for (int i = 0; i < TYPES; i++) wire_add_varint(&p->values, value_of(&t->nodes[node], i));
    wire_add_message(&p->inner, 2, &p->values);
}

static void label_pid(struct pprof *p, uint32_t pid)
{
    wire_add_uint(&p->values, 1, name_of(p, "pid"));
    wire_add_uint(&p->values, 3, pid);
    wire_add_message(&p->inner, 3, &p->values);
}

static tare_status write_process(struct pprof *p, const struct memory_process *of, struct arena *a)
{
    struct memory_tree t;
    uint64_t first = p->frames;
    tare_status s = memory_tree(of, a, &t, p->s->err);
    for (size_t i = 0; s == TARE_OK && i < t.n_frames; i++) {
        write_frame(p, &t.frames[i]);
        s = p->status != TARE_OK ? p->status : stream_poll(p->s);
    }
    for (size_t i = 0; s == TARE_OK && i < t.n_nodes; i++) {
        write_sample(p, &t, i, first);
        if (!p->inner.len) continue;
        label_pid(p, of->pid);
        wire_add_message(&p->s->out, SAMPLE, &p->inner);
        s = p->status != TARE_OK ? p->status : stream_poll(p->s);
    }
    return s;
}

/* All texts are known at the end; the first must be empty. */
static void write_strings(struct pprof *p)
{
    wire_add_str(&p->s->out, STRINGS, "");
    for (size_t i = 0; i < p->strings.n && stream_poll(p->s) == TARE_OK; i++)
        wire_add_str(&p->s->out, STRINGS, p->strings.entries[i].key);
}

tare_status memory_write_pprof(struct stream *s, const struct memory_export *e)
{
    struct pprof p = {.s = s, .strings = MAP_STR_INIT, .inner = BUF_INIT, .values = BUF_INIT};
    uint64_t longest = 0;
    write_types(&p);
    tare_status status = p.status;
    for (size_t i = 0; i < e->profile->n && status == TARE_OK; i++) {
        const struct memory_process *of = &e->profile->processes[i];
        if (of->to_ns - of->from_ns > longest) longest = of->to_ns - of->from_ns;
        status = write_process(&p, of, &e->profile->arena);
    }
    wire_add_uint(&s->out, TIME, e->start_unix_ns);
    wire_add_uint(&s->out, DURATION, longest);
    if (status == TARE_OK) write_strings(&p);
    if (status == TARE_OK && (p.inner.failed || p.values.failed))
        status = error_nomem(s->err, "a heap profile");
    map_str_release(&p.strings);
    buf_release(&p.inner);
    buf_release(&p.values);
    return stream_end(s, status);
}
