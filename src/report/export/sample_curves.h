/* SPDX-License-Identifier: MIT
 * sample_curves.h - what probes sampled into a trace, as curves that timelines draw: the quantities of `tare top` and
 * of run documents, and each series of its own, on the trace's time axis. A point is told where a value differs from
 * the one before, a rate at the begin of the time that it is of: viewers draw a point's value on to the next one, and
 * know no gap. So a quantity that was not read at every sample is no curve but bars, one where it was read. */
#ifndef REPORT_SAMPLE_CURVES_H
#define REPORT_SAMPLE_CURVES_H

#include "core/error.h"
#include "trace/reader.h"
#include "trace/samples.h"

struct sample_bar {
    uint64_t start, end; /* ns of the trace: from the sample that it was read for to the next */
    double value;
    const char *text, *unit; /* the value in words; its unit, "": none */
};

struct sample_curves_to {
    void *ctx;
    /* Before its first point. Numbers count from 0. Borrowed texts: "disk.busy[sda]", "B/s"; unit "": a share. */
    tare_status (*curve)(void *ctx, uint32_t number, const char *name, const char *unit);
    tare_status (*point)(void *ctx, uint32_t number, uint64_t at_ns, double value);
    /* Instead of these two, of what has gaps; numbers count on. */
    tare_status (*track)(void *ctx, uint32_t number, const char *name);
    tare_status (*bar)(void *ctx, uint32_t number, const struct sample_bar *b);
    tare_status (*mark)(void *ctx, uint64_t at_ns, const char *text); /* alerts, phases, notes */
};
/* In time order. `t` NULL: times count from the first sample. */
tare_status sample_curves(const struct samples *s, const struct trace *t, const struct sample_curves_to *to,
                          tare_error *err);

#endif
