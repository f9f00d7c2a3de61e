/* SPDX-License-Identifier: MIT
 * py_functions.c - the type `CallRecorder`: starts and stops the recording of calls and hands its results out.
 * At most one records at a time. Measures no cost of its own: the Python half does, and tells. */
#include "calls_results.h"

#include <string.h>

bool calls_use_tsc;
struct call_recorder *calls_active;
PyTypeObject *calls_type;

static struct clock_source source;
static struct clock_pair first_pair;

double calls_tick_ns(void)
{
    if (!source.tsc) return 1;
    struct clock_pair now;
    double ns;
    do {
        clock_pair_take(&now, &source);
        ns = clock_tick_ns(&first_pair, &now);
    } while (ns == 0); /* until 100 us have passed since the module was loaded */
    return ns;
}

double recorder_tick_ns(struct call_recorder *rec)
{
    if (calls_active == rec || rec->tick_ns == 0) rec->tick_ns = calls_tick_ns();
    return rec->tick_ns;
}

/* ---- start and stop ---- */

/* Open calls end now, before the engine goes: the order in which a program would have left them. */
static void recorder_stop(struct call_recorder *rec)
{
    if (calls_active != rec) return;
    uint64_t now = calls_now();
    for (size_t i = 0; i < rec->threads.n; i++) {
        ctx_settle(rec->threads.items[i], now);
        ctx_close(rec->threads.items[i], now);
    }
    rec->recorded += now - rec->started;
    rec->engine->stop(rec);
    struct call_ctx *mine = threads_known(rec, PyThreadState_Get());
    if (mine) threads_unhook(mine);
    rec->engine = NULL;
    calls_active = NULL;
    calls_generation++;
    Py_DECREF((PyObject *)rec);
}

/* One that nobody but us refers to any more cannot be disabled by anybody: a notebook's cell that was run twice. */
static int recorder_start(struct call_recorder *rec)
{
    if (calls_active == rec) return 0;
    if (calls_active && Py_REFCNT((PyObject *)calls_active) == 1) recorder_stop(calls_active);
    if (calls_active)
        return refuse(PyExc_RuntimeError,
                      "another tare.functions() records already, and profiles do not nest: disable it first");
    calls_active = (struct call_recorder *)Py_NewRef((PyObject *)rec);
    calls_generation++;
    rec->engine = rec->fast ? calls_fast_engine : calls_exact_engine;
    rec->trouble[0] = 0;
    rec->tick_ns = 0;
    for (size_t i = 0; i < rec->threads.n; i++) ctx_listen(rec->threads.items[i]);
    rec->started = calls_now();
    if (rec->engine->start(rec) == 0) return 0;
    rec->engine = NULL;
    calls_active = NULL;
    calls_generation++;
    Py_DECREF((PyObject *)rec);
    return -1;
}

/* ---- methods ---- */

static PyObject *recorder_enable(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (recorder_start((struct call_recorder *)self) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *recorder_disable(PyObject *self, PyObject *Py_UNUSED(none))
{
    recorder_stop((struct call_recorder *)self);
    Py_RETURN_NONE;
}

static PyObject *recorder_enter(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (recorder_start((struct call_recorder *)self) < 0) return NULL;
    return Py_NewRef(self);
}

static PyObject *recorder_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
    recorder_stop((struct call_recorder *)self);
    Py_RETURN_FALSE;
}

static void recorder_release(struct call_recorder *rec)
{
    for (size_t i = 0; i < rec->threads.n; i++) ctx_free(rec->threads.items[i]);
    vec_release(&rec->threads);
    funcs_release(rec);
    rec->n_nodes = rec->folds = 0;
    memset(rec->gauge, 0, sizeof rec->gauge);
    rec->recorded = rec->events_lost = rec->sites_off = 0;
    rec->trouble[0] = 0;
}

static PyObject *recorder_clear(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (calls_active == (struct call_recorder *)self)
        return PyErr_Format(PyExc_RuntimeError, "the profile is running: disable it before clearing it");
    recorder_release((struct call_recorder *)self);
    Py_RETURN_NONE;
}

static PyObject *recorder_labels(PyObject *self, PyObject *Py_UNUSED(none))
{
    const struct call_recorder *rec = (const struct call_recorder *)self;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < rec->funcs.n; i++) {
        PyObject *label = func_label(&rec->funcs.items[i]);
        list = list_append(list, label ? Py_BuildValue("Ni", label, (int)rec->funcs.items[i].kind) : NULL);
    }
    return list;
}

