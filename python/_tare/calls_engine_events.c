/* SPDX-License-Identifier: MIT
 * calls_engine_events.c - calls as the interpreter tells of them before 3.12: a profile function in every
 * thread. Never takes the place of another profile function. */
#include "calls_frame.h"

#if PY_VERSION_HEX < 0x030C0000

#include <stdio.h>

enum { LOOK_EVERY = 10000000 }; /* ticks, a few ms: for threads that began without a call that we saw */

static uint64_t newest_seen; /* id of the newest thread that has our function, or was asked */
static uint64_t next_look;   /* ticks */

static int on_event(PyObject *holder, PyFrameObject *frame, int what, PyObject *arg);

/* A public call exists for the calling thread only; this one is exported by 3.9 to 3.11. */
static int set_in(struct call_recorder *rec, PyThreadState *ts)
{
    struct call_ctx *c = threads_of(rec, ts);
    struct call_holder *h = c ? holder_new(c) : NULL;
    if (!h) return -1;
    c->ended = false;
    int rc = _PyEval_SetProfile(ts, on_event, (PyObject *)h);
    Py_DECREF((PyObject *)h);
    return rc;
}

/* Threads with a newer id than any seen so far; one that has a profile function already is left alone. */
static void look_for_threads(struct call_recorder *rec)
{
    uint64_t newest = newest_seen;
    PyThreadState *ts = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; ts; ts = PyThreadState_Next(ts)) {
        uint64_t id = PyThreadState_GetID(ts);
        if (id <= newest_seen) continue;
        if (id > newest) newest = id;
        if (!ts->c_profilefunc && set_in(rec, ts) < 0) PyErr_Clear();
    }
    newest_seen = newest;
    next_look = calls_now() + LOOK_EVERY;
}

/* The clock is read first thing at an end and last thing at a begin: little of us falls into the function. */
static int on_event(PyObject *holder, PyFrameObject *frame, int what, PyObject *arg)
{
    struct call_ctx *c = ((struct call_holder *)holder)->ctx;
    if (CALLS_UNLIKELY(!c)) return 0;
    uint64_t now;
    PyObject *code;
    switch (what) {
    case PyTrace_CALL:
        code = frame_code(frame);
        ctx_enter(c, code, code, CALL_PYTHON);
        break;
    case PyTrace_RETURN:
        now = calls_now();
        ctx_leave(c, frame_code(frame), now);
        if (CALLS_UNLIKELY(now > next_look)) look_for_threads(c->rec);
        break;
    case PyTrace_C_CALL:
        if (PyCFunction_Check(arg)) ctx_enter(c, ((PyCFunctionObject *)arg)->m_ml, arg, CALL_C);
        break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
        now = calls_now();
        if (PyCFunction_Check(arg)) ctx_leave(c, ((PyCFunctionObject *)arg)->m_ml, now);
        break;
    default: break;
    }
    return 0;
}

/* ---- start and stop ---- */

static int refuse_others(void)
{
    PyThreadState *ts = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; ts; ts = PyThreadState_Next(ts)) {
        if (!ts->c_profilefunc || ts->c_profilefunc == on_event) continue;
        return refuse(
            PyExc_RuntimeError,
            "another profiler is active (sys.setprofile in thread %lu): stop it before tare.functions starts",
            ts->thread_id);
    }
    return 0;
}

static void events_stop(struct call_recorder *rec);

/* All threads or none. */
static int events_start(struct call_recorder *rec)
{
    if (refuse_others() < 0) return -1;
    newest_seen = 0;
    PyThreadState *ts = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; ts; ts = PyThreadState_Next(ts)) {
        uint64_t id = PyThreadState_GetID(ts);
        if (id > newest_seen) newest_seen = id;
        if (set_in(rec, ts) == 0) continue;
        events_stop(rec);
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return -1;
    }
    next_look = calls_now() + LOOK_EVERY;
    return 0;
}

/* A context whose holder is gone while its thread lives: somebody else's function took the place of ours. */
static void events_stop(struct call_recorder *rec)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyThreadState *ts = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; ts; ts = PyThreadState_Next(ts)) {
        const struct call_ctx *c = threads_known(rec, ts);
        if (c && c->ended)
            snprintf(
                rec->trouble, sizeof rec->trouble,
                "sys.setprofile was called while the profile ran: calls in thread %lu after that are missing",
                ts->thread_id);
        if (ts->c_profilefunc == on_event && _PyEval_SetProfile(ts, NULL, NULL) < 0) PyErr_Clear();
    }
    PyErr_Restore(type, value, trace);
}

static const struct call_engine events_engine = {"profile events", events_start, events_stop,
                                                 look_for_threads, NULL};
const struct call_engine *const calls_exact_engine = &events_engine;

#endif
