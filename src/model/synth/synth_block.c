/* SPDX-License-Identifier: MIT
 * synth_block.c - see synth_block.h. Knows layers, not architectures. */
#include "model/synth/synth_block.h"

/* ---- elementary ---- */

ow_val block_const(struct synth *s, double v)
{
    return ow_scalar(s->w, s->real, v);
}

ow_val block_int(struct synth *s, int64_t v)
{
    return ow_scalar(s->w, ONNX_INT64, (double)v);
}

ow_val block_cast(struct synth *s, ow_val x, int type)
{
    return ow_op_attr(s->w, "Cast", OW_ATTRS(OW_ATTR_INT("to", type)), x);
}

ow_val block_unsqueeze(struct synth *s, ow_val x, int64_t axis)
{
    return ow_op(s->w, "Unsqueeze", x, ow_ints_of(s->w, axis));
}

/* The axes of a reduction that keeps them became an input with operator set 18. */
static ow_val reduce(struct synth *s, const char *op, ow_val x, int64_t axis)
{
    if (s->w->opset < 18) return ow_op_attr(s->w, op, OW_ATTRS(OW_ATTR_INTS("axes", axis)), x);
    return ow_op(s->w, op, x, ow_ints_of(s->w, axis));
}

ow_val block_dim(struct synth *s, ow_val x, int64_t axis)
{
    ow_val shape = ow_op(s->w, "Shape", x);
    return ow_op_axis(s->w, "Gather", 0, shape, block_int(s, axis));
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

ow_val block_weight(struct synth *s, struct ow_spec spec)
{
    spec.type = s->real;
    return ow_weight(s->w, &spec);
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

ow_val block_text_input(struct synth *s, const char *name)
{
    return ow_input(s->w, name, ONNX_INT64, 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_SEQ});
}

ow_val block_image_input(struct synth *s, const char *name)
{
    struct onnx_dim side = SYNTH_FIXED(s->c->image), dims[] = {SYNTH_BATCH, SYNTH_FIXED(3), side, side};
    return block_real_input(s, name, 4, dims);
}

/* Biases are small and not zero: a zero one could be folded away unseen. */
static ow_val bias(struct synth *s, uint64_t n)
{
    return block_weight(s, (struct ow_spec){.leaf = "bias", .rank = 1, .dims = {(int64_t)n}, .std = 0.01});
}

/* One node since operator set 17; before, the arithmetic that exporters spelled out. */
ow_val block_layer_norm(struct synth *s, const char *scope, ow_val x, uint64_t width, double eps)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, scope);
    struct ow_spec spec = {
        .leaf = "weight", .rank = 1, .dims = {(int64_t)width}, .fill = OW_SAME, .value = 1};
    ow_val gamma = block_weight(s, spec), beta, out;
    spec.leaf = "bias";
    spec.value = 0;
    beta = block_weight(s, spec);
    if (w->opset >= 17) {
        out = ow_op_attr(w, "LayerNormalization",
                         OW_ATTRS(OW_ATTR_INT("axis", -1), OW_ATTR_FLOAT("epsilon", (float)eps)), x, gamma,
                         beta);
    } else {
        if (s->real == ONNX_FLOAT16 && eps < 1e-6) eps = 1e-6; /* below it a half is nearly 0 */
        ow_val d = ow_op(w, "Sub", x, reduce(s, "ReduceMean", x, -1));
        ow_val variance = reduce(s, "ReduceMean", ow_op(w, "Pow", d, block_const(s, 2)), -1);
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

/* x times a quantised weight: the nodes of one dynamically quantised product. */
static ow_val integer_product(struct synth *s, struct ow_call call, ow_val x, const struct ow_quantized *k)
{
    struct ow *w = s->w;
    ow_val q = quantize(s, x);
    call.n_in = 4;
    call.n_out = 1;
    call.in = (ow_val[]){q, k->q, q + 2, k->zero};
    ow_val y = block_cast(s, ow_node(w, &call), ONNX_FLOAT);
    return ow_op(w, "Mul", y, ow_op(w, "Mul", q + 1, k->scale));
}

ow_val block_product(struct synth *s, ow_val x, const struct ow_quantized *k)
{
    if (!k->scale) return ow_op(s->w, "MatMul", x, k->q);
    return integer_product(s, (struct ow_call){.op = "MatMulInteger"}, x, k);
}

/* A weight in the precision of products; only in int8 it has a scale. */
static struct ow_quantized stored(struct synth *s, struct ow_spec spec, int integer_type)
{
    spec.leaf = "weight";
    if (s->c->dtype != SYNTH_INT8) return (struct ow_quantized){.q = block_weight(s, spec)};
    spec.type = integer_type;
    return ow_quantized(s->w, &spec);
}

static struct ow_quantized matrix(struct synth *s, uint64_t rows, uint64_t cols, bool transposed)
{
    struct ow_spec spec = {
        .rank = 2, .dims = {(int64_t)rows, (int64_t)cols}, .std = s->std, .transposed = transposed};
    return stored(s, spec, ONNX_INT8);
}

struct linear block_linear_new(struct synth *s, const char *scope, uint64_t in, uint64_t out)
{
    size_t mark = ow_enter(s->w, scope);
    struct linear l = {.weight = matrix(s, in, out, false)};
    l.bias = bias(s, out);
    ow_leave(s->w, mark);
    return l;
}

ow_val block_linear_use(struct synth *s, const char *scope, const struct linear *l, ow_val x)
{
    size_t mark = ow_enter(s->w, scope);
    ow_val y = ow_op(s->w, "Add", l->bias, block_product(s, x, &l->weight));
    ow_leave(s->w, mark);
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
    struct linear l = {.weight = integer ? matrix(s, in, out, true) : matrix(s, out, in, false)};
    ow_val y;
    l.bias = bias(s, out);
    if (integer)
        y = block_linear_use(s, "", &l, x);
    else
        y = ow_op_attr(s->w, "Gemm", OW_ATTRS(OW_ATTR_INT("transB", 1)), x, l.weight.q, l.bias);
    ow_leave(s->w, mark);
    return y;
}

/* ---- tables ---- */

struct ow_quantized block_table(struct synth *s, const char *scope, uint64_t rows, uint64_t cols)
{
    size_t mark = ow_enter(s->w, scope);
    struct ow_quantized table = matrix(s, rows, cols, false);
    ow_leave(s->w, mark);
    return table;
}

ow_val block_rows_of(struct synth *s, const char *scope, const struct ow_quantized *table, ow_val ids)
{
    size_t mark = ow_enter(s->w, scope);
    ow_val x = ow_op(s->w, "Gather", table->q, ids);
    if (table->scale) x = ow_op(s->w, "DequantizeLinear", x, table->scale, table->zero);
    ow_leave(s->w, mark);
    return x;
}

ow_val block_embedding(struct synth *s, const char *scope, ow_val ids, uint64_t rows, uint64_t cols)
{
    struct ow_quantized table = block_table(s, scope, rows, cols);
    return block_rows_of(s, scope, &table, ids);
}

/* ---- convolutions ---- */

/* ConvInteger takes no bias: it is added afterwards, along the channels. */
ow_val block_conv(struct synth *s, const char *scope, ow_val x, const struct conv *c)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, scope);
    int64_t k = (int64_t)c->kernel, step = (int64_t)c->stride, pad = (int64_t)c->padding;
    const struct ow_attr attrs[] = {
        OW_ATTR_INTS("dilations", 1, 1),     OW_ATTR_INT("group", (int64_t)c->groups),
        OW_ATTR_INTS("kernel_shape", k, k),  OW_ATTR_INTS("pads", pad, pad, pad, pad),
        OW_ATTR_INTS("strides", step, step), {.kind = 0}};
    struct ow_spec spec = {
        .rank = 4, .dims = {(int64_t)c->out, (int64_t)(c->in / c->groups), k, k}, .std = c->std};
    struct ow_quantized kernel = stored(s, spec, ONNX_UINT8); /* all that older runtimes know */
    ow_val y, added = c->bias ? bias(s, c->out) : 0;
    if (kernel.scale) {
        y = integer_product(s, (struct ow_call){.op = "ConvInteger", .attrs = attrs}, x, &kernel);
        if (added) y = ow_op(w, "Add", y, ow_op(w, "Reshape", added, ow_ints_of(w, 1, -1, 1, 1)));
    } else {
        ow_val in[] = {x, kernel.q, added};
        y = ow_node(w, &(struct ow_call){"Conv", added ? 3 : 2, 1, in, attrs});
    }
    ow_leave(w, mark);
    return y;
}

