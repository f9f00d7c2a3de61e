/* SPDX-License-Identifier: MIT
 * tensor_error.c - see tensor.h. One pass, sums in double precision. */
#include "subject/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Float against 8 bits is what a quantised value without its scale is: no distance can be told. */
static bool same_kind(struct tensor_error *e, const struct tensor *a, const struct tensor *b)
{
    bool whole = onnx_type_is_whole(a->type) && onnx_type_is_whole(b->type);
    enum onnx_kind kind = onnx_type_kind(a->type);
    if (whole || (kind == ONNX_KIND_FLOAT && onnx_type_kind(b->type) == kind)) return true;
    snprintf(e->why, sizeof e->why, "%s and %s do not compare", onnx_type_name(a->type),
             onnx_type_name(b->type));
    return false;
}

static bool same_shape(struct tensor_error *e, const struct tensor *a, const struct tensor *b)
{
    char left[64], right[64];
    if (a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0) return true;
    tensor_shape_text(left, sizeof left, a->dims, a->rank);
    tensor_shape_text(right, sizeof right, b->dims, b->rank);
    snprintf(e->why, sizeof e->why, "the shapes are %s and %s", left, right);
    return false;
}

struct sums {
    double aa, bb, ab, diff, max_abs;
    uint64_t odd; /* not finite on one side, or on both but not the same */
};

static void add_pair(struct sums *s, double a, double b)
{
    if (!isfinite(a) || !isfinite(b)) {
        s->odd += !((isnan(a) && isnan(b)) || a == b);
        return;
    }
    s->aa += a * a;
    s->bb += b * b;
    s->ab += a * b;
    s->diff += (a - b) * (a - b);
    if (fabs(a - b) > s->max_abs) s->max_abs = fabs(a - b);
}

static void infinite(struct tensor_error *e)
{
    e->rel_l2 = e->max_abs = INFINITY;
    e->cosine = NAN;
}

/* A reference of zeros has no relative distance: infinite, unless there is none at all. */
void tensor_error_of(struct tensor_error *out, const struct tensor *a, const struct tensor *b)
{
    struct sums s = {0};
    uint64_t n = tensor_elements(a);
    *out = (struct tensor_error){.rel_l2 = NAN, .max_abs = NAN, .cosine = NAN};
    if (!same_kind(out, a, b)) return;
    out->comparable = true;
    if (!same_shape(out, a, b)) {
        infinite(out);
        return;
    }
    for (uint64_t i = 0; i < n; i++) add_pair(&s, tensor_value(a, i), tensor_value(b, i));
    if (s.odd) {
        infinite(out);
        snprintf(out->why, sizeof out->why,
                 "%" PRIu64 " of %" PRIu64 " elements are no finite number on one side", s.odd, n);
        return;
    }
    out->rel_l2 = s.aa > 0 ? sqrt(s.diff / s.aa) : INFINITY;
    if (s.diff == 0) out->rel_l2 = 0;
    out->max_abs = s.max_abs;
    out->cosine = s.aa > 0 && s.bb > 0 ? s.ab / (sqrt(s.aa) * sqrt(s.bb)) : NAN;
}
