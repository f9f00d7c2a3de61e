/* SPDX-License-Identifier: MIT
 * compare_pairs.c - see compare_pairs.h. */
#include "analyze/compare/compare_pairs.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/buf.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "core/vec.h"

enum {
    MOST_KEPT = 100000, /* pairs in the document */
    MOST_LAUNCHES = 64  /* whose layout is in it */
};

#define MEDIANS_APART 0.02 /* ln: by which change and medians differ before it is said, */
#define MEDIANS_SHARE 0.15 /* and of the change */

/* ---- enough? ---- */

tare_status compare_pairs_enough(const struct pair_set *set, const struct paired_rule *r, uint64_t affordable,
                                 struct compare_stop *out, tare_error *err)
{
    struct paired_result wall = {0}, cpu = {0};
    struct paired_contention busy = paired_contention(set);
    tare_status s = paired_metric_judge(set, PAIRED_WALL, r, &wall, err);
    if (s == TARE_OK) s = paired_metric_judge(set, PAIRED_CPU, r, &cpu, err);
    if (s < 0) return s;
    bool counts = busy.cpu_bound, cpu_done = !counts || paired_enough(&cpu, r);
    bool hopeless = busy.contended && counts && wall.needed > affordable;
    const struct paired_result *decides = busy.contended && counts ? &cpu : &wall;
    out->enough = cpu_done && (paired_enough(&wall, r) || hopeless);
    out->launch_share = decides->sd_pair > 0 ? decides->sd_launch / decides->sd_pair : NAN;
    out->log = decides->log;
    return TARE_OK;
}

/* ---- values of the two sides ---- */

static tare_status side_median(const struct pair_set *set, enum paired_metric metric, int side,
                               struct run_estimate *out, tare_error *err)
{
    struct interval found;
    double *x = mem_new(set->n, sizeof *x);
    if (!x) return error_nomem(err, "%zu pairs", set->n);
    for (size_t i = 0; i < set->n; i++) x[i] = (double)paired_value(&set->at[i].side[side], metric);
    tare_status s = stats_median_interval(x, set->n, 0.95, &found, err);
    mem_free(x);
    if (s < 0) return s;
    *out = (struct run_estimate){.known = true, .value = found.value};
    if (isfinite(found.lo)) out->lo = known_f64(fmin(found.lo, found.value));
    if (isfinite(found.hi)) out->hi = known_f64(fmax(found.hi, found.value));
    return TARE_OK;
}

struct run_estimate compare_ratio(double log, double lo, double hi)
{
    if (!isfinite(log)) return (struct run_estimate){0};
    return (struct run_estimate){.known = true,
                                 .value = fmin(exp(log), DBL_MAX), /* the greatest there is stands for more */
                                 .lo = isfinite(lo) ? known_if_finite(exp(lo)) : (struct known_f64){0},
                                 .hi = known_if_finite(exp(hi))};
}

/* ---- a metric from its pairs ---- */

static void fill_result(struct comparison_metric *m, const struct paired_result *p,
                        const struct paired_rule *r)
{
    m->ratio = compare_ratio(p->log.value, p->log.lo, p->log.hi);
    m->gate = compare_ratio(p->log.value, p->gate_lo, p->gate_hi);
    m->confidence = known_f64(r->level);
    m->gate_confidence = known_f64(1 - 2 * r->alpha);
    m->verdict = paired_verdict_name(p->verdict);
    m->min_effect = known_f64(r->min_effect);
    m->mde = known_if_finite(p->mde);
    m->p_value = known_if_finite(fmin(p->p_slower, 1));
    m->samples = known_u64(p->n);
    if (p->verdict == PAIRED_INCONCLUSIVE && p->needed) m->needed = known_u64(p->needed);
    m->sd_sample = known_if_finite(p->sd_pair);
    m->sd_launch = known_if_finite(p->sd_launch);
}

