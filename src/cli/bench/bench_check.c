/* SPDX-License-Identifier: MIT
 * bench_check.c - accuracy of `tare bench`: each case's outputs, by name, against --expect, or, when there is nothing
 * to expect, against those of the first case that has any. A case is as good as its worst output. A batch size or a
 * quantised variant that changes answers is so seen beside its speed. What cannot be compared is told; the measurement
 * stays. */
#include <math.h>
#include <sys/stat.h>

#include "cli/bench/bench_args.h"
#include "core/buf.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

/* ---- tensors as rows of numbers ---- */

tare_status bench_rows_of(struct bench_rows *out, const struct tensor *t, tare_error *err)
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

/* One output that is compared, and how. */
struct wanted {
    const char *output; /* its name; borrowed */
    size_t at;          /* its place in the first case */
    struct expected want;
    enum accuracy_metric metric;
    struct known_f64 base; /* what the first case scored */
};

struct check {
    const struct bench_args *a;
    const struct bench_case *cases;
    struct run *run;
    const struct tensor_set *outputs; /* one set per case */
    size_t first;                     /* the first case that has any: the others are held against it */
    const struct bench_expected *given;
    VEC(struct wanted) wanted;
    tare_error *err;
};

static bool is_class_id(int type)
{
    return type == ONNX_INT64 || type == ONNX_INT32 || type == ONNX_INT16 || type == ONNX_INT8 ||
           type == ONNX_UINT8 || type == ONNX_UINT16 || type == ONNX_UINT32 || type == ONNX_UINT64 ||
           type == ONNX_BOOL;
}

/* Direction and largest place say nothing of numbers that only name something: those are equal or not. */
static enum accuracy_metric metric_for(const struct bench_args *a, const struct tensor *t)
{
    bool likeness = a->metric == ACCURACY_METRIC_COSINE || a->metric == ACCURACY_METRIC_TOP1;
    return likeness && is_class_id(t->type) ? ACCURACY_METRIC_EQUAL : (enum accuracy_metric)a->metric;
}

