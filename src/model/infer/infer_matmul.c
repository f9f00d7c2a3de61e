/* SPDX-License-Identifier: MIT
 * infer_matmul.c - rules of shape inference: MatMul with its batches, Gemm, Einsum. Never guesses a size. */
#include <string.h>

#include "model/infer/infer_rule.h"

static const char summed[] = "the dimensions that are summed over";

static void swap_last(struct rule_dims *d)
{
    const struct poly *last = d->at[d->n - 1];
    d->at[d->n - 1] = d->at[d->n - 2];
    d->at[d->n - 2] = last;
}

/* [b, x, y, m, k] -> [x, y, m, b, k] as FusedMatMul's transBatch says: the first one goes before the last. */
static void rotate_batch(struct rule_dims *d)
{
    const struct poly *first = d->at[0];
    rule_drop(d, 0);
    rule_insert(d, d->n - 1, first);
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
    d->at[left] = d->at[0];
    d->at[!left] = rule_number(c, 1);
    d->n = 2;
    return true;
}

/* The last two dimensions multiply, those before are broadcast. */
static bool matmul_dims(struct rule_call *c, struct rule_dims *a, struct rule_dims *b, struct rule_dims *out)
{
    const struct poly *inner;
    if (a->n == 0 || b->n == 0) return rule_fault(c, "a scalar cannot be multiplied as a matrix");
    bool row = promote(c, a, true), column = promote(c, b, false);
    if (!rule_agree(c, a->at[a->n - 1], b->at[b->n - 2], summed, &inner)) return false;
    const struct poly *rows = a->at[a->n - 2], *columns = b->at[b->n - 1];
    a->n -= 2;
    b->n -= 2;
    if (!rule_broadcast(c, a, b, out) || !out->known) return false;
    if (!row) rule_push(out, rows);
    if (!column) rule_push(out, columns);
    return true;
}

/* Only FusedMatMul and its like have the attributes. */
bool shape_matmul(struct rule_call *c)
{
    struct rule_dims x, y, out;
    if (!rule_ranked(c, 0, &x) || !rule_ranked(c, rule_second(c, 1), &y)) return false;
    turn(&x, rule_int(c, "transBatchA", 0) != 0, rule_int(c, "transA", 0) != 0);
    turn(&y, rule_int(c, "transBatchB", 0) != 0, rule_int(c, "transB", 0) != 0);
    return matmul_dims(c, &x, &y, &out) && rule_state(c, 0, &out);
}

bool shape_gemm(struct rule_call *c)
{
    struct rule_dims x, y;
    const struct poly *inner;
    if (!rule_ranked_as(c, 0, 2, &x) || !rule_ranked_as(c, rule_second(c, 1), 2, &y)) return false;
    turn(&x, false, rule_int(c, "transA", 0) != 0);
    turn(&y, false, rule_int(c, "transB", 0) != 0);
    if (!rule_agree(c, x.at[1], y.at[0], summed, &inner)) return false;
    x.at[1] = y.at[1];
    return rule_state(c, 0, &x);
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
static bool label_size(struct rule_call *c, struct equation *e, char label, const struct poly *dim)
{
    const struct poly **size = &e->size[(size_t)label];
    bool first = e->seen[(size_t)label]++ == 0;
    if (!first && poly_is(dim, 1)) return true;
    if (!first && !poly_is(*size, 1))
        return rule_agree(c, *size, dim, "sizes of one label of the equation", size);
    *size = dim;
    return true;
}

/* One input against its term. The dots take all dimensions that the letters leave. */
static bool einsum_term(struct rule_call *c, struct equation *e, const struct rule_dims *in)
{
    size_t letters = labels_ahead(e), at = 0;
    if (letters > in->n) return rule_fault(c, "the equation has more labels than the input has dimensions");
    for (char label; (label = next_label(e));) {
        if (label != DOTS) {
            if (at >= in->n) return rule_fault(c, "the equation does not fit an input");
            if (!label_size(c, e, label, in->at[at++])) return false;
            continue;
        }
        struct rule_dims some = rule_dims_none(), before = e->rest;
        if (at > letters) return rule_fault(c, "the equation has dots twice in one term");
        rule_push_all(&some, &in->at[at], in->n - letters);
        at += some.n;
        e->seen[DOTS]++;
        if (!rule_broadcast(c, &before, &some, &e->rest)) return false;
    }
    return at == in->n || rule_fault(c, "the equation has fewer labels than an input has dimensions");
}

/* Without "->": the dots, then labels that are there once, in the order of the alphabet (capitals first). */
static void einsum_implied(const struct equation *e, struct rule_dims *out)
{
    *out = e->rest;
    for (size_t i = 'A'; i <= 'z'; i++)
        if (e->seen[i] == 1) rule_push(out, e->size[i]);
}

static bool einsum_result(struct rule_call *c, struct equation *e, struct rule_dims *out)
{
    *out = rule_dims_none();
    for (char label; (label = next_label(e));) {
        if (label == DOTS)
            rule_push_all(out, e->rest.at, e->rest.n);
        else if (e->seen[(size_t)label])
            rule_push(out, e->size[(size_t)label]);
        else
            return rule_fault(c, "label '%c' of the result is in no input", label);
    }
    out->known = out->known && e->rest.known;
    return *e->at == 0 || rule_fault(c, "the equation goes on after its result: '%s'", e->at);
}

/* The terms of the inputs one by one, then the result, which may be implied. */
bool shape_einsum(struct rule_call *c)
{
    struct equation e = {.at = rule_text(c, "equation"), .rest = rule_dims_none()};
    struct rule_dims in, out;
    if (!e.at) return rule_fault(c, "no equation");
    for (size_t i = 0; i < c->node->inputs.n; i++) {
        if (!rule_ranked(c, i, &in) || !einsum_term(c, &e, &in)) return false;
        while (*e.at == ' ') e.at++;
        if (i + 1 < c->node->inputs.n && *e.at++ != ',')
            return rule_fault(c, "the equation has fewer terms than there are inputs");
    }
    if (!strncmp(e.at, "->", 2)) {
        e.at += 2;
        return einsum_result(c, &e, &out) && rule_state(c, 0, &out);
    }
    if (*e.at) return rule_fault(c, "an equation that cannot be read, at '%s'", e.at);
    einsum_implied(&e, &out);
    return rule_state(c, 0, &out);
}
