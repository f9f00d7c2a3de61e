/* SPDX-License-Identifier: MIT
 * cost_rules_basic.c - cost of operators that go over their elements: element-wise, activations, reductions, norms.
 * Counts per element are in the rows. */
#include <string.h>

#include "model/cost/cost_rule.h"

/* ---- element-wise ---- */

/* Division by what is the same in every run is multiplication by its inverse. */
static void rule_div(struct cost_call *c)
{
    const struct infer_value *by = cost_in(c, 1);
    struct cost_each each = {0, 1, 0};
    if (by && (by->constant || by->folded)) each = (struct cost_each){1, 0, 0};
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_out(c, 0)), each);
}

/* Sum, Min, Max, Mean of any number of inputs. */
static void rule_variadic(struct cost_call *c)
{
    unsigned n = (unsigned)c->node->inputs.n, extra = c->row->each.division;
    struct cost_each each = {n ? n - 1 : 0, extra, 0};
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_out(c, 0)), each);
}

static void rule_where(struct cost_call *c)
{
    cost_count(c, cost_in(c, 1), cost_elements(c, cost_out(c, 0)), c->row->each);
}

/* The error function, or the tanh that stands for it. */
static void rule_gelu(struct cost_call *c)
{
    const struct cost_each exact = {4, 0, 1}, tanh = {7, 0, 1};
    bool fast = cost_text_is(c, "approximate", "tanh");
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_out(c, 0)), fast ? tanh : exact);
}

/* An activation, after a bias where there is one. */
static void rule_biased(struct cost_call *c)
{
    struct cost_each each = c->row->each;
    each.simple += cost_in(c, 1) != NULL;
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_out(c, 0)), each);
}

/* One half is multiplied by the activation of the other. */
static void rule_bias_split_gelu(struct cost_call *c)
{
    const struct cost_each add = {1, 0, 0}, each = {5, 0, 1};
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_in(c, 0)), add);
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_out(c, 0)), each);
}

static void rule_output(struct cost_call *c)
{
    cost_count(c, cost_out(c, 0), cost_elements(c, cost_out(c, 0)), c->row->each);
}

/* ---- over rows ---- */

static size_t axis_of(const struct cost_call *c, const struct infer_value *v, int64_t otherwise)
{
    int64_t axis = cost_int(c, "axis", otherwise);
    if (axis < 0) axis += (int64_t)v->rank;
    return axis < 0 || (size_t)axis > v->rank ? SIZE_MAX : (size_t)axis;
}

/* Rows that Softmax and its like work on: from opset 13 on along one axis, before it from an axis to the end. */
static const struct poly *softmax_rows(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    if (!x || !x->has_rank) return NULL;
    bool one_axis = c->node->domain[0] || c->at->opset >= 13;
    size_t axis = axis_of(c, x, one_axis ? -1 : 1);
    if (axis == SIZE_MAX) return NULL;
    if (!one_axis) return cost_dims(c, x, 0, axis);
    if (axis >= x->rank) return poly_int(c->s, 1); /* a scalar */
    return cost_mul(c, cost_dims(c, x, 0, axis), cost_dims(c, x, axis + 1, x->rank));
}

static void rule_log_softmax(struct cost_call *c)
{
    const struct cost_each log = {0, 0, 1};
    cost_rule_each(c);
    cost_count(c, cost_in(c, 0), softmax_rows(c), log);
}

static void rule_reduce(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    cost_count(c, x, cost_elements(c, x), c->row->each);
}

/* Something more for each sum: a root, a logarithm, a division by the count. */
static void rule_reduce_then(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    struct cost_each per_element = {c->row->each.simple, 0, 0},
                     then = {0, c->row->each.division, c->row->each.transcendental};
    cost_count(c, x, cost_elements(c, x), per_element);
    cost_count(c, x, cost_elements(c, cost_out(c, 0)), then);
}

static void rule_reduce_log_sum_exp(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    const struct cost_each each = {3, 0, 1}, log = {1, 0, 1};
    cost_count(c, x, cost_elements(c, x), each);
    cost_count(c, x, cost_elements(c, cost_out(c, 0)), log);
}

/* ---- norms: per element by the row, a root and a division per row ---- */

static void norm_rows(struct cost_call *c, const struct poly *rows)
{
    const struct cost_each root = {0, 2, 0};
    cost_count_float(c, rows, root);
}

static void rule_layer_norm(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    struct cost_each each = c->row->each;
    if (each.simple == 7 && !cost_in(c, 2)) each.simple--; /* no bias */
    size_t axis = x && x->has_rank ? axis_of(c, x, -1) : SIZE_MAX;
    cost_count_float(c, cost_elements(c, x), each);
    norm_rows(c, axis == SIZE_MAX ? NULL : cost_dims(c, x, 0, axis));
}

/* The residual is added first, with a bias where there is one. */
static void skip_norm(struct cost_call *c, size_t bias)
{
    const struct infer_value *x = cost_in(c, 0);
    struct cost_each each = c->row->each;
    each.simple += 1 + (cost_in(c, bias) != NULL);
    cost_count_float(c, cost_elements(c, x), each);
    norm_rows(c, x && x->has_rank && x->rank ? cost_dims(c, x, 0, x->rank - 1) : NULL);
}

