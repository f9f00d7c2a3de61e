/* SPDX-License-Identifier: MIT
 * test_infer_flow.c - what shape inference says of If, Loop and Scan with their bodies, of sequences and optionals, on
 * graphs whose answer is known by hand; and that every allocation may fail. */
#include "infer_case.h"

struct flow {
    struct buf graph;
    struct buf bytes;
    struct onnx_model model;
    struct inferred made;
};
#define FLOW_INIT {BUF_INIT, BUF_INIT, ONNX_MODEL_INIT, INFERRED_INIT}

/* "f[2,N]" as input `name` of a graph (field 11) or just named as its output (12). */
static void value(struct buf *graph, unsigned field, const char *name, const char *text)
{
    struct case_maker m = {BUF_INIT, BUF_INIT};
    struct buf v = BUF_INIT;
    if (field == 11 && text) {
        case_value(&m, name, text);
        buf_add(graph, m.graph.data, m.graph.len);
        buf_release(&m.graph);
        return;
    }
    pb_str(&v, 1, name);
    pb_msg(graph, field, &v);
}

static void constant(struct buf *graph, const char *name, const char *text)
{
    struct case_maker m = {BUF_INIT, BUF_INIT};
    case_constant(&m, name, text);
    buf_add(graph, m.graph.data, m.graph.len);
    buf_release(&m.graph);
}

static struct buf node_with(const char *op, const char *inputs, const char *outputs, const char *attributes)
{
    struct case_maker m = {BUF_INIT, pb_node(op, inputs, outputs)};
    char room[1024], *words[8];
    size_t n = case_words(attributes, " ", room, words, 8);
    for (size_t i = 0; i < n; i++) case_attribute(&m, words[i]);
    return m.node;
}

static void node(struct buf *graph, const char *op, const char *inputs, const char *outputs,
                 const char *attributes)
{
    struct buf n = node_with(op, inputs, outputs, attributes);
    pb_msg(graph, 1, &n);
}

/* A constant of type bool and rank 0. */
static void truth(struct buf *graph, const char *name, bool is)
{
    struct buf t = BUF_INIT;
    char byte = (char)is;
    pb_int(&t, 2, ONNX_BOOL);
    pb_str(&t, 8, name);
    pb_bytes(&t, 9, &byte, 1);
    pb_msg(graph, 5, &t);
}

static tare_status flow_run(struct flow *f, int opset, tare_error *err)
{
    struct buf version = BUF_INIT;
    if (!f->bytes.len) {
        pb_str(&f->graph, 2, "flow");
        pb_int(&f->bytes, 1, 8);
        pb_msg(&f->bytes, 7, &f->graph);
        pb_int(&version, 2, opset);
        pb_msg(&f->bytes, 8, &version);
    }
    tare_status s = onnx_read(&f->model, "flow", f->bytes.data, f->bytes.len, err);
    return s < 0 ? s : infer_model(&f->made, &f->model, NULL, err);
}

static void flow_end(struct flow *f)
{
    inferred_release(&f->made);
    onnx_close(&f->model);
    buf_release(&f->bytes);
}

static void says(struct flow *f, const char *name, const char *want)
{
    struct buf text = BUF_INIT;
    const struct infer_value *v = infer_value(f->made.main, name);
    assert_non_null(v);
    infer_shape_print(v, &text);
    if (v->data_dependent) buf_add_char(&text, '*');
    assert_string_equal(text.data, want);
    buf_release(&text);
}

static void flow_is(struct flow *f, const char *name, const char *want)
{
    tare_error err = TARE_ERROR_INIT;
    if (!f->made.main && flow_run(f, 17, &err) < 0) fail_msg("%s", err.text);
    says(f, name, want);
}

/* ---- If ---- */

static struct buf branch(const char *op, const char *inputs, const char *attributes)
{
    struct buf g = BUF_INIT;
    node(&g, op, inputs, "made", attributes);
    pb_str(&g, 2, "branch");
    value(&g, 12, "made", NULL);
    return g;
}

