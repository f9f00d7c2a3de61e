/* SPDX-License-Identifier: MIT
 * trend.c - see trend.h. A maximum over all stretches that may be other levels is compared with the same maximum of
 * shuffled histories, which pays for the search; values far out count no more than CLIP deviations, so that single
 * outliers decide nothing. */
#include "analyze/compare/trend.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/rng.h"

#define CLIP 3.0       /* deviations */
#define CLIP_PULSE 6.0 /* a few runs far out are all that a short pulse is */
#define MAD_TO_SD 1.4826
#define LEVEL 0.95 /* of the intervals of ratios */
#define MOST_MEMORY 0.8
#define BIAS 3.0      /* correlation that finding and fitting one level takes away, times n, of independent runs */
#define BIAS_MORE 3.0 /* more of each level beyond those of a pulse: found where neighbours resemble each other */
#define PULSE_LEVELS 3.0
enum {
    SHUFFLES = 1999,
    PULSE_MOST = 200,       /* runs; longer ones are found as two steps */
    ENOUGH_FOR_MEMORY = 20, /* below, nothing can be said of neighbours */
    FEW = 8,                /* points that must agree */
    NEAR = 5,               /* runs by which a change is moved at most */
    RUNS_TO_SEE = 8
};
#define CHANCE_TO_SEE 0.95 /* so that with any shape of noise about 9 in 10 are seen */
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
    if (!d) return error_nomem(err, "%zu differences", pairs);
    for (size_t i = 0; i < a.n; i++)
        for (size_t j = 0; j < b.n; j++) d[i * b.n + j] = b.x[j] - a.x[i];
    stats_sort(d, pairs);
    uint64_t k = shift_rank_k(a.n, b.n, (1 - level) / 2);
    *out = (struct interval){stats_median_sorted(d, pairs), k ? d[k - 1] : -INFINITY,
                             k ? d[pairs - k] : INFINITY};
    mem_free(d);
    return TARE_OK;
}

/* ---- scores: how far each value lies from the middle, in robust deviations, cut at `clip` ---- */

/* Without any spread (more than half are equal) ranks do it: they need no scale. */
static void rank_scores(const double *y, size_t n, double *score)
{
    for (size_t i = 0; i < n; i++) {
        double below = 0;
        for (size_t j = 0; j < n; j++) below += (y[j] < y[i]) - (y[j] > y[i]);
        score[i] = below;
    }
}

static tare_status scores_of(const double *y, size_t n, double clip, double *score, tare_error *err)
{
    double median = 0, mad = 0, mean = 0, square = 0;
    tare_status s = stats_median(y, n, &median, err);
    if (s == TARE_OK) s = stats_mad(y, n, &mad, err);
    if (s != TARE_OK) return s;
    if (mad > 0)
        for (size_t i = 0; i < n; i++)
            score[i] = fmax(-clip, fmin(clip, (y[i] - median) / (MAD_TO_SD * mad)));
    else
        rank_scores(y, n, score);
    for (size_t i = 0; i < n; i++) mean += score[i] / (double)n;
    for (size_t i = 0; i < n; i++) square += (score[i] - mean) * (score[i] - mean);
    double sd = sqrt(square / (double)(n - 1));
    for (size_t i = 0; i < n; i++) score[i] = sd > 0 ? (score[i] - mean) / sd : 0;
    return TARE_OK;
}

/* ---- the statistic ---- */

/* What is looked for, in this order: a pulse explains a step as well, with one change too many; two or three stretches
 * at once are what is left where each of them is noise to the others. Each has its own chance of being wrong. */
enum kind { STEP, PULSE, TWO, THREE, KINDS };
static const double kind_alpha[KINDS] = {0.005, 0.001, 0.0005, 0.0005};

struct stretch { /* that may be another level than the rest; a step reaches the end */
    size_t from, to;
    double size; /* |Z| */
};

