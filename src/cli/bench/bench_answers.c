/* SPDX-License-Identifier: MIT
 * bench_answers.c - see bench_answers.h. An answer that cannot be compared (no JSON, nothing at --expect-at, another
 * number of values) is a failed request; one that is wrong is an answer, and counts in the score. */
#include "cli/bench/bench_answers.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench_args.h"
#include "core/mem.h"
#include "load/whole_body.h"

enum { SHOWN = 50 };

/* ---- one answer more ---- */

static const char *fault(struct bench_answers *x, struct load_outcome *o)
{
    o->fault = LOAD_BODY;
    return x->why;
}

static bool has_right_and_wrong(enum accuracy_metric m)
{
    return m == ACCURACY_METRIC_ACCURACY || m == ACCURACY_METRIC_F1 || m == ACCURACY_METRIC_TOP1 ||
           m == ACCURACY_METRIC_EQUAL;
}

/* Where to write how it looks; NULL: enough are shown. */
static char *note_wrong(struct bench_answers *x, const struct accuracy_tally *t)
{
    double loss = t->loss;
    struct answers_wrong *w = &x->wrong;
    bool is_worst = loss > w->most;
    w->most = fmax(w->most, loss);
    if (!has_right_and_wrong(t->metric)) return is_worst ? w->shown[0] : NULL;
    if (!(loss > 0)) return NULL;
    w->n++;
    return w->n <= ANSWERS_SHOWN ? w->shown[w->n - 1] : NULL;
}

/* ---- JSON ---- */

struct flat {
    VEC(double) v;
    bool failed;
};

static void flatten(struct flat *f, const json_t *v)
{
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) flatten(f, json_array_get(v, i));
    if (json_is_array(v)) return;
    if (!json_is_number(v) || vec_push(&f->v, json_number_value(v), NULL) < 0) f->failed = true;
}

static json_t *value_at(json_t *at, const char *path)
{
    char word[128], *end;
    while (at && path && *path) {
        size_t n = strcspn(path, ".");
        snprintf(word, sizeof word, "%.*s", (int)n, path);
        path += n + (path[n] == '.');
        if (json_is_array(at)) {
            unsigned long k = strtoul(word, &end, 10);
            at = *word < '0' || *word > '9' || *end ? NULL : json_array_get(at, k);
        } else {
            at = n < sizeof word ? json_object_get(at, word) : NULL;
        }
    }
    return at;
}

/* As json_equal(), but 1 is 1.0. */
static bool is_same(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *v;
    bool same = true;
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    if (json_is_array(a) && json_is_array(b)) {
        same = json_array_size(a) == json_array_size(b);
        for (size_t i = 0; same && i < json_array_size(a); i++)
            same = is_same(json_array_get(a, i), json_array_get(b, i));
        return same;
    }
    if (!json_is_object(a) || !json_is_object(b)) return json_equal(a, b);
    if (json_object_size(a) != json_object_size(b)) return false;
    json_object_foreach((json_t *)(uintptr_t)a, key, v)
    {
        const json_t *other = json_object_get(b, key);
        same = same && other && is_same(v, other);
    }
    return same;
}

static void show_json(char *to, size_t size, const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    snprintf(to, size, "%.*s%s", SHOWN, text ? text : "?", text && strlen(text) > SHOWN ? ".." : "");
    mem_free_libc(text);
}

static void show_values(char *to, size_t size, const double *v, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n && i < 4 && used + 16 < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%.6g", i ? "," : "", v[i]);
    if (n > 4 && used + 3 < size) snprintf(to + used, size - used, "..");
}

static void show_wrong(char *to, const struct answers_part *p, const json_t *v, const struct load_outcome *o)
{
    char got[SHOWN + 4], want[96] = "";
    size_t row = o->number % p->want->rows;
    show_json(got, sizeof got, v);
    if (p->want->texts)
        show_json(want, sizeof want, p->want->texts[row]);
    else if (p->want->labels)
        snprintf(want, sizeof want, "label %lld", (long long)p->want->labels[row]);
    else
        show_values(want, sizeof want, p->want->values + row * p->want->columns, p->want->columns);
    snprintf(to, sizeof((struct answers_wrong *)0)->shown[0],
             "%s where %s was expected (answer %zu of --expect)", got, want, row + 1);
}

static const char *compare_json(struct bench_answers *x, const json_t *v, struct load_outcome *o)
{
    struct answers_part *p = &x->parts.items[0];
    struct flat f = {VEC_INIT, false};
    tare_error err = TARE_ERROR_INIT;
    size_t row = o->number % p->want->rows;
    double equal = p->want->texts && is_same(v, p->want->texts[row]);
    if (!p->want->texts) flatten(&f, v);
    struct answers got =
        p->want->texts ? (struct answers){&equal, 1, 1} : (struct answers){f.v.items, 1, f.v.n};
    tare_status s = TARE_OK;
    if (f.failed)
        s = error_set(&err, TARE_INVALID, "what is to be compared in the answer is not all numbers");
    else
        s = accuracy_tally_add(&p->tally, &got, p->want, row, &err);
    vec_release(&f.v);
    if (s < 0) snprintf(x->why, sizeof x->why, "%.250s", err.text);
    if (s < 0) return fault(x, o);
    char *to = note_wrong(x, &p->tally);
    if (to) show_wrong(to, p, v, o);
    return NULL;
}

