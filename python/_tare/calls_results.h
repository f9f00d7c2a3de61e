/* SPDX-License-Identifier: MIT
 * calls_results.h - the recorded trees as Python data, our own cost taken out of all times. */
#ifndef PYTHON_CALLS_RESULTS_H
#define PYTHON_CALLS_RESULTS_H

#include "calls.h"

/* Folding may add as many nodes again and some, and a node's number has 24 bits. */
enum { CALLS_LIMIT_MOST = 8000000 };

/* Nanoseconds of a tick, as known now; and of a recording: one and the same from its end on, so that results
 * do not change while they are read. */
double calls_tick_ns(void);
double recorder_tick_ns(struct call_recorder *rec);

/* [(name, ident, threads, (parent, function, calls, self, total))] */
PyObject *calls_columns(struct call_recorder *rec);
/* ([(function, primitive, calls, self, total)], the same with caller first) */
PyObject *calls_sums(struct call_recorder *rec);

#endif
