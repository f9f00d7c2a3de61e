/* SPDX-License-Identifier: MIT
 * test_store_live.c - hosts and readings: what every backend must do with them, and what chunks hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/mem.h"
#include "store/chunk.h"
#include "store_fixture.h"

static const struct store_metric two[] = {{"load.1m", "", "1", false}, {"net.rx", "eth0", "B", true}};

static enum store_kept keep(struct store *s, struct store_batch b)
{
    enum store_kept kept = STORE_CROWDED;
    tare_error err = TARE_ERROR_INIT;
    if (!b.project) b.project = "";
    if (!b.host) b.host = "gpu7";
    if (!b.metrics) {
        b.metrics = two;
        b.n_metrics = 2;
    }
    if (s->ops->batch_add(s, &b, &kept, &err) != TARE_OK) fail_msg("%s", err.text);
    return kept;
}

static tare_status tell_host(void *ctx, const struct store_host *h, tare_error *err)
{
    (void)err;
    buf_printf(ctx, "%s/%s %s %lld %lld %llu\n", h->project, h->name, h->about ? h->about : "-",
               (long long)h->first_ms, (long long)h->heard_ms, (unsigned long long)h->metrics);
    return TARE_OK;
}

static tare_status tell_metric(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    (void)err;
    buf_printf(ctx, "%lld %s{%s} %s %d\n", (long long)id, m->name, m->label, m->unit ? m->unit : "-",
               m->counter);
    return TARE_OK;
}

static tare_status tell_value(void *ctx, const struct chunk_value *v, tare_error *err)
{
    (void)err;
    buf_printf(ctx, " %lld@%lld=%g", (long long)v->metric, (long long)v->at_ms, v->value);
    return TARE_OK;
}

static tare_status tell_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    buf_printf(ctx, "%lld:", (long long)c->seq);
    tare_status s = chunk_read(c, tell_value, ctx, err);
    buf_add_str(ctx, "\n");
    return s;
}

#define expect(text, wanted)                 \
    do {                                     \
        assert_string_equal((text)->data, wanted); \
        buf_clear(text);                     \
    } while (0)

static tare_status note_id(void *ctx, const struct store_host *h, tare_error *err)
{
    (void)err;
    *(int64_t *)ctx = h->id;
    return TARE_OK;
}

/* Numbers may have gaps: those of a transaction that was taken back, or of a row that was there already. */
static int64_t host_id(struct store *s, const char *name)
{
    int64_t id = 0;
    assert_int_equal(s->ops->hosts(s, &(struct store_host){.project = "", .name = name}, note_id, &id, NULL),
                     TARE_OK);
    assert_true(id > 0);
    return id;
}

static tare_status tell_name(void *ctx, int64_t id, const struct store_metric *m, tare_error *err)
{
    (void)err;
    assert_true(id > 0);
    buf_printf(ctx, "%s ", m->name);
    return TARE_OK;
}

/* ---- the suite ---- */

static void batches_are_kept_once(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct buf text = BUF_INIT;
    const struct store_reading at[] = {{0, 1000, 1.5}, {0, 2000, 2.5}, {1, 1500, 7}};
    struct store_batch b = {.id = "a", .heard_ms = 50, .readings = at, .n_readings = 3, .hash = {1}};
    assert_int_equal(keep(s, b), STORE_NEW);
    assert_int_equal(keep(s, b), STORE_SAME);
    b.hash[0] = 2;
    assert_int_equal(keep(s, b), STORE_OTHER);
    b.host = "other";
    b.about = "{\"os\":\"x\"}";
    assert_int_equal(keep(s, b), STORE_NEW);
    b.host = NULL;
    b.project = "nlp";
    b.about = NULL;
    b.heard_ms = 60;
    assert_int_equal(keep(s, b), STORE_NEW); /* of another project: another host */
    s->ops->chunks(s, &(struct store_chunk_query){.after = 0}, tell_chunk, &text, NULL);
    expect(&text, "1: 1@1000=1.5 1@2000=2.5 2@1500=7\n2: 3@1000=1.5 3@2000=2.5 4@1500=7\n"
                  "3: 5@1000=1.5 5@2000=2.5 6@1500=7\n");
    s->ops->hosts(s, &(struct store_host){0}, tell_host, &text, NULL);
    expect(&text, "/gpu7 - 50 50 2\nnlp/gpu7 - 60 60 2\n/other {\"os\":\"x\"} 50 50 2\n");
    s->ops->hosts(s, &(struct store_host){.project = "", .name = "gpu7"}, tell_host, &text, NULL);
    expect(&text, "/gpu7 - 50 50 2\n");
    s->ops->metrics(s, &(struct store_metric_query){host_id(s, "other"), NULL}, tell_metric, &text, NULL);
    expect(&text, "3 load.1m{} 1 0\n4 net.rx{eth0} B 1\n");
    s->ops->metrics(s, &(struct store_metric_query){host_id(s, "other"), "net.rx"}, tell_metric, &text, NULL);
    expect(&text, "4 net.rx{eth0} B 1\n");
    buf_release(&text);
    store_close(s);
}

