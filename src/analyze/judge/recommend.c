/* SPDX-License-Identifier: MIT
 * recommend.c - which case to use, for throughput, for latency, for memory, and why in one sentence with
 * numbers. Only cases that do the same work are compared: the length of inputs is given, not chosen. Where intervals
 * cannot tell two cases apart the cheaper one is named, and it is said. Never recommends a case whose answers got worse
 * than allowed, or that is not shown to keep the limit on latency. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/judge/accuracy.h"
#include "analyze/judge/finding.h"
#include "core/mem.h"

struct choice {
    const struct run *run;
    const struct objective *o;
    const struct run_case *like; /* whose work it is about */
    bool any_work;               /* it is about all; `like` is not looked at */
    const char *metric;
    bool more_is_better;
    size_t over_limit, not_shown, worse_answers; /* cases left out */
    size_t left;
};

#define X(id, name, help) name,
const char *const objective_names[] = {OBJECTIVE_MAP(X) NULL};
#undef X

/* ---- who may be chosen ---- */

static bool answers_are_fine(const struct run *run, const struct run_case *c)
{
    double allowed = 0.01, base;
    config_number(run, "max_drop", &allowed);
    if (!c->accuracy.score.known || !c->accuracy.metric || !accuracy_reference(run, c, &base)) return true;
    return !(accuracy_drop(c->accuracy.metric, base, c->accuracy.score.value) > allowed);
}

/* "pass", "fail", or "inconclusive": the data does not show it. By the rule for targets. */
static const char *keeps_limit(const struct objective *o, const struct run_case *c)
{
    struct target limit = {.metric = "latency.p95", .op = TARGET_LE, .value = (double)o->latency_limit_ns};
    struct run_target v = {.verdict = "inconclusive"}; /* without memory nothing is shown, either */
    if (o->latency_limit_ns == 0) return "pass";
    target_judge(&limit, c, &v, NULL);
    return v.verdict;
}

static bool may_choose(struct choice *ch, const struct run_case *c, struct run_estimate *e)
{
    if ((!ch->any_work && !is_same_work(ch->run, ch->like, c)) || !measure_named(c, ch->metric, e))
        return false;
    if (!answers_are_fine(ch->run, c)) {
        ch->worse_answers++;
        return false;
    }
    char word = *keeps_limit(ch->o, c);
    ch->over_limit += word == 'f';
    ch->not_shown += word == 'i';
    ch->left += word == 'p';
    return word == 'p';
}

/* ---- cheaper ---- */

static double cost_of(const struct run_case *c, const char *param, double unknown)
{
    double x = unknown;
    param_number(c, param, &x);
    return x;
}

/* Smaller batch, then less memory, then fewer threads. */
static bool is_cheaper(const struct run_case *a, const struct run_case *b)
{
    double x = cost_of(a, "batch", 1), y = cost_of(b, "batch", 1);
    if (x != y) return x < y;
    if (a->memory.rss_peak.known && b->memory.rss_peak.known && a->memory.rss_peak.v != b->memory.rss_peak.v)
        return a->memory.rss_peak.v < b->memory.rss_peak.v;
    return cost_of(a, "threads", 0) < cost_of(b, "threads", 0);
}

/* Could b be as good as the best, as far as the data tells? */
static bool is_tied(struct choice *ch, const struct run_case *best, const struct run_case *b)
{
    struct run_estimate x, y;
    if (best == b || !measure_named(best, ch->metric, &x) || !measure_named(b, ch->metric, &y)) return false;
    struct run_estimate r = ch->more_is_better ? estimate_ratio(x, y) : estimate_ratio(y, x);
    return r.known ? r.lo.v <= 1 : x.value == y.value;
}

/* ---- the sentence ---- */

static struct shown show_metric(const struct choice *ch, const struct run_case *c)
{
    struct run_estimate e = {0};
    const struct measure *m = measure_find(ch->metric);
    measure_named(c, ch->metric, &e);
    if (m->kind == MEASURE_RATE) return show_rate(e.value, c->throughput.unit);
    return m->kind == MEASURE_BYTES ? show_bytes(e.value) : show_time(e.value);
}

