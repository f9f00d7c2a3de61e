/* SPDX-License-Identifier: MIT
 * finding_sweep.c - rules that set cases against each other: batch, length, threads, variant. Every claim
 * "faster" or "no gain" is one of the interval of a ratio, not of two means. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/judge/finding.h"
#include "core/stats.h"

#define LOSS_WORTH_TELLING 0.2 /* of throughput */
#define GAIN_PER_DOUBLING 0.1  /* less than this is not worth a doubling */

typedef const struct run_case *const cases_of;

static struct run_estimate rate_of(const struct run_case *c)
{
    struct run_estimate e = {0};
    measure_named(c, "throughput", &e);
    return e;
}

static double x_of(const struct run_case *c, const char *param)
{
    double x = NAN;
    param_number(c, param, &x);
    return x;
}

static size_t fastest(cases_of *cases, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (rate_of(cases[i]).known &&
            (!rate_of(cases[best]).known || rate_of(cases[i]).value > rate_of(cases[best]).value))
            best = i;
    return best;
}

/* ---- batch ---- */

/* The smallest batch against the best one, and the first that is nearly as good. */
void find_batch_small(struct judging *j, cases_of *cases, size_t n)
{
    const struct run_case *least = cases[0], *best = cases[fastest(cases, n)];
    struct run_estimate ratio = estimate_ratio(rate_of(best), rate_of(least));
    if (!ratio.known || ratio.lo.v < 1 / (1 - LOSS_WORTH_TELLING)) return;
    size_t enough = 0;
    while (enough + 1 < n &&
           !(rate_of(cases[enough]).value >= (1 - LOSS_WORTH_TELLING) * rate_of(best).value))
        enough++;
    const char *unit = least->throughput.unit;
    struct run_finding *f =
        finding_start(j, least, "batch %g reaches %s of the throughput of batch %g (%s against %s)",
                      x_of(least, "batch"), show_percent(1 / ratio.value).s, x_of(best, "batch"),
                      show_rate(rate_of(least).value, unit).s, show_rate(rate_of(best).value, unit).s);
    finding_estimate(j, f, "speedup", ratio);
    finding_numbers(j, f, {"batch", x_of(least, "batch")}, {"best_batch", x_of(best, "batch")},
                    {"enough_batch", x_of(cases[enough], "batch")});
    double batch = x_of(cases[enough], "batch"), share = rate_of(cases[enough]).value / rate_of(best).value;
    if (cases[enough] == best)
        finding_action(j, f, "gather requests into batches of %g or more", batch);
    else
        finding_action(
            j, f,
            "gather requests into batches of %g or more; batch %g already gives %s of the highest throughput",
            batch, batch, show_percent(share).s);
}

/* Gain of throughput per doubling of the parameter from a to b, as a ratio. */
static struct run_estimate per_doubling(const struct run_case *a, const struct run_case *b, const char *param)
{
    double doublings = log2(x_of(b, param) / x_of(a, param));
    struct run_estimate r = estimate_ratio(rate_of(b), rate_of(a)), none = {0};
    if (!r.known || !(doublings > 0)) return none;
    return run_estimate(pow(r.value, 1 / doublings), pow(r.lo.v, 1 / doublings), pow(r.hi.v, 1 / doublings));
}

/* The first batch from which on no doubling is surely worth it. */
void find_batch_knee(struct judging *j, cases_of *cases, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        struct run_estimate gain = per_doubling(cases[i], cases[i + 1], "batch");
        bool flat = gain.known && gain.hi.v < 1 + GAIN_PER_DOUBLING;
        for (size_t k = i + 1; flat && k + 1 < n; k++) {
            struct run_estimate later = per_doubling(cases[k], cases[k + 1], "batch");
            flat = later.known && later.value < 1 + GAIN_PER_DOUBLING;
        }
        if (!flat) continue;
        double batch = x_of(cases[i], "batch"), next = x_of(cases[i + 1], "batch");
        struct run_finding *f = finding_start(
            j, cases[i],
            "from batch %g on, doubling the batch changes throughput by %s (%s to %s): below %.0f %%", batch,
            show_percent(gain.value - 1).s, show_percent(gain.lo.v - 1).s, show_percent(gain.hi.v - 1).s,
            GAIN_PER_DOUBLING * 100);
        finding_numbers(j, f, {"batch", batch}, {"next_batch", next});
        finding_estimate(j, f, "gain_per_doubling", gain);
        finding_action(j, f, "batch %g is enough: larger ones add latency and memory, hardly throughput",
                       batch);
        return;
    }
}

