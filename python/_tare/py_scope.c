/* SPDX-License-Identifier: MIT
 * py_scope.c - `tare.scope`: a named scope as context manager and decorator. One object per name, without a
 * state of its own: what is open stands in strand.h, so the same scope may be open many times at once. A
 * scope never swallows an exception and never raises because of recording. */
#include "strand.h"

#include <structmember.h>

/* ---- one scope ---- */

struct py_scope {
    PyObject_HEAD;
    PyObject *name;
    tare_site *site; /* NULL: the table of names is full, nothing is recorded */
};

static PyTypeObject *scope_type, *scoped_type, *steps_type;
static PyObject *scopes; /* name -> scope */

static void open_now(struct py_scope *of, PyObject *opener)
{
    struct strand *s = TARE_ON_ && of->site ? strand_now() : NULL;
    if (s) strand_push(s, opener, of->site);
}

/* Also without a session: it may have ended since. */
static void end_now(PyObject *opener)
{
    struct strand *s = strand_any() ? strand_now() : NULL;
    if (s && s->n) strand_pop(s, opener);
}

static PyObject *scope_enter(PyObject *self, PyObject *Py_UNUSED(none))
{
    open_now((struct py_scope *)(void *)self, self);
    return Py_NewRef(self);
}

static PyObject *scope_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    end_now(self);
    Py_RETURN_FALSE;
}

static PyObject *decorate(PyObject *scope, PyObject *function)
{
    PyObject *module = PyImport_ImportModule("tare._scoped");
    PyObject *wrapped = module ? PyObject_CallMethod(module, "wrap", "OO", scope, function) : NULL;
    Py_XDECREF(module);
    return wrapped;
}

static PyObject *scope_call(PyObject *self, PyObject *args, PyObject *named)
{
    PyObject *function;
    if (named && PyDict_GET_SIZE(named))
        return PyErr_Format(PyExc_TypeError, "a scope decorates one function");
    if (!PyArg_ParseTuple(args, "O:scope", &function)) return NULL;
    return decorate(self, function);
}

static PyObject *scope_repr(PyObject *self)
{
    return PyUnicode_FromFormat("tare.scope(%R)", ((struct py_scope *)(void *)self)->name);
}

static void scope_dealloc(PyObject *self)
{
    Py_CLEAR(((struct py_scope *)(void *)self)->name);
    object_free(self);
}

/* Where the program first used the name. */
static tare_site *site_here(const char *name)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
    PyObject *file = code ? PyObject_GetAttrString((PyObject *)code, "co_filename") : NULL;
    const char *path = file ? PyUnicode_AsUTF8(file) : NULL;
    if (!path) PyErr_Clear();
    int line = frame ? PyFrame_GetLineNumber(frame) : 0;
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, name, path ? path : "", line > 0 ? (uint32_t)line : 0);
    Py_XDECREF(file);
    Py_XDECREF(code);
    return site;
}

static PyObject *scope_new(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    struct py_scope *s = PyObject_New(struct py_scope, scope_type);
    if (!s) return NULL;
    s->name = Py_NewRef(name);
    s->site = site_here(text);
    /* names without end, as f"batch {i}" makes them, fill the table of names and then nothing more */
    if (s->site && PyDict_SetItem(scopes, name, (PyObject *)s) < 0) Py_CLEAR(s);
    return (PyObject *)s;
}

static PyObject *scope_named(PyObject *name)
{
    PyObject *known = PyDict_GetItemWithError(scopes, name);
    if (known) return Py_NewRef(known);
    return PyErr_Occurred() ? NULL : scope_new(name);
}

/* scope("name"), or @scope above a function, which lends its name. */
static PyObject *scope(PyObject *Py_UNUSED(self), PyObject *what)
{
    if (PyUnicode_CheckExact(what)) return scope_named(what);
    PyObject *inner =
        PyObject_GetAttrString(what, "__func__"); /* of a staticmethod or classmethod, on older Pythons */
    if (!inner) PyErr_Clear();
    PyObject *name = PyObject_GetAttrString(inner ? inner : what, "__qualname__");
    Py_XDECREF(inner);
    if (!name || !PyUnicode_Check(name)) {
        Py_XDECREF(name);
        return PyErr_Format(PyExc_TypeError, "tare.scope takes a name or a function, not %s",
                            Py_TYPE(what)->tp_name);
    }
    PyObject *named = scope_named(name);
    PyObject *wrapped = named ? decorate(named, what) : NULL;
    Py_DECREF(name);
    Py_XDECREF(named);
    return wrapped;
}

