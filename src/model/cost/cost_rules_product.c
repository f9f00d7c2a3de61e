/* SPDX-License-Identifier: MIT
 * cost_rules_product.c - cost of contractions (matrix products, convolutions, recurrent layers) and of what slides or
 * samples: pools, resizing, grids. Places of a kernel that fall on padding are counted like the others. */
#include <ctype.h>
#include <string.h>

#include "model/cost/cost_rule.h"

/* ---- matrix products ---- */

/* The numbers multiplied for one element of MatMul's, Gemm's and their like's output. */
static const struct poly *inner_size(const struct cost_call *c, const struct infer_value *a)
{
    if (!a || !a->has_rank || a->rank == 0) return NULL;
    if (a->rank == 1) return cost_dim(a, 0);
    if (!cost_int(c, "transA", 0)) return cost_dim(a, -1);
    return cost_int(c, "transBatchA", 0) ? cost_dim(a, 0) : cost_dim(a, -2);
}

static const struct poly *out_elements(const struct cost_call *c)
{
    return cost_elements(c, cost_out(c, 0));
}

void cost_rule_matmul(struct cost_call *c)
{
    const struct infer_value *a = cost_in(c, 0);
    cost_count_macs(c, a, cost_mul(c, out_elements(c), inner_size(c, a)));
    cost_count_out(c, COST_SIMPLE(cost_float(c, "alpha", 1) != 1));
    cost_count_activation(c, "activation");
}

void cost_rule_gemm(struct cost_call *c)
{
    const struct infer_value *a = cost_in(c, 0);
    bool added = cost_in(c, 2) != NULL;
    unsigned more = added + (cost_float(c, "alpha", 1) != 1) + (added && cost_float(c, "beta", 1) != 1);
    cost_count_macs(c, a, cost_mul(c, out_elements(c), inner_size(c, a)));
    cost_count_out(c, COST_SIMPLE(more));
    cost_count_activation(c, "activation");
}

/* A matrix product, its bias and the fast Gelu. */
void cost_rule_gemm_fast_gelu(struct cost_call *c)
{
    cost_rule_matmul(c);
    cost_count_out(c, (struct cost_each){7 + (cost_in(c, 2) != NULL), 0, 1});
}

/* ---- Einsum: its operands two at a time, from left to right ---- */

struct einsum_cost {
    const struct poly *macs, *simple; /* NULL: unknown, or an equation that is wrong */
};

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

/* False for what the operands do not fit: such a cost is unknown, not an error, as the runtime will say
 * what is wrong. One term more than there are inputs, or one less, is such a case. */
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

/* Operands are joined from left to right, as the runtime does; each step costs the product of all indices
 * in it, and an index that nobody needs later is summed away at once. A cleverer order could cost less:
 * this is what is computed, not what could be. */
static struct einsum_cost cost_of_equation(const struct cost_call *c)
{
    struct equation e = {.n_operands = 0};
    struct einsum_cost out = {NULL, NULL};
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

void cost_rule_einsum(struct cost_call *c)
{
    struct einsum_cost e = cost_of_equation(c);
    cost_count_macs(c, cost_in(c, 0), e.macs);
    cost_count(c, cost_in(c, 0), e.simple, COST_SIMPLE(1));
}

/* ---- convolutions ---- */

/* Convolution: products per element of its output, by its weights. */
static const struct poly *taps_of(const struct cost_call *c, const struct infer_value *w)
{
    return w && w->has_rank && w->rank ? cost_dims(c, w, 1, w->rank) : NULL;
}

/* x, w, bias, what is added to the result. */
void cost_rule_conv(struct cost_call *c)
{
    cost_count_macs(c, cost_in(c, 0), cost_mul(c, out_elements(c), taps_of(c, cost_in(c, 1))));
    cost_count_out(c, COST_SIMPLE((cost_in(c, 2) != NULL) + (cost_in(c, 3) != NULL)));
    cost_count_activation(c, "activation");
}

/* input, weights, bias, past state: a channel by itself. */
void cost_rule_causal_conv(struct cost_call *c)
{
    cost_count_macs(c, cost_in(c, 0), cost_mul(c, out_elements(c), taps_of(c, cost_in(c, 1))));
    cost_count_out(c, COST_SIMPLE(cost_in(c, 2) != NULL));
    if (!cost_text_is(c, "activation", "none")) cost_count_activation(c, "activation");
}

/* Each input element meets every place of the kernel. */
void cost_rule_conv_transpose(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0), *w = cost_in(c, 1);
    cost_count_macs(c, x, cost_mul(c, cost_elements(c, x), taps_of(c, w)));
    cost_count_out(c, COST_SIMPLE(cost_in(c, 2) != NULL));
}

