/* SPDX-License-Identifier: MIT
 * bench_find.c - `tare bench http://.. --find-rate --slo p99<=200ms`: windows of load at one rate after another, as
 * analyze/judge/rate_search.h asks for them, and what they say together. Each rate is a case of the document; one that
 * was tried again has its last window there. */
#include <math.h>
#include <string.h>

#include "analyze/judge/rate_search.h"
#include "cli/bench/bench_args.h"
#include "cli/progress.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/unit.h"

enum { DEAD_MOST = 3, LEAST_REQUESTS = 20 };
enum { TRIES = 3 }; /* of one window: this client was kept from sending in time by others */
#define ROUGH 5     /* windows that double are as many times shorter than those that confirm; */
#define FINER 2     /* the last ones that halve; the first ones are in between */
#define LONGEST 10  /* times the budget: more is not spent on one window, whatever the limits ask for */
#define USUAL_GOOD "goodput>=99%"

/* ---- the limits ---- */

static int add_limit(struct cli *cli, struct rate_limits *l, const char *text)
{
    if (l->n == RATE_LIMITS_MOST)
        return cli_usage_error(cli, "--slo: more than %d limits", (int)RATE_LIMITS_MOST);
    struct target *t = &l->of[l->n];
    if (target_parse(t, text, &cli->error) < 0) return cli_usage_error(cli, "--slo %s", cli->error.text);
    const struct measure *m = measure_find(t->metric);
    bool upper = t->op == TARGET_LE || t->op == TARGET_LT;
    bool is_time = m->kind == MEASURE_TIME && upper && strchr(t->metric, '.') && t->value > 0;
    bool is_good = strcmp(t->metric, "goodput") == 0 && !upper && t->value > 0 && t->value < 1;
    if (!is_time && !is_good)
        return cli_usage_error(cli,
                               "--slo %s: expected a limit on a time or on goodput, as in p99<=200ms, "
                               "ttft.p95<=500ms, goodput>=95%%",
                               text);
    l->n++;
    return 0;
}

/* Is it about all requests (p99<=200ms), or about each (ttft<=500ms)? */
static bool is_of_all(const char *item)
{
    static const char *const words[] = {"p50", "p90", "p95", "p99", "p999", "mean", "goodput"};
    size_t n = strcspn(item, "<>=: ");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && strncmp(words[i], item, n) == 0) return true;
    return memchr(item, '.', n) != NULL;
}

/* What is said of each request is collected in `each`. */
static int read_limits(struct cli *cli, const char *text, struct rate_limits *l, struct buf *each)
{
    char item[128];
    for (const char *at = text;; at++) {
        at += strspn(at, " ");
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof item)
            return cli_usage_error(cli, "--slo %s: at '%.40s': a limit was expected, as in p99<=200ms", text,
                                   at);
        snprintf(item, sizeof item, "%.*s", (int)n, at);
        int rc = 0;
        if (is_of_all(item))
            rc = add_limit(cli, l, item);
        else
            buf_printf(each, "%s%.*s", each->len ? "," : "", (int)n, at);
        if (rc) return rc;
        at += n;
        if (!*at) return 0;
    }
}

static bool has_goodput(const struct rate_limits *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->of[i].metric, "goodput") == 0) return true;
    return false;
}

static bool has_stream(const struct rate_limits *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (strncmp(l->of[i].metric, "latency.", 8) != 0) return true;
    return false;
}

int bench_find_limits(struct cli *cli, const struct bench_args *a, struct rate_limits *out, struct slo *each)
{
    struct buf text = BUF_INIT;
    *out = (struct rate_limits){.n = 0};
    int rc = read_limits(cli, a->llm.slo, out, &text);
    if (!rc && buf_status(&text, &cli->error) < 0) rc = cli_fail(cli);
    if (!rc && text.len && !a->llm.on)
        rc = cli_usage_error(cli, "--slo %s: of how many requests? as in p99<=200ms", text.data);
    if (!rc && text.len && slo_parse(each, text.data, &cli->error) < 0)
        rc = cli_usage_error(cli, "%s", cli->error.text);
    if (!rc && text.len && !has_goodput(out)) rc = add_limit(cli, out, USUAL_GOOD);
    if (!rc && !text.len && has_goodput(out))
        rc = cli_usage_error(cli,
                             "--slo goodput: of which limits? as in ttft<=500ms,tpot<=50ms,goodput>=95%%");
    if (!rc && !a->llm.on && has_stream(out))
        rc = cli_usage_error(cli, "--slo: times to tokens are of language models (--llm)");
    buf_release(&text);
    return rc;
}

