/* SPDX-License-Identifier: MIT
 * test_infer_bound.c - which values inputs may take, on graphs whose answer is known by hand: plain
 * embeddings, shifted, scaled and clipped indices, graphs inside nodes, functions, and what cannot be
 * followed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/infer/infer.h"
#include "model/infer/range.h"
#include "onnx_fixture.h"

struct maker {
    struct buf graph, functions;
};
#define MAKER_INIT {BUF_INIT, BUF_INIT}

static void input(struct maker *m, const char *name)
{
    struct buf v = pb_value(name, 7);
    pb_msg(&m->graph, 11, &v);
}

static void table(struct maker *m, const char *name, int64_t rows, int64_t columns)
{
    int64_t dims[] = {rows, columns};
    struct buf t = pb_tensor(name, 2, dims, 2, (size_t)(rows * columns));
    pb_msg(&m->graph, 5, &t);
}

static void constant(struct maker *m, const char *name, int64_t a, int64_t b)
{
    int64_t both[] = {a, b};
    struct buf t = pb_ints(name, both, 2);
    pb_msg(&m->graph, 5, &t);
}

static void node(struct maker *m, const char *op, const char *inputs, const char *outputs)
{
    struct buf n = pb_node(op, inputs, outputs);
    pb_msg(&m->graph, 1, &n);
}

static struct infer_bound bound_of(struct maker *k, const char *name)
{
    struct buf bytes = pb_model(&k->graph);
    struct onnx_model m = ONNX_MODEL_INIT;
    struct infer_bound b[8] = {{0}};
    tare_error err = TARE_ERROR_INIT;
    buf_add(&bytes, k->functions.data, k->functions.len);
    buf_release(&k->functions);
    *k = (struct maker)MAKER_INIT;
    if (onnx_read(&m, "made", bytes.data, bytes.len, &err) < 0) fail_msg("%s", err.text);
    size_t n = m.graph.inputs.n, i = 0;
    assert_true(n < 8);
    infer_input_bounds(&m, b, n, NULL);
    while (i < n && strcmp(m.graph.inputs.items[i].name, name) != 0) i++;
    onnx_close(&m);
    buf_release(&bytes);
    return b[i];
}

static void expect(struct maker *k, int64_t limit)
{
    struct infer_bound b = bound_of(k, "ids");
    if (b.limit != limit) fail_msg("limit %lld (%s), not %lld", (long long)b.limit, b.why, (long long)limit);
}

/* ids -> <the nodes added by the test> -> i -> Gather(table of `rows`) */
static struct maker begin(int64_t rows)
{
    struct maker k = MAKER_INIT;
    input(&k, "ids");
    table(&k, "table", rows, 3);
    return k;
}

static void expect_through(struct maker *k, int64_t limit)
{
    node(k, "Gather", "table,i", "out");
    expect(k, limit);
}

static void finds_the_embedding(void **state)
{
    (void)state;
    struct maker k = begin(300);
    node(&k, "Gather", "table,ids", "out");
    struct infer_bound b = bound_of(&k, "ids");
    assert_int_equal(b.limit, 300);
    assert_string_equal(b.why, "Gather 'out' has 300 rows");
    k = begin(300);
    node(&k, "Gather", "table,ids", "out");
    assert_int_equal(bound_of(&k, "no such input").limit, 0);
    k = begin(300);
    node(&k, "Shape", "ids", "i");
    expect_through(&k, 0);
}

static void takes_the_smallest_of_all_uses(void **state)
{
    (void)state;
    struct maker k = begin(300);
    table(&k, "small", 7, 2);
    table(&k, "large", 900, 2);
    node(&k, "Gather", "table,ids", "a");
    node(&k, "Gather", "small,ids", "b");
    node(&k, "Gather", "large,ids", "c");
    expect(&k, 7);
}

