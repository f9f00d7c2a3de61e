/* SPDX-License-Identifier: MIT
 * test_infer_nn.c - what shape inference says of reductions, normalisations, convolutions, pools, contractions,
 * resizing, recurrent cells and attention of the standard: sizes known by hand, formulas of free dimensions, faults. */
#include "infer_case.h"

static void reductions(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"ReduceSum", "f[2,3,H] =1", "keepdims:0", "float32[2,H]", 13, NULL},
        {"ReduceSum", "f[2,3,H] =-1,0", NULL, "float32[1,3,1]", 13, NULL},
        {"ReduceSum", "f[2,3,H]", NULL, "float32[1,1,1]", 13, NULL},
        {"ReduceSum", "f[2,3,H]", "noop_with_empty_axes:1", "float32[2,3,H]", 13, NULL},
        {"ReduceSum", "f[2,1,H] l[1]", NULL, "float32[?,1,?]*", 13, NULL},
        {"ReduceSum", "f[2,1,H] l[1]", "keepdims:0", "float32[?,?]*", 13, NULL},
        {"ReduceMean", "f[2,3,H]", "axes:[1,2] keepdims:0", "float32[2]", 0, NULL},
        {"ReduceMax", "f[2,3] =7", NULL, "!axis 7", 18, NULL},
        {"ReduceMean", "f?", "axes:[1]", "float32[...]", 0, NULL},
        {"ArgMax", "f[2,3,H]", "axis:-1", "int64[2,3,1]", 0, NULL},
        {"ArgMin", "f[2,3,H]", "axis:0 keepdims:0", "int64[3,H]", 0, NULL},
        {"TopK", "f[2,N] =5", NULL, "float32[2,5]|int64[2,5]", 0, NULL},
        {"TopK", "f[2,N] l[1]", NULL, "float32[2,?]*|int64[2,?]*", 0, NULL},
        {"TopK", "f[2,N]", "k:3 axis:0", "float32[3,N]|int64[3,N]", 9, NULL},
        {"CumSum", "f[2,N] =#1", NULL, "float32[2,N]", 0, NULL},
        {"LayerNormalization", "h[2,3,H] h[H]", NULL, "float16[2,3,H]|float32[2,3,1]|float32[2,3,1]", 0, NULL},
        {"RMSNormalization", "h[2,3,H] f[H]", NULL, "float32[2,3,H]", 23, NULL},
        {"BatchNormalization", "f[N,8,H] f[8] f[8] f[8] f[8]", "training_mode:1",
         "float32[N,8,H]|float32[8]|float32[8]", 0, NULL},
        {"NonMaxSuppression", "f[1,N,4] f[1,C,N]", NULL, "int64[?,3]*", 0, NULL},
    };
    CASES_RUN(cases);
}

static void convolutions(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"Conv", "f[N,3,224,224] f[64,3,7,7]", "strides:[2,2] pads:[3,3,3,3]", "float32[N,64,112,112]", 0, NULL},
        {"Conv", "f[N,4,H] f[8,2,3] f[8]", "group:2", "float32[N,8,H - 2]", 0, NULL},
        {"Conv", "f[1,4,9] f[8,4,3]", "dilations:[2] strides:[2]", "float32[1,8,3]", 0, NULL},
        {"Conv", "f[1,4,9] f[8,4,3]", "auto_pad:'SAME_UPPER' strides:[2]", "float32[1,8,5]", 0, NULL},
        {"Conv", "f[1,4,9] f[8,4,3]", "auto_pad:'VALID' strides:[2]", "float32[1,8,4]", 0, NULL},
        {"Conv", "f[1,4,9] f[8,5,3]", NULL, "!channels", 0, NULL},
        {"Conv", "f[1,4,9] f[8,4611686018427387905,3]", "group:4", "!channels", 0, NULL},
        {"Conv", "f[1,4,2] f[8,4,3]", NULL, "!larger", 0, NULL},
        {"Conv", "f[1,4,9] f[8,4,3]", "strides:[0]", "!stride", 0, NULL},
        {"Conv", "f[1,4,9] f[8,4,3,3]", NULL, "!dimensions", 0, NULL},
        {"Conv", "f? f[8,4,3]", NULL, "float32[...]", 0, NULL},
        {"ConvTranspose", "f[1,4,H] f[4,6,3]", "strides:[2] group:2", "float32[1,12,2*H + 1]", 0, NULL},
        {"ConvTranspose", "f[1,4,5] f[4,6,3]", "strides:[2] output_padding:[1] pads:[1,1]", "float32[1,6,10]", 0,
         NULL},
        {"ConvTranspose", "f[1,4,5] f[4,6,3]", "strides:[2] auto_pad:'SAME_LOWER'", "float32[1,6,10]", 0, NULL},
        {"ConvTranspose", "f[1,4,5] f[4,6,3]", "strides:[3] output_shape:[14]", "float32[1,6,14]", 0, NULL},
        {"ConvInteger", "u[1,1,3,3] u[1,1,2,2] u[1]", NULL, "int32[1,1,2,2]", 0, NULL},
        {"QLinearConv", "u[1,1,7,7] f[] u[] c[2,1,1,1] f[1] c[1] f[] c[]", NULL, "int8[1,2,7,7]", 0, NULL},
    };
    CASES_RUN(cases);
}

