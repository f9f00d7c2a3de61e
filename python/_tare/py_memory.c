/* SPDX-License-Identifier: MIT
 * py_memory.c - libtare-agent.so in this very process: allocations are recorded from memory_begin() to memory_end().
 * It is loaded on first use and stays: pointers to its functions may have been copied. Knows nothing of what it
 * records. */
#include <dlfcn.h>

#include "part.h"

/* What agent/attach.c exports: see there. */
static struct {
    const char *(*begin)(const char *trace, uint64_t every, uint32_t frames);
    const char *(*end)(void);
} library;

/* Where it was put in front of the program it is there already. */
static bool load(const char *path)
{
    if (library.begin) return true;
    void *there = dlsym(RTLD_DEFAULT, "tare_memory_begin"),
         *lib = there ? RTLD_DEFAULT : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!there && !lib) return refuse(PyExc_OSError, "%s", dlerror()) == 0;
    *(void **)&library.end = dlsym(lib, "tare_memory_end");
    if (library.end) *(void **)&library.begin = dlsym(lib, "tare_memory_begin");
    if (library.begin) return true;
    return refuse(PyExc_OSError, "%s is of another version than this package", path) == 0;
}

static PyObject *text_or_none(const char *text)
{
    return text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

/* With the GIL: Python's allocator is changed under it. */
static PyObject *memory_begin(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *lib = NULL, *trace = NULL, *out = NULL;
    unsigned long long every;
    unsigned frames;
    if (!PyArg_ParseTuple(args, "O&O&KI:memory_begin", PyUnicode_FSConverter, &lib, PyUnicode_FSConverter,
                          &trace, &every, &frames))
        return NULL;
    if (load(PyBytes_AS_STRING(lib)))
        out = text_or_none(library.begin(PyBytes_AS_STRING(trace), every, frames));
    Py_DECREF(lib);
    Py_DECREF(trace);
    return out;
}

static PyObject *memory_end(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    if (!library.end) return PyUnicode_FromString("nothing is being recorded");
    return text_or_none(library.end());
}

static PyMethodDef functions[] = {
    {"memory_begin", memory_begin, METH_VARARGS,
     "memory_begin(library, trace, every, frames): None: recorded from now on; else why not. OSError: no library"},
    {"memory_end", memory_end, METH_NOARGS, "memory_end(): None when the trace is complete, or why it is not"},
    {NULL, NULL, 0, NULL},
};

const struct part memory_part = {functions, NULL};
