/* SPDX-License-Identifier: MIT
 * test_memory_group.c - made-up histories of memory summed up by line, function, library and scope; what resident
 * memory is made of; and each rule, by a history that fires it and one like it that must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "analyze/memory/memory_resident.h"
#include "analyze/memory/memory_rules.h"
#include "memory_fixture.h"
#include "trace/reader.h"

enum { KIB = 1024, MIB = 1 << 20 };
#define MS UINT64_C(1000000)

static struct memory_profile sum_of(struct memory_making *m)
{
    struct memory_profile p;
    struct trace *t = NULL;
    memory_end(m);
    MUST(trace_open(&t, m->at.trace, NULL) == TARE_OK);
    assert_int_equal(memory_sum(t, &p, NULL), TARE_OK);
    trace_close(t);
    return p;
}

static struct memory_groups groups_of(struct memory_profile *all, enum memory_by by)
{
    struct memory_groups g;
    assert_int_equal(memory_group(&all->processes[0], by, &all->arena, &g, NULL), TARE_OK);
    return g;
}

static const char *name_of(const struct memory_group *g)
{
    if (g->name) return g->name;
    return g->own.frame && g->own.frame->name ? g->own.frame->name : "?";
}

static const struct memory_group *group(const struct memory_groups *all, const char *name, uint64_t line)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(name_of(&all->all[i]), name) == 0 && (!line || all->all[i].own.frame->line == line))
            return &all->all[i];
    fail_msg("no group %s:%u", name, (unsigned)line);
    return NULL;
}

/* main:10 holds 1000; load, which calls itself, 300 + 200 at two lines; a library below main 64; a scope around. */
static void known_history(struct memory_making *m)
{
    memory_join(m, m->at.trace, 0);
    uint64_t main_ = memory_python(m, 0, "/app/train.py", "main", 10);
    uint64_t load = memory_python(m, main_, "/app/data.py", "load", 20);
    uint64_t again = memory_python(m, load, "/app/data.py", "load", 22);
    memory_text(m, (struct memory_record){.kind = MEMORY_MODULE, .v = {1, 0x1000, 0x9000, 0x1000}},
                "abcd /usr/lib/python3/dist-packages/numpy.libs/libblas.so.3");
    memory_text(m, (struct memory_record){.kind = MEMORY_NAME, .v = {900}}, "epoch");
    uint64_t native = memory_native(m, main_, 0x1234, 1);
    memory_tell(m, STACK, ++m->stacks, 0, MEMORY_SCOPE, 900, 0);
    uint64_t inside = memory_python(m, m->stacks, "/x/site-packages/torch/nn.py", "forward", 7);
    memory_alloc(m, 1 * MS, 0x10, 1000, main_);
    memory_alloc(m, 2 * MS, 0x20, 300, load);
    memory_alloc(m, 3 * MS, 0x30, 200, again);
    memory_alloc(m, 4 * MS, 0x40, 64, native);
    memory_alloc(m, 5 * MS, 0x50, 5000, inside);
    memory_alloc(m, 6 * MS, 0x60, 8, 12345); /* a stack that is told nowhere */
}

static void lines_have_own_and_callees(void **state)
{
    struct memory_making *m = *state;
    known_history(m);
    struct memory_profile all = sum_of(m);
    struct memory_groups g = groups_of(&all, MEMORY_BY_LINE);
    const struct memory_group *main_ = group(&g, "main", 10);
    assert_true(main_->own.at_peak.sum == 1064 &&
                main_->peak_below.sum == 1564); /* native code below it is its own */
    assert_true(main_->own.allocations == 2 && main_->allocated_below.sum == 1564);
    assert_true(group(&g, "load", 20)->own.at_end.sum == 300 && group(&g, "load", 20)->peak_below.sum == 500);
    assert_true(group(&g, "load", 22)->peak_below.sum == 200);
    assert_string_equal(name_of(&g.all[0]), "forward");
    double sum = 0;
    for (size_t i = 0; i < g.n; i++) sum += g.all[i].own.at_peak.sum;
    assert_true(sum == all.processes[0].peak.sum); /* nothing twice, nothing lost */
    memory_profile_release(&all);
}

