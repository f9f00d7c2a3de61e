/* SPDX-License-Identifier: MIT
 * py_tune.c - searching for a better configuration and confirming it, from Python: what to measure next, and what pairs
 * of measurements say. Measures nothing. A configuration is a tuple of numbers of values. */
#include <math.h>
#include <string.h>

#include "analyze/tune/confirm.h"
#include "analyze/tune/line.h"
#include "analyze/tune/search.h"
#include "core/mem.h"
#include "part.h"

/* ---- confirm ---- */

/* ln of each ratio, owned; NULL without an exception: None was given. */
static double *read_ratios(PyObject *from, size_t *n)
{
    if (from == Py_None) return NULL;
    PyObject *list = PySequence_Fast(from, "ratios are a sequence of numbers");
    if (!list) return NULL;
    size_t count = (size_t)PySequence_Fast_GET_SIZE(list);
    double *out = mem_new(count + 1, sizeof *out);
    if (!out) PyErr_NoMemory();
    for (size_t i = 0; out && i < count && !PyErr_Occurred(); i++) {
        double v = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i));
        if (!PyErr_Occurred() && !(isfinite(v) && v > 0))
            PyErr_Format(PyExc_ValueError, "ratio %zu is not a number above 0", i);
        out[i] = log(v);
    }
    Py_DECREF(list);
    if (out && !PyErr_Occurred() && *n != SIZE_MAX && *n != count)
        PyErr_Format(PyExc_ValueError, "%zu ratios of wall times and %zu of another kind", *n, count);
    *n = count;
    if (!PyErr_Occurred()) return out;
    mem_free(out);
    return NULL;
}

/* (value, lo, hi), or None where it was not measured. */
static PyObject *tell_interval(struct interval i)
{
    if (isnan(i.value)) return Py_NewRef(Py_None);
    return Py_BuildValue("ddd", i.value, i.lo, i.hi);
}

static PyObject *confirm(PyObject *Py_UNUSED(self), PyObject *args, PyObject *named)
{
    static char *names[] = {"wall", "cpu", "memory", "threshold", "least", "most", NULL};
    PyObject *from[3] = {NULL, Py_None, Py_None}, *out = NULL;
    double *logs[3] = {NULL, NULL, NULL};
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    struct confirm_result r;
    size_t n = SIZE_MAX;
    Py_ssize_t least = (Py_ssize_t)rule.least, most = (Py_ssize_t)rule.most;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|OO$dnn:confirm", names, &from[0], &from[1], &from[2],
                                     &rule.threshold, &least, &most))
        return NULL;
    if (!(rule.threshold >= 0) || least < 1 || most < least)
        return PyErr_Format(PyExc_ValueError,
                            "confirm: threshold must not be below 0, and 1 <= least <= most");
    rule.least = (size_t)least;
    rule.most = (size_t)most;
    for (int i = 0; i < 3; i++) {
        logs[i] = read_ratios(from[i], &n);
        if (PyErr_Occurred()) goto out;
    }
    if (!logs[0]) {
        PyErr_SetString(PyExc_TypeError, "confirm: ratios of wall times are needed");
        goto out;
    }
    const struct confirm_pairs pairs = {.wall = logs[0], .cpu = logs[1], .memory = logs[2], .n = n};
    if (confirm_judge(&pairs, &rule, &r, &err) < 0) {
        raise_error(&err);
        goto out;
    }
    out = Py_BuildValue("{sssNsNsNsOsnsn}", "verdict", confirm_verdict_name(r.verdict), "gain",
                        tell_interval(r.gain), "cpu", tell_interval(r.cpu), "memory", tell_interval(r.memory),
                        "uses_more_cpu", r.uses_more_cpu ? Py_True : Py_False, "pairs", (Py_ssize_t)r.pairs,
                        "next", (Py_ssize_t)r.next);
out:
    for (int i = 0; i < 3; i++) mem_free(logs[i]);
    return out;
}

