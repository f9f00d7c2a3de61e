/* SPDX-License-Identifier: MIT
 * good.c - see good.h. A run is good when all of its series are: of several the earliest good end counts. */
#include "history/good.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RUNS_LAST = 200, SERIES_MOST = 200 };

size_t good_points(const struct trend_series *s, bool more_is_better, double *ratio)
{
    size_t good = s->points.at.n;
    double total = 0;
    *ratio = 1;
    if (s->accepted.seen) {
        if (!s->accepted.worse) return good;
        *ratio = s->accepted.ratio.value;
        return s->found.changes.items[s->accepted.change].at;
    }
    for (size_t i = s->found.changes.n; i-- > 0;) {
        const struct trend_change *c = &s->found.changes.items[i];
        total += log(c->ratio.value);
        bool still = more_is_better ? total < 0 : total > 0;
        if (!c->worse || !c->recent || !still) continue;
        good = c->at;
        *ratio = exp(total);
    }
    return good;
}

struct finding {
    struct good_answer *to;
    int64_t newest_ms;
    bool none; /* a series has no good run */
};

static void note_series(struct finding *f, const struct trend_series *s, bool more_is_better)
{
    double ratio = 1;
    if (!s->points.at.n) return;
    size_t good = good_points(s, more_is_better, &ratio);
    const struct store_point *last = vec_last(&s->points.at),
                             *then = good ? &s->points.at.items[good - 1] : NULL;
    struct good_answer *to = f->to;
    to->value = to->series++ ? NAN : exp(vec_last(&s->found.levels)->median);
    to->worse += good < s->points.at.n;
    if (fabs(log(ratio)) > fabs(log(to->ratio))) to->ratio = ratio;
    if (!to->newest[0] || last->created_ms > f->newest_ms) {
        f->newest_ms = last->created_ms;
        memcpy(to->newest, last->run, sizeof to->newest);
    }
    if (!then) f->none = true;
    if (!then || (to->run[0] && then->created_ms >= to->created_ms)) return;
    memcpy(to->run, then->run, sizeof to->run);
    memcpy(to->commit, then->commit, sizeof to->commit);
    to->created_ms = then->created_ms;
}

struct store_query good_query_of(const struct good_ask *ask)
{
    return (struct store_query){.subject = ask->subject,
                                .host = ask->host,
                                .project = ask->project,
                                .metric = ask->metric ? ask->metric : "latency.p50",
                                .limit = SERIES_MOST};
}

tare_status good_find(struct store *store, const struct good_ask *ask, struct good_answer *out,
                      tare_error *err)
{
    struct trend_answer found = {0};
    struct trend_ask trend = {.last = RUNS_LAST, .branch = ask->branch, .query = good_query_of(ask)};
    *out = (struct good_answer){.ratio = 1, .value = NAN};
    struct finding f = {.to = out};
    tare_status s = trend_load(store, &trend, &found, err);
    out->metric = found.metric;
    for (size_t i = 0; i < found.series.n && s == TARE_OK; i++)
        note_series(&f, &found.series.items[i], found.metric->more_is_better);
    if (f.none) out->run[0] = 0;
    if (s == TARE_OK && !out->series)
        s = error_set(err, TARE_INVALID, "there is no run of %s%s%s with %s", ask->subject,
                      ask->branch ? " on " : "", ask->branch ? ask->branch : "", trend.query.metric);
    trend_answer_release(&found);
    return s;
}

const char *good_branch(const char *name)
{
    static const char before[] = "@good:";
    size_t n = sizeof before - 1;
    return strncmp(name, before, n) == 0 && name[n] ? name + n : NULL;
}

tare_status good_run(struct store *store, const struct good_ask *ask, char id[ULID_SIZE], tare_error *err)
{
    struct good_answer found;
    tare_status s = good_find(store, ask, &found, err);
    if (s != TARE_OK) return s;
    memcpy(id, found.run, ULID_SIZE);
    return id[0] ? TARE_OK
                 : error_set(err, TARE_INVALID, "%s: no run of %s on %s is good", store->where, ask->subject,
                             ask->branch);
}
