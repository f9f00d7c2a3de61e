/* SPDX-License-Identifier: MIT
 * py_bench.c - tare.bench: the harness of `tare bench` in this process, on a Python callable. Measures, judges and
 * gives the document and the text of the answer as strings; writes no file unless save_run() is asked to. */
#include <string.h>

#include "analyze/judge/judge.h"
#include "bench/bench.h"
#include "core/mem.h"
#include "core/vec.h"
#include "probe/host.h"
#include "report/run/run_report.h"
#include "work.h"

struct asked { /* one call of _tare.bench */
    struct weighed weighed;
    struct bench_plan plan;
    struct subject *subject;
    VEC(struct bench_case) cases;
    VEC(struct dim_value) dims; /* one per case */
    VEC(struct target) targets;
    struct objective objective;
    PyObject *progress;           /* NULL: none */
    volatile sig_atomic_t failed; /* progress raised */
};

/* ---- what was asked for ---- */

/* The list stays alive with the caller's arguments, and the names with it. */
static bool take_cases(struct asked *a, PyObject *rows, tare_error *err)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        struct bench_case c = {.subject = a->subject, .params.workers = 1};
        struct dim_value d = {"length", 0};
        long long batch, length;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "sLL:case", &c.name, &batch, &length)) return false;
        c.params.batch = batch;
        d.value = length;
        if (vec_push(&a->dims, d, err) < 0 || vec_push(&a->cases, c, err) < 0) return false;
    }
    for (size_t i = 0; i < a->cases.n; i++) {
        a->cases.items[i].params.dims = &a->dims.items[i];
        a->cases.items[i].params.n_dims = a->dims.items[i].value > 0;
        a->cases.items[i].params.has_neighbours = a->cases.n > 1;
    }
    a->plan.cases = a->cases.items;
    a->plan.n_cases = a->cases.n;
    a->weighed.spares = true;
    return true;
}

static bool take_targets(struct asked *a, PyObject *texts, tare_error *err)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(texts); i++) {
        struct target t;
        const char *text = PyUnicode_AsUTF8(PyList_GET_ITEM(texts, i));
        if (!text || target_parse(&t, text, err) < 0 || target_check_unit(&t, a->plan.unit, err) < 0 ||
            vec_push(&a->targets, t, err) < 0)
            return false;
    }
    return true;
}

/* What is borrowed from the arguments lives as long as the call. */
static bool parse_bench(struct asked *a, PyObject *args, PyObject *keywords, tare_error *err)
{
    static char *names[] = {"make",     "cases",     "targets",   "name",        "path",
                            "unit",     "budget_ns", "precision", "percentile",  "min_runs",
                            "max_runs", "warmup",    "seed",      "objective",   "latency_limit_ns",
                            "setup",    "timed",     "progress",  "keep_failed", NULL};
    PyObject *cases, *targets;
    unsigned long long budget, least, most, seed, limit;
    long long warmup;
    int setup, timed, keep;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!O!szsKddKKLKsKppOp:bench", names, &a->weighed.make,
                                     &PyList_Type, &cases, &PyList_Type, &targets, &a->weighed.name,
                                     &a->weighed.path, &a->plan.unit, &budget, &a->plan.precision,
                                     &a->plan.percentile, &least, &most, &warmup, &seed, &a->objective.name,
                                     &limit, &setup, &timed, &a->progress, &keep))
        return false;
    a->plan.budget_ns = budget;
    a->plan.min_runs = least ? least : BENCH_MIN_RUNS;
    a->plan.min_runs_firm = least != 0;
    a->plan.max_runs = most;
    a->plan.warmup_runs = warmup;
    a->plan.seed = seed;
    a->objective.latency_limit_ns = limit;
    a->weighed.setup = setup;
    a->weighed.timed = timed;
    a->plan.keep_failed = keep;
    a->plan.ended = &a->weighed.ended;
    if (a->progress == Py_None) a->progress = NULL;
    return work_subject_open(&a->subject, &a->weighed, err) == TARE_OK && take_targets(a, targets, err) &&
           take_cases(a, cases, err);
}

static void release_asked(struct asked *a)
{
    vec_release(&a->cases);
    vec_release(&a->dims);
    vec_release(&a->targets);
    subject_close(a->subject);
    Py_CLEAR(a->weighed.raised);
}

/* ---- measuring and judging ---- */

static void tell_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    struct asked *a = ctx;
    if (a->weighed.ended) return;
    PyObject *r =
        PyObject_CallFunction(a->progress, "sKK", what, (unsigned long long)done, (unsigned long long)total);
    if (!r) {
        a->weighed.spares = false;
        weighed_raise(&a->weighed, NULL);
        a->failed = 1;
    }
    Py_XDECREF(r);
}

