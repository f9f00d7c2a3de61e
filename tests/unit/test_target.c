/* SPDX-License-Identifier: MIT
 * test_target.c - targets: the grammar, what is refused and where, verdicts by counting and by intervals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "analyze/judge/judge.h"
#include "core/mem.h"
#include "run_fixture.h"

#include <cmocka.h>

/* ---- grammar ---- */

static void test_accepted(void **state)
{
    static const struct {
        const char *text, *metric;
        enum target_op op;
        double value;
    } rows[] = {
        {"latency.p95<=100ms", "latency.p95", TARGET_LE, 1e8},
        {"  latency.p95  <=  100 ms  ", "latency.p95", TARGET_LE, 1e8},
        {"latency<1.5s", "latency.p95", TARGET_LT, 1.5e9},
        {"latency:100ms", "latency.p95", TARGET_LE, 1e8},
        {"p99<=250us", "latency.p99", TARGET_LE, 250e3},
        {"latency.mean<=7ns", "latency.mean", TARGET_LE, 7},
        {"latency.per_unit<=500ms", "latency.per_unit", TARGET_LE, 5e8},
        {"throughput>=1000/s", "throughput", TARGET_GE, 1000},
        {"throughput:1000samples/s", "throughput", TARGET_GE, 1000},
        {"throughput>2texts/s", "throughput", TARGET_GT, 2},
        {"throughput>=120/min", "throughput", TARGET_GE, 2},
        {"throughput>=1e3", "throughput", TARGET_GE, 1000},
        {"memory.peak<=4GB", "memory.peak", TARGET_LE, 4e9},
        {"memory:4GiB", "memory.peak", TARGET_LE, 4294967296.0},
        {"memory.delta<=200mb", "memory.delta", TARGET_LE, 2e8},
        {"memory.per_unit<512B", "memory.per_unit", TARGET_LT, 512},
        {"accuracy>=0.69", "accuracy", TARGET_GE, 0.69},
        {"accuracy:69%", "accuracy", TARGET_GE, 0.69},
        {"cpu.utilization<=90%", "cpu.utilization", TARGET_LE, 0.9},
        {"load<=2s", "load", TARGET_LE, 2e9},
        {"first_run<=0", "first_run", TARGET_LE, 0},
        {"latency.p95\xE2\x89\xA4"
         "10ms",
         "latency.p95", TARGET_LE, 1e7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct target t;
        tare_error err = TARE_ERROR_INIT;
        if (target_parse(&t, rows[i].text, &err) < 0) fail_msg("%s: %s", rows[i].text, err.text);
        assert_string_equal(t.metric, rows[i].metric);
        assert_int_equal(t.op, rows[i].op);
        if (fabs(t.value - rows[i].value) > 1e-9 * fabs(rows[i].value))
            fail_msg("%s: %g", rows[i].text, t.value);
    }
}

static void test_refused_with_the_place(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "a metric was expected"},
        {"<=5ms", "at '<=5ms': a metric was expected"},
        {"latencie.p95<=5ms", "did you mean latency.p95?"},
        {"nonsense<=5ms", "there are: throughput, latency.mean"},
        {"latency.p95", "at its end: expected <=, >=, <, > or : and a value, as in latency.p95<=100ms"},
        {"latency.p95==5ms", "at '==5ms': expected <="},
        {"latency.p95<=", "at its end: a number was expected"},
        {"latency.p95<=-5ms", "at '-5ms': a number was expected"},
        {"latency.p95<=nan", "at 'nan': a number was expected"},
        {"latency.p95<=0x10ms", "at 'x10ms': not a unit of time"},
        {"latency.p95<=5.ms", "digits are missing after the point"},
        {"latency.p95<=5", "the number has no unit; write latency.p95<=5ms"},
        {"latency.p95<=100mz", "at 'mz': not a unit of time"},
        {"latency.p95<=100ms junk", "at 'ms junk': not a unit of time"},
        {"latency.p95<=5GB", "not a unit of time"},
        {"throughput>=5ms", "at 'ms': not a rate"},
        {"throughput>=5te xts/s", "not a rate"},
        {"throughput>=5/week", "not a rate"},
        {"memory.peak<=4", "no unit; write memory.peak<=4MB"},
        {"accuracy>=0.7ms", "has no unit"},
        {"latency.p95<=1e999s", "too large"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct target t = {.value = 42};
        tare_error err = TARE_ERROR_INIT;
        if (target_parse(&t, rows[i].text, &err) != TARE_INVALID) fail_msg("%s was accepted", rows[i].text);
        if (!strstr(err.text, rows[i].says)) fail_msg("%s: said \"%s\"", rows[i].text, err.text);
        assert_true(t.value == 42); /* untouched */
    }
    char longer[400];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    struct target t;
    assert_int_equal(target_parse(&t, longer, NULL), TARE_INVALID);
}

