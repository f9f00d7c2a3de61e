/* SPDX-License-Identifier: MIT
 * test_finding_layer.c - rules about timed layers and about graphs: each on a document that supports it, and on the
 * nearest ones that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analyze/judge/judge.h"
#include "core/mem.h"
#include "finding_fixture.h"

static struct run_case *start(struct run *r)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(r, "bench", &err), TARE_OK);
    r->subject.type = "onnx";
    r->subject.name = "m";
    struct run_case *c = run_add_case(r, "batch=1");
    assert_non_null(c);
    run_map_text(&r->arena, &c->params, "provider", "cpu");
    return c;
}

struct made {
    const char *op;
    double share, roof_share; /* negative: unknown */
    const char *bound;
};
static struct run_layer *add(struct run *r, struct run_case *c, struct made m)
{
    struct run_layer *l = run_add_layer(r, c, arena_printf(&r->arena, "/%s_%zu", m.op, c->layers.n));
    assert_non_null(l);
    l->op = m.op;
    l->bound = m.bound;
    l->provider = "CPUExecutionProvider";
    if (m.share >= 0) l->share = known_f64(m.share);
    if (m.roof_share >= 0) l->roof_share = known_f64(m.roof_share);
    return l;
}

static size_t count(const struct run *r, const char *id)
{
    size_t n = 0;
    for (size_t i = 0; i < r->findings.n; i++) n += strcmp(r->findings.at[i]->id, id) == 0;
    return n;
}

/* ---- the roof ---- */

static void test_far_from_roof(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    add(&r, c, (struct made){"MatMul", 0.3, 0.2, "compute"});
    add(&r, c, (struct made){"MatMul", 0.3, 0.4, "compute"});
    add(&r, c, (struct made){"Softmax", 0.1, 0.1, "memory"});
    add(&r, c, (struct made){"Gemm", 0.25, 0.9, "compute"});
    add(&r, c, (struct made){"Add", 0.05, 0.01, "memory"}); /* as far as can be, but tiny */
    finding_judge(&r);
    assert_int_equal(count(&r, "layer.far-from-roof"), 2);
    const struct run_finding *f = finding_must(&r, "layer.far-from-roof"); /* the most to gain comes first */
    finding_has(f->title,
                "MatMul: 2 nodes take 60 % of the time, at 30 % of what the processors' arithmetic");
    assert_string_equal(f->severity, "warn");
    assert_string_equal(f->case_name, "batch=1");
    assert_true(fabs(finding_evidence(f, "share") - 0.6) < 1e-9);
    assert_true(fabs(finding_evidence(f, "roof_share") - 0.3) < 1e-9);
    assert_true(fabs(finding_evidence(f, "speedup_at_roof") - 1 / (1 - 0.42)) < 1e-9);
    assert_string_equal(run_map_get(&f->evidence, "worst")->s, "/MatMul_0");
    for (size_t i = 0; i < r.findings.n; i++) {
        if (strncmp(r.findings.at[i]->title, "Softmax", 7) != 0) continue;
        assert_string_equal(r.findings.at[i]->severity, "info"); /* a gain of 9 % */
        finding_has(r.findings.at[i]->action, "fuse");
    }
    run_release(&r);
}

static void test_shaky_times_are_no_warning(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    add(&r, c, (struct made){"MatMul", 0.9, 0.1, "compute"});
    c->latency_ns.known = true;
    c->latency_ns.p50 = run_estimate(1000, 950, 1050);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "layer.far-from-roof")->severity, "warn");
    c->latency_ns.p50 = run_estimate(1000, 850, 1150);
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "layer.far-from-roof");
    assert_string_equal(f->severity, "info");
    finding_has(f->action, "quiet machine");
    run_release(&r);
}

static void test_near_the_roof_or_unknown(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    add(&r, c, (struct made){"MatMul", 0.8, 0.6, "compute"});
    add(&r, c, (struct made){"Conv", 0.2, 3, "memory"}); /* above: from a cache */
    finding_judge(&r);
    finding_must_not(&r, "layer.far-from-roof");
    run_release(&r);
    c = start(&r);
    add(&r, c, (struct made){"MatMul", 0.8, -1, NULL});
    add(&r, c, (struct made){"Conv", -1, 0.1, "memory"});
    finding_judge(&r);
    finding_must_not(&r, "layer.far-from-roof");
    run_release(&r);
}

