/* SPDX-License-Identifier: MIT
 * synth_block.c - see synth_block.h. Knows layers, not architectures. */
#include "model/synth/synth_block.h"

/* ---- elementary ---- */

ow_val block_const(struct synth *s, double v)
{
    return ow_float(s->w, s->real, v);
}

ow_val block_cast(struct synth *s, ow_val x, int type)
{
    return ow_op_attr(s->w, "Cast", OW_ATTRS(OW_ATTR_INT("to", type)), x);
}

ow_val block_unsqueeze(struct synth *s, ow_val x, int64_t axis)
{
    return ow_op(s->w, "Unsqueeze", x, ow_ints_of(s->w, axis));
}

ow_val block_transpose(struct synth *s, ow_val x)
{
    return ow_op_attr(s->w, "Transpose", OW_ATTRS(OW_ATTR_INTS("perm", 0, 2, 1, 3)), x);
}

/* The axes of a mean became an input with operator set 18. */
static ow_val block_mean(struct synth *s, ow_val x, int64_t axis)
{
    if (s->w->opset < 18) return ow_op_attr(s->w, "ReduceMean", OW_ATTRS(OW_ATTR_INTS("axes", axis)), x);
    return ow_op(s->w, "ReduceMean", x, ow_ints_of(s->w, axis));
}

ow_val block_dim(struct synth *s, ow_val x, int64_t axis)
{
    ow_val shape = ow_op(s->w, "Shape", x);
    return ow_op_attr(s->w, "Gather", OW_ATTRS(OW_ATTR_INT("axis", 0)), shape, ow_ints(s->w, &axis, 1, 0));
}

ow_val block_gelu(struct synth *s, ow_val x)
{
    ow_val e = ow_op(s->w, "Div", x, block_const(s, 1.4142135623730951));
    e = ow_op(s->w, "Add", ow_op(s->w, "Erf", e), block_const(s, 1));
    return ow_op(s->w, "Mul", ow_op(s->w, "Mul", x, e), block_const(s, 0.5));
}

double block_lowest(const struct synth *s)
{
    return s->real == ONNX_FLOAT16 ? -65504.0 : -3.4028234663852886e38;
}

ow_val block_weight(struct synth *s, const char *leaf, uint64_t rows, uint64_t cols)
{
    return ow_weight(
        s->w,
        &(struct ow_spec){
            .leaf = leaf, .type = s->real, .rank = 2, .dims = {(int64_t)rows, (int64_t)cols}, .std = s->std});
}

ow_val block_output(struct synth *s, ow_val x, const char *name, unsigned rank, const struct onnx_dim *dims)
{
    if (s->real != ONNX_FLOAT) x = block_cast(s, x, ONNX_FLOAT);
    ow_output(s->w, name, ow_port(x, ONNX_FLOAT, rank, dims));
    return x;
}

ow_val block_real_input(struct synth *s, const char *name, unsigned rank, const struct onnx_dim *dims)
{
    ow_val x = ow_input(s->w, name, ONNX_FLOAT, rank, dims);
    return s->real == ONNX_FLOAT ? x : block_cast(s, x, s->real);
}

/* ---- vectors ---- */

static ow_val same(struct synth *s, const char *leaf, uint64_t n, double v)
{
    return ow_weight(
        s->w,
        &(struct ow_spec){
            .leaf = leaf, .type = s->real, .rank = 1, .dims = {(int64_t)n}, .fill = OW_SAME, .value = v});
}

/* Biases are small and not zero: a zero one could be folded away unseen. */
static ow_val bias(struct synth *s, uint64_t n)
{
    return ow_weight(
        s->w,
        &(struct ow_spec){.leaf = "bias", .type = s->real, .rank = 1, .dims = {(int64_t)n}, .std = 0.01});
}

