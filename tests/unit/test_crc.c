/* SPDX-License-Identifier: MIT
 * test_crc.c - published vectors, chaining, and both ways of computing against a bit-by-bit one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/crc.h"
#include "core/rng.h"

static uint32_t by_bits(const unsigned char *p, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

/* RFC 3720 appendix B.4, and the customary check string. */
static void published_vectors(void **state)
{
    (void)state;
    unsigned char b[32];
    assert_int_equal(crc32c(0, "123456789", 9), 0xE3069283u);
    assert_int_equal(crc32c_portable(0, "123456789", 9), 0xE3069283u);
    memset(b, 0, sizeof b);
    assert_int_equal(crc32c(0, b, sizeof b), 0x8A9136AAu);
    memset(b, 0xFF, sizeof b);
    assert_int_equal(crc32c(0, b, sizeof b), 0x62A8AB43u);
    for (int i = 0; i < 32; i++) b[i] = (unsigned char)i;
    assert_int_equal(crc32c(0, b, sizeof b), 0x46DD794Eu);
    for (int i = 0; i < 32; i++) b[i] = (unsigned char)(31 - i);
    assert_int_equal(crc32c(0, b, sizeof b), 0x113FDB5Cu);
}

static void empty_is_seed(void **state)
{
    (void)state;
    assert_int_equal(crc32c(0, NULL, 0), 0);
    assert_int_equal(crc32c(0xDEADBEEFu, NULL, 0), 0xDEADBEEFu);
    assert_int_equal(crc32c_portable(0xDEADBEEFu, NULL, 0), 0xDEADBEEFu);
}

static void all_lengths_and_alignments_agree(void **state)
{
    (void)state;
    unsigned char b[300];
    struct rng r;
    rng_seed(&r, 7);
    for (size_t i = 0; i < sizeof b; i++) b[i] = (unsigned char)rng_next(&r);
    for (size_t at = 0; at < 9; at++) {
        for (size_t n = 0; n <= 270; n++) {
            uint32_t want = by_bits(b + at, n);
            assert_int_equal(crc32c(0, b + at, n), want);
            assert_int_equal(crc32c_portable(0, b + at, n), want);
        }
    }
}

static void pieces_chain(void **state)
{
    (void)state;
    const char *s = "a trace is a chain of chunks, each with its own sum";
    size_t n = strlen(s);
    uint32_t whole = crc32c(0, s, n);
    for (size_t cut = 0; cut <= n; cut++) {
        assert_int_equal(crc32c(crc32c(0, s, cut), s + cut, n - cut), whole);
        assert_int_equal(crc32c_portable(crc32c_portable(0, s, cut), s + cut, n - cut), whole);
    }
}

static void every_single_bit_flip_is_seen(void **state)
{
    (void)state;
    unsigned char b[64];
    memset(b, 0x5A, sizeof b);
    uint32_t good = crc32c(0, b, sizeof b);
    for (size_t i = 0; i < sizeof b * 8; i++) {
        b[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_int_not_equal(crc32c(0, b, sizeof b), good);
        b[i / 8] ^= (unsigned char)(1u << i % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(empty_is_seed),
        cmocka_unit_test(all_lengths_and_alignments_agree),
        cmocka_unit_test(pieces_chain),
        cmocka_unit_test(every_single_bit_flip_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
