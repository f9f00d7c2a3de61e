/* SPDX-License-Identifier: MIT
 * accuracy.c - see accuracy.h: the metrics, and what goes into the run document. The JSON lines are
 * expected.c. */
#include "analyze/judge/accuracy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/judge/finding.h"
#include "core/mem.h"
#include "core/stats.h"

static const struct accuracy_metric_row metric_rows[] = {
#define X(name, text, less, labels, help) {text, help, less, labels},
    ACCURACY_METRIC_MAP(X)
#undef X
};
#define N_METRICS (sizeof metric_rows / sizeof *metric_rows)

const struct accuracy_metric_row *accuracy_metric_row(enum accuracy_metric m)
{
    return &metric_rows[m];
}

/* ---- rows ---- */

struct compared {
    const struct answers *got;
    const struct expected *want;
    size_t rows;
};

static const double *got_row(const struct compared *k, size_t i)
{
    return k->got->v + i * k->got->columns;
}

static const double *want_row(const struct compared *k, size_t i)
{
    return k->want->values + i * k->want->columns;
}

static bool is_finite_row(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

/* The class a row stands for: where its largest value is; of a single column, its rounded value. -1: not
 * a number. */
static int64_t class_of(const double *v, size_t n)
{
    size_t best = 0;
    if (!is_finite_row(v, n)) return -1;
    if (n == 1) return fabs(v[0]) < 9e15 ? llround(v[0]) : -1;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return (int64_t)best;
}

/* ---- scores ---- */

static struct run_estimate share_estimate(size_t good, size_t n)
{
    struct interval i = stats_share_interval((double)good / (double)n, (double)n, 0.95);
    return run_estimate(i.value, i.lo, i.hi);
}

/* The share of rows that stand for the right class: the label, or that which the reference's row stands for. */
static struct run_estimate score_classes(const struct compared *k)
{
    size_t good = 0;
    for (size_t i = 0; i < k->rows; i++) {
        int64_t c = class_of(got_row(k, i), k->got->columns);
        int64_t want = k->want->labels ? k->want->labels[i] : class_of(want_row(k, i), k->want->columns);
        good += c >= 0 && c == want;
    }
    return share_estimate(good, k->rows);
}

static struct run_estimate score_equal(const struct compared *k)
{
    size_t good = 0, n = k->rows * k->got->columns;
    for (size_t i = 0; i < n; i++) good += k->got->v[i] == k->want->values[i];
    return share_estimate(good, n);
}

struct class_count {
    int64_t label;
    double hit, seen, real;
};

static int by_label(const void *a, const void *b)
{
    const struct class_count *x = a, *y = b;
    return x->label < y->label ? -1 : x->label > y->label;
}

/* The expected labels, each once, ascending; how many. */
static size_t list_classes(const struct compared *k, struct class_count *classes)
{
    size_t n = 0;
    for (size_t i = 0; i < k->rows; i++) classes[i] = (struct class_count){.label = k->want->labels[i]};
    qsort(classes, k->rows, sizeof *classes, by_label);
    for (size_t i = 0; i < k->rows; i++)
        if (n == 0 || classes[i].label != classes[n - 1].label) classes[n++] = classes[i];
    return n;
}

/* Over the classes that were expected. */
static tare_status score_f1(const struct compared *k, struct run_estimate *out, tare_error *err)
{
    struct class_count *classes = mem_new(k->rows, sizeof *classes);
    if (!classes) return error_nomem(err, "%zu labels", k->rows);
    size_t n = list_classes(k, classes);
    for (size_t i = 0; i < k->rows; i++) {
        struct class_count real = {.label = k->want->labels[i]};
        struct class_count seen = {.label = class_of(got_row(k, i), k->got->columns)};
        struct class_count *r = bsearch(&real, classes, n, sizeof *classes, by_label);
        struct class_count *s = bsearch(&seen, classes, n, sizeof *classes, by_label);
        r->real++;
        if (s) s->seen++;
        if (r == s) r->hit++;
    }
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += 2 * classes[i].hit / (classes[i].seen + classes[i].real);
    mem_free(classes);
    *out = (struct run_estimate){.known = true, .value = sum / (double)n};
    return TARE_OK;
}

static double cosine_of(const double *a, const double *b, size_t n)
{
    double dot = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        dot += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    if (aa == 0 && bb == 0) return 1;
    double c = dot / (sqrt(aa) * sqrt(bb));
    return isfinite(c) ? fmin(fmax(c, -1), 1) : 0; /* what is not a number is not like anything */
}

static struct run_estimate score_cosine(const struct compared *k, double *worst)
{
    double sum = 0, squares = 0, n = (double)k->rows;
    *worst = 1;
    for (size_t i = 0; i < k->rows; i++) {
        double c = cosine_of(got_row(k, i), want_row(k, i), k->got->columns);
        sum += c;
        squares += c * c;
        *worst = fmin(*worst, c);
    }
    double mean = sum / n, sd = k->rows > 1 ? sqrt(fmax(squares - n * mean * mean, 0) / (n - 1)) : NAN;
    double half = k->rows > 1 ? stats_t_quantile(0.975, n - 1) * sd / sqrt(n) : NAN;
    if (!isfinite(half)) return (struct run_estimate){.known = true, .value = mean};
    return run_estimate(mean, mean - half, mean + half);
}

/* Of the values that are numbers; the others are reported apart. */
static struct run_estimate score_distance(const struct compared *k, enum accuracy_metric m)
{
    double most = 0, off = 0, all = 0;
    size_t n = k->rows * k->got->columns, used = 0;
    for (size_t i = 0; i < n; i++) {
        double d = k->got->v[i] - k->want->values[i];
        if (!isfinite(d)) continue;
        used++;
        most = fmax(most, fabs(d));
        off += d * d;
        all += k->want->values[i] * k->want->values[i];
    }
    struct run_estimate e = {.known = used > 0, .value = most};
    if (m == ACCURACY_METRIC_REL_L2 && all > 0) e.value = sqrt(off / all);
    if (m == ACCURACY_METRIC_REL_L2 && !(all > 0)) e.value = off > 0 ? INFINITY : 0;
    e.known = e.known && isfinite(e.value);
    return e;
}

/* ---- measuring ---- */

/* What is scored afterwards relies on this. Rows of different width cannot be compared value by value; top1 may,
 * because it compares only where the greatest value is. */
static tare_status check_shapes(const struct answers *got, const struct expected *want,
                                enum accuracy_metric m, tare_error *err)
{
    const char *name = metric_rows[m].name;
    if (metric_rows[m].needs_labels && !want->labels)
        return error_set(err, TARE_INVALID,
                         "%s needs labels, but what is expected are outputs; use cosine, max-abs, "
                         "rel-l2, top1 or equal",
                         name);
    if (!metric_rows[m].needs_labels && !want->values)
        return error_set(err, TARE_INVALID,
                         "%s needs reference outputs, but what is expected are labels; use accuracy "
                         "or f1",
                         name);
    if (got->rows == 0 || got->columns == 0 || want->rows == 0)
        return error_set(err, TARE_INVALID, "%s: there are no answers to compare", name);
    if (want->values && m != ACCURACY_METRIC_TOP1 && want->columns != got->columns)
        return error_set(err, TARE_INVALID, "%s: the answers have %zu values per row, the reference has %zu",
                         name, got->columns, want->columns);
    return TARE_OK;
}

tare_status accuracy_measure(struct accuracy_result *out, const struct answers *got,
                             const struct expected *want, enum accuracy_metric m, tare_error *err)
{
    struct compared k = {got, want, got->rows < want->rows ? got->rows : want->rows};
    struct accuracy_result r = {.worst = NAN, .examples = k.rows};
    tare_status s = check_shapes(got, want, m, err);
    if (s < 0) return s;
    for (size_t i = 0; i < k.rows * got->columns; i++) r.nonfinite += !isfinite(got->v[i]);
    switch (m) {
    case ACCURACY_METRIC_ACCURACY:
    case ACCURACY_METRIC_TOP1: r.score = score_classes(&k); break;
    case ACCURACY_METRIC_F1: s = score_f1(&k, &r.score, err); break;
    case ACCURACY_METRIC_COSINE: r.score = score_cosine(&k, &r.worst); break;
    case ACCURACY_METRIC_MAX_ABS:
    case ACCURACY_METRIC_REL_L2: r.score = score_distance(&k, m); break;
    case ACCURACY_METRIC_EQUAL: r.score = score_equal(&k); break;
    }
    if (m == ACCURACY_METRIC_MAX_ABS) r.worst = r.score.value;
    if (s == TARE_OK) *out = r;
    return s;
}

/* ---- into the document ---- */

static tare_status accuracy_status(const struct run *run, tare_error *err)
{
    return run->arena.failed ? error_nomem(err, "the accuracy of a case") : TARE_OK;
}

tare_status accuracy_record(struct run *run, struct run_case *c, const struct accuracy_result *r,
                            const struct accuracy_source *from, tare_error *err)
{
    const char *name = metric_rows[from->metric].name;
    c->accuracy = (struct run_accuracy){.score = r->score, .metric = name, .baseline = from->baseline};
    c->accuracy.examples = known_u64(r->examples);
    c->accuracy.dataset = arena_str(&run->arena, from->dataset);
    if (from->output) c->accuracy.output = arena_str(&run->arena, from->output);
    if (r->score.known)
        run_map_drop(&c->unknown, "accuracy");
    else
        run_unknown(run, &c->unknown, "accuracy", "no answer of this case is a number");
    bool noted = c->nan_outputs.known && c->nan_outputs.v > 0; /* then findings_add() tells of it */
    if (r->nonfinite > 0 && !noted) {
        struct judging j = judging_as(run, "outputs.not-finite");
        struct run_finding *f =
            finding_start(&j, c, "%s: NaN or infinite", show_count((double)r->nonfinite, "output value").s);
        finding_numbers(&j, f, {"values", (double)r->nonfinite}, {"examples", (double)r->examples});
    }
    return accuracy_status(run, err);
}

double accuracy_drop(const char *metric, double base, double value)
{
    for (size_t i = 0; i < N_METRICS; i++)
        if (strcmp(metric, metric_rows[i].name) == 0 && metric_rows[i].less_is_better) return value - base;
    return base - value;
}

bool accuracy_reference(const struct run *run, const struct run_case *c, double *out)
{
    if (c->accuracy.baseline.known) *out = c->accuracy.baseline.v;
    for (size_t i = 0; !c->accuracy.baseline.known && i < run->cases.n; i++) {
        const struct run_accuracy *a = &run->cases.at[i]->accuracy;
        if (!a->score.known || !a->metric || strcmp(a->metric, c->accuracy.metric) != 0) continue;
        *out = a->score.value;
        return run->cases.at[i] != c;
    }
    return c->accuracy.baseline.known;
}

/* A case without a score must fail too: its drop is NAN, which is not <= anything. The tiny addend forgives the
 * rounding of a drop that is exactly what is allowed. */
tare_status accuracy_validate(struct run *run, double max_drop, size_t *dropped, tare_error *err)
{
    struct judging j = judging_as(run, "accuracy.dropped");
    *dropped = 0;
    for (size_t i = 0; i < run->cases.n; i++) {
        struct run_case *c = run->cases.at[i];
        bool measured = c->accuracy.score.known && c->accuracy.metric;
        double base = NAN;
        if (measured && !accuracy_reference(run, c, &base)) continue;
        double drop = measured ? accuracy_drop(c->accuracy.metric, base, c->accuracy.score.value) : NAN;
        if (drop <= max_drop + 1e-12) continue;
        const char *metric = c->accuracy.metric;
        struct run_finding *f =
            measured ? finding_start(&j, c, "%s is %.6g: worse than %.6g by %.4g, more than the %.4g allowed",
                                     metric, c->accuracy.score.value, base, drop, max_drop)
                     : finding_start(&j, c, "accuracy could not be measured, so it cannot be vouched for");
        if (f) ++*dropped;
        finding_numbers(&j, f, {"drop", drop}, {"max_drop", max_drop});
    }
    return accuracy_status(run, err);
}
