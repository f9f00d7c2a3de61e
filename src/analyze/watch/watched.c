/* SPDX-License-Identifier: MIT
 * watched.c - see watched.h. */
#include "analyze/watch/watched.h"

#include <math.h>
#include <string.h>

#include "analyze/watch/diagnose.h"
#include "analyze/watch/phase.h"
#include "analyze/watch/system_report.h"

static struct known_f64 mean_of(const struct course *c, enum course_quantity q, const struct phase *p)
{
    double v = course_mean(c, q, p->from, p->to);
    return (struct known_f64){!isnan(v), isnan(v) ? 0 : v};
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
