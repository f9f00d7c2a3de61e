/* SPDX-License-Identifier: MIT
 * part.h - the extension `_tare` as parts: py_NAME.c is what Python sees of a thing, and defines NAME_part; the
 * engine behind it (calls_*.c, lines_*.c, sampler_*.c, strand.c) knows nothing of the module. To add a part: its
 * file, and its name in PARTS. What all parts share stands here too. */
#ifndef PYTHON_PART_H
#define PYTHON_PART_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include "tare/tare.h"

#if PY_VERSION_HEX < 0x030a0000
#define Py_NewRef(object) (Py_INCREF(object), (PyObject *)(object))
#define Py_XNewRef(object) (Py_XINCREF(object), (PyObject *)(object))
#endif

struct part {
    PyMethodDef *functions;        /* of the module; NULL: none */
    int (*init)(PyObject *module); /* its types and tables: 0, or -1 with an exception set; NULL: none */
};

#define PARTS(X) \
    X(session) X(scope) X(functions) X(lines) X(sampler) X(bench) X(work) X(runs) X(cost) X(judge) X(digits) X(gpu) \
    X(memory) X(tune) X(loader) X(alerts) X(ring) X(io) X(malloc) X(hist)
#define X(name) extern const struct part name##_part;
PARTS(X)
#undef X

/* Makes a type and puts it into the module. *out, a reference for good, may be NULL. 0, or -1 with an exception. */
int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out);

/* The end of a tp_dealloc of such a type. */
void object_free(PyObject *self);

/* Sets the exception that fits the status (MemoryError, OSError, ValueError, RuntimeError) with the
 * error's text. NULL. */
PyObject *raise_error(const tare_error *err);

/* PyErr_Format() for functions that return -1. */
int refuse(PyObject *type, const char *format, ...);

/* Results that are built in a loop. Both take the new item over; where it or what it goes to is NULL, an exception
 * is set already. The list, or NULL when it has been given up; 0 or -1. */
PyObject *list_append(PyObject *list, PyObject *item);
int dict_put(PyObject *dict, const char *name, PyObject *value);

/* A module that the program has loaded, borrowed; NULL without an exception: it has not. */
PyObject *loaded_module(const char *name);

/* A number, or None where it is NAN. */
PyObject *number_or_none(double v);

/* The test of analyze/watch/growth.h as a tuple (verdict, confidence, per unit of `at`, low, high, rise,
 * samples); a str says why not. */
PyObject *tell_growth(const double *at, const double *value, size_t n);

#endif
