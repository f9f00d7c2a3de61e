/* SPDX-License-Identifier: MIT
 * test_calltree.c - the arithmetic of net times, on traces made by hand in which everything is a round number: a tick
 * is 0.5 ns, a scope costs 10 ns inside its reading, 15 ns beyond it, and 2 ns when it is left out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "trace_fixture.h"
#include "analyze/calls/calltree.h"

#include <cmocka.h>

static struct folder here;

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-6 * (fabs(b) + 1))

struct built {
    struct trace *t;
    struct calltree tree;
};

static struct made *begin_made(const struct process_info *info)
{
    struct made *m = made_new();
    made_header(m);
    made_process(m, info);
    for (uint32_t i = 1; i <= 4; i++) {
        static const char *const names[] = {"", "a", "b", "c", "n"};
        made_site(m, info->uid, i, i == 4 ? TARE_SITE_COUNTER : TARE_SITE_SCOPE, names[i]);
    }
    made_thread(m, info->uid, 0, 0);
    return m;
}

static struct built end_made(struct made *m, uint64_t uid)
{
    struct built b = {0};
    struct clock_pair pairs[2] = {made_pair(0), made_pair(1000000)};
    tare_error err = TARE_ERROR_INIT;
    made_clock(m, uid, pairs, 2);
    made_end(m, uid);
    file_put(here.trace, m->bytes, m->n);
    made_free(m);
    if (trace_open(&b.t, here.trace, &err) != TARE_OK) fail_msg("%s", err.text);
    if (calltree_build(&b.tree, b.t, -1, &err) != TARE_OK) fail_msg("%s", err.text);
    return b;
}

static struct built build(const struct made_node *nodes, size_t n)
{
    struct process_info info = made_info(MADE_UID);
    struct made *m = begin_made(&info);
    made_tree(m, MADE_UID, 0, nodes, n);
    return end_made(m, MADE_UID);
}

static void release(struct built *b)
{
    calltree_release(&b->tree);
    trace_close(b->t);
}

static const struct call_node *named(const struct built *b, const char *name)
{
    for (uint32_t i = 1; i < b->tree.n_nodes; i++)
        if (strcmp(trace_site(b->t, b->tree.nodes[i].site)->name, name) == 0) return &b->tree.nodes[i];
    fail_msg("no %s", name);
    return NULL;
}

/* 100 calls of a at 100000 ns, each holding 10 of b at 1000 ns. */
static void net_is_gross_less_inside_less_the_scopes_within(void **state)
{
    (void)state;
    const struct made_node nodes[] = {
        {.site = 0},
        {.parent = 0, .site = 1, .count = 100, .total = 100 * 200000},
        {.parent = 1, .site = 2, .count = 1000, .total = 1000 * 2000},
        {.parent = 2, .site = 4, .kind = TARE_SITE_COUNTER, .count = 7, .total = -21}};
    struct built b = build(nodes, 4);
    const struct call_node *a = named(&b, "a"), *inner = named(&b, "b"), *n = named(&b, "n");
    NEAR(b.tree.inside_ns.value, 10.0);
    NEAR(b.tree.weight_ns.value, 25.0);
    assert_int_equal(b.tree.weighed_pairs, 0);
    NEAR(a->gross_total_ns, 1e7);
    NEAR(a->total_ns.value, 1e7 - 100 * 10 - 1000 * 25);
    NEAR(a->mean_ns.value, (1e7 - 100 * 10 - 1000 * 25) / 100);
    NEAR(inner->total_ns.value, 1e6 - 1000 * 10);
    NEAR(a->self_ns.value, a->total_ns.value - inner->total_ns.value);
    NEAR(inner->self_ns.value, inner->total_ns.value);
    NEAR(a->gross_self_ns, 1e7 - 1e6);
    NEAR(b.tree.nodes[0].total_ns.value, a->total_ns.value);
    NEAR(b.tree.nodes[0].gross_total_ns, 1e7);
    NEAR(b.tree.nodes[0].self_ns.value, 0.0);
    assert_int_equal(a->count, 100);
    assert_int_equal(inner->count, 1000);
    assert_int_equal(n->value, -21);
    assert_int_equal(n->count, 7);
    assert_true(isnan(n->total_ns.value) &&
                isnan(n->gross_total_ns)); /* a counter has no time: unknown, not zero */
    assert_true(a->total_ns.lo < a->total_ns.value && a->total_ns.value < a->total_ns.hi);
    NEAR(a->min_ns, 100000.0);
    NEAR(a->max_ns, 100000.0);
    NEAR(a->p50_ns, 100000.0); /* the middle of its bucket is not, and would lie above max */
    release(&b);
}