/* x, w, offsets, bias, mask: each place of the kernel is sampled between four pixels. */
void cost_rule_deform_conv(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0), *w = cost_in(c, 1), *y = cost_out(c, 0);
    cost_count_macs(c, x, cost_mul(c, out_elements(c), taps_of(c, w)));
    cost_count_out(c, COST_SIMPLE(cost_in(c, 3) != NULL));
    if (!x || !x->has_rank || !y || !y->has_rank || !w || !w->has_rank || y->rank < 3) {
        cost_count(c, x, NULL, COST_SIMPLE(6));
        return;
    }
    const struct poly *places = cost_mul(c, cost_dims(c, y, 2, y->rank), cost_dims(c, w, 2, w->rank));
    const struct poly *samples = cost_mul(c, cost_dims(c, x, 0, 2), places);
    cost_count(c, x, samples, (struct cost_each){6 + (cost_in(c, 4) != NULL), 0, 0});
}

/* ---- recurrent layers ---- */

struct gates { /* per hidden unit and step */
    const char *op;
    unsigned gates;
    unsigned simple;           /* beside the activations and the bias */
    unsigned uses[3];          /* how often each of its activations is applied */
    const char *activation[3]; /* what they are when the node does not say */
    size_t bias, peephole;     /* inputs; 0: none */
    unsigned peephole_simple;
    bool quantized;
};

static const struct gates recurrent[] = {
    {"LSTM", 4, 4, {3, 1, 1}, {"Sigmoid", "Tanh", "Tanh"}, 3, 7, 6, false},
    {"GRU", 3, 5, {2, 1, 0}, {"Sigmoid", "Tanh", ""}, 3, 0, 0, false},
    {"RNN", 1, 0, {1, 0, 0}, {"Tanh", "", ""}, 3, 0, 0, false},
    {"DynamicQuantizeLSTM", 4, 4, {3, 1, 1}, {"Sigmoid", "Tanh", "Tanh"}, 3, 7, 6, true},
};

static const struct gates *gates_of(const struct onnx_node *n)
{
    for (size_t i = 0; i < sizeof recurrent / sizeof *recurrent; i++) {
        if (strcmp(recurrent[i].op, n->op) == 0) return &recurrent[i];
    }
    return NULL; /* no row points here for another */
}

/* One unit's step; false: an activation that is not known. */
static bool step_cost(const struct cost_call *c, const struct gates *g, struct cost_each *out)
{
    const struct onnx_attribute *said = cost_attribute(c, "activations");
    *out = COST_SIMPLE(g->simple);
    for (size_t i = 0; i < 3 && g->uses[i]; i++) {
        struct cost_each one;
        const char *name = said && i < said->strings.n ? said->strings.items[i] : g->activation[i];
        if (!cost_activation(name, &one)) return false;
        out->simple += g->uses[i] * one.simple;
        out->division += g->uses[i] * one.division;
        out->transcendental += g->uses[i] * one.transcendental;
    }
    if (cost_in(c, g->bias)) out->simple += g->gates;
    if (g->peephole && cost_in(c, g->peephole)) out->simple += g->peephole_simple;
    return true;
}

