/* SPDX-License-Identifier: MIT
 * part.h - the extension `_tare` as parts: each file adds its types and functions to the module through one
 * function, named in module.c's table. What all parts share: how a tare_error becomes a Python exception. */
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

/* 0, or -1 with a Python exception set. */
int session_part(PyObject *module);
int scope_part(PyObject *module);
int lines_part(PyObject *module);
int work_part(PyObject *module);
int bench_part(PyObject *module);
int work_runs_part(PyObject *module);
int op_cost_part(PyObject *module);
int sampler_part(PyObject *module);
int judge_part(PyObject *module);
int answers_part(PyObject *module);
int functions_part(PyObject *module);

/* Sets the exception that fits the status (MemoryError, OSError, ValueError, RuntimeError) with the
 * error's text. NULL. */
PyObject *raise_error(const tare_error *err);

/* The test of analyze/growth.h as a tuple (verdict, confidence, per unit of `at`, low, high, rise,
 * samples); a str says why not. */
PyObject *tell_growth(const double *at, const double *value, size_t n);

#endif
