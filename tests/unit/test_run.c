/* SPDX-License-Identifier: MIT
 * test_run.c - the run document: filled in, written, read back, refused. Two more uses, for the Python tests:
 *   test_run --dump DIR   write the documents these tests make into DIR
 *   test_run --check      read paths from stdin, print "ok" or the refusal of run_load(), a line each */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/mem.h"
#include "run/run.h"

/* ---- documents ---- */

static void fill_minimal(struct run *r)
{
    r->subject.type = "command";
    r->subject.name = "true";
}

static void fill_host(struct run *r)
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

static void fill_resources(struct run *r, struct run_case *c)
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

static void fill_case(struct run *r, struct run_case *c)
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

static void fill_config(struct run *r)
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

static void fill_full(struct run *r)
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

static void make(struct run *r, void (*fill)(struct run *))
{
    assert_int_equal(run_init(r, "bench", NULL), TARE_OK);
    fill(r);
}

static void text_of(const struct run *r, struct buf *b)
{
    tare_error err = TARE_ERROR_INIT;
    buf_clear(b);
    if (run_write(r, b, &err) < 0) fail_msg("%s", err.text);
}

/* ---- writing and reading ---- */

static void check_round_trip(void (*fill)(struct run *))
{
    struct run r, again;
    struct buf a = BUF_INIT, b = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    make(&r, fill);
    text_of(&r, &a);
    if (run_read(&again, "a", a.data, a.len, &err) < 0) fail_msg("%s", err.text);
    text_of(&again, &b);
    assert_string_equal(a.data, b.data);
    run_release(&again);
    run_release(&r);
    buf_release(&a);
    buf_release(&b);
}

static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip(fill_minimal);
    check_round_trip(fill_full);
}

static void test_values_are_taken_out(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct run_map m = {0};
    static const char *const keys[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++) run_map_int(&a, &m, keys[i], i);
    run_map_drop(&m, "b");
    run_map_drop(&m, "e");
    run_map_drop(&m, "nothing");
    assert_int_equal(m.n, 3);
    assert_null(run_map_get(&m, "b"));
    for (int i = 5; i < 9; i++) run_map_int(&a, &m, (char[]){(char)('a' + i), 0}, i);
    assert_int_equal(m.n, 7);
    assert_int_equal(run_map_get(&m, "a")->i, 0);
    assert_int_equal(run_map_get(&m, "c")->i, 2);
    assert_int_equal(run_map_get(&m, "d")->i, 3);
    assert_int_equal(run_map_get(&m, "i")->i, 8);
    arena_release(&a);
}

static void test_values_survive(void **state)
{
    (void)state;
    struct run r, again;
    struct buf b = BUF_INIT;
    make(&r, fill_full);
    text_of(&r, &b);
    assert_int_equal(run_read(&again, "a", b.data, b.len, NULL), TARE_OK);
    assert_int_equal(again.cases.n, 6);
    struct run_case *c = again.cases.at[0];
    assert_int_equal(c->latency_ns.p50.hi.v, 1010);
    assert_true(c->latency_ns.p90.known && !c->latency_ns.p90.lo.known && !c->latency_ns.p99.known);
    assert_string_equal(run_reason(&c->unknown, "latency_ns.p99"), "200 samples are too few");
    assert_int_equal(c->samples_raw.n, 7);
    assert_memory_equal(c->samples_raw.ns, r.cases.at[0]->samples_raw.ns, 7 * sizeof(uint64_t));
    assert_int_equal(c->latency_ns.histogram.counts[2], 5);
    assert_int_equal(c->memory.delta.v, -7);
    assert_false(c->memory.rss_mean.known);
    assert_true(c->throughput.rate.value == 1341.25);
    assert_true(again.host.is_virtual.known && again.host.is_virtual.v);
    assert_string_equal(again.subject.name, "models/Mini LM\xEF\xBF\xBD.onnx");
    assert_true(run_map_get(&again.config, "budget_s")->d == 12.5);
    assert_int_equal(run_map_get(&again.config, "batch")->items.n, 6);
    assert_int_equal(again.cases.at[1]->layers.n, 0);
    assert_false(again.cases.at[1]->gpu.known);
    run_release(&again);
    run_release(&r);
    buf_release(&b);
}

