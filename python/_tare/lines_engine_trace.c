/* SPDX-License-Identifier: MIT
 * lines_engine_trace.c - lines as the interpreter tells of them before 3.12: a trace function in every
 * thread. Frames of other functions are told to keep quiet about their lines. Never takes the place of
 * another tracer. */
#include "calls_frame.h"

#include "lines.h"

#if PY_VERSION_HEX < 0x030C0000

#include <stdio.h>

/* The line a generator goes on at; 0: it begins, or is no generator. One that begins is said to be at the
 * line of its `def`. */
static int resumed_line(PyFrameObject *frame, const struct line_code *known)
{
    if (code_kind((PyCodeObject *)(void *)known->code) != CALL_RESUMED) return 0;
    int line = PyFrame_GetLineNumber(frame);
    size_t at = (size_t)(line - known->first);
    bool began = line != ((PyCodeObject *)(void *)known->code)->co_firstlineno ||
                 (at < known->n && known->rows[at].hits);
    return began ? line : 0;
}

/* The clock is read first: what this function does must not count as time of the line. Never returns an
 * error, which would raise in the program and take the tracer away. */
static int on_trace(PyObject *Py_UNUSED(self), PyFrameObject *frame, int what, PyObject *Py_UNUSED(arg))
{
    uint64_t now = calls_now();
    struct line_ctx *c = lines_active ? lines_ctx() : NULL;
    if (!c) return 0;
    PyObject *code = frame_code(frame);
    struct line_code *known;
    switch (what) {
    case PyTrace_LINE: lines_line(c, code, frame->f_lineno, now); break; /* which this event just set */
    case PyTrace_CALL:
        if ((known = lines_code(code)))
            lines_enter(c, known, resumed_line(frame, known));
        else
            frame->f_trace_lines = 0;
        break;
    case PyTrace_RETURN: lines_leave(c, code, now); break;
    default: break;
    }
    return 0;
}

/* ---- threads to come: threading calls this as their Python trace function, and it makes way for the real one ---- */

static PyObject *thread_began(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *frame, *event, *arg;
    if (!PyArg_ParseTuple(args, "OOO", &frame, &event, &arg)) return NULL;
    PyEval_SetTrace(lines_active ? on_trace : NULL, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef thread_began_def = {"line_thread_began", thread_began, METH_VARARGS, NULL};
static PyObject *hook, *hook_before;

static PyObject *threading_hook(void)
{
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *now = threading ? PyObject_GetAttrString(threading, "_trace_hook") : NULL;
    Py_XDECREF(threading);
    return now;
}

static int set_threading_hook(PyObject *function)
{
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *done = threading ? PyObject_CallMethod(threading, "settrace", "O", function) : NULL;
    Py_XDECREF(threading);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* ---- start and stop ---- */

static int refuse_others(void)
{
    PyThreadState *ts = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; ts; ts = PyThreadState_Next(ts)) {
        if (!ts->c_tracefunc) continue;
        return refuse(
            PyExc_RuntimeError,
            "another tracer is active (sys.settrace in thread %lu: a debugger or a coverage tool): stop it before "
            "tare.lines starts",
            ts->thread_id);
    }
    return 0;
}

/* A public call exists for the calling thread only; this one is exported by 3.9 to 3.11. */
static int set_everywhere(Py_tracefunc function)
{
    PyThreadState *ts = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; ts; ts = PyThreadState_Next(ts)) {
        if (!function && ts->c_tracefunc != on_trace) continue;
        if (_PyEval_SetTrace(ts, function, NULL) < 0) return -1;
    }
    return 0;
}

static void trace_stop(struct line_recorder *rec)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyThreadState_Get()->c_tracefunc != on_trace)
        snprintf(rec->trouble, sizeof rec->trouble,
                 "sys.settrace was called while lines were recorded: lines after that are missing");
    if (set_everywhere(NULL) < 0) PyErr_Clear();
    if (hook_before && set_threading_hook(hook_before) < 0) PyErr_Clear();
    Py_CLEAR(hook_before);
    PyErr_Restore(type, value, trace);
}

static int trace_start(struct line_recorder *rec)
{
    if (refuse_others() < 0) return -1;
    if (!hook && !(hook = PyCFunction_New(&thread_began_def, NULL))) return -1;
    if (!(hook_before = threading_hook())) return -1;
    if (set_threading_hook(hook) == 0 && set_everywhere(on_trace) == 0) return 0;
    trace_stop(rec);
    return -1;
}

static int trace_add(struct line_recorder *Py_UNUSED(rec), PyObject *Py_UNUSED(code))
{
    return 0;
}

const struct line_engine lines_engine = {trace_start, trace_add, trace_stop};

#endif
