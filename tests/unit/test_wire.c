/* SPDX-License-Identifier: MIT
 * test_wire.c - what is written is read again, in this order and by these bytes; what is cut off is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "core/wire.h"

/* The example of the protobuf documentation: field 1 = 150, and the same in a message that is field 3. */
static void known_bytes(void **state)
{
    (void)state;
    struct buf b = BUF_INIT, outer = BUF_INIT;
    wire_add_uint(&b, 1, 150);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "\x08\x96\x01", 3);
    wire_add_message(&outer, 3, &b);
    assert_int_equal(b.len, 0);
    assert_memory_equal(outer.data, "\x1a\x03\x08\x96\x01", 5);
    buf_release(&b);
    buf_release(&outer);
}

static void written_is_read_again(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0, 1, 127, 128, 300, UINT32_MAX, INT64_MAX, UINT64_MAX};
    struct buf b = BUF_INIT;
    struct wire_field f;
    const char *why = NULL;
    for (size_t i = 0; i < 8; i++) wire_add_uint(&b, (uint32_t)i + 1, numbers[i]);
    wire_add_str(&b, 536870911, "text");
    wire_add_key(&b, 2, WIRE_FIXED32);
    wire_add_fixed(&b, 0x12345678, 4);
    struct wire w = {(const uint8_t *)b.data, (const uint8_t *)b.data + b.len};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(wire_next(&w, &f, &why), 1);
        assert_true(f.number == i + 1 && f.type == WIRE_VARINT && f.value == numbers[i]);
    }
    assert_int_equal(wire_next(&w, &f, &why), 1);
    assert_true(f.number == 536870911 && f.type == WIRE_BYTES && f.n == 4 && memcmp(f.bytes, "text", 4) == 0);
    assert_int_equal(wire_next(&w, &f, &why), 1);
    assert_true(f.type == WIRE_FIXED32 && f.value == 0x12345678);
    assert_int_equal(wire_next(&w, &f, &why), 0);
    w = (struct wire){(const uint8_t *)b.data, (const uint8_t *)b.data + b.len - 1};
    int got;
    while ((got = wire_next(&w, &f, &why)) > 0) continue;
    assert_int_equal(got, -1);
    assert_non_null(why);
    buf_release(&b);
}

static void a_failed_message_fails_what_holds_it(void **state)
{
    (void)state;
    struct buf b = BUF_INIT, inner = BUF_INIT;
    mem_fail_after(0);
    wire_add_str(&inner, 1, "x");
    mem_fail_after(-1);
    wire_add_message(&b, 1, &inner);
    assert_true(b.failed);
    buf_release(&b);
    buf_release(&inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_bytes),
        cmocka_unit_test(written_is_read_again),
        cmocka_unit_test(a_failed_message_fails_what_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
