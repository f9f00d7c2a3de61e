/* SPDX-License-Identifier: MIT
 * work.h - a callable with its arguments, ready to be called again and again by vectorcall: what a case of tare.bench
 * runs, and what the worker of `tare bench py:..` runs. */
#ifndef PYTHON_WORK_H
#define PYTHON_WORK_H

#include "part.h"

struct work {
    PyObject_HEAD PyObject *function, *setup; /* setup NULL: none */
    PyObject *kwnames;                        /* tuple of names, or NULL */
    PyObject **slots;      /* one spare for bound methods, then the arguments; references */
    Py_ssize_t n_slots;    /* without the spare one */
    Py_ssize_t n_keywords; /* of these, at the end */
    long long units;
    bool timed; /* the function returns the nanoseconds that count */
    uint64_t yielded_ns;
};

extern PyTypeObject work_type;

/* One call; *ns is set when the work is timed. False: an exception is set. */
bool work_call(struct work *w, uint64_t *ns);

/* What is done before a call and is not part of it: setup, signals, and other threads' turn. False: exception. */
bool work_before(struct work *w);

/* The same as work_call() of a function that does nothing. */
bool work_call_nothing(struct work *w);

#endif
