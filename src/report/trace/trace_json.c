/* SPDX-License-Identifier: MIT
 * trace_json.c - the report of a trace for programs: schema tare.report/1. Times are integers of
 * nanoseconds (means have decimals), unknown is null; children nest as deep as the calls did. */
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "core/json.h"
#include "report/trace/report.h"
#include "trace/format.h"

/* Whole nanoseconds; unknown, and what no integer holds, as null. */
static void kv_time(struct json *j, const char *key, double ns)
{
    if (isfinite(ns) && fabs(ns) < 9e18)
        json_kv_int(j, key, (int64_t)llround(ns));
    else
        json_kv_null(j, key);
}

static void kv_fine(struct json *j, const char *key, double ns)
{
    if (isfinite(ns))
        json_kv_double(j, key, round(ns * 100) / 100);
    else
        json_kv_null(j, key);
}

static void kv_estimate(struct json *j, const char *key, struct interval e)
{
    json_key(j, key);
    json_object_begin(j);
    kv_fine(j, "value", e.value);
    kv_fine(j, "lo", e.lo);
    kv_fine(j, "hi", e.hi);
    json_object_end(j);
}

static void kv_date(struct json *j, const char *key, uint64_t unix_ns)
{
    struct buf date = BUF_INIT;
    fmt_date(&date, unix_ns, true);
    if (date.failed) j->out->failed = 1;
    json_kv_string(j, key, date.data);
    buf_release(&date);
}

/* ---- the trace ---- */

static void kv_modes(struct json *j, uint32_t mode)
{
    json_key(j, "mode");
    json_array_begin(j);
    if (mode & TARE_AGGREGATE) json_put_string(j, "aggregate");
    if (mode & TARE_EVENTS) json_put_string(j, "events");
    json_array_end(j);
}

/* Why recording ended before the process did; null: it did not, as far as is known. */
static const char *const ends_early[] = {
    [RECORD_END_UNTOLD] = NULL, [RECORD_END_DISK] = "disk", [RECORD_END_PAGE] = "page", [RECORD_END_KEPT] = NULL};

static void put_process(struct json *j, const struct trace_process *p)
{
    json_object_begin(j);
    json_kv_uint(j, "pid", p->pid);
    json_kv_uint(j, "parent_pid", p->parent_pid);
    json_kv_string(j, "command", p->command);
    kv_date(j, "created", p->start_unix_ns);
    json_kv_uint(j, "start_ns", p->start_ns);
    json_kv_uint(j, "end_ns", p->end_ns);
    kv_modes(j, p->mode);
    json_kv_string(j, "clock", report_clock_name(p->clock));
    json_kv_bool(j, "tsc", p->tsc);
    json_kv_double(j, "tick_ns", p->tick_ns);
    json_kv_bool(j, "closed", p->closed);
    json_kv_string(j, "ended_early", ends_early[p->end]);
    json_object_end(j);
}

static void put_thread(struct json *j, const struct event_source *src, const struct trace_thread *t)
{
    json_object_begin(j);
    json_kv_uint(j, "pid", source_process(src, t->process)->pid);
    json_kv_uint(j, "tid", t->tid);
    json_kv_string(j, "name", t->name);
    json_kv_uint(j, "events", t->events);
    json_kv_uint(j, "dropped", t->dropped);
    json_object_end(j);
}

static void kv_trace(struct json *j, const struct report_input *in)
{
    const struct event_source *src = in->source;
    struct report_span span = report_span(src);
    json_key(j, "trace");
    json_object_begin(j);
    json_kv_string(j, "path", src->path);
    json_kv_string(j, "id", src->id);
    json_kv_string(j, "command", src->n_processes ? source_process(src, 0)->command : NULL);
    kv_date(j, "created", span.start_unix_ns);
    json_kv_uint(j, "duration_ns", span.duration_ns);
    json_kv_bool(j, "has_tree", src->has_tree);
    json_kv_bool(j, "has_events", src->has_events);
    json_kv_uint(j, "events", span.events);
    json_key(j, "processes");
    json_array_begin(j);
    for (uint32_t i = 0; i < src->n_processes; i++) put_process(j, source_process(src, i));
    json_array_end(j);
    json_key(j, "threads");
    json_array_begin(j);
    for (uint32_t i = 0; i < src->n_threads; i++) put_thread(j, src, source_thread(src, i));
    json_array_end(j);
    json_object_end(j);
}