enum { STRETCHES_MOST = 3, CUTS_MOST = 2 * STRETCHES_MOST };
struct cuts { /* first points of new levels, in order */
    size_t at[CUTS_MOST], n;
    double size; /* root of what all of them explain: |Z| of a single stretch */
};

struct part {
    size_t from, to;
};

struct search {
    const double *y;
    size_t n;
    const struct trend_options *o;
    double *score, *shuffled, *sums; /* scratch */
    double inflation;
    struct trend *t; /* the changes found so far, in no order */
    tare_error *err;
};

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

/* The sum over a stretch of m says how much it lies above the rest of the n. In a shuffled history it has variance
 * m (n - m) / n; over the root of it stretches of any length compare. sums[i]: of the i first, which end at 0. */
static double weight_of(size_t m, size_t n)
{
    return 1 / sqrt((double)m * (double)(n - m) / (double)n);
}

static struct stretch largest_step(const double *sums, size_t n)
{
    struct stretch best = {0, n, 0};
    for (size_t k = TREND_MIN_SIDE; k + TREND_MIN_SIDE <= n; k++) {
        double z = fabs(sums[k]) * weight_of(k, n);
        if (z > best.size) best = (struct stretch){k, n, z};
    }
    return best;
}

/* The inner loop is all the time that a search takes: it knows no index. */
static struct stretch largest_pulse(const double *sums, size_t n)
{
    struct stretch best = {0, n, 0};
    for (size_t m = TREND_MIN_SIDE; m <= PULSE_MOST && m + 2 * TREND_MIN_SIDE <= n; m++) {
        size_t from = TREND_MIN_SIDE, end = n - TREND_MIN_SIDE - m;
        double most = 0, weight = weight_of(m, n);
        for (size_t i = from; i <= end; i++) {
            double sum = fabs(sums[i + m] - sums[i]);
            most = sum > most ? sum : most;
        }
        if (!(most * weight > best.size)) continue;
        while (fabs(sums[from + m] - sums[from]) < most) from++;
        best = (struct stretch){from, from + m, most * weight};
    }
    return best;
}

static void fill_sums(struct search *s, const double *score, size_t n)
{
    double mean = stats_mean(score, n);
    s->sums[0] = 0;
    for (size_t i = 0; i < n; i++) s->sums[i + 1] = s->sums[i] + score[i] - mean;
}

/* Of one level the stretch, of either kind, that explains most. */
static struct stretch largest_of_any(struct search *s, const double *score, size_t n)
{
    fill_sums(s, score, n);
    struct stretch step = largest_step(s->sums, n), pulse = largest_pulse(s->sums, n);
    return pulse.size > step.size ? pulse : step;
}

static void add_cut(struct cuts *c, size_t at)
{
    size_t i = c->n++;
    for (; i > 0 && c->at[i - 1] > at; i--) c->at[i] = c->at[i - 1];
    c->at[i] = at;
}

/* One stretch after the other, each where it explains most beside those before it, within their levels as well. */
static struct cuts largest_several(struct search *s, const double *score, size_t n, size_t stretches)
{
    struct cuts c = {.n = 0};
    double explained = 0;
    for (size_t k = 0; k < stretches; k++) {
        struct stretch best = {0, n, 0};
        for (size_t l = 0; l <= c.n; l++) {
            size_t from = l ? c.at[l - 1] : 0, to = l < c.n ? c.at[l] : n;
            struct stretch in = largest_of_any(s, score + from, to - from);
            if (in.size > best.size) best = (struct stretch){from + in.from, from + in.to, in.size};
        }
        if (!(best.size > 0)) break;
        explained += best.size * best.size;
        bool reaches_end = best.to == n;
        for (size_t l = 0; l < c.n; l++) reaches_end = reaches_end || c.at[l] == best.to;
        add_cut(&c, best.from);
        if (!reaches_end) add_cut(&c, best.to);
    }
    c.size = sqrt(explained);
    return c;
}

