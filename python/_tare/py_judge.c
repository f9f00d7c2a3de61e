/* SPDX-License-Identifier: MIT
 * py_judge.c - judgements of src/analyze from Python: whether runs differ, and what energy weighs in grams
 * of CO2. Measures nothing. */
#include <math.h>

#include "analyze/compare/between_runs.h"
#include "analyze/watch/carbon.h"
#include "core/mem.h"
#include "part.h"

/* ln of positive numbers, owned; NULL with an exception. */
static double *read_logs(PyObject *from, size_t *n)
{
    PyObject *list = PySequence_Fast(from, "observations are a sequence of numbers");
    if (!list) return NULL;
    *n = (size_t)PySequence_Fast_GET_SIZE(list);
    double *out = mem_new(*n, sizeof *out);
    if (!out) PyErr_NoMemory();
    for (size_t i = 0; out && i < *n; i++) {
        double v = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i));
        out[i] = log(v);
        if (PyErr_Occurred() || (isfinite(v) && v > 0)) continue;
        PyErr_Format(PyExc_ValueError, "observation %zu is not a number above 0", i);
    }
    Py_DECREF(list);
    if (!PyErr_Occurred()) return out;
    mem_free(out);
    return NULL;
}

static PyObject *tell_between(const struct between_result *r)
{
    static const char *const methods[] = {
        [BETWEEN_NONE] = "none", [BETWEEN_RUNS] = "runs", [BETWEEN_PAST] = "past"};
    return Py_BuildValue("{sssssdsdsdsdsdsn}", "verdict", r->verdict, "method", methods[r->method], "ratio",
                         exp(r->log), "lo", exp(r->lo), "hi", exp(r->hi), "p_worse", r->p_worse, "mde",
                         r->mde, "needed", (Py_ssize_t)r->needed);
}

static PyObject *judge_runs(PyObject *self, PyObject *args)
{
    PyObject *lists[3], *out = NULL;
    double *logs[3] = {NULL, NULL, NULL};
    size_t n[3];
    struct between_rule rule = BETWEEN_RULE_INIT;
    struct between_result result;
    tare_error err = TARE_ERROR_INIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOdd:judge_runs", &lists[0], &lists[1], &lists[2], &rule.min_effect,
                          &rule.alpha))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (!(logs[i] = read_logs(lists[i], &n[i]))) goto out;
    if (rule.detect < 2 * rule.min_effect) rule.detect = 2 * rule.min_effect;
    const struct between_sides sides = {{logs[0], n[0]}, {logs[1], n[1]}, {logs[2], n[2]}, false};
    if (between_runs(&sides, &rule, &result, &err) == TARE_OK)
        out = tell_between(&result);
    else
        raise_error(&err);
out:
    for (int i = 0; i < 3; i++) mem_free(logs[i]);
    return out;
}

static PyObject *carbon_table(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    PyObject *grids = PyDict_New();
    for (const struct carbon_grid *g = carbon_grids; grids && g->code; g++) {
        PyObject *row = Py_BuildValue("sd", g->name, g->g_per_kwh);
        if (!row || PyDict_SetItemString(grids, g->code, row) < 0) Py_CLEAR(grids);
        Py_XDECREF(row);
    }
    return grids ? Py_BuildValue("Ns", grids, carbon_grids_source) : NULL;
}

static PyMethodDef functions[] = {
    {"judge_runs", judge_runs, METH_VARARGS,
     "judge_runs(base, new, past, min_effect, alpha): does `new` take longer? docs/comparing.md"},
    {"carbon_table", carbon_table, METH_NOARGS,
     "carbon_table(): code -> (name, grams of CO2 per kWh), and whose figures"},
    {NULL, NULL, 0, NULL},
};

int judge_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
