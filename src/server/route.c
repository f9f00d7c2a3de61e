/* SPDX-License-Identifier: MIT
 * route.c - the table of routes, and what is answered from memory. */
#include "server/route.h"

#include <inttypes.h>
#include <string.h>

#include "core/json.h"

static const struct steps health, openapi;

enum {
    RUN_BODY_MAX = 8 << 20,
    LOGIN_BODY_MAX = 1024,
    BATCH_MAX = 4 << 20,
    JOB_BODY_MAX = 1 << 20,
    LIST_MAX = 128 << 10
};

/* clang-format off */
const struct route route_table[] = {
    {METHOD_GET,  "/healthz",          SCOPE_OPEN,   0,            RATE_READ,  &health,    "says ok"},
    {METHOD_GET,  "/",                 SCOPE_OPEN,   0,            RATE_READ,  &app_page,  "the pages"},
    {METHOD_GET,  "/login",            SCOPE_OPEN,   0,            RATE_READ,  &app_page,  "takes a login link"},
    {METHOD_GET,  "/assets/{id}.js",   SCOPE_OPEN,   0,            RATE_READ,  &app_script, "what the pages run"},
    {METHOD_GET,  "/assets/{id}.css",  SCOPE_OPEN,   0,            RATE_READ,  &app_style, "how the pages look"},
    {METHOD_GET,  "/api/v1/session",   SCOPE_OPEN,   0,            RATE_READ,  &session_get, "who is logged in"},
    {METHOD_POST, "/api/v1/session",   SCOPE_OPEN,   LOGIN_BODY_MAX, RATE_WRITE, &session_post, "logs in"},
    {METHOD_DELETE, "/api/v1/session", SCOPE_OPEN,   0,            RATE_WRITE, &session_delete, "logs out"},
    {METHOD_GET,  "/api/v1/self",      SCOPE_READ,   0,            RATE_READ,  &self_get,  "about itself"},
    {METHOD_GET,  "/api/v1/runs",      SCOPE_READ,   0,            RATE_READ,  &runs_list, "runs"},
    {METHOD_POST, "/api/v1/runs",      SCOPE_INGEST, RUN_BODY_MAX, RATE_WRITE, &runs_post, "keeps a run"},
    {METHOD_GET,  "/api/v1/runs/{id}", SCOPE_READ,   0,            RATE_READ,  &runs_get,  "one run"},
    {METHOD_GET,  "/api/v1/runs/{id}/view", SCOPE_READ, 0,         RATE_READ,  &runs_view, "a run for pages"},
    {METHOD_GET,  "/api/v1/runs/{id}/uploads", SCOPE_READ, 0,      RATE_READ,  &uploads_list, "files of a run"},
    {METHOD_POST, "/api/v1/runs/{id}/uploads", SCOPE_INGEST, LIST_MAX, RATE_WRITE, &uploads_post,
     "makes a file of pieces"},
    {METHOD_POST, "/api/v1/pieces",    SCOPE_INGEST, STORE_PIECE_BYTES, RATE_WRITE, &pieces_post,
     "keeps a piece of a file"},
    {METHOD_GET,  "/api/v1/uploads/{id}", SCOPE_READ, 0,           RATE_READ,  &uploads_get, "bytes of a file"},
    {METHOD_GET,  "/api/v1/uploads/{id}/profile", SCOPE_READ, 0,   RATE_READ,  &uploads_profile,
     "a trace's flame graph"},
    {METHOD_GET,  "/api/v1/uploads/{id}/bars", SCOPE_READ, 0,      RATE_READ,  &uploads_bars, "a trace over time"},
    {METHOD_GET,  "/api/v1/uploads/{id}/timeline", SCOPE_READ, 0,  RATE_READ,  &uploads_timeline,
     "a trace's samples over time"},
    {METHOD_GET,  "/api/v1/uploads/{id}/page", SCOPE_READ, 0,      RATE_READ,  &uploads_page,
     "all that pages show of a trace"},
    {METHOD_GET,  "/api/v1/compare",   SCOPE_READ,   0,            RATE_READ,  &compare_get, "two runs compared"},
    {METHOD_GET,  "/api/v1/trend",     SCOPE_READ,   0,            RATE_READ,  &trend_get, "a metric over time"},
    {METHOD_GET,  "/api/v1/regressions", SCOPE_READ, 0,            RATE_READ,  &regressions_list, "what got worse"},
    {METHOD_GET,  "/api/v1/baselines", SCOPE_READ,   0,            RATE_READ,  &baselines_list, "the runs to judge by"},
    {METHOD_POST, "/api/v1/baselines", SCOPE_ADMIN,  4096,         RATE_WRITE, &baselines_post, "accepts a baseline"},
    {METHOD_DELETE, "/api/v1/baselines/{id}", SCOPE_ADMIN, 0,      RATE_WRITE, &baselines_delete, "takes one back"},
    {METHOD_GET,  "/api/v1/good",      SCOPE_READ,   0,            RATE_READ,  &good_get, "a branch's last good run"},
    {METHOD_GET,  "/api/v1/badge.svg", SCOPE_READ,   0,            RATE_READ,  &badge_get, "how a subject stands"},
    {METHOD_GET,  "/api/v1/line.svg",  SCOPE_READ,   0,            RATE_READ,  &line_get, "how a number went"},
    {METHOD_GET,  "/public/badge.svg", SCOPE_OPEN,   0,            RATE_READ,  &public_badge, "that without a token"},
    {METHOD_GET,  "/public/line.svg",  SCOPE_OPEN,   0,            RATE_READ,  &public_line, "that without a token"},
    {METHOD_GET,  "/api/v1/openapi.json", SCOPE_READ, 0,           RATE_READ,  &openapi,   "this API as OpenAPI 3.1"},
    {METHOD_GET,  "/api/v1/tokens",    SCOPE_ADMIN,  0,            RATE_READ,  &tokens_list, "tokens"},
    {METHOD_POST, "/api/v1/tokens",    SCOPE_ADMIN,  4096,         RATE_WRITE, &tokens_post, "makes a token"},
    {METHOD_DELETE, "/api/v1/tokens/{id}", SCOPE_ADMIN, 0,         RATE_WRITE, &tokens_delete, "revokes a token"},
    {METHOD_GET,  "/api/v1/audit",     SCOPE_ADMIN,  0,            RATE_READ,  &audit_list, "who changed what"},
    {METHOD_GET,  "/api/v1/series",      SCOPE_READ, 0,            RATE_READ,  &series_list, "series of numbers"},
    {METHOD_GET,  "/api/v1/series/{id}", SCOPE_READ, 0,            RATE_READ,  &series_get,  "points of a series"},
    {METHOD_GET,  "/api/v1/hosts",     SCOPE_READ,   0,            RATE_READ,  &hosts_list, "hosts that sent metrics"},
    {METHOD_POST, "/api/v1/metrics",   SCOPE_INGEST, BATCH_MAX, RATE_WRITE, &metrics_post, "keeps a batch of samples"},
    {METHOD_GET,  "/api/v1/metrics",   SCOPE_READ,   0,            RATE_READ,  &metrics_get, "a metric of a host"},
    {METHOD_POST, "/v1/metrics",       SCOPE_INGEST, BATCH_MAX, RATE_WRITE, &otlp_post, "keeps metrics of OTLP"},
    {METHOD_GET,  "/api/v1/live",      SCOPE_READ,   0,            RATE_READ,  &live_get,  "samples as they come"},
    {METHOD_GET,  "/metrics",          SCOPE_READ,   0,            RATE_READ,  &prom_get, "all of it for Prometheus"},
    {METHOD_POST, "/api/v1/requests",  SCOPE_INGEST, BATCH_MAX, RATE_WRITE, &requests_post, "keeps requests"},
    {METHOD_GET,  "/api/v1/services",  SCOPE_READ,   0,            RATE_READ,  &services_list, "services"},
    {METHOD_GET,  "/api/v1/services/{id}/latency", SCOPE_READ, 0,  RATE_READ,  &services_latency, "times and promises"},
    {METHOD_GET,  "/api/v1/services/{id}/reports", SCOPE_READ, 0,  RATE_READ,  &reports_list, "its hourly reports"},
    {METHOD_GET,  "/api/v1/reports/{id}", SCOPE_READ, 0,           RATE_READ,  &reports_get, "a report"},
    {METHOD_GET,  "/api/v1/jobs",      SCOPE_READ,   0,            RATE_READ,  &jobs_list, "jobs"},
    {METHOD_POST, "/api/v1/jobs",      SCOPE_RUN,    JOB_BODY_MAX, RATE_WRITE, &jobs_post, "runs an operation"},
    {METHOD_GET,  "/api/v1/jobs/{id}", SCOPE_READ,   0,            RATE_READ,  &jobs_get,  "one job"},
    {METHOD_DELETE, "/api/v1/jobs/{id}", SCOPE_RUN,  0,            RATE_WRITE, &jobs_delete, "cancels a job"},
    {METHOD_POST, "/finetuning/profile-and-optimize", SCOPE_RUN, JOB_BODY_MAX, RATE_WRITE, &finetuning_run,
     "looks at a training as a whole"},
    {METHOD_POST, "/finetuning/optimize-dataset-loading", SCOPE_RUN, JOB_BODY_MAX, RATE_WRITE, &finetuning_run,
     "a better data loader"},
    {METHOD_POST, "/finetuning/optimize-preprocessing", SCOPE_RUN, JOB_BODY_MAX, RATE_WRITE, &finetuning_run,
     "a better preprocessing"},
    {METHOD_POST, "/finetuning/profile-operation", SCOPE_RUN, JOB_BODY_MAX, RATE_WRITE, &finetuning_profile,
     "profiles an operation by name"},
    {METHOD_GET,  "/finetuning/performance-report", SCOPE_READ, 0, RATE_READ,  &finetuning_report,
     "what the jobs found"},
    {METHOD_GET,  "/api/v1/alerts",    SCOPE_READ,   0,            RATE_READ,  &alerts_list, "rules and their states"},
    {METHOD_POST, "/api/v1/alerts/test", SCOPE_ADMIN, 4096,        RATE_WRITE, &alerts_test, "sends a rule's message"},
    {METHOD_GET,  "/api/v1/silences",  SCOPE_READ,   0,            RATE_READ,  &silences_list, "what is not told"},
    {METHOD_POST, "/api/v1/silences",  SCOPE_ADMIN,  4096,         RATE_WRITE, &silences_post, "asks for silence"},
    {METHOD_DELETE, "/api/v1/silences/{id}", SCOPE_ADMIN, 0,       RATE_WRITE, &silences_delete, "ends a silence"},
    {METHOD_OTHER, NULL, 0, 0, RATE_NONE, NULL, NULL},
};
/* clang-format on */