static void explain_unknown(struct comparison *c, struct comparison_metric *m, const struct paired_result *p)
{
    struct arena *a = &c->arena;
    if (!m->ratio.lo.known || !m->ratio.hi.known)
        run_map_text(a, &m->unknown, "ratio", "too few pairs or launches to bound it");
    if (!m->mde.known) run_map_text(a, &m->unknown, "mde", "the interval has no bound");
    if (!m->needed.known)
        run_map_text(a, &m->unknown, "needed",
                     p->verdict == PAIRED_INCONCLUSIVE
                         ? "the interval is as narrow as asked for, but lies across a limit"
                         : "decided");
    if (!m->sd_launch.known) run_map_text(a, &m->unknown, "sd_launch", "every pair is a launch of its own");
    if (p->verdict == PAIRED_INCONCLUSIVE && m->needed.known)
        m->why =
            arena_printf(a, "undecided; about %llu pairs would decide it", (unsigned long long)m->needed.v);
}

void compare_fill_pairs(struct comparison *c, struct comparison_metric *m, const struct paired_result *p,
                        const struct paired_rule *r, const char *method)
{
    fill_result(m, p, r);
    explain_unknown(c, m, p);
    m->method = method;
}

struct comparison_metric *compare_add_metric(struct comparison *c, struct comparison_case *to,
                                             const struct measure *of, const char *role)
{
    struct comparison_metric *m = comparison_add_metric(c, to, of->name);
    if (!m) return NULL;
    m->unit = of->kind == MEASURE_BYTES ? "bytes" : measure_unit(of);
    m->better = of->more_is_better ? "more" : "less";
    m->role = role;
    return m;
}

tare_status compare_no_memory(tare_error *err)
{
    return error_nomem(err, "a comparison");
}

struct timed {
    const struct pair_set *set;
    const struct paired_rule *rule;
    enum paired_metric metric;
};

static tare_status fill_timed(struct comparison *c, struct comparison_metric *m, const struct timed *t,
                              tare_error *err)
{
    struct paired_result p;
    if (!m) return compare_no_memory(err);
    tare_status s = paired_metric_judge(t->set, t->metric, t->rule, &p, err);
    if (s == TARE_OK) s = side_median(t->set, t->metric, PAIR_A, &m->base, err);
    if (s == TARE_OK) s = side_median(t->set, t->metric, PAIR_B, &m->new_, err);
    if (s < 0) return s;
    compare_fill_pairs(c, m, &p, t->rule, "interleaved");
    return TARE_OK;
}

/* ---- what follows from them ---- */

static struct run_estimate inverse(struct run_estimate e, double scale)
{
    struct run_estimate out = {0};
    if (!e.known || !(e.value > 0)) return out;
    out.known = true;
    out.value = scale / e.value;
    if (e.hi.known && e.hi.v > 0) out.lo = known_f64(fmin(scale / e.hi.v, out.value));
    if (e.lo.known && e.lo.v > 0) out.hi = known_f64(fmax(scale / e.lo.v, out.value));
    return out;
}

/* The inverse of the wall time, with its verdict: no witness of its own, so it never gates. */
static tare_status add_throughput(struct comparison *c, struct comparison_case *to,
                                  const struct compare_pairs *in, const struct comparison_metric *wall,
                                  tare_error *err)
{
    if (!(in->units > 0)) return TARE_OK;
    struct comparison_metric *m = compare_add_metric(c, to, measure_find("throughput"), "advisory");
    if (!m) return compare_no_memory(err);
    m->unit = arena_printf(&c->arena, "%s/s", in->unit ? in->unit : "runs");
    m->method = "derived";
    m->base = inverse(wall->base, in->units * 1e9);
    m->new_ = inverse(wall->new_, in->units * 1e9);
    m->ratio = inverse(wall->ratio, 1);
    m->gate = inverse(wall->gate, 1);
    m->confidence = wall->confidence;
    m->gate_confidence = wall->gate_confidence;
    m->verdict = wall->verdict; /* more time is less throughput */
    m->min_effect = wall->min_effect;
    m->mde = wall->mde;
    m->samples = wall->samples;
    run_map_text(&c->arena, &m->unknown, "p_value", "derived from latency, which has its own");
    run_map_text(&c->arena, &m->unknown, "needed", "see latency");
    run_map_text(&c->arena, &m->unknown, "sd_sample", "see latency");
    run_map_text(&c->arena, &m->unknown, "sd_launch", "see latency");
    return TARE_OK;
}

static size_t launches_of(const struct pair_set *set)
{
    return set->own_launch ? set->n : set->n_epochs;
}

static double peak_of(const struct pair_set *set, size_t launch, int side)
{
    return (double)(set->own_launch ? set->at[launch].side[side].rss_peak
                                    : set->epochs[launch].side[side].rss_peak);
}