static void test_one_word_per_operator(void **state)
{
    struct run r;
    (void)state;
    static const char *const ops[] = {"A", "B", "C", "D", "E"};
    struct run_case *c = start(&r), *second = run_add_case(&r, "batch=8");
    for (size_t i = 0; i < 5; i++) {
        add(&r, c, (struct made){ops[i], 0.1 + 0.01 * (double)i, 0.1, "memory"});
        add(&r, second, (struct made){ops[i], i == 4 ? 0.5 : 0.1, 0.1, "memory"});
    }
    finding_judge(&r);
    assert_int_equal(count(&r, "layer.far-from-roof"), 3);
    const struct run_finding *f = finding_must(&r, "layer.far-from-roof");
    finding_has(f->title, "E: 1 node takes");
    assert_string_equal(f->case_name, "batch=8"); /* where it has the most to gain */
    run_release(&r);
}

/* ---- layout ---- */

static void test_transposes(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    add(&r, c, (struct made){"MatMul", 0.7, -1, NULL});
    struct run_layer *t = add(&r, c, (struct made){"Transpose", 0.2, -1, NULL});
    add(&r, c, (struct made){"ReorderInput", 0.05, -1, NULL})->bytes = known_u64(500);
    t->nodes = known_u64(12); /* of the file: not what ran */
    t->bytes = known_u64(1000);
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "graph.transposes");
    finding_has(f->title, "2 layout changes take 25 % of the time");
    assert_string_equal(f->severity, "warn");
    assert_true(finding_evidence(f, "bytes") == 1500);
    c->layers.n--;
    t->share = known_f64(0.04);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "graph.transposes")->severity, "info");
    t->share = known_f64(0.01);
    finding_judge(&r);
    finding_must_not(&r, "graph.transposes");
    run_release(&r);
}

static struct run_static *graph(struct run *r, bool optimized)
{
    struct run_static *s = optimized ? &r->subject.optimized : &r->subject.as_file;
    s->known = true;
    s->cost.known = true;
    s->cost.macs = known_u64(1000000);
    s->cost.flops = known_u64(2000000);
    s->cost.bytes_read = known_u64(60000);
    s->cost.bytes_written = known_u64(40000);
    return s;
}

static void test_transposes_before_running(void **state)
{
    struct run r;
    (void)state;
    start(&r);
    struct run_static *s = graph(&r, false);
    run_map_int(&r.arena, &s->patterns, "transposes", 4);
    run_map_int(&r.arena, &s->patterns, "transpose_bytes", 10000);
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "graph.transposes");
    finding_has(f->title, "4 layout changes move 10 % of all bytes");
    struct run_static *o = graph(&r, true); /* the graph that ran has fewer: that one counts */
    run_map_int(&r.arena, &o->patterns, "transposes", 1);
    run_map_int(&r.arena, &o->patterns, "transpose_bytes", 1000);
    finding_judge(&r);
    finding_must_not(&r, "graph.transposes");
    run_map_int(&r.arena, &o->patterns, "transpose_bytes", 50000);
    finding_judge(&r);
    finding_must(&r, "graph.transposes");
    o->cost.bytes_read.known = false;
    finding_judge(&r);
    finding_must_not(&r, "graph.transposes");
    run_release(&r);
}

/* ---- providers ---- */

static void test_provider_of_layers(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    add(&r, c, (struct made){"MatMul", 0.6, -1, NULL})->provider = "CUDAExecutionProvider";
    struct run_layer *l = add(&r, c, (struct made){"NonZero", 0.4, -1, NULL});
    finding_judge(&r);
    finding_must_not(&r, "provider.fallback"); /* the CPU was asked for */
    run_map_text(&r.arena, &c->params, "provider", "cuda");
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "provider.fallback");
    finding_has(f->title,
                "1 of 2 nodes ran on CPUExecutionProvider, not on cuda as requested: 40 % of the time");
    assert_string_equal(f->severity, "warn");
    l->provider = "CUDAExecutionProvider";
    finding_judge(&r);
    finding_must_not(&r, "provider.fallback");
    l->provider = NULL;
    finding_judge(&r);
    finding_must_not(&r, "provider.fallback");
    l->provider = "CPUExecutionProvider"; /* with the runtime's own account there is one finding, not two */
    run_map_int(&r.arena, &c->placement, "cpu", 3);
    run_map_int(&r.arena, &c->placement, "cuda", 1);
    finding_judge(&r);
    assert_int_equal(count(&r, "provider.fallback"), 1);
    run_release(&r);
}

