/* SPDX-License-Identifier: MIT
 * test_finding.c - each rule: fires on data that supports it, is silent when intervals, or anything it
 * needs, do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "analyze/judge/judge.h"
#include "analyze/judge/sweep.h"
#include "core/mem.h"
#include <cmocka.h>

#include "finding_fixture.h"

/* n cases "p=V" with a throughput of v +/- half (relative). */
struct point {
    double x, rate;
};
static void make(struct run *r, const char *param, const struct point *points, size_t n, double half)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(r, "bench", &err), TARE_OK);
    r->subject.type = "onnx";
    r->subject.name = "m";
    for (size_t i = 0; i < n; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s=%g", param, points[i].x);
        struct run_case *c = run_add_case(r, name);
        assert_non_null(c);
        run_map_int(&r->arena, &c->params, param, (int64_t)points[i].x);
        run_map_text(&r->arena, &c->params, "provider", "cpu");
        double v = points[i].rate;
        c->throughput.rate = run_estimate(v, v * (1 - half), v * (1 + half));
        c->throughput.unit = "texts/s";
    }
}

/* ---- sweeps ---- */

static void test_sweep_groups(void **state)
{
    struct run r;
    struct sweeps s;
    (void)state;
    const struct point p[] = {{8, 3}, {1, 1}, {2, 2}, {1, 1}, {2, 2}};
    make(&r, "batch", p, 5, 0.01);
    for (size_t i = 0; i < 5;
         i++) { /* two lengths; 8 only with the first; a dimension that repeats the batch */
        run_map_int(&r.arena, &r.cases.at[i]->params, "seq", i < 3 ? 16 : 64);
        run_map_int(&r.arena, &r.cases.at[i]->params, "N", (int64_t)p[i].x);
    }
    assert_int_equal(sweeps_find(&s, &r, "batch", false, NULL), TARE_OK);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.start[1], 3);
    assert_int_equal(s.start[2], 5);
    assert_ptr_equal(s.cases[0], r.cases.at[1]); /* ascending */
    assert_ptr_equal(s.cases[2], r.cases.at[0]);
    sweeps_release(&s);
    assert_int_equal(sweeps_find(&s, &r, "seq", false, NULL), TARE_OK);
    assert_int_equal(s.n, 2); /* batch 1 and batch 2 at two lengths */
    sweeps_release(&s);
    assert_int_equal(sweeps_find(&s, &r, "threads", false, NULL), TARE_OK);
    assert_int_equal(s.n, 0);
    sweeps_release(&s);
    run_release(&r);
}

static void test_realistic_sweep(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    finding_judge(&r);
    const struct run_finding *small = finding_must(&r, "batch.too-small");
    assert_string_equal(small->case_name, "batch=1,seq=128");
    assert_string_equal(small->severity, "warn");
    assert_true(finding_evidence(small, "enough_batch") == 16);
    finding_has(small->title, "batch 1 reaches 21 % of the throughput of batch 32");
    const struct run_finding *knee = finding_must(&r, "batch.diminishing-returns");
    assert_true(finding_evidence(knee, "batch") == 16);
    const struct run_finding *slope = finding_must(&r, "memory.per-batch");
    assert_true(fabs(finding_evidence(slope, "bytes_per_batch") / 2.8e6 - 1) < 0.01);
    assert_true(finding_evidence(slope, "largest_batch_estimated") > 1000);
    finding_must_not(&r, "machine.unstable");
    finding_must_not(&r, "memory.leak");
    finding_must_not(&r, "threads.oversubscribed");
    finding_must_not(&r, "first-run.cost");
    run_release(&r);
}

