/* SPDX-License-Identifier: MIT
 * slo.c - see slo.h. */
#include "analyze/sla/slo.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"

enum { HEAT_SCALE = 2 };

double slo_burn(uint64_t bad, uint64_t all, double objective)
{
    return all ? (double)bad / (double)all / (1 - objective) : NAN;
}

static const struct tally_slo *find(const struct tally *t, uint64_t threshold_ns, double objective)
{
    for (size_t i = 0; i < t->n_slo; i++)
        if (t->slo[i].threshold_ns == threshold_ns && t->slo[i].objective == objective) return &t->slo[i];
    return NULL;
}

/* Errors have no promise of their own: each breaks all of them. */
double slo_burn_of(const struct tally *t, uint64_t threshold_ns, double objective)
{
    const struct tally_slo *o = find(t, threshold_ns, objective);
    if (!o) return NAN;
    return slo_burn(o->breached + t->errors, o->within + o->breached + t->errors, objective);
}

/* The percentile q with the bounds between which the exact one lies. With fewer than 1 / (1 - q) requests the rank is
 * the last one's: that is max, and no percentile. */
static struct run_estimate quantile(const struct hist *h, double q)
{
    if (h->count == 0 || (double)h->count * (1 - q) < 1 - 1e-9) return (struct run_estimate){0};
    double v = hist_quantile(h, q), min = (double)h->min, max = (double)h->max;
    double lo = floor(fmax(v / (1 + HIST_ERROR), min)), hi = ceil(fmin(v / (1 - HIST_ERROR), max));
    return run_estimate(round(v), fmin(lo, round(v)), fmax(hi, round(v)));
}

struct run_estimate slo_ratio(const struct hist *h, const struct hist *base, double q)
{
    struct run_estimate a = quantile(h, q), b = quantile(base, q);
    if (!a.known || !b.known || b.lo.v <= 0) return (struct run_estimate){0};
    return run_estimate(a.value / b.value, a.lo.v / b.hi.v, a.hi.v / b.lo.v);
}

static void fill_heat(struct sla *doc, struct run_histogram *to, const struct hist *h)
{
    int first;
    size_t n;
    uint64_t *counts = hist_coarse(h, HEAT_SCALE, &first, &n);
    if (!counts) return;
    uint64_t *kept = arena_new(&doc->arena, n, sizeof *kept);
    if (kept) {
        memcpy(kept, counts, n * sizeof *kept);
        *to = (struct run_histogram){true, HEAT_SCALE, first, h->zeros, kept, n};
    }
    mem_free(counts);
}

static void fill_latency(struct sla *doc, struct sla_latency *to, const struct hist *h, bool heat)
{
    if (h->count == 0) return;
    *to = (struct sla_latency){.known = true,
                               .count = h->count,
                               .mean = known_u64(h->sum / h->count),
                               .min = known_u64(h->min),
                               .max = known_u64(h->max),
                               .p50 = quantile(h, 0.5),
                               .p90 = quantile(h, 0.9),
                               .p95 = quantile(h, 0.95),
                               .p99 = quantile(h, 0.99),
                               .p999 = quantile(h, 0.999),
                               .p9999 = quantile(h, 0.9999)};
    if (heat) fill_heat(doc, &to->histogram, h);
}

void slo_span(struct sla *doc, struct sla_span *to, const struct tally *t, bool heat)
{
    uint64_t n = tally_requests(t);
    to->requests = n;
    to->errors = t->errors;
    to->cancelled = t->cancelled;
    to->lost = t->lost;
    if (n) to->error_rate = known_f64((double)t->errors / (double)n);
    fill_latency(doc, &to->latency_ns, &t->latency, heat);
    fill_latency(doc, &to->first_byte_ns, &t->first_byte, false);
    for (size_t i = 0; i < t->n_slo; i++) {
        const struct tally_slo *from = &t->slo[i];
        struct sla_slo *o = RUN_LIST_ADD(&doc->arena, &to->slo);
        if (!o) return;
        uint64_t all = from->within + from->breached + t->errors;
        *o = (struct sla_slo){.threshold_ns = from->threshold_ns,
                              .objective = from->objective,
                              .within = from->within,
                              .breached = from->breached,
                              .errors = t->errors,
                              .burn = known_if_finite(slo_burn(all - from->within, all, from->objective))};
        if (all) o->attainment = known_f64((double)from->within / (double)all);
    }
}

void slo_windows(struct sla_span *to, const struct tally *hour, const struct tally *six_hours)
{
    for (size_t i = 0; i < to->slo.n; i++) {
        struct sla_slo *o = to->slo.at[i];
        o->burn_1h = known_if_finite(slo_burn_of(hour, o->threshold_ns, o->objective));
        o->burn_6h = known_if_finite(slo_burn_of(six_hours, o->threshold_ns, o->objective));
    }
}

void slo_add_worst(struct sla *doc, const struct tally *t)
{
    for (size_t i = 0; i < t->n_worst; i++) {
        struct requests_worst *w = RUN_LIST_ADD(&doc->arena, &doc->worst);
        if (!w) return;
        *w = (struct requests_worst){.id = arena_str(&doc->arena, t->worst[i]->id),
                                     .at_ms = t->worst[i]->at_ms,
                                     .latency_ns = t->worst[i]->latency_ns};
        if (t->worst[i]->failed[0]) w->failed = arena_str(&doc->arena, t->worst[i]->failed);
    }
}