static struct cuts largest(struct search *s, const double *score, size_t n, enum kind kind)
{
    if (kind >= TWO) return largest_several(s, score, n, kind == TWO ? 2 : STRETCHES_MOST);
    fill_sums(s, score, n);
    struct stretch one = kind == STEP ? largest_step(s->sums, n) : largest_pulse(s->sums, n);
    return (struct cuts){.at = {one.from, one.to}, .n = one.to < n ? 2 : 1, .size = one.size};
}

/* Z is measured by a spread that the step itself is part of, so it ends at sqrt(n - 1) however clear the step is. Over
 * the spread that is left beside the step it has no end; only there may it be divided by what neighbours share. */
static double beside_step(double z, size_t n)
{
    return z / sqrt(fmax(1 - z * z / (double)(n - 1), 1e-9));
}

/* ---- one segment ---- */

/* The share of shuffled histories whose largest is as large; ends once it is surely above alpha. */
static double chance_of(struct search *s, enum kind kind, size_t n, double size)
{
    unsigned as_large = 0, enough = (unsigned)(kind_alpha[kind] * (SHUFFLES + 1));
    struct rng r;
    rng_seed(&r, seed_of(s->score, n));
    memcpy(s->shuffled, s->score, n * sizeof *s->shuffled);
    for (unsigned i = 0; i < SHUFFLES && as_large <= enough; i++) {
        shuffle(&r, s->shuffled, n);
        double by_chance = beside_step(largest(s, s->shuffled, n, kind).size, n);
        as_large += by_chance * s->inflation >= beside_step(size, n);
    }
    return (1.0 + as_large) / (SHUFFLES + 1);
}

/* The few points of a new level must agree on it: two outliers and a neighbour are none. */
static bool points_agree(const double *y, size_t n, double own, double other)
{
    size_t nearer = 0;
    if (n >= FEW) return true;
    for (size_t i = 0; i < n; i++) nearer += fabs(y[i] - own) < fabs(y[i] - other);
    return nearer >= n - n / 4;
}

static tare_status both_agree(const struct search *s, struct part a, struct part b, bool *is)
{
    double left = 0, right = 0;
    tare_status status = stats_median(s->y + a.from, a.to - a.from, &left, s->err);
    if (status == TARE_OK) status = stats_median(s->y + b.from, b.to - b.from, &right, s->err);
    *is = *is && points_agree(s->y + a.from, a.to - a.from, left, right) &&
          points_agree(s->y + b.from, b.to - b.from, right, left);
    return status;
}

/* Do the few points of each of these levels agree, with both neighbours? */
static tare_status all_agree(const struct search *s, struct part p, const struct cuts *c, bool *is)
{
    tare_status status = TARE_OK;
    for (size_t i = 0; i < c->n && status == TARE_OK && *is; i++) {
        struct part before = {i ? c->at[i - 1] : p.from, c->at[i]};
        struct part after = {c->at[i], i + 1 < c->n ? c->at[i + 1] : p.to};
        status = both_agree(s, before, after, is);
    }
    return status;
}

/* Are there other levels within this part? *out is where they begin: nowhere when there are none. */
static tare_status find_levels(struct search *s, struct part p, struct cuts *out, double *chance)
{
    size_t n = p.to - p.from;
    bool is = false;
    out->n = 0;
    tare_status status = TARE_OK;
    if (n < 2 * TREND_MIN_SIDE) return TARE_OK;
    for (enum kind kind = 0; kind < KINDS && status == TARE_OK && !is; kind++) {
        status = scores_of(s->y + p.from, n, kind == STEP ? CLIP : CLIP_PULSE, s->score, s->err);
        if (status != TARE_OK) break;
        struct cuts best = largest(s, s->score, n, kind);
        if (best.size <= 0) continue;
        *chance = chance_of(s, kind, n, best.size);
        is = *chance <= kind_alpha[kind];
        if (!is) continue;
        for (size_t i = 0; i < best.n; i++) best.at[i] += p.from;
        status = all_agree(s, p, &best, &is);
        if (is) *out = best;
    }
    return status;
}

