/* SPDX-License-Identifier: MIT
 * py_lines.c - the type `LineRecorder`: which functions are watched, starting, stopping, and the rows. One
 * records at a time. Measures no cost of its own: the Python half does. */
#include "calls_results.h"
#include "lines.h"

#include <structmember.h>

#include "core/mem.h"

struct line_recorder *lines_active;
uint64_t lines_generation = 1;
__thread struct lines_mine lines_mine __attribute__((tls_model("initial-exec")));

/* ---- threads ---- */

static bool open_room(struct line_ctx *c, size_t n_rows)
{
    while (c->open.n < n_rows)
        if (vec_push(&c->open, 0, NULL) != TARE_OK) return false;
    return true;
}

static struct line_ctx *ctx_make(struct line_recorder *rec)
{
    struct line_ctx *c = mem_new(1, sizeof *c);
    if (!c) return NULL;
    if (!open_room(c, rec->n_rows)) {
        vec_release(&c->open);
        mem_free(c);
        return NULL;
    }
    c->next = rec->threads;
    rec->threads = c;
    return c;
}

struct line_ctx *lines_mine_slow(void)
{
    lines_mine.ctx = lines_active ? ctx_make(lines_active) : NULL;
    lines_mine.generation = lines_generation;
    return lines_mine.ctx;
}

static void threads_free(struct line_recorder *rec)
{
    for (struct line_ctx *c = rec->threads, *next; c; c = next) {
        next = c->next;
        vec_release(&c->open);
        mem_free(c->frames);
        mem_free(c);
    }
    rec->threads = NULL;
}

/* ---- calls ---- */

/* NULL: no memory; the lines of this call are then not recorded. */
struct line_frame *lines_push(struct line_ctx *c, struct line_code *code)
{
    if (c->n == c->cap) {
        size_t cap = 2 * c->cap + 16;
        struct line_frame *more = mem_resize(c->frames, cap, sizeof *more);
        if (!more) return NULL;
        c->frames = more;
        c->cap = cap;
    }
    struct line_frame *f = &c->frames[c->n++];
    *f = (struct line_frame){.code = code};
    return f;
}

void lines_enter(struct line_ctx *c, struct line_code *known, int resumed_at)
{
    struct line_frame *f = lines_push(c, known);
    c->calls++;
    if (f && resumed_at) lines_open_row(c, f, resumed_at, calls_now());
}

/* Frames above the one that is left are gone without a word: their recording began in the middle. */
void lines_leave(struct line_ctx *c, PyObject *code, uint64_t now)
{
    size_t at = c->n;
    while (at && c->frames[at - 1].code->code != code) at--;
    if (!at) return;
    while (c->n >= at) {
        lines_close_row(c, &c->frames[c->n - 1], now);
        c->n--;
    }
    c->calls++;
}

/* ---- start and stop ---- */

/* It is referred to while it records, so that it cannot go away under the events. */
static PyObject *recorder_enable(PyObject *self, PyObject *Py_UNUSED(none))
{
    struct line_recorder *rec = (struct line_recorder *)(void *)self;
    if (rec->on) Py_RETURN_NONE;
    if (lines_active)
        return PyErr_Format(PyExc_RuntimeError,
                            "another tare.lines() records already, and they do not nest: disable it first");
    lines_active = (struct line_recorder *)(void *)Py_NewRef(self);
    lines_generation++;
    rec->on = true;
    rec->trouble[0] = 0;
    if (lines_engine.start(rec) == 0) Py_RETURN_NONE;
    rec->on = false;
    lines_active = NULL;
    lines_generation++;
    Py_DECREF(self);
    return NULL;
}

static PyObject *recorder_disable(PyObject *self, PyObject *Py_UNUSED(none))
{
    struct line_recorder *rec = (struct line_recorder *)(void *)self;
    if (!rec->on) Py_RETURN_NONE;
    uint64_t now = calls_now();
    for (struct line_ctx *c = rec->threads; c; c = c->next)
        for (; c->n; c->n--) lines_close_row(c, &c->frames[c->n - 1], now);
    lines_engine.stop(rec);
    rec->on = false;
    lines_active = NULL;
    lines_generation++;
    threads_free(rec);
    Py_DECREF(self);
    Py_RETURN_NONE;
}

/* ---- functions ---- */

/* Rows of a code object for its lines `first` to `last`; NULL: no memory, and what is in the list already is released
 * with the recorder. */
