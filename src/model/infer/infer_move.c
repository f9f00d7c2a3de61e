/* SPDX-License-Identifier: MIT
 * infer_move.c - rules of operators that put the same elements into another shape or order: Reshape, Transpose, Concat,
 * Pad and the like, and of Shape and Size, which the rest is fed with. Those that pick elements are in infer_pick.c. */
#include "model/infer/infer_items.h"

#include <string.h>

/* ---- shared ---- */

/* Output 0 has the elements of input 0 in the same order, if they are followed. */
static tare_status items_keep(struct rule_call *c)
{
    struct items x = ITEMS_INIT;
    tare_status s = items_read(c, rule_input(c, 0), &x);
    if (s == TARE_OK && x.at) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

tare_status rule_list(struct rule_call *c, const char *attribute, size_t input, struct rule_list *out)
{
    const struct onnx_attribute *a = attribute ? onnx_attribute(c->node, attribute) : NULL;
    const struct infer_value *v = rule_input(c, input);
    bool listed = a && a->kind == ONNX_ATTR_INTS;
    int64_t n = 0;
    *out = (struct rule_list){.given = listed || v};
    if (listed) n = (int64_t)a->ints.n;
    if (listed || !v)
        out->known = true;
    else if (v->ints)
        out->known = (n = (int64_t)v->n_ints) >= 0;
    else
        out->known = v->has_rank && v->rank == 1 && poly_constant(v->dims[0], &n);
    if (n < 0 || n > (int64_t)(sizeof out->at / sizeof out->at[0]))
        return rule_fault(c, "%lld dimensions are more than possible", (long long)n);
    out->n = (size_t)n;
    for (size_t i = 0; i < out->n; i++) {
        if (listed)
            out->at[i] = poly_int(c->space, a->ints.items[i]);
        else if (v->ints)
            out->at[i] = v->ints[i];
    }
    return TARE_OK;
}

/* ---- Shape and Size ---- */

static size_t clamp_axis(int64_t axis, size_t rank)
{
    int64_t r = (int64_t)rank;
    if (axis < 0) axis += r;
    if (axis < 0) return 0;
    return axis > r ? rank : (size_t)axis;
}

tare_status shape_of_shape(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) {
        const struct poly *unknown = NULL;
        return rule_shape(c, 0, &unknown, 1);
    }
    size_t from = clamp_axis(rule_int(c, "start", 0), d.n),
           to = clamp_axis(rule_int(c, "end", (int64_t)d.n), d.n);
    size_t n = to > from ? to - from : 0;
    const struct poly *length = poly_int(c->space, (int64_t)n);
    tare_status s = rule_shape(c, 0, &length, 1);
    return s < 0 ? s : rule_contents(c, 0, d.at + from, n);
}

tare_status shape_of_size(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    tare_status s = rule_shape(c, 0, NULL, 0);
    const struct poly *n = v ? infer_elements(c->space, v) : NULL;
    return s < 0 || !n ? s : rule_contents(c, 0, &n, 1);
}

/* ---- Squeeze and Unsqueeze ---- */

/* Marks axes 0 .. rank-1; *known false: they are not known before running. */
static tare_status mark_axes(struct rule_call *c, size_t rank, bool *marks, bool *known)
{
    const int64_t *axes;
    size_t n, at;
    *known = rule_ints(c, "axes", 1, &axes, &n);
    memset(marks, 0, rank * sizeof *marks);
    for (size_t i = 0; *known && i < n; i++) {
        tare_status s = rule_axis(c, axes[i], rank, &at);
        if (s < 0) return s;
        marks[at] = true;
    }
    return TARE_OK;
}

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