static void test_wide_intervals_silence_sweep_rules(void **state)
{
    struct run r;
    (void)state;
    const struct point flat[] = {{1, 100}, {2, 104}, {4, 106}};
    make(&r, "batch", flat, 3, 0.02);
    finding_judge(&r);
    finding_must_not(&r, "batch.too-small"); /* 6 % is not worth telling */
    assert_true(finding_evidence(finding_must(&r, "batch.diminishing-returns"), "batch") == 1);
    run_release(&r);
    make(&r, "batch", flat, 3, 0.2); /* the same with +/- 20 %: nothing can be said */
    finding_judge(&r);
    finding_must_not(&r, "batch.diminishing-returns");
    run_release(&r);
    const struct point steep[] = {{1, 100}, {2, 140}};
    make(&r, "batch", steep, 2, 0.01);
    finding_judge(&r);
    finding_must(&r, "batch.too-small");
    finding_must_not(&r, "batch.diminishing-returns"); /* still gaining at the end */
    run_map_text(&r.arena, &r.config, "load", "open"); /* throughput is then what was offered */
    finding_judge(&r);
    finding_must_not(&r, "batch.too-small");
    run_release(&r);
    make(&r, "batch", steep, 2, 0.2);
    finding_judge(&r);
    finding_must_not(&r, "batch.too-small");
    run_release(&r);
    make(&r, "batch", steep, 2, 0.01);
    r.cases.at[0]->throughput.rate.lo.known = false; /* no bound, no claim */
    finding_judge(&r);
    finding_must_not(&r, "batch.too-small");
    run_release(&r);
}

static void test_knee_is_not_a_dip(void **state)
{
    struct run r;
    (void)state;
    const struct point dip[] = {{1, 100}, {2, 105}, {4, 180}, {8, 184}};
    make(&r, "batch", dip, 4, 0.01);
    finding_judge(&r); /* 1 -> 2 gains little, but 2 -> 4 gains much: the knee is at 4 */
    assert_true(finding_evidence(finding_must(&r, "batch.diminishing-returns"), "batch") == 4);
    run_release(&r);
}

static void test_long_inputs(void **state)
{
    struct run r;
    (void)state;
    const struct point p[] = {{64, 1000}, {512, 110}};
    make(&r, "seq", p, 2, 0.01);
    for (size_t i = 0; i < 2; i++) {
        double t = 1e9 / p[i].rate;
        r.cases.at[i]->latency_ns.known = true;
        r.cases.at[i]->latency_ns.p50 = run_estimate((uint64_t)t, (uint64_t)(t * 0.99), (uint64_t)(t * 1.01));
    }
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "input.long");
    finding_has(f->title, "lose 89 % of the throughput");
    assert_string_equal(f->severity, "warn"); /* 9.1 times the time at 8 times the length */
    assert_true(fabs(finding_evidence(f, "super_linear_share") - (1 - 8 / 9.0909)) < 0.001);
    r.cases.at[1]->throughput.rate = run_estimate(128, 127, 129); /* 7.8 times: linear */
    r.cases.at[1]->latency_ns.p50 = run_estimate(7812500, 7750000, 7900000);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "input.long")->severity, "info");
    r.cases.at[1]->throughput.rate = run_estimate(900, 850, 950);
    finding_judge(&r);
    finding_must_not(&r, "input.long");
    run_release(&r);
}

static void test_threads(void **state)
{
    struct run r;
    (void)state;
    const struct point slower[] = {{1, 100}, {2, 180}, {4, 150}};
    make(&r, "threads", slower, 3, 0.01);
    r.host.cpu.usable = known_f64(2);
    finding_judge(&r);
    finding_has(finding_must(&r, "threads.slower")->title, "4 threads are 17 % slower than 2");
    assert_true(finding_evidence(finding_must(&r, "threads.oversubscribed"), "threads") == 4);
    finding_must_not(&r, "threads.no-gain");
    run_release(&r);
    const struct point idle[] = {{1, 100}, {4, 106}};
    make(&r, "threads", idle, 2, 0.01);
    finding_judge(&r);
    finding_must(&r, "threads.no-gain");
    finding_must_not(&r, "threads.slower");
    finding_must_not(&r, "threads.oversubscribed"); /* how many are usable is unknown */
    run_release(&r);
    make(&r, "threads", idle, 1, 0.01);
    r.host.cpu.usable = known_f64(2);
    run_map_int(&r.arena, &r.config, "concurrency", 4); /* four workers of one thread each */
    finding_judge(&r);
    assert_true(finding_evidence(finding_must(&r, "threads.oversubscribed"), "threads") == 4);
    run_release(&r);
}