static void test_rates_alone(void **state)
{
    double v;
    char unit[24];
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(target_parse_rate(&v, unit, " 500/s", &err), TARE_OK);
    assert_true(v == 500);
    assert_string_equal(unit, "/s");
    assert_int_equal(target_parse_rate(&v, unit, "90texts/min", &err), TARE_OK);
    assert_true(v == 1.5);
    assert_string_equal(unit, "texts/min");
    assert_int_equal(target_parse_rate(&v, unit, "fast", &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "at 'fast': a number was expected"));
    assert_int_equal(target_parse_rate(&v, unit, "5ms", &err), TARE_INVALID);
}

/* ---- verdicts ---- */

static struct run_target judge(const struct run_case *c, const char *text)
{
    struct target t;
    struct run_target v;
    tare_error err = TARE_ERROR_INIT;
    if (target_parse(&t, text, &err) < 0 || target_judge(&t, c, &v, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return v;
}

static void expect_word(const struct run_case *c, const char *text, const char *word)
{
    struct run_target v = judge(c, text);
    if (strcmp(v.verdict, word) != 0) fail_msg("%s: %s, expected %s", text, v.verdict, word);
}

/* n distinct times in an order without autocorrelation; `over` of them are above 1 ms. */
static struct run_case *counted(struct run *r, size_t n, size_t over)
{
    struct run_case *c = run_add_case(r, "c");
    double *ns = calloc(n, sizeof *ns);
    struct rng rng;
    assert_non_null(c);
    assert_non_null(ns);
    rng_seed(&rng, 3);
    for (size_t i = 0; i < n; i++) ns[i] = i < over ? 2e6 + (double)i : 0.5e6 + (double)i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t k = rng_below(&rng, i + 1);
        double swap = ns[i];
        ns[i] = ns[k];
        ns[k] = swap;
    }
    c->units_per_run = known_u64(1);
    c->unit = "texts";
    fixture_samples(r, c, ns, n);
    free(ns);
    return c;
}

/* The numbers of samples that a pass needs, from the binomial table: p95 59/93, p99 299/473, p90 29/46. */
static void test_samples_needed_for_a_pass(void **state)
{
    static const struct {
        const char *target;
        size_t over, enough;
    } rows[] = {{"p90<=1ms", 0, 29}, {"p90<=1ms", 1, 46},  {"p95<=1ms", 0, 59},
                {"p95<=1ms", 1, 93}, {"p99<=1ms", 0, 299}, {"p99<=1ms", 1, 473}};
    size_t passed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
        struct run_case *few = counted(&r, rows[i].enough - 1, rows[i].over);
        struct run_case *enough = counted(&r, rows[i].enough, rows[i].over);
        double n_eff, x[500];
        for (size_t k = 0; k < enough->samples_raw.n; k++) x[k] = (double)enough->samples_raw.ns[k];
        assert_int_equal(stats_n_eff(x, enough->samples_raw.n, &n_eff, NULL), TARE_OK);
        expect_word(few, rows[i].target, "inconclusive");
        if (n_eff == (double)rows[i].enough) {
            expect_word(enough, rows[i].target, "pass");
            passed++;
        }
        run_release(&r);
    }
    assert_true(passed >= 2); /* the order of some hangs together by chance: worth fewer */
}

static void test_percentile_fails_by_counting(void **state)
{
    struct run r;
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = counted(&r, 200, 40); /* 20 % above: p95 is far over 1 ms, p50 far below */
    expect_word(c, "p95<=1ms", "fail");
    expect_word(c, "p50<=1ms", "pass");
    expect_word(c, "p95>=1ms", "pass");
    expect_word(c, "p50>=1ms", "fail");
    struct run_target v = judge(c, "p95<=1ms");
    assert_true(v.confidence.known && v.confidence.v > 0.95 && v.confidence.v <= 1);
    assert_true(v.achieved.known && v.achieved.v > 1.9e6 && v.ratio.known && v.ratio.v < 0.6);
    run_release(&r);
}