/* ---- encoder layers ---- */

/* [b, s, h*d] -> [b, s, h, d] */
static ow_val separate_heads(struct synth *s, ow_val x)
{
    int64_t heads = (int64_t)s->c->heads, width = (int64_t)(s->c->hidden / s->c->heads);
    return ow_op(s->w, "Reshape", x, ow_ints_of(s->w, 0, 0, heads, width));
}

ow_val block_split_heads(struct synth *s, ow_val x)
{
    return ow_transpose(s->w, separate_heads(s, x), 0, 2, 1, 3);
}

ow_val block_merge_heads(struct synth *s, ow_val x)
{
    x = ow_transpose(s->w, x, 0, 2, 1, 3);
    return ow_op(s->w, "Reshape", x, ow_ints_of(s->w, 0, 0, (int64_t)s->c->hidden));
}

ow_val block_scale(struct synth *s, ow_val scores)
{
    uint64_t width = s->c->hidden / s->c->heads;
    return ow_op(s->w, "Div", scores, block_const(s, __builtin_sqrt((double)width)));
}

/* As exporters write it: keys are split into heads and transposed in one step, without a node of its own. */
ow_val block_attend(struct synth *s, const struct encoder *e, ow_val x)
{
    struct ow *w = s->w;
    uint64_t n = s->c->hidden;
    ow_val q = block_linear(s, e->names->query, x, n, n);
    ow_val k = block_linear(s, e->names->key, x, n, n);
    ow_val v = block_linear(s, e->names->value, x, n, n);
    size_t mark = ow_enter(w, e->names->attention);
    q = block_split_heads(s, q);
    k = ow_transpose(w, separate_heads(s, k), 0, 2, 3, 1);
    v = block_split_heads(s, v);
    ow_val scores = block_scale(s, ow_op(w, "MatMul", q, k));
    if (e->mask) scores = ow_op(w, "Add", scores, e->mask);
    ow_val p = ow_op_axis(w, "Softmax", -1, scores);
    ow_val out = block_merge_heads(s, ow_op(w, "MatMul", p, v));
    ow_leave(w, mark);
    return out;
}

