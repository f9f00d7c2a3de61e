/* SPDX-License-Identifier: MIT
 * compare_stacks.c - see compare_stacks.h: which functions there are on both sides. compare_sampled.c judges them. */
#include "analyze/compare/compare_stacks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/compare_pairs.h"
#include "core/map.h"

const struct measure stacks_measures[] = {
    {.name = "function.own", .kind = MEASURE_PLAIN, .help = "each function: its own share of the time"},
    {.name = "function.total", .kind = MEASURE_PLAIN, .help = "each function: its share with all that it calls"},
    {.name = "time", .kind = MEASURE_TIME, .help = "of all threads together"},
    {.name = NULL},
};
enum what { OWN, TOTAL, SHARES };

#define SMALL_PERCENT 2 /* functions that have less in all runs are not compared */

struct function {
    const char *name;
    struct sampled_value *of[SHARES][PAIR_SIDES]; /* by run */
    double moved;                                 /* own share, new less base, of the mean run */
};

struct comparing {
    struct sampled_comparing s;
    const struct compare_stacks *in;
    struct map_str by_name; /* -> place in `all` */
    VEC(struct function) all;
};

/* ---- functions of all runs ---- */

/* The same name in a file of the same name is the same function, whichever folder it lies in and whatever its line. */
static tare_status name_of(struct buf *b, const struct stacks_function *f, tare_error *err)
{
    const char *slash = strrchr(f->file, '/');
    buf_add_str(b, f->name);
    if (*f->file) buf_printf(b, " (%s)", slash && slash[1] ? slash + 1 : f->file);
    return buf_status(b, err);
}

static tare_status find(struct comparing *k, const struct buf *name, struct function **out)
{
    struct arena *a = &k->s.c->arena;
    uint64_t *place;
    size_t before = k->by_name.n;
    tare_status s = map_str_ref(&k->by_name, name->data, name->len, &place, k->s.err);
    if (s == TARE_OK && k->by_name.n > before) {
        struct function fresh = {.name = arena_str_n(a, name->data, name->len)};
        for (int what = 0; what < SHARES; what++)
            for (int side = 0; side < PAIR_SIDES; side++)
                fresh.of[what][side] = arena_new(a, k->s.side[side].n, sizeof(struct sampled_value));
        *place = k->all.n;
        s = a->failed ? compare_no_memory(k->s.err) : vec_push(&k->all, fresh, k->s.err);
    }
    if (s == TARE_OK) *out = &k->all.items[*place];
    return s;
}

/* In percent. Two of one name add up: their lines differ. The interval is then that of the sum. */
static void add_share(struct sampled_value *to, double share, double n_eff)
{
    double sum = fmin(to->sum / 100 + share, 1);
    struct interval i = stats_share_interval(sum, n_eff, 0.95);
    to->sum = 100 * sum;
    to->within = (struct interval){100 * i.value, 100 * i.lo, 100 * i.hi};
    to->variance = n_eff > 0 ? 1e4 * sum * (1 - sum) / n_eff : 0;
}

static tare_status add_run(struct comparing *k, int side, size_t run)
{
    const struct stacks_profile *p = &k->in->side[side].runs[run].profile;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < p->n && s == TARE_OK; i++) {
        const struct stacks_function *f = &p->functions[i];
        struct buf name = BUF_INIT;
        struct function *one;
        s = name_of(&name, f, k->s.err);
        if (s == TARE_OK) s = find(k, &name, &one);
        buf_release(&name);
        if (s != TARE_OK) break;
        add_share(&one->of[OWN][side][run], f->own.value, p->n_eff);
        add_share(&one->of[TOTAL][side][run], f->total.value, p->n_eff);
        one->moved += (side == PAIR_B ? 1 : -1) * f->own.value / (double)k->s.side[side].n;
    }
    return s;
}

static int by_moved(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    double p = fabs(x->moved), q = fabs(y->moved);
    return p != q ? (p < q) - (p > q) : strcmp(x->name, y->name);
}

/* ---- rows ---- */

