/* SPDX-License-Identifier: MIT
 * test_queue.c - the simulated queue against the formulas that are known exactly: M/M/1, M/M/c (Erlang
 * C), M/D/1; then plans: the fewest replicas, what breaks, what is impossible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "analyze/judge/queue.h"
#include "core/mem.h"
#include "run_fixture.h"

#include <cmocka.h>

enum { N = 20000 };
static double exponential[N]; /* quantiles of the exponential distribution with mean 1 ms */

static void fill(void)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++) sum += exponential[i] = -log(((double)i + 0.5) / N);
    for (size_t i = 0; i < N; i++) exponential[i] *= 1e6 * N / sum;
}

static struct queue_result simulate(const double *service, size_t n, double rate, uint32_t servers,
                                    double quantile)
{
    struct queue_load load = {service, n, rate, quantile, 42};
    struct queue_result r;
    tare_error err = TARE_ERROR_INIT;
    if (queue_simulate(&load, servers, &r, &err) < 0) fail_msg("%s", err.text);
    return r;
}

static void near(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got / want - 1) <= tolerance)) fail_msg("%s: %g, expected %g", what, got, want);
}

/* ---- formulas ---- */

/* M/M/1: the response time is exponential with mean s / (1 - rho). */
static void test_mm1(void **state)
{
    static const double rhos[] = {0.3, 0.6, 0.8, 0.9};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        double rho = rhos[i], mean = 1e6 / (1 - rho);
        struct queue_result m = simulate(exponential, N, rho * 1000, 1, 0);
        near(m.utilization, rho, 1e-9, "utilisation");
        near(m.response_ns, mean, 0.05, "M/M/1 mean");
        near(m.wait_mean_ns, mean - 1e6, 0.07, "M/M/1 wait");
        struct queue_result q = simulate(exponential, N, rho * 1000, 1, 0.95);
        near(q.response_ns, -log(0.05) * mean, 0.06, "M/M/1 p95");
        assert_true(q.lo <= q.response_ns && q.response_ns <= q.hi);
        assert_true(m.lo < mean * 1.02 && m.hi > mean * 0.98);
    }
}

/* Busy replicas: p99 of M/M/1 is ln(100) s / (1 - rho). The mean of a batch's own p99 was 25 % too low at 0.95, and its
 * interval never held the truth. */
static void test_busy_replicas(void **state)
{
    double truth = log(100) * 1e6 / 0.05, sum = 0;
    size_t held = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct queue_load load = {exponential, N, 950, 0.99, seed};
        struct queue_result r;
        assert_int_equal(queue_simulate(&load, 1, &r, NULL), TARE_OK);
        sum += r.response_ns / 6;
        held += r.lo <= truth && truth <= r.hi;
    }
    near(sum, truth, 0.08, "M/M/1 p99 at 0.95");
    assert_true(held >= 5);
    struct queue_result full = simulate(exponential, N, 998, 1, 0.99); /* no simulation is long enough */
    assert_true(isinf(full.hi) && full.utilization < 1);
}

static double erlang_c(double servers, double offered)
{
    double b = 1;
    for (double k = 1; k <= servers; k++) b = offered * b / (k + offered * b);
    return b / (1 - offered / servers * (1 - b));
}

/* M/M/c: mean wait = C s / (c - a). */
static void test_mmc(void **state)
{
    static const struct {
        uint32_t servers;
        double rho;
    } rows[] = {{2, 0.5}, {2, 0.8}, {4, 0.7}, {8, 0.9}, {64, 0.95}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double c = rows[i].servers, a = c * rows[i].rho;
        struct queue_result r = simulate(exponential, N, a * 1000, rows[i].servers, 0);
        near(r.wait_mean_ns, erlang_c(c, a) * 1e6 / (c - a), 0.1, "Erlang C wait");
    }
}

/* M/D/1: mean wait = rho s / (2 (1 - rho)): half of M/M/1. */
static void test_md1(void **state)
{
    static const double rhos[] = {0.3, 0.6, 0.8, 0.9}, fixed[] = {1e6};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct queue_result r = simulate(fixed, 1, rhos[i] * 1000, 1, 0);
        near(r.wait_mean_ns, rhos[i] * 1e6 / (2 * (1 - rhos[i])), 0.06, "M/D/1 wait");
    }
}

