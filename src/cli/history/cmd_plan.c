/* SPDX-License-Identifier: MIT
 * cmd_plan.c - `tare plan`: from measured runs, a rate of requests and a limit on response time to a
 * number of replicas, and what breaks first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/judge/queue.h"
#include "analyze/judge/sweep.h"
#include "core/fmt.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/input.h"
#include "core/unit.h"
#include "core/vec.h"
#include "report/text.h"

static const char *const assumptions[] = {
    "a request is one run of the case; a replica serves one at a time, as fast as it was measured",
    "requests arrive independently of each other (Poisson); service times are drawn from the measured ones",
    "a replica is alone on the processors its threads need",
};
static const char *const of_services[] = {
    "a replica keeps at its share of the rate what one was measured to keep at a rate as high",
    "requests arrive independently of each other (Poisson), and are divided evenly",
};

struct plan_question {
    struct capacity_goal goal;
    bool json;
    struct opt_list cases;
    struct history_args history;
};

struct rows {
    VEC(struct capacity) all;
    const struct capacity *chosen; /* NULL: none is possible */
    size_t usable;
};

/* ---- options ---- */

static tare_status on_rate(void *ctx, const char *text, tare_error *err)
{
    struct plan_question *a = ctx;
    tare_status s = target_parse_rate(&a->goal.rate, a->goal.rate_unit, text, err);
    if (s == TARE_OK && !(a->goal.rate > 0)) s = error_set(err, TARE_INVALID, "a rate must be above 0");
    return s;
}

static tare_status on_limit(void *ctx, const char *text, tare_error *err)
{
    struct plan_question *a = ctx;
    tare_status s = target_parse(&a->goal.limit, text, err);
    return s == TARE_OK ? capacity_check_limit(&a->goal.limit, err) : s;
}

static tare_status on_headroom(void *ctx, const char *text, tare_error *err)
{
    struct plan_question *a = ctx;
    if (!unit_parse(UNIT_PERCENT, text, &a->goal.headroom) || a->goal.headroom > 10)
        return error_set(err, TARE_INVALID, "'%s' is not a share in percent, 0%% to 1000%%: write 20%%",
                         text);
    return TARE_OK;
}

static bool is_wanted(const struct plan_question *a, const struct run_case *c)
{
    for (size_t i = 0; i < a->cases.n; i++)
        if (strcmp(a->cases.items[i], c->name) == 0) return true;
    return a->cases.n == 0;
}

/* ---- planning ---- */

/* Only what may be chosen is compared: the length of inputs is given. */
static bool does_same_work(const struct capacity *a, const struct capacity *b)
{
    return is_same_work(a->run, a->c, b->c);
}

static bool is_first_of_its_work(const struct rows *rows, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (does_same_work(&rows->all.items[k], &rows->all.items[i])) return false;
    return true;
}

static const struct capacity *best_for(const struct rows *rows, const struct capacity *like)
{
    const struct capacity *best = NULL;
    for (size_t i = 0; i < rows->all.n; i++) {
        const struct capacity *row = &rows->all.items[i];
        if (row->unusable || !row->plan.possible || !does_same_work(like, row)) continue;
        if (!best || capacity_is_better(row, best)) best = row;
    }
    return best;
}

static tare_status plan_all(struct rows *out, const struct input_runs *args, const struct plan_question *a,
                            tare_error *err)
{
    for (size_t r = 0; r < args->n; r++) {
        for (size_t i = 0; i < args->runs[r].cases.n; i++) {
            struct capacity row;
            if (!is_wanted(a, args->runs[r].cases.at[i])) continue;
            tare_status s = capacity_plan(&row, &args->runs[r], args->runs[r].cases.at[i], &a->goal, err);
            if (s == TARE_OK) s = vec_push(&out->all, row, err);
            if (s < 0) return s;
        }
    }
    for (size_t i = 0; i < out->all.n; i++) {
        out->usable += !out->all.items[i].unusable;
        if (!out->chosen && is_first_of_its_work(out, i)) out->chosen = best_for(out, &out->all.items[i]);
    }
    return TARE_OK;
}

/* ---- the answer ---- */

static const char *limit_name(const struct plan_question *q)
{
    const char *metric = q->goal.limit.metric;
    return strncmp(metric, "latency.", 8) == 0 ? metric + 8 : metric;
}