static void follows_what_keeps_values(void **state)
{
    (void)state;
    static const char *const ops[] = {"Cast",   "Identity", "Reshape", "Unsqueeze", "Squeeze",
                                      "Slice",  "Expand",   "Concat",  "Transpose", "Flatten",
                                      "Gather", "Tile",     "Split"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct maker k = begin(50);
        constant(&k, "c", 0, 1);
        node(&k, ops[i], "ids,c", "i");
        expect_through(&k, 50);
    }
    struct maker k = begin(50);
    input(&k, "other");
    node(&k, "Where", "other,other,ids", "i");
    expect_through(&k, 50);
    k = begin(50); /* the other branch may hold anything: it must not be added as if it were ids */
    input(&k, "other");
    node(&k, "Where", "other,other,ids", "mixed");
    node(&k, "Add", "mixed,ids", "i");
    expect_through(&k, 1);
    k = begin(50);
    node(&k, "Where", "ids,c,c", "i"); /* a condition gives no values */
    expect_through(&k, 0);
}

static void follows_arithmetic(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs;
        int64_t a, b, limit;
    } cases[] = {
        {"Add", "ids,c", 2, 2, 98},
        {"Add", "c,ids", 0, 2, 98},
        {"Add", "ids,c", -5, -5, 105},
        {"Sub", "ids,c", 1, 1, 101},
        {"Sub", "ids,c", -1, 3, 99},
        {"Sub", "c,ids", 10, 10, 111},
        {"Mul", "ids,c", 2, 2, 50},
        {"Mul", "ids,c", 0, 3, 34},
        {"Mul", "ids,c", -1, -1, 101},
        {"Mul", "ids,c", -1, 1, 1},
        {"Mod", "ids,c", 50, 50, 0},
        {"Mod", "ids,c", 500, 500, 100},
        {"Min", "ids,c", 10, 20, 0},
        {"Min", "ids,c", 10, 200, 100},
        {"Max", "ids,c", 10, 20, 80},
        {"Div", "ids,c", 4, 4, 100},
        {"Add", "ids,c", 100, 200, 1},
        {"Add", "ids,ids", 0, 0, 50},
        {"Sub", "ids,ids", 0, 0, 100},
        {"Mul", "ids,ids", 0, 0, 1},
        {"Add", "ids,c", INT64_MAX, INT64_MAX, 1},
        {"Clip", "ids,c,c", 5, 5, 0},
        {"Clip", "ids,,c", 500, 500, 100},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maker k = begin(100);
        constant(&k, "c", cases[i].a, cases[i].b);
        node(&k, cases[i].op, cases[i].inputs, "i");
        node(&k, "Gather", "table,i", "out");
        struct infer_bound b = bound_of(&k, "ids");
        if (b.limit != cases[i].limit) fail_msg("case %zu %s: %lld", i, cases[i].op, (long long)b.limit);
    }
}

static void promises_only_zero_where_it_is_lost(void **state)
{
    (void)state;
    struct maker k = begin(100);
    input(&k, "other");
    node(&k, "Add", "ids,other", "i");
    expect_through(&k, 1);
    k = begin(100);
    input(&k, "hidden"); /* [batch, 4]: dimension 0 is known only at run time, 1 is not */
    node(&k, "Gather", "hidden,ids", "out");
    expect(&k, 1);
    k = begin(100);
    input(&k, "hidden");
    struct buf n = pb_node("Gather", "hidden,ids", "out");
    pb_attr_int(&n, "axis", -1);
    pb_msg(&k.graph, 1, &n);
    expect(&k, 4);
    k = begin(100); /* position ids out of a mask */
    constant(&k, "one", 1, 1);
    node(&k, "CumSum", "ids,one", "s");
    node(&k, "Mul", "s,ids", "p");
    node(&k, "Sub", "p,one", "i");
    expect_through(&k, 2);
}

