/* SPDX-License-Identifier: MIT
 * cost_rules_basic.c - cost of operators that go over their elements: element-wise, activations, reductions, norms.
 * Counts per element are in the rows. */
#include <string.h>

#include "model/cost/cost_rule.h"

/* ---- element-wise ---- */

/* Division by what is the same in every run is multiplication by its inverse. */
void cost_rule_div(struct cost_call *c)
{
    const struct infer_value *by = cost_in(c, 1);
    bool once = by && (by->constant || by->folded);
    cost_count_out(c, once ? COST_SIMPLE(1) : (struct cost_each){.division = 1});
}

/* Sum, Min, Max, Mean of any number of inputs. */
void cost_rule_variadic(struct cost_call *c)
{
    unsigned n = (unsigned)c->node->inputs.n;
    cost_count_out(c, (struct cost_each){n ? n - 1 : 0, c->row->each.division, 0});
}

void cost_rule_where(struct cost_call *c)
{
    cost_count(c, cost_in(c, 1), cost_elements(c, cost_out(c, 0)), c->row->each);
}

/* The error function, or the tanh that stands for it. */
void cost_rule_gelu(struct cost_call *c)
{
    const struct cost_each tanh = {7, 0, 1};
    bool fast = cost_text_is(c, "approximate", "tanh");
    cost_count_out(c, fast ? tanh : c->row->each);
}

/* An activation, after a bias where there is one. */
void cost_rule_biased(struct cost_call *c)
{
    struct cost_each each = c->row->each;
    each.simple += cost_in(c, 1) != NULL;
    cost_count_out(c, each);
}

/* One half is multiplied by the activation of the other. */
void cost_rule_bias_split_gelu(struct cost_call *c)
{
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_in(c, 0)), COST_SIMPLE(1));
    cost_count_out(c, (struct cost_each){5, 0, 1});
}

void cost_rule_output(struct cost_call *c)
{
    cost_count(c, cost_out(c, 0), cost_elements(c, cost_out(c, 0)), c->row->each);
}

/* ---- over rows ---- */

static size_t axis_of(const struct cost_call *c, const struct infer_value *v, int64_t otherwise)
{
    int64_t axis = cost_int(c, "axis", otherwise);
    if (axis < 0) axis += (int64_t)v->rank;
    return axis < 0 || (size_t)axis > v->rank ? SIZE_MAX : (size_t)axis;
}

/* Rows that Softmax and its like work on: from opset 13 on along one axis, before it from an axis to the end. */
static const struct poly *softmax_rows(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    if (!x || !x->has_rank) return NULL;
    bool one_axis = c->node->domain[0] || c->at->opset >= 13;
    size_t axis = axis_of(c, x, one_axis ? -1 : 1);
    if (axis == SIZE_MAX) return NULL;
    if (!one_axis) return cost_dims(c, x, 0, axis);
    if (axis >= x->rank) return poly_int(c->s, 1); /* a scalar */
    return cost_mul(c, cost_dims(c, x, 0, axis), cost_dims(c, x, axis + 1, x->rank));
}

void cost_rule_log_softmax(struct cost_call *c)
{
    cost_rule_each(c);
    cost_count(c, cost_in(c, 0), softmax_rows(c), (struct cost_each){.transcendental = 1});
}

void cost_rule_reduce(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    cost_count(c, x, cost_elements(c, x), c->row->each);
}

/* Something more for each sum: a root, a logarithm, a division by the count. */
void cost_rule_reduce_then(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    struct cost_each then = c->row->each;
    then.simple = 0;
    cost_count(c, x, cost_elements(c, x), COST_SIMPLE(c->row->each.simple));
    cost_count_out(c, then);
}

void cost_rule_reduce_log_sum_exp(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    cost_count(c, x, cost_elements(c, x), (struct cost_each){3, 0, 1});
    cost_count_out(c, (struct cost_each){1, 0, 1});
}

/* ---- norms: per element by the row, a root and a division per row ---- */

static void norm_rows(struct cost_call *c, const struct poly *rows)
{
    cost_count_float(c, rows, (struct cost_each){.division = 2});
}

