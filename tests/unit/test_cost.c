/* SPDX-License-Identifier: MIT
 * test_cost.c - the cost rules, one operator at a time: each row is a node with the shapes it gets and the counts that
 * docs/cost.md's rules give, worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/file.h"
#include "graph_fixture.h"
#include "model/cost/cost.h"
#include "model/cost/cost_rule.h"

#define MS "com.microsoft"

struct expected {
    int64_t macs, int_macs, simple, division, transcendental, integer;
};

struct row {
    const char *domain, *op, *values, *in, *attributes;
    struct expected is;
};

static int64_t number(const struct poly *p)
{
    int64_t v = -1;
    const struct poly_binding dims[] = {{"B", 2}, {"S", 8}, {"P", 3}};
    poly_eval(p, dims, 3, &v);
    return v;
}

static struct cost cost_of(struct graph *g, size_t node)
{
    tare_error err = TARE_ERROR_INIT;
    struct cost c;
    assert_true(node < g->shapes.main->n_nodes);
    if (cost_of_node(&c, &g->shapes, &g->shapes.main->nodes[node], &err) < 0) fail_msg("%s", err.text);
    return c;
}

static void check_row(const struct row *r)
{
    struct graph g = GRAPH_INIT;
    graph_values(&g, r->values);
    g.domain = r->domain;
    graph_node(&g, r->op, r->in, "y", r->attributes);
    graph_output(&g, "y");
    graph_infer(&g);
    struct cost c = cost_of(&g, 0);
    struct expected got = {number(c.macs),     number(c.int_macs),       number(c.simple),
                           number(c.division), number(c.transcendental), number(c.integer)};
    const struct expected *e = &r->is;
    if (!c.known || memcmp(&got, e, sizeof got) != 0)
        fail_msg("%s (%s): %s: macs %lld/%lld int %lld/%lld simple %lld/%lld div %lld/%lld trans %lld/%lld "
                 "integer %lld/%lld",
                 r->op, r->values, c.why ? c.why : "", (long long)got.macs, (long long)e->macs,
                 (long long)got.int_macs, (long long)e->int_macs, (long long)got.simple, (long long)e->simple,
                 (long long)got.division, (long long)e->division, (long long)got.transcendental,
                 (long long)e->transcendental, (long long)got.integer, (long long)e->integer);
    graph_release(&g);
}

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) check_row(&rows[i]);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

static void test_products(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "MatMul", "a=float[B,4,5] b=*float[5,6]", "a,b", "", {2 * 4 * 6 * 5, 0, 0, 0, 0, 0}},
        {"", "MatMul", "a=float[3,1,4,5] b=float[7,5,6]", "a,b", "", {3 * 7 * 4 * 6 * 5, 0, 0, 0, 0, 0}},
        {"", "MatMul", "a=float[5] b=float[5]", "a,b", "", {5, 0, 0, 0, 0, 0}},
        {"", "MatMul", "a=float[5] b=float[2,5,6]", "a,b", "", {2 * 6 * 5, 0, 0, 0, 0, 0}},
        {"", "MatMul", "a=float[4,5] b=float[5]", "a,b", "", {4 * 5, 0, 0, 0, 0, 0}},
        {"", "MatMul", "a=int32[4,5] b=int32[5,6]", "a,b", "", {0, 4 * 5 * 6, 0, 0, 0, 0}},
        {MS, "FusedMatMul", "a=float[B,5,4] b=float[5,6]", "a,b", "transA=1 alpha=0.5",
         {240, 0, 48, 0, 0, 0}},
        {"", "Gemm", "a=float[B,5] b=*float[6,5] c=*float[6]", "a,b,c", "transB=1", {60, 0, 12, 0, 0, 0}},
        {"", "Gemm", "a=float[5,B] b=*float[5,6]", "a,b", "transA=1 alpha=2.0 beta=3.0",
         {60, 0, 12, 0, 0, 0}},
        {"", "Gemm", "a=float[2,5] b=*float[5,6] c=*float[6]", "a,b,c", "alpha=2.0 beta=3.0",
         {60, 0, 36, 0, 0, 0}},
        {MS, "FusedGemm", "a=float[2,5] b=*float[5,6] c=*float[6]", "a,b,c", "activation='Relu'",
         {60, 0, 24, 0, 0, 0}},
        {"", "Einsum", "a=float[B,3,4] b=float[B,4,5]", "a,b", "equation='bij,bjk->bik'",
         {120, 0, 0, 0, 0, 0}},
        {"", "Einsum", "a=float[B,3,4] b=float[4,5]", "a,b", "equation='...ij,jk->...ik'",
         {120, 0, 0, 0, 0, 0}},
        {"", "Einsum", "a=float[3] b=float[4]", "a,b", "equation='i,j->ij'", {0, 0, 12, 0, 0, 0}},
        {"", "Einsum", "a=float[3,4]", "a", "equation='ij->i'", {0, 0, 12, 0, 0, 0}},
        {"", "Einsum", "a=float[3,4]", "a", "equation='ij->ji'", {0, 0, 0, 0, 0, 0}},
        {"", "Einsum", "a=float[2,3] b=float[3,4] c=float[4,5]", "a,b,c", "equation='ij,jk,kl->il'",
         {24 + 40, 0, 0, 0, 0, 0}},
    };
    CHECK_ROWS(rows);
}

static void test_convolutions(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "Conv", "x=float[B,3,8,8] w=*float[4,3,3,3]", "x,w", "pads=(1,1,1,1)",
         {2 * 4 * 64 * 27, 0, 0, 0, 0, 0}},
        {"", "Conv", "x=float[B,3,8,8] w=*float[4,3,3,3] b=*float[4]", "x,w,b", "strides=(2,2)",
         {2 * 4 * 9 * 27, 0, 72, 0, 0, 0}},
        {"", "Conv", "x=float[1,6,8,8] w=*float[6,1,3,3]", "x,w", "group=6", {6 * 36 * 9, 0, 0, 0, 0, 0}},
        {"", "Conv", "x=float[1,2,9] w=*float[4,2,3]", "x,w", "dilations=(2)", {4 * 5 * 6, 0, 0, 0, 0, 0}},
        {MS, "FusedConv", "x=float[1,3,8,8] w=*float[4,3,1,1] b=*float[4]", "x,w,b", "activation='Sigmoid'",
         {4 * 64 * 3, 0, 512, 256, 256, 0}},
        {MS, "FusedConv", "x=float[1,3,8,8] w=*float[4,3,1,1] b=*float[4]", "x,w,b", "activation='Clip'",
         {4 * 64 * 3, 0, 256 * 3, 0, 0, 0}},
        {"", "ConvTranspose", "x=float[B,3,4,4] w=*float[3,5,2,2] b=*float[5]", "x,w,b", "strides=(2,2)",
         {2 * 3 * 16 * 5 * 4, 0, 2 * 5 * 64, 0, 0, 0}},
        {"", "MaxPool", "x=float[1,2,8,8]", "x", "kernel_shape=(2,2) strides=(2,2)",
         {0, 0, 2 * 16 * 4, 0, 0, 0}},
        {"", "AveragePool", "x=float[1,2,8,8]", "x", "kernel_shape=(3,3)", {0, 0, 2 * 36 * 9, 0, 0, 0}},
        {"", "GlobalAveragePool", "x=float[B,2,8,8]", "x", "", {0, 0, 256, 0, 0, 0}},
    };
    CHECK_ROWS(rows);
}

static void test_quantized(void **state)
{
    (void)state;
    static const char conv[] = "x=uint8[1,3,4,4] s=*float[] z=*uint8[] w=*int8[2,3,3,3] b=*int32[2]";
    static const char mm[] = "a=uint8[4,5] s=*float[] z=*uint8[] b=*uint8[5,6]";
    static const struct row rows[] = {
        {"", "QLinearConv", conv, "x,s,z,w,s,z,s,z,b", "", {0, 8 * 27, 16, 0, 0, 16 + 8}},
        {"", "ConvInteger", conv, "x,w,z", "", {0, 8 * 27, 0, 0, 0, 8}},
        {"", "QLinearMatMul", mm, "a,s,z,b,s,z,s,z", "", {0, 120, 48, 0, 0, 48}},
        {"", "MatMulInteger", mm, "a,b", "", {0, 120, 0, 0, 0, 0}},
        {"", "MatMulInteger", mm, "a,b,z,z", "", {0, 120, 0, 0, 0, 48}},
        {MS, "DynamicQuantizeMatMul", "a=float[4,5] b=*uint8[5,6] s=*float[] z=*uint8[] c=*float[6]", "a,b,s,z,c",
         "",
         {0, 120, 24 * 3 + 80, 0, 0, 48}},
        {"", "QuantizeLinear", "x=float[B,10] s=*float[] z=*uint8[]", "x,s,z", "", {0, 0, 60, 0, 0, 0}},
        {"", "DequantizeLinear", "x=uint8[B,10] s=*float[] z=*uint8[]", "x,s,z", "", {0, 0, 40, 0, 0, 0}},
        {"", "DynamicQuantizeLinear", "x=float[B,10]", "x", "", {0, 0, 100, 0, 0, 0}},
        {MS, "MatMulNBits", "a=float[B,3,64] b=*uint8[16,2,16] s=*float[32]", "a,b,s",
         "K=64 N=16 bits=4 block_size=32",
         {2 * 3 * 16 * 64, 0, 0, 0, 0, 2 * 16 * 64}},
        {MS, "MatMulBnb4", "a=float[B,3,16] b=*uint8[512] s=*float[32]", "a,b,s",
         "K=64 N=16 quant_type=1 block_size=32 transB=0",
         {2 * 3 * 16 * 64, 0, 0, 0, 0, 2 * 16 * 64}},
    };
    CHECK_ROWS(rows);
}

static void test_attention(void **state)
{
    (void)state;
    /* batch 2, sequence 8, width 12 in 3 heads: scores 2 * 3 * 8 * 8 */
    enum { SCORES = 2 * 3 * 8 * 8, PAIR = 2 * 8 * 8 * 24 };
    static const struct row rows[] = {
        {MS, "Attention", "x=float[B,S,12] w=*float[12,36] b=*float[36] m=int32[B,S]", "x,w,b,m",
         "num_heads=3",
         {2 * 8 * 12 * 36 + PAIR, 0, 2 * 8 * 36 + SCORES * 5, SCORES, SCORES, 0}},
        {MS, "QAttention", "x=uint8[B,S,12] w=*uint8[12,36] b=*float[36] s=*float[] z=*uint8[]", "x,w,b,s,s,,z,z",
         "num_heads=3",
         {PAIR, 2 * 8 * 12 * 36, 3 * 2 * 8 * 36 + SCORES * 4, SCORES, SCORES, 2 * 2 * 8 * 36}},
        {MS, "MultiHeadAttention", "q=float[B,S,12] k=float[B,S,12] v=float[B,S,12]", "q,k,v", "num_heads=3",
         {PAIR, 0, SCORES * 4, SCORES, SCORES, 0}},
        {MS, "MultiHeadAttention", "q=float[B,S,12] k=float[B,S,12] v=float[B,S,12] p=float[B,3,P,4]",
         "q,k,v,,,,p,p",
         "num_heads=3", {2 * 8 * 11 * 24, 0, 2 * 3 * 8 * 11 * 4, 2 * 3 * 8 * 11, 2 * 3 * 8 * 11, 0}},
        {"", "RotaryEmbedding", "x=float[B,3,S,4] c=float[B,S,2]", "x,c,c", "",
         {0, 0, 3 * 2 * 3 * 8 * 4, 0, 0, 0}},
    };
    CHECK_ROWS(rows);
}

