/* SPDX-License-Identifier: MIT
 * py_alerts.c - alerts with hysteresis from Python: rules as numbers, values told one by one, by the judge of
 * analyze/watch/alert.h. Looks at no clock. */
#include <math.h>

#include "analyze/watch/alert.h"
#include "core/mem.h"
#include "part.h"

struct alerts_object {
    PyObject_HEAD struct alerts *alerts;
};

/* Fires above `threshold` for `seconds`, clears below `clear` for as long. */
static int read_rule(PyObject *from, struct alert_rule *out)
{
    double seconds;
    *out = (struct alert_rule){.when.op = '>', .action = ""};
    if (!PyTuple_Check(from)) return refuse(PyExc_TypeError, "a rule is (threshold, clear, seconds)");
    if (!PyArg_ParseTuple(from, "ddd", &out->when.threshold, &out->clear, &seconds)) return -1;
    if (!isfinite(out->when.threshold) || !(out->clear <= out->when.threshold))
        return refuse(PyExc_ValueError, "rule %R: it would clear where it fires", from);
    if (!(seconds >= 0 && seconds < 1e9))
        return refuse(PyExc_ValueError, "rule %R: seconds are 0 or more", from);
    out->for_ns = (uint64_t)(seconds * 1e9);
    return 0;
}

static PyObject *alerts_make(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *from;
    struct alert_rules rules = {.items = VEC_INIT};
    struct alerts_object *self = NULL;
    struct alert_rule rule;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "O!:Alerts", &PyList_Type, &from)) return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(from); i++) {
        if (read_rule(PyList_GET_ITEM(from, i), &rule) < 0) goto out;
        if (vec_push(&rules.items, rule, &err) < 0) goto failed;
    }
    self = (struct alerts_object *)type->tp_alloc(type, 0);
    if (!self || alerts_new(&self->alerts, rules.items.items, rules.items.n, &err) == TARE_OK) goto out;
    Py_CLEAR(self);
failed:
    raise_error(&err);
out:
    vec_release(&rules.items);
    return (PyObject *)self;
}

static void alerts_dealloc(PyObject *object)
{
    alerts_free(((struct alerts_object *)object)->alerts);
    object_free(object);
}

/* tell(rule, value, seconds): 1 fires now, -1 clears now, 0 neither. NaN is unknown: neither. */
static PyObject *tell(PyObject *object, PyObject *args)
{
    struct alerts *alerts = ((struct alerts_object *)object)->alerts;
    Py_ssize_t rule;
    double value, at;
    if (!PyArg_ParseTuple(args, "ndd:tell", &rule, &value, &at)) return NULL;
    if (rule < 0 || (size_t)rule >= alerts_count(alerts))
        return PyErr_Format(PyExc_IndexError, "tell: there are %zu rules", alerts_count(alerts));
    if (!(at >= 0 && at < 1e9)) return PyErr_Format(PyExc_ValueError, "tell: seconds are 0 or more");
    return PyLong_FromLong(alerts_tell(alerts, (size_t)rule, value, (uint64_t)(at * 1e9)));
}

static PyMethodDef alerts_methods[] = {
    {"tell", tell, METH_VARARGS, "tell(rule, value, seconds): 1 fires now, -1 clears now, 0 neither; NaN: unknown"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot alerts_slots[] = {
    {Py_tp_new, alerts_make}, {Py_tp_dealloc, alerts_dealloc}, {Py_tp_methods, alerts_methods}, {0, NULL}};

static PyType_Spec alerts_spec = {
    .name = "tare._tare.Alerts",
    .basicsize = sizeof(struct alerts_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = alerts_slots,
};

static int init(PyObject *module)
{
    return add_type(module, &alerts_spec, NULL);
}

const struct part alerts_part = {NULL, init};
