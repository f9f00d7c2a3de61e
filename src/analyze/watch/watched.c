/* SPDX-License-Identifier: MIT
 * watched.c - see watched.h. Phases: windows of steps are named each by itself, stretches too short to mean anything
 * are given to a neighbour, and work is parted where its level of processor or GPU use changes for good. */
#include "analyze/watch/watched.h"

#include <math.h>
#include <string.h>

#include "analyze/watch/diagnose.h"
#include "analyze/watch/system_report.h"

enum { WINDOWS_MAX = 200, PARTS_DEPTH = 3 };
#define IDLE_CPU 0.05    /* processors */
#define IDLE_IO 1e6      /* bytes per second */
#define IDLE_GPU 0.05    /* share */
#define LOAD_IO 20e6     /* bytes per second with which storage counts as being loaded from */
#define GROWTH 0.02      /* of the greatest memory, per window */
#define GROWTH_LEAST 8e6 /* bytes; less is noise of an allocator */
#define SHORT_SHARE 0.03 /* of the run: no phase of its own */
#define LEVEL_RATIO 1.5  /* of two levels that are told apart */
#define LEVEL_LEAST 0.25 /* processors, or share of a GPU */

static const char load[] = "load", steady[] = "steady", idle[] = "idle";

/* ---- a window by itself ---- */

static double or_zero(double v)
{
    return isnan(v) ? 0 : v;
}

static double last_known(const struct course *c, enum course_quantity q, size_t to)
{
    while (to > 0 && isnan(c->steps.items[to - 1].value[q])) to--;
    return to > 0 ? c->steps.items[to - 1].value[q] : NAN;
}

static double greatest(const struct course *c, enum course_quantity q)
{
    double most = NAN;
    for (size_t i = 0; i < c->steps.n; i++) most = fmax(most, c->steps.items[i].value[q]);
    return most;
}

static const char *name_of(const struct course *c, size_t from, size_t to, double peak)
{
    double cpu = course_mean(c, COURSE_PROCESS_CPU, from, to), io = course_mean(c, COURSE_IO, from, to);
    double gpu = course_mean(c, COURSE_GPU, from, to);
    double grown = last_known(c, COURSE_RSS, to) - last_known(c, COURSE_RSS, from ? from : 1);
    if (grown > fmax(GROWTH * peak, GROWTH_LEAST) || or_zero(io) > LOAD_IO) return load;
    bool quiet = or_zero(cpu) < IDLE_CPU && or_zero(io) < IDLE_IO && or_zero(gpu) < IDLE_GPU;
    return quiet ? idle : steady;
}

/* ---- stretches ---- */

static tare_status add(struct phases *out, const char *name, size_t from, size_t to, tare_error *err)
{
    struct phase *last = out->items.n ? vec_last(&out->items) : NULL;
    if (last && last->name == name) {
        last->to = to;
        return TARE_OK;
    }
    struct phase p = {name, from, to};
    return vec_push(&out->items, p, err);
}

static double length(const struct course *c, const struct phase *p)
{
    return course_seconds(c, p->to) - course_seconds(c, p->from);
}

/* The shortest phase below the limit joins the longer of its neighbours; again until there is none. */
static void drop_short(struct phases *p, const struct course *c, double limit)
{
    while (p->items.n > 1) {
        struct phase *at = p->items.items;
        size_t least = 0, n = p->items.n;
        for (size_t i = 1; i < n; i++)
            if (length(c, &at[i]) < length(c, &at[least])) least = i;
        if (length(c, &at[least]) >= limit) return;
        bool left = least > 0 && (least + 1 == n || length(c, &at[least - 1]) >= length(c, &at[least + 1]));
        size_t into = left ? least - 1 : least + 1;
        at[into].from = left ? at[into].from : at[least].from;
        at[into].to = left ? at[least].to : at[into].to;
        for (size_t i = least; i + 1 < n; i++) at[i] = at[i + 1];
        p->items.n--;
        for (size_t i = 0; i + 1 < p->items.n; i++) {
            if (at[i].name != at[i + 1].name) continue;
            at[i].to = at[i + 1].to;
            for (size_t k = i + 1; k + 1 < p->items.n; k++) at[k] = at[k + 1];
            p->items.n--;
            break;
        }
    }
}

/* ---- levels of work ---- */

