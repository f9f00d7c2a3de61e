/* SPDX-License-Identifier: MIT
 * test_liveness.c - activation memory by hand-made graphs: chains, views, results in place, branches, bodies; and the
 * plan of the arena, which must never let two blocks that live at the same time overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/rng.h"
#include "graph_fixture.h"
#include "model/cost/liveness.h"

static const struct poly_binding dims[] = {{"B", 2}};

static struct liveness live(struct graph *g)
{
    tare_error err = TARE_ERROR_INIT;
    struct liveness l = LIVENESS_INIT;
    graph_infer(g);
    if (liveness_of(&l, &g->shapes, dims, 1, &err) < 0) fail_msg("%s", err.text);
    return l;
}

static void done(struct graph *g, struct liveness *l)
{
    liveness_release(l);
    graph_release(g);
}

/* Transpose cannot be done in place: two values of 80 bytes at each step, and the first two are gone by the third. */
static void test_chain(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10]");
    graph_node(&g, "Transpose", "x", "a", "");
    graph_node(&g, "Transpose", "a", "b", "");
    graph_node(&g, "Transpose", "b", "c", "");
    graph_output(&g, "c");
    struct liveness l = live(&g);
    assert_true(l.known);
    assert_int_equal(l.sum, 240);
    assert_int_equal(l.peak, 160);
    assert_int_equal(l.arena, 160);
    assert_string_equal(l.peak_node, "b");
    assert_int_equal(l.n_alive, 2);
    assert_string_equal(l.alive[0].name, "a");
    assert_int_equal(l.alive[0].bytes, 80);
    done(&g, &l);
}

static void test_in_place(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10] w=*float[10,10]");
    graph_node(&g, "MatMul", "x,w", "a", "");
    graph_node(&g, "Relu", "a", "b", "");
    graph_node(&g, "Add", "x,b", "c", ""); /* over the second operand: the first is the caller's */
    graph_node(&g, "Sigmoid", "c", "d", "");
    graph_output(&g, "d");
    struct liveness l = live(&g);
    assert_int_equal(l.sum, 4 * 80);
    assert_int_equal(l.peak, 80);
    assert_int_equal(l.arena, 80);
    done(&g, &l);
}

/* What is read again later must not be written over. */
static void test_not_in_place_while_needed(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10] w=*float[10,10]");
    graph_node(&g, "MatMul", "x,w", "a", "");
    graph_node(&g, "Relu", "a", "b", "");
    graph_node(&g, "Transpose", "b", "t", "");
    graph_node(&g, "MatMul", "t,a", "y", "");
    graph_output(&g, "y");
    struct liveness l = live(&g);
    assert_int_equal(l.peak, 80 + 80 + 400); /* a, t and y; b has gone */
    assert_string_equal(l.peak_node, "y");
    done(&g, &l);
}

static void test_views_cost_nothing(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    const int64_t flat[] = {-1};
    graph_values(&g, "x=float[B,10]");
    graph_ints(&g, "flat", flat, 1);
    graph_node(&g, "Reshape", "x,flat", "v", ""); /* of the caller's memory */
    graph_node(&g, "Tile", "v,flat2", "a", "");
    graph_ints(&g, "flat2", (const int64_t[]){2}, 1);
    graph_node(&g, "Reshape", "a,flat", "b", "");
    graph_node(&g, "Identity", "b", "c", "");
    graph_output(&g, "c");
    struct liveness l = live(&g);
    assert_true(l.known);
    assert_int_equal(l.sum, 160);
    assert_int_equal(l.peak, 160);
    assert_int_equal(l.n_alive, 1);
    done(&g, &l);
}

/* Through a view a value lives as long as the view. */
static void test_view_keeps_alive(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10] w=*float[10,10]");
    graph_ints(&g, "flat", (const int64_t[]){10, 2}, 2);
    graph_node(&g, "MatMul", "x,w", "a", "");
    graph_node(&g, "Reshape", "a,flat", "v", "");
    graph_node(&g, "MatMul", "x,w", "b", "");
    graph_node(&g, "MatMul", "b,v", "y", "");
    graph_output(&g, "y");
    struct liveness l = live(&g);
    assert_int_equal(l.peak, 80 + 80 + 16);
    done(&g, &l);
}

/* The turned weight is made once, when the model is loaded. */
static void test_folded_values_are_weights(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10] w=*float[100,10]");
    graph_node(&g, "Transpose", "w", "t", "");
    graph_node(&g, "MatMul", "x,t", "y", "");
    graph_output(&g, "y");
    struct liveness l = live(&g);
    assert_int_equal(l.sum, 800);
    assert_int_equal(l.peak, 800);
    done(&g, &l);
}

static void test_outputs_stay(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10]");
    graph_node(&g, "Transpose", "x", "a", "");
    graph_node(&g, "Transpose", "x", "b", "");
    graph_node(&g, "Transpose", "x", "unread", "");
    graph_node(&g, "Transpose", "x", "c", "");
    graph_output(&g, "a");
    graph_output(&g, "b");
    graph_output(&g, "c");
    struct liveness l = live(&g);
    assert_int_equal(l.peak, 240);
    assert_int_equal(l.arena, 240);
    assert_int_equal(l.sum, 320);
    done(&g, &l);
}

