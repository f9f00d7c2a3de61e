/* SPDX-License-Identifier: MIT
 * py_runs.c - the measuring half of the worker of `tare bench py:..`: runs of one case in a row, timed as tare.bench
 * times them, and what this process has used. */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "probe/procstat.h"
#include "subject/py_wire.h"
#include "work.h"

#include <structmember.h> /* needs Python.h, which is in work.h */

struct runs {
    PyObject_HEAD struct weighed weighed;
    struct subject *subject;
    struct instance *instance;
    struct run scratch; /* where the case would be described */
    struct run_map params;
    unsigned long long failed_ns; /* of the run that raised */
};

/* ---- making and dropping ---- */

static void dealloc(PyObject *self)
{
    struct runs *r = (struct runs *)self;
    if (r->instance) r->subject->ops->finish(r->instance);
    subject_close(r->subject);
    run_release(&r->scratch);
    Py_CLEAR(r->weighed.make);
    Py_CLEAR(r->weighed.raised);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *fail(struct runs *r, const tare_error *err)
{
    if (!r->weighed.raised) return raise_error(err);
    weighed_restore(&r->weighed);
    return NULL;
}

/* Goes through a subject like a bench in this process does, so that a worker process warms up, groups and
 * times calls by the same code. The document in `scratch` is only there because prepare() records what it
 * chose. */
static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"make", "batch", "length", "timed", "one_by_one", NULL};
    PyObject *make;
    long long batch, length;
    int timed, one_by_one;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OLLpp:Runs", names, &make, &batch, &length, &timed,
                                     &one_by_one))
        return NULL;
    struct runs *r = (struct runs *)type->tp_alloc(type, 0);
    if (!r) return NULL;
    r->weighed = (struct weighed){.make = Py_NewRef(make), .name = "worker", .timed = timed};
    struct dim_value dim = {"length", length};
    struct case_params p = {
        .batch = batch, .dims = &dim, .n_dims = length > 0, .workers = 1, .ungrouped = one_by_one};
    struct case_record to = {&r->scratch, &r->params};
    tare_status s = run_init(&r->scratch, "bench", &err);
    if (s == TARE_OK) s = work_subject_open(&r->subject, &r->weighed, &err);
    if (s == TARE_OK) s = r->subject->ops->prepare(r->subject, &p, &to, &r->instance, &err);
    if (s == TARE_OK) return (PyObject *)r;
    fail(r, &err);
    Py_DECREF(r);
    return NULL;
}

/* ---- running ---- */

struct times {
    uint64_t *ns;
    Py_ssize_t n, most;
};

static tare_status run_some(struct runs *r, struct times *out, uint64_t length_ns, tare_error *err)
{
    const struct subject_ops *ops = r->subject->ops;
    uint64_t spent = 0;
    do {
        struct subject_cost cost = {0};
        tare_status s = ops->before_run(r->instance, 0, err);
        if (s == TARE_OK && (s = ops->run(r->instance, 0, &cost, err)) < 0) r->failed_ns = cost.wall_ns;
        if (s < 0) return s;
        out->ns[out->n++] = cost.wall_ns;
        spent += cost.wall_ns * callback_group(r->instance);
    } while (out->n < out->most && spent < length_ns);
    return TARE_OK;
}

static long involuntary(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? use.ru_nivcsw : 0;
}

/* Where a run raised, the times of those before it go back, and the exception comes when more are asked for.
 * The times go back as bytes: up to 65536 numbers as Python objects would grow the heap of the process
 * that is measured. Switches are of the whole stretch, as counting them around each run would cost a
 * system call each. */
static PyObject *runs_run(PyObject *self, PyObject *args)
{
    struct runs *r = (struct runs *)self;
    struct times out = {NULL, 0, 0};
    unsigned long long length_ns;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "Kn:run", &length_ns, &out.most)) return NULL;
    if (out.most < 1 || out.most > 1 << 16) return PyErr_Format(PyExc_ValueError, "%zd runs", out.most);
    if (!(out.ns = PyMem_Calloc((size_t)out.most, sizeof *out.ns))) return PyErr_NoMemory();
    long switches = involuntary();
    tare_status s = run_some(r, &out, length_ns, &err);
    switches = involuntary() - switches;
    PyObject *result = NULL;
    if (s == TARE_OK || out.n)
        result = Py_BuildValue("y#lK", (const char *)out.ns, out.n * (Py_ssize_t)sizeof *out.ns, switches,
                               (unsigned long long)callback_group(r->instance));
    else
        fail(r, &err);
    PyMem_Free(out.ns);
    return result;
}

