/* SPDX-License-Identifier: MIT
 * infer_help.h - what several rules of shape inference say in the same words: dimensions of an input, outputs like an
 * input, windows that slide over a dimension. Private to src/model/infer*.c; knows no operator. */
#ifndef MODEL_INFER_HELP_H
#define MODEL_INFER_HELP_H

#include "model/infer/infer_rule.h"

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

/* What the standard says of this operator (or of `op`), as of an opset; for domains that copy it. */
tare_status rule_as_standard(struct rule_call *c, const char *op, int64_t opset);
/* The broadcast of several inputs' shapes as the shape of output 0. */
tare_status rule_broadcast_inputs(struct rule_call *c, const size_t *inputs, size_t n);

#endif
