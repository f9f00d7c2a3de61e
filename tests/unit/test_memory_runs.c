/* SPDX-License-Identifier: MIT
 * test_memory_runs.c - the allocations of a run out of a made-up history in which loading, a first run and two more are
 * known: what is in no window does not count, nor what another process did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/memory/memory_runs.h"
#include "memory_fixture.h"
#include "trace/reader.h"

#define MS UINT64_C(1000000)

struct known {
    struct run run;
    struct run_case *c;
    struct memory_window load, first, runs[2];
    uint32_t pid;
};

/* Loading takes 4000 bytes at line 20 and keeps them; the first run 700, at a moment of its own; each further run 10
 * blocks of 64 that it frees, one of 5000 that replaces that of the run before, and then the harness takes one. */
static void known_history(struct memory_making *m)
{
    memory_join(m, m->at.trace, 0);
    uint64_t main_ = memory_python(m, 0, "/app/serve.py", "main", 10);
    uint64_t load = memory_python(m, main_, "/app/serve.py", "load", 20);
    uint64_t work = memory_python(m, main_, "/app/serve.py", "work", 30);
    uint64_t small = memory_native(m, main_, 0x1234, 0); /* its library is told behind it */
    memory_text(m, (struct memory_record){.kind = MEMORY_MODULE, .v = {1, 0x1000, 0x9000, 0x1000}},
                "- /lib/libsmall.so.1");
    memory_alloc(m, 1 * MS, 0x10, 4000, load);
    memory_alloc(m, 11 * MS, 0x20, 700, work);
    memory_free(m, 12 * MS, 0x20);
    memory_alloc(m, 15 * MS, 0x30, 5000, work);
    for (uint64_t run = 0; run < 2; run++) {
        uint64_t at = (20 + 10 * run) * MS;
        for (uint64_t i = 1; i <= 10; i++) {
            memory_alloc(m, at + i * 1000, 0x40, 64, small);
            memory_free(m, at + i * 1000 + 500, 0x40);
        }
        memory_alloc(m, at + 20000, 0x50 + run, 5000, work);
        memory_free(m, at + 30000, run ? 0x50 : 0x30);
        memory_alloc(m, at + 5 * MS, 0x60 + run, 123456, main_);
    }
    memory_end(m);
}

static struct memory_window window(const struct trace *t, const struct memory_making *m, uint64_t from,
                                   uint64_t to)
{
    return (struct memory_window){trace_raw_time(t, m->begun + from), trace_raw_time(t, m->begun + to)};
}

static tare_status runs_of(struct memory_making *m, struct known *k, uint32_t pid, bool others,
                           tare_error *err)
{
    struct trace *t = NULL;
    MUST(trace_open(&t, m->at.trace, NULL) == TARE_OK);
    struct memory_window runs[2] = {window(t, m, 20 * MS, 21 * MS), window(t, m, 30 * MS, 31 * MS)};
    struct memory_runs of = {.pid = pid,
                             .others = others,
                             .load = window(t, m, 0, 10 * MS),
                             .first = window(t, m, 11 * MS, 13 * MS),
                             .runs = {runs, 2}};
    tare_status s = memory_runs_record(t, &of, &k->run, k->c, err);
    trace_close(t);
    return s;
}

static void begin(struct known *k)
{
    *k = (struct known){.pid = (uint32_t)getpid()};
    MUST(run_init(&k->run, "bench", NULL) == TARE_OK);
    k->c = run_add_case(&k->run, "default");
    MUST(k->c);
}

static void each_stage_has_its_own(void **state)
{
    struct memory_making *m = *state;
    struct known k;
    known_history(m);
    begin(&k);
    assert_int_equal(runs_of(m, &k, k.pid, false, NULL), TARE_OK);
    const struct run_allocations *a = &k.c->allocations;
    assert_true(a->known && a->runs.v == 2 && a->processes.v == 1 && !a->lost.known);
    assert_true(a->each.blocks.v == 11 && a->each.bytes.v == 640 + 5000 && a->each.largest.v == 5000);
    assert_true(a->each.kept.v == 2500 && a->each.peak.v == 10000);
    assert_true(a->first.blocks.v == 1 && a->first.bytes.v == 700 && a->first.kept.v == 0);
    assert_true(a->load.blocks.v == 1 && a->load.kept.v == 4000);
    run_release(&k.run);
}

