/* SPDX-License-Identifier: MIT
 * test_infer_move.c - rules of element-wise operators and of those that move and pick elements: shapes with free
 * dimensions, contents on their way, chains as exporters write them, inputs that contradict. */
#include "infer_fixture.h"

/* ---- element by element ---- */

static void test_broadcast_shapes(void **state)
{
    (void)state;
    made_gives("input x float32 b s 8\ninput y float32 8\noutput z\nnode Add x,y z", "z", "float32[b,s,8]");
    made_gives("input x float32 b 1\ninput y float32 1 s\noutput z\nnode Mul x,y z", "z", "float32[b,s]");
    made_gives("input x float32 b\ninput y float32 5\noutput z\nnode Less x,y z", "z", "bool[5]");
    made_gives("input x float32 b\ninput y float32 s\noutput z\nnode Add x,y z", "z",
               "float32[broadcast(b, s)]");
    made_gives("input x float32 b 3\ninput y float32 b 1\ninput w float32 1\noutput z\nnode Max x,y,w z", "z",
               "float32[b,3]");
    made_gives("input c bool b 1\ninput x float32 1 4\ninput y float32\noutput z\nnode Where c,x,y z", "z",
               "float32[b,4]");
}

static void test_types(void **state)
{
    (void)state;
    made_gives("input x float32 b\noutput z\nnode Cast x z to=7", "z", "int64[b]");
    made_gives("input x float32 b\ninput y float16\noutput z\nnode CastLike x,y z", "z", "float16[b]");
    made_gives("input x float32 b\noutput z\nnode IsNaN x z", "z", "bool[b]");
    made_gives("input x float32 b\ninput e int64\noutput z\nnode Pow x,e z", "z", "float32[b]");
    made_gives("input x float32 b\noutput m\nnode Dropout x y,m", "m", "bool[b]");
    made_gives("input x float32 b\ninput s float32\ninput p int8\noutput z\nnode QuantizeLinear x,s,p z", "z",
               "int8[b]");
    made_gives("input x float32 b 2\noutput s\nnode DynamicQuantizeLinear x y,s,p", "s", "float32[]");
    made_gives("ints s 2 3\noutput z\nnode ConstantOfShape s z", "z", "float32[2,3]");
    made_gives("output z\nnode RandomNormal - z shape=2,3 dtype=11", "z", "float64[2,3]");
    made_gives("input x float32 b 4\noutput z\nnode EyeLike x z dtype=6", "z", "int32[b,4]");
}

/* ---- Reshape ---- */

static void test_reshape(void **state)
{
    (void)state;
    made_gives("input x float32 b s 384\nints t 0 0 12 32\noutput y\nnode Reshape x,t y", "y",
               "float32[b,s,12,32]");
    made_gives("input x float32 b s 384\nints t 0 -1\noutput y\nnode Reshape x,t y", "y", "float32[b,384*s]");
    made_gives("input x float32 b 12 s 32\nints t -1 32\noutput y\nnode Reshape x,t y", "y",
               "float32[12*b*s,32]");
    made_gives("input x float32 4 0\nints t 0 0 7\noutput y\nnode Reshape x,t y allowzero=1", "y",
               "float32[0,0,7]");
    made_gives("input x float32 2 3\noutput y\nnode Flatten x y axis=-1", "y", "float32[2,3]");
    made_gives("input x float32 b 3 4\noutput y\nnode Flatten x y axis=2", "y", "float32[3*b,4]");
    made_gives("input x float32 b\nints t\noutput y\nnode Reshape x,t y", "y", "float32[]");
}

/* The shape is put together at run time from that of the input, as exporters do. */
static void test_reshape_of_a_computed_shape(void **state)
{
    (void)state;
    made_gives(
        "input x float32 batch seq 768\nscalar i0 0\nscalar i1 1\nints ax 0\nints tail 12 64\noutput y\n"
        "node Shape x s\nnode Gather s,i0 b\nnode Gather s,i1 n\nnode Unsqueeze b,ax b1\n"
        "node Unsqueeze n,ax n1\nnode Concat b1,n1,tail t axis=0\nnode Reshape x,t y",
        "y", "float32[batch,seq,12,64]");
    /* an unknown dimension among known ones follows from the rest */
    made_gives("input x float32 4 6\ninput k int64 1\nints two 2\noutput y\nnode Concat two,k t axis=0\n"
               "node Reshape x,t y",
               "y", "float32[2,12]");
}

