/* SPDX-License-Identifier: MIT
 * py_judge.c - judgements of src/analyze from Python: whether runs differ, whether answers are still right, whether
 * memory grows for good, what a layer is for, and what energy weighs in grams of CO2. Measures nothing. */
#include <math.h>
#include <string.h>

#include "analyze/compare/between_runs.h"
#include "analyze/judge/accuracy.h"
#include "analyze/layers/layers.h"
#include "analyze/watch/carbon.h"
#include "analyze/watch/growth.h"
#include "core/mem.h"
#include "part.h"

/* ---- runs ---- */

/* ln of positive numbers, owned; NULL with an exception. */
static double *read_logs(PyObject *from, size_t *n)
{
    PyObject *list = PySequence_Fast(from, "observations are a sequence of numbers");
    if (!list) return NULL;
    *n = (size_t)PySequence_Fast_GET_SIZE(list);
    double *out = mem_new(*n, sizeof *out);
    if (!out) PyErr_NoMemory();
    for (size_t i = 0; out && i < *n && !PyErr_Occurred(); i++) {
        double v = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i));
        out[i] = log(v);
        if (PyErr_Occurred() || (isfinite(v) && v > 0)) continue;
        PyErr_Format(PyExc_ValueError, "observation %zu is not a number above 0", i);
    }
    Py_DECREF(list);
    if (!PyErr_Occurred()) return out;
    mem_free(out);
    return NULL;
}

static PyObject *tell_between(const struct between_result *r)
{
    static const char *const methods[] = {
        [BETWEEN_NONE] = "none", [BETWEEN_RUNS] = "runs", [BETWEEN_PAST] = "past", [BETWEEN_FAR] = "far"};
    return Py_BuildValue("{sssssdsdsdsdsdsn}", "verdict", r->verdict, "method", methods[r->method], "ratio",
                         exp(r->log), "lo", exp(r->lo), "hi", exp(r->hi), "p_worse", r->p_worse, "mde",
                         r->mde, "needed", (Py_ssize_t)r->needed);
}

/* The lists are the base, the new runs and earlier ones. "Same" means surely less than rule.detect: as it is given, or
 * clearly above min_effect, since no number of runs could tell two borders apart that touch. */
static PyObject *judge_runs(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *lists[3], *out = NULL;
    double *logs[3] = {NULL, NULL, NULL};
    size_t n[3];
    struct between_rule rule = BETWEEN_RULE_INIT;
    struct between_result result;
    tare_error err = TARE_ERROR_INIT;
    double detect = NAN;
    if (!PyArg_ParseTuple(args, "OOOddd|d:judge_runs", &lists[0], &lists[1], &lists[2], &rule.min_effect,
                          &rule.alpha, &rule.plausible, &detect))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (!(logs[i] = read_logs(lists[i], &n[i]))) goto out;
    if (rule.detect < 2 * rule.min_effect) rule.detect = 2 * rule.min_effect;
    if (!isnan(detect)) rule.detect = fmax(detect, -0.999);
    const struct between_sides sides = {{logs[0], n[0]}, {logs[1], n[1]}, {logs[2], n[2]}, false, 0};
    if (between_runs(&sides, &rule, &result, &err) == TARE_OK)
        out = tell_between(&result);
    else
        raise_error(&err);
out:
    for (int i = 0; i < 3; i++) mem_free(logs[i]);
    return out;
}

static PyObject *known_or_none(struct known_f64 x)
{
    return x.known && isfinite(x.v) ? PyFloat_FromDouble(x.v) : Py_NewRef(Py_None);
}

/* ---- buffers of doubles (array.array('d')) or labels ('q') ---- */

/* A buffer of `kind` ("d" or "q"), to be given back; false with an exception. */
static bool take_numbers(PyObject *from, Py_buffer *out, const char *kind)
{
    if (PyObject_GetBuffer(from, out, PyBUF_CONTIG_RO | PyBUF_FORMAT) < 0) return false;
    if (out->itemsize == 8 && out->format && strcmp(out->format, kind) == 0) return true;
    PyErr_Format(PyExc_TypeError, "expected array.array('%s')", kind);
    PyBuffer_Release(out);
    return false;
}

static size_t count_of(const Py_buffer *b)
{
    return (size_t)b->len / 8;
}

/* ---- answers ---- */

static bool find_metric(const char *name, enum accuracy_metric *out)
{
#define X(id, text, less, labels, help)                                                            \
    if (strcmp(name, text) == 0) return *out = ACCURACY_METRIC_##id, true;
    ACCURACY_METRIC_MAP(X)
#undef X
    PyErr_Format(PyExc_ValueError, "'%.40s' is no metric of answers", name);
    return false;
}