static void test_copies(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    struct run_static *o = graph(&r, true);
    run_map_int(&r.arena, &o->ops, "MatMul", 7);
    finding_judge(&r);
    finding_must_not(&r, "provider.copies");
    run_map_int(&r.arena, &o->ops, "MemcpyToHost", 2);
    run_map_int(&r.arena, &o->ops, "MemcpyFromHost", 1);
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "provider.copies");
    finding_has(f->title, "3 copies between providers");
    assert_string_equal(f->severity, "info");
    add(&r, c, (struct made){"MatMul", 0.9, -1, NULL});
    add(&r, c, (struct made){"MemcpyToHost", 0.1, -1, NULL});
    finding_judge(&r);
    f = finding_must(&r, "provider.copies");
    finding_has(f->title, "1 copy between providers takes 10 % of the time");
    assert_string_equal(f->severity, "warn");
    run_release(&r);
}

/* ---- the graph ---- */

static void test_foldable(void **state)
{
    struct run r;
    (void)state;
    start(&r);
    struct run_static *s = graph(&r, false);
    run_map_int(&r.arena, &s->patterns, "foldable_nodes", 24);
    run_map_int(&r.arena, &s->patterns, "foldable_macs", 370000);
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "graph.foldable");
    finding_has(f->title, "24 nodes made of constants only: 37 % of the multiplications in the file");
    assert_string_equal(f->severity, "info"); /* what the runtime makes of it is not known */
    assert_true(fabs(finding_evidence(f, "share") - 0.37) < 1e-9);
    struct run_static *o = graph(&r, true); /* nothing left after optimisation */
    run_map_int(&r.arena, &o->patterns, "foldable_nodes", 0);
    run_map_int(&r.arena, &o->patterns, "foldable_macs", 0);
    finding_judge(&r);
    f = finding_must(&r, "graph.foldable");
    finding_has(f->title, "each time it loads");
    run_map_int(&r.arena, &o->patterns, "foldable_nodes", 1);
    run_map_int(&r.arena, &o->patterns, "foldable_macs", 300000);
    finding_judge(&r);
    f = finding_must(&r, "graph.foldable");
    assert_string_equal(f->severity, "warn");
    finding_has(f->title, "1 node made of constants only: 30 % of the multiplications");
    assert_null(strstr(f->title, "file"));
    run_release(&r);
    start(&r);
    s = graph(&r, false);
    run_map_int(&r.arena, &s->patterns, "foldable_nodes", 24); /* shapes: no multiplications */
    run_map_int(&r.arena, &s->patterns, "foldable_macs", 0);
    finding_judge(&r);
    finding_must_not(&r, "graph.foldable");
    run_map_int(&r.arena, &s->patterns, "foldable_macs", 370000);
    s->cost.macs.known = false;
    finding_judge(&r);
    finding_must_not(&r, "graph.foldable");
    run_release(&r);
}

static void test_unfused(void **state)
{
    struct run r;
    (void)state;
    start(&r);
    struct run_static *s = graph(&r, false);
    run_map_int(&r.arena, &s->patterns, "gelu", 6);
    run_map_int(&r.arena, &s->patterns, "unfused_bytes", 50000);
    finding_judge(&r);
    finding_must_not(&r, "graph.unfused"); /* in the file that is usual */
    struct run_static *o = graph(&r, true);
    run_map_int(&r.arena, &o->patterns, "layer_norm", 0);
    run_map_int(&r.arena, &o->patterns, "gelu", 1);
    run_map_int(&r.arena, &o->patterns, "attention", 6);
    run_map_int(&r.arena, &o->patterns, "unfused_nodes", 40);
    run_map_int(&r.arena, &o->patterns, "unfused_bytes", 25000);
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "graph.unfused");
    finding_has(f->title, "still has in pieces: 1 Gelu, 6 attentions; they move 25 % of all bytes");
    assert_string_equal(f->severity, "warn");
    assert_true(finding_evidence(f, "attention") == 6 && finding_evidence(f, "nodes") == 40);
    assert_null(run_map_get(&f->evidence, "layer_norm"));
    run_map_int(&r.arena, &o->patterns, "unfused_bytes", 1000);
    finding_judge(&r);
    finding_must_not(&r, "graph.unfused");
    o->cost.bytes_read.known = false;
    finding_judge(&r);
    f = finding_must(&r, "graph.unfused");
    assert_string_equal(f->severity, "info");
    run_release(&r);
}

