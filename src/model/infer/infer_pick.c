/* SPDX-License-Identifier: MIT
 * infer_pick.c - rules of operators that pick elements: slices, gathers, splits, ranges, and those whose result is as
 * long as the contents of an input make it. Sizes are clamped as the operators do, also where they are symbols. */
#include <math.h>
#include <string.h>

#include "model/infer/infer_items.h"

/* ---- Slice ---- */

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

static tare_status slice_lists(struct rule_call *c, struct slice_plan *p)
{
    bool old = c->node->attributes.n && onnx_attribute(c->node, "starts");
    tare_status s = rule_list(c, old ? "starts" : NULL, 1, &p->starts);
    if (s == TARE_OK) s = rule_list(c, old ? "ends" : NULL, 2, &p->ends);
    if (s == TARE_OK) s = rule_list(c, old ? "axes" : NULL, 3, &p->axes);
    if (s == TARE_OK) s = rule_list(c, NULL, 4, &p->steps);
    if (s < 0 || !p->starts.known || !p->ends.known) return s;
    bool same = p->starts.n == p->ends.n && (!p->axes.given || !p->axes.known || p->axes.n == p->starts.n) &&
                (!p->steps.given || !p->steps.known || p->steps.n == p->starts.n);
    return same ? TARE_OK : rule_fault(c, "starts, ends, axes and steps are not equally long");
}