static void test_recurrent(void **state)
{
    (void)state;
    enum { STEPS = 8 * 2 * 7 };
    static const struct row rows[] = {
        {"", "LSTM", "x=float[S,B,5] w=*float[1,28,5] r=*float[1,28,7] b=*float[1,56]", "x,w,r,b",
         "hidden_size=7",
         {8 * 2 * 28 * 12, 0, STEPS * (3 + 4 + 4), STEPS * 3, STEPS * 5, 0}},
        {"", "GRU", "x=float[S,B,5] w=*float[2,21,5] r=*float[2,21,7]", "x,w,r",
         "hidden_size=7 direction='bidirectional'",
         {2 * 8 * 2 * 21 * 12, 0, 2 * STEPS * (2 + 5), 2 * STEPS * 2, 2 * STEPS * 3, 0}},
        {"", "RNN", "x=float[S,B,5] w=*float[1,7,5] r=*float[1,7,7]", "x,w,r", "hidden_size=7",
         {8 * 2 * 7 * 12, 0, 0, 0, STEPS, 0}},
    };
    CHECK_ROWS(rows);
}

static void test_by_element(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "Add", "a=float[B,10] b=*float[10]", "a,b", "", {0, 0, 20, 0, 0, 0}},
        {"", "Add", "a=int64[B,10] b=*int64[10]", "a,b", "", {0, 0, 0, 0, 0, 20}},
        {"", "Sum", "a=float[B,10] b=float[10] c=float[1]", "a,b,c", "", {0, 0, 40, 0, 0, 0}},
        {"", "Div", "a=float[B,10] b=float[10]", "a,b", "", {0, 0, 0, 20, 0, 0}},
        {"", "Div", "a=float[B,10] b=*float[1]", "a,b", "", {0, 0, 20, 0, 0, 0}},
        {"", "Where", "c=bool[B,10] a=float[B,10] b=float[1]", "c,a,b", "", {0, 0, 20, 0, 0, 0}},
        {"", "Equal", "a=int64[10] b=int64[10]", "a,b", "", {0, 0, 0, 0, 0, 10}},
        {"", "Greater", "a=float[10] b=float[10]", "a,b", "", {0, 0, 10, 0, 0, 0}},
        {"", "Pow", "a=float[10] b=*float[]", "a,b", "", {0, 0, 0, 0, 10, 0}},
        {"", "Sqrt", "a=float[10]", "a", "", {0, 0, 0, 10, 0, 0}},
        {"", "Relu", "a=float[10]", "a", "", {0, 0, 10, 0, 0, 0}},
        {"", "Clip", "a=float[10]", "a", "", {0, 0, 20, 0, 0, 0}},
        {"", "LeakyRelu", "a=float[10]", "a", "", {0, 0, 20, 0, 0, 0}},
        {"", "HardSwish", "a=float[10]", "a", "", {0, 0, 50, 0, 0, 0}},
        {"", "Sigmoid", "a=float[10]", "a", "", {0, 0, 10, 10, 10, 0}},
        {"", "Gelu", "a=float[10]", "a", "", {0, 0, 40, 0, 10, 0}},
        {"", "Gelu", "a=float[10]", "a", "approximate='tanh'", {0, 0, 70, 0, 10, 0}},
        {MS, "BiasGelu", "a=float[2,10] b=*float[10]", "a,b", "", {0, 0, 100, 0, 20, 0}},
        {MS, "FastGelu", "a=float[2,10]", "a", "", {0, 0, 140, 0, 20, 0}},
        {MS, "QuickGelu", "a=float[10]", "a", "", {0, 0, 20, 10, 10, 0}},
        {"", "Softmax", "a=float[B,10]", "a", "", {0, 0, 60, 20, 20, 0}},
        {"", "LogSoftmax", "a=float[B,10]", "a", "", {0, 0, 60, 20, 22, 0}},
        {"", "ReduceSum", "a=float[B,10]", "a", "keepdims=1", {0, 0, 20, 0, 0, 0}},
        {"", "ReduceMean", "a=float[B,10]", "a", "", {0, 0, 20, 1, 0, 0}},
    };
    CHECK_ROWS(rows);
}