/* `a` is read inside the branches only, and its bytes are there as long as these run. */
static void test_captured(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10] c=bool[]");
    graph_node(&g, "Transpose", "x", "a", "");
    graph_node(&g, "Transpose", "x", "b", "");
    struct buf n = pb_node("If", "c", "y");
    for (int i = 0; i < 2; i++) {
        struct buf body = BUF_INIT, inner = pb_node("Transpose", "a", i ? "e" : "t"), v = BUF_INIT;
        pb_msg(&body, 1, &inner);
        inner = pb_node("Transpose", i ? "e" : "t", i ? "e2" : "t2");
        pb_msg(&body, 1, &inner);
        pb_str(&body, 2, "branch");
        pb_str(&v, 1, i ? "e2" : "t2");
        pb_msg(&body, 12, &v);
        pb_attr_graph(&n, i ? "else_branch" : "then_branch", &body);
    }
    pb_msg(&g.body, 1, &n);
    graph_node(&g, "Add", "b,y", "z", "");
    graph_output(&g, "z");
    struct liveness l = live(&g);
    assert_true(l.known);
    /* a, b, y and, inside, one more */
    assert_int_equal(l.peak, 4 * 80);
    done(&g, &l);
}

static void test_unknown_sizes(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10]");
    graph_node(&g, "NonZero", "x", "a", "");
    graph_node(&g, "Transpose", "x", "b", "");
    graph_output(&g, "a");
    graph_output(&g, "b");
    struct liveness l = live(&g);
    assert_false(l.known);
    assert_int_equal(l.unknown, 1);
    assert_int_equal(l.peak, 80); /* a lower bound */
    done(&g, &l);
}

static void test_formula(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct buf text = BUF_INIT;
    int64_t v;
    graph_values(&g, "x=float[B,10]");
    graph_node(&g, "Transpose", "x", "a", "");
    graph_node(&g, "Transpose", "a", "b", "");
    graph_output(&g, "b");
    struct liveness l = live(&g);
    poly_print(l.sum_formula, &text);
    assert_string_equal(text.data, "80*B");
    assert_true(poly_eval(l.sum_formula, dims, 1, &v));
    assert_int_equal(v, l.sum);
    buf_release(&text);
    done(&g, &l);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[B,10]");
    graph_node(&g, "Transpose", "x", "a", "");
    graph_node(&g, "Transpose", "a", "b", "");
    graph_output(&g, "b");
    graph_infer(&g);
    long held = mem_live_blocks();
    for (long n = 0;; n++) {
        tare_error err = TARE_ERROR_INIT;
        struct liveness l = LIVENESS_INIT;
        mem_fail_after(n);
        tare_status s = liveness_of(&l, &g.shapes, dims, 1, &err);
        mem_fail_after(-1);
        liveness_release(&l);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(mem_live_blocks() <= held + 1); /* the space of polynomials may have grown */
        assert_true(n < 100);
    }
    graph_release(&g);
}

/* ---- the plan ---- */

static uint64_t check_plan(const struct plan_block *b, size_t n, uint64_t end)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t alive = 0;
        assert_true(b[i].offset + b[i].bytes <= end);
        for (size_t k = 0; k < n; k++) {
            bool same_time = b[i].first <= b[k].last && b[k].first <= b[i].last;
            bool apart = b[i].offset + b[i].bytes <= b[k].offset || b[k].offset + b[k].bytes <= b[i].offset;
            if (i != k && same_time) assert_true(apart);
            if (b[k].first <= b[i].first && b[i].first <= b[k].last) alive += b[k].bytes;
        }
        if (alive > peak) peak = alive;
    }
    return peak;
}

static void test_plan_never_overlaps(void **state)
{
    (void)state;
    enum { N = 400, STEPS = 300 };
    struct rng r;
    rng_seed(&r, 11);
    for (int round = 0; round < 10; round++) {
        struct plan_block b[N];
        uint64_t end;
        for (size_t i = 0; i < N; i++) {
            uint32_t first = (uint32_t)rng_below(&r, STEPS),
                     long_for = (uint32_t)rng_below(&r, round < 5 ? 10 : STEPS);
            uint32_t last = first + long_for < STEPS ? first + long_for : STEPS - 1;
            b[i] = (struct plan_block){first, last, 1 + rng_below(&r, 1000), 0};
        }
        assert_int_equal(plan_place(b, N, STEPS, &end, NULL), TARE_OK);
        uint64_t peak = check_plan(b, N, end);
        assert_true(end >= peak);
        assert_true(end < 2 * peak);
    }
}

static void test_plan_fills_gaps(void **state)
{
    (void)state;
    struct plan_block b[] = {{0, 9, 100, 0}, {0, 4, 60, 0}, {5, 9, 60, 0}, {2, 3, 10, 0}, {0, 0, 5, 0}};
    uint64_t end;
    assert_int_equal(plan_place(b, 5, 10, &end, NULL), TARE_OK);
    check_plan(b, 5, end);
    assert_int_equal(end, 170);
    assert_int_equal(b[1].offset, b[2].offset);
    assert_int_equal(plan_place(b, 0, 0, &end, NULL), TARE_OK);
    assert_int_equal(end, 0);
}

/* Far more blocks alive at once than can be compared with each other: still a plan, and soon. */
static void test_plan_of_many(void **state)
{
    (void)state;
    enum { N = 30000 };
    struct plan_block *b = mem_new(N, sizeof *b);
    uint64_t end, sum = 0;
    for (uint32_t i = 0; i < N; i++) {
        b[i] = (struct plan_block){i, N - 1, 1 + i % 7, 0};
        sum += b[i].bytes;
    }
    assert_int_equal(plan_place(b, N, N, &end, NULL), TARE_OK);
    assert_int_equal(end, sum); /* all are alive at the end: no plan does with less, and none needs more */
    mem_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_not_in_place_while_needed),
        cmocka_unit_test(test_views_cost_nothing),
        cmocka_unit_test(test_view_keeps_alive),
        cmocka_unit_test(test_folded_values_are_weights),
        cmocka_unit_test(test_outputs_stay),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_unknown_sizes),
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_plan_never_overlaps),
        cmocka_unit_test(test_plan_fills_gaps),
        cmocka_unit_test(test_plan_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
