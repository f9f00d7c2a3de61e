/* SPDX-License-Identifier: MIT
 * test_stacks_sum.c - what made-up looks at threads mean: which time belongs to which function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/stacks/stacks_table.h"
#include "memory_fixture.h"
#include "trace/reader.h"

#define MS UINT64_C(1000000)

/* Each look is 4 ms after the one before. */
static void look(struct memory_making *m, uint64_t thread, uint64_t stack, uint64_t cpu_ms, uint64_t state)
{
    static uint64_t at;
    at += 4 * MS;
    memory_tell(m, SAMPLE, memory_time(m, at), thread, stack, 4 * MS, cpu_ms * MS, 0, state);
}

static struct stacks_profile sum_of(struct memory_making *m, enum stacks_time time)
{
    struct stacks_profile p;
    struct trace *t = NULL;
    MUST(trace_open(&t, m->at.trace, NULL) == TARE_OK);
    assert_int_equal(stacks_sum(t, &(struct stacks_wish){.time = time}, &p, NULL), TARE_OK);
    trace_close(t);
    return p;
}

static double own_ms(const struct stacks_profile *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->functions[i].name, name) == 0) return p->functions[i].own_ns / (double)MS;
    return 0;
}

struct stacks_made {
    uint64_t main_, work, wait;
};

static struct stacks_made begin(struct memory_making *m)
{
    memory_join_as(m, m->at.trace, MODE_STACKS);
    for (uint64_t i = 1; i <= 2; i++)
        memory_text(m, (struct memory_record){.kind = MEMORY_THREAD, .v = {i, 100 + i}}, "python");
    uint64_t main_ = memory_python(m, 0, "a.py", "main", 1);
    return (struct stacks_made){main_, memory_python(m, main_, "a.py", "work", 2),
                                memory_python(m, main_, "a.py", "wait", 3)};
}

/* Preempted or waiting, it stands in wait(): what it used meanwhile is of work(), where it was seen to run. */
static void processor_time_is_of_where_it_ran(void **state)
{
    struct memory_making *m = *state;
    struct stacks_made f = begin(m);
    look(m, 1, f.wait, 2, STACK_RUNS | STACK_OFF_CPU);
    look(m, 1, f.wait, 3, STACK_SLEEPS | STACK_OFF_CPU);
    look(m, 2, f.main_, 1, STACK_RUNS); /* of another thread */
    look(m, 1, f.work, 1, STACK_RUNS);
    look(m, 1, f.wait, 0, STACK_SLEEPS | STACK_OFF_CPU);
    memory_end(m);
    struct stacks_profile p = sum_of(m, STACKS_CPU);
    assert_true(p.sum_ns == 7e6 && p.cpu_ns == 7e6);
    assert_true(own_ms(&p, "work") == 6 && own_ms(&p, "main") == 1 && own_ms(&p, "wait") == 0);
    assert_true(p.n_eff > 1.3 && p.n_eff < 1.4); /* 7 * 7 / (6 * 6 + 1): two looks, not five */
    stacks_profile_release(&p);
    p = sum_of(m, STACKS_WALL);
    assert_true(own_ms(&p, "work") == 4 && own_ms(&p, "main") == 4 && own_ms(&p, "wait") == 12);
    stacks_profile_release(&p);
    p = sum_of(m, STACKS_IDLE);
    assert_true(own_ms(&p, "wait") == 2 + 1 + 4 && own_ms(&p, "work") == 3);
    stacks_profile_release(&p);
}

/* Nothing is lost: not at the end, and not where looks never find it on a processor. */
static void time_that_was_never_seen_to_run_is_kept(void **state)
{
    struct memory_making *m = *state;
    struct stacks_made f = begin(m);
    for (unsigned i = 0; i < 70; i++) look(m, 1, i < 66 ? f.wait : f.work, 1, STACK_RUNS | STACK_OFF_CPU);
    memory_end(m);
    struct stacks_profile p = sum_of(m, STACKS_CPU);
    assert_true(p.sum_ns == 70e6 && own_ms(&p, "wait") == 64 && own_ms(&p, "work") == 6);
    stacks_profile_release(&p);
}

/* Traces of before, or of machines that do not tell, have no such bit. */
static void unknown_counts_as_it_is(void **state)
{
    struct memory_making *m = *state;
    struct stacks_made f = begin(m);
    look(m, 1, f.wait, 3, STACK_RUNS);
    look(m, 1, f.work, 1, STACK_RUNS);
    memory_end(m);
    struct stacks_profile p = sum_of(m, STACKS_CPU);
    assert_true(own_ms(&p, "wait") == 3 && own_ms(&p, "work") == 1);
    stacks_profile_release(&p);
}

/* All times of a function in one row: work() runs with the lock, wait() sleeps. */
static void a_table_has_all_times(void **state)
{
    struct memory_making *m = *state;
    struct stacks_made f = begin(m);
    struct stacks_table table;
    struct trace *t = NULL;
    look(m, 1, f.work, 4, STACK_RUNS | STACK_HOLDS_GIL);
    look(m, 1, f.work, 3, STACK_RUNS);
    look(m, 2, f.wait, 0, STACK_SLEEPS);
    memory_end(m);
    MUST(trace_open(&t, m->at.trace, NULL) == TARE_OK);
    assert_int_equal(stacks_table(t, &table, NULL), TARE_OK);
    assert_int_equal(table.n, 3);
    assert_string_equal(table.rows[0].name, "work");
    assert_true(table.rows[0].own_cpu == 7e6 && table.rows[0].total_cpu == 7e6);
    assert_true(table.rows[0].gil == 4e6 && table.rows[0].waits == 1e6);
    assert_string_equal(table.rows[1].name, "main");
    assert_true(table.rows[1].own_cpu == 0 && table.rows[1].total_cpu == 7e6);
    assert_string_equal(table.rows[2].name, "wait");
    assert_true(table.rows[2].waits == 4e6 && table.rows[2].total_cpu == 0);
    assert_true(table.cpu_ns == 7e6 && table.gil_ns == 4e6 && table.looks == 3 && table.threads == 2);
    stacks_table_release(&table);
    trace_close(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_set_up, memory_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(processor_time_is_of_where_it_ran),
        TEST(time_that_was_never_seen_to_run_is_kept),
        TEST(unknown_counts_as_it_is),
        TEST(a_table_has_all_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
