/* SPDX-License-Identifier: MIT
 * test_kineto.c - files of torch.profiler become traces: made-up ones with a known answer, real ones of an H200 whose
 * sums another JSON reader found, and files that are damaged: refused with the place, and nothing left. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/gpu/gpu_sum.h"
#include "import/kineto.h"
#include "report/export/gpu_bars.h"
#include "report/trace/joined.h"
#include "trace/reader.h"
#include "trace_fixture.h"

static int set_up(void **state)
{
    struct folder *f = test_calloc(1, sizeof *f);
    folder_new(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    folder_remove(*state);
    test_free(*state);
    assert_int_equal(mem_live_blocks(), 0);
    return 0;
}

static const char *source(const char *name)
{
    static char path[PATH_MAX];
    const char *src = getenv("TARE_SRC");
    snprintf(path, sizeof path, "%s/%s", src ? src : ".", name);
    return path;
}

static struct kineto_counts import_file(const struct folder *f, const char *name, struct gpu_profile *p)
{
    struct kineto_counts c;
    struct trace *t;
    tare_error err = TARE_ERROR_INIT;
    if (kineto_import(source(name), f->trace, &c, &err) < 0) fail_msg("%s", err.text);
    if (trace_open(&t, f->trace, &err) < 0 || gpu_sum(&t, 1, p, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(trace_loss(t)->damaged_chunks, 0);
    assert_int_equal(trace_loss(t)->unclosed_scopes, 0);
    trace_close(t);
    return c;
}

static tare_status import_text(const struct folder *f, const char *text, struct kineto_counts *c,
                               tare_error *err)
{
    struct inflow *from;
    tare_status s = inflow_of(&from, "text", text, strlen(text), err);
    if (s < 0) return s;
    s = kineto_convert(from, "text", f->trace, c, err);
    inflow_close(from);
    return s;
}

/* ---- what is in them ---- */

static const struct gpu_range *range_of(const struct gpu_profile *p, const char *name)
{
    for (size_t i = 0; i < p->ranges.n; i++)
        if (strcmp(p->ranges.at[i]->name, name) == 0) return p->ranges.at[i];
    fail_msg("no range %s", name);
    return NULL;
}

/* Plain, packed, and packed in two parts are one file. */
static void all_that_is_in_a_file(void **state)
{
    static const char *const files[] = {"fuzz/corpus/kineto/small.json", "fuzz/corpus/kineto/small.json.gz",
                                        "fuzz/corpus/kineto/twice.json.gz"};
    for (size_t i = 0; i < 3; i++) {
        struct gpu_profile p;
        struct kineto_counts c = import_file(*state, files[i], &p);
        assert_int_equal(c.events, 15);
        assert_int_equal(c.unusable, 0);
        assert_int_equal(c.unknown, 1); /* the arrow */
        assert_int_equal(c.kernel_ns, 30999);
        assert_int_equal(p.kernels.n, 1);
        assert_string_equal(p.kernels.at[0]->full, "void cutlass::Kernel<gemm>()");
        assert_int_equal(p.kernels.at[0]->total_ns, 30999);
        assert_int_equal(p.kernels.at[0]->blocks, 8);
        assert_int_equal(p.kernels.at[0]->threads, 128);
        assert_int_equal(p.kernels.at[0]->registers, 32);
        assert_int_equal(p.kernels.at[0]->shared_bytes, 1024);
        assert_int_equal(p.copies.n, 2);
        assert_string_equal(p.copies.at[0]->direction, "to-device");
        assert_string_equal(p.copies.at[0]->host_memory, "pageable");
        assert_int_equal(p.copies.at[0]->bytes, 4096);
        assert_string_equal(p.copies.at[1]->direction, "fill");
        assert_int_equal(p.calls.n, 3);
        assert_string_equal(p.devices.at[0]->name, "NVIDIA H200");
        assert_int_equal(p.devices.at[0]->multiprocessors.v, 132);
        assert_int_equal(p.devices.at[0]->memory_peak_bytes.v, 2097152);
        assert_int_equal(p.devices.at[0]->operations.v, 3);
        assert_non_null(strstr(p.notes.at[0]->text, "backend nccl, rank 3, world_size 8"));
        gpu_profile_release(&p);
    }
}

static int keep_capability(void *to, uint32_t process, const struct gpu_record *r)
{
    (void)process;
    if (r->kind == GPU_DEVICE) *(uint64_t *)to = r->DEVICE.capability;
    return 0;
}

