/* SPDX-License-Identifier: MIT
 * calls_engine_monitor.c - calls through sys.monitoring, 3.12 and newer: all threads at once. There is no C
 * interface to subscribe with, so the callbacks are built-in functions registered through the Python one. A
 * call site that has called only Python functions for a while is switched off, because those tell of
 * themselves; what it calls later is looked at again every other second. Never uses the tool number of
 * cProfile while another is free. */
#include "calls.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <stdio.h>
#include <string.h>

#include "core/banned.h"

enum { SITE_BITS = 12, QUIET_AFTER = 16 };
#define RESTART_EVERY UINT64_C(5000000000) /* ticks: about two seconds */

/* What a call site has called, by a hash of its place: two sites that meet here only forget. */
static struct site {
    uint64_t place;
    uint32_t python_calls;
    bool calls_c;
} sites[1 << SITE_BITS];

static struct {
    PyObject *monitoring, *missing, *disable;
    int tool;
    bool exact_c;
    uint64_t next_restart;
} on;

static struct site *site_at(PyObject *code, PyObject *offset)
{
    uint64_t place = ((uint64_t)(uintptr_t)code << 4) ^ (uint64_t)PyLong_AsLong(offset);
    struct site *s = &sites[(place * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - SITE_BITS)];
    if (s->place != place) *s = (struct site){.place = place};
    return s;
}

/* The definition behind a C function or method, where SetProfile would tell of it; NULL for everything else.
 */
static inline const PyMethodDef *c_callee(PyObject *callable, PyObject *first)
{
    if (PyCFunction_Check(callable)) return ((PyCFunctionObject *)callable)->m_ml;
    if (Py_TYPE(callable) != &PyMethodDescr_Type || first == on.missing) return NULL;
    const PyMethodDescrObject *descr = (const PyMethodDescrObject *)callable;
    return PyObject_TypeCheck(first, descr->d_common.d_type) ? descr->d_method : NULL;
}

static void restart(uint64_t now)
{
    on.next_restart = now + RESTART_EVERY;
    PyObject *done = on.exact_c ? NULL : PyObject_CallMethod(on.monitoring, "restart_events", NULL);
    Py_XDECREF(done);
    PyErr_Clear();
}

/* ---- callbacks ---- */

static PyObject *on_enter(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    (void)n;
    struct call_ctx *c = threads_mine();
    if (CALLS_UNLIKELY(!c)) Py_RETURN_NONE;
    ctx_enter(c, args[0], args[0], CALL_PYTHON);
    if (CALLS_UNLIKELY(c->stack.top->start > on.next_restart)) restart(c->stack.top->start);
    Py_RETURN_NONE;
}

static PyObject *on_leave(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    uint64_t now = calls_now();
    (void)self;
    (void)n;
    struct call_ctx *c = threads_mine();
    if (CALLS_LIKELY(c != NULL)) ctx_leave(c, args[0], now);
    Py_RETURN_NONE;
}

static PyObject *on_call(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    (void)n;
    const PyMethodDef *def = c_callee(args[2], args[3]);
    struct site *site = site_at(args[0], args[1]);
    if (!def) {
        if (on.exact_c || site->calls_c || ++site->python_calls < QUIET_AFTER) Py_RETURN_NONE;
        return Py_NewRef(on.disable);
    }
    site->calls_c = true;
    struct call_ctx *c = threads_mine();
    if (CALLS_LIKELY(c != NULL)) ctx_enter(c, def, args[2], CALL_C);
    Py_RETURN_NONE;
}

static PyObject *on_c_left(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    uint64_t now = calls_now();
    (void)self;
    (void)n;
    const PyMethodDef *def = c_callee(args[2], args[3]);
    struct call_ctx *c = def ? threads_mine() : NULL;
    if (CALLS_LIKELY(c != NULL)) ctx_leave(c, def, now);
    Py_RETURN_NONE;
}

typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);

static const struct {
    const char *event;
    fast_function function;
    bool of_c;
} wanted[] = {
    {"PY_START", on_enter, false},  {"PY_RESUME", on_enter, false}, {"PY_THROW", on_enter, false},
    {"PY_RETURN", on_leave, false}, {"PY_YIELD", on_leave, false},  {"PY_UNWIND", on_leave, false},
    {"CALL", on_call, true},        {"C_RETURN", on_c_left, true},  {"C_RAISE", on_c_left, true},
};
enum { N_WANTED = sizeof wanted / sizeof *wanted };

static PyMethodDef defs[N_WANTED];
static PyObject *callbacks[N_WANTED];

static int make_callbacks(void)
{
    for (int i = 0; i < N_WANTED; i++) {
        if (callbacks[i]) continue;
        defs[i] = (PyMethodDef){wanted[i].event, (PyCFunction)(void (*)(void))wanted[i].function,
                                METH_FASTCALL, NULL};
        if (!(callbacks[i] = PyCFunction_New(&defs[i], NULL))) return -1;
    }
    return 0;
}

/* ---- the tool number ---- */

