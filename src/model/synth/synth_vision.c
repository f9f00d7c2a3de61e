/* SPDX-License-Identifier: MIT
 * synth_vision.c - networks without attention: ResNet-50 (v1.5: the stride is in the 3x3), MobileNetV2, a perceptron.
 * Batch normalisation stays a node of its own, so that its parameters are there to be counted; runtimes
 * fold it. The last one of each residual branch is scaled down, as training would, so that sums do not grow
 * with depth. */
#include "model/synth/synth_block.h"

#define EPS 1e-5
#define BRANCH_GAMMA 0.25

static ow_val batch_norm(struct synth *s, const char *scope, ow_val x, uint64_t n, double gamma)
{
    static const char *const leaves[] = {"weight", "bias", "running_mean", "running_var"};
    const double values[] = {gamma, 0, 0, 1};
    ow_val in[5] = {x};
    size_t mark = ow_enter(s->w, scope);
    for (unsigned i = 0; i < 4; i++) {
        struct ow_spec spec = {.leaf = leaves[i], .rank = 1, .dims = {(int64_t)n}, .fill = OW_SAME};
        spec.value = values[i];
        spec.buffer = i >= 2;
        in[i + 1] = block_weight(s, spec);
    }
    const struct ow_attr attrs[] = {OW_ATTR_FLOAT("epsilon", (float)EPS), {.kind = 0}};
    ow_val y = ow_node(s->w, &(struct ow_call){"BatchNormalization", 5, 1, in, attrs});
    ow_leave(s->w, mark);
    return y;
}

/* Keeps the size of activations: `gain` 2 before a Relu, 1 before none. */
static double std_of(const struct conv *c, double gain)
{
    uint64_t inputs = c->in / c->groups * c->kernel * c->kernel;
    return __builtin_sqrt(gain / (double)inputs);
}

static void classify(struct synth *s, ow_val x, const char *scope, uint64_t width)
{
    x = ow_op(s->w, "GlobalAveragePool", x);
    x = ow_op_axis(s->w, "Flatten", 1, x);
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

/* Four stages; the first block of each but the first one halves the image, and every stage doubles the width. */
void synth_resnet50(struct synth *s)
{
    static const unsigned depth[] = {3, 4, 6, 3};
    struct ow *w = s->w;
    struct conv stem = {3, 64, 7, 2, 1, 3, 0, false};
    ow_val x = ow_op(w, "Relu",
                     conv_bn(s, (const char *[]){"conv1", "bn1"}, block_image_input(s, "input"), stem, 1));
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

/* Convolution, normalisation and activation, in a scope of their own under the indices of the original. */
static ow_val conv_unit(struct synth *s, const char *scope, unsigned index, ow_val x, struct conv c)
{
    size_t mark = ow_enter_index(s->w, scope, index);
    x = relu6(s, conv_bn(s, (const char *[]){"0", "1"}, x, c, 1));
    ow_leave(s->w, mark);
    return x;
}

struct inverted {
    uint64_t in, out, stride, expand;
};

static ow_val inverted_residual(struct synth *s, ow_val x, const struct inverted *b)
{
    uint64_t wide = b->in * b->expand;
    struct conv last = {wide, b->out, 1, 1, 1, 0, 0, false};
    unsigned at = 0;
    ow_val y = x;
    if (b->expand != 1) y = conv_unit(s, "conv", at++, y, (struct conv){b->in, wide, 1, 1, 1, 0, 0, false});
    y = conv_unit(s, "conv", at++, y, (struct conv){wide, wide, 3, b->stride, wide, 1, 0, false});
    last.std = std_of(&last, 1); /* no activation follows */
    size_t mark = ow_enter_index(s->w, "conv", at++);
    y = block_conv(s, "", y, &last);
    ow_leave(s->w, mark);
    ow_enter_index(s->w, "conv", at);
    y = batch_norm(s, "", y, last.out, 1);
    ow_leave(s->w, mark);
    return b->stride == 1 && b->in == b->out ? ow_op(s->w, "Add", x, y) : y;
}

/* The rows are table 2 of the paper (expansion, channels, repeats, stride). Names count through the whole
 * network, as torchvision's do. */
void synth_mobilenetv2(struct synth *s)
{
    static const struct {
        unsigned expand, out, n, stride;
    } rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    unsigned index = 0;
    ow_val x = conv_unit(s, "features", index++, block_image_input(s, "input"),
                         (struct conv){3, 32, 3, 2, 1, 1, 0, false});
    uint64_t in = 32;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (unsigned i = 0; i < rows[r].n; i++) {
            size_t mark = ow_enter_index(s->w, "features", index++);
            struct inverted b = {in, rows[r].out, i == 0 ? rows[r].stride : 1, rows[r].expand};
            x = inverted_residual(s, x, &b);
            ow_leave(s->w, mark);
            in = b.out;
        }
    x = conv_unit(s, "features", index, x, (struct conv){in, 1280, 1, 1, 1, 0, 0, false});
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
