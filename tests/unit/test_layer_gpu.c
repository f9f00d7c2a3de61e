/* SPDX-License-Identifier: MIT
 * test_layer_gpu.c - operations of a GPU given to the nodes that launched them: made-up runs with and without the
 * runtime's profiler, whose every time is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/layers/layer_parts.h"
#include "analyze/layers/layers.h"
#include "core/mem.h"

enum { RUNS = 8, US = 1000, RUN_NS = 1000 * US, TO_DEVICE = 7, TO_HOST = 8 };

/* ---- a model of three nodes: MatMul (two kernels) and Gelu (one) on the GPU, Shape on the processor ---- */

static void add_node(struct buf *b, const char *name, const char *provider, int64_t start, int64_t dur)
{
    buf_printf(b,
               "{\"cat\" : \"Node\",\"pid\" :1,\"tid\" :1,\"dur\" :%lld,\"ts\" :%lld,\"ph\" : \"X\",\"name\" "
               ":\"%s_kernel_time\",\"args\" : {\"op_name\" : \"%s\",\"provider\" : \"%s\"}},\n",
               (long long)dur, (long long)start, name, name, provider);
}

struct made {
    struct ort_profile profile;
    struct layers_gpu gpu;
};

struct shape {     /* of what is made */
    int odd_plain; /* this plain run lacks its last kernel; -1: none does */
    bool other_profiled, no_launches;
    int64_t shift_us; /* of the profile's clock, from the third run on */
    int64_t early_us; /* of the profile's clock, in all runs */
};

static void add_op(struct made *m, uint64_t launched, uint64_t start, uint64_t duration, uint32_t name)
{
    struct layers_op op = {.launched = launched, .start = start, .duration = duration, .name = name};
    op.copy = name >= TO_DEVICE;
    op.bytes = op.copy ? 4096 : 0;
    assert_int_equal(vec_push(&m->gpu.ops, op, NULL), TARE_OK);
}

/* Run k begins at 1 ms * (k + 1); odd ones are profiled, and slower on the GPU. On the GPU of a plain run: 2 us copied
 * to it, MatMul 100 + 50 us (10 us apart), Gelu 20 + k us beside the second of these, 3 us copied back. */
static void add_run_ops(struct made *m, int k, const struct shape *s)
{
    uint64_t at = (uint64_t)(k + 1) * RUN_NS, slow = k % 2 ? 2 : 1, none = s->no_launches ? 0 : at;
    bool lacks = k == s->odd_plain || (s->other_profiled && k % 2);
    uint64_t extra = (uint64_t)k * US * (k % 2 == 0);
#define AT(us) (none ? none + (us)*US : 0)
    add_op(m, AT(5), at + 10 * US, 2 * US * slow, TO_DEVICE);
    add_op(m, AT(101), at + 200 * US, 100 * US * slow, 1);
    add_op(m, AT(108), at + 410 * US, 50 * US * slow, 2);
    if (!lacks) add_op(m, AT(205), at + 430 * US, (20 * US + extra) * slow, 3);
    add_op(m, AT(400), at + 600 * US, 3 * US * slow, TO_HOST);
#undef AT
}

