/* SPDX-License-Identifier: MIT
 * infer_rule.h - what a rule of shape inference sees and does: functions that rows of op_table.c name. A rule
 * states output types and shapes that surely hold and leaves the rest unknown; it may set contents of small integer
 * outputs. Private to src/model/infer*.c. */
#ifndef MODEL_INFER_RULE_H
#define MODEL_INFER_RULE_H

#include "model/infer/infer.h"
#include "model/infer/op.h"

struct infer_engine; /* infer.c */

struct rule_call {
    struct infer_engine *engine;
    struct poly_space *space;
    struct infer_node *at;
    const struct onnx_node *node;
    const struct op_row *row;
    int64_t opset;
    tare_error *err;
};

/* ---- looking at the node ---- */
const struct infer_value *rule_input(const struct rule_call *c, size_t i); /* NULL: left out or not there */
struct infer_value *rule_output(const struct rule_call *c, size_t i);      /* NULL: nobody wants it */
int64_t rule_int(const struct rule_call *c, const char *attribute, int64_t otherwise);
/* A string attribute as text in the engine's memory; NULL: not there. */
const char *rule_text(const struct rule_call *c, const char *attribute);
/* Attribute "axes" or the like, or the contents of input i when the attribute is gone in newer opsets. *out points to
 * n items; false: neither is there, or the contents are not known. */
bool rule_ints(const struct rule_call *c, const char *attribute, size_t i, const int64_t **out, size_t *n);
bool rule_has_input(const struct rule_call *c, size_t i);
/* -rank .. rank-1 -> 0 .. rank-1. Errors name the node. */
tare_status rule_axis(const struct rule_call *c, int64_t axis, size_t rank, size_t *out);

/* ---- stating outputs; all tolerate an output that nobody wants ---- */
void rule_type(struct rule_call *c, size_t output, int type);
/* Copies the dims; an item may be NULL. */
tare_status rule_shape(struct rule_call *c, size_t output, const struct poly *const *dims, size_t rank);
tare_status rule_like(struct rule_call *c, size_t output, const struct infer_value *v); /* type and shape */
tare_status rule_contents(struct rule_call *c, size_t output, const struct poly *const *ints, size_t n);
tare_status rule_reals(struct rule_call *c, size_t output, const double *reals, size_t n);
/* All that a tensor in the file says: type, shape, small contents. */
tare_status rule_constant(struct rule_call *c, size_t output, const struct onnx_tensor *t);
/* The multi-directional broadcast of two shapes; *known false: cannot be told. An error when they surely clash. */
struct rule_dims {
    const struct poly *at[INFER_RANK_MAX];
    size_t n;
    bool known; /* the rank is */
};
tare_status rule_broadcast(struct rule_call *c, const struct rule_dims *a, const struct rule_dims *b,
                           struct rule_dims *out);
