/* SPDX-License-Identifier: MIT
 * infer_matmul.c - rules of shape inference: MatMul with its batches, Gemm, Einsum. Never guesses a size. */
#include <string.h>

#include "model/infer/infer_rule.h"

static void swap_last(struct rule_dims *d)
{
    const struct poly *last = d->at[d->n - 1];
    d->at[d->n - 1] = d->at[d->n - 2];
    d->at[d->n - 2] = last;
}

/* [b, x, y, m, k] -> [x, y, b, m, k] as FusedMatMul's transBatch says: the first one goes before the last but one. */
static void rotate_batch(struct rule_dims *d)
{
    const struct poly *first = d->at[0];
    memmove(&d->at[0], &d->at[1], (d->n - 2) * sizeof d->at[0]);
    d->at[d->n - 2] = first;
}

static void turn(struct rule_dims *d, bool batch, bool last)
{
    if (d->n < 2) return;
    if (batch) rotate_batch(d);
    if (last) swap_last(d);
}

/* A vector is a matrix of one row (on the left) or one column (on the right); the one goes away afterwards. */
static bool promote(struct rule_call *c, struct rule_dims *d, bool left)
{
    if (d->n != 1) return false;
    const struct poly *one = poly_int(c->space, 1);
    d->at[left] = d->at[0];
    d->at[!left] = one;
    d->n = 2;
    return true;
}

static tare_status matmul_dims(struct rule_call *c, struct rule_dims *a, struct rule_dims *b,
                               struct rule_dims *out)
{
    if (a->n == 0 || b->n == 0) return rule_fault(c, "a scalar cannot be multiplied as a matrix");
    bool row = promote(c, a, true);
    bool column = promote(c, b, false);
    const struct poly *inner;
    tare_status s =
        rule_agree(c, a->at[a->n - 1], b->at[b->n - 2], "the dimensions that are summed over", &inner);
    if (s < 0) return s;
    const struct poly *rows = a->at[a->n - 2];
    const struct poly *columns = b->at[b->n - 1];
    a->n -= 2;
    b->n -= 2;
    if ((s = rule_broadcast(c, a, b, out)) < 0 || !out->known) return s;
    if (!row) rule_push(out, rows);
    if (!column) rule_push(out, columns);
    return TARE_OK;
}

tare_status matmul_shape(struct rule_call *c, size_t a, size_t b, const struct matmul_form *f)
{
    struct rule_dims x;
    struct rule_dims y;
    struct rule_dims out;
    if (!rule_ranked(c, a, &x) || !rule_ranked(c, b, &y)) return TARE_OK;
    turn(&x, f->transpose_batch_a, f->transpose_a);
    turn(&y, f->transpose_batch_b, f->transpose_b);
    tare_status s = matmul_dims(c, &x, &y, &out);
    return s < 0 ? s : rule_state(c, 0, &out);
}

static const struct matmul_form plain;

tare_status shape_matmul(struct rule_call *c)
{
    return matmul_shape(c, 0, rule_second(c), &plain);
}

tare_status gemm_shape(struct rule_call *c, size_t a, size_t b)
{
    struct rule_dims x;
    struct rule_dims y;
    const struct poly *inner;
    tare_status s;
    if (!rule_ranked_as(c, a, 2, &x, &s) || !rule_ranked_as(c, b, 2, &y, &s)) return s;
    turn(&x, false, rule_int(c, "transA", 0) != 0);
    turn(&y, false, rule_int(c, "transB", 0) != 0);
    if ((s = rule_agree(c, x.at[1], y.at[0], "the dimensions that are summed over", &inner)) < 0) return s;
    x.at[1] = y.at[1];
    return rule_state(c, 0, &x);
}

tare_status shape_gemm(struct rule_call *c)
{
    return gemm_shape(c, 0, 1);
}

/* ---- Einsum: "bij,bjk->bik", "...ii->...i" ---- */

enum { LETTERS = 128, DOTS = '.' };

struct equation {
    const char *at;
    const struct poly *size[LETTERS];
    unsigned seen[LETTERS]; /* how often; the dots count too */
    struct rule_dims rest;  /* what the dots stand for */
};

