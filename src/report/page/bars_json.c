/* SPDX-License-Identifier: MIT
 * bars_json.c - see bars_json.h. Columns are packed texts of differences, so that a kernel takes about ten bytes. */
#include "report/page/bars_json.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/gpu/gpu_sum.h"
#include "core/json.h"
#include "core/mem.h"
#include "report/export/export.h"
#include "report/pack_text.h"
#include "report/page/page_bars.h"
#include "report/trace/joined.h"
#include "report/text.h"
#include "trace/gpu.h"

enum { STEPS_MOST = 2000 };

struct writer {
    struct stream *s;
    struct json json;
    const struct event_source *source;
    const struct page_bars *bars;
    uint64_t *last; /* by name: the latest `more` in this lane */
};

static void put_text(struct json *j, const char *text)
{
    if (text)
        json_put_string_n(j, text, text_clip(text, TEXT_NAME_MAX));
    else
        json_put_null(j);
}

/* ---- names and shapes ---- */

static const char *const kind_names[] = {
#define X(name, text) text,
    PAGE_BAR_KINDS(X)
#undef X
};

enum name_column { NAME_TEXT, NAME_KIND, NAME_FULL, NAME_GROUP, NAME_FILE, NAME_LINE, NAME_COLUMNS };
static const char *const name_keys[NAME_COLUMNS] = {"text", "kind", "full", "group", "file", "line"};

static void put_name(struct json *j, enum name_column column, const struct page_name *n)
{
    switch (column) {
    case NAME_TEXT: put_text(j, n->text); break;
    case NAME_KIND: json_put_string(j, kind_names[n->kind]); break;
    case NAME_FULL: put_text(j, n->full); break;
    case NAME_GROUP: put_text(j, n->group); break;
    case NAME_FILE: put_text(j, n->file); break;
    default:
        if (n->line)
            json_put_uint(j, n->line);
        else
            json_put_null(j);
        break;
    }
}

static void kv_names(struct writer *w)
{
    json_key(&w->json, "names");
    json_object_begin(&w->json);
    for (enum name_column c = 0; c < NAME_COLUMNS; c++) {
        json_key(&w->json, name_keys[c]);
        json_array_begin(&w->json);
        for (size_t i = 0; i < w->bars->names.n && stream_poll(w->s) == TARE_OK; i++)
            put_name(&w->json, c, &w->bars->names.items[i]);
        json_array_end(&w->json);
    }
    json_object_end(&w->json);
}

/* Grid, block, registers, shared memory (static, dynamic), local memory: as in gpu_records.def, after the number. */
static void kv_shapes(struct writer *w)
{
    enum { FIELDS = 10 };
    json_key(&w->json, "shapes");
    pack_begin(w->s, &w->json);
    for (size_t i = 0; i < w->bars->shapes.n && stream_poll(w->s) == TARE_OK; i++)
        for (int f = 1; f <= FIELDS; f++)
            pack_add(w->s, (int64_t)(w->bars->shapes.items[i].v[f] & INT32_MAX));
    pack_end(w->s);
}

/* ---- lanes ---- */

struct column {
    const struct page_lane *lane;
    uint64_t start, from; /* of the bar before */
};

typedef int64_t column_fn(struct writer *w, struct column *c, const struct page_bar *b);

static int64_t get_start(struct writer *w, struct column *c, const struct page_bar *b)
{
    int64_t since = (int64_t)(b->start - c->start);
    (void)w;
    c->start = b->start;
    return since;
}

static int64_t get_length(struct writer *w, struct column *c, const struct page_bar *b)
{
    (void)w, (void)c;
    return (int64_t)b->length;
}

static int64_t get_name(struct writer *w, struct column *c, const struct page_bar *b)
{
    (void)w, (void)c;
    return b->name;
}

static int64_t get_depth(struct writer *w, struct column *c, const struct page_bar *b)
{
    (void)w, (void)c;
    return b->depth;
}

/* A difference to the bar of the same name before, which mostly has the same. */
static int64_t get_more(struct writer *w, struct column *c, const struct page_bar *b)
{
    uint64_t more = b->more & INT64_MAX / 4;
    int64_t change = (int64_t)(more - w->last[b->name]);
    (void)c;
    w->last[b->name] = more;
    return change;
}

/* The number of the bar that is the call, as a difference to that of the bar before that has one. */
static int64_t get_call(struct writer *w, struct column *c, const struct page_bar *b)
{
    const uint64_t *at = b->flow ? map_u64_find(&w->bars->calls, b->flow) : NULL;
    if (!at) return PACK_UNKNOWN;
    int64_t change = (int64_t)(*at - 1 - c->from);
    c->from = *at - 1;
    return change;
}

