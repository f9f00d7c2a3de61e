/* SPDX-License-Identifier: MIT
 * finding_case.c - rules about cases by themselves: memory, start-up, provider, quality, overload, launches. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "analyze/judge/accuracy.h"
#include "analyze/judge/finding.h"
#include "analyze/judge/launches.h"
#include "core/stats.h"

#define MIB 0x1p20
#define LAUNCHES_HIDDEN 3 /* times the spread that one launch's own interval makes expect */
#define DELAYED_ACK_NS 39.5e6  /* what the kernel waits: 40 ms, by its own ticks */
#define SMALL_ANSWER 0x1p16      /* bytes */

/* ---- memory ---- */

void find_leak(struct judging *j, const struct run_case *c)
{
    const struct run_estimate *g = &c->memory.growth;
    if (!g->known || !g->lo.known || !(g->lo.v > 0) || !c->samples.known) return;
    double runs = run_case_runs(c), total = g->value * runs;
    double matters = fmax(MIB, c->memory.rss_mean.known ? 0.005 * (double)c->memory.rss_mean.v : 0);
    if (total < matters) return;
    struct run_finding *f =
        finding_start(j, c, "memory grows by %s per run (%s to %s): %s over %s", show_bytes(g->value).s,
                      show_bytes(g->lo.v).s, show_bytes(g->hi.known ? g->hi.v : NAN).s, show_bytes(total).s,
                      show_count(runs, "run").s);
    finding_estimate(j, f, "bytes_per_run", *g);
    finding_number(j, f, "runs", runs);
}

static double memory_share(const struct run *run, const struct run_case *c)
{
    return OR_NAN(c->memory.rss_peak) / memory_room(run);
}

void find_memory_limit(struct judging *j)
{
    struct worst w = find_worst_case(j->run, memory_share, 0.8);
    if (!w.c) return;
    double peak = (double)w.c->memory.rss_peak.v, room = memory_room(j->run);
    struct run_finding *f = finding_start(j, w.c, "the peak of %s is %s of the %s there are",
                                          show_bytes(peak).s, show_percent(w.figure).s, show_bytes(room).s);
    if (f && w.figure > 0.95) f->severity = "critical";
    finding_numbers(j, f, {"rss_peak", peak}, {"limit", room});
}

static double unused_share(const struct run *run, const struct run_case *c)
{
    (void)run;
    return c->memory.rss_peak.known && c->memory.fragmentation.v >= 0.3 ? OR_NAN(c->memory.fragmentation)
                                                                        : NAN;
}

void find_arena(struct judging *j)
{
    struct worst w = find_worst_case(j->run, unused_share, 0);
    double held = NAN;
    if (!w.c || (map_number(&w.c->memory.arena, "TotalAllocated", &held) && held < 16 * MIB)) return;
    struct run_finding *f = finding_start(j, w.c, "%s of the memory the runtime's arena holds is not in use",
                                          show_percent(w.figure).s);
    finding_numbers(j, f, {"fragmentation", w.figure}, {"held_bytes", held});
}

/* ---- start-up ---- */

/* What the first run took more than others, where that is three times as long. */
static double first_run_more(const struct run *run, const struct run_case *c)
{
    const struct run_estimate *p50 = &c->latency_ns.p50;
    double usual = p50->hi.known ? p50->hi.v : p50->value, first = OR_NAN(c->first_run_ns);
    (void)run;
    return p50->known && first >= 3 * usual ? first - usual : NAN;
}

void find_first_run(struct judging *j)
{
    struct worst w = find_worst_case(j->run, first_run_more, 10e6); /* ns: less is not worth a line */
    if (!w.c) return;
    double first = (double)w.c->first_run_ns.v, usual = w.c->latency_ns.p50.value;
    struct run_finding *f =
        finding_start(j, w.c, "the first run takes %s, %s times the usual %s", show_time(first).s,
                      show_number(first / usual).s, show_time(usual).s);
    finding_numbers(j, f, {"first_run_ns", first}, {"p50_ns", usual});
}

static double loading_ns(const struct run *run, const struct run_case *c)
{
    (void)run;
    return OR_NAN(c->load_ns);
}

void find_load(struct judging *j)
{
    struct worst w = find_worst_case(j->run, loading_ns, 1e9 - 1);
    if (!w.c) return;
    const struct run_estimate *p50 = &w.c->latency_ns.p50;
    struct run_finding *f = finding_start(j, w.c, "loading takes %s", show_time(w.figure).s);
    finding_numbers(j, f, {"load_ns", w.figure},
                    {"runs_per_load", p50->known ? round(w.figure / p50->value) : NAN});
}

