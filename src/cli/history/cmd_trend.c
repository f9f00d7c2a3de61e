/* SPDX-License-Identifier: MIT
 * cmd_trend.c - `tare trend`: a metric of a subject over the history, case by case and machine by machine, and
 * where its level changed. Machines are never mixed: each has its own series. */
#include <math.h>
#include <string.h>

#include "analyze/judge/judge.h"
#include "analyze/judge/plausible.h"
#include "cli/command.h"
#include "cli/html_out.h"
#include "cli/output.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "core/stats.h"
#include "core/suggest.h"
#include "history/trend_answer.h"

#define GAP_ALPHA 0.01 /* of calling a newest run worse by its median alone */

struct trend_question {
    struct history_args where;
    struct trend_ask ask;
    const char *metric, *csv, *html, *fail_on;
    double limit; /* of --fail-on; else the smallest change that is told */
    bool fail, strict, json;
};

/* ---- which series ---- */

struct names {
    VEC(const char *) at;
    struct arena arena;
};

static bool has_name(const struct names *n, const char *name)
{
    for (size_t i = 0; i < n->at.n; i++)
        if (strcmp(n->at.items[i], name) == 0) return true;
    return false;
}

static tare_status note_subject(void *ctx, const struct store_series_name *name, tare_error *err)
{
    struct names *n = ctx;
    if (has_name(n, name->subject)) return TARE_OK;
    const char *copy = arena_str(&n->arena, name->subject);
    return copy ? vec_push(&n->at, copy, err) : error_nomem(err, "a name");
}

static void list_names(struct buf *out, const struct names *n)
{
    for (size_t i = 0; i < n->at.n && i < 12; i++) buf_printf(out, "%s%s", i ? ", " : "", n->at.items[i]);
    if (n->at.n > 12) buf_printf(out, ", and %zu more", n->at.n - 12);
}

/* The subject asked for, or the only one there is. */
static int choose_subject(struct cli *cli, struct store *s, struct trend_question *a, const struct names *all)
{
    struct buf list = BUF_INIT;
    list_names(&list, all);
    if (all->at.n == 0)
        error_set(&cli->error, TARE_INVALID, "%s: no run has %s", s->where, a->ask.query.metric);
    else if (a->ask.query.subject && !has_name(all, a->ask.query.subject))
        error_set(&cli->error, TARE_INVALID, "%s: no subject %s with %s; there are: %s", s->where,
                  a->ask.query.subject, a->ask.query.metric, list.data);
    else if (!a->ask.query.subject && all->at.n > 1)
        error_set(&cli->error, TARE_INVALID, "%s: which --subject? There are: %s", s->where, list.data);
    else
        cli->error.status = TARE_OK;
    buf_release(&list);
    if (cli->error.status != TARE_OK) return cli_fail(cli);
    if (!a->ask.query.subject) a->ask.query.subject = all->at.items[0];
    return 0;
}

/* ---- what a gate cannot read ---- */

/* Does the newest run of the case have the metric at all? Where it does not, its median against those before tells
 * whether the gate fails all the same. Busy and brief, for all that the history tells: the widest bound. */
static tare_status note_gap(struct store *store, const struct trend_question *q, struct trend_answer *to,
                            struct trend_series *s, tare_error *err)
{
    struct store_query beside = {.subject = q->ask.query.subject,
                                 .case_name = s->case_name,
                                 .metric = "latency.p50",
                                 .host = s->host,
                                 .anchor = ""};
    struct store_points median = {VEC_INIT};
    const struct measure *m = measure_find(beside.metric);
    if (s->anchor[0] || strncmp(to->metric->name, "latency.", 8) != 0) return TARE_OK;
    tare_status status = store_series(store, &beside, q->ask.last, &median, err);
    size_t n = median.at.n;
    const struct store_point *last = n ? &median.at.items[n - 1] : NULL;
    const char *have = s->points.at.n ? s->points.at.items[s->points.at.n - 1].run : "";
    if (status == TARE_OK && last && last->created_ms && strcmp(last->run, have) != 0) {
        double before[TREND_MAX], far = plausible_ratio(plausible_sd(m, true, true), q->limit, GAP_ALPHA);
        size_t k = 0;
        for (size_t i = 0; i + 1 < n && k < TREND_MAX; i++) before[k++] = median.at.items[i].value;
        stats_sort(before, k);
        double ratio = k ? last->value / stats_median_sorted(before, k) : 1;
        s->gap_fails = ratio > far;
        s->gap = s->gap_fails
                     ? arena_printf(&to->arena,
                                    "the newest run does not have it; but its latency.p50 is %s times "
                                    "as much as before, and no plausible noise makes it %s",
                                    show_number(ratio).s, show_number(far).s)
                     : "the newest run does not have it";
    }
    vec_release(&median.at);
    return status;
}

