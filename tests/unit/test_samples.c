/* SPDX-License-Identifier: MIT
 * test_samples.c - samples written into an archive and read back: exact, whole after a kill, tolerant of damage;
 * and the program's own scopes beside them. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "trace/samples.h"
#include "trace_fixture.h"

struct world {
    struct folder at;
    struct series_set set;
    struct sample now;
    size_t busy, rss, disk;
};

static int set_up(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);
    folder_new(&w->at);
    assert_int_equal(series_find(&w->set, METRIC_CPU_BUSY, "", &w->busy, NULL), TARE_OK);
    assert_int_equal(series_find(&w->set, METRIC_PROC_RSS, "", &w->rss, NULL), TARE_OK);
    assert_int_equal(series_find(&w->set, METRIC_DISK_READ, "sda", &w->disk, NULL), TARE_OK);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    series_set_release(&w->set);
    sample_release(&w->now);
    folder_remove(&w->at);
    test_free(w);
    assert_int_equal(mem_live_blocks(), 0);
    return 0;
}

static void moment(struct world *w, struct samples_writer *out, uint64_t at_ns, double busy, double rss)
{
    sample_clear(&w->now);
    w->now.at_ns = at_ns;
    assert_int_equal(sample_set(&w->now, w->busy, busy, NULL), TARE_OK);
    if (!isnan(rss)) assert_int_equal(sample_set(&w->now, w->rss, rss, NULL), TARE_OK);
    assert_int_equal(samples_append(out, &w->set, &w->now, NULL), TARE_OK);
}

/* n moments, a millisecond apart; busy counts them. Without `end` the writer is left as a kill would leave it. */
static void record(struct world *w, int n, bool end)
{
    struct samples_writer *out = NULL;
    assert_int_equal(samples_create(&out, w->at.trace, "01ARZ3NDEKTSV4RRFFQ69G5FAV", NULL), TARE_OK);
    for (int i = 0; i < n; i++) moment(w, out, 1000000u * (unsigned)(i + 1), i, 4096.0 * i);
    if (end) {
        assert_int_equal(samples_close(out, NULL), TARE_OK);
        return;
    }
    size_t bytes;
    uint8_t *whole = file_get(w->at.trace, &bytes);
    assert_int_equal(samples_close(out, NULL), TARE_OK);
    file_put(w->at.trace, whole, bytes); /* as it was before the end was written */
    free(whole);
}

static void load(struct world *w, struct samples *s)
{
    tare_error err = TARE_ERROR_INIT;
    tare_status status = samples_load(s, w->at.trace, &err);
    if (status != TARE_OK) fail_msg("%s", err.text);
}

/* ---- in memory ---- */

static void series_keep_their_numbers(void **state)
{
    struct world *w = *state;
    size_t again;
    assert_int_equal(series_find(&w->set, METRIC_DISK_READ, "sda", &again, NULL), TARE_OK);
    assert_int_equal(again, w->disk);
    assert_int_equal(series_find(&w->set, METRIC_DISK_READ, "", &again, NULL), TARE_OK);
    assert_int_equal(again, 3);
    assert_int_equal(series_find(&w->set, METRIC_DISK_WRITE, "sda", &again, NULL), TARE_OK);
    assert_int_equal(again, 4);
    assert_int_equal(series_find(&w->set, METRIC_COUNT, "", &again, NULL), TARE_INVALID);
}

static void unknown_is_not_zero(void **state)
{
    struct world *w = *state;
    double v = 7;
    assert_int_equal(sample_set(&w->now, 2, 0, NULL), TARE_OK);
    assert_false(sample_get(&w->now, 0, &v));
    assert_true(sample_get(&w->now, 2, &v));
    assert_true(v == 0);
    assert_false(sample_get(&w->now, 3, &v));
    sample_clear(&w->now);
    assert_false(sample_get(&w->now, 2, &v));
}

static void metrics_are_found_by_name(void **state)
{
    (void)state;
    for (int i = 0; i < METRIC_COUNT; i++) {
        assert_int_equal(metric_find(metric_table[i].name), i); /* so no two have the same */
        assert_true(metric_table[i].help[0] && metric_table[i].unit[0]);
    }
    assert_int_equal(metric_find("no such"), METRIC_COUNT);
}

