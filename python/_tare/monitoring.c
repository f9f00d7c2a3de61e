/* SPDX-License-Identifier: MIT
 * monitoring.c - see monitoring.h. */
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030C0000

static PyObject *module, *get_tool, *register_callback; /* sys.monitoring and of it: once found, kept */

static int find_module(void)
{
    if (module) return 0;
    PyObject *found = PySys_GetObject("monitoring"); /* borrowed */
    if (!found) return refuse(PyExc_RuntimeError, "sys.monitoring is missing in this Python");
    get_tool = PyObject_GetAttrString(found, "get_tool");
    register_callback = PyObject_GetAttrString(found, "register_callback");
    if (!get_tool || !register_callback) return -1;
    module = Py_NewRef(found);
    return 0;
}

static int drop_result(PyObject *result)
{
    Py_XDECREF(result);
    return result ? 0 : -1;
}

PyObject *monitor_get(const char *name)
{
    return find_module() < 0 ? NULL : PyObject_GetAttrString(module, name);
}

/* ---- callbacks ---- */

/* Once in the process: the event's bit, and a built-in function for its callback. */
static int prepare_event(struct monitor_event *e)
{
    if (e->callback) return 0;
    PyObject *events = monitor_get("events");
    PyObject *bit = events ? PyObject_GetAttrString(events, e->name) : NULL;
    e->bit = bit ? PyLong_AsLong(bit) : -1;
    Py_XDECREF(bit);
    Py_XDECREF(events);
    if (e->bit < 0) return -1;
    e->def = (PyMethodDef){e->name, (PyCFunction)(void (*)(void))e->function, METH_FASTCALL, NULL};
    e->callback = PyCFunction_New(&e->def, NULL);
    return e->callback ? 0 : -1;
}

/* The callback that was there before. */
static PyObject *put_callback(const struct monitor_tool *t, const struct monitor_event *e, PyObject *callback)
{
    PyObject *id = PyLong_FromLong(t->id), *bit = PyLong_FromLong(e->bit);
    PyObject *before =
        id && bit ? PyObject_CallFunctionObjArgs(register_callback, id, bit, callback, NULL) : NULL;
    Py_XDECREF(bit);
    Py_XDECREF(id);
    return before;
}

/* ---- the number ---- */

static PyObject *tool_name(int id)
{
    PyObject *number = PyLong_FromLong(id);
    PyObject *name = number ? PyObject_CallOneArg(get_tool, number) : NULL;
    Py_XDECREF(number);
    return name;
}

/* Who has the numbers, by name, so that the user knows which tool to stop. */
static int all_taken(const struct monitor_tool *t)
{
    PyObject *users = PyDict_New();
    for (const int *id = t->ids; users && *id >= 0; id++) {
        PyObject *name = tool_name(*id), *number = PyLong_FromLong(*id);
        if (!name || !number || PyDict_SetItem(users, number, name) < 0) Py_CLEAR(users);
        Py_XDECREF(name);
        Py_XDECREF(number);
    }
    if (users)
        PyErr_Format(
            PyExc_RuntimeError,
            "%s needs a tool id of sys.monitoring, and those it may have are in use: %R; stop one of "
            "these tools first",
            t->name, users);
    Py_XDECREF(users);
    return -1;
}

/* The first number of the tool's own list that nobody has. */
static int take_id(struct monitor_tool *t)
{
    for (const int *id = t->ids; *id >= 0; id++) {
        PyObject *name = tool_name(*id);
        if (!name) return -1;
        bool is_free = name == Py_None;
        Py_DECREF(name);
        if (!is_free) continue;
        t->id = *id;
        return drop_result(PyObject_CallMethod(module, "use_tool_id", "is", t->id, t->name));
    }
    return all_taken(t);
}

int monitor_take(struct monitor_tool *t)
{
    if (find_module() < 0) return -1;
    for (size_t i = 0; i < t->n_events; i++)
        if (prepare_event(&t->events[i]) < 0) return -1;
    if (take_id(t) < 0) return -1;
    for (size_t i = 0; i < t->n_events; i++) {
        if (drop_result(put_callback(t, &t->events[i], t->events[i].callback)) == 0) continue;
        monitor_give_back(t);
        return -1;
    }
    return 0;
}

/* What is registered can only be asked by registering. */
bool monitor_is_ours(const struct monitor_tool *t)
{
    const struct monitor_event *e = &t->events[0];
    PyObject *name = tool_name(t->id);
    bool ours = name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, t->name) == 0;
    PyObject *before = ours ? put_callback(t, e, e->callback) : NULL;
    if (before && before != e->callback) {
        ours = false;
        drop_result(put_callback(t, e, before));
    }
    Py_XDECREF(before);
    Py_XDECREF(name);
    PyErr_Clear();
    return ours;
}

void monitor_give_back(const struct monitor_tool *t)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (monitor_set(t, 0) < 0) PyErr_Clear();
    for (size_t i = 0; i < t->n_events; i++)
        if (drop_result(put_callback(t, &t->events[i], Py_None)) < 0) PyErr_Clear();
    if (drop_result(PyObject_CallMethod(module, "free_tool_id", "i", t->id)) < 0) PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

/* ---- events ---- */

long monitor_mask(const struct monitor_tool *t, int tag)
{
    long mask = 0;
    for (size_t i = 0; i < t->n_events; i++)
        if (t->events[i].tag == tag) mask |= t->events[i].bit;
    return mask;
}

int monitor_set(const struct monitor_tool *t, long mask)
{
    return drop_result(PyObject_CallMethod(module, "set_events", "il", t->id, mask));
}

int monitor_set_local(const struct monitor_tool *t, PyObject *code, long mask)
{
    return drop_result(PyObject_CallMethod(module, "set_local_events", "iOl", t->id, code, mask));
}

int monitor_restart(void)
{
    return drop_result(PyObject_CallMethod(module, "restart_events", NULL));
}

#endif