static void recursion_counts_once(void **state)
{
    struct memory_making *m = *state;
    known_history(m);
    struct memory_profile all = sum_of(m);
    struct memory_groups g = groups_of(&all, MEMORY_BY_FUNCTION);
    assert_true(group(&g, "load", 0)->own.at_peak.sum == 500 && group(&g, "load", 0)->peak_below.sum == 500);
    g = groups_of(&all, MEMORY_BY_STACK);
    assert_true(g.n == all.processes[0].n_sites && g.all[1].peak_below.sum == g.all[1].own.at_peak.sum);
    memory_profile_release(&all);
}

static void libraries_and_scopes(void **state)
{
    struct memory_making *m = *state;
    known_history(m);
    struct memory_profile all = sum_of(m);
    struct memory_groups g = groups_of(&all, MEMORY_BY_LIBRARY);
    assert_true(group(&g, "numpy", 0)->own.at_peak.sum == 64 &&
                group(&g, "torch", 0)->own.at_peak.sum == 5000);
    assert_true(group(&g, "program", 0)->own.at_peak.sum == 1500 &&
                group(&g, "program", 0)->peak_below.sum == 1564);
    assert_true(group(&g, "unknown", 0)->own.at_peak.sum == 8);
    g = groups_of(&all, MEMORY_BY_SCOPE);
    assert_true(g.n == 2 && group(&g, "epoch", 0)->own.at_peak.sum == 5000);
    assert_true(group(&g, "outside of scopes", 0)->own.at_peak.sum == 1572);
    memory_profile_release(&all);
}

static void names_of_libraries(void **state)
{
    static const struct {
        enum memory_frame kind;
        const char *file, *library;
    } rows[] = {
        {MEMORY_PYTHON, "/v/lib/python3.11/site-packages/pandas/core/frame.py", "pandas"},
        {MEMORY_PYTHON, "/v/lib/python3.11/site-packages/six.py", "six"},
        {MEMORY_NATIVE, "/v/lib/python3.11/site-packages/_cffi_backend.cpython-311-x86_64-linux-gnu.so",
         "_cffi_backend"},
        {MEMORY_PYTHON, "/usr/lib/python3.11/json/decoder.py", "python"},
        {MEMORY_PYTHON, "<frozen importlib._bootstrap>", "python"},
        {MEMORY_NATIVE, "/usr/bin/python3.11", "python"},
        {MEMORY_NATIVE, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "libstdc++.so.6"},
        {MEMORY_PYTHON, "train.py", "program"},
        {MEMORY_NATIVE, NULL, "unknown"},
        {MEMORY_PYTHON, "/a/site-packages/", "program"}, /* nothing follows */
    };
    struct arena a = ARENA_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct memory_frame_named f = {.kind = rows[i].kind, .file = rows[i].file};
        assert_string_equal(memory_library(&f, &a), rows[i].library);
    }
    arena_release(&a);
}

/* A stack whose callers go in a circle ends. */
static void circles_end(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 0);
    memory_tell(m, STACK, 5, 6, MEMORY_NATIVE, 0x10, 0);
    memory_tell(m, STACK, 6, 5, MEMORY_CUT, MEMORY_CUT_DEPTH, 0);
    memory_alloc(m, 1, 1, 100, 5);
    struct memory_profile all = sum_of(m);
    for (int by = 0; by < MEMORY_BYS; by++) {
        struct memory_groups g = groups_of(&all, (enum memory_by)by);
        assert_true(g.n == 1 && g.all[0].peak_below.sum == 100);
    }
    memory_profile_release(&all);
}

/* Many stacks through one line, each too small to be judged: the line is. */
static void a_line_is_judged_over_its_stacks(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 0);
    uint64_t stacks[8];
    for (int i = 0; i < 8; i++)
        stacks[i] = memory_python(m, memory_native(m, 0, 0x100 + (uint64_t)i, 0), "a.py", "leak", 5);
    for (uint64_t i = 0; i < 400; i++) memory_alloc(m, (i + 1) * 10 * MS, 1000 + i, 4 * KIB, stacks[i % 8]);
    struct memory_profile all = sum_of(m);
    struct memory_groups g = groups_of(&all, MEMORY_BY_LINE);
    for (size_t i = 0; i < all.processes[0].n_sites; i++) assert_false(all.processes[0].sites[i].judged);
    assert_true(memory_site_grows(&group(&g, "leak", 5)->own));
    memory_profile_release(&all);
}

