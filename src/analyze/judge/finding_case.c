/* SPDX-License-Identifier: MIT
 * finding_case.c - rules about cases by themselves: memory, start-up, provider, quality, overload. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "analyze/judge/accuracy.h"
#include "analyze/judge/finding.h"

#define MIB 0x1p20

/* ---- memory ---- */

static void check_leak(struct judging *j, const struct run_case *c)
{
    const struct run_estimate *g = &c->memory.growth;
    if (!g->known || !g->lo.known || !(g->lo.v > 0) || !c->samples.known) return;
    double total = g->value * (double)c->samples.v;
    double matters = fmax(MIB, c->memory.rss_mean.known ? 0.005 * (double)c->memory.rss_mean.v : 0);
    if (total < matters) return;
    struct run_finding *f =
        finding_start(j, c, "memory grows by %s per run (%s to %s): %s over %g runs", show_bytes(g->value).s,
                      show_bytes(g->lo.v).s, show_bytes(g->hi.known ? g->hi.v : NAN).s, show_bytes(total).s,
                      (double)c->samples.v);
    finding_estimate(j, f, "bytes_per_run", *g);
    finding_number(j, f, "runs", (double)c->samples.v);
    finding_action(j, f, "measure with more runs (--budget): a cache fills up and stops, a leak does not");
}

tare_status rule_leak(struct judging *j)
{
    for (size_t i = 0; i < j->run->cases.n; i++) check_leak(j, j->run->cases.at[i]);
    return TARE_OK;
}

tare_status rule_memory_limit(struct judging *j)
{
    const struct known_u64 *limit = &j->run->host.cgroup.memory_limit_bytes,
                           *all = &j->run->host.memory_bytes;
    if (!limit->known && !all->known) return TARE_OK;
    double room = (double)(limit->known && (!all->known || limit->v < all->v) ? limit->v : all->v);
    const struct run_case *worst = NULL;
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        if (c->memory.rss_peak.known && (!worst || c->memory.rss_peak.v > worst->memory.rss_peak.v))
            worst = c;
    }
    if (!worst) return TARE_OK;
    double share = (double)worst->memory.rss_peak.v / room;
    if (!(share > 0.8)) return TARE_OK;
    struct run_finding *f = finding_start(j, worst, "the peak of %s is %s of the %s there are",
                                          show_bytes((double)worst->memory.rss_peak.v).s,
                                          show_percent(share).s, show_bytes(room).s);
    if (f && share > 0.95) f->severity = "critical";
    finding_number(j, f, "rss_peak", (double)worst->memory.rss_peak.v);
    finding_number(j, f, "limit", room);
    finding_action(
        j, f, "use a smaller batch or variant, or a larger memory limit, before the kernel ends the process");
    return TARE_OK;
}

tare_status rule_arena(struct judging *j)
{
    const struct run_case *worst = NULL;
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        if (!c->memory.fragmentation.known || !c->memory.rss_peak.known || c->memory.fragmentation.v < 0.3)
            continue;
        if (!worst || c->memory.fragmentation.v > worst->memory.fragmentation.v) worst = c;
    }
    if (!worst) return TARE_OK;
    const struct run_value *held = run_map_get(&worst->memory.arena, "TotalAllocated");
    if (held && held->kind == RUN_INT && (double)held->i < 16 * MIB) return TARE_OK;
    struct run_finding *f =
        finding_start(j, worst, "%s of the memory the runtime's arena holds is not in use",
                      show_percent(worst->memory.fragmentation.v).s);
    finding_number(j, f, "fragmentation", worst->memory.fragmentation.v);
    if (held && held->kind == RUN_INT) finding_number(j, f, "held_bytes", (double)held->i);
    finding_action(j, f, "let the arena grow by what is asked, shrink it after a large run, or turn it off");
    return TARE_OK;
}

/* ---- start-up ---- */