static void test_norms(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "LayerNormalization", "x=float[B,S,10] s=*float[10] b=*float[10]", "x,s,b", "",
         {0, 0, 1120, 32, 0, 0}},
        {"", "LayerNormalization", "x=float[B,S,10] s=*float[10]", "x,s", "", {0, 0, 960, 32, 0, 0}},
        {"", "LayerNormalization", "x=float[B,S,10] s=*float[8,10]", "x,s", "axis=1", {0, 0, 960, 4, 0, 0}},
        {MS, "SkipLayerNormalization", "x=float[B,S,10] g=*float[10]", "x,x,g,g,g", "",
         {0, 0, 1440, 32, 0, 0}},
        {MS, "SkipLayerNormalization", "x=float[B,S,10] g=*float[10]", "x,x,g,g", "", {0, 0, 1280, 32, 0, 0}},
        {MS, "SkipSimplifiedLayerNormalization", "x=float[B,S,10] g=*float[10]", "x,x,g", "",
         {0, 0, 800, 32, 0, 0}},
        {"", "BatchNormalization", "x=float[B,3,4,4] c=*float[3]", "x,c,c,c,c", "", {0, 0, 192, 0, 0, 0}},
        {"", "InstanceNormalization", "x=float[B,3,4,4] c=*float[3]", "x,c,c", "", {0, 0, 672, 12, 0, 0}},
    };
    CHECK_ROWS(rows);
}