static void rule_skip_layer_norm(struct cost_call *c)
{
    skip_norm(c, 4);
}

static void rule_skip_rms_norm(struct cost_call *c)
{
    skip_norm(c, 3);
}

/* Up to three embeddings are added up, then normalised. */
static void rule_embed_layer_norm(struct cost_call *c)
{
    const struct infer_value *y = cost_out(c, 0);
    struct cost_each each = {8, 0, 0};
    each.simple += cost_in(c, 1) != NULL;
    cost_count_float(c, cost_elements(c, y), each);
    norm_rows(c, y && y->has_rank && y->rank ? cost_dims(c, y, 0, y->rank - 1) : NULL);
}

static void rule_channel_norm(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    int64_t groups = cost_int(c, "num_groups", cost_int(c, "groups", 0));
    const struct poly *rows = x && x->has_rank && x->rank > 1 ? cost_dims(c, x, 0, 2) : NULL;
    if (groups > 0) rows = cost_times(c, cost_dim(x, 0), groups);
    cost_count_float(c, cost_elements(c, x), c->row->each);
    norm_rows(c, rows);
}

static void rule_lrn(struct cost_call *c)
{
    int64_t size = cost_int(c, "size", 0);
    struct cost_each each = {2, 1, 1};
    const struct poly *n = cost_elements(c, cost_out(c, 0));
    cost_count(c, cost_in(c, 0), size > 0 ? cost_times(c, n, size) : NULL, (struct cost_each){1, 0, 0});
    cost_count(c, cost_in(c, 0), n, each);
}

#define EACH(op, simple, division, transcendental, flags) \
    {NULL, op, cost_rule_each, {simple, division, transcendental}, BYTES_ALL, flags}
#define ROW(op, rule, simple, division, transcendental) \
    {NULL, op, rule, {simple, division, transcendental}, BYTES_ALL, 0}
#define OVER COST_IN_PLACE

