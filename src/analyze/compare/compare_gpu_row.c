/* SPDX-License-Identifier: MIT
 * compare_gpu_row.c - see compare_gpu_row.h. The i-th step of one side stands beside the i-th of the other. Steps that
 * follow one another share the machine's state, so that blocks of them count as launches do: what varies from block to
 * block widens the interval. Where the base has runs enough (BETWEEN_RUNS_MIN) each run is one number, and what runs
 * differ by judges. */
#include "analyze/compare/compare_gpu_row.h"

#include <math.h>
#include <string.h>

#include "analyze/compare/compare_pairs.h"
#include "analyze/judge/plausible.h"
#include "core/fmt.h"
#include "core/mem.h"

enum {
    BLOCKS = 16,      /* of steps, where there are 4 for each */
    BLOCKS_LEAST = 7, /* sums that a rank test can say something of at 1 % */
    SUMS = 24         /* blocks of what is not there in every step */
};

/* ---- pairs ---- */

struct paired_numbers {
    double *d;       /* ln (new / base) */
    uint32_t *epoch; /* NULL: each by itself */
    size_t n;
};

static void release_numbers(struct paired_numbers *p)
{
    mem_free(p->d);
    mem_free(p->epoch);
}

/* Pairs in which one side is 0 have no ratio. Where that are many, sums over blocks of steps are compared instead. */
static tare_status make_pairs(struct samples a, struct samples b, struct paired_numbers *out, tare_error *err)
{
    size_t n = a.n < b.n ? a.n : b.n, zeros = 0, every = 1;
    for (size_t i = 0; i < n; i++) zeros += !(a.x[i] > 0) || !(b.x[i] > 0);
    if (zeros * 10 > n) every = (n + SUMS - 1) / SUMS;
    *out = (struct paired_numbers){.d = mem_new(n + 1, sizeof *out->d)};
    if (!out->d) return error_nomem(err, "%zu pairs of steps", n);
    for (size_t i = 0; i + every <= n; i += every) {
        double x = 0, y = 0;
        for (size_t k = i; k < i + every; k++) {
            x += a.x[k];
            y += b.x[k];
        }
        if (x > 0 && y > 0) out->d[out->n++] = log(y / x);
    }
    if (out->n < (size_t)4 * BLOCKS) return TARE_OK;
    out->epoch = mem_new(out->n, sizeof *out->epoch);
    if (!out->epoch) return error_nomem(err, "%zu pairs of steps", n);
    for (size_t i = 0; i < out->n; i++) out->epoch[i] = (uint32_t)(i * BLOCKS / out->n);
    return TARE_OK;
}

static tare_status middle(struct samples s, bool mean, struct run_estimate *out, tare_error *err)
{
    struct interval found;
    if (!s.n) return TARE_OK;
    if (mean) {
        *out = (struct run_estimate){.known = true, .value = stats_mean(s.x, s.n)};
        return TARE_OK;
    }
    tare_status status = stats_median_interval(s.x, s.n, 0.95, &found, err);
    if (status < 0) return status;
    *out = (struct run_estimate){.known = true, .value = found.value};
    if (isfinite(found.lo)) out->lo = known_f64(fmin(found.lo, found.value));
    if (isfinite(found.hi)) out->hi = known_f64(fmax(found.hi, found.value));
    return TARE_OK;
}

/* ---- a row ---- */

const char *gpu_row_role(const struct comparing *k, const char *measure, bool gate, struct paired_rule *rule)
{
    *rule = k->in->rule;
    for (size_t i = 0; i < k->in->n_limits; i++) {
        const struct compare_limit *l = &k->in->limits[i];
        if (strcmp(l->metric, measure) != 0) continue;
        if (!isnan(l->share)) rule->min_effect = l->share;
        rule->detect = fmax(rule->detect, rule->min_effect);
        return "gate";
    }
    return gate && !k->in->n_limits ? "gate" : "advisory";
}

struct comparison_metric *gpu_row_new(struct comparing *k, const char *name, const char *role)
{
    struct comparison_metric *m = comparison_add_metric(k->c, k->to, name);
    if (!m) return NULL;
    m->unit = "ns";
    m->better = "less";
    m->role = role;
    return m;
}

/* Kernels take the same time in run after run. What the host has a part in does not: in two runs of one training
 * program on an H200, kernels were 0.01 % apart, but steps 17 %, copies 14 % and gaps 51 %, and the steps of each run
 * alone made those sure. Of these only what no plausible spread between runs explains is a verdict, as of single
 * saved runs. */
