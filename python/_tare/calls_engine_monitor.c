/* SPDX-License-Identifier: MIT
 * calls_engine_monitor.c - calls through sys.monitoring, 3.12 and newer: all threads at once. Without
 * exact_c a call site that has called only Python functions for a while is switched off, because those tell
 * of themselves, and looked at again every other second: C functions called there meanwhile are missed,
 * which the profile says. Never uses the tool number of cProfile while another is free. */
#include "calls.h"
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <stdio.h>
#include <string.h>

enum { SITE_BITS = 12, QUIET_AFTER = 16 };
#define RESTART_EVERY UINT64_C(5000000000) /* ticks: about two seconds */

/* What a call site has called, by a hash of its place: two sites that meet here only forget. */
static struct site {
    uint64_t place;
    uint32_t python_calls;
    bool calls_c;
} sites[1 << SITE_BITS];

/* Switching events on and off costs as much as so many of them: that many are let pass unread before they
 * are switched off, where the next profile may begin soon. */
enum { LINGER_EVENTS = 500 };

static struct {
    PyObject *missing, *disable;
    bool fast, exact_c;
    uint64_t next_restart;
    uint32_t lingers; /* events still let pass; 0: none come when nothing records */
} on;

static void let_pass(void);

static struct site *site_at(PyObject *code, PyObject *offset)
{
    uint64_t place = ((uint64_t)(uintptr_t)code << 4) ^ (uint64_t)PyLong_AsLong(offset);
    struct site *s = &sites[(place * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - SITE_BITS)];
    if (s->place != place) *s = (struct site){.place = place};
    return s;
}

/* The definition behind a C function or method, where SetProfile would tell of it; else NULL. */
static inline const PyMethodDef *c_callee(PyObject *callable, PyObject *first)
{
    if (PyCFunction_Check(callable)) return ((PyCFunctionObject *)callable)->m_ml;
    if (Py_TYPE(callable) != &PyMethodDescr_Type || first == on.missing) return NULL;
    const PyMethodDescrObject *descr = (const PyMethodDescrObject *)callable;
    return PyObject_TypeCheck(first, descr->d_common.d_type) ? descr->d_method : NULL;
}

/* Sites that were switched off tell of themselves again: they may call C functions now. */
static void restart(uint64_t now)
{
    on.next_restart = now + RESTART_EVERY;
    if (!on.exact_c && monitor_restart() < 0) PyErr_Clear();
}

/* ---- callbacks ---- */

static PyObject *on_enter(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    struct call_ctx *c = threads_mine();
    if (CALLS_UNLIKELY(!c)) {
        let_pass();
        Py_RETURN_NONE;
    }
    ctx_enter(c, args[0], args[0], CALL_PYTHON);
    if (CALLS_UNLIKELY(c->stack.top->start > on.next_restart)) restart(c->stack.top->start);
    Py_RETURN_NONE;
}

static PyObject *on_leave(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    uint64_t now = calls_now();
    struct call_ctx *c = threads_mine();
    if (CALLS_LIKELY(c != NULL))
        ctx_leave(c, args[0], now);
    else
        let_pass();
    Py_RETURN_NONE;
}

/* What the sites of the innermost open call have told. */
static inline struct site_events *ctx_sites(struct call_ctx *c)
{
    uint32_t number = c->stack.top->node->number;
    return CALLS_LIKELY(number < c->sites.n) ? &c->sites.items[number] : ctx_sites_more(c, number);
}

/* The site may be switched off. Once is enough for the profile to be told. */
static PyObject *python_called(PyObject *const *args)
{
    struct site *site = site_at(args[0], args[1]);
    if (site->calls_c || ++site->python_calls < QUIET_AFTER) Py_RETURN_NONE;
    if (calls_active) calls_active->sites_off++;
    return Py_NewRef(on.disable);
}

static PyObject *on_call(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    const PyMethodDef *def = c_callee(args[2], args[3]);
    struct call_ctx *c = threads_mine();
    if (!def) {
        if (CALLS_LIKELY(c != NULL)) ctx_sites(c)->called++;
        return on.exact_c ? Py_NewRef(Py_None) : python_called(args);
    }
    if (!on.exact_c) site_at(args[0], args[1])->calls_c = true;
    if (CALLS_LIKELY(c != NULL))
        ctx_enter(c, def, args[2], CALL_C);
    else
        let_pass();
    Py_RETURN_NONE;
}

