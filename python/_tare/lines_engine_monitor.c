/* SPDX-License-Identifier: MIT
 * lines_engine_monitor.c - lines through sys.monitoring, 3.12 and newer: events are asked for in the chosen
 * functions only, so that all other code runs at full speed. What cannot be asked for in one function alone
 * (leaving it by an exception) comes from all of them and is passed over. */
#include "lines.h"
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <stdio.h>

/* ---- callbacks ---- */

static PyObject *on_line(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    uint64_t now = calls_now();
    struct line_ctx *c = lines_ctx();
    if (CALLS_LIKELY(c != NULL)) lines_line(c, args[0], (int)PyLong_AsLong(args[1]), now);
    Py_RETURN_NONE;
}

static PyObject *on_start(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    struct line_ctx *c = lines_ctx();
    struct line_code *known = c ? lines_code(args[0]) : NULL;
    if (known) lines_enter(c, known, 0);
    Py_RETURN_NONE;
}

static PyObject *on_resume(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    struct line_ctx *c = lines_ctx();
    struct line_code *known = c ? lines_code(args[0]) : NULL;
    if (known)
        lines_enter(c, known, PyCode_Addr2Line((PyCodeObject *)(void *)args[0], (int)PyLong_AsLong(args[1])));
    Py_RETURN_NONE;
}

static PyObject *on_leave(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    uint64_t now = calls_now();
    struct line_ctx *c = lines_ctx();
    if (c && c->n) lines_leave(c, args[0], now);
    Py_RETURN_NONE;
}

/* ---- start and stop ---- */

/* What can be had for one function alone, and what only for all. */
enum { LOCAL, EVERYWHERE };

static struct monitor_event events[] = {
    {"LINE", on_line, LOCAL, {0}, NULL, 0},       {"PY_START", on_start, LOCAL, {0}, NULL, 0},
    {"PY_RESUME", on_resume, LOCAL, {0}, NULL, 0}, {"PY_RETURN", on_leave, LOCAL, {0}, NULL, 0},
    {"PY_YIELD", on_leave, LOCAL, {0}, NULL, 0},  {"PY_UNWIND", on_leave, EVERYWHERE, {0}, NULL, 0},
    {"PY_THROW", on_resume, EVERYWHERE, {0}, NULL, 0},
};
static const int ids[] = {3, 4, 1, 2, -1};
static struct monitor_tool tool = {"tare.lines", ids, events, sizeof events / sizeof *events, 0};

static void monitor_stop(struct line_recorder *rec)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (monitor_is_ours(&tool)) {
        for (size_t i = 0; i < rec->codes.n; i++)
            if (monitor_set_local(&tool, rec->codes.items[i]->code, 0) < 0) PyErr_Clear();
        monitor_give_back(&tool);
    } else {
        snprintf(rec->trouble, sizeof rec->trouble,
                 "the tool id %d of sys.monitoring was taken away: lines after that are missing", tool.id);
    }
    PyErr_Restore(type, value, trace);
}

static int subscribe(struct line_recorder *rec)
{
    if (monitor_set(&tool, monitor_mask(&tool, EVERYWHERE)) < 0) return -1;
    for (size_t i = 0; i < rec->codes.n; i++)
        if (monitor_set_local(&tool, rec->codes.items[i]->code, monitor_mask(&tool, LOCAL)) < 0) return -1;
    return monitor_restart();
}

static int monitor_start(struct line_recorder *rec)
{
    if (monitor_take(&tool) < 0) return -1;
    if (subscribe(rec) == 0) return 0;
    monitor_stop(rec);
    return -1;
}

static int monitor_add(struct line_recorder *Py_UNUSED(rec), PyObject *code)
{
    return monitor_set_local(&tool, code, monitor_mask(&tool, LOCAL));
}

const struct line_engine lines_engine = {monitor_start, monitor_add, monitor_stop};

#endif