static void test_variants(void **state)
{
    struct run r;
    (void)state;
    const struct point p[] = {{8, 100}, {8, 180}, {8, 101}, {8, 50}};
    static const char *const names[] = {NULL, "int8", "opt", "fp64"};
    make(&r, "batch", p, 4, 0.02);
    for (size_t i = 0; i < 4; i++) {
        if (names[i]) run_map_text(&r.arena, &r.cases.at[i]->params, "variant", names[i]);
        run_map_text(&r.arena, &r.cases.at[i]->params, "precision", i == 1 ? "int8" : "fp32");
    }
    for (size_t i = 0; i < 2; i++) {
        r.cases.at[i]->accuracy.score = run_estimate(i ? 0.68 : 0.69, 0.6, 0.75);
        r.cases.at[i]->accuracy.metric = "accuracy";
    }
    finding_judge(&r);
    finding_has(finding_must(&r, "variant.faster")->title, "int8 is 1.80 times as fast as the original");
    finding_has(finding_must(&r, "variant.faster")->title, "accuracy 0.68 against 0.69");
    finding_has(finding_must(&r, "variant.same")->title, "opt and the original cannot be told apart");
    finding_has(finding_must(&r, "variant.same")->title, "quality was not measured");
    assert_string_equal(finding_must(&r, "variant.slower")->severity, "warn");
    run_release(&r);
}

/* ---- the machine ---- */

static void test_machine(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    struct run_case *c = r.cases.at[2];
    uint64_t v = c->latency_ns.p50.value;
    c->latency_ns.p50 = run_estimate(v, v - v / 10, v + v / 10);
    c->cpu.known = true;
    c->cpu.involuntary_switches = known_u64(40000); /* 200 per run */
    c->cpu.steal = known_f64(0.05);
    c->cpu.throttled_ns = known_u64(c->samples.v * c->latency_ns.mean.v / 10);
    c->self.share = known_f64(0.05);
    r.host.is_virtual = known_bool(true);
    finding_judge(&r);
    finding_has(finding_must(&r, "machine.unstable")->title, "uncertain by +/-10 %");
    finding_must_not(&r, "machine.no-interval");
    r.cases.at[0]->latency_ns.p50.hi.known = r.cases.at[1]->latency_ns.p50.lo.known = false;
    finding_judge(&r);
    finding_has(finding_must(&r, "machine.no-interval")->title, "(2 of 5 cases)");
    assert_true(finding_evidence(finding_must(&r, "machine.unstable"), "cases_affected") == 1);
    assert_true(finding_evidence(finding_must(&r, "machine.preempted"), "switches_per_run") == 200);
    finding_must(&r, "machine.steal");
    finding_has(finding_must(&r, "machine.throttled")->title, "10 % of the measured time");
    finding_must(&r, "self.heavy");
    finding_must(&r, "machine.virtual");
    /* Two per run, but of long runs: what an idle machine does. */
    c->cpu =
        (struct run_cpu){.known = true, .involuntary_switches = known_u64(400), .steal = known_f64(0.001)};
    r.host.is_virtual = known_bool(false);
    finding_judge(&r);
    finding_must_not(&r, "machine.preempted");
    finding_must_not(&r, "machine.steal");
    finding_must_not(&r, "machine.throttled");
    finding_must_not(&r, "machine.virtual");
    run_release(&r);
}

