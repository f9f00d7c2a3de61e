/* SPDX-License-Identifier: MIT
 * poly.c - see poly.h: the space, sums, products, exact quotients, text. Never computes with wrapped numbers: what
 * overflows is unknown. */
#include "model/infer/poly_parts.h"

#include <inttypes.h>
#include <string.h>

#include "core/mem.h"

/* ---- the space: everything once ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    unsigned __int128 wide = (unsigned __int128)(h ^ v) * UINT64_C(0x9FB21C651E98DF25);
    return ((uint64_t)wide ^ (uint64_t)(wide >> 64)) + UINT64_C(0x2545F4914F6CDD1D);
}

static void *failed(struct poly_space *s)
{
    s->failed = true;
    return NULL;
}

/* The one product of those factors: found by its hash, or made. So equal ones are the same pointer. */
static const struct poly_mono *mono_of(struct poly_space *s, const struct poly_factor *f, uint32_t n)
{
    uint64_t hash = n, *head;
    uint32_t degree = 0;
    for (uint32_t i = 0; i < n; i++) {
        hash = mix(mix(hash, (uint64_t)(uintptr_t)f[i].sym), f[i].power);
        degree += f[i].power;
    }
    if (map_u64_ref(&s->monos, hash, &head, NULL) < 0) return failed(s);
    for (struct poly_mono *m = (struct poly_mono *)(uintptr_t)*head; m; m = m->next) {
        uint32_t same = 0;
        while (m->n == n && same < n && m->f[same].sym == f[same].sym && m->f[same].power == f[same].power)
            same++;
        if (m->n == n && same == n) return m;
    }
    struct poly_mono *m = arena_new(&s->arena, 1, sizeof *m + n * sizeof m->f[0]);
    if (!m) return failed(s);
    m->next = (struct poly_mono *)(uintptr_t)*head;
    m->degree = degree;
    m->n = n;
    for (uint32_t i = 0; i < n; i++) m->f[i] = f[i];
    *head = (uint64_t)(uintptr_t)m;
    return m;
}

static bool same_terms(const struct poly *p, const struct poly_term *t, size_t n)
{
    if (p->n != n) return false;
    for (size_t i = 0; i < n; i++)
        if (p->t[i].c != t[i].c || p->t[i].m != t[i].m) return false;
    return true;
}

/* Likewise of terms. */
const struct poly *poly_of(struct poly_space *s, const struct poly_term *t, size_t n)
{
    uint64_t hash = n, *head;
    if (n > POLY_TERMS_MAX) return NULL;
    for (size_t i = 0; i < n; i++) hash = mix(mix(hash, (uint64_t)t[i].c), (uint64_t)(uintptr_t)t[i].m);
    if (map_u64_ref(&s->polys, hash, &head, NULL) < 0) return failed(s);
    for (struct poly *p = (struct poly *)(uintptr_t)*head; p; p = p->next)
        if (same_terms(p, t, n)) return p;
    struct poly *p = arena_new(&s->arena, 1, sizeof *p + n * sizeof p->t[0]);
    if (!p) return failed(s);
    p->next = (struct poly *)(uintptr_t)*head;
    p->n = n;
    for (size_t i = 0; i < n; i++) p->t[i] = t[i];
    *head = (uint64_t)(uintptr_t)p;
    return p;
}

tare_status poly_space_new(struct poly_space **out, tare_error *err)
{
    struct poly_space *s = mem_new(1, sizeof *s);
    if (s) s->one = mono_of(s, NULL, 0);
    if (!s || !s->one) {
        poly_space_free(s);
        return error_set(err, TARE_NOMEM, "out of memory for dimensions");
    }
    *out = s;
    return TARE_OK;
}

void poly_space_free(struct poly_space *s)
{
    if (!s) return;
    arena_release(&s->arena);
    map_u64_release(&s->polys);
    map_u64_release(&s->monos);
    map_str_release(&s->syms);
    mem_free(s);
}

