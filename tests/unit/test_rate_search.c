/* SPDX-License-Identifier: MIT
 * test_rate_search.c - the search for the highest rate, against services of which the answer is known: a sharp limit,
 * a doubtful one, one that changes, one beyond what the client can offer; and against M/M/4, whose answer is a
 * formula. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "analyze/judge/rate_search.h"
#include "core/rng.h"
#include "run_fixture.h"

#include <cmocka.h>

/* ---- steps ---- */

static void test_steps(void **state)
{
    (void)state;
    assert_true(rate_of_step(0) == 1 && rate_of_step(16) == 2 &&
                rate_of_step(160) == 1020); /* three digits */
    assert_true(rate_of_step(-16) == 0.5);
    for (int k = -112; k < 320; k++) {
        double ratio = rate_of_step(k + 1) / rate_of_step(k);
        assert_true(ratio > 1.035 && ratio < 1.055);
        assert_int_equal(step_of_rate(rate_of_step(k)), k);
        assert_int_equal(step_of_rate(rate_of_step(k) * 1.01), k);
    }
    assert_int_equal(step_of_rate(0), -112);
    assert_int_equal(step_of_rate(1e12), 320);
}

/* ---- the search ---- */

/* Kept below `limit`. Within `doubt` of it no window is sure. */
struct service {
    double limit, doubt, most; /* most: what this client can offer; 0: anything */
    double later;              /* the limit after the 8th window; 0: it stays */
};

static struct rate_search search(const struct service *of, double start, unsigned *windows)
{
    struct rate_search s;
    rate_search_begin(&s, start, 0.01);
    for (*windows = 0; s.stage != RATE_DONE; ++*windows) {
        double rate = rate_of_step(s.at), limit = of->later > 0 && *windows >= 8 ? of->later : of->limit;
        assert_in_range(*windows, 0, 60);
        assert_true(rate_search_left(&s) > 0);
        if (of->most > 0 && rate > of->most)
            rate_search_limit(&s);
        else
            rate_search_tell(&s, (struct rate_told){fabs(rate / limit - 1) >= of->doubt, rate <= limit});
    }
    assert_int_equal(rate_search_left(&s), 0);
    return s;
}

static void test_sharp(void **state)
{
    static const double limits[] = {0.7, 3, 42, 700, 12345, 99999}, starts[] = {0.1, 1, 50, 700, 1e5};
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < 5; k++) {
            unsigned windows;
            struct service of = {.limit = limits[i]};
            struct rate_search s = search(&of, starts[k], &windows);
            assert_true(s.has_passed && s.has_failed && !rate_search_why(&s));
            assert_int_equal(s.failed, s.passed + 1);
            assert_true(rate_of_step(s.passed) <= of.limit && rate_of_step(s.failed) > of.limit);
        }
    }
}

/* What is not sure moves the ends apart, and never into the doubt. */
static void test_doubtful(void **state)
{
    (void)state;
    for (double doubt = 0.01; doubt < 0.13; doubt += 0.01) {
        unsigned windows;
        struct service of = {.limit = 700, .doubt = doubt};
        struct rate_search s = search(&of, 100, &windows);
        assert_true(s.has_passed && s.has_failed);
        assert_true(rate_of_step(s.passed) <= 700 * (1 - doubt) &&
                    rate_of_step(s.failed) >= 700 * (1 + doubt));
        assert_true(rate_of_step(s.failed) / rate_of_step(s.passed) < (1 + doubt) / (1 - doubt) * 1.15);
    }
    unsigned windows;
    struct rate_search never = search(&(struct service){.limit = 700, .doubt = 0.5}, 100, &windows);
    assert_true(!never.has_passed && !never.has_failed);
    assert_string_equal(rate_search_why(&never),
                        "windows of this length did not decide it: measure longer (--budget), "
                        "or ask a lower percentile");
}

static void test_ends(void **state)
{
    unsigned windows;
    (void)state;
    struct rate_search none = search(&(struct service){.limit = 1e-9}, 100, &windows);
    assert_true(!none.has_passed && none.has_failed);
    assert_string_equal(rate_search_why(&none), "no rate that was tried keeps the limits");
    struct rate_search all = search(&(struct service){.limit = 1e12}, 100, &windows);
    assert_true(all.has_passed && !all.has_failed);
    struct rate_search client = search(&(struct service){.limit = 5000, .most = 900}, 100, &windows);
    assert_true(client.has_passed && !client.has_failed && client.limited);
    assert_true(rate_of_step(client.passed) <= 900 && rate_of_step(client.passed) >= 400);
    struct rate_search weak = search(&(struct service){.limit = 5000, .most = 10}, 100, &windows);
    assert_true(!weak.has_passed && weak.limited);
    assert_string_equal(rate_search_why(&weak), "this client was at its limit: it cannot offer more");
}

/* What was sure and is contradicted later is taken back: passed is below failed, always. */
static void test_changes(void **state)
{
    (void)state;
    for (double later = 200; later < 1500; later *= 1.07) {
        unsigned windows;
        struct rate_search s = search(&(struct service){.limit = 700, .later = later}, 100, &windows);
        if (s.has_passed && s.has_failed) assert_true(s.passed < s.failed);
        if (s.has_passed) assert_true(rate_of_step(s.passed) <= later);
    }
}

/* ---- windows and verdicts, with a queue of known answer ---- */