/* ---- resident memory ---- */

static void parts_add_up(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 0);
    uint64_t a = memory_python(m, 0, "a.py", "a", 1), t = memory_time(m, 1);
    memory_tell(m, MAP, t, 0x100000, 4096 * 10, a, MEMORY_MAP_ANONYMOUS);
    memory_tell(m, MAP, t + 1, 0x900000, MIB, a, MEMORY_MAP_ANONYMOUS | MEMORY_MAP_ARENA);
    memory_tell(m, MAP, t + 2, 0xa00000, MIB, a, MEMORY_MAP_ANONYMOUS | MEMORY_MAP_ARENA);
    memory_tell(m, UNMAP, t + 3, 0xa00000, MIB);
    memory_tell(m, HEAP, t + 4, 10 * MIB, 2 * MIB, 4 * MIB, 3 * MIB, 0, 100);
    struct memory_profile all = sum_of(m);
    struct memory_resident r = memory_resident(&all.processes[0].heap);
    assert_true(r.known && r.malloc_told && r.resident == 10 * MIB);
    assert_true(r.part[MEMORY_PART_MALLOC] == 3 * MIB && r.part[MEMORY_PART_FREE] == MIB);
    assert_true(r.part[MEMORY_PART_ARENAS] == MIB && r.part[MEMORY_PART_MAPS] == 40960);
    assert_true(r.part[MEMORY_PART_FILES] == 2 * MIB && r.part[MEMORY_PART_ABSENT] == 0);
    double sum = 0;
    for (int i = 0; i < MEMORY_PARTS; i++) sum += r.part[i];
    assert_true(sum == r.resident);
    all.processes[0].heap.resident = MIB; /* less than was asked for */
    r = memory_resident(&all.processes[0].heap);
    assert_true(r.part[MEMORY_PART_REST] == 0 && r.part[MEMORY_PART_ABSENT] == 1.0 * MIB - 7 * MIB - 40960);
    all.processes[0].heap.held = all.processes[0].heap.used = 0;
    r = memory_resident(&all.processes[0].heap);
    assert_true(!r.malloc_told && isnan(r.part[MEMORY_PART_FREE]));
    all.processes[0].heap.known = false;
    assert_false(memory_resident(&all.processes[0].heap).known);
    memory_profile_release(&all);
}

/* ---- rules ---- */

static bool found(struct memory_profile *all, const char *id, const char *words, const char *action)
{
    struct memory_groups lines = groups_of(all, MEMORY_BY_LINE);
    struct memory_findings f;
    bool any = false;
    assert_int_equal(memory_find(&all->processes[0], &lines, &all->arena, &f, NULL), TARE_OK);
    for (size_t i = 0; i < f.n; i++) {
        if (strcmp(f.all[i].id, id) != 0) continue;
        any = true;
        if (words && !strstr(f.all[i].title, words)) fail_msg("%s: no %s", f.all[i].title, words);
        if (action && !strstr(f.all[i].action, action)) fail_msg("%s: no %s", f.all[i].action, action);
        assert_true(f.all[i].evidence.n > 0);
    }
    return any;
}

static void a_leak_is_named(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 0);
    uint64_t leak = memory_python(m, 0, "/app/index.py", "build", 42),
             fill = memory_python(m, 0, "a.py", "cache", 2);
    for (uint64_t i = 0; i < 400; i++) {
        memory_alloc(m, (i + 1) * 10 * MS, 1000 + i, 64 * KIB, leak);
        if (i < 100)
            memory_alloc(m, (i + 1) * 10 * MS, 5000 + i, 256 * KIB,
                         fill); /* a cache that is full after a second */
    }
    struct memory_profile all = sum_of(m);
    assert_true(found(&all, "memory.leak", "build index.py:42 keeps", "--by stack"));
    memory_profile_release(&all);
}

static void a_cache_that_fills_is_no_leak(void **state)
{
    struct memory_making *m = *state;
    memory_join(m, m->at.trace, 0);
    uint64_t fill = memory_python(m, 0, "a.py", "cache", 2), saw = memory_python(m, 0, "a.py", "saw", 3);
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t t = (i + 1) * 10 * MS;
        if (i < 100) memory_alloc(m, t, 5000 + i, 256 * KIB, fill);
        for (uint64_t k = 0; i % 8 == 7 && k < 8; k++) memory_free(m, t, 300000 + k);
        memory_alloc(m, t + 1, 300000 + i % 8, MIB, saw);
    }
    struct memory_profile all = sum_of(m);
    assert_false(found(&all, "memory.leak", NULL, NULL));
    memory_profile_release(&all);
}

