/* SPDX-License-Identifier: MIT
 * test_store_requests.c - the conformance suite of requests in the history: what every backend must do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/sla/tally.h"
#include "core/mem.h"
#include "store_fixture.h"

#define HOUR INT64_C(3600000)
#define BASE (INT64_C(497000) * HOUR)

/* A batch of a host: two requests of /a within 1 us, an error of /b. */
static void make(struct requests *r, unsigned number, const char *host, int64_t at_ms)
{
    char text[1000];
    tare_error err = TARE_ERROR_INIT;
    snprintf(
        text, sizeof text,
        "{\"schema\":\"tare.requests/1\",\"id\":\"01KA%022u\",\"service\":\"s\",\"host\":\"%s\",\"from_ms\":%lld,"
        "\"to_ms\":%lld,\"lost\":1,\"routes\":[{\"route\":\"/a\",\"latency_ns\":{\"sum\":2000,\"min\":1000,"
        "\"max\":1000,\"histogram\":{\"scale\":6,\"offset\":637,\"zero\":0,\"counts\":[2]}},\"first_byte_ns\":null,"
        "\"errors\":0,\"cancelled\":0,\"slo\":[{\"threshold_ns\":1000,\"objective\":0.5,\"within\":2,"
        "\"breached\":0}],\"worst\":null},{\"route\":\"/b\",\"latency_ns\":null,\"first_byte_ns\":null,\"errors\":1,"
        "\"cancelled\":0,\"slo\":null,\"worst\":null}]}",
        number, host, (long long)at_ms, (long long)at_ms + 10000);
    if (requests_read(r, "batch", text, strlen(text), &err) != TARE_OK) fail_msg("%s", err.text);
}

