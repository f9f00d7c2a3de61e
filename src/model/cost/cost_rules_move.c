/* SPDX-License-Identifier: MIT
 * cost_rules_move.c - operators that compute nothing: they look at the same bytes anew, or move some. */
#include "model/cost/cost_rule.h"

/* Adding, multiplying or comparing into what is there. */
void cost_rule_scatter(struct cost_call *c)
{
    const struct infer_value *updates = cost_in(c, 2);
    const struct cost_each each = {1, 0, 0};
    const struct onnx_attribute *how = cost_attribute(c, "reduction");
    if (!how || cost_text_is(c, "reduction", "none")) return;
    cost_count(c, updates, cost_elements(c, updates), each);
}

/* Overlapping columns are added up. */
void cost_rule_col2im(struct cost_call *c)
{
    const struct cost_each each = {1, 0, 0};
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_in(c, 0)), each);
}
