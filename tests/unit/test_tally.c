/* SPDX-License-Identifier: MIT
 * test_tally.c - what is counted of requests adds up in any order and survives its bytes; promises, budgets and
 * percentiles against numbers made by hand; lack of memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/sla/slo.h"
#include "core/mem.h"
#include "core/rng.h"

static const char batch[] =
    "{\"schema\":\"tare.requests/1\",\"id\":\"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\",\"service\":\"s\",\"host\":\"h\","
    "\"from_ms\":1,\"to_ms\":2,\"lost\":0,\"routes\":[{\"route\":\"/a\",\"latency_ns\":{\"sum\":3100,\"min\":1025,"
    "\"max\":1050,\"histogram\":{\"scale\":6,\"offset\":640,\"zero\":0,\"counts\":[2,0,1]}},"
    "\"first_byte_ns\":null,\"errors\":4,\"cancelled\":5,"
    "\"slo\":[{\"threshold_ns\":1030,\"objective\":0.9,\"within\":2,\"breached\":1}],"
    "\"worst\":[{\"id\":\"r1\",\"at_ms\":7,\"latency_ns\":1050,\"failed\":null},"
    "{\"id\":\"r2\",\"at_ms\":8,\"latency_ns\":9,\"failed\":\"ValueError\"}]}]}";

static void read_batch(struct requests *r)
{
    tare_error err = TARE_ERROR_INIT;
    if (requests_read(r, "batch", batch, sizeof batch - 1, &err) != TARE_OK) fail_msg("%s", err.text);
}

static void assert_same(const struct tally *a, const struct tally *b)
{
    struct buf x = BUF_INIT, y = BUF_INIT;
    assert_int_equal(tally_encode(a, &x, NULL), TARE_OK);
    assert_int_equal(tally_encode(b, &y, NULL), TARE_OK);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.data, y.data, x.len);
    buf_release(&x);
    buf_release(&y);
}

static void a_batch_becomes_a_tally(void **state)
{
    (void)state;
    struct requests r;
    struct tally t = TALLY_INIT, again = TALLY_INIT;
    struct buf bytes = BUF_INIT;
    read_batch(&r);
    assert_int_equal(tally_add_route(&t, r.routes.at[0], NULL), TARE_OK);
    assert_int_equal(tally_add_route(&t, r.routes.at[0], NULL), TARE_OK);
    t.lost = 6;
    t.minutes = UINT64_C(1) << 59 | 1;
    assert_int_equal(tally_requests(&t), 14);
    assert_int_equal(t.latency.count, 6);
    assert_true(t.errors == 8 && t.cancelled == 10 && t.n_slo == 1 && t.n_worst == 4);
    assert_true(t.slo[0].within == 4 && t.slo[0].breached == 2 && t.slo[0].objective == 0.9);
    assert_string_equal(t.worst[0]->id, "r1");
    assert_string_equal(t.worst[3]->failed, "ValueError");
    assert_int_equal(tally_encode(&t, &bytes, NULL), TARE_OK);
    assert_int_equal(tally_decode(&again, bytes.data, bytes.len, NULL), TARE_OK);
    assert_same(&t, &again);
    assert_true(again.lost == 6 && again.minutes == t.minutes);
    buf_release(&bytes);
    tally_release(&t);
    tally_release(&again);
    requests_release(&r);
}

static void fill(struct tally *t, unsigned i)
{
    struct rng r;
    rng_seed(&r, i);
    for (unsigned k = 0; k < 50; k++) hist_record(&t->latency, rng_next(&r) >> 40, NULL);
    t->errors = i;
    t->minutes = UINT64_C(1) << i;
    t->slo[0] = (struct tally_slo){1000, 0.9, i, 2};
    t->n_slo = 1;
    for (unsigned k = 0; k < 4; k++) {
        struct tally_worst *w = t->worst[t->n_worst++] = mem_new(1, sizeof *w);
        w->latency_ns = 100 - 10 * k + i % 3; /* ties between tallies */
        w->at_ms = i;
        snprintf(w->id, sizeof w->id, "%u-%u", i, k);
    }
}

static void order_makes_no_difference(void **state)
{
    (void)state;
    enum { N = 12 };
    struct tally up = TALLY_INIT, down = TALLY_INIT;
    for (unsigned i = 0; i < N; i++) {
        struct tally a = TALLY_INIT, b = TALLY_INIT;
        fill(&a, i);
        fill(&b, N - 1 - i);
        assert_int_equal(tally_merge(&up, &a, NULL), TARE_OK);
        assert_int_equal(tally_merge(&down, &b, NULL), TARE_OK);
        tally_release(&a);
        tally_release(&b);
    }
    assert_true(up.n_worst == REQUESTS_WORST && up.errors == 66 && up.minutes == (1 << N) - 1);
    assert_true(up.slo[0].within == 66 && up.slo[0].breached == 24 && up.latency.count == 50 * N);
    assert_same(&up, &down);
    tally_release(&up);
    tally_release(&down);
}

static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *why;
    } rows[] = {
        {"\x0a\x05\x06", 3, "a length goes beyond the end of what holds it (truncated?)"},
        {"\x0a\x01\x06", 3, "the head is cut short"},
        {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "a count that is too large"},
        {"\x3a\x02\x01\x01", 4, "a promise that is cut short"},
        {"\x3a\x04\x00\x00\x01\x01", 6, "a promise that is none"},
        {"\x3a\x05\x01\x00\x01\x01\x01", 7, "a promise that is none"},
        {"\x42\x02\x08\x01", 4, "one of the slowest requests is none"},
        {"\x42\x03\x1a\x01\x80", 5, "one of the slowest requests is none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tally t = TALLY_INIT;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(tally_decode(&t, rows[i].bytes, rows[i].n, &err), TARE_FORMAT);
        assert_string_equal(err.text, rows[i].why);
        tally_release(&t);
    }
    struct tally t = TALLY_INIT;
    assert_int_equal(tally_decode(&t, "\xf8\x07\x01", 3, NULL), TARE_OK); /* what a newer version added */
    tally_release(&t);
}

