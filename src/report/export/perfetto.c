/* SPDX-License-Identifier: MIT
 * perfetto.c - Perfetto's protobuf trace, written by hand: a stream of TracePackets, one packet sequence per
 * thread, names and places interned at their first use. About a third of the size of the JSON. Times are of
 * the trace's own axis in the default clock, so that no clock snapshot is needed. */
#include <inttypes.h>
#include <string.h>

#include "core/arena.h"
#include "core/str.h"
#include "core/wire.h"
#include "report/export/export.h"
#include "report/export/gpu_bars.h"
#include "report/export/lanes.h"
#include "report/export/sample_curves.h"
#include "report/text.h"

/* Field numbers of the messages, as Perfetto's protos assign them. */
enum { TRACE_PACKET = 1 };
enum packet_field {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
};
enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum event_field {
    EVENT_DEBUG_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK_UUID = 11,
    EVENT_COUNTER_VALUE = 30,
    EVENT_SOURCE_IID = 34,
    EVENT_COUNTER_DOUBLE = 44,
    EVENT_NAME = 23,
    EVENT_FLOW = 47,
    EVENT_FLOW_END = 48,
};
enum event_type { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { DEFAULTS_TRACK_EVENT = 11 };
enum { INTERNED_EVENT_NAME = 2, INTERNED_SOURCE = 4, INTERNED_NOTE_STRING = 29 };
enum { NAME_IID = 1, NAME_TEXT = 2 };
enum { SOURCE_IID = 1, SOURCE_FILE = 2, SOURCE_LINE = 4 };
enum track_field {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
};
enum { PROCESS_PID = 1, PROCESS_CMDLINE = 2, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, COUNTER_UNIT_COUNT = 2, COUNTER_UNIT_BYTES = 3, COUNTER_UNIT_NAME = 6 };
enum { NOTE_BOOL = 2, NOTE_STRING = 6, NOTE_NAME = 10, NOTE_STRING_IID = 17 };

struct interned {
    VEC(uint8_t) sent; /* by number */
};

struct perfetto {
    struct stream *s;
    const struct event_source *source;
    struct buf packet, message, inner; /* scratch, from the outermost in; each is empty once added */
    uint8_t *interned;                 /* per site: its name was sent on this sequence */
    uint64_t *counter_track;           /* per site: the track of this thread's counter; 0: none yet */
    int64_t *sums;                     /* per site: the counter so far, in this thread */
    uint64_t next_track;               /* processes, then threads, then counters as they turn up */
    struct lanes lanes;
    VEC(uint64_t) lane_tracks; /* of this thread, lane 1 first */
    uint64_t gpu_tracks;       /* the first of them */
    uint64_t curve_tracks;     /* likewise */
    struct interned gpu_names, gpu_shapes;
    uint32_t thread;
    bool begun; /* this sequence has sent its first packet */
};

/* A text of the trace, made valid UTF-8. */
static void field_text(struct buf *b, uint32_t field, const char *s)
{
    struct buf text = BUF_INIT;
    str_add_utf8(&text, s, strlen(s));
    wire_add_message(b, field, &text);
    buf_release(&text);
}

/* ---- packets ---- */

static uint64_t thread_track(const struct perfetto *p, uint32_t thread)
{
    return (uint64_t)1 + p->source->n_processes + thread;
}

static tare_status send_packet(struct perfetto *p, uint32_t sequence, unsigned flags)
{
    wire_add_uint(&p->packet, PACKET_SEQUENCE_ID, sequence);
    if (flags) wire_add_uint(&p->packet, PACKET_SEQUENCE_FLAGS, flags);
    wire_add_message(&p->s->out, TRACE_PACKET, &p->packet);
    return stream_poll(p->s);
}

static void send_process(struct perfetto *p, uint32_t i)
{
    const struct trace_process *process = source_process(p->source, i);
    wire_add_uint(&p->inner, PROCESS_PID, process->pid);
    field_text(&p->inner, PROCESS_CMDLINE, process->command);
    field_text(&p->inner, PROCESS_NAME, process->command);
    wire_add_uint(&p->message, TRACK_UUID, (uint64_t)1 + i);
    wire_add_message(&p->message, TRACK_PROCESS, &p->inner);
    wire_add_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    send_packet(p, 1, 0);
}

static void send_thread(struct perfetto *p, uint32_t i)
{
    const struct trace_thread *t = source_thread(p->source, i);
    struct buf name = BUF_INIT;
    export_thread_name(&name, t);
    wire_add_uint(&p->inner, THREAD_PID, source_process(p->source, t->process)->pid);
    wire_add_uint(&p->inner, THREAD_TID, t->tid);
    wire_add_message(&p->inner, THREAD_NAME, &name);
    wire_add_uint(&p->message, TRACK_UUID, thread_track(p, i));
    wire_add_uint(&p->message, TRACK_PARENT, (uint64_t)1 + t->process);
    wire_add_message(&p->message, TRACK_THREAD, &p->inner);
    wire_add_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    buf_release(&name);
    send_packet(p, 1, 0);
}

/* A counter of this thread gets its own track below the thread's. */
static void send_counter_track(struct perfetto *p, uint32_t site)
{
    p->counter_track[site] = p->next_track++;
    wire_add_uint(&p->inner, COUNTER_UNIT, COUNTER_UNIT_COUNT);
    wire_add_uint(&p->message, TRACK_UUID, p->counter_track[site]);
    field_text(&p->message, TRACK_NAME, source_site(p->source, site)->name);
    wire_add_uint(&p->message, TRACK_PARENT, thread_track(p, p->thread));
    wire_add_message(&p->message, TRACK_COUNTER, &p->inner);
    wire_add_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    send_packet(p, 1, 0);
}

/* A lane of calls that waited, likewise. */
static tare_status send_lane_track(struct perfetto *p, uint32_t lane)
{
    tare_status s = vec_push(&p->lane_tracks, p->next_track, p->s->err);
    if (s != TARE_OK) return s;
    struct buf name = BUF_INIT;
    buf_printf(&name, "task %" PRIu32, lane);
    wire_add_uint(&p->message, TRACK_UUID, p->next_track++);
    wire_add_message(&p->message, TRACK_NAME, &name);
    wire_add_uint(&p->message, TRACK_PARENT, thread_track(p, p->thread));
    wire_add_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    buf_release(&name);
    return send_packet(p, 1, 0);
}

/* ---- events ---- */

/* Send the name and place of a site with the packet that first needs them. */
static void intern(struct perfetto *p, uint32_t site)
{
    if (p->interned[site]) return;
    p->interned[site] = 1;
    const struct trace_site *at = source_site(p->source, site);
    struct buf data = BUF_INIT;
    wire_add_uint(&p->inner, NAME_IID, (uint64_t)site + 1);
    field_text(&p->inner, NAME_TEXT, at->name);
    wire_add_message(&data, INTERNED_EVENT_NAME, &p->inner);
    if (*at->file) {
        wire_add_uint(&p->inner, SOURCE_IID, (uint64_t)site + 1);
        field_text(&p->inner, SOURCE_FILE, at->file);
        wire_add_uint(&p->inner, SOURCE_LINE, at->line);
        wire_add_message(&data, INTERNED_SOURCE, &p->inner);
    }
    wire_add_message(&p->packet, PACKET_INTERNED_DATA, &data);
    buf_release(&data);
}

static void add_note(struct perfetto *p, const char *name, const char *text)
{
    wire_add_str(&p->inner, NOTE_NAME, name);
    if (text)
        field_text(&p->inner, NOTE_STRING, text);
    else
        wire_add_uint(&p->inner, NOTE_BOOL, 1);
    wire_add_message(&p->message, EVENT_DEBUG_ANNOTATION, &p->inner);
}

static void fill_named(struct perfetto *p, const struct trace_event *e, enum event_type type)
{
    intern(p, e->site);
    wire_add_uint(&p->message, EVENT_TYPE, type);
    wire_add_uint(&p->message, EVENT_NAME_IID, (uint64_t)e->site + 1);
    if (*source_site(p->source, e->site)->file)
        wire_add_uint(&p->message, EVENT_SOURCE_IID, (uint64_t)e->site + 1);
    if (e->flags & TRACE_WEIGHED && type == TYPE_SLICE_BEGIN) add_note(p, EXPORT_WEIGHED, NULL);
    if (type == TYPE_INSTANT) add_note(p, "text", e->text ? e->text : "");
}

static void fill_count(struct perfetto *p, const struct trace_event *e)
{
    p->sums[e->site] = export_sum(p->sums[e->site], e->value);
    wire_add_uint(&p->message, EVENT_TYPE, TYPE_COUNTER);
    wire_add_uint(&p->message, EVENT_TRACK_UUID, p->counter_track[e->site]);
    wire_add_uint(&p->message, EVENT_COUNTER_VALUE, (uint64_t)p->sums[e->site]);
}

/* The first packet of a sequence says whose events follow. */
static unsigned begin_sequence(struct perfetto *p)
{
    if (p->begun) return SEQUENCE_NEEDS_STATE;
    p->begun = true;
    struct buf defaults = BUF_INIT;
    wire_add_uint(&p->inner, EVENT_TRACK_UUID, thread_track(p, p->thread));
    wire_add_message(&defaults, DEFAULTS_TRACK_EVENT, &p->inner);
    wire_add_message(&p->packet, PACKET_DEFAULTS, &defaults);
    buf_release(&defaults);
    return SEQUENCE_CLEARED | SEQUENCE_NEEDS_STATE;
}

/* The begin or end of a bar, on the track of its lane. */
static tare_status write_bar(struct perfetto *p, const struct lane_step *step, const struct trace_event *e)
{
    tare_status s = step->lane > p->lane_tracks.n ? send_lane_track(p, step->lane) : TARE_OK;
    if (s != TARE_OK) return s;
    wire_add_uint(&p->packet, PACKET_TIMESTAMP, step->at_ns);
    unsigned flags = begin_sequence(p);
    if (e && step->change == LANE_BEGIN)
        fill_named(p, e, TYPE_SLICE_BEGIN);
    else
        wire_add_uint(&p->message, EVENT_TYPE, TYPE_SLICE_END);
    wire_add_uint(&p->message, EVENT_TRACK_UUID, p->lane_tracks.items[step->lane - 1]);
    wire_add_message(&p->packet, PACKET_TRACK_EVENT, &p->message);
    return send_packet(p, p->thread + 2, flags);
}

/* Whatever else must be sent (a bar, the track of a counter) is sent first: all of it is built in the same p->packet,
 * which must be empty when the event begins. */
static int write_event(void *ctx, const struct trace_event *e)
{
    struct perfetto *p = ctx;
    struct lane_step step;
    tare_status s = lanes_event(&p->lanes, e, &step, p->s->err);
    if (s == TARE_OK && step.change != LANE_NOTHING) s = write_bar(p, &step, e);
    if (s != TARE_OK || step.hidden) return s;
    if (e->kind == TRACE_COUNT && !p->counter_track[e->site]) send_counter_track(p, e->site);
    wire_add_uint(&p->packet, PACKET_TIMESTAMP, e->time_ns);
    unsigned flags = begin_sequence(p);
    switch (e->kind) {
    case TRACE_BEGIN: fill_named(p, e, TYPE_SLICE_BEGIN); break;
    case TRACE_MARK: fill_named(p, e, TYPE_INSTANT); break;
    case TRACE_COUNT: fill_count(p, e); break;
    default:
        wire_add_uint(&p->message, EVENT_TYPE, TYPE_SLICE_END);
        if (e->flags & TRACE_SYNTHETIC) add_note(p, EXPORT_UNENDED, NULL);
        break;
    }
    wire_add_message(&p->packet, PACKET_TRACK_EVENT, &p->message);
    return send_packet(p, p->thread + 2, flags);
}

static tare_status write_thread(struct perfetto *p, uint32_t i)
{
    size_t n = p->source->n_sites;
    if (source_thread(p->source, i)->events == 0) return p->s->status;
    memset(p->interned, 0, n * sizeof *p->interned);
    memset(p->counter_track, 0, n * sizeof *p->counter_track);
    memset(p->sums, 0, n * sizeof *p->sums);
    p->thread = i;
    p->begun = false;
    lanes_clear(&p->lanes);
    vec_clear(&p->lane_tracks);
    tare_status s = lanes_look(&p->lanes, p->source, i, p->s->err);
    if (s == TARE_OK) s = source_events(p->source, i, write_event, p, p->s->err);
    for (struct lane_step step; s == TARE_OK && lanes_unended(&p->lanes, &step);)
        s = write_bar(p, &step, NULL);
    return s;
}

/* ---- GPUs: a packet sequence of their own, behind those of the threads ---- */

static tare_status write_gpu_track(void *ctx, const struct gpu_track *t)
{
    struct perfetto *p = ctx;
    wire_add_uint(&p->message, TRACK_UUID, p->gpu_tracks + t->number);
    field_text(&p->message, TRACK_NAME, t->name);
    wire_add_uint(&p->message, TRACK_PARENT, (uint64_t)1 + t->process);
    if (t->kind == GPU_TRACK_MEMORY) {
        wire_add_uint(&p->inner, COUNTER_UNIT, COUNTER_UNIT_BYTES);
        wire_add_message(&p->message, TRACK_COUNTER, &p->inner);
    }
    wire_add_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    return send_packet(p, 1, 0);
}

enum { SHAPE_IID = 1 << 30 }; /* texts of launches go by numbers that no name has */

static void intern_text(struct buf *data, struct buf *inner, uint64_t iid, const char *text)
{
    wire_add_uint(inner, NAME_IID, iid);
    field_text(inner, NAME_TEXT, text);
    wire_add_message(data, INTERNED_NOTE_STRING, inner);
}

/* *out: it was not asked for before. */
static tare_status is_new(struct perfetto *p, struct interned *list, uint32_t number, bool *out)
{
    tare_status s = TARE_OK;
    while (list->sent.n <= number && s == TARE_OK) s = vec_push(&list->sent, 0, p->s->err);
    if (s != TARE_OK) return s;
    *out = !list->sent.items[number];
    list->sent.items[number] = 1;
    return TARE_OK;
}

/* Names, and what more there is to tell of every bar of that name or of that launch, are sent once. */
static tare_status intern_gpu(struct perfetto *p, const struct gpu_bar *b)
{
    struct buf data = BUF_INIT, shape = BUF_INIT;
    bool name = false, launch = false;
    tare_status s = is_new(p, &p->gpu_names, b->name, &name);
    if (s == TARE_OK && b->shape) s = is_new(p, &p->gpu_shapes, b->shape_number, &launch);
    if (name) {
        wire_add_uint(&p->inner, NAME_IID, (uint64_t)b->name + 1);
        field_text(&p->inner, NAME_TEXT, b->text);
        wire_add_message(&data, INTERNED_EVENT_NAME, &p->inner);
        if (b->full) intern_text(&data, &p->inner, (uint64_t)b->name + 1, b->full);
    }
    if (launch) {
        gpu_bar_shape(&shape, b);
        if (shape.failed) p->packet.failed = 1;
        if (!shape.failed) intern_text(&data, &p->inner, (uint64_t)SHAPE_IID + b->shape_number, shape.data);
    }
    if (name || launch) wire_add_message(&p->packet, PACKET_INTERNED_DATA, &data);
    buf_release(&shape);
    buf_release(&data);
    return s;
}

static void add_interned_note(struct perfetto *p, const char *name, uint64_t iid)
{
    wire_add_str(&p->inner, NOTE_NAME, name);
    wire_add_uint(&p->inner, NOTE_STRING_IID, iid);
    wire_add_message(&p->message, EVENT_DEBUG_ANNOTATION, &p->inner);
}

static tare_status send_gpu_event(struct perfetto *p, const struct gpu_bar *b, uint64_t at)
{
    wire_add_uint(&p->message, EVENT_TRACK_UUID, p->gpu_tracks + b->track);
    wire_add_message(&p->packet, PACKET_TRACK_EVENT, &p->message);
    wire_add_uint(&p->packet, PACKET_TIMESTAMP, at);
    unsigned flags = p->begun ? SEQUENCE_NEEDS_STATE : SEQUENCE_CLEARED | SEQUENCE_NEEDS_STATE;
    p->begun = true;
    return send_packet(p, p->source->n_threads + 2, flags);
}

static tare_status write_gpu_bar(void *ctx, const struct gpu_bar *b)
{
    struct perfetto *p = ctx;
    if (b->kind == GPU_BAR_MEMORY) {
        wire_add_uint(&p->message, EVENT_TYPE, TYPE_COUNTER);
        wire_add_uint(&p->message, EVENT_COUNTER_VALUE, b->bytes);
        return send_gpu_event(p, b, b->start);
    }
    tare_status s = intern_gpu(p, b);
    if (s != TARE_OK) return s;
    wire_add_uint(&p->message, EVENT_TYPE, TYPE_SLICE_BEGIN);
    wire_add_uint(&p->message, EVENT_NAME_IID, (uint64_t)b->name + 1);
    if (b->detail) add_note(p, "detail", b->detail);
    if (b->full) add_interned_note(p, "full", (uint64_t)b->name + 1);
    if (b->shape) add_interned_note(p, "detail", (uint64_t)SHAPE_IID + b->shape_number);
    if (b->flow) {
        wire_add_key(&p->message, b->launches ? EVENT_FLOW : EVENT_FLOW_END, WIRE_FIXED64);
        wire_add_fixed(&p->message, b->flow, 8);
    }
    s = send_gpu_event(p, b, b->start);
    if (s != TARE_OK) return s;
    wire_add_uint(&p->message, EVENT_TYPE, TYPE_SLICE_END);
    return send_gpu_event(p, b, b->end);
}

static tare_status write_gpus(struct perfetto *p)
{
    p->gpu_tracks = p->next_track;
    p->begun = false;
    return gpu_bars(p->source, &(struct gpu_bars_to){p, write_gpu_track, write_gpu_bar}, p->s->err);
}

/* ---- what probes sampled: counters of the first process, which is whoever sampled; a sequence of its own ---- */

static tare_status begin_curve(void *ctx, uint32_t number, const char *name, const char *unit)
{
    struct perfetto *p = ctx;
    wire_add_str(&p->inner, COUNTER_UNIT_NAME, *unit ? unit : "share");
    wire_add_uint(&p->message, TRACK_UUID, p->curve_tracks + number);
    field_text(&p->message, TRACK_NAME, name);
    wire_add_uint(&p->message, TRACK_PARENT, 1);
    wire_add_message(&p->message, TRACK_COUNTER, &p->inner);
    wire_add_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    return send_packet(p, 1, 0);
}

static tare_status send_sampled(struct perfetto *p, uint64_t track, uint64_t at_ns)
{
    wire_add_uint(&p->message, EVENT_TRACK_UUID, track);
    wire_add_message(&p->packet, PACKET_TRACK_EVENT, &p->message);
    wire_add_uint(&p->packet, PACKET_TIMESTAMP, at_ns);
    return send_packet(p, p->source->n_threads + 3, 0);
}

static tare_status write_point(void *ctx, uint32_t number, uint64_t at_ns, double value)
{
    struct perfetto *p = ctx;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wire_add_uint(&p->message, EVENT_TYPE, TYPE_COUNTER);
    wire_add_key(&p->message, EVENT_COUNTER_DOUBLE, WIRE_FIXED64);
    wire_add_fixed(&p->message, bits, 8);
    return send_sampled(p, p->curve_tracks + number, at_ns);
}

static tare_status send_sample_track(void *ctx, uint32_t number, const char *name)
{
    struct perfetto *p = ctx;
    wire_add_uint(&p->message, TRACK_UUID, p->curve_tracks + number);
    field_text(&p->message, TRACK_NAME, name);
    wire_add_uint(&p->message, TRACK_PARENT, 1);
    wire_add_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    return send_packet(p, 1, 0);
}

static tare_status write_sample_bar(void *ctx, uint32_t number, const struct sample_bar *b)
{
    struct perfetto *p = ctx;
    wire_add_uint(&p->message, EVENT_TYPE, TYPE_SLICE_BEGIN);
    field_text(&p->message, EVENT_NAME, b->text);
    tare_status s = send_sampled(p, p->curve_tracks + number, b->start);
    if (s != TARE_OK) return s;
    wire_add_uint(&p->message, EVENT_TYPE, TYPE_SLICE_END);
    return send_sampled(p, p->curve_tracks + number, b->end);
}

static tare_status write_sample_mark(void *ctx, uint64_t at_ns, const char *text)
{
    struct perfetto *p = ctx;
    wire_add_uint(&p->message, EVENT_TYPE, TYPE_INSTANT);
    field_text(&p->message, EVENT_NAME, text);
    return send_sampled(p, 1, at_ns);
}

/* Tracks of GPUs are numbered on from next_track without being counted there: those of curves begin far beyond. */
static tare_status write_samples(struct perfetto *p, struct trace *t, const struct samples *samples)
{
    p->curve_tracks = UINT64_C(1) << 40;
    struct sample_curves_to to = {
        p, begin_curve, write_point, send_sample_track, write_sample_bar, write_sample_mark};
    return sample_curves(samples, t, &to, p->s->err);
}

static tare_status write_all(struct perfetto *p, struct trace *t, const struct samples *samples)
{
    const struct event_source *src = p->source;
    tare_status status = TARE_OK;
    p->next_track = thread_track(p, src->n_threads);
    for (uint32_t i = 0; i < src->n_processes; i++) send_process(p, i);
    for (uint32_t i = 0; i < src->n_threads; i++) send_thread(p, i);
    for (uint32_t i = 0; i < src->n_threads && status == TARE_OK; i++) status = write_thread(p, i);
    if (status == TARE_OK && src->has_gpu) status = write_gpus(p);
    if (status == TARE_OK && samples && src->n_processes) status = write_samples(p, t, samples);
    return status;
}

static tare_status perfetto_write(struct stream *s, const struct export_input *in)
{
    struct perfetto p = {
        .s = s, .source = in->source, .packet = BUF_INIT, .message = BUF_INIT, .inner = BUF_INIT};
    struct arena memory = ARENA_INIT;
    size_t n = in->source->n_sites;
    p.interned = arena_new(&memory, n, sizeof *p.interned);
    p.counter_track = arena_new(&memory, n, sizeof *p.counter_track);
    p.sums = arena_new(&memory, n, sizeof *p.sums);
    tare_status status = memory.failed ? error_nomem(s->err, "%zu names", n) : write_all(&p, in->trace, in->samples);
    buf_release(&p.packet);
    buf_release(&p.message);
    buf_release(&p.inner);
    lanes_release(&p.lanes);
    vec_release(&p.lane_tracks);
    vec_release(&p.gpu_names.sent);
    vec_release(&p.gpu_shapes.sent);
    arena_release(&memory);
    return stream_end(s, status);
}

const struct export_format export_perfetto = {
    .name = "perfetto",
    .extension = ".pftrace",
    .help = "Perfetto's binary trace, a third of the size of chrome",
    .flags = EXPORT_EVENTS | EXPORT_BINARY,
    .write = perfetto_write,
};
