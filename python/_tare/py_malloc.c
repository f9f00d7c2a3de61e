/* SPDX-License-Identifier: MIT
 * py_malloc.c - the C library's allocator from Python: what it gives back to the system, and from which size on a block
 * is given back as soon as it is freed. glibc alone has these switches; elsewhere they do nothing and say so. */
#include <malloc.h>
#include <pthread.h>

#include "core/mem.h"
#include "part.h"

#ifdef __GLIBC__
static size_t set_to; /* what we have set last: it stays so; 0: nothing was set, and glibc moves it */

/* The count of mappings is the whole program's: another thread may have got one meanwhile. The block itself knows, by a
 * bit of the word in front of it that glibc has had since 1996; asked only of blocks that glibc has made. */
static bool is_mapped(const void *block)
{
    enum { IS_MMAPPED = 2 };
    return ((const size_t *)block)[-1] & IS_MMAPPED;
}

/* glibc does not tell its threshold, and moves it up when a block above it is freed. So it is found from below: the
 * first size that gets a mapping of its own; what that block's end moves it by is one step of 6 %. In a thread of its
 * own, which gets a heap without free blocks: a large one would serve any size. */
static void *find_threshold(void *out)
{
    enum { LEAST = 4 << 10, MOST = 33 << 20 };
    for (size_t n = LEAST; n < MOST; n += n / 16) {
        size_t before = mallinfo2().hblks;
        void *volatile block = mem_new(n, 1);
        bool mapped = block && mallinfo2().hblks > before && is_mapped(block);
        mem_free(block);
        if (!block) break;
        if (!mapped) continue;
        *(size_t *)out = n;
        break;
    }
    return NULL;
}

static PyObject *threshold(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    size_t found = set_to;
    pthread_t thread;
    Py_BEGIN_ALLOW_THREADS;
    if (!found && pthread_create(&thread, NULL, find_threshold, &found) == 0) pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    return found ? PyLong_FromSize_t(found) : Py_NewRef(Py_None);
}

static PyObject *set_policy(PyObject *Py_UNUSED(self), PyObject *args)
{
    int from, top;
    if (!PyArg_ParseTuple(args, "ii:malloc_policy", &from, &top)) return NULL;
    bool took = from > 0 && mallopt(M_MMAP_THRESHOLD, from) && mallopt(M_TRIM_THRESHOLD, top);
    if (took) set_to = (size_t)from;
    return PyBool_FromLong(took);
}

static PyObject *trim(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    int gave;
    Py_BEGIN_ALLOW_THREADS;
    gave = malloc_trim(0);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(gave);
}
#else
static PyObject *threshold(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    Py_RETURN_NONE;
}
static PyObject *set_policy(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args))
{
    Py_RETURN_FALSE;
}
static PyObject *trim(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    Py_RETURN_NONE;
}
#endif

static PyMethodDef functions[] = {
    {"malloc_threshold", threshold, METH_NOARGS,
     "from which size on a block gets a mapping of its own, found by trying; None: unknown"},
    {"malloc_policy", set_policy, METH_VARARGS,
     "malloc_policy(threshold, trim): whether the allocator took them; it adapts them no more then"},
    {"malloc_trim", trim, METH_NOARGS, "whether freed memory was given back; None: this C library cannot"},
    {NULL, NULL, 0, NULL},
};

const struct part malloc_part = {functions, NULL};