static tare_status measure_and_judge(struct asked *a, struct run *run, tare_error *err)
{
    a->plan.interrupted = &a->failed;
    if (a->progress) a->plan.progress = (struct bench_progress){tell_progress, a};
    tare_status s = host_read(run, "", err);
    if (s == TARE_OK) s = a->subject->ops->describe(a->subject, run, err);
    if (s == TARE_OK) gitstate_describe(run);
    if (s == TARE_OK) s = bench_run(run, &a->plan, err);
    if (s == TARE_OK && a->weighed.ended) s = error_set(err, TARE_DENIED, "progress");
    if (s == TARE_OK) Py_CLEAR(a->weighed.raised); /* of cases that are rows with that reason now */
    if (s == TARE_OK) s = findings_add(run, err);
    if (s == TARE_OK) s = recommend(run, &a->objective, err);
    if (s == TARE_OK && a->targets.n) s = targets_judge(run, a->targets.items, a->targets.n, false, err);
    return s;
}

/* What the harness says about where it was goes to the exception as `tare_case`; _bench.py makes a note of it. */
static PyObject *raise_where_it_was(struct asked *a, const tare_error *err)
{
    if (!a->weighed.raised) return PyErr_Occurred() ? NULL : raise_error(err);
    PyObject *where = PyUnicode_DecodeUTF8(err->text, (Py_ssize_t)strlen(err->text), "replace");
    if (!where || PyObject_SetAttrString(a->weighed.raised, "tare_case", where) < 0)
        PyErr_Clear(); /* an exception without a __dict__ */
    Py_XDECREF(where);
    weighed_restore(&a->weighed);
    return NULL;
}

/* The document, and the text that the command would print. */
static PyObject *answer_bench(struct asked *a, const struct run *run, tare_error *err)
{
    const struct run *const runs[] = {run};
    struct run_report r = {runs, 1};
    struct buf document = BUF_INIT, text = BUF_INIT;
    struct stream s;
    PyObject *out = NULL;
    if (run_write(run, &document, err) < 0) goto out;
    stream_init(&s, sink_to_buf(&text), err);
    report_run_text(&s, &r);
    if (stream_finish(&s) < 0) goto out;
    out = Py_BuildValue("(s#s#)", document.data, (Py_ssize_t)document.len, text.data, (Py_ssize_t)text.len);
out:
    if (!out) raise_where_it_was(a, err);
    buf_release(&document);
    buf_release(&text);
    return out;
}

static PyObject *bench(PyObject *Py_UNUSED(self), PyObject *args, PyObject *keywords)
{
    tare_error err = TARE_ERROR_INIT;
    struct asked a = {.plan = BENCH_PLAN_INIT};
    struct run run = {0};
    PyObject *out = NULL;
    if (!parse_bench(&a, args, keywords, &err) || run_init(&run, "bench", &err) < 0 ||
        measure_and_judge(&a, &run, &err) < 0)
        raise_where_it_was(&a, &err);
    else
        out = answer_bench(&a, &run, &err);
    run_release(&run);
    release_asked(&a);
    return out;
}

/* ---- keeping ---- */

/* The time is checked here because the name of the file is cut from it by position. The GIL is given back
 * while the disk is written. */
static PyObject *save_run(PyObject *Py_UNUSED(self), PyObject *args)
{
    struct run_file f;
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    char path[4096];
    Py_ssize_t n;
    const char *document;
    if (!PyArg_ParseTuple(args, "sssss#:save_run", &f.dir, &f.kind, &f.subject, &f.created, &document, &n))
        return NULL;
    if (strlen(f.created) < strlen("2026-11-15T02:17:21"))
        return PyErr_Format(PyExc_ValueError, "%s: not a time", f.created);
    buf_add(&text, document, (size_t)n);
    tare_status s;
    Py_BEGIN_ALLOW_THREADS;
    s = buf_status(&text, &err);
    if (s == TARE_OK) s = run_save_text(&f, &text, path, sizeof path, &err);
    Py_END_ALLOW_THREADS;
    buf_release(&text);
    return s == TARE_OK ? PyUnicode_DecodeFSDefault(path) : raise_error(&err);
}

static PyObject *host_fingerprint(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    struct run run = {0};
    tare_error err = TARE_ERROR_INIT;
    tare_status s = run_init(&run, "bench", &err);
    if (s == TARE_OK) s = host_read(&run, "", &err);
    PyObject *out = s == TARE_OK ? PyUnicode_FromString(run.host.fingerprint) : raise_error(&err);
    run_release(&run);
    return out;
}

static PyMethodDef functions[] = {
    {"bench", (PyCFunction)(void (*)(void))bench, METH_VARARGS | METH_KEYWORDS,
     "bench(make, cases, ..): (run document, text); see bench.py"},
    {"host_fingerprint", host_fingerprint, METH_NOARGS, "a name for machines that are alike, as run documents have it"},
    {"save_run", save_run, METH_VARARGS, "save_run(folder, kind, subject, created, text): the path it was written to"},
    {NULL, NULL, 0, NULL},
};

const struct part bench_part = {functions, NULL};
