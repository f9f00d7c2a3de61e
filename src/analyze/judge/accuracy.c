/* SPDX-License-Identifier: MIT
 * accuracy.c - see accuracy.h: the metrics, and what goes into the run document. The JSON lines are
 * expected.c. */
#include "analyze/judge/accuracy.h"

#include <inttypes.h>
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

/* One row that came out, and what should have. */
struct pair {
    const double *got, *want; /* want NULL: there is a label */
    size_t columns, want_columns;
    int64_t label;
};

static int64_t wanted_class(const struct pair *p)
{
    return p->want ? class_of(p->want, p->want_columns) : p->label;
}

/* ---- classes ---- */

struct class_count {
    int64_t label;
    double hit, seen, real;
};

static int by_label(const void *a, const void *b)
{
    const struct class_count *x = a, *y = b;
    return x->label < y->label ? -1 : x->label > y->label;
}

/* The expected labels, each once, ascending. */
static tare_status list_classes(struct accuracy_tally *t, const struct expected *want, tare_error *err)
{
    size_t n = 0;
    t->classes = mem_new(want->rows, sizeof *t->classes);
    if (!t->classes) return error_nomem(err, "%zu labels", want->rows);
    for (size_t i = 0; i < want->rows; i++) t->classes[i] = (struct class_count){.label = want->labels[i]};
    qsort(t->classes, want->rows, sizeof *t->classes, by_label);
    for (size_t i = 0; i < want->rows; i++)
        if (n == 0 || t->classes[i].label != t->classes[n - 1].label) t->classes[n++] = t->classes[i];
    t->n_classes = n;
    return TARE_OK;
}

static struct class_count *find_class(const struct accuracy_tally *t, int64_t label)
{
    struct class_count key = {.label = label};
    return bsearch(&key, t->classes, t->n_classes, sizeof key, by_label);
}

static double add_to_classes(struct accuracy_tally *t, const struct pair *p)
{
    struct class_count *real = find_class(t, p->label), *seen = find_class(t, class_of(p->got, p->columns));
    if (real) real->real++;
    if (seen) seen->seen++;
    if (real && real == seen) real->hit++;
    return real && real == seen ? 0 : 1;
}

/* Over the classes that were expected of the rows that there were. */
static struct run_estimate score_f1(const struct accuracy_tally *t)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < t->n_classes; i++) {
        const struct class_count *c = &t->classes[i];
        if (c->real > 0) sum += 2 * c->hit / (c->seen + c->real), n++;
    }
    return (struct run_estimate){.known = n > 0, .value = sum / n};
}

/* ---- a row more ---- */

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

static double add_class(struct accuracy_tally *t, const struct pair *p)
{
    int64_t c = class_of(p->got, p->columns);
    bool right = c >= 0 && c == wanted_class(p);
    t->judged++;
    t->right += right;
    return right ? 0 : 1;
}

static double add_equal(struct accuracy_tally *t, const struct pair *p)
{
    size_t same = 0;
    for (size_t i = 0; i < p->columns; i++) same += p->got[i] == p->want[i];
    t->judged += p->columns;
    t->right += same;
    return 1 - (double)same / (double)p->columns;
}

static double add_cosine(struct accuracy_tally *t, const struct pair *p)
{
    double c = cosine_of(p->got, p->want, p->columns);
    t->sum += c;
    t->squares += c * c;
    t->least = fmin(t->least, c);
    return 1 - c;
}

/* Of the values that are numbers; the others are reported apart. */
static double add_distance(struct accuracy_tally *t, const struct pair *p)
{
    double most = 0;
    for (size_t i = 0; i < p->columns; i++) {
        double d = p->got[i] - p->want[i];
        if (!isfinite(d)) continue;
        t->judged++;
        most = fmax(most, fabs(d));
        t->off += d * d;
        t->all += p->want[i] * p->want[i];
    }
    t->most = fmax(t->most, most);
    return is_finite_row(p->got, p->columns) ? most : INFINITY;
}

static double add_row(struct accuracy_tally *t, const struct pair *p)
{
    for (size_t i = 0; i < p->columns; i++) t->nonfinite += !isfinite(p->got[i]);
    t->rows++;
    if (t->metric == ACCURACY_METRIC_F1) return add_to_classes(t, p);
    if (t->metric == ACCURACY_METRIC_TOP1 || !p->want) return add_class(t, p); /* without values: accuracy */
    if (t->metric == ACCURACY_METRIC_COSINE) return add_cosine(t, p);
    if (t->metric == ACCURACY_METRIC_EQUAL) return add_equal(t, p);
    return add_distance(t, p);
}

/* ---- scores ---- */

static struct run_estimate score_share(const struct accuracy_tally *t)
{
    double n = (double)t->judged;
    struct interval i = stats_share_interval((double)t->right / n, n, 0.95);
    return run_estimate(i.value, i.lo, i.hi);
}

