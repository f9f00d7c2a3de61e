/* SPDX-License-Identifier: MIT
 * py_work.c - see work.h: the type `Work`, and works as a subject of the harness. A call costs one vectorcall and
 * nothing that allocates; the result is dropped at once. */
#include "work.h"

#include <string.h>
#include <structmember.h>

#include "core/clock.h"
#include "core/error.h"

/* A waiting thread asks for the GIL after 5 ms; code in C that never ends its turn would not hear it. Offered more
 * often, who waits is woken, finds it taken again, begins to wait anew, and never gets to ask. */
enum { TURN_NS = 10000000 };

/* ---- calling ---- */

static PyObject *vectorcall(struct work *w, PyObject *function)
{
    size_t n = (size_t)(w->n_slots - w->n_keywords) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    return PyObject_Vectorcall(function, w->slots + 1, n, w->kwnames);
}

static bool told_time(PyObject *result, uint64_t *ns)
{
    long long v = PyLong_AsLongLong(result);
    if (v == -1 && PyErr_Occurred()) return false;
    *ns = v > 0 ? (uint64_t)v : 1;
    return true;
}

/* One call; *ns is set when the work is timed. False: an exception is set. */
static bool work_call(struct work *w, uint64_t *ns)
{
    PyObject *result = vectorcall(w, w->function);
    if (!result) return false;
    bool good = true;
    if (w->timed)
        good = told_time(result, ns);
    else if (PyCoro_CheckExact(result))
        good = refuse(PyExc_TypeError,
                      "%R returns a coroutine that nobody awaits: give tare the async function itself",
                      w->function) == 0;
    Py_DECREF(result);
    return good;
}

static PyObject *do_nothing(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args),
                            Py_ssize_t Py_UNUSED(n), PyObject *Py_UNUSED(names))
{
    Py_RETURN_NONE;
}

static PyMethodDef nothing_method = {"nothing", (PyCFunction)(void (*)(void))do_nothing,
                                     METH_FASTCALL | METH_KEYWORDS, NULL};
static PyObject *nothing;

/* ---- before a call ---- */

static void drop_slots(struct work *w)
{
    for (Py_ssize_t i = 1; w->slots && i <= w->n_slots; i++) Py_CLEAR(w->slots[i]);
    PyMem_Free(w->slots);
    w->slots = NULL;
    w->n_slots = 0;
}

/* Positional arguments `args`, then the values of the keywords `values`, which may be NULL. */
static bool fill_slots(struct work *w, PyObject *args, PyObject *const *values, Py_ssize_t n_values)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject **slots = PyMem_Calloc((size_t)(n + n_values) + 1, sizeof *slots);
    if (!slots) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) slots[1 + i] = Py_NewRef(PyTuple_GET_ITEM(args, i));
    for (Py_ssize_t i = 0; i < n_values; i++) slots[1 + n + i] = Py_NewRef(values[i]);
    drop_slots(w);
    w->slots = slots;
    w->n_slots = n + n_values;
    return true;
}

/* setup(*args) may return a tuple: the arguments of this call. */
static bool set_up(struct work *w)
{
    PyObject *fresh = vectorcall(w, w->setup);
    bool good = fresh != NULL;
    if (fresh && PyTuple_Check(fresh))
        good = fill_slots(w, fresh, w->slots + 1 + w->n_slots - w->n_keywords, w->n_keywords);
    else if (fresh && fresh != Py_None) {
        PyErr_Format(PyExc_TypeError, "setup must return None or a tuple of arguments, not %.100s",
                     Py_TYPE(fresh)->tp_name);
        good = false;
    }
    Py_XDECREF(fresh);
    return good;
}

/* What is done before a call and is not part of it: setup, signals, and other threads' turn. False: exception. */
static bool work_before(struct work *w)
{
    if (w->setup && !set_up(w)) return false;
    if (clock_raw_ns() - w->yielded_ns < TURN_NS) return true;
    if (PyErr_CheckSignals() < 0) return false;
    Py_BEGIN_ALLOW_THREADS; /* who waits for the GIL gets it here */
    Py_END_ALLOW_THREADS;
    w->yielded_ns = clock_raw_ns();
    return true;
}

