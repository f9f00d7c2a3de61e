/* SPDX-License-Identifier: MIT
 * strand.c - see strand.h. */
#include "strand.h"

#include <string.h>

struct lane {
    struct strand base;
    struct strand *on; /* whose scopes are on the record */
    PyObject
        *context; /* in which that was found out: each task runs in one of its own; a reference of ours */
    struct strand *waiting; /* tasks with open scopes that do not run */
};

static __thread struct lane lane;

/* ---- who runs ---- */

/* asyncio's own functions, once it is there. */
static struct {
    PyObject *running_loop, *current_task, *tasks_by_loop;
} asyncio;

static bool asyncio_found(void)
{
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("_asyncio"))) return false;
    PyObject *module = PyDict_GetItemWithError(PyImport_GetModuleDict(), name);
    if (!module) return false;
    asyncio.current_task = PyObject_GetAttrString(module, "current_task"); /* from 3.12 on */
    if (!asyncio.current_task) PyErr_Clear();
    asyncio.tasks_by_loop = PyObject_GetAttrString(module, "_current_tasks");
    if (!asyncio.tasks_by_loop) PyErr_Clear();
    asyncio.running_loop = PyObject_GetAttrString(module, "_get_running_loop");
    return asyncio.running_loop != NULL;
}

static PyObject *task_of(PyObject *loop)
{
    if (asyncio.current_task) return PyObject_CallFunctionObjArgs(asyncio.current_task, loop, NULL);
    PyObject *task = asyncio.tasks_by_loop ? PyDict_GetItemWithError(asyncio.tasks_by_loop, loop) : NULL;
    Py_XINCREF(task);
    return task;
}

/* The task that runs in this thread, without a reference: it lives as long as it runs. NULL: none. */
static PyObject *current_task(void)
{
    if (!asyncio.running_loop && !asyncio_found()) {
        PyErr_Clear();
        return NULL;
    }
    PyObject *loop = PyObject_CallNoArgs(asyncio.running_loop);
    PyObject *task = loop && loop != Py_None ? task_of(loop) : NULL;
    if (PyErr_Occurred()) PyErr_Clear();
    Py_XDECREF(loop);
    Py_XDECREF(task);
    return task == Py_None ? NULL : task;
}

/* ---- switching ---- */

static void pause_from(struct strand *s, size_t bottom)
{
    for (size_t i = s->n; i-- > bottom;) tare_pause(&s->open[i].scope);
}

/* What a task waits is part of its scopes; what the reader of a generator does between two steps is not
 * part of those. */
static void resume_from(struct strand *s, size_t bottom, bool wait_counts)
{
    for (size_t i = bottom; i < s->n; i++) tare_resume(&s->open[i].scope, wait_counts);
}

static struct strand *strand_of(PyObject *task)
{
    if (!task) return &lane.base;
    for (struct strand **at = &lane.waiting; *at; at = &(*at)->next) {
        struct strand *s = *at;
        if (s->task != task) continue;
        *at = s->next;
        return s;
    }
    struct strand *s = PyMem_Calloc(1, sizeof *s);
    if (s) s->task = Py_NewRef(task);
    return s;
}

static void strand_leave(struct strand *s)
{
    if (s == &lane.base) return;
    if (s->n) {
        s->next = lane.waiting;
        lane.waiting = s;
        return;
    }
    Py_DECREF(s->task);
    PyMem_Free(s->open);
    PyMem_Free(s);
}

/* The thread's own scopes stay on the record below those of its tasks: run_until_complete() was called in them. */
static struct strand *strand_switch(PyObject *task)
{
    struct strand *from = lane.on, *to = strand_of(task);
    if (!to) return NULL;
    if (from != &lane.base) pause_from(from, 0);
    lane.on = to;
    if (to != &lane.base) resume_from(to, 0, true);
    strand_leave(from);
    return to;
}

static struct strand *find_out(PyObject *context)
{
    Py_XINCREF(context);
    Py_XDECREF(lane.context);
    lane.context = context;
    PyObject *task = current_task();
    return lane.on->task == task ? lane.on : strand_switch(task);
}

/* Asking asyncio costs more than a scope; there is no public way to the current context that makes none. */
struct strand *strand_now(void)
{
    if (!lane.on) lane.on = &lane.base;
    PyObject *context = PyThreadState_Get()->context;
    return context == lane.context ? lane.on : find_out(context);
}

bool strand_any(void)
{
    return lane.base.n || lane.waiting || (lane.on && lane.on->n);
}

/* ---- opening and ending ---- */

static bool strand_room(struct strand *s, size_t more)
{
    if (s->n + more <= s->cap) return true;
    size_t cap = 2 * (s->n + more) + 6;
    struct open_scope *open = PyMem_Realloc(s->open, cap * sizeof *open);
    if (!open) return false;
    s->open = open;
    s->cap = cap;
    return true;
}

void strand_push(struct strand *s, PyObject *of, tare_site *site)
{
    if (!strand_room(s, 1)) return;
    struct open_scope *o = &s->open[s->n++];
    o->of = Py_NewRef(of);
    tare_open(&o->scope, site);
}

bool strand_pop(struct strand *s, PyObject *of)
{
    size_t at = s->n;
    while (at && s->open[at - 1].of != of) at--;
    if (!at--) return false;
    pause_from(s, at + 1); /* others were opened since and live on: a generator, a stack of exits */
    tare_end(&s->open[at].scope);
    s->n--;
    memmove(&s->open[at], &s->open[at + 1], (s->n - at) * sizeof *s->open);
    resume_from(s, at, true);
    Py_DECREF(of);
    return true;
}

/* ---- stretches ---- */

void stretch_resume(struct strand *s, struct stretch *from)
{
    size_t bottom = s->n;
    if (!from->n || !strand_room(s, from->n)) return;
    memcpy(&s->open[bottom], from->open, from->n * sizeof *s->open);
    s->n += from->n;
    PyMem_Free(from->open);
    *from = (struct stretch){NULL, 0};
    resume_from(s, bottom, false);
}

void stretch_pause(struct strand *s, size_t bottom, struct stretch *to)
{
    size_t n = s->n > bottom ? s->n - bottom : 0;
    to->open = n ? PyMem_Malloc(n * sizeof *to->open) : NULL;
    if (!to->open) return; /* they stay open until they are ended */
    pause_from(s, bottom);
    memcpy(to->open, &s->open[bottom], n * sizeof *to->open);
    to->n = n;
    s->n = bottom;
}

void stretch_drop(struct stretch *gone)
{
    for (size_t i = 0; i < gone->n; i++) Py_DECREF(gone->open[i].of);
    PyMem_Free(gone->open);
    *gone = (struct stretch){NULL, 0};
}
