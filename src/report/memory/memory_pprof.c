/* SPDX-License-Identifier: MIT
 * memory_pprof.c - who allocated as a heap profile of pprof. Each process is a label of its samples. */
#include <math.h>

#include "report/export/pprof.h"
#include "report/memory/memory_export.h"

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

static uint64_t value_of(const struct memory_tree_node *n, int type)
{
    double v = types[type].weight < 0 ? n->allocations : n->self[types[type].weight].sum;
    return v >= 0.5 && v < 9e15 ? (uint64_t)llround(v) : 0;
}

static tare_status write_sample(struct pprof *p, const struct memory_tree *t, size_t node, uint64_t first,
                                uint32_t pid)
{
    uint64_t any = 0;
    for (int i = 0; i < TYPES; i++) any |= value_of(&t->nodes[node], i);
    if (!any) return TARE_OK;
    for (int64_t i = (int64_t)node; i >= 0; i = t->nodes[i].parent)
        pprof_at(p, first + t->nodes[i].frame + 1);
    for (int i = 0; i < TYPES; i++) pprof_value(p, value_of(&t->nodes[node], i));
    pprof_label(p, "pid", pid);
    return pprof_sample(p);
}

static tare_status write_process(struct pprof *p, const struct memory_process *of, struct arena *a)
{
    struct memory_tree t;
    uint64_t first = p->frames;
    tare_status s = memory_tree(of, a, &t, p->s->err);
    for (size_t i = 0; s == TARE_OK && i < t.n_frames; i++) {
        const struct memory_tree_frame *f = &t.frames[i];
        pprof_frame(p, &(struct pprof_frame){f->name, f->file, f->line, 0});
        s = p->status != TARE_OK ? p->status : p->s->status;
    }
    for (size_t i = 0; s == TARE_OK && i < t.n_nodes; i++) s = write_sample(p, &t, i, first, of->pid);
    return s;
}

tare_status memory_write_pprof(struct stream *s, const struct memory_export *e)
{
    struct pprof p;
    uint64_t longest = 0;
    pprof_begin(&p, s);
    for (int i = 0; i < TYPES; i++) pprof_type(&p, types[i].type, types[i].unit);
    pprof_show_first(&p, types[0].type);
    for (size_t i = 0; i < e->profile->n && p.status == TARE_OK; i++) {
        const struct memory_process *of = &e->profile->processes[i];
        if (of->to_ns - of->from_ns > longest) longest = of->to_ns - of->from_ns;
        p.status = write_process(&p, of, &e->profile->arena);
    }
    return stream_end(s, pprof_end(&p, e->start_unix_ns, longest));
}