/* ---- provider ---- */

/* Nodes that ran elsewhere than on the provider asked for, by the runtime's own account. */
void find_placement(struct judging *j, const struct run_case *c)
{
    double all = 0, on_cpu = 0;
    for (size_t i = 0; i < c->placement.n; i++) {
        const struct run_entry *e = &c->placement.at[i];
        if (e->value.kind != RUN_INT) continue;
        all += (double)e->value.i;
        if (strncasecmp(e->key, "cpu", 3) == 0) on_cpu += (double)e->value.i;
    }
    if (on_cpu <= 0 || strcasecmp(param_text(c, "provider"), "cpu") == 0) return;
    struct run_finding *f = finding_start(j, c, "%g of %g nodes fell back from %.60s to the CPU", on_cpu, all,
                                          param_text(c, "provider"));
    finding_numbers(j, f, {"nodes_on_cpu", on_cpu}, {"nodes", all});
    finding_text(j, f, "asked", param_text(c, "provider"));
    if (f && on_cpu < 0.05 * all) f->severity = "info";
}

/* ---- what the subject and the harness noted ---- */

void find_not_finite(struct judging *j, const struct run_case *c)
{
    if (!c->nan_outputs.known || c->nan_outputs.v == 0) return;
    double bad = (double)c->nan_outputs.v;
    struct run_finding *f = finding_start(j, c, "%s: NaN or infinite", show_count(bad, "output value").s);
    finding_number(j, f, "values", bad);
}

void find_never_steady(struct judging *j, const struct run_case *c)
{
    if (!c->stability.steady.known || c->stability.steady.v) return;
    const char *note =
        arena_printf(&j->run->arena, "still changing after %llu runs", (unsigned long long)c->warmup_runs.v);
    struct run_finding *f = finding_start(j, c, "the times never settled: %s", note);
    finding_text(j, f, "note", note);
    finding_number(j, f, "warmup_runs", OR_NAN(c->warmup_runs));
}

/* ---- quality ---- */

void find_accuracy(struct judging *j, const struct run_case *c)
{
    double allowed = 0, base;
    config_number(j->run, "max_drop", &allowed);
    if (!c->accuracy.score.known || !c->accuracy.metric || !accuracy_reference(j->run, c, &base)) return;
    double drop = accuracy_drop(c->accuracy.metric, base, c->accuracy.score.value);
    if (!(fabs(drop) > 1e-9)) return;
    struct run_finding *f =
        finding_start(j, c, "%.60s is %.6g, against %.6g", c->accuracy.metric, c->accuracy.score.value, base);
    if (f && drop <= allowed) f->severity = "info";
    finding_estimate(j, f, "score", c->accuracy.score);
    finding_numbers(j, f, {"reference", base}, {"drop", drop});
    finding_number(j, f, "examples", OR_NAN(c->accuracy.examples));
    finding_action(j, f, "%s",
                   drop <= allowed ? "nothing, if a change of this size is fine; --max-drop sets how much is"
                                   : "do not use this configuration before its answers were looked at");
}

/* ---- open loop ---- */

struct offered {
    double offered, done; /* runs per second */
    bool overloaded;
};

/* As the harness noted it, else from the rate asked for and the throughput. */
static bool offered_of(const struct run *run, const struct run_case *c, struct offered *out)
{
    const struct run_open_loop *o = &c->open_loop;
    struct run_estimate e;
    double units = c->units_per_run.known && c->units_per_run.v ? (double)c->units_per_run.v : 1;
    if (o->known) {
        *out = (struct offered){o->offered.v, o->achieved.v, o->overloaded.v};
        return o->offered.known && o->achieved.known;
    }
    if (!config_number(run, "rate", &out->offered) || !measure_named(c, "throughput", &e) || !e.hi.known)
        return false;
    out->done = e.value / units;
    out->overloaded = e.hi.v / units < 0.98 * out->offered;
    return true;
}

/* A search for the highest rate goes beyond it: what broke there is its result, and no news. */
static bool is_beyond_search(const struct run *run, const struct run_case *c)
{
    const struct run_rate_search *r = &run->rate_search;
    double rate;
    return r->known && param_number(c, "rate", &rate) && !(r->passed.known && rate <= r->passed.v);
}

