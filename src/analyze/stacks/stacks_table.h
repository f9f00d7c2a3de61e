/* SPDX-License-Identifier: MIT
 * stacks_table.h - sampled stacks as a table of functions that shows all times beside each other: on a processor, own
 * and with all it calls; waiting; while holding the interpreter's lock. */
#ifndef ANALYZE_STACKS_TABLE_H
#define ANALYZE_STACKS_TABLE_H

#include "analyze/stacks/stacks_sum.h"

struct stacks_row { /* nanoseconds, of all threads together */
    const char *name, *file;
    double own_cpu, total_cpu, waits, gil; /* waits, gil: its own */
};
struct stacks_table {
    struct arena arena;
    struct stacks_row *rows; /* most own processor time first, then with callees, then by waiting */
    size_t n;
    double cpu_ns, gil_ns; /* sums */
    uint64_t threads, looks;
};

/* As stacks_sum(). Whatever it returns, release it. */
tare_status stacks_table(struct trace *t, struct stacks_table *out, tare_error *err);
void stacks_table_release(struct stacks_table *s);

#endif