static void test_losses_and_states(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "NegativeLogLikelihoodLoss", "x=float[3,5] t=int64[3]", "x,t", "", {0, 0, 3 * 2, 1, 0, 0}},
        {"", "NegativeLogLikelihoodLoss", "x=float[3,5,2] t=int64[3,2] w=float[5]", "x,t,w",
         "reduction='none'", {0, 0, 6 * 2, 0, 0, 0}},
        {"", "NegativeLogLikelihoodLoss", "x=float[3,5,2] t=int64[3,2] w=float[5]", "x,t,w",
         "reduction='sum'", {0, 0, 6 * 3, 0, 0, 0}},
        {"", "NegativeLogLikelihoodLoss", "x=float[3,5,2] t=int64[3,2] w=float[5]", "x,t,w",
         "reduction='mean'", {0, 0, 6 * 4, 1, 0, 0}},
        {"", "SoftmaxCrossEntropyLoss", "x=float[3,5] t=int64[3]", "x,t", "",
         {0, 0, 15 * 3 + 3 * 2, 15 + 1, 15 + 3, 0}},
        {"", "CausalConvWithState", "x=float[B,6,S] w=*float[6,1,4] b=*float[6]", "x,w,b",
         "activation='silu'", {96 * 4, 0, 96 + 96 * 2, 96, 96, 0}},
        {"", "CausalConvWithState", "x=float[B,6,S] w=*float[6,1,4] p=float[B,6,3]", "x,w,,p",
         "activation='none'", {96 * 4, 0, 0, 0, 0, 0}},
        /* 16 tokens, states of 3 x 5 in 2 key heads, 4 query heads */
        {"", "LinearAttention", "q=float[B,S,12] k=float[B,S,6] v=float[B,S,10]", "q,k,v",
         "q_num_heads=4 kv_num_heads=2 update_rule='linear'", {16 * 15 * (2 + 4), 0, 16 * 20, 0, 0, 0}},
        {"", "LinearAttention", "q=float[B,S,12] k=float[B,S,6] v=float[B,S,10] d=float[B,S,2]", "q,k,v,,d",
         "q_num_heads=4 kv_num_heads=2 update_rule='gated'",
         {16 * 15 * (2 + 4), 0, 16 * 20 + 16 * 15 * 2, 0, 32, 0}},
        {"", "LinearAttention", "q=float[B,S,12] k=float[B,S,6] v=float[B,S,10] d=float[B,S,2]", "q,k,v,,d,d",
         "q_num_heads=4 kv_num_heads=2",
         {16 * 15 * (2 + 2 + 4), 0, 16 * 20 + 16 * 15 * 2 + 16 * 10 * 2, 0, 32, 0}},
        {"ai.onnx.preview", "FlexAttention", "q=float[B,3,S,4] k=float[B,3,P,4]", "q,k,k", "",
         {144 * 8, 0, 144 * 4, 144, 144, 0}},
        {"", "SwiGLU", "x=float[B,10]", "x,x", "", {0, 0, 60, 20, 20, 0}},
        {"ai.onnx.ml", "Binarizer", "x=float[4]", "x", "", {0, 0, 4, 0, 0, 0}},
    };
    CHECK_ROWS(rows);
}

