/* SPDX-License-Identifier: MIT
 * test_infer.c - the engine of shape inference: scopes, order, functions, what the file and a profiled run say, graphs
 * that are wrong, sizes. The rules of operators have tests of their own. */
#include "infer_fixture.h"

/* ---- symbols ---- */

static void test_free_dimensions(void **state)
{
    (void)state;
    struct made_model m;
    made(&m, "input x float32 batch ? 8\noutput y\nnode Relu x y");
    made_expect(&m, "y", "float32[batch,x.1,8]");
    assert_int_equal(m.result.n_nodes, 1);
    assert_int_equal(m.result.n_unknown, 0);
    assert_null(infer_value(m.result.main, "nothing"));
    made_release(&m);
}

static void test_sums_in_names(void **state)
{
    (void)state;
    made_gives("input x float32 past+seq 8\ninput p float32 past 8\ninput s float32 seq 8\noutput y\n"
               "node Concat p,s c axis=0\nnode Add c,x y",
               "y", "float32[past + seq,8]");
    made_gives("input x float32 2*s 8\noutput y\nnode Relu x y", "y", "float32[2*s,8]");
    made_gives("input x float32 floor(s/2) 8\noutput y\nnode Relu x y", "y", "float32[floor(s/2),8]");
}

static void test_bound_dimensions(void **state)
{
    (void)state;
    struct made_model m;
    struct buf g = BUF_INIT;
    struct poly_binding dims[] = {{"batch", 4}, {"x.1", 3}};
    struct infer_options o = {.dims = dims, .n_dims = 2};
    made_over(&m, &g, made_graph(&g, "input x float32 batch ?\noutput y\nnode Flatten x y axis=0"));
    made_infer(&m, &o);
    made_expect(&m, "x", "float32[4,3]");
    made_expect(&m, "y", "float32[1,12]");
    made_release(&m);
}

static void test_negative_binding_is_refused(void **state)
{
    (void)state;
    struct made_model m;
    struct buf g = BUF_INIT;
    struct infer_options o = {.dims = (struct poly_binding[]){{"batch", -4}}, .n_dims = 1};
    made_over(&m, &g, made_graph(&g, "input x float32 batch\noutput y\nnode Relu x y"));
    made_infer(&m, &o);
    assert_int_equal(m.status, TARE_INVALID);
    assert_non_null(strstr(m.err.text, "'batch' cannot be -4"));
    made_release(&m);
}

/* ---- what the file says ---- */

static void test_annotations_fill_what_rules_leave(void **state)
{
    (void)state;
    struct made_model m;
    made(&m, "input x float32 batch 8\noutput y\nsaid y float32 batch 7\nsaid z float32 who 3\n"
             "node Strange x y\nnode Strange x z");
    made_expect(&m, "y", "float32[batch,7]");
    made_expect(&m, "z", "float32[?,3]"); /* no input has that name: nobody can choose it */
    assert_int_equal(m.result.n_unknown, 1);
    assert_string_equal(m.result.main->nodes[1].why, "no rule for operator Strange");
    assert_null(m.result.main->nodes[0].why);
    made_release(&m);
}

static void test_rules_go_before_annotations(void **state)
{
    (void)state;
    made_gives("input x float32 batch 8\noutput y\nsaid y float32 1 9\nnode Relu x y", "y",
               "float32[batch,8]");
    made_gives("input x float32 batch 8\noutput y\nsaid y float32 1\nnode Relu x y", "y", "float32[batch,8]");
    /* how many are not 0 is known at run time only, whatever an earlier run had */
    made_gives("input x float32 4\noutput y\nsaid y int64 1 3\nnode NonZero x y", "y", "int64[1,?]");
}

