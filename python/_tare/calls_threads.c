/* SPDX-License-Identifier: MIT
 * calls_threads.c - which context an event belongs to: by thread, and within a thread by greenlet. Runs no
 * Python code of the program, and leaves a pending exception as it found it. */
#include "calls_results.h"
#include "strand.h"

#include "core/mem.h"

enum { SEPARATE_THREADS = 1024 }; /* beyond that, new threads go on where ended ones stopped */

uint64_t calls_generation = 1;
__thread struct calls_mine calls_mine __attribute__((tls_model("initial-exec")));

/* ---- the end of a thread ---- */

/* The thread is gone, or somebody set another profile function: what is open has ended. */
static void holder_dealloc(PyObject *self)
{
    struct call_ctx *c = ((struct call_holder *)self)->ctx;
    if (c) {
        if (calls_active == c->rec) ctx_close(c, calls_now());
        c->holder = NULL;
        c->ended = true;
    }
    object_free(self);
}

static PyType_Slot holder_slots[] = {
    {Py_tp_dealloc, (void *)holder_dealloc},
    {0, NULL},
};

static PyType_Spec holder_spec = {
    .name = "tare._tare._Holder",
    .basicsize = sizeof(struct call_holder),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = holder_slots,
};

static PyTypeObject *holder_type;

struct call_holder *holder_new(struct call_ctx *c)
{
    struct call_holder *h = PyObject_New(struct call_holder, holder_type);
    if (!h) return NULL;
    h->ctx = c;
    c->holder = h;
    return h;
}

/* ---- contexts ---- */

struct call_ctx *threads_known(const struct call_recorder *rec, PyThreadState *ts)
{
    uint64_t id = PyThreadState_GetID(ts);
    for (size_t i = rec->threads.n; i-- > 0;)
        if (rec->threads.items[i]->id == id) return rec->threads.items[i];
    return NULL;
}

struct call_ctx *threads_of(struct call_recorder *rec, PyThreadState *ts)
{
    struct call_ctx *c = threads_known(rec, ts);
    if (c) return c;
    for (size_t i = 0; !c && rec->threads.n >= SEPARATE_THREADS && i < rec->threads.n; i++)
        if (rec->threads.items[i]->ended) c = rec->threads.items[i];
    if (!c && !(c = ctx_new(rec))) return NULL;
    c->id = PyThreadState_GetID(ts);
    c->ident = ts->thread_id;
    c->ended = c->hooked = c->floor_known = false;
    c->tid = 0;
    c->threads++;
    ctx_listen(c);
    return c;
}

/* The thread's dictionary goes with the thread, and takes the holder along. */
static void watch_end(struct call_ctx *c)
{
    PyObject *dict = PyThreadState_GetDict();
    struct call_holder *h = dict ? holder_new(c) : NULL;
    if (h) PyDict_SetItemString(dict, "tare.functions", (PyObject *)h);
    Py_XDECREF((PyObject *)h);
}

struct call_ctx *threads_mine_slow(void)
{
    struct call_ctx *c = NULL;
    if (calls_active) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        c = threads_of(calls_active, PyThreadState_Get());
        if (c) c->ended = false;
        if (c && !c->holder) watch_end(c);
        PyErr_Restore(type, value, trace);
    }
    calls_mine.ctx = c;
    calls_mine.generation = calls_generation;
    return c;
}

/* ---- greenlets: several stacks in one thread, of which one runs ---- */

/* A stack with nothing open is not kept: the greenlet gets a new one when it comes back. */
static void stack_park(struct call_ctx *c, const void *greenlet, uint64_t now)
{
    c->stack.owner = greenlet;
    c->stack.paused = now;
    if (c->stack.top == c->stack.base || vec_push(&c->parked, c->stack, NULL) < 0) stack_release(&c->stack);
}

/* The time away is nobody's: the open calls' starts move on by it. False: it was never left with anything
 * open. */
static bool stack_unpark(struct call_ctx *c, const void *greenlet, uint64_t now)
{
    for (size_t i = c->parked.n; i-- > 0;) {
        if (c->parked.items[i].owner != greenlet) continue;
        c->stack = c->parked.items[i];
        c->parked.items[i] = vec_pop(&c->parked);
        for (struct call_entry *e = c->stack.base; e <= c->stack.top; e++) e->start += now - c->stack.paused;
        c->stack.paused = 0;
        return true;
    }
    return false;
}

static void switch_stack(struct call_ctx *c, const void *from, const void *to)
{
    struct call_stack fresh;
    if (from == to) return;
    if (!stack_init(&fresh, c->root)) { /* all that can fail is tried before anything is moved */
        c->rec->events_lost++;
        return;
    }
    uint64_t now = calls_now();
    stack_park(c, from, now);
    if (stack_unpark(c, to, now))
        stack_release(&fresh);
    else
        c->stack = fresh;
}

/* The tracer that was there before us, kept as `self`, is called as if we were not there. */
static PyObject *switched(PyObject *before, PyObject *args)
{
    PyObject *event, *from, *to;
    struct call_ctx *c = threads_mine();
    if (c && PyArg_ParseTuple(args, "O(OO)", &event, &from, &to)) switch_stack(c, from, to);
    PyErr_Clear();
    if (before == Py_None) Py_RETURN_NONE;
    return PyObject_Call(before, args, NULL);
}

static PyMethodDef switched_def = {"greenlet_switched", switched, METH_VARARGS, NULL};

static bool is_switched(PyObject *tracer)
{
    return PyCFunction_Check(tracer) && ((PyCFunctionObject *)tracer)->m_ml == &switched_def;
}

static void hook_greenlets(struct call_ctx *c)
{
    PyObject *module = loaded_module("greenlet");
    if (!module) return;
    c->hooked = true;
    PyObject *before = PyObject_CallMethod(module, "gettrace", NULL);
    PyObject *ours = before && !is_switched(before) ? PyCFunction_New(&switched_def, before) : NULL;
    PyObject *done = ours ? PyObject_CallMethod(module, "settrace", "O", ours) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(ours);
    Py_XDECREF(before);
}

void threads_unhook(struct call_ctx *c)
{
    PyObject *module = c->hooked ? loaded_module("greenlet") : NULL;
    c->hooked = false;
    if (!module) return;
    PyObject *now = PyObject_CallMethod(module, "gettrace", NULL), *done = NULL;
    if (now && is_switched(now))
        done = PyObject_CallMethod(module, "settrace", "O", ((PyCFunctionObject *)now)->m_self);
    Py_XDECREF(done);
    Py_XDECREF(now);
    PyErr_Clear();
}

/* ---- names ---- */

static PyObject *thread_name(unsigned long ident)
{
    PyObject *thread = known_thread(ident), *name = thread ? PyObject_GetAttrString(thread, "_name") : NULL;
    Py_XDECREF(thread);
    return name;
}

void threads_settle(struct call_ctx *c)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    c->ident = PyThread_get_thread_ident(); /* the state may be older than the thread */
    if (!c->name) c->name = thread_name(c->ident);
    PyErr_Clear();
    if (!c->hooked) hook_greenlets(c);
    PyErr_Restore(type, value, trace);
}

int threads_init(void)
{
    holder_type = (PyTypeObject *)PyType_FromSpec(&holder_spec);
    return holder_type ? 0 : -1;
}
