/* SPDX-License-Identifier: MIT
 * py_loader.c - the model of a data loader from Python: what holds it back, how far it can be brought, and with how
 * many workers. A pipeline is a dict; what is missing or None in it is not known. Measures nothing. */
#include <math.h>
#include <string.h>

#include "analyze/tune/loader_model.h"
#include "core/mem.h"
#include "part.h"

/* NAN where it is missing or None. */
static int read_number(PyObject *from, const char *name, double *out)
{
    PyObject *v = PyDict_GetItemString(from, name);
    *out = NAN;
    if (!v || v == Py_None) return 0;
    *out = PyFloat_AsDouble(v);
    return PyErr_Occurred() ? -1 : 0;
}

static int read_count(PyObject *from, const char *name, size_t otherwise, size_t *out)
{
    double v;
    if (read_number(from, name, &v) < 0) return -1;
    if (v < 0 || v > 1e9) return refuse(PyExc_ValueError, "%s: not a count", name);
    *out = isnan(v) ? otherwise : (size_t)v;
    return 0;
}

/* {"fetch": (wall, cpu), ...} */
static int read_stages(PyObject *from, struct loader_pipeline *p)
{
    PyObject *stages = PyDict_GetItemString(from, "stages"), *key, *value;
    Py_ssize_t at = 0;
    for (int s = 0; s < LOADER_STAGE_COUNT; s++) p->stage[s] = (struct loader_cost){NAN, NAN};
    if (!stages || !PyDict_Check(stages))
        return refuse(PyExc_ValueError, "a pipeline has stages: {\"fetch\": (wall, cpu), ...}");
    while (PyDict_Next(stages, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : "";
        int s = 0;
        while (name && s < LOADER_STAGE_COUNT && strcmp(name, loader_stage_name((enum loader_stage)s)) != 0)
            s++;
        if (!name || s == LOADER_STAGE_COUNT) return refuse(PyExc_ValueError, "there is no stage %R", key);
        if (!PyTuple_Check(value) || !PyArg_ParseTuple(value, "dd", &p->stage[s].wall, &p->stage[s].cpu))
            return refuse(PyExc_ValueError, "stage %R: (wall, cpu), both in seconds", key);
    }
    return 0;
}

static int read_pipeline(PyObject *from, struct loader_pipeline *p)
{
    const struct {
        const char *name;
        double *to;
    } numbers[] = {{"locked", &p->locked},       {"cores", &p->cores},   {"read_bytes", &p->read_bytes},
                   {"disk_rate", &p->disk_rate}, {"spread", &p->spread}, {"batch_bytes", &p->batch_bytes},
                   {"memory", &p->memory},       {"others", &p->others}, {"share", &p->share},
                   {"delayed", &p->delayed}};
    if (!PyDict_Check(from)) return refuse(PyExc_TypeError, "a pipeline is a dict");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (read_number(from, numbers[i].name, numbers[i].to) < 0) return -1;
    if (read_count(from, "batch", 1, &p->batch) < 0 ||
        read_count(from, "most_workers", 64, &p->most_workers) < 0)
        return -1;
    return read_stages(from, p);
}

static int read_choice(const char *mode, Py_ssize_t workers, struct loader_choice *out)
{
    bool threads = strcmp(mode, loader_mode_name(LOADER_THREADS)) == 0;
    if (!threads && strcmp(mode, loader_mode_name(LOADER_PROCESSES)) != 0)
        return refuse(PyExc_ValueError, "%s: workers are processes or threads", mode);
    if (workers < 0) return refuse(PyExc_ValueError, "%zd workers: 0 or more", workers);
    *out = (struct loader_choice){threads ? LOADER_THREADS : LOADER_PROCESSES, (size_t)workers};
    return 0;
}

static PyObject *tell_rate(const struct loader_pipeline *p, struct loader_choice c,
                           const struct loader_rate *r)
{
    struct buf why = {0};
    loader_explain(p, c, r, &why);
    char *text = buf_take(&why);
    if (!text) return PyErr_NoMemory();
    PyObject *out =
        Py_BuildValue("{s:s,s:n,s:N,s:s,s:N,s:N,s:N,s:s,s:s}", "mode", loader_mode_name(c.mode), "workers",
                      (Py_ssize_t)c.workers, "rate", number_or_none(isinf(r->rate) ? NAN : r->rate), "limit",
                      loader_limit_name(r->limit), "room", number_or_none(isinf(r->room) ? NAN : r->room),
                      "waiting", number_or_none(r->waiting), "cores", number_or_none(r->cores), "longest",
                      loader_stage_name(r->longest), "why", text);
    mem_free(text);
    return out;
}

/* (pipeline, mode, workers) */
static int read_call(PyObject *args, const char *format, struct loader_pipeline *p, struct loader_choice *c)
{
    PyObject *from;
    const char *mode;
    Py_ssize_t workers;
    if (!PyArg_ParseTuple(args, format, &from, &mode, &workers) || read_pipeline(from, p) < 0) return -1;
    return read_choice(mode, workers, c);
}

static PyObject *predict(PyObject *Py_UNUSED(self), PyObject *args)
{
    struct loader_pipeline p;
    struct loader_choice c = {0};
    struct loader_rate r;
    tare_error err = TARE_ERROR_INIT;
    if (read_call(args, "Osn:loader_predict", &p, &c) < 0) return NULL;
    if (loader_predict(&p, c, &r, &err) < 0) return raise_error(&err);
    return tell_rate(&p, c, &r);
}

static PyObject *plan(PyObject *Py_UNUSED(self), PyObject *args)
{
    struct loader_pipeline p;
    struct loader_choice now = {0};
    struct loader_plan r;
    tare_error err = TARE_ERROR_INIT;
    if (read_call(args, "Osn:loader_plan", &p, &now) < 0) return NULL;
    if (loader_plan(&p, now, &r, &err) < 0) return raise_error(&err);
    return Py_BuildValue("{s:N,s:N,s:n,s:N}", "now", tell_rate(&p, now, &r.now), "best",
                         tell_rate(&p, r.best, &r.at), "depth", (Py_ssize_t)r.depth, "bound",
                         number_or_none(isinf(r.bound) ? NAN : r.bound));
}

static PyMethodDef functions[] = {
    {"loader_predict", predict, METH_VARARGS, "loader_predict(pipeline, mode, workers): the rate, and its limit"},
    {"loader_plan", plan, METH_VARARGS, "loader_plan(pipeline, mode, workers): the best choice, and the bound"},
    {NULL, NULL, 0, NULL}};

const struct part loader_part = {functions, NULL};