/* ---- fit ---- */

static int read_point_of(PyObject *from, Py_ssize_t i, double *x, double *y)
{
    return PyArg_ParseTuple(PySequence_Fast_GET_ITEM(from, i), "dd;points are pairs of numbers", x, y) ? 0
                                                                                                       : -1;
}

static PyObject *fit(PyObject *Py_UNUSED(self), PyObject *from)
{
    double x[TUNE_LINE_POINTS_MAX], y[TUNE_LINE_POINTS_MAX];
    struct tune_line line;
    tare_error err = TARE_ERROR_INIT;
    PyObject *list = PySequence_Fast(from, "points are a sequence of (x, y)");
    if (!list) return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < n && i < TUNE_LINE_POINTS_MAX && !PyErr_Occurred(); i++)
        if (!PyTuple_Check(PySequence_Fast_GET_ITEM(list, i)))
            PyErr_SetString(PyExc_TypeError, "points are tuples (x, y)");
        else
            read_point_of(list, i, &x[i], &y[i]);
    Py_DECREF(list);
    if (PyErr_Occurred()) return NULL;
    if (tune_line_through(x, y, (size_t)n, &line, &err) < 0) return raise_error(&err);
    return Py_BuildValue("ddd", line.base, line.slope, line.residual);
}

/* ---- Search ---- */

struct search_object {
    PyObject_HEAD struct tune_search *search;
    struct tune_space space;
    struct tune_knob knobs[TUNE_KNOBS_MAX];
    PyObject *names[TUNE_KNOBS_MAX];
    PyObject *allowed, *predict; /* callables; NULL: none */
};

static PyObject *tell_point(const struct search_object *self, const struct tune_point *p)
{
    PyObject *out = PyTuple_New((Py_ssize_t)self->space.n);
    for (size_t k = 0; out && k < self->space.n; k++) {
        PyObject *v = PyLong_FromLong(p->at[k]);
        if (!v) Py_CLEAR(out);
        if (v) PyTuple_SET_ITEM(out, (Py_ssize_t)k, v);
    }
    return out;
}

static int read_point(const struct search_object *self, PyObject *from, struct tune_point *out)
{
    PyObject *list = PySequence_Fast(from, "a configuration is a sequence of numbers of values");
    int failed = list ? 0 : -1;
    *out = (struct tune_point){{0}};
    if (list && (size_t)PySequence_Fast_GET_SIZE(list) != self->space.n)
        failed = refuse(PyExc_ValueError, "%R has not %zu values", from, self->space.n);
    for (size_t k = 0; !failed && k < self->space.n; k++) {
        long v = PyLong_AsLong(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)k));
        if (v < 0 || (size_t)v >= self->knobs[k].n)
            failed = PyErr_Occurred()
                         ? -1
                         : refuse(PyExc_ValueError, "%s has no value %ld", self->knobs[k].name, v);
        out->at[k] = (uint8_t)v;
    }
    Py_XDECREF(list);
    return failed;
}

/* What a callable says of a configuration; NULL: it raised, now or before; that comes out when the search is back. */
static PyObject *call(struct search_object *self, PyObject *what, const struct tune_point *p)
{
    PyObject *at = PyErr_Occurred() ? NULL : tell_point(self, p);
    PyObject *out = at ? PyObject_CallFunctionObjArgs(what, at, NULL) : NULL;
    Py_XDECREF(at);
    return out;
}

static bool ask_allowed(void *ctx, const struct tune_point *p)
{
    struct search_object *self = ctx;
    PyObject *out = call(self, self->allowed, p);
    bool yes = out && PyObject_IsTrue(out) == 1;
    Py_XDECREF(out);
    return yes;
}

static double ask_predict(void *ctx, const struct tune_point *p)
{
    struct search_object *self = ctx;
    PyObject *out = call(self, self->predict, p);
    double v = out && out != Py_None ? PyFloat_AsDouble(out) : NAN;
    Py_XDECREF(out);
    return v;
}