/* ---- there and back ---- */

static void values_come_back_exactly(void **state)
{
    static const double values[] = {0,    1,    -1,   0.01,   123456.78, 1e-6,     0.1 + 0.2, 1e300, -0.0,
                                    1e15, 9e15, 1e19, 5e-324, 3.25e9,    -12345.6, 1.0 / 3,   2e-9,  255};
    enum { N = sizeof values / sizeof *values };
    struct world *w = *state;
    struct samples_writer *out = NULL;
    struct samples s = SAMPLES_INIT;
    assert_int_equal(samples_create(&out, w->at.trace, NULL, NULL), TARE_OK);
    for (unsigned i = 0; i < N; i++) moment(w, out, i + 1, values[i], i % 2 ? NAN : i);
    assert_int_equal(samples_close(out, NULL), TARE_OK);
    load(w, &s);
    assert_int_equal(s.at_ns.n, N);
    assert_int_equal(s.columns.n, 3);
    for (unsigned i = 0; i < N; i++) {
        assert_memory_equal(&s.columns.items[w->busy][i], &values[i], sizeof(double));
        assert_int_equal(isnan(s.columns.items[w->rss][i]) != 0, i % 2);
        assert_true(isnan(s.columns.items[w->disk][i]));
    }
    assert_true(s.closed);
    assert_int_equal(s.damaged, 0);
    assert_true(s.start_unix_ns > UINT64_C(1600000000) * 1000000000 && s.start_ns > 0);
    samples_release(&s);
}

static void series_may_come_later(void **state)
{
    struct world *w = *state;
    struct samples_writer *out = NULL;
    struct samples s = SAMPLES_INIT;
    size_t late;
    assert_int_equal(samples_create(&out, w->at.trace, NULL, NULL), TARE_OK);
    moment(w, out, 1, 1, 1);
    assert_int_equal(series_find(&w->set, METRIC_NET_RX, "eth\xff\n0", &late, NULL), TARE_OK);
    sample_clear(&w->now);
    w->now.at_ns = 2;
    assert_int_equal(sample_set(&w->now, late, 9, NULL), TARE_OK);
    assert_int_equal(samples_append(out, &w->set, &w->now, NULL), TARE_OK);
    assert_int_equal(samples_mark(out, 2, SAMPLE_ALERT, "cpu>80% for 10s", NULL), TARE_OK);
    assert_int_equal(samples_mark(out, 3, SAMPLE_PHASE, "", NULL), TARE_OK);
    assert_int_equal(samples_close(out, NULL), TARE_OK);
    load(w, &s);
    assert_string_equal(s.set.items.items[late].label, "eth\xef\xbf\xbd\n0");
    assert_true(isnan(s.columns.items[late][0]) && s.columns.items[late][1] == 9);
    assert_int_equal(s.marks.n, 2);
    assert_int_equal(s.marks.items[0].kind, SAMPLE_ALERT);
    assert_string_equal(s.marks.items[0].text, "cpu>80% for 10s");
    assert_int_equal(s.marks.items[1].at_ns, 3);
    samples_release(&s);
}

static void more_values_than_series_is_our_mistake(void **state)
{
    struct world *w = *state;
    struct samples_writer *out = NULL;
    assert_int_equal(samples_create(&out, w->at.trace, NULL, NULL), TARE_OK);
    assert_int_equal(sample_set(&w->now, 99, 1, NULL), TARE_OK);
    assert_int_equal(samples_append(out, &w->set, &w->now, NULL), TARE_INVALID);
    assert_int_equal(samples_close(out, NULL), TARE_OK);
}

/* ---- the rest of the trace ---- */

