/* SPDX-License-Identifier: MIT
 * api_requests.c - requests of services by HTTP: batches come in, lists, spans and reports go out. A batch is answered
 * 201 when it is committed; its id is the client's, so that sending it again is harmless: the same is 200, another
 * 409. */
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/fmt.h"
#include "core/json.h"
#include "core/mem.h"
#include "core/unit.h"
#include "report/sla/sla_report.h"
#include "server/route.h"
#include "server/sla/sla_ask.h"

enum { AHEAD_MS = 5 * 60 * 1000, LATENCY_SPAN_MS = STORE_HOUR_MS, REPORTS_HOURS = 31 * 24 };

static int64_t now_ms(void)
{
    return (int64_t)(clock_unix_ns() / 1000000);
}

/* ---- keeping ---- */

struct batch {
    struct requests requests;
    enum store_kept was;
};

static void forget_batch(struct exchange *x)
{
    struct batch *b = x->work;
    if (b) requests_release(&b->requests);
    mem_free(b);
}

static void check_batch(struct server *sv, struct store *s, struct exchange *x)
{
    (void)sv;
    (void)s;
    tare_error err = TARE_ERROR_INIT;
    struct batch *b = mem_new(1, sizeof *b);
    tare_status status = b ? requests_read(&b->requests, "the batch", x->body.data, x->body.len, &err)
                           : error_nomem(&err, "a batch");
    if (status == TARE_OK && (int64_t)b->requests.from_ms > now_ms() + AHEAD_MS) {
        status = error_set(&err, TARE_FORMAT,
                           "the batch: from_ms: is in the future (is the clock of host %s right?)",
                           b->requests.host);
        requests_release(&b->requests);
    }
    if (status == TARE_OK) {
        x->work = b;
        return;
    }
    mem_free(b);
    reply_refused(x, 422, &err);
}

/* What does not fit changes nothing, and is no failure of the transaction that others are in. */
static tare_status keep_batch(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    (void)sv;
    struct batch *b = x->work;
    struct store_sent batch = {.project = x->project, .id = b->requests.id, .received_ms = now_ms()};
    tare_error why = TARE_ERROR_INIT;
    SHA256((const unsigned char *)x->body.data, x->body.len, batch.digest);
    tare_status status = store_add_requests(s, &b->requests, &batch, &b->was, &why);
    if (status == TARE_OK)
        reply_json(x, b->was == STORE_NEW ? 201 : 200);
    else if (status == TARE_INVALID)
        reply_problem(x, 422, "%s", why.text);
    else
        *err = why;
    return status == TARE_INVALID ? TARE_OK : status;
}

static void answer_batch(struct server *sv, struct store *s, struct exchange *x)
{
    (void)sv;
    (void)s;
    struct batch *b = x->work;
    if (x->reply.status > 201) return;
    if (b->was == STORE_OTHER) {
        reply_problem(x, 409, "another batch has this id");
        return;
    }
    struct json j;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "id", b->requests.id);
    json_object_end(&j);
    json_finish(&j, NULL);
}

static const char example[] =
    "{\"schema\":\"tare.requests/1\",\"id\":\"01KA3QZ4M6S1V7W8X9Y0Z1A2B3\",\"service\":\"search\",\"host\":\"web-1\","
    "\"from_ms\":1794837600000,\"to_ms\":1794837610000,\"lost\":0,\"routes\":[{\"route\":\"GET /find\","
    "\"latency_ns\":{\"sum\":3100,\"min\":1025,\"max\":1050,"
    "\"histogram\":{\"scale\":6,\"offset\":640,\"zero\":0,\"counts\":[2,0,1]}},"
    "\"first_byte_ns\":null,\"errors\":0,\"cancelled\":0,"
    "\"slo\":[{\"threshold_ns\":200000000,\"objective\":0.99,\"within\":3,\"breached\":0}],\"worst\":null}]}";

const struct steps requests_post = {.read = check_batch,
                                    .write = keep_batch,
                                    .written = answer_batch,
                                    .forget = forget_batch,
                                    .example = example,
                                    .replies = "201,200,409"};

/* ---- services ---- */

