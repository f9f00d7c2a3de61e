/* SPDX-License-Identifier: MIT
 * scope.c - sessions from Python: start, stop and whether one records. Never waits with the GIL held for the trace's disk. */
#include "part.h"

static PyObject *session_start(PyObject *self, PyObject *args)
{
    (void)self;
    tare_options options = TARE_OPTIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "s:start", &options.path)) return NULL;
    tare_status s;
    Py_BEGIN_ALLOW_THREADS;
    s = tare_start(&options, &err);
    Py_END_ALLOW_THREADS;
    if (s != TARE_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *session_stop(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    tare_error err = TARE_ERROR_INIT;
    tare_status s;
    Py_BEGIN_ALLOW_THREADS;
    s = tare_stop(&err);
    Py_END_ALLOW_THREADS;
    if (s != TARE_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *session_recording(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return PyBool_FromLong(TARE_ON_);
}

static PyMethodDef functions[] = {
    {"start", session_start, METH_VARARGS, "start(path): record this process into the trace `path`"},
    {"stop", session_stop, METH_NOARGS, "stop(): pack and close the trace"},
    {"recording", session_recording, METH_NOARGS, "recording(): whether a session records"},
    {NULL, NULL, 0, NULL},
};

int scope_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
