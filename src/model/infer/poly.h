/* SPDX-License-Identifier: MIT
 * poly.h - whole numbers that are not known yet: sums of products of named dimensions with whole coefficients,
 * "12*batch*seq^2 + 4*batch". What is no polynomial (a half rounded down) becomes a symbol of its own that can be
 * evaluated: "floor((seq + 1)/2)". Values are immutable and live in their space; equal ones are the same pointer.
 *
 * NULL is "unknown" and goes through everything: f(NULL, x) is NULL. So are results that overflow int64_t or grow
 * beyond POLY_TERMS_MAX terms. When memory runs out the result is NULL and poly_space_status() says so. */
#ifndef MODEL_POLY_H
#define MODEL_POLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/error.h"

enum { POLY_TERMS_MAX = 256 };

struct poly;
struct poly_space;

tare_status poly_space_new(struct poly_space **out, tare_error *err);
void poly_space_free(struct poly_space *s); /* NULL is fine */
tare_status poly_space_status(const struct poly_space *s, tare_error *err);

const struct poly *poly_int(struct poly_space *s, int64_t v);
const struct poly *poly_symbol(struct poly_space *s, const char *name); /* of a dimension, at least 0 */
const struct poly *poly_add(struct poly_space *s, const struct poly *a, const struct poly *b);
const struct poly *poly_sub(struct poly_space *s, const struct poly *a, const struct poly *b);
const struct poly *poly_mul(struct poly_space *s, const struct poly *a, const struct poly *b);
const struct poly *poly_div_floor(struct poly_space *s, const struct poly *a, const struct poly *b);
const struct poly *poly_div_ceil(struct poly_space *s, const struct poly *a, const struct poly *b);
const struct poly *poly_min(struct poly_space *s, const struct poly *a, const struct poly *b);
const struct poly *poly_max(struct poly_space *s, const struct poly *a, const struct poly *b);
/* Sizes of one axis broadcast against each other: the other where one is 1. It evaluates only where they fit. An
 * unknown one does not matter when the other is surely 2 or more. */
const struct poly *poly_broadcast(struct poly_space *s, const struct poly *a, const struct poly *b);
const struct poly *poly_mod(struct poly_space *s, const struct poly *a, const struct poly *b);
/* a / b when it surely leaves no rest, else NULL. */
const struct poly *poly_div_exact(struct poly_space *s, const struct poly *a, const struct poly *b);
const struct poly *poly_product(struct poly_space *s, const struct poly *const *x, size_t n); /* of none: 1 */

bool poly_constant(const struct poly *p, int64_t *out); /* false: unknown or depends on a symbol */
bool poly_is(const struct poly *p, int64_t v);          /* surely v */
struct poly_range {
    int64_t least, most; /* INT64_MIN, INT64_MAX: no bound */
};
/* Bounds that surely hold for all sizes of the dimensions; an unknown one has none. */
struct poly_range poly_range(const struct poly *p);

struct poly_binding {
    const char *name;
    int64_t value;
};
/* With all symbols bound; false: unknown, a symbol without a value, overflow, or division by 0. */
bool poly_eval(const struct poly *p, const struct poly_binding *b, size_t n, int64_t *out);
/* With some of them bound. */
const struct poly *poly_bind(struct poly_space *s, const struct poly *p, const struct poly_binding *b,
                             size_t n);

/* "4*batch*seq + 2"; "?" when unknown. Terms of the highest degree first, then by name: always the same text. */
void poly_print(const struct poly *p, struct buf *out);

#endif