static void test_reasons(void **state)
{
    (void)state;
    struct run r;
    struct buf b = BUF_INIT;
    make(&r, fill_minimal);
    struct run_case *c = run_add_case(&r, "x");
    c->gpu.known = true;
    run_unknown(&r, &c->unknown, "gpu", "driver too old");
    run_unknown(&r, &c->unknown, "gpu.copy_ns", "no tracing");
    assert_string_equal(run_reason(&c->unknown, "gpu.copy_ns"), "no tracing");
    assert_string_equal(run_reason(&c->unknown, "gpu.devices[0].power_w"), "driver too old");
    assert_null(run_reason(&c->unknown, "gp"));
    assert_null(run_reason(&c->unknown, "gpux.y"));
    assert_int_equal(run_unexplained(&r, &b, NULL), TARE_OK);
    assert_non_null(strstr(b.data, "cases[0].latency_ns\n"));
    assert_non_null(strstr(b.data, "host.governor\n"));
    assert_null(strstr(b.data, "gpu."));
    run_release(&r);
    buf_release(&b);
}

/* What producers say by default leaves no null of an empty case without a reason, but for what they always know. */
static void test_default_reasons(void **state)
{
    (void)state;
    static const char *const always[RUN_PRODUCERS] = {
        [RUN_BY_BENCH] =
            "samples\nwarmup_runs\nunit\nunits_per_run\nconfidence\nload_ns\nfirst_run_ns\nlatency_ns\n"
            "samples_raw\nthroughput\nmemory\ncpu\noutliers\nio\nstability\nself\n",
        [RUN_BY_WATCH] = "samples\ncpu\nio\n",
        [RUN_BY_INSPECT] = "cost\nlayers\n",
        [RUN_BY_IMPORT] = "layers\n",
    };
    for (int by = 0; by < RUN_PRODUCERS; by++) {
        struct run r;
        struct buf got = BUF_INIT, want = BUF_INIT;
        assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
        struct run_case *c = run_add_case(&r, "x");
        run_unknown(&r, &c->unknown, "gpu", "a better reason");
        run_explain_case(&r, c, by);
        run_explain_host(&r, by);
        assert_string_equal(run_reason(&c->unknown, "gpu"), "a better reason");
        for (const char *at = always[by]; *at; at = strchr(at, '\n') + 1)
            buf_printf(&want, "cases[0].%.*s\n", (int)(strchr(at, '\n') - at), at);
        assert_int_equal(run_unexplained(&r, &got, NULL), TARE_OK);
        const char *cases = strstr(got.data, "cases[0]");
        assert_string_equal(cases ? cases : "", want.data);
        bool told = by == RUN_BY_INSPECT || by == RUN_BY_IMPORT; /* the others have read the host */
        assert_true(told == !strstr(got.data, "host."));
        assert_true(told == (run_reason(&r.host.unknown, "virtual") != NULL));
        buf_release(&got);
        buf_release(&want);
        run_release(&r);
    }
}

