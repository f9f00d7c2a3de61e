/* SPDX-License-Identifier: MIT
 * test_graph_patterns.c - small graphs with known patterns, and near ones without. The input x is [batch, 4] with batch
 * 2, w is [4, 4], c a scalar, table [100, 8], ids [3]. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/layers/inspect.h"
#include "core/mem.h"
#include "onnx_fixture.h"

/* "Op a,b -> y; Op y -> z": nodes in any order. The last output is the graph's. */
static struct buf make_graph(const char *text)
{
    const int64_t w[] = {4, 4}, table[] = {100, 8}, ids[] = {1, 2, 3};
    struct buf g = BUF_INIT, part, copy = BUF_INIT;
    char last[40] = "";
    buf_add_str(&copy, text);
    pb_str(&g, 2, "g");
    for (char *save, *s = strtok_r(copy.data, ";", &save); s; s = strtok_r(NULL, ";", &save)) {
        char op[40], in[80], to[40];
        int axis = -1;
        if (sscanf(s, " %39s %79s -> %39s axis=%d", op, in, to, &axis) < 3) fail_msg("no node: %s", s);
        part = pb_node(op, in, to);
        if (axis >= 0) pb_attr_int(&part, "axis", axis);
        pb_msg(&g, 1, &part);
        snprintf(last, sizeof last, "%s", to);
    }
    buf_release(&copy);
    part = pb_tensor("w", 1, w, 2, 64), pb_msg(&g, 5, &part);
    part = pb_tensor("c", 1, NULL, 0, 4), pb_msg(&g, 5, &part);
    part = pb_tensor("table", 1, table, 2, 3200), pb_msg(&g, 5, &part);
    part = pb_ints("ids", ids, 3), pb_msg(&g, 5, &part);
    part = pb_value("x", 1), pb_msg(&g, 11, &part);
    part = (struct buf)BUF_INIT;
    pb_str(&part, 1, last);
    pb_msg(&g, 12, &part);
    return g;
}

struct counted {
    struct run run;
    struct run_map found;
};

static void count(struct counted *c, const char *text)
{
    struct onnx_model model;
    struct inspected in = INSPECTED_INIT;
    const struct poly_binding batch = {"batch", 2};
    const struct inspect_options o = {.dims = &batch, .n_dims = 1};
    tare_error err = TARE_ERROR_INIT;
    struct buf graph = make_graph(text), bytes = pb_model(&graph);
    memset(c, 0, sizeof *c);
    assert_int_equal(run_init(&c->run, "inspect", &err), TARE_OK);
    if (onnx_read(&model, "test", bytes.data, bytes.len, &err) < 0) fail_msg("%s: %s", text, err.text);
    if (inspect_model(&in, &model, &o, &err) < 0) fail_msg("%s: %s", text, err.text);
    graph_patterns_record(&in, &c->run, &c->found);
    assert_false(c->run.arena.failed);
    inspected_release(&in);
    onnx_close(&model);
    buf_release(&bytes);
}

static int64_t number(const struct run_map *m, const char *key)
{
    const struct run_value *v = run_map_get(m, key);
    if (!v || v->kind != RUN_INT) fail_msg("no number %s", key);
    return v->i;
}

/* "gelu 1": all named have that number, and spellings that are not named are not there. */
static void expect(const char *text, const char *wanted)
{
    static const char *const spellings[] = {"layer_norm", "rms_norm", "gelu", "attention"};
    struct counted c;
    char name[40];
    long long n;
    int used;
    count(&c, text);
    for (const char *w = wanted; sscanf(w, " %39s %lld%n", name, &n, &used) == 2; w += used)
        if (number(&c.found, name) != n)
            fail_msg("%s: %s is %lld, not %lld", text, name, (long long)number(&c.found, name), n);
    for (size_t i = 0; i < 4; i++)
        if (!strstr(wanted, spellings[i]) && number(&c.found, spellings[i]) != 0)
            fail_msg("%s: there is no %s", text, spellings[i]);
    run_release(&c.run);
}

#define NORM "ReduceMean x -> m; Sub x,m -> d; Pow d,c -> p; ReduceMean p -> v; Add v,c -> e; Sqrt e -> s; Div d,s -> n"

static void test_norms(void **state)
{
    (void)state;
    expect(NORM "; Mul n,w1 -> y; Add c,c -> w1", "layer_norm 1 unfused_nodes 7");
    expect(NORM "; Relu n -> y", "layer_norm 1");
    expect(
        "ReduceMean x -> m; Sub x,m -> d; Mul d,d -> p; ReduceMean p -> v; Add c,v -> e; Sqrt e -> s; Div d,s -> y",
        "layer_norm 1");
    expect("Mul x,x -> p; ReduceMean p -> v; Add v,c -> e; Sqrt e -> s; Reciprocal s -> r; Mul x,r -> y",
           "rms_norm 1");
    expect("Pow x,c -> p; ReduceMean p -> v; Add v,c -> e; Sqrt e -> s; Div x,s -> y", "rms_norm 1");
    expect("ReduceMean x -> m; Add m,c -> e; Sqrt e -> s; Div x,s -> y", "transposes 0"); /* no squares */
    expect("ReduceMean x -> m; Sub x,m -> y", "foldable_nodes 0");
}

