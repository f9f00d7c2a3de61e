/* SPDX-License-Identifier: MIT
 * test_accuracy.c - scores against values worked out by hand, answers that are no numbers, shapes that do
 * not fit, JSON lines, and the rule for drops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "analyze/judge/accuracy.h"
#include "core/mem.h"
#include "run_fixture.h"

#include <cmocka.h>

static struct accuracy_result measure(const double *v, size_t rows, size_t columns,
                                      const struct expected *want, enum accuracy_metric m)
{
    struct accuracy_result r;
    struct answers got = {v, rows, columns};
    tare_error err = TARE_ERROR_INIT;
    if (accuracy_measure(&r, &got, want, m, &err) < 0) fail_msg("%s", err.text);
    return r;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) < 1e-9)) fail_msg("%.12g, expected %.12g", got, want);
}

/* ---- scores ---- */

static const double logits[] = {2,      1, 0, /**/ 0, 3, 1, /**/ 1, 0, 5,
                                /**/ 4, 1, 2, /**/ 0, 1, 0, /**/ 0, 0, 9};
static int64_t labels[] = {0, 1, 2, 1, 1, 0}; /* predicted: 0 1 2 0 1 2 */

static void test_labels(void **state)
{
    struct expected want = {.labels = labels, .rows = 6};
    (void)state;
    struct accuracy_result r = measure(logits, 6, 3, &want, ACCURACY_METRIC_ACCURACY);
    near(r.score.value, 4.0 / 6);
    assert_true(fabs(r.score.lo.v - 0.299993) < 1e-6); /* Wilson */
    assert_true(r.score.lo.known && r.score.hi.known && r.score.hi.v > 0.9 && r.score.hi.v < 0.91);
    assert_int_equal(r.examples, 6);
    /* class 0: 1 hit, 2 seen, 2 real: 0.5; class 1: 2, 2, 3: 0.8; class 2: 1, 2, 1: 2/3 */
    r = measure(logits, 6, 3, &want, ACCURACY_METRIC_F1);
    near(r.score.value, (0.5 + 0.8 + 2.0 / 3) / 3);
    assert_false(r.score.lo.known);
    r = measure(logits, 4, 3, &want, ACCURACY_METRIC_ACCURACY); /* a batch of four is judged by four */
    near(r.score.value, 0.75);
    double scalar[] = {0, 1, 2, 0.9, 1.2, 2}; /* class numbers in one column */
    r = measure(scalar, 6, 1, &want, ACCURACY_METRIC_ACCURACY);
    near(r.score.value, 5.0 / 6);
}

static void test_equal(void **state)
{
    double ids[] = {3, 1, 4, 1, /**/ 5, 9, NAN, 6}, same[] = {3, 1, 4, 1, /**/ 5, 9, 2, 5};
    struct expected want = {.values = same, .rows = 2, .columns = 4};
    (void)state;
    struct accuracy_result r = measure(ids, 2, 4, &want, ACCURACY_METRIC_EQUAL);
    near(r.score.value, 6.0 / 8);
    assert_int_equal(r.nonfinite, 1);
    r = measure(same, 2, 4, &want, ACCURACY_METRIC_EQUAL);
    near(r.score.value, 1);
}

static void test_references(void **state)
{
    double a[] = {1, 0, /**/ 3, 4}, b[] = {1, 0, /**/ 4, 3}, zero[] = {0, 0, /**/ 0, 0};
    struct expected want = {.values = b, .rows = 2, .columns = 2};
    (void)state;
    struct accuracy_result r = measure(a, 2, 2, &want, ACCURACY_METRIC_COSINE);
    near(r.score.value, (1 + 0.96) / 2);
    near(r.worst, 0.96);
    assert_true(r.score.lo.known && r.score.lo.v < r.score.value);
    near(measure(a, 2, 2, &want, ACCURACY_METRIC_MAX_ABS).score.value, 1);
    near(measure(a, 2, 2, &want, ACCURACY_METRIC_REL_L2).score.value, sqrt(2.0 / 26));
    near(measure(a, 2, 2, &want, ACCURACY_METRIC_TOP1).score.value, 0.5);
    near(measure(b, 2, 2, &want, ACCURACY_METRIC_REL_L2).score.value, 0);
    struct expected nothing = {.values = zero, .rows = 2, .columns = 2};
    near(measure(zero, 2, 2, &nothing, ACCURACY_METRIC_COSINE).score.value, 1);
    near(measure(zero, 2, 2, &nothing, ACCURACY_METRIC_REL_L2).score.value, 0);
    assert_false(measure(a, 2, 2, &nothing, ACCURACY_METRIC_REL_L2).score.known); /* not infinite */
    near(measure(a, 2, 2, &nothing, ACCURACY_METRIC_COSINE).score.value, 0);
}