static void hold_for_runs(struct comparing *k, struct comparison_metric *m, const struct paired_rule *rule)
{
    double sd = plausible_sd(measure_find("latency.p50"), false, false);
    double far = plausible_ratio(sd, rule->min_effect, rule->alpha),
           ratio = m->ratio.known ? m->ratio.value : 1;
    m->p_value = (struct known_f64){0};
    run_map_text(&k->c->arena, &m->unknown, "p_value", "the spread between runs is not known");
    if (ratio >= far || ratio <= 1 / far) return;
    m->verdict = "unverified";
    m->why =
        arena_printf(&k->c->arena, "%s a side, and the host has a part in it: %.2gx would tell",
                     k->side[PAIR_A].n + k->side[PAIR_B].n > PAIR_SIDES ? "too few runs" : "one run", far);
    m->mde = m->gate_confidence = (struct known_f64){0};
    m->gate = (struct run_estimate){0};
    run_map_text(&k->c->arena, &m->unknown, "gate", "the spread between runs is not known");
    run_map_text(&k->c->arena, &m->unknown, "mde", "the spread between runs is not known");
}

static tare_status add_judged(struct comparing *k, struct comparison_metric *m, double slower, double faster)
{
    tare_status status = vec_push(&k->judged, m, k->err);
    if (status == TARE_OK) status = vec_push(&k->slower, slower, k->err);
    return status == TARE_OK ? vec_push(&k->faster, faster, k->err) : status;
}

static tare_status judge_row(struct comparing *k, struct comparison_metric *m,
                             const struct paired_numbers *pairs, const struct paired_rule *rule, bool on_gpu)
{
    struct paired_result p;
    struct paired_series s = {pairs->d, pairs->epoch, pairs->n};
    tare_status status = paired_judge(&s, rule, &p, k->err);
    if (status < 0) return status;
    compare_fill_pairs(k->c, m, &p, rule, "steps");
    if (pairs->n < BLOCKS_LEAST)
        m->why =
            arena_printf(&k->c->arena, "cannot tell: %zu to compare, %d are needed", pairs->n, BLOCKS_LEAST);
    if (!on_gpu) {
        hold_for_runs(k, m, rule);
        return TARE_OK;
    }
    const double surest = exp2(-(double)pairs->n); /* what ranks of so few pairs can say at the most */
    return add_judged(k, m, fmax(p.p_slower, surest), fmax(p.p_faster, surest));
}

static void cannot_tell(struct comparing *k, struct comparison_metric *m, const char *why)
{
    m->verdict = "inconclusive";
    m->why = why;
    run_map_text(&k->c->arena, &m->unknown, "ratio", m->why);
}

/* Those of all runs of a side, one run behind the other. */
static tare_status join_runs(struct comparing *k, const struct gpu_row *r, int side, struct samples *out)
{
    size_t n = 0;
    const struct samples *of = r->samples[side];
    for (size_t i = 0; i < k->side[side].n; i++) n += of[i].n;
    double *x = arena_new(&k->c->arena, n + 1, sizeof *x);
    *out = (struct samples){x, n};
    if (!x) return compare_no_memory(k->err);
    for (size_t i = 0; i < k->side[side].n; x += of[i++].n)
        if (of[i].n) memcpy(x, of[i].x, of[i].n * sizeof *x);
    return TARE_OK;
}

/* Is it in fewer than nine of ten steps of some run? Then the mean step is its number, else the median
 * one: that would be 0 beside a change in per cent. */
static bool is_sparse(const struct comparing *k, const struct gpu_row *r)
{
    for (int side = 0; side < PAIR_SIDES; side++)
        for (size_t i = 0; i < k->side[side].n; i++) {
            const struct samples *of = &r->samples[side][i];
            size_t zeros = 0;
            for (size_t n = 0; n < of->n; n++) zeros += !(of->x[n] > 0);
            if (zeros * 10 > of->n) return true;
        }
    return false;
}

