/* SPDX-License-Identifier: MIT
 * calls_kinds.h - what the function profiler tells apart because recording it costs differently: kinds of calls, and
 * events of the places that call. Values only. */
#ifndef PYTHON_CALLS_KINDS_H
#define PYTHON_CALLS_KINDS_H

#include <stdint.h>

/* Events tell of Python and C; that a Python function is resumed (a generator, a coroutine) its code tells,
 * and that a C function is bound to an object, which costs the interpreter more, its definition. */
enum call_kind { CALL_PYTHON, CALL_C, CALL_RESUMED, CALL_METHOD, CALL_KINDS };

/* Events of call sites that no node counts, and that cost all the same (3.12+): what they call is a Python function,
 * which tells of itself, or neither that nor a C function (a class, an object), of whose call both ends are told. */
enum site_kind { SITE_PYTHON, SITE_OTHER, SITE_KINDS };
struct site_events {
    uint64_t called, left; /* `left`: of what is no Python function */
};

/* How long a known piece of recording took, read now and then while the program runs: by the ticks, eight
 * bins an octave. */
enum { GAUGES_LEAST = 20, GAUGE_BINS = 128 };
struct gauge {
    uint64_t n[GAUGE_BINS], ticks[GAUGE_BINS];
};

enum { COST_INNER, COST_OUTER }; /* of a call: in the callee's own time, in its caller's */

/* Costs of calls, then of sites: those are all outer. */
enum { COST_SITES = CALL_KINDS, COST_KINDS = COST_SITES + SITE_KINDS };

#endif
