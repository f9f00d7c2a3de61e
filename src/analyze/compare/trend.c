/* SPDX-License-Identifier: MIT
 * trend.c - see trend.h. A maximum over all splits is compared with the same maximum of shuffled histories,
 * which pays for the search; values far out count no more than CLIP deviations, so that single outliers
 * decide nothing. */
#include "analyze/compare/trend.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/rng.h"

#define CLIP 3.0
#define MAD_TO_SD 1.4826
#define LEVEL 0.95 /* of the intervals of ratios */
#define BIAS 1.5 /* correlation that fitting one level takes away, times n */
enum {
    ENOUGH_FOR_MEMORY = 20, /* below, nothing can be said of neighbours */
    FEW = 8                 /* points that must agree */
};
enum { RUNS_TO_SEE = 8 };
#define CHANCE_TO_SEE 0.9
#define EXACT_CELLS 2500 /* n * m up to here: the distribution is counted, beyond it is as good as normal */
#define PAIRS_MAX ((size_t)1 << 24)

/* ---- by how much two samples differ ---- */

/* The chance of each value of U, adding one value after the other: the greatest of i + j values is of the
 * first sample with chance i / (i + j), and then lies above all j of the second. */
static double *rank_sum_shares(size_t n, size_t m)
{
    size_t cells = n * m + 1;
    double *all = mem_new((n + 1) * cells, sizeof *all);
    if (!all) return NULL;
    for (size_t i = 0; i <= n; i++) all[i * cells] = 1;
    for (size_t j = 1; j <= m; j++)
        for (size_t i = 1; i <= n; i++) {
            double *row = all + i * cells, *less = row - cells, share = (double)i / (double)(i + j);
            for (size_t u = i * j + 1; u-- > 0;)
                row[u] = (u >= j ? less[u - j] * share : 0) + row[u] * (1 - share);
        }
    return all;
}

uint64_t shift_rank_k(size_t n, size_t m, double alpha)
{
    double sum = 0, nm = (double)n * (double)m;
    double *all = nm <= EXACT_CELLS ? rank_sum_shares(n, m) : NULL;
    if (!all) {
        double z = stats_normal_quantile(1 - alpha), k = nm / 2 - z * sqrt(nm * (double)(n + m + 1) / 12);
        return k < 1 ? 0 : (uint64_t)k;
    }
    const double *shares = all + n * (n * m + 1);
    uint64_t k = 0;
    while (k < n * m && (sum += shares[k]) <= alpha) k++;
    mem_free(all);
    return k;
}

tare_status shift_between(struct stats_sample a, struct stats_sample b, double level, struct interval *out,
                          tare_error *err)
{
    size_t pairs = a.n * b.n;
    if (a.n == 0 || b.n == 0 || pairs / a.n != b.n || pairs > PAIRS_MAX)
        return error_set(err, TARE_INVALID, "%zu and %zu values: too few or too many to compare", a.n, b.n);
    double *d = mem_new(pairs, sizeof *d);
    if (!d) return error_set(err, TARE_NOMEM, "out of memory for %zu differences", pairs);
    for (size_t i = 0; i < a.n; i++)
        for (size_t j = 0; j < b.n; j++) d[i * b.n + j] = b.x[j] - a.x[i];
    stats_sort(d, pairs);
    uint64_t k = shift_rank_k(a.n, b.n, (1 - level) / 2);
    *out = (struct interval){stats_median_sorted(d, pairs), k ? d[k - 1] : -INFINITY,
                             k ? d[pairs - k] : INFINITY};
    mem_free(d);
    return TARE_OK;
}

/* ---- scores: how far each value lies from the middle, in robust deviations, cut at CLIP ---- */

/* Without any spread (more than half are equal) ranks do it: they need no scale. */
static void rank_scores(const double *y, size_t n, double *score)
{
    for (size_t i = 0; i < n; i++) {
        double below = 0;
        for (size_t j = 0; j < n; j++) below += (y[j] < y[i]) - (y[j] > y[i]);
        score[i] = below;
    }
}