/* ---- as a subject of the harness: all of it runs with the GIL held, in the thread that called tare.bench ---- */

/* A long text as its start and its end, where TorchScript has the cause. Takes the reference; NULL: exception. */
static PyObject *shorten(PyObject *line)
{
    enum { START = 100, END = 180 };
    Py_ssize_t n = line ? PyUnicode_GetLength(line) : 0;
    if (n <= START + END) return line;
    PyObject *start = PyUnicode_Substring(line, 0, START), *end = PyUnicode_Substring(line, n - END, n);
    PyObject *both = start && end ? PyUnicode_FromFormat("%U .. %U", start, end) : NULL;
    Py_XDECREF(start);
    Py_XDECREF(end);
    Py_DECREF(line);
    return both;
}

/* As the last line of a traceback says it: the class without its module, and the text on one line. */
static tare_status say_exception(PyObject *value, tare_error *err)
{
    const char *name = value ? Py_TYPE(value)->tp_name : "an exception", *dot = strrchr(name, '.');
    PyObject *said = value ? PyObject_Str(value) : NULL, *blank = PyUnicode_FromString(" ");
    PyObject *words = said ? PyObject_CallMethod(said, "split", NULL) : NULL;
    PyObject *line = shorten(words && blank ? PyUnicode_Join(blank, words) : NULL);
    const char *text = line ? PyUnicode_AsUTF8(line) : NULL;
    PyErr_Clear(); /* of an exception that cannot be shown its class must do */
    error_set(err, TARE_DENIED, "%s%s%s", dot ? dot + 1 : name, text && *text ? ": " : "", text ? text : "");
    Py_XDECREF(line);
    Py_XDECREF(words);
    Py_XDECREF(blank);
    Py_XDECREF(said);
    return TARE_DENIED;
}

static void clear_frames(PyObject *traceback)
{
    PyObject *module = PyImport_ImportModule("traceback");
    PyObject *done = module ? PyObject_CallMethod(module, "clear_frames", "O", traceback) : NULL;
    if (!done) PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(module);
}

tare_status weighed_raise(struct weighed *w, tare_error *err)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback) PyException_SetTraceback(value, traceback);
    tare_status s = say_exception(value, err);
    bool ends = !w->spares || !value || !PyErr_GivenExceptionMatches(value, PyExc_Exception);
    if (!ends && traceback) clear_frames(traceback);
    if (value && (!w->raised || (ends && !w->ended))) Py_XSETREF(w->raised, Py_NewRef(value));
    w->ended = w->ended || ends;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return s;
}

void weighed_restore(struct weighed *w)
{
    PyObject *e = w->raised;
    w->raised = NULL;
    w->ended = false;
    if (e) PyErr_Restore(Py_NewRef(Py_TYPE(e)), e, PyException_GetTraceback(e));
}

struct prepared {
    struct weighed *weighed;
    struct work *work;
};

/* The work of one case, made by the caller's `make`. */
static tare_status prepare_case(void *ctx, const struct case_params *p, void **state, tare_error *err)
{
    struct weighed *w = ctx;
    if (w->ended) return say_exception(w->raised, err);
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

static tare_status call_case(void *state, unsigned Py_UNUSED(worker), struct subject_cost *cost,
                             tare_error *err)
{
    struct prepared *p = state;
    if (work_call(p->work, &cost->wall_ns)) return TARE_OK;
    return weighed_raise(p->weighed, err);
}

static tare_status before_call(void *state, unsigned Py_UNUSED(worker), tare_error *err)
{
    struct prepared *p = state;
    if (p->weighed->ended) return say_exception(p->weighed->raised, err);
    if (work_before(p->work)) return TARE_OK;
    return weighed_raise(p->weighed, err);
}

/* The same as call_case() of a function that does nothing. */
static tare_status call_nothing(void *state, unsigned Py_UNUSED(worker), struct subject_cost *Py_UNUSED(cost),
                                tare_error *err)
{
    struct prepared *p = state;
    PyObject *result = vectorcall(p->work, nothing);
    Py_XDECREF(result);
    return result ? TARE_OK : weighed_raise(p->weighed, err);
}

static int64_t units_of(const void *state)
{
    return ((const struct prepared *)state)->work->units;
}

static void finish_case(void *state)
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
                                 .prepare = prepare_case,
                                 .call = call_case,
                                 .before = before_call,
                                 .before_each = w->setup,
                                 .tells_time = w->timed,
                                 .nothing = call_nothing,
                                 .units = units_of,
                                 .finish = finish_case};
    char version[32];
    snprintf(version, sizeof version, "%.*s", (int)strcspn(Py_GetVersion(), " "), Py_GetVersion());
    o.runtime_version = version;
    return subject_open_callback(out, &o, err);
}

