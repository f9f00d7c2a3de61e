/* SPDX-License-Identifier: MIT
 * infer_misc.c - rules of shape inference: signal, text, images, classic machine learning, the rest. Never guesses a size. */
#include "model/infer_rule.h"

const struct infer_row infer_rows_misc[] = {{NULL, NULL, NULL}};