/* ---- bytes ---- */

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *op, *values, *in, *attributes;
        int64_t read, written;
    } rows[] = {
        {"MatMul", "a=float[B,4,5] b=*float[5,6]", "a,b", "", 4 * (40 + 30), 4 * 48},
        {"Mul", "a=float16[B,10]", "a,a", "", 40, 40},
        {"Gather", "t=*float[30522,384] i=int64[B,S]", "t,i", "", 4 * 16 * 384 + 8 * 16, 4 * 16 * 384},
        {"Reshape", "x=float[B,10] s=*int64[1]", "x,s", "", 0, 0},
        {"Identity", "x=float[B,10]", "x", "", 0, 0},
        {"Shape", "x=float[B,10]", "x", "", 0, 16},
        {"Transpose", "x=float[B,10]", "x", "", 80, 80},
        {"Cast", "x=float[B,10]", "x", "to=7", 80, 160},
        {"DequantizeLinear", "x=*int4[3,5] s=*float[]", "x,s", "", 8 + 4, 60},
        {"NegativeLogLikelihoodLoss", "x=float[3,5] t=int64[3]", "x,t", "", 4 * 3 + 8 * 3, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct graph g = GRAPH_INIT;
        graph_values(&g, rows[i].values);
        graph_node(&g, rows[i].op, rows[i].in, "y", rows[i].attributes);
        graph_output(&g, "y");
        graph_infer(&g);
        struct cost c = cost_of(&g, 0);
        if (number(c.read) != rows[i].read || number(c.written) != rows[i].written)
            fail_msg("%s: read %lld/%lld written %lld/%lld", rows[i].op, (long long)number(c.read),
                     (long long)rows[i].read, (long long)number(c.written), (long long)rows[i].written);
        graph_release(&g);
    }
}

