/* SPDX-License-Identifier: MIT
 * route.h - what the server answers: one row per method and path, each with the scope it asks for, the largest body it
 * takes and how its requests are counted. What is in no row is 404; to add a route, add a row. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "server/steps.h"

enum rate_class { RATE_NONE, RATE_READ, RATE_WRITE };

struct route {
    enum http_method method;
    const char *path; /* {id} stands for one part of letters, digits, - and _ */
    unsigned scope;   /* enum scope */
    uint64_t body_max;
    enum rate_class rate;
    const struct steps *steps;
    const char *does;
};

extern const struct route route_table[]; /* the last one has path NULL */

/* The row, and what stood for {id}. NULL: none; *allowed then has a bit for each method that the path has. */
const struct route *route_find(enum http_method method, const char *path, char param[EXCHANGE_PARAM_SIZE],
                               unsigned *allowed);

/* api_runs.c: of a path with a run's id. 404 for what is none; is it there, for who asks? */
void run_id_check(struct server *s, struct exchange *x);
tare_status run_is_there(struct store *s, const struct exchange *x, bool *yes, tare_error *err);

void openapi_write(struct buf *out); /* openapi.c: the table as an OpenAPI 3.1 document */

extern const struct steps runs_list, runs_get, runs_view, runs_post;            /* api_runs.c */
extern const struct steps pieces_post, uploads_post, uploads_list, uploads_get; /* uploads/api_uploads.c */
extern const struct steps uploads_profile, uploads_bars, uploads_timeline,
    uploads_page;                                  /* uploads/api_view.c */
extern const struct steps series_list, series_get; /* api_series.c */

extern const struct steps tokens_list, tokens_post, tokens_delete, audit_list; /* api_tokens.c */

extern const struct steps trend_get, regressions_list;                              /* api_trend.c */
extern const struct steps compare_get;                                              /* api_compare.c */
extern const struct steps baselines_list, baselines_post, baselines_delete;         /* api_baselines.c */
extern const struct steps good_get, badge_get, line_get, public_badge, public_line; /* api_badge.c */
extern const struct steps session_get, session_post, session_delete;                /* api_session.c */
extern const struct steps app_page, app_script, app_style;                          /* app.c */
extern const struct steps hosts_list, metrics_get, metrics_post;                    /* api_metrics.c */
extern const struct steps otlp_post, live_get, self_get, prom_get; /* api_otlp.c, stream.c, api_self.c */
extern const struct steps requests_post, services_list, services_latency, reports_list,
    reports_get;                                                                 /* api_requests.c */
extern const struct steps jobs_list, jobs_get, jobs_post, jobs_delete;           /* api_jobs.c */
extern const struct steps finetuning_run, finetuning_profile, finetuning_report; /* api_finetuning.c */
extern const struct steps alerts_list, alerts_test, silences_list, silences_post,
    silences_delete; /* api_alerts.c */

#endif
