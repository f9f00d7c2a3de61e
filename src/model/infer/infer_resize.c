/* SPDX-License-Identifier: MIT
 * infer_resize.c - rules of shape inference: resizing, sampling at points of a grid, columns to images. Sizes made of
 * floating-point scales are stated only where every runtime rounds them alike. */
#include <math.h>
#include <string.h>

#include "model/infer/infer_items.h"

/* A size times a scale, rounded down. Numbers as runtimes do it, in single precision; formulas only for scales that
 * are whole, or a half, a quarter .. of it, where no rounding of the product can matter. */
static const struct poly *scaled(struct poly_space *s, const struct poly *in, float scale)
{
    enum { PARTS = 64, SCALE_MAX = 4096 };
    int64_t number;
    if (!(scale > 0) || !isfinite(scale)) return NULL;
    if (poly_constant(in, &number)) {
        float product = (float)number * scale;
        return product < 1e15F ? poly_int(s, (int64_t)product) : NULL;
    }
    float times = scale * PARTS;
    if (times != floorf(times) || scale > SCALE_MAX) return NULL;
    const struct poly *product = poly_mul(s, in, poly_int(s, (int64_t)times));
    return poly_div_floor(s, product, poly_int(s, PARTS));
}

/* An inexact product may be a whole number for one runtime and just below it for another. */
static bool doubtful(const struct poly *in, float scale)
{
    int64_t number;
    if (!poly_constant(in, &number)) return false;
    double exact = (double)number * (double)scale;
    return floor(exact) != floor((double)((float)number * scale));
}

struct resize {
    struct rule_dims d;
    size_t axes[INFER_RANK_MAX]; /* those that change */
    size_t n_axes;
    size_t scales; /* input */
};
enum { SIZES = 3 }; /* likewise, where the scales are input 2 */

static bool resize_axes(struct rule_call *c, struct resize *r)
{
    const struct onnx_attribute *a = rule_attribute_of(c, "axes");
    if (!rule_ranked(c, 0, &r->d)) return false;
    r->n_axes = a ? a->ints.n : r->d.n;
    if (r->n_axes > r->d.n) return rule_fault(c, "more axes than dimensions");
    for (size_t i = 0; i < r->n_axes; i++) {
        r->axes[i] = i;
        if (a && !rule_axis(c, a->ints.items[i], r->d.n, &r->axes[i])) return false;
    }
    return true;
}

/* By scales: what the input holds; the first Upsample had an attribute. */
static bool resize_scales(struct rule_call *c, struct resize *r)
{
    const struct onnx_attribute *a = rule_attribute_of(c, "scales");
    const char *mode = rule_text(c, "coordinate_transformation_mode");
    const struct infer_value *v = rule_input(c, r->scales);
    bool listed = a && a->floats.n, known = !mode || strcmp(mode, "tf_crop_and_resize") != 0;
    size_t n = v ? v->n_ints : 0;
    float scales[INFER_RANK_MAX] = {0};
    if (listed) n = a->floats.n;
    known = known && n > 0;
    for (size_t i = 0; known && i < n && i < r->n_axes; i++) {
        double scale = listed ? (double)a->floats.items[i] : 0;
        known = listed || item_number(item_at(v, i), &scale);
        scales[i] = (float)scale;
    }
    if (known && n != r->n_axes) return rule_fault(c, "%zu scales for %zu axes", n, r->n_axes);
    for (size_t i = 0; i < r->n_axes; i++) {
        const struct poly **dim = &r->d.at[r->axes[i]];
        *dim = known && !doubtful(*dim, scales[i]) ? scaled(c->space, *dim, scales[i]) : NULL;
    }
    if (!known && v) rule_data_dependent(c, 0, "the scales are contents of its input '%s'", v->name);
    return rule_state(c, 0, &r->d);
}

/* round(size / in * other); at a half only where size / in is exact in floating point, so that all round it up. */
static const struct poly *in_proportion(struct poly_space *s, int64_t size, int64_t in, int64_t other)
{
    int64_t up;
    if (__builtin_mul_overflow(size, other, &up) || up > INT64_MAX / 4) return NULL;
    bool half = (2 * up) % in == 0 && ((2 * up) / in) % 2 != 0;
    bool exact = (in & (in - 1)) == 0;
    if (half && !exact) return NULL;
    return poly_int(s, (2 * up + in) / (2 * in));
}