/* Each is (name, values, ordered, grows). */
static int read_knobs(struct search_object *self, PyObject *from)
{
    PyObject *list = PySequence_Fast(from, "knobs are a sequence of (name, values, ordered, grows)");
    if (!list) return -1;
    size_t n = (size_t)PySequence_Fast_GET_SIZE(list);
    int failed = n <= TUNE_KNOBS_MAX
                     ? 0
                     : refuse(PyExc_ValueError, "%zu knobs: 1 to %d can be searched", n, TUNE_KNOBS_MAX);
    for (size_t k = 0; !failed && k < n; k++) {
        PyObject *name;
        Py_ssize_t values;
        int ordered, grows;
        if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)k), "Unpp", &name, &values, &ordered,
                              &grows) ||
            !(self->knobs[k].name = PyUnicode_AsUTF8(name))) {
            failed = -1;
            break;
        }
        self->names[k] = Py_NewRef(name);
        self->knobs[k].n = values < 0 ? 0 : (size_t)values;
        self->knobs[k].ordered = ordered;
        self->knobs[k].grows = grows;
    }
    self->space.n = failed ? 0 : n;
    Py_DECREF(list);
    return failed;
}

static PyObject *search_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"knobs", "base", "most", "seed", "equal", "allowed", "predict", NULL};
    PyObject *knobs, *base, *allowed = Py_None, *predict = Py_None;
    struct tune_limits limits = {.equal = 0.01, .seed = 1};
    Py_ssize_t most;
    unsigned long long seed = 1;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OOn|K$dOO:Search", names, &knobs, &base, &most, &seed,
                                     &limits.equal, &allowed, &predict))
        return NULL;
    struct search_object *self = (struct search_object *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    limits.most = most < 0 ? 0 : (size_t)most;
    limits.seed = seed;
    self->space.knobs = self->knobs;
    self->space.ctx = self;
    if (allowed != Py_None) {
        self->allowed = Py_NewRef(allowed);
        self->space.allowed = ask_allowed;
    }
    if (predict != Py_None) {
        self->predict = Py_NewRef(predict);
        self->space.predict = ask_predict;
    }
    if (read_knobs(self, knobs) < 0 || read_point(self, base, &self->space.base) < 0) goto failed;
    tare_status s = tune_search_new(&self->search, &self->space, &limits, &err);
    if (s < 0 && !PyErr_Occurred()) raise_error(&err);
    if (!PyErr_Occurred()) return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static void search_dealloc(PyObject *object)
{
    struct search_object *self = (struct search_object *)object;
    tune_search_free(self->search);
    for (size_t k = 0; k < TUNE_KNOBS_MAX; k++) Py_XDECREF(self->names[k]);
    Py_XDECREF(self->allowed);
    Py_XDECREF(self->predict);
    object_free(object);
}

static PyObject *search_ask(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct search_object *self = (struct search_object *)object;
    struct tune_block block;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = tune_search_ask(self->search, &block, &err);
    if (PyErr_Occurred()) return NULL;
    if (s < 0) return raise_error(&err);
    PyObject *out = PyList_New(0);
    for (size_t i = 0; out && i < block.n; i++) out = list_append(out, tell_point(self, &block.at[i]));
    return out;
}

/* A cost, or ("over", cost or None): over a limit, or None: it failed. */
static int read_answer(PyObject *from, struct tune_answer *out)
{
    *out = (struct tune_answer){.outcome = TUNE_FAILED, .cost = NAN};
    if (from == Py_None) return 0;
    PyObject *cost = from;
    out->outcome = TUNE_MEASURED;
    if (PyTuple_Check(from)) {
        const char *word;
        if (!PyArg_ParseTuple(from, "sO", &word, &cost)) return -1;
        if (strcmp(word, "over") != 0)
            return refuse(PyExc_ValueError, "an answer is a cost, None or (\"over\", cost)");
        out->outcome = TUNE_OVER_LIMIT;
        if (cost == Py_None) return 0;
    }
    out->cost = PyFloat_AsDouble(cost);
    if (PyErr_Occurred()) return -1;
    return isfinite(out->cost) && out->cost > 0
               ? 0
               : refuse(PyExc_ValueError, "a cost of %R is not above 0", cost);
}

static PyObject *search_tell(PyObject *object, PyObject *args)
{
    struct search_object *self = (struct search_object *)object;
    struct tune_block block = {.n = 0};
    struct tune_answer answers[TUNE_BLOCK_MAX];
    PyObject *points, *told;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "O!O!:tell", &PyList_Type, &points, &PyList_Type, &told)) return NULL;
    block.n = (size_t)PyList_GET_SIZE(points);
    if (block.n > TUNE_BLOCK_MAX || PyList_GET_SIZE(told) != PyList_GET_SIZE(points))
        return PyErr_Format(PyExc_ValueError,
                            "tell: an answer for each configuration of the block, at most %d",
                            TUNE_BLOCK_MAX);
    for (size_t i = 0; i < block.n; i++)
        if (read_point(self, PyList_GET_ITEM(points, (Py_ssize_t)i), &block.at[i]) < 0 ||
            read_answer(PyList_GET_ITEM(told, (Py_ssize_t)i), &answers[i]) < 0)
            return NULL;
    tare_status s = tune_search_tell(self->search, &block, answers, &err);
    if (PyErr_Occurred()) return NULL;
    if (s < 0) return raise_error(&err);
    Py_RETURN_NONE;
}

