/* SPDX-License-Identifier: MIT
 * test_roofline.c - layers with round numbers against a roof with round numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "analyze/layers/layers.h"

/* 100 GFLOP/s, 400 G int8 operations/s, 20 GB/s: 5 FLOP or 20 int8 operations per byte. */
static struct run_case *start(struct run *r)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(r, "bench", &err), TARE_OK);
    r->subject.type = "onnx";
    r->subject.name = "m";
    r->roof = (struct run_roof){.known = true,
                                .threads = known_u64(2),
                                .flops = known_f64(100e9),
                                .int_ops = known_f64(400e9),
                                .bandwidth = known_f64(20e9)};
    struct run_case *c = run_add_case(r, "batch=1");
    assert_non_null(c);
    run_map_int(&r->arena, &c->params, "threads", 2);
    return c;
}

static struct run_layer *layer(struct run *r, struct run_case *c, double flops, double bytes, double ns)
{
    struct run_layer *l = run_add_layer(r, c, "x");
    assert_non_null(l);
    if (flops >= 0) l->flops = known_u64((uint64_t)flops);
    if (bytes >= 0) l->bytes = known_u64((uint64_t)bytes);
    if (ns > 0) l->time_ns = known_f64(ns);
    return l;
}

static void finish(struct run *r)
{
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (run_write(r, &text, &err) < 0)
        fail_msg("%s", err.text); /* what was filled in may stand in a document */
    buf_release(&text);
    run_release(r);
}

static void near(struct known_f64 v, double want)
{
    assert_true(v.known);
    if (!(fabs(v.v - want) <= 1e-9 * fabs(want))) fail_msg("%g instead of %g", v.v, want);
}

static void test_compute_bound(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    struct run_layer *l =
        layer(&r, c, 1e9, 1e7, 20e6); /* needs 10 ms of arithmetic, 0.5 ms of memory; took 20 */
    l->share = known_f64(0.75);
    roofline_apply(&r, c);
    near(l->intensity, 100);
    near(l->rate, 50e9);
    near(l->bandwidth, 0.5e9);
    assert_string_equal(l->bound, "compute");
    near(l->roof_share, 0.5);
    near(l->speedup_if_free, 4);
    finish(&r);
}

static void test_memory_bound(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    struct run_layer *l = layer(&r, c, 1e6, 2e7, 4e6); /* 0.01 ms of arithmetic, 1 ms of memory; took 4 */
    struct run_layer *moves = layer(&r, c, 0, 2e7, 2e6);
    struct run_layer *cached = layer(&r, c, 1e6, 2e7, 0.5e6);
    struct run_layer *ridge = layer(&r, c, 5e6, 1e6, 1e6); /* exactly as much of both: not above the ridge */
    roofline_apply(&r, c);
    assert_string_equal(l->bound, "memory");
    near(l->roof_share, 0.25);
    assert_false(l->speedup_if_free.known); /* no share was given */
    assert_string_equal(moves->bound, "memory");
    near(moves->roof_share, 0.5);
    near(moves->rate, 0);
    near(cached->roof_share, 2); /* data that stayed in a cache: kept as it is */
    assert_string_equal(ridge->bound, "memory");
    finish(&r);
}

static void test_integers_have_their_own_roof(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    struct run_layer *l = layer(&r, c, 1000, 1e7, 2e6);
    l->int_macs = known_u64(200000000); /* 4e8 operations: 1 ms at 400 G; memory 0.5 ms */
    struct run_layer *other = layer(&r, c, 1e9, 1e7, 20e6);
    other->int_macs = known_u64(0);
    roofline_apply(&r, c);
    near(l->intensity, 40);
    near(l->rate, 200e9);
    assert_string_equal(l->bound, "compute");
    near(l->roof_share, 0.5);
    near(other->roof_share, 0.5); /* the float roof */
    l->bound = NULL;
    l->roof_share.known = false;
    r.roof.int_ops.known = false;
    roofline_apply(&r, c);
    assert_null(l->bound);
    assert_false(l->roof_share.known);
    near(l->rate, 200e9); /* needs no roof */
    finish(&r);
}