static struct made make(const struct shape *s)
{
    struct made m = {ORT_PROFILE_INIT, LAYERS_GPU_INIT};
    struct buf b = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    buf_add_str(&b, "[\n");
    for (int k = 1; k < RUNS; k += 2) {
        int64_t t = 1000 * (k + 1) + (k >= 3 ? s->shift_us : 0) - s->early_us;
        add_node(&b, "MatMul", "CUDAExecutionProvider", t + 100, 15);
        add_node(&b, "Gelu", "CUDAExecutionProvider", t + 200, 9);
        add_node(&b, "Shape", "CPUExecutionProvider", t + 300, 50);
        buf_printf(&b,
                   "{\"cat\" : \"Session\",\"pid\" :1,\"tid\" :1,\"dur\" :900,\"ts\" :%lld,\"ph\" : \"X\","
                   "\"name\" :\"model_run\",\"args\" : {}},\n",
                   (long long)t);
    }
    buf_add_str(&b, "]\n");
    if (ort_profile_read(&m.profile, "made", b.data, b.len, &err) < 0) fail_msg("%s", err.text);
    buf_release(&b);
    for (int k = 0; k < RUNS; k++) {
        struct layers_window w = {(uint64_t)(k + 1) * RUN_NS, (uint64_t)(k + 1) * RUN_NS + 900 * US, k % 2};
        assert_int_equal(vec_push(&m.gpu.windows, w, NULL), TARE_OK);
        add_run_ops(&m, k, s);
    }
    for (size_t i = 0; i < m.profile.events.n; i++)
        assert_int_equal(vec_push(&m.gpu.events, (uint64_t)m.profile.events.items[i].start_us * US, NULL),
                         TARE_OK);
    return m;
}

static void release(struct made *m)
{
    ort_profile_release(&m->profile);
    layers_gpu_release(&m->gpu);
}

static struct layer_gpu build(struct made *m)
{
    struct layer_gpu g = LAYER_GPU_INIT;
    struct layer_times t = LAYER_TIMES_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(layer_times_build(&t, &m->profile, 0, &err), TARE_OK);
    if (layer_gpu_build(&g, &m->gpu, &m->profile, &t, &err) < 0) fail_msg("%s", err.text);
    layer_times_release(&t);
    return g;
}

/* ---- what is known of it ---- */

static void operations_go_to_their_nodes(void **state)
{
    (void)state;
    struct made m = make(&(struct shape){.odd_plain = -1});
    struct layer_gpu g = build(&m);
    assert_string_equal(g.why, "");
    assert_int_equal(g.n, 3);
    assert_int_equal(g.runs, 4);
    assert_int_equal(g.other_runs, 0);
    assert_int_equal(g.operations, 5);
    assert_int_equal(g.copies, 2);
    assert_int_equal(g.copy_bytes, 8192);
    assert_int_equal(g.slots[0].operations, 2);
    assert_int_equal(g.slots[1].operations, 1);
    assert_int_equal(g.slots[2].operations, 0);
    assert_float_equal(g.slots[0].time_ns.value, 150 * US, 1e-6);
    assert_float_equal(g.slots[0].time_ns.hi - g.slots[0].time_ns.lo, 0, 1e-6); /* always the same */
    assert_float_equal(g.slots[1].time_ns.value, 23 * US, 1e-6);                /* 20 + 0, 2, 4, 6 */
    assert_true(g.slots[1].time_ns.lo < 23 * US && g.slots[1].time_ns.hi > 23 * US);
    assert_float_equal(g.outside_ns.value, 5 * US, 1e-6);
    assert_float_equal(g.joined, 173.0 / 178, 1e-9);
    assert_float_equal(g.copy_ns, 5 * US, 1e-6);
    assert_float_equal(g.copy_sum_ns, 5 * US, 1e-6);
    assert_float_equal(g.kernel_sum_ns, 173 * US, 1e-6);
    assert_float_equal(g.kernel_ns, 150 * US, 1e-6); /* Gelu ran beside the second kernel of MatMul */
    assert_float_equal(g.busy_ns.value, 155 * US, 1e-6);
    assert_float_equal(g.profiled_ratio, 350.0 / 178, 1e-9); /* 2 * (2 + 100 + 50 + 20 + 3) */
    layer_gpu_release(&g);
    release(&m);
}

/* A kernel that is missing in every run leaves runs that look whole: one record that was lost is enough to say so. */
static void what_is_missing_makes_it_unknown(void **state)
{
    (void)state;
    struct made m = make(&(struct shape){.odd_plain = -1});
    m.gpu.lost = 1;
    struct layer_gpu g = build(&m);
    assert_string_equal(g.why, "1 records of the GPU are missing");
    assert_int_equal(g.n, 0);
    layer_gpu_release(&g);
    struct run run;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(&run, "bench", &err), TARE_OK);
    struct run_case *c = run_add_case(&run, "case");
    struct layers_input in = {.profile = &m.profile, .gpu = &m.gpu};
    if (layers_join(&run, c, &in, &err) < 0) fail_msg("%s", err.text);
    assert_false(c->gpu.known);
    assert_string_equal(run_reason(&c->unknown, "gpu"), "1 records of the GPU are missing");
    run_release(&run);
    release(&m);
}

