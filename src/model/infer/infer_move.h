/* SPDX-License-Identifier: MIT
 * infer_move.h - between the files of rules that move and pick elements. Private to src/model/infer/infer_move.c,
 * infer_reshape.c and infer_pick.c. */
#ifndef MODEL_INFER_MOVE_H
#define MODEL_INFER_MOVE_H

#include "model/infer/infer_items.h"

/* An input whose rank is needed; false: it is not known, which is remembered. */
bool move_ranked(struct rule_call *c, size_t input, struct rule_dims *out);
int move_type(const struct rule_call *c, size_t input); /* ONNX_UNDEFINED: unknown or not there */
/* Output 0 has that type and those dims. */
tare_status move_state(struct rule_call *c, int type, const struct rule_dims *d);
/* Output 0 has the elements of input 0 in the same order, if they are followed. */
tare_status move_same_items(struct rule_call *c);
/* Item i of a list that is an attribute or the contents of an input; NULL: unknown. */
struct move_list {
    const struct poly *at[INFER_RANK_MAX * 2];
    size_t n;
    bool given; /* false: neither is there */
    bool known; /* how many there are is */
};
tare_status move_list(struct rule_call *c, const char *attribute, size_t input, struct move_list *out);

#endif
