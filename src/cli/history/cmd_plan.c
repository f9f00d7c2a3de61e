/* SPDX-License-Identifier: MIT
 * cmd_plan.c - `tare plan`: from measured runs, a rate of requests and a limit on response time to a
 * number of replicas, and what breaks first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/judge/capacity.h"
#include "analyze/judge/show.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/input.h"
#include "core/json.h"
#include "core/mem.h"
#include "core/unit.h"
#include "core/vec.h"
#include "report/run/run_report.h"
#include "report/table.h"
#include "report/text.h"

static const char *const assumptions[] = {
    "a request is one run of the case; a replica serves one at a time, as fast as it was measured",
    "requests arrive independently of each other (Poisson); service times are drawn from the measured ones",
    "a replica is alone on the processors its threads need",
};

struct asked {
    struct capacity_goal goal;
    bool has_rate, has_limit, json;
    struct opt_list cases;
};

struct rows {
    VEC(struct capacity) all;
    const struct capacity *chosen; /* NULL: none is possible */
    size_t usable;
};

/* ---- options ---- */

static tare_status on_rate(void *ctx, const char *text, tare_error *err)
{
    struct asked *a = ctx;
    a->has_rate = true;
    tare_status s = target_parse_rate(&a->goal.rate, a->goal.rate_unit, text, err);
    if (s == TARE_OK && !(a->goal.rate > 0)) s = error_set(err, TARE_INVALID, "a rate must be above 0");
    return s;
}

static tare_status on_limit(void *ctx, const char *text, tare_error *err)
{
    struct asked *a = ctx;
    a->has_limit = true;
    tare_status s = target_parse(&a->goal.limit, text, err);
    return s == TARE_OK ? capacity_check_limit(&a->goal.limit, err) : s;
}

static tare_status on_headroom(void *ctx, const char *text, tare_error *err)
{
    struct asked *a = ctx;
    if (!unit_parse(UNIT_PERCENT, text, &a->goal.headroom) || a->goal.headroom > 10)
        return error_set(err, TARE_INVALID, "'%s' is not a share in percent, 0%% to 1000%%: write 20%%",
                         text);
    return TARE_OK;
}

static bool is_wanted(const struct asked *a, const struct run_case *c)
{
    for (size_t i = 0; i < a->cases.n; i++)
        if (strcmp(a->cases.items[i], c->name) == 0) return true;
    return a->cases.n == 0;
}

/* ---- planning ---- */

static tare_status plan_all(struct rows *out, const struct input_runs *args, const struct asked *a,
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
        const struct capacity *row = &out->all.items[i];
        out->usable += !row->unusable;
        if (row->unusable || !row->plan.possible) continue;
        if (!out->chosen || capacity_is_better(row, out->chosen)) out->chosen = row;
    }
    return TARE_OK;
}

/* ---- text ---- */

static const char *limit_name(const struct asked *a)
{
    return strncmp(a->goal.limit.metric, "latency.", 8) == 0 ? a->goal.limit.metric + 8
                                                             : a->goal.limit.metric;
}

static void cell_text(struct table *t, const char *text)
{
    text_plain(table_cell(t), text, text_clip(text, 200));
    table_cell_end(t);
}

static void row_cells(struct table *t, const struct capacity *row, bool with_subject)
{
    const struct queue_plan *p = &row->plan;
    if (with_subject) cell_text(t, row->run->subject.name);
    cell_text(t, *row->c->name ? row->c->name : "-");
    text_time(table_cell(t), row->unusable ? NAN : p->service_ns, NAN);
    table_cell_end(t);
    bool ok = !row->unusable && p->possible;
    if (!ok) {
        for (int i = 0; i < 5; i++) cell_text(t, "-");
        cell_text(t, row->unusable ? row->unusable : p->why_not);
        return;
    }
    buf_printf(table_cell(t), "%u", p->servers);
    table_cell_end(t);
    text_share(table_cell(t), p->at_rate.utilization);
    table_cell_end(t);
    double half = fmax(p->at_rate.hi - p->at_rate.response_ns, p->at_rate.response_ns - p->at_rate.lo);
    text_time(table_cell(t), p->at_rate.response_ns, half);
    table_cell_end(t);
    cell_text(t, row->memory.known ? show_bytes(row->memory.v * p->servers).s : "-");
    cell_text(t, row->machines.known ? show_number(row->machines.v).s : "-");
    struct buf *b = table_cell(t);
    buf_printf(b, "at %s/s (+%s)", show_number(p->breaks_at).s,
               show_percent(p->breaks_at / row->requests - 1).s);
    table_cell_end(t);
}