static enum store_kept keep(struct store *s, unsigned number, const char *host, int64_t at_ms,
                            int64_t received_ms)
{
    struct requests r;
    tare_error err = TARE_ERROR_INIT;
    enum store_kept was = STORE_OTHER;
    make(&r, number, host, at_ms);
    struct store_sent b = {.project = "", .id = r.id, .received_ms = received_ms};
    b.digest[0] = (uint8_t)host[0];
    assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
    if (store_add_requests(s, &r, &b, &was, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_int_equal(s->ops->end(s, true, NULL), TARE_OK);
    requests_release(&r);
    return was;
}

struct seen {
    struct tally sum;
    size_t n;
    int64_t last_seal;
    char hosts[200];
};

static tare_status see(void *ctx, const struct store_slot *at, const struct store_body *bytes,
                       tare_error *err)
{
    struct seen *seen = ctx;
    seen->n++;
    seen->last_seal = at->seal_ms;
    size_t used = strlen(seen->hosts);
    snprintf(seen->hosts + used, sizeof seen->hosts - used, "%s%s ", at->route, at->host);
    return tally_decode(&seen->sum, bytes->data, bytes->size, err);
}

static struct seen look(struct store *s, struct store_slots q)
{
    struct seen seen = {.sum = TALLY_INIT};
    tare_error err = TARE_ERROR_INIT;
    q.project = q.project ? q.project : "";
    q.service = "s";
    if (!q.to_ms) q.to_ms = INT64_MAX;
    if (s->ops->slots(s, &q, see, &seen, &err) != TARE_OK) fail_msg("%s", err.text);
    tally_release(&(struct tally){.latency = seen.sum.latency, .first_byte = seen.sum.first_byte});
    return seen;
}

static void slots_of_every_width(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(i)
    {
        struct store *s = open_with(backends[i]);
        assert_int_equal(keep(s, 1, "x", BASE, BASE + 10000), STORE_NEW);
        assert_int_equal(keep(s, 2, "y", BASE, BASE + 10000), STORE_NEW);
        assert_int_equal(keep(s, 3, "x", BASE + 10000, BASE + 20000), STORE_NEW);
        struct seen ten = look(s, (struct store_slots){.route = "/a", .host = "", .width_ms = STORE_SLOT_MS});
        assert_int_equal(ten.n, 2); /* both hosts in the first */
        assert_true(ten.sum.latency.count == 6 && ten.sum.slo[0].within == 6);
        struct seen minute = look(s, (struct store_slots){.host = "", .width_ms = STORE_MINUTE_MS});
        assert_true(minute.n == 2 && minute.sum.errors == 3); /* /a and /b, not the hosts themselves */
        struct seen hours = look(s, (struct store_slots){.width_ms = STORE_HOUR_MS, .route = "/a"});
        assert_string_equal(hours.hosts, "/ax /ay ");
        struct seen hosts = look(s, (struct store_slots){.width_ms = STORE_HOUR_MS, .route = ""});
        assert_true(hosts.n == 2 && hosts.sum.lost == 3 && hosts.sum.minutes == 1);
        struct seen later = look(
            s,
            (struct store_slots){.route = "/a", .host = "", .width_ms = STORE_SLOT_MS, .from_ms = BASE + 1});
        assert_true(later.n == 1 && later.sum.latency.count == 2);
        assert_int_equal(look(s, (struct store_slots){.project = "p", .width_ms = STORE_HOUR_MS}).n, 0);
        s->ops->close(s);
        unlink(path);
    }
}

static void a_batch_is_kept_once(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(i)
    {
        struct store *s = open_with(backends[i]);
        assert_int_equal(keep(s, 1, "x", BASE, BASE), STORE_NEW);
        assert_int_equal(keep(s, 1, "x", BASE, BASE), STORE_SAME);
        assert_int_equal(keep(s, 1, "y", BASE, BASE), STORE_OTHER);
        struct seen all = look(s, (struct store_slots){.host = "", .width_ms = STORE_HOUR_MS, .route = "/a"});
        assert_int_equal(all.sum.latency.count, 2);
        s->ops->close(s);
        unlink(path);
    }
}

/* By the server's clock, with each batch of the same series. */
static void what_is_too_old_goes(void **state)
{
    static const struct {
        int64_t day;
        size_t ten, minutes, of_host, of_all, heard;
    } rows[] = {{0, 1, 1, 1, 1, 1},
                {1, 2, 2, 2, 2, 2},
                {3, 1, 3, 3, 3, 3},
                {32, 1, 2, 2, 4, 4},
                {800, 1, 1, 1, 1, 1}};
    (void)state;
    FOR_EACH_BACKEND(i)
    {
        struct store *s = open_with(backends[i]);
        for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
            int64_t at = BASE + rows[k].day * 24 * HOUR;
            assert_int_equal(keep(s, k, "x", at, at + 10000), STORE_NEW);
            struct store_slots q = {.route = "/a", .host = "", .width_ms = STORE_SLOT_MS};
            assert_int_equal(look(s, q).n, rows[k].ten);
            q.width_ms = STORE_MINUTE_MS;
            assert_int_equal(look(s, q).n, rows[k].minutes);
            q.width_ms = STORE_HOUR_MS;
            assert_int_equal(look(s, q).n, rows[k].of_all);
            q.host = NULL;
            assert_int_equal(look(s, q).n, rows[k].of_host);
            q.route = "";
            assert_int_equal(look(s, q).n, rows[k].heard);
        }
        assert_int_equal(keep(s, 0, "x", BASE, BASE + 800 * 24 * HOUR),
                         STORE_NEW); /* so old an id is not known */
        s->ops->close(s);
        unlink(path);
    }
}

/* Sealed five minutes after the hour; then every five minutes. */
static void late_batches_have_seals_of_their_own(void **state)
{
    static const struct {
        int64_t received, seal;
    } rows[] = {{10000, HOUR + 300000},         {HOUR + 299999, HOUR + 300000},
                {HOUR + 300000, HOUR + 600000}, {HOUR + 599999, HOUR + 600000},
                {HOUR + 600000, HOUR + 900000}, {30 * HOUR + 1, 30 * HOUR + 300000}};
    (void)state;
    FOR_EACH_BACKEND(i)
    {
        struct store *s = open_with(backends[i]);
        for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
            keep(s, k, "x", BASE, BASE + rows[k].received);
            struct store_slots q = {.host = "", .width_ms = STORE_HOUR_MS, .route = "/a"};
            assert_int_equal(look(s, q).last_seal, BASE + rows[k].seal);
            q.seal_ms = BASE + rows[k].seal;
            assert_int_equal(look(s, q).sum.latency.count, 2 * (k + 1));
            q.seal_ms = BASE + HOUR + 300000;
            assert_int_equal(look(s, q).sum.latency.count, k ? 4 : 2); /* what was sealed stays as it was */
        }
        s->ops->close(s);
        unlink(path);
    }
}

