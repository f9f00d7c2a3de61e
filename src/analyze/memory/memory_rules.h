/* SPDX-License-Identifier: MIT
 * memory_rules.h - what is worth knowing about the memory of a process, with the numbers behind it and what to do. The
 * rows are in memory_rules.c; docs/memory.md has a line for each. */
#ifndef ANALYZE_MEMORY_RULES_H
#define ANALYZE_MEMORY_RULES_H

#include "analyze/memory/memory_group.h"
#include "run/run.h"

struct memory_findings {
    struct run_finding *all; /* in the arena */
    size_t n;
};
/* `lines`: the process by line. */
tare_status memory_find(const struct memory_process *p, const struct memory_groups *lines, struct arena *a,
                        struct memory_findings *out, tare_error *err);

#endif