static tare_status judge_steps(struct comparing *k, struct gpu_row *r, const struct paired_rule *rule)
{
    struct paired_numbers pairs = {0};
    struct samples base = {NULL, 0}, new_ = {NULL, 0};
    tare_status s = join_runs(k, r, PAIR_A, &base);
    if (s == TARE_OK) s = join_runs(k, r, PAIR_B, &new_);
    if (s == TARE_OK) s = make_pairs(base, new_, &pairs, k->err);
    const bool mean = is_sparse(k, r);
    if (s == TARE_OK) s = middle(base, mean, &r->made->base, k->err);
    if (s == TARE_OK) s = middle(new_, mean, &r->made->new_, k->err);
    if (s == TARE_OK && pairs.n) s = judge_row(k, r->made, &pairs, rule, r->on_gpu);
    if (s == TARE_OK && !pairs.n)
        cannot_tell(k, r->made, "cannot tell: it is not in enough steps of both sides");
    release_numbers(&pairs);
    return s;
}

/* One number a side: a ratio, and nothing to judge it by. */
static tare_status tell_totals(struct comparing *k, struct gpu_row *r)
{
    struct comparison_metric *m = r->made;
    struct samples base = {NULL, 0}, new_ = {NULL, 0};
    tare_status s = join_runs(k, r, PAIR_A, &base);
    if (s == TARE_OK) s = join_runs(k, r, PAIR_B, &new_);
    if (s < 0) return s;
    m->base = (struct run_estimate){.known = true, .value = stats_mean(base.x, base.n)};
    m->new_ = (struct run_estimate){.known = true, .value = stats_mean(new_.x, new_.n)};
    if (m->base.value > 0)
        m->ratio = (struct run_estimate){.known = true, .value = m->new_.value / m->base.value};
    m->verdict = "unverified";
    m->why = "of the whole record: without steps there is one number a side";
    run_map_text(&k->c->arena, &m->unknown, "gate", m->why);
    return TARE_OK;
}

/* ---- whole runs ---- */

static tare_status number_of(struct samples of, bool mean, double *out, tare_error *err)
{
    struct interval found = {.value = 0};
    tare_status s = TARE_OK;
    if (of.n && !mean) s = stats_median_interval(of.x, of.n, 0.95, &found, err);
    *out = mean && of.n ? stats_mean(of.x, of.n) : found.value;
    return s;
}

/* The logarithm of each run's number, those too close in time as one. */
static tare_status take_runs(struct comparing *k, const struct gpu_row *r, int side, bool mean,
                             struct compare_values *out)
{
    struct gpu_side *of = &k->side[side];
    tare_status s = TARE_OK;
    out->y = arena_new(&k->c->arena, of->n, sizeof *out->y);
    if (!out->y) return compare_no_memory(k->err);
    for (size_t i = 0; i < of->n && s == TARE_OK; i++) {
        double v = 0;
        s = number_of(r->samples[side][i], mean, &v, k->err);
        of->at[i].y = log(v);
    }
    compare_cluster(out, of->at, of->n, k->in->apart_ms);
    return s;
}

static struct run_estimate geometric_mean(const struct compare_values *v)
{
    return (struct run_estimate){.known = true, .value = exp(stats_mean(v->y, v->n))};
}

/* The number of each run; they are judged when those of all rows are known. */
static tare_status judge_runs(struct comparing *k, const struct gpu_row *r, const struct paired_rule *rule)
{
    struct comparison_metric *m = r->made;
    struct gpu_row_runs row = {.made = m, .rule = *rule, .kernel = r->steady};
    bool mean = is_sparse(k, r);
    tare_status s = take_runs(k, r, PAIR_A, mean, &row.base);
    if (s == TARE_OK) s = take_runs(k, r, PAIR_B, mean, &row.new_);
    if (s < 0) return s;
    if (!isfinite(stats_mean(row.base.y, row.base.n)) || !isfinite(stats_mean(row.new_.y, row.new_.n))) {
        cannot_tell(k, m, "cannot tell: it is not in every run");
        return TARE_OK;
    }
    m->samples = known_u64(row.base.n < row.new_.n ? row.base.n : row.new_.n);
    m->base = geometric_mean(&row.base);
    m->new_ = geometric_mean(&row.new_);
    run_map_int(&k->c->arena, &m->evidence, "runs_base", (int64_t)row.base.n);
    run_map_int(&k->c->arena, &m->evidence, "runs_new", (int64_t)row.new_.n);
    return vec_push(&k->rows, row, k->err);
}

/* What runs of one side differ by, over all kernels: the root of the mean square, and the most. */
struct usual {
    double sd, range;
};

static void add_spread(struct usual *to, const struct compare_values *of, double *n)
{
    double least = INFINITY, most = -INFINITY;
    if (of->n < 2) return;
    for (size_t i = 0; i < of->n; i++) {
        least = fmin(least, of->y[i]);
        most = fmax(most, of->y[i]);
    }
    double sd = stats_stddev(of->y, of->n);
    to->sd += sd * sd;
    to->range = fmax(to->range, most - least);
    ++*n;
}

