/* SPDX-License-Identifier: MIT
 * target.c - reads targets as people write them: `latency.p95 <= 100ms`, `throughput>=1000texts/s`,
 * `accuracy >= 69%`, the form `latency:100ms`, and limits on a change: `latency.p95>5%`. Strict: the whole text or an
 * error that shows the place. And judges them: a percentile whose single times are in the document by counting the
 * times beyond the limit (binomial, with as many samples as they are independently worth); other numbers by their
 * interval; a number measured once by itself, without a confidence. Where those do not decide, what no plausible noise
 * explains does. Never rounds in favour. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/judge/judge.h"
#include "analyze/judge/plausible.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "core/stats.h"
#include "core/suggest.h"
#include "core/unit.h"

#define TARGET_TEXT_MAX 200
#define RISK 0.05     /* of a wrong pass or a wrong fail */
#define FAR_RISK 0.01 /* of the same from what is beyond plausible noise: that of gates */

static const char word_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

tare_status rule_refuse(const struct rule_text *r, const char *at, const char *why)
{
    if (*at == 0) return error_set(r->err, TARE_INVALID, "%s: at its end: %s", r->text, why);
    return error_set(r->err, TARE_INVALID, "%s: at '%s': %s", r->text, at, why);
}

void rule_skip_blanks(struct rule_text *r)
{
    r->at += strspn(r->at, " \t");
}

/* ---- metric ---- */

static tare_status unknown_metric(const struct rule_text *r, const char *word)
{
    struct suggest s;
    struct buf all = BUF_INIT;
    suggest_init(&s, word, strlen(word));
    for (const struct measure *m = r->measures ? r->measures : measure_table; m->name; m++) {
        suggest_offer(&s, m->name);
        buf_printf(&all, "%s%s", all.len ? ", " : "", m->name);
    }
    const char *near = suggest_best(&s);
    error_set(r->err, TARE_INVALID, "%s: '%s' is not a metric; %s%s%s", r->text, word,
              near ? "did you mean " : "there are: ", near ? near : all.data, near ? "?" : "");
    buf_release(&all);
    return TARE_INVALID;
}

static const struct measure *find_measure(const struct measure *among, const char *name)
{
    if (!among) return measure_find(name);
    while (among->name && strcmp(among->name, name) != 0) among++;
    return among->name ? among : NULL;
}

/* The name of a measure at the beginning of a text, long or short; `metric` gets the long one. */
static tare_status read_metric(struct rule_text *r, const struct measure **out,
                               char metric[MEASURE_NAME_SIZE])
{
    rule_skip_blanks(r);
    size_t n = strspn(r->at, word_chars);
    if (n == 0) return rule_refuse(r, r->at, "a metric was expected, as in latency.p95<=100ms");
    if (n >= MEASURE_NAME_SIZE) return rule_refuse(r, r->at, "too long for a metric");
    memcpy(metric, r->at, n);
    metric[n] = 0;
    if (!(*out = find_measure(r->measures, metric))) return unknown_metric(r, metric);
    snprintf(metric, MEASURE_NAME_SIZE, "%s", (*out)->name);
    r->at += n;
    rule_skip_blanks(r);
    return TARE_OK;
}

/* ---- operator ---- */

/* The colon stands for the side of the limit that is good. */
static tare_status read_op(struct rule_text *r, const struct measure *m, struct target *out)
{
    static const struct {
        const char *text;
        enum target_op op;
    } ops[] = {{"<=", TARGET_LE}, {">=", TARGET_GE},           {"\xE2\x89\xA4", TARGET_LE},
               {"<", TARGET_LT},  {"\xE2\x89\xA5", TARGET_GE}, {">", TARGET_GT}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        size_t n = strlen(ops[i].text);
        if (strncmp(r->at, ops[i].text, n) != 0) continue;
        out->op = ops[i].op;
        r->at += n;
        rule_skip_blanks(r);
        return TARE_OK;
    }
    if (*r->at != ':')
        return rule_refuse(r, r->at, "expected <=, >=, <, > or : and a value, as in latency.p95<=100ms");
    r->at++;
    out->op = m->more_is_better ? TARGET_GE : TARGET_LE;
    rule_skip_blanks(r);
    return TARE_OK;
}

const char *target_op_text(enum target_op op)
{
    static const char *const texts[] = {"<=", ">=", "<", ">"};
    return texts[op];
}

/* ---- value ---- */