/* Times that hang together are worth fewer: the same counts no longer pass. */
static void test_autocorrelation_costs_certainty(void **state)
{
    struct run r;
    double ns[120];
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = run_add_case(&r, "c");
    for (size_t i = 0; i < 120; i++) ns[i] = 0.5e6 + (i / 30 % 2) * 0.2e6 + (double)(i % 7);
    fixture_samples(&r, c, ns, 120);
    struct run_case *loose = counted(&r, 120, 0);
    expect_word(loose, "p95<=1ms", "pass");
    expect_word(c, "p95<=1ms", "inconclusive");
    run_release(&r);
}

/* A quarter of the runs failed: they took longer than any limit, so that p95 falls on them and p50 does not. That, not
 * the number of samples, is the reason. */
static void test_failed_runs_break_every_limit(void **state)
{
    (void)state;
    static const struct {
        const char *target, *word, *why;
    } rows[] = {{"p95<=1s", "fail", "40 of 160 runs failed: it falls on them"},
                {"p95<=1ns", "fail", "40 of 160 runs failed: it falls on them"},
                {"p50<=1s", "pass", NULL},
                {"p50<=1ns", "fail", NULL}};
    struct run r;
    double ns[120];
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = run_add_case(&r, "c");
    for (size_t i = 0; i < 120; i++) ns[i] = 0.5e6 + (double)(i * 37 % 101);
    fixture_samples(&r, c, ns, 120);
    c->samples = known_u64(120);
    c->failed_runs = known_u64(40);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct target t;
        assert_int_equal(target_parse(&t, rows[i].target, NULL), TARE_OK);
        assert_int_equal(targets_judge(&r, &t, 1, false, NULL), TARE_OK);
        const struct run_target *row = r.targets.at[i];
        assert_string_equal(row->verdict, rows[i].word);
        assert_true(rows[i].why ? row->why && strcmp(row->why, rows[i].why) == 0 : !row->why);
    }
    run_release(&r);
}

/* Times that hang together, and single ones, are worth too few samples to count; but what lies ten thousand times away
 * no plausible noise explains, and a percentile that is known without its times stands for itself. A tail that nobody
 * has seen is not proven by a few good times. */
static void test_far_beyond_is_a_verdict(void **state)
{
    struct run r;
    double ns[120];
    static const struct {
        const char *target, *word;
    } rows[] = {
        {"p95<=50ns", "fail"},         {"p50<=50ns", "fail"},        {"p95<=5s", "pass"},
        {"p50<=5s", "pass"},           {"p95>=5s", "fail"},          {"p95>=50ns", "pass"},
        {"p95<=30ms", "inconclusive"}, {"p50<=3ms", "inconclusive"}, {"p99<=5s", "inconclusive"},
    };
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = run_add_case(&r, "c"), *one = run_add_case(&r, "one");
    for (size_t i = 0; i < 120; i++) ns[i] = 0.5e6 + (i >= 60) * 0.2e6 + (double)(i % 7);
    fixture_samples(&r, c, ns, 120);
    fixture_samples(&r, one, ns, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) expect_word(c, rows[i].target, rows[i].word);
    expect_word(one, "p50<=50ns", "fail");
    expect_word(one, "p95<=50ns", "fail");
    expect_word(one, "p50<=5s", "pass");
    expect_word(one, "p95<=5s", "inconclusive");
    assert_true(fabs(judge(c, "p50<=50ns").confidence.v - 0.94) < 1e-12); /* counted, and beyond noise */
    c->cpu = (struct run_cpu){.known = true,
                              .involuntary_switches = known_u64(100)}; /* a busy machine: farther off */
    expect_word(c, "p50<=30us", "inconclusive");
    c->cpu.known = false;
    expect_word(c, "p50<=30us", "fail");
    struct target t;
    assert_int_equal(target_parse(&t, "p50<=50ns", NULL), TARE_OK);
    assert_int_equal(targets_judge(&r, &t, 1, false, NULL), TARE_OK);
    assert_string_equal(r.targets.at[0]->why,
                        "few samples, but no plausible noise makes it 7.20 times as much");
    run_release(&r);
    struct run_case bare = {.name = "bare"};
    bare.latency_ns.known = true;
    bare.latency_ns.p95 = run_estimate(1e6, 0, 0);
    bare.latency_ns.p95.lo.known = bare.latency_ns.p95.hi.known = false;
    expect_word(&bare, "p95<=100ns", "fail");
    assert_true(fabs(judge(&bare, "p95<=100ns").confidence.v - 0.99) < 1e-12);
    expect_word(&bare, "p95<=900us", "inconclusive");
}

