/* SPDX-License-Identifier: MIT
 * run_report.c - what the formats of run documents share: which columns there are, and values as texts.
 * Prints nothing by itself. */
#include "report/run/run_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/judge/plausible.h"
#include "analyze/judge/sweep.h"
#include "core/fmt.h"
#include "report/run/inspect_report.h"
#include "report/text.h"

const struct run_format run_formats[RUN_FORMATS + 1] = {
#define ONLY(name, function, help, ...) {#name, help, function},
    RUN_FORMAT_MAP(ONLY, ONLY)
#undef ONLY
    {NULL, NULL, NULL}};

tare_status report_run_json(struct stream *s, const struct run_report *r)
{
    if (r->n != 1) buf_add_str(&s->out, "[\n");
    for (size_t i = 0; i < r->n && s->status == TARE_OK; i++) {
        if (i) buf_add_str(&s->out, ",\n");
        tare_status st = run_write(r->runs[i], &s->out, s->err);
        if (st < 0) return s->status = st;
        stream_poll(s);
    }
    if (r->n != 1) buf_add_str(&s->out, "]\n");
    return s->status;
}

/* ---- values ---- */

static void add_plain(struct buf *b, const char *text)
{
    text_name(b, text, 200);
}

void run_value_text(struct buf *b, const struct run_value *v)
{
    switch (v ? v->kind : RUN_NULL) {
    case RUN_NULL: buf_add_char(b, '-'); break;
    case RUN_BOOL: buf_add_str(b, v->yes ? "yes" : "no"); break;
    case RUN_INT: buf_printf(b, "%" PRId64, v->i); break;
    case RUN_REAL: buf_printf(b, "%.6g", v->d); break;
    case RUN_TEXT: add_plain(b, v->s ? v->s : "-"); break;
    case RUN_LIST:
    case RUN_MAP: buf_printf(b, "(%zu values)", v->items.n); break;
    }
}

void run_measure_text(struct buf *b, const struct measure *m, double v)
{
    switch (m->kind) {
    case MEASURE_TIME: fmt_duration(b, v); break;
    case MEASURE_BYTES: fmt_bytes(b, v); break;
    case MEASURE_RATE: fmt_number(b, v); break;
    case MEASURE_PLAIN: buf_printf(b, "%.4f", v); break; /* scores: 0.9996 is not 1 */
    }
}

static double half_of(const struct run_estimate *e)
{
    return e->lo.known && e->hi.known ? fmax(e->hi.v - e->value, e->value - e->lo.v) : NAN;
}

/* ---- columns ---- */

static const struct run_column measure_columns[] = {
    {"", NULL, "throughput", false}, /* its title is the unit */
    {"+/-", NULL, "throughput", true},
    {"p50", NULL, "latency.p50", false},
    {"+/-", NULL, "latency.p50", true},
    {"p95", NULL, "latency.p95", false},
    {"p99", NULL, "latency.p99", false},
    {"TTFT p50", NULL, "ttft.p50", false},
    {"p95", NULL, "ttft.p95", false},
    {"gap p50", NULL, "gap.p50", false},
    {"p99", NULL, "gap.p99", false},
    {"TPOT", NULL, "tpot.p50", false},
    {"tokens/s", NULL, "tokens", false},
    {"goodput", NULL, "goodput", false},
    {"per unit", NULL, "latency.per_unit", false},
    {"memory", NULL, "memory.delta", false},
    {"peak", NULL, "memory.peak", false},
    {"on GPU", NULL, "memory.gpu", false},
    {"load", NULL, "load", false},
    {"accuracy", NULL, "accuracy", false},
    {"self", NULL, "self.share", false},
};
enum { N_MEASURES = sizeof measure_columns / sizeof *measure_columns };

/* What another column says already: the time of a unit where a run is one unit, and of a command how long the start of
 * the first process took. And what is not looked at first of streams of tokens, which have columns enough. */
static bool is_idle(const struct run *run, const struct run_column *column)
{
    static const char *const not_of_streams[] = {"memory.delta", "memory.peak", "load", "latency.p99",
                                                 "latency.per_unit"};
    for (size_t i = 0; i < sizeof not_of_streams / sizeof *not_of_streams; i++)
        if (run->cases.at[0]->stream.known && strcmp(column->metric, not_of_streams[i]) == 0) return true;
    if (strcmp(column->metric, "load") == 0) return strcmp(run->subject.type, "command") == 0;
    if (strcmp(column->metric, "latency.per_unit") != 0) return false;
    for (size_t i = 0; i < run->cases.n; i++) {
        const struct known_u64 *units = &run->cases.at[i]->units_per_run;
        if (units->known && units->v != 1) return false;
    }
    return true;
}

