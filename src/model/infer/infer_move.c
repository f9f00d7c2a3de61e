/* SPDX-License-Identifier: MIT
 * infer_move.c - rules of operators that put the same elements into another shape or order: Reshape, Transpose, Concat,
 * Pad and the like, and of Shape and Size, which the rest is fed with. Those that pick elements are in infer_pick.c. */
#include "model/infer/infer_items.h"

/* ---- Shape and Size ---- */

static size_t clamp_axis(int64_t axis, size_t rank)
{
    int64_t r = (int64_t)rank;
    if (axis < 0) axis += r;
    if (axis < 0) return 0;
    return axis > r ? rank : (size_t)axis;
}

bool shape_of_shape(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return rule_shape_is(c, 0, NULL);
    size_t from = clamp_axis(rule_int(c, "start", 0), d.n),
           to = clamp_axis(rule_int(c, "end", (int64_t)d.n), d.n);
    size_t n = to > from ? to - from : 0;
    return rule_shape_is(c, 0, rule_number(c, (int64_t)n)) && rule_contents(c, 0, d.at + from, n);
}

bool shape_of_size(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    const struct poly *n = v ? infer_elements(c->space, v) : NULL;
    return rule_scalar(c, 0) && n && rule_contents(c, 0, &n, 1);
}

/* ---- Squeeze and Unsqueeze ---- */

/* Without axes all that are 1 go, which must be known of each. */
static bool mark_ones(const struct rule_dims *in, bool *marks)
{
    int64_t v;
    for (size_t i = 0; i < in->n; i++) {
        if (!poly_constant(in->at[i], &v) && poly_range(in->at[i]).least < 2) return false;
        marks[i] = poly_is(in->at[i], 1);
    }
    return true;
}

/* The axes that go must be 1 where they are numbers. */
bool shape_squeeze(struct rule_call *c)
{
    struct rule_dims in, out = rule_dims_none();
    struct rule_list axes;
    bool marks[INFER_RANK_MAX], known;
    int64_t v;
    if (!rule_ranked(c, 0, &in) || !rule_list(c, "axes", 1, &axes)) return false;
    if (!rule_mark_axes(c, &axes, in.n, marks, &known)) return false;
    if (!axes.given) known = mark_ones(&in, marks);
    if (!known) return rule_unknown(c, "which dimensions are 1 is not known before running");
    for (size_t i = 0; i < in.n; i++) {
        if (!marks[i]) rule_push(&out, in.at[i]);
        if (marks[i] && poly_constant(in.at[i], &v) && v != 1)
            return rule_fault(c, "dimension %zu is %lld and cannot be squeezed", i, (long long)v);
    }
    return rule_state(c, 0, &out) && items_keep(c);
}

/* The new axes count among all of the result. */
bool shape_unsqueeze(struct rule_call *c)
{
    struct rule_dims in, out = rule_dims_none();
    struct rule_list axes;
    bool marks[INFER_RANK_MAX], known;
    size_t at = 0, new_ones = 0;
    if (!rule_ranked(c, 0, &in) || !rule_list(c, "axes", 1, &axes)) return false;
    size_t rank = in.n + axes.n;
    if (rank > INFER_RANK_MAX) return rule_fault(c, "more than %d dimensions", INFER_RANK_MAX);
    if (!rule_mark_axes(c, &axes, rank, marks, &known)) return false;
    if (!known) return rule_unknown(c, "the new axes are not known before running");
    for (size_t i = 0; i < rank; i++) new_ones += marks[i];
    if (new_ones != axes.n) return rule_fault(c, "an axis is given twice");
    for (size_t i = 0; i < rank; i++) rule_push(&out, marks[i] ? rule_number(c, 1) : in.at[at++]);
    return rule_state(c, 0, &out) && items_keep(c);
}

/* ---- Transpose ---- */

static bool transpose_items(struct rule_call *c, const size_t *from)
{
    const struct infer_value *v = rule_input(c, 0);
    struct item_view own, view;
    if (!item_view_of(v, &own)) return true;
    view = own;
    for (size_t i = 0; i < own.rank; i++) {
        view.dims[i] = own.dims[from[i]];
        view.stride[i] = own.stride[from[i]];
    }
    return items_write(c, 0, items_view(c, v, &view));
}