/* ---- the type ---- */

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct work *w = (struct work *)self;
    Py_VISIT(w->function);
    Py_VISIT(w->setup);
    for (Py_ssize_t i = 1; i <= w->n_slots; i++) Py_VISIT(w->slots[i]);
    return 0;
}

static int clear(PyObject *self)
{
    struct work *w = (struct work *)self;
    Py_CLEAR(w->function);
    Py_CLEAR(w->setup);
    Py_CLEAR(w->kwnames);
    drop_slots(w);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_TYPE(self)->tp_free(self);
}

static bool take_keywords(struct work *w, PyObject *args, PyObject *keywords)
{
    PyObject *values = keywords ? PyDict_Values(keywords) : PyList_New(0);
    PyObject *names = keywords ? PyDict_Keys(keywords) : NULL;
    bool good = values && (names || !keywords);
    if (good && names && PyList_GET_SIZE(names)) good = (w->kwnames = PyList_AsTuple(names)) != NULL;
    w->n_keywords = good ? PyList_GET_SIZE(values) : 0;
    if (good) good = fill_slots(w, args, PySequence_Fast_ITEMS(values), w->n_keywords);
    Py_XDECREF(values);
    Py_XDECREF(names);
    return good;
}

/* Everything is checked before the first timed call: a mistake in the arguments must not show up as a
 * failed run. */
static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"function", "args", "keywords", "setup", "units", "timed", NULL};
    PyObject *function, *arguments, *with = Py_None, *setup = Py_None;
    long long units = 1;
    int timed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!|OOLp:Work", names, &function, &PyTuple_Type,
                                     &arguments, &with, &setup, &units, &timed))
        return NULL;
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "%.100s is not callable", Py_TYPE(function)->tp_name);
    if (with != Py_None && !PyDict_Check(with))
        return PyErr_Format(PyExc_TypeError, "keywords must be a dict, not %.100s", Py_TYPE(with)->tp_name);
    if (setup != Py_None && !PyCallable_Check(setup))
        return PyErr_Format(PyExc_TypeError, "setup must be callable, not %.100s", Py_TYPE(setup)->tp_name);
    struct work *w = (struct work *)type->tp_alloc(type, 0);
    if (!w) return NULL;
    w->function = Py_NewRef(function);
    w->setup = setup == Py_None ? NULL : Py_NewRef(setup);
    w->units = units;
    w->timed = timed;
    if (take_keywords(w, arguments, with == Py_None ? NULL : with)) return (PyObject *)w;
    Py_DECREF(w);
    return NULL;
}

static PyMemberDef members[] = {
    {"units", T_LONGLONG, offsetof(struct work, units), READONLY, "units of work in one call"},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject work_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tare._tare.Work",
    .tp_basicsize = sizeof(struct work),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Work(function, args, keywords=None, setup=None, units=1, timed=False): a call, ready to be made",
    .tp_new = create,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_members = members,
};

static int work_init(PyObject *module)
{
    if (!nothing && !(nothing = PyCFunction_New(&nothing_method, NULL))) return -1;
    return PyModule_AddType(module, &work_type);
}

const struct part work_part = {NULL, work_init};
