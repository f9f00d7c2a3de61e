/* SPDX-License-Identifier: MIT
 * kineto_host.c - what threads did: operators, modules, Python frames, annotations and CUDA calls come in the order in
 * which Kineto collected them, not of time, and there may be more than memory holds. They are sorted by thread and
 * begin; then one walk per thread, with a stack of what is open, gives scopes, ranges and, for each call, the innermost
 * range around it: the join of a kernel to its operator. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "import/kineto.h"

enum {
    BLOCK = 256 << 10,          /* items in memory: 12 MB */
    NAME_BYTES_MOST = 64 << 20, /* of names that are told apart */
    DEPTH_MOST = 1 << 14,
    PATH_MOST = 500, /* of a module, from the outermost */
    THREADS_MOST = 1 << 16
};

struct item {
    int64_t start, end;
    uint32_t thread, name; /* indices */
    uint32_t id;           /* correlation of a call; sequence number + 1 of an operator; 0: none */
    uint32_t kind;
    uint64_t order; /* in the file: what has equal times comes outermost first */
};

struct host_thread {
    uint32_t tid;
    const char *name;
};

struct open_range {
    uint64_t end;
    uint32_t range;
    uint32_t path; /* module: bytes of `path` before it was added */
    bool module;
};

struct kineto_host {
    const char *file; /* for errors; borrowed */
    struct spill_sort *sort;
    struct arena arena;
    struct map_str names; /* -> index + 1 */
    VEC(const char *) texts;
    size_t name_bytes;
    struct map_u64 thread_numbers; /* tid -> index + 1 */
    VEC(struct host_thread) threads;
    uint64_t items;
    /* writing */
    VEC(struct open_range) open;
    struct buf path;
    uint32_t ranges;
};