static tare_status labels_of(struct expected *e, const struct tensor *t, tare_error *err)
{
    uint64_t n = tensor_elements(t);
    e->labels = mem_new((size_t)n, sizeof *e->labels);
    if (!e->labels) return error_set(err, TARE_NOMEM, "out of memory for %llu labels", (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) e->labels[i] = (int64_t)tensor_value(t, i);
    e->rows = (size_t)n;
    return TARE_OK;
}

tare_status bench_want(const struct bench_args *a, const struct tensor *t, const struct tensor *output,
                       struct bench_wanted *out, tare_error *err)
{
    struct bench_rows r = {0};
    out->metric = metric_for(a, output);
    if (accuracy_metric_row(out->metric)->needs_labels && is_class_id(t->type) && t->rank <= 1)
        return labels_of(&out->want, t, err);
    tare_status s = bench_rows_of(&r, t, err);
    out->want = (struct expected){.values = r.v, .rows = r.rows, .columns = r.columns};
    return s;
}

/* `t` is expected of the output at place `at` of the first case. */
static tare_status want_array(struct check *k, const struct tensor *t, size_t at)
{
    const struct tensor *output = &k->outputs[k->first].items.items[at];
    struct wanted w = {.output = output->name, .at = at};
    struct bench_wanted made = {.want = EXPECTED_INIT};
    tare_status s = bench_want(k->a, t, output, &made, k->err);
    w.want = made.want;
    w.metric = made.metric;
    if (s == TARE_OK) s = vec_push(&k->wanted, w, k->err);
    if (s != TARE_OK) expected_release(&w.want);
    return s;
}

static void list_names(struct buf *b, const struct tensor_set *set)
{
    for (size_t i = 0; i < set->items.n; i++)
        buf_printf(b, "%s'%s'", i ? ", " : "", set->items.items[i].name);
}

static tare_status refuse_names(struct check *k)
{
    struct buf have = BUF_INIT, outputs = BUF_INIT;
    list_names(&have, &k->given->arrays);
    list_names(&outputs, &k->outputs[k->first]);
    tare_status s = error_set(k->err, TARE_INVALID,
                              "%s: holds %s, but the outputs are %s: name an array like one of them",
                              k->a->expect, have.data, outputs.data);
    buf_release(&have);
    buf_release(&outputs);
    return s;
}

/* Arrays belong to the outputs of the same names. Only where nothing can be mistaken is a name not needed: the one
 * array of a model's one output, and the numbered files of a test_data_set. */
static tare_status want_arrays(struct check *k)
{
    const struct tensor_set *have = &k->given->arrays, *outputs = &k->outputs[k->first];
    tare_status s = TARE_OK;
    for (size_t i = 0; i < outputs->items.n && s == TARE_OK; i++) {
        const struct tensor *t = tensor_find(have, outputs->items.items[i].name);
        if (t) s = want_array(k, t, i);
    }
    if (s != TARE_OK || k->wanted.n) return s;
    bool in_order = have->items.n == outputs->items.n && (have->items.n == 1 || k->given->numbered);
    if (!in_order) return refuse_names(k);
    for (size_t i = 0; i < have->items.n && s == TARE_OK; i++) s = want_array(k, &have->items.items[i], i);
    return s;
}

/* The lines speak of the first output. */
static tare_status want_lines(struct check *k)
{
    const struct tensor *first = &k->outputs[k->first].items.items[0];
    struct wanted w = {
        .output = first->name, .want = k->given->lines, .metric = (enum accuracy_metric)k->a->metric};
    return vec_push(&k->wanted, w, k->err);
}

static tare_status want_first_case(struct check *k)
{
    const struct tensor_set *first = &k->outputs[k->first];
    tare_status s = TARE_OK;
    for (size_t i = 0; i < first->items.n && s == TARE_OK; i++) s = want_array(k, &first->items.items[i], i);
    return s;
}

/* ---- comparing ---- */

static bool share_a_name(const struct tensor_set *a, const struct tensor_set *b)
{
    for (size_t i = 0; i < a->items.n; i++)
        if (tensor_find(b, a->items.items[i].name)) return true;
    return false;
}

/* What this case has for that output: the one of its name; by place only when a variant has renamed them all. */
static const struct tensor *find_output(const struct check *k, size_t i, const struct wanted *w)
{
    const struct tensor_set *mine = &k->outputs[i], *first = &k->outputs[k->first];
    const struct tensor *t = tensor_find(mine, w->output);
    bool renamed = !t && mine->items.n == first->items.n && !share_a_name(mine, first);
    return renamed ? &mine->items.items[w->at] : t;
}

/* Was this case asked for with the same dimensions as the first? Then its outputs have the same widths. */
static bool has_same_dimensions(const struct check *k, size_t i)
{
    const struct case_params *a = &k->cases[k->first].params, *b = &k->cases[i].params;
    if (a->batch != b->batch || a->seq != b->seq || a->n_dims != b->n_dims) return false;
    for (size_t d = 0; d < a->n_dims; d++)
        if (a->dims[d].value != b->dims[d].value) return false;
    return true;
}

static tare_status compare_output(struct check *k, size_t i, const struct wanted *w,
                                  struct accuracy_result *r)
{
    const struct tensor *t = find_output(k, i, w);
    tare_error inner = TARE_ERROR_INIT;
    struct bench_rows got = {0};
    if (!t) return error_set(k->err, TARE_INVALID, "%s: has no output '%s'", k->cases[i].name, w->output);
    tare_status s = bench_rows_of(&got, t, &inner);
    if (s == TARE_OK)
        s = accuracy_measure(r, &(struct answers){got.v, got.rows, got.columns}, &w->want, w->metric, &inner);
    mem_free(got.v);
    return s == TARE_OK
               ? s
               : error_set(k->err, s, "%s: output '%s': %s", k->cases[i].name, w->output, inner.text);
}

/* How far an output is from what it should be: from the first case's score, which itself is held against the ideal. */
static double output_loss(const struct wanted *w, const struct accuracy_result *r)
{
    const struct accuracy_metric_row *m = accuracy_metric_row(w->metric);
    double base = m->less_is_better ? 0 : 1;
    if (!r->score.known) return INFINITY;
    if (w->base.known) base = w->base.v;
    return accuracy_drop(m->name, base, r->score.value);
}

/* The case's score is that of its worst output. Outputs of other widths than the first case's, in a case of other
 * dimensions, cannot be compared and do not count; one that cannot be compared for another reason fails the case. */
static tare_status check_case(struct check *k, size_t i)
{
    struct run_case *c = k->run->cases.at[i];
    struct accuracy_result worst = {0};
    struct wanted *named = NULL;
    double most = -INFINITY;
    uint64_t nonfinite = 0;
    for (size_t o = 0; o < k->wanted.n; o++) {
        struct wanted *w = &k->wanted.items[o];
        struct accuracy_result r;
        tare_status s = compare_output(k, i, w, &r);
        if (s == TARE_INVALID && !k->a->expect && !has_same_dimensions(k, i) && find_output(k, i, w))
            continue;
        if (s != TARE_OK) return s;
        double loss = output_loss(w, &r);
        nonfinite += r.nonfinite;
        if (loss > most) worst = r, most = loss, named = w;
        if (i == k->first && r.score.known) w->base = known_f64(r.score.value);
    }
    if (!named) return TARE_INVALID; /* the last error says why */
    struct accuracy_source from = {named->metric, k->a->expect ? k->a->expect : "the first case",
                                   i == k->first ? (struct known_f64){0} : named->base,
                                   k->wanted.n > 1 ? named->output : NULL};
    worst.nonfinite = nonfinite;
    return accuracy_record(k->run, c, &worst, &from, k->err);
}

static tare_status find_wanted(struct check *k)
{
    size_t n = k->run->cases.n;
    while (k->first < n && !k->outputs[k->first].items.n) k->first++;
    if (k->first == n) return error_set(k->err, TARE_UNSUPPORTED, "no case has outputs to compare");
    if (k->given->lines.rows) return want_lines(k);
    return k->a->expect ? want_arrays(k) : want_first_case(k);
}

/* Told once, and in every case that it concerns; what was measured stays. */
static int tell_trouble(struct cli *cli, struct run *run, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        run_unknown(run, &run->cases.at[i]->unknown, "accuracy", "%s", cli->error.text);
    return cli_fail(cli);
}

/* A case that cannot be compared does not keep the others from it; the exit code remembers. Lines of --expect belong to
 * the plan, so only what find_wanted() made itself is released. */
int bench_check(struct cli *cli, const struct bench_planned *p, const struct bench_outputs *of,
                struct run *run)
{
    struct check k = {.a = p->args,
                      .cases = of->cases,
                      .run = run,
                      .outputs = of->sets,
                      .given = &p->expected,
                      .err = &cli->error};
    size_t dropped = 0, n = run->cases.n;
    int rc = find_wanted(&k) == TARE_OK ? CLI_GOOD : tell_trouble(cli, run, 0, n);
    for (size_t i = 0; i < n && k.wanted.n; i++)
        if (k.outputs[i].items.n && check_case(&k, i) != TARE_OK) rc = tell_trouble(cli, run, i, i + 1);
    for (size_t i = 0; i < k.wanted.n; i++)
        if (!k.given->lines.rows) expected_release(&k.wanted.items[i].want);
    vec_release(&k.wanted);
    if (p->args->validate && accuracy_validate(run, p->args->max_drop, &dropped, &cli->error) != TARE_OK)
        return cli_fail(cli);
    return !rc && dropped ? CLI_FINDING : rc;
}

/* ---- --expect, read before anything is measured ---- */

int bench_expected_read(struct cli *cli, const struct bench_args *a, struct bench_expected *out)
{
    struct file_view f = FILE_VIEW_INIT;
    struct stat st;
    tare_status s = TARE_OK;
    if (str_ends_with(a->expect, ".jsonl") || str_ends_with(a->expect, ".json")) {
        s = file_map(a->expect, &f, &cli->error);
        struct expected_text text = {a->expect, f.data, f.size};
        bool any = a->kind == KIND_SERVICE; /* outputs of models are numbers */
        if (s == TARE_OK && any) s = expected_read_any(&out->lines, &text, &cli->error);
        if (s == TARE_OK && !any)
            s = expected_read_jsonl(&out->lines, a->expect, f.data, f.size, &cli->error);
        file_unmap(&f);
    } else {
        s = tensor_load(&out->arrays, a->expect, TENSOR_OUTPUTS, &cli->error);
        out->numbered = stat(a->expect, &st) == 0 && S_ISDIR(st.st_mode);
    }
    if (s == TARE_OK) return 0;
    int rc = cli_fail(cli);
    return s == TARE_IO ? CLI_USAGE : rc; /* a file that cannot be read is bad input */
}

void bench_expected_release(struct bench_expected *e)
{
    expected_release(&e->lines);
    tensor_set_release(&e->arrays);
}