static void readers_of_scopes_take_it(void **state)
{
    struct world *w = *state;
    struct trace *t = NULL;
    for (int end = 0; end < 2; end++) {
        record(w, 5, end);
        assert_int_equal(trace_open(&t, w->at.trace, NULL), TARE_OK);
        assert_string_equal(trace_id(t), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
        assert_int_equal(trace_n_processes(t), 1);
        assert_int_equal(trace_process(t, 0)->closed, end);
        assert_int_equal(trace_loss(t)->unknown_chunks, 0);
        assert_int_equal(trace_loss(t)->damaged_chunks, 0);
        assert_int_equal(trace_loss(t)->missing_live, 0); /* a sampler has none */
        trace_close(t);
        folder_empty(w->at.path);
    }
}

/* A disk that is full for a while: what was not written is counted at the end. */
static void lost_moments_are_in_the_record(void **state)
{
    struct world *w = *state;
    struct samples_writer *out = NULL;
    struct trace *t = NULL;
    struct rlimit before, none;
    assert_int_equal(samples_create(&out, w->at.trace, NULL, NULL), TARE_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        w->now.at_ns = i;
        assert_int_equal(samples_append(out, &w->set, &w->now, NULL), TARE_IO);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(samples_close(out, NULL), TARE_OK);
    assert_int_equal(trace_open(&t, w->at.trace, NULL), TARE_OK);
    assert_int_equal(trace_loss(t)->dropped, 3);
    trace_close(t);
}

/* A process that records scopes must join our trace, not put it aside, as long as we live. */
static void a_program_joins(void **state)
{
    struct world *w = *state;
    struct samples_writer *out = NULL;
    struct samples s = SAMPLES_INIT;
    struct trace *t = NULL;
    assert_int_equal(samples_create(&out, w->at.trace, NULL, NULL), TARE_OK);
    moment(w, out, 1, 1, 1);
    pid_t child = fork();
    if (child == 0) {
        tare_options o = TARE_OPTIONS_INIT;
        o.path = w->at.trace;
        _exit(tare_start(&o, NULL) == TARE_OK && tare_stop(NULL) == TARE_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    moment(w, out, 2, 2, 2);
    assert_int_equal(samples_close(out, NULL), TARE_OK);
    load(w, &s);
    assert_int_equal(s.at_ns.n, 2);
    assert_int_equal(trace_open(&t, w->at.trace, NULL), TARE_OK);
    assert_int_equal(trace_n_processes(t), 2);
    assert_int_equal(folder_count(&w->at, ".old"), 0);
    trace_close(t);
    samples_release(&s);
}

static void an_earlier_trace_is_put_aside(void **state)
{
    struct world *w = *state;
    struct samples s = SAMPLES_INIT;
    record(w, 3, true);
    record(w, 4, true);
    assert_int_equal(folder_count(&w->at, ".old"), 1);
    load(w, &s);
    assert_int_equal(s.at_ns.n, 4);
    samples_release(&s);
    file_put(w->at.trace, "my diary", 8);
    struct samples_writer *out = NULL;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(samples_create(&out, w->at.trace, NULL, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "is not a trace"));
}

/* ---- faults ---- */

/* Whatever the length at which the file was cut off, all whole moments are there. */
static void a_cut_loses_one_moment(void **state)
{
    struct world *w = *state;
    record(w, 20, false);
    size_t bytes;
    uint8_t *whole = file_get(w->at.trace, &bytes);
    size_t last = 20;
    for (size_t cut = bytes; cut > sizeof(struct archive_header) + 300; cut--) {
        struct samples s = SAMPLES_INIT;
        file_put(w->at.trace, whole, cut);
        if (samples_load(&s, w->at.trace, NULL) != TARE_OK) break; /* into the first moment */
        assert_true(s.at_ns.n == last || s.at_ns.n + 1 == last);
        assert_true(s.damaged <= 1);
        for (size_t i = 0; i < s.at_ns.n; i++) assert_true(s.columns.items[w->busy][i] == (double)i);
        last = s.at_ns.n;
        samples_release(&s);
    }
    assert_true(last < 15);
    free(whole);
}

static void a_damaged_chunk_costs_itself(void **state)
{
    struct world *w = *state;
    struct samples s = SAMPLES_INIT;
    record(w, 20, true);
    size_t bytes;
    uint8_t *whole = file_get(w->at.trace, &bytes);
    whole[bytes - 200] ^= 0x55;
    file_put(w->at.trace, whole, bytes);
    free(whole);
    load(w, &s);
    assert_int_equal(s.damaged, 1);
    assert_int_equal(s.at_ns.n, 19);
    for (size_t i = 0; i < s.at_ns.n; i++)
        assert_true(s.columns.items[w->busy][i] == (double)(s.at_ns.items[i] / 1000000 - 1));
    samples_release(&s);
}

/* The names of series are told again now and then. */
static void lost_names_come_again(void **state)
{
    struct world *w = *state;
    struct samples s = SAMPLES_INIT;
    record(w, 600, true);
    size_t bytes;
    uint8_t *whole = file_get(w->at.trace, &bytes);
    uint8_t *name = memmem(whole, bytes, "cpu.busy", 8);
    assert_non_null(name);
    name[0] = 'X';
    file_put(w->at.trace, whole, bytes);
    free(whole);
    load(w, &s);
    assert_int_equal(s.at_ns.n, 600);
    assert_int_equal(s.set.items.n, 3);
    assert_true(s.columns.items[w->busy][5] == 5);
    samples_release(&s);
}

static void a_full_disk_is_told_and_passes(void **state)
{
    struct world *w = *state;
    struct samples_writer *out = NULL;
    struct samples s = SAMPLES_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct rlimit before, tight;
    assert_int_equal(samples_create(&out, w->at.trace, NULL, NULL), TARE_OK);
    moment(w, out, 1, 1, 1);
    size_t bytes;
    free(file_get(w->at.trace, &bytes));
    getrlimit(RLIMIT_FSIZE, &before);
    tight = before;
    tight.rlim_cur = bytes + 10; /* a part of the next moment fits */
    setrlimit(RLIMIT_FSIZE, &tight);
    w->now.at_ns = 2;
    assert_int_equal(samples_append(out, &w->set, &w->now, &err), TARE_IO);
    assert_non_null(strstr(err.text, w->at.trace));
    setrlimit(RLIMIT_FSIZE, &before);
    moment(w, out, 3, 3, 3);
    assert_int_equal(samples_close(out, NULL), TARE_OK);
    load(w, &s);
    assert_int_equal(s.at_ns.n, 2);
    assert_int_equal(s.damaged, 0); /* what fitted was taken back */
    samples_release(&s);
}

static void what_is_no_samples_is_refused(void **state)
{
    struct world *w = *state;
    struct samples s = SAMPLES_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(samples_load(&s, w->at.trace, &err), TARE_IO);
    file_put(w->at.trace, "not a trace at all", 18);
    assert_int_equal(samples_load(&s, w->at.trace, &err), TARE_FORMAT);
    struct made *m = made_new();
    struct process_info p = made_info(MADE_UID);
    made_header(m);
    made_process(m, &p);
    file_put(w->at.trace, m->bytes, m->n);
    made_free(m);
    assert_int_equal(samples_load(&s, w->at.trace, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "without samples"));
}

static void no_memory_leaks_nothing(void **state)
{
    struct world *w = *state;
    record(w, 10, true);
    long held = mem_live_blocks();
    for (long n = 0;; n++) {
        struct samples s = SAMPLES_INIT;
        mem_fail_after(n);
        tare_status status = samples_load(&s, w->at.trace, NULL);
        mem_fail_after(-1);
        if (status == TARE_OK) {
            samples_release(&s);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(status, TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), held);
    }
    folder_empty(w->at.path);
    for (long n = 0;; n++) {
        struct samples_writer *out = NULL;
        mem_fail_after(n);
        tare_status status = samples_create(&out, w->at.trace, NULL, NULL);
        if (status == TARE_OK) status = samples_append(out, &w->set, &w->now, NULL);
        if (status == TARE_OK) status = samples_mark(out, 1, SAMPLE_NOTE, "x", NULL);
        mem_fail_after(-1);
        samples_close(out, NULL);
        assert_int_equal(mem_live_blocks(), held);
        if (status == TARE_OK) break;
        assert_int_equal(status, TARE_NOMEM);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(series_keep_their_numbers),
        TEST(unknown_is_not_zero),
        TEST(metrics_are_found_by_name),
        TEST(values_come_back_exactly),
        TEST(series_may_come_later),
        TEST(more_values_than_series_is_our_mistake),
        TEST(readers_of_scopes_take_it),
        TEST(lost_moments_are_in_the_record),
        TEST(a_program_joins),
        TEST(an_earlier_trace_is_put_aside),
        TEST(a_cut_loses_one_moment),
        TEST(a_damaged_chunk_costs_itself),
        TEST(lost_names_come_again),
        TEST(a_full_disk_is_told_and_passes),
        TEST(what_is_no_samples_is_refused),
        TEST(no_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
