/* SPDX-License-Identifier: MIT
 * synth_vision.c - networks without attention: ResNet-50 (v1.5: the stride is in the 3x3), MobileNetV2, a perceptron.
 * Batch normalisation stays a node of its own, so that its parameters are there to be counted; runtimes
 * fold it. The last one of each residual branch is scaled down, as training would, so that sums do not grow
 * with depth. */
#include "model/synth/synth_block.h"

#define EPS 1e-5
#define BRANCH_GAMMA 0.25

static ow_val bn_vector(struct synth *s, const char *leaf, uint64_t n, double v, bool buffer)
{
    return ow_weight(s->w, &(struct ow_spec){.leaf = leaf,
                                             .type = s->real,
                                             .rank = 1,
                                             .dims = {(int64_t)n},
                                             .fill = OW_SAME,
                                             .value = v,
                                             .buffer = buffer});
}

static ow_val batch_norm(struct synth *s, const char *scope, ow_val x, uint64_t n, double gamma)
{
    size_t mark = ow_enter(s->w, scope);
    ow_val g = bn_vector(s, "weight", n, gamma, false), b = bn_vector(s, "bias", n, 0, false);
    ow_val mean = bn_vector(s, "running_mean", n, 0, true), var = bn_vector(s, "running_var", n, 1, true);
    ow_val y = ow_op_attr(s->w, "BatchNormalization", OW_ATTRS(OW_ATTR_FLOAT("epsilon", (float)EPS)), x, g, b,
                          mean, var);
    ow_leave(s->w, mark);
    return y;
}

/* Keeps the size of activations: `gain` 2 before a Relu, 1 before none. */
static double std_of(const struct conv *c, double gain)
{
    uint64_t inputs = c->in / c->groups * c->kernel * c->kernel;
    return __builtin_sqrt(gain / (double)inputs);
}

static ow_val image_input(struct synth *s)
{
    struct onnx_dim dims[] = {SYNTH_BATCH, {3, ""}, SYNTH_FIXED(s->c->image), SYNTH_FIXED(s->c->image)};
    return block_real_input(s, "input", 4, dims);
}

static void classify(struct synth *s, ow_val x, const char *scope, uint64_t width)
{
    x = ow_op(s->w, "GlobalAveragePool", x);
    x = ow_op_attr(s->w, "Flatten", OW_ATTRS(OW_ATTR_INT("axis", 1)), x);
    x = block_gemm(s, scope, x, width, s->c->classes);
    block_output(s, x, "output", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(s->c->classes)});
}

/* ---- ResNet ---- */

static ow_val conv_bn(struct synth *s, const char *const scopes[2], ow_val x, struct conv c, double gamma)
{
    c.std = std_of(&c, 2);
    return batch_norm(s, scopes[1], block_conv(s, scopes[0], x, &c), c.out, gamma);
}

/* 1x1, 3x3, 1x1 beside a shortcut. */
static ow_val bottleneck(struct synth *s, ow_val x, uint64_t in, uint64_t width, uint64_t stride)
{
    struct ow *w = s->w;
    uint64_t out = 4 * width;
    ow_val y =
        conv_bn(s, (const char *[]){"conv1", "bn1"}, x, (struct conv){in, width, 1, 1, 1, 0, 0, false}, 1);
    y = ow_op(w, "Relu", y);
    y = conv_bn(s, (const char *[]){"conv2", "bn2"}, y,
                (struct conv){width, width, 3, stride, 1, 1, 0, false}, 1);
    y = ow_op(w, "Relu", y);
    y = conv_bn(s, (const char *[]){"conv3", "bn3"}, y, (struct conv){width, out, 1, 1, 1, 0, 0, false},
                BRANCH_GAMMA);
    if (in != out || stride != 1)
        x = conv_bn(s, (const char *[]){"downsample/0", "downsample/1"}, x,
                    (struct conv){in, out, 1, stride, 1, 0, 0, false}, 0.7);
    return ow_op(w, "Relu", ow_op(w, "Add", y, x));
}

