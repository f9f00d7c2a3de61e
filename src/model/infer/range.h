/* SPDX-License-Identifier: MIT
 * range.h - what is known of a value computed from a model input x, when x is in 0 .. m: bounds that
 * are linear in m. Every step keeps them true or gives them up; it never makes them tighter than they
 * are. */
#ifndef MODEL_RANGE_H
#define MODEL_RANGE_H

#include <stdbool.h>
#include <stdint.h>

enum range_lost {
    RANGE_KNOWN = 0,
    RANGE_SUM = 1, /* a sum over positions, such as the position ids made from a mask: x of 0 and 1 is fine */
    RANGE_LOST = 2 /* nothing is known: only x = 0 can be hoped for */
};

#define RANGE_NONE INT64_MAX /* of up_cap; its negative of low_cap */

struct range {
    int64_t up_mul, up_add, up_cap;    /* value <= min(up_mul * m + up_add, up_cap) */
    int64_t low_mul, low_add, low_cap; /* value >= max(low_add - low_mul * m, low_cap) */
    enum range_lost lost;
};

struct range range_input(void); /* x itself */
struct range range_sum(struct range r);

struct range range_shift(struct range r, int64_t least, int64_t most); /* + something in least .. most */
struct range range_scale(struct range r, int64_t least, int64_t most); /* * something in least .. most */
struct range range_negate(struct range r);
struct range range_add(struct range a, struct range b); /* of the same x */
/* The smaller, or the larger, of the value and something in least .. most. */
struct range range_cap(struct range r, int64_t least, int64_t most);
struct range range_floor(struct range r, int64_t least, int64_t most);
struct range range_shrink(struct range r);          /* divided by something of at least 1 */
struct range range_mod(struct range r, int64_t by); /* 0 .. by - 1; by > 0 */
struct range range_lose(struct range r);
struct range range_join(struct range a, struct range b); /* one or the other */
bool range_same(struct range a, struct range b);

/* How many values of x, from 0 on, make a valid index into `rows`: 0 when all do; never less than 1, since
 * something must be tried. */
int64_t range_limit(struct range r, int64_t rows);

#endif