static PyObject *recorder_set_cost(PyObject *self, PyObject *args)
{
    struct call_recorder *rec = (struct call_recorder *)self;
    if (PyTuple_GET_SIZE(args) != COST_KINDS + 1)
        return PyErr_Format(PyExc_TypeError, "a cost for each of %d kinds, and a slowdown", COST_KINDS);
    if (!PyArg_Parse(PyTuple_GET_ITEM(args, COST_KINDS), "d", &rec->slowed)) return NULL;
    for (int i = 0; i < COST_KINDS; i++) {
        double gauge;
        if (!PyArg_Parse(PyTuple_GET_ITEM(args, i), "(dddd)", &rec->cost[i][COST_INNER],
                         &rec->cost[i][COST_OUTER], &rec->doubt[i], &gauge))
            return NULL;
        if (i < CALL_KINDS) rec->gauge_before[i] = gauge;
    }
    Py_RETURN_NONE;
}

/* Told apart by address: copies of one code have one label. */
static PyObject *recorder_codes(PyObject *self, PyObject *Py_UNUSED(none))
{
    const struct call_recorder *rec = (const struct call_recorder *)self;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < rec->funcs.n; i++)
        list = list_append(list, PyLong_FromVoidPtr((void *)(uintptr_t)rec->funcs.items[i].key));
    return list;
}

static PyObject *recorder_linger(PyObject *self, PyObject *Py_UNUSED(none))
{
    ((struct call_recorder *)self)->lingers = true;
    Py_RETURN_NONE;
}

static PyObject *recorder_status(PyObject *self, PyObject *Py_UNUSED(none))
{
    struct call_recorder *rec = (struct call_recorder *)self;
    uint64_t ticks = rec->recorded + (calls_active == rec ? calls_now() - rec->started : 0);
    double gauge[CALL_KINDS];
    bool was_read = gauges_ns(rec, gauge);
    uint64_t sites[SITE_KINDS] = {0};
    for (size_t i = 0; i < rec->threads.n; i++)
        if (!rec->threads.items[i]->left_out) add_sites(rec->threads.items[i], sites);
    return Py_BuildValue(
        "{s:O,s:O,s:O,s:(dddd),s:(KK),s:d,s:d,s:n,s:n,s:K,s:K,s:K,s:s}", "running",
        calls_active == rec ? Py_True : Py_False, "asks_for_waiting", rec->lingers ? Py_False : Py_True,
        "gauge_read", was_read ? Py_True : Py_False, "gauge_ns", gauge[0], gauge[1], gauge[2], gauge[3],
        "sites", (unsigned long long)sites[SITE_PYTHON], (unsigned long long)sites[SITE_OTHER],
        "preempted_ns", recorder_preempted_ns(rec), "ns", (double)ticks * recorder_tick_ns(rec), "threads",
        (Py_ssize_t)rec->threads.n, "paths", (Py_ssize_t)rec->n_nodes, "folded",
        (unsigned long long)rec->folds, "lost", (unsigned long long)rec->events_lost, "sites_off",
        (unsigned long long)rec->sites_off, "trouble", rec->trouble);
}

static PyMethodDef methods[] = {
    {"enable", recorder_enable, METH_NOARGS, "enable($self)\n--\n\nRecord calls in all threads from now on."},
    {"disable", recorder_disable, METH_NOARGS,
     "disable($self)\n--\n\nStop recording; harmless when it does not record."},
    {"__enter__", recorder_enter, METH_NOARGS, NULL},
    {"__exit__", recorder_exit, METH_VARARGS, NULL},
    {"clear", recorder_clear, METH_NOARGS, "clear($self)\n--\n\nForget what was recorded."},
    {"_labels", recorder_labels, METH_NOARGS, "_labels(): [((file, line, name), kind)]"},
    {"_codes", recorder_codes, METH_NOARGS, "_codes(): [id of the code, or another number]"},
    {"_sums", calls_sums, METH_NOARGS, "_sums(): sums by function and by pair of caller and function"},
    {"_columns", calls_columns, METH_NOARGS, "_columns(): each thread's tree"},
    {"_leave_out", calls_leave_out, METH_O, "_leave_out(idents): results without these threads; their names"},
    {"_set_cost", recorder_set_cost, METH_VARARGS,
     "_set_cost(python, c, resumed, method, site, other, slowed): as _weigh.CallCost"},
    {"_linger", recorder_linger, METH_NOARGS, "_linger(): it will be enabled again and again, for short"},
    {"_status", recorder_status, METH_NOARGS, "_status(): does it run, how long, what is missing"},
    {NULL, NULL, 0, NULL},
};

bool calls_is_own(const PyMethodDef *def)
{
    return def >= methods && def < methods + sizeof methods / sizeof *methods;
}

/* ---- the type ---- */

/* Python lets anybody call __init__() again. While the profile runs that is refused: its hooks read these
 * fields. */