static tare_status list_service(void *ctx, const struct store_service *one, tare_error *err)
{
    struct json *j = ctx;
    (void)err;
    json_object_begin(j);
    json_kv_string(j, "service", one->service);
    json_kv_string(j, "project", *one->project ? one->project : NULL);
    json_kv_uint(j, "routes", one->routes);
    json_kv_uint(j, "hosts", one->hosts);
    json_kv_int(j, "first_ms", one->first_ms);
    json_kv_int(j, "last_ms", one->last_ms);
    json_object_end(j);
    return TARE_OK;
}

static void list_services(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct json j;
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "services");
    json_array_begin(&j);
    if (s->ops->services(s, x->project[0] ? x->project : NULL, list_service, &j, &err) != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps services_list = {.read = list_services};

/* ---- what is asked of one ---- */

/* Whose it is: the token's project, else what the query says. */
static tare_status read_project(struct exchange *x, struct sla_ask *a, tare_error *err)
{
    const char *asked = NULL;
    tare_status s = exchange_query(x, "project", &asked, err);
    a->project = x->project[0] || !asked ? x->project : asked;
    return s;
}

struct has {
    const char *service;
    bool yes;
};

static tare_status is_it(void *ctx, const struct store_service *one, tare_error *err)
{
    struct has *h = ctx;
    (void)err;
    if (strcmp(one->service, h->service) == 0) h->yes = true;
    return TARE_OK;
}

/* False: answered. A service of another project is as absent as one that never was. */
static bool is_there(struct server *sv, struct store *s, struct exchange *x, const struct sla_ask *a)
{
    tare_error err = TARE_ERROR_INIT;
    struct has has = {a->service, false};
    if (s->ops->services(s, a->project, is_it, &has, &err) != TARE_OK)
        steps_failed(sv, x, &err);
    else if (!has.yes)
        reply_problem(x, 404, "there is no such service");
    return has.yes && !x->reply.status;
}

/* Where the query says no step: about sixty of them. */
static int64_t step_for(int64_t span_ms)
{
    static const int64_t steps[] = {STORE_SLOT_MS,        STORE_MINUTE_MS, 5 * STORE_MINUTE_MS,
                                    15 * STORE_MINUTE_MS, STORE_HOUR_MS,   6 * (int64_t)STORE_HOUR_MS};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (span_ms / steps[i] <= 120) return steps[i];
    return 24 * (int64_t)STORE_HOUR_MS;
}

/* The span is widened to whole steps. */
static tare_status read_span(struct exchange *x, struct sla_ask *a, tare_error *err)
{
    int64_t now = now_ms();
    *a = (struct sla_ask){.service = x->param, .from_ms = -1, .to_ms = now};
    tare_status s = read_project(x, a, err);
    if (s == TARE_OK) s = exchange_query(x, "route", &a->route, err);
    if (s == TARE_OK) s = exchange_query_time(x, "from", &a->from_ms, err);
    if (s == TARE_OK) s = exchange_query_time(x, "to", &a->to_ms, err);
    if (s == TARE_OK) s = exchange_query_length(x, "step", &a->step_ms, err);
    if (s != TARE_OK) return s;
    if (a->route && !*a->route) return error_set(err, TARE_INVALID, "route is empty");
    if (a->from_ms < 0) a->from_ms = a->to_ms - LATENCY_SPAN_MS;
    if (a->from_ms < 0 || a->from_ms >= a->to_ms)
        return error_set(err, TARE_INVALID, "from is not before to");
    if (!a->step_ms) a->step_ms = step_for(a->to_ms - a->from_ms);
    if (a->step_ms % STORE_SLOT_MS) return error_set(err, TARE_INVALID, "step is a multiple of 10s");
    a->from_ms -= a->from_ms % a->step_ms;
    if (a->to_ms % a->step_ms) a->to_ms += a->step_ms - a->to_ms % a->step_ms;
    if ((a->to_ms - a->from_ms) / a->step_ms > SLA_STEPS_MAX)
        return error_set(err, TARE_INVALID, "more than %d steps: a longer step, or a shorter span",
                         SLA_STEPS_MAX);
    return TARE_OK;
}

/* The status of a read as a reply; true: it went well. */
static bool went_well(struct server *sv, struct exchange *x, tare_status status, const tare_error *err)
{
    if (status == TARE_INVALID)
        reply_problem(x, 400, "%s", err->text);
    else if (status != TARE_OK)
        steps_failed(sv, x, err);
    return status == TARE_OK;
}

static void answer_latency(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct sla_ask ask;
    struct sla doc = {0};
    if (!went_well(sv, x, read_span(x, &ask, &err), &err) || !is_there(sv, s, x, &ask)) return;
    tare_status status = sla_span_read(s, &ask, &doc, &err);
    if (status == TARE_OK) status = sla_write(&doc, &x->reply.body, &err);
    if (went_well(sv, x, status, &err)) reply_json(x, 200);
    sla_release(&doc);
}

static const struct query_word latency_query[] = {
    {"from", "begin: unix ms, 2026-11-16T14:00:00Z, or -6h for so long ago; an hour before the end if not said"},
    {"to", "end, in the same way; now where nothing is said"},
    {"step", "length of a step: 10s, 5m, 1h; at most 1000 of them; about sixty where nothing is said"},
    {"route", "of this route alone"},
    {"project", "of this project, for a token that is bound to none"},
    {NULL, NULL}};

const struct steps services_latency = {.read = answer_latency, .query = latency_query};

/* ---- reports ---- */

static void report_id(char out[EXCHANGE_PARAM_SIZE], const struct sla_ask *a)
{
    struct buf date = BUF_INIT;
    char day[9] = "", hour[3] = "";
    fmt_date(&date, (uint64_t)a->from_ms * 1000000, false); /* 2026-11-16 14:.. */
    if (!date.failed) {
        snprintf(day, sizeof day, "%.4s%.2s%.2s", date.data, date.data + 5, date.data + 8);
        if (a->to_ms - a->from_ms == STORE_HOUR_MS) snprintf(hour, sizeof hour, "%.2s", date.data + 11);
    }
    snprintf(out, EXCHANGE_PARAM_SIZE, "%.40s-%s%s", a->service, day, hour);
    buf_release(&date);
}

/* "search-2026111614" or "search-20261116": cuts x->param to the service. False: it is none of these. */
static bool read_report_id(char *id, struct sla_ask *a)
{
    char *date = strrchr(id, '-');
    char text[20];
    int64_t unix_s;
    size_t digits = date ? strspn(date + 1, "0123456789") : 0;
    if (!date || date == id || date[1 + digits] || (digits != 8 && digits != 10)) return false;
    bool is_hour = digits == 10;
    snprintf(text, sizeof text, "%.4s-%.2s-%.2sT%.2s", date + 1, date + 5, date + 7, is_hour ? date + 9 : "00");
    const char *rest = unit_date(text, "%Y-%m-%dT%H", &unix_s);
    if (!rest || *rest || unix_s < 0) return false;
    *date = 0;
    a->service = id;
    a->from_ms = unix_s * 1000;
    a->to_ms = a->from_ms + (is_hour ? 1 : 24) * (int64_t)STORE_HOUR_MS;
    return true;
}

static tare_status write_report(struct exchange *x, const struct sla *doc, tare_error *err)
{
    const char *format = NULL;
    tare_status s = exchange_query(x, "format", &format, err);
    if (s != TARE_OK) return s;
    if (!format || strcmp(format, "json") == 0) {
        reply_json(x, 200);
        return sla_write(doc, &x->reply.body, err);
    }
    const struct sla_format *f = sla_format_find(format);
    if (!f) return error_set(err, TARE_INVALID, "format is json, md or html");
    x->reply.status = 200;
    x->reply.type = f->type;
    return sla_report_write(f, doc, &x->reply.body, err);
}

/* False: answered. */
static bool find_revision(struct server *sv, struct store *s, struct exchange *x, const struct sla_ask *a,
                          struct sla *doc)
{
    tare_error err = TARE_ERROR_INIT;
    struct sla_seals seals;
    uint64_t revision = 0;
    tare_status status = exchange_query_number(x, "revision", (struct number_range){1, 1000}, &revision, &err);
    if (status == TARE_OK) status = sla_seals_read(s, a, now_ms(), &seals, &err);
    if (!went_well(sv, x, status, &err)) return false;
    if (!revision) revision = seals.n;
    if (seals.n == 0 || revision > seals.n) {
        reply_problem(x, 404, "there is no such report: an hour is sealed five minutes after its end");
        return false;
    }
    doc->revision = known_u64(revision);
    doc->revisions = known_u64(seals.n);
    doc->sealed_ms = known_u64((uint64_t)seals.ms[revision - 1]);
    return true;
}

static void answer_report(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct sla_ask ask = {0};
    struct sla doc = {0};
    if (!went_well(sv, x, read_project(x, &ask, &err), &err)) return;
    if (!read_report_id(x->param, &ask)) {
        reply_problem(x, 404, "there is no such report: SERVICE-YYYYMMDDHH or SERVICE-YYYYMMDD");
        return;
    }
    if (find_revision(sv, s, x, &ask, &doc)) {
        char id[EXCHANGE_PARAM_SIZE];
        report_id(id, &ask);
        doc.id = arena_str(&doc.arena, id);
        tare_status status = sla_report_read(s, &ask, (int64_t)doc.sealed_ms.v, &doc, &err);
        if (status == TARE_OK) status = write_report(x, &doc, &err);
        went_well(sv, x, status, &err);
    }
    sla_release(&doc);
}

static const struct query_word report_query[] = {
    {"format", "json, md or html; json where nothing is said"},
    {"revision", "an earlier one: 1 is what was sealed 5 minutes after the end; the newest if not said"},
    {"project", "of this project, for a token that is bound to none"},
    {NULL, NULL}};

const struct steps reports_get = {.read = answer_report, .query = report_query};

static void put_report(struct json *j, const struct sla_ask *hour, const struct sla_seals *seals)
{
    char id[EXCHANGE_PARAM_SIZE];
    report_id(id, hour);
    json_object_begin(j);
    json_kv_string(j, "id", id);
    json_kv_int(j, "from_ms", hour->from_ms);
    json_kv_int(j, "to_ms", hour->to_ms);
    json_kv_uint(j, "revisions", seals->n);
    json_kv_int(j, "sealed_ms", seals->ms[seals->n - 1]);
    json_object_end(j);
}

/* Hour by hour, the newest first; those without a report are left out. */
static tare_status list_hours(struct store *s, struct exchange *x, const struct sla_ask *a, tare_error *err)
{
    struct json j;
    tare_status status = TARE_OK;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "reports");
    json_array_begin(&j);
    struct sla_ask hour = *a;
    for (hour.to_ms = a->to_ms; hour.to_ms > a->from_ms && status == TARE_OK; hour.to_ms = hour.from_ms) {
        struct sla_seals seals;
        hour.from_ms = hour.to_ms - STORE_HOUR_MS;
        status = sla_seals_read(s, &hour, now_ms(), &seals, err);
        if (status == TARE_OK && seals.n) put_report(&j, &hour, &seals);
    }
    if (status != TARE_OK) return status;
    json_array_end(&j);
    json_object_end(&j);
    return json_finish(&j, err);
}

static void list_reports(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    uint64_t n = 24;
    const struct number_range most = {1, REPORTS_HOURS};
    struct sla_ask ask = {.service = x->param, .to_ms = now_ms()};
    tare_status status = read_project(x, &ask, &err);
    if (status == TARE_OK) status = exchange_query_number(x, "hours", most, &n, &err);
    ask.to_ms -= ask.to_ms % STORE_HOUR_MS;
    ask.from_ms = ask.to_ms - (int64_t)n * STORE_HOUR_MS;
    if (!went_well(sv, x, status, &err) || !is_there(sv, s, x, &ask)) return;
    reply_json(x, 200);
    went_well(sv, x, list_hours(s, x, &ask, &err), &err);
}

static const struct query_word reports_query[] = {
    {"hours", "how many hours back: 1 to 744, 24 where nothing is said"},
    {"project", "of this project, for a token that is bound to none"},
    {NULL, NULL}};

const struct steps reports_list = {.read = list_reports, .query = reports_query};
