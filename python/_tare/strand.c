/* SPDX-License-Identifier: MIT
 * strand.c - see strand.h. */
#include "strand.h"

#include <string.h>

#include "core/map.h"

/* One thread. Whoever runs can have changed only where the interpreter changed the context: tasks and
 * greenlets have one of their own each, and entering the same one again counts, too. */
struct lane {
    struct strand base;
    struct strand *on;         /* whose scopes are on the record */
    uint64_t on_address;       /* of its task; 0: the thread's own */
    uint64_t state, switch_no; /* for which that was found out */
    struct map_u64 waiting;    /* address of a task -> its strand: it has open scopes and does not run */
    PyObject *thread;          /* as threading knows it; NULL: it does not */
};

static __thread struct lane *mine;

/* ---- who runs ---- */

/* Functions of others, once these are there. */
static struct {
    PyObject *running_loop, *current_task, *tasks_by_loop, *current_greenlet;
} others;

static PyObject *attribute_or_null(PyObject *of, const char *name)
{
    PyObject *found = of ? PyObject_GetAttrString(of, name) : NULL;
    if (!found) PyErr_Clear();
    return found;
}

static bool asyncio_found(void)
{
    PyObject *module = loaded_module("_asyncio");
    others.current_task = attribute_or_null(module, "current_task"); /* from 3.12 on */
    others.tasks_by_loop = attribute_or_null(module, "_current_tasks");
    others.running_loop = attribute_or_null(module, "_get_running_loop");
    return others.running_loop != NULL;
}

static bool greenlet_found(void)
{
    others.current_greenlet = attribute_or_null(loaded_module("greenlet"), "getcurrent");
    return others.current_greenlet != NULL;
}

static PyObject *task_of(PyObject *loop)
{
    if (others.current_task) return PyObject_CallFunctionObjArgs(others.current_task, loop, NULL);
    PyObject *task = others.tasks_by_loop ? PyDict_GetItemWithError(others.tasks_by_loop, loop) : NULL;
    return Py_XNewRef(task);
}

static PyObject *current_task(void)
{
    if (!others.running_loop && !asyncio_found()) return NULL;
    PyObject *loop = PyObject_CallNoArgs(others.running_loop);
    PyObject *task = loop && loop != Py_None ? task_of(loop) : NULL;
    Py_XDECREF(loop);
    if (task == Py_None) Py_CLEAR(task);
    return task;
}

/* A thread's first greenlet, which has no parent, is the thread itself. */
static PyObject *current_greenlet(void)
{
    if (!others.current_greenlet && !greenlet_found()) return NULL;
    PyObject *now = PyObject_CallNoArgs(others.current_greenlet);
    PyObject *parent = now ? attribute_or_null(now, "parent") : NULL;
    if (!parent || parent == Py_None) Py_CLEAR(now);
    Py_XDECREF(parent);
    return now;
}

/* The task or greenlet that runs in this thread, without a reference: it lives as long as it runs. NULL:
 * none. Greenlets within a task run nested in it, so that the task is what counts. */
static PyObject *runner_now(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *now = current_task();
    if (!now) now = current_greenlet();
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    Py_XDECREF(now);
    return now;
}

/* ---- strands ---- */

static bool is_owner(const struct strand *s, PyObject *runner)
{
    if (!s->owner || !runner) return !s->owner && !runner;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *owner;
    if (PyWeakref_GetRef(s->owner, &owner) <= 0) return false;
    Py_DECREF(owner);
#else
    PyObject *owner = PyWeakref_GetObject(s->owner);
#endif
    return owner == runner;
}

static struct strand *strand_new(PyObject *runner)
{
    struct strand *s = PyMem_Calloc(1, sizeof *s);
    if (s && !(s->owner = PyWeakref_NewRef(runner, NULL))) {
        PyErr_Clear();
        PyMem_Free(s);
        s = NULL;
    }
    return s;
}

/* Its scopes are those of a task that will never run again, or there are none. */
static void strand_release(struct strand *s)
{
    for (size_t i = 0; i < s->n; i++) Py_DECREF(s->open[i].of);
    Py_XDECREF(s->owner);
    PyMem_Free(s->open);
}

static void strand_free(struct strand *s)
{
    strand_release(s);
    PyMem_Free(s);
}

static struct strand *strand_at(uint64_t value)
{
    return (struct strand *)(uintptr_t)value;
}

/* The runner's strand, taken out of those that wait; an address may have passed on to another task. */
static struct strand *strand_of(PyObject *runner)
{
    uint64_t waits;
    if (!runner) return &mine->base;
    if (!map_u64_remove(&mine->waiting, (uint64_t)(uintptr_t)runner, &waits)) return strand_new(runner);
    if (is_owner(strand_at(waits), runner)) return strand_at(waits);
    strand_free(strand_at(waits)); /* of an abandoned task in the same place of memory */
    return strand_new(runner);
}

/* ---- names: before 3.14 the system is not told those of threading, and it cuts them ---- */

/* Asking threading.current_thread() would make an entry for a thread that it does not know. */
static PyObject *known_threads(void)
{
    PyObject *table = attribute_or_null(loaded_module("threading"), "_active");
    if (table && !PyDict_Check(table)) Py_CLEAR(table);
    return table;
}

