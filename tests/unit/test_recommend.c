/* SPDX-License-Identifier: MIT
 * test_recommend.c - which case is named, and what the sentence says; ties go to the cheaper one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "analyze/judge/judge.h"
#include "core/mem.h"
#include "run_fixture.h"

#include <cmocka.h>

static void expect(const struct run *r, struct objective o, const char *name, const char *says)
{
    struct recommended rec;
    tare_error err = TARE_ERROR_INIT;
    if (recommend_for(r, &o, r->cases.n ? r->cases.at[0] : NULL, &rec, &err) < 0) fail_msg("%s", err.text);
    if (!name) {
        assert_null(rec.c);
    } else {
        if (!rec.c) fail_msg("%s: nothing was recommended", o.name);
        assert_string_equal(rec.c->name, name);
        if (says && !strstr(rec.why.data, says)) fail_msg("no \"%s\" in \"%s\"", says, rec.why.data);
    }
    recommended_release(&rec);
}

static void test_objectives(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    expect(&r, (struct objective){.name = "throughput"}, "batch=32,seq=128",
           "67.3 texts/s, the most throughput of 5 cases");
    expect(&r, (struct objective){.name = "latency"}, "batch=1,seq=128", "p95 73.0 ms, the shortest time");
    expect(&r, (struct objective){.name = "memory"}, "batch=1,seq=128", "peak 163 MiB, the least memory");
    run_release(&r);
}

static void test_limits(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    expect(&r, (struct objective){"latency", 200000000}, "batch=8,seq=128",
           "keeps the limit of 200 ms; 2 cases are over");
    expect(&r, (struct objective){"throughput", 300000000}, "batch=16,seq=128", "1 case is over that limit");
    expect(&r, (struct objective){"throughput", 1000000}, NULL, NULL); /* none */
    uint64_t p95 = r.cases.at[2]->latency_ns.p95.value; /* the value is below, its interval is not */
    expect(&r, (struct objective){"latency", p95 + 1}, "batch=4,seq=128", NULL);
    run_release(&r);
}

/* An unknown p95 is not over the limit, and one whose interval goes beyond it is neither over nor within. */
static void test_unknown_is_not_over(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    for (size_t i = 0; i < r.cases.n; i++) r.cases.at[i]->samples_raw.known = false;
    r.cases.at[0]->latency_ns.p95 = run_estimate(25e6, 19e6, 40e6);
    r.cases.at[1]->latency_ns.p95 = run_estimate(25e6, 19e6, 89e6);
    r.cases.at[2]->latency_ns.p95 = (struct run_estimate){0};
    r.cases.at[3]->latency_ns.p95 = run_estimate(112e6, 69e6, 150e6);
    r.cases.at[4]->latency_ns.p95 = (struct run_estimate){0};
    expect(
        &r, (struct objective){"throughput", 50000000}, "batch=1,seq=128",
        "the only case to choose; its p95 of 25 ms keeps the limit of 50 ms; 1 case is over that limit; 3 cases are "
        "not shown to keep it");
    run_release(&r);
    fixture_sweep(&r);
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(recommend(&r, &(struct objective){"throughput", 1000000}, &err), TARE_OK);
    assert_false(r.recommendation.known);
    assert_string_equal(r.findings.at[r.findings.n - 1]->id, "latency.limit");
    assert_string_equal(r.findings.at[r.findings.n - 1]->title,
                        "no case surely keeps the latency limit of 1 ms: all are over it");
    /* all count, not only those that do the first one's work; one that keeps it for other work makes it untrue */
    for (size_t i = 0; i < r.cases.n; i++)
        run_map_int(&r.arena, &r.cases.at[i]->params, "length", i < 3 ? 32 : 64);
    size_t before = r.findings.n;
    assert_int_equal(recommend(&r, &(struct objective){"throughput", 1000000}, &err), TARE_OK);
    assert_int_equal(r.findings.n, before + 1);
    assert_non_null(strstr(r.findings.at[before]->title, "limit of 1 ms: all are over it"));
    r.cases.at[4]->samples_raw.known = false;
    r.cases.at[4]->latency_ns.p95 = run_estimate(0.5e6, 0.4e6, 0.6e6);
    assert_int_equal(recommend(&r, &(struct objective){"throughput", 1000000}, &err), TARE_OK);
    assert_int_equal(r.findings.n, before + 1);
    run_release(&r);
}