static void test_not_numbers(void **state)
{
    double a[] = {NAN, 1, /**/ 0, 1, /**/ INFINITY, 0}, b[] = {0, 1, /**/ 0, 1, /**/ 1, 0};
    int64_t ones[] = {1, 1, 0};
    struct expected want = {.values = b, .rows = 3, .columns = 2}, right = {.labels = ones, .rows = 3};
    (void)state;
    struct accuracy_result r = measure(a, 3, 2, &right, ACCURACY_METRIC_ACCURACY);
    near(r.score.value, 1.0 / 3); /* a row that is no number is wrong */
    assert_int_equal(r.nonfinite, 2);
    near(measure(a, 3, 2, &want, ACCURACY_METRIC_TOP1).score.value, 1.0 / 3);
    near(measure(a, 3, 2, &want, ACCURACY_METRIC_COSINE).score.value, 1.0 / 3);
    near(measure(a, 3, 2, &want, ACCURACY_METRIC_MAX_ABS).score.value,
         0); /* of those that are numbers, and counted */
    near(measure(a, 3, 2, &right, ACCURACY_METRIC_F1).score.value, (2.0 / 3) / 2);
    double all[] = {NAN, NAN};
    struct expected one = {.values = b, .rows = 1, .columns = 2};
    assert_false(measure(all, 1, 2, &one, ACCURACY_METRIC_MAX_ABS).score.known);
}

static void test_shapes(void **state)
{
    double a[] = {1, 2, 3, 4};
    struct answers got = {a, 2, 2}, none = {a, 0, 2};
    struct expected by_label = {.labels = labels, .rows = 2},
                    by_value = {.values = a, .rows = 1, .columns = 4};
    struct accuracy_result r;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(accuracy_measure(&r, &got, &by_label, ACCURACY_METRIC_COSINE, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "needs reference outputs"));
    assert_int_equal(accuracy_measure(&r, &got, &by_value, ACCURACY_METRIC_F1, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "needs labels"));
    assert_int_equal(accuracy_measure(&r, &got, &by_value, ACCURACY_METRIC_MAX_ABS, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "2 values per row, the reference has 4"));
    assert_int_equal(accuracy_measure(&r, &none, &by_label, ACCURACY_METRIC_ACCURACY, &err), TARE_INVALID);
    const struct accuracy_metric_row *row = accuracy_metric_row(ACCURACY_METRIC_REL_L2);
    assert_string_equal(row->name, "rel-l2");
    assert_true(row->less_is_better && !row->needs_labels);
}

/* ---- JSON lines ---- */

static tare_status parse(struct expected *e, const char *text, tare_error *err)
{
    return expected_read_jsonl(e, "labels.jsonl", text, strlen(text), err);
}

static void test_json_lines(void **state)
{
    struct expected e = EXPECTED_INIT;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(parse(&e, "{\"label\": 1}\n\n{\"text\": \"a\", \"label\": 0}\r\n{\"label\": 7}", &err),
                     TARE_OK);
    assert_true(e.rows == 3 && e.labels[0] == 1 && e.labels[2] == 7 && !e.values);
    expected_release(&e);
    assert_int_equal(parse(&e, "{\"expected\": [0.5, 1]}\n{\"expected\": [1, -2e3]}\n", &err), TARE_OK);
    assert_true(e.rows == 2 && e.columns == 2 && e.values[3] == -2000 && !e.labels);
    expected_release(&e);
    assert_int_equal(parse(&e, "{\"expected\": 0.25}\n", &err), TARE_OK);
    assert_true(e.rows == 1 && e.columns == 1 && e.values[0] == 0.25);
    expected_release(&e);
}

static tare_status parse_any(struct expected *e, const char *text, tare_error *err)
{
    return expected_read_any(e, &(struct expected_text){"labels.jsonl", text, strlen(text)}, err);
}