static void chunks_are_found_by_time_and_by_arrival(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct buf text = BUF_INIT;
    int64_t newest = -1;
    assert_int_equal(s->ops->chunk_newest(s, &newest, NULL), TARE_OK);
    assert_int_equal(newest, 0);
    for (int i = 0; i < 4; i++) {
        char id[8];
        struct store_reading at = {0, INT64_C(10000000) * (4 - i), i};
        snprintf(id, sizeof id, "%d", i);
        keep(s, (struct store_batch){
                    .id = id, .heard_ms = i, .readings = &at, .n_readings = 1, .host = i % 2 ? "b" : "a"});
    }
    s->ops->chunk_newest(s, &newest, NULL);
    assert_int_equal(newest, 4);
    s->ops->chunks(s, &(struct store_chunk_query){.after = 2}, tell_chunk, &text, NULL);
    expect(&text, "3: 1@20000000=2\n4: 2@10000000=3\n");
    s->ops->chunks(s, &(struct store_chunk_query){.after = 1, .limit = 1}, tell_chunk, &text, NULL);
    expect(&text, "2: 2@30000000=1\n");
    s->ops->chunks(s, &(struct store_chunk_query){.after = 0, .host = 2}, tell_chunk, &text, NULL);
    expect(&text, "2: 2@30000000=1\n4: 2@10000000=3\n");
    struct store_chunk_query q = {
        .host = 1, .from_ms = 20000000, .to_ms = 40000000}; /* the end is not in it */
    s->ops->chunks(s, &q, tell_chunk, &text, NULL);
    expect(&text, "3: 1@20000000=2\n");
    q = (struct store_chunk_query){.host = 1, .from_ms = 40000000 + STORE_CHUNK_SPAN_MS, .to_ms = INT64_MAX};
    s->ops->chunks(s, &q, tell_chunk, &text, NULL);
    expect(&text, "");
    q.from_ms--; /* it may have a reading an hour later */
    s->ops->chunks(s, &q, tell_chunk, &text, NULL);
    expect(&text, "1: 1@40000000=0\n");
    buf_release(&text);
    store_close(s);
}

/* One that is refused must not use up the host's series: nobody could give them back. */
static void what_is_refused_leaves_nothing(const struct store_ops *ops)
{
    enum { N = STORE_METRICS_MAX + 1 };
    struct store *s = open_with(ops);
    struct buf text = BUF_INIT;
    struct store_metric *metrics = mem_new(N, sizeof *metrics);
    struct store_reading *at = mem_new(N, sizeof *at);
    char(*labels)[8] = mem_new(N, sizeof *labels);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(labels[i], sizeof labels[i], "%u", i);
        metrics[i] = (struct store_metric){"m", labels[i], NULL, false};
        at[i] = (struct store_reading){i, 1000, 1};
    }
    struct store_batch b = {.id = "a", .metrics = metrics, .n_metrics = N, .readings = at, .n_readings = N};
    assert_int_equal(keep(s, b), STORE_CROWDED);
    s->ops->hosts(s, &(struct store_host){0}, tell_host, &text, NULL);
    expect(&text, "");
    b.n_readings = N - 2;
    assert_int_equal(keep(s, b), STORE_NEW);
    b.id = "b";
    b.readings = at + N - 2;
    b.n_readings = 2;
    assert_int_equal(keep(s, b), STORE_CROWDED);
    b.id = "a";
    b.hash[0] = 1;
    b.n_readings = 1;
    assert_int_equal(keep(s, b), STORE_OTHER); /* the id of another batch */
    s->ops->hosts(s, &(struct store_host){0}, tell_host, &text, NULL);
    expect(&text, "/gpu7 - 0 0 9999\n");
    b.id = "c";
    assert_int_equal(keep(s, b), STORE_NEW);
    b.id = "d";
    b.readings = at;
    b.n_readings = N - 1;
    assert_int_equal(keep(s, b), STORE_NEW);
    buf_release(&text);
    mem_free(metrics);
    mem_free(at);
    mem_free(labels);
    store_close(s);
}