/* Peak memory of every launch that tells it of both sides, judged as pairs are. */
static tare_status add_memory(struct comparison *c, struct comparison_case *to,
                              const struct compare_pairs *in, const struct paired_rule *r, tare_error *err)
{
    size_t room = launches_of(in->set), n = 0;
    double *x[PAIR_SIDES], *ratio = mem_new(room, 3 * sizeof *ratio), middle[PAIR_SIDES] = {0};
    struct comparison_metric *m;
    struct paired_result p;
    tare_status s = TARE_OK;
    if (!ratio) return compare_no_memory(err);
    for (int side = 0; side < PAIR_SIDES; side++) x[side] = ratio + room * (size_t)(side + 1);
    for (size_t i = 0; i < room; i++) {
        for (int side = 0; side < PAIR_SIDES; side++) x[side][n] = peak_of(in->set, i, side);
        ratio[n] = log(x[PAIR_B][n] / x[PAIR_A][n]);
        n += isfinite(ratio[n]);
    }
    if (n == 0) {
        run_map_text(&c->arena, &to->unknown, "memory.peak", "the system did not tell");
        goto out;
    }
    s = paired_judge(&(struct paired_series){ratio, NULL, n}, r, &p, err);
    for (int side = 0; s == TARE_OK && side < PAIR_SIDES; side++)
        s = stats_median(x[side], n, &middle[side], err);
    if (s < 0) goto out;
    if (!(m = compare_add_metric(c, to, measure_find("memory.peak"), "advisory"))) {
        s = compare_no_memory(err);
        goto out;
    }
    compare_fill_pairs(c, m, &p, r, "launches");
    m->base = (struct run_estimate){.known = true, .value = middle[PAIR_A]};
    m->new_ = (struct run_estimate){.known = true, .value = middle[PAIR_B]};
out:
    mem_free(ratio);
    return s;
}

/* ---- the case ---- */

/* Single measurements as columns, in time order, so that others can judge them anew. */
static void keep_samples(struct comparison *c, struct comparison_case *to, const struct pair_set *set)
{
    struct run_samples *const at[] = {&to->samples.base_wall_ns, &to->samples.new_wall_ns,
                                      &to->samples.base_cpu_ns,  &to->samples.new_cpu_ns,
                                      &to->samples.launch,       &to->samples.order};
    size_t n = set->n < MOST_KEPT ? set->n : MOST_KEPT;
    uint64_t *v[6];
    to->samples.known = true;
    for (int k = 0; k < 6; k++) {
        if (set->elsewhere && (k == 2 || k == 3)) continue; /* no CPU time */
        v[k] = arena_new(&c->arena, n, sizeof **v);
        if (!v[k]) return; /* the arena remembers */
        *at[k] = (struct run_samples){
            .known = true, .kept = n == set->n ? "all" : "first", .cap = MOST_KEPT, .ns = v[k], .n = n};
    }
    for (size_t i = 0; i < n; i++) {
        const struct pair *p = &set->at[i];
        v[0][i] = p->side[PAIR_A].wall_ns;
        v[1][i] = p->side[PAIR_B].wall_ns;
        if (!set->elsewhere) v[2][i] = p->side[PAIR_A].cpu_ns;
        if (!set->elsewhere) v[3][i] = p->side[PAIR_B].cpu_ns;
        v[4][i] = p->epoch;
        v[5][i] = p->b_first;
    }
}

/* By how much each launch was shifted, of both sides, and how long loading took. */
static void fill_launch(struct comparison *c, struct comparison_case *to, const struct pair_set *set)
{
    static const char *const names[PAIR_SIDES][3] = {{"base_env_pad", "base_heap_pad", "base_load_ns"},
                                                     {"new_env_pad", "new_heap_pad", "new_load_ns"}};
    size_t n = launches_of(set);
    if (n > MOST_LAUNCHES) n = MOST_LAUNCHES;
    for (int side = 0; side < PAIR_SIDES; side++) {
        struct run_map lists[3] = {0};
        for (size_t i = 0; i < n; i++) {
            const struct pair_launch *l = set->own_launch ? NULL : &set->epochs[i].side[side];
            run_map_int(&c->arena, &lists[0], NULL, l ? l->env_pad : set->at[i].side[side].env_pad);
            if (l) run_map_int(&c->arena, &lists[1], NULL, l->heap_pad);
            if (l) run_map_int(&c->arena, &lists[2], NULL, (int64_t)l->load_ns);
        }
        for (int k = 0; k < 3; k++)
            if (lists[k].n)
                run_map_set(&c->arena, &to->launch, names[side][k],
                            (struct run_value){.kind = RUN_LIST, .items = lists[k]});
    }
}