/* 0.1.0 kept what is judged of a case in the settings. */
static void test_old_settings(void **state)
{
    (void)state;
    struct run r, again;
    struct run_map notes = {0}, open = {0}, cases = {0};
    struct buf b = BUF_INIT;
    make(&r, fill_minimal);
    run_add_case(&r, "a");
    run_add_case(&r, "b");
    run_map_text(&r.arena, &notes, "b", "still changing after 900 runs");
    run_map_set(&r.arena, &r.config, "never_steady", (struct run_value){.kind = RUN_MAP, .items = notes});
    run_map_int(&r.arena, &r.cases.at[1]->params, "nan_outputs", 12);
    run_map_real(&r.arena, &open, "offered", 20);
    run_map_int(&r.arena, &open, "achieved", 14);
    run_map_bool(&r.arena, &open, "overloaded", true);
    run_map_set(&r.arena, &cases, "a", (struct run_value){.kind = RUN_MAP, .items = open});
    run_map_set(&r.arena, &r.config, "open_loop", (struct run_value){.kind = RUN_MAP, .items = cases});
    assert_int_equal(run_write(&r, &b, NULL), TARE_OK);
    assert_int_equal(run_read(&again, "old.json", b.data, b.len, NULL), TARE_OK);
    const struct run_case *first = again.cases.at[0], *second = again.cases.at[1];
    assert_false(first->stability.steady.known || second->open_loop.known);
    assert_true(second->stability.steady.known && !second->stability.steady.v);
    assert_true(first->open_loop.offered.v == 20 && first->open_loop.achieved.v == 14);
    assert_true(first->open_loop.overloaded.v);
    assert_true(second->nan_outputs.v == 12 && second->params.n == 0);
    run_release(&r);
    run_release(&again);
    buf_release(&b);
}

static void refuse_write(struct run *r, const char *want)
{
    struct buf b = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_write(r, &b, &err), TARE_INVALID);
    assert_string_equal(err.text, want);
    assert_int_equal(b.len, 0);
    buf_release(&b);
}

static void test_write_refuses(void **state)
{
    (void)state;
    struct run r;
    make(&r, fill_minimal);
    struct run_case *c = run_add_case(&r, "x");
    c->load_ns = known_u64(UINT64_MAX);
    refuse_write(&r, "run document: cases[0].load_ns: above 9223372036854775807");
    c->load_ns.known = false;
    c->throughput.rate = run_estimate(NAN, 0, 1);
    c->throughput.unit = "/s";
    refuse_write(&r, "run document: cases[0].throughput.value: not a finite number");
    c->throughput.rate = run_estimate(3, 4, 5);
    refuse_write(&r, "run document: cases[0].throughput: lo is above value");
    c->throughput.rate.known = false;
    run_map_real(&r.arena, &c->params, "lr", INFINITY);
    refuse_write(&r, "run document: cases[0].params.lr: not a finite number");
    run_map_real(&r.arena, &c->params, "lr", 1);
    r.subject.name = NULL;
    refuse_write(&r, "run document: subject.name: must be set");
    run_release(&r);
}

/* ---- refusals ---- */

/* The full document with `path` (dots and [n]) replaced by JSON text `value`, or removed when NULL. */
static char *changed(const char *path, const char *value)
{
    struct run r;
    struct buf b = BUF_INIT;
    make(&r, fill_full);
    text_of(&r, &b);
    json_t *root = json_loadb(b.data, b.len, 0, NULL), *at = root;
    char copy[200], *save = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    char *step = strtok_r(copy, ".[]", &save), *next;
    for (; (next = strtok_r(NULL, ".[]", &save)); step = next) {
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(step)) : json_object_get(at, step);
    }
    json_t *v = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_array(at)) {
        json_array_set_new(at, (size_t)atoi(step), v);
    } else if (v) {
        json_object_set_new(at, step, v);
    } else {
        json_object_del(at, step);
    }
    char *text = json_dumps(root, 0);
    json_decref(root);
    run_release(&r);
    buf_release(&b);
    return text;
}