static void kv_weight(struct json *j, const struct calltree *tree)
{
    const char *method = tree->weighed_pairs ? "in-situ" : "start-up";
    json_key(j, "weight");
    json_object_begin(j);
    kv_estimate(j, "scope_ns", tree->weight_ns);
    kv_estimate(j, "inside_ns", tree->inside_ns);
    json_kv_uint(j, "weighed_pairs", tree->weighed_pairs);
    json_kv_string(j, "method", isnan(tree->weight_ns.value) ? NULL : method);
    kv_fine(j, "limit_ns", tree->weighing_limit_ns);
    json_kv_double(j, "own_share", round(report_own_share(tree) * 1e6) / 1e6);
    json_object_end(j);
}

static void kv_loss(struct json *j, const struct trace_loss *loss)
{
    json_key(j, "loss");
    json_object_begin(j);
    json_kv_uint(j, "dropped", loss->dropped);
    json_kv_uint(j, "damaged_chunks", loss->damaged_chunks);
    json_kv_uint(j, "damaged_bytes", loss->damaged_bytes);
    json_kv_uint(j, "unclosed_scopes", loss->unclosed_scopes);
    json_kv_uint(j, "abandoned_scopes", loss->abandoned_scopes);
    json_kv_uint(j, "unknown_chunks", loss->unknown_chunks);
    json_kv_uint(j, "foreign_scopes", loss->foreign_scopes);
    json_kv_uint(j, "missing_live", loss->missing_live);
    json_kv_uint(j, "ended_early", loss->ended_early);
    json_kv_string(j, "first", loss->first[0] ? loss->first : NULL);
    json_object_end(j);
}

/* ---- the nodes ---- */

static void kv_flags(struct json *j, uint32_t flags)
{
    json_key(j, "flags");
    json_array_begin(j);
    if (flags & CALL_COUNT_ESTIMATED) json_put_string(j, "count-estimated");
    if (flags & CALL_BELOW_LIMIT) json_put_string(j, "below-limit");
    if (flags & CALL_FAST_CLOCK) json_put_string(j, "fast-clock");
    json_array_end(j);
}

static void kv_times(struct json *j, const struct call_node *n)
{
    kv_time(j, "total_ns", n->total_ns.value);
    kv_time(j, "total_ns_lo", n->total_ns.lo);
    kv_time(j, "total_ns_hi", n->total_ns.hi);
    kv_time(j, "self_ns", n->self_ns.value);
    kv_time(j, "self_ns_lo", n->self_ns.lo);
    kv_time(j, "self_ns_hi", n->self_ns.hi);
    kv_fine(j, "mean_ns", n->mean_ns.value);
    kv_fine(j, "mean_ns_lo", n->mean_ns.lo);
    kv_fine(j, "mean_ns_hi", n->mean_ns.hi);
    kv_time(j, "gross_total_ns", n->gross_total_ns);
    kv_time(j, "gross_self_ns", n->gross_self_ns);
    kv_fine(j, "gross_mean_ns", n->gross_mean_ns);
    kv_time(j, "min_ns", n->min_ns);
    kv_time(j, "max_ns", n->max_ns);
    kv_time(j, "p50_ns", n->p50_ns);
    kv_time(j, "p95_ns", n->p95_ns);
    kv_time(j, "p99_ns", n->p99_ns);
}

/* A node and the open list of its children: '{...,"children":['. */
static void open_node(struct stream *s, const struct report_input *in, const struct call_node *n,
                      double share)
{
    const struct trace_site *site = source_site(in->source, n->site);
    struct json j;
    json_init(&j, &s->out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "name", site->name);
    json_kv_string(&j, "file", *site->file ? site->file : NULL);
    json_kv_uint(&j, "line", site->line);
    json_kv_string(&j, "kind", report_kind_name(n->kind));
    json_kv_uint(&j, "count", n->count);
    if (n->threads)
        json_kv_uint(&j, "threads", n->threads);
    else
        json_kv_null(&j, "threads");
    if (n->kind == TARE_SITE_COUNTER) json_kv_int(&j, "sum", n->value);
    if (n->kind == TARE_SITE_SCOPE) {
        json_kv_uint(&j, "abandoned", n->abandoned);
        kv_times(&j, n);
        json_kv_double(&j, "share", round(share * 1e6) / 1e6);
    }
    kv_flags(&j, n->flags);
    json_key(&j, "children");
    json_array_begin(&j);
    json_array_end(&j);
    json_object_end(&j);
    /* Take back "]}": it is written when the children are done. */
    if (s->out.len >= 2 && !s->out.failed) s->out.len -= 2;
}