static void make_if(struct flow *f, const char *axis_then, const char *axis_else)
{
    struct buf a = branch("Concat", "x,x", axis_then), b = branch("Concat", "x,x", axis_else);
    struct buf n = pb_node("If", "cond", "y");
    pb_attr_graph(&n, "then_branch", &a);
    pb_attr_graph(&n, "else_branch", &b);
    value(&f->graph, 11, "x", "f[2,N,3]");
    pb_msg(&f->graph, 1, &n);
    value(&f->graph, 12, "y", NULL);
}

static void branches_that_agree(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    value(&f.graph, 11, "cond", "b[]");
    make_if(&f, "axis:1", "axis:1");
    flow_is(&f, "y", "float32[2,2*N,3]");
    assert_int_equal(f.made.main->nodes[0].n_bodies, 2);
    flow_end(&f);
}

static void branches_that_differ(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    value(&f.graph, 11, "cond", "b[]");
    make_if(&f, "axis:1", "axis:0");
    flow_is(&f, "y", "float32[?,?,3]*");
    assert_non_null(strstr(f.made.main->nodes[0].why, "branches"));
    flow_end(&f);
}

static void a_condition_that_is_known(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    truth(&f.graph, "cond", false);
    make_if(&f, "axis:1", "axis:0");
    flow_is(&f, "y", "float32[4,N,3]");
    flow_end(&f);
}

/* Exporters guard an operator that does not fit; the other branch is the only one that can run. */
static void a_branch_that_cannot_run(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    value(&f.graph, 11, "cond", "b[]");
    make_if(&f, "axis:7", "axis:0");
    flow_is(&f, "y", "float32[4,N,3]");
    flow_end(&f);
}

static void no_branch_can_run(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    tare_error err = TARE_ERROR_INIT;
    value(&f.graph, 11, "cond", "b[]");
    make_if(&f, "axis:7", "axis:8");
    assert_int_equal(flow_run(&f, 17, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "no branch can run"));
    assert_non_null(strstr(err.text, "axis 8"));
    flow_end(&f);
}

static void the_branch_taken_cannot_run(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    tare_error err = TARE_ERROR_INIT;
    truth(&f.graph, "cond", true);
    make_if(&f, "axis:7", "axis:0");
    assert_int_equal(flow_run(&f, 17, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "axis 7"));
    flow_end(&f);
}

/* A branch that is no graph at all is not one that cannot be taken. */
static void a_branch_that_is_damaged(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    struct buf a = branch("Relu", "nobody", NULL), b = branch("Relu", "x", NULL);
    struct buf n = pb_node("If", "cond", "y");
    tare_error err = TARE_ERROR_INIT;
    pb_attr_graph(&n, "then_branch", &a);
    pb_attr_graph(&n, "else_branch", &b);
    value(&f.graph, 11, "cond", "b[]");
    value(&f.graph, 11, "x", "f[2,N,3]");
    pb_msg(&f.graph, 1, &n);
    value(&f.graph, 12, "y", NULL);
    assert_int_equal(flow_run(&f, 17, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "nobody"));
    flow_end(&f);
}

/* ---- Loop ---- */

/* One carried value through `op`, and a scan output: itself. */
static void make_loop(struct flow *f, const char *op, const char *inputs, const char *attributes)
{
    struct buf g = BUF_INIT, n = pb_node("Loop", "m,cond,x", "last,all");
    value(&g, 11, "i", NULL);
    value(&g, 11, "go", NULL);
    value(&g, 11, "v", NULL);
    node(&g, "Identity", "go", "again", NULL);
    node(&g, op, inputs, "next", attributes);
    node(&g, "Identity", "v", "seen", NULL);
    pb_str(&g, 2, "body");
    value(&g, 12, "again", NULL);
    value(&g, 12, "next", NULL);
    value(&g, 12, "seen", NULL);
    pb_attr_graph(&n, "body", &g);
    value(&f->graph, 11, "x", "f[2,N]");
    pb_msg(&f->graph, 1, &n);
    value(&f->graph, 12, "last", NULL);
    value(&f->graph, 12, "all", NULL);
}

static void a_loop_that_keeps_shapes(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    constant(&f.graph, "m", "=#7");
    truth(&f.graph, "cond", true);
    make_loop(&f, "Relu", "v", NULL);
    flow_is(&f, "last", "float32[2,N]");
    flow_is(&f, "all", "float32[7,2,N]");
    assert_true(poly_is(f.made.main->nodes[0].trips, 7));
    flow_end(&f);
}

