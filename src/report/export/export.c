/* SPDX-License-Identifier: MIT
 * export.c - what all export formats share. Writes nothing. */
#include "report/export/export.h"

#include <inttypes.h>
#include <string.h>

#include "core/str.h"
#include "report/text.h"

#define X(name) &export_##name,
const struct export_format *const export_formats[] = {EXPORT_FORMATS(X) NULL};
#undef X

bool export_needs_tree(const struct export_format *format, const struct event_source *source)
{
    if (format->flags & EXPORT_TREE) return true;
    return (format->flags & EXPORT_TREE_IF_NO_EVENTS) && !source->has_events;
}

tare_status export_check(const struct export_format *format, const struct event_source *source,
                         tare_error *err)
{
    if (!(format->flags & EXPORT_EVENTS) || source->has_events || source->has_gpu || source->has_samples)
        return TARE_OK;
    if (!source->has_tree)
        return error_set(err, TARE_INVALID, "%s: holds no events and no samples, and %s shows a timeline",
                         source->path, format->name);
    return error_set(err, TARE_INVALID,
                     "%s: holds a call tree but no events, and %s shows a timeline; record again without "
                     "TARE_MODE=aggregate, or export as speedscope or folded",
                     source->path, format->name);
}

int64_t export_sum(int64_t sum, int64_t more)
{
    int64_t out;
    if (!__builtin_add_overflow(sum, more, &out)) return out;
    return more > 0 ? INT64_MAX : INT64_MIN;
}

void export_thread_name(struct buf *b, const struct trace_thread *t)
{
    if (*t->name)
        str_add_utf8(b, t->name, text_clip(t->name, TEXT_NAME_MAX));
    else
        buf_printf(b, "thread %" PRIu32, t->tid);
}

void export_thread_label(struct buf *b, const struct event_source *source, const struct trace_thread *t)
{
    export_thread_name(b, t);
    buf_printf(b, " (%" PRIu32 "/%" PRIu32 ")", source_process(source, t->process)->pid, t->tid);
}

const char *export_name(const struct event_source *source)
{
    return source->n_processes ? source_process(source, 0)->command : source->path;
}
