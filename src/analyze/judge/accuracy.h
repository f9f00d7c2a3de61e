/* SPDX-License-Identifier: MIT
 * accuracy.h - answers against what was expected: labels, or the outputs of a reference. Plain arrays in,
 * a score with its interval out; knows no model and no file format but JSON lines. Never hides an answer
 * that is not a number. */
#ifndef ANALYZE_ACCURACY_H
#define ANALYZE_ACCURACY_H

#include "run/run.h"

/* One row per example, C order. Borrowed. */
struct answers {
    const double *v;
    size_t rows, columns;
};

/* What should have come out. Owned; release with expected_release(). */
struct expected {
    int64_t *labels; /* one per example; NULL: none */
    double *values;  /* rows x columns; NULL: none */
    size_t rows, columns;
    struct json_t *
        *texts; /* what is no number: texts, objects, one per example; then `values` are 1 each, which is
                              what an answer equal to it counts; NULL: none */
};
#define EXPECTED_INIT {NULL, NULL, 0, 0, NULL}
void expected_release(struct expected *e);

/* One JSON object per line: {"label": 1} or {"expected": [0.1, 0.9]} (a number counts as one column);
 * other keys are ignored, blank lines skipped. All lines of one kind and width. Errors name `name` and
 * the line. */
struct expected_text {
    const char *name;
    const void *bytes;
    size_t n;
};
/* The same; what is expected may be any JSON, and numbers may lie in lists of lists. */
tare_status expected_read_any(struct expected *out, const struct expected_text *text, tare_error *err);
tare_status expected_read_jsonl(struct expected *out, const char *name, const void *bytes, size_t n,
                                tare_error *err);

/* name, text, less is better, needs labels, help */
#define ACCURACY_METRIC_MAP(X)                                                                     \
    X(ACCURACY, "accuracy", false, true, "share of rows whose largest value is at the label")      \
    X(F1, "f1", false, true, "mean over the classes of the F1 of each")                            \
    X(COSINE, "cosine", false, false, "mean cosine of each row with the reference")                \
    X(MAX_ABS, "max-abs", true, false, "largest difference from the reference")                    \
    X(REL_L2, "rel-l2", true, false, "length of the difference over length of the reference")      \
    X(TOP1, "top1", false, false, "share of rows whose largest value is where the reference's is") \
    X(EQUAL, "equal", false, false, "share of values that are the reference's")
enum accuracy_metric {
#define X(name, text, less, labels, help) ACCURACY_METRIC_##name,
    ACCURACY_METRIC_MAP(X)
#undef X
};

struct accuracy_metric_row {
    const char *name, *help;
    bool less_is_better, needs_labels;
};
const struct accuracy_metric_row *accuracy_metric_row(enum accuracy_metric m);

struct accuracy_result {
    struct run_estimate score; /* unknown when nothing could be compared */
    double worst;              /* cosine: the least of all rows; max-abs: the score; else NAN */
    uint64_t examples;
    uint64_t nonfinite; /* answers that are NaN or infinite: their rows count as wrong */
};

/* The first min(rows) examples are compared; a run of fewer rows than expected (a small batch) is judged
 * by those. */
tare_status accuracy_measure(struct accuracy_result *out, const struct answers *got,
                             const struct expected *want, enum accuracy_metric m, tare_error *err);

/* The same, as answers come: those of a service, by the thousand, of which none is kept. */
struct accuracy_tally {
    enum accuracy_metric metric;
    uint64_t rows, judged, right, nonfinite; /* judged: rows, or values, by the metric */
    double sum, squares, least;              /* of cosines */
    double most, off, all;                   /* of differences, and of the reference */
    struct class_count *classes;             /* f1 */
    size_t n_classes;
    double loss; /* of the rows added last: how far off the worst is; 0: all are right (cosine: 1 less it) */
};
/* TARE_INVALID: this metric is not for what is expected. Always release. */
tare_status accuracy_tally_open(struct accuracy_tally *t, enum accuracy_metric m, const struct expected *want,
                                tare_error *err);
void accuracy_tally_release(struct accuracy_tally *t);
/* These rows, against those from row `from` on; t->loss says how far off they are. */
tare_status accuracy_tally_add(struct accuracy_tally *t, const struct answers *got,
                               const struct expected *want, size_t from, tare_error *err);
struct accuracy_result accuracy_tally_result(const struct accuracy_tally *t);

/* Into the case: score, metric, examples, dataset; a finding when there were answers that are not numbers. */
struct accuracy_source {
    enum accuracy_metric metric;
    const char *dataset;       /* file of the expected answers */
    struct known_f64 baseline; /* score of the reference case */
    const char *output;        /* which one; NULL: the only one */
};
tare_status accuracy_record(struct run *run, struct run_case *c, const struct accuracy_result *r,
                            const struct accuracy_source *from, tare_error *err);

/* Answers of a service that are not the expected ones: a finding that says how the first look. */
struct accuracy_wrong {
    uint64_t n, examples; /* n 0: the metric has no right and wrong, and the worst is shown */
    const char *shown;
};
tare_status accuracy_record_wrong(struct run *run, const struct run_case *c, const struct accuracy_wrong *w,
                                  tare_error *err);

/* How much worse `value` is than `base` by this metric: above 0 is worse. */
double accuracy_drop(const char *metric, double base, double value);

/* What the score of a case, which has one, is set against: its baseline, else the first case with this metric. false:
 * it is that case. */
bool accuracy_reference(const struct run *run, const struct run_case *c, double *out);

/* --validate-accuracy: a critical finding for each case whose score dropped by more than max_drop from
 * its baseline (else from the first case with that metric), or was not measured. *dropped: how many. */
tare_status accuracy_validate(struct run *run, double max_drop, size_t *dropped, tare_error *err);

#endif
