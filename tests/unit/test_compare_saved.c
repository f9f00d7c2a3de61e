/* SPDX-License-Identifier: MIT
 * test_compare_saved.c - saved runs as documents: which cases and runs are taken, what differs, what may fail, launches
 * made one document, and no memory anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/compare/compare_saved.h"
#include "analyze/judge/launches.h"
#include "core/mem.h"
#include "run_fixture.h"

enum { RUNS = 4 };

static struct run runs[2][RUNS];
static const struct run *list[2][RUNS];

/* `n` runs a side, `apart` seconds from one to the next, the new side `times` slower. */
static void make(size_t n, int apart, double times)
{
    tare_error err = TARE_ERROR_INIT;
    const double noise[] = {1.0, 1.004, 0.997, 1.002};
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < n; i++) {
            struct run *r = &runs[side][i];
            int at = (int)i * apart;
            assert_int_equal(run_init(r, "bench", &err), TARE_OK);
            fixture_host(r);
            run_map_text(&r->arena, &r->config, "load", "closed");
            r->created =
                arena_printf(&r->arena, "2026-01-%02dT10:%02d:%02d.000Z", 1 + side, at / 60, at % 60);
            for (int64_t batch = 1; batch <= 4; batch += 3) {
                char name[32];
                snprintf(name, sizeof name, "batch=%d", (int)batch);
                struct run_case *c = fixture_case(r, name, batch, 1e6 * (double)batch, 50);
                double ns = 1e6 * (double)batch * noise[i] * (side ? times : 1);
                c->latency_ns.p50 =
                    run_estimate((uint64_t)ns, (uint64_t)(ns * 0.999), (uint64_t)(ns * 1.001));
                c->cpu.known = true;
                c->cpu.user_ns = known_u64((uint64_t)(ns * 50));
                c->cpu.system_ns = known_u64(0);
            }
            list[side][i] = r;
        }
}

static void unmake(size_t n)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < n; i++) run_release(&runs[side][i]);
}

static struct compare_saved ask(size_t n)
{
    return (struct compare_saved){.base = list[0],
                                  .n_base = n,
                                  .new_ = list[1],
                                  .n_new = n,
                                  .rule = BETWEEN_RULE_INIT,
                                  .apart_ms = LAUNCHES_APART_MS};
}

static tare_status compare(struct comparison *c, const struct compare_saved *in, tare_error *err)
{
    tare_status s = comparison_init(c, "saved", err);
    if (s == TARE_OK && (s = compare_saved(c, in, err)) < 0) comparison_release(c);
    return s;
}

static const struct comparison_metric *metric(const struct comparison *c, size_t i, const char *name)
{
    for (size_t k = 0; k < c->cases.at[i]->metrics.n; k++)
        if (strcmp(c->cases.at[i]->metrics.at[k]->metric, name) == 0) return c->cases.at[i]->metrics.at[k];
    fail_msg("no metric %s", name);
    return NULL;
}

static const char *verdict_of(size_t n, int apart, double times, int64_t apart_ms)
{
    static char word[32];
    struct comparison c;
    tare_error err = TARE_ERROR_INIT;
    struct buf text = BUF_INIT;
    make(n, apart, times);
    struct compare_saved in = ask(n);
    in.apart_ms = apart_ms;
    assert_int_equal(compare(&c, &in, &err), TARE_OK);
    assert_int_equal(comparison_write(&c, &text, &err), TARE_OK); /* a document that can be written */
    snprintf(word, sizeof word, "%s", c.verdict);
    buf_release(&text);
    comparison_release(&c);
    unmake(n);
    return word;
}