tare_status shape_squeeze(struct rule_call *c)
{
    struct rule_dims in, out = {.known = true};
    bool marks[INFER_RANK_MAX], known;
    int64_t v;
    if (!rule_ranked(c, 0, &in)) return TARE_OK;
    tare_status s = mark_axes(c, in.n, marks, &known);
    if (s < 0) return s;
    if (!known && !rule_has_input(c, 1)) known = mark_ones(&in, marks);
    if (!known) {
        rule_unknown(c, "which dimensions are 1 is not known before running");
        return TARE_OK;
    }
    for (size_t i = 0; i < in.n; i++) {
        if (!marks[i]) out.at[out.n++] = in.at[i];
        if (marks[i] && poly_constant(in.at[i], &v) && v != 1)
            return rule_fault(c, "dimension %zu is %lld and cannot be squeezed", i, (long long)v);
    }
    s = rule_shape(c, 0, out.at, out.n);
    return s < 0 ? s : items_keep(c);
}

tare_status shape_unsqueeze(struct rule_call *c)
{
    struct rule_dims in, out = {.known = true};
    bool marks[INFER_RANK_MAX], known;
    const int64_t *axes;
    size_t n, at = 0, new_ones = 0;
    if (!rule_ranked(c, 0, &in)) return TARE_OK;
    if (!rule_ints(c, "axes", 1, &axes, &n)) {
        rule_unknown(c, "the new axes are not known before running");
        return TARE_OK;
    }
    if (in.n + n > INFER_RANK_MAX) return rule_fault(c, "more than %d dimensions", INFER_RANK_MAX);
    tare_status s = mark_axes(c, in.n + n, marks, &known);
    if (s < 0) return s;
    for (size_t i = 0; i < in.n + n; i++) new_ones += marks[i];
    if (new_ones != n) return rule_fault(c, "an axis is given twice");
    for (out.n = 0; out.n < in.n + n; out.n++)
        out.at[out.n] = marks[out.n] ? poly_int(c->space, 1) : in.at[at++];
    s = rule_shape(c, 0, out.at, out.n);
    return s < 0 ? s : items_keep(c);
}

/* ---- Transpose ---- */

static tare_status transpose_items(struct rule_call *c, const size_t *from)
{
    const struct infer_value *v = rule_input(c, 0);
    struct item_view own, view;
    if (!item_view_of(v, &own)) return TARE_OK;
    view = own;
    for (size_t i = 0; i < own.rank; i++) {
        view.dims[i] = own.dims[from[i]];
        view.stride[i] = own.stride[from[i]];
    }
    return items_write_view(c, v, &view);
}

tare_status shape_transpose(struct rule_call *c)
{
    struct rule_dims in, out;
    const struct onnx_attribute *perm = onnx_attribute(c->node, "perm");
    size_t from[INFER_RANK_MAX] = {0};
    bool used[INFER_RANK_MAX] = {false};
    if (!rule_ranked(c, 0, &in)) return TARE_OK;
    if (perm && perm->ints.n != in.n)
        return rule_fault(c, "perm has %zu axes, the input %zu", perm->ints.n, in.n);
    out = in;
    for (size_t i = 0; i < in.n; i++) {
        int64_t axis = perm ? perm->ints.items[i] : (int64_t)(in.n - 1 - i);
        tare_status s = rule_axis(c, axis, in.n, &from[i]);
        if (s < 0) return s;
        if (used[from[i]]) return rule_fault(c, "perm names axis %zu twice", from[i]);
        used[from[i]] = true;
        out.at[i] = in.at[from[i]];
    }
    tare_status s = rule_shape(c, 0, out.at, out.n);
    return s < 0 ? s : transpose_items(c, from);
}

/* ---- Concat ---- */

static bool is_empty(const struct rule_dims *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (poly_is(d->at[i], 0)) return true;
    return false;
}

/* Two inputs must agree beside the axis: the one that says more. An empty input that does not agree is skipped by some
 * runtimes, so nothing is sure then. */
static tare_status join_dims(struct rule_call *c, struct rule_dims *all, const struct rule_dims *more,
                             size_t axis)
{
    bool empty = is_empty(all) || is_empty(more), skipped = false;
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
    return TARE_OK;
}