static PyObject *runs_overhead(PyObject *self, PyObject *Py_UNUSED(none))
{
    struct runs *r = (struct runs *)self;
    return PyLong_FromUnsignedLongLong(r->subject->ops->overhead_ns(r->instance));
}

static PyMethodDef methods[] = {
    {"run", runs_run, METH_VARARGS, "run(ns, most): (times as bytes, involuntary switches, calls per sample)"},
    {"overhead", runs_overhead, METH_NOARGS, "overhead(): ns that measuring adds to each call"},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"failed_ns", T_ULONGLONG, offsetof(struct runs, failed_ns), READONLY, "ns of the run that raised last"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject runs_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tare._tare.Runs",
    .tp_basicsize = sizeof(struct runs),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Runs(make, batch, length, timed, one_by_one): one case, ready to be run in stretches",
    .tp_new = create,
    .tp_dealloc = dealloc,
    .tp_methods = methods,
    .tp_members = members,
};

/* ---- this process ---- */

/* The words of py_wire.h's state. */
static PyObject *process_state(PyObject *Py_UNUSED(self), PyObject *reset)
{
    struct procstat p;
    procstat_read(&p, "");
    struct known_u64 rss = procstat_rss(""), peak = procstat_rss_peak("");
    const uint64_t words[PY_STATE_WORDS] = {
        [PY_STATE_USER_NS] = p.user_ns,
        [PY_STATE_SYSTEM_NS] = p.system_ns,
        [PY_STATE_MINOR_FAULTS] = p.minor_faults,
        [PY_STATE_MAJOR_FAULTS] = p.major_faults,
        [PY_STATE_VOLUNTARY] = p.voluntary_switches,
        [PY_STATE_INVOLUNTARY] = p.involuntary_switches,
        [PY_STATE_MIGRATIONS] = p.migrations.known, p.migrations.v,
        [PY_STATE_READ_BYTES] = p.read_bytes.known, p.read_bytes.v,
        [PY_STATE_WRITE_BYTES] = p.write_bytes.known, p.write_bytes.v,
        [PY_STATE_RSS] = rss.known, rss.v,
        [PY_STATE_RSS_PEAK] = peak.known, peak.v,
        [PY_STATE_PEAK_RESET] = PyObject_IsTrue(reset) == 1 && procstat_rss_peak_reset(""),
    };
    return PyBytes_FromStringAndSize((const char *)words, sizeof words);
}

/* The kernel's mark of the most resident bytes: (bytes, or 0 where it is unknown; whether it was set back just now). */
static PyObject *memory_peak(PyObject *Py_UNUSED(self), PyObject *reset)
{
    struct known_u64 peak = procstat_rss_peak("");
    bool was_reset = PyObject_IsTrue(reset) == 1 && procstat_rss_peak_reset("");
    return Py_BuildValue("KO", (unsigned long long)peak.v, was_reset ? Py_True : Py_False);
}

/* A worker whose tare is gone has nobody to work for, even in the middle of a call. */
static PyObject *follow_parent(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return PyLong_FromLong(getppid());
}

/* Yama lets parents read their children, not the other way round, unless they say so. Without Yama it means nothing. */
static PyObject *let_children_read(PyObject *Py_UNUSED(self), PyObject *on)
{
    prctl(PR_SET_PTRACER, PyObject_IsTrue(on) == 1 ? (unsigned long)getpid() : 0, 0, 0, 0);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"process_state", process_state, METH_O, "process_state(reset): what this process has used, as bytes"},
    {"memory_peak", memory_peak, METH_O, "memory_peak(reset): the most resident bytes, and whether that was set back"},
    {"let_children_read", let_children_read, METH_O, "let_children_read(on): the memory of this process"},
    {"follow_parent", follow_parent, METH_NOARGS, "follow_parent(): end when the parent does; the parent's id"},
    {NULL, NULL, 0, NULL},
};

static int runs_init(PyObject *module)
{
    return PyModule_AddType(module, &runs_type);
}

const struct part runs_part = {functions, runs_init};