tare_status poly_space_status(const struct poly_space *s, tare_error *err)
{
    return s->failed ? error_set(err, TARE_NOMEM, "out of memory for dimensions") : TARE_OK;
}

/* ---- symbols ---- */

/* A kind, then the name of a named one, or the two arguments. */
static const struct poly_sym *sym_of(struct poly_space *s, const struct poly_sym *want, const void *key,
                                     size_t n)
{
    uint64_t *slot;
    if (map_str_ref(&s->syms, key, n, &slot, NULL) < 0) return failed(s);
    if (*slot) return (const struct poly_sym *)(uintptr_t)*slot;
    struct poly_sym *made = arena_new(&s->arena, 1, sizeof *made);
    const char *text = arena_str(&s->arena, want->text);
    if (!made || !text) return failed(s);
    *made = *want;
    made->text = text;
    made->id = (uint32_t)s->syms.n;
    *slot = (uint64_t)(uintptr_t)made;
    return made;
}

static const struct poly *from_sym(struct poly_space *s, const struct poly_sym *sym)
{
    struct poly_term t = {1, NULL};
    if (!sym || !(t.m = mono_of(s, &(struct poly_factor){sym, 1}, 1))) return NULL;
    return poly_of(s, &t, 1);
}

const struct poly *poly_symbol(struct poly_space *s, const char *name)
{
    struct buf key = BUF_INIT;
    struct poly_sym want = {.text = name, .kind = POLY_NAMED, .bounds = {0, INT64_MAX}};
    buf_add_char(&key, (char)POLY_NAMED);
    buf_add_str(&key, name);
    const struct poly_sym *sym = key.failed ? failed(s) : sym_of(s, &want, key.data, key.len);
    buf_release(&key);
    return from_sym(s, sym);
}

static const char *const made_open[] = {
    [POLY_NAMED] = "",      [POLY_FLOOR] = "floor(",         [POLY_MIN] = "min(",
    [POLY_MAX] = "max(",    [POLY_BROADCAST] = "broadcast(",
};

/* Of a quotient: what binds less than the stroke goes into brackets. */
static void print_part(const struct poly *p, bool divisor, struct buf *out)
{
    bool product = p->n == 1 && (p->t[0].c != 1 ? p->t[0].m->n > 0 : p->t[0].m->n > 1);
    bool brackets = p->n > 1 || (divisor && product);
    if (brackets) buf_add_char(out, '(');
    poly_print(p, out);
    if (brackets) buf_add_char(out, ')');
}

static void print_made(enum poly_kind kind, const struct poly *a, const struct poly *b, struct buf *out)
{
    buf_add_str(out, made_open[kind]);
    if (kind == POLY_FLOOR) {
        print_part(a, false, out);
        buf_add_char(out, '/');
        print_part(b, true, out);
    } else {
        poly_print(a, out);
        buf_add_str(out, ", ");
        poly_print(b, out);
    }
    buf_add_char(out, ')');
}

/* A symbol for what is no polynomial, known again by its kind and arguments. One whose text got too long is unknown. */
const struct poly *poly_made(struct poly_space *s, enum poly_kind kind, const struct poly *a,
                             const struct poly *b)
{
    struct {
        uint64_t kind;
        const void *a, *b;
    } key = {(uint64_t)kind, a, b};
    struct buf text = BUF_INIT;
    const struct poly_sym *sym = NULL;
    print_made(kind, a, b, &text);
    if (text.failed)
        failed(s);
    else if (text.len <= POLY_TEXT_MAX)
        sym = sym_of(s, &(struct poly_sym){text.data, kind, 0, a, b, poly_range_made(kind, a, b)}, &key,
                     sizeof key);
    buf_release(&text);
    return from_sym(s, sym);
}

const struct poly_sym *poly_only(const struct poly *p)
{
    bool only = p && p->n == 1 && p->t[0].c == 1 && p->t[0].m->n == 1 && p->t[0].m->f[0].power == 1;
    return only ? p->t[0].m->f[0].sym : NULL;
}

/* ---- order of terms ---- */