static tare_status scores_of(const double *y, size_t n, double *score, tare_error *err)
{
    double median = 0, mad = 0, mean = 0, square = 0;
    tare_status s = stats_median(y, n, &median, err);
    if (s == TARE_OK) s = stats_mad(y, n, &mad, err);
    if (s != TARE_OK) return s;
    if (mad > 0)
        for (size_t i = 0; i < n; i++)
            score[i] = fmax(-CLIP, fmin(CLIP, (y[i] - median) / (MAD_TO_SD * mad)));
    else
        rank_scores(y, n, score);
    for (size_t i = 0; i < n; i++) mean += score[i] / (double)n;
    for (size_t i = 0; i < n; i++) square += (score[i] - mean) * (score[i] - mean);
    double sd = sqrt(square / (double)(n - 1));
    for (size_t i = 0; i < n; i++) score[i] = sd > 0 ? (score[i] - mean) / sd : 0;
    return TARE_OK;
}

/* ---- the statistic ---- */

struct split {
    size_t at;
    double size; /* |Z| */
};

/* Scores sum to 0, so the sum of the first k is how much the left side lies above the right one. In a shuffled history
 * that sum has variance k (n - k) / n; weight[k] is one over its root, so that splits at any place compare. The split
 * with the largest |sum| * weight is where a step would be, if there is one. */
static struct split largest_split(const double *score, size_t n, const double *weight)
{
    struct split best = {0, 0};
    double sum = 0;
    for (size_t k = 1; k + TREND_MIN_SIDE <= n; k++) {
        sum += score[k - 1];
        double z = fabs(sum) * weight[k];
        if (k >= TREND_MIN_SIDE && z > best.size) best = (struct split){k, z};
    }
    return best;
}

static void fill_weights(double *weight, size_t n)
{
    for (size_t k = 1; k < n; k++) weight[k] = 1 / sqrt((double)k * (double)(n - k) / (double)n);
}

static void shuffle(struct rng *r, double *x, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = rng_below(r, i);
        double t = x[i - 1];
        x[i - 1] = x[j];
        x[j] = t;
    }
}

static uint64_t seed_of(const double *y, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), bits;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, &y[i], sizeof bits);
        hash = rng_splitmix(&(uint64_t){hash ^ bits});
    }
    return hash;
}

/* ---- one segment ---- */

struct search {
    const double *y;
    size_t n;
    const struct trend_options *o;
    double *score, *shuffled, *weight; /* scratch */
    double inflation;
    VEC(struct trend_change) found; /* in no order */
    tare_error *err;
};

/* The share of shuffled histories whose largest split is as large; ends once it is surely above alpha. */
static double chance_of(struct search *s, size_t n, double size, struct rng *r)
{
    unsigned as_large = 0, enough = (unsigned)(s->o->alpha * (s->o->shuffles + 1));
    memcpy(s->shuffled, s->score, n * sizeof *s->shuffled);
    for (unsigned i = 0; i < s->o->shuffles && as_large <= enough; i++) {
        shuffle(r, s->shuffled, n);
        as_large += largest_split(s->shuffled, n, s->weight).size * s->inflation >= size;
    }
    return (1.0 + as_large) / (s->o->shuffles + 1);
}

struct part {
    size_t from, to;
};

/* The few points of a new level must agree on it: two outliers and a neighbour are none. */
static bool points_agree(const double *y, size_t n, double own, double other)
{
    size_t nearer = 0;
    if (n >= FEW) return true;
    for (size_t i = 0; i < n; i++) nearer += fabs(y[i] - own) < fabs(y[i] - other);
    return nearer >= n - n / 4;
}

