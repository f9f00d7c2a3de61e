/* SPDX-License-Identifier: MIT
 * monitoring.h - sys.monitoring, 3.12 and newer, as the profilers use it: a tool number, callbacks, events.
 * There is no C interface to subscribe with, so the callbacks are built-in functions registered through the
 * Python one. What may fail returns -1 with an exception set. */
#ifndef PYTHON_MONITORING_H
#define PYTHON_MONITORING_H

#include "part.h"

#if PY_VERSION_HEX >= 0x030C0000

typedef PyObject *(*monitor_function)(PyObject *self, PyObject *const *args, Py_ssize_t n);

struct monitor_event {
    const char *name; /* as sys.monitoring.events has it */
    monitor_function function;
    int tag; /* the profiler's own: by it events are chosen */
    /* Filled in when they are first needed: */
    PyMethodDef def;
    PyObject *callback;
    long bit;
};

struct monitor_tool {
    const char *name;
    const int *ids; /* that it may have, the best first, ended by -1 */
    struct monitor_event *events;
    size_t n_events;
    int id; /* that it has */
};

/* An attribute of sys.monitoring, or NULL with an exception set. */
PyObject *monitor_get(const char *name);

/* A number for the tool, with its callbacks registered; no events come yet. */
int monitor_take(struct monitor_tool *t);
/* Is the number still the tool's? A program may free any tool's number and register callbacks of its own. */
bool monitor_is_ours(const struct monitor_tool *t);
/* Ends its events and frees its number. Never fails; an exception that is set stays. */
void monitor_give_back(const struct monitor_tool *t);

/* The bits of the events with a tag. After monitor_take(). */
long monitor_mask(const struct monitor_tool *t, int tag);
int monitor_set(const struct monitor_tool *t, long mask);
int monitor_set_local(const struct monitor_tool *t, PyObject *code, long mask);
int monitor_restart(void); /* places that were switched off tell of themselves again */

#endif
#endif