static void a_loop_that_grows(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    constant(&f.graph, "m", "=#7");
    truth(&f.graph, "cond", true);
    make_loop(&f, "Concat", "v,v", "axis:0");
    flow_is(&f, "last", "float32[?,N]*");
    flow_is(&f, "all", "float32[7,?,N]*");
    flow_end(&f);
}

static void a_loop_that_ends_by_condition(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    constant(&f.graph, "m", "=#7");
    value(&f.graph, 11, "cond", "b[]");
    make_loop(&f, "Relu", "v", NULL);
    flow_is(&f, "last", "float32[2,N]");
    flow_is(&f, "all", "float32[?,2,N]*");
    assert_null(f.made.main->nodes[0].trips);
    flow_end(&f);
}

static void a_loop_without_a_turn(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    constant(&f.graph, "m", "=#-3");
    truth(&f.graph, "cond", true);
    make_loop(&f, "Relu", "v", NULL);
    flow_is(&f, "all", "float32[0,2,N]");
    flow_end(&f);
}

static void a_body_with_too_few_inputs(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    struct buf g = BUF_INIT, n = pb_node("Loop", "m,,x", "last");
    tare_error err = TARE_ERROR_INIT;
    constant(&f.graph, "m", "=#7");
    value(&f.graph, 11, "x", "f[2,N]");
    value(&g, 11, "i", NULL);
    pb_str(&g, 2, "body");
    pb_attr_graph(&n, "body", &g);
    pb_msg(&f.graph, 1, &n);
    value(&f.graph, 12, "last", NULL);
    assert_int_equal(flow_run(&f, 17, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "too few"));
    flow_end(&f);
}

/* ---- Scan: a running sum over an axis ---- */

static void make_scan(struct flow *f, const char *inputs, const char *attributes)
{
    struct buf g = BUF_INIT, n = node_with("Scan", inputs, "last,all", attributes);
    value(&g, 11, "sum", NULL);
    value(&g, 11, "each", NULL);
    node(&g, "Add", "sum,each", "next", NULL);
    node(&g, "Identity", "next", "seen", NULL);
    pb_str(&g, 2, "body");
    value(&g, 12, "next", NULL);
    value(&g, 12, "seen", NULL);
    pb_attr_graph(&n, "body", &g);
    pb_msg(&f->graph, 1, &n);
    value(&f->graph, 12, "last", NULL);
    value(&f->graph, 12, "all", NULL);
}

static void a_scan_along_axes(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    value(&f.graph, 11, "start", "f[4]");
    value(&f.graph, 11, "x", "f[4,T]");
    make_scan(&f, "start,x", "num_scan_inputs:1 scan_input_axes:[1] scan_output_axes:[-1]");
    flow_is(&f, "last", "float32[4]");
    flow_is(&f, "all", "float32[4,T]");
    flow_end(&f);
}

static void a_scan_of_a_batch(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    tare_error err = TARE_ERROR_INIT;
    value(&f.graph, 11, "start", "f[B,4]");
    value(&f.graph, 11, "x", "f[B,T,4]");
    make_scan(&f, ",start,x", "num_scan_inputs:1");
    if (flow_run(&f, 8, &err) < 0) fail_msg("%s", err.text);
    says(&f, "last", "float32[B,4]");
    says(&f, "all", "float32[B,T,4]");
    flow_end(&f);
}

/* ---- sequences and optionals ---- */

static void elements_of_sequences(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    value(&f.graph, 11, "a", "f[2,N]");
    value(&f.graph, 11, "b", "f[3,N]");
    value(&f.graph, 11, "where", "l[]");
    constant(&f.graph, "first", "=#0");
    constant(&f.graph, "second", "=#1");
    node(&f.graph, "SequenceConstruct", "a,b", "s", NULL);
    node(&f.graph, "SequenceInsert", "s,a,first", "longer", NULL);
    node(&f.graph, "SequenceErase", "longer,second", "shorter", NULL);
    node(&f.graph, "SequenceAt", "s,second", "at1", NULL);
    node(&f.graph, "SequenceAt", "s,where", "any", NULL);
    node(&f.graph, "ConcatFromSequence", "longer", "joined", "axis:0");
    node(&f.graph, "ConcatFromSequence", "shorter", "less", "axis:0");
    node(&f.graph, "SequenceLength", "longer", "n", NULL);
    node(&f.graph, "Expand", "first,n1", "expanded", NULL);
    node(&f.graph, "Unsqueeze", "n,axes", "n1", NULL);
    constant(&f.graph, "axes", "=0");
    value(&f.graph, 12, "expanded", NULL);
    flow_is(&f, "at1", "float32[3,N]");
    flow_is(&f, "any", "float32[?,N]*");
    flow_is(&f, "joined", "float32[7,N]");
    flow_is(&f, "less", "float32[5,N]");
    flow_is(&f, "n", "int64[]");
    flow_is(&f, "expanded", "int64[3]");
    flow_end(&f);
}