static tare_status load_series(struct store *store, const struct trend_question *a, struct trend_answer *to,
                               tare_error *err)
{
    tare_status s = trend_load(store, &a->ask, to, err);
    for (size_t i = 0; (a->fail || a->fail_on) && i < to->series.n && s == TARE_OK; i++)
        s = note_gap(store, a, to, &to->series.items[i], err);
    return s;
}

/* ---- the answer ---- */

/* By more than the limit, as the nearer end of the interval says it; without a limit any change that is told. */
static bool is_beyond(const struct trend_question *q, const struct interval *ratio, bool more_is_better)
{
    double surely = more_is_better ? 1 / ratio->hi : ratio->lo;
    return !q->fail_on || surely > 1 + q->limit;
}

/* Against the accepted run, where it is in sight; else within the last runs. */
static bool series_got_worse(const struct trend_question *q, const struct trend_series *s,
                             bool more_is_better)
{
    if (s->gap_fails) return true;
    if (s->accepted.seen) return s->accepted.worse && is_beyond(q, &s->accepted.ratio, more_is_better);
    for (size_t k = 0; k < s->found.changes.n; k++) {
        const struct trend_change *c = &s->found.changes.items[k];
        if (c->worse && c->recent && is_beyond(q, &c->ratio, more_is_better)) return true;
    }
    return false;
}

static bool got_worse(const struct trend_question *q, const struct trend_answer *a)
{
    for (size_t i = 0; i < a->series.n; i++)
        if (series_got_worse(q, &a->series.items[i], a->metric->more_is_better)) return true;
    return false;
}

/* Would a step have been seen in each of the series? In a short or noisy one its absence says nothing. */
static bool is_undecided(const struct trend_question *q, const struct trend_answer *a)
{
    for (size_t i = 0; i < a->series.n; i++) {
        double smallest = a->series.items[i].found.smallest;
        if (a->series.items[i].gap || isnan(smallest) || (q->fail_on && smallest > q->limit)) return true;
    }
    return false;
}

static struct trend_style style_of(const struct term *t)
{
    return (struct trend_style){term_style(t, TERM_RED), term_style(t, TERM_GREEN), term_style(t, TERM_PLAIN),
                                t->width, t->utf8};
}

static tare_status write_page(struct cli *cli, const char *path, const struct trend_answer *found)
{
    struct html_out h = HTML_OUT_INIT;
    struct buf text = BUF_INIT;
    struct report_style style = REPORT_STYLE_NONE;
    struct trend_style look = TREND_STYLE_NONE;
    struct answer a;
    answer_begin(&a, sink_to_buf(&text), true, &style, &cli->error);
    trend_say(&a, found, &look);
    tare_status s = answer_end(&a);
    if (s == TARE_OK) s = html_out_text(&h, "history", found->subject, &text, &cli->error);
    if (s == TARE_OK) s = html_out_write(cli, &h, path, found->subject);
    html_out_release(&h);
    buf_release(&text);
    return s;
}

static tare_status write_csv(struct cli *cli, const char *path, const struct trend_answer *found)
{
    struct output o;
    tare_status s = output_open(cli, &o, path);
    if (s != TARE_OK) return s;
    trend_show_csv(&o.stream.out, found);
    return output_close(cli, &o);
}

static int answer_trend(struct cli *cli, const struct trend_question *q, const struct trend_answer *found)
{
    struct answer a;
    struct trend_style look = style_of(&cli->out_term);
    tare_status s = q->csv ? write_csv(cli, q->csv, found) : TARE_OK;
    if (s == TARE_OK && q->html) s = write_page(cli, q->html, found);
    if (s == TARE_OK && !output_is_answer(q->csv)) {
        cli_answer_begin(cli, &a, q->json);
        trend_say(&a, found, &look);
        s = answer_end(&a);
    }
    int rc = cli_stream_result(cli, s);
    bool is_judged = rc == CLI_GOOD && (q->fail || q->fail_on);
    for (size_t i = 0; is_judged && i < found->series.n; i++)
        if (found->series.items[i].gap)
            cli_note(cli, "%s of %s is not decided: %s", found->metric->name,
                     found->series.items[i].case_name, found->series.items[i].gap);
    if (is_judged && got_worse(q, found)) return CLI_FINDING;
    if (!is_judged || !q->strict || !is_undecided(q, found)) return rc;
    cli_note(cli, "undecided: a step would not be sure to show in all of these series");
    return CLI_FAILED;
}

