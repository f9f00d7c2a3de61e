/* SPDX-License-Identifier: MIT
 * test_memory_sum.c - what made-up histories of memory mean: the peak and who held it, what is left, churn, lifetimes,
 * growth, sampled sums with their intervals; and what was lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/memory/memory_resident.h"
#include "analyze/memory/memory_sum.h"
#include "memory_fixture.h"
#include "trace/reader.h"

enum { KIB = 1024, MIB = 1 << 20 };
#define MS UINT64_C(1000000)

static tare_status sum(const char *path, struct memory_profile *p, tare_error *err)
{
    struct trace *t = NULL;
    MUST(trace_open(&t, path, NULL) == TARE_OK);
    tare_status s = memory_sum(t, p, err);
    trace_close(t);
    return s;
}

static struct memory_profile sum_of(struct memory_making *m)
{
    struct memory_profile p;
    memory_end(m);
    assert_int_equal(sum(m->at.trace, &p, NULL), TARE_OK);
    assert_true(p.n >= 1);
    return p;
}

static const struct memory_site *site(const struct memory_process *p, const char *name)
{
    for (size_t i = 0; i < p->n_sites; i++)
        if (p->sites[i].frame && p->sites[i].frame->name && strcmp(p->sites[i].frame->name, name) == 0)
            return &p->sites[i];
    fail_msg("no site %s", name);
    return NULL;
}

/* ---- every allocation ---- */

/* main holds 1000 all the time, load 500 from 2 to 6 ms, tmp takes 64 ten times for 0.1 ms each after that. */
static void known_history(struct memory_making *m)
{
    memory_join(m, m->at.trace, 0);
    uint64_t main_ = memory_python(m, 0, "train.py", "main", 10),
             load = memory_python(m, main_, "data.py", "load", 20);
    memory_text(m, (struct memory_record){.kind = MEMORY_MODULE, .v = {1, 0x1000, 0x9000, 0x1000}},
                "abcd /lib/libtmp.so.1");
    uint64_t tmp = memory_native(m, main_, 0x1234, 1);
    memory_alloc(m, 1 * MS, 0x10, 1000, main_);
    memory_alloc(m, 2 * MS, 0x20, 300, load);
    memory_alloc(m, 3 * MS, 0x30, 200, load);
    memory_free(m, 6 * MS, 0x20);
    memory_free(m, 6 * MS, 0x30);
    for (uint64_t i = 0; i < 10; i++) {
        memory_alloc(m, (10 + i) * MS, 0x40, 64, tmp);
        memory_free(m, (10 + i) * MS + MS / 10, 0x40);
    }
    memory_free(m, 30 * MS, 0x999); /* of before the recording */
}

static void everything_is_exact(void **state)
{
    struct memory_making *m = *state;
    known_history(m);
    memory_tell(m, HEAP, memory_time(m, 31 * MS), 5000, 0, 0, 0, 0, 0);
    memory_tell(m, HEAP, memory_time(m, 32 * MS), 9000, 0, 0, 0, 0, 0); /* more, but further from the peak */
    struct memory_profile all = sum_of(m);
    const struct memory_process *p = &all.processes[0];
    assert_true(p->started && p->every == 0 && p->noted == 13 && p->pid == (uint32_t)getpid());
    assert_true(p->peak.sum == 1500 && p->peak.variance == 0 && p->peak_ns - p->from_ns == 2 * MS);
    assert_true(p->at_end.sum == 1000 && p->allocated.sum == 2140 && p->allocations == 13);
    assert_true(p->churn.sum == 640 && p->churned == 10 && p->heap.resident == 5000);
    assert_true(p->lifetimes[3] == 10 && p->lifetimes[4] == 2 &&
                p->lifetimes[0] == 0); /* .1 ms; 3 and 4 ms */
    assert_true(p->to_ns - p->from_ns == 31 * MS && p->moments[MEMORY_MOMENTS - 1] == 1000);
    assert_true(p->lost_records == 0 && p->unseen_frees == 0 && p->n_sites == 3);

    assert_string_equal(p->sites[0].frame->name, "main");
    const struct memory_site *load = site(p, "load");
    assert_true(load->at_peak.sum == 500 && load->at_end.sum == 0 && load->allocated.sum == 500);
    assert_true(load->allocations == 2 && load->churn.sum == 0 && !load->judged);
    assert_string_equal(load->frame->file, "data.py");
    assert_int_equal(load->frame->line, 20);
    assert_string_equal(load->frame->caller->name, "main");
    assert_null(load->frame->caller->caller);
    const struct memory_site *tmp = &p->sites[2];
    assert_true(tmp->frame->kind == MEMORY_NATIVE && tmp->frame->offset == 0x234 && tmp->churned == 10);
    assert_string_equal(tmp->frame->file, "/lib/libtmp.so.1");

    assert_true(p->closed && tmp->lifetimes[3] == 10 && tmp->rise.steps == 1);
    memory_profile_release(&all);
}

