/* SPDX-License-Identifier: MIT
 * py_session.c - recording from Python: start, stop, whether one records; counters and marks. Never holds
 * the GIL while the trace waits for its disk. */
#include "strand.h"

static int parse_mode(const char *text, uint32_t *mode)
{
    static const struct {
        const char *name;
        uint32_t mode;
    } modes[] = {
        {"both", TARE_AGGREGATE | TARE_EVENTS}, {"aggregate", TARE_AGGREGATE}, {"events", TARE_EVENTS}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, text) != 0) continue;
        *mode = modes[i].mode;
        return 0;
    }
    return refuse(PyExc_ValueError, "mode is 'both', 'aggregate' or 'events', not '%s'", text);
}

/* The GIL is given back while the trace is made: reserving disk may take long. `path` is bytes of our own
 * and outlives the call; tare_start() copies it. */
static PyObject *session_start(PyObject *Py_UNUSED(self), PyObject *args, PyObject *named)
{
    static char *names[] = {"path", "mode", "disk_bytes", "memory_bytes", NULL};
    tare_options o = TARE_OPTIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    PyObject *path;
    const char *mode = "both";
    unsigned long long disk = o.disk_bytes, memory = o.memory_bytes;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&|$sKK:start", names, PyUnicode_FSConverter, &path, &mode,
                                     &disk, &memory))
        return NULL;
    tare_status s = parse_mode(mode, &o.mode) < 0 ? TARE_INVALID : TARE_OK;
    o.path = PyBytes_AS_STRING(path);
    o.disk_bytes = disk;
    o.memory_bytes = memory;
    if (s == TARE_OK) {
        Py_BEGIN_ALLOW_THREADS;
        s = tare_start(&o, &err);
        Py_END_ALLOW_THREADS;
        if (s != TARE_OK) raise_error(&err);
    }
    Py_DECREF(path);
    if (s != TARE_OK) return NULL;
    Py_RETURN_NONE;
}

static PyObject *session_stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    tare_error err = TARE_ERROR_INIT;
    tare_status s;
    strand_names();
    Py_BEGIN_ALLOW_THREADS;
    s = tare_stop(&err);
    Py_END_ALLOW_THREADS;
    if (s != TARE_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *session_recording(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(TARE_ON_);
}

static PyObject *count(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name;
    long long n = 1;
    if (!PyArg_ParseTuple(args, "s|L:count", &name, &n)) return NULL;
    tare_site *site = TARE_ON_ ? tare_site_new(TARE_SITE_COUNTER, name, "", 0) : NULL;
    if (site) strand_now(); /* it may be another task's scopes that are on the record */
    if (site) tare_site_count(site, n);
    Py_RETURN_NONE;
}

static PyObject *mark(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name, *text = "";
    if (!PyArg_ParseTuple(args, "s|s:mark", &name, &text)) return NULL;
    tare_site *site = TARE_ON_ ? tare_site_new(TARE_SITE_MARK, name, "", 0) : NULL;
    if (site) strand_now();
    if (site) tare_site_mark(site, "%s", text);
    Py_RETURN_NONE;
}

static PyObject *thread_names(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    strand_names();
    Py_RETURN_NONE;
}

/* Instead of os.environ: a program with raised privileges has none of ours. */
static PyObject *environment(PyObject *Py_UNUSED(self), PyObject *name)
{
    const char *word = PyUnicode_AsUTF8(name), *text = word ? secure_getenv(word) : NULL;
    if (!word) return NULL;
    return PyUnicode_DecodeFSDefault(text ? text : "");
}

static PyMethodDef functions[] = {
    {"start", (PyCFunction)(void (*)(void))session_start, METH_VARARGS | METH_KEYWORDS,
     "start(path, *, mode='both', disk_bytes=1073741824, memory_bytes=536870912)\n--\n\n"
     "Record this process, and the children it forks, into the trace `path`. `tare report PATH` shows it."},
    {"stop", session_stop, METH_NOARGS, "stop()\n--\n\n"
     "Stop recording, pack and close the trace. Also happens at exit."},
    {"recording", session_recording, METH_NOARGS, "recording()\n--\n\nWhether a session records."},
    {"count", count, METH_VARARGS, "count(name, n=1)\n--\n\nAdd n to a counter of the running scope."},
    {"mark", mark, METH_VARARGS, "mark(name, text='')\n--\n\n"
     "An instant on the timeline, with a text of up to 120 bytes."},
    {"environment", environment, METH_O, NULL},
    {"thread_names", thread_names, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

const struct part session_part = {functions, NULL};