static void test_seen_shapes_fill_the_rest(void **state)
{
    (void)state;
    struct made_model m;
    struct buf g = BUF_INIT;
    struct infer_seen seen[] = {{"y", ONNX_INT64, (int64_t[]){1, 3}, 2},
                                {"x", ONNX_FLOAT, (int64_t[]){9}, 1}};
    struct infer_options o = {.seen = seen, .n_seen = 2};
    made_over(&m, &g, made_graph(&g, "input x float32 4\noutput z\nnode NonZero x y\nnode Neg y z"));
    made_infer(&m, &o);
    made_expect(&m, "y", "int64[1,3]");
    made_expect(&m, "z", "int64[1,3]");
    made_expect(&m, "x", "float32[4]");
    assert_true(infer_value(m.result.main, "y")->profiled);
    assert_false(infer_value(m.result.main, "x")->profiled);
    assert_int_equal(m.result.n_unknown, 0);
    made_release(&m);
}

static void test_folded_is_made_of_constants(void **state)
{
    (void)state;
    struct made_model m;
    made(&m, "input x float32 4\nweight w 4\noutput y\noutput r\nnode Neg w c\nnode Add c,x y\n"
             "node RandomNormalLike w r");
    assert_int_equal(m.status, TARE_OK);
    assert_true(infer_value(m.result.main, "w")->folded);
    assert_non_null(infer_value(m.result.main, "w")->constant);
    assert_true(infer_value(m.result.main, "c")->folded);
    assert_false(infer_value(m.result.main, "y")->folded);
    assert_false(infer_value(m.result.main, "r")->folded);
    made_release(&m);
}

/* ---- order ---- */

static void test_order_is_found(void **state)
{
    (void)state;
    struct made_model m;
    made(&m, "input x float32 4\noutput d\nnode Neg c d name=third\nnode Neg x b name=first\n"
             "node Neg b c name=second\nnode Neg x e name=fourth");
    made_expect(&m, "d", "float32[4]");
    const struct infer_node *n = m.result.main->nodes;
    const char *want[] = {"first", "second", "third", "fourth"};
    for (size_t i = 0; i < 4; i++) assert_string_equal(n[i].node->name, want[i]);
    made_release(&m);
}

static void test_wrong_graphs(void **state)
{
    (void)state;
    made_fails("input x float32 4\noutput c\nnode Add x,c b name=one\nnode Neg b c name=two",
               "(Add): needs its own output: the graph has a cycle");
    made_fails("input x float32 4\noutput c\nnode Neg x c name=one\nnode Neg x c name=two",
               "made: value 'c' is made twice: by node 'one' (Neg) and by node 'two' (Neg)");
    made_fails("input x float32 4\noutput x\nnode Neg x x",
               "value 'x' is made twice: by an input or initializer");
    made_fails("input x float32 4\noutput c\nnode Add x,gone c name=one",
               "node 'one' (Add): input 'gone' is made by no node, input or initializer");
    made_fails("input x float32 4\noutput c\nnode Neg gone c", "the node (Neg) that makes 'c': input 'gone'");
    made_fails("input x float32 4\noutput gone\nnode Neg x c",
               "output 'gone' of graph 'g' is made by no node");
    made_fails("input x float32 4\ninput y float32 3\noutput z\nnode Add x,y z name=sum",
               "node 'sum' (Add): dimensions 4 and 3 do not go together");
}

static void test_long_chains(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct made_model m;
    struct buf g = BUF_INIT, node;
    char from[24], to[24];
    for (int i = N; i-- > 0;) { /* backwards: the longest way to sort */
        snprintf(from, sizeof from, "v%d", i);
        snprintf(to, sizeof to, "v%d", i + 1);
        node = pb_node("Neg", from, to);
        pb_msg(&g, 1, &node);
    }
    made_over(&m, &g, made_graph(&g, "input v0 float32 n 3\noutput v20000"));
    made_infer(&m, NULL);
    made_expect(&m, "v20000", "float32[n,3]");
    assert_string_equal(m.result.main->nodes[0].outputs[0]->name, "v1");
    made_release(&m);
}