static void what_failed_left_nothing(void **state)
{
    (void)state;
    assert_true(use_backend(&store_sqlite));
    struct store *s = open_with(&store_sqlite);
    struct requests r;
    keep(s, 9, "x", BASE - HOUR, BASE);
    keep(s, 8, "x", BASE - HOUR / 2,
         BASE); /* its statements are prepared now, those for what is there, too */
    look(s, (struct store_slots){.width_ms = STORE_HOUR_MS, .from_ms = BASE});
    assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
    assert_int_equal(s->ops->end(s, false, NULL), TARE_OK);
    make(&r, 1, "x", BASE);
    long start = mem_live_blocks();
    for (long n = 0;; n++) {
        struct store_sent b = {.project = "", .id = r.id, .received_ms = BASE};
        enum store_kept was = STORE_NEW;
        assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
        mem_fail_after(n);
        tare_status status = store_add_requests(s, &r, &b, &was, NULL);
        mem_fail_after(-1);
        assert_int_equal(s->ops->end(s, status == TARE_OK, NULL), TARE_OK);
        assert_int_equal(mem_live_blocks(), start);
        if (status == TARE_OK) break;
        assert_int_equal(status, TARE_NOMEM);
        assert_int_equal(look(s, (struct store_slots){.width_ms = STORE_HOUR_MS, .from_ms = BASE}).n, 0);
    }
    assert_int_equal(look(s, (struct store_slots){.width_ms = STORE_HOUR_MS, .route = "/a", .from_ms = BASE})
                         .sum.latency.count,
                     2);
    requests_release(&r);
    s->ops->close(s);
    unlink(path);
}

struct named {
    size_t n;
    struct store_service last;
};

static tare_status name(void *ctx, const struct store_service *one, tare_error *err)
{
    struct named *to = ctx;
    (void)err;
    to->n++;
    to->last = *one;
    return TARE_OK;
}

static void services_are_listed(void **state)
{
    (void)state;
    FOR_EACH_BACKEND(i)
    {
        struct store *s = open_with(backends[i]);
        struct named named = {0};
        keep(s, 1, "x", BASE, BASE);
        keep(s, 2, "y", BASE + 2 * HOUR, BASE);
        assert_int_equal(s->ops->services(s, NULL, name, &named, NULL), TARE_OK);
        assert_true(named.n == 1 && named.last.routes == 2 && named.last.hosts == 2);
        assert_true(named.last.first_ms == BASE && named.last.last_ms == BASE + 2 * HOUR);
        named.n = 0;
        assert_int_equal(s->ops->services(s, "p", name, &named, NULL), TARE_OK);
        assert_int_equal(named.n, 0);
        s->ops->close(s);
        unlink(path);
    }
}

static int begin(void **state)
{
    return enter(state) ? -1 : find_postgres(state);
}

static int finish(void **state)
{
    return end_postgres(state) || leave(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgresql_is_here),
        cmocka_unit_test(slots_of_every_width),
        cmocka_unit_test(a_batch_is_kept_once),
        cmocka_unit_test(what_is_too_old_goes),
        cmocka_unit_test(late_batches_have_seals_of_their_own),
        cmocka_unit_test(what_failed_left_nothing),
        cmocka_unit_test(services_are_listed),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}