/* A hole in a mapping, a mapping over it, pieces at both ends; files and arenas do not count. */
static void mappings_are_ranges(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 1 << 30); /* a sampled trace: mappings are whole all the same */
    uint64_t a = memory_python(m, 0, "a.py", "a", 1), b = memory_python(m, 0, "b.py", "b", 1);
    uint64_t t = memory_time(m, 1);
    memory_tell(m, MAP, t, 0x10000, 0x8000, a, MEMORY_MAP_ANONYMOUS);
    memory_tell(m, UNMAP, t + 1, 0x12000, 0x1000); /* a hole */
    memory_tell(m, MAP, t + 2, 0x11000, 0x3000, b,
                MEMORY_MAP_ANONYMOUS);             /* over the hole and both its sides */
    memory_tell(m, UNMAP, t + 3, 0xf000, 0x1800);  /* half a page of the first piece */
    memory_tell(m, UNMAP, t + 4, 0x17000, 0x9000); /* the end */
    memory_tell(m, MAP, t + 5, 0x90000, 0x1000, a, MEMORY_MAP_FILE);
    memory_tell(m, MAP, t + 6, 0xa0000, 0x1000, a, MEMORY_MAP_ANONYMOUS | MEMORY_MAP_ARENA);
    memory_tell(m, UNMAP, t + 7, UINT64_MAX - 5, 100);
    struct memory_profile all = sum_of(m);
    const struct memory_process *p = &all.processes[0];
    assert_true(p->peak.sum == 0x9000 - 0x1000 && p->at_end.variance == 0);
    assert_true(site(p, "a")->at_end.sum == 0x800 + 0x3000);
    assert_true(site(p, "b")->at_end.sum == 0x3000);
    assert_true(p->at_end.sum == 0x6800);
    memory_profile_release(&all);
}

/* What a malloc that is not libc's maps is told once more as it hands it out: it does not count as held, and parts of
 * it may go. It says what that malloc keeps. */
static void what_malloc_maps_is_not_held_twice(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 0);
    uint64_t a = memory_python(m, 0, "a.py", "a", 1), t = memory_time(m, 1);
    memory_tell(m, MAP, t, 0x100000, 0x80000, a, MEMORY_MAP_ANONYMOUS | MEMORY_MAP_MALLOC);
    memory_tell(m, ALLOC, t + 1, 0x101000, 0x5000, a);
    memory_tell(m, UNMAP, t + 2, 0x140000, 0x10000); /* trimmed, in the middle */
    memory_tell(m, HEAP, t + 3, 0x90000, 0x1000, 0, 0, 0, 0);
    struct memory_profile all = sum_of(m);
    const struct memory_process *p = &all.processes[0];
    assert_true(p->peak.sum == 0x5000 && p->at_end.sum == 0x5000 && site(p, "a")->at_end.sum == 0x5000);
    struct memory_resident r = memory_resident(&p->heap);
    assert_true(r.known && !r.malloc_told);
    assert_true(r.part[MEMORY_PART_MALLOC] == 0x5000 && r.part[MEMORY_PART_FREE] == 0x70000 - 0x5000);
    assert_true(r.part[MEMORY_PART_MAPS] == 0 && r.part[MEMORY_PART_REST] == 0x90000 - 0x70000 - 0x1000);
    memory_profile_release(&all);
}

/* ---- growth ---- */

/* leak keeps 64 KiB each 10 ms; saw holds up to 8 MiB and gives it back; once takes 4 MiB at the beginning. */
static void only_what_grows_is_called_growing(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 0);
    uint64_t leak = memory_python(m, 0, "a.py", "leak", 1), saw = memory_python(m, 0, "a.py", "saw", 2);
    uint64_t once = memory_python(m, 0, "a.py", "once", 3), small = memory_python(m, 0, "a.py", "small", 4);
    memory_alloc(m, 0, 1, 4 * MIB, once);
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t t = (i + 1) * 10 * MS;
        memory_alloc(m, t, 100000 + i, 64 * KIB, leak);
        memory_alloc(m, t, 200000 + i, 16, small); /* grows by too little to matter */
        for (uint64_t k = 0; i % 8 == 7 && k < 8; k++) memory_free(m, t, 300000 + k);
        memory_alloc(m, t + 1, 300000 + i % 8, MIB, saw);
    }
    struct memory_profile all = sum_of(m);
    const struct memory_process *p = &all.processes[0];
    assert_true(memory_site_grows(site(p, "leak")));
    const struct growth *g = &site(p, "leak")->growth;
    assert_true(g->confidence > 0.99 && g->lo <= 6553600 && g->hi >= 6553600 * 0.98); /* 64 KiB in 10 ms */
    assert_true(g->rate > 6.2e6 && g->rate < 6.9e6);
    assert_false(memory_site_grows(site(p, "saw")));
    assert_false(memory_site_grows(site(p, "once")));
    assert_false(site(p, "small")->judged); /* 6 KiB at most */
    memory_profile_release(&all);
}

