/* SPDX-License-Identifier: MIT
 * infer_items.c - see infer_items.h: contents in and out of values. */
#include "model/infer/infer_items.h"

#include <string.h>

#include "model/infer/infer_engine.h"

struct item item_none(void)
{
    return (struct item){.kind = ITEM_NONE};
}

struct item item_whole(const struct poly *p)
{
    return p ? (struct item){.kind = ITEM_WHOLE, .p = p} : item_none();
}

struct item item_at(const struct infer_value *v, size_t i)
{
    if (v->ints) return item_whole(v->ints[i]);
    if (v->reals) return (struct item){.kind = ITEM_REAL, .real = v->reals[i]};
    if (!v->ratios || !v->ratios[i].p) return item_none();
    return (struct item){ITEM_RATIO, v->ratios[i].p, v->ratios[i].by, 0};
}

bool item_number(struct item x, double *out)
{
    int64_t v = 0;
    if (x.kind != ITEM_REAL && !(x.kind == ITEM_WHOLE && poly_constant(x.p, &v))) return false;
    *out = x.kind == ITEM_REAL ? x.real : (double)v;
    return true;
}

struct items items_new(struct rule_call *c, size_t n)
{
    struct items x = {engine_scratch(c->engine, n, sizeof *x.at), n};
    return x.at ? x : (struct items){NULL, 0};
}

static bool is_followed(const struct infer_value *v)
{
    return v && (v->ints || v->reals || v->ratios);
}

struct items items_read(struct rule_call *c, const struct infer_value *v)
{
    if (!is_followed(v)) return (struct items){NULL, 0};
    struct items x = items_new(c, v->n_ints);
    for (size_t i = 0; i < x.n; i++) x.at[i] = item_at(v, i);
    return x;
}

struct items items_fill(struct rule_call *c, size_t n, const struct poly *each)
{
    struct items x = items_new(c, n);
    for (size_t i = 0; i < x.n; i++) x.at[i] = item_whole(each);
    return x;
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

static bool ratio_of(struct poly_space *s, const struct item *x, struct infer_ratio *out)
{
    int64_t p, q;
    *out = (struct infer_ratio){x->p, x->kind == ITEM_RATIO ? x->by : 1};
    if (x->kind != ITEM_REAL) return true;
    if (!item_dyadic(x->real, &p, &q)) return false;
    *out = (struct infer_ratio){poly_int(s, p), q};
    return true;
}

static void write_reals(struct rule_call *c, size_t output, struct items x)
{
    double all[ENGINE_REALS_MAX] = {0};
    for (size_t i = 0; i < x.n; i++) item_number(x.at[i], &all[i]);
    const double *kept = rule_keep(c, output, all, x.n, sizeof *all);
    if (kept) rule_output(c, output)->reals = kept;
}

static void write_ratios(struct rule_call *c, size_t output, struct items x)
{
    struct infer_ratio *all = engine_scratch(c->engine, x.n, sizeof *all);
    for (size_t i = 0; i < x.n; i++)
        if (!all || !ratio_of(c->space, &x.at[i], &all[i])) return;
    const struct infer_ratio *kept = rule_keep(c, output, all, x.n, sizeof *all);
    if (kept) rule_output(c, output)->ratios = kept;
}

static void write_ints(struct rule_call *c, size_t output, struct items x)
{
    const struct poly **all = engine_scratch(c->engine, x.n, sizeof *all);
    for (size_t i = 0; all && i < x.n; i++) all[i] = x.at[i].p;
    if (all) rule_contents(c, output, all, x.n);
}

/* How they are kept follows from what they are: numbers of a float type as such, else quotients when there are any,
 * else whole numbers, of which some may be unknown. */
bool items_write(struct rule_call *c, size_t output, struct items x)
{
    struct infer_value *v = rule_output(c, output);
    int64_t dims[INFER_RANK_MAX];
    size_t n, of[ITEM_REAL + 1] = {0}, numbers = 0;
    double number;
    if (!v || !x.at || !items_dims(v, dims, &n) || n != x.n) return true;
    for (size_t i = 0; i < n; i++) {
        of[x.at[i].kind]++;
        numbers += item_number(x.at[i], &number);
    }
    if (of[ITEM_NONE] == n && n) return true;
    if (item_type_is_float(v->type) && numbers == n && n <= ENGINE_REALS_MAX)
        write_reals(c, output, x);
    else if (of[ITEM_RATIO])
        write_ratios(c, output, x);
    else if (!of[ITEM_REAL])
        write_ints(c, output, x);
    return true;
}

bool items_keep(struct rule_call *c)
{
    return items_write(c, 0, items_read(c, rule_input(c, 0)));
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

struct items items_view(struct rule_call *c, const struct infer_value *v, const struct item_view *view)
{
    int64_t n = 1;
    bool fits = is_followed(v);
    for (size_t k = 0; k < view->rank && fits; k++)
        fits = !__builtin_mul_overflow(n, view->dims[k], &n) && n <= INFER_INTS_MAX;
    if (!fits) return (struct items){NULL, 0};
    struct items x = items_new(c, (size_t)n);
    for (size_t i = 0; i < x.n; i++) {
        int64_t at = place_of(view, (int64_t)i);
        if (at >= 0 && at < (int64_t)v->n_ints) x.at[i] = item_at(v, (size_t)at);
    }
    return x;
}

struct items items_spread(struct rule_call *c, const struct infer_value *v)
{
    const struct infer_value *to = rule_output(c, 0);
    struct item_view own, view;
    if (!is_followed(v) || !to || !item_view_of(v, &own) || !item_view_of(to, &view) || own.rank > view.rank)
        return (struct items){NULL, 0};
    size_t more = view.rank - own.rank;
    for (size_t k = 0; k < view.rank; k++)
        view.stride[k] = k < more || own.dims[k - more] == 1 ? 0 : own.stride[k - more];
    return items_view(c, v, &view);
}