static tare_status read_number(struct rule_text *r, double *out)
{
    const char *why = unit_number(&r->at, out);
    if (why) return rule_refuse(r, r->at, why);
    rule_skip_blanks(r);
    return TARE_OK;
}

/* All that is left of the text is the unit; the value is then in ns, bytes or per second. */
static tare_status read_unit(struct rule_text *r, enum measure_kind kind, struct target *out)
{
    static const struct {
        enum unit_kind kind;
        bool zero_needs_none; /* 0 is 0 in any unit */
        const char *why_not, *usual;
    } rows[] = {
        [MEASURE_TIME] = {UNIT_TIME, true, "not a unit of time; use ns, us, ms or s", "ms"},
        [MEASURE_RATE] = {UNIT_RATE, false, "not a rate; use /s, or what is counted: texts/s", "/s"},
        [MEASURE_BYTES] = {UNIT_MEMORY, true, "not a unit of memory; use B, KB, KiB, MB, MiB, GB or GiB",
                           "MB"},
        [MEASURE_PLAIN] = {UNIT_SHARE, false, "this metric has no unit; a share may be written in %", "%"},
    };
    const char *unit = r->at;
    size_t n = strlen(unit);
    while (n > 0 && (unit[n - 1] == ' ' || unit[n - 1] == '\t')) n--;
    if (n >= sizeof out->unit) return rule_refuse(r, r->at, "too long for a unit");
    memcpy(out->unit, unit, n);
    out->unit[n] = 0;
    bool none = n == 0 && out->value == 0 && rows[kind].zero_needs_none;
    bool good = none || unit_apply(rows[kind].kind, out->unit, &out->value);
    if (!good && n == 0)
        return error_set(r->err, TARE_INVALID, "%s: the number has no unit; write %s%s", r->text, r->text,
                         rows[kind].usual);
    if (!good) return rule_refuse(r, r->at, rows[kind].why_not);
    return isfinite(out->value) ? TARE_OK : rule_refuse(r, r->at, "the value is too large");
}

static tare_status check_length(const char *text, const char *what, tare_error *err)
{
    if (strnlen(text, TARGET_TEXT_MAX + 1) <= TARGET_TEXT_MAX) return TARE_OK;
    return error_set(err, TARE_INVALID, "a %s has at most %d characters", what, TARGET_TEXT_MAX);
}

tare_status target_parse(struct target *out, const char *text, tare_error *err)
{
    struct rule_text r = {text, text, err, NULL};
    struct target t = {.op = TARGET_LE};
    const struct measure *m;
    tare_status s = check_length(text, "target", err);
    if (s == TARE_OK) s = read_metric(&r, &m, t.metric);
    if (s == TARE_OK) s = read_op(&r, m, &t);
    if (s == TARE_OK) s = read_number(&r, &t.value);
    if (s == TARE_OK) s = read_unit(&r, m->kind, &t);
    if (s == TARE_OK) *out = t;
    return s;
}

tare_status target_parse_rate(double *per_second, char unit[24], const char *text, tare_error *err)
{
    struct rule_text r = {text, text + strspn(text, " \t"), err, NULL};
    struct target t = {.op = TARGET_GE};
    tare_status s = check_length(text, "rate", err);
    if (s == TARE_OK) s = read_number(&r, &t.value);
    if (s == TARE_OK) s = read_unit(&r, MEASURE_RATE, &t);
    if (s < 0) return s;
    *per_second = t.value;
    memcpy(unit, t.unit, sizeof t.unit);
    return TARE_OK;
}

/* `>`, `>=` and `:` mean the same: whether the exact limit still passes is never decided by a measurement. */
tare_status compare_limit_parse(struct compare_limit *out, const char *text, const struct measure *among,
                                tare_error *err)
{
    struct rule_text r = {text, text, err, among};
    struct compare_limit l = {.share = NAN};
    const struct measure *m;
    tare_status s = check_length(text, "limit", err);
    if (s == TARE_OK) s = read_metric(&r, &m, l.metric);
    if (s == TARE_OK && *r.at) {
        if (*r.at != '>' && *r.at != ':')
            return rule_refuse(&r, r.at, "expected >, as in latency.p95>5%: worse by more than that");
        r.at += r.at[0] == '>' && r.at[1] == '=' ? 2 : 1;
        rule_skip_blanks(&r);
        s = read_number(&r, &l.share);
        if (s == TARE_OK && !unit_apply(UNIT_PERCENT, r.at, &l.share))
            s = rule_refuse(&r, r.at,
                            "expected %, the share by which it may be worse; a limit by itself, as in "
                            "latency.p95<=100ms, is a --target of tare bench");
        if (s == TARE_OK && l.share > 10) s = rule_refuse(&r, r.at, "a limit above 1000 % never fails");
    }
    if (s == TARE_OK) *out = l;
    return s;
}

