/* SPDX-License-Identifier: MIT
 * infer_fold.c - arithmetic on followed contents, operator by operator: what an item becomes. States a result only
 * where it holds for all sizes of the free dimensions. Knows no nodes. */
#include <math.h>

#include "model/infer/infer_items.h"

#define WHOLE_MAX 9007199254740992.0 /* 2^53: doubles hold all whole numbers up to here */

bool item_type_is_float(int type)
{
    return type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16;
}

/* ---- numbers ---- */

/* A number that doubles compute with exactly, whole or not. */
static bool number(struct item x, double *out)
{
    return item_number(x, out) && (x.kind == ITEM_REAL || fabs(*out) <= WHOLE_MAX);
}

/* A number as an element of a float type holds it. */
static struct item round_to(struct poly_space *s, int type, double v)
{
    double small = type == ONNX_FLOAT16 ? 2048 : 256; /* whole numbers up to here are exact in half floats */
    if (type == ONNX_FLOAT) v = (double)(float)v;
    if (type != ONNX_FLOAT && type != ONNX_DOUBLE && !(v == rint(v) && fabs(v) <= small)) return item_none();
    if (isfinite(v) && v == rint(v) && fabs(v) <= WHOLE_MAX) return item_whole(poly_int(s, (int64_t)v));
    return (struct item){.kind = ITEM_REAL, .real = v};
}

/* A whole number as an integer type holds it: what it cannot hold would wrap around. */
static struct item fit(struct poly_space *s, int to, double v)
{
    unsigned bits = onnx_type_bits(to);
    bool is_signed =
        to == ONNX_INT8 || to == ONNX_INT16 || to == ONNX_INT32 || to == ONNX_INT64 || to == ONNX_INT4;
    double top = ldexp(1, (int)bits - is_signed);
    if (!(v >= (is_signed ? -top : 0) && v < top) || fabs(v) > WHOLE_MAX) return item_none();
    return item_whole(poly_int(s, (int64_t)v));
}

static struct item truth(struct poly_space *s, bool v)
{
    return item_whole(poly_int(s, v));
}

int item_truth(struct item x)
{
    double v;
    if (number(x, &v)) return v != 0;
    struct poly_range r = poly_range(x.kind == ITEM_WHOLE ? x.p : NULL);
    return r.least > 0 || r.most < 0 ? 1 : -1;
}

/* ---- two items ---- */

typedef const struct poly *on_polys(struct poly_space *s, const struct poly *a, const struct poly *b);
typedef double on_numbers(double a, double b);

struct arithmetic {
    on_polys *whole;
    on_numbers *real;
};

static double real_add(double a, double b)
{
    return a + b;
}
static double real_sub(double a, double b)
{
    return a - b;
}
static double real_mul(double a, double b)
{
    return a * b;
}
static struct item compute(struct poly_space *s, int type, const struct arithmetic *how, struct item pair[2])
{
    double a, b;
    if (item_type_is_float(type) && number(pair[0], &a) && number(pair[1], &b))
        return isnan(a) || isnan(b) ? item_none() : round_to(s, type, how->real(a, b));
    if (pair[0].kind != ITEM_WHOLE || pair[1].kind != ITEM_WHOLE) return item_none();
    struct item made = item_whole(how->whole(s, pair[0].p, pair[1].p));
    bool plain = type == ONNX_INT64 || item_type_is_float(type) || !number(made, &a);
    return plain ? made : fit(s, type, a);
}

#define ITEM_ARITHMETIC(name, on_whole, on_real)                                                      \
    struct item name(struct poly_space *s, int type, struct item x, struct item y)                    \
    {                                                                                                 \
        static const struct arithmetic how = {on_whole, on_real};                                     \
        return compute(s, type, &how, (struct item[]){x, y});                                         \
    }
ITEM_ARITHMETIC(item_add, poly_add, real_add)
ITEM_ARITHMETIC(item_sub, poly_sub, real_sub)
ITEM_ARITHMETIC(item_min, poly_min, fmin)
ITEM_ARITHMETIC(item_max, poly_max, fmax)

bool item_dyadic(double v, int64_t *p, int64_t *q)
{
    enum { SMALL = 1024 };
    for (*q = 1; *q <= SMALL; *q *= 2) {
        double scaled = v * (double)*q;
        if (scaled != rint(scaled) || fabs(scaled) > SMALL) continue;
        *p = (int64_t)scaled;
        return true;
    }
    return false;
}