/* Times of layers: those on the GPU by its operations, those on the processor by the profile, the rest as one more. */
static void layers_have_the_time_of_the_gpu(void **state)
{
    (void)state;
    struct made m = make(&(struct shape){.odd_plain = -1});
    for (size_t i = 0; i < m.gpu.ops.n; i++) m.gpu.ops.items[i].fill = m.gpu.ops.items[i].name == TO_HOST;
    struct run run;
    tare_error err = TARE_ERROR_INIT;
    double sum = 0, shares = 0;
    assert_int_equal(run_init(&run, "bench", &err), TARE_OK);
    struct run_case *c = run_add_case(&run, "case");
    c->latency_ns.known = true;
    c->latency_ns.p50 = run_estimate(500 * US, 400 * US, 620 * US);
    uint64_t plain[] = {600 * US, 600 * US, 600 * US}, profiled[] = {600 * US, 600 * US, 600 * US};
    struct layers_input in = {
        .profile = &m.profile, .gpu = &m.gpu, .plain = {plain, 3}, .profiled = {profiled, 3}};
    if (layers_join(&run, c, &in, &err) < 0) fail_msg("%s", err.text);
    const struct {
        const char *name;
        double us;
    } want[] = {{"(runtime)", 295}, {"MatMul", 150}, {"Shape", 50}, {"Gelu", 23}, {LAYERS_OUTSIDE, 5}};
    assert_int_equal(c->layers.n, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct run_layer *l = c->layers.at[i];
        assert_string_equal(l->name, want[i].name);
        assert_float_equal(l->time_ns.v, want[i].us * US, 1e-3);
        assert_int_equal(l->gpu_ns.known, strcmp(l->name, "(runtime)") != 0);
        sum += l->time_ns.v;
        shares += l->share.v;
    }
    assert_float_equal(sum, 523 * US,
                       1e-3); /* 18 us more than the run: Gelu ran beside MatMul; Shape beside nothing */
    assert_float_equal(shares, 1, 1e-9);
    assert_string_equal(c->layers.at[4]->group, "copy");
    const struct run_gpu_pass *p = &c->gpu.pass;
    assert_true(c->gpu.known && p->known);
    assert_int_equal(p->copy_bytes.v, 8192); /* with what was filled */
    assert_int_equal(c->gpu.copy_bytes.v, 4096);
    assert_int_equal(c->gpu.copy_ns.v, 5 * US);
    assert_int_equal(c->gpu.kernel_ns.v, 173 * US); /* each by itself, as the Python package has it */
    assert_float_equal(p->kernel_ns.v, 150 * US, 1e-6);
    assert_float_equal(p->busy_share.value, 0.31, 1e-9);
    assert_float_equal(p->busy_share.lo.v, 155.0 / 620, 1e-9);
    assert_float_equal(p->busy_share.hi.v, 155.0 / 400, 1e-9);
    assert_float_equal(p->recording.v, 0.2, 1e-9); /* 600 us with recording, 500 without */
    struct buf text = BUF_INIT;
    run.subject.type = "onnx";
    run.subject.name = "made";
    if (run_write(&run, &text, &err) < 0) fail_msg("%s", err.text);
    assert_non_null(strstr(text.data, "\"busy_share\""));
    buf_release(&text);
    run_release(&run);
    release(&m);
}