static void test_outliers(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    finding_judge(&r);
    finding_must_not(&r, "latency.outliers");
    struct run_case *c = r.cases.at[0];
    for (size_t i = 0; i < 5; i++) c->samples_raw.ns[i * 37] *= 3;
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "latency.outliers");
    assert_true(finding_evidence(f, "outliers") == 5 && finding_evidence(f, "samples") == 200);
    finding_has(f->action, "is not known");
    finding_has(f->title, "5 of 200 runs (2.5 %) took longer than ");
    c->calls_per_sample = known_u64(62);
    finding_judge(&r);
    finding_has(finding_must(&r, "latency.outliers")->title,
                "5 of 200 samples of 62 runs each (2.5 %) took longer than ");
    finding_has(finding_must(&r, "latency.outliers")->title, " a run");
    c->calls_per_sample.known = false;
    c->outliers = (struct run_outliers){true, known_u64(6), known_u64(2), known_u64(1000000)};
    finding_judge(&r);
    f = finding_must(&r, "latency.outliers");
    assert_true(finding_evidence(f, "outliers") == 6 && finding_evidence(f, "explained") == 2);
    assert_string_equal(f->severity, "warn"); /* 4 of 200 unexplained */
    finding_has(f->action, "4 do not");
    run_release(&r);
}

static void test_notes_of_the_harness(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    for (size_t i = 0; i < r.cases.n; i++)
        r.cases.at[i]->stability.steady = known_bool(strcmp(r.cases.at[i]->name, "batch=4,seq=128") != 0);
    r.cases.at[3]->nan_outputs = known_u64(12);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "warmup.never-steady")->case_name, "batch=4,seq=128");
    finding_has(finding_must(&r, "outputs.not-finite")->title, "12 output values");
    assert_string_equal(finding_must(&r, "outputs.not-finite")->severity, "critical");
    finding_must(&r, "batch.too-small");
    run_map_text(&r.arena, &r.config, "load", "open");
    run_map_real(&r.arena, &r.config, "rate", 20);
    assert_string_equal(r.cases.at[0]->name, "batch=1,seq=128");
    r.cases.at[0]->open_loop = (struct run_open_loop){
        .known = true, .offered = known_f64(20), .achieved = known_f64(14.3), .overloaded = known_bool(true)};
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "load.overloaded");
    assert_string_equal(f->case_name, "batch=1,seq=128");
    finding_has(f->title, "20 runs/s were offered, 14.3 were done");
    run_release(&r);
}

/* ---- services ---- */

static void test_what_limits_a_service(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    struct run_case *c = r.cases.at[1];
    struct run_server *s = &c->http.server;
    c->http.known = true;
    *s = (struct run_server){.known = true,
                             .pid = known_u64(7),
                             .name = "srv",
                             .thread = "tokenizer",
                             .busy = known_f64(1.2),
                             .usable = known_f64(4),
                             .thread_busy = known_f64(0.97)};
    finding_judge(&r);
    finding_has(finding_must(&r, "service.limit")->title,
                "thread tokenizer of the service was busy for 97 %");
    s->busy = known_f64(3.9);
    finding_judge(&r);
    finding_has(finding_must(&r, "service.limit")->title, "3.90 of 4 processors busy");
    s->busy = known_f64(0.4);
    s->thread_busy = known_f64(0.3);
    finding_judge(&r);
    finding_must_not(&r, "service.limit"); /* idle, and nothing queues */
    c->open_loop = (struct run_open_loop){.known = true, .overloaded = known_bool(true)};
    finding_judge(&r);
    finding_has(finding_must(&r, "service.limit")->title, "waits for something else");
    s->known = false;
    finding_judge(&r);
    finding_must_not(&r, "service.limit");
    run_release(&r);
}