/* 100 blocks of 2 MiB that live `ns` each. */
static struct memory_profile passing(struct memory_making *m, uint64_t ns)
{
    memory_join(m, m->at.trace, 0);
    uint64_t tmp = memory_python(m, 0, "norm.py", "scale", 9);
    for (uint64_t i = 0; i < 100; i++) {
        memory_alloc(m, (i + 1) * 100 * MS, 77, 2 * MIB, tmp);
        memory_free(m, (i + 1) * 100 * MS + ns, 77);
    }
    return sum_of(m);
}

static void temporaries_are_named(void **state)
{
    struct memory_profile all = passing(*state, 2 * MS);
    assert_true(found(&all, "memory.temporary",
                      "scale norm.py:9 makes temporary blocks: 200 MiB in all, 100 blocks of about 2 MiB",
                      "out="));
    memory_profile_release(&all);
}

static void blocks_that_live_are_no_temporaries(void **state)
{
    struct memory_profile all = passing(*state, 50 * MS);
    assert_false(found(&all, "memory.temporary", NULL, NULL));
    memory_profile_release(&all);
}

/* A list that grows by an eighth, as CPython's do; or the same blocks in another order. */
static struct memory_profile growing(struct memory_making *m, bool in_order)
{
    memory_join(m, m->at.trace, 0);
    uint64_t list = memory_python(m, 0, "rows.py", "read", 3), size = 64 * KIB;
    for (uint64_t i = 0; i < 40; i++, size += size / 8) {
        memory_alloc(m, (i + 1) * MS, 50 + i, in_order || i % 2 ? size : 100, list);
        if (i) memory_free(m, (i + 1) * MS, 49 + i);
    }
    return sum_of(m);
}

static void a_growing_container_is_named(void **state)
{
    struct memory_profile all = growing(*state, true);
    assert_true(
        found(&all, "memory.container", "read rows.py:3 grows a block from 64 KiB to", "size at once"));
    memory_profile_release(&all);
}

static void blocks_of_any_size_are_no_container(void **state)
{
    struct memory_profile all = growing(*state, false);
    assert_false(found(&all, "memory.container", NULL, NULL));
    memory_profile_release(&all);
}

static struct memory_profile heap_of(struct memory_making *m, struct memory_heap h, unsigned threads)
{
    memory_join(m, m->at.trace, 0);
    memory_alloc(m, 1, 1, 100, memory_python(m, 0, "a.py", "a", 1));
    for (unsigned i = 0; i < threads; i++)
        memory_text(m, (struct memory_record){.kind = MEMORY_THREAD, .v = {i + 1, 100 + i}}, "worker");
    memory_tell(m, HEAP, memory_time(m, 2), h.resident, h.file, h.held, h.used, 0, h.top);
    return sum_of(m);
}

static void free_memory_of_malloc(void **state)
{
    static const struct {
        struct memory_heap h;
        unsigned threads;
        const char *id, *action; /* NULL: nothing is said */
    } rows[] = {
        {{.resident = 200 * MIB, .held = 180 * MIB, .used = 80 * MIB},
         1,
         "memory.fragmented",
         "malloc_trim(0)"},
        {{.resident = 200 * MIB, .held = 180 * MIB, .used = 80 * MIB, .top = 90 * MIB},
         1,
         "memory.fragmented",
         "MALLOC_TRIM_THRESHOLD_"},
        {{.resident = 200 * MIB, .held = 180 * MIB, .used = 80 * MIB},
         16,
         "memory.arenas",
         "MALLOC_ARENA_MAX=2"},
        {{.resident = 200 * MIB, .held = 180 * MIB, .used = 170 * MIB}, 16, NULL, NULL},
        {{.resident = 200 * MIB, .file = 100 * MIB, .held = 90 * MIB, .used = 90 * MIB},
         1,
         "memory.page-cache",
         "not count"},
        {{.resident = 200 * MIB, .file = 50 * MIB, .held = 90 * MIB, .used = 90 * MIB}, 1, NULL, NULL},
    };
    static const char *const ids[] = {"memory.fragmented", "memory.arenas", "memory.page-cache"};
    struct memory_making *m = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct memory_profile all = heap_of(m, rows[i].h, rows[i].threads);
        for (int k = 0; k < 3; k++) {
            bool asked = rows[i].id && strcmp(rows[i].id, ids[k]) == 0;
            assert_int_equal(found(&all, ids[k], NULL, asked ? rows[i].action : NULL), asked);
        }
        memory_profile_release(&all);
        MUST(unlink(m->at.trace) == 0);
    }
}