static struct line_code *code_new(struct line_recorder *rec, PyObject *code, int first, int last)
{
    struct line_code *c = mem_new(1, sizeof *c);
    struct line_row *rows = c ? mem_new((size_t)(last - first) + 1, sizeof *rows) : NULL;
    uint64_t key = (uint64_t)(uintptr_t)code;
    if (!rows || vec_push(&rec->codes, c, NULL) != TARE_OK) {
        mem_free(rows);
        mem_free(c);
        return NULL;
    }
    *c = (struct line_code){Py_NewRef(code), first, (size_t)(last - first) + 1, rec->n_rows, rows};
    rec->n_rows += c->n;
    bool room = true; /* in all threads, before events may come */
    for (struct line_ctx *t = rec->threads; t; t = t->next) room = open_room(t, rec->n_rows) && room;
    return room && map_u64_put(&rec->code_of, key, rec->codes.n, NULL) == TARE_OK ? c : NULL;
}

static PyObject *recorder_add(PyObject *self, PyObject *args)
{
    struct line_recorder *rec = (struct line_recorder *)(void *)self;
    PyObject *code;
    int first, last;
    if (!PyArg_ParseTuple(args, "O!ii:add", &PyCode_Type, &code, &first, &last)) return NULL;
    if (last < first || first < 0 || last - first > 10000000)
        return PyErr_Format(PyExc_ValueError, "lines %d to %d", first, last);
    if (map_u64_find(&rec->code_of, (uint64_t)(uintptr_t)code)) Py_RETURN_FALSE;
    if (!code_new(rec, code, first, last)) return PyErr_NoMemory();
    if (rec->on && lines_engine.add(rec, code) < 0) return NULL;
    Py_RETURN_TRUE;
}

/* ---- results ---- */

static PyObject *rows_of(const struct line_code *c, double tick_ns)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < c->n; i++) {
        const struct line_row *r = &c->rows[i];
        if (!r->hits && !r->ticks) continue;
        list = list_append(list, Py_BuildValue("(iKdKK)", c->first + (int)i, (unsigned long long)r->hits,
                                               (double)r->ticks * tick_ns, (unsigned long long)r->inner_lines,
                                               (unsigned long long)r->inner_calls));
    }
    return list;
}

static PyObject *recorder_results(PyObject *self, PyObject *Py_UNUSED(none))
{
    const struct line_recorder *rec = (const struct line_recorder *)(void *)self;
    double tick_ns = calls_tick_ns();
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < rec->codes.n; i++) {
        PyObject *rows = rows_of(rec->codes.items[i], tick_ns);
        list = list_append(list, rows ? Py_BuildValue("(ON)", rec->codes.items[i]->code, rows) : NULL);
    }
    return list;
}

/* ---- the type ---- */

/* While it records it is referred to, so nothing is open here. */
static void recorder_dealloc(PyObject *self)
{
    struct line_recorder *rec = (struct line_recorder *)(void *)self;
    for (size_t i = 0; i < rec->codes.n; i++) {
        Py_DECREF(rec->codes.items[i]->code);
        mem_free(rec->codes.items[i]->rows);
        mem_free(rec->codes.items[i]);
    }
    vec_release(&rec->codes);
    map_u64_release(&rec->code_of);
    threads_free(rec);
    object_free(self);
}

static PyMethodDef methods[] = {
    {"add", recorder_add, METH_VARARGS, "add($self, code, first, last)\n--\n\nWatch the lines of a code object."},
    {"enable", recorder_enable, METH_NOARGS, NULL},
    {"disable", recorder_disable, METH_NOARGS, NULL},
    {"results", recorder_results, METH_NOARGS,
     "results()\n--\n\n[(code, [(line, hits, ns, line events within, call events within)])]"},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef members[] = {
    {"trouble", T_STRING_INPLACE, offsetof(struct line_recorder, trouble), READONLY,
     "why the results are incomplete, or ''"},
    {"enabled", T_BOOL, offsetof(struct line_recorder, on), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, (void *)PyType_GenericNew},
    {Py_tp_dealloc, (void *)recorder_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};
static PyType_Spec spec = {"tare._tare.LineRecorder", sizeof(struct line_recorder), 0, Py_TPFLAGS_DEFAULT,
                           slots};

static int lines_init(PyObject *module)
{
    return add_type(module, &spec, NULL);
}

const struct part lines_part = {NULL, lines_init};