static void say_plain(struct answer *a, const char *text)
{
    text_plain(answer_text(a), text, text_clip(text, 200));
}

static void say_time(struct answer *a, const char *key, double ns)
{
    answer_f64(a, key, ns, NULL);
    fmt_duration(answer_text(a), ns);
}

/* What it takes to keep the limit, if that is possible. */
/* So much above the rate that was asked for: "+37 %", far from it the factor, "612x", as fmt_change() has it. */
static struct shown show_more(double ratio)
{
    struct shown out;
    if (ratio > 10)
        snprintf(out.s, sizeof out.s, "%.38sx", show_number(ratio).s);
    else
        snprintf(out.s, sizeof out.s, "+%.38s", show_percent(ratio - 1).s);
    return out;
}

static void say_replicas(struct answer *a, const struct capacity *row)
{
    const struct queue_plan *p = &row->plan;
    const struct queue_result *at = &p->at_rate;
    double memory = row->memory.known ? row->memory.v * p->servers : NAN;
    double machines = row->machines.known ? row->machines.v : NAN;
    answer_uint(a, "replicas", p->servers, "%u", p->servers);
    answer_f64(a, "utilization", at->utilization, NULL);
    if (row->measured)
        answer_say(a, "-");
    else
        fmt_share(answer_text(a), at->utilization);
    say_time(a, "response_ns", at->response_ns);
    answer_say(a, "%s", isnan(memory) ? "-" : show_bytes(memory).s);
    answer_say(a, "%s", isnan(machines) ? "-" : show_number(machines).s);
    answer_f64(a, "response_ns_lo", at->lo, NULL);
    answer_f64(a, "response_ns_hi", at->hi, NULL);
    answer_f64(a, "wait_mean_ns", at->wait_mean_ns, NULL);
    if (isnan(p->breaks_at))
        answer_null(a, "breaks_at_per_s", "no higher rate was surely missed");
    else
        answer_f64(a, "breaks_at_per_s", p->breaks_at, "at %s/s (%s)", show_number(p->breaks_at).s,
                   show_more(p->breaks_at / row->requests).s);
    answer_f64(a, "saturates_at_per_s", p->saturates_at, NULL);
    answer_f64(a, "machines", machines, NULL);
    answer_str(a, "machines_by", row->machines_by, NULL);
    answer_f64(a, "memory_bytes", memory, NULL);
    answer_uint(a, "simulated_requests", at->arrivals, NULL);
}

/* One case: a row of the table. */
static void say_case(struct answer *a, const struct capacity *row, bool with_subject)
{
    const struct queue_plan *p = &row->plan;
    bool possible = !row->unusable && p->possible;
    const char *why_not = row->unusable ? row->unusable : p->why_not;
    answer_str(a, "run", row->run->id, NULL);
    answer_str(a, "subject", row->run->subject.name, NULL);
    if (with_subject) say_plain(a, row->run->subject.name);
    answer_str(a, "case", row->c->name, NULL);
    say_plain(a, row->c->name);
    answer_bool(a, "possible", possible, NULL);
    answer_str(a, "why", why_not, NULL);
    answer_f64(a, "requests_per_s", row->requests, NULL);
    say_time(a, "service_ns", row->unusable ? NAN : p->service_ns);
    if (row->measured) answer_bool(a, "measured", true, NULL);
    answer_bool(a, "few_samples", row->few_samples, NULL);
    if (possible) {
        say_replicas(a, row);
        return;
    }
    for (int i = 0; i < 5; i++) answer_say(a, "-");
    say_plain(a, why_not);
}

static void say_cases(struct answer *a, const struct rows *rows, const struct plan_question *q,
                      bool with_subject)
{
    char response[32];
    snprintf(response, sizeof response, "%.16s at this rate", limit_name(q));
    const struct table_column all[] = {{"subject", true},   {"case", true},      {"run alone", false},
                                       {"replicas", false}, {"busy", false},     {response, false},
                                       {"memory", false},   {"machines", false}, {"breaks", true}};
    static const char *const spare[] = {"machines", "run alone", "memory", NULL};
    answer_table(a, "cases", with_subject ? all : all + 1, with_subject ? 9 : 8);
    a->table.spare = spare;
    for (size_t i = 0; i < rows->all.n; i++) {
        answer_object(a, NULL);
        say_case(a, &rows->all.items[i], with_subject);
        answer_object_end(a);
    }
    answer_table_end(a);
}