/* Beyond the answer of a search, timeouts and overload are no news. */
static void test_rate_found(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    run_map_text(&r.arena, &r.config, "load", "open");
    r.rate_search = (struct run_rate_search){
        .known = true, .slo = "latency.p99<=50 ms", .passed = known_f64(693), .failed = known_f64(724)};
    for (size_t i = 0; i < r.cases.n; i++) {
        struct run_case *c = r.cases.at[i];
        run_map_real(&r.arena, &c->params, "rate", i ? 800 : 600);
        c->open_loop = (struct run_open_loop){.known = true,
                                              .offered = known_f64(800),
                                              .achieved = known_f64(600),
                                              .overloaded = known_bool(i > 0)};
        if (i) c->failure = "timeout", c->failed_runs = known_u64(3);
    }
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "rate.found");
    assert_string_equal(f->severity, "info");
    finding_has(f->title, "latency.p99<=50 ms: kept at 693 requests/s, not at 724");
    finding_must_not(&r, "load.overloaded");
    finding_must_not(&r, "runs.failed");
    r.rate_search.failed.known = false;
    r.rate_search.why = "interrupted";
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "rate.found")->severity, "warn");
    r.rate_search.passed.known = false;
    finding_judge(&r);
    finding_has(finding_must(&r, "rate.found")->title, "no rate was shown to keep it: interrupted");
    run_release(&r);
}

/* ---- one case ---- */

static void test_memory_rules(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    struct run_case *c = r.cases.at[1];
    c->memory.growth = run_estimate(65536, 60000, 70000);
    c->memory.fragmentation = known_f64(0.6);
    run_map_int(&r.arena, &c->memory.arena, "TotalAllocated", 64 << 20);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "memory.leak")->severity, "critical");
    finding_has(finding_must(&r, "memory.leak")->title, "64 KiB per run");
    finding_has(finding_must(&r, "memory.arena")->title, "60 %");
    c->memory.growth = run_estimate(65536, -10, 131000); /* may be nothing */
    run_map_int(&r.arena, &c->memory.arena, "TotalAllocated", 1 << 20);
    finding_judge(&r);
    finding_must_not(&r, "memory.leak");
    finding_must_not(&r, "memory.arena");          /* too small to matter */
    c->memory.growth = run_estimate(100, 90, 110); /* surely there, but 20 KB in all */
    finding_judge(&r);
    finding_must_not(&r, "memory.leak");
    finding_must_not(&r, "memory.limit");
    r.host.cgroup.memory_limit_bytes = known_u64(UINT64_C(250) << 20);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "memory.limit")->severity, "critical"); /* 245 MiB of 250 */
    run_release(&r);
}

static void test_startup_and_provider(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    struct run_case *c = r.cases.at[0];
    c->first_run_ns = known_u64(c->latency_ns.p50.value * 12);
    c->load_ns = known_u64(2100000000);
    finding_judge(&r);
    finding_has(finding_must(&r, "first-run.cost")->title, "12 times the usual");
    finding_has(finding_must(&r, "load.cost")->title, "2.10 s");
    finding_must_not(&r, "provider.fallback");
    run_map_text(&r.arena, &c->params, "provider", "cuda");
    run_map_int(&r.arena, &c->placement, "CUDAExecutionProvider", 100);
    run_map_int(&r.arena, &c->placement, "CPUExecutionProvider", 20);
    finding_judge(&r);
    finding_has(finding_must(&r, "provider.fallback")->title, "20 of 120 nodes fell back from cuda");
    run_release(&r);
}

/* A run of 1 ms in which the GPU works 400 us, in 100 kernels of 3 us and two copies. */
static void test_a_gpu_that_waits(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    struct run_case *c = r.cases.at[0];
    struct run_gpu_pass *p = &c->gpu.pass;
    run_map_text(&r.arena, &c->params, "provider", "cuda");
    run_map_text(&r.arena, &c->params, "io", "host");
    c->gpu.known = p->known = true;
    p->busy_share = run_estimate(0.4, 0.35, 0.45);
    p->kernel_ns = known_f64(300e3);
    p->copy_ns = known_f64(100e3);
    p->operations = known_u64(102);
    p->copies = known_u64(2);
    p->copy_bytes = known_u64(4096);
    struct run_layer *l = run_add_layer(&r, c, "(inputs and outputs)");
    l->group = "copy";
    l->gpu_ns = run_estimate(100e3, 99e3, 101e3);
    l->share = known_f64(0.1);
    finding_judge(&r);
    finding_has(finding_must(&r, "gpu.launch-bound")->title,
                "40 % of a run (at most 45 %): it waits for 100 kernels");
    finding_has(finding_must(&r, "gpu.copies")->title, "100 us, 10 % of it");
    l->share = known_f64(0.04);
    p->busy_share.hi = known_f64(0.71); /* it may be busy enough */
    finding_judge(&r);
    finding_must_not(&r, "gpu.launch-bound");
    finding_must_not(&r, "gpu.copies");
    p->busy_share.hi = known_f64(0.45);
    p->kernel_ns = known_f64(3e6); /* 30 us each */
    finding_judge(&r);
    finding_must_not(&r, "gpu.launch-bound");
    run_release(&r);
}