static tare_status both_agree(const struct search *s, struct part p, size_t at, bool *is)
{
    double left = 0, right = 0;
    tare_status status = stats_median(s->y + p.from, at - p.from, &left, s->err);
    if (status == TARE_OK) status = stats_median(s->y + at, p.to - at, &right, s->err);
    if (status == TARE_OK)
        *is = points_agree(s->y + p.from, at - p.from, left, right) &&
              points_agree(s->y + at, p.to - at, right, left);
    return status;
}

static tare_status best_split(struct search *s, struct part part, struct trend_change *out, bool *is)
{
    size_t n = part.to - part.from;
    struct rng r;
    *is = false;
    if (n < 2 * TREND_MIN_SIDE) return TARE_OK;
    tare_status status = scores_of(s->y + part.from, n, s->score, s->err);
    if (status != TARE_OK) return status;
    fill_weights(s->weight, n);
    struct split split = largest_split(s->score, n, s->weight);
    if (split.size <= 0) return TARE_OK;
    rng_seed(&r, seed_of(s->y + part.from, n));
    *out = (struct trend_change){.at = part.from + split.at, .p = chance_of(s, n, split.size, &r)};
    return out->p <= s->o->alpha ? both_agree(s, part, out->at, is) : TARE_OK;
}

/* Split, then look into both sides; parts wait on a stack of their own, each split adds one. */
static tare_status split_all(struct search *s)
{
    vec_clear(&s->found);
    VEC(struct part) todo = VEC_INIT;
    struct part whole = {0, s->n};
    tare_status status = vec_push(&todo, whole, s->err);
    while (status == TARE_OK && todo.n) {
        struct part p = vec_pop(&todo);
        struct trend_change c = {0};
        bool is = false;
        status = best_split(s, p, &c, &is);
        if (status != TARE_OK || !is) continue;
        struct part left = {p.from, c.at}, right = {c.at, p.to};
        status = vec_push(&s->found, c, s->err);
        if (status == TARE_OK) status = vec_push(&todo, left, s->err);
        if (status == TARE_OK) status = vec_push(&todo, right, s->err);
    }
    vec_release(&todo);
    return status;
}

/* ---- levels ---- */

static tare_status fill_levels(const struct search *s, struct trend *t)
{
    tare_status status = TARE_OK;
    vec_clear(&t->levels);
    for (size_t i = 0; i <= t->changes.n && status == TARE_OK; i++) {
        struct trend_level l = {.from = i ? t->changes.items[i - 1].at : 0,
                                .to = i < t->changes.n ? t->changes.items[i].at : s->n};
        status = stats_median(s->y + l.from, l.to - l.from, &l.median, s->err);
        if (status == TARE_OK) status = vec_push(&t->levels, l, s->err);
    }
    return status;
}

/* Drop the least change while it is below the least effect worth a word: its levels become one. */
static tare_status keep_worthy(const struct search *s, struct trend *t)
{
    for (;;) {
        size_t least = 0;
        double size = INFINITY;
        tare_status status = fill_levels(s, t);
        if (status != TARE_OK) return status;
        for (size_t i = 0; i < t->changes.n; i++) {
            double d = fabs(t->levels.items[i + 1].median - t->levels.items[i].median);
            if (d >= size) continue;
            size = d;
            least = i;
        }
        if (!(size < log1p(s->o->min_effect))) return TARE_OK;
        memmove(&t->changes.items[least], &t->changes.items[least + 1],
                (t->changes.n - least - 1) * sizeof *t->changes.items);
        t->changes.n--;
    }
}

static tare_status fill_effects(const struct search *s, struct trend *t)
{
    tare_status status = TARE_OK;
    for (size_t i = 0; i < t->changes.n && status == TARE_OK; i++) {
        struct trend_change *c = &t->changes.items[i];
        const struct trend_level *a = &t->levels.items[i], *b = a + 1;
        struct interval d;
        status = shift_between((struct stats_sample){s->y + a->from, a->to - a->from},
                               (struct stats_sample){s->y + b->from, b->to - b->from}, LEVEL, &d, s->err);
        if (status != TARE_OK) break;
        c->ratio = (struct interval){exp(d.value), exp(d.lo), exp(d.hi)};
        c->worse = s->o->less_is_worse ? d.value < 0 : d.value > 0;
        c->recent = c->at + TREND_RECENT >= s->n;
    }
    return status;
}

