/* SPDX-License-Identifier: MIT
 * py_gpu.c - libtare-gpu.so in this very process: a block is recorded by it from gpu_start() to gpu_stop(). It is
 * loaded on first use and stays: CUPTI and NVTX keep addresses in it. Knows nothing of what it records. */
#include <dlfcn.h>

#include "part.h"

/* What gpu/block.c exports: see there. */
static struct {
    const char *(*start)(const char *path, unsigned what);
    const char *(*stop)(void);
    void (*push)(const char *name, int module);
    void (*pop)(int module);
    uint64_t (*nvtx)(void);
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

static PyObject *gpu_load(PyObject *Py_UNUSED(self), PyObject *path)
{
    PyObject *lib = NULL;
    if (!PyUnicode_FSConverter(path, &lib)) return NULL;
    bool loaded = load(PyBytes_AS_STRING(lib));
    Py_DECREF(lib);
    return loaded ? Py_NewRef(Py_None) : NULL;
}

static bool is_loaded(void)
{
    return library.start || refuse(PyExc_RuntimeError, "libtare-gpu.so is not loaded") == 0;
}

/* The GPU is waited for, which may take long: other threads run meanwhile. */
static PyObject *gpu_start(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *trace = NULL;
    unsigned what;
    const char *why;
    if (!is_loaded() || !PyArg_ParseTuple(args, "O&I:gpu_start", PyUnicode_FSConverter, &trace, &what))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    why = library.start(PyBytes_AS_STRING(trace), what);
    Py_END_ALLOW_THREADS;
    Py_DECREF(trace);
    return text_or_none(why);
}

static PyObject *gpu_stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    const char *why;
    if (!is_loaded()) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    why = library.stop();
    Py_END_ALLOW_THREADS;
    return text_or_none(why);
}

static PyObject *gpu_push(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name;
    int module;
    if (!is_loaded() || !PyArg_ParseTuple(args, "sp:gpu_push", &name, &module)) return NULL;
    library.push(name, module);
    Py_RETURN_NONE;
}

static PyObject *gpu_pop(PyObject *Py_UNUSED(self), PyObject *module)
{
    int of_module = is_loaded() ? PyObject_IsTrue(module) : -1;
    if (of_module < 0) return NULL;
    library.pop(of_module);
    Py_RETURN_NONE;
}

static PyObject *gpu_nvtx(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    return is_loaded() ? PyLong_FromUnsignedLongLong(library.nvtx()) : NULL;
}

static PyMethodDef functions[] = {
    {"gpu_load", gpu_load, METH_O, "gpu_load(path): libtare-gpu.so into this process, for good; OSError: it cannot"},
    {"gpu_start", gpu_start, METH_VARARGS, "gpu_start(trace, what): None, or why nothing is recorded"},
    {"gpu_stop", gpu_stop, METH_NOARGS, "gpu_stop(): None when the trace is complete, or why it is not"},
    {"gpu_push", gpu_push, METH_VARARGS, "gpu_push(name, module): a range of what this thread launches"},
    {"gpu_pop", gpu_pop, METH_O, "gpu_pop(module): the end of the innermost of its kind"},
    {"gpu_nvtx", gpu_nvtx, METH_NOARGS, "gpu_nvtx(): ranges that NVTX has begun here, recorded or not"},
    {NULL, NULL, 0, NULL},
};

const struct part gpu_part = {functions, NULL};
