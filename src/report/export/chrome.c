/* SPDX-License-Identifier: MIT
 * chrome.c - the JSON trace event format, as chrome://tracing, Perfetto and others open it. Begin and end
 * events, not complete ones: their order in the file keeps scopes nested that begin in the same ns. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/arena.h"
#include "report/export/export.h"
#include "report/export/gpu_bars.h"
#include "report/export/lanes.h"
#include "report/export/sample_curves.h"
#include "report/text.h"

struct curve {
    char name[200], unit[12];
};

struct chrome {
    struct stream *s;
    const struct event_source *source;
    struct buf names;  /* every site's name as a JSON string, one after another */
    size_t *name_at;   /* per site, and one more: where in names */
    uint32_t *threads; /* per process: how many there are */
    int64_t *sums;     /* per site: the counter so far, in this thread */
    struct buf where;  /* ,"pid":1,"tid":2 of this thread */
    struct buf detail; /* of a bar */
    struct lanes lanes;
    uint32_t tid;
    VEC(uint32_t) gpu_pids;   /* by track */
    VEC(uint8_t) gpu_told;    /* by number of a name: its full form stands with a bar */
    VEC(struct curve) curves; /* by number */
    uint32_t counter_tid;     /* counters of different threads are kept apart by it; 0: one thread only */
};

static struct buf *out(const struct chrome *c)
{
    return &c->s->out;
}

static void add_name(struct chrome *c, uint32_t site)
{
    buf_add(out(c), c->names.data + c->name_at[site], c->name_at[site + 1] - c->name_at[site]);
}