static int sym_cmp(const struct poly_sym *a, const struct poly_sym *b)
{
    if (a == b) return 0;
    int c = strcmp(a->text, b->text);
    if (c) return c;
    return a->id < b->id ? -1 : 1;
}

/* Less than 0: a comes first. Higher degree first, then the higher power of the first name that differs: an order that
 * multiplying keeps. */
static int mono_cmp(const struct poly_mono *a, const struct poly_mono *b)
{
    if (a == b) return 0;
    if (a->degree != b->degree) return a->degree > b->degree ? -1 : 1;
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        int c = sym_cmp(a->f[i].sym, b->f[i].sym);
        if (c) return c;
        if (a->f[i].power != b->f[i].power) return a->f[i].power > b->f[i].power ? -1 : 1;
    }
    return 0;
}

/* Factors are in the order of their symbols, so this merges two sorted lists. */
static const struct poly_mono *mono_mul(struct poly_space *s, const struct poly_mono *a,
                                        const struct poly_mono *b)
{
    struct poly_factor f[POLY_DEGREE_MAX];
    uint32_t n = 0, i = 0, j = 0;
    if (!a->n) return b;
    if (!b->n) return a;
    if (a->degree + b->degree > POLY_DEGREE_MAX) return NULL;
    while (i < a->n || j < b->n) {
        int c = i == a->n ? 1 : -1; /* which of the two comes first */
        if (i < a->n && j < b->n) c = sym_cmp(a->f[i].sym, b->f[j].sym);
        f[n] = c <= 0 ? a->f[i] : b->f[j];
        if (c == 0) f[n].power += b->f[j].power;
        if (c <= 0) i++;
        if (c >= 0) j++;
        n++;
    }
    return mono_of(s, f, n);
}

/* a / b, or NULL when b is no factor of it. */
static const struct poly_mono *mono_div(struct poly_space *s, const struct poly_mono *a,
                                        const struct poly_mono *b)
{
    struct poly_factor f[POLY_DEGREE_MAX];
    uint32_t n = 0, j = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        f[n] = a->f[i];
        if (j < b->n && b->f[j].sym == a->f[i].sym) {
            if (b->f[j].power > f[n].power) return NULL;
            f[n].power -= b->f[j++].power;
        }
        if (f[n].power) n++;
    }
    return j == b->n ? mono_of(s, f, n) : NULL;
}

/* ---- sums and products ---- */

const struct poly *poly_int(struct poly_space *s, int64_t v)
{
    return poly_of(s, &(struct poly_term){v, s->one}, v != 0);
}

/* acc + k * m * b. false: an overflow, or too long. */
static bool add_scaled(struct poly_space *s, struct poly_draft *acc, const struct poly_term *by,
                       const struct poly *b)
{
    struct poly_draft old; /* only what is used is filled: clearing it all would take longer than the sum */
    size_t i = 0, n = 0;
    old.n = acc->n;
    memcpy(old.t, acc->t, acc->n * sizeof acc->t[0]);
    for (size_t j = 0; j < b->n || i < old.n;) {
        struct poly_term t = {0, NULL};
        if (j < b->n) {
            if (!(t.m = mono_mul(s, by->m, b->t[j].m))) return false;
            if (__builtin_mul_overflow(by->c, b->t[j].c, &t.c)) return false;
        }
        int c = j == b->n ? -1 : 1; /* which of the two comes first */
        if (j < b->n && i < old.n) c = mono_cmp(old.t[i].m, t.m);
        if (c < 0) t = old.t[i];
        if (c == 0 && __builtin_add_overflow(t.c, old.t[i].c, &t.c)) return false;
        if (c <= 0) i++;
        if (c >= 0) j++;
        if (t.c == 0) continue;
        if (n == sizeof acc->t / sizeof acc->t[0]) return false;
        acc->t[n++] = t;
    }
    acc->n = n;
    return n <= POLY_TERMS_MAX;
}

static void draft_of(struct poly_draft *d, const struct poly *p)
{
    d->n = p->n;
    memcpy(d->t, p->t, p->n * sizeof p->t[0]);
}

