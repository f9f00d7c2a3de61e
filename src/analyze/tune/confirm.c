/* SPDX-License-Identifier: MIT
 * confirm.c - verdicts on pairs: see confirm.h. The bounds are those of analyze/compare/paired.h. */
#include "analyze/tune/confirm.h"

#include <math.h>

#include "analyze/compare/paired.h"

const char *confirm_verdict_name(enum confirm_verdict v)
{
    static const char *const names[] = {
        [CONFIRM_GOING_ON] = "going on", [CONFIRM_CONFIRMED] = "confirmed", [CONFIRM_LIKELY] = "likely",
        [CONFIRM_NO_GAIN] = "no gain",   [CONFIRM_WORSE] = "worse",         [CONFIRM_NOT_SHOWN] = "not shown",
    };
    return names[v];
}

/* The gate is one of times, candidate / base: a gain is its other side. Early looks may only end on a strict bound; the
 * weaker "likely" is for the last one. */
static enum confirm_verdict decide(const struct paired_result *p, const struct confirm_rule *r, bool last)
{
    double worth = log1p(r->threshold), lo = -p->gate_hi, hi = -p->gate_lo;
    if (lo >= worth) return CONFIRM_CONFIRMED;
    if (hi < 0) return CONFIRM_WORSE;
    if (hi < worth) return CONFIRM_NO_GAIN;
    if (!last) return CONFIRM_GOING_ON;
    return lo > 0 && -p->log.value >= worth ? CONFIRM_LIKELY : CONFIRM_NOT_SHOWN;
}

static struct interval ratio_of(const struct paired_result *p)
{
    return (struct interval){exp(p->log.value), exp(p->log.lo), exp(p->log.hi)};
}

/* NAN where it was not measured. */
static tare_status judge_beside(const struct paired_series *of, const struct paired_rule *r,
                                struct interval *out, tare_error *err)
{
    struct paired_result p;
    *out = (struct interval){NAN, NAN, NAN};
    if (!of->d) return TARE_OK;
    tare_status s = paired_judge(of, r, &p, err);
    if (s == TARE_OK) *out = ratio_of(&p);
    return s;
}

tare_status confirm_judge(const struct confirm_pairs *p, const struct confirm_rule *r,
                          struct confirm_result *out, tare_error *err)
{
    struct paired_rule rule = PAIRED_RULE_INIT;
    struct paired_result wall;
    tare_status s;
    rule.alpha = r->alpha;
    rule.level = r->level;
    *out = (struct confirm_result){.pairs = p->n};
    struct paired_series series = {p->wall, p->epoch, p->n}, cpu = {p->cpu, p->epoch, p->n};
    struct paired_series memory = {p->memory, p->epoch, p->n};
    if ((s = paired_judge(&series, &rule, &wall, err)) < 0) return s;
    if ((s = judge_beside(&cpu, &rule, &out->cpu, err)) < 0) return s;
    if ((s = judge_beside(&memory, &rule, &out->memory, err)) < 0) return s;
    struct interval time = ratio_of(&wall);
    out->uses_more_cpu = out->cpu.value > 1 + r->more_cpu && out->cpu.lo > 1;
    out->gain = (struct interval){1 / time.value, 1 / time.hi, 1 / time.lo};
    if (p->n >= r->least) out->verdict = decide(&wall, r, p->n >= r->most);
    if (out->verdict != CONFIRM_GOING_ON) return TARE_OK;
    out->next = p->n < r->least ? r->least : p->n + (p->n + 3) / 4;
    if (out->next > r->most) out->next = r->most;
    return TARE_OK;
}
