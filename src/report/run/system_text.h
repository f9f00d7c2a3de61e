/* SPDX-License-Identifier: MIT
 * system_text.h - the part of a run's text that tells of a watched program; nothing for cases that were not watched. */
#ifndef REPORT_SYSTEM_TEXT_H
#define REPORT_SYSTEM_TEXT_H

#include "report/trace/report.h"
#include "report/sink.h"
#include "run/run.h"

void system_text_write(struct stream *s, const struct report_style *style, const struct run *run);

#endif