static void set_formula(struct run *r, struct run_static *s, const char *macs, int64_t seq)
{
    run_map_text(&r->arena, &s->formulas, "macs", macs);
    run_map_int(&r->arena, &s->dims, "batch", 2);
    run_map_int(&r->arena, &s->dims, "seq", seq);
}

static void test_quadratic(void **state)
{
    struct run r;
    (void)state;
    start(&r);
    struct run_static *s = graph(&r, false);
    run_map_int(&r.arena, &s->ops, "Softmax", 6);
    set_formula(&r, s, "4608*batch*seq^2 + 10616832*batch*seq + 147456*batch", 512);
    finding_judge(&r);
    finding_must_not(&r, "attention.quadratic"); /* 4608 * 512 against 10.6 million: 18 % */
    set_formula(&r, s, "4608*batch*seq^2 + 10616832*batch*seq + 147456*batch", 1024);
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "attention.quadratic");
    double q = 4608.0 * 2 * 1024 * 1024, rest = 10616832.0 * 2 * 1024 + 147456.0 * 2;
    assert_true(fabs(finding_evidence(f, "share") - q / (q + rest)) < 1e-9);
    assert_true(finding_evidence(f, "length") == 1024);
    assert_true(finding_evidence(f, "half_at") == round(1024 * rest / q));
    finding_has(f->title, "at seq = 1024, 31 % of the multiplications grow with its square");
    assert_string_equal(f->severity, "info");
    set_formula(&r, s, "4608*batch*seq^2 + 10616832*batch*seq + 147456*batch", 4096);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "attention.quadratic")->severity, "warn");
    s->ops.n = 0; /* no attention: something else grows */
    finding_judge(&r);
    finding_must_not(&r, "attention.quadratic");
    run_release(&r);
}

static void test_quadratic_formulas(void **state)
{
    static const struct {
        const char *formula;
        double share; /* 0: silent */
    } rows[] = {
        {"seq^2 - 50*seq", 2},
        {"seq^2 + 100*seq", 0.5},
        {">= seq^2 + 100*seq", 0.5},
        {"seq^2 - 50*seq + 150*seq", 0.5},
        {"batch^2*seq", 1}, /* whatever its name */
        {"seq^3 + seq^2", 1},
        {"4*seq^2 + floor((seq + 1)/2)*seq", 0}, /* a part is not understood */
        {"4*other^2", 0},
        {"10000", 0},
        {"?", 0},
        {"", 0},
        {"seq^2*", 1},
        {"*", 0},
        {"inf*seq^2", 0}, /* a dimension may be called so; this one is not known */
        {"nan*seq^2", 0},
        {"0x10*seq^2 + seq", 0},
        {"1e999*seq^2", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        start(&r);
        struct run_static *s = graph(&r, false);
        run_map_int(&r.arena, &s->ops, "com.microsoft.MultiHeadAttention", 1);
        set_formula(&r, s, rows[i].formula, 100);
        finding_judge(&r);
        const struct run_finding *f = fixture_finding(&r, "attention.quadratic");
        if (!f != (rows[i].share == 0)) fail_msg("%s: %s", rows[i].formula, f ? f->title : "silent");
        if (f && fabs(finding_evidence(f, "share") - rows[i].share) > 1e-9)
            fail_msg("%s: share %g", rows[i].formula, finding_evidence(f, "share"));
        run_release(&r);
    }
}

static void test_precision(void **state)
{
    struct run r;
    (void)state;
    struct run_case *c = start(&r);
    struct run_static *s = graph(&r, false);
    const int64_t bytes = INT64_C(90) << 20;
    run_map_int(&r.arena, &s->ops, "MatMul", 36);
    run_map_int(&r.arena, &s->bytes_by_type, "float32", bytes);
    s->parameter_bytes = known_u64((uint64_t)bytes + 1000);
    s->cost.bytes_read = known_u64((uint64_t)bytes);
    s->cost.bytes_written = known_u64(0);
    run_map_text(&r.arena, &c->params, "precision", "fp32");
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "graph.precision");
    finding_has(f->title, "90 MiB of weights are fp32: fp16 would save 45 MiB, int8 67.5 MiB");
    assert_string_equal(f->severity, "info");
    assert_true(finding_evidence(f, "traffic_share") == 1);
    r.roof = (struct run_roof){
        .known = true, .flops = known_f64(1e11), .int_ops = known_f64(4e11), .bandwidth = known_f64(2e10)};
    finding_judge(&r); /* 0.02 ms of arithmetic, 4.7 ms of memory */
    f = finding_must(&r, "graph.precision");
    assert_string_equal(f->severity, "warn");
    assert_true(finding_evidence(f, "int8_over_fp32") == 4);
    run_map_text(&r.arena, &c->params, "precision", "int8"); /* it is being tried already */
    finding_judge(&r);
    finding_must_not(&r, "graph.precision");
    run_map_text(&r.arena, &c->params, "precision", "fp32");
    s->ops.n = 0; /* nothing that has a smaller variant */
    finding_judge(&r);
    finding_must_not(&r, "graph.precision");
    run_map_int(&r.arena, &s->ops, "Conv", 36);
    finding_judge(&r);
    finding_must(&r, "graph.precision");
    s->parameter_bytes = known_u64((uint64_t)bytes * 3); /* most are small types already */
    finding_judge(&r);
    finding_must_not(&r, "graph.precision");
    s->parameter_bytes = known_u64(1 << 20);
    run_map_int(&r.arena, &s->bytes_by_type, "float32", 1 << 20); /* not worth the trouble */
    finding_judge(&r);
    finding_must_not(&r, "graph.precision");
    run_release(&r);
}