static struct item ratio(struct poly_space *s, const struct poly *p, int64_t times, int64_t by)
{
    const struct poly *num = poly_mul(s, p, poly_int(s, times));
    const struct poly *exact = poly_div_exact(s, num, poly_int(s, by));
    if (exact || !num) return item_whole(exact);
    return (struct item){ITEM_RATIO, num, by, 0};
}

struct item item_mul(struct poly_space *s, int type, struct item x, struct item y)
{
    static const struct arithmetic how = {poly_mul, real_mul};
    int64_t p, q;
    if (y.kind == ITEM_WHOLE && x.kind == ITEM_REAL) return item_mul(s, type, y, x);
    if (x.kind == ITEM_WHOLE && y.kind == ITEM_REAL && !poly_constant(x.p, &p))
        return item_dyadic(y.real, &p, &q) ? ratio(s, x.p, p, q) : item_none();
    return compute(s, type, &how, (struct item[]){x, y});
}

/* Whole numbers of integer types are divided towards 0. */
static struct item int_div(struct poly_space *s, struct item x, struct item y)
{
    int64_t a, b;
    if (x.kind != ITEM_WHOLE || y.kind != ITEM_WHOLE || poly_is(y.p, 0)) return item_none();
    if (poly_constant(x.p, &a) && poly_constant(y.p, &b))
        return a == INT64_MIN && b == -1 ? item_none() : item_whole(poly_int(s, a / b));
    const struct poly *exact = poly_div_exact(s, x.p, y.p);
    if (exact) return item_whole(exact);
    if (poly_range(x.p).least < 0 || poly_range(y.p).least < 0) return item_none();
    return item_whole(poly_div_floor(s, x.p, y.p));
}

static struct item float_div(struct poly_space *s, int type, struct item x, struct item y)
{
    double a, b;
    int64_t by, p;
    if (!number(y, &b)) {
        if (x.kind != ITEM_WHOLE || y.kind != ITEM_WHOLE) return item_none();
        return item_whole(poly_div_exact(s, x.p, y.p));
    }
    if (b == 0 || isnan(b)) return item_none();
    if (number(x, &a)) return isnan(a) ? item_none() : round_to(s, type, a / b);
    if (x.kind != ITEM_WHOLE) return item_none();
    if (y.kind == ITEM_WHOLE && b > 0) return ratio(s, x.p, 1, (int64_t)b);
    return item_dyadic(1 / b, &p, &by) && 1 / (1 / b) == b ? ratio(s, x.p, p, by) : item_none();
}

struct item item_div(struct poly_space *s, int type, struct item x, struct item y)
{
    return item_type_is_float(type) ? float_div(s, type, x, y) : int_div(s, x, y);
}

struct item item_floor_mod(struct poly_space *s, int type, struct item x, struct item y)
{
    if (item_type_is_float(type) || x.kind != ITEM_WHOLE || y.kind != ITEM_WHOLE) return item_none();
    return item_whole(poly_mod(s, x.p, y.p));
}

struct item item_pow(struct poly_space *s, int type, struct item x, struct item y)
{
    double a, b;
    if (!number(x, &a) || !number(y, &b)) return item_none();
    double v = pow(a, b);
    if (item_type_is_float(type)) return round_to(s, type, v);
    return v == rint(v) && fabs(v) < WHOLE_MAX ? item_whole(poly_int(s, (int64_t)v)) : item_none();
}

/* ---- comparisons: of the difference ---- */

struct compared {           /* of x - y */
    bool less, equal, more; /* possible */
};

static struct compared compare(struct poly_space *s, struct item x, struct item y)
{
    double a, b;
    if (number(x, &a) && number(y, &b)) return (struct compared){a<b, a == b, a> b};
    const struct poly *d = x.kind == ITEM_WHOLE && y.kind == ITEM_WHOLE ? poly_sub(s, x.p, y.p) : NULL;
    struct poly_range r = poly_range(d);
    return (struct compared){r.least < 0, r.least <= 0 && r.most >= 0, r.most > 0};
}

/* Surely yes, surely not, or none. */
static struct item verdict(struct poly_space *s, bool may_be, bool may_not_be)
{
    return may_be == may_not_be ? item_none() : truth(s, may_be);
}

#define ITEM_COMPARISON(name, may_be, may_not_be)                                                     \
    struct item name(struct poly_space *s, int type, struct item x, struct item y)                    \
    {                                                                                                 \
        struct compared c = compare(s, x, y);                                                         \
        (void)type;                                                                                   \
        return verdict(s, may_be, may_not_be);                                                        \
    }