/* ---- functions ---- */

/* local.F(a, b) { c = Concat(a, b) along the attribute "along"; r = Relu(c) } */
static struct buf function_f(const char *inner)
{
    struct buf f = BUF_INIT, n = pb_node(inner, "a,b", "c"), a = BUF_INIT;
    pb_str(&f, 1, "F");
    pb_str(&f, 10, "local");
    pb_str(&f, 4, "a");
    pb_str(&f, 4, "b");
    pb_str(&f, 5, "r");
    pb_str(&f, 6, "along");
    pb_str(&a, 1, "axis");
    pb_str(&a, 21, "along");
    pb_int(&a, 20, 2);
    pb_msg(&n, 5, &a);
    if (strcmp(inner, "F") == 0) pb_str(&n, 7, "local");
    pb_msg(&f, 7, &n);
    n = pb_node("Relu", "c", "r");
    pb_msg(&f, 7, &n);
    return f;
}

static void call_f(struct made_model *m, const char *inner, int64_t along)
{
    struct buf g = BUF_INIT, n = pb_node("F", "x,y", "z"), f = function_f(inner);
    pb_str(&n, 7, "local");
    pb_str(&n, 3, "call");
    pb_attr_int(&n, "along", along);
    pb_msg(&g, 1, &n);
    made_over(m, &g, made_graph(&g, "input x float32 b 3\ninput y float32 b 3\noutput z"));
    pb_msg(&m->bytes, 25, &f);
    made_infer(m, NULL);
}

static void test_functions_are_written_out(void **state)
{
    (void)state;
    struct made_model m;
    call_f(&m, "Concat", 1);
    made_expect(&m, "z", "float32[b,6]");
    const struct infer_node *call = &m.result.main->nodes[0];
    assert_int_equal(call->n_bodies, 1);
    assert_int_equal(call->bodies[0]->n_nodes, 2);
    assert_ptr_equal(call->bodies[0]->call, call);
    assert_int_equal(m.result.n_nodes, 3);
    assert_null(infer_value(call->bodies[0], "x")); /* a function sees nothing of its caller */
    assert_non_null(infer_value(call->bodies[0], "a"));
    made_release(&m);
    call_f(&m, "Concat", 0);
    made_expect(&m, "z", "float32[2*b,3]");
    made_release(&m);
}

/* The call leaves "along" out; the function says what it is then, and of which version its nodes are. */
static void test_functions_have_defaults(void **state)
{
    (void)state;
    struct made_model m;
    struct buf g = BUF_INIT, n = pb_node("F", "x,y", "z"), f = function_f("Concat"), a = BUF_INIT,
               o = BUF_INIT;
    pb_str(&n, 7, "local");
    pb_msg(&g, 1, &n);
    pb_str(&a, 1, "along");
    pb_int(&a, 3, 1);
    pb_int(&a, 20, 2);
    pb_msg(&f, 11, &a);
    pb_str(&o, 1, "");
    pb_int(&o, 2, 13);
    pb_msg(&f, 9, &o);
    made_over(&m, &g, made_graph(&g, "input x float32 b 3\ninput y float32 b 3\noutput z"));
    pb_msg(&m.bytes, 25, &f);
    made_infer(&m, NULL);
    made_expect(&m, "z", "float32[b,6]");
    assert_int_equal(m.result.main->nodes[0].bodies[0]->nodes[0].opset, 13);
    made_release(&m);
}

static void test_wrong_functions(void **state)
{
    (void)state;
    struct made_model m;
    call_f(&m, "F", 0);
    assert_int_equal(m.status, TARE_INVALID);
    assert_non_null(strstr(m.err.text, "function 'F' calls itself"));
    made_release(&m);
    call_f(&m, "Concat", 7);
    assert_int_equal(m.status, TARE_INVALID);
    assert_non_null(
        strstr(m.err.text, "function 'F': the node (Concat) that makes 'c': axis 7 does not exist"));
    made_release(&m);
}

