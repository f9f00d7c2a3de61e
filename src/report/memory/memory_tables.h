/* SPDX-License-Identifier: MIT
 * memory_tables.h - the sites and groups of a process: tables by question for people, lists for programs. */
#ifndef REPORT_MEMORY_TABLES_H
#define REPORT_MEMORY_TABLES_H

#include "analyze/memory/memory_group.h"
#include "report/answer.h"

void memory_say_heading(struct answer *a, const char *heading);
void memory_say_tables(struct answer *a, const struct memory_process *p, const struct memory_groups *all);
void memory_put_sites(struct answer *a, const struct memory_process *p);
void memory_put_groups(struct answer *a, const struct memory_groups *all);
void memory_put_times(struct answer *a, const struct memory_process *p);

#endif