ITEM_COMPARISON(item_equal, c.equal, c.less || c.more)
ITEM_COMPARISON(item_less, c.less, c.equal || c.more)
ITEM_COMPARISON(item_less_equal, c.less || c.equal, c.more)

struct item item_greater(struct poly_space *s, int type, struct item x, struct item y)
{
    return item_less(s, type, y, x);
}

struct item item_greater_equal(struct poly_space *s, int type, struct item x, struct item y)
{
    return item_less_equal(s, type, y, x);
}

struct item item_and(struct poly_space *s, int type, struct item x, struct item y)
{
    int a = item_truth(x), b = item_truth(y);
    (void)type;
    if (a == 0 || b == 0) return truth(s, false);
    return a == 1 && b == 1 ? truth(s, true) : item_none();
}

struct item item_or(struct poly_space *s, int type, struct item x, struct item y)
{
    int a = item_truth(x), b = item_truth(y);
    (void)type;
    if (a == 1 || b == 1) return truth(s, true);
    return a == 0 && b == 0 ? truth(s, false) : item_none();
}

struct item item_xor(struct poly_space *s, int type, struct item x, struct item y)
{
    int a = item_truth(x), b = item_truth(y);
    (void)type;
    return a < 0 || b < 0 ? item_none() : truth(s, a != b);
}

/* ---- one item ---- */

struct item item_neg(struct poly_space *s, int type, struct item x)
{
    return item_mul(s, type, x, item_whole(poly_int(s, -1)));
}

struct item item_abs(struct poly_space *s, int type, struct item x)
{
    double v;
    if (number(x, &v))
        return item_type_is_float(type) ? round_to(s, type, fabs(v))
                                        : item_whole(poly_int(s, (int64_t)fabs(v)));
    return x.kind == ITEM_WHOLE && poly_range(x.p).least >= 0 ? x : item_none();
}

#define ITEM_ROUNDING(name, on_real, on_ratio)                                                        \
    struct item name(struct poly_space *s, int type, struct item x)                                   \
    {                                                                                                 \
        if (x.kind == ITEM_REAL) return round_to(s, type, on_real(x.real));                           \
        return x.kind == ITEM_RATIO ? item_whole(on_ratio(s, x.p, poly_int(s, x.by))) : x;            \
    }
ITEM_ROUNDING(item_floor, floor, poly_div_floor)
ITEM_ROUNDING(item_ceil, ceil, poly_div_ceil)

struct item item_round(struct poly_space *s, int type, struct item x)
{
    if (x.kind == ITEM_REAL) return round_to(s, type, nearbyint(x.real)); /* halves to even, as ONNX wants */
    return x.kind == ITEM_WHOLE ? x : item_none();
}

struct item item_sqrt(struct poly_space *s, int type, struct item x)
{
    double v;
    return number(x, &v) && v >= 0 ? round_to(s, type, sqrt(v)) : item_none();
}

struct item item_not(struct poly_space *s, int type, struct item x)
{
    int v = item_truth(x);
    (void)type;
    return v < 0 ? item_none() : truth(s, !v);
}

struct item item_same(struct poly_space *s, int type, struct item x)
{
    (void)s;
    (void)type;
    return x;
}

struct item item_sign(struct poly_space *s, int type, struct item x)
{
    double v;
    (void)type;
    return number(x, &v) && !isnan(v) ? item_whole(poly_int(s, (v > 0) - (v < 0))) : item_none();
}

struct item item_relu(struct poly_space *s, int type, struct item x)
{
    return item_max(s, type, x, item_whole(poly_int(s, 0)));
}

/* ---- casts ---- */

struct item item_cast(struct poly_space *s, int from, int to, struct item x)
{
    double v;
    if (x.kind == ITEM_NONE || onnx_type_bits(to) == 0) return item_none();
    if (to == ONNX_BOOL) return item_truth(x) < 0 ? item_none() : truth(s, item_truth(x) == 1);
    if (item_type_is_float(to)) return number(x, &v) ? round_to(s, to, v) : x;
    if (to == ONNX_INT64 && x.kind == ITEM_WHOLE) return x;
    if (number(x, &v)) return isnan(v) ? item_none() : fit(s, to, trunc(v));
    if (x.kind == ITEM_RATIO) x = poly_range(x.p).least >= 0 ? item_floor(s, from, x) : item_none();
    return to == ONNX_INT64 || to == ONNX_INT32 ? x : item_none();
}