/* What malloc keeps is mostly free after the peak, and pages of files come when they like: all readings are looked at.
 * What is free in one reading only is about to be used again. */
static void readings_far_from_the_peak_count(void **state)
{
    static const char *const ids[] = {"memory.fragmented", "memory.page-cache"};
    static const struct {
        uint64_t used[5],
            file[5]; /* MiB, a second apart, of 200 that malloc holds; the peak is at the first */
        bool is[2];
    } rows[] = {
        {{190, 190, 50, 45, 52}, {0}, {true, false}},
        {{190, 190, 50, 190, 50}, {0}, {false, false}},
        {{190, 190, 190, 190, 190}, {1, 1, 1, 120, 1}, {false, true}},
    };
    struct memory_making *m = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memory_join(m, m->at.trace, 0);
        uint64_t a = memory_python(m, 0, "a.py", "a", 1), t = memory_time(m, 1);
        memory_tell(m, ALLOC, t, 0x10000, 150 * MIB, a);
        memory_tell(m, FREE, t + 1000, 0x10000);
        for (uint64_t k = 0; k < 5; k++)
            memory_tell(m, HEAP, t + k * 1000 * MS, 250 * MIB, rows[i].file[k] * MIB, 200 * MIB,
                        rows[i].used[k] * MIB, 0, MIB);
        struct memory_profile all = sum_of(m);
        for (int k = 0; k < 2; k++) assert_int_equal(found(&all, ids[k], NULL, NULL), rows[i].is[k]);
        memory_profile_release(&all);
        MUST(unlink(m->at.trace) == 0);
    }
}

/* docs/memory.md has a row for every rule. */
static void rules_are_on_the_page(void **state)
{
    static const char *const ids[] = {"memory.leak",       "memory.temporary", "memory.container",
                                      "memory.fragmented", "memory.arenas",    "memory.page-cache"};
    char path[600], row[80];
    struct buf page = BUF_INIT;
    (void)state;
    snprintf(path, sizeof path, "%s/docs/memory.md", getenv("TARE_SRC") ? getenv("TARE_SRC") : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (int c; (c = fgetc(f)) != EOF;) buf_add_char(&page, (char)c);
    fclose(f);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        snprintf(row, sizeof row, "| `%s` |", ids[i]);
        if (!strstr(page.data, row)) fail_msg("docs/memory.md has no row %s", row);
    }
    buf_release(&page);
}

static void each_allocation_may_fail(void **state)
{
    struct memory_making *m = *state;
    known_history(m);
    struct memory_profile all = sum_of(m);
    int failed = 0;
    for (int n = 0; n < 40; n++) {
        struct arena a = ARENA_INIT;
        struct memory_groups g;
        mem_fail_after(n);
        tare_status s = memory_group(&all.processes[0], MEMORY_BY_LINE, &a, &g, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        failed += s == TARE_NOMEM;
        arena_release(&a);
    }
    assert_true(failed >= 5 && failed < 40);
    memory_profile_release(&all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_set_up, memory_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_have_own_and_callees),
        TEST(recursion_counts_once),
        TEST(libraries_and_scopes),
        cmocka_unit_test(names_of_libraries),
        TEST(circles_end),
        TEST(a_line_is_judged_over_its_stacks),
        TEST(parts_add_up),
        TEST(a_leak_is_named),
        TEST(a_cache_that_fills_is_no_leak),
        TEST(temporaries_are_named),
        TEST(blocks_that_live_are_no_temporaries),
        TEST(a_growing_container_is_named),
        TEST(blocks_of_any_size_are_no_container),
        TEST(free_memory_of_malloc),
        TEST(readings_far_from_the_peak_count),
        cmocka_unit_test(rules_are_on_the_page),
        TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