static PyObject *on_c_left(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    uint64_t now = calls_now();
    const PyMethodDef *def = c_callee(args[2], args[3]);
    struct call_ctx *c = threads_mine();
    if (CALLS_UNLIKELY(!c)) Py_RETURN_NONE;
    if (def)
        ctx_leave(c, def, now);
    else
        ctx_sites(c)->left++;
    Py_RETURN_NONE;
}

/* ---- start and stop ---- */

/* The last two come with CALL and cannot be asked for alone. */
enum { OF_PYTHON, OF_C, WITH_CALL };

static struct monitor_event events[] = {
    {"PY_START", on_enter, OF_PYTHON, {0}, NULL, 0}, {"PY_RESUME", on_enter, OF_PYTHON, {0}, NULL, 0},
    {"PY_THROW", on_enter, OF_PYTHON, {0}, NULL, 0}, {"PY_RETURN", on_leave, OF_PYTHON, {0}, NULL, 0},
    {"PY_YIELD", on_leave, OF_PYTHON, {0}, NULL, 0}, {"PY_UNWIND", on_leave, OF_PYTHON, {0}, NULL, 0},
    {"CALL", on_call, OF_C, {0}, NULL, 0},           {"C_RETURN", on_c_left, WITH_CALL, {0}, NULL, 0},
    {"C_RAISE", on_c_left, WITH_CALL, {0}, NULL, 0},
};
static const int ids[] = {4, 3, 2, -1}; /* 2 is where cProfile goes: the program may want it */
static struct monitor_tool tool = {"tare.functions", ids, events, sizeof events / sizeof *events, 0};

static void let_go(void)
{
    if (!on.lingers) return;
    on.lingers = 0;
    if (monitor_is_ours(&tool)) monitor_give_back(&tool);
}

/* Nothing records: an event too many. */
static void let_pass(void)
{
    if (on.lingers > 1)
        on.lingers--;
    else
        let_go();
}

static int find_names(void)
{
    if (!on.missing) on.missing = monitor_get("MISSING");
    if (!on.disable) on.disable = monitor_get("DISABLE");
    return on.missing && on.disable ? 0 : -1;
}

/* Events still come, as this profile wants them. Should another have taken the number since, stopping
 * tells. */
static bool go_on(const struct call_recorder *rec)
{
    if (on.lingers && rec->lingers && rec->fast == on.fast && rec->exact_c == on.exact_c) {
        on.lingers = 0;
        return true;
    }
    let_go();
    return false;
}

static int monitor_start(struct call_recorder *rec)
{
    if (go_on(rec)) return 0;
    if (find_names() < 0 || monitor_take(&tool) < 0) return -1;
    memset(sites, 0, sizeof sites);
    on.fast = rec->fast;
    on.exact_c = rec->exact_c;
    on.next_restart = calls_now() + RESTART_EVERY;
    long mask = monitor_mask(&tool, OF_PYTHON) | (rec->fast ? 0 : monitor_mask(&tool, OF_C));
    if (monitor_restart() == 0 && monitor_set(&tool, mask) == 0) return 0;
    monitor_give_back(&tool);
    return -1;
}

static void monitor_stop(struct call_recorder *rec)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (!monitor_is_ours(&tool))
        snprintf(rec->trouble, sizeof rec->trouble,
                 "the tool id %d of sys.monitoring was taken away meanwhile: calls after that are missing",
                 tool.id);
    else if (rec->lingers)
        on.lingers = LINGER_EVENTS;
    else
        monitor_give_back(&tool);
    PyErr_Restore(type, value, trace);
}

static const struct call_engine monitor_engine = {"sys.monitoring", monitor_start, monitor_stop, NULL,
                                                  let_go};
const struct call_engine *const calls_exact_engine = &monitor_engine;
const struct call_engine *const calls_fast_engine = &monitor_engine;

#endif