/* The rows of all axes but the last; NULL: unknown. */
static const struct poly *rows_of(const struct cost_call *c, const struct infer_value *v)
{
    return v && v->has_rank && v->rank ? cost_dims(c, v, 0, v->rank - 1) : NULL;
}

void cost_rule_layer_norm(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    struct cost_each each = c->row->each;
    if (each.simple == 7 && !cost_in(c, 2)) each.simple--; /* no bias */
    size_t axis = x && x->has_rank ? axis_of(c, x, -1) : SIZE_MAX;
    cost_count_float(c, cost_elements(c, x), each);
    norm_rows(c, axis == SIZE_MAX ? NULL : cost_dims(c, x, 0, axis));
}

/* The residual is added first, with a bias where there is one. */
static void skip_norm(struct cost_call *c, size_t bias)
{
    const struct infer_value *x = cost_in(c, 0);
    struct cost_each each = c->row->each;
    each.simple += 1 + (cost_in(c, bias) != NULL);
    cost_count_float(c, cost_elements(c, x), each);
    norm_rows(c, rows_of(c, x));
}

void cost_rule_skip_layer_norm(struct cost_call *c)
{
    skip_norm(c, 4);
}

void cost_rule_skip_rms_norm(struct cost_call *c)
{
    skip_norm(c, 3);
}

/* Up to three embeddings are added up, then normalised. */
void cost_rule_embed_layer_norm(struct cost_call *c)
{
    const struct infer_value *y = cost_out(c, 0);
    cost_count_float(c, cost_elements(c, y), COST_SIMPLE(8 + (cost_in(c, 1) != NULL)));
    norm_rows(c, rows_of(c, y));
}

void cost_rule_channel_norm(struct cost_call *c)
{
    const struct infer_value *x = cost_in(c, 0);
    int64_t groups = cost_int(c, "num_groups", cost_int(c, "groups", 0));
    const struct poly *rows = x && x->has_rank && x->rank > 1 ? cost_dims(c, x, 0, 2) : NULL;
    if (groups > 0) rows = cost_times(c, cost_dim(x, 0), groups);
    cost_count_float(c, cost_elements(c, x), c->row->each);
    norm_rows(c, rows);
}

void cost_rule_lrn(struct cost_call *c)
{
    int64_t size = cost_int(c, "size", 0);
    const struct poly *n = cost_elements(c, cost_out(c, 0));
    cost_count(c, cost_in(c, 0), size > 0 ? cost_times(c, n, size) : NULL, COST_SIMPLE(1));
    cost_count_out(c, (struct cost_each){2, 1, 1});
}

/* ---- losses ---- */

/* Of each target the score is picked, negated, weighted; then they are added up, and their weights for the mean. */
void cost_rule_nll_loss(struct cost_call *c)
{
    const struct infer_value *scores = cost_in(c, 0), *weights = cost_in(c, 2);
    bool none = cost_text_is(c, "reduction", "none"), sum = cost_text_is(c, "reduction", "sum");
    struct cost_each each = {1 + (weights != NULL) + !none, 0, 0};
    if (!none && !sum) {
        each.simple += weights != NULL;
        cost_count(c, scores, poly_int(c->s, 1), (struct cost_each){0, 1, 0});
    }
    cost_count(c, scores, cost_elements(c, cost_in(c, 1)), each);
}

/* LogSoftmax over the classes, one logarithm for each target. */
void cost_rule_cross_entropy(struct cost_call *c)
{
    cost_rule_reduce(c);
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_in(c, 1)), (struct cost_each){0, 0, 1});
    cost_rule_nll_loss(c);
}

/* ==== into what is there ==== */

/* Adding, multiplying or comparing into what is there. */
void cost_rule_scatter(struct cost_call *c)
{
    const struct infer_value *updates = cost_in(c, 2);
    if (!cost_attribute(c, "reduction") || cost_text_is(c, "reduction", "none")) return;
    cost_count(c, updates, cost_elements(c, updates), COST_SIMPLE(1));
}

/* Overlapping columns are added up. */
void cost_rule_col2im(struct cost_call *c)
{
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_in(c, 0)), COST_SIMPLE(1));
}
