/* SPDX-License-Identifier: MIT
 * test_otlp.c - OTLP in protobuf: what is taken of it, and every allocation that fails. tests/python/test_serve_live.py
 * holds it to Google's own library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/mem.h"
#include "core/wire.h"
#include "server/live/readings.h"

/* One gauge of a host, with a label. */
static void make_request(struct buf *out)
{
    struct buf value = BUF_INIT, pair = BUF_INIT, point = BUF_INIT, list = BUF_INIT, metric = BUF_INIT,
               scope = BUF_INIT, resource = BUF_INIT, whole = BUF_INIT;
    double number = 2.5;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    wire_add_str(&value, 1, "gpu7");
    wire_add_str(&pair, 1, "host.name");
    wire_add_message(&pair, 2, &value);
    wire_add_message(&resource, 1, &pair);
    wire_add_uint(&value, 3, 3);
    wire_add_str(&pair, 1, "gpu");
    wire_add_message(&pair, 2, &value);
    wire_add_message(&point, 7, &pair);
    wire_add_key(&point, 3, WIRE_FIXED64);
    wire_add_fixed(&point, UINT64_C(1763200000000000000), 8);
    wire_add_key(&point, 4, WIRE_FIXED64);
    wire_add_fixed(&point, bits, 8);
    wire_add_str(&point, 99, "what nobody asks for");
    wire_add_message(&list, 1, &point);
    wire_add_str(&metric, 1, "app.load");
    wire_add_message(&metric, 5, &list);
    wire_add_message(&scope, 2, &metric);
    wire_add_message(&whole, 1, &resource);
    wire_add_message(&whole, 2, &scope);
    wire_add_message(out, 1, &whole);
    struct buf *const all[] = {&value, &pair, &point, &list, &metric, &scope, &resource, &whole};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) buf_release(all[i]);
}

static void one_number(void **state)
{
    struct otlp o = {.arena = ARENA_INIT};
    struct buf text = BUF_INIT;
    (void)state;
    make_request(&text);
    assert_int_equal(otlp_read_proto(&o, text.data, text.len, NULL), TARE_OK);
    assert_int_equal(o.rejected, 0);
    assert_int_equal(o.hosts.at.n, 1);
    const struct readings *r = o.hosts.at.items[0];
    assert_string_equal(r->host, "gpu7");
    assert_string_equal(r->metrics.items[0].name, "app.load");
    assert_string_equal(r->metrics.items[0].label, "gpu=3");
    assert_true(r->at.items[0].value == 2.5 && r->at.items[0].at_ms == INT64_C(1763200000000));
    otlp_release(&o);
    buf_release(&text);
}

static void *gated_malloc(size_t n)
{
    return mem_new(n, 1);
}

static void no_memory(void **state)
{
    struct buf text = BUF_INIT;
    long n = 0;
    (void)state;
    make_request(&text);
    json_set_alloc_funcs(gated_malloc, mem_free);
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        struct otlp o = {.arena = ARENA_INIT};
        long before = mem_live_blocks();
        mem_fail_after(n);
        s = otlp_read_proto(&o, text.data, text.len, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        otlp_release(&o);
        assert_int_equal(mem_live_blocks(), before);
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(n > 20);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_number), cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