static void pools(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"MaxPool", "f[N,8,32,32]", "kernel_shape:[2,2] strides:[2,2]", "float32[N,8,16,16]|int64[N,8,16,16]", 0,
         NULL},
        {"MaxPool", "f[1,1,4,4]", "kernel_shape:[3,3] strides:[2,2] ceil_mode:1", "float32[1,1,2,2]", 0, NULL},
        /* the last window would begin in the padding behind the data */
        {"AveragePool", "f[1,1,2]", "kernel_shape:[1] strides:[2] ceil_mode:1", "float32[1,1,1]", 0, NULL},
        {"AveragePool", "f[1,1,4]", "kernel_shape:[2] strides:[3] pads:[0,1] ceil_mode:1", "float32[1,1,2]", 0, NULL},
        {"LpPool", "f[1,3,32]", "kernel_shape:[2] dilations:[3]", "float32[1,3,29]", 18, NULL},
        {"MaxPool", "f[1,1,4]", NULL, "!kernel_shape", 0, NULL},
        {"GlobalAveragePool", "f[N,8,H,W]", NULL, "float32[N,8,1,1]", 0, NULL},
        {"MaxUnpool", "f[1,1,2,2] l[1,1,2,2]", "kernel_shape:[2,2] strides:[2,2]", "float32[1,1,4,4]", 0, NULL},
        {"MaxUnpool", "f[1,1,2,2] l[1,1,2,2] =1,1,5,5", "kernel_shape:[2,2]", "float32[1,1,5,5]", 0, NULL},
        {"RoiAlign", "f[1,8,10,10] f[R,4] l[R]", "output_height:5 output_width:6", "float32[R,8,5,6]", 0, NULL},
        {"MaxRoiPool", "f[1,8,10,10] f[R,5]", "pooled_shape:[2,3]", "float32[R,8,2,3]", 0, NULL},
    };
    CASES_RUN(cases);
}

static void contractions(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"MatMul", "f[B,12,S,64] f[B,12,64,S]", NULL, "float32[B,12,S,S]", 0, NULL},
        {"MatMul", "f[B,S,64] f[64,32]", NULL, "float32[B,S,32]", 0, NULL},
        {"MatMul", "f[3] f[3]", NULL, "float32[]", 0, NULL},
        {"MatMul", "f[3] f[2,3,4]", NULL, "float32[2,4]", 0, NULL},
        {"MatMul", "f[2,4,3] f[3]", NULL, "float32[2,4]", 0, NULL},
        {"MatMul", "f[2,4] f[3,2]", NULL, "!4 and 3", 0, NULL},
        {"MatMul", "f[2,4] f[]", NULL, "!scalar", 0, NULL},
        {"MatMul", "f[2,4] f?", NULL, "float32[...]", 0, NULL},
        {"MatMulInteger", "u[2,4] u[4,N]", NULL, "int32[2,N]", 0, NULL},
        {"QLinearMatMul", "u[2,4] f[] u[] u[4,3] f[] u[] f[] c[]", NULL, "int8[2,3]", 0, NULL},
        {"Gemm", "f[K,M] f[N,K]", "transA:1 transB:1", "float32[M,N]", 0, NULL},
        {"Gemm", "f[2,3,4] f[4,5]", NULL, "!dimensions", 0, NULL},
        {"Einsum", "f[B,S,H] f[B,T,H]", "equation:'bsh,bth->bst'", "float32[B,S,T]", 0, NULL},
        {"Einsum", "f[5,B,3,3]", "equation:'...ii->...i'", "float32[5,B,3]", 0, NULL},
        {"Einsum", "f[3,B]", "equation:'ba'", "float32[B,3]", 0, NULL},
        {"Einsum", "f[3,4] f[4,5]", "equation:'ij,jk'", "float32[3,5]", 0, NULL},
        {"Einsum", "f[3,4] f[5,6]", "equation:'ij,jk->ik'", "!label", 0, NULL},
        {"Einsum", "f[3,4]", "equation:'ij->ik'", "!'k'", 0, NULL},
        {"Einsum", "f[3,4]", "equation:'ijk->k'", "!labels", 0, NULL},
        {"Einsum", "f[3,4] f[3]", "equation:'ij->ij'", "!terms", 0, NULL},
        {"Einsum", "f[3,4]", NULL, "!equation", 0, NULL},
        {"Einsum", "f[3,4]", "equation:'......->...'", "!twice", 0, NULL},
    };
    CASES_RUN(cases);
}