ow_val block_layer_norm(struct synth *s, const char *scope, ow_val x, uint64_t width, double eps)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, scope);
    ow_val gamma = same(s, "weight", width, 1), beta = same(s, "bias", width, 0), out;
    if (w->opset >= 17) {
        out = ow_op_attr(w, "LayerNormalization",
                         OW_ATTRS(OW_ATTR_INT("axis", -1), OW_ATTR_FLOAT("epsilon", (float)eps)), x, gamma,
                         beta);
    } else {
        if (s->real == ONNX_FLOAT16 && eps < 1e-6) eps = 1e-6; /* below it a half is nearly 0 */
        ow_val d = ow_op(w, "Sub", x, block_mean(s, x, -1));
        ow_val variance = block_mean(s, ow_op(w, "Pow", d, block_const(s, 2)), -1);
        out = ow_op(w, "Div", d, ow_op(w, "Sqrt", ow_op(w, "Add", variance, block_const(s, eps))));
        out = ow_op(w, "Add", ow_op(w, "Mul", out, gamma), beta);
    }
    ow_leave(w, mark);
    return out;
}

/* ---- products ---- */

/* x in 8 bits: q, then scale, then zero point, in values that follow each other. */
static ow_val quantize(struct synth *s, ow_val x)
{
    ow_val q = 0;
    for (unsigned i = 0; i < SYNTH_SEEN && x; i++)
        if (s->seen[i].of == x) q = s->seen[i].q;
    if (!q) q = ow_node(s->w, &(struct ow_call){"DynamicQuantizeLinear", 1, 3, &x, NULL});
    s->seen[s->n_seen].of = x; /* again when found: what is used is kept */
    s->seen[s->n_seen].q = q;
    s->n_seen = (s->n_seen + 1) % SYNTH_SEEN;
    return q;
}

ow_val block_integer_product(struct synth *s, const struct ow_call *op, ow_val x,
                             const struct ow_quantized *k)
{
    struct ow *w = s->w;
    ow_val q = quantize(s, x);
    struct ow_call call = *op;
    call.n_in = 4;
    call.n_out = 1;
    call.in = (ow_val[]){q, k->q, q + 2, k->zero};
    ow_val y = block_cast(s, ow_node(w, &call), ONNX_FLOAT);
    return ow_op(w, "Mul", y, ow_op(w, "Mul", q + 1, k->scale));
}

static struct ow_quantized quantized_of(ow_val first)
{
    return (struct ow_quantized){first, first + 1, first + 2};
}

static ow_val linear_weight(struct synth *s, uint64_t in, uint64_t out, bool transposed)
{
    struct ow_spec spec = {.leaf = "weight",
                           .type = s->c->dtype == SYNTH_INT8 ? ONNX_INT8 : s->real,
                           .rank = 2,
                           .dims = {(int64_t)in, (int64_t)out},
                           .std = s->std,
                           .transposed = transposed};
    return s->c->dtype == SYNTH_INT8 ? ow_quantized(s->w, &spec).q : ow_weight(s->w, &spec);
}

struct linear block_linear_new(struct synth *s, const char *scope, uint64_t in, uint64_t out)
{
    size_t mark = ow_enter(s->w, scope);
    struct linear l = {.weight = linear_weight(s, in, out, false)};
    l.bias = bias(s, out);
    ow_leave(s->w, mark);
    return l;
}

ow_val block_linear_use(struct synth *s, const char *scope, const struct linear *l, ow_val x)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, scope);
    ow_val y;
    if (s->c->dtype == SYNTH_INT8) {
        struct ow_quantized k = quantized_of(l->weight);
        y = block_integer_product(s, &(struct ow_call){.op = "MatMulInteger"}, x, &k);
    } else {
        y = ow_op(w, "MatMul", x, l->weight);
    }
    y = ow_op(w, "Add", l->bias, y);
    ow_leave(w, mark);
    return y;
}

ow_val block_linear(struct synth *s, const char *scope, ow_val x, uint64_t in, uint64_t out)
{
    struct linear l = block_linear_new(s, scope, in, out);
    return block_linear_use(s, scope, &l, x);
}

ow_val block_gemm(struct synth *s, const char *scope, ow_val x, uint64_t in, uint64_t out)
{
    size_t mark = ow_enter(s->w, scope);
    bool integer = s->c->dtype == SYNTH_INT8;
    struct linear l = {.weight =
                           integer ? linear_weight(s, in, out, true) : linear_weight(s, out, in, false)};
    ow_val y;
    l.bias = bias(s, out);
    if (integer)
        y = block_linear_use(s, "", &l, x);
    else
        y = ow_op_attr(s->w, "Gemm", OW_ATTRS(OW_ATTR_INT("transB", 1)), x, l.weight, l.bias);
    ow_leave(s->w, mark);
    return y;
}