static const char *json_end(void *ctx, void *state, struct load_outcome *o)
{
    struct bench_answers *x = ctx;
    const struct whole_body *b = state;
    json_error_t why;
    snprintf(x->why, sizeof x->why, "the answer is larger than is read");
    if (b->too_long) return fault(x, o);
    if (x->json->all.n && !json_expect_holds(x->json, b->bytes.data, b->bytes.len)) {
        snprintf(x->why, sizeof x->why, "%s", x->json->why);
        return fault(x, o);
    }
    json_t *root = json_loadb(b->bytes.len ? b->bytes.data : "", b->bytes.len,
                              JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
    const json_t *v = value_at(root, x->a->http.expect_at);
    const char *said = x->why;
    if (!root)
        snprintf(x->why, sizeof x->why, "the answer is no JSON: %.200s", why.text);
    else if (!v)
        snprintf(x->why, sizeof x->why, "the answer has no %.100s", x->a->http.expect_at);
    else
        said = compare_json(x, v, o);
    json_decref(root);
    if (!v) o->fault = LOAD_BODY;
    return said;
}

/* ---- KServe ---- */

static tare_status open_array(struct bench_answers *x, struct answers_part *p, const struct tensor *output,
                              tare_error *err)
{
    struct bench_wanted w = {.want = EXPECTED_INIT};
    tare_status s = bench_want(x->a, p->array, output, &w, err);
    p->own = w.want;
    p->want = &p->own;
    if (s == TARE_OK) s = accuracy_tally_open(&p->tally, w.metric, &p->own, err);
    p->is_open = s == TARE_OK;
    return s;
}

static const struct tensor *output_for(const struct bench_answers *x, const struct answers_part *p,
                                       const struct tensor_set *set, tare_error *err)
{
    const struct tensor *t = tensor_find(set, p->array->name);
    bool only = set->items.n == 1 && x->parts.n == 1;
    if (!t && only) t = &set->items.items[0];
    if (!t)
        error_set(err, TARE_INVALID, "the answer has no output '%.100s', which --expect has", p->array->name);
    return t;
}

static tare_status compare_array(struct bench_answers *x, struct answers_part *p,
                                 const struct tensor_set *set, struct load_outcome *o, tare_error *err)
{
    struct bench_rows got = {0};
    const struct tensor *t = output_for(x, p, set, err);
    tare_status s = t ? TARE_OK : TARE_INVALID;
    if (s == TARE_OK && !p->is_open) s = open_array(x, p, t, err);
    if (s == TARE_OK) s = bench_rows_of(&got, t, err);
    if (s == TARE_OK)
        s = accuracy_tally_add(&p->tally, &(struct answers){got.v, got.rows, got.columns}, p->want, 0, err);
    char *to = s == TARE_OK ? note_wrong(x, &p->tally) : NULL;
    if (to) {
        char values[96] = "";
        show_values(values, sizeof values, got.v, got.rows * got.columns);
        snprintf(to, sizeof x->wrong.shown[0], "output '%.40s' of request %llu is %s", t->name,
                 (unsigned long long)o->number, values);
    }
    mem_free(got.v);
    return s;
}

static const char *look(void *ctx, const struct tensor_set *set, struct load_outcome *o)
{
    struct bench_answers *x = ctx;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < x->parts.n; i++)
        s = compare_array(x, &x->parts.items[i], set, o, &err);
    if (s == TARE_OK) return NULL;
    snprintf(x->why, sizeof x->why, "%.250s", err.text);
    return fault(x, o);
}

/* ---- windows ---- */

/* Only numbers that mean a class have a label; without being told, that is what is looked at. */
static enum accuracy_metric metric_of_lines(const struct bench_answers *x)
{
    const struct expected *want = &x->given->lines;
    if (want->texts) return ACCURACY_METRIC_EQUAL;
    bool told = x->a->metric != ACCURACY_METRIC_COSINE;
    return want->labels && !told ? ACCURACY_METRIC_ACCURACY : (enum accuracy_metric)x->a->metric;
}

static tare_status open_lines(struct bench_answers *x, struct answers_part *p, tare_error *err)
{
    p->want = &x->given->lines;
    tare_status s = accuracy_tally_open(&p->tally, metric_of_lines(x), p->want, err);
    p->is_open = s == TARE_OK;
    return s;
}

static void close_part(struct answers_part *p)
{
    accuracy_tally_release(&p->tally);
    expected_release(&p->own);
    p->is_open = false;
}

static void clear(void *ctx)
{
    struct bench_answers *x = ctx;
    tare_error err = TARE_ERROR_INIT;
    x->wrong = (struct answers_wrong){0};
    for (size_t i = 0; i < x->parts.n; i++) {
        struct answers_part *p = &x->parts.items[i];
        close_part(p);
        if (!p->array && open_lines(x, p, &err) < 0) x->no_memory = true; /* it could be opened before */
    }
}