static void write_table(struct stream *s, const struct rows *rows, const struct asked *a, bool with_subject)
{
    char response[32];
    snprintf(response, sizeof response, "%.20s then", limit_name(a));
    const struct table_column all[] = {{"subject", true},   {"case", true},      {"run alone", false},
                                       {"replicas", false}, {"busy", false},     {response, false},
                                       {"memory", false},   {"machines", false}, {"breaks", true}};
    struct table t;
    table_init(&t, with_subject ? all : all + 1, with_subject ? 9 : 8);
    for (size_t i = 0; i < rows->all.n; i++) row_cells(&t, &rows->all.items[i], with_subject);
    table_print(&t, s, "", "");
    table_release(&t);
}

static void write_reason(struct buf *b, const struct capacity *row, const struct asked *a)
{
    const struct queue_plan *p = &row->plan;
    buf_add_str(b, "use ");
    text_plain(b, row->c->name, text_clip(row->c->name, 200));
    buf_printf(b, " with %u %s: ", p->servers, p->servers == 1 ? "replica" : "replicas");
    buf_printf(b, "%s busy, %s %s (%s to %s), limit %s", show_percent(p->at_rate.utilization).s,
               limit_name(a), show_time(p->at_rate.response_ns).s, show_time(p->at_rate.lo).s,
               show_time(p->at_rate.hi).s, show_time(a->goal.limit.value).s);
    buf_printf(b, "\nfirst to break: the %s at %s requests/s (+%s); the queue grows without end at %s/s\n",
               limit_name(a), show_number(p->breaks_at).s, show_percent(p->breaks_at / row->requests - 1).s,
               show_number(p->saturates_at).s);
    if (row->machines.known)
        buf_printf(b, "machines like the measured one: %s; their %s %s full first\n",
                   show_number(row->machines.v).s, row->machines_by,
                   strcmp(row->machines_by, "memory") == 0 ? "is" : "are");
}

static void write_doubt(struct buf *b, const struct capacity *row, const struct asked *a)
{
    if (!row->few_samples) return;
    buf_add_str(b, "- ");
    text_plain(b, row->c->name, text_clip(row->c->name, 200));
    buf_printf(b, ": %zu single times tell little of its %s; measure longer (--budget)\n",
               row->c->samples_raw.n, limit_name(a));
}

static void write_text(struct stream *s, const struct rows *rows, const struct asked *a, bool with_subject)
{
    struct buf *b = &s->out;
    buf_printf(b, "%s%s, %s %s %s", show_number(a->goal.rate).s,
               *a->goal.rate_unit ? a->goal.rate_unit : "/s", limit_name(a), target_op_text(a->goal.limit.op),
               show_time(a->goal.limit.value).s);
    if (a->goal.headroom > 0) buf_printf(b, ", %s headroom", show_percent(a->goal.headroom).s);
    buf_add_str(b, "\n\n");
    write_table(s, rows, a, with_subject);
    for (size_t i = 0; i < rows->all.n; i++) write_doubt(b, &rows->all.items[i], a);
    buf_add_char(b, '\n');
    if (rows->chosen)
        write_reason(b, rows->chosen, a);
    else
        buf_printf(b, "impossible: no case keeps the limit, however many replicas there are\n");
    buf_add_str(b, "\nassumed:\n");
    for (size_t i = 0; i < sizeof assumptions / sizeof *assumptions; i++)
        buf_printf(b, "- %s\n", assumptions[i]);
}

/* ---- JSON ---- */

static void json_known(struct json *j, const char *key, struct known_f64 v)
{
    json_kv_double(j, key, v.known ? v.v : NAN); /* NAN is written as null */
}

static void json_row(struct json *j, const struct capacity *row)
{
    const struct queue_plan *p = &row->plan;
    bool ok = !row->unusable && p->possible;
    json_object_begin(j);
    json_kv_string(j, "run", row->run->id);
    json_kv_string(j, "subject", row->run->subject.name);
    json_kv_string(j, "case", row->c->name);
    json_kv_bool(j, "possible", ok);
    json_kv_string(j, "why", row->unusable ? row->unusable : p->why_not);
    json_kv_double(j, "requests_per_s", row->requests);
    json_kv_double(j, "service_ns", row->unusable ? NAN : p->service_ns);
    json_kv_bool(j, "few_samples", row->few_samples);
    if (ok) {
        json_kv_uint(j, "replicas", p->servers);
        json_kv_double(j, "utilization", p->at_rate.utilization);
        json_kv_double(j, "response_ns", p->at_rate.response_ns);
        json_kv_double(j, "response_ns_lo", p->at_rate.lo);
        json_kv_double(j, "response_ns_hi", p->at_rate.hi);
        json_kv_double(j, "wait_mean_ns", p->at_rate.wait_mean_ns);
        json_kv_double(j, "breaks_at_per_s", p->breaks_at);
        json_kv_double(j, "saturates_at_per_s", p->saturates_at);
        json_known(j, "machines", row->machines);
        json_kv_string(j, "machines_by", row->machines_by);
        json_known(j, "memory_bytes",
                   row->memory.known ? known_f64(row->memory.v * p->servers) : (struct known_f64){0});
        json_kv_uint(j, "simulated_requests", p->at_rate.arrivals);
    }
    json_object_end(j);
}

