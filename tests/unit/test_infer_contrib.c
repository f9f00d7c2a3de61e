/* SPDX-License-Identifier: MIT
 * test_infer_contrib.c - what shape inference says of operators of ONNX Runtime's own domains (fused, quantised,
 * attention in its packed forms, layouts), of signals, text, classic machine learning and training. */
#include "infer_case.h"

#define MS "com.microsoft"
#define NCHWC "com.microsoft.nchwc"
#define NHWC "com.ms.internal.nhwc"
#define ML "ai.onnx.ml"
#define TRAINING "ai.onnx.preview.training"

static void attention(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"Attention", "f[B,S,768] f[768,2304] f[2304] i[B,S] f[2,B,12,P,64]", "num_heads:12",
         "float32[B,S,768]|float32[2,B,12,P + S,64]", 1, MS},
        {"Attention", "f[B,S,768] f[768,1792] f[1792]", "num_heads:4 qkv_hidden_sizes:[768,768,256]",
         "float32[B,S,256]", 1, MS},
        {"QAttention", "u[B,S,768] c[768,2304] f[2304] f[] f[]", "num_heads:12", "float32[B,S,768]", 1, MS},
        {"MultiHeadAttention", "f[B,S,768] f[B,T,768] f[B,T,384]", "num_heads:12",
         "float32[B,S,384]|float32[B,12,T,64]|float32[B,12,T,32]", 1, MS},
        {"MultiHeadAttention", "f[B,S,12,3,64]", "num_heads:12", "float32[B,S,768]", 1, MS},
        {"MultiHeadAttention", "f[B,S,768] f[B,T,12,2,64]", "num_heads:12", "float32[B,S,768]", 1, MS},
        {"MultiHeadAttention", "f[B,S,768] f[B,S,768] f[B,S,768] - - - f[B,12,P,64] f[B,12,P,64]", "num_heads:12",
         "float32[B,S,768]|float32[B,12,P + S,64]|float32[B,12,P + S,64]", 1, MS},
        {"MultiHeadAttention", "f[B,768]", "num_heads:12", "!query", 1, MS},
        {"GroupQueryAttention", "h[B,S,2048] h[B,S,512] h[B,S,512] h[B,8,P,64] h[B,8,P,64] i[B] =#300",
         "num_heads:32 kv_num_heads:8",
         "float16[B,S,2048]|float16[B,8,max(300, P),64]|float16[B,8,max(300, P),64]", 1, MS},
        {"GroupQueryAttention", "h[B,S,3072] - - - - i[B] i[1]", "num_heads:32 kv_num_heads:8",
         "float16[B,S,2048]|float16[B,8,?,64]*|float16[B,8,?,64]*", 1, MS},
        {"PackedAttention", "f[T,768] f[768,2304] f[2304]", "num_heads:12", "float32[T,768]", 1, MS},
        {"EmbedLayerNormalization", "i[B,S] i[B,S] f[30522,768] f[512,768] f[2,768] f[768] f[768]", NULL,
         "float32[B,S,768]|int32[B]|float32[B,S,768]", 1, MS},
        {"SkipLayerNormalization", "f[B,S,768] f[B,S,768] f[768] f[768]", NULL, "float32[B,S,768]|-|-|float32[B,S,768]",
         1, MS},
        {"RotaryEmbedding", "f[B,S,768] l[1] f[99,32] f[99,32]", NULL, "float32[B,S,768]", 1, MS},
    };
    CASES_RUN(cases);
}

static void fused_and_quantised(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"FusedMatMul", "f[B,64,S] f[B,64,T]", "transA:1", "float32[B,S,T]", 1, MS},
        {"FusedMatMul", "f[S,B,64] f[B,64,T]", "transBatchA:1", "float32[B,S,T]", 1, MS},
        {"FusedMatMul", "f[S,B,64] f[B,32,T]", "transBatchA:1", "!64 and 32", 1, MS},
        {"MatMulNBits", "h[B,S,4096] u[11008,128,16] h[1]", "K:4096 N:11008 bits:4", "float16[B,S,11008]", 1, MS},
        {"DynamicQuantizeMatMul", "f[B,S,64] c[64,32] f[1]", NULL, "float32[B,S,32]", 1, MS},
        {"MatMulIntegerToFloat", "u[B,64] c[64,32] f[] f[]", NULL, "float32[B,32]", 1, MS},
        {"QGemm", "u[B,64] f[] u[] c[32,64] f[] c[]", "transB:1", "float32[B,32]", 1, MS},
        {"QGemm", "u[B,64] f[] u[] c[32,64] f[] c[] - f[] u[]", "transB:1", "uint8[B,32]", 1, MS},
        {"QLinearAdd", "u[B,1,4] f[] u[] u[3,4] f[] u[] f[] u[]", NULL, "uint8[B,3,4]", 1, MS},
        {"QLinearConcat", "f[] u[] u[B,3] f[] u[] u[B,5] f[] u[]", "axis:1", "uint8[B,8]", 1, MS},
        {"QLinearAveragePool", "u[1,8,8,3] f[] u[] f[] u[]", "kernel_shape:[2,2] channels_last:1", "uint8[1,7,7,3]", 1,
         MS},
        {"QLinearGlobalAveragePool", "u[N,8,8,3] f[] u[] f[] u[]", "channels_last:1", "uint8[N,1,1,3]", 1, MS},
        {"QLinearReduceMean", "u[N,8,3] f[] u[] f[] u[]", "axes:[1] keepdims:0", "uint8[N,3]", 1, MS},
        {"QLinearWhere", "b[N,1] u[1,4] f[] u[] u[N,4] f[] u[] f[] u[]", NULL, "uint8[N,4]", 1, MS},
        {"GatherBlockQuantized", "u[100,32] l[B,S] h[100,2]", "bits:4", "float16[B,S,64]", 1, MS},
        {"BiasSplitGelu", "f[B,S,64] f[64]", NULL, "float32[B,S,32]", 1, MS},
        {"FusedConv", "f[1,3,H,9] f[8,3,3,3]", "pads:[1,1,1,1]", "float32[1,8,H,9]", 1, MS},
        {"QuantizeLinear", "f[N,4] f[] c[]", NULL, "int8[N,4]", 1, MS},
        {"DequantizeLinear", "c[N,4] h[] c[]", NULL, "float16[N,4]", 1, MS},
        {"CDist", "f[M,8] f[N,8]", NULL, "float32[M,N]", 1, MS},
        {"GreedySearch", "i[B,S] i[1]", NULL, "int32[...]*", 1, MS},
        {"MemcpyToHost", "f[N,4]", NULL, "float32[N,4]", 0, NULL},
        {"SimplifiedLayerNormalization", "h[B,S,8] h[8]", NULL, "float16[B,S,8]|float32[B,S,1]", 0, NULL},
    };
    CASES_RUN(cases);
}