/* f0 calls f1 four times, f1 calls f2 four times, ..: 4^20 nodes. */
static void test_exploding_functions_are_refused(void **state)
{
    (void)state;
    struct made_model m;
    struct buf g = BUF_INIT, n = pb_node("f0", "x", "y"), f, all = BUF_INIT;
    char name[16];
    pb_str(&n, 7, "local");
    pb_msg(&g, 1, &n);
    made_over(&m, &g, made_graph(&g, "input x float32 b 3\noutput y"));
    for (int i = 0; i < 20; i++) {
        f = (struct buf)BUF_INIT;
        snprintf(name, sizeof name, "f%d", i);
        pb_str(&f, 1, name);
        pb_str(&f, 10, "local");
        pb_str(&f, 4, "v0");
        pb_str(&f, 5, "v4");
        snprintf(name, sizeof name, "f%d", i + 1);
        for (int k = 0; k < 4; k++) {
            char from[8], to[8];
            snprintf(from, sizeof from, "v%d", k);
            snprintf(to, sizeof to, "v%d", k + 1);
            n = pb_node(i == 19 ? "Neg" : name, from, to);
            if (i < 19) pb_str(&n, 7, "local");
            pb_msg(&f, 7, &n);
        }
        pb_msg(&all, 25, &f);
    }
    buf_add(&m.bytes, all.data, all.len);
    buf_release(&all);
    made_infer(&m, NULL);
    assert_int_equal(m.status, TARE_INVALID);
    assert_non_null(strstr(m.err.text, "too many to infer"));
    made_release(&m);
}

/* One node with very many inputs, called very often: as bad as many nodes. */
static void test_wide_functions_are_refused(void **state)
{
    (void)state;
    enum { WIDE = 20000, CALLS = 2000 };
    struct made_model m;
    struct buf g = BUF_INIT, f = BUF_INIT, n = BUF_INIT;
    char name[16];
    for (int i = 0; i < CALLS; i++) {
        snprintf(name, sizeof name, "y%d", i);
        n = pb_node("wide", "x", name);
        pb_str(&n, 7, "local");
        pb_msg(&g, 1, &n);
    }
    made_over(&m, &g, made_graph(&g, "input x float32 b 3\noutput y0"));
    for (int i = 0; i < WIDE; i++) pb_str(&n, 1, "a");
    pb_str(&n, 2, "r");
    pb_str(&n, 4, "Sum");
    pb_str(&f, 1, "wide");
    pb_str(&f, 10, "local");
    pb_str(&f, 4, "a");
    pb_str(&f, 5, "r");
    pb_msg(&f, 7, &n);
    pb_msg(&m.bytes, 25, &f);
    made_infer(&m, NULL);
    assert_int_equal(m.status, TARE_INVALID);
    assert_non_null(strstr(m.err.text, "too many to infer"));
    made_release(&m);
}

/* ---- bodies ---- */

static void body(struct buf *node, const char *attribute, const char *text)
{
    struct buf g = BUF_INIT;
    made_graph(&g, text);
    pb_attr_graph(node, attribute, &g);
}

/* The branches take `late` from around them; the node that makes it stands after. */
static void test_bodies_capture_and_order(void **state)
{
    (void)state;
    struct made_model m;
    struct buf g = BUF_INIT, n = pb_node("If", "cond", "y");
    body(&n, "then_branch", "output t\nnode Neg late t");
    body(&n, "else_branch", "output e\nnode Relu late e");
    pb_msg(&g, 1, &n);
    made_over(&m, &g, made_graph(&g, "input cond bool\ninput x float32 b 3\noutput y\nnode Abs x late"));
    made_infer(&m, NULL);
    made_expect(&m, "y", "float32[b,3]");
    assert_string_equal(m.result.main->nodes[0].node->op, "Abs");
    assert_int_equal(m.result.main->nodes[1].n_bodies, 2);
    assert_int_equal(m.result.n_nodes, 4);
    made_release(&m);
}