/* Without a recording runs took 140 to 160 us, with it they were busy for 155: never more than all of the time. */
static void no_busier_than_always(void **state)
{
    (void)state;
    struct made m = make(&(struct shape){.odd_plain = -1});
    struct run run;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "case");
    c->latency_ns.known = true;
    c->latency_ns.p50 = run_estimate(150 * US, 140 * US, 160 * US);
    uint64_t plain[] = {600 * US, 600 * US, 600 * US}, profiled[] = {600 * US, 600 * US, 600 * US};
    struct layers_input in = {
        .profile = &m.profile, .gpu = &m.gpu, .plain = {plain, 3}, .profiled = {profiled, 3}};
    assert_int_equal(layers_join(&run, c, &in, NULL), TARE_OK);
    const struct run_estimate *busy = &c->gpu.pass.busy_share;
    assert_true(busy->known && busy->value == 1 && busy->hi.v == 1);
    assert_float_equal(busy->lo.v, 155.0 / 160, 1e-9);
    c->latency_ns.p50 = run_estimate(100 * US, 90 * US, 110 * US);
    assert_int_equal(layers_join(&run, c, &in, NULL), TARE_OK);
    assert_true(busy->value == 1 && busy->lo.v == 1 && busy->hi.v == 1);
    run_release(&run);
    release(&m);
}

static void runs_that_differ_are_left_out(void **state)
{
    (void)state;
    struct made m = make(&(struct shape){.odd_plain = 4});
    struct layer_gpu g = build(&m);
    assert_string_equal(g.why, "");
    assert_int_equal(g.runs, 3);
    assert_int_equal(g.other_runs, 1);
    assert_float_equal(g.slots[1].time_ns.value, 20 * US + 8 * US / 3.0, 1e-3); /* 20 + 0, 2, 6 */
    layer_gpu_release(&g);
    release(&m);
}

static void expect_unknown(const struct shape *s, const char *part)
{
    struct made m = make(s);
    struct layer_gpu g = build(&m);
    if (!strstr(g.why, part)) fail_msg("'%s' does not say '%s'", g.why, part);
    assert_null(g.slots);
    layer_gpu_release(&g);
    /* and the layers keep the host's times, with the reason why */
    struct run run;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "case");
    struct layers_input in = {.profile = &m.profile, .gpu = &m.gpu};
    assert_int_equal(layers_join(&run, c, &in, NULL), TARE_OK);
    assert_false(c->gpu.known);
    assert_non_null(strstr(run_reason(&c->unknown, "gpu"), part));
    for (size_t i = 0; i < c->layers.n; i++) assert_false(c->layers.at[i]->gpu_ns.known);
    run_release(&run);
    release(&m);
}

static void what_does_not_repeat_is_unknown(void **state)
{
    (void)state;
    expect_unknown(&(struct shape){.odd_plain = -1, .other_profiled = true}, "other operations on the GPU");
    expect_unknown(&(struct shape){.odd_plain = -1, .no_launches = true},
                   "the calls that launch operations were not recorded");
    expect_unknown(&(struct shape){.odd_plain = -1, .shift_us = 60}, "disagree on");
    expect_unknown(&(struct shape){.odd_plain = -1, .early_us = 60},
                   "only 0 % of the time of kernels was launched within a node");
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    struct made m = make(&(struct shape){.odd_plain = -1});
    struct layer_times t = LAYER_TIMES_INIT;
    assert_int_equal(layer_times_build(&t, &m.profile, 0, NULL), TARE_OK);
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct layer_gpu g = LAYER_GPU_INIT;
        mem_fail_after(n);
        tare_status s = layer_gpu_build(&g, &m.gpu, &m.profile, &t, NULL);
        mem_fail_after(-1);
        layer_gpu_release(&g);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
    layer_times_release(&t);
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_go_to_their_nodes),
        cmocka_unit_test(layers_have_the_time_of_the_gpu),
        cmocka_unit_test(what_is_missing_makes_it_unknown),
        cmocka_unit_test(no_busier_than_always),
        cmocka_unit_test(runs_that_differ_are_left_out),
        cmocka_unit_test(what_does_not_repeat_is_unknown),
        cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