static void kv_column(struct writer *w, const struct page_lane *lane, const char *key, column_fn *get)
{
    struct column c = {.lane = lane};
    json_key(&w->json, key);
    pack_begin(w->s, &w->json);
    for (size_t i = 0; i < lane->bars.n && stream_poll(w->s) == TARE_OK; i++)
        pack_add(w->s, get(w, &c, &lane->bars.items[i]));
    pack_end(w->s);
}

static const char *thread_name(const struct event_source *src, uint32_t pid, uint32_t tid)
{
    for (uint32_t i = 0; i < src->n_threads; i++) {
        const struct trace_thread *t = source_thread(src, i);
        if (t->tid == tid && source_process(src, t->process)->pid == pid && *t->name) return t->name;
    }
    return NULL;
}

static void put_lane(struct writer *w, const struct page_lane *lane)
{
    static const char *const kinds[] = {[PAGE_STREAM] = "stream",
                                        [PAGE_CALLS] = "calls",
                                        [PAGE_RANGES] = "ranges",
                                        [PAGE_SCOPES] = "scopes",
                                        [PAGE_TASKS] = "tasks"};
    uint32_t pid = source_process(w->source, lane->process)->pid;
    json_object_begin(&w->json);
    json_kv_string(&w->json, "kind", kinds[lane->kind]);
    json_kv_uint(&w->json, "pid", pid);
    if (lane->kind != PAGE_STREAM) {
        json_kv_uint(&w->json, "thread", lane->thread);
        json_key(&w->json, "thread_name");
        put_text(&w->json, thread_name(w->source, pid, lane->thread));
    }
    json_key(&w->json, "name");
    put_text(&w->json, lane->name);
    json_kv_uint(&w->json, "n", lane->bars.n);
    kv_column(w, lane, "start", get_start);
    kv_column(w, lane, "length", get_length);
    kv_column(w, lane, "what", get_name);
    if (lane->kind == PAGE_STREAM) kv_column(w, lane, "call", get_call);
    if (lane->kind == PAGE_TASKS) kv_column(w, lane, "depth", get_depth);
    if (lane->kind == PAGE_STREAM || lane->kind == PAGE_SCOPES || lane->kind == PAGE_TASKS) {
        memset(w->last, 0, w->bars->names.n * sizeof *w->last);
        kv_column(w, lane, "more", get_more);
    }
    json_object_end(&w->json);
}

static void kv_processes(struct writer *w)
{
    json_key(&w->json, "processes");
    json_array_begin(&w->json);
    for (uint32_t i = 0; i < w->source->n_processes && stream_poll(w->s) == TARE_OK; i++) {
        json_object_begin(&w->json);
        json_kv_uint(&w->json, "pid", source_process(w->source, i)->pid);
        json_key(&w->json, "command");
        put_text(&w->json, source_process(w->source, i)->command);
        json_object_end(&w->json);
    }
    json_array_end(&w->json);
}

static tare_status kv_bars(struct writer *w)
{
    const struct page_bars *b = w->bars;
    w->last = mem_new(b->names.n + 1, sizeof *w->last);
    if (!w->last) return error_nomem(w->s->err, "%zu names", b->names.n);
    json_kv_uint(&w->json, "seen", b->seen);
    json_kv_uint(&w->json, "shown", b->kept);
    json_kv_uint(&w->json, "end_ns", b->end);
    kv_processes(w);
    kv_names(w);
    kv_shapes(w);
    json_key(&w->json, "lanes");
    json_array_begin(&w->json);
    for (size_t i = 0; i < b->lanes.n && stream_poll(w->s) == TARE_OK; i++)
        if (b->lanes.items[i].bars.n) put_lane(w, &b->lanes.items[i]);
    json_array_end(&w->json);
    mem_free(w->last);
    return w->s->status;
}

/* ---- GPUs ---- */

/* Evenly taken where there are too many; the first and the last are among them. */
static size_t taken(size_t i, size_t n, size_t most)
{
    return n <= most ? i : (size_t)((double)i * (double)(n - 1) / (double)(most - 1) + 0.5);
}

