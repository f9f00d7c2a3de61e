/* SPDX-License-Identifier: MIT
 * report.c - facts about a trace that the text and the JSON report share. Writes nothing. */
#include "report/trace/report.h"

#include <math.h>

struct report_span report_span(const struct event_source *source)
{
    struct report_span span = {0};
    uint64_t start = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < source->n_processes; i++) {
        const struct trace_process *p = source_process(source, i);
        if (p->start_ns < start) {
            start = p->start_ns;
            span.start_unix_ns = p->start_unix_ns;
        }
        if (p->end_ns > end) end = p->end_ns;
    }
    span.duration_ns = end > start ? end - start : 0;
    for (uint32_t i = 0; i < source->n_threads; i++) span.events += source_thread(source, i)->events;
    return span;
}

double report_own_share(const struct calltree *tree)
{
    if (!tree->n_nodes) return NAN;
    double read = tree->nodes[0].gross_total_ns, net = tree->nodes[0].total_ns.value;
    return read > 0 ? (read - net) / read : NAN;
}

const char *report_clock_name(uint32_t clock)
{
    return clock == TARE_CLOCK_FAST ? "fast" : "ordered";
}

const char *report_kind_name(uint32_t kind)
{
    if (kind == TARE_SITE_COUNTER) return "counter";
    return kind == TARE_SITE_MARK ? "mark" : "scope";
}