static tare_status concat_items(struct rule_call *c, size_t axis)
{
    const struct infer_value *out = rule_output(c, 0);
    int64_t dims[INFER_RANK_MAX];
    struct items all = ITEMS_INIT;
    size_t n, at = 0;
    if (axis || !out || !items_dims(out, dims, &n)) return TARE_OK;
    tare_status s = items_new(c, n, &all);
    for (size_t i = 0; s == TARE_OK && i < c->node->inputs.n; i++) {
        const struct infer_value *v = rule_input(c, i);
        struct items part = ITEMS_INIT;
        size_t own = 0;
        if (!v || !items_dims(v, dims, &own)) break;
        s = items_read(c, v, &part);
        for (size_t k = 0; k < part.n && at + k < n; k++) all.at[at + k] = part.at[k];
        at += own;
        items_release(&part);
    }
    if (s == TARE_OK && at == n) s = items_write(c, 0, &all);
    items_release(&all);
    return s;
}

static tare_status concat_dims(struct rule_call *c, struct rule_dims *all, size_t *axis)
{
    bool complete = true;
    for (size_t i = 0; i < c->node->inputs.n; i++) {
        struct rule_dims more = rule_dims_of(rule_input(c, i));
        complete &= more.known;
        if (!more.known) continue;
        if (!all->known) {
            *all = more;
            tare_status s = rule_axis(c, rule_int(c, "axis", c->opset < 4 ? 1 : 0), more.n, axis);
            if (s < 0) return s;
            continue;
        }
        if (more.n != all->n) return rule_fault(c, "inputs have %zu and %zu dimensions", all->n, more.n);
        tare_status s = join_dims(c, all, &more, *axis);
        if (s < 0) return s;
    }
    if (!complete && all->known) all->at[*axis] = NULL;
    return TARE_OK;
}

tare_status shape_concat(struct rule_call *c)
{
    struct rule_dims all = {.known = false};
    size_t axis = 0;
    for (size_t i = 0; i < c->node->inputs.n; i++) rule_type(c, 0, rule_input_type(c, i));
    tare_status s = concat_dims(c, &all, &axis);
    if (s == TARE_OK && all.known) s = rule_shape(c, 0, all.at, all.n);
    return s < 0 || !all.known ? s : concat_items(c, axis);
}

/* ---- Expand, Tile, Pad ---- */

