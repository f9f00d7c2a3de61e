/* SPDX-License-Identifier: MIT
 * py_sampler.c - the sampling thread from Python: watches of blocks of code, what there is to see now, and
 * what it costs. Waits without the GIL. What is not known is None, never 0. */
#include <math.h>

#include "core/mem.h"
#include "part.h"
#include "sampler.h"

/* ---- values ---- */

static int probe_named(PyObject *name)
{
    for (int p = 0; p < SAMPLER_PROBE_COUNT; p++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, sampler_probe_names[p]) == 0)
            return p;
    return refuse(PyExc_ValueError, "there is no probe %R", name);
}

/* Names of probes -> a bit for each. */
static int read_wants(PyObject *names, unsigned *out)
{
    PyObject *list = PySequence_Fast(names, "probes are a sequence of names");
    int failed = list ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(list); i++) {
        int probe = probe_named(PySequence_Fast_GET_ITEM(list, i));
        *out |= probe < 0 ? 0 : 1U << probe;
        failed = probe < 0;
    }
    Py_XDECREF(list);
    return failed ? -1 : 0;
}

/* ---- Watch ---- */

struct watch_object {
    PyObject_HEAD struct watch *watch; /* NULL: let go of */
};

/* `self` owns the watch before the sampler begins, so that watch_dealloc() cleans up after every failure. */
static PyObject *watch_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *names;
    struct sampler_demand d = {.wants = 0};
    tare_error err = TARE_ERROR_INIT;
    if (named && PyDict_Size(named)) return PyErr_Format(PyExc_TypeError, "Watch takes no keyword arguments");
    if (!PyArg_ParseTuple(args, "Oddd:Watch", &names, &d.interval_s[SAMPLER_FAST],
                          &d.interval_s[SAMPLER_TREE], &d.interval_s[SAMPLER_SLOW]))
        return NULL;
    if (read_wants(names, &d.wants) < 0) return NULL;
    struct watch_object *self = (struct watch_object *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->watch = mem_new(1, sizeof *self->watch);
    tare_status s =
        self->watch ? sampler_begin(self->watch, &d, &err) : error_set(&err, TARE_NOMEM, "out of memory");
    if (s == TARE_OK) return (PyObject *)self;
    Py_DECREF(self);
    return raise_error(&err);
}

static void watch_dealloc(PyObject *object)
{
    struct watch *w = ((struct watch_object *)object)->watch;
    if (w) sampler_settle(w, false);
    mem_free(w);
    object_free(object);
}

static PyObject *watch_end(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct watch_object *self = (struct watch_object *)object;
    if (self->watch) sampler_end(self->watch);
    Py_RETURN_NONE;
}

static PyObject *tell_fold(const struct fold *f)
{
    struct fold_result r = fold_result(f);
    if (!r.n && isnan(r.mean)) return Py_NewRef(Py_None);
    return Py_BuildValue("KNNNNN", (unsigned long long)r.n, number_or_none(r.min), number_or_none(r.max),
                         number_or_none(r.mean), number_or_none(r.delta), number_or_none(r.span_s));
}

static PyObject *tell_course(const struct course *c)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < c->n; i++)
        list = list_append(list, Py_BuildValue("dd", c->at_s[i], c->value[i]));
    return list;
}

static PyObject *tell_watch(const struct watch *w)
{
    PyObject *out = PyDict_New();
    int failed = out ? 0 : -1;
    for (int q = 0; !failed && q < QUANTITY_COUNT; q++) {
        PyObject *fold = tell_fold(&w->folds[q]);
        if (fold == Py_None)
            Py_DECREF(fold);
        else
            failed = dict_put(out, sampler_name((enum sampler_quantity)q), fold);
    }
    if (!failed) failed = dict_put(out, "growth", tell_growth(w->course.at_s, w->course.value, w->course.n));
    if (!failed) failed = dict_put(out, "course", tell_course(&w->course));
    if (failed) Py_CLEAR(out);
    return out;
}

static PyObject *watch_take(PyObject *object, PyObject *args)
{
    struct watch_object *self = (struct watch_object *)object;
    int wait = 1;
    if (!PyArg_ParseTuple(args, "|p:take", &wait)) return NULL;
    struct watch *w = self->watch;
    self->watch = NULL; /* another thread cannot take it, too */
    if (!w) return PyErr_Format(PyExc_ValueError, "this watch was taken already");
    /* At the end of blocks nobody waits: who lets go of the GIL there waits for it there. */
    PyThreadState *released = wait ? PyEval_SaveThread() : NULL;
    sampler_settle(w, wait);
    if (released) PyEval_RestoreThread(released);
    PyObject *out = tell_watch(w);
    mem_free(w);
    return out;
}