static tare_status write_json(struct buf *out, const struct rows *rows, const struct asked *a,
                              tare_error *err)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_PRETTY);
    json_object_begin(&j);
    json_kv_string(&j, "schema", "tare.plan/1");
    json_kv_double(&j, "rate_per_s", a->goal.rate);
    json_kv_string(&j, "rate_unit", *a->goal.rate_unit ? a->goal.rate_unit : "/s");
    json_kv_string(&j, "metric", a->goal.limit.metric);
    json_kv_double(&j, "limit_ns", a->goal.limit.value);
    json_kv_double(&j, "headroom", a->goal.headroom);
    json_kv_uint(&j, "seed", a->goal.seed);
    json_key(&j, "assumptions");
    json_array_begin(&j);
    for (size_t i = 0; i < sizeof assumptions / sizeof *assumptions; i++) json_put_string(&j, assumptions[i]);
    json_array_end(&j);
    json_key(&j, "cases");
    json_array_begin(&j);
    for (size_t i = 0; i < rows->all.n; i++) json_row(&j, &rows->all.items[i]);
    json_array_end(&j);
    json_key(&j, "chosen");
    if (rows->chosen)
        json_row(&j, rows->chosen);
    else
        json_put_null(&j);
    json_object_end(&j);
    return json_finish(&j, err);
}

/* ---- the command ---- */

static int answer(struct cli *cli, const struct rows *rows, const struct asked *a, bool with_subject)
{
    struct stream s;
    stream_init(&s, cli_sink(cli), &cli->error);
    if (a->json) {
        tare_status st = write_json(&s.out, rows, a, &cli->error);
        if (st < 0 && s.status == TARE_OK) s.status = st;
    } else {
        write_text(&s, rows, a, with_subject);
    }
    int rc = cli_stream_result(cli, stream_finish(&s));
    return rc == CLI_GOOD && !rows->chosen ? CLI_FINDING : rc;
}

/* No case to plan with: say why, of the first one. */
static int explain_nothing(struct cli *cli, const struct rows *rows, const struct asked *a, const char *path)
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

static int plan(struct cli *cli, int argc, char **argv, const struct asked *a)
{
    struct input_runs args;
    struct rows rows = {0};
    int rc = input_runs_load(cli, &args, argv, (size_t)argc);
    if (rc) return rc;
    if (plan_all(&rows, &args, a, &cli->error) < 0)
        rc = cli_fail(cli);
    else if (rows.usable == 0)
        rc = explain_nothing(cli, &rows, a, argv[0]);
    else
        rc = answer(cli, &rows, a, args.n > 1);
    vec_release(&rows.all);
    input_runs_release(&args);
    return rc;
}

int cmd_plan(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare plan [options] --rate <rate> --slo <limit> <run.json>...",
        .about = "How many replicas keep a limit on response time at a rate of requests? From the single times in "
                 "run documents of `tare bench`: the queue before the replicas is simulated, for each case, with "
                 "random arrivals. Prints the replicas, how busy they are, the response time that results, and at "
                 "which rate it breaks.",
        .tail = "tare plan bench_minilm.json --rate 500/s --slo 'p95<=200ms' --headroom 20%",
        .min_args = 1,
        .max_args = OPT_ANY,
        .args = OPT_ARGS_FILES,
    };
    struct asked a = {.goal = {.seed = 1}, .cases = OPT_LIST_INIT};
    const struct opt rows[] = {
        OPT_CALLBACK('r', "rate", on_rate, &a, "<rate>", "requests: 500/s; or units of a case: 500texts/s"),
        OPT_CALLBACK(0, "slo", on_limit, &a, "<limit>", "limit on response time: p95<=200ms"),
        OPT_CALLBACK(0, "headroom", on_headroom, &a, "<percent>", "must also hold at this much more: 20%"),
        OPT_LIST(0, "case", &a.cases, "<name>", "only this case"),
        OPT_UINT(0, "seed", &a.goal.seed, "of the simulation"),
        OPT_JSON(&a.json),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc == 0 && !a.has_rate) rc = cli_usage_error(cli, "--rate is missing: how many requests per second?");
    if (rc == 0 && !a.has_limit)
        rc = cli_usage_error(cli, "--slo is missing: which response time is good enough?");
    if (rc == 0) rc = plan(cli, argc, argv, &a);
    opt_list_release(&a.cases);
    return rc;
}