/* The gate's metric is unknown of the new side: a limit that cannot be read. */
static void test_a_gate_that_is_not_known_does_not_pass(void **state)
{
    (void)state;
    static const struct {
        double times;
        const char *fails, *verdict, *why;
    } rows[] = {
        {1.01, NULL, "unverified", "not known of new: 50 samples are too few"},
        {2, NULL, "unverified", "not known of new: 50 samples are too few"},
        {1000, NULL, "regressed",
         "not known of new: 50 samples are too few; but latency.p50 is at least 1,000 times as much"},
        {0.001, NULL, "unverified", "not known of new: 50 samples are too few"},
        {1, "run 1: MemoryError", "regressed", "the case failed: run 1: MemoryError"},
    };
    const struct compare_limit limits[] = {{"latency.p95", 0.05}, {"throughput", 0.05}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct comparison c;
        tare_error err = TARE_ERROR_INIT;
        struct buf text = BUF_INIT;
        make(1, 60, rows[i].times);
        for (size_t k = 0; k < 2; k++) {
            struct run_case *old = runs[0][0].cases.at[k], *new_ = runs[1][0].cases.at[k];
            old->latency_ns.p95 = run_estimate(2e6, 1.9e6, 2.1e6);
            new_->latency_ns.p95 = (struct run_estimate){0};
            run_unknown(&runs[1][0], &new_->unknown, "latency_ns.p95", "50 samples are too few");
            if (!rows[i].fails) continue;
            new_->failure = rows[i].fails;
            new_->samples.known = new_->latency_ns.known = false;
            new_->throughput.rate.known = false;
        }
        struct compare_saved in = ask(1);
        in.limits = limits;
        in.n_limits = 2;
        assert_int_equal(compare(&c, &in, &err), TARE_OK);
        assert_int_equal(comparison_write(&c, &text, &err), TARE_OK);
        const struct comparison_metric *m = metric(&c, 0, "latency.p95");
        assert_string_equal(m->role, "gate");
        assert_string_equal(m->verdict, rows[i].verdict);
        assert_string_equal(c.verdict, rows[i].verdict);
        assert_int_equal(strncmp(m->why, rows[i].why, strlen(rows[i].why)), 0);
        buf_release(&text);
        comparison_release(&c);
        unmake(1);
    }
}

/* Most arrivals were not served: only what they waited at least is known, and that is far beyond what was. Nobody named
 * a limit. */
