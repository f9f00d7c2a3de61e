/* SPDX-License-Identifier: MIT
 * infer_table.c - which rule an operator has: the tables of all files of rules, looked through in order. The engine
 * remembers what it found, so this need not be fast. */
#include <string.h>

#include "model/infer/infer_rule.h"

static const struct infer_row *const tables[] = {
    infer_rows_basic,   infer_rows_move, infer_rows_reduce, infer_rows_nn,
    infer_rows_contrib, infer_rows_flow, infer_rows_misc,
};

const struct infer_row *infer_row_find(const char *domain, const char *op)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct infer_row *r = tables[i]; r->op; r++)
            if (strcmp(r->op, op) == 0 && strcmp(r->domain, domain) == 0) return r;
    return NULL;
}