/* Without perm the axes come in reverse. */
bool shape_transpose(struct rule_call *c)
{
    struct rule_dims in, out;
    const struct onnx_attribute *perm = onnx_attribute(c->node, "perm");
    size_t from[INFER_RANK_MAX] = {0};
    bool used[INFER_RANK_MAX] = {false};
    if (!rule_ranked(c, 0, &in)) return false;
    if (perm && perm->ints.n != in.n)
        return rule_fault(c, "perm has %zu axes, the input %zu", perm->ints.n, in.n);
    out = in;
    for (size_t i = 0; i < in.n; i++) {
        int64_t axis = perm ? perm->ints.items[i] : (int64_t)(in.n - 1 - i);
        if (!rule_axis(c, axis, in.n, &from[i])) return false;
        if (used[from[i]]) return rule_fault(c, "perm names axis %zu twice", from[i]);
        used[from[i]] = true;
        out.at[i] = in.at[from[i]];
    }
    return rule_state(c, 0, &out) && transpose_items(c, from);
}

/* ---- Concat ---- */

static bool is_empty(const struct rule_dims *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (poly_is(d->at[i], 0)) return true;
    return false;
}

/* The two must agree beside the axis: the one that says more. An empty input that does not agree is skipped by some
 * runtimes, so nothing is sure then. */
bool rule_concat(struct rule_call *c, struct rule_dims *all, const struct rule_dims *more, size_t axis)
{
    bool empty = is_empty(all) || is_empty(more), skipped = false;
    if (more->n != all->n) return rule_fault(c, "inputs have %zu and %zu dimensions", all->n, more->n);
    for (size_t i = 0; i < all->n; i++) {
        int64_t a, b;
        if (i == axis || all->at[i] == more->at[i]) continue;
        bool first = poly_constant(all->at[i], &a), second = poly_constant(more->at[i], &b);
        skipped |= empty;
        if (empty)
            all->at[i] = NULL;
        else if (first && second)
            return rule_fault(c, "dimension %zu is %lld in one input and %lld in another", i, (long long)a,
                              (long long)b);
        else if (!all->at[i] || second)
            all->at[i] = more->at[i];
    }
    all->at[axis] = skipped ? NULL : poly_add(c->space, all->at[axis], more->at[axis]);
    return true;
}

/* Along the first axis contents simply follow each other; those of an input that are not followed are none. */
static bool concat_items(struct rule_call *c)
{
    const struct infer_value *out = rule_output(c, 0);
    int64_t dims[INFER_RANK_MAX];
    size_t n, at = 0, own;
    if (!out || !items_dims(out, dims, &n)) return true;
    struct items all = items_new(c, n);
    for (size_t i = 0; all.at && i < c->node->inputs.n; i++) {
        const struct infer_value *v = rule_input(c, i);
        if (!v || !items_dims(v, dims, &own)) return true;
        struct items part = items_read(c, v);
        for (size_t k = 0; k < part.n && at + k < n; k++) all.at[at + k] = part.at[k];
        at += own;
    }
    return at != n || items_write(c, 0, all);
}

/* Of QLinearConcat the inputs come in threes, with scale and zero point, after those of the result. */
bool shape_concat(struct rule_call *c)
{
    struct rule_dims all = {.known = false};
    size_t axis = 0, first = rule_second(c, 0), step = first ? 3 : 1;
    bool complete = true;
    if (!c->row->type.input) rule_type(c, 0, rule_first_type(c, 0));
    for (size_t i = first; i < c->node->inputs.n; i += step) {
        struct rule_dims more = rule_dims_of(rule_input(c, i));
        complete &= more.known;
        if (all.known && more.known && !rule_concat(c, &all, &more, axis)) return false;
        if (all.known || !more.known) continue;
        all = more;
        if (!rule_axis(c, rule_int(c, "axis", c->opset < 4 && !first ? 1 : 0), more.n, &axis)) return false;
    }
    if (!all.known) return false;
    if (!complete) all.at[axis] = NULL;
    return rule_state(c, 0, &all) && (first || axis || concat_items(c));
}

/* ---- Expand, Tile, Pad ---- */