static const struct poly *sum(struct poly_space *s, const struct poly *a, int64_t k, const struct poly *b)
{
    struct poly_draft d;
    if (!a || !b) return NULL;
    draft_of(&d, a);
    return add_scaled(s, &d, &(struct poly_term){k, s->one}, b) ? poly_of(s, d.t, d.n) : NULL;
}

const struct poly *poly_add(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    return sum(s, a, 1, b);
}

const struct poly *poly_sub(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    return sum(s, a, -1, b);
}

const struct poly *poly_scale(struct poly_space *s, const struct poly *a, int64_t by)
{
    return by == 1 ? a : poly_mul(s, a, poly_int(s, by));
}

const struct poly *poly_mul(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    struct poly_draft d;
    if (!a || !b) return NULL;
    d.n = 0;
    for (size_t i = 0; i < a->n; i++)
        if (!add_scaled(s, &d, &a->t[i], b)) return NULL;
    return poly_of(s, d.t, d.n);
}

const struct poly *poly_product(struct poly_space *s, const struct poly *const *x, size_t n)
{
    const struct poly *all = poly_int(s, 1);
    for (size_t i = 0; i < n; i++) {
        if (poly_is(x[i], 0)) return x[i]; /* whatever the others are */
        all = poly_mul(s, all, x[i]);
    }
    return all;
}

/* Long division from the highest term down; whole coefficients all the way, or no exact quotient. */
const struct poly *poly_div_exact(struct poly_space *s, const struct poly *a, const struct poly *b)
{
    struct poly_draft rest, quotient = {.n = 0};
    if (!a || !b || !b->n) return NULL;
    draft_of(&rest, a);
    while (rest.n) {
        struct poly_term t = {0, mono_div(s, rest.t[0].m, b->t[0].m)};
        if (!t.m || quotient.n == POLY_TERMS_MAX) return NULL;
        if (b->t[0].c == -1 && rest.t[0].c == INT64_MIN) return NULL;
        if (rest.t[0].c % b->t[0].c) return NULL;
        t.c = rest.t[0].c / b->t[0].c;
        quotient.t[quotient.n++] = t;
        if (t.c == INT64_MIN) return NULL;
        t.c = -t.c;
        if (!add_scaled(s, &rest, &t, b)) return NULL;
    }
    return poly_of(s, quotient.t, quotient.n);
}

bool poly_constant(const struct poly *p, int64_t *out)
{
    if (!p || p->n > 1 || (p->n == 1 && p->t[0].m->n)) return false;
    *out = p->n ? p->t[0].c : 0;
    return true;
}

bool poly_is(const struct poly *p, int64_t v)
{
    int64_t is;
    return poly_constant(p, &is) && is == v;
}

int64_t poly_const_part(const struct poly *p)
{
    return p->n && !p->t[p->n - 1].m->n ? p->t[p->n - 1].c : 0;
}

/* ---- text ---- */

static void print_term(const struct poly_term *t, uint64_t c, struct buf *out)
{
    const char *between = "";
    if (c != 1 || !t->m->n) {
        buf_printf(out, "%" PRIu64, c);
        between = "*";
    }
    for (uint32_t i = 0; i < t->m->n; i++) {
        buf_printf(out, "%s%s", between, t->m->f[i].sym->text);
        if (t->m->f[i].power > 1) buf_printf(out, "^%" PRIu32, t->m->f[i].power);
        between = "*";
    }
}

/* Signs stand between the terms: "a - 2*b", and before the first only a minus. */
void poly_print(const struct poly *p, struct buf *out)
{
    if (!p) {
        buf_add_char(out, '?');
        return;
    }
    if (!p->n) buf_add_char(out, '0');
    for (size_t i = 0; i < p->n; i++) {
        bool minus = p->t[i].c < 0;
        if (i)
            buf_add_str(out, minus ? " - " : " + ");
        else if (minus)
            buf_add_char(out, '-');
        print_term(&p->t[i], minus ? -(uint64_t)p->t[i].c : (uint64_t)p->t[i].c, out);
    }
}