/* Microseconds with the nanoseconds behind the point. */
static void add_us(struct chrome *c, const char *key, uint64_t ns)
{
    unsigned rest = (unsigned)(ns % 1000);
    char digits[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
    buf_add_str(out(c), key);
    stream_add_uint(c->s, ns / 1000);
    buf_add(out(c), digits, sizeof digits);
}

static void add_time(struct chrome *c, uint64_t ns)
{
    add_us(c, ",\"ts\":", ns);
}

static void begin_event(struct chrome *c, const char *start, const struct trace_event *e)
{
    buf_add_str(out(c), start);
    add_time(c, e->time_ns);
    buf_add(out(c), c->where.data, c->where.len);
}

static void write_count(struct chrome *c, const struct trace_event *e)
{
    c->sums[e->site] = export_sum(c->sums[e->site], e->value);
    begin_event(c, ",\n{\"ph\":\"C\"", e);
    if (c->counter_tid) {
        buf_add_str(out(c), ",\"id\":");
        stream_add_uint(c->s, c->counter_tid);
    }
    buf_add_str(out(c), ",\"name\":");
    add_name(c, e->site);
    buf_add_str(out(c), ",\"args\":{\"sum\":");
    stream_add_int(c->s, c->sums[e->site]);
    buf_add_str(out(c), "}}");
}

/* Bars of calls that waited: nestable async events, one id a lane. */
static void write_bar(struct chrome *c, const struct lane_step *step)
{
    buf_printf(out(c), ",\n{\"ph\":\"%c\",\"cat\":\"task\"", step->change == LANE_BEGIN ? 'b' : 'e');
    add_time(c, step->at_ns);
    buf_add(out(c), c->where.data, c->where.len);
    buf_printf(out(c), ",\"id2\":{\"local\":\"%" PRIu32 ".%" PRIu32 "\"},\"name\":", c->tid, step->lane);
    add_name(c, step->site);
    buf_add_char(out(c), '}');
}

/* An end carries no name: the format matches it to the last begin of its thread, so only the order of the events holds
 * them together. What waited and so does not nest gets bars of its own. */
static int write_event(void *ctx, const struct trace_event *e)
{
    struct chrome *c = ctx;
    struct lane_step step;
    tare_status s = lanes_event(&c->lanes, e, &step, c->s->err);
    if (s != TARE_OK) return s;
    if (step.change != LANE_NOTHING) write_bar(c, &step);
    if (step.hidden) return stream_poll(c->s);
    switch (e->kind) {
    case TRACE_BEGIN:
        begin_event(c, ",\n{\"ph\":\"B\"", e);
        buf_add_str(out(c), ",\"name\":");
        add_name(c, e->site);
        buf_add_str(out(c), e->flags & TRACE_WEIGHED ? ",\"args\":{\"" EXPORT_WEIGHED "\":true}}" : "}");
        break;
    case TRACE_END:
        begin_event(c, ",\n{\"ph\":\"E\"", e);
        buf_add_str(out(c), e->flags & TRACE_SYNTHETIC ? ",\"args\":{\"" EXPORT_UNENDED "\":true}}" : "}");
        break;
    case TRACE_COUNT: write_count(c, e); break;
    case TRACE_MARK:
        begin_event(c, ",\n{\"ph\":\"i\",\"s\":\"t\"", e);
        buf_add_str(out(c), ",\"name\":");
        add_name(c, e->site);
        buf_add_str(out(c), ",\"args\":{\"text\":");
        text_json(out(c), e->text ? e->text : "", e->text ? strlen(e->text) : 0);
        buf_add_str(out(c), "}}");
        break;
    default: break;
    }
    return stream_poll(c->s);
}

/* ---- GPUs ---- */

/* Tracks go by numbers that no thread has. */
enum { GPU_TRACK = 100000000, SAMPLE_TRACK = 200000000 };

static void write_track_name(struct chrome *c, uint32_t pid, uint32_t tid, const char *name)
{
    buf_printf(out(c), ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, pid, tid);
    buf_add_str(out(c), ",\"name\":\"thread_name\",\"args\":{\"name\":");
    text_json(out(c), name, strlen(name));
    buf_add_str(out(c), "}}");
}

static tare_status write_gpu_track(void *ctx, const struct gpu_track *t)
{
    struct chrome *c = ctx;
    uint32_t pid = source_process(c->source, t->process)->pid;
    tare_status s = vec_push(&c->gpu_pids, pid, c->s->err);
    if (s != TARE_OK) return s;
    if (t->kind != GPU_TRACK_MEMORY) write_track_name(c, pid, GPU_TRACK + t->number, t->name);
    return stream_poll(c->s);
}

static tare_status write_gpu_memory(struct chrome *c, const struct gpu_bar *b)
{
    buf_add_str(out(c), ",\n{\"ph\":\"C\"");
    add_time(c, b->start);
    buf_printf(out(c), ",\"pid\":%" PRIu32 ",\"name\":", c->gpu_pids.items[b->track]);
    text_json(out(c), b->text, strlen(b->text));
    buf_printf(out(c), ",\"args\":{\"B\":%" PRIu64 "}}", b->bytes);
    return stream_poll(c->s);
}

/* Full names of kernels are long and this format has no way to refer to one: the first bar of a name has it. */
static tare_status first_of_name(struct chrome *c, uint32_t name, bool *first)
{
    tare_status s = TARE_OK;
    while (s == TARE_OK && c->gpu_told.n <= name) s = vec_push(&c->gpu_told, 0, c->s->err);
    if (s != TARE_OK) return s;
    *first = !c->gpu_told.items[name];
    c->gpu_told.items[name] = 1;
    return TARE_OK;
}

static void add_gpu_arg(struct chrome *c, bool first, const char *key, const char *text)
{
    buf_printf(out(c), "%s\"%s\":", first ? ",\"args\":{" : ",", key);
    text_json(out(c), text, text_clip(text, TEXT_NAME_MAX));
}

/* What is to tell beside the name: the whole of it, the launch of a kernel or the bytes of a copy. */
static tare_status add_gpu_args(struct chrome *c, const struct gpu_bar *b)
{
    bool first = false;
    tare_status s = b->full ? first_of_name(c, b->name, &first) : TARE_OK;
    buf_clear(&c->detail);
    gpu_bar_shape(&c->detail, b);
    if (c->detail.failed) out(c)->failed = 1;
    const char *detail = b->shape && !c->detail.failed ? c->detail.data : b->detail;
    if (s != TARE_OK) return s;
    if (first) add_gpu_arg(c, true, "full", b->full);
    if (detail) add_gpu_arg(c, !first, "detail", detail);
    if (first || detail) buf_add_char(out(c), '}');
    return TARE_OK;
}

static tare_status write_gpu_bar(void *ctx, const struct gpu_bar *b)
{
    struct chrome *c = ctx;
    if (b->kind == GPU_BAR_MEMORY) return write_gpu_memory(c, b);
    buf_clear(&c->where);
    buf_printf(&c->where, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, c->gpu_pids.items[b->track],
               GPU_TRACK + b->track);
    if (c->where.failed) out(c)->failed = 1;
    buf_add_str(out(c), ",\n{\"ph\":\"X\"");
    add_time(c, b->start);
    add_us(c, ",\"dur\":", b->end - b->start);
    buf_add(out(c), c->where.data, c->where.len);
    buf_add_str(out(c), ",\"name\":");
    text_json(out(c), b->text, text_clip(b->text, TEXT_NAME_MAX));
    tare_status s = add_gpu_args(c, b);
    if (s != TARE_OK) return s;
    buf_add_char(out(c), '}');
    if (!b->flow) return stream_poll(c->s);
    buf_add_str(out(c), b->launches ? ",\n{\"ph\":\"s\"" : ",\n{\"ph\":\"f\",\"bp\":\"e\"");
    add_time(c, b->start);
    buf_add(out(c), c->where.data, c->where.len);
    buf_printf(out(c), ",\"cat\":\"launch\",\"name\":\"launch\",\"id\":%" PRIu64 "}", b->flow);
    return stream_poll(c->s);
}

/* ---- what probes sampled: counters of the first process, which is whoever sampled ---- */

static tare_status begin_curve(void *ctx, uint32_t number, const char *name, const char *unit)
{
    struct chrome *c = ctx;
    struct curve curve;
    (void)number; /* they come in order */
    snprintf(curve.name, sizeof curve.name, "%s", name);
    snprintf(curve.unit, sizeof curve.unit, "%s", *unit ? unit : "share");
    return vec_push(&c->curves, curve, c->s->err);
}

static tare_status write_point(void *ctx, uint32_t number, uint64_t at_ns, double value)
{
    struct chrome *c = ctx;
    const struct curve *curve = &c->curves.items[number];
    buf_add_str(out(c), ",\n{\"ph\":\"C\"");
    add_time(c, at_ns);
    buf_printf(out(c), ",\"pid\":%" PRIu32 ",\"name\":", source_process(c->source, 0)->pid);
    text_json(out(c), curve->name, strlen(curve->name));
    buf_printf(out(c), ",\"args\":{\"%s\":%.9g}}", curve->unit, value);
    return stream_poll(c->s);
}

static tare_status write_sample_track(void *ctx, uint32_t number, const char *name)
{
    struct chrome *c = ctx;
    tare_status s = begin_curve(ctx, number, name, "");
    write_track_name(c, source_process(c->source, 0)->pid, SAMPLE_TRACK + number, name);
    return s == TARE_OK ? stream_poll(c->s) : s;
}

static tare_status write_sample_bar(void *ctx, uint32_t number, const struct sample_bar *b)
{
    struct chrome *c = ctx;
    buf_add_str(out(c), ",\n{\"ph\":\"X\"");
    add_time(c, b->start);
    add_us(c, ",\"dur\":", b->end - b->start);
    buf_printf(out(c),
               ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":", source_process(c->source, 0)->pid,
               SAMPLE_TRACK + number);
    text_json(out(c), b->text, strlen(b->text));
    buf_printf(out(c), ",\"args\":{\"%s\":%.9g}}", *b->unit ? b->unit : "value", b->value);
    return stream_poll(c->s);
}

static tare_status write_sample_mark(void *ctx, uint64_t at_ns, const char *text)
{
    struct chrome *c = ctx;
    buf_add_str(out(c), ",\n{\"ph\":\"i\",\"s\":\"g\"");
    add_time(c, at_ns);
    buf_printf(out(c), ",\"pid\":%" PRIu32 ",\"tid\":0,\"name\":", source_process(c->source, 0)->pid);
    text_json(out(c), text, text_clip(text, TEXT_NAME_MAX));
    buf_add_char(out(c), '}');
    return stream_poll(c->s);
}

/* ---- what comes before the events ---- */

static void quote_names(struct chrome *c)
{
    struct buf one = BUF_INIT;
    for (uint32_t i = 0; i < c->source->n_sites; i++) {
        const char *name = source_site(c->source, i)->name;
        size_t n = text_clip(name, TEXT_NAME_MAX);
        buf_clear(&one);
        buf_add(&one, name, n);
        if (name[n]) buf_add_str(&one, "...");
        c->name_at[i] = c->names.len;
        text_json(&c->names, one.data, one.len);
        if (one.failed) c->names.failed = 1;
    }
    c->name_at[c->source->n_sites] = c->names.len;
    buf_release(&one);
    if (c->names.failed) out(c)->failed = 1;
}

static void write_process_name(struct chrome *c, const struct trace_process *p)
{
    buf_printf(out(c), "%s\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"name\":\"process_name\",\"args\":{\"name\":",
               p == source_process(c->source, 0) ? "" : ",", p->pid);
    text_json(out(c), p->command, text_clip(p->command, TEXT_NAME_MAX));
    buf_add_str(out(c), "}}");
    stream_poll(c->s);
}

static void write_thread_name(struct chrome *c, const struct trace_thread *t)
{
    struct buf name = BUF_INIT;
    export_thread_name(&name, t);
    buf_printf(out(c), ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
               source_process(c->source, t->process)->pid, t->tid);
    buf_add_str(out(c), ",\"name\":\"thread_name\",\"args\":{\"name\":");
    text_json(out(c), name.data, name.len);
    buf_add_str(out(c), "}}");
    if (name.failed) out(c)->failed = 1;
    buf_release(&name);
    stream_poll(c->s);
}

static void write_head(struct chrome *c)
{
    buf_add_str(out(c), "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"tool\":\"tare " TARE_VERSION "\",");
    buf_add_str(out(c), "\"trace\":");
    text_json(out(c), c->source->id, strlen(c->source->id));
    buf_printf(out(c), ",\"dropped\":\"%" PRIu64 "\"},\"traceEvents\":[", c->source->loss->dropped);
    for (uint32_t i = 0; i < c->source->n_processes; i++) write_process_name(c, source_process(c->source, i));
    for (uint32_t i = 0; i < c->source->n_threads; i++) write_thread_name(c, source_thread(c->source, i));
}

/* ---- the threads ---- */

static tare_status write_thread(struct chrome *c, uint32_t i)
{
    const struct trace_thread *t = source_thread(c->source, i);
    if (t->events == 0) return c->s->status;
    uint32_t pid = source_process(c->source, t->process)->pid;
    buf_clear(&c->where);
    buf_printf(&c->where, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, pid, t->tid);
    if (c->where.failed) out(c)->failed = 1;
    c->counter_tid = c->threads[t->process] > 1 ? t->tid : 0;
    memset(c->sums, 0, c->source->n_sites * sizeof *c->sums);
    c->tid = t->tid;
    lanes_clear(&c->lanes);
    tare_status status = lanes_look(&c->lanes, c->source, i, c->s->err);
    if (status == TARE_OK) status = source_events(c->source, i, write_event, c, c->s->err);
    for (struct lane_step step; status == TARE_OK && lanes_unended(&c->lanes, &step);) write_bar(c, &step);
    return status;
}

static tare_status write_all(struct chrome *c, struct trace *t, const struct samples *samples)
{
    const struct event_source *src = c->source;
    tare_status status = TARE_OK;
    for (uint32_t i = 0; i < src->n_threads; i++) c->threads[source_thread(src, i)->process]++;
    quote_names(c);
    write_head(c);
    for (uint32_t i = 0; i < src->n_threads && status == TARE_OK; i++) status = write_thread(c, i);
    if (status == TARE_OK && src->has_gpu)
        status = gpu_bars(src, &(struct gpu_bars_to){c, write_gpu_track, write_gpu_bar}, c->s->err);
    if (status == TARE_OK && samples && src->n_processes) {
        struct sample_curves_to to = {
            c, begin_curve, write_point, write_sample_track, write_sample_bar, write_sample_mark};
        status = sample_curves(samples, t, &to, c->s->err);
    }
    buf_add_str(out(c), "\n]}\n");
    return status;
}

static tare_status chrome_write(struct stream *s, const struct export_input *in)
{
    struct chrome c = {
        .s = s, .source = in->source, .names = BUF_INIT, .where = BUF_INIT, .detail = BUF_INIT};
    struct arena memory = ARENA_INIT;
    c.name_at = arena_new(&memory, (size_t)in->source->n_sites + 1, sizeof *c.name_at);
    c.threads = arena_new(&memory, in->source->n_processes, sizeof *c.threads);
    c.sums = arena_new(&memory, in->source->n_sites, sizeof *c.sums);
    tare_status status = memory.failed ? error_nomem(s->err, "%" PRIu32 " names", in->source->n_sites)
                                       : write_all(&c, in->trace, in->samples);
    buf_release(&c.names);
    buf_release(&c.where);
    buf_release(&c.detail);
    vec_release(&c.gpu_pids);
    vec_release(&c.gpu_told);
    vec_release(&c.curves);
    lanes_release(&c.lanes);
    arena_release(&memory);
    return stream_end(s, status);
}

const struct export_format export_chrome = {
    .name = "chrome",
    .extension = ".chrome.json",
    .help = "JSON trace events, for chrome://tracing and Perfetto",
    .flags = EXPORT_EVENTS,
    .write = chrome_write,
};
