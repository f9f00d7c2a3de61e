/* SPDX-License-Identifier: MIT
 * py_digits.c - numbers of and for people from Python: the digits of core/fmt.h, the sizes of core/unit.h, so that the
 * package, the command and the report show and take the same number in the same way. */
#include <math.h>
#include <string.h>

#include "core/buf.h"
#include "core/fmt.h"
#include "core/unit.h"
#include "part.h"

/* The two arguments; false: *out is the answer already, or NULL with an exception. None was not asked for; NaN is a
 * number that could not be measured (tare._unknown). */
static bool read_number(PyObject *args, double *v, const char **unit, PyObject **out)
{
    PyObject *value;
    *out = NULL;
    *unit = "";
    if (!PyArg_ParseTuple(args, "O|s", &value, unit)) return false;
    if (value == Py_None) return *out = PyUnicode_FromString("-"), false;
    *v = PyFloat_AsDouble(value);
    if (*v == -1 && PyErr_Occurred()) return false;
    if (isnan(*v)) *out = PyUnicode_FromString("unknown");
    return !isnan(*v);
}

static void add_number(struct buf *b, double v, const char *unit)
{
    fmt_number(b, v);
    if (*unit) buf_printf(b, " %s", unit);
}

static PyObject *in_column(PyObject *Py_UNUSED(self), PyObject *args)
{
    struct buf b = BUF_INIT;
    PyObject *out;
    const char *unit;
    double v;
    if (!read_number(args, &v, &unit, &out)) return out;
    if (strcmp(unit, "s") == 0)
        fmt_duration(&b, v * 1e9);
    else if (strcmp(unit, "B") == 0)
        fmt_bytes(&b, v);
    else if (strcmp(unit, "1") == 0)
        fmt_share(&b, v);
    else if (strcmp(unit, "change") == 0)
        fmt_change(&b, v);
    else if (strcmp(unit, "FLOPs") == 0)
        fmt_si(&b, v, unit);
    else
        add_number(&b, v, unit);
    out = buf_status(&b, NULL) == TARE_OK ? PyUnicode_FromString(b.data) : PyErr_NoMemory();
    buf_release(&b);
    return out;
}

static PyObject *in_sentence(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *out;
    const char *unit;
    double v;
    if (!read_number(args, &v, &unit, &out)) return out;
    return PyUnicode_FromString(*unit ? show_quantity(unit, v).s : show_number(v).s);
}

static PyObject *in_bytes(PyObject *Py_UNUSED(self), PyObject *text)
{
    const char *word = PyUnicode_AsUTF8(text);
    double v;
    if (!word) return NULL;
    if (unit_parse(UNIT_BYTES, word, &v)) return PyFloat_FromDouble(v);
    return PyErr_Format(PyExc_ValueError, "%R is no size in bytes: 4096, 16GiB, 512MB", text);
}

static PyMethodDef functions[] = {
    {"in_column", in_column, METH_VARARGS,
     "in_column(value, unit=''): three digits, zeros kept: '2.00 ms'\n"
     "unit: 's', 'B', '1' (a share), 'change' (a ratio), 'FLOPs', or any word"},
    {"in_sentence", in_sentence, METH_VARARGS,
     "in_sentence(value, unit=''): three digits, a whole number without a point: '2 ms'"},
    {"in_bytes", in_bytes, METH_O, "in_bytes(text): bytes of '16GiB', '512MB', '4096'"},
    {NULL, NULL, 0, NULL},
};

const struct part digits_part = {functions, NULL};