static struct rate_limits limits_of(const char *text)
{
    struct rate_limits l = {.n = 1};
    tare_error err = TARE_ERROR_INIT;
    if (target_parse(&l.of[0], text, &err) < 0) fail_msg("%s", err.text);
    return l;
}

static void test_windows(void **state)
{
    (void)state;
    struct rate_limits l = limits_of("p99<=200ms");
    assert_true(fabs(rate_window_ns(&l, 1000, true) - 4e9) < 1); /* twenty times the limit */
    assert_true(fabs(rate_window_ns(&l, 1000, false) - 0.8e9) < 1);
    assert_true(fabs(rate_window_ns(&l, 10, true) - 50e9) < 1e3); /* 500 requests */
    l = limits_of("ttft.p95<=1ms");
    assert_true(fabs(rate_window_ns(&l, 10, true) - 10e9) < 1e3);
    l = limits_of("goodput>=90%");
    assert_true(fabs(rate_window_ns(&l, 10, true) - 5e9) < 1e3);
}

enum { SERVERS = 4, ROOM = 20000 };

/* One window of M/M/4, a tenth after it began empty: mean service 5 ms. */
static void queue_case(struct rng *rng, double rate, double window_s, struct run *run)
{
    static uint64_t ns[ROOM];
    double now = -window_s / 10, free_at[SERVERS] = {-1e9, -1e9, -1e9, -1e9};
    size_t n = 0;
    while (n < ROOM) {
        now += -log1p(-rng_unit(rng)) / rate;
        if (now > window_s) break;
        size_t first = 0;
        for (size_t i = 1; i < SERVERS; i++)
            if (free_at[i] < free_at[first]) first = i;
        free_at[first] = fmax(now, free_at[first]) - log1p(-rng_unit(rng)) * 0.005;
        ns[n] = (uint64_t)((free_at[first] - now) * 1e9);
        n += now > 0;
    }
    struct run_case *c = run_add_case(run, "q");
    c->samples = known_u64(n);
    c->http.due = c->http.answered = known_u64(n);
    run_set_samples(run, c, ns, n, "all");
}

static struct rate_told told_at(struct rng *rng, double rate, double window_s, const char *limit)
{
    struct run run = {0};
    struct rate_told t;
    struct rate_limits l = limits_of(limit);
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    queue_case(rng, rate, window_s, &run);
    assert_int_equal(rate_judge(&l, run.cases.at[0], &t, NULL), TARE_OK);
    run_release(&run);
    return t;
}

/* p99 of the time in the system is 50 ms at 700.2/s, by the formula of Erlang. Windows of 10 s may not say the
 * opposite surely in more than a twentieth of the time; and they do decide, 5 % off. */
static void test_mm4(void **state)
{
    enum { TRIALS = 200 };
    struct rng rng;
    (void)state;
    rng_seed(&rng, 7);
    unsigned wrong_pass = 0, wrong_fail = 0, pass_below = 0, fail_above = 0;
    for (int i = 0; i < TRIALS; i++) {
        struct rate_told at = told_at(&rng, 715, 10, "p99<=50ms"); /* 2 % above */
        wrong_pass += at.surely && at.kept;
        at = told_at(&rng, 686, 10, "p99<=50ms");
        wrong_fail += at.surely && !at.kept;
        at = told_at(&rng, 640, 10, "p99<=50ms");
        pass_below += at.surely && at.kept;
        at = told_at(&rng, 790, 10, "p99<=50ms");
        fail_above += at.surely && !at.kept;
    }
    if (wrong_pass > TRIALS / 8 || wrong_fail > TRIALS / 8)
        fail_msg("of %d: %u wrong passes, %u wrong fails", (int)TRIALS, wrong_pass, wrong_fail);
    if (pass_below < TRIALS / 2 || fail_above < TRIALS * 3 / 4)
        fail_msg("of %d: %u passes below, %u fails above", (int)TRIALS, pass_below, fail_above);
}

/* ---- what is not the service's ---- */

static void test_client_late(void **state)
{
    struct run run = {0};
    struct rate_limits l = limits_of("p99<=50ms");
    (void)state;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "late");
    assert_false(rate_client_late(&l, c)); /* not known */
    c->http.delay_ns = (struct run_latency){.known = true, .p99 = run_estimate(20e6, 19e6, 21e6)};
    c->http.service_ns = (struct run_latency){.known = true, .p99 = run_estimate(40e6, 39e6, 41e6)};
    assert_true(rate_client_late(&l, c));
    c->http.service_ns.p99 = run_estimate(60e6, 59e6, 61e6); /* too slow even from when it was sent */
    assert_false(rate_client_late(&l, c));
    c->http.service_ns.p99 = run_estimate(40e6, 39e6, 41e6);
    c->http.delay_ns.p99 = run_estimate(1e6, 1e6, 1e6);
    assert_false(rate_client_late(&l, c));
    run_release(&run);
}

static void test_nothing_answered(void **state)
{
    struct run run = {0};
    struct rate_limits l = limits_of("p99<=50ms");
    struct rate_told t;
    (void)state;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "dead");
    c->failure = "timeout";
    assert_int_equal(rate_judge(&l, c, &t, NULL), TARE_OK);
    assert_true(t.surely && !t.kept);
    run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),   cmocka_unit_test(test_sharp),       cmocka_unit_test(test_doubtful),
        cmocka_unit_test(test_ends),    cmocka_unit_test(test_changes),     cmocka_unit_test(test_windows),
        cmocka_unit_test(test_mm4),     cmocka_unit_test(test_client_late), cmocka_unit_test(test_nothing_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