/* ---- what a rate counts ---- */

tare_status target_check_unit(const struct target *t, const char *case_unit, tare_error *err)
{
    static const char *const any[] = {"", "samples", "items", "units", "inferences"};
    const struct measure *m = measure_find(t->metric);
    const char *slash = strchr(t->unit, '/');
    if (!m || m->kind != MEASURE_RATE || !slash || !case_unit) return TARE_OK;
    size_t n = (size_t)(slash - t->unit);
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (strlen(any[i]) == n && strncmp(t->unit, any[i], n) == 0) return TARE_OK;
    if (strncmp(case_unit, t->unit, n) == 0 && (case_unit[n] == 0 || case_unit[n] == '/')) return TARE_OK;
    return error_set(err, TARE_INVALID, "the target %s %s %g%s counts %.*s, but the runs count %s; write /s",
                     t->metric, target_op_text(t->op), t->value, t->unit, (int)n, t->unit, case_unit);
}

/* ---- judging ---- */

static bool is_at_most(enum target_op op)
{
    return op == TARGET_LE || op == TARGET_LT;
}

static bool meets(const struct target *t, double v)
{
    switch (t->op) {
    case TARGET_LE: return v <= t->value;
    case TARGET_GE: return v >= t->value;
    case TARGET_LT: return v < t->value;
    case TARGET_GT: return v > t->value;
    }
    return false;
}

/* ---- percentiles from single times ---- */

struct counted {
    double n, breaking; /* times, and those that break the limit */
};

/* Runs that failed, or were due and not served: they took longer than any limit. */
static double lost_runs(const struct run_case *c)
{
    const struct run_open_loop *o = &c->open_loop;
    if (!o->due.known || !o->served.known) return c->failed_runs.known ? (double)c->failed_runs.v : 0;
    return o->due.v > o->served.v ? (double)(o->due.v - o->served.v) : 0;
}

static struct counted count_times(const struct target *t, const struct run_case *c)
{
    const struct run_samples *s = &c->samples_raw;
    double lost = lost_runs(c);
    size_t over = 0;
    for (size_t i = 0; i < s->n; i++) over += !meets(t, (double)s->ns[i]);
    return (struct counted){(double)s->n + lost, (double)over + (is_at_most(t->op) ? lost : 0)};
}

/* An upper limit on quantile q holds when at most 1 - q of all times break it; a lower limit, q of them. */
static double share_allowed(const struct target *t, double q)
{
    return is_at_most(t->op) ? 1 - q : q;
}

/* The times of a case are worth fewer independent samples than there are: so many times and breaks count. */
static tare_status judge_quantile(const struct target *t, const struct run_case *c, double q,
                                  struct run_target *out, tare_error *err)
{
    const struct run_samples *s = &c->samples_raw;
    struct counted k = count_times(t, c);
    double worth = 1, share = share_allowed(t, q);
    double *x = stats_doubles(s->ns, s->n, err);
    if (!x) return TARE_NOMEM;
    tare_status st = stats_n_eff(x, s->n, &worth, err);
    mem_free(x);
    if (st < 0) return st;
    worth /= (double)s->n;
    double n_eff = fmax(floor(k.n * worth), 1), breaking = k.breaking * worth;
    double wrong_pass = stats_binomial_cdf(ceil(breaking - 1e-9), n_eff, share);
    double wrong_fail = stats_binomial_at_least(floor(breaking + 1e-9), n_eff, share);
    if (wrong_pass <= RISK)
        out->verdict = "pass";
    else if (wrong_fail <= RISK)
        out->verdict = "fail";
    out->confidence = known_f64(1 - fmin(fmin(wrong_pass, wrong_fail), 1));
    return TARE_OK;
}

/* ---- intervals ---- */