static void knows_other_uses(void **state)
{
    (void)state;
    struct maker k = begin(100);
    constant(&k, "depth", 12, 12);
    node(&k, "OneHot", "ids,depth,values", "out");
    expect(&k, 12);
    k = begin(100);
    node(&k, "GatherND", "table,ids", "out");
    expect(&k, 3);
    k = begin(100);
    struct buf n = pb_node("GatherElements", "table,ids", "out");
    pb_attr_int(&n, "axis", 1);
    pb_msg(&k.graph, 1, &n);
    expect(&k, 3);
    for (int segment = 0; segment < 3; segment++) {
        static const char *const inputs[] = {"ids,,w,p,s", "other,ids,w,p,s", "other,,w,p,s,g,b,m,ids"};
        k = begin(100);
        input(&k, "other");
        table(&k, "w", 1000, 2), table(&k, "p", 512, 2), table(&k, "s", 2, 2);
        n = pb_node("EmbedLayerNormalization", inputs[segment], "out");
        pb_str(&n, 7, "com.microsoft");
        pb_msg(&k.graph, 1, &n);
        expect(&k, segment == 0 ? 1000 : segment == 1 ? 2 : 512);
    }
    k = begin(100); /* a quantised table */
    node(&k, "DequantizeLinear", "table,s,z", "float_table");
    node(&k, "Gather", "float_table,ids", "out");
    expect(&k, 100);
}

static struct buf body_graph(struct buf *n, const char *in, const char *out)
{
    struct buf g = BUF_INIT, v;
    pb_msg(&g, 1, n);
    for (const char *s = in; s && *s;) {
        char name[32];
        const char *comma = strchr(s, ',');
        snprintf(name, sizeof name, "%.*s", (int)(comma ? comma - s : (long)strlen(s)), s);
        v = pb_value(name, 7);
        pb_msg(&g, 11, &v);
        s = comma ? comma + 1 : NULL;
    }
    for (const char *s = out; s && *s;) {
        char name[32];
        const char *comma = strchr(s, ',');
        snprintf(name, sizeof name, "%.*s", (int)(comma ? comma - s : (long)strlen(s)), s);
        v = pb_value(name, 7);
        pb_msg(&g, 12, &v);
        s = comma ? comma + 1 : NULL;
    }
    return g;
}

static void follows_into_graphs(void **state)
{
    (void)state;
    struct maker k = begin(60);
    struct buf n = pb_node("Gather", "table,ids", "inside"), g = body_graph(&n, "", "inside"), outer;
    outer = pb_node("If", "flag", "out");
    pb_attr_graph(&outer, "then_branch", &g);
    pb_msg(&k.graph, 1, &outer);
    expect(&k, 60);

    k = begin(60); /* out of an If: either ids or ids + 10 */
    constant(&k, "ten", 10, 10);
    outer = pb_node("If", "flag", "i");
    n = pb_node("Identity", "ids", "same");
    g = body_graph(&n, "", "same");
    pb_attr_graph(&outer, "then_branch", &g);
    n = pb_node("Add", "ids,ten", "same");
    g = body_graph(&n, "", "same");
    pb_attr_graph(&outer, "else_branch", &g);
    pb_msg(&k.graph, 1, &outer);
    expect_through(&k, 50);

    k = begin(60); /* a Loop that adds at every step cannot be followed */
    constant(&k, "ten", 10, 10);
    outer = pb_node("Loop", "trips,cond,ids", "i");
    n = pb_node("Add", "carried,ten", "next");
    g = body_graph(&n, "iter,cond_in,carried", "cond_in,next");
    pb_attr_graph(&outer, "body", &g);
    pb_msg(&k.graph, 1, &outer);
    expect_through(&k, 1);

    k = begin(60); /* one that hands it round can */
    outer = pb_node("Loop", "trips,cond,ids", "i");
    n = pb_node("Identity", "carried", "next");
    g = body_graph(&n, "iter,cond_in,carried", "cond_in,next");
    pb_attr_graph(&outer, "body", &g);
    pb_msg(&k.graph, 1, &outer);
    expect_through(&k, 60);

    k = begin(60); /* a Scan over the ids */
    outer = pb_node("Scan", "ids", "i");
    n = pb_node("Identity", "one", "next");
    g = body_graph(&n, "one", "next");
    pb_attr_graph(&outer, "body", &g);
    pb_attr_int(&outer, "num_scan_inputs", 1);
    pb_msg(&k.graph, 1, &outer);
    expect_through(&k, 60);
}