/* As a recording of tare has it: major << 8 | minor. */
static void cards_have_their_capability(void **state)
{
    const struct folder *f = *state;
    struct kineto_counts c;
    struct trace *t;
    tare_error err = TARE_ERROR_INIT;
    uint64_t capability = 0;
    const char *text = "{\"deviceProperties\": [{\"id\": 0, \"name\": \"made\", \"computeMajor\": 8, "
                       "\"computeMinor\": 6}], \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", "
                       "\"name\": \"k\", \"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 2, \"args\": "
                       "{\"device\": 0, \"stream\": 7, \"correlation\": 1}}]}";
    if (import_text(f, text, &c, &err) < 0) fail_msg("%s", err.text);
    if (trace_open(&t, f->trace, &err) < 0) fail_msg("%s", err.text);
    trace_gpu(t, keep_capability, &capability);
    assert_int_equal(capability, 0x806);
    trace_close(t);
}

/* A kernel belongs to the operator and the module that were open on the thread when it was launched. */
static void kernels_have_their_operators(void **state)
{
    struct gpu_profile p;
    import_file(*state, "fuzz/corpus/kineto/small.json", &p);
    assert_int_equal(p.origins.n, 1);
    assert_string_equal(p.origins.at[0]->kernel, "gemm");
    assert_string_equal(p.origins.at[0]->op, "aten::addmm");
    assert_string_equal(p.origins.at[0]->module, "Net_0.Linear_0");
    assert_int_equal(p.origins.at[0]->total_ns, 30999);
    assert_int_equal(range_of(&p, "ProfilerStep#1")->total_ns, 500500);
    assert_int_equal(range_of(&p, "ProfilerStep#1")->gpu_ns, 30999 + 2500);
    gpu_profile_release(&p);
}

/* What Python's json found in the same files: counts and sums, to the nanosecond. */
static void real_files_of_an_h200(void **state)
{
    struct gpu_profile p;
    struct kineto_counts c = import_file(*state, "fuzz/corpus/kineto/h200-compiled.json.gz", &p);
    uint64_t ns = 0, runs = 0;
    assert_int_equal(c.kernels, 170);
    assert_int_equal(c.fills, 10);
    assert_int_equal(c.kernel_ns, 488888);
    assert_int_equal(c.copy_ns, 8321);
    assert_int_equal(c.calls, 32);
    assert_int_equal(c.operators, 60);
    for (size_t i = 0; i < p.kernels.n; i++) {
        ns += p.kernels.at[i]->total_ns;
        runs += p.kernels.at[i]->count;
    }
    assert_int_equal(runs, 170);
    assert_int_equal(ns, 488888);
    assert_int_equal(p.devices.at[0]->steps.count, 10);
    gpu_profile_release(&p);
    c = import_file(*state, "tests/cli/import/h200-streams.json.gz", &p);
    assert_int_equal(c.kernels, 114);
    assert_int_equal(c.kernel_ns, 279015);
    assert_int_equal(c.copy_ns, 64768 + 3265);
    assert_int_equal(c.frames, 956);
    assert_int_equal(c.memory, 204);
    uint64_t placed = 0, backward = 0;
    for (size_t i = 0; i < p.origins.n; i++) {
        assert_non_null(p.origins.at[i]->op);
        placed += p.origins.at[i]->count;
        if (p.origins.at[i]->phase && p.origins.at[i]->module) backward += p.origins.at[i]->count;
    }
    assert_int_equal(placed, 114);
    assert_true(backward > 40); /* of the backward pass, by sequence numbers */
    gpu_profile_release(&p);
}

/* What the threads did is there as scopes, too. */
static void scopes_of_threads(void **state)
{
    struct folder *f = *state;
    struct gpu_profile p;
    struct trace *t;
    import_file(f, "fuzz/corpus/kineto/small.json", &p);
    gpu_profile_release(&p);
    assert_int_equal(trace_open(&t, f->trace, NULL), TARE_OK);
    assert_int_equal(trace_n_threads(t), 1);
    assert_int_equal(trace_thread(t, 0)->events, 12); /* six scopes */
    assert_int_equal(trace_process(t, 0)->pid, 100);
    assert_string_equal(trace_process(t, 0)->command, "python");
    assert_int_equal(trace_process(t, 0)->start_unix_ns, 1790857026000000000u + 1000000);
    trace_close(t);
}

