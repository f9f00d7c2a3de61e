/* SPDX-License-Identifier: MIT
 * calls_results.h - the recorded trees as times and as Python data. Our own cost is taken out of all times.
 * Never changes what was recorded. */
#ifndef PYTHON_CALLS_RESULTS_H
#define PYTHON_CALLS_RESULTS_H

#include "calls.h"

/* Folding may add as many nodes again and some, and a node's number has 24 bits. */
enum { CALLS_LIMIT_MOST = 8000000 };

/* Nanoseconds of a tick, as known now; and of a recording: one and the same from its end on, so that results
 * do not change while they are read. */
double calls_tick_ns(void);
double recorder_tick_ns(struct recorder *rec);

/* A thread's times in ns, by number of node. `total` is self and the children's total; `whole` also counts
 * what is recorded elsewhere because the limit was reached. */
struct call_times {
    size_t n;
    double *self, *total, *whole;
    struct call_node **nodes;
};
bool times_of(struct call_times *t, struct call_ctx *c); /* false: no memory */
void times_release(struct call_times *t);
void calls_open(struct recorder *rec,
                bool count); /* count what is open as if it ended now; false: take that back */

PyObject *calls_columns(
    struct recorder *rec); /* [(name, ident, threads, (parent, function, calls, self, total))] */
PyObject *calls_sums(
    struct recorder *rec); /* ([(function, primitive, calls, self, total)], the same with caller first) */

#endif