void find_overloaded(struct judging *j, const struct run_case *c)
{
    struct offered o;
    if (is_beyond_search(j->run, c)) return;
    if (!run_is_open_loop(j->run) || !offered_of(j->run, c, &o) || !o.overloaded) return;
    struct run_finding *f =
        finding_start(j, c, "%s runs/s were offered, %s were done: the rest still waited at the end",
                      show_number(o.offered).s, show_number(o.done).s);
    finding_numbers(j, f, {"offered_per_s", o.offered}, {"done_per_s", o.done});
}

void find_failed(struct judging *j, const struct run_case *c)
{
    const struct run_open_loop *o = &c->open_loop;
    struct run_finding *f = NULL;
    if (!c->failure || is_beyond_search(j->run, c)) return;
    double failed = OR_NAN(c->failed_runs), all = failed + OR_NAN(c->samples);
    if (o->due.known) all = (double)o->due.v;
    struct interval share = {NAN, NAN, NAN};
    if (failed > 0) share = stats_share_interval(failed / all, all, 0.95);
    if (failed > 0)
        f = finding_start(j, c, "%s of %s failed (%s; %s to %s), first: %.300s", show_number(failed).s,
                          show_count(all, "run").s, show_percent(failed / all).s, show_percent(share.lo).s,
                          show_percent(share.hi).s, c->failure);
    else if (all > 0)
        f = finding_start(j, c, "a run of the warm-up failed: %.300s", c->failure);
    else
        f = finding_start(j, c, "not measured: %.300s", c->failure);
    finding_numbers(j, f, {"failed", failed}, {"runs", all}, {"share_lo", share.lo}, {"share_hi", share.hi});
    finding_text(j, f, "failure", c->failure);
}

/* ---- services: the highest rate; was this client what was measured? ---- */

void find_rate_found(struct judging *j)
{
    const struct run_rate_search *r = &j->run->rate_search;
    struct run_finding *f;
    if (!r->known) return;
    if (r->passed.known && r->failed.known)
        f = finding_start(j, NULL, "%.160s: kept at %s requests/s, not at %s", r->slo,
                          show_number(r->passed.v).s, show_number(r->failed.v).s);
    else if (r->passed.known)
        f = finding_start(j, NULL, "%.160s: kept at %s requests/s, from where on not is unknown: %.160s",
                          r->slo, show_number(r->passed.v).s, r->why ? r->why : "");
    else
        f = finding_start(j, NULL, "%.160s: no rate was shown to keep it: %.160s", r->slo,
                          r->why ? r->why : "");
    finding_numbers(j, f, {"passed_per_s", OR_NAN(r->passed)}, {"failed_per_s", OR_NAN(r->failed)},
                    {"windows", (double)r->probes.n});
    if (!f) return;
    f->severity = r->passed.known && r->failed.known ? "info" : "warn";
    f->action = r->passed.known ? "`tare plan` makes replicas of it, for another rate"
                                : "ask for less, or measure longer (--budget)";
}

void find_client_limited(struct judging *j, const struct run_case *c)
{
    const struct run_http *h = &c->http;
    if (!h->limited.known || !h->limited.v) return;
    const struct run_value *sockets = run_map_get(&h->faults, "sockets");
    double without = sockets ? (double)sockets->i : 0;
    struct run_finding *f;
    if (without > 0)
        f = finding_start(j, c, "%s had no socket or port left to go out on",
                          show_count(without, "request").s);
    else
        f = finding_start(j, c, "this client was busy for %s of the time", show_percent(h->client_busy.v).s);
    finding_numbers(j, f, {"busy", OR_NAN(h->client_busy)}, {"without_socket", without});
    finding_number(j, f, "ns_per_request", OR_NAN(h->client_ns));
}

/* More than one in twenty was sent over 1 ms late, so that it is seen in p95. */
void find_client_late(struct judging *j, const struct run_case *c)
{
    const struct run_http *h = &c->http;
    double late = OR_NAN(h->late), sent = OR_NAN(h->sent);
    if (!c->open_loop.known || !(late > sent / 20) || is_beyond_search(j->run, c)) return;
    struct run_finding *f =
        finding_start(j, c, "%s of %s were sent over 1 ms late: this client got no processor",
                      show_number(late).s, show_count(sent, "request").s);
    finding_numbers(j, f, {"late", late}, {"sent", sent});
    if (h->delay_ns.p99.known) finding_number(j, f, "delay_p99_ns", h->delay_ns.p99.value);
}

/* Head and body written apart: the kernel keeps the second back until the first was acknowledged (Nagle), and who asked
 * acknowledges after 40 ms, having nothing to say. */