bool shape_expand(struct rule_call *c)
{
    struct rule_dims in = rule_dims_of(rule_input(c, 0)), want = rule_dims_none();
    struct rule_list shape;
    if (!rule_list(c, "shape", 1, &shape)) return false;
    rule_push_all(&want, shape.at, shape.n);
    want.known &= shape.known;
    if (!rule_broadcast(c, &in, &want, &want)) return false;
    if (!rule_input(c, 1) || !rule_input(c, 1)->ints)
        rule_data_dependent(c, 0, "the new shape is not known before running");
    return rule_state(c, 0, &want) && items_write(c, 0, items_spread(c, rule_input(c, 0)));
}

static bool tile_items(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    struct item_view own;
    int64_t n;
    if (!rule_output(c, 0) || v->rank != 1 || !item_view_of(v, &own)) return true;
    if (!poly_constant(rule_output(c, 0)->dims[0], &n) || n < 0 || own.dims[0] < 1) return true;
    struct item_view view = {.rank = 2, .dims = {n / own.dims[0], own.dims[0]}, .stride = {0, 1}};
    return items_write(c, 0, items_view(c, v, &view));
}

bool shape_tile(struct rule_call *c)
{
    struct rule_dims d;
    struct rule_list times;
    if (!rule_ranked(c, 0, &d) || !rule_list(c, NULL, 1, &times)) return false;
    if (times.known && times.n != d.n) return rule_fault(c, "%zu repeats for %zu dimensions", times.n, d.n);
    if (!rule_input(c, 1) || !rule_input(c, 1)->ints)
        rule_data_dependent(c, 0, "how often it is repeated is not known before running");
    for (size_t i = 0; i < d.n; i++) d.at[i] = poly_mul(c->space, d.at[i], times.known ? times.at[i] : NULL);
    return rule_state(c, 0, &d) && tile_items(c);
}

/* Pads before, then pads behind; input 3 may say of which axes. */
bool shape_pad(struct rule_call *c)
{
    static const char why[] = "how much is padded is not known before running";
    struct rule_dims d;
    struct rule_list pads, axes;
    if (!rule_ranked(c, 0, &d)) return false;
    if (!rule_list(c, onnx_attribute(c->node, "pads") ? "pads" : "paddings", 1, &pads)) return false;
    if (!rule_list(c, NULL, 3, &axes)) return false;
    bool known = pads.known && axes.known;
    size_t n = axes.given ? axes.n : d.n;
    if (known && pads.n != 2 * n) return rule_fault(c, "%zu pads for %zu dimensions", pads.n, n);
    for (size_t i = 0; i < n && known; i++) {
        int64_t given = (int64_t)i;
        size_t axis;
        known = !axes.given || poly_constant(axes.at[i], &given);
        if (!known) break;
        if (!rule_axis(c, given, d.n, &axis)) return false;
        const struct poly *by = poly_add(c->space, pads.at[i], pads.at[i + n]);
        if (!by) rule_data_dependent(c, 0, "%s", why);
        d.at[axis] = poly_add(c->space, d.at[axis], by);
    }
    if (!known) {
        rule_data_dependent(c, 0, "%s", why);
        d = rule_dims_unknown(d.n);
    }
    return rule_state(c, 0, &d);
}

/* ---- blocks, crops ---- */

/* Squares of places become channels, or the other way round. */
static bool move_blocks(struct rule_call *c, bool to_channels)
{
    struct poly_space *p = c->space;
    struct rule_dims d;
    int64_t size = rule_int(c, "blocksize", 0);
    if (size < 1 || size > INT32_MAX) return rule_fault(c, "blocksize %lld is not possible", (long long)size);
    if (!rule_ranked_as(c, 0, 4, &d)) return false;
    const struct poly *side = poly_int(p, size), *area = poly_mul(p, side, side);
    d.at[1] = to_channels ? poly_mul(p, d.at[1], area) : poly_div_floor(p, d.at[1], area);
    for (size_t i = 2; i < 4; i++)
        d.at[i] = to_channels ? poly_div_floor(p, d.at[i], side) : poly_mul(p, d.at[i], side);
    return rule_state(c, 0, &d);
}

bool shape_depth_to_space(struct rule_call *c)
{
    return move_blocks(c, false);
}

bool shape_space_to_depth(struct rule_call *c)
{
    return move_blocks(c, true);
}

