/* SPDX-License-Identifier: MIT
 * poly_parts.h - how polynomials are made inside: terms in a fixed order over products of symbols, every distinct one
 * once per space. Private to src/model/poly*.c. */
#ifndef MODEL_POLY_PARTS_H
#define MODEL_POLY_PARTS_H

#include "core/map.h"
#include "model/infer/poly.h"

enum poly_kind { POLY_NAMED, POLY_FLOOR, POLY_MIN, POLY_MAX, POLY_BROADCAST };

enum {
    POLY_TEXT_MAX = 2000, /* of a made-up symbol; it bounds the work of evaluating one, too */
    POLY_DEGREE_MAX = 255
};

struct poly_sym {
    const char *text;
    enum poly_kind kind;
    uint32_t id;              /* order of making: decides between equal texts */
    const struct poly *a, *b; /* of a made-up one */
    struct poly_range bounds;
};

struct poly_factor {
    const struct poly_sym *sym;
    uint32_t power;
};

struct poly_mono { /* factors in order of their texts */
    struct poly_mono *next;
    uint32_t degree, n;
    struct poly_factor f[];
};

struct poly_term {
    int64_t c; /* never 0 */
    const struct poly_mono *m;
};

struct poly { /* highest degree first, then by name; no terms: 0 */
    struct poly *next;
    size_t n;
    struct poly_term t[];
};

struct poly_space {
    struct arena arena;
    struct map_u64 polys, monos; /* hash -> first of a chain */
    struct map_str syms;
    const struct poly_mono *one; /* the product of nothing */
    bool failed;
};

/* Terms that are being put together; may hold twice as many as a polynomial. */
struct poly_draft {
    size_t n;
    struct poly_term t[2 * POLY_TERMS_MAX];
};

/* The one polynomial with those terms (in order, none 0); NULL: too many of them, or no memory. */
const struct poly *poly_of(struct poly_space *s, const struct poly_term *t, size_t n);
/* The made-up symbol as a polynomial. */
const struct poly *poly_made(struct poly_space *s, enum poly_kind kind, const struct poly *a,
                             const struct poly *b);
const struct poly *poly_scale(struct poly_space *s, const struct poly *a, int64_t by);
/* The bounds of a made-up symbol. */
struct poly_range poly_range_made(enum poly_kind kind, const struct poly *a, const struct poly *b);
/* The symbol when the polynomial is nothing else, or NULL. */
const struct poly_sym *poly_only(const struct poly *p);
int64_t poly_const_part(const struct poly *p);

#endif
