/* SPDX-License-Identifier: MIT
 * stacks_report.h - which functions the time of sampled threads went to: a table for people, all of it for programs, a
 * profile document for the page. */
#ifndef REPORT_STACKS_REPORT_H
#define REPORT_STACKS_REPORT_H

#include "analyze/stacks/stacks_sum.h"
#include "report/answer.h"

void stacks_report(struct answer *a, const struct stacks_profile *p, const struct stacks_wish *wish);
/* A document tare.profile/1, in ns. */
tare_status stacks_profile_json(struct buf *out, const struct stacks_profile *p, const char *name,
                                tare_error *err);

#endif
