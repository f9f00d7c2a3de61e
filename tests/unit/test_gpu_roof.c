/* SPDX-License-Identifier: MIT
 * test_gpu_roof.c - a GPU's roof as text and back, into a document, and what is said where there is no GPU. The
 * measurement itself needs one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mem.h"
#include "probe/gpu_roof.h"

static const char host[] = "h1-0123456789abcdef";
enum { NOW = 1794732695 };

static struct gpu_roof made(void)
{
    struct gpu_roof r = {.device = "NVIDIA H200",
                         .uuid = "00112233445566778899aabbccddeeff",
                         .driver = "13.0",
                         .library = "libcublas.so.13 130002",
                         .measured = "2026-11-16T08:00:00Z"};
    for (int k = 0; k < GPU_ROOF_KINDS; k++)
        r.of[k].per_s = (struct interval){(k + 1) * 1e12, k * 1e12 + 5e11, (k + 1) * 1e12};
    r.of[GPU_ROOF_INT8].per_s = (struct interval){NAN, NAN, NAN};
    snprintf(r.of[GPU_ROOF_INT8].why, sizeof r.of->why, "error 15 of the GPU or its library");
    return r;
}

static void text_and_back(void **state)
{
    (void)state;
    struct gpu_roof r = made(), got;
    struct buf text = BUF_INIT;
    gpu_roof_write(&r, host, NOW - 10, &text);
    assert_true(gpu_roof_read(&got, host, NOW, text.data, text.len));
    assert_true(got.cached);
    assert_string_equal(got.device, "NVIDIA H200");
    assert_string_equal(got.library, "libcublas.so.13 130002");
    assert_float_equal(got.of[GPU_ROOF_FP16].per_s.value, 3e12, 1e3);
    assert_float_equal(got.of[GPU_ROOF_FP16].per_s.lo, 2.5e12, 1e3);
    assert_true(isnan(got.of[GPU_ROOF_INT8].per_s.value));
    assert_string_equal(got.of[GPU_ROOF_INT8].why, r.of[GPU_ROOF_INT8].why);
    assert_false(gpu_roof_read(&got, "h1-other", NOW, text.data, text.len));
    assert_false(gpu_roof_read(&got, host, NOW - 20, text.data, text.len)); /* of the future */
    assert_false(gpu_roof_read(&got, host, NOW + (int64_t)31 * 86400, text.data, text.len)); /* too old */
    for (size_t n = 0; n < text.len; n++) assert_false(gpu_roof_read(&got, host, NOW, text.data, n));
    static const char *const damage[][2] = {{"tare.gpu-roof/1", "tare.gpu-roof/2"},
                                            {"fp32 1e+12", "fp32 -e+12"},
                                            {"5e+11", "9e+12"},
                                            {"tf32 ", "tf31 "},
                                            {"bf16 4e+12", "bf16 4e+99"}};
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        char *at = strstr(text.data, damage[i][0]);
        size_t n = strlen(damage[i][0]);
        assert_non_null(at);
        memcpy(at, damage[i][1], n);
        assert_false(gpu_roof_read(&got, host, NOW, text.data, text.len));
        memcpy(at, damage[i][0], n);
    }
    assert_true(gpu_roof_read(&got, host, NOW, text.data, text.len));
    buf_release(&text);
}

static void is_kept_per_card(void **state)
{
    (void)state;
    char dir[] = "/tmp/tare-gpu-roof-XXXXXX", path[200];
    struct gpu_roof r = made(), got;
    assert_non_null(mkdtemp(dir));
    struct gpu_roof_options o = {.cache_dir = dir, .fingerprint = host};
    gpu_roof_save(&r, &o); /* one rate is not known: the next time may tell it */
    assert_false(gpu_roof_recall(&got, &o, r.uuid, r.driver));
    r.of[GPU_ROOF_INT8] = r.of[GPU_ROOF_FP16];
    gpu_roof_save(&r, &o);
    assert_true(gpu_roof_recall(&got, &o, r.uuid, r.driver));
    assert_false(gpu_roof_recall(&got, &o, r.uuid, "13.1"));
    assert_false(gpu_roof_recall(&got, &o, "ff112233445566778899aabbccddeeff", r.driver));
    assert_false(gpu_roof_recall(&got, &o, "../x", r.driver));
    snprintf(path, sizeof path, "%s/roof-%s-gpu-%s.txt", dir, host, r.uuid);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void into_a_document(void **state)
{
    (void)state;
    struct run run;
    struct gpu_roof r = made();
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    run.subject.type = "onnx";
    run.subject.name = "m";
    gpu_roof_record(&r, &run);
    assert_float_equal(run.gpu_roof.tf32.value, 2e12, 1);
    assert_float_equal(run.gpu_roof.tf32.lo.v, 1.5e12, 1);
    assert_false(run.gpu_roof.int8.known);
    assert_string_equal(run_map_get(&run.gpu_roof.why, "int8")->s, r.of[GPU_ROOF_INT8].why);
    if (run_write(&run, &text, &err) < 0) fail_msg("%s", err.text);
    buf_release(&text);
    run_release(&run);
}

/* Where there is a GPU it is measured; elsewhere it is said why not, and *out stays as it was. */
static void without_a_gpu_it_says_so(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct gpu_roof r = {.device = "untouched"};
    struct gpu_roof_options o = {.fresh = true};
    tare_status s = gpu_roof_measure(&r, &o, &err);
    if (s == TARE_OK) {
        for (int k = 0; k < GPU_ROOF_KINDS; k++) assert_true(r.of[k].per_s.value > 0 || r.of[k].why[0]);
    } else {
        assert_int_equal(s, TARE_UNSUPPORTED);
        assert_non_null(strstr(err.text, "CUDA driver"));
        assert_string_equal(r.device, "untouched");
    }
    assert_int_equal(mem_live_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_back),
        cmocka_unit_test(is_kept_per_card),
        cmocka_unit_test(into_a_document),
        cmocka_unit_test(without_a_gpu_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