static void judge_interval(const struct target *t, struct run_estimate e, double level,
                           struct run_target *out)
{
    bool lo = meets(t, e.lo.v), hi = meets(t, e.hi.v);
    if (lo == hi) {
        out->verdict = lo ? "pass" : "fail";
        out->confidence = known_f64((1 + level) / 2);
        return;
    }
    double half = e.value > t->value ? e.value - e.lo.v : e.hi.v - e.value;
    double z = half > 0 ? fabs(e.value - t->value) / half * stats_normal_quantile((1 + level) / 2) : 0;
    out->confidence = known_f64(stats_normal_cdf(z));
}

/* ---- beyond plausible noise ---- */

/* What makes times worth few samples is that the machine was slow or fast for all of them: noise between runs, of which
 * a plausible amount is known. So all times count here, but against a limit that lies as far off as that noise takes
 * them. Every time beyond it is a fail however few they are, and none beyond is a pass for a median; a tail needs the
 * times that show it. A percentile whose times are not in the document stands for itself. */
static const char *judge_far(const struct target *t, const struct run_case *c, const struct measure *m,
                             const struct run_estimate *e, double far)
{
    struct target easy = *t, hard = *t; /* to meet */
    easy.value = is_at_most(t->op) ? t->value * far : t->value / far;
    hard.value = is_at_most(t->op) ? t->value / far : t->value * far;
    if (c->samples_raw.known && c->samples_raw.n > 0) {
        double share = share_allowed(t, m->quantile);
        struct counted k = count_times(&easy, c);
        if (k.breaking == k.n || stats_binomial_at_least(k.breaking, k.n, share) <= RISK) return "fail";
        k = count_times(&hard, c);
        bool none = k.breaking == 0 && share >= 0.5;
        return none || stats_binomial_cdf(k.breaking, k.n, share) <= RISK ? "pass" : "inconclusive";
    }
    if (!e->known) return "inconclusive";
    if (!meets(&easy, e->value)) return "fail";
    return meets(&hard, e->value) ? "pass" : "inconclusive";
}

/* From which ratio on noise is no excuse for this number of the case. */
static double far_ratio(const struct run_case *c, const struct measure *m)
{
    double interrupted, steal;
    bool busy = plausible_disturbed(c, &interrupted, &steal) && plausible_is_busy(interrupted, steal);
    return plausible_ratio(plausible_sd(m, busy, plausible_is_brief(c)), 0, FAR_RISK);
}

/* ---- one target, one case ---- */

static struct known_f64 times_better(const struct target *t, double achieved)
{
    double r = is_at_most(t->op) ? t->value / achieved : achieved / t->value;
    return isfinite(r) && achieved > 0 && t->value > 0 ? known_f64(r) : (struct known_f64){0};
}

/* The strongest evidence decides: for a percentile the single times, else an interval. A value without an interval is
 * compared as it is only where it is no percentile: an estimated tail alone proves nothing, unless it is far from the
 * limit. *far: the ratio from which on that is so, where it decided; else 0. */
static tare_status judge_case(const struct target *t, const struct run_case *c, struct run_target *out,
                              double *far, tare_error *err)
{
    const struct measure *m = measure_find(t->metric);
    struct run_estimate e = {0};
    if (!m) return error_set(err, TARE_INVALID, "'%s' is not a metric", t->metric);
    bool known = measure_of(c, m, &e) && target_check_unit(t, c->unit, NULL) == TARE_OK;
    bool times = m->quantile > 0 && c->samples_raw.known && c->samples_raw.n > 0;
    tare_status s = TARE_OK;
    *far = 0;
    out->verdict = "inconclusive";
    out->achieved = known ? known_f64(e.value) : (struct known_f64){0};
    out->ratio = known ? times_better(t, e.value) : (struct known_f64){0};
    out->confidence = (struct known_f64){0};
    if (times)
        s = judge_quantile(t, c, m->quantile, out, err);
    else if (known && e.lo.known && e.hi.known)
        judge_interval(t, e, c->confidence.known ? c->confidence.v : 0.95, out);
    else if (known && m->quantile == 0)
        out->verdict = meets(t, e.value) ? "pass" : "fail";
    bool alone =
        times || (m->quantile > 0 && !(e.lo.known && e.hi.known)); /* no interval that it would contradict */
    if (s < 0 || !alone || out->verdict[0] != 'i') return s;
    out->verdict = judge_far(t, c, m, &e, far_ratio(c, m));
    if (out->verdict[0] == 'i') return TARE_OK;
    *far = far_ratio(c, m);
    out->confidence = known_f64(1 - FAR_RISK - (times ? RISK : 0)); /* that of the count comes on top */
    return TARE_OK;
}