static bool matters(const struct comparing *k, const struct function *f, enum what what)
{
    for (int side = 0; side < PAIR_SIDES; side++)
        for (size_t i = 0; i < k->s.side[side].n; i++)
            if (f->of[what][side][i].sum >= SMALL_PERCENT) return true;
    return false;
}

static tare_status add_function(struct comparing *k, const struct function *f, enum what what)
{
    struct sampled_row r = {.measure = stacks_measures[what].name, .unit = "%"};
    if (!matters(k, f, what)) return TARE_OK;
    r.name = arena_printf(&k->s.c->arena, "%s %s", r.measure, f->name);
    if (!r.name) return compare_no_memory(k->s.err);
    for (int side = 0; side < PAIR_SIDES; side++) r.of[side] = f->of[what][side];
    return sampled_row_add(&k->s, &r);
}

/* The kernel counts it: nothing of it is sampled. */
static tare_status add_time(struct comparing *k)
{
    struct sampled_row r = {.name = "time", .measure = "time", .unit = "ns"};
    for (int side = 0; side < PAIR_SIDES; side++) {
        struct sampled_value *to = arena_new(&k->s.c->arena, k->s.side[side].n, sizeof *to);
        if (!to) return compare_no_memory(k->s.err);
        for (size_t i = 0; i < k->s.side[side].n; i++) {
            double sum = k->in->side[side].runs[i].profile.sum_ns;
            to[i] = (struct sampled_value){sum, 0, {sum, sum, sum}};
        }
        r.of[side] = to;
    }
    return sampled_row_add(&k->s, &r);
}

static tare_status add_rows(struct comparing *k)
{
    tare_status s = add_time(k);
    for (int side = 0; side < PAIR_SIDES; side++)
        for (size_t i = 0; i < k->s.side[side].n && s == TARE_OK; i++) s = add_run(k, side, i);
    if (s == TARE_OK && k->all.n > 1) qsort(k->all.items, k->all.n, sizeof *k->all.items, by_moved);
    for (enum what what = OWN; what < SHARES; what++)
        for (size_t i = 0; i < k->all.n && s == TARE_OK; i++) s = add_function(k, &k->all.items[i], what);
    return s;
}

/* ---- the whole ---- */

static void describe(struct comparison *c, const struct compare_stacks *in)
{
    struct compare_told told = {.min_effect = in->rules.rule.min_effect,
                                .alpha = in->rules.rule.alpha,
                                .limits = in->rules.limits,
                                .n_limits = in->rules.n_limits};
    for (int i = 0; i < PAIR_SIDES; i++) {
        told.path[i] = in->side[i].runs[0].path;
        told.n[i] = in->side[i].n;
    }
    compare_tell_traces(c, &told);
    run_map_text(&c->arena, &c->config, "time", in->time);
}

static tare_status set_sides(struct comparing *k)
{
    for (int side = 0; side < PAIR_SIDES; side++) {
        const struct compare_stacks_side *in = &k->in->side[side];
        struct sampled_side *to = &k->s.side[side];
        *to = (struct sampled_side){arena_new(&k->s.c->arena, in->n, sizeof *to->at), in->n};
        if (!to->at) return compare_no_memory(k->s.err);
        for (size_t i = 0; i < in->n; i++)
            to->at[i].ms = in->runs[i].begun_ms ? in->runs[i].begun_ms : (int64_t)i * k->in->rules.apart_ms;
    }
    return TARE_OK;
}

tare_status compare_stacks(struct comparison *c, const struct compare_stacks *in, tare_error *err)
{
    struct comparing k = {.s = {.c = c, .rules = &in->rules, .err = err}, .in = in};
    describe(c, in);
    k.s.to = comparison_add_case(c, "all threads");
    tare_status s = k.s.to ? set_sides(&k) : compare_no_memory(err);
    if (s == TARE_OK) s = add_rows(&k);
    if (s == TARE_OK) sampled_rows_hold(&k.s);
    sampled_rows_release(&k.s);
    map_str_release(&k.by_name);
    vec_release(&k.all);
    if (s == TARE_OK && c->arena.failed) s = compare_no_memory(err);
    if (s == TARE_OK) comparison_sum_up(c);
    return s;
}