static void more_promises_than_are_kept(void **state)
{
    (void)state;
    struct tally t = TALLY_INIT, one = TALLY_INIT;
    tare_error err = TARE_ERROR_INIT;
    one.n_slo = 1;
    for (uint64_t i = 0; i < TALLY_SLOS; i++) {
        one.slo[0] = (struct tally_slo){i + 1, 0.5, 1, 0};
        assert_int_equal(tally_merge(&t, &one, &err), TARE_OK);
    }
    assert_int_equal(tally_merge(&t, &one, &err), TARE_OK); /* one that is there */
    one.slo[0].objective = 0.6;
    assert_int_equal(tally_merge(&t, &one, &err), TARE_INVALID);
    assert_string_equal(err.text, "more than 32 thresholds within one hour");
}

/* ---- what they say ---- */

static void budgets(void **state)
{
    (void)state;
    assert_true(isnan(slo_burn(0, 0, 0.99)));
    assert_true(fabs(slo_burn(1, 100, 0.99) - 1) < 1e-9);       /* just the budget */
    assert_true(fabs(slo_burn(144, 1000, 0.99) - 14.4) < 1e-9); /* an hour of it is 2 % of 30 days */
    assert_true(slo_burn(0, 5, 0.999) == 0);
    struct tally t = TALLY_INIT;
    t.slo[0] = (struct tally_slo){1000, 0.9, 90, 4};
    t.n_slo = 1;
    t.errors = 6; /* each breaks the promise, too */
    assert_true(fabs(slo_burn_of(&t, 1000, 0.9) - 1) < 1e-9);
    assert_true(isnan(slo_burn_of(&t, 1000, 0.95)) && isnan(slo_burn_of(&t, 1001, 0.9)));
}

static void a_span_is_told(void **state)
{
    (void)state;
    struct sla doc = {.kind = "span", .service = "s"};
    struct tally t = TALLY_INIT;
    struct buf text = BUF_INIT;
    for (uint64_t i = 1; i <= 1000; i++) hist_record(&t.latency, i * 1000000, NULL);
    t.errors = 250;
    t.slo[0] = (struct tally_slo){800000000, 0.75, 800, 200};
    t.n_slo = 1;
    slo_span(&doc, &doc.total, &t, true);
    slo_windows(&doc.total, &t, &t);
    assert_int_equal(doc.total.requests, 1250);
    assert_true(doc.total.error_rate.v == 0.2);
    const struct sla_latency *l = &doc.total.latency_ns;
    assert_true(l->mean.v == 500500000 && l->min.v == 1000000 && l->max.v == 1000000000);
    assert_true(l->p99.lo.v <= 990000000 && l->p99.hi.v >= 990000000 && l->p99.hi.v / l->p99.lo.v < 1.0115);
    assert_true(l->p999.known && !l->p9999.known); /* of 1,000 there is no p99.99 */
    const struct sla_slo *o = doc.total.slo.at[0];
    assert_true(o->attainment.v == 0.64 && fabs(o->burn.v - 1.44) < 1e-9 && o->burn_6h.v == o->burn.v);
    assert_int_equal(sla_write(&doc, &text, NULL), TARE_OK);
    assert_non_null(strstr(text.data, "\"attainment\": 0.64"));
    buf_release(&text);
    tally_release(&t);
    sla_release(&doc);
}

static void nothing_is_unknown_and_not_zero(void **state)
{
    (void)state;
    struct sla doc = {.kind = "span", .service = "s"};
    struct tally none = TALLY_INIT;
    slo_span(&doc, &doc.total, &none, true);
    assert_false(doc.total.latency_ns.known || doc.total.error_rate.known || doc.total.slo.n);
    assert_false(slo_ratio(&none.latency, &none.latency, 0.5).known);
    sla_release(&doc);
}

static void ratios_keep_their_bounds(void **state)
{
    (void)state;
    struct hist a = HIST_INIT, b = HIST_INIT;
    hist_record_n(&a, 3000000, 1000, NULL);
    hist_record_n(&b, 2000000, 1000, NULL);
    hist_record(&a, 1, NULL);
    hist_record(&b, 1, NULL);
    struct run_estimate r = slo_ratio(&a, &b, 0.99);
    assert_true(r.known && r.lo.v <= 1.5 && r.hi.v >= 1.5 && r.hi.v - r.lo.v < 0.04);
    hist_release(&a);
    hist_release(&b);
}

/* ---- lack of memory ---- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct requests r;
    read_batch(&r);
    for (long n = 0;; n++) {
        struct tally t = TALLY_INIT, again = TALLY_INIT;
        struct buf bytes = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        long before = mem_live_blocks();
        mem_fail_after(n);
        tare_status s = tally_add_route(&t, r.routes.at[0], &err);
        if (s == TARE_OK) s = tally_encode(&t, &bytes, &err);
        if (s == TARE_OK) s = tally_decode(&again, bytes.data, bytes.len, &err);
        mem_fail_after(-1);
        buf_release(&bytes);
        tally_release(&t);
        tally_release(&again);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
    requests_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_becomes_a_tally),
        cmocka_unit_test(order_makes_no_difference),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(more_promises_than_are_kept),
        cmocka_unit_test(budgets),
        cmocka_unit_test(a_span_is_told),
        cmocka_unit_test(nothing_is_unknown_and_not_zero),
        cmocka_unit_test(ratios_keep_their_bounds),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