/* Each of the axes gets the size that is asked for, whether it is cut or padded. */
bool shape_center_crop_pad(struct rule_call *c)
{
    const struct onnx_attribute *axes = onnx_attribute(c->node, "axes");
    struct rule_dims d;
    struct rule_list want;
    size_t axis;
    if (!rule_ranked(c, 0, &d) || !rule_list(c, NULL, 1, &want)) return false;
    size_t n = axes ? axes->ints.n : d.n;
    if (want.known && want.n != n) return rule_fault(c, "%zu sizes for %zu axes", want.n, n);
    for (size_t i = 0; i < n; i++) {
        if (!rule_axis(c, axes ? axes->ints.items[i] : (int64_t)i, d.n, &axis)) return false;
        d.at[axis] = want.known ? want.at[i] : NULL;
        if (!d.at[axis]) rule_data_dependent(c, 0, "the new size is not known before running");
    }
    return rule_state(c, 0, &d);
}

/* ==== Reshape and Flatten ==== */

struct reshape {
    struct rule_dims in, out;
    bool copied[INFER_RANK_MAX];
    size_t open, n_open; /* the dimension that follows from the others, -1 or not known, and how many such */
};

/* What is asked for one dimension: 0 copies that of the input. A size that might come out as -1 is as open as -1. */
static bool take_dim(struct rule_call *c, struct reshape *r, const struct poly *want, size_t i)
{
    int64_t v;
    bool sure = poly_constant(want, &v);
    if (sure ? v == -1 : poly_range(want).least < 0) {
        r->open = i;
        r->n_open++;
        return true;
    }
    r->out.at[i] = want;
    if (sure && v < -1) return rule_fault(c, "dimension %zu cannot be %lld", i, (long long)v);
    if (!poly_is(want, 0) || rule_int(c, "allowzero", 0)) return true;
    if (r->in.known && i >= r->in.n)
        return rule_fault(c, "dimension %zu is to be copied but is not there", i);
    r->out.at[i] = r->in.known ? r->in.at[i] : NULL;
    r->copied[i] = true;
    return true;
}

/* What is left for the open dimension: all elements over those of the others. Copied ones cancel, known or not. */
static const struct poly *left_over(struct rule_call *c, const struct reshape *r)
{
    const struct poly *in = rule_number(c, 1), *out = in;
    if (!r->in.known) return NULL;
    for (size_t i = 0; i < r->in.n; i++)
        if (!r->copied[i]) in = poly_mul(c->space, in, r->in.at[i]);
    for (size_t i = 0; i < r->out.n; i++)
        if (!r->copied[i] && i != r->open) out = poly_mul(c->space, out, r->out.at[i]);
    return poly_div_floor(c->space, in, out);
}

static bool check_elements(struct rule_call *c, const struct reshape *r)
{
    int64_t in, out;
    if (!r->in.known) return true;
    const struct poly *had = poly_product(c->space, r->in.at, r->in.n);
    const struct poly *got = poly_product(c->space, r->out.at, r->out.n);
    if (!poly_constant(had, &in) || !poly_constant(got, &out) || in == out) return true;
    return rule_fault(c, "%lld elements cannot become %lld", (long long)in, (long long)out);
}

bool shape_reshape(struct rule_call *c)
{
    struct reshape r = {.in = rule_dims_of(rule_input(c, 0))};
    struct rule_list want;
    if (!rule_list(c, "shape", 1, &want)) return false;
    if (!want.known || want.n > INFER_RANK_MAX)
        return rule_data_dependent(c, 0, "the new shape is not known before running");
    r.out = rule_dims_unknown(want.n);
    for (size_t i = 0; i < want.n; i++)
        if (!take_dim(c, &r, want.at[i], i)) return false;
    if (r.n_open == 1) r.out.at[r.open] = left_over(c, &r);
    if (!check_elements(c, &r) || !rule_state(c, 0, &r.out)) return false;
    if (r.n_open > 1) rule_data_dependent(c, 0, "the new shape is not wholly known before running");
    return items_keep(c);
}

bool shape_flatten(struct rule_call *c)
{
    struct rule_dims in;
    int64_t axis = rule_int(c, "axis", 1);
    if (!rule_ranked(c, 0, &in)) return rule_shape_is(c, 0, NULL, NULL);
    if (axis < 0) axis += (int64_t)in.n;
    if (axis < 0 || axis > (int64_t)in.n) return rule_fault(c, "axis %lld does not exist", (long long)axis);
    return rule_shape_is(c, 0, poly_product(c->space, in.at, (size_t)axis),
                         poly_product(c->space, in.at + axis, in.n - (size_t)axis)) &&
           items_keep(c);
}
