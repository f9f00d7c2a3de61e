/* SPDX-License-Identifier: MIT
 * cost_rule.h - what a cost rule sees and does: functions that rows of op_table.c name. A rule adds what the node
 * computes; bytes are counted by the row's word for them. An unknown size goes through all of this as NULL and makes
 * the count unknown. Private to src/model/cost*.c. */
#ifndef MODEL_COST_RULE_H
#define MODEL_COST_RULE_H

#include "model/cost/cost.h"
#include "model/infer/op.h"

struct cost_call {
    struct poly_space *s;
    const struct infer_node *at;
    const struct onnx_node *node;
    const struct op_row *row;
    struct cost *out;
    const struct poly *masked; /* MACs of it whose result is thrown away; NULL only when unknown */
};

void cost_of_row(struct cost *out, struct poly_space *s, const struct infer_node *n); /* cost.c */

#define COST_SIMPLE(n) ((struct cost_each){.simple = (n)})

/* ---- looking at the node ---- */
const struct infer_value *cost_in(const struct cost_call *c, size_t i);  /* NULL: left out */
const struct infer_value *cost_out(const struct cost_call *c, size_t i); /* NULL: nobody wants it */
const struct onnx_attribute *cost_attribute(const struct cost_call *c, const char *name); /* NULL: none */
int64_t cost_int(const struct cost_call *c, const char *name, int64_t otherwise);
/* An attribute that is a size; NULL: not there, or not above 0. */
const struct poly *cost_size(const struct cost_call *c, const char *name);
float cost_float(const struct cost_call *c, const char *name, float otherwise);
bool cost_text_is(const struct cost_call *c, const char *name, const char *word);

/* ---- sizes; a value that is NULL has an unknown one ---- */
const struct poly *cost_dim(const struct infer_value *v, int64_t axis); /* from the end when negative */
const struct poly *cost_elements(const struct cost_call *c, const struct infer_value *v);
/* The product of dims from .. to - 1. */
const struct poly *cost_dims(const struct cost_call *c, const struct infer_value *v, size_t from, size_t to);
const struct poly *cost_times(const struct cost_call *c, const struct poly *n, int64_t k);
const struct poly *cost_mul(const struct cost_call *c, const struct poly *a, const struct poly *b);

/* n elements of v's type, each at `each`. Integers are counted as such, in one class. */
void cost_count(struct cost_call *c, const struct infer_value *v, const struct poly *n,
                struct cost_each each);
/* The same of each element of output 0, in the type of input 0. */
void cost_count_out(struct cost_call *c, struct cost_each each);
void cost_count_float(struct cost_call *c, const struct poly *n, struct cost_each each);
void cost_count_integer(struct cost_call *c, const struct poly *n);
/* Of elements of v's type. */
void cost_count_macs(struct cost_call *c, const struct infer_value *v, const struct poly *n);
void cost_count_int_macs(struct cost_call *c, const struct poly *n);
/* The operator that the attribute names, on each output element; nothing when it is not there. */
void cost_count_activation(struct cost_call *c, const char *attribute);
/* What one application of a named activation takes; false: no such one. */
bool cost_activation(const char *name, struct cost_each *out);

/* ---- the rules, by file ---- */
/* cost_rules_attention.c */
cost_rule cost_rule_attention, cost_rule_ms_attention, cost_rule_q_attention, cost_rule_packed_attention,
    cost_rule_packed_multi_head, cost_rule_multi_head, cost_rule_group_query, cost_rule_linear_attention;
/* cost_rules_basic.c */
cost_rule cost_rule_div, cost_rule_where, cost_rule_variadic, cost_rule_gelu, cost_rule_biased,
    cost_rule_bias_split_gelu, cost_rule_log_softmax, cost_rule_reduce, cost_rule_reduce_then,
    cost_rule_reduce_log_sum_exp, cost_rule_layer_norm, cost_rule_skip_layer_norm, cost_rule_skip_rms_norm,
    cost_rule_embed_layer_norm, cost_rule_channel_norm, cost_rule_lrn, cost_rule_output, cost_rule_nll_loss,
    cost_rule_cross_entropy, cost_rule_scatter, cost_rule_col2im;
/* cost_rules_product.c */
cost_rule cost_rule_matmul, cost_rule_gemm_fast_gelu, cost_rule_gemm, cost_rule_einsum, cost_rule_conv,
    cost_rule_causal_conv, cost_rule_conv_transpose, cost_rule_deform_conv, cost_rule_recurrent,
    cost_rule_resize, cost_rule_grid_sample, cost_rule_affine_grid;
cost_rule cost_rule_product, cost_rule_packed_product, cost_rule_scaled, cost_rule_scaled_pool;
/* cost.c */
void cost_rule_each(struct cost_call *c); /* row.each per element of output 0, in the type of input 0 */
void cost_rule_pool(struct cost_call *c); /* row.each per element of output 0 and place of the kernel */

#endif
