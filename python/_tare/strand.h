/* SPDX-License-Identifier: MIT
 * strand.h - which Python scopes are open, for whom. Each thread has a base strand; each asyncio task with
 * an open scope has one of its own. Only the strand that runs has its scopes on the thread's record
 * (tare_open); those of the others are paused. All of it happens under the GIL. Never raises: what cannot
 * be recorded is left out. */
#ifndef PYTHON_STRAND_H
#define PYTHON_STRAND_H

#include "part.h"

struct open_scope {
    tare_scope scope;
    PyObject *of; /* who opened it; a reference of ours */
};

struct strand {
    PyObject *owner; /* NULL: the thread's own; else a weak reference to the task: it may be abandoned */
    struct open_scope *open;
    size_t n, cap;
};

/* The strand that runs now, its scopes on the record. NULL without memory. */
struct strand *strand_now(void);
/* The threading.Thread of a thread, a new reference; NULL, without an exception: threading does not know it. */
PyObject *known_thread(unsigned long ident);
/* The names that threading has for its threads now, for the trace. */
void strand_names(void);
/* Whether any scope of this thread is open. */
bool strand_any(void);

void strand_push(struct strand *s, PyObject *of, tare_site *site);
/* Ends the latest scope that `of` opened, wherever it is. False: none is open. */
bool strand_pop(struct strand *s, PyObject *of);

/* A stretch of scopes that comes and goes as one: a generator with what it opened and did not close before
 * it yielded. */
struct stretch {
    struct open_scope *open;
    size_t n;
};
void stretch_resume(struct strand *s, struct stretch *from); /* on top of s; *from is empty then */
void stretch_pause(struct strand *s, size_t bottom, struct stretch *to); /* all from `bottom` on */
void stretch_drop(struct stretch *gone);                                 /* that will never run again */

#endif