static void test_reshape_that_depends_on_data(void **state)
{
    (void)state;
    struct made_model m;
    made(&m, "input x float32 b 6\ninput t int64 3\noutput y\nnode Reshape x,t y");
    made_expect(&m, "y", "float32[?,?,?]");
    assert_true(infer_value(m.result.main, "y")->data_dependent);
    assert_non_null(m.result.main->nodes[0].why);
    made_release(&m);
}

static void test_reshape_that_is_wrong(void **state)
{
    (void)state;
    made_fails("input x float32 4 6\nints t 5 5\noutput y\nnode Reshape x,t y name=r",
               "node 'r' (Reshape): 24 elements cannot become 25");
    made_fails("input x float32 4 6\nints t -3\noutput y\nnode Reshape x,t y", "dimension 0 cannot be -3");
    made_fails("input x float32 4\nints t 4 0\noutput y\nnode Reshape x,t y", "dimension 1 is to be copied");
}

/* ---- axes ---- */

static void test_squeeze_and_unsqueeze(void **state)
{
    (void)state;
    made_gives("opset 11\ninput x float32 1 b 1\noutput y\nnode Squeeze x y axes=0,-1", "y", "float32[b]");
    made_gives("opset 13\ninput x float32 1 b 1\nints a 2\noutput y\nnode Squeeze x,a y", "y",
               "float32[1,b]");
    made_gives("input x float32 1 5 1\noutput y\nnode Squeeze x y", "y", "float32[5]");
    made_gives("input x float32 b\nints a 0 -1\noutput y\nnode Unsqueeze x,a y", "y", "float32[1,b,1]");
    made_fails("input x float32 3 b\nints a 0\noutput y\nnode Squeeze x,a y",
               "dimension 0 is 3 and cannot be squeezed");
    made_fails("input x float32 b\nints a 0 0\noutput y\nnode Unsqueeze x,a y", "an axis is given twice");
    made_fails("input x float32 b\nints a 5\noutput y\nnode Unsqueeze x,a y", "axis 5 does not exist");
    /* b may be 1 */
    made_gives("input x float32 1 b\noutput y\nnode Squeeze x y", "y", "float32[...]");
}

static void test_transpose_and_concat(void **state)
{
    (void)state;
    made_gives("input x float32 b 3 s\noutput y\nnode Transpose x y perm=0,2,1", "y", "float32[b,s,3]");
    made_gives("input x float32 b 3\noutput y\nnode Transpose x y", "y", "float32[3,b]");
    made_fails("input x float32 b 3\noutput y\nnode Transpose x y perm=0,0", "perm names axis 0 twice");
    made_gives("input x float32 b 3\ninput y float32 b k\noutput z\nnode Concat x,y z axis=-1", "z",
               "float32[b,k + 3]");
    made_gives("input x float32 b 3\ninput y float32 4 2\noutput z\nnode Concat x,y z axis=1", "z",
               "float32[4,5]");
    made_fails("input x float32 5 3\ninput y float32 4 2\noutput z\nnode Concat x,y z axis=1",
               "dimension 0 is 5 in one input and 4 in another");
}

static void test_split(void **state)
{
    (void)state;
    made_gives("opset 11\ninput x float32 b 7\noutput p\nnode Split x p,q axis=1 split=3,4", "q",
               "float32[b,4]");
    made_gives("opset 13\ninput x float32 b 6\noutput p\nnode Split x p,q,r axis=-1", "r", "float32[b,2]");
    made_gives("opset 18\ninput x float32 7\noutput p\nnode Split x p,q,r num_outputs=3", "r", "float32[1]");
    made_gives("opset 13\ninput x float32 s 6\noutput p\nnode Split x p,q", "q", "float32[floor(s/2),6]");
    made_gives("opset 18\ninput x float32 b 6\ninput n int64 2\noutput p\nnode Split x,n p,q axis=1", "q",
               "float32[b,?]");
    made_fails("input x float32 b 7\nints n 7\noutput p\nnode Split x,n p,q axis=1", "1 sizes for 2 outputs");
}

/* ---- Slice ---- */