static void test_read_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *want;
    } rows[] = {
        {"cases[0].latency_ns.p50.value", "\"1\"",
         "cases[0].latency_ns.p50.value: expected a number, got a string"},
        {"cases[0].latency_ns.p50.value", "-1", "cases[0].latency_ns.p50.value: must not be negative"},
        {"cases[0].latency_ns.p50.value", "1.5",
         "cases[0].latency_ns.p50.value: expected an integer, got a fraction"},
        {"cases[0].latency_ns.p50.value", "1e30", "cases[0].latency_ns.p50.value: does not fit 64 bits"},
        {"cases[0].latency_ns.p50.lo", "1001", "cases[0].latency_ns.p50: lo is above value"},
        {"cases[0].latency_ns.p50.new", "1", "cases[0].latency_ns.p50: unknown field \"new\""},
        {"cases[0].latency_ns.p50.value", NULL, "cases[0].latency_ns.p50.value: missing"},
        {"cases[0].latency_ns.histogram.counts[1]", "null",
         "cases[0].latency_ns.histogram.counts[1]: expected a number, got null"},
        {"cases[0].latency_ns.histogram.scale", "21",
         "cases[0].latency_ns.histogram: scale is not within -10 to 20"},
        {"cases[0].cpu.steal", "1.5", "cases[0].cpu.steal: a share must not be above 1"},
        {"cases[0].samples_raw.data", "\"@@@@\"", "cases[0].samples_raw.data: not base64"},
        {"cases[0].samples_raw.count", "6",
         "cases[0].samples_raw.data: more bytes than its count of 6 samples"},
        {"cases[0].samples_raw.count", "8", "cases[0].samples_raw: count is above cap"},
        {"cases[0].samples_raw.codec", "\"raw\"",
         "cases[0].samples_raw.codec: expected the codec delta-zigzag-varint+zstd+base64 or "
         "delta-zigzag-varint+base64, got \"raw\""},
        {"cases[0].unknown.gpu", "3", "cases[0].unknown.gpu: expected a string"},
        {"cases[3]", "7", "cases[3]: expected an object, got a number"},
        {"cases", "{}", "cases: expected an array, got an object"},
        {"cases", NULL, "cases: missing"},
        {"host", "null", "host: expected an object, got null"},
        {"host.virtual", "0", "host.virtual: expected a boolean, got a number"},
        {"id", "\"x\"", "id: expected a ULID: 26 characters of Crockford base 32, got \"x\""},
        {"created", "\"2026-13-15T02:17:21.123Z\"",
         "created: expected a time like 2026-11-15T02:17:21.123Z, got \"2026-13-15T02:17:21.123Z\""},
        {"trace", "\"../x\"", "trace: expected a file name without a folder, got \"../x\""},
        {"config", "[]", "config: expected an object, got an array"},
        {"config.deep", "[[[[[[[[[[[]]]]]]]]]]]", "config.deep[0][0][0][0][0][0][0][0]: nested too deeply"},
        {"schema", "\"tare.run/2\"", "schema tare.run/2 is newer than this tare reads (tare.run/1)"},
        {"schema", "\"tare.run/1x\"", "schema: expected tare.run/1, got \"tare.run/1x\""},
        {"schema", "4", "schema: expected a string"},
        {"schema", NULL, "schema: missing; not a run document"},
        {"targets[0].op", "\"~\"", "targets[0].op: expected <=, >=, <, > or ==, got \"~\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = changed(rows[i].path, rows[i].value), want[256];
        struct run r = {.id = "untouched"};
        tare_error err = TARE_ERROR_INIT;
        snprintf(want, sizeof want, "x.json: %s", rows[i].want);
        assert_int_equal(run_read(&r, "x.json", text, strlen(text), &err), TARE_FORMAT);
        assert_string_equal(err.text, want);
        assert_string_equal(r.id, "untouched");
        free(text);
    }
}

static void test_read_accepts(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value;
    } rows[] = {
        {"schema", "\"tare.run/1.7\""}, {"new", "{\"a\": [1]}"},   {"cases[0].new", "1"},
        {"host.new", "null"},           {"cases[0].gpu", "null"},  {"cases[0].gpu", NULL},
        {"cases[0].load_ns", "5.0"},    {"cases[0].layers", "[]"}, {"host.governor", "\"performance\""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = changed(rows[i].path, rows[i].value);
        struct run r;
        tare_error err = TARE_ERROR_INIT;
        if (run_read(&r, "x.json", text, strlen(text), &err) < 0) fail_msg("%s", err.text);
        if (i == 6) assert_int_equal(r.cases.at[0]->load_ns.v, 5);
        run_release(&r);
        free(text);
    }
}