static void test_gelu(void **state)
{
    (void)state;
    /* Div, Erf, Add, Mul: each reads and writes 8 numbers of 4 bytes, and a scalar where there is one */
    expect("Div x,c -> d; Erf d -> e; Add e,c -> a; Mul x,a -> m; Mul m,c -> y", "gelu 1 unfused_nodes 4");
    expect("Mul x,c -> d; Erf d -> e; Add c,e -> a; Mul a,x -> y", "gelu 1");
    expect("Mul x,x -> q; Mul q,x -> t; Mul t,c -> u; Add x,u -> v; Mul v,c -> z; Tanh z -> h; Add h,c -> a; "
           "Mul a,x -> y",
           "gelu 1");
    expect("Erf x -> e; Add e,c -> y", "gelu 0 unfused_nodes 0 unfused_bytes 0");
    expect("Mul x,c -> d; Tanh d -> h; Add h,c -> a; Mul a,x -> y", "gelu 0");
}

static void test_attention(void **state)
{
    (void)state;
    expect("MatMul x,w -> s; Div s,c -> d; Add d,c -> a; Softmax a -> p; MatMul p,w -> y",
           "attention 1 unfused_nodes 5");
    expect("MatMul x,w -> s; Softmax s -> p; MatMul p,w -> y", "attention 1 unfused_bytes 64");
    expect("MatMul x,w -> s; Softmax s -> y", "attention 0");
    expect("Softmax x -> p; MatMul p,w -> y", "attention 0");
    expect("MatMul x,w -> s; Softmax s -> p; MatMul p,w -> z; Softmax z -> q; MatMul q,w -> y",
           "attention 2");
}

/* Two ways at each of many steps: found or not, but in bounded time. */
static void test_bounded(void **state)
{
    struct buf text = BUF_INIT;
    (void)state;
    buf_add_str(&text, "Add x,x -> a0");
    for (int i = 1; i < 200; i++) buf_printf(&text, "; Add a%d,a%d -> a%d", i - 1, i - 1, i);
    buf_add_str(&text, "; Softmax a199 -> p; MatMul p,w -> y");
    expect(text.data, "attention 0");
    buf_release(&text);
}

static void test_moving_and_folding(void **state)
{
    (void)state;
    expect("Transpose x -> y", "transposes 1 transpose_bytes 64 foldable_nodes 0 foldable_macs 0");
    expect("Transpose w -> t; MatMul x,t -> y",
           "transposes 0 transpose_bytes 0 foldable_nodes 1 foldable_macs 0");
    expect("MatMul w,w -> t; Add t,c -> u; MatMul x,u -> y", "foldable_nodes 2 foldable_macs 64");
    expect("Relu x -> y", "transposes 0 foldable_nodes 0 embedding_tables 0 embedding_bytes 0");
}

static void test_embeddings(void **state)
{
    (void)state;
    expect("Gather table,ids -> y", "embedding_tables 1 embedding_parameters 800 embedding_bytes 3200");
    expect("Gather table,ids -> a; Gather table,ids -> b; Add a,b -> y",
           "embedding_tables 1 embedding_bytes 3200");
    expect("Gather w,ids -> a; Gather table,ids -> y", "embedding_tables 2 embedding_parameters 816");
    expect("Gather table,ids -> y axis=1", "embedding_tables 0");
    expect("Gather x,ids -> y axis=1", "embedding_tables 0");
}

static void test_memory(void **state)
{
    struct counted c;
    (void)state;
    long before = mem_live_blocks();
    struct onnx_model model;
    struct inspected in = INSPECTED_INIT;
    const struct inspect_options o = {0};
    struct buf graph = make_graph(NORM "; Gather table,ids -> y"), bytes = pb_model(&graph);
    assert_int_equal(onnx_read(&model, "test", bytes.data, bytes.len, NULL), TARE_OK);
    assert_int_equal(inspect_model(&in, &model, &o, NULL), TARE_OK);
    for (long n = 0;; n++) {
        memset(&c, 0, sizeof c);
        assert_int_equal(run_init(&c.run, "inspect", NULL), TARE_OK);
        mem_fail_after(n);
        graph_patterns_record(&in, &c.run, &c.found);
        mem_fail_after(-1);
        bool failed = c.run.arena.failed;
        run_release(&c.run);
        if (!failed) {
            assert_true(n > 0);
            break;
        }
        assert_true(n < 100);
    }
    inspected_release(&in);
    onnx_close(&model);
    buf_release(&bytes);
    assert_int_equal(mem_live_blocks(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms),      cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_attention),  cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_moving_and_folding), cmocka_unit_test(test_embeddings),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