/* Division by the root of 2, error function, addition and two products are what Gelu is. */
static void test_gelu_in_parts(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct cost sum;
    graph_values(&g, "x=float[B,10] c=*float[1]");
    graph_node(&g, "Div", "x,c", "a", "");
    graph_node(&g, "Erf", "a", "b", "");
    graph_node(&g, "Add", "b,c", "d", "");
    graph_node(&g, "Mul", "x,d", "e", "");
    graph_node(&g, "Mul", "e,c", "y", "");
    graph_output(&g, "y");
    graph_infer(&g);
    cost_zero(&sum, g.shapes.space);
    for (size_t i = 0; i < 5; i++) {
        struct cost c = cost_of(&g, i);
        cost_add(&sum, &c, g.shapes.space);
    }
    assert_true(sum.known);
    assert_int_equal(number(sum.simple), 80);
    assert_int_equal(number(sum.division), 0);
    assert_int_equal(number(sum.transcendental), 20);
    assert_int_equal(number(cost_flops(&sum, g.shapes.space)), 80);
    graph_release(&g);
}

static void test_causal(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "q=float[B,3,S,4] k=float[B,3,S,4] p=float[B,3,P,4]");
    graph_node(&g, "Attention", "q,k,k", "y", "is_causal=1");
    graph_node(&g, "Attention", "q,k,k", "z", "");
    graph_output(&g, "y");
    graph_output(&g, "z");
    graph_infer(&g);
    struct cost c = cost_of(&g, 0), full = cost_of(&g, 1);
    assert_int_equal(number(c.macs), 2 * 3 * 8 * 8 * 8);
    assert_int_equal(number(full.macs), number(c.macs));
    assert_int_equal(number(full.useful_macs), number(c.macs));
    assert_int_equal(number(c.useful_macs), 2 * 3 * 8 * (8 * 9 / 2));
    graph_release(&g);
}

static void test_formulas(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct buf text = BUF_INIT;
    graph_values(&g, "q=float[B,12,S,32] k=float[B,12,32,S]");
    graph_node(&g, "MatMul", "q,k", "y", "");
    graph_output(&g, "y");
    graph_infer(&g);
    poly_print(cost_of(&g, 0).macs, &text);
    assert_string_equal(text.data, "384*B*S^2");
    buf_release(&text);
    graph_release(&g);
}

/* ---- unknown is not zero ---- */

static void test_unknown(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct cost sum, c;
    graph_values(&g, "x=float[B,10] w=*float[10,4]");
    graph_node(&g, "MatMul", "x,w", "y", "");
    g.domain = "somewhere.else";
    graph_node(&g, "MatMul", "y,w", "z", "");
    graph_output(&g, "z");
    graph_infer(&g);
    cost_zero(&sum, g.shapes.space);
    c = cost_of(&g, 0);
    cost_add(&sum, &c, g.shapes.space);
    assert_true(sum.known);
    c = cost_of(&g, 1);
    assert_false(c.known);
    assert_null(c.macs);
    assert_non_null(strstr(c.why, "no rule"));
    cost_add(&sum, &c, g.shapes.space);
    assert_false(sum.known);
    assert_int_equal(number(sum.macs), 80); /* a lower bound */
    assert_ptr_equal(sum.why, c.why);
    graph_release(&g);
}