/* false: which axis it cuts, or in which steps, is not known. */
static tare_status slice_axis(struct rule_call *c, struct slice_plan *p, size_t i, bool *known)
{
    int64_t axis = (int64_t)i, step = 1;
    size_t at;
    *known = !p->axes.given || poly_constant(p->axes.at[i], &axis);
    if (!*known) return TARE_OK;
    tare_status s = rule_axis(c, axis, p->in.n, &at);
    if (s < 0) return s;
    bool stepped = !p->steps.given || poly_constant(p->steps.at[i], &step);
    if (step == 0) return rule_fault(c, "a step of 0");
    p->at[at] = (struct slice){p->starts.at[i], p->ends.at[i], step};
    p->cut[at] = true;
    p->out.at[at] = stepped && step > INT64_MIN ? slice_length(c, p->in.at[at], &p->at[at]) : NULL;
    if (!p->out.at[at] && p->in.at[at])
        rule_data_dependent(c, 0, "where it is cut is not known before running");
    return TARE_OK;
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

static tare_status slice_items(struct rule_call *c, const struct slice_plan *p)
{
    const struct infer_value *v = rule_input(c, 0), *out = rule_output(c, 0);
    struct item_view own, view;
    if (!out || !item_view_of(v, &own) || !item_view_of(out, &view)) return TARE_OK;
    view.offset = 0;
    for (size_t i = 0; i < own.rank; i++) {
        int64_t first = 0;
        view.stride[i] = own.stride[i];
        if (!p->cut[i]) continue;
        if (!slice_first(&p->at[i], own.dims[i], &first)) return TARE_OK;
        if (__builtin_mul_overflow(p->at[i].step, own.stride[i], &view.stride[i]) ||
            view.stride[i] < -INT32_MAX || view.stride[i] > INT32_MAX)
            view.stride[i] = 0; /* only one element fits such a step */
        view.offset += first * own.stride[i];
    }
    return items_write_view(c, v, &view);
}

tare_status shape_slice(struct rule_call *c)
{
    struct slice_plan p = {.starts = {.n = 0}};
    if (!rule_ranked(c, 0, &p.in)) return TARE_OK;
    p.out = p.in;
    tare_status s = slice_lists(c, &p);
    bool known = p.starts.known && p.ends.known && p.axes.known && p.steps.known;
    for (size_t i = 0; s == TARE_OK && known && i < p.starts.n; i++) s = slice_axis(c, &p, i, &known);
    if (s < 0) return s;
    if (!known) {
        struct rule_dims none = {.known = true, .n = p.in.n};
        rule_data_dependent(c, 0, "where it is cut is not known before running");
        return rule_shape(c, 0, none.at, none.n);
    }
    s = rule_shape(c, 0, p.out.at, p.out.n);
    return s < 0 ? s : slice_items(c, &p);
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

static tare_status split_items(struct rule_call *c, size_t i, size_t from)
{
    const struct infer_value *v = rule_input(c, 0), *out = rule_output(c, i);
    size_t which[INFER_RANK_MAX], n;
    int64_t dims[INFER_RANK_MAX];
    if (!out || v->rank != 1 || !items_dims(out, dims, &n) || n > INFER_RANK_MAX) return TARE_OK;
    for (size_t k = 0; k < n; k++) which[k] = from + k;
    return items_pick(c, i, v, which, n);
}

tare_status shape_split(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0), *given = rule_input(c, 1);
    const struct onnx_attribute *listed = onnx_attribute(c->node, "split");
    struct rule_dims d;
    size_t n = c->node->outputs.n, axis, parts = (size_t)rule_int(c, "num_outputs", (int64_t)n);
    int64_t from = 0, length;
    for (size_t i = 0; i < n; i++) rule_type(c, i, rule_input_type(c, 0));
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = rule_axis(c, rule_int(c, "axis", 0), d.n, &axis);
    if (s < 0) return s;
    if (listed && listed->ints.n != n) return rule_fault(c, "%zu sizes for %zu outputs", listed->ints.n, n);
    if (!listed && given && given->ints && given->n_ints != n)
        return rule_fault(c, "%zu sizes for %zu outputs", given->n_ints, n);
    for (size_t i = 0; i < n; i++) {
        if (listed)
            d.at[axis] = poly_int(c->space, listed->ints.items[i]);
        else if (given)
            d.at[axis] = given->ints ? given->ints[i] : NULL;
        else
            d.at[axis] = equal_part(c, v->dims[axis], parts, i);
        if ((s = rule_shape(c, i, d.at, d.n)) < 0) return s;
        if (!d.at[axis]) rule_data_dependent(c, i, "how it is split is not known before running");
        if (!poly_constant(d.at[axis], &length) || length < 0 || from > INFER_INTS_MAX) continue;
        if ((s = split_items(c, i, (size_t)from)) < 0) return s;
        from += length < INFER_INTS_MAX ? length : INFER_INTS_MAX;
    }
    return TARE_OK;
}

/* ---- Gather ---- */

struct gather {
    size_t outer, rows, inner; /* of the data, around the axis */
};

static struct item gathered(const struct items *data, const struct gather *g, struct item which, size_t k)
{
    int64_t row;
    if (which.kind != ITEM_WHOLE || !poly_constant(which.p, &row)) return item_none();
    if (row < 0) row += (int64_t)g->rows;
    size_t at = (k / g->inner * g->rows + (size_t)row) * g->inner + k % g->inner;
    return row >= 0 && row < (int64_t)g->rows && at < data->n ? data->at[at] : item_none();
}

static void fill_gathered(struct items *all, const struct items *data, const struct items *which,
                          const struct gather *g)
{
    for (size_t i = 0; i < all->n; i++) {
        size_t inner = i % g->inner, index = i / g->inner % which->n, outer = i / g->inner / which->n;
        all->at[i] = gathered(data, g, which->at[index], outer * g->inner + inner);
    }
}

static tare_status gather_items(struct rule_call *c, size_t axis)
{
    const struct infer_value *v = rule_input(c, 0), *out = rule_output(c, 0);
    struct item_view own;
    struct items data = ITEMS_INIT, which = ITEMS_INIT, all = ITEMS_INIT;
    struct gather g = {1, 1, 1};
    int64_t dims[INFER_RANK_MAX];
    size_t n;
    if (!out || !item_view_of(v, &own) || !items_dims(out, dims, &n) || n == 0) return TARE_OK;
    g.rows = (size_t)own.dims[axis];
    for (size_t i = 0; i < axis; i++) g.outer *= (size_t)own.dims[i];
    for (size_t i = axis + 1; i < own.rank; i++) g.inner *= (size_t)own.dims[i];
    tare_status s = items_read(c, v, &data);
    if (s == TARE_OK && data.at) s = items_read(c, rule_input(c, 1), &which);
    if (s == TARE_OK && which.at && which.n) s = items_new(c, n, &all);
    if (s == TARE_OK && all.at) fill_gathered(&all, &data, &which, &g);
    if (s == TARE_OK && all.at) s = items_write(c, 0, &all);
    items_release(&data);
    items_release(&which);
    items_release(&all);
    return s;
}

tare_status shape_gather(struct rule_call *c)
{
    struct rule_dims data, index, out = {.known = true};
    size_t axis;
    if (!rule_ranked(c, 0, &data) || !rule_ranked(c, 1, &index)) return TARE_OK;
    tare_status s = rule_axis(c, rule_int(c, "axis", 0), data.n, &axis);
    if (s < 0) return s;
    if (data.n - 1 + index.n > INFER_RANK_MAX)
        return rule_fault(c, "more than %d dimensions", INFER_RANK_MAX);
    for (size_t i = 0; i < axis; i++) out.at[out.n++] = data.at[i];
    for (size_t i = 0; i < index.n; i++) out.at[out.n++] = index.at[i];
    for (size_t i = axis + 1; i < data.n; i++) out.at[out.n++] = data.at[i];
    s = rule_shape(c, 0, out.at, out.n);
    return s < 0 ? s : gather_items(c, axis);
}

tare_status shape_gather_elements(struct rule_call *c)
{
    struct rule_dims index = rule_dims_of(rule_input(c, 1));
    return rule_state(c, 0, &index);
}

tare_status shape_gather_nd(struct rule_call *c)
{
    struct rule_dims data, index, out = {.known = true};
    int64_t batch = rule_int(c, "batch_dims", 0), depth;
    if (!rule_ranked(c, 0, &data) || !rule_ranked(c, 1, &index)) return TARE_OK;
    if (!index.n) return rule_fault(c, "indices are a scalar");
    if (!poly_constant(index.at[index.n - 1], &depth)) {
        rule_unknown(c, "how many axes the indices name is not known");
        return TARE_OK;
    }
    if (batch < 0 || depth < 1 || batch > (int64_t)data.n || depth > (int64_t)data.n - batch)
        return rule_fault(c, "indices of %lld after %lld batch axes for %zu dimensions", (long long)depth,
                          (long long)batch, data.n);
    size_t from = (size_t)(batch + depth);
    if (index.n - 1 + data.n - from > INFER_RANK_MAX)
        return rule_fault(c, "more than %d dimensions", INFER_RANK_MAX);
    for (size_t i = 0; i + 1 < index.n; i++) out.at[out.n++] = index.at[i];
    for (size_t i = from; i < data.n; i++) out.at[out.n++] = data.at[i];
    return rule_shape(c, 0, out.at, out.n);
}

/* ---- OneHot, Range ---- */

tare_status shape_one_hot(struct rule_call *c)
{
    const struct infer_value *depth = rule_input(c, 1);
    struct rule_dims in, out = {.known = true};
    size_t axis;
    const struct poly *n = depth && depth->ints && depth->n_ints == 1 ? depth->ints[0] : NULL;
    if (depth && depth->reals && depth->n_ints == 1 && fabs(depth->reals[0]) < INT32_MAX)
        n = poly_int(c->space, (int64_t)depth->reals[0]);
    if (!rule_ranked(c, 0, &in)) return TARE_OK;
    if (in.n == INFER_RANK_MAX) return rule_fault(c, "more than %d dimensions", INFER_RANK_MAX);
    tare_status s = rule_axis(c, rule_int(c, "axis", -1), in.n + 1, &axis);
    if (s < 0) return s;
    for (size_t i = 0; i <= in.n; i++) {
        if (i == axis) out.at[out.n++] = n;
        if (i < in.n) out.at[out.n++] = in.at[i];
    }
    if (!n) rule_data_dependent(c, 0, "the depth is not known before running");
    return rule_shape(c, 0, out.at, out.n);
}

struct span {
    struct item start, end, step;
};

static struct item only_item(const struct infer_value *v)
{
    if (!v || v->n_ints != 1) return item_none();
    if (v->reals) return (struct item){.kind = ITEM_REAL, .real = v->reals[0]};
    return v->ints ? item_whole(v->ints[0]) : item_none();
}

static const struct poly *count_whole(struct poly_space *s, const struct span *x)
{
    int64_t step;
    if (x->start.kind != ITEM_WHOLE || x->end.kind != ITEM_WHOLE || x->step.kind != ITEM_WHOLE) return NULL;
    if (!poly_constant(x->step.p, &step) || step == 0) return NULL;
    return poly_max(s, poly_int(s, 0), poly_div_ceil(s, poly_sub(s, x->end.p, x->start.p), x->step.p));
}

static bool real_of(struct item x, double *out)
{
    int64_t v;
    if (x.kind == ITEM_REAL) *out = x.real;
    if (x.kind == ITEM_REAL) return true;
    if (x.kind != ITEM_WHOLE || !poly_constant(x.p, &v)) return false;
    *out = (double)v;
    return true;
}

/* The difference is taken in the type of the tensor, the quotient in double. */
static const struct poly *count_real(struct poly_space *s, const struct span *x, int type)
{
    double start, end, step;
    if (!real_of(x->start, &start) || !real_of(x->end, &end) || !real_of(x->step, &step) || step == 0)
        return NULL;
    double all = type == ONNX_FLOAT ? (double)((float)end - (float)start) : end - start, n = ceil(all / step);
    if (!(n < (double)INT32_MAX)) return NULL;
    return poly_int(s, n > 0 ? (int64_t)n : 0);
}

static tare_status range_items(struct rule_call *c, const struct span *x, const struct poly *length)
{
    struct items all = ITEMS_INIT;
    int64_t n;
    if (!poly_constant(length, &n) || n > INFER_INTS_MAX || x->start.kind != ITEM_WHOLE ||
        x->step.kind != ITEM_WHOLE)
        return TARE_OK;
    tare_status s = items_new(c, (size_t)n, &all);
    const struct poly *at = x->start.p;
    for (int64_t i = 0; s == TARE_OK && i < n; i++) {
        all.at[i] = item_whole(at);
        at = poly_add(c->space, at, x->step.p);
    }
    if (s == TARE_OK) s = items_write(c, 0, &all);
    items_release(&all);
    return s;
}

tare_status shape_range(struct rule_call *c)
{
    struct span x = {only_item(rule_input(c, 0)), only_item(rule_input(c, 1)), only_item(rule_input(c, 2))};
    int type = rule_input_type(c, 0);
    const struct poly *n = count_whole(c->space, &x);
    if (!n && item_type_is_float(type)) n = count_real(c->space, &x, type);
    rule_type(c, 0, type);
    if (!n) rule_data_dependent(c, 0, "how long the range is, is not known before running");
    tare_status s = rule_shape(c, 0, &n, 1);
    return s < 0 ? s : range_items(c, &x, n);
}

/* ---- as long as contents make it ---- */

/* How many items are true; NULL: cannot be told. */
static const struct poly *count_true(struct rule_call *c, const struct infer_value *v, size_t max)
{
    struct items x = ITEMS_INIT;
    int64_t n = 0;
    if (!v) return NULL;
    if (v->every && item_truth(item_whole(v->every)) == 1) return infer_elements(c->space, v);
    if (items_read(c, v, &x) < 0 || !x.at) return NULL;
    for (size_t i = 0; i < x.n && i < max && n >= 0; i++) {
        int yes = item_truth(x.at[i]);
        n = yes < 0 ? -1 : n + yes;
    }
    items_release(&x);
    return n < 0 ? NULL : poly_int(c->space, n);
}

tare_status shape_non_zero(struct rule_call *c)
{
    const struct infer_value *v = rule_input(c, 0);
    const struct poly *dims[2] = {NULL, count_true(c, v, SIZE_MAX)};
    if (v && v->has_rank) dims[0] = poly_int(c->space, v->rank ? (int64_t)v->rank : 1);
    if (!dims[1]) rule_data_dependent(c, 0, "how many elements are not 0 is known at run time only");
    return rule_shape(c, 0, dims, 2);
}

tare_status shape_compress(struct rule_call *c)
{
    const struct onnx_attribute *along = onnx_attribute(c->node, "axis");
    struct rule_dims d = {.known = true, .n = 1};
    size_t axis = 0;
    int64_t max = INT64_MAX;
    if (along) {
        if (!rule_ranked(c, 0, &d)) return TARE_OK;
        tare_status s = rule_axis(c, along->i, d.n, &axis);
        if (s < 0) return s;
        if (!poly_constant(d.at[axis], &max)) max = INT64_MAX;
    }
    d.at[axis] = count_true(c, rule_input(c, 1), max < 0 ? 0 : (size_t)max);
    if (!d.at[axis]) rule_data_dependent(c, 0, "how many elements are kept is known at run time only");
    return rule_shape(c, 0, d.at, d.n);
}

tare_status shape_unique(struct rule_call *c)
{
    static const char why[] = "how many elements differ is known at run time only";
    const struct onnx_attribute *along = onnx_attribute(c->node, "axis");
    const struct infer_value *v = rule_input(c, 0);
    const struct poly *unknown = NULL, *all = v ? infer_elements(c->space, v) : NULL;
    struct rule_dims d = {.known = !along, .n = 1};
    size_t axis = 0;
    tare_status s = TARE_OK;
    for (size_t i = 1; i < 4; i++) rule_type(c, i, ONNX_INT64);
    if (along && rule_ranked(c, 0, &d)) {
        if ((s = rule_axis(c, along->i, d.n, &axis)) < 0) return s;
        all = d.at[axis];
        d.at[axis] = NULL;
    }
    if (d.known) s = rule_shape(c, 0, d.at, d.n);
    rule_data_dependent(c, 0, "%s", why);
    for (size_t i = 1; s == TARE_OK && i < 4; i++) {
        s = rule_shape(c, i, i == 2 ? &all : &unknown, 1);
        if (i != 2) rule_data_dependent(c, i, "%s", why);
    }
    return s;
}
