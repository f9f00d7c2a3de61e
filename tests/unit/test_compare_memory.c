/* SPDX-License-Identifier: MIT
 * test_compare_memory.c - made-up histories of memory compared: a site that holds more is named, a site that has begun
 * to grow fails, the same program twice does not, whatever the sampling; and what only one side has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "analyze/compare/compare_memory.h"
#include "memory_fixture.h"
#include "trace/reader.h"

enum { KIB = 1024, MIB = 1 << 20, RUNS_MOST = 4 };
#define MS UINT64_C(1000000)

static uint64_t seed;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

/* ---- made-up programs ---- */

struct making {
    unsigned table, index; /* blocks of 64 KiB that each site holds */
    unsigned leaks;        /* blocks of 64 KiB, one each 10 ms */
    uint64_t every;        /* 0: all are recorded */
    const char *folder;    /* where its file lies */
};

static void hold(struct memory_making *m, const struct making *of, uint64_t ns, uint64_t stack)
{
    static uint64_t address = 0x1000;
    const double size = 64 * KIB;
    address += 64 * KIB;
    if (!of->every || uniform() < 1 - exp(-size / (double)of->every))
        memory_alloc(m, ns, address, 64 * KIB, stack);
}

static void make(struct memory_making *m, const struct making *of, struct compare_memory_run *out)
{
    char file[64];
    struct trace *t = NULL;
    snprintf(file, sizeof file, "%s/app.py", of->folder ? of->folder : "/app");
    unlink(m->at.trace);
    memory_join(m, m->at.trace, of->every);
    uint64_t main_ = memory_python(m, 0, file, "main", 1), table = memory_python(m, main_, file, "table", 10),
             index = memory_python(m, main_, file, "index", 20),
             leak = memory_python(m, main_, file, "leak", 30);
    for (unsigned i = 0; i < of->table; i++) hold(m, of, MS, table);
    for (unsigned i = 0; i < of->index; i++) hold(m, of, 2 * MS, index);
    for (unsigned i = 0; i < of->leaks; i++) hold(m, of, (3 + 10 * (uint64_t)i) * MS, leak);
    memory_alloc(m, 2000 * MS, 0x10, 1, main_);
    memory_end(m);
    MUST(trace_open(&t, m->at.trace, NULL) == TARE_OK);
    *out = (struct compare_memory_run){.path = "made.tare"};
    assert_int_equal(memory_sum(t, &out->profile, NULL), TARE_OK);
    trace_close(t);
}

static void name(struct buf *b, const struct memory_group *g, enum memory_by by)
{
    assert_int_equal(by, MEMORY_BY_FUNCTION);
    buf_add_str(b, g->own.frame ? g->own.frame->name : "?");
}

struct compared {
    struct compare_memory_run runs[PAIR_SIDES][RUNS_MOST];
    struct compare_memory in;
    struct comparison c;
};

static tare_status judge(struct compared *x, tare_error *err)
{
    x->in.by = MEMORY_BY_FUNCTION;
    x->in.name = name;
    x->in.rule = (struct between_rule)BETWEEN_RULE_INIT;
    MUST(comparison_init(&x->c, "memory", NULL) == TARE_OK);
    return compare_memory(&x->c, &x->in, err);
}

static void compare(struct memory_making *m, struct compared *x, const struct making of[PAIR_SIDES], size_t n)
{
    *x = (struct compared){.in = {.apart_ms = 0}};
    for (int side = 0; side < PAIR_SIDES; side++) {
        for (size_t i = 0; i < n; i++) make(m, &of[side], &x->runs[side][i]);
        x->in.side[side] = (struct compare_memory_side){x->runs[side], n};
    }
    assert_int_equal(judge(x, NULL), TARE_OK);
}

static void release(struct compared *x)
{
    comparison_release(&x->c);
    for (int side = 0; side < PAIR_SIDES; side++)
        for (size_t i = 0; i < x->in.side[side].n; i++) memory_profile_release(&x->runs[side][i].profile);
}