/* A case is as good as its worst output. */
void bench_answers_done(void *ctx, size_t at)
{
    struct bench_answers *x = ctx;
    struct answers_case c = {.at = at, .wrong = x->wrong};
    double most = -INFINITY;
    for (size_t i = 0; i < x->parts.n; i++) {
        const struct answers_part *p = &x->parts.items[i];
        if (!p->is_open) continue;
        struct accuracy_result r = accuracy_tally_result(&p->tally);
        const struct accuracy_metric_row *m = accuracy_metric_row(p->tally.metric);
        double ideal = m->less_is_better ? 0 : 1, loss = INFINITY;
        if (r.score.known) loss = accuracy_drop(m->name, ideal, r.score.value);
        if (!(loss > most)) continue;
        most = loss;
        c.result = r;
        c.metric = p->tally.metric;
        c.output = p->array && x->parts.n > 1 ? p->array->name : NULL;
    }
    if (most > -INFINITY && vec_push(&x->cases, c, NULL) < 0) x->no_memory = true;
}

static tare_status record_wrong(const struct bench_answers *x, struct run *run, const struct answers_case *c,
                                tare_error *err)
{
    const struct answers_wrong *w = &c->wrong;
    struct buf text = BUF_INIT;
    bool counted = has_right_and_wrong(c->metric);
    if (counted ? !w->n : !(w->most > x->a->max_drop && c->metric == ACCURACY_METRIC_COSINE)) return TARE_OK;
    for (size_t i = 0; i < ANSWERS_SHOWN && w->shown[i][0]; i++)
        buf_printf(&text, "%s%s", i ? "; " : "", w->shown[i]);
    tare_status s = buf_status(&text, err);
    struct accuracy_wrong told = {counted ? w->n : 0, c->result.examples, text.data};
    if (s == TARE_OK) s = accuracy_record_wrong(run, run->cases.at[c->at], &told, err);
    buf_release(&text);
    return s;
}

tare_status bench_answers_record(const struct bench_answers *x, struct run *run, tare_error *err)
{
    tare_status s = x->no_memory ? error_nomem(err, "the answers") : TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < x->cases.n; i++) {
        const struct answers_case *c = &x->cases.items[i];
        struct accuracy_source from = {.metric = c->metric, .dataset = x->a->expect, .output = c->output};
        if (c->at >= run->cases.n) continue;
        s = accuracy_record(run, run->cases.at[c->at], &c->result, &from, err);
        if (s == TARE_OK) s = record_wrong(x, run, c, err);
    }
    return s;
}

/* ---- opened ---- */

static tare_status check_lines(const struct bench_answers *x, size_t inputs, tare_error *err)
{
    size_t rows = x->given->lines.rows, asked = inputs ? inputs : 1;
    if (rows == asked) return TARE_OK;
    if (!inputs)
        return error_set(err, TARE_INVALID, "holds %zu answers, and all requests are the same: expected one",
                         rows);
    return error_set(err, TARE_INVALID, "holds %zu answers for %zu lines of %s", rows, inputs,
                     x->a->setup.inputs);
}

tare_status bench_answers_open(struct bench_answers *x, size_t inputs, tare_error *err)
{
    struct answers_part p = {.own = EXPECTED_INIT};
    bool kserve = x->a->llm.kserve, lines = x->given->lines.rows != 0;
    if (kserve == lines)
        return error_set(err, TARE_INVALID, "%s",
                         kserve ? "outputs of KServe are compared with arrays (npz), not with lines"
                                : "answers are compared with lines of JSON; arrays go with --kserve");
    if (kserve && x->a->http.expect_at)
        return error_set(err, TARE_INVALID, "outputs of KServe have names: --expect-at is for other JSON");
    tare_status s = lines ? check_lines(x, inputs, err) : TARE_OK;
    if (s == TARE_OK && lines) s = open_lines(x, &p, err);
    if (s == TARE_OK && lines) s = vec_push(&x->parts, p, err);
    if (s < 0) close_part(&p);
    for (size_t i = 0; s == TARE_OK && i < x->given->arrays.items.n; i++) {
        p = (struct answers_part){.array = &x->given->arrays.items.items[i], .own = EXPECTED_INIT};
        s = vec_push(&x->parts, p, err);
    }
    return s;
}

void bench_answers_release(struct bench_answers *x)
{
    for (size_t i = 0; i < x->parts.n; i++) close_part(&x->parts.items[i]);
    vec_release(&x->parts);
    vec_release(&x->cases);
}

struct load_reader bench_answers_reader(struct bench_answers *x)
{
    return (struct load_reader){.name = "answers",
                                .size = sizeof(struct whole_body),
                                .ctx = x,
                                .clear = clear,
                                .open = whole_body_open,
                                .close = whole_body_close,
                                .begin = whole_body_begin,
                                .bytes = whole_body_bytes,
                                .end = json_end};
}

struct kserve_look bench_answers_look(struct bench_answers *x)
{
    return (struct kserve_look){.clear = clear, .outputs = look, .ctx = x};
}