/* ---- limits ---- */

static void test_hostile_dimensions(void **state)
{
    (void)state;
    struct made_model m;
    made(&m, "input x float32 4611686018427387904 4611686018427387904\noutput y\nnode Flatten x y axis=0");
    made_expect(&m, "y", "float32[1,?]"); /* too large to be a number */
    assert_null(infer_elements(m.result.space, infer_value(m.result.main, "x")));
    made_release(&m);
}

static void test_too_many_dimensions(void **state)
{
    (void)state;
    char text[400] = "input x float32";
    for (int i = 0; i < 70; i++) strcat(text, " 1");
    strcat(text, "\noutput y\nnode Relu x y");
    made_fails(text, "value 'x' has 70 dimensions, at most 64 are possible");
}

static void test_sizes(void **state)
{
    (void)state;
    struct made_model m;
    struct buf b = BUF_INIT;
    made(&m, "input x float16 n 3\ninput q int4 n 3\noutput y\nnode Relu x y");
    poly_print(infer_elements(m.result.space, infer_value(m.result.main, "y")), &b);
    assert_string_equal(b.data, "3*n");
    buf_clear(&b);
    poly_print(infer_bytes(m.result.space, infer_value(m.result.main, "y")), &b);
    assert_string_equal(b.data, "6*n");
    int64_t bytes;
    const struct poly *q = infer_bytes(m.result.space, infer_value(m.result.main, "q"));
    assert_true(poly_eval(q, (struct poly_binding[]){{"n", 5}}, 1, &bytes) && bytes == 8);
    buf_release(&b);
    made_release(&m);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char text[] = "input x float32 batch seq 8\nints s 0 -1\nscalar one 1\noutput y\noutput w\n"
                               "node Shape x d\nnode Gather d,one n\nnode Mul n,one m\nnode Reshape x,s y\n"
                               "node Add y,y w\nsaid w float32 batch 3";
    long live = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    struct made_model m;
    struct buf g = BUF_INIT;
    made_over(&m, &g, made_graph(&g, text));
    assert_int_equal(onnx_read(&m.model, "made", m.bytes.data, m.bytes.len, NULL), TARE_OK);
    for (long n = 0; s == TARE_NOMEM && n < 2000; n++) {
        long before = mem_live_blocks();
        mem_fail_after(n);
        s = infer_model(&m.result, &m.model, NULL, &m.err);
        mem_fail_after(-1);
        if (s < 0) assert_int_equal(mem_live_blocks(), before);
    }
    assert_int_equal(s, TARE_OK);
    made_expect(&m, "w", "float32[batch,8*seq]");
    made_release(&m);
    assert_int_equal(mem_live_blocks(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_dimensions),
        cmocka_unit_test(test_sums_in_names),
        cmocka_unit_test(test_bound_dimensions),
        cmocka_unit_test(test_negative_binding_is_refused),
        cmocka_unit_test(test_annotations_fill_what_rules_leave),
        cmocka_unit_test(test_rules_go_before_annotations),
        cmocka_unit_test(test_seen_shapes_fill_the_rest),
        cmocka_unit_test(test_folded_is_made_of_constants),
        cmocka_unit_test(test_order_is_found),
        cmocka_unit_test(test_wrong_graphs),
        cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_functions_are_written_out),
        cmocka_unit_test(test_functions_have_defaults),
        cmocka_unit_test(test_wrong_functions),
        cmocka_unit_test(test_exploding_functions_are_refused),
        cmocka_unit_test(test_wide_functions_are_refused),
        cmocka_unit_test(test_bodies_capture_and_order),
        cmocka_unit_test(test_hostile_dimensions),
        cmocka_unit_test(test_too_many_dimensions),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("infer", tests, NULL, NULL);
}