static int by_time(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    bool x_call = x->kind == KINETO_CALL, y_call = y->kind == KINETO_CALL;
    if (x_call != y_call) return y_call ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

tare_status kineto_host_new(struct kineto_host **out, const char *file, const char *folder, tare_error *err)
{
    struct kineto_host *h = mem_new(1, sizeof *h);
    if (!h) return error_nomem(err, "events of the host");
    h->file = file;
    h->arena = (struct arena)ARENA_INIT;
    h->path = (struct buf)BUF_INIT;
    struct spill_options o = {sizeof(struct item), BLOCK, by_time, folder};
    tare_status s = spill_sort_new(&h->sort, &o, err);
    if (s < 0)
        kineto_host_free(h);
    else
        *out = h;
    return s;
}

void kineto_host_free(struct kineto_host *h)
{
    if (!h) return;
    spill_sort_free(h->sort);
    arena_release(&h->arena);
    map_str_release(&h->names);
    map_u64_release(&h->thread_numbers);
    vec_release(&h->texts);
    vec_release(&h->threads);
    vec_release(&h->open);
    buf_release(&h->path);
    mem_free(h);
}

/* ---- gathering ---- */

/* Beyond what memory is meant to hold, new names are one. */
static tare_status name_index(struct kineto_host *h, const struct buf *name, uint32_t *out,
                              struct kineto_counts *counts, tare_error *err)
{
    static const char other[] = "(other names)";
    const char *text = name->data;
    size_t n = name->len;
    uint64_t *at = map_str_find(&h->names, text, n);
    if (!at && h->name_bytes > NAME_BYTES_MOST) {
        counts->renamed++;
        text = other;
        n = sizeof other - 1;
    }
    tare_status s = at ? TARE_OK : map_str_ref(&h->names, text, n, &at, err);
    if (s == TARE_OK && !*at) {
        h->name_bytes += n + 96; /* what the maps need beside the text */
        s = vec_push(&h->texts, map_str_find_key(&h->names, text, n), err);
        if (s == TARE_OK) *at = h->texts.n;
    }
    if (s == TARE_OK) *out = (uint32_t)*at - 1;
    return s;
}

static tare_status thread_index(struct kineto_host *h, int64_t tid, uint32_t *out, tare_error *err)
{
    uint64_t *at;
    if (h->threads.n >= THREADS_MOST && !map_u64_find(&h->thread_numbers, (uint64_t)tid))
        return error_set(err, TARE_FORMAT, "%s: events of more than %d threads", h->file, THREADS_MOST);
    tare_status s = map_u64_ref(&h->thread_numbers, (uint64_t)tid, &at, err);
    if (s == TARE_OK && !*at) {
        s = vec_push(&h->threads, ((struct host_thread){(uint32_t)tid, ""}), err);
        if (s == TARE_OK) *at = h->threads.n;
    }
    if (s == TARE_OK) *out = (uint32_t)*at - 1;
    return s;
}

tare_status kineto_host_thread(struct kineto_host *h, int64_t tid, const char *name, tare_error *err)
{
    uint32_t at = 0;
    tare_status s = thread_index(h, tid, &at, err);
    if (s < 0 || h->threads.items[at].name[0]) return s; /* a file may tell it often */
    h->threads.items[at].name = arena_str_n(&h->arena, name, strnlen(name, 200));
    return h->threads.items[at].name ? TARE_OK : error_nomem(err, "names of threads");
}

tare_status kineto_host_add(struct kineto_host *h, const struct kineto_event *e, struct kineto_counts *counts,
                            tare_error *err)
{
    struct item i = {.start = e->ts, .end = e->ts + e->dur, .kind = e->kind, .order = h->items++};
    tare_status s = name_index(h, &e->name, &i.name, counts, err);
    if (s == TARE_OK) s = thread_index(h, e->tid, &i.thread, err);
    if (e->kind == KINETO_CALL && e->correlation > 0) i.id = (uint32_t)e->correlation;
    bool numbered = e->kind == KINETO_OPERATOR && e->sequence >= 0 && e->sequence < UINT32_MAX - 1;
    if (numbered) i.id = (uint32_t)e->sequence + 1;
    return s == TARE_OK ? spill_sort_add(h->sort, &i, err) : s;
}

/* ---- writing ---- */

static uint64_t domain_of(struct trace_out *to, uint32_t kind)
{
    const char *word = NULL;
    if (kind == KINETO_OPERATOR) word = GPU_DOMAIN_OP;
    if (kind == KINETO_MODULE) word = GPU_DOMAIN_MODULE;
    if (kind == KINETO_FRAME) word = GPU_DOMAIN_PYTHON;
    return word ? trace_out_name(to, word, strlen(word)) : 0;
}

static void close_innermost(struct kineto_host *h, struct trace_out *to)
{
    struct open_range last = vec_pop(&h->open);
    struct gpu_record r = {.kind = GPU_RANGE_END};
    r.RANGE_END.at = last.end;
    r.RANGE_END.range = last.range;
    trace_out_put(to, &r);
    trace_out_end(to, last.end);
    if (!last.module) return;
    h->path.len = last.path;
    h->path.data[last.path] = 0;
}

static void close_until(struct kineto_host *h, struct trace_out *to, uint64_t at)
{
    while (h->open.n && vec_last(&h->open)->end <= at) close_innermost(h, to);
}

/* "Net_0.Block_1.Linear_0": what is within a module is called by all that it is in. */
static void add_to_path(struct kineto_host *h, const char *name)
{
    if (h->path.len + strlen(name) > PATH_MOST) return;
    buf_printf(&h->path, "%s%s", h->path.len ? "." : "", name);
}

static void put_sequence(struct trace_out *to, uint32_t range, uint32_t sequence)
{
    struct gpu_record r = {.kind = GPU_RANGE_SEQUENCE};
    r.RANGE_SEQUENCE.range = range;
    r.RANGE_SEQUENCE.sequence = sequence;
    trace_out_put(to, &r);
}

static tare_status open_range(struct kineto_host *h, struct trace_out *to, const struct item *i,
                              tare_error *err)
{
    struct open_range o = {.end = (uint64_t)i->end + KINETO_OFFSET,
                           .range = ++h->ranges,
                           .path = (uint32_t)h->path.len,
                           .module = i->kind == KINETO_MODULE};
    struct gpu_record r = {.kind = GPU_RANGE_BEGIN};
    const char *name = h->texts.items[i->name];
    if (o.module) {
        add_to_path(h, name);
        if (h->path.failed) return error_nomem(err, "names of modules");
        name = h->path.data;
    }
    r.RANGE_BEGIN.at = (uint64_t)i->start + KINETO_OFFSET;
    r.RANGE_BEGIN.thread = h->threads.items[i->thread].tid;
    r.RANGE_BEGIN.range = o.range;
    r.RANGE_BEGIN.name = trace_out_name(to, name, strlen(name));
    r.RANGE_BEGIN.domain = domain_of(to, i->kind);
    trace_out_put(to, &r);
    trace_out_begin(to, r.RANGE_BEGIN.at, h->texts.items[i->name]);
    if (i->id) put_sequence(to, o.range, i->id - 1);
    return vec_push(&h->open, o, err);
}

static void put_call(struct kineto_host *h, struct trace_out *to, const struct item *i)
{
    const char *name = h->texts.items[i->name];
    struct gpu_record r = {.kind = GPU_CALL};
    r.CALL.start = (uint64_t)i->start + KINETO_OFFSET;
    r.CALL.duration = (uint64_t)(i->end - i->start);
    r.CALL.thread = h->threads.items[i->thread].tid;
    r.CALL.name = trace_out_name(to, name, strlen(name));
    r.CALL.id = i->id;
    trace_out_put(to, &r);
    if (!h->open.n || !i->id) return;
    r = (struct gpu_record){.kind = GPU_IN_RANGE};
    r.IN_RANGE.id = i->id;
    r.IN_RANGE.range = vec_last(&h->open)->range;
    trace_out_put(to, &r);
}

tare_status kineto_host_write(struct kineto_host *h, struct trace_out *to, struct kineto_counts *counts,
                              tare_error *err)
{
    struct item i;
    bool any = true;
    uint32_t thread = UINT32_MAX;
    tare_status s = spill_sort_next(h->sort, &i, &any, err);
    for (; s == TARE_OK && any && to->status == TARE_OK; s = spill_sort_next(h->sort, &i, &any, err)) {
        if (i.thread != thread) {
            close_until(h, to, UINT64_MAX);
            trace_out_thread(to, h->threads.items[i.thread].tid, h->threads.items[i.thread].name);
            thread = i.thread;
        }
        close_until(h, to, (uint64_t)i.start + KINETO_OFFSET);
        if (i.kind == KINETO_CALL)
            put_call(h, to, &i);
        else if (h->open.n < DEPTH_MOST)
            s = open_range(h, to, &i, err);
        else
            counts->too_deep++;
        if (s < 0) return s;
    }
    close_until(h, to, UINT64_MAX);
    return s < 0 ? s : to->status;
}
