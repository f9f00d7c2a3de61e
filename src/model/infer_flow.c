/* SPDX-License-Identifier: MIT
 * infer_flow.c - rules of shape inference: If, Loop, Scan, sequences, optionals. Never guesses a size. */
#include "model/infer_rule.h"

const struct infer_row infer_rows_flow[] = {{NULL, NULL, NULL}};