/* Every weight is used once per step and sequence, so that macs are steps * batch * (W + R); the
 * directions are in the weights already. Only the part per hidden unit depends on the activations, and is
 * unknown where one of them is. */
void cost_rule_recurrent(struct cost_call *c)
{
    const struct gates *g = gates_of(c->node);
    const struct infer_value *x = cost_in(c, 0), *w = cost_in(c, 1), *r = cost_in(c, 2);
    const struct poly *steps = x && x->has_rank && x->rank == 3 ? cost_dims(c, x, 0, 2) : NULL;
    const struct poly *weights = poly_add(c->s, cost_elements(c, w), cost_elements(c, r));
    const struct poly *hidden = cost_size(c, "hidden_size");
    struct cost_each each;
    bool known = g && step_cost(c, g, &each);
    if (g && g->quantized) {
        cost_count_int_macs(c, cost_mul(c, steps, weights));
    } else {
        cost_count_macs(c, x, cost_mul(c, steps, weights));
    }
    if (!known) each = (struct cost_each){1, 1, 1};
    const struct poly *units = cost_mul(c, cost_mul(c, steps, cost_dim(w, 0)), hidden);
    cost_count_float(c, known ? units : NULL, each);
}

/* ---- pools ---- */

void cost_rule_pool(struct cost_call *c)
{
    const struct onnx_attribute *kernel = cost_attribute(c, "kernel_shape");
    const struct poly *n = kernel ? out_elements(c) : NULL;
    for (size_t i = 0; kernel && i < kernel->ints.n; i++)
        n = kernel->ints.items[i] > 0 ? cost_times(c, n, kernel->ints.items[i]) : NULL;
    cost_count(c, cost_in(c, 0), n, c->row->each);
}

/* ---- between pixels ---- */

/* Axes whose length changes; those surely the same do not count. */
static unsigned resized_axes(const struct infer_value *x, const struct infer_value *y)
{
    unsigned n = 0;
    for (size_t i = 0; i < x->rank && i < y->rank; i++) n += x->dims[i] != y->dims[i];
    return n;
}

enum { CUBIC_SIMPLE = 35 };

/* Linear in d axes: 2^d - 1 times between two values, two operations each. */
void cost_rule_resize(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0), *y = cost_out(c, 0);
    bool linear = cost_text_is(c, "mode", "linear") || cost_text_is(c, "mode", "bilinear");
    bool cubic = cost_text_is(c, "mode", "cubic");
    if (!linear && !cubic) return; /* nearest only copies */
    struct cost_each each = {cubic ? CUBIC_SIMPLE : 1, 0, 0};
    if (!x || !y || !x->has_rank || !y->has_rank) {
        cost_count(c, x, NULL, each);
        return;
    }
    unsigned axes = resized_axes(x, y);
    if (linear && axes < 16) each.simple = 2 * ((1U << axes) - 1);
    cost_count(c, x, cost_elements(c, y), each);
}

void cost_rule_grid_sample(struct cost_call *c)
{
    const struct infer_value *grid = cost_in(c, 1);
    unsigned axes = grid && grid->has_rank && grid->rank >= 2 ? (unsigned)grid->rank - 2 : 0;
    struct cost_each each = {2 * ((1U << (axes & 15)) - 1), 0, 0};
    if (cost_text_is(c, "mode", "nearest")) return;
    if (cost_text_is(c, "mode", "cubic") || cost_text_is(c, "mode", "bicubic")) each.simple = CUBIC_SIMPLE;
    cost_count(c, cost_in(c, 0), axes ? out_elements(c) : NULL, each);
}

/* theta [n, d, d + 1] times the homogeneous coordinates of each place. */
void cost_rule_affine_grid(struct cost_call *c)
{
    cost_count_macs(c, cost_in(c, 0), cost_mul(c, out_elements(c), cost_dim(cost_in(c, 0), 2)));
}