/* A number that at least one case has; or one of the main ones, with a reason why it is missing. */
static bool is_shown(const struct run *run, const struct run_column *column)
{
    struct run_estimate e;
    if (is_idle(run, column)) return false;
    static const char *const extra[] = {"accuracy", "self.share", "memory.gpu"};
    bool is_main = strncmp(measure_find(column->metric)->path, "stream.", 7) != 0;
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++)
        is_main = is_main && strcmp(column->metric, extra[i]) != 0;
    for (size_t i = 0; i < run->cases.n; i++) {
        const struct run_case *c = run->cases.at[i];
        if (measure_named(c, column->metric, &e)) return true;
        if (is_main && !column->half && run_reason(&c->unknown, measure_find(column->metric)->path))
            return true;
    }
    return false;
}

static bool varies(const struct run *run, const char *key)
{
    const struct run_value *first = run_map_get(&run->cases.at[0]->params, key);
    for (size_t i = 1; i < run->cases.n; i++)
        if (!values_equal(first, run_map_get(&run->cases.at[i]->params, key))) return true;
    return false;
}

/* Do all cases have the same value under both keys? Then one of them says it all. */
static bool repeats(const struct run *run, const char *key, const char *shown)
{
    for (size_t i = 0; i < run->cases.n; i++) {
        const struct run_map *p = &run->cases.at[i]->params;
        if (!values_equal(run_map_get(p, key), run_map_get(p, shown))) return false;
    }
    return true;
}

/* More than there is room for counts as one more than there is room for. */
static size_t varying_params(const struct run *run, struct run_column *out, size_t room)
{
    size_t n = 0;
    for (size_t c = 0; c < run->cases.n; c++) {
        const struct run_map *params = &run->cases.at[c]->params;
        for (size_t i = 0; i < params->n; i++) {
            const char *key = params->at[i].key;
            const struct run_value *first = c ? run_map_get(&run->cases.at[0]->params, key) : NULL;
            bool seen =
                first && first->kind != RUN_MAP && first->kind != RUN_LIST; /* judged with the first */
            bool known = seen || !param_is_setting(&params->at[i]) || !varies(run, key);
            for (size_t k = 0; !known && k < n; k++) known = repeats(run, key, out[k].param);
            if (known) continue;
            if (n == room) return room + 1;
            out[n++] = (struct run_column){.title = key, .param = key};
        }
        if (c >= 64) break; /* what has not differed by now is told by the case's name */
    }
    return n;
}

static const char *rate_title(const struct run *run)
{
    const char *unit = NULL;
    for (size_t i = 0; i < run->cases.n; i++) {
        const char *u = run->cases.at[i]->throughput.unit;
        if (!u) continue;
        if (unit && strcmp(u, unit) != 0) return "units/s";
        unit = u;
    }
    return unit ? unit : "units/s";
}

/* What tells the cases apart is their parameters; where these are too many for the table, or do not differ, it is the
 * case's name. */
static size_t run_columns(const struct run *run, struct run_column out[RUN_COLUMNS_MAX])
{
    struct run_column measures[N_MEASURES];
    size_t n = 0, m = 0;
    if (run->cases.n == 0) return 0;
    for (size_t i = 0; i < N_MEASURES; i++) {
        if (!is_shown(run, &measure_columns[i])) continue;
        measures[m] = measure_columns[i];
        if (!*measures[m].title) measures[m].title = rate_title(run);
        m++;
    }
    n = varying_params(run, out, RUN_COLUMNS_MAX - m);
    if (n > RUN_COLUMNS_MAX - m || n == 0) {
        out[0] = (struct run_column){.title = "case"};
        n = 1;
    }
    memcpy(out + n, measures, m * sizeof *measures);
    return n + m;
}

/* Half the interval as a share of the value; where an end is open, or the doubt larger than the value, its ends. */
static void add_half(struct buf *b, const struct measure *m, const struct run_estimate *e)
{
    double half = half_of(e);
    if (!(e->value > 0) || (!e->lo.known && !e->hi.known)) {
        buf_add_char(b, '-');
    } else if (half <= e->value) {
        fmt_share(b, half / e->value);
    } else {
        if (e->lo.known) run_measure_text(b, m, e->lo.v);
        buf_add_str(b, e->lo.known ? " .. " : "? .. ");
        if (e->hi.known) run_measure_text(b, m, e->hi.v);
        if (!e->hi.known) buf_add_char(b, '?');
    }
}

