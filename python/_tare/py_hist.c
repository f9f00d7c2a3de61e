/* SPDX-License-Identifier: MIT
 * py_hist.c - the histogram of core/hist.h for Python: times in ns, counted in a tenth of a microsecond, told as the
 * document of requests has them. The GIL is its lock. */
#include <math.h>

#include "core/hist.h"
#include "part.h"

struct hist_object {
    PyObject_HEAD struct hist hist;
};

static struct hist *of(PyObject *object)
{
    return &((struct hist_object *)object)->hist;
}

static PyTypeObject *hist_type;

static PyObject *hist_make(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    if (!PyArg_ParseTuple(args, ":Hist")) return NULL;
    struct hist_object *self = (struct hist_object *)type->tp_alloc(type, 0);
    if (self) self->hist = (struct hist)HIST_INIT;
    return (PyObject *)self;
}

static void hist_dealloc(PyObject *object)
{
    hist_release(of(object));
    object_free(object);
}

static PyObject *record(PyObject *object, PyObject *value)
{
    tare_error err = TARE_ERROR_INIT;
    unsigned long long ns = PyLong_AsUnsignedLongLong(value);
    if (ns == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    if (hist_record(of(object), ns, &err) != TARE_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *merge(PyObject *object, PyObject *other)
{
    tare_error err = TARE_ERROR_INIT;
    if (!PyObject_TypeCheck(other, hist_type))
        return PyErr_Format(PyExc_TypeError, "merge: a Hist is needed");
    if (hist_merge(of(object), of(other), &err) != TARE_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *quantile(PyObject *object, PyObject *q)
{
    double share = PyFloat_AsDouble(q);
    if (share == -1 && PyErr_Occurred()) return NULL;
    return number_or_none(hist_quantile(of(object), share));
}

static PyObject *counts_of(const struct hist *h, uint32_t from, uint32_t to)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = from; i < to && list; i++)
        list = list_append(list, PyLong_FromUnsignedLongLong(h->counts[i]));
    return list;
}

/* {"sum", "min", "max", "histogram"}; None: nothing was recorded. */
static PyObject *document(PyObject *object, PyObject *Py_UNUSED(none))
{
    const struct hist *h = of(object);
    uint32_t from = 0, to = h->n_counts;
    if (h->count == 0) Py_RETURN_NONE;
    while (from < to && h->counts[from] == 0) from++;
    while (from < to && h->counts[to - 1] == 0) to--;
    return Py_BuildValue("{sKsKsKs{sisisKsN}}", "sum", h->sum, "min", h->min, "max", h->max, "histogram",
                         "scale", (int)HIST_SCALE, "offset", from < to ? h->first + (int)from : 0, "zero",
                         h->zeros, "counts", counts_of(h, from, to));
}

static PyObject *count(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(of(object)->count);
}

static PyMethodDef hist_methods[] = {
    {"record", record, METH_O, "record(ns)"},
    {"merge", merge, METH_O, "merge(other): add all that it counted"},
    {"quantile", quantile, METH_O, "quantile(q): in ns, within 0.54 %; None: nothing was recorded"},
    {"document", document, METH_NOARGS, "as tare.requests/1 has it; None: nothing was recorded"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef hist_values[] = {{"count", count, NULL, "how many were recorded", NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot hist_slots[] = {{Py_tp_new, hist_make},
                                   {Py_tp_dealloc, hist_dealloc},
                                   {Py_tp_methods, hist_methods},
                                   {Py_tp_getset, hist_values},
                                   {0, NULL}};

static PyType_Spec hist_spec = {
    .name = "tare._tare.Hist",
    .basicsize = sizeof(struct hist_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = hist_slots,
};

static int init(PyObject *module)
{
    return add_type(module, &hist_spec, &hist_type);
}

const struct part hist_part = {NULL, init};