/* A thread's name that is told again does not change it; of a job's ranks the first few words are kept. */
static void what_is_told_often(void **state)
{
    struct folder *f = *state;
    struct buf text = BUF_INIT;
    struct kineto_counts c;
    struct gpu_profile p;
    struct trace *t;
    tare_error err = TARE_ERROR_INIT;
    buf_add_str(&text, "{");
    for (int i = 0; i < 500; i++) buf_printf(&text, "\"distributedInfo\": {\"rank\": %d},", i);
    buf_add_str(&text, "\"traceEvents\": [");
    const char *op =
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}";
    buf_add_str(&text, op);
    for (int i = 0; i < 3; i++)
        buf_printf(&text,
                   ",{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"n%d\"}}",
                   i);
    buf_add_str(&text, "]}");
    if (import_text(f, text.data, &c, &err) < 0) fail_msg("%s", err.text);
    buf_release(&text);
    if (trace_open(&t, f->trace, &err) < 0 || gpu_sum(&t, 1, &p, &err) < 0) fail_msg("%s", err.text);
    assert_string_equal(trace_thread(t, 0)->name, "n0");
    assert_non_null(strstr(p.notes.at[0]->text, "rank 0, rank 1, "));
    assert_null(strstr(p.notes.at[0]->text, "rank 40"));
    gpu_profile_release(&p);
    trace_close(t);
}

static tare_status count_range(void *ctx, const struct gpu_bar *b)
{
    *(int *)ctx += b->kind == GPU_BAR_RANGE || b->kind == GPU_BAR_MARK;
    return TARE_OK;
}

static tare_status no_track(void *ctx, const struct gpu_track *t)
{
    (void)ctx;
    assert_int_not_equal(t->kind, GPU_TRACK_RANGES);
    return TARE_OK;
}

/* Operators, modules and annotations are scopes of their thread: on a timeline they are not there again as ranges. The
 * report has them as ever. */
static void operators_are_on_a_timeline_once(void **state)
{
    struct folder *f = *state;
    struct gpu_profile p;
    struct trace *t;
    int ranges = 0;
    import_file(f, "fuzz/corpus/kineto/small.json", &p);
    assert_true(p.ranges.n > 0 && p.origins.n > 0);
    gpu_profile_release(&p);
    assert_int_equal(trace_open(&t, f->trace, NULL), TARE_OK);
    assert_int_equal(trace_thread(t, 0)->events, 12);
    struct event_source source;
    event_source_of_trace(&source, t);
    assert_int_equal(gpu_bars(&source, &(struct gpu_bars_to){&ranges, no_track, count_range}, NULL), TARE_OK);
    assert_int_equal(ranges, 0);
    trace_close(t);
}

struct seen_ranks {
    uint64_t ends[2][20];
    int kernels[2], waits;
    uint32_t processes[64]; /* by track */
};

static tare_status see_track(void *ctx, const struct gpu_track *t)
{
    ((struct seen_ranks *)ctx)->processes[t->number] = t->process;
    if (t->kind == GPU_TRACK_RANGES) assert_string_equal(t->name, "waiting in collectives");
    return TARE_OK;
}

static tare_status see_bar(void *ctx, const struct gpu_bar *b)
{
    struct seen_ranks *s = ctx;
    uint32_t process = s->processes[b->track];
    if (b->kind == GPU_BAR_KERNEL) {
        s->ends[process][s->kernels[process]++] = b->end;
    } else {
        assert_string_equal(b->text, "waiting for rank 1");
        assert_int_equal(process, 0);
        assert_int_equal(b->end - b->start, 20000);
        assert_int_equal(b->end, s->ends[0][s->waits++] - 10000); /* the transfer is no waiting */
    }
    return TARE_OK;
}

/* Both ranks on one axis: their collectives end together, though one clock is 5 ms ahead. */
static void check_timeline(const struct joined_of *of)
{
    struct joined j;
    struct seen_ranks seen = {.waits = 0};
    assert_int_equal(joined_open(&j, of, NULL), TARE_OK);
    assert_int_equal(j.source.n_processes, 2);
    assert_string_equal(source_process(&j.source, 0)->command, "rank 0: python");
    assert_string_equal(source_process(&j.source, 1)->command, "rank 1, the slowest: python");
    assert_int_not_equal(source_process(&j.source, 0)->pid, source_process(&j.source, 1)->pid);
    assert_int_equal(gpu_bars(&j.source, &(struct gpu_bars_to){&seen, see_track, see_bar}, NULL), TARE_OK);
    assert_int_equal(seen.waits, 20);
    for (int i = 0; i < 20; i++) assert_int_equal(seen.ends[0][i], seen.ends[1][i]);
    joined_release(&j);
}