static PyMethodDef watch_methods[] = {
    {"end", watch_end, METH_NOARGS, "end(): the block is over; twice is fine"},
    {"take", watch_take, METH_VARARGS,
     "take(wait=True): what was seen, once: name -> (samples, min, max, mean, delta, span_s), 'growth', 'course'. "
     "`wait` for the\n"
     "sample after the end, where it has not come yet."},
    {NULL, NULL, 0, NULL},
};

static char watch_doc[] =
    "Watch(probes, memory_s, tree_s, system_s): begins to watch; one thread serves all watches.";

static PyType_Slot watch_slots[] = {
    {Py_tp_new, (void *)watch_new},
    {Py_tp_dealloc, (void *)watch_dealloc},
    {Py_tp_methods, watch_methods},
    {Py_tp_doc, watch_doc},
    {0, NULL},
};

static PyType_Spec watch_spec = {"tare._tare.Watch", sizeof(struct watch_object), 0, Py_TPFLAGS_DEFAULT,
                                 watch_slots};

/* ---- now ---- */

static PyObject *tell_now(const struct sampler_now *n)
{
    PyObject *out = PyDict_New();
    int failed = out ? 0 : -1;
    for (int q = 0; !failed && q < QUANTITY_COUNT; q++) {
        double v = n->now.value[q], before = n->earlier.value[q];
        if (isnan(v)) continue;
        bool paired = !isnan(before) && n->now_ns[q] > n->earlier_ns[q];
        double span = paired ? (double)(n->now_ns[q] - n->earlier_ns[q]) / 1e9 : NAN;
        failed = dict_put(
            out, sampler_name((enum sampler_quantity)q),
            Py_BuildValue("dNN", v, number_or_none(paired ? v - before : NAN), number_or_none(span)));
    }
    if (failed) Py_CLEAR(out);
    return out;
}

static PyObject *sampler_now_(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *names;
    double fresh_s;
    struct sampler_demand d = {.wants = 0};
    struct sampler_now now;
    tare_error err = TARE_ERROR_INIT;
    tare_status s;
    if (!PyArg_ParseTuple(args, "Od:sampler_now", &names, &fresh_s) || read_wants(names, &d.wants) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    s = sampler_look(&now, &d, fresh_s, &err);
    Py_END_ALLOW_THREADS;
    return s == TARE_OK ? tell_now(&now) : raise_error(&err);
}

static PyObject *sampler_blind_(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    struct buf text = BUF_INIT;
    Py_BEGIN_ALLOW_THREADS;
    sampler_blind(&text);
    Py_END_ALLOW_THREADS;
    PyObject *out = PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.len, "replace");
    buf_release(&text);
    return out;
}

static PyObject *sampler_cost_(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    struct sampler_cost c = sampler_cost();
    return Py_BuildValue("{sKsdsNsN}", "samples", (unsigned long long)c.samples, "cpu_s", c.cpu_s, "running",
                         PyBool_FromLong(c.running), "parked", PyBool_FromLong(c.parked));
}

static PyObject *sampler_stop_(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    Py_BEGIN_ALLOW_THREADS;
    sampler_stop();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *sampler_resume_(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    sampler_resume();
    Py_RETURN_NONE;
}

static PyObject *memory_now(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    struct self_memory m = self_memory();
    return Py_BuildValue("NN", number_or_none(m.rss), number_or_none(m.most));
}

static PyMethodDef functions[] = {
    {"sampler_now", sampler_now_, METH_VARARGS,
     "sampler_now(probes, fresh_s): name -> (value, change, seconds of the change); a sample at most `fresh_s` old"},
    {"sampler_blind", sampler_blind_, METH_NOARGS, "sampler_blind(): what cannot be seen here and why, a line each"},
    {"sampler_cost", sampler_cost_, METH_NOARGS, "sampler_cost(): what the sampling thread took so far"},
    {"sampler_stop", sampler_stop_, METH_NOARGS, "sampler_stop(): end the thread; the next watch starts it again"},
    {"sampler_resume", sampler_resume_, METH_NOARGS, "sampler_resume(): in the child of a fork"},
    {"memory_now", memory_now, METH_NOARGS, "memory_now(): bytes in RAM now (None: unknown), and the most so far"},
    {NULL, NULL, 0, NULL},
};

static int sampler_init(PyObject *module)
{
    if (Py_AtExit(sampler_stop) == 0) return add_type(module, &watch_spec, NULL);
    return refuse(PyExc_ImportError, "no room for the function that ends the sampling thread");
}

const struct part sampler_part = {functions, sampler_init};
