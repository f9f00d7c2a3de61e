/* SPDX-License-Identifier: MIT
 * test_raw_samples.c - raw samples as text, with and without zstd: exact, told apart, and refused when they
 * are hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/mem.h"
#include "run/raw_samples.h"

static const char *const codecs[] = {SAMPLES_ZSTD, SAMPLES_PLAIN};

static void round_trip(const uint64_t *v, size_t n, const char *codec)
{
    struct buf text = BUF_INIT;
    struct arena a = {0};
    tare_error err = TARE_ERROR_INIT;
    uint64_t *back = NULL;
    assert_int_equal(samples_encode(v, n, codec, &text, &err), TARE_OK);
    buf_add_str(&text, "");
    struct samples_text from = {codec, text.data ? text.data : "", n};
    if (samples_decode(&a, &from, &back, &err) < 0) fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++) assert_int_equal(back[i], v[i]);
    arena_release(&a);
    buf_release(&text);
}

static void exact_by_both(void **state)
{
    (void)state;
    static const uint64_t edges[] = {0, 1, INT64_MAX, 0, 127, 128, 1000000007, 1000000007, INT64_MAX, 5};
    uint64_t many[5000];
    for (size_t i = 0; i < 5000; i++) many[i] = 1000000 + i * 7919 % 4001;
    for (size_t c = 0; c < 2; c++) {
        round_trip(edges, sizeof edges / sizeof *edges, codecs[c]);
        round_trip(many, 5000, codecs[c]);
        round_trip(edges, 1, codecs[c]);
    }
    assert_string_equal(samples_codec(), SAMPLES_ZSTD); /* this program has it */
}

static void refused(const char *codec, const char *data, size_t n, const char *why)
{
    struct arena a = {0};
    tare_error err = TARE_ERROR_INIT;
    uint64_t *back = NULL;
    struct samples_text from = {codec, data, n};
    assert_int_equal(samples_decode(&a, &from, &back, &err), TARE_FORMAT);
    assert_string_equal(err.text, why);
    assert_null(back);
    arena_release(&a);
}

static void damage_is_told(void **state)
{
    (void)state;
    refused(SAMPLES_PLAIN, "@@@@", 1, "not base64");
    refused(SAMPLES_PLAIN, "AA", 1, "not base64");
    refused(SAMPLES_PLAIN, "", 1, "damaged at sample 0 of 1");
    refused(SAMPLES_PLAIN, "AAAA", 2, "more bytes than its count of 2 samples");
    refused(SAMPLES_PLAIN, "gICA", 1, "damaged at sample 0 of 1"); /* a varint without its end */
    refused(SAMPLES_PLAIN, "AQ==", 1, "sample 0 is out of range"); /* -1 */
    refused(SAMPLES_ZSTD, "AAAA", 3, "not 3 compressed samples");  /* the other codec's bytes */
}

static void out_of_memory_leaves_nothing(void **state)
{
    (void)state;
    static const uint64_t v[] = {5, 6, 7, 1 << 20};
    long live = mem_live_blocks();
    for (size_t c = 0; c < 2; c++) {
        tare_status s = TARE_NOMEM;
        for (long n = 0; s != TARE_OK; n++) {
            struct buf text = BUF_INIT;
            mem_fail_after(n);
            s = samples_encode(v, 4, codecs[c], &text, NULL);
            mem_fail_after(-1);
            assert_true(s == TARE_OK || s == TARE_NOMEM);
            buf_release(&text);
            assert_int_equal(mem_live_blocks(), live);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_by_both),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(out_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
