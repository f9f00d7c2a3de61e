/* SPDX-License-Identifier: MIT
 * infer_move.c - rules of operators that move or pick elements. */
#include "model/infer_rule.h"

const struct infer_row infer_rows_move[] = {{NULL, NULL, NULL}};
