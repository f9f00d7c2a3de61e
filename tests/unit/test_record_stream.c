/* SPDX-License-Identifier: MIT
 * test_record_stream.c - outcomes of requests to a language model -> the document: what is known exactly is exact, what
 * was not answered is no hole, limits are judged by the request. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bench/record_stream.h"
#include "core/mem.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

enum { N = 400 };

/* Request i is due at i * 25 ms of 10 s; its first event is there after 100 + i % 10 ms, then 49 every 10 ms. */
static struct load_outcome answered(uint64_t i)
{
    struct load_outcome o = {
        .planned = S + i * 25 * MS, .tokens = 50, .first_tokens = 1, .events = 50, .gap_max = 10 * MS};
    o.tokens_in = 12;
    o.tokens_cached = 3;
    o.first_content = o.first_answer = o.planned + (100 + i % 10) * MS;
    o.last_content = o.end = o.first_content + 490 * MS;
    return o;
}

struct world {
    struct run run;
    struct run_case *c;
    struct load_outcome o[N];
    struct llm_pool pool;
    struct slo slo;
    uint64_t one_in; /* 0: 1 */
};

static void world_init(struct world *w)
{
    struct gap_list l = {VEC_INIT};
    memset(w, 0, sizeof *w);
    assert_int_equal(run_init(&w->run, "bench", NULL), TARE_OK);
    w->c = run_add_case(&w->run, "rate=40/s");
    for (uint64_t i = 0; i < N; i++) {
        w->o[i] = answered(i);
        for (int k = 0; k < 49; k++) assert_int_equal(gap_add(&l, 10 * MS, NULL), TARE_OK);
        gaps_take(&w->pool.gaps, &l);
    }
    vec_release(&l.at);
    assert_int_equal(slo_parse(&w->slo, "ttft<=105ms, tpot<=50ms", NULL), TARE_OK);
}

static tare_status record(struct world *w)
{
    struct streamed s = {&w->run, w->c, w->o, N, w->one_in ? w->one_in : 1, S, 10 * S, &w->pool, &w->slo};
    return record_stream(&s, NULL);
}

static void world_release(struct world *w)
{
    llm_pool_release(&w->pool);
    run_release(&w->run);
}

static void all_answered(void **state)
{
    struct world w;
    world_init(&w);
    assert_int_equal(record(&w), TARE_OK);
    const struct run_stream *st = &w.c->stream;
    assert_true(st->known && st->ttft_ns.p50.value == 104e6 && st->ttft_ns.p99.value == 109e6);
    assert_true(st->tpot_ns.p50.value == 10e6 && st->gap_max_ns.max.v == 10 * MS);
    assert_true(st->gap_ns.p50.value == 10e6 && st->gap_ns.p99.value == 10e6);
    assert_int_equal(st->tokens_out.v, 50 * N);
    assert_int_equal(st->tokens_out_p50.v, 50);
    assert_int_equal(st->tokens_in.v, 12 * N);
    assert_int_equal(st->tokens_cached.v, 3 * N);
    assert_false(st->estimated.v);
    assert_true(st->coalesced.v == 0);
    /* 40 requests a second of 50 tokens; those that came after the window do not count */
    assert_true(st->tokens_per_s.rate.value > 1900 && st->tokens_per_s.rate.value < 1960);
    /* 6 of 10 are there within 105 ms */
    assert_int_equal(st->goodput.good.v, 240);
    assert_int_equal(st->goodput.due.v, N);
    assert_string_equal(st->goodput.slo, "ttft<=105ms,tpot<=50ms");
    assert_true(st->goodput.share.value == 0.6 && fabs(st->goodput.share.lo.v - 0.5502) < 1e-3 &&
                fabs(st->goodput.share.hi.v - 0.6484) < 1e-3);
    assert_int_equal(run_map_get(&st->goodput.missed, "ttft")->i, 160);
    assert_int_equal(run_map_get(&st->goodput.missed, "tpot")->i, 0);
    run_explain_case(&w.run, w.c, RUN_BY_BENCH);
    world_release(&w);
    (void)state;
}

