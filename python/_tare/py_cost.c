/* SPDX-License-Identifier: MIT
 * py_cost.c - the cost rules of `tare inspect` for one operator with given shapes, from Python: no model file is
 * needed. Knows no framework: who calls says which ONNX operator its own one is. Never counts what has no rule. */
#include <string.h>

#include "core/arena.h"
#include "model/cost/cost.h"
#include "part.h"

/* One call: a node that stands in no graph, and the memory that all of it lies in. */
struct lone_node {
    struct arena memory;
    struct poly_space *space;
    struct onnx_node node;
    struct infer_scope scope;
    struct infer_node at;
};

struct call_args {
    const char *op;
    PyObject *inputs, *outputs, *attributes;
};

static void *get_memory(struct lone_node *l, size_t n, size_t size)
{
    void *p = arena_new(&l->memory, n ? n : 1, size);
    if (!p) PyErr_NoMemory();
    return p;
}

static const char *copy_text(struct lone_node *l, PyObject *from, size_t *bytes)
{
    Py_ssize_t n;
    const char *utf8 = PyUnicode_AsUTF8AndSize(from, &n);
    const char *kept = utf8 ? arena_str_n(&l->memory, utf8, (size_t)n) : NULL;
    if (utf8 && !kept) PyErr_NoMemory();
    if (bytes) *bytes = (size_t)n;
    return kept;
}

/* ---- values: None, or (type, shape) or (type, shape, constant) ---- */

static int type_by_name(const char *name)
{
    for (int type = 1; type < ONNX_TYPES; type++)
        if (strcmp(onnx_type_name(type), name) == 0) return type;
    return refuse(PyExc_ValueError, "there is no element type \"%s\": float32, float16, int64, bool, ..",
                  name);
}

static int read_dims(struct lone_node *l, PyObject *shape, struct infer_value *v)
{
    PyObject *dims = PySequence_Fast(shape, "a shape is a sequence of whole numbers");
    if (!dims) return -1;
    size_t n = (size_t)PySequence_Fast_GET_SIZE(dims);
    int failed = 0;
    if (n > INFER_RANK_MAX)
        failed = refuse(PyExc_ValueError, "a shape has at most %d dimensions", INFER_RANK_MAX);
    else if (!(v->dims = get_memory(l, n, sizeof *v->dims)))
        failed = -1;
    for (size_t i = 0; !failed && i < n; i++) {
        long long d = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(dims, (Py_ssize_t)i));
        v->dims[i] = poly_int(l->space, d);
        if (d < 0)
            failed = PyErr_Occurred() ? -1 : refuse(PyExc_ValueError, "a dimension cannot be negative");
    }
    v->has_rank = true;
    v->rank = n;
    Py_DECREF(dims);
    return failed;
}

static int read_value(struct lone_node *l, PyObject *from, struct infer_value **out)
{
    const char *type;
    PyObject *shape;
    int constant = 0;
    if (from == Py_None) return 0;
    if (!PyTuple_Check(from))
        return refuse(PyExc_TypeError, "a value is None or a tuple (type, shape[, constant])");
    if (!PyArg_ParseTuple(from, "sO|p:value", &type, &shape, &constant)) return -1;
    struct infer_value *v = get_memory(l, 1, sizeof *v);
    if (!v || (v->type = type_by_name(type)) < 0 || read_dims(l, shape, v) < 0) return -1;
    v->name = "";
    v->folded = constant;
    *out = v;
    return 0;
}

static int read_values(struct lone_node *l, PyObject *from, struct infer_value ***out, size_t *n_out)
{
    PyObject *list = PySequence_Fast(from, "inputs and outputs are sequences of values");
    if (!list) return -1;
    size_t n = *n_out = (size_t)PySequence_Fast_GET_SIZE(list);
    struct infer_value **values = *out = get_memory(l, n, sizeof *values);
    int failed = values ? 0 : -1;
    for (size_t i = 0; !failed && i < n; i++)
        failed = read_value(l, PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i), &values[i]);
    Py_DECREF(list);
    return failed;
}

/* ---- attributes: a number, a text, a list of whole numbers ---- */

static int read_ints(struct lone_node *l, PyObject *from, struct onnx_attribute *a)
{
    PyObject *list = PySequence_Fast(from, "an attribute is a number, a text or a list of whole numbers");
    if (!list) return -1;
    a->kind = ONNX_ATTR_INTS;
    a->ints.n = (size_t)PySequence_Fast_GET_SIZE(list);
    a->ints.items = get_memory(l, a->ints.n, sizeof *a->ints.items);
    for (size_t i = 0; i < a->ints.n && !PyErr_Occurred(); i++)
        a->ints.items[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i));
    Py_DECREF(list);
    return PyErr_Occurred() ? -1 : 0;
}