static tare_status push_changes(struct search *s, const struct cuts *c, double chance)
{
    tare_status status = TARE_OK;
    for (size_t i = 0; i < c->n && status == TARE_OK; i++) {
        struct trend_change change = {.at = c->at[i], .p = chance};
        status = vec_push(&s->t->changes, change, s->err);
    }
    return status;
}

/* Cut, then look into all sides; parts wait on a stack of their own. */
static tare_status split_all(struct search *s)
{
    vec_clear(&s->t->changes);
    VEC(struct part) todo = VEC_INIT;
    struct part whole = {0, s->n};
    tare_status status = vec_push(&todo, whole, s->err);
    while (status == TARE_OK && todo.n) {
        struct part p = vec_pop(&todo);
        struct cuts c;
        double chance = 1;
        status = find_levels(s, p, &c, &chance);
        if (status == TARE_OK) status = push_changes(s, &c, chance);
        for (size_t i = 0; c.n && i <= c.n && status == TARE_OK; i++) {
            struct part in = {i ? c.at[i - 1] : p.from, i < c.n ? c.at[i] : p.to};
            status = vec_push(&todo, in, s->err);
        }
    }
    vec_release(&todo);
    return status;
}

static void sort_changes(struct trend_change *c, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && c[j - 1].at > c[j].at; j--) {
            struct trend_change t = c[j];
            c[j] = c[j - 1];
            c[j - 1] = t;
        }
}

/* ---- again, with what is known of the noise ---- */

/* score[]: each run's distance from its level, the stretches of `c` being levels too; in robust deviations, cut, with
 * standard deviation 1. *scale: one such deviation, 0 if there is none. */
static tare_status residuals(struct search *s, const struct cuts *c, double *scale)
{
    double mad = 0, square = 0, median = 0;
    size_t at = 0, k = 0, found = s->t->changes.n, levels = found + c->n + 1;
    tare_status status = TARE_OK;
    for (size_t i = 0, from = 0; i < levels && status == TARE_OK; i++, from = at) {
        size_t next = i - k < found ? s->t->changes.items[i - k].at : s->n;
        at = k < c->n && c->at[k] < next ? c->at[k++] : next;
        status = stats_median(s->y + from, at - from, &median, s->err);
        for (size_t j = from; j < at; j++) s->score[j] = s->y[j] - median;
    }
    if (status == TARE_OK) status = stats_mad(s->score, s->n, &mad, s->err);
    for (size_t j = 0; j < s->n && mad > 0; j++) {
        s->score[j] = fmax(-CLIP_PULSE, fmin(CLIP_PULSE, s->score[j] / (MAD_TO_SD * mad)));
        square += s->score[j] * s->score[j];
    }
    double sd = s->n > levels ? sqrt(square / (double)(s->n - levels)) : 0;
    for (size_t j = 0; j < s->n && sd > 0; j++) s->score[j] /= sd;
    *scale = MAD_TO_SD * mad * sd;
    return status;
}

/* As chance_of(), of a stretch in n runs: they are drawn from what is left of all runs beside it. */
static double chance_among_all(struct search *s, enum kind kind, size_t n, double size)
{
    unsigned as_large = 0, enough = (unsigned)(kind_alpha[kind] * (SHUFFLES + 1));
    struct rng r;
    rng_seed(&r, seed_of(s->score, s->n));
    memcpy(s->shuffled, s->score, s->n * sizeof *s->shuffled);
    for (unsigned i = 0; i < SHUFFLES && as_large <= enough; i++) {
        shuffle(&r, s->shuffled, s->n);
        double by_chance = beside_step(largest(s, s->shuffled, n, kind).size, s->n);
        as_large += by_chance * s->inflation >= size;
    }
    return (1.0 + as_large) / (SHUFFLES + 1);
}