/* Each stands for four: what is counted is of all, shares and times are as before. */
static void one_in_four_was_kept(void **state)
{
    struct world w;
    world_init(&w);
    w.one_in = 4;
    assert_int_equal(record(&w), TARE_OK);
    const struct run_stream *st = &w.c->stream;
    assert_int_equal(st->tokens_out.v, 4 * 50 * N);
    assert_int_equal(st->tokens_in.v, 4 * 12 * N);
    assert_int_equal(st->tokens_cached.v, 4 * 3 * N);
    assert_true(st->tokens_per_s.rate.value > 4 * 1900 && st->tokens_per_s.rate.value < 4 * 1960);
    assert_true(st->goodput.per_s.v == 4 * 24 && st->goodput.share.value == 0.6);
    assert_true(st->ttft_ns.p50.value == 104e6);
    world_release(&w);
    (void)state;
}

static void the_unanswered_count(void **state)
{
    struct world w;
    world_init(&w);
    for (size_t i = 0; i < N; i += 20) { /* 5 % */
        w.o[i] = (struct load_outcome){
            .planned = w.o[i].planned, .end = w.o[i].planned + S, .fault = LOAD_TIMEOUT};
    }
    assert_int_equal(record(&w), TARE_OK);
    const struct run_stream *st = &w.c->stream;
    assert_true(st->ttft_ns.p90.known);
    assert_false(st->ttft_ns.p99.known);
    assert_true(run_map_get(&st->ttft_ns.at_least, "p99")->i >= (int64_t)(100 * MS));
    assert_false(st->ttft_ns.max.known);
    assert_true(run_map_get(&st->ttft_ns.at_least, "max")->i == (int64_t)S);
    assert_int_equal(st->goodput.due.v, N);
    assert_int_equal(run_map_get(&st->goodput.missed, "tpot")->i, 20);
    world_release(&w);
    (void)state;
}

static void nothing_streamed(void **state)
{
    struct world w;
    world_init(&w);
    gaps_clear(&w.pool.gaps);
    for (size_t i = 0; i < N; i++)
        w.o[i] =
            (struct load_outcome){.planned = w.o[i].planned, .end = w.o[i].planned + 100 * MS, .tokens = 7};
    assert_int_equal(record(&w), TARE_OK);
    assert_false(w.c->stream.ttft_ns.known || w.c->stream.gap_ns.known || w.c->stream.tpot_ns.known);
    assert_true(fabs(w.c->stream.tokens_per_s.rate.value - 280) < 4);
    assert_int_equal(w.c->stream.goodput.good.v, 0); /* no first token was ever seen */
    world_release(&w);
    (void)state;
}

static void limits(void **state)
{
    struct slo s;
    tare_error err = TARE_ERROR_INIT;
    static const char *const bad[] = {"",
                                      "ttft",
                                      "ttft<500ms",
                                      "ttft<=",
                                      "ttft<=5",
                                      "ttft<=0s",
                                      "itl<=5ms",
                                      "ttft<=1s,ttft<=2s",
                                      "ttft<=1s;tpot<=1s",
                                      "ttft<=1s,"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(slo_parse(&s, bad[i], &err), TARE_INVALID);
        assert_non_null(strstr(err.text, "--slo: at '"));
    }
    assert_int_equal(slo_parse(&s, "latency<=1m30s", NULL), TARE_OK);
    assert_true(s.limit[REQUEST_LATENCY] == 90e9);
    struct load_outcome one = {.planned = 1,
                               .first_content = 2,
                               .first_answer = 2,
                               .last_content = 2,
                               .end = 3,
                               .events = 1,
                               .tokens = 1,
                               .first_tokens = 1};
    assert_int_equal(slo_parse(&s, "tpot<=1ms,gap_max<=1ms", NULL), TARE_OK);
    assert_true(slo_kept(&s, &one)); /* a single token has no gap */
    one.fault = LOAD_STREAM;
    assert_false(slo_kept(&s, &one));
    (void)state;
}

static void exact_shares(void **state)
{
    struct interval none = share_interval(0, 10), all = share_interval(10, 10), nobody = share_interval(0, 0);
    assert_true(none.lo == 0 && fabs(none.hi - 0.30850) < 1e-4);
    assert_true(all.hi == 1 && fabs(all.lo - 0.69150) < 1e-4);
    assert_true(isnan(nobody.value));
    (void)state;
}

static void without_memory(void **state)
{
    for (long n = 0;; n++) {
        struct world w;
        world_init(&w);
        mem_fail_after(n);
        tare_status s = record(&w);
        mem_fail_after(-1);
        world_release(&w);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 500);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_in_four_was_kept),
        cmocka_unit_test(all_answered), cmocka_unit_test(the_unanswered_count), cmocka_unit_test(nothing_streamed),
        cmocka_unit_test(limits),       cmocka_unit_test(exact_shares),         cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