/* What was remembered of a transaction that is taken back must be forgotten: its series have other numbers later. */
static void taken_back_is_forgotten(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct buf text = BUF_INIT;
    const struct store_reading at = {0, 1000, 1}, second = {1, 1000, 2};
    assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
    keep(s, (struct store_batch){.id = "a", .readings = &at, .n_readings = 1});
    assert_int_equal(s->ops->end(s, false, NULL), TARE_OK);
    keep(s, (struct store_batch){.id = "b", .host = "first", .readings = &second, .n_readings = 1});
    keep(s, (struct store_batch){.id = "a", .readings = &at, .n_readings = 1});
    s->ops->metrics(s, &(struct store_metric_query){host_id(s, "first"), NULL}, tell_name, &text, NULL);
    s->ops->metrics(s, &(struct store_metric_query){host_id(s, "gpu7"), NULL}, tell_name, &text, NULL);
    expect(&text, "net.rx load.1m ");
    buf_release(&text);
    store_close(s);
}

static void memory_runs_out(const struct store_ops *ops)
{
    long before = mem_live_blocks();
    struct store *s = open_with(ops);
    struct buf text = BUF_INIT;
    const struct store_reading at[] = {{0, 1000, 1}, {1, 1000, 2}};
    struct store_batch b = {.project = "",
                            .host = "h",
                            .id = "a",
                            .metrics = two,
                            .n_metrics = 2,
                            .readings = at,
                            .n_readings = 2};
    enum store_kept kept = STORE_OTHER;
    tare_status status = TARE_NOMEM;
    for (long n = 0; status != TARE_OK; n++) {
        mem_fail_after(n);
        status = s->ops->batch_add(s, &b, &kept, NULL);
        mem_fail_after(-1);
        assert_true(status == TARE_OK || status == TARE_NOMEM);
    }
    assert_int_equal(kept, STORE_NEW);
    s->ops->chunks(s, &(struct store_chunk_query){.after = 0}, tell_chunk, &text, NULL);
    assert_true(strstr(text.data, "@1000=1 ") && strstr(text.data, "@1000=2\n"));
    assert_null(strchr(strchr(text.data, '\n') + 1, '\n')); /* once */
    buf_release(&text);
    store_close(s);
    assert_int_equal(mem_live_blocks(), before);
}

/* ---- chunks ---- */

static void test_damaged_chunks(void **state)
{
    struct buf good = BUF_INIT, text = BUF_INIT;
    const struct store_reading at[] = {{0, 1000, 1}, {0, 1300, 2}};
    chunk_add(&good, 300, 1000, at, 2);
    struct store_chunk c = {.from_ms = 1000, .body = {good.data, good.len}};
    assert_int_equal(chunk_read(&c, tell_value, &text, NULL), TARE_OK);
    expect(&text, " 300@1000=1 300@1300=2");
    for (c.body.size = 1; c.body.size < good.len; c.body.size++) /* cut anywhere */
        assert_int_equal(chunk_read(&c, tell_value, &text, NULL), TARE_FORMAT);
    c.body.size = good.len;
    c.from_ms = INT64_MAX - 100; /* times that no clock can tell */
    assert_int_equal(chunk_read(&c, tell_value, &text, NULL), TARE_FORMAT);
    buf_release(&good);
    buf_release(&text);
    (void)state;
}

CONFORMS(batches_are_kept_once)
CONFORMS(chunks_are_found_by_time_and_by_arrival)
CONFORMS(what_is_refused_leaves_nothing)
CONFORMS(taken_back_is_forgotten)
CONFORMS(memory_runs_out)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(postgresql_is_here), TEST(batches_are_kept_once), TEST(chunks_are_found_by_time_and_by_arrival),
        TEST(what_is_refused_leaves_nothing), TEST(taken_back_is_forgotten), TEST(memory_runs_out),
        TEST(damaged_chunks),
    };
    return cmocka_run_group_tests(tests, find_postgres, end_postgres);
}
