/* SPDX-License-Identifier: MIT
 * between_runs.c - see between_runs.h. */
#include "analyze/compare/between_runs.h"

#include <math.h>
#include <string.h>

#include "analyze/compare/paired.h"
#include "analyze/judge/plausible.h"
#include "core/mem.h"

/* Runs that agree to the last digit are no proof that there is no spread. */
#define LEAST_SD 0.001
/* Degrees of freedom of between_past_sd() per difference: with k - 1 of them, 1 % became 1.9 % at k = 8 (normal
 * noise, no minimum effect); with 0.4 (k - 1), sd 9 % and min_effect 2 %, it is 0.3 to 0.6 %, and 0.7 to 1.7 %
 * with the tails of t with 4 degrees. */
#define PAST_FREEDOM 0.4
#define POWER 0.95
#define LEAST_ROOM 0.01 /* between them, where they are the same limit */
#define WIDTH_SHARE 0.44 /* of the room between min_effect and detect: see paired_width() */

tare_status between_past_sd(struct stats_sample past, double *out, tare_error *err)
{
    if (past.n < 2) return error_set(err, TARE_INVALID, "two runs at least make a difference");
    size_t n = past.n - 1;
    double *d = mem_new(n, sizeof *d), median, squares = 0, rest = 0;
    if (!d) return error_nomem(err, "%zu runs", past.n);
    for (size_t i = 0; i < n; i++) d[i] = fabs(past.x[i + 1] - past.x[i]);
    stats_sort(d, n);
    median = stats_median_sorted(d, n);
    for (size_t i = 0; i + 1 < n; i++)
        squares += d[i] * d[i]; /* without the greatest, which may be a change */
    mem_free(d);
    if (n > 1) rest = sqrt(squares / (double)(n - 1));
    *out = fmax(1.4826 * median, rest) / sqrt(2);
    return TARE_OK;
}

struct evidence {
    double error; /* standard error of the difference */
    double freedom;
};

static double spread(struct stats_sample s, double least)
{
    return fmax(stats_stddev(s.x, s.n), fmax(least, LEAST_SD));
}

/* Welch: each side has its own spread, and the difference of the means the root of the sum of both variances over
 * their runs. Satterthwaite's degrees of freedom say how well that sum is known: nearer to those of the side whose
 * variance weighs more. A new side of one or two runs has no spread to speak of: the base's is taken for both, which
 * makes it the interval in which one more run of the base would lie. */
static struct evidence from_sides(const struct between_sides *in, double least, double *sd)
{
    double na = (double)in->base.n, nb = (double)in->new_.n, a = spread(in->base, least);
    if (in->new_.n < BETWEEN_RUNS_MIN) {
        *sd = a;
        return (struct evidence){a * sqrt(1 / na + 1 / nb), na - 1};
    }
    double b = spread(in->new_, least);
    double va = a * a / na, vb = b * b / nb;
    *sd = sqrt((a * a + b * b) / 2);
    return (struct evidence){sqrt(va + vb),
                             (va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1))};
}

static struct evidence from_past(const struct between_sides *in, double sd)
{
    return (struct evidence){sd * sqrt(1.0 / (double)in->base.n + 1.0 / (double)in->new_.n),
                             PAST_FREEDOM * (double)(in->past.n - 1)};
}

/* Runs a side with which the interval is narrow enough to tell `detect` from `min_effect`. */
static size_t runs_needed(double sd, const struct between_rule *r)
{
    double width = WIDTH_SHARE * fmax(log1p(r->detect) - log1p(r->min_effect), LEAST_ROOM);
    double ratio = stats_normal_quantile(1 - r->alpha) * sd / width, least = floor(2 * ratio * ratio);
    if (!(least < BETWEEN_RUNS_MOST)) return 0;
    for (size_t n = (size_t)fmax(least, BETWEEN_RUNS_MIN); n <= BETWEEN_RUNS_MOST;
         n++) { /* t needs a few more than normal */
        double half = stats_t_quantile(1 - r->alpha, 2 * (double)(n - 1)) * sd * sqrt(2 / (double)n);
        if (half <= width) return n;
    }
    return 0;
}

