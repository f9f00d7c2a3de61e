/* SPDX-License-Identifier: MIT
 * infer_items.c - see infer_items.h: contents in and out of values. */
#include "model/infer/infer_items.h"

#include <string.h>

#include "core/mem.h"
#include "model/infer/infer_engine.h"

struct item item_none(void)
{
    return (struct item){.kind = ITEM_NONE};
}

struct item item_whole(const struct poly *p)
{
    return p ? (struct item){.kind = ITEM_WHOLE, .p = p} : item_none();
}

tare_status items_new(const struct rule_call *c, size_t n, struct items *out)
{
    out->at = mem_new(n, sizeof *out->at);
    out->n = n;
    return out->at ? TARE_OK : engine_nomem(c->engine);
}

void items_release(struct items *x)
{
    mem_free(x->at);
    *x = (struct items)ITEMS_INIT;
}

static struct item item_at(const struct infer_value *v, size_t i)
{
    if (v->ints) return item_whole(v->ints[i]);
    if (v->ratios)
        return v->ratios[i].p ? (struct item){ITEM_RATIO, v->ratios[i].p, v->ratios[i].by, 0} : item_none();
    return (struct item){.kind = ITEM_REAL, .real = v->reals[i]};
}

static bool is_followed(const struct infer_value *v)
{
    return v && (v->ints || v->reals || v->ratios);
}

tare_status items_read(const struct rule_call *c, const struct infer_value *v, struct items *out)
{
    *out = (struct items)ITEMS_INIT;
    if (!is_followed(v)) return TARE_OK;
    tare_status s = items_new(c, v->n_ints, out);
    for (size_t i = 0; s == TARE_OK && i < v->n_ints; i++) out->at[i] = item_at(v, i);
    return s;
}

bool items_dims(const struct infer_value *v, int64_t *dims, size_t *elements)
{
    int64_t n = 1;
    if (!v || !v->has_rank) return false;
    for (size_t i = 0; i < v->rank; i++) {
        if (!poly_constant(v->dims[i], &dims[i]) || dims[i] < 0) return false;
        if (__builtin_mul_overflow(n, dims[i], &n)) return false;
    }
    *elements = (size_t)n;
    return n <= INFER_INTS_MAX;
}

/* ---- out ---- */

struct census {
    size_t of[ITEM_REAL + 1];
    size_t numbers; /* reals, and whole ones that depend on nothing */
};

static bool number_of(const struct item *x, double *out)
{
    int64_t v;
    if (x->kind == ITEM_REAL) *out = x->real;
    if (x->kind == ITEM_REAL) return true;
    if (x->kind != ITEM_WHOLE || !poly_constant(x->p, &v)) return false;
    *out = (double)v;
    return true;
}

static struct census count_items(const struct items *x)
{
    struct census all = {.numbers = 0};
    double number;
    for (size_t i = 0; i < x->n; i++) {
        all.of[x->at[i].kind]++;
        all.numbers += number_of(&x->at[i], &number);
    }
    return all;
}

static tare_status write_reals(struct rule_call *c, size_t output, const struct items *x)
{
    double all[ENGINE_REALS_MAX];
    for (size_t i = 0; i < x->n; i++) number_of(&x->at[i], &all[i]);
    return rule_reals(c, output, all, x->n);
}

static bool ratio_of(struct poly_space *s, const struct item *x, struct infer_ratio *out)
{
    int64_t p, q;
    *out = (struct infer_ratio){x->p, x->kind == ITEM_RATIO ? x->by : 1};
    if (x->kind != ITEM_REAL) return true;
    if (!item_dyadic(x->real, &p, &q)) return false;
    *out = (struct infer_ratio){poly_int(s, p), q};
    return true;
}

static tare_status write_ratios(struct rule_call *c, size_t output, const struct items *x)
{
    struct infer_value *v = rule_output(c, output);
    struct infer_ratio *all = engine_contents(c->engine, x->n, sizeof *all);
    if (!all) return TARE_OK;
    for (size_t i = 0; i < x->n; i++)
        if (!ratio_of(c->space, &x->at[i], &all[i])) return TARE_OK;
    v->ratios = all;
    v->n_ints = x->n;
    return TARE_OK;
}