/* ---- a window ---- */

struct finding_rate {
    struct cli *cli;
    const struct bench_planned *p;
    struct subject *subject;
    struct run *run;
    struct rate_search search;
    struct progress bar;
    uint64_t began, window_ns; /* of the search; of the window under way */
    unsigned tries;            /* of this rate, spoilt by the client */
    unsigned dead;             /* windows in a row in which nothing was answered */
    const char *gone;          /* why there is no use in going on; NULL: there is */
};

/* What is left: of this window, and about those to come. */
static void report(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    struct finding_rate *f = ctx;
    uint64_t before = instant_now().ns - f->began, left = rate_search_left(&f->search);
    progress_time(&f->bar, what, before, before + (total - done) + left * f->window_ns);
}

static void drop_case(struct run *run, const char *name, size_t before)
{
    for (size_t i = 0; i < before && i < run->cases.n; i++) {
        if (strcmp(run->cases.at[i]->name, name) != 0) continue;
        memmove(&run->cases.at[i], &run->cases.at[i + 1], (run->cases.n - i - 1) * sizeof *run->cases.at);
        run->cases.n--;
        return;
    }
}

static tare_status run_case(struct finding_rate *f, struct bench_case c, struct bench_plan plan)
{
    size_t before = f->run->cases.n;
    c.subject = f->subject;
    c.params.workers = 1;
    c.params.seed = plan.seed;
    if (!c.name) return error_nomem(&f->cli->error, "a case");
    plan.cases = &c;
    plan.n_cases = 1;
    plan.progress = (struct bench_progress){report, f};
    f->window_ns = plan.budget_ns;
    plan.keep_failed = f->run->rate_search.probes.n > 0; /* it did answer */
    tare_status s = bench_run(f->run, &plan, &f->cli->error);
    if (s == TARE_OK) drop_case(f->run, c.name, before);
    return s;
}

/* One request after another says where to begin: half of that is what a service with one worker surely has. */
static tare_status look_first(struct finding_rate *f, double *start)
{
    struct bench_plan plan = f->p->plan;
    struct bench_case c = {.name = "one at a time", .params = {.concurrency = 1}};
    plan.load = BENCH_CLOSED;
    plan.budget_ns /= 2 * ROUGH;
    tare_status s = run_case(f, c, plan);
    if (s < 0) return s;
    const struct run_case *done = f->run->cases.at[f->run->cases.n - 1];
    double n = done->samples.known ? (double)done->samples.v : 0;
    double mean = done->latency_ns.mean.known ? (double)done->latency_ns.mean.v : 0;
    *start = n > 0 && mean > 0 ? 0.5e9 / mean : 1;
    for (size_t i = 0; i < f->p->limits.n; i++) {
        const struct target *t = &f->p->limits.of[i];
        bool is_over = done->latency_ns.min.known && (double)done->latency_ns.min.v > t->value;
        if (is_over && strncmp(t->metric, "latency.", 8) == 0)
            f->gone = arena_printf(&f->run->arena, "a request alone takes %s or longer",
                                   show_time((double)done->latency_ns.min.v).s);
    }
    if (f->gone) return s;
    drop_case(f->run, c.name, f->run->cases.n); /* another kind of load than the rest */
    return TARE_OK;
}

static uint64_t window_for(const struct finding_rate *f, double rate)
{
    enum rate_stage stage = f->search.stage;
    double budget = (double)f->p->plan.budget_ns, part = 1;
    if (stage == RATE_DOUBLE) part = ROUGH;
    if (stage == RATE_HALVE) part = fmin(FINER + log2(f->search.missed - f->search.kept) / 2, ROUGH);
    double asked = rate_window_ns(&f->p->limits, rate, stage == RATE_CONFIRM);
    return (uint64_t)fmin(fmax(budget / part, asked), budget * LONGEST);
}

static tare_status keep_probe(struct finding_rate *f, const struct run_case *c, double rate,
                              struct rate_told t)
{
    struct run_rate_probe *p = RUN_LIST_ADD(&f->run->arena, &f->run->rate_search.probes);
    if (!p) return error_nomem(&f->cli->error, "a rate");
    const char *surely = t.kept ? "pass" : "fail";
    *p = (struct run_rate_probe){.rate = rate,
                                 .stage = rate_stage_words[f->search.stage],
                                 .verdict = t.surely ? surely : "inconclusive",
                                 .seems_kept = known_bool(t.kept),
                                 .due = c->http.due,
                                 .window_s = known_f64((double)f->window_ns / 1e9)};
    return TARE_OK;
}