static void test_slice_clamps(void **state)
{
    (void)state;
    static const struct {
        const char *start, *end, *step, *want;
    } rows[] = {
        {"0", "9223372036854775807", "1", "s"},
        {"1", "9223372036854775807", "1", "max(0, s - 1)"},
        {"0", "512", "1", "min(512, s)"},
        {"-1", "2147483647", "1", "min(1, s)"},
        {"0", "-1", "1", "max(0, s - 1)"},
        {"-3", "-1", "1", "max(0, min(2, s - 1))"},
        {"0", "2147483647", "2", "floor((s + 1)/2)"},
        {"-1", "-9223372036854775807", "-1", "s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[300], want[80];
        snprintf(
            text, sizeof text,
            "input x float32 s 4\nints a %s\nints e %s\nints ax 0\nints st %s\noutput y\nnode Slice x,a,e,ax,st y",
            rows[i].start, rows[i].end, rows[i].step);
        snprintf(want, sizeof want, "float32[%s,4]", rows[i].want);
        made_gives(text, "y", want);
    }
}

static void test_slice_forms(void **state)
{
    (void)state;
    made_gives("opset 9\ninput x float32 b 8\noutput y\nnode Slice x y starts=2, ends=-1, axes=1,", "y",
               "float32[b,5]");
    made_gives("opset 9\ninput x float32 b 8\noutput y\nnode Slice x y starts=0,1 ends=1,3", "y",
               "float32[min(1, b),2]");
    /* a table of positions cut to the length of the input, then added to it: the length it is */
    made_gives(
        "input x float32 b s 8\nweight p 1 512 8\nints z 0\nints one 1\nscalar i1 1\noutput y\n"
        "node Shape x d\nnode Gather d,i1 n\nnode Unsqueeze n,z n1\nnode Slice p,z,n1,one c\nnode Add x,c y",
        "y", "float32[b,s,8]");
    made_gives("input x float32 5 6\ninput k int64 1\nints ax 1\nints z 0\noutput y\nnode Slice x,z,k,ax y",
               "y", "float32[5,?]");
    made_fails(
        "input x float32 5\nints a 0\nints e 3\nints ax 0\nints st 0\noutput y\nnode Slice x,a,e,ax,st y",
        "a step of 0");
    made_fails("input x float32 5\nints a 0 1\nints e 3\noutput y\nnode Slice x,a,e y", "not equally long");
}

/* ---- gathers ---- */

static void test_gather(void **state)
{
    (void)state;
    made_gives("weight w 30522 384\ninput ids int64 b s\noutput y\nnode Gather w,ids y", "y",
               "float32[b,s,384]");
    made_gives("input x float32 b s 8\nscalar i 0\noutput y\nnode Gather x,i y axis=1", "y", "float32[b,8]");
    made_gives("input x float32 b 8\ninput i int64 b 3\noutput y\nnode GatherElements x,i y axis=1", "y",
               "float32[b,3]");
    made_gives("input x float32 b 4 8\ninput i int64 b 5 1\noutput y\nnode GatherND x,i y batch_dims=1", "y",
               "float32[b,5,8]");
    made_fails("input x float32 b\ninput i int64 3\noutput y\nnode Gather x,i y axis=1",
               "axis 1 does not exist");
    made_gives(
        "input x float32 b 4\ninput i int64 3 1\ninput u float32 3 4\noutput y\nnode ScatterND x,i,u y", "y",
        "float32[b,4]");
}

/* ---- larger ---- */

static void test_expand_tile_pad(void **state)
{
    (void)state;
    made_gives("input x float32 b 1\nints t 3 1 5\noutput y\nnode Expand x,t y", "y", "float32[3,b,5]");
    made_gives("input x float32 b 2\nints t 3 4\noutput y\nnode Tile x,t y", "y", "float32[3*b,8]");
    made_gives("opset 10\ninput x float32 b 4\noutput y\nnode Pad x y pads=0,1,2,3", "y", "float32[b + 2,8]");
    made_gives("input x float32 b 4\nints p 0 1 2 -3\noutput y\nnode Pad x,p y", "y", "float32[b + 2,2]");
    made_gives("opset 18\ninput x float32 b 4\nints p 1 1\nints ax -1\noutput y\nnode Pad x,p,,ax y", "y",
               "float32[b,6]");
    made_fails("input x float32 b 4\nints p 1 1\noutput y\nnode Pad x,p y", "2 pads for 2 dimensions");
    made_fails("input x float32 4\nints p -3 -3\noutput y\nnode Pad x,p y", "would be negative");
    made_gives("input x float32 b 8 h w\noutput y\nnode DepthToSpace x y blocksize=2", "y",
               "float32[b,2,2*h,2*w]");
    made_gives("input x float32 b 2 4 6\noutput y\nnode SpaceToDepth x y blocksize=2", "y",
               "float32[b,8,2,3]");
    made_gives("input x float32 b 4\nints t 9\noutput y\nnode CenterCropPad x,t y axes=1,", "y",
               "float32[b,9]");
}

static void test_one_hot_and_range(void **state)
{
    (void)state;
    made_gives("input i int64 b s\nscalar d 10\nfloats v 0 1\noutput y\nnode OneHot i,d,v y", "y",
               "float32[b,s,10]");
    made_gives("input i int64 b s\nscalar d 10\nfloats v 0 1\noutput y\nnode OneHot i,d,v y axis=0", "y",
               "float32[10,b,s]");
    made_gives("input x float32 s\nscalar z 0\nscalar one 1\noutput r\nnode Shape x d\nnode Squeeze d n\n"
               "node Range z,n,one r",
               "r", "int64[s]");
    made_holds("scalar a 10\nscalar e 3\nscalar k -3\noutput r\nnode Range a,e,k r", "r", "10 7 4");
    made_gives("input n int64\nscalar z 0\nscalar one 1\noutput r\nnode Range z,n,one r", "r", "int64[?]");
}

static void test_lengths_that_depend_on_data(void **state)
{
    (void)state;
    struct made_model m;
    made(&m, "input x float32 b 4\ninput c bool 4\noutput k\nnode NonZero x n\nnode Compress x,c k axis=1\n"
             "node Unique x u,i,v,t\nnode Neg n g");
    made_expect(&m, "n", "int64[2,?]");
    made_expect(&m, "k", "float32[b,?]");
    made_expect(&m, "u", "float32[?]");
    made_expect(&m, "v", "int64[4*b]");
    made_expect(&m, "g", "int64[2,?]");
    assert_true(infer_value(m.result.main, "n")->data_dependent);
    assert_true(infer_value(m.result.main, "g")->data_dependent); /* by what it is made of */
    assert_int_equal(m.result.n_unknown, 4);
    made_release(&m);
}

/* How old exporters count up: the places of a tensor of ones, as many as it has. */
static void test_non_zero_of_ones(void **state)
{
    (void)state;
    struct made_model m;
    struct buf g = BUF_INIT, n = pb_node("ConstantOfShape", "d", "ones"), a = BUF_INIT;
    struct buf one = pb_ints("", (int64_t[]){1}, 1);
    pb_str(&a, 1, "value");
    pb_msg(&a, 5, &one);
    pb_int(&a, 20, 4);
    pb_msg(&n, 5, &a);
    pb_msg(&g, 1, &n);
    made_over(&m, &g, made_graph(&g, "input x float32 b s\noutput n\nnode Shape x d\nnode NonZero ones n"));
    made_infer(&m, NULL);
    made_expect(&m, "ones", "int64[b,s]");
    made_expect(&m, "n", "int64[2,b*s]");
    made_release(&m);
}

/* ---- contents ---- */

static void test_contents_follow(void **state)
{
    (void)state;
#define SHAPE "input x float32 b 3 s 8\noutput d\nnode Shape x d\n"
    made_holds(SHAPE, "d", "b 3 s 8");
    made_holds("opset 15\ninput x float32 b 3 s 8\noutput d\nnode Shape x d start=1 end=-1", "d", "3 s");
    made_holds(SHAPE "ints i 2 0\nnode Gather d,i y", "y", "s b");
    made_holds(SHAPE "ints i -1\nnode Gather d,i y", "y", "8");
    made_holds(SHAPE "ints a 1\nints e 3\nnode Slice d,a,e y", "y", "3 s");
    made_holds(SHAPE "ints a -1\nints e -9\nints ax 0\nints st -1\nnode Slice d,a,e,ax,st y", "y", "8 s 3 b");
    made_holds(SHAPE "ints k 2 2 2 2\nnode Mul d,k y", "y", "2*b 6 2*s 16");
    made_holds(SHAPE "scalar k 2\nnode Div d,k y", "y", "floor(b/2) 1 floor(s/2) 4");
    made_holds(SHAPE "node Cast d f to=1\nfloats h 0.5\nnode Mul f,h g\nnode Floor g i\nnode Cast i y to=7",
               "y", "floor(b/2) 1 floor(s/2) 4");
    made_holds(SHAPE "node Cast d f to=1\nfloats h 2\nnode Div f,h g\nnode Ceil g i\nnode Cast i y to=7", "y",
               "floor((b + 1)/2) 2 floor((s + 1)/2) 4");
    made_holds("input x float32 b s\noutput n\nnode Size x n", "n", "b*s");
    made_holds(SHAPE "ints t 2 2\nnode Reshape d,t m\nnode Transpose m y\n", "y", "b s 3 8");
    made_holds(SHAPE "node Split d p,q axis=0", "q", "s 8");
    made_holds(SHAPE "ints m 512 512 512 512\nnode Min d,m y", "y", "min(512, b) 3 min(512, s) 8");
    made_holds(SHAPE "scalar k 3\nnode Mod d,k y", "y", "b - 3*floor(b/3) 0 -3*floor(s/3) + s 2");
    made_holds("ints t 3\nscalar k 7\noutput y\nnode Expand k,t y", "y", "7 7 7");
    made_holds("ints v 4 5\nints t 2\noutput y\nnode Tile v,t y", "y", "4 5 4 5");
#undef SHAPE
}

/* Expand by a shape in which -1 stands for "as it is": Where(Equal(shape, -1), ones, shape). */
static void test_expand_as_torch_writes_it(void **state)
{
    (void)state;
    made_gives(
        "input x float32 b s\ninput m float32 1 1 8\nscalar i0 0\nscalar i1 1\nints z 0\nints minus -1\n"
        "ints four 3\nscalar neg -1\noutput y\nnode Shape x d\nnode Gather d,i0 p\nnode Gather d,i1 q\n"
        "node Unsqueeze p,z p1\nnode Unsqueeze q,z q1\nnode Concat p1,q1,minus t axis=0\n"
        "node ConstantOfShape four zeros\nnode Cast zeros zi to=7\nnode Add zi,i1 ones\n"
        "node Equal t,neg e\nnode Where e,ones,t w\nnode Expand m,w y",
        "y", "float32[b,s,8]");
}

/* The operators that compare know what holds for all sizes, and no more. */
static void test_comparisons_of_sizes(void **state)
{
    (void)state;
    made_holds("input x float32 s\nscalar k -1\noutput e\nnode Shape x d\nnode Equal d,k e", "e", "0");
    made_holds("input x float32 s\nscalar k 5\noutput e\nnode Shape x d\nnode Equal d,k e", "e", "-");
    made_holds("input x float32 s\nscalar k 0\noutput e\nnode Shape x d\nnode Less d,k e", "e", "0");
    made_holds("input x float32 s\nscalar k 0\noutput e\nnode Shape x d\nnode GreaterOrEqual d,k e", "e",
               "1");
    made_holds("input x float32 s\nscalar k 0\noutput e\nnode Shape x d\nnode Greater d,k e", "e", "-");
}

/* Numbers as the types hold them: what would wrap around or be rounded is not stated. */
static void test_contents_keep_to_their_type(void **state)
{
    (void)state;
    made_holds("ints v 300\noutput y\nnode Cast v y to=2", "y", "-");
    made_holds("ints v -1\noutput y\nnode Cast v y to=12", "y", "-");
    made_holds("ints v 2147483647\noutput y\nnode Cast v i to=6\nnode Add i,i y", "y", "-");
    made_holds("ints v -7\nints k 2\noutput y\nnode Div v,k y", "y", "-3");
    made_holds("floats v -2.5 2.5 0.1\noutput y\nnode Cast v y to=7", "y", "-2 2 0");
    made_holds("floats v 10\nfloats k 0.7\noutput y\nnode Mul v,k y", "y",
               "7"); /* as a float, not 6.99999988 */
    made_holds(
        "input x float32 s\nfloats k 0.7\noutput y\nnode Shape x d\nnode Cast d f to=1\nnode Mul f,k g\n"
        "node Floor g h\nnode Cast h y to=7",
        "y", "-"); /* how the product is rounded hangs on s */
}

/* Much is not followed, but never wrongly. */
static void test_large_contents_are_let_go(void **state)
{
    (void)state;
    made_holds("ints t 5000\noutput y\nnode ConstantOfShape t y", "y", "-");
    made_gives("ints t 5000\noutput y\nnode ConstantOfShape t y", "y", "float32[5000]");
    made_holds("ints t 4000000000 4000000000 4000000000\noutput y\nnode ConstantOfShape t y", "y", "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast_shapes),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_reshape_of_a_computed_shape),
        cmocka_unit_test(test_reshape_that_depends_on_data),
        cmocka_unit_test(test_reshape_that_is_wrong),
        cmocka_unit_test(test_squeeze_and_unsqueeze),
        cmocka_unit_test(test_transpose_and_concat),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_slice_clamps),
        cmocka_unit_test(test_slice_forms),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_expand_tile_pad),
        cmocka_unit_test(test_one_hot_and_range),
        cmocka_unit_test(test_lengths_that_depend_on_data),
        cmocka_unit_test(test_non_zero_of_ones),
        cmocka_unit_test(test_contents_follow),
        cmocka_unit_test(test_expand_as_torch_writes_it),
        cmocka_unit_test(test_comparisons_of_sizes),
        cmocka_unit_test(test_contents_keep_to_their_type),
        cmocka_unit_test(test_large_contents_are_let_go),
    };
    return cmocka_run_group_tests_name("infer_move", tests, NULL, NULL);
}