static tare_status write_ints(struct rule_call *c, size_t output, const struct items *x)
{
    const struct poly **all = mem_new(x->n, sizeof *all);
    if (!all) return engine_nomem(c->engine);
    for (size_t i = 0; i < x->n; i++) all[i] = x->at[i].p;
    tare_status s = rule_contents(c, output, all, x->n);
    mem_free(all);
    return s;
}

tare_status items_write(struct rule_call *c, size_t output, const struct items *x)
{
    struct infer_value *v = rule_output(c, output);
    int64_t dims[INFER_RANK_MAX];
    size_t n;
    if (!v || !x->at || !items_dims(v, dims, &n) || n != x->n) return TARE_OK;
    struct census have = count_items(x);
    if (have.of[ITEM_NONE] == n && n) return TARE_OK;
    if (item_type_is_float(v->type) && have.numbers == n && n <= ENGINE_REALS_MAX)
        return write_reals(c, output, x);
    if (have.of[ITEM_RATIO]) return write_ratios(c, output, x);
    return have.of[ITEM_REAL] ? TARE_OK : write_ints(c, output, x);
}

tare_status items_pick(struct rule_call *c, size_t output, const struct infer_value *from,
                       const size_t *which, size_t n)
{
    struct items x = ITEMS_INIT;
    if (!is_followed(from)) return TARE_OK;
    tare_status s = items_new(c, n, &x);
    for (size_t i = 0; s == TARE_OK && i < n; i++)
        if (which[i] < from->n_ints) x.at[i] = item_at(from, which[i]);
    if (s == TARE_OK) s = items_write(c, output, &x);
    items_release(&x);
    return s;
}

/* ---- views ---- */

bool item_view_of(const struct infer_value *v, struct item_view *out)
{
    size_t n;
    int64_t stride = 1;
    *out = (struct item_view){.rank = v->rank};
    if (!items_dims(v, out->dims, &n)) return false;
    for (size_t i = v->rank; n && i-- > 0;) { /* without elements dims may be of any size */
        out->stride[i] = stride;
        stride *= out->dims[i];
    }
    return true;
}

static int64_t place_of(const struct item_view *view, int64_t i)
{
    int64_t at = view->offset;
    for (size_t k = view->rank; k-- > 0;) {
        at += i % view->dims[k] * view->stride[k];
        i /= view->dims[k];
    }
    return at;
}

static tare_status items_view(const struct rule_call *c, const struct infer_value *v,
                              const struct item_view *view, struct items *out)
{
    int64_t n = 1;
    *out = (struct items)ITEMS_INIT;
    if (!is_followed(v)) return TARE_OK;
    for (size_t k = 0; k < view->rank; k++)
        if (__builtin_mul_overflow(n, view->dims[k], &n) || n > INFER_INTS_MAX) return TARE_OK;
    tare_status s = items_new(c, (size_t)n, out);
    for (int64_t i = 0; s == TARE_OK && i < n; i++) {
        int64_t at = place_of(view, i);
        if (at >= 0 && at < (int64_t)v->n_ints) out->at[i] = item_at(v, (size_t)at);
    }
    return s;
}

tare_status items_write_view(struct rule_call *c, const struct infer_value *v, const struct item_view *view)
{
    struct items x = ITEMS_INIT;
    tare_status s = items_view(c, v, view, &x);
    if (s == TARE_OK && x.at) s = items_write(c, 0, &x);
    items_release(&x);
    return s;
}

tare_status items_spread(const struct rule_call *c, const struct infer_value *v, struct items *out)
{
    const struct infer_value *to = rule_output(c, 0);
    struct item_view own, view;
    *out = (struct items)ITEMS_INIT;
    if (!is_followed(v) || !to || !item_view_of(v, &own) || !item_view_of(to, &view)) return TARE_OK;
    if (own.rank > view.rank) return TARE_OK;
    size_t more = view.rank - own.rank;
    for (size_t k = 0; k < view.rank; k++)
        view.stride[k] = k < more || own.dims[k - more] == 1 ? 0 : own.stride[k - more];
    return items_view(c, v, &view, out);
}