/* Rank 0 is in each of twenty collectives for 30 us, rank 1, which comes last, for 10; its clock is 5 ms ahead. */
static void ranks_of_a_job_are_joined(void **state)
{
    struct folder *f = *state;
    char second[PATH_MAX];
    struct trace *t[2];
    struct gpu_profile p;
    tare_error err = TARE_ERROR_INIT;
    snprintf(second, sizeof second, "%s/second.tare", f->path);
    for (int rank = 1; rank >= 0; rank--) {
        struct buf text = BUF_INIT;
        struct kineto_counts c;
        buf_printf(
            &text,
            "{\"baseTimeNanoseconds\": 1790857026000000000, \"distributedInfo\": {\"backend\": \"nccl\", "
            "\"rank\": %d, \"world_size\": \"2\", \"pg_config\": [{\"rank\": 7}]}, \"traceEvents\": [",
            rank);
        for (int i = 0; i < 20; i++) {
            int end = 5000 * rank + 100 * i + 50, length = rank ? 10 : 30;
            buf_printf(&text,
                       "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"pid\":0,"
                       "\"tid\":7,\"ts\":%d,\"dur\":%d,\"args\":{\"device\":0,\"stream\":7}}",
                       i ? "," : "", end - length, length);
        }
        buf_add_str(&text, "]}");
        if (import_text(f, text.data, &c, &err) < 0) fail_msg("%s", err.text);
        buf_release(&text);
        if (rank) assert_int_equal(rename(f->trace, second), 0);
    }
    if (trace_open(&t[0], f->trace, &err) < 0 || trace_open(&t[1], second, &err) < 0)
        fail_msg("%s", err.text);
    struct gpu_courses courses = {.cards = VEC_INIT};
    if (gpu_sum_over_time(t, 2, &p, &courses, &err) < 0) fail_msg("%s", err.text);
    assert_true(joined_is_job(t, 2) && !joined_is_job((struct trace *[]){t[0], t[0]}, 2) &&
                !joined_is_job(t, 1));
    check_timeline(&(struct joined_of){t, 2, &p.job, &courses});
    gpu_courses_release(&courses);
    assert_true(p.job.known && p.job.world_size.known);
    assert_int_equal(p.job.world_size.v, 2);
    assert_int_equal(p.job.collectives, 20);
    assert_int_equal(p.job.slowest.v, 1);
    assert_int_equal(p.job.ranks.at[1]->rank.v, 1);
    assert_string_equal(p.job.ranks.at[1]->aligned_by, "collectives");
    assert_float_equal(p.job.ranks.at[1]->offset_ns.value, 5e6, 1);
    assert_int_equal(p.job.ranks.at[0]->waiting_ns.v, 20 * 20000);
    gpu_profile_release(&p);
    trace_close(t[0]);
    trace_close(t[1]);
}

/* ---- what is wrong with them ---- */

static void damage_is_told_and_nothing_left(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "text: line 1, byte 0: the file ends here, where a value should be: it was cut off"},
        {"{\"a\": 1}", "text: has no \"traceEvents\": not a file of torch.profiler"},
        {"7", "text: has no \"traceEvents\": not a file of torch.profiler"},
        {"{\"traceEvents\": []}", "text: none of its events is of a kind that torch.profiler records"},
        {"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 1}]}",
         "; text: line 1, byte 67: an event without a length (dur) that is not negative"},
        {"{\"traceEvents\": [\n{\"ph\":", "text: line 2, byte 24: the file ends here"},
        {"[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},"
         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":2,\"tid\":1,\"ts\":1,\"dur\":1}]",
         "events of process 2 beside those of 1: import each process's own file"},
    };
    struct folder *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kineto_counts c;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(import_text(f, cases[i].text, &c, &err), TARE_FORMAT);
        if (!strstr(err.text, cases[i].why)) fail_msg("%s: not: %s", err.text, cases[i].why);
        assert_int_equal(folder_count(f, "t"), 0);
    }
}

