/* SPDX-License-Identifier: MIT
 * test_onnx_subject.c - an ONNX subject over the fake runtime: what it asks of it, what it records, how it fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "subject/onnx_model.h"
#include "subject_fixture.h"

#define TEXTS                                                     \
    "fake-ort-model 1\n"                                          \
    "input input_ids int64 batch_size,sequence_length\n"          \
    "input attention_mask int64 batch_size,sequence_length\n"     \
    "output logits float32 batch_size,4\n"                        \
    "output pooled float32 batch_size,2\n"

struct opened {
    struct subject *subject;
    struct instance *instance;
    struct run run;
    struct run_case *c;
};

static tare_status try_open(struct opened *o, const struct onnx_options *options, const struct case_params *p,
                            tare_error *err)
{
    *o = (struct opened){0};
    assert_int_equal(run_init(&o->run, "bench", NULL), TARE_OK);
    o->c = run_add_case(&o->run, "case");
    assert_non_null(o->c);
    tare_status s = subject_open_onnx(&o->subject, options, err);
    struct case_record to = {&o->run, &o->c->params};
    if (s == TARE_OK) s = o->subject->ops->prepare(o->subject, p, &to, &o->instance, err);
    return s;
}

static void shut(struct opened *o)
{
    if (o->instance) o->subject->ops->finish(o->instance);
    subject_close(o->subject);
    run_release(&o->run);
    assert_int_equal(mem_live_blocks(), 0);
}

static struct opened open_text(const char *text, const struct case_params *p)
{
    struct opened o;
    tare_error err = TARE_ERROR_INIT;
    struct onnx_options options = {
        .path = scratch_text("model.onnx", text), .runtime = fake_ort(), .optimization = -1};
    if (try_open(&o, &options, p, &err) < 0) fail_msg("%s", err.text);
    return o;
}

static tare_status run_once(struct opened *o, unsigned worker, tare_error *err)
{
    struct subject_cost cost = {.known = true};
    tare_status s = o->subject->ops->run(o->instance, worker, &cost, err);
    assert_false(cost.known);
    return s;
}

static int64_t param(const struct opened *o, const char *key)
{
    const struct run_value *v = run_map_get(&o->c->params, key);
    if (!v || v->kind != RUN_INT) fail_msg("no number %s among the parameters", key);
    return v->i;
}

static void runs_and_gives_outputs(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct opened o =
        open_text(TEXTS, &(struct case_params){.batch = 3, .seq = 7, .threads = 2, .workers = 1, .seed = 5});
    struct tensor_set out = TENSOR_SET_INIT;
    assert_int_equal(o.subject->ops->outputs(o.instance, &out, &err), TARE_INVALID); /* nothing ran yet */
    for (int i = 0; i < 3; i++) assert_int_equal(run_once(&o, 0, &err), TARE_OK);
    if (o.subject->ops->outputs(o.instance, &out, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(out.items.n, 2);
    const struct tensor *logits = tensor_find(&out, "logits"), *pooled = tensor_find(&out, "pooled");
    assert_true(logits->rank == 2 && logits->dims[0] == 3 && logits->dims[1] == 4);
    const struct onnx_instance *i = (const struct onnx_instance *)o.instance;
    unsigned sum = 0;
    for (size_t k = 0; k < 2; k++) {
        const struct tensor *in = &i->workers[0].inputs.items.items[k];
        for (size_t b = 0; b < in->bytes; b++) sum += ((const uint8_t *)in->data)[b];
    }
    for (uint64_t k = 0; k < 12; k++) assert_true(tensor_value(logits, k) == sum % 251 + (double)k);
    assert_true(tensor_value(pooled, 1) == sum % 251 + 1001.0);
    assert_true(param(&o, "batch") == 3 && param(&o, "seq") == 7 && param(&o, "threads") == 2);
    assert_int_equal(o.subject->ops->units(o.instance), 3);
    tensor_set_release(&out);
    shut(&o);
}

/* What run 1 made is what later runs write to. */
static void outputs_are_reused(void **state)
{
    (void)state;
    struct opened o = open_text(TEXTS, &(struct case_params){.batch = 3, .seq = 64, .workers = 2});
    struct onnx_instance *i = (struct onnx_instance *)o.instance;
    assert_int_equal(run_once(&o, 0, NULL), TARE_OK);
    assert_int_equal(run_once(&o, 1, NULL), TARE_OK);
    struct ort_value *first = i->workers[0].out[0], *other = i->workers[1].out[0];
    assert_non_null(first);
    assert_ptr_not_equal(first, other);
    for (int k = 0; k < 4; k++) {
        assert_int_equal(run_once(&o, 0, NULL), TARE_OK);
        assert_ptr_equal(i->workers[0].out[0], first);
    }
    /* own inputs for each worker, and not the same */
    assert_memory_not_equal(i->workers[0].inputs.items.items[0].data,
                            i->workers[1].inputs.items.items[0].data,
                            i->workers[0].inputs.items.items[0].bytes);
    shut(&o);
}

static void a_run_allocates_nothing_of_ours(void **state)
{
    (void)state;
    struct opened o = open_text(TEXTS, &(struct case_params){.batch = 3, .workers = 1});
    mem_fail_after(0);
    for (int k = 0; k < 5; k++) assert_int_equal(run_once(&o, 0, NULL), TARE_OK);
    mem_fail_after(-1);
    shut(&o);
}

static void shapes_that_change(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct opened o = open_text(TEXTS "shape_change 4\n", &(struct case_params){.batch = 3, .workers = 1});
    for (int k = 0; k < 8; k++) {
        if (run_once(&o, 0, &err) < 0) fail_msg("run %d: %s", k + 1, err.text);
    }
    struct onnx_worker *w = &((struct onnx_instance *)o.instance)->workers[0];
    assert_true(w->loose[0] && !w->loose[1]);
    shut(&o);
}

/* A failure is not papered over by running again. */
static void a_failing_run_says_so(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    for (int at = 1; at < 4; at++) {
        char text[1000];
        snprintf(text, sizeof text, "%sfail_run %d\n", TEXTS, at);
        struct opened o = open_text(text, &(struct case_params){.workers = 1});
        for (int k = 1; k < at; k++) assert_int_equal(run_once(&o, 0, &err), TARE_OK);
        assert_true(run_once(&o, 0, &err) < 0);
        assert_non_null(strstr(err.text, "model.onnx: ONNX Runtime: Non-zero status code"));
        shut(&o);
    }
}

static void options_reach_the_runtime(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    const char *log = in_scratch("log");
    const char *const config[] = {"session.dynamic_block_base=4"};
    struct opened o;
    setenv("FAKE_ORT_LOG", log, 1);
    setenv("FAKE_ORT_CUDA", "1", 1);
    struct onnx_options options = {.path = scratch_text("model.onnx", TEXTS),
                                   .runtime = fake_ort(),
                                   .optimization = 2,
                                   .no_arena = true,
                                   .fix_dims = true,
                                   .session_config = config,
                                   .n_session_config = 1};
    struct case_params p = {
        .batch = 2, .seq = 6, .threads = 3, .provider = "cuda", .has_neighbours = true, .workers = 1};
    if (try_open(&o, &options, &p, &err) < 0) fail_msg("%s", err.text);
    unsetenv("FAKE_ORT_LOG");
    unsetenv("FAKE_ORT_CUDA");
    char text[4096] = "";
    FILE *f = fopen(log, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    static const char *const lines[] = {"intra_threads 3",
                                        "inter_threads 1",
                                        "optimization 2",
                                        "arena off",
                                        "config session.force_spinning_stop=1",
                                        "config session.dynamic_block_base=4",
                                        "config session.record_ep_graph_assignment_info=1",
                                        "override batch_size=2",
                                        "override sequence_length=6",
                                        "provider cuda"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!strstr(text, lines[i])) fail_msg("no line '%s' in:\n%s", lines[i], text);
    }
    assert_int_equal(run_once(&o, 0, &err), TARE_OK);
    assert_int_equal(o.subject->ops->report(o.instance, &o.run, o.c, &err), TARE_OK);
    assert_int_equal(run_map_get(&o.c->placement, "CUDAExecutionProvider")->i, 6);
    shut(&o);
}

static void errors_before_any_run(void **state)
{
    (void)state;
    static const char *const bad_config[] = {"no-value"}, *const refused[] = {"session.refused=1"};
    const struct {
        const char *model, *says;
        struct onnx_options options;
        struct case_params p;
        tare_status status;
    } rows[] = {
        {TEXTS,
         "(this library has: CPUExecutionProvider; pip install onnxruntime-gpu has it): ONNX Runtime: "
         "Failed to load library",
         {0},
         {.provider = "cuda"},
         TARE_UNSUPPORTED},
        {TEXTS, "'nosuch' cannot be used", {0}, {.provider = "nosuch"}, TARE_UNSUPPORTED},
        {TEXTS,
         "'no-value' is not KEY=",
         {.session_config = bad_config, .n_session_config = 1},
         {0},
         TARE_INVALID},
        {TEXTS,
         "session option session.refused=1: ONNX Runtime: Config key is refused",
         {.session_config = refused, .n_session_config = 1},
         {0},
         TARE_INVALID},
        {"fake-ort-model 1\ninput words string batch\n",
         "'words' is a tensor of text",
         {0},
         {0},
         TARE_UNSUPPORTED},
        {"fake-ort-model 1\ninput seq sequence\n", "'seq' is a sequence", {0}, {0}, TARE_UNSUPPORTED},
        {"fake-ort-model 1\ninput opt optional\n", "'opt' is an optional value", {0}, {0}, TARE_UNSUPPORTED},
        {"fake-ort-model 1\nfail_load no such operator: Nope\n",
         "no such operator: Nope",
         {0},
         {0},
         TARE_UNSUPPORTED},
        {"garbage\n", "is not an ONNX model: looks like text", {0}, {0}, TARE_FORMAT},
        {"", "the file is empty", {0}, {0}, TARE_FORMAT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opened o;
        tare_error err = TARE_ERROR_INIT;
        struct onnx_options options = rows[i].options;
        options.path = scratch_text("model.onnx", rows[i].model);
        options.runtime = fake_ort();
        options.optimization = -1;
        assert_int_equal(try_open(&o, &options, &rows[i].p, &err), rows[i].status);
        if (!strstr(err.text, rows[i].says)) fail_msg("row %zu: %s", i, err.text);
        shut(&o);
    }
    struct opened o;
    tare_error err = TARE_ERROR_INIT;
    struct onnx_options gone = {.path = in_scratch("gone.onnx"), .runtime = fake_ort()};
    assert_int_equal(try_open(&o, &gone, &(struct case_params){0}, &err), TARE_IO);
    shut(&o);
    struct onnx_options folder = {.path = scratch, .runtime = fake_ort()};
    assert_int_equal(try_open(&o, &folder, &(struct case_params){0}, &err), TARE_INVALID);
    shut(&o);
}

static void models_without_inputs_run(void **state)
{
    (void)state;
    struct opened o =
        open_text("fake-ort-model 1\noutput y float32 2,2\n", &(struct case_params){.workers = 1});
    assert_int_equal(run_once(&o, 0, NULL), TARE_OK);
    assert_int_equal(o.subject->ops->units(o.instance), 1);
    shut(&o);
}

static void report_and_description(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    setenv("FAKE_ORT_PROVIDERS", "CUDAExecutionProvider,XnnpackExecutionProvider,CPUExecutionProvider", 1);
    struct opened o = open_text(TEXTS "nan 3\n", &(struct case_params){.batch = 2, .workers = 1});
    assert_int_equal(run_once(&o, 0, &err), TARE_OK);
    assert_int_equal(o.subject->ops->report(o.instance, &o.run, o.c, &err), TARE_OK);
    assert_int_equal(o.c->nan_outputs.v, 3);
    assert_int_equal(run_map_get(&o.c->memory.arena, "TotalAllocated")->i, 4000);
    assert_null(run_map_get(&o.c->memory.arena, "Odd"));
    assert_true(o.c->memory.fragmentation.known && o.c->memory.fragmentation.v == 0.25);
    if (o.subject->ops->describe(o.subject, &o.run, &err) < 0) fail_msg("%s", err.text);
    unsetenv("FAKE_ORT_PROVIDERS");
    assert_string_equal(strrchr(o.run.subject.name, '/'),
                        "/model"); /* whole: it lies outside of the working folder */
    assert_int_equal(strlen(o.run.subject.sha256), 64);
    assert_string_equal(o.run.subject.runtime.version, "1.99.0");
    const struct run_value *r = run_map_get(&o.run.config, "onnxruntime");
    const struct run_value *providers = run_map_get(&r->items, "providers");
    static const char *const states[] = {"absent", "untried", "usable"};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(run_map_get(&providers->items.at[i].value.items, "state")->s, states[i]);
    }
    struct buf text = BUF_INIT;
    if (run_write(&o.run, &text, &err) < 0) fail_msg("%s", err.text);
    buf_release(&text);
    shut(&o);
}

/* What the runtime was told, a line each. Owned by nobody: static. */
static const char *read_log(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static unsigned count_of(const char *text, const char *line)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, line)); at += strlen(line)) n++;
    return n;
}

