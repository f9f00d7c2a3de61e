/* SPDX-License-Identifier: MIT
 * memory_report.h - who allocated memory and who held it: for people as tables, for programs with all sites. */
#ifndef REPORT_MEMORY_REPORT_H
#define REPORT_MEMORY_REPORT_H

#include "analyze/memory/memory_group.h"
#include "report/answer.h"

struct memory_report_options {
    enum memory_by by;
    uint64_t oom_kills; /* that were seen while the trace was recorded */
    bool no_sites;      /* JSON without whole stacks */
};
/* Sums and findings are made in the profile's arena. */
tare_status memory_report(struct answer *a, struct memory_profile *p, const struct memory_report_options *o);

#endif
