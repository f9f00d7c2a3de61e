/* SPDX-License-Identifier: MIT
 * test_snappy.c - what is packed unpacks to itself, by a reader that knows every form of the format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "server/exports/snappy.h"

static void unpack(const struct buf *from, struct buf *out)
{
    const uint8_t *p = (const uint8_t *)from->data, *end = p + from->len;
    size_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
        size |= (size_t)(*p & 127) << shift;
        if (!(*p++ & 128)) break;
    }
    while (p < end) {
        unsigned tag = *p++, kind = tag & 3;
        size_t n = (tag >> 2) + 1, back = 0;
        if (kind == 0) {
            if (n > 60) {
                unsigned bytes = (unsigned)n - 60;
                n = 0;
                for (unsigned i = 0; i < bytes; i++) n |= (size_t)*p++ << 8 * i;
                n++;
            }
            assert_true(n <= (size_t)(end - p));
            buf_add(out, p, n);
            p += n;
            continue;
        }
        assert_int_equal(kind, 2); /* the others are never written */
        back = p[0] | (size_t)p[1] << 8;
        p += 2;
        assert_true(back > 0 && back <= out->len);
        for (size_t i = 0; i < n; i++) buf_add_char(out, out->data[out->len - back]);
    }
    assert_true(p == end);
    assert_int_equal(out->len, size);
}

static size_t check(const void *bytes, size_t n)
{
    struct buf packed = BUF_INIT, out = BUF_INIT;
    snappy_pack(&packed, bytes, n);
    unpack(&packed, &out);
    assert_int_equal(out.len, n);
    if (n) assert_memory_equal(out.data, bytes, n);
    size_t size = packed.len;
    buf_release(&packed);
    buf_release(&out);
    return size;
}

static void all_lengths_and_kinds(void **state)
{
    static uint8_t bytes[200000];
    uint32_t seed = 1;
    (void)state;
    for (size_t n = 0; n < 300; n++) check(bytes, n); /* zeros */
    assert_true(check(bytes, sizeof bytes) < sizeof bytes / 15);
    for (unsigned kinds = 2; kinds <= 256; kinds *= 4) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed = seed * 1103515245 + 12345;
            bytes[i] = (uint8_t)((seed >> 16) % kinds);
        }
        for (size_t n = 1; n < 400; n++) check(bytes + n, n);
        for (size_t n = 65530; n < 65545; n++) check(bytes, n);
        assert_true(check(bytes, sizeof bytes) <= sizeof bytes + sizeof bytes / 6);
    }
    memcpy(bytes + 65535, bytes, 100); /* as far back as it may look, and one byte further */
    memcpy(bytes + 65536 + 200, bytes + 100, 100);
    check(bytes, 66000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_lengths_and_kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