static bool is_label(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

/* The next label of a term: a letter, or DOTS for "..."; 0 at its end. */
static char next_label(struct equation *e)
{
    while (*e->at == ' ') e->at++;
    if (!strncmp(e->at, "...", 3)) {
        e->at += 3;
        return DOTS;
    }
    return is_label(*e->at) ? *e->at++ : 0;
}

static size_t labels_ahead(const struct equation *e)
{
    struct equation copy = {.at = e->at};
    size_t n = 0;
    for (char label; (label = next_label(&copy));) n += label != DOTS;
    return n;
}

/* A label in several places has one size; a 1 there stretches. */
static tare_status label_size(struct rule_call *c, struct equation *e, char label, const struct poly *dim)
{
    size_t i = (size_t)label;
    bool first = e->seen[i]++ == 0;
    if (first || poly_is(e->size[i], 1)) {
        e->size[i] = dim;
        return TARE_OK;
    }
    return poly_is(dim, 1)
               ? TARE_OK
               : rule_agree(c, e->size[i], dim, "sizes of one label of the equation", &e->size[i]);
}

static tare_status einsum_term(struct rule_call *c, struct equation *e, const struct rule_dims *in)
{
    size_t letters = labels_ahead(e);
    size_t at = 0;
    if (letters > in->n) return rule_fault(c, "the equation has more labels than the input has dimensions");
    for (char label; (label = next_label(e));) {
        if (label != DOTS) {
            if (at >= in->n) return rule_fault(c, "the equation does not fit an input");
            tare_status s = label_size(c, e, label, in->at[at++]);
            if (s < 0) return s;
            continue;
        }
        struct rule_dims some = {.n = in->n - letters, .known = true};
        struct rule_dims before = e->rest;
        if (some.n > in->n - at) return rule_fault(c, "the equation has dots twice in one term");
        memcpy(some.at, &in->at[at], some.n * sizeof some.at[0]);
        at += some.n;
        e->seen[DOTS]++;
        tare_status s = rule_broadcast(c, &before, &some, &e->rest);
        if (s < 0) return s;
    }
    return at == in->n ? TARE_OK
                       : rule_fault(c, "the equation has fewer labels than an input has dimensions");
}

/* Without "->": the dots, then labels that are there once, in the order of the alphabet (capitals first). */
static void einsum_implied(const struct equation *e, struct rule_dims *out)
{
    *out = e->rest;
    for (size_t i = 'A'; i <= 'z'; i++)
        if (e->seen[i] == 1) rule_push(out, e->size[i]);
}

static tare_status einsum_result(struct rule_call *c, struct equation *e, struct rule_dims *out)
{
    *out = rule_dims_none();
    for (char label; (label = next_label(e));) {
        if (label != DOTS && !e->seen[(size_t)label])
            return rule_fault(c, "label '%c' of the result is in no input", label);
        if (label != DOTS) rule_push(out, e->size[(size_t)label]);
        for (size_t i = 0; label == DOTS && i < e->rest.n; i++) rule_push(out, e->rest.at[i]);
    }
    out->known = out->known && e->rest.known;
    return *e->at == 0 ? TARE_OK : rule_fault(c, "the equation goes on after its result: '%s'", e->at);
}

tare_status shape_einsum(struct rule_call *c)
{
    struct equation e = {.at = rule_text(c, "equation"), .rest = {.n = 0, .known = true}};
    struct rule_dims out;
    if (!e.at) return rule_fault(c, "no equation");
    for (size_t i = 0; i < c->node->inputs.n; i++) {
        struct rule_dims in;
        if (!rule_ranked(c, i, &in)) return TARE_OK;
        tare_status s = einsum_term(c, &e, &in);
        if (s < 0) return s;
        while (*e.at == ' ') e.at++;
        bool more = i + 1 < c->node->inputs.n;
        if (more && *e.at++ != ',')
            return rule_fault(c, "the equation has fewer terms than there are inputs");
    }
    if (!strncmp(e.at, "->", 2)) {
        e.at += 2;
        tare_status s = einsum_result(c, &e, &out);
        return s < 0 ? s : rule_state(c, 0, &out);
    }
    if (*e.at) return rule_fault(c, "an equation that cannot be read, at '%s'", e.at);
    einsum_implied(&e, &out);
    return rule_state(c, 0, &out);
}