/* What services answer. */
static void test_any_json(void **state)
{
    struct expected e = EXPECTED_INIT;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(
        parse_any(&e, "{\"expected\": \"cat\"}\n{\"expected\": {\"a\": [1]}}\n{\"expected\": []}", &err),
        TARE_OK);
    assert_true(e.rows == 3 && e.columns == 1 && e.texts && e.values[2] == 1 && !e.labels);
    expected_release(&e);
    assert_int_equal(parse_any(&e, "{\"expected\": [[1, 2], [3, 4]]}\n{\"expected\": [5, 6, 7, 8]}", &err),
                     TARE_OK);
    assert_true(e.rows == 2 && e.columns == 4 && !e.texts && e.values[3] == 4 && e.values[4] == 5);
    expected_release(&e);
    static const char *const mixed[] = {
        "{\"expected\": 1}\n{\"expected\": \"x\"}", "{\"expected\": \"x\"}\n{\"expected\": 1}",
        "{\"label\": 1}\n{\"expected\": \"x\"}", "{\"expected\": \"x\"}\n{\"label\": 1}"};
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        assert_int_equal(parse_any(&e, mixed[i], &err), TARE_FORMAT);
        assert_non_null(strstr(err.text, "line 2"));
        assert_true(!e.texts && !e.values && !e.labels);
    }
}

/* One answer after the other gives what all at once give. */
static void test_tally(void **state)
{
    double a[] = {1, 0, /**/ 3, 4, /**/ 0, 2}, b[] = {1, 0, /**/ 4, 3, /**/ 0, 2};
    struct expected want = {.values = b, .rows = 3, .columns = 2}, classes = {.labels = labels, .rows = 6};
    static const enum accuracy_metric metrics[] = {ACCURACY_METRIC_COSINE, ACCURACY_METRIC_MAX_ABS,
                                                   ACCURACY_METRIC_REL_L2, ACCURACY_METRIC_TOP1,
                                                   ACCURACY_METRIC_EQUAL};
    struct accuracy_tally t;
    (void)state;
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
        assert_int_equal(accuracy_tally_open(&t, metrics[m], &want, NULL), TARE_OK);
        for (size_t i = 0; i < 3; i++) {
            struct answers got = {a + 2 * i, 1, 2};
            assert_int_equal(accuracy_tally_add(&t, &got, &want, i, NULL), TARE_OK);
            assert_true(i == 1 ? t.loss > 0 : t.loss == 0);
        }
        near(accuracy_tally_result(&t).score.value, measure(a, 3, 2, &want, metrics[m]).score.value);
        accuracy_tally_release(&t);
    }
    assert_int_equal(accuracy_tally_open(&t, ACCURACY_METRIC_F1, &classes, NULL), TARE_OK);
    for (size_t i = 0; i < 6; i++) {
        struct answers got = {logits + 3 * i, 1, 3};
        assert_int_equal(accuracy_tally_add(&t, &got, &classes, i, NULL), TARE_OK);
        assert_true(t.loss == (i == 3 || i == 5 ? 1 : 0)); /* 0 where 1, and 2 where 0 was right */
    }
    near(accuracy_tally_result(&t).score.value,
         measure(logits, 6, 3, &classes, ACCURACY_METRIC_F1).score.value);
    assert_int_equal(accuracy_tally_add(&t, &(struct answers){logits, 1, 3}, &classes, 6, NULL),
                     TARE_INVALID);
    accuracy_tally_release(&t);
    assert_int_equal(accuracy_tally_open(&t, ACCURACY_METRIC_COSINE, &want, NULL), TARE_OK);
    assert_false(accuracy_tally_result(&t).score.known); /* of nothing */
    accuracy_tally_release(&t);
}