/* Attention and the inner layer, each added to what it read, normalised before or after. */
static ow_val encoder_layer(struct synth *s, const struct encoder *e, ow_val x)
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

ow_val block_encoder(struct synth *s, const struct encoder *e, ow_val x)
{
    for (unsigned i = 0; i < s->c->layers; i++) {
        size_t layer = ow_enter_index(s->w, "layer", i);
        x = encoder_layer(s, e, x);
        ow_leave(s->w, layer);
    }
    return x;
}

/* ---- what comes out of an encoder ---- */

ow_val head_first_token(struct synth *s, ow_val x)
{
    return ow_op_axis(s->w, "Gather", 1, x, block_int(s, 0));
}

/* The mean of the positions that the mask leaves, scaled to length 1; in float32 in every precision. */
static void head_sentence_embedding(struct synth *s, ow_val hidden, ow_val mask)
{
    struct ow *w = s->w;
    size_t mark = ow_enter(w, "pooling");
    ow_val axis = ow_ints_of(w, 1), m = block_cast(s, block_unsqueeze(s, mask, -1), ONNX_FLOAT);
    const struct ow_attr flat[] = {OW_ATTR_INT("keepdims", 0), {.kind = 0}};
    ow_val sum = ow_op_attr(w, "ReduceSum", flat, ow_op(w, "Mul", hidden, m), axis);
    ow_val count = ow_op_attr(w, "ReduceSum", flat, m, axis);
    ow_val mean = ow_op(w, "Div", sum, ow_op(w, "Clip", count, ow_scalar(w, ONNX_FLOAT, 1e-9)));
    ow_val length = ow_op(w, "Clip", reduce(s, "ReduceL2", mean, 1), ow_scalar(w, ONNX_FLOAT, 1e-12));
    ow_val out = ow_op(w, "Div", mean, length);
    ow_leave(w, mark);
    struct onnx_dim dims[] = {SYNTH_BATCH, SYNTH_FIXED(s->c->hidden)};
    ow_output(w, "sentence_embedding", ow_port(out, ONNX_FLOAT, 2, dims));
}

void head_classify(struct synth *s, ow_val pooled)
{
    ow_val y = block_gemm(s, "classifier", pooled, s->c->hidden, s->c->classes);
    block_output(s, y, "logits", 2, (struct onnx_dim[]){SYNTH_BATCH, SYNTH_FIXED(s->c->classes)});
}

void head_text(struct synth *s, ow_val x, ow_val mask, ow_val (*pool)(struct synth *, ow_val), bool tell_pooled)
{
    const struct synth_config *c = s->c;
    bool classes = c->head == SYNTH_HEAD_CLASSES;
    ow_val pooled = classes || tell_pooled ? pool(s, x) : 0;
    if (classes) {
        head_classify(s, pooled);
        return;
    }
    struct onnx_dim dims[] = {SYNTH_BATCH, SYNTH_SEQ, SYNTH_FIXED(c->hidden)};
    ow_val hidden = block_output(s, x, "last_hidden_state", 3, dims);
    dims[1] = dims[2];
    if (pooled) block_output(s, pooled, "pooler_output", 2, dims);
    if (c->head == SYNTH_HEAD_EMBEDDING) head_sentence_embedding(s, hidden, mask);
}
