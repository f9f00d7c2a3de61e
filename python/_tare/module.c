/* SPDX-License-Identifier: MIT
 * module.c - the extension module `tare._tare`: its parts, and where it refuses to load. Knows nothing of
 * what a part does. */
#include "part.h"

#include <math.h>

#ifdef Py_GIL_DISABLED
#error "tare does not run in free-threaded CPython: use the ordinary build"
#endif

static const struct part *const parts[] = {
#define X(name) &name##_part,
    PARTS(X)
#undef X
};

int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(spec);
    int failed = type ? PyModule_AddType(module, type) : -1;
    if (out && !failed)
        *out = type;
    else
        Py_XDECREF(type);
    return failed;
}

void object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

int refuse(PyObject *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyErr_FormatV(type, format, args);
    va_end(args);
    return -1;
}

PyObject *list_append(PyObject *list, PyObject *item)
{
    if (list && (!item || PyList_Append(list, item) < 0)) Py_CLEAR(list);
    Py_XDECREF(item);
    return list;
}

int dict_put(PyObject *dict, const char *name, PyObject *value)
{
    int failed = dict && value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return failed;
}

PyObject *loaded_module(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = modules ? PyDict_GetItemString(modules, name) : NULL;
    return module && PyModule_Check(module) ? module : NULL;
}

PyObject *number_or_none(double v)
{
    return isnan(v) ? Py_NewRef(Py_None) : PyFloat_FromDouble(v);
}

PyObject *raise_error(const tare_error *err)
{
    static const struct {
        tare_status status;
        PyObject **type;
    } types[] = {
        {TARE_NOMEM, &PyExc_MemoryError},      {TARE_INVALID, &PyExc_ValueError},
        {TARE_FORMAT, &PyExc_ValueError},      {TARE_IO, &PyExc_OSError},
        {TARE_DENIED, &PyExc_PermissionError}, {TARE_UNSUPPORTED, &PyExc_NotImplementedError},
        {TARE_BUSY, &PyExc_RuntimeError},
    };
    PyObject *type = PyExc_RuntimeError;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].status == err->status) type = *types[i].type;
    return PyErr_Format(type, "%s", err->text[0] ? err->text : tare_status_text(err->status));
}

/* The trace and the profilers belong to the process: a second interpreter in it would share them without knowing. */
static int refuse_subinterpreters(void)
{
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
    return refuse(PyExc_ImportError,
                  "tare works in the main interpreter only: import it there, not in a subinterpreter");
}

static int exec_module(PyObject *module)
{
    if (refuse_subinterpreters() < 0) return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i]->init && parts[i]->init(module) < 0) return -1;
        if (parts[i]->functions && PyModule_AddFunctions(module, parts[i]->functions) < 0) return -1;
    }
    return PyModule_AddStringConstant(module, "version", tare_version());
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)exec_module},
#ifdef Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tare._tare",
    .m_doc = "The C half of the package tare. Use `import tare`.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__tare(void);
PyMODINIT_FUNC PyInit__tare(void)
{
    return PyModuleDef_Init(&definition);
}
