/* SPDX-License-Identifier: MIT
 * infer_pick.c - rules of operators that pick elements: slices, gathers, splits, ranges, and those whose result is as
 * long as the contents of an input make it. Sizes are clamped as the operators do, also where they are symbols. */
#include <math.h>

#include "model/infer/infer_items.h"

/* Dims that were pushed together may be too many. */
static bool state_dims(struct rule_call *c, const struct rule_dims *d)
{
    return d->known ? rule_state(c, 0, d) : rule_fault(c, "more than %d dimensions", INFER_RANK_MAX);
}

/* ---- Slice ---- */

static const char where_cut[] = "where it is cut is not known before running";

enum { SLICE_FAR = INT32_MAX }; /* exporters write this or more for "to the end" */

struct slice {
    const struct poly *start, *end; /* NULL: unknown */
    int64_t step;
};

/* Is it surely negative, surely not, or can it not be told (-1)? */
static int is_negative(const struct poly *p)
{
    struct poly_range r = poly_range(p);
    if (r.most < 0) return 1;
    return r.least >= 0 ? 0 : -1;
}

/* Where the slice ends, going up, at most at d. May be below 0. */
static const struct poly *end_up(struct poly_space *s, const struct poly *d, const struct poly *end)
{
    int64_t v;
    if (is_negative(end) == 1) return poly_add(s, d, end);
    if (is_negative(end) < 0) return NULL;
    return poly_constant(end, &v) && v >= SLICE_FAR ? d : poly_min(s, end, d);
}

/* How long, with steps of 1. A start beyond the end needs no clamping: the length is then below 0, and so 0. */
static const struct poly *length_up(struct poly_space *s, const struct poly *d, const struct slice *x)
{
    const struct poly *zero = poly_int(s, 0), *end = end_up(s, d, x->end);
    int below = is_negative(x->start);
    if (below < 0) return NULL;
    if (!below) return poly_max(s, zero, poly_sub(s, end, x->start));
    /* end - max(d + start, 0) */
    const struct poly *inside = poly_sub(s, end, poly_add(s, d, x->start));
    return poly_max(s, zero, poly_min(s, inside, end));
}

/* From start down to just above end, which may lie before the first element. */
static const struct poly *length_down(struct poly_space *s, const struct poly *d, const struct slice *x)
{
    const struct poly *last = poly_sub(s, d, poly_int(s, 1)), *from, *to = poly_int(s, -1);
    int64_t end;
    int below = is_negative(x->start), under = is_negative(x->end);
    if (below < 0 || under < 0 || !d) return NULL;
    if (poly_constant(x->end, &end) && end >= SLICE_FAR)
        return NULL; /* to some runtimes "to the other end" */
    from = below ? poly_add(s, d, x->start) : poly_min(s, x->start, last);
    if (poly_range(from).least < -1)
        return NULL; /* a start before the first element: implementations differ */
    if (!under)
        to = poly_min(s, x->end, last);
    else if (!poly_constant(x->end, &end) || end > -SLICE_FAR)
        to = poly_max(s, to, poly_add(s, d, x->end));
    return poly_max(s, poly_int(s, 0), poly_sub(s, from, to));
}

static const struct poly *slice_length(struct rule_call *c, const struct poly *d, const struct slice *x)
{
    int64_t step = x->step < 0 ? -x->step : x->step;
    if (!x->start || !x->end) return NULL;
    const struct poly *n = x->step > 0 ? length_up(c->space, d, x) : length_down(c->space, d, x);
    return step == 1 ? n : poly_div_ceil(c->space, n, poly_int(c->space, step));
}

struct slice_plan {
    struct rule_list starts, ends, axes, steps;
    struct rule_dims in, out;
    struct slice at[INFER_RANK_MAX];
    bool cut[INFER_RANK_MAX];
};

