/* SPDX-License-Identifier: MIT
 * test_store_rollup.c - sums over minutes and hours: what every backend must do with them, from the first reading
 * to the last row that goes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/mem.h"
#include "server/live/buckets.h"
#include "server/live/roller.h"
#include "store/chunk.h"
#include "store_fixture.h"

#define HOUR ROLLUP_HOUR_MS
#define MINUTE ROLLUP_MINUTE_MS
#define T0 (INT64_C(20000) * ROLLUP_DAY_MS) /* midnight */
#define LATER (T0 + 10 * ROLLUP_DAY_MS)

static const struct store_metric two[] = {{"load.1m", "", "1", false}, {"net.rx", "eth0", "B", true}};

static void keep(struct store *s, const struct store_reading *at, size_t n, int64_t heard_ms)
{
    static unsigned number;
    char id[16];
    enum store_kept kept = STORE_CROWDED;
    tare_error err = TARE_ERROR_INIT;
    snprintf(id, sizeof id, "b%u", number++);
    struct store_batch b = {.project = "",
                            .host = "a",
                            .id = id,
                            .heard_ms = heard_ms,
                            .metrics = two,
                            .n_metrics = 2,
                            .readings = at,
                            .n_readings = n};
    if (s->ops->batch_add(s, &b, &kept, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_int_equal(kept, STORE_NEW);
}

static unsigned roll_all(struct store *s, int64_t now_ms)
{
    tare_error err = TARE_ERROR_INIT;
    bool more = true;
    unsigned n = 0;
    while (more) {
        if (roller_step(s, now_ms, &more, &err) != TARE_OK) fail_msg("%s", err.text);
        n += more;
    }
    return n;
}

static tare_status tell_block(void *ctx, const struct store_block *b, tare_error *err)
{
    (void)err;
    buf_printf(ctx, "%+lld%s%s ", (long long)((b->at_ms - T0) / HOUR), b->due_ms ? " due" : "",
               (const char *[]){"", " going", " bare", " hours"}[b->cut]);
    return TARE_OK;
}

static void expect_blocks(struct store *s, const char *wanted)
{
    struct buf text = BUF_INIT;
    struct store_block_query q = {1, 0, INT64_MAX};
    buf_add_str(&text, "");
    assert_int_equal(s->ops->rollups.blocks(s, &q, tell_block, &text, NULL), TARE_OK);
    assert_string_equal(text.data ? text.data : "", wanted);
    buf_release(&text);
}

static tare_status tell_row(void *ctx, const struct store_rollup *r, tare_error *err)
{
    struct bucket at[ROLLUP_ENTRIES_MAX] = {0};
    tare_status s = rollup_unpack(&r->body, at, err);
    for (int i = 0; i < ROLLUP_ENTRIES_MAX; i++)
        if (at[i].n)
            buf_printf(ctx, "%+lld:%g..%g/%g(%llu) ",
                       (long long)((r->at_ms + i * r->width_ms - T0) / r->width_ms), at[i].least,
                       at[i].greatest, at[i].sum / at[i].weight, (unsigned long long)at[i].n);
    return s;
}

static void expect_rows(struct store *s, int64_t metric, int64_t width, const char *wanted)
{
    struct buf text = BUF_INIT;
    struct store_rollup_query q = {metric, width, 0, INT64_MAX};
    assert_int_equal(s->ops->rollups.rows(s, &q, tell_row, &text, NULL), TARE_OK);
    assert_string_equal(text.data ? text.data : "", wanted);
    buf_release(&text);
}

static tare_status count_chunk(void *ctx, const struct store_chunk *c, tare_error *err)
{
    (void)c, (void)err;
    ++*(size_t *)ctx;
    return TARE_OK;
}

static size_t chunks(struct store *s)
{
    size_t n = 0;
    assert_int_equal(s->ops->chunks(s, &(struct store_chunk_query){.after = 0}, count_chunk, &n, NULL),
                     TARE_OK);
    return n;
}

/* ---- the suite ---- */

static void hours_are_summed_up_when_they_are_over(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    /* over the end of an hour: two chunks, two hours; a counter whose rate crosses it belongs to the later reading */
    const struct store_reading at[] = {{0, T0 + HOUR - 30000, 2},  {0, T0 + HOUR - 10000, 4},
                                       {0, T0 + HOUR + 5000, 6},   {1, T0 + HOUR - 30000, 0},
                                       {1, T0 + HOUR - 10000, 40}, {1, T0 + HOUR + 10000, 100}};
    keep(s, at, 6, T0 + HOUR);
    assert_int_equal(chunks(s), 2);
    expect_blocks(s, "+0 due +1 due ");
    assert_int_equal(roll_all(s, T0 + HOUR + ROLLUP_GRACE_MS - 1), 0); /* some more may come */
    assert_int_equal(roll_all(s, T0 + HOUR + ROLLUP_GRACE_MS), 1);
    expect_blocks(s, "+0 +1 due ");
    expect_rows(s, 1, MINUTE, "+59:2..4/3(2) ");
    expect_rows(s, 2, MINUTE, "+59:2..2/2(1) ");
    assert_int_equal(roll_all(s, LATER), 1);
    expect_blocks(s, "+0 +1 ");
    expect_rows(s, 1, MINUTE, "+59:2..4/3(2) +60:6..6/6(1) "); /* minutes without readings stay empty */
    expect_rows(s, 2, MINUTE, "+59:2..2/2(1) +60:3..3/3(1) ");
    expect_rows(s, 1, HOUR, "+0:2..4/3(2) +1:6..6/6(1) ");
    expect_rows(s, 2, HOUR, "+0:2..2/2(1) +1:3..3/3(1) ");
    store_close(s);
}

static void late_readings_are_summed_up_anew(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    const struct store_reading first[] = {{0, T0 + 1000, 2}, {1, T0 + 10000, 0}, {1, T0 + 30000, 60}};
    const struct store_reading late[] = {{0, T0 + 2000, 8}, {1, T0 + 20000, 10}};
    keep(s, first, 3, T0);
    roll_all(s, LATER);
    expect_rows(s, 2, HOUR, "+0:3..3/3(1) ");
    keep(s, late, 2, LATER);
    expect_blocks(s, "+0 due ");
    assert_int_equal(roll_all(s, LATER + ROLLUP_LATE_MS - 1), 0);
    assert_int_equal(roll_all(s, LATER + ROLLUP_LATE_MS), 1);
    expect_rows(s, 1, HOUR, "+0:2..8/5(2) ");
    expect_rows(s, 1, MINUTE, "+0:2..8/5(2) ");
    expect_rows(s, 2, HOUR, "+0:1..5/3(2) "); /* as if they had come in time */
    assert_int_equal(roll_all(s, INT64_MAX), 0);
    store_close(s);
}

static void expire(struct store *s, struct store_rollup_expiry e)
{
    tare_error err = TARE_ERROR_INIT;
    if (!e.most) e.most = 100;
    do
        if (s->ops->rollups.expire(s, &e, &err) != TARE_OK) fail_msg("%s", err.text);
    while (e.more);
}

static void what_is_old_goes_in_slices(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct store_rollup_expiry one = {.readings_ms = T0 + 2 * HOUR, .most = 2};
    for (int i = 0; i < 12; i++) {
        struct store_reading at = {0, T0 + (i / 4) * HOUR + i * 1000, i};
        keep(s, &at, 1, T0);
    }
    assert_int_equal(s->ops->rollups.expire(s, &one, NULL), TARE_OK);
    assert_false(one.more); /* what was not summed up stays */
    assert_int_equal(chunks(s), 12);
    roll_all(s, LATER);
    assert_int_equal(s->ops->rollups.expire(s, &one, NULL), TARE_OK);
    assert_true(one.more);
    assert_int_equal(chunks(s), 10); /* no more than was said at a time */
    expect_blocks(s, "+0 going +1 +2 ");
    expire(s, one);
    assert_int_equal(chunks(s), 4);
    expect_blocks(s, "+0 bare +1 bare +2 ");
    expect_rows(s, 1, HOUR, "+0:0..3/1.5(4) +1:4..7/5.5(4) +2:8..11/9.5(4) ");
    expire(s, (struct store_rollup_expiry){.readings_ms = T0 + 2 * HOUR, .minutes_ms = T0 + HOUR});
    expect_blocks(s, "+0 hours +1 bare +2 ");
    expect_rows(s, 1, MINUTE, "+60:4..7/5.5(4) +120:8..11/9.5(4) ");
    expire(s, (struct store_rollup_expiry){
                  .readings_ms = LATER, .minutes_ms = LATER, .hours_ms = T0 + 23 * HOUR});
    expect_rows(s, 1, HOUR, "+0:0..3/1.5(4) +1:4..7/5.5(4) +2:8..11/9.5(4) "); /* days go whole */
    expire(s, (struct store_rollup_expiry){
                  .readings_ms = LATER, .minutes_ms = LATER, .hours_ms = T0 + 24 * HOUR});
    expect_rows(s, 1, HOUR, "");
    expect_rows(s, 1, MINUTE, "");
    expect_blocks(s, "");
    store_close(s);
}

/* The sums know what the readings were; what comes later is added, once. */
static void late_readings_of_an_hour_that_went(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    const struct store_reading first = {0, T0 + 1000, 2}, late = {0, T0 + 61000, 8},
                               later = {0, T0 + 2000, 5};
    keep(s, &first, 1, T0);
    roll_all(s, LATER);
    expire(s, (struct store_rollup_expiry){.readings_ms = LATER});
    assert_int_equal(chunks(s), 1); /* the newest stays, so that no number is given twice */
    keep(s, &late, 1, LATER);
    roll_all(s, INT64_MAX);
    expect_rows(s, 1, MINUTE, "+0:2..2/2(1) +1:8..8/8(1) ");
    expect_rows(s, 1, HOUR, "+0:2..8/5(2) ");
    assert_int_equal(chunks(s), 1); /* the newest stays, so that no number is given twice */
    keep(s, &later, 1, LATER);
    roll_all(s, INT64_MAX);
    roll_all(s, INT64_MAX);
    expect_rows(s, 1, HOUR, "+0:2..8/5(3) ");
    expire(s, (struct store_rollup_expiry){.readings_ms = LATER, .minutes_ms = LATER});
    keep(s, &late, 1, LATER);
    roll_all(s, INT64_MAX);
    expect_rows(s, 1, MINUTE, "");
    expect_rows(s, 1, HOUR, "+0:2..8/5.75(4) ");
    store_close(s);
}

static void ids_of_batches_are_forgotten(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    const struct store_reading at = {0, T0, 1};
    struct store_batch b = {
        .project = "", .host = "a", .metrics = two, .n_metrics = 2, .readings = &at, .n_readings = 1};
    enum store_kept kept = STORE_OTHER;
    b.id = "old";
    b.heard_ms = 100;
    s->ops->batch_add(s, &b, &kept, NULL);
    b.id = "new";
    b.heard_ms = 200;
    s->ops->batch_add(s, &b, &kept, NULL);
    expire(s, (struct store_rollup_expiry){.ids_ms = 200});
    s->ops->batch_add(s, &b, &kept, NULL);
    assert_int_equal(kept, STORE_SAME);
    b.id = "old";
    s->ops->batch_add(s, &b, &kept, NULL);
    assert_int_equal(kept, STORE_NEW);
    store_close(s);
}

/* An hour that another server summed up meanwhile, or that got readings meanwhile. */
static void only_one_sums_up(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    const struct store_reading at = {0, T0 + 1000, 2};
    struct store_block seen;
    bool same = false;
    keep(s, &at, 1, T0);
    assert_int_equal(s->ops->rollups.due(s, LATER, &seen, NULL), TARE_OK);
    assert_int_equal(s->ops->rollups.again(s, &seen, &same, NULL), TARE_OK);
    assert_true(same);
    keep(s, &at, 1, T0); /* after what was read: it stays due */
    struct store_block done = seen;
    done.seq = 1;
    assert_int_equal(s->ops->rollups.done(s, &done, NULL), TARE_OK);
    expect_blocks(s, "+0 due ");
    assert_int_equal(s->ops->rollups.again(s, &seen, &same, NULL), TARE_OK);
    assert_false(same);
    assert_int_equal(roll_all(s, LATER), 1);
    expect_rows(s, 1, HOUR, "+0:2..2/2(2) ");
    assert_int_equal(s->ops->rollups.put_off(s, &seen, LATER, NULL), TARE_OK);
    assert_int_equal(roll_all(s, LATER - 1), 0);
    assert_int_equal(roll_all(s, LATER), 1);
    store_close(s);
}

static void memory_runs_out(const struct store_ops *ops)
{
    long before = mem_live_blocks();
    struct store *s = open_with(ops);
    const struct store_reading at[] = {{0, T0 + 1000, 1}, {1, T0 + 1000, 2}, {1, T0 + 2000, 3}};
    tare_status status = TARE_NOMEM;
    bool more = false;
    keep(s, at, 3, T0);
    for (long n = 0; status != TARE_OK; n++) {
        mem_fail_after(n);
        status = roller_step(s, LATER, &more, NULL);
        mem_fail_after(-1);
        assert_true(status == TARE_OK || status == TARE_NOMEM);
    }
    expect_rows(s, 1, HOUR, "+0:1..1/1(1) ");
    expect_rows(s, 2, HOUR, "+0:1..1/1(1) ");
    store_close(s);
    assert_int_equal(mem_live_blocks(), before);
}

/* ---- rows ---- */

static void test_damaged_rows(void **state)
{
    struct bucket at[ROLLUP_ENTRIES_MAX] = {[3] = {1, 2, 3, 2, 2}, [59] = {-1, 4, 7, 0.5, 3}},
                  got[ROLLUP_ENTRIES_MAX];
    struct buf good = BUF_INIT;
    rollup_pack(&good, at, ROLLUP_ENTRIES_MAX);
    struct store_body body = {good.data, good.len};
    memset(got, 0, sizeof got);
    assert_int_equal(rollup_unpack(&body, got, NULL), TARE_OK);
    assert_memory_equal(got, at, sizeof at);
    for (body.size = 1; body.size < good.len; body.size++) {
        memset(got, 0, sizeof got);
        tare_status s = rollup_unpack(&body, got, NULL);
        assert_int_equal(s, body.size == 26 ? TARE_OK : TARE_FORMAT); /* 26: the first of the two */
    }
    body.size = good.len;
    good.data[0] = 120; /* the 60th of 60 */
    assert_int_equal(rollup_unpack(&body, got, NULL), TARE_FORMAT);
    buf_release(&good);
    (void)state;
}

/* In any order, and in any pieces, they are the same. */
static void test_sums_add_up(void **state)
{
    struct buckets_range r = buckets_range(T0 + 1, T0 + HOUR - 1, 7, MINUTE);
    assert_true(r.from_ms == T0 && r.to_ms == T0 + HOUR && r.step_ms == 9 * MINUTE && r.n == 7);
    struct bucket whole = {0}, parts = {0};
    for (int i = 0; i < 100; i++) {
        struct bucket one = {i * 37 % 100, i * 37 % 100, i * 37 % 100, 1, 1},
                      other = {99 - i, 99 - i, 99 - i, 1, 1};
        bucket_merge(&whole, &one);
        bucket_merge(&parts, &other);
    }
    assert_memory_equal(&whole, &parts, sizeof whole);
    assert_true(whole.n == 100 && whole.least == 0 && whole.greatest == 99 && whole.sum == 4950);
    (void)state;
}

CONFORMS(hours_are_summed_up_when_they_are_over)
CONFORMS(late_readings_are_summed_up_anew)
CONFORMS(what_is_old_goes_in_slices)
CONFORMS(late_readings_of_an_hour_that_went)
CONFORMS(ids_of_batches_are_forgotten)
CONFORMS(only_one_sums_up)
CONFORMS(memory_runs_out)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(postgresql_is_here),
        TEST(hours_are_summed_up_when_they_are_over),
        TEST(late_readings_are_summed_up_anew),
        TEST(what_is_old_goes_in_slices),
        TEST(late_readings_of_an_hour_that_went),
        TEST(ids_of_batches_are_forgotten),
        TEST(only_one_sums_up),
        TEST(memory_runs_out),
        TEST(damaged_rows),
        TEST(sums_add_up),
    };
    return cmocka_run_group_tests(tests, find_postgres, end_postgres);
}