static void judge_difference(struct between_result *out, const struct evidence *e,
                             const struct between_sides *in, const struct between_rule *r)
{
    double half = stats_t_quantile((1 + r->level) / 2, e->freedom) * e->error;
    double gate = stats_t_quantile(1 - r->alpha, e->freedom);
    double worse = in->more ? -out->log : out->log; /* more is better: up is down */
    out->lo = out->log - half;
    out->hi = out->log + half;
    out->gate_lo = out->log - gate * e->error;
    out->gate_hi = out->log + gate * e->error;
    out->p_worse = stats_t_cdf((log1p(r->min_effect) - worse) / e->error, e->freedom);
    out->mde = expm1(log1p(r->min_effect) + (gate + stats_t_quantile(POWER, e->freedom)) * e->error);
    double lo = in->more ? -out->gate_hi : out->gate_lo, hi = in->more ? -out->gate_lo : out->gate_hi;
    enum paired_verdict v = paired_decide(lo, hi, r->min_effect, r->detect);
    out->verdict = paired_verdict_name(v);
    if (v == PAIRED_INCONCLUSIVE) out->needed = runs_needed(out->sd, r);
}

double between_far(const struct between_rule *r)
{
    return plausible_ratio(r->plausible, r->min_effect, r->alpha);
}

double between_far_bound(const struct between_rule *r)
{
    return plausible_ratio(r->plausible_bound, r->min_effect, r->alpha);
}

/* One run a side, as far as is known. Within the bound nothing is said; beyond it, it is a verdict. */
static bool is_far(struct between_result *out, double log, double sd, const struct between_sides *in,
                   const struct between_rule *r)
{
    const double normal = 1e6; /* degrees of freedom */
    struct between_result far = *out;
    if (!(sd > 0)) return false;
    far.method = BETWEEN_FAR;
    far.log = log;
    judge_difference(&far, &(struct evidence){sd * sqrt(2), normal}, in, r);
    if (far.verdict[0] != 'r' && strcmp(far.verdict, "improved") != 0) return false;
    *out = far;
    return true;
}

/* The middles first. Where they are within what a busy machine does, the fastest runs may not be: they bound the ratio
 * on one side, and the middles on the other. */
static void judge_far(struct between_result *out, const struct between_sides *in,
                      const struct between_rule *r)
{
    struct between_result wide = *out;
    if (is_far(out, out->log, r->plausible, in, r)) return;
    if (!is_far(out, in->bound, r->plausible_bound, in, r)) return;
    judge_difference(&wide, &(struct evidence){fmax(r->plausible, r->plausible_bound) * sqrt(2), 1e6}, in, r);
    out->by_bound = true;
    out->log = wide.log;
    *(in->bound > 0 ? &out->hi : &out->lo) = in->bound > 0 ? wide.hi : wide.lo;
    *(in->bound > 0 ? &out->gate_hi : &out->gate_lo) = in->bound > 0 ? wide.gate_hi : wide.gate_lo;
}

/* The best witness of the noise between runs decides. The sides' own spread comes first, but a new side of one or two
 * runs gives way to a long past. Without either, only a difference beyond all plausible noise is a verdict. */
tare_status between_runs(const struct between_sides *in, const struct between_rule *r,
                         struct between_result *out, tare_error *err)
{
    struct evidence e;
    if (in->base.n == 0 || in->new_.n == 0) return error_set(err, TARE_INVALID, "a side without a run");
    *out = (struct between_result){.log = stats_mean(in->new_.x, in->new_.n) -
                                          stats_mean(in->base.x, in->base.n),
                                   .lo = -INFINITY,
                                   .hi = INFINITY,
                                   .gate_lo = -INFINITY,
                                   .gate_hi = INFINITY,
                                   .p_worse = NAN,
                                   .sd = NAN,
                                   .mde = NAN,
                                   .verdict = "unverified"};
    if (!isfinite(out->log)) return error_set(err, TARE_INVALID, "a run whose value has no logarithm");
    if (in->base.n >= BETWEEN_RUNS_MIN && (in->new_.n >= BETWEEN_RUNS_MIN || in->past.n < BETWEEN_PAST_MIN)) {
        out->method = BETWEEN_RUNS;
        e = from_sides(in, r->least_sd, &out->sd);
    } else if (in->past.n >= BETWEEN_PAST_MIN) {
        tare_status s = between_past_sd(in->past, &out->sd, err);
        if (s < 0) return s;
        out->method = BETWEEN_PAST;
        out->sd = fmax(out->sd, LEAST_SD);
        e = from_past(in, out->sd);
    } else {
        judge_far(out, in, r);
        return TARE_OK;
    }
    judge_difference(out, &e, in, r);
    return TARE_OK;
}
