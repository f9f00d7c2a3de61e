/* SPDX-License-Identifier: MIT
 * bench_check.c - accuracy of `tare bench`: each case's outputs against --expect, or against the first case's when
 * there is nothing to expect. A batch size or a quantised variant that changes answers is so seen beside its speed. */
#include <string.h>

#include "cli/bench/bench_args.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

/* ---- tensors as rows of numbers ---- */

/* Rows along the first axis. Owned: mem_free(v). */
struct rows {
    double *v;
    size_t rows, columns;
};

static tare_status rows_of(struct rows *out, const struct tensor *t, tare_error *err)
{
    uint64_t n = tensor_elements(t);
    out->rows = t->rank ? (size_t)t->dims[0] : 1;
    out->columns = out->rows ? (size_t)(n / out->rows) : 0;
    out->v = mem_new((size_t)n, sizeof *out->v);
    if (!out->v) return error_set(err, TARE_NOMEM, "out of memory for %llu values", (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) out->v[i] = tensor_value(t, i);
    return TARE_OK;
}

/* ---- what is expected ---- */

static tare_status labels_of(struct expected *e, const struct tensor *t, const char *path, tare_error *err)
{
    uint64_t n = tensor_elements(t);
    e->labels = mem_new((size_t)n, sizeof *e->labels);
    if (!e->labels) return error_set(err, TARE_NOMEM, "%s: out of memory", path);
    for (uint64_t i = 0; i < n; i++) e->labels[i] = (int64_t)tensor_value(t, i);
    e->rows = (size_t)n;
    return TARE_OK;
}

static bool is_integer(int type)
{
    return type == ONNX_INT64 || type == ONNX_INT32 || type == ONNX_INT16 || type == ONNX_INT8 ||
           type == ONNX_UINT8 || type == ONNX_UINT16 || type == ONNX_UINT32 || type == ONNX_UINT64;
}

static tare_status expected_of(struct expected *e, const struct tensor *t, const char *path, tare_error *err)
{
    if (is_integer(t->type) && t->rank <= 1) return labels_of(e, t, path, err);
    struct rows r;
    tare_status s = rows_of(&r, t, err);
    if (s != TARE_OK) return s;
    e->values = r.v;
    e->rows = r.rows;
    e->columns = r.columns;
    return TARE_OK;
}

/* JSON lines, or arrays: the one named like the output, else the only one. */
static tare_status load_expected(struct expected *e, const char *path, const char *output, tare_error *err)
{
    if (str_ends_with(path, ".jsonl") || str_ends_with(path, ".json")) {
        struct file_view f = FILE_VIEW_INIT;
        tare_status s = file_map(path, &f, err);
        if (s == TARE_OK) s = expected_read_jsonl(e, path, f.data, f.size, err);
        file_unmap(&f);
        return s;
    }
    struct tensor_set set = TENSOR_SET_INIT;
    tare_status s = tensor_load(&set, path, err);
    if (s == TARE_OK) {
        const struct tensor *t = tensor_find(&set, output);
        if (!t && set.items.n == 1) t = &set.items.items[0];
        s = t ? expected_of(e, t, path, err)
              : error_set(err, TARE_INVALID, "%s: holds %zu arrays and none is named like the output '%s'",
                          path, set.items.n, output);
    }
    tensor_set_release(&set);
    return s;
}

/* ---- comparing ---- */

struct check {
    const struct bench_args *a;
    struct run *run;
    const struct tensor_set *outputs;
    struct expected want;
    struct known_f64 baseline;
    tare_error *err;
};

static tare_status check_case(struct check *k, size_t i)
{
    struct run_case *c = k->run->cases.at[i];
    struct rows got = {0};
    struct accuracy_result r;
    tare_status s = rows_of(&got, &k->outputs[i].items.items[0], k->err);
    if (s == TARE_OK)
        s = accuracy_measure(&r, &(struct answers){got.v, got.rows, got.columns}, &k->want,
                             (enum accuracy_metric)k->a->metric, k->err);
    mem_free(got.v);
    if (s != TARE_OK) return s;
    struct accuracy_source from = {(enum accuracy_metric)k->a->metric,
                                   k->a->expect ? k->a->expect : "the first case", k->baseline};
    s = accuracy_record(k->run, c, &r, &from, k->err);
    if (i == 0 && r.score.known) k->baseline = known_f64(r.score.value);
    return s;
}

static tare_status find_expected(struct check *k)
{
    const struct tensor *first = &k->outputs[0].items.items[0];
    if (k->a->expect) return load_expected(&k->want, k->a->expect, first->name, k->err);
    if (accuracy_metric_row((enum accuracy_metric)k->a->metric)->needs_labels)
        return error_set(k->err, TARE_INVALID, "--metric %s needs labels: give them with --expect",
                         accuracy_metric_row((enum accuracy_metric)k->a->metric)->name);
    return expected_of(&k->want, first, "the first case", k->err);
}

tare_status bench_check(struct cli *cli, const struct bench_args *a, struct run *run,
                        const struct tensor_set *outputs, size_t *dropped)
{
    struct check k = {.a = a, .run = run, .outputs = outputs, .want = EXPECTED_INIT, .err = &cli->error};
    tare_status s = TARE_OK;
    *dropped = 0;
    for (size_t i = 0; i < run->cases.n && s == TARE_OK; i++)
        if (!outputs[i].items.n)
            s = error_set(&cli->error, TARE_UNSUPPORTED, "%s: has no outputs to compare",
                          run->cases.at[i]->name);
    if (s == TARE_OK) s = find_expected(&k);
    for (size_t i = 0; i < run->cases.n && s == TARE_OK; i++) s = check_case(&k, i);
    expected_release(&k.want);
    if (s == TARE_OK && a->validate) s = accuracy_validate(run, a->max_drop, dropped, &cli->error);
    return s;
}