static void check_text_refused(const char *text, size_t len, const char *part)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_read(&r, "x.json", text, len, &err), TARE_FORMAT);
    assert_memory_equal(err.text, "x.json: ", 8);
    if (!strstr(err.text, part)) fail_msg("\"%s\" lacks \"%s\"", err.text, part);
}

static void test_bad_text(void **state)
{
    (void)state;
    check_text_refused("", 0, "line 1");
    check_text_refused("[]", 2, "expected an object");
    check_text_refused("{\"a\":1,\"a\":2}", 13, "duplicate");
    check_text_refused("{\"a\":99999999999999999999}", 26, "too big");
    check_text_refused("{\"a\":1e999}", 11, "overflow");
    check_text_refused("{\"a\":NaN}", 9, "line 1");
    check_text_refused("{\"a\":\"\xff\"}", 9, "unable to decode byte 0xff");
    check_text_refused("{\"schema\":\"tare.run/1\"} x", 25, "end of file");
    struct buf deep = BUF_INIT;
    for (int i = 0; i < 100000; i++) buf_add_char(&deep, '[');
    check_text_refused(deep.data, deep.len, "maximum parsing depth");
    buf_release(&deep);
}

/* Every key is looked up among all others: 100,000 of them took minutes. */
static void test_many_keys(void **state)
{
    (void)state;
    struct buf keys = BUF_INIT, items = BUF_INIT;
    for (int i = 0; i < 100000; i++) {
        buf_printf(&keys, "%c\"k%d\":1", i ? ',' : '{', i);
        buf_printf(&items, "%c1", i ? ',' : '[');
    }
    buf_add_char(&keys, '}');
    buf_add_char(&items, ']');
    char *text = changed("cases[0].params", keys.data);
    check_text_refused(text, strlen(text), "cases[0].params: 100000 keys, at most 4096 are allowed");
    free(text);
    text = changed("config.many", items.data);
    check_text_refused(text, strlen(text), "config.many: 100000 items, at most 65536 are allowed");
    free(text);
    buf_release(&keys);
    buf_release(&items);
}

/* Every truncation, and many single-byte changes, are refused or read: never a crash, never a leak. */
static void test_damage(void **state)
{
    (void)state;
    struct run r, again;
    struct buf b = BUF_INIT;
    make(&r, fill_full);
    text_of(&r, &b);
    long before = mem_live_blocks();
    for (size_t n = 0; n + 1 < b.len; n += 7) {
        assert_int_equal(run_read(&again, "x", b.data, n, NULL), TARE_FORMAT);
    }
    for (size_t i = 0; i < b.len; i++) {
        char keep = b.data[i];
        b.data[i] = (char)(keep ^ (1 << (i % 8)));
        if (run_read(&again, "x", b.data, b.len, NULL) == TARE_OK) run_release(&again);
        b.data[i] = keep;
    }
    assert_int_equal(mem_live_blocks(), before);
    run_release(&r);
    buf_release(&b);
}

/* Samples of every size of step come back exactly, whether the first n of many or none. */
static void test_samples(void **state)
{
    (void)state;
    enum { N = 10000 };
    static uint64_t ns[N];
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < N; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        ns[i] = x >> (1 + i % 63);
    }
    const size_t counts[] = {0, 1, 2, 3, 1000, N};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct run r, again;
        struct buf b = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        make(&r, fill_minimal);
        struct run_case *c = run_add_case(&r, "x");
        c->samples_raw.cap = 5000;
        run_set_samples(&r, c, ns, counts[k], "first");
        text_of(&r, &b);
        if (run_read(&again, "x", b.data, b.len, &err) < 0) fail_msg("%s", err.text);
        size_t want = counts[k] < 5000 ? counts[k] : 5000;
        assert_int_equal(again.cases.at[0]->samples_raw.n, want);
        assert_memory_equal(again.cases.at[0]->samples_raw.ns, ns, want * sizeof *ns);
        run_release(&again);
        run_release(&r);
        buf_release(&b);
    }
}