/* ==== on quantised numbers: products of integers are int_macs, corrections by zero points integer operations, scaling
 * and rounding simple ones (dequantising takes 2 per element, quantising 3) ==== */

/* Where an operator has what; 0: nowhere, since input 0 is always the first operand. */
struct quantized {
    const char *op;
    unsigned weights, zeros[2], bias;
    bool conv;    /* else a matrix product */
    bool scaled;  /* the result is brought to floats or to a scale of its own */
    bool dynamic; /* the first operand is quantised here */
};

static const struct quantized products[] = {
    {"QLinearConv", 3, {2, 5}, 8, true, true, false},
    {"ConvInteger", 1, {2, 3}, 0, true, false, false},
    {"QLinearMatMul", 3, {2, 5}, 0, false, true, false},
    {"MatMulInteger", 1, {2, 3}, 0, false, false, false},
    {"QGemm", 3, {2, 5}, 6, false, true, false},
    {"DynamicQuantizeMatMul", 1, {0, 3}, 4, false, true, true},
    {"MatMulIntegerToFloat", 1, {4, 5}, 6, false, true, false},
};

static const struct quantized *product_of(const struct onnx_node *n)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        if (strcmp(products[i].op, n->op) == 0) return &products[i];
    }
    return NULL; /* no row points here for another */
}

static bool has_input(const struct cost_call *c, unsigned input)
{
    return input && cost_in(c, input);
}

void cost_rule_product(struct cost_call *c)
{
    const struct quantized *q = product_of(c->node);
    const struct poly *n = out_elements(c);
    if (!q) return;
    cost_count_int_macs(
        c, cost_mul(c, n, q->conv ? taps_of(c, cost_in(c, q->weights)) : inner_size(c, cost_in(c, 0))));
    for (size_t i = 0; i < 2; i++) {
        if (has_input(c, q->zeros[i])) cost_count_integer(c, n);
    }
    if (q->scaled) cost_count_float(c, n, COST_SIMPLE(2));
    if (has_input(c, q->bias)) cost_count(c, cost_in(c, q->bias), n, COST_SIMPLE(1));
    if (!q->dynamic) return;
    cost_count_float(c, cost_elements(c, cost_in(c, 0)), COST_SIMPLE(4)); /* range, then numbers */
    cost_count_integer(c, n);                                             /* and its zero point */
}

/* Weights of a few bits: unpacked and scaled once per call, apart from FLOPs. */
void cost_rule_packed_product(struct cost_call *c)
{
    const struct poly *n = out_elements(c);
    int64_t inner = cost_int(c, "K", 0), outer = cost_int(c, "N", 0);
    bool known = inner > 0 && outer > 0;
    const struct poly *weights = known ? cost_times(c, poly_int(c->s, inner), outer) : NULL;
    int64_t summed = cost_int(c, "transB", 1) ? inner : outer; /* weights are stored [N, K] */
    cost_count_macs(c, cost_in(c, 0), known ? cost_times(c, n, summed) : NULL);
    cost_count_integer(c, cost_times(c, weights, 2));
    if (cost_in(c, 5)) cost_count(c, cost_in(c, 0), n, COST_SIMPLE(1));
}

/* Floats to integers or back, or integers through floats: by element, never counted as integer operations. */
void cost_rule_scaled(struct cost_call *c)
{
    cost_count_float(c, out_elements(c), c->row->each);
}

/* Sums in integers, scaled at the end. */
void cost_rule_scaled_pool(struct cost_call *c)
{
    cost_count_float(c, out_elements(c), c->row->each);
    if (cost_attribute(c, "kernel_shape")) {
        struct op_row one = *c->row;
        const struct op_row *row = c->row;
        one.each = COST_SIMPLE(1);
        c->row = &one;
        cost_rule_pool(c);
        c->row = row;
    } else {
        cost_count_integer(c, cost_elements(c, cost_in(c, 0)));
    }
}