/* Of 100 calls of a, 20 were weighed: their 10 calls of b each are missing from b's count, and from its time. */
static void weighed_calls_are_scaled_back(void **state)
{
    (void)state;
    const struct made_node nodes[] = {{.site = 0},
                                      {.parent = 0,
                                       .site = 1,
                                       .count = 80,
                                       .total = 80 * 200000,
                                       .off_count = 20,
                                       .off_total = 20 * 199000,
                                       .off_scopes = 400},
                                      {.parent = 1, .site = 2, .count = 800, .total = 800 * 2000},
                                      {.parent = 2, .site = 3, .count = 800, .total = 800 * 200}};
    struct built b = build(nodes, 4);
    const struct call_node *a = named(&b, "a"), *inner = named(&b, "b"), *leaf = named(&b, "c");
    assert_int_equal(a->count, 100);
    assert_int_equal(inner->count, 1000);
    assert_int_equal(leaf->count, 1000);
    assert_int_equal((a->flags | inner->flags | leaf->flags) & CALL_COUNT_ESTIMATED, 0);
    NEAR(a->gross_total_ns, 80 * 100000.0 + 20 * 99500.0);
    NEAR(inner->gross_total_ns, 1000 * 1000.0);
    NEAR(leaf->gross_total_ns, 1000 * 100.0);
    NEAR(inner->total_ns.value, 1000 * (1000.0 - 10) - 1000 * 25.0);
    NEAR(a->self_ns.value, a->total_ns.value - inner->total_ns.value);
    NEAR(inner->gross_mean_ns, 1000.0);
    release(&b);
}

static void counts_that_do_not_divide_are_estimates(void **state)
{
    (void)state;
    const struct made_node nodes[] = {{.site = 0},
                                      {.parent = 0,
                                       .site = 1,
                                       .count = 3,
                                       .total = 3000000,
                                       .off_count = 1,
                                       .off_total = 1000000,
                                       .off_scopes = 1},
                                      {.parent = 1, .site = 2, .count = 4, .total = 8000}};
    struct built b = build(nodes, 3);
    assert_int_equal(named(&b, "a")->count, 4);
    assert_int_equal(named(&b, "b")->count, 5); /* 4 x 4/3 */
    assert_true(named(&b, "b")->flags & CALL_COUNT_ESTIMATED);
    release(&b);
}

/* Twenty pairs that all say 40 ns a scope: (on - off) / scopes is 39 ns, and leaving out costs 2 ns, half hidden. */
static void pairs_of_the_program_outweigh_the_start_up(void **state)
{
    (void)state;
    struct weigh_pair pairs[20];
    for (int i = 0; i < 20; i++) pairs[i] = (struct weigh_pair){200000, 200000 + 10 * 78, 10};
    const struct made_node nodes[] = {
        {.site = 0},
        {.parent = 0, .site = 1, .count = 100, .total = 100 * 200000, .pairs = pairs, .n_pairs = 20},
        {.parent = 1, .site = 2, .count = 1000, .total = 1000 * 2000}};
    struct built b = build(nodes, 3);
    assert_int_equal(b.tree.weighed_pairs, 20);
    NEAR(b.tree.weight_ns.value, 40.0);
    NEAR(named(&b, "a")->total_ns.value, 1e7 - 100 * 10 - 1000 * 40.0);
    release(&b);
}

static void short_scopes_are_below_the_limit(void **state)
{
    (void)state;
    const struct made_node nodes[] = {
        {.site = 0},
        {.parent = 0, .site = 1, .count = 1000, .total = 1000 * 2000000},
        {.parent = 1, .site = 2, .count = 1000, .total = 1000 * 60}}; /* 30 ns, 20 of them net */
    struct built b = build(nodes, 3);
    assert_true(named(&b, "b")->flags & CALL_BELOW_LIMIT);
    assert_false(named(&b, "a")->flags & CALL_BELOW_LIMIT);
    assert_true(b.tree.weighing_limit_ns >= 50);
    release(&b);
}