/* ---- memory over batch: a straight line with the interval of its slope ---- */

/* Least squares of memory over batch, with Student's t for the slope. */
static bool fit_line(cases_of *cases, size_t n, struct run_estimate *slope, double *at_zero)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        sx += x_of(cases[i], "batch");
        sy += OR_NAN(cases[i]->memory.delta);
    }
    double mx = sx / (double)n, my = sy / (double)n;
    for (size_t i = 0; i < n; i++) {
        double dx = x_of(cases[i], "batch") - mx;
        sxx += dx * dx;
        sxy += dx * ((double)cases[i]->memory.delta.v - my);
    }
    double b = sxy / sxx, df = (double)n - 2;
    *at_zero = my - b * mx;
    for (size_t i = 0; i < n; i++) {
        double e = (double)cases[i]->memory.delta.v - *at_zero - b * x_of(cases[i], "batch");
        left += e * e;
    }
    double half = n < 3 ? NAN : stats_t_quantile(0.975, df) * sqrt(left / df / sxx);
    *slope = run_estimate(b, b - half, b + half);
    return isfinite(half); /* not where memory of a case is unknown, or all batches are one */
}

/* Only a slope that is surely positive, and at least 1 KiB per item, is told. The largest batch errs on the small side:
 * by the upper end of the slope's interval, within 80 % of the room, less what the process held before. */
void find_batch_memory(struct judging *j, cases_of *cases, size_t n)
{
    struct run_estimate slope;
    double at_zero, room = memory_room(j->run);
    if (!fit_line(cases, n, &slope, &at_zero) || !(slope.lo.v > 0) || slope.value < 0x1p10) return;
    const struct run_case *last = cases[n - 1];
    struct run_finding *f =
        finding_start(j, NULL, "memory grows by %s per item in the batch (%s to %s); batch %g takes %s",
                      show_bytes(slope.value).s, show_bytes(slope.lo.v).s, show_bytes(slope.hi.v).s,
                      x_of(last, "batch"), show_bytes((double)last->memory.delta.v).s);
    finding_estimate(j, f, "bytes_per_batch", slope);
    finding_number(j, f, "bytes_at_zero", round(at_zero));
    double fits = floor((room * 0.8 - OR_NAN(last->memory.rss_before) - fmax(at_zero, 0)) / slope.hi.v);
    if (isnan(fits)) return;
    finding_number(j, f, "largest_batch_estimated", fmax(fits, 0));
    finding_action(j, f, "estimated: up to batch %s fits into 80 %% of %s", show_number(fmax(fits, 0)).s,
                   show_bytes(room).s);
}

/* ---- length ---- */

/* The longest inputs against the shortest: time that grows faster than the length is the model's, not the padding's. */
void find_long_input(struct judging *j, cases_of *cases, size_t n)
{
    const struct run_case *a = cases[0], *b = cases[n - 1];
    struct run_estimate rate = estimate_ratio(rate_of(b), rate_of(a)), ta = {0}, tb = {0};
    if (!rate.known || rate.hi.v > 1 - LOSS_WORTH_TELLING) return;
    double lengths = x_of(b, "seq") / x_of(a, "seq");
    measure_named(a, "latency.p50", &ta);
    measure_named(b, "latency.p50", &tb);
    struct run_estimate time = estimate_ratio(tb, ta);
    bool bent = time.known && lengths > 1 && time.lo.v > lengths;
    struct run_finding *f = finding_start(
        j, b, "inputs of length %g lose %s of the throughput of length %g (%s against %s)%s", x_of(b, "seq"),
        show_percent(1 - rate.value).s, x_of(a, "seq"), show_rate(rate_of(b).value, b->throughput.unit).s,
        show_rate(rate_of(a).value, a->throughput.unit).s,
        bent ? "; more than the length alone explains" : "");
    finding_estimate(j, f, "throughput_ratio", rate);
    finding_number(j, f, "length_ratio", lengths);
    if (time.known) finding_number(j, f, "exponent", log(time.value) / log(lengths));
    if (bent) {
        if (f) f->severity = "warn";
        finding_number(j, f, "super_linear_share", 1 - lengths / time.value);
        finding_action(
            j, f, "truncate inputs where quality allows: %s of the time at length %g is beyond linear growth",
            show_percent(1 - lengths / time.value).s, x_of(b, "seq"));
    } else {
        finding_action(j, f, "sort inputs by length into batches, and do not pad short ones to length %g",
                       x_of(b, "seq"));
    }
}

/* ---- threads ---- */