static void test_intervals(void **state)
{
    struct run_case c = {.name = "c", .confidence = known_f64(0.95), .unit = "texts"};
    (void)state;
    c.throughput.rate = run_estimate(1000, 950, 1050);
    c.throughput.unit = "texts/s";
    expect_word(&c, "throughput>=900/s", "pass");
    expect_word(&c, "throughput>=950/s", "pass");
    expect_word(&c, "throughput>950/s", "inconclusive");
    expect_word(&c, "throughput>=1000/s", "inconclusive");
    expect_word(&c, "throughput>=1100/s", "fail");
    expect_word(&c, "throughput>=900texts/s", "pass");
    expect_word(&c, "throughput>=900pairs/s", "inconclusive"); /* counts something else */
    assert_false(judge(&c, "throughput>=900pairs/s").achieved.known);
    assert_true(fabs(judge(&c, "throughput>=900/s").confidence.v - 0.975) < 1e-12);
    assert_true(judge(&c, "throughput>=1000/s").confidence.v == 0.5);
    double nearly = judge(&c, "throughput>=951/s").confidence.v;
    assert_true(nearly > 0.96 && nearly < 0.975);
    c.latency_ns.known = true; /* a percentile without single times */
    c.latency_ns.p95 = run_estimate(100, 90, 120);
    expect_word(&c, "p95<=120ns", "pass");
    expect_word(&c, "p95<=110ns", "inconclusive");
    expect_word(&c, "p95<=80ns", "fail");
    c.latency_ns.p95.hi.known = false; /* no bound, no verdict */
    expect_word(&c, "p95<=120ns", "inconclusive");
}

static void test_single_measurements_and_unknown(void **state)
{
    struct run_case c = {.name = "c"};
    (void)state;
    c.load_ns = known_u64(500);
    c.memory.known = true;
    c.memory.rss_peak = known_u64(1000);
    expect_word(&c, "load<=500ns", "pass");
    expect_word(&c, "load<500ns", "fail");
    expect_word(&c, "memory.peak<=0.9KB", "fail");
    assert_false(judge(&c, "load<=500ns").confidence.known);
    assert_true(judge(&c, "load<=1us").ratio.v == 2);   /* twice as good as asked */
    assert_true(judge(&c, "load>=1us").ratio.v == 0.5); /* the other way round */
    expect_word(&c, "accuracy>=0.5", "inconclusive");
    expect_word(&c, "p50<=1s", "inconclusive");
    assert_false(judge(&c, "accuracy>=0.5").achieved.known);
    assert_false(judge(&c, "load<=0").ratio.known); /* not infinite */
}

static void test_mean_has_an_interval_from_batches(void **state)
{
    struct run r;
    struct run_estimate e;
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = fixture_case(&r, "c", 1, 1e6, 400);
    assert_true(measure_named(c, "latency.mean", &e) && e.lo.known && e.hi.known);
    assert_true(e.lo.v < e.value && e.value < e.hi.v && (e.hi.v - e.lo.v) / e.value < 0.02);
    assert_true(measure_named(c, "latency.per_unit", &e));
    assert_false(measure_named(c, "nonsense", &e));
    assert_ptr_equal(measure_find("cpu_time"), measure_find("cpu.time"));
    run_release(&r);
}

