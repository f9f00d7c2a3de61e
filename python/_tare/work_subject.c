/* SPDX-License-Identifier: MIT
 * work_subject.c - see work.h. All of it runs with the GIL held, in the thread that called tare.bench. */
#include "work.h"

#include <string.h>

#include "core/error.h"

/* ---- exceptions ---- */

#if PY_VERSION_HEX >= 0x030c0000
static PyObject *take_exception(void)
{
    return PyErr_GetRaisedException();
}
static void give_exception(PyObject *e)
{
    PyErr_SetRaisedException(e);
}
#else
static PyObject *take_exception(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}
static void give_exception(PyObject *e)
{
    PyErr_Restore(Py_NewRef(Py_TYPE(e)), e, PyException_GetTraceback(e));
}
#endif

tare_status weighed_raise(struct weighed *w, tare_error *err)
{
    PyObject *e = take_exception();
    if (w->raised)
        Py_XDECREF(e);
    else
        w->raised = e;
    const char *name = w->raised ? Py_TYPE(w->raised)->tp_name : "an exception", *dot = strrchr(name, '.');
    return error_set(err, TARE_DENIED, "%s", dot ? dot + 1 : name);
}

void weighed_restore(struct weighed *w)
{
    PyObject *e = w->raised;
    w->raised = NULL;
    if (e) give_exception(e);
}

/* ---- the subject ---- */

struct prepared {
    struct weighed *weighed;
    struct work *work;
};

static tare_status prepare(void *ctx, const struct case_params *p, void **state, tare_error *err)
{
    struct weighed *w = ctx;
    if (w->raised) return error_set(err, TARE_DENIED, "%s", Py_TYPE(w->raised)->tp_name);
    PyObject *work =
        PyObject_CallFunction(w->make, "LL", (long long)p->batch, (long long)case_dim(p, "length"));
    if (work && !PyObject_TypeCheck(work, &work_type)) {
        PyErr_Format(PyExc_TypeError, "expected Work, not %.100s", Py_TYPE(work)->tp_name);
        Py_CLEAR(work);
    }
    if (!work) return weighed_raise(w, err);
    struct prepared *made = PyMem_Malloc(sizeof *made);
    if (!made) {
        Py_DECREF(work);
        return error_set(err, TARE_NOMEM, "out of memory for a case");
    }
    *made = (struct prepared){w, (struct work *)work};
    *state = made;
    return TARE_OK;
}

static tare_status call(void *state, unsigned Py_UNUSED(worker), struct subject_cost *cost, tare_error *err)
{
    struct prepared *p = state;
    if (work_call(p->work, &cost->wall_ns)) return TARE_OK;
    return weighed_raise(p->weighed, err);
}

static tare_status before(void *state, unsigned Py_UNUSED(worker), tare_error *err)
{
    struct prepared *p = state;
    if (p->weighed->raised) return error_set(err, TARE_DENIED, "%s", Py_TYPE(p->weighed->raised)->tp_name);
    if (work_before(p->work)) return TARE_OK;
    return weighed_raise(p->weighed, err);
}

static tare_status call_nothing(void *state, unsigned Py_UNUSED(worker), struct subject_cost *Py_UNUSED(cost),
                                tare_error *err)
{
    struct prepared *p = state;
    if (work_call_nothing(p->work)) return TARE_OK;
    return weighed_raise(p->weighed, err);
}

static int64_t units(const void *state)
{
    return ((const struct prepared *)state)->work->units;
}

static void finish(void *state)
{
    struct prepared *p = state;
    Py_DECREF(p->work);
    PyMem_Free(p);
}

tare_status work_subject_open(struct subject **out, struct weighed *w, tare_error *err)
{
    struct callback_options o = {.type = "python",
                                 .name = w->name,
                                 .path = w->path,
                                 .runtime = "python",
                                 .ctx = w,
                                 .prepare = prepare,
                                 .call = call,
                                 .before = before,
                                 .before_each = w->setup,
                                 .tells_time = w->timed,
                                 .nothing = call_nothing,
                                 .units = units,
                                 .finish = finish};
    char version[32];
    snprintf(version, sizeof version, "%.*s", (int)strcspn(Py_GetVersion(), " "), Py_GetVersion());
    o.runtime_version = version;
    return subject_open_callback(out, &o, err);
}