static void test_a_gpu_that_nobody_watched(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    finding_judge(&r);
    finding_must_not(&r, "gpu.unwatched");
    run_map_bool(&r.arena, &r.config, "gpu_present", true);
    r.subject.type = "python";
    finding_judge(&r);
    finding_has(finding_must(&r, "gpu.unwatched")->title, "this machine has a GPU");
    run_release(&r);
    fixture_sweep(&r);
    run_map_text(&r.arena, &r.cases.at[1]->params, "provider", "cuda");
    finding_judge(&r);
    finding_has(finding_must(&r, "gpu.unwatched")->title,
                "it ran on cuda: memory is that of the process on the host");
    run_release(&r);
}

static void test_accuracy_changed(void **state)
{
    struct run r;
    (void)state;
    fixture_sweep(&r);
    for (size_t i = 0; i < r.cases.n; i++) {
        r.cases.at[i]->accuracy.score = run_estimate(0.69, 0.6, 0.8);
        r.cases.at[i]->accuracy.metric = "accuracy";
    }
    finding_judge(&r);
    finding_must_not(&r, "accuracy.changed");
    r.cases.at[4]->accuracy.score.value = 0.66;
    finding_judge(&r);
    const struct run_finding *f = finding_must(&r, "accuracy.changed");
    assert_string_equal(f->case_name, "batch=32,seq=128");
    assert_string_equal(f->severity, "warn");
    assert_true(fabs(finding_evidence(f, "drop") - 0.03) < 1e-9);
    run_map_real(&r.arena, &r.config, "max_drop", 0.05);
    finding_judge(&r);
    assert_string_equal(finding_must(&r, "accuracy.changed")->severity, "info");
    run_release(&r);
}

/* ---- nothing known, nothing said; and no memory ---- */

static void test_silent_without_data(void **state)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(run_init(&r, "bench", &err), TARE_OK);
    r.subject.type = "command";
    r.subject.name = "true";
    finding_judge(&r);
    assert_int_equal(r.findings.n, 0);
    for (int i = 0; i < 4; i++) {
        char name[10];
        snprintf(name, sizeof name, "batch=%d", i);
        struct run_case *c = run_add_case(&r, name);
        run_map_int(&r.arena, &c->params, "batch", i);
    }
    finding_judge(&r);
    assert_int_equal(r.findings.n, 0);
    run_release(&r);
}

static void test_no_memory(void **state)
{
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct run r;
        fixture_sweep(&r);
        mem_fail_after(n);
        tare_status s = findings_add(&r, &err);
        mem_fail_after(-1);
        run_release(&r);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_groups),
        cmocka_unit_test(test_realistic_sweep),
        cmocka_unit_test(test_wide_intervals_silence_sweep_rules),
        cmocka_unit_test(test_knee_is_not_a_dip),
        cmocka_unit_test(test_long_inputs),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_notes_of_the_harness),
        cmocka_unit_test(test_memory_rules),
        cmocka_unit_test(test_startup_and_provider),
        cmocka_unit_test(test_a_gpu_that_waits),
        cmocka_unit_test(test_a_gpu_that_nobody_watched),
        cmocka_unit_test(test_accuracy_changed),
        cmocka_unit_test(test_what_limits_a_service),
        cmocka_unit_test(test_rate_found),
        cmocka_unit_test(test_silent_without_data),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