/* A row that names no field would be unknown for ever. */
static void test_measures_name_fields(void **state)
{
    struct run r;
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = fixture_case(&r, "c", 1, 1e6, 8000);
    struct run_launch *l = run_add_launch(&r, c);
    struct run_estimate e;
    double v;
    c->units_per_run = c->load_ns = c->first_run_ns = known_u64(1);
    c->latency_ns.p999 = run_estimate(1, 1, 1);
    c->cpu = (struct run_cpu){.known = true, .utilization = known_f64(1)};
    c->cpu.user_ns = c->cpu.system_ns = known_u64(1);
    c->memory.known = c->self.known = true;
    c->memory.rss_peak = c->memory.gpu_peak = known_u64(1);
    c->memory.delta = c->memory.per_unit = known_i64(-1);
    c->self.share = known_f64(1);
    c->accuracy.score = run_estimate(1, 1, 1);
    const struct run_latency times = {.known = true,
                                      .p50 = run_estimate(1, 1, 1),
                                      .p95 = run_estimate(1, 1, 1),
                                      .p99 = run_estimate(1, 1, 1)};
    c->stream = (struct run_stream){
        .known = true, .ttft_ns = times, .gap_ns = times, .gap_max_ns = times, .tpot_ns = times};
    c->stream.tokens_per_s.rate = c->stream.goodput.share = run_estimate(1, 1, 1);
    l->p50 = run_estimate(1, 1, 1);
    l->mean = l->p90 = l->p95 = l->p99 = l->load_ns = l->rss_peak = known_u64(1);
    l->throughput = l->cpu_ns_per_run = known_f64(1);
    for (const struct measure *m = measure_table; m->name; m++) {
        if (!measure_of(c, m, &e)) fail_msg("%s: no such field, or unknown", m->name);
        if (m->launch && !measure_of_launch(l, m, &v)) fail_msg("%s: no launch has it", m->name);
    }
    run_release(&r);
}

/* ---- all targets of a run ---- */

static void test_all_cases_and_best_only(void **state)
{
    struct run r;
    struct target t[2];
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    fixture_sweep(&r);
    assert_int_equal(target_parse(&t[0], "latency.p50<=200ms", &err), TARE_OK);
    assert_int_equal(target_parse(&t[1], "throughput>=45/s", &err), TARE_OK);
    assert_int_equal(targets_judge(&r, t, 2, false, &err), TARE_OK);
    assert_int_equal(r.targets.n, 10);
    assert_int_equal(targets_missed(&r), 4); /* p50: batch 16, 32; throughput: batch 1, 4 */
    assert_string_equal(r.targets.at[0]->unit, "ns");
    assert_string_equal(r.targets.at[5]->unit, "texts/s");
    assert_true(r.targets.at[0]->value == 2e8);
    r.targets.n = 0;
    assert_int_equal(targets_judge(&r, t, 2, true, &err), TARE_OK);
    assert_int_equal(r.targets.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(r.targets.at[i]->case_name, "batch=8,seq=128"); /* the only one that keeps both */
        assert_string_equal(r.targets.at[i]->verdict, "pass");
        assert_true(r.targets.at[i]->ratio.v > 1);
    }
    struct buf text = BUF_INIT;
    assert_int_equal(run_write(&r, &text, &err), TARE_OK); /* what is judged can be written */
    buf_release(&text);
    run_release(&r);
}

static void test_no_memory(void **state)
{
    struct run r;
    struct target t;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    fixture_sweep(&r);
    long held = mem_live_blocks();
    assert_int_equal(target_parse(&t, "p95<=200ms", &err), TARE_OK);
    for (long n = 0;; n++) {
        r.targets.n = 0;
        mem_fail_after(n);
        tare_status s = targets_judge(&r, &t, 1, true, &err);
        mem_fail_after(-1);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 100);
    }
    assert_true(mem_live_blocks() <= held + 2); /* chunks of the run's arena */
    run_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failed_runs_break_every_limit),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused_with_the_place),
        cmocka_unit_test(test_rates_alone),
        cmocka_unit_test(test_samples_needed_for_a_pass),
        cmocka_unit_test(test_percentile_fails_by_counting),
        cmocka_unit_test(test_autocorrelation_costs_certainty),
        cmocka_unit_test(test_far_beyond_is_a_verdict),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_single_measurements_and_unknown),
        cmocka_unit_test(test_mean_has_an_interval_from_batches),
        cmocka_unit_test(test_measures_name_fields),
        cmocka_unit_test(test_all_cases_and_best_only),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
