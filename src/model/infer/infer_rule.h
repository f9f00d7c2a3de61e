/* SPDX-License-Identifier: MIT
 * infer_rule.h - what a rule of shape inference sees and does: functions that rows of op_table.c name. A rule
 * states output types and shapes that surely hold and leaves the rest unknown; it may set contents of small integer
 * outputs. Functions that return bool give false when the rule has to end: the graph is wrong, memory ran out, or
 * something is unknown; an error stays in the engine, and what is stated after it does not count.
 * Private to src/model/infer*.c. */
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
};

/* What the node's row says: the type of output 0, outputs that are like inputs, then its rule. */
bool rule_run(struct rule_call *c);

/* ---- looking at the node ---- */
const struct infer_value *rule_input(const struct rule_call *c, size_t i); /* NULL: left out or not there */
struct infer_value *rule_output(const struct rule_call *c, size_t i);      /* NULL: nobody wants it */
bool rule_has_input(const struct rule_call *c, size_t i);
size_t rule_second(const struct rule_call *c, size_t usual);  /* the row's second operand, or the usual one */
int rule_input_type(const struct rule_call *c, size_t input); /* ONNX_UNDEFINED: unknown or not there */
int rule_first_type(const struct rule_call *c, size_t from);  /* of the first input from there that has one */
/* Dimension i of an input, from the end when negative; NULL: unknown, or there is no such one. */
const struct poly *rule_input_dim(const struct rule_call *c, size_t input, int64_t i);
/* Element i of followed contents; NULL: unknown. */
const struct poly *rule_int_at(const struct rule_call *c, size_t input, size_t i);
const struct poly *rule_number(const struct rule_call *c, int64_t v);

/* What an attribute holds; NULL: it is not there (or comes from a caller that did not give it). */
const struct onnx_attribute *rule_attribute_of(const struct rule_call *c, const char *name);
int64_t rule_int(const struct rule_call *c, const char *attribute, int64_t otherwise);
/* Attribute item i of a list of ints, or `otherwise`. */
int64_t rule_int_of(const struct rule_call *c, const char *name, size_t i, int64_t otherwise);
/* A string attribute as text in the engine's memory; NULL: not there. */
const char *rule_text(const struct rule_call *c, const char *attribute);
/* A list that is an attribute or, where newer opsets have none, the contents of an input. */
struct rule_list {
    const struct poly *at[INFER_RANK_MAX * 2]; /* NULL: unknown */
    size_t n;
    bool given; /* false: neither is there */
    bool known; /* how many there are is */
};
bool rule_list(struct rule_call *c, const char *attribute, size_t input, struct rule_list *out);
/* -rank .. rank-1 -> 0 .. rank-1. */
bool rule_axis(struct rule_call *c, int64_t axis, size_t rank, size_t *out);
/* The axes of such a list, marked among 0 .. rank-1; *known false: which they are is not known before running. */
bool rule_mark_axes(struct rule_call *c, const struct rule_list *axes, size_t rank, bool *marks, bool *known);

/* ---- shapes ---- */
struct rule_dims {
    const struct poly *at[INFER_RANK_MAX];
    size_t n;
    bool known; /* the rank is */
};
struct rule_dims rule_dims_of(const struct infer_value *v); /* of none: not known */
struct rule_dims rule_dims_none(void);                      /* rank 0, to push to */
struct rule_dims rule_dims_unknown(size_t n);               /* so many, each unknown */
/* One more at the end; too many: the rank is unknown. */
void rule_push(struct rule_dims *d, const struct poly *dim);
void rule_push_all(struct rule_dims *d, const struct poly *const *dims, size_t n);
void rule_insert(struct rule_dims *d, size_t axis, const struct poly *dim);
void rule_drop(struct rule_dims *d, size_t axis);
/* The dims of an input; false: its rank is unknown or the input is not there, and the reason is remembered. */
bool rule_ranked(struct rule_call *c, size_t input, struct rule_dims *out);
/* The same, and a rank other than `rank` is a fault of the graph. */
bool rule_ranked_as(struct rule_call *c, size_t input, size_t rank, struct rule_dims *out);
/* The multi-directional broadcast of two shapes. A fault when they surely clash. */
bool rule_broadcast(struct rule_call *c, const struct rule_dims *a, const struct rule_dims *b,
                    struct rule_dims *out);
/* Put `more` behind `all` along an axis (infer_move.c). */
bool rule_concat(struct rule_call *c, struct rule_dims *all, const struct rule_dims *more, size_t axis);
/* A length, behind that of an axis of an input which may be left out: a cache with the new ones. */
const struct poly *rule_behind(const struct rule_call *c, size_t past, int64_t axis, const struct poly *now);
/* Two that must be equal: the one that says more. A fault when both are numbers and differ. */
bool rule_agree(struct rule_call *c, const struct poly *a, const struct poly *b, const char *what,
                const struct poly **out);
/* a / b where the operator itself demands that it leaves no rest; NULL: numbers that do. */
const struct poly *rule_part(const struct rule_call *c, const struct poly *a, const struct poly *b);