/* ---- tables ---- */

struct embedding block_embedding_new(struct synth *s, const char *scope, uint64_t rows, uint64_t cols)
{
    size_t mark = ow_enter(s->w, scope);
    struct embedding e = {0};
    if (s->c->dtype == SYNTH_INT8) {
        struct ow_quantized k = ow_quantized(s->w, &(struct ow_spec){.leaf = "weight",
                                                                     .type = ONNX_INT8,
                                                                     .rank = 2,
                                                                     .dims = {(int64_t)rows, (int64_t)cols},
                                                                     .std = s->std});
        e = (struct embedding){k.q, k.scale, k.zero};
    } else {
        e.table = block_weight(s, "weight", rows, cols);
    }
    ow_leave(s->w, mark);
    return e;
}

ow_val block_embedding_use(struct synth *s, const char *scope, const struct embedding *e, ow_val ids)
{
    size_t mark = ow_enter(s->w, scope);
    ow_val x = ow_op(s->w, "Gather", e->table, ids);
    if (e->scale) x = ow_op(s->w, "DequantizeLinear", x, e->scale, e->zero);
    ow_leave(s->w, mark);
    return x;
}

ow_val block_embedding(struct synth *s, const char *scope, ow_val ids, uint64_t rows, uint64_t cols)
{
    struct embedding e = block_embedding_new(s, scope, rows, cols);
    return block_embedding_use(s, scope, &e, ids);
}

/* ---- convolutions ---- */

ow_val block_conv(struct synth *s, const char *scope, ow_val x, const struct conv *c)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, scope);
    bool integer = s->c->dtype == SYNTH_INT8;
    int64_t k = (int64_t)c->kernel, step = (int64_t)c->stride, pad = (int64_t)c->padding;
    const struct ow_attr attrs[] = {
        OW_ATTR_INTS("dilations", 1, 1),     OW_ATTR_INT("group", (int64_t)c->groups),
        OW_ATTR_INTS("kernel_shape", k, k),  OW_ATTR_INTS("pads", pad, pad, pad, pad),
        OW_ATTR_INTS("strides", step, step), {.kind = 0}};
    struct ow_spec spec = {.leaf = "weight",
                           .type = integer ? ONNX_UINT8 : s->real, /* all that older runtimes know */
                           .rank = 4,
                           .dims = {(int64_t)c->out, (int64_t)(c->in / c->groups), k, k},
                           .std = c->std};
    ow_val y;
    if (integer) {
        struct ow_quantized q = ow_quantized(w, &spec);
        y = block_integer_product(s, &(struct ow_call){.op = "ConvInteger", .attrs = attrs}, x, &q);
        if (c->bias) y = ow_op(w, "Add", y, ow_op(w, "Reshape", bias(s, c->out), ow_ints_of(w, 1, -1, 1, 1)));
    } else {
        ow_val in[] = {x, ow_weight(w, &spec), c->bias ? bias(s, c->out) : 0};
        y = ow_node(w, &(struct ow_call){"Conv", c->bias ? 3 : 2, 1, in, attrs});
    }
    ow_leave(w, mark);
    return y;
}

/* ---- encoder layers ---- */

ow_val block_split_heads(struct synth *s, ow_val x)
{
    int64_t heads = (int64_t)s->c->heads, width = (int64_t)(s->c->hidden / s->c->heads);
    return ow_op(s->w, "Reshape", x, ow_ints_of(s->w, 0, 0, heads, width));
}

ow_val block_merge_heads(struct synth *s, ow_val x)
{
    return ow_op(s->w, "Reshape", block_transpose(s, x), ow_ints_of(s->w, 0, 0, (int64_t)s->c->hidden));
}