static bool slice_lists(struct rule_call *c, struct slice_plan *p)
{
    bool old = c->node->attributes.n && onnx_attribute(c->node, "starts");
    if (!rule_list(c, old ? "starts" : NULL, 1, &p->starts) ||
        !rule_list(c, old ? "ends" : NULL, 2, &p->ends) || !rule_list(c, old ? "axes" : NULL, 3, &p->axes) ||
        !rule_list(c, NULL, 4, &p->steps))
        return false;
    if (!p->starts.known || !p->ends.known) return true;
    bool same = p->starts.n == p->ends.n && (!p->axes.given || !p->axes.known || p->axes.n == p->starts.n) &&
                (!p->steps.given || !p->steps.known || p->steps.n == p->starts.n);
    return same || rule_fault(c, "starts, ends, axes and steps are not equally long");
}

/* *known false: which axis it cuts, or in which steps, is not known. */
static bool slice_axis(struct rule_call *c, struct slice_plan *p, size_t i, bool *known)
{
    int64_t axis = (int64_t)i, step = 1;
    size_t at;
    *known = !p->axes.given || poly_constant(p->axes.at[i], &axis);
    if (!*known) return true;
    if (!rule_axis(c, axis, p->in.n, &at)) return false;
    bool stepped = !p->steps.given || poly_constant(p->steps.at[i], &step);
    if (step == 0) return rule_fault(c, "a step of 0");
    p->at[at] = (struct slice){p->starts.at[i], p->ends.at[i], step};
    p->cut[at] = true;
    p->out.at[at] = stepped && step > INT64_MIN ? slice_length(c, p->in.at[at], &p->at[at]) : NULL;
    if (!p->out.at[at] && p->in.at[at]) rule_data_dependent(c, 0, "%s", where_cut);
    return true;
}

/* The first element that a cut takes, of constant ones. */
static bool slice_first(const struct slice *x, int64_t size, int64_t *out)
{
    int64_t v;
    if (!poly_constant(x->start, &v)) return false;
    if (v < 0) v += size;
    int64_t top = x->step < 0 ? size - 1 : size;
    if (v > top) v = top;
    *out = v < 0 ? 0 : v;
    return true;
}

/* The elements of the input that are left, by a view of it whose strides are the steps. */
static bool slice_items(struct rule_call *c, const struct slice_plan *p)
{
    const struct infer_value *v = rule_input(c, 0), *out = rule_output(c, 0);
    struct item_view own, view;
    if (!out || !item_view_of(v, &own) || !item_view_of(out, &view)) return true;
    view.offset = 0;
    for (size_t i = 0; i < own.rank; i++) {
        int64_t first = 0;
        view.stride[i] = own.stride[i];
        if (!p->cut[i]) continue;
        if (!slice_first(&p->at[i], own.dims[i], &first)) return true;
        if (__builtin_mul_overflow(p->at[i].step, own.stride[i], &view.stride[i]) ||
            view.stride[i] < -INT32_MAX || view.stride[i] > INT32_MAX)
            view.stride[i] = 0; /* only one element fits such a step */
        view.offset += first * own.stride[i];
    }
    return items_write(c, 0, items_view(c, v, &view));
}

bool shape_slice(struct rule_call *c)
{
    struct slice_plan p = {.starts = {.n = 0}};
    if (!rule_ranked(c, 0, &p.in) || !slice_lists(c, &p)) return false;
    p.out = p.in;
    bool known = p.starts.known && p.ends.known && p.axes.known && p.steps.known;
    for (size_t i = 0; known && i < p.starts.n; i++)
        if (!slice_axis(c, &p, i, &known)) return false;
    if (known) return rule_state(c, 0, &p.out) && slice_items(c, &p);
    rule_data_dependent(c, 0, "%s", where_cut);
    p.out = rule_dims_unknown(p.in.n);
    return rule_state(c, 0, &p.out);
}

/* ---- Split ---- */

/* In equal parts. From version 18 on the last may be smaller; before they must fit. */
static const struct poly *equal_part(struct rule_call *c, const struct poly *all, size_t n, size_t i)
{
    const struct poly *parts = poly_int(c->space, (int64_t)n);
    if (c->opset < 18) return poly_div_floor(c->space, all, parts);
    const struct poly *one = poly_div_ceil(c->space, all, parts);
    if (i + 1 < n) return one;
    return poly_sub(c->space, all, poly_mul(c->space, one, poly_int(c->space, (int64_t)n - 1)));
}