tare_status rule_first_run(struct judging *j)
{
    const struct run_case *worst = NULL;
    double most = 10e6; /* ns: less is not worth a line */
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        const struct run_estimate *p50 = &c->latency_ns.p50;
        if (!c->first_run_ns.known || !p50->known) continue;
        double usual = p50->hi.known ? p50->hi.v : p50->value, first = (double)c->first_run_ns.v;
        if (first < 3 * usual || first - usual < most) continue;
        most = first - usual;
        worst = c;
    }
    if (!worst) return TARE_OK;
    double first = (double)worst->first_run_ns.v, usual = worst->latency_ns.p50.value;
    struct run_finding *f =
        finding_start(j, worst, "the first run takes %s, %s times the usual %s", show_time(first).s,
                      show_number(first / usual).s, show_time(usual).s);
    finding_number(j, f, "first_run_ns", first);
    finding_number(j, f, "p50_ns", usual);
    finding_action(j, f, "run once with each input shape at start-up, before taking requests");
    return TARE_OK;
}

tare_status rule_load(struct judging *j)
{
    const struct run_case *worst = NULL;
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        if (!c->load_ns.known || c->load_ns.v < 1000000000) continue;
        if (!worst || c->load_ns.v > worst->load_ns.v) worst = c;
    }
    if (!worst) return TARE_OK;
    double load = (double)worst->load_ns.v;
    struct run_finding *f = finding_start(j, worst, "loading takes %s", show_time(load).s);
    finding_number(j, f, "load_ns", load);
    if (worst->latency_ns.p50.known && worst->latency_ns.p50.value > 0)
        finding_number(j, f, "runs_per_load", round(load / worst->latency_ns.p50.value));
    finding_action(j, f, "load once and keep the process; saving the optimised model makes loading cheaper");
    return TARE_OK;
}

/* ---- provider ---- */

/* Nodes that ran elsewhere than on the provider asked for, by the runtime's own account. */
static void check_placement(struct judging *j, const struct run_case *c)
{
    const struct run_value *v = run_map_get(&c->params, "placement");
    double all = 0, on_cpu = 0;
    if (!v || v->kind != RUN_MAP) return;
    for (size_t i = 0; i < v->items.n; i++) {
        const struct run_entry *e = &v->items.at[i];
        if (e->value.kind != RUN_INT) continue;
        all += (double)e->value.i;
        if (strncasecmp(e->key, "cpu", 3) == 0) on_cpu += (double)e->value.i;
    }
    if (on_cpu <= 0 || strcasecmp(param_text(c, "provider"), "cpu") == 0) return;
    struct run_finding *f = finding_start(j, c, "%g of %g nodes fell back from %.60s to the CPU", on_cpu, all,
                                          param_text(c, "provider"));
    finding_number(j, f, "nodes_on_cpu", on_cpu);
    finding_number(j, f, "nodes", all);
    finding_text(j, f, "asked", param_text(c, "provider"));
    if (f && on_cpu < 0.05 * all) f->severity = "info";
    finding_action(j, f, "see which operators the provider lacks: each change of place copies tensors");
}

tare_status rule_provider(struct judging *j)
{
    for (size_t i = 0; i < j->run->cases.n; i++) check_placement(j, j->run->cases.at[i]);
    return TARE_OK;
}

/* ---- what the subject and the harness noted ---- */

tare_status rule_nan(struct judging *j)
{
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        double bad;
        if (!param_number(c, "nan_outputs", &bad) || !(bad > 0)) continue;
        struct run_finding *f = finding_start(j, c, "%g output values are NaN or infinite", bad);
        finding_number(j, f, "values", bad);
        finding_action(j, f,
                       "check the inputs (token ids, masks) and the precision: overflow is common in fp16");
    }
    return TARE_OK;
}