static void fill_creep(const struct search *s, struct trend *t)
{
    const struct trend_level *now = vec_last(&t->levels);
    double sign = s->o->less_is_worse ? -1 : 1;
    for (size_t i = 0; i < t->levels.n; i++)
        if (sign * t->levels.items[i].median < sign * t->levels.items[t->creep.best].median)
            t->creep.best = i;
    double d = now->median - t->levels.items[t->creep.best].median;
    t->creep.ratio = exp(d);
    t->creep.worse = sign * d >= log1p(s->o->creep);
}

/* ---- what could have been seen ---- */

/* The spread about the levels, outliers cut as in the scores. */
static tare_status fill_noise(struct search *s, struct trend *t)
{
    for (size_t i = 0; i < t->levels.n; i++)
        for (size_t k = t->levels.items[i].from; k < t->levels.items[i].to; k++)
            s->shuffled[k] = s->y[k] - t->levels.items[i].median;
    double mad = 0, square = 0, cut;
    tare_status status = stats_mad(s->shuffled, s->n, &mad, s->err);
    cut = CLIP * MAD_TO_SD * mad;
    for (size_t k = 0; k < s->n; k++) square += pow(fmin(fabs(s->shuffled[k]), cut), 2);
    t->noise = s->n >= 2 * TREND_MIN_SIDE ? sqrt(square / (double)(s->n - 1)) : NAN;
    return status;
}

/* What the largest split reaches by chance, from shuffles of as many points as the level now would have. */
static double critical_split(struct search *s, size_t n)
{
    enum { TRIES = 999 };
    double *largest = mem_new(TRIES, sizeof *largest), z;
    struct rng r;
    if (!largest) return NAN;
    rng_seed(&r, seed_of(s->y, s->n));
    fill_weights(s->weight, n);
    for (size_t i = 0; i < n; i++) s->shuffled[i] = stats_normal_quantile(((double)i + 0.5) / (double)n);
    for (size_t i = 0; i < TRIES; i++) {
        shuffle(&r, s->shuffled, n);
        largest[i] = largest_split(s->shuffled, n, s->weight).size;
    }
    stats_sort(largest, TRIES);
    z = stats_quantile_sorted(largest, TRIES, 1 - s->o->alpha);
    mem_free(largest);
    return z;
}

/* The step that 8 runs at a new level would show 9 times in 10. Its |Z| must reach what shuffles reach by chance, plus
 * the normal quantile of 9 in 10 for its own noise; Z = step / noise * sqrt(k (n - k) / n) is solved for the step.
 * Since a step is part of the spread that scores are divided by, Z is the smaller the larger it is: 1 - z^2 / n. */
static void fill_smallest(struct search *s, struct trend *t)
{
    const struct trend_level *now = vec_last(&t->levels);
    size_t before = now->to - now->from, n = before + RUNS_TO_SEE;
    t->smallest = NAN;
    if (before < 2 * TREND_MIN_SIDE || isnan(t->noise)) return;
    double z = (critical_split(s, n) + stats_normal_quantile(CHANCE_TO_SEE)) * s->inflation;
    double room = 1 - z * z / (double)n; /* a step also widens the spread that it is measured by */
    if (!(room > 0)) return;
    double step = z / sqrt(room) * t->noise * sqrt((double)n / ((double)RUNS_TO_SEE * (double)before));
    t->smallest = fmax(expm1(step), s->o->min_effect);
}

/* ---- all of it ---- */

static void sort_changes(struct trend_change *c, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && c[j - 1].at > c[j].at; j--) {
            struct trend_change t = c[j];
            c[j] = c[j - 1];
            c[j - 1] = t;
        }
}