/* The tree is written from its rows without recursion: a row that is no deeper than those before it closes them first,
 * down to its own depth. */
static void write_nodes(struct stream *s, const struct report_input *in, const struct calltree *tree,
                        const struct view *v)
{
    uint32_t open = 0; /* nodes whose "]}" is still to come */
    for (size_t i = 0; i < v->n && s->status == TARE_OK; i++) {
        const struct view_row *row = &v->rows[i];
        bool first = i == 0 || row->depth > v->rows[i - 1].depth;
        for (; open > row->depth; open--) buf_add_str(&s->out, "]}");
        if (!first) buf_add_char(&s->out, ',');
        buf_add_char(&s->out, '\n');
        const struct call_node *n = &tree->nodes[row->node];
        open_node(s, in, n, view_share(v, n, in->options.view.gross));
        open = row->depth + 1;
        stream_poll(s);
    }
    for (; open > 0; open--) {
        buf_add_str(&s->out, "]}");
        stream_poll(s);
    }
}

/* Everything before the nodes, without the closing brace. */
static tare_status write_head(struct stream *s, const struct report_input *in, const struct view *v)
{
    struct buf head = BUF_INIT;
    struct json j;
    json_init(&j, &head, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "schema", "tare.report/1");
    kv_trace(&j, in);
    kv_weight(&j, in->tree);
    kv_loss(&j, in->source->loss);
    json_kv_string(&j, "view", in->options.flat ? "flat" : "tree");
    const struct event_source *src = in->source;
    int thread = in->options.thread;
    if (thread >= 0 && (uint32_t)thread < src->n_threads)
        json_kv_uint(&j, "thread", source_thread(src, (uint32_t)thread)->tid);
    else
        json_kv_null(&j, "thread");
    kv_time(&j, "total_ns", in->tree->n_nodes ? in->tree->nodes[0].total_ns.value : NAN);
    kv_time(&j, "gross_total_ns", in->tree->n_nodes ? in->tree->nodes[0].gross_total_ns : NAN);
    json_kv_double(&j, "percentile_error", in->tree->percentile_error);
    json_kv_uint(&j, "hidden", v->hidden);
    json_object_end(&j);
    tare_status status = json_finish(&j, s->err);
    if (status == TARE_OK) buf_add(&s->out, head.data, head.len - 1);
    buf_release(&head);
    return status;
}

/* A document holds counters and marks too, whatever a person would be shown. */
static tare_status write_report(struct stream *s, const struct report_input *in, const struct calltree *tree)
{
    struct view v = VIEW_INIT;
    struct view_options options = in->options.view;
    options.all_kinds = true;
    tare_status status = view_build(&v, tree, in->source, &options, s->err);
    if (status == TARE_OK) status = write_head(s, in, &v);
    if (status == TARE_OK) {
        buf_add_str(&s->out, ",\"samples\":");
        buf_add_str(&s->out, in->watched ? in->watched->data : "null");
        buf_add_str(&s->out, ",\"tree\":[");
        write_nodes(s, in, tree, &v);
        buf_add_str(&s->out, "\n]}\n");
        status = stream_poll(s);
    }
    view_release(&v);
    return s->status = status;
}

tare_status report_trace_json(struct stream *s, const struct report_input *in)
{
    if (!in->options.flat) return write_report(s, in, in->tree);
    struct calltree flat = CALLTREE_INIT;
    tare_status status = flat_build(&flat, in->tree, in->source->n_sites, s->err);
    if (status < 0) return s->status = status;
    status = write_report(s, in, &flat);
    flat_release(&flat);
    return status;
}