/* ---- sampled ---- */

/* p of 1000 bytes at `every` 1000 is 1 - 1/e; of 10 samples of them: 10000 / p, variance 10 * 1e6 (1 - p) / p^2. */
static void samples_stand_for_more(void **state)
{
    struct memory_making *m = *state;
    const double p1 = 0.6321205588285577;
    memory_join(m, m->at.trace, 1000);
    uint64_t a = memory_python(m, 0, "a.py", "a", 1);
    for (uint64_t i = 0; i < 10; i++) memory_alloc(m, i, 100 + i, 1000, a);
    memory_free(m, 20, 100);
    struct memory_profile all = sum_of(m);
    const struct memory_process *p = &all.processes[0];
    double bytes = 10000 / p1, variance = 1e7 * (1 - p1) / (p1 * p1);
    assert_true(fabs(p->peak.sum - bytes) < 1e-6 && fabs(p->peak.variance - variance) < 1e-3);
    assert_true(fabs(p->at_end.sum - 0.9 * bytes) < 1e-6 && fabs(p->at_end.variance - 0.9 * variance) < 1e-3);
    assert_true(fabs(p->allocations - 10 / p1) < 1e-9 && p->noted == 10);
    assert_true(fabs(p->sites[0].at_peak.sum - bytes) < 1e-6);
    struct interval i = memory_interval(p->peak);
    assert_true(i.lo >= 10000 && i.lo < i.value &&
                i.hi > i.value + 1.9 * sqrt(variance)); /* no less than was seen */
    memory_profile_release(&all);
}

/* The interval of a Poisson number is known: of 1 sample it is about 0.1 to 4.7 times what the sample stands for. */
static void few_samples_have_a_wide_interval(void **state)
{
    (void)state;
    struct interval one = memory_interval((struct memory_bytes){1000, 1e6, 1});
    assert_true(one.lo > 60 && one.lo < 150 && one.hi > 4500 && one.hi < 4800);
    struct interval many =
        memory_interval((struct memory_bytes){1e6, 1e9, 1e3}); /* 1000 samples: about a bell */
    assert_true(fabs(many.hi - 1e6 - 1.96 * sqrt(1e9)) < 3000 &&
                fabs(1e6 - many.lo - 1.96 * sqrt(1e9)) < 3000);
    struct interval exact = memory_interval((struct memory_bytes){70, 0, 70}),
                    none = memory_interval((struct memory_bytes){0, 0, 0});
    assert_true(exact.lo == 70 && exact.hi == 70 && none.lo == 0 && none.hi == 0);
}

/* What was thinned by known chances: the stated 95 % interval holds the truth about so often. The seed is fixed. `few`
 * blocks give 4 samples or so. */
static int held_of(int trials, int blocks, uint64_t x)
{
    int held = 0;
    for (int trial = 0; trial < trials; trial++) {
        double truth = 0;
        struct memory_bytes b = {0, 0, 0};
        for (int i = 0; i < blocks; i++) {
            double s = 100 + 37 * (i % 50), p = -expm1(-s / 8192);
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            truth += s;
            if ((double)(x >> 11) * 0x1p-53 >= p) continue;
            memory_bytes_add(&b, (struct memory_bytes){s / p, s * s * (1 - p) / (p * p), s});
        }
        struct interval v = memory_interval(b);
        held += v.lo <= truth && truth <= v.hi;
    }
    return held;
}

static void the_interval_holds_the_truth(void **state)
{
    (void)state;
    assert_in_range(held_of(400, 2000, 88172645463325252u), 400 * 92 / 100, 400 * 98 / 100);
    assert_in_range(held_of(2000, 50, 1234567), 2000 * 93 / 100, 2000 * 99 / 100);
}

/* ---- what is missing ---- */