/* How it was measured, and what else went on. */
static void fill_case(struct comparison *c, struct comparison_case *to, const struct compare_pairs *in,
                      const struct paired_contention *busy)
{
    const struct pair_set *set = in->set;
    to->pairs = known_u64(set->n);
    to->failed_pairs = known_u64(set->failed);
    to->launches = known_u64(launches_of(set));
    to->repeats = known_u64(set->repeats ? set->repeats : 1);
    to->spent_s = known_f64(in->spent_s);
    to->stopped = in->stopped;
    to->interference = (struct comparison_evidence){.known = true,
                                                    .contended = known_bool(busy->contended),
                                                    .cpu_share = known_if_finite(busy->cpu_share),
                                                    .interrupted = known_f64(busy->interrupted),
                                                    .pressure = busy->pressure,
                                                    .steal = busy->steal};
    if (!busy->pressure.known)
        run_map_text(&c->arena, &to->unknown, "interference.pressure", "the kernel does not tell");
    if (!busy->steal.known)
        run_map_text(&c->arena, &to->unknown, "interference.steal", "the kernel does not tell");
    fill_launch(c, to, set);
    if (in->keep_samples)
        keep_samples(c, to, set);
    else
        run_map_text(&c->arena, &to->unknown, "samples", "not asked for");
}

/* None of these changes a verdict: they say what is missing in the numbers that it was made from. */
static void add_warnings(struct comparison *c, struct comparison_case *to, const struct compare_pairs *in,
                         const struct paired_rule *r)
{
    const struct pair_set *set = in->set;
    if (set->failed)
        comparison_note(
            c, to, "pairs.failed", "warn",
            "%llu of %llu pairs failed and are not in the numbers (base %llu times, new %llu): %s",
            (unsigned long long)set->failed, (unsigned long long)(set->failed + set->n),
            (unsigned long long)set->failed_side[PAIR_A], (unsigned long long)set->failed_side[PAIR_B],
            in->failure ? in->failure : "");
    if (in->few_launches && set->elsewhere)
        comparison_note(
            c, to, "launches.few", "warn",
            "there was time for %zu of %zu stretches of requests: the interval is wider for it; a "
            "longer --budget helps",
            set->n_epochs, r->least_epochs);
    else if (in->few_launches)
        comparison_note(
            c, to, "launches.few", "warn",
            "loading takes so long that the budget allowed %zu launches, not %zu: the interval is "
            "wider for it; a longer --budget helps",
            set->n_epochs, r->least_epochs);
    if (in->stopped && strcmp(in->stopped, "interrupted") == 0)
        comparison_note(c, to, "interrupted", "warn", "interrupted: judged by what there is");
}

/* On a busy machine, wall time that cannot decide does not keep CPU time from deciding. */
static void choose_witness(struct comparison *c, struct comparison_case *to, struct comparison_metric *wall,
                           const struct paired_contention *busy)
{
    if (!busy->contended) return;
    bool undecided = strcmp(wall->verdict, "inconclusive") == 0;
    if (busy->cpu_bound && undecided) {
        wall->role = "advisory";
        wall->why = "the machine was busy with other work: CPU time is the witness";
    }
    comparison_note(c, to, "machine.busy", "warn",
                    "the machine was busy with other work (something waited for a CPU %.0f %% of the time, "
                    "%.0f %% of measurements interrupted): %s",
                    100 * (busy->pressure.known ? busy->pressure.v : 0), 100 * busy->interrupted,
                    busy->cpu_bound ? "trust CPU time more than latency" : "measure again when it is quiet");
}

/* The change is of pairs, which share what the machine did to both; the medians of all runs may even stand in the other
 * order. Two numbers that contradict each other need a word. */
