/* SPDX-License-Identifier: MIT
 * report.h - a trace as an answer: text for people, JSON for programs (tare.report/1). Both read a
 * source and its call tree, add nothing to them, and say what is unknown, estimated or lost. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "report/sink.h"
#include "report/trace/source.h"
#include "report/trace/view.h"
#include "trace/samples.h"

struct report_options {
    struct view_options view;
    bool flat;
    int thread; /* index of the only thread reported; negative: all */
};

struct report_input {
    const struct event_source *source;
    const struct calltree *tree; /* of all threads, or of options.thread */
    struct report_options options;
    uint64_t samples, sampled_ns; /* of probes, beside the scopes, and the time they cover */
    const struct buf *watched;    /* their summary as JSON, for report_trace_json(); NULL: none */
};

tare_status report_trace_text(struct stream *s, const struct report_input *in);
tare_status report_trace_json(struct stream *s, const struct report_input *in);

/* What probes sampled: one JSON object, `tare.timeline/1`, no newline after it (timeline_json.c). */
enum { TIMELINE_POINTS_MAX = 2000 };
tare_status timeline_json_write(struct stream *out, const struct samples *s);

/* ---- what both say ---- */

/* Of the whole trace: earliest start to latest end. */
struct report_span {
    uint64_t start_unix_ns, duration_ns, events;
};
struct report_span report_span(const struct event_source *source);

/* The part of what was read that the instrument itself took, as far as it was subtracted. NAN: unknown. */
double report_own_share(const struct calltree *tree);
const char *report_clock_name(uint32_t clock);
const char *report_kind_name(uint32_t kind);

#endif