/* Of a service: what one replica was measured to take. */
static void say_measured(struct answer *a, const struct capacity *row, const struct plan_question *q)
{
    const struct queue_plan *p = &row->plan;
    answer_say(a, "each takes %s/s; at this case's rate one was measured to keep %s <= %s",
               show_number(row->requests / p->servers).s, limit_name(q), show_time(q->goal.limit.value).s);
    if (!isnan(p->at_rate.response_ns)) answer_say(a, " (%s)", show_time(p->at_rate.response_ns).s);
    answer_say(a, "\n");
    if (!isnan(p->breaks_at))
        answer_say(a, "first to break: the %s, surely at %s requests/s (%s)\n", limit_name(q),
                   show_number(p->breaks_at).s, show_more(p->breaks_at / row->requests).s);
}

static void say_reason(struct answer *a, const struct capacity *row, const struct plan_question *q)
{
    const struct queue_plan *p = &row->plan;
    answer_say(a, "use ");
    say_plain(a, row->c->name);
    answer_say(a, " with %u %s: ", p->servers, p->servers == 1 ? "replica" : "replicas");
    if (row->measured) {
        say_measured(a, row, q);
        return;
    }
    answer_say(a, "%s busy, %s %s (%s to %s), limit %s", show_percent(p->at_rate.utilization).s,
               limit_name(q), show_time(p->at_rate.response_ns).s, show_time(p->at_rate.lo).s,
               show_time(p->at_rate.hi).s, show_time(q->goal.limit.value).s);
    answer_say(a, "\nfirst to break: the %s at %s requests/s (%s); the queue grows without end at %s/s\n",
               limit_name(q), show_number(p->breaks_at).s, show_more(p->breaks_at / row->requests).s,
               show_number(p->saturates_at).s);
    if (row->machines.known)
        answer_say(a, "machines like the measured one: %s; their %s %s full first\n",
                   show_number(row->machines.v).s, row->machines_by,
                   strcmp(row->machines_by, "memory") == 0 ? "is" : "are");
}

static void say_doubts(struct answer *a, const struct rows *rows, const struct plan_question *q)
{
    for (size_t i = 0; i < rows->all.n; i++) {
        const struct capacity *row = &rows->all.items[i];
        if (!row->few_samples) continue;
        answer_say(a, "- ");
        say_plain(a, row->c->name);
        answer_say(a, ": %zu single times tell little of its %s; measure longer (--budget)\n",
                   row->c->samples_raw.n, limit_name(q));
    }
}

static void say_chosen(struct answer *a, const struct rows *rows, const struct plan_question *q)
{
    answer_say(a, "\n");
    if (!rows->chosen) {
        answer_null(a, "chosen", "impossible: no case keeps the limit, however many replicas there are\n");
    } else if (a->as_json) {
        answer_object(a, "chosen");
        say_case(a, rows->chosen, false);
        answer_object_end(a);
    } else {
        for (size_t i = 0; i < rows->all.n; i++) {
            const struct capacity *best =
                is_first_of_its_work(rows, i) ? best_for(rows, &rows->all.items[i]) : NULL;
            if (best) say_reason(a, best, q);
        }
    }
}

static void say_goal(struct answer *a, const struct capacity_goal *g, const struct plan_question *q)
{
    const char *unit = *g->rate_unit ? g->rate_unit : "/s";
    answer_str(a, "schema", "tare.plan/1", NULL);
    answer_f64(a, "rate_per_s", g->rate, "%s", show_number(g->rate).s);
    answer_str(a, "rate_unit", unit, "%s, ", unit);
    answer_str(a, "metric", g->limit.metric, "%s %s ", limit_name(q), target_op_text(g->limit.op));
    answer_f64(a, "limit_ns", g->limit.value, "%s", show_time(g->limit.value).s);
    answer_f64(a, "headroom", g->headroom, g->headroom > 0 ? ", %s headroom" : NULL,
               show_percent(g->headroom).s);
    answer_uint(a, "seed", g->seed, "\n\n");
}