tare_status target_judge(const struct target *t, const struct run_case *c, struct run_target *out,
                         tare_error *err)
{
    double far;
    return judge_case(t, c, out, &far, err);
}

bool target_seems_kept(const struct target *t, const struct run_case *c)
{
    const struct measure *m = measure_find(t->metric);
    struct run_estimate e;
    if (m && m->quantile > 0 && c->samples_raw.known) {
        struct counted k = count_times(t, c);
        return k.breaking <= share_allowed(t, m->quantile) * k.n;
    }
    return m && measure_of(c, m, &e) && meets(t, e.value);
}

/* ---- all of them ---- */

/* Why it is as it is, where the numbers alone do not say it: the percentile falls on runs without a time, or there are
 * few of them, but `far` off (0: not so). NULL: they do. */
static const char *reason_of(struct run *run, const struct target *t, const struct run_case *c,
                             const struct run_target *row, double far)
{
    const struct measure *m = measure_find(t->metric);
    double lost = lost_runs(c), all = lost + (c->samples.known ? (double)c->samples.v : 0);
    bool failed = row->verdict[0] == 'f';
    if (failed && m->quantile > 0 && is_at_most(t->op) && lost > share_allowed(t, m->quantile) * all)
        return arena_printf(&run->arena, "%s of %s %s: it falls on them", show_number(lost).s,
                            show_count(all, "run").s,
                            c->open_loop.due.known ? "that were due failed or were not served" : "failed");
    if (!(far > 0)) return NULL;
    return arena_printf(&run->arena, "few samples, but no plausible noise makes it %s times as %s",
                        show_number(far).s, is_at_most(t->op) == failed ? "much" : "little");
}

static tare_status add_row(struct run *run, const struct target *t, const struct run_case *c, tare_error *err)
{
    const struct measure *m = measure_find(t->metric);
    struct run_target *row = run_add_target(run, t->metric, target_op_text(t->op), t->value);
    if (!row) return error_nomem(err, "the targets");
    const char *unit = m->kind == MEASURE_RATE && c->throughput.unit ? c->throughput.unit : measure_unit(m);
    row->unit = *unit ? unit : NULL;
    row->case_name = c->name;
    double far;
    tare_status s = judge_case(t, c, row, &far, err);
    if (s == TARE_OK) row->why = reason_of(run, t, c, row, far);
    return s;
}

struct score {
    size_t pass, fail;
    double worst; /* ratio */
};

static tare_status score_case(const struct run_case *c, const struct target *targets, size_t n,
                              struct score *out, tare_error *err)
{
    *out = (struct score){.worst = INFINITY};
    for (size_t i = 0; i < n; i++) {
        struct run_target v;
        tare_status s = target_judge(&targets[i], c, &v, err);
        if (s < 0) return s;
        out->pass += v.verdict[0] == 'p';
        out->fail += v.verdict[0] == 'f';
        out->worst = fmin(out->worst, v.ratio.known ? v.ratio.v : 0);
    }
    return TARE_OK;
}

static bool is_better(struct score a, struct score b)
{
    if (a.fail != b.fail) return a.fail < b.fail;
    if (a.pass != b.pass) return a.pass > b.pass;
    return a.worst > b.worst;
}

static tare_status best_case(const struct run *run, const struct target *targets, size_t n, size_t *best,
                             tare_error *err)
{
    struct score top = {0}, now;
    for (size_t i = 0; i < run->cases.n; i++) {
        tare_status s = score_case(run->cases.at[i], targets, n, &now, err);
        if (s < 0) return s;
        if (i > 0 && !is_better(now, top)) continue;
        top = now;
        *best = i;
    }
    return TARE_OK;
}

tare_status targets_judge(struct run *run, const struct target *targets, size_t n, bool best_only,
                          tare_error *err)
{
    size_t from = 0, to = run->cases.n;
    if (n == 0 || to == 0) return TARE_OK;
    if (best_only) {
        tare_status s = best_case(run, targets, n, &from, err);
        if (s < 0) return s;
        to = from + 1;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t c = from; c < to; c++) {
            tare_status s = add_row(run, &targets[i], run->cases.at[c], err);
            if (s < 0) return s;
        }
    }
    return TARE_OK;
}

size_t targets_missed(const struct run *run)
{
    size_t missed = 0;
    for (size_t i = 0; i < run->targets.n; i++) missed += strcmp(run->targets.at[i]->verdict, "fail") == 0;
    return missed;
}