/* Shorter inputs are not "the shortest time of 4 cases": their length is given. */
static void test_only_what_may_be_chosen(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    for (size_t i = 0; i < r.cases.n; i++)
        run_map_int(&r.arena, &r.cases.at[i]->params, "length", i < 2 ? 32 : 64);
    expect(&r, (struct objective){.name = "throughput"}, "batch=4,seq=128", "the most throughput of 2 cases");
    struct recommended rec;
    struct objective o = {.name = "latency"};
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(recommend_for(&r, &o, r.cases.at[4], &rec, &err), TARE_OK);
    assert_string_equal(rec.c->name, "batch=8,seq=128");
    assert_non_null(strstr(rec.why.data, "the shortest time of 3 cases"));
    recommended_release(&rec);
    run_release(&r);
}

static void test_ties_go_to_the_cheaper(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    r.cases.at[4]->throughput.rate = run_estimate(67, 62, 72);
    r.cases.at[3]->throughput.rate = run_estimate(64, 60, 68);
    expect(&r, (struct objective){.name = "throughput"}, "batch=16,seq=128",
           "statistically tied with batch=32,seq=128 (67 texts/s), and smaller");
    r.cases.at[3]->throughput.rate.lo.known = false; /* without bounds a tie must be exact */
    expect(&r, (struct objective){.name = "throughput"}, "batch=32,seq=128", NULL);
    run_release(&r);
}

static void test_worse_answers_are_left_out(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    for (size_t i = 0; i < r.cases.n; i++) {
        r.cases.at[i]->accuracy.metric = "accuracy";
        r.cases.at[i]->accuracy.score = run_estimate(i == 4 ? 0.6 : 0.69, 0.5, 0.8);
    }
    expect(&r, (struct objective){.name = "throughput"}, "batch=16,seq=128",
           "1 left out because its answers got worse");
    run_map_real(&r.arena, &r.config, "max_drop", 0.1);
    expect(&r, (struct objective){.name = "throughput"}, "batch=32,seq=128", NULL);
    run_release(&r);
}

static void test_nothing_to_choose(void **state)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(run_init(&r, "bench", &err), TARE_OK);
    expect(&r, (struct objective){.name = "throughput"}, NULL, NULL);
    fixture_case(&r, "only", 1, 1e6, 50);
    expect(&r, (struct objective){.name = "throughput"}, NULL, NULL);
    struct objective bad = {.name = "beauty"};
    struct recommended rec;
    assert_int_equal(recommend_for(&r, &bad, r.cases.at[0], &rec, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "use throughput, latency or memory"));
    run_release(&r);
    fixture_sweep(&r);
    run_map_text(&r.arena, &r.config, "load", "open"); /* throughput is then what was offered */
    expect(&r, (struct objective){.name = "throughput"}, NULL, NULL);
    expect(&r, (struct objective){.name = "latency"}, "batch=1,seq=128", NULL);
    run_release(&r);
}

static void test_into_the_document(void **state)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    struct objective o = {.name = "throughput"};
    struct buf text = BUF_INIT;
    (void)state;
    fixture_sweep(&r);
    assert_int_equal(recommend(&r, &o, &err), TARE_OK);
    assert_true(r.recommendation.known);
    assert_string_equal(r.recommendation.case_name, "batch=32,seq=128");
    assert_int_equal(run_write(&r, &text, &err), TARE_OK);
    buf_release(&text);
    run_release(&r);
}

static void test_no_memory(void **state)
{
    tare_error err = TARE_ERROR_INIT;
    struct objective o = {"latency", 200000000};
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct run r;
        fixture_sweep(&r);
        mem_fail_after(n);
        tare_status s = recommend(&r, &o, &err);
        mem_fail_after(-1);
        run_release(&r);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objectives),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_unknown_is_not_over),
        cmocka_unit_test(test_only_what_may_be_chosen),
        cmocka_unit_test(test_ties_go_to_the_cheaper),
        cmocka_unit_test(test_worse_answers_are_left_out),
        cmocka_unit_test(test_nothing_to_choose),
        cmocka_unit_test(test_into_the_document),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