static PyObject *tool_name(int tool)
{
    return PyObject_CallMethod(on.monitoring, "get_tool", "i", tool);
}

static int tools_taken(void)
{
    PyObject *names = PyList_New(0);
    for (int tool = 2; names && tool <= 4; tool++) {
        PyObject *name = tool_name(tool);
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    if (names)
        PyErr_Format(
            PyExc_RuntimeError,
            "tare.functions needs tool id 2, 3 or 4 of sys.monitoring; they are in use by %R: stop one of "
            "these tools first",
            names);
    Py_XDECREF(names);
    return -1;
}

/* 2 is where cProfile goes: taken last, so that the program may use it. */
static int take_tool(void)
{
    static const int tools[] = {4, 3, 2};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        PyObject *name = tool_name(tools[i]);
        if (!name) return -1;
        bool is_free = name == Py_None;
        Py_DECREF(name);
        if (!is_free) continue;
        on.tool = tools[i];
        PyObject *done = PyObject_CallMethod(on.monitoring, "use_tool_id", "is", on.tool, "tare.functions");
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    return tools_taken();
}

/* ---- start and stop ---- */

static int find_names(void)
{
    if (on.monitoring) return 0;
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
    if (!monitoring) {
        PyErr_SetString(PyExc_RuntimeError, "sys.monitoring is missing in this Python");
        return -1;
    }
    on.missing = PyObject_GetAttrString(monitoring, "MISSING");
    on.disable = PyObject_GetAttrString(monitoring, "DISABLE");
    if (!on.missing || !on.disable) return -1;
    on.monitoring = Py_NewRef(monitoring);
    return 0;
}

static long event_bit(const char *name)
{
    PyObject *events = PyObject_GetAttrString(on.monitoring, "events");
    PyObject *bit = events ? PyObject_GetAttrString(events, name) : NULL;
    long value = bit ? PyLong_AsLong(bit) : -1;
    Py_XDECREF(bit);
    Py_XDECREF(events);
    return value;
}

static int call_done(PyObject *result)
{
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int subscribe(bool with_c)
{
    long mask = 0;
    for (int i = 0; i < N_WANTED; i++) {
        if (wanted[i].of_c && !with_c) continue;
        long bit = event_bit(wanted[i].event);
        if (bit < 0 || call_done(PyObject_CallMethod(on.monitoring, "register_callback", "ilO", on.tool, bit,
                                                     callbacks[i])) < 0)
            return -1;
        /* These two come with CALL and cannot be asked for alone. */
        if (!wanted[i].of_c || wanted[i].function == on_call) mask |= bit;
    }
    if (call_done(PyObject_CallMethod(on.monitoring, "restart_events", NULL)) < 0) return -1;
    return call_done(PyObject_CallMethod(on.monitoring, "set_events", "il", on.tool, mask));
}

static void give_back(void)
{
    PyErr_Clear();
    if (call_done(PyObject_CallMethod(on.monitoring, "set_events", "ii", on.tool, 0)) < 0) PyErr_Clear();
    for (int i = 0; i < N_WANTED; i++)
        if (call_done(PyObject_CallMethod(on.monitoring, "register_callback", "ilO", on.tool,
                                          event_bit(wanted[i].event), Py_None)) < 0)
            PyErr_Clear();
    if (call_done(PyObject_CallMethod(on.monitoring, "free_tool_id", "i", on.tool)) < 0) PyErr_Clear();
}

static int monitor_start(struct recorder *rec)
{
    if (find_names() < 0 || make_callbacks() < 0 || take_tool() < 0) return -1;
    memset(sites, 0, sizeof sites);
    on.exact_c = rec->exact_c;
    on.next_restart = calls_now() + RESTART_EVERY;
    if (subscribe(!rec->fast) == 0) return 0;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    give_back();
    PyErr_Restore(type, value, trace);
    return -1;
}

/* Is the tool still ours? A program may free any tool's number. */
static bool still_ours(void)
{
    PyObject *name = tool_name(on.tool);
    PyObject *before = name ? PyObject_CallMethod(on.monitoring, "register_callback", "ilO", on.tool,
                                                  event_bit("PY_START"), callbacks[0])
                            : NULL;
    bool ours =
        name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "tare.functions") == 0;
    bool same = before == callbacks[0];
    if (ours && before && !same)
        call_done(PyObject_CallMethod(on.monitoring, "register_callback", "ilO", on.tool,
                                      event_bit("PY_START"), before));
    Py_XDECREF(before);
    Py_XDECREF(name);
    PyErr_Clear();
    return ours && same;
}

static void monitor_stop(struct recorder *rec)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (still_ours())
        give_back();
    else
        snprintf(rec->trouble, sizeof rec->trouble,
                 "the tool id %d of sys.monitoring was taken away meanwhile: calls after that are missing",
                 on.tool);
    PyErr_Restore(type, value, trace);
}

static const struct call_engine monitor_engine = {"sys.monitoring", monitor_start, monitor_stop, NULL};
const struct call_engine *const calls_exact_engine = &monitor_engine;
const struct call_engine *const calls_fast_engine = &monitor_engine;

#endif