static void test_json_lines_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "holds no expected answers"},
        {"{\"label\": 1}\n{\"label\": \"x\"}\n", "labels.jsonl: line 2: the label is not a whole number"},
        {"{\"label\": -1}", "line 1: the label"},
        {"{\"label\": 1.5}", "line 1: the label"},
        {"{\"label\": 1}\n{\"expected\": [1]}", "line 2: has outputs where the lines before have labels"},
        {"{\"expected\": [1]}\n{\"label\": 1}", "line 2: has a label where"},
        {"{\"expected\": [1, 2]}\n\n{\"expected\": [1]}", "line 3: has another number of outputs"},
        {"{\"expected\": []}", "is empty"},
        {"{\"expected\": [1, null]}", "not a number"},
        {"{\"answer\": 1}", "\"label\" or \"expected\""},
        {"[1]", "\"label\" or \"expected\""},
        {"{\"label\": 1", "line 1: "},
        {"{\"label\": 1, \"label\": 2}", "line 1: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct expected e = EXPECTED_INIT;
        tare_error err = TARE_ERROR_INIT;
        if (parse(&e, rows[i].text, &err) != TARE_FORMAT) fail_msg("%s was taken", rows[i].text);
        if (!strstr(err.text, rows[i].says)) fail_msg("%s: said \"%s\"", rows[i].text, err.text);
        assert_true(!e.labels && !e.values);
    }
}

/* ---- the document, and drops ---- */

static void test_record(void **state)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    struct accuracy_source from = {ACCURACY_METRIC_COSINE, "ref.npz", {true, 1}, NULL};
    struct accuracy_result result = {.score = run_estimate(0.99, 0.98, 1), .examples = 8, .nonfinite = 0};
    (void)state;
    fixture_sweep(&r);
    assert_int_equal(accuracy_record(&r, r.cases.at[0], &result, &from, &err), TARE_OK);
    assert_string_equal(r.cases.at[0]->accuracy.metric, "cosine");
    assert_int_equal(r.findings.n, 0);
    result.nonfinite = 3;
    result.score.known = false;
    assert_int_equal(accuracy_record(&r, r.cases.at[1], &result, &from, &err), TARE_OK);
    assert_non_null(fixture_finding(&r, "outputs.not-finite"));
    assert_string_equal(fixture_finding(&r, "outputs.not-finite")->severity, "critical");
    assert_non_null(run_reason(&r.cases.at[1]->unknown, "accuracy"));
    run_release(&r);
}

static void test_validate(void **state)
{
    struct run r;
    size_t dropped = 9;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    near(accuracy_drop("accuracy", 0.7, 0.65), 0.05);
    near(accuracy_drop("max-abs", 0.1, 0.3), 0.2);
    near(accuracy_drop("something new", 0.7, 0.8), -0.1);
    fixture_sweep(&r);
    for (size_t i = 0; i < r.cases.n; i++) {
        r.cases.at[i]->accuracy.metric = "accuracy";
        r.cases.at[i]->accuracy.score =
            run_estimate(0.69 + (i == 1 ? 0.01 : 0), 0.5, 0.9); /* better is fine */
    }
    assert_int_equal(accuracy_validate(&r, 0, &dropped, &err), TARE_OK);
    assert_int_equal(dropped, 0);
    r.cases.at[3]->accuracy.score.value = 0.67;
    assert_int_equal(accuracy_validate(&r, 0.03, &dropped, &err), TARE_OK);
    assert_int_equal(dropped, 0);
    r.cases.at[4]->accuracy.score.known = false; /* not measured cannot be vouched for */
    assert_int_equal(accuracy_validate(&r, 0.01, &dropped, &err), TARE_OK);
    assert_int_equal(dropped, 2);
    assert_string_equal(r.findings.at[0]->case_name, "batch=16,seq=128");
    assert_non_null(strstr(r.findings.at[0]->title, "worse than 0.69 by 0.02, more than the 0.01 allowed"));
    r.cases.at[0]->accuracy.baseline = known_f64(0.75); /* a stated baseline holds for the first case too */
    assert_int_equal(accuracy_validate(&r, 0.01, &dropped, &err), TARE_OK);
    assert_int_equal(dropped, 3);
    run_release(&r);
}

static void test_no_memory(void **state)
{
    static const char text[] = "{\"expected\": [1, 2]}\n{\"expected\": [3, 4]}\n";
    struct expected want = {.labels = labels, .rows = 6};
    struct answers got = {logits, 6, 3};
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct expected e = EXPECTED_INIT;
        struct accuracy_result r;
        mem_fail_after(n);
        tare_status s = parse(&e, text, NULL);
        if (s == TARE_OK) s = accuracy_measure(&r, &got, &want, ACCURACY_METRIC_F1, NULL);
        mem_fail_after(-1);
        expected_release(&e);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_any_json),
        cmocka_unit_test(test_tally),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_not_numbers),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_json_lines),
        cmocka_unit_test(test_json_lines_refused),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_validate),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