static void test_histogram(void **state)
{
    (void)state;
    struct run r;
    struct hist h = HIST_INIT;
    make(&r, fill_minimal);
    struct run_case *c = run_add_case(&r, "x");
    assert_int_equal(hist_record_n(&h, 1000, 3, NULL), TARE_OK);
    assert_int_equal(hist_record(&h, 0, NULL), TARE_OK);
    run_set_histogram(&r, c, &h);
    const struct run_histogram *to = &c->latency_ns.histogram;
    assert_true(to->known && to->scale == 6 && to->zero == 1 && to->offset == h.first);
    assert_int_equal(to->counts[hist_index(1000) - h.first], 3);
    hist_release(&h);
    run_release(&r);
}

/* ---- files ---- */

static void test_save_and_load(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_run_XXXXXX", out[256], path[512], second[512], name[128];
    struct run r, again;
    assert_non_null(mkdtemp(dir));
    snprintf(out, sizeof out, "%s/a/b", dir);
    make(&r, fill_full);
    r.created = "2026-11-15T02:17:21.123Z";
    assert_int_equal(run_save(&r, out, path, sizeof path, NULL), TARE_OK);
    assert_int_equal(run_save(&r, out, second, sizeof second, NULL), TARE_OK);
    snprintf(name, sizeof name, "%s", path + strlen(out) + 1);
    assert_string_equal(name, "bench_models-Mini-LM-.onnx_20261115-021721.json");
    snprintf(name, sizeof name, "%s", second + strlen(out) + 1);
    assert_string_equal(name, "bench_models-Mini-LM-.onnx_20261115-021721-2.json");
    assert_int_equal(run_load(&again, second, NULL), TARE_OK);
    assert_string_equal(again.id, r.id);
    run_release(&again);
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_save(&r, path, NULL, 0, &err), TARE_IO); /* a file where the folder should be */
    assert_int_equal(run_load(&again, out, &err), TARE_IO);
    assert_int_equal(run_load(&again, "/nonexistent.json", &err), TARE_IO);
    unlink(path);
    unlink(second);
    rmdir(out);
    snprintf(out, sizeof out, "%s/a", dir);
    rmdir(out);
    assert_int_equal(rmdir(dir), 0); /* nothing else was left behind */
    run_release(&r);
}

static void test_hostile_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"../../etc/passwd", "bench_etc-passwd_20261115-021721.json"},
                                           {"///", "bench_unnamed_20261115-021721.json"},
                                           {".hidden\n", "bench_hidden-_20261115-021721.json"}};
    char dir[] = "/tmp/test_run_XXXXXX", path[512];
    struct run r;
    assert_non_null(mkdtemp(dir));
    make(&r, fill_minimal);
    r.created = "2026-11-15T02:17:21.123Z";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        r.subject.name = names[i][0];
        assert_int_equal(run_save(&r, dir, path, sizeof path, NULL), TARE_OK);
        assert_string_equal(path + strlen(dir) + 1, names[i][1]);
        unlink(path);
    }
    rmdir(dir);
    run_release(&r);
}

/* ---- fingerprint and memory ---- */

static void test_fingerprint(void **state)
{
    (void)state;
    struct run r;
    char a[RUN_FINGERPRINT_SIZE], b[RUN_FINGERPRINT_SIZE];
    make(&r, fill_full);
    run_host_fingerprint(&r.host, a);
    assert_int_equal(strlen(a), RUN_FINGERPRINT_SIZE - 1);
    r.host.hostname = "other";
    r.host.kernel = "6.2";
    r.host.load1 = known_f64(9);
    r.host.memory_bytes.v -= 300 << 20;
    run_host_fingerprint(&r.host, b);
    assert_string_equal(a, b);
    r.host.cpu.usable = known_f64(1);
    run_host_fingerprint(&r.host, b);
    assert_string_not_equal(a, b);
    run_release(&r);
}