/* A miss while this client could not send in time may be its own: it is tried again, then the search ends there. */
static tare_status judge_window(struct finding_rate *f, const struct run_case *c, double rate)
{
    struct rate_told t;
    tare_status s = rate_judge(&f->p->limits, c, &t, &f->cli->error);
    if (s < 0) return s;
    f->dead = c->samples.known ? 0 : f->dead + 1;
    if (f->dead == DEAD_MOST)
        f->gone = arena_printf(&f->run->arena, "the service stopped answering: %s",
                               c->failure ? c->failure : "nothing came");
    bool full = c->http.limited.known && c->http.limited.v;
    bool spoilt = full || (!t.kept && rate_client_late(&f->p->limits, c));
    if (spoilt) t.surely = false;
    s = keep_probe(f, c, rate, t);
    if (s < 0 || (spoilt && !full && ++f->tries < TRIES)) return s;
    f->tries = 0;
    if (spoilt)
        rate_search_limit(&f->search);
    else
        rate_search_tell(&f->search, t);
    return s;
}

static tare_status try_rate(struct finding_rate *f)
{
    double rate = rate_of_step(f->search.at);
    struct bench_plan plan = f->p->plan;
    struct bench_case c = {.name = arena_printf(&f->run->arena, "rate=%.9g", rate), .params = {.rate = rate}};
    plan.load = BENCH_OPEN;
    plan.rate = rate;
    plan.budget_ns = window_for(f, rate);
    plan.seed += f->run->rate_search.probes.n; /* another window has other arrivals */
    tare_status s = run_case(f, c, plan);
    return s < 0 ? s : judge_window(f, f->run->cases.at[f->run->cases.n - 1], rate);
}

/* ---- what came of it ---- */

static void write_limits(struct finding_rate *f, struct buf *b)
{
    const struct rate_limits *l = &f->p->limits;
    const char *each = f->p->service.protocol.slo.text;
    buf_add_str(b, each);
    for (size_t i = 0; i < l->n; i++) {
        const struct target *t = &l->of[i];
        bool is_time = measure_find(t->metric)->kind == MEASURE_TIME;
        buf_printf(b, "%s%s%s%s", b->len ? "," : "", t->metric, target_op_text(t->op),
                   is_time ? show_time(t->value).s : show_percent(t->value).s);
    }
}

static tare_status conclude(struct finding_rate *f)
{
    struct run_rate_search *to = &f->run->rate_search;
    const struct rate_search *s = &f->search;
    struct buf limits = BUF_INIT;
    write_limits(f, &limits);
    to->known = true;
    to->slo = arena_str(&f->run->arena, limits.data ? limits.data : "");
    buf_release(&limits);
    if (s->has_passed) to->passed = known_f64(rate_of_step(s->passed));
    if (s->has_failed && (!s->has_passed || s->failed > s->passed))
        to->failed = known_f64(rate_of_step(s->failed));
    to->limited = known_bool(s->limited);
    to->why = rate_search_why(s);
    if (s->stage != RATE_DONE) to->why = f->gone ? f->gone : "interrupted";
    if (f->dead == DEAD_MOST) to->failed = (struct known_f64){0}; /* no rate did that */
    to->seconds = known_f64((double)(instant_now().ns - f->began) / 1e9);
    return to->slo ? TARE_OK : error_nomem(&f->cli->error, "the limits");
}

tare_status bench_find_rate(struct cli *cli, const struct bench_planned *p, struct subject *subject,
                            struct run *run)
{
    struct finding_rate f = {.cli = cli,
                             .p = p,
                             .subject = subject,
                             .run = run,
                             .bar = PROGRESS_INIT(cli),
                             .began = instant_now().ns,
                             .window_ns = p->plan.budget_ns};
    struct interrupt was;
    double start = 1, least = LEAST_REQUESTS * 1e9 / (LONGEST * (double)p->plan.budget_ns);
    interrupt_catch(&was);
    tare_status s = look_first(&f, &start);
    rate_search_begin(&f.search, p->service.rates.n ? p->service.rates.items[0] : start, least);
    while (s == TARE_OK && f.search.stage != RATE_DONE && !interrupted && !f.gone) s = try_rate(&f);
    interrupt_restore(&was);
    progress_end(&f.bar);
    if (s < 0 && interrupted && run->cases.n) s = TARE_OK; /* what there is is kept */
    return s == TARE_OK ? conclude(&f) : s;
}
