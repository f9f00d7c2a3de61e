/* SPDX-License-Identifier: MIT
 * module.c - the extension module `tare._tare`: its parts, and where it refuses to load. Knows nothing of
 * what a part does. */
#include "part.h"

static int (*const parts[])(PyObject *module) = {session_part,   scope_part,   work_part,      bench_part,
                                                 work_runs_part, op_cost_part, functions_part, sampler_part,
                                                 judge_part,     answers_part, lines_part};

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
    PyErr_SetString(type, err->text[0] ? err->text : tare_status_text(err->status));
    return NULL;
}

/* The trace and the profilers belong to the process: a second interpreter in it would share them without knowing. */
static int refuse_subinterpreters(void)
{
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
    PyErr_SetString(PyExc_ImportError,
                    "tare works in the main interpreter only: import it there, not in a subinterpreter");
    return -1;
}

static int exec_module(PyObject *module)
{
    if (refuse_subinterpreters() < 0) return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module) < 0) return -1;
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