PyObject *known_thread(unsigned long ident)
{
    PyObject *table = known_threads(), *key = PyLong_FromUnsignedLong(ident);
    PyObject *found = table && key ? PyDict_GetItemWithError(table, key) : NULL;
    Py_XINCREF(found);
    Py_XDECREF(key);
    Py_XDECREF(table);
    PyErr_Clear();
    return found;
}

/* tid 0: the thread that runs. */
static void hand_name(PyObject *thread, uint32_t tid)
{
    PyObject *name = attribute_or_null(thread, "_name");
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (text) tare_thread_name(tid, text);
    Py_XDECREF(name);
    PyErr_Clear();
}

void strand_names(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *table = known_threads(), *threads = table ? PyDict_Values(table) : NULL;
    for (Py_ssize_t i = 0; threads && i < PyList_GET_SIZE(threads); i++) {
        PyObject *thread = PyList_GET_ITEM(threads, i), *tid = attribute_or_null(thread, "native_id");
        unsigned long n = tid && PyLong_Check(tid) ? PyLong_AsUnsignedLong(tid) : 0;
        PyErr_Clear();
        if (n && n <= UINT32_MAX) hand_name(thread, (uint32_t)n);
        Py_XDECREF(tid);
    }
    Py_XDECREF(threads);
    Py_XDECREF(table);
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

/* ---- the lane of a thread: goes with the interpreter's state of the thread ---- */

static void lane_free(PyObject *capsule)
{
    struct lane *gone = PyCapsule_GetPointer(capsule, NULL);
    const struct map_u64_slot *slot;
    if (gone == mine && gone->thread) hand_name(gone->thread, 0); /* it may have another by now */
    if (gone == mine) mine = NULL;
    Py_XDECREF(gone->thread);
    if (gone->on != &gone->base) strand_free(gone->on);
    for (size_t at = 0; (slot = map_u64_next(&gone->waiting, &at));) strand_free(strand_at(slot->value));
    map_u64_release(&gone->waiting);
    strand_release(&gone->base);
    PyMem_Free(gone);
}

/* The thread's state owns the lane through the capsule, so that it goes when the thread does. Where the
 * state does not take it, dropping the capsule frees the lane and clears `mine` again: that is what the
 * last line asks. No exception leaves. */
static bool lane_make(void)
{
    PyObject *state = PyThreadState_GetDict(); /* borrowed */
    struct lane *made = state ? PyMem_Calloc(1, sizeof *made) : NULL;
    PyObject *capsule = made ? PyCapsule_New(made, NULL, lane_free) : NULL;
    if (!capsule) {
        PyMem_Free(made);
        PyErr_Clear();
        return false;
    }
    made->on = &made->base;
    made->thread = known_thread(PyThread_get_thread_ident());
    if (made->thread) hand_name(made->thread, 0);
    mine = made;
    if (PyDict_SetItemString(state, "tare.scopes", capsule) < 0) PyErr_Clear();
    Py_DECREF(capsule);
    return mine != NULL;
}

/* ---- switching ---- */

static void pause_from(struct strand *s, size_t bottom)
{
    for (size_t i = s->n; i-- > bottom;) tare_pause(&s->open[i].scope);
}

/* That another task runs is seen when it opens or ends a scope; when this one stopped is not known. */
static void left_already(struct strand *s)
{
    for (size_t i = s->n; i--;) tare_paused_(&s->open[i].scope);
}

/* What a task waits is part of its scopes; what the reader of a generator does between two steps is not
 * part of those. */
static void resume_from(struct strand *s, size_t bottom, bool wait_counts)
{
    for (size_t i = bottom; i < s->n; i++) tare_resume(&s->open[i].scope, wait_counts);
}

/* Of a strand that runs no more. Without memory to keep it by, its scopes are lost. */
static void strand_leave(struct strand *s, uint64_t address)
{
    if (s == &mine->base) return;
    if (s->n && map_u64_put(&mine->waiting, address, (uint64_t)(uintptr_t)s, NULL) == TARE_OK) return;
    strand_free(s);
}

/* The thread's own scopes stay on the record below those of its tasks: run_until_complete() was called in
 * them. */
static struct strand *strand_switch(PyObject *runner)
{
    struct strand *from = mine->on, *to = strand_of(runner);
    if (!to) return NULL;
    if (from != &mine->base) left_already(from);
    mine->on = to;
    if (to != &mine->base) resume_from(to, 0, true);
    strand_leave(from, mine->on_address);
    mine->on_address = (uint64_t)(uintptr_t)runner;
    return to;
}

/* Asks who runs, and notes for which state of the interpreter the answer holds. */
static struct strand *find_out(const PyThreadState *state)
{
    if (!mine && !lane_make()) return NULL;
    PyObject *runner = runner_now();
    mine->state = state->id;
    mine->switch_no = state->context_ver;
    return is_owner(mine->on, runner) ? mine->on : strand_switch(runner);
}

/* Asking who runs costs more than a scope. There is no public way to learn that nothing was switched. */
struct strand *strand_now(void)
{
    const PyThreadState *state = PyThreadState_Get();
    if (mine && mine->switch_no == state->context_ver && mine->state == state->id) return mine->on;
    return find_out(state);
}

bool strand_any(void)
{
    return mine && (mine->base.n || mine->waiting.n || mine->on->n);
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