/* ([(configuration, outcome, measurements, ratio)], number of the best) */
static PyObject *search_tried(PyObject *object, PyObject *Py_UNUSED(none))
{
    static const char *const outcomes[] = {
        [TUNE_MEASURED] = "measured", [TUNE_OVER_LIMIT] = "over", [TUNE_FAILED] = "failed"};
    struct search_object *self = (struct search_object *)object;
    struct tune_tried *tried;
    size_t n, best;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = tune_search_tried(self->search, &tried, &n, &best, &err);
    if (s < 0) return raise_error(&err);
    PyObject *out = PyErr_Occurred() ? NULL : PyList_New(0);
    for (size_t i = 0; out && i < n; i++)
        out = list_append(out, Py_BuildValue("NsnN", tell_point(self, &tried[i].at), outcomes[tried[i].outcome],
                                             (Py_ssize_t)tried[i].n, tell_interval(tried[i].ratio)));
    mem_free(tried);
    return out ? Py_BuildValue("Nn", out, (Py_ssize_t)best) : NULL;
}

static PyMethodDef search_methods[] = {
    {"ask", search_ask, METH_NOARGS, "configurations to measure in turns, the base first; []: enough is known"},
    {"tell", search_tell, METH_VARARGS, "what each of them cost: a cost, (\"over\", cost) over a limit, None failed"},
    {"tried", search_tried, METH_NOARGS, "all that were tried, the best first, and the number of the one to use"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot search_slots[] = {
    {Py_tp_new, search_new}, {Py_tp_dealloc, search_dealloc}, {Py_tp_methods, search_methods}, {0, NULL}};

static PyType_Spec search_spec = {
    .name = "tare._tare.Search",
    .basicsize = sizeof(struct search_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = search_slots,
};

static int init(PyObject *module)
{
    return add_type(module, &search_spec, NULL);
}

static PyMethodDef functions[] = {
    {"confirm", (PyCFunction)(void (*)(void))confirm, METH_VARARGS | METH_KEYWORDS,
     "what pairs say: confirm(wall, cpu=None, memory=None), ratios candidate / base"},
    {"fit", fit, METH_O,
     "fit([(x, y), ..]): (base, slope, residual) of the line y = base + slope * x that one bad point does not bend;\n"
     "residual: the farthest that a point lies from it, as a share"},
    {NULL, NULL, 0, NULL}};

const struct part tune_part = {functions, init};