void synth_resnet50(struct synth *s)
{
    static const unsigned depth[] = {3, 4, 6, 3};
    struct ow *w = s->w;
    struct conv stem = {3, 64, 7, 2, 1, 3, 0, false};
    ow_val x = ow_op(w, "Relu", conv_bn(s, (const char *[]){"conv1", "bn1"}, image_input(s), stem, 1));
    x = ow_op_attr(w, "MaxPool",
                   OW_ATTRS(OW_ATTR_INTS("kernel_shape", 3, 3), OW_ATTR_INTS("pads", 1, 1, 1, 1),
                            OW_ATTR_INTS("strides", 2, 2)),
                   x);
    uint64_t in = 64;
    for (unsigned stage = 0; stage < 4; stage++)
        for (unsigned i = 0; i < depth[stage]; i++) {
            char layer[] = {'l', 'a', 'y', 'e', 'r', (char)('1' + stage), '\0'};
            uint64_t width = UINT64_C(64) << stage;
            size_t mark = ow_enter_index(w, layer, i);
            x = bottleneck(s, x, in, width, stage > 0 && i == 0 ? 2 : 1);
            ow_leave(w, mark);
            in = 4 * width;
        }
    classify(s, x, "fc", in);
}

/* ---- MobileNetV2 ---- */

static ow_val relu6(struct synth *s, ow_val x)
{
    return ow_op(s->w, "Clip", x, block_const(s, 0), block_const(s, 6));
}

/* Convolution, normalisation and, unless `linear`, the activation, under the indices of the original. */
static ow_val unit(struct synth *s, ow_val x, unsigned *at, struct conv c, bool linear)
{
    struct ow *w = s->w;
    c.std = std_of(&c, linear ? 1 : 2);
    size_t mark = linear ? ow_enter_index(w, "conv", *at) : ow_enter_index(w, "conv", (*at)++);
    x = block_conv(s, linear ? "" : "0", x, &c);
    if (!linear) x = batch_norm(s, "1", x, c.out, 1);
    if (!linear) x = relu6(s, x);
    ow_leave(w, mark);
    if (!linear) return x;
    mark = ow_enter_index(w, "conv", *at + 1);
    x = batch_norm(s, "", x, c.out, 1);
    ow_leave(w, mark);
    return x;
}

struct inverted {
    uint64_t in, out, stride, expand;
};

static ow_val inverted_residual(struct synth *s, ow_val x, const struct inverted *b)
{
    uint64_t wide = b->in * b->expand;
    unsigned at = 0;
    ow_val y = x;
    if (b->expand != 1) y = unit(s, y, &at, (struct conv){b->in, wide, 1, 1, 1, 0, 0, false}, false);
    y = unit(s, y, &at, (struct conv){wide, wide, 3, b->stride, wide, 1, 0, false}, false);
    y = unit(s, y, &at, (struct conv){wide, b->out, 1, 1, 1, 0, 0, false}, true);
    return b->stride == 1 && b->in == b->out ? ow_op(s->w, "Add", x, y) : y;
}

static ow_val feature(struct synth *s, ow_val x, unsigned i, struct conv c)
{
    struct ow *w = s->w;
    size_t mark = ow_enter_index(w, "features", i);
    c.std = std_of(&c, 2);
    x = relu6(s, batch_norm(s, "1", block_conv(s, "0", x, &c), c.out, 1));
    ow_leave(w, mark);
    return x;
}

void synth_mobilenetv2(struct synth *s)
{
    static const struct {
        unsigned expand, out, n, stride;
    } rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    unsigned index = 0;
    ow_val x = feature(s, image_input(s), index++, (struct conv){3, 32, 3, 2, 1, 1, 0, false});
    uint64_t in = 32;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (unsigned i = 0; i < rows[r].n; i++) {
            size_t mark = ow_enter_index(s->w, "features", index++);
            struct inverted b = {in, rows[r].out, i == 0 ? rows[r].stride : 1, rows[r].expand};
            x = inverted_residual(s, x, &b);
            ow_leave(s->w, mark);
            in = b.out;
        }
    x = feature(s, x, index, (struct conv){in, 1280, 1, 1, 1, 0, 0, false});
    classify(s, x, "classifier.1", 1280);
}

/* ---- a perceptron ---- */

void synth_mlp(struct synth *s)
{
    const struct synth_config *c = s->c;
    ow_val x = block_real_input(s, "input", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(c->sizes[0])});
    for (unsigned i = 1; i < c->n_sizes; i++) {
        size_t mark = ow_enter_index(s->w, "layers", i - 1);
        s->std = __builtin_sqrt(2.0 / (double)c->sizes[i - 1]); /* a Relu halves the power */
        x = block_gemm(s, "", x, c->sizes[i - 1], c->sizes[i]);
        if (i + 1 < c->n_sizes) x = ow_op(s->w, "Relu", x);
        ow_leave(s->w, mark);
    }
    block_output(s, x, "output", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(c->sizes[c->n_sizes - 1])});
}