/* One scale for all axes, such that no size (or every size) is exceeded. */
static void keep_aspect(struct rule_call *c, struct resize *r, bool smaller)
{
    int64_t best_size = 0, best_in = 0, in[INFER_RANK_MAX];
    for (size_t i = 0; i < r->n_axes; i++) {
        int64_t size;
        bool known = poly_constant(r->d.at[r->axes[i]], &in[i]) && in[i] > 0 &&
                     poly_constant(rule_int_at(c, SIZES, i), &size) && size > 0 && size < INT32_MAX &&
                     in[i] < INT32_MAX;
        if (!known) {
            best_in = 0;
            break;
        }
        if (best_in == 0 || (size * best_in < best_size * in[i]) == smaller) {
            best_size = size;
            best_in = in[i];
        }
    }
    for (size_t i = 0; i < r->n_axes; i++)
        r->d.at[r->axes[i]] = best_in > 0 ? in_proportion(c->space, best_size, best_in, in[i]) : NULL;
}

static bool resize_sizes(struct rule_call *c, struct resize *r)
{
    const char *policy = rule_text(c, "keep_aspect_ratio_policy");
    const struct infer_value *v = rule_input(c, SIZES);
    if (v->ints && v->n_ints != r->n_axes)
        return rule_fault(c, "%zu sizes for %zu axes", v->n_ints, r->n_axes);
    if (!v->ints) rule_data_dependent(c, 0, "the sizes are contents of its input '%s'", v->name);
    if (policy && strcmp(policy, "stretch") != 0) keep_aspect(c, r, !strcmp(policy, "not_larger"));
    for (size_t i = 0; i < r->n_axes && (!policy || !strcmp(policy, "stretch")); i++)
        r->d.at[r->axes[i]] = rule_int_at(c, SIZES, i);
    return rule_state(c, 0, &r->d);
}

/* By sizes where they are given: that input may be left out or be there without elements. */
bool shape_resize(struct rule_call *c)
{
    struct resize r = {.scales = rule_second(c, c->opset < 11 ? 1 : 2)};
    if (!resize_axes(c, &r)) return false;
    bool sized = r.scales == 2 && rule_has_input(c, SIZES) && !poly_is(rule_input_dim(c, SIZES, 0), 0);
    return sized ? resize_sizes(c, &r) : resize_scales(c, &r);
}

/* ---- grids ---- */

bool shape_grid_sample(struct rule_call *c)
{
    struct rule_dims grid, d = rule_dims_none();
    if (!rule_ranked(c, 1, &grid)) return false;
    if (grid.n < 3) return rule_fault(c, "a grid of %zu dimensions", grid.n);
    const struct poly *batch = rule_input_dim(c, 0, 0);
    if (!rule_agree(c, batch, grid.at[0], "the batches of data and grid", &batch)) return false;
    rule_push(&d, batch);
    rule_push(&d, rule_input_dim(c, 0, 1));
    rule_push_all(&d, &grid.at[1], grid.n - 2);
    return rule_state(c, 0, &d);
}

bool shape_affine_grid(struct rule_call *c)
{
    struct rule_dims d = rule_dims_none();
    int64_t n;
    if (!poly_constant(rule_input_dim(c, 1, 0), &n) || n < 4 || n > 5)
        return rule_unknown(c, "how many sizes there are is not known");
    rule_push(&d, rule_int_at(c, 1, 0));
    for (size_t i = 2; i < (size_t)n; i++) rule_push(&d, rule_int_at(c, 1, i));
    rule_push(&d, rule_number(c, n - 2));
    if (!rule_input(c, 1)->ints) rule_data_dependent(c, 0, "its size is the contents of an input");
    return rule_state(c, 0, &d);
}

bool shape_col2im(struct rule_call *c)
{
    struct rule_dims d = rule_dims_none();
    const struct infer_value *block = rule_input(c, 2);
    int64_t n;
    if (!poly_constant(rule_input_dim(c, 1, 0), &n) || n < 1 || n > INFER_RANK_MAX - 2)
        return rule_unknown(c, "how many dimensions the image has is not known");
    const struct poly *one = block && block->ints ? poly_product(c->space, block->ints, block->n_ints) : NULL;
    rule_push(&d, rule_input_dim(c, 0, 0));
    rule_push(&d, rule_part(c, rule_input_dim(c, 0, 1), one));
    for (size_t i = 0; i < (size_t)n; i++) rule_push(&d, rule_int_at(c, 1, i));
    if (!one || !rule_input(c, 1)->ints) rule_data_dependent(c, 0, "its size is the contents of an input");
    return rule_state(c, 0, &d);
}