/* Where the chosen case is not the one with the best value, the better one is named too: the reader must not take the
 * choice for a mistake. */
static void add_comparison(struct buf *why, const struct choice *ch, const struct run_case *best,
                           const struct run_case *chosen)
{
    const char *noun = "the most throughput";
    if (strcmp(ch->metric, "memory.peak") == 0) {
        noun = "the least memory";
        buf_add_str(why, "peak ");
    } else if (strncmp(ch->metric, "latency.", 8) == 0) {
        noun = "the shortest time";
        buf_printf(why, "%s ", ch->metric + 8);
    }
    buf_add_str(why, show_metric(ch, chosen).s);
    if (chosen == best && ch->left == 1)
        buf_add_str(why, ", the only case to choose");
    else if (chosen == best)
        buf_printf(why, ", %s of %zu cases", noun, ch->left);
    else
        buf_printf(why, ", statistically tied with %.100s (%s), and smaller", best->name,
                   show_metric(ch, best).s);
}

static void add_limits(struct buf *why, const struct choice *ch, const struct run_case *chosen)
{
    struct run_estimate p95;
    if (chosen && ch->o->latency_limit_ns && measure_named(chosen, "latency.p95", &p95))
        buf_printf(why, "; its p95 of %s keeps the limit of %s", show_time(p95.value).s,
                   show_time((double)ch->o->latency_limit_ns).s);
    if (ch->over_limit)
        buf_printf(why, "; %zu %s over that limit", ch->over_limit,
                   ch->over_limit == 1 ? "case is" : "cases are");
    if (ch->not_shown)
        buf_printf(why, "; %zu %s not shown to keep it", ch->not_shown,
                   ch->not_shown == 1 ? "case is" : "cases are");
    if (ch->worse_answers)
        buf_printf(why, "; %zu left out because %s answers got worse", ch->worse_answers,
                   ch->worse_answers == 1 ? "its" : "their");
}

/* ---- choosing ---- */

/* NULL: there is no such objective. */
static const char *metric_for(const struct run *run, const struct objective *o)
{
    struct run_estimate e;
    int id = 0;
    while (objective_names[id] && strcmp(objective_names[id], o->name) != 0) id++;
    switch (id) {
    case OBJECTIVE_THROUGHPUT: return "throughput";
    case OBJECTIVE_MEMORY: return "memory.peak";
    case OBJECTIVE_LATENCY: break;
    default: return NULL;
    }
    if (o->latency_limit_ns) return "throughput"; /* the most work within the limit */
    for (size_t i = 0; i < run->cases.n; i++)
        if (!run->cases.at[i]->failure && !measure_named(run->cases.at[i], "latency.p95", &e))
            return "latency.p50";
    return "latency.p95";
}

static const struct run_case *find_best(struct choice *ch)
{
    const struct run_case *best = NULL;
    struct run_estimate top = {0}, e;
    for (size_t i = 0; i < ch->run->cases.n; i++) {
        const struct run_case *c = ch->run->cases.at[i];
        if (!may_choose(ch, c, &e)) continue;
        if (best && (ch->more_is_better ? e.value <= top.value : e.value >= top.value)) continue;
        best = c;
        top = e;
    }
    return best;
}

static const struct run_case *find_cheapest_tied(struct choice *ch, const struct run_case *best)
{
    const struct run_case *chosen = best;
    struct choice scratch = *ch; /* its counts are not wanted */
    struct run_estimate e;
    for (size_t i = 0; i < ch->run->cases.n; i++) {
        const struct run_case *c = ch->run->cases.at[i];
        if (is_tied(ch, best, c) && may_choose(&scratch, c, &e) && is_cheaper(c, chosen)) chosen = c;
    }
    return chosen;
}