static void kv_step_column(struct writer *w, const struct gpu_course *c, const char *key, int which)
{
    size_t n = c->steps.n < STEPS_MOST ? c->steps.n : STEPS_MOST;
    uint64_t before = 0;
    json_key(&w->json, key);
    pack_begin(w->s, &w->json);
    for (size_t i = 0; i < n; i++) {
        const struct gpu_step *step = &c->steps.items[taken(i, c->steps.n, STEPS_MOST)];
        const uint64_t values[] = {step->start - before, step->end - step->start, step->busy};
        pack_add(w->s, (int64_t)(which < 3 ? values[which] : step->idle[which - 3]));
        before = step->start;
    }
    pack_end(w->s);
}

static bool waits_for(const struct gpu_course *c, int cause)
{
    for (size_t i = 0; i < c->steps.n; i++)
        if (c->steps.items[i].idle[cause]) return true;
    return false;
}

static void kv_steps(struct writer *w, const struct gpu_course *c)
{
    json_key(&w->json, "steps");
    json_object_begin(&w->json);
    json_kv_uint(&w->json, "n", c->steps.n);
    kv_step_column(w, c, "start", 0);
    kv_step_column(w, c, "length", 1);
    kv_step_column(w, c, "busy", 2);
    json_key(&w->json, "idle");
    json_object_begin(&w->json);
    for (int cause = 0; cause < GPU_CAUSES; cause++)
        if (waits_for(c, cause)) kv_step_column(w, c, gpu_cause_name((unsigned)cause), 3 + cause);
    json_object_end(&w->json);
    json_object_end(&w->json);
}

static void put_course(struct writer *w, const struct gpu_course *c)
{
    json_object_begin(&w->json);
    json_kv_uint(&w->json, "number", c->number);
    json_kv_uint(&w->json, "pid", c->pid);
    if (c->steps.n && !c->doubt) kv_steps(w, c);
    json_object_end(&w->json);
    stream_poll(w->s);
}

/* The document about GPUs; and the source, where there are ranks. */
static tare_status kv_gpu(struct writer *w, struct trace *const *traces, size_t n, struct joined *ranks)
{
    struct gpu_profile p;
    struct gpu_courses courses = {.cards = VEC_INIT};
    if (!w->source->has_gpu) return TARE_OK;
    tare_status s = gpu_sum_over_time(traces, n, &p, &courses, w->s->err);
    if (s != TARE_OK) return s;
    if (courses.ranks.n || n > 1)
        s = joined_open(ranks, &(struct joined_of){traces, n, &p.job, &courses}, w->s->err);
    if (s == TARE_OK && ranks->n) w->source = &ranks->source;
    json_key(&w->json, "gpu");
    json_put_null(&w->json); /* tells the writer of JSON that a value is here; the document takes its place */
    if (w->s->out.len >= strlen("null")) w->s->out.len -= strlen("null");
    if (s == TARE_OK) s = gpu_profile_write(&p, &w->s->out, w->s->err);
    json_key(&w->json, "courses");
    json_array_begin(&w->json);
    for (size_t i = 0; i < courses.cards.n && s == TARE_OK; i++) put_course(w, &courses.cards.items[i]);
    json_array_end(&w->json);
    gpu_courses_release(&courses);
    gpu_profile_release(&p);
    return s;
}

/* ---- all of it ---- */

bool bars_json_has_any(struct trace *t)
{
    if (trace_has_gpu(t)) return true;
    for (uint32_t i = 0; i < trace_n_threads(t); i++)
        if (trace_thread(t, i)->events) return true;
    return false;
}

tare_status bars_json_write(struct stream *s, struct trace *const *traces, size_t n, uint64_t most)
{
    struct event_source source;
    struct joined ranks = {.memory = ARENA_INIT};
    struct page_bars bars;
    struct writer w = {.s = s, .source = &source, .bars = &bars};
    event_source_of_trace(&source, traces[0]);
    json_init(&w.json, &s->out, JSON_STYLE_COMPACT);
    json_object_begin(&w.json);
    json_kv_string(&w.json, "schema", BARS_SCHEMA);
    json_key(&w.json, "name");
    put_text(&w.json, export_name(&source));
    json_key(&w.json, "file");
    put_text(&w.json, source.path);
    json_kv_uint(&w.json, "dropped", source.loss->dropped);
    tare_status st = kv_gpu(&w, traces, n, &ranks); /* first, and released: the bars need the memory */
    if (st == TARE_OK) st = page_bars_gather(&bars, w.source, most, s->err);
    if (st == TARE_OK) {
        st = kv_bars(&w);
        page_bars_release(&bars);
    }
    joined_release(&ranks);
    json_object_end(&w.json);
    return stream_end(s, st);
}