static void test_sum_equals_additions(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct cost_sum many;
    struct cost one, two, c;
    graph_values(&g, "x=float[B,10] w=*float[10,10]");
    for (int i = 0; i < 50; i++) {
        char in[16], out[16];
        snprintf(in, sizeof in, i ? "v%d,w" : "x,w", i - 1);
        snprintf(out, sizeof out, "v%d", i);
        graph_node(&g, i % 3 ? "MatMul" : "Gemm", in, out, "");
    }
    graph_output(&g, "v49");
    graph_infer(&g);
    cost_zero(&one, g.shapes.space);
    many = (struct cost_sum)COST_SUM_INIT;
    for (size_t i = 0; i < 50; i++) {
        c = cost_of(&g, i);
        cost_add(&one, &c, g.shapes.space);
        assert_int_equal(cost_sum_add(&many, &c, NULL), TARE_OK);
    }
    cost_sum_take(&many, g.shapes.space, &two);
    assert_true(two.known);
    assert_int_equal(number(two.macs), 50 * 2 * 100);
    assert_ptr_equal(one.macs, two.macs);
    assert_ptr_equal(one.read, two.read);
    assert_ptr_equal(one.written, two.written);
    assert_ptr_equal(one.useful_macs, two.useful_macs);
    cost_sum_release(&many);
    graph_release(&g);
}

/* ---- bodies ---- */

/* A graph attribute whose body is `nodes` and whose outputs are named. */
static void add_body(struct buf *node, const char *name, struct buf *nodes, size_t n, const char *output)
{
    struct buf body = BUF_INIT, v = BUF_INIT;
    for (size_t i = 0; i < n; i++) pb_msg(&body, 1, &nodes[i]);
    pb_str(&body, 2, name);
    pb_str(&v, 1, output);
    pb_msg(&body, 12, &v);
    pb_attr_graph(node, name, &body);
}

/* y = c ? then : other; `then` makes t, `other` e. */
static struct cost if_cost(struct graph *g, struct buf then, struct buf other)
{
    struct buf n = pb_node("If", "c", "y");
    add_body(&n, "then_branch", &then, 1, "t");
    add_body(&n, "else_branch", &other, 1, "e");
    pb_msg(&g->body, 1, &n);
    graph_output(g, "y");
    graph_infer(g);
    struct cost c = cost_of(g, 0);
    assert_true(c.known);
    return c;
}

static void test_if_is_the_dearer_branch(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "c=bool[] x=float[B,10] w=*float[10,10]");
    struct cost c = if_cost(&g, pb_node("Relu", "x", "t"), pb_node("MatMul", "x,w", "e"));
    assert_int_equal(number(c.macs), 200);
    graph_release(&g);
}

/* Exporters guard a Squeeze like that: it fits only one branch, so the other is what it costs. */
static void test_if_with_a_branch_that_cannot_run(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "c=bool[] x=float[B,10] y1=float[3]");
    struct cost c = if_cost(&g, pb_node("Add", "x,y1", "t"), pb_node("Relu", "x", "e"));
    assert_int_equal(number(c.simple), 20);
    graph_release(&g);
}

static void add_scalar(struct graph *g, const char *name, int type, const void *bytes, size_t n)
{
    struct buf t = BUF_INIT;
    pb_int(&t, 2, type);
    pb_str(&t, 8, name);
    pb_bytes(&t, 9, bytes, n);
    pb_msg(&g->body, 5, &t);
}