static void test_limits(void **state)
{
    static const double fixed[] = {1e6};
    (void)state;
    struct queue_result over = simulate(fixed, 1, 1000, 1, 0.95);
    assert_true(isinf(over.response_ns) && over.utilization == 1);
    struct queue_result idle = simulate(fixed, 1, 0.001, 1, 0.99);
    near(idle.response_ns, 1e6, 1e-9, "no waiting");
    assert_true(idle.wait_mean_ns < 100);
    struct queue_result a = simulate(exponential, N, 500, 1, 0.95),
                        b = simulate(exponential, N, 500, 1, 0.95);
    assert_true(a.response_ns == b.response_ns); /* seeded */
    double two[] = {1e6, -1};
    struct queue_load bad[] = {
        {two, 0, 1, 0, 1}, {two, 1, 0, 0, 1}, {two, 2, 1, 0, 1}, {two, 1, 1, 1, 1}, {two, 1, NAN, 0, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(queue_simulate(&bad[i], 1, &a, NULL), TARE_INVALID);
}

/* ---- plans ---- */

static struct queue_plan plan(struct queue_load load, struct queue_goal goal)
{
    struct queue_plan p;
    tare_error err = TARE_ERROR_INIT;
    if (queue_plan(&load, &goal, &p, &err) < 0) fail_msg("%s", err.text);
    return p;
}

/* M/M/1 keeps p95 <= L up to the rate 1000 - 3 / L; check both sides of it, and the breaking point. */
static void test_fewest_servers(void **state)
{
    struct queue_load load = {exponential, N, 600, 0.95, 7}; /* p95 at one server: 7.5 ms */
    (void)state;
    struct queue_plan p = plan(load, (struct queue_goal){.limit_ns = 9e6});
    assert_true(p.possible && p.servers == 1);
    near(p.breaks_at, 1000 - -log(0.05) * 1000 / 9, 0.06, "breaking rate");
    near(p.saturates_at, 1000, 1e-6, "saturation");
    assert_true(p.at_rate.hi <= 9e6);
    p = plan(load, (struct queue_goal){.limit_ns = 6e6});
    assert_true(p.possible && p.servers == 2);
    p = plan(load,
             (struct queue_goal){.limit_ns = 9e6, .headroom = 0.3}); /* 780/s: p95 at one server is 13.6 ms */
    assert_true(p.possible && p.servers == 2);
    assert_true(p.breaks_at >= 780);
    load.rate = 950;
    load.quantile = 0.99; /* 92 ms at one server */
    p = plan(load, (struct queue_goal){.limit_ns = 85e6});
    assert_true(p.possible && p.servers == 2);
}

static void test_many_servers(void **state)
{
    struct queue_load load = {exponential, N, 100000, 0.95, 7}; /* offered load 100 */
    (void)state;
    struct queue_plan p = plan(load, (struct queue_goal){.limit_ns = 4e6});
    assert_true(p.possible && p.servers > 100 && p.servers < 125);
    struct queue_result fewer = simulate(exponential, N, 100000, p.servers - 1, 0.95);
    assert_true(p.at_rate.hi <= 4e6 && (p.servers == 101 || fewer.hi > 3.9e6));
}

static void test_impossible(void **state)
{
    struct queue_load load = {exponential, N, 1, 0.95, 7};
    (void)state;
    struct queue_plan p = plan(load, (struct queue_goal){.limit_ns = 2e6}); /* p95 of one run: 3 ms */
    assert_false(p.possible);
    assert_non_null(strstr(p.why_not, "a single run"));
    load.rate = 1e9;
    p = plan(load, (struct queue_goal){.limit_ns = 1e9});
    assert_false(p.possible);
    assert_non_null(strstr(p.why_not, "more replicas"));
    double zero[] = {0};
    struct queue_load nothing = {zero, 1, 1, 0.95, 1};
    struct queue_goal goal = {.limit_ns = 1};
    assert_int_equal(queue_plan(&nothing, &goal, &p, NULL), TARE_INVALID);
}

/* ---- from a document ---- */

static struct capacity capacity(const struct run *r, size_t i, const char *rate, const char *limit,
                                double headroom)
{
    struct capacity_goal goal = {.headroom = headroom, .seed = 1};
    struct capacity out;
    tare_error err = TARE_ERROR_INIT;
    if (target_parse_rate(&goal.rate, goal.rate_unit, rate, &err) < 0 ||
        target_parse(&goal.limit, limit, &err) < 0 || capacity_check_limit(&goal.limit, &err) < 0 ||
        capacity_plan(&out, r, r->cases.at[i], &goal, &err) < 0)
        fail_msg("%s", err.text);
    return out;
}

static void test_capacity(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    struct capacity requests = capacity(&r, 2, "20/s", "p95<=600ms", 0),
                    units = capacity(&r, 2, "160texts/s", "p95<=600ms", 0);
    assert_true(requests.requests == 20 && units.requests == 20);
    assert_int_equal(requests.plan.servers, units.plan.servers);
    assert_true(requests.plan.possible && requests.plan.servers >= 4);
    assert_true(requests.machines.known && requests.machines.v == requests.plan.servers);
    assert_string_equal(requests.machines_by, "processors");
    r.host.memory_bytes = known_u64(r.cases.at[2]->memory.rss_peak.v * 2); /* one fits; threads allow two */
    run_map_int(&r.arena, &r.cases.at[2]->params, "threads", 1);
    struct capacity tight = capacity(&r, 2, "20/s", "p95<=600ms", 0);
    assert_string_equal(tight.machines_by, "memory");
    assert_true(capacity(&r, 0, "20/s", "p95<=600ms", 0).unusable == NULL);
    assert_non_null(strstr(capacity(&r, 0, "20pairs/s", "p95<=600ms", 0).unusable, "something else"));
    assert_false(requests.few_samples); /* 10 of 200 beyond p95 */
    assert_true(capacity(&r, 2, "20/s", "p99<=600ms", 0).few_samples);
    r.cases.at[0]->samples_raw.n = 5;
    assert_non_null(strstr(capacity(&r, 0, "20/s", "p95<=600ms", 0).unusable, "fewer than 20"));
    run_map_text(&r.arena, &r.config, "load", "open");
    assert_non_null(strstr(capacity(&r, 2, "20/s", "mean<=600ms", 0).unusable, "open-loop"));
    run_release(&r);
}

static void test_no_memory(void **state)
{
    struct queue_load load = {exponential, 100, 100, 0, 7};
    struct queue_goal goal = {.limit_ns = 9e6};
    struct queue_plan p;
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        mem_fail_after(n);
        tare_status s = queue_plan(&load, &goal, &p, NULL);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mm1),           cmocka_unit_test(test_mmc),
        cmocka_unit_test(test_busy_replicas),
        cmocka_unit_test(test_md1),           cmocka_unit_test(test_limits),
        cmocka_unit_test(test_fewest_servers), cmocka_unit_test(test_many_servers),
        cmocka_unit_test(test_impossible),    cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_no_memory),
    };
    fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