static struct run_estimate score_cosine(const struct accuracy_tally *t)
{
    double n = (double)t->rows, mean = t->sum / n;
    double sd = t->rows > 1 ? sqrt(fmax(t->squares - n * mean * mean, 0) / (n - 1)) : NAN;
    double half = t->rows > 1 ? stats_t_quantile(0.975, n - 1) * sd / sqrt(n) : NAN;
    if (!isfinite(half)) return (struct run_estimate){.known = true, .value = mean};
    return run_estimate(mean, mean - half, mean + half);
}

static struct run_estimate score_distance(const struct accuracy_tally *t)
{
    struct run_estimate e = {.known = t->judged > 0, .value = t->most};
    if (t->metric == ACCURACY_METRIC_REL_L2 && t->all > 0) e.value = sqrt(t->off / t->all);
    if (t->metric == ACCURACY_METRIC_REL_L2 && !(t->all > 0)) e.value = t->off > 0 ? INFINITY : 0;
    e.known = e.known && isfinite(e.value);
    return e;
}

/* ---- measuring ---- */

tare_status accuracy_tally_open(struct accuracy_tally *t, enum accuracy_metric m, const struct expected *want,
                                tare_error *err)
{
    const char *name = metric_rows[m].name;
    *t = (struct accuracy_tally){.metric = m, .least = 1};
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
    if (want->rows == 0) return error_set(err, TARE_INVALID, "%s: there are no answers to compare", name);
    return m == ACCURACY_METRIC_F1 ? list_classes(t, want, err) : TARE_OK;
}

/* What is scored relies on this. Rows of different width cannot be compared value by value; top1 may, because it
 * compares only where the greatest value is. */
tare_status accuracy_tally_add(struct accuracy_tally *t, const struct answers *got,
                               const struct expected *want, size_t from, tare_error *err)
{
    const char *name = metric_rows[t->metric].name;
    size_t left = from < want->rows ? want->rows - from : 0, rows = got->rows < left ? got->rows : left;
    if (rows == 0 || got->columns == 0)
        return error_set(err, TARE_INVALID, "%s: there are no answers to compare", name);
    if (want->values && t->metric != ACCURACY_METRIC_TOP1 && want->columns != got->columns)
        return error_set(err, TARE_INVALID, "%s: the answers have %zu values per row, the reference has %zu",
                         name, got->columns, want->columns);
    t->loss = 0;
    for (size_t i = 0; i < rows; i++) {
        struct pair p = {.got = got->v + i * got->columns, .columns = got->columns};
        if (want->labels) p.label = want->labels[from + i];
        if (!want->labels) p.want = want->values + (from + i) * want->columns;
        p.want_columns = want->columns;
        t->loss = fmax(t->loss, add_row(t, &p));
    }
    return TARE_OK;
}

struct accuracy_result accuracy_tally_result(const struct accuracy_tally *t)
{
    struct accuracy_result r = {.worst = NAN, .examples = t->rows, .nonfinite = t->nonfinite};
    if (t->rows == 0) return r;
    switch (t->metric) {
    case ACCURACY_METRIC_ACCURACY:
    case ACCURACY_METRIC_TOP1:
    case ACCURACY_METRIC_EQUAL: r.score = score_share(t); break;
    case ACCURACY_METRIC_F1: r.score = score_f1(t); break;
    case ACCURACY_METRIC_COSINE: r.score = score_cosine(t), r.worst = t->least; break;
    case ACCURACY_METRIC_MAX_ABS:
    case ACCURACY_METRIC_REL_L2: r.score = score_distance(t); break;
    }
    if (t->metric == ACCURACY_METRIC_MAX_ABS) r.worst = r.score.value;
    return r;
}

void accuracy_tally_release(struct accuracy_tally *t)
{
    mem_free(t->classes);
    t->classes = NULL;
}

tare_status accuracy_measure(struct accuracy_result *out, const struct answers *got,
                             const struct expected *want, enum accuracy_metric m, tare_error *err)
{
    struct accuracy_tally t;
    tare_status s = accuracy_tally_open(&t, m, want, err);
    if (s == TARE_OK) s = accuracy_tally_add(&t, got, want, 0, err);
    if (s == TARE_OK) *out = accuracy_tally_result(&t);
    accuracy_tally_release(&t);
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

tare_status accuracy_record_wrong(struct run *run, const struct run_case *c, const struct accuracy_wrong *w,
                                  tare_error *err)
{
    struct judging j = judging_as(run, "answers.wrong");
    struct run_finding *f =
        w->n ? finding_start(&j, c, "%" PRIu64 " of %s not what was expected: %s", w->n,
                             show_count((double)w->examples, "answer").s, w->shown)
             : finding_start(&j, c, "the answer furthest from what was expected: %s", w->shown);
    if (w->n) finding_numbers(&j, f, {"wrong", (double)w->n}, {"answers", (double)w->examples});
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