static void pieces_of_a_tensor(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    value(&f.graph, 11, "x", "f[7,N]");
    constant(&f.graph, "three", "=#3");
    constant(&f.graph, "last", "=#-1");
    node(&f.graph, "SplitToSequence", "x,three", "s", "axis:0");
    node(&f.graph, "SequenceAt", "s,last", "tail", NULL);
    node(&f.graph, "SplitToSequence", "x", "rows", "axis:0 keepdims:0");
    node(&f.graph, "SequenceAt", "rows,last", "row", NULL);
    node(&f.graph, "ConcatFromSequence", "rows", "stacked", "axis:0 new_axis:1");
    value(&f.graph, 12, "tail", NULL);
    flow_is(&f, "tail", "float32[1,N]");
    flow_is(&f, "row", "float32[N]");
    flow_is(&f, "stacked", "float32[7,N]");
    flow_end(&f);
}

static void optionals(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    value(&f.graph, 11, "x", "f[7,N]");
    node(&f.graph, "Optional", "x", "o", NULL);
    node(&f.graph, "OptionalGetElement", "o", "y", NULL);
    node(&f.graph, "OptionalHasElement", "o", "has", NULL);
    value(&f.graph, 12, "y", NULL);
    flow_is(&f, "y", "float32[7,N]");
    flow_is(&f, "has", "bool[]");
    assert_true(poly_is(infer_value(f.made.main, "has")->ints[0], 1));
    flow_end(&f);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct flow f = FLOW_INIT;
    value(&f.graph, 11, "cond", "b[]");
    constant(&f.graph, "m", "=#7");
    make_loop(&f, "Concat", "v,v", "axis:0");
    node(&f.graph, "SplitToSequence", "x", "rows", "axis:0 keepdims:0");
    node(&f.graph, "ConcatFromSequence", "rows", "stacked", "axis:0 new_axis:1");
    tare_status s = TARE_NOMEM;
    for (int64_t n = 0; s != TARE_OK && n < 5000; n++) {
        tare_error err = TARE_ERROR_INIT;
        if (n == 0) flow_run(&f, 17, &err); /* makes the bytes */
        inferred_release(&f.made);
        onnx_close(&f.model);
        f.model = (struct onnx_model)ONNX_MODEL_INIT;
        mem_fail_after(n);
        s = flow_run(&f, 17, &err);
        mem_fail_after(-1);
        if (s < 0) assert_int_equal(s, TARE_NOMEM);
    }
    assert_int_equal(s, TARE_OK);
    says(&f, "stacked", "float32[2,N]");
    flow_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_that_agree),
        cmocka_unit_test(branches_that_differ),
        cmocka_unit_test(a_condition_that_is_known),
        cmocka_unit_test(a_branch_that_cannot_run),
        cmocka_unit_test(no_branch_can_run),
        cmocka_unit_test(the_branch_taken_cannot_run),
        cmocka_unit_test(a_branch_that_is_damaged),
        cmocka_unit_test(a_loop_that_keeps_shapes),
        cmocka_unit_test(a_loop_that_grows),
        cmocka_unit_test(a_loop_that_ends_by_condition),
        cmocka_unit_test(a_loop_without_a_turn),
        cmocka_unit_test(a_body_with_too_few_inputs),
        cmocka_unit_test(a_scan_along_axes),
        cmocka_unit_test(a_scan_of_a_batch),
        cmocka_unit_test(elements_of_sequences),
        cmocka_unit_test(pieces_of_a_tensor),
        cmocka_unit_test(optionals),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("infer_flow", tests, NULL, NULL);
}