static int read_attribute(struct lone_node *l, PyObject *from, struct onnx_attribute *a)
{
    if (PyFloat_Check(from)) {
        a->kind = ONNX_ATTR_FLOAT;
        a->f = (float)PyFloat_AS_DOUBLE(from);
        return 0;
    }
    if (PyLong_Check(from)) {
        a->kind = ONNX_ATTR_INT;
        a->i = PyLong_AsLongLong(from);
        return a->i == -1 && PyErr_Occurred() ? -1 : 0;
    }
    if (!PyUnicode_Check(from)) return read_ints(l, from, a);
    a->kind = ONNX_ATTR_STRING;
    a->s = (const uint8_t *)copy_text(l, from, &a->s_bytes);
    return a->s ? 0 : -1;
}

static int read_attributes(struct lone_node *l, PyObject *from)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (from == Py_None) return 0;
    if (!PyDict_Check(from)) return refuse(PyExc_TypeError, "attributes are a dict");
    size_t n = (size_t)PyDict_Size(from);
    if (!(l->node.attributes.items = get_memory(l, n, sizeof *l->node.attributes.items))) return -1;
    while (PyDict_Next(from, &at, &key, &value) && l->node.attributes.n < n) {
        struct onnx_attribute *a = &l->node.attributes.items[l->node.attributes.n++];
        if (!(a->name = copy_text(l, key, NULL)) || read_attribute(l, value, a) < 0) return -1;
    }
    return 0;
}

/* ---- the call ---- */

/* A node with its values around it, as the cost rules expect to find it in a graph. */
static int make_node(struct lone_node *l, const struct call_args *a)
{
    tare_error err = TARE_ERROR_INIT;
    if (poly_space_new(&l->space, &err) != TARE_OK) {
        PyErr_NoMemory();
        return -1;
    }
    l->node.op = a->op;
    l->node.domain = l->node.name = "";
    l->at.node = &l->node;
    l->at.scope = &l->scope;
    l->at.opset = 21;
    if (read_values(l, a->inputs, &l->at.inputs, &l->node.inputs.n) < 0) return -1;
    if (read_values(l, a->outputs, &l->at.outputs, &l->node.outputs.n) < 0) return -1;
    return read_attributes(l, a->attributes);
}

/* None stands for a count that is not one number, as it is for an op whose cost is not known: then `why`
 * says so. Unknown must not become 0. */
static PyObject *tell_cost(const struct cost *c)
{
    const struct {
        const char *name;
        const struct poly *value;
    } rows[] = {
        {"macs", c->macs},         {"int_macs", c->int_macs}, {"simple", c->simple},
        {"division", c->division}, {"integer", c->integer},   {"transcendental", c->transcendental},
        {"read", c->read},         {"written", c->written},   {"useful_macs", c->useful_macs},
    };
    const char *why = c->why ? c->why : "too large a number";
    PyObject *out = PyDict_New();
    int failed = dict_put(out, "why", c->known ? Py_NewRef(Py_None) : PyUnicode_FromString(why));
    for (size_t i = 0; !failed && i < sizeof rows / sizeof *rows; i++) {
        int64_t v;
        bool known = poly_constant(rows[i].value, &v);
        failed = dict_put(out, rows[i].name, known ? PyLong_FromLongLong(v) : Py_NewRef(Py_None));
    }
    if (failed) Py_CLEAR(out);
    return out;
}

static PyObject *op_cost(PyObject *Py_UNUSED(self), PyObject *args)
{
    struct call_args a = {.attributes = Py_None};
    struct lone_node l = {.memory = ARENA_INIT};
    struct cost cost;
    PyObject *out = NULL;
    if (!PyArg_ParseTuple(args, "sOO|O:op_cost", &a.op, &a.inputs, &a.outputs, &a.attributes)) return NULL;
    if (make_node(&l, &a) == 0) {
        struct inferred model = {.space = l.space, .main = &l.scope};
        tare_error err = TARE_ERROR_INIT;
        if (cost_of_node(&cost, &model, &l.at, &err) == TARE_OK)
            out = tell_cost(&cost);
        else
            raise_error(&err);
    }
    poly_space_free(l.space);
    arena_release(&l.memory);
    return out;
}

static PyMethodDef functions[] = {
    {"op_cost", op_cost, METH_VARARGS,
     "op_cost(op, inputs, outputs, attributes=None): what an ONNX operator of opset 21 costs.\n\n"
     "Values are None or (type, shape[, constant]). A dict of counts by docs/cost.md; one that is not known is\n"
     "None, and 'why' says why."},
    {NULL, NULL, 0, NULL},
};

const struct part cost_part = {functions, NULL};