void find_delayed_ack(struct judging *j, const struct run_case *c)
{
    const struct run_http *h = &c->http;
    double rest = h->body_ns.p50.known ? h->body_ns.p50.value : NAN;
    double bytes = OR_NAN(h->bytes_received) / OR_NAN(h->answered);
    bool fits = rest >= DELAYED_ACK_NS && rest < DELAYED_ACK_NS * 1.25; /* or it is something else */
    if (!h->known || c->stream.known || !fits || !(bytes < SMALL_ANSWER)) return;
    struct run_finding *f = finding_start(
        j, c,
        "answers of %s come in two pieces, the second %s after the first: as head and body written apart do",
        show_bytes(bytes).s, show_time(rest).s);
    finding_numbers(j, f, {"rest_p50_ns", rest}, {"bytes", bytes});
}

/* An answer ends where its length says; what comes after it is lost, and so is the connection. */
void find_surplus(struct judging *j, const struct run_case *c)
{
    double surplus = OR_NAN(c->http.surplus), answered = OR_NAN(c->http.answered);
    if (!(surplus > 0)) return;
    struct run_finding *f = finding_start(j, c, "behind the end of %s of %s came bytes that belong to none",
                                          show_number(surplus).s, show_count(answered, "answer").s);
    finding_numbers(j, f, {"surplus", surplus}, {"answered", answered});
}

/* Are answers to the same request alike? */
void find_distinct_answers(struct judging *j, const struct run_case *c)
{
    const struct run_http *h = &c->http;
    double asked = OR_NAN(h->asked), distinct = OR_NAN(h->distinct), answered = OR_NAN(h->answered);
    struct run_finding *f;
    if (!h->known || !(answered > asked) || is_beyond_search(j->run, c)) return;
    if (distinct == 1)
        f = finding_start(j, c, "all %s are equal", show_count(answered, "answer").s);
    else if (asked == 1 && distinct == answered)
        f = finding_start(j, c, "no two of %s to the same request are equal",
                          show_count(answered, "answer").s);
    else if (asked == 1)
        f = finding_start(j, c, "%s to the same request among %s", show_count(distinct, "distinct answer").s,
                          show_number(answered).s);
    else if (distinct > asked)
        f = finding_start(j, c, "%s to %s: some are not always answered alike",
                          show_count(distinct, "distinct answer").s, show_count(asked, "request").s);
    else
        f = finding_start(j, c, "each of %s was always answered alike", show_count(asked, "request").s);
    finding_numbers(j, f, {"asked", asked}, {"distinct", distinct}, {"answered", answered});
}

/* ---- launches (`tare bench --repeat`): their spread, and whether they are independent ---- */

/* `hidden`: the launches differ by far more than the interval of one promises, and by more than 1 %. Whoever trusts
 * that interval is misled, so this is a warning. */
void find_launch_spread(struct judging *j, const struct run_case *c)
{
    struct launches_spread s = launches_spread(c);
    if (c->launches.n < 2 || !isfinite(s.between)) return;
    bool hidden = isfinite(s.within) && s.between > LAUNCHES_HIDDEN * s.within && s.between > 0.01;
    struct run_finding *f = NULL;
    if (isfinite(s.within))
        f = finding_start(j, c, "the median varies by %s between %zu launches; within one it is known to %s",
                          show_percent(s.between).s, c->launches.n, show_percent(s.within).s);
    else
        f = finding_start(j, c, "the median varies by %s between %zu launches", show_percent(s.between).s,
                          c->launches.n);
    finding_numbers(j, f, {"launches", (double)c->launches.n}, {"sd_between", s.between},
                    {"sd_within", s.within});
    if (!hidden) return;
    if (f) f->severity = "warn";
    finding_action(
        j, f,
        "the interval of a single launch does not show this: compare several launches, or use tare compare --ab");
}

/* All cases were launched together: one finding is enough. */
void find_launch_close(struct judging *j)
{
    const struct run_case *c = j->run->cases.n ? j->run->cases.at[0] : NULL;
    struct launches_spread s = c ? launches_spread(c) : (struct launches_spread){.apart_ms = -1};
    if (s.apart_ms < 0 || s.apart_ms >= LAUNCHES_APART_MS) return;
    struct run_finding *f =
        finding_start(j, NULL, "launches began %.3g s apart; closer than %d s they are not independent",
                      (double)s.apart_ms / 1000, LAUNCHES_APART_MS / 1000);
    finding_number(j, f, "apart_s", (double)s.apart_ms / 1000);
    finding_action(j, f, "--pause %ds makes them independent, so that tare compare counts each of them",
                   LAUNCHES_APART_MS / 1000);
}
