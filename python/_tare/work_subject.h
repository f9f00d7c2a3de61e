/* SPDX-License-Identifier: MIT
 * work_subject.h - Python callables as a subject of the harness (src/subject/callback.h). An exception is kept aside
 * with its traceback until the harness has put everything away, and ends the bench at once. */
#ifndef PYTHON_WORK_SUBJECT_H
#define PYTHON_WORK_SUBJECT_H

#include "subject/callback.h"
#include "work.h"

struct weighed {      /* what a subject is made for */
    PyObject *make;   /* make(batch, length) -> Work */
    PyObject *raised; /* the first exception, or NULL */
    const char *name, *path;
    bool setup, timed; /* of all works that `make` gives */
};

tare_status work_subject_open(struct subject **out, struct weighed *w, tare_error *err);

/* Take the exception that is set into w->raised, unless there is one; TARE_DENIED, and the type's name in err. */
tare_status weighed_raise(struct weighed *w, tare_error *err);
/* Set it as the exception of this thread; w->raised is NULL then. */
void weighed_restore(struct weighed *w);

#endif
