/* SPDX-License-Identifier: MIT
 * alarms_kept.c - alert rules over what the store adds up and judges: burn rates of services' promises (sla_ask.h), and
 * runs that got worse (src/history), as the API tells them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "history/trend_answer.h"
#include "server/alerts/alarms_state.h"
#include "server/sla/sla_ask.h"

enum { SERIES_MOST = 500, RUNS_LAST = 40, RUNS_REACH = 300 };
#define BURNS_EVERY_NS UINT64_C(10000000000)

static bool is_about(const struct alert_rule *r, const char *name)
{
    return strcmp(r->when.name, name) == 0;
}

static bool any_about(const struct alarms *a, const char *name)
{
    for (size_t i = 0; i < a->rules.items.n; i++)
        if (is_about(&a->rules.items.items[i], name)) return true;
    return false;
}

/* Copied: the questions about each go over the same connection. */
struct name {
    const char *project, *text;
};
struct names {
    struct arena arena;
    VEC(struct name) at;
};

static tare_status add_name(struct names *to, const char *project, const char *name, tare_error *err)
{
    struct name n = {arena_str(&to->arena, project ? project : ""), arena_str(&to->arena, name)};
    return to->arena.failed ? error_nomem(err, "names") : vec_push(&to->at, n, err);
}

static void names_release(struct names *n)
{
    vec_release(&n->at);
    arena_release(&n->arena);
}

/* ---- burn rates ---- */

static tare_status note_service(void *ctx, const struct store_service *of, tare_error *err)
{
    if (of->last_ms < alarms_now_ms() - 6 * (int64_t)STORE_HOUR_MS) return TARE_OK;
    return add_name(ctx, of->project, of->service, err);
}

/* Both windows must be beyond: six hours, that it matters; one, that it goes on. */
static double burn_of(const struct sla_slo *o)
{
    return o->burn_1h.known && o->burn_6h.known ? fmin(o->burn_1h.v, o->burn_6h.v) : (double)NAN;
}

static tare_status judge_promises(struct alarms *a, const struct sla_ask *ask, const struct sla *found,
                                  tare_error *err)
{
    char about[400], project[STORE_NAME_MAX + 1];
    tare_status s = TARE_OK;
    snprintf(project, sizeof project, "%s", ask->project);
    for (size_t i = 0; i < found->total.slo.n; i++) {
        const struct sla_slo *o = found->total.slo.at[i];
        struct alarm_news news = {.at_ms = alarms_now_ms(), .value = burn_of(o), .action = ""};
        snprintf(about, sizeof about, "%s: %g%% within %g ms", ask->service, 100 * o->objective,
                 (double)o->threshold_ns / 1e6);
        for (size_t k = 0; k < a->rules.items.n && s == TARE_OK; k++) {
            const struct alert_rule *r = &a->rules.items.items[k];
            if (!is_about(r, ALERT_SLO_BURN)) continue;
            if (r->when.label[0] && strcmp(r->when.label, ask->service) != 0) continue;
            s = alarm_judge(a, &(struct alarm){.rule = r, .project = project, .about = about}, &news, err);
        }
    }
    return s;
}

tare_status alarms_look_burns(struct alarms *a, tare_error *err)
{
    struct names services = {ARENA_INIT, VEC_INIT};
    uint64_t now = clock_raw_ns();
    if (!any_about(a, ALERT_SLO_BURN) || (a->burns_at_ns && now - a->burns_at_ns < BURNS_EVERY_NS))
        return TARE_OK;
    tare_status s = a->store->ops->services(a->store, NULL, note_service, &services, err);
    for (size_t i = 0; i < services.at.n && s == TARE_OK; i++) {
        struct sla found = {0};
        struct sla_ask ask = {.project = services.at.items[i].project,
                              .service = services.at.items[i].text,
                              .to_ms = alarms_now_ms() + 1};
        s = sla_burns_read(a->store, &ask, &found, err);
        if (s == TARE_OK) s = judge_promises(a, &ask, &found, err);
        sla_release(&found);
    }
    if (s == TARE_OK) a->burns_at_ns = now;
    names_release(&services);
    return s;
}

/* ---- runs that got worse ---- */