/* A level of few runs cannot be told from chance by shuffling those around it alone: four of sixteen lie together by
 * chance once in hundreds. Against the noise of the whole history they can. */
static tare_status find_among_all(struct search *s, struct part p, struct cuts *out, double *chance)
{
    size_t n = p.to - p.from;
    bool is = false;
    out->n = 0;
    tare_status status = TARE_OK;
    if (n < 2 * TREND_MIN_SIDE) return TARE_OK;
    for (enum kind kind = 0; kind <= PULSE && status == TARE_OK && !is; kind++) {
        struct cuts none = {.n = 0}, best;
        double scale = 0;
        status = residuals(s, &none, &scale);
        if (status != TARE_OK || !(scale > 0)) break;
        best = largest(s, s->score + p.from, n, kind);
        if (best.size <= 0) continue;
        best.size *= scale;
        for (size_t i = 0; i < best.n; i++) best.at[i] += p.from;
        status = residuals(s, &best, &scale);
        if (status != TARE_OK || !(scale > 0)) break;
        *chance = chance_among_all(s, kind, n, best.size / scale);
        is = *chance <= kind_alpha[kind];
        if (is) status = all_agree(s, p, &best, &is);
        if (is) *out = best;
    }
    return status;
}

/* The changes, in order. */
static tare_status search_all(struct search *s)
{
    tare_status status = split_all(s);
    size_t before = 0;
    sort_changes(s->t->changes.items, s->t->changes.n);
    while (status == TARE_OK && s->t->changes.n > before) {
        before = s->t->changes.n;
        for (size_t i = 0; i <= s->t->changes.n && status == TARE_OK; i++) {
            const struct trend_change *at = s->t->changes.items;
            struct part p = {i ? at[i - 1].at : 0, i < s->t->changes.n ? at[i].at : s->n};
            struct cuts c;
            double chance = 1;
            status = find_among_all(s, p, &c, &chance);
            if (status == TARE_OK) status = push_changes(s, &c, chance);
            sort_changes(s->t->changes.items, s->t->changes.n);
        }
    }
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

/* A value far from both levels is cut where they are looked for, so that one beside a high pulse may seem to belong to
 * it. With the levels known each change moves to where the distances of all values to their own level are least. */
static tare_status place_changes(const struct search *s, struct trend *t)
{
    tare_status status = fill_levels(s, t);
    for (size_t i = 0; i < t->changes.n && status == TARE_OK; i++) {
        const struct trend_level *a = &t->levels.items[i], *b = a + 1;
        size_t at = a->to, from = i ? t->changes.items[i - 1].at : 0, end = b->to - TREND_MIN_SIDE;
        double more = 0, least = 0; /* distance by which a change at k is worse than one at a->to */
        for (size_t k = a->to; k < end && k < a->to + NEAR;) {
            more += fabs(s->y[k] - a->median) - fabs(s->y[k] - b->median);
            k++;
            if (more < least) least = more, at = k;
        }
        more = 0;
        for (size_t k = a->to; k > from + TREND_MIN_SIDE && k + NEAR > a->to;) {
            k--;
            more += fabs(s->y[k] - b->median) - fabs(s->y[k] - a->median);
            if (more < least) least = more, at = k;
        }
        t->changes.items[i].at = at;
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

/* By how much a level is above another: one estimate, whoever asks, so that no two lines tell different ones. */
static tare_status step_of(const struct search *s, const struct trend_level *a, const struct trend_level *b,
                           struct interval *out)
{
    return shift_between((struct stats_sample){s->y + a->from, a->to - a->from},
                         (struct stats_sample){s->y + b->from, b->to - b->from}, LEVEL, out, s->err);
}

static tare_status fill_effects(const struct search *s, struct trend *t)
{
    tare_status status = TARE_OK;
    for (size_t i = 0; i < t->changes.n && status == TARE_OK; i++) {
        struct trend_change *c = &t->changes.items[i];
        struct interval d;
        status = step_of(s, &t->levels.items[i], &t->levels.items[i + 1], &d);
        if (status != TARE_OK) break;
        c->ratio = (struct interval){exp(d.value), exp(d.lo), exp(d.hi)};
        c->worse = s->o->less_is_worse ? d.value < 0 : d.value > 0;
        c->recent = c->at + TREND_RECENT >= s->n;
    }
    return status;
}

static tare_status fill_creep(const struct search *s, struct trend *t)
{
    struct interval d;
    double sign = s->o->less_is_worse ? -1 : 1;
    for (size_t i = 0; i < t->levels.n; i++)
        if (sign * t->levels.items[i].median < sign * t->levels.items[t->creep.best].median)
            t->creep.best = i;
    t->creep.ratio = 1;
    if (t->creep.best + 1 == t->levels.n) return TARE_OK;
    tare_status status = step_of(s, &t->levels.items[t->creep.best], vec_last(&t->levels), &d);
    if (status != TARE_OK) return status;
    t->creep.ratio = exp(d.value);
    t->creep.worse = sign * d.value >= log1p(s->o->creep);
    return TARE_OK;
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

/* What the largest step reaches by chance, from shuffles of the runs at the level now and of some of them again
 * in the place of those to come. */
static double critical_step(struct search *s, struct trend_level now, size_t n)
{
    enum { TRIES = 999 };
    double *most = mem_new(TRIES, sizeof *most), z;
    struct rng r;
    for (size_t i = 0; i < n; i++) s->shuffled[i] = s->y[now.from + i % (now.to - now.from)];
    if (!most || scores_of(s->shuffled, n, CLIP, s->score, NULL) != TARE_OK) return mem_free(most), NAN;
    rng_seed(&r, seed_of(s->y, s->n));
    for (size_t i = 0; i < TRIES; i++) {
        shuffle(&r, s->score, n);
        most[i] = largest(s, s->score, n, STEP).size;
    }
    stats_sort(most, TRIES);
    z = stats_quantile_sorted(most, TRIES, 1 - kind_alpha[STEP]);
    mem_free(most);
    return beside_step(z, n);
}

/* The step that 8 runs at a new level would show 9 times in 10: beside itself it must reach what shuffles reach by
 * chance, plus the quantile of 9 in 10 for its own noise and for how well so few runs tell the noise. One that must be
 * larger than what scores are cut at is not sure to be seen. */
static void fill_smallest(struct search *s, struct trend *t)
{
    const struct trend_level *now = vec_last(&t->levels);
    size_t before = now->to - now->from, n = before + RUNS_TO_SEE;
    t->smallest = NAN;
    if (before < 2 * TREND_MIN_SIDE || isnan(t->noise)) return;
    double c = critical_step(s, *now, n), doubt = sqrt(1 + c * c / (double)(before - 1));
    double allowed = fmin(MOST_MEMORY, t->memory + (n < ENOUGH_FOR_MEMORY ? 0 : BIAS / (double)n));
    double factor = fmax(s->inflation, sqrt((1 + allowed) / (1 - allowed)));
    double z = (c + stats_normal_quantile(CHANCE_TO_SEE) * doubt) * factor;
    double deviations = z * sqrt((double)n / ((double)RUNS_TO_SEE * (double)before));
    if (deviations < CLIP) t->smallest = fmax(expm1(deviations * t->noise), s->o->min_effect);
}

/* ---- all of it ---- */

/* How neighbours resemble each other beside all levels found: a step, or a pulse with its return, must not pass for
 * resemblance. What finding and fitting levels takes away is given back: the more, the more alike neighbours are. */
static double correlation(struct search *s, double *allowed)
{
    const struct trend_change *found = s->t->changes.items;
    size_t n = s->t->changes.n;
    double together = 0, square = 0, levels = (double)(n + 1);
    for (size_t c = 0; c <= n; c++) {
        size_t from = c ? found[c - 1].at : 0, to = c < n ? found[c].at : s->n;
        double mean = stats_mean(s->score + from, to - from);
        for (size_t i = from; i < to; i++) s->score[i] -= mean;
    }
    for (size_t i = 0; i < s->n; i++) square += s->score[i] * s->score[i];
    for (size_t i = 1; i < s->n; i++) together += s->score[i] * s->score[i - 1];
    if (square < 1e-9 * (double)s->n) return 0;
    double r = fmin(MOST_MEMORY, together / square), seen = fmax(0, r);
    double fitted = BIAS * levels + BIAS_MORE * fmax(levels - PULSE_LEVELS, 0);
    *allowed = fmax(0, fmin(MOST_MEMORY, r + fitted / (double)s->n * (1 + seen) / (1 - seen)));
    return seen;
}

/* About the levels that a search without any allowance finds; where it finds none, about those of the largest step. */
static tare_status find_memory(struct search *s, double *memory)
{
    double allowed = 0;
    tare_status status = scores_of(s->y, s->n, CLIP, s->score, s->err);
    if (status == TARE_OK && s->t->changes.n == 0) {
        struct trend_change c = {.at = largest(s, s->score, s->n, STEP).at[0]};
        if (c.at == 0) return TARE_OK; /* all are equal */
        status = vec_push(&s->t->changes, c, s->err);
    }
    if (status == TARE_OK) *memory = correlation(s, &allowed);
    /* Sums of values that resemble their neighbours spread by this factor more than shuffled ones. */
    s->inflation = sqrt((1 + allowed) / (1 - allowed));
    return status;
}

/* The search runs twice: the first takes the runs for independent, and only about the levels that it finds can be seen
 * how much neighbours resemble each other; the second is stricter by that much. Then each step works on what the one
 * before it left over, and the noise is that about the levels which remain. */
static tare_status analyse_history(struct search *s, struct trend *out)
{
    s->inflation = 1;
    tare_status status = search_all(s);
    if (s->n >= ENOUGH_FOR_MEMORY) {
        if (status == TARE_OK) status = find_memory(s, &out->memory);
        if (status == TARE_OK) status = search_all(s);
    }
    if (status == TARE_OK) status = place_changes(s, out);
    if (status == TARE_OK) status = keep_worthy(s, out);
    if (status == TARE_OK) status = fill_effects(s, out);
    if (status == TARE_OK) status = fill_noise(s, out);
    if (status == TARE_OK) status = fill_creep(s, out);
    if (status == TARE_OK) fill_smallest(s, out);
    return status;
}

void trend_release(struct trend *t)
{
    vec_release(&t->levels);
    vec_release(&t->changes);
}

/* The scratch arrays are longer than the history, because fill_smallest() adds the runs that are still to come. */
tare_status trend_find(const double *y, size_t n, const struct trend_options *o, struct trend *out,
                       tare_error *err)
{
    struct search s = {.y = y, .n = n, .o = o, .t = out, .err = err};
    *out = (struct trend){.noise = NAN, .smallest = NAN};
    if (n == 0 || n > TREND_MAX)
        return error_set(err, TARE_INVALID, "a history of %zu runs: 1 to %d can be searched", n, TREND_MAX);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(y[i]))
            return error_set(err, TARE_INVALID, "value %zu of the history is no number", i + 1);
    size_t room = n + RUNS_TO_SEE + 1; /* of each scratch array */
    s.score = mem_new(room, 3 * sizeof *s.score);
    if (!s.score) return error_nomem(err, "%zu runs", n);
    s.shuffled = s.score + room;
    s.sums = s.shuffled + room;
    tare_status status = analyse_history(&s, out);
    mem_free(s.score);
    return status;
}