static void sizes_and_places(void **state)
{
    struct memory_making *m = *state;
    struct known k;
    known_history(m);
    begin(&k);
    assert_int_equal(runs_of(m, &k, k.pid, false, NULL), TARE_OK);
    const struct run_allocations *a = &k.c->allocations;
    assert_int_equal(a->sizes.n, 2);
    assert_true(a->sizes.at[0]->up_to.v == 64 && a->sizes.at[0]->blocks == 10);
    assert_true(a->sizes.at[1]->up_to.v == 32768 && a->sizes.at[1]->blocks == 1);
    assert_true(a->sites.n == 2 && !a->other_sites.known);
    const struct run_alloc_site *work = a->sites.at[0], *main_ = a->sites.at[1];
    assert_string_equal(work->function, "work");
    assert_true(work->line.v == 30 && work->bytes == 5000 && work->blocks == 1 && work->largest.v == 5000);
    assert_string_equal(main_->function, "main"); /* native code counts for the line that called it */
    assert_true(main_->blocks == 10 && main_->short_lived.v == 1);
    run_release(&k.run);
}

static void only_who_is_meant_counts(void **state)
{
    struct memory_making *m = *state;
    struct known k;
    tare_error err = TARE_ERROR_INIT;
    known_history(m);
    begin(&k);
    assert_int_equal(runs_of(m, &k, k.pid + 1, true, NULL), TARE_OK);
    assert_true(k.c->allocations.each.blocks.v == 11);
    assert_int_equal(runs_of(m, &k, k.pid, true, &err), TARE_UNSUPPORTED);
    assert_true(!k.c->allocations.known && strstr(err.text, "nothing was recorded"));
    run_release(&k.run);
}

/* A frame that was told before the library it lies in. */
static void a_library_that_is_told_later(void **state)
{
    struct memory_making *m = *state;
    struct memory_profile p;
    struct trace *t = NULL;
    memory_join(m, m->at.trace, 0);
    uint64_t early = memory_native(m, 0, 0x1234, 0), nowhere = memory_native(m, 0, 0x9999, 0);
    memory_text(m, (struct memory_record){.kind = MEMORY_MODULE, .v = {1, 0x1000, 0x9000, 0x1000}},
                "- /lib/liblate.so.1");
    memory_alloc(m, 1 * MS, 0x10, 4000, early);
    memory_alloc(m, 1 * MS, 0x20, 400, nowhere);
    memory_end(m);
    MUST(trace_open(&t, m->at.trace, NULL) == TARE_OK);
    assert_int_equal(memory_sum(t, &p, NULL), TARE_OK);
    const struct memory_site *sites = p.processes[0].sites;
    assert_string_equal(sites[0].frame->file, "/lib/liblate.so.1");
    assert_true(sites[0].frame->offset == 0x234 && !sites[1].frame->file && sites[1].frame->offset == 0x9999);
    memory_profile_release(&p);
    trace_close(t);
}

static void each_allocation_may_fail(void **state)
{
    struct memory_making *m = *state;
    tare_status s = TARE_NOMEM;
    known_history(m);
    for (int n = 0; s == TARE_NOMEM; n++) {
        struct known k;
        begin(&k);
        struct trace *t = NULL;
        MUST(trace_open(&t, m->at.trace, NULL) == TARE_OK);
        struct memory_window run = window(t, m, 20 * MS, 21 * MS);
        struct memory_runs of = {.pid = k.pid, .runs = {&run, 1}};
        mem_fail_after(n);
        s = memory_runs_record(t, &of, &k.run, k.c, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_true(k.c->allocations.known == (s == TARE_OK));
        assert_true(n < 400);
        trace_close(t);
        run_release(&k.run);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_set_up, memory_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_stage_has_its_own),       TEST(sizes_and_places),         TEST(only_who_is_meant_counts),
        TEST(a_library_that_is_told_later), TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