static void test_no_memory_to_write(void **state)
{
    (void)state;
    struct run r;
    long n = 0, before = mem_live_blocks();
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        struct buf b = BUF_INIT;
        mem_fail_after(n);
        s = run_init(&r, "bench", NULL);
        if (s == TARE_OK) {
            fill_full(&r);
            s = run_write(&r, &b, NULL);
            run_release(&r);
        }
        mem_fail_after(-1);
        buf_release(&b);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_true(n > 3);
}

/* Out of memory at any moment of saving leaves no file at all; loading leaves no block. */
static void test_no_memory_to_save(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_run_XXXXXX", path[512] = "";
    struct run r, again;
    assert_non_null(mkdtemp(dir));
    make(&r, fill_full);
    long n = 0, before = mem_live_blocks();
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        mem_fail_after(n);
        s = run_save(&r, dir, path, sizeof path, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_true(n > 3);
    n = 0;
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        mem_fail_after(n);
        s = run_load(&again, path, NULL);
        mem_fail_after(-1);
        if (s == TARE_OK) run_release(&again);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_true(n > 3);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
    run_release(&r);
}

static void *gated_malloc(size_t n)
{
    return mem_new(n, 1);
}

/* Returns how many allocations reading made. jansson reports some failed allocations of its own as a syntax error; the
 * user is told the truth. */
static long read_without_memory(const struct buf *text)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    long n = 0, before = mem_live_blocks();
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        mem_fail_after(n);
        s = run_read(&r, "x", text->data, text->len, &err);
        mem_fail_after(-1);
        if (s == TARE_OK) run_release(&r);
        if (s != TARE_OK && s != TARE_NOMEM) fail_msg("allocation %ld: %s", n, err.text);
        assert_int_equal(mem_live_blocks(), before);
    }
    return n;
}

static void test_no_memory_to_read(void **state)
{
    (void)state;
    struct run r;
    struct buf text = BUF_INIT;
    make(&r, fill_full);
    text_of(&r, &text);
    run_release(&r);
    assert_true(read_without_memory(&text) > 3);
    json_set_alloc_funcs(gated_malloc, mem_free);
    assert_true(read_without_memory(&text) > 100);
    json_set_alloc_funcs(malloc, free);
    buf_release(&text);
}

/* ---- for the Python tests ---- */

static int dump(const char *dir)
{
    void (*const fills[])(struct run *) = {fill_minimal, fill_full};
    for (size_t i = 0; i < 2; i++) {
        struct run r;
        char path[512];
        tare_error err = TARE_ERROR_INIT;
        if (run_init(&r, "bench", &err) < 0) return 1;
        fills[i](&r);
        if (run_save(&r, dir, path, sizeof path, &err) < 0) return fprintf(stderr, "%s\n", err.text), 1;
        puts(path);
        run_release(&r);
    }
    return 0;
}

static int check(void)
{
    char path[1024];
    while (fgets(path, sizeof path, stdin)) {
        struct run r;
        tare_error err = TARE_ERROR_INIT;
        path[strcspn(path, "\n")] = 0;
        if (run_load(&r, path, &err) == TARE_OK) {
            puts("ok");
            run_release(&r);
        } else {
            puts(err.text);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_values_are_taken_out),
        cmocka_unit_test(test_values_survive),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_default_reasons),
        cmocka_unit_test(test_old_settings),
        cmocka_unit_test(test_write_refuses),
        cmocka_unit_test(test_read_refuses),
        cmocka_unit_test(test_read_accepts),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_save_and_load),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_no_memory_to_write),
        cmocka_unit_test(test_no_memory_to_read),
        cmocka_unit_test(test_no_memory_to_save),
    };
    if (argc == 3 && strcmp(argv[1], "--dump") == 0) return dump(argv[2]);
    if (argc == 2 && strcmp(argv[1], "--check") == 0) return check();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
