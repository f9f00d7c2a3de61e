/* SPDX-License-Identifier: MIT
 * past.c - see past.h. A history that cannot be read is a yardstick less, and no failure. */
#include "history/past.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/spark.h"

void history_past_of(struct history_past *p, const struct run *run)
{
    p->subject = run->subject.name;
    run_host_fingerprint(&run->host, p->host);
    if (run->host.fingerprint) snprintf(p->host, sizeof p->host, "%s", run->host.fingerprint);
}

static bool is_compared(const struct history_past *p, const char *id)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < p->but[side].n; i++)
            if (strcmp(p->but[side].at[i]->id, id) == 0) return true;
    return false;
}

tare_status history_past_values(void *ctx, const char *case_name, const char *metric,
                                struct compare_series *out, tare_error *err)
{
    struct history_past *past = ctx;
    struct store_points points = {VEC_INIT};
    struct store_query q = {.subject = past->subject,
                            .case_name = case_name,
                            .metric = metric,
                            .host = past->host,
                            .anchor = "",
                            .project = past->project};
    if (past->failed.status != TARE_OK) return TARE_OK;
    tare_status s = store_series(past->store, &q, out->max, &points, &past->failed);
    if (s == TARE_NOMEM) return error_set(err, s, "%s", past->failed.text);
    for (size_t i = 0; s == TARE_OK && i < points.at.n && out->n < out->max; i++) {
        const struct store_point *p = &points.at.items[i];
        if (!is_compared(past, p->run) && p->value > 0)
            out->at[out->n++] = (struct compare_moment){p->created_ms, log(p->value)};
    }
    vec_release(&points.at);
    return TARE_OK;
}

enum { DRAWN_LEAST = 4, DRAWN_MOST = 24 };

static void draw(struct history_past *p, struct comparison *c, const char *case_name,
                 struct comparison_metric *m)
{
    struct compare_moment at[DRAWN_MOST];
    struct compare_series past = {at, 0, DRAWN_MOST};
    double y[DRAWN_MOST + 1];
    struct buf line = BUF_INIT;
    tare_error none = TARE_ERROR_INIT;
    tare_status s = history_past_values(p, case_name, m->metric, &past, &none);
    if (s != TARE_OK || past.n < DRAWN_LEAST || !m->new_.known || !(m->new_.value > 0)) return;
    for (size_t i = 0; i < past.n; i++) y[i] = at[i].y;
    y[past.n] = log(m->new_.value); /* the run that is judged is the last one */
    spark_add(&line, y, past.n + 1, DRAWN_MOST + 1, true);
    if (!line.failed) run_map_text(&c->arena, &m->evidence, "history", line.data);
    buf_release(&line);
}

void history_past_draw(struct history_past *p, struct comparison *c)
{
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n; k++)
            if (strcmp(c->cases.at[i]->metrics.at[k]->role, "gate") == 0)
                draw(p, c, c->cases.at[i]->name, c->cases.at[i]->metrics.at[k]);
}