const struct cost_row cost_rows_basic[] = {
    EACH("Add", 1, 0, 0, OVER),
    EACH("Sub", 1, 0, 0, OVER),
    EACH("Mul", 1, 0, 0, OVER),
    {NULL, "Div", rule_div, {0, 1, 0}, BYTES_ALL, OVER},
    EACH("Mod", 0, 1, 0, OVER),
    EACH("Pow", 0, 0, 1, OVER),
    EACH("BiasAdd", 2, 0, 0, OVER), /* bias and residual */
    EACH("Abs", 1, 0, 0, OVER),
    EACH("Neg", 1, 0, 0, OVER),
    EACH("Sign", 1, 0, 0, OVER),
    EACH("Floor", 1, 0, 0, OVER),
    EACH("Ceil", 1, 0, 0, OVER),
    EACH("Round", 1, 0, 0, OVER),
    EACH("Reciprocal", 0, 1, 0, OVER),
    EACH("Sqrt", 0, 1, 0, OVER),
    EACH("Exp", 0, 0, 1, OVER),
    EACH("Log", 0, 0, 1, OVER),
    EACH("Erf", 0, 0, 1, OVER),
    EACH("Sin", 0, 0, 1, OVER),
    EACH("Cos", 0, 0, 1, OVER),
    EACH("Tan", 0, 0, 1, OVER),
    EACH("Asin", 0, 0, 1, OVER),
    EACH("Acos", 0, 0, 1, OVER),
    EACH("Atan", 0, 0, 1, OVER),
    EACH("Sinh", 0, 0, 1, OVER),
    EACH("Cosh", 0, 0, 1, OVER),
    EACH("Asinh", 0, 0, 1, OVER),
    EACH("Acosh", 0, 0, 1, OVER),
    EACH("Atanh", 0, 0, 1, OVER),
    EACH("Equal", 1, 0, 0, 0),
    EACH("Greater", 1, 0, 0, 0),
    EACH("GreaterOrEqual", 1, 0, 0, 0),
    EACH("Less", 1, 0, 0, 0),
    EACH("LessOrEqual", 1, 0, 0, 0),
    EACH("IsNaN", 1, 0, 0, 0),
    EACH("IsInf", 1, 0, 0, 0),
    EACH("And", 1, 0, 0, OVER),
    EACH("Or", 1, 0, 0, OVER),
    EACH("Xor", 1, 0, 0, OVER),
    EACH("Not", 1, 0, 0, OVER),
    EACH("BitShift", 1, 0, 0, OVER),
    EACH("BitwiseAnd", 1, 0, 0, OVER),
    EACH("BitwiseOr", 1, 0, 0, OVER),
    EACH("BitwiseXor", 1, 0, 0, OVER),
    EACH("BitwiseNot", 1, 0, 0, OVER),
    {NULL, "Where", rule_where, {1, 0, 0}, BYTES_ALL, 0},
    {NULL, "Sum", rule_variadic, {0, 0, 0}, BYTES_ALL, OVER},
    {NULL, "Min", rule_variadic, {0, 0, 0}, BYTES_ALL, OVER},
    {NULL, "Max", rule_variadic, {0, 0, 0}, BYTES_ALL, OVER},
    {NULL, "Mean", rule_variadic, {0, 1, 0}, BYTES_ALL, OVER},

    /* activations */
    EACH("Relu", 1, 0, 0, OVER),
    EACH("LeakyRelu", 2, 0, 0, OVER),
    EACH("ThresholdedRelu", 1, 0, 0, OVER),
    EACH("PRelu", 2, 0, 0, OVER),
    EACH("Sigmoid", 1, 1, 1, OVER),
    EACH("Tanh", 0, 0, 1, OVER),
    EACH("HardSigmoid", 4, 0, 0, OVER),
    EACH("HardSwish", 5, 0, 0, OVER),
    EACH("Silu", 2, 1, 1, OVER),
    EACH("Swish", 2, 1, 1, OVER),
    EACH("QuickGelu", 2, 1, 1, OVER),
    EACH("Elu", 3, 0, 1, OVER),
    EACH("Selu", 4, 0, 1, OVER),
    EACH("Celu", 5, 0, 1, OVER),
    EACH("Softplus", 1, 0, 2, OVER),
    EACH("Softsign", 2, 1, 0, OVER),
    EACH("Mish", 2, 0, 3, OVER),
    EACH("Shrink", 2, 0, 0, OVER),
    EACH("Clip", 2, 0, 0, OVER),
    {NULL, "Gelu", rule_gelu, {4, 0, 1}, BYTES_ALL, OVER},
    {NULL, "BiasGelu", rule_biased, {4, 0, 1}, BYTES_ALL, OVER},
    {NULL, "FastGelu", rule_biased, {7, 0, 1}, BYTES_ALL, OVER},
    ROW("BiasSplitGelu", rule_bias_split_gelu, 5, 0, 1),

    /* over rows */
    EACH("Softmax", 3, 1, 1, OVER),
    EACH("BiasSoftmax", 4, 1, 1, OVER),
    {NULL, "LogSoftmax", rule_log_softmax, {3, 1, 1}, BYTES_ALL, OVER},
    EACH("Hardmax", 1, 0, 0, 0),
    EACH("CumSum", 1, 0, 0, 0),
    EACH("CumProd", 1, 0, 0, 0),
    ROW("ReduceSum", rule_reduce, 1, 0, 0),
    ROW("ReduceMax", rule_reduce, 1, 0, 0),
    ROW("ReduceMin", rule_reduce, 1, 0, 0),
    ROW("ReduceProd", rule_reduce, 1, 0, 0),
    ROW("ReduceL1", rule_reduce, 2, 0, 0),
    ROW("ReduceSumSquare", rule_reduce, 2, 0, 0),
    ROW("ReduceMean", rule_reduce_then, 1, 1, 0),
    ROW("ReduceL2", rule_reduce_then, 2, 1, 0),
    ROW("ReduceLogSum", rule_reduce_then, 1, 0, 1),
    ROW("ReduceLogSumExp", rule_reduce_log_sum_exp, 3, 0, 1),
    ROW("ArgMax", rule_reduce, 1, 0, 0),
    ROW("ArgMin", rule_reduce, 1, 0, 0),
    ROW("TopK", rule_reduce, 1, 0, 0),
    ROW("GlobalAveragePool", rule_reduce, 1, 0, 0),
    ROW("GlobalMaxPool", rule_reduce, 1, 0, 0),
    ROW("GlobalLpPool", rule_reduce, 2, 0, 0),

    /* norms */
    ROW("LayerNormalization", rule_layer_norm, 7, 0, 0),
    ROW("SimplifiedLayerNormalization", rule_layer_norm, 4, 0, 0),
    ROW("RMSNormalization", rule_layer_norm, 4, 0, 0),
    ROW("SkipLayerNormalization", rule_skip_layer_norm, 7, 0, 0),
    ROW("SkipSimplifiedLayerNormalization", rule_skip_rms_norm, 4, 0, 0),
    ROW("EmbedLayerNormalization", rule_embed_layer_norm, 7, 0, 0),
    {NULL, "BatchNormalization", cost_rule_each, {2, 0, 0}, BYTES_ALL, OVER},
    ROW("InstanceNormalization", rule_channel_norm, 7, 0, 0),
    ROW("GroupNormalization", rule_channel_norm, 7, 0, 0),
    ROW("GroupNorm", rule_channel_norm, 7, 0, 0),
    EACH("LpNormalization", 2, 1, 0, 0),
    EACH("MeanVarianceNormalization", 5, 1, 0, 0),
    ROW("LRN", rule_lrn, 2, 1, 1),

    /* made from little */
    ROW("Range", rule_output, 1, 0, 0),
    ROW("HannWindow", rule_output, 3, 0, 1),
    ROW("HammingWindow", rule_output, 3, 0, 1),
    ROW("BlackmanWindow", rule_output, 6, 0, 2),
    {NULL, NULL, NULL, {0, 0, 0}, BYTES_ALL, 0},
};
