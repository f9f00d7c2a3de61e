/* SPDX-License-Identifier: MIT
 * tensor_error.h - how far one array is from another that should be the same. Pure. What is no number on both sides
 * is equal; on one side it makes the distance infinite: nothing is averaged away. */
#ifndef SUBJECT_TENSOR_ERROR_H
#define SUBJECT_TENSOR_ERROR_H

#include "subject/tensor.h"

struct tensor_error {
    bool comparable; /* false: `why`, and the numbers are NAN */
    double rel_l2, max_abs,
        cosine;    /* |a - b| / |a|; INFINITY where no finite number tells it. cosine NAN: a or b is 0 */
    char why[160]; /* not comparable, or infinite: what is wrong. "" else */
};

/* `a` is the reference. Arrays of one kind (floating, or whole numbers and booleans) compare whatever their width. */
void tensor_error_of(struct tensor_error *out, const struct tensor *a, const struct tensor *b);

#endif