/* Nothing can be said to keep the limit: how many are over it, of how many it is not known. */
static void say_none_keeps(struct buf *why, const struct choice *ch)
{
    if (!ch->o->latency_limit_ns || ch->over_limit + ch->not_shown == 0) return;
    struct shown limit = show_time((double)ch->o->latency_limit_ns);
    if (ch->over_limit && ch->not_shown)
        buf_printf(why, "no case surely keeps the latency limit of %s: %zu over it, %zu undecided", limit.s,
                   ch->over_limit, ch->not_shown);
    else
        buf_printf(why, "no case surely keeps the latency limit of %s: %s", limit.s,
                   ch->over_limit ? "all are over it" : "their intervals reach over it");
}

/* An open loop completes what its schedule starts: by throughput none of its cases is better than another. */
tare_status recommend_for(const struct run *run, const struct objective *o, const struct run_case *like,
                          struct recommended *out, tare_error *err)
{
    struct choice ch = {.run = run, .o = o, .like = like, .metric = metric_for(run, o)};
    *out = (struct recommended)RECOMMENDED_INIT;
    if (!ch.metric)
        return error_set(err, TARE_INVALID, "'%s' is not an objective; use throughput, latency or memory",
                         o->name);
    ch.more_is_better = measure_find(ch.metric)->more_is_better;
    if (run->cases.n < 2 || (ch.more_is_better && run_is_open_loop(run))) return TARE_OK;
    const struct run_case *best = find_best(&ch), *chosen = best ? find_cheapest_tied(&ch, best) : NULL;
    if (chosen) add_comparison(&out->why, &ch, best, chosen);
    if (chosen) add_limits(&out->why, &ch, chosen);
    if (!chosen) say_none_keeps(&out->why, &ch);
    tare_status s = buf_status(&out->why, err);
    if (s < 0)
        recommended_release(out);
    else
        out->c = chosen;
    return s;
}

void recommended_release(struct recommended *r)
{
    buf_release(&r->why);
    *r = (struct recommended)RECOMMENDED_INIT;
}

/* Of all cases, whatever work they do: one that keeps the limit for other work is no reason to be silent about it, but
 * then the sentence is not true. */
static tare_status tell_none_keeps(struct run *run, const struct objective *o, tare_error *err)
{
    struct choice ch = {.run = run, .o = o, .any_work = true, .metric = metric_for(run, o)};
    struct buf why = BUF_INIT;
    struct run_estimate e;
    for (size_t i = 0; i < run->cases.n; i++)
        if (may_choose(&ch, run->cases.at[i], &e)) return TARE_OK;
    say_none_keeps(&why, &ch);
    tare_status s = buf_status(&why, err);
    if (s == TARE_OK) {
        struct judging j = judging_as(run, "latency.limit");
        struct run_finding *f = finding_start(&j, NULL, "%s", why.data);
        finding_number(&j, f, "limit_ns", (double)o->latency_limit_ns);
    }
    buf_release(&why);
    return s;
}

/* The limit goes into the document first: it must be there also when no case keeps it. */
tare_status recommend(struct run *run, const struct objective *o, tare_error *err)
{
    struct recommended r;
    if (o->latency_limit_ns)
        run_map_real(&run->arena, &run->config, "latency_limit_s", (double)o->latency_limit_ns / 1e9);
    if (run->cases.n == 0) return TARE_OK;
    tare_status s = recommend_for(run, o, run->cases.at[0], &r, err);
    if (s < 0) return s;
    run->recommendation = (struct run_recommendation){0};
    if (r.c) {
        run->recommendation = (struct run_recommendation){
            .known = true, .objective = arena_str(&run->arena, o->name), .case_name = r.c->name};
        run->recommendation.why = arena_str(&run->arena, r.why.data);
    } else if (r.why.len) {
        s = tell_none_keeps(run, o, err);
    }
    if (run->arena.failed) s = error_nomem(err, "the recommendation");
    recommended_release(&r);
    return s;
}