/* Of the scores about the levels that a search without any allowance finds, or about the two of the largest
 * split: a step must not pass for resemblance. What fitting takes away is given back. */
static double correlation(struct search *s, const size_t *cuts, size_t n_cuts)
{
    double together = 0, square = 0;
    for (size_t c = 0; c <= n_cuts; c++) {
        size_t from = c ? cuts[c - 1] : 0, to = c < n_cuts ? cuts[c] : s->n;
        double mean = stats_mean(s->score + from, to - from);
        for (size_t i = from; i < to; i++) s->score[i] -= mean;
    }
    for (size_t i = 0; i < s->n; i++) square += s->score[i] * s->score[i];
    for (size_t i = 1; i < s->n; i++) together += s->score[i] * s->score[i - 1];
    if (square < 1e-9 * (double)s->n) return 0;
    return fmax(0, fmin(0.8, together / square + BIAS * (double)(n_cuts + 1) / (double)s->n));
}

static tare_status find_memory(struct search *s, double *memory)
{
    s->inflation = 1;
    tare_status status = split_all(s);
    if (status == TARE_OK) status = scores_of(s->y, s->n, s->score, s->err);
    if (status != TARE_OK) return status;
    sort_changes(s->found.items, s->found.n);
    size_t n = s->found.n ? s->found.n : 1, *cuts = mem_new(n, sizeof *cuts);
    if (!cuts) return error_set(s->err, TARE_NOMEM, "out of memory");
    fill_weights(s->weight, s->n);
    cuts[0] = largest_split(s->score, s->n, s->weight).at;
    for (size_t i = 0; i < s->found.n; i++) cuts[i] = s->found.items[i].at;
    *memory = cuts[0] ? correlation(s, cuts, n) : 0;
    mem_free(cuts);
    return TARE_OK;
}

static tare_status analyse_history(struct search *s, struct trend *out)
{
    tare_status status = TARE_OK;
    if (s->n >= ENOUGH_FOR_MEMORY && !s->o->independent) status = find_memory(s, &out->memory);
    /* Sums of values that resemble their neighbours (correlation m) spread by this factor more than shuffled ones. */
    s->inflation = sqrt((1 + out->memory) / (1 - out->memory));
    if (status == TARE_OK) status = split_all(s);
    sort_changes(s->found.items, s->found.n);
    for (size_t i = 0; i < s->found.n && status == TARE_OK; i++)
        status = vec_push(&out->changes, s->found.items[i], s->err);
    if (status == TARE_OK) status = keep_worthy(s, out);
    if (status == TARE_OK) status = fill_effects(s, out);
    if (status == TARE_OK) status = fill_noise(s, out);
    if (status != TARE_OK) return status;
    fill_creep(s, out);
    fill_smallest(s, out);
    return TARE_OK;
}

void trend_release(struct trend *t)
{
    vec_release(&t->levels);
    vec_release(&t->changes);
}

tare_status trend_find(const double *y, size_t n, const struct trend_options *o, struct trend *out,
                       tare_error *err)
{
    struct search s = {.y = y, .n = n, .o = o, .err = err};
    *out = (struct trend){.noise = NAN, .smallest = NAN};
    if (n == 0 || n > TREND_MAX)
        return error_set(err, TARE_INVALID, "a history of %zu runs: 1 to %d can be searched", n, TREND_MAX);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(y[i]))
            return error_set(err, TARE_INVALID, "value %zu of the history is no number", i + 1);
    s.score = mem_new(n, sizeof *s.score);
    s.shuffled = mem_new(n + RUNS_TO_SEE, sizeof *s.shuffled);
    s.weight = mem_new(n + RUNS_TO_SEE + 1, sizeof *s.weight);
    tare_status status = s.score && s.shuffled && s.weight ? analyse_history(&s, out)
                                                           : error_set(err, TARE_NOMEM, "out of memory");
    vec_release(&s.found);
    mem_free(s.score);
    mem_free(s.shuffled);
    mem_free(s.weight);
    return status;
}