static void add_function(struct maker *k, const char *name, struct buf *body)
{
    struct buf f = BUF_INIT;
    pb_str(&f, 1, name);
    pb_str(&f, 4, "x");
    pb_str(&f, 5, "y");
    pb_msg(&f, 7, body);
    pb_str(&f, 10, "mine");
    pb_msg(&k->functions, 25, &f);
}

static void follows_into_functions(void **state)
{
    (void)state;
    struct maker k = begin(60);
    struct buf n = pb_node("Identity", "x", "y");
    add_function(&k, "Same", &n);
    n = pb_node("Same", "ids", "i");
    pb_str(&n, 7, "mine");
    pb_msg(&k.graph, 1, &n);
    expect_through(&k, 60);

    k = begin(60); /* a function that calls itself is no reason to hang */
    n = pb_node("Again", "x", "y");
    pb_str(&n, 7, "mine");
    add_function(&k, "Again", &n);
    n = pb_node("Again", "ids", "i");
    pb_str(&n, 7, "mine");
    pb_msg(&k.graph, 1, &n);
    expect_through(&k, 1);
}

/* Every range must contain every value that can really occur: tried over all small chains. */
static void ranges_are_never_too_tight(void **state)
{
    (void)state;
    enum { ROWS = 12, STEPS = 3, OPS = 8 };
    for (int chain = 0; chain < OPS * OPS * OPS; chain++) {
        struct range r = range_input();
        int64_t value[64];
        int code[STEPS] = {chain % OPS, chain / OPS % OPS, chain / OPS / OPS};
        for (int x = 0; x < 64; x++) value[x] = x;
        for (int s = 0; s < STEPS; s++) {
            switch (code[s]) {
            case 0: r = range_shift(r, 3, 3); break;
            case 1: r = range_shift(r, -2, -2); break;
            case 2: r = range_scale(r, 2, 2); break;
            case 3: r = range_scale(r, -1, -1); break;
            case 4: r = range_cap(r, 7, 7); break;
            case 5: r = range_floor(r, 4, 4); break;
            case 6: r = range_mod(r, 5); break;
            default: r = range_shrink(r);
            }
            for (int x = 0; x < 64; x++) {
                int64_t v = value[x];
                value[x] = code[s] == 0   ? v + 3
                           : code[s] == 1 ? v - 2
                           : code[s] == 2 ? v * 2
                           : code[s] == 3 ? -v
                           : code[s] == 4 ? (v < 7 ? v : 7)
                           : code[s] == 5 ? (v > 4 ? v : 4)
                           : code[s] == 6 ? ((v % 5) + 5) % 5
                                          : v / 2;
            }
        }
        int64_t limit = range_limit(range_add(r, range_input()), ROWS);
        for (int x = 0; x < 64; x++) value[x] += x; /* so that bounds wrong by a constant show */
        if (limit == 1) continue;                   /* nothing else could be promised */
        for (int x = 0; x < 64 && (limit == 0 || x < limit); x++) {
            if (value[x] < -ROWS || value[x] >= ROWS)
                fail_msg("chain %d: limit %lld, but %d gives %lld", chain, (long long)limit, x,
                         (long long)value[x]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_embedding),
        cmocka_unit_test(takes_the_smallest_of_all_uses),
        cmocka_unit_test(follows_what_keeps_values),
        cmocka_unit_test(follows_arithmetic),
        cmocka_unit_test(promises_only_zero_where_it_is_lost),
        cmocka_unit_test(knows_other_uses),
        cmocka_unit_test(follows_into_graphs),
        cmocka_unit_test(follows_into_functions),
        cmocka_unit_test(ranges_are_never_too_tight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