/* The step at which cutting [from, to) in two leaves the least squares; 0: no cut is worth it. */
static size_t best_cut(const struct course *c, enum course_quantity q, size_t from, size_t to, size_t least)
{
    double all = 0, left = 0, gain_best = 0, squares = 0;
    size_t best = 0, n = to - from;
    for (size_t i = from; i < to; i++) all += or_zero(c->steps.items[i].value[q]);
    for (size_t i = from; i < to; i++)
        squares += pow(or_zero(c->steps.items[i].value[q]) - all / (double)n, 2);
    for (size_t i = from; i < to; i++) {
        size_t k = i - from;
        if (k >= least && n - k >= least) {
            double a = left / (double)k, b = (all - left) / (double)(n - k);
            double gain = (double)k * (double)(n - k) / (double)n * (a - b) * (a - b);
            bool apart = fabs(a - b) >= LEVEL_LEAST && fmax(a, b) >= LEVEL_RATIO * fmin(a, b);
            if (apart && gain > gain_best) {
                gain_best = gain;
                best = i;
            }
        }
        left += or_zero(c->steps.items[i].value[q]);
    }
    return gain_best > squares / 2 ? best : 0;
}

static tare_status part(struct phases *out, const struct course *c, struct phase p, unsigned depth,
                        tare_error *err)
{
    size_t least = c->steps.n / 20 > 5 ? c->steps.n / 20 : 5, cut = 0;
    if (p.name == steady && depth < PARTS_DEPTH && p.to - p.from >= 2 * least) {
        cut = best_cut(c, COURSE_PROCESS_CPU, p.from, p.to, least);
        if (!cut) cut = best_cut(c, COURSE_GPU, p.from, p.to, least);
    }
    if (!cut) return vec_push(&out->items, p, err);
    struct phase a = {p.name, p.from, cut}, b = {p.name, cut, p.to};
    tare_status s = part(out, c, a, depth + 1, err);
    return s == TARE_OK ? part(out, c, b, depth + 1, err) : s;
}

tare_status phases_find(struct phases *out, const struct course *c, tare_error *err)
{
    struct phases rough = {VEC_INIT};
    size_t n = c->steps.n, windows = n < WINDOWS_MAX ? n : WINDOWS_MAX;
    double peak = greatest(c, COURSE_RSS), limit = SHORT_SHARE * course_seconds(c, n);
    tare_status s = TARE_OK;
    for (size_t w = 0; w < windows && s == TARE_OK; w++) {
        size_t from = n * w / windows, to = n * (w + 1) / windows;
        s = add(&rough, name_of(c, from, to, peak), from, to, err);
    }
    drop_short(&rough, c, limit);
    for (size_t i = 0; i < rough.items.n && s == TARE_OK; i++) s = part(out, c, rough.items.items[i], 0, err);
    vec_release(&rough.items);
    return s;
}

/* ---- into the document ---- */

static struct known_f64 mean_of(const struct course *c, enum course_quantity q, const struct phase *p)
{
    return known_if_finite(course_mean(c, q, p->from, p->to));
}

static uint64_t step_ns(const struct course *course, size_t step)
{
    return course->start_ns + (uint64_t)(course_seconds(course, step) * 1e9);
}

static double seconds_in(struct watched_span span, uint64_t at_ns)
{
    if (at_ns > span.end_ns) at_ns = span.end_ns;
    return at_ns > span.start_ns ? (double)(at_ns - span.start_ns) / 1e9 : 0;
}

tare_status watched_phases(struct run *run, struct run_watch *watch, const struct course *course,
                           struct watched_span span, tare_error *err)
{
    struct phases found = {VEC_INIT};
    tare_status s = phases_find(&found, course, err);
    size_t n = found.items.n; /* one that begins when the program has ended is none of its */
    while (n > 1 && step_ns(course, found.items.items[n - 1].from) >= span.end_ns) n--;
    watch->phases.at = run_list_new(&run->arena, n, sizeof **watch->phases.at);
    watch->phases.n = watch->phases.at ? n : 0;
    for (size_t i = 0; i < watch->phases.n; i++) {
        const struct phase *p = &found.items.items[i];
        struct known_f64 rss = mean_of(course, COURSE_RSS, p);
        *watch->phases.at[i] = (struct run_phase){
            .name = p->name,
            .start_s = known_f64(seconds_in(span, step_ns(course, p->from))),
            .end_s = known_f64(seconds_in(span, step_ns(course, p->to))),
            .cpu = mean_of(course, COURSE_PROCESS_CPU, p),
            .gpu = mean_of(course, COURSE_GPU, p),
            .rss = {rss.known, (uint64_t)rss.v},
        };
    }
    vec_release(&found.items);
    return s;
}

