/* SPDX-License-Identifier: MIT
 * bench_http.c - what `tare bench http://..` has of its own: its options, the opened service, a case for each rate or
 * concurrency. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench_args.h"
#include "core/unit.h"
#include "load/address.h"
#include "load/text.h"

enum { CONCURRENCY_MOST = 50000, RATES_MOST = 64 };

/* clang-format off */
struct opt *bench_http_rows(struct bench_args *a, struct opt *to)
{
    struct http_args *h = &a->http;
    const struct opt rows[] = {
        OPT_GROUP("Services"),
        OPT_PATH(0, "body", &h->body, "<file>", "the body of each request: its bytes as they are (POST)",
                 .only_for = KIND_SERVICE, .not_with = "inputs"),
        OPT_STRING(0, "method", &h->method, "<word>", "GET, POST, PUT, PATCH, DELETE (default: POST with a body)",
                 .only_for = KIND_SERVICE),
        OPT_LIST(0, "header", &h->headers, "<name: value>",
                 "a header; 'Name: env:VARIABLE' keeps the value out of sight",
                 .only_for = KIND_SERVICE),
        OPT_UINT_IN(0, "connections", &h->connections, 1, 60000,
                 "connections open at once at most (default: what the limit of open files allows)",
                 .only_for = KIND_SERVICE, .flags = OPT_NO_DEFAULT),
        OPT_FLAG(0, "fresh", &h->fresh, "a new connection for each request", .only_for = KIND_SERVICE),
        OPT_UINT_IN(0, "expect-status", &h->status, 200, 599, "the status of a good answer (default: any 2xx)",
                 .only_for = KIND_SERVICE, .flags = OPT_NO_DEFAULT),
        OPT_STRING(0, "expect-body", &h->text, "<text>", "what must stand in the body of a good answer",
                 .only_for = KIND_SERVICE),
        OPT_UINT_IN(0, "pid", &h->pid, 1, INT32_MAX,
                 "a process of the service on this machine: what it and its children did in the same seconds",
                 .only_for = KIND_SERVICE, .flags = OPT_NO_DEFAULT),
        OPT_FLAG(0, "find-rate", &h->find_rate,
                 "search the highest rate that keeps --slo; --budget is of a window that confirms it, --rate where to "
                 "begin",
                 .only_for = KIND_SERVICE, .needs = "slo", .not_with = "concurrency repeat target max-runs"),
        OPT_END,
    };
    return opt_append(to, rows);
}
/* clang-format on */

/* ---- what is asked for ---- */

static int read_method(struct cli *cli, const struct http_args *h)
{
    static const char *const words[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    if (!h->method) return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(h->method, words[i]) == 0) return 0;
    return cli_usage_error(cli, "--method %s: expected GET, POST, PUT, PATCH, DELETE or OPTIONS", h->method);
}

/* "50", "50/s", "10,20,40/s": the unit of the last one is that of all. */
static int read_rates(struct cli *cli, const struct bench_args *a, struct bench_service *out)
{
    char word[64];
    for (const char *at = a->rate; at && *at;) {
        size_t n = strcspn(at, ",");
        double v;
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (n >= sizeof word || !unit_parse(UNIT_FREQUENCY, word, &v) || !(v > 0) || v > 1e7)
            return cli_usage_error(cli, "--rate %s: expected requests per second, as in 50/s or 10,20,40/s",
                                   a->rate);
        if (out->rates.n == RATES_MOST)
            return cli_usage_error(cli, "--rate: more than %d values", (int)RATES_MOST);
        if (vec_push(&out->rates, v, &cli->error) < 0) return cli_fail(cli);
        at += n + (at[n] == ',');
    }
    return 0;
}

static int read_loads(struct cli *cli, const struct bench_args *a, struct bench_service *out)
{
    int rc = read_rates(cli, a, out);
    if (rc) return rc;
    if (grid_parse_ints(&out->concurrency, a->concurrencies, &cli->error) < 0)
        return cli_usage_error(cli, "--concurrency %s: %s", a->concurrencies, cli->error.text);
    for (size_t i = 0; i < out->concurrency.values.n; i++)
        if (out->concurrency.values.items[i] > CONCURRENCY_MOST)
            return cli_usage_error(cli, "--concurrency %s: at most %d", a->concurrencies,
                                   (int)CONCURRENCY_MOST);
    if (a->http.find_rate && out->rates.n > 1)
        return cli_usage_error(cli, "--rate %s: --find-rate begins at one rate", a->rate);
    if (out->rates.n && strcmp(a->concurrencies, "1") != 0)
        return cli_usage_error(
            cli, "--rate sends when it is time, --concurrency when an answer has come: one of them; %s",
            "--connections limits how many are open");
    return 0;
}

static int read_headers(struct cli *cli, const struct http_args *h, struct bench_service *out)
{
    for (size_t i = 0; i < h->headers.n; i++)
        if (load_add_header(&out->headers, h->headers.items[i], &cli->error) < 0)
            return cli_usage_error(cli, "--header: %s", cli->error.text);
    return 0;
}

