/* SPDX-License-Identifier: MIT
 * cost_rules_quantized.c - cost of operators on quantised numbers: products of integers are int_macs, corrections by
 * zero points integer operations, scaling and rounding simple ones. */
#include <string.h>

#include "model/cost/cost_rule.h"

/* Where an operator has what; 0: nowhere, since input 0 is always the first operand. */
struct quantized {
    const char *op;
    unsigned weights, zeros[2], bias;
    bool conv;    /* else a matrix product */
    bool scaled;  /* the result is brought to floats or to a scale of its own */
    bool dynamic; /* the first operand is quantised here */
};

static const struct quantized products[] = {
    {"QLinearConv", 3, {2, 5}, 8, true, true, false},
    {"ConvInteger", 1, {2, 3}, 0, true, false, false},
    {"QLinearMatMul", 3, {2, 5}, 0, false, true, false},
    {"MatMulInteger", 1, {2, 3}, 0, false, false, false},
    {"QGemm", 3, {2, 5}, 6, false, true, false},
    {"DynamicQuantizeMatMul", 1, {0, 3}, 4, false, true, true},
    {"MatMulIntegerToFloat", 1, {4, 5}, 6, false, true, false},
};

static const struct quantized *product_of(const struct onnx_node *n)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        if (strcmp(products[i].op, n->op) == 0) return &products[i];
    }
    return NULL; /* no row points here for another */
}

static bool has_input(const struct cost_call *c, unsigned input)
{
    return input && cost_in(c, input);
}

void cost_rule_product(struct cost_call *c)
{
    const struct quantized *q = product_of(c->node);
    const struct poly *n = cost_elements(c, cost_out(c, 0));
    if (!q) return;
    cost_count_int_macs(
        c, cost_mul(c, n, q->conv ? cost_taps(c, cost_in(c, q->weights)) : cost_inner(c, cost_in(c, 0))));
    for (size_t i = 0; i < 2; i++) {
        if (has_input(c, q->zeros[i])) cost_count_integer(c, n);
    }
    if (q->scaled) cost_count_float(c, n, (struct cost_each){2, 0, 0});
    if (has_input(c, q->bias)) cost_count(c, cost_in(c, q->bias), n, (struct cost_each){1, 0, 0});
    if (!q->dynamic) return;
    cost_count_float(c, cost_elements(c, cost_in(c, 0)),
                     (struct cost_each){4, 0, 0}); /* range, then numbers */
    cost_count_integer(c, n);                      /* and its zero point */
}

/* Weights of a few bits: unpacked and scaled once per call, apart from FLOPs. */
void cost_rule_packed_product(struct cost_call *c)
{
    const struct poly *n = cost_elements(c, cost_out(c, 0));
    int64_t inner = cost_int(c, "K", 0), outer = cost_int(c, "N", 0);
    bool known = inner > 0 && outer > 0;
    const struct poly *weights = known ? cost_times(c, poly_int(c->s, inner), outer) : NULL;
    int64_t summed = cost_int(c, "transB", 1) ? inner : outer; /* weights are stored [N, K] */
    cost_count_macs(c, cost_in(c, 0), known ? cost_times(c, n, summed) : NULL);
    cost_count_integer(c, cost_times(c, weights, 2));
    if (cost_in(c, 5)) cost_count(c, cost_in(c, 0), n, (struct cost_each){1, 0, 0});
}

/* Floats to integers or back, or integers through floats: by element, never counted as integer operations. */
void cost_rule_scaled(struct cost_call *c)
{
    cost_count_float(c, cost_elements(c, cost_out(c, 0)), c->row->each);
}

/* Sums in integers, scaled at the end. */
void cost_rule_scaled_pool(struct cost_call *c)
{
    cost_count_float(c, cost_elements(c, cost_out(c, 0)), c->row->each);
    if (cost_attribute(c, "kernel_shape")) {
        struct op_row one = *c->row;
        const struct op_row *row = c->row;
        one.each = (struct cost_each){1, 0, 0};
        c->row = &one;
        cost_rule_pool(c);
        c->row = row;
    } else {
        cost_count_integer(c, cost_elements(c, cost_in(c, 0)));
    }
}

/* Dequantising takes 2 per element, quantising 3. */