static void layouts(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"ReorderInput", "f[N,16,8,8]", NULL, "float32[N,16,8,8]", 1, NCHWC},
        {"ReorderInput", "f[N,8,9,16]", "channels_last:1", "float32[N,16,8,9]", 1, NCHWC},
        {"Conv", "f[N,16,8,8] f[32,16,3,3]", "pads:[1,1,1,1] strides:[2,2]", "float32[N,32,4,4]", 1, NCHWC},
        {"MaxPool", "f[N,16,8,8]", "kernel_shape:[2,2] strides:[2,2]", "float32[N,16,4,4]", 1, NCHWC},
        {"ReorderOutput", "f[N,32,4,5]", "channels:24", "float32[N,24,4,5]", 1, NCHWC},
        {"ReorderOutput", "f[N,32,4,5]", "channels:24 channels_last:1", "float32[N,4,5,24]", 1, NCHWC},
        {"Conv", "f[N,8,8,16] f[32,3,3,16]", "kernel_shape:[3,3]", "float32[N,6,6,32]", 11, NHWC},
        {"MaxPool", "f[N,8,8,16]", "kernel_shape:[2,2]", "float32[N,7,7,16]", 12, NHWC},
        {"GlobalAveragePool", "f[N,8,8,16]", NULL, "float32[N,1,1,16]", 1, NHWC},
    };
    CASES_RUN(cases);
}

static void signals_and_text(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"DFT", "f[B,N,1]", NULL, "float32[B,N,2]", 0, NULL},
        {"DFT", "f[B,10,1]", "onesided:1", "float32[B,6,2]", 20, NULL},
        {"DFT", "f[B,10,1] =#16 =#1", NULL, "float32[B,16,2]", 20, NULL},
        {"STFT", "f[B,128,1] =#8 f[16]", NULL, "float32[B,15,9,2]", 0, NULL},
        {"MelWeightMatrix", "=#8 =#16 =#8192 ~0 ~2", NULL, "float32[9,8]", 0, NULL},
        {"HannWindow", "=#10", "output_datatype:11", "float64[10]", 0, NULL},
        {"HannWindow", "l[]", NULL, "float32[?]*", 0, NULL},
        {"StringConcat", "s[N,1] s[3]", NULL, "string[N,3]", 20, NULL},
        {"StringSplit", "s[N]", NULL, "string[N,?]*|int64[N]", 20, NULL},
        {"TfIdfVectorizer", "l[N,12]", "ngram_indexes:[0,1,6,3]", "float32[N,7]", 0, NULL},
        {"ImageDecoder", "u[N]", "pixel_format:'Grayscale'", "uint8[?,?,1]*", 20, NULL},
        {"Bernoulli", "f[N,4]", "dtype:9", "bool[N,4]", 0, NULL},
        {"Multinomial", "f[N,4]", "sample_size:7", "int32[N,7]", 0, NULL},
    };
    CASES_RUN(cases);
}

static void classic(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"LinearClassifier", "f[N,4]", "classlabels_ints:[0,1,2]", "int64[N]|float32[N,3]", 1, ML},
        {"TreeEnsembleRegressor", "f[N,4]", "n_targets:2", "float32[N,2]", 1, ML},
        {"TreeEnsemble", "d[N,4]", "n_targets:2", "float64[N,2]", 5, ML},
        {"LinearRegressor", "f[4]", "targets:3", "float32[1,3]", 1, ML},
        {"OneHotEncoder", "l[N,2]", "cats_int64s:[1,2,3]", "float32[N,2,3]", 1, ML},
        {"LabelEncoder", "s[N]", "values_int64s:[1,2]", "int64[N]", 2, ML},
        {"ArrayFeatureExtractor", "f[N,4] l[2]", NULL, "float32[N,2]", 1, ML},
        {"Scaler", "d[N,4]", NULL, "float32[N,4]", 1, ML},
        {"Adam", "f[] l[] f[2] f[3] f[2] f[3] f[2] f[3] f[2] f[3]", NULL,
         "float32[2]|float32[3]|float32[2]|float32[3]|float32[2]|float32[3]", 1, TRAINING},
        {"Momentum", "f[] l[] f[N] f[N] f[N]", "mode:'standard'", "float32[N]|float32[N]", 1, TRAINING},
    };
    CASES_RUN(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention),        cmocka_unit_test(fused_and_quantised), cmocka_unit_test(layouts),
        cmocka_unit_test(signals_and_text), cmocka_unit_test(classic),
    };
    return cmocka_run_group_tests_name("infer_contrib", tests, NULL, NULL);
}