/* Contents of a vector: output i has those from `from` on. */
static bool split_items(struct rule_call *c, size_t i, size_t from)
{
    const struct infer_value *v = rule_input(c, 0), *out = rule_output(c, i);
    struct item_view view;
    if (!out || v->rank != 1 || !item_view_of(out, &view)) return true;
    view.offset = (int64_t)from;
    return items_write(c, i, items_view(c, v, &view));
}

/* The size of each output: listed by an attribute or an input, else in equal parts. */
bool shape_split(struct rule_call *c)
{
    const struct onnx_attribute *listed = onnx_attribute(c->node, "split");
    const struct infer_value *given = rule_input(c, 1);
    struct rule_dims d;
    size_t n = c->node->outputs.n, axis, parts = (size_t)rule_int(c, "num_outputs", (int64_t)n), sizes = n;
    int64_t from = 0, length;
    rule_same_types(c, n, 0);
    if (!rule_ranked(c, 0, &d) || !rule_axis(c, rule_int(c, "axis", 0), d.n, &axis)) return false;
    if (listed || (given && given->ints)) sizes = listed ? listed->ints.n : given->n_ints;
    if (sizes != n) return rule_fault(c, "%zu sizes for %zu outputs", sizes, n);
    const struct poly *all = d.at[axis];
    for (size_t i = 0; i < n; i++) {
        if (listed)
            d.at[axis] = rule_number(c, listed->ints.items[i]);
        else
            d.at[axis] = given ? rule_int_at(c, 1, i) : equal_part(c, all, parts, i);
        if (!rule_state(c, i, &d)) return false;
        if (!d.at[axis]) rule_data_dependent(c, i, "how it is split is not known before running");
        if (!poly_constant(d.at[axis], &length) || length < 0 || from > INFER_INTS_MAX) continue;
        split_items(c, i, (size_t)from);
        from += length < INFER_INTS_MAX ? length : INFER_INTS_MAX;
    }
    return true;
}

/* ---- Gather ---- */

struct gather {
    size_t rows, inner; /* of the data: along the axis, behind it */
};

static struct item gathered(const struct items *data, const struct gather *g, struct item which, size_t k)
{
    int64_t row;
    if (which.kind != ITEM_WHOLE || !poly_constant(which.p, &row)) return item_none();
    if (row < 0) row += (int64_t)g->rows;
    size_t at = (k / g->inner * g->rows + (size_t)row) * g->inner + k % g->inner;
    return row >= 0 && row < (int64_t)g->rows && at < data->n ? data->at[at] : item_none();
}

/* Element [outer, index, inner] of the result is [outer, the row that the index names, inner] of the data. */
static bool gather_items(struct rule_call *c, size_t axis)
{
    const struct infer_value *v = rule_input(c, 0), *out = rule_output(c, 0);
    struct item_view own;
    struct gather g = {1, 1};
    int64_t dims[INFER_RANK_MAX];
    size_t n;
    if (!out || !item_view_of(v, &own) || !items_dims(out, dims, &n) || n == 0) return true;
    g.rows = (size_t)own.dims[axis];
    for (size_t i = axis + 1; i < own.rank; i++) g.inner *= (size_t)own.dims[i];
    struct items data = items_read(c, v), which = items_read(c, rule_input(c, 1));
    if (!data.at || !which.n) return true;
    struct items all = items_new(c, n);
    for (size_t i = 0; i < all.n; i++) {
        size_t inner = i % g.inner, index = i / g.inner % which.n, outer = i / g.inner / which.n;
        all.at[i] = gathered(&data, &g, which.at[index], outer * g.inner + inner);
    }
    return items_write(c, 0, all);
}

/* The dims of the indices stand for the axis of the data. */
static bool gather_shape(struct rule_call *c, const struct rule_dims *data, size_t axis)
{
    struct rule_dims index, out = rule_dims_none();
    if (!rule_ranked(c, 1, &index)) return false;
    rule_push_all(&out, data->at, axis);
    rule_push_all(&out, index.at, index.n);
    rule_push_all(&out, data->at + axis + 1, data->n - axis - 1);
    return state_dims(c, &out);
}

