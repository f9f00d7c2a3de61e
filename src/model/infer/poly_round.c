/* SPDX-License-Identifier: MIT
 * poly_round.c - see poly.h: what is no polynomial. Quotients rounded down, the smaller and the larger of two,
 * broadcasting, each put into one form so that equal ones are found equal; bounds; evaluation. A simplification is
 * made only where it holds for all sizes of the dimensions. */
#include "model/infer/poly_parts.h"

#include <string.h>

/* ---- bounds: INT64_MIN and INT64_MAX stand for none ---- */

static const struct poly_range anything = {INT64_MIN, INT64_MAX};

static int64_t sat_mul(int64_t a, int64_t b)
{
    int64_t v;
    bool endless = a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX;
    if (a == 0 || b == 0) return 0;
    if (!endless && !__builtin_mul_overflow(a, b, &v)) return v;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t sat_add(int64_t a, int64_t b, int64_t none)
{
    int64_t v;
    if (a == none || b == none || __builtin_add_overflow(a, b, &v)) return none;
    return v;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static struct poly_range range_mul(struct poly_range a, struct poly_range b)
{
    int64_t p = sat_mul(a.least, b.least), q = sat_mul(a.least, b.most), r = sat_mul(a.most, b.least),
            t = sat_mul(a.most, b.most);
    return (struct poly_range){least_of(least_of(p, q), least_of(r, t)),
                               most_of(most_of(p, q), most_of(r, t))};
}

struct poly_range poly_range(const struct poly *p)
{
    struct poly_range all = {0, 0};
    if (!p) return anything;
    for (size_t i = 0; i < p->n; i++) {
        const struct poly_mono *m = p->t[i].m;
        struct poly_range one = {p->t[i].c, p->t[i].c};
        for (uint32_t f = 0; f < m->n; f++)
            for (uint32_t k = 0; k < m->f[f].power; k++) one = range_mul(one, m->f[f].sym->bounds);
        all.least = sat_add(all.least, one.least, INT64_MIN);
        all.most = sat_add(all.most, one.most, INT64_MAX);
    }
    return all;
}

/* b > 0 */
static int64_t int_floor(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t floor_end(int64_t a, int64_t b)
{
    return a == INT64_MIN || a == INT64_MAX ? a : int_floor(a, b);
}

/* From the bounds of its two arguments; of a broadcast it is one or the other. */
struct poly_range poly_range_made(enum poly_kind kind, const struct poly *a, const struct poly *b)
{
    struct poly_range x = poly_range(a), y = poly_range(b);
    int64_t c;
    switch (kind) {
    case POLY_FLOOR:
        if (poly_constant(b, &c) && c > 0)
            return (struct poly_range){floor_end(x.least, c), floor_end(x.most, c)};
        /* a divisor is never 0, so at least 1 where it is not negative */
        return x.least >= 0 && y.least >= 0 ? (struct poly_range){0, x.most} : anything;
    case POLY_MIN: return (struct poly_range){least_of(x.least, y.least), least_of(x.most, y.most)};
    case POLY_MAX: return (struct poly_range){most_of(x.least, y.least), most_of(x.most, y.most)};
    case POLY_BROADCAST: return (struct poly_range){least_of(x.least, y.least), most_of(x.most, y.most)};
    case POLY_NAMED: break;
    }
    return anything;
}

/* ---- quotients rounded down ---- */

static int64_t int_gcd(int64_t a, int64_t b) /* neither negative */
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* p = by * whole + rest, the coefficients of rest 0 .. by-1. */
static void split_terms(const struct poly *p, int64_t by, struct poly_draft *whole, struct poly_draft *rest)
{
    whole->n = rest->n = 0;
    for (size_t i = 0; i < p->n; i++) {
        int64_t k = int_floor(p->t[i].c, by), left = p->t[i].c % by; /* k * by may not fit */
        if (left < 0) left += by;
        if (k) whole->t[whole->n++] = (struct poly_term){k, p->t[i].m};
        if (left) rest->t[rest->n++] = (struct poly_term){left, p->t[i].m};
    }
}

/* floor((2*x + 1)/4) = floor(x/2): what all names and the divisor share goes; the constant is rounded down. */
static int64_t cancel_common(struct poly_draft *rest, int64_t by)
{
    int64_t shared = by;
    size_t n = 0;
    for (size_t i = 0; i < rest->n; i++)
        if (rest->t[i].m->n) shared = int_gcd(rest->t[i].c, shared);
    for (size_t i = 0; i < rest->n; i++) {
        rest->t[i].c /= shared;
        if (rest->t[i].c) rest->t[n++] = rest->t[i];
    }
    rest->n = n;
    return by / shared;
}

/* floor((floor(p/c) + k)/by) = floor((p + k*c)/(c*by)); NULL where it is not of that form. */
static const struct poly *unnest_floor(struct poly_space *s, const struct poly *rest, int64_t by)
{
    int64_t k = poly_const_part(rest), c, both;
    const struct poly_sym *inner = poly_only(poly_sub(s, rest, poly_int(s, k)));
    if (!inner || inner->kind != POLY_FLOOR || !poly_constant(inner->b, &c) || c <= 0) return NULL;
    if (__builtin_mul_overflow(c, by, &both) || __builtin_mul_overflow(k, c, &k)) return NULL;
    return poly_div_floor(s, poly_add(s, inner->a, poly_int(s, k)), poly_int(s, both));
}

static const struct poly *floor_by_int(struct poly_space *s, const struct poly *a, int64_t by)
{
    struct poly_draft whole, rest;
    split_terms(a, by, &whole, &rest);
    const struct poly *q = poly_of(s, whole.t, whole.n);
    by = cancel_common(&rest, by);
    const struct poly *r = poly_of(s, rest.t, rest.n);
    if (!r || !r->n) return r ? q : NULL;
    if (by == 1) return poly_add(s, q, r);
    const struct poly *part = unnest_floor(s, r, by);
    int64_t c;
    if (!part && poly_constant(r, &c)) part = poly_int(s, c / by); /* 0 .. by-1 */
    return poly_add(s, q, part ? part : poly_made(s, POLY_FLOOR, r, poly_int(s, by)));
}

const struct poly *poly_div_floor(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    int64_t by;
    if (!a || !b || !b->n) return NULL;
    if (poly_constant(b, &by)) {
        if (by == INT64_MIN) return NULL;
        if (by < 0) {
            a = poly_scale(s, a, -1);
            by = -by;
        }
        return a ? floor_by_int(s, a, by) : NULL;
    }
    const struct poly *exact = poly_div_exact(s, a, b);
    return exact ? exact : poly_made(s, POLY_FLOOR, a, b);
}

const struct poly *poly_div_ceil(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    int64_t by;
    if (poly_constant(b, &by) && by > 0) return poly_div_floor(s, poly_add(s, a, poly_int(s, by - 1)), b);
    return poly_scale(s, poly_div_floor(s, poly_scale(s, a, -1), b), -1);
}

/* Rounded towards minus infinity, so that the rest has the sign of b. */
const struct poly *poly_mod(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    return poly_sub(s, a, poly_mul(s, b, poly_div_floor(s, a, b)));
}

/* ---- the smaller, the larger, the broadcast ---- */

static int text_order(const struct poly *a, const struct poly *b)
{
    struct buf x = BUF_INIT, y = BUF_INIT;
    poly_print(a, &x);
    poly_print(b, &y);
    int order = strcmp(x.data, y.data);
    buf_release(&x);
    buf_release(&y);
    return order;
}

/* The same symbol whichever way round. */
static const struct poly *made_of_two(struct poly_space *s, enum poly_kind kind, const struct poly *a,
                                      const struct poly *b)
{
    return text_order(a, b) <= 0 ? poly_made(s, kind, a, b) : poly_made(s, kind, b, a);
}

/* Is `a` the very symbol of that kind with b as one of its two? Then *other is the second. */
static bool holds_always(const struct poly *a, enum poly_kind kind, const struct poly *b,
                         const struct poly **other)
{
    const struct poly_sym *sym = poly_only(a);
    if (!sym || sym->kind != kind || (sym->a != b && sym->b != b)) return false;
    *other = sym->a == b ? sym->b : sym->a;
    return true;
}

static const struct poly *extreme(struct poly_space *s, enum poly_kind kind, const struct poly *a,
                                  const struct poly *b)
{
    const struct poly *other;
    if (!a || !b) return NULL;
    struct poly_range d = poly_range(poly_sub(s, a, b)); /* of an unknown difference: none */
    if (a == b || d.most <= 0) return kind == POLY_MIN ? a : b;
    if (d.least >= 0) return kind == POLY_MIN ? b : a;
    if (holds_always(a, kind, b, &other)) return a;
    if (holds_always(b, kind, a, &other)) return b;
    return made_of_two(s, kind, a, b);
}

const struct poly *poly_min(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    return extreme(s, POLY_MIN, a, b);
}

const struct poly *poly_max(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    return extreme(s, POLY_MAX, a, b);
}

/* min(c, b) against b, c at least 2: the two are equal whenever they fit, so it is b. (With b 1 both are 1.) */
static bool is_clamp_of(const struct poly *a, const struct poly *b)
{
    const struct poly *cap;
    return holds_always(a, POLY_MIN, b, &cap) && poly_range(cap).least >= 2;
}

const struct poly *poly_broadcast(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    const struct poly *other;
    if (a == b) return a;
    if (poly_is(a, 1)) return b;
    if (poly_is(b, 1)) return a;
    if (a && poly_range(a).least >= 2) return a; /* the other is 1 or the same */
    if (b && poly_range(b).least >= 2) return b;
    if (!a || !b) return NULL;
    if (is_clamp_of(a, b)) return b;
    if (is_clamp_of(b, a)) return a;
    if (holds_always(a, POLY_BROADCAST, b, &other)) return a;
    if (holds_always(b, POLY_BROADCAST, a, &other)) return b;
    return made_of_two(s, POLY_BROADCAST, a, b);
}

/* ---- numbers ---- */

struct bindings {
    const struct poly_binding *items;
    size_t n;
};

static bool eval_at(const struct poly *p, const struct bindings *b, int64_t *out);

static bool made_value(const struct poly_sym *sym, int64_t a, int64_t b, int64_t *out)
{
    switch (sym->kind) {
    case POLY_FLOOR:
        if (b == 0 || (b < 0 && (a == INT64_MIN || b == INT64_MIN))) return false;
        *out = b > 0 ? int_floor(a, b) : int_floor(-a, -b);
        return true;
    case POLY_MIN: *out = least_of(a, b); return true;
    case POLY_MAX: *out = most_of(a, b); return true;
    case POLY_BROADCAST: *out = a == 1 ? b : a; return a == 1 || b == 1 || a == b;
    case POLY_NAMED: break;
    }
    return false;
}

static bool sym_value(const struct poly_sym *sym, const struct bindings *b, int64_t *out)
{
    int64_t x, y;
    if (sym->kind != POLY_NAMED)
        return eval_at(sym->a, b, &x) && eval_at(sym->b, b, &y) && made_value(sym, x, y, out);
    for (size_t i = 0; i < b->n; i++) {
        if (strcmp(b->items[i].name, sym->text) != 0) continue;
        *out = b->items[i].value;
        return true;
    }
    return false;
}

/* The sum of the terms; false as soon as a symbol has no value or something overflows. */
static bool eval_at(const struct poly *p, const struct bindings *b, int64_t *out)
{
    int64_t all = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct poly_mono *m = p->t[i].m;
        int64_t one = p->t[i].c;
        for (uint32_t f = 0; f < m->n; f++) {
            int64_t v;
            if (!sym_value(m->f[f].sym, b, &v)) return false;
            for (uint32_t k = 0; k < m->f[f].power; k++)
                if (__builtin_mul_overflow(one, v, &one)) return false;
        }
        if (__builtin_add_overflow(all, one, &all)) return false;
    }
    *out = all;
    return true;
}

bool poly_eval(const struct poly *p, const struct poly_binding *b, size_t n, int64_t *out)
{
    return p && eval_at(p, &(struct bindings){b, n}, out);
}

typedef const struct poly *two_args(struct poly_space *s, const struct poly *a, const struct poly *b);

static const struct poly *sym_bind(struct poly_space *s, const struct poly_sym *sym, const struct bindings *b)
{
    static two_args *const make[] = {[POLY_NAMED] = NULL,
                                     [POLY_FLOOR] = poly_div_floor,
                                     [POLY_MIN] = poly_min,
                                     [POLY_MAX] = poly_max,
                                     [POLY_BROADCAST] = poly_broadcast};
    int64_t v;
    if (sym->kind != POLY_NAMED)
        return make[sym->kind](s, poly_bind(s, sym->a, b->items, b->n), poly_bind(s, sym->b, b->items, b->n));
    return sym_value(sym, b, &v) ? poly_int(s, v) : poly_symbol(s, sym->text);
}

const struct poly *poly_bind(struct poly_space *s, const struct poly *p, const struct poly_binding *b,
                             size_t n)
{
    const struct poly *all = p ? poly_int(s, 0) : NULL;
    struct bindings bound = {b, n};
    for (size_t i = 0; all && i < p->n; i++) {
        const struct poly_mono *m = p->t[i].m;
        const struct poly *one = poly_int(s, p->t[i].c);
        for (uint32_t f = 0; f < m->n; f++) {
            const struct poly *v = sym_bind(s, m->f[f].sym, &bound);
            for (uint32_t k = 0; k < m->f[f].power; k++) one = poly_mul(s, one, v);
        }
        all = poly_add(s, all, one);
    }
    return all;
}
