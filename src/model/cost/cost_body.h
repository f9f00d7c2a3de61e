/* SPDX-License-Identifier: MIT
 * cost_body.h - between the files of the cost rules: which nodes have bodies that make their cost. Private to
 * src/model. */
#ifndef MODEL_COST_BODY_H
#define MODEL_COST_BODY_H

#include "model/cost/cost.h"

enum cost_kind {
    COST_KIND_PLAIN, /* an operator by its row */
    COST_KIND_IF,
    COST_KIND_LOOP, /* Loop and Scan */
    COST_KIND_CALL  /* of a model-local function */
};
enum cost_kind cost_kind_of(const struct infer_node *n);

void cost_of_row(struct cost *out, struct poly_space *s, const struct infer_node *n); /* cost.c */

#endif