/* ---- stating outputs; all tolerate an output that nobody wants ---- */
void rule_type(struct rule_call *c, size_t output, int type);
void rule_same_type(struct rule_call *c, size_t output, size_t input);
void rule_same_types(struct rule_call *c, size_t outputs, size_t input); /* of the first so many */
/* Copies the dims; an item may be NULL. */
bool rule_shape(struct rule_call *c, size_t output, const struct poly *const *dims, size_t rank);
#define rule_shape_is(c, output, ...)                                                                 \
    rule_shape(c, output, (const struct poly *const[]){__VA_ARGS__},                                  \
               sizeof((const struct poly *const[]){__VA_ARGS__}) / sizeof(const struct poly *))
bool rule_scalar(struct rule_call *c, size_t output);
bool rule_state(struct rule_call *c, size_t output, const struct rule_dims *d); /* if the rank is known */
/* Output like an input: its shape, or its type too. */
bool rule_same_shape(struct rule_call *c, size_t output, size_t input);
bool rule_same(struct rule_call *c, size_t output, size_t input);
bool rule_contents(struct rule_call *c, size_t output, const struct poly *const *ints, size_t n);
/* A copy of contents for an output, which loses those it had; NULL: too many are followed already, or no memory. */
void *rule_keep(struct rule_call *c, size_t output, const void *contents, size_t n, size_t size);

/* ---- saying why not; all return false ---- */
/* Remember why nothing more can be said. */
bool rule_unknown(struct rule_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool rule_data_dependent(struct rule_call *c, size_t output, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A graph that is wrong: "node 'x' (Conv): ...". */
bool rule_fault(struct rule_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Infer a body (graph attribute) as a scope of this node, with its formal inputs set; for If, Loop, Scan. */
bool rule_body(struct rule_call *c, const struct onnx_graph *g, const struct infer_value *const *formal,
               size_t n, struct infer_scope **out);

/* ---- the rules, by file ---- */
/* infer_attention.c */
infer_rule shape_packed_weights, shape_decoder_heads, shape_embed_norm, shape_group_query, shape_multi_head,
    shape_packed_tokens, shape_packed_heads;
/* infer_basic.c */
infer_rule shape_same, shape_broadcast, shape_clip, shape_where, shape_cast, shape_bit_cast, shape_dropout,
    shape_dynamic_quantize, shape_constant, shape_constant_of_shape, shape_random;
/* infer_contrib.c */
infer_rule shape_standard, shape_generate, shape_split_gelu, shape_distance, shape_crop_and_resize,
    shape_matmul_bits, shape_hash, shape_position_bias, shape_remove_padding, shape_restore_padding,
    shape_skip_norm, shape_sparse_attention;
/* infer_conv.c */
infer_rule shape_conv, shape_conv_transpose, shape_reorder_input, shape_reorder_output,
    shape_blocked_upsample, shape_pool, shape_global_pool, shape_max_unpool, shape_regions;
/* infer_flow.c */
infer_rule shape_if, shape_loop, shape_scan;
/* infer_matmul.c */
infer_rule shape_matmul, shape_gemm, shape_einsum;
/* infer_misc.c */
infer_rule shape_dft, shape_stft, shape_mel, shape_window, shape_string_split, shape_string_normalizer,
    shape_tf_idf, shape_image_decoder, shape_multinomial, shape_feature_extractor, shape_no_tensor,
    shape_category_mapper, shape_feature_vectorizer, shape_label_encoder, shape_classifier, shape_regressor,
    shape_one_hot_encoder, shape_trees, shape_optimised, shape_gradient;
/* infer_move.c */
infer_rule shape_of_shape, shape_of_size, shape_squeeze, shape_unsqueeze, shape_transpose, shape_concat,
    shape_expand, shape_tile, shape_pad, shape_depth_to_space, shape_space_to_depth, shape_center_crop_pad,
    shape_reshape, shape_flatten;
/* infer_nn.c */
infer_rule shape_causal_conv, shape_lstm, shape_attention, shape_flex_attention, shape_linear_attention,
    shape_det, shape_nll_loss, shape_cross_entropy;
/* infer_pick.c */
infer_rule shape_slice, shape_split, shape_gather, shape_gather_blocks, shape_like_index, shape_gather_nd,
    shape_one_hot, shape_range, shape_compress, shape_non_zero, shape_unique;
/* infer_reduce.c */
infer_rule shape_reduce, shape_arg, shape_top_k, shape_layer_norm, shape_batch_norm, shape_boxes;
/* infer_resize.c */
infer_rule shape_resize, shape_grid_sample, shape_affine_grid, shape_col2im;
/* infer_sequence.c */
infer_rule shape_sequence_construct, shape_sequence_empty, shape_sequence_insert, shape_sequence_erase,
    shape_sequence_at, shape_sequence_length, shape_sequence_map, shape_concat_from_sequence,
    shape_split_to_sequence, shape_optional, shape_optional_has, shape_optional_get;

#endif
