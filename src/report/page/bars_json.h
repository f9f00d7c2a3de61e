/* SPDX-License-Identifier: MIT
 * bars_json.h - what the page draws on a time axis: a trace as a tare.bars/1 document (docs/bars-format.md), with the
 * document about its GPUs in it where there is one. */
#ifndef REPORT_PAGE_BARS_JSON_H
#define REPORT_PAGE_BARS_JSON_H

#include "report/sink.h"
#include "trace/reader.h"

#define BARS_SCHEMA "tare.bars/1"

/* One JSON object, no newline after it. Several traces are those of the ranks of a job. `most`: bars at the most, 0 for
 * PAGE_BARS_MOST. */
tare_status bars_json_write(struct stream *s, struct trace *const *traces, size_t n, uint64_t most);
bool bars_json_has_any(struct trace *t); /* events of scopes, or a GPU's */

#endif