static void sizes_of_images(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"Resize", "f[N,3,H,W] - ~1,1,2,0.5", NULL, "float32[N,3,2*H,floor(W/2)]", 0, NULL},
        {"Resize", "f[1,3,5,5] - ~1,1,0.6,1.5", NULL, "float32[1,3,3,7]", 0, NULL},
        {"Resize", "f[1,3,H,5] - - =1,3,20,30", NULL, "float32[1,3,20,30]", 0, NULL},
        {"Resize", "f[1,3,4,8] - - =6,6", "axes:[2,3] keep_aspect_ratio_policy:'not_larger'", "float32[1,3,3,6]", 18,
         NULL},
        {"Resize", "f[1,3,4,8] - - =6,6", "axes:[2,3] keep_aspect_ratio_policy:'not_smaller'", "float32[1,3,6,12]", 18,
         NULL},
        {"Resize", "f[1,3,4,8] - f[4]", NULL, "float32[?,?,?,?]*", 0, NULL},
        {"Resize", "f[1,3,4,8] - ~1,1,2", NULL, "!scales", 0, NULL},
        {"Resize", "f[1,3,H,8] ~1,1,2,2", NULL, "float32[1,3,2*H,16]", 10, NULL},
        {"Upsample", "f[1,3,H,8]", "scales:~1,1,2,3", "float32[1,3,2*H,24]", 7, NULL},
        {"GridSample", "f[N,3,4,5] f[N,H,W,2]", NULL, "float32[N,3,H,W]", 0, NULL},
        {"AffineGrid", "f[2,2,3] =2,3,5,6", NULL, "float32[2,5,6,2]", 20, NULL},
        {"Col2Im", "f[N,12,25] =5,5 =2,2", NULL, "float32[N,3,5,5]", 18, NULL},
    };
    CASES_RUN(cases);
}

static void cells_and_attention(void **state)
{
    (void)state;
    const struct infer_case cases[] = {
        {"LSTM", "f[S,B,8] f[1,64,8] f[1,64,16]", "hidden_size:16",
         "float32[S,1,B,16]|float32[1,B,16]|float32[1,B,16]", 0, NULL},
        {"GRU", "f[B,S,8] f[2,48,8] f[2,48,16]", "hidden_size:16 layout:1 direction:'bidirectional'",
         "float32[B,S,2,16]|float32[B,2,16]", 0, NULL},
        {"RNN", "f[S,B,8] f[1,16,8] f[1,16,16]", NULL, "float32[S,1,B,16]", 0, NULL},
        {"LSTM", "f[S,8] f[1,64,8] f[1,64,16]", NULL, "!dimensions", 0, NULL},
        {"Attention", "f[B,12,S,64] f[B,4,T,64] f[B,4,T,32] - f[B,4,P,64] f[B,4,P,32]", NULL,
         "float32[B,12,S,32]|float32[B,4,P + T,64]|float32[B,4,P + T,32]|float32[B,12,S,P + T]", 23, NULL},
        {"Attention", "f[B,S,768] f[B,S,256] f[B,S,256]", "q_num_heads:12 kv_num_heads:4", "float32[B,S,768]", 23,
         NULL},
        {"Attention", "f[B,S,768] f[B,S,256] f[B,S,256]", NULL, "!q_num_heads", 23, NULL},
        {"SoftmaxCrossEntropyLoss", "f[N,C,D] l[N,D]", "reduction:'none'", "float32[N,D]|float32[N,C,D]", 0, NULL},
        {"NegativeLogLikelihoodLoss", "f[N,C] l[N]", NULL, "float32[]", 0, NULL},
        {"Det", "f[B,3,3]", NULL, "float32[B]", 0, NULL},
    };
    CASES_RUN(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions),   cmocka_unit_test(convolutions),    cmocka_unit_test(pools),
        cmocka_unit_test(contractions), cmocka_unit_test(sizes_of_images), cmocka_unit_test(cells_and_attention),
    };
    return cmocka_run_group_tests_name("infer_nn", tests, NULL, NULL);
}