/* ---- what is wrapped: a scope and what runs in it, the beginning of both types below ---- */

struct wrapped {
    PyObject_HEAD;
    PyObject *scope, *inner, *attributes; /* attributes: of a function, else NULL */
};

/* Type(scope, inner) */
static void *wrapped_new(PyTypeObject *type, PyObject *args)
{
    PyObject *scope, *inner;
    if (!PyArg_ParseTuple(args, "O!O", scope_type, &scope, &inner)) return NULL;
    struct wrapped *w = (struct wrapped *)(void *)type->tp_alloc(type, 0);
    if (!w) return NULL;
    w->scope = Py_NewRef(scope);
    w->inner = Py_NewRef(inner);
    return w;
}

static int wrapped_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct wrapped *w = (struct wrapped *)(void *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(w->scope);
    Py_VISIT(w->inner);
    Py_VISIT(w->attributes);
    return 0;
}

static int wrapped_clear(PyObject *self)
{
    struct wrapped *w = (struct wrapped *)(void *)self;
    Py_CLEAR(w->scope);
    Py_CLEAR(w->inner);
    Py_CLEAR(w->attributes);
    return 0;
}

static void wrapped_free(PyObject *self)
{
    wrapped_clear(self);
    object_free(self);
}

/* ---- a function in a scope ---- */

struct scoped {
    struct wrapped of;
    vectorcallfunc call;
    PyObject *weak;
};

static PyObject *scoped_run(PyObject *self, PyObject *const *args, size_t n, PyObject *names)
{
    struct scoped *s = (struct scoped *)(void *)self;
    open_now((struct py_scope *)(void *)s->of.scope, self);
    PyObject *result = PyObject_Vectorcall(s->of.inner, args, n, names);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    end_now(self);
    PyErr_Restore(type, value, trace);
    return result;
}

static PyObject *scoped_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    struct scoped *s = wrapped_new(type, args);
    if (s) s->call = scoped_run;
    return (PyObject *)s;
}

static PyObject *scoped_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type))
{
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

static void scoped_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((struct scoped *)(void *)self)->weak) PyObject_ClearWeakRefs(self);
    wrapped_free(self);
}

static PyMemberDef scoped_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct scoped, call), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(struct wrapped, attributes), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct scoped, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef scoped_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- a generator in a scope: only its own steps count, not what its reader does between them ---- */

struct steps {
    struct wrapped of;
    struct stretch waiting;
    bool begun;
};

static const char closing[] = "close";

/* With its scope open: one step. Ends the scope when the generator ends. */
static PyObject *steps_run(PyObject *self, const char *method, PyObject *value)
{
    struct steps *g = (struct steps *)(void *)self;
    const bool over = method == closing;
    struct strand *s = strand_now();
    size_t bottom = s ? s->n : 0;
    if (s && !g->begun) open_now((struct py_scope *)(void *)g->of.scope, self);
    if (s && g->begun) stretch_resume(s, &g->waiting);
    g->begun = true;
    PyObject *result;
    if (method)
        result =
            PyObject_CallMethod(g->of.inner, method, value ? "(O)" : NULL, value); /* a tuple is one value */
    else
        result = Py_TYPE(g->of.inner)->tp_iternext(g->of.inner);
    PyObject *type, *what, *trace;
    PyErr_Fetch(&type, &what, &trace);
    if ((s = strand_now()) && s->n > bottom) {
        if (result && !over)
            stretch_pause(s, bottom, &g->waiting);
        else
            strand_pop(s, self);
    }
    PyErr_Restore(type, what, trace);
    return result;
}

static PyObject *steps_next(PyObject *self)
{
    return steps_run(self, NULL, NULL);
}