static void what_was_not_measured_is_unknown(void **state)
{
    (void)state;
    const struct made_node nodes[] = {{.site = 0},
                                      {.parent = 0, .site = 1, .count = 0, .total = 0},
                                      {.parent = 1, .site = 2, .count = 10, .total = 10 * 200000}};
    struct built b = build(nodes, 3);
    const struct call_node *a = named(&b, "a");
    assert_true(isnan(a->mean_ns.value) && isnan(a->min_ns) && isnan(a->p50_ns) && isnan(a->gross_mean_ns));
    NEAR(a->total_ns.value, named(&b, "b")->total_ns.value); /* at least what ran inside it */
    assert_true(isnan(named(&b, "b")->p95_ns) && isnan(named(&b, "b")->p99_ns)); /* ten calls */
    release(&b);
    struct built none = build(nodes, 1);
    assert_int_equal(none.tree.n_nodes, 1);
    assert_int_equal(none.tree.nodes[0].child, 0);
    release(&none);
}

/* Two threads and their sums; children come largest first; one thread alone. */
static void threads_are_summed(void **state)
{
    (void)state;
    const struct made_node first[] = {{.site = 0},
                                      {.parent = 0, .site = 1, .count = 10, .total = 10 * 20000},
                                      {.parent = 0, .site = 2, .count = 10, .total = 10 * 40000}};
    const struct made_node second[] = {{.site = 0},
                                       {.parent = 0, .site = 1, .count = 30, .total = 30 * 20000}};
    struct process_info info = made_info(MADE_UID);
    struct made *m = begin_made(&info);
    made_thread(m, MADE_UID, 1, 0);
    made_tree(m, MADE_UID, 0, first, 3);
    made_tree(m, MADE_UID, 1, second, 2);
    struct built b = end_made(m, MADE_UID);
    struct calltree one = CALLTREE_INIT;
    assert_int_equal(named(&b, "a")->count, 40);
    assert_int_equal(named(&b, "a")->threads, 2);
    assert_int_equal(named(&b, "b")->threads, 1);
    assert_ptr_equal(&b.tree.nodes[b.tree.nodes[0].child], named(&b, "a")); /* 400 us before 200 us */
    assert_int_equal(calltree_build(&one, b.t, 1, NULL), TARE_OK);
    assert_int_equal(one.n_nodes, 2);
    assert_int_equal(one.nodes[1].count, 30);
    calltree_release(&one);
    release(&b);
}

/* From events alone: the same structure, counts and sums. */
static void events_give_the_same_sums(void **state)
{
    (void)state;
    struct process_info info = made_info(MADE_UID);
    info.mode = TARE_EVENTS;
    struct made *m = begin_made(&info);
    struct raw_event e[400];
    size_t n = 0;
    for (uint64_t i = 0; i < 50; i++) {
        e[n++] = raw(RAW_BEGIN, 1, 1000 + i * 10000);
        e[n++] = raw(RAW_BEGIN, 2, 2000 + i * 10000);
        e[n++] = raw(RAW_END, 0, 3000 + i * 10000);
        e[n++] = raw(RAW_END, 0, 6000 + i * 10000);
    }
    made_events(m, 0, 1, e, n);
    struct built b = end_made(m, MADE_UID);
    assert_int_equal(named(&b, "a")->count, 50);
    assert_int_equal(named(&b, "b")->count, 50);
    NEAR(named(&b, "a")->gross_total_ns, 50 * 5000.0);
    NEAR(named(&b, "b")->gross_total_ns, 50 * 1000.0);
    NEAR(named(&b, "a")->total_ns.value, 50 * 5000.0 - 50 * 10 - 50 * 25);
    NEAR(named(&b, "a")->min_ns, 5000.0);
    release(&b);
}

static int make_folder(void **state)
{
    (void)state;
    folder_new(&here);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(&here);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_is_gross_less_inside_less_the_scopes_within),
        cmocka_unit_test(weighed_calls_are_scaled_back),
        cmocka_unit_test(counts_that_do_not_divide_are_estimates),
        cmocka_unit_test(pairs_of_the_program_outweigh_the_start_up),
        cmocka_unit_test(short_scopes_are_below_the_limit),
        cmocka_unit_test(what_was_not_measured_is_unknown),
        cmocka_unit_test(threads_are_summed),
        cmocka_unit_test(events_give_the_same_sums),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