static bool is_id(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/* Paths are compared as they were sent: nothing is decoded or tidied, so that there is one spelling of each. */
static bool matches(const char *pattern, const char *path, char param[EXCHANGE_PARAM_SIZE])
{
    size_t n = 0;
    for (; *pattern && *pattern != '{'; pattern++, path++)
        if (*pattern != *path) return false;
    if (!*pattern) return !*path;
    for (; is_id(path[n]) && n < EXCHANGE_PARAM_SIZE - 1; n++) param[n] = path[n];
    param[n] = 0;
    return n > 0 && strcmp(path + n, strchr(pattern, '}') + 1) == 0;
}

const struct route *route_find(enum http_method method, const char *path, char param[EXCHANGE_PARAM_SIZE],
                               unsigned *allowed)
{
    enum http_method as = method == METHOD_HEAD ? METHOD_GET : method;
    *allowed = 0;
    for (const struct route *r = route_table; r->path; r++) {
        if (!matches(r->path, path, param)) continue;
        if (r->method == as) return r;
        *allowed |= 1u << r->method | (r->method == METHOD_GET ? 1u << METHOD_HEAD : 0u);
    }
    return NULL;
}

static void say_ok(struct server *s, struct exchange *x)
{
    (void)s;
    x->reply.status = 200;
    x->reply.type = "text/plain";
    buf_add(&x->reply.body, "ok\n", 3);
}

static const struct steps health = {.now = say_ok, .type = "text/plain"};

static void tell_openapi(struct server *s, struct exchange *x)
{
    (void)s;
    reply_json(x, 200);
    openapi_write(&x->reply.body);
}

static const struct steps openapi = {.now = tell_openapi};
