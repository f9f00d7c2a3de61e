/* SPDX-License-Identifier: MIT
 * range.c - see range.h. Numbers beyond 2^62 give the range up. */
#include "model/infer/range.h"

static const int64_t FAR = INT64_C(1) << 62;

struct range range_input(void)
{
    return (struct range){1, 0, RANGE_NONE, 0, 0, -RANGE_NONE, RANGE_KNOWN};
}

struct range range_sum(struct range r)
{
    if (r.lost < RANGE_SUM) r.lost = RANGE_SUM;
    return r;
}

/* A sum stays one: it is its own, weaker promise. */
struct range range_lose(struct range r)
{
    if (r.lost == RANGE_KNOWN) r.lost = RANGE_LOST;
    return r;
}

static int64_t keep_near(__int128 v, bool *lost)
{
    if (v < FAR && v > -FAR) return (int64_t)v;
    *lost = true;
    return 0;
}

static int64_t cap_times(int64_t cap, __int128 by, int64_t plus, bool *lost)
{
    if (cap == RANGE_NONE || cap == -RANGE_NONE) return cap;
    return keep_near(cap * by + plus, lost);
}

struct range range_negate(struct range r)
{
    return (struct range){r.low_mul, -r.low_add, -r.low_cap, r.up_mul, -r.up_add, -r.up_cap, r.lost};
}

static bool is_not_negative(struct range r)
{
    return r.low_cap >= 0 || (r.low_mul == 0 && r.low_add >= 0);
}

static struct range from_zero(struct range r)
{
    r.low_mul = r.low_add = 0;
    r.low_cap = -RANGE_NONE;
    return r;
}

/* Bounds of a product: a factor that is one negative number turns them round; one that is not sure needs values that
 * are not negative, and then only the largest counts. */
struct range range_scale(struct range r, int64_t least, int64_t most)
{
    bool lost = least > most;
    if (most < 0 && least == most && most > -FAR) return range_scale(range_negate(r), -most, -most);
    if (least < 0 || lost) return range_lose(r);
    if (least < most) { /* not one factor for all: nothing below zero may take part */
        if (!is_not_negative(r)) return range_lose(r);
        r = from_zero(r);
        if (r.up_add < 0) r.up_add = 0;
        if (r.up_cap < 0) r.up_cap = 0;
    }
    r.up_mul = keep_near((__int128)r.up_mul * most, &lost);
    r.up_add = keep_near((__int128)r.up_add * most, &lost);
    r.low_mul = keep_near((__int128)r.low_mul * most, &lost);
    r.low_add = keep_near((__int128)r.low_add * most, &lost);
    r.up_cap = cap_times(r.up_cap, most, 0, &lost);
    r.low_cap = cap_times(r.low_cap, most, 0, &lost);
    return lost ? range_lose(r) : r;
}

static enum range_lost both_lost(struct range a, struct range b)
{
    if (a.lost == RANGE_SUM || b.lost == RANGE_SUM) return RANGE_SUM;
    return a.lost > b.lost ? a.lost : b.lost;
}

struct range range_add(struct range a, struct range b)
{
    struct range r = {.lost = both_lost(a, b)};
    bool lost = false;
    r.up_mul = keep_near((__int128)a.up_mul + b.up_mul, &lost);
    r.up_add = keep_near((__int128)a.up_add + b.up_add, &lost);
    r.low_mul = keep_near((__int128)a.low_mul + b.low_mul, &lost);
    r.low_add = keep_near((__int128)a.low_add + b.low_add, &lost);
    r.up_cap = b.up_cap == RANGE_NONE ? RANGE_NONE : cap_times(a.up_cap, 1, b.up_cap, &lost);
    r.low_cap = b.low_cap == -RANGE_NONE ? -RANGE_NONE : cap_times(a.low_cap, 1, b.low_cap, &lost);
    return lost ? range_lose(r) : r;
}

/* What is added is itself a range, with bounds that do not depend on m. */
struct range range_shift(struct range r, int64_t least, int64_t most)
{
    struct range by = {0, most, most, 0, least, least, RANGE_KNOWN};
    return least > most ? range_lose(r) : range_add(r, by);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct range range_cap(struct range r, int64_t least, int64_t most)
{
    r.up_cap = smaller(r.up_cap, most);
    r.low_add = smaller(r.low_add, least);
    r.low_cap = smaller(r.low_cap, least);
    return r;
}

struct range range_floor(struct range r, int64_t least, int64_t most)
{
    r.low_cap = larger(r.low_cap, least);
    r.up_add = larger(r.up_add, most);
    r.up_cap = larger(r.up_cap, most);
    return r;
}

struct range range_shrink(struct range r)
{
    return is_not_negative(r) ? from_zero(r) : range_lose(r);
}

struct range range_mod(struct range r, int64_t by)
{
    if (is_not_negative(r)) return range_cap(from_zero(r), 0, by - 1);
    return (struct range){0, by - 1, RANGE_NONE, 0, 0, -RANGE_NONE, r.lost};
}

struct range range_join(struct range a, struct range b)
{
    return (struct range){larger(a.up_mul, b.up_mul),       larger(a.up_add, b.up_add),
                          larger(a.up_cap, b.up_cap),       larger(a.low_mul, b.low_mul),
                          smaller(a.low_add, b.low_add),    smaller(a.low_cap, b.low_cap),
                          a.lost > b.lost ? a.lost : b.lost};
}

bool range_same(struct range a, struct range b)
{
    return a.up_mul == b.up_mul && a.up_add == b.up_add && a.up_cap == b.up_cap && a.low_mul == b.low_mul &&
           a.low_add == b.low_add && a.low_cap == b.low_cap && a.lost == b.lost;
}

/* The most values of x, from 0 on, for which mul * x + add <= most: 0 for all. */
static int64_t values_below(int64_t mul, int64_t add, int64_t most)
{
    __int128 room = (__int128)most - add;
    if (room < 0) return 1;
    if (mul == 0) return 0;
    room = room / mul + 1;
    return room > INT64_MAX ? 0 : (int64_t)room;
}

int64_t range_limit(struct range r, int64_t rows)
{
    if (r.lost == RANGE_LOST) return 1;
    if (r.lost == RANGE_SUM) return rows > 2 ? 2 : 1;
    int64_t up = r.up_cap <= rows - 1 ? 0 : values_below(r.up_mul, r.up_add, rows - 1);
    int64_t low = r.low_cap >= -rows ? 0 : values_below(r.low_mul, -r.low_add, rows);
    if (!up || !low) return up + low;
    return up < low ? up : low;
}
