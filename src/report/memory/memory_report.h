/* SPDX-License-Identifier: MIT
 * memory_report.h - who allocated memory and who held it: for people as tables, for programs with all sites. */
#ifndef REPORT_MEMORY_REPORT_H
#define REPORT_MEMORY_REPORT_H

#include "analyze/memory/memory_sum.h"
#include "report/answer.h"

void memory_report(struct answer *a, const struct memory_profile *p);

#endif