/* A time that falls on a run which was due and not served has a lower bound only, which says more than a dash. */
static void add_cell(struct buf *b, const struct run_case *c, const struct run_column *column)
{
    struct run_estimate e;
    double least;
    if (column->param) {
        run_value_text(b, run_map_get(&c->params, column->param));
    } else if (!column->metric) {
        add_plain(b, *c->name ? c->name : "-");
    } else if (!column->half && measure_exceeds(c, measure_find(column->metric), &least)) {
        buf_add_str(b, "> ");
        fmt_duration(b, least);
    } else if (!measure_named(c, column->metric, &e)) {
        buf_add_char(b, '-');
    } else if (column->half) {
        add_half(b, measure_find(column->metric), &e);
    } else if (strcmp(column->metric, "self.share") == 0) {
        fmt_share(b, e.value);
    } else {
        run_measure_text(b, measure_find(column->metric), e.value);
    }
}

size_t run_cases_table(const struct run *run, struct run_column columns[RUN_COLUMNS_MAX], struct table *t)
{
    struct table_column heads[RUN_COLUMNS_MAX];
    size_t n = run_columns(run, columns);
    for (size_t i = 0; i < n; i++)
        heads[i] = (struct table_column){columns[i].title, !columns[i].param && !columns[i].metric};
    static const char *const spare[] = {"load", "memory", "self", "per unit", "p99", "on GPU", "peak", NULL};
    table_init(t, heads, (uint32_t)n);
    t->spare = spare;
    for (size_t c = 0; n && c < run->cases.n; c++)
        for (size_t i = 0; i < n; i++) add_cell(table_cell(t), run->cases.at[c], &columns[i]);
    return n;
}

/* Were other programs at work, by what is known of the runs or of the machine? */
static bool is_beside_others(const struct run *run)
{
    const struct run_host *h = &run->host;
    double interrupted, steal;
    for (size_t i = 0; i < run->cases.n; i++)
        if (plausible_disturbed(run->cases.at[i], &interrupted, &steal) &&
            plausible_is_busy(interrupted, steal))
            return true;
    return h->load1.known && h->cpu.usable.known && h->load1.v > (double)h->cpu.usable.v;
}

const char *run_interval_note(const struct run *run)
{
    return is_beside_others(run)
               ? "+/- is the 95 % interval within this run; other work was running: beside it such intervals "
                 "held the long-run median in only 39 to 96 % of trials"
               : "+/- is the 95 % interval within this run; it does not cover other days or machines";
}

/* ---- the head ---- */

void run_subject_text(struct buf *b, const struct run *run)
{
    const struct run_subject *s = &run->subject;
    add_plain(b, s->name);
    buf_add_str(b, " (");
    add_plain(b, s->type);
    if (s->size_bytes.known) {
        buf_add_str(b, ", ");
        fmt_bytes(b, s->size_bytes.v);
    }
    buf_add_char(b, ')');
    if (!s->runtime.known) return;
    buf_add_str(b, " in ");
    add_plain(b, s->runtime.name);
    if (!s->runtime.version) return;
    buf_add_char(b, ' ');
    add_plain(b, s->runtime.version);
}

void run_host_text(struct buf *b, const struct run *run)
{
    const struct run_host *h = &run->host;
    add_plain(b, h->hostname ? h->hostname : "(unnamed)");
    if (h->cpu.model) {
        buf_add_str(b, ", ");
        add_plain(b, h->cpu.model);
    }
    if (h->cpu.usable.known) buf_printf(b, ", %s", show_number(h->cpu.usable.v).s);
    if (h->cpu.usable.known && h->cpu.cores.known) buf_printf(b, " of %" PRIu64, h->cpu.cores.v);
    if (h->cpu.usable.known) buf_add_str(b, " processors usable");
    if (h->memory_bytes.known) {
        buf_add_str(b, ", ");
        fmt_bytes(b, h->memory_bytes.v);
    }
    if (h->is_virtual.known && h->is_virtual.v) buf_add_str(b, ", virtual");
    for (size_t i = 0; i < h->gpus.n && i < 4; i++) {
        buf_add_str(b, ", ");
        add_plain(b, h->gpus.at[i]->name ? h->gpus.at[i]->name : "GPU");
    }
}

static void add_pair(struct buf *b, const struct run_entry *e, bool first)
{
    if (!first) buf_add_str(b, ", ");
    add_plain(b, e->key);
    buf_add_char(b, '=');
    run_value_text(b, &e->value);
}

/* What is said per case is in the table, in the notes and in the findings. */
static bool is_short(const struct run_value *v)
{
    return v->kind == RUN_BOOL || v->kind == RUN_INT || v->kind == RUN_REAL || v->kind == RUN_TEXT;
}

void run_config_text(struct buf *b, const struct run *run)
{
    for (size_t i = 0, shown = 0; i < run->config.n && shown < 16; i++)
        if (is_short(&run->config.at[i].value)) add_pair(b, &run->config.at[i], shown++ == 0);
}