ow_val block_attend(struct synth *s, const struct encoder *e, ow_val x)
{
    struct ow *w = s->w;
    uint64_t n = s->c->hidden, width = n / s->c->heads;
    ow_val q = block_linear(s, e->names->query, x, n, n);
    ow_val k = block_linear(s, e->names->key, x, n, n);
    ow_val v = block_linear(s, e->names->value, x, n, n);
    size_t mark = ow_enter(w, e->names->attention);
    q = block_transpose(s, block_split_heads(s, q));
    k = ow_op_attr(w, "Transpose", OW_ATTRS(OW_ATTR_INTS("perm", 0, 2, 3, 1)), block_split_heads(s, k));
    v = block_transpose(s, block_split_heads(s, v));
    ow_val scores = ow_op(w, "MatMul", q, k);
    scores = ow_op(w, "Div", scores, block_const(s, __builtin_sqrt((double)width)));
    if (e->mask) scores = ow_op(w, "Add", scores, e->mask);
    ow_val p = ow_op_attr(w, "Softmax", OW_ATTRS(OW_ATTR_INT("axis", -1)), scores);
    ow_val out = block_merge_heads(s, ow_op(w, "MatMul", p, v));
    ow_leave(w, mark);
    return out;
}

ow_val block_encoder_layer(struct synth *s, const struct encoder *e, ow_val x)
{
    const struct encoder_names *n = e->names;
    uint64_t hidden = s->c->hidden, ffn = s->c->ffn;
    ow_val in = e->norm_first ? block_layer_norm(s, n->attention_norm, x, hidden, e->eps) : x;
    ow_val y = block_linear(s, n->out, e->attend(s, e, in), hidden, hidden);
    x = ow_op(s->w, "Add", y, x);
    if (!e->norm_first) x = block_layer_norm(s, n->attention_norm, x, hidden, e->eps);
    in = e->norm_first ? block_layer_norm(s, n->ffn_norm, x, hidden, e->eps) : x;
    y = block_gelu(s, block_linear(s, n->up, in, hidden, ffn));
    y = block_linear(s, n->down, y, ffn, hidden);
    x = ow_op(s->w, "Add", y, x);
    return e->norm_first ? x : block_layer_norm(s, n->ffn_norm, x, hidden, e->eps);
}

/* ---- what comes out of an encoder ---- */

/* The first position of each row: [batch, hidden]. */
ow_val head_first_token(struct synth *s, ow_val x)
{
    ow_val zero = ow_ints(s->w, (int64_t[]){0}, 1, 0);
    return ow_op_attr(s->w, "Gather", OW_ATTRS(OW_ATTR_INT("axis", 1)), x, zero);
}

/* The mean of the positions that the mask leaves, scaled to length 1; in float32 in every precision. */
void head_sentence_embedding(struct synth *s, ow_val hidden, ow_val mask)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, "pooling");
    ow_val axis = ow_ints_of(w, 1), m = block_cast(s, block_unsqueeze(s, mask, -1), ONNX_FLOAT);
    const struct ow_attr flat[] = {OW_ATTR_INT("keepdims", 0), {.kind = 0}};
    ow_val sum = ow_op_attr(w, "ReduceSum", flat, ow_op(w, "Mul", hidden, m), axis);
    ow_val count = ow_op(w, "Clip", ow_op_attr(w, "ReduceSum", flat, m, axis), ow_float(w, ONNX_FLOAT, 1e-9));
    ow_val mean = ow_op(w, "Div", sum, count);
    ow_val length = w->opset < 18 ? ow_op_attr(w, "ReduceL2", OW_ATTRS(OW_ATTR_INTS("axes", 1)), mean)
                                  : ow_op(w, "ReduceL2", mean, axis);
    ow_val out = ow_op(w, "Div", mean, ow_op(w, "Clip", length, ow_float(w, ONNX_FLOAT, 1e-12)));
    ow_leave(w, mark);
    struct onnx_dim dims[] = {SYNTH_BATCH, SYNTH_FIXED(s->c->hidden)};
    ow_output(w, "sentence_embedding", ow_port(out, ONNX_FLOAT, 2, dims));
}

void head_classify(struct synth *s, ow_val pooled)
{
    ow_val y = block_gemm(s, "classifier", pooled, s->c->hidden, s->c->classes);
    block_output(s, y, "logits", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(s->c->classes)});
}

ow_val head_hidden_states(struct synth *s, ow_val x)
{
    return block_output(s, x, "last_hidden_state", 3,
                        (struct onnx_dim[]){SYNTH_BATCH, SYNTH_SEQ, SYNTH_FIXED(s->c->hidden)});
}