/* By how much the newest level is worse than that of the accepted run. */
static double worse_than_accepted(const struct trend_series *s, bool more_is_better, const char **run)
{
    double r = s->accepted.ratio.value;
    *run = NULL;
    if (!s->accepted.worse) return 0;
    *run = s->points.at.items[s->found.changes.items[s->accepted.change].at].run;
    return more_is_better ? 1 / r - 1 : r - 1;
}

/* By how much the newest level is worse than the one before the worst of the recent steps that it has not made good;
 * NAN: too few runs to see a step. */
static double worse_by(const struct trend_series *s, bool more_is_better, const char **run)
{
    double total = 0, worst = 0;
    *run = NULL;
    if (s->points.at.n < 2 * TREND_MIN_SIDE) return NAN;
    if (s->accepted.seen) return worse_than_accepted(s, more_is_better, run);
    for (size_t i = s->found.changes.n; i-- > 0;) {
        const struct trend_change *c = &s->found.changes.items[i];
        total += more_is_better ? -log(c->ratio.value) : log(c->ratio.value);
        if (!c->worse || !c->recent || total <= worst) continue;
        worst = total;
        *run = s->points.at.items[c->at].run;
    }
    return expm1(worst);
}

static tare_status judge_series(struct alarms *a, const struct alert_rule *r, const char *project,
                                const struct trend_answer *found, tare_error *err)
{
    char about[400], whose[STORE_NAME_MAX + 1];
    tare_status s = TARE_OK;
    snprintf(whose, sizeof whose, "%s", project);
    for (size_t i = 0; i < found->series.n && s == TARE_OK; i++) {
        const struct trend_series *of = &found->series.items[i];
        struct alarm_news news = {.at_ms = alarms_now_ms(), .action = ""};
        news.value = worse_by(of, found->metric->more_is_better, &news.run);
        snprintf(about, sizeof about, "%.160s, %.120s, on %.64s (%.8s)", of->subject, of->case_name,
                 of->hostname[0] ? of->hostname : "a host", of->host);
        s = alarm_judge(a, &(struct alarm){.rule = r, .project = whose, .about = about}, &news, err);
    }
    return s;
}

static tare_status judge_subject(struct alarms *a, const char *project, const char *subject, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < a->rules.items.n && s == TARE_OK; i++) {
        const struct alert_rule *r = &a->rules.items.items[i];
        struct trend_ask ask = {.query = {.subject = subject,
                                          .metric = r->when.label[0] ? r->when.label : "latency.p50",
                                          .project = project[0] ? project : NULL,
                                          .limit = SERIES_MOST},
                                .last = RUNS_LAST,
                                .reach = RUNS_REACH};
        struct trend_answer found = {0};
        if (!is_about(r, ALERT_REGRESSION)) continue;
        s = trend_load(a->store, &ask, &found, err);
        if (s == TARE_OK) s = judge_series(a, r, project, &found, err);
        trend_answer_release(&found);
    }
    return s;
}

struct arrivals {
    struct names subjects;
    int64_t newest;
};

static tare_status note_arrival(void *ctx, const struct store_arrival *of, tare_error *err)
{
    struct arrivals *to = ctx;
    if (of->seq > to->newest) to->newest = of->seq;
    return of->subject ? add_name(&to->subjects, of->project, of->subject, err) : TARE_OK;
}

/* Whatever came since the last look; after a start, all there is: so a rule that is new knows how things stand. */
tare_status alarms_look_runs(struct alarms *a, tare_error *err)
{
    int64_t pins = 0;
    if (!any_about(a, ALERT_REGRESSION)) return TARE_OK;
    tare_status s = a->store->ops->pins(a->store, &pins, err);
    if (s != TARE_OK) return s;
    if (pins != a->pins) a->run_seq = 0; /* a run was accepted: what is judged against it stands otherwise */
    a->pins = pins;
    struct arrivals came = {{ARENA_INIT, VEC_INIT}, a->run_seq};
    s = a->store->ops->runs_after(a->store, a->run_seq, note_arrival, &came, err);
    for (size_t i = 0; i < came.subjects.at.n && s == TARE_OK; i++)
        s = judge_subject(a, came.subjects.at.items[i].project, came.subjects.at.items[i].text, err);
    if (s == TARE_OK) a->run_seq = came.newest;
    names_release(&came.subjects);
    return s;
}