bool shape_gather(struct rule_call *c)
{
    struct rule_dims data;
    size_t axis;
    if (!rule_ranked(c, 0, &data) || !rule_axis(c, rule_int(c, "axis", 0), data.n, &axis)) return false;
    return gather_shape(c, &data, axis) && gather_items(c, axis);
}

/* Rows of a table whose 4-bit (or 2-bit) numbers may be packed in bytes along the last axis. */
bool shape_gather_blocks(struct rule_call *c)
{
    struct rule_dims data;
    size_t axis;
    int64_t bits = rule_int(c, "bits", 4);
    if (!rule_ranked(c, 0, &data) || !rule_axis(c, rule_int(c, "gather_axis", 0), data.n, &axis))
        return false;
    if (rule_input_type(c, 0) == ONNX_UINT8 && bits > 0 && bits <= 8)
        data.at[data.n - 1] = poly_mul(c->space, data.at[data.n - 1], rule_number(c, 8 / bits));
    return gather_shape(c, &data, axis);
}

/* GatherElements and the like: one element for each index. */
bool shape_like_index(struct rule_call *c)
{
    struct rule_dims index = rule_dims_of(rule_input(c, 1));
    return rule_state(c, 0, &index);
}

/* The last axis of the indices names as many axes of the data; those after them are taken whole. */
bool shape_gather_nd(struct rule_call *c)
{
    struct rule_dims data, index;
    int64_t batch = rule_int(c, "batch_dims", 0), depth;
    if (!rule_ranked(c, 0, &data) || !rule_ranked(c, 1, &index)) return false;
    if (!index.n) return rule_fault(c, "indices are a scalar");
    if (!poly_constant(index.at[index.n - 1], &depth))
        return rule_unknown(c, "how many axes the indices name is not known");
    if (batch < 0 || depth < 1 || batch > (int64_t)data.n || depth > (int64_t)data.n - batch)
        return rule_fault(c, "indices of %lld after %lld batch axes for %zu dimensions", (long long)depth,
                          (long long)batch, data.n);
    size_t from = (size_t)(batch + depth);
    index.n--;
    rule_push_all(&index, data.at + from, data.n - from);
    return state_dims(c, &index);
}

/* ---- OneHot, Range ---- */

bool shape_one_hot(struct rule_call *c)
{
    const struct infer_value *depth = rule_input(c, 1);
    struct rule_dims d;
    size_t axis;
    const struct poly *n = depth && depth->n_ints == 1 ? rule_int_at(c, 1, 0) : NULL;
    if (depth && depth->reals && depth->n_ints == 1 && fabs(depth->reals[0]) < INT32_MAX)
        n = rule_number(c, (int64_t)depth->reals[0]);
    if (!rule_ranked(c, 0, &d) || !rule_axis(c, rule_int(c, "axis", -1), d.n + 1, &axis)) return false;
    rule_insert(&d, axis, n);
    if (!n) rule_data_dependent(c, 0, "the depth is not known before running");
    return state_dims(c, &d);
}

struct span {
    struct item start, end, step;
};

static struct item only_item(const struct infer_value *v)
{
    return v && v->n_ints == 1 ? item_at(v, 0) : item_none();
}

static const struct poly *count_whole(struct poly_space *s, const struct span *x)
{
    int64_t step;
    if (x->start.kind != ITEM_WHOLE || x->end.kind != ITEM_WHOLE || x->step.kind != ITEM_WHOLE) return NULL;
    if (!poly_constant(x->step.p, &step) || step == 0) return NULL;
    return poly_max(s, poly_int(s, 0), poly_div_ceil(s, poly_sub(s, x->end.p, x->start.p), x->step.p));
}

/* The difference is taken in the type of the tensor, the quotient in double. */
static const struct poly *count_real(struct poly_space *s, const struct span *x, int type)
{
    double start, end, step;
    if (!item_number(x->start, &start) || !item_number(x->end, &end) || !item_number(x->step, &step) ||
        step == 0)
        return NULL;
    double all = type == ONNX_FLOAT ? (double)((float)end - (float)start) : end - start, n = ceil(all / step);
    if (!(n < (double)INT32_MAX)) return NULL;
    return poly_int(s, n > 0 ? (int64_t)n : 0);
}