static void damaged_gzip_files(void **state)
{
    static const struct {
        const char *file, *why;
    } cases[] = {{"cut.json.gz", "the gzip file is damaged: it was cut off"},
                 {"flipped.json.gz", "the gzip file is damaged: "},
                 {"cut.json", "the file ends here"}};
    struct folder *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kineto_counts c;
        char name[100];
        tare_error err = TARE_ERROR_INIT;
        snprintf(name, sizeof name, "fuzz/corpus/kineto/%s", cases[i].file);
        assert_int_equal(kineto_import(source(name), f->trace, &c, &err), TARE_FORMAT);
        if (!strstr(err.text, cases[i].why)) fail_msg("%s", err.text);
        assert_int_equal(folder_count(f, "t."), 0);
    }
}

static void odd_events_are_counted(void **state)
{
    struct gpu_profile p;
    struct kineto_counts c = import_file(*state, "fuzz/corpus/kineto/odd.json", &p);
    assert_int_equal(c.unusable, 8);
    assert_int_equal(c.kernels, 1);
    assert_non_null(strstr(c.first_bad, "an event without a time (ts)"));
    assert_int_equal(p.lost.untimed, 8);
    assert_int_equal(p.kernels.at[0]->blocks, 0); /* a grid of one number, a block that is a text: no shape */
    gpu_profile_release(&p);
}

/* Out of order, equal times, one that ends after what it is in: all are there, and nest. */
static void events_in_any_order(void **state)
{
    static const char text[] =
        "[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"inner\",\"pid\":1,\"tid\":1,\"ts\":15,\"dur\":10},"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":16,\"dur\":1,"
        "\"args\":{\"correlation\":5}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":18,\"dur\":2,"
        "\"args\":{\"correlation\":5,\"device\":0,\"stream\":7}},"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"outer\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":12},"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"twin\",\"pid\":1,\"tid\":1,\"ts\":15,\"dur\":10},"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"elsewhere\",\"pid\":1,\"tid\":2,\"ts\":16,\"dur\":1}]";
    struct folder *f = *state;
    struct kineto_counts c;
    struct gpu_profile p;
    struct trace *t;
    assert_int_equal(import_text(f, text, &c, NULL), TARE_OK);
    assert_int_equal(trace_open(&t, f->trace, NULL), TARE_OK);
    assert_int_equal(gpu_sum(&t, 1, &p, NULL), TARE_OK);
    static const struct {
        const char *name;
        uint64_t gpu_ns;
    } want[] = {{"outer", 2000}, {"inner", 2000}, {"twin", 2000}, {"elsewhere", 0}};
    for (size_t i = 0; i < 4; i++) assert_int_equal(range_of(&p, want[i].name)->gpu_ns, want[i].gpu_ns);
    assert_int_equal(trace_loss(t)->unclosed_scopes, 0);
    gpu_profile_release(&p);
    trace_close(t);
}

/* More kernels than a list of a document holds: the rest is counted. */
static void lists_that_are_cut_say_so(void **state)
{
    enum { NAMES = 65536 + 1000 };
    struct folder *f = *state;
    struct buf text = BUF_INIT;
    struct kineto_counts c;
    struct gpu_profile p;
    struct trace *t;
    buf_add_char(&text, '[');
    for (int i = 0; i < NAMES; i++)
        buf_printf(&text, "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"ts\":%d,\"dur\":1}",
                   i ? "," : "", i, i);
    buf_add_char(&text, ']');
    assert_int_equal(import_text(f, text.data, &c, NULL), TARE_OK);
    buf_release(&text);
    assert_int_equal(c.kernels, NAMES);
    assert_int_equal(trace_open(&t, f->trace, NULL), TARE_OK);
    assert_int_equal(gpu_sum(&t, 1, &p, NULL), TARE_OK);
    assert_int_equal(p.kernels.n, 65536);
    assert_int_equal(p.lost.rows, 1000);
    gpu_profile_release(&p);
    trace_close(t);
}

static void memory_may_run_out(void **state)
{
    struct folder *f = *state;
    for (long n = 0;; n++) {
        struct kineto_counts c;
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        tare_status s = kineto_import(source("fuzz/corpus/kineto/small.json.gz"), f->trace, &c, &err);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_int_equal(folder_count(f, "t."), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_that_is_in_a_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cards_have_their_capability, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kernels_have_their_operators, set_up, tear_down),
        cmocka_unit_test_setup_teardown(real_files_of_an_h200, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scopes_of_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_told_often, set_up, tear_down),
        cmocka_unit_test_setup_teardown(operators_are_on_a_timeline_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_of_a_job_are_joined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_told_and_nothing_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_gzip_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(odd_events_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(events_in_any_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists_that_are_cut_say_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_may_run_out, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