/* ---- from a trace ---- */

/* The clearing that follows an alert of the same text. */
static const struct sample_mark *clearing(const struct samples *s, size_t fired)
{
    for (size_t i = fired + 1; i < s->marks.n; i++) {
        const struct sample_mark *m = &s->marks.items[i];
        if (m->kind == SAMPLE_CLEAR && strcmp(m->text, s->marks.items[fired].text) == 0) return m;
    }
    return NULL;
}

static double since_start(const struct samples *s, uint64_t at_ns)
{
    uint64_t start = s->at_ns.n ? s->at_ns.items[0] : 0;
    return at_ns > start ? (double)(at_ns - start) / 1e9 : 0;
}

/* An alert that was not cleared has no end: it lasted as long as the recording. */
static void add_alerts(struct run *run, struct run_watch *watch, const struct samples *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->marks.n; i++) n += s->marks.items[i].kind == SAMPLE_ALERT;
    if (n > RUN_LIST_MAX) n = RUN_LIST_MAX;
    watch->alerts.at = run_list_new(&run->arena, n, sizeof **watch->alerts.at);
    if (!watch->alerts.at) return;
    for (size_t i = 0; i < s->marks.n && watch->alerts.n < n; i++) {
        const struct sample_mark *m = &s->marks.items[i];
        if (m->kind != SAMPLE_ALERT) continue;
        const struct sample_mark *end = clearing(s, i);
        struct run_alert *a = watch->alerts.at[watch->alerts.n++];
        a->rule = a->metric = arena_str(&run->arena, *m->text ? m->text : "?");
        a->metric =
            arena_str_n(&run->arena, a->rule, strcspn(a->rule, "[<> ") ? strcspn(a->rule, "[<> ") : 1);
        a->start_s = known_f64(since_start(s, m->at_ns));
        if (end) a->end_s = known_f64(since_start(s, end->at_ns));
    }
}

struct replay {
    struct deriver *deriver;
    struct system_report *report;
    struct course course;
};

static tare_status replay_all(struct replay *r, const struct samples *s, tare_error *err)
{
    struct sample now = SAMPLE_INIT;
    tare_status st = TARE_OK;
    for (size_t t = 0; st == TARE_OK && t < s->at_ns.n; t++) {
        st = course_moment(s, t, &now, err);
        if (st == TARE_OK) st = deriver_feed(r->deriver, &s->set, &now, err);
        if (st == TARE_OK) st = course_feed(&r->course, r->deriver, now.at_ns, err);
        if (st == TARE_OK && t) st = system_report_feed(r->report, r->deriver, &s->set, now.at_ns, err);
    }
    sample_release(&now);
    return st;
}

tare_status watched_from_samples(struct run *run, const struct samples *s, tare_error *err)
{
    struct replay r = {NULL, NULL, COURSE_INIT};
    struct run_case *c = run_add_case(run, "");
    tare_status st = c ? deriver_new(&r.deriver, err) : error_set(err, TARE_NOMEM, "out of memory");
    if (st == TARE_OK) st = system_report_new(&r.report, err);
    if (st == TARE_OK) st = replay_all(&r, s, err);
    if (st == TARE_OK) {
        struct system_source from = {r.deriver, &s->set, r.course.start_ns};
        c->watch.known = true;
        c->watch.samples = known_u64(s->at_ns.n);
        st = system_report_fill(r.report, &from, run, &c->watch, err);
    }
    struct watched_span whole = {r.course.start_ns, r.course.last_ns};
    if (st == TARE_OK) st = watched_phases(run, &c->watch, &r.course, whole, err);
    if (st == TARE_OK) add_alerts(run, &c->watch, s);
    if (st == TARE_OK) st = diagnose(run, c, &r.course, err);
    system_report_free(r.report);
    deriver_free(r.deriver);
    course_release(&r.course);
    return st;
}