static tare_status note_medians(struct comparison *c, struct comparison_case *to,
                                const struct comparison_metric *m, tare_error *err)
{
    struct buf of[2] = {BUF_INIT, BUF_INIT};
    if (!m->base.known || !m->new_.known || !m->ratio.known) return TARE_OK;
    double pairs = log(m->ratio.value), medians = log(m->new_.value / m->base.value);
    if (!(fabs(pairs - medians) > fmax(MEDIANS_APART, MEDIANS_SHARE * fabs(pairs)))) return TARE_OK;
    fmt_change(&of[0], exp(pairs));
    fmt_change(&of[1], exp(medians));
    tare_status s = of[0].failed || of[1].failed ? compare_no_memory(err) : TARE_OK;
    if (s == TARE_OK)
        comparison_note(
            c, to, "pairs.medians", "info",
            "%s: %s is of pairs measured next to each other, and is what counts; the medians of all "
            "runs differ by %s, with what the machine did meanwhile in it",
            m->metric, of[0].data, of[1].data);
    buf_release(&of[0]);
    buf_release(&of[1]);
    return s;
}

/* CPU time gates only where it is about all that both sides need: of work that waits it tells little. */
static tare_status add_cpu(struct comparison *c, struct comparison_case *to, const struct timed *t,
                           bool cpu_bound, tare_error *err)
{
    const char *role = cpu_bound ? "gate" : "advisory";
    return fill_timed(c, compare_add_metric(c, to, measure_find("cpu.time"), role), t, err);
}

static void explain_elsewhere(struct comparison *c, struct comparison_case *to)
{
    static const char *const paths[] = {"cpu.time", "memory.peak", "interference.cpu_share"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        run_map_text(&c->arena, &to->unknown, paths[i],
                     "a service works in a process that was not looked at");
}

/* The witness is chosen last, because it needs the verdict on wall time. */
tare_status compare_pairs_add(struct comparison *c, const struct compare_pairs *in,
                              const struct paired_rule *r, tare_error *err)
{
    if (in->set->n == 0)
        return error_set(err, TARE_DENIED, "%s: no pair was measured", in->name ? in->name : "comparison");
    struct paired_contention busy = paired_contention(in->set);
    struct comparison_case *to = comparison_add_case(c, in->name);
    if (!to) return compare_no_memory(err);
    fill_case(c, to, in, &busy);
    const char *time =
        in->set->elsewhere ? "latency.mean" : "latency.p50"; /* of a service: of a pair's requests */
    struct comparison_metric *wall = compare_add_metric(c, to, measure_find(time), "gate");
    tare_status s = fill_timed(c, wall, &(struct timed){in->set, r, PAIRED_WALL}, err);
    if (s < 0) return s;
    if (!in->set->elsewhere) s = add_cpu(c, to, &(struct timed){in->set, r, PAIRED_CPU}, busy.cpu_bound, err);
    if (s == TARE_OK) s = add_throughput(c, to, in, wall, err);
    if (s == TARE_OK && !in->set->elsewhere) s = add_memory(c, to, in, r, err);
    if (s < 0) return s;
    choose_witness(c, to, wall, &busy);
    add_warnings(c, to, in, r);
    if (in->set->elsewhere) explain_elsewhere(c, to);
    return note_medians(c, to, wall, err);
}

/* ---- all cases ---- */

void compare_adjust(struct comparison_metric *m, double p, double alpha, size_t family)
{
    m->p_value = known_f64(p);
    if (p <= alpha || strcmp(m->verdict, "regressed") != 0) return;
    m->verdict = "inconclusive";
    m->why = family > 1 ? "slower by itself, but among so many comparisons such a one comes by chance"
                        : "slower, but not surely enough";
}

tare_status compare_finish(struct comparison *c, double alpha, tare_error *err)
{
    VEC(struct comparison_metric *) gates = VEC_INIT;
    VEC(double) p = VEC_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; s == TARE_OK && k < c->cases.at[i]->metrics.n; k++) {
            struct comparison_metric *m = c->cases.at[i]->metrics.at[k];
            if (strcmp(m->role, "gate") != 0 || !m->p_value.known) continue;
            s = vec_push(&gates, m, err);
            if (s == TARE_OK) s = vec_push(&p, m->p_value.v, err);
        }
    paired_holm(p.items, p.n);
    for (size_t i = 0; s == TARE_OK && i < p.n; i++) compare_adjust(gates.items[i], p.items[i], alpha, p.n);
    vec_release(&gates);
    vec_release(&p);
    if (s < 0) return s;
    comparison_sum_up(c);
    return TARE_OK;
}