struct rule_dims rule_dims_of(const struct infer_value *v);
/* Remember why nothing more can be said. */
void rule_unknown(struct rule_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rule_data_dependent(struct rule_call *c, size_t output, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A graph that is wrong: "node 'x' (Conv): ...". */
tare_status rule_fault(const struct rule_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Infer a body (graph attribute) as a scope of this node, with its formal inputs set; for If, Loop, Scan. */
tare_status rule_body(struct rule_call *c, const struct onnx_graph *g,
                      const struct infer_value *const *formal, size_t n, struct infer_scope **out);

/* ---- what several rules say in the same words; knows no operator ---- */
/* Dimension i of a value, from the end when negative; NULL: unknown, or there is no such one. */
const struct poly *rule_dim(const struct infer_value *v, int64_t i);
const struct poly *rule_input_dim(const struct rule_call *c, size_t input, int64_t i);
/* Element i of followed contents; NULL: unknown. */
const struct poly *rule_int_at(const struct rule_call *c, size_t input, size_t i);
/* The dims of an input; false: its rank is unknown or the input is not there, and the reason is remembered. */
bool rule_ranked(struct rule_call *c, size_t input, struct rule_dims *out);
/* The same, and a rank other than `rank` is a fault of the graph (*s < 0). */
bool rule_ranked_as(struct rule_call *c, size_t input, size_t rank, struct rule_dims *out, tare_status *s);
struct rule_dims rule_input_dims(const struct rule_call *c,
                                 size_t input);               /* not known when it is not there */
int rule_input_type(const struct rule_call *c, size_t input); /* ONNX_UNDEFINED: unknown or not there */

/* Output like an input: both, or only its shape, or only its type. */
tare_status rule_same(struct rule_call *c, size_t output, size_t input);
tare_status rule_same_shape(struct rule_call *c, size_t output, size_t input);
void rule_same_type(struct rule_call *c, size_t output, size_t input);
tare_status rule_state(struct rule_call *c, size_t output, const struct rule_dims *d);
void rule_push(struct rule_dims *d,
               const struct poly *dim); /* one more at the end; too many: the rank is unknown */
struct rule_dims rule_dims_none(void);  /* rank 0, to push to */

/* Two that must be equal: the one that says more. A fault when both are numbers and differ. */
tare_status rule_agree(struct rule_call *c, const struct poly *a, const struct poly *b, const char *what,
                       const struct poly **out);

/* a / b where the operator itself demands that it leaves no rest; NULL: numbers that do. */
const struct poly *rule_part(const struct rule_call *c, const struct poly *a, const struct poly *b);

/* What an attribute holds; NULL: it is not there (or comes from a caller that did not give it). */
const struct onnx_attribute *rule_attribute_of(const struct rule_call *c, const char *name);
/* Floats of attribute `name` (NULL: none) or of the contents of an input. false: neither, or not known. */
struct rule_reals {
    float at[INFER_RANK_MAX];
    size_t n;
};
bool rule_floats(const struct rule_call *c, const char *name, size_t input, struct rule_reals *out);
/* Attribute item i of a list of ints, or `otherwise`. */
int64_t rule_int_of(const struct rule_call *c, const char *name, size_t i, int64_t otherwise);

/* What the node's row says: the type of output 0, then its rule. */
tare_status rule_run(struct rule_call *c);
size_t rule_second(const struct rule_call *c); /* the input that is the second operand */
/* What the standard says of this operator (or of `op`), as of an opset; for domains that copy it. */
tare_status rule_as_standard(struct rule_call *c, const char *op, int64_t opset);
/* The broadcast of several inputs' shapes as the shape of output 0. */
tare_status rule_broadcast_inputs(struct rule_call *c, const size_t *inputs, size_t n);

/* Item i of a list that is an attribute or the contents of an input; NULL: unknown. */
struct rule_list {
    const struct poly *at[INFER_RANK_MAX * 2];
    size_t n;
    bool given; /* false: neither is there */
    bool known; /* how many there are is */
};
tare_status rule_list(struct rule_call *c, const char *attribute, size_t input, struct rule_list *out);

/* infer_matmul.c: contractions */
struct matmul_form {
    bool transpose_a, transpose_b; /* last two */
    bool transpose_batch_a,
        transpose_batch_b; /* FusedMatMul: the first dimension goes before the last but one */
};
tare_status matmul_shape(struct rule_call *c, size_t a, size_t b, const struct matmul_form *f);
tare_status gemm_shape(struct rule_call *c, size_t a, size_t b);

/* ---- the rules, by file ---- */
/* infer_attention.c */
infer_rule shape_packed_weights, shape_decoder_heads, shape_embed_norm, shape_group_query, shape_multi_head,
    shape_packed_tokens, shape_packed_heads, shape_quantised_attention, shape_embed_norm_quantised;
/* infer_basic.c */
infer_rule shape_unary, shape_unary_bool, shape_broadcast, shape_pow, shape_compare, shape_clip, shape_where,
    shape_cast, shape_cast_like, shape_bit_cast, shape_dropout, shape_quantize, shape_dequantize,
    shape_dynamic_quantize, shape_constant, shape_constant_of_shape, shape_random, shape_typed_like;
/* infer_contrib.c */
infer_rule shape_generate, shape_split_gelu, shape_distance, shape_crop_and_resize, shape_expand_dims,
    shape_fused_matmul, shape_gather_blocks, shape_standard, shape_gemm_float8, shape_matmul_bits, shape_hash,
    shape_qgemm, shape_qlinear_concat, shape_qlinear_global_pool, shape_qlinear_where, shape_quantise,
    shape_position_bias, shape_remove_padding, shape_restore_padding, shape_skip_norm, shape_sparse_attention,
    shape_torch_embedding;
/* infer_conv.c */
infer_rule shape_conv, shape_conv_transpose, shape_nhwc_conv, shape_nhwc_pool, shape_blocked_conv,
    shape_reorder_input, shape_reorder_output, shape_blocked_upsample, shape_nhwc_global_pool, shape_max_pool,
    shape_pool, shape_global_pool, shape_max_unpool, shape_max_roi_pool, shape_roi_align;
/* infer_flow.c */
infer_rule shape_if, shape_loop, shape_scan;
/* infer_matmul.c */
infer_rule shape_matmul, shape_gemm, shape_einsum;
/* infer_misc.c */
infer_rule shape_dft, shape_stft, shape_mel, shape_window, shape_string_split, shape_string_normalizer,
    shape_tf_idf, shape_image_decoder, shape_multinomial, shape_feature_extractor, shape_no_tensor,
    shape_category_mapper, shape_feature_vectorizer, shape_label_encoder, shape_classifier,
    shape_linear_regressor, shape_one_hot_encoder, shape_svm_regressor, shape_trees, shape_momentum,
    shape_adam, shape_gradient;
/* infer_move.c */
infer_rule shape_of_shape, shape_of_size, shape_squeeze, shape_unsqueeze, shape_transpose, shape_concat,
    shape_expand, shape_tile, shape_pad, shape_depth_to_space, shape_space_to_depth, shape_center_crop_pad,
    shape_reshape, shape_flatten;
/* infer_nn.c */
infer_rule shape_causal_conv, shape_lstm, shape_attention, shape_flex_attention, shape_linear_attention,
    shape_det, shape_nll_loss, shape_cross_entropy;
/* infer_pick.c */
infer_rule shape_slice, shape_split, shape_gather, shape_gather_elements, shape_gather_nd, shape_one_hot,
    shape_range, shape_compress, shape_non_zero, shape_unique;
/* infer_reduce.c */
infer_rule shape_reduce, shape_arg, shape_top_k, shape_layer_norm, shape_rms_norm, shape_batch_norm,
    shape_boxes, shape_reduce_by_attribute;
/* infer_resize.c */
infer_rule shape_resize, shape_upsample, shape_grid_sample, shape_affine_grid, shape_col2im;
/* infer_rule.c */
infer_rule shape_like_first, shape_by_likes, shape_broadcast_two;
/* infer_sequence.c */
infer_rule shape_sequence_construct, shape_sequence_empty, shape_sequence_insert, shape_sequence_erase,
    shape_sequence_at, shape_sequence_length, shape_sequence_map, shape_concat_from_sequence,
    shape_split_to_sequence, shape_optional, shape_optional_has, shape_optional_get;

#endif
