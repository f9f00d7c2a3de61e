/* SPDX-License-Identifier: MIT
 * calls_results.h - what is made of the recorded trees, and what is known beside them: waiting, and the gauge of our
 * own cost. Nothing here runs at every event. */
#ifndef PYTHON_CALLS_RESULTS_H
#define PYTHON_CALLS_RESULTS_H

#include "calls.h"

#pragma GCC visibility push(hidden)

/* ---- aside ---- */

void ctx_settle(struct call_ctx *c, uint64_t now); /* the silence until now, from any thread */
void ctx_listen(struct call_ctx *c);               /* recording begins, or goes on after a pause */
/* By kind of call; one that was read too seldom goes by the others, and all by the weighing when none was
 * read: false. */
bool gauges_ns(struct call_recorder *rec, double out[CALL_KINDS]);
int aside_init(void);

/* ---- results ---- */

/* Folding may add as many nodes again and some, and a node's number has 24 bits. */
enum { CALLS_LIMIT_MOST = 8000000 };

/* Nanoseconds of a tick, as known now; and of a recording: one and the same from its end on, so that results
 * do not change while they are read. */
double calls_tick_ns(void);
double recorder_tick_ns(struct call_recorder *rec);

double recorder_preempted_ns(struct call_recorder *rec);

/* Adds the calls of the thread's sites that no node counts. */
void add_sites(const struct call_ctx *c, uint64_t calls[SITE_KINDS]);

/* Methods of a recorder. [(name, ident, threads, (parent, function, calls, self, total))] */
PyObject *calls_columns(PyObject *recorder, PyObject *none);
/* The threads with these idents are in no result from now on; their names. */
PyObject *calls_leave_out(PyObject *recorder, PyObject *idents);
/* ([(function, primitive, calls, self, total, waited of self, our cost in self, doubt in self and in total)],
 *  [(caller, function, primitive, calls, self, total)]) */
PyObject *calls_sums(PyObject *recorder, PyObject *none);

#pragma GCC visibility pop

#endif