/* The fake runtime refuses a run before the last one was waited for, and a look into its device's memory. */
static void inputs_and_outputs_stay_on_the_device(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    const char *log = in_scratch("bound-log");
    struct tensor_set got = TENSOR_SET_INIT;
    setenv("FAKE_ORT_LOG", log, 1);
    setenv("FAKE_ORT_CUDA", "1", 1);
    struct case_params p = {.batch = 2, .provider = "cuda", .io = IO_GPU, .workers = 2};
    struct opened o = open_text(TEXTS "nan 3\nshape_change 4\n", &p);
    assert_string_equal(run_map_get(&o.c->params, "io")->s, "gpu");
    for (int k = 0; k < 6; k++)
        if (run_once(&o, (unsigned)k % 2, &err) < 0) fail_msg("run %d: %s", k + 1, err.text);
    assert_true(o.subject->ops->overhead_ns(o.instance) > 0);
    assert_int_equal(count_of(read_log(log), "bind input_ids"), 2); /* once a worker */
    assert_int_equal(count_of(read_log(log), "run host"), 0);
    if (o.subject->ops->outputs(o.instance, &got, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(got.items.n, 2);
    assert_int_equal(got.items.items[0].dims[0], 3); /* the shape changed */
    assert_int_equal(o.subject->ops->report(o.instance, &o.run, o.c, &err), TARE_OK);
    assert_int_equal(o.c->nan_outputs.v, 3);
    assert_int_equal(o.c->memory.gpu_peak.v, 3000); /* of the fake allocator */
    assert_int_equal(o.c->memory.gpu_held.v, 4000);
    assert_int_equal(count_of(read_log(log), "run host"), 2);
    assert_int_equal(run_once(&o, 0, &err), TARE_OK);
    unsetenv("FAKE_ORT_LOG");
    unsetenv("FAKE_ORT_CUDA");
    tensor_set_release(&got);
    shut(&o);
}

static void a_failing_bound_run_says_so(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct case_params p = {.provider = "cuda", .io = IO_GPU, .workers = 1};
    for (int at = 1; at < 4; at++) {
        char text[1000];
        snprintf(text, sizeof text, "%sfail_run %d\n", TEXTS, at);
        setenv("FAKE_ORT_CUDA", "1", 1);
        struct opened o = open_text(text, &p);
        unsetenv("FAKE_ORT_CUDA");
        for (int k = 1; k < at; k++) assert_int_equal(run_once(&o, 0, &err), TARE_OK);
        assert_true(run_once(&o, 0, &err) < 0);
        assert_non_null(strstr(err.text, "Non-zero status code"));
        shut(&o);
    }
}

static void old_runtimes_cannot_wait_for_outputs(void **state)
{
    (void)state;
    struct opened o;
    tare_error err = TARE_ERROR_INIT;
    struct onnx_options options = {
        .path = scratch_text("model.onnx", TEXTS), .runtime = fake_ort(), .optimization = -1};
    struct case_params p = {.provider = "tensorrt", .io = IO_GPU, .workers = 1};
    setenv("FAKE_ORT_VERSION", "1.9.0", 1);
    setenv("FAKE_ORT_CUDA", "1", 1);
    assert_int_equal(try_open(&o, &options, &p, &err), TARE_UNSUPPORTED);
    unsetenv("FAKE_ORT_VERSION");
    unsetenv("FAKE_ORT_CUDA");
    assert_non_null(strstr(err.text, "1.10 and up can"));
    shut(&o);
}

/* sha256("abc") stands in FIPS 180. */
static void the_hash_is_sha256(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct opened o = open_text(TEXTS, &(struct case_params){.workers = 1});
    scratch_text("model.onnx", "abc");
    assert_int_equal(o.subject->ops->describe(o.subject, &o.run, &err), TARE_OK);
    assert_string_equal(o.run.subject.sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    shut(&o);
}

static void old_runtimes_lack_statistics(void **state)
{
    (void)state;
    setenv("FAKE_ORT_VERSION", "1.8.1", 1);
    struct opened o =
        open_text(TEXTS, &(struct case_params){.batch = 2, .has_neighbours = true, .workers = 1});
    assert_int_equal(run_once(&o, 0, NULL), TARE_OK);
    assert_int_equal(o.subject->ops->report(o.instance, &o.run, o.c, NULL), TARE_OK);
    assert_non_null(strstr(run_reason(&o.c->unknown, "memory.arena"), "1.23"));
    unsetenv("FAKE_ORT_VERSION");
    shut(&o);
}

/* The wrapper costs far less than a microsecond, and weighing it leaves the instance as it was. */
static void its_own_cost_is_measured(void **state)
{
    (void)state;
    struct opened o = open_text(TEXTS, &(struct case_params){.workers = 1});
    assert_int_equal(run_once(&o, 0, NULL), TARE_OK);
    uint64_t ns = o.subject->ops->overhead_ns(o.instance);
    assert_true(ns >= 1 && ns < 100000);
    assert_ptr_equal(((struct onnx_instance *)o.instance)->call_run,
                     ((struct onnx_instance *)o.instance)->ort->call.Run);
    assert_int_equal(run_once(&o, 0, NULL), TARE_OK);
    shut(&o);
}

static void threads_are_what_may_be_used(void **state)
{
    (void)state;
    struct run run;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    int64_t all = onnx_thread_budget(&run);
    assert_true(all >= 1 && all <= sysconf(_SC_NPROCESSORS_ONLN));
    run.host.cpu.usable = known_f64(1.5);
    assert_int_equal(onnx_thread_budget(&run), 1);
    run.host.cpu.usable = known_f64(0.2);
    assert_int_equal(onnx_thread_budget(&run), 1);
    run.host.cpu.usable = known_f64(100000);
    assert_int_equal(onnx_thread_budget(&run), all);
    run_release(&run);
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    struct onnx_options options = {
        .path = scratch_text("model.onnx", TEXTS), .runtime = fake_ort(), .optimization = -1};
    for (long n = 0;; n++) {
        struct opened o = {0};
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(run_init(&o.run, "bench", NULL), TARE_OK);
        o.c = run_add_case(&o.run, "case");
        struct case_record to = {&o.run, &o.c->params};
        mem_fail_after(n);
        tare_status s = subject_open_onnx(&o.subject, &options, &err);
        if (s == TARE_OK)
            s = o.subject->ops->prepare(o.subject, &(struct case_params){.workers = 2}, &to, &o.instance,
                                        &err);
        mem_fail_after(-1);
        shut(&o);
        if (s == TARE_OK) break;
        if (s != TARE_NOMEM) fail_msg("allocation %ld: %s", n, err.text);
        assert_true(n < 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_and_gives_outputs),
        cmocka_unit_test(outputs_are_reused),
        cmocka_unit_test(a_run_allocates_nothing_of_ours),
        cmocka_unit_test(shapes_that_change),
        cmocka_unit_test(a_failing_run_says_so),
        cmocka_unit_test(options_reach_the_runtime),
        cmocka_unit_test(errors_before_any_run),
        cmocka_unit_test(models_without_inputs_run),
        cmocka_unit_test(report_and_description),
        cmocka_unit_test(inputs_and_outputs_stay_on_the_device),
        cmocka_unit_test(a_failing_bound_run_says_so),
        cmocka_unit_test(old_runtimes_cannot_wait_for_outputs),
        cmocka_unit_test(the_hash_is_sha256),
        cmocka_unit_test(old_runtimes_lack_statistics),
        cmocka_unit_test(its_own_cost_is_measured),
        cmocka_unit_test(threads_are_what_may_be_used),
        cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