static bool is_of_services(const struct rows *rows)
{
    for (size_t i = 0; i < rows->all.n; i++)
        if (!rows->all.items[i].unusable && !rows->all.items[i].measured) return false;
    return rows->all.n > 0;
}

static int answer_plan(struct cli *cli, const struct rows *rows, const struct plan_question *q,
                       bool with_subject)
{
    bool services = is_of_services(rows);
    const char *const *assumed = services ? of_services : assumptions;
    const size_t n_assumed =
        services ? sizeof of_services / sizeof *of_services : sizeof assumptions / sizeof *assumptions;
    struct answer a;
    cli_answer_begin(cli, &a, q->json);
    say_goal(&a, &q->goal, q);
    answer_list(&a, "assumptions");
    for (size_t i = 0; i < n_assumed; i++) answer_str(&a, NULL, assumed[i], NULL);
    answer_list_end(&a);
    say_cases(&a, rows, q, with_subject);
    say_doubts(&a, rows, q);
    say_chosen(&a, rows, q);
    answer_say(&a, "\nassumed:\n");
    for (size_t i = 0; i < n_assumed; i++) answer_say(&a, "- %s\n", assumed[i]);
    int rc = cli_answer_end(cli, &a);
    return rc == CLI_GOOD && !rows->chosen ? CLI_FINDING : rc;
}

/* ---- the command ---- */

/* No case to plan with: say why, of the first one. */
static int explain_nothing(struct cli *cli, const struct rows *rows, const struct plan_question *a,
                           const char *path)
{
    if (rows->all.n)
        error_set(&cli->error, TARE_INVALID, "%s: %s cannot be planned with: %s", path,
                  rows->all.items[0].c->name, rows->all.items[0].unusable);
    else if (a->cases.n)
        error_set(&cli->error, TARE_INVALID, "%s: has no case %s", path, a->cases.items[0]);
    else
        error_set(&cli->error, TARE_INVALID, "%s: holds no cases", path);
    return cli_fail(cli);
}

static int plan_runs(struct cli *cli, int argc, char **argv, const struct plan_question *a)
{
    struct input_runs args;
    struct rows rows = {0};
    int rc = input_runs_load(cli, &args, &a->history, argv, (size_t)argc);
    if (rc) return rc;
    if (plan_all(&rows, &args, a, &cli->error) < 0)
        rc = cli_fail(cli);
    else if (rows.usable == 0)
        rc = explain_nothing(cli, &rows, a, argv[0]);
    else
        rc = answer_plan(cli, &rows, a, args.n > 1);
    vec_release(&rows.all);
    input_runs_release(&args);
    return rc;
}

int cmd_plan(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare plan [options] --rate <rate> --slo <limit> <run.json | @id>...",
        .about = "How many replicas keep a limit on response time at a rate of requests? From the single times in "
                 "run documents of `tare bench`: the queue before the replicas is simulated, for each case, with "
                 "random arrivals. Prints the replicas, how busy they are, the response time that results, and at "
                 "which rate it breaks.",
        .tail = "tare plan bench_minilm.json --rate 500/s --slo 'p95<=200ms' --headroom 20%",
        .min_args = 1,
        .max_args = OPT_ANY,
        .args = OPT_ARGS_FILES,
    };
    struct plan_question a = {.goal = {.seed = 1}, .cases = OPT_LIST_INIT, .history = HISTORY_ARGS_INIT};
    const struct opt rows[] = {
        OPT_CALLBACK('r', "rate", on_rate, &a, "<rate>", "requests: 500/s; or units of a case: 500texts/s",
                     .required = "how many requests per second? as in --rate 50/s"),
        OPT_CALLBACK(0, "slo", on_limit, &a, "<limit>", "limit on response time: p95<=200ms",
                     .required = "which response time is good enough? as in --slo 'p95<=500ms'"),
        OPT_CALLBACK(0, "headroom", on_headroom, &a, "<percent>", "must also hold at this much more: 20%"),
        OPT_LIST(0, "case", &a.cases, "<name>", "only this case"),
        OPT_UINT(0, "seed", &a.goal.seed, "of the simulation"),
        OPT_JSON(&a.json),
        OPT_ASKED(&a.history),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc == 0) rc = plan_runs(cli, argc, argv, &a);
    opt_list_release(&a.cases);
    return rc;
}