static void test_embedding(void **state)
{
    struct run r;
    (void)state;
    start(&r);
    struct run_static *s = graph(&r, false);
    s->parameter_bytes = known_u64(UINT64_C(100) << 20);
    run_map_int(&r.arena, &s->patterns, "embedding_tables", 3);
    run_map_int(&r.arena, &s->patterns, "embedding_parameters", 11900000);
    run_map_int(&r.arena, &s->patterns, "embedding_bytes", INT64_C(45) << 20);
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "embedding.size");
    finding_has(f->title, "3 embedding tables: 45 MiB, 45 % of the weights");
    assert_string_equal(f->severity, "info");
    run_map_int(&r.arena, &s->patterns, "embedding_bytes", INT64_C(60) << 20);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "embedding.size")->severity, "info"); /* it hardly costs time */
    run_map_int(&r.arena, &s->patterns, "embedding_bytes", INT64_C(20) << 20);
    finding_judge(&r);
    finding_must_not(&r, "embedding.size");
    s->parameter_bytes = known_u64(UINT64_C(4) << 20);
    run_map_int(&r.arena, &s->patterns, "embedding_bytes", INT64_C(4) << 20); /* all of it, but small */
    finding_judge(&r);
    finding_must_not(&r, "embedding.size");
    s->parameter_bytes.known = false;
    run_map_int(&r.arena, &s->patterns, "embedding_bytes", INT64_C(60) << 20);
    finding_judge(&r);
    finding_must_not(&r, "embedding.size");
    run_release(&r);
}

/* ---- memory ---- */

static void test_memory(void **state)
{
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct run r;
        struct run_case *c = start(&r);
        for (int i = 0; i < 40; i++) {
            const char *op = arena_printf(&r.arena, "Op%d", i);
            add(&r, c, (struct made){op, 0.025, 0.1, "memory"});
        }
        add(&r, c, (struct made){"Transpose", 0.3, 0.1, "memory"});
        mem_fail_after(n);
        tare_status s = findings_add(&r, NULL);
        mem_fail_after(-1);
        size_t found = r.findings.n;
        run_release(&r);
        if (s == TARE_OK) {
            assert_true(found >= 2 && n > 0);
            break;
        }
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 100);
    }
    assert_int_equal(mem_live_blocks(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_from_roof),
        cmocka_unit_test(test_shaky_times_are_no_warning),
        cmocka_unit_test(test_near_the_roof_or_unknown),
        cmocka_unit_test(test_one_word_per_operator),
        cmocka_unit_test(test_transposes),
        cmocka_unit_test(test_transposes_before_running),
        cmocka_unit_test(test_provider_of_layers),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_foldable),
        cmocka_unit_test(test_unfused),
        cmocka_unit_test(test_quadratic),
        cmocka_unit_test(test_quadratic_formulas),
        cmocka_unit_test(test_precision),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