static struct usual usual_spread(const struct comparing *k)
{
    struct usual found = {0, 0};
    double n = 0;
    for (size_t i = 0; i < k->rows.n; i++) {
        if (!k->rows.items[i].kernel) continue;
        add_spread(&found, &k->rows.items[i].base, &n);
        add_spread(&found, &k->rows.items[i].new_, &n);
    }
    found.sd = n > 0 ? sqrt(found.sd / n) : 0;
    return found;
}

/* Three runs of a kernel that has two speeds, by where its memory lies, say, are all of one speed in a case of four,
 * and look as if they never differed: of 40 such kernels some were told apart in 7 of 10 comparisons of a program with
 * itself. So none is taken to be steadier than kernels are on average, and of three runs a side a change must be
 * beyond what the least steady one shows. */
static bool is_within_usual(const struct gpu_row_runs *row, const struct between_result *b, struct usual u)
{
    enum { RUNS_ENOUGH = 4 }; /* two speeds look so in 1 case of 128 */
    return row->kernel && (row->base.n < RUNS_ENOUGH || row->new_.n < RUNS_ENOUGH) &&
           fabs(b->log) < 1.25 * u.range;
}

/* What runs differ by judges, as of saved runs. The chance of a wrong "faster" is that of a wrong "slower" with the
 * sides exchanged. */
static tare_status judge_run_row(struct comparing *k, const struct gpu_row_runs *row, struct usual u)
{
    struct comparison_metric *m = row->made;
    const struct between_rule limits = {.min_effect = row->rule.min_effect,
                                        .detect = row->rule.detect,
                                        .alpha = row->rule.alpha,
                                        .level = row->rule.level,
                                        .least_sd = row->kernel ? u.sd : 0};
    struct between_sides sides = {
        {row->base.y, row->base.n}, {row->new_.y, row->new_.n}, {NULL, 0}, false, 0};
    struct between_result found = {0}, swapped = {0};
    const char *told = m->why;
    tare_status s = between_runs(&sides, &limits, &found, k->err);
    sides.more = true;
    if (s == TARE_OK) s = between_runs(&sides, &limits, &swapped, k->err);
    if (s < 0) return s;
    compare_fill_between(k->c, m, &found, &limits, false);
    if (!m->why) m->why = told;
    const bool changed = strcmp(m->verdict, "regressed") == 0 || strcmp(m->verdict, "improved") == 0;
    if (!changed || !is_within_usual(row, &found, u)) return add_judged(k, m, found.p_worse, swapped.p_worse);
    m->verdict = "inconclusive";
    m->why = arena_printf(
        &k->c->arena, "undecided: runs of one side differ by %s in some kernel; four runs a side would tell",
        show_percent(expm1(u.range)).s);
    return add_judged(k, m, 1, 1);
}

tare_status gpu_rows_judge(struct comparing *k)
{
    const struct usual u = usual_spread(k);
    tare_status s = TARE_OK;
    for (size_t i = 0; i < k->rows.n && s == TARE_OK; i++) s = judge_run_row(k, &k->rows.items[i], u);
    k->rows.n = 0;
    return s;
}

tare_status gpu_row_add(struct comparing *k, struct gpu_row *r)
{
    struct paired_rule rule;
    const char *role = gpu_row_role(k, r->measure ? r->measure : r->name, r->gate, &rule);
    r->made = gpu_row_new(k, r->name, role);
    if (!r->made) return compare_no_memory(k->err);
    if (k->between) return judge_runs(k, r, &rule);
    return r->whole ? tell_totals(k, r) : judge_steps(k, r, &rule);
}

/* ---- all rows ---- */

void gpu_rows_hold(struct comparing *k)
{
    paired_holm(k->slower.items, k->slower.n);
    paired_holm(k->faster.items, k->faster.n);
    for (size_t i = 0; i < k->judged.n; i++) {
        struct comparison_metric *m = k->judged.items[i];
        bool improved = strcmp(m->verdict, "improved") == 0;
        compare_adjust(m, k->slower.items[i], k->in->rule.alpha, k->judged.n);
        if (!improved || k->faster.items[i] <= k->in->rule.alpha) continue;
        m->verdict = "inconclusive";
        m->why = "faster by itself, but among so many comparisons such a one comes by chance";
    }
}
