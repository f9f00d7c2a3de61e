/* SPDX-License-Identifier: MIT
 * infer_const.c - constants of the file as values: their shape, and the contents of small ones. Contents that cannot be
 * read are not followed, which is no error here: the reader has checked the file. */
#include <string.h>

#include "core/mem.h"
#include "model/infer/infer_engine.h"

bool scope_dims(struct infer_engine *e, struct infer_value *v, size_t rank)
{
    if (rank > INFER_RANK_MAX)
        return engine_error(e, "value '%.80s' has %zu dimensions, at most %d are possible", v->name, rank,
                            INFER_RANK_MAX);
    v->dims = engine_get(e, rank, sizeof *v->dims);
    if (!v->dims) return false;
    v->has_rank = true;
    v->rank = rank;
    return true;
}

/* ---- whole numbers ---- */

static bool is_wide(int type)
{
    return type == ONNX_INT64 || type == ONNX_INT32 || type == ONNX_BOOL;
}

/* The file itself bounds what its main graph holds, but bodies and functions may be inferred many times. */
static void *room_for(struct infer_engine *e, size_t n, size_t size)
{
    return e->depth > 1 ? engine_contents(e, n, size) : engine_get(e, n, size);
}

/* No integers, or not to be had: not followed. */
static void read_ints(struct infer_engine *e, struct infer_value *v, const struct onnx_tensor *t)
{
    int64_t few[ENGINE_SMALL_INTS_MAX];
    size_t max = is_wide(t->type) ? INFER_INTS_MAX : ENGINE_SMALL_INTS_MAX, n = (size_t)t->elements;
    if (t->elements > max) return;
    int64_t *all = n <= ENGINE_SMALL_INTS_MAX ? few : mem_new(n, sizeof *all);
    if (!all) {
        engine_nomem(e);
        return;
    }
    if (onnx_tensor_ints(t, all, max, NULL) == TARE_OK) v->ints = room_for(e, n, sizeof *v->ints);
    if (v->ints) v->n_ints = n;
    for (size_t i = 0; v->ints && i < n; i++) v->ints[i] = poly_int(e->space, all[i]);
    if (all != few) mem_free(all);
}

/* ---- floats ---- */

static bool read_floats(const struct onnx_tensor *t, double *out)
{
    const uint8_t *packed = (const uint8_t *)out;
    float f;
    if (t->type == ONNX_DOUBLE) return onnx_tensor_copy(t, out, t->elements * sizeof *out, NULL) == TARE_OK;
    if (onnx_tensor_copy(t, out, t->elements * sizeof f, NULL) < 0) return false;
    for (size_t i = t->elements; i-- > 0;) { /* from the last on: each becomes wider in its place */
        memcpy(&f, packed + i * sizeof f, sizeof f);
        out[i] = (double)f;
    }
    return true;
}

static void read_reals(struct infer_engine *e, struct infer_value *v, const struct onnx_tensor *t)
{
    double few[ENGINE_REALS_MAX];
    size_t n = (size_t)t->elements;
    if (t->elements > ENGINE_REALS_MAX || !read_floats(t, few)) return;
    double *all = room_for(e, n, sizeof *all);
    if (!all) return;
    if (n) memcpy(all, few, n * sizeof *all);
    v->reals = all;
    v->n_ints = n;
}

void scope_contents(struct infer_engine *e, struct infer_value *v, const struct onnx_tensor *t)
{
    if (t->type == ONNX_FLOAT || t->type == ONNX_DOUBLE)
        read_reals(e, v, t);
    else
        read_ints(e, v, t);
}

bool scope_constant(struct infer_engine *e, struct infer_value *v, const struct onnx_tensor *t)
{
    if (!scope_dims(e, v, t->dims.n)) return false;
    for (size_t i = 0; i < v->rank; i++) v->dims[i] = poly_int(e->space, t->dims.items[i]);
    v->type = t->type;
    v->constant = t;
    v->folded = true;
    scope_contents(e, v, t);
    return e->status >= 0;
}