static bool range_items(struct rule_call *c, const struct span *x, const struct poly *length)
{
    int64_t n;
    if (!poly_constant(length, &n) || n > INFER_INTS_MAX || x->start.kind != ITEM_WHOLE ||
        x->step.kind != ITEM_WHOLE)
        return true;
    struct items all = items_new(c, (size_t)n);
    const struct poly *at = x->start.p;
    for (size_t i = 0; i < all.n; i++) {
        all.at[i] = item_whole(at);
        at = poly_add(c->space, at, x->step.p);
    }
    return items_write(c, 0, all);
}

bool shape_range(struct rule_call *c)
{
    struct span x = {only_item(rule_input(c, 0)), only_item(rule_input(c, 1)), only_item(rule_input(c, 2))};
    int type = rule_input_type(c, 0);
    const struct poly *n = count_whole(c->space, &x);
    if (!n && item_type_is_float(type)) n = count_real(c->space, &x, type);
    if (!n) rule_data_dependent(c, 0, "how long the range is, is not known before running");
    return rule_shape_is(c, 0, n) && range_items(c, &x, n);
}

/* ---- as long as contents make it ---- */

/* How many items are true; NULL: cannot be told. */
static const struct poly *count_true(struct rule_call *c, const struct infer_value *v, size_t max)
{
    int64_t n = 0;
    if (!v) return NULL;
    if (v->every && item_truth(item_whole(v->every)) == 1) return infer_elements(c->space, v);
    struct items x = items_read(c, v);
    if (!x.at) return NULL;
    for (size_t i = 0; i < x.n && i < max; i++) {
        int yes = item_truth(x.at[i]);
        if (yes < 0) return NULL;
        n += yes;
    }
    return rule_number(c, n);
}

bool shape_non_zero(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    const struct poly *n = count_true(c, v, SIZE_MAX), *axes = NULL;
    if (v && v->has_rank) axes = rule_number(c, v->rank ? (int64_t)v->rank : 1);
    if (!n) rule_data_dependent(c, 0, "how many elements are not 0 is known at run time only");
    return rule_shape_is(c, 0, axes, n);
}

/* Along an axis, or of all elements in a row. */
bool shape_compress(struct rule_call *c)
{
    const struct onnx_attribute *along = onnx_attribute(c->node, "axis");
    struct rule_dims d = rule_dims_unknown(1);
    size_t axis = 0;
    int64_t max;
    if (along && (!rule_ranked(c, 0, &d) || !rule_axis(c, along->i, d.n, &axis))) return false;
    if (!poly_constant(d.at[axis], &max)) max = INT64_MAX;
    d.at[axis] = count_true(c, rule_input(c, 1), max < 0 ? 0 : (size_t)max);
    if (!d.at[axis]) rule_data_dependent(c, 0, "how many elements are kept is known at run time only");
    return rule_state(c, 0, &d);
}

/* The distinct ones; where each is first; which each element is; how often. */
bool shape_unique(struct rule_call *c)
{
    static const char why[] = "how many elements differ is known at run time only";
    const struct onnx_attribute *along = onnx_attribute(c->node, "axis");
    const struct infer_value *v = rule_input(c, 0);
    const struct poly *all = v ? infer_elements(c->space, v) : NULL;
    struct rule_dims d = rule_dims_unknown(1);
    size_t axis = 0;
    for (size_t i = 1; i < 4; i++) rule_type(c, i, ONNX_INT64);
    if (along && rule_ranked(c, 0, &d)) {
        if (!rule_axis(c, along->i, d.n, &axis)) return false;
        all = d.at[axis];
        d.at[axis] = NULL;
    }
    rule_state(c, 0, &d);
    for (size_t i = 0; i < 4; i++) {
        if (i) rule_shape_is(c, i, i == 2 ? all : NULL);
        if (i != 2) rule_data_dependent(c, i, "%s", why);
    }
    return true;
}
