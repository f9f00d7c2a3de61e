/* SPDX-License-Identifier: MIT
 * py_ring.c - shared slots (ring_shared.h) from Python. A View is a batch's memory as the loader's user sees it: as
 * long as any array refers to it, its slot is not used again. */
#include <string.h>

#include "part.h"
#include "ring_shared.h"

struct ring_object {
    PyObject_HEAD struct shared_ring ring;
    bool held[SHARED_SLOTS_MAX]; /* posted, or seen by a View */
};

struct view_object {
    PyObject_HEAD struct ring_object *ring;
    size_t slot;
    bool frees; /* the slot, when nobody refers to it any more */
};

static PyTypeObject *view_type;

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"slots", "slot_bytes", NULL};
    Py_ssize_t slots, bytes;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, named, "nn:Ring", names, &slots, &bytes)) return NULL;
    struct ring_object *self = (struct ring_object *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    if (shared_open(&self->ring, slots < 0 ? 0 : (size_t)slots, bytes < 0 ? 0 : (size_t)bytes, &err) ==
        TARE_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_error(&err);
}

static void ring_dealloc(PyObject *object)
{
    shared_close(&((struct ring_object *)object)->ring);
    object_free(object);
}

/* 0, or -1: no such slot. */
static int check_slot(const struct ring_object *self, Py_ssize_t slot)
{
    if (slot >= 0 && (size_t)slot < self->ring.slots) return 0;
    return refuse(PyExc_IndexError, "slot %zd of %zu", slot, self->ring.slots);
}

/* Lengths are told in 32 bits. */
static bool fits(const struct ring_object *self, Py_ssize_t bytes)
{
    return (size_t)bytes <= self->ring.slot_bytes && (size_t)bytes <= UINT32_MAX;
}

static PyObject *ring_post(PyObject *object, PyObject *args)
{
    struct ring_object *self = (struct ring_object *)object;
    Py_buffer what;
    size_t slot = 0;
    if (!PyArg_ParseTuple(args, "y*:post", &what)) return NULL;
    PyObject *out = NULL;
    while (slot < self->ring.slots && self->held[slot]) slot++;
    if (slot == self->ring.slots)
        PyErr_SetString(PyExc_BlockingIOError, "every slot of the ring is in use");
    else if (!fits(self, what.len))
        PyErr_Format(PyExc_ValueError, "a job of %zd bytes does not fit a slot of %zu", what.len,
                     self->ring.slot_bytes);
    else {
        memcpy(shared_data(&self->ring, slot), what.buf, (size_t)what.len);
        self->held[slot] = true;
        out = Py_BuildValue("kn", (unsigned long)shared_post(&self->ring, slot, (uint32_t)what.len),
                            (Py_ssize_t)slot);
    }
    PyBuffer_Release(&what);
    return out;
}

static PyObject *free_slots(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct ring_object *self = (struct ring_object *)object;
    Py_ssize_t n = 0;
    for (size_t i = 0; i < self->ring.slots; i++) n += !self->held[i];
    return PyLong_FromSsize_t(n);
}

static PyObject *meta_of(const struct shared_ring *r, size_t slot)
{
    size_t n = __atomic_load_n(&shared_slot_of(r, slot)->meta, __ATOMIC_RELAXED);
    if (n > r->slot_bytes)
        return PyErr_Format(PyExc_ValueError,
                            "slot %zu of the ring is damaged: it tells of %zu bytes and has %zu", slot, n,
                            r->slot_bytes);
    return PyBytes_FromStringAndSize((char *)shared_data(r, slot), (Py_ssize_t)n);
}

/* (job, slot, seconds) -> (kind, meta), pid of a worker that died, or None: not within that time */
static PyObject *ring_wait(PyObject *object, PyObject *args)
{
    struct ring_object *self = (struct ring_object *)object;
    unsigned long job;
    Py_ssize_t slot;
    double seconds;
    pid_t dead;
    enum shared_wait how;
    if (!PyArg_ParseTuple(args, "knd:wait", &job, &slot, &seconds) || check_slot(self, slot) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    how = shared_wait_done(&self->ring, (size_t)slot, (uint32_t)job, seconds, &dead);
    Py_END_ALLOW_THREADS;
    if (PyErr_CheckSignals() < 0) return NULL;
    if (how == SHARED_DEAD) return PyLong_FromLong(dead);
    if (how != SHARED_READY) Py_RETURN_NONE;
    return Py_BuildValue("iN", (int)shared_slot_of(&self->ring, (size_t)slot)->kind,
                         meta_of(&self->ring, (size_t)slot));
}

/* (job, seconds) -> (slot, what was posted), False: it is over, None: not within that time */
static PyObject *ring_take(PyObject *object, PyObject *args)
{
    struct ring_object *self = (struct ring_object *)object;
    unsigned long job;
    double seconds;
    size_t slot = 0;
    enum shared_wait how;
    if (!PyArg_ParseTuple(args, "kd:take", &job, &seconds)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    how = shared_take(&self->ring, (uint32_t)job, seconds, &slot);
    Py_END_ALLOW_THREADS;
    if (PyErr_CheckSignals() < 0) return NULL;
    if (how == SHARED_CLOSED || how == SHARED_DEAD) Py_RETURN_FALSE;
    if (how != SHARED_READY) Py_RETURN_NONE;
    return Py_BuildValue("nN", (Py_ssize_t)slot, meta_of(&self->ring, slot));
}

static PyObject *ring_done(PyObject *object, PyObject *args)
{
    struct ring_object *self = (struct ring_object *)object;
    unsigned long job;
    Py_ssize_t slot;
    int kind;
    Py_buffer meta;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = TARE_OK;
    if (!PyArg_ParseTuple(args, "kniy*:done", &job, &slot, &kind, &meta)) return NULL;
    bool may = check_slot(self, slot) == 0 && fits(self, meta.len);
    if (may) {
        struct shared_made made = {(uint32_t)job, kind ? SHARED_ERROR : SHARED_DATA, meta.buf,
                                   (size_t)meta.len};
        s = shared_done(&self->ring, (size_t)slot, &made, &err);
    } else if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%zd bytes do not fit a slot of %zu", meta.len, self->ring.slot_bytes);
    PyBuffer_Release(&meta);
    if (s < 0) return raise_error(&err);
    return may ? Py_NewRef(Py_None) : NULL;
}

static PyObject *ring_at(PyObject *object, PyObject *args)
{
    struct ring_object *self = (struct ring_object *)object;
    Py_ssize_t slot;
    unsigned int at;
    if (!PyArg_ParseTuple(args, "nI:at", &slot, &at) || check_slot(self, slot) < 0) return NULL;
    __atomic_store_n(&shared_slot_of(&self->ring, (size_t)slot)->at, at, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

/* slot -> (pid of its worker, or 0; position of the sample it is making) */
static PyObject *ring_state(PyObject *object, PyObject *arg)
{
    struct ring_object *self = (struct ring_object *)object;
    Py_ssize_t slot = PyLong_AsSsize_t(arg);
    if (PyErr_Occurred() || check_slot(self, slot) < 0) return NULL;
    const struct shared_slot *s = shared_slot_of(&self->ring, (size_t)slot);
    return Py_BuildValue("kk", (unsigned long)s->owner,
                         (unsigned long)__atomic_load_n(&s->at, __ATOMIC_RELAXED));
}

static PyObject *ring_watch(PyObject *object, PyObject *arg)
{
    long pid = PyLong_AsLong(arg);
    tare_error err = TARE_ERROR_INIT;
    if (PyErr_Occurred()) return NULL;
    if (shared_watch(&((struct ring_object *)object)->ring, (pid_t)pid, &err) < 0) return raise_error(&err);
    Py_RETURN_NONE;
}

/* seconds -> whether all have ended by then */
static PyObject *ring_end(PyObject *object, PyObject *arg)
{
    double seconds = PyFloat_AsDouble(arg);
    bool all;
    if (PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    all = shared_end(&((struct ring_object *)object)->ring, seconds);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(all);
}

/* (slot, frees): its memory, as something with a buffer */
static PyObject *ring_view(PyObject *object, PyObject *args)
{
    struct ring_object *self = (struct ring_object *)object;
    Py_ssize_t slot;
    int frees;
    if (!PyArg_ParseTuple(args, "np:view", &slot, &frees) || check_slot(self, slot) < 0) return NULL;
    struct view_object *view = PyObject_New(struct view_object, view_type);
    if (!view) return NULL;
    view->ring = (struct ring_object *)Py_NewRef(object);
    view->slot = (size_t)slot;
    view->frees = frees;
    return (PyObject *)view;
}

static int view_buffer(PyObject *object, Py_buffer *out, int flags)
{
    struct view_object *self = (struct view_object *)object;
    const struct shared_ring *r = &self->ring->ring;
    return PyBuffer_FillInfo(out, object, shared_data(r, self->slot), (Py_ssize_t)r->slot_bytes, 0, flags);
}

static void view_dealloc(PyObject *object)
{
    struct view_object *self = (struct view_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->frees) self->ring->held[self->slot] = false;
    Py_DECREF(self->ring);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef ring_methods[] = {
    {"post", ring_post, METH_VARARGS, "post(what) -> (job, slot): the next job, in a free slot"},
    {"free", free_slots, METH_NOARGS, "slots that are free"},
    {"wait", ring_wait, METH_VARARGS, "wait(job, slot, seconds) -> (kind, meta), the pid of a dead worker, or None"},
    {"take", ring_take, METH_VARARGS, "take(job, seconds) -> (slot, what), False: it is over, None: not yet"},
    {"done", ring_done, METH_VARARGS, "done(job, slot, kind, meta): kind 1 is an error"},
    {"at", ring_at, METH_VARARGS, "at(slot, position): the sample that is being made"},
    {"state", ring_state, METH_O, "state(slot) -> (pid, position)"},
    {"watch", ring_watch, METH_O, "watch(pid): waits end when it dies"},
    {"end", ring_end, METH_O, "end(seconds): kills the watched workers, and whether all have ended by then"},
    {"view", ring_view, METH_VARARGS, "view(slot, frees): its memory; frees: the slot, with the last user"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot ring_slots[] = {
    {Py_tp_new, ring_new}, {Py_tp_dealloc, ring_dealloc}, {Py_tp_methods, ring_methods}, {0, NULL}};
static PyType_Spec ring_spec = {
    .name = "tare._tare.Ring",
    .basicsize = sizeof(struct ring_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = ring_slots,
};

static PyType_Slot view_slots[] = {
    {Py_tp_dealloc, view_dealloc}, {Py_bf_getbuffer, view_buffer}, {0, NULL}};
static PyType_Spec view_spec = {
    .name = "tare._tare.View",
    .basicsize = sizeof(struct view_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = view_slots,
};

static int init(PyObject *module)
{
    if (add_type(module, &ring_spec, NULL) < 0 || add_type(module, &view_spec, &view_type) < 0) return -1;
    view_type->tp_new = NULL; /* made by Ring.view() alone: it is nothing without a ring */
    return 0;
}

const struct part ring_part = {NULL, init};
