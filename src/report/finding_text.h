/* SPDX-License-Identifier: MIT
 * finding_text.h - a finding for people: the same lines in every report. */
#ifndef REPORT_FINDING_TEXT_H
#define REPORT_FINDING_TEXT_H

#include "report/sink.h"
#include "run/run.h"

/* What was found, of which case where there are several, and below it what to do; then, where the rule tells them, what
 * can be won at most, the numbers behind it and what would disprove it. */
void text_finding(struct stream *s, const struct run_finding *f, bool several_cases);

#endif