static PyObject *tell_score(const struct accuracy_result *r)
{
    struct known_f64 worst = {!isnan(r->worst), r->worst};
    struct known_f64 value = {r->score.known, r->score.value};
    return Py_BuildValue("{sNsNsNsNsKsK}", "value", known_or_none(value), "lo", known_or_none(r->score.lo),
                         "hi", known_or_none(r->score.hi), "worst", known_or_none(worst), "examples",
                         (unsigned long long)r->examples, "nonfinite", (unsigned long long)r->nonfinite);
}

/* Labels are one number for each row of answers; other answers are rows like them. */
static PyObject *score_rows(const Py_buffer *got, const Py_buffer *want, size_t columns, enum accuracy_metric m)
{
    bool labels = accuracy_metric_row(m)->needs_labels;
    size_t rows = count_of(got) / columns, wanted = count_of(want) / (labels ? 1 : columns);
    struct answers answers = {got->buf, rows, columns};
    struct expected expected = {labels ? want->buf : NULL, labels ? NULL : want->buf, wanted,
                                labels ? 0 : columns,
                                NULL};
    struct accuracy_result result;
    tare_error err = TARE_ERROR_INIT;
    if (accuracy_measure(&result, &answers, &expected, m, &err) != TARE_OK) return raise_error(&err);
    return tell_score(&result);
}

/* What "right" means decides the type of the second buffer: class numbers are whole, anything else is
 * compared as doubles. */
static PyObject *score_answers(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *got_object, *want_object, *out = NULL;
    Py_buffer got, want;
    Py_ssize_t columns;
    const char *name;
    enum accuracy_metric m;
    if (!PyArg_ParseTuple(args, "OOns:score_answers", &got_object, &want_object, &columns, &name) ||
        !find_metric(name, &m))
        return NULL;
    if (columns < 1) return PyErr_Format(PyExc_ValueError, "answers have %zd columns", columns);
    if (!take_numbers(got_object, &got, "d")) return NULL;
    if (take_numbers(want_object, &want, accuracy_metric_row(m)->needs_labels ? "q" : "d")) {
        out = score_rows(&got, &want, (size_t)columns, m);
        PyBuffer_Release(&want);
    }
    PyBuffer_Release(&got);
    return out;
}

/* ---- growth ---- */

PyObject *tell_growth(const double *at, const double *value, size_t n)
{
    struct growth g;
    tare_error err = TARE_ERROR_INIT;
    if (growth_test(&(struct growth_series){at, value, n}, &g, &err) != TARE_OK)
        return PyUnicode_FromString(err.text);
    return Py_BuildValue("sdddddn", g.verdict, g.confidence, g.rate, g.lo, g.hi, g.rise,
                         (Py_ssize_t)g.samples);
}

static PyObject *growth_of(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *at_object, *value_object, *out = NULL;
    Py_buffer at, value;
    if (!PyArg_ParseTuple(args, "OO:growth_of", &at_object, &value_object) ||
        !take_numbers(at_object, &at, "d"))
        return NULL;
    if (take_numbers(value_object, &value, "d")) {
        if (at.len == value.len)
            out = tell_growth(at.buf, value.buf, count_of(&at));
        else
            PyErr_SetString(PyExc_ValueError, "as many times as values are needed");
        PyBuffer_Release(&value);
    }
    PyBuffer_Release(&at);
    return out;
}

/* ---- carbon ---- */

static PyObject *carbon_table(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    PyObject *grids = PyDict_New();
    for (const struct carbon_grid *g = carbon_grids; grids && g->code; g++)
        if (dict_put(grids, g->code, Py_BuildValue("sd", g->name, g->g_per_kwh)) < 0) Py_CLEAR(grids);
    return grids ? Py_BuildValue("Ns", grids, carbon_grids_source) : NULL;
}

/* ---- layers ---- */

static PyObject *layer_group(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s:layer_group", &name)) return NULL;
    return Py_BuildValue("z", layers_group_told(name, NULL));
}

static PyMethodDef functions[] = {
    {"judge_runs", judge_runs, METH_VARARGS,
     "judge_runs(base, new, past, min_effect, alpha, plausible): does `new` take longer? docs/comparing.md"},
    {"score_answers", score_answers, METH_VARARGS,
     "score_answers(got, want, columns, metric): "
     "{'value', 'lo', 'hi', 'worst', 'examples', 'nonfinite'}; `want` are labels\n"
     "(array 'q') where the metric needs them, else rows like those of `got`"},
    {"growth_of", growth_of, METH_VARARGS,
     "growth_of(at, values): (verdict, confidence, per unit of `at`, low, high, rise, samples), or why not, as text"},
    {"carbon_table", carbon_table, METH_NOARGS,
     "carbon_table(): code -> (name, grams of CO2 per kWh), and whose figures"},
    {"layer_group", layer_group, METH_VARARGS,
     "layer_group(name): 'attention', 'mlp', .. as far as words in its path tell; None: they do not. docs/layers.md"},
    {NULL, NULL, 0, NULL},
};

const struct part judge_part = {functions, NULL};