static void what_was_lost_is_told(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 0);
    memory_alloc(m, 1, 100, 50, 77);                     /* a stack that is told nowhere */
    memory_alloc(m, 2, 100, 70, 77);                     /* its free was lost */
    memory_tell(m, STACK, 5, 6, MEMORY_NATIVE, 0x10, 0); /* a circle */
    memory_tell(m, STACK, 6, 5, MEMORY_CUT, MEMORY_CUT_DEPTH, 0);
    memory_tell(m, STACK, 7, 0, MEMORY_PYTHON, 99, 0); /* of no function */
    memory_alloc(m, 3, 200, 10, 5);
    memory_alloc(m, 4, 300, 10, 7);
    memory_tell(m, LOST, 3, 2, 1);
    memory_tell(m, LOST, 5, 2, 1);
    memory_text(m, (struct memory_record){.kind = MEMORY_NOTE, .v = {MEMORY_NOTE_NO_NATIVE}},
                "no unwind tables");
    struct memory_profile all = sum_of(m);
    const struct memory_process *p = &all.processes[0];
    assert_true(p->lost_records == 5 && p->lost_stacks == 2 && p->lost_samples == 1 && p->unseen_frees == 1);
    assert_true(p->at_end.sum == 90 && p->peak.sum == 90 && p->lifetimes[0] == 0);
    assert_true(p->n_sites == 3 && !p->sites[0].frame);
    assert_true(p->sites[1].frame->kind == MEMORY_NATIVE && !p->sites[1].frame->file);
    assert_ptr_equal(p->sites[1].frame->caller->caller, p->sites[1].frame);
    assert_true(p->sites[2].frame->kind == MEMORY_PYTHON && !p->sites[2].frame->name);
    assert_int_equal(p->n_notes, 1);
    assert_string_equal(p->notes[0], "no unwind tables");
    memory_profile_release(&all);
}

/* The same addresses and numbers of stacks in both. */
static void processes_are_apart(void **state)
{
    struct memory_making *m = *state, *other = calloc(1, sizeof *other);
    MUST(other);
    memory_join(m, m->at.trace, 0);
    memory_join(other, m->at.trace, 0); /* while the first one records: it is one trace */
    memory_alloc(m, 1, 100, 50, memory_python(m, 0, "a.py", "first", 1));
    memory_alloc(other, 1, 100, 70, memory_python(other, 0, "a.py", "second", 1));
    memory_end(other);
    struct memory_profile all = sum_of(m);
    free(other);
    assert_int_equal(all.n, 2);
    assert_true(all.processes[0].peak.sum == 70 && all.processes[1].peak.sum == 50); /* the highest first */
    assert_string_equal(all.processes[0].sites[0].frame->name, "second");
    assert_string_equal(all.processes[1].sites[0].frame->name, "first");
    memory_profile_release(&all);
}

static void a_trace_without_it_is_refused(void **state)
{
    struct memory_making *m = *state;
    struct appender_options o = {.path = m->at.trace};
    struct memory_profile p;
    tare_error err = TARE_ERROR_INIT;
    MUST(appender_open(&m->to, &o, NULL) == TARE_OK && appender_close(&m->to, 0, NULL) == TARE_OK);
    assert_int_equal(sum(m->at.trace, &p, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "t.tare: has no record of memory"));
    memory_profile_release(&p);
}

static void each_allocation_may_fail(void **state)
{
    struct memory_making *m = *state;
    known_history(m);
    for (uint64_t i = 0; i < 40; i++)
        memory_alloc(m, (40 + i) * MS, 0x1000 + i, MIB, 1); /* so much is judged */
    memory_tell(m, MAP, memory_time(m, 90 * MS), 0x10000, 0x8000, 1, MEMORY_MAP_ANONYMOUS);
    memory_tell(m, UNMAP, memory_time(m, 91 * MS), 0x12000, 0x1000);
    memory_text(m, (struct memory_record){.kind = MEMORY_NOTE}, "a remark");
    memory_end(m);
    struct trace *t = NULL;
    assert_int_equal(trace_open(&t, m->at.trace, NULL), TARE_OK);
    tare_status s = TARE_NOMEM;
    int failed = 0;
    for (long n = 0; s != TARE_OK; n++) {
        struct memory_profile p;
        mem_fail_after(n);
        s = memory_sum(t, &p, NULL);
        if (s == TARE_OK) s = memory_profile_symbols(&p, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        failed += s == TARE_NOMEM;
        memory_profile_release(&p);
    }
    assert_true(failed >= 20);
    trace_close(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_set_up, memory_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_is_exact),
        TEST(mappings_are_ranges),
        TEST(what_malloc_maps_is_not_held_twice),
        TEST(only_what_grows_is_called_growing),
        TEST(samples_stand_for_more),
        cmocka_unit_test(few_samples_have_a_wide_interval),
        cmocka_unit_test(the_interval_holds_the_truth),
        TEST(what_was_lost_is_told),
        TEST(processes_are_apart),
        TEST(a_trace_without_it_is_refused),
        TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
