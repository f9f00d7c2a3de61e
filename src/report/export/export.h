/* SPDX-License-Identifier: MIT
 * export.h - a trace in the formats of other tools: one row, one file each. Everything streams: memory does
 * not grow with the number of events. Names may hold anything; what is written is valid in its format. */
#ifndef REPORT_EXPORT_H
#define REPORT_EXPORT_H

#include "analyze/calls/calltree.h"
#include "report/sink.h"
#include "report/trace/source.h"
#include "trace/samples.h"

struct export_input {
    const struct event_source *source;
    struct trace *trace;           /* for `tare`, which copies it, and for GPUs; a test may leave it NULL */
    const struct samples *samples; /* of probes; NULL: none */
    const struct calltree *tree;   /* NULL unless the format asked for it */
    bool gross;                    /* weights as read, the instrument's cost still in */
};

enum export_flags {
    EXPORT_EVENTS = 1, /* a timeline: refuses a trace without events, GPU work or samples */
    EXPORT_TREE = 2,   /* needs the call tree */
    EXPORT_TREE_IF_NO_EVENTS = 4,
    EXPORT_BINARY = 8, /* not for a terminal */
};

struct export_format {
    const char *name, *extension, *help;
    unsigned flags;
    tare_status (*write)(struct stream *s, const struct export_input *in);
};

/* To add one: a file that defines `const struct export_format export_NAME`, and a row here. */
#define EXPORT_FORMATS(X) X(chrome) X(perfetto) X(speedscope) X(folded) X(tare)
#define X(name) extern const struct export_format export_##name;
EXPORT_FORMATS(X)
#undef X
extern const struct export_format *const export_formats[]; /* ends with NULL */

/* Does `in` hold what the format needs? Explains what is missing and how to record it. */
tare_status export_check(const struct export_format *format, const struct event_source *source,
                         tare_error *err);
bool export_needs_tree(const struct export_format *format, const struct event_source *source);

/* What a viewer shows with a scope that is not what it seems. */
#define EXPORT_WEIGHED "inner scopes left out to weigh"
#define EXPORT_UNENDED "never ended"

/* Sum so far of each counter of the thread being written: what viewers draw. Saturates. */
int64_t export_sum(int64_t sum, int64_t more);

/* Name of a thread for people: its own, or else "thread TID"; with its numbers: "main (100/101)". */
void export_thread_name(struct buf *b, const struct trace_thread *t);
void export_thread_label(struct buf *b, const struct event_source *source, const struct trace_thread *t);
const char *export_name(const struct event_source *source); /* of the whole: the command, or else the file */

#endif