void run_fixed_text(struct buf *b, const struct run *run)
{
    if (run->cases.n == 0) return;
    const struct run_map *params = &run->cases.at[0]->params;
    const struct run_value *defaults = run_map_get(&run->config, RUN_DIMS_BY_DEFAULT);
    bool starred = false;
    for (size_t i = 0, shown = 0; i < params->n && shown < 16; i++) {
        if (!param_is_setting(&params->at[i]) || varies(run, params->at[i].key)) continue;
        add_pair(b, &params->at[i], shown++ == 0);
        if (!defaults || defaults->kind != RUN_MAP || !run_map_get(&defaults->items, params->at[i].key))
            continue;
        buf_add_char(b, '*');
        starred = true;
    }
    if (starred) buf_add_str(b, " (* by default: set with --dim NAME=N, --batch N or --seq N)");
}

void run_created_text(struct buf *b, const struct run *run)
{
    size_t n = strlen(run->created); /* 2026-11-15T02:17:21.123Z, checked by the reader */
    if (n < 19) {
        add_plain(b, run->created);
        return;
    }
    buf_printf(b, "%.10s %.8s UTC", run->created, run->created + 11);
}

/* ---- targets ---- */

/* What the user asked for, as short as it can be said: "200 ms", not "200.0 ms". */
static void add_exact(struct buf *b, const struct measure *m, double v)
{
    static const char *const times[] = {"ns", "us", "ms", "s"};
    int u = 0;
    if (m->kind == MEASURE_TIME) {
        for (; u < 3 && fabs(v) >= 1000; u++) v /= 1000;
        buf_printf(b, "%.6g %s", v, times[u]);
    } else if (m->kind == MEASURE_BYTES) {
        fmt_bytes(b, v);
    } else {
        buf_printf(b, "%.6g", v);
    }
}

static void add_target_value(struct buf *b, const struct run_target *t, double v, bool exact)
{
    const struct measure *m = measure_find(t->metric);
    if (!m) { /* from a newer tare */
        buf_printf(b, "%.6g %s", v, t->unit ? t->unit : "");
        return;
    }
    if (exact)
        add_exact(b, m, v);
    else
        run_measure_text(b, m, v);
    if (m->kind != MEASURE_RATE) return;
    if (t->unit && t->unit[0] != '/') buf_add_char(b, ' ');
    add_plain(b, t->unit ? t->unit : "/s");
}

void run_target_text(struct buf *b, const struct run_target *t)
{
    add_plain(b, t->metric);
    buf_printf(b, " %s ", t->op);
    add_target_value(b, t, t->value, true);
}

/* Three digits must not hide on which side of the target it is: 200.4 ms misses 200 ms. */
void run_achieved_text(struct buf *b, const struct run_target *t)
{
    bool close = fabs(t->achieved.v - t->value) < 0.01 * fabs(t->value);
    const char *verdict = t->verdict ? t->verdict : ""; /* a document may leave it out */
    bool passed = strcmp(verdict, "pass") == 0, failed = strcmp(verdict, "fail") == 0;
    if (t->achieved.known) {
        add_target_value(b, t, t->achieved.v, close);
    } else if (passed || failed) { /* counted, though too few for a value: on which side it is, is known */
        bool less = (t->op[0] == '<') == passed, equal = (t->op[1] == '=') == passed;
        buf_printf(b, "%c%s ", less ? '<' : '>', equal ? "=" : "");
        add_target_value(b, t, t->value, true);
    } else {
        buf_add_char(b, '-');
    }
}

static void fill_target(struct buf *b, const void *row)
{
    run_target_text(b, row);
}

static void fill_case(struct buf *b, const void *row)
{
    const struct run_target *t = row;
    add_plain(b, t->case_name && *t->case_name ? t->case_name : "-");
}

static void fill_achieved(struct buf *b, const void *row)
{
    run_achieved_text(b, row);
}

static void fill_ratio(struct buf *b, const void *row)
{
    const struct run_target *t = row;
    fmt_number(b, t->ratio.known ? t->ratio.v : NAN);
}

static void fill_verdict(struct buf *b, const void *row)
{
    buf_add_str(b, ((const struct run_target *)row)->verdict);
}

static void fill_confidence(struct buf *b, const void *row)
{
    const struct run_target *t = row;
    if (t->confidence.known) /* never 100 % */
        buf_printf(b, "%s%.4g %%", t->confidence.v > 0.9999 ? "> " : "", fmin(t->confidence.v, 0.9999) * 100);
    else
        buf_add_str(b, t->achieved.known ? "measured once" : "-");
}

const struct table_fill run_target_columns[RUN_TARGET_COLUMNS] = {
    {"target", true, fill_target},           {"case", true, fill_case},       {"achieved", false, fill_achieved},
    {"margin", false, fill_ratio}, {"verdict", true, fill_verdict}, {"confidence", true, fill_confidence},
};
