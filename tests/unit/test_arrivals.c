/* SPDX-License-Identifier: MIT
 * test_arrivals.c - moments made: their rate, their spread, their order, the same for the same seed; moments replayed
 * from logs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "load/arrivals.h"

#define S UINT64_C(1000000000)

static const struct arrivals usual = {.rate = 1000, .window_ns = 100 * S, .seed = 5};

static struct moments made(enum load_arrivals kind)
{
    struct moments m = {VEC_INIT};
    struct arrivals a = usual;
    a.kind = kind;
    assert_int_equal(arrivals_make(&a, &m, NULL), TARE_OK);
    for (size_t i = 1; i < m.at.n; i++) assert_true(m.at.items[i] >= m.at.items[i - 1]);
    assert_true(m.at.items[m.at.n - 1] < a.window_ns);
    return m;
}

/* Standard deviation of gaps / their mean. */
static double spread(const struct moments *m)
{
    double sum = 0, squares = 0, n = (double)m->at.n - 1;
    for (size_t i = 1; i < m->at.n; i++) {
        double gap = (double)(m->at.items[i] - m->at.items[i - 1]);
        sum += gap;
        squares += gap * gap;
    }
    return sqrt(squares / n - sum * sum / n / n) / (sum / n);
}

static void rates_and_spreads(void **state)
{
    struct moments m = made(ARRIVALS_CONSTANT);
    assert_int_equal(m.at.n, 100000);
    assert_int_equal(m.at.items[77777], 77777 * UINT64_C(1000000));
    vec_release(&m.at);
    m = made(ARRIVALS_POISSON);
    assert_true(fabs((double)m.at.n - 1e5) < 5 * 316);
    assert_true(fabs(spread(&m) - 1) < 0.03);
    vec_release(&m.at);
    m = made(ARRIVALS_BURSTY);
    assert_true(fabs((double)m.at.n - 1e5) < 5 * 316 * BURSTY_CV);
    assert_true(fabs(spread(&m) - BURSTY_CV) < 0.2);
    vec_release(&m.at);
    (void)state;
}

static void ramp_rises(void **state)
{
    struct moments m = made(ARRIVALS_RAMP);
    double tenth[10] = {0}, whole = 1e5 * (1 + RAMP_START) / 2;
    assert_true(fabs((double)m.at.n - whole) < 5 * 316);
    for (size_t i = 0; i < m.at.n; i++) tenth[m.at.items[i] / (10 * S)]++;
    for (int i = 0; i < 10; i++) {
        double want = 1e4 * (RAMP_START + (1 - RAMP_START) * (i + 0.5) / 10);
        assert_true(fabs(tenth[i] - want) < 5 * sqrt(want));
    }
    vec_release(&m.at);
    (void)state;
}

static void the_same_for_the_same_seed(void **state)
{
    struct moments a = made(ARRIVALS_BURSTY), b = made(ARRIVALS_BURSTY);
    assert_int_equal(a.at.n, b.at.n);
    assert_memory_equal(a.at.items, b.at.items, a.at.n * sizeof *a.at.items);
    vec_release(&a.at);
    vec_release(&b.at);
    (void)state;
}

static void no_more_than_asked_for(void **state)
{
    struct moments m = {VEC_INIT};
    const struct arrivals ten = {.kind = ARRIVALS_POISSON, .rate = 1000, .window_ns = S, .most = 10};
    assert_int_equal(arrivals_make(&ten, &m, NULL), TARE_OK);
    assert_int_equal(m.at.n, 10);
    vec_release(&m.at);
    (void)state;
}

static void refused(void **state)
{
    struct moments m = {VEC_INIT};
    tare_error err = TARE_ERROR_INIT;
    const struct arrivals bad[] = {
        {.rate = 0, .window_ns = S}, {.rate = NAN, .window_ns = S}, {.rate = 1e9, .window_ns = S}};
    for (size_t i = 0; i < 3; i++) assert_int_equal(arrivals_make(&bad[i], &m, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "lower the rate"));
    vec_release(&m.at);
    (void)state;
}

static tare_status replay(const char *text, double speed, struct moments *m, size_t *skipped, tare_error *err)
{
    struct replay r = {"log.csv", text, strlen(text), speed};
    return arrivals_replay(&r, m, skipped, err);
}

static void replayed(void **state)
{
    static const struct {
        const char *text;
        uint64_t at[3];
        size_t n, skipped;
    } cases[] = {
        {"timestamp,prompt\n0.5,a\n0.75,b\n2,c\n", {0, S / 4, 3 * S / 2}, 3, 0},
        {"1.25\r\n1.5\r\n", {0, S / 4}, 2, 0},
        {"1700000001\n1700000000.5\n", {0, S / 2}, 2, 0},
        {"1700000000500\n1700000001000\n", {0, S / 2}, 2, 0},
        {"1700000000500000\n1700000001000000\n", {0, S / 2}, 2, 0},
        {"1700000000000000001\n1700000000000000008\n", {0, 7}, 2, 0},
        {"2026-11-18T10:00:00.5+01:00 GET /\nwhat\n2026-11-18T09:00:01Z\n", {0, S / 2}, 2, 1},
        {"127.0.0.1 - - [18/Nov/2026:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5\n"
         "127.0.0.1 - - [18/Nov/2026:20:55:39 +0000] \"GET / HTTP/1.0\" 200 5\n",
         {0, 3 * S},
         2,
         0},
        {"7,2026-11-18 10:00:00,x\n8,2026-11-18 10:00:02,x", {0, 2 * S}, 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct moments m = {VEC_INIT};
        size_t skipped;
        assert_int_equal(replay(cases[i].text, 1, &m, &skipped, NULL), TARE_OK);
        assert_int_equal(m.at.n, cases[i].n);
        assert_int_equal(skipped, cases[i].skipped);
        for (size_t k = 0; k < m.at.n; k++)
            if (m.at.items[k] != cases[i].at[k])
                fail_msg("%s: %llu", cases[i].text, (unsigned long long)m.at.items[k]);
        vec_release(&m.at);
    }
    (void)state;
}

static void replayed_faster_or_not(void **state)
{
    struct moments m = {VEC_INIT};
    size_t skipped;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(replay("1\n3\n", 2, &m, &skipped, NULL), TARE_OK);
    assert_int_equal(m.at.items[1], S);
    assert_int_equal(replay("1\n", 0, &m, &skipped, &err), TARE_INVALID);
    assert_int_equal(replay("a,b\nc,d\n", 1, &m, &skipped, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "log.csv: no line has a time"));
    assert_int_equal(replay("", 1, &m, &skipped, &err), TARE_FORMAT);
    vec_release(&m.at);
    (void)state;
}

static void without_memory(void **state)
{
    for (long n = 0;; n++) {
        struct moments m = {VEC_INIT};
        struct arrivals a = {.rate = 100, .window_ns = S, .seed = 1};
        size_t skipped;
        mem_fail_after(n);
        tare_status s = arrivals_make(&a, &m, NULL);
        if (s == TARE_OK) s = replay("1\n2\n", 1, &m, &skipped, NULL);
        mem_fail_after(-1);
        vec_release(&m.at);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_and_spreads), cmocka_unit_test(ramp_rises),
        cmocka_unit_test(the_same_for_the_same_seed), cmocka_unit_test(no_more_than_asked_for),
        cmocka_unit_test(refused),
        cmocka_unit_test(replayed), cmocka_unit_test(replayed_faster_or_not),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
