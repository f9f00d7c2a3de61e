/* SPDX-License-Identifier: MIT
 * infer_list.h - values of bodies and of sequences: what holds of two values alike, and what is known of the elements
 * of a sequence or an optional. Private to src/model/infer*.c. */
#ifndef MODEL_INFER_LIST_H
#define MODEL_INFER_LIST_H

#include "model/infer/infer_engine.h"
#include "model/infer/infer_rule.h"

enum { LIST_MAX = 1024 }; /* elements that are kept one by one */

struct infer_list {
    bool optional; /* at most one, that may be a sequence itself */
    bool exact;    /* n and items are known, in their order */
    size_t n;
    const struct infer_value *items;
    struct infer_value common; /* what holds of every element there may be */
};

/* A copy in the engine's memory without contents, as another run of a body may hand over others. */
tare_status value_shape_copy(struct rule_call *c, const struct infer_value *from, struct infer_value *to);
/* Forget what does not hold of `other` too. *changed is set when something went. NULL holds nothing. */
tare_status value_join(struct rule_call *c, struct infer_value *v, const struct infer_value *other,
                       bool *changed);
/* Output i like a value, contents included. */
void rule_output_is(struct rule_call *c, size_t output, const struct infer_value *v);

#endif