tare_status shape_expand(struct rule_call *c)
{
    struct rule_dims in = rule_dims_of(rule_input(c, 0)), want = {.known = false};
    struct rule_list shape;
    struct items x = ITEMS_INIT;
    tare_status s = rule_list(c, "shape", 1, &shape);
    if (s < 0) return s;
    want.known = shape.known && shape.n <= INFER_RANK_MAX;
    for (want.n = 0; want.known && want.n < shape.n; want.n++) want.at[want.n] = shape.at[want.n];
    s = rule_broadcast(c, &in, &want, &want);
    if (s < 0) return s;
    if (!rule_input(c, 1) || !rule_input(c, 1)->ints)
        rule_data_dependent(c, 0, "the new shape is not known before running");
    s = rule_state(c, 0, &want);
    if (s == TARE_OK) s = items_spread(c, rule_input(c, 0), &x);
    if (s == TARE_OK && x.at) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

static tare_status tile_items(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    struct item_view own;
    int64_t n;
    if (!rule_output(c, 0) || v->rank != 1 || !item_view_of(v, &own)) return TARE_OK;
    if (!poly_constant(rule_output(c, 0)->dims[0], &n) || n < 0 || own.dims[0] < 1) return TARE_OK;
    struct item_view view = {.rank = 2, .dims = {n / own.dims[0], own.dims[0]}, .stride = {0, 1}};
    return items_write_view(c, v, &view);
}

tare_status shape_tile(struct rule_call *c)
{
    struct rule_dims d;
    struct rule_list times;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = rule_list(c, NULL, 1, &times);
    if (s < 0) return s;
    if (times.known && times.n != d.n) return rule_fault(c, "%zu repeats for %zu dimensions", times.n, d.n);
    if (!rule_input(c, 1) || !rule_input(c, 1)->ints)
        rule_data_dependent(c, 0, "how often it is repeated is not known before running");
    for (size_t i = 0; i < d.n; i++) d.at[i] = poly_mul(c->space, d.at[i], times.known ? times.at[i] : NULL);
    s = rule_shape(c, 0, d.at, d.n);
    return s < 0 ? s : tile_items(c);
}

tare_status shape_pad(struct rule_call *c)
{
    struct rule_dims d;
    struct rule_list pads;
    const int64_t *axes = NULL;
    size_t n_axes, axis;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = rule_list(c, onnx_attribute(c->node, "pads") ? "pads" : "paddings", 1, &pads);
    if (s < 0) return s;
    bool some = rule_has_input(c, 3), sure = !some || rule_ints(c, NULL, 3, &axes, &n_axes);
    if (!some) n_axes = d.n;
    if (!pads.known || !sure) {
        struct rule_dims none = {.known = true, .n = d.n};
        rule_data_dependent(c, 0, "how much is padded is not known before running");
        return rule_shape(c, 0, none.at, none.n);
    }
    if (pads.n != 2 * n_axes) return rule_fault(c, "%zu pads for %zu dimensions", pads.n, n_axes);
    for (size_t i = 0; i < n_axes; i++) {
        if ((s = rule_axis(c, axes ? axes[i] : (int64_t)i, d.n, &axis)) < 0) return s;
        const struct poly *by = poly_add(c->space, pads.at[i], pads.at[i + n_axes]);
        if (!by) rule_data_dependent(c, 0, "how much is padded is not known before running");
        d.at[axis] = poly_add(c->space, d.at[axis], by);
    }
    return rule_shape(c, 0, d.at, d.n);
}

/* ---- blocks, crops ---- */

/* Squares of places become channels, or the other way round. */
static tare_status move_blocks(struct rule_call *c, bool to_channels)
{
    struct poly_space *p = c->space;
    struct rule_dims d;
    int64_t size = rule_int(c, "blocksize", 0);
    if (size < 1 || size > INT32_MAX) return rule_fault(c, "blocksize %lld is not possible", (long long)size);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    if (d.n != 4) return rule_fault(c, "input has %zu dimensions, not 4", d.n);
    const struct poly *side = poly_int(p, size), *area = poly_mul(p, side, side);
    d.at[1] = to_channels ? poly_mul(p, d.at[1], area) : poly_div_floor(p, d.at[1], area);
    for (size_t i = 2; i < 4; i++)
        d.at[i] = to_channels ? poly_div_floor(p, d.at[i], side) : poly_mul(p, d.at[i], side);
    return rule_shape(c, 0, d.at, d.n);
}

tare_status shape_depth_to_space(struct rule_call *c)
{
    return move_blocks(c, false);
}

tare_status shape_space_to_depth(struct rule_call *c)
{
    return move_blocks(c, true);
}

tare_status shape_center_crop_pad(struct rule_call *c)
{
    const struct onnx_attribute *axes = onnx_attribute(c->node, "axes");
    struct rule_dims d;
    struct rule_list want;
    size_t axis;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = rule_list(c, NULL, 1, &want);
    size_t n = axes ? axes->ints.n : d.n;
    if (s < 0) return s;
    if (want.known && want.n != n) return rule_fault(c, "%zu sizes for %zu axes", want.n, n);
    for (size_t i = 0; i < n; i++) {
        if ((s = rule_axis(c, axes ? axes->ints.items[i] : (int64_t)i, d.n, &axis)) < 0) return s;
        d.at[axis] = want.known ? want.at[i] : NULL;
        if (!d.at[axis]) rule_data_dependent(c, 0, "the new size is not known before running");
    }
    return rule_shape(c, 0, d.at, d.n);
}

/* ==== Reshape and Flatten ==== */

struct reshape {
    struct rule_dims in, out;
    const struct poly *rest[INFER_RANK_MAX]; /* of the input: dims that were not copied */
    bool copied[INFER_RANK_MAX];
    size_t open; /* the one dimension that follows from the others; SIZE_MAX: none */
    size_t n_open;
};

/* A dimension that is not said: -1, not known, or a size that might come out as -1. */
static void leave_open(struct reshape *r, size_t i)
{
    r->out.at[i] = NULL;
    r->open = i;
    r->n_open++;
}

static tare_status take_dim(struct rule_call *c, struct reshape *r, const struct poly *want, size_t i)
{
    int64_t v;
    bool sure = poly_constant(want, &v);
    r->out.at[i] = want;
    if (sure ? v == -1 : poly_range(want).least < 0) {
        leave_open(r, i);
        return TARE_OK;
    }
    if (sure && v < -1) return rule_fault(c, "dimension %zu cannot be %lld", i, (long long)v);
    if (!poly_is(want, 0) || rule_int(c, "allowzero", 0)) return TARE_OK;
    if (r->in.known && i >= r->in.n)
        return rule_fault(c, "dimension %zu is to be copied but is not there", i);
    r->out.at[i] = r->in.known ? r->in.at[i] : NULL;
    r->copied[i] = true;
    return TARE_OK;
}

/* What is left for the open dimension: all elements over those of the others. Copied ones cancel, known or not. */
static const struct poly *left_over(struct rule_call *c, const struct reshape *r)
{
    const struct poly *in = poly_int(c->space, 1), *out = in;
    if (!r->in.known) return NULL;
    for (size_t i = 0; i < r->in.n; i++)
        if (!r->copied[i]) in = poly_mul(c->space, in, r->in.at[i]);
    for (size_t i = 0; i < r->out.n; i++)
        if (!r->copied[i] && i != r->open) out = poly_mul(c->space, out, r->out.at[i]);
    return poly_div_floor(c->space, in, out);
}

static tare_status check_elements(struct rule_call *c, const struct reshape *r)
{
    int64_t in, out;
    if (!r->in.known) return TARE_OK;
    const struct poly *had = poly_product(c->space, r->in.at, r->in.n);
    const struct poly *got = poly_product(c->space, r->out.at, r->out.n);
    if (!poly_constant(had, &in) || !poly_constant(got, &out) || in == out) return TARE_OK;
    return rule_fault(c, "%lld elements cannot become %lld", (long long)in, (long long)out);
}

tare_status shape_reshape(struct rule_call *c)
{
    struct reshape r = {.in = rule_dims_of(rule_input(c, 0)), .open = SIZE_MAX};
    struct rule_list want;
    tare_status s = rule_list(c, "shape", 1, &want);
    if (s < 0) return s;
    if (!want.known || want.n > INFER_RANK_MAX) {
        rule_data_dependent(c, 0, "the new shape is not known before running");
        return TARE_OK;
    }
    r.out.known = true;
    r.out.n = want.n;
    for (size_t i = 0; s == TARE_OK && i < want.n; i++) s = take_dim(c, &r, want.at[i], i);
    if (s == TARE_OK && r.n_open == 1) r.out.at[r.open] = left_over(c, &r);
    if (s == TARE_OK) s = check_elements(c, &r);
    if (s == TARE_OK) s = rule_shape(c, 0, r.out.at, r.out.n);
    if (r.n_open > 1) rule_data_dependent(c, 0, "the new shape is not wholly known before running");
    return s < 0 ? s : items_keep(c);
}

tare_status shape_flatten(struct rule_call *c)
{
    struct rule_dims in;
    int64_t axis = rule_int(c, "axis", 1);
    if (!rule_ranked(c, 0, &in)) {
        struct rule_dims two = {.known = true, .n = 2};
        return rule_shape(c, 0, two.at, 2);
    }
    if (axis < 0) axis += (int64_t)in.n;
    if (axis < 0 || axis > (int64_t)in.n) return rule_fault(c, "axis %lld does not exist", (long long)axis);
    const struct poly *dims[2] = {poly_product(c->space, in.at, (size_t)axis),
                                  poly_product(c->space, in.at + axis, in.n - (size_t)axis)};
    tare_status s = rule_shape(c, 0, dims, 2);
    return s < 0 ? s : items_keep(c);
}