static const struct comparison_metric *row(const struct compared *x, const char *name)
{
    const struct comparison_case *c = x->c.cases.at[0];
    for (size_t i = 0; i < c->metrics.n; i++)
        if (strcmp(c->metrics.at[i]->metric, name) == 0) return c->metrics.at[i];
    return NULL;
}

static void assert_row(const struct compared *x, const char *name, double base, double new_,
                       const char *verdict)
{
    const struct comparison_metric *m = row(x, name);
    if (!m) fail_msg("no row %s", name);
    assert_true(m->base.value == base && m->new_.value == new_);
    assert_string_equal(m->verdict, verdict);
}

/* ---- one trace a side, every allocation ---- */

static void sites_that_hold_more_are_named(void **state)
{
    struct compared x;
    const double block = 64 * KIB;
    compare(*state, &x,
            (struct making[]){{.table = 100, .index = 50}, {.table = 400, .index = 50, .folder = "/new"}}, 1);
    assert_row(&x, "site.peak table", 100 * block, 400 * block,
               "regressed"); /* another folder is the same file */
    assert_row(&x, "site.peak index", 50 * block, 50 * block, "unverified");
    assert_true(row(&x, "site.peak table")->ratio.value > 3.99 &&
                row(&x, "site.peak table")->ratio.value < 4.01);
    assert_row(&x, "memory.end", 150 * block + 1, 450 * block + 1, "regressed");
    assert_string_equal(row(&x, "memory.peak")->role, "gate");
    assert_string_equal(row(&x, "site.peak table")->role, "advisory");
    assert_string_equal(x.c.verdict, "regressed");
    assert_null(row(&x, "site.peak main")); /* of one byte */
    release(&x);
    compare(*state, &x, (struct making[]){{.table = 400, .index = 50}, {.table = 100, .index = 50}}, 1);
    assert_string_equal(row(&x, "memory.peak")->verdict, "improved");
    assert_string_equal(x.c.verdict, "improved");
    release(&x);
}

/* By 20 %: one run a side does not tell whether runs differ by as much. */
static void a_small_change_of_single_runs_is_unverified(void **state)
{
    struct compared x;
    compare(*state, &x, (struct making[]){{.table = 100}, {.table = 120}}, 1);
    assert_string_equal(x.c.verdict, "unverified");
    assert_non_null(row(&x, "memory.peak")->why);
    release(&x);
}

static void what_one_side_has_is_listed(void **state)
{
    struct compared x;
    compare(*state, &x, (struct making[]){{.table = 100}, {.table = 100, .index = 10}}, 1);
    assert_int_equal(x.c.unmatched.n, 2); /* held at the peak, and allocated */
    assert_string_equal(x.c.unmatched.at[0]->side, "new");
    assert_string_equal(x.c.unmatched.at[0]->name, "site.peak index: 640 KiB");
    release(&x);
}

static void a_site_that_begins_to_grow_fails(void **state)
{
    struct compared x;
    compare(*state, &x, (struct making[]){{.table = 2000}, {.table = 2000, .leaks = 200}}, 1);
    const struct comparison_metric *m = row(&x, "site.growth leak");
    assert_non_null(m);
    assert_string_equal(m->verdict, "regressed");
    assert_false(m->base.known);
    assert_true(fabs(m->new_.value / (64 * KIB * 100.0) - 1) < 0.05); /* 100 blocks a second */
    assert_string_equal(row(&x, "memory.peak")->verdict,
                        "unverified"); /* 10 % more: the growth alone tells */
    assert_string_equal(x.c.verdict, "regressed");
    release(&x);
    compare(*state, &x, (struct making[]){{.table = 2000, .leaks = 200}, {.table = 2000, .leaks = 200}}, 1);
    assert_string_equal(row(&x, "site.growth leak")->verdict, "inconclusive");
    assert_true(strcmp(x.c.verdict, "regressed") != 0);
    release(&x);
    compare(*state, &x, (struct making[]){{.table = 2000, .leaks = 200}, {.table = 2000}}, 1);
    assert_string_equal(row(&x, "site.growth leak")->verdict, "improved");
    release(&x);
}