static void test_what_was_not_served_fails_by_what_it_waited_at_least(void **state)
{
    (void)state;
    static const struct {
        int64_t at_least;
        const char *verdict;
    } rows[] = {{2000000000, "regressed"}, {1500000, "unverified"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct comparison c;
        tare_error err = TARE_ERROR_INIT;
        make(1, 60, 1);
        for (size_t k = 0; k < 2; k++) {
            struct run_case *new_ = runs[1][0].cases.at[k];
            new_->latency_ns.p50 = (struct run_estimate){0};
            run_map_int(&runs[1][0].arena, &new_->latency_ns.at_least, "p50", rows[i].at_least);
        }
        struct compare_saved in = ask(1);
        assert_int_equal(compare(&c, &in, &err), TARE_OK);
        assert_string_equal(c.verdict, rows[i].verdict);
        comparison_release(&c);
        unmake(1);
    }
}

static void test_runs_apart_judge_and_close_ones_do_not(void **state)
{
    (void)state;
    assert_string_equal(verdict_of(3, 60, 1.2, LAUNCHES_APART_MS), "regressed");
    assert_string_equal(verdict_of(3, 60, 0.8, LAUNCHES_APART_MS), "improved");
    assert_string_equal(verdict_of(4, 60, 1.0, LAUNCHES_APART_MS), "same");
    assert_string_equal(verdict_of(3, 10, 1.2, LAUNCHES_APART_MS), "unverified");
    assert_string_equal(verdict_of(3, 10, 1.2, 0), "regressed"); /* the user said they count */
    assert_string_equal(verdict_of(2, 600, 1.5, LAUNCHES_APART_MS), "unverified");
    /* far beyond what any machine does: a verdict, however few the runs and however close together */
    assert_string_equal(verdict_of(1, 0, 100, LAUNCHES_APART_MS), "regressed");
    assert_string_equal(verdict_of(3, 10, 10, LAUNCHES_APART_MS), "regressed");
    assert_string_equal(verdict_of(1, 0, 0.01, LAUNCHES_APART_MS), "improved");
}

/* Other work makes medians of one program differ up to 13 times: six are no verdict there. Where even the fastest run
 * of one side took five times what the other took, no other work explains it. */
static void test_busy_runs_are_judged_by_their_fastest(void **state)
{
    (void)state;
    static const struct {
        double times, fastest; /* of the new side's median */
        uint64_t samples;
        const char *verdict;
    } rows[] = {{6, 0.9, 500, "regressed"},
                {6, 0.4, 500, "unverified"},
                {6, 0.9, 4, "unverified"},
                {1 / 6.0, 0.9, 500, "improved"},
                {1 / 6.0, 0.4, 500, "unverified"},
                {1, 1000, 500, "unverified"}, /* no fastest run is beyond the median */
                {6, 1000, 500, "regressed"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct comparison c;
        make(1, 60, rows[i].times);
        for (int side = 0; side < 2; side++)
            for (size_t k = 0; k < 2; k++) {
                struct run_case *one = runs[side][0].cases.at[k];
                one->cpu.involuntary_switches = known_u64(1000);
                one->cpu.user_ns = known_u64(1000000); /* what it works is the same */
                one->samples = known_u64(rows[i].samples);
                one->latency_ns.min = known_u64((uint64_t)(one->latency_ns.p50.value * rows[i].fastest));
            }
        struct compare_saved in = ask(1);
        assert_int_equal(compare(&c, &in, NULL), TARE_OK);
        const struct comparison_metric *m = metric(&c, 0, "latency.p50");
        assert_string_equal(m->verdict, rows[i].verdict);
        assert_true(!m->ratio.lo.known || m->ratio.lo.v <= m->ratio.value);
        assert_true(!m->ratio.hi.known || m->ratio.hi.v >= m->ratio.value);
        assert_true(!!strstr(m->why, "even the fastest run of ") == (strcmp(m->verdict, "unverified") != 0));
        comparison_release(&c);
        unmake(1);
    }
}

/* The same for gates that were asked for by name: of a p95 that is not known, and of throughput, which cannot be more
 * than at the pace of the fastest run. Nine times as slow passed as "unverified". */
static void test_gates_take_the_fastest_run_as_well(void **state)
{
    (void)state;
    static const struct {
        double times, fastest; /* of the new side's median */
        const char *p95, *throughput;
    } rows[] = {{9, 0.9, "regressed", "regressed"},
                {9, 0.2, "unverified", "unverified"},
                {1 / 9.0, 0.9, "unverified", "improved"}};
    const struct compare_limit limits[] = {{"latency.p95", 0.05}, {"throughput", 0.05}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct comparison c;
        make(1, 60, rows[i].times);
        for (int side = 0; side < 2; side++)
            for (size_t k = 0; k < 2; k++) {
                struct run_case *one = runs[side][0].cases.at[k];
                double ns = one->latency_ns.p50.value;
                one->cpu.involuntary_switches = known_u64(1000);
                one->samples = known_u64(500);
                one->latency_ns.min = known_u64((uint64_t)(ns * rows[i].fastest));
                one->latency_ns.mean = known_u64((uint64_t)(ns * 1.05));
                one->latency_ns.p95 = (struct run_estimate){0};
                one->throughput.rate = (struct run_estimate){.known = true, .value = 1e9 / (ns * 1.05)};
            }
        struct compare_saved in = ask(1);
        in.limits = limits;
        in.n_limits = 2;
        assert_int_equal(compare(&c, &in, NULL), TARE_OK);
        const struct comparison_metric *p95 = metric(&c, 0, "latency.p95"),
                                       *rate = metric(&c, 0, "throughput");
        assert_string_equal(p95->verdict, rows[i].p95);
        assert_string_equal(rate->verdict, rows[i].throughput);
        bool worse = strcmp(rows[i].p95, "regressed") == 0;
        assert_true(!!strstr(p95->why, "; but even the fastest run of new took ") == worse);
        assert_true(!!strstr(rate->why, "even at the pace of its fastest run ") ==
                    (strcmp(rows[i].throughput, "unverified") != 0));
        comparison_release(&c);
        unmake(1);
    }
}

static tare_status nine_before(void *ctx, const char *case_name, const char *name, struct compare_series *out,
                               tare_error *err)
{
    const int64_t *apart_ms = ctx;
    (void)err;
    assert_true(case_name[0] && name[0]);
    for (out->n = 0; out->n < 9; out->n++)
        out->at[out->n] =
            (struct compare_moment){(int64_t)out->n * *apart_ms, 14 + 0.003 * ((double)(out->n * 5 % 9) - 4)};
    return TARE_OK;
}

static void test_the_past_judges_single_runs(void **state)
{
    (void)state;
    struct comparison c;
    make(1, 0, 1.5);
    struct compare_saved in = ask(1);
    int64_t apart_ms = LAUNCHES_APART_MS;
    in.past = (struct compare_past){nine_before, &apart_ms};
    assert_int_equal(compare(&c, &in, NULL), TARE_OK);
    const struct comparison_metric *m = metric(&c, 0, "latency.p50");
    assert_string_equal(m->method, "history");
    assert_string_equal(m->verdict, "regressed");
    assert_string_equal(m->role, "gate");
    assert_true(m->mde.known && m->mde.v > 0.02 && m->p_value.v < 0.01);
    assert_string_equal(metric(&c, 0, "latency.mean")->role, "advisory");
    comparison_release(&c);
    unmake(1);
}

/* Nine runs in a minute know nothing of the next hour. */
static void test_a_past_of_one_moment_judges_nothing(void **state)
{
    (void)state;
    struct comparison c;
    make(1, 0, 1.5);
    struct compare_saved in = ask(1);
    int64_t apart_ms = LAUNCHES_APART_MS - 1;
    in.past = (struct compare_past){nine_before, &apart_ms};
    assert_int_equal(compare(&c, &in, NULL), TARE_OK);
    const struct comparison_metric *m = metric(&c, 0, "latency.p50");
    assert_string_equal(m->verdict, "unverified");
    assert_non_null(strstr(m->why, "1 earlier (closer than 30 s is one)"));
    comparison_release(&c);
    in.apart_ms = 0; /* the user said they count */
    assert_int_equal(compare(&c, &in, NULL), TARE_OK);
    assert_string_equal(metric(&c, 0, "latency.p50")->verdict, "regressed");
    comparison_release(&c);
    unmake(1);
}

static void test_limits_choose_what_fails(void **state)
{
    (void)state;
    struct comparison c;
    struct compare_limit limits[2];
    assert_int_equal(compare_limit_parse(&limits[0], "latency.p50 > 30 %", NULL, NULL), TARE_OK);
    assert_int_equal(compare_limit_parse(&limits[1], "memory.delta", NULL, NULL), TARE_OK);
    assert_true(limits[0].share > 0.299 && limits[0].share < 0.301 && isnan(limits[1].share));
    make(3, 60, 1.2);
    struct compare_saved in = ask(3);
    in.limits = limits;
    in.n_limits = 1;
    assert_int_equal(compare(&c, &in, NULL), TARE_OK);
    assert_string_equal(c.verdict, "same"); /* within the limit, and cpu.time no longer fails it */
    assert_string_equal(metric(&c, 0, "cpu.time")->role, "advisory");
    assert_string_equal(metric(&c, 0, "cpu.time")->verdict, "regressed");
    comparison_release(&c);
    limits[0].share = 0.1;
    assert_int_equal(compare(&c, &in, NULL), TARE_OK);
    assert_string_equal(c.verdict, "regressed");
    comparison_release(&c);
    unmake(3);
    const char *const bad[] = {"",
                               ">5%",
                               "latency.p95",
                               "latency.p95>",
                               "latency.p95>5ms",
                               "latency.p95>-5%",
                               "latency.p95>nan%",
                               "latency.p95=5%",
                               "none>5%",
                               "latency.p95>1e9%"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tare_error err = TARE_ERROR_INIT;
        tare_status s = compare_limit_parse(&limits[0], bad[i], NULL, &err);
        assert_int_equal(s, i == 2 ? TARE_OK : TARE_INVALID);
        assert_true(i == 2 || err.text[0]);
    }
}

static void test_cases_match_by_name_then_by_params(void **state)
{
    (void)state;
    struct comparison c;
    make(3, 60, 1.0);
    for (int i = 0; i < 3; i++) {
        runs[1][i].cases.at[0]->name = "renamed"; /* same parameters */
        runs[1][i].cases.at[1]->name = "new one";
        run_map_int(&runs[1][i].arena, &runs[1][i].cases.at[1]->params, "batch", 9);
    }
    struct compare_saved in = ask(3);
    assert_int_equal(compare(&c, &in, NULL), TARE_OK);
    assert_int_equal(c.cases.n, 1);
    assert_string_equal(c.cases.at[0]->name, "renamed");
    assert_int_equal(c.unmatched.n, 2);
    assert_string_equal(c.unmatched.at[0]->side, "new");
    assert_string_equal(c.unmatched.at[1]->name, "batch=4");
    comparison_release(&c);
    for (int i = 0; i < 3; i++) run_map_int(&runs[1][i].arena, &runs[1][i].cases.at[0]->params, "batch", 7);
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(compare(&c, &in, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "no case in common"));
    unmake(3);
}

/* batch=1 is still there: another case with its parameters is a new one, not that one under a new name. */
static void test_a_case_that_is_still_there_was_not_renamed(void **state)
{
    (void)state;
    struct comparison c;
    make(1, 60, 1.0);
    runs[1][0].cases.at[1]->name = "another";
    run_map_int(&runs[1][0].arena, &runs[1][0].cases.at[1]->params, "batch", 1);
    struct compare_saved in = ask(1);
    assert_int_equal(compare(&c, &in, NULL), TARE_OK);
    assert_int_equal(c.cases.n, 1);
    assert_string_equal(c.cases.at[0]->name, "batch=1");
    assert_int_equal(c.unmatched.n, 2);
    assert_string_equal(c.unmatched.at[0]->name, "another");
    comparison_release(&c);
    unmake(1);
}

static void test_numbers_at_the_edge_are_written(void **state)
{
    (void)state;
    struct comparison c;
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    make(3, 60, 1.0);
    for (int i = 0; i < 3; i++) {
        runs[0][i].cases.at[0]->throughput.rate = (struct run_estimate){.known = true, .value = 5e-324};
        runs[1][i].cases.at[0]->throughput.rate = (struct run_estimate){.known = true, .value = 1e308};
    }
    runs[1][0].cases.at[0]->throughput.rate.value = 1e-308;
    for (size_t n = 1; n <= 3; n += 2) {
        struct compare_saved in = ask(n);
        if (n == 1) in.new_ = &list[1][1];
        assert_int_equal(compare(&c, &in, &err), TARE_OK);
        assert_int_equal(comparison_write(&c, &text, &err), TARE_OK);
        comparison_release(&c);
        buf_clear(&text);
    }
    buf_release(&text);
    runs[1][0].cases.at[0]->throughput.unit = "other/s";
    struct compare_saved in = ask(3);
    assert_int_equal(compare(&c, &in, &err), TARE_DENIED);
    assert_non_null(strstr(err.text, "throughput.unit"));
    unmake(3);
}

static void test_surroundings(void **state)
{
    (void)state;
    struct comparison c;
    tare_error err = TARE_ERROR_INIT;
    make(3, 60, 1.2);
    struct compare_saved in = ask(3);
    runs[1][1].host.kernel = "6.1";
    assert_int_equal(compare(&c, &in, &err), TARE_OK);
    assert_int_equal(c.differences.n, 1);
    assert_string_equal(c.differences.at[0]->what, "host.kernel");
    assert_string_equal(c.differences.at[0]->severity, "warn");
    assert_string_equal(c.differences.at[0]->new_, "unknown or 6.1");
    comparison_release(&c);
    runs[1][2].host.cpu.model = "Other CPU";
    assert_int_equal(compare(&c, &in, &err), TARE_DENIED);
    assert_non_null(strstr(err.text, "Some CPU or Other CPU"));
    in.force = true;
    assert_int_equal(compare(&c, &in, &err), TARE_OK);
    assert_non_null(environment_critical(&c));
    comparison_release(&c);
    in.force = false;
    runs[1][2].host.cpu.model = "Some CPU";
    for (int i = 0; i < 3; i++) runs[1][i].cases.at[0]->unit = "images";
    assert_int_equal(compare(&c, &in, &err), TARE_DENIED);
    assert_non_null(strstr(err.text, "unit"));
    unmake(3);
}

/* ---- launches ---- */

static void test_launches_become_one_document(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct buf text = BUF_INIT;
    const uint64_t pads[] = {1, 2, 3};
    make(3, 40, 1);
    struct launches_more more = {&list[0][1], 2, pads};
    assert_int_equal(launches_pool(&runs[0][0], &more, &err), TARE_OK);
    const struct run_case *c = runs[0][0].cases.at[0];
    assert_int_equal(c->launches.n, 3);
    assert_int_equal(c->samples.v, 150);
    assert_int_equal(c->samples_raw.n, 150);
    assert_int_equal(c->latency_ns.p50.value, 1000000); /* the median of 1, 1.004 and 0.997 ms */
    assert_true(c->latency_ns.p50.lo.v < 997000 && c->latency_ns.p50.hi.v > 1004000);
    assert_int_equal(c->launches.at[2]->env_pad.v, 3);
    struct launches_spread s = launches_spread(c);
    assert_int_equal(s.apart_ms, 40000);
    assert_true(s.between > 0.003 && s.between < 0.004 && s.within < s.between);
    assert_int_equal(run_write(&runs[0][0], &text, &err), TARE_OK);
    struct run again;
    assert_int_equal(run_read(&again, "again", text.data, text.len, &err), TARE_OK);
    assert_int_equal(again.cases.at[1]->launches.n, 3);
    run_map_int(&again.arena, &again.config, "more", 1); /* what was read can be added to */
    buf_clear(&text);
    assert_int_equal(run_write(&again, &text, &err), TARE_OK);
    assert_int_equal(findings_add(&again, &err), TARE_OK);
    assert_non_null(fixture_finding(&again, "launches.spread"));
    assert_null(fixture_finding(&again, "launches.close"));
    run_release(&again);
    buf_release(&text);
    struct comparison cmp;
    struct compare_saved in = ask(3);
    in.n_base = 1; /* one document of three launches */
    assert_int_equal(compare(&cmp, &in, &err), TARE_OK);
    assert_string_equal(metric(&cmp, 0, "latency.p50")->method, "runs");
    comparison_release(&cmp);
    unmake(3);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct comparison c;
    make(3, 60, 1.1);
    struct compare_saved in = ask(3);
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        tare_status s = compare(&c, &in, &err);
        mem_fail_after(-1);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
        assert_true(n < 100000);
    }
    comparison_release(&c);
    unmake(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gate_that_is_not_known_does_not_pass),
        cmocka_unit_test(test_what_was_not_served_fails_by_what_it_waited_at_least),
        cmocka_unit_test(test_runs_apart_judge_and_close_ones_do_not),
        cmocka_unit_test(test_busy_runs_are_judged_by_their_fastest),
        cmocka_unit_test(test_gates_take_the_fastest_run_as_well),
        cmocka_unit_test(test_the_past_judges_single_runs),
        cmocka_unit_test(test_a_past_of_one_moment_judges_nothing),
        cmocka_unit_test(test_limits_choose_what_fails),
        cmocka_unit_test(test_cases_match_by_name_then_by_params),
        cmocka_unit_test(test_a_case_that_is_still_there_was_not_renamed),
        cmocka_unit_test(test_numbers_at_the_edge_are_written),
        cmocka_unit_test(test_surroundings),
        cmocka_unit_test(test_launches_become_one_document),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
