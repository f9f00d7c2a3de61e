/* SPDX-License-Identifier: MIT
 * calls_intern.c - functions by address: what keeps the address from being used again, and the name that
 * pstats shows. Never keeps the object alive that a method is bound to: that would change the program. */
#include "calls.h"

#include <string.h>

static PyMethodDef *method_def(PyObject *callable)
{
    if (PyCFunction_Check(callable)) return ((PyCFunctionObject *)callable)->m_ml;
    return ((PyMethodDescrObject *)callable)->d_method;
}

/* The descriptor in the type's dictionaries that has this definition: its text is "<method 'append' of 'list'
 * objects>". */
static PyObject *descriptor_in(PyTypeObject *type, const PyMethodDef *def)
{
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = PyObject_GetAttrString(PyTuple_GET_ITEM(mro, i), "__dict__");
        PyObject *found = dict ? PyMapping_GetItemString(dict, def->ml_name) : NULL;
        Py_XDECREF(dict);
        PyErr_Clear();
        bool is_method =
            found && (Py_TYPE(found) == &PyMethodDescr_Type || Py_TYPE(found) == &PyClassMethodDescr_Type);
        if (is_method && ((PyMethodDescrObject *)found)->d_method == def) return found;
        Py_XDECREF(found);
    }
    return NULL;
}

/* Functions of modules and of types: "<built-in method builtins.len>", as cProfile says it, without
 * addresses. */
static PyObject *builtin_label(const PyCFunctionObject *fn)
{
    const char *name = fn->m_ml->ml_name;
    if (fn->m_module && PyUnicode_Check(fn->m_module))
        return PyUnicode_FromFormat("<built-in method %U.%s>", fn->m_module, name);
    return PyUnicode_FromFormat("<built-in method %s>", name);
}

/* A bound method's definition lives as long as its type, a function's as long as it or its module. */
static void describe_c(struct call_func *f, PyObject *callable)
{
    if (!PyCFunction_Check(callable)) {
        f->held = Py_NewRef(callable);
        f->kind = CALL_METHOD;
    } else {
        const PyCFunctionObject *fn = (const PyCFunctionObject *)callable;
        if (!fn->m_self || PyModule_Check(fn->m_self) || PyCapsule_CheckExact(fn->m_self))
            f->held = Py_NewRef(callable);
        else
            f->held = descriptor_in(Py_TYPE(fn->m_self), fn->m_ml);
        if (f->held && f->held != callable) f->kind = CALL_METHOD;
        if (!f->held || f->held == callable) f->label = builtin_label(fn);
    }
    if (!f->label && f->held) f->label = PyObject_Repr(f->held);
    PyErr_Clear();
    f->starts_thread = strncmp(method_def(callable)->ml_name, "start_new", 9) == 0 ||
                       strcmp(method_def(callable)->ml_name, "start_joinable_thread") == 0;
}

static bool is_ours(PyObject *callable)
{
    const PyCFunctionObject *fn = (const PyCFunctionObject *)callable;
    PyObject *self = PyCFunction_Check(callable) ? fn->m_self : NULL;
    PyTypeObject *type = self ? Py_TYPE(self) : NULL;
    if (!PyCFunction_Check(callable)) type = ((PyMethodDescrObject *)callable)->d_common.d_type;
    return type && PyType_IsSubtype(type, calls_type) && calls_is_own(method_def(callable));
}

/* Where memory runs out the half-made entry is taken back: a number without a function would be worse than none. */
long func_number(struct call_recorder *rec, const void *key, PyObject *object, enum call_kind kind)
{
    const uint64_t *known = map_u64_find(&rec->func_of, (uint64_t)(uintptr_t)key);
    if (known) return (long)*known;
    struct call_func f = {.key = key, .kind = kind};
    if (kind == CALL_C) {
        if (is_ours(object)) return -2;
        describe_c(&f, object);
    } else {
        f.held = Py_NewRef(object);
        f.kind = code_kind((const PyCodeObject *)object);
    }
    uint64_t *number;
    if (map_u64_ref(&rec->func_of, (uint64_t)(uintptr_t)key, &number, NULL) == TARE_OK &&
        vec_push(&rec->funcs, f, NULL) == TARE_OK) {
        *number = rec->funcs.n - 1;
        return (long)*number;
    }
    map_u64_remove(&rec->func_of, (uint64_t)(uintptr_t)key, NULL);
    Py_XDECREF(f.held);
    Py_XDECREF(f.label);
    return -1;
}

PyObject *func_label(const struct call_func *f)
{
    if (f->kind == CALL_C || f->kind == CALL_METHOD)
        return Py_BuildValue("siO", "~", 0, f->label ? f->label : Py_None);
    const PyCodeObject *code = (const PyCodeObject *)f->held;
    return Py_BuildValue("OiO", code->co_filename, code->co_firstlineno, code->co_name);
}

void funcs_release(struct call_recorder *rec)
{
    for (size_t i = 0; i < rec->funcs.n; i++) {
        Py_XDECREF(rec->funcs.items[i].held);
        Py_XDECREF(rec->funcs.items[i].label);
    }
    vec_release(&rec->funcs);
    map_u64_release(&rec->func_of);
}