/* Names are asked twice: of all subjects, to choose one or say which there are; then of its series. */
static int trend_of(struct cli *cli, struct store *store, struct trend_question *a)
{
    struct names all = {0};
    struct store_query every = {.metric = a->ask.query.metric};
    struct trend_answer found = {.history = store->where, .metric = measure_find(a->metric)};
    tare_status s = store->ops->names(store, &every, note_subject, &all, &cli->error);
    int rc = s == TARE_OK ? choose_subject(cli, store, a, &all) : cli_fail(cli);
    if (rc == 0) {
        found.subject = a->ask.query.subject;
        s = load_series(store, a, &found, &cli->error);
        if (s == TARE_OK && found.series.n == 0)
            s = error_set(&cli->error, TARE_INVALID, "%s: no such case, host or anchor of %s with %s",
                          store->where, found.subject, a->ask.query.metric);
        rc = s == TARE_OK ? answer_trend(cli, a, &found) : cli_fail(cli);
    }
    trend_answer_release(&found);
    vec_release(&all.at);
    arena_release(&all.arena);
    return rc;
}

static int unknown_metric(struct cli *cli, const char *name)
{
    struct suggest near;
    suggest_init(&near, name, strlen(name));
    for (const struct measure *m = measure_table; m->name; m++) suggest_offer(&near, m->name);
    const char *best = suggest_best(&near);
    return cli_usage_error(cli, "--metric %.40s: no such metric%s%s%s", name, best ? "; did you mean " : "",
                           best ? best : "", best ? "?" : "; try latency.p50, throughput or memory.peak");
}

/* --fail-on is of the one metric that is shown. */
static int read_limit(struct cli *cli, struct trend_question *q)
{
    struct compare_limit limit;
    struct trend_options o = TREND_OPTIONS_INIT;
    if (!q->fail_on) return 0;
    if (compare_limit_parse(&limit, q->fail_on, NULL, &cli->error) < 0) {
        error_wrap(&cli->error, "--fail-on");
        return cli_fail(cli);
    }
    q->limit = isnan(limit.share) ? o.min_effect : limit.share;
    if (strcmp(limit.metric, q->ask.query.metric) == 0) return 0;
    return cli_usage_error(cli, "--fail-on is of %s, the trend of %s: give --metric %s", limit.metric,
                           q->ask.query.metric, limit.metric);
}

int cmd_trend(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare trend [options]",
        .about = "Show a metric over the history, each case on each machine for itself, and where its level "
                 "changed: by how much, since which run and commit, and which steps were too small to be seen. "
                 "Single outliers are no change. Ratios to a frozen anchor build are taken where there are any.",
        .tail = "tare trend --subject minilm --metric throughput\n"
                "tare trend --fail                  exit 1 if it got worse within the last 12 runs",
    };
    struct trend_question a = {.where = HISTORY_ARGS_INIT, .metric = "latency.p50", .ask.last = 100};
    const struct opt rows[] = {
        OPT_STRING('s', "subject", &a.ask.query.subject, "<name>", "which subject (default: the only one)"),
        OPT_STRING('m', "metric", &a.metric, "<name>", "which number of its cases"),
        OPT_STRING('c', "case", &a.ask.query.case_name, "<name>", "only this case"),
        OPT_STRING(0, "host", &a.ask.query.host, "<fingerprint>", "only this machine"),
        OPT_UINT_IN('n', "last", &a.ask.last, 1, TREND_MAX, "look at the newest so many runs"),
        OPT_FLAG(0, "anchored", &a.ask.anchored, "only ratios to an anchor build"),
        OPT_STRING(0, "anchor", &a.ask.query.anchor, "<name>", "to this one (default: the one that came last)"),
        OPT_FLAG(0, "absolute", &a.ask.absolute, "only values of their own, though ratios exist",
                 .not_with = "anchored anchor"),
        OPT_FLAG(0, "fail", &a.fail, "exit 1 if a level got worse within the last 12 runs"),
        OPT_STRING(0, "fail-on", &a.fail_on, "<limit>",
                   "the same, but only by more than this (95 % sure), as in latency.p50>5%"),
        OPT_FLAG(0, "strict", &a.strict,
                 "exit 3 where such a step would not be sure to show: too few runs, or too noisy",
                 .needs = "fail fail-on"),
        OPT_JSON(&a.json),
        OPT_OUT(0, "csv", &a.csv, "<file>", "also as CSV; - is stdout instead"),
        OPT_HTML(&a.html),
        OPT_HISTORY(&a.where),
        OPT_SERVER(&a.where),
        OPT_HISTORY_DIR(&a.where),
        OPT_END,
    };
    struct store *store = NULL;
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    if (!measure_find(a.metric)) return unknown_metric(cli, a.metric);
    if (a.ask.query.anchor && !a.ask.query.anchor[0]) return cli_usage_error(cli, "--anchor: which?");
    if (a.ask.query.anchor) a.ask.anchored = true;
    a.ask.query.metric = measure_find(a.metric)->name;
    if ((rc = read_limit(cli, &a)) != 0 || (rc = html_out_check(cli, a.html)) != 0) return rc;
    rc = history_open(cli, &a.where, false, &store);
    if (rc == 0) rc = trend_of(cli, store, &a);
    store_close(store);
    return rc;
}
