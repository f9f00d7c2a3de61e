/* SPDX-License-Identifier: MIT
 * py_gpu.c - libtare-gpu.so in this very process: a block is recorded by it from gpu_start() to gpu_stop(). It is
 * loaded on first use and stays: CUPTI and NVTX keep addresses in it. Knows nothing of what it records. */
#include <dlfcn.h>

#include "part.h"

/* What gpu/block.c exports: see there. */
static struct {
    const char *(*start)(const char *path, unsigned what);
    const char *(*stop)(void);
    void (*push)(const char *name);
    void (*pop)(void);
    int (*nvtx)(void);
} library;

static bool load(const char *path)
{
    if (library.start) return true;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return refuse(PyExc_OSError, "%s", dlerror()) == 0;
    *(void **)&library.stop = dlsym(lib, "tare_gpu_stop");
    *(void **)&library.push = dlsym(lib, "tare_gpu_push");
    *(void **)&library.pop = dlsym(lib, "tare_gpu_pop");
    *(void **)&library.nvtx = dlsym(lib, "tare_gpu_nvtx");
    if (library.stop && library.push && library.pop && library.nvtx)
        *(void **)&library.start = dlsym(lib, "tare_gpu_start");
    if (library.start) return true;
    return refuse(PyExc_OSError, "%s is of another version than this package", path) == 0;
}

static PyObject *text_or_none(const char *text)
{
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

/* The GPU is waited for, which may take long: other threads run meanwhile. */
static PyObject *gpu_start(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *lib = NULL, *trace = NULL, *out = NULL;
    unsigned what;
    const char *why = NULL;
    if (!PyArg_ParseTuple(args, "O&O&I:gpu_start", PyUnicode_FSConverter, &lib, PyUnicode_FSConverter, &trace,
                          &what))
        goto end;
    if (!load(PyBytes_AS_STRING(lib))) goto end;
    Py_BEGIN_ALLOW_THREADS;
    why = library.start(PyBytes_AS_STRING(trace), what);
    Py_END_ALLOW_THREADS;
    out = text_or_none(why);
end:
    Py_XDECREF(lib);
    Py_XDECREF(trace);
    return out;
}

static PyObject *gpu_stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    const char *why;
    if (!library.start) return PyErr_Format(PyExc_RuntimeError, "nothing was started");
    Py_BEGIN_ALLOW_THREADS;
    why = library.stop();
    Py_END_ALLOW_THREADS;
    return text_or_none(why);
}

static PyObject *gpu_push(PyObject *Py_UNUSED(self), PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    if (library.start) library.push(text);
    Py_RETURN_NONE;
}

static PyObject *gpu_pop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    if (library.start) library.pop();
    Py_RETURN_NONE;
}

static PyObject *gpu_nvtx(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(library.start && library.nvtx());
}

static PyMethodDef functions[] = {
    {"gpu_start", gpu_start, METH_VARARGS, "gpu_start(library, trace, what): None, or why nothing is recorded"},
    {"gpu_stop", gpu_stop, METH_NOARGS, "gpu_stop(): None when the trace is complete, or why it is not"},
    {"gpu_push", gpu_push, METH_O, "gpu_push(name): what this thread launches is of this module, until gpu_pop()"},
    {"gpu_pop", gpu_pop, METH_NOARGS, "gpu_pop(): the end of the innermost gpu_push()"},
    {"gpu_nvtx", gpu_nvtx, METH_NOARGS, "gpu_nvtx(): whether NVTX ranges of this process can be seen"},
    {NULL, NULL, 0, NULL},
};

const struct part gpu_part = {functions, NULL};
