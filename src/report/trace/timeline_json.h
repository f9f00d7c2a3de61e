/* SPDX-License-Identifier: MIT
 * timeline_json.h - what probes sampled into a trace as one JSON value, `tare.timeline/1`: times and columns for the
 * report page (docs/timeline-format.md). Bounded whatever the length of the recording: past TIMELINE_POINTS_MAX moments
 * neighbours are joined, and each column then also has its peaks. Never writes 0 for what was unknown. */
#ifndef REPORT_TIMELINE_JSON_H
#define REPORT_TIMELINE_JSON_H

#include "report/sink.h"
#include "trace/samples.h"

enum { TIMELINE_POINTS_MAX = 2000 };

/* One JSON object, no newline after it. */
tare_status timeline_json_write(struct stream *out, const struct samples *s);

#endif