static int recorder_init(PyObject *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"fast", "exact_c", "limit", "cpu", NULL};
    struct call_recorder *rec = (struct call_recorder *)self;
    int fast = 0, exact_c = 1, cpu = 0;
    Py_ssize_t limit = 1000000;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|$ppnp:functions", names, &fast, &exact_c, &limit, &cpu))
        return -1;
    if (limit < 1 || limit > CALLS_LIMIT_MOST)
        return refuse(PyExc_ValueError, "limit must be from 1 to %d call paths, not %zd", CALLS_LIMIT_MOST,
                      limit);
    if (calls_active == rec) return refuse(PyExc_RuntimeError, "the profile is running");
    rec->fast = fast;
    rec->exact_c = exact_c;
    rec->cpu_clock = cpu;
    rec->limit = (size_t)limit;
    return 0;
}

static void recorder_dealloc(PyObject *self)
{
    recorder_release((struct call_recorder *)self);
    object_free(self);
}

static char about[] = "Records calls into one tree per thread. Use tare.functions().";

static PyType_Slot slots[] = {
    {Py_tp_doc, about},
    {Py_tp_init, (void *)recorder_init},
    {Py_tp_new, (void *)PyType_GenericNew},
    {Py_tp_dealloc, (void *)recorder_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tare._tare.CallRecorder",
    .basicsize = sizeof(struct call_recorder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

static PyObject *functions_stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    if (calls_active) recorder_stop(calls_active);
    if (calls_exact_engine->let_go) calls_exact_engine->let_go();
    Py_RETURN_NONE;
}

static PyObject *functions_running(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(calls_active != NULL);
}

static PyObject *nothing(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(argument))
{
    Py_RETURN_NONE;
}

/* ---- processes that the program starts ---- */

static PyObject *children; /* list of (event, first argument or None) */

static void child_note(const char *event, PyObject *args)
{
    bool has = args && PyTuple_Check(args) && PyTuple_GET_SIZE(args) > 0;
    PyObject *row = Py_BuildValue("sO", event, has ? PyTuple_GET_ITEM(args, 0) : Py_None);
    if (!row || PyList_Append(children, row) < 0) PyErr_Clear();
    Py_XDECREF(row);
}

/* A hook in C, because one in Python would be seen by fast=True, and be slow where a program asks for id() a lot. */
static int child_heard(const char *event, PyObject *args, void *Py_UNUSED(none))
{
    static const char *const events[] = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn",
                                         "os.system"};
    if (event[0] != 's' && event[0] != 'o') return 0;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (strcmp(event, events[i]) == 0) child_note(event, args);
    return 0;
}

static PyObject *fork_exec; /* Python's own */

static PyObject *fork_exec_heard(PyObject *Py_UNUSED(self), PyObject *args)
{
    child_note("fork_exec", args);
    return PyObject_CallObject(fork_exec, args);
}

/* What multiprocessing spawns has no audit event: its way to the kernel is led past here, under the same name. Without
 * such a module it starts none. */
static void hear_fork_exec(void)
{
    static PyMethodDef heard = {"fork_exec", fork_exec_heard, METH_VARARGS, NULL};
    PyObject *module = PyImport_ImportModule("_posixsubprocess");
    PyObject *name = module ? PyModule_GetNameObject(module) : NULL;
    PyObject *ours = name ? PyCFunction_NewEx(&heard, NULL, name) : NULL;
    fork_exec = ours ? PyObject_GetAttrString(module, "fork_exec") : NULL;
    if (!fork_exec || PyObject_SetAttrString(module, "fork_exec", ours) < 0) PyErr_Clear();
    Py_XDECREF(ours);
    Py_XDECREF(name);
    Py_XDECREF(module);
}

static PyObject *functions_children(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    if (!children) {
        if (!(children = PyList_New(0))) return NULL;
        if (PySys_AddAuditHook(child_heard, NULL) < 0) return NULL;
        hear_fork_exec();
    }
    return Py_NewRef(children);
}

static PyMethodDef functions[] = {
    {"functions_children", functions_children, METH_NOARGS,
     "functions_children(): [(event, what)], which grows with each process started from the first call on"},
    {"functions_stop", functions_stop, METH_NOARGS, "functions_stop(): stop the profile that records"},
    {"functions_running", functions_running, METH_NOARGS, "functions_running(): whether a profile records"},
    {"nothing", nothing, METH_O, "nothing(x): a call of a C function, to weigh"},
    {NULL, NULL, 0, NULL},
};

static int functions_init(PyObject *module)
{
    clock_detect(&source, false);
    calls_use_tsc = source.tsc;
    clock_pair_take(&first_pair, &source);
    return threads_init() < 0 || aside_init() < 0 ? -1 : add_type(module, &spec, &calls_type);
}

const struct part functions_part = {functions, functions_init};
