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

#define DAY_NS 86400e9
#define REPLAY_LEAST_NS UINT64_C(1000000)       /* as of --budget */
#define REPLAY_MOST_NS UINT64_C(864000000000000) /* ten days: a log in which dates are mixed up spans years */

enum { CONCURRENCY_MOST = 50000, RATES_MOST = 64 };

/* clang-format off */
struct opt *bench_http_rows(struct bench_args *a, struct opt *to)
{
    struct http_args *h = &a->http;
    const struct opt rows[] = {
        OPT_GROUP("Services"),
        OPT_ASKING(&h->asking),
        OPT_UINT_IN(0, "pid", &h->pid, 1, INT32_MAX,
                 "a process of the service on this machine: what it and its children did in the same seconds",
                 .only_for = KIND_SERVICE, .flags = OPT_NO_DEFAULT),
        OPT_TIME_IN(0, "wait", &h->wait, 0, 86400000000000, "wait at most so long until the service answers",
                 .only_for = KIND_SERVICE, .flags = OPT_NO_DEFAULT),
        OPT_PATH(0, "replay", &h->replay, "<file>",
                 "send when the lines of a log or CSV have their times, from its first to its last",
                 .only_for = KIND_SERVICE, .not_with = "rate concurrency find-rate budget scenario"),
        OPT_DOUBLE(0, "speed", &h->speed, 0.001, 100000, "of --replay: 2 takes half the time", .needs = "replay"),
        OPT_STRING(0, "expect-at", &h->expect_at, "<path>",
                   "where in the JSON of an answer what --expect has is: scores, choices.0.text (default: all of it)",
                   .only_for = KIND_SERVICE, .needs = "expect"),
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
    if (a->http.find_rate && a->arrivals == ARRIVALS_RAMP)
        return cli_usage_error(cli, "--arrivals ramp does not go with --find-rate: %s",
                               "a window of the search has one rate");
    if (out->rates.n && strcmp(a->concurrencies, "1") != 0)
        return cli_usage_error(
            cli, "--rate sends when it is time, --concurrency when an answer has come: one of them; %s",
            "--connections limits how many are open");
    return 0;
}

/* The mean rate becomes that of the one case: warm-up has it, and so have all who reckon with rates. */
static int read_replay(struct cli *cli, const struct http_args *h, struct bench_service *out)
{
    struct file_view file = FILE_VIEW_INIT;
    size_t skipped = 0;
    if (!h->replay) return 0;
    tare_status s = file_map(h->replay, &file, &cli->error);
    struct replay r = {h->replay, (const char *)file.data, file.size, h->speed};
    if (s == TARE_OK) s = arrivals_replay(&r, &out->replay.moments, &skipped, &cli->error);
    file_unmap(&file);
    if (s < 0) return cli_usage_error(cli, "--replay %s", cli->error.text);
    if (skipped) cli_note(cli, "%s: %zu lines have no time and are left out", h->replay, skipped);
    const struct moments *m = &out->replay.moments;
    uint64_t last = m->at.items[m->at.n - 1];
    if (last == 0)
        return cli_usage_error(
            cli, "--replay %s: all of its times are the same: there is nothing to space by", h->replay);
    if (last < REPLAY_LEAST_NS)
        return cli_usage_error(cli,
                               "--replay %s: from its first to its last time are %llu ns at --speed %g: %s",
                               h->replay, (unsigned long long)last, h->speed, "too short to measure");
    if (last > REPLAY_MOST_NS)
        return cli_usage_error(
            cli,
            "--replay %s: from its first to its last time are %.0f days at --speed %g: is one of "
            "them another date's, or of another unit?",
            h->replay, (double)last / DAY_NS, h->speed);
    out->replay.name = h->replay;
    out->replay.speed = h->speed;
    return vec_push(&out->rates, (double)m->at.n * 1e9 / (double)last, &cli->error) < 0 ? cli_fail(cli) : 0;
}

/* More connections than there may be are better known now. */
static int check_files_left(struct cli *cli, const struct bench_args *a, const struct bench_service *s)
{
    unsigned most = (unsigned)a->http.asking.connections, allowed;
    for (size_t i = 0; i < s->concurrency.values.n && !most; i++)
        if (s->concurrency.values.items[i] > most) most = (unsigned)s->concurrency.values.items[i];
    return load_connections(most, &allowed, &cli->error) < 0 ? cli_usage_error(cli, "%s", cli->error.text)
                                                             : 0;
}

/* --expect: whoever reads the answers compares them, too. */
static int expect_answers(struct cli *cli, const struct bench_args *a, const struct bench_expected *expected,
                          struct bench_service *out)
{
    struct bench_answers *x = &out->answers;
    *x = (struct bench_answers){.a = a, .given = expected, .json = &out->asking.json};
    if (bench_answers_open(x, out->asking.bodies.lines.all.n, &cli->error) < 0)
        return cli_usage_error(cli, "--expect %s: %s", a->expect, cli->error.text);
    if (a->llm.kserve)
        out->protocol.kserve.look = bench_answers_look(x);
    else
        out->asking.reader = bench_answers_reader(x);
    return 0;
}

int bench_service_plan(struct cli *cli, const struct bench_args *a, const struct bench_expected *expected,
                       struct bench_service *out)
{
    bool lines = !a->llm.on && !a->llm.kserve; /* those two take what they send from elsewhere */
    const struct asking_to to = {a->url, lines ? a->setup.inputs : NULL, a->seed};
    int rc = asking_read(cli, &a->http.asking, &to, &out->asking);
    if (!rc) rc = bench_protocol_plan(cli, a, &out->protocol, &out->asking);
    if (!rc && a->expect) rc = expect_answers(cli, a, expected, out);
    if (!rc) rc = read_loads(cli, a, out);
    if (!rc) rc = read_replay(cli, &a->http, out);
    if (!rc && a->http.pid && kill((pid_t)a->http.pid, 0) < 0 && errno == ESRCH)
        rc = cli_usage_error(cli, "--pid %llu: there is no such process", (unsigned long long)a->http.pid);
    return rc ? rc : check_files_left(cli, a, out);
}

void bench_service_release(struct bench_service *s)
{
    vec_release(&s->rates);
    vec_release(&s->replay.moments.at);
    vec_release(&s->concurrency.values);
    bench_answers_release(&s->answers);
    asking_release(&s->asking);
    bench_protocol_release(&s->protocol);
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
    struct load_options o = asking_options(&p->service.asking, &a->http.asking, a->url);
    o.timeout_ns = patience_ns(p);
    tare_status s = subject_open_http(out, &o, err);
    if (s < 0 || !a->http.wait.ns) return s;
    s = subject_await_http(*out, (uint64_t)a->http.wait.ns, err);
    if (s == TARE_OK) return s;
    subject_close(*out);
    *out = NULL;
    return error_wrap(err, "no answer within %.9g s", (double)a->http.wait.ns / 1e9);
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
        struct bench_case c = {.name = s->replay.name ? arena_str(&out->arena, "replay")
                                                      : arena_printf(&out->arena, "rate=%.9g", rate),
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
