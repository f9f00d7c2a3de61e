/* SPDX-License-Identifier: MIT
 * cost_einsum.c - see cost_einsum.h. */
#include "model/cost/cost_einsum.h"

#include <ctype.h>
#include <string.h>

/* Letters are indices 0 .. 51; dimensions under the dots, counted from the last, come after them. */
enum { LETTERS = 52, DOTTED = 12, INDICES = LETTERS + DOTTED, OPERANDS_MAX = 16 };

struct equation {
    const struct poly *size[INDICES];
    uint64_t operand[OPERANDS_MAX]; /* which indices each has */
    size_t n_operands;
    uint64_t result;
    bool explicit_result;
};

static int index_of(char letter)
{
    if (letter >= 'a' && letter <= 'z') return letter - 'a';
    return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 26 : -1;
}

/* A dimension of 1 stretches to what the others have. */
static void note_size(struct equation *e, int index, const struct poly *dim)
{
    if (!e->size[index] || poly_is(e->size[index], 1)) e->size[index] = dim;
}

/* One term, "b...ij", against the operand's dimensions. false: they do not fit. */
static bool read_term(struct equation *e, const char *text, size_t n, const struct infer_value *v)
{
    size_t letters = 0, at = 0;
    uint64_t *indices = &e->operand[e->n_operands];
    for (size_t i = 0; i < n; i++) letters += index_of(text[i]) >= 0;
    if (!v || !v->has_rank || letters > v->rank || v->rank - letters > DOTTED) return false;
    size_t dotted = v->rank - letters;
    for (size_t i = 0; i < n; i++) {
        int index = index_of(text[i]);
        bool dots = text[i] == '.' && (i == 0 || text[i - 1] != '.');
        for (size_t k = 0; dots && k < dotted; k++) {
            int under = LETTERS + (int)(dotted - 1 - k);
            note_size(e, under, v->dims[at++]);
            *indices |= UINT64_C(1) << under;
        }
        if (index < 0) continue;
        if (at >= v->rank) return false;
        note_size(e, index, v->dims[at++]);
        *indices |= UINT64_C(1) << index;
    }
    e->n_operands++;
    return at == v->rank;
}

/* Without "->": the letters that occur once, and what is under the dots. */
static void implied_result(struct equation *e, const char *text, size_t n)
{
    unsigned seen[LETTERS] = {0};
    for (size_t i = 0; i < n; i++) {
        int index = index_of(text[i]);
        if (index >= 0) seen[index]++;
    }
    for (int i = 0; i < INDICES; i++) {
        if (i < LETTERS ? seen[i] == 1 : e->size[i] != NULL) e->result |= UINT64_C(1) << i;
    }
}

static void read_result(struct equation *e, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int index = index_of(text[i]);
        if (index >= 0) e->result |= UINT64_C(1) << index;
        for (int k = LETTERS; text[i] == '.' && k < INDICES; k++) {
            if (e->size[k]) e->result |= UINT64_C(1) << k;
        }
    }
}

static bool read_equation(const struct cost_call *c, struct equation *e)
{
    const struct onnx_attribute *a = cost_attribute(c, "equation");
    if (!a || !a->s) return false;
    const char *text = (const char *)a->s, *end = text + a->s_bytes;
    const char *arrow = memmem(text, a->s_bytes, "->", 2), *left_end = arrow ? arrow : end;
    for (const char *at = text; at <= left_end && e->n_operands < OPERANDS_MAX;) {
        const char *comma = memchr(at, ',', (size_t)(left_end - at)), *stop = comma ? comma : left_end;
        if (!read_term(e, at, (size_t)(stop - at), cost_in(c, e->n_operands))) return false;
        if (!comma) break;
        at = comma + 1;
    }
    if (e->n_operands != c->node->inputs.n) return false;
    if (arrow) {
        read_result(e, arrow + 2, (size_t)(end - arrow - 2));
    } else {
        implied_result(e, text, a->s_bytes);
    }
    return true;
}

static const struct poly *product(const struct cost_call *c, const struct equation *e, uint64_t indices)
{
    const struct poly *n = poly_int(c->s, 1);
    for (int i = 0; i < INDICES; i++) {
        if (indices >> i & 1) n = cost_mul(c, n, e->size[i]);
    }
    return n;
}

/* What operands after i and the result still need. */
static uint64_t needed_after(const struct equation *e, size_t i)
{
    uint64_t needed = e->result;
    for (size_t k = i + 1; k < e->n_operands; k++) needed |= e->operand[k];
    return needed;
}

struct cost_einsum cost_einsum(const struct cost_call *c)
{
    struct equation e = {.n_operands = 0};
    struct cost_einsum out = {NULL, NULL};
    if (!read_equation(c, &e)) return out;
    out.macs = out.simple = poly_int(c->s, 0);
    if (e.n_operands == 1) { /* a sum over what is left out, or only another order */
        if (e.operand[0] & ~e.result) out.simple = product(c, &e, e.operand[0]);
        return out;
    }
    uint64_t held = e.operand[0];
    for (size_t i = 1; i < e.n_operands; i++) {
        uint64_t all = held | e.operand[i], kept = all & needed_after(&e, i);
        const struct poly **to = all != kept ? &out.macs : &out.simple; /* nothing summed: only multiplied */
        *to = poly_add(c->s, *to, product(c, &e, all));
        held = kept;
    }
    return out;
}
