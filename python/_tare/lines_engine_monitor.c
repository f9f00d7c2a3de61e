/* SPDX-License-Identifier: MIT
 * lines_engine_monitor.c - lines through sys.monitoring, 3.12 and newer: events are asked for in the chosen
 * functions only, so that all other code runs at full speed. What cannot be asked for in one function alone
 * (leaving it by an exception) comes from all of them and is passed over. */
#include "lines.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <stdio.h>

#include "core/banned.h"

static struct {
    PyObject *monitoring;
    int tool;
} on;

/* ---- callbacks ---- */

static PyObject *on_line(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    uint64_t now = calls_now();
    (void)self;
    (void)n;
    struct line_ctx *c = lines_ctx();
    if (CALLS_LIKELY(c != NULL)) lines_line(c, args[0], (int)PyLong_AsLong(args[1]), now);
    Py_RETURN_NONE;
}

static PyObject *on_start(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    (void)n;
    struct line_ctx *c = lines_ctx();
    if (c) lines_enter(c, args[0], 0);
    Py_RETURN_NONE;
}

static PyObject *on_resume(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    (void)n;
    struct line_ctx *c = lines_ctx();
    if (c && lines_code(args[0]))
        lines_enter(c, args[0],
                    PyCode_Addr2Line((PyCodeObject *)(void *)args[0], (int)PyLong_AsLong(args[1])));
    Py_RETURN_NONE;
}

static PyObject *on_leave(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    uint64_t now = calls_now();
    (void)self;
    (void)n;
    struct line_ctx *c = lines_ctx();
    if (c && c->n) lines_leave(c, args[0], now);
    Py_RETURN_NONE;
}

typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);

static const struct {
    const char *event;
    fast_function function;
    bool everywhere; /* cannot be had for one function alone */
} wanted[] = {
    {"LINE", on_line, false},       {"PY_START", on_start, false}, {"PY_RESUME", on_resume, false},
    {"PY_RETURN", on_leave, false}, {"PY_YIELD", on_leave, false}, {"PY_UNWIND", on_leave, true},
    {"PY_THROW", on_resume, true},
};
enum { N_WANTED = sizeof wanted / sizeof *wanted };

static PyMethodDef defs[N_WANTED];
static PyObject *callbacks[N_WANTED];

/* ---- sys.monitoring ---- */

static int done(PyObject *result)
{
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static long bit_of(const char *name)
{
    PyObject *events = PyObject_GetAttrString(on.monitoring, "events");
    PyObject *bit = events ? PyObject_GetAttrString(events, name) : NULL;
    long value = bit ? PyLong_AsLong(bit) : -1;
    Py_XDECREF(bit);
    Py_XDECREF(events);
    return value;
}

static long mask_of(bool everywhere)
{
    long mask = 0;
    for (int i = 0; i < N_WANTED; i++)
        if (wanted[i].everywhere == everywhere) mask |= bit_of(wanted[i].event);
    return mask;
}

static int take_tool(void)
{
    static const int tools[] = {3, 4, 1, 2};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        PyObject *name = PyObject_CallMethod(on.monitoring, "get_tool", "i", tools[i]);
        if (!name) return -1;
        bool is_free = name == Py_None;
        Py_DECREF(name);
        if (!is_free) continue;
        on.tool = tools[i];
        return done(PyObject_CallMethod(on.monitoring, "use_tool_id", "is", on.tool, "tare.lines"));
    }
    PyErr_SetString(PyExc_RuntimeError,
                    "tare.lines needs a tool id of sys.monitoring, and 1 to 4 are in use: stop a debugger, a "
                    "profiler or a coverage tool first");
    return -1;
}

static int register_all(bool ours)
{
    for (int i = 0; i < N_WANTED; i++) {
        if (!callbacks[i]) {
            defs[i] = (PyMethodDef){wanted[i].event, (PyCFunction)(void (*)(void))wanted[i].function,
                                    METH_FASTCALL, NULL};
            if (!(callbacks[i] = PyCFunction_New(&defs[i], NULL))) return -1;
        }
        if (done(PyObject_CallMethod(on.monitoring, "register_callback", "ilO", on.tool,
                                     bit_of(wanted[i].event), ours ? callbacks[i] : Py_None)) < 0)
            return -1;
    }
    return 0;
}

static int watch(PyObject *code, long mask)
{
    return done(PyObject_CallMethod(on.monitoring, "set_local_events", "iOl", on.tool, code, mask));
}

/* ---- start and stop ---- */

static bool still_ours(void)
{
    PyObject *name = PyObject_CallMethod(on.monitoring, "get_tool", "i", on.tool);
    bool ours = name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "tare.lines") == 0;
    Py_XDECREF(name);
    return ours;
}

static void monitor_stop(struct line_recorder *rec)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (!still_ours()) {
        snprintf(rec->trouble, sizeof rec->trouble,
                 "the tool id %d of sys.monitoring was taken away: lines after that are missing", on.tool);
        PyErr_Clear();
    } else {
        for (size_t i = 0; i < rec->codes.n; i++)
            if (watch(rec->codes.items[i]->code, 0) < 0) PyErr_Clear();
        if (done(PyObject_CallMethod(on.monitoring, "set_events", "ii", on.tool, 0)) < 0) PyErr_Clear();
        if (register_all(false) < 0) PyErr_Clear();
        if (done(PyObject_CallMethod(on.monitoring, "free_tool_id", "i", on.tool)) < 0) PyErr_Clear();
    }
    PyErr_Restore(type, value, trace);
}

static int subscribe(struct line_recorder *rec)
{
    long local = mask_of(false);
    if (PyErr_Occurred() || register_all(true) < 0) return -1;
    if (done(PyObject_CallMethod(on.monitoring, "set_events", "il", on.tool, mask_of(true))) < 0) return -1;
    for (size_t i = 0; i < rec->codes.n; i++)
        if (watch(rec->codes.items[i]->code, local) < 0) return -1;
    return done(PyObject_CallMethod(on.monitoring, "restart_events", NULL));
}

static int monitor_start(struct line_recorder *rec)
{
    if (!on.monitoring) {
        PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
        if (!monitoring) {
            PyErr_SetString(PyExc_RuntimeError, "sys.monitoring is missing in this Python");
            return -1;
        }
        on.monitoring = Py_NewRef(monitoring);
    }
    if (take_tool() < 0) return -1;
    if (subscribe(rec) == 0) return 0;
    monitor_stop(rec);
    return -1;
}

static int monitor_add(struct line_recorder *rec, PyObject *code)
{
    (void)rec;
    return watch(code, mask_of(false));
}

const struct line_engine lines_engine = {monitor_start, monitor_add, monitor_stop};

#endif