/* ---- several a side: what they differ by judges ---- */

static void several_runs_decide_small_changes(void **state)
{
    struct compared x;
    compare(*state, &x, (struct making[]){{.table = 100, .index = 100}, {.table = 110, .index = 100}}, 3);
    assert_string_equal(row(&x, "site.peak table")->verdict, "regressed");
    assert_string_equal(row(&x, "site.peak index")->verdict, "same");
    assert_string_equal(row(&x, "memory.peak")->verdict, "regressed");
    assert_true(row(&x, "memory.peak")->ratio.lo.known);
    release(&x);
}

static void limits_say_what_fails(void **state)
{
    struct compared x;
    struct compare_limit limit = {.metric = "site.peak", .share = 0.2};
    compare(*state, &x, (struct making[]){{.table = 100, .index = 100}, {.table = 110, .index = 100}}, 3);
    comparison_release(&x.c);
    x.in.limits = &limit;
    x.in.n_limits = 1;
    assert_int_equal(judge(&x, NULL), TARE_OK);
    assert_string_equal(row(&x, "memory.peak")->role, "advisory");
    assert_string_equal(row(&x, "site.peak table")->role, "gate");
    assert_true(strcmp(x.c.verdict, "regressed") != 0);
    release(&x);
}

/* ---- sampled ---- */

/* The same program with samples of its own: single runs, and three a side. Sites of 3 to 100 samples. */
static void the_same_program_is_never_called_worse_for_its_samples(void **state)
{
    enum { TRIALS = 60 };
    int wrong[2] = {0, 0};
    struct making same = {.table = 800, .index = 30, .every = 512 * KIB};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < TRIALS; i++) {
            struct compared x;
            compare(*state, &x, (struct making[]){same, same}, k ? 3 : 1);
            for (size_t r = 0; r < x.c.cases.at[0]->metrics.n; r++)
                if (strcmp(x.c.cases.at[0]->metrics.at[r]->verdict, "regressed") == 0 ||
                    strcmp(x.c.cases.at[0]->metrics.at[r]->verdict, "improved") == 0) {
                    wrong[k]++;
                    break;
                }
            release(&x);
        }
    assert_true(wrong[0] <= 3 && wrong[1] <= 3);
}

static void a_site_of_four_times_as_much_is_found_in_samples(void **state)
{
    enum { TRIALS = 20 };
    int found = 0;
    struct making of[] = {{.table = 400, .index = 400, .every = 512 * KIB},
                          {.table = 1600, .index = 400, .every = 512 * KIB}};
    for (int i = 0; i < TRIALS; i++) {
        struct compared x;
        compare(*state, &x, of, 1);
        const struct comparison_metric *m = row(&x, "site.peak table");
        found += m && strcmp(m->verdict, "regressed") == 0;
        assert_true(m && m->base.lo.known && m->base.lo.v < m->base.value && m->base.value < m->base.hi.v);
        release(&x);
    }
    assert_true(found >= TRIALS - 2);
}

/* ---- no memory ---- */

static void every_allocation_may_fail(void **state)
{
    struct compared x;
    tare_error err = TARE_ERROR_INIT;
    compare(*state, &x, (struct making[]){{.table = 20, .leaks = 5}, {.table = 80, .index = 5}}, 1);
    comparison_release(&x.c);
    for (long n = 0;; n++) {
        MUST(comparison_init(&x.c, "memory", NULL) == TARE_OK);
        mem_fail_after(n);
        tare_status s = compare_memory(&x.c, &x.in, &err);
        mem_fail_after(-1);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        comparison_release(&x.c);
    }
    release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_set_up, memory_tear_down)
        TEST(sites_that_hold_more_are_named),
        TEST(a_small_change_of_single_runs_is_unverified),
        TEST(what_one_side_has_is_listed),
        TEST(a_site_that_begins_to_grow_fails),
        TEST(several_runs_decide_small_changes),
        TEST(limits_say_what_fails),
        TEST(the_same_program_is_never_called_worse_for_its_samples),
        TEST(a_site_of_four_times_as_much_is_found_in_samples),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