void find_threads_slower(struct judging *j, cases_of *cases, size_t n)
{
    size_t best = fastest(cases, n);
    const struct run_case *most = cases[n - 1];
    struct run_estimate ratio = estimate_ratio(rate_of(most), rate_of(cases[best]));
    if (best == n - 1 || !ratio.known || ratio.hi.v >= 1) return;
    struct run_finding *f = finding_start(j, most, "%g threads are %s slower than %g", x_of(most, "threads"),
                                          show_percent(1 - ratio.value).s, x_of(cases[best], "threads"));
    finding_estimate(j, f, "throughput_ratio", ratio);
    finding_numbers(j, f, {"threads", x_of(most, "threads")}, {"best_threads", x_of(cases[best], "threads")});
    finding_action(j, f, "use %s", show_count(x_of(cases[best], "threads"), "thread").s);
}

void find_threads_idle(struct judging *j, cases_of *cases, size_t n)
{
    const struct run_case *a = cases[0], *b = cases[n - 1];
    struct run_estimate gain = per_doubling(a, b, "threads"), all = estimate_ratio(rate_of(b), rate_of(a));
    if (!gain.known || gain.hi.v >= 1 + GAIN_PER_DOUBLING || all.hi.v < 1)
        return; /* slower: the rule above */
    struct run_finding *f =
        finding_start(j, b, "%g threads give %s times the throughput of %g: the work does not spread",
                      x_of(b, "threads"), show_number(all.value).s, x_of(a, "threads"));
    finding_estimate(j, f, "throughput_ratio", all);
    finding_number(j, f, "efficiency", all.value * x_of(a, "threads") / x_of(b, "threads"));
    finding_action(j, f, "run %g copies with %g threads each instead, or a larger batch",
                   x_of(b, "threads") / x_of(a, "threads"), x_of(a, "threads"));
}

/* ---- variants: speed and quality side by side ---- */

static const char *variant_name(const struct run_case *c)
{
    const char *name = param_text(c, "variant");
    return *name ? name : "the original";
}

/* How the score of b stands against a, as the end of a sentence. */
static void quality(const struct run_case *a, const struct run_case *b, char *out, size_t size)
{
    bool both = a->accuracy.score.known && b->accuracy.score.known && a->accuracy.metric &&
                b->accuracy.metric && strcmp(a->accuracy.metric, b->accuracy.metric) == 0;
    bool alike = both && a->accuracy.score.value == 1 && strstr("cosine top1 equal", b->accuracy.metric);
    if (alike)
        snprintf(out, size, "; the answers agree: %.40s %.4g", b->accuracy.metric, b->accuracy.score.value);
    else if (both)
        snprintf(out, size, ", with %.40s %.4g against %.4g", b->accuracy.metric, b->accuracy.score.value,
                 a->accuracy.score.value);
    else
        snprintf(out, size, "; quality was not measured");
}

/* Faster or slower only where the whole interval lies on one side of 1. Accuracy and memory stand beside it, because
 * speed is often paid for with them. */
static void compare_variant(struct judging *j, const struct run_case *a, const struct run_case *b)
{
    struct run_estimate r = estimate_ratio(rate_of(b), rate_of(a));
    char tail[120];
    if (!r.known) return;
    quality(a, b, tail, sizeof tail);
    bool faster = r.lo.v > 1, slower = r.hi.v < 1;
    struct run_finding *f;
    if (faster || slower) {
        j->rule = finding_rule(faster ? "variant.faster" : "variant.slower");
        f = finding_start(j, b, "%.80s is %s times as fast as %.80s (%s to %s)%s", variant_name(b),
                          show_number(r.value).s, variant_name(a), show_number(r.lo.v).s,
                          show_number(r.hi.v).s, tail);
    } else {
        j->rule = finding_rule("variant.same");
        f = finding_start(j, b, "%.80s and %.80s cannot be told apart in speed (%s to %s times)%s",
                          variant_name(b), variant_name(a), show_number(r.lo.v).s, show_number(r.hi.v).s,
                          tail);
    }
    finding_estimate(j, f, "throughput_ratio", r);
    if (a->accuracy.score.known) finding_number(j, f, "accuracy_base", a->accuracy.score.value);
    if (b->accuracy.score.known) finding_number(j, f, "accuracy", b->accuracy.score.value);
    finding_number(j, f, "memory_ratio", OR_NAN(b->memory.rss_peak) / OR_NAN(a->memory.rss_peak));
}

/* Each variant against the first. */
void find_variants(struct judging *j, cases_of *cases, size_t n)
{
    for (size_t i = 1; i < n; i++) compare_variant(j, cases[0], cases[i]);
}