static void test_unknown_stays_unknown(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    struct run_layer *no_flops = layer(&r, c, -1, 1e7, 1e6), *no_bytes = layer(&r, c, 1e6, -1, 1e6),
                     *no_time = layer(&r, c, 1e9, 1e7, 0), *view = layer(&r, c, 0, 0, 1e3),
                     *all = layer(&r, c, 1e6, 1e6, 1e6);
    all->share = known_f64(1);
    roofline_apply(&r, c);
    assert_false(no_flops->intensity.known || no_flops->rate.known || no_flops->roof_share.known);
    assert_null(no_flops->bound);
    near(no_flops->bandwidth, 10e9);
    assert_false(no_bytes->intensity.known || no_bytes->bandwidth.known || no_bytes->roof_share.known);
    assert_null(no_bytes->bound);
    assert_string_equal(no_time->bound, "compute"); /* known without a clock */
    assert_false(no_time->roof_share.known || no_time->rate.known);
    assert_null(view->bound);
    assert_false(view->intensity.known || view->roof_share.known);
    assert_false(all->speedup_if_free.known); /* without bound */
    finish(&r);
}

static void test_only_where_the_roof_holds(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    struct run_layer *gpu = layer(&r, c, 1e9, 1e7, 1e6), *cpu = layer(&r, c, 1e9, 1e7, 20e6);
    gpu->provider = "CUDAExecutionProvider";
    cpu->provider = "CPUExecutionProvider";
    roofline_apply(&r, c);
    assert_null(gpu->bound);
    assert_false(gpu->roof_share.known);
    near(gpu->rate, 1000e9);
    near(cpu->roof_share, 0.5);
    finish(&r);

    c = start(&r); /* another number of threads */
    cpu = layer(&r, c, 1e9, 1e7, 20e6);
    run_map_int(&r.arena, &c->params, "threads", 1);
    roofline_apply(&r, c);
    assert_null(cpu->bound);
    assert_non_null(strstr(run_reason(&c->unknown, "layers.roof_share"), "threads"));
    finish(&r);

    c = start(&r); /* no roof */
    cpu = layer(&r, c, 1e9, 1e7, 20e6);
    cpu->share = known_f64(0.5);
    r.roof.known = false;
    roofline_apply(&r, c);
    near(cpu->intensity, 100);
    assert_null(cpu->bound);
    near(cpu->speedup_if_free, 2);
    assert_null(run_reason(&c->unknown, "layers.roof_share"));
    finish(&r);
}

/* A layer on a GPU is held against the GPU's roof, by the numbers it makes; without one it has rates alone. */
static void test_on_a_gpu(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    struct run_layer *l[4];
    static const char *const output[] = {"float32[8,384]", "float16[8,384]", "bfloat16[8]", "float32[4]"};
    for (size_t i = 0; i < 4; i++) {
        l[i] = layer(&r, c, 1e9, 1e6, 100e3);
        l[i]->provider = "CUDAExecutionProvider";
        l[i]->output = output[i];
        l[i]->operations = known_u64(i < 3);
        l[i]->gpu_ns = run_estimate(100e3, 99e3, 101e3);
    }
    roofline_apply(&r, c);
    near(l[0]->rate, 1e13);
    assert_null(l[0]->bound);
    r.gpu_roof = (struct run_gpu_roof){.known = true,
                                       .fp32 = run_estimate(5e13, 4e13, 5e13),
                                       .tf32 = run_estimate(2e14, 1e14, 2e14),
                                       .fp16 = run_estimate(4e14, 3e14, 4e14),
                                       .bandwidth = run_estimate(4e12, 3e12, 4e12)};
    roofline_apply(&r, c);
    near(l[0]->roof_share, 0.05);  /* 5 us of tf32, 0.25 of memory */
    near(l[1]->roof_share, 0.025); /* 2.5 us of fp16 */
    assert_string_equal(l[0]->bound, "compute");
    assert_false(l[2]->roof_share.known); /* bf16 was not measured */
    assert_null(l[3]->bound);             /* nothing of it ran on the GPU */
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compute_bound),          cmocka_unit_test(test_memory_bound),
        cmocka_unit_test(test_integers_have_their_own_roof), cmocka_unit_test(test_unknown_stays_unknown),
        cmocka_unit_test(test_only_where_the_roof_holds), cmocka_unit_test(test_on_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
