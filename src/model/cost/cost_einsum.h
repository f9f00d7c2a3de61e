/* SPDX-License-Identifier: MIT
 * cost_einsum.h - what an Einsum equation costs: its operands two at a time, from left to right. Private to
 * src/model/cost*.c. */
#ifndef MODEL_COST_EINSUM_H
#define MODEL_COST_EINSUM_H

#include "model/cost/cost_rule.h"

struct cost_einsum {
    const struct poly *macs, *simple; /* NULL: unknown, or an equation that is wrong */
};
struct cost_einsum cost_einsum(const struct cost_call *c);

#endif