static PyObject *steps_send(PyObject *self, PyObject *value)
{
    return steps_run(self, "send", value);
}

/* throw(exception), or the older throw(type, value, traceback). */
static PyObject *steps_throw(PyObject *self, PyObject *args)
{
    PyObject *what, *value = Py_None, *trace = NULL;
    if (!PyArg_ParseTuple(args, "O|OO:throw", &what, &value, &trace)) return NULL;
    return steps_run(self, "throw", value == Py_None ? what : value);
}

static PyObject *steps_close(PyObject *self, PyObject *Py_UNUSED(none))
{
    return steps_run(self, closing, NULL);
}

static PyObject *steps_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    struct steps *g = wrapped_new(type, args);
    if (!g || PyIter_Check(g->of.inner)) return (PyObject *)g;
    Py_DECREF(g);
    return PyErr_Format(PyExc_TypeError, "not an iterator");
}

static void steps_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    stretch_drop(&((struct steps *)(void *)self)->waiting);
    wrapped_free(self);
}

/* ---- the module's part ---- */

static PyMethodDef scope_methods[] = {
    {"__enter__", scope_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))scope_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef scope_members[] = {
    {"name", T_OBJECT, offsetof(struct py_scope, name), READONLY, "what it is called in the trace"},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef steps_methods[] = {
    {"send", steps_send, METH_O, NULL},
    {"throw", steps_throw, METH_VARARGS, NULL},
    {"close", steps_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static char scope_doc[] = "A named scope: `with` it, or decorate a function with it.";
static PyType_Slot scope_slots[] = {
    {Py_tp_dealloc, (void *)scope_dealloc}, {Py_tp_call, (void *)scope_call},
    {Py_tp_repr, (void *)scope_repr},       {Py_tp_methods, scope_methods},
    {Py_tp_members, scope_members},         {Py_tp_doc, scope_doc},
    {0, NULL},
};
static PyType_Slot scoped_slots[] = {
    {Py_tp_new, (void *)scoped_new},           {Py_tp_dealloc, (void *)scoped_dealloc},
    {Py_tp_traverse, (void *)wrapped_traverse}, {Py_tp_clear, (void *)wrapped_clear},
    {Py_tp_call, (void *)PyVectorcall_Call},   {Py_tp_descr_get, (void *)scoped_get},
    {Py_tp_members, scoped_members},           {Py_tp_getset, scoped_attributes},
    {0, NULL},
};
static PyType_Slot steps_slots[] = {
    {Py_tp_new, (void *)steps_new},           {Py_tp_dealloc, (void *)steps_dealloc},
    {Py_tp_traverse, (void *)wrapped_traverse}, {Py_tp_clear, (void *)wrapped_clear},
    {Py_tp_iter, (void *)PyObject_SelfIter},  {Py_tp_iternext, (void *)steps_next},
    {Py_tp_methods, steps_methods},           {0, NULL},
};

#ifdef Py_TPFLAGS_DISALLOW_INSTANTIATION
#define NOT_BY_HAND Py_TPFLAGS_DISALLOW_INSTANTIATION
#else
#define NOT_BY_HAND 0
#endif
static PyType_Spec specs[] = {
    {"tare._tare.Scope", sizeof(struct py_scope), 0, Py_TPFLAGS_DEFAULT | NOT_BY_HAND, scope_slots},
    {"tare._tare.Scoped", sizeof(struct scoped), 0,
     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, scoped_slots},
    {"tare._tare.Steps", sizeof(struct steps), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, steps_slots},
};

static PyMethodDef functions[] = {
    {"scope", scope, METH_O,
     "scope(name)\n--\n\nTime a block: `with tare.scope('load'):`. "
     "Also a decorator: @tare.scope, @tare.scope('name')."},
    {NULL, NULL, 0, NULL},
};

static int scope_init(PyObject *module)
{
    PyTypeObject **types[] = {&scope_type, &scoped_type, &steps_type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (add_type(module, &specs[i], types[i]) < 0) return -1;
    return (scopes = PyDict_New()) ? 0 : -1;
}

const struct part scope_part = {functions, scope_init};