static int read_bodies(struct cli *cli, const struct bench_args *a, struct bench_service *out)
{
    const char *path = a->http.body ? a->http.body : a->setup.inputs;
    int rc = bench_asked_plan(cli, a, &out->asked);
    if (a->llm.on) out->source = llm_source(&out->asked.ask);
    if (a->llm.kserve) out->source = kserve_source(&out->asked.kserve);
    if (rc || a->llm.on || a->llm.kserve || !path) return rc;
    if (bodies_open(&out->bodies, path, !a->http.body, &cli->error) < 0)
        return cli_usage_error(cli, "--%s %s", a->http.body ? "body" : "inputs", cli->error.text);
    out->source = bodies_source(&out->bodies, path);
    return 0;
}

/* More connections than there may be are better known now. */
static int check_files_left(struct cli *cli, const struct bench_args *a, const struct bench_service *s)
{
    unsigned most = (unsigned)a->http.connections, allowed;
    for (size_t i = 0; i < s->concurrency.values.n && !most; i++)
        if (s->concurrency.values.items[i] > most) most = (unsigned)s->concurrency.values.items[i];
    return load_connections(most, &allowed, &cli->error) < 0 ? cli_usage_error(cli, "%s", cli->error.text)
                                                             : 0;
}

int bench_service_plan(struct cli *cli, const struct bench_args *a, struct bench_service *out)
{
    struct load_address address;
    if (load_address_read(&address, a->url, &cli->error) < 0)
        return cli_usage_error(cli, "%s", cli->error.text);
    int rc = read_method(cli, &a->http);
    if (!rc) rc = read_loads(cli, a, out);
    if (!rc) rc = read_headers(cli, &a->http, out);
    if (!rc) rc = read_bodies(cli, a, out);
    if (!rc && a->http.text && strlen(a->http.text) > 255)
        rc = cli_usage_error(cli, "--expect-body: at most 255 bytes");
    if (!rc && a->http.pid && kill((pid_t)a->http.pid, 0) < 0 && errno == ESRCH)
        rc = cli_usage_error(cli, "--pid %llu: there is no such process", (unsigned long long)a->http.pid);
    return rc ? rc : check_files_left(cli, a, out);
}

void bench_service_release(struct bench_service *s)
{
    vec_release(&s->rates);
    vec_release(&s->concurrency.values);
    buf_release(&s->headers);
    bodies_close(&s->bodies);
    bench_asked_release(&s->asked);
}

/* A request that takes ten times its limit has missed it: what is overloaded need not be waited for any longer. */
static uint64_t patience_ns(const struct bench_planned *p)
{
    double most = 0;
    if (p->args->call.timeout.ns || p->args->llm.on) return (uint64_t)p->args->call.timeout.ns;
    for (size_t i = 0; i < p->limits.n; i++) most = fmax(most, 10 * p->limits.of[i].value);
    return p->limits.n ? (uint64_t)fmax(most, 2e9) : 0;
}

tare_status bench_service_open(const struct bench_planned *p, struct subject **out, tare_error *err)
{
    const struct bench_args *a = p->args;
    const struct http_args *h = &a->http;
    struct load_options o = {.url = a->url,
                             .method = h->method,
                             .headers = p->service.headers.len ? p->service.headers.data : NULL,
                             .authorities = secure_getenv("TARE_CA_FILE"),
                             .source = p->service.source,
                             .reader = p->service.asked.reader.name ? &p->service.asked.reader : NULL,
                             .expect_body = h->text && h->text[0] ? h->text : NULL,
                             .expect_status = (unsigned)h->status,
                             .timeout_ns = patience_ns(p),
                             .connections = (unsigned)h->connections,
                             .fresh = h->fresh,
                             .interrupted = p->plan.interrupted};
    return subject_open_http(out, &o, err);
}

/* ---- cases ---- */

static tare_status add_case(const struct bench_planned *p, struct subject *subject, struct bench_case c,
                            struct grid_cases *out, tare_error *err)
{
    c.subject = subject;
    c.params.workers = 1;
    c.params.seed = p->plan.seed;
    return c.name ? vec_push(&out->cases, c, err) : error_nomem(err, "a case");
}

tare_status bench_service_cases(const struct bench_planned *p, struct subject *subject,
                                struct grid_cases *out, tare_error *err)
{
    const struct bench_service *s = &p->service;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < s->rates.n && status == TARE_OK; i++) {
        double rate = s->rates.items[i];
        struct bench_case c = {.name = arena_printf(&out->arena, "rate=%.9g", rate),
                               .params = {.rate = rate}};
        status = add_case(p, subject, c, out, err);
    }
    for (size_t i = 0; !s->rates.n && i < s->concurrency.values.n && status == TARE_OK; i++) {
        unsigned n = (unsigned)s->concurrency.values.items[i];
        struct bench_case c = {.name = arena_printf(&out->arena, "concurrency=%u", n),
                               .params = {.concurrency = n}};
        status = add_case(p, subject, c, out, err);
    }
    return status;
}