/* for i < trips: v = v * w, `trips` a constant or an input. */
static struct cost loop_cost(struct graph *g, bool constant)
{
    struct buf body = BUF_INIT, n = pb_node("Loop", "m,,x", "y"), v;
    static const char *const ins[] = {"i", "go", "v"}, *const outs[] = {"go2", "v2"};
    static const int64_t trips = 7, yes = 1;
    graph_values(g, constant ? "x=float[B,10] w=*float[10,10]" : "m=int64[] x=float[B,10] w=*float[10,10]");
    add_scalar(g, "yes", ONNX_BOOL, &yes, 1);
    if (constant) add_scalar(g, "m", ONNX_INT64, &trips, sizeof trips);
    v = pb_node("MatMul", "v,w", "v2");
    pb_msg(&body, 1, &v);
    v = pb_node("Identity", "yes", "go2");
    pb_msg(&body, 1, &v);
    for (size_t i = 0; i < 3; i++) {
        pb_str(&v, 1, ins[i]);
        pb_msg(&body, 11, &v);
    }
    for (size_t i = 0; i < 2; i++) {
        pb_str(&v, 1, outs[i]);
        pb_msg(&body, 12, &v);
    }
    pb_attr_graph(&n, "body", &body);
    pb_msg(&g->body, 1, &n);
    graph_output(g, "y");
    graph_infer(g);
    return cost_of(g, 0);
}

static void test_loop(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT, h = GRAPH_INIT;
    struct cost c = loop_cost(&g, false);
    assert_false(c.known);
    assert_true(c.per_iteration);
    assert_int_equal(number(c.macs), 200); /* of one */
    c = loop_cost(&h, true);
    assert_true(c.known);
    assert_false(c.per_iteration);
    assert_int_equal(number(c.macs), 7 * 200);
    graph_release(&g);
    graph_release(&h);
}

static void test_function_call(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct buf f = BUF_INIT, n, set = BUF_INIT;
    graph_values(&g, "x=float[B,10] w=*float[10,10]");
    g.domain = "local";
    graph_node(&g, "Twice", "x,w", "y", "");
    graph_output(&g, "y");
    pb_str(&f, 1, "Twice");
    pb_str(&f, 4, "a");
    pb_str(&f, 4, "b");
    pb_str(&f, 5, "d");
    n = pb_node("MatMul", "a,b", "c");
    pb_msg(&f, 7, &n);
    n = pb_node("MatMul", "c,b", "d");
    pb_msg(&f, 7, &n);
    pb_str(&set, 1, "");
    pb_int(&set, 2, 21);
    pb_msg(&f, 9, &set);
    pb_str(&f, 10, "local");
    pb_msg(&g.bytes, 25, &f);
    graph_infer(&g);
    struct cost c = cost_of(&g, 0);
    assert_true(c.known);
    assert_int_equal(number(c.macs), 400);
    graph_release(&g);
}

static void test_table(void **state)
{
    (void)state;
    assert_true(op_find_cost("", "Reshape")->flags & OP_VIEW);
    assert_false(op_find_cost("", "Transpose")->flags & OP_VIEW);
    assert_true(op_find_cost("", "Relu")->flags & OP_IN_PLACE);
    assert_false(op_find_cost("", "MatMul")->flags & OP_IN_PLACE);
    assert_false(op_find_cost("", "Equal")->flags & OP_IN_PLACE);
}

/* The page of rules names every operator that has one. */
static void test_page(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct file_view page = FILE_VIEW_INIT;
    const char *root = getenv("TARE_SRC");
    char path[500], word[100];
    snprintf(path, sizeof path, "%s/docs/cost.md", root ? root : ".");
    if (file_map(path, &page, &err) < 0) fail_msg("%s", err.text);
    for (const struct op_row *r = op_table; r->op; r++) {
        if (r->bytes == BYTES_UNCOUNTED) continue;
        int n = snprintf(word, sizeof word, "`%s`", r->op);
        if (!memmem(page.data, page.size, word, (size_t)n)) fail_msg("%s has no %s", path, word);
    }
    file_unmap(&page);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct cost_sum sum;
    graph_values(&g, "x=float[B,10] w=*float[10,10]");
    graph_node(&g, "MatMul", "x,w", "y", "");
    graph_output(&g, "y");
    graph_infer(&g);
    struct cost c = cost_of(&g, 0);
    for (long n = 0;; n++) {
        sum = (struct cost_sum)COST_SUM_INIT;
        mem_fail_after(n);
        tare_status s = cost_sum_add(&sum, &c, NULL);
        mem_fail_after(-1);
        cost_sum_release(&sum);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
    graph_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_quantized),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_by_element),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_losses_and_states),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_gelu_in_parts),
        cmocka_unit_test(test_causal),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_sum_equals_additions),
        cmocka_unit_test(test_if_is_the_dearer_branch),
        cmocka_unit_test(test_if_with_a_branch_that_cannot_run),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_function_call),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
