/* SPDX-License-Identifier: MIT
 * run_documents.h - run documents for the tests of src/run itself: the smallest, and one with every field filled. */
#ifndef RUN_DOCUMENTS_H
#define RUN_DOCUMENTS_H

#include "run/run.h"

static inline void fill_minimal(struct run *r)
{
    r->subject.type = "command";
    r->subject.name = "true";
}

static inline void fill_host(struct run *r)
{
    struct run_host *h = &r->host;
    h->hostname = "box";
    h->os = "Debian GNU/Linux 12";
    h->kernel = "6.1.0";
    h->arch = "x86_64";
    h->cpu.model = "Some CPU @ 2.0GHz";
    h->cpu.cores = known_u64(8);
    h->cpu.usable = known_f64(1.5);
    h->memory_bytes = known_u64(UINT64_C(16) << 30);
    h->is_virtual = known_bool(true);
    h->cgroup.version = known_u64(2);
    h->cgroup.path = "/job";
    h->cgroup.cpu_quota = known_f64(1.5);
    h->load1 = known_f64(0.4);
    run_unknown(r, &h->unknown, "governor", "no %s", "cpufreq");
    struct run_host_gpu *g = RUN_LIST_ADD(&r->arena, &r->host.gpus);
    if (!g) return;
    g->index = known_u64(0);
    g->name = "GPU";
    g->memory_bytes = known_u64(UINT64_C(80) << 30);
}

static inline void fill_resources(struct run *r, struct run_case *c)
{
    c->memory.known = true;
    c->memory.rss_before = known_u64(100);
    c->memory.rss_peak = known_u64(300);
    c->memory.delta = known_i64(-7);
    run_map_int(&r->arena, &c->memory.arena, "bytes_in_use", 1 << 20);
    c->cpu.known = true;
    c->cpu.utilization = known_f64(1.97);
    c->cpu.steal = known_f64(0);
    c->memory.growth = run_estimate(12.5, -3, 28);
    c->outliers = (struct run_outliers){true, known_u64(3), known_u64(2), known_u64(900)};
    c->io.known = true;
    c->io.read_bytes = known_u64(INT64_MAX);
    c->gpu.known = true;
    struct run_gpu_device *d = run_add_gpu_device(r, c);
    if (d) d->index = known_u64(0), d->power_w = known_f64(71.25), d->temperature_c = known_f64(-3);
    c->energy = (struct run_energy){.known = true, .method = "absent", .why = "no powercap"};
    c->accuracy.score = run_estimate(0.69, 0.68, 0.70);
    c->accuracy.metric = "accuracy";
    struct run_layer *l = run_add_layer(r, c, "encoder/0");
    if (l) l->op = "MatMul", l->share = known_f64(0.5), l->total_ns = known_u64(12);
    struct run_anchored *a = run_add_anchored(r, c);
    if (a)
        *a = (struct run_anchored){.ratio = run_estimate(1.03, 1.01, 1.05),
                                   .anchor = "v1.onnx@0123456789ab",
                                   .metric = "latency.p50",
                                   .confidence = known_f64(0.95),
                                   .pairs = known_u64(80)};
    c->stability = (struct run_stability){.known = true, .stopped = "budget", .steady = known_bool(false)};
    c->open_loop = (struct run_open_loop){.known = true, .offered = known_f64(20), .queued = known_u64(3)};
    c->self.known = true;
    c->self.ns_per_run = known_u64(41);
    c->self.share = known_f64(1e-7);
}

static inline void fill_case(struct run *r, struct run_case *c)
{
    static const uint64_t ns[] = {1000, 990, 1010, 5000000, 0, INT64_MAX, 1};
    static uint64_t counts[] = {1, 0, 5};
    run_map_int(&r->arena, &c->params, "batch", 16);
    run_map_text(&r->arena, &c->params, "precision", "fp32");
    c->samples = known_u64(200);
    c->unit = "texts";
    c->units_per_run = known_u64(16);
    c->confidence = known_f64(0.95);
    c->latency_ns.known = true;
    c->latency_ns.mean = known_u64(1000);
    c->latency_ns.p50 = run_estimate(1000, 990, 1010);
    c->latency_ns.p90 = (struct run_estimate){.known = true, .value = 1200};
    c->latency_ns.histogram = (struct run_histogram){true, 6, -1, 0, counts, 3};
    run_unknown(r, &c->unknown, "latency_ns.p99", "200 samples are too few");
    c->samples_raw.cap = 7;
    run_set_samples(r, c, ns, sizeof ns / sizeof *ns, "first");
    c->throughput.rate = run_estimate(1341.25, 1300, 1400);
    c->throughput.unit = "texts/s";
    fill_resources(r, c);
}

static inline void fill_config(struct run *r)
{
    struct run_value list = {.kind = RUN_LIST};
    run_map_text(&r->arena, &r->config, "warmup", "auto");
    run_map_real(&r->arena, &r->config, "budget_s", 10);
    run_map_bool(&r->arena, &r->config, "gross", false);
    run_map_text(&r->arena, &r->config, "note", NULL);
    run_map_text(&r->arena, &r->config, "bad bytes", "\xff\x01\"");
    struct run_value *v = run_map_set(&r->arena, &r->config, "batch", list);
    for (int i = 1; v && i <= 32; i *= 2) run_map_int(&r->arena, &v->items, NULL, i);
    run_map_real(&r->arena, &r->config, "budget_s", 12.5); /* replaces */
}

static inline void fill_full(struct run *r)
{
    fill_minimal(r);
    fill_host(r);
    fill_config(r);
    r->subject.type = "onnx";
    r->subject.name = "models/Mini LM\xff.onnx";
    r->subject.sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    r->subject.runtime = (struct run_runtime){true, "onnxruntime", "1.30.0"};
    r->trace = "x.tare";
    struct run_case *first = run_add_case(r, "batch=16");
    for (int i = 0; i < 5; i++) run_add_case(r, "empty");
    if (first) fill_case(r, first);
    struct run_finding *f = run_add_finding(r, "batch.too-small", "warn");
    if (f) f->title = "small", f->action = "raise it";
    if (f) run_map_real(&r->arena, &f->evidence, "gain", 1.3);
    r->recommendation =
        (struct run_recommendation){.known = true, .objective = "throughput", .case_name = "b"};
    r->recommendation.proof = (struct run_proof){
        .known = true, .against = "a", .metric = "throughput", .ratio = 1.2, .verdict = "pass"};
    struct run_target *t = run_add_target(r, "throughput", ">=", 1000);
    if (t) t->achieved = known_f64(1341), t->verdict = "pass";
}

static inline void make(struct run *r, void (*fill)(struct run *))
{
    assert_int_equal(run_init(r, "bench", NULL), TARE_OK);
    fill(r);
}

static inline void text_of(const struct run *r, struct buf *b)
{
    tare_error err = TARE_ERROR_INIT;
    buf_clear(b);
    if (run_write(r, b, &err) < 0) fail_msg("%s", err.text);
}

#endif
