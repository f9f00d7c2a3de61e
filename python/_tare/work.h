/* SPDX-License-Identifier: MIT
 * work.h - a callable with its arguments, ready to be called again and again by vectorcall: what a case of tare.bench
 * runs, and what the worker of `tare bench py:..` runs. */
#ifndef PYTHON_WORK_H
#define PYTHON_WORK_H

#include "part.h"
#include "subject/callback.h"

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

/* ---- as a subject of the harness (src/subject/callback.h): an exception is kept aside with its traceback until
 * the harness has put everything away. Where other cases are to go on, one of class Exception ends its case alone, and
 * lets go of what its frames held: a batch that did not fit into memory must not stay there ---- */

struct weighed {      /* what a subject is made for */
    PyObject *make;   /* make(batch, length) -> Work */
    PyObject *raised; /* the first exception, or the one that ended all; NULL: none */
    bool spares;      /* others go on after an Exception */
    bool ended;       /* `raised` ends all: nothing is called any more */
    const char *name, *path;
    bool setup, timed; /* of all works that `make` gives */
};

tare_status work_subject_open(struct subject **out, struct weighed *w, tare_error *err);

/* Take the exception that is set into w->raised, unless there is one that counts more; TARE_DENIED, and
 * "MemoryError: no memory" in err. */
tare_status weighed_raise(struct weighed *w, tare_error *err);
/* Set it as the exception of this thread; w is as before the first then. */
void weighed_restore(struct weighed *w);

#endif