tare_status rule_never_steady(struct judging *j)
{
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        const struct run_value *v = config_of_case(j->run, "never_steady", c);
        if (!v || v->kind != RUN_TEXT || !v->s) continue;
        struct run_finding *f = finding_start(j, c, "the times never settled: %.200s", v->s);
        finding_text(j, f, "note", v->s);
        if (c->warmup_runs.known) finding_number(j, f, "warmup_runs", (double)c->warmup_runs.v);
        finding_action(
            j, f, "measure longer (--budget), or look for what changes over time: caches, clocks, memory");
    }
    return TARE_OK;
}

/* ---- quality ---- */

/* What this case's score is set against: the baseline in the document, else the first case with this
 * metric. */
static bool reference_score(const struct run *run, const struct run_case *c, double *out)
{
    if (c->accuracy.baseline.known) *out = c->accuracy.baseline.v;
    for (size_t i = 0; !c->accuracy.baseline.known && i < run->cases.n; i++) {
        const struct run_accuracy *a = &run->cases.at[i]->accuracy;
        if (!a->score.known || !a->metric || strcmp(a->metric, c->accuracy.metric) != 0) continue;
        *out = a->score.value;
        return run->cases.at[i] != c;
    }
    return c->accuracy.baseline.known;
}

tare_status rule_accuracy(struct judging *j)
{
    double allowed = 0, base;
    config_number(j->run, "max_drop", &allowed);
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        if (!c->accuracy.score.known || !c->accuracy.metric || !reference_score(j->run, c, &base)) continue;
        double drop = accuracy_drop(c->accuracy.metric, base, c->accuracy.score.value);
        if (!(fabs(drop) > 1e-9)) continue;
        struct run_finding *f = finding_start(j, c, "%.60s is %.6g, against %.6g", c->accuracy.metric,
                                              c->accuracy.score.value, base);
        if (f && drop <= allowed) f->severity = "info";
        finding_estimate(j, f, "score", c->accuracy.score);
        finding_number(j, f, "reference", base);
        finding_number(j, f, "drop", drop);
        if (c->accuracy.examples.known) finding_number(j, f, "examples", (double)c->accuracy.examples.v);
        finding_action(j, f, "%s",
                       drop <= allowed
                           ? "nothing, if a change of this size is fine; --max-drop sets how much is"
                           : "do not use this configuration before its answers were looked at");
    }
    return TARE_OK;
}

/* ---- open loop ---- */

struct offered {
    double offered, done; /* runs per second */
    bool overloaded;
};

/* As the harness noted it, else from the rate asked for and the throughput. */
static bool offered_of(const struct run *run, const struct run_case *c, struct offered *out)
{
    const struct run_value *v = config_of_case(run, "open_loop", c), *yes;
    struct run_estimate e;
    double units = c->units_per_run.known && c->units_per_run.v ? (double)c->units_per_run.v : 1;
    if (v && v->kind == RUN_MAP) {
        yes = run_map_get(&v->items, "overloaded");
        out->overloaded = yes && yes->kind == RUN_BOOL && yes->yes;
        return map_number(&v->items, "offered", &out->offered) &&
               map_number(&v->items, "achieved", &out->done);
    }
    if (!config_number(run, "rate", &out->offered) || !measure_named(c, "throughput", &e) || !e.hi.known)
        return false;
    out->done = e.value / units;
    out->overloaded = e.hi.v / units < 0.98 * out->offered;
    return true;
}

tare_status rule_overloaded(struct judging *j)
{
    if (!run_is_open_loop(j->run)) return TARE_OK;
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        struct offered o;
        if (!offered_of(j->run, c, &o) || !o.overloaded) continue;
        struct run_finding *f =
            finding_start(j, c, "%s runs/s were offered, %s were done: the queue only grows",
                          show_number(o.offered).s, show_number(o.done).s);
        finding_number(j, f, "offered_per_s", o.offered);
        finding_number(j, f, "done_per_s", o.done);
        finding_action(
            j, f,
            "latencies of this case say how long it was measured, not how fast it is; offer less, or "
            "see `tare plan` for the replicas it needs");
    }
    return TARE_OK;
}
